// SPDX-License-Identifier: GPL-2.0-or-later
/* The gate's result as text, and what a program's files say of splice(2). */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "splice/behaviour.h"
#include "splice/facts.h"
#include "splice/gate.h"
#include "splice/gate_tries.h"

static const struct gate_kernel kernel = {.kernel = "6.99.1 #1 SMP", .boot = "1-2-3"};

static const struct behaviour *named(const char *name)
{
	for (size_t i = 0; i < gate_behaviours(); i++)
		if (streq(gate_behaviour(i)->name, name))
			return gate_behaviour(i);
	fail_msg("no behaviour is called %s", name);
	return NULL;
}

static struct gate_line line(const char *name)
{
	return (struct gate_line){.behaviour = named(name),
				  .mode = GATE_REDIRECTED,
				  .nonblock = true,
				  .ipv6 = true,
				  .tcp = "n=1",
				  .seen = ""};
}

static char *good_text(void)
{
	struct gate_result r = {.lines = {line("FIONREAD"), line("MSG_PEEK")}, .n = 2};
	char *text = NULL;

	assert_int_equal(gate_format(&r, &kernel, &text), 0);
	return text;
}

static void names_are_their_own(void **state)
{
	(void)state;
	assert_in_range(gate_behaviours(), 30, 100);
	for (size_t i = 0; i < gate_behaviours(); i++)
		assert_ptr_equal(named(gate_behaviour(i)->name), gate_behaviour(i));
	assert_null(gate_behaviour(gate_behaviours()));
}

static void a_result_makes_the_round_trip(void **state)
{
	autofree char *text = good_text(), *again = NULL;
	struct gate_result r;

	(void)state;
	assert_int_equal(gate_parse(text, &kernel, &r), 0);
	assert_int_equal(r.n, 2);
	assert_string_equal(r.lines[0].behaviour->name, "FIONREAD");
	assert_int_equal(r.lines[0].mode, GATE_REDIRECTED);
	assert_true(r.lines[0].nonblock && r.lines[0].ipv6);
	assert_string_equal(r.lines[0].tcp, "n=1");
	assert_int_equal(gate_format(&r, &kernel, &again), 0);
	assert_string_equal(text, again);
}

/* Replaces the first `what` in the text, and parses it. */
static int parsed_with(const char *what, const char *by)
{
	autofree char *text = good_text(), *changed = NULL;
	char *at = strstr(text, what);
	struct gate_result r;

	assert_non_null(at);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what)) >
		    0);
	return gate_parse(changed, &kernel, &r);
}

static void what_is_not_understood_is_refused(void **state)
{
	static const struct {
		const char *what, *by;
		int is;
	} cases[] = {
		{"gate 2", "gate 2", 0},
		{"gate 2", "gate 1", -EINVAL},
		{"kernel ", "colonel ", -EINVAL},
		{"6.99.1", "6.99.2", -ESTALE},
		{"1-2-3", "1-2-4", -ESTALE},
		{"tried ", "tried 1", -ESTALE}, /* of another version of ax */
		{"FIONREAD", "FIONWRITE", -EINVAL},
		{"redirected", "member", 0},
		{"redirected", "TCP", -EINVAL},
		{"non-blocking", "blocking", 0},
		{"non-blocking", "both", -EINVAL},
		{"IPv6", "IPv4", 0},
		{"IPv6", "IPX", -EINVAL},
		{"\tn=1", "", -EINVAL},
		{"\tn=1", "\tn=1\tn=1", -EINVAL},
		{"n=1", "n=\033[1m", -EINVAL},
		{"end 2\n", "end 1\n", -EINVAL},
		{"end 2\n", "end 2", -EINVAL},
		{"end 2\n", "", -EINVAL},
		{"end 2\n", "end 2\nmore\n", -EINVAL},
		{"end 2\n", "end 02\n", -EINVAL},
	};
	struct gate_result r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(parsed_with(cases[i].what, cases[i].by), cases[i].is);
	assert_int_equal(gate_parse("", &kernel, &r), -EINVAL);
}

static void a_kernel_is_judged_by_its_lines(void **state)
{
	struct gate_result r = {0};
	struct gate_verdict v;

	(void)state;
	gate_judge(&r, &v);
	assert_true(v.state == GATE_KNOWN && v.same && v.safe && v.fionread);
	r.lines[r.n++] = line("two readers");
	gate_judge(&r, &v);
	assert_true(!v.same && v.safe && v.fionread);
	r.lines[r.n++] = line("FIONREAD");
	gate_judge(&r, &v);
	assert_true(!v.same && v.safe && !v.fionread);
	r.lines[r.n++] = line("a reader that does not read");
	gate_judge(&r, &v);
	assert_false(v.safe);
}

