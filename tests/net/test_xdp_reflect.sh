#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Packets that turn around in the driver, with checksums that a sender left to its device; packets
# that another processor takes; rates.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq curl nstat ethtool "$PYTHON"

peer_host
known_neighbours
from_peer() {
	peer "$PYTHON" "$SRC/packets.py" "$@"
}
checksum_errors() {
	peer nstat -asz | awk '/InCsumErrors/ { n += $2 } END { print n + 0 }'
}

# --- reflect ---

cat >"$T/reflect.yaml" <<'EOF'
rules:
  - {name: echo, proto: udp, dport: 7, action: reflect}
  - {name: ping, icmp: echo-request, action: reflect}
  - {name: ping6, icmp6: echo-request, action: reflect}
  - {name: syn, proto: tcp, dport: 81, flags: "syn,!ack", action: reflect}
  - {name: tagged, vlan: 7, action: reflect}
EOF
ok "load, with what reflecting needs" xdp load xc0 --rules "$T/reflect.yaml" --fix
peer ethtool -K eth0 tx on >/dev/null 2>&1
like "the client leaves checksums to its device" "$(peer ethtool -k eth0)" "tx-checksumming: on"
is "a UDP echo" "$(from_peer ask 198.51.100.1 7 hello)" "hello from 198.51.100.1 7"
is "over IPv6" "$(from_peer ask 2001:db8:2::1 7 hello6)" "hello6 from 2001:db8:2::1 7"
is "of odd length" "$(from_peer ask 198.51.100.1 7 abc)" "abc from 198.51.100.1 7"
long=$(head -c 1400 /dev/zero | tr '\0' y)
is "of a full frame" "$(from_peer ask 198.51.100.1 7 "$long")" "$long from 198.51.100.1 7"
is "ping" "$(from_peer ping 198.51.100.1 5)" 5
is "ping over IPv6" "$(from_peer ping 2001:db8:2::1 5)" 5
is "no checksum was wrong" "$(checksum_errors)" 0
is "the rules answered, not the kernel" "$(count echo) $(count ping) $(count ping6)" "4 5 5"
is "nothing failed" "$(xdp stats xc0 -o json | jq '[.rules[].failed] | add')" 0

turned() {
	from_peer turned eth0 "$@"
}
is "a SYN comes back as one" "$(turned proto=tcp dport=81 sport=1234)" \
	"198.51.100.1 > 198.51.100.2 proto 6 81 > 1234 $HERE_MAC > $PEER_MAC checksum right"
is "over IPv6" "$(turned proto=tcp dport=81 sport=1234 src=2001:db8:2::2 dst=2001:db8:2::1)" \
	"2001:db8:2::1 > 2001:db8:2::2 proto 6 81 > 1234 $HERE_MAC > $PEER_MAC checksum right"
is "a datagram" "$(turned proto=udp dport=7 sport=1235 size=33)" \
	"198.51.100.1 > 198.51.100.2 proto 17 7 > 1235 $HERE_MAC > $PEER_MAC checksum right"
is "with no ACK, which is not asked for" "$(turned proto=tcp dport=81 flags=ack | grep -c ' 81 > ')" 1
is "that was the kernel's answer: the rule counts SYNs only" "$(count syn)" 2
# a real client's SYN has its checksum left to the device
peer "$PYTHON" -c "
import socket
s = socket.socket()
s.settimeout(0.5)
try:
    s.connect(('198.51.100.1', 81))
except OSError:
    pass"
ok "a client's SYN is turned, too" test "$(count syn)" -ge 3
is "its checksum was right" "$(checksum_errors)" 0
from_peer turned eth0 proto=udp dport=9 vlan=7 >/dev/null
is "a tagged one" "$(count tagged)" 1

# --- another processor ---

mkdir "$T/www"
head -c 500000 /dev/urandom >"$T/www/file"
bg "$T/http" "$PYTHON" -m http.server -d "$T/www" --bind :: 8080
wait_for 'ss -Hltn "sport = :8080" | grep -q .'
last=$(($(nproc --all) - 1))
cat >"$T/cpu.yaml" <<EOF
rules:
  - {name: web, proto: tcp, dport: 8080, action: cpu $last}
  - {name: cpu-ping, icmp: echo-request, action: cpu 0}
  - {name: cpu-ping6, icmp6: echo-request, action: cpu $last}
EOF
ok "apply a list that sends packets to CPU $last" xdp apply xc0 --rules "$T/cpu.yaml" --fix
for url in "http://198.51.100.1:8080" "http://[2001:db8:2::1]:8080"; do
	rm -f "$T/got"
	peer curl -gsS -m 5 -o "$T/got" "$url/file"
	ok "$url has its file" cmp "$T/got" "$T/www/file"
done
is "ping" "$(from_peer ping 198.51.100.1 3)" 3
is "ping over IPv6" "$(from_peer ping 2001:db8:2::1 3)" 3
ok "by the rules" test "$(count web)" -gt 10 -a "$(count cpu-ping)" = 3 -a "$(count cpu-ping6)" = 3
like "a CPU that is not there" "$(xdp rule add xc0 proto udp action cpu 4095 2>&1)" \
	"CPU|cpu"
is "changes nothing" "$(xdp rule list xc0 -o json | jq '.rules | length')" 3

# --- rates ---

sink() {
	nstat -asz UdpNoPorts | awk '$1 == "UdpNoPorts" { print $2 }'
}
cat >"$T/rate.yaml" <<'EOF'
rules:
  - {name: packets, proto: udp, dport: 6001, action: pass, rate: "10pps,burst=20"}
  - {name: bits, proto: udp, dport: 6002, action: pass, rate: "80kbit,burst=5000"}
  - {name: sources, proto: udp, dport: 6003, action: pass, rate: "1pps,burst=5,per=src"}
  - {name: nets, proto: udp, dport: 6004, action: pass, rate: "1pps,burst=5,per=src/24/64"}
EOF
ok "apply a list with rates" xdp apply xc0 --rules "$T/rate.yaml"
# passed RULE PORT N [KEY=VALUE...]: sends N; what came through is in $through
passed() {
	local rule=$1 port=$2 n=$3 before seen limited

	seen=$(count "$1")
	shift 3
	before=$(sink) limited=$(count "$rule" limited)
	from_peer send eth0 proto=udp dport="$port" n="$n" "$@"
	wait_for "[ \"\$(count $rule)\" = $((seen + n)) ]"
	through=$(($(sink) - before))
	limited=$(($(count "$rule" limited) - limited))
	is "$rule: what came through and what did not is all" $((through + limited)) "$n"
}
passed packets 6001 500
ok "at least the burst came through ($through of 500)" test $through -ge 20
ok "and not much more" test $through -le 100
passed packets 6001 200
ok "then the rate only ($through of 200)" test $through -le 100
passed bits 6002 100 size=982 # frames of 1,024 bytes
ok "bytes are limited, too ($through of 100)" test $through -ge 4 -a $through -le 40
passed sources 6003 50
ok "a source has its rate ($through of 50)" test $through -ge 5 -a $through -le 25
passed sources 6003 50 src=198.51.100.77
ok "another one has its own ($through of 50)" test $through -ge 5 -a $through -le 25
passed nets 6004 50
ok "a network has its rate ($through of 50)" test $through -ge 5 -a $through -le 25
passed nets 6004 50 src=198.51.100.77
ok "another address of it shares that ($through of 50)" test $through -le 20
is "reasons count what was limited" "$(reason rate-limited)" \
	"$(xdp stats xc0 -o json | jq '[.rules[].limited] | add')"

ok "unload" xdp unload xc0
xdp_done
