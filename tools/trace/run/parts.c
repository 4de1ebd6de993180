/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The probes that a command line names. */
#include "tools/trace/run/run.h"

void trace_free(struct trace *t)
{
	trace_layouts_free(t);
	trace_ctf_free(t);
	trace_names_free(t);
	if (t->session)
		session_close(t->session);
	for (size_t i = 0; i < t->n_parts; i++)
		probe_spec_free(&t->specs[i]);
	latency_free(&t->latency);
	trace_whom_free(&t->whom);
	trace_out_close(&t->out);
}

/* A mistake in a probe's text is one in the command line. */
bool trace_add_part(struct trace *t, const char *text, enum trace_action action, int *status)
{
	struct probe_spec *spec = &t->specs[t->n_parts];
	struct error e = {0};

	if (t->n_parts == SESSION_PARTS_MAX) {
		*status = cmd_usage(t->c, "too many probes: at most %d are possible",
				    SESSION_PARTS_MAX);
		return false;
	}
	if (probe_parse(text, spec, &e) < 0) {
		*status = cmd_usage(t->c, "%s", e.text);
		return false;
	}
	t->parts[t->n_parts++] = (struct session_part){.spec = spec, .action = action};
	return true;
}

bool trace_parse(struct trace *t, int argc, char **argv, enum trace_action action, int *status)
{
	struct error e = {0};

	if (!argc) {
		*status = cmd_usage(t->c, "say what to probe, as in 'uretprobe:/bin/bash:readline' "
					  "or 'tracepoint:sched:sched_switch'");
		return false;
	}
	if (action == TRACE_LATENCY)
		return trace_parse_latency(t, argc, argv, status);
	if (probe_parse_words((const char *const *)argv, (size_t)argc, &t->specs[0], &e) < 0) {
		*status = cmd_usage(t->c, "%s", e.text);
		return false;
	}
	t->parts[t->n_parts++] = (struct session_part){.spec = &t->specs[0], .action = action};
	return true;
}
