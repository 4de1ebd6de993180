/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace view: what a probe that has a name has seen. */
#include <time.h>

#include "tools/trace/run/run.h"
#include "tools/trace/trace.h"
#include "probes/named/named.h"
#include "tools/lib/run_signals.h"
#include "tools/lib/text.h"

struct viewing {
	struct trace t;
	struct trace_args args;
	struct named named;
	bool follow, began;
	const char *ctf; /* --ctf DIR: -o ctf -O DIR */
	uint64_t seen;	 /* records, of all that there have been */
	uint64_t skip;	 /* the first so many of those that are kept */
	uint64_t shown;	 /* or counted, in tables */
	uint64_t cut;	 /* of the shown ones: whose last strings are not whole */
	uint64_t lost;	 /* while following: written over before they were shown */
};

/* --- records --- */

static int on_kept(void *arg, const struct ax_probe_record *r, size_t len, size_t full_len)
{
	struct viewing *v = arg;

	if (v->skip) {
		v->skip--;
		return 0;
	}
	v->shown++;
	v->cut += full_len > len;
	return trace_put_record(&v->t, r, len);
}

static int count_kept(void *arg, const struct ax_probe_record *r, size_t len, size_t full_len)
{
	(void)r;
	(void)len;
	(void)full_len;
	++*(uint64_t *)arg;
	return 0;
}

static int failed(int r, struct error *e)
{
	return error_set(e, r, "what the probe has kept cannot be read: %s", strerror(-r));
}

/* With -n: how many of the kept ones come before the last N. */
static int count_skipped(struct viewing *v, struct error *e)
{
	uint64_t kept = 0, seen = 0;
	int r = v->t.count ? session_flight(v->t.session, count_kept, &kept, &seen) : 0;

	if (kept > v->t.count)
		v->skip = kept - v->t.count;
	return r < 0 ? failed(r, e) : 0;
}

static int put_records(struct viewing *v, struct error *e)
{
	uint64_t before = v->seen, shown = v->shown;
	int r = session_flight(v->t.session, on_kept, v, &v->seen);

	if (v->began)
		v->lost += v->seen - before - (v->shown - shown);
	v->began = true;
	if (r < 0 && !v->t.out.error)
		return failed(r, e);
	return 0;
}

/* --- tables --- */

static int put_table(struct viewing *v, struct error *e)
{
	struct session_table table;
	int r = session_table(v->t.session, &table);

	if (r < 0)
		return failed(r, e);
	v->shown = 0;
	for (size_t i = 0; i < table.n; i++)
		v->shown += table.v[i].cell.count;
	trace_put_table(&v->t, &table, v->follow ? time_real_ns() : 0);
	session_table_free(&table);
	return 0;
}

/* --- the whole --- */

static void put_summary(struct viewing *v, const struct session_totals *n)
{
	const char *shown = v->t.parts[0].action == TRACE_WATCH ? "shown" : "counted";
	struct trace_out *o = &v->t.out;

	if (v->t.json) {
		trace_out_printf(o, "{\"emitted\":%llu,\"%s\":%llu,\"dropped\":%llu",
				 (unsigned long long)n->emitted, shown,
				 (unsigned long long)v->shown, (unsigned long long)n->dropped);
		if (n->too_deep)
			trace_out_printf(o, ",\"too_deep\":%llu", (unsigned long long)n->too_deep);
		if (v->lost)
			trace_out_printf(o, ",\"overwritten\":%llu", (unsigned long long)v->lost);
		trace_out_printf(o, ",\"enabled\":%s}\n", v->named.enabled ? "true" : "false");
		return;
	}
	trace_out_flush(o);
	fprintf(stderr, "%llu event%s, %llu %s, %llu dropped", (unsigned long long)n->emitted,
		n->emitted == 1 ? "" : "s", (unsigned long long)v->shown, shown,
		(unsigned long long)n->dropped);
	if (n->unmatched)
		fprintf(stderr, "; %llu returns without their entries seen",
			(unsigned long long)n->unmatched);
	if (n->too_deep)
		fprintf(stderr, "; %llu return%s not seen, of calls more than 64 deep",
			(unsigned long long)n->too_deep, n->too_deep == 1 ? "" : "s");
	if (v->follow && !run_signals_came())
		fputs("; it was removed, or begun anew", stderr);
	if (v->lost)
		fprintf(stderr, "; %llu were written over before they could be shown",
			(unsigned long long)v->lost);
	if (v->cut)
		fprintf(stderr, "; of %llu the last strings are not whole",
			(unsigned long long)v->cut);
	if (v->named.overwritten)
		fputs("; its file was written over since", stderr);
	fputs(v->named.enabled ? "\n" : "; disabled\n", stderr);
}

static int not_written(const struct viewing *v, struct error *e)
{
	return error_set(e, -v->t.out.error, "the output could not be written: %s",
			 strerror(v->t.out.error));
}

