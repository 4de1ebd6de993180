// SPDX-License-Identifier: GPL-2.0-or-later
/* Fetch programs for expressions. */
#include "machine/cgroup.h"
#include "probes/fetch/priv.h"
#include "probes/kernel/symbols.h"

#define APPS_MAX 16 /* of one name */
#include "probes/text/priv.h"

int make_op(struct maker *m, enum ax_probe_code code, uint8_t flags, uint8_t size, uint64_t value)
{
	struct op_list *l = m->list;

	if (!l->v)
		l->v = calloc(AX_PROBE_OPS_MAX, sizeof(*l->v));
	if (!l->v)
		return maker_fault(m, -ENOMEM, "out of memory");
	if (l->n == AX_PROBE_OPS_MAX)
		return maker_fault(m, -E2BIG, "the probe is too long: expected less to fetch");
	/* these take two values and leave one */
	if (code >= AX_CODE_ADD && code <= AX_CODE_LOR && !(flags & AX_OP_IMMEDIATE))
		l->depth--;
	l->v[l->n++] = (struct ax_probe_op){
		.code = (uint8_t)code, .flags = flags, .size = size, .value = value};
	return 0;
}

int make_leaf(struct maker *m, enum ax_probe_code code, uint8_t flags, uint8_t size, uint64_t value)
{
	if (m->list->depth)
		flags |= AX_OP_PUSH;
	if (++m->list->depth > AX_PROBE_STACK + 1)
		return maker_fault(m, -E2BIG,
				   "it is nested too deeply: expected at most %d values at a time",
				   AX_PROBE_STACK + 1);
	return make_op(m, code, flags, size, value);
}

int make_number(struct maker *m, uint32_t size, bool is_signed)
{
	struct op_list *l = m->list;
	struct ax_probe_op *last = l->n ? &l->v[l->n - 1] : NULL;
	uint8_t flags = is_signed ? AX_OP_SIGNED : 0;

	if (last && last->size >= size &&
	    (last->code == AX_CODE_CTX || last->code == AX_CODE_USER ||
	     last->code == AX_CODE_KERNEL)) {
		last->size = (uint8_t)size;
		last->flags = (uint8_t)((last->flags & ~AX_OP_SIGNED) | flags);
		return 0;
	}
	return size < 8 ? make_op(m, AX_CODE_EXTEND, flags, (uint8_t)size, 0) : 0;
}

/* Where the items of the operand that ends before `end` begin. */
static size_t operand_start(const struct expr_item *v, size_t end)
{
	for (size_t open = 1; end;) {
		open = open - 1 + expr_arity(v[--end].op);
		if (!open)
			return end;
	}
	return 0;
}

/* --- texts --- */

static int text_index(struct maker *m, const char *text, uint64_t *ret)
{
	struct fetch_texts *t = m->texts;
	struct ax_probe_text entry = {0}, *v;
	size_t len = strlen(text);

	if (len >= AX_PROBE_TEXT)
		return maker_fault(m, -EINVAL, "a text to compare with has at most %d characters",
				   AX_PROBE_TEXT - 1);
	memcpy(entry.w, text, len);
	for (size_t i = 0; i < t->n; i++)
		if (!memcmp(&t->v[i], &entry, sizeof(entry))) {
			*ret = i;
			return 0;
		}
	v = realloc(t->v, (t->n + 1) * sizeof(*v));
	if (!v)
		return maker_fault(m, -ENOMEM, "out of memory");
	t->v = v;
	v[t->n] = entry;
	*ret = t->n++;
	return 0;
}

void fetch_texts_free(struct fetch_texts *t)
{
	for (size_t i = 0; i < t->n_shapes; i++)
		if (t->shapes[i].shape)
			shape_free(t->shapes[i].shape);
	free(t->shapes);
	free(t->v);
	*t = (struct fetch_texts){0};
}

static int compare_comm(struct maker *m, const char *text, uint64_t index)
{
	if (strlen(text) >= AX_PROBE_COMM)
		return maker_fault(m, -EINVAL,
				   "the name of a process has at most %d characters, \"%.40s\" "
				   "has more",
				   AX_PROBE_COMM - 1, text);
	return make_leaf(m, AX_CODE_COMM_EQ, 0, 8, index);
}

