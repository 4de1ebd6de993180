/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks of records whose callers are found by a copy of the stack: found as soon as it comes,
 * since the process may end, and kept until the record is shown. */
#include "probe.h"
#include "probes/process/process.h"
#include "tools/trace/show/show.h"

#define KEPT 16384 /* the last ones; a power of two */

struct copied_stack {
	uint64_t id; /* 0: none */
	int64_t by_frames;
	uint64_t *addresses;
	int n;
};
struct trace_stacks {
	struct copied_stack v[KEPT];
};

/* Of callers the kernel tells where their calls return to, and so is this. */
static int find_callers(struct processes *names, const struct ax_stack_copy *c,
			uint64_t addresses[TRACE_FRAMES])
{
	bool cut;
	int n;

	processes_note(names, (int)c->pid);
	if (!processes_has_code(names, (int)c->pid, c->stack.pc))
		return 0;
	n = processes_callers(names, (int)c->pid, &c->stack, addresses, TRACE_FRAMES, &cut);
	for (int i = 1; i < n; i++)
		addresses[i]++;
	return n;
}

static int keep(void *arg, const struct ax_stack_copy *c)
{
	uint64_t addresses[TRACE_FRAMES];
	struct trace *t = arg;
	struct copied_stack *s = &t->stacks->v[c->id & (KEPT - 1)];
	int n = t->names ? find_callers(t->names, c, addresses) : 0;

	free(s->addresses);
	*s = (struct copied_stack){.id = c->id, .by_frames = c->by_frames};
	if (n <= 1) /* no more than frame pointers know */
		return 0;
	s->addresses = malloc((size_t)n * sizeof(*addresses));
	if (!s->addresses)
		return 0;
	memcpy(s->addresses, addresses, (size_t)n * sizeof(*addresses));
	s->n = n;
	return 0;
}

static const struct copied_stack *find(const struct trace *t, uint64_t id)
{
	const struct copied_stack *s = &t->stacks->v[id & (KEPT - 1)];

	return s->id == id ? s : NULL;
}

int trace_copied_stack(struct trace *t, uint64_t id, uint64_t addresses[TRACE_FRAMES],
		       uint64_t *by_frames)
{
	const struct copied_stack *s;

	if (!t->stacks)
		t->stacks = calloc(1, sizeof(*t->stacks));
	if (!t->stacks)
		return -ENOMEM;
	s = find(t, id);
	if (!s && session_stack_copies(t->session, keep, t) >= 0)
		s = find(t, id);
	*by_frames = s && s->by_frames >= 0 ? (uint64_t)s->by_frames : TRACE_NO_STACK;
	if (!s || !s->n)
		return -ENOENT;
	memcpy(addresses, s->addresses, (size_t)s->n * sizeof(*addresses));
	return s->n;
}

void trace_stacks_free(struct trace *t)
{
	for (size_t i = 0; t->stacks && i < KEPT; i++)
		free(t->stacks->v[i].addresses);
	free(t->stacks);
}
