#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# timeout: 240
# splice-emulation: proxies that take splice(2) are spliced when they ask for it, and every byte is
# right: HAProxy, Go's io.Copy and a program that waits for edges; what becomes of them when the
# process that moves their bytes is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool haproxy go
build_c talk splice_relay
build_go relay

BYTES=20000000
[ -z "${AX_TEST_QUICK:-}" ] || BYTES=3000000
splice_agent </dev/null
serve 7000 --ip 10.77.1.1 --name talk -- "$BIN/talk" server 4 0.0.0.0 7000
TALK_OUT=$OUT

# through WHAT ADDRESS PORT MODE [OPTIONS]: five connections through a proxy
through() {
	local what=$1 ip=$2 port=$3 mode=$4
	shift 4
	talk "$what, client in $mode mode" --net "$mode" -- 4 "$ip" "$port" -n 5 -w $JOIN_MS -k 500 \
		-s $BYTES -p "$@"
}

# process NAME: of those that stand beside the instance's apps, see ax run
process() {
	local pid
	while read -r pid; do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$1" ] || echo "$pid"
	done <"$CGROUP2/$INST/supervisors/cgroup.procs"
}
# emulator: the one that moves the bytes of the app that was started last
emulator() {
	process ax-splice
}

# moved TEXT: whoever serves the app has moved its bytes (they go through a pipe of its own)
moved() {
	ok "$1: its bytes were moved for it" \
		[ "$(awk '/^wchar/ { print $2 }' "/proc/$(emulator)/io")" -gt $BYTES ]
}

# gone TEXT: whoever served the app that was stopped has ended
gone() {
	ok "$1: nobody is left who moved its bytes" wait_for -t 10 '[ -z "$(emulator)" ]'
}

# --- a program that waits for edges ---

for mode in private host; do
	for pipes in '' waiting sendfile; do
		what="a proxy with splice() and ${pipes:-non-blocking} pipes in $mode mode"
		[ "$pipes" != sendfile ] || what="a proxy with sendfile() in $mode mode"
		# shellcheck disable=SC2086
		serve 7001 --splice-emulation --net $mode --ip 10.77.2.1 --name relay -- \
			"$BIN/splice_relay" 10.77.2.1 7001 10.77.1.1 7000 $pipes
		pid=$APP out=$OUT
		splice_mark
		through "$what" 10.77.2.1 7001 $mode
		spliced "$what" 200 20
		ok "$what: the end of each is seen" wait_for -t 10 '[ "$(grep -c ^end '"$out"')" = 5 ]'
		is "$what: splice() did it all" "$(awk '/^end/ && $2 > 100000 && $3 == 0' "$out" | wc -l)" 5
		stop_app "$pid"
		gone "$what"
	done
done

# --- io_uring, whose splice() nobody is asked about ---

for number in 425 426 427; do
	is "io_uring is refused: system call $number" \
		"$(ax run --splice-emulation -- "$PYTHON" -c "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall($number, 8, bytes(120), 0, 0, 0, 0)
print(r, os.strerror(ctypes.get_errno()))" 2>&1)" "-1 Function not implemented"
done
is "the calls beside those are not" \
	"$(ax run --splice-emulation -- "$PYTHON" -c "
import os, signal
fd = signal.pidfd_send_signal(os.pidfd_open(os.getpid()), 0)
print('good')" 2>&1)" good

# --- Go ---

for mode in private host; do
	serve 7001 --splice-emulation --net $mode --ip 10.77.2.2 --name go -- \
		"$BIN/relay" 0.0.0.0:7001 10.77.1.1:7000
	pid=$APP out=$OUT
	splice_mark
	through "a static Go proxy in $mode mode" 10.77.2.2 7001 $mode
	spliced "a static Go proxy in $mode mode" 200 20
	moved "a static Go proxy in $mode mode"
	is "the Go proxy in $mode mode met no error" "$(cat "$out")" ""
	stop_app "$pid"
done

# --- HAProxy, as a user without rights ---

