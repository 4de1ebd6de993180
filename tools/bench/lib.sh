# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers of run.sh: processes, network namespaces, measuring. Sourced, not run.

die() {
	echo "bench: $*" >&2
	exit 1
}

note() {
	echo "bench: $*" >&2
}

# --- processes: what is started here is stopped here, by its pid ---
pids=()
stop_pids() {
	local p
	for p in "${pids[@]}"; do
		kill -TERM "$p" 2>/dev/null || true
	done
	for p in "${pids[@]}"; do
		wait "$p" 2>/dev/null || true
	done
	pids=()
}

# wait_for SECONDS WHAT COMMAND...: polls until the command succeeds
wait_for() {
	local tries=$(($1 * 20)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || die "$what did not happen in time; see $tmp"
		sleep 0.05
	done
}

# start NAME PROGRAM...: in the background (never a function: then the pid is the program's);
# axbench's servers say "ready" when they listen
start() {
	local name=$1
	shift
	"$@" >"$tmp/$name.out" 2>"$tmp/$name.err" </dev/null &
	pids+=($!)
}
start_server() {
	local name=$1
	start "$@"
	wait_for 10 "the start of $name" grep -q '^ready' "$tmp/$name.out"
}

# --- ax ---
axi() { # INSTANCE ARGUMENT...
	local instance=$1
	shift
	"$ax" --instance "$instance" "$@"
}
# start_agent INSTANCE CONFIG [PROGRAM...]: the program (nsenter) goes before ax; sets agent_pid
start_agent() {
	local instance=$1 config=$2
	shift 2
	start "agent-$instance" "$@" "$ax" --instance "$instance" agent --config "$config"
	agent_pid=${pids[-1]}
	wait_for 10 "the agent's answer to ax status" axi "$instance" status
}

# --- network namespaces of the baselines, in this mount namespace's own /run/netns ---
in_netns() { # NAME COMMAND...
	local name=$1
	shift
	nsenter --net="/run/netns/$name" "$@"
}
start_server_in() { # NETNS NAME COMMAND...
	local netns=$1 name=$2
	shift 2
	start_server "$name" nsenter --net="/run/netns/$netns" "$@"
}
netns_add() {
	ip netns add "$1"
	in_netns "$1" ip link set lo up
}
# veth_into ROUTER NAME ADDRESS GATEWAY [bridge]: namespace NAME behind a veth pair of ROUTER's;
# without a bridge the router's end carries the gateway's address itself.
veth_into() {
	local router=$1 name=$2 address=$3 gateway=$4 bridge=${5:-}
	netns_add "$name"
	in_netns "$router" ip link add "$name" type veth peer name eth0 netns "$name"
	in_netns "$name" ip addr add "$address/24" dev eth0
	in_netns "$name" ip link set eth0 up
	in_netns "$router" ip link set "$name" up
	if [ -n "$bridge" ]; then
		in_netns "$router" ip link set "$name" master "$bridge"
	else
		in_netns "$router" ip addr add "$gateway/24" dev "$name"
	fi
	in_netns "$name" ip route add default via "$gateway"
}
# What a container engine sets up for published ports: those of address 10.77.0.1 go to the server's;
# everything that passes is tracked.
publish_port() { # ROUTER SERVER_ADDRESS INSIDE_INTERFACE_PATTERN PORT:SERVER_PORT...
	local router=$1 server=$2 inside=$3 pair
	shift 3
	{
		printf 'table ip nat {\nchain prerouting { type nat hook prerouting priority dstnat;\n'
		for pair; do
			echo "ip daddr 10.77.0.1 tcp dport ${pair%:*} dnat to $server:${pair#*:}"
		done
		printf '}\nchain postrouting { type nat hook postrouting priority srcnat;\n'
		printf '%s\n' "oifname != \"$inside\" masquerade" '}' '}'
	} | in_netns "$router" nft -f -
}

# --- measuring ---
# record CASE VALUE
record() {
	echo "$1 $round $2" >>"$tmp/raw"
}
# measure CASE COMMAND...: the command is axbench's, under whatever it is measured under; with field=p99
# before it, that one of what it prints
measure() {
	local name=$1 line value
	shift
	line=$("$@" 2>"$tmp/$name.err" </dev/null) ||
		die "measuring $name failed: $(tail -n 3 "$tmp/$name.err" | tr '\n' ' ')"
	value=$(sed -n 's/.*"'"${field:-value}"'":\([0-9.]*\).*/\1/p' <<<"$line")
	[ -n "$value" ] || die "measuring $name printed no value: $line"
	record "$name" "$value"
}

# Processor time of a process, in clock ticks, and how often it was woken up.
cpu_ticks() {
	# the command's name, in parentheses, may hold spaces
	sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'
}
wakeups() {
	awk '/^voluntary_ctxt_switches/ {print $2}' "/proc/$1/status"
}
rss_mib() {
	awk '/^VmRSS/ {printf "%.1f\n", $2 / 1024}' "/proc/$1/status"
}
