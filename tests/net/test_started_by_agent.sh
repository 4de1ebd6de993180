#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What an app has of the agent that starts it: the limits, the signals and the environment that the agent was
# started with, and nothing that was for the agent alone.
. "$(dirname "$0")/lib.sh"

private_host
cat >"$T/say" <<END_OF_SCRIPT
#!/bin/sh
{
	echo "files: \$(ulimit -Sn) of \$(ulimit -Hn)"
	grep -E '^Sig(Blk|Ign)' /proc/self/status
	env | sort
	ls -l /proc/self/fd | sed -n 's/.* \([0-9]*\) -> /fd \1: /p'
	echo "session: \$(ps -o sid= -p \$\$ | tr -d ' ')"
} >"\$1.new" 2>&1
mv "\$1.new" "\$1"
exec sleep 60
END_OF_SCRIPT
chmod 755 "$T/say"
cat >"$T/$INST.yaml" <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  at-once: {net: host, command: ["$T/say", "$T/said.once"]}
  asked: {net: host, ip: 10.77.1.1, start: on-connect, command: ["$T/say", "$T/said.asked"]}
EOF
(
	export KEPT=yes WATCHDOG_USEC=1 WATCHDOG_PID=1 INVOCATION_ID=x JOURNAL_STREAM=x LISTEN_FDS=1 LISTEN_PID=1 LISTEN_FDNAMES=x AX_LAUNCH=99
	ulimit -Hn 2000
	ulimit -Sn 300
	exec "$AX" --instance "$INST" agent --config "$T/$INST.yaml"
) >>"$T/$INST.log" 2>&1 </dev/null &
AGENT=$!
BACKGROUND+=("$AGENT")
ok "the agent starts" wait_for -t 60 'ax status'
baseline "$INST" >"$T/$INST.baseline"
ok "it has more descriptors than it was given" test "$(awk '/^Max open files/ { print $4 }' "/proc/$AGENT/limits")" -gt 300

ok "an app of the config starts" wait_for -t 30 '[ -e "$T/said.once" ]'
bg /dev/null timeout 20 "$AX" --instance "$INST" run --net host --name client -- bash -c 'exec 3<>/dev/tcp/10.77.1.1/80'
ok "another one when it is connected to" wait_for -t 30 '[ -e "$T/said.asked" ]'
end "$BG"
for said in "$T/said.once" "$T/said.asked"; do
	what=${said##*.}
	like "$what: the limit of descriptors is the one that the agent was started with" "$(cat "$said")" "files: 300 of 2000"
	ignored=$(awk '/^SigIgn/ { print $2 }' "$said")
	is "$what: SIGPIPE, which the agent ignores, is not ignored" "$((0x${ignored:-1000} >> 12 & 1))" 0
	like "$what: and no signal is blocked" "$(grep SigBlk "$said")" "SigBlk:	0000000000000000"
	is "$what: it has the agent's variables" "$(grep -c '^KEPT=yes$' "$said")" 1
	is "$what: but none that systemd had for the agent, nor ax for ax run" \
		"$(grep -E '^(WATCHDOG_|INVOCATION_ID|JOURNAL_STREAM|LISTEN_|AX_LAUNCH)' "$said")" ""
	is "$what: no descriptor but the streams" "$(grep '^fd ' "$said" | grep -vE '^fd [0123]: ')" ""
	like "$what: no input" "$(grep '^fd 0' "$said")" "/dev/null"
	unlike "$what: a session of its own" "$(grep '^session' "$said")" "^session: $(ps -o sid= -p "$AGENT" | tr -d ' ')$"
done
ax stop at-once >/dev/null
ax stop asked >/dev/null
done_testing
