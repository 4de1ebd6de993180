#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace perfdata on what perf records here, and on a trace of Intel PT: perf says the same.
. "$(dirname "$0")/lib.sh"
need perf jq gcc python3 readelf

pd() {
	"$AX" trace perfdata "$@"
}
cd "$T" || exit 1

# of_perf FILE: how many events of each type perf sees; it says nothing of those that hold others.
of_perf() {
	perf script -D -i "$1" 2>/dev/null | grep -ao 'PERF_RECORD_[A-Z0-9_]*' | sed 's/PERF_RECORD_//' |
		grep -vx 'COMPRESSED2\?' | sort | uniq -c
}
of_ax() {
	pd events "$1" | awk '{ print $2 }' | grep -vx 'COMPRESSED2\?' | sort | uniq -c
}

# --- what perf records of its own command ---

work=(sh -c 'for i in 1 2 3; do ls -R /usr/include >/dev/null; done')
if perf record -q -e cpu-clock -o first -- true 2>"$T/err"; then
	perf record -q -e cpu-clock,task-clock -F 999 -d -o plain -- "${work[@]}" 2>/dev/null
	perf record -q -g -z -e cpu-clock -F 999 -o packed -- "${work[@]}" 2>/dev/null
	for file in plain packed; do
		is "$file: as many events of each type as perf" "$(of_ax "$file")" "$(of_perf "$file")"
		is "$file: the samples that perf sees" \
			"$(pd events -t SAMPLE -o json "$file" | jq -r '"\(.pid)/\(.tid) \(.ip)"' | sort)" \
			"$(perf script -D -i "$file" 2>/dev/null | sed -nE 's/.*PERF_RECORD_SAMPLE\([^)]*\): ([0-9]+\/[0-9]+): (0x[0-9a-f]+) .*/\1 \2/p' | sort)"
		is "$file: one object a line" "$(pd events -o json "$file" | jq -c . | wc -l)" "$(pd events "$file" | wc -l)"
	done
	ok "one of them has compressed events" grep -q '^events:.* COMPRESSED=' <(pd info packed)
	is "names of events" "$(pd info -o json plain | jq -r '.attrs[].name' | sort | head -n 2 | xargs)" "cpu-clock task-clock"
	like "the CPUs' cores by name" "$(pd info plain)" $'\nCPU_TOPOLOGY: sibling_cores='
	is "what was run" "$(pd info -o json plain | jq -r '.features.CMDLINE.values[-3:-1][]' | xargs)" "sh -c"
	like "the call chains" "$(pd events -t sample packed)" 'callchain=\[(kernel|user) 0x'
	# through a pipe, as it comes
	perf record -q -e cpu-clock -F 999 -o - -- "${work[@]}" 2>/dev/null >pipe
	is "a pipe: as many events as perf" "$(of_ax pipe | sed 's/HEADER_//' | sort)" "$(of_perf pipe | sort)"
	is "and the same from standard input" "$(pd events - < <(cat pipe))" "$(pd events pipe)"
	is "its header" "$(pd info -o json pipe | jq -r '.format, .attrs[0].name')" $'pipe\ncpu-clock'
	is "the host's name" "$(pd info -o json - < <(cat pipe) | jq -r .features.HOSTNAME.value)" "$(uname -n)"
	# cut off: all before it, and a sentence
	head -c "$(($(stat -c %s pipe) - 30))" pipe >cut-off
	pd events cut-off >cut.out 2>cut.err
	is "a file that is cut off fails" "$?" 1
	like "says so" "$(cat cut.err)" 'cut off: it ends in the event at 0x'
	is "and shows what is there" "$(cat cut.out)" "$(pd events pipe | head -n "$(wc -l <cut.out)")"
	ok "which is much" test "$(wc -l <cut.out)" -gt 20
	fails "no traces of hardware" pd aux plain
	like "as it says" "$(pd pt plain 2>&1)" 'no traces of Intel PT'
else
	for name in plain packed pipe; do
		skip "$name" "missing kernel feature: perf record $(tail -n 1 "$T/err")"
	done
fi

# --- the tour of the manual ---

tour_of "$TOP/tools/share/ax-trace-perfdata.8" >commands
is "the tour has commands" "$(wc -l <commands)" 5
mkdir path
ln -s "$AX" path/ax
if [ -e first ]; then
	ok "they all succeed" env PATH="$T/path:$PATH" bash -euo pipefail commands
else
	skip "they all succeed" "missing kernel feature: perf record"
fi

# --- Intel PT ---

sample=$TOP/tests/perfdata/intel_pt.data
is "events around a trace" "$(of_ax "$sample")" "$(of_perf "$sample")"
pd pt "$sample" >packets
is "packets" "$(tail -n 1 packets)" \
	"cpu 0: packets=9980 errors=0 PAD=874 PSB=1 PSBEND=1 FUP=10 TIP=505 TIP.PGE=1 TIP.PGD=1 TNT=8242 MODE.Exec=1 MODE.TSX=1 PIP=15 CBR=1 TSC=1 TMA=1 MTC=325"
