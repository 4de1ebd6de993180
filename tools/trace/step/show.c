// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps as lines and as JSON objects. */
#include "tools/trace/show/shape.h"
#include "tools/trace/step/step.h"

#define RECORD_SIZE 8192
#define TEXT_MAX    128
#define NS	    UINT64_C(1000000000)

/* As fetch_register_find() knows them, where struct pt_regs has them. */
static const struct {
	const char *name;
	uint8_t word;
} registers[] = {
#if defined(__aarch64__)
	{"x0", 0},   {"x1", 1},	  {"x2", 2},   {"x3", 3},   {"x4", 4},	 {"x5", 5},   {"x6", 6},
	{"x7", 7},   {"x8", 8},	  {"x9", 9},   {"x10", 10}, {"x11", 11}, {"x12", 12}, {"x13", 13},
	{"x14", 14}, {"x15", 15}, {"x16", 16}, {"x17", 17}, {"x18", 18}, {"x19", 19}, {"x20", 20},
	{"x21", 21}, {"x22", 22}, {"x23", 23}, {"x24", 24}, {"x25", 25}, {"x26", 26}, {"x27", 27},
	{"x28", 28}, {"fp", 29},  {"lr", 30},  {"sp", 31},
#else
	{"ax", 10}, {"bx", 5},	{"cx", 11}, {"dx", 12}, {"si", 13}, {"di", 14},
	{"bp", 4},  {"sp", 19}, {"r8", 9},  {"r9", 8},	{"r10", 7}, {"r11", 6},
	{"r12", 3}, {"r13", 2}, {"r14", 1}, {"r15", 0},
#endif
};
#if defined(__aarch64__)
#define VECTOR "v"
#else
#define VECTOR "xmm"
#endif
_Static_assert(FETCH_VECTORS_AT == STEP_VECTORS_AT * sizeof(uint64_t), "where values look");

/* An instruction and its text. */
struct code {
	uint8_t bytes[PLACE_INSTRUCTION_MAX];
	size_t n;
	char text[TEXT_MAX];
};

static void put_hex(struct trace_out *o, uint64_t v, bool json)
{
	trace_out_printf(o, json ? "\"0x%llx\"" : "0x%llx", (unsigned long long)v);
}

static void put_text(struct trace_out *o, const char *s, bool json)
{
	if (json)
		trace_out_json(o, s, strlen(s));
	else
		trace_out_safe(o, s, strlen(s));
}

/* --- values --- */

static void put_name(struct trace_out *o, const char *name, bool first, bool json)
{
	const char *between = first ? "" : json ? "," : " ";

	trace_out_printf(o, json ? "%s\"%s\":" : "%s%s=", between, name);
}

/* Whether an instruction computes floating-point numbers: their size, 0: none; and how many. What
 * only moves them, or changes bits, may be of any kind. */
static uint32_t floats_of(const char *text, unsigned *n)
{
	static const char *const computing[] = {"add", "sub", "mul", "div", "sqrt",
						"min", "max", "cvt", NULL};
	size_t len = strcspn(text, " ");
	const char *end = text + len - 2;
	bool computes = false;

	for (size_t i = 0; computing[i]; i++)
		computes |= starts_with(text, computing[i]);
	if (len < 4 || (end[1] != 's' && end[1] != 'd') || (end[0] != 's' && end[0] != 'p') ||
	    (!computes && !starts_with(text, "movs")))
		return 0;
	*n = end[0] == 's' ? 1 : end[1] == 's' ? 4 : 2;
	return end[1] == 's' ? 4 : 8;
}

static void put_floats(struct trace_out *o, const uint64_t *v, uint32_t size, unsigned n)
{
	uint64_t bits;

	trace_out_text(o, n > 1 ? "[" : "");
	for (unsigned i = 0; i < n; i++) {
		bits = size == 8 ? v[i] : v[i / 2] >> i % 2 * 32;
		trace_out_text(o, i ? ", " : "");
		trace_put_float(o, bits, size, false);
	}
	trace_out_text(o, n > 1 ? "]" : "");
}

/* In JSON always all bits. */
static void put_vector(struct step_request *q, const uint64_t *v, const char *instruction)
{
	const char *quote = q->t.json ? "\"" : "";
	struct trace_out *o = &q->t.out;
	unsigned n = 0;
	uint32_t size = q->t.json ? 0 : floats_of(instruction, &n);

	if (size)
		put_floats(o, v, size, n);
	else if (v[1])
		trace_out_printf(o, "%s0x%llx%016llx%s", quote, (unsigned long long)v[1],
				 (unsigned long long)v[0], quote);
	else
		put_hex(o, v[0], q->t.json);
}

/* Those that the instruction has changed. */
static void put_registers(struct step_request *q, const struct step_stop *s,
			  const char *instruction)
{
	struct trace_out *o = &q->t.out;
	bool json = q->t.json, first = true;
	char name[16];

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		uint64_t v = s->now->v[registers[i].word];

		if (s->before && v == s->before->v[registers[i].word])
			continue;
		put_name(o, registers[i].name, first, json);
		put_hex(o, v, json);
		first = false;
	}
	for (unsigned i = 0; s->before && i < STEP_VECTORS; i++) {
		const uint64_t *v = &s->now->v[STEP_VECTORS_AT + 2 * i];

		if (!memcmp(v, &s->before->v[STEP_VECTORS_AT + 2 * i], 2 * sizeof(*v)))
			continue;
		snprintf(name, sizeof(name), VECTOR "%u", i);
		put_name(o, name, first, json);
		put_vector(q, v, instruction);
		first = false;
	}
}

