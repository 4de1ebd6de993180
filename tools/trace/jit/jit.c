// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace jit: what becomes executable while programs run, as it was then. */
#include <sys/mman.h>
#include <sys/resource.h>

#include "probes/jit/defaults.h"
#include "tools/trace/jit/jit.h"
#include "tools/trace/ready/ready.h"

#define AGAIN_MS     100
#define AGAIN_MIN_MS 10
#define BYTES_IN_MB  (1024ull * 1024)

struct request {
	const char *path;
	uint32_t again_ms, max_mb;
	struct jit_dir dir;
	struct jit_capture *capture;
	uint64_t files;
};

/* --- what is kept --- */

static void on_written(void *arg, const struct jitdump_code *c, uint64_t seen_ns)
{
	struct request *q = arg;

	jit_dir_begin(&q->dir, "code", c->time_ns, c->pid, c->tid);
	jit_dir_hex(&q->dir, "address", c->address);
	jit_dir_number(&q->dir, "size", c->size);
	jit_dir_number(&q->dir, "index", c->index);
	jit_dir_number(&q->dir, "offset", c->offset);
	jit_dir_number(&q->dir, "seen_ns", seen_ns);
	jit_dir_end(&q->dir);
}

static void put_file(struct request *q, uint32_t pid, uint32_t tid, uint64_t time_ns,
		     struct jit_map *m)
{
	jit_map_build_id(pid, m);
	jit_dir_begin(&q->dir, "file", time_ns, pid, tid);
	jit_dir_hex(&q->dir, "address", m->start);
	jit_dir_number(&q->dir, "size", m->end - m->start);
	jit_dir_number(&q->dir, "offset", m->offset);
	jit_dir_text(&q->dir, "path", m->path);
	if (m->build_id[0])
		jit_dir_text(&q->dir, "build_id", m->build_id);
	jit_dir_end(&q->dir);
	q->files++;
}

struct wanted_map {
	uint64_t address;
	struct jit_map found;
};

static int is_wanted(void *arg, uint32_t pid, const struct jit_map *m)
{
	struct wanted_map *w = arg;

	(void)pid;
	if (w->address < m->start || w->address >= m->end)
		return 0;
	w->found = *m;
	return 1;
}

/* A file's name is asked for when its mapping is told, which may be gone by then. */
static void see_file(struct request *q, const struct ax_jit_event *ev)
{
	struct wanted_map w = {.address = ev->address};

	if (jit_maps_each(ev->number, is_wanted, &w) == 1 && w.found.path[0] == '/') {
		put_file(q, ev->number, ev->head.tid, ev->head.time_ns, &w.found);
		return;
	}
	jit_dir_begin(&q->dir, "file", ev->head.time_ns, ev->number, ev->head.tid);
	jit_dir_hex(&q->dir, "address", ev->address);
	jit_dir_number(&q->dir, "size", ev->length);
	jit_dir_end(&q->dir);
	q->files++;
}

static void see_executable(struct request *q, const struct ax_jit_event *ev)
{
	bool changes = ev->prot & PROT_WRITE || ev->shared;

	if (ev->kind == AX_JIT_MMAP && ev->file && !changes) {
		see_file(q, ev);
		return;
	}
	jit_dir_begin(&q->dir, "executable", ev->head.time_ns, ev->number, ev->head.tid);
	jit_dir_hex(&q->dir, "address", ev->address);
	jit_dir_number(&q->dir, "size", ev->length);
	jit_dir_text(&q->dir, "call", ev->kind == AX_JIT_MMAP ? "mmap" : "mprotect");
	if (ev->prot & PROT_WRITE)
		jit_dir_text(&q->dir, "writable", "here");
	else if (ev->shared)
		jit_dir_text(&q->dir, "writable", "elsewhere");
	jit_dir_end(&q->dir);
	if (!changes) {
		if (ev->hidden)
			jit_capture_hidden(q->capture, ev->number, ev->address,
					   ev->address + ev->length, ev->head.time_ns);
		return;
	}
	jit_capture_watch(q->capture, ev->number, ev->address, ev->address + ev->length,
			  ev->head.time_ns);
	if (ev->file || ev->hidden)
		jit_capture_range(q->capture, ev->number, ev->address, ev->address + ev->length);
}

