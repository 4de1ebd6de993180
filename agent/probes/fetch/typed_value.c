// SPDX-License-Identifier: GPL-2.0-or-later
/* Values by their type, from where debug data says that they are: in memory, in registers, in
 * pieces. */
#include "probes/fetch/priv.h"

/* --- places --- */

/* Adds what is still to be added to the address in the accumulator. */
static int settle(struct maker *m, int64_t *pending)
{
	uint64_t value = (uint64_t)*pending;

	*pending = 0;
	return value ? make_op(m, AX_CODE_ADD, AX_OP_IMMEDIATE, 8, value) : 0;
}

static int emit_operator(struct maker *m, const struct where_item *item)
{
	static const uint8_t codes[] = {
		[WHERE_ADD] = AX_CODE_ADD, [WHERE_SUB] = AX_CODE_SUB, [WHERE_AND] = AX_CODE_AND,
		[WHERE_MUL] = AX_CODE_MUL, [WHERE_OR] = AX_CODE_OR,   [WHERE_XOR] = AX_CODE_XOR,
		[WHERE_SHL] = AX_CODE_SHL, [WHERE_SHR] = AX_CODE_SHR, [WHERE_EQ] = AX_CODE_EQ,
		[WHERE_NE] = AX_CODE_NE,   [WHERE_LT] = AX_CODE_LT,   [WHERE_LE] = AX_CODE_LE,
		[WHERE_GT] = AX_CODE_GT,   [WHERE_GE] = AX_CODE_GE,
	};

	if (item->op == WHERE_EXTEND)
		return make_op(m, AX_CODE_EXTEND, item->is_signed ? AX_OP_SIGNED : 0, item->size,
			       0);
	if (item->op == WHERE_NOT)
		return make_op(m, AX_CODE_NOT, 0, 8, 0);
	return make_op(m, codes[item->op], 0, 8, 0);
}

static int emit_item(struct maker *m, const struct where_item *item, int64_t *pending)
{
	struct made unused;
	int r;

	if (item->op == WHERE_ADD_CONST) {
		*pending = (int64_t)((uint64_t)*pending + (uint64_t)item->value);
		return 0;
	}
	if (item->op == WHERE_DEREF) {
		int64_t offset = *pending;

		*pending = 0;
		return make_fetch(m, maker_in_kernel(m), 0, item->size, offset);
	}
	r = settle(m, pending);
	if (r < 0)
		return r;
	switch (item->op) {
	case WHERE_CONST:
		return make_leaf(m, AX_CODE_CONST, 0, 8, (uint64_t)item->value);
	case WHERE_REGISTER:
		return make_register(m, item->reg, &unused);
	case WHERE_RELATIVE:
		*pending = item->value;
		return make_register(m, "ip", &unused);
	default:
		return emit_operator(m, item);
	}
}

static int emit(struct maker *m, const struct where *w, const struct where_piece *p,
		int64_t *pending)
{
	int r = 0;

	*pending = 0;
	for (size_t i = 0; r == 0 && i < p->n; i++)
		r = emit_item(m, &w->items[p->first + i], pending);
	if (w->exact)
		m->out->needs_exact = true;
	return r;
}

/* --- values of a type --- */

static void show_pointer(struct maker *m, struct made *ret)
{
	struct ctype target;

	ret->type = VALUE_HEX;
	if (ctype_target(&ret->ctype, &target) || target.kind != CTYPE_CHAR)
		return;
	ret->type = VALUE_STRING;
	ret->size = 0;
	ret->kernel = maker_in_kernel(m);
	ret->pointer = true;
}

