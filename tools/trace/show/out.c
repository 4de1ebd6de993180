/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tools/lib/text.h"
#include "tools/trace/show/out.h"

int trace_out_open(struct trace_out *o, int fd)
{
	*o = (struct trace_out){.fd = fd, .buf = malloc(TRACE_OUT_SIZE)};
	return o->buf ? 0 : -ENOMEM;
}

int trace_out_memory(struct trace_out *o, struct error *e)
{
	autoclose int fd = memfd_create("ax trace", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : trace_out_open(o, fd);

	if (r < 0)
		return error_set(e, r, "cannot have memory for records: %s", strerror(-r));
	take_fd(&fd);
	return 0;
}

int trace_out_give(struct trace_out *o, int (*to)(void *arg, const char *text, size_t len),
		   void *arg)
{
	off_t len = lseek(o->fd, 0, SEEK_CUR);
	autofree char *all = NULL;
	size_t n = o->n;

	/* hardly ever more than the buffer holds */
	if (len == 0 && !o->error) {
		o->n = 0;
		return to(arg, o->buf, n);
	}
	trace_out_flush(o);
	len = lseek(o->fd, 0, SEEK_CUR);
	all = len < 0 || o->error ? NULL : malloc((size_t)len + 1);
	if (!all || pread(o->fd, all, (size_t)len, 0) != len || ftruncate(o->fd, 0) < 0 ||
	    lseek(o->fd, 0, SEEK_SET) < 0)
		return -ENOMEM;
	return to(arg, all, (size_t)len);
}

void trace_out_flush(struct trace_out *o)
{
	size_t done = 0;

	while (done < o->n && !o->error) {
		ssize_t r = write(o->fd, o->buf + done, o->n - done);

		if (r >= 0)
			done += (size_t)r;
		else if (errno != EINTR)
			o->error = errno;
	}
	o->n = 0;
}

int trace_out_file(struct trace_out *o, const char *path, struct error *e)
{
	int fd = STDOUT_FILENO;

	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_set(e, -errno, "cannot write to '%.200s': %s", path, strerror(errno));
	if (trace_out_open(o, fd) == 0)
		return 0;
	if (path)
		close(fd);
	return error_set(e, -ENOMEM, "out of memory");
}

/* Nobody else is to read it, now or later: who has a file open goes on reading whatever its mode
 * becomes, so one that others may have open is replaced. */
static int open_private(const char *path)
{
	for (int tries = 0; tries < 3; tries++) {
		autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (!S_ISREG(st.st_mode))
			return take_fd(&fd);
		if (st.st_uid != geteuid())
			return -EPERM;
		if (!(st.st_mode & 077))
			return ftruncate(fd, 0) < 0 ? -errno : take_fd(&fd);
		if (unlink(path) < 0)
			return -errno;
	}
	return -EEXIST;
}

int trace_out_private(struct trace_out *o, const char *path, struct error *e)
{
	int fd = open_private(path), r = fd;

	if (r >= 0)
		r = trace_out_open(o, fd);
	if (r == 0)
		return 0;
	if (fd >= 0)
		close(fd);
	if (fd == -EPERM)
		return error_set(e, r,
				 "'%.200s' is there and belongs to another user, who could read "
				 "it: remove it, or name another file",
				 path);
	return error_set(e, r, "cannot write to '%.200s': %s", path, strerror(-r));
}

void trace_out_close(struct trace_out *o)
{
	if (!o->buf)
		return;
	trace_out_flush(o);
	/* some file systems tell only here that there was no room */
	if (o->fd > STDERR_FILENO && close(o->fd) < 0 && !o->error)
		o->error = errno;
	o->fd = -1;
	free(o->buf);
	o->buf = NULL;
}

void trace_out_put(struct trace_out *o, const char *s, size_t len)
{
	while (len > TRACE_OUT_SIZE - o->n) {
		size_t part = TRACE_OUT_SIZE - o->n;

		memcpy(o->buf + o->n, s, part);
		o->n += part;
		trace_out_flush(o);
		s += part;
		len -= part;
	}
	memcpy(o->buf + o->n, s, len);
	o->n += len;
}

void trace_out_text(struct trace_out *o, const char *s)
{
	trace_out_put(o, s, strlen(s));
}

void trace_out_printf(struct trace_out *o, const char *fmt, ...)
{
	autofree char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		o->error = ENOMEM;
		return;
	}
	trace_out_put(o, text, (size_t)n);
}

/* --- numbers --- */

