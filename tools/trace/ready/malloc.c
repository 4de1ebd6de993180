// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace malloc: what is allocated by which calls, and what is not freed. */
#include "probes/process/process.h"
#include "probes/tally/heap.h"
#include "tools/trace/ready/stacks.h"
#include "tools/trace/ready/tally.h"
#include "tools/trace/ready/scripts.h"
#include "tools/lib/text.h"

enum order { ORDER_LEFT, ORDER_ALLOCATED };
static const char *const orders[] = {"left", "allocated", NULL};
static const struct words order_words = {.choices = orders};

struct line {
	struct ax_heap_site site;
	struct ax_heap_cell cell;
	uint64_t left, left_bytes; /* of what is as old as is asked for */
	uint64_t oldest_ns;
	/* for the table */
	uint64_t addresses[AX_TALLY_FRAMES];
	size_t n;
};

struct request {
	struct tally_view view;
	struct strv files;
	uint32_t older_ms;
	int order; /* enum order */
	struct tally_lines lines;
	struct stacks stacks;
	uint64_t now_ns;
	uint64_t begin_ns;
};

/* --- what was counted --- */

static int compare_sites(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return memcmp(&x->site, &y->site, sizeof(x->site));
}

/* Which pieces are old enough only their table knows. */
static int add_block(void *arg, const void *key, const void *value)
{
	struct request *q = arg;
	const struct ax_heap_block *b = value;
	const struct line wanted = {.site = b->site};
	struct line *l = bsearch(&wanted, q->lines.v, q->lines.n, sizeof(*l), compare_sites);

	(void)key;
	if (!l)
		return 0;
	if (!l->oldest_ns || b->time_ns < l->oldest_ns)
		l->oldest_ns = b->time_ns;
	if (b->time_ns + q->older_ms * UINT64_C(1000000) > q->now_ns)
		return 0;
	l->left++;
	l->left_bytes += b->size;
	return 0;
}

static int read_counts(struct ready *r, uint64_t *events, struct error *e)
{
	struct request *q = r->own;
	int err = tally_read(r, "sites", &q->lines, e);
	struct line *l = q->lines.v;

	if (q->lines.n)
		qsort(l, q->lines.n, sizeof(*l), compare_sites);
	if (err == 0 && q->lines.n)
		err = tally_read_failed(watch_each(r->watch, "blocks", add_block, q), e);
	if (err == 0)
		err = tally_read_names(r, &q->view, e);
	*events = 0;
	for (size_t i = 0; i < q->lines.n; i++)
		*events += l[i].cell.allocated;
	return err;
}

/* --- processes, whose addresses will be asked for --- */

static int note(void *arg, const void *key, const void *value)
{
	struct request *q = arg;
	uint64_t pid;

	(void)value;
	memcpy(&pid, key, sizeof(pid));
	stacks_note(&q->stacks, (int)pid);
	return 0;
}

static void look(struct ready *r)
{
	stacks_look(&((struct request *)r->own)->stacks);
	watch_each(r->watch, "groups", note, r->own);
}

/* Not when all is detached: that takes its time. */
static int at_end(struct ready *r, struct error *e)
{
	(void)e;
	look(r);
	((struct request *)r->own)->now_ns = time_mono_ns();
	return 0;
}

/* --- call stacks --- */

static void find_frames(struct ready *r, struct request *q, struct line *l)
{
	size_t n = tally_stack(r->watch, l->site.stack, l->addresses);

	if (!n)
		l->addresses[0] = l->site.caller;
	l->n = n ? stacks_callers(&q->stacks, (int)l->site.pid, l->addresses, n) : 1;
}

static int compare_stacks(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->site.pid != y->site.pid)
		return x->site.pid < y->site.pid ? -1 : 1;
	if (x->site.life != y->site.life)
		return x->site.life < y->site.life ? -1 : 1;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return memcmp(x->addresses, y->addresses, x->n * sizeof(*x->addresses));
}

static void add_to(struct line *to, const struct line *l)
{
	to->cell.allocated += l->cell.allocated;
	to->cell.allocated_bytes += l->cell.allocated_bytes;
	to->cell.freed += l->cell.freed;
	to->cell.freed_bytes += l->cell.freed_bytes;
	to->cell.unkept += l->cell.unkept;
	to->cell.unkept_bytes += l->cell.unkept_bytes;
	to->left += l->left;
	to->left_bytes += l->left_bytes;
	if (!to->oldest_ns || (l->oldest_ns && l->oldest_ns < to->oldest_ns))
		to->oldest_ns = l->oldest_ns;
}

