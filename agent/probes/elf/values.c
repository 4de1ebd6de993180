// SPDX-License-Identifier: GPL-2.0-or-later
/* The values of all symbols, functions and data, which only the operands of USDT probes and globals
 * need. */
#include "probes/elf/priv.h"

static int values_load_table(const struct image *im, const Elf64_Shdr *table, struct values *v)
{
	void *symbols, *names;
	size_t len, names_len;
	int r;

	if (table->sh_link >= im->n_sections || table->sh_entsize != sizeof(Elf64_Sym))
		return 0;
	r = image_section_load(im, table, &symbols, &len);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = image_section_load(im, &im->sections[table->sh_link], &names, &names_len);
	if (r < 0) {
		free(symbols);
		return r == -ENOMEM ? r : 0;
	}
	v->symbols[v->n_tables] = symbols;
	v->names[v->n_tables] = names;
	v->n[v->n_tables] = len / sizeof(Elf64_Sym);
	v->names_len[v->n_tables++] = names_len;
	return 0;
}

static int values_load(struct binary *b, struct values *v)
{
	bool seen[2] = {false, false};
	int r = 0;

	v->loaded = true;
	for (size_t i = 0; !r && i < b->image.n_sections; i++) {
		uint32_t type = b->image.sections[i].sh_type;

		if ((type != SHT_SYMTAB && type != SHT_DYNSYM) || seen[type == SHT_DYNSYM])
			continue;
		seen[type == SHT_DYNSYM] = true;
		r = values_load_table(&b->image, &b->image.sections[i], v);
	}
	return r;
}

void values_free(struct values *v)
{
	for (size_t i = 0; i < v->n_tables; i++) {
		free(v->symbols[i]);
		free(v->names[i]);
	}
	*v = (struct values){0};
}

int values_find(struct binary *b, struct values *v, const char *name, uint64_t *value)
{
	int r = v->loaded ? 0 : values_load(b, v);

	for (size_t t = 0; !r && t < v->n_tables; t++) {
		for (size_t i = 0; i < v->n[t] && v->steps < VALUES_STEPS_MAX; i++, v->steps++) {
			const Elf64_Sym *s = &v->symbols[t][i];

			if (s->st_name >= v->names_len[t] || s->st_shndx == SHN_UNDEF ||
			    ELF64_ST_TYPE(s->st_info) == STT_TLS ||
			    !streq(v->names[t] + s->st_name, name))
				continue;
			*value = s->st_value;
			return 0;
		}
	}
	return r ? r : -ENOENT;
}

int binary_distance(struct binary *b, uint64_t from, const char *symbol, int64_t offset,
		    int64_t *ret, struct error *e)
{
	struct values values = {0};
	uint64_t begin, value = 0;
	bool found;

	if (!image_address(&b->image, from, &begin))
		return error_set(e, -EINVAL, "0x%llx is not in the program's code",
				 (unsigned long long)from);
	if (symbol) {
		found = values_find(b, &values, symbol, &value) == 0;
		values_free(&values);
		value += (uint64_t)offset;
	} else {
		found = image_address(&b->image, (uint64_t)offset, &value);
	}
	if (!found && symbol)
		return error_set(e, -ENOENT, "%.200s has no symbol %.100s", b->path, symbol);
	if (!found)
		return error_set(e, -ENOENT, "0x%llx of %.200s is not mapped when it runs",
				 (unsigned long long)offset, b->path);
	*ret = (int64_t)(value - begin);
	return 0;
}
