// SPDX-License-Identifier: GPL-2.0-or-later
/* Values shown by their types: shapes of types, also of such as no compiler makes, and bytes that
 * are shown by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>

#include "tools/lib/text.c"
#include "tools/trace/show/out.c"
#include "tools/trace/show/shape.c"

/* --- a source of types that is a table --- */

#define MEMBERS 6
struct entry {
	enum ctype_kind kind;
	bool is_signed;
	uint64_t size, count;
	const char *name;
	int target;
	struct {
		const char *name;
		int type;
		uint64_t offset;
		uint8_t bit, bits;
	} members[MEMBERS];
	size_t n;
	struct {
		const char *name;
		int64_t value;
	} values[MEMBERS];
};
static const struct entry *table;
static struct type_source source;

static struct ctype type_of(int id)
{
	const struct entry *e = &table[id];

	return (struct ctype){.kind = e->kind,
			      .is_signed = e->is_signed,
			      .size = e->size,
			      .count = e->count,
			      .source = &source,
			      .id = (uint64_t)id};
}

static int target_of(struct type_source *s, const struct ctype *t, struct ctype *ret)
{
	(void)s;
	if (table[t->id].target < 0)
		return -ENOENT;
	*ret = type_of(table[t->id].target);
	return 0;
}

static int members_of(struct type_source *s, const struct ctype *t,
		      int (*f)(void *arg, const struct ctype_member *m), void *arg)
{
	const struct entry *e = &table[t->id];
	int r = 0;

	(void)s;
	for (size_t i = 0; r == 0 && i < e->n; i++) {
		struct ctype_member m = {.name = e->members[i].name,
					 .type = type_of(e->members[i].type),
					 .offset = e->members[i].offset,
					 .bit = e->members[i].bit,
					 .bits = e->members[i].bits};

		r = f(arg, &m);
	}
	return r;
}

static const char *name_of(struct type_source *s, const struct ctype *t)
{
	(void)s;
	return table[t->id].name;
}

static int values_of(struct type_source *s, const struct ctype *t,
		     int (*f)(void *arg, const char *name, int64_t value), void *arg)
{
	const struct entry *e = &table[t->id];
	int r = 0;

	(void)s;
	for (size_t i = 0; r == 0 && i < MEMBERS && e->values[i].name; i++)
		r = f(arg, e->values[i].name, e->values[i].value);
	return r;
}

static struct type_source source = {
	.target = target_of, .members = members_of, .name = name_of, .enumerators = values_of};

/* --- showing --- */

static const uint8_t *no_text(void *arg, unsigned which, size_t *len)
{
	const char *const *texts = arg;

	if (!texts || which > 1)
		return NULL;
	*len = strlen(texts[which]);
	return (const uint8_t *)texts[which];
}

static void show(const struct shape *s, const void *at, size_t len, const char *const *texts,
		 bool json, char *buf, size_t size)
{
	struct shape_bytes b = {.at = at, .len = len, .followed = no_text, .arg = (void *)texts};
	struct trace_out o;

	assert_int_equal(trace_out_open(&o, -1), 0);
	trace_put_shape(&o, s, &b, json);
	assert_true(o.n < size);
	memcpy(buf, o.buf, o.n);
	buf[o.n] = '\0';
	o.n = 0;
	trace_out_close(&o);
}

static void check_json(const char *text)
{
	json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);

	if (!j)
		fail_msg("no JSON: %s", text);
	json_decref(j);
}

static char text[1 << 17];

static void expect(int type, const void *at, size_t len, const char *want, const char *want_json)
{
	struct ctype t = type_of(type);
	struct shape *s = NULL;

	assert_int_equal(shape_make(&t, &s), 0);
	assert_true(shape_is_sound(s));
	show(s, at, len, NULL, false, text, sizeof(text));
	assert_string_equal(text, want);
	show(s, at, len, NULL, true, text, sizeof(text));
	check_json(text);
	assert_string_equal(text, want_json);
	shape_free(s);
}

