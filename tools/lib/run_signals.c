/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/run_signals.h"

#include <stddef.h>
#include <time.h>

#define N_SIGNALS 3
static const int signals[N_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* timeout(1) of GNU tells the process, and then all of its group: that is one signal. */
#define ECHO_MS 250

static volatile sig_atomic_t came, typed;
static struct timespec first; /* when it came */

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (!came)
		clock_gettime(CLOCK_MONOTONIC, &first);
	typed = info->si_code == SI_KERNEL;
	came = 1;
}

static bool is_echo(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 <
	       ECHO_MS;
}

static void on_signal_once(int sig, siginfo_t *info, void *context)
{
	if (!came) {
		on_signal(sig, info, context);
	} else if (!is_echo()) {
		signal(sig, SIG_DFL);
		raise(sig); /* when this is over */
	}
}

void run_signals_catch(void)
{
	struct sigaction sa = {.sa_sigaction = on_signal_once, .sa_flags = SA_SIGINFO};
	struct sigaction old;

	for (int i = 0; i < N_SIGNALS; i++)
		sigaddset(&sa.sa_mask, signals[i]);

	for (int i = 0; i < N_SIGNALS; i++)
		/* nohup(1) means what is started by it, too */
		if (signals[i] != SIGHUP || sigaction(SIGHUP, NULL, &old) < 0 ||
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

void run_signals_catch_all(void)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

void run_signals_block(sigset_t *open)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < N_SIGNALS; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, open);
}

bool run_signals_came(void)
{
	const struct timespec now = {0};
	sigset_t pending, set;
	siginfo_t info;

	if (came || sigpending(&pending) < 0)
		return came;
	sigemptyset(&set);
	for (int i = 0; i < N_SIGNALS; i++)
		if (sigismember(&pending, signals[i]))
			sigaddset(&set, signals[i]);
	if (!sigisemptyset(&set) && sigtimedwait(&set, &info, &now) > 0)
		on_signal(info.si_signo, &info, NULL);
	return came;
}

bool run_signals_typed(void)
{
	return came && typed;
}
