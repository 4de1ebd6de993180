#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# quick
# ax run: exit statuses, streams, signals, user, environment, detached apps, the pool.
. "$(dirname "$0")/lib.sh"
need python3 jq
build_c tcp
cp "$BIN/tcp" "$T/tcp" # where every user gets at it

agent_start - <<EOF
agent:
  pool: {ipv4: 10.77.9.0/29, ipv6: "$POOL6"}
apps:
  known:
    ip: 10.88.0.5
    env: {COLOUR: blue, SHAPE: round}
    labels: {team: red}
EOF

# status EXPECTED NAME ARGS...: ax run's exit status
status() {
	local expected=$1 name=$2
	shift 2
	in_app "$@" >"$T/out" 2>&1
	is "$name" "$?" "$expected"
}
for mode in private host; do
	status 0 "$mode: exit status 0" --net $mode -- true
	status 3 "$mode: exit status 3" --net $mode -- sh -c 'exit 3'
	status 127 "$mode: a command that does not exist" --net $mode -- /nonexistent
	like "$mode: and a sentence that names it" "$(cat "$T/out")" "/nonexistent"
	status 127 "$mode: a command that is not in PATH" --net $mode -- no-such-command-here
	status 126 "$mode: a file that is not executable" --net $mode -- "$T/resolv.conf"
	status 143 "$mode: ended by SIGTERM" --net $mode -- sh -c 'kill -TERM $$'
	status 137 "$mode: ended by SIGKILL" --net $mode -- sh -c 'kill -KILL $$'
	is "$mode: stdin and stdout are pipes of the caller" \
		"$(printf 'a\nb\nc\n' | "$AX" --instance "$INST" run --net $mode -- sort -r | tr '\n' ' ')" \
		"c b a "
	is "$mode: stderr is the caller's" \
		"$("$AX" --instance "$INST" run --net $mode -- sh -c 'echo to-stderr >&2' 2>&1 >/dev/null)" \
		to-stderr
	head -c 3000000 /dev/urandom >"$T/data"
	is "$mode: 3 MB through stdin and stdout" \
		"$("$AX" --instance "$INST" run --net $mode -- cat <"$T/data" | md5sum)" \
		"$(md5sum <"$T/data")"
	is "$mode: the caller's directory" "$(cd /usr/bin && in_app --net $mode -- pwd)" /usr/bin
	is "$mode: --directory" "$(in_app --net $mode --directory /usr/lib -- pwd)" /usr/lib
	is "$mode: the caller's environment, and --env" \
		"$(FROM_CALLER=1 in_app --net $mode --env A=1 --env 'B=two words' -- \
			sh -c 'echo $FROM_CALLER $A $B')" "1 1 two words"
	is "$mode: arguments arrive as they are" \
		"$(in_app --net $mode -- printf '%s|' 'a b' '' '$x' "it's" | cat)" "a b||\$x|it's|"
	leftovers "$mode: nothing is left of these"
done
is "private: the process runs in a network namespace of its own, host mode in the host's" \
	"$([ "$(in_app -- readlink /proc/self/ns/net)" != "$(readlink /proc/self/ns/net)" ] && echo own
	[ "$(in_app --net host -- readlink /proc/self/ns/net)" = "$(readlink /proc/self/ns/net)" ] &&
		echo host)" "own
host"
mounts=$(cat /proc/self/mountinfo)
is "private: /sys shows the app's network devices alone" \
	"$(in_app -- ls /sys/class/net | tr '\n' ' ')" "eth0 lo "
is "private: and the cgroups that are mounted below it" \
	"$(in_app -- sh -c "cat $CGROUP2/cgroup.controllers")" "$(cat "$CGROUP2/cgroup.controllers")"
is "private: the machine's own mounts stay as they are" \
	"$(diff <(echo "$mounts") /proc/self/mountinfo)" ""
