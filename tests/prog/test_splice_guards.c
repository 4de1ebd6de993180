/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* What sockets of a spliced connection may have set that only TCP gets right: each sends by TCP and
 * counts its reason. By the gate's entry to the programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/net_tstamp.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/address.h"
#include "datapath/splice.h"
#include "machine/cgroup.h"
#include "tests/lib/instance.h"
#include "tests/lib/netns.h"
#include "tests/lib/tcp_pair.h"

#ifndef TCP_INQ
#define TCP_INQ 36
#endif

static struct fixture {
	struct instance inst;
	char cgroup[4096];
	struct splice_gate *gate;
	struct tcp_pair pair;
	struct ax_splice_counted before[AX_SPLICE_COUNTS];
} f;

static void open_pair(struct tcp_pair *p, const char *address)
{
	const struct ax_addr addr = ns_addr(address);
	autoclose int ns = ns_current();

	assert_int_equal(tcp_pair_open(p, ns, &addr, ns, &addr), 0);
}

static int setup(void **state)
{
	struct error e = {0};

	(void)state;
	memset(&f, 0, sizeof(f));
	if (datapath_splice_gate_open(-1, true, &f.gate, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	open_pair(&f.pair, "127.0.0.1");
	return datapath_splice_gate_join(f.gate, f.pair.client, f.pair.server);
}

static int teardown(void **state)
{
	(void)state;
	tcp_pair_close(&f.pair);
	datapath_splice_gate_close(f.gate);
	return 0;
}

static uint64_t counted(unsigned what)
{
	struct ax_splice_counted all[AX_SPLICE_COUNTS];
	uint64_t n;

	assert_int_equal(datapath_splice_gate_counted(f.gate, all), 0);
	n = all[what].messages - f.before[what].messages;
	f.before[what] = all[what];
	return n;
}

static void assert_counted(unsigned what, uint64_t n)
{
	uint64_t got = counted(what);

	if (got != n)
		for (unsigned i = 0; i < AX_SPLICE_COUNTS; i++)
			print_message("# %s: %lu\n", datapath_splice_counter_name(i),
				      (unsigned long)counted(i));
	if (got != n)
		fail_msg("%s: %lu, not %lu", datapath_splice_counter_name(what), (unsigned long)got,
			 (unsigned long)n);
}

/* --- what is set at an end --- */

static void set_option(int fd, int level, int name, int value)
{
	assert_int_equal(setsockopt(fd, level, name, &value, sizeof(value)), 0);
}

static void set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	assert_int_equal(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK), 0);
}

static const struct {
	bool own; /* of the sender, else of the receiver */
	int level, name, on, off;
	unsigned why;
} options[] = {
	{false, SOL_SOCKET, SO_RCVLOWAT, 10, 1, AX_SPLICE_LOWAT},
	{false, SOL_SOCKET, SO_PEEK_OFF, 0, -1, AX_SPLICE_PEEK_OFF},
	{false, SOL_SOCKET, SO_TIMESTAMP, 1, 0, AX_SPLICE_TIMESTAMP},
	{false, SOL_SOCKET, SO_TIMESTAMPNS, 1, 0, AX_SPLICE_TIMESTAMP},
	{false, SOL_SOCKET, SO_TIMESTAMPING,
	 SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, 0, AX_SPLICE_TIMESTAMP},
	{true, SOL_SOCKET, SO_TIMESTAMPING,
	 SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, 0, AX_SPLICE_TIMESTAMP},
	{false, SOL_SOCKET, SO_OOBINLINE, 1, 0, AX_SPLICE_OOBINLINE},
	{false, SOL_TCP, TCP_INQ, 1, 0, AX_SPLICE_INQ},
	{true, SOL_TCP, TCP_CORK, 1, 0, AX_SPLICE_CORK},
	{true, SOL_SOCKET, SO_MAX_PACING_RATE, 100000000, -1, AX_SPLICE_PACED},
	{true, SOL_TCP, TCP_REPAIR, TCP_REPAIR_ON, TCP_REPAIR_OFF, AX_SPLICE_REPAIR},
	{false, SOL_TCP, TCP_REPAIR, TCP_REPAIR_ON, TCP_REPAIR_OFF, AX_SPLICE_REPAIR},
};

