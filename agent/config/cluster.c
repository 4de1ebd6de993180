// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section cluster:. */
#include "base/values.h"
#include "config/read.h"

#include <ctype.h>

/* --- its life --- */

void config_cluster_free(struct config_cluster *c)
{
	free(c->name);
	strv_free(&c->etcd);
	free(c->ca);
	free(c->cert);
	free(c->key);
	free(c->node);
	config_peers_free(c);
	strv_free(&c->export);
	*c = (struct config_cluster){0};
}

int config_cluster_copy(const struct config_cluster *from, struct config_cluster *to)
{
	const char *const text[] = {from->name, from->ca, from->cert, from->key, from->node};
	struct config_cluster copy = {.address = from->address,
				      .address6 = from->address6,
				      .pool = from->pool,
				      .pool6 = from->pool6,
				      .routes = from->routes,
				      .wireguard_port = from->wireguard_port,
				      .dead_after_ms = from->dead_after_ms,
				      .prefer_local = from->prefer_local,
				      .export_all = from->export_all};
	char **const into[] = {&copy.name, &copy.ca, &copy.cert, &copy.key, &copy.node};
	int r = strv_copy(&from->etcd, &copy.etcd);

	for (size_t i = 0; !r && i < ARRAY_SIZE(into); i++) {
		*into[i] = text[i] ? strdup(text[i]) : NULL;
		r = text[i] && !*into[i] ? -ENOMEM : 0;
	}
	r = r ? r : strv_copy(&from->export, &copy.export);
	r = r ? r : config_peers_copy(from, &copy);
	if (r)
		config_cluster_free(&copy);
	else
		*to = copy;
	return r;
}

static bool text_eq(const char *a, const char *b)
{
	return a == b || (a && b && streq(a, b));
}

bool config_cluster_same_node(const struct config_cluster *a, const struct config_cluster *b)
{
	return text_eq(a->name, b->name) && text_eq(a->node, b->node) &&
	       addr_eq(&a->address, &b->address) && addr_eq(&a->address6, &b->address6) &&
	       prefix_eq(&a->pool, &b->pool) && prefix_eq(&a->pool6, &b->pool6) &&
	       a->routes == b->routes && a->wireguard_port == b->wireguard_port;
}

bool config_cluster_eq(const struct config_cluster *a, const struct config_cluster *b)
{
	return config_cluster_same_node(a, b) && strv_eq(&a->etcd, &b->etcd) &&
	       a->dead_after_ms == b->dead_after_ms && a->prefer_local == b->prefer_local &&
	       text_eq(a->ca, b->ca) && text_eq(a->cert, b->cert) && text_eq(a->key, b->key) &&
	       a->export_all == b->export_all && strv_eq(&a->export, &b->export) &&
	       config_peers_eq(a, b);
}

/* --- the file --- */

void read_cluster_name(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n,
				       "a name: at most 63 lower-case letters, digits and "
				       "hyphens");
	const char *want = text ? want_name(text) : NULL;
	char **name = to;

	if (want)
		reject(r, n, "%s", want);
	if (!text || want)
		return;
	free(*name);
	*name = strdup(text);
	have(r, *name);
}

/* HOST or [ADDRESS], as far as a URL goes: whether it is there shows when it is asked. */
static bool is_host(const char *s, size_t len)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "-.";
	char text[256];
	struct ax_addr a;

	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = 0;
	if (text[0] == '[')
		return text[len - 1] == ']' && addr_parse(text, &a) == 0;
	return strspn(text, name) == len && text[0] != '-' && text[0] != '.';
}

static bool is_url(const char *s)
{
	size_t scheme = starts_with(s, "http://") ? 7 : starts_with(s, "https://") ? 8 : 0;
	const char *host = s + scheme, *end = host;

	if (!scheme)
		return false;
	end += *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	if ((size_t)(end - host) > strlen(host) || !is_host(host, (size_t)(end - host)))
		return false;
	return !*end || (*end == ':' && port_parse(end + 1) > 0);
}