/* Stacks that are the same as far as they are callers: where the kernel found more, it was not. */
static void join_stacks(struct ready *r, struct request *q)
{
	struct line *l = q->lines.v;
	size_t n = 0;

	for (size_t i = 0; i < q->lines.n; i++)
		find_frames(r, q, &l[i]);
	if (q->lines.n)
		qsort(l, q->lines.n, sizeof(*l), compare_stacks);
	for (size_t i = 0; i < q->lines.n; i++)
		if (n && compare_stacks(&l[n - 1], &l[i]) == 0)
			add_to(&l[n - 1], &l[i]);
		else
			l[n++] = l[i];
	q->lines.n = n;
}

/* --- the table --- */

static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	const struct request *q = arg;
	uint64_t m = q->order == ORDER_LEFT ? x->left_bytes : x->cell.allocated_bytes;
	uint64_t n = q->order == ORDER_LEFT ? y->left_bytes : y->cell.allocated_bytes;

	if (m != n)
		return m > n ? -1 : 1;
	return compare_sites(a, b);
}

static void put_text(struct ready *r, const void *line)
{
	struct request *q = r->own;
	const struct line *l = line;
	char left[TEXT_SHORT], bytes[TEXT_SHORT], age[TRACE_DURATION_MAX];

	trace_out_printf(&r->out, "%s bytes left in %llu pieces", text_bytes(l->left_bytes, left),
			 (unsigned long long)l->left);
	if (l->left)
		trace_out_printf(&r->out, " (the oldest %s)",
				 trace_duration_text(q->now_ns - l->oldest_ns, age));
	trace_out_printf(&r->out, ", of %s in %llu", text_bytes(l->cell.allocated_bytes, bytes),
			 (unsigned long long)l->cell.allocated);
	if (l->cell.unkept)
		trace_out_printf(&r->out, "; %llu could not be followed",
				 (unsigned long long)l->cell.unkept);
	trace_out_text(&r->out, ": ");
	tally_put_group(r, &q->view, l->site.pid);
	trace_out_char(&r->out, '\n');
	stacks_put(r, &q->stacks, (int)l->site.pid, l->addresses, l->n);
}

static void put_json(struct ready *r, const void *line)
{
	struct request *q = r->own;
	const struct line *l = line;
	trace_out_char(&r->out, '{');
	tally_put_json_group(r, &q->view, l->site.pid);
	ready_json_number(r, "left_bytes", (int64_t)l->left_bytes);
	ready_json_number(r, "left", (int64_t)l->left);
	ready_json_number(r, "allocated_bytes", (int64_t)l->cell.allocated_bytes);
	ready_json_number(r, "allocated", (int64_t)l->cell.allocated);
	ready_json_number(r, "freed_bytes", (int64_t)l->cell.freed_bytes);
	ready_json_number(r, "freed", (int64_t)l->cell.freed);
	if (l->cell.unkept)
		ready_json_number(r, "unkept", (int64_t)l->cell.unkept);
	trace_out_text(&r->out, ",\"stack\":");
	stacks_put(r, &q->stacks, (int)l->site.pid, l->addresses, l->n);
	trace_out_text(&r->out, "}\n");
}

struct sum {
	uint64_t left, left_bytes, allocated, allocated_bytes, unkept;
};

static struct sum sum_of(const struct request *q)
{
	const struct line *l = q->lines.v;
	struct sum s = {0};

	for (size_t i = 0; i < q->lines.n; i++) {
		s.left += l[i].left;
		s.left_bytes += l[i].left_bytes;
		s.allocated += l[i].cell.allocated;
		s.allocated_bytes += l[i].cell.allocated_bytes;
		s.unkept += l[i].cell.unkept;
	}
	return s;
}

static void put_rate(struct ready *r, const struct request *q)
{
	double seconds = (double)(q->now_ns - q->begin_ns) / 1e9;
	struct sum s = sum_of(q);
	char left[TEXT_SHORT], bytes[TEXT_SHORT];

	trace_out_printf(&r->out,
			 "%s bytes left in %llu pieces; %s allocated in %llu (%.0f a second)\n",
			 text_bytes(s.left_bytes, left), (unsigned long long)s.left,
			 text_bytes(s.allocated_bytes, bytes), (unsigned long long)s.allocated,
			 seconds > 0 ? (double)s.allocated / seconds : 0);
}

