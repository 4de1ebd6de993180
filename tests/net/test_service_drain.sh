#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# Backends that drain: they get no new connections, those that are open finish, or are ended at the
# deadline; with nginx and many connections no request fails.
. "$(dirname "$0")/lib.sh"
need nginx setpriv "$PYTHON"
build_c tcp
CONNECTIONS=${CONNECTIONS:-500} # of each client; the issue's 10,000 take a machine for themselves

# Keeps N connections busy: each asks 20 times, and is then made anew; until its standard input ends.
# A line for each server that answered, with how many answers, and for each failure.
cat >"$T/keepalive.py" <<'EOF'
import collections, os, selectors, socket, sys, time
addr, port, n, stop = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
family = socket.AF_INET6 if ":" in addr else socket.AF_INET
request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
seen, sel = collections.Counter(), selectors.DefaultSelector()

def start():
    s = socket.socket(family, socket.SOCK_STREAM)
    try:
        s.connect((addr, port))
        s.sendall(request)
        sel.register(s, selectors.EVENT_READ, [0, b""])
    except OSError as e:
        seen["failed: connect " + str(e)] += 1
        s.close()

def answered(s, state, text):
    seen[text.split(b"\r\n\r\n", 1)[1].decode().strip()] += 1
    state[0], state[1] = state[0] + 1, b""
    if state[0] < 20:
        s.sendall(request)
        return
    sel.unregister(s)
    s.close()
    if not os.path.exists(stop):
        start()

for _ in range(n):
    start()
print("open", flush=True)
while sel.get_map():
    for key, _ in sel.select(1):
        s, state = key.fileobj, key.data
        try:
            data = s.recv(4096)
            if not data:
                raise OSError("closed")
            state[1] += data
            if state[1].endswith(b"\n"):
                answered(s, state, state[1])
        except OSError as e:
            seen["failed: " + str(e)] += 1
            sel.unregister(s)
            s.close()
print(" ".join(f"{k}={seen[k]}" for k in sorted(seen)), flush=True)
EOF

cat >"$T/hold.py" <<'EOF'
import errno, socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("held", flush=True)
try:
    s.recv(1)
    print("ended: closed", flush=True)
except OSError as e:
    print("ended", errno.errorcode[e.errno], flush=True)
EOF

web() { # NAME
	cat >"$T/$1.conf" <<-EOF
		daemon off; worker_processes 1; pid $T/$1.pid; error_log /dev/null;
		worker_rlimit_nofile 65536;
		events { worker_connections 30000; }
		http {
			access_log off; keepalive_requests 100000; client_body_temp_path $T/$1.body;
			proxy_temp_path $T/$1.p; fastcgi_temp_path $T/$1.f; uwsgi_temp_path $T/$1.u; scgi_temp_path $T/$1.s;
			server { listen 8080; listen [::]:8080; return 200 "$1\n"; }
		}
	EOF
}
ulimit -n 65536
for name in p1 p2 h1 h2; do web $name; done
agent_start - <<-EOF
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	services:
	  webp: {ip: "10.77.9.1,fd77::9:1", ports: ["80:8080"], backends: [p1, p2], drain: 2s}
	  webh: {ip: "10.77.9.2,fd77::9:2", ports: ["80:8080"], backends: [h1, h2]}
	  hold: {ip: "10.77.9.3,fd77::9:3", ports: ["80:8080"], backends: [p1, p2], drain: 1s}
	  other: {ip: "10.77.9.4,fd77::9:4", ports: ["80:8080"], backends: [p1]}
EOF
for name in p1 p2 h1 h2; do
	mode=private
	[ ${name:0:1} = p ] || mode=host
	serve 8080 --net $mode --name $name -- nginx -p "$T" -c "$T/$name.conf"
	eval "app_$name=\$APP"
done

# open_to NAME: connections that are open to it
open_to() {
	ax get conns -o json | jq --arg n "$1" '[.[] | select(.remote_name == $n and .service != null and
		.state == "established")] | length'
}

# --- no request fails ---

