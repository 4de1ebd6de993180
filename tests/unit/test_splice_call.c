// SPDX-License-Identifier: GPL-2.0-or-later
/* splice() from a TCP connection to a pipe, as it is done for apps with splice-emulation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "launch/emulate.h"

#define PIPE_SIZE 65536

struct test {
	struct mover *mover;
	int peer;
	struct splice_call call;
	int pipe_out;
};

static void connect_pair(int ends[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);

	assert_int_equal(bind(listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&a, len), 0);
	ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(ends[1] >= 0);
	close(listener);
}

static struct mover *mover; /* one for all */

static void begin(struct test *t, int pipe_flags)
{
	int ends[2], p[2];

	connect_pair(ends);
	assert_int_equal(pipe2(p, O_CLOEXEC | pipe_flags), 0);
	*t = (struct test){.mover = mover,
			   .peer = ends[0],
			   .call = {.in = ends[1], .out = p[1], .len = 1 << 20},
			   .pipe_out = p[0]};
}

static void end(struct test *t)
{
	close(t->peer);
	close(t->call.in);
	close(t->call.out);
	if (t->pipe_out >= 0)
		close(t->pipe_out);
}

static char byte_at(size_t i)
{
	return (char)(i * 7 + i / 251);
}

/* n bytes of a pattern from `from`, and waits until they are there. */
static void send_bytes(struct test *t, size_t n, size_t from)
{
	char buf[PIPE_SIZE * 2];
	int there = 0, before = 0;

	assert_int_equal(ioctl(t->call.in, FIONREAD, &before), 0);
	for (size_t i = 0; i < n; i++)
		buf[i] = byte_at(from + i);
	assert_int_equal(send(t->peer, buf, n, 0), n);
	while (there < before + (int)n)
		assert_int_equal(ioctl(t->call.in, FIONREAD, &there), 0);
}

static void expect(struct test *t, enum splice_answer what, ssize_t result)
{
	ssize_t r = 12345;

	assert_int_equal(splice_call_move(&t->call, t->mover, &r), what);
	if (what != SPLICE_KERNEL)
		assert_int_equal(r, result);
}

static void expect_in_pipe(struct test *t, size_t n, size_t from)
{
	char buf[PIPE_SIZE];

	assert_int_equal(read(t->pipe_out, buf, sizeof(buf)), n);
	for (size_t i = 0; i < n; i++)
		if (buf[i] != byte_at(from + i))
			fail_msg("byte %zu is wrong", from + i);
}

static void what_is_there_is_moved_once(void **state)
{
	struct test t;

	(void)state;
	begin(&t, O_NONBLOCK);
	expect(&t, SPLICE_DONE, -EAGAIN);
	send_bytes(&t, 100, 0);
	t.call.len = 30;
	expect(&t, SPLICE_DONE, 30);
	t.call.len = 4096;
	expect(&t, SPLICE_DONE, 70);
	expect_in_pipe(&t, 100, 0);
	expect(&t, SPLICE_DONE, -EAGAIN);
	close(t.peer);
	while (recv(t.call.in, &(char){0}, 1, MSG_PEEK) < 0)
		;
	expect(&t, SPLICE_DONE, 0);
	end(&t);
}

static void what_has_no_room_stays(void **state)
{
	struct test t;

	(void)state;
	begin(&t, O_NONBLOCK);
	send_bytes(&t, PIPE_SIZE + 1000, 0);
	expect(&t, SPLICE_DONE, PIPE_SIZE);
	expect(&t, SPLICE_DONE, -EAGAIN);
	expect_in_pipe(&t, PIPE_SIZE, 0);
	expect(&t, SPLICE_DONE, 1000);
	expect_in_pipe(&t, 1000, PIPE_SIZE);
	end(&t);
}

