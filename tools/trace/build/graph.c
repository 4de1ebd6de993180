// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build graph: programs and files for Graphviz, or drawn by it. */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "probes/build/graph.h"
#include "probes/build/path.h"
#include "tools/trace/build/build.h"
#include "tools/trace/build/collapse.h"
#include "tools/trace/build/defaults.h"

enum graph_kind { GRAPH_DOT, GRAPH_SVG };

struct graph {
	struct build_view v;
	int kind;
	bool processes;
	uint32_t boxes; /* at most so many of commands and files; 0: as many as there are */
	struct collapse collapse;
	struct build_graph b;
	pid_t dot; /* Graphviz's, 0: it is not asked */
};

/* --- text --- */

/* In quotes. What no terminal would show is not shown here either. */
static void put_bytes(struct graph *g, const char *text, size_t n)
{
	struct trace_out *o = &g->v.out;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			trace_out_char(o, '\\');
		trace_out_char(o, c < ' ' || c > '~' ? '?' : (char)c);
	}
}

static void put_text(struct graph *g, const char *text, size_t most)
{
	put_bytes(g, text, strnlen(text, most));
	if (strlen(text) > most)
		trace_out_text(&g->v.out, "...");
}

/* Its words; in a box, where there is little room, those that are paths by their last parts: the
 * files stand beside it. */
static void command_text(const struct build_cmd *c, bool box, char (*ret)[BUILD_LABEL_MAX])
{
	size_t n = 0;

	for (size_t at = 0; at < c->argv.len && n < sizeof(*ret) - 1;
	     at += strlen(c->argv.v + at) + 1) {
		const char *word = c->argv.v + at;
		bool shorter = !at || (box && word[0] == '/' && *path_base(word));

		n += (size_t)snprintf(*ret + n, sizeof(*ret) - n, "%s%s", at ? " " : "",
				      shorter ? path_base(word) : word);
	}
	if (!c->argv.len)
		snprintf(*ret, sizeof(*ret), "%s", path_base(c->file));
}

/* Of many, what they have in common: of a long text the first word and the last ones. */
static void put_common(struct graph *g, uint32_t cmd)
{
	char shape[BUILD_LABEL_MAX];
	const char *end;
	size_t n;

	collapse_label(&g->collapse, cmd, shape, sizeof(shape));
	n = strlen(shape);
	if (n <= BUILD_COMMAND_SHOWN) {
		put_bytes(g, shape, n);
		return;
	}
	end = shape + n - BUILD_COMMAND_SHOWN + BUILD_PROGRAM_SHOWN;
	end += strcspn(end, " ");
	put_bytes(g, shape, strcspn(shape, " "));
	trace_out_text(&g->v.out, " ...");
	put_bytes(g, end, strlen(end));
}

static void put_command(struct graph *g, uint32_t cmd)
{
	const struct build_cmd *c = &g->v.build.cmds[cmd];
	uint32_t n = g->b.cmd_n[cmd];
	char label[BUILD_LABEL_MAX];
	int status = (int)c->status;

	trace_out_printf(&g->v.out, "  c%u [shape=box, label=\"", cmd);
	command_text(c, true, &label);
	if (n > 1) {
		put_common(g, cmd);
		trace_out_printf(&g->v.out, "\\n(%u commands)\", penwidth=2, tooltip=\"", n);
		trace_out_printf(&g->v.out, "%u commands, the first one: ", n);
	} else {
		put_text(g, label, BUILD_COMMAND_SHOWN);
		trace_out_text(&g->v.out, "\", tooltip=\"");
	}
	trace_out_printf(&g->v.out, "process %u: ", c->pid);
	command_text(c, false, &label);
	put_text(g, label, sizeof(label));
	trace_out_printf(&g->v.out, "\"%s];\n",
			 c->ended && status ? ", color=red, fontcolor=red" : "");
}

/* --- files, by their directories --- */

/* One that stands for itself alone has its own name. */
static const char *file_name(struct graph *g, uint32_t file)
{
	const struct build_node *n = &g->v.build.nodes[file];
	const char *name = collapse_file(&g->collapse, n);

	if (!name)
		return "?";
	if (g->b.file_n[file] == 1 && !collapse_is_system(&g->collapse, n))
		name = n->path;
	return build_view_name(&g->v, name);
}

static size_t directory_len(const char *name)
{
	size_t n = strlen(name) - strlen(path_base(name));

	return n > 1 ? n - 1 : n;
}

