#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax exec, ax ps and ax rm: what people do with docker every day.
. "$(dirname "$0")/lib.sh"
need python3 jq setpriv unshare
build_c tcp
cp "$BIN/tcp" "$T/tcp" # where every user gets at it

agent_start

id_of() {
	ax get apps -o json "$1" | jq -r '.[0].id'
}

# in NAME...: ax exec, at most 20 seconds
in_() {
	timeout --foreground -k 1 20 "$AX" --instance "$INST" exec "$@"
}

for mode in private host; do
	ax run --detach --net $mode --name "web$mode" --env FROM_APP=1 --env BOTH=app --directory /usr/lib -- \
		"$PYTHON" -m http.server --directory "$T" 80 >/dev/null
	web=web$mode
	launched "$web"
	ip=$(ax get apps -o json "$web" | jq -r '.[0].ip4')
	is "$mode: exit status 0" "$(in_ "$web" true; echo $?)" 0
	is "$mode: exit status 3" "$(in_ "$web" sh -c 'exit 3'; echo $?)" 3
	is "$mode: a command that does not exist" "$(in_ "$web" /nonexistent 2>/dev/null; echo $?)" 127
	is "$mode: a signal" "$(in_ "$web" sh -c 'kill -TERM $$'; echo $?)" 143
	is "$mode: -- may part the command from the app" "$(in_ "$web" -- echo a 'b c')" "a b c"
	is "$mode: docker's -it" "$(in_ -it "$web" echo hello)" hello
	is "$mode: stdin and stdout are the caller's" "$(printf 'b\na\n' | in_ "$web" sort | xargs)" "a b"
	is "$mode: by id" "$(in_ "$(id_of "$web")" echo by id)" "by id"
	like "$mode: it is in the app's cgroup" "$(in_ "$web" cat /proc/self/cgroup)" "/$INST/$web-[0-9]+"
	pid=$(ax get apps -o json "$web" | jq -r '.[0].pid')
	for ns in net mnt; do
		is "$mode: it is in the app's $ns namespace" "$(in_ "$web" readlink /proc/self/ns/$ns)" \
			"$(readlink "/proc/$pid/ns/$ns")"
	done
	is "$mode: it has the app's directory" "$(in_ "$web" pwd)" /usr/lib
	is "$mode: or the one of -w" "$(in_ -w /etc "$web" pwd)" /etc
	is "$mode: the app's variables, and -e wins" \
		"$(FROM_CALLER=secret in_ -e BOTH=exec -e 'MORE=x y' "$web" \
			sh -c 'echo "$FROM_APP $BOTH $MORE [$FROM_CALLER]"')" "1 exec x y []"
	printf '# comment\n\nMORE=from file=1\nFROM_CALLER\n' >"$T/env"
	is "$mode: --env-file, where a name alone is the caller's" \
		"$(FROM_CALLER=yes in_ --env-file "$T/env" "$web" sh -c 'echo "$MORE $FROM_CALLER"')" \
		"from file=1 yes"
	is "$mode: -u" "$(in_ -u nobody "$web" sh -c 'id -un; grep CapBnd /proc/self/status' | tr -s '\t' ' ' | xargs)" \
		"nobody CapBnd: 0000000000000000"
	# its connections are the app's
	run_app --net $mode --name "peer$mode" -- "$PYTHON" -c '
import socket
s = socket.create_server(("0.0.0.0", 7000))
while True: c, peer = s.accept(); c.sendall((peer[0] + "\n").encode()); c.close()'
	wait_for "listens $APP 7000"
	is "$mode: its connections are the app's" \
		"$(in_ "$web" "$PYTHON" -c "
import socket
print(socket.create_connection(('peer$mode', 7000)).recv(100).decode().strip())")" "$ip"
	# the app goes on until it has ended
	bg "$T/long.$mode" "$AX" --instance "$INST" exec "$web" sleep 1000
	wait_for "grep -lx sleep /proc/[0-9]*/comm | while read -r f; do grep -l '/$INST/$web-' \"\${f%comm}cgroup\"; done | grep -q ."
	kill -KILL "$pid"
	sleep 0.3
	is "$mode: an app goes on while an exec does" "$(ax get apps -o json "$web" | jq -r '.[0].state')" running
	is "$mode: and can be entered" "$(in_ "$web" echo still here)" "still here"
	ok "$mode: stop ends it" ax stop "$web"
	wait "$BG"
	is "$mode: and what was executed" "$?" 143
	out=$(in_ "$web" true 2>&1)
	is "$mode: an app that ended is no app" "$?" 125
	like "$mode: as a sentence says" "$out" "there is no app $web"
done
stop_apps

# --- who runs as what ---

ax run --detach --name plain --user nobody -- sleep 1000 >/dev/null
launched plain
is "the app's user" "$(in_ plain id -un)" nobody
is "root where it is asked for" "$(in_ -u root plain id -un)" root
like "in its network" "$(in_ -u root plain ip -o -4 addr)" "10\.77\."
# files of the user's own making are not root's
ax run --detach --name jail --user nobody -- unshare -Urm sleep 1000 >/dev/null
launched jail
wait_for 'grep -q sleep /proc/$(ax get apps -o json jail | jq -r ".[0].pid")/comm'
out=$(in_ -u root jail id -un 2>&1)
is "an app in a user namespace of its own is not entered" "$?" 125
like "and the sentence says why" "$out" "user namespace"

