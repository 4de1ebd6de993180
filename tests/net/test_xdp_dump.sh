#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax xdp dump and top: what is written is what came in and went out, byte for byte, with the rule
# that decided; the list judges as before; and nothing is left when the reader is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq bpftool "$PYTHON"

peer_host
known_neighbours
cat >"$T/rules.yaml" <<'YAML'
default: pass
sets: {friends: [203.0.113.0/24]}
rules:
- {name: no-ssh, proto: tcp, dport: 22, action: drop}
- {name: echo, proto: udp, dport: 7, action: reflect}
- {name: friends, src: "@friends", action: drop}
YAML
ok "a list" xdp load xc0 --rules "$T/rules.yaml" --fix --force

# dump FILE OPTIONS...: in the background, its pid in $BG; it is there once packets come by
dump() {
	local out=$1
	shift
	bg "$out.said" "$AX" --instance "$INST" xdp dump xc0 -w "$out" "$@"
	wait_for "[ -s '$out' ]" || diag "no dump: $(cat "$out.said")"
}
ended() {
	wait_for "! alive $BG" || diag "it goes on: $(cat "$T"/*.said)"
	end "$BG"
}
send() {
	peer "$PYTHON" "$SRC/packets.py" send eth0 "$@"
}
read_file() {
	"$PYTHON" "$SRC/pcapng.py" "$@"
}
# lines FILE: of packets, without what differs from run to run
lines() {
	read_file "$1" | grep '^packet' | sed -E 's/ id [0-9]+ queue [0-9]+//'
}

# --- what came, what became of it, and why ---

dump "$T/all" -n 4 proto tcp,udp
send proto=tcp dport=22
send proto=udp dport=7 size=20
send proto=udp src=203.0.113.5 dport=9999
send proto=tcp dport=1234 flags=ack
ended
is "each packet with its verdict, rule and reason" "$(lines "$T/all")" \
	"packet xc0 in 72 of 72 xdp 1 | drop by no-ssh: the first rule that matches it
packet xc0 in 62 of 62 xdp 3 | reflect by echo: the first rule that matches it
packet xc0 out 62 of 62 xdp - | reflect by echo: the first rule that matches it
packet xc0 in 60 of 60 xdp 1 | drop by friends: the first rule that matches it
packet xc0 in 72 of 72 xdp 2 | pass by default: no rule matches it"
is "a section, an interface, its statistics" "$(read_file "$T/all" | grep -v '^packet')" \
	"section Linux ax
interface xc0 link 1 snap 9216 filter proto tcp,udp
statistics xc0 received 4 dropped 0"
is "what came in and what that became have one id" \
	"$(read_file "$T/all" | sed -n 's/.* id \([0-9]*\) .*reflect.*/\1/p' | sort -u | wc -l)" 1
read_file "$T/all" frames >"$T/frames"
"$PYTHON" - "$T/frames" >"$T/turned" 2>&1 <<'PY'
import sys
came, went = [bytes.fromhex(l) for l in open(sys.argv[1])][1:3]
want = came[6:12] + came[:6] + came[12:26] + came[30:34] + came[26:30] + came[36:38] + came[34:36] + came[38:]
print(went == want, came[:6].hex(), came[42:].hex())
PY
is "byte for byte, and turned around" "$(cat "$T/turned")" "True 020000000001 $(printf 'x%.0s' {1..20} | od -An -tx1 | tr -d ' \n')"

# --- a filter in the words of rules, in the kernel; cut packets; a pipe ---

dump "$T/some" -n 2 -s 64 proto udp dport 5000-5999 src 198.51.100.0/24
send proto=tcp dport=5000
send proto=udp dport=4999
send proto=udp dport=5000 size=300
send proto=udp src=203.0.113.5 dport=5001
send proto=udp dport=5999
ended
is "what the filter wants, cut" "$(lines "$T/some")" \
	"packet xc0 in 64 of 342 xdp 2 | pass by default: no rule matches it
packet xc0 in 60 of 60 xdp 2 | pass by default: no rule matches it"
like "the file knows the filter" "$(read_file "$T/some" | sed -n 2p)" \
	"snap 64 filter proto udp dport 5000-5999 src 198.51.100.0/24"
