/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This node's apps in etcd: what they are is compared with what was written, and only what differs
 * is sent, some of it at a time; the next part when etcd has answered. */
#include <arpa/inet.h>

#include "base/labels.h"
#include "base/log.h"
#include "cluster/priv.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/app_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/members.h"

#define BATCH 100 /* of the 128 that etcd takes */
/* An app that listens here and there all the time is written twice a second, as it is then; after
 * some quiet so many times at once. */
#define WRITE_MS    500
#define WRITES	    4
#define SERVERS_MAX 65536

/* --- who listens where --- */

struct server {
	uint32_t app;
	struct other_port port;
};

struct servers {
	struct agent *a;
	struct server *v;
	size_t n, room;
};

static int note_server(void *arg, const struct ax_endpoint *ep, const struct ax_server *s)
{
	struct servers *l = arg;
	const struct vip *v = vip_find(l->a, &ep->addr);

	if (!v || !v->app || v->app->id != s->app || !ep->port_be)
		return 0;
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		struct server *more =
			room > SERVERS_MAX ? NULL : reallocarray(l->v, room, sizeof(*more));

		if (!more)
			return 1;
		l->v = more;
		l->room = room;
	}
	l->v[l->n++] = (struct server){.app = s->app,
				       .port = {.port = ntohs(ep->port_be),
						.proto = (uint8_t)ep->proto,
						.only = addr_is_v4(&ep->addr) ? 4 : 6}};
	return 0;
}

static int server_cmp(const void *x, const void *y)
{
	const struct server *a = x, *b = y;

	if (a->app != b->app)
		return a->app < b->app ? -1 : 1;
	if (a->port.port != b->port.port)
		return a->port.port < b->port.port ? -1 : 1;
	return (int)a->port.proto - (int)b->port.proto;
}

static int by_app(const void *key, const void *one)
{
	uint32_t id = *(const uint32_t *)key, app = ((const struct server *)one)->app;

	return id < app ? -1 : id > app;
}

/* Those of one app, each once; which family they are of is said if it has both. Returns how many.
 */
static size_t ports_of(const struct servers *l, uint32_t id, bool both, struct other_port *ret)
{
	const struct server *s = l->n ? bsearch(&id, l->v, l->n, sizeof(*l->v), by_app) : NULL;
	size_t n = 0;

	while (s && s > l->v && s[-1].app == id)
		s--;
	for (; s && s < l->v + l->n && s->app == id && n < RECORD_PORTS_MAX; s++)
		if (!n || ret[n - 1].port != s->port.port || ret[n - 1].proto != s->port.proto)
			ret[n++] = s->port;
		else if (ret[n - 1].only != s->port.only)
			ret[n - 1].only = 0;
	for (size_t i = 0; i < n && !both; i++)
		ret[i].only = 0;
	return n;
}

/* --- what is to be --- */

static char *text_of(struct cluster *c, const struct app *app, const struct servers *l,
		     const struct serving_list *serving)
{
	struct other_port ports[RECORD_PORTS_MAX];
	struct other_state states[RECORD_STATES_MAX];
	autofree char *labels = labels_format(&app->spec.labels);
	struct record_app rec = {.id = app->id,
				 .ip4 = app->vip4,
				 .ip6 = app->vip6,
				 .host = app->spec.net == NET_HOST,
				 .since = time_unix_of_boot(app->since_boot),
				 .labels = labels,
				 .ports = ports,
				 .states = states,
				 .stopping = member_stops(c->a, app),
				 .exported = config_cluster_exports(&c->conf, app->spec.name)};

	if (!labels)
		return NULL;
	if (strlen(labels) > RECORD_LABELS_MAX)
		labels[0] = 0;
	rec.n_ports =
		ports_of(l, app->id, !addr_is_zero(&rec.ip4) && !addr_is_zero(&rec.ip6), ports);
	rec.n_states = serving_of(serving, app->id, states);
	for (size_t i = 0; translate_is_on(c) && i < rec.n_ports; i++) {
		if (ports[i].proto != IPPROTO_TCP)
			continue;
		if (!addr_is_zero(&rec.ip4) && ports[i].only != 6)
			ports[i].via = translate_port(c, &rec.ip4, ports[i].port);
		if (cluster_contains(c, &rec.ip6) && ports[i].only != 4)
			ports[i].via6 = translate_port(c, &rec.ip6, ports[i].port);
	}
	snprintf(rec.node, sizeof(rec.node), "%s", c->node);
	snprintf(rec.name, sizeof(rec.name), "%s", app->spec.name);
	return record_app_text(&rec);
}

