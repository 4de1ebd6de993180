// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace files: which files are opened, read and written, how much and how long that takes. */
#include <sys/stat.h>

#include "probes/build/path.h"
#include "probes/tally/files.h"
#include "tools/trace/ready/tally.h"
#include "tools/trace/ready/scripts.h"
#include "tools/lib/text.h"

enum order { ORDER_BYTES, ORDER_TIME, ORDER_CALLS };
static const char *const orders[] = {"bytes", "time", "calls", NULL};
static const struct words order_words = {.choices = orders};

struct line {
	struct ax_file_key key;
	struct ax_file_cell cell;
};
struct name {
	struct ax_file_key key;
	char *path;
};

struct request {
	struct tally_view view;
	bool all;
	int order; /* enum order */
	struct tally_lines lines, names;
};

/* --- names, as they are told --- */

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_file_name *told = record;
	struct request *q = r->own;
	struct name *n;

	if (len < sizeof(*told) || told->no_time || told->len > len - sizeof(*told))
		return READY_PART;
	n = tally_add(&q->names);
	if (!n)
		return -ENOMEM;
	n->key = told->key;
	n->path = path_of_names(told->names, told->len, !told->complete);
	return READY_PART;
}

static int compare_names(const void *a, const void *b)
{
	return memcmp(&((const struct name *)a)->key, &((const struct name *)b)->key,
		      sizeof(struct ax_file_key));
}

/* NULL: it was not told, for want of room. */
static const char *path_of(const struct request *q, const struct ax_file_key *key)
{
	const struct name wanted = {.key = *key};
	const struct name *n =
		q->names.n ? bsearch(&wanted, q->names.v, q->names.n, sizeof(*n), compare_names)
			   : NULL;

	return n ? n->path : NULL;
}

/* --- what was counted --- */

static uint64_t calls_of(const struct ax_file_cell *c)
{
	return c->opens + c->calls[AX_FILE_READ] + c->calls[AX_FILE_WRITE];
}

static int read_counts(struct ready *r, uint64_t *events, struct error *e)
{
	struct request *q = r->own;
	struct line *l;
	size_t kept = 0;
	int err;

	err = tally_read(r, "files", &q->lines, e);
	if (err == 0)
		err = tally_read_names(r, &q->view, e);
	l = q->lines.v;
	*events = 0;
	for (size_t i = 0; i < q->lines.n; i++) {
		*events += calls_of(&l[i].cell);
		if (calls_of(&l[i].cell)) /* one whose call has not returned has a line already */
			l[kept++] = l[i];
	}
	q->lines.n = kept;
	return err;
}

/* --- the table --- */

static uint64_t weight(const struct request *q, const struct ax_file_cell *c)
{
	if (q->order == ORDER_TIME)
		return c->sum;
	return q->order == ORDER_CALLS ? calls_of(c)
				       : c->bytes[AX_FILE_READ] + c->bytes[AX_FILE_WRITE];
}

static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	uint64_t m = weight(arg, &x->cell), n = weight(arg, &y->cell);

	if (m == n) {
		m = calls_of(&x->cell);
		n = calls_of(&y->cell);
	}
	if (m != n)
		return m > n ? -1 : 1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static const char *kind_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFIFO:
		return "pipe";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
	case S_IFBLK:
		return "device";
	default:
		return "other";
	}
}

/* Of sockets and pipes without a name: as /proc/PID/fd shows them. */
static const char *name_of(const struct request *q, const struct line *l, char buf[64])
{
	const char *path = path_of(q, &l->key);
	bool named = (l->cell.mode & S_IFMT) != S_IFIFO && (l->cell.mode & S_IFMT) != S_IFSOCK;

	if (path && (named || strlen(path) > 1))
		return path;
	snprintf(buf, 64, "%s:[%llu]", kind_of(l->cell.mode), (unsigned long long)l->key.ino);
	return buf;
}

static void put_text(struct ready *r, const void *line)
{
	const struct request *q = r->own;
	const struct line *l = line;
	const struct ax_file_cell *c = &l->cell;
	uint64_t timed = c->calls[AX_FILE_READ] + c->calls[AX_FILE_WRITE];
	char buf[64], bytes[TEXT_SHORT], cell[TEXT_SHORT + 8];
	const char *name = name_of(q, l, buf);

	tally_put_group(r, &q->view, l->key.group);
	ready_number(r, c->opens, 6);
	for (int i = 0; i < AX_FILE_WAYS; i++) {
		ready_number(r, c->calls[i], 7);
		snprintf(cell, sizeof(cell), "%7s", text_bytes(c->bytes[i], bytes));
		ready_cell(r, cell, 7);
	}
	ready_duration(r, c->sum, 7);
	ready_duration(r, timed ? c->sum / timed : 0, 7);
	ready_duration(r, c->most, 7);
	trace_out_safe(&r->out, name, strlen(name));
	trace_out_char(&r->out, '\n');
}

