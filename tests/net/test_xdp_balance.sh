#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# The balancer with real programs: NAT and tunnels, TCP and UDP, while backends are drained, lost
# and added; fragments, and ICMP errors of a router on the way.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/links.sh"
need ip ethtool jq curl iperf3 nginx wrk nstat "$PYTHON"
[ -c /dev/net/tun ] || skip_all "missing kernel feature tun"

# client 10.1.9.2 --- router --- cl [this host] s1, s2, s3 --- b1, b2, b3: 10.2.N.2
# The service 10.0.0.100, fd00::100 is nobody's address.
for n in client router b1 b2 b3; do
	ip netns add $n
	ip -n $n link set lo up
done
SYSCTLS=$(sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.conf.all.rp_filter)
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
	net.ipv4.conf.default.rp_filter=0 net.ipv6.conf.default.accept_dad=0
in_ns() { # NAMESPACE COMMAND...
	timeout --foreground -k 1 40 ip netns exec "$@"
}
for n in client router b1 b2 b3; do
	in_ns $n sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
		net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
		net.ipv6.conf.default.accept_dad=0
done
link cl 1.0 router
for n in 1 2 3; do link s$n 2.$n b$n; done
ip -n router link add inner type veth peer name eth0 netns client
for a in 10.1.9.1/24 fd01:9::1/64; do ip -n router addr add $a dev inner; done
for a in 10.1.9.2/24 fd01:9::2/64; do ip -n client addr add $a dev eth0; done
ip -n router link set inner up
ip -n client link set eth0 up
ip -n client route add default via 10.1.9.1
ip -n client -6 route add default via fd01:9::1
ip route add 10.1.9.0/24 via 10.1.0.2
ip -6 route add fd01:9::/64 via fd01:0::2

# --- servers ---
for n in 1 2 3; do
	d=$T/nginx.$n
	mkdir -p "$d"
	chmod 777 "$d"
	head -c 300000 /dev/urandom >"$d/file"
	chmod 644 "$d/file"
	cat >"$d/conf" <<-END
		pid $d/pid;
		error_log $d/error.log;
		worker_processes 1;
		daemon off;
		events { worker_connections 1024; }
		http {
			access_log off;
			keepalive_timeout 600;
			keepalive_requests 1000000;
			client_body_temp_path $d/body;
			proxy_temp_path $d/proxy;
			fastcgi_temp_path $d/fastcgi;
			uwsgi_temp_path $d/uwsgi;
			scgi_temp_path $d/scgi;
			server {
				listen 80 backlog=1024;
				listen 8080 backlog=1024;
				listen [::]:80 backlog=1024;
				listen [::]:8080 backlog=1024;
				location / { return 200 "b$n \$remote_addr\n"; }
				location /file { root $d; }
			}
		}
	END
	bg "$T/nginx.$n.log" ip netns exec b$n nginx -p "$d" -c "$d/conf" -e "$d/error.log"
	bg "$T/echo.$n.log" ip netns exec b$n "$PYTHON" "$SRC/balance.py" echo 7000
done
bg "$T/iperf.log" ip netns exec b1 iperf3 -s
wait_for '(for n in 1 2 3; do
	ip netns exec b$n ss -Hltn "sport = :8080" | grep -q . &&
	ip netns exec b$n ss -Hlun "sport = :7000" | grep -q . || exit 1
done) && ip netns exec b1 ss -Hltn "sport = :5201" | grep -q .'

# --- lists ---
backends() { # PORT FAMILY N[:drain]...
	local port=$1 family=$2 b at list=''
	shift 2
	for b; do
		at=10.2.${b%:*}.2
		[ "$family" = 4 ] || at=fd02:${b%:*}::2
		list+="{address: '$at'${port:+, port: $port}"
		[ "$b" = "${b%:drain}" ] || list+=", drain: true"
		list+="}, "
	done
	echo "$list"
}
both() {
	echo "[$(backends "$1" 4 "${@:2}") $(backends "$1" 6 "${@:2}")]"
}
# list N...: those backends, NAT
list() {
	cat <<-END
		balancers:
		  web: {mode: nat, backends: $(both 8080 "$@")}
		  echo: {mode: nat, backends: $(both 7000 "$@")}
		  perf: {mode: nat, backends: $(both '' 1)}
		rules:
		  - {name: web, dst: "10.0.0.100,fd00::100", proto: tcp, dport: 80, action: balance web}
		  - {name: echo, dst: "10.0.0.100,fd00::100", proto: udp, dport: 7, action: balance echo}
		  - {name: perf, dst: "10.0.0.100,fd00::100", proto: "tcp,udp", dport: 5201, action: balance perf}
	END
}
apply() { # the list on stdin, on the client's side
	cat >"$T/list.yaml"
	ax xdp apply cl --rules "$T/list.yaml" --fix
}
stat_of() { # BALANCER KEY: of all backends
	ax xdp stats cl -o json |
		jq --arg b "$1" --arg k "$2" '[.backends[] | select(.balancer == $b)[$k]] | add // 0'
}
reason() {
	ax xdp stats cl -o json | jq --arg r "$1" '.reasons[$r] // 0'
}
checksum_errors() { # NAMESPACE...
	local n
	for n; do
		in_ns "$n" nstat -asz
	done | awk '/InCsumErrors/ { n += $2 } END { print n + 0 }'
}
who_answers() { # URL N: the backends in order, each once
	local i
	for ((i = 0; i < $2; i++)); do
		in_ns client curl -gsS --max-time 10 "$1" && continue
		echo "nobody"
		break
	done | awk '{ print $1 }' | sort -u | xargs
}

