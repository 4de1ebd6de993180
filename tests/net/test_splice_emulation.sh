#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 400
# splice-emulation: proxies that take splice(2) are spliced when they ask for it, and every byte is
# right: HAProxy, Go's io.Copy and a program that waits for edges; also when the process that moves
# their bytes is killed, again and again, with its successor and without; what becomes of them when
# nobody is left who could go on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/splice.sh"
need jq bpftool haproxy go prlimit
build_c talk splice_relay
build_go relay

BYTES=20000000
[ -z "${AX_TEST_QUICK:-}" ] || BYTES=3000000
splice_agent </dev/null
serve 7000 --ip 10.77.1.1 --name talk -- "$BIN/talk" server 4 0.0.0.0 7000
TALK_OUT=$OUT

# through WHAT ADDRESS PORT MODE [OPTIONS]: five connections through a proxy, spliced on both sides, or on
# one where SIDES is 1
through() {
	local what=$1 ip=$2 port=$3 mode=$4
	shift 4
	JOINS=$((10 * ${SIDES:-2})) talk "$what, client in $mode mode" --net "$mode" -- 4 "$ip" "$port" -n 5 -w $JOIN_MS -k 500 \
		-s $BYTES -p "$@"
}

# process NAME: of those that stand beside the instance's apps, see ax run
process() {
	local pid
	while read -r pid; do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$1" ] || echo "$pid"
	done <"$CGROUP2/$INST/supervisors/cgroup.procs"
}
# emulator: the one that moves the bytes of the app that was started last; standby: who takes over
emulator() {
	process ax-splice
}
standby() {
	process ax-standby
}

# moved TEXT: whoever serves the app has moved its bytes (they go through a pipe of its own)
moved() {
	ok "$1: its bytes were moved for it" \
		[ "$(awk '/^wchar/ { print $2 }' "/proc/$(emulator)/io")" -gt $BYTES ]
}

