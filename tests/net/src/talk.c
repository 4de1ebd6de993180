// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two ends that say random bytes to each other and check each byte by its position, without ever
 * blocking: a byte that is lost, doubled, late or somebody else's is found where it is.
 *
 *  talk server FAMILY ADDR PORT [-E]
 *      Answers what clients ask for until it is ended. Prints "ready" first, a line "end ERROR" for
 *      each connection that did not end as it should.
 *  talk client FAMILY ADDR PORT [OPTIONS]
 *      Each connection asks and is answered, then all of them send and get bytes at the same time:
 *      "warm" is printed before that, "under way" when some have come on each connection, and in
 *      the end "good N ERROR=N ...".
 *      -n CONNECTIONS  -w MS, -k ROUNDS: how long it is asked at least  -W FILE: and until it is
 *      there, for 75 s at most  -s BYTES  -r SEED
 *      -p: with pauses  -m: with MSG_MORE and SO_RCVLOWAT now and then  -l: level-triggered epoll
 *      -e: the server is any that echoes  -q MS: the server does not read for so long before the
 *      bytes; how many were queued is printed  -b BYTES: the server's buffer for receiving then
 *      -E: a read that is shorter than asked for is the last one before the next edge
 *      -i MS: how long there may be nothing to do, instead of 10 s
 *
 * A client that waits longer with nothing to do prints "hang" and ends with 3.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "netutil.h"

#define MAGIC	    0x6b6c6174u
#define CHUNK	    (256u * 1024)
#define PING_MAX    2000u
#define HANG_MS	    10000
#define UNTIL_MS    75000 /* -W */
#define ENDS_MAX    4u
#define OPENING_MAX 200u
#define TURN_MAX    256u /* calls for one connection before the others have their turn */
#define SO_MEMORY   55	 /* SO_MEMINFO, which old headers lack */

enum kind { HELLO = 1, PING, BULK, STALL, BUFFER };

/* Before each run of bytes; what HELLO, STALL and BUFFER mean stands in `len`. */
struct frame {
	uint32_t magic, kind;
	uint64_t len;
};

/* One direction: the bytes at `pos` are words of a generator with this seed. */
struct way {
	uint64_t seed, pos;
	struct frame frame;
	size_t header; /* bytes of the header that were moved */
	uint64_t left; /* bytes of the frame that were not */
	bool active;
};

struct conn {
	int fd;
	struct way in, out;
	uint32_t events;
	uint64_t stalled_until, asked; /* ms; what the client asked for */
	unsigned rounds;
	enum { OPENING, WARM, WAITING, LAST, ENDING } phase;
	bool drained;		     /* -E: nothing is read before the next edge */
	bool answered, queued_known; /* the last part is there; client_queued() was told */
	bool moving;		     /* some of the last part came */
};

static struct options {
	unsigned conns, warm_ms, rounds;
	uint64_t bytes, seed, stall_ms, buffer, idle_ms;
	const char *until;
	bool pauses, mixed, level, echo, client, edges;
} opt = {.conns = 1, .warm_ms = 0, .rounds = 1, .bytes = 0, .idle_ms = HANG_MS};

static int epoll_fd;
static uint64_t dice, begun_ms;
static unsigned open_conns, good, warm_conns, opening, moving_conns;
static struct {
	const char *name;
	unsigned n;
} ends[ENDS_MAX];
static unsigned char buf[CHUNK + 8], want[CHUNK + 8];

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t roll(uint64_t below)
{
	dice += 0x9e3779b97f4a7c15u;
	return mix(dice) % below;
}

/* As many small ones as large ones: 1 to max. */
static size_t some_size(size_t max)
{
	size_t n = (size_t)1 << roll(19);

	n += roll(n);
	return n < max ? n : max;
}

/* What stands in the stream from `pos` on; returns where in `to`, which has 8 bytes more. */
static const unsigned char *stream_at(const struct way *w, unsigned char *to, size_t len)
{
	uint64_t word = w->pos / 8, end = (w->pos + len + 7) / 8;
	unsigned char *p = to;

	for (uint64_t i = word; i < end; i++, p += 8) {
		uint64_t v = mix(w->seed + i * 0x9e3779b97f4a7c15u);

		memcpy(p, &v, 8);
	}
	return to + w->pos % 8;
}

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
}

/* --- the end of a connection --- */

