/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax logs: what detached apps wrote. */
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "tools/cmd/commands.h"
#include "tools/lib/text.h"

#define CHUNK 65536

struct log_file {
	int fd;
	int watch;
	off_t at;		 /* what lies before it was printed */
	const char *name, *path; /* in the agent's answer */
	long long id;
};

struct log_files {
	struct log_file *v;
	size_t n;
	const struct log_file *last; /* whose output was printed last */
	json_t *reply;
};

static void log_files_free(struct log_files *l)
{
	for (size_t i = 0; i < l->n; i++)
		close_fd(&l->v[i].fd);
	free(l->v);
	json_decref(l->reply);
}

/* Where the last `lines` lines begin. A newline at the very end ends a line and begins none. */
static int find_tail(int fd, off_t end, uint32_t lines, off_t *ret)
{
	autofree char *buf = malloc(CHUNK);
	off_t from = end;
	uint32_t seen = 0;

	if (!buf)
		return -ENOMEM;
	*ret = lines ? 0 : end;
	while (lines && from > 0) {
		size_t len = from < CHUNK ? (size_t)from : CHUNK;
		ssize_t n = pread(fd, buf, len, from - (off_t)len);

		if (n < 0)
			return -errno;
		if ((size_t)n < len) /* it was cut short meanwhile */
			return 0;
		for (size_t i = len; i-- > 0;) {
			off_t next = from - (off_t)len + (off_t)i + 1;

			if (buf[i] == '\n' && next != end && ++seen == lines) {
				*ret = next;
				return 0;
			}
		}
		from -= (off_t)len;
	}
	return 0;
}

/* Prints what was added; with several files a line tells whose output follows. Returns a negative
 * errno, -EPIPE also for any failure to write (cmd_finish() tells which). */
static int print_new(struct log_files *l, struct log_file *f)
{
	autofree char *buf = malloc(CHUNK);
	struct stat st;
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	if (fstat(f->fd, &st) == 0 && st.st_size < f->at)
		f->at = 0; /* somebody emptied it */
	while ((n = pread(f->fd, buf, CHUNK, f->at)) > 0) {
		if (l->n > 1 && l->last != f) {
			fputs(l->last ? "\n==> " : "==> ", stdout);
			text_put(f->name, stdout);
			printf(" (%lld) <==\n", f->id);
			l->last = f;
		}
		f->at += n;
		if (fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
			return -EPIPE;
	}
	if (n < 0)
		return -errno;
	return fflush(stdout) ? -EPIPE : 0;
}

static int open_one(struct log_file *f, const json_t *item, int inotify, struct error *e)
{
	f->fd = f->watch = -1;
	f->name = member_string(item, "name");
	f->path = member_string(item, "path");
	f->id = member_int(item, "id");
	if (!f->name || !f->path)
		return error_set(e, -EPROTO,
				 "the agent's answer names no log file: are ax and the "
				 "agent of the same version?");
	f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		return error_set(e, -errno, "the log %s cannot be read: %s", f->path,
				 strerror(errno));
	if (inotify < 0)
		return 0;
	/* before the first read, so that nothing is missed between the two */
	f->watch = inotify_add_watch(inotify, f->path, IN_MODIFY);
	if (f->watch < 0)
		return error_set(e, -errno, "the log %s cannot be followed: %s", f->path,
				 strerror(errno));
	return 0;
}

static int open_all(struct cmd *c, const char *app, int inotify, struct log_files *l,
		    struct error *e)
{
	json_t *logs, *item;
	size_t i;
	int r;

	r = cmd_ask(c, json_pack("{s:s,s:s}", "op", "logs", "app", app), &l->reply, e);
	if (r)
		return r;
	logs = json_object_get(l->reply, "logs");
	l->v = calloc(json_array_size(logs) + 1, sizeof(*l->v));
	if (!l->v)
		return error_set(e, -ENOMEM, "out of memory");
	json_array_foreach (logs, i, item) {
		l->n++;
		r = open_one(&l->v[i], item, inotify, e);
		if (r)
			return r;
	}
	return 0;
}

/* Until the reader of our output goes away, or for ever. */
static int follow(struct log_files *l, int inotify)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct pollfd fds[] = {{.fd = inotify, .events = POLLIN}, {.fd = STDOUT_FILENO}};

	for (;;) {
		ssize_t n;
		int r;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents & (POLLERR | POLLHUP))
			return 0;
		n = read(inotify, buf, sizeof(buf));
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		/* which file it was matters little: reading at the end of another costs nothing */
		for (size_t i = 0; i < l->n; i++) {
			r = print_new(l, &l->v[i]);
			if (r)
				return r;
		}
	}
}

static int print_all(struct log_files *l, uint32_t lines, struct error *e)
{
	for (size_t i = 0; i < l->n; i++) {
		struct log_file *f = &l->v[i];
		struct stat st;
		int r = 0;

		if (lines != UINT32_MAX)
			r = fstat(f->fd, &st) ? -errno
					      : find_tail(f->fd, st.st_size, lines, &f->at);
		r = r ? r : print_new(l, f);
		if (r)
			return error_set(e, r, "the log %s cannot be read: %s", f->path,
					 strerror(-r));
	}
	return 0;
}

struct args {
	uint32_t lines;
	bool follow;
};

static int run(struct cmd *c, int argc, char **argv)
{
	CLEANUP(log_files_free) struct log_files l = {0};
	struct args a = {.lines = UINT32_MAX};
	autoclose int inotify = -1;
	struct error e = {0};
	int status, r;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "give the name or the id of one app");
	cmd_output();
	if (a.follow)
		inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (a.follow && inotify < 0) {
		error_set(&e, -errno, "inotify does not work: %s", strerror(errno));
		return cmd_failed(c, &e);
	}
	if (open_all(c, argv[0], inotify, &l, &e))
		return cmd_failed(c, &e);
	r = print_all(&l, a.lines, &e);
	if (!r && a.follow)
		r = follow(&l, inotify);
	if (r == -EPIPE)
		return cmd_finish(c, CMD_FAILED);
	if (r && !e.code)
		error_set(&e, r, "following the log failed: %s", strerror(-r));
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

static const struct opt options[] = {
	{"follow", 'f', OPT_FLAG, NULL, "print what is added until Ctrl-C",
	 offsetof(struct args, follow), NULL},
	{"tail", 'n', OPT_NUMBER, "N", "begin with the last N lines", offsetof(struct args, lines),
	 NULL},
};

const struct command cmd_logs = {
	.name = "logs",
	.about = "print the output of a detached app",
	.run = run,
	.syntax =
		{
			.usage = "ax logs [-f] [--tail N] APP",
			.about = "Prints what a detached app has written to its standard output "
				 "and error. APP is a name or an id; of several apps of that name "
				 "all are printed.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_app},
		},
};