/* --- what differs is tried again --- */

/* What the parts of a time show of a behaviour; all others show "n=1" in each. */
struct shown {
	const char *name;
	unsigned nth;
	enum gate_part part;
	const char *words;
};
struct script {
	const struct shown *shown; /* ends without a name */
	unsigned parts;		   /* that were run */
	unsigned runs;		   /* of variants */
	unsigned nth;		   /* the last time */
	int fail_at;		   /* after so many parts; 0: never */
	bool slow;
};

static const char *words_of(const struct script *s, const char *name, enum gate_part part,
			    unsigned nth)
{
	for (const struct shown *one = s->shown; one && one->name; one++)
		if (streq(one->name, name) && one->part == part && one->nth == nth)
			return one->words;
	return "n=1";
}

static int run_script(void *arg, struct gate_tries *t, enum gate_part part, unsigned nth)
{
	struct script *s = arg;

	if (s->fail_at && (int)s->parts == s->fail_at)
		return -EIO;
	s->parts++;
	s->nth = nth;
	t->slow |= s->slow;
	for (size_t i = 0; i < t->n; i++) {
		if (!gate_tried_wanted(&t->of[i], part))
			continue;
		s->runs++;
		snprintf(t->of[i].words[part], GATE_WORDS_MAX, "%s",
			 words_of(s, t->of[i].behaviour->name, part, nth));
	}
	return 0;
}

static struct gate_tries tries;
static struct gate_result result;

static void judge(struct script *s)
{
	gate_tries_all(true, &tries);
	assert_int_equal(gate_tries_judge(&tries, run_script, s), 0);
	gate_tries_result(&tries, &result);
}

static void what_never_differs_is_tried_once(void **state)
{
	struct script s = {0};

	(void)state;
	judge(&s);
	assert_int_equal(result.n, 0);
	assert_int_equal(s.parts, GATE_PARTS - 1);
	assert_int_equal(s.runs, (GATE_PARTS - 1) * tries.n);
	s = (struct script){.slow = true};
	judge(&s);
	assert_int_equal(result.n, 0);
	assert_int_equal(s.parts, GATE_PARTS);
	assert_int_equal(s.runs, GATE_PARTS * tries.n);
}

static void what_differs_each_time_is_named(void **state)
{
	static const struct shown shown[] = {
		{"two readers", 0, PART_MEMBER, "n=EAGAIN"},
		{"two readers", 1, PART_MEMBER, "hangs"},
		{"two readers", 2, PART_MEMBER, "n=EAGAIN"},
		{NULL, 0, 0, NULL},
	};
	struct script s = {.shown = shown};

	(void)state;
	judge(&s);
	assert_int_equal(result.n, 1);
	assert_int_equal(s.parts, GATE_PARTS - 1 + 2);
	s = (struct script){.shown = shown, .slow = true};
	judge(&s);
	assert_int_equal(result.n, 1);
	assert_string_equal(result.lines[0].behaviour->name, "two readers");
	assert_int_equal(result.lines[0].mode, GATE_MEMBER);
	assert_string_equal(result.lines[0].tcp, "n=1");
	assert_string_equal(result.lines[0].seen, "n=EAGAIN");
	/* again: that one alone, by TCP, as a member, and by TCP */
	assert_int_equal(s.nth, GATE_TRIES_SLOW - 1);
	assert_int_equal(s.parts, GATE_PARTS + 2 * 3);
	assert_int_equal(s.runs, GATE_PARTS * tries.n + 2 * 3);
}

/* Whichever time it is, and whoever had to wait for a processor: splicing or TCP. */
static void what_differs_but_once_or_twice_is_the_machine(void **state)
{
	(void)state;
	for (unsigned same = 0; same < GATE_TRIES_SLOW; same++)
		for (enum gate_part part = 0; part < GATE_PARTS; part++) {
			struct shown shown[GATE_TRIES_SLOW + 1] = {0};
			struct script s = {.shown = shown, .slow = true};
			size_t n = 0;

			for (unsigned nth = 0; nth < GATE_TRIES_SLOW; nth++)
				if (nth != same)
					shown[n++] = (struct shown){"requests and answers", nth,
								    part, "good=399"};
			judge(&s);
			assert_int_equal(result.n, 0);
			assert_int_equal(s.nth, same);
		}
}

