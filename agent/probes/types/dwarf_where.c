// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a variable is: from the operations of the debug data, which work on a stack, to items in
 * postfix order, in which what is on the stack is a run of items each.
 */
#include <elf.h>

#include "probes/types/dwarf_priv.h"

#define STACK_MAX 12
#define OPS_MAX	  256 /* of one variable, with what it refers to */

static const char gone[] = "it is optimised away";
static const char gone_here[] = "it is optimised away at this instruction";
static const char entry_only[] =
	"it is optimised away: only what it was when the function began could be found out";
static const char no_integer[] = "it is in a floating-point or vector register, which no probe can "
				 "read";
static const char no_integers[] = "it is computed as a floating-point number";
static const char thread_local[] = "it is a variable of each thread, whose place is not known";
static const char too_complex[] = "what the debug data has to compute for it is too much";
static const char not_here[] =
	"what the debug data has to compute for it cannot be done in a probe";
static const char broken[] = "the debug data of it is broken";

void where_nowhere(struct where *w, const char *why)
{
	w->n_items = 0;
	w->n_pieces = 1;
	w->pieces[0] = (struct where_piece){.kind = WHERE_NOWHERE, .why = why};
}

void where_register(struct where *w, const char *reg)
{
	*w = (struct where){.n_items = 1, .n_pieces = 1};
	w->items[0] = (struct where_item){.op = WHERE_REGISTER, .size = 8, .reg = reg};
	w->pieces[0] = (struct where_piece){.kind = WHERE_VALUE, .n = 1};
}

const char *where_vector(uint16_t machine, unsigned i)
{
	static const char *const x86[] = {"xmm0",  "xmm1",  "xmm2",  "xmm3", "xmm4",  "xmm5",
					  "xmm6",  "xmm7",  "xmm8",  "xmm9", "xmm10", "xmm11",
					  "xmm12", "xmm13", "xmm14", "xmm15"};
	static const char *const arm64[] = {"v0",  "v1",  "v2",	 "v3",	"v4",  "v5",  "v6",  "v7",
					    "v8",  "v9",  "v10", "v11", "v12", "v13", "v14", "v15",
					    "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
					    "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"};

	if (machine == EM_AARCH64)
		return i < ARRAY_SIZE(arm64) ? arm64[i] : NULL;
	return i < ARRAY_SIZE(x86) ? x86[i] : NULL;
}

