/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who this node is, and its name in the registry. */
#include <ctype.h>

#include "base/log.h"
#include "base/values.h"
#include "cluster/priv.h"
#include "machine/instance.h"
#include "net/host_links.h"
#include "registry/state.h"

/* --- who it is --- */

/* The machine's name up to its first dot. */
static int find_name(char ret[RECORD_NAME_MAX + 1], struct error *e)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = 0;
	for (char *p = host; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (want_name(host))
		return error_set(e, -EINVAL,
				 "this machine's name '%.60s' is none for a node: give one as "
				 "cluster.node.name",
				 host);
	snprintf(ret, RECORD_NAME_MAX + 1, "%.63s", host);
	return 0;
}

struct found {
	const struct cluster *c;
	struct ax_addr addr;
	unsigned n;
	bool known; /* the address that is this node's by now is among them */
};

static int note_address(void *arg, const struct ax_addr *addr)
{
	struct prefix p;
	struct found *f = arg;

	prefix_parse("169.254.0.0/16", &p);
	if (!addr_is_v4(addr) || want_unicast(addr) || prefix_contains(&p, addr) ||
	    cluster_contains(f->c, addr) || addr_eq(addr, &f->addr))
		return 0;
	f->addr = *addr;
	f->n++;
	return 0;
}

static int find_address(struct cluster *c, struct error *e)
{
	struct found f = {.c = c};
	int r = nl_host_addr_each(c->a->nl, note_address, &f);

	if (r)
		return error_set(e, r, "this machine's addresses cannot be read: %s", strerror(-r));
	if (f.n != 1)
		return error_set(
			e, -EINVAL,
			f.n ? "this machine has several IPv4 addresses: say which one the "
			      "other nodes reach it by, as cluster.node.address"
			    : "this machine has no IPv4 address: give the one by which other "
			      "nodes reach it as cluster.node.address");
	c->address = f.addr;
	return 0;
}

/* (those of the pool are on lo) */
static int note_address6(void *arg, const struct ax_addr *addr)
{
	struct found *f = arg;

	if (want_unicast(addr) || cluster_contains(f->c, addr) || addr_eq(addr, &f->addr))
		return 0;
	f->known |= addr_eq(addr, &f->c->address6);
	f->addr = *addr;
	f->n++;
	return 0;
}

/* The only one; or, when there are more by now, that which it was. Without one all else of the node
 * goes on: what it means is in the status. */
static void find_address6(struct cluster *c)
{
	char was[sizeof(c->no_address6)];
	struct found f = {.c = c};
	int r = nl_host_addr6_each(c->a->nl, note_address6, &f);

	if (r)
		return; /* the next look may tell */
	memcpy(was, c->no_address6, sizeof(was));
	c->no_address6[0] = 0;
	if (f.n != 1 && !f.known) {
		c->address6 = (struct ax_addr){0};
		snprintf(c->no_address6, sizeof(c->no_address6),
			 "this machine has %s IPv6 address%s: give the one by which other nodes "
			 "reach its blocks of IPv6 as cluster.node.address6, or all nodes routes: "
			 "wireguard",
			 f.n ? "several" : "no", f.n ? "es" : "");
	} else if (!f.known) {
		c->address6 = f.addr;
	}
	if (c->no_address6[0] && !streq(c->no_address6, was))
		log_warn("the cluster %s: %s", c->conf.name, c->no_address6);
}

void node_look(struct cluster *c)
{
	struct ax_addr was = c->address6;

	if (!c->conf.pool6.len || (c->conf.routes != CLUSTER_ROUTES_DIRECT && !translate_is_on(c)))
		return;
	if (!addr_is_zero(&c->conf.address6))
		c->address6 = c->conf.address6;
	else
		find_address6(c);
	if (addr_eq(&was, &c->address6))
		return;
	translate_moved(c);
	memory_write(c);
	cluster_at(c, &c->node_at_ns, 0);
}

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

/* The same after a new start of the machine; another for each instance on it. Machines that were
 * copied may have it in common: so a name is part of who has something (node_is_own()), and an
 * address of who has a name (is_own()). */
void node_make_id(struct cluster *c)
{
	autofree char *machine = NULL;
	uint64_t h[2];

	if (file_read("/etc/machine-id", 4096, &machine))
		machine = strdup("");
	for (unsigned i = 0; i < 2; i++) {
		h[i] = hash(0xcbf29ce484222325ull + i, machine ? machine : "");
		h[i] = hash(hash(h[i], "/"), c->a->inst->name);
	}
	snprintf(c->id, sizeof(c->id), "%016llx%016llx", (unsigned long long)h[0],
		 (unsigned long long)h[1]);
}

int node_identify(struct cluster *c, struct error *e)
{
	int r = 0;

	if (c->conf.node)
		snprintf(c->node, sizeof(c->node), "%.63s", c->conf.node);
	else
		r = find_name(c->node, e);
	c->address = c->conf.address;
	if (!r && addr_is_zero(&c->address))
		r = find_address(c, e);
	node_look(c);
	/* under its lease the former name would stay as if it were another node that is up */
	if (!r && c->was_node[0] && !streq(c->was_node, c->node)) {
		log_info("the cluster %s: this node was %s before", c->conf.name, c->was_node);
		c->lease_id = 0;
		c->was_node[0] = 0;
	}
	return r;
}

