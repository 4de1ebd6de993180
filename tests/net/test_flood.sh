#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# 100,000 SYNs a second of nobody at a NAT balancer: those who are connected stay so, and new
# clients connect.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip ethtool jq "$PYTHON"
build_c flood storm

RATE=120000
SYSCTLS="$(sysctl net.ipv4.ip_forward net.ipv4.conf.all.rp_filter)"
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0

# client 10.1.1.2 - cl [this host] fl - attacker 10.1.2.2
#                        | bk
#                   backend 10.1.3.2; the service 10.0.0.100 is nobody's address
in_ns() { # NAMESPACE COMMAND...
	timeout --foreground -k 1 60 ip netns exec "$@"
}
net=0
for pair in cl:client fl:attacker bk:backend; do
	name=${pair%:*} ns=${pair#*:}
	net=$((net + 1))
	ip netns add "$ns"
	ip link add "$name" type veth peer name eth0 netns "$ns"
	ip addr add 10.1.$net.1/24 dev "$name"
	ip link set "$name" up
	ip -n "$ns" link set lo up
	ip -n "$ns" addr add 10.1.$net.2/24 dev eth0
	ip -n "$ns" link set eth0 up
	ip -n "$ns" route add default via 10.1.$net.1
	in_ns "$ns" ethtool -K eth0 tx off gro on >/dev/null
done
bg "$T/server" ip netns exec backend "$PYTHON" "$SRC/service_ports.py" serve 7000
wait_for 'ip netns exec backend ss -Hltn "sport = :7000" | grep -q .'

cat >"$T/list.yaml" <<'END'
balancers:
  web: {mode: nat, backends: [{address: 10.1.3.2, port: 7000}]}
rules:
  - {name: web, dst: 10.0.0.100, proto: tcp, dport: 80, action: balance web}
END
echo 'rules: []' >"$T/answers.yaml"
for name in cl fl; do
	ok "a balancer on $name" ax xdp load $name --rules "$T/list.yaml" --fix
done
ok "its answers come in by bk" ax xdp load bk --rules "$T/answers.yaml" --fix
# a backend's kernel does not answer as many: what has no TCP options (the clients' have) gets no
# answer, which leaves more half open at the balancer, not less
echo 'rules: [{name: unanswered, proto: tcp, flags: "syn,!ack", length: 0-60, action: drop}]' >"$T/silent.yaml"
ok "the backend answers no SYN of nobody" nsenter --net=/run/netns/backend "$AX" --instance "$INST" \
	xdp load eth0 --rules "$T/silent.yaml"
wait_for 'ip neigh show 10.1.3.2 | grep -q lladdr'

without_port() { # INTERFACE
	ax xdp stats "$1" -o json | jq '.reasons["no-port"] // 0'
}
judged() {
	count web packets fl
}
clients() { # NAME
	bg "$T/$1" ip netns exec client "$PYTHON" "$SRC/service_ports.py" keep 10.0.0.100:80 50 "$T/go.$1"
	# shellcheck disable=SC2034 # wait_for sees it
	keeper=$BG
	wait_for -t 40 "[ -s '$T/$1' ] || ! kill -0 $BG"
	head -n 1 "$T/$1"
}
went_on() {
	touch "$T/go.$1"
	wait_for -t 60 "[ \$(wc -l <'$T/$1') = 2 ]"
	tail -n 1 "$T/$1"
}
mac() { # NAMESPACE, or nothing and a device
	ip ${2:+-n "$2"} -o link show "$1" | sed 's/.*link.ether \([0-9a-f:]*\).*/\1/'
}
flood() {
	in_ns attacker nice -n -10 "$BIN/flood" eth0 "$(mac eth0 attacker)" "$(mac fl)" 10.0.0.100 80 "$RATE" "$1" ||
		{ [ $? = 3 ] && echo raw && in_ns attacker "$BIN/storm" syns 10.0.0.100 80 "$1"; }
}

is "clients connect" "$(clients before)" 50
was=$(judged)
begin=${EPOCHREALTIME/./}
# in turns: it lasts as long as it has to
flood_on() {
	while [ ! -e "$T/enough" ]; do
		flood 4
	done
}
bg "$T/rate" flood_on
flooder=$BG
wait_for "[ \$(judged) -gt $((was + 100000)) ]"
is "new clients connect during the flood" "$(clients during)" 50
is "and talk on" "$(went_on during)" 50
is "those who were there before, too" "$(went_on before)" 50
last=$(judged)
ok "and it goes on" wait_for "[ \$(judged) -gt $((last + 10000)) ]"
touch "$T/enough"
wait "$flooder"
now=$(judged)
rate=$(((now - was) * 1000000 / (${EPOCHREALTIME/./} - begin)))
diag "SYNs a second: made $(xargs <"$T/rate"), judged $rate"
diag "without a port: $(without_port fl) of the flood's, $(without_port cl) of the clients'"
is "no client was without a port" "$(without_port cl)" 0
is "afterwards clients connect" "$(clients after)" 50
is "and talk on" "$(went_on after)" 50

nsenter --net=/run/netns/backend "$AX" --instance "$INST" xdp unload eth0 >/dev/null
for name in cl fl bk; do
	ax xdp unload $name >/dev/null
	ip link del $name
done
# shellcheck disable=SC2086 # a list
sysctl -qw ${SYSCTLS// = /=}
for ns in client attacker backend; do ip netns del $ns; done
done_testing
