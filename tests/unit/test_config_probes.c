// SPDX-License-Identifier: GPL-2.0-or-later
/* The config's section probes: what arrives in the struct, and where mistakes are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/config.h"
#include "config/parse.h"
#include "config/probes.h"
#include "probes/fetch/fetch.h"

static struct config parse(const char *text)
{
	struct config_errors errs;
	struct config c;

	if (config_parse(text, strlen(text), &c, &errs) != 0) {
		config_errors_print(&errs, "text", stderr);
		config_errors_free(&errs);
		fail_msg("refused");
	}
	assert_int_equal(errs.n, 0);
	config_errors_free(&errs);
	return c;
}

static void assert_errors(const char *text, const char *expected)
{
	autofree char *printed = NULL;
	struct config_errors errs;
	struct config c;
	size_t size;
	FILE *f = open_memstream(&printed, &size);

	assert_non_null(f);
	assert_int_equal(config_parse(text, strlen(text), &c, &errs), -EINVAL);
	config_errors_print(&errs, "f", f);
	fclose(f);
	config_errors_free(&errs);
	assert_string_equal(printed, expected);
}

static const char whole[] =
	"probes:\n"
	"  - name: lines\n"
	"    probe: 'ur:/bin/bash:readline   retval:string'\n"
	"  - {name: sizes, probe: 'uprobe:libc.so.6:malloc arg0 by comm', action: hist,\n"
	"     linear: '0,100,10', app: web, enabled: false, exact: true}\n"
	"  - {name: zfree_entry, probe: 'p:zfree_entry /bin/zsh:0x5de10 %ip %ax', last: 9, pid: "
	"7}\n"
	"  - name: Opens-2\n"
	"    probe: 'kprobe:do_sys_openat2'\n"
	"    action: count\n"
	"    cgroup: /sys/fs/cgroup/x\n"
	"    armed-by: ['u:/bin/sh:main', 'u:/bin/sh:other if arg0 == 1']\n"
	"    disarmed-by: 'ur:/bin/sh:main'\n"
	"    per-thread: yes\n";

static void the_section_arrives(void **state)
{
	struct config c = parse(whole);
	const struct config_probe *p = c.probes;

	(void)state;
	assert_int_equal(c.n_probes, 4);
	assert_string_equal(p[0].name, "lines");
	assert_string_equal(p[0].probe, "uretprobe:/bin/bash:readline retval:string");
	assert_int_equal(p[0].action, TRACE_WATCH);
	assert_int_equal(p[0].last, CONFIG_PROBE_LAST);
	assert_int_equal(p[0].pid, 0);
	assert_null(p[0].app);
	assert_true(p[0].enabled);
	assert_false(p[0].exact);
	assert_int_equal(p[1].action, TRACE_HIST);
	assert_int_equal(p[1].linear[0], 0);
	assert_int_equal(p[1].linear[1], 100);
	assert_int_equal(p[1].linear[2], 10);
	assert_string_equal(p[1].app, "web");
	assert_false(p[1].enabled);
	assert_true(p[1].exact);
	assert_string_equal(p[2].name, "zfree_entry");
	assert_int_equal(p[2].last, 9);
	assert_int_equal(p[2].pid, 7);
	assert_string_equal(p[3].cgroup, "/sys/fs/cgroup/x");
	assert_int_equal(p[3].armed_by.n, 2);
	assert_string_equal(p[3].armed_by.v[1], "uprobe:/bin/sh:other if arg0 == 1");
	assert_int_equal(p[3].disarmed_by.n, 1);
	assert_true(p[3].per_thread);
	config_free(&c);
}

/* The texts are canonical: other words for the same are no change. */
static void probes_are_copied_and_compared(void **state)
{
	static const char *const others[] = {
		"name: b, probe: 'u:/x:f arg0'",
		"name: a, probe: 'u:/x:f arg1'",
		"name: a, probe: 'u:/x:f arg0', action: count",
		"name: a, probe: 'u:/x:f arg0', last: 7",
		"name: a, probe: 'u:/x:f arg0', enabled: false",
		"name: a, probe: 'u:/x:f arg0', app: web",
		"name: a, probe: 'u:/x:f arg0', pid: 1",
		"name: a, probe: 'u:/x:f arg0', cgroup: /c",
		"name: a, probe: 'u:/x:f arg0', exact: true",
		"name: a, probe: 'u:/x:f arg0', types: /t.o",
		"name: a, probe: 'u:/x:f arg0', armed-by: 'u:/x:g'",
		"name: a, probe: 'u:/x:f arg0', armed-by: 'u:/x:g', disarmed-by: 'u:/x:h'",
		"name: a, probe: 'u:/x:f arg0', armed-by: 'u:/x:g', per-thread: true",
		"name: a, probe: 'u:/x:f arg0', action: hist",
		"name: a, probe: 'u:/x:f arg0', action: hist, linear: '0,9,1'",
	};
	struct config same = parse("probes: [{name: a, probe: 'uprobe:/x:f   arg0'}]\n");
	struct config c = parse("probes: [{name: a, probe: 'u:/x:f arg0'}]\n");
	struct config_probe copy;

	(void)state;
	assert_true(config_probe_eq(&c.probes[0], &same.probes[0]));
	assert_int_equal(config_probe_copy(&c.probes[0], &copy), 0);
	assert_true(config_probe_eq(&c.probes[0], &copy));
	config_probe_free(&copy);
	config_free(&same);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		char text[512];
		struct config other;

		snprintf(text, sizeof(text), "probes: [{%s}]\n", others[i]);
		other = parse(text);
		assert_false(config_probe_eq(&c.probes[0], &other.probes[0]));
		assert_int_equal(config_probe_copy(&other.probes[0], &copy), 0);
		assert_true(config_probe_eq(&other.probes[0], &copy));
		config_probe_free(&copy);
		config_free(&other);
	}
	config_free(&c);
}

