#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `action route` of the XDP dataplane with real programs: this host is a router between two others.
# What is plain goes by the lists alone; what is not, the kernel gets, and answers as it always did;
# and no list is a way round what guards ax's apps.
. "$(dirname "$0")/lib.sh"
need ip ethtool jq curl iperf3 nstat nft strings "$PYTHON"
build_c tcp

# client cl0 in cl --- left [this host] right --- sv0 in sv
for n in cl sv; do
	ip netns add $n
	ip -n $n link set lo up
done
ip link add left type veth peer name cl0 netns cl
ip link add right type veth peer name sv0 netns sv
for dev in left right; do
	ip link set $dev up
done
ip -n cl link set cl0 up
ip -n sv link set sv0 up
ip addr add 10.1.0.1/24 dev left
ip addr add 10.2.0.1/24 dev right
ip addr add fd01::1/64 dev left nodad
ip addr add fd02::1/64 dev right nodad
ip -n cl addr add 10.1.0.2/24 dev cl0
ip -n sv addr add 10.2.0.2/24 dev sv0
ip -n cl addr add fd01::2/64 dev cl0 nodad
ip -n sv addr add fd02::2/64 dev sv0 nodad
ip -n cl route add default via 10.1.0.1
ip -n sv route add default via 10.2.0.1
ip -n cl route add default via fd01::1
ip -n sv route add default via fd02::1

in_ns() { # NAMESPACE COMMAND...
	timeout --foreground -k 1 30 ip netns exec "$@"
}
bg "$T/heard" ip netns exec sv "$PYTHON" "$SRC/udp_probe.py" serve
wait_for 'grep -q ready "$T/heard"'

forwarding() { # 0|1
	sysctl -qw net.ipv4.ip_forward="$1" net.ipv6.conf.all.forwarding="$1"
}
reason() { # NAME [SIDE]
	ax xdp stats "${2:-left}" -o json | jq --arg r "$1" '.reasons[$r] // 0'
}
# answers REGEX ADDRESS [KEY=VALUE]...: that is what comes back of a datagram from the client
answers() {
	in_ns cl "$PYTHON" "$SRC/udp_probe.py" "${@:2}" >"$T/probe" 2>&1
	grep -qE "^$1$" "$T/probe" || {
		diag "$(cat "$T/probe")"
		return 1
	}
}
# by REASON REGEX ADDRESS [KEY=VALUE]...: the same, and the list counts it under that. (The kernel has
# its turn now and then, so that another one may be needed.)
by() {
	local before
	before=$(reason "$1")
	for _ in 1 2 3; do
		answers "${@:2}" || return
		[ "$(reason "$1")" -le "$before" ] || return 0
	done
	return 1
}
heard() { # datagrams so far
	grep -c asked "$T/heard"
}
checksum_errors() {
	local n
	for n in cl sv; do
		in_ns $n nstat -asz
	done | awk '/InCsumErrors/ { n += $2 } END { print n + 0 }'
}
kernel_forwarded() {
	nstat -asz | awk '$1 ~ /^Ip(6Out)?ForwDatagrams$/ { n += $2 } END { print n + 0 }'
}
far_ends() { # on|off: whether they take frames from XDP
	in_ns cl ethtool -K cl0 gro "$1" >/dev/null
	in_ns sv ethtool -K sv0 gro "$1" >/dev/null
}
doctor() {
	ax doctor left | tr -s '\n ' ' '
}
explain() { # PACKET
	ax xdp explain left --packet "$1"
}

for side in left right; do
	cat >"$T/$side.yaml" <<-EOF
		rules:
		  - {name: way, action: route, checksum: recompute}
	EOF
done
apply() {
	ax xdp apply left --rules "$T/left.yaml"
}

# --- off ---
forwarding 0
ok "load the left side" ax xdp load left --rules "$T/left.yaml"
ok "load the right side" ax xdp load right --rules "$T/right.yaml"
like "ax doctor says that forwarding is off" "$(doctor)" \
	"forwarding of IPv4 is off on left: none that comes in there is routed"
ok "nothing is routed" by route-off nothing 10.2.0.2
ok "nor IPv6" by route-off '(nothing|error EACCES .*|error ENETUNREACH .*)' fd02::2
like "but left to the kernel" "$(explain 'udp 10.1.0.2:5 > 10.2.0.2:9')" \
	"left to the kernel: forwarding is off"
forwarding 1