static int by_directory(const void *a, const void *b, void *arg)
{
	const char *x = file_name(arg, *(const uint32_t *)a);
	const char *y = file_name(arg, *(const uint32_t *)b);
	size_t nx = directory_len(x), ny = directory_len(y);
	int c = strncmp(x, y, nx < ny ? nx : ny);

	if (c || nx != ny)
		return c ? c : nx < ny ? -1 : 1;
	return strcmp(x, y);
}

static void put_file(struct graph *g, uint32_t file, const char *name)
{
	const struct build_node *n = &g->v.build.nodes[file];

	trace_out_printf(&g->v.out, "    f%u [label=\"", file);
	put_text(g, directory_len(name) ? path_base(name) : name, BUILD_LABEL_MAX);
	if (g->b.file_n[file] > 1 && !collapse_is_system(&g->collapse, n))
		trace_out_printf(&g->v.out, " (%u)", g->b.file_n[file]);
	trace_out_text(&g->v.out, "\", tooltip=\"");
	put_text(g, name, BUILD_LABEL_MAX);
	trace_out_printf(&g->v.out, "\"%s%s];\n",
			 g->b.made_n[file] == g->b.file_n[file] ? ", style=filled" : "",
			 n->gone && g->b.file_n[file] == 1 ? ", fontcolor=gray" : "");
}

static void put_files(struct graph *g)
{
	struct build_graph *b = &g->b;
	const char *last = NULL;

	qsort_r(b->files, b->n_files, sizeof(*b->files), by_directory, g);
	for (size_t i = 0; i < b->n_files; i++) {
		const char *name = file_name(g, b->files[i]);
		size_t n = directory_len(name);

		if (!last || directory_len(last) != n || strncmp(last, name, n) != 0) {
			trace_out_printf(&g->v.out, "%s  subgraph cluster_%zu {\n    label=\"",
					 last ? "  }\n" : "", i);
			put_bytes(g, n ? name : ".", n ? n : 1);
			trace_out_text(&g->v.out, "\";\n");
		}
		put_file(g, b->files[i], name);
		last = name;
	}
	if (last)
		trace_out_text(&g->v.out, "  }\n");
}

static void put_edge(struct graph *g, const struct build_edge *e)
{
	struct trace_out *o = &g->v.out;

	switch (e->kind) {
	case BUILD_EDGE_READ:
		trace_out_printf(o, "  f%u -> c%u;\n", e->file, e->cmd);
		return;
	case BUILD_EDGE_RUN:
		trace_out_printf(o, "  f%u -> c%u [style=dashed];\n", e->file, e->cmd);
		return;
	case BUILD_EDGE_WRITE:
		trace_out_printf(o, "  c%u -> f%u [color=blue];\n", e->cmd, e->file);
		return;
	default:
		trace_out_printf(o, "  c%u -> c%u [style=dotted, color=gray];\n", e->cmd, e->file);
	}
}

/* What is not drawn as it was is said in the picture itself. */
static void put_title(struct graph *g)
{
	size_t cmds = 0, files = 0;

	for (size_t i = 0; i < g->b.n_cmds; i++)
		cmds += g->b.cmd_n[g->b.cmds[i]];
	for (size_t i = 0; i < g->b.n_files; i++)
		files += g->b.file_n[g->b.files[i]];
	if (!g->collapse.level)
		return;
	trace_out_printf(
		&g->v.out,
		"  labelloc=t;\n"
		"  label=\"%zu commands are drawn as %zu boxes (those that are alike as one), "
		"and %zu files as %zu ellipses (those of a directory as one): "
		"--boxes 0 draws each\";\n",
		cmds, g->b.n_cmds, files, g->b.n_files);
}

static void put_graph(struct graph *g)
{
	struct trace_out *o = &g->v.out;

	trace_out_text(o, "digraph build {\n"
			  "  rankdir=LR;\n"
			  "  node [fontname=\"sans-serif\", fontsize=10, fillcolor=lightyellow];\n"
			  "  graph [fontname=\"sans-serif\", fontsize=10, color=gray];\n");
	put_title(g);
	for (size_t i = 0; i < g->b.n_cmds; i++)
		put_command(g, g->b.cmds[i]);
	put_files(g);
	for (size_t i = 0; i < g->b.n_edges; i++)
		put_edge(g, &g->b.edges[i]);
	trace_out_text(o, "}\n");
}

/* --- Graphviz --- */

