/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a full read did not have. Etcd that was emptied, or put back as it was, has nothing of many
 * nodes for a moment: they write it again. So what is missing is forgotten after a while, and at
 * once only where it is certain that the store is the one that it was:
 *
 * - an app whose node's key is there, under the lease that the app's had: a lease's number is never
 *   given again, and who has it still would have written the app if it still were;
 * - a node, where this one's own key is there under a lease that it had before: its lease has ended
 *   like one of which that is told, at the earliest when all was known last.
 */
#include <search.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "registry/state.h"

struct sweep {
	struct cluster *c;
	uint64_t now_ns;
	uint64_t next_ns; /* when the next one may be gone; 0: none is missing */
	bool was_read;	  /* what the last read did not have begins to be missing now */
	bool same_store;  /* it is no older one than before */
	bool same_lease;  /* and has this node as it was before */
	uint64_t since_ns;
	size_t n_known, n_there; /* nodes */
	void **gone;		 /* to be dropped when the tree is not walked any more */
	size_t n, room;
};

/* Whether so much time has passed; if not, it is looked at again then. */
static bool is_over(struct sweep *s, uint64_t since_ns, uint64_t ms)
{
	uint64_t at = since_ns + ms * NS_PER_MS;

	if (s->now_ns >= at)
		return true;
	if (!s->next_ns || at < s->next_ns)
		s->next_ns = at;
	return false;
}

static bool is_missing(const struct sweep *s, uint64_t read)
{
	return s->was_read && read != s->c->peers.read;
}

/* Whether it is missing for long enough. */
static bool is_gone(struct sweep *s, uint64_t read, uint64_t *missing_ns)
{
	if (is_missing(s, read) && !*missing_ns)
		*missing_ns = s->now_ns;
	return *missing_ns && is_over(s, *missing_ns, CLUSTER_FORGET_MS);
}

static void add_gone(struct sweep *s, void *what)
{
	void **more;

	if (s->n == s->room) {
		more = reallocarray(s->gone, s->room ? 2 * s->room : 64, sizeof(*more));
		if (!more) {
			s->next_ns = s->now_ns + CLUSTER_RETRY_MS * NS_PER_MS;
			return;
		}
		s->gone = more;
		s->room = s->room ? 2 * s->room : 64;
	}
	s->gone[s->n++] = what;
}

static void count_node(const void *at, VISIT which, void *arg)
{
	const struct peer_node *n = *(struct peer_node *const *)at;
	struct sweep *s = arg;

	if ((which != postorder && which != leaf) || !n->up)
		return;
	s->n_known++;
	s->n_there += n->read == s->c->peers.read;
}

static void sweep_node(const void *at, VISIT which, void *arg)
{
	struct peer_node *n = *(struct peer_node *const *)at;
	struct sweep *s = arg;
	struct cluster *c = s->c;

	if ((which != postorder && which != leaf) || !n->up)
		return;
	/* (one that was missing in a store that was not certain stays so) */
	if (s->same_lease && is_missing(s, n->read) && !n->missing_ns)
		peers_node_away(c, n, 0, s->since_ns);
	else if (is_gone(s, n->read, &n->missing_ns))
		peers_node_away(c, n, 0, 0);
}

/* Whether it is gone by what the read had. */
static bool is_ended(struct sweep *s, struct peer_app *app)
{
	const struct peer_node *n = app->node;

	if (!is_missing(s, app->read))
		return false;
	if (streq(app->rec.node, s->c->node)) {
		publish_lost(s->c, app->rec.id);
		return false;
	}
	if (!n->up && n->away_ns)
		app->lost_ns = n->away_ns;
	return n->up && n->read == s->c->peers.read && s->same_store && n->lease &&
	       n->lease == app->lease && !app->missing_ns;
}

static void sweep_app(const void *at, VISIT which, void *arg)
{
	struct peer_app *app = *(struct peer_app *const *)at;
	struct sweep *s = arg;
	bool gone;

	if (which != postorder && which != leaf)
		return;
	gone = !app->lost_ns && is_ended(s, app);
	if (app->lost_ns)
		gone = is_over(s, app->lost_ns, s->c->conf.dead_after_ms);
	else if (!gone)
		gone = is_gone(s, app->read, &app->missing_ns);
	if (gone)
		add_gone(s, app);
}

static void sweep_block(const void *at, VISIT which, void *arg)
{
	struct peer_block *b = *(struct peer_block *const *)at;

	if ((which == postorder || which == leaf) && is_gone(arg, b->read, &b->missing_ns))
		add_gone(arg, b);
}

static void sweep(struct sweep *s)
{
	struct cluster *c = s->c;

	twalk_r(c->peers.nodes, sweep_node, s);
	twalk_r(c->peers.apps, sweep_app, s);
	for (size_t i = 0; i < s->n; i++)
		peers_drop_app(c, s->gone[i]);
	s->n = 0;
	twalk_r(c->peers.blocks, sweep_block, s);
	for (size_t i = 0; i < s->n; i++)
		peers_drop_block(c, s->gone[i]);
	free(s->gone);
	if (s->next_ns)
		cluster_at(c, &c->forget_at_ns, (s->next_ns - s->now_ns) / NS_PER_MS + 1);
}

/* Half of the nodes do not go all at once: then it is etcd that has lost them. */
static void judge(struct sweep *s, int64_t revision)
{
	struct cluster *c = s->c;
	const struct peer_node *own = peers_node(&c->peers, c->node);
	uint64_t known_ns = c->current ? s->now_ns : c->known_ns;

	twalk_r(c->peers.nodes, count_node, s);
	s->same_store = revision >= c->revision;
	s->same_lease = s->same_store && known_ns && 2 * s->n_there >= s->n_known && own &&
			own->read == c->peers.read && c->lease_id && own->lease == c->lease_id &&
			c->lease_since_ns <= known_ns;
	s->since_ns = c->by_memory ? s->now_ns : known_ns; /* (a memory's time is not exact) */
}

void missing_read(struct cluster *c, int64_t revision)
{
	struct sweep s = {.c = c, .now_ns = time_mono_ns(), .was_read = true};
	const struct peer_node *own = peers_node(&c->peers, c->node);

	judge(&s, revision);
	/* (one that came meanwhile is not known yet) */
	if (own && own->up && own->read != c->peers.read && c->registered)
		node_unregistered(c);
	sweep(&s);
	c->by_memory = false;
	c->known_ns = s.now_ns;
	c->revision = revision;
	c->reads++;
}

void missing_forget(struct cluster *c, uint64_t now_ns)
{
	struct sweep s = {.c = c, .now_ns = now_ns};

	/* (who cannot be asked has deleted nothing, and does not say who has come back) */
	if (c->current)
		sweep(&s);
	else
		cluster_at(c, &c->forget_at_ns, CLUSTER_RETRY_MS);
}
