#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Passive health checks: connections that fail have a backend checked at once; it is down if the
# check fails too, and comes back when a later one succeeds. An app that makes its own connections
# fail takes no backend from others.
. "$(dirname "$0")/lib.sh"
need jq

hits() { in_app --net "$3" --egress -- "$PYTHON" "$SRC/hits.py" ask "$1" "$2" "${4:-hello}"; }
state() {
	ax get services -o json | jq -r --arg s "$1" --arg b "$2" '.[] | select(.name == $s) |
		.backends[] | select(.address == $b) | .state // "-"'
}
server() { # ADDRESS: sets BG
	bg "$T/server.$1" "$PYTHON" "$SRC/hits.py" serve "$1" 7800
	wait_for "ss -Hltn 'src $1:7800' | grep -q ."
}

ip address add 192.0.2.1/32 dev lo
ip address add 192.0.2.2/32 dev lo
agent_start - <<-EOF2
	agent:
	  pool: {ipv4: $POOL4}
	services:
	  passive:
	    ip: 10.77.200.1
	    ports: ["80:7800"]
	    strategy: round-robin
	    backends: [{address: 192.0.2.1}, {address: 192.0.2.2}]
	    check: {type: passive, passive: 3, window: 60s, every: 200ms, rise: 2}
	  slow:
	    ip: 10.77.200.2
	    ports: ["80:7800"]
	    strategy: round-robin
	    backends: [{address: 192.0.2.2}] # (who is asked is counted at the other)
	    check: {type: tcp, passive: 3, window: 60s, every: 60s, timeout: 5s, fall: 3, rise: 1}
	  plain:
	    ip: 10.77.200.3
	    ports: ["80:7800"]
	    strategy: round-robin
	    backends: [{address: 192.0.2.1}, {address: 192.0.2.2}]
EOF2
bg "$T/events" "$AX" --instance "$INST" events -f -o json
EVENTS=$BG
server 192.0.2.1
ONE=$BG
server 192.0.2.2
TWO=$BG
is "both serve" "$(hits 10.77.200.1 4 host)" "192.0.2.1=2 192.0.2.2=2"
is "nobody is down" "$(state passive 192.0.2.1) $(state passive 192.0.2.2)" "up up"
accepted=$(wc -l <"$T/server.192.0.2.1")
sleep 0.5
is "nobody is asked without a reason" "$(wc -l <"$T/server.192.0.2.1")" "$accepted"

# what an app does to its own connections
is "connections that the server resets" "$(hits 10.77.200.1 8 host reset)" "ECONNRESET=8"
ok "make no backend down that answers the agent" wait_for "[ \$(wc -l <$T/server.192.0.2.1) -gt $((accepted + 4)) ]"
is "which stays up" "$(state passive 192.0.2.1) $(state passive 192.0.2.2)" "up up"
hits 10.77.200.1 20 host abort >/dev/null
is "nor do those that the app aborts" "$(state passive 192.0.2.1) $(state passive 192.0.2.2)" "up up"

# a backend that is gone
end "$TWO"
is "the first connections to a dead backend fail" "$(hits 10.77.200.1 6 host)" "192.0.2.1=3 ECONNREFUSED=3"
ok "then it is down" wait_for "[ \$(state passive 192.0.2.2) = down ]"
like "and why" "$(ax get services -o wide passive)" "192.0.2.2: connect: Connection refused"
is "the others get all" "$(hits 10.77.200.1 6 host)" "192.0.2.1=6"
ok "an event says it" wait_for "grep -q '\"service\":\"passive\",\"state\":\"down\",\"local\":\"192.0.2.2\"' $T/events"
ok "a service with checks a minute apart knows it as well" wait_for "[ \$(state slow 192.0.2.2) = down ]"
is "one without is not asked" "$(state plain 192.0.2.2)" "-"
agent_kill9
agent_again
is "the next agent knows it" "$(state passive 192.0.2.2)" down
server 192.0.2.2
TWO=$BG
ok "it is up again when it answers" wait_for "[ \$(state passive 192.0.2.2) = up ]"
is "and serves" "$(hits 10.77.200.1 4 host)" "192.0.2.1=2 192.0.2.2=2"
end "$TWO"
is "what fails after a restart of the agent counts" "$(hits 10.77.200.1 6 host)" "192.0.2.1=3 ECONNREFUSED=3"
ok "too" wait_for "[ \$(state passive 192.0.2.2) = down ]"

# clients with a network of their own
server 192.0.2.2
TWO=$BG
ok "up again" wait_for "[ \$(state passive 192.0.2.2) = up ]"
is "private clients: both serve" "$(hits 10.77.200.1 4 private)" "192.0.2.1=2 192.0.2.2=2"
hits 10.77.200.1 20 private abort >/dev/null
is "those that they abort count for nothing" "$(state passive 192.0.2.1) $(state passive 192.0.2.2)" "up up"
end "$TWO"
is "they see it fail" "$(hits 10.77.200.1 6 private)" "192.0.2.1=3 ECONNREFUSED=3"
ok "so it is down" wait_for "[ \$(state passive 192.0.2.2) = down ]"
is "and the others get all" "$(hits 10.77.200.1 6 private)" "192.0.2.1=6"

end "$EVENTS"
end "$ONE"
for bad in "passive x" "{type: tcp, window: 5s}" "{type: passive, path: /}" "{type: tcp, passive: 0}"; do
	fails "refused: check: $bad" ax config check <(
		echo "services: {s: {ports: [80], backends: [a], check: $bad}}")
done
for good in passive "{type: http, passive: 3}" "{type: passive, window: 1m}"; do
	ok "check: $good" ax config check <(echo "services: {s: {ports: [80], backends: [a], check: $good}}")
done
done_testing
