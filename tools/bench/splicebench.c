// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What splicing is measured with: both ends never block, as it asks for, and the processor time of
 * both counts. Like axbench, every client measures one thing and prints one JSON object.
 *
 *   splicebench [-c CPU] server ADDR PORT|unix PATH
 *   splicebench [-c CPU] [-w MS] [-t MS] [-s SIZE] [-a BYTES] rr|stream|stall ADDR PORT|unix PATH
 *   splicebench [-w MS] [-t MS] [-p PID]... -q redis|nginx load ADDR PORT COMMAND [ARG ...]
 *
 * -w: how long before measuring, in which connections are joined; -s: bytes of a message; -a: the
 * reader of a stream answers every so many bytes (0: never). load runs the command meanwhile, and
 * asks the server how many requests it has answered; -p: processes of the server.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MAX_      (256u * 1024)
#define SAMPLES_MAX    (1u << 20)
#define WAIT_MS	       10000 /* a client that waits longer than this for anything has failed */
#define STALL_MS       500
#define SERVER_SECONDS 1800 /* no server outlives a benchmark that was killed by more than this */
#define PIDS_MAX       16
#define SO_MEMORY      55 /* SO_MEMINFO, which old headers lack */

enum mode { CONTROL, RR, STREAM, STALL };

/* The first bytes of each connection. */
struct hello {
	uint32_t mode, size;
	uint64_t every;
};

/* What a connection of mode CONTROL answers to each byte. */
struct answer {
	uint64_t cpu_ns;	 /* of the server */
	uint32_t memory, buffer; /* of the connection that is not read */
};

static struct options {
	unsigned warm_ms, ms;
	uint32_t size;
	uint64_t every;
	pid_t pids[PIDS_MAX];
	unsigned n_pids;
	const char *counter;
} opt = {.warm_ms = 50, .ms = 500, .size = 64};

static char buf[SIZE_MAX_];

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "splicebench: %s failed: %s\n", what, strerror(errno));
	exit(1);
}

/* --- sockets --- */

struct endpoint {
	struct sockaddr_storage sa;
	socklen_t len;
};

static void endpoint_parse(const char *addr, const char *port, struct endpoint *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&ret->sa;
	struct sockaddr_un *un = (struct sockaddr_un *)&ret->sa;

	memset(ret, 0, sizeof(*ret));
	if (strcmp(addr, "unix") == 0) {
		un->sun_family = AF_UNIX;
		snprintf(un->sun_path, sizeof(un->sun_path), "%s", port);
		ret->len = sizeof(*un);
		return;
	}
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)atoi(port));
	ret->len = sizeof(*in);
	errno = EINVAL;
	if (inet_pton(AF_INET, addr, &in->sin_addr) != 1)
		die("reading the address");
}

/* Reno, as axbench: a default of BBR paces by a timer. Sockets that are not TCP's refuse both. */
static void set_up(int fd)
{
	int one = 1;

	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die("fcntl()");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

static int connect_to(const struct endpoint *to, const struct hello *h)
{
	int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to->sa, to->len))
		die("connect()");
	set_up(fd);
	if (h && send(fd, h, sizeof(*h), MSG_NOSIGNAL) != sizeof(*h))
		die("send()");
	return fd;
}

static void wait_for(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	errno = ETIMEDOUT;
	if (poll(&p, 1, WAIT_MS) != 1)
		die("waiting");
}

static void send_all(int fd, const char *from, size_t len)
{
	while (len) {
		ssize_t n = send(fd, from, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			die("send()");
		if (n < 0)
			wait_for(fd, POLLOUT);
		else
			from += n, len -= (size_t)n;
	}
}

static void recv_all(int fd, char *to, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, to, len, 0);

		if (n == 0)
			errno = ECONNRESET;
		if (n == 0 || (n < 0 && errno != EAGAIN))
			die("recv()");
		if (n < 0)
			wait_for(fd, POLLIN);
		else
			to += n, len -= (size_t)n;
	}
}

/* --- the server --- */

struct conn {
	int fd;
	struct hello hello;
	size_t got;		/* of the hello, then of a message */
	uint64_t unanswered;	/* bytes of a stream */
	uint64_t stalled_until; /* ns */
	bool known;
};

static struct conn *unread; /* the one that is not read */

