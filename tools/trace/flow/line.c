/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line, or a JSON object, for each call and each return. */
#include "tools/trace/flow/flow.h"

#define NS_PER_US    1000
#define TIME_WIDTH   12
#define THREAD_WIDTH 8
#define DEPTH_SHOWN  60 /* deeper ones are not indented further */

static void put_fixed(struct trace_out *o, uint64_t ns)
{
	trace_out_u64(o, ns / NS_PER_US);
	trace_out_char(o, '.');
	trace_out_char(o, (char)('0' + ns % NS_PER_US / 100));
}

static uint64_t elapsed(const struct flow_lines *q, const struct flow_step *s)
{
	return s->time_ns > q->start_ns ? s->time_ns - q->start_ns : 0;
}

/* --- who called --- */

/* Where a call came from is known even when the process has ended by now, if it is in the same
 * file. */
static bool put_caller_here(struct flow_lines *q, uint64_t back)
{
	uint64_t address = back - q->image;
	const struct flow_function *fn = &q->functions[0];
	struct symbol s;
	const char *name;

	/* code is one piece of the file, as a rule; the address tells if it is not */
	if (binary_symbolise(q->binary, address - 1 - fn->address + fn->offset, &s) < 0 ||
	    address <= s.address || address - s.address > s.size)
		return false;
	name = s.demangled ? s.demangled : s.name;
	if (q->t->json)
		trace_out_json(&q->t->out, name, strlen(name));
	else
		trace_out_safe(&q->t->out, name, strlen(name));
	return true;
}

static void put_caller(struct flow_lines *q, const struct flow_step *s)
{
	struct trace_out *o = &q->t->out;
	const char *jumped = s->jumped ? q->functions[s->caller].name : NULL;

	if (!q->callers)
		return;
	/* another tracer's trampoline is in the place of the address */
	if (!jumped && (!s->event->back || flow_is_trampoline(s->event->back)))
		return;
	trace_out_text(o, q->t->json ? ",\"caller\":"
			  : jumped   ? "  jumped to from "
				     : "  called from ");
	if (jumped && q->t->json)
		trace_out_json(o, jumped, strlen(jumped));
	else if (jumped)
		trace_out_safe(o, jumped, strlen(jumped));
	else if (!put_caller_here(q, s->event->back))
		trace_put_symbol(q->t, s->pid, s->event->back - 1);
}

/* --- values --- */

static void put_arguments(struct flow_lines *q)
{
	const struct ax_probe_record *r = q->record;
	const struct fetch *f = session_fetch(q->t->session, r->probe);
	struct trace_out *o = &q->t->out;

	for (size_t i = FLOW_VALUES; i < f->n_values && i < r->n_values; i++) {
		const char *name = f->values[i].name;

		if (q->t->json) {
			trace_out_text(o, i > FLOW_VALUES ? "," : "");
			trace_out_json(o, name, strlen(name));
			trace_out_char(o, ':');
		} else {
			trace_out_char(o, ' ');
			trace_out_safe(o, name, strlen(name));
			trace_out_char(o, '=');
		}
		trace_put_value(q->t, r, q->record_len, i, &f->values[i]);
	}
}

/* What a function returns is one value; of a struct in two registers, its members. Go's return
 * several.
 */
static void put_returned(struct flow_lines *q)
{
	const struct ax_probe_record *r = q->record;
	const struct fetch *f = session_fetch(q->t->session, r->probe);
	struct trace_out *o = &q->t->out;
	size_t n = f->n_values < r->n_values ? f->n_values : r->n_values;

	if (!n)
		return;
	trace_out_text(o, q->t->json ? ",\"return\":" : " = ");
	trace_put_value(q->t, r, q->record_len, 0, &f->values[0]);
	if (n > 1 && q->t->json) {
		trace_out_text(o, ",\"results\":[");
		trace_put_value(q->t, r, q->record_len, 0, &f->values[0]);
	}
	for (size_t i = 1; i < n; i++) {
		trace_out_text(o, q->t->json ? "," : ", ");
		trace_put_value(q->t, r, q->record_len, i, &f->values[i]);
	}
	if (n > 1 && q->t->json)
		trace_out_char(o, ']');
}

/* --- text --- */

static const char *const reasons[] = {
	[FLOW_ENTRY] = "",
	[FLOW_RETURN] = "",
	[FLOW_ORPHAN] = "  (its entry was not seen)",
	[FLOW_JUMPED] = "  (with the function that it jumped to)",
	[FLOW_LEFT] = "  (left without a return)",
	[FLOW_LOST] = "  (its return may be among the lost)",
	[FLOW_DEEP] = "  (its return is not seen, more than 64 deep: see --at-ret)",
	[FLOW_UNPROBED] = "",
	[FLOW_OPEN] = "  (had not returned when the trace ended)",
};

static void put_column(struct trace_out *o, const char *text, size_t len, size_t width)
{
	for (; len < width; width--)
		trace_out_char(o, ' ');
	trace_out_put(o, text, len);
}

