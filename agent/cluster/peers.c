/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nodes have written, this one's own too: what is put, and what is told to be deleted. What
 * becomes of what a read did not have is missing.c's. */
#include <arpa/inet.h>
#include <search.h>
#include <time.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "cluster/remembered.h"
#include "registry/remotes.h"
#include "registry/state.h"

/* Nodes are kept as long as the agent lives: so many of them, whatever somebody writes. */
#define NODES_MAX	  10000
#define APPS_MAX	  262144 /* of all nodes */
#define FOREIGN_NODES_MAX 2000	 /* of another cluster */

/* Nothing of this node's own is remembered. */
static void changed(struct cluster *c, const char *node)
{
	if (!streq(node, c->node))
		remember(c);
}

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

struct peer_node *peers_node(const struct peers *p, const char *name)
{
	struct peer_node key = {0};
	void **found;

	snprintf(key.rec.name, sizeof(key.rec.name), "%.63s", name);
	found = tfind(&key, &p->nodes, node_cmp);
	return found ? *found : NULL;
}

static struct peer_node *get_node(struct cluster *c, const char *name)
{
	struct peers *p = &c->peers;
	struct peer_node *n = peers_node(p, name);

	if (n || p->n_nodes >= (c->home ? FOREIGN_NODES_MAX : NODES_MAX))
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->of = c;
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
	free(app->name);
	free(app->node_name);
	free(app);
}

/* What it takes of memory, with what names and programs have of it. */
static size_t size_of(const struct record_app *rec)
{
	return 2 * sizeof(struct peer_app) + (rec->labels ? strlen(rec->labels) : 0) +
	       rec->n_ports * sizeof(*rec->ports) + rec->n_states * sizeof(*rec->states);
}

void peers_drop_app(struct cluster *c, struct peer_app *app)
{
	tdelete(app, &c->peers.apps, app_cmp);
	c->peers.n_apps--;
	c->peers.bytes -= size_of(&app->rec);
	app->node->n_apps--;
	changed(c, app->rec.node);
	routes_app_gone(c, app);
	peer_app_put(app);
}

void peers_drop_block(struct cluster *c, struct peer_block *b)
{
	tdelete(b, &c->peers.blocks, block_cmp);
	c->peers.n_blocks--;
	b->node->n_blocks--;
	changed(c, b->rec.node);
	free(b);
	routes_stale(c);
}

void peers_node_away(struct cluster *c, struct peer_node *n, int64_t revision, uint64_t since_ns)
{
	routes_stale(c);
	n->up = false;
	n->gone_revision = revision;
	n->away_ns = since_ns;
	n->missing_ns = 0;
	n->seen = since_ns ? cluster_unix_of(since_ns) : time(NULL);
	changed(c, n->rec.name);
}

/* --- what is put --- */

static void refused(struct cluster *c, const struct etcd_kv *kv, const char *why)
{
	char text[sizeof(c->peers.why)];

	snprintf(text, sizeof(text), "%.100s: %.140s", (const char *)kv->key.data, why);
	text_make_printable(text); /* anybody may have written it */
	c->peers.refused++;
	if (!streq(text, c->peers.why) && foreign_may_complain(c))
		log_warn("the cluster %s has a record that is left out, %s", c->conf.name, text);
	memcpy(c->peers.why, text, sizeof(text));
}

static size_t apps_max(const struct cluster *c)
{
	return c->home ? c->apps_max : APPS_MAX;
}

