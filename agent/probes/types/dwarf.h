/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a program's debug data says: the code of source lines, functions of a source file, variables
 * at a place and their types. The data is the file's own, or that of a file beside it (found by
 * build-id or debuglink). Places are offsets in the program's file, as uprobes count them.
 */
#ifndef AX_PROBES_TYPES_DWARF_H
#define AX_PROBES_TYPES_DWARF_H

#include "probes/types/types.h"

struct dwarf;

/* `path`: what binary_path() says. Nothing is read yet: the first of the functions below does, and
 * they return -ENODATA, with a sentence, when there is no debug data that can be used. -ENOMEM. */
int dwarf_new(const char *path, struct dwarf **ret);
void dwarf_free(struct dwarf *d);
static inline void dwarf_freep(struct dwarf **d)
{
	if (*d)
		dwarf_free(*d);
}
/* Debug data is also looked for in that file, which counts if it is of the same build. -ENOMEM. */
int dwarf_look_in(struct dwarf *d, const char *path);
/* Reads it now. */
int dwarf_load(struct dwarf *d, struct error *e);

/* --- source lines --- */

struct dwarf_line {
	uint64_t offset; /* of a statement's first instruction, in the file */
	uint32_t line;
	const char *function; /* the one whose source it is; NULL: not known */
	const char *inlined;  /* the function that it was inlined into; NULL: it is its own */
	const char *source;   /* the file's whole path */
};
/*
 * Every place where a statement of that line begins, sorted. `source`: a whole path, the end of
 * one, or only a file's name. f returns non-zero to end. -ENOENT: no such file, or no code in that
 * line: then the sentence names the next ones that have. -EEXIST: several files have that name.
 */
int dwarf_lines(struct dwarf *d, const char *source, uint32_t line,
		int (*f)(void *arg, const struct dwarf_line *l), void *arg, struct error *e);
/* The same of all lines, sorted by file, line and offset; `glob`: only what is of functions of such
 * a name, also where it was inlined. `source` may be a glob. */
int dwarf_statements(struct dwarf *d, const char *source, const char *glob,
		     int (*f)(void *arg, const struct dwarf_line *l), void *arg, struct error *e);
/* The source files that have code, sorted; with their whole paths. */
int dwarf_source_files(struct dwarf *d, int (*f)(void *arg, const char *source), void *arg,
		       struct error *e);

/* Which line an instruction is of. */
struct dwarf_at {
	const char *source; /* the file's whole path; lives as long as the struct dwarf */
	uint32_t line;
	bool begins; /* a statement of the line begins there */
};
/* -ENOENT: of none that is known. */
int dwarf_line_at(struct dwarf *d, uint64_t offset, struct dwarf_at *ret, struct error *e);

/* --- functions --- */

struct dwarf_function {
	const char *name;    /* as its source has it */
	const char *linkage; /* as the file's symbols have it: mangled; often the name */
	uint64_t offset;     /* in the file */
	uint64_t size;
	const char *source; /* the file's whole path */
	uint32_t line;
};
/* Functions whose source is in files of that name (as above, or a glob) and whose own name matches
 * the other glob (NULL: any), sorted by offset; each once. `inlined`: how many others have no code
 * of their own, since they were inlined wherever they are called; NULL: not asked for. -ENOENT. */
int dwarf_functions(struct dwarf *d, const char *source, const char *glob,
		    int (*f)(void *arg, const struct dwarf_function *fn), void *arg,
		    size_t *inlined, struct error *e);

/* The function whose first instruction is there, as it is declared. -ENOENT: none is known. */
int dwarf_prototype(struct dwarf *d, uint64_t offset, struct prototype *ret, struct error *e);

/* --- Go --- */

/* Reads which types there are by what the program knows of them, so that it is quick later on.
 * -ENOENT: that is not known. */
int dwarf_load_go_types(struct dwarf *d);
/* The type that the program has at an address; its name lives as long as the struct dwarf. Of one
 * that the linker left out of the debug data only the name is known: it is void. -ENOENT. */
int dwarf_go_type(struct dwarf *d, uint64_t address, const char **name, struct ctype *ret);

