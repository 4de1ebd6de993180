// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section policy:. */
#include "config/policy.h"
#include "party.h"
#include "config/read.h"
#include "base/domain.h"
#include "base/values.h"
#include "rules/priv.h"

static const char *const actions[] = {"deny", "allow", "log"};
static const char *const protocols[] = {"tcp", "udp", "icmp"};

const char *rule_action_name(enum rule_action a)
{
	return actions[a];
}

const char *rule_origin_name(enum rule_origin o)
{
	static const char *const names[] = {[RULE_OF_CONFIG] = "config",
					    [RULE_ADDED] = "added",
					    [RULE_OF_CLUSTER] = "cluster",
					    [RULE_OF_EGRESS] = "egress"};

	return names[o];
}

unsigned rule_number(const struct config_rule *v, size_t i)
{
	unsigned n = 1;

	for (size_t k = 0; k < i; k++)
		n += v[k].origin != RULE_ADDED;
	return v[i].origin == RULE_ADDED ? 0 : n;
}

/* --- sides --- */

#define WANT_WHO                                                                            \
	"labels such as k=v,k2=v2, the name of an app or service, or an address or prefix " \
	"outside ax"
#define WANT_WHOM WANT_WHO ", or a DNS name such as *.example.com"

static struct config_who *who_add(struct reader *r, struct config_side *s)
{
	if (!done(r, array_grow(&s->v, s->n, sizeof(*s->v))))
		return NULL;
	s->v[s->n] = (struct config_who){0};
	return &s->v[s->n++];
}

static void read_who_labels(struct reader *r, const struct node *n, struct config_side *s)
{
	size_t before = r->errs->n;
	struct labels l = {0};
	struct config_who *w;

	read_labels(r, n, &l);
	w = l.n && r->errs->n == before ? who_add(r, s) : NULL;
	if (w) {
		w->kind = WHO_LABELS;
		w->labels = l;
	} else {
		labels_free(&l);
	}
}

/* What an app asks for there is its own, or the host's: it is not switched. */
static bool is_loopback(const struct prefix *p)
{
	static const struct ax_addr one = {.b[15] = 1};

	return addr_is_v4(&p->addr) ? p->len >= 96 + 8 && p->addr.b[12] == 127
				    : p->len == 128 && addr_eq(&p->addr, &one);
}

/* With `domains` names of the DNS, too: what has a dot is one, unless it is another cluster's app
 * (know_peers()). */
static void read_who_text(struct reader *r, const struct node *n, const char *text, bool domains,
			  struct config_side *s)
{
	char right[ADDR_STRLEN], domain[DOMAIN_STRLEN];
	struct config_who *w;
	struct prefix p;
	int code;

	if (strchr(text, '=')) {
		read_who_labels(r, n, s);
		return;
	}
	code = prefix_parse(text, &p);
	if (code == -ERANGE && prefix_without_host_bits(text, &p) == 0) {
		reject(r, n, "a prefix without host bits: %s", prefix_format(&p, right));
		return;
	}
	if (!code && is_loopback(&p)) {
		reject(r, n,
		       "an address outside ax, and not a loopback address: those are never asked "
		       "about");
		return;
	}
	domains = domains && code && want_name(text);
	if (code && (domains ? want_domain(text, true, domain) : want_app_name(text))) {
		reject(r, n, "%s", domains ? WANT_WHOM : WANT_WHO);
		return;
	}
	w = who_add(r, s);
	if (!w)
		return;
	w->kind = domains ? WHO_DOMAIN : code ? WHO_NAME : WHO_PREFIX;
	if (!code) {
		w->prefix = p;
		return;
	}
	w->name = strdup(domains ? domain : text);
	have(r, w->name);
}

static void read_any_who(struct reader *r, const struct node *n, bool domains, void *to)
{
	const char *text;

	if (n->kind == NODE_MAPPING) {
		read_who_labels(r, n, to);
		return;
	}
	text = scalar_text(r, n, domains ? WANT_WHOM : WANT_WHO);
	if (text)
		read_who_text(r, n, text, domains, to);
}

