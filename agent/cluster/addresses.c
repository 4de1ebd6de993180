/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses that apps and declared services ask for: what is of a block is its node's by that, any
 * other is claimed, so that no two nodes have it. Whoever launches an app waits for the claim; a
 * service has what is known to be free, and is claimed for when it is there. Services of one name
 * share theirs: one node's claim does for all that have it, and when that goes another's follows.
 * Without etcd what is known has to do, and the claim is made up for when it is back.
 */
#include <arpa/inet.h>
#include <search.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "config/config.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"

#define TRIES	    5	  /* while its key changes under the claim */
#define UNUSED_MS   60000 /* nobody has it yet: a launch may be under way */
#define REFUSED_MS  30000 /* until it is asked for again */
#define ADDRESS_ASK 2

struct address_ask {
	struct address_ask *next;
	struct cluster *c;
	struct ax_addr addr[ADDRESS_ASK];
	size_t n;
	int64_t revision[ADDRESS_ASK]; /* of its key, 0: there is none */
	int64_t lease;
	unsigned tries;
	char app[RECORD_NAME_MAX + 1];
	bool service;		 /* it is one's name */
	cluster_claimed_fn done; /* NULL: nobody waits */
	void *arg;
};

/* --- this node's --- */

static int by_addr(const void *key, const void *own)
{
	return addr_cmp(key, &((const struct own_address *)own)->addr);
}

static struct own_address *find(const struct cluster *c, const struct ax_addr *addr)
{
	return c->n_addresses
		       ? bsearch(addr, c->addresses, c->n_addresses, sizeof(*c->addresses), by_addr)
		       : NULL;
}

static struct own_address *get(struct cluster *c, const struct ax_addr *addr, const char *app)
{
	struct own_address *own = find(c, addr), *more;
	size_t at = c->n_addresses;

	if (own)
		return own;
	more = reallocarray(c->addresses, c->n_addresses + 1, sizeof(*more));
	if (!more)
		return NULL;
	c->addresses = more;
	while (at && addr_cmp(&more[at - 1].addr, addr) > 0)
		at--;
	own = &more[at];
	memmove(own + 1, own, (c->n_addresses++ - at) * sizeof(*own));
	*own = (struct own_address){.addr = *addr};
	snprintf(own->app, sizeof(own->app), "%.63s", app);
	return own;
}

/* Whether what etcd has to say of it is that. (Which app has it does not matter to others.) */
static bool is_holder(const struct own_address *own, const char *name, bool service)
{
	return own->service == service && (!service || streq(own->app, name));
}

static void forget(struct cluster *c, struct own_address *own)
{
	size_t i = (size_t)(own - c->addresses);

	memmove(own, own + 1, (c->n_addresses - i - 1) * sizeof(*own));
	c->n_addresses--;
}

static bool is_of_own_block(const struct cluster *c, const struct ax_addr *addr)
{
	for (size_t i = 0; i < c->n_blocks; i++)
		if (!c->blocks[i].lost && prefix_contains(&c->blocks[i].prefix, addr))
			return true;
	return false;
}

/* --- what is known --- */

struct search {
	const struct cluster *c;
	const struct ax_addr *addr;
	const struct peer_app *found;
};

static void look_at(const void *at, VISIT which, void *arg)
{
	const struct peer_app *app = *(struct peer_app *const *)at;
	struct search *s = arg;

	if ((which == postorder || which == leaf) && !streq(app->rec.node, s->c->node) &&
	    (addr_eq(&app->rec.ip4, s->addr) || addr_eq(&app->rec.ip6, s->addr)))
		s->found = app;
}

static const char *kind(bool service)
{
	return service ? "service" : "app";
}

static int taken(const struct ax_addr *addr, bool service, const char *name, const char *node,
		 struct error *e)
{
	char text[ADDR_STRLEN];

	return error_set(e, -EADDRINUSE,
			 "the address %s is the %s %s's on the node %s: give another one, or none",
			 addr_format(addr, text), kind(service), name, node);
}