/* Apps that run now: the cgroup is one of theirs. */
static int compare_app(struct maker *m, const char *app)
{
	uint64_t cgroups[APPS_MAX];
	size_t n = m->place->apps ? apps_find(m->place->apps, app, cgroups, APPS_MAX) : 0;
	int r = 0;

	if (!n)
		return maker_fault(m, -ENOENT,
				   "no app '%.60s' is running: 'ax get apps' lists those that are",
				   app);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = make_leaf(m, AX_CODE_CGROUP, 0, 8, 0);
		if (r == 0)
			r = make_op(m, AX_CODE_EQ, AX_OP_IMMEDIATE, 8, cgroups[i]);
		if (r == 0 && i)
			r = make_op(m, AX_CODE_LOR, 0, 8, 0);
	}
	return r;
}

/* A value that is a text == "text" */
static int compare_text(struct maker *m, const struct expr_item *v, size_t start, size_t end,
			const char *text)
{
	struct made made;
	uint64_t index = 0;
	int r;

	if (end - start == 1 && v[start].op == EXPR_APP)
		return compare_app(m, text);
	r = text_index(m, text, &index);
	if (r < 0)
		return r;
	if (end - start == 1 && v[start].op == EXPR_COMM)
		return compare_comm(m, text, index);
	r = make_expr(m, v, end, &made);
	if (r == 0)
		r = make_text(m, &made);
	if (r < 0)
		return r;
	if (made.type != VALUE_STRING && made.type != VALUE_USTRING)
		made.kernel = maker_in_kernel(m);
	if (made.form == MADE_COUNTED && made.type == VALUE_STRING) {
		m->list->depth--;
		return make_op(m, AX_CODE_TEXT_EQ_LONG, made.kernel ? AX_OP_KERNEL : 0, 8, index);
	}
	r = made.own_text ? 0 : need_plain(m, &made);
	return r < 0 ? r : make_op(m, AX_CODE_TEXT_EQ, made.kernel ? AX_OP_KERNEL : 0, 8, index);
}

/* --- operators --- */

static int make_texts(struct maker *m, const struct expr_item *v, size_t end, size_t middle)
{
	bool negated = v[end - 1].op == EXPR_NE;
	size_t start = operand_start(v, middle);
	int r;

	if (v[end - 2].op == EXPR_STRING)
		r = compare_text(m, v, start, middle, v[end - 2].text);
	else if (v[start].op == EXPR_STRING && middle - start == 1)
		r = compare_text(m, v, middle, end - 1, v[start].text);
	else
		return maker_fault(m, -ENOTSUP,
				   "two texts that both vary cannot be compared: expected a text "
				   "in quotes");
	return r < 0 || !negated ? r : make_op(m, AX_CODE_NOT, 0, 8, 0);
}

static bool is_text_item(const struct expr_item *i)
{
	return i->op == EXPR_STRING || i->op == EXPR_COMM || i->op == EXPR_APP;
}

/* --- floating point --- */

/* As AX_CODE_ORDER makes it, of a number of that size. */
static uint64_t order_of(double v, uint32_t size)
{
	uint64_t bits = 0, sign = size == 4 ? 1ull << 31 : 1ull << 63;
	float f = (float)v;

	if (size == 4)
		memcpy(&bits, &f, sizeof(f));
	else
		memcpy(&bits, &v, sizeof(v));
	return bits & sign ? 0 - (bits & (sign - 1)) : bits;
}

static bool is_constant(const struct expr_item *i)
{
	return i->op == EXPR_FLOAT || i->op == EXPR_NUMBER;
}

static double constant_of(const struct expr_item *i)
{
	double v;

	if (i->op == EXPR_NUMBER)
		return (double)i->value;
	memcpy(&v, &i->value, sizeof(v));
	return v;
}

static int make_ordered(struct maker *m, const struct expr_item *v, size_t end, uint32_t *size)
{
	struct made made;
	int r = make_expr(m, v, end, &made);

	if (r == 0 && made.type != VALUE_FLOAT)
		return maker_fault(m, -EINVAL,
				   "a floating-point number is compared with what is none: "
				   "expected another one, or a constant");
	if (r == 0 && *size && *size != made.size)
		return maker_fault(m, -ENOTSUP,
				   "two floating-point numbers of different sizes cannot be "
				   "compared");
	*size = made.size;
	return r < 0 ? r : make_op(m, AX_CODE_ORDER, 0, (uint8_t)made.size, 0);
}

