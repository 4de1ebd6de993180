/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists of `ax get` and `ax status`; control.h describes their fields. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <time.h>

#include "daemon/views.h"
#include "daemon/names_zone.h"
#include "allot/pool.h"
#include "base/address.h"
#include "machine/cgroup.h"
#include "base/labels.h"
#include "base/strv.h"
#include "base/work.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/spec.h"
#include "config/defaults.h"
#include "config/service_words.h"
#include "config/strategy.h"
#include "control/control.h"
#include "daemon/request_shared.h"
#include "datapath/datapath.h"
#include "dns/dns.h"
#include "registry/app_table.h"
#include "registry/parties.h"
#include "registry/declared.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "sections/added_services.h"
#include "sections/probes_section.h"
#include "sections/triggers.h"
#include "sections/host_resolver.h"
#include "sections/xdp_section.h"
#include "services/affinity.h"
#include "services/drain.h"
#include "services/members.h"
#include "services/ramp.h"
#include "splice/splice.h"
#include "datapath/splice.h"

static void put_addr(json_t *j, const char *key, const struct ax_addr *addr)
{
	if (!addr_is_zero(addr))
		json_object_set_new(j, key, json_addr(addr));
}

static void put_text(json_t *j, const char *key, const char *text)
{
	if (text)
		json_object_set_new(j, key, json_string(text));
}

static json_t *list_of(const struct strv *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(list, json_string(s->v[i]));
	return list;
}

/* --- lists that are made in slices --- */

/* Between two slices anything may come and go: names of what there was at first, or ids. */
struct snapshot {
	struct strv names;
	uint32_t *ids;
	size_t n_ids;
};

static void snapshot_free(struct snapshot *s)
{
	strv_free(&s->names);
	free(s->ids);
}

static int snapshot_apps(const struct agent *a, struct snapshot *s)
{
	size_t n = 0;

	for (const struct app *app = a->apps; app; app = app->next)
		n++;
	s->ids = calloc(n + 1, sizeof(*s->ids));
	if (!s->ids)
		return -ENOMEM;
	for (const struct app *app = a->apps; app; app = app->next)
		s->ids[s->n_ids++] = app->id;
	return 0;
}

/* The next of its apps that is still there; *i counts. NULL: there is none. */
static struct app *next_app(struct agent *a, const struct snapshot *s, size_t *i)
{
	struct app *app = NULL;

	work_pause(a->reads);
	while (!app && *i < s->n_ids)
		app = app_by_id(a, s->ids[(*i)++]);
	return app;
}

/* --- apps --- */

static json_t *spec_view(const struct app_spec *s, const char *state)
{
	autofree char *labels = labels_format(&s->labels), *egress = egress_format(&s->egress);
	json_t *j = json_pack("{ss ss ss ss so sb ss sb si ss sb}", "name", s->name, "net",
			      net_mode_name(s->net), "labels", labels ? labels : "", "state", state,
			      "command", list_of(&s->command), "egress",
			      egress_is_open(&s->egress, s->net == NET_HOST) || s->egress.to.n,
			      "restart", restart_policy_name(s->restart), "detached", s->detach,
			      "wait_ms", (int)s->wait_ms, "splice", splice_mode_name(s->splice),
			      "splice_emulation", s->splice_emulation);

	if (egress && *egress)
		put_text(j, "egress_to", egress);
	put_text(j, "user", s->user);
	json_object_set_new(j, "memory", json_integer((json_int_t)s->memory));
	json_object_set_new(j, "cpus_milli", json_integer(s->cpus));
	json_object_set_new(j, "pids", json_integer(s->pids));
	json_object_set_new(j, "volumes", list_of(&s->volumes));
	json_object_set_new(j, "read_only", json_boolean(s->read_only));
	json_object_set_new(j, "expose", control_expose_to_json(&s->expose));
	return j;
}

