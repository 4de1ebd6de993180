# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Apps that connections start, for the tests of who does: whether one runs, and that it was started.

runs() { # NAME: 1 or 0
	ax get apps -o json | jq -r ".[] | select(.name == \"$1\") | .state" | grep -cx running
}
stopped() { # NAME
	[ "$(runs "$1")" = 0 ] || ax stop "$1" >/dev/null 2>&1
	wait_for "[ \"\$(runs $1)\" = 0 ]"
}
# starts NAME APP COMMAND...: it is connected to the app, which did not run
starts() {
	local name=$1 app=$2
	shift 2
	stopped "$app"
	like "$name" "$("$@" 2>&1)" "$app"
	is "$name: it runs" "$(runs "$app")" 1
}
