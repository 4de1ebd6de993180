#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# An app that begins and ends to listen all the time costs etcd two writes a second: what is written is what holds
# then, and others wait for none of it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nodes.sh"
need python3
build_c tcp

cat >"$T/busy.py" <<'PY'
import os, socket, sys, time

go, stop, rounds = sys.argv[1:4]

def listen(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port))
    s.listen()
    return s

while not os.path.exists(go):
    time.sleep(0.02)
n = 0
while not os.path.exists(stop):
    listen(7200 + n % 2).close()
    n += 1
    if n % 50 == 0:
        with open(rounds, "w") as f:
            print(n, file=f)
last = listen(7300)
time.sleep(1000)
PY

# writes ID: how often an app of n1 was written since the watch began
writes() {
	jq -r '.result.events[]?.kv.key | @base64d' "$T/watch" | grep -cx "/ax/east/apps/n1/$1"
}
id_of() {
	ax get apps -o json "$1" | jq -r '.[0].id'
}
# ports NAME: where it listens, as etcd has it
ports() {
	lan_etcd range '{key: ("/ax/east/apps/" | @base64), range_end: ("/ax/east/apps0" | @base64)}' |
		jq -r --arg n "$1" '.kvs[]?.value | @base64d | fromjson | select(.name == $n).ports[].port' | tr '\n' ' '
}

lan_make
lan_etcd_start
node_make n1 11
node_start n1
ok "the node is there" wait_for -t 30 '[ "$(node_state n1)" = connected ] && [ "$(node_state n1 ".blocks | length")" = 1 ]'
touch "$T/rounds"
chmod 666 "$T/rounds"
on n1
run_app --name busy -- "$PYTHON" "$T/busy.py" "$T/go" "$T/stop" "$T/rounds"
launched busy
serve 7001 --name quiet -- "$BIN/tcp" listen 4 0.0.0.0 7001 quiet
ok "etcd knows both" wait_for '[ "$(ports quiet)" = "7001 " ]'

bg "$T/watch" curl -sN -d "$(jq -nc '{create_request: {key: ("/ax/east/apps/" | @base64), range_end: ("/ax/east/apps0" | @base64)}}')" \
	"$ETCD_URL/v3/watch"
WATCH=$BG
ok "etcd tells of writes" wait_for 'grep -q created "$T/watch"'
BUSY=$(id_of busy) FROM=${EPOCHREALTIME/./}
touch "$T/go"
for i in 1 2 3; do
	serve 710$i --name "other$i" -- "$BIN/tcp" listen 4 0.0.0.0 710$i "other$i"
	ok "meanwhile another app is written ($i)" wait_for "[ \"\$(ports other$i)\" = '710$i ' ]"
done
sleep 6
ok "one has begun to listen hundreds of times" wait_for -t 60 '[ "$(cat "$T/rounds")" -ge 500 ]'
WRITES=$(writes "$BUSY") TOOK=$(((${EPOCHREALTIME/./} - FROM) / 1000))
diag "$WRITES writes in $TOOK ms, of $(cat "$T/rounds") times"
MOST=$((4 + TOOK / 500 + 1)) # (it was written when it was launched, too)
ok "that are no more than $MOST writes" test "$WRITES" -le $MOST
ok "and it is written all the time" test "$WRITES" -ge 4
touch "$T/stop"
ok "what holds in the end is what etcd has" wait_for '[ "$(ports busy)" = "7300 " ]'
BEGAN=$(writes "$BUSY")
sleep 2
is "and then nothing is written" "$(writes "$BUSY")" "$BEGAN"
is "the others are as they were" "$(ports quiet)$(ports other1)$(ports other2)$(ports other3)" "7001 7101 7102 7103 "

stop_apps
ok "all are gone at once" wait_for '[ -z "$(ports busy)$(ports other3)" ]'
end "$WATCH"
nodes_flush n1
nodes_end n1
done_testing
