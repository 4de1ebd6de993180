// SPDX-License-Identifier: GPL-2.0-or-later
/* The bytes of a file or a pipe, read and never mapped: a file that is cut off while it is mapped
 * kills its reader. */
#include <sys/stat.h>

#include "probes/perfdata/priv.h"

int source_open(struct source *s, int fd)
{
	struct stat st;

	*s = (struct source){.fd = fd};
	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	s->regular = S_ISREG(st.st_mode);
	s->size = s->regular ? (uint64_t)st.st_size : 0;
	s->buf = malloc(SOURCE_SIZE);
	return s->buf ? 0 : -ENOMEM;
}

void source_close(struct source *s)
{
	close_fd(&s->fd);
	free(s->buf);
	s->buf = NULL;
}

static ssize_t read_some(const struct source *s, uint8_t *to, size_t len, uint64_t offset)
{
	ssize_t n;

	do
		n = s->regular ? pread(s->fd, to, len, (off_t)offset) : read(s->fd, to, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int source_need(struct source *s, size_t len)
{
	while (s->n - s->at < len && !s->ended) {
		ssize_t n;

		memmove(s->buf, s->buf + s->at, s->n - s->at);
		s->n -= s->at;
		s->at = 0;
		n = read_some(s, s->buf + s->n, SOURCE_SIZE - s->n, s->offset + s->n);
		if (n < 0)
			return (int)n;
		s->n += (size_t)n;
		s->ended = n == 0;
	}
	return s->n - s->at >= len;
}

void source_take(struct source *s, size_t len)
{
	s->at += len;
	s->offset += len;
}

void source_seek(struct source *s, uint64_t offset)
{
	s->at = s->n = 0;
	s->offset = offset;
	s->ended = offset >= s->size;
}

int source_load(const struct source *s, uint64_t offset, uint64_t len, size_t max, uint8_t **ret)
{
	autofree uint8_t *buf = NULL;
	size_t done = 0;

	if (!s->regular || offset > s->size || len > s->size - offset)
		return -EBADMSG;
	if (len > max)
		return -EFBIG;
	buf = malloc(len + 1);
	if (!buf)
		return -ENOMEM;
	while (done < len) {
		ssize_t n = read_some(s, buf + done, len - done, offset + done);

		if (n < 0)
			return (int)n;
		if (n == 0) /* it became shorter */
			return -EBADMSG;
		done += (size_t)n;
	}
	buf[len] = 0;
	*ret = take_ptr(&buf);
	return 0;
}
