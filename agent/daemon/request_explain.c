/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may connect to whom, and which rule says so: names become addresses here, and the programs
 * themselves are asked for the verdict (sockops/explain.bpf.c). */
#include <arpa/inet.h>

#include "daemon/requests_priv.h"
#include "allot/learnt.h"
#include "base/address.h"
#include "base/domain.h"
#include "base/work.h"
#include "control/control.h"
#include "control/reply.h"
#include "control/server.h"
#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "question.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/names.h"
#include "registry/others.h"
#include "registry/parties.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/members.h"

/* One end of the connection that is asked about. */
struct end {
	const struct app *app;		 /* that runs */
	const struct declared *declared; /* or does not */
	const struct service *service;
	struct ax_addr addr;
};

struct question {
	struct agent *a;
	const char *from_text, *to_text;
	struct end from, to;
	char domain[DOMAIN_STRLEN]; /* `to` is that name outside; "": it is not */
	uint16_t port;		    /* host byte order */
	uint8_t proto;
	json_t *verdicts;
	size_t more;  /* that are not said */
	bool allowed; /* one of them */
};

#define VERDICTS_MAX 16384 /* so long an answer clients take */

/* --- names --- */

static struct ax_addr either(const struct ax_addr *v4, const struct ax_addr *v6)
{
	return addr_is_zero(v4) ? *v6 : *v4;
}

/* The name without the agent's domain behind it. */
static void plain_name(const struct agent *a, const char *text, char *buf, size_t size)
{
	size_t len = strlen(text), domain = strlen(a->config.dns_domain);

	if (len > domain + 1 && text[len - domain - 1] == '.' &&
	    strcasecmp(text + len - domain, a->config.dns_domain) == 0)
		len -= domain + 1;
	snprintf(buf, size, "%.*s", (int)len, text);
}

static void end_of_addr(struct agent *a, struct end *ret)
{
	const struct vip *v = vip_find(a, &ret->addr);

	if (!v)
		return;
	ret->app = v->app;
	ret->declared = v->app ? NULL : v->declared;
	ret->service = v->service;
}

static struct app *app_of_id(struct agent *a, const char *text)
{
	char *end;
	unsigned long id = strtoul(text, &end, 10);

	return *text && !*end && id && id <= UINT32_MAX ? app_by_id(a, (uint32_t)id) : NULL;
}

static bool end_of_name(struct agent *a, const char *text, bool server, struct end *ret)
{
	const struct name *n = name_find(a, text);
	struct app *app = n ? n->app : app_of_id(a, text);
	const struct other_app *other;

	if (server && n && n->service) {
		ret->service = n->service;
		ret->addr = either(&n->service->vip4, &n->service->vip6);
		return true;
	}
	ret->app = app;
	ret->declared = !app && n ? n->declared : NULL;
	if (app)
		ret->addr = either(&app->vip4, &app->vip6);
	else if (ret->declared)
		ret->addr = either(&n->declared->ip4, &n->declared->ip6);
	other = !app && !ret->declared && n ? other_serving(n) : NULL;
	if (other)
		ret->addr = either(&other->ip4, &other->ip6);
	return app || ret->declared || other;
}

static int end_of(struct agent *a, const char *text, bool server, struct end *ret, struct error *e)
{
	char name[256];

	*ret = (struct end){0};
	if (!text || !*text)
		return error_set(e, -EINVAL, "explain goes with from, to and port");
	if (addr_parse(text, &ret->addr) == 0) {
		end_of_addr(a, ret);
		return 0;
	}
	plain_name(a, text, name, sizeof(name));
	if (end_of_name(a, name, server, ret))
		return 0;
	if (streq(name, "host")) {
		ret->addr = either(&a->host4, &a->host6);
		return 0;
	}
	return error_set(
		e, -ENOENT,
		"there is no app%s %.60s: give one of 'ax get names', an address, or 'host' "
		"for this machine",
		server ? " or service" : "", name);
}

