#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# A router whose lists keep the flows that it forwards: what those inside ask for is answered, errors about it
# and fragments too, and nothing comes in that nobody has asked for, whatever it pretends. Also over new lists, with
# addresses that are translated, and with nothing left for the network stack to do.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/xdp.sh
. "$(dirname "$0")/xdp.sh"
need ip jq nft "$PYTHON"
build_c tcp udp

# outside, by xc0: the peer, and a far host behind it by a link with a smaller MTU; inside, by in0
peer_host
new_netns
FAR_PID=$BG
far() {
	nsenter -t "$FAR_PID" -n "$@"
}
new_netns
IN_PID=$BG
inside() {
	nsenter -t "$IN_PID" -n "$@"
}
far ip link set lo up
peer ip link add far0 type veth peer name eth0 netns "$FAR_PID"
peer ip addr add 203.0.113.1/24 dev far0
peer ip -6 addr add 2001:db8:3::1/64 dev far0 nodad
peer ip link set far0 mtu 1280 up
far ip addr add 203.0.113.2/24 dev eth0
far ip -6 addr add 2001:db8:3::2/64 dev eth0 nodad
far ip link set eth0 mtu 1280 up
far ip route add default via 203.0.113.1 advmss 1460
far ip -6 route add default via 2001:db8:3::1 advmss 1440
inside ip link set lo up
ip link add in0 type veth peer name eth0 netns "$IN_PID"
ip addr add 10.9.0.1/24 dev in0
ip -6 addr add fd09::1/64 dev in0 nodad
ip link set in0 up
inside ip addr add 10.9.0.2/24 dev eth0
inside ip -6 addr add fd09::2/64 dev eth0 nodad
inside ip link set eth0 up
inside ip route add default via 10.9.0.1
inside ip -6 route add default via fd09::1
for v in 4.ip_forward 6.conf.all.forwarding; do
	sysctl -q "net.ipv$v=1"
	peer sysctl -q "net.ipv$v=1"
done
ip route add 203.0.113.0/24 via 198.51.100.2
ip -6 route add 2001:db8:3::/64 via 2001:db8:2::2
peer ip route add 10.9.0.0/24 via 198.51.100.1
peer ip -6 route add fd09::/64 via 2001:db8:2::1

state() {
	timeout 30 nsenter -t "$IN_PID" -n "$PYTHON" "$SRC/state.py" "$@" 2>&1 | tail -n 2
}
# server NAME PEER|FAR|IN ARGUMENT...
server() {
	local out=$T/$1 where=$2_PID

	shift 2
	bg "$out" nsenter -t "${!where}" -n "$PYTHON" "$SRC/state.py" "$@"
	wait_for "grep -q ready $out"
}
server take4 FAR take 203.0.113.2 7000
server take6 FAR take 2001:db8:3::2 7000
server echo4 PEER echo 198.51.100.2 80
server echo6 PEER echo 2001:db8:2::2 80
server dns4 PEER answer 198.51.100.2 53 4000
server dns6 PEER answer 2001:db8:2::2 53 4000
server web IN echo 10.9.0.2 8080
bg "$T/inudp" nsenter -t "$IN_PID" -n "$BIN/udp" serve 4 0.0.0.0 9053 inside
bg "$T/in6" nsenter -t "$IN_PID" -n "$BIN/tcp" listen 6 :: 8081 inside
wait_for "grep -q bound $T/inudp && grep -q listening $T/in6"

# works LIST: all that those inside ask for
works() {
	local to

	for to in 198.51.100.2 2001:db8:2::2; do
		is "$1: a connection to $to" "$(state talk "$to" 80 "$T/go")" "one"$'\n'"two"
		is "$1: an answer in fragments from $to" "$(state ask "$to" 53)" 4000
		is "$1: ping $to" "$(state ping "$to" 0)" pong
	done
	for to in 203.0.113.2 2001:db8:3::2; do
		is "$1: much to $to, by a path with a smaller MTU" "$(state give "$to" 7000 300000)" 300000
		inside ip route flush cache
		inside ip -6 route flush cache
	done
	like "$1: a port that is closed says so" "$(state ask 198.51.100.2 54)" ConnectionRefusedError
	like "$1: and one of TCP" "$(state talk 198.51.100.2 81 "$T/go")" ConnectionRefusedError
}
from_peer() {
	timeout 2 nsenter -t "$PEER_PID" -n "$@" 2>&1
}
from_inside() {
	timeout 2 nsenter -t "$IN_PID" -n "$@" 2>&1
}
shut() {
	is "$1: unasked TCP is dropped" "$(from_peer "$BIN/tcp" connect 4 10.9.0.2 8080)$(
		from_peer "$BIN/tcp" connect 6 fd09::2 8081
	)" ""
	unlike "$1: unasked UDP is dropped" "$(from_peer "$BIN/udp" ask connected 4 10.9.0.2 9053)" "from="
	unlike "$1: ping from outside is dropped" "$(from_peer "$PYTHON" "$SRC/state.py" ping 10.9.0.2 0)" pong
}
touch "$T/go"

# --- a list for each interface ---