/* The left one is made, in order, if it is no constant. */
static int compare_floats(struct maker *m, const struct expr_item *v, size_t end, size_t middle,
			  enum ax_probe_code code)
{
	const struct expr_item *left = &v[middle - 1], *right = &v[end - 2];
	uint32_t size = 0;
	size_t at;
	int r;

	if (is_constant(left) && is_constant(right) && middle == end - 2)
		return maker_fault(m, -EINVAL, "two constants are compared: expected a value");
	if (!is_constant(left)) {
		r = make_ordered(m, v, middle, &size);
		if (r < 0)
			return r;
		if (is_constant(right))
			return make_op(m, code, AX_OP_IMMEDIATE, 8,
				       order_of(constant_of(right), size));
		r = make_ordered(m, v, end - 1, &size);
		return r < 0 ? r : make_op(m, code, 0, 8, 0);
	}
	r = make_leaf(m, AX_CODE_CONST, 0, 8, 0);
	at = m->list->n - 1;
	if (r == 0)
		r = make_ordered(m, v, end - 1, &size);
	if (r < 0)
		return r;
	m->list->v[at].value = order_of(constant_of(left), size);
	return make_op(m, code, 0, 8, 0);
}

static bool is_comparison(enum expr_op op)
{
	return op >= EXPR_EQ && op <= EXPR_GE;
}

/* --- values of enums --- */

/* 1: the right side is a name that the left one's type has. */
static int make_enumerator(struct maker *m, const struct expr_item *right, const struct made *left,
			   enum ax_probe_code code)
{
	int64_t value;
	int r;

	if (right->op != EXPR_NAME || !left->typed || left->ctype.kind != CTYPE_ENUM ||
	    ctype_enumerator(&left->ctype, right->text, &value))
		return 0;
	r = make_op(m, code, AX_OP_IMMEDIATE, 8, (uint64_t)value);
	return r < 0 ? r : 1;
}

/* What is compared with a number below 0 is taken for signed, whatever its type says. */
static uint8_t order_flag(const struct made *left, const struct expr_item *left_item,
			  const struct made *right, const struct expr_item *right_item)
{
	bool below = (left_item->op == EXPR_NUMBER && left_item->value < 0) ||
		     (right_item->op == EXPR_NUMBER && right_item->value < 0);

	return !below && (left->wide || right->wide) ? AX_OP_UNSIGNED : 0;
}

/* A difference may be below 0. */
static bool stays_wide(enum expr_op op, const struct made *left, const struct made *right)
{
	return op != EXPR_SUB && op >= EXPR_ADD && op <= EXPR_SHR && (left->wide || right->wide);
}

static int make_operand(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	int r = make_expr(m, v, end, ret);

	return r < 0 ? r : need_plain(m, ret);
}

static int refuse_arithmetic(struct maker *m, const struct made *made, enum expr_op op)
{
	if (made->type != VALUE_FLOAT || op == EXPR_LAND || op == EXPR_LOR)
		return 0;
	return maker_fault(m, -ENOTSUP,
			   "a floating-point number can be printed, compared and counted by, but "
			   "not computed with");
}

