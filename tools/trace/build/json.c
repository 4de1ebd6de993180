// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build json: all that is in a trace, an object a line. */
#include <sys/wait.h>

#include "tools/trace/build/build.h"

#define NS UINT64_C(1000000000)

static const char *const kinds[AX_BUILD_TYPES] = {
	[AX_BUILD_FORK] = "fork",	  [AX_BUILD_EXEC] = "exec",
	[AX_BUILD_EXIT] = "exit",	  [AX_BUILD_INHERIT] = "inherit",
	[AX_BUILD_NO_EXEC] = "exec",	  [AX_BUILD_OPEN] = "open",
	[AX_BUILD_RENAME] = "rename",	  [AX_BUILD_LINK] = "link",
	[AX_BUILD_SYMLINK] = "symlink",	  [AX_BUILD_UNLINK] = "unlink",
	[AX_BUILD_MKDIR] = "mkdir",	  [AX_BUILD_RMDIR] = "rmdir",
	[AX_BUILD_MKNOD] = "mknod",	  [AX_BUILD_CHDIR] = "chdir",
	[AX_BUILD_TRUNCATE] = "truncate", [AX_BUILD_CHMOD] = "chmod",
};

static void put_key(struct trace_out *o, const char *key)
{
	trace_out_text(o, ",\"");
	trace_out_text(o, key);
	trace_out_text(o, "\":");
}

static void put_string(struct trace_out *o, const char *key, const char *text)
{
	if (!text)
		return;
	put_key(o, key);
	trace_out_json(o, text, strlen(text));
}

static void put_number(struct trace_out *o, const char *key, int64_t v)
{
	put_key(o, key);
	trace_out_end(o, trace_write_s64(trace_out_room(o, TRACE_NUMBER_MAX), v));
}

static void put_words(struct trace_out *o, const char *key, const struct build_words *w)
{
	put_key(o, key);
	trace_out_char(o, '[');
	for (size_t at = 0; at < w->len; at += strlen(w->v + at) + 1) {
		if (at)
			trace_out_char(o, ',');
		trace_out_json(o, w->v + at, strlen(w->v + at));
	}
	trace_out_char(o, ']');
}

static void put_exec(struct trace_out *o, const struct build_cmd *c)
{
	put_string(o, "file", c->file);
	put_string(o, "exe", c->exe);
	put_string(o, "cwd", c->cwd);
	put_words(o, "argv", &c->argv);
	put_words(o, "env", &c->env);
	if (c->flags & AX_BUILD_32BIT)
		trace_out_text(o, ",\"bits\":32");
	if (!c->complete)
		trace_out_text(o, ",\"complete\":false");
}

static void put_exit(struct trace_out *o, const struct build_cmd *c)
{
	int status = (int)c->status;

	if (WIFSIGNALED(status))
		put_number(o, "signal", WTERMSIG(status));
	else
		put_number(o, "status", WEXITSTATUS(status));
	put_number(o, "duration_ns", (int64_t)(c->end_ns - c->start_ns));
}

static void put_call(struct trace_out *o, const struct build_event *ev)
{
	put_number(o, "ret", ev->ret);
	put_string(o, "path", ev->path);
	put_string(o, "path2", ev->path2);
	put_string(o, "name", ev->name);
	put_string(o, "name2", ev->name2);
	put_number(o, "flags", (int64_t)ev->flags);
	put_number(o, "mode", ev->mode);
	if (ev->file_mode)
		put_number(o, "file_mode", ev->file_mode);
}

void build_put_json(struct build_view *v, const struct build_event *ev)
{
	const struct build_cmd *c = &v->build.cmds[ev->cmd];
	uint64_t ns = ev->time_ns + (uint64_t)v->build.head.real_offset_ns;
	struct trace_out *o = &v->out;

	trace_out_printf(o, "{\"time\":%llu.%09llu,\"event\":\"%s\"", (unsigned long long)(ns / NS),
			 (unsigned long long)(ns % NS), kinds[ev->type]);
	put_number(o, "pid", c->pid);
	put_number(o, "tid", ev->tid);
	put_number(o, "command", ev->cmd);
	if (ev->type == AX_BUILD_FORK) {
		put_number(o, "child", v->build.cmds[ev->other].pid);
		put_number(o, "child_command", ev->other);
	} else if (ev->type == AX_BUILD_EXEC) {
		put_exec(o, c);
	} else if (ev->type == AX_BUILD_EXIT) {
		put_exit(o, c);
	} else {
		put_call(o, ev);
	}
	trace_out_text(o, "}\n");
}

static void put_totals(struct build_view *v)
{
	const struct ax_build_end *n = &v->build.totals;
	struct trace_out *o = &v->out;

	trace_out_printf(o, "{\"emitted\":%llu,\"received\":%llu,\"dropped\":%llu",
			 (unsigned long long)n->emitted, (unsigned long long)n->received,
			 (unsigned long long)n->dropped);
	put_number(o, "missed", (int64_t)n->missed);
	put_number(o, "cut", (int64_t)n->cut);
	put_number(o, "unfollowed", (int64_t)n->unfollowed);
	put_number(o, "status", n->status);
	trace_out_printf(o, ",\"whole\":%s}\n", v->build.whole ? "true" : "false");
}

static int run_json(struct cmd *c, int argc, char **argv)
{
	struct build_view v = {.c = c, .system = true, .secret = true, .out.fd = -1};
	int status;

	if (!cmd_begin(c, &v, &argc, argv, &status))
		return status;
	cmd_output();
	if (build_view_begin(&v, 1, argc, argv, &status)) {
		for (size_t i = 0; i < v.build.n_events; i++)
			build_put_json(&v, &v.build.events[i]);
		put_totals(&v);
		status = CMD_OK;
	}
	return build_view_end(&v, status);
}

const struct command cmd_build_json = {
	.name = "trace build json",
	.about = "print all that is in a trace, an object a line",
	.run = run_json,
	.syntax =
		{
			.usage = "ax trace build json [-O FILE] FILE",
			.about = "Prints every event with all that is known of it, in order of "
				 "time: \"command\" is the number of what a process was between "
				 "two execs, \"path\" and \"path2\" are absolute, \"name\" and "
				 "\"name2\" are what the program asked for. The last line has "
				 "the numbers of events.",
			.own = {{build_opts, 1, 0}},
			.args = {&words_file},
		},
};
