# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced after lib.sh by the scripts that need etcd: members on the loopback of the script's own host, and
# the client of src/etcd_client.c, linked to the agent's objects.

need etcd gcc setpriv curl
declare -a MEMBER=()
MEMBERS=

# etcd_member N [OPTION...]: one of $MEMBERS, client port 238N, with what it had on its disk, if anything.
# Its pid is in ${MEMBER[N]}.
etcd_member() {
	local n=$1 all='' i scheme=${ETCD_SCHEME:-http}
	shift
	for i in $MEMBERS; do
		all+=${all:+,}m$i=http://127.0.0.1:239$i
	done
	bg "$T/etcd.$n" env -i PATH="$PATH" etcd --name "m$n" --data-dir "$T/etcd.data.$n" \
		--listen-client-urls "$scheme://127.0.0.1:238$n" \
		--advertise-client-urls "$scheme://127.0.0.1:238$n" \
		--listen-peer-urls "http://127.0.0.1:239$n" \
		--initial-advertise-peer-urls "http://127.0.0.1:239$n" \
		--initial-cluster "$all" --initial-cluster-state new \
		--heartbeat-interval 100 --election-timeout 1000 "$@"
	MEMBER[n]=$BG
}

# etcd_start N...: a cluster of these.
etcd_start() {
	local n
	MEMBERS=$*
	for n; do
		etcd_member "$n"
	done
	for n; do
		etcd_ready "$n"
	done
}

etcd_ready() {
	wait_for -t 60 "curl -sf http://127.0.0.1:238$1/health | grep -q true" && return
	diag "$(tail -n 5 "$T/etcd.$1")"
	echo "Bail out! etcd does not start"
	exit 1
}

etcd_kill9() {
	local n
	for n; do
		kill -KILL "${MEMBER[n]}"
		wait "${MEMBER[n]}" 2>/dev/null
	done
}

# etcd_ask N PATH BODY: what a member says.
etcd_ask() {
	curl -s --max-time 20 "${ETCD_SCHEME:-http}://127.0.0.1:238$1/v3/$2" -d "$3"
}

etcd_revision() {
	etcd_ask "$1" kv/range '{"key":"AA=="}' | grep -o '"revision":"[0-9]*' | tr -dc 0-9
}

build_etcd_client() {
	gcc -D_GNU_SOURCE -std=gnu11 -O2 -g -Wall -Wextra -I"$TOP/agent" -I"$TOP/include" \
		"$SRC/etcd_client.c" "$(dirname "$AX")/libax.a" -ljansson -lnettle -o "$T/etcd_client" && return
	echo "Bail out! cannot build the test program etcd_client"
	exit 1
}

CLIENTS=0

# client [OPTION...] ENDPOINT...: obeys what say() writes; what it says is in $SAID. It runs as nobody, so that
# it can be cut off alone.
client() {
	CLIENTS=$((CLIENTS + 1))
	SAID=$T/said.$CLIENTS
	mkfifo "$T/orders.$CLIENTS"
	: >"$SAID"
	setpriv --reuid 65534 --clear-groups "$T/etcd_client" "$@" <"$T/orders.$CLIENTS" >>"$SAID" 2>&1 &
	CLIENT=$!
	BACKGROUND+=("$CLIENT")
	exec {ORDERS}>"$T/orders.$CLIENTS"
}

# Members that were started meanwhile have the fifo too.
client_end() {
	say quit
	exec {ORDERS}>&-
	wait "$CLIENT"
}

say() { echo "$*" >&"$ORDERS"; }

# hears NAME REGEX [LINES]: within a minute the client says that (so many times).
hears() {
	if wait_for -t 60 "[ \$(grep -cE '$2' '$SAID') -ge ${3:-1} ]"; then
		pass "$1"
	else
		not_ok "$1" "expected: $2"$'\n'"said: $(tail -n 20 "$SAID" | cut -c1-300)"
	fi
}

# hears_not NAME REGEX: it has not said that.
hears_not() {
	if grep -qE "$2" "$SAID"; then
		not_ok "$1" "said: $(grep -E "$2" "$SAID" | head -n 5 | cut -c1-300)"
	else
		pass "$1"
	fi
}

# state REGEX: waits until the client's state is like that.
is_in_state() {
	wait_for -t 60 "echo state >&$ORDERS; sleep 0.1; tail -n 1 '$SAID' | grep -qE '^state: $1'"
}
