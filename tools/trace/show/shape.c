/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes by the shape of their type: {a=1, b=[2, 3]}, in JSON {"a":1,"b":[2,3]}. */
#include <float.h>
#include <math.h>

#include "tools/trace/show/shape.h"

#define ELEMENTS_MAX 64	  /* of an array that are shown */
#define TEXT_MAX     8192 /* characters of one value: then nothing more begins */
#define FLOAT_TEXT   48
#define FLAGS_TEXT   1024

struct walk {
	struct trace_out *o;
	const struct shape_bytes *b;
	const struct shape *s;
	bool json;
	size_t budget; /* characters, about */
};

/* --- pieces of text --- */

static void put(struct walk *w, const char *s, size_t len)
{
	trace_out_put(w->o, s, len);
	w->budget -= len < w->budget ? len : w->budget;
}

static void put_word(struct walk *w, const char *s)
{
	put(w, s, strlen(s));
}

static void put_quoted(struct walk *w, const char *s, size_t len)
{
	w->budget -= len < w->budget ? len : w->budget;
	if (w->json) {
		trace_out_json(w->o, s, len);
		return;
	}
	trace_out_quoted(w->o, s, len);
}

/* Of a member; those without one are counted in JSON. */
static void put_name(struct walk *w, const char *name, uint32_t i)
{
	if (w->json && *name) {
		put_quoted(w, name, strlen(name));
		trace_out_char(w->o, ':');
	} else if (w->json) {
		trace_out_printf(w->o, "\"_%u\":", i);
	} else if (*name) {
		trace_out_safe(w->o, name, strlen(name));
		trace_out_char(w->o, '=');
	}
}

/* Where something was left out. */
static void put_cut(struct walk *w)
{
	put_word(w, w->json ? "\"...\"" : "...");
}

static void put_unknown(struct walk *w, const char *why)
{
	if (w->json || !why) {
		put_word(w, w->json ? "null" : "?");
		return;
	}
	trace_out_char(w->o, '<');
	trace_out_text(w->o, starts_with(why, "it is ") ? why + strlen("it is ") : why);
	trace_out_char(w->o, '>');
}

/* --- numbers --- */

static void put_u64(struct walk *w, uint64_t v)
{
	char buf[TRACE_NUMBER_MAX];

	put(w, buf, (size_t)(trace_write_u64(buf, v) - buf));
}

static void put_s64(struct walk *w, int64_t v)
{
	char buf[TRACE_NUMBER_MAX];

	put(w, buf, (size_t)(trace_write_s64(buf, v) - buf));
}

static void put_hex(struct walk *w, uint64_t v)
{
	char buf[TRACE_NUMBER_MAX + 2], *at = buf;

	if (w->json)
		*at++ = '"';
	at = trace_write_hex(at, v);
	if (w->json)
		*at++ = '"';
	put(w, buf, (size_t)(at - buf));
}

/* As few digits as say which number it is. */
static int write_double(char *buf, double v, bool is_single)
{
	int least = is_single ? 6 : 15, most = is_single ? 9 : 17, n = 0;

	for (int digits = least; digits <= most; digits++) {
		n = snprintf(buf, FLOAT_TEXT, "%.*g", digits, v);
		if (is_single ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v)
			break;
	}
	return n;
}

static void put_text_of_float(struct trace_out *o, const char *text, bool finite, bool json)
{
	bool quoted = json && !finite;

	if (quoted)
		trace_out_char(o, '"');
	trace_out_text(o, text);
	if (quoted)
		trace_out_char(o, '"');
}

void trace_put_float(struct trace_out *o, uint64_t bits, uint32_t size, bool json)
{
	char text[FLOAT_TEXT];
	double v;
	float f;

	if (size == 4) {
		memcpy(&f, &bits, sizeof(f));
		v = (double)f;
	} else {
		memcpy(&v, &bits, sizeof(v));
	}
	write_double(text, v, size == 4);
	put_text_of_float(o, text, isfinite(v), json);
}

/* The one of 80 bits, or as much as the machine has. Readers of JSON have no larger ones than
 * double. */
static void put_long_double(struct walk *w, const uint8_t *at, uint32_t size)
{
	char text[FLOAT_TEXT];
	long double v = 0;

	memcpy(&v, at, size < sizeof(v) ? size : sizeof(v));
	snprintf(text, sizeof(text), "%.18Lg", v);
	put_text_of_float(w->o, text, v >= -(long double)DBL_MAX && v <= (long double)DBL_MAX,
			  w->json);
}

