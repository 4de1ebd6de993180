/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd.h"
#include "datapath.h"
#include "table.h"
#include "text.h"

static const struct table_column columns[] = {
	{.title = "FEATURE", .keep = 9},
	{.title = "STATE", .keep = 8},
	{.title = "NEEDS", .keep = 5, .wide = true},
	{.title = "WHY/COST", .keep = 7, .min = 20},
};

struct diagnosis {
	struct table table;
	json_t *list; /* NULL: a table is wanted */
	unsigned off, missing;
};

static void diagnosis_free(struct diagnosis *d)
{
	table_free(&d->table);
	json_decref(d->list);
}

static int add_json(struct diagnosis *d, const struct feature_report *f)
{
	json_t *j =
		json_pack("{s:s,s:b,s:b}", "name", f->name, "on", f->on, "required", f->required);

	if (!f->on && f->why[0])
		json_object_set_new(j, "why", json_string(f->why));
	if (f->cost)
		json_object_set_new(j, "cost", json_string(f->cost));
	if (f->needs)
		json_object_set_new(j, "needs", json_string(f->needs));
	return json_array_append_new(d->list, j) ? -ENOMEM : 0;
}

static int report(void *arg, const struct feature_report *f)
{
	struct diagnosis *d = arg;
	const char *cost = f->cost ? f->cost : "";

	d->off += !f->on;
	d->missing += !f->on && f->required;
	if (d->list)
		return add_json(d, f);
	table_add(&d->table, f->name);
	table_add(&d->table, f->on ? "on" : f->required ? "MISSING" : "off");
	table_colour(&d->table, f->on ? COLOUR_GREEN : f->required ? COLOUR_RED : COLOUR_YELLOW);
	table_add(&d->table, f->needs);
	if (f->on)
		table_add(&d->table, f->why);
	else
		table_addf(&d->table, "%s%s%s", f->why, f->why[0] && *cost ? "; " : "", cost);
	return 0;
}

static int print(struct cmd *c, struct diagnosis *d, int output)
{
	struct table_style style = table_style_for(stdout);

	if (d->list) {
		cmd_put_json(d->list, JSON_INDENT(2));
		return d->missing ? CMD_FAILED : CMD_OK;
	}
	style.wide = output == OUTPUT_WIDE;
	if (table_print(&d->table, &style, stdout)) {
		struct error e = {.code = -ENOMEM, .text = "out of memory"};

		return cmd_unable(c, &e);
	}
	if (d->missing)
		printf("\nax cannot work here: %u required feature%s missing.\n", d->missing,
		       d->missing == 1 ? " is" : "s are");
	else if (d->off)
		printf("\nax works here; %u feature%s off.\n", d->off,
		       d->off == 1 ? " is" : "s are");
	else
		printf("\nEverything that ax can use is there.\n");
	return d->missing ? CMD_FAILED : CMD_OK;
}

int cmd_doctor(struct cmd *c, int argc, char **argv)
{
	static const char *const outputs[] = {"table", "wide", "json", NULL};
	CLEANUP(diagnosis_free) struct diagnosis d = {0};
	int output = OUTPUT_TABLE, status;
	struct error e = {0};
	const struct opt opts[] = {
		{"output", 'o', OPT_CHOICE, "FORMAT", "table (the default), wide or json", &output,
		 outputs},
	};
	const struct opt_syntax s = {
		.usage = "ax doctor [-o FORMAT]",
		.about = "Loads ax's own programs to find out which features of this kernel ax can "
			 "use, and tells what is off, why, and what that costs. Needs root, but no "
			 "agent. Ends with 1 if a feature is missing without which ax cannot work.",
		.own = {opts, ARRAY_SIZE(opts)},
	};

	if (!cmd_begin(c, &s, &argc, argv, &status))
		return status;
	if (argc)
		return cmd_usage(c, "'%.60s' is not understood: there is nothing to name here",
				 argv[0]);
	cmd_output();
	table_init(&d.table, columns, ARRAY_SIZE(columns));
	if (output == OUTPUT_JSON)
		d.list = json_array();
	if (datapath_doctor(report, &d, &e))
		return cmd_unable(c, &e);
	return cmd_finish(c, print(c, &d, output));
}