static void see_event(struct request *q, const struct ax_jit_event *ev)
{
	jit_capture_flush(q->capture);
	switch (ev->kind) {
	case AX_JIT_MMAP:
	case AX_JIT_MPROTECT:
		see_executable(q, ev);
		return;
	case AX_JIT_PROGRAM:
		jit_dir_begin(&q->dir, "exec", ev->head.time_ns, ev->number, ev->head.tid);
		jit_capture_forget(q->capture, ev->number);
		break;
	case AX_JIT_GONE:
		jit_dir_begin(&q->dir, "gone", ev->head.time_ns, ev->number, ev->head.tid);
		jit_dir_hex(&q->dir, "address", ev->address);
		jit_dir_number(&q->dir, "size", ev->length);
		jit_capture_unwatch(q->capture, ev->number, ev->address, ev->address + ev->length);
		break;
	case AX_JIT_FORK:
		jit_dir_begin(&q->dir, "fork", ev->head.time_ns, ev->number, ev->number);
		jit_dir_number(&q->dir, "parent", ev->parent);
		jit_capture_fork(q->capture, ev->parent, ev->number, ev->head.time_ns);
		break;
	default:
		jit_dir_begin(&q->dir, "exit", ev->head.time_ns, ev->number, ev->head.tid);
		jit_capture_forget(q->capture, ev->number);
		break;
	}
	jit_dir_end(&q->dir);
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_jit_page *page = record;
	const struct ax_jit_event *ev = record;
	struct request *q = r->own;

	if (!page->no_time) {
		if (len >= sizeof(*page) && page->number)
			jit_capture_page(q->capture, page->number, page->tid, page->time_ns,
					 page->address, page->data);
		return READY_PART;
	}
	if (len < sizeof(*ev) || ev->head.type != AX_WATCH_JIT || !ev->number)
		return READY_HIDDEN;
	see_event(q, ev);
	return READY_SHOWN;
}

/* --- what was there before --- */

static int see_map(void *arg, uint32_t pid, const struct jit_map *map)
{
	struct request *q = arg;
	struct jit_map m = *map;

	if (jit_map_is_file(&m)) {
		put_file(q, pid, pid, time_mono_ns(), &m);
		return 0;
	}
	if (streq(m.path, "[vdso]") || streq(m.path, "[vsyscall]"))
		return 0;
	if (m.write || m.shared)
		jit_capture_watch(q->capture, pid, m.start, m.end, time_mono_ns());
	jit_capture_range(q->capture, pid, m.start, m.end);
	return 0;
}

static void see_process(void *arg, uint32_t pid)
{
	jit_maps_each(pid, see_map, arg);
}

static int after_attach(struct ready *r, struct error *e)
{
	(void)e;
	for (size_t i = 0; !r->child.pid && i < r->whom.n; i++)
		jit_maps_tree(r->whom.v[i], !r->alone, see_process, r->own);
	return 0;
}

/* --- the run --- */

static void look(struct ready *r)
{
	struct request *q = r->own;

	jit_capture_look(q->capture, 0);
	jit_dir_flush(&q->dir);
}

static int at_end(struct ready *r, struct error *e)
{
	(void)e;
	look(r);
	return 0;
}

static int check(struct ready *r, const char *word, struct error *e)
{
	struct request *q = r->own;

	(void)word;
	if (!r->args.pid.n && !r->args.command)
		return error_set(e, -EINVAL, "expected -p or -c: whose code is to be kept");
	if (!q->path)
		return error_set(e, -EINVAL, "expected -o with a directory that is to be made");
	if (q->again_ms && q->again_ms < AGAIN_MIN_MS)
		return error_set(e, -EINVAL, "--again is less than %d ms", AGAIN_MIN_MS);
	if (!q->max_mb)
		return error_set(e, -EINVAL, "--max 0 would keep nothing");
	return 0;
}