static void put_bytes(struct walk *w, const uint8_t *at, uint32_t size)
{
	if (w->json)
		trace_out_char(w->o, '"');
	trace_out_bytes(w->o, (const char *)at, size < ELEMENTS_MAX ? size : ELEMENTS_MAX);
	if (size > ELEMENTS_MAX)
		trace_out_text(w->o, "...");
	if (w->json)
		trace_out_char(w->o, '"');
	w->budget -= size < w->budget ? size : w->budget;
}

/* --- enums --- */

static bool is_one_bit(uint64_t v)
{
	return v && !(v & (v - 1));
}

static const struct shape_enumerator *enumerator(const struct shape *s, const struct shape_node *n,
						 int64_t v)
{
	for (uint32_t i = 0; i < n->count; i++)
		if (s->enums[n->first + i].value == v)
			return &s->enums[n->first + i];
	return NULL;
}

/* Names that stand for a bit each, and what they make up: then a value may be several of them. */
static bool is_flags(const struct shape *s, const struct shape_node *n)
{
	uint64_t single = 0, all = 0;
	unsigned bits = 0;

	for (uint32_t i = 0; i < n->count; i++) {
		uint64_t v = (uint64_t)s->enums[n->first + i].value;

		all |= v;
		if (!is_one_bit(v))
			continue;
		bits += !(single & v);
		single |= v;
	}
	/* 0, 1, 2, 3 are numbers */
	return bits >= 2 && !(all & ~single) && (n->count <= bits + 1 || bits >= 4);
}

static void add_flag(char *text, size_t size, const char *name)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s%s", len ? "|" : "", name);
}

static void put_flags(struct walk *w, const struct shape_node *n, uint64_t v)
{
	char text[FLAGS_TEXT] = "", rest[TRACE_NUMBER_MAX];

	for (uint32_t i = 0; i < n->count; i++) {
		const struct shape_enumerator *e = &w->s->enums[n->first + i];

		if (!is_one_bit((uint64_t)e->value) || !(v & (uint64_t)e->value))
			continue;
		add_flag(text, sizeof(text), shape_name(w->s, e->name));
		v &= ~(uint64_t)e->value;
	}
	if (v) {
		*trace_write_hex(rest, v) = '\0';
		add_flag(text, sizeof(text), rest);
	}
	w->budget -= strlen(text) < w->budget ? strlen(text) : w->budget;
	if (w->json)
		trace_out_json(w->o, text, strlen(text));
	else
		trace_out_safe(w->o, text, strlen(text));
}

static void put_enum(struct walk *w, const struct shape_node *n, int64_t v)
{
	const struct shape_enumerator *e = enumerator(w->s, n, v);
	const char *name = e ? shape_name(w->s, e->name) : NULL;

	if (name && w->json)
		trace_out_json(w->o, name, strlen(name));
	else if (name)
		trace_out_safe(w->o, name, strlen(name));
	else if (v && is_flags(w->s, n))
		put_flags(w, n, (uint64_t)v);
	else if (n->is_signed)
		put_s64(w, v);
	else
		put_u64(w, (uint64_t)v);
	w->budget -= w->budget < 8 ? w->budget : 8;
}

void trace_put_enum(struct trace_out *o, const struct shape *s, uint64_t v, bool json)
{
	struct walk w = {.o = o, .s = s, .json = json, .budget = TEXT_MAX};

	put_enum(&w, &s->v[0], (int64_t)v);
}

/* --- texts elsewhere --- */

static void put_array(struct walk *w, const struct shape_node *n, const uint8_t *at, size_t len,
		      uint64_t count);

static const uint8_t *followed(const struct walk *w, const struct shape_node *n, size_t *len)
{
	return n->followed && w->b->followed ? w->b->followed(w->b->arg, n->followed - 1u, len)
					     : NULL;
}

static uint64_t word_at(const uint8_t *at, size_t len, uint32_t offset)
{
	uint64_t v = 0;

	if ((size_t)offset + sizeof(v) <= len)
		memcpy(&v, at + offset, sizeof(v));
	return v;
}

/* A char *, whose text may not be there. */
static void put_text_at(struct walk *w, const struct shape_node *n, uint64_t address)
{
	size_t len;
	const uint8_t *text = followed(w, n, &len);

	if (!text) {
		put_hex(w, address);
		return;
	}
	put_quoted(w, (const char *)text, strnlen((const char *)text, len));
	if (!w->json && len >= SHAPE_TEXT_BYTES)
		trace_out_text(w->o, "...");
}

