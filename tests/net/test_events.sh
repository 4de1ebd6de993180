#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# a processor each
# ax events: launch, listen, connect, accept, close with bytes, duration and RTT, exit.
. "$(dirname "$0")/lib.sh"
need curl jq python3
build_c tcp many

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
services:
  svc:
    ip: 10.77.200.1,fd77::200:1
    ports: ["80:8000"]
    backends: [web]
EOF
mkdir "$T/www"
head -c 300000 /dev/zero >"$T/www/file"

bg "$T/events" "$AX" --instance "$INST" events -f -o json
EVENTS=$BG
bg "$T/table" "$AX" --instance "$INST" events
TABLE=$BG
events_told "$T/events" "$T/table"

# event FILTER: the values of the events that match, one JSON array a line. (There are others, of what
# else connects on this machine.)
event() {
	jq -c "select((.local // \"10.77.\" | startswith(\"10.77.\")) and ($1)) | $2" <"$T/events"
}
for mode in private host; do
	: >"$T/events"
	serve 8000 --net $mode --name web --ip 10.77.1.1,fd77::1:1 -- \
		"$PYTHON" -m http.server --bind :: --directory "$T/www" 8000
	pid=$APP
	is "$mode: the file" "$(in_app --net $mode --name client --ip 10.77.1.9 -- sh -c \
		'curl -s --max-time 20 http://10.77.200.1/file | wc -c; exit 5')" 300000
	wait_for "[ \$(event '.event == \"close\"' .app | grep -c .) -ge 2 ]"
	stop_app $pid
	wait_for "[ \$(event '.event == \"exit\"' .app | sort -u | grep -c .) -ge 2 ]"
	is "$mode: launch" "$(event '.event == "launch"' .app | tr '\n' ' ')" '"web" "client" '
	like "$mode: listen" "$(event '.event == "listen" and .app == "web"' '[.local, .local_port]')" \
		',8000\]'
	is "$mode: connect, by the client, with the service that was asked" \
		"$(event '.event == "connect"' '[.app, .local, .remote_name, .service]')" \
		'["client","10.77.1.9","web","svc"]'
	is "$mode: accept, by the server" \
		"$(event '.event == "accept"' '[.app, .local, .local_port, .remote, .remote_name]')" \
		'["web","10.77.1.1",8000,"10.77.1.9","client"]'
	is "$mode: close of the client: it received the file" \
		"$(event '.event == "close" and .app == "client"' \
			'[.received > 300000 and .received < 301000, .sent > 50 and .sent < 500]')" \
		'[true,true]'
	is "$mode: close of the server: it sent the file" \
		"$(event '.event == "close" and .app == "web"' \
			'[.sent > 300000 and .sent < 301000, .received > 50 and .received < 500]')" \
		'[true,true]'
	is "$mode: close has a duration and a round trip time" \
		"$(event '.event == "close"' '[.duration_ms > 0 and .duration_ms < 5000, .rtt_us > 0]' |
			sort -u)" '[true,true]'
	wait_for "[ -n \"\$(event '.event == \"unlisten\"' 1)\" ]"
	is "$mode: unlisten" "$(event '.event == "unlisten"' .local_port | sort -u)" 8000
	is "$mode: exit has the app and, where it is known, the status" \
		"$(event '.event == "exit"' .app | sort | tr '\n' ' ')" '"client" "web" '
	is "$mode: times do not go back by more than a wake-up's delay" \
		"$(jq -s '[.[].time] | . as $t | [range(1; length) | $t[.] - $t[. - 1] > -1.5] | all' \
			<"$T/events")" true
done
wait_for "grep -q 'connect .*client 10.77.1.9:.* -> web' $T/table" # (each who reads is told for itself)
like "as a table" "$(cat "$T/table")" "connect +client 10.77.1.9:[0-9]+ -> web"

: >"$T/events"
serve 7000 --name server --ip 10.77.1.2 -- "$BIN/many" server 4 0.0.0.0 7000 500
in_app -- "$BIN/many" client 4 10.77.1.2 7000 500 >"$T/out" 2>&1
wait_for "[ \$(event '.event == \"close\"' 1 | grep -c .) -ge 1000 ]"
is "500 connections: every connect, accept and close" \
	"$(for e in connect accept close; do event ".event == \"$e\"" 1 | grep -c .; done | tr '\n' ' ')" \
	"500 500 1000 "
# --- bytes: payload, whoever ends the connection and however ---

# The server reads 10 bytes, which say who ends the connection, and answers with 5.
cat >"$T/bytes.py" <<'EOP'
import os, socket, struct, sys, time
def read(s, n):
    got = b""
    while len(got) < n:
        got += s.recv(n - len(got))
    return got
how = sys.argv[1]
if how == "serve":
    listener = socket.create_server(("", 7001))
    while True:
        s = listener.accept()[0]
        first = read(s, 10).decode().strip("-")
        s.sendall(b"12345")
        if first == "reset":
            time.sleep(0.1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif first != "server":
            s.recv(1)
        s.close()
s = socket.create_connection((sys.argv[2], 7001), 20)
s.sendall(how.ljust(10, "-").encode())
read(s, 5)
if how == "half":
    s.shutdown(socket.SHUT_WR)
if how == "wait":
    while not os.path.exists(sys.argv[3]):
        time.sleep(0.02)
elif how != "client":
    try:
        s.recv(1)
    except ConnectionResetError:
        pass
s.close()
EOP
for mode in private host; do
	run_app --net $mode --name bytes --ip 10.77.1.3 -- "$PYTHON" "$T/bytes.py" serve
	wait_for "ax get servers | grep -q 7001"
	for how in client server half reset; do
		: >"$T/events"
		in_app --net $mode --name asks -- "$PYTHON" "$T/bytes.py" $how 10.77.1.3
		wait_for "[ \$(event '.event == \"close\"' 1 | grep -c .) -ge 2 ]"
		is "$mode: 10 bytes and 5 are 10 and 5, ended by: $how" \
			"$(event '.event == "close"' '[.app, .sent, .received]' | sort | tr '\n' ' ')" \
			'["asks",10,5] ["bytes",5,10] '
	done
	bg "$T/waits" "$AX" --instance "$INST" run --net $mode --name asks -- \
		"$PYTHON" "$T/bytes.py" wait 10.77.1.3 "$T/seen.$mode"
	conns_seen() {
		seen=$(ax get conns -o json | jq -c '[.[] | [.local_name, .sent, .received]] | sort')
		[[ $seen == *'",10,5]'*'",5,10]'* ]]
	}
	wait_for conns_seen
	is "$mode: and in ax get conns" "$seen" '[["asks",10,5],["bytes",5,10]]'
	touch "$T/seen.$mode"
	wait "$BG"
	stop_app "$APP"
done
end "$EVENTS"
end "$TABLE"
ok "events end after -d" timeout 30 "$AX" --instance "$INST" events -d 200ms
is "counters say that none was lost" "$(ax status -o json | jq '.counters |
	to_entries | map(select(.key | test("lost"))) | map(.value) | add')" 0
done_testing
