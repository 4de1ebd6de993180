/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace list: what can be probed. */
#include <glob.h>

#include "tools/lib/output.h"
#include "tools/trace/run/run.h"
#include "tools/trace/trace.h"
#include "probes/kernel/symbols.h"
#include "probes/kernel/tracefs.h"

struct lister {
	struct cmd *c;
	struct probe_spec spec;
	struct trace_out out;
	struct error *e;
	const char *path; /* of the file that is being listed */
	int output;
	uint32_t pid;
	bool json, verbose;
	int tracefs;
	size_t n;
	int failed; /* in a callback */
};

/* --- pieces --- */

/* A part of a probe's text, in quotes where it needs them. */
static void put_part(struct trace_out *o, const char *s)
{
	bool quote = strpbrk(s, " :\"\t") != NULL;

	if (quote)
		trace_out_char(o, '"');
	trace_out_safe(o, s, strlen(s));
	if (quote)
		trace_out_char(o, '"');
}

static void put_member(struct trace_out *o, const char *name, const char *text)
{
	trace_out_printf(o, ",\"%s\":", name);
	trace_out_json(o, text, strlen(text));
}

/* The beginning of an object, with the probe as a text that can be given to the others. */
static void begin_json(struct lister *l, const char *a, const char *b)
{
	struct trace_out text;

	trace_out_text(&l->out, "{\"probe\":");
	if (trace_out_open(&text, -1) < 0) {
		l->failed = -ENOMEM;
		return;
	}
	trace_out_printf(&text, "%s:", probe_kind_name(l->spec.kind));
	if (l->path) {
		put_part(&text, l->path);
		trace_out_char(&text, ':');
	}
	if (a) {
		put_part(&text, a);
		trace_out_char(&text, ':');
	}
	put_part(&text, b);
	trace_out_json(&l->out, text.buf, text.n);
	text.n = 0;
	trace_out_close(&text);
}

static void put_probe(struct lister *l, const char *a, const char *b)
{
	trace_out_printf(&l->out, "%s:", probe_kind_name(l->spec.kind));
	if (l->path) {
		put_part(&l->out, l->path);
		trace_out_char(&l->out, ':');
	}
	if (a) {
		put_part(&l->out, a);
		trace_out_char(&l->out, ':');
	}
	put_part(&l->out, b);
}

/* --- functions --- */

static int on_function(void *arg, const struct symbol *s)
{
	struct lister *l = arg;

	l->n++;
	if (l->json) {
		begin_json(l, NULL, s->name);
		if (s->demangled)
			put_member(&l->out, "demangled", s->demangled);
		trace_out_printf(&l->out, ",\"offset\":%llu,\"size\":%llu}\n",
				 (unsigned long long)s->offset, (unsigned long long)s->size);
		return l->failed;
	}
	put_probe(l, NULL, s->name);
	if (s->demangled) {
		trace_out_text(&l->out, "  ");
		trace_out_safe(&l->out, s->demangled, strlen(s->demangled));
	}
	if (l->verbose)
		trace_out_printf(&l->out, "  at 0x%llx, %llu bytes", (unsigned long long)s->offset,
				 (unsigned long long)s->size);
	trace_out_char(&l->out, '\n');
	return 0;
}

static int on_kernel_function(void *arg, const char *name, const char *module, uint64_t address)
{
	struct lister *l = arg;

	(void)address;
	if (module && streq(module, "vmlinux"))
		module = NULL;
	l->n++;
	if (l->json) {
		begin_json(l, NULL, name);
		if (module && *module)
			put_member(&l->out, "module", module);
		trace_out_printf(&l->out, ",\"probeable\":%s}\n",
				 kernel_symbol_probeable(name) ? "true" : "false");
		return l->failed;
	}
	put_probe(l, module && *module ? module : NULL, name);
	if (!kernel_symbol_probeable(name))
		trace_out_text(&l->out, "  (the kernel takes no probe there)");
	trace_out_char(&l->out, '\n');
	return 0;
}

/* --- static probes --- */

static char type_letter(const struct usdt_arg *a)
{
	return a->is_float ? 'f' : a->is_signed ? 's' : 'u';
}

static void put_usdt_args(struct lister *l, const struct usdt *u)
{
	struct trace_out *o = &l->out;

	for (size_t i = 0; i < u->n_args; i++) {
		const struct usdt_arg *a = &u->args[i];

		trace_out_printf(o, " arg%zu:%c%u", i, type_letter(a), a->size * 8u);
		if (a->is_float || a->unfetchable)
			trace_out_text(o, "(cannot be fetched)");
	}
	if (l->verbose || (!u->n_args && u->args_text && *u->args_text)) {
		trace_out_text(o, "  [");
		trace_out_safe(o, u->args_text, strlen(u->args_text));
		trace_out_char(o, ']');
	}
	if (u->semaphore)
		trace_out_text(o, "  (semaphore)");
	if (l->verbose)
		trace_out_printf(o, "  at 0x%llx", (unsigned long long)u->offset);
}

