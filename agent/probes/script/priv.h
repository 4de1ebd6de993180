/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files that read scripts. */
#ifndef AX_PROBES_SCRIPT_PRIV_H
#define AX_PROBES_SCRIPT_PRIV_H

#include "probes/script/script.h"
#include "probes/text/priv.h"

/* A part of the script's text. */
struct span {
	const char *at;
	size_t len;
};

struct script_reader {
	struct script *script;
	const char *name;
	const char *text; /* comments are blanks */
	struct error *e;
	/* the clause at hand */
	struct span target, condition; /* condition: behind `if`; len 0: none */
	uint32_t when;
	bool anywhere;
	/* where variables are named first, and whether they are set */
	struct {
		const char *asked;
		bool set;
	} variables[VARIABLE_KINDS][SCRIPT_VARIABLES_MAX + 2];
};

int script_fault(struct script_reader *r, const char *at, const char *fmt, ...) PRINTF(3, 4);

struct span span_trim(struct span s);
/* Of the first of these characters outside quotes; its end. */
const char *span_find(struct span s, const char *chars);
/* The same of a word by itself, also outside parentheses. */
const char *span_word(struct span s, const char *word);

/* The target with what is behind it; a part without text is left out. Of `args`, what was taken out
 * is blank. */
struct probe_parts {
	struct span target, args, condition;
	const char *args_at; /* where `args` is in the script */
};
int script_parse_probe(struct script_reader *r, const struct probe_parts *p,
		       struct probe_spec *ret);

/* step.c: one action. */
int script_parse_action(struct script_reader *r, struct span text, struct script_step *step);
/* The number of a state, which is new if it has to be; 0: the sentence is set. */
uint32_t script_state(struct script_reader *r, struct span name);

/* variables.c: that all are set somewhere, and which of them are texts. */
void script_note_asked(struct script_reader *r, const char *at);
int script_check_variables(struct script_reader *r);

/* format.c */
int script_parse_format(struct script_reader *r, const char *at, const char *text,
			struct script_format *ret);
void script_format_free(struct script_format *f);

#endif
