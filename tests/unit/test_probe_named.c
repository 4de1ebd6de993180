// SPDX-License-Identifier: GPL-2.0-or-later
/* What is kept with a named probe, as text and back; and the text of what measures time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/text/latency.h"
#include "probes/named/priv.h"

static struct kept make(void)
{
	struct kept k = {.by_config = true, .made = 1700000000, .cgroup = UINT64_MAX};
	struct config_probe *p = &k.probe;

	*p = (struct config_probe){
		.name = strdup("a-b_C9"),
		.probe = strdup("uprobe:\"/a b\":f arg0 if comm == \"x\\\"y\""),
		.action = TRACE_HIST,
		.last = 7,
		.linear = {INT64_MIN, INT64_MAX, 1},
		.pid = INT32_MAX,
		.app = strdup("web"),
		.cgroup = strdup("/sys/fs/cgroup/\xc3\xa4"),
		.per_thread = true,
		.exact = true,
		.enabled = true,
	};
	assert_int_equal(strv_add(&p->armed_by, "uprobe:/x:f"), 0);
	assert_int_equal(strv_add(&p->armed_by, "uprobe:/x:g"), 0);
	assert_int_equal(strv_add(&p->disarmed_by, "uprobe:/x:h"), 0);
	k.files[0] = (struct kept_file){.path = strdup("/a b"),
					.device = 0xfd00,
					.inode = 1ull << 40,
					.sum = UINT64_MAX,
					.changed_ns = 1ull << 60};
	k.n_files = 1;
	return k;
}

static void what_is_kept_comes_back(void **state)
{
	struct kept k = make(), again;
	autofree char *text = kept_format(&k);

	(void)state;
	assert_non_null(text);
	assert_int_equal(kept_parse(text, &again), 0);
	assert_true(config_probe_eq(&k.probe, &again.probe));
	assert_true(again.by_config);
	assert_int_equal(again.made, k.made);
	assert_true(again.cgroup == k.cgroup);
	assert_int_equal(again.n_files, 1);
	assert_string_equal(again.files[0].path, "/a b");
	assert_true(again.files[0].inode == 1ull << 40);
	assert_int_equal(again.files[0].device, 0xfd00);
	assert_true(again.files[0].sum == UINT64_MAX);
	assert_true(again.files[0].changed_ns == 1ull << 60);
	kept_free(&again);
	kept_free(&k);
}

/* Each flag and text by itself. */
static void nothing_is_mixed_up(void **state)
{
	(void)state;
	for (int i = 0; i < 7; i++) {
		struct kept k = make(), again;
		autofree char *text = NULL;

		k.probe.per_thread = i == 0;
		k.probe.exact = i == 1;
		k.probe.enabled = i == 2;
		k.by_config = i == 3;
		if (i == 4) {
			free(k.probe.app);
			k.probe.app = NULL;
		}
		if (i == 5)
			strv_free(&k.probe.disarmed_by);
		if (i == 6)
			k.probe.action = TRACE_LATENCY;
		text = kept_format(&k);
		assert_int_equal(kept_parse(text, &again), 0);
		assert_true(config_probe_eq(&k.probe, &again.probe));
		assert_int_equal(again.by_config, i == 3);
		kept_free(&again);
		kept_free(&k);
	}
}

static void others_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"7",
		"{}",
		"{\"version\":2,\"name\":\"a\",\"probe\":\"u:/x:f\"}",
		"{\"version\":1}",
		"{\"version\":1,\"name\":\"a\",\"probe\":\"x\"}",
		"{\"version\":1,\"name\":\"a\",\"probe\":\"x\",\"action\":\"dance\"}",
		"{\"version\":1,\"name\":7,\"probe\":[],\"action\":\"watch\"}",
		"{\"version\":1,\"name\":\"a\",\"probe\":\"x\",\"action\":\"arm\",\"files\":[[]]}"};
	struct kept k;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(kept_parse(texts[i], &k), -EPROTO);
}

/* A text that JSON has no words for is not kept in another form. */
static void bytes_are_refused(void **state)
{
	struct kept k = make();

	(void)state;
	k.probe.probe[8] = '\xff';
	assert_null(kept_format(&k));
	kept_free(&k);
}

static void times_are_of_one_or_two_probes(void **state)
{
	struct session_part parts[2];
	struct latency l;

	(void)state;
	assert_int_equal(latency_parse("u:/x:f by comm", &l, NULL), 0);
	assert_int_equal(latency_parts(&l, parts), 1);
	assert_int_equal(parts[0].action, TRACE_LATENCY);
	assert_false(parts[0].between);
	assert_int_equal(parts[0].spec->kind, PROBE_URETPROBE);
	latency_free(&l);
	assert_int_equal(latency_parse("u:/x:f on arg0 to u:/x:g", &l, NULL), 0);
	assert_int_equal(latency_parts(&l, parts), 2);
	assert_string_equal(parts[0].spec->symbol, "g");
	assert_string_equal(parts[1].spec->symbol, "f");
	assert_int_equal(parts[1].action, TRACE_START);
	assert_true(parts[0].between);
	assert_ptr_equal(parts[0].on, parts[1].on);
	assert_non_null(parts[0].on);
	latency_free(&l);
}

static void mistakes_in_times_are_told(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"u:/x:f pid", "what is measured is the time"},
		{"u:/x:f to", "'to' stands between"},
		{"to u:/x:f", "'to' stands between"},
		{"U:/x:p:n", "has no return"},
		{"p:n /x:0x10", "measured at a return"},
		{"u:/x:f by comm to u:/x:g", "'by' belongs to the second"},
		{"u:/x:f on to u:/x:g", "expected one value"},
		{"u:/x:f on arg0 arg1 to u:/x:g", "expected one value"},
		{"u:/x:f to u:/x:g arg1", "what is measured is the time"},
		{"u:/x:f to nonsense:x", "nonsense"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error e = {0};
		struct latency l;

		assert_true(latency_parse(cases[i].text, &l, &e) < 0);
		if (!strstr(e.text, cases[i].says))
			fail_msg("'%s' says: %s", cases[i].text, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_comes_back),
		cmocka_unit_test(nothing_is_mixed_up),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(bytes_are_refused),
		cmocka_unit_test(times_are_of_one_or_two_probes),
		cmocka_unit_test(mistakes_in_times_are_told),
	};

	return cmocka_run_group_tests_name("probe_named", tests, NULL, NULL);
}
