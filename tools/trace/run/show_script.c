// SPDX-License-Identifier: GPL-2.0-or-later
/* A command line as a script of ax trace run. */
#include "tools/trace/run/run.h"

/* A probe's text in its parts: what is probed, " if ..." and what is done with. */
struct parts {
	char *target, *condition, *rest;
};

static void free_parts(struct parts *p)
{
	free(p->target);
	free(p->condition);
	free(p->rest);
}

/* What the text of `spec` has more than the target. malloc'ed. */
static char *behind(const struct probe_spec *spec, const char *target)
{
	autofree char *whole = probe_format(spec);

	return whole ? strdup(whole + strlen(target)) : NULL;
}

static int divide(const struct probe_spec *spec, struct parts *ret)
{
	struct probe_spec bare = *spec, only = *spec;

	only.n_args = bare.n_args = 0;
	only.n_by = bare.n_by = 0;
	bare.condition.n = 0;
	ret->target = probe_format(&bare);
	ret->condition = ret->target ? behind(&only, ret->target) : NULL;
	only = *spec;
	only.condition.n = 0;
	ret->rest = ret->condition ? behind(&only, ret->target) : NULL;
	return ret->rest ? 0 : -ENOMEM;
}

static int write_on(const struct probe_arg *on, const struct probe_spec *spec, FILE *f)
{
	struct probe_spec one = *spec;
	CLEANUP(free_parts) struct parts h = {0};

	if (!on)
		return 0;
	one.n_args = 1;
	one.n_by = 0;
	one.condition.n = 0;
	one.args[0] = *on;
	if (divide(&one, &h) < 0)
		return -ENOMEM;
	if (strchr(h.rest + 1, ' '))
		fprintf(f, " on (%s)", h.rest + 1);
	else
		fprintf(f, " on%s", h.rest);
	return 0;
}

static const char *verb_of(const struct session_part *p)
{
	static const char *const verbs[] = {
		[TRACE_WATCH] = "watch",	 [TRACE_COUNT] = "count",
		[TRACE_HIST] = "hist",		 [TRACE_STATS] = "stats",
		[TRACE_LATENCY] = "latency",	 [TRACE_ARM] = "arm armed",
		[TRACE_DISARM] = "disarm armed", [TRACE_START] = "start begun",
	};

	return verbs[p->action];
}

/* What of the options ends or divides a run is an action, too. */
static void write_ends(const struct trace *t, const char *of, FILE *f)
{
	if (t->count)
		fprintf(f, ";\n\tset global.%s += 1;\n\texit if global.%s >= %u", of, of, t->count);
}

static int write_part(const struct trace *t, const struct session_part *p, const char *buckets,
		      FILE *f)
{
	CLEANUP(free_parts) struct parts h = {0};
	bool arms = p->action == TRACE_ARM;
	int r = divide(p->spec, &h);

	if (r < 0)
		return r;
	fprintf(f, "%s%s%s {\n\t%s", h.target, p->when ? " when armed" : "", h.condition,
		verb_of(p));
	if (arms && p->per_thread)
		fputs(" per-thread", f);
	if (p->between)
		fputs(" since begun", f);
	if (p->between || p->action == TRACE_START)
		r = write_on(p->on, p->spec, f);
	fputs(h.rest, f);
	if (p == t->parts && buckets)
		fprintf(f, " linear %s", buckets);
	if (p->action == TRACE_WATCH)
		write_ends(t, "lines", f);
	fputs("\n}\n", f);
	return r;
}

void trace_write_script_options(const struct trace_script_options *o, FILE *f)
{
	static const char *const formats[] = {
		[TRACE_TEXT] = "", [TRACE_JSON] = " -o json", [TRACE_CTF] = " -o ctf"};
	const struct trace_args *a = o->args;

	fputs("# ax trace run", f);
	for (size_t i = 0; i < o->whom->n; i++)
		fprintf(f, "%s%u", i ? "," : " -p ", o->whom->v[i]);
	if (o->follow)
		fputs(" -f", f);
	if (a->command)
		fprintf(f, " -c '%s'", a->command);
	if (a->app)
		fprintf(f, " --app %s", a->app);
	if (a->cgroup)
		fprintf(f, " --cgroup %s", a->cgroup);
	if (o->duration_ms)
		fprintf(f, " -d %ums", o->duration_ms);
	if (o->exact)
		fputs(" --exact", f);
	if (a->stack == 1)
		fputs(" --stack fp", f);
	if (a->buffer_mib)
		fprintf(f, " --buffer %u", a->buffer_mib);
	fputs(formats[a->output], f);
	if (a->path)
		fprintf(f, " -O %s", a->path);
	fputs(" FILE\n", f);
}

/* The order in which they happen on one place: what is armed by an event counts it already, what it
 * disarms counts it still, and a time ends before the next one begins. */
static const enum trace_action order[] = {TRACE_ARM, TRACE_WATCH, TRACE_DISARM, TRACE_START};

static enum trace_action order_of(enum trace_action a)
{
	return a == TRACE_ARM || a == TRACE_DISARM || a == TRACE_START ? a : TRACE_WATCH;
}

int trace_write_script(const struct trace *t, const struct trace_args *a, const char *buckets,
		       FILE *f)
{
	int r = 0;

	trace_write_script_options(&(struct trace_script_options){.args = a,
								  .whom = &t->whom,
								  .follow = a->follow,
								  .exact = t->options.exact,
								  .duration_ms = t->duration_ms},
				   f);
	for (size_t turn = 0; turn < ARRAY_SIZE(order); turn++)
		for (size_t i = 0; r == 0 && i < t->n_parts; i++)
			if (order_of(t->parts[i].action) == order[turn])
				r = write_part(t, &t->parts[i], buckets, f);
	if (r == 0 && t->interval_ms) {
		fprintf(f, "every %ums {\n\tshow;\n\tclear", t->interval_ms);
		write_ends(t, "tables", f);
		fputs("\n}\n", f);
	}
	return r;
}
