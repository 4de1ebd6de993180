// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where callers put arguments and functions their result: by the calling conventions of C on x86-64
 * and arm64, and by Go's. What is not as simple as numbers, pointers and small structs of them is
 * nowhere, and if it is not even known how much room it takes, so is what follows it.
 */
#include <elf.h>

#include "probes/types/dwarf_priv.h"

#define SCALARS_MAX 16
#define FLOAT_REGS  8

static const char in_vector[] =
	"it is passed in a floating-point or vector register, which no probe "
	"can read";
static const char not_known[] = "how it is passed is not known";
static const char follows_unknown[] =
	"how it is passed is not known, since it follows a parameter of a type that is not simple";

/* --- what a type is made of --- */

struct scalar {
	uint32_t offset, size;
	bool is_float;
};
struct scalars {
	struct scalar v[SCALARS_MAX];
	size_t n;
	uint32_t base;
	unsigned depth;
	bool wide; /* has something that is aligned to 16 bytes */
	bool list; /* has an array of more than one element */
};

static int flatten(struct scalars *s, const struct ctype *t, uint64_t offset);

static int on_member(void *arg, const struct ctype_member *m)
{
	struct scalars *s = arg;
	uint32_t base = s->base;
	int r;

	if (m->bits && m->type.size) /* as the number that it is part of */
		r = flatten(s, &m->type, base + m->offset / m->type.size * m->type.size);
	else
		r = flatten(s, &m->type, base + m->offset);
	s->base = base;
	return r;
}

static int flatten_array(struct scalars *s, const struct ctype *t, uint64_t offset)
{
	struct ctype element;
	int r = ctype_target(t, &element);

	if (r < 0 || !element.size)
		return -ENOTSUP;
	s->list |= t->count > 1;
	for (uint64_t i = 0; r == 0 && i < t->count; i++)
		r = flatten(s, &element, offset + i * element.size);
	return r;
}

static int flatten_inner(struct scalars *s, const struct ctype *t, uint64_t offset)
{
	switch (t->kind) {
	case CTYPE_STRUCT:
	case CTYPE_UNION:
		s->base = (uint32_t)offset;
		return t->source->members(t->source, t, on_member, s);
	case CTYPE_ARRAY:
		return flatten_array(s, t, offset);
	case CTYPE_INTEGER:
	case CTYPE_BOOL:
	case CTYPE_CHAR:
	case CTYPE_ENUM:
	case CTYPE_FLOAT:
	case CTYPE_POINTER:
		break;
	default:
		return -ENOTSUP;
	}
	if (!t->size || t->size > 16 || s->n == SCALARS_MAX)
		return -ENOTSUP;
	s->wide |= t->size == 16;
	s->v[s->n++] = (struct scalar){(uint32_t)offset, (uint32_t)t->size, t->kind == CTYPE_FLOAT};
	return 0;
}

static int flatten(struct scalars *s, const struct ctype *t, uint64_t offset)
{
	int r;

	if (offset > 4096 || s->depth == 16)
		return -ENOTSUP;
	s->depth++;
	r = flatten_inner(s, t, offset);
	s->depth--;
	return r;
}

/* --- places --- */

