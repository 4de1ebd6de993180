// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replay FAMILY ADDR PORT REQUESTS ANSWERS MS [FILE]
 *
 * Sends the bytes of the file REQUESTS over one connection, again and again for MS ms (and until
 * FILE is there, but no more than 40 s longer), without waiting for answers and without blocking,
 * and compares what comes with the file ANSWERS. Prints "replayed N times" or "bad ...".
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "netutil.h"

#define CHUNK	(64u * 1024)
#define MORE_MS 40000
#define AHEAD	3 /* runs of requests that may be under way */

struct file {
	const char *data;
	size_t len;
};

static struct file file_map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file f = {0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	f.len = (size_t)st.st_size;
	f.data = mmap(NULL, f.len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (f.data == MAP_FAILED)
		fail(path);
	close(fd);
	return f;
}

/* Sizes that fit neither requests nor segments. */
static size_t some_of(const struct file *f, size_t at)
{
	static uint32_t n = 1;
	size_t len;

	n = n * 1664525u + 1013904223u;
	len = 1 + (n >> 8) % CHUNK;
	return len < f->len - at ? len : f->len - at;
}

/* Returns how many went out; 0: it would block. */
static size_t send_some(int fd, const struct file *f, size_t at)
{
	ssize_t n = send(fd, f->data + at, some_of(f, at), MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		fail("send");
	return n < 0 ? 0 : (size_t)n;
}

static size_t receive_some(int fd, const struct file *f, size_t at)
{
	static char buf[CHUNK];
	ssize_t n = recv(fd, buf, some_of(f, at), 0);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		fail("recv");
	if (n == 0 || memcmp(buf, f->data + at, (size_t)n) != 0) {
		printf("bad answer (%zd bytes) near byte %zu\n", n, at);
		exit(1);
	}
	return (size_t)n;
}

/* Until then, and until the file is there if one is named. */
static bool goes_on(uint64_t end, const char *file)
{
	uint64_t now = now_ms();

	return now < end || (file && now < end + MORE_MS && access(file, F_OK));
}

static unsigned replay(int fd, const struct file *out, const struct file *in, unsigned ms,
		       const char *file)
{
	unsigned sent = 0, got = 0;
	size_t out_at = 0, in_at = 0, n, m;
	uint64_t end = now_ms() + ms;
	bool more = true;

	while (more || got < sent || out_at) {
		n = 0;
		if (out_at || (more && sent - got < AHEAD))
			out_at += n = send_some(fd, out, out_at);
		if (out_at == out->len) {
			out_at = 0;
			sent++;
			more = goes_on(end, file);
		}
		in_at += m = receive_some(fd, in, in_at);
		if (in_at == in->len) {
			in_at = 0;
			got++;
		}
		if (!n && !m &&
		    wait_fd(fd, out_at || (more && sent - got < AHEAD) ? POLLIN | POLLOUT : POLLIN,
			    2 * TIMEOUT_MS)) {
			printf("hang after %u runs, byte %zu\n", got, in_at);
			exit(3);
		}
	}
	return got;
}

int main(int argc, char **argv)
{
	struct endpoint to;
	struct file out, in;
	int fd;

	if (argc != 7 && argc != 8)
		return 2;
	out = file_map(argv[4]);
	in = file_map(argv[5]);
	endpoint_parse(argv[1], argv[2], argv[3], &to);
	fd = endpoint_socket(argv[1], &to, SOCK_STREAM);
	if (connect(fd, (const struct sockaddr *)&to.ss, to.len) || fcntl(fd, F_SETFL, O_NONBLOCK))
		fail("connect");
	printf("replayed %u times\n", replay(fd, &out, &in, (unsigned)atoi(argv[6]), argv[7]));
	return 0;
}
