/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/cmd/findings.h"

#include "tools/lib/options.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

#define WHY_COLUMN 20

static const struct {
	const char *name;  /* of the JSON form */
	const char *shown; /* at most 7 columns */
	enum table_colour colour;
} states[] = {
	[FINDING_OK] = {"ok", "ok", COLOUR_GREEN},
	[FINDING_NOTE] = {"note", "note", COLOUR_YELLOW},
	[FINDING_BAD] = {"bad", "BAD", COLOUR_RED},
	[FINDING_FIXED] = {"fixed", "fixed", COLOUR_GREEN},
};

void findings_free(struct findings *f)
{
	json_decref(f->list);
}

/* Sentences are too long for a table's cells, and must not be cut. */
static void put_finding(const struct findings *all, const struct finding *f)
{
	autofree char *why = text_escape(f->why), *fix = text_escape(f->fix);
	const char *on = all->colour ? table_colour_on(states[f->state].colour) : "";
	const char *off = all->colour ? table_colour_off() : "";

	printf("%-12s%s%-*s%s", f->what, on, WHY_COLUMN - 12, states[f->state].shown, off);
	opt_wrap(why ? why : "", WHY_COLUMN, WHY_COLUMN, stdout);
	if (f->fix[0] && f->state != FINDING_OK)
		printf("%*s%s %s\n", WHY_COLUMN, "",
		       f->state == FINDING_FIXED ? "done:" : "fix:", fix ? fix : "");
}

void findings_put(struct findings *all, const char *node, const struct finding *f)
{
	json_t *j;

	all->fixes += f->fix[0] && f->state != FINDING_OK && f->state != FINDING_FIXED;
	if (!all->list) {
		put_finding(all, f);
		return;
	}
	j = json_pack("{s:s,s:s,s:s}", "check", f->what, "state", states[f->state].name, "why",
		      f->why);
	if (node)
		json_object_set_new(j, "node", json_string(node));
	if (f->fix[0])
		json_object_set_new(j, "fix", json_string(f->fix));
	json_array_append_new(all->list, j);
}
