/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace list: what can be probed. */
#include <glob.h>

#include "tools/lib/output.h"
#include "tools/trace/list.h"
#include "tools/trace/trace.h"
#include "probes/kernel/symbols.h"
#include "probes/kernel/tracefs.h"
#include "probes/elf/usdt.h"
#include "probes/place/place.h"

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

void list_put_member(struct trace_out *o, const char *name, const char *text)
{
	trace_out_printf(o, ",\"%s\":", name);
	trace_out_json(o, text, strlen(text));
}

void list_begin_json(struct lister *l, const char *a, const char *b)
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

void list_put_probe(struct lister *l, const char *a, const char *b)
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
		list_begin_json(l, NULL, s->name);
		if (s->demangled)
			list_put_member(&l->out, "demangled", s->demangled);
		list_put_function(l, s);
		trace_out_printf(&l->out, ",\"offset\":%llu,\"size\":%llu}\n",
				 (unsigned long long)s->offset, (unsigned long long)s->size);
		return l->failed;
	}
	list_put_probe(l, NULL, s->name);
	list_put_function(l, s);
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
		list_begin_json(l, NULL, name);
		if (module && *module)
			list_put_member(&l->out, "module", module);
		list_put_kernel_function(l, name, module);
		trace_out_printf(&l->out, ",\"probeable\":%s}\n",
				 kernel_symbol_probeable(name) ? "true" : "false");
		return l->failed;
	}
	list_put_probe(l, module && *module ? module : NULL, name);
	list_put_kernel_function(l, name, module);
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

/* Of an operand as the note has it, "-4@-20(%rbp)", what is behind its size. */
static size_t operand(const char **text, const char **ret)
{
	const char *s = *text + strspn(*text, " \t");
	size_t len = 0;
	int depth = 0;

	for (; s[len] && (depth > 0 || !strchr(" \t", s[len])); len++)
		depth += (s[len] == '(' || s[len] == '[') - (s[len] == ')' || s[len] == ']');
	*text = s + len;
	*ret = memchr(s, '@', len) ? memchr(s, '@', len) : s;
	*ret += **ret == '@';
	return (size_t)(s + len - *ret);
}

