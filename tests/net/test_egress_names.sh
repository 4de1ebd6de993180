#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Where apps may go outside by names of the DNS: learnt from the answers that they get, for as long as
# they hold; nobody else's names are asked for; what names cannot do; agents that are killed.
. "$(dirname "$0")/lib.sh"
need nft python3 dig

. "$(dirname "$0")/outside.sh"
ip addr add 198.51.100.1/24 dev wan0
ip addr add 2001:db8:1::1/64 dev wan0 nodad
ip link set wan0 up
for i in 2 3 4 5 6; do
	outside ip addr add 198.51.100.$i/24 dev wan1
	outside ip addr add 2001:db8:1::$i/64 dev wan1 nodad
done
outside ip link set wan1 up
bg "$T/echo" nsenter -t "$OUTSIDE" -n "$PYTHON" -c '
import socket, threading
def serve(c):
    while True:
        data = c.recv(100)
        if not data:
            return
        c.sendall(data)
s = socket.create_server(("::", 443), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
print("listening", flush=True)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()'
bg "$T/names.out" "$PYTHON" "$SRC/names.py" 127.0.0.53 5300 "$T/names.log" 1 \
	www.good.test=198.51.100.2 www.good.test=2001:db8:1::2 \
	deep.er.good.test=198.51.100.3 good.test=198.51.100.4 \
	alias.good.test=edge.cdn.test edge.cdn.test=198.51.100.5 \
	evil.test=198.51.100.4 dot.good.test.evil.test=198.51.100.4 \
	loop.good.test=127.0.0.1 loop.good.test=::1 host.good.test=198.51.100.1 \
	late.good.test=late.cdn.test late.cdn.test=198.51.100.6 link.good.test=169.254.169.254 \
	only.good.test=198.51.100.5
wait_for "grep -q ready $T/names.out && grep -q listening $T/echo"

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
  dns: {upstreams: ["127.0.0.53:5300"], keep: 60m}
policy:
  rules:
    - allow: {from: {app: ruled}, to: ["*.good.test"], port: 443, name: by-name}
    - deny: {from: {app: fenced}, to: evil.test, name: no-evil}
  egress:
    - {from: {tier: back}, to: ["www.good.test:443"], name: back}
EOF

# to_name OPTIONS... -- NAME PORT [FAMILY]
to_name() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	in_app "${options[@]}" -- "$PYTHON" "$SRC/to_name.py" "$@" 2>&1
}
bg "$T/verdicts" "$AX" --instance "$INST" events --verdicts -o json
VERDICTS=$BG
# asked WHAT FILTER NAME: by which name somebody asked who was refused
asked() {
	wait_for "[ \"\$(jq -r 'select($2) | .asked' <$T/verdicts | sort -u)\" = $3 ]"
	is "$1" "$(jq -r "select($2) | .asked" <"$T/verdicts" | sort -u)" "$3"
}
hits() {
	ax get policy -o json |
		jq -r --arg t "$1" '[.[] | select(.text == $t or .name == $t) | .hits] | add'
}

for mode in private host; do
	listed=(--net "$mode" --name "n-$mode" --egress="*.good.test:443/tcp,[2001:db8:9::/48]:443")
	is "$mode: a name of the list" "$(to_name "${listed[@]}" -- www.good.test 443)" \
		"connected 198.51.100.2"
	is "$mode: IPv6" "$(to_name "${listed[@]}" -- www.good.test 443 6)" "connected 2001:db8:1::2"
	is "$mode: in other letters, with a dot" "$(to_name "${listed[@]}" -- WWW.Good.TEST. 443)" \
		"connected 198.51.100.2"
	is "$mode: a star is for names of any depth" "$(to_name "${listed[@]}" -- deep.er.good.test 443)" \
		"connected 198.51.100.3"
	is "$mode: by a CNAME to a name that the list does not have" \
		"$(to_name "${listed[@]}" -- alias.good.test 443)" "connected 198.51.100.5"
	is "$mode: that one's own name is not asked for" \
		"$(to_name "${listed[@]}" -- edge.cdn.test 443)" "no name"
	is "$mode: another port" "$(to_name "${listed[@]}" -- www.good.test 80)" EACCES
	asked "$mode: an event of it has the name" ".app == \"n-$mode\" and .remote_port == 80" www.good.test
	for name in good.test evil.test dot.good.test.evil.test xgood.test; do
		is "$mode: a name that the list does not have: $name" \
			"$(to_name "${listed[@]}" -- $name 443)" "no name"
	done
	is "$mode: an address without its name" "$(to_name "${listed[@]}" -- 198.51.100.4 443)" EACCES
	is "$mode: the host by a name" "$(to_name "${listed[@]}" -- host.good.test 443)" EACCES
	is "$mode: link-local by a name" "$(to_name "${listed[@]}" -- link.good.test 443)" EACCES
	is "$mode: loopback is the app's own, or the host's, as ever" \
		"$(to_name "${listed[@]}" -- loop.good.test 444)" ECONNREFUSED
	is "$mode: what one has learnt is no other's" "$(to_name --net $mode --egress=www.bad.test -- \
		198.51.100.2 443)" EACCES
	is "$mode: by labels" "$(to_name --net $mode --labels tier=back -- www.good.test 443)" \
		"connected 198.51.100.2"
	is "$mode: by labels, another name" \
		"$(to_name --net $mode --labels tier=back -- deep.er.good.test 443)" "no name"
	is "$mode: by a rule" "$(to_name --net $mode --labels app=ruled -- deep.er.good.test 443)" \
		"connected 198.51.100.3"
	is "$mode: a name that a rule denies" \
		"$(to_name --net $mode --labels app=fenced --egress -- evil.test 443)" "no name"
	is "$mode: and others not" \
		"$(to_name --net $mode --labels app=fenced --egress -- good.test 443)" \
		"connected 198.51.100.4"
	is "$mode: all names, and no address without one" \
		"$(to_name --net $mode --egress='*' -- good.test 443) $(to_name --net $mode --egress='*' \
			-- 2001:db8:1::5 443 6)" "connected 198.51.100.4 EACCES"
	audited=(--net "$mode" --name audited --egress-audit --egress="www.good.test")
	is "$mode: an audit lets all names be" "$(to_name "${audited[@]}" -- evil.test 443)" \
		"connected 198.51.100.4"
