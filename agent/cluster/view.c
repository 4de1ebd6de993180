/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients are shown of the cluster. */
#include <search.h>
#include <time.h>

#include "base/work.h"
#include "cluster/priv.h"
#include "control/control.h"
#include "registry/state.h"

static void put_text(json_t *j, const char *key, const char *text)
{
	if (text && *text)
		json_object_set_new(j, key, json_string(text));
}

/* --- status --- */

static void put_way_to_etcd(const struct cluster *c, json_t *j)
{
	json_t *urls = json_array();

	for (size_t i = 0; i < c->conf.etcd.n; i++)
		json_array_append_new(urls, json_string(c->conf.etcd.v[i]));
	json_object_set_new(j, "etcd", urls);
	put_text(j, "ca", c->conf.ca);
	put_text(j, "cert", c->conf.cert);
	put_text(j, "key", c->conf.key);
	if (c->clock_known)
		json_object_set_new(j, "clock", json_integer((json_int_t)c->clock_s));
}

static json_t *own_blocks(const struct cluster *c)
{
	json_t *list = json_array();
	char text[ADDR_STRLEN];

	for (size_t i = 0; i < c->n_blocks; i++)
		if (!c->blocks[i].lost)
			json_array_append_new(
				list, json_string(prefix_format(&c->blocks[i].prefix, text)));
	return list;
}

static void put_etcd(const struct cluster *c, json_t *j)
{
	struct etcd_state s = etcd_state(c->etcd);

	put_text(j, "state",
		 !s.connected	 ? "partitioned"
		 : c->registered ? "connected"
		 : c->wrong[0]	 ? "refused"
				 : "joining");
	put_text(j, "member", s.endpoint);
	json_object_set_new(j, "since", json_integer(time_unix_of_boot(s.since_boot_s)));
	put_text(j, "why", !s.connected ? s.error : c->wrong);
	put_text(j, "unwritten", c->unwritten);
	json_object_set_new(j, "revision", json_integer((json_int_t)s.revision));
}

/* Addresses of apps of this node that another node has, too. */
static json_t *conflicts(const struct cluster *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_addresses; i++)
		if (c->addresses[i].refused[0])
			json_array_append_new(list, json_string(c->addresses[i].refused));
	return list;
}

struct ways {
	const struct cluster *c;
	json_t *failed;
	int n; /* that there are */
};

static void add_way(const void *at, VISIT which, void *arg)
{
	const struct peer_block *b = *(struct peer_block *const *)at;
	struct ways *w = arg;
	char text[ADDR_STRLEN];

	if (which != postorder && which != leaf)
		return;
	w->n += b->way.ifindex != 0;
	if (b->way.why[0])
		json_array_append_new(
			w->failed,
			json_pack("{so ss ss}", "node",
				  json_sprintf("%s%s%s", b->rec.node, w->c->home ? "." : "",
					       w->c->home ? w->c->conf.name : ""),
				  "prefix", prefix_format(&b->rec.prefix, text), "why",
				  b->way.why));
}

static void put_ways(const struct cluster *c, json_t *j)
{
	struct ways w = {.c = c, .failed = json_array()};
	char text[RECORD_WG_KEY_MAX];

	twalk_r(c->peers.blocks, add_way, &w);
	json_object_set_new(j, "ways",
			    json_pack("{ss si so}", "kind",
				      tunnel_is_on(c)	   ? "wireguard"
				      : translate_is_on(c) ? "translate"
							   : "direct",
				      "routes", w.n, "failed", w.failed));
	if (c->tunnel_ifindex)
		json_object_set_new(j, "wireguard",
				    json_pack("{ss si si ss}", "device", c->a->inst->tunnel_device,
					      "port", (int)c->conf.wireguard_port, "mtu",
					      (int)c->tunnel_mtu, "key",
					      record_wg_key_text(c->tunnel_key, text)));
	put_text(j, "untold", c->untold);
}

static void put_config(const struct cluster *c, json_t *j)
{
	json_t *config = json_pack("{sI sI}", "revision", (json_int_t)c->config_has, "newest",
				   (json_int_t)c->config_now);

	if (!config)
		return;
	put_text(config, "why", c->config_why);
	if (c->storing)
		json_object_set_new(config, "storing", json_true());
	json_object_set_new(j, "config", config);
}