static int make_binary(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	static const uint8_t codes[] = {
		[EXPR_MUL] = AX_CODE_MUL, [EXPR_DIV] = AX_CODE_DIV,   [EXPR_MOD] = AX_CODE_MOD,
		[EXPR_ADD] = AX_CODE_ADD, [EXPR_SUB] = AX_CODE_SUB,   [EXPR_AND] = AX_CODE_AND,
		[EXPR_OR] = AX_CODE_OR,	  [EXPR_XOR] = AX_CODE_XOR,   [EXPR_SHL] = AX_CODE_SHL,
		[EXPR_SHR] = AX_CODE_SHR, [EXPR_EQ] = AX_CODE_EQ,     [EXPR_NE] = AX_CODE_NE,
		[EXPR_LT] = AX_CODE_LT,	  [EXPR_LE] = AX_CODE_LE,     [EXPR_GT] = AX_CODE_GT,
		[EXPR_GE] = AX_CODE_GE,	  [EXPR_LAND] = AX_CODE_LAND, [EXPR_LOR] = AX_CODE_LOR,
	};
	size_t middle = operand_start(v, end - 1);
	enum ax_probe_code code = codes[v[end - 1].op];
	const struct expr_item *right = &v[end - 2];
	struct op_list start;
	struct made left, other = {0};
	uint8_t flags = 0;
	int r;

	*ret = (struct made){.type = VALUE_UNSIGNED, .size = 8};
	if ((v[end - 1].op == EXPR_EQ || v[end - 1].op == EXPR_NE) &&
	    (is_text_item(right) || is_text_item(&v[middle - 1])))
		return make_texts(m, v, end, middle);
	if (is_comparison(v[end - 1].op) &&
	    (right->op == EXPR_FLOAT || v[middle - 1].op == EXPR_FLOAT))
		return compare_floats(m, v, end, middle, code);
	start = *m->list;
	r = make_operand(m, v, middle, &left);
	if (r == 0 && left.type == VALUE_FLOAT && is_comparison(v[end - 1].op)) {
		m->list->n = start.n;
		m->list->depth = start.depth;
		return compare_floats(m, v, end, middle, code);
	}
	if (r == 0)
		r = refuse_arithmetic(m, &left, v[end - 1].op);
	if (r == 0 && middle == end - 2)
		r = make_enumerator(m, right, &left, code);
	if (r)
		return r < 0 ? r : 0;
	if (right->op != EXPR_NUMBER) {
		r = make_operand(m, v, end - 1, &other);
		if (r == 0)
			r = refuse_arithmetic(m, &other, v[end - 1].op);
		if (r < 0)
			return r;
	}
	ret->wide = stays_wide(v[end - 1].op, &left, &other);
	if (v[end - 1].op >= EXPR_LT && v[end - 1].op <= EXPR_GE)
		flags = order_flag(&left, &v[middle - 1], &other, right);
	return right->op == EXPR_NUMBER
		       ? make_op(m, code, flags | AX_OP_IMMEDIATE, 8, (uint64_t)right->value)
		       : make_op(m, code, flags, 8, 0);
}

static int make_memory(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	const struct expr_item *item = &v[end - 1];
	bool kernel = item->op == EXPR_DEREF && maker_in_kernel(m);
	struct made made;
	int r = make_expr(m, v, end - 1, &made);

	*ret = (struct made){.type = VALUE_UNSIGNED, .size = 8};
	if (r == 0)
		r = need_plain(m, &made);
	if (r < 0)
		return r;
	if (!made.typed && !item->value && item->op == EXPR_DEREF)
		find_pointed(m, &v[end - 2], &made);
	if ((made.typed || made.pointed) && !item->value && item->op == EXPR_DEREF) {
		r = make_typed_deref(m, &made, ret);
		if (r != -ENOENT)
			return r;
		if (made.typed && !m->type_given &&
		    (made.ctype.kind == CTYPE_STRUCT || made.ctype.kind == CTYPE_UNION))
			return maker_fault(m, -EINVAL,
					   "it is no pointer, but a struct or union itself: "
					   "expected it without *, or one of its members");
	}
	if (made.type == VALUE_STRING || made.type == VALUE_BUFFER)
		kernel = made.kernel;
	return make_op(m, kernel ? AX_CODE_KERNEL : AX_CODE_USER, 0, 8, (uint64_t)item->value);
}

/* The element size of an array among a tracepoint's fields, else what the type says. */
static uint32_t element_of(const struct maker *m, const struct expr_item *base)
{
	const struct field *f = NULL;

	if (base->op == EXPR_NAME && m->place->format)
		f = format_find(m->place->format, base->text);
	if (f && f->kind == FIELD_ARRAY)
		return f->element;
	if (f && f->kind != FIELD_NUMBER && f->kind != FIELD_POINTER)
		return 1;
	return m->element ? m->element : 8;
}