static int put_counts(struct ready *r, struct error *e)
{
	static const struct tally_table table = {
		.what = "call stacks",
		.put_text = put_text,
		.put_json = put_json,
	};
	struct request *q = r->own;
	struct tally_lines shown;
	const struct line *l;

	(void)e;
	join_stacks(r, q);
	tally_sort(&q->lines, compare_lines, q);
	shown = q->lines;
	l = shown.v;
	/* who leaves nothing is not asked for, if that is what is asked for */
	while (q->order == ORDER_LEFT && shown.n && !l[shown.n - 1].left_bytes &&
	       !l[shown.n - 1].left)
		shown.n--;
	tally_put_table(r, &q->view, &shown, &table);
	if (!r->json)
		put_rate(r, q);
	return 0;
}

static void put_counter(struct ready *r, enum ax_watch_counter which, const char *key,
			const char *text)
{
	uint64_t n = watch_counter(r->watch, which);

	if (n && r->json)
		ready_json_number(r, key, (int64_t)n);
	else if (n)
		fprintf(stderr, "; %llu %s", (unsigned long long)n, text);
}

static void put_more(struct ready *r)
{
	struct sum s = sum_of(r->own);

	put_counter(r, AX_WATCH_UNKNOWN, "freed_unknown", "freed that were there before");
	put_counter(r, AX_WATCH_NO_STACK, "no_stack", "without a call stack, for want of room");
	if (s.unkept && r->json)
		ready_json_number(r, "unkept", (int64_t)s.unkept);
	else if (s.unkept)
		fprintf(stderr, "; %llu could not be followed, since the table was full",
			(unsigned long long)s.unkept);
}

/* --- the command --- */

struct args {
	struct ready r;
	struct request q;
};

static int after_attach(struct ready *r, struct error *e)
{
	struct request *q = r->own;

	(void)e;
	stacks_begin(&q->stacks);
	q->begin_ns = time_mono_ns();
	return 0;
}

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;
	struct tally_heap_options x = {.files = &q->files, .of_pids = r->whom.n > 0};

	tally_begin(r, &q->view);
	q->view.by = AX_TALLY_PROCESS;
	return tally_heap_load(&r->options, &x, &r->watch, e);
}

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	if (q->older_ms)
		return -ENOTSUP;
	script_malloc(&q->files, f);
	return 0;
}

static int run_malloc(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .write_script = write_script,
		      .no_script = "--older looks at each piece that is left, and a script cannot "
				   "go through all of a map: expected no --older",
		      .load = load,
		      .read_counts = read_counts,
		      .put_counts = put_counts,
		      .put_more = put_more,
		      .after_attach = after_attach,
		      .at_end = at_end,
		      .look = look,
		      .own = &a.q},
		.q = {.view.top = TALLY_TOP_UNSET,
		      .lines = {.size = sizeof(struct line),
				.key_size = sizeof(struct ax_heap_site),
				.value_at = offsetof(struct line, cell),
				.value_size = sizeof(struct ax_heap_cell)}},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	tally_free(&a.q.view);
	stacks_free(&a.q.stacks);
	strv_free(&a.q.files);
	free(a.q.lines.v);
	return status;
}

static const struct opt options[] = {
	{"older", 0, OPT_DURATION, "TIME", "leave out what is younger at the end",
	 offsetof(struct args, q.older_ms), NULL},
	{"order", 0, OPT_CHOICE, "WHAT",
	 "the most of this first: left (the default) or allocated (and those who leave nothing)",
	 offsetof(struct args, q.order), &order_words},
	{"library", 0, OPT_STRINGS, "FILE",
	 "the library or program that has malloc(), if it is none of the usual ones",
	 offsetof(struct args, q.files), &words_file},
};

const struct command cmd_trace_malloc = {
	.name = "trace malloc",
	.about = "show which calls allocate memory that is not freed",
	.run = run_malloc,
	.syntax =
		{
			.usage = "ax trace malloc -p PID|-c CMD [--older TIME] [--order WHAT] "
				 "[--top "
				 "N] [-d TIME]",
			.about =
				"Follows each piece of memory from malloc() and its kin to free(), "
				"in "
				"the kernel, and prints at the end what is left, by the call "
				"stacks "
				"that allocated it. Stacks go on only through functions with frame "
				"pointers.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{tally_opts, TALLY_OPTS_TOP, offsetof(struct args, q.view)},
				{ready_opts, READY_OPTS_TABLE, offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPTS - TRACE_OPT_APP,
				 offsetof(struct args, r.args)}},
		},
};
