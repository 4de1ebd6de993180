#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# python3 -m http.server on the dual-stack wildcard, in private and host mode; a Python client.
. "$(dirname "$0")/lib.sh"
need python3 curl

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  pysvc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:8000"]
    backends: [pyweb]
EOF

mkdir "$T/www"
echo "python's page" >"$T/www/index.html"
URLS=(http://10.77.1.1:8000/ "http://[fd77::1:1]:8000/" http://pyweb:8000/
	http://pyweb.ax.internal:8000/ http://10.77.200.1/ "http://[fd77::200:1]/" http://pysvc/)
GET='
import sys, urllib.request
for url in sys.argv[1:]:
    print(url, urllib.request.urlopen(url, timeout=20).read().decode().strip())
'
for mode in private host; do
	serve 8000 --net $mode --ip 10.77.1.1,fd77::1:1 --name pyweb -- \
		"$PYTHON" -u -m http.server --bind :: --directory "$T/www" 8000
	pid=$APP log=$OUT
	curl_matrix "http.server in $mode mode" "python's page" "${URLS[@]}"
	for client in private host; do
		check_urls "http.server in $mode mode: Python in $client mode" \
			"$(in_app --net $client --ip 10.77.1.9,fd77::1:9 -- "$PYTHON" -c "$GET" \
				"${URLS[@]}" 2>&1)" "python's page" "${URLS[@]}"
	done
	like "http.server in $mode mode sees its client's IPv4 address, as a v4-mapped one" \
		"$(cat "$log")" "::ffff:10.77.1.9 - - "
	like "http.server in $mode mode sees its client's IPv6 address" "$(cat "$log")" "fd77::1:9 - - "
	stop_app $pid
done
done_testing
