#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 300
# Lists that drop by default let exposed ports through when told so: apps of both modes and services,
# whichever of list and agent comes first, as long as the ports are exposed; and what explain says.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/xdp.sh
. "$(dirname "$0")/xdp.sh"
need ip jq "$PYTHON"
build_c tcp udp

peer_host
config() {
	cat <<-EOF2
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		${1:-}
	EOF2
}
from_peer() {
	timeout 10 nsenter -t "$PEER_PID" -n "$@" 2>&1
}
tcp() {
	from_peer "$BIN/tcp" connect "$1" "$2" "$3"
}
# passes WHAT PORT, blocked WHAT PORT: TCP by both families
passes() {
	like "$1, IPv4" "$(tcp 4 198.51.100.1 "$2")" "^peer="
	like "$1, IPv6" "$(tcp 6 2001:db8:2::1 "$2")" "^peer="
}
blocked() {
	is "$1, IPv4" "$(timeout 1 nsenter -t "$PEER_PID" -n "$BIN/tcp" connect 4 198.51.100.1 "$2" 2>&1)" ""
	is "$1, IPv6" "$(timeout 1 nsenter -t "$PEER_PID" -n "$BIN/tcp" connect 6 2001:db8:2::1 "$2" 2>&1)" ""
}
# explains WHAT PACKET VERDICT REASON
explains() {
	like "explain: $1" "$(xdp explain xc0 --packet "$2" 2>&1)" "verdict +$3"$'\n'".*reason +$4"
}

# --- the list is there before any agent ---

cat >"$T/rules.yaml" <<'EOF'
default: drop
classes: {exposed: pass}
rules:
  - {name: bad, src: 198.51.100.66, action: drop}
EOF
ok "a list with exposed: pass" xdp load xc0 --rules "$T/rules.yaml"
like "the list is shown with it" "$(xdp rule list xc0 -o yaml)" "exposed: pass"
explains "nothing is exposed" 'tcp 198.51.100.2:5 > 198.51.100.1:8080' drop "no rule matches it"
agent_start - < <(config)
for mode in private host; do
	serve 80 --net $mode --name web --ip 10.77.1.1,fd77::1:1 -p 8080:80 -p 198.51.100.1:8081:80 -p xc0:8082:80 -- \
		"$BIN/tcp" listen 6 :: 80 hello
	passes "$mode: at all addresses" 8080
	like "$mode: at one address" "$(tcp 4 198.51.100.1 8081)" "^peer="
	passes "$mode: by this interface" 8082
	blocked "$mode: another port" 8083
	explains "an exposed port" 'tcp 198.51.100.2:5 > 198.51.100.1:8080' pass \
		"exposed: let through although the default would drop it"
	explains "another machine's" 'tcp 198.51.100.2:5 > 198.51.100.9:8080' drop "no rule matches it"
	explains "whom a rule drops" 'tcp 198.51.100.66:5 > 198.51.100.1:8080' drop "the first rule that matches it"
	agent_kill9
	passes "$mode: without an agent" 8080
	agent_again
	passes "$mode: with the next agent" 8080
	stop_apps
	wait_for "! ax get apps | grep -q web"
	explains "$mode: when the app has ended" 'tcp 198.51.100.2:5 > 198.51.100.1:8080' drop "no rule matches it"
done
like "they are counted" "$(xdp stats xc0)" "exposed"

# --- the list comes when ports are exposed already ---

ok "without the list" xdp unload xc0
serve 80 --name web --ip 10.77.1.2,fd77::1:2 -p 8080:80 -- "$BIN/tcp" listen 6 :: 80 hello
passes "no list" 8080
echo "rules: []" >"$T/none.yaml"
ok "a list that does not say so" xdp load xc0 --default drop
blocked "as the rules say" 8080
ok "one that does, by the command's word" xdp apply xc0 --rules "$T/none.yaml" --default drop --exposed pass
passes "the next list" 8080
ok "and one that drops them" xdp apply xc0 --rules "$T/none.yaml" --exposed drop
blocked "exposed: drop" 8080
ok "off with it" xdp unload xc0

# --- an address that comes later; by the config ---

with_list='xdp: {interfaces: {xc0: {default: drop, classes: {exposed: pass}}}}'
ok "the same in the config" ax config apply <(config "$with_list")
passes "the config's list" 8080
ip addr add 198.51.100.7/32 dev xc0
from_peer ip route add 198.51.100.7 via 198.51.100.1 >/dev/null
wait_for 'tcp 4 198.51.100.7 8080 | grep -q ^peer='
like "an address that comes later" "$(tcp 4 198.51.100.7 8080)" "^peer="
stop_apps

# --- UDP, and services ---

for mode in private host; do
	serve 53/udp --net $mode --name udp --ip 10.77.1.4,fd77::1:4 -p 5353:53/udp -- "$BIN/udp" serve 6 :: 53 echo
	like "$mode: UDP" "$(from_peer "$BIN/udp" ask connected 4 198.51.100.1 5353)" "from=198.51.100.1:5353 echo"
	like "$mode: UDP on IPv6" "$(from_peer "$BIN/udp" ask connected 6 2001:db8:2::1 5353)" "from=\[2001:db8:2::1\]:5353 echo"
	stop_apps
done
svc='services: {both: {ports: ["90:80"], backends: [{app: b1}], expose: ["8090:90"]}}'
ok "a service is exposed" ax config apply <(config "$with_list"$'\n'"$svc")
serve 80 --name b1 --ip 10.77.2.1,fd77::2:1 -- "$BIN/tcp" listen 6 :: 80 b1
passes "a service" 8090
stop_apps
agent_stop
done_testing
