/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/util.h"

int error_set(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint64_t time_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t time_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

int64_t time_boot_s(void)
{
	return (int64_t)(time_boot_ns() / 1000000000);
}

int64_t time_unix_of_boot(int64_t boot_s)
{
	/* The difference of the clocks is rounded once: it is the same each time that it is asked.
	 */
	return boot_s + (int64_t)((time_real_ns() - time_boot_ns() + 500000000) / 1000000000);
}

int64_t time_unix_of_boot_ns(uint64_t boot_ns)
{
	return (int64_t)((time_real_ns() - (time_boot_ns() - boot_ns)) / 1000000000);
}

uint64_t time_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* A pipe has a writer (as that of a shell's <(...) does); nobody may ever open a FIFO. */
static int open_to_read(const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISFIFO(st.st_mode) && (fstatfs(fd, &fs) < 0 || fs.f_type != PIPEFS_MAGIC))
		return -ESPIPE;
	return fcntl(fd, F_SETFL, 0) < 0 ? -errno : take_fd(&fd);
}

int file_read(const char *path, size_t max, char **ret)
{
	autoclose int fd = open_to_read(path);
	size_t size = 4096, len = 0;
	autofree char *buf = NULL;
	struct stat st;

	if (fd < 0)
		return fd;
	/* (files of /proc say that they are empty) */
	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size >= size)
		size = (size_t)st.st_size + 1;
	if (size > max)
		size = max + 1;
	buf = malloc(size + 1);
	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, buf + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
		if (len == size) {
			char *more;

			size *= 2;
			more = realloc(buf, size + 1);
			if (!more)
				return -ENOMEM;
			buf = more;
		}
	}
	buf[len] = 0;
	*ret = take_ptr(&buf);
	return 0;
}

void text_make_printable(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

int write_whole(int fd, const char *text, size_t len)
{
	ssize_t n = write(fd, text, len);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO; /* errno is of another time */
}

int file_write(const char *path, const char *text)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0)
		return -errno;
	return write_whole(fd, text, len);
}

int file_replace(const char *path, unsigned mode, const char *text)
{
	autofree char *beside = NULL;
	autoclose int fd = -1;
	int r;

	if (asprintf(&beside, "%s.new", path) < 0)
		return -ENOMEM;
	unlink(beside); /* of an agent that was killed */
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = write_whole(fd, text, strlen(text));
	if (!r && rename(beside, path) < 0)
		r = -errno;
	if (r)
		unlink(beside);
	return r;
}

int mkdir_parents(const char *path, unsigned mode)
{
	char buf[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(buf))
		return -ENAMETOOLONG;
	memcpy(buf, path, len + 1);
	for (char *p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(buf, mode) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(buf, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

bool fd_leaves(int fd, unsigned more)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) < 0 || (rlim_t)fd + more < files.rlim_cur;
}
