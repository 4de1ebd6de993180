// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texts and lists of other languages than C, which are an address and a length; and what members of
 * structs point to, which is fetched besides the struct.
 */
#include "probes/fetch/priv.h"

#define FOLLOWED_MAX	   8 /* of one value */
#define SHORT_FOLLOWED_MAX 3
#define HIDDEN_FIRST	   128 /* their numbers, until it is known how many values are before them */

int need_plain(struct maker *m, const struct made *made)
{
	if (made->own_text)
		return maker_fault(m, -EINVAL,
				   "it is a text: expected a number, or == or != and a text in "
				   "quotes");
	if (made->form == MADE_PLAIN)
		return 0;
	if (made->form == MADE_PUT)
		return maker_fault(m, -ENOTSUP,
				   "it is in several registers: expected one of its members");
	return maker_fault(m, -EINVAL,
			   "it is a text, or a list, and no number: expected one of its members");
}

/* --- from an address --- */

/* Onto the stack as well. */
static int make_double(struct maker *m)
{
	if (++m->list->depth > AX_PROBE_STACK + 1)
		return maker_fault(m, -E2BIG, "it is nested too deeply");
	return make_op(m, AX_CODE_ADD, AX_OP_IMMEDIATE | AX_OP_PUSH, 8, 0);
}

static int make_swap(struct maker *m)
{
	return make_op(m, AX_CODE_SWAP, 0, 8, 0);
}

