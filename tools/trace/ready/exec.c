// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace exec: every command that is executed, as it can be typed. */
#include <signal.h>
#include <sys/wait.h>

#include "tools/trace/ready/ready.h"
#include "tools/trace/ready/scripts.h"
#include "probes/build/path.h"
#include "probes/watch/exec.h"

#define TEXTS_MAX   (16u << 20) /* the kernel's limit for both is far below */
#define KINDS	    (AX_EXEC_CWD + 1)
#define COLLECT_MAX 4096 /* processes whose pieces are here, but not their event */

/* Pieces of an event that has not come yet. */
struct text {
	char *buf;
	size_t len, size;
	bool gap;
};
struct pending {
	uint32_t pid;
	struct text texts[KINDS];
};
struct collection {
	struct pending *v;
	size_t n, size;
};

struct request {
	struct watch_exec_options x;
	struct collection collected;
};

/* --- pieces --- */

static void pending_free(struct pending *p)
{
	for (size_t i = 0; i < KINDS; i++)
		free(p->texts[i].buf);
}

static struct pending *find_pending(struct collection *c, uint32_t pid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].pid == pid)
			return &c->v[i];
	return NULL;
}

static struct pending *add_pending(struct collection *c, uint32_t pid)
{
	if (c->n == COLLECT_MAX) { /* their events were dropped */
		pending_free(&c->v[0]);
		memmove(c->v, c->v + 1, --c->n * sizeof(*c->v));
	}
	if (c->n == c->size) {
		size_t size = c->size ? 2 * c->size : 16;
		struct pending *v = realloc(c->v, size * sizeof(*v));

		if (!v)
			return NULL;
		c->v = v;
		c->size = size;
	}
	c->v[c->n] = (struct pending){.pid = pid};
	return &c->v[c->n++];
}

static void drop_pending(struct collection *c, struct pending *p)
{
	if (!p)
		return;
	pending_free(p);
	*p = c->v[--c->n];
}

/* Room for a NUL behind what is there. */
static int text_grow(struct text *t, size_t len)
{
	size_t size = t->size ? t->size : 256;
	char *buf;

	while (size < len + 1)
		size *= 2;
	if (size == t->size)
		return 0;
	buf = realloc(t->buf, size);
	if (!buf)
		return -ENOMEM;
	t->buf = buf;
	t->size = size;
	return 0;
}

static int add_piece(struct collection *c, const struct ax_exec_piece *piece, size_t room)
{
	struct pending *p = find_pending(c, piece->pid);
	struct text *t;

	if (!p)
		p = add_pending(c, piece->pid);
	if (!p)
		return -ENOMEM;
	if (piece->what >= KINDS || piece->len > room || piece->offset > TEXTS_MAX)
		return READY_PART;
	t = &p->texts[piece->what];
	if (piece->offset == 0) { /* what was there belongs to an event that was dropped */
		t->len = 0;
		t->gap = false;
	}
	if (piece->offset != t->len) {
		t->gap = true;
		return READY_PART;
	}
	if (text_grow(t, t->len + piece->len) < 0)
		return -ENOMEM;
	memcpy(t->buf + t->len, piece->data, piece->len);
	t->len += piece->len;
	t->buf[t->len] = '\0';
	return READY_PART;
}

static bool is_complete(const struct text *t, uint64_t len)
{
	return !t->gap && t->len == len;
}

/* --- what is written --- */

static void put_words(struct trace_out *o, const struct text *t)
{
	for (size_t at = 0; at < t->len;) {
		size_t n = strlen(t->buf + at);

		if (at)
			trace_out_char(o, ' ');
		ready_shell_word(o, t->buf + at, n);
		at += n + 1;
	}
}

static void put_json_words(struct ready *r, const char *key, const struct text *t)
{
	trace_out_printf(&r->out, ",\"%s\":[", key);
	for (size_t at = 0; at < t->len;) {
		size_t n = strlen(t->buf + at);

		if (at)
			trace_out_char(&r->out, ',');
		trace_out_json(&r->out, t->buf + at, n);
		at += n + 1;
	}
	trace_out_char(&r->out, ']');
}

struct exec_view {
	const struct ax_exec_event *e;
	const struct text *file, *argv, *env;
	char *cwd;
	bool complete;
};

static void put_text(struct ready *r, const struct exec_view *v)
{
	const struct ax_exec_event *e = v->e;
	char buf[32];

	ready_time(r, e->head.time_ns);
	ready_number(r, e->head.pid, 7);
	ready_number(r, e->head.ppid, 7);
	ready_number(r, e->head.uid, 5);
	ready_cell_safe(r, e->head.comm, strnlen(e->head.comm, sizeof(e->head.comm)), 15);
	ready_cell(r, e->ret ? ready_errno(-e->ret, buf) : "0", 7);
	if (v->cwd) {
		trace_out_text(&r->out, "cd ");
		ready_shell_word(&r->out, v->cwd, strlen(v->cwd));
		trace_out_text(&r->out, " && ");
	}
	if (v->env->len) {
		trace_out_text(&r->out, "env -i ");
		put_words(&r->out, v->env);
		trace_out_char(&r->out, ' ');
	}
	if (v->argv->len)
		put_words(&r->out, v->argv);
	else if (v->file->len)
		ready_shell_word(&r->out, v->file->buf, strlen(v->file->buf));
	trace_out_text(&r->out, v->complete ? "\n" : " ...\n");
}

static void put_json(struct ready *r, const struct exec_view *v)
{
	const struct ax_exec_event *e = v->e;

	ready_json_head(r, &e->head, "exec");
	ready_json_number(r, "ret", e->ret);
	if (v->file->len)
		ready_json_string(r, "file", v->file->buf, strlen(v->file->buf));
	put_json_words(r, "argv", v->argv);
	if (e->env_len)
		put_json_words(r, "env", v->env);
	if (v->cwd)
		ready_json_string(r, "cwd", v->cwd, strlen(v->cwd));
	trace_out_text(&r->out, v->complete ? "}\n" : ",\"complete\":false}\n");
}

