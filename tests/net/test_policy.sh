#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# quick
# Who may talk to whom: labels, rules, the error numbers, programs outside ax, and what raw sockets
# and forged addresses achieve.
. "$(dirname "$0")/lib.sh"
build_c tcp udp spoof

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
		services:
		  svc:
		    ip: 10.77.200.1,fd77::200:1
		    ports: ["80:7000", "80:7000/udp"]
		    backends: [server]
		  empty:
		    ip: 10.77.200.9,fd77::200:9
		    ports: [80, 80/udp]
		    backends: [nobody]
		policy:
		  rules:
		    - deny: {from: {role: guest}, to: {role: vault}}
		    - allow: {from: {role: auditor}, to: {role: vault}}
	EOF
}
agent_start - < <(config)

# error_of MODE LABELS PROGRAM...: the error's name, or what else was printed
error_of() {
	local mode=$1 labels=$2
	shift 2
	in_app --net "$mode" --ip 10.77.1.9,fd77::1:9 --labels "$labels" -- "$@" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^peer=.* you=.*/connected/p; s/^from=.*/answered/p' | sort -u
}

# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for server in private host; do
	serve 7000 --net $server --ip 10.77.1.1,fd77::1:1 --name server --labels zone=a,role=vault -- \
		"$BIN/tcp" listen 6 :: 7000
	tcp=$APP
	for client in private host; do
		w="$server server, $client client"
		for to in "4 10.77.1.1 7000" "6 fd77::1:1 7000" "6 10.77.1.1 7000" "4 10.77.200.1 80" \
			"6 fd77::200:1 80"; do
			is "$w: a shared label, $to" "$(error_of $client zone=a "$BIN/tcp" connect $to)" \
				connected
			is "$w: no shared label, $to" "$(error_of $client zone=b "$BIN/tcp" connect $to)" \
				ECONNREFUSED
			is "$w: no shared label, without blocking, $to" \
				"$(error_of $client zone=b "$BIN/tcp" connect $to -n)" ECONNREFUSED
			is "$w: a deny rule, in spite of a shared label, $to" \
				"$(error_of $client zone=a,role=guest "$BIN/tcp" connect $to)" EACCES
			is "$w: an allow rule, in spite of no shared label, $to" \
				"$(error_of $client zone=c,role=auditor "$BIN/tcp" connect $to)" connected
		done
		is "$w: nobody listens on the port" \
			"$(error_of $client zone=a "$BIN/tcp" connect 4 10.77.1.1 7009)" ECONNREFUSED
	done
	stop_app $tcp
	serve 7000/udp --net $server --ip 10.77.1.1,fd77::1:1 --name server \
		--labels zone=a,role=vault -- "$BIN/udp" serve 6 :: 7000
	udp=$APP
	for client in private host; do
		w="$server server, $client client"
		for method in connected sendto; do
			for to in "4 10.77.1.1 7000" "6 fd77::200:1 80"; do
				is "$w: UDP $method, a shared label, $to" \
					"$(error_of $client zone=a "$BIN/udp" ask $method $to)" answered
				is "$w: UDP $method, no shared label, $to" \
					"$(error_of $client zone=b "$BIN/udp" ask $method $to)" ECONNREFUSED
				is "$w: UDP $method, a deny rule, $to" \
					"$(error_of $client zone=a,role=guest "$BIN/udp" ask $method $to)" EACCES
			done
		done
	done
	stop_app $udp
done

for client in private host; do
	for method in connected sendto; do
		is "$client: UDP $method to a service without backends" \
			"$(error_of $client zone=default "$BIN/udp" ask $method 4 10.77.200.9 80)" EHOSTUNREACH
	done
	like "$client: an address of the pool that nobody has" \
		"$(error_of $client zone=default timeout 5 "$BIN/tcp" connect 4 10.77.50.50 80)" \
		"^(EHOSTUNREACH|ENETUNREACH|ECONNREFUSED)$"
done
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for to in "4 198.51.100.2" "6 2001:db8::2" "6 198.51.100.2"; do
	is "outside without egress: $to" \
		"$(error_of private zone=default "$BIN/tcp" connect $to 80)" ENETUNREACH
	is "outside without egress, UDP: $to" \
		"$(error_of private zone=default "$BIN/udp" ask sendto $to 80)" ENETUNREACH
done

