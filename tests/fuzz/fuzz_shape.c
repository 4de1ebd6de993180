// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any shape that is sound, as it could have been kept by somebody else, and any bytes: what is
 * written ends, is not long, and in JSON is JSON.
 */
#include <jansson.h>

#include "tools/lib/text.c"
#include "tools/trace/show/out.c"
#include "tools/trace/show/shape.c"

#define NODES	   24
#define NAMES	   64
#define ENUMS	   6
#define OUTPUT_MAX (1u << 18)
/* jansson has no integers of 64 bits without a sign */
#define FLAGS (JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t n;
};

static uint8_t take(struct input *in)
{
	if (!in->n)
		return 0;
	in->n--;
	return *in->at++;
}

/* Mostly small, sometimes at an end. */
static uint32_t take_number(struct input *in)
{
	uint32_t v = take(in);

	if (v < 0xf0)
		return v;
	return v < 0xf8 ? UINT32_MAX - v : (v & 7) << 29 | take(in);
}

/* Where children are, so that it is sound mostly. */
static void settle(struct shape_node *n, uint32_t at, size_t nodes)
{
	if (n->kind == SHAPE_ENUM) {
		n->first %= ENUMS;
		n->count %= ENUMS;
	} else if (n->first < 200) {
		n->first = at + 1 + n->first % 4;
		if (n->kind == SHAPE_STRUCT || n->kind == SHAPE_UNION)
			n->count %= 6;
		if (n->first >= nodes)
			n->kind = SHAPE_HEX;
	}
	n->name %= NAMES + 1;
}

static struct shape_node take_node(struct input *in)
{
	struct shape_node n = {.kind = take(in), .bit = take(in), .bits = take(in)};

	n.kind %= SHAPE_INTERFACE + 2;
	n.bit %= 9;
	n.bits = n.bits < 128 ? 0 : n.bits - 128;
	n.is_signed = n.bits & 1;
	n.followed = take(in) % 3;
	n.ptr_at = take(in);
	n.len_at = take(in);
	n.offset = take_number(in);
	n.size = take_number(in);
	n.name = take_number(in);
	n.first = take_number(in);
	n.count = take_number(in);
	return n;
}

static const uint8_t *on_followed(void *arg, unsigned which, size_t *len)
{
	const struct input *in = arg;

	*len = in->n;
	return which ? NULL : in->at;
}

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_output(const struct shape *s, const struct shape_bytes *b, bool json)
{
	struct trace_out o;
	json_t *j;

	check(trace_out_open(&o, -1) == 0);
	trace_put_shape(&o, s, b, json);
	check(o.n < OUTPUT_MAX);
	if (json) {
		json_error_t e;

		j = json_loadb(o.buf, o.n, FLAGS, &e);
		if (!j)
			fprintf(stderr, "%s at %d of %.*s\n", e.text, e.position, (int)o.n, o.buf);
		check(j != NULL);
		json_decref(j);
	}
	o.n = 0;
	trace_out_close(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shape_node nodes[NODES];
	struct shape_enumerator enums[ENUMS];
	char names[NAMES] = "";
	struct input in = {data, size};
	struct shape s = {.v = nodes, .enums = enums, .names = names, .names_len = NAMES};
	struct shape_bytes b = {.followed = on_followed, .arg = &in};
	struct shape *copy;

	s.n = take(&in) % (NODES + 1);
	s.n_enums = take(&in) % (ENUMS + 1);
	for (size_t i = 0; i < s.n; i++) {
		nodes[i] = take_node(&in);
		settle(&nodes[i], (uint32_t)i, s.n);
	}
	for (size_t i = 0; i < s.n_enums; i++)
		enums[i] = (struct shape_enumerator){(int64_t)take_number(&in), take(&in) % NAMES};
	for (size_t i = 1; i + 1 < NAMES && in.n; i++)
		names[i] = (char)take(&in);
	if (!shape_is_sound(&s))
		return -1;
	copy = shape_copy(&s);
	check(copy && shape_is_sound(copy));
	b.at = in.at;
	b.len = in.n;
	check_output(copy, &b, false);
	check_output(copy, &b, true);
	shape_free(copy);
	return 0;
}
