// SPDX-License-Identifier: GPL-2.0-or-later
/* Fetch programs for registers, arguments and fields. */
#include <elf.h>

#include "base/near.h"
#include "probes/fetch/priv.h"

static const char *const x86_args[] = {"di", "si", "dx", "cx", "r8", "r9"};
static const char *const arm64_args[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
/* Go since 1.17 (src/cmd/compile/abi-internal.md): each word of a string, slice or interface is an
 * argument of its own; results come in the same registers. Further ones are laid out by type. */
static const char *const go_x86_args[] = {"ax", "bx", "cx", "di", "si", "r8", "r9", "r10", "r11"};
static const char *const go_arm64_args[] = {"x0", "x1", "x2",  "x3",  "x4",  "x5",  "x6",  "x7",
					    "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15"};

struct abi {
	const char *const *args;
	size_t n_args;
	const char *retval;
	unsigned return_address; /* bytes of it on the stack at a function's entry */
};

static struct abi abi_of(const struct maker *m)
{
	if (m->place->go && m->place->machine == EM_AARCH64)
		return (struct abi){go_arm64_args, ARRAY_SIZE(go_arm64_args), "x0", 0};
	if (m->place->go)
		return (struct abi){go_x86_args, ARRAY_SIZE(go_x86_args), "ax", 8};
	if (m->place->machine == EM_AARCH64)
		return (struct abi){arm64_args, ARRAY_SIZE(arm64_args), "x0", 0};
	return (struct abi){x86_args, ARRAY_SIZE(x86_args), "ax", 8};
}

const char *argument_register(const struct maker *m, int64_t which)
{
	struct abi abi = abi_of(m);

	return which >= 0 && (size_t)which < abi.n_args ? abi.args[which] : NULL;
}

static struct made unsigned_of(uint32_t size)
{
	return (struct made){.type = VALUE_UNSIGNED, .size = size};
}

static int memory_at(struct maker *m, uint8_t flags, uint8_t size, int64_t offset)
{
	return make_op(m, maker_in_kernel(m) ? AX_CODE_KERNEL : AX_CODE_USER, flags, size,
		       (uint64_t)offset);
}

int make_fetch(struct maker *m, bool kernel, uint8_t flags, uint32_t size, int64_t offset)
{
	return make_op(m, kernel ? AX_CODE_KERNEL : AX_CODE_USER, flags, (uint8_t)size,
		       (uint64_t)offset);
}

static int register_leaf(struct maker *m, const char *name, uint8_t flags, uint8_t size)
{
	struct fetch_register r;

	if (fetch_register_find(m->place->machine, name, &r))
		return maker_fault(m, -EINVAL, "there is no register %%%.16s", name);
	if (r.offset >= FETCH_VECTORS_AT && !m->place->stopped)
		return maker_fault(m, -ENOTSUP,
				   "%%%.16s is a vector register, which no probe can read: only "
				   "'ax trace step' can, whose threads are stopped",
				   name);
	if (!size || size > r.size)
		size = r.size;
	if (!r.shift)
		return make_leaf(m, AX_CODE_CTX, flags, size, r.offset);
	/* a byte in the middle: the machine is little-endian */
	return make_leaf(m, AX_CODE_CTX, flags, size, r.offset + r.shift / 8);
}

/* Those are still the same where a probe is moved to. */
static bool survives_sliding(const struct maker *m, const char *name)
{
	static const char *const kept[] = {"sp", "bp", "fp"};
	struct abi abi = abi_of(m);
	struct fetch_register r, other;

	if (fetch_register_find(m->place->machine, name, &r))
		return true;
	for (size_t i = 0; i < abi.n_args; i++)
		if (!fetch_register_find(m->place->machine, abi.args[i], &other) &&
		    other.offset == r.offset)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!fetch_register_find(m->place->machine, kept[i], &other) &&
		    other.offset == r.offset)
			return true;
	return false;
}

int make_register(struct maker *m, const char *name, struct made *ret)
{
	int r = register_leaf(m, name, 0, 0);

	if (!survives_sliding(m, name))
		m->out->needs_exact = true;
	*ret = unsigned_of(8);
	if (r == 0 && m->list->v[m->list->n - 1].value >= FETCH_VECTORS_AT)
		ret->type = VALUE_FLOAT;
	return r;
}

int make_vector(struct maker *m, const char *name, uint64_t at, uint32_t size, bool is_signed)
{
	int r = register_leaf(m, name, is_signed ? AX_OP_SIGNED : 0, (uint8_t)size);

	if (r == 0)
		m->list->v[m->list->n - 1].value += at;
	return r;
}

