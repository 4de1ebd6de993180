/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of the command line, from tables. A table's entries say where a value goes and of which
 * type it is; parsing, errors and --help come from the same entries.
 */
#ifndef AX_TOOLS_LIB_OPTIONS_H
#define AX_TOOLS_LIB_OPTIONS_H

#include "config/config.h"
#include "base/util.h"

enum opt_type {
	OPT_FLAG,     /* bool *: no value */
	OPT_STRING,   /* const char **: into argv */
	OPT_STRINGS,  /* struct strv *: may be given several times */
	OPT_CHOICE,   /* int *: index into `choices` */
	OPT_NUMBER,   /* uint32_t * */
	OPT_DURATION, /* uint32_t *, in milliseconds: "5s", "300ms", "2m" or seconds */
	OPT_SPAN,     /* the same, above 0 */
};

struct opt {
	const char *name; /* without dashes */
	char letter;	  /* of the short form, 0: none */
	enum opt_type type;
	const char *value; /* what the help calls the value */
	const char *help;
	void *to;
	const char *const *choices; /* OPT_CHOICE: NULL-terminated */
};

struct opt_list {
	const struct opt *v;
	size_t n;
};

struct opt_syntax {
	const char *usage; /* after "Usage: ", several lines allowed */
	const char *about; /* paragraphs for the help */
	struct opt_list own;
	struct opt_list common; /* options that every command has */
	/* The first word that is no option ends them: it and what follows belong to a command. */
	bool command_follows;
};

/*
 * Sets what the options in argv[0..argc) name. Words that are no options are moved to the front of
 * argv in their order; "--" ends the options. Returns the number of words, or -EINVAL (-ENOMEM)
 * with a sentence.
 */
int opt_parse(const struct opt_syntax *s, int argc, char **argv, struct error *e);
void opt_help(const struct opt_syntax *s, FILE *to);
/* Prints text in lines of at most 80 columns, the first one begun at column `at`, the others
 * indented by `indent`; "\n" in it starts a new line. */
void opt_wrap(const char *text, size_t at, size_t indent, FILE *to);

#endif
