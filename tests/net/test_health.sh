#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Health checks: backends that stop answering are left out and come back, by TCP and by HTTP, of
# private and of host-mode apps and of fixed addresses; what is said about it; what is kept by the
# next agent; host_access: false.
. "$(dirname "$0")/lib.sh"
need curl jq
build_c tcp

# A server whose answer is what a file says: a status, or "hang", or "close", or "junk".
cat >"$T/server.py" <<'PY'
import socket, sys, time

family, address, port, name, mood = sys.argv[1:6]
s = socket.socket(socket.AF_INET6 if family == "6" else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((address, int(port)))
s.listen(64)
kept = []
while True:
    c, peer = s.accept()
    word = open(mood).read().strip()
    with open(mood + ".log", "a") as log:
        log.write("%s %s\n" % (peer[0], word))
    c.settimeout(2)
    try:
        if word == "hang":
            kept.append(c)
            continue
        request = c.recv(4096).decode()
        with open(mood + ".requests", "a") as log:
            log.write(repr(request) + "\n")
        if word == "junk":
            c.sendall(b"220 not a web server\r\n")
        elif word != "close":
            body = name + "\n"
            c.sendall(("HTTP/1.1 %s X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" %
                       (word, len(body), body)).encode())
    except OSError:
        pass
    c.close()
PY

mood() {
	echo "$2" >"$T/$1.new"
	mv "$T/$1.new" "$T/$1"
}
for b in h1 h2 h3 fixed; do
	mood $b 200
	: >"$T/$b.log"
	: >"$T/$b.requests"
	chmod 666 "$T/$b"*
done

config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
		  host_access: ${1:-true}
		policy:
		  rules:
		    - deny: {from: {tier: shy}, to: {tier: shy}}
		services:
		  web:
		    ip: 10.77.200.1,fd77::200:1
		    ports: ["80:8000"]
		    strategy: round-robin
		    backends: [h1, h2]
		    check: {type: http, path: /healthz, every: ${2:-200ms}, fall: 4, rise: 2, timeout: 200ms}
		  plain:
		    ip: 10.77.200.2
		    ports: ["80:8000"]
		    backends: [h1, h2]
		  tcp:
		    ip: 10.77.200.3
		    ports: ["80:8000"]
		    strategy: round-robin
		    backends: [{address: "10.77.1.1"}, {address: "127.0.0.1:7999"}]
		    check: {type: tcp, every: 200ms, fall: 2, rise: 1}
		  strict:
		    ip: 10.77.200.4
		    ports: ["53:53/udp"]
		    backends: [h1]
		    check: {type: http, port: 8000, status: 204, every: 200ms, fall: 1}
		  shy:
		    ip: 10.77.200.5
		    ports: ["80:8000"]
		    backends: [h3]
		    check: {type: tcp, every: 200ms, fall: 1}
		  waits:
		    ip: 10.77.200.6
		    ports: ["80:8000"]
		    backends: [later]
		    wait: 10s
		    check: {type: tcp, every: 200ms, fall: 1, rise: 1}
		apps:
		  later: {ip: 10.77.1.7}
	EOF
}

