/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace explain: where a probe goes, what it costs there, and what it fetches. Attaches nothing.
 */
#include <elf.h>

#include "tools/lib/output.h"
#include "tools/trace/run/run.h"
#include "tools/trace/trace.h"
#include "probes/kernel/symbols.h"
#include "probes/kernel/tracefs.h"
#include "tools/lib/table.h"
#include "tools/trace/fetch_text.h"

#if defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#define NATIVE_MACHINE EM_X86_64
#endif
#define BLOCKS_MAX 4 /* places; of more, each is a line of a table */

struct explainer {
	struct trace t;
	struct binary *binary; /* of the place, NULL: none */
	struct dwarf *dwarf;   /* of the place, NULL: not asked for */
	struct format format;  /* of a tracepoint */
	bool has_format;
	bool verbose;
	uint32_t pid;
	int output;
};

static const char *cost_name(enum place_cost c)
{
	static const char *const names[] = {"emulated", "nop5", "single-step", "refused"};

	return names[c];
}

/* Measured on virtual and real machines; the ratios are what holds elsewhere. */
static const char *cost_text(const struct session_probe *p)
{
	switch (p->place.cost) {
	case PLACE_EMULATED:
		return "the kernel emulates the instruction: about half a microsecond each time";
	case PLACE_NOP5:
		return "a call takes the instruction's place (Linux 6.18): about half of what an "
		       "emulated one costs";
	case PLACE_STEPPED:
		return "the instruction is single-stepped: 3 times an emulated one on real "
		       "machines, 30 times on virtual ones";
	default:
		return "there will be no probe";
	}
}

/* --- what is known of a place --- */

/* "readline+0x4" into buf. */
static void write_function(struct explainer *x, uint64_t offset, char *buf, size_t size)
{
	struct symbol s;

	if (!x->binary || binary_symbolise(x->binary, offset, &s) < 0)
		snprintf(buf, size, "in no known function");
	else
		snprintf(buf, size, "%.180s+0x%llx", s.demangled ? s.demangled : s.name,
			 (unsigned long long)(offset - s.offset));
}

static void prepare(struct explainer *x, const struct session_probe *p)
{
	const struct session *s = x->t.session;
	const char *path = session_path(s, p), *name = session_name(s, p->name);
	const char *colon = strchr(name, ':');
	struct error ignored = {0};
	char category[128];

	if (path && !x->binary && binary_open(path, 0, &x->binary, &ignored) < 0)
		x->binary = NULL;
	if (x->has_format)
		format_free(&x->format);
	x->has_format = false;
	if (!path && x->t.specs[0].kind == PROBE_TRACEPOINT && colon) {
		autoclose int tracefs = tracefs_open(&ignored);

		snprintf(category, sizeof(category), "%.*s", (int)(colon - name), name);
		x->format = (struct format){0};
		x->has_format = tracefs >= 0 && tracefs_format(tracefs, category, colon + 1,
							       &x->format, &ignored) == 0;
	}
}

static const char *type_name(const struct fetch_shown *v, char buf[32])
{
	static const char *const names[] = {
		[VALUE_UNSIGNED] = "u",
		[VALUE_SIGNED] = "s",
		[VALUE_HEX] = "x",
		[VALUE_CHAR] = "char",
		[VALUE_STRING] = "string",
		[VALUE_BUFFER] = "buf",
		[VALUE_SYMBOL] = "symbol",
		[VALUE_FLOAT] = "f",
		[VALUE_ERRNO] = "errno",
		[VALUE_SYSCALL] = "syscall",
		[VALUE_BOOL] = "bool",
		[VALUE_USER_STACK] = "user stack",
		[VALUE_KERNEL_STACK] = "kernel stack",
	};

	if (v->shape)
		snprintf(buf, 32, "%s", v->type == VALUE_BUFFER ? "by its type" : "enum");
	else if (v->type == VALUE_UNSIGNED || v->type == VALUE_SIGNED || v->type == VALUE_HEX ||
		 v->type == VALUE_FLOAT)
		snprintf(buf, 32, "%s%u", names[v->type], v->size * 8);
	else if (v->type == VALUE_STRING || v->type == VALUE_BUFFER)
		snprintf(buf, 32, "%s[%u]", names[v->type], v->size);
	else
		snprintf(buf, 32, "%s",
			 (size_t)v->type < ARRAY_SIZE(names) && names[v->type] ? names[v->type]
									       : "value");
	return buf;
}