/* Both ends; what nobody here has and may be a name of the DNS is one outside. */
static int find_ends(struct question *q, struct error *e)
{
	int r = end_of(q->a, q->from_text, false, &q->from, e);

	if (r)
		return r;
	*q->domain = '\0';
	r = end_of(q->a, q->to_text, true, &q->to, e);
	if (r == -ENOENT && strchr(q->to_text, '.') && !want_domain(q->to_text, false, q->domain))
		return 0;
	return r;
}

static void put_end(json_t *j, const char *key, const struct end *e)
{
	char buf[32];

	json_object_set_new(j, key, json_addr(&e->addr));
	snprintf(buf, sizeof(buf), "%s_name", key);
	if (e->service)
		json_object_set_new(j, buf, json_string(e->service->name));
	else if (e->app)
		json_object_set_new(j, buf, json_string(e->app->spec.name));
	else if (e->declared)
		json_object_set_new(j, buf, json_string(e->declared->conf->spec.name));
}

/* --- verdicts --- */

static const struct labels *labels_of(const struct agent *a, const struct end *e)
{
	if (e->app)
		return &e->app->spec.labels;
	if (!e->declared)
		return NULL;
	return e->declared->conf->spec.labels.n ? &e->declared->conf->spec.labels
						: &a->config.default_labels;
}

static void put_labels(json_t *j, const char *key, const struct agent *a, const struct end *e)
{
	const struct labels *l = labels_of(a, e);
	autofree char *text = l ? labels_format(l) : NULL;

	if (text)
		json_object_set_new(j, key, json_string(text));
}

static void put_rule(json_t *j, const struct agent *a, const char *key, uint32_t number)
{
	const struct config_rule *rule;
	autofree char *text = NULL;
	json_t *one;

	if (!number || number > a->policy.n_rules)
		return;
	rule = &a->policy.rules[number - 1];
	text = config_rule_text(rule);
	one = json_pack("{ss}", "text", text ? text : "?");
	number = rule_number(a->policy.rules, number - 1);
	if (one && number)
		json_object_set_new(one, "rule", json_integer(number));
	if (one && rule->name)
		json_object_set_new(one, "name", json_string(rule->name));
	json_object_set_new(j, key, one);
}

static bool is_private(const struct end *e)
{
	return e->app && e->app->ifindex;
}

/* Where the receiving side asks; NULL: nowhere. */
static const char *receiver_of(const struct question *q, const struct end *to)
{
	if (is_private(to) || is_private(&q->from))
		return to->app || to->declared ? "fabric" : "fabric (on its way out)";
	return to->app || to->declared ? "sk_lookup" : NULL;
}

static const char *reason_of(const struct question *q, const struct ax_question *x,
			     const struct end *to)
{
	if (x->rule)
		return "rule";
	if (x->no_label)
		return "no-label";
	if (!q->from.app && !q->from.declared)
		return "host-access";
	if (!to->app && !to->declared)
		return "egress";
	return "label";
}

/* What somebody who asks `to` gets. Takes over what the programs have said. */
static void put_verdict(struct question *q, const struct ax_question *x, const struct end *to,
			const char *backend)
{
	bool client = q->from.app || q->from.declared;
	const char *receiver = receiver_of(q, to);
	const char *hook = !client		     ? (receiver ? receiver : "none")
			   : q->proto == IPPROTO_UDP ? "sendmsg"
						     : "connect";
	json_t *j;

	q->allowed |= x->code == 0;
	if (json_array_size(q->verdicts) >= VERDICTS_MAX) {
		q->more++;
		return;
	}
	j = json_pack("{sb ss ss}", "allowed", x->code == 0, "hook", hook, "why",
		      reason_of(q, x, to));
	if (!j)
		return;
	if (x->code)
		json_object_set_new(j, "errno", json_string(strerrorname_np(-x->code)));
	if (backend)
		json_object_set_new(j, "backend", json_string(backend));
	if (client && receiver)
		json_object_set_new(j, "again", json_string(receiver));
	put_rule(j, q->a, "decides", x->rule);
	/* one that stands behind the rule that decides is not reached */
	if (!x->rule || x->audit < x->rule)
		put_rule(j, q->a, "audit", x->audit);
	if (!x->rule || x->log < x->rule)
		put_rule(j, q->a, "log", x->log);
	put_labels(j, "from_labels", q->a, &q->from);
	put_labels(j, "to_labels", q->a, to);
	json_array_append_new(q->verdicts, j);
}