static void test_options(void **state)
{
	struct tcp_stream to = {.from = f.pair.client, .to = f.pair.server};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		int fd = options[i].own ? to.from : to.to;
		bool repairing = options[i].name == TCP_REPAIR && options[i].level == SOL_TCP;

		set_option(fd, options[i].level, options[i].name, options[i].on);
		/* what an end in repair is sent does not get there: only the count is looked at */
		if (repairing && options[i].own)
			assert_true(send(to.from, "", 1, MSG_NOSIGNAL) <= 0);
		else
			assert_int_equal(tcp_stream_put(&to, 100, 0), 100);
		assert_counted(options[i].why, 1);
		assert_counted(AX_SPLICE_REDIRECTED, 0);
		set_option(fd, options[i].level, options[i].name, options[i].off);
		assert_int_equal(tcp_stream_get_all(&to), 0);
		if (repairing) /* after one that TCP refused the program is not asked */
			assert_int_equal(tcp_stream_put(&to, 50, 0), 50);
		assert_int_equal(tcp_stream_get_all(&to), 0);
		assert_int_equal(tcp_stream_put(&to, 50, 0), 50);
		assert_int_equal(tcp_stream_get_all(&to), 0);
		assert_counted(AX_SPLICE_REDIRECTED, options[i].own || !repairing ? 1 : 2);
	}
}

static void test_blocking(void **state)
{
	struct tcp_stream to = {.from = f.pair.client, .to = f.pair.server};

	(void)state;
	set_nonblock(to.from, false); /* the sender may wait */
	assert_int_equal(tcp_stream_put(&to, 10, 0), 10);
	assert_counted(AX_SPLICE_REDIRECTED, 1);
	assert_int_equal(tcp_stream_get_all(&to), 0);
	set_nonblock(to.to, false);
	assert_int_equal(tcp_stream_put(&to, 10, 0), 10);
	assert_counted(AX_SPLICE_BLOCKING, 1);
	assert_counted(AX_SPLICE_REDIRECTED, 0);
	assert_int_equal(tcp_stream_get_all(&to), 0);
}

/* --- the call --- */

static void by_more(struct tcp_stream *s)
{
	assert_int_equal(tcp_stream_put(s, 40, MSG_MORE), 40);
}

static void by_zerocopy(struct tcp_stream *s)
{
	set_option(s->from, SOL_SOCKET, SO_ZEROCOPY, 1);
	assert_int_equal(tcp_stream_put(s, 4000, MSG_ZEROCOPY), 4000);
}

static void by_oob(struct tcp_stream *s)
{
	uint8_t c;

	/* the last byte is out of band */
	assert_int_equal(send(s->from, "!", 1, MSG_OOB), 1);
	usleep(1000);
	assert_int_equal(recv(s->to, &c, 1, MSG_OOB), 1);
	assert_int_equal(recv(s->to, &c, 1, 0), -1); /* past it */
}

static void by_sendmsg(struct tcp_stream *s, int flags)
{
	struct iovec v = {.iov_base = (void *)"", .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	assert_int_equal(s->sent, 0);
	s->sent = 1; /* the first byte of the pattern is a zero */
	assert_int_equal(sendmsg(s->from, &m, flags), 1);
}

static void by_sendmsg_more(struct tcp_stream *s)
{
	by_sendmsg(s, MSG_MORE | MSG_NOSIGNAL);
}

static void by_sendmmsg_more(struct tcp_stream *s)
{
	struct iovec v = {.iov_base = (void *)"", .iov_len = 1};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};

	s->sent = 1;
	assert_int_equal(sendmmsg(s->from, &m, 1, MSG_MORE), 1);
}

static void by_sendfile(struct tcp_stream *s)
{
	autoclose int fd = memfd_create("zero", MFD_CLOEXEC);

	assert_int_equal(write(fd, "", 1), 1);
	s->sent = 1;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(sendfile(s->from, fd, NULL, 1), 1);
}

static void by_splice(struct tcp_stream *s)
{
	int p[2];

	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], "", 1), 1);
	s->sent = 1;
	assert_int_equal(splice(p[0], NULL, s->from, NULL, 1, SPLICE_F_MORE), 1);
	close(p[0]);
	close(p[1]);
}

static void by_pwritev2(struct tcp_stream *s)
{
	struct iovec v = {.iov_base = (void *)"", .iov_len = 1};

	s->sent = 1;
	assert_int_equal(pwritev2(s->from, &v, 1, -1, RWF_NOWAIT), 1);
}

static int open_ring(struct io_uring_params *p)
{
	*p = (struct io_uring_params){0};
	return (int)syscall(SYS_io_uring_setup, 4, p);
}

static void *map_ring(int fd, off_t what, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, what);

	assert_true(at != MAP_FAILED);
	return at;
}