/* What a value of the return was kept from at the entry is said in its place. */
static char *source_of(const struct explainer *x, const struct fetch *f, enum fetch_text_what what,
		       uint32_t index)
{
	static const char kept[] = "kept at the entry, ";
	struct fetch_text_context c = {
		.machine = x->binary ? binary_machine(x->binary) : NATIVE_MACHINE,
		.format = x->has_format ? &x->format : NULL,
	};
	autofree char *text = fetch_text(f->ops, f->n_ops, &c, what, index);
	autofree char *entry = NULL;
	char *all;

	char *at = text ? strstr(text, kept) : NULL, *end;

	if (!at)
		return take_ptr(&text);
	entry = fetch_text(f->entry_ops, f->n_entry_ops, &c, FETCH_TEXT_KEPT,
			   (uint32_t)strtoul(at + strlen(kept), &end, 10));
	if (!entry ||
	    asprintf(&all, "%.*s%s at the entry%s", (int)(at - text), text, entry, end) < 0)
		return take_ptr(&text);
	return all;
}

/* True if the kernel has neither kprobes nor what kprobe_multi links are made of. */
static bool no_kprobes(void)
{
	struct error ignored = {0};
	uint64_t address;

	return access("/sys/bus/event_source/devices/kprobe", F_OK) &&
	       kernel_symbol_address("register_fprobe_ips", &address, &ignored) == -ENOENT;
}

static const char *attachment(const struct explainer *x, const struct session_probe *p)
{
	enum probe_kind kind = x->t.specs[p->part].kind;

	if ((kind == PROBE_KPROBE || kind == PROBE_KRETPROBE) && no_kprobes())
		return "not at all: this kernel has no kprobes (CONFIG_KPROBES)";
	if (kind == PROBE_PROFILE)
		return "to a clock of each processor, a perf event";
	if (!session_path(x->t.session, p))
		return x->t.specs[0].kind == PROBE_TRACEPOINT
			       ? "to the tracepoint; raw where its fields allow it"
			       : "as one kprobe_multi link for all functions (Linux 5.18; before "
				 "that a kprobe for each)";
	if (p->fetch.paired && p->go)
		return "to all returns of the function and to its entry, as one uprobe_multi link";
	if (p->fetch.paired)
		return "to the function's entry and return, as one uprobe_multi link";
	return p->is_return ? "to the function's return, as one uprobe_multi link"
			    : "as one uprobe_multi link for all places (Linux 6.6; before that a "
			      "perf event for each)";
}

/* --- text --- */

static void put_line(struct explainer *x, const char *title, const char *text)
{
	struct trace_out *o = &x->t.out;

	trace_out_printf(o, "  %-12s ", title);
	trace_out_safe(o, text, strlen(text));
	trace_out_char(o, '\n');
}

/* The first variable that is named in what a value is made of. */
static const char *variable_of(const struct probe_spec *spec, size_t value, const char *name)
{
	const struct expr *expr = value < spec->n_args ? &spec->args[value].expr : NULL;

	for (size_t i = 0; expr && i < expr->n; i++)
		if (expr->v[i].op == EXPR_NAME)
			return expr->v[i].text;
	return spec->n_args ? NULL : name;
}

/* Which lines near a probe on one have what it has not. */
static void find_lines(struct explainer *x, const struct session_probe *p, const char *name,
		       uint32_t *below, uint32_t *above)
{
	const struct probe_spec *spec = &x->t.specs[p->part];

	*below = *above = 0;
	if (spec->kind != PROBE_LINE || !spec->line || !name)
		return;
	if (!x->dwarf && dwarf_new(session_path(x->t.session, p), &x->dwarf) < 0)
		return;
	dwarf_lines_with(x->dwarf, spec->source, spec->line, name, below, above);
}

