// SPDX-License-Identifier: GPL-2.0-or-later
/* Fields of perf.data as text and as JSON. */
#include "tools/trace/perfdata/perfdata.h"

#define BYTES_SHOWN 32 /* of longer ones only the beginning */

static void put_name(struct perf_show *s, const char *name)
{
	struct trace_out *o = s->out;
	bool some = s->at[s->depth].some;

	s->at[s->depth].some = true;
	if (some)
		trace_out_char(o, s->json ? ',' : ' ');
	if (!name || s->at[s->depth].list || (s->lines && s->depth == 1 && streq(name, "value")))
		return;
	if (s->json) {
		trace_out_json(o, name, strlen(name));
		trace_out_char(o, ':');
		return;
	}
	trace_out_text(o, name);
	trace_out_char(o, '=');
}

static void put_time(struct trace_out *o, uint64_t ns)
{
	char *at = trace_out_room(o, 2 * TRACE_NUMBER_MAX);
	uint64_t part = ns % 1000000000;

	at = trace_write_u64(at, ns / 1000000000);
	*at++ = '.';
	for (uint64_t unit = 100000000; unit; unit /= 10)
		*at++ = (char)('0' + part / unit % 10);
	trace_out_end(o, at);
}

static void put_text(struct perf_show *s, const char *text, size_t len)
{
	bool quote = !len || memchr(text, ' ', len) || memchr(text, '=', len);

	if (s->json) {
		trace_out_json(s->out, text, len);
		return;
	}
	if (quote)
		trace_out_quoted(s->out, text, len);
	else
		trace_out_safe(s->out, text, len);
}

static void put_bytes(struct perf_show *s, const char *data, size_t len)
{
	size_t shown = s->json || s->whole || len <= BYTES_SHOWN ? len : BYTES_SHOWN;

	if (s->json)
		trace_out_char(s->out, '"');
	if (shown)
		trace_out_bytes(s->out, data, shown);
	if (s->json)
		trace_out_char(s->out, '"');
	else if (shown < len)
		trace_out_printf(s->out, "...(%zu bytes)", len);
	else if (!len)
		trace_out_char(s->out, '-');
}

/* JSON has no numbers of 64 bits for everybody: addresses are texts, others are small. */
static void put_hex(struct perf_show *s, uint64_t v)
{
	if (s->json)
		trace_out_char(s->out, '"');
	trace_out_end(s->out, trace_write_hex(trace_out_room(s->out, TRACE_NUMBER_MAX), v));
	if (s->json)
		trace_out_char(s->out, '"');
}

/* Of what has a line of its own: without brackets, and a line for each object of a list. */
static bool begin_line(struct perf_show *s, const char *name, bool list)
{
	if (!s->lines || s->depth > 2)
		return false;
	if (s->depth == 0 && !list) {
		trace_out_text(s->out, name);
		trace_out_text(s->out, ": ");
	} else if (s->depth == 1 && list) {
		if (s->at[1].some || !streq(name, "values"))
			put_name(s, name);
		s->at[1].some = true;
	} else if (s->depth == 2 && !list) {
		trace_out_text(s->out, "\n    ");
	} else {
		return false;
	}
	return true;
}

void perf_begin(struct perf_show *s, const char *name, enum perfdata_kind kind)
{
	bool list = kind == PERFDATA_LIST, bare = begin_line(s, name, list);

	if (!bare) {
		put_name(s, name);
		trace_out_char(s->out, list ? '[' : '{');
	}
	if (s->depth < PERF_SHOW_DEPTH - 1)
		s->depth++;
	s->at[s->depth].list = list;
	s->at[s->depth].some = false;
	s->at[s->depth].bare = bare;
}

void perf_end(struct perf_show *s)
{
	if (!s->at[s->depth].bare)
		trace_out_char(s->out, s->at[s->depth].list ? ']' : '}');
	if (s->depth)
		s->depth--;
}

static void put(void *arg, const struct perfdata_field *f)
{
	struct perf_show *s = arg;
	struct trace_out *o = s->out;

	if (f->kind == PERFDATA_END) {
		perf_end(s);
		return;
	}
	if (f->kind == PERFDATA_LIST || f->kind == PERFDATA_OBJECT) {
		perf_begin(s, f->name, f->kind);
		return;
	}
	put_name(s, f->name);
	switch (f->kind) {
	case PERFDATA_NUMBER:
		trace_out_u64(o, f->number);
		break;
	case PERFDATA_SIGNED:
		trace_out_end(o, trace_write_s64(trace_out_room(o, TRACE_NUMBER_MAX),
						 (int64_t)f->number));
		break;
	case PERFDATA_HEX:
		put_hex(s, f->number);
		break;
	case PERFDATA_TIME:
		put_time(o, f->number);
		break;
	case PERFDATA_TEXT:
		put_text(s, f->data, f->len);
		break;
	default:
		put_bytes(s, f->data, f->len);
	}
}

struct perfdata_sink perf_sink(struct perf_show *s)
{
	return (struct perfdata_sink){put, s};
}

void perf_put_number(struct perf_show *s, const char *name, uint64_t v)
{
	put_name(s, name);
	trace_out_u64(s->out, v);
}

void perf_put_text(struct perf_show *s, const char *name, const char *v)
{
	put_name(s, name);
	put_text(s, v, strlen(v));
}

void perf_put_hex(struct perf_show *s, const char *name, uint64_t v)
{
	put_name(s, name);
	put_hex(s, v);
}