/* All that is known an agent before this one has known. */
static void put_memory(const struct cluster *c, json_t *j)
{
	json_object_set_new(j, "remembered",
			    json_pack("{sI sI sI}", "at", (json_int_t)cluster_unix_of(c->known_ns),
				      "nodes", (json_int_t)c->recalled_nodes, "apps",
				      (json_int_t)c->recalled_apps));
}

/* Whether another cluster's etcd is read. */
static const char *peer_state(const struct cluster *c)
{
	if (!c->etcd)
		return "failed";
	if (c->pool_wrong)
		return "refused";
	if (c->current)
		return "connected";
	return etcd_state(c->etcd).connected ? "reading" : "unreachable";
}

static void put_refused(const struct cluster *c, json_t *j)
{
	if (!c->peers.refused)
		return;
	json_object_set_new(j, "refused", json_integer((json_int_t)c->peers.refused));
	put_text(j, "refused_why", c->peers.why);
}

static void count_exported(const void *at, VISIT which, void *arg)
{
	const struct peer_app *app = *(struct peer_app *const *)at;
	json_int_t *n = arg;

	if (which == postorder || which == leaf)
		*n += app->rec.exported;
}

static json_t *peer_status(const struct cluster *c)
{
	const struct etcd_state s = c->etcd ? etcd_state(c->etcd) : (struct etcd_state){0};
	json_int_t exported = 0;
	char text[ADDR_STRLEN];
	json_t *j;

	twalk_r(c->peers.apps, count_exported, &exported);
	j = json_pack("{ss ss ss si si sI}", "name", c->conf.name, "state", peer_state(c), "pool",
		      prefix_format(&c->conf.pool, text), "nodes", (int)c->peers.n_nodes, "apps",
		      (int)c->peers.n_apps, "exported", exported);
	if (!j)
		return NULL;
	if (c->conf.pool6.len)
		put_text(j, "pool6", prefix_format(&c->conf.pool6, text));
	put_text(j, "member", s.endpoint);
	if (!c->current)
		put_text(j, "why", !c->etcd ? c->failed : !s.connected ? s.error : c->not_read);
	if (!c->current && c->known_ns)
		json_object_set_new(j, "known",
				    json_integer((json_int_t)cluster_unix_of(c->known_ns)));
	put_ways(c, j);
	put_refused(c, j);
	return j;
}

json_t *cluster_status(const struct agent *a)
{
	const struct cluster *c = a->cluster;
	char lease[24];
	json_t *j;

	if (!c)
		return NULL;
	j = json_pack("{ss ss so so sb si si sI sI}", "name", c->conf.name, "node", c->node,
		      "blocks", own_blocks(c), "conflicts", conflicts(c), "current", c->current,
		      "nodes", (int)c->peers.n_nodes, "apps", (int)c->peers.n_apps, "writes",
		      (json_int_t)c->writes, "reads", (json_int_t)c->reads);
	if (!j)
		return NULL;
	if (!addr_is_zero(&c->address))
		json_object_set_new(j, "address", json_addr(&c->address));
	if (!addr_is_zero(&c->address6))
		json_object_set_new(j, "address6", json_addr(&c->address6));
	put_text(j, "no_address6", c->no_address6);
	if (c->lease_id) { /* as etcdctl shows it */
		snprintf(lease, sizeof(lease), "%llx", (unsigned long long)c->lease_id);
		put_text(j, "lease", lease);
	}
	put_way_to_etcd(c, j);
	if (c->etcd) {
		put_etcd(c, j);
	} else {
		put_text(j, "state", "failed");
		put_text(j, "why", c->failed);
	}
	if (c->by_memory)
		put_memory(c, j);
	if (c->conf.routes != CLUSTER_ROUTES_NONE)
		put_ways(c, j);
	if (c->config_now || c->config_has)
		put_config(c, j);
	put_refused(c, j);
	if (c->next)
		json_object_set_new(j, "peers", json_array());
	for (const struct cluster *v = c->next; v; v = v->next)
		json_array_append_new(json_object_get(j, "peers"), peer_status(v));
	return j;
}

/* --- nodes --- */

/* Away: its lease has ended; unknown: nobody can tell now. */
static const char *state_of(const struct cluster *c, const struct peer_node *n)
{
	if (streq(n->rec.name, c->node))
		return c->registered && c->current ? "up" : c->wrong[0] ? "refused" : "partitioned";
	if (!n->up)
		return "away";
	return c->current && !n->missing_ns ? "up" : "unknown";
}

struct list {
	const struct cluster *c;
	json_t *nodes;
};