enum {
	INT,
	CHARACTER,
	DOUBLE,
	FLOAT,
	COLOR,
	FLAGS,
	POINT,
	INTS,
	TEXT,
	POINTER,
	UNION,
	OUTER,
	BITS,
	CHAR_POINTER,
	SELF,
	SELVES,
	HUGE_ARRAY,
	NOTHING,
	NOTHINGS,
	FAR,
	BROKEN_BITS,
	STRING,
	WITH_TEXTS,
	LONG_DOUBLE,
	EMPTY,
	EMPTIES,
	UNKNOWN,
	DECLARED,
	NAMED_BITS,
};
static const struct entry types[] = {
	[INT] = {.kind = CTYPE_INTEGER, .is_signed = true, .size = 4},
	[CHARACTER] = {.kind = CTYPE_CHAR, .is_signed = true, .size = 1},
	[DOUBLE] = {.kind = CTYPE_FLOAT, .size = 8},
	[FLOAT] = {.kind = CTYPE_FLOAT, .size = 4},
	[COLOR] = {.kind = CTYPE_ENUM,
		   .is_signed = true,
		   .size = 4,
		   .values = {{"RED", 0}, {"GREEN", 1}, {"NEG", -2}}},
	[FLAGS] = {.kind = CTYPE_ENUM,
		   .size = 4,
		   .values = {{"A", 1}, {"B", 2}, {"C", 4}, {"TOP", 0x80}}},
	[POINT] = {.kind = CTYPE_STRUCT,
		   .size = 16,
		   .members = {{"x", DOUBLE, 0, 0, 0}, {"y", DOUBLE, 8, 0, 0}},
		   .n = 2},
	[INTS] = {.kind = CTYPE_ARRAY, .size = 12, .count = 3, .target = INT},
	[TEXT] = {.kind = CTYPE_ARRAY, .size = 4, .count = 4, .target = CHARACTER},
	[POINTER] = {.kind = CTYPE_POINTER, .size = 8, .target = POINT},
	[UNION] = {.kind = CTYPE_UNION,
		   .size = 4,
		   .members = {{"i", INT, 0, 0, 0}, {"f", FLOAT, 0, 0, 0}},
		   .n = 2},
	[OUTER] = {.kind = CTYPE_STRUCT,
		   .size = 64,
		   .members = {{"c", COLOR, 0, 0, 0},
			       {NULL, UNION, 4, 0, 0},
			       {"list", INTS, 8, 0, 0},
			       {"name", TEXT, 20, 0, 0},
			       {"at", POINT, 24, 0, 0},
			       {"to", POINTER, 40, 0, 0}},
		   .n = 6},
	[BITS] = {.kind = CTYPE_STRUCT,
		  .size = 16,
		  .members = {{"a", INT, 0, 0, 3}, {"b", INT, 0, 3, 5}, {"over", INT, 1, 7, 64}},
		  .n = 3},
	[CHAR_POINTER] = {.kind = CTYPE_POINTER, .size = 8, .target = CHARACTER},
	/* a struct that has itself: no compiler makes that */
	[SELF] = {.kind = CTYPE_STRUCT,
		  .size = 8,
		  .members = {{"a", SELF, 0, 0, 0}, {"b", SELF, 0, 0, 0}, {"c", SELF, 0, 0, 0}},
		  .n = 3},
	[SELVES] = {.kind = CTYPE_ARRAY, .size = 8, .count = UINT64_MAX, .target = SELVES},
	[HUGE_ARRAY] = {.kind = CTYPE_ARRAY,
			.size = UINT64_MAX,
			.count = UINT64_MAX / 4,
			.target = INT},
	[NOTHING] = {.kind = CTYPE_INTEGER, .size = 0},
	[NOTHINGS] = {.kind = CTYPE_ARRAY, .size = 0, .count = 1000000, .target = NOTHING},
	[FAR] = {.kind = CTYPE_STRUCT,
		 .size = 16,
		 .members = {{"near", INT, 0, 0, 0},
			     {"far", INT, 1u << 31, 0, 0},
			     {"further", INT, UINT64_MAX - 2, 0, 0}},
		 .n = 3},
	[BROKEN_BITS] = {.kind = CTYPE_STRUCT,
			 .size = 8,
			 .members = {{"bit", INT, 0, 9, 3},
				     {"bits", INT, 0, 0, 200},
				     {"end", INT, 7, 7, 64},
				     {"fine", INT, 0, 0, 4}},
			 .n = 4},
	[STRING] = {.kind = CTYPE_STRUCT,
		    .size = 16,
		    .name = "string",
		    .members = {{"str", CHAR_POINTER, 0, 0, 0}, {"len", POINTER, 8, 0, 0}},
		    .n = 2},
	[WITH_TEXTS] = {.kind = CTYPE_STRUCT,
			.size = 24,
			.members = {{"c", CHAR_POINTER, 0, 0, 0}, {"go", STRING, 8, 0, 0}},
			.n = 2},
	[LONG_DOUBLE] = {.kind = CTYPE_FLOAT, .size = 16},
	[EMPTY] = {.kind = CTYPE_STRUCT, .size = 1},
	[EMPTIES] = {.kind = CTYPE_ARRAY, .size = 1000, .count = 1000, .target = EMPTY},
	[UNKNOWN] = {.kind = CTYPE_OTHER, .size = 300},
	[DECLARED] = {.kind = CTYPE_STRUCT, .members = {{"what", UNKNOWN, 0, 0, 0}}, .n = 1},
	[NAMED_BITS] = {.kind = CTYPE_STRUCT,
			.size = 4,
			.members = {{"f", FLAGS, 0, 1, 9}, {"c", COLOR, 2, 0, 2}},
			.n = 2},
};

