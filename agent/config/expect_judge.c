// SPDX-License-Identifier: GPL-2.0-or-later
/* Whether a config says what is expected: by the same function that the agent's tables are made
 * with (policy_match.c), and what the switch does where no rule matches. */
#include "config/expect.h"
#include "config/policy.h"
#include "rules/priv.h"

/* One who may be meant by an end: several apps may have a name, and a service has backends. */
struct subject {
	struct policy_end end;
	bool leaves; /* may reach the outside */
	uint16_t port;
};

struct subjects {
	struct subject *v;
	size_t n;
};

/* --- who is meant --- */

static const struct labels *labels_of(const struct config *c, const struct config_app *app)
{
	return app->spec.labels.n ? &app->spec.labels : &c->default_labels;
}

static int add(struct subjects *s, const struct subject *one)
{
	int r = array_grow(&s->v, s->n, sizeof(*s->v));

	if (!r)
		s->v[s->n++] = *one;
	return r;
}

static int add_app(const struct config *c, const struct config_app *app, uint16_t port,
		   struct subjects *to)
{
	const struct egress *e = &app->spec.egress;
	struct subject one = {.end = {.labels = labels_of(c, app),
				      .name = app->spec.name,
				      .egress = egress_id(e),
				      .own4 = app->spec.ip4,
				      .own6 = app->spec.ip6},
			      .leaves = egress_is_open(e, app->spec.net == NET_HOST),
			      .port = port};

	return add(to, &one);
}

static int add_apps_named(const struct config *c, const char *name, uint16_t port,
			  struct subjects *to)
{
	int r = 0;

	for (size_t i = 0; i < c->n_apps && !r; i++)
		if (streq(c->apps[i].spec.name, name))
			r = add_app(c, &c->apps[i], port, to);
	return r;
}

static int add_address(const struct config *c, const struct ax_addr *addr, uint16_t port,
		       struct subjects *to)
{
	struct subject one = {.end.addr = *addr, .port = port};

	for (size_t i = 0; i < c->n_apps; i++)
		if (addr_eq(&c->apps[i].spec.ip4, addr) || addr_eq(&c->apps[i].spec.ip6, addr))
			return add_app(c, &c->apps[i], port, to);
	return add(to, &one);
}

static int add_backend(const struct config *c, const struct service_backend *b, uint16_t port,
		       struct subjects *to)
{
	struct subject one = {.end = {.labels = &c->default_labels, .name = b->app}, .port = port};
	size_t before = to->n;
	int r = 0;

	if (b->app) {
		r = add_apps_named(c, b->app, port, to);
		/* of the config no more than its name is known: `ax run` starts it */
		return r || to->n > before ? r : add(to, &one);
	}
	for (uint32_t i = 0; !b->labels.n && i <= b->more && !r; i++) {
		struct ax_addr a = service_backend_address(b, i);

		r = add_address(c, &a, b->port ? b->port : port, to);
	}
	if (!b->labels.n)
		return r;
	for (size_t i = 0; i < c->n_apps && !r; i++)
		if (labels_subset(&b->labels, labels_of(c, &c->apps[i])))
			r = add_app(c, &c->apps[i], port, to);
	return r;
}

static const struct config_service *service_in(const struct config *c, const struct expect_end *e)
{
	for (size_t i = 0; i < c->n_services; i++) {
		const struct config_service *s = &c->services[i];

		if (e->name ? streq(s->name, e->name)
			    : !addr_is_zero(&e->addr) &&
				      (addr_eq(&s->ip4, &e->addr) || addr_eq(&s->ip6, &e->addr)))
			return s;
	}
	return NULL;
}

/* (The config's come before others of the same name.) */
static const struct config_service *
service_of(const struct config *c, const struct config *const *beside, const struct expect_end *e)
{
	const struct config_service *s = service_in(c, e);

	for (; !s && beside && *beside; beside++)
		s = service_in(*beside, e);
	return s;
}

