#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# A list of one rule is a host's whole firewall: its own connections, answers to its questions, their
# later fragments and the errors about them come in, and nothing that nobody has asked for. And what
# connection tracking knows besides: sockets that are not connected, and apps behind a masquerade.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/xdp.sh
. "$(dirname "$0")/xdp.sh"
need ip jq nft "$PYTHON"
build_c tcp udp
# a rule that wants it has its module loaded, before the first list comes
nft -f - <<'E' || bail_out "no rule about connection tracking is taken"
table inet track { chain out { ct state new counter; }; }
delete table inet track
E

peer_host
# behind the peer, by a link with a smaller MTU: the far host, which does not say how small it is
new_netns
FAR_PID=$BG
far() {
	nsenter -t "$FAR_PID" -n "$@"
}
far ip link set lo up
peer ip link add far0 type veth peer name eth0 netns "$FAR_PID"
peer ip addr add 203.0.113.1/24 dev far0
peer ip -6 addr add 2001:db8:3::1/64 dev far0 nodad
peer ip link set far0 mtu 1280 up
far ip addr add 203.0.113.2/24 dev eth0
far ip -6 addr add 2001:db8:3::2/64 dev eth0 nodad
far ip link set eth0 mtu 1280 up
far ip route add 198.51.100.0/24 via 203.0.113.1 advmss 1460
far ip -6 route add 2001:db8:2::/64 via 2001:db8:3::1 advmss 1440
peer sysctl -q net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip route add 203.0.113.0/24 via 198.51.100.2
ip -6 route add 2001:db8:3::/64 via 2001:db8:2::2

state() {
	timeout 30 "$PYTHON" "$SRC/state.py" "$@"
}
# server NAME PEER|FAR ARGUMENT...
server() {
	local out=$T/$1 where=$2_PID

	shift 2
	bg "$out" nsenter -t "${!where}" -n "$PYTHON" "$SRC/state.py" "$@"
	wait_for "grep -q ready $out"
}
server take4 FAR take 203.0.113.2 7000
server take6 FAR take 2001:db8:3::2 7000
server take PEER take 198.51.100.2 7001
server echo4 PEER echo 198.51.100.2 80
server echo6 PEER echo 2001:db8:2::2 80
server dns4 PEER answer 198.51.100.2 53 4000
server dns6 PEER answer 2001:db8:2::2 53 4000
bg "$T/udp" nsenter -t "$PEER_PID" -n "$BIN/udp" serve 4 198.51.100.2 7053
bg "$T/here" "$BIN/tcp" listen 6 :: 8080 here
bg "$T/hereudp" "$BIN/udp" serve 4 0.0.0.0 9053 here
wait_for "grep -q bound $T/udp && grep -q listening $T/here && grep -q bound $T/hereudp"
from_peer() {
	timeout 2 nsenter -t "$PEER_PID" -n "$@" 2>&1
}
# conntrack_is_asked LIST: whether the list asks connection tracking, where this kernel lets programs ask, which its
# own types say: ax goes without when the verifier refuses the list that asks.
conntrack_is_asked() {
	local asked
	asked=$(xdp status xc0 -o json | jq -s 'flatten | .[0].conntrack')
	if [ -e /sys/module/nf_conntrack ] &&
		grep -qsaF bpf_xdp_ct_lookup /sys/kernel/btf/vmlinux /sys/kernel/btf/nf_conntrack; then
		is "$1: connection tracking is asked" "$asked" true
		return 0
	fi
	is "$1: connection tracking cannot be asked" "$asked" false
	return 1
}
refused() {
	is "unasked TCP $1" "$(from_peer "$BIN/tcp" connect 4 198.51.100.1 8080)$(
		from_peer "$BIN/tcp" connect 6 2001:db8:2::1 8080
	)" ""
	unlike "unasked UDP $1" "$(from_peer "$BIN/udp" ask connected 4 198.51.100.1 9053)" "from="
}

# --- the firewall ---

cat >"$T/rules.yaml" <<'E'
default: drop
rules:
  - {name: own, state: established, action: pass}
E
# a connection that stands when the list comes is the host's own
bg "$T/talk" "$PYTHON" "$SRC/state.py" talk 198.51.100.2 80 "$T/go"
TALK=$BG
wait_for "grep -q one $T/talk"
is "no warning of what it cuts off" "$(xdp load xc0 --rules "$T/rules.yaml" 2>&1 >/dev/null)" ""
touch "$T/go"
wait_for "grep -q two $T/talk || ! alive $TALK"
is "a connection that was there before" "$(cat "$T/talk")" "one"$'\n'"two"
for to in 198.51.100.2 2001:db8:2::2; do
	is "a connection of the host's to $to" "$(state talk "$to" 80 "$T/go")" "one"$'\n'"two"
	is "an answer in fragments from $to" "$(state ask "$to" 53)" 4000
done
for to in 203.0.113.2 2001:db8:3::2; do
	is "much to $to, by a path with a smaller MTU" "$(state give "$to" 7000 300000)" 300000
done
like "errors told of the MTU" "$(ip route get 203.0.113.2)" "mtu 1280"
ok "they were let through" test "$(reason icmp-error)" -ge 1

