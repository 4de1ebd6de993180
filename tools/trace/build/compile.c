// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build compile-commands: what clangd, clang-tidy and others want to know. */
#include "probes/build/compile.h"
#include "probes/build/path.h"
#include "tools/trace/build/build.h"

static void put_string(struct trace_out *o, const char *key, const char *text)
{
	trace_out_printf(o, "    \"%s\": ", key);
	trace_out_json(o, text, strlen(text));
	trace_out_text(o, ",\n");
}

static void put_arguments(struct trace_out *o, const struct build_cmd *c, size_t first)
{
	const char *arg;

	trace_out_text(o, "    \"arguments\": [");
	for (size_t i = first; (arg = build_arg(c, i)); i++) {
		if (i > first)
			trace_out_text(o, ", ");
		trace_out_json(o, arg, strlen(arg));
	}
	trace_out_text(o, "]\n");
}

/* The same file, compiled once more to the same: what was said last holds. */
static bool is_said_again(const struct build *b, const struct build_compile *v, size_t i, size_t n)
{
	const char *output = v[i].output ? v[i].output : "";

	for (size_t k = i + 1; k < n; k++) {
		const char *cwd = b->cmds[v[k].cmd].cwd, *own = b->cmds[v[i].cmd].cwd;

		if (streq(v[k].source, v[i].source) &&
		    streq(v[k].output ? v[k].output : "", output) && cwd && own && streq(cwd, own))
			return true;
	}
	return false;
}

static int put_commands(struct build_view *v)
{
	autofree struct build_compile *compiles = NULL;
	struct trace_out *o = &v->out;
	size_t n = 0, shown = 0;
	int err = build_compiles(&v->build, &compiles, &n);

	if (err < 0)
		return err;
	trace_out_char(o, '[');
	for (size_t i = 0; i < n; i++) {
		const struct build_cmd *c = &v->build.cmds[compiles[i].cmd];
		autofree char *path =
			path_join(c->cwd, compiles[i].source, strlen(compiles[i].source));

		if (!path)
			return -ENOMEM;
		if (is_said_again(&v->build, compiles, i, n) || !build_view_shows(v, path))
			continue;
		trace_out_text(o, shown++ ? ",\n  {\n" : "\n  {\n");
		put_string(o, "directory", c->cwd ? c->cwd : "/");
		put_string(o, "file", compiles[i].source);
		if (compiles[i].output)
			put_string(o, "output", compiles[i].output);
		put_arguments(o, c, compiles[i].first);
		trace_out_text(o, "  }");
	}
	trace_out_text(o, "\n]\n");
	return 0;
}

static int run_compile_commands(struct cmd *c, int argc, char **argv)
{
	struct build_view v = {.c = c, .out.fd = -1};
	int status;

	if (!cmd_begin(c, &v, &argc, argv, &status))
		return status;
	cmd_output();
	if (build_view_begin(&v, 1, argc, argv, &status))
		status = put_commands(&v) < 0
				 ? cmd_failed(c, &(struct error){.text = "out of memory"})
				 : CMD_OK;
	return build_view_end(&v, status);
}

const struct command cmd_build_compile_commands = {
	.name = "trace build compile-commands",
	.about = "print the compilations of a build as compile_commands.json",
	.run = run_compile_commands,
	.syntax =
		{
			.usage = "ax trace build compile-commands [--only GLOB] [--except GLOB] "
				 "[--system] [-O FILE] FILE",
			.about = "Prints a compilation database, as clangd and clang-tidy read it: "
				 "an entry for each source file that a C, C++ or Objective-C "
				 "compiler was given. A compiler that was started by another one "
				 "(ccache, a wrapper) for the same file is left out.",
			.own = {{build_opts, BUILD_OPTS, 0}},
			.args = {&words_file},
		},
};
