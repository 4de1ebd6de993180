// SPDX-License-Identifier: GPL-2.0-or-later
/* Shapes from types: whatever the debug data says, they end. */
#include "probes/types/shape.h"

#define UNNAMED_MAX 8 /* anonymous structs and base classes within each other */

struct builder {
	struct shape *s;
	struct ctype *types; /* of each node */
	int r;
};

/* --- names --- */

static uint32_t add_name(struct builder *b, const char *name)
{
	struct shape *s = b->s;
	size_t len = name ? strlen(name) + 1 : 0;
	uint32_t at = (uint32_t)s->names_len;

	if (len < 2 || s->names_len + len > SHAPE_NAMES_MAX)
		return 0;
	memcpy(s->names + at, name, len);
	s->names_len += len;
	return at;
}

const char *shape_name(const struct shape *s, uint32_t name)
{
	return name < s->names_len ? s->names + name : "";
}

/* --- texts and lists of known languages --- */

static bool member_at(const struct ctype *t, const char *name, struct ctype_member *ret)
{
	return ctype_find_member(t, name, ret, NULL, 0) == 0 && ret->offset < UINT8_MAX &&
	       !ret->bits;
}

static bool two_members(const struct ctype *t, const char *ptr, const char *len,
			struct text_type *ret, struct ctype_member *p)
{
	struct ctype_member l;

	if (!member_at(t, ptr, p) || !member_at(t, len, &l) || l.type.size != 8 ||
	    p->type.kind != CTYPE_POINTER)
		return false;
	ret->kind = SHAPE_STRING;
	ret->ptr_at = (uint8_t)p->offset;
	ret->len_at = (uint8_t)l.offset;
	return true;
}

static bool is_go_slice(const struct ctype *t, struct text_type *ret)
{
	struct ctype_member p;

	if (!two_members(t, "array", "len", ret, &p) || ctype_target(&p.type, &ret->element) ||
	    !ret->element.size)
		return false;
	ret->kind = SHAPE_SLICE;
	return true;
}

/* The data is where the first word points to, also if it is within the string itself. Before GCC 5
 * (and with its old ABI still) length and capacity stand in front of the text, and a counter. */
#define OLD_LENGTH_BEFORE 24
static bool is_libcxx_string(const struct ctype *t, struct text_type *ret)
{
	struct ctype_member rep, value, in, p, l;

	if (!member_at(t, "__rep_", &value) &&
	    (!member_at(t, "__r_", &rep) || !member_at(&rep.type, "__value_", &value)))
		return false;
	/* other layouts have the first byte at the end */
	if (t->size != SHAPE_SHORT_BYTES + 1 || !member_at(&value.type, "__l", &in) ||
	    !two_members(&in.type, "__data_", "__size_", ret, &p) || ret->ptr_at != 16 ||
	    ret->len_at != 8 || !member_at(&value.type, "__s", &in) ||
	    !member_at(&in.type, "__data_", &l) || l.offset != 1)
		return false;
	ret->kind = SHAPE_STRING_SHORT;
	return true;
}

static bool is_cxx_string(const struct ctype *t, struct text_type *ret)
{
	struct ctype_member m, p, l;

	if (is_libcxx_string(t, ret))
		return true;
	if (!member_at(t, "_M_dataplus", &m) || !member_at(&m.type, "_M_p", &p) ||
	    p.type.kind != CTYPE_POINTER || m.offset + p.offset >= UINT8_MAX)
		return false;
	ret->kind = SHAPE_STRING_BEFORE;
	ret->ptr_at = (uint8_t)(m.offset + p.offset);
	ret->len_at = OLD_LENGTH_BEFORE;
	if (!member_at(t, "_M_string_length", &l))
		return true;
	ret->kind = SHAPE_STRING;
	ret->len_at = (uint8_t)l.offset;
	return l.type.size == 8;
}

bool ctype_is_text(const struct ctype *t, struct text_type *ret)
{
	struct ctype_member p;
	const char *name;

	if (t->kind != CTYPE_STRUCT || !t->source || !t->source->name)
		return false;
	name = t->source->name(t->source, t);
	*ret = (struct text_type){0};
	if (!name)
		return false;
	if (streq(name, "string"))
		return two_members(t, "str", "len", ret, &p);
	if (starts_with(name, "[]"))
		return is_go_slice(t, ret);
	if (starts_with(name, "basic_string<char,"))
		return is_cxx_string(t, ret);
	if (starts_with(name, "basic_string_view<char,"))
		return two_members(t, "_M_str", "_M_len", ret, &p) ||
		       two_members(t, "__data_", "__size_", ret, &p) ||
		       two_members(t, "__data", "__size", ret, &p);
	return false;
}

