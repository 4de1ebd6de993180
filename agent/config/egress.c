// SPDX-License-Identifier: GPL-2.0-or-later
/* Where apps may go outside ax: its words, and the rules that they become. */
#include "config/egress.h"
#include "party.h"
#include "base/domain.h"
#include "base/values.h"
#include "config/added_rules.h"
#include "config/config.h"
#include "rules/priv.h"

static const char expected[] =
	"all, none, or addresses, prefixes and DNS names, maybe with a port and a protocol, such "
	"as "
	"10.0.0.0/8, 192.0.2.7:443, \"[2001:db8::/32]:443/tcp\" or *.example.com:443";

/* --- values --- */

void egress_free(struct egress *e)
{
	strv_free(&e->to);
	*e = (struct egress){0};
}

int egress_copy(const struct egress *from, struct egress *to)
{
	struct egress copy = *from;
	int r;

	copy.to = (struct strv){0};
	r = strv_copy(&from->to, &copy.to);
	if (r == 0)
		*to = copy;
	return r;
}

bool egress_eq(const struct egress *a, const struct egress *b)
{
	return a->mode == b->mode && a->audit == b->audit && strv_eq(&a->to, &b->to) &&
	       addr_eq(&a->source4, &b->source4) && addr_eq(&a->source6, &b->source6);
}

void config_egress_free(struct config_egress *e)
{
	config_side_free(&e->from);
	free(e->name);
	egress_free(&e->egress);
	*e = (struct config_egress){0};
}

bool config_egress_eq(const struct config_egress *a, const struct config_egress *b)
{
	bool same_name = a->name && b->name ? streq(a->name, b->name) : a->name == b->name;

	return same_name && config_side_eq(&a->from, &b->from) && egress_eq(&a->egress, &b->egress);
}

bool egress_is_open(const struct egress *e, bool host_mode)
{
	switch (e->mode) {
	case EGRESS_ALL:
		return true;
	case EGRESS_LIST:
		return e->audit;
	case EGRESS_DEFAULT:
		return host_mode;
	case EGRESS_NONE:
		break;
	}
	return false;
}

uint64_t egress_id(const struct egress *e)
{
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */

	if (e->mode != EGRESS_LIST)
		return 0;
	for (size_t i = 0; i < e->to.n; i++) {
		for (const char *s = e->to.v[i]; *s; s++)
			h = (h ^ (uint8_t)*s) * 0x100000001b3;
		h = (h ^ ',') * 0x100000001b3;
	}
	h = (h ^ e->audit) * 0x100000001b3;
	return h > 1 ? h : 2; /* (see AX_PARTY_USED) */
}

/* --- an entry's text --- */

static bool take_protocol(char *s, unsigned *ret)
{
	static const char *const words[] = {"tcp", "udp", "icmp"};
	char *slash = strrchr(s, '/');
	int i;

	if (!slash || (slash[1] >= '0' && slash[1] <= '9'))
		return true; /* none, or a prefix's length */
	i = value_word(slash + 1, words, ARRAY_SIZE(words));
	if (i < 0)
		return false;
	*ret = 1u << i;
	*slash = 0;
	return true;
}

/* Cuts off ":PORT[-PORT]"; *ports is NULL where there is none. Returns the destination, NULL: it
 * is none. */
static char *take_ports(char *s, char **ports)
{
	char *colon = strchr(s, ':'), *end = strchr(s, ']');

	*ports = NULL;
	if (*s == '[') {
		if (!end || (end[1] && end[1] != ':'))
			return NULL;
		*ports = end[1] ? end + 2 : NULL;
		*end = 0;
		return s + 1;
	}
	if (!colon || strchr(colon + 1, ':'))
		return s;
	*colon = 0;
	*ports = colon + 1;
	return s;
}

static int who_append(struct config_side *s, const struct config_who *w)
{
	int r = array_grow(&s->v, s->n, sizeof(*s->v));

	if (r == 0)
		s->v[s->n++] = *w;
	return r;
}

static const char *take_dest(const char *s, struct config_rule *rule, int *r)
{
	struct config_who w = {.kind = WHO_PREFIX};
	char name[DOMAIN_STRLEN];
	int code = prefix_parse(s, &w.prefix);

	if (code == -ERANGE)
		return "a prefix without host bits";
	/* (a single word is a word that was mistyped) */
	if (code && (want_domain(s, true, name) || !(*s == '*' || strchr(name, '.'))))
		return expected;
	if (!rule)
		return NULL;
	if (code) {
		w.kind = WHO_DOMAIN;
		w.name = strdup(name);
		*r = w.name ? 0 : -ENOMEM;
	}
	*r = *r ? *r : who_append(&rule->to, &w);
	if (*r)
		free(w.name);
	return NULL;
}

