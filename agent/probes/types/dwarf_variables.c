// SPDX-License-Identifier: GPL-2.0-or-later
/* Variables that are visible at a place, and what a function gets and returns. */
#include "probes/types/dwarf_priv.h"

#define SEEN_MAX       512 /* names of variables of one place */
#define PARAMETERS_MAX 64

/* --- functions --- */

static int no_function(struct dwarf *d, uint64_t offset, struct error *e)
{
	return error_set(e, -ENOENT,
			 "the debug data of %.200s knows no function at 0x%llx: it knows only "
			 "what was compiled with -g",
			 d->path, (unsigned long long)offset);
}

struct place_of {
	struct dwarf *d;
	uint64_t address;
	struct dwarf_scopes scopes;
	struct dwarf_context context;
};

static int find_place(struct dwarf *d, uint64_t offset, struct place_of *p, struct error *e)
{
	int r = dwarf_load(d, e);

	if (r < 0)
		return r;
	p->d = d;
	if (!dwarf_to_address(d, offset, &p->address))
		return error_set(e, -ENOENT, "%.200s has no code at 0x%llx", d->path,
				 (unsigned long long)offset);
	r = dwarf_scopes_at(d, p->address, &p->scopes);
	if (r == -ENOMEM)
		return error_set(e, r, "out of memory");
	if (r < 0)
		return no_function(d, offset, e);
	p->context = (struct dwarf_context){
		.d = d,
		.address = p->address,
		.at_entry = p->scopes.entry == p->address,
		.function = &p->scopes.dies[0],
	};
	return 0;
}

static bool is_go(const struct place_of *p)
{
	return p->scopes.unit->language == DW_LANG_Go;
}

static bool c_convention(const struct place_of *p)
{
	return dwarf_language_is_c(p->scopes.unit->language) ||
	       dwarf_language_is_cxx(p->scopes.unit->language);
}

/* --- parameters at the entry --- */

/* Is what the debug data says of the function's first instruction true, too? Places for all of the
 * function often hold only behind its first instructions, which put the arguments there. */
static bool holds_at_entry(const struct place_of *p, Dwarf_Die *die, const struct where *w)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (!w->n_pieces || w->pieces[0].kind == WHERE_NOWHERE ||
	    !dwarf_place(die, DW_AT_location, &attr))
		return false;
	if (dwarf_whatform(&attr) != DW_FORM_exprloc && dwarf_whatform(&attr) != DW_FORM_block1 &&
	    dwarf_whatform(&attr) != DW_FORM_block2 && dwarf_whatform(&attr) != DW_FORM_block4 &&
	    dwarf_whatform(&attr) != DW_FORM_block)
		return true; /* a list of places, each for some instructions */
	if (w->pieces[0].kind == WHERE_VALUE)
		return true;
	/* where the caller put it on the stack, it stays; but Go has room there for others too */
	return !is_go(p) && dwarf_getlocation(&attr, &ops, &n) == 0 && n == 1 &&
	       ops[0].atom == DW_OP_fbreg && (int64_t)ops[0].number >= 0 &&
	       dwarf_place(p->context.function, DW_AT_frame_base, &attr) &&
	       dwarf_getlocation(&attr, &ops, &n) == 0 && n == 1 &&
	       ops[0].atom == DW_OP_call_frame_cfa;
}

/* The place that holds for all of the function ends by looking at an address: the argument is one.
 */
static bool passed_by_address(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	return dwarf_place(die, DW_AT_location, &attr) &&
	       dwarf_whatform(&attr) == DW_FORM_exprloc && !dwarf_getlocation(&attr, &ops, &n) &&
	       n > 1 && ops[n - 1].atom == DW_OP_deref;
}

struct seen {
	const char *names[SEEN_MAX];
	size_t n;
};

static bool seen_before(struct seen *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (streq(s->names[i], name))
			return true;
	if (s->n < SEEN_MAX)
		s->names[s->n++] = name;
	return false;
}

struct parameter_walk {
	struct place_of *p;
	struct dwarf_abi abi;
	bool by_convention, unchanged;
	bool results;	   /* of Go: they are parameters, too */
	struct seen *seen; /* NULL: all are given */
	int (*f)(void *arg, const struct dwarf_variable *v);
	void *arg;
	size_t n;
	int r;
};

static const char changed[] = "it is optimised away: the compiler left it out of this function's "
			      "parameters";

