#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# UDP sockets that are connected, by a name, to an app of another node that has ended: they are ended, and their
# programs get another one, though no config says anything of that name.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
build_c udp

CLUSTER='  routes: direct'
nodes_with_ways 2

on n2
serve 7001/udp --name far -- "$BIN/udp" serve 4 0.0.0.0 7001 one
one=$APP
serve 7001/udp --name far -- "$BIN/udp" serve 4 0.0.0.0 7001 two
two=$APP
on n1
ok "n1 has a service of the name" wait_for -t 60 \
	'ax get services far -o json | jq -e "[.[0].backends[] | select(.address | test(\":\") | not)] | length == 2"'
to=$(ax get services far -o json | jq -r '.[0].ip4')
OUTS=()
for client in private host; do
	for _ in 1 2 3 4; do
		run_app --net $client -- "$BIN/udp" follow 4 "$to" 7001 150
		OUTS+=("$OUT")
	done
done
# those of one, or of two
first=() second=()
for out in "${OUTS[@]}"; do
	wait_for "grep -qE 'one|two' $out"
	if grep -q one "$out"; then first+=("$out"); else second+=("$out"); fi
done
diag "${#first[@]} have one, ${#second[@]} two"
on n2
if [ ${#first[@]} -gt 0 ]; then
	stop_app "$one"
	other=two
else
	stop_app "$two"
	other=one first=("${second[@]}") second=()
fi
on n1
for out in "${first[@]}"; do
	ok "the app that it had on the other node has ended: it gets the other one" \
		wait_for -t 60 "[ \"\$(grep -v error $out | tail -n 1)\" = $other ]"
done
is "those of the other one go on" "$(cat /dev/null "${second[@]}" | grep -v $other)" ""
# Those whose sockets were ended say ECONNABORTED; who was told by ICMP before (ECONNREFUSED) has made another one itself.
# At least as many: who connects to it once more before this node knows of its end is told once more.
ended() {
	local n
	n=$(ax get services far -o wide | grep -oP 'udp, \K[0-9]+(?= ended)')
	[ "${n:-0}" -ge "$(cat "${first[@]}" | grep -c ECONNABORTED)" ]
}
ok "it is shown" wait_for ended
stop_apps
nodes_flush n1 n2
nodes_end n1 n2
done_testing
