# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced after lib.sh by tests of clusters: nodes in network namespaces of their own at a bridge.

# within SECONDS COMMAND...: as eventually, but by the clock: what is tried takes long here.
within()
{
	local end=$(($(date +%s) + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$end" ] || return 1
		usleep 200000
	done
}

# --- the machines ---

# Set by name: pid of what holds the namespace (pid_NAME), its agent (agent_NAME); the launchers of apps.
pids=''

# machine NAME NUMBER: a namespace with eth0 at the bridge
machine()
{
	local pid peer

	unshare -n sh -c 'ip link set lo up; exec sleep 1000' &
	pid=$!
	within 5 ip link add "v$1" type veth
	peer=$(cd /sys/class/net && echo veth*) # busybox's ip takes no name for the other end
	within 5 ip link set "$peer" netns $pid
	ip link set "v$1" master lan0
	ip link set "v$1" up
	nsenter -t $pid -n ip link set "$peer" name eth0
	nsenter -t $pid -n ip addr add "10.99.0.$2/24" dev eth0
	nsenter -t $pid -n ip addr add "fd99::$2/64" dev eth0
	nsenter -t $pid -n ip link set eth0 up
	eval "pid_$1=$pid"
}

# in_ns NODE COMMAND...
in_ns()
{
	local pid

	eval "pid=\$pid_$1"
	shift
	nsenter -t "$pid" -n "$@"
}

# ax_at NODE ARGUMENT...
ax_at()
{
	local node=$1

	shift
	in_ns "$node" ax --instance "$node" "$@"
}

up_or_dead()
{
	ax_at "$1" status || ! kill -0 "$2"
}

# start NODE: its agent (nsenter becomes it, and so the number is its own)
start()
{
	nsenter -t "$(eval echo "\$pid_$1")" -n ax --instance "$1" agent --config "/tmp/$1.yaml" \
		>>"/tmp/$1.log" 2>&1 </dev/null &
	eval "agent_$1=$!"
	within 300 up_or_dead "$1" $!
}

# started NODE
started()
{
	ax_at "$1" status
}

# state NODE PATTERN: in its status
state()
{
	ax_at "$1" status -o json | tr -d ' \n' | grep -qE "$2"
}

# app NODE NAME OPTIONS -- COMMAND...
app()
{
	local node=$1 name=$2

	shift 2
	nsenter -t "$(eval echo "\$pid_$node")" -n ax --instance "$node" run --name "$name" "$@" \
		>"/tmp/out.$name" 2>&1 </dev/null &
	pids="$pids $!"
	within 20 ax_at "$node" get apps "$name"
}

# at NODE MODE COMMAND...: by the app c-MODE there
at()
{
	local node=$1 mode=$2

	shift 2
	timeout 30 nsenter -t "$(eval echo "\$pid_$node")" -n ax --instance "$node" exec "c-$mode" -- "$@"
}

# addr NODE APP
addr()
{
	ax_at "$1" get apps -o json "$2" | sed -n 's/.*"ip4": *"\([0-9.]*\)".*/\1/p' | head -n 1
}

# knows NODE APP...: of the other one
knows()
{
	local node=$1 name

	shift
	ax_at "$node" get apps -A -o json >"/tmp/known.$node"
	for name; do
		grep -q "\"name\": *\"$name\"" "/tmp/known.$node" || return 1
	done
}

wg_routes()
{
	in_ns "$1" ip route | grep "dev $1-wg"
}
