// SPDX-License-Identifier: GPL-2.0-or-later
/* The instructions of a trace of Intel PT, whole and with gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/pt/pt.h"

#define PSB   "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define BEGIN PSB "\x19\x07\x00\x00\x00\x00\x00\x00\x99\x01\x02\x23" /* TSC 7, 64 bits */
#define CODE  0x1000u

/* nop; je +1; nop; jmp next; next: syscall */
static const uint8_t code[] = {0x90, 0x74, 0x01, 0x90, 0xe9, 0, 0, 0, 0, 0x0f, 0x05};

struct seen {
	char s[4096];
	size_t n, code;
};

static PRINTF(2, 3) void say(struct seen *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->s + t->n, sizeof(t->s) - t->n, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof(t->s) - t->n);
	t->n += (size_t)n;
}

static size_t on_read(void *arg, uint64_t ip, uint8_t *buf, size_t len)
{
	const struct seen *t = arg;

	if (ip < CODE || ip >= CODE + t->code)
		return 0;
	if (len > CODE + t->code - ip)
		len = CODE + t->code - ip;
	memcpy(buf, code + (ip - CODE), len);
	return len;
}

static void on_time(void *arg, uint64_t tsc)
{
	(void)arg;
	assert_int_equal(tsc, 7);
}

static void on_step(void *arg, const struct pt_step *s)
{
	say(arg, "%llx/%u:%d ", (unsigned long long)s->ip, s->size, s->kind);
}

static void on_note(void *arg, const struct pt_note *n)
{
	say(arg, "(%d %llx) ", n->kind, (unsigned long long)n->ip);
}

static void run(const char *trace, size_t n, size_t known, const char *expected)
{
	static const struct pt_clock clock;
	struct seen t = {.code = known};
	const struct pt_flow flow = {on_read, on_time, on_step, on_note, &t};
	struct error e = {0};
	uint8_t *copy = malloc(n);

	assert_non_null(copy);
	memcpy(copy, trace, n);
	assert_int_equal(pt_flow_run(copy, n, &clock, &flow, &e), 0);
	assert_string_equal(t.s, expected);
	free(copy);
}

/* je taken; the system call leaves, tracing ends */
static const char whole[] = BEGIN "\x71\x00\x10\x00\x00\x00\x00\x06\x01";

static void steps_are_told(void **state)
{
	(void)state;
	run(whole, sizeof(whole) - 1, sizeof(code),
	    "(0 1000) 1000/1:0 1001/2:4 1004/5:3 1009/2:5 (1 0) ");
}

static void what_is_not_known_is_a_gap(void **state)
{
	static const char twice[] = BEGIN "\x71\x00\x10\x00\x00\x00\x00\x06\x06\x06\x01" BEGIN
					  "\x71\x00\x10\x00\x00\x00\x00\x06\x01";

	(void)state;
	/* the jump is cut off: the second PSB begins anew */
	run(twice, sizeof(twice) - 1, 6,
	    "(0 1000) 1000/1:0 1001/2:4 (4 1004) (0 1000) 1000/1:0 1001/2:4 (4 1004) ");
}

static void without_a_psb_all_is_a_gap(void **state)
{
	(void)state;
	run("\0\0\0\0", 4, sizeof(code), "(4 0) ");
}

static void any_end_of_a_trace(void **state)
{
	static const struct pt_clock clock;

	(void)state;
	for (size_t n = 1; n < sizeof(whole) - 1; n++) {
		struct seen t = {.code = sizeof(code)};
		const struct pt_flow flow = {on_read, on_time, on_step, on_note, &t};
		struct error e = {0};
		uint8_t *copy = malloc(n);

		assert_non_null(copy);
		memcpy(copy, whole, n);
		assert_int_equal(pt_flow_run(copy, n, &clock, &flow, &e), 0);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_told),
		cmocka_unit_test(what_is_not_known_is_a_gap),
		cmocka_unit_test(without_a_psb_all_is_a_gap),
		cmocka_unit_test(any_end_of_a_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
