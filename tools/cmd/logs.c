/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax logs: what detached apps wrote. */
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "tools/cmd/commands.h"
#include "tools/lib/text.h"

#define CHUNK 65536

/* A log is a file and the one before it (launch/output.h). What is open is read to its end; then
 * comes the one that took its name. */
struct log_file {
	int fd;
	off_t at;		 /* what lies before it was printed */
	const char *name, *path; /* in the agent's answer */
	char *old;		 /* the path of the one before */
	long long id;
	struct text_stream text;
};

struct log_files {
	struct log_file *v;
	size_t n;
	const struct log_file *last; /* whose output was printed last */
	json_t *reply;
	bool clean; /* a terminal obeys what it is sent */
};

static void log_files_free(struct log_files *l)
{
	for (size_t i = 0; i < l->n; i++) {
		close_fd(&l->v[i].fd);
		free(l->v[i].old);
	}
	free(l->v);
	json_decref(l->reply);
}

/* Where the last *lines lines begin, and how many more there should be. A newline at the very end
 * ends a line and begins none. */
static int find_tail(int fd, uint32_t *lines, off_t *ret)
{
	autofree char *buf = malloc(CHUNK);
	struct stat st;
	off_t from;

	if (!buf || fstat(fd, &st))
		return buf ? -errno : -ENOMEM;
	from = *ret = st.st_size;
	while (*lines && from > 0) {
		size_t len = from < CHUNK ? (size_t)from : CHUNK;
		ssize_t n = pread(fd, buf, len, from - (off_t)len);

		if (n < 0)
			return -errno;
		if ((size_t)n < len) /* it was cut short meanwhile */
			break;
		for (size_t i = len; i-- > 0;) {
			off_t next = from - (off_t)len + (off_t)i + 1;

			if (buf[i] != '\n' || next == st.st_size)
				continue;
			*ret = next;
			if (--*lines == 0)
				return 0;
		}
		from -= (off_t)len;
	}
	if (st.st_size && *lines) {
		*ret = 0;
		--*lines;
	}
	return 0;
}

static int write_out(struct log_files *l, struct log_file *f, const char *p, size_t len)
{
	if (l->clean)
		text_stream_put(&f->text, p, len, stdout);
	else
		fwrite(p, 1, len, stdout);
	return ferror(stdout) ? -EPIPE : 0;
}

/* Prints what is behind f->at; with several files a line tells whose output follows. Returns a
 * negative errno, -EPIPE also for any failure to write (cmd_finish() tells which). */
static int print_rest(struct log_files *l, struct log_file *f)
{
	autofree char *buf = malloc(CHUNK);
	struct stat st;
	ssize_t n;
	int r = 0;

	if (!buf)
		return -ENOMEM;
	if (fstat(f->fd, &st) == 0 && st.st_size < f->at)
		f->at = 0; /* somebody emptied it */
	while (!r && (n = pread(f->fd, buf, CHUNK, f->at)) > 0) {
		if (l->n > 1 && l->last != f) {
			fputs(l->last ? "\n==> " : "==> ", stdout);
			text_put(f->name, stdout);
			printf(" (%lld) <==\n", f->id);
			l->last = f;
		}
		f->at += n;
		r = write_out(l, f, buf, (size_t)n);
	}
	if (r || n < 0)
		return r ? r : -errno;
	return fflush(stdout) ? -EPIPE : 0;
}

static bool is_file(int fd, const char *path)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
	       ours.st_dev == there.st_dev;
}

/* The file that follows the open one. -1: none, this one is the last. */
static int next_file(const struct log_file *f)
{
	int next, old;

	if (is_file(f->fd, f->path))
		return -1;
	next = open(f->path, O_RDONLY | O_CLOEXEC);
	old = open(f->old, O_RDONLY | O_CLOEXEC);
	/* two have come since: the older one first */
	if (next >= 0 && old >= 0 && !is_file(f->fd, f->old) && !is_file(next, f->old)) {
		close(next);
		return old;
	}
	close_fd(&old);
	return next;
}

