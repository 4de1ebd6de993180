#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Addresses are their owners': before they are given out (IP_FREEBIND takes no privilege), while they
# are used, and after the owner has gone and somebody holds on to its socket.
. "$(dirname "$0")/lib.sh"
need jq setpriv socat unshare
build_c squat udp tcp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  svc:
    ip: 10.99.0.1
    ports: ["80"]
    backends: [nobody]
apps:
  later: {ip: 10.99.0.2}
EOF

for mode in private host; do
	for proto in tcp udp; do
		# shellcheck disable=SC2086 # $what: a family and an address
		for what in "4 10.77.0.50" "6 10.77.0.50" "6 fd77::50" "4 10.99.0.1" "4 10.99.0.2"; do
			is "$mode app: nobody binds what is not given out yet, $proto $what" \
				"$(in_app --net $mode -- "$BIN/squat" bind $proto $what 7000)" \
				"error bind EADDRNOTAVAIL"
		done
	done
	is "$mode app: what is not ax's may be bound as ever" \
		"$(in_app --net $mode -- "$BIN/squat" bind tcp 4 192.0.2.1 7000)" bound
done

# in a namespace of its own making an app can have any address: nobody else's packet gets there
run_app --net host -- unshare -n "$BIN/squat" hold tcp 4 7000 10.77.1.1
wait_for "grep -q holds $OUT"
run_app --net host -- unshare -n "$BIN/squat" hold udp 6 7000 fd77::1:1
wait_for "grep -q holds $OUT"
run_app --net host --ip 10.77.1.1,fd77::1:1 --name victim -- sleep 100
launched victim
is "whoever listens in such a namespace is not taken for the address's owner" \
	"$(ax get servers -o json | jq -c '[.[] | .app]')" "[]"
stop_apps