static int put_exec(struct ready *r, struct collection *c, const struct ax_exec_event *e)
{
	struct pending *p = find_pending(c, e->head.pid);
	static const struct text none;
	struct exec_view v = {.e = e, .file = &none, .argv = &none, .env = &none};
	const struct text *cwd = &none;

	if (p) {
		v.file = &p->texts[AX_EXEC_FILE];
		v.argv = &p->texts[AX_EXEC_ARGV];
		v.env = &p->texts[AX_EXEC_ENV];
		cwd = &p->texts[AX_EXEC_CWD];
	}
	v.complete = is_complete(v.argv, e->argv_len) && is_complete(v.env, e->env_len) &&
		     !(e->flags & AX_EXEC_MORE_ARGS);
	if (cwd->size)
		v.cwd = path_of_names(cwd->buf, cwd->len, e->flags & AX_EXEC_DEEP_CWD);
	if (r->json)
		put_json(r, &v);
	else
		put_text(r, &v);
	free(v.cwd);
	drop_pending(c, p);
	return READY_SHOWN;
}

static void put_exit_text(struct ready *r, const struct ax_exit_event *e)
{
	int status = (int)e->status;
	char buf[32];

	ready_time(r, e->head.time_ns);
	ready_number(r, e->head.pid, 7);
	ready_number(r, e->head.ppid, 7);
	ready_number(r, e->head.uid, 5);
	ready_cell_safe(r, e->head.comm, strnlen(e->head.comm, sizeof(e->head.comm)), 15);
	if (WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));

		snprintf(buf, sizeof(buf), "SIG%s", name ? name : "?");
		if (!name)
			snprintf(buf, sizeof(buf), "signal %d", WTERMSIG(status));
	} else {
		snprintf(buf, sizeof(buf), "exit %d", WEXITSTATUS(status));
	}
	ready_cell(r, buf, 7);
	trace_out_text(&r->out, "after ");
	trace_out_text(&r->out, trace_duration_text(e->duration_ns, buf));
	trace_out_char(&r->out, '\n');
}

static int put_exit(struct ready *r, const struct ax_exit_event *e)
{
	int status = (int)e->status;

	if (!r->json) {
		put_exit_text(r, e);
		return READY_SHOWN;
	}
	ready_json_head(r, &e->head, "exit");
	if (WIFSIGNALED(status))
		ready_json_number(r, "signal", WTERMSIG(status));
	else
		ready_json_number(r, "status", WEXITSTATUS(status));
	ready_json_number(r, "duration_ns", (int64_t)e->duration_ns);
	trace_out_text(&r->out, "}\n");
	return READY_SHOWN;
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_exec_piece *piece = record;
	const struct ax_watch_head *h = record;

	if (len >= sizeof(*piece) && piece->no_time == 0)
		return add_piece(&((struct request *)r->own)->collected, piece,
				 len - sizeof(*piece));
	if (len >= sizeof(struct ax_exec_event) && h->type == AX_WATCH_EXEC)
		return put_exec(r, &((struct request *)r->own)->collected, record);
	if (len >= sizeof(struct ax_exit_event) && h->type == AX_WATCH_EXIT)
		return put_exit(r, record);
	return READY_HIDDEN;
}

/* --- the command --- */

struct args {
	struct ready r;
	struct request q;
};

static int load(struct ready *r, struct error *e)
{
	const struct request *q = r->own;

	return watch_exec_load(&r->options, &q->x, &r->watch, e);
}

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	if (q->x.env || q->x.cwd || q->x.exits)
		return -ENOTSUP;
	script_exec(q->x.failed, f);
	return 0;
}

static int run_exec(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .heading = "TIME                PID    PPID   UID COMM            RET     "
				 "COMMAND\n",
		      .write_script = write_script,
		      .no_script =
			      "environments, directories and how commands end are put together "
			      "by 'ax trace exec' alone: expected no option but -x",
		      .load = load,
		      .put = put,
		      .own = &a.q},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	for (size_t i = 0; i < a.q.collected.n; i++)
		pending_free(&a.q.collected.v[i]);
	free(a.q.collected.v);
	return status;
}

static const struct opt options[] = {
	{"env", 'e', OPT_FLAG, NULL, "show the environment too", offsetof(struct args, q.x.env),
	 NULL},
	{"cwd", 0, OPT_FLAG, NULL, "show the current directory too", offsetof(struct args, q.x.cwd),
	 NULL},
	{"failed", 'x', OPT_FLAG, NULL, "show also commands that could not be executed, and why",
	 offsetof(struct args, q.x.failed), NULL},
	{"exit", 0, OPT_FLAG, NULL, "show also how and when the commands ended that were seen",
	 offsetof(struct args, q.x.exits), NULL},
};

const struct command cmd_trace_exec = {
	.name = "trace exec",
	.about = "print every command that is executed, with all arguments",
	.run = run_exec,
	.syntax =
		{
			.usage = "ax trace exec [-p PID] [-c CMD] [-e] [--cwd] [-x] [--exit] [-d "
				 "TIME] [-n N]",
			.about = "Prints every command that is executed, with all of its "
				 "arguments as a shell takes them back: with --cwd and --env a "
				 "line repeats the command where and as it was. Of commands that "
				 "failed (--failed), the first 8 KiB of arguments are shown.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, ARRAY_SIZE(ready_opts), offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPT_OUTPUT - TRACE_OPT_APP,
				 offsetof(struct args, r.args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct args, r.args)}},
		},
};