/* (one sentence for all of them, whose number is in the status) */
static void too_many_apps(struct cluster *c)
{
	char text[sizeof(c->peers.why)];

	if (c->peers.n_apps < apps_max(c))
		snprintf(text, sizeof(text),
			 "apps: they take more than %zu MiB, the rest is not "
			 "known here",
			 c->bytes_max >> 20);
	else
		snprintf(text, sizeof(text),
			 "apps: there are more than %zu, the rest is not known here", apps_max(c));
	c->peers.refused++;
	if (!streq(text, c->peers.why) && foreign_may_complain(c))
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

static int put_node(struct cluster *c, const struct etcd_kv *kv, const struct remembered *was,
		    struct error *e)
{
	char key[RECORD_KEY_MAX];
	struct record_node rec;
	struct peer_node *n;
	int r = record_node_read(kv->value.data, kv->value.len, &rec, e);

	if (r || !fits(c, kv, record_node_key(c->conf.name, rec.name, key)))
		return r;
	if (was && streq(rec.name, c->node)) /* (it had another name then) */
		return 0;
	n = get_node(c, rec.name);
	if (!n)
		return error_set(e, -ENOMEM, "there are too many nodes, or no memory");
	n->rec = rec;
	n->at = was ? was->at : 0;
	n->up = true;
	n->revision = kv->mod_revision;
	n->lease = kv->lease;
	n->read = c->peers.read;
	n->missing_ns = 0;
	n->seen = 0;
	n->away_ns = 0;
	if (was && was->away)
		peers_node_away(c, n, 0, cluster_mono_of(was->away));
	changed(c, rec.name);
	routes_stale(c);
	return 0;
}

static int put_block(struct cluster *c, const struct etcd_kv *kv, const struct remembered *was,
		     struct error *e)
{
	char key[RECORD_KEY_MAX];
	const struct prefix *pool;
	struct peer_block find, *b;
	struct peer_node *n;
	int r = record_block_read(kv->value.data, kv->value.len, &find.rec, e);

	if (r || !fits(c, kv, record_block_key(c->conf.name, &find.rec.prefix, key)))
		return r;
	pool = cluster_pool(c, &find.rec.prefix.addr);
	if (!pool->len)
		return 0; /* of nodes that have IPv6, which this one has not */
	if (!block_of_pool(pool, &find.rec.prefix))
		return error_set(e, -EINVAL, "it is no block of the pool");
	n = get_node(c, find.rec.node);
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
	b->at = was ? was->at : 0;
	b->read = c->peers.read;
	b->missing_ns = 0;
	n->n_blocks++;
	changed(c, n->rec.name);
	routes_stale(c);
	return 0;
}

static struct peer_app *find_app(const struct peers *p, const struct record_app *rec)
{
	struct peer_app key = {.rec = *rec};
	void **found = tfind(&key, &p->apps, app_cmp);

	return found ? *found : NULL;
}

static uint64_t hash_of(const struct etcd_bytes *b)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < b->len; i++)
		h = (h ^ ((const unsigned char *)b->data)[i]) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

/* Full reads bring mostly what is known. (Of two stores one after the other revisions may be the
 * same, and values not.) */
static bool is_same(const struct peer_app *app, const struct etcd_kv *kv)
{
	return app->revision && app->revision == kv->mod_revision && app->lease == kv->lease &&
	       !app->deleted && !app->lost_ns && app->hash == hash_of(&kv->value);
}

/* NULL: out of memory. */
static struct peer_app *add_app(struct cluster *c, struct record_app *rec, const struct etcd_kv *kv)
{
	struct peer_node *n = get_node(c, rec->node);
	struct peer_app *app = n ? calloc(1, sizeof(*app)) : NULL;

	if (!app)
		return NULL;
	*app = (struct peer_app){.rec = *rec,
				 .node = n,
				 .refs = 1,
				 .read = c->peers.read,
				 .revision = kv->mod_revision,
				 .lease = kv->lease,
				 .hash = hash_of(&kv->value)};
	if (foreign_name(c, app) || !tsearch(app, &c->peers.apps, app_cmp)) {
		free(app->name);
		free(app->node_name);
		free(app);
		return NULL;
	}
	*rec = (struct record_app){0};
	c->peers.n_apps++;
	c->peers.bytes += size_of(&app->rec);
	n->n_apps++;
	return app;
}

/* Its node went with it, and does not say that it has ended. */
static void lose(struct cluster *c, struct peer_app *app, uint64_t since_ns)
{
	app->lost_ns = since_ns;
	changed(c, app->rec.node);
	cluster_at(c, &c->forget_at_ns, c->conf.dead_after_ms);
}

static int put_app(struct cluster *c, const struct etcd_kv *kv, const struct remembered *was,
		   struct error *e)
{
	CLEANUP(record_app_free) struct record_app rec;
	char key[RECORD_KEY_MAX];
	struct across_told *across[2] = {0};
	struct remote *told[2] = {0};
	struct peer_app *app;
	int r = record_app_read(kv->value.data, kv->value.len, &rec, e);