is "a port that is closed says so" "$(state ask 198.51.100.2 54)" ConnectionRefusedError
refused "is dropped"
like "explain: a SYN" "$(xdp explain xc0 --packet 'tcp 198.51.100.2:5 > 198.51.100.1:8080')" $'verdict +drop\n.*\nstate +new'
like "explain: what pretends to be of a connection" \
	"$(xdp explain xc0 --packet 'tcp 198.51.100.2:5 > 198.51.100.1:8080 flags ack')" $'verdict +drop\n.*\nstate +invalid'
like "explain: taken for established" \
	"$(xdp explain xc0 --state established --packet 'tcp 198.51.100.2:5 > 198.51.100.1:8080 flags ack')" \
	$'verdict +pass\nrule +name own state established .*\nstate +established'
is "explain: in JSON" "$(xdp explain xc0 -o json --packet 'udp 198.51.100.2:5 > 198.51.100.1:9053' | jq -r .state)" new
like "the list is shown with the word" "$(xdp rule list xc0 -o yaml)" "state: \"established\""

# --- floods of what pretends ---

bg "$T/talk2" "$PYTHON" "$SRC/state.py" talk 198.51.100.2 80 "$T/go2"
wait_for "grep -q one $T/talk2"
before=$(count own)
for flags in ack rst syn; do
	peer "$PYTHON" "$SRC/packets.py" send eth0 proto=tcp flags=$flags n=500 src=198.51.100.77 dst=198.51.100.1 \
		sport=80 dport=8080 smac=$PEER_MAC dmac=$HERE_MAC
done
wait_for '[ "$(count default)" -ge 300 ]' # some get lost on a busy machine
ok "spoofed segments are dropped" test "$(count default)" -ge 300
is "and taken for none of the host's" "$(count own)" "$before"
touch "$T/go2"
wait_for "grep -q two $T/talk2"
ok "a connection goes on" grep -q two "$T/talk2"

# --- a server with rules of its own ---

cat >"$T/server.yaml" <<'E'
default: drop
rules:
  - {name: own, state: [established, related], action: pass}
  - {name: broken, state: invalid, action: drop}
  - {name: web, proto: tcp, dport: 8080, state: new, action: pass}
  - {name: late, state: new, proto: udp, sport: 7053, action: drop}
E
ok "a server's list" xdp apply xc0 --rules "$T/server.yaml"
like "who asks is let in, IPv4" "$(from_peer "$BIN/tcp" connect 4 198.51.100.1 8080)" "^peer="
like "who asks is let in, IPv6" "$(from_peer "$BIN/tcp" connect 6 2001:db8:2::1 8080)" "^peer="
ok "SYNs are new" test "$(count web)" -ge 2
sysctl -q net.ipv4.tcp_syncookies=2
like "with SYN cookies, of which no trace is kept" "$(from_peer "$BIN/tcp" connect 4 198.51.100.1 8080)" "^peer="
like "with SYN cookies, IPv6" "$(from_peer "$BIN/tcp" connect 6 2001:db8:2::1 8080)" "^peer="
sysctl -q net.ipv4.tcp_syncookies=1
peer "$PYTHON" "$SRC/packets.py" send eth0 proto=tcp flags=ack n=50 src=198.51.100.77 dst=198.51.100.1 \
	sport=80 dport=8080 smac=$PEER_MAC dmac=$HERE_MAC
wait_for '[ "$(count broken)" -ge 10 ]'
ok "ACKs without a cookie are invalid" test "$(count broken)" -ge 10

# --- connection tracking ---

unlike "a socket that is not connected gets no answer" "$("$BIN/udp" ask sendto 4 198.51.100.2 7053 2>&1)" "from="
nft -f - <<'E'
table inet track {
	chain out { type filter hook output priority 0; ct state new counter; }
	chain in { type filter hook input priority 0; ct state new counter; }
}
E
if conntrack_is_asked "a server's list"; then
	like "unless connection tracking knows what it sent" "$("$BIN/udp" ask sendto 4 198.51.100.2 7053)" "from="
else
	skip "unless connection tracking knows what it sent" "missing kernel feature: bpf_xdp_ct_lookup"
fi
nft delete table inet track

# --- private apps: what they send is masqueraded, what they expose has its sockets with them ---

cat >"$T/apps.yaml" <<'E'
default: drop
classes: {exposed: pass}
rules:
  - {name: bogus, state: invalid, action: drop}
  - {name: own, state: established, action: pass}
E
agent_start - <<E
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
E
serve 80 --name web --ip 10.77.1.1,fd77::1:1 -p 8081:80 -- "$BIN/tcp" listen 6 :: 80 hello
ok "a list for a host of apps" xdp apply xc0 --rules "$T/apps.yaml"
like "an exposed port of a private app's" "$(from_peer "$BIN/tcp" connect 4 198.51.100.1 8081)" "^peer="
is "nothing of it is invalid" "$(count bogus)" 0
if conntrack_is_asked "a list for a host of apps"; then
	is "what a private app asks the outside" "$(in_app --egress -- "$PYTHON" "$SRC/state.py" give 198.51.100.2 7001 1000)" 1000
else
	skip "what a private app asks the outside" "missing kernel feature: bpf_xdp_ct_lookup"
fi
refused "is dropped as ever"
stop_apps
agent_stop
ok "off" xdp unload xc0
end "$FAR_PID"
xdp_done
