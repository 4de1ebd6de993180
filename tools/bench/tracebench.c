// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The traced end of `make bench`: functions whose first instructions are known, and what starts a
 * tracer, waits until its probe is in them, calls them, and ends it. It knows nothing of ax: a
 * tracer is any command that goes on until SIGINT. It prints one JSON object on one line.
 *
 *   tracebench [OPTION ...] call FUNCTION -- TRACER...	 what a call costs
 *   tracebench [OPTION ...] first TEXT -- TRACER...	 ms from the start until it prints TEXT
 *   tracebench [OPTION ...] many -- TRACER...		 seconds to attach and to detach
 *
 *   -c CPU  where the functions are called; the tracer may run anywhere
 *   -t MS   how long they are called
 *   -n N    of `many`: how many functions are probed
 *   -r RATE calls a second; without it, as many as possible
 *   -o FILE for what the tracer prints; without it, it prints where this program does
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS	    UINT64_C(1000000000)
#define MS	    UINT64_C(1000000)
#define PLACE_SIZE  64u	  /* of each function, all of which may be where the probe went */
#define MANY	    2000u /* functions of `many` */
#define MANY_SIZE   16u
#define SLICE	    100u
#define SLICES_MAX  (1u << 17)
#define WAIT_NS	    (300 * NS) /* on a busy machine, some need a second to detach each probe */
#define AGAIN_NS    (5 * NS)
#define SETTLE_NS   (500 * MS) /* a tracer that attached may not listen to signals yet */
#define BARE_CALLS  1000000u
#define FIRST_PAUSE 20000 /* ns between calls while the tracer starts */
#define TEXT_SIZE   4096u

#ifdef __x86_64__

/*
 * In assembler, since what a compiler puts first is its own affair. Each has a twin that is never
 * probed. What follows the first instruction is what gcc lets follow it in a function with a frame.
 */
__asm__(".text\n"
	".macro function name, bytes:vararg\n"
	".balign 64\n"
	".globl \\name\n"
	".type \\name, @function\n"
	"\\name:\n"
	".ifnb \\bytes\n"
	"	.byte \\bytes\n"
	".endif\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov %edi, %eax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size \\name, . - \\name\n"
	".balign 64\n"
	".endm\n"
	"function push_probed\n"
	"function push_bare\n"
	"function nop5_probed, 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"function nop5_bare, 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"function endbr_probed, 0xf3, 0x0f, 0x1e, 0xfa\n"
	"function endbr_bare, 0xf3, 0x0f, 0x1e, 0xfa\n"
	".purgem function\n"
	".altmacro\n"
	".macro one_of_many n\n"
	".balign 16\n"
	".globl many_\\n\n"
	".type many_\\n, @function\n"
	"many_\\n:\n"
	"	push %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size many_\\n, . - many_\\n\n"
	".endm\n"
	".globl many_begin\n"
	".balign 16\n"
	"many_begin:\n"
	".set number, 10000\n"
	".rept 2000\n"
	"one_of_many %number\n"
	".set number, number + 1\n"
	".endr\n"
	".noaltmacro\n"
	".balign 16\n");

int push_probed(int n), push_bare(int n);
int nop5_probed(int n), nop5_bare(int n);
int endbr_probed(int n), endbr_bare(int n);
extern const char many_begin[];

static const struct function {
	const char *name;
	int (*probed)(int), (*bare)(int);
} functions[] = {
	{"push", push_probed, push_bare},
	{"nop5", nop5_probed, nop5_bare},
	{"endbr", endbr_probed, endbr_bare},
};

struct options {
	int cpu; /* -1: any */
	uint64_t ns, rate;
	unsigned n;
	const char *out; /* NULL: ours */
	cpu_set_t cpus;	 /* that the tracer may use */
};

struct tracer {
	pid_t pid; /* 0: none */
	int out;   /* what it prints, -1: goes elsewhere */
	uint64_t start_ns;
	struct rusage used;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){.tv_sec = ns / (long)NS, .tv_nsec = ns % (long)NS}, NULL);
}

static int failed(const char *what, int err)
{
	fprintf(stderr, "tracebench: %s failed: %s\n", what, strerror(-err));
	return err;
}

