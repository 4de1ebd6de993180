// SPDX-License-Identifier: GPL-2.0-or-later
/* Of the config's section cluster: other clusters, and what of this one they are shown. */
#include "base/values.h"
#include "config/read.h"

/* --- their life --- */

static void peer_free(struct config_peer *p)
{
	free(p->name);
	strv_free(&p->etcd);
	free(p->ca);
	free(p->cert);
	free(p->key);
	*p = (struct config_peer){0};
}

void config_peers_free(struct config_cluster *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		peer_free(&c->peers[i]);
	free(c->peers);
	c->peers = NULL;
	c->n_peers = 0;
}

static int peer_copy(const struct config_peer *from, struct config_peer *to)
{
	const char *const text[] = {from->name, from->ca, from->cert, from->key};
	char **const into[] = {&to->name, &to->ca, &to->cert, &to->key};
	int r = strv_copy(&from->etcd, &to->etcd);

	to->pool = from->pool;
	to->pool6 = from->pool6;
	for (size_t i = 0; !r && i < ARRAY_SIZE(into); i++) {
		*into[i] = text[i] ? strdup(text[i]) : NULL;
		r = text[i] && !*into[i] ? -ENOMEM : 0;
	}
	return r;
}

int config_peers_copy(const struct config_cluster *from, struct config_cluster *to)
{
	int r = 0;

	to->peers = calloc(from->n_peers + 1, sizeof(*to->peers));
	if (!to->peers)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_peers && !r; i++) {
		to->n_peers++;
		r = peer_copy(&from->peers[i], &to->peers[i]);
	}
	return r;
}

static bool text_eq(const char *a, const char *b)
{
	return a == b || (a && b && streq(a, b));
}

bool config_peer_eq(const struct config_peer *a, const struct config_peer *b)
{
	return text_eq(a->name, b->name) && strv_eq(&a->etcd, &b->etcd) && text_eq(a->ca, b->ca) &&
	       text_eq(a->cert, b->cert) && text_eq(a->key, b->key) &&
	       prefix_eq(&a->pool, &b->pool) && prefix_eq(&a->pool6, &b->pool6);
}

bool config_peers_eq(const struct config_cluster *a, const struct config_cluster *b)
{
	if (a->n_peers != b->n_peers)
		return false;
	for (size_t i = 0; i < a->n_peers; i++)
		if (!config_peer_eq(&a->peers[i], &b->peers[i]))
			return false;
	return true;
}

bool config_cluster_exports(const struct config_cluster *c, const char *app)
{
	for (size_t i = 0; i < c->export.n && !c->export_all; i++)
		if (streq(c->export.v[i], app))
			return true;
	return c->export_all;
}

bool config_cluster_has_peer_of(const struct config_cluster *c, const char *name)
{
	const char *dot = strchr(name, '.');

	for (size_t i = 0; dot && i < c->n_peers; i++)
		if (streq(c->peers[i].name, dot + 1))
			return true;
	return false;
}

/* --- the file --- */

/* The value of that key; the mapping itself: it is not there. */
static const struct node *value_of(const struct node *n, const char *key)
{
	const struct node *at = node_key(n, key);

	return at ? at + 1 : n;
}

/* "dns" is the zone's own: ns.dns.ax.internal. */
static void check_name(struct reader *r, const struct node *n, const struct config_cluster *c,
		       const struct config_peer *p)
{
	const struct node *at = value_of(n, "name");

	if (streq(p->name, "dns"))
		reject(r, at, "another name: dns is what ax's own name server is in");
	for (size_t i = 0; i < c->n_peers; i++)
		if (streq(c->peers[i].name, p->name))
			reject(r, at, "each peer once");
}

static void read_pools(struct reader *r, const struct node *n, void *to)
{
	struct config_peer *p = to;

	read_cluster_pools(r, n, &p->pool, &p->pool6);
}

