/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client of etcd, its lease, and what is due. */
#include <time.h>

#include "allot/pool.h"
#include "base/log.h"
#include "cluster/priv.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/state.h"

void cluster_at(struct cluster *c, uint64_t *deadline, uint64_t in_ms)
{
	uint64_t at = time_mono_ns() + in_ms * NS_PER_MS;

	if (*deadline && *deadline <= at)
		return;
	*deadline = at;
	c->a->timers_stale = true;
}

int64_t cluster_unix_of(uint64_t mono_ns)
{
	uint64_t now = time_mono_ns();

	return time(NULL) - (int64_t)((now > mono_ns ? now - mono_ns : 0) / NS_PER_S);
}

uint64_t cluster_mono_of(int64_t unix_s)
{
	uint64_t now = time_mono_ns();
	int64_t ago = time(NULL) - unix_s;

	if (ago <= 0)
		return now;
	return (uint64_t)ago < now / NS_PER_S ? now - (uint64_t)ago * NS_PER_S : 1;
}

int cluster_open(struct agent *a, const struct config_cluster *conf, struct error *e)
{
	struct cluster *c;

	if (!conf->name)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c || config_cluster_copy(conf, &c->conf) || pool_shut(&a->pool4) ||
	    (conf->pool6.len && pool_shut(&a->pool6))) {
		free(c);
		return error_set(e, -ENOMEM, "out of memory");
	}
	c->a = a;
	a->cluster = c;
	a->policy.cluster = c->conf.name;
	memory_read(c);
	return 0;
}

/* (what is wrong is said when the cluster begins) */
void cluster_prepare(struct agent *a)
{
	struct cluster *c = a->cluster;
	struct error e;

	if (c &&
	    (c->conf.routes == CLUSTER_ROUTES_DIRECT || (tunnel_is_on(c) && !tunnel_begin(c, &e))))
		foreign_pools(c);
}

static void on_lease(void *arg, enum etcd_lease_event event, int64_t id, const char *why)
{
	struct cluster *c = arg;

	switch (event) {
	case ETCD_LEASE_HELD:
		if (c->lease_id == id && c->registered)
			return;
		if (c->lease_id != id)
			c->lease_since_ns = time_mono_ns();
		c->lease_id = id;
		memory_write(c);
		node_unregistered(c);
		break;
	case ETCD_LEASE_LATE:
		log_warn("the cluster %s may take this node for away: %s", c->conf.name, why);
		break;
	case ETCD_LEASE_LOST:
		log_warn("the cluster %s took this node for away: %s", c->conf.name, why);
		c->lease_id = 0;
		c->lease_lost = true;
		c->registered = false;
		break;
	}
}

static void on_change(void *arg)
{
	struct cluster *c = arg;
	struct etcd_state s = etcd_state(c->etcd);

	if (s.clock_known && (!c->clock_known || s.clock_s != c->clock_s)) {
		c->clock_known = true;
		c->clock_s = s.clock_s;
		cluster_at(c, &c->node_at_ns, 0);
	}
	if (s.connected == c->connected)
		return;
	c->connected = s.connected;
	if (s.connected)
		log_info("the cluster %s: connected to %s", c->conf.name, s.endpoint);
	else
		log_warn("the cluster %s is out of reach: %s", c->conf.name, s.error);
}

static int start(struct cluster *c, struct error *e)
{
	const struct etcd_options o = {
		.endpoints = (const char *const *)c->conf.etcd.v,
		.n_endpoints = c->conf.etcd.n,
		.ca = c->conf.ca,
		.cert = c->conf.cert,
		.key = c->conf.key,
	};
	int r = etcd_open(c->a->epoll, &o, &c->etcd, e);

	if (r)
		return r;
	etcd_on_change(c->etcd, on_change, c);
	r = etcd_lease_open(c->etcd, CLUSTER_TTL_S, c->lease_id, on_lease, c, &c->lease);
	if (r)
		return error_set(e, r, "cannot ask for a lease: %s", strerror(-r));
	watch_begin(c);
	return 0;
}

/* (its lease is kept by the next client) */
static void stop(struct cluster *c, bool tell)
{
	watch_end(c);
	etcd_lease_free(c->lease);
	etcd_close(c->etcd);
	c->connected = false;
	c->lease = NULL;
	c->etcd = NULL;
	addresses_stop(c, tell);
	configs_stop(c, tell);
	c->registering = c->publishing = c->claiming = false;
	c->registered = false;
	for (size_t i = 0; i < c->n_apps; i++)
		c->apps[i].sent = false;
}

/* There may be no WireGuard at the agent's start, and later one: then apps' packets to other nodes
 * begin to be forwarded, and not masqueraded. */
static int begin_tunnel(struct cluster *c, struct error *e)
{
	struct agent *a = c->a;
	int r = tunnel_begin(c, e);

	if (r || !tunnel_is_on(c) || a->n_nodes)
		return r;
	foreign_pools(c);
	r = a->hooks.nodes(a, e);
	if (r)
		a->n_nodes = 0;
	return r;
}

/* What the agent before this one knew holds until etcd says something else. */
static void recall(struct cluster *c)
{
	remember_read(c);
	if (!c->by_memory)
		return;
	routes_sync(c);
	routes_tell(c);
}

static void begin(struct cluster *c)
{
	char was[sizeof(c->failed)];
	struct error e = {0};

	memcpy(was, c->failed, sizeof(was));
	c->failed[0] = 0;
	c->begin_at_ns = 0;
	if (!node_identify(c, &e) && !begin_tunnel(c, &e)) {
		translate_begin(c);
		foreign_sync(c);
		recall(c);
		if (!start(c, &e))
			return;
	}
	snprintf(c->failed, sizeof(c->failed), "%s", e.text);
	if (!streq(c->failed, was))
		log_error("the cluster %s: %s", c->conf.name, e.text);
	stop(c, true);
	/* (a module can be loaded, and a port be free) */
	if (tunnel_is_on(c))
		cluster_at(c, &c->begin_at_ns, CLUSTER_RETRY_MS);
}

