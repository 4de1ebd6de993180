#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 600
# CPython's own tests of sockets and of what is made with them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/suite.sh"
need unshare
"$PYTHON" -c 'import test.test_socket' 2>/dev/null || skip_all "missing package libpython3-testsuite"

# the long ones in parts
MODULES=(test_socket*2 test_asyncio*3 test_ftplib test_ssl*3 test_httplib test_select)

run_cpython() {
	local mode=$1 dir=$2 what=("${MODULES[@]}")
	[ $# -lt 3 ] || what=("@$3")
	in_mode "$mode" "$PYTHON" "$SRC/cpython_suite.py" "$dir" "${what[@]}" >"$dir/log" 2>&1
	cat "$dir"/*.results >"$dir/all"
	cat "$dir/log" "$dir"/*.why >"$dir/why"
}

suite_agents
suite cpython 3300
suite_done
