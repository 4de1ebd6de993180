#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 500
# Apps that are started by connections, by ports that they expose themselves: these are there while the app does not
# run, kept from others, told of where they clash, and start it for those alone who may come in by them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/outside.sh"
. "$(dirname "$0")/on_connect.sh"
build_c tcp

ip addr add 203.0.113.1/24 dev wan0
ip -6 addr add 2001:db8::1/64 dev wan0 nodad
ip link set wan0 up
outside ip addr add 203.0.113.2/24 dev wan1
outside ip addr add 203.0.113.3/24 dev wan1
outside ip -6 addr add 2001:db8::2/64 dev wan1 nodad
outside ip link set wan1 up

# config HOST-ACCESS [APPS [SERVICES]]
config() {
	cat <<-END
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: $1
		apps:
		  hosted: {command: "$BIN/tcp listen 6 :: 7000 hosted patient", ip: "10.77.1.1,fd77::1:1", net: host, start: on-connect, expose: ["8081:7000"]}
		  priv: {command: "$BIN/tcp listen 6 :: 7000 priv patient", ip: "10.77.1.2,fd77::1:2", start: on-connect, expose: ["8082:7000"]}
		  late: {command: "sh -c 'sleep 1.5; exec $BIN/tcp listen 6 :: 7000 late'", ip: "10.77.1.3", start: on-connect, expose: ["8083:7000"]}
		  broken: {command: "false", ip: "10.77.1.4", net: host, start: on-connect, expose: ["8084:7000"]}
		  one: {command: "$BIN/tcp listen 4 0.0.0.0 7000 one", ip: "10.77.1.5", net: host, start: on-connect, expose: ["203.0.113.1:8085:7000", "wan0:8086:7000"]}
		  two: {command: "$BIN/tcp listen 4 0.0.0.0 7000 two", ip: "10.77.1.6", start: on-connect, expose: ["127.0.0.1:8085:7000"]}
		  serving: {command: "sh -c 'sleep 1.5; exec $BIN/tcp listen 4 0.0.0.0 7000 serving'", ip: "10.77.1.7", start: on-connect}
		  behind: {command: "$BIN/tcp listen 6 :: 7000 behind patient", ip: "10.77.1.8", net: host, start: on-connect, idle: 1s}
		${2:-}
		services:
		  back: {ip: "10.77.200.3", ports: ["80:7000"], backends: [behind], expose: ["8088:80"]}
		  front: {ip: "10.77.200.1", ports: ["80:7000"], backends: [serving], expose: ["8087:80"]}
		${3:-}
		policy:
		  rules:
		    - deny: {from: 203.0.113.3/32}
	END
}
config true >"$T/first.yaml"
agent_start - <"$T/first.yaml"

# refused NAME APP COMMAND...: and nothing is started
refused() {
	local name=$1 app=$2
	shift 2
	stopped "$app"
	is "$name is refused" "$("$@" 2>&1)" "error connect ECONNREFUSED"
	is "$name: nothing is started" "$(runs "$app")" 0
}
from() { # ADDRESS COMMAND...: what connects from there
	local address=$1
	shift
	outside "$@" -b "$address" 0
}

starts "a host-mode app, from another machine" hosted outside "$BIN/tcp" connect 4 203.0.113.1 8081
starts "by IPv6" hosted outside "$BIN/tcp" connect 6 2001:db8::1 8081
starts "from the host itself" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
starts "by IPv6" hosted "$BIN/tcp" connect 6 ::1 8081
starts "a socket that does not wait" hosted "$BIN/tcp" connect 4 127.0.0.1 8081 -n
starts "a private app, from another machine" priv outside "$BIN/tcp" connect 4 203.0.113.1 8082
starts "by IPv6" priv outside "$BIN/tcp" connect 6 2001:db8::1 8082
starts "from the host itself" priv "$BIN/tcp" connect 4 127.0.0.1 8082
starts "by IPv6" priv "$BIN/tcp" connect 6 ::1 8082
starts "one that takes its time to listen" late outside "$BIN/tcp" connect 4 203.0.113.1 8083
starts "from the host itself" late "$BIN/tcp" connect 4 127.0.0.1 8083
starts "and by a service's port" serving outside "$BIN/tcp" connect 4 203.0.113.1 8087
starts "a port of one address" one outside "$BIN/tcp" connect 4 203.0.113.1 8085
starts "and that of another address" two "$BIN/tcp" connect 4 127.0.0.1 8085
starts "a port of one interface" one outside "$BIN/tcp" connect 4 203.0.113.1 8086
in_app() {
	run_app "$@"
	wait "$APP"
	tail -n 1 "$OUT"
}
starts "a private app, by the host's address" hosted in_app --egress -- "$BIN/tcp" connect 4 203.0.113.1 8081
starts "an app in host mode" hosted in_app --net host -- "$BIN/tcp" connect 4 127.0.0.1 8081
starts "and of a private one" priv in_app --net host -- "$BIN/tcp" connect 4 127.0.0.1 8082

