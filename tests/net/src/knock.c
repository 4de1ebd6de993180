// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections in a tight loop, so that a moment in which they end differently does not go unseen.
 *
 *  knock server FAMILY ADDR PORT
 *      Accepts and closes. Prints "ready" first.
 *  knock client FAMILY ADDR PORT
 *      Connects and resets until SIGTERM, at most for LIMIT_S; then prints one line with how often
 *      each result came: "connected=N ECONNREFUSED=M". Prints "ready" after the first result.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "netutil.h"

#define LIMIT_S	    60
#define RESULTS_MAX 16

static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
	(void)sig;
	stopped = 1;
}

struct results {
	int err[RESULTS_MAX];
	unsigned long count[RESULTS_MAX];
	unsigned n;
};

static void note(struct results *r, int err)
{
	unsigned i = 0;

	while (i < r->n && r->err[i] != err)
		i++;
	if (i == RESULTS_MAX)
		return;
	if (i == r->n)
		r->err[r->n++] = err;
	r->count[i]++;
}

static void print(const struct results *r)
{
	for (unsigned i = 0; i < r->n; i++)
		printf("%s%s=%lu", i ? " " : "", r->err[i] ? errno_name(r->err[i]) : "connected",
		       r->count[i]);
	printf("\n");
}

/* 0 or the errno. Without TIME_WAIT: the ports would run out. */
static int knock(const char *family, const struct endpoint *to)
{
	struct linger reset = {.l_onoff = 1};
	int fd = endpoint_socket(family, to, SOCK_STREAM), err = 0;

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	set_timeouts(fd);
	if (connect(fd, (const struct sockaddr *)&to->ss, to->len))
		err = errno;
	close(fd);
	return err;
}

static int cmd_client(char **argv)
{
	struct sigaction term = {.sa_handler = on_term, .sa_flags = SA_RESTART};
	time_t end = time(NULL) + LIMIT_S;
	struct results r = {0};
	struct endpoint to;

	endpoint_parse(argv[2], argv[3], argv[4], &to);
	sigaction(SIGTERM, &term, NULL);
	while (!stopped && time(NULL) < end) {
		int err = knock(argv[2], &to);

		if (err == EINTR)
			continue;
		note(&r, err);
		if (r.n == 1 && r.count[0] == 1) {
			printf("ready\n");
			fflush(stdout);
		}
		usleep(200); /* there are others, and an agent that starts */
	}
	print(&r);
	return 0;
}

static int cmd_server(char **argv)
{
	struct endpoint e;
	int fd;

	endpoint_parse(argv[2], argv[3], argv[4], &e);
	fd = endpoint_bound(argv[2], &e, 0);
	if (listen(fd, 4096))
		fail("listen");
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int conn = accept(fd, NULL, NULL);

		if (conn >= 0)
			close(conn);
		else if (errno != ECONNABORTED && errno != EINTR)
			fail("accept");
	}
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "server") == 0)
		return cmd_server(argv);
	if (argc == 5 && strcmp(argv[1], "client") == 0)
		return cmd_client(argv);
	fprintf(stderr, "usage: knock server|client FAMILY ADDR PORT\n");
	return 2;
}