# A program outside ax, of no privilege: it has bound the pool's next addresses.
outsider() { # OUTPUT COMMAND...
	local out=$1
	shift
	bg "$out" setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
tcp_client() { # ADDR PORT
	in_app --net host -- "$BIN/tcp" connect "$([[ $1 == *:* ]] && echo 6 || echo 4)" "$@" 2>&1
}
# shellcheck disable=SC2046 # $(seq): a list
outsider "$T/v4" "$BIN/squat" hold tcp 4 7000 $(seq -f 10.77.0.%g 2 250)
v4=$BG
# shellcheck disable=SC2046
outsider "$T/v6" "$BIN/squat" hold udp 6 7000 $(for i in $(seq 2 250); do printf 'fd77::%x ' "$i"; done)
v6=$BG
wait_for "grep -q holds $T/v4 && grep -q holds $T/v6"
serve 7000 --net host --name victim -- "$BIN/tcp" listen 4 0.0.0.0 7000 victim
read -r ip4 ip6 < <(ax get apps -o json | jq -r '.[] | select(.name == "victim") | "\(.ip4) \(.ip6)"')
unlike "the pool passes over addresses that a program outside ax has bound" "$ip4 " \
	"10\.77\.0\.([0-9]|[0-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|250) "
unlike "also over IPv6 ones" "$ip6 " "fd77::([0-9a-e]|[0-9a-e][0-9a-f]|f[0-9a]) "
like "clients get to the app" "$(tcp_client "$ip4" 7000)" " victim you="
serve 7000/udp --net host --name second -- "$BIN/udp" serve 6only :: 7000 second
ip6=$(ax get apps -o json | jq -r '.[] | select(.name == "second") | .ip6')
like "clients get to the app by IPv6" "$(in_app --net host -- "$BIN/udp" ask sendto 6 "$ip6" 7000 2>&1)" \
	" second you="
ok "and it is said" wait_for "grep -q 'has bound an address of the pool that' $T/$INST.log"
stop_apps
end "$v4"
end "$v6"
ended() { # each launch has the agent look again
	ax run --net host -- true
	grep -q 'has bound an address of the pool any more' "$T/$INST.log"
}
ok "and when it has ended" wait_for ended

# Where the machine has many TCP sockets the kernel needs long to tell who has bound an address
# without listening: launches do not wait for that, and yet it is found out.
bg "$T/crowd" "$BIN/squat" crowd 1500
crowd=$BG
silently=tcp- # before Linux 6.8 the kernel does not tell of sockets that have not begun to listen
[ "$(printf '6.8\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.8 ] || silently=tcp
# shellcheck disable=SC2046
outsider "$T/silent" "$BIN/squat" hold $silently 4 7000 $(seq -f 10.77.0.%g 2 250)
silent=$BG
wait_for "grep -q holds $T/crowd && grep -q holds $T/silent"
is "an app is launched among many sockets" "$(in_app --net host -- echo launched)" launched
ok "who has bound them is found out" wait_for "[ \$(grep -c 'has bound an address of the pool that' $T/$INST.log) = 2 ]"
for i in 1 2 3; do
	run_app --net host --name "next$i" -- sleep 100
	launched "next$i"
	ip4=$(ax get apps -o json | jq -r ".[] | select(.name == \"next$i\") | .ip4")
	unlike "addresses that are bound by somebody who does not listen are passed over then, $i" "$ip4 " \
		"10\.77\.0\.([0-9]|[0-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|250) "
done
stop_apps
end "$silent"
end "$crowd"

# An address that is asked for is had, whoever has bound it.
outsider "$T/asked" "$BIN/squat" hold tcp 4 7001 10.77.1.1
asked=$BG
outsider "$T/asked6" "$BIN/squat" hold tcp 6 7000 fd77::1:1
asked6=$BG
wait_for "grep -q holds $T/asked && grep -q holds $T/asked6"
serve 7000 --net host --ip 10.77.1.1,fd77::1:1 --name victim -- "$BIN/tcp" listen 6 :: 7000 victim
like "the log says who has bound it" "$(cat "$T/$INST.log")" \
	"a program outside ax, of user 65534, has bound 10.77.1.1, TCP port 7001"
like "clients get to the app's own socket" "$(tcp_client 10.77.1.1 7000)" " victim you="
like "its own socket gets what comes to its other address, where somebody else listens" \
	"$(tcp_client fd77::1:1 7000)" " victim you="
is "who listens on an app's address is not the app" "$(tcp_client 10.77.1.1 7001)" \
	"error connect ECONNREFUSED"
stop_apps
end "$asked"
end "$asked6"

# SO_REUSEADDR lets two UDP sockets of different users have one address and port
for port in 7000 45000; do
	serve $port/udp --net host --ip 10.77.1.1 --name victim -- socat \
		UDP4-RECVFROM:$port,reuseaddr,fork SYSTEM:'read -r line; echo "victim $line"'
	outsider "$T/udp.$port" "$BIN/squat" hold udp+ 4 $port 10.77.1.1
	wait_for "grep -q 'holds 1' $T/udp.$port"
	like "whoever binds a UDP server's address and port beside it gets no client of it, $port" \
		"$(in_app --net host -- "$BIN/udp" ask sendto 4 10.77.1.1 $port 2>&1)" "victim question"
	end "$BG"
	stop_apps
done

# A socket that outlives its app, in the hands of somebody else
for proto in tcp udp+; do
	run_app --net host --ip 10.77.1.1,fd77::1:1 --name leaver -- \
		env CGROUP_PROCS="$CGROUP2/cgroup.procs" "$BIN/squat" leave $proto 6 10.77.1.1 7000
	wait_for "grep -q left $OUT"
	left=$(sed -n 's/^left //p' "$OUT")
	wait_for "! alive $APP"
	run_app --net host --ip 10.77.1.1,fd77::1:1 --name heir -- sleep 100
	launched heir
	is "the server of an app that is gone is nobody's, $proto" \
		"$(ax get servers -o json | jq -c '[.[] | .app]')" "[]"
	for to in 10.77.1.1 fd77::1:1; do
		if [ $proto = tcp ]; then
			is "its next owner's clients do not get there, $to" "$(tcp_client $to 7000)" \
				"error connect ECONNREFUSED"
		else
			unlike "its next owner's clients do not get there by UDP, $to" \
				"$(in_app --net host -- timeout 2 "$BIN/udp" ask sendto 6 $to 7000 2>&1)" \
				squatter
		fi
	done
	stop_apps
	kill "$left"
done

# Before the first look the agent knows nothing of who has bound three quarters of a large pool: its
# first apps have addresses that are free all the same.
agent_stop
ulimit -n 4096
# shellcheck disable=SC2046
outsider "$T/most" "$BIN/squat" hold $silently 4 7000 $(for i in {17..28}; do seq -f "10.77.$i.%g" 0 255; done)
most=$BG
wait_for "grep -q holds $T/most"
for i in 1 2 3; do
	agent_start - <<-EOC
		agent:
		  pool: {ipv4: 10.77.16.0/20}
	EOC
	is "an agent's first app has an address that nobody has bound, $i" \
		"$(in_app --net host -- "$BIN/squat" bind tcp 4 0.0.0.0 7000)" bound
	agent_stop
done
end "$most"
done_testing