# --- who may not ---

refused "who is denied" hosted from 203.0.113.3 "$BIN/tcp" connect 4 203.0.113.1 8081
refused "and for a private app" priv from 203.0.113.3 "$BIN/tcp" connect 4 203.0.113.1 8082
refused "a private app that comes for another by the host's address" priv in_app --egress -- "$BIN/tcp" connect 4 203.0.113.1 8082
refused "who comes by another interface" one "$BIN/tcp" connect 4 127.0.0.1 8086
is "who comes for one that does not start is refused" "$(timeout 20 "$BIN/tcp" connect 4 127.0.0.1 8084 2>&1)" "error connect ECONNREFUSED"
before=$(grep -c 'is started by a connection' "$T/$INST.log")
stopped hosted
stopped priv
outside "$PYTHON" - <<-'END'
	import socket
	all = []
	for i in range(2000):
	    s = socket.socket()
	    s.setblocking(False)
	    s.bind(("203.0.113.3", 0))
	    s.connect_ex(("203.0.113.1", 8081 + i % 2))
	    all.append(s)
	    if len(all) == 200:
	        for s in all: s.close()
	        all = []
END
is "and a flood of those starts nothing" "$(grep -c 'is started by a connection' "$T/$INST.log") $(runs hosted)$(runs priv)" "$before 00"

# --- the ports are theirs ---

stopped hosted
stopped priv
squat() { # PORT
	setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/tcp" bind 4 0.0.0.0 "$1" 2>&1
}
is "nobody else binds a port of one that does not run" "$(squat 8081)" "error bind EADDRINUSE"
is "nor that of a private one" "$(squat 8082)" "error bind EADDRINUSE"
# (bound again and again while it starts and ends)
setpriv --reuid 65534 --regid 65534 --clear-groups "$PYTHON" - "$T/got" <<-'END' &
	import socket, sys, time
	got, end = [], time.time() + 60
	while time.time() < end and not got:
	    for port in 8081, 8082:
	        for family in socket.AF_INET, socket.AF_INET6:
	            s = socket.socket(family)
	            try:
	                s.bind(("", port))
	                got.append(port)
	            except OSError: pass
	            s.close()
	print(*got)
END
squatter=$!
for _ in 1 2; do
	starts "while somebody tries to get its port" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
	starts "while somebody tries to get its port" priv "$BIN/tcp" connect 4 127.0.0.1 8082
done
stopped hosted
stopped priv
ok "who never got it" alive $squatter
kill $squatter
wait $squatter
like "another app cannot expose it" "$(ax run --net host --expose 8081:7000 true 2>&1)" \
	"cannot expose 8081:7000/tcp: the app hosted exposes that port already"
config true '  other: {command: "true", start: on-connect, expose: ["8089:1"]}' \
	'  more: {ip: 10.77.200.2, ports: [80], backends: [hosted], expose: ["8089:80"]}' >"$T/clash.yaml"
like "two of a file are told of" "$(ax config check "$T/clash.yaml" 2>&1)" "8089"
run_app --name hosted --net host --expose 8092:7000 -- "$BIN/tcp" listen 6 :: 7000 byhand
wait_for "grep -q listening $OUT"
is "one of its name that is run by hand has its own" "$(squat 8081) $(squat 8092)" "bound 0.0.0.0:8081 error bind EADDRINUSE"
stopped hosted
is "and then it is as before" "$(squat 8081) $(squat 8092)" "error bind EADDRINUSE bound 0.0.0.0:8092"
bg "$T/taken.out" "$BIN/tcp" listen 4 0.0.0.0 8090
taken=$BG
wait_for "grep -q listening $T/taken.out"
config true '  other: {command: "'"$BIN"'/tcp listen 6 :: 7000 other", net: host, start: on-connect, expose: ["8090:7000"]}' >"$T/taken.yaml"
like "and a port that a program has, when the config is applied" "$(ax config apply "$T/taken.yaml" 2>&1)" \
	"cannot expose 8090:7000/tcp: a program of user 0 has port 8090/tcp|cannot expose 8090:7000/tcp: .*8090"
