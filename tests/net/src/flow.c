// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls of every kind for ax trace flow: flow [WHAT [N]]. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static jmp_buf env;

int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

void jumper(int depth)
{
	if (!depth)
		longjmp(env, 7);
	jumper(depth - 1);
}

int catcher(int times)
{
	volatile int caught = 0;

	if (setjmp(env))
		caught++;
	if (caught < times)
		jumper(2);
	return -caught;
}

const char *greet(const char *name)
{
	static char text[64];

	snprintf(text, sizeof(text), "hi %s", name);
	return text;
}

void *worker(void *arg)
{
	return (void *)(long)fib(*(int *)arg);
}

void leave(int status)
{
	exit(status);
}

int deep(int n)
{
	return n ? 1 + deep(n - 1) : 0;
}

int outer(int n)
{
	return fib(n) + 1;
}

int nap(int n)
{
	usleep(40000);
	return n + 1;
}

static void threads(int n)
{
	pthread_t t[8];
	int numbers[8];

	for (int i = 0; i < n; i++) {
		numbers[i] = i + 2;
		pthread_create(&t[i], NULL, worker, &numbers[i]);
	}
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* the second time, another program with the same thread */
static void again(char **argv)
{
	char *words[] = {argv[0], (char *)(long)"fib", (char *)(long)"1", NULL};

	execv(argv[0], words);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 3;

	if (!strcmp(what, "fib"))
		return fib(n) < 0;
	if (!strcmp(what, "jump"))
		return catcher(n) > 0;
	if (!strcmp(what, "greet"))
		return greet("world") == NULL;
	if (!strcmp(what, "threads"))
		threads(n);
	if (!strcmp(what, "exit"))
		leave(n);
	if (!strcmp(what, "deep"))
		return deep(n) != n;
	if (!strcmp(what, "exec"))
		again(argv);
	for (int i = 0; !strcmp(what, "naps") && i < n; i++)
		nap(i);
	for (int i = 0; !strcmp(what, "busy") && i < n; i++) {
		usleep(5000);
		fib(15);
	}
	if (!strcmp(what, "outer")) {
		fib(2);
		outer(n);
		fib(2);
	}
	return 0;
}
