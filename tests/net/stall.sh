# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts that look at how long others wait meanwhile.

# waiting_begins [ADDRESS PORT]: asks the agent until waiting_ends; with those of an app, for events too.
waiting_begins() {
	local status
	status=$(ax status -o json)
	WAITS=("request" "lookup" ${1:+event})
	rm -f "$T/over" "$T/waits"
	bg "$T/waits" "$PYTHON" "$SRC/stall.py" "/run/ax/$INST/control.sock" "$(jq -r .dns.address <<<"$status")" \
		nobody.ax.internal "$T/over" "$(jq .pid <<<"$status")" "$@"
	WAITING=$BG
	wait_for -t 60 "grep -q asks $T/waits"
}

# waiting_ends NAME: passes when each was asked, and nobody has waited for more than 50 ms. What other tests
# on these CPUs have taken is not the agent's.
waiting_ends() {
	local status
	touch "$T/over"
	wait "$WAITING"
	status=$?
	diag "$(cat "$T/waits")"
	if [ $status -eq 0 ] && awk -v what="asks ${WAITS[*]}" '
		{ seen = seen (NR > 1 ? " " : "") $1 }
		NR > 1 && !(/ by the agent [0-9]+ ms, of [1-9][0-9]*, / && $7 <= 50) { bad = 1 }
		END { exit bad || seen != what }' "$T/waits"; then
		pass "$1"
	else
		not_ok "$1" "exit status $status of what asks for ${WAITS[*]}"
	fi
}
