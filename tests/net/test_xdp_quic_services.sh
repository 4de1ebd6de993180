#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Balancers whose backends a service has: its quic-id says which of them a QUIC connection id names.
. "$(dirname "$0")/lib.sh"
need ip jq
veth_or_skip xq0 type veth peer name xq1
ip addr add 198.51.100.1/24 dev xq0
ip link set xq0 up
ip link set xq1 up
sysctl -qw net.ipv4.conf.xq0.forwarding=1
for i in 11 12 13; do ip neigh replace 198.51.100.$i lladdr 02:00:00:00:00:$i dev xq0; done

# config BACKENDS
config() {
	default_config
	cat <<-EOC
		services:
		  web: {ports: ["443/udp"], backends: [$1]}
		xdp:
		  balancers: {web: {mode: gue, service: web}}
		  interfaces:
		    xq0: {rules: [{name: web, dst: 192.0.2.1, proto: udp, dport: 443, action: balance web}]}
	EOC
}
ids() {
	ax xdp status xq0 -o json | jq -c '[.[0].balancers[0].backends[] | .quic_id // "none"]'
}
explained() { # NUMBER
	ax xdp explain xq0 --packet "udp 198.51.100.2:7 > 192.0.2.1:443 data hex:4000$(printf %04x "$1")0102030405" -o json |
		jq -r '.reason // "none"'
}
agent_start - < <(config "{address: 198.51.100.11, quic-id: 7}, {address: 198.51.100.12, quic-id: 8}, {address: 198.51.100.13}")
ok "the list is there" wait_for '[ "$(ids)" = "[7,8,\"none\"]" ]'
is "a number leads to its backend" "$(explained 7) $(explained 8)" "quic-id quic-id"
is "another leads nowhere" "$(explained 9)" quic-unknown

config "{address: 198.51.100.11, quic-id: 9}, {address: 198.51.100.12, quic-id: 8}" >"$T/other.yaml"
ok "other numbers" ax config apply "$T/other.yaml"
ok "come to the list" wait_for '[ "$(ids)" = "[9,8]" ]'
is "and hold" "$(explained 9) $(explained 7)" "quic-id quic-unknown"

config "{address: 198.51.100.11-198.51.100.12, quic-id: 7}, {address: 198.51.100.13, quic-id: 8}" >"$T/range.yaml"
ok "a number for several" ax config apply "$T/range.yaml"
ok "is nobody's" wait_for '[ "$(ids)" = "[\"none\",\"none\",8]" ]'
ok "which the agent says" wait_for 'grep -q "quic-id 7 of the service web is several backends" "$T/$INST.log"'
like "one that is none is refused" "$(config "{address: 198.51.100.11, quic-id: 65536}" >"$T/bad.yaml"; ax config apply "$T/bad.yaml" 2>&1)" \
	'quic-id: found "65536", expected a whole number of 0 to 65535'
ip link del xq0
done_testing
