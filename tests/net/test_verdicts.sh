#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# ax events --verdicts: who was refused, or would have been, once for all tries; with both names, the
# port, the rule, where, and how often.
. "$(dirname "$0")/lib.sh"
build_c tcp udp

agent_start - <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	  host_access: false
	services:
	  shop: {ip: 10.77.200.1, ports: ["80:7000"], backends: [server]}
	policy:
	  rules:
	    - audit: {from: trial, to: server, name: soon}
	    - deny: {from: guest, to: server, port: 7000-7001, name: no-guests}
	    - deny: {from: 198.51.100.0/24, to: server}
EOC

bg "$T/told" "$AX" --instance "$INST" events --verdicts -o json
told() { # FILTER WHAT
	jq -c "select($1) | $2" <"$T/told" | tail -n 1
}
tell() { # WHAT FILTER EXPECTED: what is told of it in the end
	wait_for "[ \"\$(told '$2' '[.verdict, .why, .hook, .rule, .count]')\" = '$3' ]"
	is "$1" "$(told "$2" '[.verdict, .why, .hook, .rule, .count]')" "$3"
}
try() { # MODE NAME COUNT PORT [ax run's options]: connects
	local mode=$1 name=$2 count=$3 port=$4
	shift 4
	# shellcheck disable=SC2016 # the app's shell
	in_app --net "$mode" --name "$name" "$@" -- sh -c 'for i in $(seq '"$count"'); do
		timeout 2 "$0" connect 4 10.77.1.1 '"$port"'; done' "$BIN/tcp" >"$T/tried" 2>&1
}

for server in private host; do
	serve 7000 --net $server --ip 10.77.1.1 --name server -- "$BIN/tcp" listen 4 0.0.0.0 7000
	for client in private host; do
		w="server $server, client $client"
		: >"$T/told"
		try $client guest 5 7000
		tell "$w: a rule, five times" '.app == "guest" and .remote_name == "server" and .remote_port == 7000' \
			'["refused","rule","connect",2,5]'
		is "$w: no word of what was told already" "$(jq -sc 'map(select(.app == "guest") | .count) |
			. == unique' <"$T/told")" true
		is "$w: its name" "$(told '.app == "guest"' .rule_name)" '"no-guests"'
		try $client trial 2 7000
		tell "$w: a rule on trial" '.app == "trial"' '["audited","rule","connect",1,2]'
		try $client stranger 3 7000 --labels zone=away
		tell "$w: labels" '.app == "stranger"' '["refused","labels","connect",null,3]'
	done
	hook=fabric
	[ $server = private ] || hook=sk_lookup
	timeout 2 "$BIN/tcp" connect 4 10.77.1.1 7000 >"$T/tried" 2>&1
	wait_for "[ -n \"\$(told '.why == \"host-access\" and .hook == \"$hook\"' .count)\" ]"
	like "$server: from outside" "$(told '.why == "host-access"' '[.verdict, .hook, .remote_name, .remote_port]')" \
		"\[\"refused\",\"$hook\",\"server\",7000\]"
	: >"$T/told"
	in_app --name guest -- "$BIN/tcp" connect 4 10.77.200.1 80 >"$T/tried" 2>&1
	tell "$server: through a service" '.app == "guest" and .remote_name == "shop"' '["refused","rule","connect",2,1]'
	in_app --name guest -- "$BIN/udp" ask sendto 4 10.77.1.1 7001 >"$T/tried" 2>&1
	tell "$server: a datagram" '.app == "guest" and .proto == "udp"' '["refused","rule","connect",2,1]'
	in_app --name leaver -- "$BIN/tcp" connect 4 203.0.113.1 80 >"$T/tried" 2>&1
	tell "$server: to the outside" '.app == "leaver"' '["refused","egress","connect",null,1]'
	stop_app "$APP"
done

# many tries, for longer than a look takes: a word at first, and one each five seconds
serve 7000 --ip 10.77.1.1 --name server -- "$BIN/tcp" listen 4 0.0.0.0 7000
: >"$T/told"
began=${EPOCHREALTIME/./}
# shellcheck disable=SC2016 # the app's shell
in_app --name guest -- sh -c 'for i in $(seq 30); do "$0" connect 4 10.77.1.1 7000; sleep 0.1; done' "$BIN/tcp" >"$T/tried" 2>&1
tell "thirty tries" '.app == "guest"' '["refused","rule","connect",2,30]'
most=$(((${EPOCHREALTIME/./} - began) / 5000000 + 2))
ok "are $most words at most" test "$(jq -c 'select(.app == "guest")' <"$T/told" | wc -l)" -le "$most"
stop_app "$APP"

# an app that asks for very much pushes out its own, and nobody else's
run_app --name quiet --labels zone=away -- sleep 1000
run_app --name loud --labels zone=loud -- sleep 1000
serve 7000 --ip 10.77.1.1 --name server -- "$BIN/tcp" listen 4 0.0.0.0 7000
launched quiet loud
ax exec quiet "$BIN/tcp" connect 4 10.77.1.1 7000 >"$T/tried" 2>&1
cat >"$T/flood.py" <<'EOP'
import socket
for i in range(5000):
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	try:
		s.connect(("10.77.1.1", 1 + i % 60000))
	except OSError:
		pass
	s.close()
EOP
ax exec loud "$PYTHON" "$T/flood.py"
ax events --verdicts -o json -d 2s >"$T/all"
is "a flood: what is kept of it" "$(jq -c 'select(.app == "loud")' <"$T/all" | wc -l)" 128
is "the newest" "$(jq 'select(.app == "loud" and .remote_port == 5000) | .count' <"$T/all")" 1
is "and of others" "$(jq -c 'select(.app == "quiet") | [.why, .count]' <"$T/all")" '["labels",1]'
agent_kill9
agent_again
ax events --verdicts -d 2s >"$T/text"
like "the next agent knows it, in words" "$(grep quiet "$T/text")" \
	'refused +quiet 10\.77\.[0-9.]+ -> server 10\.77\.1\.1:7000/tcp  no label in common  at connect'
sed -i 's/7000-7001/7000-7002/' "$T/$INST.yaml"
ok "a rule is changed" ax config apply "$T/$INST.yaml"
like "which forgets nothing" "$(ax events --verdicts -d 1s)" "quiet"
sed -i 's/^  rules:/&\n    - log: {from: nobody}/' "$T/$INST.yaml"
ok "rules have other numbers" ax config apply "$T/$INST.yaml"
is "it begins anew" "$(ax events --verdicts -d 1s)" ""
end "$BG"
stop_apps
done_testing
