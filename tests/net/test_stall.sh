#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 300
# A big change is nobody else's: requests and lookups are answered, and events told, while it is made.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/stall.sh"
need gcc jq

SERVICES=32000
agent_start
# whose visits are events
serve 7900 --net host --name visited --ip 10.77.1.9 -- "$PYTHON" "$SRC/hits.py" serve 0.0.0.0 7900

VISITED=(10.77.1.9 7900)

# meanwhile NAME COMMAND...: what requests, lookups and events waited at most, beside the command.
meanwhile() {
	local name=$1 before
	shift
	waiting_begins "${VISITED[@]}"
	before=${EPOCHREALTIME/./}
	ok "$name" "$@"
	diag "$(((${EPOCHREALTIME/./} - before) / 1000)) ms"
	waiting_ends "nobody waited for it ($name)"
}

{
	default_config
	echo "services:"
	awk -v n=$SERVICES 'BEGIN { for (i = 0; i < n; i++)
		printf "  s%d: {ip: 10.9.%d.%d, backends: [{address: 10.1.1.1}]}\n", i, i / 250, i % 250 + 1 }'
} >"$T/many.yaml"
default_config >"$T/none.yaml"
meanwhile "$SERVICES services come" ax config apply "$T/many.yaml"
# read_all: every list that is long now, again and again
read_all() {
	local list
	for list in services names services names; do
		ax get "$list" -o json >"$T/list" && [ "$(jq length "$T/list")" -ge "$SERVICES" ] || return 1
	done
}
meanwhile "lists of $SERVICES services and names" read_all
is "answers come in the order of the requests, and nobody is left hanging by who goes" \
	"$("$PYTHON" "$SRC/pipelined.py" "/run/ax/$INST/control.sock" | tr '\n' '|')" \
	"services apps names apps services error|ok|"
meanwhile "a dry run of their end" ax config apply --dry-run "$T/none.yaml"
meanwhile "$SERVICES services go" ax config apply "$T/none.yaml"

# --- apps, each of which is a process that the agent has to make ---

# (no events of visits: who is visited waits for a processor among the hundred, which is none of the agent's doing)
VISITED=()
for mode in host private; do
	{
		default_config
		echo "apps:"
		seq -f "  a%.0f: {command: [sleep, '1000'], net: $mode}" 100
	} >"$T/apps.yaml"
	meanwhile "100 apps start ($mode)" ax config apply "$T/apps.yaml"
	ax config apply "$T/none.yaml" >/dev/null
	wait_for -t 60 "[ \"\$(ax get apps -o json | jq length)\" = 1 ]"
done
VISITED=(10.77.1.9 7900)

# --- what the kernel is slow with: a probe is gone when all CPUs have let go of it ---

PROBES=300
{
	seq -f 'void f%.0f(void) { __asm__ volatile(""); }' $PROBES
	echo 'int main(void) { return 0; }'
} >"$T/many.c"
gcc -O0 -g -o "$T/many" "$T/many.c"
{
	default_config
	echo "probes:"
	for i in $(seq $PROBES); do echo "  - {name: p$i, probe: 'uprobe:$T/many:f$i'}"; done
} >"$T/probes.yaml"
# (each one takes the kernel some ms, and more of them where others have much to do)
patiently() { timeout --foreground 120 "$AX" --instance "$INST" "$@"; }
meanwhile "$PROBES probes come" patiently config apply "$T/probes.yaml"
is "they are there" "$(ax trace ls -o json | jq length)" $PROBES
meanwhile "an app is launched beside them" ax run -- true
meanwhile "$PROBES probes go" patiently config apply "$T/none.yaml"
is "they are gone" "$(ax trace ls -o json | jq length)" 0

# --- lists of interfaces: what 256 balancers sent to, other interfaces' lists may send to, too ---

