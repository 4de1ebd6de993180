// SPDX-License-Identifier: GPL-2.0-or-later
/* The registers of a caller. */
#include "probes/unwind/priv.h"

#define X86_BP	 6
#define X86_SP	 7
#define X86_IP	 16
#define ARM64_FP 29
#define ARM64_LR 30
#define ARM64_SP 31
/* Above them arm64 has a signature in return addresses. */
#define ARM64_ADDRESS ((UINT64_C(1) << 48) - 1)

bool stack_read(const struct unwind_stack *s, uint64_t address, uint64_t *ret, bool *cut)
{
	uint64_t at = address - s->from;

	if (address < s->from)
		return false;
	if (at > s->len || s->len - at < sizeof(*ret)) {
		*cut = true;
		return false;
	}
	memcpy(ret, s->bytes + at, sizeof(*ret));
	return true;
}

uint8_t unwind_stack_pointer(uint16_t machine)
{
	return machine == EM_AARCH64 ? ARM64_SP : X86_SP;
}

static uint64_t code_address(uint16_t machine, uint64_t v)
{
	return machine == EM_AARCH64 ? v & ARM64_ADDRESS : v;
}

struct step {
	const struct image *im;
	const struct unwind_row *row;
	const struct unwind_stack *stack;
	const struct unwind_regs *before;
	uint64_t cfa;
	bool cut;
};

static bool find_cfa(struct step *s)
{
	const struct unwind_row *row = s->row;

	if (row->cfa_computed)
		return expression_value(s->im, row->base + (uint64_t)row->cfa_value, s->before,
					s->stack, NULL, &s->cfa, &s->cut);
	s->cfa = s->before->v[row->cfa_register] + (uint64_t)(int64_t)row->cfa_value;
	return true;
}

static bool find_register(struct step *s, uint8_t reg, uint64_t *ret)
{
	const struct unwind_row *row = s->row;
	int64_t value = row->values[reg];
	uint64_t at = s->cfa + (uint64_t)value;

	switch ((enum unwind_rule)row->rules[reg]) {
	case UNWIND_SAME:
		*ret = s->before->v[reg];
		return true;
	case UNWIND_AT:
		return stack_read(s->stack, at, ret, &s->cut);
	case UNWIND_IS:
		*ret = at;
		return true;
	case UNWIND_REGISTER:
		if (value < 0 || value >= UNWIND_REGS)
			return false;
		*ret = s->before->v[value];
		return true;
	case UNWIND_AT_COMPUTED:
		return expression_value(s->im, row->base + (uint64_t)value, s->before, s->stack,
					&s->cfa, &at, &s->cut) &&
		       stack_read(s->stack, at, ret, &s->cut);
	case UNWIND_IS_COMPUTED:
		return expression_value(s->im, row->base + (uint64_t)value, s->before, s->stack,
					&s->cfa, ret, &s->cut);
	default:
		return false;
	}
}

enum unwind_result unwind_step(const struct image *im, const struct unwind_row *row,
			       const struct unwind_stack *stack, struct unwind_regs *r)
{
	struct unwind_regs before = *r;
	struct step s = {.im = im, .row = row, .stack = stack, .before = &before};
	uint8_t sp = unwind_stack_pointer(im->machine), back = row->return_register;

	/* what x86-64 calls the register of the return address is no register */
	if (row->rules[back] == UNWIND_UNDEFINED ||
	    (im->machine != EM_AARCH64 && row->rules[back] == UNWIND_SAME))
		return UNWIND_END;
	if (!find_cfa(&s))
		return s.cut ? UNWIND_CUT : UNWIND_LOST;
	r->v[sp] = s.cfa;
	for (uint8_t i = 0; i < UNWIND_REGS; i++) {
		if (i == sp && row->rules[i] == UNWIND_SAME)
			continue;
		if (!find_register(&s, i, &r->v[i]) && (i == back || i == sp))
			return s.cut ? UNWIND_CUT : UNWIND_LOST;
	}
	r->pc = r->v[back] = code_address(im->machine, r->v[back]);
	return UNWIND_CALLER;
}

enum unwind_result unwind_by_frame_pointer(uint16_t machine, const struct unwind_stack *s,
					   struct unwind_regs *r)
{
	uint8_t fp = machine == EM_AARCH64 ? ARM64_FP : X86_BP;
	uint64_t at = r->v[fp], next, back;
	bool cut = false;

	if (at < r->v[unwind_stack_pointer(machine)] || at % 8)
		return UNWIND_LOST;
	if (!stack_read(s, at, &next, &cut) || !stack_read(s, at + 8, &back, &cut))
		return cut ? UNWIND_CUT : UNWIND_LOST;
	r->v[fp] = next;
	r->v[unwind_stack_pointer(machine)] = at + 16;
	r->pc = code_address(machine, back);
	r->v[machine == EM_AARCH64 ? ARM64_LR : X86_IP] = r->pc;
	return r->pc ? UNWIND_CALLER : UNWIND_END;
}
