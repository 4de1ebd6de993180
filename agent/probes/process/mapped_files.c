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
#define COST_MAX  (512ull << 20) /* bytes that tables of symbols of all files may take */
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

static struct mapped **bucket_of(struct files *f, const char *path)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *path; path++)
		h = (h ^ (uint8_t)*path) * 0x100000001b3ull;
	return &f->buckets[(h ^ h >> 32) & (FILES_BUCKETS - 1)];
}

static void mapped_free(struct files *f, struct mapped *m)
{
	struct mapped **at = bucket_of(f, m->path);

	while (*at != m)
		at = &(*at)->next_alike;
	*at = m->next_alike;
	if (m->binary)
		binary_close(m->binary);
	f->cost -= m->cost;
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
	f->looked_at = f->n;
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
	m->number = ++f->last_number;
	m->dev = st->st_dev;
	m->ino = st->st_ino;
	m->size = st->st_size;
	m->changed = st->st_mtim;
	m->fd = -1;
	m->refs = 1;
	m->next = f->first;
	f->first = m;
	m->next_alike = *bucket_of(f, path);
	*bucket_of(f, path) = m;
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
	for (m = *bucket_of(f, path); m; m = m->next_alike)
		if (is_same(m, &st) && streq(m->path, path)) {
			m->refs++;
			return m;
		}
	if (f->n > KEPT_MAX && f->n > f->looked_at + f->looked_at / 2)
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

	for (m = *bucket_of(f, VDSO_NAME); m; m = m->next_alike)
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

static uint64_t at_most(uint64_t v)
{
	return v < IMAGE_LOAD_MAX ? v : IMAGE_LOAD_MAX;
}

/* Of a line of a table of symbols some more is kept; what is packed is not known. */
static uint64_t cost_of(const struct image *im)
{
	uint64_t cost = im->names_len;

	for (size_t i = 0; i < im->n_sections; i++) {
		const Elf64_Shdr *s = &im->sections[i];

		if (s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM)
			cost += 4 * at_most(s->sh_size);
		else if (s->sh_type == SHT_STRTAB)
			cost += at_most(s->sh_size);
	}
	if (image_section(im, ".gopclntab"))
		cost += 4 * at_most(image_section(im, ".gopclntab")->sh_size);
	if (image_section(im, ".gnu_debugdata"))
		cost += 1u << 20;
	return cost;
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

/* Those for which there is no room have no names: a file with holes can have tables of any size. */
static void open_within(struct files *f, struct mapped *m)
{
	open_binary(m);
	m->cost = m->binary ? cost_of(&m->binary->image) : 0;
	if (m->cost > COST_MAX - f->cost) {
		binary_close(m->binary);
		m->binary = NULL;
		m->cost = 0;
	}
	f->cost += m->cost;
}

static bool is_open(struct files *f, struct mapped *m)
{
	if (!m->binary && !m->tried)
		open_within(f, m);
	m->tried = true;
	return m->binary;
}

const struct image *mapped_image(struct files *f, struct mapped *m)
{
	return is_open(f, m) ? &m->binary->image : NULL;
}

int mapped_symbolise(struct files *f, struct mapped *m, uint64_t offset, struct symbol *ret)
{
	return is_open(f, m) ? binary_symbolise(m->binary, offset, ret) : -ENOENT;
}
