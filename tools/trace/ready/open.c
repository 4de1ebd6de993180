// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace open: which files are opened, how, and what comes of it. */
#include <fcntl.h>
#include <fnmatch.h>

#include "tools/trace/ready/ready.h"
#include "tools/trace/ready/scripts.h"
#include "probes/watch/open.h"

#define FLAGS_MAX 512
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

struct request {
	struct watch_open_options x;
	bool quick;
	const char *pattern;
	bool is_glob;
	char prefix[AX_OPEN_PREFIX];
};

struct flag {
	uint64_t bits;
	const char *name;
};

/* The kernel's O_LARGEFILE, which is 0 in programs for 64 bits. */
#if defined(__aarch64__)
#define LARGEFILE 0400000
#else
#define LARGEFILE 0100000
#endif

/* Those of several bits come before those that they contain. */
static const struct flag open_flags[] = {
	{O_CREAT, "O_CREAT"},	      {O_EXCL, "O_EXCL"},	  {O_NOCTTY, "O_NOCTTY"},
	{O_TRUNC, "O_TRUNC"},	      {O_APPEND, "O_APPEND"},	  {O_NONBLOCK, "O_NONBLOCK"},
	{O_SYNC, "O_SYNC"},	      {O_DSYNC, "O_DSYNC"},	  {O_ASYNC, "O_ASYNC"},
	{O_DIRECT, "O_DIRECT"},	      {LARGEFILE, "O_LARGEFILE"}, {O_TMPFILE, "O_TMPFILE"},
	{O_DIRECTORY, "O_DIRECTORY"}, {O_NOFOLLOW, "O_NOFOLLOW"}, {O_NOATIME, "O_NOATIME"},
	{O_CLOEXEC, "O_CLOEXEC"},     {O_PATH, "O_PATH"},
};
static const struct flag resolve_flags[] = {
	{0x01, "RESOLVE_NO_XDEV"},     {0x02, "RESOLVE_NO_MAGICLINKS"},
	{0x04, "RESOLVE_NO_SYMLINKS"}, {0x08, "RESOLVE_BENEATH"},
	{0x10, "RESOLVE_IN_ROOT"},     {RESOLVE_CACHED, "RESOLVE_CACHED"},
};

/* --- flags --- */

static size_t add_flags(char *buf, size_t n, uint64_t v, const struct flag *flags, size_t n_flags)
{
	for (size_t i = 0; i < n_flags; i++) {
		if ((v & flags[i].bits) != flags[i].bits)
			continue;
		v &= ~flags[i].bits;
		n += (size_t)snprintf(buf + n, FLAGS_MAX - n, "%s%s", n ? "|" : "", flags[i].name);
	}
	if (v)
		n += (size_t)snprintf(buf + n, FLAGS_MAX - n, "%s0x%llx", n ? "|" : "",
				      (unsigned long long)v);
	return n;
}

static const char *flags_text(const struct ax_open_event *e, char buf[FLAGS_MAX])
{
	static const char *const modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
	size_t n = 0;

	buf[0] = '\0';
	if (!(e->flags & O_PATH)) /* with which the access mode means nothing */
		n = (size_t)snprintf(buf, FLAGS_MAX, "%s", modes[e->flags & O_ACCMODE]);
	n = add_flags(buf, n, e->flags & ~(uint64_t)O_ACCMODE, open_flags, ARRAY_SIZE(open_flags));
	add_flags(buf, n, e->resolve, resolve_flags, ARRAY_SIZE(resolve_flags));
	return buf;
}

static bool has_mode(const struct ax_open_event *e)
{
	return (e->flags & O_CREAT) || (e->flags & O_TMPFILE) == O_TMPFILE;
}

/* --- lines --- */

static void put_name(struct ready *r, const struct ax_open_event *e)
{
	if (e->len == AX_OPEN_FAULT) {
		trace_out_text(&r->out, "?");
		return;
	}
	if (e->directory != AT_FDCWD && (!e->len || e->name[0] != '/'))
		trace_out_printf(&r->out, "[%d]/", e->directory);
	trace_out_safe(&r->out, e->name, e->len);
}

static void put_text(struct ready *r, const struct ax_open_event *e)
{
	char flags[FLAGS_MAX + 16], number[32];
	size_t n;

	ready_time(r, e->head.time_ns);
	ready_number(r, e->head.pid, 7);
	ready_cell_safe(r, e->head.comm, strnlen(e->head.comm, sizeof(e->head.comm)), 15);
	if (e->latency_ns)
		ready_duration(r, e->latency_ns, 7);
	else
		ready_cell(r, "-", 7);
	snprintf(number, sizeof(number), "%d", e->ret);
	ready_cell(r, e->ret < 0 ? ready_errno(-e->ret, number) : number, 7);
	flags_text(e, flags);
	n = strlen(flags);
	if (has_mode(e))
		snprintf(flags + n, sizeof(flags) - n, " %04o", e->mode);
	ready_cell(r, flags, 29);
	put_name(r, e);
	trace_out_char(&r->out, '\n');
}

