#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# Services: strategies, weights, target ports, backends by label and by fixed address, backends that
# come and go, draining, and the services that apps form by sharing a name or an address.
. "$(dirname "$0")/lib.sh"
build_c tcp udp

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  rr:
		    ip: 10.77.200.1,fd77::200:1
		    ports: ["80:7000"]
		    strategy: round-robin
		    backends: [b1, b2, b3]
		  weighted:
		    ip: 10.77.200.2
		    ports: ["80:7000"]
		    strategy: round-robin
		    backends: [{app: b1, weight: 3}, {app: b2, weight: 1}]
		  dice:
		    ip: 10.77.200.3
		    ports: ["80:7000"]
		    strategy: random
		    backends: [b1, b2]
		  tier:
		    ip: 10.77.200.4
		    ports: ["80:7000"]
		    strategy: round-robin
		    backends: [{labels: {tier: front, zone: default}}]
		  fixed:
		    ip: 10.77.200.5,fd77::200:5
		    ports: [80]
		    strategy: round-robin
		    backends: [{address: "10.77.1.1:7000"}, {address: "[fd77::1:2]:7000"}]
		  outside:
		    ip: 10.77.200.6
		    ports: ["80:7999"]
		    backends: [{address: 127.0.0.1}]
		  ports:
		    ip: 10.77.200.7
		    ports: ["80:7001", "81:7002", "7001:7001"]
		    backends: [twoports]
		  all:
		    ip: 10.77.200.8
		    backends: [twoports]
		  empty:
		    ip: 10.77.200.9,fd77::200:9
		    ports: [80]
		    backends: [nobody]
		  ubk:
		    ip: 10.77.200.10
		    ports: ["53:7000/udp"]
		    strategy: round-robin
		    backends: [u1, u2]
		  drain:
		    ip: 10.77.200.11
		    ports: ["80:7000"]
		    strategy: round-robin
		    backends: [${1:-b1, b2}]
	EOF
}
agent_start - < <(config)

# hits COUNT FAMILY ADDR PORT [run options]: which servers answered how often, from one app
hits() {
	local count=$1 family=$2 addr=$3 port=$4
	shift 4
	in_app "$@" -- sh -c "for i in \$(seq $count); do $BIN/tcp connect $family $addr $port; done" 2>&1 |
		sed 's/.*:[0-9]* \([a-z0-9]*\) you=.*/\1/' | sort | uniq -c | awk '{ printf "%s=%s ", $2, $1 }'
}

declare -A PID
for i in 1 2 3; do
	mode=private
	[ $i -ne 2 ] || mode=host
	labels=zone=default
	[ $i -eq 1 ] || labels+=,tier=front
	serve 7000 --net $mode --ip 10.77.1.$i,fd77::1:$i --name b$i --labels $labels -- \
		"$BIN/tcp" listen 6 :: 7000 b$i
	PID[b$i]=$APP
done

for client in private host; do
	is "$client: round-robin" "$(hits 12 4 10.77.200.1 80 --net $client)" "b1=4 b2=4 b3=4 "
	is "$client: round-robin, IPv6" "$(hits 12 6 fd77::200:1 80 --net $client)" "b1=4 b2=4 b3=4 "
	is "$client: round-robin, v4-mapped" "$(hits 12 6 10.77.200.1 80 --net $client)" \
		"b1=4 b2=4 b3=4 "
	is "$client: weights 3 and 1" "$(hits 16 4 10.77.200.2 80 --net $client)" "b1=12 b2=4 "
	# each of the two is missed with a probability of 2^-40
	like "$client: random takes both" "$(hits 40 4 10.77.200.3 80 --net $client)" \
		"^b1=[0-9]+ b2=[0-9]+ $"
	is "$client: backends by label" "$(hits 8 4 10.77.200.4 80 --net $client)" "b2=4 b3=4 "
	is "$client: fixed addresses of the family that was asked" \
		"$(hits 4 4 10.77.200.5 80 --net $client)$(hits 4 6 fd77::200:5 80 --net $client)" \
		"b1=4 b2=4 "