# forged sources and raw sockets
counter() {
	ax status -o json | jq ".counters | to_entries | map(select(.key | test(\"$1\"))) | map(.value) | add"
}
serve 7000/udp --ip 10.77.1.1,fd77::1:1 --name target --labels zone=a -- "$BIN/udp" serve 6 :: 7000
target=$OUT
# arrives MODE LABELS SPOOF-ARGS...: whether the datagram got there, within $LONG seconds
arrives() {
	local mode=$1 labels=$2 text=text-$EPOCHREALTIME
	shift 2
	in_app --net "$mode" --ip 10.77.1.9,fd77::1:9 --labels "$labels" -- \
		sh -c '"$@"; sleep 0.3' sh "$BIN/spoof" "$@" "$text" >"$T/spoof" 2>&1
	if ! grep -q '^sent' "$T/spoof"; then
		cat "$T/spoof"
	elif wait_for -t "${LONG:-0.3}" "grep -q '$text\$' $target"; then
		echo arrives
	else
		echo lost
	fi
}
is "a raw datagram with its own source" \
	"$(LONG=20 arrives private zone=a 10.77.1.9 10.77.1.1 7000)" arrives
is "a raw datagram with its own source, IPv6" \
	"$(LONG=20 arrives private zone=a fd77::1:9 fd77::1:1 7000)" arrives
before=$(counter source)
is "a raw datagram with a source of nobody" \
	"$(arrives private zone=a 10.77.1.77 10.77.1.1 7000)" lost
is "a raw datagram with the server's own address" \
	"$(arrives private zone=a 10.77.1.1 10.77.1.1 7000)" lost
is "a raw datagram with an outside source" \
	"$(arrives private zone=a 198.51.100.9 10.77.1.1 7000)" lost
is "a raw datagram with a source of nobody, IPv6" \
	"$(arrives private zone=a fd77::1:77 fd77::1:1 7000)" lost
like "they are counted" "$(($(counter source) - before))" "^[2-9]"
is "a raw datagram from where no label is shared" \
	"$(arrives private zone=b 10.77.1.9 10.77.1.1 7000)" lost
is "a raw datagram from where no label is shared, IPv6" \
	"$(arrives private zone=b fd77::1:9 fd77::1:1 7000)" lost
is "a raw datagram from a host-mode app where no label is shared" \
	"$(arrives host zone=b 10.77.1.9 10.77.1.1 7000)" lost
out=$(in_app --ip 10.77.1.9 --labels zone=a -- sh -c "
	dev=\$(ip -o link | sed -n 's/^[0-9]*: \([^:@]*\).*/\1/p' | grep -v '^lo\$' | head -n 1)
	ip addr add 10.77.1.78/32 dev \$dev
	$BIN/udp ask sendto 4 10.77.1.1 7000 | head -n 1
	timeout 2 curl -s --interface 10.77.1.78 http://10.77.1.1:7000/ || echo curl ends with \$?" 2>&1)
like "an address that the app gave itself gets no connection" "$out" \
	"from=10.77.1.1:7000 .*curl ends with"
stop_apps

# programs of the host outside ax
serve 7000 --ip 10.77.1.1,fd77::1:1 --name server -- "$BIN/tcp" listen 6 :: 7000
serve 7000 --net host --ip 10.77.1.2,fd77::1:2 --name server2 -- "$BIN/tcp" listen 6 :: 7000
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for to in "4 10.77.1.1" "6 fd77::1:1" "4 10.77.1.2" "6 fd77::1:2"; do
	like "host_access: a program outside ax connects to $to" \
		"$(timeout 4 "$BIN/tcp" connect $to 7000 2>&1)" "^peer="
done
config false >"$T/closed.yaml"
ok "host_access: false is applied" ax config apply "$T/closed.yaml"
# shellcheck disable=SC2086 # $to: a family, an address, maybe a port
for to in "4 10.77.1.1" "6 fd77::1:1" "4 10.77.1.2" "6 fd77::1:2"; do
	unlike "without host_access it does not: $to" \
		"$(timeout 4 "$BIN/tcp" connect $to 7000 2>&1)" "peer="
	for client in private host; do
		like "without host_access apps still do: $to from $client" \
			"$(in_app --net $client -- "$BIN/tcp" connect $to 7000 2>&1)" "^peer="
	done
done
is "without host_access names still work" \
	"$(in_app -- getent ahostsv4 server | awk '{ print $1 }' | sort -u)" 10.77.1.1
done_testing
