// SPDX-License-Identifier: GPL-2.0-or-later
/* Types by their entries in the debug data. */
#include "probes/types/dwarf_priv.h"

#define DIMENSIONS_MAX 8
#define ARRAY_MAX      (1ull << 40) /* elements: more is broken data */

static struct dwarf *dwarf_of(struct type_source *s)
{
	return (struct dwarf *)s;
}

static void save_die(struct ctype *t, const Dwarf_Die *die)
{
	t->id = (uint64_t)(uintptr_t)die->addr;
	t->unit = die->cu;
}

static void restore_die(const struct ctype *t, Dwarf_Die *die)
{
	*die = (Dwarf_Die){.addr = (void *)(uintptr_t)t->id, .cu = t->unit};
}

/* What is behind names and qualifiers; -ENOENT: nothing, as behind "const void". */
static int peel(Dwarf_Die *die)
{
	for (int i = 0; i < DWARF_DEPTH_MAX; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die next;

		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
		case DW_TAG_immutable_type:
		case DW_TAG_packed_type:
		case DW_TAG_shared_type:
			break;
		default:
			return 0;
		}
		/* Go's named types hold their structure themselves */
		if (!dwarf_attr(die, DW_AT_type, &attr))
			return -ENOENT;
		if (!dwarf_formref_die(&attr, &next))
			return -EINVAL;
		*die = next;
	}
	return -ELOOP;
}

static int type_of_die(struct dwarf *d, Dwarf_Die *die, unsigned depth, struct ctype *ret);

/* The type that an entry's DW_AT_type is. */
static int type_at(struct dwarf *d, Dwarf_Die *die, unsigned depth, struct ctype *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Die type, written;
	int r;

	*ret = (struct ctype){.kind = CTYPE_VOID, .source = &d->types};
	if (!dwarf_attr_integrate(die, DW_AT_type, &attr))
		return 0;
	if (!dwarf_formref_die(&attr, &type))
		return -EINVAL;
	written = type;
	r = peel(&type);
	if (r == 0)
		r = type_of_die(d, &type, depth, ret);
	ret->written_id = (uint64_t)(uintptr_t)written.addr;
	ret->written_unit = written.cu;
	return r == -ENOENT ? 0 : r;
}

static void fill_base(Dwarf_Die *die, struct ctype *t)
{
	const char *name = dwarf_name(die);
	uint64_t encoding = 0;

	dwarf_number(die, DW_AT_encoding, &encoding);
	t->kind = CTYPE_INTEGER;
	switch (encoding) {
	case DW_ATE_boolean:
		t->kind = CTYPE_BOOL;
		break;
	case DW_ATE_float:
		t->kind = CTYPE_FLOAT;
		break;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		if (name && streq(name, "char"))
			t->kind = CTYPE_CHAR;
		t->is_signed = encoding == DW_ATE_signed_char;
		break;
	case DW_ATE_signed:
		t->is_signed = true;
		break;
	case DW_ATE_unsigned:
	case DW_ATE_UTF:
	case DW_ATE_address:
		break;
	default: /* complex and decimal numbers */
		t->kind = CTYPE_OTHER;
	}
}

static void fill_enum(struct dwarf *d, Dwarf_Die *die, unsigned depth, struct ctype *t)
{
	struct ctype base;
	uint64_t encoding;

	t->kind = CTYPE_ENUM;
	if (dwarf_number(die, DW_AT_encoding, &encoding))
		t->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	else if (type_at(d, die, depth, &base) == 0 && base.kind == CTYPE_INTEGER)
		t->is_signed = base.is_signed;
	if (!t->size)
		t->size = 4;
}

/* --- arrays --- */

struct dimensions {
	uint64_t count[DIMENSIONS_MAX];
	size_t n;
};

static int on_dimension(void *arg, Dwarf_Die *die)
{
	struct dimensions *a = arg;
	uint64_t n = 0, lower = 0, upper;
	int tag = dwarf_tag(die);

	if (tag != DW_TAG_subrange_type && tag != DW_TAG_enumeration_type)
		return 0;
	if (a->n == DIMENSIONS_MAX)
		return 1;
	dwarf_number(die, DW_AT_lower_bound, &lower);
	if (!dwarf_number(die, DW_AT_count, &n) && dwarf_number(die, DW_AT_upper_bound, &upper))
		n = upper - lower + 1;
	a->count[a->n++] = n > ARRAY_MAX ? 0 : n;
	return 0;
}

/* How many, counted from that dimension on; 0: not known. */
static int array_count(Dwarf_Die *die, unsigned from, struct dimensions *a, uint64_t *all)
{
	*a = (struct dimensions){0};
	dwarf_children(die, on_dimension, a);
	if (from >= a->n)
		return -ENOENT;
	*all = 1;
	for (size_t i = from; i < a->n; i++)
		if (!a->count[i] || __builtin_mul_overflow(*all, a->count[i], all) ||
		    *all > ARRAY_MAX)
			*all = 0;
	return 0;
}

