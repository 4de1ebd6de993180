# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by scripts whose cluster has nodes on one network: namespaces at a bridge, an etcd at
# 10.99.0.1, and in each an agent of its own.

need etcd jq curl

LAN=10.99.0
ETCD_URL=http://$LAN.1:2379 ETCD_WITH=() ETCD_CURL=() # with https: what etcd and curl are told besides
declare -A NODE_INST NODE_AX NODE_AGENT NODE_ADDR
REAL_AX=$AX

# lan_make: the network, and this script's host in it
lan_make() {
	ip link add lan0 type bridge
	ip addr add "$LAN.1/24" dev lan0
	ip link set lan0 up
}

# machine_make NAME LAST: a namespace at the network, with the address $LAN.LAST
machine_make() {
	ip netns add "$1"
	ip link add "v$1" type veth peer name eth0 netns "$1"
	ip link set "v$1" master lan0
	ip link set "v$1" up
	ip -n "$1" addr add "$LAN.$2/24" dev eth0
	ip -n "$1" link set eth0 up
	ip -n "$1" link set lo up
}

# node_make NAME LAST: a machine; its ax runs in it.
node_make() {
	machine_make "$1" "$2"
	NODE_ADDR[$1]=$LAN.$2
	printf '#!/bin/sh\nexec nsenter --net=/run/netns/%s "%s" "$@"\n' "$1" "$REAL_AX" >"$T/ax-$1"
	chmod 755 "$T/ax-$1"
	NODE_AX[$1]=$T/ax-$1
	NODE_INST[$1]=$INST
	if [ ${#NODE_INST[@]} -gt 1 ]; then
		NODE_INST[$1]=$(random_name)
		INSTANCES+=("${NODE_INST[$1]}")
	fi
	NODE_AGENT[$1]=
}

# in_ns NAME COMMAND...
in_ns() {
	nsenter --net="/run/netns/$1" "${@:2}"
}

# on NODE: what lib.sh does from here on is that node's
on() {
	INST=${NODE_INST[$1]} AX=${NODE_AX[$1]} AGENT=${NODE_AGENT[$1]}
}

# node_start NODE: with $CLUSTER as further lines of the section, and $MORE behind it; $POOL in place of the usual one
node_start() {
	on "$1"
	agent_start - <<-EOF
		cluster:
		  name: east
		  etcd: ["$ETCD_URL"]
		${POOL:-  pool: 10.80.0.0/16}
		  node: {name: $1, address: ${NODE_ADDR[$1]}}
		${CLUSTER:-}
		${MORE:-}
	EOF
	NODE_AGENT[$1]=$AGENT
}

# node_again NODE: an agent with the same config
node_again() {
	on "$1"
	agent_again
	NODE_AGENT[$1]=$AGENT
}

node_stop() {
	on "$1"
	agent_stop
	NODE_AGENT[$1]=
}

lan_etcd_start() {
	bg "$T/etcd.log" etcd --name e --data-dir "$T/etcd" --listen-client-urls "$ETCD_URL" \
		--advertise-client-urls "$ETCD_URL" --listen-peer-urls http://127.0.0.1:2380 \
		--initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster e=http://127.0.0.1:2380 "${ETCD_WITH[@]}"
	ETCD=$BG
	wait_for -t 60 'curl -sf "${ETCD_CURL[@]}" "$ETCD_URL/health" | grep -q true' && return
	diag "$(tail -n 5 "$T/etcd.log")"
	echo "Bail out! etcd does not start"
	exit 1
}

# lan_etcd PATH FILTER [ARGUMENT...]: jq's answer to FILTER is sent
lan_etcd() {
	curl -sS --max-time 30 "${ETCD_CURL[@]}" -d "$(jq -nc "${@:3}" "$2")" "$ETCD_URL/v3/kv/$1"
}

# node_state NODE [FILTER]
node_state() {
	ax_in "${NODE_INST[$1]}" status -o json | jq -r ".cluster${2:-.state}"
}

# node_addr NODE APP: its address, as that node has it
node_addr() {
	ax_in "${NODE_INST[$1]}" get apps -o json "$2" | jq -r '.[0].ip4'
}

# node_routes NODE: how many blocks of other nodes it has a way to
node_routes() {
	ip -n "$1" route show proto 97 | grep -c ' via '
}

# nodes_flush NODE...: their agents end, and leave nothing there.
nodes_flush() {
	local n
	for n; do
		on "$n"
		[ -z "$AGENT" ] || node_stop "$n"
		ok "ax agent --flush in $n" ax agent --flush
		is "no route of ax's is left in $n" "$(ip -n "$n" route show proto 97)" ""
		is "no program of ax's is left at an interface of $n" "$(tc -n "$n" filter show dev eth0 ingress)" ""
	done
}

# nodes_end NAME...: whatever they are, and etcd; the agents have ended.
nodes_end() {
	local n
	AX=$REAL_AX AGENT='' INST=${INSTANCES[0]}
	end "$ETCD"
	# the devices at once: a namespace goes later (the kernel has one worker for all of the machine), and a
	# connection that was closed with data under way holds it for up to a minute
	for n; do
		wait_for '[ -z "$(ip netns pids "$n")" ]'
		is "no process is left in $n" "$(ip netns pids "$n" | xargs -rn1 ps -o pid=,args= -p)" ""
		ip link del "v$n"
		ip netns del "$n"
	done
	ip link del lan0
}

# node_knows NODE APP...: as apps of other nodes
node_knows() {
	local name list
	list=$(ax_in "${NODE_INST[$1]}" get apps -A -o json)
	for name in "${@:2}"; do
		jq -e --arg n "$1" --arg a "$name" 'any(.[]; .name == $a and .node != $n)' <<<"$list" >/dev/null ||
			return 1
	done
}

# nodes_make COUNT: the network, etcd, and n1, n2 ..., whose agents run
nodes_make() {
	local i
	lan_make
	lan_etcd_start
	for ((i = 1; i <= $1; i++)); do node_make n$i 1$i; done
	for ((i = 1; i <= $1; i++)); do node_start n$i; done
}
# nodes_with_ways COUNT: the same, and their ways to each other stand
nodes_with_ways() {
	local i
	nodes_make "$1"
	for ((i = 1; i <= $1; i++)); do
		ok "n$i has ways to the others" wait_for -t 30 "[ \"\$(node_state n$i .ways.routes)\" = $(($1 - 1)) ]"
	done
}

# at NODE COMMAND...: by an app there
at() {
	on "$1"
	in_app -- "${@:2}" 2>&1
}
# ask NODE NAME [TYPE]: what its DNS says
ask() {
	at "$1" dig +short +time=10 +tries=1 "$2" "${3:-A}" | sort | tr '\n' ' ' | sed 's/ $//'
}
# backends NODE SERVICE: "node app address state", in order
backends() {
	ax_in "${NODE_INST[$1]}" get services -o json "$2" | jq -r \
		'.[].backends[] | "\(.node) \(.app) \(.address)\(if .state then " " + .state else "" end)"' | sort | tr '\n' ';'
}
# answers NODE NAME PORT [TIMES]: who answers there, each once; or how connect() fails
answers() {
	local ip
	ip=$(ask "$1" "$2.ax.internal")
	at "$1" sh -c 'for i in $(seq "$4"); do "$1" connect 4 "$2" "$3"; done' - "$BIN/tcp" "$ip" "$3" "${4:-1}" |
		sed 's/^peer=[^ ]* local=[^ ]* \([^ ]*\) .*/\1/' | sort -u | tr '\n' ' ' | sed 's/ $//'
}
