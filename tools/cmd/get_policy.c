/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get policy */
#include "tools/cmd/get.h"

/* What a rule is called by: its number, or the name of one that was added. */
static void cell_rule(struct table *t, const struct cell *c)
{
	if (json_object_get(c->item, c->key))
		cell_int(t, c);
	else
		table_add(t, member_string(c->item, "name"));
}

static void cell_action(struct table *t, const struct cell *c)
{
	const char *action = member_string(c->item, c->key);

	table_addf(t, "%s%s", action ? action : "?",
		   member_true(c->item, "audit") ? " (audit)" : "");
}

static void cell_last(struct table *t, const struct cell *c)
{
	if (json_object_get(c->item, c->key))
		cell_age(t, c);
	else
		table_add(t, "never");
}

static const struct column columns[] = {
	{{.title = "RULE", .keep = 20}, cell_rule, "rule"},
	{{.title = "NAME", .keep = 3, .wide = true}, cell_text, "name"},
	{{.title = "ORIGIN", .keep = 4}, cell_text, "origin"},
	{{.title = "ACTION", .keep = 19}, cell_action, "action"},
	{{.title = "FITS", .keep = 12, .min = 20}, cell_text, "text"},
	{{.title = "HITS", .keep = 18}, cell_int, "hits"},
	{{.title = "LAST", .keep = 10}, cell_last, "last"},
};

static void name_of(const json_t *item, char *buf, size_t size)
{
	const char *name = member_string(item, "name");

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%lld", member_int(item, "rule"));
}

const struct noun noun_policy = {
	.name = "policy",
	.aliases = {"rules", "rule"},
	.keys = {"rule", "name"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.name_of = name_of,
};
