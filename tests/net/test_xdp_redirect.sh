#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `redirect` and `reflect` of the XDP dataplane with real programs: TCP and UDP through a host that
# only hands frames from one veth pair to another, whole checksums, and frames that could not be
# sent counted under their rule.
. "$(dirname "$0")/lib.sh"
need ip ethtool jq curl iperf3 nstat "$PYTHON"

# client cl0 in cl --- left [this host] right --- sv0 in sv, all in one subnet
for n in cl sv; do
	ip netns add $n
	ip -n $n link set lo up
done
ip link add left type veth peer name cl0 netns cl
ip link add right type veth peer name sv0 netns sv
ip link set left up
ip link set right up
ip -n cl link set cl0 up
ip -n sv link set sv0 up
mac() { # DEVICE [ip's options]
	ip "${@:2}" -j link show "$1" | jq -r '.[0].address'
}
LEFT=$(mac left) RIGHT=$(mac right) CL=$(mac cl0 -n cl) SV=$(mac sv0 -n sv)
ip -n cl addr add 10.1.0.1/24 dev cl0
ip -n sv addr add 10.1.0.2/24 dev sv0
ip -n cl addr add fd01::1/64 dev cl0 nodad
ip -n sv addr add fd01::2/64 dev sv0 nodad
# to each of them this host is the other one: its rules see to the addresses of frames
ip -n cl neigh replace 10.1.0.2 lladdr "$LEFT" dev cl0
ip -n cl neigh replace fd01::2 lladdr "$LEFT" dev cl0
ip -n sv neigh replace 10.1.0.1 lladdr "$RIGHT" dev sv0
ip -n sv neigh replace fd01::1 lladdr "$RIGHT" dev sv0

in_ns() { # NAMESPACE COMMAND...
	timeout --foreground -k 1 30 ip netns exec "$@"
}

# forward [MORE]: the rules of both sides, with more keys, as $T/left.yaml and $T/right.yaml
forward() {
	local to_right="action: redirect right, smac: '$RIGHT', dmac: '$SV'${1:-}"
	local to_left="action: redirect left, smac: '$LEFT', dmac: '$CL'${1:-}"
	cat >"$T/left.yaml" <<-EOF
		rules:
		  - {name: one, proto: udp, dport: 5001, $to_right}
		  - {name: two, proto: udp, dport: 5002, $to_right}
		  - {name: rest, dst: ["10.1.0.2", "fd01::2"], $to_right}
	EOF
	cat >"$T/right.yaml" <<-EOF
		rules:
		  - {name: back, dst: ["10.1.0.1", "fd01::1"], $to_left}
	EOF
}

load() { # SIDE [OPTION...]
	ax xdp load "$1" --rules "$T/$1.yaml" "${@:2}"
}
apply() { # SIDE [OPTION...]: puts them in the place of those that are there
	ax xdp apply "$1" --rules "$T/$1.yaml" "${@:2}"
}

count() { # RULE KEY
	ax xdp stats left -o json |
		jq --arg r "$1" --arg k "$2" '.rules[] | select(.rule == $r)[$k]'
}

checksum_errors() {
	local n
	for n in cl sv; do
		in_ns $n nstat -asz
	done | awk '/InCsumErrors/ { n += $2 } END { print n + 0 }'
}

# --- refused: the frames would vanish ---
forward ', checksum: recompute'
out=$(load left 2>&1)
is "a redirect to a veth without NAPI at its other end is refused" $? 1
like "the command that repairs it is named" "$out" "ip netns exec sv ethtool -K sv0 gro on"
unlike "nothing was attached" "$(ip link show left)" xdp
forward
out=$(load left 2>&1)
like "so are unfinished checksums" "$out" "ip netns exec cl ethtool -K cl0 tx off"

# --- repaired by --fix; checksums are computed, offloads stay on ---
forward ', checksum: recompute'
ok "--fix loads the left side" load left --fix
ok "and the right side" load right --fix
like "GRO was turned on at the server" "$(in_ns sv ethtool -k sv0 | grep ^generic)" \
	"generic-receive-offload: on"
like "checksum offload stays on" "$(in_ns cl ethtool -k cl0 | grep ^tx-checksumming)" "tx-checksumming: on"

head -c 3000000 /dev/urandom >"$T/file"
bg "$T/http" ip netns exec sv "$PYTHON" -m http.server -d "$T" --bind :: 8000
bg "$T/iperf" ip netns exec sv iperf3 -s
wait_for "ip netns exec sv ss -Hltn 'sport = :8000' | grep -q . &&
	ip netns exec sv ss -Hltn 'sport = :5201' | grep -q ."

