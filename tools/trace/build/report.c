// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build report: what happened, by time; and with --files who made and who read what. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "probes/build/path.h"
#include "tools/trace/build/build.h"
#include "tools/trace/ready/ready.h"

#define WORDS_SHOWN 200 /* bytes of a command where it is not the matter */

struct report {
	struct build_view v;
	bool files, failed, all;
};

/* --- by time --- */

static void put_time(struct report *r, uint64_t ns)
{
	uint64_t us = ns > r->v.build.head.start_ns ? (ns - r->v.build.head.start_ns) / 1000 : 0;

	trace_out_printf(&r->v.out, "%5llu.%06llu ", (unsigned long long)(us / 1000000),
			 (unsigned long long)(us % 1000000));
}

static void put_safe(struct report *r, const char *text)
{
	trace_out_safe(&r->v.out, text, strlen(text));
}

static void put_name(struct report *r, const char *path)
{
	put_safe(r, build_view_name(&r->v, path));
}

static void put_head(struct report *r, const struct build_event *ev, const char *what)
{
	const char *name = build_cmd_name(&r->v.build, ev->cmd);

	put_time(r, ev->time_ns);
	trace_out_printf(&r->v.out, "%7u ", r->v.build.cmds[ev->cmd].pid);
	trace_out_safe(&r->v.out, name, strnlen(name, 15));
	for (size_t n = strnlen(name, 15); n < 15; n++)
		trace_out_char(&r->v.out, ' ');
	trace_out_printf(&r->v.out, " %-8s ", what);
}

static void put_status(struct report *r, const struct build_cmd *c)
{
	char buf[TRACE_DURATION_MAX];
	int status = (int)c->status;
	const char *name;

	if (WIFSIGNALED(status)) {
		name = sigabbrev_np(WTERMSIG(status));
		trace_out_printf(&r->v.out, "SIG%s", name ? name : "?");
	} else {
		trace_out_printf(&r->v.out, "%d", WEXITSTATUS(status));
	}
	trace_out_printf(&r->v.out, " after %s", trace_duration_text(c->end_ns - c->start_ns, buf));
}

static const char *open_word(const struct build_event *ev)
{
	if (S_ISDIR(ev->file_mode))
		return "list";
	if (ev->flags & O_PATH)
		return "find";
	switch (ev->flags & O_ACCMODE) {
	case O_RDONLY:
		return ev->flags & (O_CREAT | O_TRUNC) ? "create" : "read";
	case O_WRONLY:
		return "write";
	default:
		return "update";
	}
}

static const char *event_word(const struct build_event *ev)
{
	switch (ev->type) {
	case AX_BUILD_FORK:
		return "fork";
	case AX_BUILD_EXEC:
	case AX_BUILD_NO_EXEC:
		return "exec";
	case AX_BUILD_EXIT:
		return "exit";
	case AX_BUILD_INHERIT:
		return "inherit";
	case AX_BUILD_OPEN:
		return open_word(ev);
	case AX_BUILD_CHDIR:
		return "cd";
	default:
		return build_change_word(ev->type);
	}
}

static void put_paths(struct report *r, const struct build_event *ev)
{
	char buf[32];

	if (ev->type == AX_BUILD_INHERIT)
		trace_out_printf(&r->v.out, "%lld ", (long long)ev->ret);
	if (ev->type == AX_BUILD_CHMOD || ev->type == AX_BUILD_MKDIR)
		trace_out_printf(&r->v.out, "%04o ", ev->mode & 07777);
	put_name(r, ev->path);
	if (ev->type == AX_BUILD_SYMLINK) {
		trace_out_text(&r->v.out, " -> ");
		put_safe(r, ev->name ? ev->name : "");
	} else if (ev->path2) {
		trace_out_text(&r->v.out, ev->type == AX_BUILD_LINK ? " as " : " to ");
		put_name(r, ev->path2);
	}
	if (ev->type == AX_BUILD_TRUNCATE)
		trace_out_printf(&r->v.out, " to %llu bytes", (unsigned long long)ev->flags);
	if (ev->ret < 0)
		trace_out_printf(&r->v.out, ": %s", ready_errno((int)-ev->ret, buf));
}

static bool is_shown(const struct report *r, const struct build_event *ev)
{
	bool filtered = r->v.only.n;

	if (ev->type == AX_BUILD_FORK || ev->type == AX_BUILD_EXIT || ev->type == AX_BUILD_EXEC)
		return !filtered && (ev->type != AX_BUILD_FORK || r->all);
	if (ev->ret < 0 && !r->failed)
		return false;
	if (!r->all && (ev->type == AX_BUILD_INHERIT || ev->type == AX_BUILD_CHDIR))
		return false;
	return build_view_shows(&r->v, ev->path) ||
	       (ev->path2 && build_view_shows(&r->v, ev->path2));
}