static void write_gone(struct explainer *x, const struct session_probe *p, size_t value, char *buf,
		       size_t size)
{
	const struct fetch_shown *v = &p->fetch.values[value];
	uint32_t below, above;
	int len = snprintf(buf, size, "%s: nothing: %s", v->name, v->gone);

	find_lines(x, p, variable_of(&x->t.specs[p->part], value, v->name), &below, &above);
	if (len < 0 || (size_t)len >= size || (!below && !above))
		return;
	if (below && above)
		snprintf(buf + len, size - (size_t)len, "; it has a value at lines %u and %u",
			 below, above);
	else
		snprintf(buf + len, size - (size_t)len, "; it has a value at line %u",
			 below ? below : above);
}

static void put_shown(struct explainer *x, const struct session_probe *p, const char *title,
		      const struct fetch_shown *v, const char *from)
{
	char type[32], line[1400];

	/* what it is compiled to then is only a fault */
	if (v->gone)
		write_gone(x, p, (size_t)(v - p->fetch.values), line, sizeof(line));
	else
		snprintf(line, sizeof(line), "%s: %s, from %s", v->name, type_name(v, type),
			 from ? from : "?");
	put_line(x, title, line);
}

static void put_fetched(struct explainer *x, const struct session_probe *p)
{
	const struct fetch *f = &p->fetch;
	autofree char *filter = source_of(x, f, FETCH_TEXT_FILTER, 0);

	if (filter)
		put_line(x, "only if", filter);
	for (size_t i = 0; i < f->n_values; i++) {
		autofree char *from = source_of(x, f, FETCH_TEXT_VALUE, (uint32_t)i);

		put_shown(x, p, i ? "" : "fetches", &f->values[i], from);
	}
	for (size_t i = 0; i < f->n_keys; i++) {
		autofree char *from = source_of(x, f, FETCH_TEXT_KEY, f->keys[i].word);

		put_shown(x, p, i ? "" : "by", &f->keys[i], from);
	}
	if (!f->n_values && !f->n_keys)
		put_line(x, "fetches", "nothing but time, process and thread");
}

static void put_place(struct explainer *x, const struct session_probe *p)
{
	char line[400], function[256];
	const struct place *place = &p->place;

	put_line(x, "file", session_path(x->t.session, p));
	write_function(x, place->offset, function, sizeof(function));
	snprintf(line, sizeof(line), "0x%llx (%s)", (unsigned long long)place->offset, function);
	put_line(x, "place", line);
	if (p->semaphore) {
		snprintf(line, sizeof(line), "0x%llx, counted up while the probe is there",
			 (unsigned long long)p->semaphore);
		put_line(x, "semaphore", line);
	}
	if (*place->instruction)
		put_line(x, "instruction", place->instruction);
	if (place->cost == PLACE_REFUSED) {
		put_line(x, "refused", place->why);
		return;
	}
	if (p->is_return)
		put_line(x, "note", "the return costs about two thirds of an emulated probe more");
	snprintf(line, sizeof(line), "%s: %s", cost_name(place->cost), cost_text(p));
	put_line(x, "cost", line);
	if (place->slid) {
		snprintf(line, sizeof(line), "%u byte%s down: %s", place->slid,
			 place->slid == 1 ? "" : "s", place->why);
		put_line(x, "moved", line);
	} else if (*place->why) {
		put_line(x, "why", place->why);
	}
}

static void put_block(struct explainer *x, const struct session_probe *p)
{
	struct trace_out *o = &x->t.out;
	const char *name = session_name(x->t.session, p->name);

	trace_out_printf(o, "%s ", probe_kind_name(x->t.specs[p->part].kind));
	trace_out_safe(o, name, strlen(name));
	trace_out_char(o, '\n');
	if (p->placed)
		put_place(x, p);
	if (p->attached) {
		put_fetched(x, p);
		put_line(x, "attaches", attachment(x, p));
	}
}

