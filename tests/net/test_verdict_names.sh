#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax events --verdicts: by which names they are told when an app, a declared one or a rule is gone: by those that
# held when they fell, also of an agent that is stopped, killed or told of another config.
. "$(dirname "$0")/lib.sh"
build_c tcp

config() { # RULE'S LINE, DECLARED APPS
	cat <<-EOC
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		policy:
		  rules:
		    - deny: {from: guest, port: 7000$1}
		    - deny: {from: nobody}
		apps:
		  server: {}
	EOC
	shift
	for name; do
		echo "  ${name%=*}: {ip: ${name#*=}}"
	done
}
agent_start - < <(config ', name: no-guests' first=10.77.3.1 second=10.77.3.2 third=10.77.3.3 moved=10.77.3.4)

told() { # FILTER WHAT
	ax events --verdicts -o json -d 1s | jq -c "select($1) | $2"
}
whole='[.app, .remote_name, .rule_name, .text, .count]'
text='"deny guest -> any app port 7000"'
ask() { # ADDRESS: an app that goes on asks for it
	ax exec guest "$BIN/tcp" connect 4 "$1" 7000 >"$T/tried" 2>&1
}

run_app --name guest -- sleep 1000
launched guest

# declared apps that are no more
ask 10.77.3.1
config ', name: no-guests' second=10.77.3.2 third=10.77.3.3 moved=10.77.3.4 >"$T/$INST.yaml"
ok "a declared app is removed" ax config apply "$T/$INST.yaml"
is "what was refused to reach it has its name" "$(told '.remote == "10.77.3.1"' "$whole")" \
	'["guest","first","no-guests",'"$text"',1]'
ask 10.77.3.4
config ', name: no-guests' second=10.77.3.2 third=10.77.3.3 moved=10.77.3.5 >"$T/$INST.yaml"
kill -HUP "$AGENT"
ok "another has another address, by SIGHUP" wait_for 'ax get apps -o json | grep -q "10\.77\.3\.5"'
is "what was refused to reach the former has its name" "$(told '.remote == "10.77.3.4"' .remote_name)" '"moved"'

# an agent that ends, and another that starts with another config
ask 10.77.3.2
agent_stop
config '' third=10.77.3.3 >"$T/$INST.yaml"
agent_again
is "as an agent ended, one was there" "$(told '.remote == "10.77.3.2"' .remote_name)" '"second"'
is "and a rule that had another name is one that is gone" "$(told '.remote == "10.77.3.2"' '[.rule, .rule_name, .text]')" \
	'[null,"no-guests",'"$text"']'

# an app that has ended
in_app --name guest-too --labels zone=away -- "$BIN/tcp" connect 4 10.77.3.3 7000 >"$T/tried" 2>&1
gone='.app_id and .why == "labels"'
is "an app that has ended" "$(told "$gone" "$whole")" '["guest-too","third",null,null,1]'
agent_stop
agent_again
is "after an agent's end" "$(told "$gone" "$whole")" '["guest-too","third",null,null,1]'
is "and what was told before" "$(told '.remote == "10.77.3.1"' .remote_name)" '"first"'
in_app --name late --labels zone=away -- "$BIN/tcp" connect 4 10.77.3.3 7000 >"$T/tried" 2>&1
wait_for "grep -q late /run/ax/$INST/verdict-names" # a second later
agent_kill9
agent_again
is "after it was killed" "$(told "$gone"' and .app == "late"' "$whole")" '["late","third",null,null,1]'
is "and those of before" "$(told "$gone"' and .app == "guest-too"' "$whole")" '["guest-too","third",null,null,1]'

# what a new agent finds is none of the former's
ask 10.77.3.3
is "an app that has stayed" "$(told '.app == "guest" and .remote == "10.77.3.3"' '[.app_id, .remote_name, .rule, .count]')" \
	'[1,"third",1,1]'
in_app --name next -- true
is "and one that comes has an id of its own" "$(told '.app == "late"' '.count')" 1
agent_stop
printf '[1,2\n["x"]\n[1,2,3,4,5,6,7,8,9]\n\0\n[]' >"/run/ax/$INST/verdict-names"
agent_again
is "a file that is none is nothing" "$(told '.app == "guest" and .remote == "10.77.3.3"' '[.remote_name, .count]')" '["third",1]'
stop_apps
done_testing
