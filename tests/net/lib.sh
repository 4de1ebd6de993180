# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced first by every tests/net/test_*.sh. The script starts itself again in a network and a
# mount namespace of its own (a private host: its own loopback, routes, /run, bpffs, resolv.conf), so
# that it disturbs neither the machine nor another test. Only the cgroup2 tree is shared with
# the machine, hence the instance's name is new for each run. Output is TAP.

set -u
export LC_ALL=C

if [ -z "${AX_TEST_PRIVATE_HOST:-}" ]; then
	if [ "$(id -u)" -ne 0 ]; then
		echo "1..0 # SKIP needs root"
		exit 0
	fi
	AX_TEST_PRIVATE_HOST=1 exec unshare -n -m --propagation private -- bash "$0" "$@"
fi
unset AX_TEST_PRIVATE_HOST

NET_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOP=$(cd "$NET_DIR/../.." && pwd)
SRC=$NET_DIR/src
BIN=$TOP/.output/tests/net
AX=$(readlink -f "${AX:-$TOP/.output/ax}")
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=$(command -v python3)

# --- TAP ---------------------------------------------------------------------------------------

TESTS=0
FAILED=0

diag() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

pass() {
	TESTS=$((TESTS + 1))
	echo "ok $TESTS - $1"
}

# not_ok NAME [TEXT]: TEXT says what was seen.
not_ok() {
	TESTS=$((TESTS + 1))
	FAILED=$((FAILED + 1))
	echo "not ok $TESTS - $1"
	[ $# -lt 2 ] || diag "$2"
}

skip() {
	TESTS=$((TESTS + 1))
	echo "ok $TESTS - $1 # SKIP $2"
}

# tour_of PAGE: the commands of a manual page's section A TOUR, as a shell takes them.
tour_of() {
	awk '
		/^\.SH / { on = $0 == ".SH A TOUR" }
		on && /^\.EX/ { inside = 1; next }
		/^\.EE/ { inside = 0 }
		on && inside' "$1" |
		sed "s/^\\\\&//; s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\(ga/\`/g; s/\\\\(ha/^/g; s/\\\\(ti/~/g; s/\\\\e/\\\\/g"
}

# tour_run PAGE LINES: runs them, which are more than so many lines, in a folder of their own, with this
# build's ax and the test's instance; what they print is in $T/out.
tour_run() {
	tour_of "$TOP/tools/share/$1" >"$T/commands"
	ok "the tour has commands" test "$(wc -l <"$T/commands")" -gt "$2"
	mkdir "$T/work" "$T/path"
	printf '#!/bin/sh\nexec "%s" --instance %s "$@"\n' "$AX" "$INST" >"$T/path/ax"
	chmod +x "$T/path/ax"
	{
		echo "set -eu; cd '$T/work'; PATH='$T/path':\$PATH"
		cat "$T/commands"
	} >"$T/script"
	bg "$T/out" timeout -k 1 90 bash "$T/script"
	wait "$BG"
	is "they all succeed" "$?" 0
	[ "$FAILED" -eq 0 ] || diag "$(tail -n 30 "$T/out")"
}

# tour_says WHAT PATTERN: a line of what they printed has it.
tour_says() {
	if grep -qE -- "$2" "$T/out"; then
		pass "$1"
	else
		not_ok "$1" "not in the output: $2"
	fi
}

# ok NAME COMMAND...: passes when the command ends with 0.
ok() {
	local name=$1 out rc
	shift
	out=$("$@" 2>&1 </dev/null)
	rc=$?
	if [ $rc -eq 0 ]; then
		pass "$name"
	else
		not_ok "$name" "exit status $rc of: $*"$'\n'"$out"
	fi
	return $rc
}

# fails NAME COMMAND...: passes when the command ends with anything but 0, or a crash.
fails() {
	local name=$1 out rc
	shift
	out=$("$@" 2>&1 </dev/null)
	rc=$?
	case $rc in
	0 | 132 | 134 | 135 | 136 | 139) not_ok "$name" "exit status $rc of: $*"$'\n'"$out" ;;
	*) pass "$name" ;;
	esac
}