/* How the number in the accumulator is shown. */
void part_show_number(struct maker *m, const struct ctype *t, struct made *ret)
{
	*ret = (struct made){.type = VALUE_UNSIGNED, .size = (uint32_t)t->size, .typed = true};
	ret->ctype = *t;
	ret->wide = t->size == 8 && !t->is_signed &&
		    (t->kind == CTYPE_POINTER || t->kind == CTYPE_INTEGER || t->kind == CTYPE_ENUM);
	switch (t->kind) {
	case CTYPE_POINTER:
		show_pointer(m, ret);
		break;
	case CTYPE_CHAR:
		ret->type = VALUE_CHAR;
		break;
	case CTYPE_INTEGER:
	case CTYPE_ENUM:
		if (t->is_signed)
			ret->type = VALUE_SIGNED;
		break;
	case CTYPE_BOOL:
		if (t->size == 1)
			ret->type = VALUE_BOOL;
		break;
	case CTYPE_FLOAT:
		ret->type = t->size == 4 || t->size == 8 ? VALUE_FLOAT : VALUE_HEX;
		break;
	default: /* the bits of what is no integer */
		ret->type = VALUE_HEX;
	}
}

/* What the accumulator has the address of. */
static int show_aggregate(bool kernel, const struct ctype *t, struct made *ret)
{
	struct ctype element;

	*ret = (struct made){.type = VALUE_BUFFER, .kernel = kernel, .typed = true};
	ret->ctype = *t;
	ret->size = t->size < SHAPE_BYTES_MAX ? (uint32_t)t->size : SHAPE_BYTES_MAX;
	if (t->kind != CTYPE_ARRAY || ctype_target(t, &element) || element.kind != CTYPE_CHAR)
		return 0;
	ret->type = VALUE_STRING;
	ret->size = t->size < AX_PROBE_FETCH ? (uint32_t)t->size : AX_PROBE_FETCH;
	return 0;
}

static bool fits_number(const struct ctype *t)
{
	return t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8;
}

/* Also numbers that are too wide to be one here. */
static bool is_bytes(const struct ctype *t)
{
	return ctype_is_aggregate(t) || ((t->kind == CTYPE_FLOAT || t->kind == CTYPE_INTEGER) &&
					 t->size > 8 && t->size <= 16);
}

static int refuse_type(struct maker *m, const struct ctype *t)
{
	char what[160];

	ctype_describe(t, what, sizeof(what));
	return maker_fault(m, -ENOTSUP, "it is %s of %llu bytes, which cannot be fetched", what,
			   (unsigned long long)t->size);
}

int make_bits(struct maker *m, unsigned bit, unsigned bits, bool is_signed)
{
	uint64_t sign = 1ull << (bits - 1);
	int r = bit ? make_op(m, AX_CODE_SHR, AX_OP_IMMEDIATE, 8, bit) : 0;

	if (r == 0 && bits < 64)
		r = make_op(m, AX_CODE_AND, AX_OP_IMMEDIATE, 8, (sign << 1) - 1);
	if (r < 0 || !is_signed || bits == 64)
		return r;
	r = make_op(m, AX_CODE_XOR, AX_OP_IMMEDIATE, 8, sign);
	return r < 0 ? r : make_op(m, AX_CODE_SUB, AX_OP_IMMEDIATE, 8, sign);
}

void part_enter_member(struct part *p, const struct ctype_member *f)
{
	p->type = f->type;
	p->offset += f->offset;
	p->bit = f->bit;
	p->bits = f->bits;
}

static int show_bits(struct maker *m, const struct part *p, struct made *ret)
{
	bool named = p->type.kind == CTYPE_ENUM;
	int r = make_bits(m, p->bit, p->bits, p->type.is_signed);

	*ret = (struct made){.type = p->type.is_signed ? VALUE_SIGNED : VALUE_UNSIGNED, .size = 8};
	if (named) {
		ret->typed = true;
		ret->ctype = p->type;
	}
	return r;
}