static int make_index(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	size_t middle = operand_start(v, end - 1);
	const struct expr_item *index = &v[end - 2];
	uint32_t size = element_of(m, &v[middle - 1]), inner = m->element;
	uint64_t offset = 0;
	struct made made, unused;
	bool kernel = maker_in_kernel(m);
	int r = make_known(m, v, end, ret);

	if (r)
		return r < 0 ? r : 0;
	m->element = 8; /* what is before it is an address */
	r = make_operand(m, v, middle, &made);
	if (r == 0 && made.typed) {
		r = make_typed_index(m, &made, v, end, ret);
		if (r != -ENOENT) {
			m->element = inner;
			return r;
		}
		r = 0;
	}
	if (r == 0 && (made.type == VALUE_STRING || made.type == VALUE_BUFFER))
		kernel = made.kernel;
	if (r == 0 && index->op == EXPR_NUMBER) {
		offset = (uint64_t)index->value * size;
	} else if (r == 0) {
		r = make_expr(m, v, end - 1, &unused);
		if (r == 0 && size > 1)
			r = make_op(m, AX_CODE_SHL, AX_OP_IMMEDIATE, 8,
				    (uint64_t)__builtin_ctz(size));
		if (r == 0)
			r = make_op(m, AX_CODE_ADD, 0, 8, 0);
	}
	m->element = inner;
	*ret = (struct made){.type = VALUE_UNSIGNED, .size = size};
	return r < 0 ? r
		     : make_op(m, kernel ? AX_CODE_KERNEL : AX_CODE_USER, 0, (uint8_t)size, offset);
}

static void keep_last(struct maker *m)
{
	struct ax_probe_op *last = &m->entry.v[m->entry.n - 1];

	last->flags |= AX_OP_KEEP;
	last->to = (uint8_t)m->out->n_kept++;
	m->out->paired = true;
	m->entry.depth = 0;
}

/* Of a text both are kept; its address is made anew then. */
static int keep_length(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	int r;

	if (m->out->n_kept + 1 == AX_PROBE_SAVED)
		return maker_fault(m, -E2BIG, "at most %d values can be kept from the entry",
				   AX_PROBE_SAVED);
	r = make_op(m, AX_CODE_SWAP, 0, 8, 0);
	if (r < 0)
		return r;
	keep_last(m);
	return make_expr(m, v, end - 1, ret);
}

/* The value at the entry is fetched there, and kept. */
static int make_entry(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	size_t kept = m->out->n_kept;
	int r;

	if (kept == AX_PROBE_SAVED)
		return maker_fault(m, -E2BIG, "at most %d values can be kept from the entry",
				   AX_PROBE_SAVED);
	m->list = &m->entry;
	m->entry.depth = 0;
	r = make_expr(m, v, end - 1, ret);
	if (r == 0 && ret->own_text)
		r = need_plain(m, ret);
	if (r == 0 && ret->form == MADE_COUNTED)
		r = keep_length(m, v, end, ret);
	if (r == 0)
		keep_last(m);
	m->list = &m->main;
	if (r == 0 && ret->form == MADE_COUNTED)
		r = make_leaf(m, AX_CODE_SAVED, 0, 8, kept++);
	return r < 0 ? r : make_leaf(m, AX_CODE_SAVED, 0, 8, kept);
}

int make_elapsed(struct maker *m)
{
	if (m->spec->kind != PROBE_URETPROBE && m->spec->kind != PROBE_KRETPROBE)
		return maker_fault(m, -EINVAL,
				   "elapsed is the time since the function's entry: expected "
				   "uretprobe: or kretprobe:");
	m->out->paired = true;
	return make_leaf(m, AX_CODE_ELAPSED, 0, 8, 0);
}

/* @SYM+OFF: in a program, which may be anywhere, as far from the probed instruction as in its file.
 */
static int make_symbol(struct maker *m, const struct expr_item *item, struct made *ret)
{
	struct error e = {0};
	int64_t distance;
	uint64_t address = 0;
	int r;

	if (maker_in_kernel(m)) {
		r = item->text ? kernel_symbol_address(item->text, &address, &e)
			       : error_set(&e, -EINVAL, "@+OFFSET is of a file's data");
		return r < 0 ? maker_fault(m, r, "%s", e.text)
			     : make_leaf(m, AX_CODE_CONST, 0, 8, address + (uint64_t)item->value);
	}
	if (!m->place->binary || m->spec->kind == PROBE_URETPROBE)
		return maker_fault(m, -ENOTSUP,
				   "memory at a symbol can be fetched in functions of a program: "
				   "expected uprobe: or usdt:");
	r = binary_distance(m->place->binary, m->place->offset, item->text, item->value, &distance,
			    &e);
	if (r < 0)
		return maker_fault(m, r, "%s", e.text);
	m->out->needs_exact = true;
	r = make_register(m, "ip", ret);
	return r < 0 ? r : make_op(m, AX_CODE_ADD, AX_OP_IMMEDIATE, 8, (uint64_t)distance);
}