/* An interface of Go without methods, or with: its first word leads to the type then. */
static bool is_interface(const struct ctype *t, bool *methods)
{
	const char *name = t->kind == CTYPE_STRUCT && t->source && t->source->name
				   ? t->source->name(t->source, t)
				   : NULL;

	*methods = name && streq(name, "runtime.iface");
	return *methods || (name && streq(name, "runtime.eface"));
}

/* --- nodes --- */

/* NULL: there is no room, which the last one says then. */
static struct shape_node *add_node(struct builder *b, const char *name, const struct ctype *t,
				   uint64_t offset)
{
	struct shape *s = b->s;
	struct shape_node *n = &s->v[s->n];

	if (s->n == SHAPE_NODES_MAX)
		return NULL;
	*n = (struct shape_node){.kind = SHAPE_CUT};
	if (s->n == SHAPE_NODES_MAX - 1 || offset > UINT32_MAX) {
		s->n += s->n == SHAPE_NODES_MAX - 1;
		return NULL;
	}
	n->name = add_name(b, name);
	n->offset = (uint32_t)offset;
	n->size = t->size < UINT32_MAX ? (uint32_t)t->size : 0;
	n->is_signed = t->is_signed;
	b->types[s->n++] = *t;
	return n;
}

struct member_list {
	struct builder *b;
	uint64_t base;
	unsigned depth;
};

static int on_member(void *arg, const struct ctype_member *m)
{
	struct member_list *l = arg;
	struct shape_node *n;
	uint64_t offset;

	if (__builtin_add_overflow(l->base, m->offset, &offset))
		return 0;
	/* those of an anonymous one are the struct's own */
	if (!m->name && (m->type.kind == CTYPE_STRUCT || m->type.kind == CTYPE_UNION)) {
		struct member_list inner = {l->b, offset, l->depth + 1};

		if (inner.depth > UNNAMED_MAX || !m->type.source)
			return 0;
		return m->type.source->members(m->type.source, &m->type, on_member, &inner) > 0;
	}
	if (m->bits > 64 || m->bit > 7)
		return 0;
	n = add_node(l->b, m->name, &m->type, offset);
	if (!n)
		return 1;
	n->bit = m->bit;
	n->bits = m->bits;
	return 0;
}

static void fill(struct builder *b, uint32_t at, unsigned depth);

static void fill_children(struct builder *b, uint32_t first, unsigned depth)
{
	uint32_t end = (uint32_t)b->s->n;

	for (uint32_t i = first; i < end; i++)
		if (i < SHAPE_NODES_MAX - 1)
			fill(b, i, depth + 1);
}

static void fill_struct(struct builder *b, uint32_t at, unsigned depth)
{
	struct shape_node *n = &b->s->v[at];
	struct ctype t = b->types[at];
	struct member_list l = {.b = b};
	uint32_t first = (uint32_t)b->s->n;

	if (!t.source || t.source->members(t.source, &t, on_member, &l) < 0)
		return; /* what it has is not known */
	n->kind = t.kind == CTYPE_UNION ? SHAPE_UNION : SHAPE_STRUCT;
	n->first = first;
	n->count = (uint32_t)b->s->n - first;
	fill_children(b, first, depth);
}

static void fill_element(struct builder *b, uint32_t at, enum shape_kind kind,
			 const struct ctype *element, uint64_t count, unsigned depth)
{
	uint32_t first = (uint32_t)b->s->n;

	if (!element->size || !add_node(b, NULL, element, 0))
		return;
	b->s->v[at].kind = (uint8_t)kind;
	b->s->v[at].first = first;
	b->s->v[at].count = count < SHAPE_COUNT_BYTES ? (uint32_t)count : SHAPE_COUNT_BYTES - 1;
	fill_children(b, first, depth);
}