/* What is written goes to dot, and what dot writes where it would have gone. */
static int start_dot(struct graph *g, struct error *e)
{
	char name[] = "dot", option[] = "-Tsvg", *args[] = {name, option, NULL};
	posix_spawn_file_actions_t files;
	int p[2], err;

	if (pipe2(p, O_CLOEXEC) < 0)
		return error_set(e, -errno, "no pipe can be made: %s", strerror(errno));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, p[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, g->v.out.fd, STDOUT_FILENO);
	err = posix_spawnp(&g->dot, name, &files, NULL, args, environ);
	posix_spawn_file_actions_destroy(&files);
	close(p[0]);
	if (err) {
		g->dot = 0;
		close(p[1]);
		return error_set(e, -err,
				 "Graphviz's 'dot' cannot be executed: %s; install graphviz, or "
				 "take -o dot and draw it elsewhere",
				 strerror(err));
	}
	if (g->v.out.fd > STDERR_FILENO)
		close(g->v.out.fd);
	g->v.out.fd = p[1];
	return 0;
}

static int end_dot(struct graph *g, struct error *e)
{
	int status = 0;

	if (!g->dot)
		return 0;
	trace_out_flush(&g->v.out);
	close(g->v.out.fd);
	g->v.out.fd = STDOUT_FILENO;
	while (waitpid(g->dot, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return error_set(e, -EIO,
			 "Graphviz's 'dot' could not draw it: show less of it with --only and "
			 "--except");
}

/* --- the command --- */

static bool is_small(const struct graph *g)
{
	return !g->boxes || (g->b.n_cmds + g->b.n_files <= g->boxes &&
			     g->b.n_edges <= (size_t)g->boxes * BUILD_GRAPH_EDGES);
}

static int make(struct graph *g)
{
	struct build_graph_options o = {.processes = g->processes,
					.name = collapse_file,
					.group = collapse_command,
					.arg = &g->collapse};
	int err = collapse_begin(&g->collapse, &g->v, g->processes);

	if (err == 0)
		err = build_graph_make(&g->v.build, &o, &g->b);
	while (err == 0 && !is_small(g) && collapse_more(&g->collapse)) {
		build_graph_free(&g->b);
		err = build_graph_make(&g->v.build, &o, &g->b);
	}
	return err;
}

static int draw(struct graph *g)
{
	struct error e = {0};
	int err = make(g);

	if (err < 0)
		return cmd_failed(g->v.c, &(struct error){.text = "out of memory"});
	err = g->kind == GRAPH_SVG ? start_dot(g, &e) : 0;
	if (err == 0) {
		put_graph(g);
		err = end_dot(g, &e);
	}
	return err < 0 ? cmd_failed(g->v.c, &e) : CMD_OK;
}

static int run_graph(struct cmd *c, int argc, char **argv)
{
	struct graph g = {.v = {.c = c, .out.fd = -1}, .boxes = BUILD_GRAPH_BOXES};
	int status;

	if (!cmd_begin(c, &g, &argc, argv, &status))
		return status;
	cmd_output();
	if (build_view_begin(&g.v, 1, argc, argv, &status))
		status = draw(&g);
	build_graph_free(&g.b);
	collapse_end(&g.collapse);
	return build_view_end(&g.v, status);
}

static const char *const kinds[] = {"dot", "svg", NULL}; /* enum graph_kind */
static const struct words kind_words = {.choices = kinds};

static const struct opt options[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "dot (the default), Graphviz's language, or svg, which its dot draws",
	 offsetof(struct graph, kind), &kind_words},
	{"processes", 'p', OPT_FLAG, NULL, "each process, not only what make and its like started",
	 offsetof(struct graph, processes), NULL},
	{"boxes", 0, OPT_NUMBER, "N",
	 "draw like commands, and files of a directory, as one where there are more than so many "
	 "boxes and ellipses: 100; 0: never",
	 offsetof(struct graph, boxes), NULL},
};

const struct command cmd_build_graph = {
	.name = "trace build graph",
	.about = "print a graph of commands and files, for Graphviz or as SVG",
	.run = run_graph,
	.syntax =
		{
			.usage = "ax trace build graph [-o dot|svg] [-p] [--boxes N] [--only GLOB] "
				 "[--except GLOB] [--system] [-O FILE] FILE",
			.about =
				"Prints a graph: boxes are commands (with what they started), "
				"red if they failed; ellipses are files, in a frame for each "
				"directory, filled if the build made them. Files that only one "
				"command knew and removed are left out, and so are those of the "
				"system; with --system a directory of the system is one file. "
				"Where "
				"it would be too large to be read, commands that are alike are one "
				"box, and files of a directory one ellipse, with their number: the "
				"graph says so.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{build_opts, BUILD_OPTS, offsetof(struct graph, v)}},
			.args = {&words_file},
		},
};