/* --- variables of scripts --- */

static void own_text(struct made *ret)
{
	*ret = (struct made){.type = VALUE_STRING,
			     .size = AX_PROBE_VARIABLE - 1,
			     .kernel = true,
			     .own_text = true};
}

static bool is_text_variable(const struct maker *m, enum probe_variable_kind kind, int64_t number)
{
	return m->place->texts && variable_is_text(m->place->texts, kind, (uint64_t)number);
}

static int make_global(struct maker *m, const struct expr_item *item, struct made *ret)
{
	bool all = item->op == EXPR_GLOBAL;
	uint64_t number = (uint64_t)item->value;

	if (!is_text_variable(m, all ? VARIABLE_GLOBAL : VARIABLE_THREAD, item->value))
		return make_leaf(m, all ? AX_CODE_GLOBAL : AX_CODE_THREAD, 0, 8, number);
	own_text(ret);
	return make_leaf(m, AX_CODE_TEXT, 0, all ? AX_TEXT_GLOBAL : AX_TEXT_THREAD, number);
}

static int make_map(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	const struct expr_item *item = &v[end - 1];
	uint64_t number = (uint64_t)item->value + AX_PROBE_MAPS_FROM;
	int r = make_operand(m, v, end - 1, ret);

	*ret = (struct made){.type = VALUE_UNSIGNED, .size = 8};
	if (r < 0)
		return r;
	if (!is_text_variable(m, VARIABLE_MAP, item->value))
		return make_op(m, AX_CODE_MAP, 0, 8, number);
	own_text(ret);
	return make_op(m, AX_CODE_TEXT, 0, AX_TEXT_MAP, number);
}

static int make_constant_text(struct maker *m, const struct expr_item *item, struct made *ret)
{
	uint64_t index = 0;
	int r = text_index(m, item->text, &index);

	own_text(ret);
	return r < 0 ? r : make_leaf(m, AX_CODE_TEXT, 0, AX_TEXT_CONSTANT, index);
}

/* The kernel's types tell what it has. */
static int make_task(struct maker *m, struct made *ret)
{
	struct error e = {0};
	int r = m->place->btf ? btf_types_struct(m->place->btf, "task_struct", &ret->ctype, &e)
			      : error_set(&e, -ENOTSUP, "the kernel's types are not known here");

	if (r < 0)
		return maker_fault(m, r, "%s", e.text);
	ret->type = VALUE_HEX;
	ret->pointed = true;
	return make_leaf(m, AX_CODE_TASK, 0, 8, 0);
}

/* Of what happens at the place of a probe. */
static bool is_of_place(enum expr_op op)
{
	return op == EXPR_ARG || op == EXPR_RETVAL || op == EXPR_REG || op == EXPR_REGS ||
	       op == EXPR_STACK || op == EXPR_NAME || op == EXPR_SYMBOL;
}

static int make_leaf_item(struct maker *m, const struct expr_item *item, struct made *ret)
{
	*ret = (struct made){.type = VALUE_UNSIGNED, .size = 8};
	if (m->spec->kind == PROBE_SELF && is_of_place(item->op))
		return maker_fault(m, -EINVAL,
				   "%s happens in ax itself: expected numbers, nsecs or variables",
				   m->spec->symbol);
	if (m->spec->kind == PROBE_PROFILE && is_of_place(item->op))
		return maker_fault(m, -EINVAL,
				   "a tick of the clock has neither arguments nor fields: expected "
				   "kstack, ustack, comm and the like");
	switch (item->op) {
	case EXPR_GLOBAL:
	case EXPR_THREAD:
		return make_global(m, item, ret);
	case EXPR_STRING:
		return make_constant_text(m, item, ret);
	case EXPR_TASK:
		return make_task(m, ret);
	case EXPR_NUMBER:
		return make_leaf(m, AX_CODE_CONST, 0, 8, (uint64_t)item->value);
	case EXPR_ARG:
		return make_argument(m, item->value, ret);
	case EXPR_RETVAL:
		return make_return_value(m, item->value, ret);
	case EXPR_REG:
		return make_register(m, item->text, ret);
	case EXPR_REGS:
		return make_registers(m, ret);
	case EXPR_FLOAT:
		return maker_fault(m, -EINVAL, "%s is only compared, with a floating-point number",
				   item->text);
	case EXPR_STACK:
		return make_stack_word(m, item->value, ret);
	case EXPR_NAME:
		return make_name(m, item->text, ret);
	case EXPR_PID:
		return make_leaf(m, AX_CODE_PID, 0, 8, 0);
	case EXPR_TID:
		return make_leaf(m, AX_CODE_TID, 0, 8, 0);
	case EXPR_NSECS:
		return make_leaf(m, AX_CODE_NSECS, 0, 8, 0);
	case EXPR_CPU:
		return make_leaf(m, AX_CODE_CPU, 0, 8, 0);
	case EXPR_CGROUP:
		return make_leaf(m, AX_CODE_CGROUP, 0, 8, 0);
	case EXPR_ELAPSED:
		return make_elapsed(m);
	case EXPR_APP:
		*ret = (struct made){.type = VALUE_APP, .size = 8};
		return make_leaf(m, AX_CODE_CGROUP, 0, 8, 0);
	case EXPR_SYMBOL:
		return make_symbol(m, item, ret);
	default:
		return maker_fault(m, -EINVAL, "a text cannot be used as a number");
	}
}