static void put_event(struct report *r, const struct build_event *ev)
{
	const struct build_cmd *c = &r->v.build.cmds[ev->cmd];

	put_head(r, ev, event_word(ev));
	if (ev->type == AX_BUILD_FORK) {
		trace_out_printf(&r->v.out, "%u", r->v.build.cmds[ev->other].pid);
	} else if (ev->type == AX_BUILD_EXIT) {
		put_status(r, c);
	} else if (ev->type == AX_BUILD_EXEC) {
		build_view_words(&r->v, &c->argv, 0);
		if (c->flags & AX_BUILD_32BIT)
			trace_out_text(&r->v.out,
				       " (of 32 bits: what it does with files is not known)");
	} else {
		put_paths(r, ev);
	}
	trace_out_char(&r->v.out, '\n');
}

static void put_events(struct report *r)
{
	trace_out_text(&r->v.out, "        TIME     PID PROGRAM         WHAT\n");
	for (size_t i = 0; i < r->v.build.n_events; i++)
		if (is_shown(r, &r->v.build.events[i]))
			put_event(r, &r->v.build.events[i]);
}

/* --- by file --- */

static const char *access_word(uint32_t access)
{
	if (access & BUILD_WRITE)
		return access & BUILD_READ ? "updated by" : "made by";
	if (access & BUILD_READ)
		return "read by";
	if (access & BUILD_RUN)
		return "executed as";
	if (access & BUILD_MOVE)
		return "renamed by";
	return access & BUILD_REMOVE ? "removed by" : "changed by";
}

static void put_use(struct report *r, const struct build_use *u)
{
	uint32_t program = build_program(&r->v.build, u->cmd);

	trace_out_printf(&r->v.out, "    %-12s%7u  ", access_word(u->access),
			 r->v.build.cmds[u->cmd].pid);
	if (program == BUILD_NONE)
		trace_out_text(&r->v.out, "?");
	else
		build_view_words(&r->v, &r->v.build.cmds[program].argv, WORDS_SHOWN);
	trace_out_char(&r->v.out, '\n');
}

/* The same command opens a file more than once. */
static bool is_repeated(const struct build *b, const struct build_node *n, size_t i)
{
	const struct build_use *u = &b->uses[n->first + i];

	for (size_t k = i; k-- > 0;) {
		const struct build_use *before = &b->uses[n->first + k];

		if (before->cmd == u->cmd && before->access == u->access)
			return true;
		if (i - k > 64)
			return false;
	}
	return false;
}

static void put_file(struct report *r, const struct build_node *n)
{
	const struct build *b = &r->v.build;

	put_name(r, n->path);
	if (n->born) {
		trace_out_text(&r->v.out, " (first ");
		put_name(r, n->born);
		trace_out_char(&r->v.out, ')');
	}
	if (n->gone)
		trace_out_text(&r->v.out, " (gone)");
	trace_out_char(&r->v.out, '\n');
	for (size_t i = 0; i < n->n; i++)
		if (!is_repeated(b, n, i))
			put_use(r, &b->uses[n->first + i]);
}

static int by_path(const void *a, const void *b)
{
	const struct build_node *const *x = a, *const *y = b;
	int c = strcmp((*x)->path, (*y)->path);

	return c ? c : (*x > *y) - (*x < *y);
}

static int put_files(struct report *r)
{
	const struct build *b = &r->v.build;
	autofree const struct build_node **v = calloc(b->n_nodes + 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_nodes; i++)
		if (b->nodes[i].n && build_view_shows(&r->v, b->nodes[i].path))
			v[n++] = &b->nodes[i];
	qsort(v, n, sizeof(*v), by_path);
	for (size_t i = 0; i < n; i++)
		put_file(r, v[i]);
	return 0;
}

/* --- the command --- */

static int run_report(struct cmd *c, int argc, char **argv)
{
	struct report r = {.v = {.c = c, .out.fd = -1}};
	int status;

	if (!cmd_begin(c, &r, &argc, argv, &status))
		return status;
	cmd_output();
	if (build_view_begin(&r.v, 1, argc, argv, &status)) {
		if (r.files && put_files(&r) < 0)
			status = cmd_failed(c, &(struct error){.text = "out of memory"});
		else
			status = CMD_OK;
		if (!r.files)
			put_events(&r);
	}
	return build_view_end(&r.v, status);
}

static const struct opt options[] = {
	{"files", 'f', OPT_FLAG, NULL, "for each file who made it, who read it, who removed it",
	 offsetof(struct report, files), NULL},
	{"failed", 'x', OPT_FLAG, NULL, "calls that failed, too", offsetof(struct report, failed),
	 NULL},
	{"all", 'a', OPT_FLAG, NULL,
	 "forks, changes of directory, and files that an exec left open, too",
	 offsetof(struct report, all), NULL},
};

const struct command cmd_build_report = {
	.name = "trace build report",
	.about = "print what happened by time, or who made and who read each file",
	.run = run_report,
	.syntax =
		{
			.usage = "ax trace build report [-f] [-a] [-x] [--only GLOB] [--except "
				 "GLOB] [--system] FILE",
			.about = "Prints what the programs of a build did, in order of time: "
				 "what was executed, how it ended, and which files were read, "
				 "written, renamed and removed. Paths below the directory where "
				 "the build began are shown relative to it.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{build_opts, BUILD_OPTS, offsetof(struct report, v)}},
			.args = {&words_file},
		},
};