like "private: lo is up and the address is there" \
	"$(in_app --ip 10.77.1.5,fd77::1:5 -- ip -o addr)" "127.0.0.1/8.*10.77.1.5/32.*fd77::1:5/128"
like "private: a default route for both families" \
	"$(in_app --ip 10.77.1.5,fd77::1:5 -- sh -c 'ip route; ip -6 route')" "default .*default "
like "the app's process is in its cgroup from its first instruction" \
	"$(in_app --name where -- cat /proc/self/cgroup)" "0::.*/$INST/where-[0-9]+"

# signals
run_app -- sh -c 'trap "echo got usr1" USR1; trap "echo got hup; exit 7" HUP; echo ready
	while :; do sleep 0.1; done'
wait_for "grep -q ready $OUT"
kill -USR1 $APP
wait_for "grep -q usr1 $OUT"
kill -HUP $APP
wait $APP
is "signals are passed on, and what the command makes of them comes back" "$?$(cat "$OUT")" \
	"7ready
got usr1
got hup"
APPS=()
run_app -- sleep 60
wait_for "[ -n \"\$(child_of $APP)\" ] && grep -q sleep /proc/\$(child_of $APP)/cmdline"
kill -TERM $APP
wait $APP
is "SIGTERM to ax run ends the command, and ax run with 143" $? 143
APPS=()

# users
user=$(in_app --user nobody --env HOME_SEEN=1 -- sh -c 'grep -E "^(Uid|Gid|Groups|Cap[A-Za-z]+):" \
	/proc/self/status; echo "HOME $HOME USER $USER"' | tr -s '\t ' ' ')
nobody=$(id -u nobody) nogroup=$(id -g nobody)
like "--user: uid and gid" "$user" "Uid: $nobody $nobody $nobody $nobody.*Gid: $nogroup $nogroup $nogroup $nogroup"
is "--user: no capability is left" \
	"$(grep -c '^Cap\(Inh\|Prm\|Eff\|Bnd\|Amb\): 0000000000000000$' <<<"$user")" 5
is "--user: HOME and USER" "$(tail -n 1 <<<"$user")" "HOME $(getent passwd nobody | cut -d: -f6) USER nobody"
# an entry of our own in this mount namespace's /etc/passwd and /etc/group
{ cat /etc/passwd; echo "axtest:x:64123:64124::/var/tmp:/bin/sh"; } >"$T/passwd"
{ cat /etc/group; echo "axmain:x:64124:"; echo "axextra:x:64125:axtest"; } >"$T/group"
mount --bind "$T/passwd" /etc/passwd
mount --bind "$T/group" /etc/group
is "--user: supplementary groups" \
	"$(in_app --user axtest -- sh -c 'id -u; id -g; id -G; echo $HOME; pwd -P >/dev/null; whoami' |
		tr '\n' ' ')" "64123 64124 64124 64125 /var/tmp axtest "
is "--user: a number" "$(in_app --user 64123 -- id -un)" axtest
fails "--user: one that does not exist is an error" in_app --user no-such-user -- true
is "--user: a low port may be bound, the namespace is its own" \
	"$(in_app --user nobody --ip 10.77.1.5 -- "$T/tcp" bind 4 0.0.0.0 80 | sed 's/ .*//')" \
	bound

# wrong command lines
# shellcheck disable=SC2086 # $args: words of a command line
for args in "--net foo -- true" "--ip 1.2.3 -- true" "--ip 127.0.0.1 -- true" "--name A_b -- true" \
	"--labels novalue -- true" "--nosuch -- true" "--env novalue -- true" "--wait soon -- true" ""; do
	in_app $args >"$T/out" 2>&1
	rc=$?
	if [ $rc -ne 0 ] && [ $rc -ne 124 ] && [ -s "$T/out" ] && ! grep -qi 'assert\|segfault' "$T/out"; then
		pass "refused with a sentence: ax run $args"
	else
		not_ok "refused with a sentence: ax run $args" "status $rc: $(cat "$T/out")"
	fi