#define REGISTERS_MAX 72
/* In the order in which they are shown. */
static const char *const x86_all[] = {"ax",  "bx",  "cx",  "dx",  "si",	 "di",
				      "bp",  "sp",  "r8",  "r9",  "r10", "r11",
				      "r12", "r13", "r14", "r15", "ip",	 "flags"};
static const char *const arm64_all[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",	"x10", "x11",
	"x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",	"x22", "x23",
	"x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",	"pc",  "pstate"};

struct registers {
	struct shape_word v[REGISTERS_MAX];
	char vectors[32][8]; /* their names */
	size_t n;
	uint32_t size;
};

static void add_register(struct registers *all, uint16_t machine, const char *name, bool is_vector)
{
	struct fetch_register r;
	uint32_t size = is_vector ? 16 : 8;

	if (fetch_register_find(machine, name, &r))
		r.offset = 0;
	all->v[all->n++] =
		(struct shape_word){.name = name, .offset = r.offset, .two_floats = is_vector};
	if (r.offset + size > all->size)
		all->size = r.offset + size;
}

static void all_registers(const struct maker *m, struct registers *ret)
{
	uint16_t machine = m->place->machine;
	bool arm64 = machine == EM_AARCH64;
	const char *const *names = arm64 ? arm64_all : x86_all;

	ret->n = ret->size = 0;
	for (size_t i = 0; i < (arm64 ? ARRAY_SIZE(arm64_all) : ARRAY_SIZE(x86_all)); i++)
		add_register(ret, machine, names[i], false);
	for (unsigned i = 0; m->place->stopped && i < (arm64 ? 32 : 16); i++) {
		snprintf(ret->vectors[i], sizeof(ret->vectors[i]), "%s%u", arm64 ? "v" : "xmm", i);
		add_register(ret, machine, ret->vectors[i], true);
	}
}

int registers_shape(struct maker *m, struct shape **ret)
{
	struct registers all;

	all_registers(m, &all);
	return shape_of_words(all.v, all.n, all.size, ret);
}

int make_registers(struct maker *m, struct made *ret)
{
	struct registers all;
	uint32_t size;

	all_registers(m, &all);
	size = all.size;
	m->out->needs_exact = true;
	*ret = (struct made){.type = VALUE_BUFFER, .size = size, .kernel = true, .registers = true};
	return make_leaf(m, AX_CODE_ADDRESS, 0, 8, 0);
}

int make_argument(struct maker *m, int64_t which, struct made *ret)
{
	struct abi abi = abi_of(m);
	int r;

	if (m->spec->kind == PROBE_USDT)
		return make_usdt_argument(m, which, ret);
	if (m->spec->kind == PROBE_TRACEPOINT)
		return maker_fault(m, -EINVAL,
				   "a tracepoint has fields, no arguments: 'ax trace list' shows "
				   "their names");
	*ret = unsigned_of(8);
	if ((size_t)which < abi.n_args)
		return register_leaf(m, abi.args[which], 0, 0);
	if (m->place->go)
		return maker_fault(m, -ENOTSUP,
				   "Go passes %zu words of arguments in registers, and further "
				   "ones in places that depend on their types: expected arg0 to "
				   "arg%zu",
				   abi.n_args, abi.n_args - 1);
	r = register_leaf(m, "sp", 0, 0);
	return r < 0 ? r
		     : memory_at(m, 0, 8,
				 (which - (int64_t)abi.n_args) * 8 + (int64_t)abi.return_address);
}

/* Go has all words of all results in the registers of its arguments, C the second half of a struct
 * in one. */
static int further_result(struct maker *m, int64_t which, struct made *ret)
{
	struct abi abi = abi_of(m);
	const char *second = m->place->machine == EM_AARCH64 ? "x1" : "dx";

	*ret = unsigned_of(8);
	if (m->place->go && (size_t)which < abi.n_args)
		return register_leaf(m, abi.args[which], 0, 0);
	if (!m->place->go && which == 1)
		return register_leaf(m, second, 0, 0);
	return maker_fault(m, -ENOTSUP,
			   m->place->go ? "Go has at most %zu words of results in registers"
					: "a result has at most two words in registers, retval and "
					  "retval1",
			   abi.n_args);
}

int64_t result_word(const struct maker *m, const struct where *w)
{
	const struct where_piece *first = &w->pieces[0];
	struct abi abi = abi_of(m);

	for (size_t i = 0; first->kind == WHERE_VALUE && i < abi.n_args; i++)
		if (streq(w->items[first->first].reg, abi.args[i]))
			return (int64_t)i;
	return -1;
}