static void answer_control(const struct conn *c)
{
	struct answer a = {.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
	uint32_t m[9] = {0};
	socklen_t len = sizeof(m);

	if (unread)
		getsockopt(unread->fd, SOL_SOCKET, SO_MEMORY, m, &len);
	a.memory = m[0];
	a.buffer = m[1];
	send_all(c->fd, (char *)&a, sizeof(a));
}

/* A message is there (or what came of a stream). */
static void answer(struct conn *c, size_t n)
{
	switch (c->hello.mode) {
	case CONTROL:
		answer_control(c);
		break;
	case STREAM:
		c->unanswered += n;
		for (; c->hello.every && c->unanswered >= c->hello.every;
		     c->unanswered -= c->hello.every)
			send_all(c->fd, buf, 8);
		break;
	default:
		send_all(c->fd, buf, c->hello.size);
		if (c->hello.mode == STALL && buf[0]) {
			unread = c;
			c->stalled_until = now_ns() + c->hello.every;
		}
	}
}

static bool is_stalled(struct conn *c)
{
	if (!c->stalled_until)
		return false;
	if (now_ns() < c->stalled_until)
		return true;
	c->stalled_until = 0;
	c->hello.mode = STREAM;
	c->hello.every = 0;
	unread = NULL;
	return false;
}

/* How much of a message or a stream to take at once. */
static size_t wanted(const struct conn *c)
{
	if (!c->known)
		return sizeof(c->hello) - c->got;
	if (c->hello.mode == CONTROL)
		return 1;
	return c->hello.mode == STREAM ? sizeof(buf) : c->hello.size - c->got;
}

/* 1: go on, 0: it would block, -1: it ended. */
static int conn_step(struct conn *c)
{
	char *to = c->known ? buf + c->got : (char *)&c->hello + c->got;
	ssize_t n;

	if (is_stalled(c))
		return 0;
	n = recv(c->fd, c->known && c->hello.mode == STREAM ? buf : to, wanted(c), 0);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -1;
	if (c->known && c->hello.mode == STREAM) {
		answer(c, (size_t)n);
		return 1;
	}
	c->got += (size_t)n;
	if (!c->known && c->got == sizeof(c->hello)) {
		c->known = true;
		c->got = 0;
	} else if (c->known && (c->hello.mode == CONTROL || c->got == c->hello.size)) {
		answer(c, c->got);
		c->got = 0;
	}
	return 1;
}

/* Whole messages only, so that `buf` serves all connections; what comes in parts waits here. */
static void serve(struct conn *c)
{
	int r;

	while ((r = conn_step(c)) > 0)
		;
	while (r == 0 && c->known && c->got && !c->stalled_until) {
		wait_for(c->fd, POLLIN);
		while ((r = conn_step(c)) > 0)
			;
	}
	if (r < 0) {
		close(c->fd);
		if (unread == c)
			unread = NULL;
		free(c);
	}
}

static void accept_one(int listener, int epoll_fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

	if (!c)
		die("calloc()");
	c->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (c->fd < 0) {
		free(c);
		return;
	}
	set_up(c->fd);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &ev))
		die("epoll_ctl()");
}

static void __attribute__((noreturn)) server(const struct endpoint *at)
{
	int listener = socket(at->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN}, evs[16];

	if (at->sa.ss_family == AF_UNIX)
		unlink(((const struct sockaddr_un *)&at->sa)->sun_path);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (const struct sockaddr *)&at->sa, at->len) || listen(listener, 128) ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &ev))
		die("listen()");
	alarm(SERVER_SECONDS);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll_fd, evs, 16, -1);

		for (int i = 0; i < n; i++) {
			if (evs[i].data.ptr)
				serve(evs[i].data.ptr);
			else
				accept_one(listener, epoll_fd);
		}
	}
}

/* --- measuring --- */

/* Time and processor time of both ends, from the end of the warming up on. */
struct window {
	int control; /* -1: the server is asked in another way */
	uint64_t ns, cpu, count;
};

static struct answer ask(int control)
{
	struct answer a;

	send_all(control, "c", 1);
	recv_all(control, (char *)&a, sizeof(a));
	return a;
}

static uint64_t cpu_of_both(const struct window *w)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ask(w->control).cpu_ns;
}

static void window_open(struct window *w)
{
	w->cpu = cpu_of_both(w);
	w->ns = now_ns();
	w->count = 0;
}

