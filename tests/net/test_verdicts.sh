#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
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
kept() { # FILTER WHAT: the last one's (those of apps before the agent's death are there, too)
	ax events --verdicts -o json -d 1s | jq -c "select($1) | $2" | tail -n 1
}
is "nor does that" "$(kept '.app == "quiet"' '[.why, .count]')" '["labels",1]'

# verdicts keep the names that they fell by, whoever ends
try private guest 3 7000
verdict='[.app, .remote_name, .rule, .rule_name, .count]'
is "an app that has ended, by its name" "$(kept '.why == "rule"' "$verdict")" '["guest","server",3,"no-guests",3]'
in_app --name leaver --egress=203.0.113.0/24:80 -- "$BIN/tcp" connect 4 203.0.113.1 81 >"$T/tried" 2>&1
is "another with an egress list has come and gone, and counts stay" "$(kept '.app == "guest"' .count)" 3
leaves='[.remote, .remote_port, .why, .count]'
is "of which is told, too" "$(kept '.app == "leaver"' "$leaves")" '["203.0.113.1",81,"rule",1]'
in_app --name trying --egress=203.0.113.0/24:80 --egress-audit -- "$BIN/tcp" connect 4 203.0.113.1 81 >"$T/tried" 2>&1
is "and of one that is on trial" "$(kept '.app == "trying"' '[.verdict, .text != null]')" '["audited",true]'
stop_app "$APP"
serve 7000 --ip 10.77.1.1 --name heir -- "$BIN/tcp" listen 4 0.0.0.0 7000
is "who has got an address since is not taken for whom it was" "$(kept '.app == "guest"' .remote_name)" '"server"'
try private late 1 7000 --labels zone=away
is "and is told of when it is asked itself" "$(kept '.app == "late"' '[.remote_name, .why]')" '["heir","labels"]'
sed -i '/no-guests/d' "$T/$INST.yaml"
ok "a rule is removed" ax config apply "$T/$INST.yaml"
is "what it has refused is told by its name, without a number" "$(kept '.app == "guest"' "$verdict")" \
	'["guest","server",null,"no-guests",3]'
like "and one without a name by what it said" "$(ax events --verdicts -d 1s | grep trying)" \
	"203.0.113.1:81/tcp  deny egress of trying -> outside \(a rule that is gone\)  at connect"
like "which is told of the other, too" "$(kept '.app == "guest"' .text)" '^"deny guest -> server port 7000-7002"$'

# apps that are started again and again: what is kept of them all has a bound, and nobody else's goes
for _ in $(seq 30); do
	in_app --name loud --labels zone=loud -- "$PYTHON" "$T/flood.py"
done
ax events --verdicts -o json -d 1s >"$T/all"
ended=$(jq -c 'select(.app == "loud" and .app_id != '"$(ax get apps -o json | jq '.[] | select(.name == "loud").id')"')' <"$T/all" | wc -l)
ok "of 3840 verdicts on apps that have ended some are kept: $ended" test "$ended" -gt 1000
ok "and not all" test "$ended" -lt 3300
is "those of others have stayed" "$(jq -c 'select(.app == "guest") | .count' <"$T/all" | tail -n 1)" 3
is "all of them" "$(jq -c 'select(.app == "quiet" or .app == "trying") | .count' <"$T/all" | xargs)" "1 1"
stop_apps
done_testing
