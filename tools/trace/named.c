/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace add, ls, enable, disable, reset, rm: probes that have a name and stay. */
#include "config/probes.h"
#include "tools/lib/output.h"
#include "tools/trace/run/run.h"
#include "tools/trace/trace.h"
#include "probes/named/named.h"
#include "probes/session/session.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

/* --- add --- */

struct adding {
	struct cmd *c;
	struct config_probe probe;
	struct trace_args args;
	struct trace_arming arming;
	const char *linear;
	int action;
	bool disabled;
};

static int set_text(char **to, const char *text, struct error *e)
{
	*to = text ? strdup(text) : NULL;
	return text && !*to ? error_set(e, -ENOMEM, "out of memory") : 0;
}

/* As the agent will look for it. */
static int take_types(struct config_probe *p, const char *path, const char *dir, struct error *e)
{
	if (!path || *path == '/' || !dir)
		return set_text(&p->types, path, e);
	if (asprintf(&p->types, "%s/%s", dir, path) >= 0)
		return 0;
	p->types = NULL;
	return error_set(e, -ENOMEM, "out of memory");
}

/* Words as they are: config_probe_check() parses them, and makes them canonical. */
static int take_probe(struct config_probe *p, int argc, char **argv, struct error *e)
{
	size_t size;
	FILE *f = open_memstream(&p->probe, &size);

	for (int i = 0; f && i < argc; i++)
		fprintf(f, "%s%s", i ? " " : "", argv[i]);
	return f && fclose(f) == 0 ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int take_process(struct adding *a, struct error *e)
{
	struct trace_whom whom = {0};
	int r = trace_whom_read(&whom, &a->args.pid, e);

	if (r == 0 && whom.n > 1)
		r = error_set(e, -EINVAL,
			      "a probe that stays is about one process: expected one -p");
	if (r == 0 && whom.n)
		a->probe.pid = whom.v[0];
	trace_whom_free(&whom);
	return r;
}

static int take_request(struct adding *a, int argc, char **argv, struct error *e)
{
	struct config_probe *p = &a->probe;
	autofree char *dir = getcwd(NULL, 0);
	int r = config_probe_check_name(argv[0], e);

	r = r ? r : take_process(a, e);
	r = r ? r : set_text(&p->name, argv[0], e);
	r = r ? r : set_text(&p->app, a->args.app, e);
	r = r ? r : set_text(&p->cgroup, a->args.cgroup, e);
	r = r ? r : take_types(p, a->arming.types, dir, e);
	r = r ? r : take_probe(p, argc - 1, argv + 1, e);
	if (r == 0 && a->linear)
		r = config_probe_parse_linear(a->linear, p->linear, e);
	p->action = (uint32_t)a->action;
	p->enabled = !a->disabled;
	return r ? r : config_probe_check(p, dir, e);
}

static int run_add(struct adding *a, int argc, char **argv)
{
	struct error e = {0};

	if (argc < 2)
		return cmd_usage(a->c, "say a name and what to probe, as in 'lines "
				       "uretprobe:/bin/bash:readline retval:string'");
	if (take_request(a, argc, argv, &e) < 0)
		return cmd_usage(a->c, "%s", e.text);
	if (!cmd_root(a->c))
		return CMD_FAILED;
	if (named_add(&a->c->inst, &a->probe, &e) < 0)
		return cmd_failed(a->c, &e);
	return CMD_OK;
}

static int run_add_command(struct cmd *c, int argc, char **argv)
{
	struct adding a = {.c = c, .probe = {.last = CONFIG_PROBE_LAST}};
	struct config_probe *p = &a.probe;
	int status;

	if (cmd_begin(c, &a, &argc, argv, &status)) {
		p->armed_by = a.arming.armed_by;
		p->disarmed_by = a.arming.disarmed_by;
		p->per_thread = a.arming.per_thread;
		p->exact = a.arming.exact;
		a.arming = (struct trace_arming){.types = a.arming.types};
		status = run_add(&a, argc, argv);
	}
	trace_args_free(&a.args);
	strv_free(&a.arming.armed_by);
	strv_free(&a.arming.disarmed_by);
	config_probe_free(p);
	return status;
}

static const char *action(size_t i)
{
	return i <= TRACE_LATENCY ? config_probe_action_name((uint32_t)i) : NULL;
}

static const struct words action_words = {.nth = action};

static const struct opt add_opts[] = {
	{"action", 'a', OPT_CHOICE, "ACTION",
	 "watch (the default), count, hist, stats or latency, as the commands",
	 offsetof(struct adding, action), &action_words},
	{"last", 0, OPT_NUMBER, "N", "watch: keep the last N records (1024)",
	 offsetof(struct adding, probe.last), NULL},
	{"linear", 'l', OPT_STRING, "LEAST,GREATEST,STEP",
	 "hist, latency: buckets of the same width, not powers of two",
	 offsetof(struct adding, linear), NULL},
	{"disabled", 0, OPT_FLAG, NULL, "not before 'ax trace enable'",
	 offsetof(struct adding, disabled), NULL},
};

const struct command cmd_trace_add = {
	.name = "trace add",
	.about = "attach a probe that stays, under a name",
	.run = run_add_command,
	.syntax =
		{
			.usage = "ax trace add NAME PROBE [VALUE ...] [if CONDITION] [by VALUE "
				 "...] [--action ACTION] [--last N]",
			.about = "Adds a probe that stays when this command ends: its counts, or "
				 "the last records, are kept in the kernel. 'ax trace view NAME' "
				 "shows them at any time, 'ax trace disable', 'enable', 'reset' "
				 "and 'rm' do what they say.",
			.own = {{add_opts, ARRAY_SIZE(add_opts), 0},
				{&trace_opts[TRACE_OPT_PID], 1, offsetof(struct adding, args)},
				{&trace_opts[TRACE_OPT_APP], 2, offsetof(struct adding, args)},
				{trace_arming_opts, ARRAY_SIZE(trace_arming_opts),
				 offsetof(struct adding, arming)}},
			.args = {NULL, &trace_probe_words},
		},
};

/* --- ls --- */

static const char *state_of(const struct named *n)
{
	if (n->overwritten)
		return "overwritten";
	return !n->enabled ? "disabled" : n->stale[0] ? "stale" : "enabled";
}

static void add_row(struct table *t, const struct named *n, const struct session_totals *totals)
{
	table_add(t, n->probe.name);
	table_add(t, state_of(n));
	table_colour(t, n->overwritten ? COLOUR_YELLOW
			: !n->enabled  ? COLOUR_DIM
			: n->stale[0]  ? COLOUR_YELLOW
				       : COLOUR_GREEN);
	table_add(t, config_probe_action_name(n->probe.action));
	table_addf(t, "%llu", (unsigned long long)totals->emitted);
	table_addf(t, "%llu", (unsigned long long)totals->dropped);
	table_add(t, n->by_config ? "config" : "hand");
	table_add(t, n->probe.probe);
}

static json_t *to_json(const struct named *n, const struct session_totals *totals)
{
	const struct config_probe *p = &n->probe;
	json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:I}", "name", p->name, "state",
			      state_of(n), "action", config_probe_action_name(p->action), "events",
			      (json_int_t)totals->emitted, "dropped", (json_int_t)totals->dropped,
			      "probe", p->probe, "by", n->by_config ? "config" : "hand", "since",
			      (json_int_t)n->made);

	if (n->stale[0])
		json_object_set_new(j, "why", json_string(n->stale));
	if (p->action == TRACE_WATCH)
		json_object_set_new(j, "last", json_integer(p->last));
	if (p->app)
		json_object_set_new(j, "app", json_string(p->app));
	if (p->cgroup)
		json_object_set_new(j, "cgroup", json_string(p->cgroup));
	if (p->pid)
		json_object_set_new(j, "pid", json_integer(p->pid));
	return j;
}