static void window_close(struct window *w)
{
	w->ns = now_ns() - w->ns;
	w->cpu = cpu_of_both(w) - w->cpu;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* --- clients --- */

static void round_trip(int fd, uint64_t tag)
{
	static char in[SIZE_MAX_];

	memcpy(buf + 8, &tag, sizeof(tag));
	send_all(fd, buf, opt.size);
	recv_all(fd, in, opt.size);
	errno = EPROTO;
	if (memcmp(in, buf, opt.size) != 0)
		die("a round trip");
}

static int rr(const struct endpoint *to)
{
	static uint32_t samples[SAMPLES_MAX];
	struct hello h = {.mode = RR, .size = opt.size};
	struct window w = {.control = connect_to(to, &(struct hello){.mode = CONTROL})};
	int fd = connect_to(to, &h);
	uint64_t t, end = now_ns() + opt.warm_ms * 1000000ull, tag = 0, done;

	while (now_ns() < end)
		round_trip(fd, tag++);
	window_open(&w);
	end = w.ns + opt.ms * 1000000ull;
	t = w.ns;
	do {
		round_trip(fd, tag++);
		done = now_ns();
		samples[w.count++] = (uint32_t)(done - t);
		t = done;
	} while (t < end && w.count < SAMPLES_MAX);
	window_close(&w);
	qsort(samples, w.count, sizeof(*samples), compare_u32);
	printf("{\"mode\":\"rr\",\"unit\":\"ns\",\"value\":%u,\"p99\":%u,\"cpu\":%llu,"
	       "\"count\":%llu}\n",
	       samples[w.count / 2], samples[w.count * 99 / 100],
	       (unsigned long long)(w.cpu / w.count), (unsigned long long)w.count);
	return 0;
}

/* Sends for so long; takes the answers that are there, and at the end all that are due. */
static uint64_t stream_for(int fd, unsigned ms, uint64_t *due)
{
	uint64_t end = now_ns() + ms * 1000000ull, total = 0;
	char in[64];

	do {
		send_all(fd, buf, opt.size);
		total += opt.size;
		if (!opt.every)
			continue;
		*due += opt.size;
		/* not more than a few answers behind, as who asks for them is */
		while (*due >= 8 * opt.every) {
			recv_all(fd, in, 8);
			*due -= opt.every;
		}
	} while (now_ns() < end);
	return total;
}

static int stream(const struct endpoint *to)
{
	struct hello h = {.mode = STREAM, .size = opt.size, .every = opt.every};
	struct window w = {.control = connect_to(to, &(struct hello){.mode = CONTROL})};
	int fd = connect_to(to, &h);
	uint64_t due = 0;

	stream_for(fd, opt.warm_ms, &due);
	window_open(&w);
	w.count = stream_for(fd, opt.ms, &due);
	window_close(&w);
	printf("{\"mode\":\"stream\",\"unit\":\"Gbit/s\",\"value\":%.3f,\"cpu\":%.0f}\n",
	       (double)w.count * 8 / (double)w.ns, (double)w.cpu / ((double)w.count / (1 << 20)));
	return 0;
}

/* How much more than its buffer a reader holds that does not read: what was taken from us, less
 * what is still with us, or the memory that is counted for it. */
static int stall(const struct endpoint *to)
{
	struct hello h = {.mode = STALL, .size = 64, .every = STALL_MS * 1000000ull};
	int control = connect_to(to, &(struct hello){.mode = CONTROL});
	int fd = connect_to(to, &h), unsent = 0;
	uint64_t end = now_ns() + opt.warm_ms * 1000000ull, queued = 0;
	struct answer a;
	ssize_t n;

	for (opt.size = 64; now_ns() < end;)
		round_trip(fd, 0);
	buf[0] = 1;
	round_trip(fd, 0);
	end = now_ns() + (STALL_MS - 200) * 1000000ull;
	while (now_ns() < end) {
		n = send(fd, buf, 16384, MSG_NOSIGNAL);
		if (n > 0)
			queued += (uint64_t)n;
		else
			poll(NULL, 0, 1);
	}
	a = ask(control);
	ioctl(fd, SIOCOUTQ, &unsent);
	queued -= (uint64_t)unsent;
	if (a.memory > queued)
		queued = a.memory;
	errno = EPROTO;
	if (!a.buffer)
		die("stalling");
	printf("{\"mode\":\"stall\",\"unit\":\"x\",\"value\":%.3f,\"queued\":%llu,\"buffer\":%u}\n",
	       (double)queued / a.buffer, (unsigned long long)queued, a.buffer);
	return 0;
}

/* --- other programs --- */

static uint64_t cpu_of_pids(pid_t command)
{
	uint64_t sum = 0;
	clockid_t clock;

	for (unsigned i = 0; i <= opt.n_pids; i++) {
		if (clock_getcpuclockid(i < opt.n_pids ? opt.pids[i] : command, &clock))
			die("asking for a process's time");
		sum += clock_ns(clock);
	}
	return sum;
}

/* How many requests the server has answered, by what it says of itself. */
static uint64_t requests(const struct endpoint *to)
{
	bool redis = strcmp(opt.counter, "redis") == 0;
	const char *ask_for =
		redis ? "INFO stats\r\n" : "GET /status HTTP/1.0\r\nHost: status\r\n\r\n";
	const char *before = redis ? "total_commands_processed:" : "handled requests\n";
	const char *end = redis ? "\r\nmigrate_cached_sockets" : "Waiting:";
	char text[65536] = "", *at = NULL;
	size_t len = 0;
	int fd = connect_to(to, NULL);
	unsigned long long a, b, c;

	send_all(fd, ask_for, strlen(ask_for));
	while (!strstr(text, end)) {
		ssize_t n;

		wait_for(fd, POLLIN);
		n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
		if (n <= 0)
			break;
		len += (size_t)n;
		text[len] = '\0';
	}
	close(fd);
	at = strstr(text, before);
	errno = EPROTO;
	if (!at)
		die("asking the server for its count");
	at += strlen(before);
	if (redis)
		return strtoull(at, NULL, 10);
	if (sscanf(at, "%llu %llu %llu", &a, &b, &c) != 3)
		die("reading the server's count");
	return c;
}

static int load(const struct endpoint *to, char **argv)
{
	uint64_t cpu, count, ns;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	usleep(opt.warm_ms * 1000);
	count = requests(to);
	cpu = cpu_of_pids(pid);
	ns = now_ns();
	usleep(opt.ms * 1000);
	ns = now_ns() - ns;
	cpu = cpu_of_pids(pid) - cpu;
	count = requests(to) - count;
	/* wrk prints what it found */
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	errno = EPROTO;
	if (count < 100)
		die("the load");
	printf("{\"mode\":\"load\",\"unit\":\"1/s\",\"value\":%.1f,\"cpu\":%.1f}\n",
	       (double)count * 1e9 / (double)ns, (double)cpu / (double)count);
	return 0;
}

/* --- command line --- */

static int usage(void)
{
	fputs("usage: splicebench [-c CPU] server ADDR PORT|unix PATH\n"
	      "       splicebench [-c CPU] [-w MS] [-t MS] [-s SIZE] [-a BYTES] rr|stream|stall"
	      " ADDR PORT|unix PATH\n"
	      "       splicebench [-w MS] [-t MS] [-p PID]... -q redis|nginx load ADDR PORT COMMAND"
	      " [ARG ...]\n",
	      stderr);
	return 2;
}

static void pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)atoi(cpu), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("pinning to the CPU");
}

