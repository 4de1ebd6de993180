// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The measuring end of `make bench`: small servers and clients over TCP sockets that know nothing
 * of ax. Every client measures one thing and prints one JSON object on one line; run.sh starts the
 * same program under ax and under what ax is compared with, so that only the path differs.
 *
 *   axbench [-c CPU] [-t MS] server close|echo|sink [ADDR] PORT
 *   axbench [-c CPU] [-t MS] connect-rate|connect-time|rr|stream ADDR PORT
 *   axbench [-c CPU] [-n N] spawn-time -- COMMAND [ARG ...]
 *   axbench [-c CPU] first-byte ADDR PORT [COMMAND [ARG ...]]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SMALL	       64u
#define CHUNK	       (64u * 1024)
#define SAMPLES_MAX    (1u << 20)
#define WARM_MS	       50u
#define SLICE_MS       20u
#define IO_SECONDS     10  /* a client that waits longer than this for anything has failed */
#define SERVER_SECONDS 900 /* no server outlives a benchmark that was killed by more than this */

struct options {
	unsigned ms; /* how long to measure */
	unsigned n;  /* how many runs (spawn-time) */
};

struct samples {
	uint32_t *ns;
	size_t n;
};

static void samples_free(struct samples *s)
{
	free(s->ns);
}

static void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int failed(const char *what, int err)
{
	fprintf(stderr, "axbench: %s failed: %s\n", what, strerror(-err));
	return 1;
}

/* --- addresses --- */

struct endpoint {
	struct sockaddr_storage sa;
	socklen_t len;
};

/* addr NULL: the IPv4 wildcard. Numbers only: no benchmark is to measure a resolver. */
static int endpoint_parse(const char *addr, const char *port, struct endpoint *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&ret->sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->sa;
	char *end;
	unsigned long p = strtoul(port, &end, 10);

	if (*end || end == port || p < 1 || p > 65535)
		return -EINVAL;
	*ret = (struct endpoint){.len = sizeof(*in)};
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)p);
	if (!addr || inet_pton(AF_INET, addr, &in->sin_addr) == 1)
		return 0;
	if (inet_pton(AF_INET6, addr, &in6->sin6_addr) != 1)
		return -EINVAL;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)p);
	ret->len = sizeof(*in6);
	return 0;
}

static int tcp_connect(const struct endpoint *to)
{
	int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&to->sa, to->len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/*
 * Applied once per long connection, never in a timed loop. Reno, because every kernel has it and
 * every namespace allows it: a default of BBR paces by a timer, and a stream over any path then
 * runs at one of two speeds that differ by five, at random.
 */
static int set_up(int fd)
{
	struct timeval limit = {.tv_sec = IO_SECONDS};
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno")) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
		return -errno;
	return 0;
}

static int send_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* 1: got all of it, 0: the stream ended first. */
static int recv_all(int fd, void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t n = recv(fd, p, len, 0);

		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		p += n;
		len -= (size_t)n;
	}
	return 1;
}

/* --- servers --- */

static void serve_close(int fd)
{
	(void)fd; /* closing is the caller's, and all there is to it */
}

static void serve_echo(int fd)
{
	char buf[SMALL];

	if (set_up(fd))
		return;
	while (recv_all(fd, buf, sizeof(buf)) == 1)
		if (send_all(fd, buf, sizeof(buf)))
			return;
}

/* Reads to the end, then tells the sender how much arrived. */
static void serve_sink(int fd)
{
	static char buf[4 * CHUNK];
	uint64_t total = 0;
	ssize_t n;

	if (set_up(fd))
		return;
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		total += (uint64_t)n;
	send_all(fd, &total, sizeof(total));
}