/* Of the pool it may have those of this node's blocks. */
static int judge_block(const struct cluster *c, const struct ax_addr *addr, struct error *e)
{
	const struct prefix *of = cluster_pool(c, addr);
	char text[ADDR_STRLEN], pool[ADDR_STRLEN];
	const struct peer_block *b;

	if (!cluster_contains(c, addr))
		return 0;
	b = peers_block_of(c, addr);
	if (b && node_is_own(c, b->rec.node, b->rec.id))
		return 0;
	if (b)
		return error_set(e, -EADDRINUSE,
				 "the address %s is in a block of the node %s: give one of this "
				 "node's, see 'ax get nodes', or one outside %s",
				 addr_format(addr, text), b->rec.node, prefix_format(of, pool));
	return error_set(e, -EADDRINUSE,
			 "the address %s is in the cluster's pool %s, and in no block of this "
			 "node: give one of those, see 'ax get nodes', or one outside the pool",
			 addr_format(addr, text), prefix_format(of, pool));
}

/* Whether an app may have it, as far as this node knows. */
static int judge(const struct cluster *c, const struct ax_addr *addr, struct error *e)
{
	const struct holder *h = holders_find(c, addr);
	struct search s = {.c = c, .addr = addr};

	if (h && h->service)
		return taken(addr, true, h->name, h->node, e);
	twalk_r(c->peers.apps, look_at, &s);
	return s.found ? taken(addr, false, s.found->rec.name, s.found->rec.node, e)
		       : judge_block(c, addr, e);
}

/* (There may be many services: not all apps are gone through for each.) */
static int judge_service(const struct cluster *c, const struct ax_addr *addr, const char *service,
			 struct error *e)
{
	const struct holder *h = holders_find(c, addr);

	if (h && !(h->service && streq(h->name, service)))
		return taken(addr, h->service, h->name, h->node, e);
	return c->was_read ? judge_block(c, addr, e) : 0; /* (own blocks may not be known) */
}

int cluster_service_address(struct agent *a, const struct ax_addr *addr, const char *service,
			    struct error *e)
{
	const struct cluster *c = a->cluster;
	struct error why;

	if (!c || addr_is_zero(addr) || is_of_own_block(c, addr) ||
	    !judge_service(c, addr, service, &why))
		return 0;
	return error_set(e, -EADDRINUSE, "the service %s cannot be had: %s", service, why.text);
}

int cluster_service_moves(struct agent *a, const struct ax_addr *was, const struct ax_addr *addr,
			  const char *service, struct error *e)
{
	return was && addr_eq(was, addr) ? 0 : cluster_service_address(a, addr, service, e);
}

/* --- claims --- */

static void ask_free(struct address_ask *k)
{
	struct address_ask **p = &k->c->asks;

	while (*p && *p != k)
		p = &(*p)->next;
	if (*p)
		*p = k->next;
	free(k);
}

static void ended(struct address_ask *k, int err, const char *why)
{
	struct cluster *c = k->c;
	cluster_claimed_fn done = k->done;
	void *arg = k->arg;

	for (size_t i = 0; i < k->n; i++) {
		struct own_address *own = find(c, &k->addr[i]);

		if (own)
			own->asking = false;
	}
	ask_free(k);
	if (done)
		done(arg, err, why);
}

static void held(struct address_ask *k)
{
	for (size_t i = 0; i < k->n; i++) {
		struct own_address *own = find(k->c, &k->addr[i]);

		if (!own)
			continue;
		/* (somebody else of this node may have come to have it meanwhile) */
		own->lease = is_holder(own, k->app, k->service) ? k->lease : 0;
		own->joined = false;
		own->refused[0] = 0;
	}
	ended(k, 0, NULL);
}

/* The service of that name of another node has it: so does this one's, and there is nothing to
 * claim until that goes. (Only one address is asked for by a service.) */
static bool join(struct address_ask *k, const struct record_address *rec)
{
	struct own_address *own = find(k->c, &k->addr[0]);

	if (!k->service || !rec->service || !streq(rec->app, k->app))
		return false;
	if (own) {
		own->lease = k->lease;
		own->joined = true;
		own->refused[0] = 0;
	}
	ended(k, 0, NULL);
	return true;
}