static void conn_ended(struct conn *c, const char *why)
{
	unsigned i = 0;

	if (!why) {
		good++;
	} else if (!opt.client) {
		printf("end %s\n", why);
		fflush(stdout);
	} else {
		while (i < ENDS_MAX - 1 && ends[i].name && strcmp(ends[i].name, why) != 0)
			i++;
		ends[i].name = why;
		ends[i].n++;
	}
	close(c->fd);
	c->fd = -1;
	open_conns--;
}

static void bad(const struct conn *c, const char *what, uint64_t at)
{
	printf("bad %s at byte %llu, round %u\n", what, (unsigned long long)at, c->rounds);
	exit(1);
}

/* --- sending --- */

static void way_start(struct way *w, enum kind kind, uint64_t len)
{
	w->frame = (struct frame){.magic = MAGIC, .kind = kind, .len = len};
	w->header = opt.echo ? sizeof(w->frame) : 0;
	w->left = kind == PING || kind == BULK ? len : 0;
	w->active = true;
}

/* Never for the last bytes, which TCP would keep for a while. */
static int flags_for(const struct conn *c, size_t len)
{
	return MSG_NOSIGNAL | (opt.mixed && len < c->out.left && roll(40) == 0 ? MSG_MORE : 0);
}

/* The header and the first bytes in one call, as programs do it. */
static ssize_t send_some(struct conn *c)
{
	struct way *w = &c->out;
	size_t len = some_size(CHUNK), head = sizeof(w->frame) - w->header;
	struct iovec v[2] = {{.iov_base = (char *)&w->frame + w->header, .iov_len = head}};
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
	ssize_t n;

	if (len > w->left)
		len = w->left;
	v[1].iov_base = (void *)stream_at(w, buf, len);
	v[1].iov_len = len;
	n = head ? sendmsg(c->fd, &msg, MSG_NOSIGNAL)
		 : send(c->fd, v[1].iov_base, len, flags_for(c, len));
	if (n < 0)
		return n;
	if ((size_t)n < head)
		head = (size_t)n;
	w->header += head;
	w->left -= (size_t)n - head;
	w->pos += (size_t)n - head;
	return n;
}

static void client_next(struct conn *c);

/* 1: some went out; 0: it would block, or there is nothing; -1: the connection is over. */
static int conn_write(struct conn *c)
{
	struct way *w = &c->out;

	if (!w->active)
		return 0;
	if (send_some(c) < 0) {
		if (errno == EAGAIN)
			return 0;
		conn_ended(c, errno_name(errno));
		return -1;
	}
	if (w->header == sizeof(w->frame) && !w->left) {
		w->active = false;
		if (opt.client)
			client_next(c);
	}
	return 1;
}

/* --- the client --- */

static void start_last(struct conn *c)
{
	c->phase = LAST;
	c->asked = opt.bytes;
	way_start(&c->out, BULK, opt.bytes);
	if (opt.echo)
		c->in.left = opt.bytes;
}

/* All begin with the last part at once, so that all connections are warm then. */
static void all_warm(struct conn *conns)
{
	printf("warm %llu ms\n", (unsigned long long)(now_ms() - begun_ms));
	fflush(stdout);
	for (unsigned i = 0; i < opt.conns; i++) {
		struct conn *c = &conns[i];

		if (c->fd < 0)
			continue;
		if (opt.bytes == 0) {
			c->phase = ENDING;
			shutdown(c->fd, SHUT_WR);
		} else if (opt.stall_ms) {
			c->phase = LAST;
			way_start(&c->out, STALL, opt.stall_ms);
			c->stalled_until = now_ms() + opt.stall_ms / 2;
		} else {
			start_last(c);
		}
	}
}

static void ping(struct conn *c)
{
	c->asked = 1 + roll(PING_MAX);
	c->rounds++;
	way_start(&c->out, PING, c->asked);
	if (opt.echo)
		c->in.left = c->asked;
}

/* The last part is there, and ours is on its way. */
static void client_finish(struct conn *c)
{
	if (c->phase != LAST || !c->answered || c->out.active)
		return;
	c->phase = ENDING;
	shutdown(c->fd, SHUT_WR);
}

/* What goes out next when a frame has gone out. */
static void client_next(struct conn *c)
{
	if (c->out.frame.kind == HELLO && opt.buffer)
		way_start(&c->out, BUFFER, opt.buffer);
	else if (c->out.frame.kind == HELLO || c->out.frame.kind == BUFFER)
		ping(c);
	else if (c->out.frame.kind == STALL)
		start_last(c);
	else
		client_finish(c);
}

