// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions by name, also of data that has only declarations. */
#include "probes/types/dwarf_priv.h"

#define NAMED_MAX (1u << 22)

struct named_walk {
	struct dwarf *d;
	int language;
	unsigned depth;
};

static int add(struct dwarf *d, const struct dwarf_named *f)
{
	if (!f->name || !*f->name)
		return 0;
	if (d->n_named == NAMED_MAX)
		return 1;
	if (d->n_named == d->max_named) {
		size_t more = d->max_named ? 2 * d->max_named : 256;
		struct dwarf_named *bigger = realloc(d->named, more * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		d->named = bigger;
		d->max_named = more;
	}
	d->named[d->n_named++] = *f;
	return 0;
}

static int on_function(struct named_walk *w, Dwarf_Die *die)
{
	const char *linkage = dwarf_text(die, DW_AT_linkage_name);
	struct dwarf_named f = {.name = dwarf_name(die), .die = *die, .language = w->language};
	int r;

	f.declared = dwarf_hasattr(die, DW_AT_declaration);
	r = add(w->d, &f);
	if (r || !linkage || (f.name && streq(linkage, f.name)))
		return r;
	f.name = linkage;
	return add(w->d, &f);
}

static int on_entry(void *arg, Dwarf_Die *die)
{
	struct named_walk *w = arg;
	int r;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return on_function(w, die);
	case DW_TAG_namespace:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		if (w->depth == DWARF_DEPTH_MAX || !dwarf_haschildren(die))
			return 0;
		w->depth++;
		r = dwarf_children(die, on_entry, w);
		w->depth--;
		return r;
	default:
		return 0;
	}
}

/* Of one name those with code come first, and else as the data has them. */
static int compare(const void *a, const void *b)
{
	const struct dwarf_named *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	if (r)
		return r;
	if (x->declared != y->declared)
		return x->declared ? 1 : -1;
	return x->die.addr < y->die.addr ? -1 : x->die.addr > y->die.addr;
}

static int load_named(struct dwarf *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n_units; i++) {
		struct named_walk w = {.d = d, .language = d->units[i].language};

		r = dwarf_children(&d->units[i].die, on_entry, &w);
	}
	if (r < 0)
		return r;
	if (d->n_named)
		qsort(d->named, d->n_named, sizeof(*d->named), compare);
	return 0;
}

int dwarf_prototype_named(struct dwarf *d, const char *name, struct prototype *ret)
{
	size_t low = 0, high;
	int r = d->named ? 0 : load_named(d);

	if (r < 0)
		return r;
	for (high = d->n_named; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(d->named[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == d->n_named || !streq(d->named[low].name, name))
		return -ENOENT;
	dwarf_prototype_of(d, &d->named[low].die, d->named[low].language, ret);
	return 0;
}
