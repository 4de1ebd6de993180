// SPDX-License-Identifier: GPL-2.0-or-later
/* The marks that rules ask for: their numbers, and the classes of packets that have some. */
#include "compile/priv.h"

/* Numbers it, if it is another than those that have a number. */
static int mark_number(struct compiler *c, const struct rule_mark *m)
{
	uint32_t i = 0;

	while (i < c->n_marks && memcmp(&c->marks[i], m, sizeof(*m)) != 0)
		i++;
	if (i == AX_MARKS_MAX)
		return error_set(c->e, -E2BIG,
				 "the rules ask for more than %d different marks: use fewer, or "
				 "masks that many of them have in common",
				 AX_MARKS_MAX);
	if (i == c->n_marks)
		c->marks[c->n_marks++] = *m;
	return (int)i;
}

int compile_marks(struct compiler *c, const struct rule_field *row)
{
	autofree uint32_t *wants = calloc(c->shape.rules, sizeof(*wants));

	if (!wants)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct condition *in = &c->rules[i]->in[row->number];

		for (size_t k = 0; k < in->n; k++) {
			int number = mark_number(c, &in->marks[k]);

			if (number < 0)
				return number;
			wants[i] |= 1u << number;
		}
	}
	return compile_combinations(c, row->number, wants, c->n_marks, 0);
}

void compile_write_marks(const struct compiler *c, struct ax_layout *layout)
{
	layout->marks_n = c->n_marks;
	for (uint32_t i = 0; i < c->n_marks; i++)
		layout->mark[i] = (struct ax_mark){c->marks[i].value, c->marks[i].mask};
}