static const char *take_entry(char *s, struct config_rule *rule, int *r)
{
	unsigned protocols = 0;
	char *ports, *dest;
	struct range range = {0};

	if (!take_protocol(s, &protocols))
		return expected;
	dest = take_ports(s, &ports);
	if (!dest)
		return expected;
	if (ports && (value_range(ports, UINT16_MAX, false, &range) < 0 || !range.lo))
		return "a port of 1 to 65535 or a range such as 8000-8099 behind the colon";
	if (ports && protocols == RULE_OTHER)
		return "no port with icmp";
	if (rule)
		rule->protocols = protocols;
	if (rule && ports) {
		rule->ports = calloc(1, sizeof(*rule->ports));
		*r = rule->ports ? 0 : -ENOMEM;
		if (*r)
			return NULL;
		rule->ports[0] = (struct port_range){(uint16_t)range.lo, (uint16_t)range.hi};
		rule->n_ports = 1;
	}
	return take_dest(dest, rule, r);
}

const char *want_egress_entry(const char *s, struct config_rule *rule, int *r)
{
	autofree char *copy = strdup(s);

	*r = copy ? 0 : -ENOMEM;
	return *r ? NULL : take_entry(copy, rule, r);
}

/* --- all of it --- */

static const char *add_entries(char *s, struct egress *e, int *r)
{
	const char *want = NULL;
	char *item;

	while (!want && !*r && (item = strsep(&s, ","))) {
		want = e->to.n == EGRESS_ENTRIES_MAX ? "at most 256 entries"
						     : want_egress_entry(item, NULL, r);
		for (char *p = item; *p; p++)
			*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + ('a' - 'A') : *p);
		if (!want && !*r)
			*r = strv_add(&e->to, item);
	}
	return want;
}

static const struct {
	const char *word;
	enum egress_mode mode;
} modes[] = {
	{"all", EGRESS_ALL},	{"none", EGRESS_NONE},	 {"true", EGRESS_ALL},
	{"yes", EGRESS_ALL},	{"on", EGRESS_ALL},	 {"false", EGRESS_DEFAULT},
	{"no", EGRESS_DEFAULT}, {"off", EGRESS_DEFAULT},
};

const char *want_egress(const char *s, struct egress *e, int *r)
{
	autofree char *copy = strdup(s);
	struct egress got = {.mode = EGRESS_LIST};
	const char *want;

	*r = copy ? 0 : -ENOMEM;
	if (*r)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcasecmp(s, modes[i].word) != 0)
			continue;
		e->mode = modes[i].mode;
		strv_free(&e->to);
		return NULL;
	}
	want = add_entries(copy, &got, r);
	if (want || *r) {
		strv_free(&got.to);
		return want;
	}
	strv_free(&e->to);
	e->mode = EGRESS_LIST;
	e->to = got.to;
	return NULL;
}

int spec_parse_egress(const char *s, struct egress *e, struct error *err)
{
	int r;
	const char *want = want_egress(s, e, &r);

	if (r)
		return error_set(err, r, "out of memory");
	return want ? error_set(err, -EINVAL, "egress \"%.80s\" is not valid: use %s", s, want) : 0;
}

char *egress_format(const struct egress *e)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	if (e->mode == EGRESS_ALL || e->mode == EGRESS_NONE)
		fputs(e->mode == EGRESS_ALL ? "all" : "none", f);
	for (size_t i = 0; e->mode == EGRESS_LIST && i < e->to.n; i++)
		fprintf(f, "%s%s", i ? "," : "", e->to.v[i]);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

void config_egress_sources(const struct config_egress *v, size_t n, const struct policy_end *app,
			   struct ax_addr *source4, struct ax_addr *source6)
{
	for (size_t i = 0; i < n; i++) {
		const struct egress *e = &v[i].egress;

		if (!egress_has_source(e) || !policy_side_is(&v[i].from, app))
			continue;
		if (addr_is_zero(source4))
			*source4 = e->source4;
		if (addr_is_zero(source6))
			*source6 = e->source6;
	}
}

/* --- rules --- */

struct built {
	struct config_rule *v;
	size_t n;
	int r;
};

static struct config_rule *rule_new(struct built *b)
{
	b->r = b->r ? b->r : array_grow(&b->v, b->n, sizeof(*b->v));
	if (b->r)
		return NULL;
	b->v[b->n] = (struct config_rule){0};
	return &b->v[b->n++];
}

void config_rules_free(struct config_rule *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		config_rule_free(&v[i]);
	free(v);
}

/* Of whom a list is: either is NULL or 0. */
struct whose {
	const struct config_egress *of_config;
	const struct egress_of *of_app;
	const struct egress *egress;
	uint64_t id;
};

static int set_from(struct config_rule *rule, const struct whose *w)
{
	struct config_who who = {.kind = WHO_EGRESS, .egress = w->id};
	int r;

	rule->origin = RULE_OF_EGRESS;
	if (w->of_config) {
		rule->name = w->of_config->name ? strdup(w->of_config->name) : NULL;
		if (w->of_config->name && !rule->name)
			return -ENOMEM;
		return config_side_copy(&w->of_config->from, &rule->from);
	}
	who.name = strdup(w->of_app->name);
	r = who.name ? who_append(&rule->from, &who) : -ENOMEM;
	if (r)
		free(who.name);
	return r;
}

