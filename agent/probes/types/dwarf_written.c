// SPDX-License-Identifier: GPL-2.0-or-later
/* Types and functions as their source has them, by their entries in the debug data. */
#include "probes/types/dwarf_priv.h"

static Dwarf_Die die_of(uint64_t id, void *unit)
{
	return (Dwarf_Die){.addr = (void *)(uintptr_t)id, .cu = unit};
}

static int language_of(Dwarf_Die *die)
{
	Dwarf_Die unit;

	return dwarf_cu_die(die->cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL)
		       ? dwarf_srclang(&unit)
		       : -1;
}

/* --- types --- */

static int give_name(Dwarf_Die *die, const char *prefix, struct written *w)
{
	const char *name = dwarf_name(die);

	w->kind = WRITTEN_NAME;
	w->name = name && *name ? name : *prefix ? "{...}" : "?";
	/* only C needs the word; where there is no name, it is all that there is */
	w->prefix = w->name == name && !dwarf_language_is_c(language_of(die)) ? "" : prefix;
	return 0;
}

static int go_on(Dwarf_Die *die, enum written_kind kind, struct written *w)
{
	Dwarf_Attribute attr;
	Dwarf_Die next;

	w->kind = kind;
	w->id = 0;
	if (!dwarf_attr_integrate(die, DW_AT_type, &attr))
		return 0;
	if (!dwarf_formref_die(&attr, &next))
		return -EINVAL;
	w->id = (uint64_t)(uintptr_t)next.addr;
	w->unit = next.cu;
	return 0;
}

static int step_array(Dwarf_Die *die, struct written *w)
{
	unsigned dimension = w->dimension;
	uint64_t unused;

	w->count = 0;
	dwarf_array_count(die, dimension, &w->count);
	if (dwarf_array_count(die, dimension + 1, &unused) == 0) {
		w->kind = WRITTEN_ARRAY; /* the next one is of the same entry */
		w->dimension = (uint8_t)(dimension + 1);
		return 0;
	}
	w->dimension = 0;
	return go_on(die, WRITTEN_ARRAY, w);
}

int dwarf_written(struct type_source *s, struct written *w)
{
	Dwarf_Die die = die_of(w->id, w->unit);
	int tag = dwarf_tag(&die);

	(void)s;
	w->prefix = "";
	w->name = NULL;
	switch (tag) {
	case DW_TAG_const_type:
		return go_on(&die, WRITTEN_CONST, w);
	case DW_TAG_volatile_type:
		return go_on(&die, WRITTEN_VOLATILE, w);
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
		return go_on(&die, WRITTEN_NOTHING, w);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return give_name(&die, "struct ", w);
	case DW_TAG_union_type:
		return give_name(&die, "union ", w);
	case DW_TAG_enumeration_type:
		return give_name(&die, "enum ", w);
	case DW_TAG_pointer_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
		/* Go has names for them */
		if (dwarf_hasattr(&die, DW_AT_name))
			return give_name(&die, "", w);
		if (tag == DW_TAG_array_type)
			return step_array(&die, w);
		return go_on(&die, tag == DW_TAG_pointer_type ? WRITTEN_POINTER : WRITTEN_FUNCTION,
			     w);
	case DW_TAG_reference_type:
		return go_on(&die, WRITTEN_REFERENCE, w);
	case DW_TAG_rvalue_reference_type:
		return go_on(&die, WRITTEN_RVALUE, w);
	default:
		return give_name(&die, "", w);
	}
}

struct nth_parameter {
	size_t want, at;
	Dwarf_Die found;
};

static int on_nth(void *arg, Dwarf_Die *die)
{
	struct nth_parameter *n = arg;

	if (dwarf_tag(die) != DW_TAG_formal_parameter || n->at++ != n->want)
		return 0;
	n->found = *die;
	return 1;
}

int dwarf_type_parameter(struct type_source *s, const struct ctype *t, size_t which,
			 struct ctype *ret)
{
	Dwarf_Die die = die_of(t->written_id, t->written_unit);
	struct nth_parameter n = {.want = which};

	if (!dwarf_children(&die, on_nth, &n))
		return -ENOENT;
	return dwarf_type_of((struct dwarf *)s, &n.found, ret);
}

/* --- functions --- */

struct prototype_walk {
	struct dwarf *d;
	struct prototype *ret;
};

static int on_parameter(void *arg, Dwarf_Die *die)
{
	struct prototype_walk *w = arg;
	struct prototype *p = w->ret;
	struct prototype_parameter *v = &p->parameters[p->n];
	int tag = dwarf_tag(die);

	if (tag == DW_TAG_unspecified_parameters)
		p->variadic = true;
	if (tag != DW_TAG_formal_parameter)
		return 0;
	if (p->n == PROTOTYPE_PARAMETERS) {
		p->variadic = true;
		return 1;
	}
	v->name = dwarf_name(die);
	if (v->name && !*v->name)
		v->name = NULL;
	v->is_result = p->go && dwarf_flag(die, DW_AT_variable_parameter);
	if (dwarf_type_of(w->d, die, &v->type))
		v->type = (struct ctype){.kind = CTYPE_OTHER};
	p->n++;
	return 0;
}

void dwarf_prototype_of(struct dwarf *d, Dwarf_Die *die, int language, struct prototype *ret)
{
	struct prototype_walk w = {d, ret};
	int line;

	*ret = (struct prototype){.name = dwarf_name(die), .source = dwarf_declared_in(die)};
	ret->go = language == DW_LANG_Go;
	ret->cxx = dwarf_language_is_cxx(language);
	ret->line = dwarf_decl_line(die, &line) || line < 0 ? 0 : (uint32_t)line;
	if (dwarf_type_of(d, die, &ret->returns))
		ret->returns = (struct ctype){.kind = CTYPE_OTHER};
	dwarf_children(die, on_parameter, &w);
}

/* Go does not say where its functions are declared: then it is where their code begins. */
static uint32_t first_line(struct dwarf_unit *u, uint64_t address)
{
	Dwarf_Line *l = dwarf_getsrc_die(&u->die, address);
	int line;

	return l && dwarf_lineno(l, &line) == 0 && line > 0 ? (uint32_t)line : 0;
}

int dwarf_prototype(struct dwarf *d, uint64_t offset, struct prototype *ret, struct error *e)
{
	struct dwarf_scopes scopes;
	uint64_t address;
	int r = dwarf_load(d, e);

	if (r < 0)
		return r;
	if (!dwarf_to_address(d, offset, &address) || dwarf_scopes_at(d, address, &scopes) ||
	    scopes.entry != address)
		return error_set(e, -ENOENT, "the debug data of %.200s knows no function at 0x%llx",
				 d->path, (unsigned long long)offset);
	dwarf_prototype_of(d, &scopes.dies[0], scopes.unit->language, ret);
	if (!ret->line)
		ret->line = first_line(scopes.unit, address);
	return 0;
}
