#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Apps that are started by connections, and programs outside ax: the host's own and those of another machine start
# them too, by their addresses, by services and by exposed ports, and are connected at TCP's next try. Who may not have
# the app is refused and starts nothing, and so is who comes for one that does not start.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/outside.sh"
. "$(dirname "$0")/on_connect.sh"
build_c tcp

ip addr add 203.0.113.1/24 dev wan0
ip link set wan0 up
outside ip addr add 203.0.113.2/24 dev wan1
outside ip link set wan1 up
outside ip route add default via 203.0.113.1

config() { # [HOST-ACCESS]
	cat <<-END
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
		apps:
		  hosted: {command: "$BIN/tcp listen 6 :: 7000 hosted", ip: "10.77.1.1,fd77::1:1", net: host, start: on-connect}
		  priv: {command: "$BIN/tcp listen 6 :: 7000 priv", ip: "10.77.1.2,fd77::1:2", start: on-connect}
		  broken: {command: "false", ip: "10.77.1.3,fd77::1:3", net: host, start: on-connect}
		  slow: {command: "sh -c 'sleep 1; exec $BIN/tcp listen 6 :: 7000 slow'", ip: "10.77.1.4", net: host, start: on-connect}
		services:
		  one: {ip: "10.77.200.1,fd77::200:1", ports: ["80:7000"], backends: [hosted], expose: ["8081:80"]}
		  two: {ip: "10.77.200.2,fd77::200:2", ports: ["80:7000"], backends: [priv], expose: ["8082:80"]}
		policy:
		  rules:
		    - deny: {from: 203.0.113.2/32, to: hosted, port: 7000}
	END
}
agent_start - < <(config)

starts "a host-mode app" hosted "$BIN/tcp" connect 4 10.77.1.1 7000
starts "by IPv6" hosted "$BIN/tcp" connect 6 fd77::1:1 7000
starts "a private app" priv "$BIN/tcp" connect 4 10.77.1.2 7000
starts "by IPv6" priv "$BIN/tcp" connect 6 fd77::1:2 7000
starts "a socket that does not wait" hosted "$BIN/tcp" connect 4 10.77.1.1 7000 -n
starts "a service of a host-mode app" hosted "$BIN/tcp" connect 4 10.77.200.1 80
starts "by IPv6" hosted "$BIN/tcp" connect 6 fd77::200:1 80
starts "a service of a private app" priv "$BIN/tcp" connect 4 10.77.200.2 80
starts "its exposed port" priv "$BIN/tcp" connect 4 127.0.0.1 8082
starts "the other one's" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
starts "from another machine" priv outside "$BIN/tcp" connect 4 203.0.113.1 8082
starts "and a host-mode app by its address" slow outside "$BIN/tcp" connect 4 10.77.1.4 7000
starts "one that takes its time" slow "$BIN/tcp" connect 4 10.77.1.4 7000

# --- who may not ---

stopped hosted
is "who is denied is refused" "$(outside "$BIN/tcp" connect 4 10.77.1.1 7000 2>&1)" "error connect ECONNREFUSED"
is "by a service, too" "$(outside "$BIN/tcp" connect 4 203.0.113.1 8081 2>&1)" "error connect ECONNREFUSED"
is "and starts nothing" "$(runs hosted)" 0
is "who comes for one that does not start is refused" "$(timeout 20 "$BIN/tcp" connect 4 10.77.1.3 7000 2>&1)" "error connect ECONNREFUSED"
is "and was told" "$(grep -c 'the app broken does not start' "$T/$INST.log")" 1

# --- many knock ---

stopped priv
before=$(grep -c 'the app priv is started' "$T/$INST.log")
for _ in $(seq 40); do
	"$BIN/tcp" connect 4 10.77.1.2 7000 >>"$T/many" 2>&1 &
	clients+=($!)
done
wait "${clients[@]}"
is "forty at once are all connected" "$(sed 's/.* priv .*/priv/' "$T/many" | sort | uniq -c | xargs)" "40 priv"
is "to one that was started once" "$(($(grep -c 'the app priv is started' "$T/$INST.log") - before))" 1

# --- the door ---

door=$(ss -Hltn src 127.0.0.1 | awk '$2 == 2 && $3 == 1 { sub(".*:", "", $4); print $4 }')
like "there is a door" "$door" '^[0-9]+$'
is "nobody gets in" "$(timeout 2 "$BIN/tcp" connect 4 127.0.0.1 "$door" 2>&1)" ""
if ss -HK dport = "$door" 2>/dev/null | grep -q . ; then
	stopped hosted
	timeout 3 "$BIN/tcp" connect 4 10.77.1.1 7000 >/dev/null 2>&1
	starts "one whose queue was emptied by root is made anew" hosted "$BIN/tcp" connect 4 10.77.1.1 7000
fi
agent_kill9
agent_again
ax stop slow >/dev/null
stopped slow
starts "with the next agent" slow "$BIN/tcp" connect 4 10.77.1.4 7000

# --- nobody of the host may ---

stopped hosted
config false >"$T/closed.yaml"
ok "without host_access" ax config apply "$T/closed.yaml"
is "the host is refused" "$("$BIN/tcp" connect 4 10.77.1.1 7000 2>&1)" "error connect ECONNREFUSED"
is "and starts nothing" "$(runs hosted)" 0
starts "but by an exposed port" hosted "$BIN/tcp" connect 4 127.0.0.1 8081
run_app --net host -- "$BIN/tcp" connect 4 10.77.1.2 7000
wait "$APP"
like "apps are connected as ever" "$(cat "$OUT")" priv
default_config >"$T/none.yaml"
ok "all go" ax config apply "$T/none.yaml"
wait_for '[ -z "$(ax get apps -o name)" ]'
done_testing