/* In conditions, a value that is also an argument with a type has that type there too: who prints
 * retval:s32 means that in "if retval < 0". */
static int make_typed_like(struct maker *m, const struct probe_spec *spec,
			   const struct expr_item *item, struct made *ret)
{
	for (size_t i = 0; i < spec->n_args; i++) {
		const struct probe_arg *a = &spec->args[i];
		const struct expr_item *other = a->expr.v;
		int r;

		if (a->expr.n != 1 || other->op != item->op || other->value != item->value ||
		    (item->text && !streq(item->text, other->text)))
			continue;
		if (!a->size || a->size > 8 || a->bits ||
		    (a->type != VALUE_FLOAT && a->type != VALUE_ERRNO && a->type != VALUE_BOOL &&
		     (a->type < VALUE_UNSIGNED || a->type > VALUE_CHAR)))
			continue;
		*ret = (struct made){.type = a->type,
				     .size = a->size,
				     .wide = a->type == VALUE_UNSIGNED && a->size == 8};
		r = make_number(m, a->size, a->type == VALUE_SIGNED);
		return r < 0 ? r : 1;
	}
	return 0;
}

static int make_typed_as_argument(struct maker *m, const struct expr_item *item, struct made *ret)
{
	int r = m->names_args ? make_typed_like(m, m->spec, item, ret) : 0;

	for (size_t i = 0; r == 0 && m->names_args && i < m->place->n_likes; i++)
		r = make_typed_like(m, m->place->likes[i], item, ret);
	return r < 0 ? r : 0;
}

/* All that is reached from $task is in the kernel, also where a probe's own memory is not. */
static int make_from(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	bool outer = m->of_task;
	int r;

	m->of_task |= v[operand_start(v, end)].op == EXPR_TASK;
	r = v[end - 1].op == EXPR_MEMBER  ? make_member(m, v, end, ret)
	    : v[end - 1].op == EXPR_INDEX ? make_index(m, v, end, ret)
					  : make_memory(m, v, end, ret);
	m->of_task = outer;
	return r;
}

int make_expr(struct maker *m, const struct expr_item *v, size_t end, struct made *ret)
{
	const struct expr_item *item = &v[end - 1];
	int r;

	switch (item->op) {
	case EXPR_ENTRY:
		return make_entry(m, v, end, ret);
	case EXPR_DEREF:
	case EXPR_UDEREF:
	case EXPR_INDEX:
	case EXPR_MEMBER:
		return make_from(m, v, end, ret);
	case EXPR_MAP:
		return make_map(m, v, end, ret);
	case EXPR_NOT:
		r = make_operand(m, v, end - 1, ret);
		*ret = (struct made){.type = VALUE_UNSIGNED, .size = 8};
		return r < 0 ? r : make_op(m, AX_CODE_NOT, 0, 8, 0);
	default:
		if (expr_arity(item->op) == 2)
			return make_binary(m, v, end, ret);
		r = make_leaf_item(m, item, ret);
		return r < 0 ? r : make_typed_as_argument(m, item, ret);
	}
}
