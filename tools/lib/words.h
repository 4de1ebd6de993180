/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What words of the command line stand for: values of options and arguments of commands. The
 * parser takes an option's choices from here, and the completions of shells all they offer. */
#ifndef AX_TOOLS_LIB_WORDS_H
#define AX_TOOLS_LIB_WORDS_H

#include <stddef.h>

enum words_kind {
	WORDS_CHOICES, /* one of `choices`, or of what nth() gives */
	WORDS_FILE,
	WORDS_DIRECTORY,
	WORDS_PROGRAM, /* a command that can be executed; the words behind it are its own */
	WORDS_USER,
	WORDS_PROCESS,	 /* its number */
	WORDS_INTERFACE, /* of the network */
	WORDS_COMMAND,	 /* one of ax's */
	WORDS_ASKED,	 /* what `ask` prints */
};

/* What may follow one of the words instead. */
struct words_after {
	const char *word; /* NULL: the end of the list */
	const struct words *words;
};

struct words {
	enum words_kind kind;
	const char *const *choices;   /* NULL-terminated; NULL: nth() knows them */
	const char *(*nth)(size_t i); /* NULL behind the last one */
	const char *suffix;	      /* behind each of them: more of the word follows, or NULL */
	const struct words_after *after; /* NULL: nothing */
	/* Arguments for ax; "{}" stands for the first word behind the command. */
	const char *ask;
	unsigned column; /* of the table that it prints, from 1; 0: it prints nothing but words */
};

/* The i-th choice, NULL behind the last one. */
const char *words_choice(const struct words *w, size_t i);

extern const struct words words_file, words_directory, words_program, words_user, words_process;
extern const struct words words_interface, words_command, words_app;

#endif
