#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: tools/bench/run.sh [AX [apps|services|expose|xdp|trace|splice|cluster]]      (make bench)
#
# Measures ax against what a user would take instead, prints a table, and writes bench.json beside
# AX. Without AX only the other ways are measured; of ax there are seven parts, which can be measured
# alone: apps, services, exposed ports (expose), the packets of interfaces (xdp), tracing (trace), splicing (splice), and a
# cluster of a thousand nodes, with the ways between two (cluster).
# It fails on errors, never on figures.
#
# Everything happens in a network and a mount namespace of its own (with its own /run and bpffs)
# and in namespaces below it: no packet leaves them. Rounds are interleaved (A B C C B A A ...), and
# a ratio is the median of the rounds' own ratios.
#
# Which processor: connections and round trips have every process of a case on one processor, since
# between two of them the wake-up costs more than everything that is compared; streams have the
# sender on one and the receiver on another. Starting programs is not pinned. haproxy is measured
# both left to the scheduler and on the same processor.
#
# Each part prints its table when it is done, and how long it took. QUICK=1 measures the headlines alone, in three short
# rounds (make bench-quick).
#
# Settings from the environment: ROUNDS (7), MILLISECONDS per figure (800), IDLE seconds (60),
# DECLARED entries of the large config (10000), PACKETS per test run (1000000), RATE of events
# a second for RATE_SECONDS (200000, 5).
set -euo pipefail

QUICK=${QUICK:-}
ROUNDS=${ROUNDS:-${QUICK:+3}}
ROUNDS=${ROUNDS:-7}
MILLISECONDS=${MILLISECONDS:-${QUICK:+200}}
MILLISECONDS=${MILLISECONDS:-800}
IDLE=${IDLE:-60}
DECLARED=${DECLARED:-10000}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/bench/lib.sh
. "$here/lib.sh"

[ "$(id -u)" = 0 ] || die "it makes namespaces and loads programs: run it as root"
for tool in ip nft haproxy unshare nsenter awk jq ethtool bpftrace strace bear strip redis-server redis-benchmark nginx wrk \
	taskset ss perf etcd curl node; do
	command -v "$tool" >/dev/null || die "$tool is missing: 'make bench' installs it"
done
if [ "${AX_BENCH_INSIDE:-}" != 1 ]; then
	AX_BENCH_INSIDE=1 exec unshare --net --mount --propagation private "$0" "$@"
fi
unset AX_BENCH_INSIDE

ax=
output=.output
if [ $# -gt 0 ]; then
	[ -x "$1" ] || die "$1 is not there: run 'make' first"
	output=$(dirname "$1")
	ax=$(realpath "$1")
fi
all_parts='apps services expose xdp trace splice cluster'
parts=${2:-$all_parts}
case $parts in
apps | services | expose | xdp | trace | splice | cluster | "$all_parts") ;;
*) die "there is no part '$parts': apps, services, expose, xdp, trace, splice or cluster" ;;
esac
bench=${AXBENCH:-$(dirname "${ax:-$(realpath .output/ax)}")/bench/axbench}
xdpbench=$(dirname "$bench")/xdpbench
tracebench=$(realpath "$(dirname "$bench")")/tracebench
splicebench=$(realpath "$(dirname "$bench")")/splicebench
for tool in "$bench" "$xdpbench" "$tracebench" "$splicebench"; do
	[ -x "$tool" ] || die "$tool is not there: run 'make bench'"
done

allowed=$(awk '/^Cpus_allowed_list/ {print $2}' /proc/self/status)
cpu_b=${allowed%%[-,]*} # the other one, for the sender of a stream
cpu=${allowed##*[-,]}	# the one where everything runs that is on one processor
small=b$$		# instance names are at most 8 characters; no pid has more than 7
large=l$$
exposer=e$$
service_agent=s$$
ruled=r$$
crowd=c$$
xdp=x$$
pins=/sys/fs/bpf/$xdp-xdp
agents=()
tmp=$(mktemp -d /tmp/ax-bench.XXXX)
round=0

cleanup() {
	local status=$? instance
	trap - EXIT
	stop_pids
	if [ -n "$ax" ]; then
		for instance in "${agents[@]}"; do
			axi "$instance" agent --flush >/dev/null 2>&1 ||
				note "'ax --instance $instance agent --flush' failed"
		done
		ways_flush
	fi
	case $status in
	0 | 130 | 143) rm -rf "$tmp" ;;
	*) note "failed; what the programs said is in $tmp" ;;
	esac
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /sys/fs/bpf
mount -t bpf bpf /sys/fs/bpf
ip link set lo up