cp "$AX" "$T/ax"
{ sed '/^ax:/d' /etc/group; echo "ax:x:64999:"; } >"$T/group"
mount --bind "$T/group" /etc/group
agent_stop
agent_again
as_member() {
	timeout 20 setpriv --reuid 64998 --regid 64999 --clear-groups "$T/ax" --instance "$INST" "$@" \
		2>&1 </dev/null
}
like "the group may look" "$(as_member ps)" plain
out=$(as_member exec plain id)
is "a member of the group may not enter" "$?" 125
like "and is told so" "$out" "only root"
out=$(as_member rm plain)
is "nor remove" "$?" 1
like "and is told so" "$out" "only root"
is "entered after the agent was restarted, too" "$(in_ plain id -un)" nobody
agent_kill9
agent_again
is "and after it was killed" "$(in_ plain id -un)" nobody

# --- names and mistakes ---

like "no such app" "$(in_ nosuch true 2>&1)" "there is no app nosuch"
like "no command" "$(in_ plain 2>&1)" "give an app and the command"
like "-w wants a path" "$(in_ -w x plain true 2>&1)" "absolute path"
like "--env-file that is wrong" "$(echo '=x' >"$T/bad"; in_ --env-file "$T/bad" plain true 2>&1)" "bad:1:"
ax run --detach --name plain -- sleep 1000 >/dev/null
wait_for '[ "$(ax ps -o name | grep -cx plain)" = 2 ]'
like "of two apps of one name, an id is wanted" "$(in_ plain true 2>&1)" "2 apps named plain.*[0-9], [0-9]"
is "ps is get apps" "$(ax ps -o json)" "$(ax get apps -o json)"
is "ps of one" "$(ax ps -o name jail)" jail
ok "they can be stopped" ax stop plain jail

# --- entering while it ends: no process stays behind, and no app without one ---

for i in $(seq 1 25); do
	ax run --detach --name "short$i" -- sleep 0.0$((i % 5))5 >/dev/null
	in_ "short$i" sh -c 'exit 9' >"$T/race" 2>&1
	rc=$?
	[ $rc = 9 ] || [ $rc = 125 ] || break
	[ $rc = 9 ] || grep -q 'no app\|has ended\|being' "$T/race" || break
done
is "either it was entered or it had ended" "$i $rc" "25 $rc"
diag "the last one: $rc $(cat "$T/race")"
wait_for '! ax ps -o name | grep -q short'
leftovers "nothing is left of them"

# who entered and died is not waited for
ax run --detach --name short -- sleep 1000 >/dev/null
launched short
bg "$T/half" "$PYTHON" -c "
import socket, time
s = socket.socket(socket.AF_UNIX)
s.connect('/run/ax/$INST/control.sock')
s.sendall(b'{\"op\":\"enter\",\"app\":\"short\"}\n')
print(s.recv(100), flush=True)
time.sleep(1000)"
wait_for "grep -q ok $T/half"
pid=$(ax get apps -o json short | jq -r '.[0].pid')
kill -KILL "$pid"
wait_for "! kill -0 $pid"
sleep 0.2
is "an app is not over while somebody is about to enter it" "$(ax ps -o name short)" short
kill -KILL "$BG"
wait_for '! ax ps -o name | grep -q short'
is "but is when that one is gone" "$(ax ps -o name | grep -c short)" 0

# --- rm ---

ax run --detach --name one -- sh -c 'echo output; sleep 1000' >/dev/null
wait_for 'ax logs one | grep -q output'
out=$(ax rm one 2>&1)
is "rm: an app that runs is refused" "$?" 1
like "rm: as a sentence says" "$out" "runs: stop it first"
ax stop one >/dev/null
is "its output is there when it has ended" "$(ax logs one)" output
is "rm says what it did" "$(ax rm one)" "removed one"
is "rm: the output is gone" "$(find "/run/ax/$INST/log" -name 'one.*')" ""
out=$(ax rm one 2>&1)
is "rm: there is nothing left to remove" "$?" 1
like "rm: and it says so" "$out" "no app one"
ax run --detach --name one -- sh -c 'echo output; sleep 1000' >/dev/null
wait_for 'ax logs one | grep -q output'
is "rm --force stops it" "$(ax rm -f "$(id_of one)" | sed 's/[0-9]*$/ID/')" "removed ID"
is "rm --force: it does not run" "$(ax ps -o name | grep -c one)" 0
is "rm --force: the output is gone" "$(find "/run/ax/$INST/log" -name 'one.*')" ""
ax run --detach --restart always --name again -- sh -c 'echo output; exit 1' >/dev/null
wait_for 'ax logs again | grep -q output'
ok "rm --force: of an app between two starts" ax rm -f again
sleep 1.5
is "it is not started any more" "$(ax ps -o name | grep -c again)" 0
touch "$T/victim.log"
like "rm takes no path" "$(ax rm "../../../$T/victim" 2>&1)" "no app"
ok "what it would have named is there" test -e "$T/victim.log"

# --- words from elsewhere ---

for word in list ls start kill inspect describe restart delete top enter pull compose journalctl is-active; do
	out=$(ax $word 2>&1)
	is "ax $word: is no command" "$?" 2
	like "ax $word: the word for it" "$out" "write 'ax |write 'cp'"
done
done_testing
