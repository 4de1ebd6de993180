#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Private apps reach the outside only with egress. The outside is a network namespace behind a veth
# pair that knows nothing of virtual IPs.
. "$(dirname "$0")/lib.sh"
need nft
build_c tcp udp spoof

. "$(dirname "$0")/outside.sh"
ip addr add 198.51.100.1/24 dev wan0
ip addr add 2001:db8:1::1/64 dev wan0 nodad
ip link set wan0 up
outside ip addr add 198.51.100.2/24 dev wan1
outside ip addr add 2001:db8:1::2/64 dev wan1 nodad
outside ip link set wan1 up
bg "$T/tcp" nsenter -t "$OUTSIDE" -n "$BIN/tcp" listen 6 :: 80 outside
bg "$T/udp" nsenter -t "$OUTSIDE" -n "$BIN/udp" serve 6 :: 7053 outside
wait_for "grep -q listening $T/tcp && grep -q bound $T/udp"
wait_for "$BIN/tcp connect 6 2001:db8:1::2 80"

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  away:
    ip: 10.77.200.1,fd77::200:1
    ports: ["8080:80", "53:7053/udp"]
    backends: [{address: 198.51.100.2}, {address: "2001:db8:1::2"}]
EOF
forwarding() {
	sysctl -n net.ipv4.ip_forward net.ipv6.conf.all.forwarding | tr '\n' ' '
}
is "nothing of nftables before" "$(nft list ruleset)" ""
before=$(forwarding)

# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for to in "4 198.51.100.2" "6 2001:db8:1::2" "6 198.51.100.2"; do
	is "without egress: $to" "$(in_app -- "$BIN/tcp" connect $to 80)" "error connect ENETUNREACH"
	like "with --egress: $to" "$(in_app --egress -- "$BIN/tcp" connect $to 80)" \
		"outside you=\[(::ffff:198.51.100.1|2001:db8:1::1)\]:"
	like "host mode: $to" "$(in_app --net host --egress -- "$BIN/tcp" connect $to 80)" \
		"outside you=\[(::ffff:198.51.100.1|2001:db8:1::1)\]:"
done
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for method in connected sendto; do
	for to in "4 198.51.100.2" "6 2001:db8:1::2"; do
		is "without egress: UDP $method $to" \
			"$(in_app -- "$BIN/udp" ask $method $to 7053 | sed 's/error [a-z]* //')" ENETUNREACH
		ok "with --egress: UDP $method $to" in_app --egress -- "$BIN/udp" ask $method $to 7053
	done
done


# a service whose backend is outside
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for to in "4 10.77.200.1" "6 fd77::200:1" "6 10.77.200.1"; do
	for how in "" -n; do
		timed 999 in_app -- "$BIN/tcp" connect $to 8080 $how
		is "without egress, a service that is outside: $to $how" "$PRINTED" "error connect ENETUNREACH"
		like "at once ($TOOK ms): $to $how" "$TOOK" "^[0-9]{1,3}$"
	done
	like "with --egress, a service that is outside: $to" \
		"$(in_app --egress -- "$BIN/tcp" connect $to 8080)" \
		"outside you=\[(::ffff:198.51.100.1|2001:db8:1::1)\]:"
	like "host mode, a service that is outside: $to" \
		"$(in_app --net host --egress -- "$BIN/tcp" connect $to 8080)" \
		"outside you=\[(::ffff:198.51.100.1|2001:db8:1::1)\]:"
	for method in connected sendto; do
		is "without egress, a service that is outside: UDP $method $to" \
			"$(in_app -- "$BIN/udp" ask $method $to 53 | sed 's/error [a-z]* //')" ENETUNREACH
		ok "with --egress, a service that is outside: UDP $method $to" \
			in_app --egress -- "$BIN/udp" ask $method $to 53
	done
done

run_app --egress --name gate --ip 10.77.1.5 -- sleep 100
launched gate
serve 7000 --name web --ip 10.77.1.1 -- "$BIN/tcp" listen 4 0.0.0.0 7000
like "an app with egress reaches other apps as itself" \
	"$(in_app --egress --ip 10.77.1.9 -- "$BIN/tcp" connect 4 10.77.1.1 7000)" "you=10.77.1.9:"
is "beside one with egress, one without has none" \
	"$(in_app -- "$BIN/tcp" connect 4 198.51.100.2 80)" "error connect ENETUNREACH"
in_app --ip 10.77.1.8 -- "$BIN/spoof" 10.77.1.8 198.51.100.2 7053 raw-without-egress >/dev/null 2>&1
in_app --ip 10.77.1.8 -- "$BIN/spoof" 10.77.1.5 198.51.100.2 7053 raw-of-another >/dev/null 2>&1
# (it may leave as long as its app is there)
run_app --egress --ip 10.77.1.9 -- sh -c "$BIN/spoof 10.77.1.9 198.51.100.2 7053 raw-with-egress; exec sleep 1000"
ok "a raw datagram with egress arrives" wait_for "grep -q raw-with-egress $T/udp"
stop_app "$APP"
unlike "raw datagrams without egress do not, not even with the address of one that has it" \
	"$(cat "$T/udp")" "raw-without-egress|raw-of-another"