struct listing {
	struct cmd *c;
	struct table table;
	json_t *json;
	int status;
};

static void list_one(struct listing *l, const char *name)
{
	CLEANUP(named_free) struct named n = {0};
	struct session_totals totals;
	struct error e = {0};
	int r = named_open(&l->c->inst, name, &n, &e);

	if (r < 0) {
		l->status = cmd_failed(l->c, &e);
		return;
	}
	session_totals(n.session, &totals);
	if (l->json)
		json_array_append_new(l->json, to_json(&n, &totals));
	else
		add_row(&l->table, &n, &totals);
	if ((n.enabled || n.overwritten) && n.stale[0] && !l->json) {
		fprintf(stderr, "ax %s: ", l->c->name);
		text_put(name, stderr);
		fputs(": ", stderr);
		text_put(n.stale, stderr);
		if (n.overwritten)
			fputs(n.enabled ? ", and it cannot be detached" : " and is detached",
			      stderr);
		fputs(n.probe.pid ? "\n" : "; 'ax trace enable' attaches it again\n", stderr);
	}
}

static int run_ls(struct cmd *c, int argc, char **argv, bool json)
{
	static const struct table_column columns[] = {
		{.title = "NAME", .keep = 9},
		{.title = "STATE", .keep = 8},
		{.title = "ACTION", .keep = 5},
		{.title = "EVENTS", .keep = 8, .right = true},
		{.title = "DROPPED", .keep = 6, .right = true},
		{.title = "BY", .keep = 3},
		{.title = "PROBE", .keep = 7, .min = 20},
	};
	struct listing l = {.c = c, .json = json ? json_array() : NULL, .status = CMD_OK};
	CLEANUP(strv_free) struct strv names = {0};
	struct table_style style = table_style_for(stdout);
	struct error e = {0};

	if (!argc && named_list(&c->inst, &names, &e) < 0) {
		json_decref(l.json);
		return cmd_failed(c, &e);
	}
	table_init(&l.table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < names.n; i++)
		list_one(&l, names.v[i]);
	for (int i = 0; i < argc; i++)
		list_one(&l, argv[i]);
	if (json)
		cmd_put_json(l.json, JSON_INDENT(2));
	else
		table_print(&l.table, &style, stdout);
	table_free(&l.table);
	json_decref(l.json);
	return cmd_finish(c, l.status);
}

