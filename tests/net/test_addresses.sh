#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What both ends of a TCP connection see: accept(), getpeername(), getsockname(), for IPv4, IPv6 and
# v4-mapped sockets, direct and by service; implicit and explicit binds.
. "$(dirname "$0")/lib.sh"
build_c tcp udp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  svc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:7000"]
    backends: [server]
EOF
S4=10.77.1.1 S6=fd77::1:1 C4=10.77.1.9 C6=fd77::1:9

# without_ports KEY KEY: of the addresses that follow KEY=
without_ports() {
	sed "s/\($1=\|$2=\)\([^ ]*\):[0-9]*/\1\2/g"
}
# sees CLIENT-MODE WHAT FAMILY TO PORT PEER CLIENT SERVER-SEES SERVER [tcp connect's options]
# PEER: the client's getpeername(); CLIENT: its getsockname(); SERVER-SEES: accept() and
# getpeername() of the server; SERVER: its getsockname()
sees() {
	local mode=$1 what=$2 family=$3 to=$4 port=$5 peer=$6 client=$7 seen=$8 server=$9 out line
	shift 9
	out=$(in_app --net "$mode" --ip $C4,$C6 -- "$BIN/tcp" connect "$family" "$to" "$port" "$@" 2>&1)
	is "$what" "$(without_ports local you <<<"$out")" \
		"peer=$peer local=$client server you=$seen me=$server"
	line=$(tail -n 1 "$LOG" | without_ports accept getpeer)
	is "$what: accept() and getpeername() of the server" "$line" \
		"accept=$seen getpeer=$seen local=$server"
}

for server in private host; do
	serve 7000 --net $server --ip $S4,$S6 --name server -- "$BIN/tcp" listen 6 :: 7000
	pid=$APP LOG=$OUT
	for mode in private host; do
		w="dual-stack server in $server mode, client in $mode mode"
		M4="[::ffff:$C4]" MS="[::ffff:$S4]:7000"
		sees $mode "$w, IPv4" 4 $S4 7000 $S4:7000 $C4 "$M4" "$MS"
		sees $mode "$w, IPv6" 6 $S6 7000 "[$S6]:7000" "[$C6]" "[$C6]" "[$S6]:7000"
		sees $mode "$w, v4-mapped" 6 $S4 7000 "[::ffff:$S4]:7000" "[::ffff:$C4]" "$M4" "$MS"
		sees $mode "$w, service, IPv4" 4 10.77.200.1 80 10.77.200.1:80 $C4 "$M4" "$MS"
		sees $mode "$w, service, IPv6" 6 fd77::200:1 80 "[fd77::200:1]:80" "[$C6]" "[$C6]" \
			"[$S6]:7000"
		sees $mode "$w, service, v4-mapped" 6 10.77.200.1 80 "[::ffff:10.77.200.1]:80" \
			"[::ffff:$C4]" "$M4" "$MS"
		sees $mode "$w, service, IPv4, without blocking" 4 10.77.200.1 80 10.77.200.1:80 $C4 \
			"$M4" "$MS" -n
		sees $mode "$w, service, bound to its own address" 4 10.77.200.1 80 10.77.200.1:80 $C4 \
			"$M4" "$MS" -b $C4 0
		sees $mode "$w, service, bound to the wildcard" 4 10.77.200.1 80 10.77.200.1:80 $C4 \
			"$M4" "$MS" -b 0.0.0.0 0
		sees $mode "$w, IPv6, bound to the wildcard" 6only $S6 7000 "[$S6]:7000" "[$C6]" "[$C6]" \
			"[$S6]:7000" -b :: 0
	done
	stop_app $pid

	for family in 4 6only; do
		if [ $family = 4 ]; then
			any=0.0.0.0 shown=0.0.0.0 to=$S4 at=$S4 svc=10.77.200.1 client=$C4 peer=10.77.200.1:80
		else
			any=:: shown="[::]" to=$S6 at="[$S6]" svc=fd77::200:1 client="[$C6]" peer="[fd77::200:1]:80"
		fi
		serve 7000 --net $server --ip $S4,$S6 --name server -- "$BIN/tcp" listen $family $any 7000
		pid=$APP LOG=$OUT
		is "family $family, $server mode: getsockname() says what was asked for" \
			"$(head -n 1 "$OUT")" "listening at $shown:7000"
		for mode in private host; do
			sees $mode "server of family $family in $server mode, client in $mode mode" \
				$family $svc 80 "$peer" "$client" "$client" "$at:7000"
		done
		stop_app $pid
	done
	serve 7000 --net $server --ip $S4,$S6 --name server -- "$BIN/tcp" listen 4 $S4 7000
	pid=$APP LOG=$OUT
	sees private "server in $server mode bound to its own address" 4 $S4 7000 $S4:7000 $C4 $C4 \
		$S4:7000
	stop_app $pid