static bool is_warm(const struct conn *c)
{
	uint64_t ms = now_ms() - begun_ms;

	return c->rounds >= opt.rounds && ms >= opt.warm_ms &&
	       (!opt.until || ms > UNTIL_MS || access(opt.until, F_OK) == 0);
}

/* What was asked for is there. */
static void client_answered(struct conn *c)
{
	if (c->phase == LAST) {
		c->answered = true;
		client_finish(c);
	} else if (!is_warm(c)) {
		ping(c);
	} else if (c->phase == WARM) {
		c->phase = WAITING;
		warm_conns++;
	}
}

/* With a reader that does not read: how many bytes did it or the way to it take? */
static void client_queued(struct conn *c)
{
	int unsent = 0;

	c->queued_known = true;
	ioctl(c->fd, SIOCOUTQ, &unsent);
	printf("queued %llu unsent %d\n", (unsigned long long)(opt.bytes - c->out.left), unsent);
	fflush(stdout);
}

/* --- the server --- */

static void server_memory(const struct conn *c)
{
	uint32_t m[9] = {0};
	socklen_t len = sizeof(m);

	getsockopt(c->fd, SOL_SOCKET, SO_MEMORY, m, &len);
	printf("memory %u buffer %u\n", m[0], m[1]);
	fflush(stdout);
}

static void server_header(struct conn *c)
{
	int bytes = (int)c->in.frame.len;

	switch (c->in.frame.kind) {
	case HELLO:
		c->in.seed = c->in.frame.len;
		c->out.seed = ~c->in.frame.len;
		break;
	case BULK: /* both at the same time */
		way_start(&c->out, BULK, c->in.frame.len);
		break;
	case STALL:
		c->stalled_until = now_ms() + c->in.frame.len;
		break;
	case BUFFER:
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
		break;
	default:
		break;
	}
}

/* --- receiving --- */

static void header_done(struct conn *c)
{
	const struct frame *f = &c->in.frame;

	if (f->magic != MAGIC || f->kind < HELLO || f->kind > BUFFER)
		bad(c, "header", c->in.pos);
	c->in.left = f->kind == PING || f->kind == BULK ? f->len : 0;
	if (!opt.client)
		server_header(c);
	else if (f->len != c->asked)
		bad(c, "length", c->in.pos);
	if (c->in.left == 0)
		c->in.header = 0;
}

static void payload_done(struct conn *c)
{
	c->in.header = opt.echo ? sizeof(c->in.frame) : 0;
	if (opt.client)
		client_answered(c);
	else if (c->in.frame.kind == PING)
		way_start(&c->out, PING, c->in.frame.len);
}

static ssize_t read_header(struct conn *c)
{
	ssize_t n = recv(c->fd, (char *)&c->in.frame + c->in.header,
			 sizeof(c->in.frame) - c->in.header, 0);

	if (n > 0) {
		c->in.header += (size_t)n;
		if (c->in.header == sizeof(c->in.frame))
			header_done(c);
	}
	return n;
}

static ssize_t read_payload(struct conn *c)
{
	size_t len = opt.edges ? CHUNK : some_size(CHUNK);
	const unsigned char *expected;
	ssize_t n;

	if (len > c->in.left)
		len = c->in.left;
	/* looking does not take */
	if (roll(20) == 0) {
		n = recv(c->fd, buf, len, MSG_PEEK);
		expected = stream_at(&c->in, want, n > 0 ? (size_t)n : 0);
		if (n > 0 && memcmp(buf, expected, (size_t)n) != 0)
			bad(c, "peeked bytes", c->in.pos);
	}
	n = recv(c->fd, buf, len, 0);
	if (n <= 0)
		return n;
	c->drained = opt.edges && (size_t)n < len;
	expected = stream_at(&c->in, want, (size_t)n);
	if (memcmp(buf, expected, (size_t)n) != 0) {
		size_t i = 0;

		while (buf[i] == expected[i])
			i++;
		bad(c, "bytes", c->in.pos + i);
	}
	c->in.pos += (size_t)n;
	c->in.left -= (size_t)n;
	if (c->phase == LAST && !c->moving) {
		c->moving = true;
		if (++moving_conns == opt.conns)
			say("under way");
	}
	if (c->in.left == 0)
		payload_done(c);
	return n;
}

