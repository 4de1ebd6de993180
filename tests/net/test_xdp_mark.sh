#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 120
# Rules about marks, in lists for what leaves: as sockets and nftables set them, of what this host
# sends and forwards; by command, file and config; refused for what comes in.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip tc jq nft "$PYTHON"

peer_host
known_neighbours
sysctl -qw net.ipv6.conf.xc0.disable_ipv6=0
for at in 198.51.100.2 2001:db8:2::2; do
	bg "$T/echo" nsenter -t "$PEER_PID" -n "$PYTHON" "$SRC/packets.py" serve $at 7000
done
wait_for '[ "$(peer ss -Hlun | wc -l)" = 2 ]'

asks() { # ADDRESS [MARK]: the answer, of a datagram that leaves with that mark
	timeout 2 "$PYTHON" "$SRC/packets.py" ask "$1" 7000 word "${2:-0}" 2>&1 | grep -o word | head -n 1
}
both() { # [MARK]
	echo "$(asks 198.51.100.2 "$@") $(asks 2001:db8:2::2 "$@")"
}
out() {
	count "$1" packets xc0:egress
}
NO_MARK='no mark: packets have none where XDP sees them.*direction: egress'

# --- marks that sockets set ---

cat >"$T/marks.yaml" <<'END'
rules:
  - {name: exact, mark: 7, action: drop}
  - {name: masked, proto: udp, mark: [0x10/0xf0, 0x80000000/0x80000000], action: drop}
END
like "a list that asks for marks is none for what comes in" "$(xdp load xc0 --rules "$T/marks.yaml" 2>&1)" \
	"rule 1 \(exact\) with mark and direction: ingress.*$NO_MARK"
like "nor is it there" "$(xdp rule list xc0 2>&1)" "no rules of ax are loaded on xc0 "
ok "with the option it is for what leaves" xdp load xc0 --direction egress --rules "$T/marks.yaml"
is "without a mark" "$(both)" "word word"
is "with another" "$(both 0x107)" "word word"
is "the exact one" "$(both 7)" " "
is "one within a mask" "$(both 0x1f) $(both 0x7fffff1f)" "   "
is "the highest bit" "$(both 0x80000000)" " "
is "bits that no rule asks for" "$(both 0x7fffff2f)" "word word"
is "each rule counts its own" "$(out exact) $(out masked)" "2 6"

# --- asking, changing ---

PACKET='udp 198.51.100.1:5 > 198.51.100.2:7000'
explain() {
	xdp explain xc0 --direction egress --packet "$PACKET" "$@" 2>&1
}
like "explain, of no mark" "$(explain)" 'verdict +pass'
like "of a mark" "$(explain --mark 0x13)" \
	'verdict +drop.*name masked proto udp mark 0x10/0xf0,0x80000000/0x80000000 action drop'
like "as a number" "$(explain -m 7)" 'verdict +drop.*name exact mark 0x7 action drop'
is "explaining counts nothing" "$(out exact) $(out masked)" "2 6"
like "what is no mark" "$(explain --mark 0x10/0xff)" "'0x10/0xff' is no mark: say one such as 0x10"
like "of what comes in there is none" "$(xdp explain xc0 --packet "$PACKET" -m 7 2>&1)" \
	"have no mark yet where XDP sees them: --mark goes with --direction egress"
ok "a rule by command" xdp rule add xc0 --direction egress --at 1 name first mark 0x10/0xff,0x20 action pass
is "comes first" "$(both 0x10) $(out first)" "word word 2"
xdp rule list xc0 --direction egress -o yaml >"$T/printed.yaml"
is "what is printed can be loaded" "$(xdp apply xc0 --rules "$T/printed.yaml" 2>&1)" \
	"xc0:egress: 3 rules, default pass, generation 3 (egress)"
is "and is the same" "$(xdp rule list xc0 --direction egress -o yaml)" "$(cat "$T/printed.yaml")"
like "a value beside its mask" "$(xdp rule add xc0 --direction egress mark 0x11/0xf0 action drop 2>&1)" \
	'mark "0x11/0xf0" is not valid: use a mark within its mask: 0x10/0xf0'
ok "a list for what comes in" xdp load xc0
like "takes no such rule" "$(xdp rule add xc0 name m mark 1 action drop 2>&1)" \
	"rule 1 \(m\) with mark and direction: ingress.*$NO_MARK"
like "nor does dump look for it" "$(xdp dump xc0 -n 1 -d 5s -w /dev/null mark 1 2>&1)" "$NO_MARK"
ok "unload it" xdp unload xc0

# --- marks that nftables sets ---

marks() { # CHAIN
	printf 'table inet marks { chain c { %s; }; }\n' "$1" | nft -f - || bail_out "nft does not set marks"
}
ok "a list about nftables' mark" xdp rule add xc0 --direction egress --at 1 \
	name set mark 0x700/0xf00 action drop
marks "type filter hook output priority 0; udp dport 7000 meta mark set meta mark or 0x700"
is "which holds for what it marks" "$(both) $(both 0x20) $(out set)" "    4"
nft delete table inet marks
is "and no more" "$(both)" "word word"

# --- what is forwarded has the mark that this host gives it ---

new_netns
third=$BG
ip link add xm0 type veth peer name eth0 netns "$third"
ip addr add 203.0.113.1/24 dev xm0
ip link set xm0 up
nsenter -t "$third" -n ip addr add 203.0.113.2/24 dev eth0
nsenter -t "$third" -n ip link set eth0 up
nsenter -t "$third" -n ip route add default via 203.0.113.1
peer ip route add 203.0.113.0/24 via 198.51.100.1
forward=$(sysctl -n net.ipv4.ip_forward)
sysctl -qw net.ipv4.ip_forward=1
third_asks() { # [MARK]: that it has in its own network namespace
	timeout 2 nsenter -t "$third" -n "$PYTHON" "$SRC/packets.py" ask 198.51.100.2 7000 word "${1:-0}" 2>&1 |
		grep -o word | head -n 1
}
ok "the way there" wait_for -t 10 '[ "$(third_asks)" = word ]'
is "a mark of another network namespace does not come along" "$(third_asks 7)" word
marks 'type filter hook prerouting priority 0; iifname "xm0" meta mark set 7'
before=$(out exact)
is "that of this host does" "$(third_asks) $(($(out exact) - before))" " 1"
nft delete table inet marks
sysctl -qw net.ipv4.ip_forward="$forward"
ip link del xm0
end "$third"

# --- by config ---

ok "unload" xdp unload xc0 --direction egress
agent_start - <<END
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
xdp:
  interfaces:
    xc0: {direction: egress, rules-file: marks.yaml}
END
known_neighbours
wait_for '[ "$(both)" = "word word" ]'
is "a rules file of which the config says where it is for" "$(both 7) $(both 0x1f) $(out exact)" "    2"
sed 's/direction: egress, //' "$T/$INST.yaml" >"$T/other.yaml"
like "not beside what comes in" "$(ax config apply "$T/other.yaml" 2>&1)" \
	"rule 1 \(exact\) with mark and direction: ingress.*$NO_MARK"
xdp_done
