#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Rules learn addresses for a time: who is above a rate is banned, who knocks in order gets in, what a
# command holds is dropped and let go; all of it outlives the agent and a change of the list.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/xdp.sh
. "$(dirname "$0")/xdp.sh"
need ip jq "$PYTHON"
build_c tcp

peer_host
known_neighbours
peer ip addr add 198.51.100.3/24 dev eth0
config() {
	cat <<-E
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		xdp:
		  interfaces:
		    xc0:
		      default: ${1:-pass}
		      sets:
		        bad: [192.0.2.0/24]
		        knocked-1: []
		        knocked-2: []
		        friends: {timed: yes}
		      rules:
		        - {name: ban, src: "@bad", action: drop}
		        - {name: flood, proto: udp, dport: 9000, rate: "10pps,burst=20,per=src", learn: "@bad,10m,above-rate", action: pass}
		        - {name: open, src: "@friends", proto: tcp, dport: 8080, action: pass}
		        - {name: knock-3, src: "@knocked-2", proto: tcp, dport: 7003, learn: "@friends,1m", action: drop}
		        - {name: knock-2, src: "@knocked-1", proto: tcp, dport: 7002, learn: "@knocked-2,30s", action: drop}
		        - {name: knock-1, proto: tcp, dport: 7001, learn: "@knocked-1,30s", action: drop}
		        - {name: closed, proto: tcp, dport: 8080, action: drop}
	E
}
config >"$T/config.yaml"
agent_start "$T/config.yaml"
wait_for 'xdp stats xc0 >/dev/null 2>&1'
bg "$T/server" "$BIN/tcp" listen 6 :: 8080 hello
bg "$T/other" "$BIN/tcp" listen 6 :: 8081 hello
wait_for "grep -q listening $T/server && grep -q listening $T/other"

elements() {
	xdp set list xc0 "$1" -o json | jq -r '.[] | if type == "string" then . else "\(.element) \(.by)" end' | sort | tr '\n' ' '
}
# reach SOURCE [SECONDS]
reach() {
	peer "$PYTHON" -c 'import socket, sys
socket.create_connection(("198.51.100.1", 8081), float(sys.argv[2]), (sys.argv[1], 0))' "$1" "${2:-10}" 2>/dev/null
}

# --- above its rate ---

ok "an address that did nothing gets through" reach 198.51.100.2
is "the set has what the config says" "$(elements bad)" "192.0.2.0/24 "
packets_from() { # SOURCE N DPORT [PROTO]
	peer "$PYTHON" "$SRC/packets.py" send eth0 "proto=${4:-udp}" "n=$2" "src=$1" dst=198.51.100.1 sport=5000 \
		"dport=$3" smac=$PEER_MAC dmac=$HERE_MAC
}
packets_from 198.51.100.3 10 9000
wait_for '[ "$(count flood)" -ge 10 ]'
is "a few datagrams are no flood" "$(elements bad)" "192.0.2.0/24 "
packets_from 198.51.100.3 400 9000
wait_for '[[ "$(elements bad)" = *198.51.100.3* ]]'
is "who sends too many is in the set" "$(elements bad)" "192.0.2.0/24 198.51.100.3 rule "
like "with the time left" "$(xdp set list xc0 bad)" '198\.51\.100\.3  for (10m00|9m[0-5][0-9])s more, by a rule'
fails "and nothing of it comes in any more" reach 198.51.100.3 0.3
ok "while others do" reach 198.51.100.2
is "sets say how many" "$(xdp set list xc0 -o json | jq '.[] | select(.name == "bad") | [.elements, .["for-a-time"]] | @csv' -r)" 1,1

# --- knocking ---

opened() { # [SECONDS]
	peer timeout "${1:-10}" "$BIN/tcp" connect 4 198.51.100.1 8080 2>/dev/null | grep -q ^peer=
}
knock() { # sends SYNs that are dropped, until the rule has counted one
	local was
	was=$(count "$2")
	packets_from 198.51.100.2 1 "$1" tcp
	wait_for "[ \"\$(count $2)\" -gt $was ]"
}
fails "a port is closed to who has not knocked" opened 0.3
knock 7001 knock-1
was=$(count knock-3)
packets_from 198.51.100.2 1 7003 tcp
fails "knocking in another order does not open it" opened 0.3
is "the last knock alone is none" "$(count knock-3)" "$was"
knock 7002 knock-2
knock 7003 knock-3
ok "knocking in order does" opened

# --- what stays ---

agent_stop
agent_start "$T/config.yaml"
is "a new agent finds what was learned" "$(elements bad)" "192.0.2.0/24 198.51.100.3 rule "
config pass | sed 's/name: closed/name: shut/' >"$T/config2.yaml"
ok "another list" ax config apply "$T/config2.yaml"
wait_for 'xdp rule list xc0 | grep -q shut'
fails "finds it, too" reach 198.51.100.3 0.3
ok "and who has knocked is in" opened

# --- commands ---

like "an address is let go by hand" "$(xdp set del bad 198.51.100.3)" "and 1 that was there for a time is gone"
ok "and comes in again" reach 198.51.100.3
like "one is held" "$(xdp set add bad 198.51.100.3 --for 10m)" "xc0: set bad has 1 address for 10m00s"
fails "and dropped" reach 198.51.100.3 0.3
is "as a command's" "$(elements bad)" "192.0.2.0/24 198.51.100.3 command "
xdp set del bad 198.51.100.3 >/dev/null
xdp set add bad 198.51.100.3 --for 1s >/dev/null
wait_for 'reach 198.51.100.3 0.3'
ok "until its time is over" reach 198.51.100.3
like "a network is none that is held" "$(xdp set add bad 198.51.100.0/24 --for 1m 2>&1)" \
	"198.51.100.0/24 cannot be there for a time: give addresses"
like "ports are not held" "$(xdp set add bad 22 --for 1m 2>&1)" "\"22\""
like "a set that is not there" "$(xdp set add bda 10.0.0.1 --for 1m -i xc0 2>&1)" "'bda'"

agent_stop
xdp unload xc0 >/dev/null
cat >"$T/plain.yaml" <<'E'
sets: {plain: []}
rules: [{name: p, src: "@plain", action: drop}]
E
ok "a list without the agent" xdp load xc0 --rules "$T/plain.yaml"
like "a set of it takes elements for a time" "$(xdp set add plain 198.51.100.3 --for 5m 2>&1)" "has 1 address for 5m00s"
fails "which are dropped" reach 198.51.100.3 0.3
like "and what a rule can say is told" "$(xdp rule add --help)" "rate, learn, sample"
like "what is shown says so" "$(xdp rule list xc0 -o yaml)" "timed: yes"
sed 's/plain: \[\]/plain: {timed: yes}/' "$T/plain.yaml" >"$T/waits.yaml"
ok "a list that waits for its confirmation" xdp apply xc0 --rules "$T/waits.yaml" --confirm 5m
like "of it nothing goes" "$(xdp set del plain 198.51.100.3 2>&1)" "waits for its confirmation"
is "not even what was held" "$(elements plain)" "198.51.100.3 command "
xdp confirm xc0 >/dev/null
ok "then it does" xdp set del plain 198.51.100.3
ok "off" xdp unload xc0
xdp_done