# answers come in by lists of any kind, also by one without a balancer that was there before
echo 'rules: []' >"$T/plain.yaml"
ok "a list where backend 3 answers" ax xdp load s3 --rules "$T/plain.yaml"
in_ns b3 ethtool -K eth0 tx off gro on >/dev/null
list 1 2 3 >"$T/list.yaml"
ok "load the list on the clients' side" ax xdp load cl --rules "$T/list.yaml" --fix
sed '/^rules:/,$d' "$T/list.yaml" >"$T/answers.yaml"
ok "the same balancers, no rules, where backend 1 answers" ax xdp load s1 --rules "$T/answers.yaml" --fix
ok "and a list without any where backend 2 does" ax xdp load s2 --rules "$T/plain.yaml" --fix
like "--fix has them send whole checksums" "$(in_ns b2 ethtool -k eth0 | grep ^tx-checksumming)" \
	"tx-checksumming: off"
like "and the router" "$(in_ns router ethtool -k eth0 | grep ^tx-checksumming)" "tx-checksumming: off"
# the router hands on what the client's stack left unfinished
in_ns client ethtool -K eth0 tx off >/dev/null
# neighbours are asked for when a backend is first written into a list
wait_for '(for n in 1 2 3; do ip neigh show 10.2.$n.2 | grep -q lladdr || exit 1; done)'

# --- NAT ---
is "all backends answer over IPv4" "$(who_answers http://10.0.0.100/ 30)" "b1 b2 b3"
is "and over IPv6" "$(who_answers 'http://[fd00::100]/' 30)" "b1 b2 b3"
like "to this host's address" "$(in_ns client curl -s http://10.0.0.100/)" '^b([123]) 10\.2\.[123]\.1$'
for url in http://10.0.0.100 'http://[fd00::100]'; do
	in_ns client curl -gsS --max-time 20 -o "$T/got" "$url/file"
	ok "a file arrives whole from $url" test "$(cat "$T"/nginx.?/file | wc -c)" = \
		"$(($(wc -c <"$T/got") * 3))"
done
like "the backends' packets are counted" "$(stat_of web packets)" '^[1-9][0-9]{2,}$'
is "and their flows" "$(stat_of web flows)" 63
is "datagrams come back" "$(in_ns client "$PYTHON" "$SRC/balance.py" ask 10.0.0.100 7 500 20)" 20
is "over IPv6 too" "$(in_ns client "$PYTHON" "$SRC/balance.py" ask fd00::100 7 500 20)" 20
for to in 10.0.0.100 fd00::100; do
	in_ns client iperf3 -J -t 1 -c $to >"$T/tcp.json"
	like "iperf3 over TCP to $to" "$(jq '.end.sum_received.bytes' "$T/tcp.json")" '^[1-9][0-9]{5,}'
	in_ns client iperf3 -J -R -t 1 -c $to >"$T/tcp.json"
	like "and from there" "$(jq '.end.sum_received.bytes' "$T/tcp.json")" '^[1-9][0-9]{5,}'
	# so slow that a receiver's buffer holds a fifth of a second
	in_ns client iperf3 -J -u -b 4M -l 1200 -t 1 -c $to >"$T/udp.json"
	is "iperf3 over UDP to $to loses nothing" "$(jq '.end.sum.lost_packets' "$T/udp.json")" 0
done
is "fragments arrive, and those of the answers" \
	"$(in_ns client "$PYTHON" "$SRC/balance.py" ask 10.0.0.100 7 4000 20)" 20