/* An app that has it already goes on with it. */
static void note_refused(struct cluster *c, struct own_address *own, const char *why)
{
	if (!streq(own->refused, why))
		log_error("the cluster %s: the %s %s of this node has an address of another's: %s",
			  c->conf.name, kind(own->service), own->app, why);
	snprintf(own->refused, sizeof(own->refused), "%.255s", why);
	own->again_ns = time_mono_ns() + REFUSED_MS * NS_PER_MS;
	cluster_at(c, &c->addresses_at_ns, REFUSED_MS);
}

/* Another node has it: whoever waits is told. */
static void refused(struct address_ask *k, size_t i, const struct record_address *rec)
{
	struct own_address *own = find(k->c, &k->addr[i]);
	struct error e = {0};
	bool waits = k->done;

	taken(&rec->addr, rec->service, rec->app, rec->node, &e);
	if (own && !waits)
		note_refused(k->c, own, e.text);
	for (size_t n = 0; waits && n < k->n; n++) {
		own = find(k->c, &k->addr[n]);
		if (own && !own->lease)
			forget(k->c, own);
	}
	ended(k, -EADDRINUSE, e.text);
}

static int ask(struct address_ask *k);

/* Its keys, as they are: this node's own, of before, is taken over. */
static void look_at_keys(struct address_ask *k, const struct etcd_answer *answer)
{
	struct record_address rec;
	bool any = false;
	struct error e;

	for (size_t i = 0; i < k->n && i < answer->n_ops; i++) {
		const struct etcd_op_answer *got = &answer->ops[i];

		k->revision[i] = got->n ? got->kvs[0].mod_revision : 0;
		if (!got->n)
			continue;
		any = true;
		if (record_address_read(got->kvs[0].value.data, got->kvs[0].value.len, &rec, &e)) {
			rec = (struct record_address){.addr = k->addr[i], .app = "?", .node = "?"};
		}
		if (!node_is_own(k->c, rec.node, rec.id)) {
			if (!join(k, &rec))
				refused(k, i, &rec);
			return;
		}
	}
	if (any && ++k->tries < TRIES && !ask(k))
		return;
	if (!any) /* it has another lease than this */
		node_unregistered(k->c);
	ended(k, 0, NULL);
}

static void on_asked(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct address_ask *k = arg;
	struct cluster *c = k->c;

	if (!err && answer->succeeded) {
		held(k);
	} else if (!err) {
		look_at_keys(k, answer);
	} else {
		log_warn("the cluster %s cannot be asked for an address, what is known has to do: "
			 "%s",
			 c->conf.name, error);
		ended(k, 0, NULL);
	}
	cluster_at(c, &c->addresses_at_ns, CLUSTER_RETRY_MS);
}

static int ask(struct address_ask *k)
{
	struct cluster *c = k->c;
	struct record_address rec[ADDRESS_ASK];

	k->lease = c->lease_id;
	for (size_t i = 0; i < k->n; i++) {
		rec[i] = (struct record_address){.addr = k->addr[i]};
		memcpy(rec[i].node, c->node, sizeof(rec[i].node));
		memcpy(rec[i].id, c->id, sizeof(rec[i].id));
		memcpy(rec[i].app, k->app, sizeof(rec[i].app));
		rec[i].service = k->service;
	}
	return address_claim(c->etcd, c->conf.name, rec, k->revision, k->n, k->lease, on_asked, k);
}

static int begin(struct cluster *c, const struct ax_addr *addr, size_t n, const char *app,
		 bool service, cluster_claimed_fn done, void *arg)
{
	struct address_ask *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	*k = (struct address_ask){
		.next = c->asks, .c = c, .n = n, .service = service, .done = done, .arg = arg};
	memcpy(k->addr, addr, n * sizeof(*addr));
	snprintf(k->app, sizeof(k->app), "%.63s", app);
	c->asks = k;
	for (size_t i = 0; i < n; i++) {
		struct own_address *own = find(c, &addr[i]);

		if (own)
			own->asking = true;
	}
	if (!ask(k))
		return 0;
	k->done = NULL;
	ended(k, 0, NULL);
	return -EBUSY;
}

/* Who shares one with an app of this node has it by that. That of a config's app which does not run
 * is as good as any other, but before all was read this node's own block may not be known. */