/* By TCP it looked, once, as it does when spliced. */
static void what_tcp_shows_has_to_be_the_same_twice(void **state)
{
	static const struct shown shown[] = {
		{"MSG_MORE", 0, PART_TCP, "held=0"},
		{"MSG_MORE", 0, PART_REDIRECTED, "held=0"},
		{"MSG_MORE", 1, PART_REDIRECTED, "held=0"},
		{"MSG_MORE", 2, PART_REDIRECTED, "held=0"},
		{"MSG_MORE", 2, PART_TCP, "held=0"},
		{NULL, 0, 0, NULL},
	};
	struct script s = {.shown = shown, .slow = true};

	(void)state;
	judge(&s);
	assert_true(result.n >= 1);
	for (size_t i = 0; i < result.n; i++) {
		assert_string_equal(result.lines[i].behaviour->name, "MSG_MORE");
		assert_int_equal(result.lines[i].mode, GATE_REDIRECTED);
		assert_string_equal(result.lines[i].tcp, "n=1");
		assert_string_equal(result.lines[i].seen, "held=0");
	}
}

static void what_hangs_by_tcp_each_time_has_shown_nothing(void **state)
{
	struct shown shown[GATE_TRIES_SLOW * GATE_PARTS + 1] = {0};
	struct script s = {.shown = shown, .slow = true};

	(void)state;
	for (unsigned i = 0; i < GATE_TRIES_SLOW * GATE_PARTS; i++)
		shown[i] = (struct shown){"MSG_WAITALL", i / GATE_PARTS, i % GATE_PARTS, "hangs"};
	judge(&s);
	assert_int_equal(result.n, 2); /* as a member, and redirected */
	shown[2 * GATE_PARTS] = (struct shown){NULL, 0, 0, NULL};
	judge(&s);
	assert_int_equal(result.n, 0);
}

static void a_part_that_fails_ends_it(void **state)
{
	(void)state;
	for (int at = 1; at < GATE_PARTS; at++) {
		struct script s = {.fail_at = at, .slow = true};

		gate_tries_all(true, &tries);
		assert_int_equal(gate_tries_judge(&tries, run_script, &s), -EIO);
		assert_int_equal(s.parts, at);
	}
}

static void both_of_what_is_needed_is_tried(void **state)
{
	unsigned needed[2] = {0};

	(void)state;
	gate_tries_all(true, &tries);
	assert_in_range(tries.n, gate_behaviours(), GATE_TRIED_MAX - 1);
	for (size_t i = 0; i < tries.n; i++)
		if (tries.of[i].behaviour->flags & (NEEDED | IS_FIONREAD))
			needed[tries.of[i].family == AF_INET6]++;
	assert_true(needed[0] > 0);
	assert_int_equal(needed[0], needed[1]);
	gate_tries_all(false, &tries);
	for (size_t i = 0; i < tries.n; i++)
		assert_int_equal(tries.of[i].family, AF_INET);
}

static void a_machine_that_is_slow_has_more_time_each_time(void **state)
{
	(void)state;
	for (unsigned nth = 0; nth < GATE_TRIES_SLOW; nth++) {
		assert_int_equal(gate_slowness(0, nth), 1);
		assert_int_equal(gate_slowness(120, nth), 1);
		for (int ms = 1000; ms <= 10000; ms += 1000) {
			assert_int_equal(gate_slowness(ms, 0), 1);
			assert_in_range(gate_slowness(ms, nth), 1, 16);
			if (nth)
				assert_true(gate_slowness(ms, nth) > gate_slowness(ms, nth - 1));
		}
	}
}

static void this_kernel_has_a_name(void **state)
{
	struct gate_kernel k;

	(void)state;
	assert_int_equal(gate_kernel_read(&k), 0);
	assert_int_equal(strlen(k.boot), 36);
	assert_true(strlen(k.kernel) > 3 && !strchr(k.kernel, '\n'));
}

/* --- programs --- */

/* What a file says, or -1 when it is not on this machine. */
static int fact_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : (int)facts_of_fd(fd, true);
}