dump "$T/set" -n 1 src @friends
send proto=udp dport=5
send proto=udp src=203.0.113.77 dport=6
ended
is "a set of the list" "$(lines "$T/set")" "packet xc0 in 60 of 60 xdp 1 | drop by friends: the first rule that matches it"
# (the peer's kernel sends some of its own, for IPv6)
bg "$T/piped" "$AX" --instance "$INST" xdp dump xc0 -n 1 proto tcp
wait_for '[ -s "$T/piped" ]'
send proto=tcp dport=22
ended
like "on standard output" "$(lines "$T/piped")" "drop by no-ssh"
fails "what a rule does is no filter" xdp dump xc0 -w "$T/no" proto tcp action drop
fails "no such condition" xdp dump xc0 -w "$T/no" prot tcp
fails "no interface" xdp dump xc9 -w "$T/no"

# --- the list changes, is confirmed or not, while somebody looks ---

dump "$T/changes" -n 3
ok "another list" xdp rule add xc0 --at 1 name new proto tcp dport 22 action pass
wait_for "send proto=tcp dport=22; read_file '$T/changes' 2>/dev/null | grep -q 'pass by new'" ||
	diag "$(read_file "$T/changes")"
ended
ok "judged by it from the first packet on" test "$(lines "$T/changes" | grep -vc 'xdp 2')" = 0

# --- nothing is left ---

dump "$T/killed"
is "one at a time" "$(xdp dump xc0 -w "$T/second" 2>&1)" \
	"ax xdp dump: another command looks at the packets of xc0 (ax xdp dump or top): one at a time can"
# the program that looks at packets: its descriptor is the reader's alone
id=$(sed -n 's/^prog_id:[[:space:]]*//p' /proc/"$BG"/fdinfo/* | while read -r id; do
	[ "$(bpftool prog show id "$id" -j | jq -r .name)" = ax_tap ] && echo "$id"
done)
like "it is in the kernel" "$id" '^[0-9]+$'
kill -KILL "$BG"
wait "$BG" 2>/dev/null
n=$(count new)
send proto=tcp dport=22 n=5
is "packets are judged as before when it is killed" "$(count new)" $((n + 5))
ok "the kernel has given back what it had" wait_for "! bpftool prog show id $id >/dev/null 2>&1"
dump "$T/after" -n 1
send proto=tcp dport=22
ended
like "and the next one sees" "$(lines "$T/after")" "pass by new"

# --- top ---

bg "$T/top" "$AX" --instance "$INST" xdp top xc0 -o json -i 500ms proto tcp,udp
wait_for "[ -s '$T/top' ]"
send proto=udp src=198.51.100.3 dport=3000 n=300
send proto=udp src=198.51.100.4 dport=4000 n=100
send proto=tcp src=203.0.113.9 dport=22 n=20
wait_for "jq -se 'map(.packets) | add >= 420' '$T/top' >/dev/null" || diag "$(cat "$T/top")"
kill -INT "$BG"
ended
# heaviest KIND NAME: of all intervals together
heaviest() {
	jq -sr --arg k "$1" --arg n "$2" '[.[] | .seconds as $s | .[$k][] | {name: .[$n], n: (.packets_per_second * $s)}]
		| group_by(.name) | max_by(map(.n) | add) | .[0].name' "$T/top"
}
is "the heaviest source" "$(heaviest sources source)" 198.51.100.3
is "the heaviest port" "$(heaviest ports port)" "udp 3000"
is "the busiest rule" "$(heaviest rules rule)" default
is "sources together are all packets" "$(jq -s 'map(.seconds as $s | [.sources[].packets_per_second * $s] | add // 0) | add | round' "$T/top")" \
	"$(jq -s 'map(.packets) | add' "$T/top")"
xdp top xc0 --once -i 200ms proto udp >"$T/table"
like "a table" "$(head -n 1 "$T/table")" "^xc0: [0-9]+ packets/s, [0-9]+ bit/s$"

ok "unload" xdp unload xc0
xdp_done
