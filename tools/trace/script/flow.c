// SPDX-License-Identifier: GPL-2.0-or-later
/* The action `flow`: calls and returns as lines that are as far in as their calls are deep. */
#include "tools/trace/script/script.h"

#define LOOK_NS UINT64_C(2000000) /* between two looks for records that were lost */

void script_calls_free(struct script_calls *c)
{
	if (c->flow)
		flow_free(c->flow);
	free(c->functions);
	free(c->returns);
}

/* How the returns of each function are seen. */
static void find_returns(struct script_run *run)
{
	struct script_calls *c = &run->calls;
	const struct session *s = run->t.session;

	memset(c->returns, FLOW_NEVER, c->n_functions);
	for (size_t i = 0; i < session_n_probes(s); i++) {
		const struct session_probe *p = session_probe(s, i);
		const struct script_step *step;

		if (p->part >= run->script.n_steps || p->name >= c->n_functions || !p->attached)
			continue;
		step = &run->script.steps[p->part];
		if (step->verb == SCRIPT_FLOW && step->spec.kind == PROBE_URETPROBE)
			c->returns[p->name] = p->is_return ? FLOW_BY_TRAMPOLINE : FLOW_AT_RET;
	}
}

static int begin(struct script_run *run)
{
	struct script_calls *c = &run->calls;
	struct trace *t = &run->t;
	struct flow_options o = {.under = FLOW_NONE};

	c->n_functions = session_n_names(t->session);
	c->functions = calloc(c->n_functions + 1, sizeof(*c->functions));
	c->returns = calloc(c->n_functions + 1, 1);
	if (!c->functions || !c->returns)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_functions; i++)
		c->functions[i].name = (char *)session_name(t->session, i);
	find_returns(run);
	c->lines = (struct flow_lines){.t = t, .functions = c->functions};
	o.returns = c->returns;
	o.n_functions = (uint32_t)c->n_functions;
	for (size_t i = 0; i < session_n_probes(t->session); i++)
		o.restarts |= session_probe(t->session, i)->go;
	c->flow = flow_new(&o, flow_put_step, &c->lines);
	return c->flow ? 0 : -ENOMEM;
}

/* What was lost may have been returns. */
static void look_for_losses(struct script_run *run)
{
	struct script_calls *c = &run->calls;
	uint64_t now = time_mono_ns();
	struct session_totals n;

	if (now - c->looked_ns < LOOK_NS)
		return;
	session_totals(run->t.session, &n);
	if (n.dropped != c->dropped)
		flow_gap(c->flow, c->looked_ns, now);
	c->dropped = n.dropped;
	c->looked_ns = now;
}

static int add_call(struct script_run *run, const struct session_probe *p,
		    const struct ax_probe_record *r, size_t len)
{
	struct script_calls *c = &run->calls;
	struct flow_event ev = {.is_return =
					run->script.steps[p->part].spec.kind == PROBE_URETPROBE,
				.function = p->name,
				.pid = r->pid,
				.thread = r->thread,
				.time_ns = r->time_ns,
				.sp = r->sp};
	int err;

	if (!ev.is_return && r->n_values && !(r->faults & 1u << FLOW_VALUE_BACK))
		ev.back = r->values[FLOW_VALUE_BACK];
	c->lines.record = r;
	c->lines.record_len = len;
	err = flow_add(c->flow, &ev);
	c->lines.record = NULL;
	return err;
}

int script_flow(struct script_run *run, const struct ax_probe_record *r, size_t len)
{
	struct script_calls *c = &run->calls;
	const struct session_probe *p = session_probe(run->t.session, r->probe);

	if (run->t.ctf)
		return trace_put_record(&run->t, r, len);
	if (!c->flow && begin(run) < 0)
		return -ENOMEM;
	if (p->name >= c->n_functions) /* in a file that came later */
		return 0;
	if (!c->lines.start_ns)
		c->lines.start_ns = r->time_ns;
	look_for_losses(run);
	return add_call(run, p, r, len);
}

int script_flow_end(struct script_run *run)
{
	return run->calls.flow ? flow_end(run->calls.flow) : 0;
}
