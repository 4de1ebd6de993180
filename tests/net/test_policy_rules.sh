#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Rules by ports, protocols, names of apps and services, and addresses outside; what only counts; the
# counts, which go on when rules change and an agent takes over.
. "$(dirname "$0")/lib.sh"
build_c tcp udp

config() {
	cat <<-EOC
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		services:
		  shop: {ip: "10.77.200.1,fd77::200:1", ports: ["80:7000"], backends: [server]}
		policy:
		  rules:
	EOC
	cat
}
rules() {
	config <<-EOC
		    - audit: {from: app-web, to: shop, name: trial}
		    - log: {to: server, port: 7000, name: seen}
		    - allow: {from: app-web, to: shop, port: 7000, protocol: tcp, name: web}
		    - allow: {from: asker, to: names, port: 7053, protocol: udp, name: ask}
		    - deny: {from: [guest, 198.51.100.0/24], to: 192.0.2.0/24, name: never}
		    - deny: {name: rest}
		    - deny: {from: 0.0.0.0/0, to: server, port: 7001, name: outside}
	EOC
}
rules >"$T/rules.yaml"
agent_start "$T/rules.yaml"

# error_of MODE NAME PROGRAM...
error_of() {
	local mode=$1 name=$2
	shift 2
	in_app --net "$mode" --name "$name" -- "$@" 2>&1 |
		sed -n 's/^error [a-z]* //p; s/^peer=.* you=.*/connected/p; s/^from=.*/answered/p' | sort -u
}
hits() {
	ax get policy -o json | jq -r --arg n "$1" '.[] | select(.name == $n) | .hits'
}

# shellcheck disable=SC2086 # $to: a family, an address, a port
for server in private host; do
	serve 7000 --net $server --ip 10.77.1.1,fd77::1:1 --name server -- "$BIN/tcp" listen 6 :: 7000
	tcp=$APP
	serve 7001 --net $server --ip 10.77.1.2,fd77::1:2 --name other -- "$BIN/tcp" listen 6 :: 7001
	for client in private host; do
		w="$server server, $client client"
		for to in "4 10.77.1.1 7000" "6 fd77::1:1 7000" "4 10.77.200.1 80" "6 fd77::200:1 80"; do
			before=$(hits web) trial=$(hits trial) seen=$(hits seen) rest=$(hits rest)
			is "$w: the app that a rule names, $to" \
				"$(error_of $client app-web "$BIN/tcp" connect $to)" connected
			is "$w: another one of the same labels, $to" \
				"$(error_of $client app-x "$BIN/tcp" connect $to)" EACCES
			is "$w: what each rule counted, $to" \
				"$(($(hits web) - before)) $(($(hits trial) - trial)) $(($(hits seen) - seen)) $(($(hits rest) - rest))" \
				"1 1 2 1"
		done
		is "$w: another port" \
			"$(error_of $client app-web "$BIN/tcp" connect 4 10.77.1.2 7001)" EACCES
	done
	stop_app $tcp
	stop_app $APP
	serve 7053/udp --net $server --ip 10.77.1.1,fd77::1:1 --name names -- "$BIN/udp" serve 6 :: 7053
	for client in private host; do
		for method in connected sendto; do
			for to in "4 10.77.1.1" "6 fd77::1:1"; do
				w="$server server, $client client, $method, $to"
				is "$w: a datagram is answered, though all else is denied" \
					"$(error_of $client asker "$BIN/udp" ask $method $to 7053)" answered
				is "$w: of another one it is not" \
					"$(error_of $client app-x "$BIN/udp" ask $method $to 7053)" EACCES
			done
		done
	done
	stop_app $APP
done

# addresses outside ax
serve 7000 --net host --ip 10.77.1.1 --name server -- "$BIN/tcp" listen 4 0.0.0.0 7000
serve 7001 --ip 10.77.1.2 --name other -- "$BIN/tcp" listen 4 0.0.0.0 7001
config >"$T/outside.yaml" <<-EOC
	    - deny: {from: 0.0.0.0/0, to: [other, server], port: 7000-7001, name: in}
	    - deny: {from: guest, to: 198.51.100.0/24, name: out}
	    - allow: {from: app-web, to: 198.51.100.7, port: 7000, protocol: tcp, name: out-web}
EOC
like "programs outside reach it" "$(timeout 4 "$BIN/tcp" connect 4 10.77.1.2 7001 2>&1)" "^peer="
ok "other rules" ax config apply "$T/outside.yaml"
unlike "a rule keeps programs outside from a private app" \
	"$(timeout 2 "$BIN/tcp" connect 4 10.77.1.2 7001 2>&1)" "peer="
unlike "and from one in host mode" "$(timeout 2 "$BIN/tcp" connect 4 10.77.1.1 7000 2>&1)" "peer="
like "which counts" "$(hits in)" "^[2-9]"
is "apps are not outside" "$(error_of private app-web "$BIN/tcp" connect 4 10.77.1.2 7001)" connected
for client in private host; do
	is "a rule keeps an app from an address outside: $client" \
		"$(error_of $client guest "$BIN/tcp" connect 4 198.51.100.7 7000)" EACCES
	is "the same of datagrams: $client" \
		"$(error_of $client guest "$BIN/udp" ask sendto 4 198.51.100.7 7000)" EACCES
done
is "without egress nobody else leaves" \
	"$(error_of private other-one "$BIN/tcp" connect 4 198.51.100.7 7000)" ENETUNREACH
is "nor by another port" \
	"$(error_of private app-web "$BIN/tcp" connect 4 198.51.100.7 7002)" ENETUNREACH
before=$(hits out-web)
error_of private app-web timeout 1 "$BIN/tcp" connect 4 198.51.100.7 7000 >"$T/out"
is "but for whom a rule lets out" "$(($(hits out-web) - before))" 1

# counts go on
out=$(hits out)
sed -i 's/name: out}/name: out, protocol: tcp}/; s/    - deny: {from: 0.0.0.0/    - deny: {from: nobody}\n&/' "$T/outside.yaml"
ok "a rule is changed, and has another place" ax config apply "$T/outside.yaml"
is "its count is what it was" "$(hits out)" "$out"
error_of host guest "$BIN/tcp" connect 4 198.51.100.7 7000 >"$T/out"
is "and goes on" "$(hits out)" $((out + 1))
agent_stop
agent_again
is "the next agent goes on with it" "$(hits out)" $((out + 1))
is "and knows the app" "$(error_of host guest "$BIN/tcp" connect 4 198.51.100.7 7000)" EACCES
is "and counts" "$(hits out)" $((out + 2))
done_testing
