/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nodes have written, this one's own too. Nothing is forgotten because a read did not have it:
 * only what is told to be deleted, and what is missing for long while etcd answers. */
#include <arpa/inet.h>
#include <search.h>
#include <time.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "registry/remotes.h"
#include "registry/state.h"

/* Nodes are kept as long as the agent lives: so many of them, whatever somebody writes. */
#define NODES_MAX 10000
#define APPS_MAX  262144 /* of all nodes */

static int node_cmp(const void *x, const void *y)
{
	return strcmp(((const struct peer_node *)x)->rec.name,
		      ((const struct peer_node *)y)->rec.name);
}

static int app_cmp(const void *x, const void *y)
{
	const struct peer_app *a = x, *b = y;
	int r = strcmp(a->rec.node, b->rec.node);

	return r ? r : (a->rec.id > b->rec.id) - (a->rec.id < b->rec.id);
}

static int block_cmp(const void *x, const void *y)
{
	const struct peer_block *a = x, *b = y;
	int r = addr_cmp(&a->rec.prefix.addr, &b->rec.prefix.addr);

	return r ? r
		 : (a->rec.prefix.len > b->rec.prefix.len) -
			       (a->rec.prefix.len < b->rec.prefix.len);
}

static struct peer_node *find_node(const struct peers *p, const char *name)
{
	struct peer_node key = {0};
	void **found;

	snprintf(key.rec.name, sizeof(key.rec.name), "%.63s", name);
	found = tfind(&key, &p->nodes, node_cmp);
	return found ? *found : NULL;
}

static struct peer_node *get_node(struct peers *p, const char *name)
{
	struct peer_node *n = find_node(p, name);

	if (n || p->n_nodes >= NODES_MAX)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	snprintf(n->rec.name, sizeof(n->rec.name), "%.63s", name);
	if (!tsearch(n, &p->nodes, node_cmp)) {
		free(n);
		return NULL;
	}
	p->n_nodes++;
	return n;
}

void peer_app_put(struct peer_app *app)
{
	if (--app->refs)
		return;
	record_app_free(&app->rec);
	translate_app_free(app);
	free(app);
}

static void drop_app(struct cluster *c, struct peer_app *app)
{
	tdelete(app, &c->peers.apps, app_cmp);
	c->peers.n_apps--;
	app->node->n_apps--;
	routes_app_gone(c, app);
	peer_app_put(app);
}

static void drop_block(struct cluster *c, struct peer_block *b)
{
	tdelete(b, &c->peers.blocks, block_cmp);
	c->peers.n_blocks--;
	b->node->n_blocks--;
	free(b);
	routes_stale(c);
}

static void node_gone(struct cluster *c, struct peer_node *n, int64_t revision)
{
	routes_stale(c);
	n->up = false;
	n->gone_revision = revision;
	n->away_ns = revision ? time_mono_ns() : 0;
	n->missing_ns = 0;
	n->seen = time(NULL);
}

/* --- what is put --- */

static void refused(struct cluster *c, const struct etcd_kv *kv, const char *why)
{
	char text[sizeof(c->peers.why)];

	snprintf(text, sizeof(text), "%.100s: %.140s", (const char *)kv->key.data, why);
	text_make_printable(text); /* anybody may have written it */
	c->peers.refused++;
	if (!streq(text, c->peers.why))
		log_warn("the cluster %s has a record that is left out, %s", c->conf.name, text);
	memcpy(c->peers.why, text, sizeof(text));
}

/* (one sentence for all of them, whose number is in the status) */
static void too_many_apps(struct cluster *c)
{
	char text[sizeof(c->peers.why)];

	snprintf(text, sizeof(text), "apps: there are more than %d, the rest is not known here",
		 APPS_MAX);
	c->peers.refused++;
	if (!streq(text, c->peers.why))
		log_error("the cluster %s has too many %s", c->conf.name, text);
	memcpy(c->peers.why, text, sizeof(text));
}

/* Whether what the record says of itself is what its key says. */
static bool fits(struct cluster *c, const struct etcd_kv *kv, const char *key)
{
	if (kv->key.len == strlen(key) && memcmp(kv->key.data, key, kv->key.len) == 0)
		return true;
	refused(c, kv, "it speaks of something else");
	return false;
}