static json_t *app_view(const struct app *app)
{
	json_t *j = spec_view(&app->spec, app_state_name(app->state));
	int pid = cgroup_first_pid(app->cgroup);

	json_object_set_new(j, "id", json_integer(app->id));
	put_addr(j, "ip4", &app->vip4);
	put_addr(j, "ip6", &app->vip6);
	json_object_set_new(j, "pid", json_integer(app->pid ? app->pid : pid));
	json_object_set_new(j, "since", json_integer(time_unix_of_boot(app->since_boot)));
	put_text(j, "service", app->service ? app->service->name : NULL);
	put_text(j, "cgroup", app->cgroup);
	json_object_set_new(j, "restarts", json_integer(app->restarts));
	return j;
}

static json_t *declared_view(const struct declared *d)
{
	json_t *j = spec_view(&d->conf->spec, "declared");

	json_object_set_new(j, "id", json_integer(0));
	put_addr(j, "ip4", &d->ip4);
	put_addr(j, "ip6", &d->ip6);
	json_object_set_new(j, "restarts", json_integer(0));
	return j;
}

/* Those of other nodes; and those that are there say which node they are on. */
static int put_others(struct agent *a, json_t *list, int (*put)(struct agent *a, json_t *list))
{
	json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		put_text(one, "node", cluster_node(a));
	return put(a, list);
}

static json_t *view_apps(struct agent *a, bool all)
{
	struct snapshot s CLEANUP(snapshot_free) = {0};
	size_t n_declared, i = 0;
	const struct declared *declared = declared_all(a, &n_declared);
	json_t *list = json_array();

	for (size_t k = 0; k < n_declared; k++)
		if (strv_add(&s.names, declared[k].conf->spec.name))
			goto fail;
	if (snapshot_apps(a, &s))
		goto fail;
	for (struct app *app; (app = next_app(a, &s, &i));)
		json_array_append_new(list, app_view(app));
	for (size_t k = 0; k < s.names.n; k++) {
		const struct declared *d;

		work_pause(a->reads);
		d = declared_find(a, s.names.v[k]);
		if (d && !app_by_name(a, s.names.v[k]))
			json_array_append_new(list, declared_view(d));
	}
	if (all && put_others(a, list, cluster_put_apps))
		goto fail;
	return list;
fail:
	json_decref(list);
	return NULL;
}

/* --- services --- */

static json_t *ports_of(const struct service *s)
{
	json_t *list = json_array();

	for (size_t i = 0; s->conf && i < s->conf->n_ports; i++) {
		const struct service_port *p = &s->conf->ports[i];

		json_array_append_new(list, json_pack("{si si ss}", "port", (int)p->port, "target",
						      (int)p->target, "proto",
						      p->proto == IPPROTO_UDP ? "udp" : "tcp"));
	}
	return list;
}

/* Whether it listens at a port of the service; of one for all ports nothing is known. */
static bool listens(struct agent *a, const struct service *s, const struct service_member *m)
{
	size_t n = s->conf ? s->conf->n_ports : 0;

	if (m->other && !n)
		return m->other->n_ports;
	for (size_t i = 0; i < n; i++) {
		const struct service_port *p = &s->conf->ports[i];
		const struct ax_endpoint ep = {.addr = m->addr,
					       .port_be = htons(m->port ? m->port : p->target),
					       .proto = p->proto};

		if (m->other ? other_listens(m->other, addr_is_v4(&m->addr), p->target, p->proto)
			     : datapath_is_served(a->dp, &ep))
			return true;
	}
	return !n;
}

static void put_drain(struct agent *a, const struct service *s, const struct service_member *m,
		      json_t *j)
{
	const struct drain *d = drain_of(a, s, member_app_name(m), &m->addr, m->port);

	put_text(j, "state", "draining");
	if (d && drain_left_ms(d))
		json_object_set_new(j, "left_ms", json_integer((json_int_t)drain_left_ms(d)));
}