static void read_who(struct reader *r, const struct node *n, void *to)
{
	read_any_who(r, n, false, to);
}

static void read_whom(struct reader *r, const struct node *n, void *to)
{
	read_any_who(r, n, true, to);
}

#define WHO_MAX 256 /* of a side */

static void read_side(struct reader *r, const struct node *n, read_fn one, void *to)
{
	if (node_is_null(n))
		return;
	if (n->kind != NODE_LIST)
		one(r, n, to);
	else if (!n->n)
		reject(r, n, "at least one of: " WANT_WHO); /* nobody is not everybody */
	else
		read_list(r, n, "labels, names and prefixes", WHO_MAX, one, to);
}

static void read_from(struct reader *r, const struct node *n, void *to)
{
	read_side(r, n, read_who, to);
}

static void read_to(struct reader *r, const struct node *n, void *to)
{
	read_side(r, n, read_whom, to);
}

/* --- ports and protocols --- */

#define RANGES_MAX 64 /* of a rule */

static void read_range(struct reader *r, const struct node *n, void *to)
{
	const char *what = "a port of 1 to 65535 or a range such as 8000-8099";
	const char *text = scalar_text(r, n, what);
	struct config_rule *rule = to;
	struct range range;

	if (!text)
		return;
	if (value_range(text, UINT16_MAX, false, &range) < 0 || range.lo == 0) {
		reject(r, n, "%s", what);
		return;
	}
	if (!done(r, array_grow(&rule->ports, rule->n_ports, sizeof(*rule->ports))))
		return;
	rule->ports[rule->n_ports++] = (struct port_range){(uint16_t)range.lo, (uint16_t)range.hi};
}

static void read_rule_ports(struct reader *r, const struct node *n, void *to)
{
	if (n->kind == NODE_LIST && n->n)
		read_list(r, n, "ports", RANGES_MAX, read_range, to);
	else
		read_range(r, n, to);
}

static void read_one_protocol(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "tcp, udp or icmp");
	int i = text ? value_word(text, protocols, ARRAY_SIZE(protocols)) : -1;

	if (text && i < 0)
		reject(r, n, "tcp, udp or icmp");
	else if (text)
		((struct config_rule *)to)->protocols |= 1u << i;
}

static void read_protocol(struct reader *r, const struct node *n, void *to)
{
	if (n->kind == NODE_LIST && n->n)
		read_list(r, n, "protocols", ARRAY_SIZE(protocols), read_one_protocol, to);
	else
		read_one_protocol(r, n, to);
}

static void read_rule_name(struct reader *r, const struct node *n, void *to)
{
	char **name = to;

	static const char what[] = "a name of 1 to 63 letters, digits and . _ - :";
	const char *text = scalar_text(r, n, what);

	if (!text)
		return;
	if (!value_is_name(text)) {
		reject(r, n, "%s", what);
		return;
	}
	free(*name);
	*name = strdup(text);
	have(r, *name);
}

/* --- rules --- */

static void read_body(struct reader *r, const struct node *n, struct config_rule *rule)
{
	static const struct key keys[] = {
		{"from", read_from, offsetof(struct config_rule, from)},
		{"to", read_to, offsetof(struct config_rule, to)},
		{"port", read_rule_ports, 0},
		{"ports", read_rule_ports, 0},
		{"protocol", read_protocol, 0},
		{"name", read_rule_name, offsetof(struct config_rule, name)},
		{"audit", read_bool, offsetof(struct config_rule, audit)},
	};

	if (read_mapping(r, n, keys, ARRAY_SIZE(keys), rule) && rule->n_ports &&
	    rule->protocols == RULE_OTHER)
		reject(r, n, "no port in a rule of icmp alone");
}

static void read_allow(struct reader *r, const struct node *n, void *to)
{
	((struct config_rule *)to)->action = RULE_ALLOW;
	read_body(r, n, to);
}

static void read_deny(struct reader *r, const struct node *n, void *to)
{
	read_body(r, n, to);
}

