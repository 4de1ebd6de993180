#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Where apps may go outside by a list: of a flag, of the config's apps, of labels; in both modes and
# families; what is refused is refused at once, counted by its rule, and only counted by audit; a
# source address.
. "$(dirname "$0")/lib.sh"
need nft
build_c tcp udp

. "$(dirname "$0")/outside.sh"
for a in 198.51.100.1/24 198.51.100.9/24; do ip addr add $a dev wan0; done
for a in 2001:db8:1::9/64 2001:db8:1::1/64; do ip addr add $a dev wan0 nodad; done
ip link set wan0 up
for a in 198.51.100.2/24 198.51.100.3/24; do outside ip addr add $a dev wan1; done
for a in 2001:db8:1::3/64 2001:db8:1::2/64; do outside ip addr add $a dev wan1 nodad; done
outside ip link set wan1 up
for port in 80 443; do
	bg "$T/tcp$port" nsenter -t "$OUTSIDE" -n "$BIN/tcp" listen 6 :: $port outside
	wait_for "grep -q listening $T/tcp$port"
done
bg "$T/udp" nsenter -t "$OUTSIDE" -n "$BIN/udp" serve 6 :: 7053 outside
wait_for "grep -q bound $T/udp && $BIN/tcp connect 6 2001:db8:1::2 80"

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  listed: {egress: {to: ["198.51.100.2:80", "[2001:db8:1::2]:80"]}}
  hosted: {net: host, egress: ["198.51.100.2:80/tcp", "198.51.100.2:7053/udp"]}
policy:
  egress:
    - {from: {tier: back}, to: [198.51.100.3, "2001:db8:1::3"], name: back}
    - {from: {tier: watched}, to: "198.51.100.3", audit: true, name: watched}
    - {from: {tier: seen}, source: "198.51.100.9,2001:db8:1::9"}
    - {from: {app: also}, to: 198.51.100.0/24, source: 198.51.100.9}
EOF

# error_of OPTIONS... -- PROGRAM...
error_of() {
	in_app "$@" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^peer=.* you=.*/connected/p; s/^from=.*/answered/p' | sort -u
}
hits() {
	ax get policy -o json |
		jq -r --arg t "$1" '[.[] | select(.text == $t or .name == $t) | .hits] | add'
}

