// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of attachments.
 *
 * A tracepoint's perf event ends in two steps, for each of which the kernel waits. The link's end
 * takes the program away: all who wait for that at the same time wait for the same grace period,
 * so that many threads do it at once. The event's own end holds a lock of the whole kernel for
 * some 40 ms: of many events it is left to a process that does nothing else, when no program
 * is there any more that would do anything.
 */
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "probes/engine/link.h"
#include "probes/engine/priv.h"

int engine_keep_event(struct engine *g, int link, int event)
{
	if (g->n_events == g->max_events) {
		size_t n = g->max_events ? g->max_events * 2 : 16;
		int *links = reallocarray(g->event_links, n, sizeof(*links));
		int *events = links ? reallocarray(g->events, n, sizeof(*events)) : NULL;

		if (links)
			g->event_links = links;
		if (events)
			g->events = events;
		if (!events) {
			close(link);
			close(event);
			return -ENOMEM;
		}
		g->max_events = n;
	}
	g->event_links[g->n_events] = link;
	g->events[g->n_events++] = event;
	return 0;
}

struct closing {
	const int *fds;
	atomic_long left;
};

static void *close_next(void *arg)
{
	struct closing *c = arg;

	for (long i; (i = atomic_fetch_sub(&c->left, 1)) > 0;)
		close(c->fds[i - 1]);
	return NULL;
}

static void close_together(const int *fds, size_t n_fds)
{
	struct closing c = {.fds = fds};
	pthread_t threads[ENGINE_CLOSERS];
	sigset_t all, before;
	size_t n = 0;

	atomic_init(&c.left, (long)n_fds);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (n < ENGINE_CLOSERS && n + 1 < n_fds &&
	       pthread_create(&threads[n], NULL, close_next, &c) == 0)
		n++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close_next(&c);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void close_events(struct engine *g)
{
	int later = -1;

	if (g->n_events > ENGINE_EVENTS_AT_ONCE) {
		later = link_close_later(g->events, g->n_events);
		/* of a kernel whose links end without waiting, programs may be running still */
		syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	}
	while (g->n_events)
		close(g->events[--g->n_events]);
	close_fd(&later);
}

/* The last ones first, but for those of which none has to go before another one: links that own
 * their tracepoints' events. */
static void close_links(void *arg)
{
	struct engine *g = arg;

	if (g->uses[PROGRAM_CLASSIC] && !g->uses[PROGRAM_USER] && !g->uses[PROGRAM_KERNEL]) {
		close_together(g->link_fds, g->n_link_fds);
		g->n_link_fds = 0;
	}
	while (g->n_link_fds)
		close(g->link_fds[--g->n_link_fds]);
	while (g->n_links)
		bpf_link__destroy(g->links[--g->n_links]);
}

void engine_close_links(struct engine *g)
{
	/* what is pinned, the kernel detaches by itself when its file goes */
	if (!g->uses[PROGRAM_USER] || !g->n_link_fds || g->plan->pin)
		close_links(g);
	else
		link_close_apart(close_links, g);
	close_together(g->event_links, g->n_events);
	close_events(g);
	while (g->n_mappings) {
		g->n_mappings--;
		munmap(g->mappings[g->n_mappings].at, g->mappings[g->n_mappings].bytes);
	}
}
