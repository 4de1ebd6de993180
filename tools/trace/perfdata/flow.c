// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace perfdata flow: the instructions that Intel PT says were executed. */
#include "tools/lib/output.h"
#include "tools/trace/perfdata/perfdata.h"
#include "tools/trace/perfdata/space.h"
#include "probes/pt/pt.h"

#define BYTES_MAX (1ull << 30) /* of all traces: they are decoded as wholes */
#define PIECE	  (1u << 18)

/* What one CPU or thread wrote without a hole in it. */
struct whole {
	struct perfdata_aux first;
	uint64_t end; /* of the last piece */
	bool lost;    /* what came before is not in the file */
	uint8_t *bytes;
	size_t n, max;
};

struct flow {
	struct cmd *c;
	int output;
	const char *root, *jit;
	bool calls;
	struct trace_out out;
	struct perf_show show;
	struct perfdata *p;
	struct space *space;
	struct whole *traces;
	size_t n;
	uint64_t bytes;
	bool is_pt;
	struct pt_clock clock;
	uint64_t shift, mult, zero; /* from TSC to perf's time; mult 0: not known */
	const struct whole *now;
	enum pt_step_kind before; /* of the last step */
	bool any;
	uint64_t steps, gaps;
};

/* --- reading --- */

/* Of perf's numbers about the trace those that say how its time goes. */
static void see_info(struct flow *l, const struct perfdata_event *ev)
{
	enum { SHIFT = 1, MULT, ZERO, MTC_BITS = 11, NUM, DEN, NOMINAL = 15, NUMBERS };
	uint64_t v[NUMBERS] = {0}, bits;
	const struct perfdata_attr *a;

	if (ev->size < 16)
		return;
	l->is_pt = perfdata_u32(l->p, ev->data + 8) == PERFDATA_AUX_INTEL_PT;
	for (size_t i = 0; i < NUMBERS && 24 + 8 * i <= ev->size; i++)
		v[i] = perfdata_u64(l->p, ev->data + 16 + 8 * i);
	l->shift = v[SHIFT];
	l->mult = v[SHIFT] < 64 ? v[MULT] : 0;
	l->zero = v[ZERO];
	l->clock.ctc_numerator = (uint32_t)v[NUM];
	l->clock.ctc_denominator = (uint32_t)v[DEN];
	l->clock.nominal = (uint8_t)v[NOMINAL];
	bits = v[MTC_BITS];
	for (size_t i = 0; bits && (a = perfdata_attr(l->p, i)); i++)
		if (a->attr.type == v[0])
			l->clock.mtc_freq =
				(uint8_t)((a->attr.config & bits) >> __builtin_ctzll(bits));
}

static struct whole *find_trace(struct flow *l, const struct perfdata_aux *a)
{
	struct whole *v;
	bool lost = false;

	for (size_t i = l->n; i-- && !lost;) {
		if (!perf_same_queue(&l->traces[i].first, a))
			continue;
		if (l->traces[i].end == a->offset)
			return &l->traces[i];
		lost = true;
	}
	v = l->n < PERF_QUEUES_MAX ? realloc(l->traces, (l->n + 1) * sizeof(*v)) : NULL;
	if (!v)
		return NULL;
	l->traces = v;
	v += l->n++;
	*v = (struct whole){.first = *a, .lost = lost};
	return v;
}

static int keep_trace(struct flow *l, const struct perfdata_aux *a, struct error *e)
{
	struct whole *t = find_trace(l, a);
	size_t n;
	int r;

	if (!t)
		return error_set(e, -ENOMEM, "out of memory for so many traces");
	t->end = a->offset + a->size;
	do {
		if (t->max - t->n < PIECE) {
			size_t max = 2 * t->max + PIECE;
			uint8_t *v = realloc(t->bytes, max);

			if (!v)
				return error_set(e, -ENOMEM, "out of memory");
			t->bytes = v;
			t->max = max;
		}
		r = perfdata_payload(l->p, t->bytes + t->n, PIECE, &n, e);
		t->n += n;
		l->bytes += n;
		if (l->bytes > BYTES_MAX)
			return error_set(e, -EFBIG,
					 "the traces are larger than 1 GiB, which flow does not "
					 "decode: record for a shorter time");
	} while (r == 0 && n);
	return r;
}

