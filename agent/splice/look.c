// SPDX-License-Identifier: GPL-2.0-or-later
#include "splice/look.h"
#include "base/log.h"
#include "base/work.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "splice/policy.h"
#include "splice/streams.h"

#define YOUNG_NS (250 * 1000 * 1000ull)

/* --- all connections --- */

static int add_conn(void *arg, const struct ax_splice_conn *conn)
{
	struct census *c = arg;

	if (c->n == c->max) {
		size_t max = c->max ? 2 * c->max : 64;
		struct ax_splice_conn *more = realloc(c->conns, max * sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->conns = more;
		c->max = max;
	}
	c->conns[c->n++] = *conn;
	return 0;
}

/* Namespaces first, in one go: apps come and go meanwhile. */
static int list_spaces(struct agent *a, struct census *c)
{
	*c = (struct census){.spaces = calloc(a->n_apps + 1, sizeof(*c->spaces))};
	if (!c->spaces)
		return -ENOMEM;
	c->spaces[0].cookie = a->netns_cookie;
	c->spaces[0].fd = -1;
	c->n_spaces = 1;
	for (const struct app *app = a->apps; app; app = app->next) {
		int fd = app->spec.net == NET_PRIVATE ? app_netns(app) : -1;

		if (fd < 0)
			continue;
		c->spaces[c->n_spaces].cookie = app->netns_cookie;
		c->spaces[c->n_spaces++].fd = fd;
	}
	return 0;
}

int census_take(struct agent *a, struct work *w, struct census *c)
{
	int r = list_spaces(a, c);

	for (size_t i = 0; !r && i < c->n_spaces; i++) {
		r = datapath_splice_conns_each(a->splicing->programs, c->spaces[i].fd, add_conn, c);
		work_pause(w);
	}
	return r;
}

void census_free(struct census *c)
{
	for (size_t i = 1; i < c->n_spaces; i++)
		close(c->spaces[i].fd);
	free(c->spaces);
	free(c->conns);
	*c = (struct census){0};
}

/* A namespace's descriptor. */
static int census_space(const struct census *c, uint64_t netns)
{
	for (size_t i = 0; i < c->n_spaces; i++)
		if (c->spaces[i].cookie == netns)
			return c->spaces[i].fd;
	return -1;
}

/* --- whose they are, and what they say --- */

const struct app *app_of_endpoint(struct agent *a, const struct ax_endpoint *ep)
{
	const struct vip *v = vip_find(a, &ep->addr);

	return v ? v->app : NULL;
}

bool census_owns(void *arg, const struct ax_splice_conn *c)
{
	struct agent *a = arg;
	const struct app *app = app_of_endpoint(a, &c->local);

	if (!app || app->id != c->app)
		return false;
	return c->netns == (app->spec.net == NET_PRIVATE ? app->netns_cookie : a->netns_cookie);
}

enum splice_mode mode_of(struct agent *a, const struct ax_endpoint *asked, const struct app *client,
			 const struct app *server)
{
	const struct vip *v = asked->port_be ? vip_find(a, &asked->addr) : NULL;
	const struct config_service *service = v && v->service ? v->service->conf : NULL;
	const struct splice_words words = {
		.service = service ? service->splice : SPLICE_AUTO,
		.client = client ? client->spec.splice : SPLICE_AUTO,
		.server = server ? server->spec.splice : SPLICE_AUTO,
		.agent = a->config.splice,
	};

	return splice_mode_of(&words);
}

/* --- what the programs of an app say --- */

struct app_fact {
	struct watched is;
	bool joined; /* has connections that are */
	bool edges, edges_known;
};

struct looking {
	struct agent *a;
	struct splicing *sp;
	struct census census;
	struct pair *pairs;
	size_t n_pairs;
	struct app_fact *facts; /* of apps that were asked about in this look */
	size_t n_facts;
	struct shares shares;
	struct splice_pair *joins, *parts;
	struct decision **joined; /* of each of the joins */
	uint64_t *counts;	  /* cookies of streams' ends whose messages are to be counted */
	size_t n_counts;
	size_t n_joins, n_parts;
};

struct question {
	struct facts *facts;
	char *cgroup;
	bool emulated;
	enum splice_fact answer;
	uint64_t print;
	bool edges;
};

/* In this order: what changes between the two is seen the next time. */
static void ask(void *arg)
{
	struct question *q = arg;

	q->print = facts_print(q->cgroup);
	q->answer = facts_of_cgroup(q->facts, q->cgroup, q->emulated);
}

static void ask_print(void *arg)
{
	struct question *q = arg;

	q->print = facts_print(q->cgroup);
}

static void ask_edges(void *arg)
{
	struct question *q = arg;

	q->edges = facts_wait_for_edges(q->cgroup);
}

static struct app_fact *known_in_look(struct looking *l, uint32_t id)
{
	for (size_t i = 0; i < l->n_facts; i++)
		if (l->facts[i].is.app == id)
			return &l->facts[i];
	return NULL;
}

static const struct watched *watched_find(const struct splicing *sp, uint32_t id)
{
	for (size_t i = 0; i < sp->n_watched; i++)
		if (sp->watched[i].app == id && !sp->watched[i].changed)
			return &sp->watched[i];
	return NULL;
}

/* Files are read by a thread: others may come in meanwhile, and the app may be gone then. */
static struct app_fact *fact_of_app(struct looking *l, const struct app *app)
{
	struct question q = {.facts = l->sp->facts,
			     .emulated = app->spec.splice_emulation,
			     .answer = FACT_UNKNOWN};
	struct app_fact *known = known_in_look(l, app->id);
	const struct watched *w = watched_find(l->sp, app->id);
	uint32_t id = app->id;

	if (known)
		return known;
	known = &l->facts[l->n_facts++];
	if (w) {
		*known = (struct app_fact){.is = *w};
		return known;
	}
	q.cgroup = app->cgroup ? strdup(app->cgroup) : NULL;
	if (q.cgroup)
		work_offload(l->a->work, ask, &q);
	free(q.cgroup);
	*known = (struct app_fact){.is = {.app = id, .fact = q.answer, .print = q.print}};
	return known;
}

static enum splice_reason programs_allow(struct looking *l, const struct pair *p,
					 enum splice_mode mode)
{
	const struct ax_splice_conn *const ends[] = {p->client, p->server};
	struct app_fact *of[ARRAY_SIZE(ends)] = {0};
	enum splice_fact fact = FACT_NONE;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		const struct app *app = app_by_id(l->a, ends[i]->app);

		of[i] = app ? fact_of_app(l, app) : NULL;
		if (!of[i] || of[i]->is.fact > fact)
			fact = of[i] ? of[i]->is.fact : FACT_UNKNOWN;
	}
	if (fact == FACT_USES)
		return REASON_PROGRAM;
	if (fact == FACT_UNKNOWN && mode != SPLICE_FORCED)
		return REASON_PROGRAM_UNKNOWN;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (of[i])
			of[i]->joined = true;
	return REASON_NONE;
}

