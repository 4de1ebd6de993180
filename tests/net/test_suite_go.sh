#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 600
# The tests of Go's packages net and net/http.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/suite.sh"
need go unshare

# These run the go command, for tens of seconds, and no connection.
LEFT_OUT="TestOmitHTTP2|TestOmitHTTP2Vet|TestCmdGoNoHTTPServer"
GO_SRC=$(go env GOROOT)/src
GO=(env CGO_ENABLED=1 GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$BIN/go-cache" HOME="${HOME:-/root}" go)
VERSION=$(go env GOVERSION)
build "$VERSION-net.test" "" "${GO[@]}" test -c -o %o net
build "$VERSION-http.test" "" "${GO[@]}" test -c -o %o net/http

run_go() {
	local mode=$1 dir=$2 package names
	mkdir -p "$dir/tmp"
	for package in net http; do
		# the names at the top
		names=$("$BIN/$VERSION-$package.test" -test.list . | grep -vE "^($LEFT_OUT|Benchmark.*)$")
		[ $# -lt 3 ] || names=$(sed -n "s|^$package:\([^/]*\).*|\1|p" "$3" | sort -u)
		[ -n "$names" ] || continue
		(
			cd "$GO_SRC/net/${package#net}" || exit
			in_mode "$mode" env TMPDIR="$dir/tmp" "$BIN/$VERSION-$package.test" -test.v -test.short \
				-test.run "^($(paste -sd '|' <<<"$names"))\$" >"$dir/$package.log" 2>&1
		)
		sed -n "s/^ *--- \([A-Z]*\): \([^ ]*\) (.*/$package:\2 \1/p" "$dir/$package.log"
	done >"$dir/all"
	grep -h -A 4 -- '--- FAIL' "$dir"/*.log >"$dir/why"
}

suite_agents
suite go 1090
suite_done