const struct words trace_named_words = {.kind = WORDS_ASKED, .ask = "trace ls", .column = 1};

struct ls_args {
	int output;
};

static int run_ls_command(struct cmd *c, int argc, char **argv)
{
	struct ls_args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	cmd_output();
	if (!cmd_root(c))
		return CMD_FAILED;
	return run_ls(c, argc, argv, a.output != 0);
}

const struct command cmd_trace_ls = {
	.name = "trace ls",
	.about = "list the probes that have names",
	.run = run_ls_command,
	.syntax =
		{
			.usage = "ax trace ls [-o FORMAT] [NAME ...]",
			.about = "Lists the probes that have names: those of the config (probes:) "
				 "and those of 'ax trace add'. A stale one is still attached, but "
				 "to a file, app or process that is not there any more, or was "
				 "replaced. One whose file was written over has been detached.",
			.own = {{output_table, 1, offsetof(struct ls_args, output)}},
			.rest = &trace_named_words,
		},
};

/* --- what takes names --- */

static int each_name(struct cmd *c, int argc, char **argv,
		     int (*f)(struct cmd *c, const char *name, struct error *e))
{
	int status;

	if (!cmd_begin(c, NULL, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say which: 'ax trace ls' lists the probes that there are");
	if (!cmd_root(c))
		return CMD_FAILED;
	status = CMD_OK;
	for (int i = 0; i < argc; i++) {
		struct error e = {0};

		if (f(c, argv[i], &e) < 0)
			status = cmd_failed(c, &e);
	}
	return status;
}

static int enable_one(struct cmd *c, const char *name, struct error *e)
{
	struct named_outcome o = {0};
	int r = named_enable(&c->inst, name, &o, e);

	if (r == 0 && o.anew)
		fprintf(stderr,
			"ax %s: %s begins anew: what it is attached to is not what it was, so "
			"former counts and records do not fit\n",
			c->name, name);
	return r;
}

static int run_enable(struct cmd *c, int argc, char **argv)
{
	return each_name(c, argc, argv, enable_one);
}

const struct command cmd_trace_enable = {
	.name = "trace enable",
	.about = "attach one of them again",
	.run = run_enable,
	.syntax =
		{
			.usage = "ax trace enable NAME...",
			.about = "Attaches probes that were disabled, or attaches them again: to "
				 "the file or the app that has the name now. Counts and records "
				 "go on.",
			.rest = &trace_named_words,
		},
};

static int disable_one(struct cmd *c, const char *name, struct error *e)
{
	return named_disable(&c->inst, name, e);
}

static int run_disable(struct cmd *c, int argc, char **argv)
{
	return each_name(c, argc, argv, disable_one);
}

const struct command cmd_trace_disable = {
	.name = "trace disable",
	.about = "detach one of them; what it has seen stays",
	.run = run_disable,
	.syntax =
		{
			.usage = "ax trace disable NAME...",
			.about = "Detaches probes, which then cost nothing. Their counts and "
				 "records stay and can be viewed.",
			.rest = &trace_named_words,
		},
};

static int reset_one(struct cmd *c, const char *name, struct error *e)
{
	return named_reset(&c->inst, name, e);
}

static int run_reset(struct cmd *c, int argc, char **argv)
{
	return each_name(c, argc, argv, reset_one);
}

const struct command cmd_trace_reset = {
	.name = "trace reset",
	.about = "let one of them count anew",
	.run = run_reset,
	.syntax =
		{
			.usage = "ax trace reset NAME...",
			.about = "Begins the counts and records of probes anew.",
			.rest = &trace_named_words,
		},
};

static int remove_one(struct cmd *c, const char *name, struct error *e)
{
	CLEANUP(named_free) struct named n = {0};
	bool by_config = named_open(&c->inst, name, &n, NULL) == 0 && n.by_config;
	int r = named_remove(&c->inst, name, e);

	if (r == 0 && by_config)
		fprintf(stderr,
			"ax %s: %s is one of the config's: it comes back when the agent reads that "
			"again ('ax trace disable' lasts)\n",
			c->name, name);
	return r;
}

static int run_rm(struct cmd *c, int argc, char **argv)
{
	return each_name(c, argc, argv, remove_one);
}

const struct command cmd_trace_rm = {
	.name = "trace rm",
	.about = "remove one of them",
	.run = run_rm,
	.syntax =
		{
			.usage = "ax trace rm NAME...",
			.about = "Removes probes with all that they kept.",
			.rest = &trace_named_words,
		},
};