/* What it gets now, where that is not what its weight says; who does not listen gets nothing. */
static void put_share(struct agent *a, const struct service *s, const struct service_member *m,
		      json_t *j)
{
	unsigned percent = ramps_percent(s, m);

	put_text(j, "zone", m->zone);
	if (percent < 100 && member_chosen(m))
		json_object_set_new(j, "share", json_integer(percent));
	if (!member_serves(m))
		return;
	if (m->far)
		put_text(j, "state", "far");
	else if ((m->app || m->other) && !m->checked && !listens(a, s, m))
		put_text(j, "state", "silent");
}

/* Whether there is nothing to tell of y that was not told of x, but the address. */
static bool same_news(const struct service *s, const struct service_member *x,
		      const struct service_member *y)
{
	return x->fixed && x->fixed == y->fixed && !x->drained && !y->drained &&
	       x->checked == y->checked && x->down == y->down && x->far == y->far &&
	       (x->why == y->why || (x->why && y->why && streq(x->why, y->why))) &&
	       ramps_percent(s, x) == ramps_percent(s, y);
}

/* Of a range those in a row with the same news are one, as the config has them: a service of a
 * hundred addresses takes no hundred entries. */
static json_t *addresses(const struct service_member *first, const struct service_member *last)
{
	char text[2 * ADDR_STRLEN + 1], to[ADDR_STRLEN];

	if (first == last)
		return json_addr(&first->addr);
	addr_format(&first->addr, text);
	strcat(strcat(text, "-"), addr_format(&last->addr, to));
	return json_string(text);
}

/* One, or a few of a range. */
static json_t *backend_view(struct agent *a, const struct service *s,
			    const struct service_member *m, const struct service_member *last)
{
	json_t *j = json_pack("{so si}", "address", addresses(m, last), "weight", (int)m->weight);

	if (m->checked)
		put_text(j, "state", m->down ? "down" : "up");
	put_share(a, s, m, j);
	if (m->drained)
		put_drain(a, s, m, j);
	put_text(j, "why", m->why);
	if (m->other) {
		put_text(j, "app", m->other->app);
		put_text(j, "node", m->other->node);
	}
	if (m->app) {
		put_text(j, "node", cluster_node(a));
		put_text(j, "app", m->app->spec.name);
		json_object_set_new(j, "app_id", json_integer(m->app->id));
	}
	if (m->port)
		json_object_set_new(j, "port", json_integer(m->port));
	return j;
}

static json_t *backends_of(struct agent *a, const struct service *s)
{
	json_t *list = json_array();
	struct service_member *m = NULL;
	size_t n = 0;

	if (service_members(a, s, &m, &n))
		return list;
	for (size_t i = 0, last; i < n; i = last + 1) {
		last = i;
		if (m[i].draining)
			continue;
		while (last + 1 < n && same_news(s, &m[i], &m[last + 1]))
			last++;
		json_array_append_new(list, backend_view(a, s, &m[i], &m[last]));
	}
	free(m);
	return list;
}

/* What the service says that not all do. */
static void put_words(struct agent *a, json_t *j, const struct service *s, struct affinity_tally *t)
{
	const struct config_service *c = s->conf;

	if (c->affinity != AFFINITY_NONE) {
		put_text(j, "affinity", affinity_name(c->affinity));
		json_object_set_new(j, "affinity_timeout_ms",
				    json_integer(c->affinity_timeout_ms
							 ? c->affinity_timeout_ms
							 : CONFIG_AFFINITY_TIMEOUT_MS));
		json_object_set_new(j, "clients", json_integer(affinity_clients(a, s, t)));
	}
	if (c->udp != UDP_AFFINITY)
		put_text(j, "udp", udp_choice_name(c->udp));
	if (c->on_remove != ON_REMOVE_UDP)
		put_text(j, "on_remove", on_remove_name(c->on_remove));
	if (c->hash != HASH_SRC)
		put_text(j, "hash", hash_name(c->hash));
}

