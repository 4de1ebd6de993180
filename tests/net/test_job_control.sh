#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Terminal, job control and signals of ax run and ax exec: src/jobctl.py drives a shell as a person would.
# timeout: 300
. "$(dirname "$0")/lib.sh"
need python3

agent_start
for mode in private host; do
	subtests "$mode" timeout --foreground -k 1 80 "$PYTHON" "$SRC/jobctl.py" "$AX" --instance "$INST" run --net $mode --
done
subtests "another user" timeout --foreground -k 1 80 "$PYTHON" "$SRC/jobctl.py" --user "$AX" --instance "$INST" run \
	--net host --user nobody --
# the same of commands in an app that runs
ax run --detach --name other -- sleep 1000 >/dev/null
ax run --detach --name hosts --net host -- sleep 1000 >/dev/null
launched other hosts
subtests "exec" timeout --foreground -k 1 80 "$PYTHON" "$SRC/jobctl.py" "$AX" --instance "$INST" exec other
subtests "exec as another user" timeout --foreground -k 1 80 "$PYTHON" "$SRC/jobctl.py" --user "$AX" --instance "$INST" \
	exec --user nobody hosts
ax stop other hosts >/dev/null
done_testing