/* The part of what is in memory at the accumulator. */
int part_load(struct maker *m, bool kernel, const struct part *p, int64_t base, struct made *ret)
{
	int64_t at = (int64_t)((uint64_t)base + p->offset);
	uint8_t sign = p->type.is_signed ? AX_OP_SIGNED : 0;
	int r;

	if (p->bits) {
		unsigned bytes = (p->bit + p->bits + 7u) / 8, size = 1;

		while (size < bytes)
			size *= 2;
		if (size > 8)
			return maker_fault(m, -ENOTSUP, "a bitfield over nine bytes");
		r = make_fetch(m, kernel, 0, size, at);
		return r < 0 ? r : show_bits(m, p, ret);
	}
	if (is_bytes(&p->type)) {
		r = settle(m, &at);
		return r < 0 ? r : show_aggregate(kernel, &p->type, ret);
	}
	if (!fits_number(&p->type))
		return refuse_type(m, &p->type);
	r = make_fetch(m, kernel, sign, (uint32_t)p->type.size, at);
	part_show_number(m, &p->type, ret);
	return r;
}

/* The part of a value in the accumulator, of which it is so many bytes further up. */
static int shift_part(struct maker *m, const struct part *p, uint64_t bytes, struct made *ret)
{
	int r = bytes ? make_op(m, AX_CODE_SHR, AX_OP_IMMEDIATE, 8, bytes * 8) : 0;

	if (r < 0)
		return r;
	if (p->bits)
		return show_bits(m, p, ret);
	r = make_number(m, (uint32_t)p->type.size, p->type.is_signed);
	part_show_number(m, &p->type, ret);
	return r;
}

static const struct where_piece *piece_at(const struct where *w, uint64_t offset, uint64_t size)
{
	if (w->n_pieces == 1 && !w->pieces[0].size)
		return &w->pieces[0];
	for (size_t i = 0; i < w->n_pieces; i++) {
		const struct where_piece *p = &w->pieces[i];

		if (offset >= p->offset && offset + size <= (uint64_t)p->offset + p->size)
			return p;
	}
	return NULL;
}

static int no_value(struct maker *m, const char *why)
{
	m->gone = why;
	return maker_fault(m, -ENODATA, "%s", why);
}

int store_gone(struct maker *m, const char *name)
{
	struct made made = {.type = VALUE_HEX, .size = 8};
	int r;

	m->list->depth = 0;
	r = make_leaf(m, AX_CODE_CONST, 0, 8, 0);
	if (r == 0) /* nothing is ever mapped there, so it is a fault */
		r = make_fetch(m, false, 0, 1, 0);
	if (r == 0)
		r = store_made(m, &made, name);
	if (r == 0)
		m->out->values[m->out->n_values - 1].gone = m->gone;
	return r;
}

/* --- what is in several registers --- */

/* In a vector register, of which something is known here. */
static bool is_vector(const struct maker *m, const struct where_piece *p)
{
	return m->place->stopped && p->kind == WHERE_NOWHERE && p->vector;
}

/* The bytes from `at` on, at most 8, of a piece; what is in no register that is known is 0. */
static int load_piece(struct maker *m, const struct where *w, const struct where_piece *p,
		      uint64_t at, uint32_t size)
{
	uint64_t inner = at - p->offset;
	int64_t pending;
	int r;

	if (is_vector(m, p))
		return make_vector(m, p->vector, inner, 8, false);
	if (p->kind == WHERE_NOWHERE)
		return make_leaf(m, AX_CODE_CONST, 0, 8, 0);
	r = emit(m, w, p, &pending);
	if (r < 0)
		return r;
	if (p->kind == WHERE_MEMORY) {
		uint32_t fetched = 8;

		while (fetched > size)
			fetched /= 2; /* what is behind may not be there */
		pending = (int64_t)((uint64_t)pending + inner);
		return make_fetch(m, maker_in_kernel(m), 0, fetched, pending);
	}
	r = settle(m, &pending);
	return r == 0 && inner ? make_op(m, AX_CODE_SHR, AX_OP_IMMEDIATE, 8, inner * 8) : r;
}

static int put_bytes(struct maker *m, uint32_t size)
{
	m->list->depth = 0;
	return make_op(m, AX_CODE_PUT, 0, (uint8_t)size, 0);
}

