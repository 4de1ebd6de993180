// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps as lines and as JSON objects. */
#include "tools/trace/step/step.h"

#define RECORD_SIZE 8192
#define TEXT_MAX    128

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

static void put_registers(struct step_request *q, const struct step_stop *s)
{
	struct trace_out *o = &q->t.out;
	bool json = q->t.json, any = false;

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		uint64_t v = s->now->v[registers[i].word];

		if (s->before && v == s->before->v[registers[i].word])
			continue;
		trace_out_printf(o, json ? "%s\"%s\":" : "%s%s=",
				 !any	? ""
				 : json ? ","
					: " ",
				 registers[i].name);
		put_hex(o, v, json);
		any = true;
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
		.n_registers = s->now->bytes,
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
		trace_put_value(&q->t, &room.record, len, 0, &f->values[0]);
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

static void put_code(struct step_request *q, struct step_places *p, const struct step_stop *s,
		     uint64_t address)
{
	struct trace_out *o = &q->t.out;
	uint8_t bytes[PLACE_INSTRUCTION_MAX];
	char text[TEXT_MAX];
	size_t n = step_places_code(p, s->pid, s->tid, address, bytes, text, sizeof(text));

	if (!q->t.json) {
		trace_out_text(o, "  ");
		trace_out_text(o, n ? text : "?");
		return;
	}
	trace_out_text(o, ",\"instruction\":");
	trace_out_json(o, text, strlen(text));
	trace_out_text(o, ",\"bytes\":\"");
	trace_out_bytes(o, (const char *)bytes, n);
	trace_out_char(o, '"');
}

void step_put(struct step_request *q, struct step_places *p, const struct step_stop *s)
{
	struct trace_out *o = &q->t.out;
	uint64_t address = step_ip(s->before ? s->before : s->now);
	struct dwarf_at at;
	bool json = q->t.json;

	if (json)
		trace_out_printf(
			o, "{\"step\":%u,\"pid\":%d,\"tid\":%d,\"address\":\"0x%llx\",\"at\":",
			s->number, s->pid, s->tid, (unsigned long long)address);
	else
		trace_out_printf(o, "%7d %5u ", s->tid, s->number);
	trace_put_symbol(&q->t, (uint32_t)s->pid, address);
	if (step_places_line(p, s->pid, address, &at) == 0)
		put_line(q, &at);
	if (!q->lines)
		put_code(q, p, s, address);
	trace_out_text(o, json ? q->n_values ? ",\"values\":{" : ",\"registers\":{" : "  ");
	if (q->n_values)
		put_values(q, p, s);
	else if (!q->lines)
		put_registers(q, s);
	trace_out_text(o, json ? "}}\n" : "\n");
}

void step_put_event(struct step_request *q, int pid, int tid, const char *what, int signal)
{
	struct trace_out *o = &q->t.out;

	if (q->t.json) {
		trace_out_printf(o, "{\"event\":");
		trace_out_json(o, what, strlen(what));
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
