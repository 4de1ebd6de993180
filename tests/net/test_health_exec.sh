#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Health checks that are commands: what they get, as whom and where they run, what is said of their
# end, what becomes of those that hang; who may say one.
. "$(dirname "$0")/lib.sh"
need jq setpriv
build_c tcp

chmod 711 "$T"
# a group ax of this mount namespace's own, before the agent looks for it
{ sed '/^ax:/d' /etc/group; echo "ax:x:64999:"; } >"$T/group"
mount --bind "$T/group" /etc/group
mkdir "$T/said"
for f in e1 e2 hanging left strayed; do
	: >"$T/said/$f"
	chmod 666 "$T/said/$f"
done

# What it does is in a file for each backend.
cat >"$T/check" <<EOF2
#!/bin/sh
who="\$(id -un) \$(id -u) \$(id -g) \$(readlink /proc/self/ns/net)"
echo "\$AX_CHECK_SERVICE \$AX_CHECK_APP \$AX_CHECK_ADDRESS \$AX_CHECK_PORT \$who \$*" >>"$T/said/\$AX_CHECK_APP"
. "$T/mood.\$AX_CHECK_APP"
EOF2
chmod 755 "$T/check"
mood() {
	echo "$2" >"$T/mood.new"
	chmod 644 "$T/mood.new"
	mv "$T/mood.new" "$T/mood.$1"
}