done

# defaults of a declared app
is "ax run --name takes over what the config declares" \
	"$(in_app --name known -- sh -c 'echo $COLOUR $SHAPE; ip -o -4 addr show scope global |
		sed "s/.*inet \([^ ]*\) .*/\1/"' | tr '\n' ' ')" "blue round 10.88.0.5/32 "
is "and the command line wins" \
	"$(in_app --name known --env COLOUR=green -- sh -c 'echo $COLOUR $SHAPE')" "green round"
running() { ax get apps -o json | jq -r '.[] | select(.state == "running") | .name'; }
run_app -- sh -c 'exec sleep 60'
wait_for '[ "$(running)" = sh ]'
is "no --name: one made from the command" "$(running)" sh
stop_app "$APP"
wait_for '[ -z "$(running)" ]'

# detached
out=$(ax run --detach --name service1 --ip 10.77.1.7 -- sh -c 'echo to stdout; echo to stderr >&2
	exec sleep 60')
like "--detach prints the app" "$out" "service1.*10.77.1.7"
ok "it runs" launched service1
pid=$(ax get apps -o json | jq -r '.[] | select(.name == "service1") | .pid')
like "its pid is the command's" "$(tr '\0' ' ' <"/proc/$pid/cmdline")" "sleep 60"
wait_for "ax logs service1 | grep -q stderr"
is "ax logs has both streams" "$(ax logs service1)" "to stdout
to stderr"
is "ax logs by id, the last line" \
	"$(ax logs --tail 1 "$(ax get apps -o json | jq -r '.[] | select(.name == "service1") | .id')")" \
	"to stderr"
ok "ax stop" ax stop service1
ok "after ax stop the process is gone" test ! -e "/proc/$pid"
is "and the app too" "$(ax get apps -o json | jq -r '.[] | select(.name == "service1") | .state')" ""
fails "ax stop of an app that is not there" ax stop service1
in_app --detach -- /nonexistent >"$T/out" 2>&1
is "--detach of a command that does not exist" "$?" 127
ax run --detach --name stubborn -- sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done' >/dev/null
wait_for "ax logs stubborn | grep -q ready"
start=${EPOCHREALTIME/./}
ok "ax stop of an app that ignores SIGTERM" ax stop --timeout 500ms stubborn
like "takes its time-out, not much more" "$(((${EPOCHREALTIME/./} - start) / 1000))" \
	"^([5-9][0-9][0-9]|[1-7][0-9][0-9][0-9])$" # 10 s if nobody says it
ax run --detach --restart on-failure --name flaky -- sh -c 'echo start; sleep 0.1; exit 1' >/dev/null
ok "--restart on-failure starts it again" \
	wait_for "[ \"\$(ax get apps -o json | jq '.[] | select(.name == \"flaky\") | .restarts')\" -ge 2 ]"
ok "ax stop ends that too" ax stop flaky
sleep 0.5
is "for good" "$(ax get apps -o json | jq -c '[.[] | select(.name == "flaky")] | length')" 0

# addresses are there again as soon as their apps have ended, however fast that goes
for mode in private host; do
	busy=0
	for _ in $(seq 30); do
		"$AX" --instance "$INST" run --net $mode -- true || busy=$((busy + 1))
	done
	is "$mode: thirty apps, one after the other, from a pool of five addresses" "$busy" 0
done

# the pool: 10.77.9.0/29 holds the agent's own address and few others
for _ in 1 2 3 4 5 6 7 8; do
	run_app -- sleep 60
done
sleep 1
grep -l . "$T"/run.* >/dev/null
out=$(in_app -- true 2>&1)
is "an empty pool is an error of ax" "$?" 125
like "with a sentence about the pool" "$out" "pool"
stop_apps
status 0 "and addresses come back when apps end" -- true
done_testing
