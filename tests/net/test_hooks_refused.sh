#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 480
# A program that the kernel refuses. One that judges is needed: without it the agent does not start, says which one it is and
# what apps could do, and leaves nothing; an agent that is there already goes on. One that only serves is off, and 'ax status' says
# what that costs.
. "$(dirname "$0")/lib.sh"
build refuse refuse.c gcc "${CFLAGS_TEST[@]}" -shared -fPIC "$SRC/refuse.c" -o %o -ldl
refusing() {
	env LD_PRELOAD="$BIN/refuse" REFUSED="$1" "${@:2}"
}

default_config >"$T/ax.yaml"
# (of the names the kernel keeps 15 characters)
for program in ax_sendmsg4 ax_sock_create ax_sk_lookup ax_straight ax_unjudged_udp ax_forbidden_udp ax_dns_tcp; do
	refusing $program timeout 60 "$AX" --instance "$INST" agent --config "$T/ax.yaml" >"$T/out" 2>&1
	is "without $program no agent starts" $? 1
	like "and says why" "$(tail -n 1 "$T/out")" "the program $program, which ax needs: else .*ax doctor"
done
ok "nothing of it is left" test ! -e "/sys/fs/bpf/$INST" -a ! -e "/sys/fs/bpf/$INST-new"
REFUSED_ITER=1 refusing "" timeout 60 "$AX" --instance "$INST" agent --config "$T/ax.yaml" >"$T/out" 2>&1
is "nor where an iterator that judges cannot be attached" $? 1
like "which is said" "$(tail -n 1 "$T/out")" "the program ax_unjudged_udp, which ax needs"
ok "nothing of that is left" test ! -e "/sys/fs/bpf/$INST"

export LD_PRELOAD=$BIN/refuse REFUSED=ax_getpeername4
agent_start
unset LD_PRELOAD REFUSED
like "what serves is off" "$(ax status)" "Off +getpeername4, so getpeername\\(\\) shows the backend: "
ok "and apps run" ax run --name one -- true
agent_stop
refusing ax_sk_lookup timeout 60 "$AX" --instance "$INST" agent --config "$T/ax.yaml" >"$T/out" 2>&1
is "an upgrade that the kernel refuses does not start either" $? 1
like "what the former has attached stays" "$(bpftool link show pinned "/sys/fs/bpf/$INST/link_ax_sk_lookup")" "netns|sk_lookup"
agent_again
done_testing