like "the program has its clients" "$("$BIN/tcp" connect 4 127.0.0.1 8090 2>&1)" "peer=127.0.0.1:8090"
kill "$taken"
wait "$taken"
ok "it is gone, and the config is applied anew" ax config apply "$T/taken.yaml"
starts "its port is the app's now" other "$BIN/tcp" connect 4 127.0.0.1 8090
stopped other
ok "it goes from the config while it does not run" ax config apply "$T/first.yaml"
is "and its port is free" "$(squat 8090)" "bound 0.0.0.0:8090"
is "nobody is there" "$("$BIN/tcp" connect 4 127.0.0.1 8090 2>&1)" "error connect ECONNREFUSED"
sed 's/"8081:7000"/"8091:7000"/' "$T/first.yaml" >"$T/moved.yaml"
ok "it has another port" ax config apply "$T/moved.yaml"
starts "that starts it" hosted "$BIN/tcp" connect 4 127.0.0.1 8091
is "the former one is free" "$(squat 8081)" "bound 0.0.0.0:8081"
ok "and it has that again" ax config apply "$T/first.yaml"
starts "which starts it" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
is "it is shown while it does not run" "$(stopped hosted; ax get apps -o json | jq -c '.[] | select(.name == "hosted") | [.state, .expose]')" \
	'["declared",["8081:7000/tcp"]]'

# --- the agent is killed ---

stopped hosted
stopped priv
agent_kill9
agent_again
starts "with the next agent" hosted outside "$BIN/tcp" connect 4 203.0.113.1 8081
starts "and a private one" priv outside "$BIN/tcp" connect 4 203.0.113.1 8082
agent_kill9
agent_again
starts "that of one which ran when it was killed" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
starts "and that of a private one" priv outside "$BIN/tcp" connect 4 203.0.113.1 8082
stopped hosted
agent_kill9
setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/tcp" listen 4 0.0.0.0 8081 squatter >"$T/squat.out" 2>&1 &
squatter=$!
wait_for "grep -q listening $T/squat.out"
agent_again
starts "who has got the port meanwhile gets nobody" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
stopped hosted
kill $squatter
wait $squatter

# --- idle ---

sed 's/start: on-connect, expose: \["808[12]/idle: 1s, &/' "$T/first.yaml" >"$T/idle.yaml"
ok "they end by themselves" ax config apply "$T/idle.yaml"
for app in hosted priv; do
	port=8081
	[ $app = hosted ] || port=8082
	stopped $app
	bg "$T/stays.out" outside "$BIN/tcp" connect 4 203.0.113.1 $port -k 4
	wait_for "grep -q peer= $T/stays.out"
	sleep 3
	is "$app: not while somebody is connected by its port" "$(runs $app)" 1
	wait "$BG"
	before=$(grep -c "the app $app is started" "$T/$INST.log")
	for _ in $(seq 10); do
		outside "$BIN/tcp" connect 4 203.0.113.1 $port >/dev/null
		sleep 0.3
	done
	is "$app: nor while somebody connects now and then" "$(grep -c "the app $app is started" "$T/$INST.log")" "$before"
	wait_for "[ \"\$(runs $app)\" = 0 ]"
	is "$app: but then" "$(runs $app)" 0
	starts "$app: and is started again" $app outside "$BIN/tcp" connect 4 203.0.113.1 $port
done
bg "$T/stays.out" outside "$BIN/tcp" connect 4 203.0.113.1 8088 -k 1
wait "$BG"
bg "$T/stays.out" outside "$BIN/tcp" connect 4 203.0.113.1 8088 -k 4
wait "$BG"
like "one in host mode is not ended while somebody is connected by a service" "$(cat "$T/stays.out")" "echoed again"
is "which cannot be seen, so it goes on" "$(runs behind) $(grep -c 'the app behind is started' "$T/$INST.log")" "1 1"
is "none of them is taken for one that does not start" "$(grep -c 'the app \(hosted\|priv\|late\|one\|two\) does not start' "$T/$INST.log")" 0

# --- exposing is the permission, and lists let it through ---

{ config false; echo 'xdp: {interfaces: {wan0: {default: drop, classes: {exposed: pass}}}}'; } >"$T/closed.yaml"
ok "without host_access, and with a list that drops all else" ax config apply "$T/closed.yaml"
starts "the host comes in by an exposed port" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
starts "who is outside, too" hosted outside "$BIN/tcp" connect 4 203.0.113.1 8081
starts "and to a private app" priv outside "$BIN/tcp" connect 4 203.0.113.1 8082
refused "who is denied, as ever" hosted from 203.0.113.3 "$BIN/tcp" connect 4 203.0.113.1 8081
refused "and by its address" hosted "$BIN/tcp" connect 4 10.77.1.1 7000

default_config >"$T/none.yaml"
ok "all go" ax config apply "$T/none.yaml"
wait_for '[ -z "$(ax get apps -o name)" ]'
is "and so do their ports" "$(squat 8081) $(squat 8082)" "bound 0.0.0.0:8081 bound 0.0.0.0:8082"
done_testing