int dwarf_array_count(Dwarf_Die *die, unsigned dimension, uint64_t *ret)
{
	struct dimensions a = {0};

	dwarf_children(die, on_dimension, &a);
	if (dimension >= a.n)
		return -ENOENT;
	*ret = a.count[dimension];
	return 0;
}

static void fill_array(struct dwarf *d, Dwarf_Die *die, unsigned depth, struct ctype *t)
{
	struct dimensions a;
	struct ctype element;
	uint64_t all;

	t->kind = CTYPE_ARRAY;
	if (array_count(die, t->dimension, &a, &all) || type_at(d, die, depth, &element))
		return;
	t->count = a.count[t->dimension];
	if (!t->size && __builtin_mul_overflow(all, element.size, &t->size))
		t->size = 0;
}

/* --- the kinds --- */

static int on_method(void *arg, Dwarf_Die *die)
{
	const char *name;

	(void)arg;
	if (dwarf_tag(die) != DW_TAG_subprogram)
		return 0;
	name = dwarf_name(die);
	return name && *name == '~' && !dwarf_hasattr(die, DW_AT_defaulted);
}

/* A class with a destructor stays where it is: values of it are passed by their address. gcc 12
 * does not say so itself. */
static void fill_struct(Dwarf_Die *die, struct ctype *t, enum ctype_kind kind)
{
	uint64_t convention;

	t->kind = kind;
	if (dwarf_number(die, DW_AT_calling_convention, &convention))
		t->by_reference = convention == DW_CC_pass_by_reference;
	else if (dwarf_haschildren(die))
		t->by_reference = dwarf_children(die, on_method, NULL) > 0;
}

static int type_of_die(struct dwarf *d, Dwarf_Die *die, unsigned depth, struct ctype *ret)
{
	if (depth >= DWARF_DEPTH_MAX)
		return -ELOOP;
	*ret = (struct ctype){.kind = CTYPE_OTHER, .source = &d->types};
	save_die(ret, die);
	dwarf_number(die, DW_AT_byte_size, &ret->size);
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		fill_base(die, ret);
		break;
	case DW_TAG_enumeration_type:
		fill_enum(d, die, depth + 1, ret);
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		ret->kind = CTYPE_POINTER;
		ret->size = 8;
		break;
	case DW_TAG_array_type:
		fill_array(d, die, depth + 1, ret);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		fill_struct(die, ret, CTYPE_STRUCT);
		break;
	case DW_TAG_union_type:
		fill_struct(die, ret, CTYPE_UNION);
		break;
	case DW_TAG_subroutine_type:
		ret->kind = CTYPE_FUNCTION;
		break;
	case DW_TAG_unspecified_type: /* decltype(nullptr) */
		ret->kind = CTYPE_POINTER;
		ret->size = 8;
		break;
	case DW_TAG_subrange_type:
		return type_at(d, die, depth + 1, ret);
	default:
		break;
	}
	return 0;
}

int dwarf_type_at_die(struct dwarf *d, Dwarf_Die *die, struct ctype *ret)
{
	Dwarf_Die type = *die;
	int r = peel(&type);

	if (r == 0)
		r = type_of_die(d, &type, 0, ret);
	return r;
}

int dwarf_type_of(struct dwarf *d, Dwarf_Die *die, struct ctype *ret)
{
	return type_at(d, die, 0, ret);
}

static int source_target(struct type_source *s, const struct ctype *t, struct ctype *ret)
{
	struct dwarf *d = dwarf_of(s);
	Dwarf_Die die;
	struct dimensions a;
	uint64_t all;

	restore_die(t, &die);
	if (t->kind == CTYPE_ARRAY && !array_count(&die, t->dimension + 1u, &a, &all)) {
		*ret = *t;
		ret->dimension++;
		ret->size = 0; /* the whole array's may have been said */
		fill_array(d, &die, 0, ret);
		return 0;
	}
	if (t->kind != CTYPE_POINTER && t->kind != CTYPE_ARRAY)
		return -ENOENT;
	return type_at(d, &die, 0, ret);
}

/* --- members --- */

struct member_walk {
	struct dwarf *d;
	int (*f)(void *arg, const struct ctype_member *m);
	void *arg;
	int r;
};

static bool member_offset(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;
	Dwarf_Op *ops;
	size_t n;

	*ret = 0;
	if (!dwarf_attr(die, DW_AT_data_member_location, &attr))
		return true;
	if (dwarf_formudata(&attr, &word) == 0) {
		*ret = word;
		return true;
	}
	if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom != DW_OP_plus_uconst)
		return false; /* of a virtual base class: known only at run time */
	*ret = ops[0].number;
	return true;
}

