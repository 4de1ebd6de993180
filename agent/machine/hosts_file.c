/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "machine/hosts_file.h"

#define LOCK	     "/run/ax/.hosts-lock" /* of all instances */
#define LABEL	     "security.selinux"
#define TRIES	     5
#define MARK_BEGIN   "# begin of ax, instance "
#define MARK_END     "# end of ax, instance "
#define MARK_PADDING 64

/* --- text --- */

static bool is_mark(const char *line, size_t len, const char *mark, const char *owner)
{
	size_t n = strlen(mark), m = strlen(owner);

	while (len && (line[len - 1] == ' ' || line[len - 1] == '\r'))
		len--;
	return len == n + m && strncmp(line, mark, n) == 0 && strncmp(line + n, owner, m) == 0;
}

/* The end of the line, behind its newline. */
static const char *next_line(const char *p)
{
	const char *end = strchrnul(p, '\n');

	return *end ? end + 1 : end;
}

/* Where a block that begins at p ends; NULL: its end is missing, so that nothing is known of it but
 * its first line. */
static const char *block_end(const char *p, const char *owner)
{
	for (p = next_line(p); *p; p = next_line(p)) {
		size_t len = strcspn(p, "\n");

		if (is_mark(p, len, MARK_END, owner))
			return next_line(p);
		if (strncmp(p, MARK_BEGIN, strlen(MARK_BEGIN)) == 0)
			return NULL;
	}
	return NULL;
}

char *hosts_block_replace(const char *text, const char *owner, const char *lines)
{
	size_t size = strlen(text) + strlen(lines) + 2 * (strlen(owner) + MARK_PADDING), n = 0;
	char *ret = malloc(size);

	if (!ret)
		return NULL;
	for (const char *p = text, *next; *p; p = next) {
		next = next_line(p);
		if (is_mark(p, strcspn(p, "\n"), MARK_BEGIN, owner)) {
			const char *end = block_end(p, owner);

			next = end ? end : next;
			continue;
		}
		memcpy(ret + n, p, (size_t)(next - p));
		n += (size_t)(next - p);
	}
	ret[n] = 0;
	if (*lines)
		snprintf(ret + n, size - n, "%s" MARK_BEGIN "%s\n%s" MARK_END "%s\n",
			 n && ret[n - 1] != '\n' ? "\n" : "", owner, lines, owner);
	return ret;
}

static bool line_has_name(const char *line, size_t len, const char *name)
{
	size_t wanted = strlen(name), i = strcspn(line, " \t\n#");

	len = strcspn(line, "#\n") < len ? strcspn(line, "#\n") : len;
	while (i < len) {
		size_t n;

		i += strspn(line + i, " \t\r");
		n = strcspn(line + i, " \t\r\n#");
		if (i < len && n == wanted && strncasecmp(line + i, name, n) == 0)
			return true;
		if (!n)
			break;
		i += n;
	}
	return false;
}

bool hosts_has_name(const char *text, const char *name)
{
	bool inside = false;

	for (const char *p = text; *p; p = next_line(p)) {
		if (strncmp(p, MARK_BEGIN, strlen(MARK_BEGIN)) == 0)
			inside = true;
		else if (strncmp(p, MARK_END, strlen(MARK_END)) == 0)
			inside = false;
		else if (!inside && line_has_name(p, strcspn(p, "\n"), name))
			return true;
	}
	return false;
}

/* --- the file --- */

static int write_all(int fd, const char *text, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, text + done, len - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int copy_attributes(const char *path, const struct stat *st, int fd)
{
	char label[256];
	ssize_t n = getxattr(path, LABEL, label, sizeof(label));

	if (fchown(fd, st->st_uid, st->st_gid) < 0 || fchmod(fd, st->st_mode & 07777) < 0)
		return -errno;
	if (n > 0 && fsetxattr(fd, LABEL, label, (size_t)n, 0) < 0)
		return -errno;
	return 0;
}

static bool same_file(const char *path, const struct stat *was)
{
	struct stat now;

	return stat(path, &now) == 0 && now.st_ino == was->st_ino && now.st_dev == was->st_dev &&
	       now.st_size == was->st_size && now.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

/* -EAGAIN: somebody else has written it. -EBUSY: it is a mount. */
static int replace(const char *path, const char *owner, const struct stat *st, const char *text)
{
	autoclose int fd = -1;
	char new[PATH_MAX];
	int r;

	if (snprintf(new, sizeof(new), "%s.ax-%s", path, owner) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	unlink(new); /* of an agent that was killed */
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text, strlen(text));
	r = r ? r : copy_attributes(path, st, fd);
	if (!r && !same_file(path, st))
		r = -EAGAIN;
	if (!r && rename(new, path) < 0)
		r = -errno;
	if (r)
		unlink(new);
	return r;
}

static int write_in_place(const char *path, const struct stat *st, const char *text)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	if (!same_file(path, st))
		return -EAGAIN;
	r = write_all(fd, text, strlen(text));
	return r ? r : ftruncate(fd, (off_t)strlen(text)) < 0 ? -errno : 0;
}

static int update(const char *path, const char *owner, const char *lines)
{
	autofree char *text = NULL, *next = NULL;
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	r = file_read(path, HOSTS_FILE_MAX, &text);
	if (r || !text)
		return r;
	/* what is no text is not touched */
	if (strlen(text) != (size_t)st.st_size)
		return same_file(path, &st) ? -EBADMSG : -EAGAIN;
	next = hosts_block_replace(text, owner, lines);
	if (!next)
		return -ENOMEM;
	if (streq(text, next))
		return 0;
	r = replace(path, owner, &st, next);
	/* a mount, or a directory that is read-only */
	if (r == -EBUSY || r == -EXDEV || r == -EROFS)
		r = write_in_place(path, &st, next);
	return r;
}

/* Most agents have nothing to do with that file. */
static bool has_block(const char *path, const char *owner)
{
	autofree char *text = NULL;

	if (file_read(path, HOSTS_FILE_MAX, &text))
		return true;
	for (const char *p = text; *p; p = next_line(p))
		if (is_mark(p, strcspn(p, "\n"), MARK_BEGIN, owner))
			return true;
	return false;
}

int hosts_file_update(const char *path, const char *owner, const char *lines, struct error *e)
{
	autoclose int lock = -1;
	char real[PATH_MAX];
	int r = -EAGAIN;

	if (!realpath(path, real)) {
		if (errno == ENOENT && !*lines)
			return 0;
		return error_set(e, -errno, "there is no %s (%s)", path, strerror(errno));
	}
	if (!*lines && !has_block(real, owner))
		return 0;
	mkdir_parents("/run/ax", 0755);
	lock = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock >= 0)
		flock(lock, LOCK_EX);
	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = update(real, owner, lines);
	return r ? error_set(e, r, "cannot write %s (%s)", real,
			     r == -EBADMSG ? "it is no text" : strerror(-r))
		 : 0;
}
