#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 120
# Rules for interfaces of some groups (interface-group), in both directions: by number and by name,
# put there by command, followed by the agent when `ip link set` changes the group.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq "$PYTHON"

peer_host
known_neighbours

group() {
	ip link set xc0 group "$1"
}
off() { # PLACE...: the rules that are not for the interface's group
	xdp rule list xc0 "$@" -o json | jq -r '[.rules[] | select(.off) | .name] | join(" ")'
}
verdict() { # PORT ARG...
	local port=$1
	shift
	xdp explain xc0 --packet "udp 198.51.100.2:5 > 198.51.100.1:$port" "$@" -o json |
		jq -r '"\(.verdict) \(.rule)"'
}
# send FROM TO PORT: a datagram, of which nobody needs to hear
send() {
	local run=
	[ "$1" = peer ] && run=peer
	$run "$PYTHON" -c "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'x', ('$2', $3))"
}

# --- by command ---

cat >"$T/rules.yaml" <<'END'
rules:
  - {name: inner, interface-group: [7, 100-199], proto: udp, dport: 9000, action: drop}
  - {name: outer, interface-group: "!7", proto: udp, dport: 9000, action: pass}
  - {name: last, interface-group: default, action: drop}
END
for direction in ingress egress; do
	way="--direction $direction"
	place=xc0
	[ $direction = egress ] && place=xc0:egress
	send_there() {
		if [ "$direction" = egress ]; then send here 198.51.100.2 "$1"; else send peer 198.51.100.1 "$1"; fi
	}
	group 7
	# shellcheck disable=SC2086
	{
		ok "$direction: a list of rules for groups" xdp load xc0 $way --rules "$T/rules.yaml"
		is "those of others are off" "$(off $way)" "outer last"
		like "which is said" "$(xdp rule list xc0 $way)" \
			"2 +outer +proto udp dport 9000 interface-group !7 action pass \(not this interface's group\)"
		unlike "and not of others" "$(xdp rule list xc0 $way | grep ' inner ')" "group\)"
		is "the interface's rule decides" "$(verdict 9000 $way) $(verdict 9001 $way)" "drop inner pass default"
		send_there 9000
		is "and counts" "$(count inner packets $place) $(count outer packets $place)" "1 0"
		group 150
		is "a list stays as it is for the group of then" "$(verdict 9000 $way)" "drop inner"
		ok "until it is put there again" xdp apply xc0 $way --rules "$T/rules.yaml"
		is "now all but those for this group are off" "$(off $way)" last
		is "which is in the range" "$(verdict 9000 $way)" "drop inner"
		group default
		ok "a change of one rule does it, too" xdp rule add xc0 $way name more proto tcp action pass
		is "the default is a group" "$(off $way) $(verdict 9000 $way) $(verdict 9001 $way)" \
			"inner pass outer drop last"
		group 7
		xdp rule del xc0 $way more
		is "counters go on" "$(count inner packets $place)" 1
		xdp rule list xc0 $way -o yaml >"$T/printed.yaml"
		is "what is printed is what was loaded" \
			"$(grep -o 'interface-group: [^,}]*' "$T/printed.yaml" | tr -d '"[' | tr '\n' ' ')" \
			"interface-group: 7 interface-group: !7 interface-group: default "
		ok "and can be loaded" xdp apply xc0 $way --rules "$T/printed.yaml"
		like "status knows the rules" "$(xdp status xc0 -o json)" '"rules": ?3'
	}
	xdp unload xc0 --direction $direction
done
ok "a list" xdp load xc0
like "a group that nobody knows by name" \
	"$(xdp rule add xc0 name n interface-group nobodys action drop 2>&1)" \
	"rule 1 \(n\) is for the interface-group nobodys, and no group has this name in /etc/iproute2/group"
like "one and its opposite" "$(xdp rule add xc0 interface-group '7,!8' action drop 2>&1)" \
	'interface-group "!8" is not valid: use either the groups that it may be in'
like "nothing to look for in packets" "$(xdp dump xc0 -n 1 -d 1s -w /dev/null interface-group 7 2>&1)" \
	"interface-group says which interfaces a rule is for"
like "the help has it" "$(xdp rule add --help)" "interface-group"
xdp unload xc0

# --- elements of large sets that come to it ---

"$PYTHON" - >"$T/large.txt" <<'END'
for i in range(20000):
    print("10.%d.%d.%d" % (i >> 14, i >> 7 & 127, (i & 127) * 2))
END
cat >"$T/large.yaml" <<'END'
sets: {many: {file: large.txt}}
rules:
  - {name: off, interface-group: 8, src: "@many", proto: udp, action: pass}
  - {name: on, interface-group: 7, src: "@many", proto: udp, dport: 1-10000, action: drop}
END
group 7
ok "a large set" xdp load xc0 --rules "$T/large.yaml"
ok "an element more" xdp set add many 198.51.100.2
is "is one of the rule that is on" "$(verdict 9000)" "drop on"
group 8
ok "and another one less" xdp rule add xc0 name end action pass
is "or of the other" "$(verdict 9000)" "pass off"
xdp unload xc0

# --- by config ---

group 7
cat >"$T/both.yaml" <<'END'
rules:
  - {name: seven, interface-group: 7, proto: udp, dport: 9000, action: drop}
  - {name: eight, interface-group: 8, proto: udp, dport: 9000, action: pass}
  - {name: rest, proto: udp, dport: 9001, action: drop}
END
agent_start - <<END
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
xdp:
  interfaces:
    xc0: {rules-file: both.yaml}
END
generation() {
	xdp status xc0 -o json | jq 'if type == "array" then .[0] else . end | .generation'
}
ok "the agent puts it there" wait_for '[ "$(verdict 9000)" = "drop seven" ]'
send peer 198.51.100.1 9000
is "it judges" "$(count seven)" 1
first=$(generation)
echo 'nonsense' >>"$T/both.yaml" # read with the next apply, not now
group 8
ok "a new group has its rules at once" wait_for '[ "$(verdict 9000)" = "pass eight" ]'
is "in one step, with the others' counters" "$(generation) $(count seven)" "$((first + 1)) 1"
is "what is off" "$(off)" seven
ip link set xc0 mtu 1400
ip link set xc0 mtu 1500
group 8
sleep 0.4
is "other news of the interface change nothing" "$(generation)" $((first + 1))
sed -i '/nonsense/d' "$T/both.yaml"
group 7
ok "and back" wait_for '[ "$(verdict 9000)" = "drop seven" ]'
kill -KILL "$AGENT"
wait "$AGENT" 2>/dev/null
group 8
is "while no agent is there it stays" "$(verdict 9000)" "drop seven"
agent_again
ok "the next one looks" wait_for '[ "$(verdict 9000)" = "pass eight" ]'
sed -i 's/{rules-file/{direction: egress, rules-file/' "$T/$INST.yaml"
group 7
ok "of what leaves" ax config apply "$T/$INST.yaml"
egress() {
	verdict 9000 --direction egress
}
is "by the group" "$(egress)" "drop seven"
group 8
ok "the same" wait_for '[ "$(egress)" = "pass eight" ]'
xdp_done
