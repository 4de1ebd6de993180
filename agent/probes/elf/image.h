/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading ELF files, whose every number may be a lie. Offsets are in the file, addresses are those
 * of its program headers. */
#ifndef AX_PROBES_ELF_IMAGE_H
#define AX_PROBES_ELF_IMAGE_H

#include <elf.h>

#include "base/util.h"

/* More of one section than this is not read: no table of symbols is as big. */
#define IMAGE_LOAD_MAX (256u << 20)

/*
 * An ELF file, read piece by piece and never mapped: a file that is cut off while it is mapped
 * kills the reader with SIGBUS.
 */
struct image {
	int fd;	      /* -1: it is in memory */
	uint8_t *mem; /* malloc'ed */
	uint64_t size;
	uint16_t machine, type;
	Elf64_Phdr *segments;
	size_t n_segments;
	Elf64_Shdr *sections;
	size_t n_sections;
	char *names; /* of the sections */
	size_t names_len;
};

/* Both take over what they are given, also when they fail. `path` is for messages. */
int image_open(struct image *im, int fd, const char *path, struct error *e);
int image_open_memory(struct image *im, uint8_t *mem, size_t size, const char *path,
		      struct error *e);
void image_close(struct image *im);

/* All or nothing: -ENOEXEC when the file does not have it. */
int image_read(const struct image *im, uint64_t offset, void *buf, size_t len);
/* malloc'ed, with a NUL behind. */
int image_load(const struct image *im, uint64_t offset, uint64_t len, void **ret);
const Elf64_Shdr *image_section(const struct image *im, const char *name);
int image_section_load(const struct image *im, const Elf64_Shdr *s, void **ret, size_t *len);
/* By program headers. `executable`: only what is mapped executable. */
bool image_offset(const struct image *im, uint64_t address, bool executable, uint64_t *offset);
bool image_address(const struct image *im, uint64_t offset, uint64_t *address);
/* A range of addresses that the program maps readable. */
bool image_readable(const struct image *im, uint64_t address, uint64_t len);
/* The build-id's length, 0: it has none. */
size_t image_build_id(const struct image *im, uint8_t *id, size_t max);
/* The next note at *at of a section of notes. */
struct note {
	uint32_t type;
	const char *name;
	size_t name_len;
	const uint8_t *desc;
	size_t desc_len;
};
bool note_next(const uint8_t *notes, size_t len, size_t *at, struct note *ret);

static inline uint64_t get_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}
static inline uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#endif