haproxy_conf() {
	cat >"$T/haproxy.cfg" <<-EOF
		global
			maxconn 100
		defaults
			mode tcp
			timeout connect 5s
			timeout client 60s
			timeout server 60s
			option splice-request
			option splice-response
		listen relay
			bind 0.0.0.0:7001
			server one 10.77.1.1:7000
	EOF
	chmod 644 "$T/haproxy.cfg"
}
haproxy_conf
chmod 711 "$T"
for mode in private host; do
	serve 7001 --splice-emulation --net $mode --user nobody -w / --ip 10.77.2.3 --name hap -- \
		haproxy -db -q -f "$T/haproxy.cfg"
	pid=$APP
	splice_mark
	through "HAProxy in $mode mode as nobody" 10.77.2.3 7001 $mode
	spliced "HAProxy in $mode mode as nobody" 200 20
	is "HAProxy in $mode mode: its word is in its view" \
		"$(ax get apps -o json | jq '.[] | select(.name == "hap").splice_emulation')" true
	moved "HAProxy in $mode mode as nobody"
	like "HAProxy in $mode mode: what 'ax exec' runs beside it is under the filter, too" \
		"$(ax exec hap grep ^Seccomp: /proc/self/status 2>&1)" "Seccomp:[[:space:]]2"
	stop_app "$pid"
done

# --- an app of the config, whose supervisor is killed ---

cp "$T/$INST.yaml" "$T/without.yaml"
cat >"$T/$INST.yaml" <<-EOF
	agent:
	  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	  splice: $SPLICE
	apps:
	  declared:
	    command: $BIN/splice_relay 0.0.0.0 7001 10.77.1.1 7000
	    ip: 10.77.2.5
	    splice-emulation: yes
EOF
ok "an app of the config" ax config apply "$T/$INST.yaml"
launched declared
wait_for -t 10 'ax logs declared | grep -q ready'
splice_mark
through "an app of the config" 10.77.2.5 7001 private
spliced "an app of the config" 200 20
moved "an app of the config"
kill -9 "$(process ax-supervisor)"
splice_mark
through "an app whose supervisor was killed" 10.77.2.5 7001 private
spliced "an app whose supervisor was killed" 200 20
ax stop declared >"$T/stopped" 2>&1
gone "an app of the config that was stopped"
ax config apply "$T/without.yaml" >"$T/stopped" 2>&1

# --- who moves the bytes is killed ---

# killed WHAT ADDRESS [EXPECTED]: while bytes flow. Nothing hangs.
killed() {
	local client out
	TIME_LIMIT=90 in_app -- "$BIN/talk" client 4 "$2" 7001 -n 5 -w $JOIN_MS -k 500 -s 10000000 \
		>"$T/killed" 2>&1 &
	client=$!
	BACKGROUND+=("$client")
	ok "$1: bytes flow" wait_for -t 30 "grep -q '^under way' $T/killed"
	kill -9 "$(emulator)"
	wait "$client"
	out=$(cat "$T/killed")
	like "$1: who moves its bytes is killed meanwhile" "$out" "(^|"$'\n'")good ${3:-[0-9]+$}"
}

serve 7001 --splice-emulation --ip 10.77.2.1 --name relay -- \
	"$BIN/splice_relay" 10.77.2.1 7001 10.77.1.1 7000
pid=$APP
killed "a proxy with splice()" 10.77.2.1
talk "a proxy that splice() is refused" -- 4 10.77.2.1 7001 -n 2 -w 100 -k 100 -s 500000
stop_app "$pid"
is "no server saw anything odd" "$(grep -hv '^ready' "$TALK_OUT")" ""
serve 7001 --splice-emulation --ip 10.77.2.3 --name hap -- haproxy -db -q -f "$T/haproxy.cfg"
pid=$APP
# (it resets a connection whose bytes are in a pipe that it cannot splice from)
killed "HAProxy" 10.77.2.3 '[0-9]+'
talk "HAProxy that splice() is refused" -- 4 10.77.2.3 7001 -n 2 -w 100 -k 100 -s 500000
stop_app "$pid"

# Go takes ENOSYS for an error of the connection: it ends
serve 7001 --splice-emulation --ip 10.77.2.2 --name go -- "$BIN/relay" 0.0.0.0:7001 10.77.1.1:7000
pid=$APP
killed "a Go proxy" 10.77.2.2 '[0-9]+'
stop_app "$pid"
done_testing