static bool is_power(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* The accumulator times the size of an element. */
static int multiply(struct maker *m, uint64_t size)
{
	uint64_t low = size & (0 - size), rest = size - low, up = size + low;
	bool sum = is_power(rest);
	int r;

	if (is_power(size))
		return size == 1 ? 0
				 : make_op(m, AX_CODE_SHL, AX_OP_IMMEDIATE, 8,
					   (uint64_t)__builtin_ctzll(size));
	if (!sum && !is_power(up))
		return maker_fault(m, -ENOTSUP, "elements of %llu bytes are too much to compute",
				   (unsigned long long)size);
	r = make_double(m);
	if (r == 0)
		r = make_op(m, AX_CODE_SHL, AX_OP_IMMEDIATE, 8,
			    (uint64_t)__builtin_ctzll(sum ? rest : up));
	if (r == 0)
		r = make_swap(m);
	if (r == 0)
		r = make_op(m, AX_CODE_SHL, AX_OP_IMMEDIATE, 8, (uint64_t)__builtin_ctzll(low));
	return r < 0 ? r : make_op(m, sum ? AX_CODE_ADD : AX_CODE_SUB, 0, 8, 0);
}

/* What the accumulator and the stack have is a text, or elements. */
static void show_counted(const struct text_type *t, bool kernel, struct made *ret)
{
	ret->form = MADE_COUNTED;
	ret->kernel = kernel;
	ret->pointer = false;
	ret->type = t->kind == SHAPE_SLICE ? VALUE_BUFFER : VALUE_STRING;
	ret->size = t->kind == SHAPE_SLICE ? SHAPE_BYTES_MAX : FETCH_STRING_DEFAULT;
}

static int make_short_bit(struct maker *m, bool kernel)
{
	int r = make_fetch(m, kernel, 0, 1, 0);

	return r < 0 ? r : make_op(m, AX_CODE_AND, AX_OP_IMMEDIATE, 8, 1);
}

/* What a short string would have at the accumulator's address: its length or where its text is. */
static int make_short_part(struct maker *m, bool kernel, bool length)
{
	int r = length ? make_fetch(m, kernel, 0, 1, 0)
		       : make_op(m, AX_CODE_ADD, AX_OP_IMMEDIATE, 8, 1);

	return r < 0 || !length ? r : make_op(m, AX_CODE_SHR, AX_OP_IMMEDIATE, 8, 1);
}

/* The length or place of a text whose string is at the accumulator's address:
 * short + bit * (long - short), since nothing branches here. */
static int choose(struct maker *m, const struct text_type *t, bool kernel, bool length)
{
	int r;

	if ((r = make_double(m)) < 0 || (r = make_short_part(m, kernel, length)) < 0 ||
	    (r = make_swap(m)) < 0 || (r = make_double(m)) < 0 ||
	    (r = make_short_bit(m, kernel)) < 0 || (r = make_swap(m)) < 0 ||
	    (r = make_double(m)) < 0 ||
	    (r = make_fetch(m, kernel, 0, 8, length ? t->len_at : t->ptr_at)) < 0 ||
	    (r = make_swap(m)) < 0 || (r = make_short_part(m, kernel, length)) < 0 ||
	    (r = make_op(m, AX_CODE_SUB, 0, 8, 0)) < 0 ||
	    (r = make_op(m, AX_CODE_MUL, 0, 8, 0)) < 0)
		return r;
	return make_op(m, AX_CODE_ADD, 0, 8, 0);
}

/* The accumulator becomes where the text is, its length the value below. */
static int make_short_string(struct maker *m, const struct text_type *t, bool kernel)
{
	int r = make_double(m);

	if (r == 0)
		r = choose(m, t, kernel, true);
	if (r == 0)
		r = make_swap(m);
	return r < 0 ? r : choose(m, t, kernel, false);
}

int make_text(struct maker *m, struct made *made)
{
	bool kernel = made->kernel, before;
	struct text_type t;
	int r;

	if (made->form != MADE_PLAIN || !made->typed || made->type != VALUE_BUFFER ||
	    !ctype_is_text(&made->ctype, &t))
		return 0;
	if (t.kind == SHAPE_STRING_SHORT) {
		r = make_short_string(m, &t, kernel);
		show_counted(&t, kernel, made);
		return r;
	}
	before = t.kind == SHAPE_STRING_BEFORE;
	/* before: the text's address is wanted twice; else the string's */
	r = before ? make_fetch(m, kernel, 0, 8, t.ptr_at) : 0;
	if (r == 0)
		r = make_double(m);
	if (r == 0)
		r = make_fetch(m, kernel, 0, 8, before ? -(int64_t)t.len_at : t.len_at);
	if (r == 0 && t.kind == SHAPE_SLICE)
		r = multiply(m, t.element.size);
	if (r == 0)
		r = make_swap(m);
	if (r == 0 && !before)
		r = make_fetch(m, kernel, 0, 8, t.ptr_at);
	show_counted(&t, kernel, made);
	return r;
}

/* --- from a variable or again from an expression --- */

int load_of_variable(struct maker *m, const struct loader *l, uint64_t offset)
{
	struct part p = {.type = {.kind = CTYPE_INTEGER, .size = 8}, .offset = l->base + offset};
	struct made unused;

	return make_part(m, l->where, &p, &unused);
}

int address_of_variable(struct maker *m, const struct loader *l, uint64_t offset)
{
	/* of a type whose value is its address */
	struct part p = {.type = {.kind = CTYPE_STRUCT, .size = 16}, .offset = l->base + offset};
	struct made made;
	int r = make_part(m, l->where, &p, &made);

	return r < 0 ? r : made.form == MADE_PLAIN ? 0 : -ENOTSUP;
}

static int load_length(struct maker *m, const struct loader *l, uint64_t at,
		       const struct shape_node *n, uint64_t element)
{
	int r;

	if (n->kind == SHAPE_STRING_BEFORE) {
		r = l->load(m, l, at + n->ptr_at);
		return r < 0 ? r : make_fetch(m, maker_in_kernel(m), 0, 8, -(int64_t)n->len_at);
	}
	r = l->load(m, l, at + n->len_at);
	return r == 0 && n->kind == SHAPE_SLICE ? multiply(m, element) : r;
}

int make_variable_text(struct maker *m, const struct where *w, uint64_t base, const struct ctype *t,
		       struct made *ret)
{
	struct loader l = {.load = load_of_variable, .where = w, .base = base};
	struct shape_node n = {0};
	struct text_type text;
	int r;

	/* what may be within itself is always in memory, and is taken from there */
	if (!ctype_is_text(t, &text) || text.kind == SHAPE_STRING_SHORT)
		return 0;
	n = (struct shape_node){
		.kind = (uint8_t)text.kind, .ptr_at = text.ptr_at, .len_at = text.len_at};
	r = load_length(m, &l, 0, &n, text.element.size);
	if (r == 0)
		r = l.load(m, &l, text.ptr_at);
	if (r < 0)
		return r;
	*ret = (struct made){.typed = true, .ctype = *t};
	show_counted(&text, maker_in_kernel(m), ret);
	return 1;
}

/* --- shapes --- */

static bool same_type(const struct ctype *a, const struct ctype *b)
{
	return a->kind == b->kind && a->source == b->source && a->id == b->id &&
	       a->unit == b->unit && a->dimension == b->dimension && a->size == b->size;
}

/* -ENOTSUP, -ENOMEM */
static int shape_of(struct maker *m, const struct ctype *t, struct shape **ret)
{
	struct fetch_texts *all = m->texts;
	struct shape *s = NULL;
	int r;

	for (size_t i = 0; i < all->n_shapes; i++)
		if (same_type(&all->shapes[i].type, t)) {
			if (!all->shapes[i].shape)
				return -ENOTSUP;
			*ret = shape_share(all->shapes[i].shape);
			return 0;
		}
	r = shape_make(t, &s);
	if (r < 0 && r != -ENOTSUP)
		return r;
	if (!all->shapes)
		all->shapes = calloc(FETCH_SHAPES, sizeof(*all->shapes));
	if (all->shapes && all->n_shapes < FETCH_SHAPES)
		all->shapes[all->n_shapes++] = (struct fetch_shape){*t, s ? shape_share(s) : NULL};
	*ret = s;
	return r;
}

static bool has_shape(const struct made *made)
{
	if (!made->typed || (made->type == VALUE_STRING && made->form == MADE_PLAIN))
		return false;
	return made->ctype.kind == CTYPE_ENUM
		       ? made->type == VALUE_UNSIGNED || made->type == VALUE_SIGNED
		       : made->type == VALUE_BUFFER;
}

/* Those of registers that no probe can read. */
static void mark_absent(struct shape *s, uint32_t at, uint64_t base, const struct where *w,
			const struct made *made, bool stopped)
{
	struct shape_node *n = &s->v[at];
	uint64_t from = base + n->offset;

	if (n->kind == SHAPE_STRUCT || n->kind == SHAPE_UNION) {
		for (uint32_t i = 0; i < n->count; i++)
			mark_absent(s, n->first + i, from, w, made, stopped);
		return;
	}
	from += made->at;
	for (size_t i = 0; i < w->n_pieces; i++) {
		const struct where_piece *p = &w->pieces[i];

		if (p->kind == WHERE_NOWHERE && !(p->vector && stopped) &&
		    p->offset < from + n->size && from < (uint64_t)p->offset + p->size)
			n->absent = p->why;
	}
}

int give_shape(struct maker *m, const struct made *made, struct fetch_shown *shown)
{
	struct shape *s = NULL;
	int r = 0;

	if (made->registers)
		r = registers_shape(m, &s);
	else if (has_shape(made))
		r = shape_of(m, &made->ctype, &s);
	if (r == -ENOTSUP)
		return 0;
	if (r < 0)
		return maker_fault(m, -ENOMEM, "out of memory");
	if (s && made->form != MADE_PLAIN) {
		struct shape *own = shape_copy(s);

		shape_free(s);
		s = own;
		if (!s)
			return maker_fault(m, -ENOMEM, "out of memory");
	}
	if (s && made->form == MADE_COUNTED && s->v[0].kind == SHAPE_SLICE) {
		s->v[0].kind = SHAPE_ARRAY;
		s->v[0].count = SHAPE_COUNT_BYTES;
		s->v[0].size = 0; /* not that of the slice itself */
	}
	if (s && made->form == MADE_PUT)
		mark_absent(s, 0, 0, &m->pieces, made, m->place->stopped);
	shown->shape = s;
	return 0;
}

/* --- what members point to --- */

struct follow {
	struct maker *m;
	const struct made *made;
	const struct loader *l;
	struct shape *shape;
	unsigned n, n_short;
};

static bool is_followed(uint8_t kind)
{
	return kind == SHAPE_TEXT_AT || kind == SHAPE_STRING || kind == SHAPE_STRING_BEFORE ||
	       kind == SHAPE_SLICE || kind == SHAPE_STRING_SHORT;
}

static int fetch_followed(const struct follow *f, const struct shape_node *n, uint64_t at)
{
	struct maker *m = f->m;
	uint8_t flags = maker_in_kernel(m) ? AX_OP_KERNEL : 0;
	uint64_t element = n->kind == SHAPE_SLICE ? f->shape->v[n->first].size : 1;
	int r = 0;

	m->list->depth = 0;
	if (n->kind == SHAPE_TEXT_AT) {
		r = f->l->load(m, f->l, at);
		if (r == 0)
			r = make_op(m, AX_CODE_STRING, flags | AX_OP_STORE, 8,
				    SHAPE_TEXT_BYTES + 1);
	} else if (n->kind == SHAPE_STRING_SHORT) {
		const struct text_type t = {.ptr_at = n->ptr_at, .len_at = n->len_at};

		r = f->l->address(m, f->l, at);
		if (r == 0)
			r = make_short_string(m, &t, maker_in_kernel(m));
		if (r == 0)
			r = make_op(m, AX_CODE_STRING_LONG, flags | AX_OP_STORE, 8,
				    SHAPE_TEXT_BYTES);
	} else {
		r = load_length(m, f->l, at, n, element);
		if (r == 0)
			r = f->l->load(m, f->l, at + n->ptr_at);
		if (r == 0)
			r = make_op(m, AX_CODE_STRING_LONG, flags | AX_OP_STORE, 8,
				    SHAPE_TEXT_BYTES);
	}
	m->list->depth = 0;
	return r;
}

/* The last operation's result is the next hidden value. */
static void hide(struct maker *m)
{
	struct ax_probe_op *last = &m->list->v[m->list->n - 1];

	last->flags |= AX_OP_STORE;
	last->to = (uint8_t)(HIDDEN_FIRST + m->out->n_hidden++);
	m->list->depth = 0;
}

/* Its type is known when it is there: as much of its value as most have, and the text that errors
 * and strings begin with. */
static int fetch_interface(const struct follow *f, const struct shape_node *n, uint64_t at)
{
	bool kernel = maker_in_kernel(f->m);
	struct maker *m = f->m;
	int r;

	m->list->depth = 0;
	r = f->l->load(m, f->l, at);
	if (r == 0 && n->count)
		r = make_fetch(m, kernel, 0, 8, 8);
	if (r < 0)
		return r;
	hide(m);
	r = f->l->load(m, f->l, at + 8);
	if (r == 0)
		r = make_op(m, AX_CODE_BUFFER, 0, 8, SHAPE_DYNAMIC_BYTES);
	if (r < 0)
		return r;
	hide(m);
	r = f->l->load(m, f->l, at + 8);
	if (r == 0)
		r = make_fetch(m, kernel, 0, 8, 8);
	if (r == 0)
		r = f->l->load(m, f->l, at + 8);
	if (r == 0)
		r = make_fetch(m, kernel, 0, 8, 0);
	if (r == 0)
		r = make_op(m, AX_CODE_STRING_LONG, 0, 8, SHAPE_TEXT_BYTES);
	if (r == 0)
		hide(m);
	return r;
}

static int follow_interface(struct follow *f, struct shape_node *n, uint64_t at)
{
	struct maker *m = f->m;
	size_t before = m->list->n, hidden = m->out->n_hidden;
	bool exact = m->out->needs_exact;
	struct error e = *m->e;
	int r;

	if (hidden + 3 >= FETCH_HIDDEN || !m->place->dwarf ||
	    dwarf_load_go_types(m->place->dwarf) < 0)
		return 0;
	r = fetch_interface(f, n, at);
	if (r == 0)
		n->followed = (uint8_t)(hidden + 1);
	if (r == 0 || r == -ENOMEM)
		return r;
	m->list->n = before;
	m->list->depth = 0;
	m->out->n_hidden = hidden;
	m->out->needs_exact = exact;
	*m->e = e;
	return 0;
}

/* What cannot be fetched is shown as an address. */
static int follow_one(struct follow *f, struct shape_node *n, uint64_t at)
{
	struct maker *m = f->m;
	struct error e = *m->e;
	size_t before = m->list->n;
	bool exact = m->out->needs_exact;
	int r;

	if (f->n == FOLLOWED_MAX || m->out->n_hidden >= FETCH_HIDDEN - 1)
		return 0;
	/* these take many operations, and short ones are shown without */
	if (n->kind == SHAPE_STRING_SHORT && f->n_short++ == SHORT_FOLLOWED_MAX)
		return 0;
	r = fetch_followed(f, n, at);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		m->list->n = before;
		m->out->needs_exact = exact;
		*m->e = e;
		return 0;
	}
	m->list->v[m->list->n - 1].to = (uint8_t)(HIDDEN_FIRST + m->out->n_hidden);
	n->followed = (uint8_t)++m->out->n_hidden;
	f->n++;
	return 0;
}

