// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel's functions in about four megabytes: one name for each address, as an offset of 32
 * bits from the lowest one. Its code and that of modules are within 4 GiB, for the reach of calls.
 */
#include "probes/kernel/kallsyms.h"
#include "probes/process/priv.h"

#define NAMES_MAX   (32u << 20)
#define MODULES_MAX 4096
#define REACH_MAX \
	(256u << 10) /* no function is as big; between the kernel and its modules is nothing */
#define AGAIN_NS 10000000000ull

struct kernel_name {
	uint32_t address;
	uint32_t name;
	uint16_t module; /* of kernel_names.modules; 0: the kernel itself */
	uint8_t rank;
};

static int grow(void *array, size_t *max, size_t want, size_t size)
{
	void **a = array;
	size_t more = *max ? *max : 4096;
	void *bigger;

	while (more < want)
		more += more / 2;
	if (more == *max)
		return 0;
	bigger = reallocarray(*a, more, size);
	if (!bigger)
		return -ENOMEM;
	*a = bigger;
	*max = more;
	return 0;
}

/* Global names first; underscores stand before what only the linker sees. */
static uint8_t rank_of(const struct kallsym *s)
{
	size_t underscores = strspn(s->name, "_");

	return (uint8_t)((s->type == 'T'   ? 0
			  : s->type == 't' ? 16
					   : 32) +
			 (underscores < 15 ? underscores : 15));
}

/* Symbols of a module follow one another. */
static int module_of(struct kernel_names *k, const char *name)
{
	char(*v)[sizeof(*k->modules)];

	if (!*name)
		return 0;
	for (size_t i = k->n_modules; i > 0; i--)
		if (streq(k->modules[i - 1], name))
			return (int)i;
	if (k->n_modules == MODULES_MAX)
		return 0;
	v = reallocarray(k->modules, k->n_modules + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	k->modules = v;
	snprintf(v[k->n_modules++], sizeof(*v), "%s", name);
	return (int)k->n_modules;
}

static int on_symbol(void *arg, const struct kallsym *s)
{
	struct kernel_names *k = arg;
	size_t len = strlen(s->name) + 1;
	int r, module;

	/* the first is the lowest; what is below is no code, and zero is hidden */
	if (!s->address || !kallsym_is_code(s) || starts_with(s->name, "__pfx_"))
		return 0;
	if (!k->n)
		k->base = s->address & ~((1ull << 32) - 1);
	if (s->address - k->base > UINT32_MAX || k->names_len + len > NAMES_MAX)
		return 0;
	r = grow(&k->v, &k->max, k->n + 1, sizeof(*k->v));
	if (!r)
		r = grow(&k->names, &k->names_max, k->names_len + len, 1);
	module = r ? r : module_of(k, s->module);
	if (module < 0)
		return module;
	memcpy(k->names + k->names_len, s->name, len);
	k->v[k->n++] = (struct kernel_name){
		.address = (uint32_t)(s->address - k->base),
		.name = (uint32_t)k->names_len,
		.module = (uint16_t)module,
		.rank = rank_of(s),
	};
	k->names_len += len;
	return 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct kernel_name *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

void kernel_names_free(struct kernel_names *k)
{
	free(k->v);
	free(k->names);
	free(k->modules);
	*k = (struct kernel_names){0};
}

static int load(struct kernel_names *k)
{
	size_t n = 0;
	int r;

	kernel_names_free(k);
	k->loaded = true;
	k->loaded_at = time_mono_ns();
	r = kallsyms_read(KALLSYMS, on_symbol, k);
	if (r < 0) {
		kernel_names_free(k);
		k->loaded = true;
		k->loaded_at = time_mono_ns();
		return r;
	}
	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), compare);
	for (size_t i = 0; i < k->n; i++)
		if (!n || k->v[n - 1].address != k->v[i].address)
			k->v[n++] = k->v[i];
	k->n = n;
	return 0;
}

static bool find(const struct kernel_names *k, uint64_t address, const char **name,
		 const char **module, uint64_t *offset)
{
	uint64_t at = address - k->base;
	size_t low = 0, high = k->n;
	const struct kernel_name *f;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->v[mid].address <= at)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || at - k->v[low - 1].address > REACH_MAX)
		return false;
	f = &k->v[low - 1];
	*name = k->names + f->name;
	*module = f->module ? k->modules[f->module - 1] : NULL;
	*offset = at - f->address;
	return true;
}

int kernel_names_find(struct kernel_names *k, uint64_t address, const char **name,
		      const char **module, uint64_t *offset)
{
	int r = k->loaded ? 0 : load(k);

	if (r < 0)
		return r;
	if (find(k, address, name, module, offset))
		return 0;
	/* modules and programs of BPF come and go; an address that is none is not asked about twice
	 */
	if (time_mono_ns() - k->loaded_at < AGAIN_NS)
		return -ENOENT;
	r = load(k);
	if (r < 0)
		return r;
	return find(k, address, name, module, offset) ? 0 : -ENOENT;
}