list="198.51.100.2:80,[2001:db8:1::2]:80/tcp,198.51.100.2:7053/udp,[2001:db8:1::2]:7053"
# shellcheck disable=SC2086 # $to: a family, an address
for mode in private host; do
	for to in "4 198.51.100.2" "6 2001:db8:1::2" "6 198.51.100.2"; do
		is "$mode: what the list has, $to" \
			"$(error_of --net $mode --egress="$list" -- "$BIN/tcp" connect $to 80)" connected
		is "$mode: not another port, $to" \
			"$(error_of --net $mode --egress="$list" -- "$BIN/tcp" connect $to 443)" EACCES
	done
	for to in "4 198.51.100.3" "6 2001:db8:1::3" "4 198.51.100.1" "6 2001:db8:1::1"; do
		is "$mode: not another address, at once, $to" \
			"$(TIME_LIMIT=20 error_of --net $mode --egress="$list" -- \
				timeout 15 "$BIN/tcp" connect $to 80)" EACCES
	done
	for method in connected sendto; do
		for to in "4 198.51.100.2" "6 2001:db8:1::2"; do
			is "$mode: UDP $method $to" \
				"$(error_of --net $mode --egress="$list" -- "$BIN/udp" ask $method $to 7053)" \
				answered
		done
		for to in "4 198.51.100.3" "6 2001:db8:1::3"; do
			is "$mode: UDP $method $to, which the list does not have" \
				"$(error_of --net $mode --egress="$list" -- "$BIN/udp" ask $method $to 7053)" EACCES
		done
	done
	is "$mode: a list has no effect on others" "$(error_of --net $mode --egress -- \
		"$BIN/tcp" connect 4 198.51.100.3 443)" connected
	is "$mode: none" "$(error_of --net $mode --egress=none -- "$BIN/tcp" connect 4 198.51.100.2 80)" \
		ENETUNREACH
	is "$mode: by labels" "$(error_of --net $mode --labels tier=back,zone=default -- \
		"$BIN/tcp" connect 6 2001:db8:1::3 443)" connected
	is "$mode: by labels, another address" "$(error_of --net $mode --labels tier=back -- \
		"$BIN/tcp" connect 4 198.51.100.2 80)" EACCES
	before=$(hits watched)
	is "$mode: an audit by labels lets it be" "$(error_of --net $mode --egress \
		--labels tier=watched -- "$BIN/tcp" connect 4 198.51.100.2 80)" connected
	like "$mode: and counts it" "$(($(hits watched) - before))" "^[1-9]"
	is "$mode: an audited list lets it be" "$(error_of --net $mode --name audited --egress-audit \
		--egress=198.51.100.2:80 -- "$BIN/tcp" connect 4 198.51.100.3 80)" connected
	source=(--net "$mode" --egress="198.51.100.0/24,2001:db8:1::/64"
		--egress-source "198.51.100.9,2001:db8:1::9")
	for to in "4 198.51.100.2" "6 2001:db8:1::2" "6 198.51.100.2"; do
		like "$mode: a source of its own, $to" \
			"$(in_app "${source[@]}" -- "$BIN/tcp" connect $to 80)" \
			"you=\[(::ffff:198.51.100.9|2001:db8:1::9)\]:"
	done
	for to in "4 198.51.100.2" "6 2001:db8:1::2"; do
		for method in connected sendto; do
			like "$mode: a source of its own, $method, $to" \
				"$(in_app "${source[@]}" -- "$BIN/udp" ask $method $to 7053)" \
				"(198.51.100.9|2001:db8:1::9)"
		done
	done
	for to in "4 198.51.100.2" "6 2001:db8:1::2" "6 198.51.100.2"; do
		like "$mode: a source by labels, $to" \
			"$(in_app --net "$mode" --egress --labels tier=seen -- "$BIN/tcp" connect $to 80)" \
			"you=\[(::ffff:198.51.100.9|2001:db8:1::9)\]:"
	done
	like "$mode: by an entry with a list" "$(in_app --net "$mode" --labels app=also -- "$BIN/tcp" connect 4 198.51.100.2 80)" \
		"you=\[::ffff:198.51.100.9\]:"
	like "$mode: its own comes first" "$(in_app --net "$mode" --egress --egress-source 198.51.100.1 --labels tier=seen -- \
		"$BIN/tcp" connect 4 198.51.100.2 80)" "you=\[::ffff:198.51.100.1\]:"
	like "$mode: others have the route's" "$(in_app --net "$mode" --egress -- "$BIN/tcp" connect 4 198.51.100.2 80)" \
		"you=\[::ffff:198.51.100.1\]:"
	is "$mode: loopback is as ever" "$(error_of "${source[@]}" -- "$BIN/tcp" connect 4 127.0.0.1 1)" \
		ECONNREFUSED
done
# Of a socket for pings no hook sees sendto(): in host mode who is held to a list has none. (A private app's
# packets are all judged.)
sysctl -qw net.ipv4.ping_group_range="0 0"
pings() { in_app --net host "$@" -- "$PYTHON" "$SRC/ping.py" sendto 198.51.100.2 2001:db8:1::2 2>&1 | xargs; }
is "host: pings by sendto" "$(pings --egress)" "answered answered"
is "host: none without a way out" "$(pings --egress=none)" "EACCES EACCES"
is "host: nor with a list" "$(pings --egress=198.51.100.3)" "EACCES EACCES"
is "host: nor with one by labels" "$(pings --labels tier=back)" "EACCES EACCES"
# (a list's rules are there as long as its app)
run_app --name audited --egress-audit --egress=198.51.100.2:80 -- \
	sh -c "'$BIN/tcp' connect 4 198.51.100.3 80; echo over; exec sleep 1000"
wait_for "grep -q over $OUT"
like "what an audited list does not have is counted" "$(hits "egress of audited -> outside")" "^[1-9]"
stop_app "$APP"
is "the config's list" "$(error_of --name listed -- "$BIN/tcp" connect 4 198.51.100.2 80)" connected
is "the config's list in host mode" \
	"$(error_of --name hosted -- "$BIN/udp" ask sendto 4 198.51.100.2 7053)" answered
is "which has no more" "$(error_of --name hosted -- "$BIN/tcp" connect 4 198.51.100.2 443)" EACCES
is "it reaches the host's loopback" "$(error_of --name hosted -- "$BIN/tcp" connect 4 127.0.0.1 1)" \
	ECONNREFUSED
