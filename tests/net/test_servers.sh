#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Whom `ax get servers` and everything that asks who listens believe: an app's own addresses alone, a
# bound for each app, a loopback that is each app's own.
. "$(dirname "$0")/lib.sh"
need jq unshare
build_c squat udp tcp

agent_start
S4=10.77.1.1

counter() {
	ax status -o json | jq ".counters[\"$1\"]"
}
# servers JQ-FILTER: how many there are of them
servers() {
	ax get servers -o json | jq "[.[] | select($1)] | length"
}

# One socket, bound again and again: connect() to AF_UNSPEC gives back a port that the kernel chose,
# and a network namespace of one's own lets one choose from which.
WANDER="echo 1024 32000 >/proc/sys/net/ipv4/ip_local_port_range; exec $BIN/squat wander 20000"
run_app --ip $S4 --name wanders -- sh -c "$WANDER"
wait_for "grep -q bound $OUT"
is "a socket can be bound again and again" "$(cat "$OUT")" "bound 20001"
is "a socket that was bound 20,001 times is one server" "$(servers '.app == "wanders"')" 1
stop_app "$APP"
is "when it ends, none is left" "$(servers true)" 0
run_app --net host --ip $S4 --name wanders -- unshare -n sh -c "ip link set lo up; $WANDER"
wait_for "grep -q bound $OUT"
is "what an app binds in a namespace of its own making is no server of it" "$(servers true)" 0
stop_app "$APP"

# more than anybody needs
run_app --ip $S4 --name greedy -- "$BIN/squat" many 1024 8300
wait_for "grep -q bound $OUT"
is "an app may bind as many ports as it likes" "$(cat "$OUT")" "bound 8300"
is "an app has at most 8,192 servers" "$(servers '.app == "greedy"')" 8192
is "those that are left out are counted" "$(counter servers-refused)" 108
serve 7000/udp --net host --ip 10.77.1.2 --name modest -- "$BIN/udp" serve 4 0.0.0.0 7000 modest
like "another app's server is reached beside it" \
	"$(in_app --net host -- "$BIN/udp" ask sendto 4 10.77.1.2 7000 2>&1)" " modest you="
is "and listed" "$(servers '.app == "modest"')" 1
stop_apps
is "when they have ended, none is left" "$(servers true)" 0
serve 7000/udp --ip $S4 --name after -- "$BIN/squat" many 7000 100
is "the next app has all of its share" "$(servers '.app == "after"')" 100
stop_apps

# The agent has to look after UDP servers that share their port: whoever makes many makes it no work.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$AGENT/stat"
}
before=$(ticks)
run_app --net host --ip $S4 --name flood -- "$BIN/squat" flood 7000 100000
wait_for -t 30 "grep -q ticks $OUT"
flood=$(sed -n 's/^ticks //p' "$OUT") agent=$(($(ticks) - before))
ok "binding and closing without end costs the app, and not the agent ($flood and $agent ticks)" \
	[ $((4 * agent)) -lt "$flood" ]
stop_app "$APP"

# loopback
ask_self() { # NAME: a host-mode app that serves 8125 on its wildcard, and asks itself by loopback
	in_app --net host --ip 10.77.1.3 -- sh -c "
		$BIN/udp serve 4 0.0.0.0 8125 $1 >/dev/null & p=\$!
		until ss -Hlun | grep -q '10.77.1.3:8125'; do sleep 0.05; done
		$BIN/udp ask sendto 4 127.0.0.1 8125; kill \$p" 2>&1
}
serve 8125/udp --ip $S4 --name private -- "$BIN/udp" serve 4 127.0.0.1 8125 private
like "a private app's loopback server takes nothing of a host-mode app's loopback" \
	"$(ask_self mine)" " mine you="
serve 8125/udp --net host --ip 10.77.1.2 --name neighbour -- \
	"$BIN/udp" serve 4 127.0.0.1 8125 neighbour
like "nor does that of another app in host mode" "$(ask_self mine)" " mine you="
is "loopback servers are nobody else's business" "$(servers true)" 0
stop_apps
like "an app's own loopback server comes before its wildcard one" \
	"$(in_app --net host --ip 10.77.1.3 -- sh -c "
		$BIN/udp serve 4 0.0.0.0 8125 wildcard >/dev/null & p=\$!
		$BIN/udp serve 4 127.0.0.1 8125 loopback >/dev/null & q=\$!
		until [ \$(ss -Hlun | grep -c ':8125') = 2 ]; do sleep 0.05; done
		$BIN/udp ask sendto 4 127.0.0.1 8125; kill \$p \$q" 2>&1)" " loopback you="
done_testing
