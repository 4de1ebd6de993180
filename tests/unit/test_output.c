// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "launch/output.h"

#define MAX (256u << 10) /* of both files */

struct place {
	char dir[32], log[64], old[64], lock[64];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/ax-output.XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->log, sizeof(p->log), "%s/log", p->dir);
	snprintf(p->old, sizeof(p->old), "%s/log.1", p->dir);
	snprintf(p->lock, sizeof(p->lock), "%s/.lock", p->dir);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	unlink(p->log);
	unlink(p->old);
	unlink(p->lock);
	rmdir(p->dir);
	free(p);
	return 0;
}

static long long size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -1 : st.st_size;
}

static struct output *open_one(const struct place *p, int *writer)
{
	struct output *o = NULL;
	struct error e = {0};

	if (output_open(p->log, MAX, &o, writer, &e) || output_start(o, &e))
		fail_msg("%s", e.text);
	return o;
}

static void say(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		assert_true(n > 0);
		text += n;
		len -= (size_t)n;
	}
}

/* Says "WHO:N" for all N below n, in lines. */
static void count(int fd, char who, unsigned n)
{
	char line[32];

	for (unsigned i = 0; i < n; i++) {
		int len = snprintf(line, sizeof(line), "%c:%u\n", who, i);

		say(fd, line, (size_t)len);
	}
}

/* Reads on from *next: each line of `who` is the one after the last. Returns how many there were.
 */
static unsigned follow(const char *path, char who, unsigned *next)
{
	FILE *f = fopen(path, "r");
	char line[64], is;
	unsigned number, n = 0;

	assert_non_null(f);
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%c:%u\n", &is, &number) != 2)
			fail_msg("%s: half a line: %s", path, line);
		if (is != who)
			continue;
		if (n + *next && number != *next)
			fail_msg("%s: %u behind %u", path, number, *next);
		*next = number + 1;
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

static void a_log_has_a_bound(void **state)
{
	struct place *p = *state;
	int writer;
	struct output *o = open_one(p, &writer);
	unsigned next = 0;

	count(writer, 'a', 200000); /* some 2 MB */
	output_catch_up(o);
	assert_true(size_of(p->log) >= 0 && size_of(p->old) > 0);
	assert_true(size_of(p->log) + size_of(p->old) <= MAX);
	/* no line is cut, and none is missing from one file to the next */
	assert_true(follow(p->old, 'a', &next) > 1000);
	follow(p->log, 'a', &next);
	assert_int_equal(next, 200000);
	close(writer);
	output_finish(o);
}

static void output_without_lines_has_a_bound(void **state)
{
	struct place *p = *state;
	autofree char *text = malloc(3 * MAX);
	int writer;
	struct output *o = open_one(p, &writer);

	assert_non_null(text);
	memset(text, 'x', 3 * MAX);
	say(writer, text, 3 * MAX);
	close(writer);
	output_finish(o);
	assert_true(size_of(p->log) + size_of(p->old) <= MAX);
}

struct talker {
	int writer;
	char who;
};

static void *talk(void *arg)
{
	const struct talker *t = arg;

	count(t->writer, t->who, 20000);
	close(t->writer);
	return NULL;
}

static void apps_of_one_name_share_a_log(void **state)
{
	struct place *p = *state;
	struct talker t[3];
	struct output *o[3];
	pthread_t thread[3];

	for (int i = 0; i < 3; i++) {
		t[i].who = (char)('a' + i);
		o[i] = open_one(p, &t[i].writer);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, talk, &t[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 3; i++)
		output_finish(o[i]);
	/* each may add what it had read when another turned it over */
	assert_true(size_of(p->log) + size_of(p->old) <= MAX + 3 * OUTPUT_CHUNK);
	assert_true(size_of(p->old) > 0);
}

static void a_log_goes_on_where_it_was(void **state)
{
	struct place *p = *state;
	unsigned next = 0;

	for (int i = 0; i < 2; i++) {
		int writer;
		struct output *o = open_one(p, &writer);

		say(writer, i ? "a:1\n" : "a:0\n", 4);
		close(writer);
		output_finish(o);
	}
	assert_int_equal(follow(p->log, 'a', &next), 2);
}

static void a_link_in_place_of_a_log_is_refused(void **state)
{
	struct place *p = *state;
	struct output *o = NULL;
	struct error e = {0};
	int writer;

	assert_int_equal(symlink("/dev/null", p->log), 0);
	assert_int_equal(output_open(p->log, MAX, &o, &writer, &e), -ELOOP);
	assert_non_null(strstr(e.text, p->log));
}

static void the_journal_is_told_the_name(void **state)
{
	struct place *p = *state;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	autoclose int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1, peer = -1;
	struct error e = {0};
	char text[64] = "";

	assert_true(output_journal(p->log, "web", &fd, &e) < 0);
	assert_non_null(strstr(e.text, "agent.logs.to"));
	strcpy(sun.sun_path, p->log);
	assert_int_equal(bind(server, (struct sockaddr *)&sun, sizeof(sun)) | listen(server, 1), 0);
	assert_int_equal(output_journal(p->log, "web", &fd, &e), 0);
	peer = accept(server, NULL, NULL);
	say(fd, "hello\n", 6);
	close_fd(&fd);
	assert_int_equal(recv(peer, text, sizeof(text) - 1, MSG_WAITALL), 21);
	assert_string_equal(text, "web\n\n6\n1\n0\n0\n0\nhello\n");
}

int main(void)
{
#define EACH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		EACH(a_log_has_a_bound),
		EACH(output_without_lines_has_a_bound),
		EACH(apps_of_one_name_share_a_log),
		EACH(a_log_goes_on_where_it_was),
		EACH(a_link_in_place_of_a_log_is_refused),
		EACH(the_journal_is_told_the_name),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