# perf shows runs of PAD as one, addresses as short as they are, and PIP in its raw form
grep '^  0x' packets | awk '$2 != "PAD" { print $1, $2 }' >ours
perf script -D -i "$sample" 2>/dev/null | sed -nE 's/^\.  ([0-9a-f]{8}):  [0-9a-f ]{48}([A-Z][A-Za-z.]*).*/\1 \2/p' |
	awk '$2 != "PAD" { sub(/^0+/, "", $1); print "0x" ($1 == "" ? "0" : $1), $2 }' >theirs
ok "perf finds some thousands" test "$(wc -l <theirs)" -gt 9000
ok "the same packets at the same places" cmp ours theirs
is "branches" "$(awk '$2 == "TNT" { print $3 }' packets)" \
	"$(perf script -D -i "$sample" 2>/dev/null | sed -nE 's/^\..* TNT ([TN]+) .*/\1/p')"
is "the lower half of addresses" "$(awk '/ TIP 0x/ { print substr($3, length($3) - 3) }' packets)" \
	"$(perf script -D -i "$sample" 2>/dev/null | sed -nE 's/^\..* TIP 0x([0-9a-f]+).*/000\1/p' | grep -oE '.{4}$')"
ok "whole addresses" sh -c "! grep ' TIP 0x' packets | grep -vE ' 0x(ffff[89a-f]|[1-7])[0-9a-f]{11}$'"
is "one object a line" "$(pd pt -o json "$sample" | jq -r .packet | sort | uniq -c | sort -rn | head -n 3 | xargs)" \
	"8242 TNT 874 PAD 505 TIP"
is "counts as an object" "$(pd pt -c -o json "$sample" | jq -r '.cpu, .packets, .errors, .MTC' | xargs)" "0 9980 0 325"
is "the raw trace" "$(pd aux -O raw "$sample" | tail -n 1 | xargs)" "cpu 0 intel_pt 1 12240 intel_pt-cpu0"
is "all of it" "$(stat -c %s raw/intel_pt-cpu0)" 12240
is "it begins with PSB" "$(head -c 16 raw/intel_pt-cpu0 | od -An -tx1 | xargs)" "$(printf '02 82 %.0s' 1 2 3 4 5 6 7 8 | xargs)"
is "again, into the same file" "$(pd aux -O raw "$sample" >/dev/null; stat -c %s raw/intel_pt-cpu0)" 12240
is "without a folder it only tells" "$(pd aux -o json "$sample")" '{"cpu":0,"tid":3174,"kind":"intel_pt","pieces":1,"bytes":12240}'
ln -s "$T/elsewhere" raw2 && mkdir raw3 && ln -s "$T/elsewhere" raw3/intel_pt-cpu0
fails "a link in the folder is not followed" pd aux -O raw3 "$sample"
ok "nothing is written there" test ! -e "$T/elsewhere"
mkdir raw4 && mkfifo raw4/intel_pt-cpu0
like "a FIFO in the folder is not waited for" "$(timeout 60 "$AX" trace perfdata aux -O raw4 "$sample" 2>&1)" 'cannot write .raw4/intel_pt-cpu0'
# a trace that is broken in its middle goes on at the next PSB, or is bad to its end
at=$(grep -abo -m1 $'\x02\x82\x02\x82\x02\x82' "$sample" | head -n 1 | cut -d: -f1)
cp "$sample" broken
printf '\xd9\xd9\xd9\xd9' | dd of=broken bs=1 seek=$((at + 0x60)) conv=notrunc status=none
like "bad bytes are said" "$(pd pt broken | tail -n 2)" '^  0x60 BAD skipped=12144
cpu 0: packets=[0-9]+ errors=1 '

# the whole file that the sample is a part of has a second trace, of a CPU that did more
if [ -n "${AX_PT_FILE:-}" ]; then
	is "packets of two CPUs" "$(pd pt -c "$AX_PT_FILE")" "$(tail -n 1 packets)
cpu 3: packets=95129 errors=0 PAD=19142 PSB=9 PSBEND=9 FUP=139 TIP=11534 TIP.PGE=9 TIP.PGD=9 TNT=61274 MODE.Exec=17 MODE.TSX=15 PIP=426 CBR=23 TSC=23 TMA=23 MTC=2477"
	pd pt "$AX_PT_FILE" | grep '^  0x' | awk '$2 != "PAD" { print $1, $2 }' >ours
	perf script -D -i "$AX_PT_FILE" 2>/dev/null | sed -nE 's/^\.  ([0-9a-f]{8}):  [0-9a-f ]{48}([A-Z][A-Za-z.]*).*/\1 \2/p' |
		awk '$2 != "PAD" { sub(/^0+/, "", $1); print "0x" ($1 == "" ? "0" : $1), $2 }' >theirs
	ok "which are perf's" cmp ours theirs
	is "the raw traces of both" "$(pd aux -O whole "$AX_PT_FILE" | sed 1d | awk '{ print $2, $3, $5, $6 }')" \
		$'0 intel_pt 12240 intel_pt-cpu0\n3 intel_pt 137728 intel_pt-cpu3'
	is "all of them" "$(stat -c %s whole/intel_pt-cpu*)" $'12240\n137728'
	ok "that of the sample is the same" cmp raw/intel_pt-cpu0 whole/intel_pt-cpu0