static void fill_array(struct builder *b, uint32_t at, unsigned depth)
{
	struct ctype t = b->types[at], element;

	if (ctype_target(&t, &element))
		return;
	if (element.kind == CTYPE_CHAR)
		b->s->v[at].kind = SHAPE_TEXT;
	else
		fill_element(b, at, SHAPE_ARRAY, &element, t.count, depth);
}

static void fill_text(struct builder *b, uint32_t at, const struct text_type *text, unsigned depth)
{
	struct shape_node *n = &b->s->v[at];

	n->ptr_at = text->ptr_at;
	n->len_at = text->len_at;
	if (text->kind == SHAPE_SLICE)
		fill_element(b, at, SHAPE_SLICE, &text->element, 0, depth);
	else
		n->kind = (uint8_t)text->kind;
}

static void fill_interface(struct builder *b, uint32_t at, bool methods)
{
	b->s->v[at].kind = SHAPE_INTERFACE;
	b->s->v[at].count = methods;
}

static int on_enumerator(void *arg, const char *name, int64_t value)
{
	struct builder *b = arg;
	struct shape *s = b->s;
	uint32_t text;

	if (s->n_enums == SHAPE_ENUMS_MAX)
		return 1;
	text = add_name(b, name);
	if (text)
		s->enums[s->n_enums++] = (struct shape_enumerator){value, text};
	return 0;
}

static void fill_enum(struct builder *b, uint32_t at)
{
	struct shape_node *n = &b->s->v[at];
	const struct ctype *t = &b->types[at];

	n->kind = t->is_signed ? SHAPE_SIGNED : SHAPE_UNSIGNED;
	if (!t->source || !t->source->enumerators)
		return;
	n->kind = SHAPE_ENUM;
	n->first = (uint32_t)b->s->n_enums;
	t->source->enumerators(t->source, t, on_enumerator, b);
	n->count = (uint32_t)b->s->n_enums - n->first;
}

static void fill_scalar(struct builder *b, uint32_t at)
{
	struct shape_node *n = &b->s->v[at];
	const struct ctype *t = &b->types[at];
	struct ctype target;

	n->kind = SHAPE_HEX;
	switch (t->kind) {
	case CTYPE_POINTER:
		n->kind = SHAPE_POINTER;
		if (ctype_target(t, &target) == 0 && target.kind == CTYPE_CHAR)
			n->kind = SHAPE_TEXT_AT;
		break;
	case CTYPE_INTEGER:
		if (n->size <= 8)
			n->kind = t->is_signed ? SHAPE_SIGNED : SHAPE_UNSIGNED;
		break;
	case CTYPE_BOOL:
		n->kind = n->size == 1 || n->bits ? SHAPE_BOOL : SHAPE_UNSIGNED;
		break;
	case CTYPE_CHAR:
		n->kind = n->bits ? SHAPE_UNSIGNED : SHAPE_CHAR;
		break;
	case CTYPE_FLOAT:
		n->kind = SHAPE_FLOAT;
		break;
	default:
		break;
	}
}

static void fill(struct builder *b, uint32_t at, unsigned depth)
{
	const struct ctype *t = &b->types[at];
	struct text_type text;
	bool methods;

	if (t->kind == CTYPE_ENUM)
		fill_enum(b, at);
	else if (!ctype_is_aggregate(t))
		fill_scalar(b, at);
	else if (depth >= SHAPE_DEPTH_MAX)
		return; /* it stays cut */
	else if (t->kind == CTYPE_ARRAY)
		fill_array(b, at, depth);
	else if (ctype_is_text(t, &text))
		fill_text(b, at, &text, depth);
	else if (is_interface(t, &methods))
		fill_interface(b, at, methods);
	else
		fill_struct(b, at, depth);
}

/* --- the whole --- */

struct shape *shape_share(struct shape *s)
{
	s->shared++;
	return s;
}

void shape_free(struct shape *s)
{
	if (s->shared) {
		s->shared--;
		return;
	}
	free(s->v);
	free(s->enums);
	free(s->names);
	free(s);
}

static struct shape *allocate(size_t nodes, size_t enums, size_t names)
{
	struct shape *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->v = calloc(nodes + 1, sizeof(*s->v));
	s->enums = calloc(enums + 1, sizeof(*s->enums));
	s->names = calloc(1, names + 1);
	s->names_len = 1;
	if (s->v && s->enums && s->names)
		return s;
	shape_free(s);
	return NULL;
}

