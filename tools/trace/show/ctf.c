/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records as events of a trace in CTF, for -o ctf. */
#include "ctf/ctf.h"
#include "tools/trace/show/show.h"

#define NS_PER_MS   UINT64_C(1000000)
#define UNREAD_MAX  1024
#define RECORDS_MAX 8192 /* that come before what waits is looked at */

struct trace_ctf {
	struct ctf *ctf;
	int *events; /* of each probe, by whether there is a text beside its values: 1 + number */
	uint64_t give_ns, write_ns; /* when the next time comes for that */
	uint64_t discarded;	    /* the last time */
	uint32_t records;	    /* since then */
	char unread[UNREAD_MAX];
};

int trace_ctf_open(struct trace *t, struct error *e)
{
	int64_t offset = (int64_t)(time_real_ns() - time_mono_ns());
	struct trace_ctf *x;
	int r;

	if (!t->ctf_path)
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x)
		return error_set(e, -ENOMEM, "out of memory");
	r = ctf_open(t->ctf_path, offset, &x->ctf, e);
	if (r < 0)
		free(x);
	else
		t->ctf = x;
	return r;
}

void trace_ctf_free(struct trace *t)
{
	if (!t->ctf)
		return;
	ctf_free(t->ctf->ctf);
	free(t->ctf->events);
	free(t->ctf);
	t->ctf = NULL;
}

/* What waits is sorted each time, so not each time that somebody looks for records. */
bool trace_ctf_is_due(const struct trace *t)
{
	return t->ctf && time_mono_ns() >= t->ctf->give_ns;
}

/* Of what happened until then, earlier events may come still. */
static int flush(struct trace *t, uint64_t seen_ns, uint64_t discarded, bool end)
{
	uint64_t now = time_mono_ns(), hold = TRACE_CTF_HOLD_MS * NS_PER_MS;
	struct trace_ctf *x = t->ctf;
	bool all = end || now >= x->write_ns;
	int r = ctf_flush(x->ctf,
			  end		   ? UINT64_MAX
			  : seen_ns > hold ? seen_ns - hold
					   : 0,
			  discarded, all);

	x->give_ns = now + hold / 2;
	x->discarded = discarded;
	x->records = 0;
	if (all)
		x->write_ns = now + TRACE_FLUSH_MS * NS_PER_MS;
	if (r < 0 && !t->out.error)
		t->out.error = -r;
	return r;
}

int trace_ctf_flush(struct trace *t, uint64_t discarded, bool end)
{
	return flush(t, time_mono_ns(), discarded, end);
}

/* --- what events have --- */

/* Values that are best told by what text shows of them. */
static bool is_shown_as_text(const struct fetch_shown *shown)
{
	switch (shown->type) {
	case VALUE_APP:
	case VALUE_SYMBOL:
	case VALUE_ERRNO:
	case VALUE_SYSCALL:
		return true;
	default:
		return shown->shape != NULL;
	}
}

static enum ctf_type type_of(const struct fetch_shown *shown)
{
	if (is_shown_as_text(shown))
		return CTF_STRING;
	switch (shown->type) {
	case VALUE_SIGNED:
		return CTF_SIGNED;
	case VALUE_HEX:
		return CTF_HEX;
	case VALUE_FLOAT:
		return CTF_FLOAT;
	case VALUE_STRING:
		return CTF_STRING;
	case VALUE_BUFFER:
		return CTF_BYTES;
	case VALUE_USER_STACK:
	case VALUE_KERNEL_STACK:
		return CTF_STRINGS;
	default:
		return CTF_UNSIGNED;
	}
}

static bool are_alike(const struct fetch *a, const struct fetch *b)
{
	if (a->n_values != b->n_values)
		return false;
	for (size_t i = 0; i < a->n_values; i++)
		if (type_of(&a->values[i]) != type_of(&b->values[i]) ||
		    !streq(a->values[i].name, b->values[i].name))
			return false;
	return true;
}

/* One of several probes of a name has it already; 0: none. */
static int find_alike(const struct trace *t, uint32_t probe, bool text)
{
	const struct session_probe *p = session_probe(t->session, probe), *q;

	for (size_t i = 0; i < session_n_probes(t->session); i++) {
		q = session_probe(t->session, i);
		if (t->ctf->events[2 * i + text] && q->name == p->name &&
		    are_alike(session_fetch(t->session, (uint32_t)i),
			      session_fetch(t->session, probe)))
			return t->ctf->events[2 * i + text];
	}
	return 0;
}

static int add_event(struct trace *t, uint32_t probe, bool text)
{
	const struct fetch *f = session_fetch(t->session, probe);
	const char *name = session_name(t->session, session_probe(t->session, probe)->name);
	struct ctf_field fields[CTF_FIELDS_MAX];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < f->n_values; i++)
		fields[n++] = (struct ctf_field){.name = f->values[i].name,
						 .type = type_of(&f->values[i])};
	if (text)
		fields[n++] = (struct ctf_field){.name = "text", .type = CTF_STRING};
	r = ctf_add_event(t->ctf->ctf, name, fields, n);
	return r < 0 ? r : r + 1;
}