static json_t *service_view(struct agent *a, const struct service *s, struct affinity_tally *t)
{
	uint32_t strategy = s->conf ? s->conf->strategy : AX_STRATEGY_RANDOM;
	json_t *j = json_pack("{si ss sb ss si so so}", "id", (int)s->id, "name", s->name,
			      "declared", s->conf != NULL, "strategy", strategy_name(strategy),
			      "wait_ms", s->conf ? (int)s->conf->wait_ms : 0, "ports", ports_of(s),
			      "backends", backends_of(a, s));

	put_addr(j, "ip4", &s->vip4);
	put_addr(j, "ip6", &s->vip6);
	if (s->conf)
		put_words(a, j, s, t);
	if (s->ended)
		json_object_set_new(j, "ended", json_integer(s->ended));
	if (added_find(a, s->name))
		json_object_set_new(j, "added", json_true());
	json_object_set_new(j, "expose",
			    s->conf ? control_expose_to_json(&s->conf->expose) : json_array());
	return j;
}

/* More than that are as good as all: who asks picks his own. */
#define ASKED_MAX 64

/* By name or id; those who name none ask for all. */
static bool is_asked(const json_t *names, const struct service *s)
{
	size_t n = json_array_size(names);
	char id[16];

	snprintf(id, sizeof(id), "%u", s->id);
	for (size_t i = 0; n <= ASKED_MAX && i < n; i++) {
		const char *one = json_string_value(json_array_get(names, i));

		if (one && (streq(one, s->name) || streq(one, id)))
			return true;
	}
	return !n || n > ASKED_MAX;
}

static json_t *view_services(struct agent *a, const json_t *names)
{
	struct snapshot s CLEANUP(snapshot_free) = {0};
	CLEANUP(affinity_tally_free) struct affinity_tally t = {0};
	json_t *list = json_array();

	for (const struct service *one = a->services; one; one = one->next) {
		if (strv_add(&s.names, one->name)) {
			json_decref(list);
			return NULL;
		}
	}
	for (size_t i = 0; i < s.names.n; i++) {
		const struct service *one;

		work_pause(a->reads);
		one = service_by_name(a, s.names.v[i]);
		if (one && is_asked(names, one))
			json_array_append_new(list, service_view(a, one, &t));
	}
	return list;
}

/* --- servers --- */

struct list_ctx {
	struct agent *a;
	json_t *list;
	struct splice_view *splice;
};

static int one_server(void *arg, const struct ax_endpoint *ep, const struct ax_server *s)
{
	struct list_ctx *c = arg;
	struct vip *v;
	const struct app *app;
	int64_t age = s->since_ns ? (int64_t)((time_boot_ns() - s->since_ns) / 1000000000) : 0;

	work_pause(c->a->reads);
	v = vip_find(c->a, &ep->addr);
	app = v ? v->app : NULL;
	if (!app || app->id != s->app)
		return 0; /* a socket that outlived the address's former owner */
	json_array_append_new(
		c->list, json_pack("{ss si ss so si sI si}", "app", app->spec.name, "app_id",
				   (int)s->app, "proto", ep->proto == IPPROTO_UDP ? "udp" : "tcp",
				   "address", json_addr(&ep->addr), "port", (int)ntohs(ep->port_be),
				   "since", (json_int_t)(time(NULL) - age), "sockets",
				   (int)AX_SERVER_SOCKETS(s->sockets)));
	return 0;
}

static json_t *view_servers(struct agent *a, bool all)
{
	struct list_ctx c = {.a = a, .list = json_array()};

	datapath_servers_each(a->dp, one_server, &c);
	if (!all || !put_others(a, c.list, cluster_put_servers))
		return c.list;
	json_decref(c.list);
	return NULL;
}

/* --- connections --- */