done
asked "what an audit would have refused, by its name" '.app == "audited"' evil.test
like "connections by name are counted" "$(hits by-name)" "^[2-9]"
like "what an audit would have refused, too" "$(hits "egress of audited -> outside")" "^[1-9]"
unlike "no name was asked for that no list has" "$(cat "$T/names.log")" "edge.cdn|dot.good|xgood"

# what is explained of a name is what its addresses get
run_app --name asker --egress="*.good.test:443" -- sleep 1000
launched asker
like "a name that nobody has asked for is explained by its name" \
	"$(ax policy explain asker other.good.test:443)" "^asker .* -> other.good.test/tcp: allowed"
like "and that this is all that is known" "$(ax policy explain asker other.good.test:443)" "by its name alone"
is "one that is asked for" "$(ax exec asker "$PYTHON" "$SRC/to_name.py" www.good.test 443 2>&1)" \
	"connected 198.51.100.2"
like "by its address" "$(ax policy explain asker www.good.test:443)" "198[.]51[.]100[.]2:443: allowed at connect by rule"
fails "at another port" ax policy explain asker www.good.test:80
like "which is said of the address, too" "$(ax policy explain asker www.good.test:80)" \
	"198[.]51[.]100[.]2:80: refused [(]EACCES[)]"

# a refused name is an event
bg "$T/events.text" "$AX" --instance "$INST" events
text=$BG
bg "$T/events" "$AX" --instance "$INST" events -o json
wait_for "ax run --name poked -- true; grep -q poked $T/events && grep -q poked $T/events.text"
to_name --name asks --egress=www.good.test -- evil.test 443 >/dev/null
wait_for "grep -q name-refused $T/events"
is "a name that is refused is an event" \
	"$(grep name-refused "$T/events" | jq -r '"\(.app) \(.asked)"' | sort -u)" "asks evil.test"
wait_for "grep -q name-refused $T/events.text"
like "with the name, in words, too" "$(grep -m 1 name-refused "$T/events.text")" "name-refused +asks .* asked for evil[.]test"
end "$BG"
end "$text"

# Who asks from ports of its own is known by a list of them, where each app has a share: one that has
# filled its own is not taken for this host, which may ask for every name.
asked=$(grep -c evil.test "$T/names.log")
run_app --net host --name full --egress=www.good.test -- prlimit --nofile=20000 "$PYTHON" -c '
import socket, struct
QUERY = b"\0\7\1\0\0\1\0\0\0\0\0\0\4evil\4test\0\0\1\0\1"
kept = []
def ask(kind, address):
    six = ":" in address
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, kind)
    kept.append(s)
    s.settimeout(5)
    s.bind((address, 0))
    s.connect(("2001:db8::99" if six else "192.0.2.99", 53))
    return s
def status(kind, address):
    tcp = kind == socket.SOCK_STREAM
    try:
        s = ask(kind, address)
        s.sendall((struct.pack(">H", len(QUERY)) if tcp else b"") + QUERY)
        return s.recv(512)[5 if tcp else 3] & 15
    except OSError as e:
        return e.strerror
def all():
    return [status(kind, address) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)
            for address in ("0.0.0.0", "::", "127.0.0.1")]
print("before", *all(), flush=True)
try:
    while len(kept) < 9000:
        ask(socket.SOCK_DGRAM, "127.0.0.1")
except OSError as e:
    print("full", e.strerror)
