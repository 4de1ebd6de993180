#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# A rule list as a filter of real traffic: what passes, what does not, what is counted; sets, rules
# and lists that change while traffic flows; what a list that denies everything lets through.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq curl nstat ethtool "$PYTHON"

peer_host
known_neighbours
mkdir "$T/www"
echo hello >"$T/www/index.html"
for port in 8080 8081; do
	bg "$T/http" "$PYTHON" -m http.server -d "$T/www" --bind :: $port
done
for at in "0.0.0.0 7000" ":: 7006" "0.0.0.0 7001"; do
	# shellcheck disable=SC2086
	bg "$T/echo" "$PYTHON" "$SRC/packets.py" serve $at
done
wait_for 'ss -Hltn "sport = :8081" | grep -q . && ss -Hlun "sport = :7001" | grep -q .'

web() { # PORT [ADDRESS]
	peer curl -gsS --connect-timeout 5 -m 9 "http://${2:-198.51.100.1}:$1/" 2>&1
}
# closed PORT [ADDRESS]: what curl says of one that does not answer
closed() {
	peer curl -gsS --connect-timeout 1.2 -m 3 "http://${2:-198.51.100.1}:$1/" 2>&1
}
from_peer() {
	peer "$PYTHON" "$SRC/packets.py" "$@"
}
drops() {
	ethtool -S xc0 | awk '/rx_queue_[0-9]+_xdp_drops/ { n += $2 } END { print n }'
}
# counted RULE N: waits until the rule has so many packets
counted() {
	wait_for "[ \$(count '$1') = $2 ]"
	is "$1 counts $2" "$(count "$1")" "$2"
}

# --- a block list ---

cat >"$T/block.yaml" <<'EOF'
default: pass
sets:
  bad: {file: bad.txt}
  closed: {ports: [7001, 8081-8090]}
rules:
  - {name: bad, src: "@bad", action: drop}
  - {name: web, proto: tcp, dport: "@closed", action: drop}
  - {name: udp, proto: udp, dport: "@closed", action: drop}
  - {name: udp6, src: "2001:db8:2::/64", proto: udp, dport: 7006, action: drop}
  - {name: ping, icmp: echo-request, action: drop}
  - {name: tag, vlan: 100-109, action: drop}
  - {name: tag-pass, vlan: 200, action: pass}
EOF
printf '203.0.113.0/24 # documentation\n2001:db8:bad::/48\n' >"$T/bad.txt"
ok "load a block list" xdp load xc0 --rules "$T/block.yaml"
is "an open port" "$(web 8080)" hello
is "the same over IPv6" "$(web 8080 '[2001:db8:2::1]')" hello
like "a closed port does not answer" "$(closed 8081)" "[Tt]imed out|Timeout"
like "nor over IPv6" "$(closed 8081 '[2001:db8:2::1]')" "[Tt]imed out|Timeout"
ok "its SYNs are counted" test "$(count web)" -ge 2
is "UDP" "$(from_peer ask 198.51.100.1 7000 one)" "one from 198.51.100.1 7000"
like "UDP to a closed port" "$(from_peer ask 198.51.100.1 7001 one)" "no answer"
counted udp 1
like "UDP over IPv6 by prefix" "$(from_peer ask 2001:db8:2::1 7006 one)" "no answer"
counted udp6 1
is "ping is dropped" "$(from_peer ping 198.51.100.1)" 0
counted ping 1
is "ping over IPv6 is not" "$(from_peer ping 2001:db8:2::1 2)" 2
before=$(drops)
from_peer send eth0 proto=udp vlan=105 dport=7000 n=5
from_peer send eth0 proto=udp vlan=200 dport=7000 n=3
from_peer send eth0 proto=udp dport=7000 src=203.0.113.77 n=4
from_peer send eth0 proto=udp dport=7006 src=2001:db8:bad::1 dst=2001:db8:2::1 n=2
counted tag 5
counted tag-pass 3
counted bad 6
is "what was dropped is what the interface dropped" $(($(drops) - before)) 11
is "bytes are counted with the Ethernet header" "$(count tag-pass bytes)" $((3 * (14 + 4 + 20 + 8 + 18)))

# --- sets change while traffic flows ---

bg "$T/flow" nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/packets.py" flood eth0 30 \
	src=192.0.2.5 dport=7777
