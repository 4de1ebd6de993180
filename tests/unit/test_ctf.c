/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* Traces in CTF, as babeltrace2 reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ctf/ctf.h"

#define OFFSET INT64_C(1700000000250000000)
#define TEXT   (4 << 20)

static char top[] = "/tmp/ax-ctf.XXXXXX";
static char dir[64];	/* of the test's trace */
static char said[TEXT]; /* what babeltrace2 has printed, and complained */
static char complained[TEXT];

/* --- a trace --- */

static struct ctf *trace;

static int begin(void **state)
{
	static int n;

	(void)state;
	snprintf(dir, sizeof(dir), "%s/%d", top, n++);
	return ctf_open(dir, OFFSET, &trace, NULL);
}

static int end(void **state)
{
	(void)state;
	ctf_free(trace);
	trace = NULL;
	return 0;
}

static void put_context(int event, uint64_t time_ns, const char *comm)
{
	struct ctf_context c = {.time_ns = time_ns,
				.pid = 11,
				.tid = 12,
				.cpu = 3,
				.comm = comm,
				.comm_len = strlen(comm),
				.unread = ""};

	ctf_begin(trace, event, &c);
}

/* An event with a number. */
static int add_plain(void)
{
	return ctf_add_event(trace, "plain", &(struct ctf_field){"n", CTF_UNSIGNED}, 1);
}

static void put_plain(int event, uint64_t time_ns, uint64_t v)
{
	put_context(event, time_ns, "x");
	ctf_number(trace, v);
	ctf_end(trace);
}

static void write_all(uint64_t discarded)
{
	assert_int_equal(ctf_flush(trace, UINT64_MAX, discarded, true), 0);
}

/* --- what is read --- */

static void read_text(const char *path, char *to)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, r;

	assert_true(fd >= 0);
	while ((r = read(fd, to + n, (size_t)(TEXT - 1 - n))) > 0)
		n += r;
	to[n] = '\0';
	close(fd);
}

static void run_babeltrace(void)
{
	char command[512], path[128];
	int r;

	snprintf(command, sizeof(command),
		 "LC_ALL=C babeltrace2 --no-delta --clock-seconds %s >%s.out 2>%s.err", dir, dir,
		 dir);
	r = system(command);
	snprintf(path, sizeof(path), "%s.out", dir);
	read_text(path, said);
	snprintf(path, sizeof(path), "%s.err", dir);
	read_text(path, complained);
	if (r)
		print_message("%s%s", said, complained);
	assert_int_equal(r, 0);
}

static void reads_well(void)
{
	run_babeltrace();
	assert_string_equal(complained, "");
}

static void has(const char *text)
{
	if (!strstr(said, text))
		fail_msg("not in what babeltrace2 says: %s\n%.2000s", text, said);
}

static size_t lines(void)
{
	size_t n = 0;

	for (const char *p = said; *p; p++)
		n += *p == '\n';
	return n;
}

/* --- the tests --- */

static void test_types(void **state)
{
	const struct ctf_field fields[] = {
		{"u", CTF_UNSIGNED}, {"s", CTF_SIGNED},	 {"x", CTF_HEX},   {"d", CTF_FLOAT},
		{"t", CTF_STRING},   {"l", CTF_STRINGS}, {"b", CTF_BYTES},
	};
	int event = ctf_add_event(trace, "types", fields, ARRAY_SIZE(fields));

	(void)state;
	put_context(event, 5000000001, "prog");
	ctf_number(trace, UINT64_MAX);
	ctf_number(trace, (uint64_t)INT64_MIN);
	ctf_number(trace, 0xdeadbeef);
	ctf_float(trace, -0.125);
	ctf_string(trace, "caf\xc3\xa9\0hidden", 12);
	ctf_strings(trace, 2);
	ctf_string(trace, "one", 3);
	ctf_string(trace, "", 0);
	ctf_bytes(trace, "\0\xff", 2);
	ctf_end(trace);
	write_all(0);
	reads_well();
	has("[1700000005.250000001]");
	has(" types: { pid = 11, tid = 12, cpu_id = 3, procname = \"prog\", unread = \"\" }");
	has("u = 18446744073709551615, s = -9223372036854775808, x = 0xDEADBEEF, d = -0.125");
	has("t = \"caf\xc3\xa9\"");
	has("l = [ [0] = \"one\", [1] = \"\" ]");
	has("b = [ [0] = 0x0, [1] = 0xFF ]");
	assert_int_equal(lines(), 1);
}

