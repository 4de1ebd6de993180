#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# QUIC's connection ids: connections keep their backend while their client's address and port change,
# by NAT and through tunnels.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/links.sh"
need ip ethtool jq "$PYTHON"
[ -c /dev/net/tun ] || skip_all "missing kernel feature tun"

# client --- cl [this host] s1, s2, s3 --- b1, b2, b3: 10.2.N.2. The service 10.0.0.100, fd00::100 is
# nobody's address.
SYSCTLS=$(sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.conf.all.rp_filter)
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
	net.ipv4.conf.default.rp_filter=0 net.ipv6.conf.default.accept_dad=0
in_ns() { # NAMESPACE COMMAND...
	timeout --foreground -k 1 60 ip netns exec "$@"
}
machine() { # DEVICE SUBNET NAMESPACE: one with that link
	ip netns add "$3"
	ip -n "$3" link set lo up
	in_ns "$3" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
		net.ipv6.conf.default.accept_dad=0
	link "$@"
	in_ns "$3" ethtool -K eth0 tx off gro on >/dev/null
}
machine cl 1.0 client
SOURCES4=() SOURCES6=()
for i in 3 4 5 6 7; do
	ip -n client addr add 10.1.0.$i/24 dev eth0
	ip -n client addr add fd01:0::$i/64 dev eth0 nodad
	SOURCES4+=("10.1.0.$i")
	SOURCES6+=("fd01::$i")
done
for n in 1 2 3; do
	machine s$n 2.$n b$n
	ip -n b$n addr add 10.0.0.100/32 dev lo
	ip -n b$n addr add fd00::100/128 dev lo nodad
	bg "$T/serve.$n" ip netns exec b$n "$PYTHON" -u "$SRC/quic.py" serve b$n 10$n 443 \
		10.2.$n.2 fd02:$n::2 10.0.0.100 fd00::100
	wait_for "grep -q serving '$T/serve.$n'"
done

backends() { # [IDS]
	local n list=
	for n in 1 2 3; do
		list+="{address: 10.2.$n.2${1:+, quic-id: 10$n}}, {address: 'fd02:$n::2'${1:+, quic-id: 10$n}}, "
	done
	echo "[$list]"
}
# list MODE BACKENDS
list() {
	cat >"$T/list.yaml" <<-END
		balancers: {web: {mode: $1, backends: $2}}
		rules: [{name: web, dst: "10.0.0.100,fd00::100", proto: udp, dport: 443, action: balance web}]
	END
	ax xdp apply cl --rules "$T/list.yaml" --fix >"$T/apply.out" 2>&1 || diag "$(cat "$T/apply.out")"
}
reason() {
	ax xdp stats cl -o json | jq --arg r "$1" '.reasons[$r] // 0'
}
# moved: a line for each of 24 connections over IPv4 and as many over IPv6
moved() {
	in_ns client "$PYTHON" "$SRC/quic.py" clients 10.0.0.100 443 24 4 "${SOURCES4[@]}"
	in_ns client "$PYTHON" "$SRC/quic.py" clients fd00::100 443 24 4 "${SOURCES6[@]}"
}
# who_stays: of lines on stdin, those connections that were always answered by who began them
stay() {
	awk 'NF == 5 && $1 ~ /^b[123]$/ { for (i = 2; i <= NF; i++) if ($i != $1) next; n++ } END { print n + 0 }'
}

ok "load a list" ax xdp load cl
for n in 1 2 3; do ok "and one where backend $n answers" ax xdp load s$n; done
list nat "$(backends)"
wait_for '(for n in 1 2 3; do ip neigh show 10.2.$n.2 | grep -q lladdr || exit 1; done)'
moved >"$T/without"
like "without ids connections that move get lost" "$(stay <"$T/without")" '^([0-9]|1[0-9])$'
like "at servers that do not know them" "$(cat "$T/without")" reset

for mode in nat ipip gue; do
	decaps=()
	if [ $mode != nat ]; then
		for n in 1 2 3; do
			: >"$T/decap.$n"
			bg "$T/decap.$n" ip netns exec b$n "$PYTHON" -u "$SRC/balance.py" decap $mode
			decaps+=("$BG")
			wait_for "grep -q listening '$T/decap.$n'"
			in_ns b$n sysctl -qw net.ipv4.conf.decap.rp_filter=0
		done
	fi
	list $mode "$(backends ids)"
	before=$(reason quic-id)
	moved >"$T/with"
	is "$mode: with ids all of them stay" "$(stay <"$T/with")" 48
	[ "$(stay <"$T/with")" = 48 ] || diag "$(cat "$T/with")"
	is "$mode: at all backends" "$(cut -d ' ' -f 1 "$T/with" | sort -u | xargs)" "b1 b2 b3"
	like "$mode: stats count the flows that were brought there" "$(($(reason quic-id) - before))" '^[1-9][0-9]+$'
	for pid in "${decaps[@]}"; do end "$pid"; done
done
like "stats say so as a table" "$(ax xdp stats cl)" 'quic-id +[1-9]'
is "no id was unknown" "$(reason quic-unknown)" 0
like "status says that they are looked at" "$(ax xdp status cl)" 'web: gue, by QUIC connection ids, 6 backends'
is "and has them as JSON" "$(ax xdp status cl -o json | jq -c '[.[0].balancers[0].backends[].quic_id]')" '[101,101,102,102,103,103]'

packet="udp 10.1.0.9:7 > 10.0.0.100:443 data hex:4000"
for n in 1 2 3; do
	got=$(ax xdp explain cl --packet "$packet$(printf '%04x' 10$n)0102030405")
	like "explain names the id" "$got" "its QUIC connection id says which backend"
	like "and leads to its backend" "$got" "10\.2\.$n\.2"
done
got=$(ax xdp explain cl --packet "${packet}ffff0102030405")
like "or says that it is nobody's" "$got" "its QUIC connection id says no backend that is there"
is "which is a reason in JSON" "$(ax xdp explain cl --packet "${packet}ffff0102030405" -o json | jq -r .reason)" quic-unknown
unlike "and nothing of it for what begins a connection" \
	"$(ax xdp explain cl --packet "udp 10.1.0.9:7 > 10.0.0.100:443 data hex:c000000001080000650102030405")" QUIC

# the list as a file, and wrong ones
like "the list as a file has the ids" "$(ax xdp rule list cl -o yaml)" 'address: "10.2.1.2", quic-id: 101'
ax xdp rule list cl -o yaml >"$T/again.yaml"
ok "and is a file" ax xdp apply cl --rules "$T/again.yaml" --fix
is "of the same" "$(ax xdp rule list cl -o yaml)" "$(cat "$T/again.yaml")"
cat >"$T/twice.yaml" <<-END
	balancers:
	  web:
	    backends:
	      - {address: 10.2.1.2, quic-id: 7}
	      - {address: 10.2.2.2, quic-id: 7}
END
fails "an id is of one backend" ax xdp apply cl --rules "$T/twice.yaml"
like "which is said" "$(ax xdp apply cl --rules "$T/twice.yaml" 2>&1)" "twice.yaml:5:.*quic-id that another backend has"

# shellcheck disable=SC2086 # $SYSCTLS: a list
sysctl -qw ${SYSCTLS// = /=}
for n in cl s1 s2 s3; do ok "unload $n" ax xdp unload $n; done
for n in client b1 b2 b3; do ip netns del $n; done
for n in cl s1 s2 s3; do ip link del $n; done 2>/dev/null
done_testing