/* The names of registers by their numbers in debug data. NULL: none that holds integers. */
static const char *register_name(uint16_t machine, uint64_t number)
{
	static const char *const x86[] = {"ax",	 "dx",	"cx",  "bx",  "si",  "di",
					  "bp",	 "sp",	"r8",  "r9",  "r10", "r11",
					  "r12", "r13", "r14", "r15", "ip"};
	static const char *const arm64[] = {"x0",  "x1",  "x2",	 "x3",	"x4",  "x5",  "x6",  "x7",
					    "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
					    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
					    "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};

	if (machine == EM_AARCH64)
		return number < ARRAY_SIZE(arm64) ? arm64[number] : NULL;
	return number < ARRAY_SIZE(x86) ? x86[number] : NULL;
}

/* --- the stack --- */

struct translation {
	const struct dwarf_context *c;
	Dwarf_Attribute *attr; /* that the operations are of; NULL: of unwinding */
	struct where *out;
	uint16_t starts[STACK_MAX]; /* of the runs on the stack */
	size_t depth;
	size_t base; /* items before are of other pieces */
	bool is_value, in_register;
	unsigned *budget;
	unsigned nested, branches;
	const char *why;
	const char *vector;  /* all that there is of it is in this register */
	const Dwarf_Op *ops; /* what is being translated */
	size_t n_ops;
	size_t floor; /* what is below on the stack is of what this is nested in */
};

static int fail(struct translation *t, const char *why)
{
	t->why = why;
	return -ENOTSUP;
}

static int add_item(struct translation *t, struct where_item item)
{
	if (t->out->n_items == WHERE_ITEMS)
		return fail(t, too_complex);
	t->out->items[t->out->n_items++] = item;
	return 0;
}

static int push(struct translation *t, struct where_item item)
{
	if (t->depth == STACK_MAX)
		return fail(t, too_complex);
	t->starts[t->depth++] = (uint16_t)t->out->n_items;
	return add_item(t, item);
}

static int push_const(struct translation *t, uint64_t value)
{
	return push(t, (struct where_item){.op = WHERE_CONST, .value = (int64_t)value});
}

static int push_register(struct translation *t, uint64_t number)
{
	const char *name = register_name(t->c->d->machine, number);

	if (!name)
		return fail(t, no_integer);
	return push(t, (struct where_item){.op = WHERE_REGISTER, .size = 8, .reg = name});
}

/* The variable is in the register. */
static int in_register(struct translation *t, uint64_t number)
{
	uint16_t machine = t->c->d->machine;
	uint64_t first = machine == EM_AARCH64 ? 64 : 17; /* of vectors */

	t->in_register = true;
	if (!t->nested && !t->depth && number >= first && number - first < UINT8_MAX)
		t->vector = where_vector(machine, (unsigned)(number - first));
	return push_register(t, number);
}

static int add_const(struct translation *t, uint64_t value)
{
	struct where_item *last;

	if (!t->depth)
		return fail(t, broken);
	last = &t->out->items[t->out->n_items - 1];
	if (last->op == WHERE_ADD_CONST || last->op == WHERE_RELATIVE || last->op == WHERE_CONST) {
		last->value = (int64_t)((uint64_t)last->value + value);
		return 0;
	}
	if (!value)
		return 0;
	return add_item(t, (struct where_item){.op = WHERE_ADD_CONST, .value = (int64_t)value});
}

static int push_address(struct translation *t, uint64_t address)
{
	if (t->c->d->fixed)
		return push_const(t, address);
	/* what moves the program moves its data by as much */
	t->out->exact = true;
	return push(t, (struct where_item){.op = WHERE_RELATIVE,
					   .value = (int64_t)(address - t->c->address)});
}

static int unary(struct translation *t, enum where_op op, uint8_t size, bool is_signed)
{
	if (!t->depth)
		return fail(t, broken);
	return add_item(t, (struct where_item){.op = op, .size = size, .is_signed = is_signed});
}

static int binary(struct translation *t, enum where_op op)
{
	const struct where_item *last;

	if (t->depth < 2)
		return fail(t, broken);
	last = &t->out->items[t->out->n_items - 1];
	if (op == WHERE_ADD && last->op == WHERE_CONST &&
	    t->starts[t->depth - 1] == t->out->n_items - 1) {
		uint64_t value = (uint64_t)last->value;

		t->out->n_items--;
		t->depth--;
		return add_const(t, value);
	}
	t->depth--;
	return add_item(t, (struct where_item){.op = op});
}

/* A copy of the run that is `which` below the top. */
static int pick(struct translation *t, uint64_t which)
{
	size_t from, to;

	if (which >= t->depth)
		return fail(t, broken);
	if (t->depth == STACK_MAX)
		return fail(t, too_complex);
	from = t->starts[t->depth - 1 - which];
	to = which ? t->starts[t->depth - which] : t->out->n_items;
	t->starts[t->depth] = (uint16_t)t->out->n_items;
	for (size_t i = from; i < to; i++) {
		int r = add_item(t, t->out->items[i]);

		if (r < 0)
			return r;
	}
	t->depth++;
	return 0;
}

/* The top run goes below the `n - 1` others under it. */
static int rotate(struct translation *t, size_t n)
{
	struct where_item moved[WHERE_ITEMS];
	size_t from, top, len, total;

	if (t->depth < n)
		return fail(t, broken);
	from = t->starts[t->depth - n];
	top = t->starts[t->depth - 1];
	total = t->out->n_items;
	len = total - top;
	memcpy(moved, &t->out->items[top], len * sizeof(*moved));
	memmove(&t->out->items[from + len], &t->out->items[from], (top - from) * sizeof(*moved));
	memcpy(&t->out->items[from], moved, len * sizeof(*moved));
	for (size_t i = t->depth - 1; i > t->depth - n; i--)
		t->starts[i] = (uint16_t)(t->starts[i - 1] + len);
	return 0;
}

static int drop(struct translation *t)
{
	if (!t->depth)
		return fail(t, broken);
	t->out->n_items = t->starts[--t->depth];
	return 0;
}

/* --- frames --- */

static int translate(struct translation *t, const Dwarf_Op *ops, size_t n);

/* The value of other operations as one more on the stack. */
static int nested(struct translation *t, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n)
{
	Dwarf_Attribute *before = t->attr;
	size_t depth = t->depth;
	int r;

	if (++t->nested > 4)
		return fail(t, broken);
	t->attr = attr;
	r = translate(t, ops, n);
	t->attr = before;
	t->nested--;
	t->is_value = t->in_register = false;
	if (r == 0 && t->depth != depth + 1)
		r = fail(t, broken);
	return r;
}

/* Where the caller's frame ends, by what unwinders use. */
static int push_cfa(struct translation *t)
{
	Dwarf_CFI *const tables[] = {t->c->d->eh_frame, t->c->d->debug_frame};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		autofree Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops;
		size_t n;

		if (tables[i] && dwarf_cfi_addrframe(tables[i], t->c->address, &frame) == 0 &&
		    dwarf_frame_cfa(frame, &ops, &n) == 0 && n)
			return nested(t, NULL, ops, n);
	}
	return fail(t, "it is in the function's frame, whose place is not known: the program has "
		       "no data for unwinding");
}