for case in "private webp p1 p2 10.77.9.1" "host webh h1 h2 10.77.9.2" "host webp p2 p1 fd77::9:1"; do
	# shellcheck disable=SC2086
	set -- $case
	rm -f "$T/stop"
	run_app --net "$1" -- "$PYTHON" "$T/keepalive.py" "$5" 80 "$CONNECTIONS" "$T/stop"
	client=$APP said=$OUT
	wait_for -t 60 "grep -q open $said"
	wait_for -t 30 "[ \$(open_to $3) -gt 0 ]"
	if [ "$2" = webh ]; then
		ok "$case: $3 drains, without a deadline" ax service drain "$2" "$3"
	else
		ok "$case: $3 drains" ax service drain "$2" "$3" --deadline 10m
		agent_kill9
		agent_again
	fi
	like "it is shown" "$(ax get services -o wide "$2" 2>&1)" "$3 [0-9a-f.:]+ draining"
	wait_for -t 60 "[ \$(open_to $3) -eq 0 ]"
	is "what was open has ended" "$(open_to "$3")" 0
	touch "$T/stop"
	wait_for -t 60 "! alive $client"
	like "both have answered, and no request of $CONNECTIONS connections has failed" \
		"$(tail -n 1 "$said")" "^[ph]1=[0-9]+ [ph]2=[0-9]+\$"
	run_app --net "$1" -- "$PYTHON" "$T/keepalive.py" "$5" 80 20 "$T/stop"
	wait_for "! alive $APP"
	is "nothing new comes" "$(tail -n 1 "$OUT")" "$4=400"
	ok "and it is undone" ax service drain "$2" "$3" --undo
done
for i in 1 2 3; do ax service drain webp p1 >/dev/null && ax service drain webp p1 --undo; done
is "a service whose only backends drain has none" "$(
	ax service drain webh h1 && ax service drain webh h2
	ax run -- "$BIN/tcp" connect 4 10.77.9.2 80 2>&1 | grep -o "error connect.*"
)" "error connect EHOSTUNREACH"
ax service drain webh h1 --undo
ax service drain webh h2 --undo

# --- the deadline ---

ok "p2 drains, so that p1 gets what comes" ax service drain hold p2
p1=$(ax get apps -o json | jq -r '.[] | select(.name == "p1") | .ip4, .ip6')
for mode in private host; do
	for family in 4 6; do
		if [ $family = 4 ]; then
			ends=("10.77.9.3 80" "10.77.9.4 80" "${p1%$'\n'*} 8080")
		else
			ends=("fd77::9:3 80" "fd77::9:4 80" "${p1#*$'\n'} 8080")
		fi
		outs=() clients=()
		for to in "${ends[@]}"; do
			# shellcheck disable=SC2086
			run_app --net $mode -- "$PYTHON" "$T/hold.py" $to
			outs+=("$OUT") clients+=("$APP")
			wait_for "grep -q held $OUT"
		done
		ok "$mode, IPv$family: p1 drains, by the service's deadline" ax service drain hold p1
		like "which is shown" "$(ax get services -o json hold)" '"left_ms": [0-9]+'
		agent_kill9
		agent_again
		wait_for "grep -q ended ${outs[0]}"
		is "the next agent ends the connection" "$(tail -n 1 "${outs[0]}")" "ended ECONNABORTED"
		is "one through another service is left alone, and one to the app itself" \
			"$(tail -qn 1 "${outs[@]:1}" | xargs)" "held held"
		for i in 1 2; do end "${clients[$i]}"; done
		unlike "no deadline is left" "$(ax get services -o json hold)" left_ms
		ok "undone" ax service drain hold p1 --undo
	done
done
bg "$T/events" "$AX" --instance "$INST" events
wait_for "ax run -- true; [ -s $T/events ]"
run_app -- "$PYTHON" "$T/hold.py" 10.77.9.3 80
wait_for "grep -q held $OUT"
ok "a deadline of the command" ax service drain hold p1 --deadline 300ms
wait_for "grep -q drained $T/events"
like "events tell of it" "$(cat "$T/events")" "drain .*drained.*p1.*service hold.*1 ended"
end "$BG"
ok "undone" ax service drain hold p1 --undo

# --- what is refused ---

refused() { # WHAT PATTERN COMMAND...
	local what=$1 pattern=$2
	shift 2
	like "$what" "$(ax service drain "$@" 2>&1 && echo "done")" "$pattern"
}
refused "a service that is not there" "there is no service nobody" nobody p1
refused "a backend that is none" "service webp has no backend h1" webp h1
refused "an undo of nothing" "does not drain" webp p2 --undo
refused "no deadline at all" "cannot be 0" webp p2 --deadline 0
fails "who is not root" setpriv --reuid 65534 --regid 65534 --clear-groups "$AX" --instance "$INST" service drain webp p1
ax service drain hold p2 --undo
ok "nothing is recorded any more" [ ! -e "/run/ax/$INST/drains" ]
done_testing