static int on_parameter(void *arg, Dwarf_Die *die)
{
	struct parameter_walk *w = arg;
	struct dwarf_variable v = {.is_parameter = true};
	struct where conventional;
	bool hidden;

	if (dwarf_tag(die) != DW_TAG_formal_parameter)
		return 0;
	if (dwarf_flag(die, DW_AT_variable_parameter) != w->results)
		return 0;
	if (w->n++ == PARAMETERS_MAX)
		return 1;
	v.name = dwarf_name(die);
	hidden = w->seen && v.name && seen_before(w->seen, v.name);
	if (dwarf_type_of(w->p->d, die, &v.type))
		v.type = (struct ctype){.kind = CTYPE_OTHER};
	if (ctype_is_aggregate(&v.type) && passed_by_address(die))
		v.type.by_reference = true;
	if (w->by_convention)
		dwarf_abi_next(&w->abi, &v.type, &conventional);
	else
		where_nowhere(&conventional, "where this language puts it is not known");
	dwarf_locate(&w->p->context, die, &v.where);
	if (w->results || !holds_at_entry(w->p, die, &v.where)) {
		/* A function of its file only may have lost parameters: then those that it has
		 * are not where they would be, and it is not said where those are. */
		if (!w->unchanged && !w->results && !dwarf_hasattr_integrate(die, DW_AT_location))
			where_nowhere(&v.where, changed);
		else
			v.where = conventional;
	}
	w->r = hidden ? 0 : w->f(w->arg, &v);
	return w->r;
}

static bool is_external(Dwarf_Die *die)
{
	return dwarf_flag(die, DW_AT_external);
}

static int entry_parameters(struct place_of *p, bool results, struct seen *seen,
			    int (*f)(void *arg, const struct dwarf_variable *v), void *arg)
{
	struct parameter_walk w = {.p = p, .f = f, .arg = arg, .results = results, .seen = seen};
	struct ctype returns;

	if (dwarf_type_of(p->d, &p->scopes.dies[0], &returns))
		returns = (struct ctype){.kind = CTYPE_VOID};
	w.by_convention = c_convention(p) || is_go(p);
	w.unchanged = is_external(&p->scopes.dies[0]) || is_go(p);
	dwarf_abi_start(&w.abi, p->d->machine, is_go(p), &returns);
	dwarf_children(&p->scopes.dies[0], on_parameter, &w);
	return w.r;
}

/* --- variables --- */

struct variable_walk {
	struct place_of *p;
	struct seen *seen;
	int tag;	   /* that is asked for */
	size_t first, end; /* scopes of one function, from the outermost on */
	bool global;
	int (*f)(void *arg, const struct dwarf_variable *v);
	void *arg;
	int r;
};

/* It is said for each instruction where it is, so that is also right at the first one. */
static bool has_list(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	return dwarf_place(die, DW_AT_location, &attr) &&
	       (dwarf_whatform(&attr) == DW_FORM_sec_offset ||
		dwarf_whatform(&attr) == DW_FORM_loclistx);
}

/* Static variables have one address for the whole program. */
static bool has_fixed_place(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	return dwarf_place(die, DW_AT_location, &attr) &&
	       dwarf_whatform(&attr) == DW_FORM_exprloc &&
	       dwarf_getlocation(&attr, &ops, &n) == 0 && n &&
	       (ops[0].atom == DW_OP_addr || ops[0].atom == DW_OP_addrx);
}

static int give(struct variable_walk *w, Dwarf_Die *die, const char *name)
{
	struct dwarf_variable v = {.name = name};

	v.is_parameter = dwarf_tag(die) == DW_TAG_formal_parameter;
	v.is_static = w->global || has_fixed_place(die);
	if (dwarf_type_of(w->p->d, die, &v.type))
		v.type = (struct ctype){.kind = CTYPE_OTHER};
	if (w->p->context.at_entry && !v.is_static && !v.is_parameter && !has_list(die))
		where_nowhere(&v.where, "at a function's first instruction it has no value yet");
	else
		dwarf_locate(&w->p->context, die, &v.where);
	w->r = w->f(w->arg, &v);
	return w->r;
}

static int is_variable_named(void *arg, Dwarf_Die *die)
{
	const char *name = dwarf_tag(die) == DW_TAG_variable ? dwarf_name(die) : NULL;

	return name && streq(name, arg);
}

/* What a block inside the function calls so is meant there. */
static bool is_of_block(const struct variable_walk *w, const char *name)
{
	for (size_t i = w->end; i-- > w->first + 1;)
		if (dwarf_children(&w->p->scopes.dies[i], is_variable_named, (void *)name))
			return true;
	return false;
}