static void a_pipe_may_be_waited_for(void **state)
{
	struct test t;

	(void)state;
	begin(&t, 0);
	send_bytes(&t, PIPE_SIZE + 1000, 0);
	expect(&t, SPLICE_DONE, PIPE_SIZE);
	expect(&t, SPLICE_WHEN_ROOM, -EAGAIN);
	fcntl(t.call.in, F_SETFL, 0);
	expect(&t, SPLICE_WHEN_ROOM, -EINTR);
	t.call.flags = SPLICE_F_NONBLOCK;
	expect(&t, SPLICE_DONE, -EAGAIN);
	assert_int_equal(fcntl(t.call.out, F_GETFL) & O_NONBLOCK, 0);
	end(&t);
}

static void the_kernel_waits_and_signals(void **state)
{
	struct test t;

	(void)state;
	begin(&t, O_NONBLOCK);
	fcntl(t.call.in, F_SETFL, 0);
	expect(&t, SPLICE_KERNEL, 0);
	send_bytes(&t, 10, 0);
	close(t.pipe_out);
	t.pipe_out = -1;
	expect(&t, SPLICE_KERNEL, 0); /* SIGPIPE */
	end(&t);
}

/* One that ends with this one. */
static pid_t start(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* A process of its own does the call, or goes on with it, and is killed when it has made, or is
 * about to make, so many system calls: a stop each. False: it ended before. */
static bool killed_after(struct test *t, unsigned stops, bool resume)
{
	pid_t pid = start();
	int status;

	if (pid == 0) {
		ssize_t r;

		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		if (!resume || !splice_call_resume(&t->call, t->mover, &r))
			splice_call_move(&t->call, t->mover, &r);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; i < stops && WIFSTOPPED(status); i++) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (!WIFSTOPPED(status))
		return false;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return true;
}

/* What is in the app's pipe and what is left in the connection is what was sent, whoever goes on.
 */
static void expect_whole(struct test *t, size_t n, size_t sent)
{
	int left;

	assert_int_equal(ioctl(t->call.in, FIONREAD, &left), 0);
	assert_int_equal(left, sent - n);
	expect_in_pipe(t, n, 0);
	t->call.len = sent;
	expect(t, SPLICE_DONE, (ssize_t)(sent - n));
	expect_in_pipe(t, sent - n, n);
}

static bool whole_after(unsigned stops, unsigned again, size_t len)
{
	struct test t;
	ssize_t n = 0;
	bool killed;

	begin(&t, O_NONBLOCK);
	send_bytes(&t, 5000, 0);
	t.call.len = len;
	splice_call_begin(t.mover);
	killed = killed_after(&t, stops, false);
	if (killed && again)
		killed_after(&t, again, true);
	if (!splice_call_resume(&t.call, t.mover, &n))
		assert_int_equal(splice_call_move(&t.call, t.mover, &n), SPLICE_DONE);
	assert_int_equal(n, len);
	expect_whole(&t, len, 5000);
	end(&t);
	return killed;
}

/* At each of its system calls, before and after: none of them is lost, and none done twice. */
static void who_is_killed_is_followed(void **state)
{
	unsigned stops = 0;

	(void)state;
	while (whole_after(stops, 0, 3000))
		stops++;
	assert_true(stops > 10);
	for (unsigned i = 0; i < stops; i += 3)
		for (unsigned k = 1; k < stops; k += 3)
			whole_after(i, k, 3000);
}

static bool right_after(unsigned stops)
{
	struct test gone, t;
	bool killed;

	begin(&gone, O_NONBLOCK);
	send_bytes(&gone, 5000, 1);
	splice_call_begin(gone.mover);
	killed = killed_after(&gone, stops, false);
	end(&gone);
	splice_call_forget(mover);
	begin(&t, O_NONBLOCK);
	send_bytes(&t, 100, 0);
	expect(&t, SPLICE_DONE, 100);
	expect_in_pipe(&t, 100, 0);
	end(&t);
	return killed;
}

/* Who is killed, and the one whose call it was, too: nothing of that is in another one's pipe. */
static void what_nobody_asks_about_goes_nowhere(void **state)
{
	unsigned stops = 0;

	(void)state;
	while (right_after(stops))
		stops++;
	assert_true(stops > 10);
}

static void fill_for_ever(int fd)
{
	static char buf[100000];
	size_t at = 0, have = 0;
	ssize_t n;

	for (;; at += (size_t)n, have -= (size_t)n) {
		if (!have)
			for (have = 0; have < sizeof(buf); have++)
				buf[have] = byte_at(at + have);
		n = send(fd, buf + sizeof(buf) - have, have, MSG_NOSIGNAL);
		if (n <= 0)
			_exit(0);
	}
}

/* Reads what came, and looks at each byte. */
static void check_pipe(struct test *t, size_t *at)
{
	struct pollfd p = {.fd = t->pipe_out, .events = POLLIN};
	static char buf[PIPE_SIZE];
	ssize_t n = poll(&p, 1, 10) > 0 ? read(t->pipe_out, buf, sizeof(buf)) : 0;

	for (ssize_t i = 0; i < n; i++)
		if (buf[i] != byte_at(*at + (size_t)i))
			fail_msg("byte %zu is wrong", *at + (size_t)i);
	*at += n > 0 ? (size_t)n : 0;
}

static void kill_after_ns(pid_t pid, long ns)
{
	const struct timespec ts = {.tv_nsec = ns};
	int status;

	nanosleep(&ts, NULL);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void mover_loop(struct test *t)
{
	ssize_t r;

	for (;;) {
		if (!splice_call_resume(&t->call, t->mover, &r))
			splice_call_move(&t->call, t->mover, &r);
		splice_call_begin(t->mover);
	}
}

/* A hundred megabytes, of which each is looked at, and a kill at any moment again and again. */
static void killed_at_any_moment(void **state)
{
	const size_t total = 100 << 20;
	size_t at = 0;
	struct test t;
	pid_t filler, pid;
	unsigned kills = 0;

	(void)state;
	begin(&t, O_NONBLOCK);
	splice_call_begin(t.mover);
	filler = start();
	if (filler == 0)
		fill_for_ever(t.peer);
	for (; at < total; kills++) {
		pid = start();
		if (pid == 0)
			mover_loop(&t);
		for (size_t until = at + (kills % 16) * 65536; at < until;)
			check_pipe(&t, &at);
		kill_after_ns(pid, (long)(kills * 7919 % 400) * 1000);
		check_pipe(&t, &at);
	}
	kill(filler, SIGKILL);
	waitpid(filler, NULL, 0);
	assert_true(kills > 100);
	end(&t);
}

static bool is_loopback(void *arg, const struct ax_addr *remote)
{
	struct ax_addr loopback;

	*(unsigned *)arg += 1;
	return addr_parse("127.0.0.1", &loopback) == 0 && addr_eq(&loopback, remote);
}

static bool is_nobody(void *arg, const struct ax_addr *remote)
{
	(void)remote;
	*(unsigned *)arg += 1;
	return false;
}

static void others_are_the_kernels(void **state)
{
	unsigned asked = 0;
	struct launch_options o = {.may_be_spliced = is_loopback, .may_arg = &asked};
	struct splice_call c;
	struct test t;

	(void)state;
	begin(&t, 0);
	c = t.call;
	assert_true(splice_call_concerns(&c, &o));
	c.in = t.pipe_out;
	assert_false(splice_call_concerns(&c, &o)); /* a pipe */
	c = (struct splice_call){.in = t.call.in, .out = t.peer};
	assert_false(splice_call_concerns(&c, &o));
	c.in = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	c.out = t.call.out;
	assert_false(splice_call_concerns(&c, &o));
	close(c.in);
	assert_int_equal(asked, 1);
	o.may_be_spliced = is_nobody;
	assert_false(splice_call_concerns(&t.call, &o));
	o.may_be_spliced = NULL;
	assert_true(splice_call_concerns(&t.call, &o));
	end(&t);
}

int main(void)
{
	int ends[2];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_moved_once),
		cmocka_unit_test(what_has_no_room_stays),
		cmocka_unit_test(a_pipe_may_be_waited_for),
		cmocka_unit_test(the_kernel_waits_and_signals),
		cmocka_unit_test(who_is_killed_is_followed),
		cmocka_unit_test(what_nobody_asks_about_goes_nowhere),
		cmocka_unit_test(killed_at_any_moment),
		cmocka_unit_test(others_are_the_kernels),
	};

	if (mover_open(&mover, ends))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