like "a mistake is told" "$(ax run --egress=10.0.0.1/8 -- true 2>&1)" "egress.*host bits"
like "a source that is none of this machine" \
	"$(ax run --egress --egress-source 203.0.113.77 -- true 2>&1)" "203.0.113.77.*no address of this"
like "a list is shown" "$(ax get apps -o wide)" "198.51.100.2:80/tcp"

# nobody gets all the room that there is
entries() { # SECOND N
	seq -s, -f "10.$1.%g.0/24" 1 "$2"
}
like "a list has an end" "$(ax run --egress="$(entries 1 200),$(entries 2 200)" -- true 2>&1)" "at most 256 entries"
for i in 1 2 3 4 5; do
	run_app --name "long$i" --egress="$(entries "$i" 250),198.51.100.2:80" -- sleep 1000
	wait_for "! alive $APP || ax get apps -o name | grep -qx long$i"
done
wait_for "! alive $APP"
like "whoever has no room is told so" "$(cat "$OUT")" "no room for so many rules: .* 1024 may be"
is "and the others have theirs" "$(ax exec long4 "$BIN/tcp" connect 4 198.51.100.2 80 | sed 's/ .*//')" "peer=198.51.100.2:80"
for i in 1 2 3 4; do ax stop "long$i" >/dev/null; done

# a source by labels, of apps that run
for mode in private host; do
	run_app --net $mode --egress --name "late-$mode" --labels tier=late -- sleep 1000
	launched "late-$mode"
done
seen_as() {
	ax exec "late-$1" "$BIN/tcp" connect 4 198.51.100.2 80 | sed -n 's/.*you=\[::ffff:\([0-9.]*\)\].*/\1/p'
}
cp "$T/$INST.yaml" "$T/without.yaml"
echo '    - {from: {tier: late}, source: 198.51.100.9}' >>"$T/$INST.yaml"
is "without one" "$(seen_as private) $(seen_as host)" "198.51.100.1 198.51.100.1"
ok "they get one" ax config apply "$T/$INST.yaml"
is "which holds at once" "$(seen_as private) $(seen_as host)" "198.51.100.9 198.51.100.9"
agent_kill9
agent_again
is "and with the next agent" "$(seen_as private) $(seen_as host)" "198.51.100.9 198.51.100.9"
ok "they lose it" ax config apply "$T/without.yaml"
is "at once, too" "$(seen_as private) $(seen_as host)" "198.51.100.1 198.51.100.1"
cp "$T/without.yaml" "$T/$INST.yaml"
ok "as with the next agent's file" ax config apply "$T/$INST.yaml"
like "one that is none of this machine is warned of" \
	"$(ax config apply <(cat "$T/without.yaml"; echo '    - {from: {tier: x}, source: 203.0.113.77}') 2>&1)" \
	"203.0.113.77.*no address of this machine"
ok "the former" ax config apply "$T/$INST.yaml"

# the list goes with the app, also when the agent is another one
run_app --egress=198.51.100.2:80 --ip 10.77.1.5 --name kept -- sleep 100
launched kept
in_kept() {
	ax exec kept "$BIN/tcp" connect 4 "$@" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^peer=.* you=.*/connected/p'
}
is "an app with a list" "$(in_kept 198.51.100.2 80) $(in_kept 198.51.100.2 443)" "connected EACCES"
before=$(hits "egress of kept -> outside")
agent_kill9
is "while there is no agent" "$(nsenter -t "$(child_of "$APP")" -n "$BIN/tcp" connect 4 198.51.100.2 80 |
	sed 's/ .*//')" "peer=198.51.100.2:80"
agent_again
is "and with the next agent" "$(in_kept 198.51.100.2 80) $(in_kept 198.51.100.2 443)" "connected EACCES"
is "which counts on" "$(hits "egress of kept -> outside")" $((before + 1))
sed 's/to: \[198.51.100.3,/to: [198.51.100.2, 198.51.100.3,/' "$T/$INST.yaml" >"$T/next.yaml"
ok "another list for labels" ax config apply "$T/next.yaml"
is "holds at once" "$(error_of --labels tier=back -- "$BIN/tcp" connect 4 198.51.100.2 80)" connected
is "and the app has its own" "$(in_kept 198.51.100.2 80) $(in_kept 198.51.100.2 443)" \
	"connected EACCES"
stop_apps
leftovers
end "$OUTSIDE"
ip link del wan0 2>/dev/null # (without waiting for its other end)
done_testing