char *trace_write_u64(char *at, uint64_t v)
{
	char buf[TRACE_NUMBER_MAX], *p = buf + sizeof(buf);
	size_t n;

	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	n = (size_t)(buf + sizeof(buf) - p);
	memcpy(at, p, n);
	return at + n;
}

char *trace_write_s64(char *at, int64_t v)
{
	if (v >= 0)
		return trace_write_u64(at, (uint64_t)v);
	*at++ = '-';
	return trace_write_u64(at, 0 - (uint64_t)v);
}

static const char hex_digits[] = "0123456789abcdef";

char *trace_write_hex(char *at, uint64_t v)
{
	int digits = v ? (67 - __builtin_clzll(v)) / 4 : 1;

	*at++ = '0';
	*at++ = 'x';
	while (digits--)
		*at++ = hex_digits[v >> (4 * digits) & 15];
	return at;
}

void trace_out_u64(struct trace_out *o, uint64_t v)
{
	trace_out_end(o, trace_write_u64(trace_out_room(o, TRACE_NUMBER_MAX), v));
}

/* --- strings --- */

static bool is_plain(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\')
			return false;
	return true;
}

/* The character at s (UTF-8) and its length; of a byte that begins none, itself. */
static uint32_t decode_utf8(const unsigned char *s, size_t len, size_t *used)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 1;
	uint32_t c = n == 4 ? s[0] & 7 : n == 3 ? s[0] & 15 : n == 2 ? s[0] & 31 : s[0];

	*used = 1;
	if (n == 1 || n > len)
		return s[0];
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return s[0];
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return s[0];
	*used = n;
	return c;
}

static char *write_unit(char *at, uint32_t c)
{
	*at++ = '\\';
	*at++ = 'u';
	for (int shift = 12; shift >= 0; shift -= 4)
		*at++ = hex_digits[c >> shift & 15];
	return at;
}

static char *write_json(char *at, uint32_t c)
{
	if (c >= 0x10000)
		return write_unit(write_unit(at, 0xd7c0 + (c >> 10)), 0xdc00 + (c & 0x3ff));
	if (c == '"' || c == '\\' || c < ' ' || c > '~')
		return write_unit(at, c);
	*at++ = (char)c;
	return at;
}

void trace_out_json(struct trace_out *o, const char *s, size_t len)
{
	trace_out_char(o, '"');
	if (is_plain(s, len)) {
		trace_out_put(o, s, len);
		len = 0;
	}
	while (len) {
		size_t used;
		uint32_t c = decode_utf8((const unsigned char *)s, len, &used);

		trace_out_end(o, write_json(trace_out_room(o, 16), c));
		s += used;
		len -= used;
	}
	trace_out_char(o, '"');
}

void trace_out_safe(struct trace_out *o, const char *s, size_t len)
{
	autofree char *copy = NULL, *escaped = NULL;

	if (is_plain(s, len)) {
		trace_out_put(o, s, len);
		return;
	}
	copy = strndup(s, len);
	escaped = copy ? text_escape(copy) : NULL;
	if (escaped)
		trace_out_text(o, escaped);
	else
		o->error = ENOMEM;
}

void trace_out_quoted(struct trace_out *o, const char *s, size_t len)
{
	trace_out_char(o, '"');
	for (size_t n; len; s += n, len -= n) {
		for (n = 0; n < len && s[n] && s[n] != '"' && s[n] != '\\';)
			n++;
		trace_out_safe(o, s, n);
		if (n == len)
			break;
		if (s[n])
			trace_out_char(o, '\\');
		trace_out_put(o, s[n] ? s + n : "\\x00", s[n] ? 1 : 4);
		n++;
	}
	trace_out_char(o, '"');
}

void trace_out_quoted_char(struct trace_out *o, char c)
{
	trace_out_char(o, '\'');
	if (c == '\'' || c == '\\')
		trace_out_char(o, '\\');
	if (c >= ' ' && c <= '~')
		trace_out_char(o, c);
	else
		trace_out_printf(o, "\\x%02x", (unsigned char)c);
	trace_out_char(o, '\'');
}

void trace_out_bytes(struct trace_out *o, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char *at = trace_out_room(o, 2);

		*at++ = hex_digits[(unsigned char)s[i] >> 4];
		*at++ = hex_digits[s[i] & 15];
		trace_out_end(o, at);
	}
}

const char *trace_thousands(uint64_t v, char buf[TRACE_THOUSANDS_MAX])
{
	char digits[24], *at = buf;
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return buf;
}