/* Its key and port as its record says them; as a peer of this node when it shook hands last (UNIX
 * time, 0: never), and bytes. */
static void put_wireguard(const struct cluster *c, const struct peer_node *n, json_t *j)
{
	char text[RECORD_WG_KEY_MAX];
	json_t *w;

	if (!n->rec.has_wireguard)
		return;
	w = json_pack("{ss si}", "key", record_wg_key_text(n->rec.wireguard_key, text), "port",
		      (int)n->rec.wireguard_port);
	if (w && c->tunnel_ifindex && n->told_port && !n->no_peer[0]) {
		json_object_set_new(w, "handshake", json_integer(n->handshake_s));
		json_object_set_new(w, "received", json_integer((json_int_t)n->rx));
		json_object_set_new(w, "sent", json_integer((json_int_t)n->tx));
	}
	json_object_set_new(j, "wireguard", w);
}

static void add_node(const void *at, VISIT which, void *arg)
{
	const struct peer_node *n = *(struct peer_node *const *)at;
	struct list *l = arg;
	json_t *j;

	if ((which != postorder && which != leaf) || (!n->up && !n->n_blocks && !n->seen))
		return;
	j = json_pack("{ss ss sI so sb}", "name", n->rec.name, "state", state_of(l->c, n), "apps",
		      (json_int_t)n->n_apps, "blocks", json_array(), "self",
		      streq(n->rec.name, l->c->node));
	if (!j)
		return;
	if (!addr_is_zero(&n->rec.address))
		json_object_set_new(j, "address", json_addr(&n->rec.address));
	if (!addr_is_zero(&n->rec.address6))
		json_object_set_new(j, "address6", json_addr(&n->rec.address6));
	if (n->rec.since)
		json_object_set_new(j, "since", json_integer((json_int_t)n->rec.since));
	if (n->seen || n->at) /* (whoever is known by memory was seen then) */
		json_object_set_new(j, "seen",
				    json_integer((json_int_t)(n->seen ? n->seen : n->at)));
	if (n->at)
		json_object_set_new(j, "remembered", json_integer((json_int_t)n->at));
	put_text(j, "version", n->rec.version);
	if (n->rec.config)
		json_object_set_new(j, "config", json_integer((json_int_t)n->rec.config));
	put_text(j, "config_why", n->rec.config_why);
	if (n->rec.clock_known)
		json_object_set_new(j, "clock", json_integer((json_int_t)n->rec.clock_s));
	put_wireguard(l->c, n, j);
	json_array_append_new(l->nodes, j);
}

/* Nodes come in the order of their names. */
static json_t *find_node(json_t *nodes, const char *name)
{
	size_t low = 0, high = json_array_size(nodes);

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		json_t *one = json_array_get(nodes, mid);
		int r = strcmp(json_string_value(json_object_get(one, "name")), name);

		if (!r)
			return one;
		if (r < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static void add_block(const void *at, VISIT which, void *arg)
{
	const struct peer_block *b = *(struct peer_block *const *)at;
	struct list *l = arg;
	char text[ADDR_STRLEN];
	json_t *node, *way;

	if (which != postorder && which != leaf)
		return;
	node = find_node(l->nodes, b->node->rec.name);
	if (!node)
		return;
	json_array_append_new(json_object_get(node, "blocks"),
			      json_string(prefix_format(&b->rec.prefix, text)));
	if (!b->way.ifindex && !b->way.why[0])
		return;
	way = json_pack("{ss sb}", "prefix", text, "there", b->way.ifindex != 0);
	put_text(way, "why", b->way.why);
	if (!json_object_get(node, "ways"))
		json_object_set_new(node, "ways", json_array());
	json_array_append_new(json_object_get(node, "ways"), way);
}

/* As they are called here. */
static void name_foreign(const struct cluster *c, json_t *nodes)
{
	json_t *node;
	size_t i;

	json_array_foreach (nodes, i, node) {
		const char *name = json_string_value(json_object_get(node, "name"));

		json_object_set_new(node, "name", json_sprintf("%s.%s", name, c->conf.name));
		put_text(node, "cluster", c->conf.name);
	}
}

json_t *cluster_nodes(const struct agent *a)
{
	json_t *all = json_array();

	if (a->cluster)
		tunnel_stats(a->cluster);
	for (const struct cluster *c = a->cluster; c && all; c = c->next) {
		struct list l = {.c = c, .nodes = json_array()};

		twalk_r(c->peers.nodes, add_node, &l);
		twalk_r(c->peers.blocks, add_block, &l);
		if (c->home)
			name_foreign(c, l.nodes);
		json_array_extend(all, l.nodes);
		json_decref(l.nodes);
	}
	return all;
}

/* --- apps --- */

struct snapshot {
	const struct cluster *c;
	struct peer_app **v;
	size_t n;
};

static void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->n; i++)
		peer_app_put(s->v[i]);
	free(s->v);
}

