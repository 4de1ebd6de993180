#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# beside others
# Probes under load: threads that wait for memory while others hit the same probe, full tables,
# calls that never return, places that disagree about a type, another pid namespace.
. "$(dirname "$0")/lib.sh"
need gcc jq

cat >"$T/prog.c" <<'EOF'
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define PROBED __attribute__((noinline, noclone))
#define HERE __asm__ volatile("" ::: "memory")
#define PAGE 4096L
#define SLOW 6
PROBED long named(const char *s, long n) { HERE; return n + !!s; }
PROBED long number(long n) { HERE; return n + 1; }
PROBED long at(volatile long *p, long n) { HERE; return n + !!p; }
PROBED long one_text(const char *x, long n) { HERE; return n + !!x; }
PROBED long one_number(int x, long n) { HERE; return n + x; }
static long times;
static char *area;
static int faults;
static volatile int done;
static void *name_often(void *arg)
{
	char text[300], *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(text, 'a' + (int)(long)arg, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	__asm__ volatile("" : : "r"(text) : "memory"); /* nobody but a probe reads it */
	for (long i = 0; i < times; i++) {
		named(text, (long)arg);
		/* these two pages are gone, and there again when somebody looks */
		madvise(page, 2 * PAGE, MADV_DONTNEED);
		named(page + PAGE - 1, -1);
	}
	return NULL;
}
static void *name_slow(void *arg) { named(area + PAGE * (long)arg, 1); return NULL; }
static void *fill(void *arg)
{
	static char page[PAGE] = "slow";
	struct uffd_msg m;
	while (!done)
		usleep(1000);
	while (read(faults, &m, sizeof(m)) == sizeof(m)) {
		struct uffdio_copy c = {.dst = m.arg.pagefault.address & ~(PAGE - 1),
					.src = (unsigned long)page, .len = PAGE};
		ioctl(faults, UFFDIO_COPY, &c);
	}
	return arg;
}
static int slow(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t t[SLOW], filler;
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
		return 77;
	area = mmap(NULL, SLOW * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r.range.start = (unsigned long)area;
	r.range.len = SLOW * PAGE;
	if (ioctl(faults, UFFDIO_REGISTER, &r))
		return 77;
	pthread_create(&filler, NULL, fill, NULL);
	for (long i = 0; i < SLOW; i++)
		pthread_create(&t[i], NULL, name_slow, (void *)i);
	usleep(100000); /* they all wait now */
	for (int i = 0; i < 1000; i++)
		named("fast", 2);
	done = 1;
	for (int i = 0; i < SLOW; i++)
		pthread_join(t[i], NULL);
	return 0;
}
static jmp_buf out;
static volatile int leave;
PROBED int left(int n) { if (leave) longjmp(out, 1); return n + 1; }
PROBED void deeper(int n)
{
	volatile char pad[16] = {0};
	if (n > 0)
		deeper(n - 1);
	else
		left(n);
	pad[0] = 1;
}
static void leave_often(void)
{
	for (int i = 0; i < 40; i++) {
		if (fork()) {
			wait(NULL);
			continue;
		}
		leave = 1;
		for (volatile int j = 0; j < 1000; j++)
			if (!setjmp(out))
				deeper(j);
		_exit(0);
	}
	for (int i = 0; i < 100; i++)
		left(i);
}
int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	pthread_t t[8];
	volatile long three = 3, four = 4;
	times = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(what, "slow"))
		return slow();
	if (!strcmp(what, "leave"))
		leave_often();
	for (long i = 0; !strcmp(what, "numbers") && i < times; i++)
		number(i);
	for (long i = 0; !strcmp(what, "names") && i < 8; i++)
		pthread_create(&t[i], NULL, name_often, (void *)i);
	for (long i = 0; !strcmp(what, "names") && i < 8; i++)
		pthread_join(t[i], NULL);
	if (!strcmp(what, "few")) {
		at(NULL, 1);
		at(&three, 2);
		at(&four, 3);
		for (int i = 0; i < 3; i++) {
			one_text(i ? "a text longer than a word" : "a text longer", 0);
			one_number(i - 1, 0);
		}
	}
	return 0;
}
EOF
gcc -O1 -g -pthread -o "$T/prog" "$T/prog.c"
p=$T/prog
json() {
	ax trace "$@" -o json 2>"$T/json.err"
}
total() { # of the last line
	jq -rs '.[-1] | "\(.emitted) \(.received) \(.dropped)"'
}

