#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Of UDP only who was asked may answer: not whoever has the port of an allow rule as its source, to
# any port of its clients. In both modes and families; by sendto, connected sockets and raw ones.
# Floods of one app take no answers from others, and answers come while the agent is away.
. "$(dirname "$0")/lib.sh"
need "$PYTHON"

agent_start - <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	policy:
	  rules:
	    - allow: {from: {role: asker}, port: 7053, protocol: udp, name: ask}
	    - deny: {name: nothing-else}
EOC
answers=("$PYTHON" "$SRC/answers.py")

# asker MODE WORD...: what it prints is in $OUT
asker() {
	run_app --net "$1" --ip 10.77.1.9,fd77::1:9 --labels zone=default,role=asker -- \
		"${answers[@]}" ask "$family" "$to" 7053 "${@:2}"
}

for family in 4 6; do
	to=10.77.1.1
	[ $family = 4 ] || to=fd77::1:1
	for server in private host; do
		# (raw sockets of host mode have whatever source of this host they like)
		unset RAW
		[ $server = host ] || export RAW=1
		serve 7053/udp --net $server --ip 10.77.1.1,fd77::1:1 --name names --labels zone=default -- \
			"${answers[@]}" serve $family 7053 "$T/none"
		said=$OUT
		for client in private host; do
			w="IPv$family, $client to $server"
			: >"$said"
			asker $client once big attack once end
			ok "$w: who asks gets its answers" wait_for "! alive $APP"
			is "$w: those, and nothing else" "$(sort "$OUT" | tr '\n' ',')" "own 20000,own answer,own answer,"
			is "$w: who was not asked is refused" "$(grep -v answer "$said" | sort | tr '\n' ',')" \
				"connected EACCES,other EACCES,sendto EACCES,"
		done
		is "IPv$family: the rule let each question in" \
			"$(ax get policy -o json | jq '.[] | select(.name == "ask") | .hits > 0')" true
		stop_apps
	done
done

# --- shares, and the agent ---

family=4 to=10.77.1.1
for server in private host; do
	rm -f "$T/go"
	serve 7053/udp --net $server --ip 10.77.1.1 --name names --labels zone=default -- \
		"${answers[@]}" serve 4 7053 "$T/go"
	for client in private host; do
		rm -f "$T/go"
		asker $client later end
		bystander=$APP out=$OUT
		launched names
		is "$client to $server: a neighbour asks from many ports" \
			"$(in_app --net $client --labels zone=default,role=asker -- \
				"${answers[@]}" flood 4 10.77.1.1 7053 3000)" flooded
		agent_kill9
		touch "$T/go"
		ok "$client to $server: and an answer that is late still comes, without an agent" \
			wait_for "grep -q answer $out"
		ok "$client to $server: to its end" wait_for "! alive $bystander"
		agent_again
	done
	stop_apps
done
done_testing