int make_return_value(struct maker *m, int64_t which, struct made *ret)
{
	int r;

	if (which)
		return further_result(m, which, ret);
	r = m->type_given ? refuse_float_return(m) : make_typed_return(m, ret);

	if (r < 0 ? r != -ENOENT : !m->type_given)
		return r;
	*ret = unsigned_of(8);
	return register_leaf(m, abi_of(m).retval, 0, 0);
}

int make_stack_word(struct maker *m, int64_t which, struct made *ret)
{
	int r = register_leaf(m, "sp", 0, 0);

	*ret = unsigned_of(8);
	return r < 0 || which < 0 ? r : memory_at(m, 0, 8, which * 8);
}

int make_return_address(struct maker *m)
{
	struct made word;

	if (m->place->machine == EM_AARCH64)
		return register_leaf(m, "lr", 0, 0);
	return make_stack_word(m, 0, &word);
}

/* --- USDT --- */

/* base + index * scale + displacement */
static int usdt_memory(struct maker *m, const struct usdt_arg *a, uint8_t flags)
{
	int64_t displacement = a->value;
	int r = 0, shift = a->scale > 1 ? __builtin_ctz(a->scale) : 0;

	if (a->reg[0]) {
		r = register_leaf(m, a->reg, 0, 0);
	} else if (!a->index[0]) {
		r = make_leaf(m, AX_CODE_CONST, 0, 8, (uint64_t)displacement);
		displacement = 0;
	}
	if (r < 0)
		return r;
	if (a->index[0]) {
		r = register_leaf(m, a->index, 0, 0);
		if (r == 0 && shift)
			r = make_op(m, AX_CODE_SHL, AX_OP_IMMEDIATE, 8, (uint64_t)shift);
		if (r == 0 && a->reg[0])
			r = make_op(m, AX_CODE_ADD, 0, 8, 0);
	}
	return r < 0 ? r : memory_at(m, flags, a->size, displacement);
}

int make_usdt_argument(struct maker *m, int64_t which, struct made *ret)
{
	const struct usdt *u = m->place->usdt;
	const struct usdt_arg *a;
	uint8_t flags;

	if ((size_t)which >= u->n_args)
		return maker_fault(m, -EINVAL, "%s:%s has %zu argument%s, counted from arg0",
				   u->provider, u->name, u->n_args, u->n_args == 1 ? "" : "s");
	a = &u->args[which];
	flags = a->is_signed ? AX_OP_SIGNED : 0;
	*ret = (struct made){.type = a->is_float    ? VALUE_FLOAT
				     : a->is_signed ? VALUE_SIGNED
						    : VALUE_UNSIGNED,
			     .size = a->size,
			     .wide = !a->is_float && !a->is_signed && a->size == 8};
	if (a->unfetchable)
		return maker_fault(m, -ENOTSUP,
				   "argument %d of %s:%s cannot be fetched (its notes say %.80s)",
				   (int)which, u->provider, u->name, u->args_text);
	switch (a->kind) {
	case USDT_CONST:
		return make_leaf(m, AX_CODE_CONST, 0, 8, (uint64_t)a->value);
	case USDT_REG:
		if (a->shift) /* %ah and its like: one byte behind the first */
			return register_leaf(m, a->reg, flags, 1);
		return register_leaf(m, a->reg, flags, a->size);
	default:
		return usdt_memory(m, a, flags);
	}
}

/* --- tracepoints --- */

/* Of system calls, and of those that tell of all of them. */
static enum value_type system_call_type(const struct format *f, const struct field *field)
{
	bool all = streq(f->name, "sys_enter") || streq(f->name, "sys_exit");

	if (!field->is_signed && !streq(field->name, "__syscall_nr"))
		return VALUE_NONE;
	if (all ? streq(field->name, "id") : f->user && streq(field->name, "__syscall_nr"))
		return VALUE_SYSCALL;
	if (streq(field->name, "ret") && (all || f->user))
		return VALUE_ERRNO;
	return VALUE_NONE;
}

/* Of what a system call gets, the kernel says of all words that they are unsigned; the type's name
 * is the call's own. */
static bool is_wide(const struct format *f, const struct field *field)
{
	return field->size == 8 && !field->is_signed &&
	       (!f->user || field->kind == FIELD_POINTER || starts_with(field->type, "unsigned ") ||
		streq(field->type, "size_t"));
}

static struct made number_of(struct maker *m, const struct field *f)
{
	enum value_type type = f->is_signed ? VALUE_SIGNED : VALUE_UNSIGNED;
	enum value_type own = system_call_type(m->place->format, f);
	struct made made = {.size = f->size, .wide = is_wide(m->place->format, f)};
	struct error e = {0};