static int put_json_usdt(struct lister *l, const struct usdt *u)
{
	struct trace_out *o = &l->out;

	begin_json(l, u->provider, u->name);
	trace_out_printf(o, ",\"offset\":%llu,\"semaphore\":", (unsigned long long)u->offset);
	if (u->semaphore)
		trace_out_u64(o, u->semaphore);
	else
		trace_out_text(o, "null");
	put_member(o, "operands", u->args_text ? u->args_text : "");
	trace_out_text(o, ",\"args\":[");
	for (size_t i = 0; i < u->n_args; i++)
		trace_out_printf(o, "%s\"%c%u\"", i ? "," : "", type_letter(&u->args[i]),
				 u->args[i].size * 8u);
	trace_out_text(o, "]}\n");
	return l->failed;
}

static int on_usdt(void *arg, const struct usdt *u)
{
	struct lister *l = arg;

	l->n++;
	if (l->json)
		return put_json_usdt(l, u);
	put_probe(l, u->provider, u->name);
	put_usdt_args(l, u);
	trace_out_char(&l->out, '\n');
	return 0;
}

/* --- tracepoints --- */

static void put_field(struct lister *l, const struct field *f, bool first)
{
	struct trace_out *o = &l->out;

	if (!l->json) {
		trace_out_text(o, "    ");
		trace_out_safe(o, f->type, strlen(f->type));
		trace_out_char(o, ' ');
		trace_out_safe(o, f->name, strlen(f->name));
		if (f->kind == FIELD_STRING || f->kind == FIELD_ARRAY)
			trace_out_printf(o, "[%u]", f->element ? f->size / f->element : f->size);
		trace_out_char(o, '\n');
		return;
	}
	trace_out_text(o, first ? "{\"name\":" : ",{\"name\":");
	trace_out_json(o, f->name, strlen(f->name));
	put_member(o, "type", f->type);
	trace_out_printf(o, ",\"offset\":%u,\"size\":%u}", f->offset, f->size);
}

static int put_fields(struct lister *l, const char *category, const char *name)
{
	struct format format = {0};
	bool first = true;
	int r = tracefs_format(l->tracefs, category, name, &format, l->e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < format.n; i++) {
		if (field_is_common(&format.v[i]))
			continue;
		put_field(l, &format.v[i], first);
		first = false;
	}
	format_free(&format);
	return 0;
}

static int on_tracepoint(void *arg, const char *category, const char *name)
{
	struct lister *l = arg;
	bool fields = l->verbose || !strpbrk(l->spec.symbol, "*?[");

	l->n++;
	if (!l->json) {
		put_probe(l, category, name);
		trace_out_char(&l->out, '\n');
		l->failed = fields ? put_fields(l, category, name) : 0;
		return l->failed;
	}
	begin_json(l, category, name);
	if (fields) {
		trace_out_text(&l->out, ",\"fields\":[");
		l->failed = put_fields(l, category, name);
		trace_out_char(&l->out, ']');
	}
	trace_out_text(&l->out, "}\n");
	return l->failed;
}

static int list_tracepoints(struct lister *l)
{
	autoclose int tracefs = tracefs_open(l->e);
	int r;

	if (tracefs < 0)
		return tracefs;
	l->tracefs = tracefs;
	r = tracefs_tracepoints(tracefs, l->spec.group ? l->spec.group : "*", l->spec.symbol,
				on_tracepoint, l, l->e);
	return l->failed < 0 ? l->failed : r;
}

/* --- files --- */

static int list_binary(struct lister *l, const char *name)
{
	const struct probe_spec *p = &l->spec;
	CLEANUP(binary_closep) struct binary *b = NULL;
	int r = binary_open(name, (int)l->pid, &b, l->e);

	if (r < 0)
		return r;
	/* as it was asked for, unless that was a glob or is looked for */
	l->path = strchr(name, '/') ? name : binary_path(b);
	if (p->kind == PROBE_USDT)
		r = binary_usdts(b, p->group ? p->group : "*", p->symbol ? p->symbol : "*", on_usdt,
				 l, l->e);
	else
		r = binary_functions(b, p->symbol ? p->symbol : "*", on_function, l, l->e);
	return l->failed < 0 ? l->failed : r;
}

