// SPDX-License-Identifier: GPL-2.0-or-later
/* A file of expectations. */
#include "config/expect.h"
#include "base/domain.h"
#include "base/values.h"
#include "config/read.h"
#include "rules/priv.h"

#define EXPECTATIONS_MAX 100000

static const char *const words[] = {"allow", "deny", "audit"};

const char *expected_name(enum expected x)
{
	return words[x];
}

/* --- ends --- */

#define WANT_END                                                                          \
	"the name of an app or service, an address, labels such as k=v, or a mapping of " \
	"app and labels"

static void set_text(struct reader *r, char **to, const char *text)
{
	free(*to);
	*to = strdup(text);
	have(r, *to);
}

/* Apps have no dots in their names. */
static bool is_outside(const char *text)
{
	char domain[DOMAIN_STRLEN];

	return strchr(text, '.') && !want_domain(text, false, domain);
}

static void set_outside(struct reader *r, struct expect_end *to, const char *text)
{
	char domain[DOMAIN_STRLEN];

	want_domain(text, false, domain);
	done(r, strv_add(&to->names, domain));
}

static void read_end_text(struct reader *r, const struct node *n, const char *text,
			  struct expect_end *to)
{
	if (addr_parse(text, &to->addr) == 0)
		return;
	if (strchr(text, '=')) {
		if (labels_parse(text, &to->labels, NULL))
			reject(r, n, "labels such as k=v,k2=v2");
		to->labelled = true;
		return;
	}
	if (!want_name(text))
		set_text(r, &to->name, text);
	else if (is_outside(text))
		set_outside(r, to, text);
	else
		reject(r, n, WANT_END);
}

static void read_end_name(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "the name of an app");

	if (text && want_name(text))
		reject(r, n, "the name of an app");
	else if (text)
		set_text(r, to, text);
}

static void read_end_mapping(struct reader *r, const struct node *n, struct expect_end *to)
{
	static const struct key keys[] = {
		{"app", read_end_name, offsetof(struct expect_end, name)},
		{"labels", read_labels, offsetof(struct expect_end, labels)},
	};

	read_mapping(r, n, keys, ARRAY_SIZE(keys), to);
	to->labelled = node_key(n, "labels");
	if (!to->name && !to->labelled)
		reject(r, n, "app, labels or both");
}

static void read_from(struct reader *r, const struct node *n, void *to)
{
	struct expectation *x = to;
	const char *text;

	if (n->kind == NODE_MAPPING) {
		read_end_mapping(r, n, &x->from);
		return;
	}
	text = scalar_text(r, n, WANT_END);
	if (text)
		read_end_text(r, n, text, &x->from);
	if (x->from.names.n)
		reject(r, n, WANT_END);
}

/* --- ports --- */

static int proto_of(const char *text)
{
	return streq(text, "tcp") ? IPPROTO_TCP : streq(text, "udp") ? IPPROTO_UDP : -1;
}

/* What stands behind the name: ":PORT", and "/udp" behind that; cut off. */
static bool cut_port(char *text, struct expectation *x)
{
	char *slash = strrchr(text, '/'), *colon;
	int proto = slash ? proto_of(slash + 1) : IPPROTO_TCP, port;

	if (proto < 0)
		return false;
	if (slash)
		*slash = '\0';
	colon = strrchr(text, ':');
	port = colon ? port_parse(colon + 1) : -1;
	if (port < 0)
		return false;
	*colon = '\0';
	/* (an IPv6 address without brackets may have no port behind it) */
	if (*text != '[' && strchr(text, ':'))
		return false;
	x->port = (uint16_t)port;
	x->proto = (uint8_t)proto;
	return true;
}

static void read_to(struct reader *r, const struct node *n, void *to)
{
	const char *want = "NAME:PORT, ADDRESS:PORT or [IPV6]:PORT, with /udp behind it for "
			   "datagrams";
	struct expectation *x = to;
	autofree char *copy = NULL;
	const char *text;

	if (n->kind == NODE_MAPPING) {
		read_end_mapping(r, n, &x->to);
		return;
	}
	text = scalar_text(r, n, want);
	copy = text ? strdup(text) : NULL;
	if (!text || !have(r, copy))
		return;
	if (cut_port(copy, x))
		read_end_text(r, n, copy, &x->to);
	else
		reject(r, n, "%s", want);
}

