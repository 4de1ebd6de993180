/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files that make fetch programs. */
#ifndef AX_PROBES_FETCH_PRIV_H
#define AX_PROBES_FETCH_PRIV_H

#include "probes/fetch/fetch.h"

struct op_list {
	struct ax_probe_op *v;
	size_t n;
	unsigned depth; /* values of the expression at hand, the accumulator among them */
};

struct maker {
	const struct probe_spec *spec;
	const struct fetch_place *place;
	struct fetch_texts *texts;
	struct fetch *out;
	struct error *e;
	struct op_list main, entry, *list; /* list: the one of the two that is added to */
	const char *what;		   /* the argument or "the condition", for errors */
	uint32_t element;		   /* bytes of what an index counts, if the type says so */
	bool names_args;		   /* a name may be that of an argument */
	const char *gone;		   /* why a variable has no value here */
	bool type_given;		   /* it does not matter what type it has by itself */
};

/* What an expression is by itself. */
struct made {
	enum value_type type; /* numbers; VALUE_STRING and VALUE_BUFFER: the accumulator has the
				 address */
	uint32_t size;
	bool kernel;  /* where that address is */
	bool pointer; /* that address is itself the value: it can be a number, too */
	bool typed;   /* its type in the program or the kernel is known: of structs, unions and
			 arrays the accumulator has the address */
	struct ctype ctype;
};

int maker_fault(struct maker *m, int code, const char *fmt, ...) PRINTF(3, 4);
int make_op(struct maker *m, enum ax_probe_code code, uint8_t flags, uint8_t size, uint64_t value);
/* One that needs nothing from the accumulator, which is put away. */
int make_leaf(struct maker *m, enum ax_probe_code code, uint8_t flags, uint8_t size,
	      uint64_t value);
bool maker_in_kernel(const struct maker *m);
/* The accumulator is the next value of the record. */
int store_made(struct maker *m, const struct made *made, const char *name);

/* expr.c: the expression that ends before item `end`. */
int make_expr(struct maker *m, const struct expr_item *v, size_t end, struct made *ret);
/* The time since the function's entry. */
int make_elapsed(struct maker *m);
/* The accumulator as a number of that size: less is fetched where that can be. */
int make_number(struct maker *m, uint32_t size, bool is_signed);

/* leaf.c */
int make_register(struct maker *m, const char *name, struct made *ret);
int make_argument(struct maker *m, int64_t which, struct made *ret);
int make_usdt_argument(struct maker *m, int64_t which, struct made *ret);
/* NULL: it is in no register of its own */
const char *argument_register(const struct maker *m, int64_t which);
int make_return_value(struct maker *m, struct made *ret);
int make_stack_word(struct maker *m, int64_t which, struct made *ret);
int make_field(struct maker *m, const struct field *f, struct made *ret);
int make_name(struct maker *m, const char *name, struct made *ret);
/* Memory at the accumulator, on the side that is probed. */
int make_fetch(struct maker *m, bool kernel, uint8_t flags, uint32_t size, int64_t offset);

/* --- typed_value.c --- */
#define SHOWN_MAX 64 /* bytes of a struct, when nobody asked for it by name */
/* A part of something: what a path of members and indices leads to. */
struct part {
	struct ctype type;
	uint64_t offset;
	uint8_t bit, bits; /* 0: no bitfield */
};
/* How a number of that type is shown and fetched. */
void part_show_number(struct maker *m, const struct ctype *t, struct made *ret);
/* A member takes its struct's place. */
void part_enter_member(struct part *p, const struct ctype_member *f);
/* Loads it from the address in the accumulator and `base`. */
int part_load(struct maker *m, bool kernel, const struct part *p, int64_t base, struct made *ret);
/* A part of a variable, wherever that is. */
int make_part(struct maker *m, const struct where *w, const struct part *p, struct made *ret);

/* type.c: what debug data and BTF know. */
/* A variable or parameter of that name. -ENOENT, without a sentence: there are no names here. */
int make_variable(struct maker *m, const char *name, struct made *ret);
/* retval with its type. -ENOENT, without a sentence: it is not known. */
int make_typed_return(struct maker *m, struct made *ret);
int make_member(struct maker *m, const struct expr_item *v, size_t end, struct made *ret);
/* 1: it was a member or element of a variable, and was made; 0: it is none. */
int make_known(struct maker *m, const struct expr_item *v, size_t end, struct made *ret);
/* What the typed value in the accumulator points to, and an element of it: `end` is that of the
 * whole E[N]. -ENOENT, without a sentence: it points to nothing that has a type. */
int make_typed_deref(struct maker *m, const struct made *pointer, struct made *ret);
int make_typed_index(struct maker *m, const struct made *base, const struct expr_item *v,
		     size_t end, struct made *ret);
/* The next value is one that this place has not, though others of the same line may: see m->gone.
 */
int store_gone(struct maker *m, const char *name);
/* All parameters of a function, at a source line all variables, at a return its value: what the
 * place's types tell of, and can be fetched. */
int fetch_all_parameters(struct maker *m);

#endif
