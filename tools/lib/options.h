/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of the command line, from tables. A table's entries say where a value goes and of which
 * type it is; parsing, errors, --help and the completions of shells come from the same entries.
 */
#ifndef AX_TOOLS_LIB_OPTIONS_H
#define AX_TOOLS_LIB_OPTIONS_H

#include "config/config.h"
#include "base/util.h"
#include "tools/lib/words.h"

enum opt_type {
	OPT_FLAG,     /* bool: no value */
	OPT_MAYBE,    /* const char *: "" without a value, which only `=` gives it */
	OPT_STRING,   /* const char *: into argv */
	OPT_STRINGS,  /* struct strv: may be given several times */
	OPT_CHOICE,   /* int: which one of `words` */
	OPT_NUMBER,   /* uint32_t */
	OPT_DURATION, /* uint32_t, in milliseconds: "5s", "300ms", "2m" or seconds */
	OPT_SPAN,     /* the same, above 0 */
};

struct opt {
	const char *name; /* without dashes */
	char letter;	  /* of the short form, 0: none */
	enum opt_type type;
	const char *value; /* what the help calls the value */
	const char *help;
	size_t at;		   /* offset of what is set in the command's own struct */
	const struct words *words; /* what the value is; NULL: nothing that could be listed */
};

/* Whether the next argument is its value. */
static inline bool opt_takes_next(const struct opt *o)
{
	return o->type != OPT_FLAG && o->type != OPT_MAYBE;
}

/* A table of options, and where in the command's own struct the one begins which it is about. */
struct opt_part {
	const struct opt *v; /* NULL: no more parts */
	size_t n;
	size_t at;
};

/* An option that people know from elsewhere, and what does that here. */
struct opt_elsewhere {
	const char *name; /* without dashes; NULL: the end of the list */
	char letter;	  /* of the short form, 0: none */
	const char *here; /* behind "there is no option --NAME: " */
};

#define OPT_PARTS 5
#define OPT_ARGS  2

struct opt_syntax {
	const char *usage; /* after "Usage: ", several lines allowed */
	const char *about; /* paragraphs for the help */
	struct opt_part own[OPT_PARTS];
	/* The arguments that are no options: the first ones, and what any further ones are. */
	const struct words *args[OPT_ARGS], *rest;
	/* The first word that is no option ends them: it and what follows belong to a command. */
	bool command_follows;
	const struct opt_elsewhere *elsewhere; /* what are no options, or NULL */
};

/* Options that every command has, and the struct that they set. */
struct opt_common {
	struct opt_part part;
	void *to;
};

/* The i-th of a syntax's own options, NULL behind the last one; *at (may be NULL): its offset. */
const struct opt *opt_own(const struct opt_syntax *s, size_t i, size_t *at);

/*
 * Sets in *to what the options in argv[0..argc) name. Words that are no options are moved to the
 * front of argv in their order; "--" ends the options. Returns the number of words, or -EINVAL
 * (-ENOMEM) with a sentence.
 */
int opt_parse(const struct opt_syntax *s, void *to, const struct opt_common *common, int argc,
	      char **argv, struct error *e);
void opt_help(const struct opt_syntax *s, const struct opt_common *common, FILE *to);
/* Prints text in lines of at most 80 columns, the first one begun at column `at`, the others
 * indented by `indent`; "\n" in it starts a new line. */
void opt_wrap(const char *text, size_t at, size_t indent, FILE *to);

#endif
