#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# Two instances share a machine: names, addresses, devices and state of their own.
. "$(dirname "$0")/lib.sh"
need curl
build_c tcp

agent_start
FIRST=$INST FIRST_AGENT=$AGENT
SECOND=$(random_name)
INSTANCES+=("$SECOND")
INST=$SECOND
agent_start - <<EOF
agent:
  pool: {ipv4: 10.78.0.0/16, ipv6: "fd78::/64"}
  dns: {domain: second.internal}
EOF

for mode in private host; do
	INST=$FIRST
	serve 7000 --net $mode --name web --ip 10.77.1.1,fd77::1:1 -- "$BIN/tcp" listen 6 :: 7000 first
	a=$APP
	INST=$SECOND
	serve 7000 --net $mode --name web --ip 10.78.1.1,fd78::1:1 -- "$BIN/tcp" listen 6 :: 7000 second
	b=$APP
	for client in private host; do
		is "$mode, $client: the name in the first" \
			"$(ax_in "$FIRST" run --net $client -- getent ahosts web | awk '{ print $1 }' |
				sort -u | tr '\n' ' ')" "10.77.1.1 fd77::1:1 "
		is "$mode, $client: the name in the second" \
			"$(ax_in "$SECOND" run --net $client -- getent ahosts web.second.internal |
				awk '{ print $1 }' | sort -u | tr '\n' ' ')" "10.78.1.1 fd78::1:1 "
		like "$mode, $client: the server in the first" \
			"$(ax_in "$FIRST" run --net $client -- "$BIN/tcp" connect 6 fd77::1:1 7000)" " first you="
		like "$mode, $client: the server in the second" \
			"$(ax_in "$SECOND" run --net $client -- "$BIN/tcp" connect 4 10.78.1.1 7000)" " second you="
	done
	is "$mode: each lists its own app" \
		"$(for i in "$FIRST" "$SECOND"; do ax_in "$i" get apps -o json |
			jq -r '.[] | select(.name == "web") | .ip4'; done |
			tr '\n' ' ')" "10.77.1.1 10.78.1.1 "
	stop_app $a
	stop_app $b
done

INST=$FIRST
serve 7000 --name web --ip 10.77.1.1 -- "$BIN/tcp" listen 4 0.0.0.0 7000 first
a=$APP
INST=$SECOND
serve 7000 --name web --ip 10.78.1.1 --net host -- "$BIN/tcp" listen 4 0.0.0.0 7000 second
agent_stop
ok "the second is flushed" ax_in "$SECOND" agent --flush
left_of_second() {
	baseline "$SECOND" | grep -v ^route
	ip -o route show table all | grep '10\.78\.'
	ip -6 -o route show table all | grep fd78
	ls "$CGROUP2/$SECOND" 2>/dev/null
	find /sys/fs/bpf -name "*$SECOND*"
}
# (the kernel removes namespaces one after the other, and with them devices)
wait_for -t 65 '[ -z "$(left_of_second)" ]'
is "nothing of it is left" "$(left_of_second)" ""
like "the first does not notice" \
	"$(ax_in "$FIRST" run -- "$BIN/tcp" connect 4 10.77.1.1 7000)" " first you="
ok "its app runs" alive $a
ok "its agent runs" alive $FIRST_AGENT
INST=$FIRST AGENT=$FIRST_AGENT
done_testing