fi

# --- traces of other hardware ---

build aux_data "aux_data.c ../../lib/perf_writer.c ../../lib/perf_writer.h" gcc "${CFLAGS_TEST[@]}" -I"$TOP" \
	"$SRC/aux_data.c" "$TOP/tests/lib/perf_writer.c" -lzstd -o %o
for kind in arm_spe cs_etm; do
	for form in little big pipe; do
		"$BIN/aux_data" "$kind" "$form" other cpu3 thread || exit 1
		is "$kind, $form: traces of a CPU and of a thread" "$(pd aux -O "$kind-$form" other | sed 1d | awk '{ print $1, $2, $3, $4, $6 }')" \
			"cpu 3 $kind 2 $kind-cpu3
tid 42 $kind 1 $kind-tid42"
		ok "$kind, $form: all bytes of the CPU, piece by piece" cmp cpu3 "$kind-$form/$kind-cpu3"
		ok "$kind, $form: and of the thread" cmp thread "$kind-$form/$kind-tid42"
	done
	like "$kind: its name among the events" "$(pd events other)" "AUXTRACE_INFO .*kind=$kind"
	like "$kind: it is none of Intel's" "$(pd pt other 2>&1)" 'no traces of Intel PT'
done

# --- instructions ---

for name in first second; do
	gcc -nostdlib -static -no-pie -DNAME="$name" "$SRC/traced.S" -o "$name" || exit 1
done
"$PYTHON" "$SRC/pt_trace.py" two.data first second
# all steps of one of the two programs, which stand at the same addresses
steps() { # NAME
	local call=("_start+0x5 call" "$1+0x0" "$1+0x3 return" "_start+0xa" "_start+0xc branch")
	printf '%s\n' "_start+0x0" "${call[@]}" "${call[@]}" "_start+0xe" "_start+0x13" "_start+0x15 far"
}
pd flow two.data >executed
for i in 1 2; do
	name=$([ "$i" = 1 ] && echo first || echo second)
	is "the steps of the $name program" "$(sed -n "s/^cpu 2 pid ${i}00: 0x[0-9a-f]* //p" executed)" "$(steps "$name")"
done
like "the account" "$(tail -n 1 executed)" '^28 instructions, 0 gaps$'
is "only calls" "$(pd flow -c two.data | grep -o ' first+0x0\| second+0x0' | sort | uniq -c | xargs)" "2 first+0x0 2 second+0x0"
is "as objects" "$(pd flow -o json two.data | jq -r 'select(.kind == "call") | "\(.pid) \(.function)"' | sort | uniq -c | xargs)" \
	"2 100 _start 2 200 _start"
# nobody knows what was executed where a part of the trace is not in the file
"$PYTHON" "$SRC/pt_trace.py" --hole hole.data first second
pd flow hole.data >holed
is "nothing is made up" "$(sed -n "s/^cpu 2 pid 100: 0x[0-9a-f]* //p" holed)" ""
is "and from the next PSB on" "$(sed -n "s/^cpu 2 pid 200: 0x[0-9a-f]* //p" holed)" "$(steps second)"
like "which is said" "$(cat holed)" 'gap \(a part of the trace is not in the file\)'
is "and where" "$(pd flow -o json hole.data | jq 'select(.note == "gap") | .offset')" 4096
mkdir -p "below/$T" && mv second "below/$T/"
like "a program that is gone is a gap" "$(pd flow two.data | tail -n 2)" '^cpu 2 pid 200: -- gap \(no memory mapped'
like "elsewhere it is found" "$(mv first "below/$T/"; pd flow --root below two.data | tail -n 1)" '^28 instructions, 0 gaps$'
mv "below/$T/second" below/real && ln -s /real "below/$T/second"
like "an absolute link is one below the root" "$(pd flow --root below two.data | tail -n 1)" '^28 instructions, 0 gaps$'
like "a root that is not there" "$(pd flow --root nowhere two.data 2>&1)" "cannot open 'nowhere'"
mkfifo second first
like "a FIFO of its name is not waited for" "$(pd flow two.data | tail -n 1)" '^0 instructions, '
# jumps to itself for ever
printf '.globl _start\n_start: jmp _start\n' >self.S
gcc -nostdlib -static -no-pie self.S -o self
"$PYTHON" "$SRC/pt_trace.py" self.data self
like "a loop without an end has one" "$(pd flow self.data | tail -n 2)" 'gap \(a loop without an end\).*
[0-9]+ instructions, 1 gaps$'

# --- what is no such file ---

fails "a file that is something else" pd info "$AX"
like "it says what" "$(pd info "$AX" 2>&1)" 'is no perf.data'
fails "a file that is not there" pd info nowhere
fails "a folder" pd info "$T"
fails "no file" pd info
fails "a type that is none" pd events -t nothing "$sample"
done_testing
