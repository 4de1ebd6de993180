#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What an app has written arrives, though it has ended: at its own address, and for a program outside
# ax that came by a service whose last backend it was.
. "$(dirname "$0")/lib.sh"
need socat
build_c tcp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  svc: {ip: 10.77.200.1, ports: ["80:7000"], backends: [once]}
EOF

for mode in private host; do
	for to in 10.77.6.1:7000 10.77.200.1:80; do
		serve 7000 --net $mode --name once --ip 10.77.6.1 -- \
			socat -u SYSTEM:'head -c 1000000 /dev/zero' TCP4-LISTEN:7000,reuseaddr
		# reads late and little at a time: most of it waits in the kernel when the app ends
		n=$(timeout 12 socat -u TCP4:$to,rcvbuf=20000 - | (sleep 1; wc -c))
		is "$mode mode: all of it arrives outside from $to" "$n" 1000000
		stop_apps
	done
done
done_testing