static void real_programs_are_known(void **state)
{
	static const struct {
		const char *path;
		enum splice_fact fact;
	} programs[] = {
		{"/bin/true", FACT_NONE},
		{"/usr/sbin/nginx", FACT_NONE},
		{"/usr/bin/redis-server", FACT_NONE},
		{"/usr/bin/redis-cli", FACT_NONE},
		{"/usr/bin/redis-benchmark", FACT_NONE},
		{"/usr/bin/node", FACT_NONE},
		{"/usr/bin/java", FACT_NONE},
		{"/usr/bin/curl", FACT_NONE},
		{"/usr/bin/python3", FACT_USES},
		{"/usr/sbin/haproxy", FACT_USES},
		{"/usr/lib/go/bin/go",
		 FACT_USES}, /* net/http and os/exec hold internal/poll.Splice */
		{"/sbin/ldconfig.real", FACT_UNKNOWN},
		{"/sbin/ldconfig", FACT_UNKNOWN}, /* static */
		{"/etc/passwd", FACT_UNKNOWN},
	};
	int found = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		int fact = fact_of(programs[i].path);

		if (fact >= 0 && fact != (int)programs[i].fact)
			fail_msg("%s: %d", programs[i].path, fact);
		found += fact >= 0;
	}
	assert_in_range(found, 4, ARRAY_SIZE(programs));
}

/* Cut off anywhere, a file says nothing that it did not say whole, and nobody crashes. */
static void files_may_be_cut_off(void **state)
{
	char buf[200000];
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, sizeof(buf));

	(void)state;
	close(fd);
	assert_true(n > 1000);
	for (ssize_t len = 0; len < n; len += 997) {
		int part = memfd_create("part", MFD_CLOEXEC);

		assert_int_equal(write(part, buf, (size_t)len), len);
		assert_int_not_equal(facts_of_fd(part, true), FACT_USES);
	}
}

static void processes_are_known_by_what_they_have_mapped(void **state)
{
	struct facts *f = NULL;
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		execl("/bin/sleep", "sleep", "30", NULL);
		_exit(1);
	}
	assert_int_equal(facts_open(&f), 0);
	/* nothing is read where it is not known what is mounted */
	usleep(100000);
	assert_int_equal(facts_of_process(f, pid), FACT_UNKNOWN);
	facts_refresh(f);
	if (geteuid() == 0)
		assert_int_equal(facts_of_process(f, pid), FACT_NONE);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(facts_of_process(f, pid), FACT_NONE); /* gone */
	facts_close(f);
}

/* A directory that looks as a cgroup with this process and another one in it. */
static uint64_t print_of(const char *dir, pid_t other)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%d\n", getpid());
	if (other)
		fprintf(f, "%d\n", other);
	assert_int_equal(fclose(f), 0);
	return facts_print(dir);
}

static void what_programs_become_is_seen(void **state)
{
	char dir[] = "/tmp/ax-facts.XXXXXX", path[64];
	uint64_t alone, with_library;
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	void *library;

	(void)state;
	assert_non_null(mkdtemp(dir));
	alone = print_of(dir, 0);
	assert_true(alone == print_of(dir, 0));
	assert_true(alone != print_of(dir, getppid()));
	library = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(library != MAP_FAILED);
	with_library = print_of(dir, 0);
	assert_true(with_library != alone);
	munmap(library, 4096);
	assert_true(alone == print_of(dir, 0));
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	unlink(path);
	rmdir(dir);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_their_own),
		cmocka_unit_test(a_result_makes_the_round_trip),
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(a_kernel_is_judged_by_its_lines),
		cmocka_unit_test(this_kernel_has_a_name),
		cmocka_unit_test(what_never_differs_is_tried_once),
		cmocka_unit_test(what_differs_each_time_is_named),
		cmocka_unit_test(what_differs_but_once_or_twice_is_the_machine),
		cmocka_unit_test(what_tcp_shows_has_to_be_the_same_twice),
		cmocka_unit_test(what_hangs_by_tcp_each_time_has_shown_nothing),
		cmocka_unit_test(a_part_that_fails_ends_it),
		cmocka_unit_test(both_of_what_is_needed_is_tried),
		cmocka_unit_test(a_machine_that_is_slow_has_more_time_each_time),
		cmocka_unit_test(real_programs_are_known),
		cmocka_unit_test(files_may_be_cut_off),
		cmocka_unit_test(processes_are_known_by_what_they_have_mapped),
		cmocka_unit_test(what_programs_become_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