static int own_cmp(const void *x, const void *y)
{
	uint32_t a = ((const struct own_app *)x)->id, b = ((const struct own_app *)y)->id;

	return (a > b) - (a < b);
}

static struct own_app *find(const struct cluster *c, uint32_t id)
{
	const struct own_app key = {.id = id};

	return c->n_apps ? bsearch(&key, c->apps, c->n_apps, sizeof(key), own_cmp) : NULL;
}

/* A new one, to its place. Ids grow: it is mostly the last. NULL: out of memory. */
static struct own_app *add(struct cluster *c, uint32_t id)
{
	struct own_app *more = reallocarray(c->apps, c->n_apps + 1, sizeof(*more));
	char *text = strdup("");
	size_t at;

	if (more)
		c->apps = more;
	if (!more || !text) {
		free(text);
		return NULL;
	}
	for (at = c->n_apps; at && more[at - 1].id > id; at--)
		more[at] = more[at - 1];
	more[at] = (struct own_app){.id = id, .text = text};
	c->n_apps++;
	return &more[at];
}

void publish_known(struct cluster *c, uint32_t id)
{
	if (find(c, id) || !add(c, id))
		return;
	cluster_apps_changed(c->a);
}

void publish_lost(struct cluster *c, uint32_t id)
{
	struct own_app *own = find(c, id);

	if (!own || own->sent)
		return;
	own->text[0] = 0;
	cluster_apps_changed(c->a);
}

void publish_anew(struct cluster *c)
{
	for (size_t i = 0; i < c->n_apps; i++)
		c->apps[i].text[0] = 0;
	cluster_apps_changed(c->a);
}

void publish_free(struct cluster *c)
{
	for (size_t i = 0; i < c->n_apps; i++) {
		free(c->apps[i].text);
		free(c->apps[i].next);
	}
	free(c->apps);
	c->apps = NULL;
	c->n_apps = 0;
}

static void look(struct cluster *c)
{
	struct servers l = {.a = c->a};
	struct serving_list serving = {0};
	uint64_t began = time_mono_ns();

	/* from here on it is told of what comes next */
	datapath_servers_watch(c->a->dp, true);
	translate_look(c);
	datapath_servers_each(c->a->dp, note_server, &l);
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), server_cmp);
	if (serving_read(c->a, &serving))
		cluster_at(c, &c->publish_at_ns, CLUSTER_RETRY_MS);
	for (size_t i = 0; i < c->n_apps; i++) {
		free(c->apps[i].next);
		c->apps[i].next = NULL;
	}
	for (const struct app *app = c->a->apps; app; app = app->next) {
		struct own_app *own = find(c, app->id);

		own = own ? own : add(c, app->id);
		if (own)
			own->next = text_of(c, app, &l, &serving);
	}
	free(serving.v);
	free(l.v);
	c->published_ns = time_mono_ns();
	c->look_took_ns = c->published_ns - began;
	c->dirty = false;
}

/* --- what is sent --- */

static bool is_same(const struct own_app *own)
{
	return own->next && streq(own->next, own->text);
}

/* When it may be written: an app's end is, and what etcd does not know yet, whatever it costs. */
static uint64_t not_before(const struct own_app *own)
{
	const uint64_t ahead = (WRITES - 1) * WRITE_MS * NS_PER_MS;

	return own->next && own->text[0] && own->paid_ns > ahead ? own->paid_ns - ahead : 0;
}

static void pay(struct own_app *own, uint64_t now_ns)
{
	own->paid_ns = (own->paid_ns > now_ns ? own->paid_ns : now_ns) + WRITE_MS * NS_PER_MS;
}

static void drop(struct cluster *c, size_t i)
{
	free(c->apps[i].text);
	free(c->apps[i].next);
	memmove(&c->apps[i], &c->apps[i + 1], (c->n_apps - i - 1) * sizeof(*c->apps));
	c->n_apps--;
}

