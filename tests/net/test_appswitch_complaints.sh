#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# What users of AppSwitch and of its peers complained about: each is impossible here, shown with the
# programs that people run. (What needs more than a few lines has a script of its own; these are
# the complaints by name.)
. "$(dirname "$0")/lib.sh"
need dig curl jq go bpftool "$PYTHON"
build_c tcp udp
build_go web

agent_start - <<EOF
agent:
  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
apps:
  only4: {ip: 10.77.3.4}
services:
  empty: {ip: 10.77.200.1, ports: [80, "53:7000/udp"], backends: [nobody]}
  shop: {ip: "10.77.200.2,fd77::200:2", ports: [80, "5300:7000/udp"], backends: [one, two]}
policy:
  rules:
    - deny: {from: {role: guest}, to: shop, port: 80, name: closed}
EOF

# --- AppSwitch ---

serve 80 --name one --ip 10.77.1.1,fd77::1:1 -- "$BIN/web" serve :80 one
one=$APP
for mode in private host; do
	like "IPv4 only: IPv6 works, $mode" \
		"$(in_app --net $mode -- curl -sS -g --max-time 20 "http://[fd77::1:1]/")" "^one you="
	like "getsockname and getpeername are faked: a server sees the client's own address, $mode" \
		"$(in_app --net $mode --ip 10.77.1.9,fd77::1:9 -- curl -sS --max-time 20 http://shop/)" 'you=(10\.77\.1\.9|\[fd77::1:9\]):'
	is "isolation is labels only: a rule has the last word, for one port, $mode" \
		"$(in_app --net $mode --labels zone=default,role=guest -- "$BIN/tcp" connect 4 10.77.1.1 80 2>&1)" \
		"error connect EACCES"
done
run_app --name talks --ip 10.77.1.8 -- "$PYTHON" -c "
import socket, time, os
s = socket.create_connection(('10.77.1.1', 80))
print('open', flush=True)
while not os.path.exists('$T/go'):
    time.sleep(0.05)
s.send(b'GET / HTTP/1.0\r\n\r\n')
print(s.recv(1000).split(b'\r\n')[0].decode(), flush=True)"
talks=$OUT talker=$APP
wait_for "grep -q open $talks"
like "one cannot see whom a connection is with: it is listed, with both addresses" \
	"$(ax get conns -o json | jq -c '.[]')" '10.77.1.8.*10.77.1.1|10.77.1.1.*10.77.1.8'
agent_kill9
touch "$T/go"
ok "without its daemon nothing works: connections go on" wait_for "grep -q '200 OK' $talks"
ok "and end" wait_for "! alive $talker"
agent_again
like "state is lost with it: the next agent has what was there" \
	"$(in_app -- curl -sS --max-time 20 http://one/)" "^one you="

like "names get addresses that mean nothing outside: it is the app's own, in both directions" \
	"$(in_app -- sh -c "dig +short -x 10.77.1.1")" "^one\.ax\.internal\.$"
is "only root may run anything: the command is whose it is to be, without any capability" \
	"$(in_app --user nobody -- sh -c 'id -un; sed -n "s/^CapEff:[[:space:]]*//p" /proc/self/status' | xargs)" \
	"nobody 0000000000000000"
echo "apps: {odd: {ip: 1.2.3}}" >"$T/odd.yaml"
like "there is no config file: there is one, whose errors name the place" \
	"$(ax config check "$T/odd.yaml" 2>&1)" "odd.yaml:1:18: apps.odd.ip"

# --- its peers ---

for mode in private host; do
	is "a wrong errno where there is no backend (EPERM): it is EHOSTUNREACH, TCP, $mode" \
		"$(in_app --net $mode -- "$BIN/tcp" connect 4 10.77.200.1 80 2>&1)" "error connect EHOSTUNREACH"
	answer=$(in_app --net $mode -- dig +tries=1 +time=5 only4.ax.internal AAAA 2>&1)
	like "a name without IPv6 is NXDOMAIN for AAAA, which breaks Alpine: it is NOERROR, $mode" \
		"$answer" "status: NOERROR"
	like "and empty, $mode" "$answer" "ANSWER: 0"
	like "static Go programs are not reached by a preloaded library: they are, $mode" \
		"$(in_app --net $mode --ip 10.77.1.9,fd77::1:9 -- "$BIN/web" get http://shop/ 2>&1)" 'one you=(10\.77\.1\.9|\[fd77::1:9\]):'
done
stop_app $one

for mode in private host; do
	serve 7000/udp --name one --ip 10.77.1.1,fd77::1:1 -- "$BIN/udp" serve 6 :: 7000 one
	one=$APP
	run_app --net $mode -- "$BIN/udp" follow 4 10.77.200.2 5300 30
	client=$APP follows=$OUT
	wait_for "grep -q one $follows"
	serve 7000/udp --name two --ip 10.77.1.2,fd77::1:2 -- "$BIN/udp" serve 6 :: 7000 two
	two=$APP
	stop_app $one
	ok "a connected UDP socket stays with a dead backend: it gets another, $mode" \
		wait_for "grep -q two $follows"
	stop_app $client
	stop_app $two
done

serve 80 --name one --ip 10.77.1.1,fd77::1:1 -- "$BIN/tcp" listen 6 :: 80 one patient
for mode in private host; do
	run_app --net $mode --name sees -- "$BIN/tcp" connect 4 10.77.200.2 80 -k 600
	wait_for "grep -q you= $OUT"
	like "one cannot see what a connection had asked for: it is listed with it, $mode" \
		"$(ax get conns -o json | jq -c '.[] | select(.local_name == "sees")')" '"asked": *"?10\.77\.200\.2|10\.77\.200\.2:80|shop'
	stop_app "$APP"
done
outside=$("$BIN/tcp" connect 4 10.77.200.2 80)
like "who is no app is rewritten, too (NFS, sidecars): only ax's cgroups have programs, and it sees whom it asked" \
	"$outside" "^peer=10\.77\.200\.2:80 "
for at in "$CGROUP2/$INST" "$CGROUP2"; do
	bpftool cgroup show "$at" 2>/dev/null | grep -c ' ax_'
done >"$T/hooks"
like "agents collide at the root's cgroup: ax's own has its programs, the root's none" \
	"$(xargs <"$T/hooks")" "^[1-9][0-9]* 0$"
stop_apps
done_testing