/* --- the tracer --- */

static _Noreturn void become(const struct options *o, char **command, int out)
{
	int fd = o->out ? open(o->out, O_WRONLY | O_CREAT | O_TRUNC, 0666) : STDERR_FILENO;

	sched_setaffinity(0, sizeof(o->cpus), &o->cpus);
	if (fd < 0 || dup2(out >= 0 ? out : fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	execvp(command[0], command);
	_exit(127);
}

/* piped: what it prints can be read from t->out. */
static int tracer_start(const struct options *o, char **command, bool piped, struct tracer *t)
{
	int ends[2] = {-1, -1};

	*t = (struct tracer){.out = -1};
	if (piped && pipe2(ends, O_CLOEXEC) < 0)
		return failed("pipe2", -errno);
	t->start_ns = now_ns();
	t->pid = fork();
	if (t->pid == 0)
		become(o, command, ends[1]);
	if (ends[1] >= 0)
		close(ends[1]);
	t->out = ends[0];
	if (t->pid < 0) {
		t->pid = 0;
		return failed("fork", -errno);
	}
	return 0;
}

/*
 * It ends by itself, or by the signal; fails if it says that it failed. bpftrace misses a signal
 * that comes right before it begins to wait, so it is sent again.
 */
static int tracer_end(struct tracer *t, int signal)
{
	uint64_t until = now_ns() + WAIT_NS, again = 0;
	int status = 0;
	pid_t r = 0;

	if (t->out >= 0)
		close(t->out);
	t->out = -1;
	if (!t->pid)
		return 0;
	while ((r = wait4(t->pid, &status, WNOHANG, &t->used)) == 0 && now_ns() < until) {
		if (now_ns() >= again) {
			kill(t->pid, signal);
			again = now_ns() + AGAIN_NS;
		}
		pause_ns(100000);
	}
	if (r == 0) {
		kill(t->pid, SIGKILL);
		wait4(t->pid, &status, 0, &t->used);
	}
	t->pid = 0;
	if (r > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	fprintf(stderr, "tracebench: the tracer %s\n",
		r == 0 ? "did not end" : "failed: see what it printed");
	return -EIO;
}

static bool has_ended(const struct tracer *t)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)t->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

/* --- the probed code --- */

/* Read anew each time: the kernel writes there. */
static bool differs(const volatile char *code, const char *before, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (code[i] != before[i])
			return true;
	return false;
}

static int wait_for_probe(const struct tracer *t, const char *code, const char *before, size_t len,
			  bool there)
{
	uint64_t until = now_ns() + WAIT_NS;

	while (differs(code, before, len) != there) {
		if (has_ended(t) || now_ns() > until) {
			fprintf(stderr, "tracebench: the tracer attached nothing: see what it "
					"printed\n");
			return -ETIME;
		}
		pause_ns(100000);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * What one call costs: in the mean of all time that passes, and in the median of slices, which does
 * not see what else the processor does. A slice at a time, since the clock costs too.
 */
static double call_ns(int (*f)(int), uint64_t ns, uint64_t *calls, double *median)
{
	static uint32_t slices[SLICES_MAX];
	uint64_t begin = now_ns(), last = begin, now;
	size_t n = 0;
	uint32_t middle;

	do {
		for (unsigned i = 0; i < SLICE; i++)
			f((int)i);
		now = now_ns();
		slices[n++ % SLICES_MAX] = (uint32_t)(now - last);
		last = now;
	} while (now - begin < ns);
	*calls = n * SLICE;
	n = n < SLICES_MAX ? n : SLICES_MAX;
	qsort(slices, n, sizeof(slices[0]), compare);
	middle = slices[n / 2];
	*median = (double)middle / SLICE;
	return (double)(now - begin) / (double)*calls;
}

static double bare_ns(int (*f)(int))
{
	uint64_t begin = now_ns();

	for (unsigned i = 0; i < BARE_CALLS; i++)
		f((int)i);
	return (double)(now_ns() - begin) / BARE_CALLS;
}

/* Each call at its time, or at once when that has passed. */
static double paced_ns(int (*f)(int), const struct options *o, uint64_t *calls)
{
	uint64_t begin = now_ns(), n = o->rate * (o->ns / MS) / 1000;

	for (*calls = 0; *calls < n; ++*calls) {
		while (now_ns() - begin < *calls * NS / o->rate)
			;
		f((int)*calls);
	}
	return (double)(now_ns() - begin) / (double)n;
}

static uint64_t cpu_ns(const struct rusage *u)
{
	return ((uint64_t)u->ru_utime.tv_sec + (uint64_t)u->ru_stime.tv_sec) * NS +
	       ((uint64_t)u->ru_utime.tv_usec + (uint64_t)u->ru_stime.tv_usec) * 1000;
}

static int measure_calls(const struct options *o, const struct function *f, struct tracer *t)
{
	char before[PLACE_SIZE];
	const char *code = (const char *)(uintptr_t)f->probed;
	uint64_t calls, settle;
	double bare, ns, median = 0;

	memcpy(before, code, sizeof(before));
	if (wait_for_probe(t, code, before, sizeof(before), true) < 0)
		return -ETIME;
	/* a breakpoint can be there before its program is */
	for (settle = now_ns() + SETTLE_NS; now_ns() < settle;)
		pause_ns(1000000);
	bare = bare_ns(f->bare);
	ns = o->rate ? paced_ns(f->probed, o, &calls) : call_ns(f->probed, o->ns, &calls, &median);
	if (o->rate)
		median = ns;
	if (tracer_end(t, SIGINT) < 0)
		return -EIO;
	printf("{\"value\":%.1f,\"median\":%.1f,\"bare\":%.2f,\"calls\":%llu,\"rate\":%.0f,"
	       "\"tracer_ns\":%.1f,"
	       "\"rss_mib\":%.2f}\n",
	       ns - bare, median - bare, bare, (unsigned long long)calls, (double)NS / ns,
	       (double)cpu_ns(&t->used) / (double)calls, (double)t->used.ru_maxrss / 1024);
	return 0;
}

static int run_calls(const struct options *o, const char *name, char **command)
{
	struct tracer t;
	int r;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(name, functions[i].name) != 0)
			continue;
		/* the page of the code is there before the kernel looks for it */
		functions[i].probed(0);
		r = tracer_start(o, command, false, &t);
		if (r == 0)
			r = measure_calls(o, &functions[i], &t);
		tracer_end(&t, SIGTERM);
		return r;
	}
	fprintf(stderr, "tracebench: there is no function '%s'\n", name);
	return -EINVAL;
}

/* --- from its start to what it prints --- */

static int wait_for_text(struct tracer *t, const char *text)
{
	char said[TEXT_SIZE + 1] = "";
	size_t n = 0;
	uint64_t until = now_ns() + WAIT_NS;

	while (!strstr(said, text)) {
		struct pollfd p = {.fd = t->out, .events = POLLIN};
		struct timespec pause = {.tv_nsec = FIRST_PAUSE};
		ssize_t r;

		push_probed((int)n);
		if (now_ns() > until)
			return -ETIME;
		if (ppoll(&p, 1, &pause, NULL) <= 0)
			continue;
		r = read(t->out, said + n, TEXT_SIZE - n);
		if (r <= 0)
			return r < 0 ? -errno : -ENODATA;
		n += (size_t)r;
		said[n] = '\0';
	}
	return 0;
}

static int run_first(const struct options *o, const char *text, char **command)
{
	struct tracer t;
	uint64_t ns;
	int r = tracer_start(o, command, true, &t);

	if (r < 0)
		return r;
	r = wait_for_text(&t, text);
	ns = now_ns() - t.start_ns;
	if (r < 0)
		failed("waiting for what the tracer prints", r);
	if (tracer_end(&t, SIGINT) < 0)
		r = -EIO;
	if (r == 0)
		printf("{\"value\":%.2f,\"rss_mib\":%.2f}\n", (double)ns / (double)MS,
		       (double)t.used.ru_maxrss / 1024);
	return r;
}

/* --- many probes --- */

static void call_many(void)
{
	for (unsigned i = 0; i < MANY; i++)
		((void (*)(void))(uintptr_t)(many_begin + (size_t)i * MANY_SIZE))();
}

static unsigned count_probes(const char *before)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MANY; i++)
		n += differs(many_begin + (size_t)i * MANY_SIZE, before + (size_t)i * MANY_SIZE,
			     MANY_SIZE);
	return n;
}