static int read_all(struct flow *l, struct error *e)
{
	struct perfdata_event ev;
	struct perfdata_aux a;
	int r;

	while ((r = perfdata_next(l->p, &ev, e)) > 0) {
		if (ev.type == PERFDATA_AUXTRACE_INFO)
			see_info(l, &ev);
		r = space_see(l->space, l->p, &ev);
		if (r < 0)
			return error_set(e, r, "the file has too many maps or switches");
		if (l->is_pt && perfdata_aux(l->p, &ev, &a))
			r = keep_trace(l, &a, e);
		if (r < 0)
			return r;
	}
	space_ready(l->space);
	if (r == 0 && !l->n)
		r = error_set(
			e, -ENOENT,
			"the file has no traces of Intel PT; 'ax trace perfdata aux' tells what "
			"it has");
	return r;
}

/* --- writing --- */

static void put_where(struct flow *l, uint64_t ip)
{
	struct space_name name;

	space_name(l->space, ip, &name);
	if (l->show.json) {
		perf_put_hex(&l->show, "ip", ip);
		if (name.function) {
			perf_put_text(&l->show, "function", name.function);
			perf_put_number(&l->show, "function_offset", name.offset);
		}
		if (name.file)
			perf_put_text(&l->show, "file", name.file);
		return;
	}
	trace_out_end(&l->out, trace_write_hex(trace_out_room(&l->out, TRACE_NUMBER_MAX), ip));
	if (name.function) {
		trace_out_char(&l->out, ' ');
		trace_out_safe(&l->out, name.function, strlen(name.function));
		trace_out_char(&l->out, '+');
		trace_out_end(&l->out, trace_write_hex(trace_out_room(&l->out, TRACE_NUMBER_MAX),
						       name.offset));
	} else if (name.file) {
		trace_out_text(&l->out, " [");
		trace_out_safe(&l->out, name.file, strlen(name.file));
		trace_out_char(&l->out, ']');
	}
}

static void begin_line(struct flow *l)
{
	const struct perfdata_aux *a = &l->now->first;
	char text[PERF_QUEUE_TEXT];

	l->show.at[0].some = false;
	if (!l->show.json) {
		trace_out_text(&l->out, perf_queue_text(a, text));
		if (space_pid(l->space) != UINT32_MAX)
			trace_out_printf(&l->out, " pid %u", space_pid(l->space));
		trace_out_text(&l->out, ": ");
		return;
	}
	trace_out_char(&l->out, '{');
	perf_put_number(&l->show, a->cpu == UINT32_MAX ? "tid" : "cpu",
			a->cpu == UINT32_MAX ? a->tid : a->cpu);
	if (space_pid(l->space) != UINT32_MAX)
		perf_put_number(&l->show, "pid", space_pid(l->space));
}

static size_t on_read(void *arg, uint64_t ip, uint8_t *buf, size_t len)
{
	struct flow *l = arg;

	return space_read(l->space, ip, buf, len);
}

static void on_time(void *arg, uint64_t tsc)
{
	struct flow *l = arg;
	uint64_t time = UINT64_MAX, rest;

	if (l->mult) {
		rest = tsc & ((1ull << l->shift) - 1);
		time = l->zero + (tsc >> l->shift) * l->mult + ((rest * l->mult) >> l->shift);
	}
	space_at(l->space, l->now->first.cpu, l->now->first.tid, time);
}

static void on_step(void *arg, const struct pt_step *s)
{
	static const char *const kinds[] = {"", "call", "return", "jump", "branch", "far"};
	struct flow *l = arg;
	bool entry = !l->any || l->before == PT_STEP_CALL;

	l->any = true;
	l->before = s->kind;
	l->steps++;
	if (l->out.error || (l->calls && !entry))
		return;
	begin_line(l);
	put_where(l, s->ip);
	if (l->show.json)
		perf_put_number(&l->show, "size", s->size);
	if (s->kind != PT_STEP_OTHER && !l->calls) {
		if (l->show.json) {
			perf_put_text(&l->show, "kind", kinds[s->kind]);
		} else {
			trace_out_char(&l->out, ' ');
			trace_out_text(&l->out, kinds[s->kind]);
		}
	}
	trace_out_text(&l->out, l->show.json ? "}\n" : "\n");
}