/* Asked once in a look, like the rest. */
static bool app_waits_for_edges(struct looking *l, uint32_t id)
{
	const struct app *app = app_by_id(l->a, id);
	struct app_fact *of = app ? fact_of_app(l, app) : NULL;
	struct question q = {.edges = true};

	app = app_by_id(l->a, id); /* (others may have come in) */
	if (!app || !of || of->edges_known)
		return !of || !app || of->edges;
	q.cgroup = app->cgroup ? strdup(app->cgroup) : NULL;
	if (q.cgroup)
		work_offload(l->a->work, ask_edges, &q);
	free(q.cgroup);
	of->edges = q.edges;
	of->edges_known = true;
	return of->edges;
}

/* Apps with joined connections, by this look. */
static void watch_anew(struct looking *l)
{
	struct watched *v = calloc(l->n_facts + 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return; /* the former ones, then */
	for (size_t i = 0; i < l->n_facts; i++)
		if (l->facts[i].joined)
			v[n++] = l->facts[i].is;
	free(l->sp->watched);
	l->sp->watched = v;
	l->sp->n_watched = n;
}

bool look_at_programs(struct agent *a, struct splicing *sp)
{
	bool changed = false;

	for (size_t i = 0; i < sp->n_watched; i++) {
		struct watched *w = &sp->watched[i];
		const struct app *app = app_by_id(a, w->app);
		struct question q = {.cgroup = app && app->cgroup ? strdup(app->cgroup) : NULL};

		if (!q.cgroup)
			continue;
		work_offload(a->work, ask_print, &q);
		free(q.cgroup);
		w->changed = w->changed || q.print != w->print;
		changed |= w->changed;
	}
	return changed;
}

/* --- one pair --- */

/* By TCP: what was redirected is not counted there. */
static bool is_unread(const struct ax_splice_conn *c)
{
	return c->rcv_nxt != c->copied_seq;
}

static enum splice_mode mode_of_pair(struct agent *a, const struct pair *p)
{
	return mode_of(a, &p->client->asked, app_by_id(a, p->client->app),
		       app_by_id(a, p->server->app));
}

static void set_stream(struct decision *d, enum stream_size size)
{
	d->stream = size;
	d->stream_ns = time_mono_ns();
}

/* How large its messages are: what was counted, and whether it is to be counted. */
static void size_stream(struct looking *l, const struct pair *p, struct decision *d)
{
	const uint64_t cookies[] = {p->client->cookie, p->server->cookie};
	uint64_t now = time_mono_ns();

	if (d->stream == STREAM_COUNTED) {
		struct ax_splice_size a = datapath_splice_size(l->sp->programs, cookies[0]);
		struct ax_splice_size b = datapath_splice_size(l->sp->programs, cookies[1]);
		enum stream_size size = streams_size_of(&a, &b);

		if (size || now - d->stream_ns >= STREAMS_COUNT_MS * 1000000ull)
			set_stream(d, size);
		return;
	}
	if (l->sp->counting || !streams_is_due(d, now) ||
	    l->n_counts + ARRAY_SIZE(cookies) > AX_SPLICE_SIZES_MAX)
		return;
	l->counts[l->n_counts++] = cookies[0];
	l->counts[l->n_counts++] = cookies[1];
	set_stream(d, STREAM_COUNTED);
}

static enum splice_reason edges_of(struct looking *l, const struct pair *p)
{
	return app_waits_for_edges(l, p->client->app) || app_waits_for_edges(l, p->server->app)
		       ? REASON_STREAM_EDGES
		       : REASON_NONE;
}

static enum splice_reason judge_stream(struct looking *l, const struct pair *p, struct decision *d,
				       enum splice_mode mode)
{
	enum splice_reason r;

	if (d->stream == STREAM_SMALL && !streams_is_due(d, time_mono_ns()))
		return REASON_STREAM;
	r = programs_allow(l, p, mode);
	if (r)
		return r;
	size_stream(l, p, d);
	return d->stream == STREAM_LARGE ? edges_of(l, p) : REASON_STREAM;
}

static enum splice_reason judge(struct looking *l, const struct pair *p, struct decision *d)
{
	enum splice_mode mode = mode_of_pair(l->a, p);
	enum splice_reason r = splice_allowed(mode, gate_verdict(l->sp->gate));

	if (r)
		return r;
	r = pair_fits(p);
	if ((!r || r == REASON_STREAM) && time_mono_ns() - d->first_ns < YOUNG_NS)
		return REASON_YOUNG;
	if (r == REASON_STREAM)
		return judge_stream(l, p, d, mode);
	return r ? r : programs_allow(l, p, mode);
}

/* Those that have parted have their places. */
static bool has_place(struct looking *l, const struct pair *p)
{
	return (p->client->flags & p->server->flags & AX_SPLICE_MEMBER) ||
	       shares_take(&l->shares, p->client->app, p->server->app);
}

static enum splice_reason judge_place(struct looking *l, const struct pair *p,
				      const struct decision *d)
{
	if (has_place(l, p))
		return REASON_NONE;
	if (d->reason != REASON_FULL)
		l->sp->full += 2;
	return REASON_FULL;
}

/* It is of that kind that waits for edges now. Files of processes are not for each look. */
static enum splice_reason judge_joined_stream(struct looking *l, const struct pair *p,
					      struct decision *d)
{
	if (d->stream != STREAM_LARGE && pair_fits(p) != REASON_STREAM)
		return REASON_NONE;
	if (time_mono_ns() - d->stream_ns < STREAMS_AGAIN_MS * 1000000ull)
		return REASON_NONE;
	set_stream(d, STREAM_LARGE);
	return edges_of(l, p);
}

/* Why one that joined is wanted no more, or may no more be: a program can execute another one, or
 * load a library that uses splice(2). As long as the kernel is being tried, what an earlier
 * agent has joined goes on. */
static enum splice_reason judge_joined(struct looking *l, const struct pair *p, struct decision *d)
{
	enum splice_mode mode = mode_of_pair(l->a, p);
	enum splice_reason r = splice_allowed(mode, gate_verdict(l->sp->gate));

	if (r == REASON_GATE_WAITS)
		r = REASON_NONE;
	r = r ? r : programs_allow(l, p, mode);
	return r ? r : judge_joined_stream(l, p, d);
}

static struct splice_end_ref end_of(const struct census *c, const struct ax_splice_conn *conn)
{
	return (struct splice_end_ref){
		.cookie = conn->cookie, .sk = conn->sk, .netns_fd = census_space(c, conn->netns)};
}

static struct splice_pair refs_of(const struct looking *l, const struct pair *p)
{
	return (struct splice_pair){.a = end_of(&l->census, p->client),
				    .b = end_of(&l->census, p->server)};
}

static void look_at(struct looking *l, const struct pair *p)
{
	struct decision *d = decisions_get(&l->sp->decisions, p->client->cookie, p->server->cookie);
	bool joined = pair_is_joined(p);
	enum splice_reason r;

	if (!d)
		return;
	if ((p->client->flags & p->server->flags & AX_SPLICE_MEMBER) &&
	    (is_unread(p->client) || is_unread(p->server) ||
	     (p->client->flags | p->server->flags) & AX_SPLICE_STUCK))
		l->sp->unread = true;
	if (pair_holds(p))
		l->sp->holds = true;
	d->look = l->sp->look;
	r = joined ? judge_joined(l, p, d) : judge(l, p, d);
	d->reason = r || joined ? r : judge_place(l, p, d);
	if (d->reason == REASON_YOUNG)
		l->sp->young = true;
	if (joined && d->reason)
		l->parts[l->n_parts++] = refs_of(l, p);
	if (joined || d->reason)
		return;
	l->joins[l->n_joins] = refs_of(l, p);
	l->joined[l->n_joins++] = d;
}

static enum splice_reason reason_of(int result)
{
	switch (result) {
	case 0:
		return REASON_NONE;
	case -E2BIG:
		return REASON_FULL;
	case -ENOENT:
		return REASON_NO_PEER;
	default:
		return REASON_FAILED;
	}
}

static void join(struct looking *l)
{
	int r;

	if (!l->n_joins)
		return;
	r = datapath_splice_join(l->sp->programs, l->joins, l->n_joins);
	if (r)
		log_warn("splicing: connections cannot be joined: %s", strerror(-r));
	for (size_t i = 0; i < l->n_joins; i++) {
		const struct splice_pair *p = &l->joins[i];

		l->joined[i]->reason = reason_of(p->a.result ? p->a.result : p->b.result);
		l->sp->joined += l->joined[i]->reason == REASON_NONE;
	}
}

/* By TCP from now on: members cannot leave. */
static void part(struct looking *l)
{
	int r = l->n_parts ? datapath_splice_part(l->sp->programs, l->parts, l->n_parts) : 0;

	if (r)
		log_warn("splicing: connections cannot be parted: %s", strerror(-r));
}

/* Ends of streams. It goes on until the next look, or a later one. */
static void count_messages(struct looking *l)
{
	struct splicing *sp = l->sp;
	int r;

	if (sp->counting || !l->n_counts)
		return;
	sp->counting_ns = time_mono_ns();
	r = datapath_splice_sizes_begin(sp->programs, l->counts, l->n_counts);
	sp->counting = r == 0;
	if (r && r != -EOPNOTSUPP && !sp->uncounted)
		log_warn("splicing: the messages of streams cannot be counted: %s", strerror(-r));
	sp->uncounted = r != 0;
}

static void count_no_more(struct splicing *sp)
{
	if (!sp->counting || time_mono_ns() - sp->counting_ns < STREAMS_COUNT_MS * 1000000ull)
		return;
	datapath_splice_sizes_end(sp->programs);
	sp->counting = false;
}

/* --- a look --- */

static int prepare(struct looking *l)
{
	size_t n;
	int r = census_take(l->a, l->a->work, &l->census);

	n = l->census.n + 1;
	l->pairs = calloc(n, sizeof(*l->pairs));
	l->facts = calloc(2 * n, sizeof(*l->facts));
	l->joins = calloc(n, sizeof(*l->joins));
	l->parts = calloc(n, sizeof(*l->parts));
	l->joined = calloc(n, sizeof(struct decision *));
	l->counts = calloc(AX_SPLICE_SIZES_MAX, sizeof(*l->counts));
	if (r)
		return r;
	if (!l->pairs || !l->facts || !l->joins || !l->parts || !l->joined || !l->counts)
		return -ENOMEM;
	return shares_open(l->census.conns, l->census.n, &l->shares);
}

void look(struct agent *a, struct splicing *sp)
{
	struct looking l = {.a = a, .sp = sp};
	int r = prepare(&l);

	sp->look++;
	sp->unread = sp->holds = sp->young = false;
	sp->joined = 0;
	facts_refresh(sp->facts);
	count_no_more(sp); /* (the numbers stay) */
	if (!r)
		l.n_pairs = pairs_find(l.census.conns, l.census.n, census_owns, a, l.pairs);
	/* nobody tells again of a connection whose other end comes after this */
	sp->partial = r || l.census.n > 2 * l.n_pairs;
	for (size_t i = 0; i < l.n_pairs; i++)
		look_at(&l, &l.pairs[i]);
	if (!r) {
		join(&l);
		part(&l);
		count_messages(&l);
		watch_anew(&l);
		decisions_sweep(&sp->decisions, sp->look);
	} else {
		log_warn("splicing: connections cannot be looked at: %s", strerror(-r));
	}
	census_free(&l.census);
	free(l.pairs);
	free(l.facts);
	free(l.joins);
	free(l.parts);
	shares_close(&l.shares);
	free(l.joined);
	free(l.counts);
}