bool peers_up(const struct cluster *c, const struct peer_node *n)
{
	return n->up ||
	       (n->away_ns && time_mono_ns() - n->away_ns < c->conf.dead_after_ms * NS_PER_MS);
}

static int put_node(struct cluster *c, const struct etcd_kv *kv, struct error *e)
{
	char key[RECORD_KEY_MAX];
	struct record_node rec;
	struct peer_node *n;
	int r = record_node_read(kv->value.data, kv->value.len, &rec, e);

	if (r || !fits(c, kv, record_node_key(c->conf.name, rec.name, key)))
		return r;
	n = get_node(&c->peers, rec.name);
	if (!n)
		return error_set(e, -ENOMEM, "there are too many nodes, or no memory");
	n->rec = rec;
	n->up = true;
	n->read = c->peers.read;
	n->missing_ns = 0;
	n->seen = 0;
	n->away_ns = 0;
	routes_stale(c);
	return 0;
}

static int put_block(struct cluster *c, const struct etcd_kv *kv, struct error *e)
{
	char key[RECORD_KEY_MAX];
	struct peer_block find, *b;
	struct peer_node *n;
	int r = record_block_read(kv->value.data, kv->value.len, &find.rec, e);

	if (r || !fits(c, kv, record_block_key(c->conf.name, &find.rec.prefix, key)))
		return r;
	if (!block_of_pool(&c->conf.pool, &find.rec.prefix))
		return error_set(e, -EINVAL, "it is no block of the pool");
	n = get_node(&c->peers, find.rec.node);
	b = n ? peers_block(c, &find.rec.prefix) : NULL;
	if (n && !b) {
		b = calloc(1, sizeof(*b));
		if (b)
			b->rec = find.rec;
		if (b && !tsearch(b, &c->peers.blocks, block_cmp)) {
			free(b);
			b = NULL;
		}
		c->peers.n_blocks += b != NULL;
	} else if (b) {
		b->node->n_blocks--;
	}
	if (!b)
		return error_set(e, -ENOMEM, "out of memory");
	b->rec = find.rec;
	b->node = n;
	b->read = c->peers.read;
	b->missing_ns = 0;
	n->n_blocks++;
	routes_stale(c);
	return 0;
}

static struct peer_app *find_app(const struct peers *p, const struct record_app *rec)
{
	struct peer_app key = {.rec = *rec};
	void **found = tfind(&key, &p->apps, app_cmp);

	return found ? *found : NULL;
}

/* NULL: out of memory. */
static struct peer_app *add_app(struct cluster *c, struct record_app *rec)
{
	struct peer_node *n = get_node(&c->peers, rec->node);
	struct peer_app *app = n ? calloc(1, sizeof(*app)) : NULL;

	if (!app)
		return NULL;
	*app = (struct peer_app){.rec = *rec, .node = n, .refs = 1, .read = c->peers.read};
	if (!tsearch(app, &c->peers.apps, app_cmp)) {
		free(app);
		return NULL;
	}
	*rec = (struct record_app){0};
	c->peers.n_apps++;
	n->n_apps++;
	return app;
}

static int put_app(struct cluster *c, const struct etcd_kv *kv, struct error *e)
{
	CLEANUP(record_app_free) struct record_app rec;
	char key[RECORD_KEY_MAX];
	struct across_told *across = NULL;
	struct remote *told = NULL;
	struct peer_app *app;
	int r = record_app_read(kv->value.data, kv->value.len, &rec, e);

	if (r || !fits(c, kv, record_app_key(c->conf.name, rec.node, rec.id, key)))
		return r;
	if (streq(rec.node, c->node))
		publish_known(c, rec.id);
	app = find_app(&c->peers, &rec);
	if (app) { /* (what is told of it stays as it is, if that is the same) */
		told = app->remote;
		app->remote = NULL;
		across = app->across;
		app->across = NULL;
		drop_app(c, app);
	}
	if (c->peers.n_apps >= APPS_MAX) {
		too_many_apps(c);
		return 0;
	}
	app = add_app(c, &rec);
	if (!app) {
		struct peer_app none = {.across = across};

		remote_drop(c->a, told);
		translate_app(c, &none);
		return error_set(e, -ENOMEM, "out of memory");
	}
	app->remote = told;
	app->across = across;
	routes_app(c, app);
	return 0;
}

