// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The files that processes have mapped. They are opened when they are first seen: by the time that
 * a name is asked for, the process may have ended, and with it what led to a file that was deleted
 * or is in another mount namespace.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "probes/process/priv.h"

#define KEPT_MAX  512 /* files that no process has mapped any more */
#define FDS_MAX	  256 /* files that are open at once; more are looked for by their path */
#define VDSO_MAX  (64u << 10)
#define VDSO_NAME "[vdso]"

static bool is_same(const struct mapped *m, const struct stat *st)
{
	return m->dev == st->st_dev && m->ino == st->st_ino && m->size == st->st_size &&
	       m->changed.tv_sec == st->st_mtim.tv_sec && m->changed.tv_nsec == st->st_mtim.tv_nsec;
}

/* What is mapped, also if it was deleted; without CAP_SYS_ADMIN what is at its path now. */
static int find_path(int pid, uint64_t from, uint64_t to, const char *path, char *ret, size_t len,
		     struct stat *st)
{
	snprintf(ret, len, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, from, to);
	if (!stat(ret, st))
		return 0;
	if (snprintf(ret, len, "/proc/%d/root%s", pid, path) >= (int)len)
		return -ENAMETOOLONG;
	return stat(ret, st) ? -errno : 0;
}

static void mapped_free(struct files *f, struct mapped *m)
{
	if (m->binary)
		binary_close(m->binary);
	f->n_fds -= m->counted;
	close_fd(&m->fd);
	free(m->path);
	free(m);
	f->n--;
}

void files_free(struct files *f)
{
	struct mapped *next;

	for (struct mapped *m = f->first; m; m = next) {
		next = m->next;
		mapped_free(f, m);
	}
	f->first = NULL;
}

/* The ones that were found last are in front, so those behind are the oldest. */
static void forget_some(struct files *f)
{
	struct mapped **at = &f->first;
	size_t kept = 0;

	while (*at) {
		struct mapped *m = *at;

		if (m->refs || ++kept <= KEPT_MAX / 2) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		mapped_free(f, m);
	}
}

static struct mapped *add(struct files *f, const char *path, const struct stat *st)
{
	struct mapped *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->path = strdup(path);
	if (!m->path) {
		free(m);
		return NULL;
	}
	m->dev = st->st_dev;
	m->ino = st->st_ino;
	m->size = st->st_size;
	m->changed = st->st_mtim;
	m->fd = -1;
	m->refs = 1;
	m->next = f->first;
	f->first = m;
	f->n++;
	return m;
}

struct mapped *files_get(struct files *f, int pid, uint64_t from, uint64_t to, const char *path)
{
	char full[PATH_MAX + 64];
	struct stat st;
	struct mapped *m;

	if (find_path(pid, from, to, path, full, sizeof(full), &st) || !S_ISREG(st.st_mode))
		return NULL;
	for (m = f->first; m; m = m->next)
		if (is_same(m, &st) && streq(m->path, path)) {
			m->refs++;
			return m;
		}
	if (f->n > KEPT_MAX)
		forget_some(f);
	m = add(f, path, &st);
	if (m && f->n_fds < FDS_MAX)
		m->fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (m && m->fd >= 0) {
		m->counted = true;
		f->n_fds++;
	}
	return m;
}

void files_put(struct files *f, struct mapped *m)
{
	(void)f;
	if (m && m->refs)
		m->refs--;
}

/* How much of it the kernel mapped into us. */
static size_t vdso_size(uint64_t address)
{
	autofile FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	char line[PATH_MAX + 128];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%llx-%llx", &from, &to) == 2 && from == address)
			return to - from < VDSO_MAX ? to - from : VDSO_MAX;
	return 0;
}

struct mapped *files_vdso(struct files *f)
{
	uint64_t address = getauxval(AT_SYSINFO_EHDR);
	struct stat none = {0};
	struct mapped *m;
	size_t len;

	for (m = f->first; m; m = m->next)
		if (streq(m->path, VDSO_NAME)) {
			m->refs++;
			return m;
		}
	m = add(f, VDSO_NAME, &none);
	len = m && address ? vdso_size(address) : 0;
	if (!len)
		return m;
	m->fd = memfd_create("vdso", MFD_CLOEXEC);
	if (m->fd >= 0 && write(m->fd, (void *)(uintptr_t)address, len) != (ssize_t)len)
		m->tried = true;
	return m;
}

static void open_binary(struct mapped *m)
{
	struct error ignored = {0};
	autoclose int fd = take_fd(&m->fd);
	struct stat st;

	if (fd < 0) {
		fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0 || fstat(fd, &st) || !is_same(m, &st))
			return;
	}
	binary_open_fd(take_fd(&fd), m->path, "", &m->binary, &ignored);
}

int mapped_symbolise(struct mapped *m, uint64_t offset, struct symbol *ret)
{
	if (!m->binary && !m->tried)
		open_binary(m);
	m->tried = true;
	return m->binary ? binary_symbolise(m->binary, offset, ret) : -ENOENT;
}
