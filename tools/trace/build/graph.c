// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build graph: programs and files for Graphviz, or drawn by it. */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "probes/build/graph.h"
#include "probes/build/path.h"
#include "tools/trace/build/build.h"
#include "tools/trace/build/defaults.h"

enum graph_kind { GRAPH_DOT, GRAPH_SVG };

struct graph {
	struct build_view v;
	int kind;
	bool processes;
	char **names; /* of directories that stand for what is below them */
	size_t n_names, names_size;
	pid_t dot; /* Graphviz's, 0: it is not asked */
};

/* --- names --- */

/* Of the system, all below the first two directories is one: /usr/include/... */
static const char *collapsed(struct graph *g, const char *path)
{
	size_t n = 0;
	char name[BUILD_LABEL_MAX], *kept;

	for (int slashes = 0; path[n] && n < sizeof(name) - 8; n++)
		if (path[n] == '/' && ++slashes == 3)
			break;
	snprintf(name, sizeof(name), "%.*s%s", (int)n, path, path[n] ? "/..." : "");
	for (size_t i = 0; i < g->n_names; i++)
		if (streq(g->names[i], name))
			return g->names[i];
	if (g->n_names == g->names_size) {
		size_t size = g->names_size ? 2 * g->names_size : 64;
		char **more = reallocarray(g->names, size, sizeof(*more));

		if (!more)
			return NULL;
		g->names = more;
		g->names_size = size;
	}
	kept = strdup(name);
	if (kept)
		g->names[g->n_names++] = kept;
	return kept;
}

static const char *name_file(void *arg, const struct build_node *n)
{
	struct graph *g = arg;

	if (!build_view_shows(&g->v, n->path))
		return NULL;
	if (g->v.only.n || !path_is_system(n->path) || path_below(n->path, "/dev/null"))
		return n->path;
	return collapsed(g, n->path);
}

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

static void put_command(struct graph *g, uint32_t cmd)
{
	const struct build_cmd *c = &g->v.build.cmds[cmd];
	char label[BUILD_LABEL_MAX];
	int status = (int)c->status;
	size_t n = 0;

	for (size_t at = 0; at < c->argv.len && n < sizeof(label) - 1;
	     at += strlen(c->argv.v + at) + 1)
		n += (size_t)snprintf(label + n, sizeof(label) - n, "%s%s", at ? " " : "",
				      at ? c->argv.v + at : path_base(c->argv.v));
	if (!c->argv.len)
		snprintf(label, sizeof(label), "%s", path_base(c->file));
	trace_out_printf(&g->v.out, "  c%u [shape=box, label=\"", cmd);
	put_text(g, label, BUILD_COMMAND_SHOWN);
	trace_out_text(&g->v.out, "\", tooltip=\"");
	trace_out_printf(&g->v.out, "process %u: ", c->pid);
	put_text(g, label, sizeof(label));
	trace_out_printf(&g->v.out, "\"%s];\n",
			 c->ended && status ? ", color=red, fontcolor=red" : "");
}

/* --- files, by their directories --- */

static const char *file_name(struct graph *g, uint32_t file)
{
	const char *name = name_file(g, &g->v.build.nodes[file]);

	return name ? build_view_name(&g->v, name) : "?";
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
	trace_out_text(&g->v.out, "\", tooltip=\"");
	put_text(g, name, BUILD_LABEL_MAX);
	trace_out_printf(&g->v.out, "\"%s%s];\n", n->made ? ", style=filled" : "",
			 n->gone ? ", fontcolor=gray" : "");
}

static void put_files(struct graph *g, struct build_graph *b)
{
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

static void put_graph(struct graph *g, struct build_graph *b)
{
	struct trace_out *o = &g->v.out;

	trace_out_text(o, "digraph build {\n"
			  "  rankdir=LR;\n"
			  "  node [fontname=\"sans-serif\", fontsize=10, fillcolor=lightyellow];\n"
			  "  graph [fontname=\"sans-serif\", fontsize=10, color=gray];\n");
	for (size_t i = 0; i < b->n_cmds; i++)
		put_command(g, b->cmds[i]);
	put_files(g, b);
	for (size_t i = 0; i < b->n_edges; i++)
		put_edge(g, &b->edges[i]);
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

static int draw(struct graph *g)
{
	struct build_graph_options o = {.processes = g->processes, .name = name_file, .arg = g};
	struct build_graph b;
	struct error e = {0};
	int err = build_graph_make(&g->v.build, &o, &b);

	if (err < 0)
		return cmd_failed(g->v.c, &(struct error){.text = "out of memory"});
	err = g->kind == GRAPH_SVG ? start_dot(g, &e) : 0;
	if (err == 0) {
		put_graph(g, &b);
		err = end_dot(g, &e);
	}
	build_graph_free(&b);
	return err < 0 ? cmd_failed(g->v.c, &e) : CMD_OK;
}

static int run_graph(struct cmd *c, int argc, char **argv)
{
	struct graph g = {.v = {.c = c, .out.fd = -1}};
	int status;

	if (!cmd_begin(c, &g, &argc, argv, &status))
		return status;
	cmd_output();
	if (build_view_begin(&g.v, 1, argc, argv, &status))
		status = draw(&g);
	status = build_view_end(&g.v, status);
	for (size_t i = 0; i < g.n_names; i++)
		free(g.names[i]);
	free(g.names);
	return status;
}

static const char *const kinds[] = {"dot", "svg", NULL}; /* enum graph_kind */
static const struct words kind_words = {.choices = kinds};

static const struct opt options[] = {
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "dot (the default), Graphviz's language, or svg, which its dot draws",
	 offsetof(struct graph, kind), &kind_words},
	{"processes", 'p', OPT_FLAG, NULL, "each process, not only what make and its like started",
	 offsetof(struct graph, processes), NULL},
};

const struct command cmd_build_graph = {
	.name = "trace build graph",
	.about = "print a graph of commands and files, for Graphviz or as SVG",
	.run = run_graph,
	.syntax =
		{
			.usage = "ax trace build graph [-o dot|svg] [-p] [--only GLOB] [--except "
				 "GLOB] [--system] [-O FILE] FILE",
			.about = "Prints a graph: boxes are commands (with what they started), "
				 "red if they failed; ellipses are files, in a frame for each "
				 "directory, filled if the build made them. Files that only one "
				 "command knew and removed are left out, and so are those of the "
				 "system; with --system a directory of the system is one file.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{build_opts, BUILD_OPTS, offsetof(struct graph, v)}},
			.args = {&words_file},
		},
};