static int follow_node(struct follow *f, uint32_t at, uint64_t base)
{
	struct shape_node *n = &f->shape->v[at];
	uint64_t from = base + n->offset;
	int r = 0;

	if (n->absent || from + 16 > SHAPE_BYTES_MAX)
		return 0;
	if (n->kind == SHAPE_INTERFACE)
		return follow_interface(f, n, from);
	if (is_followed(n->kind))
		return follow_one(f, n, from);
	if (n->kind == SHAPE_STRUCT)
		for (uint32_t i = 0; r == 0 && i < n->count; i++)
			r = follow_node(f, n->first + i, from);
	return r;
}

static bool points_somewhere(const struct shape *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (is_followed(s->v[i].kind) || s->v[i].kind == SHAPE_INTERFACE)
			return true;
	return false;
}

int follow_texts(struct maker *m, const struct made *made, const struct loader *l)
{
	struct fetch_shown *shown = &m->out->values[m->out->n_values - 1];
	struct follow f = {.m = m, .made = made, .l = l};

	if (!shown->shape || !l->load || made->type != VALUE_BUFFER || made->form == MADE_COUNTED ||
	    !points_somewhere(shown->shape))
		return 0;
	f.shape = shape_copy(shown->shape);
	if (!f.shape)
		return maker_fault(m, -ENOMEM, "out of memory");
	shape_free(shown->shape);
	shown->shape = f.shape;
	return follow_node(&f, 0, 0);
}

void settle_hidden(struct maker *m)
{
	for (size_t i = 0; i < m->main.n; i++)
		if (m->main.v[i].flags & AX_OP_STORE && m->main.v[i].to >= HIDDEN_FIRST)
			m->main.v[i].to =
				(uint8_t)(m->main.v[i].to - HIDDEN_FIRST + m->out->n_values);
}
