#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# A rule that stands in the config before and after a change holds at every moment: also while a
# file is applied in which it has another place, and while an agent starts with such a file.
. "$(dirname "$0")/lib.sh"
build_c knock
POOL4=10.77.0.0/17 # none of the thousand that are declared gets an address of those below

# Two files; what guests may not do stands in both, at another place and among other labels.
config() {
	cat <<-EOC
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		policy:
		  rules:
	EOC
	if [ "$1" = a ]; then
		cat <<-EOC
			    - deny: {from: {role: guest}, to: {role: vault}}
			    - allow: {from: {zone: default}, to: {zone: default}}
		EOC
	else
		cat <<-EOC
			    - allow: {from: {role: auditor}}
			    - allow: {from: {tier: back}, to: {tier: back}}
			    - deny: {from: {role: guest}, to: {role: vault}}
		EOC
	fi
	echo "apps:"
	for i in $(seq 1000); do
		echo "  $1$i: {labels: {zone: default, tier: $1, n: $((i % 50)), side: $1$((i % 7))}}"
	done
}
config a >"$T/a.yaml"
config b >"$T/b.yaml"
agent_start "$T/a.yaml"
serve 7000 --ip 10.77.200.1 --labels zone=default,role=vault -- "$BIN/knock" server 4 0.0.0.0 7000
serve 7000 --ip 10.77.200.2 --net host --labels zone=default,role=vault -- \
	"$BIN/knock" server 4 0.0.0.0 7000

# client MODE ROLE ADDR
declare -A out
clients=()
client() {
	run_app --net "$1" --labels "zone=default,role=$2" -- "$BIN/knock" client 4 "$3" 7000
	out[$*]=$OUT
	clients+=("$APP")
	wait_for "grep -q ready $OUT" || not_ok "the client knocks" "$(cat "$OUT")"
}
client private guest 10.77.200.1
client host guest 10.77.200.2
client private other 10.77.200.1

refused=0
for i in 1 2 3 4 5; do
	ax config apply "$T/b.yaml" >"$T/apply" 2>&1 || refused=$i
	ax config apply "$T/a.yaml" >"$T/apply" 2>&1 || refused=$i
done
is "ten files were applied" "$refused" 0
for i in 1 2 3 4 5; do
	for file in b a; do
		cp "$T/$file.yaml" "$T/$INST.yaml"
		agent_stop
		agent_again || refused=$i
	done
done
is "ten agents started with another file than the last" "$refused" 0
for pid in "${clients[@]}"; do
	stop_app "$pid"
done
for who in "private guest 10.77.200.1" "host guest 10.77.200.2"; do
	like "no connection of a $who" "$(tail -n 1 "${out[$who]}")" "^EACCES=[0-9]{3,}$"
done
like "and all of another client" "$(tail -n 1 "${out[private other 10.77.200.1]}")" \
	"^connected=[0-9]{3,}$"
done_testing