bool node_is_own(const struct cluster *c, const char *node, const char *id)
{
	return streq(node, c->node) && streq(id, c->id);
}

/* --- its key --- */

static bool is_own(const struct cluster *c, const struct record_node *n)
{
	return streq(n->id, c->id) && addr_eq(&n->address, &c->address);
}

static void wrong(struct cluster *c, const char *text)
{
	if (!streq(c->wrong, text))
		log_error("the cluster %s: %s", c->conf.name, text);
	snprintf(c->wrong, sizeof(c->wrong), "%s", text);
	cluster_at(c, &c->register_at_ns, CLUSTER_RETRY_MS);
}

static void done(struct cluster *c)
{
	if (!c->registered)
		log_info("the cluster %s: this is its node %s", c->conf.name, c->node);
	c->wrong[0] = 0;
	c->registered = true;
	publish_anew(c);
	blocks_sync(c);
	addresses_sync(c);
	translate_want_key(c);
	if (c->lease_lost) /* who loses that may have missed more */
		watch_look_soon(c);
	c->lease_lost = false;
}

static void failed(struct cluster *c, int err, const char *error)
{
	c->registering = false;
	/* (without the lease there is another one soon) */
	if (err == -EHOSTUNREACH || err == -ETIMEDOUT || err == -ENOENT)
		cluster_at(c, &c->register_at_ns, CLUSTER_RETRY_MS / 10);
	else
		wrong(c, error);
}

static char *own_text(const struct cluster *c)
{
	struct record_node n = {.address = c->address,
				.address6 = c->address6,
				.since = c->since,
				.version = AX_VERSION,
				.clock_known = c->clock_known,
				.clock_s = c->clock_s,
				.config = c->config_has,
				.has_wireguard = tunnel_is_on(c) && c->tunnel_has_key,
				.wireguard_port = c->conf.wireguard_port};

	memcpy(n.wireguard_key, c->tunnel_key, sizeof(n.wireguard_key));
	memcpy(n.config_why, c->config_why, sizeof(n.config_why));
	snprintf(n.name, sizeof(n.name), "%s", c->node);
	snprintf(n.id, sizeof(n.id), "%s", c->id);
	return record_node_text(&n);
}

static void on_taken_over(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	c->registering = false;
	if (err)
		failed(c, err, error);
	else if (answer->succeeded)
		done(c);
	else /* it has changed meanwhile: read it again */
		cluster_at(c, &c->register_at_ns, 1);
}

/* This node's, of before: an agent's that ended, or under a lease that did. */
static void take_over(struct cluster *c, const struct etcd_kv *kv)
{
	char key[RECORD_KEY_MAX];
	autofree char *text = own_text(c);
	struct etcd_compare same = {.key = bytes_of(record_node_key(c->conf.name, c->node, key)),
				    .target = ETCD_MOD_REVISION,
				    .number = kv->mod_revision};
	struct etcd_op put = {.kind = ETCD_PUT,
			      .key = bytes_of(key),
			      .value = bytes_of(text ? text : ""),
			      .lease = c->lease_id};
	struct etcd_txn t = {.compares = &same, .n_compares = 1, .success = &put, .n_success = 1};

	c->registering = text && !etcd_txn(c->etcd, &t, on_taken_over, c, NULL);
	if (!c->registering)
		cluster_at(c, &c->register_at_ns, CLUSTER_RETRY_MS);
}

static void name_is_taken(struct cluster *c, const struct etcd_kv *kv)
{
	char text[320], addr[ADDR_STRLEN];
	struct record_node n;
	struct error e = {0};

	if (record_node_read(kv->value.data, kv->value.len, &n, &e)) {
		snprintf(text, sizeof(text), "the record of a node %s cannot be understood: %.150s",
			 c->node, e.text);
	} else if (is_own(c, &n)) {
		take_over(c, kv);
		return;
	} else {
		snprintf(text, sizeof(text),
			 "it has a node %s already, at %s%s: give this one another "
			 "cluster.node.name",
			 c->node, addr_format(&n.address, addr),
			 streq(n.id, c->id) ? ", with this machine's id (was one copied?)" : "");
	}
	wrong(c, text);
}

static bool pool_fits(struct cluster *c, const struct prefix *pool,
		      const struct etcd_op_answer *got)
{
	char text[320], theirs[ADDR_STRLEN], ours[ADDR_STRLEN];
	struct error e = {0};
	struct prefix p;

	if (!got->n || record_pool_read(got->kvs[0].value.data, got->kvs[0].value.len, &p, &e)) {
		snprintf(text, sizeof(text), "its pool cannot be read: %.150s", e.text);
	} else if (prefix_eq(&p, pool)) {
		return true;
	} else {
		snprintf(text, sizeof(text),
			 "its pool is %s, and this node's config has %s: give all nodes the same "
			 "cluster.pool",
			 prefix_format(&p, theirs), prefix_format(pool, ours));
	}
	wrong(c, text);
	return false;
}

