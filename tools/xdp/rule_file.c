/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A rule list as a rule file, and rules as keys and values. */
#include <arpa/inet.h>

#include "rules/defaults.h"
#include "tools/xdp/common.h"

/* --- rules --- */

void cmd_xdp_rule_words_free(struct rule_word *w, size_t n)
{
	for (size_t i = 0; w && i < n; i++) {
		free(w[i].key);
		free(w[i].value);
	}
	free(w);
}

static int add_word(struct rule_word *w, const char *key, const char *const *value, size_t n)
{
	size_t size;
	FILE *f = open_memstream(&w->value, &size);

	w->key = strdup(key);
	for (size_t i = 0; f && i < n; i++)
		fprintf(f, "%s%s", i ? " " : "", value[i]);
	return f && fclose(f) == 0 && w->key ? 0 : -ENOMEM;
}

int cmd_xdp_rule_words(const struct rule *r, struct rule_word **ret, size_t *n)
{
	autofree char *line = rule_format(r);
	autofree const char **words = NULL;
	struct rule_word *w = NULL;
	size_t all = 0, spaces = 0;
	char *rest = line;
	int code = 0;

	if (!line)
		return -ENOMEM;
	for (const char *p = line; *p; p++)
		spaces += *p == ' ';
	words = calloc(spaces + 1, sizeof(*words));
	w = calloc(spaces / 2 + 2, sizeof(*w));
	if (!words || !w) {
		free(w);
		return -ENOMEM;
	}
	while (rest)
		words[all++] = strsep(&rest, " ");
	*n = 0;
	for (size_t i = 0; i + 1 < all && !code; ++*n) {
		size_t n_value = rule_value_words(words[i], &words[i + 1], all - i - 1);

		code = add_word(&w[*n], words[i], &words[i + 1], n_value);
		i += 1 + n_value;
	}
	if (code)
		cmd_xdp_rule_words_free(w, *n);
	else
		*ret = w;
	return code;
}

char *cmd_xdp_rule_text(const struct rule *r)
{
	struct rule nameless = *r; /* only borrows what is in it */

	nameless.name = NULL;
	return rule_format(&nameless);
}

/* --- YAML: every text in quotes, for none may be taken for something else --- */

static void put_quoted(const char *s, FILE *to)
{
	putc('"', to);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', to);
		putc(*s, to);
	}
	putc('"', to);
}

static int put_rule(const struct rule *r, FILE *to)
{
	struct rule_word *w;
	size_t n;
	int code = cmd_xdp_rule_words(r, &w, &n);

	if (code)
		return code;
	fputs("  - {", to);
	for (size_t i = 0; i < n; i++) {
		fprintf(to, "%s%s: ", i ? ", " : "", w[i].key);
		put_quoted(w[i].value, to);
	}
	fputs("}\n", to);
	cmd_xdp_rule_words_free(w, n);
	return 0;
}

static void put_set(const struct rule_set_def *s, FILE *to)
{
	bool ports = s->kind == SET_PORTS;
	char buf[ADDR_STRLEN];

	if (s->kind == SET_FLOWS) {
		fprintf(to, "  \"%s\":\n    flows: []\n", s->name);
		return;
	}
	fprintf(to, "  \"%s\":\n%s    %s:%s\n", s->name, s->timed ? "    timed: yes\n" : "",
		ports ? "ports" : "prefixes", s->n ? "" : " []");
	for (size_t i = 0; i < s->n; i++) {
		if (!ports)
			fprintf(to, "      - \"%s\"\n", prefix_format(&s->prefixes[i], buf));
		else if (s->ports[i].lo == s->ports[i].hi)
			fprintf(to, "      - %u\n", s->ports[i].lo);
		else
			fprintf(to, "      - %u-%u\n", s->ports[i].lo, s->ports[i].hi);
	}
}

static void put_backend(const struct balance_backend *b, FILE *to)
{
	char buf[ADDR_STRLEN];

	fprintf(to, "      - {address: \"%s\"",
		b->port ? addr_port_format(&b->addr, htons(b->port), buf)
			: addr_format(&b->addr, buf));
	if (b->weight != BACKEND_WEIGHT)
		fprintf(to, ", weight: %u", b->weight);
	if (b->has_quic_id)
		fprintf(to, ", quic-id: %u", b->quic_id);
	fputs(b->drain ? ", drain: yes}\n" : "}\n", to);
}

static void put_sources(const struct balancer *b, FILE *to)
{
	bool four = !addr_is_zero(&b->source4), six = !addr_is_zero(&b->source6);
	char buf4[ADDR_STRLEN], buf6[ADDR_STRLEN];

	if (four || six)
		fprintf(to, "    source: \"%s%s%s\"\n", four ? addr_format(&b->source4, buf4) : "",
			four && six ? "," : "", six ? addr_format(&b->source6, buf6) : "");
}

static void put_balancer(const struct balancer *b, FILE *to)
{
	fprintf(to, "  \"%s\":\n    mode: %s\n", b->name, balance_mode_name(b->mode));
	if (b->affinity != BALANCE_BY_FLOW)
		fprintf(to, "    affinity: %s\n", balance_affinity_name(b->affinity));
	put_sources(b, to);
	if (b->mode == BALANCE_GUE)
		fprintf(to, "    port: %u\n", b->gue_port);
	if (b->service) {
		fprintf(to, "    service: \"%s\"\n", b->service);
		return;
	}
	fprintf(to, "    backends:%s\n", b->n ? "" : " []");
	for (size_t i = 0; i < b->n; i++)
		put_backend(&b->backends[i], to);
}

static void put_policies(const struct rule_list *l, FILE *to)
{
	static const char *const names[] = {
		[AX_POLICY_RULES] = "rules",
		[AX_POLICY_PASS] = "pass",
		[AX_POLICY_DROP] = "drop",
	};
	bool any = false;

	for (unsigned i = 1; i < AX_REASON_POLICIES; i++) {
		if (l->policy[i] == rule_reasons[i].policy || l->policy[i] > AX_POLICY_DROP)
			continue;
		fputs(any ? "" : "classes:\n", to);
		fprintf(to, "  %s: %s\n", rule_reasons[i].name, names[l->policy[i]]);
		any = true;
	}
}

int cmd_xdp_put_yaml(const struct rule_list *l, FILE *to)
{
	int r = 0;

	fprintf(to, "default: %s\n", ax_verdict_names[l->default_action]);
	if (l->direction != DIRECTION_INGRESS)
		fprintf(to, "direction: %s\n", xdp_direction_name(l->direction));
	if (l->track != TRACK_AUTO)
		fprintf(to, "track: %s\n", list_track_name(l->track));
	if (l->mode != ATTACH_AUTO)
		fprintf(to, "mode: %s\n", cmd_xdp_mode_name(l->mode));
	if (l->priority)
		fprintf(to, "priority: %u\n", l->priority);
	put_policies(l, to);
	fputs(l->n_sets ? "sets:\n" : "", to);
	for (size_t i = 0; i < l->n_sets; i++)
		put_set(&l->sets[i], to);
	fputs(l->n_balancers ? "balancers:\n" : "", to);
	for (size_t i = 0; i < l->n_balancers; i++)
		put_balancer(&l->balancers[i], to);
	fputs(l->n_rules ? "rules:\n" : "", to);
	for (size_t i = 0; i < l->n_rules && !r; i++)
		r = put_rule(&l->rules[i], to);
	return r;
}
