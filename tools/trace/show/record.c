/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of probes, a line each. */
#include <time.h>

#include "tools/trace/show/shape.h"
#include "tools/trace/show/show.h"
#include "tools/lib/text.h"

#define NS	  UINT64_C(1000000000)
#define PID_WIDTH 7

/* The parts of a probe's lines that are the same each time. */
struct piece {
	char *text;
	size_t len;
};
struct trace_layout {
	struct piece head;		   /* the probe's name */
	struct piece before[FETCH_VALUES]; /* each value's name */
	const struct fetch *fetch;	   /* NULL: not made yet */
	bool stacks;
	bool symbols; /* or stacks: the process's functions will be asked for */
};

/* --- time --- */

static char *write_digits(char *at, uint32_t v, int n)
{
	for (int i = n - 1; i >= 0; i--, v /= 10)
		at[i] = (char)('0' + v % 10);
	return at + n;
}

/* What is the same for all of a second is kept. */
char *trace_write_time(char *at, uint64_t ns)
{
	static char text[16];
	static uint64_t begin = UINT64_MAX - NS;
	struct tm tm;
	time_t seconds;

	if (ns - begin >= NS) {
		seconds = (time_t)(ns / NS);
		begin = (uint64_t)seconds * NS;
		if (localtime_r(&seconds, &tm))
			strftime(text, sizeof(text), "%H:%M:%S.", &tm);
	}
	memcpy(at, text, 9);
	return write_digits(at + 9, (uint32_t)(ns - begin) / 1000, 6);
}

static char *write_seconds(char *at, uint64_t ns)
{
	at = trace_write_u64(at, ns / NS);
	*at++ = '.';
	return write_digits(at, (uint32_t)(ns % NS), 9);
}

/* --- layouts --- */

static bool set_piece(struct piece *p, bool json, const char *before, const char *name,
		      const char *after)
{
	struct trace_out o;

	/* made once for each probe, with what writes all else */
	if (trace_out_open(&o, -1) < 0)
		return false;
	trace_out_text(&o, before);
	if (json)
		trace_out_json(&o, name, strlen(name));
	else
		trace_out_safe(&o, name, strlen(name));
	trace_out_text(&o, after);
	p->text = malloc(o.n ? o.n : 1);
	p->len = p->text ? o.n : 0;
	memcpy(p->text ? p->text : o.buf, o.buf, p->len);
	o.n = 0;
	trace_out_close(&o);
	return p->text;
}

static bool make_layout(struct trace *t, uint32_t probe, struct trace_layout *l)
{
	const struct fetch *f = session_fetch(t->session, probe);
	const char *name = session_name(t->session, session_probe(t->session, probe)->name);
	bool ok = t->json ? set_piece(&l->head, true, ",\"probe\":", name, ",\"pid\":")
			  : set_piece(&l->head, false, " ", name, "");

	for (size_t i = 0; ok && i < f->n_values; i++) {
		ok = t->json ? set_piece(&l->before[i], true, i ? "," : "", f->values[i].name, ":")
			     : set_piece(&l->before[i], false, " ", f->values[i].name, "=");
		l->stacks |= trace_is_stack(&f->values[i]);
		l->symbols |= l->stacks || f->values[i].type == VALUE_SYMBOL;
	}
	l->fetch = ok ? f : NULL;
	return ok;
}

static const struct trace_layout *layout_of(struct trace *t, uint32_t probe)
{
	if (!t->layouts)
		t->layouts = calloc(session_max_probes(t->session), sizeof(*t->layouts));
	if (!t->layouts || (!t->layouts[probe].fetch && !make_layout(t, probe, &t->layouts[probe])))
		return NULL;
	return &t->layouts[probe];
}

void trace_layouts_free(struct trace *t)
{
	for (size_t i = 0; t->layouts && i < session_max_probes(t->session); i++) {
		free(t->layouts[i].head.text);
		for (size_t j = 0; j < FETCH_VALUES; j++)
			free(t->layouts[i].before[j].text);
	}
	free(t->layouts);
}

/* --- values --- */

const char *trace_bytes_of(const struct ax_probe_record *r, size_t record_len, uint64_t v,
			   size_t *len)
{
	uint32_t off = AX_BYTES_OFF(v);

	*len = AX_BYTES_LEN(v);
	if (off > record_len || *len > record_len - off)
		return NULL;
	return (const char *)r + off;
}

