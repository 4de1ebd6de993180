// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables of symbols, into one that is sorted by address. */
#include "base/search.h"
#include "probes/elf/priv.h"

static int grow(void *array, size_t *max, size_t n, size_t size)
{
	void **a = array;
	size_t more = *max ? *max * 2 : 64;
	void *bigger;

	if (n < *max)
		return 0;
	bigger = reallocarray(*a, more, size);
	if (!bigger)
		return -ENOMEM;
	*a = bigger;
	*max = more;
	return 0;
}

int symbols_keep(struct binary *b, void *text)
{
	if (grow(&b->texts, &b->max_texts, b->n_texts, sizeof(*b->texts))) {
		free(text);
		return -ENOMEM;
	}
	b->texts[b->n_texts++] = text;
	return 0;
}

int symbols_add(struct binary *b, const struct function *f)
{
	uint64_t offset;

	if (!image_offset(&b->image, f->address, true, &offset))
		return 0;
	if (grow(&b->functions, &b->max_functions, b->n_functions, sizeof(*b->functions)))
		return -ENOMEM;
	b->functions[b->n_functions++] = *f;
	b->sorted = false;
	return 0;
}

static int add_import(struct binary *b, const char *name)
{
	if (grow(&b->imports, &b->max_imports, b->n_imports, sizeof(*b->imports)))
		return -ENOMEM;
	b->imports[b->n_imports++] = name;
	return 0;
}

/* Aliases for the linker have underscores before the name that people know. */
static uint8_t rank_of(const char *name, unsigned bind, unsigned type)
{
	size_t underscores = strspn(name, "_");
	uint8_t rank = (uint8_t)(underscores < 8 ? underscores : 8);

	if (starts_with(name, "_Z") || starts_with(name, "_R"))
		rank = 0;
	if (bind == STB_LOCAL)
		rank += 16;
	if (type == STT_NOTYPE)
		rank += 32;
	return rank;
}