static int print_new(struct log_files *l, struct log_file *f)
{
	int r = print_rest(l, f);

	while (!r) {
		int next = next_file(f);

		if (next < 0)
			return 0;
		/* what was written before it lost its name */
		r = print_rest(l, f);
		close_fd(&f->fd);
		f->fd = next;
		f->at = 0;
		r = r ? r : print_rest(l, f);
	}
	return r;
}

/* Opens it where its last `lines` lines begin (UINT32_MAX: all), perhaps in the file before. */
static int begin(struct log_file *f, uint32_t lines)
{
	bool all = lines == UINT32_MAX;
	off_t at = 0;
	int r, old;

	f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		return -errno;
	r = all ? 0 : find_tail(f->fd, &lines, &f->at);
	old = !r && lines ? open(f->old, O_RDONLY | O_CLOEXEC) : -1;
	if (old < 0)
		return r;
	r = all ? 0 : find_tail(old, &lines, &at);
	close_fd(&f->fd);
	f->fd = old;
	f->at = at;
	return r;
}

static int open_one(struct log_file *f, const json_t *item, uint32_t lines, struct error *e)
{
	int r;

	f->fd = -1;
	f->name = member_string(item, "name");
	f->path = member_string(item, "path");
	f->id = member_int(item, "id");
	if (!f->name || !f->path || !strchr(f->path, '/'))
		return error_set(e, -EPROTO,
				 "the agent's answer names no log file: are ax and the "
				 "agent of the same version?");
	if (asprintf(&f->old, "%s.1", f->path) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	r = begin(f, lines);
	return r ? error_set(e, r, "the log %s cannot be read: %s", f->path, strerror(-r)) : 0;
}

/* By their directory: a new file takes the name. Before the first read, so that nothing is missed
 * between the two. */
static int watch(const struct log_file *f, int inotify, struct error *e)
{
	autofree char *dir = strndup(f->path, (size_t)(strrchr(f->path, '/') - f->path));

	if (!dir || inotify_add_watch(inotify, dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
		return error_set(e, -errno, "the log %s cannot be followed: %s", f->path,
				 strerror(errno));
	return 0;
}

static int open_all(struct cmd *c, const char *app, uint32_t lines, int inotify,
		    struct log_files *l, struct error *e)
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
		r = open_one(&l->v[i], item, lines, e);
		if (!r && inotify >= 0)
			r = watch(&l->v[i], inotify, e);
		if (r)
			return r;
	}
	return 0;
}

/* Whether the events tell of this log: its file has its name, or the one of the file before. */
static bool concerns(const struct log_file *f, const char *buf, ssize_t len)
{
	const char *name = strrchr(f->path, '/') + 1;

	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *ev = (const void *)(buf + at);

		if ((ev->mask & IN_Q_OVERFLOW) || (ev->len && starts_with(ev->name, name)))
			return true;
		at += (ssize_t)(sizeof(*ev) + ev->len);
	}
	return false;
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
		for (size_t i = 0; i < l->n; i++) {
			r = concerns(&l->v[i], buf, n) ? print_new(l, &l->v[i]) : 0;
			if (r)
				return r;
		}
	}
}

static int print_all(struct log_files *l, bool more, struct error *e)
{
	for (size_t i = 0; i < l->n; i++) {
		struct log_file *f = &l->v[i];
		int r = print_new(l, f);

		if (!more)
			text_stream_end(&f->text, stdout);
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
	l.clean = isatty(STDOUT_FILENO);
	if (open_all(c, argv[0], a.lines, inotify, &l, &e))
		return cmd_failed(c, &e);
	r = print_all(&l, a.follow, &e);
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
				 "all are printed. A terminal gets escape sequences as text, a "
				 "file or a pipe the bytes as they are.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_app},
		},
};
