/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cells of ax get's tables that several nouns have. */
#include <time.h>

#include "tools/cmd/get.h"
#include "tools/lib/text.h"

bool builder_open(struct builder *b)
{
	*b = (struct builder){0};
	b->f = open_memstream(&b->text, &b->size);
	return b->f != NULL;
}

void builder_add_to(struct table *t, struct builder *b)
{
	if (fclose(b->f) || !b->text)
		t->failed = true;
	else
		table_add(t, b->text);
	free(b->text);
}

void cell_text(struct table *t, const struct cell *c)
{
	table_add(t, member_string(c->item, c->key));
}

void cell_int(struct table *t, const struct cell *c)
{
	if (json_is_integer(json_object_get(c->item, c->key)))
		table_addf(t, "%lld", member_int(c->item, c->key));
	else
		table_add(t, NULL);
}

void cell_bytes(struct table *t, const struct cell *c)
{
	char buf[TEXT_SHORT];

	table_add(t, text_bytes((uint64_t)member_int(c->item, c->key), buf));
}

void cell_yes(struct table *t, const struct cell *c)
{
	table_add(t, member_true(c->item, c->key) ? "yes" : "no");
}

void cell_age(struct table *t, const struct cell *c)
{
	double since = member_number(c->item, c->key);
	char buf[TEXT_SHORT];

	table_add(t, since > 0 ? text_age((double)time(NULL) - since, buf) : NULL);
}

void cell_wait(struct table *t, const struct cell *c)
{
	long long ms = member_int(c->item, c->key);

	if (ms > 0 && ms % 1000 == 0)
		table_addf(t, "%llds", ms / 1000);
	else if (ms > 0)
		table_addf(t, "%lldms", ms);
	else
		table_add(t, NULL);
}

void cell_list(struct table *t, const struct cell *c)
{
	json_t *list = json_object_get(c->item, c->key), *item;
	struct builder b;
	size_t i;

	if (!json_array_size(list)) {
		table_add(t, NULL);
		return;
	}
	if (!builder_open(&b)) {
		t->failed = true;
		return;
	}
	json_array_foreach (list, i, item)
		fprintf(b.f, "%s%s", i ? "," : "", json_string_value(item));
	builder_add_to(t, &b);
}

void cell_ip(struct table *t, const struct cell *c)
{
	const char *ip4 = member_string(c->item, "ip4");

	table_add(t, ip4 ? ip4 : member_string(c->item, "ip6"));
}

static enum table_colour state_colour(const char *state)
{
	if (!state)
		return COLOUR_NONE;
	if (streq(state, "running") || streq(state, "established"))
		return COLOUR_GREEN;
	if (streq(state, "starting") || streq(state, "stopping"))
		return COLOUR_YELLOW;
	return COLOUR_DIM;
}

void cell_state(struct table *t, const struct cell *c)
{
	const char *state = member_string(c->item, c->key);

	table_add(t, state);
	table_colour(t, state_colour(state));
}

void name_member(const json_t *item, char *buf, size_t size)
{
	const char *name = member_string(item, "name");

	snprintf(buf, size, "%s", name ? name : "");
}
