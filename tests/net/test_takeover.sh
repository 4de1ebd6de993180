#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What a restart of the agent must not change for a moment: who may connect to whom, the backends of
# services, connections of programs outside ax; and what the next agent makes of a config that
# changed meanwhile, and of an app whose record is too long.
. "$(dirname "$0")/lib.sh"
need socat jq
build_c knock tcp

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  svc:
		    ip: 10.77.200.1
		    ports: ["80:7000"]
		    backends: [echo]
		policy:
		  rules:
		    - deny: {from: {role: guest}, to: {role: vault}}
		    - allow: {from: {role: auditor}, to: {role: vault}}
	EOF
}
agent_start - < <(config)

# --- killed under load ---

serve 7000 --name vault --ip 10.77.1.1 --labels zone=a,role=vault -- "$BIN/knock" server 4 0.0.0.0 7000
serve 7000 --name hvault --net host --ip 10.77.1.2 --labels zone=a,role=vault -- \
	"$BIN/knock" server 4 0.0.0.0 7000
for mode in private host; do
	ip=10.77.5.1
	[ $mode = private ] || ip=10.77.5.2
	serve 7000 --net $mode --name trio-$mode --ip $ip -- "$BIN/knock" server 4 0.0.0.0 7000
	for _ in 2 3; do
		serve 7000 --net $mode --name trio-$mode -- "$BIN/knock" server 4 0.0.0.0 7000
	done
	# a service whose first app, the address's owner, has ended
	serve 7000 --net $mode --name heirs-$mode --ip 10.77.52.${ip##*.} -- \
		"$BIN/knock" server 4 0.0.0.0 7000
	owner=$APP
	for _ in 2 3; do
		serve 7000 --net $mode --name heirs-$mode -- "$BIN/knock" server 4 0.0.0.0 7000
	done
	stop_app "$owner"
done

KNOCKERS=()
# knocker WHAT RESULT MODE LABELS ADDR: a client under load; RESULT is all that it may see
knocker() {
	run_app --net "$3" --labels "$4" -- "$BIN/knock" client 4 "$5" 7000
	KNOCKERS+=("$APP|$OUT|$1|$2")
}
knocker "only an allow rule, private" connected private zone=c,role=auditor 10.77.1.1
knocker "only an allow rule, host mode" connected host zone=c,role=auditor 10.77.1.2
knocker "a deny rule, private" EACCES private zone=a,role=guest 10.77.1.1
knocker "a deny rule, host mode" EACCES host zone=a,role=guest 10.77.1.2
knocker "only a label, private" connected private zone=a 10.77.1.1
knocker "only a label, from host mode to private" connected host zone=a 10.77.1.1
knocker "an app that shares neither label nor rule" ECONNREFUSED private zone=z 10.77.1.1
knocker "three private apps of one name" connected private zone=default 10.77.5.1
knocker "three host-mode apps of one name" connected host zone=default 10.77.5.2
knocker "a host-mode client of three private apps" connected host zone=default 10.77.5.1
knocker "private apps of one name without the first" connected private zone=default 10.77.52.1
knocker "host-mode apps of one name without the first" connected host zone=default 10.77.52.2
for k in "${KNOCKERS[@]}"; do
	out=${k#*|}
	wait_for "grep -q ready ${out%%|*}"
done

# a program outside ax, with a connection to a service that has private backends
serve 7000 --name echo --ip 10.77.6.1 -- socat TCP4-LISTEN:7000,fork PIPE
serve 7000 --name echo -- socat TCP4-LISTEN:7000,fork PIPE
mkfifo "$T/to-svc"
bg "$T/from-svc" sh -c "exec socat - TCP4:10.77.200.1:80 <$T/to-svc"
HOST_CLIENT=$BG
exec 8>"$T/to-svc"
echo "before" >&8
ok "a program outside ax has a connection to a service" wait_for "grep -q ^before $T/from-svc"

# backends NAME: the IPv4 addresses behind it; the first app's is the service's own
backends() {
	ax get services -o json | jq -c --arg n "$1" '.[] | select(.name == $n) |
		[.ip4, ([.backends[].address | select(contains(":") | not)] | sort)]'
}
declare -A BACKENDS
for name in trio-private trio-host heirs-private heirs-host echo svc; do
	BACKENDS[$name]=$(backends $name)
done
for mode in private host; do
	ip=10.77.5.1
	[ $mode = private ] || ip=10.77.5.2
	is "$mode: the service of three apps has three backends, the owner among them" \
		"$(jq -c --arg ip $ip '[.[0], (.[1] | length), (.[1] | index($ip) != null)]' \
			<<<"${BACKENDS[trio-$mode]}")" "[\"$ip\",3,true]"
done

for round in 1 2 3; do
	agent_kill9
	sleep 0.3
	agent_again 8>&-
	for name in trio-private trio-host heirs-private heirs-host echo svc; do
		is "round $round: the backends of $name are as before" "$(backends $name)" \
			"${BACKENDS[$name]}"
	done
	echo "round $round" >&8
	ok "round $round: the connection of the program outside ax goes on" \
		wait_for "grep -q '^round $round' $T/from-svc"
done
sleep 0.3
for k in "${KNOCKERS[@]}"; do
	IFS='|' read -r pid out what result <<<"$k"
	end "$pid"
	like "3 agents killed: $what: $result, never anything else" "$(tail -n 1 "$out")" \
		"^$result=[0-9]{3,}$"
done
exec 8>&-
wait_for "! alive $HOST_CLIENT"
stop_apps
leftovers "3 agents killed under load: nothing is left"

# --- the config changes while no agent runs ---

# write COMMAND [MORE]
write() {
	cat >"$T/$INST.yaml" <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		apps:
		  steady: {command: [sleep, "1000"], ip: 10.77.2.1}
		  hsteady: {command: sleep 1000, net: host, restart: always, env: {A: b}}
		  changed: {command: [sleep, "$1"]}
		${2:-}
	EOF
}
pid_of() {
	ax get apps -o json |
		jq -r --arg n "$1" '.[] | select(.name == $n and .state == "running") | .pid'
}
steady='' hsteady='' changed='' removed='' # their processes
for how in kill stop; do
	write 1000 '  removed: {command: [sleep, "1000"], restart: always}'
	# what systemd tells the agent is not for apps
	[ $how = kill ] || export NOTIFY_SOCKET=$T/nobody.sock
	if [ "$how" = kill ]; then agent_kill9; else agent_stop; fi
	agent_again
	unset NOTIFY_SOCKET
	ok "$how: the declared apps run" launched steady hsteady changed removed
	for name in steady hsteady changed removed; do
		eval "$name=$(pid_of $name)"
	done
	if [ $how = stop ]; then
		is "the agent itself has NOTIFY_SOCKET" \
			"$(tr '\0' '\n' <"/proc/$AGENT/environ" | grep -c ^NOTIFY_SOCKET=)" 1
		# restart: always is another way to be started
		kill -KILL "$hsteady" "$removed"
		wait_for "! [[ \$(pid_of hsteady) =~ ^($hsteady|)\$ ]] &&
			! [[ \$(pid_of removed) =~ ^($removed|)\$ ]]"
		hsteady=$(pid_of hsteady) removed=$(pid_of removed)
		for pid in "$changed" "$hsteady" "$removed"; do
			is "an app that the agent started has an environment without NOTIFY_SOCKET" \
				"$(tr '\0' '\n' <"/proc/$pid/environ" | grep -c '^PATH=\|^NOTIFY_SOCKET=' ||
					echo unreadable)" 1
		done
	fi
	if [ "$how" = kill ]; then agent_kill9; else agent_stop; fi
	write 1001
	agent_again
	ok "$how: an app that was taken out of the config meanwhile is ended" \
		wait_for "[ ! -e /proc/$removed ]"
	ok "$how: and is not listed" wait_for "! ax get apps -o name | grep -q removed"
	ok "$how: one whose command has changed is started anew" \
		wait_for "[ ! -e /proc/$changed ] && [ -n \"\$(pid_of changed)\" ]"
	is "$how: with the new command" "$(tr '\0' ' ' <"/proc/$(pid_of changed)/cmdline")" "sleep 1001 "
	is "$how: those that did not change keep their processes" \
		"$(pid_of steady) $(pid_of hsteady)" "$steady $hsteady"
	ok "$how: which are there" sh -c "kill -0 $steady && kill -0 $hsteady"
done
config >"$T/$INST.yaml"
ok "without the apps nothing runs" ax config apply "$T/$INST.yaml"
wait_for "[ -z \"\$(ax get apps -o name)\" ]"

# --- a command line that no cgroup record can hold ---

long=$(printf '%070000d' 0)
for mode in private host; do
	run_app --net $mode --name long --ip 10.77.3.1 -- \
		sh -c "exec \"$BIN/tcp\" listen 4 0.0.0.0 7000 long" sh "$long"
	ok "$mode: an app with 70,000 bytes of arguments starts" \
		wait_for "[ -n \"\$(pid_of long)\" ] && listens $APP 7000"
	pid=$(pid_of long)
	agent_kill9
	agent_again
	is "$mode: the next agent lists it" \
		"$(ax get apps -o json | jq -c '.[] | select(.name == "long") | [.ip4, .state, .pid]')" \
		"[\"10.77.3.1\",\"running\",$pid]"
	like "$mode: it is reached" "$(in_app -- "$BIN/tcp" connect 4 10.77.3.1 7000)" " long you="
	stop_app "$APP"
	ok "$mode: and is undone when it ends" wait_for "[ -z \"\$(ax get apps -o name)\" ]"
done
leftovers "nothing is left of it"
done_testing