static void test_struct(void **state)
{
	struct {
		int32_t color;
		float f;
		int32_t list[3];
		char name[4];
		double x, y;
		uint64_t to;
		char rest[16];
	} v = {-2, 1.5f, {1, -2, 3}, "ab", 0.1, -1e300, 0xbeef, ""};

	(void)state;
	expect(OUTER, &v, sizeof(v),
	       "{c=NEG, i=1069547520, f=1.5, list=[1, -2, 3], name=\"ab\", at={x=0.1, y=-1e+300}, "
	       "to=0xbeef}",
	       "{\"c\":\"NEG\",\"i\":1069547520,\"f\":1.5,\"list\":[1,-2,3],\"name\":\"ab\","
	       "\"at\":{\"x\":0.1,\"y\":-1e+300},\"to\":\"0xbeef\"}");
	/* fetched only in part */
	expect(OUTER, &v, 22, "{c=NEG, i=1069547520, f=1.5, list=[1, -2, 3], name=\"ab\"..., ...}",
	       "{\"c\":\"NEG\",\"i\":1069547520,\"f\":1.5,\"list\":[1,-2,3],\"name\":\"ab\","
	       "\"...\":true}");
	expect(OUTER, &v, 14, "{c=NEG, i=1069547520, f=1.5, list=[1, ...], ...}",
	       "{\"c\":\"NEG\",\"i\":1069547520,\"f\":1.5,\"list\":[1,\"...\"],\"...\":true}");
	expect(OUTER, &v, 0, "{...}", "{\"...\":true}");
	v.color = 7;
	v.x = (double)NAN;
	v.y = (double)INFINITY;
	memcpy(v.name, "a\033\"b", 4);
	expect(OUTER, &v, sizeof(v),
	       "{c=7, i=1069547520, f=1.5, list=[1, -2, 3], name=\"a\\e\\\"b\", at={x=nan, "
	       "y=inf}, to=0xbeef}",
	       "{\"c\":7,\"i\":1069547520,\"f\":1.5,\"list\":[1,-2,3],"
	       "\"name\":\"a\\u001b\\u0022b\",\"at\":{\"x\":\"nan\",\"y\":\"inf\"},"
	       "\"to\":\"0xbeef\"}");
}

static void test_enums(void **state)
{
	int32_t v = 1;
	uint32_t f = 5;
	uint32_t bits = (5u | 0x100) << 1 | 2u << 16;

	(void)state;
	expect(COLOR, &v, 4, "GREEN", "\"GREEN\"");
	v = 3; /* RED, GREEN and NEG are no flags */
	expect(COLOR, &v, 4, "3", "3");
	expect(FLAGS, &f, 4, "A|C", "\"A|C\"");
	f = 0x80;
	expect(FLAGS, &f, 4, "TOP", "\"TOP\"");
	f = 0x1002;
	expect(FLAGS, &f, 4, "B|0x1000", "\"B|0x1000\"");
	f = 0;
	expect(FLAGS, &f, 4, "0", "0");
	expect(NAMED_BITS, &bits, 4, "{f=A|C|0x100, c=NEG}", "{\"f\":\"A|C|0x100\",\"c\":\"NEG\"}");
}

