#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 300
# Connects that wait for a service get whoever listens first of its backends: of several that run and do not
# listen, of some that there were not yet when they began to wait, of those that are drained or down.
# Whom policy refuses all of them waits in vain, and does not see that somebody came.
. "$(dirname "$0")/lib.sh"
build_c tcp waiting


config() {
	cat <<-END
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  several: {ip: "10.77.200.1,fd77::200:1", ports: ["80:7000"], backends: [one, two, three], wait: 60s}
		  nobody: {ip: "10.77.200.2,fd77::200:2", ports: ["80:7000"], backends: [later, {labels: "tier=late"}], wait: 60s}
		  short: {ip: "10.77.200.3,fd77::200:3", ports: ["80:7000"], backends: [later, four], wait: 2s}
		  plain: {ip: "10.77.200.4,fd77::200:4", ports: ["80:7000"], backends: [one, two, three]}
		  checked:
		    ip: 10.77.200.5,fd77::200:5
		    ports: ["80:7000"]
		    backends: [one, two]
		    check: {type: tcp, every: 200ms, fall: 1, rise: 1}
		    wait: 60s
		  mixed: {ip: "10.77.200.6,fd77::200:6", ports: ["80:7000"], backends: [priv, hosted], wait: 60s}
		policy:
		  rules:
		    - deny: {from: {role: guest}, to: {role: vault}}
	END
}
agent_start - < <(config)

# listens_when FILE NAME [tcp's options]: the command of an app that begins to listen when the file is there
late_command() {
	echo "while [ ! -e $1 ]; do sleep 0.02; done; exec $BIN/tcp listen 6 :: 7000 $2"
}

# clients MODE SERVICE: of every kind, which wait; their pids in PIDS, what they print in OUTS
clients() {
	local mode=$1 n=$2 to
	PIDS=() OUTS=()
	for to in "4 10.77.200.$n 80" "4 10.77.200.$n 80 -n" "6 fd77::200:$n 80" "6 fd77::200:$n 80 -n" \
		"6 10.77.200.$n 80"; do
		# shellcheck disable=SC2086 # its words
		run_app --net "$mode" "${@:3}" -- "$BIN/tcp" connect $to
		PIDS+=("$APP") OUTS+=("$OUT")
	done
	for i in "${!PIDS[@]}"; do
		wait_for "child_of ${PIDS[$i]}"
	done
	sleep 0.6
	is "$mode client, service $n: nobody has failed, nor got anywhere" "$(cat "${OUTS[@]}")" ""
}

# all_get NAME SERVICE SERVER: each of them is connected to that server, and sees the service's address
all_get() {
	local i
	for i in "${!PIDS[@]}"; do
		wait_for "! alive ${PIDS[$i]}"
		like "$1: connect $i" "$(cat "${OUTS[$i]}")" \
			"^peer=.*(10.77.200.$2|fd77::200:$2).*:80 local=.* $3 you="
	done
}

