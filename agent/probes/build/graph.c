// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/build/deps.h"
#include "probes/build/graph.h"
#include "probes/build/priv.h"

struct maker {
	const struct build *b;
	const struct build_graph_options *o;
	struct build_graph *g;
	uint32_t *file_as; /* the file of the same name that stands for it, or BUILD_NONE */
	uint32_t *alone;   /* of each command its step or program, or BUILD_NONE */
	uint32_t *cmd_as;  /* and what stands for that */
	bool *used;	   /* those of `alone` that are counted */
	size_t size;
};

static int add_edge(struct maker *m, uint32_t cmd, uint32_t file, enum build_edge_kind kind)
{
	struct build_graph *g = m->g;

	if (build_grow(&g->edges, g->n_edges, &m->size, sizeof(*g->edges)) < 0)
		return -ENOMEM;
	g->edges[g->n_edges++] = (struct build_edge){cmd, file, kind};
	return 0;
}

static bool is_own(const struct maker *m, const struct build_node *n)
{
	uint32_t first = BUILD_NONE;

	if (!n->made || !n->gone)
		return false;
	for (size_t i = 0; i < n->n; i++) {
		uint32_t cmd = m->cmd_as[m->b->uses[n->first + i].cmd];

		if (first == BUILD_NONE)
			first = cmd;
		else if (first != cmd)
			return false;
	}
	return true;
}

/* A file that only one command made, used and removed says nothing. */
static int name_files(struct maker *m)
{
	struct build_map by_name = {0};
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < m->b->n_nodes; i++) {
		const struct build_node *n = &m->b->nodes[i];
		const char *name;

		m->file_as[i] = BUILD_NONE;
		if (n->directory || is_own(m, n))
			continue;
		name = m->o->name(m->o->arg, n);
		if (!name)
			continue;
		m->file_as[i] = build_map_get(&by_name, name, 0);
		if (m->file_as[i] != BUILD_NONE)
			continue;
		m->file_as[i] = i;
		err = build_map_set(&by_name, name, 0, i);
	}
	free(by_name.v);
	return err;
}

/* What a command wrote before is its own when it reads it. */
static bool wrote_before(const struct maker *m, const struct build_node *n, size_t use)
{
	uint32_t cmd = m->cmd_as[m->b->uses[n->first + use].cmd];

	for (size_t i = 0; n->made && i < use; i++) {
		const struct build_use *u = &m->b->uses[n->first + i];

		if (u->access & (BUILD_WRITE | BUILD_MOVE) && m->cmd_as[u->cmd] == cmd)
			return true;
	}
	return false;
}

static int add_use(struct maker *m, uint32_t file, const struct build_use *u, bool own)
{
	uint32_t cmd = m->cmd_as[u->cmd];
	size_t before = m->g->n_edges;
	int err = 0;

	if (cmd == BUILD_NONE)
		return 0;
	if (u->access & BUILD_RUN && !m->b->nodes[file].made)
		return 0; /* a compiler's file is no news */
	if (u->access & (BUILD_READ | BUILD_RUN) && !own)
		err = add_edge(m, cmd, file,
			       u->access & BUILD_RUN ? BUILD_EDGE_RUN : BUILD_EDGE_READ);
	if (err == 0 && u->access & (BUILD_WRITE | BUILD_MOVE))
		err = add_edge(m, cmd, file, BUILD_EDGE_WRITE);
	if (m->g->n_edges > before && !m->used[m->alone[u->cmd]]) {
		m->used[m->alone[u->cmd]] = true;
		m->g->cmd_n[cmd]++;
	}
	return err;
}

/* A file that was made anew has been counted. */
static int count_file(struct maker *m, struct build_map *counted, uint32_t file)
{
	const struct build_node *n = &m->b->nodes[file];
	int err = 0;

	if (build_map_get(counted, n->path, false) == BUILD_NONE) {
		m->g->file_n[m->file_as[file]]++;
		err = build_map_set(counted, n->path, false, file);
	}
	if (err == 0 && n->made && build_map_get(counted, n->path, true) == BUILD_NONE) {
		m->g->made_n[m->file_as[file]]++;
		err = build_map_set(counted, n->path, true, file);
	}
	return err;
}

static int add_uses(struct maker *m)
{
	struct build_map counted = {0};
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < m->b->n_nodes; i++) {
		const struct build_node *n = &m->b->nodes[i];
		size_t before = m->g->n_edges;

		for (size_t k = 0; err == 0 && m->file_as[i] != BUILD_NONE && k < n->n; k++)
			err = add_use(m, m->file_as[i], &m->b->uses[n->first + k],
				      wrote_before(m, n, k));
		if (err == 0 && m->g->n_edges > before)
			err = count_file(m, &counted, i);
	}
	free(counted.v);
	return err;
}