/* Without the programs: the answer is known. */
static void put_known(struct question *q, bool allowed, const char *why, const char *errno_name)
{
	json_t *j = json_pack("{sb ss ss}", "allowed", allowed, "hook", "connect", "why", why);

	if (j && errno_name)
		json_object_set_new(j, "errno", json_string(errno_name));
	json_array_append_new(q->verdicts, j);
	q->allowed |= allowed;
}

static int ask(struct question *q, const struct end *to, uint16_t port, const char *backend,
	       struct error *e)
{
	const struct end *from = &q->from;
	struct ax_question x = {
		.from = from->addr,
		.to = {.addr = to->addr, .port_be = htons(port), .proto = q->proto}};
	bool host_mode = from->declared && from->declared->conf->spec.net == NET_HOST;
	int r;

	if (from->app || from->declared)
		x.flags |= AX_QUESTION_APP;
	if (from->app)
		x.cgroup = from->app->cgroup_id;
	if (from->declared) {
		x.party = party_told(from->declared->party);
		x.app_flags = (host_mode ? AX_APP_HOST : 0) |
			      (egress_is_open(&from->declared->conf->spec.egress, host_mode)
				       ? AX_APP_EGRESS
				       : 0);
	}
	if (backend)
		x.flags |= AX_QUESTION_BACKEND;
	r = datapath_ask(q->a->dp, &x);
	if (r == -EOPNOTSUPP)
		return error_set(e, r,
				 "this kernel has not taken the program that answers: see "
				 "'ax doctor'");
	if (r)
		return error_set(e, r, "the programs cannot be asked: %s", strerror(-r));
	if (x.code == -ESRCH)
		return error_set(e, -ESRCH, "it ended meanwhile: ask again");
	put_verdict(q, &x, to, backend);
	return 0;
}

/* --- services --- */

/* The backends' port; -1: the service does not have that one, 0: the same. */
static int target_of(const struct question *q, const struct service *s)
{
	if (!s->conf || !s->conf->n_ports)
		return q->port;
	for (size_t i = 0; i < s->conf->n_ports; i++)
		if (s->conf->ports[i].port == q->port && s->conf->ports[i].proto == q->proto)
			return s->conf->ports[i].target;
	return -1;
}

static int ask_member(struct question *q, const struct service_member *m, int target,
		      struct error *e)
{
	uint16_t port = m->port ? m->port : (uint16_t)target;
	struct end to = {.addr = m->addr};
	char addr[ADDR_STRLEN], text[ADDR_STRLEN + 80];
	const struct other_app *other = other_of_addr(q->a, &m->addr); /* (m's may be gone) */
	const char *name;

	end_of_addr(q->a, &to);
	to.service = NULL;
	name = to.app	     ? to.app->spec.name
	       : to.declared ? to.declared->conf->spec.name
	       : other	     ? other->app
			     : NULL;
	snprintf(text, sizeof(text), "%s%s%s", name ? name : "", name ? " " : "",
		 addr_port_format(&m->addr, htons(port), addr));
	return ask(q, &to, port, text, e);
}

/* Others may come in: who both ends are is looked up anew. */
static int pause_explain(struct question *q, struct error *e)
{
	work_pause(q->a->reads);
	return find_ends(q, e);
}