	if (f->kind == FIELD_POINTER)
		type = VALUE_HEX;
	made.type = own != VALUE_NONE ? own : type;
	made.typed = starts_with(f->type, "enum ") && m->place->btf &&
		     btf_types_enum(m->place->btf, f->type + strlen("enum "), &made.ctype, &e) == 0;
	return made;
}

int make_field(struct maker *m, const struct field *f, struct made *ret)
{
	int r;

	m->out->needs_fields = true;
	switch (f->kind) {
	case FIELD_TEXT:
		*ret = (struct made){
			.type = VALUE_STRING, .kernel = !m->place->format->user, .pointer = true};
		return make_leaf(m, AX_CODE_CTX, 0, 8, f->offset);
	case FIELD_STRING:
		*ret = (struct made){.type = VALUE_STRING, .size = f->size, .kernel = true};
		return make_leaf(m, AX_CODE_ADDRESS, 0, 8, f->offset);
	case FIELD_ARRAY:
		*ret = (struct made){.type = VALUE_BUFFER, .size = f->size, .kernel = true};
		return make_leaf(m, AX_CODE_ADDRESS, 0, 8, f->offset);
	case FIELD_DYNAMIC:
	case FIELD_RELATIVE:
		*ret = (struct made){.type = VALUE_STRING, .kernel = true};
		r = make_leaf(m, AX_CODE_CTX, 0, 4, f->offset);
		return r < 0 ? r
			     : make_op(m, AX_CODE_DATA_LOC, 0, 8,
				       f->kind == FIELD_RELATIVE ? f->offset + 4u : 0);
	case FIELD_DYNAMIC_ARRAY:
	case FIELD_RELATIVE_ARRAY:
		return maker_fault(m, -ENOTSUP,
				   "field %.64s is an array whose length varies, which cannot be "
				   "fetched",
				   f->name);
	default:
		*ret = number_of(m, f);
		return make_leaf(m, AX_CODE_CTX, f->is_signed ? AX_OP_SIGNED : 0, (uint8_t)f->size,
				 f->offset);
	}
}

static int unknown_field(struct maker *m, const char *name)
{
	const struct format *f = m->place->format;
	autofree const char **names = calloc(f->n + 1, sizeof(*names));
	const char *near = NULL;

	for (size_t i = 0; names && i < f->n; i++)
		names[i] = f->v[i].name;
	if (names)
		near = nearest_word(name, names, f->n);
	return maker_fault(m, -EINVAL, "tracepoint %.64s has no field %.64s%s%s%s", f->name, name,
			   near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static const struct probe_arg *named_arg(const struct maker *m, const char *name)
{
	for (size_t i = 0; m->names_args && i < m->spec->n_args; i++)
		if (m->spec->args[i].name && streq(m->spec->args[i].name, name))
			return &m->spec->args[i];
	return NULL;
}

/* A number of an explicit type, and what is not one as it is. */
static int make_named(struct maker *m, const struct probe_arg *a, struct made *ret)
{
	int r;

	m->names_args = false; /* no argument names another */
	r = make_expr(m, a->expr.v, a->expr.n, ret);
	m->names_args = true;
	if (r < 0 || a->type == VALUE_NONE)
		return r;
	ret->type = a->type;
	ret->size = a->size ? a->size : ret->size;
	if (a->type == VALUE_STRING || a->type == VALUE_USTRING) {
		ret->kernel = maker_in_kernel(m) && a->type == VALUE_STRING;
		return 0;
	}
	if (!a->size || a->size > 8 || a->type == VALUE_BUFFER)
		return 0;
	ret->typed = false;
	r = make_number(m, a->size, a->type == VALUE_SIGNED);
	return r == 0 && a->bits ? make_bits(m, a->bit, a->bits, false) : r;
}

int make_name(struct maker *m, const char *name, struct made *ret)
{
	const struct format *format = m->place->format;
	const struct field *f = format ? format_find(format, name) : NULL;
	const struct probe_arg *a = f ? NULL : named_arg(m, name);
	int r;

	if (f)
		return make_field(m, f, ret);
	if (a)
		return make_named(m, a, ret);
	if (format)
		return unknown_field(m, name);
	r = make_variable(m, name, ret);
	if (r != -ENOENT)
		return r;
	return maker_fault(m, -EINVAL,
			   "%.64s is no value of this probe: expected arg0, retval, %%REGISTER, "
			   "pid, comm or another of those in 'man ax-trace'",
			   name);
}