/* Two files are open of each process. A command has its own limits by now. */
static void open_many(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;
	struct jit_capture_options o = {
		.writer = &q->dir.dump,
		.max_bytes = q->max_mb * BYTES_IN_MB,
		.written = on_written,
		.arg = q,
	};
	int err = watch_jit_load(&r->options, &r->watch, e);

	r->look_ms = q->again_ms;
	q->dir.index_max = o.max_bytes;
	open_many();
	if (err == 0)
		err = jit_dir_make(&q->dir, q->path, e);
	return err < 0 ? err : jit_capture_new(&o, &q->capture, e);
}

static void put_more(struct ready *r)
{
	struct request *q = r->own;
	const struct jit_counts *n = jit_capture_counts(q->capture);

	jit_capture_flush(q->capture);
	fprintf(stderr, "\n%llu pages in %llu pieces of code, %llu unchanged; %llu files",
		(unsigned long long)n->pages, (unsigned long long)n->pieces,
		(unsigned long long)n->same, (unsigned long long)q->files);
	if (n->left_out)
		fprintf(stderr, "; %llu pages more than --max allows",
			(unsigned long long)n->left_out);
	if (n->too_many)
		fprintf(stderr, "; %llu pages were too many to be told apart",
			(unsigned long long)n->too_many);
	if (n->unread)
		fprintf(stderr,
			"; %llu ranges could be executed but not read, and were gone before they "
			"were looked at",
			(unsigned long long)n->unread);
	if (q->dir.left_out)
		fprintf(stderr, "; %llu lines of the index more than --max allows",
			(unsigned long long)q->dir.left_out);
}

struct args {
	struct ready r;
	struct request q;
};

static int run_jit(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .check = check,
		      .load = load,
		      .put = put,
		      .after_attach = after_attach,
		      .look = look,
		      .at_end = at_end,
		      .put_more = put_more,
		      .cut = " pieces of code are missing",
		      .poll_ms = WATCH_JIT_POLL_MS,
		      .own = &a.q},
		.q = {.again_ms = AGAIN_MS, .max_mb = JIT_DEFAULT_MAX_MB, .dir = JIT_NO_DIR},
	};
	int status = ready_command(&a.r, argc, argv), err = 0;
	struct error e = {0};

	if (a.q.capture)
		err = jit_capture_counts(a.q.capture)->error;
	if (a.q.dir.index.buf)
		jit_dir_flush(&a.q.dir);
	if (!err && a.q.dir.index.error)
		err = -a.q.dir.index.error;
	ready_end(&a.r);
	jit_capture_free(a.q.capture);
	jit_dir_close(&a.q.dir);
	if (!err)
		return status;
	error_set(&e, err, "'%.200s' could not be written: %s; what is in it is not all", a.q.path,
		  strerror(-err));
	return cmd_failed(c, &e);
}

static const struct opt options[] = {
	{"dir", 'o', OPT_STRING, "DIR", "the directory to make, for what is found",
	 offsetof(struct args, q.path), &words_directory},
	{"again", 0, OPT_SPAN, "TIME",
	 "how often code is looked at that can be written while it is executable: 100ms",
	 offsetof(struct args, q.again_ms), NULL},
	{"max", 0, OPT_NUMBER, "MIB", "keep no more than so many MiB of code, and of index: 1024",
	 offsetof(struct args, q.max_mb), NULL},
};

const struct command cmd_trace_jit = {
	.name = "trace jit",
	.about = "keep the code that programs make while they run",
	.run = run_jit,
	.syntax =
		{
			.usage = "ax trace jit -o DIR (-p PID | -c CMD) [--again TIME] [-d TIME]",
			.about = "Copies what becomes executable in a process and in those that it "
				 "starts, with its time and address, before it can be executed; "
				 "and each later version of it. DIR gets jit-NUMBER.dump, in the "
				 "format jitdump, which 'perf inject --jit' and 'ax trace "
				 "perfdata flow --jit' read, and index.jsonl, which says what is "
				 "in it, and which files were mapped.\n"
				 "\n"
				 "Code that is written while it is executable, there or by "
				 "another mapping of the same memory, is looked at every 100 ms "
				 "(--again) and when the process ends: versions in between are "
				 "not seen.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, READY_OPTS_TABLE, offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], 2, offsetof(struct args, r.args)}},
		},
};