ip link add xa0 type veth peer name xa1
ip link add xb0 type veth peer name xb1
for link in xa0 xa1 xb0 xb1; do ip link set $link up; done
# lists A B: so many balancers on each
lists() {
	default_config
	echo "xdp: {balancers: {"
	for i in $(seq 256); do
		echo "  b$i: {mode: nat, backends: [{address: 10.2.$((i / 250)).$((i % 250 + 1)), port: 80}]},"
	done
	echo "}, interfaces: {"
	for of in "xa0 $1" "xb0 $2"; do
		echo "  ${of% *}: {rules: ["
		for i in $(seq "${of#* }"); do
			echo "    {proto: tcp, dst: 10.3.$((i / 250)).$((i % 250 + 1)), action: balance b$i},"
		done
		echo "  ]},"
	done
	echo "}}"
}
lists 256 256 >"$T/lists.yaml"
lists 1 1 | grep -v "^  b[2-9]\|^  b1[0-9]" >"$T/short.yaml"
# (that packets which it sends from a veth may be lost is said, and of no matter here)
of_xdp() {
	ax config apply "$1" >"$T/said" 2>&1 || grep -q "has its list, but" "$T/said" || cat "$T/said"
	[ "$(ax get interfaces -o json | jq -c 'map(.rules)')" = "[$2,$2]" ]
}
meanwhile "lists with 256 balancers come" of_xdp "$T/lists.yaml" 256
meanwhile "and go" of_xdp "$T/short.yaml" 1

# --- large sets, and a service with many backends on balancers ---

sets() {
	default_config
	echo "xdp: {sets: {big: {file: $1}}, interfaces: {"
	echo "  xa0: {rules: [{src: '@big', action: drop}]}}}"
}
awk 'BEGIN { srand(7); for (i = 0; i < 500000; i++) {
	print int(rand() * 220) + 1 "." int(rand() * 256) "." int(rand() * 256) "." int(rand() * 256)
	printf "2001:db9:%x:%x::%x\n", rand() * 65535, rand() * 65535, i % 65536 } }' >"$T/elements"
sed '1d' "$T/elements" >"$T/fewer"
sets "$T/elements" >"$T/set.yaml"
sets "$T/fewer" >"$T/smaller.yaml"
meanwhile "a set of 1,000,000 comes" ax config apply "$T/set.yaml"
meanwhile "loses an element" ax config apply "$T/smaller.yaml"
meanwhile "and goes" ax config apply "$T/none.yaml"
{
	default_config
	echo "services: {big: {ip: 10.9.200.1, ports: [80], backends: [{address: 10.10.0.1-10.10.255.255}]}}"
} >"$T/big.yaml"
run_app --name asks -- sleep 1000
launched asks
ok "a service of 65,535 addresses" ax config apply "$T/big.yaml"
big() {
	ax policy explain asks big:80 -o json >"$T/explained" # (it is refused: there is no egress)
	jq -e '(.verdicts | length) + .more == 65535' "$T/explained"
}
meanwhile "its verdicts are explained" big
stop_app "$APP"
backends() {
	default_config
	echo "services:"
	awk -v n="$1" 'BEGIN { print "  many: {ip: 10.9.200.1, ports: [80], backends: ["
		for (i = 0; i < n; i++) printf "    {address: 10.10.%d.%d},\n", i / 250, i % 250 + 1; print "  ]}" }'
	echo "xdp: {balancers: {many: {mode: nat, service: many}}, interfaces: {"
	for i in xa0 xb0; do
		echo "  $i: {rules: [{dst: 10.9.200.1, proto: tcp, dport: 80, action: balance many}]},"
	done
	echo "}}"
}
backends 4000 >"$T/4000.yaml"
backends 1 >"$T/1.yaml"
meanwhile "a service of 4,000 comes to balancers" of_xdp "$T/4000.yaml" 1
meanwhile "and loses most" of_xdp "$T/1.yaml" 1
ax config apply "$T/none.yaml" >/dev/null
ip link del xa0
ip link del xb0

done_testing
