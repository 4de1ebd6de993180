/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/run_signals.h"

#include <stddef.h>

#define N_SIGNALS 3
static const int signals[N_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t came;

static void on_signal(int sig)
{
	(void)sig;
	came = 1;
}

void run_signals_catch(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	for (int i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &sa, NULL);
}

void run_signals_catch_all(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

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
	sigset_t pending;

	if (!came && sigpending(&pending) == 0)
		for (int i = 0; i < N_SIGNALS; i++)
			if (sigismember(&pending, signals[i]))
				came = 1;
	return came;
}