static void put_bytes(struct trace_out *o, const struct fetch_shown *shown, const char *s,
		      size_t len, bool json)
{
	size_t text = shown->counted ? len : strnlen(s, len);

	if (json && shown->type == VALUE_STRING) {
		trace_out_json(o, s, text);
		return;
	}
	if (json)
		trace_out_char(o, '"');
	if (shown->type == VALUE_BUFFER)
		trace_out_bytes(o, s, len);
	else if (shown->type == VALUE_STRING)
		trace_out_quoted(o, s, text);
	else
		trace_out_safe(o, s, text);
	if (json)
		trace_out_char(o, '"');
	if (!json && shown->type == VALUE_STRING && len >= shown->size &&
	    shown->size > AX_PROBE_COMM)
		trace_out_text(o, "..."); /* it may go on */
}

static void put_fault(struct trace_out *o, const struct fetch_shown *shown, bool json)
{
	const char *why = shown->gone;

	if (json || !why) {
		trace_out_text(o, json ? "null" : "?");
		return;
	}
	trace_out_char(o, '<');
	trace_out_text(o, starts_with(why, "it is ") ? why + strlen("it is ") : why);
	trace_out_char(o, '>');
}

static uint64_t caller_of(const struct fetch_shown *shown, const struct ax_probe_record *r)
{
	size_t last = r->n_values - 1u;

	return shown->has_caller && !(r->faults & 1u << last) ? r->values[last] : 0;
}

/* What a shape follows: hidden values, behind those that are shown. */
struct hidden {
	const struct ax_probe_record *r;
	size_t len, first;
	struct session *session;
};

static const uint8_t *hidden_bytes(void *arg, unsigned which, size_t *len)
{
	const struct hidden *h = arg;
	size_t i = h->first + which;

	if (i >= h->r->n_values || i >= AX_PROBE_VALUES || h->r->faults & 1u << i)
		return NULL;
	return (const uint8_t *)trace_bytes_of(h->r, h->len, h->r->values[i], len);
}

static bool hidden_number(void *arg, unsigned which, uint64_t *ret)
{
	const struct hidden *h = arg;
	size_t i = h->first + which;

	if (i >= h->r->n_values || i >= AX_PROBE_VALUES || h->r->faults & 1u << i)
		return false;
	*ret = h->r->values[i];
	return true;
}

static const struct session_dynamic *hidden_dynamic(void *arg, uint64_t type)
{
	const struct hidden *h = arg;

	return session_dynamic(h->session, h->r->probe, type);
}

static void put_shape(struct trace *t, const struct ax_probe_record *r, size_t len, size_t i,
		      const struct shape *shape, size_t n_values)
{
	struct hidden h = {r, len, n_values, t->session};
	struct shape_bytes b = {.followed = hidden_bytes,
				.number = hidden_number,
				.dynamic = hidden_dynamic,
				.arg = &h};

	b.at = (const uint8_t *)trace_bytes_of(r, len, r->values[i], &b.len);
	if (b.at)
		trace_put_shape(&t->out, shape, &b, t->json);
	else
		trace_out_text(&t->out, t->json ? "null" : "?");
}

/* `n_values`: those that are shown, behind which hidden ones are. */
static void put_value(struct trace *t, const struct ax_probe_record *r, size_t len, size_t i,
		      const struct fetch_shown *shown, size_t n_values)
{
	struct trace_out *o = &t->out;
	const char *s;
	size_t n;

	if (r->faults & 1u << i) {
		put_fault(o, shown, t->json);
	} else if (shown->type == VALUE_BUFFER && shown->shape) {
		put_shape(t, r, len, i, shown->shape, n_values);
	} else if (shown->type == VALUE_STRING || shown->type == VALUE_BUFFER) {
		s = trace_bytes_of(r, len, r->values[i], &n);
		put_bytes(o, shown, s ? s : "", s ? n : 0, t->json);
	} else if (shown->type == VALUE_APP) {
		trace_put_app(t, r->values[i]);
	} else if (shown->type == VALUE_SYMBOL) {
		trace_put_symbol(t, r->pid, r->values[i]);
	} else if (trace_is_stack(shown)) {
		trace_put_stack(t, shown, r->probe, r->pid, r->values[i], caller_of(shown, r), "");
	} else {
		trace_put_number(o, shown, r->values[i], t->json);
	}
}

void trace_put_value(struct trace *t, const struct ax_probe_record *r, size_t len, size_t i,
		     const struct fetch_shown *shown)
{
	put_value(t, r, len, i, shown, session_fetch(t->session, r->probe)->n_values);
}

void trace_put_evaluated(struct trace *t, const struct ax_probe_record *r, size_t len,
			 const struct fetch *f)
{
	put_value(t, r, len, 0, &f->values[0], f->n_values);
}

/* --- lines --- */