	if (r || !fits(c, kv, record_app_key(c->conf.name, rec.node, rec.id, key)))
		return r;
	if (was && streq(rec.node, c->node))
		return 0;
	if (streq(rec.node, c->node))
		publish_known(c, rec.id);
	app = find_app(&c->peers, &rec);
	if (app && is_same(app, kv)) {
		app->read = c->peers.read;
		app->missing_ns = 0;
		return 0;
	}
	if (app) { /* (what is told of it stays as it is, if that is the same) */
		told[0] = app->remote;
		told[1] = app->remote6;
		app->remote = app->remote6 = NULL;
		memcpy(across, app->across, sizeof(across));
		memset(app->across, 0, sizeof(app->across));
		peers_drop_app(c, app);
	}
	if (c->peers.n_apps >= apps_max(c) ||
	    (c->home && c->peers.bytes + size_of(&rec) > c->bytes_max)) {
		too_many_apps(c);
		return 0;
	}
	app = add_app(c, &rec, kv);
	if (!app) {
		struct peer_app none = {.across = {across[0], across[1]}};

		remote_drop(c->a, told[0]);
		remote_drop(c->a, told[1]);
		translate_app(c, &none);
		return error_set(e, -ENOMEM, "out of memory");
	}
	app->remote = told[0];
	app->remote6 = told[1];
	memcpy(app->across, across, sizeof(across));
	app->at = was ? was->at : 0;
	if (was && was->away)
		lose(c, app, cluster_mono_of(was->away));
	changed(c, app->rec.node);
	routes_app(c, app);
	return 0;
}

/* What is for the nodes of the cluster alone. */
static int put_own(struct cluster *c, const struct etcd_kv *kv, enum record_kind kind,
		   struct error *e)
{
	switch (kind) {
	case RECORD_ADDRESS:
		return addresses_put(c, kv, e);
	case RECORD_CONFIG:
		return configs_put(c, kv, e);
	case RECORD_CONFIG_NOW:
		return configs_now_put(c, kv, e);
	case RECORD_SECRET:
		return translate_key_put(c, kv, e);
	default:
		return 0;
	}
}

void peers_put(struct cluster *c, const struct etcd_kv *kv)
{
	enum record_kind kind = record_kind(c->conf.name, kv->key.data, kv->key.len);
	struct error e = {0};
	int r = 0;

	switch (kind) {
	case RECORD_NODE:
		r = put_node(c, kv, NULL, &e);
		break;
	case RECORD_BLOCK:
		r = put_block(c, kv, NULL, &e);
		break;
	case RECORD_APP:
		r = put_app(c, kv, NULL, &e);
		break;
	case RECORD_POOL6: /* (a block that is not of this node's is left out) */
		break;
	case RECORD_POOL:
		if (c->home)
			foreign_pool_read(c, kv);
		break; /* (else see node_register()) */
	default:
		r = c->home ? 0 : put_own(c, kv, kind, &e);
		break;
	}
	if (r)
		refused(c, kv, e.text);
}

