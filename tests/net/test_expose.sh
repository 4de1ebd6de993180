#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# Exposed ports: programs on other machines, and on this one, reach apps of both modes at the host's
# addresses and are seen with their own; whose port it is; what stays when the agent dies.
. "$(dirname "$0")/lib.sh"
need ip jq curl "$PYTHON" nginx nft tc
build_c tcp udp

config() {
	cat <<-EOF2
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
		${2:-}
	EOF2
}

# --- neighbours: one on a link of its own, one behind a bridge ---

# neighbour NAME: a network namespace, whose process is in $NAME
neighbour() {
	unshare -n sleep 1000 &
	BACKGROUND+=("$!")
	printf -v "$1" %s "$!"
	wait_for "[ \"\$(readlink /proc/$!/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ]"
	nsenter -t "$!" -n sh -c "sysctl -qw net.ipv6.conf.default.accept_dad=0; ip link set lo up"
}
on() {
	local pid=$1
	shift
	timeout 60 nsenter -t "$pid" -n "$@"
}
RP_FILTER=$(sysctl -n net.ipv4.conf.all.rp_filter)
sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.default.rp_filter=1 \
	net.ipv6.conf.default.accept_dad=0
neighbour ROUTED
neighbour BRIDGED
veth_or_skip n0 type veth peer name eth0 netns "$ROUTED"
ip addr add 198.51.100.1/24 dev n0
ip addr add 2001:db8:1::1/64 dev n0 nodad
ip link set n0 mtu 1400 up
on "$ROUTED" sh -c "ip addr add 198.51.100.2/24 dev eth0; ip addr add 2001:db8:1::2/64 dev eth0 nodad
	ip link set eth0 mtu 1400 up
	ip route add default via 198.51.100.1; ip -6 route add default via 2001:db8:1::1"
ip link add br0 type bridge
ip link add n1 master br0 type veth peer name eth0 netns "$BRIDGED"
ip addr add 203.0.113.1/24 dev br0
ip addr add 2001:db8:2::1/64 dev br0 nodad
ip link set n1 up
ip link set br0 up
on "$BRIDGED" sh -c "ip addr add 203.0.113.2/24 dev eth0; ip addr add 2001:db8:2::2/64 dev eth0 nodad
	ip link set eth0 up; ip route add default via 203.0.113.1
	ip -6 route add default via 2001:db8:2::1"
wait_for 'ip link show n0 | grep -q LOWER_UP && ip link show br0 | grep -q LOWER_UP'
agent_start - < <(config)

# reach WHAT PORT: from both neighbours, by both families, with their own addresses
reach() {
	local what=$1 port=$2 to
	for to in "ROUTED 4 198.51.100.1 198.51.100.2" "ROUTED 6 2001:db8:1::1 2001:db8:1::2" \
		"BRIDGED 4 203.0.113.1 203.0.113.2" "BRIDGED 6 2001:db8:2::1 2001:db8:2::2"; do
		# shellcheck disable=SC2086 # fields
		set -- $to
		like "$what: a client $1 at $3" \
			"$(on "${!1}" "$BIN/tcp" connect "$2" "$3" "$port" 2>&1)" "^peer=.* you=\[?(::ffff:)?$4\]?:"
	done
}
# from_host WHAT PORT LOOPBACK4 LOOPBACK6: what clients of this host are seen as
from_host() {
	local what=$1 port=$2 loop4=$3 loop6=$4 to
	for to in "4 127.0.0.1 $loop4" "6 ::1 $loop6" "4 198.51.100.1 198.51.100.1" \
		"6 2001:db8:1::1 2001:db8:1::1"; do
		# shellcheck disable=SC2086 # fields
		set -- $to
		like "$what: this host by $2" "$(timeout 20 "$BIN/tcp" connect "$1" "$2" "$port" 2>&1)" \
			"^peer=.* you=\[?(::ffff:)?$3\]?:"
	done
}

# --- host mode, TCP ---