static void put_counted(struct walk *w, const struct shape_node *n, const uint8_t *at, size_t len)
{
	bool told = n->kind != SHAPE_STRING_BEFORE;
	bool within = n->kind == SHAPE_STRING_SHORT && len && shape_is_short(*at);
	uint64_t count = !told ? 0 : within ? *at >> 1 : word_at(at, len, n->len_at);
	size_t got;
	const uint8_t *text = followed(w, n, &got);

	if (within && !text && count < len && count <= SHAPE_SHORT_BYTES) {
		text = at + 1;
		got = count;
	}
	if (n->kind == SHAPE_SLICE && (text || !count)) {
		put_array(w, n, text, text ? got : 0, count);
	} else if (!text && (count || !told)) {
		put_cut(w);
	} else {
		put_quoted(w, text ? (const char *)text : "", text ? got : 0);
		if (!w->json && text && (got < count || got >= SHAPE_TEXT_BYTES))
			trace_out_text(w->o, "...");
	}
}

/* --- interfaces --- */

static void put_node(struct walk *w, uint32_t i, const uint8_t *at, size_t len);

/* The text that the value in an interface begins with: the last of the three. */
struct inner {
	const struct shape_bytes *outer;
	unsigned which;
};

static const uint8_t *inner_text(void *arg, unsigned which, size_t *len)
{
	const struct inner *i = arg;

	return which == 0 ? i->outer->followed(i->outer->arg, i->which, len) : NULL;
}

/* A value of a type that is known by now; false: what it is is not there. */
static bool put_dynamic_value(struct walk *w, const struct session_dynamic *d, unsigned first,
			      const uint8_t *word)
{
	struct inner inner = {w->b, first + 2};
	struct shape_bytes b = {.at = word, .len = 8, .followed = inner_text, .arg = &inner};
	struct walk in = *w;

	if (!d->direct)
		b.at = w->b->followed(w->b->arg, first + 1, &b.len);
	if (!d->shape || !b.at)
		return false;
	in.b = &b;
	in.s = d->shape;
	put_node(&in, 0, b.at, b.len);
	w->budget = in.budget;
	return true;
}

static void put_typed(struct walk *w, const struct session_dynamic *d, unsigned first,
		      const uint8_t *word)
{
	bool braces = d->shape &&
		      (d->shape->v[0].kind == SHAPE_STRUCT || d->shape->v[0].kind == SHAPE_ARRAY);

	if (w->json) {
		put_word(w, "{\"type\":");
		put_quoted(w, d->name, strlen(d->name));
		put_word(w, ",\"value\":");
	} else {
		trace_out_safe(w->o, d->name, strlen(d->name));
		w->budget -= w->budget < 16 ? w->budget : 16;
		put_word(w, braces ? "" : "(");
	}
	if (!put_dynamic_value(w, d, first, word))
		put_hex(w, word_at(word, 8, 0));
	put_word(w, w->json ? "}" : braces ? "" : ")");
}

static void put_interface(struct walk *w, const struct shape_node *n, const uint8_t *at, size_t len)
{
	uint64_t first = word_at(at, len, 0), type = 0;
	const struct session_dynamic *d = NULL;

	if (!first && len >= 16) {
		put_word(w, w->json ? "null" : "nil");
		return;
	}
	if (n->followed && w->b->number && len >= 16 &&
	    w->b->number(w->b->arg, n->followed - 1u, &type))
		d = w->b->dynamic(w->b->arg, type);
	if (d) {
		put_typed(w, d, n->followed - 1u, at + 8);
		return;
	}
	put_word(w, w->json    ? n->count ? "{\"tab\":" : "{\"_type\":"
		    : n->count ? "{tab="
			       : "{_type=");
	put_hex(w, first);
	put_word(w, w->json ? ",\"data\":" : ", data=");
	put_hex(w, word_at(at, len, 8));
	put_word(w, "}");
}

/* --- the tree --- */