static int tcp_listen(const struct endpoint *at)
{
	int fd = socket(at->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, err;

	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !bind(fd, (const struct sockaddr *)&at->sa, at->len) && !listen(fd, SOMAXCONN))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int server(int argc, char **argv)
{
	void (*serve)(int fd) = NULL;
	struct endpoint at;
	int fd;

	if (argc < 2 || argc > 3 || endpoint_parse(argc == 3 ? argv[1] : NULL, argv[argc - 1], &at))
		return 2;
	if (!strcmp(argv[0], "close"))
		serve = serve_close;
	else if (!strcmp(argv[0], "echo"))
		serve = serve_echo;
	else if (!strcmp(argv[0], "sink"))
		serve = serve_sink;
	if (!serve)
		return 2;
	fd = tcp_listen(&at);
	if (fd < 0)
		return failed("listen()", fd);
	alarm(SERVER_SECONDS);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (c < 0 && errno != EINTR && errno != ECONNABORTED)
			return failed("accept()", -errno);
		if (c < 0)
			continue;
		serve(c);
		close(c);
	}
}

/* --- statistics --- */

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int samples_alloc(struct samples *s)
{
	s->n = 0;
	s->ns = malloc(SAMPLES_MAX * sizeof(*s->ns));
	return s->ns ? 0 : -ENOMEM;
}

