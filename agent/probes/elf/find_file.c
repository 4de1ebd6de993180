// SPDX-License-Identifier: GPL-2.0-or-later
/* From what people call a program or a library to its file, in the view of a process if there is
 * one. */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "probes/elf/priv.h"

#define LD_CACHE     "/etc/ld.so.cache"
#define LD_CACHE_MAX (16u << 20)

struct search {
	const char *name;
	int pid;
	char root[32]; /* "", "/proc/PID/root" */
	int root_fd;
	char path[PATH_MAX]; /* of the last file that was tried, inside the root */
	char link[64];	     /* /proc/PID/...: what the process has, if no path leads there */
	int fd;		     /* of what was found */
	bool denied, directory;
};

/* An absolute link inside of a container means the container's root, not ours. */
static int open_in_root(const struct search *s, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};

	if (s->root_fd < 0)
		return open(path, flags | O_CLOEXEC);
	return (int)syscall(SYS_openat2, s->root_fd, path, &how, sizeof(how));
}

/* Without O_NONBLOCK a FIFO of that name would be waited for. */
static bool try_path(struct search *s, const char *path)
{
	struct stat st;
	int fd;

	if (snprintf(s->path, sizeof(s->path), "%s", path) >= (int)sizeof(s->path))
		return false;
	fd = open_in_root(s, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		/* of the directories of a list some may be other people's */
		s->denied |= (errno == EACCES || errno == EPERM) &&
			     (s->pid || strchr(s->name, '/') || !access(path, F_OK));
		return false;
	}
	if (fstat(fd, &st) || S_ISDIR(st.st_mode)) {
		s->directory |= S_ISDIR(st.st_mode);
		close(fd);
		return false;
	}
	s->fd = fd;
	return true;
}

static bool try_in(struct search *s, const char *dir, size_t dir_len, const char *name)
{
	char path[PATH_MAX];

	if (!dir_len || dir[0] != '/')
		return false;
	if (snprintf(path, sizeof(path), "%.*s/%s", (int)dir_len, dir, name) >= (int)sizeof(path))
		return false;
	return try_path(s, path);
}

static bool try_list(struct search *s, const char *dirs, const char *name)
{
	for (; dirs && *dirs;
	     dirs += dirs[strcspn(dirs, ":")] ? strcspn(dirs, ":") + 1 : strcspn(dirs, ":"))
		if (try_in(s, dirs, strcspn(dirs, ":"), name))
			return true;
	return false;
}

/* The name ends where the version starts. */
static bool is_stem(const char *name, const char *file)
{
	size_t n = strlen(name);

	return strncmp(file, name, n) == 0 && starts_with(file + n, ".so") &&
	       (!file[n + 3] || file[n + 3] == '.');
}

/* A library's file name: as it was given ("libc.so.6"), or what "c" and "libc" are short for. */
static bool library_matches(const char *name, const char *file)
{
	if (streq(name, file) || is_stem(name, file))
		return true;
	return starts_with(file, "lib") && is_stem(name, file + 3);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool same_file(const char *path, const struct stat *st)
{
	struct stat other;

	return !stat(path, &other) && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

/* The file behind a link of /proc/PID: its path may be that of another file now, or of none. */
static bool try_link(struct search *s, const char *path, const char *link)
{
	struct stat st;

	if (try_path(s, path)) {
		if (fstat(s->fd, &st) == 0 && same_file(link, &st))
			return true;
		close_fd(&s->fd);
	}
	s->fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0)
		return false;
	snprintf(s->link, sizeof(s->link), "%s", link);
	return true;
}

static bool try_mapping(struct search *s, const char *range, const char *path)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/map_files/%.*s", s->pid, (int)strcspn(range, " "),
		 range);
	return access(link, F_OK) ? try_path(s, path) : try_link(s, path, link);
}

/* What a process has mapped is what it runs, whatever else is installed by now: under that path, or
 * without one as a library. */
static bool try_maps(struct search *s, const char *wanted)
{
	static const char deleted[] = " (deleted)";
	char maps[64], line[PATH_MAX + 128];
	autofile FILE *f = NULL;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", s->pid);
	f = fopen(maps, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *path = strchr(line, '/');
		size_t len;

		line[strcspn(line, "\n")] = 0;
		len = path ? strlen(path) : 0;
		if (len > strlen(deleted) && streq(path + len - strlen(deleted), deleted))
			path[len - strlen(deleted)] = 0;
		if (path &&
		    (wanted ? streq(path, wanted) : library_matches(s->name, base_name(path))) &&
		    try_mapping(s, line, path))
			return true;
	}
	return false;
}