/* --- variables --- */

/* How a value or its address is computed from the registers: in postfix order. */
enum where_op {
	WHERE_CONST,	/* value */
	WHERE_REGISTER, /* reg */
	WHERE_RELATIVE, /* the address of the probed instruction plus value */
	WHERE_ADD_CONST,
	WHERE_DEREF,  /* the size bytes that are there, without sign */
	WHERE_EXTEND, /* the low size bytes, with their sign or without */
	WHERE_NOT,    /* 1 for 0, else 0 */
	WHERE_ADD,    /* from here on two operands */
	WHERE_SUB,
	WHERE_MUL,
	WHERE_AND,
	WHERE_OR,
	WHERE_XOR,
	WHERE_SHL,
	WHERE_SHR,
	WHERE_EQ,
	WHERE_NE,
	WHERE_LT,
	WHERE_LE,
	WHERE_GT,
	WHERE_GE,
};
struct where_item {
	enum where_op op;
	uint8_t size;
	bool is_signed;
	const char *reg; /* "ax", "x0": as fetch_register_find() knows it */
	int64_t value;
};
enum where_kind {
	WHERE_NOWHERE, /* see why */
	WHERE_MEMORY,  /* the items are its address */
	WHERE_VALUE,   /* the items are its value, of which higher bytes may be anything */
};
#define WHERE_ITEMS  40
#define WHERE_PIECES 16
struct where_piece {
	enum where_kind kind;
	uint32_t offset, size; /* bytes of the variable; of the only piece 0: all of it */
	uint16_t first, n;     /* items */
	const char *why;
	/* Of WHERE_NOWHERE: it is in this vector register ("xmm0", "v0"), which no probe can read,
	 * but a tracer whose thread is stopped. */
	const char *vector;
};
struct where {
	struct where_item items[WHERE_ITEMS];
	size_t n_items;
	struct where_piece pieces[WHERE_PIECES];
	size_t n_pieces; /* at least one */
	bool exact;	 /* only right at that very instruction, not a few further on */
};
struct dwarf_variable {
	const char *name;
	struct ctype type;
	bool is_parameter;
	bool is_static; /* of a file or function, not of a call */
	struct where where;
};
/*
 * What is visible at an offset in the file. At a function's first instruction only its parameters
 * and static variables have values, and parameters are where the caller put them; else all are
 * where the debug data says that they are at that instruction.
 */
/* -ENOENT: the sentence names what there is. -ESRCH: it is of a block that the place is not in. A
 * variable that has no value there is found, and its
 * `where` says why. */
int dwarf_variable(struct dwarf *d, uint64_t offset, const char *name, struct dwarf_variable *ret,
		   struct error *e);
/* Those of the function's call: parameters as they are declared, then variables of the innermost
 * block and outwards, but those that an inner one hides; then those of functions that it is inlined
 * into there. `parameters`: only its parameters, at a function's first instruction that function's.
 * f returns non-zero to end, which is returned. -ENOENT: no function is known there. */
int dwarf_variables(struct dwarf *d, uint64_t offset, bool parameters,
		    int (*f)(void *arg, const struct dwarf_variable *v), void *arg,
		    struct error *e);
/* The function's parameter of that number, from 0 on. */
int dwarf_parameter(struct dwarf *d, uint64_t offset, size_t which, struct dwarf_variable *ret,
		    struct error *e);
/* The nearest lines of the same function in which a variable has a value, 0: none. */
void dwarf_lines_with(struct dwarf *d, const char *source, uint32_t line, const char *name,
		      uint32_t *below, uint32_t *above);
/* What the function that has this offset returns, at its return; of type void it is nowhere. */
int dwarf_return_value(struct dwarf *d, uint64_t offset, struct dwarf_variable *ret,
		       struct error *e);
/* All results of a function of Go, the first one too, as dwarf_variables(); those that were not
 * given a name have one that begins with '~'. Other functions have none here. */
int dwarf_results(struct dwarf *d, uint64_t offset,
		  int (*f)(void *arg, const struct dwarf_variable *v), void *arg, struct error *e);

#endif
