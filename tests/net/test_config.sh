#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# The config file: its errors, what apply and SIGHUP change and what they leave alone.
. "$(dirname "$0")/lib.sh"
build_c tcp

# all errors at once, each with its place
cat >"$T/bad.yaml" <<'EOF'
agent:
  pol: {ipv4: 10.0.0.0/16}
  host_access: perhaps
apps:
  web:
    comand: nginx
    ip: 1.2.3.4.5
    net: bridge
services:
  api:
    ports: [70000]
    strategy: best
    backends: [{app: web, weight: 0}]
EOF
out=$(ax config check "$T/bad.yaml" 2>&1)
is "config check of a bad file ends with 1" "$?" 1
for want in "bad.yaml:2:3:.*agent.*pol.*pool" "bad.yaml:3:16:.*agent.host_access.*perhaps" \
	"bad.yaml:6:5:.*apps.web.*comand.*command" "bad.yaml:7:9:.*apps.web.ip.*1.2.3.4.5" \
	"bad.yaml:8:10:.*apps.web.net.*bridge.*private" "bad.yaml:11:13:.*services.api.ports.*70000" \
	"bad.yaml:12:15:.*services.api.strategy.*best.*round-robin" \
	"bad.yaml:13:35:.*services.api.backends.*weight"; do
	if grep -q "$want" <<<"$out"; then
		pass "it says: $want"
	else
		not_ok "it says: $want" "$out"
	fi
done
cat >"$T/hint.yaml" <<-END
	agent: {pool: {ipv4: $POOL4, ipv6: "$POOL6"}}
	services:
	  shop: {ip: 10.77.7.7, ports: ["80:7000"], backends: [web]}
	policy:
	  rules:
	    - deny: {from: guest, to: shop, port: 80}
END
hint="policy.rules[0]: 80 is the port of the service shop, whose backends are asked at 7000: rules go by the backends' ports, so it wants port: 7000"
is "what is hardly meant is told" "$(ax config check "$T/hint.yaml" 2>&1 >/dev/null)" "ax config: $hint"
fails "a file that is no YAML" ax config check /bin/true
fails "a file that does not exist" ax config check "$T/nothing.yaml"
default_config >"$T/good.yaml"
ok "config check of a good file" ax config check "$T/good.yaml"
: >"$T/empty.yaml"
ok "config check of an empty file" ax config check "$T/empty.yaml"
fails "apply without an agent" ax config apply "$T/good.yaml"
"$AX" --instance "$INST" agent --config "$T/bad.yaml" >"$T/out" 2>&1 &
wait $!
rc=$?
is "an agent does not start with a bad file" "$([ $rc -ne 0 ] && grep -c 'bad.yaml:7:9' "$T/out")" 1

# reconciling
write() {
	cat >"$T/$INST.yaml" <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		apps:
		  steady:
		    command: [sleep, "1000"]
		    ip: 10.77.1.1
		  moving:
		    command: $BIN/tcp listen 4 0.0.0.0 7000 ${1:-one}
		    ip: ${2:-10.77.1.2}
		    net: host
		${3:-}
		services:
		  svc:
		    ip: 10.77.200.1
		    ports: ["80:7000"]
		    backends: [moving]
	EOF
}
EXTRA='  extra:
    command: [sleep, "1000"]'
pid_of() {
	ax get apps -o json | jq -r --arg n "$1" '.[] | select(.name == $n and .state == "running") | .pid'
}
write
agent_again
ok "the agent starts the apps that have a command" launched steady moving
wait_for "in_app -- $BIN/tcp connect 4 10.77.200.1 80 | grep -q one" # it listens a moment after it runs
like "they serve" "$(in_app -- "$BIN/tcp" connect 4 10.77.200.1 80)" "one you="
steady=$(pid_of steady) moving=$(pid_of moving)

is "apply of the same file changes nothing" "$(ax config apply "$T/$INST.yaml" >/dev/null
	echo "$(pid_of steady) $(pid_of moving)")" "$steady $moving"
unlike "and says so" "$(ax config apply "$T/$INST.yaml" 2>&1)" "^[+~-] "

