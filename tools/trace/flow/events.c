/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the records of a flow to its events, and what is written at the end. */
#include "tools/trace/flow/flow.h"

#define LOOK_NS UINT64_C(2000000) /* less than what is between two looks at the ring */

/* Functions of the session's probes. Those on returns may be anywhere in the function. */
static int map_probes(struct flow_request *q)
{
	const struct session *s = q->t.session;
	size_t n = session_n_probes(s);

	q->function_of = calloc(n ? n : 1, sizeof(*q->function_of));
	if (!q->function_of)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct session_probe *p = session_probe(s, i);

		q->function_of[i] = flow_function_at(q, p->place.offset);
	}
	return 0;
}

/* Those that were lost came after those that were in the ring at that time, and no later than now.
 */
static void look_for_losses(struct flow_request *q)
{
	uint64_t now = time_mono_ns();
	struct session_totals n;

	if (now - q->looked_ns < LOOK_NS)
		return;
	session_totals(q->t.session, &n);
	if (n.dropped != q->dropped) {
		flow_gap(q->flow, q->looked_ns, now);
		q->lost += n.dropped - q->dropped;
		q->lost_until_ns = now;
		q->dropped = n.dropped;
	}
	q->looked_ns = now;
}

static void say_losses(struct flow_request *q)
{
	if (q->lost && q->kind == FLOW_LINES)
		flow_put_loss(&q->lines, q->lost);
	q->lost = 0;
}

static void read_entry(struct flow_request *q, const struct session_probe *p,
		       const struct ax_probe_record *r, struct flow_event *ev)
{
	const struct flow_function *fn = &q->functions[ev->function];
	uint64_t ip;

	if (r->n_values < FLOW_VALUES)
		return;
	if (!(r->faults & 1u << FLOW_VALUE_BACK))
		ev->back = r->values[FLOW_VALUE_BACK];
	ip = r->values[FLOW_VALUE_IP];
	/* page 0 is never mapped: a base of 0 is that of a program at fixed addresses */
	q->lines.image = ip - (p->place.offset - fn->offset) - fn->address;
	ev->image = q->lines.image + 1;
}

int flow_put_record(struct trace *t, const struct ax_probe_record *r, size_t len)
{
	struct flow_request *q = t->own;
	const struct session_probe *p;
	struct flow_event ev;
	int err;

	if (!q->function_of && map_probes(q) < 0)
		return -ENOMEM;
	if (r->probe >= session_n_probes(t->session))
		return 0;
	if (!q->lines.start_ns)
		q->lines.start_ns = r->time_ns;
	look_for_losses(q);
	if (q->lost && r->time_ns > q->lost_until_ns)
		say_losses(q);
	p = session_probe(t->session, r->probe);
	ev = (struct flow_event){
		.is_return = t->parts[p->part].spec->kind == PROBE_URETPROBE,
		.function = q->function_of[r->probe],
		.pid = r->pid,
		.thread = r->thread,
		.time_ns = r->time_ns,
		.sp = r->sp,
	};
	if (q->callers || q->under != FLOW_NONE)
		trace_note_process(t, r->pid);
	if (ev.function == FLOW_NONE)
		return 0;
	if (!ev.is_return)
		read_entry(q, p, r, &ev);
	q->lines.record = r;
	q->lines.record_len = len;
	err = flow_add(q->flow, &ev);
	q->lines.record = NULL;
	return err < 0 ? err : flow_flush_ctf(&q->lines, false);
}

/* --- the end --- */

static int write_graph(struct flow_request *q, const struct flow_names *names, FILE *f)
{
	const struct flow_tree *tree = flow_tree(q->flow);
	char title[512];

	switch (q->kind) {
	case FLOW_DOT:
		return flow_write_dot(tree, names, f);
	case FLOW_SVG:
		snprintf(title, sizeof(title), "calls in %s", binary_path(q->binary));
		return flow_write_svg(tree, names, &(struct flow_picture){.title = title}, f);
	default:
		return flow_write_folded(tree, names, q->calls, f);
	}
}

static int put_graph(struct flow_request *q)
{
	autofree const char **v = calloc(q->n_functions, sizeof(*v));
	struct flow_names names = {.v = v, .n = q->n_functions};
	autofree char *text = NULL;
	size_t size = 0;
	FILE *f = v ? open_memstream(&text, &size) : NULL;
	int r;

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < q->n_functions; i++)
		v[i] = q->functions[i].name;
	r = write_graph(q, &names, f);
	if (fclose(f) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		trace_out_put(&q->t.out, text, size);
	return r;
}

int flow_put_end(struct trace *t, struct error *e)
{
	struct flow_request *q = t->own;
	int r;

	q->looked_ns = 0;
	look_for_losses(q);
	say_losses(q);
	r = flow_end(q->flow);
	r = r < 0 ? r : flow_flush_ctf(&q->lines, true);
	if (q->lines.ctf)
		t->json = false; /* the summary is for who has called this */
	if (r == 0 && q->kind != FLOW_LINES)
		r = put_graph(q);
	if (r == 0 && q->kind != FLOW_LINES && flow_tree(q->flow)->cut)
		fprintf(stderr, "ax %s: calls deeper than 1,000 are shown as one '[deeper]'\n",
			t->c->name);
	return r < 0 ? error_set(e, r, "the calls could not be written: %s", strerror(-r)) : 0;
}
