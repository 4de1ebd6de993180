/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -o: what a command prints. */
#ifndef AX_TOOLS_LIB_OUTPUT_H
#define AX_TOOLS_LIB_OUTPUT_H

#include "tools/lib/options.h"

/* The option with two choices, for commands that have no others: parts of a table of options. They
 * set an int, which is 0 for the form that people read and 1 for JSON. */
extern const struct opt output_table[1];       /* table or json */
extern const struct opt output_table_lines[1]; /* the same, and JSON is an object a line */
extern const struct opt output_text_lines[1];  /* text or json, an object a line */

extern const struct words output_table_words, output_text_words;

/* Of the commands with more choices. */
enum output_format { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_NAME };

#endif