static int add_symbol(struct binary *b, const Elf64_Sym *s, char *name)
{
	unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
	struct function f = {.address = s->st_value, .size = s->st_size, .name = name};

	if (!*name || *name == '@' ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
		return 0;
	/* a million names can all be ends of one that is as long as the file */
	if (strnlen(name, FUNCTION_NAME_MAX) == FUNCTION_NAME_MAX)
		return 0;
	/* functions in assembly often have no type; local ones of those are no more than labels */
	if (type == STT_NOTYPE && bind == STB_LOCAL)
		return 0;
	/* .symtab has versions in the names: memcpy@@GLIBC_2.14 */
	if (strchr(name, '@'))
		*strchr(name, '@') = 0;
	if (s->st_shndx == SHN_UNDEF)
		return add_import(b, name);
	if (s->st_shndx == SHN_ABS)
		return 0;
	f.ifunc = type == STT_GNU_IFUNC;
	f.rank = rank_of(name, bind, type);
	return symbols_add(b, &f);
}

static int load_table(struct binary *b, const struct image *im, const Elf64_Shdr *table)
{
	autofree void *symbols = NULL;
	const Elf64_Sym *v;
	void *names;
	size_t len, names_len;
	int r;

	if (table->sh_link >= im->n_sections || table->sh_entsize != sizeof(Elf64_Sym))
		return 0;
	r = image_section_load(im, table, &symbols, &len);
	if (!r)
		r = image_section_load(im, &im->sections[table->sh_link], &names, &names_len);
	if (r)
		return r == -ENOMEM ? r : 0; /* a debug file has .dynsym as NOBITS */
	r = symbols_keep(b, names);
	v = symbols;
	for (size_t i = 0; !r && i < len / sizeof(*v); i++)
		if (v[i].st_name < names_len)
			r = add_symbol(b, &v[i], (char *)names + v[i].st_name);
	return r;
}

int symbols_of_image(struct binary *b, const struct image *im)
{
	bool symtab = false, dynsym = false;
	int r = 0;

	/* there is one of each; thousands that overlap would take all memory */
	for (size_t i = 0; !r && i < im->n_sections; i++) {
		uint32_t type = im->sections[i].sh_type;
		bool *seen = type == SHT_SYMTAB ? &symtab : &dynsym;

		if ((type != SHT_SYMTAB && type != SHT_DYNSYM) || *seen)
			continue;
		*seen = true;
		r = load_table(b, im, &im->sections[i]);
	}
	return r;
}

int symbols_load(struct binary *b)
{
	int r;

	if (b->loaded)
		return 0;
	for (size_t i = 0; i < b->image.n_sections; i++)
		b->has_symtab |= b->image.sections[i].sh_type == SHT_SYMTAB;
	r = symbols_of_image(b, &b->image);
	b->loaded = r == 0;
	return r;
}

int symbols_load_more(struct binary *b)
{
	int r = symbols_load(b);

	if (!r && !b->loaded_more && !b->has_symtab) {
		r = b->go ? binary_go_symbols(b) : 0;
		if (!r)
			r = binary_debug_symbols(b);
	}
	b->loaded_more = r == 0;
	if (!r)
		symbols_sort(b);
	return r;
}

static int compare(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	/* whichever table it came from, one answer */
	return strcmp(a->name, b->name);
}

void symbols_sort(struct binary *b)
{
	if (!b->sorted && b->n_functions)
		qsort(b->functions, b->n_functions, sizeof(*b->functions), compare);
	b->sorted = true;
}

size_t symbols_behind(const struct binary *b, uint64_t address)
{
	return search_above(b->functions, b->n_functions, sizeof(*b->functions),
			    offsetof(struct function, address), address);
}

const struct function *symbols_at(const struct binary *b, uint64_t address)
{
	size_t i = symbols_behind(b, address);

	/* thousands can have the same address */
	if (i && b->functions[i - 1].address)
		return &b->functions[symbols_behind(b, b->functions[i - 1].address - 1)];
	return i ? b->functions : NULL;
}

uint64_t symbols_end(struct binary *b, uint64_t address, uint64_t size)
{
	uint64_t end = UINT64_MAX;
	size_t i;

	for (i = 0; i < b->image.n_segments; i++) {
		const Elf64_Phdr *p = &b->image.segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz)
			end = p->p_vaddr + p->p_filesz;
	}
	if (size)
		return size < end - address ? address + size : end;
	if (symbols_load_more(b) < 0)
		return address;
	i = symbols_behind(b, address);
	if (i < b->n_functions && b->functions[i].address < end)
		return b->functions[i].address;
	return end;
}

/* Of several names of one address one may have no size. */
uint64_t symbols_size(const struct binary *b, uint64_t address)
{
	const struct function *f = symbols_at(b, address);

	for (; f && f < b->functions + b->n_functions && f->address == address; f++)
		if (f->size)
			return f->size;
	return 0;
}

const char *symbols_demangled(struct function *f)
{
	if (!f->tried)
		f->demangled = demangle(f->name, true);
	f->tried = true;
	return f->demangled;
}

int binary_symbolise(struct binary *b, uint64_t offset, struct symbol *ret)
{
	const struct function *f;
	uint64_t address;
	int r;

	if (!image_address(&b->image, offset, &address))
		return -ENOENT;
	r = symbols_load_more(b);
	if (r < 0)
		return r;
	f = symbols_at(b, address);
	if (!f || !image_offset(&b->image, f->address, true, &ret->offset))
		return -ENOENT;
	ret->size = symbols_size(b, f->address);
	if (address >= symbols_end(b, f->address, ret->size))
		return -ENOENT;
	ret->name = f->name;
	ret->demangled = symbols_demangled((struct function *)f);
	ret->address = f->address;
	ret->ifunc = false;
	return 0;
}

int binary_symbolise_near(struct binary *b, uint64_t known, uint64_t known_at, uint64_t *address,
			  struct symbol *ret)
{
	uint64_t begin, offset;

	if (!image_address(&b->image, known, &begin))
		return -ENOENT;
	*address -= known_at - begin;
	if (!image_offset(&b->image, *address, true, &offset))
		return -ENOENT;
	return binary_symbolise(b, offset, ret);
}
