// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/build/compile.h"
#include "probes/build/deps.h"
#include "probes/build/priv.h"

bool build_starts_steps(const struct build *b, uint32_t cmd)
{
	static const char *const names[] = {"make", "gmake", "bmake", "ninja", "samu",
					    "go",   "scons", "tup",   "waf",   "b2"};
	const char *name = build_cmd_name(b, cmd);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(name, names[i]))
			return true;
	return false;
}

static uint32_t program_above(const struct build *b, uint32_t cmd)
{
	return cmd == BUILD_NONE ? BUILD_NONE : build_program(b, b->cmds[cmd].parent);
}

uint32_t build_step(const struct build *b, uint32_t cmd)
{
	uint32_t own = build_program(b, build_actor(b, cmd)), at = own, above;

	for (; at != BUILD_NONE; at = above) {
		above = program_above(b, at);
		if (above != BUILD_NONE && build_starts_steps(b, above))
			return at;
	}
	/* without one, as in a script: the outermost driver; what it started knows only temporary
	 * files of each other */
	for (at = own; at != BUILD_NONE; at = program_above(b, at))
		if (build_drives(b, at))
			own = at;
	return own;
}

/* --- uses by step --- */

static int by_step(const void *a, const void *b)
{
	const struct build_step_use *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

static int by_path(const void *a, const void *c, void *arg)
{
	const struct build_step_use *x = a, *y = c;
	const struct build *b = arg;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return strcmp(b->nodes[x->file].path, b->nodes[y->file].path);
}

int build_steps_make(const struct build *b, struct build_steps *ret)
{
	autofree uint32_t *step_of = calloc(b->n_cmds + 1, sizeof(*step_of));
	struct build_step_use *v = calloc(b->n_uses + 1, sizeof(*v));
	size_t n = 0, kept = 0;

	if (!v || !step_of) {
		free(v);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < b->n_cmds; i++)
		step_of[i] = build_step(b, i);
	for (uint32_t i = 0; i < b->n_nodes; i++)
		for (size_t k = 0; k < b->nodes[i].n; k++) {
			const struct build_use *u = &b->uses[b->nodes[i].first + k];

			if (step_of[u->cmd] != BUILD_NONE)
				v[n++] = (struct build_step_use){step_of[u->cmd], i, u->access};
		}
	qsort(v, n, sizeof(*v), by_step);
	for (size_t i = 0; i < n; i++) {
		if (kept && v[kept - 1].step == v[i].step && v[kept - 1].file == v[i].file)
			v[kept - 1].access |= v[i].access;
		else
			v[kept++] = v[i];
	}
	qsort_r(v, kept, sizeof(*v), by_path, (void *)(uintptr_t)b);
	*ret = (struct build_steps){v, kept};
	return 0;
}

const struct build_step_use *build_steps_of(const struct build_steps *s, uint32_t step, size_t *n)
{
	size_t low = 0, high = s->n, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->v[middle].step < step)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < s->n && s->v[end].step == step; end++)
		;
	*n = end - low;
	return s->v + low;
}

/* --- what they are --- */

/* What a step writes and reads is its own, unless it read it before: then it is both. */
static bool read_before_written(const struct build *b, const struct build_step_use *u)
{
	const struct build_node *n = &b->nodes[u->file];

	for (size_t i = 0; i < n->n; i++) {
		const struct build_use *use = &b->uses[n->first + i];

		if (build_step(b, use->cmd) != u->step)
			continue;
		if (use->access & (BUILD_WRITE | BUILD_MOVE))
			return false;
		if (use->access & (BUILD_READ | BUILD_RUN))
			return true;
	}
	return false;
}

bool build_is_input(const struct build *b, const struct build_step_use *u)
{
	const struct build_node *n = &b->nodes[u->file];

	if (n->directory || !(u->access & (BUILD_READ | BUILD_RUN)))
		return false;
	return !(u->access & (BUILD_WRITE | BUILD_MOVE)) || read_before_written(b, u);
}

bool build_is_output(const struct build *b, const struct build_step_use *u)
{
	const struct build_node *n = &b->nodes[u->file];

	return !n->directory && !n->gone && u->access & (BUILD_WRITE | BUILD_MOVE);
}

/* Programs that start steps read some files that these made only to write them, or name them, anew:
 * so does go with what its linker made. */
static bool passes_on(const struct build *b, const struct build_node *n, uint32_t step)
{
	for (size_t i = 0; build_starts_steps(b, step) && i < n->n; i++) {
		const struct build_use *u = &b->uses[n->first + i];

		if (u->access & (BUILD_WRITE | BUILD_MOVE) && build_step(b, u->cmd) == step)
			return true;
	}
	return false;
}

bool build_is_read(const struct build *b, uint32_t file)
{
	const struct build_node *n = &b->nodes[file];
	uint32_t made_by = BUILD_NONE;

	for (size_t i = 0; i < n->n; i++) {
		const struct build_use *u = &b->uses[n->first + i];
		uint32_t step = build_step(b, u->cmd);

		if (step != BUILD_NONE && passes_on(b, n, step))
			continue;
		if (u->access & (BUILD_WRITE | BUILD_MOVE)) {
			made_by = step;
			if (!(u->access & BUILD_READ))
				continue;
		}
		if (u->access & (BUILD_READ | BUILD_RUN) && step != made_by)
			return true;
	}
	return false;
}
