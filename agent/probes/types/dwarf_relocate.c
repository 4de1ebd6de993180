// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Debug data of object files: its references into other sections are in relocations. Addresses of
 * code mean nothing there, so what is added is where a symbol is in its section; places that lie
 * are left alone.
 */
#include <gelf.h>

#include "probes/types/dwarf_priv.h"

#define SYMBOLS_MAX (1u << 22)

/* How many bytes a relocation is of, 0: it is none of debug data. */
static unsigned width(uint16_t machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_64    ? 8
		       : type == R_X86_64_32  ? 4
		       : type == R_X86_64_32S ? 4
					      : 0;
	if (machine == EM_AARCH64)
		return type == R_AARCH64_ABS64 ? 8 : type == R_AARCH64_ABS32 ? 4 : 0;
	return 0;
}

struct target {
	uint8_t *bytes;
	size_t size;
};

/* The section's bytes in the image; it must be of debug data, and as it is. */
static bool find_target(Elf *elf, size_t index, size_t names, uint8_t *image, size_t size,
			struct target *ret)
{
	Elf_Scn *s = elf_getscn(elf, index);
	const char *name;
	GElf_Shdr h;

	if (!s || !gelf_getshdr(s, &h) || h.sh_type == SHT_NOBITS || h.sh_flags & SHF_COMPRESSED)
		return false;
	name = elf_strptr(elf, names, h.sh_name);
	if (!name || !starts_with(name, ".debug_") || h.sh_offset > size ||
	    h.sh_size > size - h.sh_offset)
		return false;
	*ret = (struct target){image + h.sh_offset, h.sh_size};
	return true;
}

static void apply(const struct target *t, uint16_t machine, Elf_Data *symbols, const GElf_Rela *r)
{
	unsigned n = width(machine, GELF_R_TYPE(r->r_info));
	size_t which = GELF_R_SYM(r->r_info);
	GElf_Sym sym;
	uint64_t value;

	if (!n || r->r_offset > t->size || t->size - r->r_offset < n || which > SYMBOLS_MAX ||
	    !gelf_getsym(symbols, (int)which, &sym))
		return;
	value = sym.st_value + (uint64_t)r->r_addend;
	memcpy(t->bytes + r->r_offset, &value, n); /* both machines are little-endian */
}

static void relocate_section(Elf *elf, const GElf_Shdr *h, Elf_Scn *s, uint16_t machine,
			     const struct target *t)
{
	Elf_Scn *table = elf_getscn(elf, h->sh_link);
	Elf_Data *symbols = table ? elf_getdata(table, NULL) : NULL;
	Elf_Data *data = elf_getdata(s, NULL);
	GElf_Rela r;

	if (!symbols || symbols->d_type != ELF_T_SYM || !data || data->d_type != ELF_T_RELA ||
	    !h->sh_entsize)
		return;
	for (size_t i = 0; i < h->sh_size / h->sh_entsize && i < INT32_MAX; i++) {
		if (!gelf_getrela(data, (int)i, &r))
			return;
		apply(t, machine, symbols, &r);
	}
}

void dwarf_relocate(Elf *elf, uint16_t machine, uint8_t *image, size_t size)
{
	Elf_Scn *s = NULL;
	struct target t;
	size_t names;
	GElf_Shdr h;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((s = elf_nextscn(elf, s)))
		if (gelf_getshdr(s, &h) && h.sh_type == SHT_RELA &&
		    find_target(elf, h.sh_info, names, image, size, &t))
			relocate_section(elf, &h, s, machine, &t);
}
