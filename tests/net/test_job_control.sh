#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Terminal, job control and signals of ax run: src/jobctl.py drives a shell as a person would.
# timeout: 180
. "$(dirname "$0")/lib.sh"
need python3

agent_start
for mode in private host; do
	subtests "$mode" timeout --foreground -k 1 80 "$PYTHON" "$SRC/jobctl.py" "$AX" --instance "$INST" run --net $mode --
done
subtests "another user" timeout --foreground -k 1 80 "$PYTHON" "$SRC/jobctl.py" --user "$AX" --instance "$INST" run \
	--net host --user nobody --
done_testing