/* None: it has no such port, or nobody serves it. */
static int add_service(const struct config *c, const struct config_service *s,
		       const struct expectation *x, struct subjects *to)
{
	uint16_t target = s->n_ports ? 0 : x->port;
	int r = 0;

	for (size_t i = 0; i < s->n_ports; i++)
		if (s->ports[i].port == x->port && s->ports[i].proto == x->proto)
			target = s->ports[i].target;
	for (size_t i = 0; target && i < s->n_backends && !r; i++)
		r = add_backend(c, &s->backends[i], target, to);
	return r;
}

/* -EINVAL: nobody has that name. */
static int find(const struct config *c, const struct expect_end *e, uint16_t port,
		struct subjects *to)
{
	struct subject one = {.end = {.labels = &e->labels, .name = e->name}, .port = port};
	int r;

	if (!addr_is_zero(&e->addr))
		return add_address(c, &e->addr, port, to);
	if (e->names.n) {
		one.end = (struct policy_end){.names = &e->names, .somewhere = true};
		return add(to, &one);
	}
	if (e->labelled)
		return add(to, &one);
	r = add_apps_named(c, e->name, port, to);
	return r || to->n ? r : -EINVAL;
}

/* --- what is found --- */

struct found {
	struct policy_verdict v;
	bool refused;
	const char *why; /* where no rule decides */
};

static void judge(const struct config *c, const struct subject *client,
		  const struct subject *server, uint8_t proto, struct found *ret)
{
	const struct policy_port port = {.proto = proto, .port = server->port};

	struct policy_end from = client->end, to = server->end;

	from.cluster = to.cluster = c->cluster.name;
	policy_judge(c->rules, c->n_rules, &from, &to, &port, &ret->v);
	if (ret->v.rule >= 0) {
		ret->refused = ret->v.deny;
	} else if (!client->end.labels) {
		ret->refused = !c->host_access;
		ret->why = "programs outside (agent.host_access)";
	} else if (!server->end.labels) {
		ret->refused = !client->leaves;
		ret->why = "the way out (egress)";
	} else {
		ret->refused = ret->v.no_label;
		ret->why = ret->v.no_label ? "no label in common" : "a label in common";
	}
}

static bool is_rule(const struct config *c, const struct expectation *x, int found)
{
	if (x->no_rule)
		return found < 0;
	if (x->rule_name)
		return found >= 0 && c->rules[found].name &&
		       streq(c->rules[found].name, x->rule_name);
	return x->rule < 0 ||
	       (found >= 0 && rule_number(c->rules, (size_t)found) == (unsigned)x->rule + 1);
}

static bool fits(const struct config *c, const struct expectation *x, const struct found *f)
{
	switch (x->expected) {
	case EXPECT_ALLOW:
		return !f->refused && is_rule(c, x, f->v.rule);
	case EXPECT_DENY:
		return f->refused && is_rule(c, x, f->v.rule);
	case EXPECT_AUDIT:
		return !f->refused && f->v.audit >= 0 && is_rule(c, x, f->v.audit);
	}
	return false;
}

/* --- in words --- */

static void put_end(FILE *f, const struct expect_end *e)
{
	autofree char *labels = e->labelled ? labels_format(&e->labels) : NULL;
	char buf[ADDR_STRLEN];

	if (!addr_is_zero(&e->addr))
		fputs(addr_format(&e->addr, buf), f);
	else if (e->names.n)
		fputs(e->names.v[0], f);
	else
		fprintf(f, "%s%s%s", e->name ? e->name : "", e->name && labels ? " " : "",
			labels ? labels : "");
}

static void put_question(FILE *f, const struct expectation *x)
{
	if (x->title)
		fprintf(f, "%s: ", x->title);
	put_end(f, &x->from);
	fputs(" -> ", f);
	put_end(f, &x->to);
	fprintf(f, " port %u/%s: ", x->port, x->proto == IPPROTO_UDP ? "udp" : "tcp");
}

