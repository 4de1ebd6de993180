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
	bool of_task;			   /* it begins at $task: all of it is in the kernel */
	bool type_given;		   /* it does not matter what type it has by itself */
	struct where pieces;		   /* of what was made last in the form MADE_PUT */
};

/* Where what was made is, if not all of it is in the accumulator. */
enum made_form {
	MADE_PLAIN,
	MADE_COUNTED, /* a text's or list's address; its length is the value below it */
	MADE_PUT,     /* bytes that were put into the record one after the other */
};

/* What an expression is by itself. */
struct made {
	enum value_type type; /* numbers; VALUE_STRING and VALUE_BUFFER: the accumulator has the
				 address */
	uint32_t size;
	bool kernel;  /* where that address is */
	bool pointer; /* that address is itself the value: it can be a number, too */
	bool pointed; /* of what it points to, the type is known: `ctype` */
	bool typed;   /* its type in the program or the kernel is known: of structs, unions and
			 arrays the accumulator has the address */
	bool wide;    /* an unsigned number of 64 bits, or an address, as its type says */
	struct ctype ctype;
	enum made_form form;
	bool registers; /* all of them: a struct that no debug data has */
	bool own_text;	/* a text of ax: in a variable, or written down */
	uint64_t at;	/* MADE_PUT: where it begins in what the maker's pieces are of */
};

int maker_fault(struct maker *m, int code, const char *fmt, ...) PRINTF(3, 4);
int make_op(struct maker *m, enum ax_probe_code code, uint8_t flags, uint8_t size, uint64_t value);
/* One that needs nothing from the accumulator, which is put away. */
int make_leaf(struct maker *m, enum ax_probe_code code, uint8_t flags, uint8_t size,
	      uint64_t value);
bool maker_in_kernel(const struct maker *m);
/* What is to be one number, or an address, is a text or in pieces. */
int need_plain(struct maker *m, const struct made *made);
/* The accumulator is the next value of the record. */
int store_made(struct maker *m, const struct made *made, const char *name);

/* fetch.c */
/* The number by which the two probes of a time are matched, or a map has its variable, is kept as
 * number 0; nothing, if there is none. */
int make_on(struct maker *m);

/* asked.c */
bool is_text_type(enum value_type t);
bool is_stack_type(enum value_type t);
bool is_comm(const struct probe_arg *a);
/* A call stack, and not one that a variable was set to. */
bool is_stack(const struct probe_arg *a);
int make_stack(struct maker *m, const struct probe_arg *a, struct made *made);
/* The expression, and what it is by its own type or the one that was asked for. */
int make_typed(struct maker *m, const struct probe_arg *a, struct made *made);

/* set.c */
int make_set(struct maker *m);

/* expr.c: the expression that ends before item `end`. */
int make_expr(struct maker *m, const struct expr_item *v, size_t end, struct made *ret);
/* The time since the function's entry. */
int make_elapsed(struct maker *m);
/* The accumulator as a number of that size: less is fetched where that can be. */
int make_number(struct maker *m, uint32_t size, bool is_signed);

/* leaf.c */
int make_register(struct maker *m, const char *name, struct made *ret);
/* So many bytes of a vector register, of a thread that is stopped. */
int make_vector(struct maker *m, const char *name, uint64_t at, uint32_t size, bool is_signed);
int make_argument(struct maker *m, int64_t which, struct made *ret);
int make_usdt_argument(struct maker *m, int64_t which, struct made *ret);
/* $regs, and how they are shown. */
int make_registers(struct maker *m, struct made *ret);
int registers_shape(struct maker *m, struct shape **ret);
/* NULL: it is in no register of its own */
const char *argument_register(const struct maker *m, int64_t which);
int make_return_value(struct maker *m, int64_t which, struct made *ret);
/* The number of the word of Go's results that begins there, which is 0 for retval and 1 for
 * retval1; below 0: it is in none of those. */
int64_t result_word(const struct maker *m, const struct where *w);
int make_stack_word(struct maker *m, int64_t which, struct made *ret);
/* At the entry of a function: on arm64 it is in a register until the function has saved it. */
int make_return_address(struct maker *m);
int make_field(struct maker *m, const struct field *f, struct made *ret);
int make_name(struct maker *m, const char *name, struct made *ret);
/* Memory at the accumulator, on the side that is probed. */
int make_fetch(struct maker *m, bool kernel, uint8_t flags, uint32_t size, int64_t offset);

/* --- names.c: as dwarf_variable() and so on, of the place --- */
int place_variable(const struct maker *m, const char *name, struct dwarf_variable *ret,
		   struct error *e);
int place_variables(const struct maker *m, bool parameters,
		    int (*f)(void *arg, const struct dwarf_variable *v), void *arg,
		    struct error *e);
int place_return(const struct maker *m, struct dwarf_variable *ret, struct error *e);
/* Adds to the sentence in which lines near a probe on one the variable has a value. */
void say_lines_with(const struct maker *m, const char *name);

/* --- text.c: what stands for a text, and texts that are pointed to --- */

/* Brings 8 bytes of a value, `offset` from its beginning, into the accumulator. */
struct loader {
	int (*load)(struct maker *m, const struct loader *l, uint64_t offset);
	/* The address of what is there. */
	int (*address)(struct maker *m, const struct loader *l, uint64_t offset);
	const struct probe_arg *arg;
	const struct where *where;
	uint64_t base;
};
/* If it is of a type that stands for a text or a list, at an address that the accumulator has. */
int make_text(struct maker *m, struct made *made);
/* The same of a variable. 1: it was one, and was made. */
int make_variable_text(struct maker *m, const struct where *w, uint64_t base, const struct ctype *t,
		       struct made *ret);
int load_of_variable(struct maker *m, const struct loader *l, uint64_t offset);
int address_of_variable(struct maker *m, const struct loader *l, uint64_t offset);
/* How what was made is shown by its type. */
int give_shape(struct maker *m, const struct made *made, struct fetch_shown *shown);
/* What the last value's shape points to, as hidden values. */
int follow_texts(struct maker *m, const struct made *made, const struct loader *l);
/* When all values are made: the numbers of hidden ones. */
void settle_hidden(struct maker *m);

/* --- typed_value.c --- */
#define SHOWN_MAX 512 /* bytes of a struct, when nobody asked for it by name */
/* A part of something: what a path of members and indices leads to. */
struct part {
	struct ctype type;
	uint64_t offset;
	uint8_t bit, bits; /* 0: no bitfield */
};
/* How a number of that type is shown and fetched. */
void part_show_number(struct maker *m, const struct ctype *t, struct made *ret);
/* The lowest bits of the accumulator, `bit` further up. */
int make_bits(struct maker *m, unsigned bit, unsigned bits, bool is_signed);
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
/* An error where the debug data says that it is in a floating-point register, else 0. */
int refuse_float_return(struct maker *m);
int make_member(struct maker *m, const struct expr_item *v, size_t end, struct made *ret);
/* 1: it was a member or element of a variable, and was made; 0: it is none. */
int make_known(struct maker *m, const struct expr_item *v, size_t end, struct made *ret);
/* What the typed value in the accumulator points to, and an element of it: `end` is that of the
 * whole E[N]. -ENOENT, without a sentence: it points to nothing that has a type. */
void find_pointed(struct maker *m, const struct expr_item *item, struct made *made);
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