static void on_registered(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	c->registering = false;
	if (err)
		failed(c, err, error);
	else if (answer->succeeded)
		done(c);
	else if (answer->n_ops != 1 || !answer->ops[0].n)
		cluster_at(c, &c->register_at_ns, 1);
	else
		name_is_taken(c, &answer->ops[0].kvs[0]);
}

/* The name, if nobody has it. */
static int take_name(struct cluster *c)
{
	char key[RECORD_KEY_MAX];
	autofree char *text = own_text(c);
	struct etcd_compare none = {.key = bytes_of(record_node_key(c->conf.name, c->node, key)),
				    .target = ETCD_VERSION};
	struct etcd_op put = {.kind = ETCD_PUT,
			      .key = bytes_of(key),
			      .value = bytes_of(text ? text : ""),
			      .lease = c->lease_id};
	struct etcd_op get = {.kind = ETCD_GET, .key = bytes_of(key)};
	struct etcd_txn t = {.compares = &none,
			     .n_compares = 1,
			     .success = &put,
			     .n_success = 1,
			     .failure = &get,
			     .n_failure = 1,
			     .twice = true}; /* (who finds his own record there takes it over) */

	return text ? etcd_txn(c->etcd, &t, on_registered, c, NULL) : -ENOMEM;
}

/* Whether the cluster's pool is this node's. False, if it is not: that is said. */
static bool has_pool(struct cluster *c, const struct prefix *pool, int err,
		     const struct etcd_answer *answer, const char *error)
{
	c->registering = false;
	if (err)
		failed(c, err, error);
	return !err &&
	       (answer->succeeded || (answer->n_ops == 1 && pool_fits(c, pool, &answer->ops[0])));
}

static void then(struct cluster *c, int err)
{
	c->registering = !err;
	if (err)
		cluster_at(c, &c->register_at_ns, CLUSTER_RETRY_MS);
}

/* Makes the key of one of the pools, or reads it. */
static int ask_pool(struct cluster *c, const struct prefix *pool, etcd_done_fn fn)
{
	char key[RECORD_KEY_MAX];
	autofree char *text = record_pool_text(pool);
	struct etcd_compare none = {
		.key = bytes_of(record_pool_key(c->conf.name, addr_is_v4(&pool->addr), key)),
		.target = ETCD_VERSION};
	struct etcd_op put = {
		.kind = ETCD_PUT, .key = bytes_of(key), .value = bytes_of(text ? text : "")};
	struct etcd_op get = {.kind = ETCD_GET, .key = bytes_of(key)};
	struct etcd_txn t = {.compares = &none,
			     .n_compares = 1,
			     .success = &put,
			     .n_success = 1,
			     .failure = &get,
			     .n_failure = 1,
			     .twice = true};

	return text ? etcd_txn(c->etcd, &t, fn, c, NULL) : -ENOMEM;
}

static void on_pool6(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	if (has_pool(c, &c->conf.pool6, err, answer, error))
		then(c, take_name(c));
}

static void on_pool(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	if (!has_pool(c, &c->conf.pool, err, answer, error))
		return;
	then(c, c->conf.pool6.len ? ask_pool(c, &c->conf.pool6, on_pool6) : take_name(c));
}

/* First the pools, which are the same for all: who has another one is told before he has any part
 * of it. (Who has none of IPv6 has no part of that.) */
void node_register(struct cluster *c)
{
	if (c->etcd && c->lease_id && !c->registering && !c->registered)
		then(c, ask_pool(c, &c->conf.pool, on_pool));
}

void node_unregistered(struct cluster *c)
{
	c->registered = false;
	cluster_at(c, &c->register_at_ns, 0);
}

static void on_written(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	(void)error;
	if (err)
		cluster_at(c, &c->node_at_ns, CLUSTER_RETRY_MS);
	else if (!answer->succeeded)
		node_unregistered(c);
}

void node_write(struct cluster *c)
{
	char key[RECORD_KEY_MAX];
	autofree char *text = own_text(c);
	const struct etcd_compare mine = {
		.key = bytes_of(record_node_key(c->conf.name, c->node, key)),
		.target = ETCD_LEASE,
		.number = c->lease_id};
	const struct etcd_op put = {.kind = ETCD_PUT,
				    .key = bytes_of(key),
				    .value = bytes_of(text ? text : ""),
				    .lease = c->lease_id};
	const struct etcd_txn t = {
		.compares = &mine, .n_compares = 1, .success = &put, .n_success = 1, .twice = true};

	if (!c->registered)
		return; /* that comes, and says it */
	if (!text || etcd_txn(c->etcd, &t, on_written, c, NULL))
		cluster_at(c, &c->node_at_ns, CLUSTER_RETRY_MS);
}