# --- a far end that takes no frames from XDP: nothing is lost ---
far_ends off
ok "apply again" apply
like "ax doctor tells of the far end" "$(doctor)" \
	"right, to which routes lead, is a veth with neither GRO nor an XDP program"
ok "the kernel routes there" answers answer 10.2.0.2
ok "which the list leaves it" by route-device answer 10.2.0.2
ok "IPv6 too" answers answer fd02::2
is "nothing was routed by the list" "$(reason routed)" 0
far_ends on
ok "apply once more" apply
like "now ax doctor says that packets are routed" "$(doctor)" "packets are routed to right"
ok "and so they are" by routed answer 10.2.0.2
ok "also IPv6" by routed answer fd02::2
like "explain gives the verdict" "$(explain 'tcp 10.1.0.2:5 > 10.2.0.2:80')" "verdict +route"
like "and where to" "$(explain 'tcp 10.1.0.2:5 > 10.2.0.2:80')" "its route leads to right"
is "also as JSON" "$(ax xdp explain left -o json --packet 'udp 10.1.0.2:5 > 10.2.0.2:80' |
	jq -r '.verdict, .reason, .interface' | tr '\n' ' ')" "route routed right "

# --- real traffic, offloads on ---
like "checksum offload is on" "$(in_ns cl ethtool -k cl0 | grep ^tx-checksumming)" \
	"tx-checksumming: on"
head -c 3000000 /dev/urandom >"$T/file"
bg "$T/http" ip netns exec sv "$PYTHON" -m http.server -d "$T" --bind :: 8000
bg "$T/iperf" ip netns exec sv iperf3 -s
wait_for "ip netns exec sv ss -Hltn 'sport = :8000' | grep -q . &&
	ip netns exec sv ss -Hltn 'sport = :5201' | grep -q ."
fetches() { # ADDRESS
	rm -f "$T/got"
	in_ns cl curl -gsS --max-time 20 -o "$T/got" "http://$1:8000/file" && cmp "$T/file" "$T/got"
}
kernel=$(kernel_forwarded)
before=$(reason routed)
ok "curl gets a file whole" fetches 10.2.0.2
ok "by IPv6, too" fetches "[fd02::2]"
in_ns cl iperf3 -J -t 1 -c 10.2.0.2 >"$T/tcp.json"
like "iperf3 over TCP" "$(jq '.end.sum_received.bytes' "$T/tcp.json")" '^[1-9][0-9]{5,}'
in_ns cl iperf3 -J -u -b 5M -l 1200 -t 1 -c fd02::2 >"$T/udp.json"
like "iperf3 over UDP" "$(jq '.end.sum.bytes' "$T/udp.json")" '^[1-9][0-9]{5,}'
is "without loss" "$(jq '.end.sum.lost_packets' "$T/udp.json")" 0
is "no checksum was wrong" "$(checksum_errors)" 0
routed=$(($(reason routed) - before))
kernel=$(($(kernel_forwarded) - kernel))
like "the list routed thousands of packets" "$routed" '^[1-9][0-9]{3,}'
ok "the kernel ($kernel) hardly any" test $((kernel * 50)) -lt "$routed"

# --- what the kernel answers ---
ok "the last router's answer" by route-ttl 'error EHOSTUNREACH by 10.1.0.1 .*' 10.2.0.2 ttl=1
ok "with one more it goes through" answers answer 10.2.0.2 ttl=2
ok "so it is with IPv6" by route-ttl 'error EHOSTUNREACH by fd01::1 .*' fd02::2 ttl=1

ip link set right mtu 1400
ok "too big" by route-mtu 'error EMSGSIZE by 10.1.0.1 mtu 1400' 10.2.0.2 size=1400 df=1
ok "too big for IPv6" by route-mtu 'error EMSGSIZE by fd01::1 mtu 1400' fd02::2 size=1400 df=1
in_ns cl ip route flush cache
ok "without DF it is taken to pieces" by route-mtu answer 10.2.0.2 size=1400
like "ax doctor says so" "$(doctor)" \
	"larger than 1400, the MTU of right, are left to the kernel, and up to 1500 come from left"
in_ns cl ip route flush cache
in_ns cl iperf3 -J -t 1 -c 10.2.0.2 >"$T/tcp.json"
ok "TCP finds its way through" test "$(jq '.end.sum_received.bytes' "$T/tcp.json")" -ge 1000000
ip link set right mtu 1500
in_ns cl ip route flush cache
in_ns sv ip route flush cache

