#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The config's xdp: section through the agent: put on, changed, taken off, waited for, kept when the
# agent dies; files of rules and sets; backends of services and their health.
. "$(dirname "$0")/lib.sh"
need jq ip python3

unshare -n sleep 1000 &
PEER_PID=$!
BACKGROUND+=("$PEER_PID")
wait_for "[ \"\$(readlink /proc/$PEER_PID/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
peer() {
	nsenter -t "$PEER_PID" -n "$@"
}
# pair NAME NUMBER: a veth pair to the peer
pair() {
	veth_or_skip "$1" type veth peer name "p$1" netns "$PEER_PID"
	ip addr add "198.51.$2.1/24" dev "$1"
	ip link set "$1" up
	peer ip link set "p$1" up
	peer ip addr add "198.51.$2.2/24" dev "p$1"
	wait_for "ip link show $1 | grep -q LOWER_UP"
}
peer ip link set lo up
pair xa0 100 || bail_out "xa0 does not come up"

mkdir "$T/etc"
cat >"$T/etc/block.txt" <<EOF
192.0.2.0/24 # documentation
198.51.100.99
EOF
cat >"$T/etc/rules.yaml" <<'EOF'
sets:
  local: {file: block.txt}
default: pass
rules:
  - {name: blocked, src: "@local", action: drop}
  - {name: udp9001, proto: udp, dport: 9001, action: drop}
EOF
config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	EOF
	cat
}
first() {
	config <<-EOF
		xdp:
		  sets:
		    shared: {file: $T/etc/block.txt}
		  interfaces:
		    xa0:
		      rules:
		        - {name: good, proto: udp, dport: 9000, action: pass}
		        - {name: bad, src: "@shared", action: drop}
		        - {proto: udp, dport: 9001, action: drop}
	EOF
}
changed() {
	first | sed 's/dport: 9001/dport: 9002/; s/^\( *\)rules:/\1default: drop\n\1rules:/'
}

prog() {
	ip -d link show "$1" 2>/dev/null | grep -c 'prog/xdp' | tr -d '\n'
}
lines() {
	ax xdp rule list "$1" -o json | jq -r '.default, (.rules[] | .name // "-")' | tr '\n' ' '
}
status() {
	ax xdp status "$1" -o json | jq 'if type == "array" then .[0] else . end'
}
generation() {
	status "$1" | jq .generation
}
state() {
	ax get interfaces -o json | jq -r --arg n "$1" '.[] | select(.name == $n) | .state'
}
counted() {
	ax xdp stats xa0 -o json | jq --arg r "$1" '.rules[] | select(.rule == $r) | .packets'
}
datagram() {
	peer bash -c "echo x >/dev/udp/198.51.100.1/$1"
}

agent_start - < <(first)
is "the list is there when the agent is ready" "$(lines xa0)" "pass good bad - "
is "it is shown" "$(ax get interfaces -o json | jq -c '.[]')" \
	'{"name":"xa0","state":"active","rules":3,"triggers":false}'
is "also as a table" "$(ax get interfaces | awk 'NR == 2 { print $1, $2, $3 }')" "xa0 active 3"
is "and by status" "$(ax status -o json | jq -r '.interfaces[0].name')" xa0
is "a set's file was read" \
	"$(ax xdp set list xa0 shared | grep -c -e 192.0.2.0/24 -e 198.51.100.99)" 2
datagram 9000
ok "it judges packets" wait_for '[ "$(counted good)" -eq 1 ]'

# the same again changes nothing
before=$(generation xa0)
ok "the same is applied" ax config apply "$T/$INST.yaml"
is "and is no new list" "$(generation xa0)" "$before"
kill -HUP "$AGENT"
sleep 0.3
is "nor by SIGHUP" "$(generation xa0)" "$before"

# a change
changed >"$T/changed.yaml"
like "a dry run says what is new" "$(ax config apply --dry-run "$T/changed.yaml")" \
	"~ xdp xa0: - proto udp dport 9001 action drop; \+ proto udp dport 9002 action drop; default pass -> drop"
is "and does nothing" "$(generation xa0)" "$before"
export SSH_CONNECTION='198.51.100.2 40000 198.51.100.1 22'
like "it is applied, and an SSH session that it cuts is warned" \
	"$(ax config apply "$T/changed.yaml" 2>&1)" "warning: .*198.51.100.2 40000.* cuts it off"
unset SSH_CONNECTION
is "and is there" "$(lines xa0)" "drop good bad - "
is "in one step" "$(generation xa0)" $((before + 1))
is "counters live on" "$(counted good)" 1

# somebody edits by hand; the config wins with the next apply
ok "an edit by hand" ax xdp rule add xa0 name byhand proto udp dport 7 action drop
like "shows in a dry run" "$(ax config apply --dry-run "$T/changed.yaml")" \
	"~ xdp xa0: - name byhand"
ok "is undone by an apply" ax config apply "$T/changed.yaml"
is "the list is the config's" "$(lines xa0)" "drop good bad - "