is "over IPv6 too" "$(in_ns client "$PYTHON" "$SRC/balance.py" ask fd00::100 7 4000 20)" 20
is "no checksum was wrong" "$(checksum_errors client b1 b2 b3)" 0

# a closed port: the backend's own ICMP error reaches the client as the service's
list 1 2 3 | sed 's/port: 7000/port: 7001/g' | apply >/dev/null
like "a closed port is refused, not silent" \
	"$(in_ns client "$PYTHON" "$SRC/balance.py" ask 10.0.0.100 7 100 1 2>&1)" refused
like "over IPv6 too" \
	"$(in_ns client "$PYTHON" "$SRC/balance.py" ask fd00::100 7 100 1 2>&1)" refused
list 1 2 3 | apply >/dev/null

# --- ICMP errors of a router follow their flow ---
in_ns router ip route add 10.1.9.2/32 dev inner mtu 1200
in_ns router ip -6 route add fd01:9::2/128 dev inner mtu 1280
for url in http://10.0.0.100 'http://[fd00::100]'; do
	in_ns client curl -gsS --max-time 10 -o "$T/got" "$url/file"
	is "a file passes a narrow link from $url" "$(wc -c <"$T/got")" 300000
done
learned=$(for n in 1 2 3; do in_ns b$n ip route get 10.2.$n.1; in_ns b$n ip -6 route get fd02:$n::1; done)
like "a backend was told" "$learned" "mtu 1200"
like "over IPv6 too" "$learned" "mtu 1280"
in_ns router ip route del 10.1.9.2/32
in_ns router ip -6 route del fd01:9::2/128

# --- flows stay ---
rounds() { # FAMILY: the connections' directory is $KEEP
	KEEP=$T/keep.$1
	mkdir "$KEEP"
	bg "$T/keep.log" ip netns exec client "$PYTHON" "$SRC/balance.py" keep \
		"$([ "$1" = 4 ] && echo 10.0.0.100 || echo fd00::100)" 80 30 "$KEEP"
}
round() { # N, from 1 on: one line for each connection
	local result=$KEEP/round.$1
	touch "$KEEP/go.$1"
	wait_for -t 100 "[ -e '$result' ]"
	cat "$result"
}
for family in 4 6; do
	list 1 2 3 | apply >/dev/null
	rounds $family
	first=$(round 1)
	is "30 connections over IPv$family are on all backends" "$(sort -u <<<"$first" | xargs)" "b1 b2 b3"
	list 1 3 | sed "s/^  web:.*/  web: {mode: nat, backends: $(both 8080 1 2:drain 3)}/" | apply >/dev/null
	is "draining moves none of them" "$(round 2)" "$first"
	like "stats show that it drains" "$(ax xdp stats cl | grep ' 10.2.2.2:8080 ')" "^web +10.2.2.2:8080 +drain "
	is "and with -f how much it still gets" "$(ax xdp stats cl -f -i 200ms -o json | sed -n '2{p;q}' |
		jq -r '[.backends[] | select(.state == "drain").packets_per_second | type] | join(" ")')" "number number"
	like "as a table, too" "$(ax xdp stats cl -f -i 200ms 2>/dev/null | grep -m 2 '^BALANCER' | tail -n 1)" "PACKETS/S$"
	like "and status, how many" "$(ax xdp status cl)" "web: nat, 6 backends, 4 of them take new flows, 2 drain"
	is "and keeps new ones away" "$(who_answers http://10.0.0.100/ 20)" "b1 b3"
	list 1 2 3 | apply >/dev/null
	is "coming back moves none" "$(round 3)" "$first"
	ip link set s2 down
	list 1 3 | apply >/dev/null
	lost=$(round 4)
	is "when one is lost, all of the others' connections go on" \
		"$(paste -d ' ' <(echo "$first") <(echo "$lost") | awk '$1 != "b2" && $1 != $2' | wc -l)" 0
	is "and its own fail" \
		"$(paste -d ' ' <(echo "$first") <(echo "$lost") | awk '$1 == "b2" && $2 ~ /^b/' | wc -l)" 0
	is "new ones go to the others" "$(who_answers http://10.0.0.100/ 20)" "b1 b3"
	ip link set s2 up
	wait_for 'ip -o link show s2 | grep -q "state UP"'
	ip -n b2 addr replace fd02:2::2/64 dev eth0 nodad
	ip addr replace fd02:2::1/64 dev s2 nodad
	ip -n b2 -6 route replace default via fd02:2::1
	ip -n b2 route replace default via 10.2.2.1
	end "$BG"
done

