/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files that read and write the text of a probe. */
#ifndef AX_PROBES_TEXT_PRIV_H
#define AX_PROBES_TEXT_PRIV_H

#include "probes/text/spec.h"

struct probe_parser {
	const char *text; /* the whole of it */
	const char *s;	  /* where we are */
	struct probe_spec *spec;
	struct error *error;
	struct probe_scope *scope; /* of a script, or NULL */
	bool ftrace;		   /* a line of ftrace's: numbers without a type are hexadecimal */
};

/* What a value can be used for. */
enum expr_class {
	CLASS_NUMBER,
	CLASS_TRUTH, /* a comparison's */
	CLASS_TEXT,  /* comm, app */
	CLASS_CONSTANT_TEXT,
};

/* --- scanning (scan.c) --- */

/* Fills the error: the place `at`, the word that is there, and what the format says. -EINVAL. */
int probe_fault(struct probe_parser *p, const char *at, const char *fmt, ...) PRINTF(3, 4);
int probe_no_memory(struct probe_parser *p);
bool blank_char(char c);
const char *skip_blanks(const char *s);
bool ident_start(char c);
bool ident_char(char c);
size_t ident_len(const char *s); /* 0: it begins with something else */
/* Behind the word at s; blanks in quotes do not end it. */
const char *word_end(const char *s);
/* The first or last colon outside quotes, or NULL. */
const char *find_colon(const char *s, const char *end, bool last);
/* A number at p->s, decimal or 0x; what follows may not go on as a word. */
int probe_number(struct probe_parser *p, uint64_t max, uint64_t *ret);
/* Of 1.5, -0.25e3 at s; 0: it is none. */
size_t float_len(const char *s);
/* "..." at p->s, with its escapes undone. */
int probe_quoted(struct probe_parser *p, char **ret);
void write_quoted(FILE *f, const char *s);

/* --- the parts of a probe --- */

int probe_target(struct probe_parser *p);
void write_target(FILE *f, const struct probe_spec *p);

int probe_expr(struct probe_parser *p, bool condition, struct expr *ret, enum expr_class *class,
	       bool *fetched);
void write_expr(FILE *f, const struct probe_spec *p, const struct expr *e);
void expr_free(struct expr *e);
/* The word is a value of its own, no field's or variable's name. */
bool expr_is_builtin(const struct probe_spec *p, const char *word);
int expr_push(struct probe_parser *p, struct expr *e, enum expr_op op, int64_t value,
	      const char *text, size_t len);
/* 0: a leaf; 1 or 2 operands come before the item */
unsigned expr_arity(enum expr_op op);

int probe_arg(struct probe_parser *p, struct probe_arg *a);
void write_arg(FILE *f, const struct probe_spec *p, const struct probe_arg *a);
bool probe_is_return(const struct probe_spec *p);
bool probe_is_kernel(const struct probe_spec *p);

#endif