static void put_head(struct flow_lines *q, const struct flow_step *s)
{
	const struct ax_probe_record *r = q->record;
	struct trace_out *o = &q->t->out;
	uint64_t us = elapsed(q, s);
	char buf[64];
	int n = snprintf(buf, sizeof(buf), "%llu.%llu", (unsigned long long)(us / NS_PER_US),
			 (unsigned long long)(us % NS_PER_US / 100));

	put_column(o, buf, (size_t)n, TIME_WIDTH);
	trace_out_char(o, ' ');
	/* at the end there is no record: a thread's number is its id, but of a goroutine */
	n = snprintf(buf, sizeof(buf), s->thread >> 32 ? "0x%llx" : "%llu",
		     (unsigned long long)s->thread);
	put_column(o, buf, (size_t)n, THREAD_WIDTH);
	if ((!q->t->options.pid || q->t->options.follow || q->t->whom.n > 1) && r) {
		trace_out_char(o, ' ');
		trace_out_safe(o, r->comm, strnlen(r->comm, sizeof(r->comm)));
	}
	for (uint32_t i = 0; i <= s->depth && i < DEPTH_SHOWN; i++)
		trace_out_text(o, "  ");
}

static void put_text(struct flow_lines *q, const struct flow_step *s)
{
	const char *name = q->functions[s->function].name;
	struct trace_out *o = &q->t->out;

	put_head(q, s);
	trace_out_text(o, s->what == FLOW_ENTRY ? "-> " : "<- ");
	trace_out_safe(o, name, strlen(name));
	if (s->what == FLOW_ENTRY) {
		put_arguments(q);
		put_caller(q, s);
	} else if (s->what == FLOW_RETURN || s->what == FLOW_ORPHAN) {
		put_returned(q);
	}
	if (s->what == FLOW_RETURN || s->what == FLOW_JUMPED) {
		trace_out_text(o, "  [");
		put_fixed(o, s->duration_ns);
		trace_out_text(o, " us]");
	}
	trace_out_text(o, reasons[s->what]);
	trace_out_char(o, '\n');
}

/* --- JSON --- */

static void put_json(struct flow_lines *q, const struct flow_step *s)
{
	static const char *const events[] = {
		[FLOW_ENTRY] = "entry",	  [FLOW_RETURN] = "return",   [FLOW_ORPHAN] = "return",
		[FLOW_JUMPED] = "jumped", [FLOW_LEFT] = "left",	      [FLOW_LOST] = "lost",
		[FLOW_DEEP] = "deep",	  [FLOW_UNPROBED] = "unseen", [FLOW_OPEN] = "open",
	};
	const char *name = q->functions[s->function].name;
	uint64_t real = s->time_ns + (uint64_t)q->t->real_offset_ns;
	struct trace_out *o = &q->t->out;

	trace_out_printf(
		o, "{\"time\":%llu.%09llu,\"elapsed_us\":", (unsigned long long)(real / 1000000000),
		(unsigned long long)(real % 1000000000));
	put_fixed(o, elapsed(q, s));
	trace_out_printf(o, ",\"event\":\"%s\",\"pid\":%u,\"thread\":%llu", events[s->what], s->pid,
			 (unsigned long long)s->thread);
	if (q->record) {
		trace_out_text(o, ",\"comm\":");
		trace_out_json(o, q->record->comm,
			       strnlen(q->record->comm, sizeof(q->record->comm)));
	}
	trace_out_printf(o, ",\"depth\":%u,\"function\":", s->depth);
	trace_out_json(o, name, strlen(name));
	if (s->what == FLOW_ENTRY) {
		trace_out_text(o, ",\"arguments\":{");
		put_arguments(q);
		trace_out_char(o, '}');
		put_caller(q, s);
	} else if (s->what == FLOW_RETURN || s->what == FLOW_ORPHAN) {
		put_returned(q);
	}
	if (s->what == FLOW_RETURN || s->what == FLOW_JUMPED) {
		trace_out_text(o, ",\"duration_us\":");
		put_fixed(o, s->duration_ns);
	}
	if (s->what == FLOW_ORPHAN)
		trace_out_text(o, ",\"entry\":null");
	trace_out_text(o, "}\n");
}

int flow_put_step(void *arg, const struct flow_step *s)
{
	struct flow_lines *q = arg;

	if (q->t->json)
		put_json(q, s);
	else if (s->what != FLOW_UNPROBED)
		put_text(q, s);
	if (q->ctf)
		return json_ctf_take(q->ctf, s->time_ns, &q->t->out);
	return q->t->out.error ? -EIO : 0;
}

int flow_flush_ctf(struct flow_lines *q, bool end)
{
	struct session_totals totals;

	if (!q->ctf || (!end && !json_ctf_is_due(q->ctf)))
		return 0;
	session_totals(q->t->session, &totals);
	return json_ctf_flush(q->ctf, totals.dropped, end);
}

void flow_put_loss(struct flow_lines *q, uint64_t lost)
{
	if (q->ctf) /* each packet of events says how many were */
		return;
	trace_out_printf(&q->t->out,
			 q->t->json ? "{\"event\":\"gap\",\"records\":%llu}\n"
				    : "        --- about here %llu records were lost ---\n",
			 (unsigned long long)lost);
}
