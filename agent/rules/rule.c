// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules: their life. */
#include "rules/field.h"
#include "rules/priv.h"

bool rule_takes_any_packet(const struct rule *r)
{
	for (size_t i = 0; i < AX_FIELDS; i++)
		if (!condition_is_empty(&r->in[i]))
			return false;
	return true;
}

bool rule_catches_all(const struct rule *r)
{
	return rule_takes_any_packet(r) && condition_is_empty(&r->in[RULE_FIELD_GROUP]);
}

void rule_free(struct rule *r)
{
	for (size_t i = 0; i < RULE_FIELDS; i++)
		condition_free(&r->in[i]);
	free(r->name);
	free(r->target);
	free(r->slot);
	free(r->learn);
	*r = (struct rule){0};
}

static int copy_text(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static int copy_parts(const struct rule *from, struct rule *to)
{
	for (size_t i = 0; i < RULE_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];

		if (condition_copy(row->kind, &from->in[row->number], &to->in[row->number]) < 0)
			return -ENOMEM;
	}
	if (copy_text(from->name, &to->name) < 0 || copy_text(from->target, &to->target) < 0 ||
	    copy_text(from->slot, &to->slot) < 0 || copy_text(from->learn, &to->learn) < 0)
		return -ENOMEM;
	return 0;
}

int rule_copy(const struct rule *from, struct rule *to)
{
	struct rule copy = *from;

	/* what the copy must not share */
	memset(copy.in, 0, sizeof(copy.in));
	copy.name = copy.target = copy.slot = copy.learn = NULL;
	if (copy_parts(from, &copy) < 0) {
		rule_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

static bool text_eq(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static bool conditions_eq(const struct rule *a, const struct rule *b)
{
	for (size_t i = 0; i < RULE_FIELDS; i++) {
		const struct rule_field *row = &rule_fields[i];

		if (!condition_eq(row->kind, &a->in[row->number], &b->in[row->number]))
			return false;
	}
	return true;
}

static bool learn_eq(const struct rule *a, const struct rule *b)
{
	return text_eq(a->learn, b->learn) && a->learn_ms == b->learn_ms &&
	       a->learn4 == b->learn4 && a->learn6 == b->learn6 && a->learn_dst == b->learn_dst &&
	       a->learn_flow == b->learn_flow && a->learn_proto == b->learn_proto &&
	       a->learn_port_be == b->learn_port_be && a->learn_above == b->learn_above;
}

bool rule_eq(const struct rule *a, const struct rule *b)
{
	return text_eq(a->name, b->name) && conditions_eq(a, b) && a->verdict == b->verdict &&
	       text_eq(a->target, b->target) && a->cpu == b->cpu && a->rewrite == b->rewrite &&
	       memcmp(a->smac, b->smac, 6) == 0 && memcmp(a->dmac, b->dmac, 6) == 0 &&
	       addr_eq(&a->to, &b->to) && a->to_port == b->to_port && a->checksum == b->checksum &&
	       a->capture == b->capture && a->capture_ring == b->capture_ring &&
	       a->capture_frame == b->capture_frame && text_eq(a->slot, b->slot) &&
	       a->rate == b->rate && a->rate_bits == b->rate_bits && a->burst == b->burst &&
	       a->per_source == b->per_source && a->per4 == b->per4 && a->per6 == b->per6 &&
	       learn_eq(a, b) && a->sample == b->sample && a->log == b->log &&
	       a->trigger == b->trigger;
}
