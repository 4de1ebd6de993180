#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Two machines with an agent each and the same balancer, its backends in another order: a client's
# connections go on when its packets come to the other one, and `affinity: src` puts all of a client's
# on one backend.
. "$(dirname "$0")/lib.sh"
need ip ethtool jq nginx "$PYTHON"
[ -c /dev/net/tun ] || skip_all "missing kernel feature tun"

# One network: 10.5.0.0/24 with the client (.9), two balancing machines (.1, .2) and three backends (.11
# to .13), which have the service's address, 10.0.0.100, and answer the client themselves.
ip link add lan type bridge
ip link set lan up
sysctl -qw net.ipv4.conf.default.rp_filter=0 net.ipv6.conf.default.accept_dad=0
NAMES=(client m1 m2 b11 b12 b13)
# host NAME NUMBER
host() {
	ip netns add "$1"
	ip -n "$1" link set lo up
	ip netns exec "$1" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 \
		net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.send_redirects=0 \
		net.ipv4.conf.default.send_redirects=0
	ip link add "to-$1" type veth peer name eth0 netns "$1"
	ip link set "to-$1" master lan up
	# frames that a program sends back are taken, and nobody leaves checksums to be finished
	ethtool -K "to-$1" gro on >/dev/null
	ip netns exec "$1" ethtool -K eth0 tx off >/dev/null
	ip -n "$1" addr add "10.5.0.$2/24" dev eth0
	ip -n "$1" link set eth0 up
}
host client 9
host m1 1
host m2 2
for n in 11 12 13; do
	host b$n $n
	ip -n b$n addr add 10.0.0.100/32 dev lo
	bg "$T/decap.$n" ip netns exec b$n "$PYTHON" -u "$SRC/balance.py" decap ipip
	bg "$T/serve.$n" ip netns exec b$n "$PYTHON" -u "$SRC/balance.py" serve b$n 7000
	mkdir -p "$T/nginx.$n"
	cat >"$T/nginx.$n/conf" <<-END
		pid $T/nginx.$n/pid;
		error_log $T/nginx.$n/error.log;
		worker_processes 1;
		daemon off;
		events {}
		http {
			access_log off;
			keepalive_timeout 600;
			client_body_temp_path $T/nginx.$n/body;
			proxy_temp_path $T/nginx.$n/proxy;
			fastcgi_temp_path $T/nginx.$n/fastcgi;
			uwsgi_temp_path $T/nginx.$n/uwsgi;
			scgi_temp_path $T/nginx.$n/scgi;
			server { listen 80; location / { return 200 "b$n here\n"; } }
		}
	END
	bg "$T/nginx.$n.log" ip netns exec b$n nginx -p "$T/nginx.$n" -c "$T/nginx.$n/conf" \
		-e "$T/nginx.$n/error.log"
done
for n in 11 12 13; do
	wait_for "grep -q listening $T/decap.$n && grep -q serving $T/serve.$n &&
		ip netns exec b$n ss -Hltn 'sport = :80' | grep -q ."
	ip netns exec b$n sysctl -qw net.ipv4.conf.decap.rp_filter=0
done