serve 80 --net host --name host --ip 10.77.1.1,fd77::1:1 -p 8080:80 -- "$BIN/tcp" listen 6 :: 80 hello
reach "host mode" 8080
from_host "host mode" 8080 127.0.0.1 ::1
like "ax get apps shows it" "$(ax get apps -o wide)" "8080:80/tcp"
like "an app reaches it by its name, as ever" \
	"$(in_app -- "$BIN/tcp" connect 4 10.77.1.1 80)" "^peer="

# --- whose port it is ---

like "a second exposer is told of the first" \
	"$(in_app --net host -p 8080:81 -- true 2>&1)" "the app host exposes that port already"
like "and so by one address" \
	"$(in_app --net host -p 127.0.0.1:8080:81 -- true 2>&1)" "the app host exposes that port already"
ok "UDP of the same number is another port" in_app -p 8080:81/udp -- true
is "nobody else can bind it" "$("$BIN/tcp" bind 4 0.0.0.0 8080)" "error bind EADDRINUSE"
is "nor by IPv6" "$("$BIN/tcp" bind 6 :: 8080)" "error bind EADDRINUSE"
bg "$T/daemon" "$BIN/tcp" listen 4 198.51.100.1 9090 daemon
wait_for "grep -q listening $T/daemon"
like "a port that a program has is named with it" "$(in_app -p 9090:80 -- true 2>&1)" \
	"cannot expose 9090:80/tcp: a program of user 0 has 198.51.100.1:9090/tcp of this machine"
ok "at another address it can be had" in_app -p 203.0.113.1:9090:80 -- true
end "$BG"
stop_apps
is "the port is free again" "$("$BIN/tcp" bind 4 0.0.0.0 8080)" "bound 0.0.0.0:8080"

# --- private apps ---

serve 80 --name private --ip 10.77.1.2,fd77::1:2 -p 8080:80 -- "$BIN/tcp" listen 6 :: 80 hello
reach "private" 8080
from_host "private" 8080 10.77.0.1 fd77::1

# --- what ax events tells of it ---

for mode in private host; do
	serve 80 --net $mode --name seen --ip 10.77.1.8,fd77::1:8 -p 8088:80 -- "$BIN/tcp" listen 6 :: 80 hello
	bg "$T/events.$mode" "$AX" --instance "$INST" events -f -o json
	EVENTS=$BG
	wait_for "on $ROUTED $BIN/tcp connect 4 198.51.100.1 8088 && grep -q exposed $T/events.$mode"
	is "$mode: events: who was seen, and by which exposed port" \
		"$(jq -rc 'select(.event == "accept") | [.app, .remote, .exposed, .exposed_port]' <"$T/events.$mode" | sort -u)" \
		'["seen","198.51.100.2","198.51.100.1",8088]'
	on "$ROUTED" "$BIN/tcp" connect 6 2001:db8:1::1 8088 >/dev/null
	ok "$mode: events: IPv6" wait_for "grep -q '\"exposed\": *\"2001:db8:1::1\"' $T/events.$mode"
	end "$EVENTS"
	stop_app "$APP"
done

# --- while no agent runs, and when another one has come ---

agent_kill9
reach "no agent" 8080
agent_again
reach "another agent" 8080
from_host "another agent" 8080 10.77.0.1 fd77::1
# who switches forwarding off for the host takes it from each of its interfaces
sysctl -qw net.ipv4.conf.n0.forwarding=1 net.ipv6.conf.n0.forwarding=1
in_app --egress -- true
wait_for '[ -z "$(nft list ruleset)" ]'
is "forwarding of the host is off again" "$(sysctl -n net.ipv4.ip_forward)" 0
reach "another app had a way out" 8080
is "an interface that forwarded before does so" \
	"$(sysctl -n net.ipv4.conf.n0.forwarding net.ipv6.conf.n0.forwarding | tr '\n' ' ')" "1 1 "
