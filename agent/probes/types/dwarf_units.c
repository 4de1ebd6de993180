// SPDX-License-Identifier: GPL-2.0-or-later
/* Which unit, function and block of the debug data an address is in. */
#include "base/search.h"
#include "probes/types/dwarf_priv.h"

#define UNITS_MAX  (1u << 20)
#define SPANS_MAX  (1u << 22)
#define ORIGIN_MAX 16

/* --- entries --- */

int dwarf_children(Dwarf_Die *parent, int (*f)(void *arg, Dwarf_Die *die), void *arg)
{
	Dwarf_Die die, next;
	int r = dwarf_child(parent, &die);

	/* Broken data ends a level. Siblings only ever go forward, libdw sees to that. */
	while (r == 0) {
		int done = f(arg, &die);

		if (done)
			return done;
		r = dwarf_siblingof(&die, &next);
		die = next;
	}
	return 0;
}

void dwarf_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
	*ret = *die;
	for (int i = 0; i < ORIGIN_MAX; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die next;

		if (!dwarf_attr(ret, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(ret, DW_AT_specification, &attr))
			return;
		if (!dwarf_formref_die(&attr, &next))
			return;
		*ret = next;
	}
}

/* What is behind it in its unit; 0: it is not in it. */
static size_t left_in_unit(const Dwarf_Attribute *attr)
{
	Dwarf_Half version;
	uint8_t type, *start;
	Dwarf_Off first, next;
	uint64_t signature;
	size_t header;
	Dwarf_Die die;

	if (dwarf_cu_info(attr->cu, &version, &type, &die, NULL, NULL, NULL, NULL))
		return 0;
	first = dwarf_dieoffset(&die) - dwarf_cuoffset(&die);
	/* only DWARF 4 has units of types in a section of their own */
	if (dwarf_next_unit(dwarf_cu_getdwarf(attr->cu), first, &next, &header, NULL, NULL, NULL,
			    NULL, version == 4 && type == DW_UT_type ? &signature : NULL, NULL))
		return 0;
	start = (uint8_t *)die.addr - dwarf_cuoffset(&die);
	if (attr->valp < start || (size_t)(attr->valp - start) >= next - first)
		return 0;
	return next - first - (size_t)(attr->valp - start);
}

const char *dwarf_text(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;

	if (!dwarf_attr_integrate(die, attribute, &attr))
		return NULL;
	/* libdw 0.188 does not look whether those that stand in the unit have an end */
	if (dwarf_whatform(&attr) == DW_FORM_string &&
	    !memchr(attr.valp, '\0', left_in_unit(&attr)))
		return NULL;
	return dwarf_formstring(&attr);
}

const char *dwarf_name(Dwarf_Die *die)
{
	return dwarf_text(die, DW_AT_name);
}

bool dwarf_flag(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;
	bool set = false;

	return dwarf_attr_integrate(die, attribute, &attr) && dwarf_formflag(&attr, &set) == 0 &&
	       set;
}

/* Go says that places are blocks, as before DWARF 4, though what it writes is newer, and libdw does
 * not take that. Both begin with their length, which up to 127 is one byte in either. */
bool dwarf_place(Dwarf_Die *die, unsigned attribute, Dwarf_Attribute *ret)
{
	Dwarf_Block block;

	if (!dwarf_attr_integrate(die, attribute, ret))
		return false;
	if ((ret->form == DW_FORM_block || ret->form == DW_FORM_block1) &&
	    !dwarf_formblock(ret, &block) && block.length < 128)
		ret->form = DW_FORM_exprloc;
	return true;
}

bool dwarf_number(Dwarf_Die *die, unsigned attribute, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;

	if (!dwarf_attr_integrate(die, attribute, &attr) || dwarf_formudata(&attr, &word))
		return false;
	*ret = word;
	return true;
}

/* Numbers that are newer than the library: C17, C++17 and C++20. */
#define LANG_C_PLUS_PLUS_17 0x2a
#define LANG_C_PLUS_PLUS_20 0x2b
#define LANG_C17	    0x2c

bool dwarf_language_is_c(int language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_ObjC:
	case LANG_C17:
		return true;
	default:
		return false;
	}
}

bool dwarf_language_is_cxx(int language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_ObjC_plus_plus:
	case LANG_C_PLUS_PLUS_17:
	case LANG_C_PLUS_PLUS_20:
		return true;
	default:
		return false;
	}
}

static bool has_address(Dwarf_Die *die, uint64_t address)
{
	return dwarf_haspc(die, address) > 0;
}

/* --- spans of addresses --- */

static int compare_spans(const void *a, const void *b)
{
	const struct dwarf_span *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

static int add_spans(struct dwarf_span **v, size_t *n, size_t *max, Dwarf_Die *die, size_t index)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (low >= high)
			continue;
		if (*n == SPANS_MAX)
			return 0;
		if (*n == *max) {
			size_t more = *max ? *max * 2 : 64;
			struct dwarf_span *bigger = realloc(*v, more * sizeof(*bigger));

			if (!bigger)
				return -ENOMEM;
			*v = bigger;
			*max = more;
		}
		(*v)[(*n)++] = (struct dwarf_span){low, high, index};
	}
	return 0;
}