flow=$BG
# flows RULE WHETHER: packets go on to be counted there, or do not any more
flows() {
	local a
	a=$(count "$1")
	wait_for "[ \$(count '$1') -gt $((a + 10)) ]"
}
# The kernel may say something of its own meanwhile (neighbour discovery), but not as much.
stands() {
	local a
	a=$(count "$1")
	sleep 0.3
	[ $(($(count "$1") - a)) -lt 5 ]
}
flows default || diag "no traffic"
ok "set add" xdp set add bad 192.0.2.0/24
ok "it catches packets at once" flows bad
ok "which are not counted elsewhere" stands default
ok "set del" xdp set del bad 192.0.2.0/24
ok "and lets them through at once" stands bad
ok "to the default" flows default
seq -f '198.18.%.0f.1' 0 255 >"$T/many"
echo 192.0.2.5 >>"$T/many"
is "set replace by a file" "$(xdp set replace bad --file "$T/many")" "xc0: set bad has 257 prefixes"
ok "it catches packets" flows bad
is "the set's counter went on" "$(($(count bad) > 6))" 1

# --- a large set: an element more is no new list ---

generation() {
	xdp status xc0 | sed -n 's/.*generation \([0-9]*\).*/\1/p'
}
awk 'BEGIN { for (i = 1; i < 200; i++) for (j = 0; j < 200; j++) print i "." j ".77.1" }' >"$T/large"
ok "a large set" xdp set replace bad --file "$T/large"
before=$(generation)
is "an element more" "$(xdp set add bad 192.0.2.4/30)" "xc0: set bad has 39801 prefixes"
is "is the same list" "$(generation)" "$before"
ok "which catches packets at once" flows bad
like "and is explained" "$(xdp explain xc0 --packet 'udp 192.0.2.5:1 > 198.51.100.1:9')" bad
like "and listed" "$(xdp set list xc0 bad | sort)" '192\.0\.2\.4/30'
is "once" "$(xdp set add bad 192.0.2.4/30)" "xc0: set bad has 39801 prefixes"
is "one less" "$(xdp set del bad 192.0.2.4/30)" "xc0: set bad has 39800 prefixes"
ok "lets them through at once" flows default
is "what was not there" "$(xdp set del bad 192.0.2.4/30)" \
	"xc0: set bad has 39800 prefixes (1 of those to remove was not there)"
is "one of IPv6 and others" "$(xdp set add bad 2001:db8:bad::/48 192.0.2.4/30 192.0.2.5)" \
	"xc0: set bad has 39803 prefixes"
ok "catch packets at once" flows bad
ok "one goes that is in another" xdp set del bad 192.0.2.5
ok "which still catches packets" flows bad
is "all of this is the same list" "$(generation)" "$before"
sed '1s/.*/192.0.2.4/' "$T/large" >"$T/nearly"
is "nearly the same by a file" "$(xdp set replace bad --file "$T/nearly")" \
	"xc0: set bad has 39800 prefixes"
is "is the same list, too" "$(generation)" "$before"
ok "which lets packets through at once" flows default
is "a wide one" "$(xdp set add bad 0.0.0.0/0)" "xc0: set bad has 39801 prefixes"
is "is a new list" "$(generation)" $((before + 1))
is "the former one again" "$(xdp set replace bad --file "$T/many")" "xc0: set bad has 257 prefixes"
ok "catches packets" flows bad

# --- rules change while traffic flows ---

ok "rule add in front" xdp rule add xc0 --at 1 name first proto udp dport 7777 action pass
ok "takes over" flows first
ok "from the next one" stands bad
ok "rule move" xdp rule move xc0 first --after bad
ok "gives back" flows bad
ok "and keeps its count" stands first
ok "rule del" xdp rule del xc0 bad
ok "leaves it to the other one" flows first
ok "one more" xdp rule add xc0 --before first name port sport 40000 proto udp action drop
ok "which is asked before" flows port
end "$flow"
sum() {
	xdp stats xc0 -o json | jq '[.rules[].packets] | add'
}
a=$(sum)
sleep 0.1
ok "nothing else moved meanwhile" test $(($(sum) - a)) -lt 5

# --- an allow list ---

cat >"$T/allow.yaml" <<'EOF'
default: drop
sets:
  friends: [198.51.100.0/28, "2001:db8:2::/64"]
rules:
  - {name: web, src: "@friends", proto: tcp, dport: 8080, action: pass}
  - {name: echo, proto: udp, dport: 7000, action: pass}
  - {name: tagged, vlan: 300, proto: udp, dport: 7000, action: drop}