/* Of each, what it is as a name and as a text. */
static void test_hostile_names(void **state)
{
	static const char *const names[] = {
		"int",
		"struct",
		"",
		"0x10",
		"%di",
		"a b",
		"a_b",
		"a_b",
		"a_b_2",
		"_x",
		"\xc3\xa9",
		"\"};",
		"arg0@entry",
		"a\nb",
		"a-name-that-is-longer-than-anybody-would-write-but-that-an-expression-may-have-as-"
		"its-text-all-the-same",
		"a-name-that-is-longer-than-anybody-would-write-but-that-an-expression-may-have-as-"
		"its-text-all-the-same, too",
	};
	struct ctf_field fields[ARRAY_SIZE(names)];
	int event;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		fields[i] = (struct ctf_field){names[i], i % 2 ? CTF_BYTES : CTF_STRINGS};
		event = ctf_add_event(trace, names[i], fields, 0);
		put_context(event, 1000 + i, names[i]);
		ctf_end(trace);
	}
	event = ctf_add_event(trace, "\"; }; event { name = \"\\", fields, ARRAY_SIZE(fields));
	put_context(event, 2000, "\"\\\n\x1b[31m\xff");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (i % 2)
			ctf_bytes(trace, "x", 1);
		else
			ctf_strings(trace, 0);
	}
	ctf_end(trace);
	write_all(0);
	reads_well();
	has("\"; }; event { name = \"\\: {");
	has("procname = \"\\\"\\\\\\n\\e[31m\xc3\xbf\"");
	has(", int = [ ]");
	has("a_b = [");
	has("a_b_2 = [");
	has("a_b_2_2 = [");
	has("arg0_entry = [");
}

static void test_order(void **state)
{
	static const uint64_t times[] = {500, 300, 400, 100, 200};
	int event = add_plain();
	char *at = said;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		put_plain(event, times[i], times[i]);
	assert_int_equal(ctf_flush(trace, 350, 0, true), 0);
	reads_well();
	assert_int_equal(lines(), 3); /* the others wait */
	put_plain(event, 450, 450);
	write_all(0);
	reads_well();
	assert_int_equal(lines(), 6);
	assert_int_equal(ctf_late(trace), 0);
	for (uint64_t n = 100; n <= 500; n += n == 400 || n == 450 ? 50 : 100) {
		char text[32];

		snprintf(text, sizeof(text), "{ n = %u }\n", (unsigned)n);
		at = strstr(at, text);
		assert_non_null(at);
	}
}

/* None is lost, and none has another time than its own. */
static void test_late(void **state)
{
	int event = add_plain();

	(void)state;
	put_plain(event, 1000, 1);
	write_all(0);
	put_plain(event, 500, 2);
	write_all(0);
	put_plain(event, 400, 3);
	put_plain(event, 600, 4);
	put_plain(event, 2000, 5);
	write_all(0);
	reads_well();
	assert_int_equal(lines(), 5);
	assert_int_equal(ctf_late(trace), 3);
	has(".250000400] ");
	assert_ptr_equal(strstr(said, "n = 3"), strstr(said, "n = "));
	assert_true(strstr(said, "n = 2") < strstr(said, "n = 4"));
	assert_true(strstr(said, "n = 4") < strstr(said, "n = 1"));
}

static void test_discarded(void **state)
{
	int event = add_plain();

	(void)state;
	put_plain(event, 100, 1);
	write_all(0);
	put_plain(event, 200, 2);
	write_all(7);
	write_all(7);
	write_all(9); /* at the end, when nothing more comes */
	run_babeltrace();
	assert_int_equal(lines(), 2);
	assert_non_null(strstr(complained, "discarded 7 events"));
	assert_non_null(strstr(complained, "discarded 2 events"));
}