# states SERVICE: name or address, and state, of its backends
states() {
	ax get services -o json | jq -r --arg s "$1" '.[] | select(.name == $s) | .backends |
		map((.app // .address) + "=" + (.state // "-")) | sort | unique | join(" ")'
}
becomes() {
	ok "$1" wait_for "[ '$(printf %s "$3")' = \"\$(states $2)\" ]" ||
		diag "states of $2: $(states "$2")"
}
why() {
	ax get services -o json | jq -r --arg s "$1" --arg b "$2" '.[] | select(.name == $s) |
		.backends | map(select((.app // .address) == $b) | .why // "")[0]'
}
# hits COUNT ADDR [MODE]: which servers answered how often
hits() {
	in_app --net "${3:-private}" -- sh -c "for i in \$(seq $1); do
		curl -sS -g --max-time 20 http://$2/ 2>&1; done" |
		sort | uniq -c | awk '{ n = $1; $1 = ""; printf "%s=%s ", substr($0, 2), n }'
}

agent_start - < <(config)
bg "$T/events" "$AX" --instance "$INST" events -f -o json
EVENTS=$BG
serve 8000 --net private --name h1 --ip 10.77.1.1,fd77::1:1 -- "$PYTHON" "$T/server.py" 6 :: 8000 h1 "$T/h1"
serve 8000 --net host --name h2 --ip 10.77.1.2,fd77::1:2 -- "$PYTHON" "$T/server.py" 6 :: 8000 h2 "$T/h2"
H2=$APP

becomes "both are up" web "h1=up h2=up"
is "a service without a check says nothing of it" "$(states plain)" "h1=- h2=-"
is "both serve" "$(hits 8 10.77.200.1)$(hits 8 "[fd77::200:1]")" "h1=4 h2=4 h1=4 h2=4 "
ok "both families are checked" wait_for "grep -q 10.77.0.1 $T/h1.log && grep -q fd77::1 $T/h1.log"
is "what is asked" "$(grep -m 1 healthz "$T/h1.requests")" \
	"'GET /healthz HTTP/1.0\\r\\nHost: web\\r\\nUser-Agent: ax-check\\r\\nAccept: */*\\r\\nConnection: close\\r\\n\\r\\n'"

# each way to be unwell, of a private and of a host-mode backend
for b in h1 h2; do
	other=h$((3 - ${b#h}))
	for word in 503 hang close junk 404; do
		mood $b $word
		[ $b = h1 ] && want="h1=down h2=up" || want="h1=up h2=down"
		becomes "$b is down when it answers with: $word" web "$want"
		for client in private host; do
			is "$word: $client clients get the other one" "$(hits 4 10.77.200.1 $client)" "$other=4 "
		done
		case $word in
		[0-9]*) like "$word: and why" "$(why web $b)" "status $word" ;;
		hang) like "$word: and why" "$(why web $b)" "no answer in time" ;;
		close) like "$word: and why" "$(why web $b)" "closed without an answer" ;;
		junk) like "$word: and why" "$(why web $b)" "not HTTP" ;;
		esac
		mood $b 302
		becomes "$b is up again with 302" web "h1=up h2=up"
		mood $b 200
	done
	is "and serves" "$(hits 8 10.77.200.1)" "h1=4 h2=4 "
done
is "a service without a check has them all the time" "$(states plain)" "h1=- h2=-"

mood h1 503
mood h2 503
becomes "all are down" web "h1=down h2=down"
for client in private host; do
	is "$client: then connects fail at once" \
		"$(in_app --net $client -- "$BIN/tcp" connect 4 10.77.200.1 80)" "error connect EHOSTUNREACH"
done
mood h1 200
mood h2 200
becomes "and come back" web "h1=up h2=up"

becomes "status: only that one is good" strict "h1=down"
mood h1 204
becomes "status: it is" strict "h1=up"
mood h1 200

# fixed addresses; the port is the backend's own
becomes "a fixed address where nobody listens is down" tcp "10.77.1.1=up 127.0.0.1=down"
like "and why" "$(why tcp 127.0.0.1)" "Connection refused"
is "it gets nobody" "$(hits 4 10.77.200.3 host)" "h1=4 "
bg "$T/fixed.out" "$PYTHON" "$T/server.py" 4 127.0.0.1 7999 fixed "$T/fixed"
FIXED=$BG
becomes "it is up when somebody does" tcp "10.77.1.1=up 127.0.0.1=up"
is "and gets its share" "$(hits 4 10.77.200.3 host)" "fixed=2 h1=2 "
end "$FIXED"
becomes "and down again" tcp "10.77.1.1=up 127.0.0.1=down"

# what was said
mood h1 503
becomes "h1 is down" web "h1=down h2=up"
wait_for "jq -c 'select(.event == \"health\" and .app == \"h1\" and .state == \"down\")' <$T/events | grep -q ."
is "events: down and why" "$(jq -c 'select(.event == "health" and .service == "web" and
	.app == "h2" and .state == "down" and .local == "10.77.1.2") | [.local_port, .why]' <"$T/events" | head -n 1)" \
	'[8000,"status 503"]'
like "events: up" "$(jq -c 'select(.event == "health" and .state == "up") | .service' <"$T/events" | sort -u)" '"web"'
like "the log says it" "$(cat "$T/$INST.log")" "service web: the backend h1 10.77.1.1:8000 is down: status 503"
like "the table says it" "$(ax get services)" "down"

# the next agent knows
agent_kill9
config true 60s >"$T/$INST.yaml"
agent_again
is "what is down stays so for the next agent" "$(states web)" "h1=down h2=up"
is "and gets nobody" "$(hits 4 10.77.200.1)" "h2=4 "
config >"$T/fast.yaml"
like "another check is a change" "$(ax config apply --dry-run "$T/fast.yaml")" '~ service web: check'
ok "it is applied" ax config apply "$T/fast.yaml"
becomes "which finds out for itself" web "h1=down h2=up"
mood h1 200
becomes "also that it is back" web "h1=up h2=up"

# an app that ends and comes back
stop_app "$H2"
becomes "an app that is gone is no backend" web "h1=up"
mood h2 503
serve 8000 --net host --name h2 --ip 10.77.1.2,fd77::1:2 -- "$PYTHON" "$T/server.py" 6 :: 8000 h2 "$T/h2"
becomes "a new one is checked" web "h1=up h2=down"
mood h2 200
becomes "and comes back" web "h1=up h2=up"

# an app of the config that does not run is waited for
is "an app that is only declared is not checked" "$(states waits)" "10.77.1.7=-"
run_app -- sh -c "curl -sS --max-time 25 http://10.77.200.6/"
client=$APP out=$OUT
sleep 0.5
mood h3 200
serve 8000 --name later -- "$PYTHON" "$T/server.py" 4 0.0.0.0 8000 later "$T/h3"
LATER=$APP
wait "$client"
is "a connect that waits gets it" "$(cat "$out")" later
becomes "then it is checked" waits "later=up"
stop_app "$LATER"

# no way from the host
serve 8000 --net host --name h3 --ip 10.77.1.3 --labels tier=shy -- \
	"$PYTHON" "$T/server.py" 4 0.0.0.0 8000 h3 "$T/h3"
becomes "with host access everything is checked" shy "h3=up"
config false >"$T/closed.yaml"
ok "host_access: false is applied" ax config apply "$T/closed.yaml"
sleep 1
is "private and host-mode apps are checked all the same" "$(states web)" "h1=up h2=up"
ok "from their own address" wait_for "grep -q '10.77.1.1 ' $T/h1.log && grep -q '10.77.1.2 ' $T/h2.log"
mood h1 503
mood h2 503
becomes "and found down" web "h1=down h2=down"
mood h1 200
mood h2 200
becomes "and up" web "h1=up h2=up"
is "where policy forbids it there is no state" "$(states shy)" "h3=-"
like "and that is said" "$(why shy h3)" "not checked: host_access is off"
ok "host access is back" ax config apply "$T/fast.yaml"
becomes "and so is the check" shy "h3=up"

# costs nothing without
default_config >"$T/none.yaml"
ok "no service, no check" ax config apply "$T/none.yaml"
: >"$T/h1.log"
sleep 0.6
is "nobody is asked any more" "$(cat "$T/h1.log")" ""
is "the timer is off" "$(cat "/proc/$AGENT/fdinfo/"* 2>/dev/null |
	awk '/^it_value/ && !/\(0, 0\)/' | wc -l)" 0
end "$EVENTS"
for bad in "{type: tcp, path: /}" "{type: udp}" "{}" "{port: 80}" "{type: http, path: x}" "http x" \
	"{type: http, status: 99}" "{type: tcp, every: 10ms}" "{type: tcp, timeout: 3s}" \
	"{type: tcp, fall: 0}" "{type: tcp, rise: 101}" "{type: tcp, timeout: 0}"; do
	fails "refused: check: $bad" ax config check <(
		echo "services: {s: {ports: [80], backends: [a], check: $bad}}")
done
fails "refused: a check without a port to go to" ax config check <(
	echo "services: {s: {ports: [80/udp], backends: [a], check: tcp}}")
for good in tcp http "http /x" "{type: tcp, every: 100ms}" "~"; do
	ok "check: $good" ax config check <(
		echo "services: {s: {ports: [80], backends: [a], check: $good}}")
done
done_testing