is() {
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		not_ok "$1" "found:    $2"$'\n'"expected: $3"
	fi
}

like() {
	if [[ $2 =~ $3 ]]; then
		pass "$1"
	else
		not_ok "$1" "found: $2"$'\n'"expected to match: $3"
	fi
}

unlike() {
	if [[ $2 =~ $3 ]]; then
		not_ok "$1" "found: $2"$'\n'"expected not to match: $3"
	else
		pass "$1"
	fi
}

# subtests PREFIX COMMAND...: takes over the results of a program that speaks TAP itself.
subtests() {
	local prefix=$1 line seen=0 out
	shift
	out=$(mktemp "$T/subtests.XXXXXX")
	bg "$out" "$@"
	wait "$BG"
	while IFS= read -r line; do
		case $line in
		'ok '*'# SKIP'*) skip "$prefix: ${line#* - }" "${line#*# SKIP }" ;;
		'ok '*) pass "$prefix: ${line#* - }" ;;
		'not ok '*) not_ok "$prefix: ${line#* - }" ;;
		'1..'*) continue ;;
		*) diag "$line" ;;
		esac
		seen=1
	done <"$out"
	[ $seen -eq 1 ] || not_ok "$prefix: says nothing"
}

# done_testing: undoes everything, asserts that nothing is left, prints the plan.
done_testing() {
	finish
	echo "1..$TESTS"
	[ "$FAILED" -eq 0 ]
	exit
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# bail_out WHY: the whole script fails.
bail_out() {
	echo "Bail out! $1"
	exit 1
}

# veth_or_skip ARGUMENT...: ip link add with them. The whole script is skipped where the kernel has no such
# devices, and fails where they cannot be made although it has.
veth_or_skip() {
	local said
	said=$(ip link add "$@" 2>&1) && return
	[[ $said != *"Unknown device type"* ]] || skip_all "missing kernel feature veth"
	bail_out "ip link add $*: $said"
}

# need PROGRAM...: the whole script is skipped where one is missing.
need() {
	local program
	for program; do
		command -v "$program" >/dev/null || skip_all "missing program $program"
	done
}

# --- waiting -----------------------------------------------------------------------------------

# wait_for [-t SECONDS] CONDITION: evaluates the shell text every 0.05 s until it is true.
wait_for() {
	local seconds=30 end
	if [ "$1" = -t ]; then
		seconds=$2
		shift 2
	fi
	end=$((${EPOCHREALTIME/./} + $(printf %.0f "${seconds}e6")))
	until eval "$1" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# timed MOST COMMAND...: what it printed is in $PRINTED, its exit status in $STATUS, and the ms that it took in
# $TOOK: of five tries the first one that took no more than MOST. A machine with much else to do makes all of
# it longer at times; what really waits does so each time.
# shellcheck disable=SC2034 # for the tests
timed() {
	local most=$1 start _
	shift
	for _ in 1 2 3 4 5; do
		start=${EPOCHREALTIME/./}
		PRINTED=$("$@" 2>&1 </dev/null)
		STATUS=$?
		TOOK=$(((${EPOCHREALTIME/./} - start) / 1000))
		[ "$TOOK" -gt "$most" ] || break
	done
}

# stat_of_process PID: its state is in $STATE and its parent's number in $PARENT. (ps, asked each time while somebody waits, had
# a third of all processors' time.)
stat_of_process() {
	local stat=''
	{ IFS= read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null
	stat=${stat##*) } # behind its name, which may be anything
	STATE=${stat%% *}
	stat=${stat#* }
	PARENT=${stat%% *}
	[ -n "$STATE" ]
}

alive() {
	kill -0 "$1" 2>/dev/null && stat_of_process "$1" && [ "$STATE" != Z ]
}

# A number that was a child of this shell may be somebody else's by now.
own_child() {
	stat_of_process "$1" && [ "$PARENT" = $$ ]
}

# --- background processes ------------------------------------------------------------------------

BACKGROUND=()

# bg OUTPUT COMMAND...: starts it in the background; its pid is in $BG.
bg() {
	local out=$1
	shift
	"$@" >>"$out" 2>&1 </dev/null &
	BG=$!
	BACKGROUND+=("$BG")
}

# end PID: TERM, then KILL; returns its exit status.
end() {
	own_child "$1" && kill -TERM "$1" 2>/dev/null
	if own_child "$1" && ! wait_for -t 20 "! alive $1"; then
		diag "process $1 did not end by SIGTERM: $(ps -o args= -p "$1")"
		kill -KILL "$1" 2>/dev/null
	fi
	wait "$1" 2>/dev/null
}

# --- test programs -----------------------------------------------------------------------------

# build NAME SOURCES COMMAND...: runs COMMAND with %o replaced by the output's path, when a source
# is newer than $BIN/NAME. Safe against other scripts that want the same program.
build() {
	local name=$1 sources=$2 source stale=0
	shift 2
	mkdir -p "$BIN"
	exec 9>"$BIN/.lock-$name"
	flock 9
	[ -e "$BIN/$name" ] || stale=1
	for source in $sources; do
		[ "$SRC/$source" -nt "$BIN/$name" ] && stale=1
	done
	if [ $stale -eq 1 ]; then
		if ! { "${@//%o/$BIN/.new-$name}" >"$BIN/.log-$name" 2>&1 &&
			touch "$BIN/.new-$name" && mv "$BIN/.new-$name" "$BIN/$name"; }; then
			cat "$BIN/.log-$name"
			echo "Bail out! cannot build the test program $name"
			exit 1
		fi
	fi
	exec 9>&-
}

CFLAGS_TEST=(-D_GNU_SOURCE -std=gnu11 -O2 -Wall -Wextra)

# build_c NAME...: C programs of src/ as $BIN/NAME; NAME-musl is NAME.c, static with musl.
build_c() {
	local name cc
	for name; do
		cc=(gcc)
		[ "$name" = "${name%-musl}" ] || cc=(musl-gcc -static)
		build "$name" "${name%-musl}.c netutil.c netutil.h" "${cc[@]}" "${CFLAGS_TEST[@]}" \
			"$SRC/${name%-musl}.c" "$SRC/netutil.c" -o %o
	done
}

# musl's getaddrinfo: resolve NAME [v4|v6|any]
build_resolve() {
	build resolve "resolve.c" musl-gcc -static "${CFLAGS_TEST[@]}" "$SRC/resolve.c" -o %o
}

# build_go NAME: NAME.go as a static program
build_go() {
	build "$1" "$1.go" env CGO_ENABLED=0 GOFLAGS=-mod=mod GOPROXY=off GOCACHE="$BIN/go-cache" \
		HOME="${HOME:-/root}" go build -tags netgo -o %o "$SRC/$1.go"
}

# --- the private host ----------------------------------------------------------------------------

random_name() {
	local digits=0123456789abcdefghijklmnopqrstuvwxyz n name=t
	n=$(((($$ << 15) ^ (RANDOM << 30) ^ (RANDOM << 15) ^ RANDOM) % 78364164096))
	while [ ${#name} -lt 8 ]; do
		name+=${digits:n%36:1}
		n=$((n / 36))
	done
	# tests/run looks for what these leave behind
	[ -z "${AX_TEST_INSTANCES:-}" ] || echo "$name" >>"$AX_TEST_INSTANCES"
	echo "$name"
}

private_host() {
	ip link set lo up
	local resolv_conf
	resolv_conf=$(readlink -f /etc/resolv.conf)
	mount -t bpf bpf /sys/fs/bpf
	mount -t tmpfs tmpfs /run
	T=$(mktemp -d "${TMPDIR:-/tmp}/ax-net.XXXXXX")
	chmod 755 "$T"
	# nothing listens there: tests that forward queries name their own upstream
	echo "nameserver 192.0.2.53" >"$T/resolv.conf"
	# it may have been a link to something in /run
	mkdir -p "${resolv_conf%/*}"
	[ -e "$resolv_conf" ] || touch "$resolv_conf"
	mount --bind "$T/resolv.conf" "$resolv_conf"
	sed '/^hosts:/d' /etc/nsswitch.conf >"$T/nsswitch.conf"
	echo "hosts: files dns" >>"$T/nsswitch.conf"
	mount --bind "$T/nsswitch.conf" /etc/nsswitch.conf
	CGROUP2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	if [ -z "$CGROUP2" ]; then
		CGROUP2=/run/cgroup2
		mkdir "$CGROUP2"
		mount -t cgroup2 cgroup2 "$CGROUP2"
	fi
	SYSCTL_BEFORE=$(host_sysctls)
	RULES_BEFORE=$(ip rule; ip -6 rule)
	NSFS_BEFORE=$(grep -c ' nsfs ' /proc/self/mounts) # the machine's own
}

host_sysctls() {
	sysctl -n net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.conf.all.rp_filter \
		net.ipv4.conf.all.route_localnet net.ipv4.ip_nonlocal_bind 2>&1
}

# --- instances and agents --------------------------------------------------------------------------

INST=$(random_name)
INSTANCES=("$INST")
AGENT=

# The addresses that every test uses unless it says otherwise.
POOL4=10.77.0.0/16
POOL6=fd77::/64

default_config() {
	cat <<-EOF
		agent:
		  pool: {ipv4: $POOL4, ipv6: "$POOL6"}
	EOF
}

ax() {
	ax_in "$INST" "$@"
}

# ax_in INSTANCE COMMAND...
ax_in() {
	local inst=$1 command=$2 rc
	shift 2
	timeout --foreground -k 1 60 "$AX" --instance "$inst" "$command" "$@"
	rc=$?
	case $rc in
	132 | 134 | 135 | 136 | 139) echo "ax $command $* ended by signal $((rc - 128))" >>"$T/crashes" ;;
	esac
	return $rc
}

# agent_start [FILE|-]: with -, the config comes from stdin. The agent is ready when it returns.
agent_start() {
	case ${1:-} in
	'') default_config >"$T/$INST.yaml" ;;
	-) cat >"$T/$INST.yaml" ;;
	*) cp "$1" "$T/$INST.yaml" ;;
	esac
	agent_again
}

# agent_again [BINARY]: starts it (again) with the same config.
agent_again() {
	"${1:-$AX}" --instance "$INST" agent --config "$T/$INST.yaml" >>"$T/$INST.log" 2>&1 </dev/null &
	AGENT=$!
	BACKGROUND+=("$AGENT")
	if ! wait_for -t 60 "! alive $AGENT || ax status" || ! alive "$AGENT"; then
		diag "the agent does not start:"
		diag "$(tail -n 20 "$T/$INST.log")"
		[ -e "$T/$INST.baseline" ] && return 1
		echo "Bail out! the agent does not start"
		exit 1
	fi
	if [ ! -e "$T/$INST.baseline" ]; then
		baseline "$INST" >"$T/$INST.baseline"
	fi
}

agent_stop() {
	end "$AGENT"
}

agent_kill9() {
	kill -KILL "$AGENT"
	wait "$AGENT" 2>/dev/null
}

# --- apps ----------------------------------------------------------------------------------------

APPS=()
RUNS=0

# run_app [ax run's options] -- COMMAND...: in the background. Its ax run's pid is in $APP, what it
# prints in $OUT.
run_app() {
	RUNS=$((RUNS + 1))
	OUT=$T/run.$RUNS
	"$AX" --instance "$INST" run "$@" >>"$OUT" 2>&1 </dev/null &
	APP=$!
	APPS+=("$APP")
}

child_of() {
	tr ' ' '\n' <"/proc/$1/task/$1/children" 2>/dev/null | head -n 1
}

# listens AXRUN PORT [tcp|udp]: the app's command has a socket there.
listens() {
	local child option=t
	child=$(child_of "$1")
	[ -n "$child" ] || return 1
	[ "${3:-tcp}" = tcp ] || option=u
	nsenter -t "$child" -n ss -Hln${option}p "sport = :$2" | grep -q "pid=$child,"
}

# nginx_conf NAME WORKERS HTTP: a config with HTTP in its section http; prints its path. What nginx writes
# goes to $T/nginx.NAME.
nginx_conf() {
	local d=$T/nginx.$1
	mkdir -p "$d"
	chmod 777 "$d"
	cat >"$d/nginx.conf" <<-EOF
		pid $d/pid;
		error_log $d/error.log;
		worker_processes $2;
		daemon off;
		events { worker_connections 512; }
		http {
			access_log off;
			keepalive_requests 1000000;
			client_body_temp_path $d/body;
			proxy_temp_path $d/proxy;
			fastcgi_temp_path $d/fastcgi;
			uwsgi_temp_path $d/uwsgi;
			scgi_temp_path $d/scgi;
			$3
		}
	EOF
	echo "$d/nginx.conf"
}

# serve PORT[/udp] [options] -- COMMAND...: run_app, and waits until it listens on PORT.
serve() {
	local port=${1%/*} proto=tcp
	[ "$1" = "$port" ] || proto=${1#*/}
	shift
	run_app "$@"
	if ! wait_for -t 60 "! alive $APP || listens $APP $port $proto" || ! alive "$APP"; then
		diag "the server does not come up: $*"
		diag "$(tail -n 10 "$OUT")"
		diag "$(tail -n 5 "$T/$INST.log")"
		return 1
	fi
}

# launched NAME...: waits until the apps run.
launched() {
	local name
	for name; do
		wait_for "ax get apps -o json | jq -e --arg n $name \
			'.[] | select(.name == \$n and .state == \"running\")'" || return 1
	done
}

# forgotten PID...: the kernel tells the agent that an app has ended, which takes a moment longer than the end of
# its ax run. (An app may go on without its command's process, and an agent may be away.)
forgotten() {
	local pids=$*
	[ -z "$pids" ] || wait_for -t 60 "! ax get apps -o json | grep -qE '\"pid\": *(${pids// /|})\b'"
}

# events_told FILE...: waits until those who read events, as JSON or text, are told of what happens: of the end of
# an app that began when they read.
events_told() {
	local n file all
	for n in 1 2 3 4 5 6 7 8 9 10; do
		in_app --name told$n -- true
		all='true'
		for file; do
			all+=" && grep exit $file | grep -qw told$n"
		done
		wait_for -t 5 "$all" && return
	done
	diag "no events are told in $*"
	return 1
}

# stop_app AXRUN: returns its exit status
stop_app() {
	local child status
	child=$(child_of "$1")
	end "$1"
	status=$?
	forgotten ${child:+"$child"}
	return $status
}

stop_apps() {
	local pid children=()
	for pid in "${APPS[@]}"; do
		own_child "$pid" || continue
		# shellcheck disable=SC2207 # a number, or nothing
		children+=($(child_of "$pid"))
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${APPS[@]}"; do
		end "$pid"
	done
	APPS=()
	forgotten "${children[@]}"
}

# in_app [options] -- COMMAND...: in the foreground, at most $TIME_LIMIT (30) seconds.
in_app() {
	timeout --foreground -k 1 "${TIME_LIMIT:-30}" "$AX" --instance "$INST" run "$@"
}

# --- HTTP from every kind of client -----------------------------------------------------------------

# Prints "URL BODY" for each; the body should be one line.
CURL_ALL='for u; do printf "%s " "$u"; curl -sS -g --max-time 20 "$u" || echo "curl failed: $?"; done'

# line_of URL TEXT: what CURL_ALL or a client like it printed for the URL.
line_of() {
	awk -v u="$1" '$1 == u' <<<"$2"
}

# check_urls WHAT TEXT REGEX URL...: every URL has a line in TEXT that matches REGEX.
check_urls() {
	local what=$1 text=$2 regex=$3 url line
	shift 3
	for url; do
		line=$(line_of "$url" "$text")
		like "$what gets $url" "${line:-$text}" "$regex"
	done
}

# curl_matrix WHAT REGEX URL...: curl as a private and as a host-mode app.
curl_matrix() {
	local what=$1 regex=$2 mode
	shift 2
	for mode in private host; do
		check_urls "$what: curl in $mode mode" \
			"$(in_app --net $mode -- sh -c "$CURL_ALL" sh "$@" 2>&1)" "$regex" "$@"
	done
}

# --- leftovers -------------------------------------------------------------------------------------

# What of an instance is there: one line for each device, route, cgroup, pin and namespace.
baseline() {
	# an app's device is named by its id; other names are the instance's own
	ip -o link | sed -n "s/^[0-9]*: \($1-[0-9]*\)[@:].*/device \1/p"
	{
		ip -o route show table all
		ip -6 -o route show table all
	} | grep 'proto 97\|proto ax' | sed 's/^/route /'
	# detached apps' parents have a cgroup of their own, which stays
	find "$CGROUP2/$1" -mindepth 1 -type d 2>/dev/null | grep -v '/supervisors$' | sed 's/^/cgroup /'
	find /run/ax/"$1" -mindepth 1 2>/dev/null | grep -v "/log/\|\.sock$\|/lock$\|/xdp-.*\.lock$\|/trace\.lock$\|/applied.yaml$\|/cluster.json$\|/cluster-others[^/]*$\|/splice-gate$\|/verdict-names$" |
		sort | sed 's/^/file /'
	if [ -n "${AGENT:-}" ] && alive "$AGENT"; then
		find "/proc/$AGENT/fd" -printf '%l\n' 2>/dev/null | grep '^net:' | sed 's/^/agent holds /'
	fi
}

app_leftovers() {
	baseline "$INST" | diff - "$T/$INST.baseline" | sed -n 's/^< //p'
	cat "$CGROUP2/$INST"/*/cgroup.procs 2>/dev/null | sed 's/^/process /'
}

# leftovers: with all apps gone and the agent running, nothing of an app is there any more. What a
# server had to send to a client that was killed may keep its network for 60 s (ax-run(8), LIMITS).
leftovers() {
	local left
	wait_for -t 65 '[ -z "$(app_leftovers)" ]'
	left=$(app_leftovers)
	is "${1:-no namespace, device, route, cgroup or process of an app is left}" "$left" ""
}

relatives() {
	local pid=$$
	while [ "$pid" -gt 1 ]; do
		echo "$pid"
		stat_of_process "$pid"
		pid=${PARENT:-0}
	done
}

# Processes in this network or mount namespace other than this shell, those above and those below
# it that work out this list.
foreign_processes() {
	local pid family names=() ns
	family=" $(relatives | tr '\n' ' ')"
	for ns in net mnt; do
		names+=("$(readlink /proc/self/ns/$ns | sed 's/[][]/\\&/g')")
	done
	for pid in $(find /proc/[0-9]*/ns -maxdepth 1 \( -lname "${names[0]}" -o -lname "${names[1]}" \) \
		-printf '%h\n' 2>/dev/null | sed 's|^/proc/\(.*\)/ns|\1|' | sort -u); do
		[[ $family == *" $pid "* ]] && continue
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = bash ] && [[ $(ancestors "$pid") == *" $$ "* ]] &&
			continue
		[ ! -d "/proc/$pid" ] || echo "process $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done 2>/dev/null
}

# The pids above a process, each with a blank on both sides.
ancestors() {
	local pid=$1
	while [ "${pid:-0}" -gt 1 ]; do
		stat_of_process "$pid"
		pid=$PARENT
		echo -n " $pid "
	done
}

machine_leftovers() {
	local inst
	# libxdp makes a directory for its dispatchers, and leaves it
	find /sys/fs/bpf -mindepth 1 ! -name '*.debug' ! -path /sys/fs/bpf/xdp -printf 'pin %p\n'
	for inst in "${INSTANCES[@]}"; do
		baseline "$inst"
		[ ! -d "$CGROUP2/$inst" ] || echo "cgroup $CGROUP2/$inst"
		[ ! -e "/run/ax/$inst/control.sock" ] || echo "socket /run/ax/$inst/control.sock"
	done
	ip -o link | grep -v ' lo: ' | sed 's/^/device /'
	nft list ruleset 2>/dev/null | sed 's/^/nft /'
	[ "$(host_sysctls)" = "$SYSCTL_BEFORE" ] || echo "sysctl: $(host_sysctls | tr '\n' ' ')"
	[ "$(ip rule; ip -6 rule)" = "$RULES_BEFORE" ] || echo "rule: $(ip rule; ip -6 rule)"
	grep -c ' nsfs ' /proc/self/mounts | sed "/^$NSFS_BEFORE\$/d; s/\$/ namespaces are mounted/"
	foreign_processes
}

FINISHED=

# finish: stops the apps, asserts that they leave nothing; flushes, asserts that nothing at all is left.
finish() {
	local pid inst
	FINISHED=1
	stop_apps
	if [ -n "$AGENT" ] && alive "$AGENT"; then
		leftovers
		agent_stop
	fi
	for pid in "${BACKGROUND[@]}"; do
		end "$pid"
	done
	BACKGROUND=()
	for inst in "${INSTANCES[@]}"; do
		ok "ax agent --flush" ax_in "$inst" agent --flush
	done
	# (namespaces go one after the other, and with them devices, when the kernel comes to it)
	wait_for -t 65 '[ -z "$(machine_leftovers)" ]'
	is "after a flush nothing at all is left" "$(machine_leftovers)" ""
	# also one whose end a test took for a refusal, or did not look at
	[ ! -s "$T/crashes" ] || not_ok "ax never crashes" "$(cat "$T/crashes")"
}

# Whatever happens. A test that ended as it should has nothing left to do here.
cleanup() {
	local pid inst
	trap '' INT TERM
	trap - EXIT
	for pid in "${APPS[@]}" "${BACKGROUND[@]}"; do
		own_child "$pid" && kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${APPS[@]}" "${BACKGROUND[@]}"; do
		wait_for -t 2 "! own_child $pid || ! alive $pid"
		own_child "$pid" && kill -KILL "$pid" 2>/dev/null
	done
	# whatever else is in the namespaces that this script made is its own
	foreign_processes | while read -r _ pid _; do
		kill -KILL "$pid"
	done 2>/dev/null
	for inst in "${INSTANCES[@]}"; do
		[ -d "$CGROUP2/$inst" ] || continue
		timeout --foreground -k 1 10 "$AX" --instance "$inst" agent --flush >/dev/null 2>&1
		find "$CGROUP2/$inst" -depth -type d 2>/dev/null | while read -r dir; do
			echo 1 >"$dir/cgroup.kill"
			for _ in 1 2 3 4 5 6 7 8 9 10; do
				rmdir "$dir" && break
				sleep 0.1
			done
		done 2>/dev/null
	done
	remove_files
}

# mounts_below DIRECTORY: one a line, the innermost last
mounts_below() {
	local at
	while read -r _ _ _ _ at _; do
		[[ $at != "$1"/* ]] || printf '%b\n' "$at"
	done </proc/self/mountinfo
}

# Deleting goes through bind mounts to what they show: none may be there then, whatever failed.
remove_files() {
	local at
	mounts_below "$T" | tac | while read -r at; do
		umount -l "$at"
	done
	if [ -n "$(mounts_below "$T")" ]; then
		echo "# $T has mounts below it and is left" >&2
		return
	fi
	rm -rf --one-file-system "$T"
}

on_signal() {
	trap '' INT TERM # a runner tells the whole process group, and may do so twice
	echo "Bail out! interrupted"
	exit 1
}

on_exit() {
	local rc=$?
	[ -n "$FINISHED" ] || diag "agent's log: $(tail -n 20 "$T/$INST.log" 2>/dev/null)"
	[ -z "${KEEP_LOG:-}" ] || cp "$T/$INST.log" "$KEEP_LOG"
	cleanup
	exit $rc
}

private_host
trap on_exit EXIT
trap on_signal INT TERM
if [ ! -x "$AX" ]; then
	echo "Bail out! there is no $AX: run make first"
	FINISHED=1
	exit 1
fi
