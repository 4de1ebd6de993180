#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# `--confirm`: a list that cuts the traffic goes away by itself, whoever is killed meanwhile, unless
# it is confirmed; rollback; and the warning for a session that a list would cut off.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/xdp.sh"
need ip jq "$PYTHON"

peer_host
known_neighbours
cat >"$T/good.yaml" <<'EOF'
rules:
  - {name: kept, icmp: echo-request, action: pass}
EOF
cat >"$T/cut.yaml" <<'EOF'
default: drop
rules:
  - {name: kept, icmp: echo-request, action: drop}
EOF

pings() {
	peer "$PYTHON" "$SRC/packets.py" ping 198.51.100.1 "${1:-1}"
}
# returns_within SECONDS: traffic is cut now, and comes back
returns_within() {
	[ "$(pings)" = 0 ] && wait_for -t "$1" '[ "$(pings)" = 1 ]'
}

ok "load" xdp load xc0 --rules "$T/good.yaml"
is "traffic" "$(pings 2)" 2

# --- nobody confirms ---

start=${EPOCHREALTIME/./}
is "apply a list that cuts it" "$(xdp apply xc0 --rules "$T/cut.yaml" --confirm 2s | head -n 1)" \
	"xc0: 1 rule, default drop, generation 2 (native)"
like "status says what is open" "$(xdp status xc0)" "comes back in [0-9]+s unless: ax xdp confirm xc0"
ok "traffic stops, and comes back" returns_within 30
took=$((${EPOCHREALTIME/./} - start))
ok "not before its time ($((took / 1000)) ms)" test $took -ge 1900000
is "the counters know both" "$(($(count kept) > 3))" 1
like "confirm is too late" "$(xdp confirm xc0 2>&1)" \
	"^ax xdp confirm: nothing waits for a confirmation on xc0: .*the time was up and the former rules are back"
xdp confirm xc0 2>/dev/null
is "and fails" $? 1
like "the former list is the list" "$(xdp rule list xc0)" "default +action pass"

# --- everything of ax is killed ---

cat >"$T/agent.yaml" <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
EOF
agent_start - <"$T/agent.yaml"
for delay in 0.02 0.1 now; do
	wait_for '[ "$(pings)" = 1 ]'
	"$AX" --instance "$INST" xdp apply xc0 --rules "$T/cut.yaml" --confirm 2s >/dev/null 2>"$T/err" &
	pid=$!
	if [ $delay = now ]; then
		wait $pid
		agent_kill9
		ok "the agent is gone" test ! -e "/proc/$AGENT"
		ok "traffic is cut, and comes back without any process" returns_within 30
	else
		sleep $delay
		kill -KILL $pid 2>/dev/null
		wait $pid 2>/dev/null
		ok "apply killed after $delay s: there is traffic in the end" \
			wait_for '[ "$(pings)" = 1 ]'
	fi
	sleep 0.2
	wait_for 'xdp rule list xc0 | grep -q "default *action pass"'
done
is "ax finds the former list" "$(xdp rule list xc0 -o json | jq -c '[.rules[].action]')" '["pass"]'
agent_again
xdp rollback xc0 2>/dev/null # an apply that was killed may have left its deadline open

# --- somebody does ---

cat >"$T/other.yaml" <<'EOF'
default: drop
rules:
  - {name: kept, icmp: echo-request, action: pass}
  - {name: new, proto: udp, dport: 7, action: pass}
EOF
ok "apply a good list" xdp apply xc0 --rules "$T/other.yaml" --confirm 1s
is "it judges" "$(pings)" 1
is "confirm" "$(xdp confirm xc0)" "xc0: confirmed: the new list stays"
sleep 1.1
like "it stays" "$(xdp rule list xc0)" "default +action drop"
is "with traffic" "$(pings)" 1
like "once is enough" "$(xdp confirm xc0 2>&1)" "nothing waits for a confirmation on xc0"

# --- somebody takes it back ---

ok "apply a list that cuts traffic" xdp apply xc0 --rules "$T/cut.yaml" --confirm 60s
is "it does" "$(pings)" 0
for words in "apply xc0 --rules $T/good.yaml" "rule add xc0 proto tcp action pass"; do
	# shellcheck disable=SC2086
	like "ax xdp $words has to wait" "$(xdp $words 2>&1)" \
		"waits for its confirmation: ax xdp confirm xc0, or ax xdp rollback xc0"
done
ok "rollback" xdp rollback xc0
is "brings it back at once" "$(pings)" 1
like "the list before it is the list" "$(xdp rule list xc0 -o json | jq -c '[.rules[].name]')" \
	'\["kept","new"\]'
like "there is nothing more to take back" "$(xdp rollback xc0 2>&1)" "nothing waits"

# --- the first list of all ---

ok "unload" xdp unload xc0
ok "load with --confirm" xdp load xc0 --rules "$T/cut.yaml" --confirm 1s
ok "traffic is cut, and comes back" returns_within 30
is "as if nothing was loaded" "$(xdp status xc0 -o json | jq -c '.[0].loaded')" false
like "status knows whose program is still there" "$(xdp status xc0)" \
	"^xc0: no list, and everything passes: .*--confirm was not confirmed in time.*ax xdp unload xc0.*ours\)"