static void on_note(void *arg, const struct pt_note *n)
{
	static const char *const kinds[] = {"enabled", "disabled", "interrupt", "overflow", "gap"};
	struct flow *l = arg;

	l->any = false;
	l->gaps += n->kind == PT_NOTE_GAP || n->kind == PT_NOTE_OVERFLOW;
	if (l->out.error)
		return;
	begin_line(l);
	if (l->show.json) {
		perf_put_text(&l->show, "note", kinds[n->kind]);
		perf_put_number(&l->show, "offset", l->now->first.offset + n->offset);
		if (n->text)
			perf_put_text(&l->show, "why", n->text);
		if (n->ip)
			put_where(l, n->ip);
		trace_out_text(&l->out, "}\n");
		return;
	}
	trace_out_printf(&l->out, "-- %s", kinds[n->kind]);
	if (n->text)
		trace_out_printf(&l->out, " (%s)", n->text);
	if (n->ip) {
		trace_out_text(&l->out, " at ");
		put_where(l, n->ip);
	}
	trace_out_char(&l->out, '\n');
}

static int decode_all(struct flow *l, struct error *e)
{
	static const struct pt_note hole = {.kind = PT_NOTE_GAP,
					    .text = "a part of the trace is not in the file"};
	const struct pt_flow flow = {on_read, on_time, on_step, on_note, l};
	int r = 0;

	for (size_t i = 0; i < l->n && r >= 0 && !l->out.error; i++) {
		l->now = &l->traces[i];
		l->any = false;
		space_at(l->space, l->now->first.cpu, l->now->first.tid, UINT64_MAX);
		if (l->now->lost)
			on_note(l, &hole);
		if (l->now->n)
			r = pt_flow_run(l->traces[i].bytes, l->now->n, &l->clock, &flow, e);
	}
	if (!l->show.json)
		trace_out_printf(&l->out, "%llu instructions, %llu gaps\n",
				 (unsigned long long)l->steps, (unsigned long long)l->gaps);
	return r;
}

static int run_flow(struct cmd *c, int argc, char **argv)
{
	CLEANUP(perfdata_closep) struct perfdata *p = NULL;
	struct flow l = {.c = c};
	struct error e = {0};
	int status, r;

	if (!perf_run_begin(c, &l, argc, argv, &p, &status))
		return status;
	if (space_new(l.root, &l.space, &e) < 0)
		return cmd_failed(c, &e);
	if ((l.jit && space_add_jit(l.space, l.jit, &e) < 0) ||
	    trace_out_open(&l.out, STDOUT_FILENO) < 0) {
		space_free(l.space);
		return e.code ? cmd_failed(c, &e) : CMD_FAILED;
	}
	l.p = p;
	l.show = (struct perf_show){.out = &l.out, .json = l.output != 0};
	r = read_all(&l, &e);
	if (r == 0)
		r = decode_all(&l, &e);
	for (size_t i = 0; i < l.n; i++)
		free(l.traces[i].bytes);
	free(l.traces);
	space_free(l.space);
	return perf_finish(c, &l.out, r, &e);
}

static const struct opt options[] = {
	{"calls", 'c', OPT_FLAG, NULL, "only the first instruction of each call",
	 offsetof(struct flow, calls), NULL},
	{"root", 0, OPT_STRING, "DIR", "look for the programs below DIR",
	 offsetof(struct flow, root), &words_directory},
	{"jit", 0, OPT_STRING, "DIR",
	 "code that was made at run time, as 'ax trace jit' or a program kept it (jit-*.dump)",
	 offsetof(struct flow, jit), &words_file},
};

const struct command cmd_trace_perfdata_flow = {
	.name = "trace perfdata flow",
	.about = "instructions that Intel PT says were executed",
	.run = run_flow,
	.syntax =
		{
			.usage = "ax trace perfdata flow [-c] [--root DIR] [--jit DIR] FILE",
			.about = "Prints each instruction that was executed, by its address and "
				 "function, as Intel PT and the programs tell that were recorded, "
				 "which must be at hand as they were. Where they are not, a gap is "
				 "said, up to the next PSB. FILE may be '-' for standard input.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_text_lines, 1, offsetof(struct flow, output)}},
			.args = {&words_file},
		},
};
