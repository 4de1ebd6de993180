// SPDX-License-Identifier: GPL-2.0-or-later
/* What was collected, as folded stacks, a flame graph, JSON or tables. */
#include <inttypes.h>

#include "probes/flow/graph.h"
#include "tools/trace/profile/profile.h"

uint64_t profile_weight(const struct profile *p, const struct stack *s)
{
	return p->waits ? s->ns : s->times;
}

/* What a stack of someone who waits begins with says only that he does. */
static size_t before_schedule(struct profile *p, const uint64_t *kernel, size_t n)
{
	static const char *const own[] = {"__schedule_[k]", "schedule_[k]"};
	size_t first = 0;

	for (size_t i = 0; p->waits && i < n && i < 12; i++) {
		uint32_t function = names_of_kernel(&p->names, kernel[i]);

		for (size_t j = 0; function != UINT32_MAX && j < ARRAY_SIZE(own); j++)
			if (streq(p->names.v[function].text, own[j]))
				first = i + 1;
	}
	return first;
}

/* What frame pointers lead to that are none is no caller. */
static size_t without_nonsense(const struct profile *p, const uint32_t *functions, size_t first,
			       size_t n)
{
	while (n > first + 1 && functions[n - 1] < p->names.n &&
	       streq(p->names.v[functions[n - 1]].text, "[unknown]"))
		n--;
	return n;
}

size_t profile_functions(struct profile *p, const struct stack *s, uint32_t *functions, size_t max)
{
	const uint64_t *at = p->stacks.addresses + s->from;
	size_t n = 0, first;

	for (size_t i = before_schedule(p, at, s->n_kernel); i < s->n_kernel && n < max; i++)
		functions[n++] = names_of_kernel(&p->names, at[i]);
	at += s->n_kernel;
	first = n;
	for (size_t i = 0; i < s->n_user && n < max; i++)
		functions[n++] = names_of_process(&p->names, s->pid, s->comm, at[i]);
	if (p->waits || p->stack)
		n = without_nonsense(p, functions, first, n);
	if (s->cut && n < max)
		functions[n++] = names_number(&p->names, "[more]", "");
	if (!n) /* the kernel had no room to walk it in, or for one more */
		functions[n++] = names_number(&p->names, "[no stack]", "");
	return n;
}

/* --- trees --- */

/* The process, and the app it belongs to, are below its functions. */
static size_t add_owner(struct profile *p, const struct stack *s, uint32_t *functions, size_t n)
{
	char text[AX_EVENT_APP + 8], comm[AX_EVENT_COMM + 1];

	snprintf(comm, sizeof(comm), "%.*s", AX_EVENT_COMM, s->comm);
	functions[n++] = names_number(&p->names, comm, "");
	if (s->app) {
		snprintf(text, sizeof(text), "app:%s", s->app);
		functions[n++] = names_number(&p->names, text, "");
	}
	return n;
}

static int add_stack(struct profile *p, struct flow_stacks *tree, const struct stack *s)
{
	uint32_t functions[PROFILE_FRAMES_MAX + 2], turned[PROFILE_FRAMES_MAX + 2];
	size_t n =
		add_owner(p, s, functions, profile_functions(p, s, functions, PROFILE_FRAMES_MAX));

	for (size_t i = 0; i < n; i++) {
		turned[i] = functions[n - 1 - i];
		if (turned[i] == UINT32_MAX)
			return -ENOMEM;
	}
	return flow_stacks_add(tree, turned, n, s->times, profile_weight(p, s));
}

static int write_tree(struct profile *p, const struct flow_tree *t, FILE *f)
{
	autofree const char **v = calloc(p->names.n + 1, sizeof(*v));
	struct flow_names names = {.v = v, .n = p->names.n};
	struct flow_picture picture = {.amount = p->waits ? FLOW_WAITS : FLOW_SAMPLES};
	char title[256];

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < p->names.n; i++)
		v[i] = p->names.v[i].text;
	if (p->format == PROFILE_FOLDED)
		return flow_write_folded(t, &names, !p->waits, f);
	snprintf(title, sizeof(title), "%s%s%.100s", p->waits ? "waiting" : "on the processors",
		 p->r.args.command ? ": " : "", p->r.args.command ? p->r.args.command : "");
	picture.title = title;
	return flow_write_svg(t, &names, &picture, f);
}

static int put_tree(struct profile *p)
{
	struct flow_stacks *tree CLEANUP(flow_stacks_freep) = flow_stacks_new();
	autofree char *text = NULL;
	size_t size = 0;
	FILE *f = tree ? open_memstream(&text, &size) : NULL;
	int r = 0;

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->stacks.n; i++)
		r = add_stack(p, tree, &p->stacks.v[i]);
	if (r == 0)
		r = write_tree(p, flow_stacks_tree(tree), f);
	if (fclose(f) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		trace_out_put(&p->r.out, text, size);
	return r;
}

/* --- JSON --- */

static void put_json_stack(struct profile *p, const struct stack *s)
{
	uint32_t functions[PROFILE_FRAMES_MAX];
	size_t n = profile_functions(p, s, functions, PROFILE_FRAMES_MAX);
	struct trace_out *o = &p->r.out;

	trace_out_printf(o, "{\"%s\":%" PRIu64, p->waits ? "times" : "samples", s->times);
	if (p->waits)
		trace_out_printf(o, ",\"ns\":%" PRIu64, s->ns);
	trace_out_printf(o, ",\"pid\":%u", s->pid);
	ready_json_string(&p->r, "comm", s->comm, strnlen(s->comm, sizeof(s->comm)));
	if (s->app)
		ready_json_string(&p->r, "app", s->app, strlen(s->app));
	trace_out_text(o, ",\"stack\":[");
	for (size_t i = 0; i < n; i++) {
		const char *text = functions[i] < p->names.n ? p->names.v[functions[i]].text : "?";

		if (i)
			trace_out_char(o, ',');
		trace_out_json(o, text, strlen(text));
	}
	trace_out_text(o, "]}\n");
}

/* --- all --- */

static int compare(const void *pa, const void *pb)
{
	const struct stack *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->times != b->times)
		return a->times > b->times ? -1 : 1;
	return (a->from > b->from) - (a->from < b->from);
}

int profile_show(struct profile *p, struct error *e)
{
	int err = 0;

	if (p->stacks.n) /* what is searched for no more may lose its order */
		qsort(p->stacks.v, p->stacks.n, sizeof(*p->stacks.v), compare);
	switch ((enum profile_format)p->format) {
	case PROFILE_TEXT:
		if (p->by)
			profile_put_stacks(p);
		else
			err = profile_put_functions(p);
		break;
	case PROFILE_JSON:
		for (size_t i = 0; i < p->stacks.n; i++)
			put_json_stack(p, &p->stacks.v[i]);
		break;
	case PROFILE_FOLDED:
	case PROFILE_SVG:
		err = put_tree(p);
	}
	return err < 0 ? error_set(e, err, "the call stacks could not be written: %s",
				   strerror(-err))
		       : 0;
}
