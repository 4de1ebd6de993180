// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs whose results tell whether they were disturbed while a tracer stepped them. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#define STEPPED __attribute__((noinline, noclone))
#define HERE	__asm__ volatile("" ::: "memory")

/* Known instructions, one of which begins with a nop as compilers leave them for tracers. */
long known(long n);
__asm__(".text\n.globl known\n.type known, @function\n"
	"known:\n"
	"	push %rbx\n"
	"	mov %rdi,%rbx\n"
	"	add $0x5,%rbx\n"
	"	lea 0x1(%rbx),%rax\n"
	"	pop %rbx\n"
	"	ret\n"
	".size known, .-known\n");
long nop5(long n);
__asm__(".globl nop5\n.type nop5, @function\nnop5:\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	mov %rdi,%rax\n"
	"	add $0x7,%rax\n"
	"	ret\n"
	".size nop5, .-nop5\n");
/* Flags that go over the stack and back. */
long flags(long n);
__asm__(".globl flags\n.type flags, @function\nflags:\n"
	"	push %rbp\n"
	"	cmp $0x1,%rdi\n"
	"	pushf\n"
	"	mov (%rsp),%rax\n"
	"	and $0x100,%eax\n"
	"	popf\n"
	"	sete %al\n"
	"	movzbl %al,%eax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size flags, .-flags\n");

/* Known floating-point instructions. */
double scale(double x, float f);
__asm__(".globl scale\n.type scale, @function\nscale:\n"
	"	push %rbx\n"
	"	addsd %xmm0,%xmm0\n"
	"	cvtss2sd %xmm1,%xmm2\n"
	"	mulsd %xmm2,%xmm0\n"
	"	movaps %xmm0,%xmm3\n"
	"	cvttsd2si %xmm3,%rax\n"
	"	addps %xmm1,%xmm1\n"
	"	pop %rbx\n"
	"	ret\n"
	".size scale, .-scale\n");

struct spot {
	double x, y;
	const char *name;
};

/* Variables in vector registers, and in memory. */
STEPPED double blend(double a, float f, const struct spot *s)
{
	double sum = a * s->x;

	HERE;
	sum += f;
	HERE;
	return sum * s->y;
}

STEPPED uint64_t mix(uint64_t v, unsigned n)
{
	HERE; /* each call is made */
	for (unsigned i = 0; i < n; i++) {
		v ^= v << 13;
		v ^= v >> 7;
		v ^= v << 17;
	}
	return v;
}

STEPPED long lines(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += i * 2;
	sum++;
	return sum;
}

/* --- threads --- */

static void *thread(void *arg)
{
	uint64_t v = (uint64_t)(uintptr_t)arg + 1;

	for (int i = 0; i < 300; i++)
		v = mix(v, 20);
	return (void *)(uintptr_t)v;
}

static int threads(void)
{
	pthread_t t[4];
	uint64_t sum = 0;

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, (void *)i);
	for (int i = 0; i < 4; i++) {
		void *v;

		pthread_join(t[i], &v);
		sum += (uint64_t)(uintptr_t)v;
	}
	printf("%llx\n", (unsigned long long)sum);
	return 0;
}

STEPPED void *ends(void *arg)
{
	HERE;
	return arg;
}

static int short_threads(void)
{
	pthread_t t;

	for (int i = 0; i < 50; i++) {
		pthread_create(&t, NULL, ends, NULL);
		pthread_join(t, NULL);
	}
	printf("50\n");
	return 0;
}

/* --- signals --- */

static volatile uint64_t sink;

static volatile sig_atomic_t ticks, users;
static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}
static void on_user(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	users += info->si_value.sival_int;
}

/* Real-time signals are queued: none may be lost, and none come twice. */
static int signals(void)
{
	const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct sigaction user = {.sa_sigaction = on_user, .sa_flags = SA_SIGINFO | SA_RESTART};
	uint64_t v = 1;

	sigaction(SIGALRM, &tick, NULL);
	sigaction(SIGRTMIN, &user, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 1000; i++) {
		sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1});
		v = mix(v, 20);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%llx %d\n", (unsigned long long)v, users);
	return 0;
}

