// SPDX-License-Identifier: GPL-2.0-or-later
/* The expressions that .eh_frame has: of procedure linkage tables and of frames of signals. They
 * have no jumps, so each takes as long as it is. */
#include "probes/unwind/priv.h"

#define LENGTH_MAX 256
#define DEPTH_MAX  16

struct machine {
	struct reader r;
	const struct unwind_regs *regs;
	const struct unwind_stack *stack;
	uint64_t v[DEPTH_MAX];
	size_t n;
	bool cut;
};

static void push(struct machine *m, uint64_t v)
{
	if (m->n == DEPTH_MAX)
		m->r.bad = true;
	else
		m->v[m->n++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (m->n)
		return m->v[--m->n];
	m->r.bad = true;
	return 0;
}

static void pick(struct machine *m, uint64_t back)
{
	if (back >= m->n)
		m->r.bad = true;
	else
		push(m, m->v[m->n - 1 - back]);
}

static void push_register(struct machine *m, uint64_t reg)
{
	int64_t offset = reader_sleb(&m->r);

	if (reg < UNWIND_REGS)
		push(m, m->regs->v[reg] + (uint64_t)offset);
	else
		m->r.bad = true;
}

static void dereference(struct machine *m)
{
	uint64_t v = 0;

	if (!stack_read(m->stack, pop(m), &v, &m->cut))
		m->r.bad = true;
	push(m, v);
}

static uint64_t combine(struct machine *m, uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case 0x1a:
		return a & b;
	case 0x1c:
		return a - b;
	case 0x1e:
		return a * b;
	case 0x21:
		return a | b;
	case 0x22:
		return a + b;
	case 0x24:
		return b < 64 ? a << b : 0;
	case 0x25:
		return b < 64 ? a >> b : 0;
	case 0x26:
		return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
	case 0x27:
		return a ^ b;
	case 0x29:
		return a == b;
	case 0x2a:
		return (int64_t)a >= (int64_t)b;
	case 0x2b:
		return (int64_t)a > (int64_t)b;
	case 0x2c:
		return (int64_t)a <= (int64_t)b;
	case 0x2d:
		return (int64_t)a < (int64_t)b;
	case 0x2e:
		return a != b;
	default:
		m->r.bad = true;
		return 0;
	}
}

/* False: it is none of them. */
static bool constant(struct machine *m, uint8_t op)
{
	struct reader *r = &m->r;

	if (op >= 0x30 && op <= 0x4f)
		push(m, op - 0x30u);
	else if (op == 0x08)
		push(m, reader_fixed(r, 1));
	else if (op == 0x09)
		push(m, (uint64_t)(int64_t)(int8_t)reader_fixed(r, 1));
	else if (op == 0x0a)
		push(m, reader_fixed(r, 2));
	else if (op == 0x0b)
		push(m, (uint64_t)(int64_t)(int16_t)reader_fixed(r, 2));
	else if (op == 0x0c)
		push(m, reader_fixed(r, 4));
	else if (op == 0x0d)
		push(m, (uint64_t)(int64_t)(int32_t)reader_fixed(r, 4));
	else if (op == 0x0e || op == 0x0f)
		push(m, reader_fixed(r, 8));
	else if (op == 0x10)
		push(m, reader_uleb(r));
	else if (op == 0x11)
		push(m, (uint64_t)reader_sleb(r));
	else
		return false;
	return true;
}

static void execute(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	if (constant(m, op))
		return;
	if (op >= 0x70 && op <= 0x8f)
		push_register(m, op - 0x70u);
	else if (op == 0x92)
		push_register(m, reader_uleb(&m->r));
	else if (op == 0x06)
		dereference(m);
	else if (op == 0x12)
		pick(m, 0);
	else if (op == 0x13)
		pop(m);
	else if (op == 0x14)
		pick(m, 1);
	else if (op == 0x15)
		pick(m, reader_fixed(&m->r, 1));
	else if (op == 0x23)
		push(m, pop(m) + reader_uleb(&m->r));
	else if (op != 0x96) { /* which does nothing */
		b = pop(m);
		a = pop(m);
		push(m, combine(m, op, a, b));
	}
}

/* The bytes behind their length. */
static int load(const struct image *im, uint64_t offset, uint8_t bytes[LENGTH_MAX],
		struct reader *ret)
{
	uint8_t head[10] = {0};
	struct reader r = {.at = head, .end = head + sizeof(head)};
	uint64_t len, before;

	/* near the end of a file there may be fewer */
	for (size_t n = sizeof(head); image_read(im, offset, head, n); n--)
		if (n == 1)
			return -ENOEXEC;
	len = reader_uleb(&r);
	before = (uint64_t)(r.at - head);
	if (r.bad || !len || len > LENGTH_MAX || image_read(im, offset + before, bytes, len))
		return -ENOEXEC;
	*ret = (struct reader){.at = bytes, .end = bytes + len};
	return 0;
}

bool expression_value(const struct image *im, uint64_t offset, const struct unwind_regs *regs,
		      const struct unwind_stack *s, const uint64_t *cfa, uint64_t *ret, bool *cut)
{
	struct machine m = {.regs = regs, .stack = s};
	uint8_t bytes[LENGTH_MAX];

	if (load(im, offset, bytes, &m.r) < 0)
		return false;
	if (cfa)
		push(&m, *cfa);
	while (m.r.at < m.r.end && !m.r.bad)
		execute(&m, (uint8_t)reader_fixed(&m.r, 1));
	*cut |= m.cut;
	*ret = pop(&m);
	return !m.r.bad;
}
