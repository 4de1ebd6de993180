// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls in a known order, for probes: recursion, longjmp, threads, questions and their answers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define PROBED __attribute__((noinline, noclone))
#define HERE   __asm__ volatile("" ::: "memory")
int counter = 100;
static const char untouched[8192] __attribute__((aligned(4096))) = "nobody has read this";
static jmp_buf out;
PROBED int leaf(int n)
{
	HERE;
	return n + 1;
}
PROBED int inner(int n)
{
	HERE;
	return leaf(n) + leaf(n + 1);
}
PROBED int outer(int n)
{
	HERE;
	return n ? outer(n - 1) + inner(n) : inner(0);
}
PROBED void leaves(int n)
{
	HERE;
	leaf(n);
	longjmp(out, 1);
}
PROBED int count_up(int n)
{
	HERE;
	return counter += n;
}
PROBED const char *constant(const char *s)
{
	HERE;
	return s + 1;
}
PROBED void asked(long id)
{
	HERE;
	(void)id;
}
PROBED void answered(long id)
{
	HERE;
	(void)id;
}
static void *thread(void *arg)
{
	for (int i = 0; i < 100; i++)
		outer(2);
	return arg;
}
int main(void)
{
	pthread_t t[2];
	for (int i = 1; i <= 3; i++)
		count_up(i);
	constant(untouched);
	leaf(1);
	outer(1);
	leaf(2);
	if (!setjmp(out))
		leaves(3);
	leaf(4);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, thread, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	asked(1);
	asked(2);
	usleep(20000);
	answered(2);
	answered(1);
	answered(3);
	usleep(400000); /* so that it can still be asked what is where in it */
	return 0;
}