static void put_json(struct ready *r, const struct ax_open_event *e)
{
	char buf[FLAGS_MAX];
	const char *name;

	ready_json_head(r, &e->head, "open");
	if (e->len != AX_OPEN_FAULT)
		ready_json_string(r, "name", e->name, e->len);
	if (e->directory != AT_FDCWD)
		ready_json_number(r, "directory", e->directory);
	name = flags_text(e, buf);
	ready_json_string(r, "flags", name, strlen(name));
	if (has_mode(e)) {
		snprintf(buf, sizeof(buf), "%04o", e->mode);
		ready_json_string(r, "mode", buf, strlen(buf));
	}
	if (e->ret < 0) {
		name = ready_errno(-e->ret, buf);
		ready_json_string(r, "error", name, strlen(name));
	} else {
		ready_json_number(r, "fd", e->ret);
	}
	if (e->latency_ns)
		ready_json_number(r, "latency_ns", (int64_t)e->latency_ns);
	trace_out_text(&r->out, "}\n");
}

static bool is_wanted(const struct request *q, const struct ax_open_event *e)
{
	if (!q->pattern)
		return true;
	if (e->len == AX_OPEN_FAULT)
		return false;
	return q->is_glob ? fnmatch(q->pattern, e->name, 0) == 0 : starts_with(e->name, q->pattern);
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_open_event *e = record;

	if (len < sizeof(*e) || e->head.type != AX_WATCH_OPEN ||
	    (e->len != AX_OPEN_FAULT && e->len >= len - sizeof(*e)) || !is_wanted(r->own, e))
		return READY_HIDDEN;
	if (r->json)
		put_json(r, e);
	else
		put_text(r, e);
	return READY_SHOWN;
}

/* --- the command --- */

/* The kernel's part compares what comes before the first character that means others. */
static void set_pattern(struct request *q, const char *pattern)
{
	size_t n = strcspn(pattern, "*?[\\");

	q->pattern = pattern;
	q->is_glob = pattern[n];
	snprintf(q->prefix, sizeof(q->prefix), "%.*s", (int)(n < 4096 ? n : 4096), pattern);
}

struct args {
	struct ready r;
	struct request q;
};

static int check(struct ready *r, const char *word, struct error *e)
{
	(void)e;
	if (word)
		set_pattern(r->own, word);
	return 0;
}

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;

	q->x.prefix = q->prefix;
	q->x.latency = !q->quick;
	return watch_open_load(&r->options, &q->x, &r->watch, e);
}

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	if (q->pattern)
		return -ENOTSUP;
	script_open(q->x.failed_only, f);
	return 0;
}

static int run_open(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .word = "pattern",
		      .heading = "TIME                PID COMM               TOOK RESULT  FLAGS "
				 "AND MODE                NAME\n",
		      .check = check,
		      .write_script = write_script,
		      .no_script = "a script compares texts as wholes: expected no pattern, but "
				   "perhaps 'if' in the script",
		      .load = load,
		      .put = put,
		      .own = &a.q},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	return status;
}

static const struct opt options[] = {
	{"failed", 'x', OPT_FLAG, NULL, "only those that failed",
	 offsetof(struct args, q.x.failed_only), NULL},
	{"quick", 0, OPT_FLAG, NULL,
	 "do not measure how long they take: other system calls are then slowed down half as much",
	 offsetof(struct args, q.quick), NULL},
};

const struct command cmd_trace_open = {
	.name = "trace open",
	.about = "print which files are opened, and how",
	.run = run_open,
	.syntax =
		{
			.usage = "ax trace open [PATTERN] [-x] [-p PID] [-c CMD] [-d TIME] [-n N]",
			.about = "Prints each open(), openat(), openat2() and creat() with its "
				 "result: the descriptor or the error. A PATTERN with *, ? or [] "
				 "has to match the name as the program gave it (* goes over "
				 "slashes too), another one its beginning. [5]/name is below the "
				 "directory of descriptor 5.\n"
				 "\n"
				 "Not seen: files that are opened by io_uring, by handles "
				 "(open_by_handle_at), or by programs for 32 bits.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, ARRAY_SIZE(ready_opts), offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPT_OUTPUT - TRACE_OPT_APP,
				 offsetof(struct args, r.args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct args, r.args)}},
			.args = {&words_file},
		},
};