sysctl -qw net.ipv4.conf.n0.forwarding=0 net.ipv6.conf.n0.forwarding=0
is "it keeps the port" "$("$BIN/tcp" bind 4 0.0.0.0 8080)" "error bind EADDRINUSE"
ok "exposing is the permission" ax config apply <(config false)
reach "host_access: false" 8080
unlike "no other way is open" "$(timeout 2 "$BIN/tcp" connect 4 10.77.1.2 80 2>&1)" "peer="
run_app --name closed -p 8081:81 -- sleep 1000
launched closed
like "a port of the app where nobody listens is refused" \
	"$(on "$ROUTED" "$BIN/tcp" connect 4 198.51.100.1 8081)" "ECONNREFUSED"
stop_apps

# --- one address, one interface ---

serve 80 --name one --ip 10.77.1.3,fd77::1:3 -p 203.0.113.1:8080:80 -p br0:8082:80 -- \
	"$BIN/tcp" listen 6 :: 80 hello
like "by its address" "$(on "$BRIDGED" "$BIN/tcp" connect 4 203.0.113.1 8080)" "^peer="
like "and from elsewhere too" "$(on "$ROUTED" "$BIN/tcp" connect 4 203.0.113.1 8080)" "^peer="
is "by no other" "$(on "$ROUTED" "$BIN/tcp" connect 4 198.51.100.1 8080)" \
	"error connect ECONNREFUSED"
like "by its interface" "$(on "$BRIDGED" "$BIN/tcp" connect 6 2001:db8:2::1 8082)" "^peer="
is "by no other interface" "$(on "$ROUTED" "$BIN/tcp" connect 4 203.0.113.1 8082)" \
	"error connect ECONNREFUSED"
stop_apps
is "by one that there is not, which is said" "$(ax run -p nosuch0:8084:80 -- true 2>&1)" \
	"ax run: nosuch0:8084:80/tcp is exposed once there is such an interface: now there is none"

# --- UDP ---

for mode in private host; do
	serve 53/udp --net $mode --name udp --ip 10.77.1.4,fd77::1:4 -p 5353:53/udp -- "$BIN/udp" serve 6 :: 53 echo
	for to in "ROUTED 4 198.51.100.1" "ROUTED 6 2001:db8:1::1" "BRIDGED 4 203.0.113.1" \
		"BRIDGED 6 2001:db8:2::1"; do
		# shellcheck disable=SC2086 # fields
		set -- $to
		for how in sendto connected; do
			like "$mode: UDP by $how: $1 at $3" "$(on "${!1}" "$BIN/udp" ask $how "$2" "$3" 5353 2>&1)" \
				"from=\[?$3\]?:5353 "
		done
	done
	for to in "4 127.0.0.1" "6 ::1" "4 198.51.100.1"; do
		# shellcheck disable=SC2086 # fields
		like "$mode: UDP from this host: $to" "$(timeout 20 "$BIN/udp" ask sendto $to 5353 2>&1)" ":5353 "
	done
	ok "$mode: exposing is the permission" ax config apply <(config false)
	like "$mode: UDP with host_access: false" \
		"$(on "$ROUTED" "$BIN/udp" ask connected 4 198.51.100.1 5353 2>&1)" "from=198.51.100.1:5353 "
	unlike "$mode: no other way is open" "$(timeout 3 "$BIN/udp" ask connected 4 10.77.1.4 53 2>&1)" "from="
	agent_kill9
	like "$mode: UDP without an agent" \
		"$(on "$ROUTED" "$BIN/udp" ask connected 4 198.51.100.1 5353 2>&1)" "from=198.51.100.1:5353 "
	agent_again
	like "$mode: UDP with another agent" \
		"$(on "$BRIDGED" "$BIN/udp" ask connected 6 2001:db8:2::1 5353 2>&1)" "from=\[2001:db8:2::1\]:5353 "
	ok "$mode: as it was" ax config apply <(config)
	stop_apps
done

# --- services ---

