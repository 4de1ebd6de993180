/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A build as a graph of steps (or commands) and files. */
#ifndef AX_PROBES_BUILD_GRAPH_H
#define AX_PROBES_BUILD_GRAPH_H

#include "probes/build/build.h"

enum build_edge_kind {
	BUILD_EDGE_READ, /* from a file to a command */
	BUILD_EDGE_RUN,
	BUILD_EDGE_WRITE, /* from a command to a file */
	BUILD_EDGE_START, /* from a command to another */
};
struct build_edge {
	uint32_t cmd, file; /* file: of BUILD_EDGE_START the other command */
	enum build_edge_kind kind;
};

struct build_graph_options {
	bool processes; /* each command, not only steps */
	/* The name under which a file is in the graph, NULL: it is not. Files with the same name
	 * are one. What it returns lives as long as the graph. */
	const char *(*name)(void *arg, const struct build_node *n);
	/* The same of a command, NULL: it is drawn alone. */
	const char *(*group)(void *arg, uint32_t cmd);
	void *arg;
};

struct build_graph {
	uint32_t *cmds; /* those that have an edge, the first one of each group, in order */
	size_t n_cmds;
	uint32_t *files; /* the first one of each name, by name */
	size_t n_files;
	/* By the number of each of these: for how many it stands, and how many files were made. */
	uint32_t *cmd_n, *file_n, *made_n;
	struct build_edge *edges; /* each once */
	size_t n_edges;
};
int build_graph_make(const struct build *b, const struct build_graph_options *o,
		     struct build_graph *ret);
void build_graph_free(struct build_graph *g);

#endif