ip neigh flush dev right
ok "a neighbour that is not known is asked for" by route-neighbour answer 10.2.0.2
ok "and known then" by routed answer 10.2.0.2
ip route add unreachable 10.9.0.0/24
ok "unreachable" by route-unreachable 'error EHOSTUNREACH by 10.1.0.1 .*' 10.9.0.1
ok "this host itself" by route-local 'error ECONNREFUSED by 10.2.0.1 .*' 10.2.0.1

# --- who says that he is somebody else ---
in_ns cl ip addr add 10.2.0.99/32 dev lo
before=$(heard)
sysctl -qw net.ipv4.conf.left.rp_filter=1
ok "a source of the other side" by route-source nothing 10.2.0.2 from=10.2.0.99
is "is refused with rp_filter" "$(heard)" "$before"
sysctl -qw net.ipv4.conf.left.rp_filter=0 net.ipv4.conf.all.rp_filter=0
ok "without rp_filter" by route-source nothing 10.2.0.2 from=10.2.0.99
is "it is let through as ever" "$(heard)" $((before + 1))

# --- looking on ---
bg "$T/dump.out" ax xdp dump left -n 4 -w "$T/dump"
dump=$BG
wait_for '[ -s "$T/dump" ]'
sleep 0.3
for size in 20 21 22; do
	answers answer 10.2.0.2 size=$size
done
answers '.*' 10.2.0.2 ttl=1
wait_for '! kill -0 $dump 2>/dev/null'
like "ax xdp dump has the verdict" "$(strings -n 8 "$T/dump")" \
	"route by way: the first rule that matches it"
like "and what was left to the kernel" "$(strings -n 8 "$T/dump")" \
	"pass by way: the first rule that matches it; left to the kernel"

# --- apps of ax ---
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4}
  host_access: false
EOF
serve 7000 --name behind --ip 10.77.1.1 -- "$BIN/tcp" listen 4 0.0.0.0 7000
connect() {
	in_ns cl timeout 3 "$BIN/tcp" connect 4 10.77.1.1 7000 >"$T/connect" 2>&1
	cat "$T/connect"
}
ok "apply with an app there" apply
before=$(reason route-device)
with=$(connect)
unlike "a private app that nobody outside may reach is not" "$with" "you="
ok "its packets are the kernel's" test "$(reason route-device)" -gt "$before"
like "explain says so" "$(explain 'tcp 10.1.0.2:5 > 10.77.1.1:7000')" \
	"left to the kernel: .*gets nothing from XDP"
sed -i 's/host_access: false/host_access: true/' "$T/$INST.yaml"
ok "let them" ax config apply "$T/$INST.yaml"
like "then it is reached" "$(connect)" "you=10.1.0.2:"
sed -i 's/host_access: true/host_access: false/' "$T/$INST.yaml"
ok "do not let them" ax config apply "$T/$INST.yaml"
in_ns cl ip addr add 10.77.1.1/32 dev lo
ok "its address is nobody else's" by route-source nothing 10.2.0.2 from=10.77.1.1
in_ns cl ip addr del 10.77.1.1/32 dev lo
ok "unload" ax xdp unload left
is "all of which is so without a list" "$(connect)" "$with"
agent_stop

# --- forwarding that is on for apps alone ---
ok "unload the right side" ax xdp unload right
forwarding 0
ok "load again" ax xdp load left --rules "$T/left.yaml"
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4}
EOF
run_app --egress --name out --ip 10.77.1.2 -- sleep 100
launched out
is "an app with egress has forwarding switched on" \
	"$(sysctl -n net.ipv4.conf.left.forwarding)" 1
before=$(heard)
ok "but for apps alone" by route-device '(nothing|error .*)' 10.2.0.2
ok "apply under it" apply
ok "changes nothing" by route-device '(nothing|error .*)' 10.2.0.2
is "nothing of others came through" "$(heard)" "$before"
like "as ax doctor says" "$(doctor)" "switched forwarding on, for apps alone"
agent_stop

ok "unload the left side" ax xdp unload left
for pid in "${BACKGROUND[@]}"; do
	[ "$pid" = "$dump" ] || end "$pid"
done
BACKGROUND=()
ip route del unreachable 10.9.0.0/24
ip link del left
ip link del right
ip netns del cl
ip netns del sv
done_testing
