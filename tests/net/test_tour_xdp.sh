#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The tour of ax-xdp(8), run as it is written there, and what it prints.
. "$(dirname "$0")/lib.sh"
need ip python3 curl

# What is left when the script did not come to its end; nothing otherwise.
undo() {
	local rc=$? ns

	for ns in lab logs; do
		ip netns pids "$ns" 2>/dev/null | xargs -r kill
		ip netns del "$ns" 2>/dev/null
		ip link del "${ns}0" 2>/dev/null
	done
	return "$rc"
}
trap 'undo; on_exit' EXIT
tour_run ax-xdp.8 40
out=$(cat "$T/out")

# says WHAT TEXT: the output has it
says() {
	if [[ $out =~ $2 ]]; then
		pass "$1"
	else
		not_ok "$1" "not in the output: $2"
	fi
}
says "load" "lab0: 4 rules, default pass, generation 1"
says "stats" "web +1 +74 "
says "rule list" "bots +src 203.0.113.0/24 proto tcp dport 80 action drop"
says "set add" "lab0: set friends has 3 prefixes"
says "explain" "verdict  drop.*rule     name no-ssh .*first rule that matches"
says "apply with a confirmation" "4 rules, default drop.*unless: ax xdp confirm lab0"
says "confirm" "lab0: confirmed"
says "the capture" 'pass command  udp 198.51.100.2:[0-9]+ > 198.51.100.1:9000  52 bytes: lights on\\n'
says "the log" "drop closed  udp 198.51.100.2:[0-9]+ > 198.51.100.1:9001"
says "the slot" 'cmd: lights on.n \(10 bytes'
says "the redirected datagram arrives" "b'a line.n', \\('198.51.100.2'"
is "the VIP answers each time" "$(grep -cx 'one\|two' "$T/out")" 8
says "backends are counted" "shop +198.51.100.12:80 +up"
is "the kernel's verifier and libraries are not heard of" "$(grep -c '^libbpf' "$T/out")" 0
says "unload" "lab0: unloaded"
done_testing
