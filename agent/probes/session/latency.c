// SPDX-License-Identifier: GPL-2.0-or-later
/* What measures time, as parts of a session. */
#include "probes/session/session.h"
#include "probes/text/latency.h"

size_t latency_parts(const struct latency *l, struct session_part *parts)
{
	/* a value that only one of them names is the same for both */
	const struct probe_spec *end = &l->on[l->on[0].n_args ? 0 : 1];
	const struct probe_spec *start = &l->on[l->on[1].n_args ? 1 : 0];

	parts[0] = (struct session_part){.spec = &l->specs[0], .action = TRACE_LATENCY};
	if (l->n < 2)
		return 1;
	parts[0].between = true;
	parts[1] = (struct session_part){.spec = &l->specs[1], .action = TRACE_START};
	if (end->n_args) {
		parts[0].on = &end->args[0];
		parts[1].on = &start->args[0];
	}
	return 2;
}