static int wait_for_probes(const struct tracer *t, const char *before, unsigned n)
{
	uint64_t until = now_ns() + WAIT_NS;
	unsigned there;

	while ((there = count_probes(before)) < n) {
		if (has_ended(t) || now_ns() > until) {
			fprintf(stderr, "tracebench: %u of %u functions were probed\n", there, n);
			return -ETIME;
		}
		pause_ns(200000);
	}
	return 0;
}

/* From the start until all are there, and from the signal until the tracer has ended. */
static int run_many(const struct options *o, char **command)
{
	static char before[MANY * MANY_SIZE];
	uint64_t attached, begin, detached;
	struct tracer t;
	int r;

	memcpy(before, many_begin, sizeof(before));
	call_many();
	r = tracer_start(o, command, false, &t);
	if (r == 0)
		r = wait_for_probes(&t, before, o->n);
	attached = now_ns() - t.start_ns;
	if (r == 0) {
		pause_ns((long)SETTLE_NS);
		call_many();
	}
	begin = now_ns();
	if (tracer_end(&t, SIGINT) < 0 || r < 0)
		return -EIO;
	detached = now_ns() - begin;
	printf("{\"value\":%.4f,\"attach\":%.4f,\"detach\":%.4f,\"calls\":%u,\"rss_mib\":%.2f}\n",
	       (double)(attached + detached) / (double)NS, (double)attached / (double)NS,
	       (double)detached / (double)NS, o->n, (double)t.used.ru_maxrss / 1024);
	return 0;
}