done

# two servers of one host listen on the wildcard, the same port
serve 7000 --net host --ip $S4,$S6 --name one -- "$BIN/tcp" listen 6 :: 7000 one
serve 7000 --net host --ip 10.77.1.2,fd77::1:2 --name two -- "$BIN/tcp" listen 6 :: 7000 two
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for to in "4 $S4" "6 $S6"; do
	like "two wildcard servers: the first by $to" \
		"$(in_app --net host -- "$BIN/tcp" connect $to 7000)" " one you="
done
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for to in "4 10.77.1.2" "6 fd77::1:2"; do
	like "two wildcard servers: the second by $to" \
		"$(in_app --net host -- "$BIN/tcp" connect $to 7000)" " two you="
done
stop_apps

# binds
for mode in private host; do
	run_app --net $mode --ip $S4,$S6 --name victim -- sleep 60
	launched victim
	is "$mode: bind to another app's IPv4 address" \
		"$(in_app --net $mode --ip $C4,$C6 -- "$BIN/tcp" bind 4 $S4 7000 2>&1)" \
		"error bind EADDRNOTAVAIL"
	is "$mode: bind to another app's IPv6 address" \
		"$(in_app --net $mode --ip $C4,$C6 -- "$BIN/tcp" bind 6 $S6 7000 2>&1)" \
		"error bind EADDRNOTAVAIL"
	is "$mode: bind to another app's address, v4-mapped" \
		"$(in_app --net $mode --ip $C4,$C6 -- "$BIN/tcp" bind 6 $S4 7000 2>&1)" \
		"error bind EADDRNOTAVAIL"
	is "$mode: bind to a service's address that it does not serve" \
		"$(in_app --net $mode --ip $C4,$C6 -- "$BIN/tcp" bind 4 10.77.200.1 80 2>&1)" \
		"error bind EADDRNOTAVAIL"
	is "$mode: bind UDP to another app's address" \
		"$(in_app --net $mode --ip $C4,$C6 -- timeout 20 "$BIN/udp" serve 4 $S4 7000 2>&1)" \
		"error bind EADDRNOTAVAIL"
	is "$mode: bind to its own address" \
		"$(in_app --net $mode --ip $C4,$C6 -- "$BIN/tcp" bind 4 $C4 7000 2>&1)" "bound $C4:7000"
	is "$mode: bind to its own IPv6 address" \
		"$(in_app --net $mode --ip $C4,$C6 -- "$BIN/tcp" bind 6 $C6 7000 2>&1)" "bound [$C6]:7000"
	like "$mode: bind to loopback" \
		"$(in_app --net $mode --ip $C4,$C6 -- "$BIN/tcp" bind 4 127.0.0.1 7000 2>&1)" \
		"^bound 127.0.0.1:7000"
	stop_apps
done
# it listens when it says so
LISTENS="until grep -q listening $T/itself; do sleep 0.05; done"
is "an app talks to itself by its own address" \
	"$(in_app --ip $C4 -- sh -c "$BIN/tcp listen 4 0.0.0.0 7000 >$T/itself & p=\$!; $LISTENS
		$BIN/tcp connect 4 $C4 7000 | sed 's/ .*//'; kill \$p")" "peer=$C4:7000"
is "an app talks to itself by loopback" \
	"$(: >"$T/itself"; in_app --ip $C4 -- sh -c "$BIN/tcp listen 4 127.0.0.1 7000 >$T/itself & p=\$!; $LISTENS
		$BIN/tcp connect 4 127.0.0.1 7000 | sed 's/ .*//'; kill \$p")" "peer=127.0.0.1:7000"
is "an app in host mode talks to itself by its own address" \
	"$(: >"$T/itself"; in_app --net host --ip $C4 -- sh -c "$BIN/tcp listen 4 0.0.0.0 7000 >$T/itself & p=\$!
		$LISTENS; $BIN/tcp connect 4 $C4 7000 | sed 's/ .*//'; kill \$p")" "peer=$C4:7000"
done_testing
