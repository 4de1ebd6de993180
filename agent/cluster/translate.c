/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way between nodes on which nothing but the nodes' addresses is routed: the programs are told
 * by which port of its node each server of another node is reached, and whose the numbers are that
 * SYNs carry; this node's servers get such ports; and all nodes share a key.
 */
#include <arpa/inet.h>
#include <search.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/remotes.h"
#include "registry/state.h"
#include "registry/vips.h"

bool translate_is_on(const struct cluster *c)
{
	return c->conf.routes == CLUSTER_ROUTES_TRANSLATE;
}

/* --- this node's ports --- */

/* A server keeps its port, also when it has gone, until there are no others left: who has not heard
 * of that yet is refused, and does not come to another server. */
struct across_port {
	struct ax_endpoint server;
	uint32_t port;
	uint64_t used; /* the look at all servers that had it last */
};

static int port_cmp(const void *x, const void *y)
{
	return memcmp(&((const struct across_port *)x)->server,
		      &((const struct across_port *)y)->server, sizeof(struct ax_endpoint));
}

static struct across_port *find_port(const struct cluster *c, const struct ax_endpoint *server)
{
	struct across_port key = {.server = *server};
	void **found = tfind(&key, &c->across_ports, port_cmp);

	return found ? *found : NULL;
}

static bool is_six(const struct ax_addr *addr)
{
	return !addr_is_v4(addr);
}

static struct across_port **slot(struct cluster *c, uint32_t port, bool six)
{
	return &c->across_by_port[six][port - AX_ACROSS_FIRST];
}

static void drop_port(struct cluster *c, struct across_port *p)
{
	tdelete(p, &c->across_ports, port_cmp);
	*slot(c, p->port, is_six(&p->server.addr)) = NULL;
	free(p);
}

static struct across_port *add_port(struct cluster *c, const struct ax_endpoint *server,
				    uint32_t port)
{
	struct across_port *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->server = *server;
	p->port = port;
	if (!tsearch(p, &c->across_ports, port_cmp)) {
		free(p);
		return NULL;
	}
	*slot(c, port, is_six(&server->addr)) = p;
	return p;
}

/* No program of the host listens there, or is about to: that one would not be reached any more. */
static bool is_free(uint32_t port, bool six)
{
	const struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
					  .sin6_port = htons((uint16_t)port)};
	autoclose int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		return false;
	if (!six)
		return bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) == 0;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0 &&
	       bind(fd, (const struct sockaddr *)&sin6, sizeof(sin6)) == 0;
}

/* One that nobody has; else that of the server that is gone for longest. 0: there is none. */
static uint32_t choose_port(struct cluster *c, bool six)
{
	uint32_t *cursor = &c->across_cursor[six];
	struct across_port *oldest = NULL;
	uint32_t port;

	for (uint32_t i = 0; i < AX_ACROSS_PORTS; i++) {
		struct across_port *p;

		port = AX_ACROSS_FIRST + (*cursor + i) % AX_ACROSS_PORTS;
		p = *slot(c, port, six);
		if (!p && is_free(port, six)) {
			*cursor = port - AX_ACROSS_FIRST + 1;
			return port;
		}
		if (p && p->used != c->across_looks && (!oldest || p->used < oldest->used))
			oldest = p;
	}
	if (!oldest)
		return 0;
	port = oldest->port;
	drop_port(c, oldest);
	return port;
}

uint16_t translate_port(struct cluster *c, const struct ax_addr *addr, uint16_t port)
{
	const struct ax_endpoint server = {
		.addr = *addr, .port_be = htons(port), .proto = IPPROTO_TCP};
	struct across_port *p = find_port(c, &server);
	uint32_t own = p ? p->port : choose_port(c, is_six(addr));

	p = p || !own ? p : add_port(c, &server, own);
	if (p)
		p->used = c->across_looks;
	if (p && datapath_across_served(c->a->dp, p->port, &server) == 0)
		return (uint16_t)p->port;
	if (!c->across_full)
		log_error("the cluster %s: a server of this node is not reached from other nodes: "
			  "all of its %d ports for servers are in use, or its map is full",
			  c->conf.name, AX_ACROSS_PORTS);
	c->across_full = true;
	return 0;
}