static void put_expected(FILE *f, const struct expectation *x)
{
	fprintf(f, "expected %s", expected_name(x->expected));
	if (x->no_rule)
		fputs(" by no rule", f);
	else if (x->rule_name)
		fprintf(f, " by rule %s", x->rule_name);
	else if (x->rule >= 0)
		fprintf(f, " by rule %d", x->rule + 1);
}

static void put_rule(FILE *f, const struct config *c, int i)
{
	autofree char *text = config_rule_text(&c->rules[i]);
	unsigned number = rule_number(c->rules, (size_t)i);
	const char *name = c->rules[i].name;

	if (number)
		fprintf(f, "rule %u%s%s%s", number, name ? " (" : "", name ? name : "",
			name ? ")" : "");
	else /* it was added */
		fprintf(f, "rule %s", name);
	fprintf(f, ": %s", text ? text : "?");
}

static void put_found(FILE *f, const struct config *c, const struct found *x)
{
	fprintf(f, "%s by ", x->refused ? "deny" : "allow");
	if (x->v.rule >= 0)
		put_rule(f, c, x->v.rule);
	else
		fputs(x->why, f);
	if (x->v.audit < 0)
		return;
	fputs("; it would be refused by ", f);
	put_rule(f, c, x->v.audit);
}

/* --- the question --- */

/* A connection goes to a backend that may be had: where there is one, it is what counts. */
static int choose(const struct config *c, const struct expectation *x, const struct subject *client,
		  const struct subjects *servers, struct found *ret)
{
	for (size_t i = 0; i < servers->n; i++) {
		struct found f = {0};

		if (!client->end.labels && !servers->v[i].end.labels)
			return -EINVAL;
		judge(c, client, &servers->v[i], x->proto, &f);
		if (i == 0 || (ret->refused && !f.refused))
			*ret = f;
	}
	return 0;
}

static int answer(const struct config *c, const struct config_service *s,
		  const struct expectation *x, struct subjects *clients, struct subjects *servers,
		  FILE *f)
{
	struct found found = {0};
	int r = find(c, &x->from, 0, clients);

	put_question(f, x);
	if (r == -EINVAL)
		fprintf(f, "there is no app %s: give it labels", x->from.name);
	if (r)
		return r;
	r = s ? add_service(c, s, x, servers) : find(c, &x->to, x->port, servers);
	if (r == -EINVAL)
		fprintf(f, "there is no app or service %s: give it labels", x->to.name);
	r = r ? r : choose(c, x, &clients->v[0], servers, &found);
	if (r == -EINVAL && servers->n)
		fputs("neither end is an app or a service: ax is not asked", f);
	if (r)
		return r;
	put_expected(f, x);
	fputs(", found ", f);
	if (!servers->n) {
		fputs("deny: the service has no backend at that port", f);
		return x->expected == EXPECT_DENY && x->rule < 0 && !x->rule_name;
	}
	put_found(f, c, &found);
	return fits(c, x, &found);
}

int expectation_holds_in(const struct config *c, const struct config *const *beside,
			 const struct expectation *x, char **why)
{
	struct subjects clients = {0}, servers = {0};
	size_t size;
	FILE *f;
	int r;

	*why = NULL;
	f = open_memstream(why, &size);
	if (!f)
		return -ENOMEM;
	r = answer(c, x->to.labelled ? NULL : service_of(c, beside, &x->to), x, &clients, &servers,
		   f);
	free(clients.v);
	free(servers.v);
	return fclose(f) ? -ENOMEM : r;
}

int expectation_holds(const struct config *c, const struct expectation *x, char **why)
{
	struct config all = *c; /* with the rules that its egress lists become */
	struct error e = {0};
	int r;

	*why = NULL;
	r = egress_rules(c, NULL, NULL, 0, &all.rules, &all.n_rules, &e);
	if (r)
		return r;
	r = expectation_holds_in(&all, NULL, x, why);
	config_rules_free(all.rules, all.n_rules);
	return r;
}