static void read_log(struct reader *r, const struct node *n, void *to)
{
	((struct config_rule *)to)->action = RULE_LOG;
	read_body(r, n, to);
}

/* A deny rule on trial. */
static void read_audit(struct reader *r, const struct node *n, void *to)
{
	read_body(r, n, to);
	((struct config_rule *)to)->audit = true;
}

static void read_rule(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {{"allow", read_allow, 0},
					  {"deny", read_deny, 0},
					  {"log", read_log, 0},
					  {"audit", read_audit, 0}};
	struct config *c = to;
	struct config_rule *rule = &c->rules[c->n_rules++];

	/* a rule that says nothing, or both, must not be taken for one that denies everything */
	if (n->kind == NODE_MAPPING && n->n > 1)
		reject(r, n,
		       "one of allow, deny, log and audit in each rule, and all else behind it, "
		       "as in deny: {name: NAME, from: WHO}");
	else if (node_is_null(n) || (n->kind == NODE_MAPPING && n->n == 0))
		reject(r, n, "a mapping with allow, deny, log or audit");
	else
		read_mapping(r, n, keys, ARRAY_SIZE(keys), rule);
}

static void read_rules(struct reader *r, const struct node *n, void *to)
{
	struct config *c = to;

	c->rules = calloc(AX_RULES_MAX, sizeof(*c->rules));
	if (have(r, c->rules))
		read_list(r, n, "rules, each with allow, deny, log or audit", AX_RULES_MAX,
			  read_rule, c);
}

/* --- where apps may go outside --- */

static void read_one_egress(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"from", read_from, offsetof(struct config_egress, from)},
		{"to", read_egress_to, offsetof(struct config_egress, egress)},
		{"source", read_egress_source, offsetof(struct config_egress, egress)},
		{"audit", read_bool, offsetof(struct config_egress, egress.audit)},
		{"name", read_rule_name, offsetof(struct config_egress, name)},
	};
	struct config *c = to;
	struct config_egress *e = &c->egress[c->n_egress++];

	if (read_mapping(r, n, keys, ARRAY_SIZE(keys), e) && e->egress.mode == EGRESS_DEFAULT &&
	    !egress_has_source(&e->egress))
		reject(r, n, "to: all, none, or what those apps may reach; or source");
}

static void read_egresses(struct reader *r, const struct node *n, void *to)
{
	struct config *c = to;

	c->egress = calloc(AX_RULES_MAX, sizeof(*c->egress));
	if (have(r, c->egress))
		read_list(r, n, "from, to and audit", AX_RULES_MAX, read_one_egress, c);
}

void read_policy(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"labels", read_labels, offsetof(struct config, default_labels)},
		{"audit", read_bool, offsetof(struct config, policy_audit)},
		{"rules", read_rules, 0},
		{"egress", read_egresses, 0},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
}

/* --- when the whole file is read --- */

static int derive_addresses(struct config_side *s, const struct service_backend *b)
{
	struct config_who w = {.derived = true, .kind = WHO_PREFIX};

	for (uint32_t i = 0; i <= b->more; i++) {
		if (array_grow(&s->v, s->n, sizeof(w)))
			return -ENOMEM;
		w.prefix = (struct prefix){.addr = service_backend_address(b, i), .len = 128};
		s->v[s->n++] = w;
	}
	return 0;
}

static int derive_backend(struct config_side *s, const struct service_backend *b)
{
	struct config_who w = {.derived = true};
	int r;

	if (b->app) {
		w.kind = WHO_NAME;
		w.name = strdup(b->app);
		r = w.name ? 0 : -ENOMEM;
	} else if (b->labels.n) {
		w.kind = WHO_LABELS;
		r = labels_copy(&b->labels, &w.labels);
	} else {
		return derive_addresses(s, b);
	}
	r = r ? r : array_grow(&s->v, s->n, sizeof(w));
	if (r == 0)
		s->v[s->n++] = w;
	return r;
}

