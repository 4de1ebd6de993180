// SPDX-License-Identifier: GPL-2.0-or-later
/* A tree of call stacks that were sampled, as those of calls are. */
#include "probes/flow/graph.h"
#include "probes/flow/priv.h"

struct flow_stacks {
	struct flow_paths paths;
};

struct flow_stacks *flow_stacks_new(void)
{
	struct flow_stacks *s = calloc(1, sizeof(*s));

	if (s && flow_paths_begin(&s->paths) < 0) {
		free(s);
		return NULL;
	}
	return s;
}

void flow_stacks_free(struct flow_stacks *s)
{
	flow_paths_free(&s->paths);
	free(s);
}

int flow_stacks_add(struct flow_stacks *s, const uint32_t *functions, size_t n, uint64_t times,
		    uint64_t ns)
{
	uint32_t at = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t before = at;

		if (flow_paths_enter(&s->paths, at, functions[i], &at) < 0)
			return -ENOMEM;
		if (at != before) /* what is too deep stays where it is */
			s->paths.tree.v[at].total_ns += ns;
	}
	s->paths.tree.v[at].calls += times;
	s->paths.tree.v[at].self_ns += ns;
	return 0;
}

const struct flow_tree *flow_stacks_tree(const struct flow_stacks *s)
{
	return &s->paths.tree;
}
