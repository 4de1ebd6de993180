#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Rules learn flows: who knocks opens one port of one address for itself, of IPv4 and IPv6 and for what
# comes in as for what leaves, and all else stays shut; commands show, add and remove flows; what was
# learned outlives the agent and a change of the list.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/xdp.sh
. "$(dirname "$0")/xdp.sh"
need ip jq "$PYTHON"
build_c tcp

peer_host
known_neighbours
ip addr add 198.51.100.9/24 dev xc0
peer ip addr add 198.51.100.3/24 dev eth0
config() {
	cat <<-E
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		xdp:
		  interfaces:
		    xc0:
		      default: drop
		      sets: {open: {flows: []}, seen: {flows: []}, plain: []}
		      rules:
		        - {name: open, flow: "@open", action: pass}
		        - {name: knock, proto: udp, dport: 7001, learn: "@open,10m,flow=8080/tcp", action: drop}
		        - {name: secret, proto: udp, dport: 9000, payload: "at 0 0x53 0x45", learn: "@open,10m,flow", action: drop}
		        - {name: ${1:-rest}, proto: udp, dport: 9001, learn: "@seen,1m,flow", action: drop}
		        - {name: own, state: established, action: pass}
	E
}
config >"$T/config.yaml"
agent_start "$T/config.yaml"
wait_for 'xdp stats xc0 >/dev/null 2>&1'
bg "$T/server" "$BIN/tcp" listen 6 :: 8080 hello
bg "$T/other" "$BIN/tcp" listen 6 :: 8081 hello
wait_for "grep -q listening $T/server && grep -q listening $T/other"

flows() { # [SET]
	xdp set list xc0 "${1:-open}" -o json | jq -r '.[] | "\(.element) \(.by)"' | sort | tr '\n' ' '
}
reach() { # SOURCE TO PORT [SECONDS]
	peer "$PYTHON" -c 'import socket, sys
to, port, seconds = sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
socket.create_connection((to, port), seconds, (sys.argv[1], 0))' "$1" "$2" "$3" "${4:-10}" 2>/dev/null
}
datagram() { # SOURCE TO PORT TEXT
	peer "$PYTHON" -c 'import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 0))
s.sendto(sys.argv[4].encode(), (sys.argv[2], int(sys.argv[3])))' "$@"
}

# --- knocking ---

fails "a port is shut" reach 198.51.100.2 198.51.100.1 8080 0.3
datagram 198.51.100.2 198.51.100.1 7001 knock
wait_for '[ "$(count knock)" -ge 1 ]'
ok "who has knocked comes in" reach 198.51.100.2 198.51.100.1 8080
fails "but to no other port" reach 198.51.100.2 198.51.100.1 8081 0.3
fails "to no other address" reach 198.51.100.2 198.51.100.9 8080 0.3
fails "and nobody else does" reach 198.51.100.3 198.51.100.1 8080 0.3
is "that flow is in the set" "$(flows)" "198.51.100.2-198.51.100.1:8080/tcp rule "
like "with the time left" "$(xdp set list xc0 open)" \
	'^198\.51\.100\.2-198\.51\.100\.1:8080/tcp  for (10m00|9m[0-5][0-9])s more, by a rule'
like "a packet is explained by it" "$(xdp explain xc0 --packet 'tcp 198.51.100.2:9 > 198.51.100.1:8080')" \
	'rule .*open'
like "and another one is not" "$(xdp explain xc0 --packet 'tcp 198.51.100.3:9 > 198.51.100.1:8080')" \
	'verdict +drop'

ip -6 addr add fd51::1/64 dev xc0 nodad
peer ip -6 addr add fd51::2/64 dev eth0 nodad
fails "IPv6 is shut, too" reach fd51::2 fd51::1 8080 0.3
datagram fd51::2 fd51::1 7001 knock
wait_for '[[ "$(flows)" = *fd51::* ]]'
ok "and opens" reach fd51::2 fd51::1 8080
fails "that port" reach fd51::2 fd51::1 8081 0.3
like "as such a flow" "$(flows)" 'fd51::2-\[fd51::1\]:8080/tcp rule'

# --- the packet's own port ---

datagram 198.51.100.3 198.51.100.1 9000 "no secret"
datagram 198.51.100.3 198.51.100.1 9000 SESAME
wait_for '[ "$(count secret)" -ge 1 ]'
is "who knows what to say is let in there" "$(flows | grep -o '[^ ]*:9000/udp rule')" \
	"198.51.100.3-198.51.100.1:9000/udp rule"
was=$(count open)
datagram 198.51.100.3 198.51.100.1 9000 "no secret"
wait_for "[ \"\$(count open)\" -gt $was ]"
ok "with anything, then" test "$(count open)" -gt "$was"
datagram 198.51.100.2 198.51.100.1 9001 x
wait_for '[ -n "$(flows seen)" ]'
is "sets are apart" "$(flows seen)" "198.51.100.2-198.51.100.1:9001/udp rule "