static bool names(const struct config_who *w, const char *name)
{
	return w->kind == WHO_NAME && !w->derived && streq(w->name, name);
}

/* A service's name stands for those who serve it. */
int config_side_derive(struct config_side *s, const struct config_service *v, size_t n)
{
	size_t given = s->n;
	int r = 0;

	for (size_t i = 0; i < given && !r; i++) {
		for (size_t k = 0; k < n && !r; k++) {
			if (!names(&s->v[i], v[k].name))
				continue;
			for (size_t b = 0; b < v[k].n_backends && !r; b++)
				r = derive_backend(s, &v[k].backends[b]);
		}
	}
	return r;
}

bool config_side_has_name(const struct config_side *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (names(&s->v[i], name))
			return true;
	return false;
}

/* What looks like a name of the DNS is an app's of another cluster, if that is a peer. */
static void know_peers(const struct config *c, struct config_side *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].kind == WHO_DOMAIN && !want_app_name(s->v[i].name) &&
		    config_cluster_has_peer_of(&c->cluster, s->v[i].name))
			s->v[i].kind = WHO_NAME;
}

static int derive_side(const struct config *c, struct config_side *s)
{
	know_peers(c, s);
	return config_side_derive(s, c->services, c->n_services);
}

size_t config_side_prefixes(const struct config_side *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->v[i].kind == WHO_PREFIX;
	return n;
}

static void check_egress(struct reader *r, const struct node *root, const struct config *c)
{
	struct config_rule *rules = NULL;
	struct error e = {0};
	size_t n = 0;
	int code = egress_rules(c, NULL, NULL, 0, &rules, &n, &e);

	if (code == -ENOSPC)
		report(r, root, "egress lists and policy.rules",
		       "at most %d rules, ports and ranges of all together, and %d prefixes",
		       AX_RULES_MAX, AX_OUTSIDE_MAX);
	else
		done(r, code);
	config_rules_free(rules, n);
}

void finish_policy(struct reader *r, const struct node *root, struct config *c)
{
	size_t ranges = 0, prefixes = 0;

	for (size_t i = 0; i < c->n_rules; i++) {
		struct config_rule *rule = &c->rules[i];

		if (!done(r, derive_side(c, &rule->from)) || !done(r, derive_side(c, &rule->to)))
			return;
		rule->audit |= c->policy_audit && rule->action == RULE_DENY;
		ranges += rule->n_ports;
		prefixes += config_side_prefixes(&rule->from) + config_side_prefixes(&rule->to);
	}
	for (size_t i = 0; i < c->n_egress; i++) {
		if (!done(r, derive_side(c, &c->egress[i].from)))
			return;
		c->egress[i].egress.audit |= c->policy_audit;
	}
	if (ranges > AX_RULES_MAX)
		report(r, root, "policy.rules", "at most %d ports and ranges of all rules together",
		       AX_RULES_MAX);
	else if (prefixes > AX_OUTSIDE_MAX)
		report(r, root, "policy.rules", "at most %d prefixes of all rules together",
		       AX_OUTSIDE_MAX);
	else
		check_egress(r, root, c);
}

/* --- rules as values --- */

void config_side_free(struct config_side *s)
{
	for (size_t i = 0; i < s->n; i++) {
		labels_free(&s->v[i].labels);
		free(s->v[i].name);
	}
	free(s->v);
	*s = (struct config_side){0};
}

void config_rule_free(struct config_rule *r)
{
	free(r->name);
	config_side_free(&r->from);
	config_side_free(&r->to);
	free(r->ports);
	*r = (struct config_rule){0};
}

static bool text_eq(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static bool who_eq(const struct config_who *a, const struct config_who *b)
{
	return a->kind == b->kind && labels_eq(&a->labels, &b->labels) &&
	       text_eq(a->name, b->name) && a->prefix.len == b->prefix.len &&
	       addr_eq(&a->prefix.addr, &b->prefix.addr) && a->egress == b->egress;
}

bool config_side_eq(const struct config_side *a, const struct config_side *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!who_eq(&a->v[i], &b->v[i]))
			return false;
	return true;
}