# --- memory that has to be waited for ---

out=$(json watch "uprobe:$p:named" s=arg0:string n=arg1:s64 -c "$p names 1000")
is "8 threads, strings in pages that are not there: all are received" "$(total <<<"$out")" \
	"16000 16000 0"
is "each string is that of its call" "$(jq -s 'map(.values // empty |
	if .n < 0 then .s == "" else .s == ([97 + .n] | implode) * 299 end) | [length, all]' -c \
	<<<"$out")" "[16000,true]"

# On kernels from 6.13 on this is where programs found the stack of another one.
out=$(json watch "uprobe:$p:named" s=arg0:string n=arg1:s64 -c "$p slow 1")
if [ "$(jq -s '.[-1].status' <<<"$out")" = 77 ]; then
	skip "probes that wait do not disturb others" "missing kernel feature userfaultfd"
else
	is "probes that wait do not hold up others" "$(total <<<"$out")" "1006 1006 0"
	is "and have what they waited for" "$(jq -s '[.[].values // empty |
		select(.s != (if .n == 1 then "slow" else "fast" end))] | length' <<<"$out")" 0
fi

# --- full tables, calls that never return ---

out=$(json count "uprobe:$p:number" arg0 -c "$p numbers 70000")
is "what a full table has no line for is counted" "$(total <<<"$out")" "70000 65536 4464"
out=$(json latency "uretprobe:$p:left" -c "$p leave 1")
is "calls that never return leave room for others" "$(total <<<"$out")" "100 100 0"

out=$(json latency "uretprobe:$p:left" --armed-by "uprobe:$p:at" -c "$p leave 1")
is "returns before anything is armed do not lack their entries" \
	"$(jq -c 'select(.emitted != null) | [.emitted, .unmatched]' <<<"$out")" "[0,null]"

# --- conditions and types ---

out=$(json watch "uprobe:$p:at" n=arg1 'if arg0 == 0 || *arg0 == 3' -c "$p few 1")
is "what cannot be fetched does not matter where the other side decides" \
	"$(jq -rs 'map(.values.n // empty) | join(" ")' <<<"$out")" "1 2"
out=$(json watch "uprobe:$p:at" n=arg1 'if arg0 && *arg0 != 3' -c "$p few 1")
is "and else is not true" "$(jq -rs 'map(.values.n // empty) | join(" ")' <<<"$out")" 3
out=$(json count "uprobe:$p:one_*" x -c "$p few 1" | head -n 1)
is "a value that is a text in one place and a number in another" \
	"$(jq -c '[.table[] | [.key.x, .count]] | sort' <<<"$out")" \
	'[[-1,1],[0,1],[1,1],["a text longer",1],["a text longer than a word",2]]'

# --- who is traced ---

out=$(unshare -pf --mount-proc "$AX" trace count "uprobe:$p:at" pid -c "$p few 1" -o json 2>&1)
like "in a pid namespace the command is found by its number there" "$out" '"emitted":3'
like "which is what is shown" "$out" '"pid":[1-9]\b'

# --- one who was stopped while changing probes ---

lock=/run/ax/$INST/trace.lock
ax trace add kept "uprobe:$p:at" >/dev/null 2>&1
bg "$T/lock.out" flock -F "$lock" sleep 20
wait_for "! flock -n '$lock' true"
like "others do not wait for ever" "$(ax trace disable kept 2>&1)" "another ax has been changing"
kill "$BG"
wait "$BG" 2>/dev/null
done_testing