static int on_variable(void *arg, Dwarf_Die *die)
{
	struct variable_walk *w = arg;
	const char *name;

	if (dwarf_tag(die) != w->tag)
		return 0;
	name = dwarf_name(die);
	if (!name || !*name)
		return 0;
	if (w->tag == DW_TAG_formal_parameter && is_of_block(w, name))
		return 0;
	return seen_before(w->seen, name) ? 0 : give(w, die, name);
}

/* Where the innermost function begins, of those that are inlined into each other before `end`. */
static size_t first_scope(const struct dwarf_scopes *s, size_t end)
{
	size_t i = end;

	while (--i)
		if (dwarf_tag((Dwarf_Die *)&s->dies[i]) == DW_TAG_inlined_subroutine)
			break;
	return i;
}

/* One function's: parameters, then variables from the innermost block outwards. */
static int function_variables(struct place_of *p, size_t first, size_t end, bool parameters,
			      struct variable_walk *w)
{
	if (first == 0 && p->context.at_entry) {
		w->r = entry_parameters(p, false, w->seen, w->f, w->arg);
	} else {
		w->first = first;
		w->end = end;
		w->tag = DW_TAG_formal_parameter;
		dwarf_children(&p->scopes.dies[first], on_variable, w);
	}
	w->tag = DW_TAG_variable;
	for (size_t i = end; w->r == 0 && !parameters && i-- > first;)
		dwarf_children(&p->scopes.dies[i], on_variable, w);
	return w->r;
}

/* Then those of the functions that it was inlined into: the first instruction of a statement is
 * often already one of a function that the statement calls. */
static int local_variables(struct place_of *p, bool parameters, struct seen *seen,
			   int (*f)(void *arg, const struct dwarf_variable *v), void *arg)
{
	struct variable_walk w = {.p = p, .seen = seen, .f = f, .arg = arg};
	size_t end = p->scopes.n;

	if (parameters && p->context.at_entry)
		return function_variables(p, 0, end, true, &w);
	while (end && !w.r) {
		size_t first = first_scope(&p->scopes, end);

		function_variables(p, first, end, parameters, &w);
		end = parameters ? 0 : first;
	}
	return w.r;
}

int dwarf_variables(struct dwarf *d, uint64_t offset, bool parameters,
		    int (*f)(void *arg, const struct dwarf_variable *v), void *arg, struct error *e)
{
	struct place_of p;
	struct seen seen = {0};
	int r = find_place(d, offset, &p, e);

	return r < 0 ? r : local_variables(&p, parameters, &seen, f, arg);
}

/* --- one variable --- */

struct by_name {
	const char *name;
	struct dwarf_variable *ret;
	char names[160]; /* of those that there are */
};

static int on_named(void *arg, const struct dwarf_variable *v)
{
	struct by_name *b = arg;
	size_t len = strlen(b->names);

	if (!v->name)
		return 0;
	if (streq(v->name, b->name)) {
		*b->ret = *v;
		return 1;
	}
	if (len + strlen(v->name) + 8 < sizeof(b->names))
		snprintf(b->names + len, sizeof(b->names) - len, "%s%s", len ? ", " : "", v->name);
	return 0;
}

struct global_search {
	struct place_of *p;
	const char *name;
	bool external_only;
	Dwarf_Die found;
	unsigned depth;
};

static int on_global(void *arg, Dwarf_Die *die)
{
	struct global_search *g = arg;
	int tag = dwarf_tag(die), r;
	const char *name;

	if (tag == DW_TAG_namespace && g->depth < DWARF_DEPTH_MAX) {
		g->depth++;
		r = dwarf_children(die, on_global, g);
		g->depth--;
		return r;
	}
	if (tag != DW_TAG_variable)
		return 0;
	name = dwarf_name(die);
	if (!name || !streq(name, g->name) || !dwarf_hasattr_integrate(die, DW_AT_location))
		return 0;
	if (g->external_only && !is_external(die))
		return 0;
	g->found = *die;
	return 1;
}

/* Of this source file, else of all that others share. */
static int find_global(struct place_of *p, const char *name, struct dwarf_variable *ret)
{
	struct global_search g = {.p = p, .name = name};
	struct by_name b = {.name = name, .ret = ret};
	struct variable_walk w = {.p = p, .f = on_named, .arg = &b, .global = true};

	if (!dwarf_children(&p->scopes.unit->die, on_global, &g)) {
		g.external_only = true;
		for (size_t i = 0; i < p->d->n_units; i++)
			if (dwarf_children(&p->d->units[i].die, on_global, &g))
				break;
	}
	if (!g.found.addr)
		return -ENOENT;
	return give(&w, &g.found, name) ? 0 : -ENOENT;
}