static void read_to_port(struct reader *r, const struct node *n, void *to)
{
	struct expectation *x = to;

	read_port(r, n, &x->port);
}

static void read_proto(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "tcp or udp");
	struct expectation *x = to;
	int proto = text ? proto_of(text) : IPPROTO_TCP;

	if (proto < 0)
		reject(r, n, "tcp or udp");
	else
		x->proto = (uint8_t)proto;
}

/* --- what is expected --- */

static void read_expected(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "allow, deny or audit");
	int i = text ? value_word(text, words, ARRAY_SIZE(words)) : -1;
	struct expectation *x = to;

	if (text && i < 0)
		reject(r, n, "allow, deny or audit");
	else if (text)
		x->expected = (enum expected)i;
}

static void read_by_rule(struct reader *r, const struct node *n, void *to)
{
	const char *want = "the number or the name of a rule, or none", *text;
	struct expectation *x = to;
	uint64_t number;

	text = scalar_text(r, n, want);
	if (!text)
		return;
	if (streq(text, "none"))
		x->no_rule = true;
	else if (value_number(text, INT32_MAX, &number) == 0 && number)
		x->rule = (int)number - 1;
	else if (value_is_name(text))
		set_text(r, &x->rule_name, text);
	else
		reject(r, n, "%s", want);
}

static void read_title(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "a text");

	if (text)
		set_text(r, to, text);
}

static void read_one(struct reader *r, const struct node *n, void *to)
{
	static const struct key keys[] = {
		{"name", read_title, offsetof(struct expectation, title)},
		{"from", read_from, 0},
		{"to", read_to, 0},
		{"port", read_to_port, 0},
		{"protocol", read_proto, 0},
		{"expect", read_expected, 0},
		{"rule", read_by_rule, 0},
	};
	static const char *const needed[] = {"from", "to", "expect"};
	struct expectations *all = to;
	struct expectation *x;

	if (!done(r, array_grow(&all->v, all->n, sizeof(*all->v))))
		return;
	x = &all->v[all->n++];
	*x = (struct expectation){
		.line = n->line, .column = n->column, .proto = IPPROTO_TCP, .rule = -1};
	if (!read_mapping(r, n, keys, ARRAY_SIZE(keys), x))
		return;
	for (size_t k = 0; k < ARRAY_SIZE(needed); k++) {
		if (node_key(n, needed[k]))
			continue;
		reject(r, n, "from, to and expect in each");
		return;
	}
	if (!x->port)
		reject(r, n, "a port: 'to: NAME:PORT', or port:");
}

static void read_all(struct reader *r, const struct node *n, void *to)
{
	read_list(r, n, "expectations, each with from, to and expect", EXPECTATIONS_MAX, read_one,
		  to);
}

static void read_config(struct reader *r, const struct node *n, void *to)
{
	const char *text = scalar_text(r, n, "the path of a config, or its text behind '|'");
	struct expectations *all = to;

	if (!text)
		return;
	set_text(r, &all->config, text);
	all->config_line = n->line;
}

int expectations_parse(const char *text, size_t len, struct expectations *ret,
		       struct config_errors *errs)
{
	static const struct key keys[] = {{"config", read_config, 0}, {"tests", read_all, 0}};
	struct reader r = {.errs = errs};
	struct node root;
	int code;

	*errs = (struct config_errors){0};
	*ret = (struct expectations){0};
	code = node_parse(text, len, &root, errs);
	if (code == 0) {
		read_mapping(&r, &root, keys, ARRAY_SIZE(keys), ret);
		if (!errs->n && !r.out_of_memory && !ret->n)
			reject(&r, &root, "tests: with a list of expectations");
		code = r.out_of_memory ? -ENOMEM : errs->n ? -EINVAL : 0;
	}
	node_free(&root);
	return code;
}

static void end_free(struct expect_end *e)
{
	free(e->name);
	labels_free(&e->labels);
	strv_free(&e->names);
}

void expectations_free(struct expectations *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->v[i].title);
		free(x->v[i].rule_name);
		end_free(&x->v[i].from);
		end_free(&x->v[i].to);
	}
	free(x->v);
	free(x->config);
	*x = (struct expectations){0};
}