# config HOST_ACCESS USER
config() {
	cat <<-EOF2
		agent:
		  pool: {ipv4: $POOL4}
		  host_access: $1
		services:
		  web:
		    ip: 10.77.200.1
		    ports: ["80:8000"]
		    backends: [e1, e2]
		    check: {type: exec, command: ["$T/check", "a b", c], every: 500ms, timeout: 500ms, fall: 2, rise: 1${2:+, user: $2}}
	EOF2
}
states() {
	ax get services -o json | jq -r --arg s "${1:-web}" '.[] | select(.name == $s) | .backends |
		map((.app // .address) + "=" + (.state // "-")) | sort | unique | join(" ")'
}
becomes() {
	ok "$1" wait_for "[ '$2' = \"\$(states ${3:-web})\" ]" || diag "states: $(states "${3:-web}")"
}
why() {
	ax get services -o json | jq -r --arg b "$1" '.[] | select(.name == "web") |
		.backends | map(select(.app == $b) | .why // "")[0]'
}
# any_alive FILE: of the pids in it
any_alive() {
	local pid
	while read -r pid; do
		! alive "$pid" || return 0
	done <"$T/said/$1"
	return 1
}
says() {
	ok "$1" wait_for "grep -qxF '$3' $T/said/$2" || diag "said: $(tail -n 3 "$T/said/$2")"
}

mood e1 "exit 0"
mood e2 "exit 0"
agent_start - < <(config true)
bg "$T/events" "$AX" --instance "$INST" events -f -o json
EVENTS=$BG
serve 8000 --net private --name e1 --ip 10.77.1.1 -- "$PYTHON" -m http.server 8000
E1=$APP
serve 8000 --net host --name e2 --ip 10.77.1.2 -- "$PYTHON" -m http.server 8000

becomes "commands that end with 0 make backends up" "e1=up e2=up"
here=$(readlink /proc/self/ns/net)
nobody="nobody $(id -u nobody) $(id -g nobody)"
says "what it gets, as whom and where, of a private app" e1 "web e1 10.77.1.1 8000 $nobody $here a b c"
says "and of a host-mode app" e2 "web e2 10.77.1.2 8000 $nobody $here a b c"

mood e1 'echo "disk is full"; echo more; exit 3'
becomes "another status makes it down" "e1=down e2=up"
ok "and is the reason, with the first line" wait_for "[ \"\$(why e1)\" = 'exit status 3: disk is full' ]"
# (on a machine with much else to do one may take longer, and that is the reason then)
wait_for "ax get services -o wide | grep -q 'e1 10.77.1.1: exit status 3: disk is full'"
like "the table has it" "$(ax get services -o wide)" "e1 10.77.1.1: exit status 3: disk is full"
ok "the event has it" wait_for "jq -c 'select(.event == \"health\" and .app == \"e1\" and
	.why == \"exit status 3: disk is full\")' <$T/events | grep -q ."
# shellcheck disable=SC2016
mood e1 'printf "\\033[31m\\377bad\\n"; exit 1'
ok "what could harm a terminal is not passed on" wait_for \
	"ax get services -o json | jq -e '.[].backends[] | select(.why == \"exit status 1: ?[31m?bad\")'"
# shellcheck disable=SC2016
mood e1 'kill -9 $$'
ok "a signal" wait_for "ax get services -o json | grep -q 'ended by signal 9'"
mood e1 'yes | head -c 1000000; exit 0'
becomes "much output does no harm" "e1=up e2=up"

# shellcheck disable=SC2016
mood e1 'cd '"$T"'/said; echo $$ >>hanging; sleep 1000 & echo $! >>hanging
	setsid sh -c "echo \$\$ >>hanging; setsid sleep 1000 & echo \$! >>hanging; sleep 1000" & sleep 1000'
becomes "one that hangs makes it down" "e1=down e2=up"
ok "and why" wait_for "[ \"\$(why e1)\" = 'no answer in time' ]"
mood e1 'exit 0'
becomes "it is back" "e1=up e2=up"
ok "those that hung were killed, and what they had started, in whichever session" wait_for "! any_alive hanging" ||
	diag "$(ps -o pid,ppid,sid,args -p "$(paste -sd, "$T/said/hanging")")"
ok "of all four that there are each time" test "$(wc -l <"$T/said/hanging")" -ge 8
ok "and reaped" wait_for "! ps -o stat= --ppid $AGENT | grep -q Z"

# what one that ends in time leaves behind
# shellcheck disable=SC2016
mood e1 'setsid sleep 1000 >/dev/null 2>&1 & echo $! >'"$T"'/said/hanging; exit 0'
: >"$T/said/hanging"
wait_for "[ -s $T/said/hanging ]"
LEFT=$(cat "$T/said/hanging")
mood e1 'exit 0'
ok "what a command leaves behind ends with it" wait_for "! kill -0 $LEFT 2>/dev/null"

# another user; and no such one
config true daemon >"$T/user.yaml"
ok "another user" ax config apply "$T/user.yaml"
says "is who runs it" e1 "web e1 10.77.1.1 8000 daemon $(id -u daemon) $(id -g daemon) $here a b c"
config true no-such-user >"$T/nobody.yaml"
ok "a user that is not there" ax config apply "$T/nobody.yaml"
becomes "makes them down" "e1=down e2=down"
wait_for "[[ \$(why e1) == *125* ]]"
like "and it is said" "$(why e1)" "exit status 125: the check of web cannot run"
ok "the first again" ax config apply "$T/user.yaml"
becomes "up again" "e1=up e2=up"

# the agent's death is theirs
# shellcheck disable=SC2016
mood e1 'echo $$ >'"$T"'/said/left; setsid sleep 1000 & echo $! >'"$T"'/said/strayed; exec sleep 1000'
: >"$T/said/left"
ok "a command that takes its time" ax config apply <(sed 's/timeout: 500ms/timeout: 20s/; s/every: 500ms/every: 20s/' "$T/user.yaml")
wait_for -t 30 "[ -s $T/said/left ]"
wait_for "[ -s $T/said/strayed ]"
agent_kill9
ok "runs no longer than the agent" wait_for "! kill -0 \$(cat $T/said/left) 2>/dev/null"
mood e1 'exit 0'
agent_again
ok "what it has started, no longer than until the next" wait_for "! any_alive strayed"

# without host access: from within a private app's namespace, a host-mode app's not at all
config false daemon >"$T/closed.yaml"
ok "host_access: false" ax config apply "$T/closed.yaml"
inside=$(readlink "/proc/$(child_of "$E1")/ns/net")
says "runs in the private app's network namespace" e1 \
	"web e1 10.77.1.1 8000 daemon $(id -u daemon) $(id -g daemon) $inside a b c"
becomes "and does not check host-mode apps" "e1=up e2=-"
like "which is said" "$(why e2)" "not checked: host_access is off"
ok "host access again" ax config apply "$T/user.yaml"
becomes "both are checked" "e1=up e2=up"

# an agent that may not make a check's cgroup: what is not checked is not said to be up
printf '#!/bin/sh\nexec setpriv --bounding-set -dac_override,-dac_read_search "%s" "$@"\n' "$AX" >"$T/weak"
chmod 755 "$T/weak"
mood e1 'exit 0'
mood e2 'exit 0'
cp "$T/user.yaml" "$T/$INST.yaml"
agent_stop
agent_again "$T/weak"
becomes "an agent with fewer rights checks" "e1=up e2=up"
checks=$CGROUP2/$INST/.checks
wait_for "mkdir -p $checks/kept && chmod 500 $checks && [ -d $checks/kept ]"
becomes "one that may not make a check's cgroup checks nothing" "e1=- e2=-"
like "and that is said" "$(why e1)" "not checked: the agent cannot begin a check: Permission denied"
is "once for each in the log" "$(grep -c 'is not checked, as the agent cannot begin' "$T/$INST.log")" 2
chmod 755 "$checks"
becomes "when it may again, they are checked" "e1=up e2=up"
is "and there is no reason any more" "$(why e1)" ""
rmdir "$checks/kept" 2>/dev/null
agent_stop
agent_again

# ax service, in the same words; root's alone
ok "ax service add --check exec" ax service add cli --port 80:8000 --backend e2 \
	--check "exec $T/check 'x y'" --check-every 200ms --check-rise 1
says "is run" e2 "cli e2 10.77.1.2 8000 $nobody $here x y"
ok "ax service set --check exec, as another" ax service set cli --check "exec $T/check z" --check-user daemon
says "is run as well" e2 "cli e2 10.77.1.2 8000 daemon $(id -u daemon) $(id -g daemon) $here z"
fails "what goes with a check is nothing without one" ax service set cli --check-every 1s
ok "and removed" ax service del cli
cp "$AX" "$T/ax" # where every user gets at it
out=$(setpriv --reuid 64998 --regid 64999 --clear-groups "$T/ax" --instance "$INST" \
	service add evil --backend e2 --port 80 --check "exec id" 2>&1)
like "another than root may not say one" "$out" "only root"

end "$EVENTS"
for bad in exec "{type: exec}" "{type: exec, command: []}" "{type: exec, command: [\"\"]}" \
	"{type: tcp, command: [x]}" "{type: http, user: root}" "{type: exec, command: x, path: /}" "exec 'x"; do
	fails "refused: check: $bad" ax config check <(
		echo "services: {s: {ports: [80], backends: [a], check: $bad}}")
done
for good in "exec /bin/true" "exec true -q" "{type: exec, command: true, user: \"0\"}"; do
	ok "check: $good" ax config check <(
		echo "services: {s: {ports: [53/udp], backends: [a], check: $good}}")
done
stop_app "$E1"
done_testing
