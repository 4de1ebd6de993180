#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Exposed ports asked for by apps of the same machine: in the host's network they stand there like the
# host's own programs, and are still judged as the apps that they are, and seen so.
. "$(dirname "$0")/lib.sh"
need ip jq
build_c tcp udp

HOST4=198.51.100.1 HOST6=2001:db8:1::1
ip addr add $HOST4/32 dev lo
ip addr add $HOST6/128 dev lo nodad
agent_start - <<EOC
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  front: {ip: "10.77.200.1,fd77::200:1", ports: [{port: 80, target: 7000}], backends: [{app: db}], expose: ["9200:80"]}
policy:
  rules:
    - deny: {name: keep, from: {role: guest}, to: {role: vault}}
EOC

# client ROLE EGRESS FAMILY ADDRESS PORT: what an app in the host's network is told there
client() {
	in_app --net host --ip 10.77.1.9,fd77::1:9 --name client --labels "team=one,role=$1" "--egress=$2" -- \
		"$BIN/tcp" connect "$3" "$4" "$5" 2>&1
}
# asks ROLE METHOD FAMILY ADDRESS PORT: the same by UDP
asks() {
	in_app --net host --ip 10.77.1.9,fd77::1:9 --name client --labels "team=one,role=$1" --egress=all -- \
		"$BIN/udp" ask "$2" "$3" "$4" "$5" 2>&1
}


for mode in private host; do
	serve 7000 --net $mode --ip 10.77.1.1,fd77::1:1 --name db --labels team=one,role=vault -p 9100:7000 -- "$BIN/tcp" listen 6 :: 7000 hello
	TCP_APP=$APP
	for to in "4 127.0.0.1" "6 ::1" "4 $HOST4" "6 $HOST6"; do
		# shellcheck disable=SC2086 # fields
		set -- $to
		you='10\.77\.1\.9'
		[ "$1" = 4 ] || you='fd77::1:9'
		for port in 9100 9200; do
			like "$mode, $2 port $port: an app that may is seen as itself" "$(client friend all "$1" "$2" $port)" \
				"^peer=\[?$2\]?:$port .*you=\[?(::ffff:)?$you\]?:"
			like "$mode, $2 port $port: one that a rule keeps out is" "$(client guest all "$1" "$2" $port)" \
				"error connect (EACCES|ECONNREFUSED|EPERM)"
		done
	done
	like "$mode: nor does it need a way out of ax" "$(client friend none 4 127.0.0.1 9100)" "you=.*10\.77\.1\.9\]?:"
	like "$mode: the rule holds without one, too" "$(client guest none 4 127.0.0.1 9100)" "error connect"
	like "$mode: a private app that a rule keeps out" "$(in_app --ip 10.77.1.9,fd77::1:9 --labels "team=one,role=guest" \
		--egress=all -- "$BIN/tcp" connect 4 $HOST4 9100 2>&1)" "error connect ECONNREFUSED"
	like "$mode: the host's programs are let in as ever" "$("$BIN/tcp" connect 4 127.0.0.1 9100 2>&1)" "^peer="
	like "$mode: the app itself" "$(ax exec db -- "$BIN/tcp" connect 4 10.77.1.1 7000 2>&1)" "^peer="
	stop_app "$TCP_APP"

	serve 7000/udp --net $mode --ip 10.77.1.1,fd77::1:1 --name db --labels team=one,role=vault -p 9100:7000/udp -- "$BIN/udp" serve 6 :: 7000 answer
	for way in connected sendto sendmsg; do
		for to in "4 127.0.0.1" "6 ::1" "4 $HOST4" "6 $HOST6"; do
			# shellcheck disable=SC2086 # fields
			set -- $to
			like "$mode, UDP, $2: an app that may, $way" "$(asks friend $way "$1" "$2" 9100)" " answer you="
			unlike "$mode, UDP, $2: one that a rule keeps out, $way" "$(asks guest $way "$1" "$2" 9100)" " answer you="
		done
	done
	stop_apps
done

# --- a server of its own ---

serve 7000 --ip 10.77.1.1 --name db --labels team=one,role=vault -p 9100:7000 -- "$BIN/tcp" listen 4 0.0.0.0 7000 db
OUT=$(in_app --net host --labels team=one,role=guest -- sh -c "'$BIN/tcp' listen 4 0.0.0.0 9100 mine & sleep 0.3
	'$BIN/tcp' connect 4 127.0.0.1 9100; kill \$!" 2>&1)
like "a port of the host that is exposed is no app's" "$OUT" "error bind EADDRINUSE"
done_testing