static void put_json(struct ready *r, const void *line)
{
	const struct request *q = r->own;
	const struct line *l = line;
	const struct ax_file_cell *c = &l->cell;
	char buf[64];
	const char *name = name_of(q, l, buf), *kind = kind_of(c->mode);

	trace_out_char(&r->out, '{');
	if (tally_put_json_group(r, &q->view, l->key.group))
		trace_out_char(&r->out, ',');
	trace_out_text(&r->out, "\"file\":");
	trace_out_json(&r->out, name, strlen(name));
	ready_json_string(r, "kind", kind, strlen(kind));
	ready_json_number(r, "inode", (int64_t)l->key.ino);
	trace_out_printf(&r->out, ",\"device\":\"%u:%u\"", l->key.dev >> 20, l->key.dev & 0xfffff);
	ready_json_number(r, "opens", (int64_t)c->opens);
	ready_json_number(r, "reads", (int64_t)c->calls[AX_FILE_READ]);
	ready_json_number(r, "read_bytes", (int64_t)c->bytes[AX_FILE_READ]);
	ready_json_number(r, "writes", (int64_t)c->calls[AX_FILE_WRITE]);
	ready_json_number(r, "written_bytes", (int64_t)c->bytes[AX_FILE_WRITE]);
	ready_json_number(r, "failed", (int64_t)c->failed);
	ready_json_number(r, "time_ns", (int64_t)c->sum);
	ready_json_number(r, "longest_ns", (int64_t)c->most);
	trace_out_text(&r->out, "}\n");
}

static int put_counts(struct ready *r, struct error *e)
{
	static const struct tally_table table = {
		.heading = " OPENS   READS    READ  WRITES WRITTEN    TIME    MEAN LONGEST FILE\n",
		.what = "files",
		.put_text = put_text,
		.put_json = put_json,
	};
	struct request *q = r->own;

	(void)e;
	tally_sort(&q->lines, compare_lines, q);
	if (q->names.n)
		qsort(q->names.v, q->names.n, sizeof(struct name), compare_names);
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
	return tally_files_load(&r->options, (enum ax_tally_by)q->view.by, q->all, &r->watch, e);
}

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	script_files(&q->view, q->all, f);
	return 0;
}

static int run_files(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .write_script = write_script,
		      .load = load,
		      .put = put,
		      .read_counts = read_counts,
		      .put_counts = put_counts,
		      .own = &a.q},
		.q = {.view.top = TALLY_TOP_UNSET,
		      .lines = {.size = sizeof(struct line),
				.key_size = sizeof(struct ax_file_key),
				.value_at = offsetof(struct line, cell),
				.value_size = sizeof(struct ax_file_cell)},
		      .names.size = sizeof(struct name)},
	};
	int status = ready_command(&a.r, argc, argv);
	const struct name *names = a.q.names.v;

	ready_end(&a.r);
	tally_free(&a.q.view);
	for (size_t i = 0; i < a.q.names.n; i++)
		free(names[i].path);
	free(a.q.names.v);
	free(a.q.lines.v);
	return status;
}

static const struct opt options[] = {
	{"all", 'a', OPT_FLAG, NULL, "also directories, devices, pipes and sockets",
	 offsetof(struct args, q.all), NULL},
	{"order", 0, OPT_CHOICE, "WHAT",
	 "the most of this first: bytes (the default), time or calls",
	 offsetof(struct args, q.order), &order_words},
};

const struct command cmd_trace_files = {
	.name = "trace files",
	.about = "count what is read from and written to each file",
	.run = run_files,
	.syntax =
		{
			.usage = "ax trace files [--by process|app] [-a] [--order WHAT] [--top N] "
				 "[-p PID] [-c CMD] [-d TIME]",
			.about = "Counts for each file how often it is opened, read and written, "
				 "how "
				 "many bytes, and how long the calls take, in the kernel; and "
				 "prints "
				 "a table at the end. Names are those of the first call.\n"
				 "\n"
				 "Not seen: what is read and written by io_uring or through memory "
				 "(mmap), calls that have not returned, and programs for 32 bits.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{tally_opts, ARRAY_SIZE(tally_opts), offsetof(struct args, q.view)},
				{ready_opts, READY_OPTS_TABLE, offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPTS - TRACE_OPT_APP,
				 offsetof(struct args, r.args)}},
		},
};