static void samples_add(struct samples *s, uint64_t ns)
{
	if (s->n < SAMPLES_MAX)
		s->ns[s->n++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

/* Every client takes one sample at least, however short its time is. */
static void samples_sort(struct samples *s)
{
	qsort(s->ns, s->n, sizeof(*s->ns), compare_u32);
}

static void print_percentiles(const char *mode, struct samples *s)
{
	samples_sort(s);
	printf("{\"mode\":\"%s\",\"unit\":\"ns\",\"value\":%u,\"p50\":%u,\"p99\":%u,\"count\":%zu}"
	       "\n",
	       mode, s->ns[s->n / 2], s->ns[s->n / 2], s->ns[s->n * 99 / 100], s->n);
}

/* --- clients --- */

/*
 * One connection as most servers end it: the server closes first and so keeps the TIME_WAIT; the
 * client's port is free again at once. *ns: time spent in connect() and close() alone.
 */
static int connect_once(const struct endpoint *to, uint64_t *ns)
{
	uint64_t t0 = now_ns(), t1, t2;
	int fd = tcp_connect(to), err = 0;
	char byte;
	ssize_t n;

	if (fd < 0)
		return fd;
	t1 = now_ns();
	n = recv(fd, &byte, 1, 0);
	if (n)
		err = n < 0 ? -errno : -EPROTO;
	t2 = now_ns();
	close(fd);
	*ns = t1 - t0 + now_ns() - t2;
	return err;
}

/* Connects for `ms`; counts, and collects the times where `s` is wanted. */
static int connect_for(const struct endpoint *to, unsigned ms, struct samples *s, uint64_t *count)
{
	uint64_t end = now_ns() + ms * 1000000ull, ns;
	int err;

	*count = 0;
	do {
		err = connect_once(to, &ns);
		if (err)
			return err;
		if (s)
			samples_add(s, ns);
		++*count;
	} while (now_ns() < end);
	return 0;
}

/*
 * Connections per second are counted over slices, and the slice in the middle is what is said:
 * whatever else the machine does for a moment then falls into some slices, not into the figure.
 */
static int connect_rate(const struct endpoint *to, const struct options *o)
{
	struct samples s __attribute__((cleanup(samples_free))) = {0};
	uint64_t count, total = 0, start, t, median;
	int err = samples_alloc(&s);

	if (!err)
		err = connect_for(to, WARM_MS, NULL, &count);
	for (start = t = now_ns(); !err && t - start < o->ms * 1000000ull;) {
		uint64_t before = t;

		err = connect_for(to, SLICE_MS, NULL, &count);
		t = now_ns();
		samples_add(&s, (t - before) / (count ? count : 1));
		total += count;
	}
	if (err)
		return failed("connect(), read and close()", err);
	samples_sort(&s);
	median = s.ns[s.n / 2];
	printf("{\"mode\":\"connect-rate\",\"unit\":\"1/s\",\"value\":%.1f,\"count\":%llu}\n",
	       1e9 / median, (unsigned long long)total);
	return 0;
}

static int connect_time(const struct endpoint *to, const struct options *o)
{
	struct samples s __attribute__((cleanup(samples_free))) = {0};
	uint64_t count;
	int err = samples_alloc(&s);

	if (!err)
		err = connect_for(to, WARM_MS, NULL, &count);
	if (!err)
		err = connect_for(to, o->ms, &s, &count);
	if (err)
		return failed("connect(), read and close()", err);
	print_percentiles("connect-time", &s);
	return 0;
}

/* A round trip is right only if the same bytes come back. */
static int round_trip(int fd, uint64_t tag)
{
	uint64_t out[SMALL / sizeof(uint64_t)] = {tag, ~tag}, in[SMALL / sizeof(uint64_t)];
	int r = send_all(fd, out, sizeof(out));

	if (r)
		return r;
	r = recv_all(fd, in, sizeof(in));
	if (r < 0)
		return r;
	return r == 1 && !memcmp(in, out, sizeof(in)) ? 0 : -EPROTO;
}

static int rr_for(int fd, unsigned ms, struct samples *s)
{
	uint64_t t = now_ns(), end = t + ms * 1000000ull, tag = 0;

	while (t < end) {
		int err = round_trip(fd, tag++);
		uint64_t done = now_ns();

		if (err)
			return err;
		if (s)
			samples_add(s, done - t);
		t = done;
	}
	return 0;
}

static int rr(const struct endpoint *to, const struct options *o)
{
	struct samples s __attribute__((cleanup(samples_free))) = {0};
	int fd __attribute__((cleanup(closep))) = tcp_connect(to);
	int err;

	if (fd < 0)
		return failed("connect()", fd);
	err = samples_alloc(&s);
	if (!err)
		err = set_up(fd);
	if (!err)
		err = rr_for(fd, WARM_MS, NULL);
	if (!err)
		err = rr_for(fd, o->ms, &s);
	if (err)
		return failed("a round trip", err);
	print_percentiles("rr", &s);
	return 0;
}

static int stream_for(int fd, unsigned ms, uint64_t *total)
{
	static char buf[CHUNK];
	uint64_t end = now_ns() + ms * 1000000ull;

	do {
		int err = send_all(fd, buf, sizeof(buf));

		if (err)
			return err;
		*total += sizeof(buf);
	} while (now_ns() < end);
	return 0;
}

/* The clock stops when the receiver has confirmed the last byte, so that bytes which are only
 * queued do not count. The warm-up stays in: it opens the window, and both sides have it. */
static int stream(const struct endpoint *to, const struct options *o)
{
	int fd __attribute__((cleanup(closep))) = tcp_connect(to);
	uint64_t start = now_ns(), total = 0, arrived = 0, ns;
	int err;

	if (fd < 0)
		return failed("connect()", fd);
	err = set_up(fd);
	if (!err)
		err = stream_for(fd, o->ms, &total);
	if (err)
		return failed("send()", err);
	if (shutdown(fd, SHUT_WR))
		return failed("shutdown()", -errno);
	err = recv_all(fd, &arrived, sizeof(arrived));
	ns = now_ns() - start;
	if (err != 1 || arrived != total) {
		fprintf(stderr, "axbench: %llu bytes were sent, %llu arrived\n",
			(unsigned long long)total, (unsigned long long)arrived);
		return 1;
	}
	printf("{\"mode\":\"stream\",\"unit\":\"Gbit/s\",\"value\":%.3f,\"bytes\":%llu}\n",
	       (double)total * 8 / (double)ns, (unsigned long long)total);
	return 0;
}

static int spawn_once(char **argv, uint64_t *ns)
{
	uint64_t start = now_ns();
	pid_t pid;
	int status, err = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

	if (err)
		return -err;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	*ns = now_ns() - start;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

static int spawn_time(char **argv, const struct options *o)
{
	struct samples s __attribute__((cleanup(samples_free))) = {0};
	uint64_t ns = 0;
	int err = samples_alloc(&s);

	if (!argv[0])
		return 2;
	/* the first run, which reads the program into memory, does not count */
	for (unsigned i = 0; !err && i <= o->n; i++) {
		err = spawn_once(argv, &ns);
		if (!err && i)
			samples_add(&s, ns);
	}
	if (err == -ECHILD) {
		fprintf(stderr, "axbench: %s did not exit with 0\n", argv[0]);
		return 1;
	}
	if (err)
		return failed("running the command", err);
	print_percentiles("spawn-time", &s);
	return 0;
}

/* --- command line --- */

static int usage(void)
{
	fputs("usage: axbench [-c CPU] [-t MS] server close|echo|sink [ADDR] PORT\n"
	      "       axbench [-c CPU] [-t MS] connect-rate|connect-time|rr|stream ADDR PORT\n"
	      "       axbench [-c CPU] [-n N] spawn-time -- COMMAND [ARG ...]\n"
	      "       axbench [-c CPU] first-byte ADDR PORT [COMMAND [ARG ...]]\n",
	      stderr);
	return 2;
}

/* Until a server that echoes has answered, which may only just be starting. */
static int first_answer(const struct endpoint *to, uint64_t end)
{
	const struct timespec pause = {.tv_nsec = 50 * 1000};
	char buf[SMALL] = {0};

	for (;;) {
		int fd = tcp_connect(to), err = fd < 0 ? fd : set_up(fd);

		err = err ? err : send_all(fd, buf, sizeof(buf));
		err = err ? err : recv_all(fd, buf, sizeof(buf));
		if (fd >= 0)
			close(fd);
		if (err == 1)
			return 0;
		if (now_ns() > end)
			return err ? err : -EPIPE;
		nanosleep(&pause, NULL);
	}
}

/* Starts the server, if a command is given, and stops it again. */
static int first_byte(char **argv)
{
	struct endpoint to;
	uint64_t start;
	pid_t pid = 0;
	int err = 0;

	if (endpoint_parse(argv[0], argv[1], &to))
		return usage();
	start = now_ns();
	if (argv[2])
		err = -posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
	err = err ? err : first_answer(&to, start + IO_SECONDS * 1000000000ull);
	start = now_ns() - start;
	if (pid > 0) {
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
	}
	if (err)
		return failed("waiting for the server", err);
	printf("{\"mode\":\"first-byte\",\"unit\":\"ns\",\"value\":%llu}\n",
	       (unsigned long long)start);
	return 0;
}

static int pin(const char *cpu)
{
	cpu_set_t set;
	char *end;
	unsigned long n = strtoul(cpu, &end, 10);

	if (*end || end == cpu || n >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&set);
	CPU_SET(n, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static int client(char **argv, const struct options *o)
{
	static const struct {
		const char *name;
		int (*run)(const struct endpoint *to, const struct options *o);
	} modes[] = {
		{"connect-rate", connect_rate},
		{"connect-time", connect_time},
		{"rr", rr},
		{"stream", stream},
	};
	struct endpoint to;

	if (endpoint_parse(argv[1], argv[2], &to))
		return usage();
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[0], modes[i].name))
			return modes[i].run(&to, o);
	return usage();
}

int main(int argc, char **argv)
{
	struct options o = {.ms = 500, .n = 15};
	int c, err = 0;

	while ((c = getopt(argc, argv, "+c:t:n:")) != -1) {
		if (c == 'c')
			err = pin(optarg);
		else if (c == 't')
			o.ms = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'n')
			o.n = (unsigned)strtoul(optarg, NULL, 10);
		else
			return usage();
		if (err)
			return failed("pinning to the CPU", err);
	}
	argc -= optind;
	argv += optind;
	if (argc < 2 || !o.ms || !o.n)
		return usage();
	if (!strcmp(argv[0], "server"))
		return server(argc - 1, argv + 1) == 2 ? usage() : 1;
	if (!strcmp(argv[0], "spawn-time"))
		return spawn_time(argv + 1 + !strcmp(argv[1], "--"), &o);
	if (!strcmp(argv[0], "first-byte") && argc >= 3)
		return first_byte(argv + 1);
	return argc == 3 ? client(argv, &o) : usage();
}
