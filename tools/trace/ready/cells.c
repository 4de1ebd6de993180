// SPDX-License-Identifier: GPL-2.0-or-later
/* The pieces of which the lines of ready commands are made. */
#include <signal.h>

#include "tools/trace/ready/ready.h"
#include "tools/lib/text.h"

#define CELL_ROOM 4096 /* so that a cell is in the buffer as a whole, and its width can be seen */
#define NS	  UINT64_C(1000000000)

/* --- text --- */

static size_t cell_begin(struct ready *r)
{
	trace_out_room(&r->out, CELL_ROOM);
	return r->out.n;
}

static void cell_end(struct ready *r, size_t from, size_t width)
{
	struct trace_out *o = &r->out;
	size_t n;

	trace_out_char(o, '\0'); /* for its width */
	o->n--;
	n = text_width(o->buf + from);
	do
		trace_out_char(o, ' ');
	while (++n <= width);
}

void ready_cell(struct ready *r, const char *text, size_t width)
{
	ready_cell_safe(r, text, strlen(text), width);
}

void ready_cell_safe(struct ready *r, const char *text, size_t len, size_t width)
{
	size_t from = cell_begin(r);

	trace_out_safe(&r->out, text, len < CELL_ROOM / 8 ? len : CELL_ROOM / 8);
	cell_end(r, from, width);
}

void ready_number(struct ready *r, uint64_t v, size_t width)
{
	char text[TRACE_NUMBER_MAX];

	*trace_write_u64(text, v) = '\0';
	for (size_t n = strlen(text); n < width; n++)
		trace_out_char(&r->out, ' ');
	trace_out_text(&r->out, text);
	trace_out_char(&r->out, ' ');
}

void ready_time(struct ready *r, uint64_t ns)
{
	char *at = trace_out_room(&r->out, TRACE_TIME_MAX + 1);

	at = trace_write_time(at, ns + (uint64_t)r->real_offset_ns);
	*at++ = ' ';
	trace_out_end(&r->out, at);
}

void ready_duration(struct ready *r, uint64_t ns, size_t width)
{
	char buf[TRACE_DURATION_MAX];
	const char *text = trace_duration_text(ns, buf);

	for (size_t n = strlen(text); n < width; n++)
		trace_out_char(&r->out, ' ');
	trace_out_text(&r->out, text);
	trace_out_char(&r->out, ' ');
}

const char *ready_errno(int err, char buf[32])
{
	const char *name = strerrorname_np(err);

	if (name)
		return name;
	snprintf(buf, 32, "error %d", err);
	return buf;
}

/* --- JSON --- */

void ready_json_string(struct ready *r, const char *key, const char *text, size_t len)
{
	trace_out_text(&r->out, ",\"");
	trace_out_text(&r->out, key);
	trace_out_text(&r->out, "\":");
	trace_out_json(&r->out, text, len);
}

void ready_json_number(struct ready *r, const char *key, int64_t v)
{
	char *at;

	trace_out_text(&r->out, ",\"");
	trace_out_text(&r->out, key);
	trace_out_text(&r->out, "\":");
	at = trace_out_room(&r->out, TRACE_NUMBER_MAX);
	trace_out_end(&r->out, trace_write_s64(at, v));
}

void ready_json_head(struct ready *r, const struct ax_watch_head *h, const char *event)
{
	uint64_t ns = h->time_ns + (uint64_t)r->real_offset_ns;
	char buf[AX_EVENT_APP];
	const char *app = ready_app_name(h, buf);

	trace_out_printf(&r->out, "{\"time\":%llu.%09llu,\"event\":\"%s\"",
			 (unsigned long long)(ns / NS), (unsigned long long)(ns % NS), event);
	if (h->pid) {
		ready_json_number(r, "pid", h->pid);
		ready_json_number(r, "tid", h->tid);
		ready_json_number(r, "ppid", h->ppid);
		ready_json_number(r, "uid", h->uid);
		ready_json_string(r, "comm", h->comm, strnlen(h->comm, sizeof(h->comm)));
	}
	if (app)
		ready_json_string(r, "app", app, strlen(app));
}

/* --- what a shell takes back --- */

static bool is_word(const char *s, size_t len)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "%+,-./:=@_^";

	return len && strspn(s, plain) == len;
}

/* Printable UTF-8, as it is shown by a terminal. */
static bool is_printable(const char *word)
{
	autofree char *escaped = text_escape(word);

	return escaped && streq(escaped, word) && !strchr(word, '\n');
}

static void put_quoted(struct trace_out *o, const char *s, size_t len)
{
	trace_out_char(o, '\'');
	for (size_t i = 0; i < len; i++)
		if (s[i] == '\'')
			trace_out_text(o, "'\\''");
		else
			trace_out_char(o, s[i]);
	trace_out_char(o, '\'');
}

/* bash, zsh, ksh and POSIX 2024 know $'...'. */
static void put_coded(struct trace_out *o, const char *s, size_t len)
{
	static const char digits[] = "01234567";

	trace_out_text(o, "$'");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\'' || c == '\\') {
			trace_out_char(o, '\\');
			trace_out_char(o, (char)c);
		} else if (c == '\n') {
			trace_out_text(o, "\\n");
		} else if (c == '\t') {
			trace_out_text(o, "\\t");
		} else if (c < ' ' || c > '~') {
			trace_out_char(o, '\\');
			trace_out_char(o, digits[c >> 6]);
			trace_out_char(o, digits[c >> 3 & 7]);
			trace_out_char(o, digits[c & 7]);
		} else {
			trace_out_char(o, (char)c);
		}
	}
	trace_out_char(o, '\'');
}

void ready_shell_word(struct trace_out *o, const char *word, size_t len)
{
	if (is_word(word, len))
		trace_out_put(o, word, len);
	else if (is_printable(word))
		put_quoted(o, word, len);
	else
		put_coded(o, word, len);
}

/* --- apps --- */

const char *ready_app_name(const struct ax_watch_head *h, char buf[AX_EVENT_APP])
{
	return ready_app_text(h->app, buf);
}

const char *ready_app_text(const char cgroup[AX_EVENT_APP], char buf[AX_EVENT_APP])
{
	char *number;

	snprintf(buf, AX_EVENT_APP, "%.*s", AX_EVENT_APP - 1, cgroup);
	number = strrchr(buf, '-');
	if (number && number[1] && !number[1 + strspn(number + 1, "0123456789")])
		*number = '\0';
	return *buf ? buf : NULL;
}