# under load: only requests that were on their way to the lost backend fail
list 1 2 3 | apply >/dev/null
wait_for 'ip neigh show 10.2.2.2 | grep -q lladdr'
bg "$T/wrk" ip netns exec client wrk -t 1 -c 24 -d 5 --timeout 10s http://10.0.0.100/
wrk=$BG
sleep 1.5
before=$(stat_of web packets)
ip link set s2 down
list 1 3 | apply >/dev/null
sleep 1
after=$(stat_of web packets)
wait "$wrk"
diag "$(cat "$T/wrk")"
like "wrk goes on while a backend is lost" "$((after - before))" '^[0-9]{3,}$'
errors=$(awk '/Socket errors/ { gsub(",", ""); print $4 + $6 + $8 + $10 }' "$T/wrk")
ok "at most the lost backend's connections failed" test "${errors:-0}" -le 16
unlike "and no request got a wrong answer" "$(cat "$T/wrk")" "Non-2xx"
ip link set s2 up
wait_for 'ip -o link show s2 | grep -q "state UP"'
ip -n b2 addr replace fd02:2::2/64 dev eth0 nodad
ip addr replace fd02:2::1/64 dev s2 nodad
ip -n b2 -6 route replace default via fd02:2::1
ip -n b2 route replace default via 10.2.2.1

# --- tunnels: the backends have the service's address, and answer clients themselves ---
for n in 1 2 3; do
	ip -n b$n addr add 10.0.0.100/32 dev lo
	ip -n b$n addr add fd00::100/128 dev lo nodad
	ok "no balancer is needed where backend $n answers" ax xdp unload s$n
	# the kernel's routing takes the answers now, and this host's own stack completes nothing
	in_ns b$n ethtool -K eth0 gro on >/dev/null
done
for mode in ipip gue; do
	decaps=()
	for n in 1 2 3; do
		: >"$T/decap.$n"
		bg "$T/decap.$n" ip netns exec b$n "$PYTHON" -u "$SRC/balance.py" decap $mode
		decaps+=("$BG")
	done
	wait_for 'grep -q listening "$T/decap.1" && grep -q listening "$T/decap.2" &&
		grep -q listening "$T/decap.3"'
	for n in 1 2 3; do
		in_ns b$n sysctl -qw net.ipv4.conf.decap.rp_filter=0
	done
	cat <<-END | apply >"$T/out" 2>&1
		balancers: {web: {mode: $mode, backends: $(both '' 1 2 3)}}
		rules:
		  - {name: web, dst: "10.0.0.100,fd00::100", action: balance web}
	END
	is "$mode: all backends answer" "$(who_answers http://10.0.0.100/ 30)" "b1 b2 b3"
	is "$mode: over IPv6" "$(who_answers 'http://[fd00::100]/' 30)" "b1 b2 b3"
	like "$mode: they see the client's address" "$(in_ns client curl -s http://10.0.0.100/)" '^b[123] 10\.1\.9\.2$'
	is "$mode: and answer its ping" "$(in_ns client "$PYTHON" "$SRC/balance.py" ping 10.0.0.100)" 3
	ok "$mode: a big request arrives" \
		in_ns client curl -gsS --max-time 10 --data-binary @"$T/nginx.1/file" http://10.0.0.100/
	like "$mode: what is too big for the tunnel is said to be" "$(reason too-big)" '^[1-9]'
	like "$mode: and the client learns" "$(in_ns client ip route get 10.0.0.100)" \
		"mtu 14$([ $mode = ipip ] && echo 80 || echo 72)"
	in_ns client ip route flush cache
	in_ns client curl -gsS --max-time 10 -o "$T/got" http://10.0.0.100/file
	is "$mode: a file arrives" "$(wc -c <"$T/got")" 300000
	in_ns router ip route add 10.1.9.2/32 dev inner mtu 1200
	in_ns client curl -gsS --max-time 10 -o "$T/got" http://10.0.0.100/file
	is "$mode: over a narrow link too, the router's ICMP error follows its flow" \
		"$(wc -c <"$T/got")" 300000
	in_ns router ip route del 10.1.9.2/32
	for n in 1 2 3; do in_ns b$n ip route flush cache; done
	for pid in "${decaps[@]}"; do end "$pid"; done
done
is "no checksum was wrong" "$(checksum_errors client b1 b2 b3)" 0

# shellcheck disable=SC2086 # $SYSCTLS: a list
sysctl -qw ${SYSCTLS// = /=}
ok "unload" ax xdp unload cl
unlike "nothing is attached any more" "$(ip link show cl)" xdp
for n in client router b1 b2 b3; do ip netns del $n; done
for n in cl s1 s2 s3; do ip link del $n; done 2>/dev/null
done_testing