void translate_look(struct cluster *c)
{
	c->across_looks++;
}

/* An agent before this one has given it out. */
static int adopt_port(void *arg, uint32_t port, const struct ax_endpoint *server)
{
	struct cluster *c = arg;

	if (port >= AX_ACROSS_FIRST && port <= AX_ACROSS_LAST &&
	    !*slot(c, port, is_six(&server->addr)))
		add_port(c, server, port);
	return 0;
}

/* --- servers and apps of other nodes --- */

/* What the programs were told of an app's address. */
struct across_told {
	struct ax_across_app who;
	struct ax_addr node, addr;
	struct told_port *ports; /* those that its node has a port for */
	size_t n_ports;
};

struct told_port {
	uint16_t port, via;
};

static struct ax_endpoint endpoint_of(const struct ax_addr *addr, uint16_t port)
{
	return (struct ax_endpoint){.addr = *addr, .port_be = htons(port), .proto = IPPROTO_TCP};
}

static void told_free(struct across_told *t)
{
	if (t)
		free(t->ports);
	free(t);
}

static bool has_port(const struct across_told *t, const struct told_port *p)
{
	for (size_t i = 0; i < t->n_ports; i++)
		if (t->ports[i].port == p->port)
			return true;
	return false;
}

/* What is not said any more by `now` (NULL: nothing is). */
static void untell(struct cluster *c, const struct across_told *was, const struct across_told *now)
{
	bool same_addr = now && addr_eq(&was->addr, &now->addr);
	struct vip *v;

	if (!now || memcmp(&was->who, &now->who, sizeof(was->who)) != 0)
		datapath_across_app(c->a->dp, &was->who, NULL);
	for (size_t i = 0; i < was->n_ports; i++) {
		struct ax_endpoint server = endpoint_of(&was->addr, was->ports[i].port);

		if (!same_addr || !has_port(now, &was->ports[i]))
			datapath_across_to(c->a->dp, &server, NULL);
	}
	v = vip_find(c->a, &was->addr);
	if (!same_addr && v && v->remote) { /* another one has the address by now */
		c->ways_changed = true;
		routes_stale(c);
	}
}

static const struct ax_addr *node_at(const struct peer_app *app, bool six)
{
	return six ? &app->node->rec.address6 : &app->node->rec.address;
}

static struct across_told *told_of(const struct peer_app *app, bool six)
{
	struct across_told *t = calloc(1, sizeof(*t));

	if (t)
		t->ports = calloc(app->rec.n_ports + 1, sizeof(*t->ports));
	if (!t || !t->ports) {
		told_free(t);
		return NULL;
	}
	t->node = *node_at(app, six);
	t->addr = six ? app->rec.ip6 : app->rec.ip4;
	t->who.node = t->node;
	t->who.number = app->rec.id;
	for (size_t i = 0; i < app->rec.n_ports; i++) {
		const struct other_port *p = &app->rec.ports[i];
		uint16_t via = six ? p->via6 : p->via;

		if (via && p->proto == IPPROTO_TCP)
			t->ports[t->n_ports++] = (struct told_port){p->port, via};
	}
	return t;
}

static int tell(struct cluster *c, const struct across_told *t)
{
	int r = datapath_across_app(c->a->dp, &t->who, &t->addr);

	for (size_t i = 0; i < t->n_ports && !r; i++) {
		struct ax_endpoint server = endpoint_of(&t->addr, t->ports[i].port);
		struct ax_endpoint at = endpoint_of(&t->node, t->ports[i].via);

		r = datapath_across_to(c->a->dp, &server, &at);
	}
	return r;
}

static void translate_address(struct cluster *c, struct peer_app *app, bool six)
{
	const struct remote *remote = six ? app->remote6 : app->remote;
	struct across_told *now = NULL, **was = &app->across[six];
	int r = 0;

	/* (an IPv6 address may go before the way does) */
	if (remote && translate_is_on(c) && !addr_is_zero(node_at(app, six))) {
		now = told_of(app, six);
		r = now ? tell(c, now) : -ENOMEM;
	}
	if (*was)
		untell(c, *was, now);
	told_free(*was);
	*was = now;
	if (!r)
		return;
	snprintf(c->untold, sizeof(c->untold), "%s of %s: %s", app->rec.name, app->rec.node,
		 strerror(-r));
	c->tell_failed = true;
}