# TCP's flags do not make an answer of what nobody asked for
bg "$T/heard" nsenter -t "$OUTSIDE" -n "$PYTHON" "$SRC/segment.py" hear
wait_for "grep -q ready $T/heard"
for flags in 16 4 18; do
	in_app --ip 10.77.1.8,fd77::1:8 -- sh -c "$PYTHON $SRC/segment.py send 10.77.1.8 198.51.100.2 \
		$flags leak-$flags-4; $PYTHON $SRC/segment.py send fd77::1:8 2001:db8:1::2 $flags \
		leak-$flags-6; $PYTHON $SRC/segment.py send 10.77.1.8 198.51.100.1 $flags host"
done
in_app --egress --ip 10.77.1.9,fd77::1:9 -- sh -c "$PYTHON $SRC/segment.py send fd77::1:9 \
	2001:db8:1::2 2 heard-6; $PYTHON $SRC/segment.py send 10.77.1.9 198.51.100.2 2 heard-4"
wait_for "grep -q heard-4 $T/heard && grep -q heard-6 $T/heard"
is "segments of no connection leave with egress only" "$(sort "$T/heard" | xargs)" \
	"heard-4 heard-6 ready"
end "$BG"

# --- ax has switched forwarding on for its own apps, not for everybody ---

bg /dev/null unshare -n sleep 600
NEIGHBOUR=$BG
wait_for "[ \"\$(readlink /proc/$NEIGHBOUR/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ] &&
	grep -q sleep /proc/$NEIGHBOUR/comm"
ip link add wan2 type veth peer name wan3 netns /proc/$NEIGHBOUR/ns/net
ip addr add 203.0.113.1/24 dev wan2
ip addr add 2001:db8:2::1/64 dev wan2 nodad
ip link set wan2 up
nsenter -t $NEIGHBOUR -n sh -c "ip link set lo up; ip link set wan3 up
	ip addr add 203.0.113.2/24 dev wan3; ip addr add 2001:db8:2::2/64 dev wan3 nodad
	ip route add default via 203.0.113.1; ip -6 route add default via 2001:db8:2::1"
outside sh -c "ip route add 203.0.113.0/24 via 198.51.100.1
	ip -6 route add 2001:db8:2::/64 via 2001:db8:1::1"
for to in "4 203.0.113.1" "6 2001:db8:2::1"; do # where nobody listens
	ok "a neighbour reaches the host: $to" wait_for "nsenter -t $NEIGHBOUR -n $BIN/tcp connect $to 9 | grep -q ECONNREFUSED"
done
not_forwarded() {
	# shellcheck disable=SC2086 # $to: a family, an address, a port
	for to in "4 198.51.100.2 80" "6 2001:db8:1::2 80" "4 10.77.1.1 7000" "4 10.77.1.5 80"; do
		unlike "what neither comes from nor answers an app is not forwarded$1: $to" \
			"$(timeout 2 nsenter -t $NEIGHBOUR -n "$BIN/tcp" connect $to 2>&1)" \
			"peer=|ECONNREFUSED"
	done
}
not_forwarded ""
# what a firewall does when it starts
tables() { nft list ruleset | sed 's/ flags .*//' | sort; }
all=$(tables)
nft flush ruleset
ok "what somebody flushes is back" wait_for '[ "$(tables)" = "$all" ]'
like "and the log tells of it" "$(cat "$T/$INST.log")" "nf_tables was flushed by somebody"
not_forwarded " then"
like "apps go out then" "$(in_app --egress -- "$BIN/tcp" connect 4 198.51.100.2 80)" "outside you=\[::ffff:198.51.100.1\]"
lines=$(wc -l <"$T/$INST.log")
nft "add table ip others; add chain ip others c; delete table ip others"
for t in $(nft list tables | awk '/inet ax/ { print $3 }'); do nft delete table inet "$t"; done
ok "and what somebody deletes" wait_for '[ "$(tables)" = "$all" ]'
"$PYTHON" -c 'print("add table ip many; add set ip many s { type ipv4_addr; }")
print("add element ip many s {" + ",".join(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}" for i in range(60000)) + "}")' | nft -f -
nft delete table ip many
is "each time is told once" "$(tail -n "+$((lines + 1))" "$T/$INST.log" | grep -c "nf_tables")" \
	"$(tail -n "+$((lines + 1))" "$T/$INST.log" | grep -c "was flushed by somebody")"
end "$NEIGHBOUR"
is "the agent dies, egress goes on" "$(agent_kill9
	nsenter -t "$(child_of "${APPS[0]}")" -n "$BIN/tcp" connect 4 198.51.100.2 80 | sed 's/ .*//')" \
	"peer=198.51.100.2:80"
wait "$AGENT" 2>/dev/null
agent_again
like "and with the next one" "$(in_app --egress -- "$BIN/tcp" connect 4 198.51.100.2 80)" "outside you="
stop_apps
wait_for '[ -z "$(nft list ruleset)" ]'
is "with the last app the table goes" "$(nft list ruleset)" ""
is "and forwarding is as it was" "$(forwarding)" "$before"
leftovers
end "$OUTSIDE"
ip link del wan0 2>/dev/null # (without waiting for its other end)
done_testing