/* Its lowest bit, counted from where the struct begins. */
static bool member_bits(Dwarf_Die *die, struct ctype_member *m)
{
	uint64_t bits, at, unit = m->type.size;

	if (!dwarf_number(die, DW_AT_bit_size, &bits))
		return true;
	if (!bits || bits > 64)
		return false;
	if (dwarf_number(die, DW_AT_data_bit_offset, &at)) {
		at += m->offset * 8;
	} else if (dwarf_number(die, DW_AT_bit_offset, &at)) {
		/* as DWARF 3 has it: from the highest bit of the unit on */
		dwarf_number(die, DW_AT_byte_size, &unit);
		if (at + bits > unit * 8)
			return false;
		at = m->offset * 8 + unit * 8 - at - bits;
	} else {
		at = m->offset * 8;
	}
	m->offset = at / 8;
	m->bit = (uint8_t)(at % 8);
	m->bits = (uint8_t)bits;
	return true;
}

static int on_die_member(void *arg, Dwarf_Die *die)
{
	struct member_walk *w = arg;
	struct ctype_member m = {0};
	int tag = dwarf_tag(die);

	if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
		return 0;
	/* a static member of a class is a variable */
	if (dwarf_hasattr(die, DW_AT_external) || dwarf_hasattr(die, DW_AT_declaration))
		return 0;
	m.name = tag == DW_TAG_member ? dwarf_name(die) : NULL;
	if (m.name && !*m.name)
		m.name = NULL;
	if (type_at(w->d, die, 0, &m.type) || !member_offset(die, &m.offset) ||
	    !member_bits(die, &m))
		return 0;
	w->r = w->f(w->arg, &m);
	return w->r;
}

/* A struct that one unit only declares is defined in another. */
struct definition {
	const char *name;
	int tag;
	Dwarf_Die found;
};

static int on_definition(void *arg, Dwarf_Die *die)
{
	struct definition *x = arg;
	const char *name;

	if (dwarf_tag(die) != x->tag || dwarf_hasattr(die, DW_AT_declaration))
		return 0;
	name = dwarf_name(die);
	if (!name || !streq(name, x->name))
		return 0;
	x->found = *die;
	return 1;
}

static bool find_definition(struct dwarf *d, Dwarf_Die *die)
{
	struct definition x = {.name = dwarf_name(die), .tag = dwarf_tag(die)};

	if (!x.name)
		return false;
	for (size_t i = 0; i < d->n_units; i++)
		if (dwarf_children(&d->units[i].die, on_definition, &x)) {
			*die = x.found;
			return true;
		}
	return false;
}

static int source_members(struct type_source *s, const struct ctype *t,
			  int (*f)(void *arg, const struct ctype_member *m), void *arg)
{
	struct member_walk w = {.d = dwarf_of(s), .f = f, .arg = arg};
	Dwarf_Die die;

	restore_die(t, &die);
	if (dwarf_hasattr(&die, DW_AT_declaration) && !find_definition(w.d, &die))
		return -ENODATA;
	dwarf_children(&die, on_die_member, &w);
	return w.r;
}

static const char *source_name(struct type_source *s, const struct ctype *t)
{
	const char *name;
	Dwarf_Die die;

	(void)s;
	if (!t->id)
		return NULL;
	restore_die(t, &die);
	name = dwarf_name(&die);
	return name && *name ? name : NULL;
}

/* --- values of enums --- */

struct enumerator_walk {
	int (*f)(void *arg, const char *name, int64_t value);
	void *arg;
	int r;
};

/* Of the forms that say nothing of a sign, negative values have none. */
static bool enumerator_value(Dwarf_Die *die, int64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;
	Dwarf_Sword sword;
	unsigned form;

	if (!dwarf_attr(die, DW_AT_const_value, &attr))
		return false;
	form = dwarf_whatform(&attr);
	if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
		if (dwarf_formsdata(&attr, &sword))
			return false;
		*ret = sword;
		return true;
	}
	if (dwarf_formudata(&attr, &word))
		return false;
	*ret = (int64_t)word;
	return true;
}

static int on_die_enumerator(void *arg, Dwarf_Die *die)
{
	struct enumerator_walk *w = arg;
	const char *name = dwarf_name(die);
	int64_t value;

	if (dwarf_tag(die) != DW_TAG_enumerator || !name || !*name ||
	    !enumerator_value(die, &value))
		return 0;
	w->r = w->f(w->arg, name, value);
	return w->r;
}

static int source_enumerators(struct type_source *s, const struct ctype *t,
			      int (*f)(void *arg, const char *name, int64_t value), void *arg)
{
	struct enumerator_walk w = {.f = f, .arg = arg};
	Dwarf_Die die;

	(void)s;
	if (t->kind != CTYPE_ENUM || !t->id)
		return -ENOENT;
	restore_die(t, &die);
	dwarf_children(&die, on_die_enumerator, &w);
	return w.r;
}

void dwarf_init_types(struct dwarf *d)
{
	d->types = (struct type_source){.target = source_target,
					.members = source_members,
					.name = source_name,
					.enumerators = source_enumerators,
					.written = dwarf_written,
					.parameter = dwarf_type_parameter};
}
