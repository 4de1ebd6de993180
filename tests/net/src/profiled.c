// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Known to be busy in one function, or to wait in another:
 *   profiled busy SECONDS           of processor time, nine tenths of it in `hot`
 *   profiled threads SECONDS        the same in two threads, "red" in red_work and "blue" in
 * blue_work profiled deep SECONDS DEPTH     in `hot`, below as many calls of `deeper`, of 256 bytes
 * each profiled signal SECONDS         in a signal's handler profiled wait TIMES             sleeps
 * for 0.1 s each time
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTION __attribute__((noinline, noclone))

static volatile unsigned long sink;

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

FUNCTION void hot(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i * i;
}
FUNCTION void cold(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink ^= i;
}
FUNCTION void middle(unsigned long n)
{
	char room[500];

	hot(9 * n);
	cold(n);
	memset(room, (int)n, sizeof(room));
	sink += (unsigned long)room[n % sizeof(room)];
}
FUNCTION void work(double until, clockid_t clock)
{
	while (seconds(clock) < until)
		middle(20000);
	sink++;
}
FUNCTION unsigned long deeper(int depth, double until)
{
	volatile char room[200];

	room[depth % 200] = 1;
	if (depth)
		return deeper(depth - 1, until) + (unsigned long)room[depth % 200];
	work(until, CLOCK_PROCESS_CPUTIME_ID);
	return sink;
}
FUNCTION void red_work(double until)
{
	work(until, CLOCK_THREAD_CPUTIME_ID);
	sink++;
}
FUNCTION void blue_work(double until)
{
	work(until, CLOCK_THREAD_CPUTIME_ID);
	sink++;
}

static double until;

static void *red(void *arg)
{
	pthread_setname_np(pthread_self(), "red");
	red_work(until);
	return arg;
}
static void *blue(void *arg)
{
	pthread_setname_np(pthread_self(), "blue");
	blue_work(until);
	return arg;
}
static void on_signal(int sig)
{
	work(until, CLOCK_PROCESS_CPUTIME_ID);
	sink += (unsigned long)sig;
}

FUNCTION void wait_here(int times)
{
	const struct timespec t = {.tv_nsec = 100000000};

	while (times--)
		nanosleep(&t, NULL);
	sink++;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	if (argc < 3)
		return 2;
	until = atof(argv[2]);
	if (!strcmp(argv[1], "threads")) {
		pthread_create(&a, NULL, red, NULL);
		pthread_create(&b, NULL, blue, NULL);
		pthread_join(a, NULL);
		pthread_join(b, NULL);
	} else if (!strcmp(argv[1], "deep") && argc > 3) {
		deeper(atoi(argv[3]), until);
	} else if (!strcmp(argv[1], "signal")) {
		signal(SIGUSR1, on_signal);
		raise(SIGUSR1);
	} else if (!strcmp(argv[1], "wait")) {
		wait_here(atoi(argv[2]));
	} else {
		work(until, CLOCK_PROCESS_CPUTIME_ID);
	}
	return 0;
}
