/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax get names */
#include "tools/cmd/get.h"

static void cell_full_name(struct table *t, const struct cell *c)
{
	const char *name = member_string(c->item, c->key);
	const char *domain = member_string(c->reply, "domain");

	table_addf(t, "%s%s%s", name ? name : "", name && domain ? "." : "", domain ? domain : "");
}

static const struct column columns[] = {
	{{.title = "NAME", .keep = 20, .min = 12}, cell_text, "name"},
	{{.title = "FULL-NAME", .keep = 5, .wide = true}, cell_full_name, "name"},
	{{.title = "NODE", .keep = 17, .wide = true}, cell_text, "node"},
	{{.title = "IP", .keep = 19}, cell_text, "ip4"},
	{{.title = "IP6", .keep = 10}, cell_text, "ip6"},
	{{.title = "KIND", .keep = 15}, cell_text, "kind"},
};

const struct noun noun_names = {
	.name = "names",
	.aliases = {"name"},
	.keys = {"name"},
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.name_of = name_member,
};