/* --- the command line --- */

static bool parse_options(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt(argc, argv, "+c:t:n:r:o:")) != -1) {
		if (c == 'c')
			o->cpu = atoi(optarg);
		else if (c == 't')
			o->ns = strtoull(optarg, NULL, 10) * MS;
		else if (c == 'n')
			o->n = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			o->rate = strtoull(optarg, NULL, 10);
		else if (c == 'o')
			o->out = optarg;
		else
			return false;
	}
	return o->n && o->n <= MANY && o->ns;
}

static int run(const struct options *o, int argc, char **argv)
{
	bool named = argc > 0 && (!strcmp(argv[0], "call") || !strcmp(argv[0], "first"));
	int at = named ? 2 : 1;

	if (argc < at + 2 || strcmp(argv[at], "--") != 0 ||
	    (!named && strcmp(argv[0], "many") != 0)) {
		fprintf(stderr, "usage: tracebench [-c CPU] [-t MS] [-n N] [-r RATE] [-o FILE] "
				"call FUNCTION|first TEXT|many -- TRACER...\n");
		return -EINVAL;
	}
	if (!strcmp(argv[0], "call"))
		return run_calls(o, argv[1], argv + at + 1);
	if (!strcmp(argv[0], "first"))
		return run_first(o, argv[1], argv + at + 1);
	return run_many(o, argv + at + 1);
}

int main(int argc, char **argv)
{
	struct options o = {.cpu = -1, .ns = NS, .n = MANY};
	cpu_set_t one;

	if (!parse_options(argc, argv, &o))
		return run(&o, 0, NULL) < 0;
	if (sched_getaffinity(0, sizeof(o.cpus), &o.cpus) < 0)
		return failed("sched_getaffinity", -errno) < 0;
	CPU_ZERO(&one);
	if (o.cpu >= 0)
		CPU_SET((unsigned)o.cpu, &one);
	if (o.cpu >= 0 && sched_setaffinity(0, sizeof(one), &one) < 0)
		return failed("sched_setaffinity", -errno) < 0;
	signal(SIGPIPE, SIG_IGN);
	return run(&o, argc - optind, argv + optind) < 0;
}

#else

int main(void)
{
	fputs("tracebench: its functions are x86-64's\n", stderr);
	return 2;
}

#endif