static void test_bits(void **state)
{
	uint8_t v[16] = {0xff ^ 0x10, 0x80, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};

	(void)state;
	expect(BITS, v, sizeof(v), "{a=-1, b=-3, over=-3}", "{\"a\":-1,\"b\":-3,\"over\":-3}");
	/* bits that no number has are left out, those behind the struct's end are not shown */
	expect(BROKEN_BITS, v, 16, "{...}", "{\"...\":true}");
}

/* Whatever a type says, it ends, and is not long. */
static void expect_bounded(int type)
{
	static const uint8_t zeros[1 << 16];
	struct ctype t = type_of(type);
	struct shape *s = NULL;

	assert_int_equal(shape_make(&t, &s), 0);
	assert_true(shape_is_sound(s) && s->n <= SHAPE_NODES_MAX);
	show(s, zeros, sizeof(zeros), NULL, true, text, sizeof(text));
	check_json(text);
	show(s, zeros, sizeof(zeros), NULL, false, text, sizeof(text));
	assert_non_null(strstr(text, "..."));
	shape_free(s);
}

static void test_hostile(void **state)
{
	uint8_t v[16] = {1};
	struct ctype t;
	struct shape *s = NULL;

	(void)state;
	expect_bounded(SELF);
	expect_bounded(SELVES);
	expect_bounded(HUGE_ARRAY);
	expect_bounded(EMPTIES);
	expect(FAR, v, sizeof(v), "{near=1, ...}", "{\"near\":1,\"...\":true}");
	expect(EMPTY, v, 1, "{}", "{}");
	t = type_of(NOTHINGS); /* it would have no end */
	assert_int_equal(shape_make(&t, &s), -ENOTSUP);
	t = type_of(TEXT); /* a string has no shape */
	assert_int_equal(shape_make(&t, &s), -ENOTSUP);
	t = type_of(INT);
	assert_int_equal(shape_make(&t, &s), -ENOTSUP);
	expect_bounded(DECLARED);
}

static void test_long_double(void **state)
{
#ifdef __x86_64__
	long double v = 3.25L;

	expect(LONG_DOUBLE, &v, 16, "3.25", "3.25");
#endif
	(void)state;
}

static void test_followed(void **state)
{
	const char *const texts[] = {"one", "two and more"};
	uint64_t v[3] = {0x1000, 0x2000, 3};
	struct ctype t = type_of(WITH_TEXTS);
	struct shape *s = NULL;

	(void)state;
	assert_int_equal(shape_make(&t, &s), 0);
	show(s, v, sizeof(v), NULL, false, text, sizeof(text));
	assert_string_equal(text, "{c=0x1000, go=...}");
	for (size_t i = 0; i < s->n; i++)
		s->v[i].followed = s->v[i].kind == SHAPE_TEXT_AT  ? 1
				   : s->v[i].kind == SHAPE_STRING ? 2
								  : 0;
	show(s, v, sizeof(v), texts, false, text, sizeof(text));
	assert_string_equal(text, "{c=\"one\", go=\"two and more\"}");
	show(s, v, sizeof(v), texts, true, text, sizeof(text));
	check_json(text);
	v[2] = 100; /* there would be more */
	show(s, v, sizeof(v), texts, false, text, sizeof(text));
	assert_string_equal(text, "{c=\"one\", go=\"two and more\"...}");
	shape_free(s);
}

/* One that was written by somebody else. */
static void test_unsound(void **state)
{
	struct ctype t;
	struct shape *s = NULL, *c;

	(void)state;
	t = type_of(OUTER);
	assert_int_equal(shape_make(&t, &s), 0);
	c = shape_copy(s);
	c->v[0].first = 0; /* a circle */
	assert_false(shape_is_sound(c));
	c->v[0].first = s->v[0].first;
	assert_true(shape_is_sound(c));
	c->v[0].count = UINT32_MAX;
	assert_false(shape_is_sound(c));
	shape_free(c);
	c = shape_copy(s);
	c->v[1].name = (uint32_t)c->names_len;
	assert_false(shape_is_sound(c));
	shape_free(c);
	c = shape_copy(s);
	c->v[1].bit = 8;
	assert_false(shape_is_sound(c));
	shape_free(c);
	shape_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_struct),	    cmocka_unit_test(test_enums),
		cmocka_unit_test(test_bits),	    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_long_double), cmocka_unit_test(test_followed),
		cmocka_unit_test(test_unsound),
	};

	table = types;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