static int push_frame_base(struct translation *t)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (!t->c->function || !dwarf_place(t->c->function, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, t->c->address, &ops, &n, 1) != 1)
		return fail(t, "it is in the function's frame, whose place is not known");
	return nested(t, &attr, ops, n);
}

/* --- operations --- */

/* Of types that a number was converted to: 0 is the general one. */
static int convert(struct translation *t, uint64_t type)
{
	Dwarf_Die unit, die;
	uint64_t encoding = 0, size = 0;

	if (!type)
		return 0;
	if (!t->attr || !dwarf_cu_die(t->attr->cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    !dwarf_offdie(dwarf_cu_getdwarf(t->attr->cu),
			  dwarf_dieoffset(&unit) - dwarf_cuoffset(&unit) + type, &die))
		return fail(t, broken);
	dwarf_number(&die, DW_AT_encoding, &encoding);
	dwarf_number(&die, DW_AT_byte_size, &size);
	if (encoding == DW_ATE_float || !size || size > 8)
		return fail(t, no_integers);
	if (size == 8)
		return 0;
	return unary(t, WHERE_EXTEND, (uint8_t)size,
		     encoding == DW_ATE_signed || encoding == DW_ATE_signed_char);
}

static int implicit_value(struct translation *t, const Dwarf_Op *op)
{
	Dwarf_Block block;
	uint64_t value = 0;

	if (!t->attr || dwarf_getlocation_implicit_value(t->attr, op, &block))
		return fail(t, broken);
	if (block.length > sizeof(value))
		return fail(t, "it is a constant that has no place in memory");
	memcpy(&value, block.data, block.length);
	t->is_value = true;
	return push_const(t, value);
}

static int entry_value(struct translation *t, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (!t->c->at_entry || !t->attr || dwarf_getlocation_attr(t->attr, op, &attr) ||
	    dwarf_getlocation(&attr, &ops, &n))
		return fail(t, entry_only);
	return nested(t, &attr, ops, n);
}

/* Addresses and constants that stand in a table of the unit. */
static int indexed(struct translation *t, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Addr address;
	Dwarf_Word word;

	if (!t->attr || dwarf_getlocation_attr(t->attr, op, &attr))
		return fail(t, broken);
	if (op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index)
		return dwarf_formaddr(&attr, &address) ? fail(t, broken) : push_address(t, address);
	return dwarf_formudata(&attr, &word) ? fail(t, broken) : push_const(t, word);
}

/* Up by some bits and down again by as many is how gcc writes that a number has a sign. Else there
 * is no DW_OP_shra here, nor DW_OP_abs: gcc has them also of numbers of 4 bytes in registers, whose
 * upper halves may be anything, and what comes out then is wrong. */
static int extend_sign(struct translation *t)
{
	struct where_item *end = &t->out->items[t->out->n_items];
	uint64_t by;

	if (t->depth < 2)
		return fail(t, broken);
	/* the second operand is one item, and the first ends with a shift of one */
	if (t->starts[t->depth - 1] != t->out->n_items - 1 ||
	    t->out->n_items - t->starts[t->depth - 2] < 4 || end[-1].op != WHERE_CONST ||
	    end[-2].op != WHERE_SHL || end[-3].op != WHERE_CONST)
		return fail(t, not_here);
	by = (uint64_t)end[-1].value;
	if ((uint64_t)end[-3].value != by || (by != 32 && by != 48 && by != 56))
		return fail(t, not_here);
	t->out->n_items -= 3;
	t->depth--;
	return unary(t, WHERE_EXTEND, (uint8_t)((64 - by) / 8), true);
}

static int arithmetic(struct translation *t, const Dwarf_Op *op)
{
	static const struct {
		uint8_t atom;
		enum where_op op;
	} two[] = {
		{DW_OP_plus, WHERE_ADD}, {DW_OP_minus, WHERE_SUB}, {DW_OP_and, WHERE_AND},
		{DW_OP_mul, WHERE_MUL},	 {DW_OP_or, WHERE_OR},	   {DW_OP_xor, WHERE_XOR},
		{DW_OP_shl, WHERE_SHL},	 {DW_OP_shr, WHERE_SHR},   {DW_OP_eq, WHERE_EQ},
		{DW_OP_ne, WHERE_NE},	 {DW_OP_lt, WHERE_LT},	   {DW_OP_le, WHERE_LE},
		{DW_OP_gt, WHERE_GT},	 {DW_OP_ge, WHERE_GE},
	};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(two); i++)
		if (two[i].atom == op->atom)
			return binary(t, two[i].op);
	if (op->atom == DW_OP_shra)
		return extend_sign(t);
	if (op->atom != DW_OP_not && op->atom != DW_OP_neg)
		return fail(t, not_here);
	r = push_const(t, UINT64_MAX);
	if (r == 0)
		r = binary(t, WHERE_XOR);
	return r < 0 || op->atom == DW_OP_not ? r : add_const(t, 1);
}

