#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# A Java HTTP server and client (dual-stack sockets), in private and host mode.
. "$(dirname "$0")/lib.sh"
need java

JAVA=(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xmx128m)

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  javasvc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:8080"]
    backends: [javaweb]
EOF

URLS=(http://10.77.1.1:8080/ "http://[fd77::1:1]:8080/" http://javaweb:8080/
	http://javaweb.ax.internal:8080/ http://10.77.200.1/ "http://[fd77::200:1]/" http://javasvc/)
for mode in private host; do
	serve 8080 --net $mode --ip 10.77.1.1,fd77::1:1 --name javaweb -- \
		"${JAVA[@]}" "$SRC/WebServer.java" 8080 javaweb
	pid=$APP
	for client in private host; do
		out=$(in_app --net $client --ip 10.77.1.9,fd77::1:9 -- \
			"${JAVA[@]}" "$SRC/WebClient.java" "${URLS[@]}" 2>&1)
		check_urls "Java server in $mode mode: Java client in $client mode" "$out" \
			"javaweb you=(10.77.1.9 me=10.77.1.1|fd77:0:0:0:0:0:1:9 me=fd77:0:0:0:0:0:1:1)$" \
			"${URLS[@]}"
	done
	curl_matrix "Java server in $mode mode" "javaweb you=" "${URLS[@]}"
	stop_app $pid
done
done_testing
