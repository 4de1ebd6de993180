#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# timeout: 240
# ax trace show-script: what it prints for each command of ax trace does the same when it is run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trace.sh"
need gcc jq
build_probed

# numbers of system calls and errors are numbers in tables
calls=$(gcc -E -dM -include sys/syscall.h - </dev/null |
	sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$/"\2":"\1"/p' | paste -sd ,)
calls="{$calls}"

# both FILTER VERB COMMAND [OPTION]...: of the verb and of its script, what jq makes of their output: $theirs, $ours.
# FILTER is of the script's objects and of the verb's: "OURS --- THEIRS"
both() {
	local ours_filter=${1%%---*} their_filter=${1##*---} verb=$2 command=$3
	shift 3
	"$AX" trace "$verb" "$@" -o json -c "$command" >"$T/theirs" 2>"$T/theirs.err" </dev/null
	"$AX" trace show-script "$verb" "$@" -c "$command" >"$T/s.ax" 2>"$T/err"
	local alone=-f
	case " $* " in *" --alone "*) alone= ;; esac
	[ "$verb" = flow ] && alone=
	"$AX" trace run "$T/s.ax" $alone -o json -c "$command" >"$T/ours" 2>>"$T/err" </dev/null
	theirs=$(jq -cS --argjson calls "$calls" "objects | $their_filter" "$T/theirs" | sort)
	ours=$(jq -cS --argjson calls "$calls" "objects | $ours_filter" "$T/ours" | sort)
	[ -n "$theirs" ] || [ "$their_filter" = " empty" ] || not_ok "ax trace $verb prints something" "$(cat "$T/theirs.err")"
}
# alike WHAT FILTER VERB COMMAND [OPTION]...
alike() {
	local what=$1
	shift
	both "$@"
	is "the script does the same: $what" "$ours" "$theirs"
	like "and nothing is lost" "$(tail -n 1 "$T/ours")" '"dropped":0'
}

# --- what the kernel is asked for ---

cat >"$T/work.c" <<'EOF'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char name[4096], buf[100] = "";
	int in, out;
	snprintf(name, sizeof(name), "%s.data", argv[0]);
	out = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 7; i++)
		if (write(out, buf, 100) != 100)
			return 1;
	if (pwrite(out, buf, 10, 50) != 10 || read(-1, buf, 1) != -1)
		return 2;
	in = open(name, O_RDONLY);
	for (int i = 0; i < 3; i++)
		if (read(in, buf, 30) != 30)
			return 3;
	if (readv(in, &(struct iovec){buf, 20}, 1) != 20 || sendfile(out, in, NULL, 40) != 40)
		return 4;
	for (int i = 0; i < 5; i++)
		if (open("/nonexistent", O_RDONLY) >= 0 || errno != ENOENT)
			return 5;
	signal(SIGUSR1, SIG_IGN);
	kill(getpid(), SIGUSR1);
	kill(getpid(), 0);
	signal(SIGUSR2, SIG_DFL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGUSR2);
	if (kill(1 << 22, SIGTERM) == 0 || errno != ESRCH)
		return 6;
	if (fork() == 0)
		_exit(argc > 9);
	return wait(NULL) < 0;
}
EOF
gcc -O1 -o "$T/work" "$T/work.c" || exit 1