# somebody tries a list of his own, with --confirm: the config waits for him
ok "a list is tried" ax xdp apply xa0 --rules "$T/etc/rules.yaml" --confirm 30s
like "meanwhile an apply says why it cannot" "$(ax config apply "$T/changed.yaml" 2>&1)" "confirm"
is "and does not disturb" "$(lines xa0)" "pass blocked udp9001 "
ok "it is confirmed" ax xdp confirm xa0
ok "then the config's comes" wait_for "[ \"\$(lines xa0)\" = 'drop good bad - ' ]"
is "and all is well" "$(state xa0)" active

# a file that has changed
echo 203.0.113.0/24 >>"$T/etc/block.txt"
like "an element more shows" "$(ax config apply --dry-run "$T/changed.yaml")" "~ xdp xa0: ~ set shared"
ok "it is applied" ax config apply "$T/changed.yaml"
is "and is there" "$(ax xdp set list xa0 shared | grep -c 203.0.113.0/24)" 1

# the agent dies; the list stays, and the next one takes it over as it is
before=$(generation xa0)
agent_kill9
is "without an agent the program is there" "$(prog xa0)" 1
is "and judges" "$(lines xa0)" "drop good bad - "
agent_again
is "the next agent has the applied config, and leaves it alone" \
	"$(generation xa0) $(state xa0)" "$before active"

# a rules file, interfaces that come later
mkdir -p "$T/etc"
config >"$T/files.yaml" <<EOF
xdp:
  sets:
    shared: {prefixes: [192.0.2.7]}
  interfaces:
    xa0: {rules-file: etc/rules.yaml}
    xb0:
      rules:
        - {name: late, proto: icmp, action: pass}
EOF
like "an interface that is not there is announced" \
	"$(ax config apply --dry-run "$T/files.yaml")" \
	"\+ xdp xb0 1 rule, when there is such an interface"
ok "rules-file, relative to the agent's config" ax config apply "$T/files.yaml"
is "is there" "$(lines xa0)" "pass blocked udp9001 "
is "with its own set" "$(ax xdp set list xa0 local | grep -c 203.0.113.0/24)" 1
is "and the section's" "$(ax xdp set list xa0 shared | grep -c 192.0.2.7)" 1
is "the other is waited for" "$(state xb0)" absent
pair xb0 101
ok "it gets its list when it comes" wait_for "[ \"\$(state xb0)\" = active ]"
is "that one" "$(lines xb0)" "pass late "
ip link del xb0
ok "it is absent when it goes" wait_for "[ \"\$(state xb0)\" = absent ]"
is "and nothing is pinned for it" "$(find /sys/fs/bpf -path '*xb0*')" ""
pair xb0 101
ok "it gets it again" wait_for "[ \"\$(state xb0)\" = active ] && [ \"\$(lines xb0)\" = 'pass late ' ]"
ok "apps that come and go" in_app -- true
is "do not disturb it" "$(generation xb0)" 1

# errors: of a file nothing is changed, of the kernel the rest holds
before=$(generation xa0)
echo "rules: [{action: dorp}]" >"$T/etc/bad.yaml"
sed 's/rules.yaml/bad.yaml/' "$T/files.yaml" >"$T/bad.yaml"
like "a rules file with an error is refused, with its line" \
	"$(ax config apply "$T/bad.yaml" 2>&1)" "bad.yaml:1:[0-9]+: .*dorp"
sed 's/rules.yaml/nothere.yaml/' "$T/files.yaml" >"$T/bad.yaml"
like "one that is missing too" "$(ax config apply "$T/bad.yaml" 2>&1)" "nothere.yaml"
is "and nothing was changed" "$(generation xa0) $(lines xa0)" "$before pass blocked udp9001 "
config >"$T/bad.yaml" <<EOF
services: {svc: {ip: 10.77.200.9, ports: ['80:1', '81:2'], backends: [a]}}
xdp:
  balancers: {b: {service: svc, mode: nat}}
  interfaces:
    xa0: {rules: [{proto: tcp, dport: 80, action: balance b}]}
EOF
like "what cannot be loaded is told" "$(ax config apply "$T/bad.yaml" 2>&1)" "different targets"
is "the service holds all the same" "$(ax get services -o name)" svc
is "and the interface has what it had" "$(state xa0) $(lines xa0)" "failed pass blocked udp9001 "
is "the one that is not wanted any more has none" "$(prog xb0)" 0
ok "a config that is right again" ax config apply "$T/files.yaml"
is "all is well" "$(state xa0) $(state xb0)" "active active"

# taken off
first >"$T/first.yaml"
like "an interface less" "$(ax config apply --dry-run "$T/first.yaml")" "- xdp xb0"
ok "is applied" ax config apply "$T/first.yaml"
is "its program is gone" "$(prog xb0)$(prog xa0)" 01
agent_kill9
default_config >"$T/$INST.yaml"
touch -d "now + 2 seconds" "$T/$INST.yaml"
agent_again
is "an agent whose config has no interface takes off what the last one had" "$(prog xa0)" 0
is "and knows of none" "$(ax get interfaces -o json)" "[]"
ok "what a user loads is not the agent's" ax xdp load xb0 --rules "$T/etc/rules.yaml"
ok "the config is applied" ax config apply "$T/$INST.yaml"
is "it is still there" "$(prog xb0)" 1
ok "unload" ax xdp unload xb0

