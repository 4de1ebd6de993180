/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get nodes */
#include "tools/cmd/get.h"

/* When an agent that is away was there last. */
static void cell_seen(struct table *t, const struct cell *c)
{
	const char *state = member_string(c->item, "state");

	if (state && streq(state, "up"))
		table_add(t, "now");
	else
		cell_age(t, c);
}

static void cell_node_state(struct table *t, const struct cell *c)
{
	const char *state = member_string(c->item, c->key);

	table_add(t, state);
	table_colour(t, state && streq(state, "up") ? COLOUR_GREEN : COLOUR_YELLOW);
}

/* "3", or "2: revision 3: ..." where it could not be applied. */
static void cell_config(struct table *t, const struct cell *c)
{
	const char *why = member_string(c->item, "config_why");
	long long revision = member_int(c->item, c->key);

	if (why)
		table_addf(t, "%lld, not %s", revision, why);
	else if (revision)
		table_addf(t, "%lld", revision);
	else
		table_add(t, NULL);
	if (why)
		table_colour(t, COLOUR_YELLOW);
}

static const struct column columns[] = {
	{{.title = "NAME", .keep = 20, .min = 12}, cell_text, "name"},
	{{.title = "ADDRESS", .keep = 19}, cell_text, "address"},
	{{.title = "STATE", .keep = 18}, cell_node_state, "state"},
	{{.title = "BLOCKS", .keep = 14, .min = 14}, cell_list, "blocks"},
	{{.title = "APPS", .keep = 13}, cell_int, "apps"},
	{{.title = "AGE", .keep = 12}, cell_age, "since"},
	{{.title = "SEEN", .keep = 11}, cell_seen, "seen"},
	{{.title = "CONFIG", .keep = 10, .min = 10}, cell_config, "config"},
	{{.title = "ADDRESS6", .keep = 3, .wide = true}, cell_text, "address6"},
	{{.title = "SELF", .keep = 4, .wide = true}, cell_yes, "self"},
	{{.title = "VERSION", .keep = 5, .wide = true}, cell_text, "version"},
};

const struct noun noun_nodes = {
	.name = "nodes",
	.aliases = {"node"},
	.keys = {"name", "address", "address6"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.name_of = name_member,
};
