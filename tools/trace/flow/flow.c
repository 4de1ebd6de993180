/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace flow: which functions call which, with their arguments and what they return. */
#include "probes/place/place.h"
#include "tools/lib/output.h"
#include "tools/trace/flow/flow.h"

/* Mistakes that need no look at the machine. */
static int check_request(struct flow_request *q, struct error *e)
{
	int r = trace_check_args(&q->t, &q->args, e);

	if (r < 0)
		return r;
	if (q->graph && q->folded)
		return error_set(e, -EINVAL,
				 "--graph and --folded are two kinds of output: expected one");
	if ((q->graph || q->folded) && (q->t.json || q->t.ctf_path))
		return error_set(e, -EINVAL,
				 "a graph and folded stacks are no %s: expected no -o %s",
				 q->t.json ? "JSON" : "CTF", q->t.json ? "json" : "ctf");
	if (q->calls && !q->folded)
		return error_set(e, -EINVAL, "--calls is about --folded: expected that with it");
	q->kind = q->folded ? FLOW_FOLDED : (enum flow_graph_kind)q->graph;
	return 0;
}

/* --- the session's parts --- */

static int add_part(struct flow_request *q, const char *file, bool is_return, const char *values,
		    enum trace_action action, struct error *e)
{
	struct trace *t = &q->t;
	struct probe_spec *spec = &t->specs[t->n_parts];
	autofree char *text = NULL;
	int r;

