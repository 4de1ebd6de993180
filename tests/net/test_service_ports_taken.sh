#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Programs outside ax have connections through a service, or an exposed port, and to its backend
# itself, and the backend would see two of them come from one port. (Few ports are left for the
# translation here, so that this happens many times.)
. "$(dirname "$0")/lib.sh"
need ip "$PYTHON"
build_c storm

ports() {
	timeout --foreground -k 1 60 "$PYTHON" "$SRC/service_ports.py" "$@"
}
FIRST=1024 LAST=2303
sysctl -qw net.ipv4.ip_local_port_range="$((LAST + 1)) 60999"
ip addr add 198.51.100.1/32 dev lo
agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  shop: {ip: 10.77.200.1, ports: [80:7000], backends: [{app: one}]}
  shop6: {ip: "fd00:77::200:1", ports: [80:7000], backends: [{app: one}]}
EOF
serve 7000 --name one --ip 10.77.1.1,fd00:77::1:1 -p 8080:7000 -- "$BIN/storm" serve 7000
# storm uses its ports again at once
nsenter -t "$(child_of "$APP")" -n sysctl -qw net.ipv4.tcp_max_tw_buckets=0

is "a service's connections and those to its backend from the same port are answered" \
	"$("$BIN/storm" mix 10.77.200.1 80 10.77.1.1 7000 8000 1100 2>&1)" 0
is "an exposed port's, too, which leave clients their own port" \
	"$("$BIN/storm" mix 198.51.100.1 8080 10.77.1.1 7000 2000 1100 2>&1)" 0
is "and by IPv6" "$(ports mix fd00:77::200:1:80 fd00:77::1:1:7000 300 2>&1)" 0

bg "$T/kept" "$PYTHON" "$SRC/service_ports.py" keep 10.77.200.1:80 50 "$T/go"
wait_for "[ -s '$T/kept' ]"
is "connections to the backend itself are made from any port" \
	"$(ports every 10.77.1.1:7000 "$FIRST" "$LAST" 2>&1)" "0 True"
touch "$T/go"
wait_for -t 40 "[ \$(wc -l <'$T/kept') = 2 ]"
is "and end none that is open through the service" "$(xargs <"$T/kept")" "50 50"
stop_apps
done_testing