# --- what stays ---

before=$(flows)
agent_stop
agent_start "$T/config.yaml"
is "a new agent finds it" "$(flows)" "$before"
config shut | sed 's/plain: \[\]/plain: [], more: {flows: []}/' >"$T/config2.yaml"
like "a dry run tells of sets of flows" "$(ax config apply --dry-run "$T/config2.yaml")" "set more"
ok "another list" ax config apply "$T/config2.yaml"
wait_for 'xdp rule list xc0 | grep -q shut'
is "finds it, too" "$(flows)" "$before"
ok "and who has knocked is in" reach 198.51.100.2 198.51.100.1 8080

# --- commands ---

like "a flow is let go by hand" "$(xdp set del open 198.51.100.2-198.51.100.1:8080/tcp 2>&1)" \
	"and 1 that was there for a time is gone"
fails "and shut" reach 198.51.100.2 198.51.100.1 8080 0.3
is "one is held" "$(xdp set add open 198.51.100.3-198.51.100.1:8081/tcp --for 10m 2>&1)" \
	"xc0: set open has 1 flow for 10m00s"
ok "which is open" reach 198.51.100.3 198.51.100.1 8081
like "as a command's" "$(flows)" "198.51.100.3-198.51.100.1:8081/tcp command"
xdp set add open 198.51.100.2-198.51.100.1:8081/tcp --for 1s >/dev/null
wait_for '! reach 198.51.100.2 198.51.100.1 8081 0.3'
fails "until its time is over" reach 198.51.100.2 198.51.100.1 8081 0.3
is "sets are listed as what they are" \
	"$(xdp set list -o json | jq -r '.[] | select(.name == "open") | [.kind, .elements] | @csv')" '"flows",0'

# --- what is refused ---

like "a flow does not come to stay" "$(xdp set add open 198.51.100.3-198.51.100.1:22/tcp 2>&1)" \
	"set 'open' is one of flows, which are there for a time: 'ax xdp set add' with --for"
like "an address is no flow" "$(xdp set add open 198.51.100.3 --for 1m 2>&1)" \
	"the set is one of flows: give such as 10.0.0.1-10.0.0.2:22/tcp"
like "nor is half of one" "$(xdp set add open 198.51.100.3-198.51.100.1:22 --for 1m 2>&1)" \
	'"198.51.100.3-198.51.100.1:22" is not valid: use a flow such as 10.0.0.1-10.0.0.2:22/tcp'
like "flows are in their own sets" "$(xdp set add plain 198.51.100.3-198.51.100.1:22/tcp --for 1m 2>&1)" \
	"set 'plain' is one of prefixes: flows are in sets of flows"
like "such a set is none of sources" "$(xdp rule add xc0 src @open action drop 2>&1)" \
	"use a set of prefixes there, not of flows"
agent_stop
ok "off" xdp unload xc0

# --- without the agent, and for what leaves ---

cat >"$T/out.yaml" <<'E'
direction: egress
default: pass
sets: {told: {flows: []}}
rules:
- {name: once, flow: "@told", action: drop}
- {name: first, proto: udp, dport: 53, learn: "@told,10m,flow", action: pass}
E
ok "a list for what leaves" xdp load xc0 --rules "$T/out.yaml"
here_sends() { # TO
	"$PYTHON" -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("198.51.100.1", 0))
s.sendto(b"x", (sys.argv[1], 53))' "$1"
}
counted() { # RULE
	count "$1" packets xc0:egress
}
here_sends 198.51.100.2
wait_for '[ "$(counted first)" = 1 ]'
here_sends 198.51.100.2 || true # (the socket may be told of the drop)
wait_for '[ "$(counted once)" = 1 ]'
here_sends 198.51.100.3
wait_for '[ "$(counted first)" = 2 ]'
is "what leaves is learned by where it goes" \
	"$(xdp set list xc0 told --direction egress -o json | jq -r '.[].element' | tr '\n' ' ')" \
	"198.51.100.1-198.51.100.2:53/udp 198.51.100.1-198.51.100.3:53/udp "
is "and judged by that" "$(counted once) $(counted first)" "1 2"
like "what is shown says so" "$(xdp rule list xc0 --direction egress -o yaml)" "flows: \[\]"
xdp rule list xc0 --direction egress -o yaml >"$T/again.yaml"
ok "and is a list again" xdp apply xc0:egress --rules "$T/again.yaml"
like "in which all stays" "$(xdp set list xc0 told --direction egress)" '198\.51\.100\.3:53/udp  for '
like "a set of flows is made by hand" "$(xdp set replace more --create flows -i xc0 --direction egress 2>&1)" \
	"set more has 0 elements"
ok "off, too" xdp unload xc0 --direction egress
xdp_done
