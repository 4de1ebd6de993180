#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# What connect() and sending a datagram fail with, for each reason that there is: as the table of ax-run(8) says
# it, for apps of both modes, by both families, with sockets that block and such that do not.
. "$(dirname "$0")/lib.sh"
need jq
build_c tcp udp

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  late:
    ip: 10.77.3.1,fd77::3:1
services:
  # nobody: no backend, and none that is meant
  empty: {ip: "10.77.200.1,fd77::200:1", ports: [80, 80/udp], backends: [nobody]}
  drained: {ip: "10.77.200.2,fd77::200:2", ports: ["80:7000", "80:7000/udp"], backends: [server]}
  waits: {ip: "10.77.200.3,fd77::200:3", ports: [80], backends: [late], wait: 500ms}
  served: {ip: "10.77.200.4,fd77::200:4", ports: ["80:7000", "81:7009", "80:7000/udp"], backends: [server]}
policy:
  rules:
    - deny: {from: {role: guest}, to: {role: vault}}
EOF

sysctl -qw net.ipv4.ping_group_range="0 0"

# What ax-run(8) says: reason:errno
table() {
	sed -n 's/^\([a-z ]*\)@\(E[A-Z]*\)@.*/\1:\2/p' "$TOP/tools/share/ax-run.8"
}
# errno_of REASON
errno_of() {
	table | sed -n "s/^$1://p"
}

# Reason, protocol, labels of the client, the last two parts of the address, port
reasons() {
	cat <<-EOF
		no label:tcp udp:zone=b:1.1 1:1:7000
		a rule:tcp udp:zone=a,role=guest:1.1 1:1:7000
		no server:tcp:zone=a:1.1 1:1:7009
		no server:tcp:zone=a:200.4 200:4:81
		no port:tcp:zone=a:200.4 200:4:99
		no backend:tcp udp:zone=a:200.1 200:1:80
		drained:tcp udp:zone=a:200.2 200:2:80
		wait over:tcp:zone=a:200.3 200:3:80
	EOF
}

# error_of MODE LABELS PROGRAM...: the error's name, or what else was printed
error_of() {
	local mode=$1 labels=$2
	shift 2
	in_app --net "$mode" --labels "$labels" -- "$@" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^peer=.* you=.*/connected/p; s/^from=.*/answered/p' | sort -u
}

is "each reason of the manual is tried here, and each here is in the manual" \
	"$({ reasons | cut -d: -f1; echo 'no way out'; } | sort -u)" "$(table | cut -d: -f1 | sort -u)"

for server in private host; do
	serve 7000 --net $server --ip 10.77.1.1,fd77::1:1 --name server --labels zone=a,role=vault -- \
		"$BIN/tcp" listen 6 :: 7000
	is "$server server: who may reaches it" \
		"$(error_of private zone=a "$BIN/tcp" connect 4 10.77.200.4 80)" connected
	ok "the backend is drained for one service" ax service drain drained server
	for client in private host; do
		while IFS=: read -r reason protos labels v4and6 tail port; do
			v4=10.77.${v4and6% *} v6=fd77::${v4and6#* }:$tail
			want=$(errno_of "$reason")
			for to in "4 $v4" "6 $v6"; do
				w="$server server, $client client: $reason, to $to"
				# shellcheck disable=SC2086 # family and address
				is "$w" "$(error_of $client "$labels" "$BIN/tcp" connect $to "$port")" "$want"
				# shellcheck disable=SC2086
				[[ $protos != *udp* ]] ||
					is "$w, a datagram" \
						"$(error_of $client "$labels" "$BIN/udp" send $to "$port" x)" "$want"
			done
			# shellcheck disable=SC2086
			is "$w, without blocking" \
				"$(error_of $client "$labels" "$BIN/tcp" connect $to "$port" -n)" "$want"
		done < <(reasons)
	done
	[ $server = host ] || for to in "4 192.0.2.1" "6 2001:db8::1"; do
		# shellcheck disable=SC2086
		is "no way out: $to" "$(error_of private zone=a "$BIN/tcp" connect $to 80)" "$(errno_of 'no way out')"
		# shellcheck disable=SC2086
		is "no way out, a datagram: $to" "$(error_of private zone=a "$BIN/udp" send $to 80 x)" \
			"$(errno_of 'no way out')"
	done
	# pings, by raw sockets: no hook sees them, so the fabric answers
	pings() {
		in_app --net private --labels "$1" -- "$PYTHON" "$SRC/ping.py" raw "${@:2}" 2>&1 | xargs
	}
	is "$server server: who may pings it" "$(pings zone=a 10.77.1.1 fd77::1:1)" "answered answered"
	is "$server server: a ping without a shared label" "$(pings zone=b 10.77.1.1 fd77::1:1)" "EHOSTUNREACH EACCES"
	is "$server server: a ping that a rule denies" "$(pings zone=a,role=guest 10.77.1.1 fd77::1:1)" "EHOSTUNREACH EACCES"
	[ $server = host ] || is "a ping to where there is no way" "$(pings zone=a 192.0.2.1 2001:db8::1)" "EHOSTUNREACH EACCES"
	# by ping sockets, as ping(8) uses them, whose connect() is looked at in both modes
	host_pings() {
		in_app --net host --labels "$1" -- "$PYTHON" "$SRC/ping.py" dgram 10.77.1.1 fd77::1:1 2>&1 | xargs
	}
	is "$server server: who may pings it from host mode" "$(host_pings zone=a)" "answered answered"
	is "$server server: not without a shared label" "$(host_pings zone=b)" "ECONNREFUSED ECONNREFUSED"
	is "$server server: nor against a rule" "$(host_pings zone=a,role=guest)" "EACCES EACCES"
	stop_apps
	ok "and drained no more" ax service drain drained server --undo
done
done_testing
