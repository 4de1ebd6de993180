// SPDX-License-Identifier: GPL-2.0-or-later
/* Data of programs and of the kernel, by their names. */
#include "probes/elf/symbols.h"
#include "probes/kernel/kallsyms.h"
#include "probes/kernel/symbols.h"

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

struct wanted {
	const char *name;
	uint64_t address;
};

static int on_kernel_symbol(void *arg, const struct kallsym *s)
{
	struct wanted *w = arg;

	if (!streq(s->name, w->name))
		return 0;
	w->address = s->address;
	return 1;
}

int kernel_symbol_address(const char *name, uint64_t *ret, struct error *e)
{
	struct wanted w = {.name = name};
	int r = kallsyms_read(KALLSYMS, on_kernel_symbol, &w);

	if (r < 0)
		return error_set(e, r, "%s cannot be read: %s", KALLSYMS, strerror(-r));
	if (!r)
		return error_set(e, -ENOENT, "the kernel has no symbol %.100s", name);
	if (!w.address)
		return error_set(e, -EPERM, "the kernel hides its addresses: run ax as root");
	*ret = w.address;
	return 0;
}