static int stack_operation(struct translation *t, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_dup:
		return pick(t, 0);
	case DW_OP_over:
		return pick(t, 1);
	case DW_OP_pick:
		return pick(t, op->number);
	case DW_OP_swap:
		return rotate(t, 2);
	case DW_OP_rot:
		return rotate(t, 3);
	case DW_OP_drop:
		return drop(t);
	case DW_OP_deref:
		return unary(t, WHERE_DEREF, 8, false);
	case DW_OP_deref_size:
		if (op->number != 1 && op->number != 2 && op->number != 4 && op->number != 8)
			return fail(t, too_complex);
		return unary(t, WHERE_DEREF, (uint8_t)op->number, false);
	case DW_OP_plus_uconst:
		return add_const(t, op->number);
	case DW_OP_nop:
		return 0;
	default:
		return arithmetic(t, op);
	}
}

static int special(struct translation *t, const Dwarf_Op *op)
{
	int r;

	switch (op->atom) {
	case DW_OP_fbreg:
		r = push_frame_base(t);
		return r < 0 ? r : add_const(t, op->number);
	case DW_OP_call_frame_cfa:
		return push_cfa(t);
	case DW_OP_stack_value:
		t->is_value = true;
		return 0;
	case DW_OP_implicit_value:
		return implicit_value(t, op);
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		return entry_value(t, op);
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		return indexed(t, op);
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		return fail(t, thread_local);
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		return fail(t, "it is optimised away: what it points to has no place in memory");
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		if (!register_name(t->c->d->machine, op->number))
			return fail(t, no_integers);
		r = push_register(t, op->number);
		return r < 0 ? r : convert(t, op->number2);
	case DW_OP_convert:
	case DW_OP_GNU_convert:
		return convert(t, op->number);
	default:
		return stack_operation(t, op);
	}
}