/* Up to where the next piece begins. */
static uint64_t put_piece(struct maker *m, const struct where *w, uint64_t at, uint64_t end, int *r)
{
	const struct where_piece *found = NULL, all = {.size = (uint32_t)(end - at)};
	uint64_t next = end, size;

	for (size_t i = 0; i < w->n_pieces; i++) {
		const struct where_piece *p = &w->pieces[i];
		uint64_t behind = p->size ? (uint64_t)p->offset + p->size : end;

		if (p->offset <= at && at < behind) {
			found = p;
			next = behind < end ? behind : end;
		} else if (!found && p->offset > at && p->offset < next) {
			next = p->offset; /* there is nothing before it */
		}
	}
	size = next - at < 8 ? next - at : 8;
	if (found && found->kind == WHERE_MEMORY)
		while (size & (size - 1))
			size &= size - 1;
	*r = load_piece(m, w, found ? found : &all, at, (uint32_t)size);
	if (*r == 0)
		*r = put_bytes(m, (uint32_t)size);
	return at + size;
}

static int put_pieces(struct maker *m, const struct where *w, const struct part *p,
		      struct made *ret)
{
	uint64_t at = p->offset, end = p->offset + p->type.size;
	bool some = false;
	int r = 0;

	for (size_t i = 0; i < w->n_pieces; i++)
		some |= w->pieces[i].kind != WHERE_NOWHERE || is_vector(m, &w->pieces[i]);
	if (!some)
		return no_value(m, w->pieces[0].why);
	if (m->list->depth || m->list != &m->main || !p->type.size ||
	    p->type.size > 8ull * 2 * WHERE_PIECES)
		return maker_fault(m, -ENOTSUP,
				   "it is in several registers: expected one of its members");
	m->pieces = *w;
	while (r == 0 && at < end)
		at = put_piece(m, &m->pieces, at, end, &r);
	if (r < 0)
		return r;
	m->list->v[m->list->n - 1].value = p->type.size;
	m->list->depth = 1;
	*ret = (struct made){.type = VALUE_BUFFER,
			     .size = (uint32_t)p->type.size,
			     .typed = true,
			     .ctype = p->type,
			     .form = MADE_PUT,
			     .at = p->offset};
	return 0;
}

/* A number in a vector register. */
static int vector_part(struct maker *m, const struct where_piece *piece, const struct part *p,
		       struct made *ret)
{
	uint64_t inner = p->offset - piece->offset;
	int r;

	if (p->bits || !fits_number(&p->type) || inner + p->type.size > 16)
		return refuse_type(m, &p->type);
	r = make_vector(m, piece->vector, inner, (uint32_t)p->type.size, p->type.is_signed);
	part_show_number(m, &p->type, ret);
	return r;
}

int make_part(struct maker *m, const struct where *w, const struct part *p, struct made *ret)
{
	uint64_t size = p->bits ? (p->bit + p->bits + 7u) / 8 : p->type.size;
	const struct where_piece *piece = piece_at(w, p->offset, size);
	int64_t pending;
	int r;

	r = p->bits ? 0 : make_variable_text(m, w, p->offset, &p->type, ret);
	if (r)
		return r < 0 ? r : 0;
	if (is_bytes(&p->type) && (!piece || piece->kind == WHERE_VALUE || is_vector(m, piece)))
		return put_pieces(m, w, p, ret);
	if (piece && is_vector(m, piece))
		return vector_part(m, piece, p, ret);
	if (!piece || piece->kind == WHERE_NOWHERE)
		return no_value(m, piece ? piece->why : "it is optimised away in this part");
	if (piece->kind == WHERE_VALUE &&
	    (p->offset - piece->offset + size > 8 || (!p->bits && !fits_number(&p->type))))
		return refuse_type(m, &p->type);
	r = emit(m, w, piece, &pending);
	if (r < 0)
		return r;
	if (piece->kind == WHERE_MEMORY) {
		r = part_load(m, maker_in_kernel(m), p,
			      (int64_t)((uint64_t)pending - piece->offset), ret);
		return r < 0 ? r : make_text(m, ret);
	}
	r = settle(m, &pending);
	return r < 0 ? r : shift_part(m, p, p->offset - piece->offset, ret);
}