is "and says it to programs" "$(xdp status xc0 -o json | jq -c '[.[0].programs[].ours]')" '[true]'
is "unload takes it off and says so" "$(xdp unload xc0 2>&1)" "xc0: unloaded"
is "then nothing is there" "$(xdp status xc0)" "xc0: nothing is loaded"
like "nor to unload" "$(xdp unload xc0 2>&1)" "no rules of ax are loaded on xc0"
ok "load with --confirm again" xdp load xc0 --rules "$T/cut.yaml" --confirm 1s
ok "traffic comes back again" returns_within 30
like "confirm is too late" "$(xdp confirm xc0 2>&1)" "no rules of ax are loaded on xc0"
ok "what is left is cleared away by the next load" xdp load xc0 --rules "$T/good.yaml"
is "which has traffic" "$(pings)" 1
ok "unload that" xdp unload xc0
ok "load again" xdp load xc0 --rules "$T/cut.yaml" --confirm 60s
is "no traffic" "$(pings)" 0
ok "rollback" xdp rollback xc0
is "takes it off" "$(xdp status xc0)" "xc0: nothing is loaded"
unlike "the interface has no program" "$(ip link show xc0)" xdp
is "and traffic" "$(pings)" 1

# --- sessions ---

cat >"$T/ssh.yaml" <<'EOF'
default: drop
rules:
  - {name: answers, proto: tcp, sport: 443, flags: ack, action: pass}
  - {name: names, proto: udp, sport: 53, action: pass}
  - {src: 198.51.100.2, proto: tcp, dport: 22, action: pass}
  - {src: "2001:db8:2::2", proto: tcp, dport: 22, flags: ack, action: pass}
EOF
# session CONNECTION: what applying says then
session() {
	{ SSH_CONNECTION=$1 xdp apply xc0 --rules "$T/ssh.yaml" --confirm 60s >/dev/null; } 2>&1
	xdp rollback xc0 >/dev/null
}
ok "load without rules" xdp load xc0
is "a session that the list lets through" "$(session '198.51.100.2 40000 198.51.100.1 22')" ""
is "the same over IPv6" "$(session '2001:db8:2::2 40000 2001:db8:2::1 22')" ""
like "one from elsewhere" "$(session '198.51.100.9 40000 198.51.100.1 22')" \
	"^ax xdp apply: warning: if your SSH session \(198.51.100.9 40000 198.51.100.1 22\) comes in by xc0, this list cuts it off"
like "one to another port" "$(session '198.51.100.2 40000 198.51.100.1 2222')" "cuts it off"
like "one over IPv6" "$(session '2001:db8:2::3 40000 2001:db8:2::1 22')" "cuts it off"
is "none" "$(unset SSH_CONNECTION
	session '')" ""
is "one that makes no sense" "$(session 'a b c d')" ""
is "a list that passes all" "$(SSH_CONNECTION='198.51.100.9 40000 198.51.100.1 22' \
	xdp apply xc0 --rules "$T/good.yaml" 2>&1 >/dev/null)" ""

# --- what answers this host ---

# warned TEXT: what is said when this list is applied
warned() {
	{ xdp apply xc0 --rules - <<<"$1" >/dev/null; } 2>&1
}
is "a list that drops by default, and lets answers in" "$(warned 'default: drop
rules: [{proto: tcp, flags: ack, action: pass}, {proto: udp, sport: 53, action: pass}]')" ""
is "one that lets in what belongs to a socket" "$(warned 'default: drop
rules: [{state: established, action: pass}]')" ""
out=$(warned 'default: drop
rules: [{proto: tcp, dport: 22, action: pass}]')
like "one that forgets them is warned of" "$out" \
	"warning: this list drops the answers to this host's own TCP connections that come in by xc0; to let them in: \{state: established, action: pass\}"
like "for DNS, too" "$out" "own DNS queries .*: \{state: established, action: pass\}"
is "not again when another rule changes" "$(xdp rule add xc0 proto tcp dport 80 action pass 2>&1 >/dev/null)" ""
is "a rule that drops them is meant so" "$(warned 'rules: [{proto: tcp, sport: 443, action: drop}]')" ""
like "one without conditions at the end is a default" "$(warned 'rules: [{icmp: echo-request, action: pass}, {action: drop}]')" \
	"own TCP connections"
like "and so are those that leave nothing of a protocol" \
	"$(warned 'default: pass')$(warned 'rules: [{proto: tcp, dport: 22, action: pass}, {proto: tcp, action: drop}]')" \
	"own TCP connections"
like "or of a family" "$(warned 'default: pass')$(warned 'rules: [{proto: tcp, dport: 22, action: pass}, {src: 0.0.0.0/0, action: drop}]')" "own TCP connections"
is "one about some who send is meant so, too" \
	"$(warned 'default: pass')$(warned 'rules: [{proto: tcp, src: 192.0.2.0/24, action: drop}]')" ""
ok "unloaded" xdp unload xc0
echo '{default: drop, rules: [{proto: tcp, dport: 22, action: pass}]}' >"$T/forgets.yaml"
like "the first list of an interface is warned of, too" "$(xdp load xc0 --rules "$T/forgets.yaml" 2>&1 >/dev/null)" \
	"warning: this list drops the answers to this host's own TCP connections that come in by xc0"
ip addr flush dev xc0
is "an interface without addresses is no host's" "$(warned 'default: pass')$(warned 'default: drop')" ""
ok "unload" xdp unload xc0
xdp_done