static int one(struct translation *t, const Dwarf_Op *op)
{
	int r;

	if (!*t->budget)
		return fail(t, too_complex);
	--*t->budget;
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push_const(t, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
		return push_const(t, op->number);
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		return in_register(t, op->atom - DW_OP_reg0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		r = push_register(t, op->atom - DW_OP_breg0);
		return r < 0 ? r : add_const(t, op->number);
	}
	switch (op->atom) {
	case DW_OP_addr:
		return push_address(t, op->number);
	case DW_OP_regx:
		return in_register(t, op->number);
	case DW_OP_bregx:
		r = push_register(t, op->number);
		return r < 0 ? r : add_const(t, op->number2);
	default:
		return special(t, op);
	}
}

/* --- pieces --- */

static void end_piece(struct translation *t, uint32_t offset, uint32_t size, const char *why)
{
	struct where_piece *p = &t->out->pieces[t->out->n_pieces++];
	size_t n = t->out->n_items - t->base;

	*p = (struct where_piece){.offset = offset, .size = size, .why = why};
	if (why || !t->depth) {
		t->out->n_items = t->base;
		p->kind = WHERE_NOWHERE;
		p->why = why ? why : gone_here;
		p->vector = t->vector;
	} else if (t->depth > 1) {
		/* what is below the top counts for nothing */
		p->kind = WHERE_NOWHERE;
		p->why = too_complex;
		t->out->n_items = t->base;
	} else {
		p->kind = t->is_value || t->in_register ? WHERE_VALUE : WHERE_MEMORY;
		p->first = (uint16_t)t->base;
		p->n = (uint16_t)n;
	}
	t->base = t->out->n_items;
	t->depth = 0;
	t->is_value = t->in_register = false;
	t->vector = NULL;
}

/* Where a branch goes, or n_ops for the end. Backwards would be a loop. */
static int branch_target(struct translation *t, size_t at, size_t *ret)
{
	const Dwarf_Op *op = &t->ops[at];
	int64_t to = (int64_t)op->offset + 3 + (int16_t)op->number;

	for (*ret = at + 1; *ret < t->n_ops; ++*ret)
		if ((int64_t)t->ops[*ret].offset >= to)
			break;
	if (*ret < t->n_ops ? (int64_t)t->ops[*ret].offset != to
			    : to <= (int64_t)t->ops[t->n_ops - 1].offset)
		return fail(t, "what the debug data has to compute for it is a loop");
	return 0;
}

static int translate_from(struct translation *t, size_t at);

/* What is on the stack, to be gone back to. */
struct saved_stack {
	struct where_item items[WHERE_ITEMS];
	size_t n_items, depth;
	uint16_t starts[STACK_MAX];
	bool is_value, in_register;
};

static void save_stack(const struct translation *t, struct saved_stack *s)
{
	memcpy(s->items, t->out->items, sizeof(s->items));
	memcpy(s->starts, t->starts, sizeof(s->starts));
	s->n_items = t->out->n_items;
	s->depth = t->depth;
	s->is_value = t->is_value;
	s->in_register = t->in_register;
}

static void restore_stack(struct translation *t, const struct saved_stack *s)
{
	memcpy(t->out->items, s->items, sizeof(s->items));
	memcpy(t->starts, s->starts, sizeof(s->starts));
	t->out->n_items = s->n_items;
	t->depth = s->depth;
	t->is_value = s->is_value;
	t->in_register = s->in_register;
}

/* The items of `from` that its top is, as one more. */
static int push_run(struct translation *t, const struct saved_stack *from, size_t which)
{
	size_t end = which + 1 < from->depth ? from->starts[which + 1] : from->n_items;
	int r = 0;

	if (t->depth == STACK_MAX)
		return fail(t, too_complex);
	t->starts[t->depth++] = (uint16_t)t->out->n_items;
	for (size_t i = from->starts[which]; r == 0 && i < end; i++)
		r = add_item(t, from->items[i]);
	return r;
}

/* Both ways are gone to the end, and the number that decides takes one of the results:
 * no ^ ((yes ^ no) & -(number != 0)). */
static int branch(struct translation *t, size_t at)
{
	struct saved_stack before, yes, no;
	size_t to, condition;
	int r = branch_target(t, at, &to);

	if (r == 0 && t->depth <= t->floor)
		r = fail(t, broken);
	if (r < 0 || ++t->branches > 3)
		return r < 0 ? r : fail(t, too_complex);
	save_stack(t, &before);
	condition = before.depth - 1;
	drop(t);
	r = translate_from(t, to);
	save_stack(t, &yes);
	if (r < 0)
		return r;
	restore_stack(t, &before);
	drop(t);
	r = translate_from(t, at + 1);
	save_stack(t, &no);
	if (r == 0 && (yes.depth <= t->floor || no.depth <= t->floor ||
		       yes.is_value != no.is_value || yes.in_register || no.in_register))
		r = fail(t, too_complex);
	if (r < 0)
		return r;
	t->out->n_items = before.starts[t->floor];
	t->depth = t->floor;
	if ((r = push_run(t, &no, no.depth - 1)) < 0 ||
	    (r = push_run(t, &yes, yes.depth - 1)) < 0 ||
	    (r = push_run(t, &no, no.depth - 1)) < 0 || (r = binary(t, WHERE_XOR)) < 0 ||
	    (r = push_const(t, 0)) < 0 || (r = push_run(t, &before, condition)) < 0 ||
	    (r = push_const(t, 0)) < 0 || (r = binary(t, WHERE_NE)) < 0 ||
	    (r = binary(t, WHERE_SUB)) < 0 || (r = binary(t, WHERE_AND)) < 0)
		return r;
	return binary(t, WHERE_XOR);
}

static int translate_from(struct translation *t, size_t at)
{
	while (at < t->n_ops) {
		const Dwarf_Op *op = &t->ops[at];
		int r;

		if (op->atom == DW_OP_bra)
			return branch(t, at);
		if (op->atom == DW_OP_skip) {
			r = branch_target(t, at, &at);
		} else {
			r = one(t, op);
			at++;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int translate(struct translation *t, const Dwarf_Op *ops, size_t n)
{
	const Dwarf_Op *outer = t->ops;
	size_t n_outer = t->n_ops, floor = t->floor;
	int r;

	t->ops = ops;
	t->n_ops = n;
	t->floor = t->depth;
	r = translate_from(t, 0);
	t->ops = outer;
	t->n_ops = n_outer;
	t->floor = floor;
	return r;
}

/* Up to the next DW_OP_piece, or all. */
static size_t piece_end(const Dwarf_Op *ops, size_t from, size_t n)
{
	while (from < n && ops[from].atom != DW_OP_piece && ops[from].atom != DW_OP_bit_piece)
		from++;
	return from;
}

static void translate_all(struct translation *t, const Dwarf_Op *ops, size_t n)
{
	uint32_t offset = 0;
	size_t i = 0;

	do {
		size_t end = piece_end(ops, i, n);
		uint64_t size = end < n ? ops[end].number : 0;
		int r;

		if (t->out->n_pieces == WHERE_PIECES || size > UINT16_MAX ||
		    (end < n && ops[end].atom == DW_OP_bit_piece)) {
			where_nowhere(t->out, too_complex);
			return;
		}
		r = translate(t, ops + i, end - i);
		t->nested = 0;
		end_piece(t, offset, (uint32_t)size, r < 0 ? t->why : NULL);
		offset += (uint32_t)size;
		i = end + 1;
	} while (i < n);
}

/* --- the whole --- */

static bool constant(Dwarf_Die *die, struct where *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Sword number;
	Dwarf_Block block;
	uint64_t value = 0;

	if (!dwarf_attr_integrate(die, DW_AT_const_value, &attr))
		return false;
	if (dwarf_formsdata(&attr, &number) == 0) {
		value = (uint64_t)number;
	} else if (dwarf_formblock(&attr, &block) == 0 && block.length <= sizeof(value)) {
		memcpy(&value, block.data, block.length);
	} else {
		where_nowhere(ret, "it is a constant that has no place in memory");
		return true;
	}
	ret->items[0] = (struct where_item){.op = WHERE_CONST, .value = (int64_t)value};
	ret->n_items = ret->n_pieces = 1;
	ret->pieces[0] = (struct where_piece){.kind = WHERE_VALUE, .n = 1};
	return true;
}

void dwarf_locate(const struct dwarf_context *c, Dwarf_Die *die, struct where *ret)
{
	unsigned budget = OPS_MAX;
	Dwarf_Attribute attr;
	struct translation t = {.c = c, .attr = &attr, .out = ret, .budget = &budget};
	Dwarf_Op *ops;
	size_t n;
	int found;

	*ret = (struct where){0};
	if (!dwarf_place(die, DW_AT_location, &attr)) {
		if (!constant(die, ret))
			where_nowhere(ret, gone);
		return;
	}
	found = dwarf_getlocation_addr(&attr, c->address, &ops, &n, 1);
	if (found < 0)
		where_nowhere(ret, broken);
	else if (!found || !n)
		where_nowhere(ret, found ? gone : gone_here);
	else
		translate_all(&t, ops, n);
}
