/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get interfaces */
#include "tools/cmd/get.h"

static void cell_active(struct table *t, const struct cell *c)
{
	const char *state = member_string(c->item, c->key);

	table_add(t, state);
	if (!state || !streq(state, "active"))
		table_colour(t, COLOUR_YELLOW);
}

static void cell_why(struct table *t, const struct cell *c)
{
	const char *why = member_string(c->item, c->key);

	table_add(t, why ? why : "-");
}

static const struct column columns[] = {
	{{.title = "NAME", .keep = 20, .min = 12}, cell_text, "name"},
	{{.title = "STATE", .keep = 19}, cell_active, "state"},
	{{.title = "RULES", .keep = 10}, cell_int, "rules"},
	{{.title = "TRIGGERS", .keep = 9}, cell_yes, "triggers"},
	{{.title = "WHY", .keep = 5, .min = 20}, cell_why, "why"},
};

const struct noun noun_interfaces = {
	.name = "interfaces",
	.aliases = {"interface", "iface", "ifaces"},
	.keys = {"name"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.name_of = name_member,
};