# shellcheck source=tools/bench/cases.sh
. "$here/cases.sh"
# shellcheck source=tools/bench/services.sh
. "$here/services.sh"
# shellcheck source=tools/bench/expose.sh
. "$here/expose.sh"
# shellcheck source=tools/bench/xdp.sh
. "$here/xdp.sh"
# shellcheck source=tools/bench/challenge.sh
. "$here/challenge.sh"
# shellcheck source=tools/bench/trace.sh
. "$here/trace.sh"
# shellcheck source=tools/bench/splice.sh
. "$here/splice.sh"
# shellcheck source=tools/bench/cluster.sh
. "$here/cluster.sh"
# shellcheck source=tools/bench/ways.sh
. "$here/ways.sh"

if [ -n "$QUICK" ]; then
	main_cases=(conn.plain conn.host conn.service conn.nat rr.plain rr.host rr.private rr.nat
		stream.private stream.fwd launch.host launch.unshare launch.private)
	large_cases=()
	service_cases=(svc.conn.direct svc.conn.random.1 svc.conn.least-connections.1000 svc.rules.none svc.rules.1000
		svc.web.direct svc.web.service svc.web.nat svc.start.hand svc.start.connect)
	xdp_cases=(xdp.ports xdp.xdpfilter xdp.mixed10 xdp.mixed1000 xdp.nat xdp.ipip
		live.ports live.xdpfilter live.nftset)
	challenge_cases=()
	trace_cases=(trace.firstbt trace.first trace.pushbt trace.push)
	splice_cases=(splice.rr.64.1.{plain,unix,on} splice.load.redis1.1.{plain,on} splice.conn.{on,off,auto}
		splice.rr.64.1.{off,auto} splice.stall.on)
fi

load=$(cut -d' ' -f1 /proc/loadavg)
awk -v load="$load" -v cpus="$(nproc)" 'BEGIN {exit load > cpus / 2}' ||
	note "the machine is busy (load $load): the figures will be less sure than they could be"

# rounds CASE...
rounds() {
	for round in $(seq "$ROUNDS"); do
		note "round $round of $ROUNDS"
		one_round "$@"
	done
}

measure_apps() {
	baselines_up
	if [ -n "$ax" ]; then
		agents+=("$small" "$large")
		ax_up
	fi
	if [ -n "$ax" ] && [ -z "$QUICK" ]; then
		large_up
		idle_begin
	fi
	rounds "${main_cases[@]}"
	if [ -n "$ax" ] && [ -z "$QUICK" ]; then
		idle_end
		rounds "${large_cases[@]}"
	fi
	rows >"$tmp/rows.apps"
}
measure_many_services() {
	services_up
	rounds "${service_cases[@]}"
	starts_compared
	service_rows >"$tmp/rows.services"
}
measure_exposing() {
	expose_up
	rounds "${expose_cases[@]}"
	expose_rows >"$tmp/rows.expose"
}
measure_packets() {
	xdp_up
	[ -n "$QUICK" ] || challenge_up
	rounds "${xdp_cases[@]}" "${challenge_cases[@]}"
	[ -n "$QUICK" ] || xdp_check
	{
		xdp_rows
		challenge_rows
	} >"$tmp/rows.xdp"
}

measure_tracing() {
	if [ "$(uname -m)" != x86_64 ]; then
		note "tracing is not measured: the functions of tracebench are x86-64's"
		return
	fi
	round=1
	measure_size
	rounds "${trace_cases[@]}"
	build_added
	trace_rows >"$tmp/rows.trace"
}

measure_splicing() {
	splice_up
	rounds "${splice_cases[@]}"
	splice_rows >"$tmp/rows.splice"
}

# report ROWS... -- [-v NAME=VALUE]...: what the raw figures say of these rows
report() {
	local files=()
	while [ "$1" != -- ]; do
		[ ! -e "$1" ] || files+=("$1")
		shift
	done
	shift
	[ ${#files[@]} = 0 ] ||
		awk -v headlines="$QUICK" "$@" -f "$here/report.awk" "$tmp/raw" "${files[@]}"
}

declare -A titles=([apps]='apps' [services]='services' [expose]='exposed ports' [xdp]='packets of interfaces' [trace]='tracing' [splice]='splicing' [cluster]='a cluster')
n=0
for part in $parts; do
	n=$((n + 1))
	since=$SECONDS
	note "part $n of $(wc -w <<<"$parts"): ${titles[$part]}"
	case $part in
	apps) measure_apps ;;
	services) measure_many_services ;;
	expose) measure_exposing ;;
	xdp) measure_packets ;;
	trace) measure_tracing ;;
	splice) measure_splicing ;;
	cluster) measure_cluster ;;
	esac
	echo "${titles[$part]^}:"
	report "$tmp/rows.$part" --
	echo
	note "part $n took $((SECONDS - since)) s"
done
mkdir -p "$output"
report "$tmp"/rows.{apps,services,expose,xdp,trace,splice,cluster} -- -v silent=1 -v json="$output/bench.json" -v kernel="$(uname -r)" \
	-v load="$load" -v cpus="$(nproc)" -v milliseconds="$MILLISECONDS" -v idle="$IDLE" \
	-v idle_wakeups="${idle_wakeups:--1}"
note "the same as JSON, with each round: $output/bench.json"
