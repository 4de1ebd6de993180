/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other clusters. Each has an etcd of its own, of which this node reads what it reads of its own
 * cluster's, and writes nothing: it has no lease there, and no name. What another cluster says is
 * believed less: it speaks for addresses of its own pool alone, which this node's config says; its
 * apps are called NAME.CLUSTER, and policy knows them by one label; and it takes no more than a
 * part of this node's memory and time.
 */
#include "base/log.h"
#include "cluster/priv.h"
#include "registry/state.h"

/* Apps of all peers together: a quarter of what the programs can know. */
#define APPS_MAX  32768
#define BYTES_MAX (64u << 20)

/* So much of a while may be spent on a peer's news. */
#define WHILE_MS 10000
#define SPEND_MS 2000

#define COMPLAIN_MS 60000

/* --- what it is called --- */

int foreign_name(struct cluster *c, struct peer_app *app)
{
	if (!c->home)
		return 0;
	if (asprintf(&app->node_name, "%s.%s", app->rec.node, c->conf.name) < 0)
		app->node_name = NULL;
	/* (a longer one is no name) */
	if (strlen(app->rec.name) + 1 + strlen(c->conf.name) > RECORD_NAME_MAX)
		return app->node_name ? 0 : -ENOMEM;
	if (asprintf(&app->name, "%s.%s", app->rec.name, c->conf.name) < 0)
		app->name = NULL;
	return app->name && app->node_name ? 0 : -ENOMEM;
}

/* --- what it may do --- */

bool foreign_may_complain(struct cluster *c)
{
	uint64_t now = time_mono_ns();

	if (!c->home)
		return true;
	if (c->complained_ns && now - c->complained_ns < COMPLAIN_MS * NS_PER_MS)
		return false;
	c->complained_ns = now;
	return true;
}

bool foreign_spent(struct cluster *c, uint64_t began_ns)
{
	uint64_t now = time_mono_ns();

	if (now - c->busy_since_ns > WHILE_MS * NS_PER_MS) {
		c->busy_since_ns = began_ns;
		c->busy_ns = 0;
	}
	c->busy_ns += now - began_ns;
	if (c->busy_ns < SPEND_MS * NS_PER_MS)
		return false;
	snprintf(c->not_read, sizeof(c->not_read),
		 "what it tells takes too much of this node's time: it is read again later");
	if (foreign_may_complain(c))
		log_warn("the peer %s: %s", c->conf.name, c->not_read);
	c->busy_ns = 0;
	return true;
}

void foreign_pool_read(struct cluster *c, const struct etcd_kv *kv)
{
	char text[sizeof(c->not_read)] = "", theirs[ADDR_STRLEN], ours[ADDR_STRLEN];
	struct error e = {0};
	struct prefix p;

	if (!kv)
		snprintf(text, sizeof(text),
			 "its etcd has no cluster %s: look at the peer's etcd, or wait for the "
			 "cluster's first node",
			 c->conf.name);
	else if (record_pool_read(kv->value.data, kv->value.len, &p, &e))
		snprintf(text, sizeof(text), "its pool cannot be read: %.200s", e.text);
	else if (!prefix_eq(&p, &c->conf.pool))
		snprintf(text, sizeof(text),
			 "its pool is %s, and this node's config has %s: give the peer its own "
			 "cluster's pool",
			 prefix_format(&p, theirs), prefix_format(&c->conf.pool, ours));
	c->pool_wrong = text[0];
	if (text[0] && !streq(text, c->not_read))
		log_error("the peer %s: %s", c->conf.name, text);
	memcpy(c->not_read, text, sizeof(text));
}

/* --- its life --- */

static void on_change(void *arg)
{
	struct cluster *c = arg;
	struct etcd_state s = etcd_state(c->etcd);

	if (s.connected == c->connected)
		return;
	c->connected = s.connected;
	if (s.connected)
		log_info("the peer %s: connected to %s", c->conf.name, s.endpoint);
	else
		log_warn("the peer %s is out of reach: %s", c->conf.name, s.error);
}