void peers_put(struct cluster *c, const struct etcd_kv *kv)
{
	struct error e = {0};
	int r = 0;

	switch (record_kind(c->conf.name, kv->key.data, kv->key.len)) {
	case RECORD_NODE:
		r = put_node(c, kv, &e);
		break;
	case RECORD_BLOCK:
		r = put_block(c, kv, &e);
		break;
	case RECORD_APP:
		r = put_app(c, kv, &e);
		break;
	case RECORD_ADDRESS:
		r = addresses_put(c, kv, &e);
		break;
	case RECORD_CONFIG:
		r = configs_put(c, kv, &e);
		break;
	case RECORD_CONFIG_NOW:
		r = configs_now_put(c, kv, &e);
		break;
	case RECORD_SECRET:
		r = translate_key_put(c, kv, &e);
		break;
	case RECORD_POOL: /* see node_register() */
	case RECORD_OTHER:
		break;
	}
	if (r)
		refused(c, kv, e.text);
}

/* --- what is deleted --- */

/* The part of a key behind its last '/' with no more than `max` bytes, NUL-terminated; NULL: there
 * is none. *before: that before it. */
static const char *last_part(const struct etcd_kv *kv, const char **before, char *buf)
{
	char *slash;

	if (kv->key.len >= RECORD_KEY_MAX)
		return NULL;
	memcpy(buf, kv->key.data, kv->key.len);
	buf[kv->key.len] = 0;
	slash = strrchr(buf, '/');
	if (!slash)
		return NULL;
	*slash = 0;
	*before = strrchr(buf, '/') ? strrchr(buf, '/') + 1 : buf;
	return slash + 1;
}

static void delete_block(struct cluster *c, char *text)
{
	char *dash = strrchr(text, '-');
	struct peer_block *b;
	struct prefix p;

	if (dash)
		*dash = '/';
	b = prefix_parse(text, &p) ? NULL : peers_block(c, &p);
	if (b)
		drop_block(c, b);
}

/* A lease that ends deletes all that is under it in one revision, and its node's key as the last:
 * what has become of the app is decided when all is read. */
static void delete_app(struct cluster *c, struct peer_app *app, int64_t revision)
{
	struct peer_app **more =
		reallocarray(c->peers.deleted, c->peers.n_deleted + 1, sizeof(*more));

	if (!more) {
		drop_app(c, app);
		return;
	}
	c->peers.deleted = more;
	more[c->peers.n_deleted++] = app;
	app->refs++;
	app->deleted = revision;
}

void peers_delete(struct cluster *c, const struct etcd_kv *kv)
{
	enum record_kind kind = record_kind(c->conf.name, kv->key.data, kv->key.len);
	char buf[RECORD_KEY_MAX], *last;
	struct record_app rec = {0};
	struct peer_node *n;
	struct peer_app *app;
	const char *before;

	last = (char *)(uintptr_t)last_part(kv, &before, buf);
	if (!last)
		return;
	if (kind == RECORD_NODE) {
		n = find_node(&c->peers, last);
		if (n && n->up)
			node_gone(c, n, kv->mod_revision);
		if (streq(last, c->node) && c->registered)
			node_unregistered(c);
	} else if (kind == RECORD_CONFIG || kind == RECORD_CONFIG_NOW) {
		configs_deleted(c, kv);
	} else if (kind == RECORD_SECRET) {
		translate_key_deleted(c);
	} else if (kind == RECORD_ADDRESS) {
		addresses_deleted(c, kv);
	} else if (kind == RECORD_BLOCK) {
		delete_block(c, last);
	} else if (kind == RECORD_APP) {
		snprintf(rec.node, sizeof(rec.node), "%.63s", before);
		rec.id = (uint32_t)strtoul(last, NULL, 10);
		app = find_app(&c->peers, &rec);
		if (app && !app->deleted)
			delete_app(c, app, kv->mod_revision);
	}
}

/* Its node went with it, and does not say that it has ended. */
static void lose(struct cluster *c, struct peer_app *app)
{
	app->lost_ns = time_mono_ns();
	cluster_at(c, &c->forget_at_ns, c->conf.dead_after_ms);
}

void peers_settle(struct cluster *c)
{
	for (size_t i = 0; i < c->peers.n_deleted; i++) {
		struct peer_app *app = c->peers.deleted[i];
		const struct peer_node *n = app->node;

		if (!app->gone && !n->up && n->gone_revision == app->deleted &&
		    !streq(n->rec.name, c->node))
			lose(c, app);
		else if (!app->gone)
			drop_app(c, app);
		peer_app_put(app);
	}
	free(c->peers.deleted);
	c->peers.deleted = NULL;
	c->peers.n_deleted = 0;
}

