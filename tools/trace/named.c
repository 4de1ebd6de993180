/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace add, ls, enable, disable, reset, rm: probes that have a name and stay. */
#include "config/probes.h"
#include "tools/lib/subcommand.h"
#include "tools/trace/trace.h"
#include "probes/named/named.h"
#include "probes/session/session.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

/* --- add --- */

struct adding {
	struct cmd *c;
	struct config_probe probe;
	const char *linear, *app, *cgroup;
	int action;
	bool disabled;
};

static int set_text(char **to, const char *text, struct error *e)
{
	*to = text ? strdup(text) : NULL;
	return text && !*to ? error_set(e, -ENOMEM, "out of memory") : 0;
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

static int take_request(struct adding *a, int argc, char **argv, struct error *e)
{
	struct config_probe *p = &a->probe;
	autofree char *dir = getcwd(NULL, 0);
	int r = config_probe_check_name(argv[0], e);

	r = r ? r : set_text(&p->name, argv[0], e);
	r = r ? r : set_text(&p->app, a->app, e);
	r = r ? r : set_text(&p->cgroup, a->cgroup, e);
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

int cmd_trace_add(struct cmd *c, int argc, char **argv)
{
	/* in the order of enum trace_action */
	static const char *const actions[] = {"watch", "count", "hist", "stats", "latency", NULL};
	struct adding a = {.c = c, .probe = {.last = CONFIG_PROBE_LAST}};
	struct config_probe *p = &a.probe;
	int status;
	const struct opt opts[] = {
		{"action", 'a', OPT_CHOICE, "ACTION",
		 "watch (the default), count, hist, stats or latency, as the commands", &a.action,
		 actions},
		{"last", 0, OPT_NUMBER, "N", "watch: keep the last N records (1024)", &p->last,
		 NULL},
		{"linear", 'l', OPT_STRING, "LEAST,GREATEST,STEP",
		 "hist, latency: buckets of the same width, not powers of two", &a.linear, NULL},
		{"pid", 'p', OPT_NUMBER, "PID", "only this process", &p->pid, NULL},
		{"app", 0, OPT_STRING, "NAME", "only processes of this app of ax (or its number)",
		 &a.app, NULL},
		{"cgroup", 0, OPT_STRING, "DIR", "only processes of this cgroup and those below it",
		 &a.cgroup, NULL},
		{"armed-by", 0, OPT_STRINGS, "PROBE",
		 "nothing counts before this probe happens ('PROBE if CONDITION' in one word)",
		 &p->armed_by, NULL},
		{"disarmed-by", 0, OPT_STRINGS, "PROBE", "and nothing after this one",
		 &p->disarmed_by, NULL},
		{"per-thread", 0, OPT_FLAG, NULL, "each thread is armed by itself", &p->per_thread,
		 NULL},
		{"exact", 0, OPT_FLAG, NULL,
		 "put probes exactly where they were asked for, whatever that costs", &p->exact,
		 NULL},
		{"disabled", 0, OPT_FLAG, NULL, "not before 'ax trace enable'", &a.disabled, NULL},
	};
	const struct opt_syntax s = {
		.usage = "ax trace add NAME PROBE [VALUE ...] [if CONDITION] [by VALUE ...] "
			 "[--action ACTION] [--last N]",
		.about = "Adds a probe that stays when this command ends: its counts, or the last "
			 "records, are kept in the kernel. 'ax trace view NAME' shows them at any "
			 "time, 'ax trace disable', 'enable', 'reset' and 'rm' do what they say.",
		.own = {opts, ARRAY_SIZE(opts)},
	};

	if (cmd_begin(c, &s, &argc, argv, &status))
		status = run_add(&a, argc, argv);
	config_probe_free(p);
	return status;
}

/* --- ls --- */

static const char *state_of(const struct named *n)
{
	return !n->enabled ? "disabled" : n->stale[0] ? "stale" : "enabled";
}

static void add_row(struct table *t, const struct named *n, const struct session_totals *totals)
{
	table_add(t, n->probe.name);
	table_add(t, state_of(n));
	table_colour(t, !n->enabled ? COLOUR_DIM : n->stale[0] ? COLOUR_YELLOW : COLOUR_GREEN);
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
	if (n.enabled && n.stale[0] && !l->json) {
		fprintf(stderr, "ax %s: ", l->c->name);
		text_put(name, stderr);
		fputs(": ", stderr);
		text_put(n.stale, stderr);
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

int cmd_trace_ls(struct cmd *c, int argc, char **argv)
{
	static const char *const outputs[] = {"table", "json", NULL};
	int output = 0, status;
	const struct opt opts[] = {
		{"output", 'o', OPT_CHOICE, "FORMAT", "table (the default) or json", &output,
		 outputs},
	};
	const struct opt_syntax s = {
		.usage = "ax trace ls [-o FORMAT] [NAME ...]",
		.about = "Lists the probes that have names: those of the config (probes:) and "
			 "those of 'ax trace add'. A stale one is still attached, but to a file, "
			 "app or process that is not there any more, or was replaced.",
		.own = {opts, ARRAY_SIZE(opts)},
	};

	if (!cmd_begin(c, &s, &argc, argv, &status))
		return status;
	cmd_output();
	if (!cmd_root(c))
		return CMD_FAILED;
	return run_ls(c, argc, argv, output != 0);
}

/* --- what takes names --- */

static int each_name(struct cmd *c, int argc, char **argv, const struct opt_syntax *s,
		     int (*f)(struct cmd *c, const char *name, struct error *e))
{
	int status;

	if (!cmd_begin(c, s, &argc, argv, &status))
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

int cmd_trace_enable(struct cmd *c, int argc, char **argv)
{
	const struct opt_syntax s = {
		.usage = "ax trace enable NAME...",
		.about = "Attaches probes that were disabled, or attaches them again: to the file "
			 "or the app that has the name now. Counts and records go on.",
	};

	return each_name(c, argc, argv, &s, enable_one);
}

static int disable_one(struct cmd *c, const char *name, struct error *e)
{
	return named_disable(&c->inst, name, e);
}

int cmd_trace_disable(struct cmd *c, int argc, char **argv)
{
	const struct opt_syntax s = {
		.usage = "ax trace disable NAME...",
		.about = "Detaches probes, which then cost nothing. Their counts and records stay "
			 "and can be viewed.",
	};

	return each_name(c, argc, argv, &s, disable_one);
}

static int reset_one(struct cmd *c, const char *name, struct error *e)
{
	return named_reset(&c->inst, name, e);
}

int cmd_trace_reset(struct cmd *c, int argc, char **argv)
{
	const struct opt_syntax s = {
		.usage = "ax trace reset NAME...",
		.about = "Begins the counts and records of probes anew.",
	};

	return each_name(c, argc, argv, &s, reset_one);
}

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

int cmd_trace_rm(struct cmd *c, int argc, char **argv)
{
	const struct opt_syntax s = {
		.usage = "ax trace rm NAME...",
		.about = "Removes probes with all that they kept.",
	};

	return each_name(c, argc, argv, &s, remove_one);
}