static void begin(struct cluster *c)
{
	const struct etcd_options o = {
		.endpoints = (const char *const *)c->peer.etcd.v,
		.n_endpoints = c->peer.etcd.n,
		.ca = c->peer.ca,
		.cert = c->peer.cert,
		.key = c->peer.key,
	};
	struct error e = {0};

	remember_read(c);
	if (etcd_open(c->a->epoll, &o, &c->etcd, &e)) {
		snprintf(c->failed, sizeof(c->failed), "%s", e.text);
		log_error("the peer %s: %s", c->conf.name, e.text);
		return;
	}
	etcd_on_change(c->etcd, on_change, c);
	watch_begin(c);
}

static void release(struct cluster *c)
{
	watch_end(c);
	etcd_close(c->etcd);
	config_cluster_free(&c->peer_conf);
	free(c->conf.name);
	free(c);
}

/* (packets have no way by then) */
static void end(struct cluster *c)
{
	c->was_read = false; /* nothing of it is remembered */
	remember_forget(c);
	peers_drop_all(c);
	peers_free(&c->peers);
	release(c);
}

/* What its nodes have in common with those of this cluster. */
static void take_conf(struct cluster *c)
{
	const struct config_cluster *conf = &c->home->conf;

	c->conf.routes = conf->routes;
	c->conf.dead_after_ms = conf->dead_after_ms;
	c->apps_max = APPS_MAX / conf->n_peers;
	c->bytes_max = BYTES_MAX / conf->n_peers;
}

/* NULL: out of memory. */
static struct cluster *make(struct cluster *home, const struct config_peer *peer)
{
	const struct config_cluster one = {.peers = (struct config_peer *)(uintptr_t)peer,
					   .n_peers = 1};
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c || config_cluster_copy(&one, &c->peer_conf)) {
		free(c);
		return NULL;
	}
	c->peer = c->peer_conf.peers[0];
	c->a = home->a;
	c->home = home;
	c->conf.name = strdup(peer->name);
	c->conf.pool = peer->pool;
	c->conf.pool6 = peer->pool6;
	if (!c->conf.name) {
		release(c);
		return NULL;
	}
	memcpy(c->id, home->id, sizeof(c->id));
	return c;
}

static bool is_wanted(const struct cluster *home, const struct cluster *c)
{
	for (size_t i = 0; i < home->conf.n_peers; i++)
		if (config_peer_eq(&home->conf.peers[i], &c->peer))
			return true;
	return false;
}

static bool has(const struct cluster *home, const struct config_peer *peer)
{
	for (const struct cluster *c = home->next; c; c = c->next)
		if (config_peer_eq(&c->peer, peer))
			return true;
	return false;
}

void foreign_sync(struct cluster *home)
{
	struct cluster **at = &home->next, *c;

	while ((c = *at)) {
		if (is_wanted(home, c)) {
			take_conf(c);
			at = &c->next;
			continue;
		}
		log_info("the cluster %s has no peer %s any more", home->conf.name, c->conf.name);
		*at = c->next;
		end(c);
		routes_stale(home);
	}
	for (size_t i = 0; i < home->conf.n_peers; i++) {
		if (has(home, &home->conf.peers[i]))
			continue;
		c = make(home, &home->conf.peers[i]);
		if (!c) {
			log_error("the peer %s: out of memory", home->conf.peers[i].name);
			return;
		}
		take_conf(c);
		*at = c;
		at = &c->next;
		begin(c);
	}
}

void foreign_close(struct cluster *home)
{
	while (home->next) {
		struct cluster *c = home->next;

		home->next = c->next;
		remember_end(c);
		peers_free(&c->peers);
		release(c);
	}
}

static void add_pools(struct agent *a, const struct prefix *v4, const struct prefix *v6)
{
	a->nodes[a->n_nodes++] = *v4;
	if (v6->len && a->has_ipv6)
		a->nodes[a->n_nodes++] = *v6;
}

void foreign_pools(const struct cluster *home)
{
	struct agent *a = home->a;

	a->n_nodes = 0;
	add_pools(a, &home->conf.pool, &home->conf.pool6);
	for (size_t i = 0; i < home->conf.n_peers; i++)
		add_pools(a, &home->conf.peers[i].pool, &home->conf.peers[i].pool6);
}