void peers_recall(struct cluster *c, const struct etcd_kv *kv, const struct remembered *was)
{
	struct error e = {0};
	int r = 0;

	switch (record_kind(c->conf.name, kv->key.data, kv->key.len)) {
	case RECORD_NODE:
		r = put_node(c, kv, was, &e);
		break;
	case RECORD_BLOCK:
		r = put_block(c, kv, was, &e);
		break;
	case RECORD_APP:
		r = put_app(c, kv, was, &e);
		break;
	default:
		r = error_set(&e, -EINVAL, "it is none that is remembered");
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

/* A lease that ends deletes all that is under it in one revision, and its node's key as the last:
 * what has become of the app is decided when all is read. */
static void delete_app(struct cluster *c, struct peer_app *app, int64_t revision)
{
	struct peer_app **more =
		reallocarray(c->peers.deleted, c->peers.n_deleted + 1, sizeof(*more));

	if (!more) {
		peers_drop_app(c, app);
		return;
	}
	c->peers.deleted = more;
	more[c->peers.n_deleted++] = app;
	app->refs++;
	app->deleted = revision;
}

/* What a key is of, of this cluster and of a kind that is kept here. */
struct named {
	enum record_kind kind;
	char buf[RECORD_KEY_MAX];
	char *last;
	const char *before;
};

static bool read_key(const struct cluster *c, const struct etcd_kv *kv, struct named *ret)
{
	ret->kind = record_kind(c->conf.name, kv->key.data, kv->key.len);
	ret->last = (char *)(uintptr_t)last_part(kv, &ret->before, ret->buf);
	return ret->last != NULL;
}

static struct peer_block *named_block(const struct cluster *c, const struct named *k)
{
	char text[RECORD_KEY_MAX], *dash;
	struct prefix p;

	memcpy(text, k->last, strlen(k->last) + 1);
	dash = strrchr(text, '-');
	if (dash)
		*dash = '/';
	return prefix_parse(text, &p) ? NULL : peers_block(c, &p);
}

static struct peer_app *named_app(const struct cluster *c, const struct named *k)
{
	struct record_app rec = {.id = (uint32_t)strtoul(k->last, NULL, 10)};

	snprintf(rec.node, sizeof(rec.node), "%.63s", k->before);
	return find_app(&c->peers, &rec);
}

static void delete_node(struct cluster *c, const char *name, int64_t revision)
{
	struct peer_node *n = peers_node(&c->peers, name);

	if (n && n->up)
		peers_node_away(c, n, revision, time_mono_ns());
	if (streq(name, c->node) && c->registered)
		node_unregistered(c);
}

static void delete_own(struct cluster *c, const struct etcd_kv *kv, enum record_kind kind)
{
	if (kind == RECORD_CONFIG || kind == RECORD_CONFIG_NOW)
		configs_deleted(c, kv);
	else if (kind == RECORD_SECRET)
		translate_key_deleted(c);
	else if (kind == RECORD_ADDRESS)
		addresses_deleted(c, kv);
}

void peers_delete(struct cluster *c, const struct etcd_kv *kv)
{
	struct peer_app *app;
	struct peer_block *b;
	struct named k;

	c->peers.told_gone = true;
	if (!read_key(c, kv, &k))
		return;
	switch (k.kind) {
	case RECORD_NODE:
		delete_node(c, k.last, kv->mod_revision);
		break;
	case RECORD_BLOCK:
		b = named_block(c, &k);
		if (b)
			peers_drop_block(c, b);
		break;
	case RECORD_APP:
		app = named_app(c, &k);
		if (app && !app->deleted && !app->lost_ns)
			delete_app(c, app, kv->mod_revision);
		break;
	default:
		if (!c->home)
			delete_own(c, kv, k.kind);
		break;
	}
}

/* --- what is looked through while news come --- */

static void seen_node(struct cluster *c, const struct named *k, const struct etcd_kv *kv)
{
	struct peer_node *n = peers_node(&c->peers, k->last);

	if (n && (n->up ? n->revision : n->gone_revision) >= kv->mod_revision)
		n->read = c->peers.read;
	else if (n || !c->peers.told_gone)
		peers_put(c, kv);
	if (n && n->up)
		n->missing_ns = 0;
}

static void seen_block(struct cluster *c, const struct named *k, const struct etcd_kv *kv)
{
	struct peer_block *b = named_block(c, k);

	if (b) {
		b->read = c->peers.read;
		b->missing_ns = 0;
	} else if (!c->peers.told_gone) {
		peers_put(c, kv);
	}
}

static void seen_app(struct cluster *c, const struct named *k, const struct etcd_kv *kv)
{
	struct peer_app *app = named_app(c, k);

	if (app && app->revision >= kv->mod_revision) {
		app->read = c->peers.read;
		app->missing_ns = 0;
	} else if (app || !c->peers.told_gone) {
		peers_put(c, kv);
	}
}

/* What is not known may be so because its end was told since: that is left to the next one. */
void peers_seen(struct cluster *c, const struct etcd_kv *kv)
{
	struct named k;

	if (!read_key(c, kv, &k))
		return;
	if (k.kind == RECORD_NODE)
		seen_node(c, &k, kv);
	else if (k.kind == RECORD_BLOCK)
		seen_block(c, &k, kv);
	else if (k.kind == RECORD_APP)
		seen_app(c, &k, kv);
}

void peers_settle(struct cluster *c)
{
	for (size_t i = 0; i < c->peers.n_deleted; i++) {
		struct peer_app *app = c->peers.deleted[i];
		const struct peer_node *n = app->node;

		if (!app->gone && !n->up && n->gone_revision == app->deleted &&
		    !streq(n->rec.name, c->node))
			lose(c, app, time_mono_ns());
		else if (!app->gone)
			peers_drop_app(c, app);
		peer_app_put(app);
	}
	free(c->peers.deleted);
	c->peers.deleted = NULL;
	c->peers.n_deleted = 0;
}

/* --- lists --- */

struct peer_block *peers_block_of(const struct cluster *c, const struct ax_addr *addr)
{
	const struct prefix *pool = cluster_pool(c, addr);
	struct prefix p = {.addr = *addr, .len = block_len(pool)};

	if (!cluster_contains(c, addr))
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

/* (the first member of a tree's node is what it is of, as for twalk()) */
static void *first_of(void *tree)
{
	return tree ? *(void **)tree : NULL;
}

void peers_drop_all(struct cluster *c)
{
	peers_settle(c);
	while (c->peers.apps)
		peers_drop_app(c, first_of(c->peers.apps));
	while (c->peers.blocks)
		peers_drop_block(c, first_of(c->peers.blocks));
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
