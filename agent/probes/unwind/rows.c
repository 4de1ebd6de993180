// SPDX-License-Identifier: GPL-2.0-or-later
/* The program of an entry, executed up to an instruction. */
#include "probes/unwind/priv.h"

#define REMEMBERED_MAX 8

struct maker {
	const struct common *c;
	uint64_t base; /* what expressions are relative to */
	uint64_t at;   /* the address that the row holds from */
	uint64_t address;
	struct unwind_row row, first; /* first: as all rows of the entry begin */
	struct unwind_row remembered[REMEMBERED_MAX];
	size_t n_remembered;
	struct reader *r;
	const uint8_t *start; /* of the program */
	uint64_t start_at;    /* in the file */
};

static void set_rule(struct maker *m, uint64_t reg, enum unwind_rule rule, int64_t value)
{
	if (value < INT32_MIN || value > INT32_MAX)
		m->r->bad = true;
	else if (reg < UNWIND_REGS) { /* others (of vectors) lead to no caller */
		m->row.rules[reg] = (uint8_t)rule;
		m->row.values[reg] = (int32_t)value;
	}
}

static int64_t aligned(const struct maker *m, int64_t v)
{
	return (int64_t)((uint64_t)v * (uint64_t)m->c->data_align);
}

static void set_cfa(struct maker *m, uint64_t reg, int64_t value)
{
	if (reg >= UNWIND_REGS || value < INT32_MIN || value > INT32_MAX) {
		m->r->bad = true;
		return;
	}
	m->row.cfa_computed = false;
	m->row.cfa_register = (uint8_t)reg;
	m->row.cfa_value = (int32_t)value;
}

/* Where an expression is, from `base`; the program goes on behind it. */
static int64_t expression(struct maker *m)
{
	uint64_t offset = m->start_at + (uint64_t)(m->r->at - m->start);
	int64_t from = (int64_t)(offset - m->base);

	reader_skip(m->r, reader_uleb(m->r));
	if (from < 0 || from > INT32_MAX) {
		m->r->bad = true;
		return 0;
	}
	return from;
}

static void restore(struct maker *m, uint64_t reg)
{
	if (reg < UNWIND_REGS) {
		m->row.rules[reg] = m->first.rules[reg];
		m->row.values[reg] = m->first.values[reg];
	}
}

static void remember(struct maker *m)
{
	if (m->n_remembered == REMEMBERED_MAX)
		m->r->bad = true;
	else
		m->remembered[m->n_remembered++] = m->row;
}

static void recall(struct maker *m)
{
	if (!m->n_remembered)
		m->r->bad = true;
	else
		m->row = m->remembered[--m->n_remembered];
}

/* Those about where the caller's stack ends. False: it is none of them. */
static bool about_cfa(struct maker *m, uint8_t op)
{
	struct reader *r = m->r;
	uint64_t reg = m->row.cfa_register;

	switch (op) {
	case 0x0c:
		reg = reader_uleb(r);
		set_cfa(m, reg, (int64_t)reader_uleb(r));
		return true;
	case 0x0d:
		set_cfa(m, reader_uleb(r), m->row.cfa_value);
		return true;
	case 0x0e:
		set_cfa(m, reg, (int64_t)reader_uleb(r));
		return true;
	case 0x0f:
		m->row.cfa_value = (int32_t)expression(m);
		m->row.cfa_computed = true;
		return true;
	case 0x12:
		reg = reader_uleb(r);
		set_cfa(m, reg, aligned(m, reader_sleb(r)));
		return true;
	case 0x13:
		set_cfa(m, reg, aligned(m, reader_sleb(r)));
		return true;
	default:
		return false;
	}
}

/* Those about one register, whose number comes first. */
static bool about_register(struct maker *m, uint8_t op)
{
	struct reader *r = m->r;
	uint64_t reg;

	if (op < 0x05 ||
	    (op > 0x09 && op != 0x10 && op != 0x11 && op != 0x2f && (op < 0x14 || op > 0x16)))
		return false;
	reg = reader_uleb(r);
	if (op == 0x05)
		set_rule(m, reg, UNWIND_AT, aligned(m, (int64_t)reader_uleb(r)));
	else if (op == 0x06)
		restore(m, reg);
	else if (op == 0x07)
		set_rule(m, reg, UNWIND_UNDEFINED, 0);
	else if (op == 0x08)
		set_rule(m, reg, UNWIND_SAME, 0);
	else if (op == 0x09)
		set_rule(m, reg, UNWIND_REGISTER, (int64_t)reader_uleb(r));
	else if (op == 0x10)
		set_rule(m, reg, UNWIND_AT_COMPUTED, expression(m));
	else if (op == 0x11)
		set_rule(m, reg, UNWIND_AT, aligned(m, reader_sleb(r)));
	else if (op == 0x14)
		set_rule(m, reg, UNWIND_IS, aligned(m, (int64_t)reader_uleb(r)));
	else if (op == 0x15)
		set_rule(m, reg, UNWIND_IS, aligned(m, reader_sleb(r)));
	else if (op == 0x16)
		set_rule(m, reg, UNWIND_IS_COMPUTED, expression(m));
	else
		set_rule(m, reg, UNWIND_AT, aligned(m, (int64_t)-reader_uleb(r)));
	return true;
}

static void advance(struct maker *m, uint64_t delta)
{
	m->at += delta * m->c->code_align;
}

static void execute(struct maker *m, uint8_t op)
{
	struct reader *r = m->r;

	if (about_cfa(m, op) || about_register(m, op))
		return;
	switch (op) {
	case 0x00:
		break;
	case 0x01:
		m->at = reader_pointer(r, m->c->encoding & ENCODED_FORM, 0);
		break;
	case 0x02:
		advance(m, reader_fixed(r, 1));
		break;
	case 0x03:
		advance(m, reader_fixed(r, 2));
		break;
	case 0x04:
		advance(m, reader_fixed(r, 4));
		break;
	case 0x0a:
		remember(m);
		break;
	case 0x0b:
		recall(m);
		break;
	case 0x2c:
	case 0x2d: /* whether the return address is signed: its address is taken in any case */
		break;
	case 0x2e: /* how much a call's arguments take */
		reader_uleb(r);
		break;
	default:
		r->bad = true;
	}
}

/* Until the row behind the address. */
static bool run(struct maker *m, struct reader program, uint64_t program_at)
{
	m->r = &program;
	m->start = program.at;
	m->start_at = program_at;
	while (program.at < program.end && !program.bad && m->at <= m->address) {
		uint8_t op = (uint8_t)reader_fixed(&program, 1), low = op & 0x3f;

		if (op >> 6 == 1)
			advance(m, low);
		else if (op >> 6 == 2)
			set_rule(m, low, UNWIND_AT, aligned(m, (int64_t)reader_uleb(&program)));
		else if (op >> 6 == 3)
			restore(m, low);
		else
			execute(m, op);
	}
	return !program.bad;
}

int rows_make(const struct common *c, const struct entry *e, uint64_t base, uint64_t address,
	      struct unwind_row *ret)
{
	struct maker m = {.c = c, .base = base, .at = e->from, .address = address};

	m.row.base = base;
	m.row.return_register = c->return_register;
	m.row.is_signal = c->is_signal;
	if (!run(&m, c->program, c->program_at))
		return -ENOEXEC;
	m.first = m.row;
	if (!run(&m, e->program, e->program_at))
		return -ENOEXEC;
	*ret = m.row;
	return 0;
}
