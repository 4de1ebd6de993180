// SPDX-License-Identifier: GPL-2.0-or-later
/* The lines of `print`. */
#include "tools/trace/script/script.h"

static bool is_text(const struct fetch_shown *shown)
{
	return shown->type == VALUE_STRING;
}

static void put_string(struct trace *t, const struct ax_probe_record *r, size_t len, uint64_t v)
{
	uint32_t off = AX_BYTES_OFF(v), n = AX_BYTES_LEN(v);
	const char *s = (const char *)r + off;

	if (off > len || n > len - off)
		return;
	if (t->json) /* made harmless with the whole line */
		trace_out_put(&t->out, s, strnlen(s, n));
	else
		trace_out_safe(&t->out, s, strnlen(s, n));
}

static void put_char(struct trace_out *o, uint64_t v)
{
	char c = (char)v;

	trace_out_safe(o, &c, 1);
}

/* As the letter behind the % asks. */
static void put_value(struct trace *t, const struct script_piece *p,
		      const struct ax_probe_record *r, size_t len, size_t i)
{
	const struct fetch_shown *shown = &session_fetch(t->session, r->probe)->values[i];
	struct trace_out *o = &t->out;
	char *at = trace_out_room(o, TRACE_NUMBER_MAX);
	bool json = t->json;

	if (r->faults & 1u << i) {
		trace_out_text(o, "?");
	} else if (p->type == 'd') {
		trace_out_end(o, trace_write_s64(at, (int64_t)r->values[i]));
	} else if (p->type == 'u') {
		trace_out_end(o, trace_write_u64(at, r->values[i]));
	} else if (p->type == 'x') {
		trace_write_hex(at, r->values[i]);
		trace_out_put(o, at + 2, (size_t)(trace_write_hex(at, r->values[i]) - at - 2));
	} else if (p->type == 'c') {
		put_char(o, r->values[i]);
	} else if (is_text(shown)) {
		put_string(t, r, len, r->values[i]);
	} else {
		t->json = false; /* quotes would be the text's */
		trace_put_value(t, r, len, i, shown);
		t->json = json;
	}
}

static void put_blanks(struct trace_out *o, size_t n, char c)
{
	while (n--)
		trace_out_char(o, c);
}

static void put_padded(struct trace_out *o, const struct script_piece *p, const char *s, size_t n)
{
	bool left = strchr(p->how, '-'), plus = strchr(p->how, '+') && p->type == 'd' && *s != '-';
	const char *digits = p->how + strspn(p->how, "-+0");
	size_t width = strtoul(digits, NULL, 10), whole = n + plus;
	bool zeros = !left && p->type != 's' && p->how[strcspn(p->how, "0")] &&
		     strcspn(p->how, "0") < (size_t)(digits - p->how);
	size_t blanks = width > whole ? width - whole : 0;

	if (!left && !zeros)
		put_blanks(o, blanks, ' ');
	if (plus)
		trace_out_char(o, '+');
	if (zeros && *s == '-') {
		trace_out_char(o, '-');
		s++;
		n--;
	}
	if (zeros)
		put_blanks(o, blanks, '0');
	trace_out_put(o, s, n);
	if (left)
		put_blanks(o, blanks, ' ');
}

/* A value is written by what writes all values, elsewhere, and then padded. */
static void put_piece(struct script_run *run, const struct script_piece *p,
		      const struct ax_probe_record *r, size_t len, size_t i)
{
	struct trace *t = &run->t;
	struct trace_out line = t->out;

	trace_out_text(&line, p->text);
	if (p->type) {
		t->out = run->piece;
		put_value(t, p, r, len, i);
		run->piece = t->out;
		put_padded(&line, p, run->piece.buf, run->piece.n);
		run->piece.n = 0;
	}
	t->out = line;
}

/* With the line as one of its texts. */
static int put_record(struct script_run *run, const struct script_format *f,
		      const struct ax_probe_record *r, size_t len)
{
	struct trace *t = &run->t;
	struct trace_out out = t->out, line;
	int err;

	if (trace_out_open(&line, -1) < 0)
		return -ENOMEM;
	t->out = line;
	for (size_t i = 0; i <= f->n_values; i++)
		put_piece(run, &f->v[i], r, len, i);
	line = t->out;
	t->out = out;
	err = trace_put_record_text(t, r, len, line.buf, line.n);
	line.n = 0;
	trace_out_close(&line);
	return err;
}

static void note_process(struct trace *t, const struct ax_probe_record *r)
{
	const struct fetch *f = session_fetch(t->session, r->probe);

	for (size_t i = 0; i < f->n_values; i++)
		if (f->values[i].type == VALUE_SYMBOL || trace_is_stack(&f->values[i])) {
			trace_note_process(t, r->pid);
			return;
		}
}

int script_print(struct script_run *run, const struct script_step *step,
		 const struct ax_probe_record *r, size_t len)
{
	const struct script_format *f = &step->format;
	struct trace *t = &run->t;

	note_process(t, r);
	if (t->json || t->ctf)
		return put_record(run, f, r, len);
	for (size_t i = 0; i <= f->n_values; i++)
		put_piece(run, &f->v[i], r, len, i);
	trace_out_char(&t->out, '\n');
	return t->out.error ? -EIO : 0;
}
