// SPDX-License-Identifier: GPL-2.0-or-later
/* A program's file and the debug data that belongs to it. */
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "probes/types/dwarf_priv.h"

#define DEBUG_DIR    "/usr/lib/debug"
#define BUILD_ID_MAX 64
#define SEGMENTS_MAX 1024
/* Files up to this size are read; larger ones are mapped, though one that is cut off at that time
 * would kill us: of some gigabytes only little is needed. */
#define READ_MAX (256u << 20)

/* "/proc/PID/root", if the path begins with it. */
static char *root_of(const char *path)
{
	const char *s = path;

	if (!starts_with(s, "/proc/"))
		return strdup("");
	s += strlen("/proc/");
	s += strspn(s, "0123456789");
	if (!starts_with(s, "/root/"))
		return strdup("");
	return strndup(path, (size_t)(s - path) + strlen("/root"));
}

int dwarf_new(const char *path, struct dwarf **ret)
{
	struct dwarf *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->fd = d->debug_fd = -1;
	d->functions_unit = SIZE_MAX;
	d->path = strdup(path);
	d->root = root_of(path);
	dwarf_init_types(d);
	if (!d->path || !d->root) {
		dwarf_free(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

void dwarf_free(struct dwarf *d)
{
	dwarf_free_go(d);
	dwarf_free_units(d);
	if (d->eh_frame)
		dwarf_cfi_end(d->eh_frame);
	if (d->dw)
		dwarf_end(d->dw);
	if (d->data)
		elf_end(d->data);
	if (d->image)
		munmap(d->image, d->image_len);
	if (d->debug_elf)
		elf_end(d->debug_elf);
	if (d->elf)
		elf_end(d->elf);
	close_fd(&d->debug_fd);
	close_fd(&d->fd);
	free(d->segments);
	free(d->named);
	free(d->other);
	free(d->path);
	free(d->root);
	free(d);
}

int dwarf_look_in(struct dwarf *d, const char *path)
{
	free(d->other);
	d->other = strdup(path);
	return d->other ? 0 : -ENOMEM;
}

static int open_elf(const char *path, int *fd, Elf **ret)
{
	autoclose int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	Elf *elf;

	if (f < 0)
		return -errno;
	if (fstat(f, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	elf = elf_begin(f, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	if (elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64) {
		elf_end(elf);
		return -ENOEXEC;
	}
	*fd = take_fd(&f);
	*ret = elf;
	return 0;
}

static int load_segments(struct dwarf *d)
{
	GElf_Ehdr eh;
	size_t n;

	if (!gelf_getehdr(d->elf, &eh) || elf_getphdrnum(d->elf, &n) || n > SEGMENTS_MAX)
		return -ENOEXEC;
	d->machine = eh.e_machine;
	d->fixed = eh.e_type == ET_EXEC;
	d->object = eh.e_type == ET_REL;
	d->segments = calloc(n + 1, sizeof(*d->segments));
	if (!d->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(d->elf, (int)i, &p) || p.p_type != PT_LOAD)
			continue;
		d->segments[d->n_segments++] = (struct dwarf_segment){
			p.p_offset, p.p_vaddr, p.p_filesz, (p.p_flags & PF_X) != 0};
	}
	return 0;
}

bool dwarf_to_offset(const struct dwarf *d, uint64_t address, uint64_t *offset)
{
	for (size_t i = 0; i < d->n_segments; i++) {
		const struct dwarf_segment *s = &d->segments[i];

		if (s->executable && address >= s->address && address - s->address < s->size) {
			*offset = address - s->address + s->offset;
			return true;
		}
	}
	return false;
}

bool dwarf_to_address(const struct dwarf *d, uint64_t offset, uint64_t *address)
{
	for (size_t i = 0; i < d->n_segments; i++) {
		const struct dwarf_segment *s = &d->segments[i];

		if (s->executable && offset >= s->offset && offset - s->offset < s->size) {
			*address = offset - s->offset + s->address;
			return true;
		}
	}
	return false;
}

/* --- debug data --- */

static bool has_section(Elf *elf, const char *name)
{
	Elf_Scn *s = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((s = elf_nextscn(elf, s))) {
		GElf_Shdr h;
		const char *text = gelf_getshdr(s, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;

		/* what was taken out leaves a section of no bytes */
		if (text && h.sh_type != SHT_NOBITS && streq(text, name))
			return true;
	}
	return false;
}

bool dwarf_file_has(const char *path, const char *section)
{
	autoclose int fd = -1;
	Elf *elf;
	bool has;

	if (open_elf(path, &fd, &elf) < 0)
		return false;
	has = has_section(elf, section);
	elf_end(elf);
	return has;
}

static bool has_debug_data(Elf *elf)
{
	return has_section(elf, ".debug_info") || has_section(elf, ".zdebug_info");
}

static bool same_build(Elf *elf, const uint8_t *id, size_t n)
{
	const void *other;

	return n && dwelf_elf_gnu_build_id(elf, &other) == (ssize_t)n && !memcmp(other, id, n);
}

static bool same_crc(int fd, uint32_t want)
{
	uint8_t buf[1 << 16];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	while (at < READ_MAX && (n = pread(fd, buf, sizeof(buf), at)) > 0) {
		crc = crc32(crc, buf, (uInt)n);
		at += n;
	}
	return crc == want;
}

struct link {
	const uint8_t *id;
	size_t id_len;
	bool by_crc;
	uint32_t crc;
};

static int try_file(struct dwarf *d, const char *root, const char *path, const struct link *l)
{
	char full[PATH_MAX + 64];
	GElf_Ehdr eh;
	Elf *elf = NULL;
	int r;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	r = open_elf(full, &d->debug_fd, &elf);
	if (r < 0)
		return r;
	if (gelf_getehdr(elf, &eh) && eh.e_machine == d->machine && has_debug_data(elf) &&
	    (same_build(elf, l->id, l->id_len) || (l->by_crc && same_crc(d->debug_fd, l->crc)))) {
		d->debug_elf = elf;
		return 0;
	}
	elf_end(elf);
	close_fd(&d->debug_fd);
	return -ENOENT;
}

/* In the process' own file system, else in ours. */
static int try_both(struct dwarf *d, const char *path, const struct link *l)
{
	int r = try_file(d, d->root, path, l);

	return r < 0 && *d->root ? try_file(d, "", path, l) : r;
}

static int by_build_id(struct dwarf *d, const struct link *l)
{
	char path[sizeof(DEBUG_DIR) + 2 * BUILD_ID_MAX + 32];
	int len;

	if (!l->id_len)
		return -ENOENT;
	len = snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%02x/", l->id[0]);
	for (size_t i = 1; i < l->id_len; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", l->id[i]);
	snprintf(path + len, sizeof(path) - (size_t)len, ".debug");
	return try_both(d, path, l);
}

static int by_link(struct dwarf *d, struct link *l)
{
	const char *name = dwelf_elf_gnu_debuglink(d->elf, &l->crc);
	const char *dir = d->path + strlen(d->root), *slash;
	int len;
	char path[PATH_MAX + NAME_MAX + 64];

	if (!name || !*name || strchr(name, '/') || streq(name, "..") || strlen(name) > NAME_MAX)
		return -ENOENT;
	l->by_crc = true;
	slash = strrchr(dir, '/');
	len = slash ? (int)(slash - dir) : 0;
	snprintf(path, sizeof(path), "%.*s/%s", len, dir, name);
	if (try_both(d, path, l) == 0)
		return 0;
	snprintf(path, sizeof(path), "%.*s/.debug/%s", len, dir, name);
	if (try_both(d, path, l) == 0)
		return 0;
	snprintf(path, sizeof(path), DEBUG_DIR "%.*s/%s", len, dir, name);
	return try_both(d, path, l);
}

static int find_debug_data(struct dwarf *d, struct error *e)
{
	const void *id;
	ssize_t n;
	struct link l = {0};

	if (has_debug_data(d->elf))
		return 0;
	n = dwelf_elf_gnu_build_id(d->elf, &id);
	if (n > 0 && n <= BUILD_ID_MAX) {
		l.id = id;
		l.id_len = (size_t)n;
	}
	if (d->other && try_file(d, "", d->other, &l) == 0)
		return 0;
	if (by_build_id(d, &l) == 0 || by_link(d, &l) == 0)
		return 0;
	return error_set(
		e, -ENODATA,
		"%.200s has no debug data, which knows of lines, variables and types: "
		"expected a program that was built with -g, or its debug package (" DEBUG_DIR ")",
		d->path);
}

static int read_image(int fd, uint8_t *to, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = pread(fd, to + at, size - at, (off_t)at);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -ENODATA; /* it was cut off meanwhile */
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* libdw 0.188 does not look everywhere whether a string ends where its section does: so there are
 * zeroes behind the whole file, where all strings end that do not do so before. */
static int load_image(struct dwarf *d)
{
	int fd = d->debug_elf ? d->debug_fd : d->fd;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	struct stat st;
	void *mem;

	if (fstat(fd, &st) < 0)
		return -errno;
	size = (size_t)st.st_size;
	d->image_len = (size / page + 2) * page;
	mem = mmap(NULL, d->image_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	d->image = mem;
	if (size <= READ_MAX) {
		int r = read_image(fd, d->image, size);

		if (r < 0)
			return r;
	} else if (mmap(mem, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
		   MAP_FAILED) {
		return -ENOMEM;
	}
	if (d->object)
		dwarf_relocate(d->elf, d->machine, d->image, size);
	d->data = elf_memory(mem, size);
	return d->data ? 0 : -ENODATA;
}

static int unreadable(struct dwarf *d, struct error *e)
{
	return error_set(e, -ENODATA, "the debug data of %.200s cannot be read: %.100s", d->path,
			 dwarf_errmsg(-1));
}

/* From the debug data that was found on. */
static int read_data(struct dwarf *d, struct error *e)
{
	int r = load_image(d);

	if (r == -ENOMEM)
		return error_set(e, r, "out of memory");
	d->dw = r == 0 ? dwarf_begin_elf(d->data, DWARF_C_READ, NULL) : NULL;
	if (!d->dw)
		return unreadable(d, e);
	/* that of the program itself: a file of debug data has no code to unwind */
	d->eh_frame = dwarf_getcfi_elf(d->elf);
	d->debug_frame = dwarf_getcfi(d->dw);
	r = dwarf_index_units(d);
	if (r == -ENODATA)
		return error_set(e, r,
				 "the debug data of %.200s is in files of its own (.dwo) that are "
				 "not there: expected a program that was built without "
				 "-gsplit-dwarf",
				 d->path);
	if (r < 0)
		return r == -ENOMEM ? error_set(e, r, "out of memory") : unreadable(d, e);
	return 0;
}

static int open_program(struct dwarf *d, struct error *e)
{
	int r = open_elf(d->path, &d->fd, &d->elf);

	if (r == 0)
		r = load_segments(d);
	if (r < 0)
		return error_set(e, r == -ENOMEM ? r : -ENODATA, "%.200s cannot be read: %s",
				 d->path,
				 r == -ENOEXEC ? "it is no 64-bit ELF file" : strerror(-r));
	return 0;
}

static int load(struct dwarf *d, struct error *e)
{
	int r = open_program(d, e);

	if (r == 0)
		r = find_debug_data(d, e);
	return r < 0 ? r : read_data(d, e);
}

int dwarf_load_given(struct dwarf *d, struct error *e)
{
	int r = open_program(d, e);

	if (r == 0 && !has_debug_data(d->elf))
		r = -ENODATA;
	if (r == 0)
		r = read_data(d, e);
	d->tried = true;
	return r;
}

int dwarf_load(struct dwarf *d, struct error *e)
{
	int r;

	if (d->tried) {
		if (d->failure.code)
			*e = d->failure;
		return d->failure.code;
	}
	r = load(d, e);
	d->tried = true;
	if (r < 0)
		d->failure = *e;
	return r;
}
