/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values that have a shape, as text and as JSON. */
#ifndef AX_TOOLS_TRACE_SHOW_SHAPE_H
#define AX_TOOLS_TRACE_SHOW_SHAPE_H

#include "probes/session/session.h"
#include "probes/types/shape.h"
#include "tools/trace/show/out.h"

struct shape_bytes {
	const uint8_t *at;
	size_t len;
	/* What was fetched besides: the text that a node has as `followed` less 1; NULL: it could
	 * not be. */
	const uint8_t *(*followed)(void *arg, unsigned which, size_t *len);
	/* Of an interface: a number that was, and what is known of the type that it is. NULL:
	 * nothing. */
	bool (*number)(void *arg, unsigned which, uint64_t *ret);
	const struct session_dynamic *(*dynamic)(void *arg, uint64_t type);
	void *arg;
};
/* Whatever the bytes are, it ends, and is no longer than some pages. */
void trace_put_shape(struct trace_out *o, const struct shape *s, const struct shape_bytes *b,
		     bool json);
/* The name of an enum's value, or those of its bits; `s` is the enum's. */
void trace_put_enum(struct trace_out *o, const struct shape *s, uint64_t v, bool json);
/* `bits` of a number of 4 or 8 bytes. In JSON what is not finite is a text. */
void trace_put_float(struct trace_out *o, uint64_t bits, uint32_t size, bool json);

#endif
