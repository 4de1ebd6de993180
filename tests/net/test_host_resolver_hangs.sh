#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# agent.host-names: resolved: a resolvectl that never ends is killed and said in the status; it holds up
# neither later changes of the config nor the agent's end.
. "$(dirname "$0")/lib.sh"
need jq

# where the agent looks for programs first is this mount namespace's own
mkdir "$T/sbin"
mount --bind "$T/sbin" /usr/local/sbin
touch "$T/sbin/.own"
[ -e /usr/local/sbin/.own ] || skip_all "/usr/local/sbin cannot be this test's own"
cat >"$T/sbin/resolvectl" <<-SCRIPT
	#!/bin/sh
	echo "\$@" >>$T/calls
	[ -e $T/hang ] || exit 0
	sleep 1000 &
	echo \$! >>$T/hanging
	wait
SCRIPT
cat >"$T/sbin/resolvconf" <<-SCRIPT
	#!/bin/sh
	echo "\$1" >>$T/records
	[ "\$1" = -d ] || exit 0
	sleep 8
	echo undone >>$T/records
SCRIPT
chmod 755 "$T/sbin/resolvectl" "$T/sbin/resolvconf"

apply() { # MODE
	cat >"$T/$INST.yaml" <<-YAML
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host-names: $1
	YAML
	ax config apply "$T/$INST.yaml" 2>&1
}
state() { ax status -o json | jq -r '.host_names | if . then .wanted + " " + .state else "none" end'; }
links() { ip -o link | grep -c -- " $INST-dn"; }
none_hangs() {
	local pid
	while read -r pid; do ! alive "$pid" || return 1; done <"$T/hanging"
}

# (two changes soon after each other are one)
off() {
	apply off >/dev/null
	wait_for -t 30 '[ "$(state)" = none ]'
}

agent_start
is "nothing is told, and the status says nothing of it" "$(state)" none
touch "$T/hang"
ok "a program that never ends: the config is applied" apply resolved
wait_for -t 30 '[ -s $T/hanging ]'
is "the status says that it is at work" "$(state)" "resolved working"
ok "something else is wanted" apply off
ok "it is killed, and what it had started" wait_for -t 60 none_hangs
ok "and what is wanted holds" wait_for -t 30 '[ "$(state)" = none ] && [ "$(links)" = 0 ]'
like "the log says what was killed" "$(cat "$T/$INST.log")" "'resolvectl default-route' had not ended after [0-9]+ s and was killed"
rm "$T/hang"
ok "the next change is not held up" apply resolved
ok "and told" wait_for -t 30 '[ "$(state)" = "resolved told" ]'
like "in people's words" "$(ax status)" "Host names resolved: told"

off
touch "$T/hang"
apply resolved >/dev/null
ok "where nothing else is wanted it has longer, and is killed as well" \
	wait_for -t 90 '[ "$(state)" = "resolved failed" ]'
like "the status says what was killed, and that it is tried again" "$(ax status)" \
	"Host names resolved: failed, and is tried again: 'resolvectl default-route' had not ended after [0-9]+ s"
rm "$T/hang"
ok "which ends well" wait_for -t 60 '[ "$(state)" = "resolved told" ]'
off
apply resolvconf >/dev/null
wait_for -t 30 '[ "$(state)" = "resolvconf told" ]'
apply off >/dev/null
ok "a resolvconf that takes its time to forget the agent" wait_for -t 30 'grep -q -- -d $T/records'
ok "something else is wanted" apply resolved
ok "and told" wait_for -t 60 '[ "$(state)" = "resolved told" ]'
is "after all has been forgotten" "$(tr '\n' ' ' <"$T/records")" "-a -d undone "
off
touch "$T/hang"
: >"$T/hanging"
apply resolved >/dev/null
wait_for -t 30 '[ -s $T/hanging ]'
agent_stop
ok "the agent's end leaves none behind" wait_for -t 30 none_hangs
is "and no device" "$(links)" 0
rm "$T/hang"
apply off >/dev/null
umount /usr/local/sbin
done_testing