/* Nothing but the end is to come any more, or nothing but an echo. */
static ssize_t read_end(struct conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK);

	if (n > 0)
		bad(c, "bytes after the last", c->in.pos);
	return n;
}

static bool ended_well(const struct conn *c)
{
	return opt.client ? c->phase == ENDING : c->in.header == 0 && !c->out.active;
}

/* A server that does not read for a while. */
static bool is_stalled(struct conn *c)
{
	if (opt.client || !c->stalled_until)
		return false;
	if (now_ms() < c->stalled_until)
		return true;
	server_memory(c);
	c->stalled_until = 0;
	return false;
}

/* 1: something came; 0: it would block; -1: the connection is over. */
static int conn_read(struct conn *c)
{
	ssize_t n;

	if (is_stalled(c) || c->drained)
		return 0;
	if (c->in.header < sizeof(c->in.frame))
		n = c->answered ? read_end(c) : read_header(c);
	else
		n = c->in.left ? read_payload(c) : read_end(c);
	if (n > 0)
		return 1;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		conn_ended(c, errno_name(errno));
	else
		conn_ended(c, ended_well(c) ? NULL : "EOF");
	return -1;
}

/* --- the loop --- */

/* again: events that are there already are told once more. */
static void watch(struct conn *c, int op, bool again)
{
	uint32_t events = EPOLLIN | EPOLLRDHUP;
	struct epoll_event ev = {.data.ptr = c};

	if (!opt.level)
		events |= EPOLLOUT | EPOLLET;
	else if (c->out.active || c->phase == OPENING)
		events |= EPOLLOUT;
	if (op == EPOLL_CTL_MOD && events == c->events && !again)
		return;
	c->events = ev.events = events;
	if (epoll_ctl(epoll_fd, op, c->fd, &ev))
		fail("epoll_ctl");
}

static void pause_a_while(void)
{
	if (opt.pauses && roll(300) == 0)
		usleep((useconds_t)roll(3000));
}

/* A reader that wants more at once for a moment: its peer has to leave redirecting and come back.
 */
static void mix_ways(struct conn *c)
{
	int lowat = 50, one = 1;

	if (!opt.mixed || roll(60))
		return;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
	usleep((useconds_t)roll(200));
	setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
}

static void edge_seen(struct conn *c, uint32_t events)
{
	if (events & ~EPOLLOUT)
		c->drained = false;
}

static void serve_conn(struct conn *c)
{
	unsigned turn = 0;
	int in, out;

	do {
		pause_a_while();
		mix_ways(c);
		out = conn_write(c);
		if (out < 0)
			return;
		in = conn_read(c);
		if (in < 0)
			return;
		/* (being told again would hide an edge that did not come) */
	} while ((in || out) && (opt.edges || ++turn < TURN_MAX));
	watch(c, EPOLL_CTL_MOD, in || out);
}

static void hang(void)
{
	printf("hang: %u connections are open, %u good\n", open_conns, good);
	exit(3);
}

static void conn_init(struct conn *c, int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	memset(c, 0, sizeof(*c));
	c->fd = fd;
	open_conns++;
}

static struct conn *stalled; /* of the server: one at a time */

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct conn *c = malloc(sizeof(*c));

		if (!c)
			fail("malloc");
		conn_init(c, fd);
		c->phase = WARM;
		watch(c, EPOLL_CTL_ADD, false);
	}
}

static int cmd_server(char **argv)
{
	struct epoll_event ev[256], on = {.events = EPOLLIN};
	struct endpoint e;
	int listener, one = 1;

	endpoint_parse(argv[2], argv[3], argv[4], &e);
	listener = endpoint_socket(argv[2], &e, SOCK_STREAM | SOCK_NONBLOCK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&e.ss, e.len) || listen(listener, 4096))
		fail("listen");
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &on))
		fail("epoll_ctl");
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll_fd, ev, 256, stalled ? 50 : -1);

		for (int i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if (!c) {
				accept_all(listener);
				continue;
			}
			edge_seen(c, ev[i].events);
			serve_conn(c);
			if (c->fd >= 0 && c->stalled_until)
				stalled = c;
			if (c->fd < 0)
				free(c);
		}
		if (stalled && now_ms() >= stalled->stalled_until) {
			struct conn *c = stalled;

			stalled = NULL;
			serve_conn(c);
			if (c->fd < 0)
				free(c);
		}
	}
}