/* The span that the address is in and that begins last: SIZE_MAX, or its index. */
static size_t find_span(const struct dwarf_span *v, size_t n, uint64_t address)
{
	size_t above = search_above(v, n, sizeof(*v), offsetof(struct dwarf_span, low), address);

	/* spans do not overlap, but in data that lies; then the ones just before are looked at */
	for (size_t i = above, tries = 0; i-- > 0 && tries < 64; tries++)
		if (address < v[i].high)
			return v[i].index;
	return SIZE_MAX;
}

/* --- units --- */

static int add_unit(struct dwarf *d, Dwarf_Die *skeleton, Dwarf_Die *split, size_t *max_units,
		    size_t *max_spans)
{
	struct dwarf_unit *u;

	if (d->n_units == *max_units) {
		size_t more = *max_units ? *max_units * 2 : 64;
		struct dwarf_unit *bigger = realloc(d->units, more * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		d->units = bigger;
		*max_units = more;
	}
	u = &d->units[d->n_units];
	u->die = split->addr ? *split : *skeleton;
	u->language = dwarf_srclang(&u->die);
	return add_spans(&d->unit_spans, &d->n_unit_spans, max_spans, skeleton, d->n_units++);
}

int dwarf_index_units(struct dwarf *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	size_t max_units = 0, max_spans = 0, absent = 0;
	uint8_t type;
	int r;

	while (d->n_units < UNITS_MAX) {
		split = (Dwarf_Die){0};
		r = dwarf_get_units(d->dw, cu, &cu, NULL, &type, &die, &split);
		if (r)
			break;
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (type == DW_UT_skeleton && !split.addr) {
			absent++;
			continue;
		}
		r = add_unit(d, &die, &split, &max_units, &max_spans);
		if (r < 0)
			return r;
	}
	if (d->n_unit_spans)
		qsort(d->unit_spans, d->n_unit_spans, sizeof(*d->unit_spans), compare_spans);
	if (!d->n_units)
		return absent ? -ENODATA : -EINVAL;
	return 0;
}

void dwarf_free_units(struct dwarf *d)
{
	free(d->units);
	free(d->unit_spans);
	free(d->functions);
	free(d->function_spans);
}

struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t address)
{
	size_t i = find_span(d->unit_spans, d->n_unit_spans, address);

	return i == SIZE_MAX ? NULL : &d->units[i];
}

/* --- functions --- */

struct function_walk {
	struct dwarf *d;
	unsigned depth;
};

static int add_function(struct dwarf *d, Dwarf_Die *die)
{
	Dwarf_Addr entry;

	if (dwarf_entrypc(die, &entry))
		return 0; /* only declared, or only inlined */
	if (d->n_functions == d->max_functions) {
		size_t more = d->max_functions ? d->max_functions * 2 : 64;
		struct dwarf_code *bigger = realloc(d->functions, more * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		d->functions = bigger;
		d->max_functions = more;
	}
	d->functions[d->n_functions] = (struct dwarf_code){*die, entry};
	return add_spans(&d->function_spans, &d->n_function_spans, &d->max_function_spans, die,
			 d->n_functions++);
}

static int on_unit_entry(void *arg, Dwarf_Die *die)
{
	struct function_walk *w = arg;
	int r = 0;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return add_function(w->d, die);
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* Rust's have functions */
		if (w->depth == DWARF_DEPTH_MAX || !dwarf_haschildren(die))
			return 0;
		w->depth++;
		r = dwarf_children(die, on_unit_entry, w);
		w->depth--;
		return r;
	default:
		return 0;
	}
}

/* All functions with code of a unit. */
static int load_functions(struct dwarf *d, struct dwarf_unit *u)
{
	struct function_walk w = {.d = d};
	size_t index = (size_t)(u - d->units);
	int r;

	if (d->functions_unit == index)
		return 0;
	d->functions_unit = SIZE_MAX;
	d->n_functions = d->n_function_spans = 0;
	r = dwarf_children(&u->die, on_unit_entry, &w);
	if (r < 0)
		return r;
	if (d->n_function_spans)
		qsort(d->function_spans, d->n_function_spans, sizeof(*d->function_spans),
		      compare_spans);
	d->functions_unit = index;
	return 0;
}

struct scope_walk {
	struct dwarf_scopes *scopes;
	uint64_t address;
};

static int on_scope(void *arg, Dwarf_Die *die)
{
	struct scope_walk *w = arg;
	int tag = dwarf_tag(die);

	if (tag != DW_TAG_lexical_block && tag != DW_TAG_inlined_subroutine &&
	    tag != DW_TAG_try_block && tag != DW_TAG_catch_block && tag != DW_TAG_subprogram)
		return 0;
	if (!has_address(die, w->address))
		return 0;
	w->scopes->dies[w->scopes->n++] = *die;
	return 1;
}

int dwarf_scopes_at(struct dwarf *d, uint64_t address, struct dwarf_scopes *ret)
{
	struct scope_walk w = {.scopes = ret, .address = address};
	size_t i;
	int r;

	ret->n = 0;
	ret->unit = dwarf_unit_at(d, address);
	if (!ret->unit)
		return -ENOENT;
	r = load_functions(d, ret->unit);
	if (r < 0)
		return r;
	i = find_span(d->function_spans, d->n_function_spans, address);
	if (i == SIZE_MAX)
		return -ENOENT;
	ret->entry = d->functions[i].entry;
	ret->dies[ret->n++] = d->functions[i].die;
	while (ret->n < DWARF_DEPTH_MAX && dwarf_children(&ret->dies[ret->n - 1], on_scope, &w) > 0)
		continue;
	return 0;
}