static bool is_ours(const struct cluster *c, const struct ax_addr *addr)
{
	const struct vip *v = vip_find(c->a, addr);

	return is_of_own_block(c, addr) || (v && (v->host || v->balancer || v->app || v->service ||
						  (v->declared && !c->was_read)));
}

int cluster_claim(struct agent *a, const struct ax_addr *const asked[2], const char *app,
		  cluster_claimed_fn done, void *arg, struct error *e)
{
	struct cluster *c = a->cluster;
	struct ax_addr addr[ADDRESS_ASK];
	size_t n = 0;
	int r;

	for (size_t i = 0; c && i < 2; i++) {
		if (addr_is_zero(asked[i]) || is_ours(c, asked[i]))
			continue;
		r = judge(c, asked[i], e);
		if (r)
			return r;
		addr[n++] = *asked[i];
	}
	for (size_t i = 0; i < n; i++) {
		struct own_address *own = get(c, &addr[i], app);

		if (!own)
			return error_set(e, -ENOMEM, "out of memory");
		own->keep_until_ns = time_mono_ns() + UNUSED_MS * NS_PER_MS;
	}
	if (!n || !c->registered || !etcd_state(c->etcd).connected)
		return 0;
	return begin(c, addr, n, app, false, done, arg) ? 0 : 1;
}

/* --- what apps have --- */

static void on_released(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	(void)answer, (void)error;
	c->releasing = false;
	for (size_t i = c->n_addresses; i-- > 0;)
		if (c->addresses[i].leaving && !err)
			forget(c, &c->addresses[i]);
		else
			c->addresses[i].leaving = false;
	cluster_at(c, &c->addresses_at_ns, err ? CLUSTER_RETRY_MS : 1);
}

/* Only what is this node's is deleted, and one at a time. */
static void release(struct cluster *c, struct own_address *own)
{
	char key[RECORD_KEY_MAX];
	const struct etcd_compare mine = {
		.key = bytes_of(record_address_key(c->conf.name, &own->addr, key)),
		.target = ETCD_LEASE,
		.number = own->lease};
	const struct etcd_op del = {.kind = ETCD_DELETE, .key = mine.key};
	const struct etcd_txn t = {
		.compares = &mine, .n_compares = 1, .success = &del, .n_success = 1, .twice = true};

	if (c->releasing)
		return;
	own->leaving = true;
	c->releasing = !etcd_txn(c->etcd, &t, on_released, c, NULL);
	if (!c->releasing) {
		own->leaving = false;
		cluster_at(c, &c->addresses_at_ns, CLUSTER_RETRY_MS);
	}
}

static void use(struct cluster *c, const struct ax_addr *addr, const char *name, bool service)
{
	struct own_address *own;

	if (addr_is_zero(addr) || is_of_own_block(c, addr))
		return;
	own = get(c, addr, name);
	if (!own || (own->used && own->service)) /* (an app may have joined the service) */
		return;
	if (!is_holder(own, name, service)) {
		/* (what etcd has says so, and others with that service believe it) */
		snprintf(own->app, sizeof(own->app), "%.63s", name);
		own->service = service;
		own->lease = 0;
		own->again_ns = 0;
	}
	own->used = true;
	own->keep_until_ns = 0;
}

static void mark_used(struct cluster *c)
{
	for (size_t i = 0; i < c->n_addresses; i++)
		c->addresses[i].used = false;
	for (const struct service *s = c->a->services; s; s = s->next) {
		if (!s->conf)
			continue;
		use(c, &s->conf->ip4, s->name, true);
		use(c, &s->conf->ip6, s->name, true);
	}
	for (const struct app *app = c->a->apps; app; app = app->next) {
		use(c, &app->spec.ip4, app->spec.name, false);
		use(c, &app->spec.ip6, app->spec.name, false);
	}
}

/* Its key decides, and of the pool the blocks do, as far as they are known. */
static void claim_used(struct cluster *c, struct own_address *own)
{
	struct error e = {0};

	if (c->was_read && judge_block(c, &own->addr, &e))
		note_refused(c, own, e.text);
	else
		begin(c, &own->addr, 1, own->app, own->service, NULL, NULL);
}

