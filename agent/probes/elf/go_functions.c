// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Go's own table of functions, which `go build -ldflags=-s` and strip leave in the file because the
 * runtime needs it. Its layouts: Go 1.2 to 1.15, 1.16 and 1.17, 1.18 and 1.19, 1.20 and later.
 */
#include "probes/elf/priv.h"

#define MAGIC_1_2  0xfffffffbu
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

struct pclntab {
	char *t; /* with a NUL behind */
	size_t len;
	uint64_t n;	    /* functions */
	uint64_t names;	    /* where the names are */
	uint64_t table;	    /* where the pairs of address and offset are */
	uint64_t functions; /* what the offsets start at */
	uint64_t text;	    /* what 32-bit addresses start at */
	unsigned wide;	    /* bytes of each number in the table */
};

static const Elf64_Shdr *find_section(const struct image *im)
{
	const Elf64_Shdr *s = image_section(im, ".gopclntab");

	return s ? s : image_section(im, ".data.rel.ro.gopclntab");
}

static uint64_t word(const struct pclntab *p, unsigned i)
{
	return get_u64((const uint8_t *)p->t + 8 + 8 * i);
}

static int read_head(struct pclntab *p, const struct image *im)
{
	const Elf64_Shdr *text = image_section(im, ".text");
	uint32_t magic;

	if (p->len < 8 + 8 * 8 || p->t[7] != 8)
		return -ENOEXEC;
	magic = get_u32((const uint8_t *)p->t);
	p->n = word(p, 0);
	p->wide = 8;
	if (magic == MAGIC_1_2) {
		p->table = 16;
	} else if (magic == MAGIC_1_16) {
		p->names = word(p, 2);
		p->table = p->functions = word(p, 6);
	} else if (magic == MAGIC_1_18 || magic == MAGIC_1_20) {
		/* zero where the linker left it to a relocation, and in later versions */
		p->text = word(p, 2) ? word(p, 2) : text ? text->sh_addr : 0;
		p->names = word(p, 3);
		p->table = p->functions = word(p, 7);
		p->wide = 4;
	} else {
		return -ENOEXEC;
	}
	if (p->table > p->len || p->names > p->len || p->functions > p->len ||
	    p->n >= (p->len - p->table) / (2 * p->wide))
		return -ENOEXEC;
	return 0;
}

static uint64_t number(const struct pclntab *p, uint64_t i)
{
	const uint8_t *at = (const uint8_t *)p->t + p->table + i * p->wide;

	return p->wide == 8 ? get_u64(at) : get_u32(at);
}

static const char *function_name(const struct pclntab *p, uint64_t i)
{
	uint64_t at = number(p, 2 * i + 1), name;

	/* a function starts with its address, which is as wide as in the table, and its name */
	if (at > p->len - p->functions || p->len - p->functions - at < p->wide + 4u)
		return NULL;
	name = get_u32((const uint8_t *)p->t + p->functions + at + p->wide);
	return name < p->len - p->names ? p->t + p->names + name : NULL;
}

int binary_go_symbols(struct binary *b)
{
	const Elf64_Shdr *s = find_section(&b->image);
	struct pclntab p = {0};
	void *table;
	int r;

	if (!s || image_section_load(&b->image, s, &table, &p.len))
		return 0;
	r = symbols_keep(b, table);
	if (r < 0)
		return r;
	p.t = table;
	if (read_head(&p, &b->image))
		return 0;
	for (uint64_t i = 0; i < p.n; i++) {
		uint64_t start = number(&p, 2 * i), end = number(&p, 2 * i + 2);
		struct function f = {.address = p.text + start, .name = function_name(&p, i)};

		if (!f.name || !*f.name || strnlen(f.name, FUNCTION_NAME_MAX) == FUNCTION_NAME_MAX)
			continue;
		f.size = end > start ? end - start : 0;
		r = symbols_add(b, &f);
		if (r < 0)
			return r;
	}
	return 0;
}
