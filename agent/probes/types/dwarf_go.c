// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Types that Go's interfaces name at run time: by the address of what the program itself knows of
 * them, which the debug data says of each as where it is behind the symbol runtime.types.
 */
#include <gelf.h>

#include "base/strv.h"
#include "probes/types/dwarf_priv.h"

#define AT_GO_RUNTIME_TYPE 0x2904
#define TYPES_MAX	   (1u << 20)

struct dwarf_go_type {
	uint64_t at;
	Dwarf_Die die;
};
struct dwarf_go {
	uint64_t base;
	struct strv names; /* of types that the debug data leaves out */
	struct dwarf_go_type *v;
	size_t n, max;
};

void dwarf_free_go(struct dwarf *d)
{
	if (d->go) {
		free(d->go->v);
		strv_free(&d->go->names);
	}
	free(d->go);
}

/* --- the symbol --- */

static bool find_in(Elf *elf, Elf_Scn *section, uint64_t *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr h;
	GElf_Sym s;

	if (!data || !gelf_getshdr(section, &h))
		return false;
	for (int i = 0; gelf_getsym(data, i, &s); i++) {
		const char *name = elf_strptr(elf, h.sh_link, s.st_name);

		if (name && streq(name, "runtime.types")) {
			*ret = s.st_value;
			return true;
		}
	}
	return false;
}

static bool find_base(Elf *elf, uint64_t *ret)
{
	Elf_Scn *s = NULL;
	GElf_Shdr h;

	while ((s = elf_nextscn(elf, s)))
		if (gelf_getshdr(s, &h) && h.sh_type == SHT_SYMTAB && find_in(elf, s, ret))
			return true;
	return false;
}

/* --- all types --- */

static int on_type(void *arg, Dwarf_Die *die)
{
	struct dwarf_go *g = arg;
	size_t more = g->max ? g->max * 2 : 1024;
	Dwarf_Attribute attr;
	struct dwarf_go_type *v;
	Dwarf_Addr at;

	if (!dwarf_attr(die, AT_GO_RUNTIME_TYPE, &attr) || dwarf_formaddr(&attr, &at) || !at)
		return 0;
	if (g->n == TYPES_MAX)
		return 1;
	if (g->n == g->max) {
		v = reallocarray(g->v, more, sizeof(*v));
		if (!v)
			return 1;
		g->v = v;
		g->max = more;
	}
	g->v[g->n++] = (struct dwarf_go_type){.at = at, .die = *die};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct dwarf_go_type *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Of a program that is loaded where it pleases, it is not known where its types are then. */
int dwarf_load_go_types(struct dwarf *d)
{
	struct error ignored = {0};

	if (d->go)
		return d->go->n ? 0 : -ENOENT;
	if (dwarf_load(d, &ignored) < 0)
		return -ENOENT;
	d->go = calloc(1, sizeof(*d->go));
	if (!d->go)
		return -ENOMEM;
	if (!d->fixed || !find_base(d->elf, &d->go->base))
		return -ENOENT;
	for (size_t i = 0; i < d->n_units; i++)
		dwarf_children(&d->units[i].die, on_type, d->go);
	if (d->go->n)
		qsort(d->go->v, d->go->n, sizeof(*d->go->v), compare);
	return d->go->n ? 0 : -ENOENT;
}

/* --- what the program itself says of a type --- */

/* runtime._type (since Go 1.14), and a name: a byte, its length in groups of 7 bits, its text. */
#define FLAGS_AT   20
#define NAME_AT	   40
#define EXTRA_STAR 2
#define NAME_MAX_  200

static bool read_at(const struct dwarf *d, uint64_t address, void *to, size_t n)
{
	for (size_t i = 0; i < d->n_segments; i++) {
		const struct dwarf_segment *s = &d->segments[i];

		if (address >= s->address && address - s->address < s->size)
			return pread(d->fd, to, n, (off_t)(address - s->address + s->offset)) ==
			       (ssize_t)n;
	}
	return false;
}

/* NULL: none that can be. */
static const char *own_name(struct dwarf *d, uint64_t address)
{
	uint8_t flags, head[3];
	char text[NAME_MAX_ + 1] = "";
	size_t len, skip = 2, star;
	int32_t at;

	if (!read_at(d, address + FLAGS_AT, &flags, 1) ||
	    !read_at(d, address + NAME_AT, &at, sizeof(at)) || at <= 0 ||
	    !read_at(d, d->go->base + (uint32_t)at, head, sizeof(head)))
		return NULL;
	len = head[1] & 0x7f;
	if (head[1] & 0x80) {
		len |= (size_t)(head[2] & 0x7f) << 7;
		skip = 3;
	}
	if (!len || len > NAME_MAX_ || (skip == 3 && head[2] & 0x80) ||
	    !read_at(d, d->go->base + (uint32_t)at + skip, text, len))
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ')
			return NULL;
	star = flags & EXTRA_STAR && text[0] == '*';
	return strv_add(&d->go->names, text + star) < 0 ? NULL : d->go->names.v[d->go->names.n - 1];
}

int dwarf_go_type(struct dwarf *d, uint64_t address, const char **name, struct ctype *ret)
{
	struct dwarf_go_type key = {0}, *found;

	if (dwarf_load_go_types(d) < 0)
		return -ENOENT;
	key.at = address - d->go->base;
	found = bsearch(&key, d->go->v, d->go->n, sizeof(key), compare);
	*ret = (struct ctype){.kind = CTYPE_VOID};
	*name = found ? dwarf_name(&found->die) : own_name(d, address);
	if (!found)
		return *name ? 0 : -ENOENT;
	return *name ? dwarf_type_at_die(d, &found->die, ret) : -ENOENT;
}
