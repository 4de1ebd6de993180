// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace perfdata aux: the raw bytes that hardware wrote, a file for each CPU or thread. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "tools/lib/output.h"
#include "tools/lib/table.h"
#include "tools/trace/perfdata/perfdata.h"

struct queue {
	struct perfdata_aux first;
	uint64_t pieces, bytes;
	char file[64];
};

struct extract {
	struct cmd *c;
	int output;
	const char *dir; /* -O, NULL: only tell */
	int dir_fd;
	struct perfdata *p;
	const char *kind;
	struct queue *queues;
	size_t n;
};

/* Named by what it is of: "intel_pt-cpu3". */
static void name_file(const struct extract *x, struct queue *q)
{
	char text[PERF_QUEUE_TEXT], *space;

	perf_queue_text(&q->first, text);
	space = strchr(text, ' ');
	snprintf(q->file, sizeof(q->file), "%s-%.*s%s", x->kind ? x->kind : "unknown",
		 (int)(space - text), text, space + 1);
}

static int find_queue(struct extract *x, const struct perfdata_aux *a, struct queue **ret,
		      struct error *e)
{
	size_t n = x->n, at;
	struct queue *v = perf_queue_at(x->queues, &n, sizeof(*v), a, &at, e);

	if (!v)
		return e->code;
	x->queues = v;
	if (n > x->n)
		name_file(x, &v[at]);
	x->n = n;
	*ret = &v[at];
	return 0;
}

/* --- files --- */

static int open_file(const struct extract *x, const struct queue *q, struct error *e)
{
	int flags = q->pieces ? O_APPEND : O_CREAT | O_TRUNC;
	/* a FIFO of that name is not waited for, nor is anything written into it */
	autoclose int fd = openat(x->dir_fd, q->file,
				  O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0666);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return error_set(e, -errno, "cannot write '%.200s/%s': %s", x->dir, q->file,
				 strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, -EEXIST, "cannot write '%.200s/%s': it is not a file", x->dir,
				 q->file);
	return take_fd(&fd);
}

static int copy_payload(struct extract *x, struct queue *q, struct error *e)
{
	char buf[1 << 16];
	size_t n;
	int r;
	autoclose int fd = -1;

	if (x->dir) {
		fd = open_file(x, q, e);
		if (fd < 0)
			return fd;
	}
	while ((r = perfdata_payload(x->p, buf, sizeof(buf), &n, e)) == 0 && n) {
		if (fd >= 0)
			r = write_whole(fd, buf, n);
		if (r < 0)
			return error_set(e, r, "cannot write '%.200s/%s': %s", x->dir, q->file,
					 strerror(-r));
		q->bytes += n;
	}
	q->pieces++;
	return r;
}

static int extract(struct extract *x, struct error *e)
{
	struct perfdata_event ev;
	struct perfdata_aux a;
	struct queue *q = NULL;
	int r;

	while ((r = perfdata_next(x->p, &ev, e)) > 0) {
		if (ev.type == PERFDATA_AUXTRACE_INFO && ev.size >= 12)
			x->kind = perfdata_aux_name(perfdata_u32(x->p, ev.data + 8));
		if (!perfdata_aux(x->p, &ev, &a))
			continue;
		r = find_queue(x, &a, &q, e);
		if (r == 0)
			r = copy_payload(x, q, e);
		if (r < 0)
			return r;
	}
	if (r == 0 && !x->n)
		r = error_set(e, -ENOENT, "the file has no traces of hardware (AUX)");
	return r;
}

/* --- what was found --- */

static const struct table_column columns[] = {
	{.title = "OF"},
	{.title = "KIND"},
	{.title = "PIECES", .right = true},
	{.title = "BYTES", .right = true},
	{.title = "FILE"},
};

static int put_table(const struct extract *x)
{
	struct table_style style = table_style_for(stdout);
	struct table t;
	int r;

	table_init(&t, columns, ARRAY_SIZE(columns) - !x->dir);
	for (size_t i = 0; i < x->n; i++) {
		const struct queue *q = &x->queues[i];
		char text[PERF_QUEUE_TEXT];

		table_add(&t, perf_queue_text(&q->first, text));
		table_add(&t, x->kind);
		table_addf(&t, "%llu", (unsigned long long)q->pieces);
		table_addf(&t, "%llu", (unsigned long long)q->bytes);
		if (x->dir)
			table_add(&t, q->file);
	}
	r = table_print(&t, &style, stdout);
	table_free(&t);
	return r;
}

static void put_json(const struct extract *x)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct queue *q = &x->queues[i];

		printf("{\"cpu\":%d,\"tid\":%d,\"kind\":\"%s\",\"pieces\":%llu,\"bytes\":%llu",
		       (int)q->first.cpu, (int)q->first.tid, x->kind ? x->kind : "unknown",
		       (unsigned long long)q->pieces, (unsigned long long)q->bytes);
		if (x->dir)
			printf(",\"file\":\"%s\"", q->file);
		puts("}");
	}
}

static int open_dir(struct extract *x, struct error *e)
{
	int r = mkdir_parents(x->dir, 0777);

	if (r < 0)
		return error_set(e, r, "cannot make '%.200s': %s", x->dir, strerror(-r));
	x->dir_fd = open(x->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (x->dir_fd < 0)
		return error_set(e, -errno, "cannot open '%.200s': %s", x->dir, strerror(errno));
	return 0;
}

static int run_aux(struct cmd *c, int argc, char **argv)
{
	CLEANUP(perfdata_closep) struct perfdata *p = NULL;
	struct extract x = {.c = c, .dir_fd = -1};
	struct error e = {0};
	int status, r = 0;

	if (!perf_run_begin(c, &x, argc, argv, &p, &status))
		return status;
	x.p = p;
	if (x.dir)
		r = open_dir(&x, &e);
	if (r == 0)
		r = extract(&x, &e);
	/* also of a file that is cut off */
	if (x.output)
		put_json(&x);
	else if (x.n && put_table(&x) < 0 && r >= 0)
		r = error_set(&e, -ENOMEM, "out of memory");
	close_fd(&x.dir_fd);
	free(x.queues);
	return cmd_finish(c, r < 0 ? cmd_failed(c, &e) : CMD_OK);
}

static const struct opt options[] = {
	{"output-dir", 'O', OPT_STRING, "DIR", "write the bytes to files in DIR, which may be new",
	 offsetof(struct extract, dir), &words_directory},
};

const struct command cmd_trace_perfdata_aux = {
	.name = "trace perfdata aux",
	.about = "the raw traces of hardware, a file for each CPU",
	.run = run_aux,
	.syntax =
		{
			.usage = "ax trace perfdata aux [-O DIR] FILE",
			.about = "Tells what traces of hardware a file has (Intel PT and BTS, ARM "
				 "SPE, CoreSight, HiSilicon PTT, s390): of which CPU or thread, "
				 "in how many pieces, how many bytes. With -O each one's pieces "
				 "are put together in a file of DIR, such as intel_pt-cpu3. FILE "
				 "may be '-' for standard input.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_table_lines, 1, offsetof(struct extract, output)}},
			.args = {&words_file},
		},
};