void translate_app(struct cluster *c, struct peer_app *app)
{
	translate_address(c, app, false);
	translate_address(c, app, true);
}

void translate_app_free(struct peer_app *app)
{
	for (unsigned i = 0; i < ARRAY_SIZE(app->across); i++) {
		told_free(app->across[i]);
		app->across[i] = NULL;
	}
}

/* --- the key --- */

static void tell_programs(struct cluster *c)
{
	struct ax_across_ctl ctl = {.node = c->address,
				    .node6 = c->address6,
				    .now = c->across_now,
				    .before = c->across_before};
	int r = translate_is_on(c) ? datapath_across_set(c->a->dp, &ctl) : 0;

	if (r)
		log_error("the cluster %s: the programs cannot be told its key: %s", c->conf.name,
			  strerror(-r));
}

static void on_claimed(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	(void)answer; /* whoever was first: the watch tells of it */
	c->across_asking = false;
	if (!err)
		return;
	if (err != -EHOSTUNREACH && err != -ETIMEDOUT)
		log_warn("the cluster %s does not take a key: %s", c->conf.name, error);
	cluster_at(c, &c->across_at_ns, CLUSTER_RETRY_MS);
}

static int claim(struct cluster *c, const struct ax_across_key *k)
{
	char key[RECORD_KEY_MAX];
	autofree char *text = record_secret_text(k);
	const struct etcd_compare none = {.key = bytes_of(record_secret_key(c->conf.name, key)),
					  .target = ETCD_VERSION};
	const struct etcd_op put = {
		.kind = ETCD_PUT, .key = bytes_of(key), .value = bytes_of(text ? text : "")};
	const struct etcd_txn t = {
		.compares = &none, .n_compares = 1, .success = &put, .n_success = 1, .twice = true};

	return text ? etcd_txn(c->etcd, &t, on_claimed, c, NULL) : -ENOMEM;
}

void translate_want_key(struct cluster *c)
{
	struct ax_across_key k = c->across_now;

	if (!translate_is_on(c) || !c->registered || !c->was_read || c->across_there ||
	    c->across_asking)
		return;
	if (!k.id || c->across_deleted) { /* (else what etcd has lost is written again) */
		if (getrandom(k.k, sizeof(k.k), 0) != sizeof(k.k)) {
			cluster_at(c, &c->across_at_ns, CLUSTER_RETRY_MS);
			return;
		}
		k.id = k.id % 255 + 1;
	}
	c->across_asking = !claim(c, &k);
	if (!c->across_asking)
		cluster_at(c, &c->across_at_ns, CLUSTER_RETRY_MS);
}

int translate_key_put(struct cluster *c, const struct etcd_kv *kv, struct error *e)
{
	struct ax_across_key k;
	int r = record_secret_read(kv->value.data, kv->value.len, &k, e);

	if (r)
		return r;
	c->across_there = true;
	c->across_deleted = false;
	if (memcmp(&k, &c->across_now, sizeof(k)) == 0)
		return 0;
	c->across_before = c->across_now;
	c->across_now = k;
	tell_programs(c);
	return 0;
}

void translate_key_deleted(struct cluster *c)
{
	c->across_there = false;
	c->across_deleted = true;
	translate_want_key(c);
}

void translate_read(struct cluster *c)
{
	c->across_there = false;
}

/* --- its life --- */

void translate_open(struct agent *a)
{
	struct cluster *c = a->cluster;
	bool on = c && translate_is_on(c);
	struct ax_across_ctl ctl = {0};

	datapath_across_clear(a->dp, !on);
	if (!on)
		return;
	datapath_across_each(a->dp, adopt_port, c);
	if (datapath_across_get(a->dp, &ctl) == 0) {
		c->across_now = ctl.now;
		c->across_before = ctl.before;
	}
}

void translate_begin(struct cluster *c)
{
	c->across_asking = false;
	tell_programs(c);
}

void translate_moved(struct cluster *c)
{
	tell_programs(c);
}

void translate_close(struct cluster *c)
{
	tdestroy(c->across_ports, free);
	c->across_ports = NULL;
}