# --- the machines ---
FIRST=$INST
SECOND=$(random_name)
INSTANCES+=("$SECOND")
# on MACHINE COMMAND...: in its network
on() {
	nsenter --net="/run/netns/$1" "${@:2}"
}
# config MACHINE AFFINITY BACKEND...
config() {
	local list
	list=$(printf '10.5.0.%s, ' "${@:3}")
	cat <<-END
		agent:
		  pool: {ipv4: 10.7$(("${1#m}" + 7)).0.0/16, ipv6: "fd7$(("${1#m}" + 7))::/64"}
		xdp:
		  balancers:
		    web: {mode: ipip, affinity: $2, backends: [$list]}
		  interfaces:
		    eth0:
		      rules: [{name: web, dst: 10.0.0.100, action: balance web}]
	END
}
# machine NUMBER AFFINITY BACKEND...: applies it, by an agent that is started if there is none
machine() {
	local inst=$FIRST
	[ "$1" = 1 ] || inst=$SECOND
	config "m$1" "${@:2}" >"$T/m$1.yaml"
	if [ -n "${STARTED[$1]:-}" ]; then
		"$AX" --instance "$inst" config apply "$T/m$1.yaml"
		return
	fi
	bg "$T/m$1.log" nsenter --net="/run/netns/m$1" "$AX" --instance "$inst" agent --config "$T/m$1.yaml"
	STARTED[$1]=$BG
	wait_for -t 60 "'$AX' --instance '$inst' status" || diag "$(tail -n 20 "$T/m$1.log")"
}
STARTED=()
machine 1 none 11 12 13
machine 2 none 13 11 12
is "both machines balance" "$(for n in m1 m2; do on $n ip link show eth0 | grep -c prog/xdp; done | xargs)" "1 1"
# by MACHINE: the client's way to the service
by() {
	ip -n client route replace 10.0.0.100 via "10.5.0.${1#m}"
}
for m in m1 m2; do
	# (the first packet to a neighbour that nobody knows would be lost)
	for n in 11 12 13; do
		like "$m reaches b$n" "$(on $m "$PYTHON" "$SRC/balance.py" query tcp "10.5.0.$n" 7000 0 1)" "^b$n .* whole"
	done
done

mkdir "$T/keep"
by m1
bg "$T/keep.log" ip netns exec client "$PYTHON" "$SRC/balance.py" keep 10.0.0.100 80 30 "$T/keep"
# round N, from 1 on: one line for each connection
round() {
	touch "$T/keep/go.$1"
	wait_for -t 100 "[ -e '$T/keep/round.$1' ]"
	cat "$T/keep/round.$1"
}
first=$(round 1)
is "30 connections by one machine are on all backends" "$(sort -u <<<"$first" | xargs)" "b11 b12 b13"
by m2
is "by the other one they go on, each at its backend" "$(round 2)" "$first"
like "that has seen none of them begin" "$(on m2 "$AX" --instance "$SECOND" xdp stats eth0 -o json |
	jq '[.backends[].packets] | add')" '^[1-9][0-9]+$'
by m1
is "and back" "$(round 3)" "$first"

# --- affinity: src ---
# answers CLIENTS N: a line for each of so many addresses of the client's, with the backends that N
# connections of it are on
answers() {
	local i
	for ((i = 1; i <= $1; i++)); do
		ip netns exec client "$PYTHON" "$SRC/balance.py" query tcp 10.0.0.100 7000 0 "$2" "10.5.1.$i" |
			cut -d ' ' -f 1 | sort -u | xargs
	done
}
for ((i = 1; i <= 12; i++)); do ip -n client addr add 10.5.1.$i/32 dev lo; done
for n in b11 b12 b13; do ip -n $n route add 10.5.1.0/24 via 10.5.0.9; done
unlike "without it, a client's connections are on several" "$(answers 1 12)" '^b1[123]$'
machine 1 src 12 13 11 >/dev/null
machine 2 src 13 11 12 >/dev/null
got=$(answers 12 4)
is "with it each client has one backend" "$(grep -vxE 'b1[123]' <<<"$got")" ""
like "and they are not all the same" "$(sort -u <<<"$got" | xargs)" 'b1[123] b1[123]'
by m2
is "whichever machine is asked" "$(answers 12 4)" "$got"
like "status says so" "$(on m2 "$AX" --instance "$SECOND" xdp status eth0)" "web: ipip, by the client's address, 3 backends"
like "and the list as a file does" "$(on m1 "$AX" --instance "$FIRST" xdp rule list eth0 -o yaml)" "affinity: src"
is "connections that are open stay where they are" "$(round 4)" "$first"

for pid in "${STARTED[@]}"; do end "$pid"; done
on m1 "$AX" --instance "$FIRST" agent --flush
on m2 "$AX" --instance "$SECOND" agent --flush
is "nothing is left on the machines" "$(for n in m1 m2; do on $n ip link show eth0 | grep prog/xdp; done)" ""
for n in "${NAMES[@]}"; do
	ip netns del "$n"
	ip link del "to-$n" 2>/dev/null # (it goes with its namespace, but later)
done
ip link del lan
done_testing