/* A thread that blocks all signals is stopped all the same; one it sends itself stays blocked. */
static int blocked(void)
{
	sigset_t all, pending;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	raise(SIGUSR1);
	sink = mix(1, 20);
	sigpending(&pending);
	printf("%d %d\n", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGTRAP));
	return 0;
}

static void on_trap(int sig)
{
	(void)sig;
	users++;
}

STEPPED void own_trap(void)
{
	HERE;
	__asm__ volatile("int3");
	raise(SIGTRAP);
}

static int traps(void)
{
	sigset_t trap, now;

	signal(SIGTRAP, on_trap);
	own_trap();
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigprocmask(SIG_BLOCK, &trap, NULL);
	raise(SIGTRAP);
	sink = mix(1, 5);
	sigpending(&now);
	printf("%d %d", users, sigismember(&now, SIGTRAP));
	sigprocmask(SIG_UNBLOCK, &trap, &now);
	printf(" %d %d\n", users, sigismember(&now, SIGTRAP));
	return 0;
}

/* --- system calls --- */

STEPPED int calls(int fd)
{
	char c = 'x';

	HERE;
	if (write(fd, &c, 1) != 1 || read(fd - 1, &c, 1) != 1)
		return -1;
	return c;
}

static int pipes(void)
{
	int p[2];

	if (pipe(p))
		return 1;
	/* the reading end has the lower number */
	printf("%c\n", calls(p[1]));
	return 0;
}

STEPPED int forks(void)
{
	int status;
	pid_t pid;

	HERE;
	pid = fork();
	if (!pid)
		_exit(mix(3, 2) ? 7 : 8);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

STEPPED int becomes(char *const argv[])
{
	HERE;
	return execv(argv[0], argv);
}

STEPPED int waits(int fd)
{
	char c = 0;

	HERE;
	return read(fd, &c, 1) == 1 ? c : -1;
}

/* --- for long --- */

/* Ends when its input does, or `n` rounds are over; says what it computed, and whether one that
 * ends it came to nothing. */
static int rounds(long n)
{
	uint64_t v = 1;

	for (long i = 0; i < n; i++)
		v = mix(v, 50);
	printf("%llx\n", (unsigned long long)v);
	return 0;
}

static int endless(void)
{
	char c;

	fcntl(0, F_SETFL, O_NONBLOCK);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		sink = mix(1, 1000);
		usleep(100);
		if (read(0, &c, 1) == 0)
			break;
	}
	printf("ended\n");
	return 0;
}

int main(int argc, char **argv)
{
	static char *again[] = {(char *)"/bin/echo", (char *)"another", NULL};
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "known"))
		printf("%ld %ld\n", known(1) + known(2), nop5(1) + nop5(2));
	else if (!strcmp(mode, "floats"))
		printf("%g %g\n", scale(1.5, 0.25F),
		       blend(1.5, 0.25F, &(struct spot){2, 4, "here"}));
	else if (!strcmp(mode, "flags"))
		printf("%ld %ld\n", flags(1), flags(2));
	else if (!strcmp(mode, "lines"))
		printf("%ld\n", lines(3));
	else if (!strcmp(mode, "threads"))
		return threads();
	else if (!strcmp(mode, "short"))
		return short_threads();
	else if (!strcmp(mode, "signals"))
		return signals();
	else if (!strcmp(mode, "blocked"))
		return blocked();
	else if (!strcmp(mode, "traps"))
		return traps();
	else if (!strcmp(mode, "pipes"))
		return pipes();
	else if (!strcmp(mode, "forks"))
		printf("%d\n", forks());
	else if (!strcmp(mode, "becomes"))
		return becomes(again);
	else if (!strcmp(mode, "waits"))
		printf("%c\n", waits(0));
	else if (!strcmp(mode, "rounds"))
		return rounds(argc > 2 ? atol(argv[2]) : 1000);
	else
		return endless();
	return 0;
}