static int put_overview(struct explainer *x)
{
	static const struct table_column columns[] = {
		{.title = "PROBE", .keep = 9, .min = 16},	{.title = "PLACE", .keep = 8},
		{.title = "MOVED", .keep = 5, .right = true},	{.title = "COST", .keep = 9},
		{.title = "INSTRUCTION", .keep = 7, .min = 12},
	};
	struct table_style style = table_style_for(stdout);
	CLEANUP(table_free) struct table table;
	size_t n = session_n_probes(x->t.session), costs[4] = {0};
	autofree char *text = NULL;
	size_t size;
	FILE *f;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct session_probe *p = session_probe(x->t.session, i);

		table_add(&table, session_name(x->t.session, p->name));
		if (p->placed) {
			table_addf(&table, "0x%llx", (unsigned long long)p->place.offset);
			table_addf(&table, "%u", p->place.slid);
			table_add(&table, cost_name(p->place.cost));
			table_add(&table, p->place.instruction);
			costs[p->place.cost]++;
		} else {
			for (int j = 1; j < 5; j++)
				table_add(&table, NULL);
		}
	}
	f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	table_print(&table, &style, f);
	if (fclose(f))
		return -ENOMEM;
	trace_out_put(&x->t.out, text, size);
	trace_out_printf(&x->t.out, "%zu places", n);
	for (int i = 0; i < 4; i++)
		if (costs[i])
			trace_out_printf(&x->t.out, ", %zu %s", costs[i],
					 cost_name((enum place_cost)i));
	trace_out_char(&x->t.out, '\n');
	return 0;
}

/* --- JSON --- */

static void put_member(struct explainer *x, const char *name, const char *text)
{
	trace_out_printf(&x->t.out, ",\"%s\":", name);
	trace_out_json(&x->t.out, text, strlen(text));
}

static void put_json_lines(struct explainer *x, const struct session_probe *p, size_t value)
{
	uint32_t below, above;

	find_lines(x, p, variable_of(&x->t.specs[p->part], value, p->fetch.values[value].name),
		   &below, &above);
	if (below || above)
		trace_out_printf(&x->t.out,
				 below && above ? ",\"lines\":[%u,%u]" : ",\"lines\":[%u]",
				 below ? below : above, above);
}

static void put_json_shown(struct explainer *x, const struct session_probe *p, const char *name,
			   bool keys)
{
	const struct fetch *f = &p->fetch;
	const struct fetch_shown *v = keys ? f->keys : f->values;
	size_t n = keys ? f->n_keys : f->n_values;
	char type[32];

	trace_out_printf(&x->t.out, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		uint32_t index = keys ? v[i].word : (uint32_t)i;
		autofree char *from =
			source_of(x, f, keys ? FETCH_TEXT_KEY : FETCH_TEXT_VALUE, index);

		trace_out_text(&x->t.out, i ? ",{\"name\":" : "{\"name\":");
		trace_out_json(&x->t.out, v[i].name, strlen(v[i].name));
		put_member(x, "type", type_name(&v[i], type));
		put_member(x, "from", from && !v[i].gone ? from : "");
		if (v[i].gone)
			put_member(x, "gone", v[i].gone);
		if (v[i].gone && !keys)
			put_json_lines(x, p, i);
		trace_out_char(&x->t.out, '}');
	}
	trace_out_char(&x->t.out, ']');
}

static void put_json(struct explainer *x, const struct session_probe *p)
{
	struct trace_out *o = &x->t.out;
	const char *name = session_name(x->t.session, p->name);
	char function[256];

	trace_out_text(o, "{\"probe\":");
	trace_out_json(o, name, strlen(name));
	put_member(x, "kind", probe_kind_name(x->t.specs[p->part].kind));
	if (p->placed) {
		write_function(x, p->place.offset, function, sizeof(function));
		put_member(x, "file", session_path(x->t.session, p));
		trace_out_printf(o, ",\"offset\":%llu,\"moved\":%u",
				 (unsigned long long)p->place.offset, p->place.slid);
		put_member(x, "function", function);
		put_member(x, "instruction", p->place.instruction);
		put_member(x, "cost", cost_name(p->place.cost));
		put_member(x, "why", p->place.why);
	}
	put_json_shown(x, p, "values", false);
	put_json_shown(x, p, "by", true);
	put_member(x, "attaches", attachment(x, p));
	trace_out_text(o, "}\n");
}