static const char *integer_register(const struct dwarf_abi *a, unsigned i)
{
	static const char *const x86[] = {"di", "si", "dx", "cx", "r8", "r9"};
	static const char *const arm64[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
	static const char *const go_x86[] = {"ax", "bx", "cx",	"di", "si",
					     "r8", "r9", "r10", "r11"};
	static const char *const go_arm64[] = {"x0",  "x1",  "x2",  "x3", "x4",	 "x5",
					       "x6",  "x7",  "x8",  "x9", "x10", "x11",
					       "x12", "x13", "x14", "x15"};

	if (a->machine == EM_AARCH64 && a->go)
		return i < ARRAY_SIZE(go_arm64) ? go_arm64[i] : NULL;
	if (a->machine == EM_AARCH64)
		return i < ARRAY_SIZE(arm64) ? arm64[i] : NULL;
	if (a->go)
		return i < ARRAY_SIZE(go_x86) ? go_x86[i] : NULL;
	return i < ARRAY_SIZE(x86) ? x86[i] : NULL;
}

static unsigned float_registers(const struct dwarf_abi *a)
{
	if (!a->go)
		return FLOAT_REGS;
	return a->machine == EM_AARCH64 ? 16 : 15;
}

static void add_piece(struct where *w, uint32_t offset, uint32_t size, const char *reg,
		      const char *why)
{
	struct where_piece *p = &w->pieces[w->n_pieces++];

	*p = (struct where_piece){.offset = offset, .size = size, .why = why};
	if (!reg)
		return;
	p->kind = WHERE_VALUE;
	p->first = (uint16_t)w->n_items;
	p->n = 1;
	w->items[w->n_items++] = (struct where_item){.op = WHERE_REGISTER, .size = 8, .reg = reg};
}

/* In the next register for floating-point numbers. */
static void add_vector(struct dwarf_abi *a, struct where *w, uint32_t offset, uint32_t size)
{
	add_piece(w, offset, size, NULL, in_vector);
	w->pieces[w->n_pieces - 1].vector = where_vector(a->machine, a->n_float++);
}

/* In memory at a register's value plus an offset. */
static void at_register(struct where *w, const char *reg, uint64_t offset)
{
	where_register(w, reg);
	w->items[w->n_items++] =
		(struct where_item){.op = WHERE_ADD_CONST, .value = (int64_t)offset};
	w->pieces[0].kind = WHERE_MEMORY;
	w->pieces[0].n = 2;
}

static void on_stack(struct dwarf_abi *a, uint64_t size, uint64_t align, struct where *ret)
{
	/* the return address is below the arguments where calls put it onto the stack */
	uint64_t below = a->machine == EM_AARCH64 ? (a->go ? 8 : 0) : 8;

	a->stack = (a->stack + align - 1) / align * align;
	at_register(ret, "sp", a->stack + below);
	a->stack += size;
}

/* --- C --- */

static void next_pointer(struct dwarf_abi *a, struct where *ret, bool memory)
{
	const char *reg = integer_register(a, a->n_registers);

	if (reg) {
		a->n_registers++;
		if (memory)
			at_register(ret, reg, 0);
		else
			where_register(ret, reg);
		return;
	}
	on_stack(a, 8, 8, ret);
	if (memory) { /* what is there is the address */
		ret->items[ret->n_items++] = (struct where_item){.op = WHERE_DEREF, .size = 8};
		ret->pieces[0].n++;
	}
}

/* At most four: then they are in vector registers, however large they are together. */
static bool all_floats(const struct scalars *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->v[i].is_float)
			return false;
	return s->n && s->n <= 4;
}

/* The kind of each half of at most 16 bytes: what is all floating-point is in vector registers. */
struct halves {
	bool integer[2];
	unsigned n, n_integer;
};

static struct halves halves_of(const struct dwarf_abi *a, const struct ctype *t,
			       const struct scalars *s)
{
	/* arm64 has structs in these only if they are all of such numbers */
	bool whole = a->machine == EM_AARCH64 && ctype_is_aggregate(t) && !all_floats(s);
	struct halves h = {.n = t->size > 8 ? 2 : 1, .integer = {whole, whole && t->size > 8}};

	for (size_t i = 0; i < s->n; i++)
		for (unsigned k = 0; k < 2; k++)
			if (!s->v[i].is_float && s->v[i].offset < k * 8 + 8 &&
			    s->v[i].offset + s->v[i].size > k * 8)
				h.integer[k] = true;
	h.n_integer = (unsigned)h.integer[0] + (h.n > 1 && h.integer[1]);
	return h;
}

static void in_registers(struct dwarf_abi *a, const struct halves *h, uint64_t size,
			 const char *(*reg)(const struct dwarf_abi *a, unsigned i),
			 struct where *ret)
{
	*ret = (struct where){0};
	for (unsigned k = 0; k < h->n; k++) {
		uint32_t len = k || size < 8 ? (uint32_t)(size - k * 8) : 8;

		if (h->integer[k])
			add_piece(ret, k * 8, len, reg(a, a->n_registers++), NULL);
		else
			add_vector(a, ret, k * 8, len);
	}
}

static bool has_long_double(const struct scalars *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].is_float && s->v[i].size > 8)
			return true;
	return false;
}

static void next_small(struct dwarf_abi *a, const struct ctype *t, const struct scalars *s,
		       struct where *ret)
{
	struct halves h = halves_of(a, t, s);

	bool fits = !has_long_double(s) && a->n_float + h.n - h.n_integer <= FLOAT_REGS;

	if (h.n_integer && !integer_register(a, a->n_registers + h.n_integer - 1))
		fits = false;
	if (!fits) {
		if (a->machine == EM_AARCH64 && h.n_integer)
			a->n_registers = FLOAT_REGS; /* none behind it gets a register */
		on_stack(a, (t->size + 7) / 8 * 8, s->wide ? 16 : 8, ret);
		return;
	}
	in_registers(a, &h, t->size, integer_register, ret);
}

static void lose(struct dwarf_abi *a, struct where *ret)
{
	where_nowhere(ret, a->lost ? follows_unknown : not_known);
	a->lost = true;
}

