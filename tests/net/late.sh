# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts whose servers start after their clients.

# late_agent WAIT: an agent with apps of either mode that are to come, and services of them where
# connections wait as long.
late_agent() {
	agent_start - <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		apps:
		  late:
		    ip: 10.77.3.1,fd77::3:1
		  latehost:
		    ip: 10.77.3.2,fd77::3:2
		    net: host
		services:
		  svc:
		    ip: 10.77.200.1,fd77::200:1
		    ports: ["80:7000"]
		    backends: [late]
		    wait: $1
		  svchost:
		    ip: 10.77.200.2,fd77::200:2
		    ports: ["80:7000"]
		    backends: [latehost]
		    wait: $1
	EOF
}