void cluster_start(struct agent *a)
{
	datapath_servers_watch(a->dp, a->cluster || a->near.services);
	routes_open(a);
	translate_open(a);
	if (a->cluster)
		begin(a->cluster);
}

/* Packets to apps of a peer that is new are forwarded before there is a way to them. */
static void tell_pools(struct cluster *c)
{
	struct agent *a = c->a;
	struct error e = {0};

	if (!a->n_nodes)
		return;
	foreign_pools(c);
	if (a->hooks.nodes(a, &e))
		log_error("the cluster %s: %s", c->conf.name, e.text);
}

void cluster_reconfigure(struct agent *a)
{
	struct cluster *c = a->cluster;
	struct config_cluster next;

	if (!c || a->starting || !config_cluster_same_node(&c->conf, &a->config.cluster) ||
	    config_cluster_eq(&c->conf, &a->config.cluster) ||
	    config_cluster_copy(&a->config.cluster, &next))
		return;
	stop(c, true);
	config_cluster_free(&c->conf);
	c->conf = next;
	a->policy.cluster = c->conf.name;
	tell_pools(c);
	begin(c);
	cluster_apps_changed(a); /* what is exported may be another matter */
	others_all_stale(a);	 /* which of them are chosen may be another matter now */
}

void cluster_close(struct agent *a)
{
	struct cluster *c = a->cluster;

	if (!c)
		return;
	remember_end(c);
	stop(c, false);
	routes_close(c);
	foreign_close(c);
	tunnel_close(c);
	translate_close(c);
	peers_free(&c->peers);
	publish_free(c);
	configs_free(c);
	holders_free(c);
	free(c->blocks);
	free(c->addresses);
	a->policy.cluster = NULL;
	config_cluster_free(&c->conf);
	free(c);
	a->cluster = NULL;
}

const char *cluster_node(const struct agent *a)
{
	return a->cluster ? a->cluster->node : NULL;
}

/* --- what is due --- */

/* A look at all apps takes no more than a fifth of the agent's time. */
#define LOOK_DELAY_MS	3
#define LOOK_REST_TIMES 4

void cluster_apps_changed(struct agent *a)
{
	struct cluster *c = a->cluster;
	uint64_t now = time_mono_ns(), at = now + LOOK_DELAY_MS * NS_PER_MS, rest;

	if (!c || c->publish_at_ns)
		return;
	rest = c->published_ns + LOOK_REST_TIMES * c->look_took_ns;
	c->publish_at_ns = rest > at ? rest : at;
	a->timers_stale = true;
}

void cluster_addresses_taken(struct agent *a)
{
	if (a->cluster)
		cluster_at(a->cluster, &a->cluster->claim_at_ns, 0);
}

static bool is_due(uint64_t *at, uint64_t now_ns)
{
	if (!*at || *at > now_ns)
		return false;
	*at = 0;
	return true;
}

/* Of what is read, of its own cluster and of peers. */
static void due_reads(struct cluster *c, uint64_t now_ns)
{
	if (is_due(&c->read_at_ns, now_ns))
		watch_begin(c);
	if (is_due(&c->forget_at_ns, now_ns))
		missing_forget(c, now_ns);
	if (is_due(&c->look_at_ns, now_ns))
		watch_look(c);
	if (is_due(&c->remember_at_ns, now_ns))
		remember_due(c);
}

void cluster_due(struct agent *a, uint64_t now_ns)
{
	struct cluster *c = a->cluster;

	if (!c)
		return;
	if (is_due(&c->begin_at_ns, now_ns))
		begin(c);
	if (is_due(&c->register_at_ns, now_ns))
		node_register(c);
	for (struct cluster *v = c; v; v = v->next)
		due_reads(v, now_ns);
	if (is_due(&c->claim_at_ns, now_ns))
		blocks_want(c);
	if (is_due(&c->publish_at_ns, now_ns)) {
		c->dirty = true;
		publish(c);
		blocks_want(c);
		addresses_sync(c);
	}
	if (is_due(&c->send_at_ns, now_ns))
		publish(c);
	if (is_due(&c->addresses_at_ns, now_ns))
		addresses_sync(c);
	if (is_due(&c->config_at_ns, now_ns))
		configs_settle(c);
	if (is_due(&c->node_at_ns, now_ns))
		node_write(c);
	if (is_due(&c->across_at_ns, now_ns))
		translate_want_key(c);
	if (is_due(&c->routes_at_ns, now_ns))
		routes_sync(c);
	if (is_due(&c->tell_at_ns, now_ns))
		routes_tell(c);
}

static uint64_t deadline_of(const struct cluster *c)
{
	const uint64_t at[] = {c->register_at_ns, c->read_at_ns,      c->claim_at_ns,
			       c->publish_at_ns,  c->forget_at_ns,    c->routes_at_ns,
			       c->tell_at_ns,	  c->addresses_at_ns, c->config_at_ns,
			       c->node_at_ns,	  c->across_at_ns,    c->begin_at_ns,
			       c->look_at_ns,	  c->remember_at_ns,  c->send_at_ns};
	uint64_t next = 0;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		if (at[i] && (!next || at[i] < next))
			next = at[i];
	return next;
}

uint64_t cluster_deadline(const struct agent *a)
{
	uint64_t next = 0;

	for (const struct cluster *c = a->cluster; c; c = c->next) {
		uint64_t at = deadline_of(c);

		if (at && (!next || at < next))
			next = at;
	}
	return next;
}
