#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# ax trace with static probes: list, arguments, semaphores, counts by value, later processes.
. "$(dirname "$0")/lib.sh"
need gcc jq
echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1 || skip_all "missing header sys/sdt.h"

cat >"$T/db.c" <<'END'
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__extension__ unsigned short db_query_semaphore __attribute__((section(".probes")));
__extension__ unsigned short db_snapshot_semaphore __attribute__((section(".probes")));
#include <sys/sdt.h>
int main(int argc, char **argv)
{
	const char *names[] = {"first", "second"};
	int n = argc > 1 ? atoi(argv[1]) : 0, seen = 0;
	if (argc > 2)
		sleep(1);
	for (volatile int i = 0; i < n; i++) {
		DTRACE_PROBE1(db, snapshot, i % 3);
		if (db_query_semaphore)
			seen++;
		DTRACE_PROBE2(db, query, names[i % 2], (long)-i);
	}
	printf("%d\n", seen);
	return 0;
}
END
sanity() {
	out=$(ax trace list "usdt:$1" -o json)
	is "$2: both probes are listed" "$(jq -r .probe <<<"$out" | sort | sed 's/.*:\(.*:\)/\1/')" \
		$'db:query\ndb:snapshot'
	out=$(ax trace count "usdt:$1:db:snapshot" arg0 -c "$1 300" -o json 2>/dev/null)
	is "$2: count by value" \
		"$(jq -c 'objects | select(.table) | [.table[] | [.key.arg0, .count]] | sort' <<<"$out")" \
		'[[0,100],[1,100],[2,100]]'
	is "$2: all accounted for" "$(jq -c 'objects | select(.emitted) | [.emitted,.received,.dropped]' <<<"$out")" \
		'[300,300,0]'
	out=$(ax trace watch "usdt:$1:query" arg0:string arg1 -c "$1 2" 2>&1)
	like "$2: arguments" "$out" 'db:query arg0="second" arg1=-1'
	is "$2: the semaphore tells the program" "$(grep -x '[0-9]*' <<<"$out")" 2
}
for flags in "-O0 -no-pie" "-O2 -pie -fPIE" "-O2 -s" "-O2 -static"; do
	# shellcheck disable=SC2086
	ok "$flags: the program is built" gcc $flags -o "$T/db" "$T/db.c" && sanity "$T/db" "$flags"
done
is "without a probe its semaphore is 0" "$("$T/db" 5)" 0

# Floating-point numbers that are in memory or in a register for integers.
cat >"$T/fp.c" <<'END'
#include <sys/sdt.h>
int main(int argc, char **argv)
{
	double d[2] = {argc + 5.75, 0};
	float f = argc + 0.5f;
	(void)argv;
	DTRACE_PROBE2(fp, both, d[0], f);
	return 0;
}
END
gcc -O0 -o "$T/fp" "$T/fp.c" || bail_out "gcc failed"
like "floating-point arguments" "$(ax trace watch "usdt:$T/fp:both" -c "$T/fp" 2>&1)" "both arg0=6.75 arg1=1.5"
is "and conditions on them" "$(ax trace count "usdt:$T/fp:both" if 'arg0 > 6.5' -c "$T/fp" 2>&1 | grep -c '^1 event')" 1

# A program that runs already, and one that is started later.
"$T/db" 10 wait >"$T/early" &
early=$!
BACKGROUND+=("$early")
"$AX" trace count "usdt:$T/db:db:snapshot" >"$T/count" 2>&1 </dev/null &
tracer=$!
BACKGROUND+=("$tracer")
wait_for "grep -q 'Ctrl-C ends' '$T/count'"
"$T/db" 20 >/dev/null
wait "$early"
kill -TERM "$tracer"
wait "$tracer"
is "processes of before and after the start" "$(tail -n 1 "$T/count")" "30 events, 30 received, 0 dropped"

# every Python that Debian builds has this one; function__entry went with 3.13
out=$(ax trace watch 'usdt:/usr/bin/python3:python:import__find__load__start' arg0:string \
	-c "/usr/bin/python3 -c 'import colorsys'" 2>&1)
like "Python's imports" "$out" 'arg0="colorsys"'

done_testing
