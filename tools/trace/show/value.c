/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of probes as text and as JSON. */
#include "probes/kernel/syscalls.h"
#include "tools/trace/show/shape.h"
#include "tools/trace/show/show.h"

#define ERRNO_MAX 4095 /* a system call's result below 0 is an error from -1 to this */

static void put_char(struct trace_out *o, uint64_t v, bool json)
{
	char c = (char)v;

	if (json) {
		trace_out_json(o, &c, 1);
		return;
	}
	trace_out_quoted_char(o, c);
}

static void put_hex(struct trace_out *o, uint64_t v, bool json)
{
	char *at = trace_out_room(o, TRACE_NUMBER_MAX);

	/* JSON has no hexadecimal numbers, and readers lose the last bits of such large ones */
	if (json)
		*at++ = '"';
	at = trace_write_hex(at, v);
	if (json)
		*at++ = '"';
	trace_out_end(o, at);
}

/* Functions that return an int leave the upper half of the register as it was, or 0. */
static void put_errno(struct trace_out *o, uint64_t v, bool json)
{
	int64_t n = (int64_t)v;
	const char *name;

	if (v <= UINT32_MAX && (int32_t)v < 0 && (int32_t)v >= -ERRNO_MAX)
		n = (int32_t)v;
	name = n < 0 && n >= -ERRNO_MAX ? strerrorname_np((int)-n) : NULL;
	if (name && !json)
		trace_out_printf(o, "-%s", name);
	else
		trace_out_end(o, trace_write_s64(trace_out_room(o, TRACE_NUMBER_MAX), n));
}

static void put_system_call(struct trace_out *o, uint64_t v, bool json)
{
	const char *name = json ? NULL : syscall_name(v);

	if (name)
		trace_out_text(o, name);
	else
		trace_out_end(o, trace_write_s64(trace_out_room(o, TRACE_NUMBER_MAX), (int64_t)v));
}

/* The same in JSON. (Anything else is no bool, and is to be seen.) */
static void put_bool(struct trace_out *o, uint64_t v)
{
	if (v <= 1)
		trace_out_text(o, v ? "true" : "false");
	else
		trace_out_u64(o, v);
}

void trace_put_number(struct trace_out *o, const struct fetch_shown *shown, uint64_t v, bool json)
{
	if (shown->shape && (shown->type == VALUE_UNSIGNED || shown->type == VALUE_SIGNED)) {
		trace_put_enum(o, shown->shape, v, json);
		return;
	}
	switch (shown->type) {
	case VALUE_FLOAT:
		trace_put_float(o, v, shown->size, json);
		break;
	case VALUE_ERRNO:
		put_errno(o, v, json);
		break;
	case VALUE_SYSCALL:
		put_system_call(o, v, json);
		break;
	case VALUE_SIGNED:
		trace_out_end(o, trace_write_s64(trace_out_room(o, TRACE_NUMBER_MAX), (int64_t)v));
		break;
	case VALUE_HEX:
	case VALUE_SYMBOL:
	case VALUE_USER_STACK:
	case VALUE_KERNEL_STACK:
		put_hex(o, v, json);
		break;
	case VALUE_CHAR:
		put_char(o, v, json);
		break;
	case VALUE_BOOL:
		put_bool(o, v);
		break;
	default:
		trace_out_u64(o, v);
	}
}

void trace_put_key(struct trace *t, const struct fetch_shown *shown, const uint64_t *words)
{
	struct trace_out *o = &t->out;
	const char *s = (const char *)words;

	if (shown->type == VALUE_APP) {
		trace_put_app(t, *words);
	} else if (shown->type == VALUE_SYMBOL) {
		trace_put_symbol(t, (uint32_t)words[1], *words);
	} else if (trace_is_stack(shown)) {
		trace_put_stack(t, shown, UINT32_MAX,
				shown->type == VALUE_USER_STACK ? (uint32_t)words[1] : 0, *words,
				shown->has_caller ? words[2] : 0, "        ");
	} else if (shown->type != VALUE_STRING) {
		trace_put_number(o, shown, *words, t->json);
	} else if (t->json) {
		trace_out_json(o, s, strnlen(s, shown->size));
	} else {
		trace_out_safe(o, s, strnlen(s, shown->size));
	}
}