static void read_url(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a URL such as https://10.0.0.5:2379, without a path";
	const char *text = scalar_text(r, n, what);
	struct strv *list = to;

	if (!text)
		return;
	if (!is_url(text)) {
		reject(r, n, "%s", what);
		return;
	}
	for (size_t i = 0; i < list->n; i++) {
		if (streq(list->v[i], text)) {
			reject(r, n, "each member of etcd once");
			return;
		}
	}
	done(r, strv_add(list, text));
}

void read_etcd_urls(struct reader *r, const struct node *n, void *to)
{
	read_list(r, n, "URLs of etcd's members", CONFIG_ETCD_MAX, read_url, to);
}

static void read_node_address(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "this node's address, by which the others reach it";
	const char *text = scalar_text(r, n, what), *want;
	struct ax_addr a;

	if (!text)
		return;
	want = addr_parse(text, &a) < 0 ? what : want_unicast(&a);
	if (want)
		reject(r, n, "%s", want);
	else
		*(struct ax_addr *)to = a;
}

static void read_node_address6(struct reader *r, const struct node *n, void *to)
{
	struct ax_addr a = {0};

	read_node_address(r, n, &a);
	if (!addr_is_zero(&a) && addr_is_v4(&a))
		reject(r, n, "this node's IPv6 address: IPv4's is cluster.node.address");
	else
		*(struct ax_addr *)to = a;
}

static void read_node(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"name", read_cluster_name, offsetof(struct config_cluster, node)},
		{"address", read_node_address, offsetof(struct config_cluster, address)},
		{"address6", read_node_address6, offsetof(struct config_cluster, address6)},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
}

static void read_pool4(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "an IPv4 prefix of a length of 12 to 24, such as 10.217.0.0/16";
	const char *text = scalar_text(r, n, what);
	char right[ADDR_STRLEN];
	struct prefix p;
	int code;

	if (!text)
		return;
	code = prefix_parse(text, &p);
	if (code == -ERANGE && prefix_without_host_bits(text, &p) == 0)
		reject(r, n, "a prefix without host bits: %s", prefix_format(&p, right));
	else if (code || strchr(text, ':') || p.len < 96 + CONFIG_CLUSTER_POOL_LEN_MIN ||
		 p.len > 96 + CONFIG_CLUSTER_POOL_LEN_MAX || want_unicast(&p.addr))
		reject(r, n, "%s", what);
	else
		*(struct prefix *)to = p;
}

void read_cluster_pools(struct reader *r, const struct node *n, struct prefix *v4,
			struct prefix *v6)
{
	static const struct key keys[] = {
		{"ipv4", read_pool4, 0},
		{"ipv6", read_pool6, sizeof(struct prefix)},
	};
	struct prefix both[2] = {*v4, *v6};

	if (n->kind != NODE_MAPPING)
		read_pool4(r, n, &both[0]);
	else
		read_mapping(r, n, keys, ARRAY_SIZE(keys), both);
	*v4 = both[0];
	*v6 = both[1];
}

static void read_pools(struct reader *r, const struct node *n, void *to)
{
	struct config_cluster *c = to;

	read_cluster_pools(r, n, &c->pool, &c->pool6);
}

static void read_routes(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "none, direct, translate or wireguard";
	enum cluster_routes *routes = to;
	const char *text = scalar_text(r, n, what);

	if (!text)
		return;
	if (streq(text, "none"))
		*routes = CLUSTER_ROUTES_NONE;
	else if (streq(text, "direct"))
		*routes = CLUSTER_ROUTES_DIRECT;
	else if (streq(text, "translate"))
		*routes = CLUSTER_ROUTES_TRANSLATE;
	else if (streq(text, "wireguard"))
		*routes = CLUSTER_ROUTES_WIREGUARD;
	else
		reject(r, n, "%s", what);
}

static void read_udp_port(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "a UDP port of this node, 1 to 65535";
	const char *text = scalar_text(r, n, what);
	int port = text ? port_parse(text) : 0;

	if (text && port <= 0)
		reject(r, n, "%s", what);
	else if (text)
		*(uint16_t *)to = (uint16_t)port;
}

static void read_wireguard(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"port", read_udp_port, offsetof(struct config_cluster, wireguard_port)},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
}