/* --- what a full read did not have --- */

struct sweep {
	struct cluster *c;
	uint64_t now_ns;
	uint64_t next_ns; /* when the next one may be gone; 0: none is missing */
	void **gone;	  /* to be dropped when the tree is not walked any more */
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

/* Whether it is missing for long enough. */
static bool is_gone(struct sweep *s, uint64_t read, uint64_t *missing_ns)
{
	if (read == s->c->peers.read)
		return false;
	if (!*missing_ns)
		*missing_ns = s->now_ns;
	return is_over(s, *missing_ns, CLUSTER_FORGET_MS);
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

static void sweep_node(const void *at, VISIT which, void *arg)
{
	struct peer_node *n = *(struct peer_node *const *)at;
	struct sweep *s = arg;

	if ((which == postorder || which == leaf) && n->up && is_gone(s, n->read, &n->missing_ns))
		node_gone(s->c, n, 0);
}

static void sweep_app(const void *at, VISIT which, void *arg)
{
	struct peer_app *app = *(struct peer_app *const *)at;
	struct sweep *s = arg;

	if (which != postorder && which != leaf)
		return;
	if (app->lost_ns ? is_over(s, app->lost_ns, s->c->conf.dead_after_ms)
			 : is_gone(s, app->read, &app->missing_ns))
		add_gone(s, app);
}

static void sweep_block(const void *at, VISIT which, void *arg)
{
	struct peer_block *b = *(struct peer_block *const *)at;

	if ((which == postorder || which == leaf) && is_gone(arg, b->read, &b->missing_ns))
		add_gone(arg, b);
}

static void sweep(struct cluster *c, uint64_t now_ns)
{
	struct sweep s = {.c = c, .now_ns = now_ns};

	twalk_r(c->peers.nodes, sweep_node, &s);
	twalk_r(c->peers.apps, sweep_app, &s);
	for (size_t i = 0; i < s.n; i++)
		drop_app(c, s.gone[i]);
	s.n = 0;
	twalk_r(c->peers.blocks, sweep_block, &s);
	for (size_t i = 0; i < s.n; i++)
		drop_block(c, s.gone[i]);
	free(s.gone);
	if (s.next_ns)
		cluster_at(c, &c->forget_at_ns, (s.next_ns - now_ns) / NS_PER_MS + 1);
}

void peers_read(struct cluster *c)
{
	sweep(c, time_mono_ns());
}

void peers_forget(struct cluster *c, uint64_t now_ns)
{
	/* (who cannot be asked has deleted nothing, and does not say who has come back) */
	if (c->current)
		sweep(c, now_ns);
	else
		cluster_at(c, &c->forget_at_ns, CLUSTER_RETRY_MS);
}

/* --- lists --- */

struct peer_block *peers_block_of(const struct cluster *c, const struct ax_addr *addr)
{
	struct prefix p = {.addr = *addr, .len = block_len(&c->conf.pool)};

	if (!prefix_contains(&c->conf.pool, addr))
		return NULL;
	p.addr.w[3] &= htonl(~0u << (128 - p.len));
	return peers_block(c, &p);
}

struct peer_block *peers_block(const struct cluster *c, const struct prefix *p)
{
	struct peer_block key = {.rec.prefix = *p};
	void **found = tfind(&key, &c->peers.blocks, block_cmp);

	return found ? *found : NULL;
}

struct visit {
	struct cluster *c;
	void (*f)(struct cluster *c, struct peer_block *b);
};

static void visit(const void *at, VISIT which, void *arg)
{
	struct visit *v = arg;

	if (which == postorder || which == leaf)
		v->f(v->c, *(struct peer_block *const *)at);
}

void peers_each_block(struct cluster *c, void (*f)(struct cluster *c, struct peer_block *b))
{
	struct visit v = {c, f};

	twalk_r(c->peers.blocks, visit, &v);
}

static void free_app(void *app)
{
	peer_app_put(app);
}

void peers_free(struct peers *p)
{
	tdestroy(p->apps, free_app);
	tdestroy(p->blocks, free);
	tdestroy(p->nodes, free);
	*p = (struct peers){0};
}