static void read_peer(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"name", read_cluster_name, offsetof(struct config_peer, name)},
		{"etcd", read_etcd_urls, offsetof(struct config_peer, etcd)},
		{"ca", read_absolute_path, offsetof(struct config_peer, ca)},
		{"cert", read_absolute_path, offsetof(struct config_peer, cert)},
		{"key", read_absolute_path, offsetof(struct config_peer, key)},
		{"pool", read_pools, 0},
	};
	struct config_cluster *c = to;
	struct config_peer p = {0}, *more;
	size_t errors = r->errs->n;

	if (read_mapping(r, n, keys, ARRAY_SIZE(keys), &p) && errors == r->errs->n) {
		if (!p.name || !p.etcd.n || !p.pool.len)
			reject(r, n,
			       "name, etcd and pool: those that the other cluster has in its own "
			       "config");
		else
			check_name(r, n, c, &p);
		check_etcd_files(r, n, &p.etcd, p.ca, p.cert, p.key);
	}
	more = errors == r->errs->n ? reallocarray(c->peers, c->n_peers + 1, sizeof(*more)) : NULL;
	if (errors != r->errs->n || !have(r, more)) {
		peer_free(&p);
		return;
	}
	c->peers = more;
	more[c->n_peers++] = p;
}

void read_peers(struct reader *r, const struct node *n, void *to)
{
	read_list(r, n, "peers, each a mapping of name, etcd and pool", CONFIG_PEERS_MAX, read_peer,
		  to);
}

static void read_exported(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "an app's name");
	const char *want = text ? want_name(text) : NULL;
	struct config_cluster *c = to;

	if (want)
		reject(r, n, "%s", want);
	else if (text)
		done(r, strv_add(&c->export, text));
}

void read_export(struct reader *r, const struct node *n, void *to)
{
	struct config_cluster *c = to;
	const char *text;

	if (n->kind != NODE_SCALAR || node_is_null(n)) {
		read_list(r, n, "names of apps", CONFIG_EXPORT_MAX, read_exported, to);
		return;
	}
	text = scalar_text(r, n, "all, or a list of names of apps");
	if (text && !streq(text, "all"))
		reject(r, n, "all, or a list of names of apps");
	c->export_all = text != NULL;
}

void check_peers(struct reader *r, const struct node *n, const struct config_cluster *c)
{
	const struct node *at = value_of(n, "peers");

	for (size_t i = 0; i < c->n_peers; i++)
		if (c->name && streq(c->peers[i].name, c->name))
			reject(r, at, "clusters of other names than this one, %s", c->name);
	if (c->n_peers && c->routes != CLUSTER_ROUTES_DIRECT &&
	    c->routes != CLUSTER_ROUTES_WIREGUARD)
		reject(r, at,
		       "routes: direct or wireguard beside peers, as they have it: apps of other "
		       "clusters are reached by routes alone");
}

struct named_pool {
	const char *peer; /* NULL: it is this cluster's */
	const struct prefix *pool;
};

static void check_two(struct reader *r, const struct node *at, const struct named_pool *a,
		      const struct named_pool *b)
{
	char one[ADDR_STRLEN], other[ADDR_STRLEN];

	if (!a->pool->len || !b->pool->len || !prefix_overlaps(a->pool, b->pool))
		return;
	if (b->peer)
		reject(r, at, "pools that do not overlap: %s of the peer %s and %s of %s",
		       prefix_format(a->pool, one), a->peer, prefix_format(b->pool, other),
		       b->peer);
	else
		reject(r, at, "pools that do not overlap: %s of the peer %s and this cluster's %s",
		       prefix_format(a->pool, one), a->peer, prefix_format(b->pool, other));
}

/* Whoever has an address must be known by that. */
void check_peer_pools(struct reader *r, const struct node *root, const struct config *c)
{
	const struct node *at = value_of(value_of(root, "cluster"), "peers");
	const struct config_peer *peers = c->cluster.peers;

	for (size_t i = 0; i < c->cluster.n_peers; i++) {
		const char *name = peers[i].name;

		check_two(r, at, &(struct named_pool){name, &peers[i].pool},
			  &(struct named_pool){NULL, &c->pool4});
		check_two(r, at, &(struct named_pool){name, &peers[i].pool6},
			  &(struct named_pool){NULL, &c->pool6});
		for (size_t k = 0; k < i; k++) {
			check_two(r, at, &(struct named_pool){name, &peers[i].pool},
				  &(struct named_pool){peers[k].name, &peers[k].pool});
			check_two(r, at, &(struct named_pool){name, &peers[i].pool6},
				  &(struct named_pool){peers[k].name, &peers[k].pool6});
		}
	}
}