static bool options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+c:w:t:s:a:p:q:")) != -1) {
		unsigned long long value = strtoull(optarg ? optarg : "0", NULL, 10);

		if (c == 'c')
			pin(optarg);
		else if (c == 'w')
			opt.warm_ms = (unsigned)value;
		else if (c == 't')
			opt.ms = (unsigned)value;
		else if (c == 's')
			opt.size = (uint32_t)value;
		else if (c == 'a')
			opt.every = value;
		else if (c == 'p' && opt.n_pids < PIDS_MAX)
			opt.pids[opt.n_pids++] = (pid_t)value;
		else if (c == 'q')
			opt.counter = optarg;
		else
			return false;
	}
	return opt.size >= 16 && opt.size <= SIZE_MAX_;
}

int main(int argc, char **argv)
{
	struct endpoint e;

	if (!options(argc, argv) || argc - optind < 3)
		return usage();
	argv += optind;
	endpoint_parse(argv[1], argv[2], &e);
	if (strcmp(argv[0], "server") == 0)
		server(&e);
	if (strcmp(argv[0], "load") == 0)
		return argv[3] && opt.counter ? load(&e, argv + 3) : usage();
	if (argc - optind != 3)
		return usage();
	if (strcmp(argv[0], "rr") == 0)
		return rr(&e);
	if (strcmp(argv[0], "stream") == 0)
		return stream(&e);
	return strcmp(argv[0], "stall") == 0 ? stall(&e) : usage();
}