write two 10.77.1.3 "$EXTRA"
is "who applies it is told, too" "$(ax config apply --dry-run "$T/hint.yaml" 2>&1 >/dev/null)" "ax config: $hint"
out=$(ax config apply --dry-run "$T/$INST.yaml" 2>&1)
like "--dry-run shows what would be added" "$out" "\+ app extra"
like "and what would be changed" "$out" "~ app moving"
unlike "and nothing that stays" "$out" "steady"
is "--dry-run changes nothing" "$(pid_of steady) $(pid_of moving) $(pid_of extra)" "$steady $moving "
ok "apply" ax config apply "$T/$INST.yaml"
ok "the added app runs" launched extra moving
is "an app that did not change keeps its process" "$(pid_of steady)" "$steady"
ok "the one that changed has a new process" wait_for "[[ \$(pid_of moving) =~ ^[0-9]+$ && \$(pid_of moving) != $moving ]]"
wait_for "in_app -- $BIN/tcp connect 4 10.77.200.1 80 | grep -q two"
like "and serves under its new address" "$(in_app -- "$BIN/tcp" connect 4 10.77.1.3 7000)" "two you="
like "the service follows" "$(in_app -- "$BIN/tcp" connect 4 10.77.200.1 80)" "two you="

extra=$(pid_of extra)
write two 10.77.1.3 ""
kill -HUP "$AGENT"
ok "SIGHUP: the app that is declared no more is stopped" wait_for "[ ! -e /proc/$extra ]"
is "the others stay" "$(pid_of steady)" "$steady"
wait_for "[ -z \"\$(ax get apps -o json | jq -r '.[] | select(.name == \"extra\") | .name')\" ]"
is "and it is not listed" "$(ax get apps -o json | jq -r '.[] | select(.name == "extra") | .name')" ""

moving=$(pid_of moving)
ax get apps -o json | jq -S 'map(del(.since))' >"$T/before"
ax get services -o json | jq -S . >"$T/before-services"
cp "$T/bad.yaml" "$T/$INST.yaml"
out=$(ax config apply "$T/$INST.yaml" 2>&1)
is "apply of a bad file ends with 1" "$?" 1
like "and says where" "$out" "$INST.yaml:7:9"
lines=$(wc -l <"$T/$INST.log")
kill -HUP "$AGENT"
wait_for "tail -n +$((lines + 1)) $T/$INST.log | grep -qE '7:9|apps.web.ip'"
like "SIGHUP with a bad file is logged" "$(tail -n +$((lines + 1)) "$T/$INST.log")" "7:9|apps.web.ip"
ok "the agent goes on" alive "$AGENT"
is "no app has changed" "$(ax get apps -o json | jq -S 'map(del(.since))')" "$(cat "$T/before")"
is "no service has changed" "$(ax get services -o json | jq -S .)" "$(cat "$T/before-services")"

# what ax run started is not the config's business
run_app --name mine -- sleep 1000
launched mine
mine=$(child_of $APP)
write two 10.77.1.3 ""
ok "apply beside an app that was started by hand" ax config apply "$T/$INST.yaml"
ok "it goes on" alive "$mine"

# restart policies
cat >"$T/restart.yaml" <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  steady: {command: [sleep, "1000"], ip: 10.77.1.1}
  again: {command: "sh -c 'exec sleep 1000'", restart: always, net: host}
  once: {command: "sh -c 'echo began >>$T/once; exit 3'"}
EOF
ok "apply restart policies" ax config apply "$T/restart.yaml"
launched again
pid=$(pid_of again)
# it has ended before the other one: what would start it again would do so before that one
wait_for '[ -s "$T/once" ] && [ -z "$(pid_of once)" ]'
kill -KILL "$pid"
ok "restart: always starts it again" wait_for "[ -n \"\$(pid_of again)\" ] && [ \"\$(pid_of again)\" != $pid ]"
is "restart: no does not" "$(pid_of once) $(cat "$T/once")" " began"
is "the unrelated app still has its process" "$(pid_of steady)" "$steady"
ok "an empty config removes them all" ax config apply "$T/good.yaml"
wait_for "[ ! -e /proc/$steady ]"
is "their processes are gone" "$([ -e "/proc/$steady" ] && echo "steady is there")" ""
stop_apps
cp "$T/good.yaml" "$T/$INST.yaml"
agent_kill9
agent_again
leftovers "nothing is left of the declared apps"
done_testing
