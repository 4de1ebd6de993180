// SPDX-License-Identifier: GPL-2.0-or-later
/* The payloads that rules ask for: their numbers, and the classes of packets that have some. */
#include "compile/priv.h"

/* Numbers it, if it is another than those that have a number. */
static int payload_number(struct compiler *c, const struct rule_payload *p)
{
	uint32_t i = 0;

	while (i < c->n_payloads && memcmp(c->payloads[i], p, sizeof(*p)) != 0)
		i++;
	if (i == AX_PAYLOADS_MAX)
		return error_set(c->e, -E2BIG,
				 "the rules ask for more than %d different payloads: use fewer",
				 AX_PAYLOADS_MAX);
	if (i == c->n_payloads)
		c->payloads[c->n_payloads++] = p;
	return (int)i;
}

/* Which payloads each rule asks for, as bits. */
static int find_payloads(struct compiler *c, enum ax_field f, uint32_t *wants)
{
	for (uint32_t i = 0; i < c->shape.rules; i++) {
		const struct condition *in = &c->rules[i]->in[f];

		for (size_t k = 0; k < in->n; k++) {
			int number = payload_number(c, &in->payloads[k]);

			if (number < 0)
				return number;
			wants[i] |= 1u << number;
		}
	}
	return 0;
}

/* The class of packets whose value is `value`, since they have these and no other. */
static int add_value(struct compiler *c, struct field *field, const uint32_t *wants, uint32_t has,
		     const uint64_t *base, uint32_t value, uint64_t *bits)
{
	int cls;

	memcpy(bits, base, c->shape.words * sizeof(*bits));
	for (uint32_t i = 0; i < c->shape.rules; i++)
		if (wants[i] & has)
			bit_set(bits, i);
	cls = class_of(&field->classes, bits);
	return cls < 0 ? cls : cuts_add(&field->cuts, value, 0, (uint32_t)cls);
}

int compile_combinations(struct compiler *c, enum ax_field f, const uint32_t *wants, uint32_t n,
			 uint32_t none)
{
	autofree uint64_t *base = compile_base(c, f);
	autofree uint64_t *bits = calloc(c->shape.words, sizeof(*bits));
	int r = base && bits ? 0 : -ENOMEM;

	for (uint32_t has = 0; has < 1u << n && r == 0; has++)
		r = add_value(c, &c->field[f], wants, has, base, none + has, bits);
	return r;
}

static int add_unasked(struct compiler *c, struct field *field, uint64_t *bits)
{
	int cls;

	for (uint32_t i = 0; i < c->shape.rules; i++)
		bit_set(bits, i);
	cls = class_of(&field->classes, bits);
	return cls < 0 ? cls : cuts_add(&field->cuts, AX_PAYLOAD_UNASKED, 0, (uint32_t)cls);
}

int compile_payloads(struct compiler *c, const struct rule_field *row)
{
	struct field *field = &c->field[row->number];
	autofree uint32_t *wants = calloc(c->shape.rules, sizeof(*wants));
	autofree uint64_t *bits = calloc(c->shape.words, sizeof(*bits));
	int r;

	if (!wants || !bits)
		return -ENOMEM;
	r = find_payloads(c, row->number, wants);
	if (r == 0)
		r = add_unasked(c, field, bits);
	if (r == 0)
		r = compile_combinations(c, row->number, wants, c->n_payloads, AX_PAYLOAD_NONE);
	return r;
}

void compile_write_payloads(const struct compiler *c, struct ax_layout *layout)
{
	layout->payloads_n = c->n_payloads;
	for (uint32_t i = 0; i < c->n_payloads; i++) {
		struct ax_payload *to = &layout->payload[i];

		for (unsigned k = 0; k < c->payloads[i]->n; k++) {
			const struct payload_piece *from = &c->payloads[i]->piece[k];

			memcpy(&to->piece[k].bits, from->value, sizeof(from->value));
			memcpy(&to->piece[k].mask, from->mask, sizeof(from->mask));
			to->at[k] = from->at;
			to->len[k] = from->len;
		}
	}
}