# gone TEXT: whoever served the app that was stopped has ended
gone() {
	ok "$1: nobody is left who moved its bytes" wait_for '[ -z "$(emulator)$(standby)" ]'
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
		ok "$what: the end of each is seen" wait_for '[ "$(grep -c ^end '"$out"')" = 5 ]'
		is "$what: splice() did it all" "$(awk '/^end/ && $2 > 100000 && $3 == 0' "$out" | wc -l)" 5
		stop_app "$pid"
		gone "$what"
	done
done

# --- io_uring, whose splice() nobody is asked about ---

for number in 425 426 427; do
	is "io_uring is refused: system call $number" \
		"$(ax run --splice-emulation -- "$PYTHON" -c "
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall($number, 8, bytes(120), 0, 0, 0, 0)
print(r, errno.errorcode[ctypes.get_errno()])" 2>&1)" "-1 ENOSYS"
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
# TCP and spliced ends mixed: io.Copy splices from one into the other, both ways
off=()
[ "$SPLICE" = off ] || off=(--splice off)
serve 7000 --ip 10.77.1.2 "${off[@]}" --name plain -- "$BIN/talk" server 4 0.0.0.0 7000
plain=$APP plain_out=$OUT
serve 7001 --splice-emulation --ip 10.77.2.2 --name go -- "$BIN/relay" 0.0.0.0:7001 10.77.1.2:7000
pid=$APP out=$OUT
splice_mark
SIDES=1 through "a Go proxy, its server off" 10.77.2.2 7001 private
spliced "a Go proxy, its server off: one side" 100 10
[ "$SPLICE" = off ] || is "a Go proxy, its server off: the other side is plain" "$(($(joined) - MARK_JOINED))" 10
moved "a Go proxy, its server off"
is "a Go proxy, its server off, met no error" "$(cat "$out")" ""
is "its server saw nothing odd" "$(grep -v '^ready' "$plain_out")" ""
stop_app "$pid"
stop_app "$plain"

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
wait_for 'ax logs declared | grep -q ready'
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

# --- who moves the bytes is killed, and followed ---

# are_two: one moves the bytes, and one stands by
are_two() {
	[ "$(emulator | wc -l) $(standby | wc -l)" = "1 1" ]
}

# chase: kills one of the two or both again and again at moments of its own, until it is told to stop,
# and says how often. There have to be two again before the next kill.
chase() {
	local n=0 pids
	while [ ! -e "$T/enough" ]; do
		sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
		are_two || continue
		case $((RANDOM % 4)) in
		0) mapfile -t pids < <(standby) ;;
		1) mapfile -t pids < <(emulator && standby) ;;
		*) mapfile -t pids < <(emulator) ;;
		esac
		[ ${#pids[@]} -gt 0 ] && kill -9 "${pids[@]}" 2>/dev/null && n=$((n + 1))
		while (emulator; standby) | grep -qxF "$(printf '%s\n' "${pids[@]}")"; do
			sleep 0.01
		done
	done
	echo "$n"
}

# chased WHAT ADDRESS: a hundred megabytes each way, and not one wrong byte
chased() {
	local chaser
	rm -f "$T/enough"
	chase >"$T/kills" 2>/dev/null &
	chaser=$!
	BACKGROUND+=("$chaser")
	splice_mark
	through "$1 whose bytes are moved by who is killed" "$2" 7001 private
	spliced "$1 whose bytes are moved by who is killed" 200 20
	touch "$T/enough"
	wait "$chaser"
	ok "$1: who moves its bytes was killed $(cat "$T/kills") times" [ "$(cat "$T/kills")" -ge 5 ]
	ok "$1: there are two again" wait_for are_two
	ok "$1: who moves them has no descriptor too many" wait_for \
		'[ "$(find "/proc/$(emulator)/fd" -mindepth 1 | wc -l)" -le 10 ]'
}

serve 7001 --splice-emulation --ip 10.77.2.1 --name relay -- \
	"$BIN/splice_relay" 10.77.2.1 7001 10.77.1.1 7000
pid=$APP out=$OUT
chased "a proxy with splice()" 10.77.2.1
ok "a proxy with splice(): the end of each is seen" wait_for '[ "$(grep -c ^end '"$out"')" = 5 ]'
is "a proxy with splice(): it was refused to nobody" \
	"$(awk '/^end/ && $2 > 100000 && $3 == 0' "$out" | wc -l)" 5

# kill_both: neither gets to see the other's end, and to start a successor
kill_both() {
	local pids
	wait_for are_two
	mapfile -t pids < <(emulator && standby)
	kill -STOP "${pids[@]}"
	kill -9 "${pids[@]}"
}

# what is lacking for a moment
files=$(prlimit --pid "$pid" --nofile --noheadings --output SOFT | tr -d ' ')
prlimit --pid "$pid" --nofile="3:" # its launcher can open nothing
kill_both
ok "nobody moves its bytes while nobody can be started" wait_for '[ -z "$(emulator)$(standby)" ]'
prlimit --pid "$pid" --nofile="$files:"
ok "somebody does when that is over" wait_for are_two
talk "a proxy after that" -- 4 10.77.2.1 7001 -n 2 -w 100 -k 100 -s 500000

# asks: the app waits for an answer about a call
asks() {
	cat /proc/"$(ax get apps -o json | jq '.[] | select(.name == "relay").pid')"/task/*/wchan | grep -q seccomp
}

# Who stands by is killed while a question comes: who is started then was not there when it was read, and has to
# notice, once it is its turn, that it has no question to read, but somebody else to start.
wait_for are_two
first=$(emulator) second=$(standby)
kill -STOP "$first"
TIME_LIMIT=60 in_app -- "$BIN/talk" client 4 10.77.2.1 7001 -n 1 -w 1 -k 1 -s 100000 >"$T/asked" 2>&1 &
asking=$!
ok "it is asked by its app while it does not answer" wait_for asks
kill -9 "$second"
wait_for '[ ! -e /proc/'"$second"' ]'
kill -CONT "$first"
wait "$asking"
like "one stands by again, and no byte was wrong" "$(cat "$T/asked")" $'(^|\n)good [0-9]+$'
wait_for are_two
kill -9 "$first"
ok "its successor has one, too" wait_for '[ "$(emulator)" != '"$first"' ] && are_two'
kill -9 "$(standby)"
ok "and another one when that one is killed" wait_for -t 10 are_two
stop_app "$pid"
gone "a proxy with splice(), killed often"
serve 7001 --splice-emulation --ip 10.77.2.2 --name go -- "$BIN/relay" 0.0.0.0:7001 10.77.1.1:7000
pid=$APP out=$OUT
chased "a Go proxy" 10.77.2.2
is "the Go proxy met no error" "$(cat "$out")" ""
stop_app "$pid"
serve 7001 --splice-emulation --ip 10.77.2.3 --name hap -- haproxy -db -q -f "$T/haproxy.cfg"
pid=$APP
chased "HAProxy" 10.77.2.3
stop_app "$pid"
is "no server saw anything odd" "$(grep -hv '^ready' "$TALK_OUT")" ""

# --- all who could go on are killed ---

# nobody_left WHAT: also the app's launcher, which starts who moves its bytes when both are gone
nobody_left() {
	wait_for are_two
	kill -9 "$APP"
	wait_for '[ ! -e /proc/'"$APP"' ]'
	kill_both
	ok "$1: nobody is left who moves its bytes" wait_for '[ -z "$(emulator)$(standby)" ]'
}

serve 7001 --splice-emulation --ip 10.77.2.1 --name relay -- \
	"$BIN/splice_relay" 10.77.2.1 7001 10.77.1.1 7000
nobody_left "a proxy with splice()"
talk "a proxy that splice() is refused" -- 4 10.77.2.1 7001 -n 2 -w 100 -k 100 -s 500000
ax stop relay >/dev/null
serve 7001 --splice-emulation --ip 10.77.2.3 --name hap -- haproxy -db -q -f "$T/haproxy.cfg"
nobody_left "HAProxy"
talk "HAProxy that splice() is refused" -- 4 10.77.2.3 7001 -n 2 -w 100 -k 100 -s 500000
ax stop hap >/dev/null

# Go takes ENOSYS for an error of the connection: it ends, and nobody waits
serve 7001 --splice-emulation --ip 10.77.2.2 --name go -- "$BIN/relay" 0.0.0.0:7001 10.77.1.1:7000
nobody_left "a Go proxy"
TIME_LIMIT=90 in_app -- "$BIN/talk" client 4 10.77.2.2 7001 -n 2 -w 100 -k 100 -s 500000 \
	>"$T/refused" 2>&1
unlike "a Go proxy that splice() is refused: nobody hangs" "$(cat "$T/refused")" hang
ax stop go >/dev/null
done_testing