static const char *tcp_state_name(uint32_t state)
{
	/* include/net/tcp_states.h */
	static const char *const names[] = {"?",	   "established", "syn-sent",  "syn-recv",
					    "fin-wait-1",  "fin-wait-2",  "time-wait", "close",
					    "close-wait",  "last-ack",	  "listen",    "closing",
					    "new-syn-recv"};

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

/* "spliced": bytes, or "not_spliced": why. Only of connections between apps. */
static void put_splice(const struct list_ctx *c, json_t *j, const struct ax_conn *conn)
{
	uint64_t bytes = 0;
	enum splice_reason why;

	if (!c->splice || conn->state != 1 /* established */)
		return;
	why = splice_view_of(c->splice, conn, &bytes);
	if (why)
		put_text(j, "not_spliced", splice_reason_text(why));
	else
		json_object_set_new(j, "spliced", json_integer((json_int_t)bytes));
}

static int one_conn(void *arg, const struct ax_conn *conn)
{
	struct list_ctx *c = arg;
	const struct other_app *other;
	json_t *j = json_pack("{ss ss so si so si sI sI si}", "proto", "tcp", "state",
			      tcp_state_name(conn->state), "local", json_addr(&conn->local.addr),
			      "local_port", (int)ntohs(conn->local.port_be), "remote",
			      json_addr(&conn->remote.addr), "remote_port",
			      (int)ntohs(conn->remote.port_be), "sent", (json_int_t)conn->sent,
			      "received", (json_int_t)conn->received, "rtt_us", (int)conn->srtt_us);

	work_pause(c->a->reads);
	put_text(j, "local_name", name_of_addr(c->a, &conn->local.addr));
	put_text(j, "remote_name", name_of_addr(c->a, &conn->remote.addr));
	other = other_of_addr(c->a, &conn->remote.addr);
	put_text(j, "remote_node", other ? other->node : NULL);
	if (conn->asked.port_be) {
		put_text(j, "service", name_of_addr(c->a, &conn->asked.addr));
		put_addr(j, "service_address", &conn->asked.addr);
		json_object_set_new(j, "service_port", json_integer(ntohs(conn->asked.port_be)));
	}
	put_splice(c, j, conn);
	json_array_append_new(c->list, j);
	return 0;
}

static json_t *view_conns(struct agent *a, struct error *e)
{
	struct snapshot s CLEANUP(snapshot_free) = {0};
	struct list_ctx c = {.a = a, .list = json_array(), .splice = splice_view_open(a)};
	size_t i = 0;
	int r = datapath_conns_each(a->dp, -1, one_conn, &c);

	if (!r)
		r = snapshot_apps(a, &s);
	if (r) {
		splice_view_close(c.splice);
		json_decref(c.list);
		error_set(e, r, "this kernel cannot list connections (%s): see 'ax doctor'",
			  strerror(-r));
		return NULL;
	}
	for (struct app *app; (app = next_app(a, &s, &i));) {
		autoclose int fd = app->spec.net == NET_PRIVATE ? app_netns(app) : -1;

		if (fd >= 0)
			datapath_conns_each(a->dp, fd, one_conn, &c);
	}
	splice_view_close(c.splice);
	return c.list;
}

/* --- names --- */

static json_t *one_name(const char *name, const struct ax_addr *ip4, const struct ax_addr *ip6,
			const char *kind)
{
	json_t *j = json_pack("{ss ss}", "name", name, "kind", kind);

	put_addr(j, "ip4", ip4);
	put_addr(j, "ip6", ip6);
	return j;
}

static json_t *name_view(const struct name *n)
{
	const struct service *s = n->service ? n->service : n->app ? n->app->service : NULL;
	json_t *j;

	if (s)
		return one_name(n->text, &s->vip4, &s->vip6, "service");
	if (n->app)
		return one_name(n->text, &n->app->vip4, &n->app->vip6, "app");
	if (other_serving(n)) {
		struct ax_addr ip4, ip6;

		names_address(n, &ip4, &ip6);
		j = one_name(n->text, &ip4, &ip6, "app");
		put_text(j, "node", other_serving(n)->node);
		return j;
	}
	return n->declared ? one_name(n->text, &n->declared->ip4, &n->declared->ip6, "declared")
			   : NULL;
}

struct collect {
	struct strv *names;
	int r;
};

static void collect_name(void *arg, const struct name *n)
{
	struct collect *c = arg;

	c->r = c->r ? c->r : strv_add(c->names, n->text);
}

static json_t *view_names(struct agent *a)
{
	struct snapshot s CLEANUP(snapshot_free) = {0};
	struct collect c = {.names = &s.names};
	json_t *list = json_array(), *j;

	name_each(a, collect_name, &c);
	for (size_t i = 0; !c.r && i < s.names.n; i++) {
		const struct name *n;

		work_pause(a->reads);
		n = name_find(a, s.names.v[i]);
		j = n ? name_view(n) : NULL;
		if (j)
			json_array_append_new(list, j);
	}
	if (!c.r)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *rule_view(struct agent *a, unsigned i)
{
	const struct config_rule *rule = &a->rules[i];
	autofree char *text = config_rule_text(rule);
	json_t *j = json_pack("{ss sb ss}", "action", rule_action_name(rule->action), "audit",
			      rule->audit, "origin", rule_origin_name(rule->origin));
	unsigned number = rule_number(a->rules, i);
	struct ax_rule_hits h;

	if (!j || !text)
		return j;
	put_text(j, "text", strchr(text, ' ') + 1);
	if (number)
		json_object_set_new(j, "rule", json_integer(number));
	if (rule->name)
		put_text(j, "name", rule->name);
	if (parties_hits(a, i, &h) == 0) {
		json_object_set_new(j, "hits", json_integer((json_int_t)h.hits));
		if (h.last_ns)
			json_object_set_new(j, "last",
					    json_integer(time_unix_of_boot_ns(h.last_ns)));
	}
	return j;
}

static json_t *view_policy(struct agent *a)
{
	json_t *list = json_array(), *j;

	for (unsigned i = 0; i < a->n_rules; i++) {
		j = rule_view(a, i);
		if (j)
			json_array_append_new(list, j);
	}
	return list;
}

json_t *view_get(struct agent *a, const struct view_asked *asked, struct error *e)
{
	const char *what = asked->what;
	json_t *list = NULL, *answer;

	if (streq(what, "apps"))
		list = view_apps(a, asked->all);
	else if (streq(what, "services"))
		list = view_services(a, asked->names);
	else if (streq(what, "servers"))
		list = view_servers(a, asked->all);
	else if (streq(what, "conns"))
		list = view_conns(a, e);
	else if (streq(what, "names"))
		list = view_names(a);
	else if (streq(what, "policy"))
		list = view_policy(a);
	else if (streq(what, "interfaces"))
		list = xdp_section_view(a);
	else if (streq(what, "nodes"))
		list = cluster_nodes(a);
	else
		error_set(e, -EINVAL,
			  "there is no list of '%.30s': give apps, services, servers, "
			  "conns, names, policy, interfaces or nodes",
			  what);
	if (!list)
		return NULL;
	answer = json_pack("{sb so}", "ok", 1, what, list);
	if (answer && streq(what, "names"))
		put_text(answer, "domain", a->config.dns_domain);
	return answer;
}

/* --- status --- */

static json_t *pool_view(const struct pool *p)
{
	char text[ADDR_STRLEN];
	/* network, host, broadcast; of a part of a pool that is shared nearly all is its own */
	uint32_t reserved = p->shut ? p->n_shut : addr_is_v4(&p->prefix.addr) ? 3 : 2;

	return json_pack("{ss si si}", "prefix", prefix_format(&p->prefix, text), "used",
			 (int)p->in_use, "size", (int)(p->size - reserved));
}

static json_t *dns_view(const struct agent *a)
{
	json_t *up = json_array();
	char text[ADDR_STRLEN];

	for (size_t i = 0; i < a->config.n_dns_upstreams; i++)
		json_array_append_new(up, json_string(addr_port_format(
						  &a->config.dns_upstreams[i],
						  a->config.dns_upstream_ports_be[i], text)));
	return json_pack("{so si ss so}", "address", json_addr(&a->host4), "port",
			 (int)ntohs(dns_server_port(a->dns)), "domain", a->config.dns_domain,
			 "upstreams", up);
}

static json_t *features_view(const struct agent *a)
{
	const struct feature_report *f;
	size_t n = datapath_features(a->dp, &f);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *j = json_pack("{ss sb}", "name", f[i].name, "on", f[i].on);

		if (!f[i].on) {
			put_text(j, "why", f[i].why);
			put_text(j, "cost", f[i].cost);
		}
		json_array_append_new(list, j);
	}
	return list;
}

/* Only where something may be spliced: else there are none. */
static void put_splice_counters(struct agent *a, json_t *counts)
{
	struct ax_splice_counted n[AX_SPLICE_COUNTS];
	char name[64];

	if (!splice_counters(a, n))
		return;
	for (unsigned i = 0; i < AX_SPLICE_COUNTS; i++) {
		if (!n[i].messages && i > AX_SPLICE_PASSED)
			continue;
		snprintf(name, sizeof(name), "splice_%s", datapath_splice_counter_name(i));
		json_object_set_new(counts, name, json_integer((json_int_t)n[i].messages));
		if (i != AX_SPLICE_REDIRECTED && i != AX_SPLICE_PASSED)
			continue;
		snprintf(name, sizeof(name), "splice_%s_bytes", datapath_splice_counter_name(i));
		json_object_set_new(counts, name, json_integer((json_int_t)n[i].bytes));
	}
}

/* NULL: nothing is told, and nothing is to be. */
static json_t *host_names_view(const struct agent *a)
{
	static const char *const words[] = {[HOST_RESOLVER_TOLD] = "told",
					    [HOST_RESOLVER_WORKING] = "working",
					    [HOST_RESOLVER_FAILED] = "failed"};
	const char *why;
	enum host_resolver_state state = host_resolver_state(a, &why);
	json_t *j;

	if (state == HOST_RESOLVER_OFF)
		return NULL;
	j = json_pack("{ss ss}", "wanted", host_names_word(a->config.host_names), "state",
		      words[state]);
	put_text(j, "why", why);
	return j;
}

json_t *view_status(struct agent *a)
{
	uint64_t counters[AX_COUNTERS];
	json_t *j, *counts = json_object(), *interfaces = xdp_section_view(a);
	json_t *host_names = host_names_view(a);

	if (datapath_counters(a->dp, counters) == 0)
		for (unsigned i = 0; i < AX_COUNTERS; i++)
			json_object_set_new(counts, datapath_counter_name(i),
					    json_integer((json_int_t)counters[i]));
	triggers_view(a, counts);
	put_splice_counters(a, counts);
	j = json_pack("{sb ss ss si sI ss si si so so so}", "ok", 1, "version", AX_VERSION,
		      "instance", a->inst->name, "pid", (int)getpid(), "since",
		      (json_int_t)time_unix_of_boot(a->since_boot), "socket", a->own.socket_path,
		      "apps", (int)a->n_apps, "services", (int)a->n_services, "features",
		      features_view(a), "counters", counts, "pool4", pool_view(&a->pool4));
	put_text(j, "config", a->config_path);
	if (a->pool6.size)
		json_object_set_new(j, "pool6", pool_view(&a->pool6));
	if (a->dns)
		json_object_set_new(j, "dns", dns_view(a));
	if (host_names)
		json_object_set_new(j, "host_names", host_names);
	if (a->cluster)
		json_object_set_new(j, "cluster", shared_view(a, cluster_status(a)));
	if (json_array_size(interfaces))
		json_object_set(j, "interfaces", interfaces);
	json_decref(interfaces);
	if (a->config.n_probes)
		json_object_set_new(j, "probes", probes_view(a));
	return j;
}
