#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 900
# What ax makes of packets, against others that know nothing of it: a reference in Python, written from
# the RFCs and the manual page (src/reference.py), on packets that scapy made and that were spoilt; and
# nftables, whose counters a list of 1,000 rules has to share when the same packets go by both.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq nft "$PYTHON"
"$PYTHON" -c 'import scapy' 2>/dev/null || skip_all "missing python3-scapy"
PACKETS=${PACKETS:-100000}
SOME=$((PACKETS / 5)) # where a packet more costs most, or tells least

mutated() {
	PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$SRC/mutated.py" "$@"
}

peer_host
known_neighbours
mutated lists "$T"
ok "$PACKETS packets" mutated packets "$T/all.pcap" "$PACKETS"

looked_up() {
	xdp status xc0 -o json | jq -r '.. | .match? // empty'
}
ways=
for list in protocols ports passing dropping large; do
	ok "list $list" xdp apply xc0 --rules "$T/$list.yaml"
	ways+="$(looked_up) "
	n=$PACKETS
	case $list in passing | dropping) ;; *) n=$SOME ;; esac
	# (by nobody who takes its time to read)
	timeout 300 "$AX" --instance "$INST" xdp explain xc0 --pcap "$T/all.pcap" -n "$n" -o json >"$T/said"
	said=$(mutated compare "$list" "$T/all.pcap" "$n" <"$T/said")
	is "$list judges $n of them as the reference does" "$?" 0
	diag "$said"
done

is "rules were looked up in each way that there is" "$ways" "single product bitmap bitmap bitmap "

# --- by two filters at once ---

# What XDP passes comes to the other filter right behind.
is "no rule of the large list drops" "$(jq '[.rules[] | select(.action != "pass")] | length' "$T/large.yaml")" 0
{
	echo 'table netdev t {'
	sed 's/IFACE/xc0/' "$T/large.nft"
	echo '}'
} >"$T/nft"
ok "nftables has the same rules" nft -f "$T/nft"
sysctl -qw net.ipv6.conf.xc0.disable_ipv6=1
peer sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1
mutated plain "$T/all.pcap" "$T/plain.pcap" "$SOME"
xdp unload xc0
ok "the large list, from 0 on" xdp load xc0 --rules "$T/large.yaml"
sent=$(mutated send "$PEER_PID" eth0 xc0 "$T/plain.pcap")
ok "packets that nothing is odd about, $sent" test "$sent" -gt $((SOME / 10))
mutated expect large "$T/plain.pcap" | jq -S 'with_entries(select(.value > 0))' >"$T/expected"
xdp stats xc0 -o json | jq -S '[.rules[] | select(.packets > 0) | {(.rule): .packets}] | add' >"$T/by-ax"
nft -j list counters table netdev t |
	jq -S '[.nftables[].counter | select(. and .packets > 0) | {(.name): .packets}] | add' >"$T/by-nft"
ok "many rules had some" test "$(jq length "$T/expected")" -gt 50
is "ax counts for each rule what the reference does" "$(diff "$T/by-ax" "$T/expected" | head -n 20)" ""
is "and so does nftables" "$(diff "$T/by-nft" "$T/expected" | head -n 20)" ""
nft delete table netdev t
xdp_done