static void put_usdt_args(struct lister *l, const struct usdt *u)
{
	struct trace_out *o = &l->out;
	const char *text = u->args_text ? u->args_text : "", *where;

	for (size_t i = 0; i < u->n_args; i++) {
		const struct usdt_arg *a = &u->args[i];
		size_t len = operand(&text, &where);

		trace_out_printf(o, " arg%zu:%c%u@", i, type_letter(a), a->size * 8u);
		trace_out_safe(o, where, len);
		if (a->is_float || a->unfetchable)
			trace_out_text(o, "(cannot be fetched)");
	}
	if (!u->n_args && u->args_text && *u->args_text) {
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
	const char *text = u->args_text ? u->args_text : "", *where;

	list_begin_json(l, u->provider, u->name);
	trace_out_printf(o, ",\"offset\":%llu,\"semaphore\":", (unsigned long long)u->offset);
	if (u->semaphore)
		trace_out_u64(o, u->semaphore);
	else
		trace_out_text(o, "null");
	list_put_member(o, "operands", u->args_text ? u->args_text : "");
	trace_out_text(o, ",\"args\":[");
	for (size_t i = 0; i < u->n_args; i++) {
		const struct usdt_arg *a = &u->args[i];
		size_t len = operand(&text, &where);

		trace_out_printf(
			o, "%s{\"name\":\"arg%zu\",\"type\":\"%c%u\",\"fetchable\":%s,\"where\":",
			i ? "," : "", i, type_letter(a), a->size * 8u,
			a->is_float || a->unfetchable ? "false" : "true");
		trace_out_json(o, where, len);
		trace_out_char(o, '}');
	}
	trace_out_text(o, "]}\n");
	return l->failed;
}

static int on_usdt(void *arg, const struct usdt *u)
{
	struct lister *l = arg;

	l->n++;
	if (l->json)
		return put_json_usdt(l, u);
	list_put_probe(l, u->provider, u->name);
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
	list_put_member(o, "type", f->type);
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
		list_put_probe(l, category, name);
		trace_out_char(&l->out, '\n');
		l->failed = fields ? put_fields(l, category, name) : 0;
		return l->failed;
	}
	list_begin_json(l, category, name);
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

/* Without debug data there is still a name. */
static int open_debug_data(struct lister *l)
{
	struct error ignored = {0};

	if (l->spec.kind == PROBE_USDT)
		return 0;
	if (dwarf_new(binary_path(l->binary), &l->dwarf) < 0 ||
	    (l->types &&
	     (dwarf_look_in(l->dwarf, l->types) < 0 || binary_look_in(l->binary, l->types) < 0)))
		return error_set(l->e, -ENOMEM, "out of memory");
	if (l->spec.kind == PROBE_LINE || dwarf_load(l->dwarf, &ignored) == 0)
		return 0;
	dwarf_freep(&l->dwarf);
	l->dwarf = NULL;
	return 0;
}

static void close_binary(struct lister *l)
{
	dwarf_freep(&l->dwarf);
	binary_closep(&l->binary);
	l->dwarf = NULL;
	l->binary = NULL;
}

static int list_binary(struct lister *l, const char *name)
{
	const struct probe_spec *p = &l->spec;
	int r = binary_open(name, (int)l->pid, &l->binary, l->e);

	if (r < 0)
		return r;
	/* as it was asked for, unless that was a glob or is looked for */
	l->path = strchr(name, '/') ? name : binary_path(l->binary);
	r = open_debug_data(l);
	if (r == 0 && p->kind == PROBE_USDT)
		r = binary_usdts(l->binary, p->group ? p->group : "*", p->symbol ? p->symbol : "*",
				 on_usdt, l, l->e);
	else if (r == 0 && p->kind == PROBE_LINE)
		r = list_lines(l);
	else if (r == 0)
		r = binary_functions(l->binary, p->symbol ? p->symbol : "*", on_function, l, l->e);
	return l->failed < 0 ? l->failed : r;
}

/* Of many files some are no programs, or have nothing that matches. */
static int list_files(struct lister *l)
{
	struct error first = {0}, own = {0}, *e = l->e;
	glob_t g = {0};
	int r;

	if (!strpbrk(l->spec.file, "*?[") || access(l->spec.file, F_OK) == 0) {
		r = list_binary(l, l->spec.file);
		close_binary(l);
		return r;
	}
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
		close_binary(l);
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
	case PROBE_PROFILE:
		return error_set(l->e, -EINVAL,
				 "profile:HZ is a clock, of which there is nothing to list: it "
				 "knows kstack, ustack, comm and the like");
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
	if (starts_with(text, "line:") &&
	    (size_t)snprintf(all, sizeof(all), "%s:*:*", text) < sizeof(all) &&
	    probe_parse(all, &l->spec, &ignored) == 0) {
		l->sources = true;
		return 0;
	}
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
	r = l->types && !l->given ? given_types_open(l->types, &l->given, &e) : 0;
	if (r == 0)
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
		l.sources = false;
		status = run(&l, argv[i]);
		worst = status > worst ? status : worst;
	}
	btf_types_freep(&l.btf);
	given_types_freep(&l.given);
	return worst;
}

static const struct opt options[] = {
	{"pid", 'p', OPT_NUMBER, "PID", "files as this process sees them",
	 offsetof(struct lister, pid), &words_process},
	{"verbose", 'v', OPT_FLAG, NULL, "also where they are, and fields of all tracepoints",
	 offsetof(struct lister, verbose), NULL},
	{"types", 0, OPT_STRING, "FILE", TRACE_TYPES_TEXT, offsetof(struct lister, types),
	 &words_file},
};

const struct command cmd_trace_list = {
	.name = "trace list",
	.about = "list functions, lines, static probes, tracepoints",
	.run = run_list,
	.syntax =
		{
			.usage = "ax trace list PROBE ...",
			.about = "Lists what matches: 'usdt:/usr/bin/python3*' (with their "
				 "arguments), 'uprobe:/bin/bash:read*', 'kprobe:vfs_*' (with what "
				 "they take and return, where that is known), "
				 "'tracepoint:sock:*', 'line:./prog' (source files), "
				 "'line:./prog:db.c' (lines with code), 'line:./prog:db.c:add' "
				 "(of one function), 'line:./prog:db.c:12' (variables of a line). "
				 "Names of files may be globs too. A single tracepoint is shown "
				 "with its fields.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_text_lines, 1, offsetof(struct lister, output)}},
			.rest = &trace_probe_words,
		},
};