struct shape *shape_copy(const struct shape *s)
{
	struct shape *c = allocate(s->n, s->n_enums, s->names_len);

	if (!c)
		return NULL;
	memcpy(c->v, s->v, s->n * sizeof(*s->v));
	memcpy(c->enums, s->enums, s->n_enums * sizeof(*s->enums));
	memcpy(c->names, s->names, s->names_len);
	c->n = s->n;
	c->n_enums = s->n_enums;
	c->names_len = s->names_len;
	return c;
}

static bool is_shown_by_shape(const struct ctype *t)
{
	return ctype_is_aggregate(t) || t->kind == CTYPE_ENUM ||
	       (t->kind == CTYPE_FLOAT && t->size > 8) || (t->kind == CTYPE_INTEGER && t->size > 8);
}

int shape_make(const struct ctype *t, struct shape **ret)
{
	return is_shown_by_shape(t) ? shape_make_any(t, ret) : -ENOTSUP;
}

int shape_make_any(const struct ctype *t, struct shape **ret)
{
	autofree struct ctype *types = NULL;
	CLEANUP(shape_freep) struct shape *s = NULL;
	struct builder b = {0};

	types = calloc(SHAPE_NODES_MAX, sizeof(*types));
	s = allocate(SHAPE_NODES_MAX, SHAPE_ENUMS_MAX, SHAPE_NAMES_MAX);
	if (!types || !s)
		return -ENOMEM;
	b = (struct builder){.s = s, .types = types};
	add_node(&b, NULL, t, 0);
	fill(&b, 0, 0);
	if (s->v[0].kind == SHAPE_CUT || s->v[0].kind == SHAPE_TEXT)
		return -ENOTSUP;
	*ret = shape_copy(s); /* of its own size */
	return *ret ? 0 : -ENOMEM;
}

int shape_of_words(const struct shape_word *words, size_t n, uint32_t size, struct shape **ret)
{
	struct shape *s = allocate(n + 2, 0, SHAPE_NAMES_MAX);
	struct builder b = {.s = s};

	if (!s)
		return -ENOMEM;
	s->v[0] = (struct shape_node){
		.kind = SHAPE_STRUCT, .size = size, .first = 1, .count = (uint32_t)n};
	for (size_t i = 0; i < n; i++)
		s->v[i + 1] =
			(struct shape_node){.kind = words[i].two_floats ? SHAPE_ARRAY : SHAPE_HEX,
					    .size = words[i].two_floats ? 16 : 8,
					    .offset = words[i].offset,
					    .first = words[i].two_floats ? (uint32_t)n + 1 : 0,
					    .count = words[i].two_floats ? 2 : 0,
					    .name = add_name(&b, words[i].name)};
	s->v[n + 1] = (struct shape_node){.kind = SHAPE_FLOAT, .size = 8}; /* each one's element */
	s->n = n + 2;
	*ret = s;
	return 0;
}

static bool node_is_sound(const struct shape *s, uint32_t at)
{
	const struct shape_node *n = &s->v[at];
	bool name = n->name < s->names_len;

	if (n->bit > 7 || n->bits > 64 || !name)
		return false;
	switch (n->kind) {
	case SHAPE_ENUM:
		return n->first <= s->n_enums && n->count <= s->n_enums - n->first;
	case SHAPE_STRUCT:
	case SHAPE_UNION:
		return !n->count ||
		       (n->first > at && n->first <= s->n && n->count <= s->n - n->first);
	case SHAPE_ARRAY:
	case SHAPE_SLICE:
		return n->first > at && n->first < s->n && s->v[n->first].size;
	default:
		return n->kind <= SHAPE_INTERFACE;
	}
}

bool shape_is_sound(const struct shape *s)
{
	if (!s->n || s->n > SHAPE_NODES_MAX || s->n_enums > SHAPE_ENUMS_MAX || !s->names_len ||
	    s->names_len > SHAPE_NAMES_MAX || s->names[0] || s->names[s->names_len - 1])
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (!node_is_sound(s, (uint32_t)i))
			return false;
	for (size_t i = 0; i < s->n_enums; i++)
		if (s->enums[i].name >= s->names_len)
			return false;
	return true;
}