static void test_discarded_first(void **state)
{
	(void)state;
	put_plain(add_plain(), 100, 1);
	write_all(5);
	run_babeltrace();
	assert_non_null(strstr(complained, "discarded 5 events"));
}

/* Several packets, and kinds that are added between them. */
static void test_many(void **state)
{
	struct stat st;
	char path[128];

	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		static int event;

		if (i % 5000 == 0)
			event = add_plain();
		put_plain(event, 1000 + i, i);
		if (i % 100 == 0)
			assert_int_equal(ctf_flush(trace, 1000 + i, 0, false), 0);
	}
	write_all(0);
	snprintf(path, sizeof(path), "%s/events", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 10 * 65536);
	reads_well();
	assert_int_equal(lines(), 20000);
	has("{ n = 0 }");
	has("{ n = 19999 }");
}

static void test_empty(void **state)
{
	(void)state;
	write_all(0);
	reads_well();
	assert_string_equal(said, "");
}

/* Whoever is killed leaves what was written. */
static void test_killed(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		int event = add_plain();

		for (uint64_t i = 0; i < 100; i++)
			put_plain(event, i, i);
		ctf_flush(trace, 80, 0, true);
		add_plain();
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	reads_well();
	assert_int_equal(lines(), 81);
}

/* No room: it is told, and what there is can be read. */
static void test_full(void **state)
{
	struct rlimit old, few;
	int event = add_plain(), r;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		put_plain(event, i, i);
	write_all(0);
	for (uint64_t i = 100; i < 4000; i++)
		put_plain(event, i, i);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	few = (struct rlimit){.rlim_cur = 20000, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	r = ctf_flush(trace, UINT64_MAX, 0, true);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(ctf_flush(trace, UINT64_MAX, 0, true), -EFBIG);
	reads_well();
	assert_int_equal(lines(), 100);
}

static void test_directories(void **state)
{
	struct error e = {0};
	struct ctf *other;
	char path[128];

	(void)state;
	assert_int_equal(ctf_open(dir, 0, &other, &e), 0); /* nothing was written so far */
	ctf_free(other);
	write_all(0);
	assert_int_equal(ctf_open(dir, 0, &other, &e), -ENOTEMPTY);
	assert_non_null(strstr(e.text, "is not empty"));
	snprintf(path, sizeof(path), "%s/events", dir);
	assert_int_equal(ctf_open(path, 0, &other, &e), -ENOTDIR);
	assert_int_equal(ctf_open("/nowhere/at/all", 0, &other, &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot be made"));
	snprintf(path, sizeof(path), "%s/empty", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(ctf_open(path, -1, &other, &e), 0);
	ctf_free(other);
}

/* Who owns the directory may put things there after it was looked at. */
static void test_links(void **state)
{
	char path[128], victim[64];
	struct stat st;

	(void)state;
	snprintf(victim, sizeof(victim), "%s/victim", top);
	close(open(victim, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	snprintf(path, sizeof(path), "%s/.metadata", dir);
	assert_int_equal(symlink(victim, path), 0);
	put_plain(add_plain(), 1, 1);
	write_all(0);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	reads_well();
	assert_int_equal(lines(), 1);
}

static int make_top(void **state)
{
	(void)state;
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_types, begin, end),
		cmocka_unit_test_setup_teardown(test_hostile_names, begin, end),
		cmocka_unit_test_setup_teardown(test_order, begin, end),
		cmocka_unit_test_setup_teardown(test_late, begin, end),
		cmocka_unit_test_setup_teardown(test_discarded, begin, end),
		cmocka_unit_test_setup_teardown(test_discarded_first, begin, end),
		cmocka_unit_test_setup_teardown(test_many, begin, end),
		cmocka_unit_test_setup_teardown(test_empty, begin, end),
		cmocka_unit_test_setup_teardown(test_killed, begin, end),
		cmocka_unit_test_setup_teardown(test_full, begin, end),
		cmocka_unit_test_setup_teardown(test_directories, begin, end),
		cmocka_unit_test_setup_teardown(test_links, begin, end),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
