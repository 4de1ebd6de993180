// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace run: its command line. */
#include <fcntl.h>

#include "tools/lib/output.h"
#include "tools/trace/script/script.h"

/* What the options name. */
struct request {
	struct trace_args args;
	const char *text; /* -e */
	uint32_t duration_ms;
	bool exact;
	const char *types;
};

static void run_free(struct script_run *run)
{
	for (size_t i = 0; i < ARRAY_SIZE(run->cleared); i++)
		session_table_free(&run->cleared[i]);
	order_free(&run->order);
	script_calls_free(&run->calls);
	trace_out_close(&run->piece);
	trace_free(&run->t);
	script_free(&run->script);
	free(run->next_ns);
	free(run);
}

/* A file, or what comes in. malloc'ed. */
static int read_text(const char *path, char **ret, struct error *e)
{
	bool input = streq(path, "-");
	autofile FILE *f = input ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "re");
	autofree char *text = calloc(1, SCRIPT_TEXT_MAX + 2);
	size_t n;

	if (!f)
		return error_set(e, -errno, "the script %.200s cannot be read: %s", path,
				 strerror(errno));
	if (!text)
		return error_set(e, -ENOMEM, "out of memory");
	n = fread(text, 1, SCRIPT_TEXT_MAX + 1, f);
	if (ferror(f))
		return error_set(e, -EIO, "the script %.200s cannot be read: %s", path,
				 strerror(errno));
	if (strlen(text) != n)
		return error_set(e, -EINVAL, "%.200s is no script: it has NUL bytes", path);
	*ret = take_ptr(&text);
	return 0;
}

static int do_request(struct script_run *run, const struct request *q, const char *text)
{
	struct trace *t = &run->t;
	struct error e = {0};

	if (script_parse(run->name, text, &run->script, &e) < 0 ||
	    trace_check_args(t, &q->args, &e) < 0)
		return cmd_usage(t->c, "%s", e.text);
	if (!cmd_root(t->c))
		return CMD_FAILED;
	if (trace_find_scope(t, &q->args, &e) < 0 || trace_out_file(&t->out, t->path, &e) < 0 ||
	    trace_ctf_open(t, &e) < 0)
		return cmd_failed(t->c, &e);
	if (trace_out_open(&run->piece, -1) < 0) {
		error_set(&e, -ENOMEM, "out of memory");
		return cmd_failed(t->c, &e);
	}
	return script_do(run);
}

static int run_script(struct cmd *c, const struct request *q, const char *path)
{
	struct script_run *run = calloc(1, sizeof(*run));
	autofree char *text = NULL;
	struct error e = {0};
	int status;

	if (!run) {
		error_set(&e, -ENOMEM, "out of memory");
		return cmd_failed(c, &e);
	}
	run->t.c = c;
	run->t.out.fd = -1;
	run->piece.fd = -1;
	run->child = TRACE_NO_CHILD;
	run->name = q->text ? "-e" : path;
	trace_take_args(&run->t, &q->args);
	run->t.options.exact = q->exact;
	run->t.options.types = q->types;
	run->t.duration_ms = q->duration_ms;
	cmd_output();
	if (!q->text && read_text(path, &text, &e) < 0)
		status = cmd_failed(c, &e);
	else
		status = do_request(run, q, q->text ? q->text : text);
	run_free(run);
	return status;
}

static int run_run(struct cmd *c, int argc, char **argv)
{
	struct request q = {0};
	int status;

	if (!cmd_begin(c, &q, &argc, argv, &status))
		;
	else if (q.text && argc)
		status = cmd_usage(c, "-e has the script already: expected no file");
	else if (!q.text && argc != 1)
		status = cmd_usage(c, "expected one script: a file, - for what comes in, or -e "
				      "TEXT");
	else
		status = run_script(c, &q, q.text ? NULL : argv[0]);
	trace_args_free(&q.args);
	return status;
}

static const struct opt own[] = {
	{"script", 'e', OPT_STRING, "TEXT", "the script itself, instead of a file",
	 offsetof(struct request, text), NULL},
	{"duration", 'd', OPT_SPAN, "TIME", "end after this time",
	 offsetof(struct request, duration_ms), NULL},
	{"exact", 0, OPT_FLAG, NULL,
	 "put probes exactly where they were asked for, whatever that costs",
	 offsetof(struct request, exact), NULL},
	{"types", 0, OPT_STRING, "FILE", TRACE_TYPES_TEXT, offsetof(struct request, types),
	 &words_file},
};

const struct command cmd_trace_run = {
	.name = "trace run",
	.about = "several probes in one run, by a script",
	.run = run_run,
	.syntax =
		{
			.usage = "ax trace run FILE|-e TEXT [-p PID] [-c CMD] [-d TIME]",
			.about =
				"Runs a script: any number of probes, each with what is done when "
				"it happens, as in\n"
				"\n"
				"    'tracepoint:syscalls:sys_enter_openat { count by comm } every "
				"1s "
				"{ show; clear }'\n"
				"\n"
				"Lines come in the order of their times. 'man ax-trace-script' has "
				"the language; 'ax trace show-script' prints what another command "
				"would be as a script.",
			.own = {{own, ARRAY_SIZE(own), 0},
				{trace_opts, TRACE_OPT_OUTPUT, offsetof(struct request, args)},
				{trace_way_opts, TRACE_WAY_OPTS, offsetof(struct request, args)},
				{trace_record_opts, ARRAY_SIZE(trace_record_opts),
				 offsetof(struct request, args)}},
			.args = {&words_file},
		},
};