/* The action may come behind the text that it gives its meaning. */
static void latencies_are_canonical(void **state)
{
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{"u:/x:f", "uretprobe:/x:f"},
		{"kr:f by comm", "kretprobe:f by comm"},
		{"u:/x:f   to   u:/x:g", "uprobe:/x:f to uprobe:/x:g"},
		{"u:/x:f on arg0 to u:/x:g if arg1 > 2 by comm on arg1:u32",
		 "uprobe:/x:f on arg0 to uprobe:/x:g if arg1 > 2 by comm on arg1:u32"},
		{"t:a:b if x == 1 on n=y to t:a:c", "tracepoint:a:b if x == 1 on n=y to "
						    "tracepoint:a:c"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config_probe again;
		struct config c;
		char text[512];

		snprintf(text, sizeof(text), "probes: [{name: a, probe: '%s', action: latency}]\n",
			 cases[i].text);
		c = parse(text);
		assert_string_equal(c.probes[0].probe, cases[i].canonical);
		assert_int_equal(config_probe_copy(&c.probes[0], &again), 0);
		assert_int_equal(config_probe_check(&again, NULL, NULL), 0);
		assert_true(config_probe_eq(&c.probes[0], &again));
		config_probe_free(&again);
		config_free(&c);
	}
}

/* As a command line has them. */
static void paths_become_absolute(void **state)
{
	struct config_probe p = {.probe = strdup("u:./a/b:f"), .last = CONFIG_PROBE_LAST};

	(void)state;
	assert_int_equal(strv_add(&p.armed_by, "u:b/c:g"), 0);
	assert_int_equal(strv_add(&p.armed_by, "u:libc.so.6:g"), 0);
	assert_int_equal(config_probe_check(&p, "/dir", NULL), 0);
	assert_string_equal(p.probe, "uprobe:/dir/./a/b:f");
	assert_string_equal(p.armed_by.v[0], "uprobe:/dir/b/c:g");
	assert_string_equal(p.armed_by.v[1], "uprobe:libc.so.6:g");
	config_probe_free(&p);
	p = (struct config_probe){.probe = strdup("u:./x:f on arg0 to u:/x:f"),
				  .last = CONFIG_PROBE_LAST,
				  .action = TRACE_LATENCY};
	assert_int_equal(config_probe_check(&p, "/dir", NULL), 0);
	assert_string_equal(p.probe, "uprobe:/dir/./x:f on arg0 to uprobe:/x:f");
	config_probe_free(&p);
}