cat >"$T/out.yaml" <<'E'
track: own
default: drop
rules:
  - {name: known, state: [established, related], action: pass}
  - {name: broken, state: invalid, action: drop}
E
cat >"$T/in.yaml" <<'E'
track: own
default: drop
rules:
  - {name: known, state: [established, related], action: pass}
  - {name: begins, state: new, action: pass}
E
ok "a list outside" xdp load xc0 --rules "$T/out.yaml"
ok "a list inside" xdp load in0 --rules "$T/in.yaml"
is "status: flows are kept" "$(xdp status xc0 -o json | jq -s -c 'flatten | .[0] | [.flows, .conntrack]')" '[true,false]'
like "status: in words" "$(xdp status xc0)" "states +of sockets and of flows that ax keeps"
like "the list is shown with the word" "$(xdp rule list xc0 -o yaml)" "track: own"
works "two lists"
shut "two lists"

# --- what pretends ---

bg "$T/talk" nsenter -t "$IN_PID" -n "$PYTHON" "$SRC/state.py" talk 198.51.100.2 80 "$T/go2"
wait_for "grep -q one $T/talk"
before=$(count known)
for flags in ack rst; do
	peer "$PYTHON" "$SRC/packets.py" send eth0 proto=tcp flags=$flags n=500 src=198.51.100.77 dst=10.9.0.2 \
		sport=80 dport=8080 smac=$PEER_MAC dmac=$HERE_MAC
done
wait_for '[ "$(count broken)" -ge 300 ]' # some get lost on a busy machine
ok "spoofed segments are invalid" test "$(count broken)" -ge 300
is "and of no flow" "$(count known)" "$before"
inside "$PYTHON" "$SRC/packets.py" send eth0 proto=tcp flags=syn n=2000 src=10.9.0.77 dst=198.51.100.2 \
	sport=1024 dport=80 smac="$(inside ip -j link show eth0 | jq -r '.[0].address')" \
	dmac="$(ip -j link show in0 | jq -r '.[0].address')"

# --- new lists ---

sed 's/broken/other/' "$T/out.yaml" >"$T/out2.yaml"
ok "another list outside" xdp apply xc0 --rules "$T/out2.yaml"
touch "$T/go2"
wait_for "grep -q two $T/talk"
ok "a connection goes on, after a flood and by another list" grep -q two "$T/talk"

# --- one that lets connections in ---

cat >"$T/server.yaml" <<'E'
track: own
default: drop
rules:
  - {name: known, state: [established, related], action: pass}
  - {name: web, proto: tcp, dport: [8080, 8081], state: new, action: pass}
E
ok "a list with a server" xdp apply xc0 --rules "$T/server.yaml"
like "who asks it is let in, IPv4" "$(from_peer "$PYTHON" "$SRC/state.py" talk 10.9.0.2 8080 "$T/go")" two
like "who asks it is let in, IPv6" "$(from_peer "$BIN/tcp" connect 6 fd09::2 8081)" "^peer="
unlike "nothing else is" "$(from_peer "$BIN/udp" ask connected 4 10.9.0.2 9053)" "from="

# --- routed without the network stack ---

for i in xc0 in0; do
	sed "s/established, related\], action: pass/established, related], action: route/" \
		"$T/$([ $i = xc0 ] && echo out || echo in).yaml" >"$T/route.yaml"
	ok "a list that routes, on $i" xdp apply $i --rules "$T/route.yaml" --force
done
works "routed"
shut "routed"
ok "off" xdp unload in0

# --- both directions of one interface, and addresses that are translated ---

nft -f - <<'E' || bail_out "nft takes no masquerade"
table inet nat { chain post { type nat hook postrouting priority 100; oifname "xc0" masquerade; }; }
E
peer ip route del 10.9.0.0/24
peer ip -6 route del fd09::/64
cat >"$T/leaves.yaml" <<'E'
direction: egress
track: own
default: drop
rules:
  - {name: all, state: [new, established, related], action: pass}
E
ok "a list outside" xdp apply xc0 --rules "$T/out.yaml"
is "what begins where no list sees it is not answered" "$(from_inside "$BIN/tcp" connect 4 198.51.100.2 80)" ""
ok "a list for what leaves there" xdp load xc0 --rules "$T/leaves.yaml"
works "translated"
is "this host's own connections" "$("$PYTHON" "$SRC/state.py" talk 198.51.100.2 80 "$T/go")" "one"$'\n'"two"
is "its pings are answered" "$("$PYTHON" "$SRC/state.py" ping 198.51.100.2 0)" pong
bg "$T/udp" nsenter -t "$PEER_PID" -n "$BIN/udp" serve 4 198.51.100.2 7053
wait_for "grep -q bound $T/udp"
like "and what it asks from sockets that are not connected" "$("$BIN/udp" ask sendto 4 198.51.100.2 7053)" "from="
like "explain: what leaves" "$(xdp explain xc0 --direction egress --packet 'tcp 198.51.100.1:5 > 198.51.100.2:80')" \
	$'state +new'
nft delete table inet nat
ok "off, too" xdp unload xc0
ok "both" xdp unload xc0 --direction egress
ip link del in0
sysctl -q net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
end "$FAR_PID"
end "$IN_PID"
xdp_done