static void written(struct cluster *c)
{
	uint64_t now = time_mono_ns();

	for (size_t i = c->n_apps; i-- > 0;) {
		struct own_app *own = &c->apps[i];

		if (!own->sent)
			continue;
		own->sent = false;
		if (!own->next) {
			drop(c, i);
			continue;
		}
		pay(own, now);
		c->unwritten[0] =
			0; /* (an end alone says nothing of what else there is room for) */
		free(own->text);
		own->text = own->next;
		own->next = strdup(own->text);
	}
	c->writes++;
}

static void not_written(struct cluster *c, int err, const char *error)
{
	char text[sizeof(c->unwritten)];

	snprintf(text, sizeof(text), "%.200s%s", error,
		 err == -ENOSPC ? ": make room there (etcdctl compact, defrag, alarm disarm)" : "");
	if (!streq(text, c->unwritten))
		log_warn("the cluster %s does not take this node's apps: %s", c->conf.name, text);
	memcpy(c->unwritten, text, sizeof(text));
}

static void on_written(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	c->publishing = false;
	if (!err && answer->succeeded) {
		written(c);
		publish(c);
		return;
	}
	for (size_t i = 0; i < c->n_apps; i++)
		c->apps[i].sent = false;
	if (!err) {
		node_unregistered(c); /* somebody else has its name, or its lease has ended */
		return;
	}
	if (err != -EHOSTUNREACH && err != -ETIMEDOUT)
		not_written(c, err, error);
	cluster_at(c, &c->publish_at_ns, CLUSTER_RETRY_MS / 3);
}

/* What is to be written now, BATCH of it at most; ends: of apps that have ended alone. How much. */
static size_t choose(struct cluster *c, bool ends, char (*keys)[RECORD_KEY_MAX],
		     struct etcd_op ops[BATCH])
{
	uint64_t now = time_mono_ns(), at;
	size_t n = 0;

	for (size_t i = 0; i < c->n_apps && n < BATCH; i++) {
		struct own_app *own = &c->apps[i];

		if (is_same(own) || (ends && own->next))
			continue;
		at = not_before(own);
		if (at > now) {
			cluster_at(c, &c->send_at_ns, (at - now) / NS_PER_MS + 1);
			continue;
		}
		own->sent = true;
		record_app_key(c->conf.name, c->node, own->id, keys[n]);
		ops[n] = own->next
				 ? (struct etcd_op){.kind = ETCD_PUT,
						    .key = bytes_of(keys[n]),
						    .value = bytes_of(own->next),
						    .lease = c->lease_id}
				 : (struct etcd_op){.kind = ETCD_DELETE, .key = bytes_of(keys[n])};
		n++;
	}
	return n;
}

static int send_batch(struct cluster *c, char (*keys)[RECORD_KEY_MAX])
{
	struct etcd_op ops[BATCH];
	char node[RECORD_KEY_MAX];
	const struct etcd_compare mine = {
		.key = bytes_of(record_node_key(c->conf.name, c->node, node)),
		.target = ETCD_LEASE,
		.number = c->lease_id};
	struct etcd_txn t = {.compares = &mine, .n_compares = 1, .success = ops, .twice = true};

	/* an etcd that has no room takes ends, if there is nothing else with them */
	if (c->unwritten[0])
		t.n_success = choose(c, true, keys, ops);
	if (!t.n_success)
		t.n_success = choose(c, false, keys, ops);
	if (!t.n_success) {
		c->unwritten[0] = 0;
		return 0;
	}
	c->publishing = true;
	return etcd_txn(c->etcd, &t, on_written, c, NULL);
}

void publish(struct cluster *c)
{
	autofree char(*keys)[RECORD_KEY_MAX] = NULL;

	/* (what was read says which of them are there from an agent before this one) */
	if (!c->registered || !c->was_read || c->publishing)
		return;
	if (c->dirty)
		look(c);
	keys = calloc(BATCH, sizeof(*keys));
	if (keys && !send_batch(c, keys))
		return;
	c->publishing = false;
	for (size_t i = 0; i < c->n_apps; i++)
		c->apps[i].sent = false;
	cluster_at(c, &c->publish_at_ns, CLUSTER_RETRY_MS / 3);
}
