#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Whose an address is: the pool and its end, declared apps, addresses of other apps and of the machine.
. "$(dirname "$0")/lib.sh"
need jq

agent_start - <<EOF
agent:
  pool: {ipv4: 10.77.9.0/28}
EOF

# an address of the machine is nobody's
ip link add spare type veth peer name spare1
ip addr add 192.0.2.7/24 dev spare
ip addr add 192.0.2.8/32 dev lo
for mode in private host; do
	for addr in 192.0.2.7 192.0.2.8; do
		out=$(in_app --net $mode --ip $addr -- true 2>&1)
		is "$mode: --ip with an address of the machine, $addr" "$?" 125
		like "$mode: the sentence says why, $addr" "$out" "$addr is an address of this machine"
	done
done
# not even beside one that is another app's, which may be shared
ok "an app with an IPv6 address" ax run -d --net host --name six --ip fd77::7:1 -- sleep 1000
out=$(in_app --net host --ip 192.0.2.7,fd77::7:1 -- true 2>&1)
is "--ip with that one and one of the machine" "$?" 125
like "the sentence says why" "$out" "192.0.2.7 is an address of this machine"
ok "it ends" ax stop six
like "the machine's address stays" "$(ip -o -4 addr show dev lo; ip -o -4 addr show dev spare)" \
	"192.0.2.8/32.*192.0.2.7/24"
ip link del spare
ip addr del 192.0.2.8/32 dev lo

# one that a pool happens to have, too
for mode in private host; do
	for last in $(seq 2 14); do ip addr add "10.77.9.$last/32" dev lo 2>/dev/null; done
	ip addr del 10.77.9.11/32 dev lo
	got=$(ax run -d --net $mode --name only -- sleep 1000 && ax get apps -o json | jq -r '.[] | select(.name == "only") | .ip4')
	is "$mode: an address of the machine is not given out" "$(tail -n 1 <<<"$got")" 10.77.9.11
	like "$mode: not when there is no other" "$(ax run --net $mode -- true 2>&1)" "pool has no address left"
	ax stop only >/dev/null
	for last in $(seq 2 14); do ip addr del "10.77.9.$last/32" dev lo 2>/dev/null; done
done

ip_of() {
	ax get apps -o json | jq -r --arg n "$1" '.[] | select(.name == $n) | .ip4'
}
run_app --name decl -- sleep 1000
launched decl
decl=$(ip_of decl)
like "an app gets an address of the pool" "$decl" "^10\.77\.9\."
{
	cat "$T/$INST.yaml"
	echo "apps: {decl: {}}"
} >"$T/decl.yaml"
ok "it is declared while it runs" ax config apply "$T/decl.yaml"
is "and keeps its address" "$(ip_of decl)" "$decl"
stop_app "$APP"
ok "it ends and is declared still" wait_for "ax get apps -o json |
	jq -e '.[] | select(.name == \"decl\" and .state == \"declared\")'"
declared=$(ax get names -o json | jq -r '.[] | select(.name == "decl") | .ip4')
for i in $(seq 14); do
	mode=private
	[ $((i % 2)) -eq 0 ] || mode=host
	run_app --net $mode --name "p$i" -- sleep 1000
	[ "$i" -ne 1 ] || first=$APP
	wait_for "! alive $APP || [ -n \"\$(ip_of p$i)\" ]"
	[ -n "$(ip_of "p$i")" ] || break
done
like "the pool is used up, which ax run says" "$(cat "$OUT")" "pool has no address left"
is "12 got one: all but the network's, the host's, the broadcast and the declared one" \
	"$(ax get apps -o json | jq '[.[] | select(.name != "decl")] | length')" 12
is "no address was given twice" \
	"$({
		ax get apps -o json | jq -r '.[] | select(.name != "decl") | .ip4'
		echo "$declared"
		echo 10.77.9.1
	} | sort | uniq -d)" ""
run_app --name decl -- sleep 1000
launched decl
is "the declared app runs under its own" "$(ip_of decl)" "$declared"
stop_app "$first"

# two addresses of two apps
run_app --name one --ip 10.77.9.100,fd77::9:1 -- sleep 1000
run_app --name two --ip 10.77.9.101,fd77::9:2 -- sleep 1000
launched one two
for ips in 10.77.9.100,fd77::9:2 10.77.9.101,fd77::9:1; do
	out=$(in_app --name three --ip $ips -- true 2>&1)
	is "--ip $ips, which belong to two apps, is refused" "$?" 125
	like "and the sentence says why" "$out" "different apps"
done
is "no app has joined another" "$(ax get services -o json | jq -c 'map(.name)')" "[]"
stop_apps
ok "it is declared no more" ax config apply "$T/$INST.yaml"
done_testing