EOF
ok "apply an allow list" xdp apply xc0 --rules "$T/allow.yaml"
is "what is allowed" "$(web 8080)" hello
is "over IPv6" "$(web 8080 '[2001:db8:2::1]')" hello
is "UDP, too" "$(from_peer ask 198.51.100.1 7000 two)" "two from 198.51.100.1 7000"
like "another port is not" "$(closed 8081)" "[Tt]imed out|Timeout"
is "nor ping" "$(from_peer ping 198.51.100.1)" 0
is "nor ping over IPv6" "$(from_peer ping 2001:db8:2::1)" 0
dropped=$(count default)
from_peer send eth0 proto=tcp dport=8080 src=198.51.100.99 n=3
counted default $((dropped + 3))
from_peer send eth0 proto=udp dport=7000 vlan=300 n=2
is "the first rule that matches decides" "$(count tagged)" 0

# --- what a host needs goes through a list that denies everything ---

cat >"$T/list.yaml" <<'EOF'
default: drop
rules:
  - {name: ping6, icmp6: "echo-request,echo-reply", action: pass}
EOF
ok "deny everything but ping6" xdp apply xc0 --rules "$T/list.yaml"
ip neigh flush dev xc0
peer ip neigh flush dev eth0
for n in $(ip neigh show dev xc0 nud permanent | awk '{print $1}'); do ip neigh del "$n" dev xc0; done
for n in $(peer ip neigh show dev eth0 nud permanent | awk '{print $1}'); do
	peer ip neigh del "$n" dev eth0
done
is "ping6 finds its neighbour" "$(from_peer ping 2001:db8:2::1 2)" 2
is "in both directions" "$(packets ping 2001:db8:2::2 2)" 2
ok "neighbour discovery is counted" test "$(reason neighbour)" -ge 1
from_peer send eth0 proto=arp
wait_for '[ "$(reason arp)" -ge 1 ]'
ok "so is ARP" test "$(reason arp)" -ge 1
like "a neighbour is found by ARP" "$(
	from_peer udp 198.51.100.1 9 1
	sleep 0.3
	peer ip neigh show 198.51.100.1 dev eth0)" "$HERE_MAC (REACHABLE|STALE|DELAY)"

# --- path MTU discovery: here --- peer, a router --- server, behind a narrow link ---

new_netns
SERVER=$BG
server() {
	nsenter -t "$SERVER" -n "$@"
}
peer ip link add narrow type veth peer name eth0 netns "$SERVER"
peer sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
peer ip addr add 10.9.0.1/24 dev narrow
peer ip -6 addr add fd09::1/64 dev narrow nodad
peer ip link set narrow mtu 1300 up
server ip link set lo up
server ip addr add 10.9.0.2/24 dev eth0
server ip -6 addr add fd09::2/64 dev eth0 nodad
server ip link set eth0 up
server ip route add default via 10.9.0.1
server ip -6 route add default via fd09::1
ip route add 10.9.0.0/24 via 198.51.100.2
ip -6 route add fd09::/64 via 2001:db8:2::2
cat >"$T/sink.py" <<'EOF'
import http.server, socket
class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        n = len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d" % n)
class Server(http.server.HTTPServer):
    address_family = socket.AF_INET6
Server(("::", 8000), Sink).serve_forever()
EOF
bg "$T/sink" nsenter -t "$SERVER" -n "$PYTHON" "$T/sink.py"
wait_for "nsenter -t $SERVER -n ss -Hltn 'sport = :8000' | grep -q ."
cat >"$T/list.yaml" <<'EOF'
default: drop
rules:
  - {name: answers, src: ["10.9.0.2", "fd09::2"], proto: tcp, sport: 8000, action: pass}
EOF
ok "allow one flow only" xdp apply xc0 --rules "$T/list.yaml"
head -c 300000 /dev/zero >"$T/upload"
upload() {
	curl -gsS -m 8 -H Expect: --data-binary @"$T/upload" "http://$1:8000/" 2>&1
}
errors=$(reason icmp-error)
is "a long upload over the narrow link" "$(upload 10.9.0.2)" 300000
is "the path's MTU was learnt" "$(ip route get 10.9.0.2 | grep -o 'mtu [0-9]*')" "mtu 1300"
is "over IPv6" "$(upload '[fd09::2]')" 300000
is "there, too" "$(ip -6 route get fd09::2 | grep -o 'mtu [0-9]*')" "mtu 1300"
ok "by ICMP errors about the flow" test "$(reason icmp-error)" -ge $((errors + 2))
errors=$(reason icmp-error) dropped=$(count default)
ip route flush cache
packets udp 10.9.0.2 7777 1 "$(head -c 1400 /dev/zero | tr '\0' x)"
wait_for "[ \$(count default) -gt $dropped ]"
is "one about another flow is dropped" "$(reason icmp-error)" "$errors"
ok "and counts under the default" test "$(count default)" -gt "$dropped"

end "$SERVER"
ok "unload" xdp unload xc0
is "all is open again" "$(web 8081)" hello
xdp_done
