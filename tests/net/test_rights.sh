#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# What the group ax may and may not do, of the agent and of what it leaves on the disk.
. "$(dirname "$0")/lib.sh"
need socat setpriv jq

# a group ax of this mount namespace's own, before the agent looks for it
{ sed '/^ax:/d' /etc/group; echo "ax:x:64999:"; } >"$T/group"
mount --bind "$T/group" /etc/group
cp "$AX" "$T/ax" # where every user gets at it

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	EOF
}
agent_start - < <(config)

# --- the rights of the group ---

as_member() {
	timeout 20 setpriv --reuid 64998 --regid 64999 --clear-groups "$T/ax" --instance "$INST" "$@" \
		2>&1 </dev/null
}
run_app --name mine --ip 10.77.1.1 -- sleep 1000
launched mine
mine=$(child_of "$APP")
config >"$T/new.yaml"
echo "apps: {intruder: {command: [touch, $T/was-here]}}" >>"$T/new.yaml"
like "a member of the group sees root's apps" "$(as_member get apps -o name)" mine
out=$(as_member config apply --dry-run "$T/new.yaml")
is "it may try an apply" "$?" 0
like "and sees the difference" "$out" "\+ app intruder"
out=$(as_member config apply "$T/new.yaml")
unlike "it may not apply" "$?" "^0$"
like "and is told so" "$out" "only root"
echo "root:not for you" >"$T/secret"
chmod 600 "$T/secret"
config >"$T/file.yaml"
echo "xdp: {interfaces: {lo: {rules-file: $T/secret}}}" >>"$T/file.yaml"
out=$(as_member config apply --dry-run "$T/file.yaml")
unlike "it may not have the agent read files" "$?" "^0$"
like "and is told so" "$out" "only root"
unlike "nor sees what is in them" "$out" "not for you"
out=$(as_member run --name intruder -- touch "$T/was-here")
unlike "it may not run" "$?" "^0$"
like "and is told so" "$out" "root"
out=$(as_member run --net host --detach --name intruder -- touch "$T/was-here")
unlike "it may not run in host mode, detached" "$?" "^0$"
like "and is told so" "$out" "root"
# the request itself, without the command's own checks
out=$(timeout 5 setpriv --reuid 64998 --regid 64999 --clear-groups socat -t 1 - \
	UNIX-CONNECT:"/run/ax/$INST/control.sock" \
	<<<'{"op":"launch","pid":1,"spec":{"name":"intruder","command":["true"],"net":"private"}}')
like "nor ask the agent itself for a launch" "$out" '"ok": ?false.*only root'
out=$(as_member stop mine)
unlike "it may not stop root's app" "$?" "^0$"
like "and is told so" "$out" "only root"
ok "the app goes on" alive "$mine"
is "nothing has run" "$(ax get apps -o name; ls "$T/was-here" 2>/dev/null)" mine

# --- what others find on the disk ---

ok "root may apply" ax config apply "$T/new.yaml"
ok "which runs" wait_for "[ -e $T/was-here ]"
is "the kept config is root's alone" "$(stat -c '%a %u' "/run/ax/$INST/applied.yaml")" "600 0"
# with egress, the lock on the machine's forwarding is there as well
run_app --egress --name gate -- sleep 1000
launched gate
locks=$(find /run/ax -name '*lock*' -type f)
is "there are locks" "$(grep -c . <<<"$locks")" 2
for lock in $locks; do
	for how in "<" ">>"; do
		fails "who is in the group cannot open ${lock##*/} ($how)" setpriv --reuid 64998 \
			--regid 64999 --clear-groups bash -c "exec $how$lock"
	done
done

# --- what others see of processes ---

{
	config
	echo "apps: {keeper: {command: [sleep, '1000'], env: {TOKEN: hush-$INST}, restart: always}}"
} >"$T/secret.yaml"
keeper() {
	ax get apps -o json | jq ".[] | select(.name == \"keeper\").$1"
}
ok "an app has a secret in its environment" ax config apply "$T/secret.yaml"
launched keeper
like "which it gets" "$(tr '\0' '\n' <"/proc/$(keeper pid)/environ")" "TOKEN=hush-$INST"
is "nobody reads it in a command line" "$(grep -lsa "hus[h]-$INST" /proc/[0-9]*/cmdline)" ""
kill -KILL "$(keeper pid)"
ok "the agent starts it again" wait_for '[ "$(keeper restarts)" = 1 ]'
launched keeper
is "nobody reads it then" "$(grep -lsa "hus[h]-$INST" /proc/[0-9]*/cmdline)" ""
stop_app "$APP"
stop_apps
ok "root may take it out again" ax config apply <(config)
done_testing
