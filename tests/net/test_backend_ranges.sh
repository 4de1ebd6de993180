#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Backends as ranges of addresses: each serves; 10,000 services with 100 backends each are a small
# file, of which one may change while the others stand.
. "$(dirname "$0")/lib.sh"
need jq
POOL4=10.77.0.0/18 # apps get addresses at random: none may be one of the 10,000 services

hits() { in_app --net host -- "$PYTHON" "$SRC/hits.py" ask "$1" "$2"; }
agent_start - <<-EOF2
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	services:
	  ranges:
	    ip: 10.77.200.1
	    ports: ["80:7900"]
	    strategy: round-robin
	    backends: [{address: 127.0.9.1-127.0.9.3}, {address: "127.0.9.9-127.0.9.9:7900"}]
	  one:
	    ip: "fd77::200:1"
	    ports: ["80"]
	    backends: [{address: "[fd00::fffe-fd00::1:1]:80"}]
EOF2
bg "$T/server.out" "$PYTHON" "$SRC/hits.py" serve 0.0.0.0 7900
SERVER=$BG
wait_for "ss -Hltn 'sport = :7900' | grep -q ."
is "each address of a range serves" "$(hits 10.77.200.1 8)" \
	"127.0.9.1=2 127.0.9.2=2 127.0.9.3=2 127.0.9.9=2"
addresses() {
	ax get services -o json "$1" |
		jq -r '[.[].backends[] | .address + (if .state then "=" + .state else "" end)] | join(" ")'
}
is "a range is shown as one, as the config has it" "$(addresses one)" "fd00::fffe-fd00::1:1"
ok "one of it drains" ax service drain one '[fd00::1:0]:80'
is "and is shown alone, between the others" "$(addresses one)" \
	"fd00::fffe-fd00::ffff fd00::1:0=draining fd00::1:1"
like "in the table too" "$(ax get services one)" \
	' \[fd00::fffe-fd00::ffff\]:80, \[fd00::1:0\]:80 draining, \[fd00::1:1\]:80'
ok "one of a range drains" ax service drain ranges 127.0.9.2
is "with IPv4" "$(addresses ranges)" "127.0.9.1 127.0.9.2=draining 127.0.9.3 127.0.9.9"
is "and gets nothing more" "$(hits 10.77.200.1 6)" "127.0.9.1=2 127.0.9.3=2 127.0.9.9=2"
ok "a service of the command line" ax service add cli --port 80:7900 \
	--backend address:127.0.9.5-127.0.9.6,weight=2 --strategy round-robin
is "has ranges as well" "$(hits cli 4)" "127.0.9.5=2 127.0.9.6=2"
for bad in 10.0.0.2-10.0.0.1 10.0.0.1- -10.0.0.1 10.0.0.1-10.0.0.2-10.0.0.3 10.0.0.1-fd00::1 \
	10.0.0.1-10.1.0.0 fd00::1-fd01::1 10.0.0.1:80-10.0.0.2 10.0.0.1-10.0.0.2:0 1.2.3.4-255.255.255.255; do
	fails "refused: $bad" ax config check <(
		echo "services: {s: {ports: [80], backends: [{address: \"$bad\"}]}}")
done

many() { # of which number 77 is $1
	cat <<-EOF2
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
	EOF2
	for i in $(seq 0 9999); do
		printf '  s%d: {ip: 10.77.%d.%d, ports: ["80:7900"], strategy: %s, backends: [{address: 127.%d.%d.1-127.%d.%d.100}]}\n' \
			"$i" $((100 + i / 200)) $((i % 200 + 1)) "$([ "$i" = 77 ] && echo "$1" || echo random)" \
			$((1 + i / 100)) $((i % 100)) $((1 + i / 100)) $((i % 100))
	done
}
many random >"$T/many.yaml"
many round-robin >"$T/one.yaml"
ok "10,000 services with 100 backends each" ax config apply "$T/many.yaml"
like "serve" "$(hits 10.77.149.200 1)" '^127\.100\.99\.[0-9]+=1$'
like "a change of one is one difference" "$(ax config apply "$T/one.yaml")" "^~ service s77: strategy random -> round-robin.*1 difference applied"
is "it holds" "$(hits 10.77.100.78 100 | wc -w)" 100
is "all are listed" "$(ax get services -o name | grep -cx 's[0-9]*')" 10000
is "with their backends" "$(ax get services | grep -c '127\.[0-9]*\.[0-9]*\.1-127\.[0-9]*\.[0-9]*\.100 *$')" 10000
is "one of them by its name" "$(addresses s9999)" 127.100.99.1-127.100.99.100
fails "another name is none" ax get services s10000
less() { [ "$(awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$AGENT/status")" -lt 150 ]; }
ok "the agent needs little memory for them" less
agent_kill9
agent_again
like "the next agent has them" "$(hits 10.77.149.200 1)" '^127\.100\.99\.[0-9]+=1$'
default_config >"$T/none.yaml"
ok "all of them go" ax config apply "$T/none.yaml"
ok "and the added one" ax service del cli
end "$SERVER"
done_testing