static void next_c(struct dwarf_abi *a, const struct ctype *t, struct where *ret)
{
	struct scalars s = {0};

	if (a->machine == EM_AARCH64 && ctype_is_aggregate(t) && flatten(&s, t, 0) == 0 &&
	    all_floats(&s)) {
		if (a->n_float + s.n > FLOAT_REGS) {
			a->n_float = FLOAT_REGS; /* none behind it gets a register */
			on_stack(a, (t->size + 7) / 8 * 8, s.wide ? 16 : 8, ret);
			return;
		}
		*ret = (struct where){0};
		for (size_t i = 0; i < s.n; i++)
			add_vector(a, ret, s.v[i].offset, s.v[i].size);
		return;
	}
	s = (struct scalars){0};
	if (t->by_reference || (t->size > 16 && a->machine == EM_AARCH64)) {
		next_pointer(a, ret, true);
		return;
	}
	if (ctype_is_number(t)) {
		next_pointer(a, ret, false);
		return;
	}
	if (!t->size || t->kind == CTYPE_OTHER || t->kind == CTYPE_VOID) {
		lose(a, ret);
		return;
	}
	if (t->size > 16) {
		/* how it is aligned is known only by its members */
		if (flatten(&s, t, 0) < 0 && s.n < SCALARS_MAX) {
			lose(a, ret);
			return;
		}
		on_stack(a, (t->size + 7) / 8 * 8, s.wide ? 16 : 8, ret);
		return;
	}
	if (flatten(&s, t, 0) < 0 || (a->machine == EM_AARCH64 && s.wide)) {
		lose(a, ret);
		return;
	}
	if (t->kind == CTYPE_STRUCT && !s.n && t->size <= 1) {
		/* an empty class of C++ takes no room */
		where_nowhere(ret, "it has no value");
		return;
	}
	next_small(a, t, &s, ret);
}

/* --- Go --- */

/* What has an array of several elements does not, wherever it has it. */
static bool go_fits(const struct dwarf_abi *a, const struct scalars *s)
{
	unsigned integers = 0, floats = 0;

	if (s->list)
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].is_float)
			floats++;
		else
			integers++;
	return (!integers || integer_register(a, a->n_registers + integers - 1)) &&
	       a->n_float + floats <= float_registers(a);
}

static void next_go(struct dwarf_abi *a, const struct ctype *t, struct where *ret)
{
	struct scalars s = {0};

	int r = flatten(&s, t, 0);

	/* what has too many parts for registers is on the stack; there are more for floats */
	if (r < 0 && (s.n < SCALARS_MAX || (!s.list && go_fits(a, &s)))) {
		lose(a, ret);
		return;
	}
	*ret = (struct where){0};
	if (r < 0 || !go_fits(a, &s)) {
		on_stack(a, t->size, 8, ret);
		return;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (s.v[i].is_float) {
			add_vector(a, ret, s.v[i].offset, s.v[i].size);
		} else {
			add_piece(ret, s.v[i].offset, s.v[i].size,
				  integer_register(a, a->n_registers++), NULL);
		}
	}
	if (!s.n)
		where_nowhere(ret, "it has no value");
}

/* --- the whole --- */

/* The caller says in a register where the result goes. */
static bool returned_in_memory(const struct ctype *t)
{
	struct scalars s = {0};

	if (!ctype_is_aggregate(t))
		return false;
	if (t->by_reference || t->size > 16)
		return true;
	return flatten(&s, t, 0) == 0 && has_long_double(&s);
}

void dwarf_abi_start(struct dwarf_abi *a, uint16_t machine, bool go, const struct ctype *returns)
{
	*a = (struct dwarf_abi){.machine = machine, .go = go};
	/* arm64 has another register for it */
	if (!go && machine != EM_AARCH64 && returned_in_memory(returns))
		a->n_registers = 1;
}

void dwarf_abi_next(struct dwarf_abi *a, const struct ctype *type, struct where *ret)
{
	if (a->lost)
		lose(a, ret);
	else if (a->go)
		next_go(a, type, ret);
	else
		next_c(a, type, ret);
}

static const char *return_register(const struct dwarf_abi *a, unsigned i)
{
	static const char *const x86[] = {"ax", "dx"};
	static const char *const arm64[] = {"x0", "x1"};

	if (i > 1)
		return NULL;
	return a->machine == EM_AARCH64 ? arm64[i] : x86[i];
}

void dwarf_abi_return(uint16_t machine, const struct ctype *t, struct where *ret)
{
	struct dwarf_abi a = {.machine = machine};
	struct scalars s = {0};
	struct halves h;

	if (t->kind == CTYPE_VOID) {
		where_nowhere(ret, "the function returns nothing");
		return;
	}
	if (ctype_is_number(t)) {
		where_register(ret, return_register(&a, 0));
		return;
	}
	if (returned_in_memory(t)) {
		if (machine == EM_AARCH64)
			where_nowhere(ret, "it is in memory that only the caller knows of");
		else
			at_register(ret, "ax", 0);
		return;
	}
	if (t->kind == CTYPE_FLOAT) {
		where_nowhere(
			ret,
			"it is returned in a floating-point register, which no probe can read");
		return;
	}
	if (!t->size || t->size > 16 || flatten(&s, t, 0) < 0) {
		where_nowhere(ret, "how it is returned is not known");
		return;
	}
	h = halves_of(&a, t, &s);
	in_registers(&a, &h, t->size, return_register, ret);
}