	/* the file's name is put in afterwards: it may have anything in it */
	if (asprintf(&text, "%s:x:0x0 %s", is_return ? "uretprobe" : "uprobe", values) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	r = probe_parse(text, spec, e);
	if (r < 0)
		return r;
	free(spec->file);
	spec->file = strdup(file);
	t->parts[t->n_parts] = (struct session_part){.spec = spec,
						     .action = action,
						     .move = true,
						     .per_thread = true,
						     .at_rets = q->at_rets};
	t->n_parts++;
	return spec->file ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int add_watch(struct flow_request *q, const char *file, bool is_return,
		     const uint64_t *offsets, size_t n, struct error *e)
{
	const char *values = !is_return ? "back=$stack0 ip=%ip" : q->typed ? "" : "retval:x64";
	struct session_part *part = &q->t.parts[q->t.n_parts];
	int r = n ? add_part(q, file, is_return, values, TRACE_WATCH, e) : 0;

	if (r < 0 || !n)
		return r;
	part->offsets = offsets;
	part->n_offsets = n;
	part->all_parameters = true;
	part->when = q->under != FLOW_NONE && offsets != &q->functions[q->under].offset;
	return 0;
}

static int add_state(struct flow_request *q, const char *file, bool arms, struct error *e)
{
	struct session_part *part = &q->t.parts[q->t.n_parts];
	int r = add_part(q, file, !arms, "", arms ? TRACE_ARM : TRACE_DISARM, e);

	if (r < 0)
		return r;
	part->offsets = &q->functions[q->under].offset;
	part->n_offsets = 1;
	part->state = 1;
	return 0;
}

/* The function that all is to be under is probed whether it is armed or not: its own entry arms,
 * and its return disarms. */
static int add_parts(struct flow_request *q, const char *file, struct error *e)
{
	int r = add_watch(q, file, false, q->entries, q->n_entries, e);

	if (r == 0)
		r = add_watch(q, file, true, q->with_return, q->n_with_return, e);
	if (r < 0 || q->under == FLOW_NONE)
		return r;
	r = add_watch(q, file, false, &q->functions[q->under].offset, 1, e);
	if (r == 0)
		r = add_state(q, file, true, e);
	if (r < 0 || q->returns[q->under] == FLOW_NEVER)
		return r;
	r = add_watch(q, file, true, &q->functions[q->under].offset, 1, e);
	/* probes at RET are on all of them, but which of several nested calls returns there only
	 * the flow can tell */
	return r < 0 || q->at_rets ? r : add_state(q, file, false, e);
}

/* --- the command --- */

static void free_request(struct flow_request *q)
{
	trace_free(&q->t);
	if (q->flow)
		flow_free(q->flow);
	if (q->binary)
		binary_close(q->binary);
	for (size_t i = 0; i < q->n_functions; i++)
		free(q->functions[i].name);
	free(q->functions);
	free(q->function_of);
	free(q->returns);
	free(q->entries);
	free(q->with_return);
	json_ctf_free(q->lines.ctf);
}

static int open_output(struct flow_request *q, struct error *e)
{
	int r;

	if (!q->t.ctf_path)
		return trace_out_file(&q->t.out, q->t.path, e);
	r = json_ctf_open(q->t.ctf_path, &q->lines.ctf, e);
	if (r == 0)
		r = trace_out_memory(&q->t.out, e);
	q->t.json = r == 0;
	return r;
}

static int prepare(struct flow_request *q, const char *file, char **globs, size_t n,
		   struct error *e)
{
	struct flow_options o = {0};
	int r = trace_find_scope(&q->t, &q->args, e);

	if (r == 0)
		r = binary_open(file, q->t.options.pid, &q->binary, e);
	if (r == 0)
		r = flow_find(q, globs, n, e);
	if (r == 0)
		r = add_parts(q, file, e);
	if (r == 0)
		r = open_output(q, e);
	if (r < 0)
		return r;
	o = (struct flow_options){.returns = q->returns,
				  .n_functions = (uint32_t)q->n_functions,
				  .under = q->under,
				  .tree = q->kind != FLOW_LINES,
				  .restarts = binary_is_go(q->binary)};
	q->lines.functions = q->functions;
	q->lines.binary = q->binary;
	q->lines.callers = q->callers || q->under_name;
	q->flow = flow_new(&o, q->kind == FLOW_LINES ? flow_put_step : NULL, &q->lines);
	return q->flow ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int run_flow(struct flow_request *q, int argc, char **argv)
{
	struct error e = {0};

	if (argc < 2)
		return cmd_usage(q->t.c, "say in which program, and which functions, as in './prog "
					 "file:trace.c' or './prog \"parse_*\"'");
	if (check_request(q, &e) < 0)
		return cmd_usage(q->t.c, "%s", e.text);
	if (!cmd_root(q->t.c))
		return CMD_FAILED;
	if (prepare(q, argv[0], argv + 1, (size_t)argc - 1, &e) < 0)
		return cmd_failed(q->t.c, &e);
	if (q->n_inlined)
		fprintf(stderr,
			"ax %s: %zu more function%s no code of %s own, since %s inlined wherever "
			"called\n",
			q->t.c->name, q->n_inlined, q->n_inlined == 1 ? " has" : "s have",
			q->n_inlined == 1 ? "its" : "their",
			q->n_inlined == 1 ? "it was" : "they were");
	q->t.on_record = flow_put_record;
	q->t.on_end = flow_put_end;
	q->t.own = q;
	return trace_run(&q->t);
}

/* --- as a script --- */

struct clauses {
	const char *file, *when;
	const char *more, *less; /* at the entry, and at the return */
	bool typed;
};

static void put_name(const char *name, FILE *f)
{
	bool plain = !name[strcspn(name, " \":;{}")];

	fprintf(f, plain ? "%s" : "\"%s\"", name);
}

static void put_clauses(const struct clauses *c, const char *function, FILE *f)
{
	fprintf(f, "uprobe:%s:", c->file);
	put_name(function, f);
	fprintf(f, "%s { flow%s }\n", c->when, c->more);
	if (function_keeps_return(function))
		return;
	fprintf(f, "uretprobe:%s:", c->file);
	put_name(function, f);
	fprintf(f, "%s { flow%s%s }\n", c->when, c->typed ? "" : " retval:x64", c->less);
}

static void put_script(const struct flow_request *q, const char *file, FILE *f)
{
	bool under = q->under < q->n_functions;
	struct clauses c = {.file = file,
			    .when = under ? " when inside" : "",
			    .more = "",
			    .less = "",
			    .typed = q->typed};

	for (size_t i = 0; q->functions && i < q->n_functions; i++)
		if (i != q->under)
			put_clauses(&c, q->functions[i].name, f);
	c.when = "";
	c.more = "; arm inside per-thread";
	c.less = "; disarm inside";
	if (q->functions && under)
		put_clauses(&c, q->functions[q->under].name, f);
}

static int show_script(struct flow_request *q, int argc, char **argv)
{
	struct trace *t = &q->t;
	struct error e = {0};
	int r;

	if (argc < 2)
		return cmd_usage(t->c, "expected a program and which of its functions");
	if (check_request(q, &e) < 0)
		return cmd_usage(t->c, "%s", e.text);
	if (q->kind != FLOW_LINES || q->callers || q->at_rets || t->count)
		return cmd_usage(t->c, "a script prints the lines of calls alone: expected no "
				       "--graph, --folded, --callers, --at-ret or -n");
	r = binary_open(argv[0], 0, &q->binary, &e);
	if (r == 0)
		r = flow_find(q, argv + 1, (size_t)argc - 1, &e);
	if (r < 0)
		return cmd_failed(t->c, &e);
	trace_write_script_options(&(struct trace_script_options){.args = &q->args,
								  .whom = &t->whom,
								  .follow = q->args.follow,
								  .duration_ms = t->duration_ms},
				   stdout);
	put_script(q, argv[0], stdout);
	return cmd_finish(t->c, CMD_OK);
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct flow_request q = {.t = {.c = c, .out.fd = -1}, .under = FLOW_NONE};
	int status;

	if (cmd_begin(c, &q, &argc, argv, &status)) {
		trace_take_args(&q.t, &q.args);
		cmd_output();
		q.lines.t = &q.t;
		status = c->shows_script ? show_script(&q, argc, argv) : run_flow(&q, argc, argv);
	}
	free_request(&q);
	trace_args_free(&q.args);
	return status;
}

/* none, then in the order of enum flow_graph_kind */
static const char *const graphs[] = {"none", "dot", "svg", NULL};
static const struct words graph_words = {.choices = graphs};

static const struct opt options[] = {
	{"under", 'u', OPT_STRING, "FUNCTION",
	 "only what is called while inside this function, with callers",
	 offsetof(struct flow_request, under_name), NULL},
	{"callers", 0, OPT_FLAG, NULL, "tell where each call came from",
	 offsetof(struct flow_request, callers), NULL},
	{"graph", 'g', OPT_CHOICE, "KIND",
	 "at the end a graph: dot (for Graphviz) or svg (for a browser)",
	 offsetof(struct flow_request, graph), &graph_words},
	{"folded", 0, OPT_FLAG, NULL,
	 "at the end folded stacks with microseconds, for flame graphs",
	 offsetof(struct flow_request, folded), NULL},
	{"calls", 0, OPT_FLAG, NULL, "--folded: numbers of calls, not microseconds",
	 offsetof(struct flow_request, calls), NULL},
	{"at-ret", 0, OPT_FLAG, NULL,
	 "see returns at every RET instruction: slower, but recursion may be deeper than 64 "
	 "(always so where C++ exceptions can be)",
	 offsetof(struct flow_request, at_rets), NULL},
	{"types", 0, OPT_STRING, "FILE", TRACE_TYPES_TEXT,
	 offsetof(struct flow_request, t.options.types), &words_file},
	{"duration", 'd', OPT_SPAN, "TIME", "end after this time",
	 offsetof(struct flow_request, t.duration_ms), NULL},
	{"count", 'n', OPT_NUMBER, "N", "end after N entries and returns",
	 offsetof(struct flow_request, t.count), NULL},
};

const struct command cmd_trace_flow = {
	.name = "trace flow",
	.about = "print which functions call which, with arguments and results",
	.run = run,
	.syntax =
		{
			.usage = "ax trace flow FILE file:SOURCE|FUNCTION ... [--under FUNCTION] "
				 "[--graph dot|svg] [--folded] [-p PID] [-c CMD] [-d TIME] [-n N]",
			.about = "Shows calls as they happen, indented: '-> f a=1' when f is "
				 "entered and '<- f = 2' when it returns, with the microseconds "
				 "since the start and, in brackets, those of the call. FUNCTION "
				 "may be a glob, and file:SOURCE stands for all functions of a "
				 "source file, as the program's debug data has them. Probes take "
				 "time: that of a call which makes many others is too long.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{trace_opts, TRACE_OPT_OUTPUT, offsetof(struct flow_request, args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct flow_request, args)}},
			.args = {&words_file},
		},
};
