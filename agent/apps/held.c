/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connect that waits has its SYN held back (sockops/cgroup_skb.bpf.c), and TCP would try again
 * up to a second late, or later still. So the agent sends that very SYN when somebody listens: the
 * server's answer is then one to the client's own. It goes the way that the client's would go,
 * through the client's own namespace, past whatever judges packets there.
 */
#include "apps/held.h"
#include "apps/on_connect.h"
#include "base/address.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "net/resend.h"
#include "registry/app_table.h"
#include "registry/state.h"

/* A look goes through all that are held, of which apps can make many, and they can listen as often
 * as they like: no more than this part of the agent's time. */
#define REST_TIMES 4

/* After a look that found some: those whom an accept queue had no room for, or that it missed (the
 * kernel's list moves under the reader when sockets are closed). */
#define AGAIN_TIMES 3
#define AGAIN_MS    10
/* And after looks that ended before all were sent, as they do where others have the processors. */
#define REST_LOOKS_MAX 50

struct syns {
	struct ax_held *v;
	size_t n, room;
};

#define SYNS_MAX    16384   /* of a look */
#define LOOK_NS_MAX 5000000 /* nobody waits longer for a look */

static int collect(void *arg, const struct ax_held *h)
{
	struct syns *s = arg;

	if (s->n == SYNS_MAX)
		return 1; /* the others wait for the next look, or for TCP */
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct ax_held *v = reallocarray(s->v, room, sizeof(*v));

		if (!v)
			return -ENOMEM; /* TCP tries again */
		s->v = v;
		s->room = room;
	}
	s->v[s->n++] = *h;
	return 0;
}

static void resend(struct agent *a, const struct ax_held *h)
{
	const struct app *app = app_by_id(a, h->app);
	bool private_app = app && app->spec.net == NET_PRIVATE;
	int r;

	/* whoever holds a socket of another app's namespace has TCP's own tries */
	if (!app || h->len > AX_HELD_MAX || (private_app && app->netns_fd < 0))
		return;
	r = resend_syn(private_app ? app->netns_fd : -1, h->packet, h->len,
		       addr_is_v4(&h->to.addr) ? &app->vip4 : &app->vip6, &h->to.addr);
	if (r)
		log_debug("app %s: a SYN that was held cannot be sent: %s", app->spec.name,
			  strerror(-r));
}

enum looked { FOUND_NONE, SENT_ALL, SENT_SOME };

/* (all are collected first: each one that is sent may end a socket) */
static enum looked look(struct agent *a)
{
	struct syns s = {0};
	uint64_t begin;
	enum looked sent = FOUND_NONE;
	size_t first, i;

	datapath_held_each(a->dp, collect, &s);
	begin = time_mono_ns();
	first = s.n ? begin % s.n : 0; /* those that are left over are other ones each time */
	for (i = 0; i < s.n && time_mono_ns() - begin < LOOK_NS_MAX; i++) {
		const struct ax_held *h = &s.v[(first + i) % s.n];

		if (h->why == AX_HELD_WANTED) {
			on_connect_wanted(a, &h->to.addr);
			continue;
		}
		resend(a, h);
		sent = SENT_ALL;
	}
	if (i < s.n || s.n == SYNS_MAX)
		sent = SENT_SOME;
	free(s.v);
	return sent;
}

void held_due(struct agent *a, uint64_t now_ns)
{
	struct held *h = &a->held;
	enum looked sent;
	uint64_t end;

	if (!h->at_ns || h->at_ns > now_ns)
		return;
	h->at_ns = 0;
	sent = look(a);
	if (sent == FOUND_NONE)
		h->again = 0;
	end = time_mono_ns();
	h->rest_ns = end + (end - now_ns) * REST_TIMES;
	if (!h->again)
		return;
	if (sent == SENT_SOME && h->rest_looks)
		h->rest_looks--;
	else
		h->again--;
	h->at_ns = end + AGAIN_MS * 1000000ull;
	if (h->at_ns < h->rest_ns)
		h->at_ns = h->rest_ns;
	a->timers_stale = true;
}

void held_soon(struct agent *a)
{
	struct held *h = &a->held;
	uint64_t now = time_mono_ns();

	h->again = AGAIN_TIMES;
	h->rest_looks = REST_LOOKS_MAX;
	h->at_ns = now > h->rest_ns ? now : h->rest_ns;
	a->timers_stale = true;
}

void held_awaited(struct agent *a)
{
	held_soon(a);
	held_due(a, time_mono_ns());
}

uint64_t held_deadline(const struct agent *a)
{
	return a->held.at_ns;
}