static void snapshot_add(const void *at, VISIT which, void *arg)
{
	struct peer_app *app = *(struct peer_app *const *)at;
	struct snapshot *s = arg;

	if ((which != postorder && which != leaf) ||
	    (app->node->of->home ? !app->rec.exported : streq(app->rec.node, s->c->node)))
		return;
	app->refs++;
	s->v[s->n++] = app;
}

static json_t *ports_view(const struct record_app *rec)
{
	json_t *list = json_array();
	char text[16];

	for (size_t i = 0; i < rec->n_ports; i++) {
		snprintf(text, sizeof(text), "%u/%s", rec->ports[i].port,
			 rec->ports[i].proto == IPPROTO_UDP ? "udp" : "tcp");
		json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *app_view(const struct peer_app *app, const char *node_state)
{
	const struct record_app *rec = &app->rec;
	json_t *j = json_pack(
		"{ss ss sI ss ss ss sI so}", "node", app->node_name ? app->node_name : rec->node,
		"name", app->name ? app->name : rec->name, "id", (json_int_t)rec->id, "net",
		rec->host ? "host" : "private", "state",
		streq(node_state, "up") ? "running" : "unknown", "labels", rec->labels, "since",
		(json_int_t)rec->since, "ports", ports_view(rec));

	if (j && !addr_is_zero(&rec->ip4))
		json_object_set_new(j, "ip4", json_addr(&rec->ip4));
	if (j && !addr_is_zero(&rec->ip6))
		json_object_set_new(j, "ip6", json_addr(&rec->ip6));
	if (app->node->of->home)
		put_text(j, "cluster", app->node->of->conf.name);
	if (j && app->at)
		json_object_set_new(j, "remembered", json_integer((json_int_t)app->at));
	return j;
}

static void put_app(json_t *list, const struct peer_app *app)
{
	const struct peer_node *node = app->node;

	json_array_append_new(list, app_view(app, state_of(node->of, node)));
}

static json_t *server_view(const struct peer_app *app, const struct other_port *p,
			   const struct ax_addr *addr)
{
	const struct record_app *rec = &app->rec;

	return json_pack("{ss ss sI ss so si}", "node", app->node_name ? app->node_name : rec->node,
			 "app", app->name ? app->name : rec->name, "app_id", (json_int_t)rec->id,
			 "proto", p->proto == IPPROTO_UDP ? "udp" : "tcp", "address",
			 json_addr(addr), "port", (int)p->port);
}

/* Where it listens, as far as its node has told. */
static void put_servers(json_t *list, const struct peer_app *app)
{
	const struct ax_addr *ip4 = &app->rec.ip4, *ip6 = &app->rec.ip6;

	for (size_t i = 0; i < app->rec.n_ports; i++) {
		const struct other_port *p = &app->rec.ports[i];

		if (p->only != 6 && !addr_is_zero(ip4))
			json_array_append_new(list, server_view(app, p, ip4));
		if (p->only != 4 && !addr_is_zero(ip6))
			json_array_append_new(list, server_view(app, p, ip6));
	}
}

static int put_all(struct agent *a, json_t *list,
		   void (*put)(json_t *list, const struct peer_app *app))
{
	CLEANUP(snapshot_free) struct snapshot s = {.c = a->cluster};
	size_t n = 1;

	if (!s.c)
		return 0;
	for (const struct cluster *c = s.c; c; c = c->next)
		n += c->peers.n_apps;
	s.v = calloc(n, sizeof(*s.v));
	if (!s.v)
		return -ENOMEM;
	for (const struct cluster *c = s.c; c; c = c->next)
		twalk_r(c->peers.apps, snapshot_add, &s);
	for (size_t i = 0; i < s.n; i++) {
		if (s.v[i]->gone)
			continue;
		put(list, s.v[i]);
		work_pause(a->reads);
	}
	return 0;
}

int cluster_put_apps(struct agent *a, json_t *list)
{
	return put_all(a, list, put_app);
}

int cluster_put_servers(struct agent *a, json_t *list)
{
	return put_all(a, list, put_servers);
}