alike "system calls" '.table[]? | select(.sum) | [$calls[.key.call | tostring], .count] --- select(.syscall) | [.syscall, .count]' syscalls "$T/work" --alone
alike "their errors" 'select(.name == "errors") | .table[] | [$calls[.key.call | tostring], -.key.ret, .count]
	--- select(.errors? | length > 0) | .syscall as $s | .errors | to_entries[] |
	[$s, ({"ENOENT": 2, "EBADF": 9, "ESRCH": 3, "EINTR": 4, "ENOTTY": 25, "EACCES": 13, "EINVAL": 22}[.key] // 0), .value]' \
	syscalls "$T/work" --alone
alike "system calls of children, by process" 'select(.name == "calls") | .table[] | [.key.comm, $calls[.key.call | tostring], .count] --- select(.syscall) | [.comm, .syscall, .count]' \
	syscalls "$T/work" --by process
alike "times of system calls are in a histogram" 'select(.name == "times") | .table[] | [$calls[.key.call | tostring], (.buckets | map(.count) | add)] --- select(.syscall) | [.syscall, .count]' \
	syscalls "$T/work" --hist
# who handles signals that the kernel sends for itself is no sender
alike "signals" '.values // empty | select(.code <= 0) | [.sig, .result, .from] --- select(.event == "signal" and (.code | test("SI_(USER|TKILL)"))) |
	[.number, ({"sent": 0, "ignored": 1, "pending already": 2}[.result]), .comm]' signals "$T/work"
alike "signals of one kind" '.values // empty | [.sig, .result] --- select(.event == "signal") | [.number, ({"sent": 0, "ignored": 1, "pending already": 2}[.result])]' \
	signals "$T/work" USR2
both '.values // empty | select(.ret) | [.sig, .ret] --- select(.error) | [.number, -3]' signals "$T/work" TERM -x
is "signals that were refused" "$ours" "$theirs"
file='select(.name == "FILTER") | .table[] | select(.key.file == "work.data")'
way() {
	echo "${file/FILTER/$1} | [.sum, .count] --- select(.read_bytes? != null and (.file | endswith(\"work.data\"))) | [.$2, .$3]"
}
both "$(way reads read_bytes reads)" files "$T/work"
is "bytes and calls that read" "$ours" "$theirs"
both "$(way writes written_bytes writes)" files "$T/work"
is "bytes and calls that write" "$ours" "$theirs"
both "${file/FILTER/opens} | .count --- select(.read_bytes? != null and (.file | endswith(\"work.data\"))) | .opens" files "$T/work"
is "calls that open" "$ours" "$theirs"
alike "opens" '.values // empty | select(.name == "/nonexistent" or (.name | endswith("work.data"))) | [.name, ([.ret, -1] | max)]
	--- select(.event == "open") | select(.name == "/nonexistent" or (.name | endswith("work.data"))) | [.name, (.fd // -1)]' open "$T/work"
alike "commands" '.values // empty | .words | split("\u0000") | map(select(. != "")) --- select(.event == "exec") | .args // .argv // .words' \
	exec "sh -c \"$T/work 1 'a b'; true\""

# --- who waits ---

cat >"$T/waits.c" <<'EOF'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int inside;
static void *work(void *arg)
{
	pthread_mutex_lock(&m);
	__atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
	usleep(150000);
	pthread_mutex_unlock(&m);
	return arg;
}
int main(void)
{
	pthread_t t;
	if (pthread_create(&t, NULL, work, NULL))
		return 1;
	while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
		usleep(1000);
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return pthread_join(t, NULL);
}
EOF
gcc -O1 -pthread -fno-omit-frame-pointer -o "$T/waits" "$T/waits.c" || exit 1
alike "mutexes" 'select(.name == "waits") | .table[] | [.key.comm, .count, .sum > 1000000] --- select(.lock) | [.comm, .waits, .time_ns > 1000000]' locks "$T/waits"
both '. --- empty' locks "$T/waits" -a --hist
ok "other waits by futex" test "$(jq -s 'map(objects | select(.name == "times") | .table[].buckets[].count) | add' "$T/ours")" -ge 1
both '.table[]? | select(.sum > 100000000 and (.key | tostring | test("nanosleep"))) | [.key.comm, .count, (.key | tostring | test("nanosleep")), .sum < 10000000000]
	--- select(.ns? > 100000000 and (.stack | tostring | test("nanosleep"))) | [.comm, .times, true, .ns < 10000000000]' \
	offcpu "$T/waits"
is "threads that wait, by their stacks" "$ours" "$theirs"

# --- memory, calls ---

cat >"$T/heap.c" <<'EOF'
#define _GNU_SOURCE
#include <stdlib.h>
void *volatile v[40];
__attribute__((noinline)) static void some(void)
{
	for (int i = 0; i < 10; i++)
		v[i] = malloc(1000 + i);
	for (int i = 10; i < 20; i++)
		v[i] = calloc(3, 100 + i);
	for (int i = 20; i < 25; i++)
		v[i] = realloc(NULL, 50);
	for (int i = 0; i < 5; i++)
		v[i] = realloc(v[i], 2000);
	void *p;
	if (posix_memalign(&p, 64, 640))
		exit(1);
	v[30] = p;
	v[31] = aligned_alloc(64, 128);
	v[32] = reallocarray(NULL, 7, 11);
	for (int i = 3; i < 15; i++)
		free(v[i]);
	free(v[30]);
}
int main(void)
{
	some();
	return 0;
}
EOF
gcc -O1 -fno-omit-frame-pointer -o "$T/heap" "$T/heap.c" || exit 1
both '[.table[]? | .sum] | select(length > 0) | add --- empty' malloc "$T/heap"
"$AX" trace malloc -o json -c "$T/heap" 2>/dev/null >"$T/theirs"
is "what is left, in bytes" "$(jq -s 'map(objects | select(.name == "left") | .table[].sum) | add' "$T/ours")" \
	"$(jq -s 'map(objects | .left_bytes // 0) | add' "$T/theirs")"
is "and in pieces" "$(jq -s 'map(objects | select(.name == "pieces") | .table[].sum) | add' "$T/ours")" \
	"$(jq -s 'map(objects | .left // 0) | add' "$T/theirs")"

alike "calls" 'select(.event) | [.event, .depth, .function, .arguments, .return] --- select(.event) | [.event, .depth, .function, .arguments, .return]' \
	flow "$PROBED" "$PROBED" outer inner leaf count_up

# --- clocks ---

cat >"$T/busy.c" <<'EOF'
#include <time.h>
int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		;
	return 0;
}
EOF
gcc -O1 -o "$T/busy" "$T/busy.c" || exit 1
both '[.table[]? | select(.key.comm == "busy") | .count] | select(length > 0) | add --- empty' profile "$T/busy" -F 200
ok "samples of half a second" test "$(jq -s 'map(objects | .table[]? | select(.key.comm == "busy") | .count) | add' "$T/ours")" -gt 30

# --- there is none ---

while IFS='|' read -r words says; do
	# shellcheck disable=SC2086 # several words
	like "ax trace show-script $words" "$("$AX" trace show-script $words 2>&1)" "$says"
done <<'EOF'
build -- make|a log of its own
jit -p 1|a log of its own
step uprobe:a:b|stops threads
list kprobe:x|attaches nothing
perfdata info x|attaches nothing
add x uprobe:a:b|stay when ax ends
run x|a script already
tcp|no script that does this
malloc --older 1s|expected no --older
profile -o svg|expected -o text or json
signals NOSUCH|is no signal
signals -n 3|ends by 'exit if'
nothing|expected another command
EOF
like "hypercalls" "$("$AX" trace show-script hypercall --nr 42)" 'kvm_hypercall if nr == 42'
"$AX" trace show-script tls -p $$ >"$T/s.ax"
like "plain text of TLS" "$(cat "$T/s.ax")" 'SSL_read if retval > 0'

done_testing