svc='services: {both: {ports: ["90:80", "90:53/udp"], backends: [{app: b1}, {app: b2}],
    strategy: round-robin, expose: ["8090:90", "8090:90/udp"]}}'
ok "a service is exposed" ax config apply <(config true "$svc")
for mode in private host; do
	serve 80 --net $mode --name b1 --ip 10.77.2.1,fd77::2:1 -- "$BIN/tcp" listen 6 :: 80 b1
	serve 80 --net $mode --name b2 --ip 10.77.2.2,fd77::2:2 -- "$BIN/tcp" listen 6 :: 80 b2
	for to in "4 198.51.100.1" "6 2001:db8:1::1"; do
		# shellcheck disable=SC2086 # fields
		is "$mode: both backends are reached: $to" "$(for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
			on "$ROUTED" "$BIN/tcp" connect $to 8090
		done | grep -o "b[12] you=.*2\]*:" | sed 's/ .*//' | sort -u | xargs)" "b1 b2"
	done
	like "$mode: from this host" "$(timeout 20 "$BIN/tcp" connect 4 127.0.0.1 8090)" " b[12] you="
	stop_apps
done
for mode in host private; do
	serve 53/udp --net $mode --name b1 --ip 10.77.2.1,fd77::2:1 -- "$BIN/udp" serve 6 :: 53 b1
	for to in "4 198.51.100.1" "6 2001:db8:1::1"; do
		# shellcheck disable=SC2086 # fields
		like "$mode: UDP, $to" "$(on "$ROUTED" "$BIN/udp" ask connected $to 8090)" ":8090 b1"
	done
	like "$mode: UDP, from this host" "$(timeout 20 "$BIN/udp" ask connected 4 127.0.0.1 8090)" ":8090 b1"
	[ $mode = private ] || stop_apps
done
like "a service's port is taken, too" "$(in_app -p 8090:80 -- true 2>&1)" \
	"the service both exposes that port already"
stop_apps
ok "it is exposed no more" ax config apply <(config)
is "and the port free" "$("$BIN/tcp" bind 4 0.0.0.0 8090)" "bound 0.0.0.0:8090"

# --- a narrow way: the router behind the bridge has one that is smaller than both ends know ---

neighbour FAR
on "$BRIDGED" sh -c "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ip link add far mtu 1300 type veth peer name eth0 mtu 1500 netns $FAR
	ip addr add 192.0.2.1/24 dev far; ip addr add 2001:db8:3::1/64 dev far nodad; ip link set far up"
on "$FAR" sh -c "ip addr add 192.0.2.2/24 dev eth0; ip addr add 2001:db8:3::2/64 dev eth0 nodad
	ip link set eth0 up; ip route add default via 192.0.2.1; ip -6 route add default via 2001:db8:3::1"
ip route add 192.0.2.0/24 via 203.0.113.2
ip -6 route add 2001:db8:3::/64 via 2001:db8:2::2
head -c 300000 /dev/urandom >"$T/long"
chmod 644 "$T/long"
for mode in private host; do
	serve 80 --net $mode --name long --ip 10.77.1.7,fd77::1:7 -p 8080:80 -- \
		"$PYTHON" -m http.server --bind :: -d "$T" 80
	for url in http://203.0.113.1:8080/long "http://[2001:db8:2::1]:8080/long"; do
		is "$mode: what is too long for the way is said to the app, $url" \
			"$(on "$FAR" curl -sS -g --max-time 20 "$url" | sha256sum)" "$(sha256sum <"$T/long")"
	done
	stop_apps
done
end "$FAR"
ip route del 192.0.2.0/24
ip -6 route del 2001:db8:3::/64

# --- what is somebody else's ---