done

bg "$T/outside" "$BIN/tcp" listen 4 127.0.0.1 7999 outside
wait_for "grep -q listening $T/outside"
is "a fixed address on the host's loopback, from host mode" \
	"$(hits 2 4 10.77.200.6 80 --net host)" "outside=2 "

serve 7001 --ip 10.77.1.9 --name twoports -- "$BIN/tcp" ports 4 0.0.0.0 7001 7002
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for client in private host; do
	is "$client: target ports" "$(for p in 80 81 7001; do hits 1 4 10.77.200.7 $p --net $client
	done)" "7001=1 7002=1 7001=1 "
	like "$client: a port that the service does not have is refused" \
		"$(in_app --net $client -- "$BIN/tcp" connect 4 10.77.200.7 7002)" \
		"error connect (ECONNREFUSED|EHOSTUNREACH)"
	is "$client: a service without ports takes every port" \
		"$(for p in 7001 7002; do hits 1 4 10.77.200.8 $p --net $client; done)" "7001=1 7002=1 "
	for to in "4 10.77.200.9" "6 fd77::200:9" "6 10.77.200.9"; do
		is "$client: a service without backends, connect to $to" \
			"$(in_app --net $client -- "$BIN/tcp" connect $to 80)" "error connect EHOSTUNREACH"
		is "$client: a service without backends, without blocking, $to" \
			"$(in_app --net $client -- "$BIN/tcp" connect $to 80 -n)" "error connect EHOSTUNREACH"
	done
done
is "a program outside ax reaches a backend" \
	"$("$BIN/tcp" connect 4 10.77.1.1 7000 | sed 's/ local.*//')" "peer=10.77.1.1:7000"

# backends that go and come
stop_app "${PID[b3]}"
is "a backend that is gone gets no connection" "$(hits 8 4 10.77.200.1 80)" "b1=4 b2=4 "
serve 7000 --ip 10.77.1.3,fd77::1:3 --name b3 -- "$BIN/tcp" listen 6 :: 7000 b3
is "one that comes back does" "$(hits 12 4 10.77.200.1 80)" "b1=4 b2=4 b3=4 "

# draining: taken out of the service while it has a connection
run_app -- sh -c "$BIN/tcp connect 4 10.77.200.11 80 -k 2 & $BIN/tcp connect 4 10.77.200.11 80 -k 2; wait"
client=$APP out=$OUT
wait_for "[ \$(grep -c you= $out) -eq 2 ]"
config b2 >"$T/drained.yaml"
ok "config apply takes a backend out" ax config apply "$T/drained.yaml"
is "new connections go to the other one at once" "$(hits 6 4 10.77.200.11 80)" "b2=6 "
wait "$client"
is "existing ones finish" "$(grep -c 'echoed again' "$out")" 2

# connected UDP must not stay on a dead backend
for mode in private host; do
	serve 7000/udp --net $mode --ip 10.77.4.1 --name u1 -- "$BIN/udp" serve 4 0.0.0.0 7000 u1
	u1=$APP
	for client in private host; do
		[ -z "$u1" ] && serve 7000/udp --net $mode --ip 10.77.4.1 --name u1 -- \
			"$BIN/udp" serve 4 0.0.0.0 7000 u1 && u1=$APP
		run_app --net $client -- "$BIN/udp" follow 4 10.77.200.10 53 8
		follower=$APP out=$OUT
		wait_for "grep -q u1 $out"
		serve 7000/udp --net $mode --ip 10.77.4.2 --name u2 -- "$BIN/udp" serve 4 0.0.0.0 7000 u2
		stop_app "$u1"
		u1=
		wait_for "grep -q u2 $out"
		is "$mode backends, $client client: connected UDP moves on when its backend dies" \
			"$(grep -v error "$out" | tr '\n' ' ')" "u1 u2 "
		stop_app "$follower"
		stop_app "$APP"
	done
