#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Lists of 1,000 and of 10,000 rules take each other's place under a flood: every packet is judged
# by exactly one of them, none is lost and none is counted twice.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq nstat ethtool bpftool "$PYTHON"

peer_host
known_neighbours
sysctl -qw net.ipv6.conf.xc0.disable_ipv6=1 # no packets of the kernel's own
peer sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1

# Both lists have the same names, in another order: what a list does is counted under its own, and
# a name that is in both lists keeps its count.
#   A passes 7001 and drops 7002, and B the opposite; 7003 (UDP) and 7004 (TCP) are the default's.
list() { # FILE FIRST SECOND RULES DEFAULT
	"$PYTHON" - "$@" >"$T/$1" <<'EOF'
import sys
first, second, n, default = sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
verdicts = {"a": ("pass", "drop"), "b": ("drop", "pass")}
print("default: %s\nrules:" % default)
def pair(which):
    for port, verdict in zip((7001, 7002), verdicts[which]):
        print("  - {name: %s-%d, dst: 198.51.100.1, proto: udp, dport: %d, action: %s}"
              % (which, port, port, verdict))
pair(first)
for i in range(n - 4):
    print("  - {name: fill-%d, src: 203.0.%d.%d/%d, proto: tcp, dport: %d, action: drop}"
          % (i, i // 256, i % 256 & ~15 if i % 5 else i % 256, 32 - i % 5, 1000 + i))
pair(second)
EOF
}
list a.yaml a b 1000 drop
list b.yaml b a 1000 drop
list big.yaml b a 10000 drop

queue() { # COUNTER: of all queues
	ethtool -S xc0 | sed -n "s/^ *rx_queue_[0-9]*_$1: //p" | awk '{ n += $1 } END { print n + 0 }'
}
no_ports() {
	nstat -asz UdpNoPorts | awk '$1 == "UdpNoPorts" { print $2 }'
}

ok "load 1,000 rules" xdp load xc0 --rules "$T/a.yaml"
packets_before=$(queue xdp_packets) drops_before=$(queue xdp_drops) ports_before=$(no_ports)
bg "$T/flood" nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/packets.py" flood eth0 300 \
	dport=7001,7002,7003,7004t
flood=$BG
wait_for '[ "$(count a-7001)" -gt 100 ]'
swaps=0 failed=''
while alive "$flood" && [ $swaps -lt 16 ]; do
	which=b
	[ $((swaps % 2)) -eq 0 ] || which=a
	[ $swaps -ne 5 ] || which=big
	xdp apply xc0 --rules "$T/$which.yaml" >"$T/apply" 2>&1 || failed+="$which: $(cat "$T/apply")"
	[ $which != big ] || is "10,000 rules in the middle" "$(cat "$T/apply")" \
		"xc0: 10000 rules, default drop, generation $((swaps + 2)) (native)"
	swaps=$((swaps + 1))
done
is "every swap succeeds" "$failed" ""
is "all of them while packets came" $swaps 16
end "$flood"
read -r -d '' -a sent < <(sed 's/[0-9]*t*=//g' "$T/flood")
total=$((sent[0] + sent[1] + sent[2] + sent[3]))
wait_for '[ "$(count default)" -ge $((sent[2] + sent[3])) ]'
xdp stats xc0 -o json >"$T/stats"
rule() {
	jq --arg r "$1" '.rules[] | select(.rule == $r).packets' "$T/stats"
}
is "the interface got all that was sent" $(($(queue xdp_packets) - packets_before)) $total
is "all rules and the default counted as much" "$(jq '[.rules[].packets] | add' "$T/stats")" $total
is "packets to the first port were judged once" $(($(rule a-7001) + $(rule b-7001))) "${sent[0]}"
is "so were those to the second" $(($(rule a-7002) + $(rule b-7002))) "${sent[1]}"
is "and those that no rule matches" "$(rule default)" $((sent[2] + sent[3]))
ok "the first list judged some" test "$(rule a-7001)" -gt 100
ok "the second one, too" test "$(rule b-7001)" -gt 100
is "the interface dropped what rules say they dropped" $(($(queue xdp_drops) - drops_before)) \
	$(($(rule a-7002) + $(rule b-7001) + $(rule default)))
is "the network stack got what rules say they passed" $(($(no_ports) - ports_before)) \
	$(($(rule a-7001) + $(rule b-7002)))
is "no packet was odd" "$(jq -c '.reasons' "$T/stats")" "{}"
# a generation of the past would still have its program
kernel_programs() {
	bpftool prog show -j | jq "[.[] | select(.name == \"ax_filter\" and
		(.map_ids | index($(bpftool map show pinned "/sys/fs/bpf/$INST-xdp/xc0/rule_counts" -j |
			jq .id))))] | length"
}
wait_for '[ "$(kernel_programs)" = 1 ]'
is "only the last list's program is left" "$(kernel_programs)" 1

ok "unload" xdp unload xc0
xdp_done
