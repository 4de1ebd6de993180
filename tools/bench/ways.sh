# SPDX-License-Identifier: GPL-2.0-or-later
# The ways between nodes: what an app of one node reaches of another, by each way, against plain TCP between two machines
# like them, and for streams against an overlay between these. Machines are namespaces at one bridge, those of a pair are
# there for one way alone. Sourced by run.sh.
ways_url=http://10.97.0.1:7479
way_cases=(ways.conn.{plain,direct,translate} ways.rr.{plain,direct,translate}
	ways.stream.{plain,direct,translate,overlay} ways.first.{same,other})
[ -z "$QUICK" ] || way_cases=(ways.conn.{plain,direct,translate} ways.rr.{plain,translate})
overlay=
way_agents=()
# The machines of a pair: names of instances are at most 8 characters.
declare -A way_one=([direct]=d$$ [translate]=t$$) way_two=([direct]=f$$ [translate]=u$$)

# machine NAME LAST: a namespace at the bridge
machine() {
	netns_add "$1"
	ip link add "$1" type veth peer name eth0 netns "$1"
	ip link set "$1" master ways up
	in_netns "$1" ip addr add "10.97.0.$2/24" dev eth0
	in_netns "$1" ip link set eth0 up
}
# An agent takes its instance's name from its machine's.
way_ax() { # MACHINE ARGUMENT...
	in_netns "$1" "$ax" --instance "$1" "${@:2}"
}
way_node() { # MACHINE LAST CLUSTER POOL ROUTES
	machine "$1" "$2"
	printf '%s\n' 'cluster:' "  name: $3" "  etcd: [\"$ways_url\"]" "  pool: $4" \
		"  node: {name: $1, address: 10.97.0.$2}" "  routes: $5" >"$tmp/$1.yaml"
	start "agent-$1" nsenter --net="/run/netns/$1" "$ax" --instance "$1" agent --config "$tmp/$1.yaml"
	way_agents+=("$1")
	wait_for 60 "the block of $1" way_has_block "$1"
}
way_has_block() {
	way_ax "$1" status -o json | jq -e '.cluster.blocks | length > 0'
}
way_knows() { # MACHINE APP...
	local list app
	list=$(way_ax "$1" get apps -A -o json)
	for app in "${@:2}"; do
		jq -e --arg a "$app" --arg n "$1" 'any(.[]; .name == $a and .node != $n)' <<<"$list" || return 1
	done
}
way_addr() { # MACHINE APP
	way_ax "$1" get apps -o json "$2" | jq -r '.[0].ip4'
}
# way_pair ROUTES MACHINE MACHINE LAST POOL: two nodes; the servers on the second, a client on the first
way_pair() {
	local one=$2 two=$3 kind
	way_node "$one" "$4" "$1" "$5" "$1"
	way_node "$two" $(($4 + 1)) "$1" "$5" "$1"
	for kind in close echo sink; do
		start "$two-$kind" nsenter --net="/run/netns/$two" "$ax" --instance "$two" run --net host --name $kind -- \
			"${on_cpu[@]}" server $kind 7001
		wait_for 60 "the start of $two's $kind" grep -q '^ready' "$tmp/$two-$kind.out"
	done
	start "$one-client" nsenter --net="/run/netns/$one" "$ax" --instance "$one" run --net host --name client -- sleep 3600
	wait_for 30 "the servers of $two at $one" way_knows "$one" close echo sink
	wait_for 30 "the client of $one at $two" way_knows "$two" client
}
ways_plain() {
	local kind port=7001
	machine plaina 11
	machine plainb 12
	for kind in close echo sink; do
		start_server "plain-$kind" nsenter --net=/run/netns/plainb "${on_cpu[@]}" server $kind $port
		port=$((port + 1))
	done
	# the overlay that this kernel has
	if in_netns plaina ip link add over type vxlan id 7 dstport 4789 local 10.97.0.11 remote 10.97.0.12 dev eth0 2>/dev/null; then
		overlay=VXLAN
		in_netns plainb ip link add over type vxlan id 7 dstport 4789 local 10.97.0.12 remote 10.97.0.11 dev eth0
	elif in_netns plaina ip link add over type ipip local 10.97.0.11 remote 10.97.0.12 2>/dev/null; then
		overlay=IPIP
		in_netns plainb ip link add over type ipip local 10.97.0.12 remote 10.97.0.11
	else
		note "this kernel has neither VXLAN nor IPIP: streams are not compared with an overlay"
		return 0
	fi
	in_netns plaina ip addr add 10.96.0.11/24 dev over
	in_netns plainb ip addr add 10.96.0.12/24 dev over
	in_netns plaina ip link set over up
	in_netns plainb ip link set over up
}
ways_up() {
	ip link add ways type bridge
	ip addr add 10.97.0.1/24 dev ways
	ip link set ways up
	start etcd-ways etcd --name e --data-dir /run/etcd-ways --listen-client-urls "$ways_url" \
		--advertise-client-urls "$ways_url" --listen-peer-urls http://127.0.0.1:7480 \
		--initial-advertise-peer-urls http://127.0.0.1:7480 --initial-cluster e=http://127.0.0.1:7480
	wait_for 30 "etcd's answer" curl -sSf "$ways_url/health"
	ways_plain
	way_pair direct "${way_one[direct]}" "${way_two[direct]}" 21 10.98.0.0/16
	way_pair translate "${way_one[translate]}" "${way_two[translate]}" 31 10.95.0.0/16
}
ways_flush() {
	local node
	for node in "${way_agents[@]}"; do
		way_ax "$node" agent --flush >/dev/null 2>&1 || note "'ax --instance $node agent --flush' failed"
	done
	way_agents=()
}
# Their agents are gone, and so is their etcd: what is measured after them has the machine for itself.
ways_down() { # how many processes there were before
	local p
	for p in "${pids[@]:$1}"; do
		kill -TERM "$p" 2>/dev/null || true
	done
	for p in "${pids[@]:$1}"; do
		wait "$p" 2>/dev/null || true
	done
	pids=("${pids[@]:0:$1}")
	ways_flush
}