static void by_uring(struct tcp_stream *s)
{
	struct io_uring_params p;
	autoclose int fd = open_ring(&p);
	struct io_uring_sqe *sqe;
	uint8_t *sq;

	assert_true(fd >= 0);
	sq = map_ring(fd, IORING_OFF_SQ_RING, p.sq_off.array + p.sq_entries * sizeof(uint32_t));
	sqe = map_ring(fd, IORING_OFF_SQES, p.sq_entries * sizeof(*sqe));
	*sqe = (struct io_uring_sqe){.opcode = IORING_OP_SEND,
				     .fd = s->from,
				     .addr = (uintptr_t) "",
				     .len = 1,
				     .msg_flags = MSG_MORE};
	*(uint32_t *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((uint32_t *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	s->sent = 1;
	assert_int_equal(
		syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, (size_t)0), 1);
}

static const struct {
	void (*send)(struct tcp_stream *s);
	unsigned why;
} calls[] = {
	{by_more, AX_SPLICE_FLAGS},	     {by_zerocopy, AX_SPLICE_FLAGS},
	{by_oob, AX_SPLICE_FLAGS},	     {by_sendmsg_more, AX_SPLICE_FLAGS},
	{by_sendmmsg_more, AX_SPLICE_FLAGS}, {by_sendfile, AX_SPLICE_SYSCALL},
	{by_splice, AX_SPLICE_SYSCALL},	     {by_pwritev2, AX_SPLICE_SYSCALL},
	{by_uring, AX_SPLICE_SYSCALL},
};

/* The ring is the last: a task that has had one is known for it. */
static void test_calls(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct tcp_stream to = {.from = f.pair.client, .to = f.pair.server};

		calls[i].send(&to);
		assert_counted(calls[i].why, 1);
		assert_counted(AX_SPLICE_REDIRECTED, 0);
		set_option(to.from, SOL_TCP, TCP_NODELAY, 1); /* sends what waits for more */
		assert_int_equal(tcp_stream_get_all(&to), 0);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

static void test_plain_calls(void **state)
{
	struct iovec v = {.iov_base = (void *)"", .iov_len = 1};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	char c;

	(void)state;
	assert_int_equal(write(f.pair.client, "", 1), 1);
	assert_int_equal(writev(f.pair.client, &v, 1), 1);
	assert_int_equal(send(f.pair.client, "", 1, 0), 1);
	assert_int_equal(send(f.pair.client, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL), 1);
	assert_int_equal(sendmsg(f.pair.client, &m.msg_hdr, MSG_NOSIGNAL), 1);
	assert_int_equal(sendmmsg(f.pair.client, &m, 1, 0), 1);
	assert_counted(AX_SPLICE_REDIRECTED, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(recv(f.pair.server, &c, 1, 0), 1);
}

/* A ring that has been opened is enough: a request of it may run at the end of any call. */
static void test_task_with_a_ring(void **state)
{
	struct io_uring_params p;
	autoclose int fd = open_ring(&p);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(send(f.pair.client, "", 1, 0), 1);
	assert_counted(AX_SPLICE_SYSCALL, 1);
	assert_counted(AX_SPLICE_REDIRECTED, 0);
}

/* --- a kernel whose sockets are laid out in a way that is not known --- */

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"

/* What messages are looked at by; the names are those of the kernel's types. */
static const char *const looked_at[] = {
	"sk_peek_off",	      "sk_tsflags",	"recvmsg_inq",	  "nonagle",
	"sk_max_pacing_rate", "SOCK_URGINLINE", "SOCK_RCVTSTAMP",
};

/* In this process's mount namespace the kernel's types have no such name any more. */
static void hide_name(const char *name)
{
	char path[] = "/tmp/ax-types.XXXXXX";
	size_t len = strlen(name) + 1;
	autoclose int from = open(KERNEL_TYPES, O_RDONLY | O_CLOEXEC);
	autoclose int to = mkstemp(path);
	size_t size = 0, max = 64 << 20;
	char *types = malloc(max), *at;
	ssize_t n;

	assert_true(types && from >= 0 && to >= 0);
	while ((n = read(from, types + size, max - size)) > 0)
		size += (size_t)n;
	/* (names stand behind each other's ends) */
	for (at = types; (at = memmem(at, size - (size_t)(at - types), name, len)) && at[-1];)
		at++;
	if (at)
		*at = '0';
	else
		fail_msg("no type of the kernel has the name %s", name);
	assert_int_equal(write(to, types, size), size);
	free(types);
	assert_int_equal(mount(path, KERNEL_TYPES, NULL, MS_BIND, NULL), 0);
	unlink(path);
}

static void test_unknown_layout(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(looked_at); i++) {
		struct tcp_stream to = {.from = f.pair.client, .to = f.pair.server};

		teardown(state);
		hide_name(looked_at[i]);
		assert_int_equal(setup(state), 0);
		assert_int_equal(umount2(KERNEL_TYPES, MNT_DETACH), 0);
		to = (struct tcp_stream){.from = f.pair.client, .to = f.pair.server};
		assert_int_equal(tcp_stream_put(&to, 1000, 0), 1000);
		assert_int_equal(tcp_stream_get_all(&to), 0);
		assert_counted(AX_SPLICE_REDIRECTED, 0);
		assert_counted(AX_SPLICE_UNKNOWN, 1);
	}
}

/* --- the gate --- */

static int setup_in_cgroup(void **state)
{
	struct error e = {0};
	autoclose int fd = -1;

	(void)state;
	memset(&f, 0, sizeof(f));
	f.pair.client = f.pair.server = -1;
	if (own_instance(&f.inst, f.cgroup))
		return -1;
	fd = open(f.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return cgroup_move(f.cgroup, getpid()) || datapath_splice_gate_open(fd, true, &f.gate, &e);
}

static int teardown_in_cgroup(void **state)
{
	char *end = strrchr(f.cgroup, '/');

	teardown(state);
	*end = 0;
	if (cgroup_move(f.cgroup, getpid()))
		return -1;
	*end = '/';
	return cgroup_remove(f.cgroup);
}

static void test_joined_when_established(void **state)
{
	static const char *const addresses[] = {"127.0.0.1", "::1", "::ffff:127.0.0.1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct tcp_stream to;

		open_pair(&f.pair, addresses[i]);
		assert_counted(AX_SPLICE_JOINED, 2);
		to = (struct tcp_stream){.from = f.pair.client, .to = f.pair.server};
		assert_int_equal(tcp_stream_put(&to, 100, 0), 100);
		assert_int_equal(tcp_stream_get_all(&to), 0);
		to = (struct tcp_stream){.from = f.pair.server, .to = f.pair.client};
		assert_int_equal(tcp_stream_put(&to, 100, 0), 100);
		assert_int_equal(tcp_stream_get_all(&to), 0);
		assert_counted(AX_SPLICE_REDIRECTED, 2);
		assert_int_equal(datapath_splice_gate_redirect(f.gate, false), 0);
		assert_int_equal(tcp_stream_put(&to, 100, 0), 100);
		assert_counted(AX_SPLICE_OFF, 1);
		assert_int_equal(datapath_splice_gate_redirect(f.gate, true), 0);
		tcp_pair_close(&f.pair);
	}
}

/* A member may still get kTLS: then all goes by TCP. */
static void test_ulp_of_CONFIG_TLS(void **state)
{
	struct tcp_stream to = {.from = f.pair.client, .to = f.pair.server};

	(void)state;
	if (setsockopt(f.pair.server, SOL_TCP, TCP_ULP, "tls", 3) < 0) {
		print_message("# no kTLS (CONFIG_TLS): %s\n", strerror(errno));
		assert_int_equal(errno, ENOENT);
		skip();
	}
	assert_int_equal(tcp_stream_put(&to, 10, 0), 10);
	assert_int_equal(tcp_stream_get_all(&to), 0);
	to = (struct tcp_stream){.from = f.pair.server, .to = f.pair.client};
	assert_int_equal(tcp_stream_put(&to, 10, 0), 10);
	assert_int_equal(tcp_stream_get_all(&to), 0);
	assert_counted(AX_SPLICE_REDIRECTED, 0);
	assert_counted(AX_SPLICE_IS_ULP, 2);
}

/* --- what is said of it --- */

static int count_features(void *arg, const struct feature_report *report)
{
	(*(int *)arg)++;
	return report->on ? 0 : fprintf(stderr, "%s: %s\n", report->name, report->why);
}

static void test_doctor(void **state)
{
	struct error e;
	int n = 0;

	(void)state;
	assert_int_equal(datapath_splice_doctor(count_features, &n), 0);
	assert_int_equal(n, 8);
	assert_int_equal(datapath_splice_supported(&e), 0);
}

static void test_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < AX_SPLICE_COUNTS; i++) {
		assert_true(strlen(datapath_splice_counter_text(i)) > 1);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(datapath_splice_counter_name(i),
						datapath_splice_counter_name(k));
	}
	assert_string_equal(datapath_splice_counter_name(AX_SPLICE_COUNTS), "?");
	assert_string_equal(datapath_splice_counter_text(AX_SPLICE_COUNTS), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blocking, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ulp_of_CONFIG_TLS, setup, teardown),
		cmocka_unit_test(test_doctor),
		cmocka_unit_test(test_words),
		cmocka_unit_test_setup_teardown(test_plain_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_layout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_joined_when_established, setup_in_cgroup,
						teardown_in_cgroup),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_task_with_a_ring, setup, teardown),
	};
	struct nl *nl;

	if (own_namespaces() || nl_open(&nl))
		return 1;
	nl_link_set_up(nl, 1);
	nl_close(nl);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
