// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace syscalls: how often system calls are made, how long they take, and how they fail. */
#include "probes/kernel/syscalls.h"
#include "probes/tally/syscalls.h"
#include "tools/trace/ready/tally.h"
#include "tools/trace/ready/scripts.h"

struct line {
	struct ax_syscall_key key;
	struct ax_syscall_cell cell;
};
struct failure {
	struct ax_syscall_key key;
	uint64_t n;
};

struct request {
	struct tally_view view;
	bool by_count;
	struct tally_lines lines, failures;
};

/* --- what was counted --- */

static int read_counts(struct ready *r, uint64_t *events, struct error *e)
{
	struct request *q = r->own;
	int err;

	err = tally_read(r, "calls", &q->lines, e);
	if (err == 0)
		err = tally_read(r, "errors", &q->failures, e);
	if (err == 0)
		err = tally_read_names(r, &q->view, e);
	*events = 0;
	for (size_t i = 0; i < q->lines.n; i++)
		*events += ((struct line *)q->lines.v)[i].cell.times.count;
	return err;
}

/* --- the table --- */

static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	const struct request *q = arg;
	uint64_t m = q->by_count ? x->cell.times.count : x->cell.times.sum;
	uint64_t n = q->by_count ? y->cell.times.count : y->cell.times.sum;

	if (m != n)
		return m > n ? -1 : 1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

/* Those of one call together, the most frequent first. */
static int compare_failures(const void *a, const void *b)
{
	const struct failure *x = a, *y = b;

	if (x->key.group != y->key.group)
		return x->key.group < y->key.group ? -1 : 1;
	if (x->key.nr != y->key.nr)
		return x->key.nr < y->key.nr ? -1 : 1;
	return x->n > y->n ? -1 : x->n < y->n;
}

static const char *name_of(uint32_t nr, char buf[32])
{
	const char *name = syscall_name(nr);

	if (name || nr == AX_SYSCALL_NONE)
		return name ? name : "(no such call)";
	snprintf(buf, 32, "call %u", nr);
	return buf;
}

/* Also those with which the kernel makes a call anew, when a signal's handler has ended. */
static const char *error_name(int err, char buf[32])
{
	static const char *const restarts[] = {"ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND",
					       "ENOIOCTLCMD", "ERESTART_RESTARTBLOCK"};

	if (err >= 512 && err < 512 + (int)ARRAY_SIZE(restarts))
		return restarts[err - 512];
	return ready_errno(err, buf);
}

static void put_failures(struct ready *r, const struct request *q, const struct line *l)
{
	const struct failure *f = q->failures.v;
	uint64_t named = 0;
	const char *between = r->json ? "" : " ";
	char buf[32];

	for (size_t i = 0; i < q->failures.n; i++) {
		if (f[i].key.group != l->key.group || f[i].key.nr != l->key.nr)
			continue;
		trace_out_printf(&r->out, r->json ? "%s\"%s\":%llu" : "%s%s %llu", between,
				 error_name(f[i].key.error, buf), (unsigned long long)f[i].n);
		between = r->json ? "," : ", ";
		named += f[i].n;
	}
	if (named < l->cell.failed) /* the table was full */
		trace_out_printf(&r->out, r->json ? "%s\"other\":%llu" : "%sother %llu", between,
				 (unsigned long long)(l->cell.failed - named));
}

static void put_text(struct ready *r, const void *line)
{
	const struct request *q = r->own;
	const struct line *l = line;
	const struct ax_tally_times *t = &l->cell.times;
	char buf[32];

	tally_put_group(r, &q->view, l->key.group);
	ready_cell(r, name_of(l->key.nr, buf), 18);
	ready_number(r, t->count, 9);
	ready_number(r, l->cell.failed, 7);
	ready_duration(r, t->sum, 7);
	ready_duration(r, t->count ? t->sum / t->count : 0, 7);
	ready_duration(r, t->most, 7);
	put_failures(r, q, l);
	trace_out_char(&r->out, '\n');
	if (q->view.hist)
		tally_put_times(r, t);
}

static void put_json(struct ready *r, const void *line)
{
	const struct request *q = r->own;
	const struct line *l = line;
	char buf[32];
	const char *name = name_of(l->key.nr, buf);

	trace_out_char(&r->out, '{');
	if (tally_put_json_group(r, &q->view, l->key.group))
		trace_out_char(&r->out, ',');
	trace_out_text(&r->out, "\"syscall\":");
	trace_out_json(&r->out, name, strlen(name));
	ready_json_number(r, "count", (int64_t)l->cell.times.count);
	ready_json_number(r, "failed", (int64_t)l->cell.failed);
	trace_out_text(&r->out, ",\"errors\":{");
	put_failures(r, q, l);
	trace_out_char(&r->out, '}');
	tally_put_json_times(r, &l->cell.times);
	trace_out_text(&r->out, "}\n");
}

static int put_counts(struct ready *r, struct error *e)
{
	static const struct tally_table table = {
		.heading = "SYSCALL                CALLS  FAILED    TIME    MEAN LONGEST ERRORS\n",
		.what = "lines",
		.put_text = put_text,
		.put_json = put_json,
	};
	struct request *q = r->own;

	(void)e;
	tally_sort(&q->lines, compare_lines, q);
	if (q->failures.n)
		qsort(q->failures.v, q->failures.n, sizeof(struct failure), compare_failures);
	tally_put_table(r, &q->view, &q->lines, &table);
	return 0;
}

/* --- the command --- */

struct args {
	struct ready r;
	struct request q;
};

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;

	tally_begin(r, &q->view);
	return tally_syscalls_load(&r->options, (enum ax_tally_by)q->view.by, &r->watch, e);
}

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	script_syscalls(&q->view, f);
	return 0;
}

static int run_syscalls(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .write_script = write_script,
		      .load = load,
		      .read_counts = read_counts,
		      .put_counts = put_counts,
		      .own = &a.q},
		.q = {.view.top = TALLY_TOP_UNSET,
		      .lines = {.size = sizeof(struct line),
				.key_size = sizeof(struct ax_syscall_key),
				.value_at = offsetof(struct line, cell),
				.value_size = sizeof(struct ax_syscall_cell)},
		      .failures = {.size = sizeof(struct failure),
				   .key_size = sizeof(struct ax_syscall_key),
				   .value_at = offsetof(struct failure, n),
				   .value_size = sizeof(uint64_t)}},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	tally_free(&a.q.view);
	free(a.q.lines.v);
	free(a.q.failures.v);
	return status;
}

static const struct opt options[] = {
	{"hist", 0, OPT_FLAG, NULL, "show how the times of each are distributed",
	 offsetof(struct args, q.view.hist), NULL},
	{"by-count", 0, OPT_FLAG, NULL, "the most frequent first, not what took longest together",
	 offsetof(struct args, q.by_count), NULL},
};

const struct command cmd_trace_syscalls = {
	.name = "trace syscalls",
	.about = "count system calls, their errors and how long they take",
	.run = run_syscalls,
	.syntax =
		{
			.usage = "ax trace syscalls [--by process|app] [--hist] [--top N] [-p PID] "
				 "[-c CMD] [-d TIME]",
			.about =
				"Counts system calls when they return, in the kernel, and prints a "
				"table at the end: how often, how long (together, on average, the "
				"longest) and with which errors. Calls that have not returned are "
				"not counted, nor those of programs for 32 bits.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{tally_opts, ARRAY_SIZE(tally_opts), offsetof(struct args, q.view)},
				{ready_opts, READY_OPTS_TABLE, offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPTS - TRACE_OPT_APP,
				 offsetof(struct args, r.args)}},
		},
};
