// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as the trace of a build: every text of a record lies inside of them, and what is made
 * of them refers to nothing that is not there. */
#include "probes/build/compile.h"
#include "probes/build/deps.h"
#include "probes/build/graph.h"
#include "probes/build/log.h"
#include "probes/build/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_text(const struct build_text *t, const uint8_t *data, size_t size)
{
	const uint8_t *v = (const uint8_t *)t->v;

	check(!t->len || (v >= data && v <= data + size && t->len <= (size_t)(data + size - v)));
}

static void check_records(const uint8_t *data, size_t size)
{
	struct build_record r;
	struct build_log l;
	struct error e = {0};
	int got;

	if (build_log_begin(&l, data, size, &e) < 0) {
		check(*e.text != 0);
		return;
	}
	while ((got = build_log_next(&l, &r, &e)) == 1) {
		if (!r.time_ns)
			check_text(&r.piece.data, data, size);
		else if (r.type == AX_BUILD_EXEC)
			check_text(&r.exec.exe, data, size);
		else if (r.type > AX_BUILD_EXIT && r.type != AX_BUILD_END)
			for (size_t i = 0; i < AX_BUILD_TEXTS; i++)
				check_text(&r.path.text[i], data, size);
	}
	check(got == 0 || *e.text);
}

static const char *name(void *arg, const struct build_node *n)
{
	(void)arg;
	return path_is_system(n->path) ? NULL : n->path;
}

static void check_events(const struct build *b)
{
	for (size_t i = 0; i < b->n_events; i++) {
		const struct build_event *ev = &b->events[i];

		check(ev->cmd < b->n_cmds);
		check(ev->other == BUILD_NONE || ev->other < b->n_cmds);
		check(ev->file == BUILD_NONE || ev->file < b->n_nodes);
		check(ev->file2 == BUILD_NONE || ev->file2 < b->n_nodes);
		check(!i || b->events[i - 1].time_ns <= ev->time_ns);
		check(ev->type <= AX_BUILD_EXIT || (ev->path && ev->path[0] == '/'));
		check(build_step(b, ev->cmd) == BUILD_NONE || build_step(b, ev->cmd) < b->n_cmds);
	}
}

static void check_graph(const struct build *b, bool processes)
{
	struct build_graph_options o = {.processes = processes, .name = name};
	struct build_graph g;

	check(build_graph_make(b, &o, &g) == 0);
	for (size_t i = 0; i < g.n_edges; i++) {
		check(g.edges[i].cmd < b->n_cmds);
		check(g.edges[i].file <
		      (g.edges[i].kind == BUILD_EDGE_START ? b->n_cmds : b->n_nodes));
	}
	build_graph_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct build_compile *compiles = NULL;
	struct build_steps steps = {0};
	struct error e = {0};
	struct build b;
	size_t n = 0;

	check_records(data, size);
	if (build_read(&b, data, size, &e) < 0) {
		check(*e.text != 0);
		build_free(&b);
		return 0;
	}
	check_events(&b);
	check(build_compiles(&b, &compiles, &n) == 0);
	for (size_t i = 0; i < n; i++)
		check(compiles[i].cmd < b.n_cmds && compiles[i].source);
	check(build_steps_make(&b, &steps) == 0);
	for (size_t i = 0; i < steps.n; i++)
		if (build_is_output(&b, &steps.v[i]))
			build_is_read(&b, steps.v[i].file);
		else
			build_is_input(&b, &steps.v[i]);
	check_graph(&b, false);
	check_graph(&b, true);
	free(steps.v);
	free(compiles);
	build_free(&b);
	return 0;
}