for client in private host; do
	for mode in private host; do
		w="$client client, $mode servers"
		rm -f "$T/two"

		# several that run, and do not listen
		for name in one three; do
			run_app --name $name --net $mode -- sleep 1000
		done
		run_app --name two --net $mode -- sh -c "$(late_command "$T/two" two)"
		launched one two three
		clients $client 1
		touch "$T/two"
		all_get "$w, several" 1 two
		like "$w: who does not wait gets it, too" \
			"$(in_app --net $client -- "$BIN/tcp" connect 4 10.77.200.4 80)" " two you="
		stop_apps

		# nobody, not even one that is declared
		clients $client 2
		serve 7000 --net $mode --name later -- "$BIN/tcp" listen 6 :: 7000 later
		all_get "$w, nobody, by name" 2 later
		stop_apps
		clients $client 2
		serve 7000 --net $mode --labels zone=default,tier=late -- "$BIN/tcp" listen 6 :: 7000 labelled
		all_get "$w, nobody, by labels" 2 labelled
		stop_apps

		# who the server sees, and what becomes of a connection when the agent dies
		run_app --net $client --ip 10.77.1.8 -- "$BIN/tcp" connect 4 10.77.200.2 80 -k 4
		pid=$APP out=$OUT
		wait_for "child_of $pid"
		sleep 0.3
		serve 7000 --net $mode --name later -- "$BIN/tcp" listen 6 :: 7000 later
		wait_for "grep -q you= $out"
		like "$w: the server sees the client's own address" "$(cat "$out")" \
			"^peer=10.77.200.2:80 local=10.77.1.8:.* later you=.*10.77.1.8\\]?:"
		agent_kill9
		agent_again
		wait_for "! alive $pid"
		like "$w: the connection outlives the agent" "$(cat "$out")" "echoed again"
		stop_apps

		# drained, and down
		serve 7000 --net $mode --name one -- "$BIN/tcp" listen 6 :: 7000 one
		ok "$w: one is drained" ax service drain several one
		clients $client 1
		ok "$w: and no more" ax service drain several one --undo
		all_get "$w, drained" 1 one
		stop_apps
		rm -f "$T/two"
		run_app --name one --net $mode -- sleep 1000
		run_app --name two --net $mode -- sh -c "$(late_command "$T/two" two)"
		launched one two
		wait_for "[ \$(ax get services -o json | jq '[.[] | select(.name == \"checked\") | .backends[] |
			select(.state == \"down\")] | length') = 4 ]"
		clients $client 5
		touch "$T/two"
		all_get "$w, down" 5 two
		stop_apps

		# whom policy refuses: at once, if somebody is there; else it waits, and does not see who comes
		rm -f "$T/two"
		run_app --name one --net $mode --labels zone=default,role=vault -- sleep 1000
		run_app --name two --net $mode --labels zone=other -- sh -c "$(late_command "$T/two" two)"
		launched one two
		timed 1999 in_app --net $client --labels zone=default,role=guest -- "$BIN/tcp" connect 4 10.77.200.1 80
		like "$w: who may have none is refused" "$PRINTED" "^error connect (EACCES|ECONNREFUSED)$"
		like "$w: at once ($TOOK ms)" "$TOOK" "^[0-9]{1,4}$"
		stop_apps
		for labels in zone=other zone=default,role=guest; do
			clients $client 2 --labels $labels
			serve 7000 --net $mode --name later --labels zone=default,role=vault -- \
				"$BIN/tcp" listen 6 :: 7000 later
			sleep 1.5
			is "$w, $labels: who may not have it waits on" "$(cat "${OUTS[@]}")" ""
			serve 7000 --net $mode --labels "$labels,tier=late" -- "$BIN/tcp" listen 6 :: 7000 mine
			all_get "$w, $labels: and gets whom it may have" 2 mine
			stop_apps
		done
	done

	# the wait is bounded
	for to in "4 10.77.200.3 80" "6 fd77::200:3 80" "4 10.77.200.3 80 -n"; do
		# shellcheck disable=SC2086
		timed 4999 in_app --net $client -- "$BIN/tcp" connect $to
		like "$client: a service of nobody: the wait is bounded" "$PRINTED" \
			"^error connect (ECONNREFUSED|ETIMEDOUT)$"
		like "$client: about two seconds ($TOOK ms)" "$TOOK" "^(1[89][0-9][0-9]|[234][0-9][0-9][0-9])$"
	done
	for mode in private host; do
		for name in later four; do
			run_app --name $name --net $mode -- sleep 1000
		done
		launched later four
		timed 4999 in_app --net $client -- "$BIN/tcp" connect 4 10.77.200.3 80
		like "$client: $mode apps that do not listen: the wait is bounded" "$PRINTED" \
			"^error connect (ECONNREFUSED|ETIMEDOUT)$"
		like "$client: about two seconds ($TOOK ms)" "$TOOK" "^(1[89][0-9][0-9]|[234][0-9][0-9][0-9])$"
		stop_apps
	done
	timed 999 in_app --net $client -- "$BIN/tcp" connect 4 10.77.200.4 80
	is "$client: a service that does not wait has nobody" "$PRINTED" "error connect EHOSTUNREACH"
	run_app --net $client --wait 60s -- "$BIN/tcp" connect 4 10.77.200.4 80
	pid=$APP out=$OUT
	wait_for "child_of $pid"
	sleep 0.3
	serve 7000 --name three -- "$BIN/tcp" listen 6 :: 7000 three
	wait_for "! alive $pid"
	like "$client: but an app that does gets who comes" "$(cat "$out")" "^peer=10.77.200.4:80 .* three you="
	stop_apps

	# soon after listen(): TCP's own tries come later
	for mode in private host; do
		run_app --net $client -- "$BIN/waiting" connect 4 10.77.200.2 80 50 -n
		pid=$APP out=$OUT
		wait_for "grep -q waits $out"
		sleep 2.2
		run_app --name later --net $mode -- "$BIN/waiting" listen 6 :: 7000
		wait_for "! alive $pid"
		is "$client client, $mode server: all are connected" "$(grep -c ^connected "$out")" 50
		all=$(awk -v t="$(awk '/^listens/ { print $2 }' "$OUT")" \
			'/^connected/ { printf "%.1f\n", ($2 - t) / 1e6 }' "$out" | sort -n)
		diag "$client client, $mode server: median $(sed -n 25p <<<"$all") ms, last $(tail -n 1 <<<"$all") ms after listen()"
		like "$client client, $mode server: the last before TCP would try again" "$(tail -n 1 <<<"$all")" \
			"^[1-7]?[0-9]{1,2}\."
		stop_apps
	done

	# backends of both modes: whoever was chosen, and comes, is had
	run_app --net $client -- "$BIN/tcp" connect 4 10.77.200.6 80
	pid=$APP out=$OUT
	wait_for "child_of $pid"
	sleep 0.3
	serve 7000 --net host --name hosted -- "$BIN/tcp" listen 6 :: 7000 hosted
	wait_for "! alive $pid"
	like "$client: of both modes, the first is in host mode" "$(cat "$out")" " hosted you="
	stop_apps
	for first in hosted priv; do
		rm -f "$T/first.hosted" "$T/first.priv"
		run_app --name hosted --net host -- sh -c "$(late_command "$T/first.hosted" hosted)"
		run_app --name priv -- sh -c "$(late_command "$T/first.priv" priv)"
		launched hosted priv
		clients $client 6
		touch "$T/first.$first"
		all_get "$client: both modes run, $first listens first" 6 $first
		stop_apps
	done
done

# A socket that has bound another address of the machine would be taken for a program outside ax there, which
# policy between apps is not asked for: it does not wait. Nor does one whose device keeps it from its address.
ip addr add 192.0.2.9/32 dev lo
for labels in zone=default zone=other; do
	timed 999 in_app --net host --labels $labels -- "$BIN/tcp" connect 4 10.77.200.2 80 -b 192.0.2.9 0
	is "$labels: an address of the host's as source" "$PRINTED" "error connect EHOSTUNREACH"
done
ip addr del 192.0.2.9/32 dev lo
run_app --name one -- sleep 1000 # (for the sake of which there is a device of services)
launched one
wait_for "ip link show $INST-svc"
pids=() outs=()
for dev in lo "$INST-svc"; do
	for to in 10.77.200.2 fd77::200:2; do
		run_app --net host --wait 3s -- "$PYTHON" -c '
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET)
s.settimeout(6)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
print("asks")
sys.stdout.flush()
try:
    s.connect((sys.argv[2], 80))
    print("is connected by", sys.argv[1], "to", sys.argv[2])
except OSError:
    pass' "$dev" $to
		pids+=("$APP") outs+=("$OUT")
		wait_for "grep -q asks $OUT"
	done
done
sleep 0.3
serve 7000 --name vault --labels zone=vault,tier=late -- "$BIN/tcp" listen 6 :: 7000 vault
for pid in "${pids[@]}"; do
	wait_for "! alive $pid"
done
is "by whatever device, nobody gets past policy" "$(cat "${outs[@]}" | sort -u)" asks
stop_apps
done_testing