static void add_anywhere(struct built *b, const struct whose *w, enum rule_action action)
{
	const struct config_who anywhere = {.kind = WHO_PREFIX};
	struct config_rule *rule = rule_new(b);

	if (!rule)
		return;
	rule->action = action;
	rule->audit = action == RULE_DENY && w->egress->audit;
	b->r = set_from(rule, w);
	b->r = b->r ? b->r : who_append(&rule->to, &anywhere);
}

static void add_allows(struct built *b, const struct whose *w)
{
	if (w->egress->mode == EGRESS_ALL)
		add_anywhere(b, w, RULE_ALLOW);
	for (size_t i = 0; w->egress->mode == EGRESS_LIST && i < w->egress->to.n; i++) {
		struct config_rule *rule = rule_new(b);

		if (!rule)
			return;
		rule->action = RULE_ALLOW;
		b->r = set_from(rule, w);
		if (!b->r)
			want_egress_entry(w->egress->to.v[i], rule, &b->r);
	}
}

static void add_whose(struct whose **v, size_t *n, const struct egress_of *of)
{
	uint64_t id = egress_id(of->egress);

	if (!id)
		return;
	for (size_t i = 0; i < *n; i++)
		if ((*v)[i].id == id)
			return;
	(*v)[(*n)++] = (struct whose){.of_app = of, .egress = of->egress, .id = id};
}

static void add_lists(struct built *b, const struct whose *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_allows(b, &v[i]);
	for (size_t i = 0; i < n; i++)
		if (v[i].egress->mode != EGRESS_ALL)
			add_anywhere(b, &v[i], RULE_DENY);
}

static int check_room(const struct built *b, struct error *e)
{
	size_t ranges = 0, prefixes = 0;

	for (size_t i = 0; i < b->n; i++) {
		ranges += b->v[i].n_ports;
		prefixes += config_side_prefixes(&b->v[i].from) + config_side_prefixes(&b->v[i].to);
	}
	if (b->n <= AX_RULES_MAX && ranges <= AX_RULES_MAX && prefixes <= AX_OUTSIDE_MAX)
		return 0;
	return error_set(e, -ENOSPC,
			 "there is no room for so many rules: policy.rules, added rules and the "
			 "entries of all egress lists are %zu together, and %d may be",
			 b->n, AX_RULES_MAX);
}

/* (A config's services are derived already in the rules of its own.) */
static void derive(struct config_rule *rule, const struct config *of, int *r)
{
	if (!of || *r)
		return;
	*r = config_side_derive(&rule->from, of->services, of->n_services);
	if (!*r)
		*r = config_side_derive(&rule->to, of->services, of->n_services);
}

static void derive_beside(struct built *b, const struct config *c,
			  const struct config_beside *beside)
{
	for (size_t i = 0; i < b->n; i++) {
		bool shared = b->v[i].origin == RULE_OF_CLUSTER;

		derive(&b->v[i], beside->services, &b->r);
		derive(&b->v[i], shared ? c : beside->shared, &b->r);
	}
}

static void copy_rules(struct built *b, const struct config *c, enum rule_origin origin)
{
	for (size_t i = 0; c && i < c->n_rules && !b->r; i++) {
		struct config_rule *rule = rule_new(b);

		if (!rule)
			return;
		b->r = config_rule_copy(&c->rules[i], rule);
		rule->origin = origin;
	}
}

int egress_rules(const struct config *c, const struct config_beside *beside,
		 const struct egress_of *others, size_t n, struct config_rule **ret, size_t *n_ret,
		 struct error *e)
{
	size_t n_whose = 0;
	autofree struct whose *whose = calloc(c->n_egress + c->n_apps + n + 1, sizeof(*whose));
	autofree struct egress_of *of = calloc(c->n_apps + 1, sizeof(*of));
	struct built b = {.r = whose && of ? 0 : -ENOMEM};

	copy_rules(&b, c, RULE_OF_CONFIG);
	b.r = b.r || !beside ? b.r : added_rules_place(beside->added, c, &b.v, &b.n);
	copy_rules(&b, beside ? beside->shared : NULL, RULE_OF_CLUSTER);
	for (size_t i = 0; whose && i < c->n_egress && !b.r; i++)
		if (c->egress[i].egress.mode != EGRESS_DEFAULT)
			whose[n_whose++] = (struct whose){.of_config = &c->egress[i],
							  .egress = &c->egress[i].egress};
	for (size_t i = 0; of && i < c->n_apps && !b.r; i++) {
		const struct app_spec *s = &c->apps[i].spec;

		of[i] = (struct egress_of){s->name, &s->egress};
		add_whose(&whose, &n_whose, &of[i]);
	}
	for (size_t i = 0; i < n && !b.r; i++)
		add_whose(&whose, &n_whose, &others[i]);
	if (!b.r)
		add_lists(&b, whose, n_whose);
	if (beside && !b.r)
		derive_beside(&b, c, beside);
	b.r = b.r ? error_set(e, b.r, "out of memory") : check_room(&b, e);
	if (b.r) {
		config_rules_free(b.v, b.n);
		return b.r;
	}
	*ret = b.v;
	*n_ret = b.n;
	return 0;
}
