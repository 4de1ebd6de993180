#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# What an app in the host's network has connected to a port before that is exposed gets nowhere by it:
# it is ended, so that the app connects anew and is asked whether it may have what is there now.
. "$(dirname "$0")/lib.sh"
need ip jq "$PYTHON"
build_c tcp udp

HOST4=198.51.100.1 LATE4=198.51.100.2
ip addr add $HOST4/32 dev lo
agent_start

# before.py GO ADDRESS@PORT...: a socket of UDP is connected to each; when GO is there, what it is told then,
# and what a new one is: a server's name, nothing, or an error.
cat >"$T/before.py" <<'EOP'
import os, socket, sys, time

go, where = sys.argv[1], sys.argv[2:]

def begin(address, port):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, int(port)))
    return s

def anew(address, port):
    try:
        return answers(begin(address, port))
    except OSError as e:
        return e.strerror

def answers(s):
    error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        return os.strerror(error)
    s.settimeout(2)
    try:
        s.send(b"question")
        return s.recv(100).decode().split()[0]
    except TimeoutError:
        return "nothing"
    except OSError as e:
        return e.strerror

sockets = {w: begin(*w.rsplit("@", 1)) for w in where}
print("connected", flush=True)
while not os.path.exists(go):
    time.sleep(0.02)
for w, s in sockets.items():
    print(w, "before:", answers(s), "| anew:", anew(*w.rsplit("@", 1)), flush=True)
EOP

# pending.py GO: a connection that a full server of its own at that very address has no room for. The server
# ends when TCP has just tried again, so that there are seconds until it does once more.
cat >"$T/pending.py" <<'EOP'
import os, socket, sys, time
server = socket.create_server(("127.0.0.1", 9100), backlog=0)
first = socket.create_connection(("127.0.0.1", 9100))
lost = socket.socket()
lost.setblocking(False)
lost.connect_ex(("127.0.0.1", 9100))
while lost.getsockopt(socket.IPPROTO_TCP, 11, 104)[2] < 2:  # TCP_INFO's tcpi_retransmits
    time.sleep(0.02)
server.close()
first.close()
print("connected", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
lost.settimeout(30)
try:
    lost.send(b"")  # (waits until it is connected, or not)
    print("reached:", lost.recv(100).decode().strip())
except OSError as e:
    print(e.strerror or str(e))
EOP

# begin NAME LABEL COMMAND...: an app in the host's network, or a program outside ax if LABEL is "", that
# says "connected"; what it writes is in $T/NAME.
begin() {
	local name=$1 label=$2
	shift 2
	if [ "$label" ]; then
		run_app --net host --name "$name" --labels "team=$label" --egress=all -- "$@"
		ln -s "$OUT" "$T/$name"
	else
		bg "$T/$name" "$@"
	fi
	wait_for "grep -qs connected '$T/$name'"
}
# result NAME LINES: what it said when it went on, so many lines.
result() {
	wait_for -t 60 "[ \$(wc -l <'$T/$1') -gt $2 ]"
	sed 1d "$T/$1"
}

AT="127.0.0.1@9100 ::1@9100 $HOST4@9100 $HOST4@9101"
for mode in private host; do
	go=$T/go.$mode
	for who in guest:two friend:one host:; do
		# shellcheck disable=SC2086 # fields
		begin "${who%:*}-$mode" "${who#*:}" "$PYTHON" "$T/before.py" "$go" $AT
	done
	serve 7000/udp --net $mode --ip 10.77.1.1,fd77::1:1 --name vault --labels team=one \
		-p 9100:7000/udp -p $HOST4:9101:7000/udp -- "$BIN/udp" serve 6 :: 7000 vault
	touch "$go"
	for at in $AT; do
		line="$(result "guest-$mode" 4 | grep -F "$at ")"
		unlike "$mode: who may not have it is told nothing by a socket of before, at $at" "$line" vault
		like "$mode: and is told that it has ended" "$line" "before: Software caused"
		like "$mode: who may is told so, too, and gets there anew, at $at" \
			"$(result "friend-$mode" 4 | grep -F "$at ")" "before: Software caused.* anew: vault"
		like "$mode: programs outside ax are as ever, at $at" \
			"$(result "host-$mode" 4 | grep -F "$at ")" "before: vault .*anew: vault"
	done
	stop_apps

	begin "pending-$mode" two "$PYTHON" "$T/pending.py" "$go.tcp"
	serve 7000 --net $mode --ip 10.77.1.1 --name vault --labels team=one -p 9100:7000 -- \
		"$BIN/tcp" listen 4 0.0.0.0 7000 vault
	touch "$go.tcp"
	unlike "$mode: a connection that was being made does not get there" "$(result "pending-$mode" 1)" reached
	stop_apps
done

# --- an address that is the machine's only later ---

ip route add local $LATE4/32 dev lo
serve 7000/udp --ip 10.77.1.1 --name vault --labels team=one -p 9100:7000/udp -- "$BIN/udp" serve 4 0.0.0.0 7000 vault
begin guest two "$PYTHON" "$T/before.py" "$T/go" $LATE4@9100
ip addr add $LATE4/32 dev lo
ok "an exposed port is there at an address that came" \
	wait_for "timeout 2 '$BIN/udp' ask sendto 4 $LATE4 9100 2>/dev/null | grep -q vault"
ok "who has connected there before is ended" wait_for "! ss -Hun dst $LATE4:9100 | grep -q ."
touch "$T/go"
unlike "and told nothing" "$(result guest 1)" vault
done_testing
