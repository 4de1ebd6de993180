/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "launch/output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct output {
	char path[PATH_MAX], old[PATH_MAX];
	char lock[PATH_MAX]; /* a file of its directory that only root can open, and so lock */
	uint64_t turn_at;    /* bytes */
	int file, pipe;
	uint64_t lost; /* bytes that could not be written, since the last that could */
	int why;
	pthread_mutex_t mutex; /* for what stands above, and for reading from the pipe */
	pthread_t thread;
	bool started;
	char buf[OUTPUT_CHUNK];
};

/* --- the file --- */

static int open_file(struct output *o)
{
	int fd = open(o->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

	if (fd < 0)
		return -errno;
	close_fd(&o->file);
	o->file = fd;
	return 0;
}

/* Another supervisor may have begun a new one. */
static bool is_current(const struct output *o)
{
	struct stat there, ours;

	return fstat(o->file, &ours) == 0 && lstat(o->path, &there) == 0 &&
	       there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}

static void turn(struct output *o)
{
	autoclose int fd = open(o->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return;
	if (!is_current(o) || rename(o->path, o->old) == 0)
		open_file(o);
}

static void write_now(struct output *o, const char *p, size_t len)
{
	while (len) {
		ssize_t n = write(o->file, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) { /* no space, say: the app goes on all the same */
			o->lost += len;
			o->why = errno;
			return;
		}
		p += n;
		len -= (size_t)n;
	}
}

static void tell_lost(struct output *o)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "[ax: %llu bytes were lost: %s]\n",
			 (unsigned long long)o->lost, strerror(o->why));

	if (o->lost && write(o->file, line, (size_t)n) == n)
		o->lost = 0;
}

static void put(struct output *o, const char *p, size_t len)
{
	struct stat st;
	const char *nl;
	size_t head;

	if (!is_current(o))
		open_file(o);
	if (fstat(o->file, &st) == 0 && (uint64_t)st.st_size + len > o->turn_at) {
		nl = memchr(p, '\n', len);
		head = nl ? (size_t)(nl - p) + 1 : 0;
		write_now(o, p, head);
		p += head;
		len -= head;
		turn(o);
	}
	tell_lost(o);
	write_now(o, p, len);
}

/* --- the pipe --- */

/* Returns what read() does. */
static ssize_t take(struct output *o)
{
	ssize_t n;

	pthread_mutex_lock(&o->mutex);
	do {
		n = read(o->pipe, o->buf, sizeof(o->buf));
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		put(o, o->buf, (size_t)n);
	pthread_mutex_unlock(&o->mutex);
	return n;
}

static void *pump(void *arg)
{
	struct output *o = arg;
	struct pollfd p = {.fd = o->pipe, .events = POLLIN};

	while (poll(&p, 1, -1) < 0 || take(o) != 0)
		;
	return NULL;
}

void output_catch_up(struct output *o)
{
	int left = 0;

	/* what comes after this look is another's: nobody's writing can keep us here */
	if (o && ioctl(o->pipe, FIONREAD, &left) == 0)
		while (left > 0) {
			ssize_t n = take(o);

			if (n <= 0)
				break;
			left -= (int)n;
		}
	/* the other reader may still be writing what it has read */
	if (o) {
		pthread_mutex_lock(&o->mutex);
		pthread_mutex_unlock(&o->mutex);
	}
}

/* --- life --- */

static int open_pipe(struct output *o, int *writer)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	o->pipe = fds[0];
	*writer = fds[1];
	return fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int output_open(const char *path, uint64_t max, struct output **ret, int *writer, struct error *e)
{
	struct output *o = calloc(1, sizeof(*o));
	int dir = (int)(strrchr(path, '/') - path), r;

	*writer = -1;
	if (!o)
		return error_set(e, -ENOMEM, "out of memory");
	o->file = o->pipe = -1;
	o->turn_at = max / 2 > 2 * OUTPUT_CHUNK ? max / 2 - OUTPUT_CHUNK : OUTPUT_CHUNK;
	pthread_mutex_init(&o->mutex, NULL);
	if (snprintf(o->path, sizeof(o->path), "%s", path) >= (int)sizeof(o->path) - 2 ||
	    snprintf(o->lock, sizeof(o->lock), "%.*s/.lock", dir, path) >= (int)sizeof(o->lock) ||
	    snprintf(o->old, sizeof(o->old), "%s.1", path) >= (int)sizeof(o->old))
		r = -ENAMETOOLONG;
	else
		r = open_file(o);
	if (r)
		error_set(e, r, "cannot open the log file %s (%s)", path, strerror(-r));
	else if ((r = open_pipe(o, writer)))
		error_set(e, r, "cannot make a pipe for the log (%s)", strerror(-r));
	if (r) {
		close_fd(writer);
		output_finish(o);
		return r;
	}
	*ret = o;
	return 0;
}

int output_start(struct output *o, struct error *e)
{
	int r = pthread_create(&o->thread, NULL, pump, o);

	o->started = r == 0;
	return r ? error_set(e, -r, "cannot start a thread for the log (%s)", strerror(r)) : 0;
}

void output_finish(struct output *o)
{
	if (!o)
		return;
	if (o->started)
		pthread_join(o->thread, NULL);
	pthread_mutex_destroy(&o->mutex);
	close_fd(&o->pipe);
	close_fd(&o->file);
	free(o);
}

/* --- the journal --- */

int output_journal(const char *socket_path, const char *name, int *ret, struct error *e)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char head[128];
	/* identifier, unit, priority "info", whether lines begin with one, and three forwards */
	int len = snprintf(head, sizeof(head), "%.63s\n\n6\n1\n0\n0\n0\n", name), r;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		r = -errno;
	else
		r = write_whole(fd, head, (size_t)len);
	if (r)
		return error_set(e, r,
				 "cannot write to the journal at %s (%s): see agent.logs.to in "
				 "ax.yaml(5)",
				 socket_path, strerror(-r));
	shutdown(fd, SHUT_RD);
	*ret = take_fd(&fd);
	return 0;
}