/* The number that has these bits; what has more than 8 bytes has none. */
static uint64_t number_of(const struct shape_node *n, const uint8_t *at, size_t len)
{
	unsigned shift = n->bits ? 64u - n->bits : 64u - 8u * (n->size < 8 ? n->size : 8);
	uint8_t bytes[9] = {0};
	uint64_t v;

	memcpy(bytes, at, len < sizeof(bytes) ? len : sizeof(bytes));
	memcpy(&v, bytes, sizeof(v));
	if (n->bits) {
		v >>= n->bit;
		if (n->bit)
			v |= (uint64_t)bytes[8] << (64 - n->bit);
	}
	if (shift >= 64)
		return 0;
	return n->is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static void put_struct(struct walk *w, const struct shape_node *n, const uint8_t *at, size_t len)
{
	bool is_union = n->kind == SHAPE_UNION;

	trace_out_char(w->o, '{');
	for (uint32_t i = 0; i < n->count; i++) {
		const struct shape_node *m = &w->s->v[n->first + i];
		uint32_t bytes = m->bits ? (m->bit + m->bits + 7u) / 8 : m->size;
		const char *name = shape_name(w->s, m->name);

		if (i)
			put_word(w, w->json ? "," : is_union ? " | " : ", ");
		if (!w->budget || m->offset > len || (!bytes && m->kind == SHAPE_CUT) ||
		    (bytes > len - m->offset && m->kind < SHAPE_TEXT)) {
			put_word(w, w->json ? "\"...\":true" : "...");
			break;
		}
		put_name(w, name, i);
		put_node(w, n->first + i, at + m->offset, len - m->offset);
	}
	trace_out_char(w->o, '}');
}

/* SHAPE_SLICE: of as many elements as are there. */
static void put_array(struct walk *w, const struct shape_node *n, const uint8_t *at, size_t len,
		      uint64_t count)
{
	uint32_t size = w->s->v[n->first].size;
	uint64_t there = size ? len / size : 0, shown;

	if (count == SHAPE_COUNT_BYTES)
		count = len >= SHAPE_BYTES_MAX ? there + 1 : there;
	shown = there < count ? there : count;
	if (shown > ELEMENTS_MAX)
		shown = ELEMENTS_MAX;
	trace_out_char(w->o, '[');
	for (uint64_t i = 0; i < shown && w->budget; i++) {
		if (i)
			put_word(w, w->json ? "," : ", ");
		put_node(w, n->first, at + i * size, size);
		if (!w->budget)
			shown = i + 1;
	}
	if (shown < count) {
		if (shown)
			put_word(w, w->json ? "," : ", ");
		put_cut(w);
	}
	trace_out_char(w->o, ']');
}

static void put_char(struct walk *w, char c)
{
	if (w->json) {
		put_quoted(w, &c, 1);
		return;
	}
	trace_out_quoted_char(w->o, c);
}

static void put_scalar(struct walk *w, const struct shape_node *n, const uint8_t *at, size_t len)
{
	uint32_t bytes = n->bits ? (n->bit + n->bits + 7u) / 8 : n->size;
	uint64_t v = number_of(n, at, bytes < len ? bytes : len);

	if (n->kind == SHAPE_FLOAT && n->size != 4 && n->size != 8)
		put_long_double(w, at, bytes < len ? bytes : (uint32_t)len);
	else if (n->kind == SHAPE_HEX && !n->bits && n->size > 8)
		put_bytes(w, at, bytes < len ? bytes : (uint32_t)len);
	else if (n->kind == SHAPE_FLOAT)
		trace_put_float(w->o, v, n->size, w->json);
	else if (n->kind == SHAPE_ENUM)
		put_enum(w, n, (int64_t)v);
	else if (n->kind == SHAPE_BOOL && v <= 1)
		put_word(w, v ? "true" : "false");
	else if (n->kind == SHAPE_CHAR)
		put_char(w, (char)v);
	else if (n->kind == SHAPE_TEXT_AT)
		put_text_at(w, n, v);
	else if (n->kind == SHAPE_POINTER || n->kind == SHAPE_HEX)
		put_hex(w, v);
	else if (n->kind == SHAPE_SIGNED)
		put_s64(w, (int64_t)v);
	else
		put_u64(w, v);
	w->budget -= w->budget ? 1 : 0;
}

static void put_node(struct walk *w, uint32_t i, const uint8_t *at, size_t len)
{
	const struct shape_node *n = &w->s->v[i];
	size_t own = n->size && n->size < len ? n->size : len;

	if (n->absent) {
		put_unknown(w, n->absent);
		return;
	}
	switch (n->kind) {
	case SHAPE_STRUCT:
	case SHAPE_UNION:
		put_struct(w, n, at, own);
		break;
	case SHAPE_ARRAY:
		put_array(w, n, at, own, n->count);
		break;
	case SHAPE_TEXT:
		own = n->size ? own : 0;
		put_quoted(w, (const char *)at, strnlen((const char *)at, own));
		if (own < n->size && strnlen((const char *)at, own) == own && !w->json)
			trace_out_text(w->o, "...");
		break;
	case SHAPE_STRING:
	case SHAPE_STRING_BEFORE:
	case SHAPE_STRING_SHORT:
	case SHAPE_SLICE:
		put_counted(w, n, at, own);
		break;
	case SHAPE_INTERFACE:
		put_interface(w, n, at, own);
		break;
	case SHAPE_CUT:
		put_cut(w);
		break;
	default:
		if (n->size > len && !n->bits)
			put_cut(w);
		else
			put_scalar(w, n, at, len);
	}
}

void trace_put_shape(struct trace_out *o, const struct shape *s, const struct shape_bytes *b,
		     bool json)
{
	struct walk w = {.o = o, .b = b, .s = s, .json = json, .budget = TEXT_MAX};

	put_node(&w, 0, b->at, b->len);
}