static char *write_pids(char *at, uint32_t pid, uint32_t tid)
{
	char buf[2 * TRACE_NUMBER_MAX], *end = trace_write_u64(buf, pid);
	ptrdiff_t n;

	if (pid != tid) {
		*end++ = '/';
		end = trace_write_u64(end, tid);
	}
	n = end - buf;
	*at++ = ' ';
	for (ptrdiff_t i = n; i < PID_WIDTH; i++)
		*at++ = ' ';
	memcpy(at, buf, (size_t)n);
	at += n;
	*at++ = ' ';
	return at;
}

/* A column of the width that all names fit, unless they are made harmless. */
static void put_comm(struct trace_out *o, const char *comm)
{
	static const char blanks[AX_PROBE_COMM + 1] = "                ";
	size_t n = strnlen(comm, AX_PROBE_COMM);

	trace_out_safe(o, comm, n);
	trace_out_put(o, blanks, AX_PROBE_COMM - n);
}

static void put_text(struct trace *t, const struct trace_layout *l, const struct ax_probe_record *r,
		     size_t len, uint64_t real_ns)
{
	struct trace_out *o = &t->out;
	char *at = trace_out_room(o, TRACE_TIME_MAX + 3 * TRACE_NUMBER_MAX);

	at = trace_write_time(at, real_ns);
	trace_out_end(o, write_pids(at, r->pid, r->tid));
	put_comm(o, r->comm);
	trace_out_put(o, l->head.text, l->head.len);
	for (size_t i = 0; i < l->fetch->n_values && i < r->n_values; i++) {
		if (l->stacks && trace_is_stack(&l->fetch->values[i]))
			continue;
		trace_out_put(o, l->before[i].text, l->before[i].len);
		trace_put_value(t, r, len, i, &l->fetch->values[i]);
	}
	trace_out_char(o, '\n');
	for (size_t i = 0; l->stacks && i < l->fetch->n_values && i < r->n_values; i++)
		if (trace_is_stack(&l->fetch->values[i]) && !(r->faults & 1u << i))
			trace_put_stack(t, &l->fetch->values[i], r->probe, r->pid, r->values[i],
					caller_of(&l->fetch->values[i], r), "                ");
}

static char *write_name(char *at, const char *name, size_t len)
{
	memcpy(at, name, len);
	return at + len;
}

static void put_json(struct trace *t, const struct trace_layout *l, const struct ax_probe_record *r,
		     size_t len, uint64_t real_ns, const char *print, size_t print_len)
{
	struct trace_out *o = &t->out;
	char *at = trace_out_room(o, 2 * TRACE_NUMBER_MAX);

	at = write_seconds(write_name(at, "{\"time\":", 8), real_ns);
	trace_out_end(o, at);
	trace_out_put(o, l->head.text, l->head.len);
	at = trace_out_room(o, 4 * TRACE_NUMBER_MAX);
	at = trace_write_u64(at, r->pid);
	at = trace_write_u64(write_name(at, ",\"tid\":", 7), r->tid);
	at = trace_write_u64(write_name(at, ",\"cpu\":", 7), r->cpu);
	trace_out_end(o, write_name(at, ",\"comm\":", 8));
	trace_out_json(o, r->comm, strnlen(r->comm, sizeof(r->comm)));
	trace_out_put(o, ",\"values\":{", 11);
	for (size_t i = 0; i < l->fetch->n_values && i < r->n_values; i++) {
		trace_out_put(o, l->before[i].text, l->before[i].len);
		trace_put_value(t, r, len, i, &l->fetch->values[i]);
	}
	trace_out_char(o, '}');
	if (print) {
		trace_out_text(o, ",\"text\":");
		trace_out_json(o, print, print_len);
	}
	trace_out_put(o, "}\n", 2);
}

int trace_put_record_text(struct trace *t, const struct ax_probe_record *r, size_t len,
			  const char *text, size_t text_len)
{
	uint64_t real_ns = r->time_ns + (uint64_t)t->real_offset_ns;
	const struct trace_layout *l;

	if (r->probe >= session_n_probes(t->session))
		return 0;
	l = layout_of(t, r->probe);
	if (!l)
		return -ENOMEM;
	if (l->symbols)
		trace_note_process(t, r->pid);
	if (t->ctf)
		return trace_ctf_put(t, r, len, text, text_len);
	if (t->json)
		put_json(t, l, r, len, real_ns, text, text_len);
	else
		put_text(t, l, r, len, real_ns);
	return t->out.error ? -EIO : 0;
}

int trace_put_record(struct trace *t, const struct ax_probe_record *r, size_t len)
{
	return trace_put_record_text(t, r, len, NULL, 0);
}