static int by_edge(const void *a, const void *b)
{
	const struct build_edge *x = a, *y = b;

	if (x->cmd != y->cmd)
		return x->cmd < y->cmd ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

/* Each once. */
static void sort_edges(struct build_graph *g)
{
	size_t n = 0;

	if (g->n_edges)
		qsort(g->edges, g->n_edges, sizeof(*g->edges), by_edge);
	for (size_t i = 0; i < g->n_edges; i++)
		if (!n || by_edge(&g->edges[n - 1], &g->edges[i]))
			g->edges[n++] = g->edges[i];
	g->n_edges = n;
}

static int list_used(struct maker *m)
{
	const struct build *b = m->b;
	struct build_graph *g = m->g;
	autofree bool *cmds = calloc(b->n_cmds + 1, 1), *files = calloc(b->n_nodes + 1, 1);

	g->cmds = calloc(b->n_cmds + 1, sizeof(*g->cmds));
	g->files = calloc(b->n_nodes + 1, sizeof(*g->files));
	if (!cmds || !files || !g->cmds || !g->files)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_edges; i++) {
		cmds[g->edges[i].cmd] = true;
		files[g->edges[i].file] = true;
	}
	for (uint32_t i = 0; i < b->n_cmds; i++)
		if (cmds[i])
			g->cmds[g->n_cmds++] = i;
	for (uint32_t i = 0; i < b->n_nodes; i++)
		if (files[i])
			g->files[g->n_files++] = i;
	return 0;
}

/* Who started whom, of those that are there: those between them are left out. */
static int add_starts(struct maker *m)
{
	const struct build *b = m->b;
	struct build_graph *g = m->g;
	autofree bool *there = calloc(b->n_cmds + 1, 1);
	int err = there ? 0 : -ENOMEM;

	for (size_t i = 0; err == 0 && i < g->n_cmds; i++)
		there[g->cmds[i]] = true;
	for (uint32_t i = 0; err == 0 && i < b->n_cmds; i++) {
		uint32_t up = b->cmds[i].parent;

		if (m->alone[i] != i || !there[m->cmd_as[i]])
			continue;
		while (up != BUILD_NONE && (m->alone[up] != up || !there[m->cmd_as[up]]))
			up = b->cmds[up].parent;
		if (up != BUILD_NONE && m->cmd_as[up] != m->cmd_as[i])
			err = add_edge(m, m->cmd_as[up], m->cmd_as[i], BUILD_EDGE_START);
	}
	return err;
}

static int group_commands(struct maker *m)
{
	struct build_map by_name = {0};
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < m->b->n_cmds; i++) {
		const char *name =
			m->alone[i] == i && m->o->group ? m->o->group(m->o->arg, i) : NULL;

		m->cmd_as[i] = name ? build_map_get(&by_name, name, 0) : m->alone[i];
		if (!name || m->cmd_as[i] != BUILD_NONE)
			continue;
		m->cmd_as[i] = i;
		err = build_map_set(&by_name, name, 0, i);
	}
	free(by_name.v);
	for (uint32_t i = 0; err == 0 && i < m->b->n_cmds; i++)
		if (m->alone[i] != i && m->alone[i] != BUILD_NONE)
			m->cmd_as[i] = m->cmd_as[m->alone[i]];
	return err;
}

static int make(struct maker *m)
{
	const struct build *b = m->b;
	int err;

	for (uint32_t i = 0; i < b->n_cmds; i++)
		m->alone[i] =
			m->o->processes ? build_program(b, build_actor(b, i)) : build_step(b, i);
	err = group_commands(m);
	if (err == 0)
		err = name_files(m);
	if (err == 0)
		err = add_uses(m);
	sort_edges(m->g);
	if (err == 0)
		err = list_used(m);
	if (err == 0 && m->o->processes) {
		err = add_starts(m);
		sort_edges(m->g);
	}
	return err;
}

static int find_room(struct maker *m)
{
	const struct build *b = m->b;
	struct build_graph *g = m->g;

	m->file_as = calloc(b->n_nodes + 1, sizeof(*m->file_as));
	m->alone = calloc(b->n_cmds + 1, sizeof(*m->alone));
	m->cmd_as = calloc(b->n_cmds + 1, sizeof(*m->cmd_as));
	m->used = calloc(b->n_cmds + 1, sizeof(*m->used));
	g->cmd_n = calloc(b->n_cmds + 1, sizeof(*g->cmd_n));
	g->file_n = calloc(b->n_nodes + 1, sizeof(*g->file_n));
	g->made_n = calloc(b->n_nodes + 1, sizeof(*g->made_n));
	return m->file_as && m->alone && m->cmd_as && m->used && g->cmd_n && g->file_n && g->made_n
		       ? 0
		       : -ENOMEM;
}

int build_graph_make(const struct build *b, const struct build_graph_options *o,
		     struct build_graph *ret)
{
	struct maker m = {.b = b, .o = o, .g = ret};
	int err;

	*ret = (struct build_graph){0};
	err = find_room(&m);
	if (err == 0)
		err = make(&m);
	free(m.file_as);
	free(m.alone);
	free(m.cmd_as);
	free(m.used);
	if (err < 0)
		build_graph_free(ret);
	return err;
}

void build_graph_free(struct build_graph *g)
{
	free(g->cmds);
	free(g->files);
	free(g->edges);
	free(g->cmd_n);
	free(g->file_n);
	free(g->made_n);
	*g = (struct build_graph){0};
}
