/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/words.h"

const struct words words_file = {.kind = WORDS_FILE};
const struct words words_directory = {.kind = WORDS_DIRECTORY};
const struct words words_program = {.kind = WORDS_PROGRAM};
const struct words words_user = {.kind = WORDS_USER};
const struct words words_process = {.kind = WORDS_PROCESS};
const struct words words_interface = {.kind = WORDS_INTERFACE};
const struct words words_command = {.kind = WORDS_COMMAND};
const struct words words_app = {.kind = WORDS_ASKED, .ask = "get apps -o name"};

const char *words_choice(const struct words *w, size_t i)
{
	if (w->kind != WORDS_CHOICES)
		return NULL;
	return w->nth ? w->nth(i) : w->choices[i];
}