# a connection that this host masquerades has got the number of an exposed port
serve 80 --name high --ip 10.77.1.6,fd77::1:6 -p 40000:80 -- "$BIN/tcp" listen 6 :: 80 high
like "a port that connections get as well is exposed" "$(on "$ROUTED" "$BIN/tcp" connect 4 198.51.100.1 40000)" " high you="
like "and the log says what may come of it" "$(cat "$T/$INST.log")" "40000:80/tcp is exposed by a port that connections get"
bg "$T/far" nsenter -t "$BRIDGED" -n "$BIN/tcp" listen 4 0.0.0.0 7777 far
wait_for "grep -q listening $T/far"
forward=$(sysctl -n net.ipv4.ip_forward)
sysctl -qw net.ipv4.ip_forward=1
nft add table ip masq
nft 'add chain ip masq post { type nat hook postrouting priority srcnat; }'
nft add rule ip masq post oifname br0 masquerade
like "a masqueraded connection by the same number goes on" \
	"$(on "$ROUTED" "$BIN/tcp" connect 4 203.0.113.2 7777 -b 198.51.100.2 40000 2>&1)" " far you=203.0.113.1:40000"
nft delete table ip masq
sysctl -qw net.ipv4.ip_forward="$forward"
end "$BG"

# an interface that becomes part of another, and what is left when nothing is exposed any more
ip link add d0 type veth peer name d1
ip link set d0 up
ip link set d1 up
filters() {
	tc filter show dev "$1" ingress | grep -c bpf
}
ok "an interface that comes gets the program" wait_for "[ \$(filters d0) -gt 0 ]"
ip link set d0 master br0
ok "one that becomes part of a bridge loses it" wait_for "[ \$(filters d0) = 0 ]"
wait_for "! tc qdisc show dev d0 | grep -q clsact" # (the agent takes it away after the program)
is "and its clsact" "$(tc qdisc show dev d0 | grep -c clsact)" 0
run_app --name plain -- sleep 1000
wait_for "launched plain"
plain=/proc/sys/net/ipv4/conf/$INST-$(ax get apps -o json plain | jq '.[0].id')/forwarding
is "while a port is exposed the devices of apps forward" "$(cat "$plain")" 1
stop_app "$(ps -o ppid= -p "$(ax get apps -o json high | jq '.[0].pid')" | tr -d ' ')"
ok "nothing is exposed any more: no program is left" wait_for "[ \$(filters br0) = 0 ] && [ \$(filters n0) = 0 ]"
# (these come after the programs)
wait_for "! tc qdisc show dev d1 | grep -q clsact && [ \$(cat $plain) = $forward ]"
is "nor a clsact that it made" "$(tc qdisc show dev d1 | grep -c clsact)" 0
is "and the devices do as the host does" "$(cat "$plain")" "$forward"
ip link del d0
stop_apps

# --- bytes ---

mkdir "$T/www"
head -c 20000000 /dev/urandom >"$T/www/big"
chmod 755 "$T/www"
SUM=$(sha256sum <"$T/www/big")
serve 80 --name web --ip 10.77.1.5,fd77::1:5 -p 8080:80 -- "$PYTHON" -m http.server --bind :: -d "$T/www" 80
is "a large file arrives whole: routed" \
	"$(on "$ROUTED" curl -sS http://198.51.100.1:8080/big | sha256sum)" "$SUM"
is "IPv6" "$(on "$ROUTED" curl -sS -g 'http://[2001:db8:1::1]:8080/big' | sha256sum)" "$SUM"
is "bridged" "$(on "$BRIDGED" curl -sS http://203.0.113.1:8080/big | sha256sum)" "$SUM"
is "from this host" "$(curl -sS http://127.0.0.1:8080/big | sha256sum)" "$SUM"
is "from this host, IPv6" "$(curl -sS -g 'http://[::1]:8080/big' | sha256sum)" "$SUM"
stop_apps
sysctl -qw net.ipv4.conf.all.rp_filter="$RP_FILTER"
ip link del br0
end "$ROUTED"
end "$BRIDGED"
ip link del n0 2>/dev/null # (without waiting for its other end)
ip link del n1 2>/dev/null
done_testing
