/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fetch program as text: what it reads, and from where. */
#ifndef AX_TOOLS_TRACE_FETCH_TEXT_H
#define AX_TOOLS_TRACE_FETCH_TEXT_H

#include "probes/fetch/fetch.h"

struct fetch_text_context {
	uint16_t machine;
	const struct format *format;	   /* of a tracepoint's record; NULL: registers */
	const struct ax_probe_text *texts; /* constants in comparisons */
	size_t n_texts;
};
enum fetch_text_what { FETCH_TEXT_VALUE, FETCH_TEXT_KEY, FETCH_TEXT_KEPT, FETCH_TEXT_FILTER };
/*
 * Where value, key word or kept value number `index` comes from: "register rdi", "u32 at (rdi+16)",
 * "string at (rax)". malloc'ed; NULL: the program has none, or memory is out.
 */
char *fetch_text(const struct ax_probe_op *ops, size_t n, const struct fetch_text_context *c,
		 enum fetch_text_what what, uint32_t index);

#endif