transfers() { # WHAT
	local url
	for url in "http://10.1.0.2:8000" "http://[fd01::2]:8000"; do
		rm -f "$T/got"
		in_ns cl curl -gsS --max-time 20 -o "$T/got" "$url/file"
		ok "$1: curl gets a file whole from $url" cmp "$T/file" "$T/got"
	done
	in_ns cl iperf3 -J -t 1 -c 10.1.0.2 >"$T/tcp.json"
	like "$1: iperf3 over TCP" "$(jq '.end.sum_received.bytes' "$T/tcp.json")" \
		'^[1-9][0-9]{5,}'
	in_ns cl iperf3 -J -u -b 5M -l 1200 -t 1 -c 10.1.0.2 >"$T/udp.json"
	like "$1: iperf3 over UDP" "$(jq '.end.sum.bytes' "$T/udp.json")" '^[1-9][0-9]{5,}'
	is "$1: without loss" "$(jq '.end.sum.lost_packets' "$T/udp.json")" 0
	is "$1: no checksum was wrong" "$(checksum_errors)" 0
}
transfers "checksums recomputed"
like "the frames went by the rules" "$(count rest packets)" '^[1-9][0-9]{3,}'
# bulk TCP fills a veth's queue of 256 frames now and then: what it throws away has failed
ok "nearly every frame was sent" test "$(($(count rest failed) * 50))" -lt "$(count rest packets)"

# --- the same without offload ---
forward
ok "without 'checksum: recompute' --fix turns the offload off" apply left --fix
ok "on both sides" apply right --fix
like "the client's" "$(in_ns cl ethtool -k cl0 | grep ^tx-checksumming)" "tx-checksumming: off"
transfers "checksums of the senders"

# --- frames that are not sent ---
send() { # PORT N [BYTES]
	in_ns cl "$PYTHON" -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[2])):
    s.sendto(b"x" * int(sys.argv[3]), ("10.1.0.2", int(sys.argv[1])))
' "$1" "$2" "${3:-20}"
}
rest=$(count rest failed) # of the transfers before
failures() {
	echo "$(count one failed) $(count two failed) $(($(count rest failed) - rest))"
}
# arrived ONE TWO: waits until the rules have seen so many
arrived() {
	wait_for '[ "$(count one packets) $(count two packets)" = "'"$1 $2"'" ]'
}

is "nothing failed yet" "$(failures)" "0 0 0"
send 5001 5
arrived 5 0
is "what is sent does not count as failed" "$(failures)" "0 0 0"

in_ns sv ethtool -K sv0 gro off >/dev/null
send 5001 7
send 5002 3
arrived 12 3
is "without NAPI at the other end each rule has its failures" "$(failures)" "7 3 0"
in_ns sv ethtool -K sv0 gro on >/dev/null

ip link set right down
send 5001 2
send 5002 4
arrived 14 7
is "so it is when the device is down" "$(failures)" "9 7 0"
ip link set right up

# only what is too long for the far end
ip -n sv link set sv0 mtu 1000
send 5001 6 500
send 5002 2 1200
arrived 20 9
is "and when frames are too long" "$(failures)" "9 9 0"
ip -n sv link set sv0 mtu 1500

ok "a list is applied anew" apply left --fix
is "the counters of failures outlive it" "$(failures)" "9 9 0"

# --- reflecting goes the same way ---
cat >"$T/left.yaml" <<-EOF
	rules:
	  - {name: mirror, proto: udp, dport: 5003, action: reflect}
EOF
in_ns cl ethtool -K cl0 gro off >/dev/null
fails "reflecting is refused too" apply left
ok "unless it is forced" apply left --force
send 5003 4
wait_for '[ "$(count mirror packets)" = 4 ]'
is "and counts as failed" "$(count mirror failed)" 4
ok "--fix repairs it" apply left --fix
send 5003 4
wait_for '[ "$(count mirror packets)" = 8 ]'
is "nothing fails any more" "$(count mirror failed)" 4

# --- a target that is gone ---
forward
ok "the rules come back" apply left --fix
ok "ax doctor has nothing against it" ax doctor left
ok "unload the right side" ax xdp unload right
before=$(count one failed)
ip link del right
send 5001 3
wait_for '[ "$(count one failed)" = $((before + 3)) ]'
is "frames to a device that is gone count as failed" "$(count one failed)" $((before + 3))
fails "which ax doctor notices" ax doctor left

ok "unload the left side" ax xdp unload left
unlike "nothing is attached any more" "$(ip link show left)" xdp
ip link del left
for pid in "${BACKGROUND[@]}"; do
	end "$pid"
done
BACKGROUND=()
ip netns del cl
ip netns del sv
done_testing