void addresses_sync(struct cluster *c)
{
	uint64_t now = time_mono_ns();

	if (!c->etcd || !c->registered)
		return;
	mark_used(c);
	for (size_t i = c->n_addresses; i-- > 0;) {
		struct own_address *own = &c->addresses[i];

		if (own->asking || own->leaving)
			continue;
		if (!own->used && own->keep_until_ns > now)
			cluster_at(c, &c->addresses_at_ns,
				   (own->keep_until_ns - now) / NS_PER_MS + 1);
		else if (!own->used && own->lease == c->lease_id && !own->joined)
			release(c, own);
		else if (!own->used)
			forget(c, own); /* its key went with its lease, or is another node's */
		else if (own->lease != c->lease_id && own->again_ns <= now)
			claim_used(c, own);
	}
}

/* Another node's. */
static int put_other(struct cluster *c, const struct record_address *rec, struct error *e)
{
	struct own_address *own = find(c, &rec->addr);

	if (own && own->joined && !(rec->service && streq(rec->app, own->app))) {
		own->lease = 0;
		cluster_at(c, &c->addresses_at_ns, 0);
	}
	return holders_put(c, rec) ? error_set(e, -ENOMEM, "out of memory") : 0;
}

static int put_own(struct cluster *c, const struct record_address *rec, int64_t lease,
		   struct error *e)
{
	struct own_address *own = find(c, &rec->addr);

	holders_gone(c, &rec->addr);
	if (!lease || lease != c->lease_id || (own && (own->asking || own->leaving)))
		return 0; /* the answer says what becomes of it */
	if (!own) {
		own = get(c, &rec->addr, rec->app);
		if (!own)
			return error_set(e, -ENOMEM, "out of memory");
		own->service = rec->service;
	}
	own->lease = lease;
	own->refused[0] = 0;
	cluster_at(c, &c->addresses_at_ns, CLUSTER_RETRY_MS);
	return 0;
}

int addresses_put(struct cluster *c, const struct etcd_kv *kv, struct error *e)
{
	char key[RECORD_KEY_MAX];
	struct record_address rec;
	int r = record_address_read(kv->value.data, kv->value.len, &rec, e);

	if (r)
		return r;
	record_address_key(c->conf.name, &rec.addr, key);
	if (kv->key.len != strlen(key) || memcmp(kv->key.data, key, kv->key.len) != 0)
		return error_set(e, -EINVAL, "it speaks of something else");
	return node_is_own(c, rec.node, rec.id) ? put_own(c, &rec, kv->lease, e)
						: put_other(c, &rec, e);
}

/* Who has joined may be the next one to claim it. */
void addresses_read(struct cluster *c)
{
	holders_read(c);
	for (size_t i = 0; i < c->n_addresses; i++) {
		if (!c->addresses[i].joined)
			continue;
		c->addresses[i].lease = 0;
		cluster_at(c, &c->addresses_at_ns, 0);
	}
}

static void other_gone(struct cluster *c, const struct etcd_kv *kv)
{
	char text[RECORD_KEY_MAX], *slash;
	struct ax_addr addr;

	if (kv->key.len >= sizeof(text))
		return;
	memcpy(text, kv->key.data, kv->key.len);
	text[kv->key.len] = 0;
	slash = strrchr(text, '/');
	if (slash && !addr_parse(slash + 1, &addr))
		holders_gone(c, &addr);
}

void addresses_deleted(struct cluster *c, const struct etcd_kv *kv)
{
	char key[RECORD_KEY_MAX];

	other_gone(c, kv);
	for (size_t i = 0; i < c->n_addresses; i++) {
		record_address_key(c->conf.name, &c->addresses[i].addr, key);
		if (c->addresses[i].leaving || kv->key.len != strlen(key) ||
		    memcmp(kv->key.data, key, kv->key.len) != 0)
			continue;
		c->addresses[i].lease = 0;
		cluster_at(c, &c->addresses_at_ns, 0);
	}
}

/* The client is gone, and with it the answers: whoever waits has what is known. */
void addresses_stop(struct cluster *c, bool tell)
{
	while (c->asks) {
		if (!tell)
			c->asks->done = NULL;
		ended(c->asks, 0, NULL);
	}
	c->releasing = false;
	for (size_t i = 0; i < c->n_addresses; i++)
		c->addresses[i].leaving = false;
}