/* --- the whole --- */

static int explain(struct explainer *x, struct error *e)
{
	struct trace *t = &x->t;
	size_t n;
	int r = session_open(t->parts, t->n_parts, &t->options, &t->session, e);

	if (r < 0)
		return r;
	n = session_n_probes(t->session);
	if (n > BLOCKS_MAX && !t->json && !x->verbose)
		return put_overview(x);
	for (size_t i = 0; i < n; i++) {
		const struct session_probe *p = session_probe(t->session, i);

		prepare(x, p);
		if (t->json)
			put_json(x, p);
		else
			put_block(x, p);
	}
	return 0;
}

/* What was explained may be that there will be no probe. */
static int check(const struct explainer *x, struct error *e)
{
	enum probe_kind kind = x->t.specs[0].kind;

	if ((kind == PROBE_KPROBE || kind == PROBE_KRETPROBE) && no_kprobes())
		return error_set(e, -ENOTSUP,
				 "this kernel has no kprobes (CONFIG_KPROBES): the probe would be "
				 "refused");
	return session_check(x->t.session, e);
}

static int run(struct explainer *x, int argc, char **argv)
{
	struct error e = {0};
	int status, r;

	if (!trace_parse(&x->t, argc, argv, TRACE_WATCH, &status))
		return status;
	/* what is fetched for a key is a table's matter */
	if (x->t.specs[0].n_by)
		x->t.parts[0].action = TRACE_COUNT;
	if (trace_out_open(&x->t.out, STDOUT_FILENO) < 0)
		return CMD_FAILED;
	r = explain(x, &e);
	trace_out_flush(&x->t.out);
	if (r >= 0)
		r = check(x, &e);
	if (r >= 0 && x->t.out.error)
		r = error_set(&e, -x->t.out.error, "the output could not be written: %s",
			      strerror(x->t.out.error));
	return r < 0 ? cmd_failed(x->t.c, &e) : CMD_OK;
}

static int run_explain(struct cmd *c, int argc, char **argv)
{
	struct explainer x = {.t = {.c = c, .out.fd = -1}};
	int status;

	if (!cmd_begin(c, &x, &argc, argv, &status))
		return status;
	cmd_output();
	x.t.json = x.output != 0;
	x.t.options.pid = (int)x.pid;
	status = run(&x, argc, argv);
	if (x.binary)
		binary_close(x.binary);
	dwarf_freep(&x.dwarf);
	if (x.has_format)
		format_free(&x.format);
	trace_free(&x.t);
	return status;
}

static const struct opt options[] = {
	{"pid", 'p', OPT_NUMBER, "PID", "files as this process sees them",
	 offsetof(struct explainer, pid), &words_process},
	{"exact", 0, OPT_FLAG, NULL, "as if the probe were not to be moved",
	 offsetof(struct explainer, t.options.exact), NULL},
	{"types", 0, OPT_STRING, "FILE", TRACE_TYPES_TEXT,
	 offsetof(struct explainer, t.options.types), &words_file},
	{"verbose", 'v', OPT_FLAG, NULL, "all there is to say also of many places",
	 offsetof(struct explainer, verbose), NULL},
};

const struct command cmd_trace_explain = {
	.name = "trace explain",
	.about = "tell where a probe goes, what it costs and what it fetches",
	.run = run_explain,
	.syntax =
		{
			.usage = "ax trace explain PROBE [VALUE ...] [if CONDITION] [by VALUE ...]",
			.about = "Tells where exactly a probe would go, which instruction is "
				 "there and what that costs, whether and why the probe is moved, "
				 "what is fetched and from where, or why the probe is refused. "
				 "Attaches nothing.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_text_lines, 1, offsetof(struct explainer, output)}},
			.args = {&trace_probe_words},
		},
};