/* As the process has it in its list: without links on the way. The file need not be there. */
static bool try_mapped_path(struct search *s, const char *path)
{
	autofree char *dir = strdup(path);
	char real[PATH_MAX], whole[PATH_MAX + NAME_MAX + 2];
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!s->pid || !slash)
		return false;
	if (realpath(path, real) && try_maps(s, real))
		return true;
	*slash = 0;
	if (realpath(*dir ? dir : "/", real)) {
		snprintf(whole, sizeof(whole), "%s/%s", streq(real, "/") ? "" : real, slash + 1);
		if (try_maps(s, whole))
			return true;
	}
	return try_maps(s, path);
}

/*
 * ld.so.cache, glibc 2.2 and later: a header of 48 bytes (magic, number of libraries, length of the
 * strings), and entries of 24 (flags, then the offsets of name and path from the header on).
 * Before glibc 2.32 an older table (header of 16 bytes, entries of 12) stands before it.
 */
#define NEW_MAGIC "glibc-ld.so.cache1.1"
#define OLD_MAGIC "ld.so-1.7.0"

static size_t cache_start(const uint8_t *c, size_t len)
{
	uint64_t at;

	if (len < 16 || memcmp(c, OLD_MAGIC, strlen(OLD_MAGIC)) != 0)
		return 0;
	at = 16 + 12 * (uint64_t)get_u32(c + 12);
	at = (at + 7) & ~7ull;
	return at < len ? (size_t)at : len;
}

static bool is_64bit(uint32_t flags)
{
#ifdef __aarch64__
	return (flags & 0xff00) == 0x0a00;
#else
	return (flags & 0xff00) == 0x0300;
#endif
}

static bool try_cache(struct search *s)
{
	autofree char *text = NULL;
	autoclose int fd = open_in_root(s, LD_CACHE, O_RDONLY);
	const uint8_t *c;
	struct stat st;
	size_t len, n;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > LD_CACHE_MAX)
		return false;
	text = calloc(1, (size_t)st.st_size + 1); /* a NUL ends the last string */
	if (!text || read(fd, text, (size_t)st.st_size) != st.st_size)
		return false;
	c = (const uint8_t *)text;
	len = (size_t)st.st_size;
	n = cache_start(c, len);
	c += n;
	len -= n;
	if (len < 48 || memcmp(c, NEW_MAGIC, strlen(NEW_MAGIC)) != 0)
		return false;
	n = get_u32(c + 20);
	for (size_t i = 0; i < n && 48 + 24 * (i + 1) <= len; i++) {
		const uint8_t *entry = c + 48 + 24 * i;
		uint32_t key = get_u32(entry + 4), value = get_u32(entry + 8);

		if (key < len && value < len && is_64bit(get_u32(entry)) &&
		    library_matches(s->name, (const char *)c + key) &&
		    try_path(s, (const char *)c + value))
			return true;
	}
	return false;
}

/* musl has no cache; its libraries, and those that no ldconfig has seen, are found by name. */
static bool try_directories(struct search *s)
{
	static const char *const dirs =
#ifdef __aarch64__
		"/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
#else
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
#endif
		"/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib";
	char file[NAME_MAX + 1];

	if (try_list(s, dirs, s->name))
		return true;
	if (snprintf(file, sizeof(file), "lib%s.so", s->name) >= (int)sizeof(file))
		return false;
	return try_list(s, dirs, file);
}

static bool try_library(struct search *s)
{
	char file[NAME_MAX + 1];

	if (snprintf(file, sizeof(file), "lib%s.so", s->name) >= (int)sizeof(file))
		return false;
	if (!s->pid && (try_list(s, getenv("LD_LIBRARY_PATH"), s->name) ||
			try_list(s, getenv("LD_LIBRARY_PATH"), file)))
		return true;
	return try_cache(s) || try_directories(s);
}

static bool try_program(struct search *s)
{
	const char *dirs = getenv("PATH");

	if (s->pid || !dirs || !*dirs)
		dirs = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	return try_list(s, dirs, s->name);
}

