// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build replay: a shell script that repeats one command, where it was and with its
 * environment. */
#include <fcntl.h>

#include "probes/build/deps.h"
#include "probes/build/needs.h"
#include "probes/build/path.h"
#include "tools/trace/build/build.h"
#include "tools/trace/ready/ready.h"

#define CHOICES_SHOWN 10

struct replay {
	struct build_view v;
};

/* --- which --- */

static bool is_number(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

/* By a process's number, by the name of a file that it made, or by a word of its command. */
static bool is_meant(const struct build *b, uint32_t cmd, const char *what)
{
	const struct build_cmd *c = &b->cmds[cmd];

	if (!c->executed)
		return false;
	if (is_number(what))
		return c->pid == strtoul(what, NULL, 10);
	for (size_t at = 0; at < c->argv.len; at += strlen(c->argv.v + at) + 1)
		if (strstr(c->argv.v + at, what))
			return true;
	return false;
}

/* The step that wrote the file of that name last. */
static uint32_t maker_of(const struct build_view *v, const char *what)
{
	const struct build *b = &v->build;
	uint32_t found = BUILD_NONE;

	for (size_t i = 0; i < b->n_nodes; i++) {
		const struct build_node *n = &b->nodes[i];

		if (n->gone || (!streq(n->path, what) && !streq(build_view_name(v, n->path), what)))
			continue;
		for (size_t k = 0; k < n->n; k++)
			if (b->uses[n->first + k].access & BUILD_WRITE)
				found = build_step(b, b->uses[n->first + k].cmd);
	}
	return found;
}

static void put_choices(struct replay *x, const char *what)
{
	const struct build *b = &x->v.build;
	size_t n = 0;

	for (uint32_t i = 0; i < b->n_cmds; i++) {
		if (!is_meant(b, i, what))
			continue;
		if (n++ == CHOICES_SHOWN) {
			trace_out_text(&x->v.out, "...\n");
			return;
		}
		trace_out_printf(&x->v.out, "%7u  ", b->cmds[i].pid);
		build_view_words(&x->v, &b->cmds[i].argv, 200);
		trace_out_char(&x->v.out, '\n');
	}
}

/* A process that executed more than one program is meant as the last of them. */
static uint32_t find(const struct replay *x, const char *what, bool *several)
{
	const struct build *b = &x->v.build;
	uint32_t found = is_number(what) ? BUILD_NONE : maker_of(&x->v, what);

	*several = false;
	if (found != BUILD_NONE)
		return found;
	for (uint32_t i = 0; i < b->n_cmds; i++) {
		if (!is_meant(b, i, what))
			continue;
		*several = found != BUILD_NONE && b->cmds[found].pid != b->cmds[i].pid;
		if (*several)
			return found;
		found = i;
	}
	return found;
}

/* --- the script --- */

static void put_word(struct replay *x, const char *word)
{
	ready_shell_word(&x->v.out, word, strlen(word));
}

/* True if the first argument alone finds the file, by the PATH of its environment. */
static bool is_found(const struct build_cmd *c, const char *first)
{
	const char *path = build_env(c, "PATH");
	size_t n = strlen(c->file) - strlen(path_base(c->file));

	if (strchr(first, '=')) /* env would take it for a variable */
		return false;
	if (streq(first, c->file) && strchr(first, '/'))
		return true;
	if (strchr(first, '/') || !streq(first, path_base(c->file)) || !path || n < 2)
		return false;
	for (const char *p = path; *p; p += strcspn(p, ":"), p += *p == ':')
		if (strcspn(p, ":") == n - 1 && !strncmp(p, c->file, n - 1))
			return true;
	return false;
}

static void put_env(struct replay *x, const struct build_cmd *c)
{
	trace_out_text(&x->v.out, "exec env -i -- \\\n");
	for (size_t at = 0; at < c->env.len; at += strlen(c->env.v + at) + 1) {
		if (!strchr(c->env.v + at, '='))
			continue;
		trace_out_text(&x->v.out, "\t");
		put_word(x, c->env.v + at);
		trace_out_text(&x->v.out, " \\\n");
	}
	trace_out_text(&x->v.out, "\t");
}

/* A program whose name is not that of its file. What was opened by a descriptor has a name in the
 * trace alone. */
static void put_renamed(struct replay *x, const struct build_cmd *c)
{
	const char *file = path_below(c->file, "/dev/fd") ? c->exe : c->file;

	trace_out_text(&x->v.out, "/bin/bash -c 'exec -a \"$1\" -- \"$0\" \"${@:2}\"' ");
	if (!strchr(file, '/'))
		trace_out_text(&x->v.out, "./");
	put_word(x, file);
	trace_out_char(&x->v.out, ' ');
}

/* What was opened before the build began is not the command's: the terminal, the build's log. */
static bool was_opened(const struct build *b, const struct build_event *left)
{
	for (const struct build_event *ev = b->events; ev < left; ev++)
		if (ev->type == AX_BUILD_OPEN && ev->ret >= 0 && streq(ev->path, left->path))
			return true;
	return false;
}

/* Files that it was given open, as by a shell's redirections. */
static void put_redirections(struct replay *x, uint32_t cmd)
{
	const struct build *b = &x->v.build;

	for (size_t i = 0; i < b->n_events; i++) {
		const struct build_event *ev = &b->events[i];
		uint64_t how = ev->flags & O_ACCMODE;

		if (ev->type != AX_BUILD_INHERIT || ev->cmd != cmd || ev->ret > STDERR_FILENO ||
		    !was_opened(b, ev))
			continue;
		trace_out_printf(&x->v.out, " %d%s", (int)ev->ret,
				 how == O_RDONLY	? "<"
				 : how == O_RDWR	? "<>"
				 : ev->flags & O_APPEND ? ">>"
							: ">");
		put_word(x, ev->path);
	}
}

/* --- files that are gone --- */

/* How one asks a program to leave its temporary files. */
static const char *keeping(const char *name)
{
	static const char *const drivers[] = {"gcc", "g++", "cc", "c++", "clang", "clang++"};

	if (streq(name, "go"))
		return ", as 'go build -work' does,";
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (streq(name, drivers[i]))
			return ", as -save-temps does,";
	return "";
}

static void advise(const struct build *b, const struct build_need *n, char *ret, size_t size)
{
	switch (n->from) {
	case BUILD_NEED_ABOVE:
		snprintf(ret, size,
			 "process %u (%.60s) made and removed it: trace the build again so that it "
			 "leaves such files%s and repeat the process of that trace",
			 b->cmds[n->maker].pid, build_cmd_name(b, n->maker),
			 keeping(build_cmd_name(b, n->maker)));
		return;
	case BUILD_NEED_OTHER:
		snprintf(ret, size, "repeat process %u (%.60s) first, which made it",
			 b->cmds[n->maker].pid, build_cmd_name(b, n->maker));
		return;
	case BUILD_NEED_BEFORE:
		snprintf(ret, size, "it was older than the build, which removed it: put it back");
		return;
	default:
		snprintf(ret, size,
			 "the build made it: repeat first the process that did, which 'ax trace "
			 "build report --files' names");
	}
}

/* A program may say little of what it misses, and nothing of where that came from. */
static void put_needs(struct replay *x, uint32_t pid, const struct build_needs *needs)
{
	struct trace_out *o = &x->v.out;
	char advice[400];

	trace_out_printf(o,
			 "need() { # ADVICE FILE...: says which is the first that is not there\n"
			 "\tfor file in \"${@:2}\"; do\n"
			 "\t\ttest -e \"$file\" && continue\n"
			 "\t\tprintf 'process %u needs %%q, which is not there: %%s\\n' \"$file\" "
			 "\"$1\" >&2\n"
			 "\t\treturn 1\n"
			 "\tdone\n"
			 "}\n",
			 pid);
	for (size_t i = 0; i < needs->n; i++) {
		const struct build_need *n = &needs->v[i], *last = i ? n - 1 : NULL;

		if (!last || last->from != n->from || last->maker != n->maker) {
			advise(&x->v.build, n, advice, sizeof(advice));
			trace_out_text(o, last ? " &&\n\tneed " : "need ");
			put_word(x, advice);
		}
		trace_out_text(o, " \\\n\t\t");
		put_word(x, n->path);
	}
	trace_out_char(o, '\n');
}

static void put_dirs(struct replay *x, const struct build_needs *needs)
{
	trace_out_text(&x->v.out, "mkdir -p --");
	for (size_t i = 0; i < needs->n_dirs; i++) {
		trace_out_char(&x->v.out, ' ');
		ready_shell_word(&x->v.out, needs->dirs[i], needs->dirs_len[i]);
	}
	trace_out_text(&x->v.out, " || exit\n");
}

static void put_script(struct replay *x, uint32_t cmd, const struct build_needs *needs)
{
	const struct build_cmd *c = &x->v.build.cmds[cmd];
	const char *first = build_arg(c, 0);

	trace_out_printf(&x->v.out, "#!/bin/bash\n# process %u%s\n", c->pid,
			 c->complete ? "" : ", whose arguments or environment are not whole");
	if (needs->n)
		put_needs(x, c->pid, needs);
	if (needs->n_dirs)
		put_dirs(x, needs);
	if (c->cwd) {
		trace_out_text(&x->v.out, "cd ");
		put_word(x, c->cwd);
		trace_out_text(&x->v.out, " || exit\n");
	}
	put_env(x, c);
	if (!first || !is_found(c, first))
		put_renamed(x, c);
	build_view_words(&x->v, &c->argv, 0);
	put_redirections(x, cmd);
	trace_out_char(&x->v.out, '\n');
}

static int replay(struct replay *x, const char *what)
{
	struct build_needs needs;
	struct error e = {0};
	bool several;
	uint32_t cmd = find(x, what, &several);

	if (cmd == BUILD_NONE) {
		error_set(&e, -ENOENT,
			  "no command of the trace has the number or the word '%.100s', or made a "
			  "file of that name",
			  what);
		return cmd_failed(x->v.c, &e);
	}
	if (several) {
		put_choices(x, what);
		trace_out_flush(&x->v.out);
		error_set(&e, -EEXIST, "several commands have '%.100s': choose one by its number",
			  what);
		return cmd_failed(x->v.c, &e);
	}
	if (build_needs_make(&x->v.build, cmd, &needs) < 0) {
		error_set(&e, -ENOMEM, "out of memory");
		return cmd_failed(x->v.c, &e);
	}
	put_script(x, cmd, &needs);
	build_needs_free(&needs);
	return CMD_OK;
}

static int run_replay(struct cmd *c, int argc, char **argv)
{
	struct replay x = {.v = {.c = c, .out.fd = -1}};
	int status;

	if (!cmd_begin(c, &x, &argc, argv, &status))
		return status;
	if (argc == 1)
		return cmd_usage(c, "say what to repeat: a process's number, a file that it made, "
				    "or a word of its command");
	cmd_output();
	x.v.secret = true;
	if (build_view_begin(&x.v, 2, argc, argv, &status))
		status = replay(&x, argv[1]);
	return build_view_end(&x.v, status);
}

const struct command cmd_build_replay = {
	.name = "trace build replay",
	.about = "print a shell script that repeats one command with its environment",
	.run = run_replay,
	.syntax =
		{
			.usage = "ax trace build replay [-O SCRIPT] FILE PID|OUTPUT|WORD",
			.about = "Prints a script for bash that executes one of the build's "
				 "commands again: in its directory, with its arguments, with its "
				 "environment and nothing else, and with its input, output "
				 "and errors where a shell of the build had put them. It makes "
				 "directories that the build has removed, and says which file is "
				 "not there that the command needs, and what to do. The command "
				 "is named by "
				 "the number of its process, by a file that it made, or by a "
				 "part of one of its words that no other process has.",
			.own = {{build_opts, 1, 0}},
			.args = {&words_file},
		},
};