static int who_copy(const struct config_who *from, struct config_who *to)
{
	*to = *from;
	to->labels = (struct labels){0};
	to->name = from->name ? strdup(from->name) : NULL;
	if (from->name && !to->name)
		return -ENOMEM;
	return labels_copy(&from->labels, &to->labels);
}

int config_side_copy(const struct config_side *from, struct config_side *to)
{
	*to = (struct config_side){0};
	to->v = from->n ? calloc(from->n, sizeof(*to->v)) : NULL;
	if (from->n && !to->v)
		return -ENOMEM;
	for (; to->n < from->n; to->n++) {
		if (who_copy(&from->v[to->n], &to->v[to->n]) == 0)
			continue;
		to->n++;
		config_side_free(to);
		return -ENOMEM;
	}
	return 0;
}

static int ports_copy(const struct config_rule *from, struct config_rule *to)
{
	to->ports = from->n_ports ? calloc(from->n_ports, sizeof(*to->ports)) : NULL;
	if (!to->ports)
		return from->n_ports ? -ENOMEM : 0;
	memcpy(to->ports, from->ports, from->n_ports * sizeof(*to->ports));
	to->n_ports = from->n_ports;
	return 0;
}

int config_rule_copy(const struct config_rule *from, struct config_rule *to)
{
	struct config_rule copy = {.action = from->action,
				   .origin = from->origin,
				   .audit = from->audit,
				   .protocols = from->protocols};
	int r = config_side_copy(&from->from, &copy.from);

	copy.name = from->name ? strdup(from->name) : NULL;
	if (from->name && !copy.name)
		r = -ENOMEM;
	r = r ? r : config_side_copy(&from->to, &copy.to);
	r = r ? r : ports_copy(from, &copy);
	if (r)
		config_rule_free(&copy);
	else
		*to = copy;
	return r;
}

bool config_rule_eq(const struct config_rule *a, const struct config_rule *b)
{
	return a->action == b->action && a->audit == b->audit && text_eq(a->name, b->name) &&
	       config_side_eq(&a->from, &b->from) && config_side_eq(&a->to, &b->to) &&
	       a->protocols == b->protocols && a->n_ports == b->n_ports &&
	       (!a->n_ports || memcmp(a->ports, b->ports, a->n_ports * sizeof(*a->ports)) == 0);
}

static void who_write(FILE *f, const struct config_who *w)
{
	autofree char *labels = w->kind == WHO_LABELS ? labels_format(&w->labels) : NULL;
	char buf[ADDR_STRLEN];

	switch (w->kind) {
	case WHO_LABELS:
		fputs(labels ? labels : "?", f);
		break;
	case WHO_EGRESS:
		fprintf(f, "egress of %s", w->name);
		break;
	case WHO_NAME:
	case WHO_DOMAIN:
		fputs(w->name, f);
		break;
	case WHO_PREFIX:
		fputs(w->prefix.len ? prefix_format(&w->prefix, buf) : "outside", f);
		break;
	}
}

static void side_write(FILE *f, const struct config_side *s)
{
	const char *before = "";

	if (!s->n)
		fputs("any app", f);
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].derived)
			continue;
		fputs(before, f);
		who_write(f, &s->v[i]);
		before = " or ";
	}
}

static void ports_write(FILE *f, const struct config_rule *r)
{
	const char *before = " ";

	for (size_t i = 0; i < r->n_ports; i++) {
		fprintf(f, "%s%u", i ? "," : " port ", r->ports[i].first);
		if (r->ports[i].last != r->ports[i].first)
			fprintf(f, "-%u", r->ports[i].last);
	}
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (!(r->protocols >> i & 1))
			continue;
		fprintf(f, "%s%s", before, protocols[i]);
		before = ",";
	}
}

char *config_rule_text(const struct config_rule *r)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "%s ", actions[r->action]);
	side_write(f, &r->from);
	fputs(" -> ", f);
	side_write(f, &r->to);
	ports_write(f, r);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}