/* The path by which the kernel, in our view of the file system, finds what was opened. */
static char *kernel_path(const struct search *s)
{
	char link[64], real[PATH_MAX], path[PATH_MAX + 32];
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", s->fd);
	n = readlink(link, real, sizeof(real) - 1);
	if (fstat(s->fd, &st))
		return NULL;
	if (n > 0) {
		real[n] = 0;
		if (real[0] == '/' && same_file(real, &st))
			return strdup(real);
		snprintf(path, sizeof(path), "%s%s", s->root, real);
		if (real[0] == '/' && same_file(path, &st))
			return strdup(path);
	}
	snprintf(path, sizeof(path), "%s%s", s->root, s->path);
	if (same_file(path, &st))
		return strdup(path);
	if (same_file(s->link, &st))
		return strdup(s->link);
	errno = ENOENT;
	return NULL;
}

static bool try_executable(struct search *s)
{
	char exe[64], target[PATH_MAX];
	ssize_t n;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", s->pid);
	n = readlink(exe, target, sizeof(target) - 1);
	s->fd = open(exe, O_RDONLY | O_CLOEXEC);
	if (n < 0 || s->fd < 0)
		return false;
	target[n] = 0;
	snprintf(s->path, sizeof(s->path), "%s", target);
	snprintf(s->link, sizeof(s->link), "%s", exe);
	return true;
}

static bool find(struct search *s)
{
	char absolute[PATH_MAX], own[32];

	snprintf(own, sizeof(own), "/proc/%d/exe", s->pid);
	if (!*s->name || (s->pid && streq(s->name, own)))
		return s->pid && try_executable(s);
	if (s->name[0] == '/')
		return try_mapped_path(s, s->name) || try_path(s, s->name);
	if (strchr(s->name, '/')) {
		/* relative to where the user is, also when it is about a process */
		close_fd(&s->root_fd);
		s->root[0] = 0;
		return try_mapped_path(s, s->name) ||
		       (realpath(s->name, absolute) && try_path(s, absolute));
	}
	if (s->pid && try_maps(s, NULL))
		return true;
	if (strstr(s->name, ".so"))
		return try_library(s);
	return try_program(s) || try_library(s);
}

static int not_found(const struct search *s, struct error *e)
{
	if (s->denied)
		return error_set(e, -EACCES, "%s may not be read: run as root", s->path);
	if (!*s->name)
		return error_set(e, s->pid ? -ESRCH : -EINVAL,
				 s->pid ? "process %d has no program: has it ended?"
					: "a program or library must be named",
				 s->pid);
	if (strchr(s->name, '/') && s->directory)
		return error_set(e, -EISDIR,
				 "%s is a directory: name a program or a shared library", s->name);
	if (strchr(s->name, '/'))
		return error_set(e, -ENOENT, "there is no file %s%s", s->name,
				 *s->root ? " in the file system of that process" : "");
	return error_set(e, -ENOENT,
			 "there is no program or library '%.200s': it is in no directory of $PATH "
			 "nor known to the dynamic linker; name it by its path",
			 s->name);
}

int binary_find(const char *name, int pid, char **path, char **root, int *fd, struct error *e)
{
	struct search s = {.name = name, .pid = pid, .root_fd = -1, .fd = -1};
	autofree char *found = NULL;
	int r;

	if (pid) {
		snprintf(s.root, sizeof(s.root), "/proc/%d/root", pid);
		s.root_fd = open(s.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (s.root_fd < 0)
			return error_set(e, errno == ENOENT ? -ESRCH : -errno,
					 errno == ENOENT ? "there is no process %d"
							 : "process %d cannot be looked into: run "
							   "as root",
					 pid);
	}
	r = find(&s) ? 0 : -ENOENT;
	close_fd(&s.root_fd);
	if (r < 0) {
		close_fd(&s.fd);
		return not_found(&s, e);
	}
	found = kernel_path(&s);
	*root = found ? strdup(s.root) : NULL;
	if (!*root) {
		r = found ? -ENOMEM : -errno;
		close_fd(&s.fd);
		return error_set(e, r, "%s was found, but has no path: was it deleted?", s.path);
	}
	*path = take_ptr(&found);
	*fd = s.fd;
	return 0;
}