static void nothing_is_the_default(void **state)
{
	static const char *const texts[] = {"", "probes:\n", "probes: []\n", "probes: ~\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct config c = parse(texts[i]);

		assert_int_equal(c.n_probes, 0);
		config_free(&c);
	}
}

#define P	 "probes: [{name: a, probe: 'u:/x:f', "
#define TOGETHER "f:1:10: probes[0]: found a mapping, expected what goes together: "

static void mistakes_have_a_place(void **state)
{
	static const struct {
		const char *text, *errors;
	} cases[] = {
		{"probes: on\n", "f:1:9: probes: found \"on\", expected a list of probes\n"},
		{"probes: {a: b}\n", "f:1:9: probes: found a mapping, expected a list of probes\n"},
		{"probes: [a]\n",
		 "f:1:10: probes[0]: found \"a\", expected a mapping of name, probe, action, last, "
		 "linear, enabled, app, cgroup, pid, armed-by, disarmed-by, per-thread, exact, "
		 "types\n"},
		{"probes:\n  - name: a\n",
		 "f:2:5: probes[0]: found a mapping, expected a mapping with name and probe\n"},
		{"probes:\n  - probe: 'u:/x:f'\n",
		 "f:2:5: probes[0]: found a mapping, expected a mapping with name and probe\n"},
		{"probes: [{name: a.b, probe: 'u:/x:f'}]\n",
		 "f:1:17: probes[0].name: found \"a.b\", expected a name of 1 to 63 letters, "
		 "digits, '_' or '-'\n"},
		{"probes:\n  - {name: a, probe: 'u:/x:f'}\n  - {name: a, probe: 'u:/x:g'}\n",
		 "f:3:12: probes[1]: found \"a\", which a probe has since line 2, expected a name "
		 "that no other probe has\n"},
		{P "acton: watch}]\n",
		 "f:1:37: probes[0].acton: found unknown key \"acton\", expected one of name, "
		 "probe, action, last, linear, enabled, app, cgroup, pid, armed-by, disarmed-by, "
		 "per-thread, exact, types; did you mean \"action\"?\n"},
		{P "action: look}]\n",
		 "f:1:45: probes[0].action: found \"look\", expected watch, count, hist, stats or "
		 "latency\n"},
		{P "last: 0}]\n", "f:1:43: probes[0].last: found \"0\", expected a number of "
				  "records from 1 to 65536\n"},
		{P "last: 65537}]\n", "f:1:43: probes[0].last: found \"65537\", expected a number "
				      "of records from 1 to 65536\n"},
		{P "pid: -1}]\n",
		 "f:1:42: probes[0].pid: found \"-1\", expected the number of a process\n"},
		{P "linear: '0,10,0'}]\n",
		 "f:1:45: probes[0].linear: found \"0,10,0\", expected LEAST,GREATEST,STEP of at "
		 "most 1000 buckets, as in 0,100,10\n"},
		{P "cgroup: x}]\n",
		 "f:1:45: probes[0].cgroup: found \"x\", expected an absolute path\n"},
		{P "enabled: maybe}]\n",
		 "f:1:46: probes[0].enabled: found \"maybe\", expected true or false\n"},
		{"probes: [{name: a, probe: 't:a:b', action: latency}]\n",
		 "f:1:27: probes[0].probe: found \"t:a:b\", expected a probe: a tracepoint has no "
		 "return, and so no time of its own: expected a function, or 'PROBE to PROBE' for "
		 "the time between two probes\n"},
		{"probes: [{action: look, name: a, probe: 'u:/x:f to u:/x:g'}]\n",
		 "f:1:19: probes[0].action: found \"look\", expected watch, count, hist, stats or "
		 "latency\n"},
		{"probes: [{name: a, probe: 'u:./x:f'}]\n",
		 "f:1:27: probes[0].probe: found \"u:./x:f\", expected a probe: './x' may be "
		 "another file for the agent: expected an absolute path, or the name of a program "
		 "or library\n"},
		{"probes: [{name: a, probe: 'k:f to u:./x:f', action: latency}]\n",
		 "f:1:27: probes[0].probe: found \"k:f to u:./x:f\", expected a probe: './x' may "
		 "be another file for the agent: expected an absolute path, or the name of a "
		 "program or library\n"},
		{P "action: hist}]\n",
		 TOGETHER "hist is about one value: expected it behind the probe\n"},
		{P "linear: '0,9,1'}]\n",
		 TOGETHER "linear is about buckets: expected hist or latency\n"},
		{P "action: count, last: 5}]\n",
		 TOGETHER "last is the number of records that are kept: expected watch\n"},
		{P "app: web, pid: 3}]\n",
		 TOGETHER "pid, app and cgroup each say which processes: expected one\n"},
		{P "per-thread: true}]\n",
		 TOGETHER "per-thread is about armed-by: expected that with it\n"},
		{P "disarmed-by: 'u:/x:g'}]\n",
		 TOGETHER "disarmed-by takes back what armed-by did: expected that with it\n"},
		{P "armed-by: 'u:/x:g arg0'}]\n",
		 TOGETHER "'uprobe:/x:g arg0': a probe that arms or disarms has no values, only a "
			  "condition\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_errors(cases[i].text, cases[i].errors);
}

/* What is wrong with a probe's text is said in the words of `ax trace`, made harmless. */
static void texts_of_probes_are_checked(void **state)
{
	static const char *const texts[] = {"uprob:/x:f",   "u:/x",	     "u:/x:f arg0 if",
					    "u:/x:f arg77", "u:/x:f retval", ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(config_errors_free) struct config_errors errs = {0};
		struct config c;
		char text[256];

		snprintf(text, sizeof(text), "agent:\nprobes:\n  - name: a\n    probe: '%s'\n",
			 texts[i]);
		assert_int_equal(config_parse(text, strlen(text), &c, &errs), -EINVAL);
		assert_int_equal(errs.n, 1);
		assert_int_equal(errs.e[0].line, 4);
		assert_string_equal(errs.e[0].path, "probes[0].probe");
		assert_non_null(strstr(errs.e[0].expected, "a probe"));
	}
	{
		CLEANUP(config_errors_free) struct config_errors errs = {0};
		static const char text[] = "probes: [{name: a, probe: \"uprobe:\\e[1m\\x81\"}]";
		struct config c;

		assert_int_equal(config_parse(text, strlen(text), &c, &errs), -EINVAL);
		assert_int_equal(errs.n, 1);
		for (const char *p = errs.e[0].expected; *p; p++)
			assert_in_range((unsigned char)*p, ' ', '~');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_section_arrives),
		cmocka_unit_test(probes_are_copied_and_compared),
		cmocka_unit_test(latencies_are_canonical),
		cmocka_unit_test(paths_become_absolute),
		cmocka_unit_test(nothing_is_the_default),
		cmocka_unit_test(mistakes_have_a_place),
		cmocka_unit_test(texts_of_probes_are_checked),
	};

	return cmocka_run_group_tests_name("config_probes", tests, NULL, NULL);
}