# --- balancers of services ---
cat >"$T/server.py" <<'PY'
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 8000))
s.listen(64)
while True:
    c, _ = s.accept()
    if open(sys.argv[1]).read().strip() == "up":
        c.recv(1000)
        c.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
    c.close()
PY
balance() {
	config <<-EOF
		services:
		  svc:
		    ip: 10.77.200.1
		    ports: ["80:8000"]
		    backends: [{app: b1, weight: 3}, b2, {address: "127.0.0.9:81"}]
		    check: {type: http, port: 8000, every: 150ms, fall: 2, rise: 1}
		xdp:
		  balancers:
		    lb: {service: svc, mode: nat}
		  interfaces:
		    xa0:
		      rules:
		        - {name: vip, proto: tcp, dst: 198.51.100.1, dport: 80, action: balance lb}
	EOF
}
# backends: of the loaded list
backends() {
	status xa0 | jq -r '.balancers[0].backends | map(.address + ":" + (.port | tostring) + "*" +
		(.weight | tostring) + (if .down then "down" elif .drain then "drain" else "" end)) |
		sort | join(" ")'
}
shows() {
	ok "$1" wait_for "[ '$2' = \"\$(backends)\" ]" || diag "backends: $(backends)"
}
balance >"$T/balance.yaml"
echo up >"$T/b1"
echo up >"$T/b2"
chmod 644 "$T/b1" "$T/b2"
ok "a balancer of a service is applied" ax config apply "$T/balance.yaml"
shows "at first there is the fixed address, which is down soon" "127.0.0.9:81*1down"
serve 8000 --name b1 --ip 10.77.1.1 -- "$PYTHON" "$T/server.py" "$T/b1"
B1=$APP
shows "a backend that comes is there" "10.77.1.1:8000*3 127.0.0.9:81*1down"
serve 8000 --name b2 --net host --ip 10.77.1.2 -- "$PYTHON" "$T/server.py" "$T/b2"
shows "and another" "10.77.1.1:8000*3 10.77.1.2:8000*1 127.0.0.9:81*1down"
echo sick >"$T/b1"
shows "a sick one is down" "10.77.1.1:8000*3down 10.77.1.2:8000*1 127.0.0.9:81*1down"
echo up >"$T/b1"
shows "and comes back" "10.77.1.1:8000*3 10.77.1.2:8000*1 127.0.0.9:81*1down"
ok "one is to drain" ax service drain svc b1
shows "it keeps its flows" "10.77.1.1:8000*3drain 10.77.1.2:8000*1 127.0.0.9:81*1down"
ok "with a deadline" ax service drain svc b1 --deadline 100ms
shows "after which it has none" "10.77.1.1:8000*3down 10.77.1.2:8000*1 127.0.0.9:81*1down"
ok "that is undone" ax service drain svc b1 --undo
shows "and it gets flows again" "10.77.1.1:8000*3 10.77.1.2:8000*1 127.0.0.9:81*1down"
before=$(generation xa0)
unlike "a dry run is not about backends" "$(ax config apply --dry-run "$T/balance.yaml")" "xdp"
ok "the same again" ax config apply "$T/balance.yaml"
sleep 0.3
is "is no new list" "$(generation xa0)" "$before"
stop_app "$B1"
shows "one that is gone is gone" "10.77.1.2:8000*1 127.0.0.9:81*1down"
# it does not end at once: no new flows, but those that it has
touch "$T/stays"
run_app --name b1 --ip 10.77.1.1 -- sh -c "trap : TERM; while [ -e $T/stays ]; do sleep 0.2; done"
launched b1
shows "one whose check fails is down" "10.77.1.1:8000*3down 10.77.1.2:8000*1 127.0.0.9:81*1down"
bg "$T/stop" "$AX" --instance "$INST" stop b1
STOP=$BG
shows "one that is to end drains" "10.77.1.1:8000*3drain 10.77.1.2:8000*1 127.0.0.9:81*1down"
rm "$T/stays"
wait "$STOP"
shows "and then it is gone" "10.77.1.2:8000*1 127.0.0.9:81*1down"
# each app comes and goes within much less than 100 ms
before=$(generation xa0)
start=${EPOCHREALTIME/./}
for _ in $(seq 12); do
	in_app --name b1 --ip 10.77.1.1 -- true
done
sleep 0.5
lists=$(($(generation xa0) - before))
ok "at most one list in 100 ms ($lists)" test $lists -le $(((${EPOCHREALTIME/./} - start) / 100000 + 1))
stop_apps
ok "the section goes" ax config apply <(default_config)
end "$PEER_PID"
ip link del xa0 2>/dev/null
ip link del xb0 2>/dev/null
ip link del xa0 2>/dev/null # (without waiting for its other end)
done_testing