static int read_memory(void *arg, uint64_t address, void *to, size_t len)
{
	return step_read(*(int *)arg, address, to, len);
}

static void put_values(struct step_request *q, struct step_places *p, const struct step_stop *s)
{
	static union {
		struct ax_probe_record record;
		char bytes[RECORD_SIZE];
	} room;
	struct trace_out *o = &q->t.out;
	int tid = s->tid;
	struct fetch_thread t = {
		.registers = s->now->v,
		.n_registers = sizeof(s->now->v),
		.pid = (uint32_t)s->pid,
		.tid = (uint32_t)tid,
		.read = read_memory,
		.arg = &tid,
	};
	bool any = false;

	for (size_t i = 0; i < q->n_values; i++) {
		const struct fetch *f = step_places_value(p, s->pid, step_ip(s->now), i);
		size_t len = f ? fetch_evaluate(f, &t, &room.record, sizeof(room)) : 0;

		if (!len || f->n_values != 1)
			continue;
		trace_out_text(o, !any ? "" : q->t.json ? "," : " ");
		put_text(o, f->values[0].name, q->t.json);
		trace_out_char(o, q->t.json ? ':' : '=');
		trace_put_evaluated(&q->t, &room.record, len, f);
		any = true;
	}
}

/* --- a step --- */

static void put_line(struct step_request *q, const struct dwarf_at *at)
{
	struct trace_out *o = &q->t.out;
	const char *name = strrchr(at->source, '/');

	if (q->t.json) {
		trace_out_text(o, ",\"source\":");
		trace_out_json(o, at->source, strlen(at->source));
		trace_out_printf(o, ",\"line\":%u", at->line);
		return;
	}
	trace_out_char(o, ' ');
	put_text(o, name ? name + 1 : at->source, false);
	trace_out_printf(o, ":%u", at->line);
}

static void put_code(struct step_request *q, const struct code *c)
{
	struct trace_out *o = &q->t.out;

	if (!q->t.json) {
		trace_out_text(o, "  ");
		trace_out_text(o, c->n ? c->text : "?");
		return;
	}
	trace_out_text(o, ",\"instruction\":");
	trace_out_json(o, c->text, strlen(c->text));
	trace_out_text(o, ",\"bytes\":\"");
	trace_out_bytes(o, (const char *)c->bytes, c->n);
	trace_out_char(o, '"');
}

/* The beginning of an object: as records have it, when it was written. */
static void put_time(struct step_request *q)
{
	uint64_t ns = time_mono_ns() + (uint64_t)q->t.real_offset_ns;

	trace_out_printf(&q->t.out, "{\"time\":%llu.%09llu,", (unsigned long long)(ns / NS),
			 (unsigned long long)(ns % NS));
}

void step_begin_event(struct step_request *q, const char *event)
{
	put_time(q);
	trace_out_text(&q->t.out, "\"event\":");
	trace_out_json(&q->t.out, event, strlen(event));
}

void step_put(struct step_request *q, struct step_places *p, const struct step_stop *s)
{
	struct trace_out *o = &q->t.out;
	uint64_t address = step_ip(s->before ? s->before : s->now);
	struct code code = {0};
	struct dwarf_at at;
	bool json = q->t.json;

	if (!q->lines)
		code.n = step_places_code(p, s->pid, s->tid, address, code.bytes, code.text,
					  sizeof(code.text));
	if (json) {
		step_begin_event(q, "step");
		trace_out_printf(
			o, ",\"step\":%u,\"pid\":%d,\"tid\":%d,\"address\":\"0x%llx\",\"at\":",
			s->number, s->pid, s->tid, (unsigned long long)address);
	} else {
		trace_out_printf(o, "%7d %5u ", s->tid, s->number);
	}
	trace_put_symbol(&q->t, (uint32_t)s->pid, address);
	if (step_places_line(p, s->pid, address, &at) == 0)
		put_line(q, &at);
	if (!q->lines)
		put_code(q, &code);
	trace_out_text(o, json ? q->n_values ? ",\"values\":{" : ",\"registers\":{" : "  ");
	if (q->n_values)
		put_values(q, p, s);
	else if (!q->lines)
		put_registers(q, s, code.text);
	trace_out_text(o, json ? "}}\n" : "\n");
}

void step_put_event(struct step_request *q, int pid, int tid, const char *what, int signal)
{
	struct trace_out *o = &q->t.out;

	if (q->t.json) {
		step_begin_event(q, what);
		trace_out_printf(o, ",\"pid\":%d,\"tid\":%d", pid, tid);
		if (signal)
			trace_out_printf(o, ",\"signal\":%d", signal);
		trace_out_text(o, "}\n");
		return;
	}
	trace_out_printf(o, "%7d     - %s", tid, what);
	if (signal)
		trace_out_printf(o, " %d (%s)", signal, strsignal(signal));
	trace_out_char(o, '\n');
}