static int ask_service(struct question *q, struct error *e)
{
	const struct service *s = q->to.service;
	autofree struct service_member *list = NULL;
	bool v4 = addr_is_v4(&q->to.addr);
	int target = target_of(q, s), r;
	size_t n = 0;

	if (target < 0 && q->to.app) /* a port that the address's owner has */
		return ask(q, &q->to, q->port, NULL, e);
	if (target < 0) {
		put_known(q, false, "no-port", "ECONNREFUSED");
		return 0;
	}
	r = service_members(q->a, s, &list, &n);
	if (r)
		return error_set(e, r, "out of memory");
	for (size_t i = 0; i < n && !r; i++) {
		if (addr_is_v4(&list[i].addr) != v4)
			continue;
		r = ask_member(q, &list[i], target, e);
		r = r ? r : pause_explain(q, e);
	}
	if (!r && !json_array_size(q->verdicts))
		put_known(q, false, "no-backend", "EHOSTUNREACH");
	return r;
}

/* --- names outside --- */

struct called {
	struct question *q;
	struct ax_addr *v;
	size_t n;
};

static int add_called(void *arg, const struct ax_addr *addr)
{
	struct called *c = arg;
	struct strv names = {0};
	struct ax_addr *more;
	bool has = false;

	if (learnt_names(c->q->a->policy.learnt, addr, &names) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < names.n; i++)
		has |= streq(names.v[i], c->q->domain);
	free(names.v);
	if (!has)
		return 0;
	more = reallocarray(c->v, c->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->v = more;
	c->v[c->n++] = *addr;
	return 0;
}

/* No app has been told an address of that name: only rules about names, and about everything
 * outside, are known to be about it. */
static int judge_name(struct question *q, struct error *e)
{
	const struct app_spec *spec =
		q->from.app ? &q->from.app->spec : &q->from.declared->conf->spec;
	uint32_t party = q->from.app ? q->from.app->party : q->from.declared->party;
	const struct policy_port port = {.proto = q->proto, .port = q->port};
	char *names[] = {q->domain};
	struct strv list = {.v = names, .n = 1};
	struct policy_end client, server = {.names = &list, .somewhere = true};
	struct policy_verdict v;
	bool allowed;
	json_t *j;

	if (!policy_party(&q->a->policy, party))
		return error_set(e, -ESRCH, "it ended meanwhile: ask again");
	client = policy_end_of(&q->a->policy, party);
	policy_judge(q->a->policy.rules, q->a->policy.n_rules, &client, &server, &port, &v);
	allowed = v.rule >= 0 ? !v.deny : egress_is_open(&spec->egress, spec->net == NET_HOST);
	put_known(q, allowed, v.rule >= 0 ? "rule" : "egress", NULL);
	j = json_array_get(q->verdicts, json_array_size(q->verdicts) - 1);
	put_rule(j, q->a, "decides", (uint32_t)(v.rule + 1));
	put_rule(j, q->a, "audit", (uint32_t)(v.audit + 1));
	put_rule(j, q->a, "log", (uint32_t)(v.log + 1));
	json_object_set_new(j, "by_name", json_true());
	return 0;
}

static int ask_name(struct question *q, struct error *e)
{
	const struct learnt *l = q->a->policy.learnt;
	struct called c = {.q = q};
	int r = l ? learnt_each(l, add_called, &c) : 0;

	if (r)
		error_set(e, r, "out of memory");
	else if (!c.n)
		r = judge_name(q, e);
	for (size_t i = 0; i < c.n && !r; i++) {
		struct end to = {.addr = c.v[i]};
		char addr[ADDR_STRLEN];

		r = ask(q, &to, q->port, addr_port_format(&to.addr, htons(q->port), addr), e);
	}
	free(c.v);
	return r;
}

/* --- the request --- */

static bool is_loopback(const struct ax_addr *a)
{
	struct ax_addr one = {.b[15] = 1};

	return addr_is_v4(a) ? a->b[12] == 127 : addr_eq(a, &one);
}

static int explain(struct question *q, struct error *e)
{
	bool client = q->from.app || q->from.declared;
	bool ours = q->to.app || q->to.declared || q->to.service;

	if (client && *q->domain)
		return ask_name(q, e);
	if (client && !ours && is_loopback(&q->to.addr)) {
		put_known(q, true, "loopback", NULL);
		return 0;
	}
	if (client && !ours && q->port == 53 && q->a->dns) {
		put_known(q, true, "dns", NULL);
		return 0;
	}
	if (!client && !ours)
		return error_set(e, -EINVAL,
				 "neither end is an app's or a service's: ax is not asked");
	return q->to.service ? ask_service(q, e) : ask(q, &q->to, q->port, NULL, e);
}

/* Of a service there may be many answers: they are found, and written, beside what else there is to
 * do. */
struct explain_work {
	struct agent *a;
	struct client *c; /* NULL: gone */
	json_t *request;
	json_t *answer;
	struct reply text;
	int r;
};

static void write_answer(void *arg)
{
	struct explain_work *w = arg;

	w->r = reply_make(w->answer, &w->text);
	json_decref(w->answer);
	w->answer = NULL;
}

static int make_answer(struct explain_work *w, struct error *e)
{
	json_int_t port = json_integer_value(json_object_get(w->request, "port"));
	const char *proto = json_string_value(json_object_get(w->request, "proto"));
	struct question q = {
		.a = w->a,
		.from_text = json_string_value(json_object_get(w->request, "from")),
		.to_text = json_string_value(json_object_get(w->request, "to")),
		.port = (uint16_t)port,
		.proto = proto && streq(proto, "udp") ? IPPROTO_UDP : IPPROTO_TCP,
	};
	int r = 0;

	if (port < 1 || port > UINT16_MAX)
		r = error_set(e, -EINVAL, "explain goes with a port of 1 to 65535");
	r = r ? r : find_ends(&q, e);
	q.verdicts = json_array();
	r = r ? r : explain(&q, e);
	if (r) {
		json_decref(q.verdicts);
		return r;
	}
	w->answer = json_pack("{sb sb si ss so sI}", "ok", 1, "allowed", q.allowed, "port",
			      (int)port, "proto", q.proto == IPPROTO_UDP ? "udp" : "tcp",
			      "verdicts", q.verdicts, "more", (json_int_t)q.more);
	if (!w->answer)
		return error_set(e, -ENOMEM, "out of memory");
	put_end(w->answer, "from", &q.from);
	put_end(w->answer, "to", &q.to);
	if (*q.domain)
		json_object_set_new(w->answer, "to_name", json_string(q.domain));
	if (json_array_size(q.verdicts) > REQUEST_ROWS_AT_ONCE)
		work_offload(w->a->reads, write_answer, w);
	else
		write_answer(w);
	return w->r ? error_set(e, w->r, "the answer is longer than the agent keeps for one client")
		    : 0;
}

static void work_free(struct explain_work *w)
{
	json_decref(w->request);
	free(w);
}

static void run(void *arg)
{
	struct explain_work *w = arg;
	struct error e = {0};
	int r = w->c ? make_answer(w, &e) : 0;

	if (w->c)
		((struct client_state *)client_kept(w->c))->explain = NULL;
	if (w->c && r)
		client_error(w->c, r, e.text);
	else if (w->c)
		client_reply_made(w->c, &w->text);
	else
		reply_free(&w->text);
	work_free(w);
}

void request_explain(struct agent *a, struct client *c, json_t *j, int fd)
{
	struct client_state *st = client_state_get(c);
	struct explain_work *w;

	(void)fd;
	if (!st)
		return;
	w = calloc(1, sizeof(*w));
	if (w) {
		*w = (struct explain_work){.a = a, .c = c, .request = json_incref(j)};
		st->explain = w;
		client_hold(c);
		if (!work_start(a->reads, client_uid(c), run, w))
			return;
		work_free(w);
	}
	st->explain = NULL;
	client_error(c, -ENOMEM, "out of memory");
}

void request_explain_orphan(struct explain_work *w)
{
	w->c = NULL;
}