print("after", *all(), flush=True)'
wait_for -t 30 "grep -q after $OUT"
is "an app with ports of its own is told that a name does not exist" \
	"$(grep before "$OUT")" "before 3 3 3 3 3 3"
room="No buffer space available"
is "and with more of them than it may have, it may not ask" "$(grep -v before "$OUT" | xargs)" \
	"full $room after $room $room $room 3 $room $room"
is "and nobody outside is asked" "$(grep -c evil.test "$T/names.log")" "$asked"

# Nor is one that closes its socket before the agent reads what it has sent.
asked=$(grep -c evil.test "$T/names.log")
run_app --net host --name hasty --egress=www.good.test -- "$PYTHON" -c '
import socket, struct
QUERY = b"\1\0\0\1\0\0\0\0\0\0\4evil\4test\0\0\1\0\1"
for i in range(300):
    tcp = i % 10 == 0
    kind, address, to = (socket.SOCK_DGRAM, "0.0.0.0", "192.0.2.99")
    if tcp:
        kind, address, to = (socket.SOCK_STREAM, "::", "2001:db8::99")
    s = socket.socket(socket.AF_INET6 if tcp else socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.bind((address, 0))
    s.connect((to, 53))
    for j in range(4):
        query = struct.pack(">H", j) + QUERY
        s.send((struct.pack(">H", len(query)) if tcp else b"") + query)
    s.close()
print("sent", flush=True)'
wait_for "grep -q sent $OUT"
is "the agent is there" "$(to_name --net host --egress=www.good.test -- www.good.test 443)" "connected 198.51.100.2"
is "who has gone before the agent reads asks nobody outside" "$(grep -c evil.test "$T/names.log")" "$asked"

# the agent is killed: what was learnt stays
run_app --name kept --egress="*.good.test:443" -- sleep 300
launched kept
in_kept() {
	ax exec kept "$PYTHON" "$SRC/to_name.py" "$@" 2>&1
}
is "learnt by one agent" "$(in_kept www.good.test 443)" "connected 198.51.100.2"
is "and another" "$(in_kept only.good.test 443)" "connected 198.51.100.5"
is "another port of it" "$(in_kept only.good.test 80)" EACCES
like "of which is told in words" "$(ax events --verdicts -d 2s)" \
	"refused +kept .* -> 198.51.100.5:80/tcp \(only.good.test\)"
agent_kill9
end "$VERDICTS"
sed -i 's/keep: 60m/keep: 1s/' "$T/$INST.yaml"
agent_again
is "it holds with the next" "$(in_kept 198.51.100.2 443)" "connected 198.51.100.2"
is "a name that it has not learnt" "$(in_kept 198.51.100.4 443)" EACCES
is "another port of what it had asked the last one for" "$(in_kept 198.51.100.5 80)" EACCES
like "the next agent knows what it was refused by its name" "$(ax events --verdicts -o json -d 2s |
	jq -r 'select(.app == "kept" and .remote_port == 80) | .asked')" "^only.good.test$"
sed -i 's/keep: 1s/keep: 1s, forward: all/' "$T/$INST.yaml"
ok "who may not leave may ask for names" ax config apply "$T/$INST.yaml"
: >"$T/verdicts"
bg "$T/verdicts" "$AX" --instance "$INST" events --verdicts -o json
is "and is refused the address" "$(to_name --name inmate -- www.good.test 443)" ENETUNREACH
asked "of which is told by its name" '.app == "inmate"' www.good.test
end "$BG"
is "also when it has ended" "$(ax events --verdicts -o json -d 1s |
	jq -r 'select(.app == "inmate") | .asked' | sort -u)" www.good.test
ok "another list of rules" ax config apply <(sed 's/name: by-name/name: by-names/' "$T/$INST.yaml")
is "leaves what was learnt" "$(in_kept 198.51.100.2 443)" "connected 198.51.100.2"

# time: what stands stays
mkfifo "$T/orders"
run_app --name holds --egress="late.good.test:443" -- \
	"$PYTHON" "$SRC/to_name.py" late.good.test 443 4 hold "$T/orders"
HELD=$OUT
wait_for "grep -q connected $HELD"
launched holds
wait_for "[ \"\$(ax exec holds $PYTHON $SRC/to_name.py 198.51.100.6 443 2>&1)\" = EACCES ]"
is "when its time is over, an address is no name's any more" \
	"$(ax exec holds "$PYTHON" "$SRC/to_name.py" 198.51.100.6 443 2>&1)" EACCES
echo still >"$T/orders"
wait_for "grep -q '^got' $HELD"
is "but connections that stand stay" "$(sed -n 2p "$HELD")" "got still"
is "and it may be asked for again" \
	"$(ax exec holds "$PYTHON" "$SRC/to_name.py" late.good.test 443 2>&1)" "connected 198.51.100.6"
stop_apps
leftovers
end "$OUTSIDE"
ip link del wan0 2>/dev/null # (without waiting for its other end)
done_testing