static void client_open(struct conn *c, const char *family, const struct endpoint *to, unsigned i)
{
	int fd = endpoint_socket(family, to, SOCK_STREAM | SOCK_NONBLOCK);

	conn_init(c, fd);
	if (connect(fd, (const struct sockaddr *)&to->ss, to->len) && errno != EINPROGRESS)
		fail("connect");
	c->out.seed = mix(opt.seed * 1000003 + i);
	c->in.seed = opt.echo ? c->out.seed : ~c->out.seed;
	c->in.header = opt.echo ? sizeof(c->in.frame) : 0;
	watch(c, EPOLL_CTL_ADD, false);
}

static void client_ready(struct conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (c->phase == OPENING) {
		opening--;
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
		if (err) {
			conn_ended(c, errno_name(err));
			return;
		}
		c->phase = WARM;
		if (opt.echo)
			ping(c);
		else
			way_start(&c->out, HELLO, c->out.seed);
	}
	serve_conn(c);
}

/* Not more at a time than the queue of a listener takes. */
static void open_some(struct conn *conns, const char *family, const struct endpoint *to)
{
	static unsigned opened;

	while (opened < opt.conns && opening < OPENING_MAX) {
		opening++;
		client_open(&conns[opened], family, to, opened);
		opened++;
	}
}

static void client_loop(struct conn *conns, const char *family, const struct endpoint *to)
{
	struct epoll_event ev[256];
	bool told = false;
	uint64_t idle_since = now_ms();

	open_some(conns, family, to);
	while (open_conns) {
		int n = epoll_wait(epoll_fd, ev, 256, 100);

		if (n > 0)
			idle_since = now_ms();
		else if (now_ms() - idle_since > opt.idle_ms)
			hang();
		for (int i = 0; i < n; i++)
			if (((struct conn *)ev[i].data.ptr)->fd >= 0) {
				edge_seen(ev[i].data.ptr, ev[i].events);
				client_ready(ev[i].data.ptr);
			}
		open_some(conns, family, to);
		if (!told && warm_conns == open_conns) {
			told = true;
			all_warm(conns);
			for (unsigned i = 0; i < opt.conns; i++)
				if (conns[i].fd >= 0)
					serve_conn(&conns[i]);
		}
		if (told && opt.stall_ms && !conns->queued_known &&
		    now_ms() >= conns->stalled_until)
			client_queued(conns);
	}
}

static int cmd_client(char **argv)
{
	struct conn *conns = calloc(opt.conns, sizeof(*conns));
	struct endpoint to;

	if (!conns)
		fail("calloc");
	opt.client = true;
	begun_ms = now_ms();
	endpoint_parse(argv[2], argv[3], argv[4], &to);
	client_loop(conns, argv[2], &to);
	printf("good %u", good);
	for (unsigned i = 0; i < ENDS_MAX && ends[i].name; i++)
		printf(" %s=%u", ends[i].name, ends[i].n);
	printf("\n");
	free(conns);
	return good == opt.conns ? 0 : 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: talk server|client FAMILY ADDR PORT [options]: see talk.c\n");
	return 2;
}

static bool options(int argc, char **argv)
{
	int o;

	opt.seed = (uint64_t)getpid() ^ now_ms() << 20;
	while ((o = getopt(argc, argv, "n:w:W:k:s:r:q:b:i:pmleE")) != -1) {
		uint64_t value = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (o) {
		case 'n':
			opt.conns = (unsigned)value;
			break;
		case 'w':
			opt.warm_ms = (unsigned)value;
			break;
		case 'W':
			opt.until = optarg;
			break;
		case 'k':
			opt.rounds = (unsigned)value;
			break;
		case 's':
			opt.bytes = value;
			break;
		case 'r':
			opt.seed = value;
			break;
		case 'q':
			opt.stall_ms = value;
			break;
		case 'b':
			opt.buffer = value;
			break;
		case 'i':
			opt.idle_ms = value;
			break;
		case 'p':
			opt.pauses = true;
			break;
		case 'm':
			opt.mixed = true;
			break;
		case 'l':
			opt.level = true;
			break;
		case 'e':
			opt.echo = true;
			break;
		case 'E':
			opt.edges = true;
			break;
		default:
			return false;
		}
	}
	dice = opt.seed;
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 5 || !options(argc - 4, argv + 4))
		return usage();
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (strcmp(argv[1], "server") == 0)
		return cmd_server(argv);
	return strcmp(argv[1], "client") == 0 ? cmd_client(argv) : usage();
}
