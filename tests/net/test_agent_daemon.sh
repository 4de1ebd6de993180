#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Agents that nobody but themselves looks after: started by `ax agent --detach` or `ax run --agent`, ended by
# `ax agent --stop`; what goes wrong is said to whoever asked.
. "$(dirname "$0")/lib.sh"
need jq

agent_pid() {
	ax status -o json | jq .pid
}
LOG=/run/ax/$INST/log/ax.agent.log
# ended NUMBER: the process is gone
ended() {
	wait_for "! alive $1"
}

out=$(ax run -- true 2>&1)
is "without an agent ax run fails" "$?" 125
like "and says the command that starts one" "$out" "no agent answers .*: start one with 'ax agent --detach'"
like "there is nothing to end" "$(ax agent --stop 2>&1)" "no agent of the instance $INST runs"

# by ax run
out=$(ax run --agent -- sh -c 'echo hello; exit 3' 2>&1)
is "ax run --agent starts one: the command ends with its own status" "$?" 3
is "and nothing is said besides what it says" "$out" hello
ok "the agent has stayed" ax status
pid=$(agent_pid)
BACKGROUND+=("$pid")
is "it belongs to no terminal and no session of the caller's" \
	"$(ps -o tty= -p "$pid" | tr -d ' ') $([ "$(ps -o sid= -p "$pid")" = "$(ps -o sid= -p $$)" ] && echo same)" "? "
is "it stands where it keeps no mount busy" "$(readlink "/proc/$pid/cwd")" /
like "what it says is in the log" "$(cat "$LOG")" "instance $INST: ready at"
ax run --agent -- true
is "the next one finds it" "$(agent_pid)" "$pid"
baseline "$INST" >"$T/$INST.baseline"

# many at a time
ok "it is ended" ax agent --stop
ended "$pid"
fails "it is gone when that returns" ax status
many=()
for i in 1 2 3 4 5; do
	bg "$T/many.$i" "$AX" --instance "$INST" run --agent -- echo "said $i"
	many+=("$BG")
done
wait "${many[@]}"
is "five at a time that need one: all run" "$(cat "$T"/many.* | sort | xargs)" \
	"said 1 said 2 said 3 said 4 said 5"
is "there is one agent" "$(grep -c 'ready at' "$LOG")" 2

# a detached app outlives it
pid=$(agent_pid)
ok "a detached app is started" ax run --agent --detach --name stays -- sleep 1000
ok "ax agent --stop ends the agent" ax agent --stop
ended "$pid"
default_config >"$T/$INST.yaml"
out=$(cd "$T" && ax agent --detach --config "$INST.yaml" --log-level debug 2>&1)
is "ax agent --detach takes a config file, of the caller's directory" "$? $out" "0 "
is "which it keeps for SIGHUP" "$(ax status -o json | jq -r .config)" "$T/$INST.yaml"
like "the app is there" "$(ax get apps)" "stays .*running"
pid=$(agent_pid)
out=$(ax agent --detach 2>&1)
is "a second one is refused" "$?" 1
like "with what the agent said" "$out" "(already|another).*has not started"
is "the first is the one that runs" "$(agent_pid)" "$pid"
kill -KILL "$pid"
ended "$pid"
ok "after kill -9 ax run --agent starts the next one" ax run --agent -- true
like "which has the app" "$(ax get apps)" "stays .*running"

# what is wrong
ok "it is ended again" ax agent --stop
echo 'agent: {pool: {ipv4: nonsense}}' >"$T/bad.yaml"
out=$(ax agent --detach --config "$T/bad.yaml" 2>&1)
is "a config with errors: it does not start" "$?" 1
like "and says which" "$out" "bad.yaml:1:.*nonsense"
cat >"$T/forge.py" <<'EOF'
# Says READY=1 at every nameless socket for datagrams that was not there when it began.
import os, socket
os.setregid(64998, 64998)
os.setreuid(64998, 64998)
def sockets():
    with open("/proc/net/unix") as f:
        return {l.split()[7] for l in f if " 0002 " in l and l.rstrip().split()[-1].startswith("@")}
before, told = sockets(), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
print("begins", flush=True)
while True:
    for name in sockets() - before:
        try:
            told.sendto(b"READY=1", b"\0" + name[1:].encode())
            print("said", name, flush=True)
        except OSError:
            pass
EOF
bg "$T/forge" python3 "$T/forge.py"
wait_for "grep -q begins $T/forge"
ok "somebody else says that it is ready: it starts" ax agent --detach --config "$T/$INST.yaml"
ok "(he has said so)" grep -q said "$T/forge"
ok "and it is ready when that returns" ax status
end "$BG"
# The name at which it has said so is free then, for everybody.
cat >"$T/full.py" <<'EOF'
# Has sockets of these names, and has them full.
import os, socket, sys, time
os.setregid(64998, 64998)
os.setreuid(64998, 64998)
told, kept = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK), []
for name in sys.argv[1:]:
    kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    kept[-1].bind(b"\0" + name[1:].encode())
    try:
        while True:
            told.sendto(b"x", kept[-1].getsockname())
    except BlockingIOError:
        print("full", flush=True)
time.sleep(600)
EOF
pid=$(agent_pid)
# shellcheck disable=SC2046 # names
bg "$T/full" python3 "$T/full.py" $(sed -n 's/^said //p' "$T/forge" | sort -u)
ok "(somebody else has it, and does not read)" wait_for "grep -q full $T/full"
kill -HUP "$pid"
ok "the agent does not wait for him" wait_for "grep -q 'is applied' $LOG"
ok "and answers" timeout 60 "$AX" --instance "$INST" status
ok "it is ended once more" timeout 60 "$AX" --instance "$INST" agent --stop
end "$BG"
like "a file that is not there" "$(ax agent --detach --config "$T/none.yaml" 2>&1)" "cannot read .*none.yaml"
like "who is not root is told" "$(setpriv --reuid 64998 --regid 64998 --clear-groups "$AX" --instance "$INST" \
	run --agent -- true 2>&1)" "root|denied"

ok "ax agent --stop, --detach and --flush do not go together" \
	sh -c "! '$AX' --instance $INST agent --stop --flush"
# whether somebody keeps the log of an agent of this host
loggers() {
	local pid
	for pid in $(pgrep -x ax-agent-log); do
		[ ! "/proc/$pid/ns/net" -ef /proc/self/ns/net ] || return 0
	done
	return 1
}
ok "once more" ax run --agent -- true
pid=$(agent_pid)
ok "somebody keeps its log" wait_for loggers
ax stop stays >/dev/null
leftovers
ok "and ended" ax agent --stop
ended "$pid"
ok "with whoever kept its log" wait_for "! loggers"
AGENT=
rm "$T/$INST.baseline"
agent_start
done_testing