measure_way() { # CASE
	local what way
	IFS=. read -r _ what way <<<"$1"
	local -A mode=([conn]=connect-rate [rr]=rr [stream]=stream) server=([conn]=close [rr]=echo [stream]=sink) \
		port=([conn]=7001 [rr]=7002 [stream]=7003)
	local client=("${on_cpu[@]}")
	[ "$what" != stream ] || client=("${on_cpu_b[@]}")
	case $way in
	same | other) measure_first "$1" ;;
	plain) measure "$1" in_netns plaina "${client[@]}" "${mode[$what]}" 10.97.0.12 "${port[$what]}" ;;
	overlay) [ -z "$overlay" ] || measure "$1" in_netns plaina "${client[@]}" "${mode[$what]}" 10.96.0.12 "${port[$what]}" ;;
	*)
		measure "$1" way_ax "${way_one[$way]}" exec client -- "${client[@]}" "${mode[$what]}" \
			"$(way_addr "${way_two[$way]}" "${server[$what]}")" 7001
		;;
	esac
}

# From the start of an app to the first answer that a client has which waits for its name, there or on the other node.
measure_first() { # CASE
	local i waits begin name serves times=() from=${way_one[direct]} at=${way_one[direct]}
	[ "$1" = ways.first.same ] || at=${way_two[direct]}
	for i in 1 2 3 4 5; do
		name=first-$round-$i-${1##*.}
		# shellcheck disable=SC2016 # the inner shell's
		way_ax "$at" run --net host --wait 30s -- bash -c 'to=$(getent ahostsv4 "$1") && "$2" first-byte "${to%% *}" 7004 >/dev/null &&
			echo "${EPOCHREALTIME/[.,]/}"' - "$name" "$bench" >"$tmp/$name.out" 2>"$tmp/$1.err" &
		waits=$!
		sleep 0.5
		begin=$(now_us)
		way_ax "$from" run --net host --name "$name" -- "$bench" server echo 7004 >/dev/null 2>>"$tmp/$1.err" &
		serves=$!
		wait "$waits" || die "measuring $1 failed: $(tail -n 3 "$tmp/$1.err" | tr '\n' ' ')"
		times+=($((($(cat "$tmp/$name.out") - begin) * 1000)))
		way_ax "$from" stop "$name" >/dev/null
		wait "$serves" || true
	done
	record "$1" "$(middle "${times[@]}")"
}
# How much longer it takes on another node, in each round.
firsts_compared() {
	awk '$1 == "ways.first.same" {same[$2] = $3}
		$1 == "ways.first.other" {other[$2] = $3}
		END {for (r in same) print "ways.first.more", r, (other[r] > same[r] ? other[r] - same[r] : 0)}' \
		"$tmp/raw" >"$tmp/more"
	cat "$tmp/more" >>"$tmp/raw"
}

measure_ways() {
	local before=${#pids[@]}
	ways_up
	rounds "${way_cases[@]}"
	firsts_compared
	ways_down "$before"
}
way_rows() {
	local plain='plain TCP, the same machines'
	row 'connect+accept+close, other node, translate' 1/s ways.conn.translate "$plain" ways.conn.plain '>=' 0.93
	row 'round trip p50, other node, translate' ns ways.rr.translate "$plain" ways.rr.plain '<=' 1.03
	row 'connect+accept+close, other node, direct' 1/s ways.conn.direct "$plain" ways.conn.plain '>=' 0.95
	row 'round trip p50, other node, direct' ns ways.rr.direct "$plain" ways.rr.plain '<=' 1.03
	row 'stream 64 KiB, other node, translate' Gbit/s ways.stream.translate "$plain" ways.stream.plain '>=' 0.97
	row 'stream 64 KiB, other node, direct' Gbit/s ways.stream.direct "$plain" ways.stream.plain '>=' 0.97
	[ -z "$overlay" ] || row 'stream 64 KiB, other node, translate' Gbit/s ways.stream.translate "$overlay" ways.stream.overlay '>=' 1.2
	[ -z "$overlay" ] || row 'stream 64 KiB, other node, direct' Gbit/s ways.stream.direct "$overlay" ways.stream.overlay '>=' 1.2
	row 'app started -> first answer to who waits for it, other node' ns ways.first.other 'the same node' ways.first.same
	row 'so much later than on the same node' ns ways.first.more '' '' '<=' 150000000
}