static void read_prefer(struct reader *r, const struct node *n, void *to)
{
	static const char what[] = "any or local";
	const char *text = scalar_text(r, n, what);

	if (!text)
		return;
	if (!streq(text, "any") && !streq(text, "local"))
		reject(r, n, "%s", what);
	*(bool *)to = streq(text, "local");
}

void check_etcd_files(struct reader *r, const struct node *n, const struct strv *etcd,
		      const char *ca, const char *cert, const char *key)
{
	if (!cert != !key)
		reject(r, n, "cert and key together, or none of the two");
	for (size_t i = 0; (ca || cert) && i < etcd->n; i++) {
		if (starts_with(etcd->v[i], "https:"))
			continue;
		reject(r, n, "only https URLs where there is a ca or a cert");
		return;
	}
}

/* What holds of the whole section. */
static void check_cluster(struct reader *r, const struct node *n, const struct config_cluster *c)
{

	if (!c->name)
		reject(r, n, "the cluster's name, the same on all of its nodes");
	if (!c->etcd.n)
		reject(r, n, "etcd: the URLs of etcd's members");
	if ((c->routes == CLUSTER_ROUTES_DIRECT || c->routes == CLUSTER_ROUTES_TRANSLATE) &&
	    !addr_is_zero(&c->address) && !addr_is_v4(&c->address))
		reject(r, n, "an IPv4 address of the node where routes are direct or translate");
	check_etcd_files(r, n, &c->etcd, c->ca, c->cert, c->key);
	check_peers(r, n, c);
}

void read_cluster(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"name", read_cluster_name, offsetof(struct config_cluster, name)},
		{"etcd", read_etcd_urls, offsetof(struct config_cluster, etcd)},
		{"ca", read_absolute_path, offsetof(struct config_cluster, ca)},
		{"cert", read_absolute_path, offsetof(struct config_cluster, cert)},
		{"key", read_absolute_path, offsetof(struct config_cluster, key)},
		{"node", read_node, 0},
		{"pool", read_pools, 0},
		{"routes", read_routes, offsetof(struct config_cluster, routes)},
		{"wireguard", read_wireguard, 0},
		{"dead-after", read_duration_ms, offsetof(struct config_cluster, dead_after_ms)},
		{"prefer", read_prefer, offsetof(struct config_cluster, prefer_local)},
		{"export", read_export, 0},
		{"peers", read_peers, 0},
	};
	struct config *c = to;
	size_t errors = r->errs->n;

	/* (nothing behind the key is no cluster, as for other sections) */
	if (read_mapping(r, n, keys, ARRAY_SIZE(keys), &c->cluster) && n->n && errors == r->errs->n)
		check_cluster(r, n, &c->cluster);
}

/* The cluster's pool takes the place of the node's own, which may say the same. */
static void finish_pool(struct reader *r, const struct node *root, const struct prefix *pool,
			const struct prefix *usual, struct prefix *own, const char *key)
{
	if (pool->len && own->len && !prefix_eq(own, usual) && !prefix_eq(own, pool))
		reject(r, root, "cluster.pool or %s, and not two pools", key);
	if (pool->len)
		*own = *pool;
}

void finish_cluster(struct reader *r, const struct node *root, struct config *c)
{
	static const struct prefix none;
	struct prefix usual;

	if (!c->cluster.name)
		return;
	if (!c->cluster.dead_after_ms)
		c->cluster.dead_after_ms = CONFIG_DEAD_AFTER_MS;
	if (!c->cluster.wireguard_port)
		c->cluster.wireguard_port = CONFIG_WIREGUARD_PORT;
	prefix_parse(CONFIG_POOL4, &usual);
	if (!c->cluster.pool.len) {
		c->cluster.pool = c->pool4;
		if (c->pool4.len < 96 + CONFIG_CLUSTER_POOL_LEN_MIN ||
		    c->pool4.len > 96 + CONFIG_CLUSTER_POOL_LEN_MAX)
			reject(r, root,
			       "agent.pool.ipv4 of a length of 12 to 24, or cluster.pool: "
			       "the nodes share it");
	}
	finish_pool(r, root, &c->cluster.pool, &usual, &c->pool4, "agent.pool.ipv4");
	finish_pool(r, root, &c->cluster.pool6, &none, &c->pool6, "agent.pool.ipv6");
	check_peer_pools(r, root, c);
}