static void flush_ctf(struct viewing *v, bool end)
{
	struct session_totals totals;

	session_totals(v->t.session, &totals);
	trace_ctf_flush(&v->t, totals.dropped + v->lost, end);
}

static int step(struct viewing *v, struct error *e)
{
	struct trace *t = &v->t;
	int r = t->parts[0].action == TRACE_WATCH ? put_records(v, e) : put_table(v, e);

	if (r == 0 && trace_ctf_is_due(t))
		flush_ctf(v, false);
	trace_out_flush(&t->out);
	if (r == 0 && t->out.error)
		return not_written(v, e);
	return r;
}

static int show(struct viewing *v, struct error *e)
{
	bool records = v->t.parts[0].action == TRACE_WATCH;
	int ms = records ? VIEW_RECORDS_MS : VIEW_TABLE_MS;
	struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	struct session_totals totals;
	int r = records ? count_skipped(v, e) : 0;

	if (v->follow)
		run_signals_catch();
	if (r == 0)
		r = step(v, e);
	while (r == 0 && v->follow && !run_signals_came()) {
		nanosleep(&wait, NULL);
		r = step(v, e);
		/* else it would wait forever for what nobody writes any more */
		if (!named_is_same(&v->t.c->inst, &v->named))
			break;
	}
	if (r < 0)
		return r;
	if (v->t.ctf)
		flush_ctf(v, true);
	if (v->t.out.error)
		return not_written(v, e);
	session_totals(v->t.session, &totals);
	put_summary(v, &totals);
	return 0;
}

static int run_view(struct viewing *v, const char *name)
{
	struct trace *t = &v->t;
	struct error e = {0};

	if (named_open(&t->c->inst, name, &v->named, &e) < 0)
		return cmd_failed(t->c, &e);
	t->session = v->named.session;
	v->named.session = NULL; /* trace_free() closes it */
	t->parts[0].action = (enum trace_action)v->named.probe.action;
	t->parts[0].buckets = session_buckets(t->session);
	t->real_offset_ns = (int64_t)(time_real_ns() - time_mono_ns());
	if (t->parts[0].action != TRACE_WATCH && t->count)
		return cmd_usage(t->c, "-n is a number of records, but '%s' only counts", name);
	if (t->parts[0].action != TRACE_WATCH && t->ctf_path)
		return cmd_usage(t->c, "CTF has records, but '%s' only counts", name);
	if (trace_out_file(&t->out, t->path, &e) < 0 || trace_ctf_open(t, &e) < 0 ||
	    show(v, &e) < 0)
		return cmd_failed(t->c, &e);
	trace_out_flush(&t->out);
	return CMD_OK;
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct viewing v = {.t = {.c = c, .out.fd = -1}};
	struct error e = {0};
	int status;

	if (cmd_begin(c, &v, &argc, argv, &status)) {
		if (v.ctf && (v.args.path || v.args.output))
			return cmd_usage(c, "--ctf is -o ctf with a directory: expected no -o "
					    "or -O with it");
		if (v.ctf)
			v.args = (struct trace_args){.output = TRACE_CTF, .path = v.ctf};
		trace_take_args(&v.t, &v.args);
		cmd_output();
		if (trace_check_output(&v.args, &e) < 0)
			status = cmd_usage(c, "%s", e.text);
		else if (argc != 1)
			status = cmd_usage(c, "expected one name: 'ax trace ls' lists the probes "
					      "that there are");
		else if (!cmd_root(c))
			status = CMD_FAILED;
		else
			status = run_view(&v, argv[0]);
	}
	trace_free(&v.t);
	named_free(&v.named);
	return status;
}

static const struct opt options[] = {
	{"follow", 'f', OPT_FLAG, NULL,
	 "go on with what comes (tables: all of it every second) until Ctrl-C",
	 offsetof(struct viewing, follow), NULL},
	{"count", 'n', OPT_NUMBER, "N", "only the last N of the records that are kept",
	 offsetof(struct viewing, t.count), NULL},
	{"ctf", 0, OPT_STRING, "DIR", "write its records as CTF: the same as -o ctf -O DIR",
	 offsetof(struct viewing, ctf), &words_directory},
};

const struct command cmd_trace_view = {
	.name = "trace view",
	.about = "show what one of them has seen",
	.run = run,
	.syntax =
		{
			.usage = "ax trace view NAME [-f] [-n N] [-o FORMAT] [-O FILE]",
			.about = "Shows what a probe of 'ax trace add' or of the config has seen: "
				 "its last records, or its counts. Nothing is taken away by that, "
				 "and the probe need not be enabled.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{trace_record_opts, ARRAY_SIZE(trace_record_opts),
				 offsetof(struct viewing, args)}},
			.args = {&trace_named_words},
		},
};