done

stop_apps

# implicit services
for mode in private host; do
	serve 7000 --net $mode --name twin --ip 10.77.5.1,fd77::5:1 -- "$BIN/tcp" listen 6 :: 7000 first
	first=$APP
	serve 7000 --net $mode --name twin -- "$BIN/tcp" listen 6 :: 7000 second
	second=$APP
	own=$(ax get apps -o json | jq -r '.[] | select(.name == "twin") | .ip4' | sort | tr '\n' ' ')
	like "$mode, same name: the first keeps its address, the second has one of its own" "$own" \
		"^10.77.0.[0-9]+ 10.77.5.1 $|^10.77.5.1 10.77.[0-9]+.[0-9]+ $|^10.77.[0-9]+.[0-9]+ 10.77.5.1 $"
	is "$mode, same name: there is a service of that name" \
		"$(ax get services -o json | jq -c '.[] | select(.name == "twin") |
			[.ip4, .declared, (.backends | length > 1)]')" '["10.77.5.1",false,true]'
	for client in private host; do
		like "$mode, same name: both serve the $client client" \
			"$(hits 40 4 10.77.5.1 7000 --net $client)" "^first=[0-9]+ second=[0-9]+ $"
		like "$mode, same name: both serve the $client client over IPv6" \
			"$(hits 40 6 fd77::5:1 7000 --net $client)" "^first=[0-9]+ second=[0-9]+ $"
		is "$mode, same name: the $client client's getpeername() is the shared address" \
			"$(in_app --net $client -- sh -c "for i in \$(seq 10); do
				$BIN/tcp connect 4 10.77.5.1 7000; done" | sed 's/ .*//' | sort -u)" \
			"peer=10.77.5.1:7000"
	done
	is "$mode, same name: the name is the shared address" \
		"$(in_app -- getent ahostsv4 twin | awk '{ print $1 }' | sort -u)" 10.77.5.1
	stop_app $first
	for client in private host; do
		is "$mode, same name: the second goes on under the shared address for the $client client" \
			"$(hits 6 4 10.77.5.1 7000 --net $client)$(hits 6 6 fd77::5:1 7000 --net $client)" \
			"second=6 second=6 "
	done
	is "$mode, same name: the name stays" \
		"$(in_app -- getent ahostsv4 twin | awk '{ print $1 }' | sort -u)" 10.77.5.1
	serve 7000 --net $mode --name twin -- "$BIN/tcp" listen 6 :: 7000 third
	like "$mode, same name: a third joins" "$(hits 40 4 10.77.5.1 7000)" \
		"^second=[0-9]+ third=[0-9]+ $"
	stop_app $second
	stop_app "$APP"
	is "$mode, same name: with the last one the service is gone" \
		"$(ax get services -o json | jq -c '[.[] | select(.name == "twin")] | length')" 0

	serve 7000 --net $mode --name left --ip 10.77.5.2 -- "$BIN/tcp" listen 4 0.0.0.0 7000 left
	first=$APP
	serve 7000 --net $mode --name right --ip 10.77.5.2 -- "$BIN/tcp" listen 4 0.0.0.0 7000 right
	second=$APP
	like "$mode, same address: both serve" "$(hits 40 4 10.77.5.2 7000)" \
		"^left=[0-9]+ right=[0-9]+ $"
	stop_app $first
	is "$mode, same address: the second goes on" "$(hits 4 4 10.77.5.2 7000)" "right=4 "
	stop_app $second
done
serve 7000 --net private --name mixed --ip 10.77.5.3 -- "$BIN/tcp" listen 4 0.0.0.0 7000 private
serve 7000 --net host --name mixed -- "$BIN/tcp" listen 4 0.0.0.0 7000 host
like "a private and a host-mode app share a name" "$(hits 40 4 10.77.5.3 7000)" \
	"^host=[0-9]+ private=[0-9]+ $"
done_testing