/* Its number, or -ENOMEM. */
static int event_of(struct trace *t, uint32_t probe, bool text)
{
	struct trace_ctf *x = t->ctf;
	int *event;

	if (!x->events)
		x->events = calloc(2 * session_max_probes(t->session), sizeof(*x->events));
	if (!x->events)
		return -ENOMEM;
	event = &x->events[2 * probe + text];
	if (!*event)
		*event = find_alike(t, probe, text);
	if (!*event)
		*event = add_event(t, probe, text);
	return *event < 0 ? -ENOMEM : *event - 1;
}

/* --- values --- */

/* The names of values that could not be read. */
static const char *name_unread(struct trace_ctf *x, const struct fetch *f,
			       const struct ax_probe_record *r)
{
	size_t n = 0;

	x->unread[0] = '\0';
	for (size_t i = 0; r->faults && i < f->n_values && n < UNREAD_MAX; i++)
		if (i >= r->n_values || r->faults & 1u << i)
			n += (size_t)snprintf(x->unread + n, UNREAD_MAX - n, "%s%s", n ? " " : "",
					      f->values[i].name);
	return x->unread;
}

static void put_lines(struct ctf *c, const char *s, size_t len)
{
	const char *end = s + len, *at;
	uint32_t n = 0;

	for (at = s; at < end; at++)
		n += *at == '\n';
	ctf_strings(c, n);
	for (at = s; n--; at++) {
		const char *line = at;

		at = memchr(at, '\n', (size_t)(end - at));
		ctf_string(c, line, (size_t)(at - line));
	}
}

/* What text shows of it. */
static void put_as_text(struct trace *t, const struct ax_probe_record *r, size_t len, size_t i,
			const struct fetch_shown *shown)
{
	struct trace_out saved = t->out;

	if (trace_out_open(&t->out, -1) < 0) {
		t->out = saved;
		t->out.error = ENOMEM;
		return;
	}
	trace_put_value(t, r, len, i, shown);
	if (trace_is_stack(shown))
		put_lines(t->ctf->ctf, t->out.buf, t->out.n);
	else
		ctf_string(t->ctf->ctf, t->out.buf, t->out.n);
	t->out.n = 0;
	trace_out_close(&t->out);
	t->out = saved;
}

/* A value that is not there is 0 or empty. */
static void put_nothing(struct ctf *c, const struct fetch_shown *shown)
{
	switch (type_of(shown)) {
	case CTF_STRING:
		ctf_string(c, "", 0);
		break;
	case CTF_STRINGS:
		ctf_strings(c, 0);
		break;
	case CTF_BYTES:
		ctf_bytes(c, "", 0);
		break;
	default:
		ctf_number(c, 0);
	}
}

static double float_of(uint64_t bits, uint32_t size)
{
	double d;
	float f;

	if (size == sizeof(f)) {
		memcpy(&f, &bits, sizeof(f));
		return (double)f;
	}
	memcpy(&d, &bits, sizeof(d));
	return d;
}

static void put_value(struct trace *t, const struct ax_probe_record *r, size_t len, size_t i,
		      const struct fetch_shown *shown)
{
	struct ctf *c = t->ctf->ctf;
	const char *s;
	size_t n;

	if (i >= r->n_values || r->faults & 1u << i) {
		put_nothing(c, shown);
	} else if (is_shown_as_text(shown) || trace_is_stack(shown)) {
		put_as_text(t, r, len, i, shown);
	} else if (shown->type == VALUE_FLOAT) {
		ctf_float(c, float_of(r->values[i], shown->size));
	} else if (shown->type == VALUE_STRING || shown->type == VALUE_BUFFER) {
		s = trace_bytes_of(r, len, r->values[i], &n);
		if (shown->type == VALUE_STRING)
			ctf_string(c, s ? s : "", s ? n : 0);
		else
			ctf_bytes(c, s ? s : "", s ? n : 0);
	} else {
		ctf_number(c, r->values[i]);
	}
}

int trace_ctf_put(struct trace *t, const struct ax_probe_record *r, size_t len, const char *text,
		  size_t text_len)
{
	const struct fetch *f = session_fetch(t->session, r->probe);
	struct ctf *c = t->ctf->ctf;
	int event = event_of(t, r->probe, text != NULL);
	struct ctf_context context = {
		.time_ns = r->time_ns,
		.pid = r->pid,
		.tid = r->tid,
		.cpu = r->cpu,
		.comm = r->comm,
		.comm_len = sizeof(r->comm),
		.unread = name_unread(t->ctf, f, r),
	};

	if (event < 0)
		return event;
	ctf_begin(c, event, &context);
	for (size_t i = 0; i < f->n_values; i++)
		put_value(t, r, len, i, &f->values[i]);
	if (text)
		ctf_string(c, text, text_len);
	ctf_end(c);
	/* who reads may find more and more */
	if (++t->ctf->records == RECORDS_MAX)
		flush(t, r->time_ns, t->ctf->discarded, false);
	return t->out.error ? -EIO : 0;
}