/* Of many files some are no programs, or have nothing that matches. */
static int list_files(struct lister *l)
{
	struct error first = {0}, own = {0}, *e = l->e;
	glob_t g = {0};
	int r;

	if (!strpbrk(l->spec.file, "*?[") || access(l->spec.file, F_OK) == 0)
		return list_binary(l, l->spec.file);
	r = glob(l->spec.file, 0, NULL, &g);
	if (r) {
		globfree(&g);
		return error_set(e, -ENOENT, "no file matches '%.200s'", l->spec.file);
	}
	l->e = &own;
	for (size_t i = 0; i < g.gl_pathc && !l->failed; i++) {
		own = (struct error){0};
		if (list_binary(l, g.gl_pathv[i]) < 0 && !first.code)
			first = own;
	}
	l->e = e;
	l->path = NULL;
	globfree(&g);
	if (l->failed < 0 || !l->n) {
		*e = first;
		return first.code ? first.code : -ENOENT;
	}
	return 0;
}

/* --- the whole --- */

static int list(struct lister *l)
{
	const struct probe_spec *p = &l->spec;

	switch (p->kind) {
	case PROBE_TRACEPOINT:
		return list_tracepoints(l);
	case PROBE_KPROBE:
	case PROBE_KRETPROBE:
		return kernel_functions(p->group, p->symbol ? p->symbol : "*", on_kernel_function,
					l, l->e);
	case PROBE_LINE:
		return error_set(l->e, -EINVAL,
				 "lines of source files are not listed: expected uprobe:FILE:GLOB, "
				 "usdt:FILE, kprobe:GLOB or tracepoint:CATEGORY:GLOB");
	default:
		return list_files(l);
	}
}

/* What is left out at the end is '*'. */
static int parse(struct lister *l, const char *text, struct error *e)
{
	struct error ignored = {0};
	char all[PROBE_TEXT_MAX + 4];
	int r = probe_parse(text, &l->spec, e);

	if (r == 0 || (size_t)snprintf(all, sizeof(all), "%s:*", text) >= sizeof(all))
		return r;
	if (probe_parse(all, &l->spec, &ignored) == 0)
		return 0;
	if (streq(text, "tracepoint:*") || streq(text, "tracepoint"))
		return probe_parse("tracepoint:*:*", &l->spec, &ignored);
	return r;
}

static int run(struct lister *l, const char *text)
{
	struct error e = {0};
	int r;

	if (parse(l, text, &e) < 0)
		return cmd_usage(l->c, "%s", e.text);
	if (trace_out_open(&l->out, STDOUT_FILENO) < 0)
		return CMD_FAILED;
	l->e = &e;
	r = list(l);
	trace_out_flush(&l->out);
	if (r >= 0 && l->out.error)
		r = error_set(&e, -l->out.error, "the output could not be written: %s",
			      strerror(l->out.error));
	probe_spec_free(&l->spec);
	trace_out_close(&l->out);
	return r < 0 ? cmd_failed(l->c, &e) : CMD_OK;
}

static int run_list(struct cmd *c, int argc, char **argv)
{
	struct lister l = {.c = c, .out.fd = -1};
	int status, worst = CMD_OK;

	if (!cmd_begin(c, &l, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say what to list, as in 'usdt:/usr/bin/python3*' or "
				    "'tracepoint:sock:*'");
	cmd_output();
	l.json = l.output != 0;
	for (int i = 0; i < argc; i++) {
		l.n = 0;
		l.failed = 0;
		l.path = NULL;
		status = run(&l, argv[i]);
		worst = status > worst ? status : worst;
	}
	return worst;
}

static const struct opt options[] = {
	{"pid", 'p', OPT_NUMBER, "PID", "files as this process sees them",
	 offsetof(struct lister, pid), &words_process},
	{"verbose", 'v', OPT_FLAG, NULL, "also where they are, and fields of all tracepoints",
	 offsetof(struct lister, verbose), NULL},
};

const struct command cmd_trace_list = {
	.name = "trace list",
	.about = "list functions, static probes, tracepoints",
	.run = run_list,
	.syntax =
		{
			.usage = "ax trace list PROBE ...",
			.about = "Lists what matches: 'usdt:/usr/bin/python3*' (with their "
				 "arguments), 'uprobe:/bin/bash:read*', 'kprobe:vfs_*', "
				 "'tracepoint:sock:*'. Names of files may be globs too. A single "
				 "tracepoint is shown with its fields.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_text_lines, 1, offsetof(struct lister, output)}},
			.rest = &trace_probe_words,
		},
};