struct hidden_search {
	const char *name;
	unsigned depth;
};

static int on_hidden(void *arg, Dwarf_Die *die)
{
	struct hidden_search *h = arg;
	int tag = dwarf_tag(die), r;
	const char *name;

	if (tag == DW_TAG_lexical_block && h->depth < DWARF_DEPTH_MAX) {
		h->depth++;
		r = dwarf_children(die, on_hidden, h);
		h->depth--;
		return r;
	}
	if (tag != DW_TAG_variable)
		return 0;
	name = dwarf_name(die);
	return name && streq(name, h->name);
}

/* The function has it in a block that this instruction is not of. */
static bool is_hidden(Dwarf_Die *function, const char *name)
{
	struct hidden_search h = {.name = name};
	Dwarf_Die origin;

	dwarf_origin(function, &origin);
	return dwarf_children(function, on_hidden, &h) || dwarf_children(&origin, on_hidden, &h);
}

static int no_variable(struct place_of *p, const char *name, const char *names, struct error *e)
{
	Dwarf_Die *die = &p->scopes.dies[first_scope(&p->scopes, p->scopes.n)];
	const char *function = dwarf_name(die);

	if (!function)
		function = "the function";
	if (is_hidden(die, name) || is_hidden(&p->scopes.dies[0], name))
		return error_set(e, -ESRCH,
				 "%.80s has a variable %.64s, but not at this instruction: it is "
				 "optimised away here, or of another block",
				 function, name);
	return error_set(e, -ENOENT, "%.80s has no variable %.64s here%s%s", function, name,
			 *names ? ": expected one of " : "", names);
}

int dwarf_variable(struct dwarf *d, uint64_t offset, const char *name, struct dwarf_variable *ret,
		   struct error *e)
{
	struct by_name b = {.name = name, .ret = ret};
	struct place_of p;
	struct seen seen = {0};
	int r = find_place(d, offset, &p, e);

	if (r < 0)
		return r;
	if (local_variables(&p, false, &seen, on_named, &b) || find_global(&p, name, ret) == 0)
		return 0;
	return no_variable(&p, name, b.names, e);
}

/* --- parameters by number, and results --- */

struct by_number {
	size_t want, at;
	struct dwarf_variable *ret;
};

static int on_numbered(void *arg, const struct dwarf_variable *v)
{
	struct by_number *b = arg;

	if (b->at++ != b->want)
		return 0;
	*b->ret = *v;
	return 1;
}

int dwarf_parameter(struct dwarf *d, uint64_t offset, size_t which, struct dwarf_variable *ret,
		    struct error *e)
{
	struct by_number b = {.want = which, .ret = ret};
	int r = dwarf_variables(d, offset, true, on_numbered, &b, e);

	if (r < 0)
		return r;
	return r ? 0
		 : error_set(e, -ENOENT, "the function has %zu parameter%s, counted from 0", b.at,
			     b.at == 1 ? "" : "s");
}

/* Go's results are parameters of their own. */
static int go_result(struct place_of *p, struct dwarf_variable *ret)
{
	struct by_number b = {.want = 0, .ret = ret};
	int r = entry_parameters(p, true, NULL, on_numbered, &b);

	if (r)
		return 0;
	ret->type = (struct ctype){.kind = CTYPE_VOID};
	where_nowhere(&ret->where, "the function returns nothing");
	return 0;
}

int dwarf_return_value(struct dwarf *d, uint64_t offset, struct dwarf_variable *ret,
		       struct error *e)
{
	struct place_of p;
	int r = find_place(d, offset, &p, e);

	if (r < 0)
		return r;
	*ret = (struct dwarf_variable){.name = "retval"};
	if (is_go(&p))
		return go_result(&p, ret);
	if (dwarf_type_of(d, &p.scopes.dies[0], &ret->type))
		ret->type = (struct ctype){.kind = CTYPE_OTHER};
	/* a number is in all languages where C has it */
	if (c_convention(&p) || ctype_is_number(&ret->type))
		dwarf_abi_return(d->machine, &ret->type, &ret->where);
	else
		where_nowhere(&ret->where, "where this language returns it is not known");
	return 0;
}

int dwarf_results(struct dwarf *d, uint64_t offset,
		  int (*f)(void *arg, const struct dwarf_variable *v), void *arg, struct error *e)
{
	struct place_of p;
	int r = find_place(d, offset, &p, e);

	return r < 0 || !is_go(&p) ? r : entry_parameters(&p, true, NULL, f, arg);
}
