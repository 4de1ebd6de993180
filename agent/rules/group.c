// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Groups of interfaces as text, as `ip link set eth0 group lan` and nft(8)'s iifgroup have them: by
 * number, ranges of numbers or name, with ! before each those that the interface must not be in.
 * What number a name has is the machine's to say (net/link_groups.h).
 */
#include "rules/field.h"
#include "rules/priv.h"

static int read_group(const char *item, struct rule_group *g)
{
	struct range range;

	if (item[0] == '0' && item[1] == 'x') {
		if (mark_parse(item, &g->lo) < 0)
			return -EINVAL;
		g->hi = g->lo;
		return 0;
	}
	if (value_range(item, UINT32_MAX, true, &range) == 0) {
		g->lo = range.lo;
		g->hi = range.hi;
		return 0;
	}
	if (!value_is_name(item) || strspn(item, "0123456789-") == strlen(item) ||
	    strlen(item) >= sizeof(g->name))
		return -EINVAL;
	strcpy(g->name, item);
	return 0;
}

int group_add(const struct rule_field *row, struct condition *c, const char *item,
	      struct rule_fault *f)
{
	struct rule_group g = {.others = item[0] == '!'};

	(void)row;
	if (read_group(item + g.others, &g) < 0)
		return -EINVAL;
	if (c->n && c->groups[0].others != g.others)
		return fault_set(f, NULL,
				 "either the groups that it may be in, or with ! before each those "
				 "that it must not be in");
	if (array_grow(&c->items, c->n, sizeof(g)) < 0)
		return -ENOMEM;
	c->groups[c->n++] = g;
	return 0;
}

void group_write(struct field_text *to, const struct rule_field *row, const void *item)
{
	const struct rule_group *g = item;

	(void)row;
	field_separate(to);
	if (g->others)
		putc('!', to->f);
	if (*g->name)
		fputs(g->name, to->f);
	else if (g->lo == g->hi)
		fprintf(to->f, "%u", g->lo);
	else if (g->hi == UINT32_MAX)
		fprintf(to->f, "%u-", g->lo);
	else
		fprintf(to->f, "%u-%u", g->lo, g->hi);
}

int rule_group_fits(const struct rule *r, uint32_t group,
		    int (*number)(void *arg, const char *name, uint32_t *ret), void *arg,
		    const char **unknown)
{
	const struct condition *c = &r->in[RULE_FIELD_GROUP];
	bool in = false;

	for (size_t i = 0; i < c->n; i++) {
		uint32_t lo = c->groups[i].lo, hi = c->groups[i].hi;

		if (*c->groups[i].name) {
			int code = number(arg, c->groups[i].name, &lo);

			*unknown = c->groups[i].name;
			if (code < 0)
				return code;
			hi = lo;
		}
		in |= lo <= group && group <= hi;
	}
	return !c->n || in != (c->groups[0].others != 0);
}
