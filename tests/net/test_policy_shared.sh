#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Apps that share a name and its address, with different labels: whoever asks for that address gets
# no server that policy keeps from it, whichever of them listens.
. "$(dirname "$0")/lib.sh"
build_c tcp udp

agent_start - <<-EOC
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	policy:
	  rules:
	    - deny: {from: {role: guest}, to: {role: vault}}
EOC

# The first one keeps the address that all are asked by, and has none of the ports in question.
serve 6999 --net host --ip 10.77.1.1,fd77::1:1 --name shared -- "$BIN/tcp" listen 6 :: 6999 owner

servers_at() { # PORT: how many there are
	ax get servers -o json | jq "[.[] | select(.port == $1)] | length"
}
# member NAME LABELS PORT...: another one, which says NAME
member() {
	local name=$1 labels=$2 port before
	local -A there
	shift 2
	for port; do
		there[$port]=$(servers_at "$port")
	done
	# shellcheck disable=SC2016 # for the app's shell
	run_app --net host --name shared --labels "$labels" -- bash -c '
		for port in "${@:3}"; do "$1" listen 6 :: $port "$2" & done
		"$0" serve 6 :: $3 "$2" &
		trap "kill \$(jobs -p)" TERM
		wait' "$BIN/udp" "$BIN/tcp" "$name" "$@"
	for port; do
		before=${there[$port]}
		# by both families; and by UDP, which the first of its ports has
		wait_for "[ \$(servers_at $port) -ge $((before + (port == $1 ? 4 : 2))) ]" ||
			not_ok "$name listens on $port" "$(tail -n 3 "$OUT"; ax get servers)"
	done
}

# seen MODE LABELS PROGRAM...: what several attempts met with, errors and servers
seen() {
	local mode=$1 labels=$2
	shift 2
	# shellcheck disable=SC2016 # for the app's shell
	in_app --net "$mode" --labels "$labels" -- sh -c 'for i in 1 2 3 4; do "$@"; done' sh "$@" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^.* \([a-z]*\) you=.*/\1/p' | sort -u | paste -sd' '
}

member vault zone=default,role=vault 7000 7002
member far zone=far 7001 7002
member open zone=default 7002
for client in private host; do
	for to in "4 10.77.1.1" "6 fd77::1:1"; do
		w="$client client, $to"
		# shellcheck disable=SC2086 # $to: a family and an address
		{
			is "$w: a deny rule keeps it from the only one that listens" \
				"$(seen $client zone=default,role=guest "$BIN/tcp" connect $to 7000)" ECONNREFUSED
			is "$w: no label is shared with the only one that listens" \
				"$(seen $client zone=default "$BIN/tcp" connect $to 7001)" ECONNREFUSED
			is "$w: of those that listen it gets the one that it may have" \
				"$(seen $client zone=default,role=guest "$BIN/tcp" connect $to 7002)" open
			is "$w: a server that it may have, though not the owner of the address" \
				"$(seen $client zone=far "$BIN/tcp" connect $to 7001)" far
			is "$w: UDP, a deny rule" \
				"$(seen $client zone=default,role=guest "$BIN/udp" ask connected $to 7000)" ECONNREFUSED
			is "$w: UDP, no shared label" \
				"$(seen $client zone=default "$BIN/udp" ask connected $to 7001)" ECONNREFUSED
		}
	done
done
is "programs outside ax reach all of them" \
	"$(for _ in $(seq 30); do "$BIN/tcp" connect 4 10.77.1.1 7002; done |
		sed -n 's/^.* \([a-z]*\) you=.*/\1/p' | sort -u | paste -sd' ')" "far open vault"
done_testing
