#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A static Go server and client (no libc, Go's own resolver), in private and host mode.
. "$(dirname "$0")/lib.sh"
need go
build_go web

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  gosvc:
    ip: 10.77.200.1,fd77::200:1
    ports: [80]
    backends: [goweb]
EOF

URLS=(http://10.77.1.1/ "http://[fd77::1:1]/" http://goweb/ http://goweb.ax.internal/
	http://10.77.200.1/ "http://[fd77::200:1]/" http://gosvc/)
like "the client is static" "$(file -b "$BIN/web" 2>/dev/null || ldd "$BIN/web" 2>&1)" \
	"statically linked|not a dynamic"
for mode in private host; do
	serve 80 --net $mode --ip 10.77.1.1,fd77::1:1 --name goweb -- "$BIN/web" serve :80 goweb
	pid=$APP
	for client in private host; do
		check_urls "Go server in $mode mode: Go client in $client mode" \
			"$(in_app --net $client -- "$BIN/web" get "${URLS[@]}" http://gosvc/big 2>&1)" \
			"goweb you=" "${URLS[@]}"
		is "Go server in $mode mode: 4 MiB arrive in $client mode" \
			"$(in_app --net $client -- "$BIN/web" get http://gosvc/big 2>&1)" \
			"http://gosvc/big 4194304 bytes"
	done
	like "Go server in $mode mode sees its client's address" \
		"$(in_app --ip 10.77.1.9 -- "$BIN/web" get http://goweb/ http://10.77.200.1/ 2>&1)" \
		"you=10.77.1.9:.*you=10.77.1.9:"
	curl_matrix "Go server in $mode mode" "goweb you=" http://goweb/ http://gosvc/
	stop_app $pid
done

for mode in private host; do
	is "Go's resolver in $mode mode" \
		"$(in_app --net $mode -- "$BIN/web" lookup gosvc gosvc.ax.internal GOSVC.AX.Internal 2>&1)" \
		"gosvc 10.77.200.1 fd77::200:1
gosvc.ax.internal 10.77.200.1 fd77::200:1
GOSVC.AX.Internal 10.77.200.1 fd77::200:1"
	like "Go's resolver in $mode mode is told that a name does not exist" \
		"$(in_app --net $mode -- "$BIN/web" lookup nobody.ax.internal 2>&1)" "no such host"
done
done_testing
