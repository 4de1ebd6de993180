/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/output.h"

static const char *const table_or_json[] = {"table", "json", NULL};
static const char *const text_or_json[] = {"text", "json", NULL};

const struct words output_table_words = {.choices = table_or_json};
const struct words output_text_words = {.choices = text_or_json};

const struct opt output_table[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT", "table (the default) or json", 0,
	 &output_table_words},
};
const struct opt output_table_lines[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT", "table (the default) or json (one object a line)", 0,
	 &output_table_words},
};
const struct opt output_text_lines[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT", "text (the default) or json (one object a line)", 0,
	 &output_text_words},
};
