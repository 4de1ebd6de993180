// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace perfdata info: the header, features, attributes, and how many events of each type. */
#include "tools/lib/output.h"
#include "tools/trace/perfdata/perfdata.h"

#define TYPES 256

struct info {
	struct cmd *c;
	int output;
	struct trace_out out;
	struct perf_show show;
	struct perfdata *p;
	uint64_t counts[TYPES], unknown, aux_bytes, n_aux;
	const char *aux; /* "intel_pt" */
};

/* Parts of the text stand in lines of their own; JSON is one object. */
static void line(struct info *l, const char *text)
{
	if (l->show.json)
		return;
	trace_out_text(&l->out, text);
	l->show.at[0].some = false;
}

static void put_flag(struct info *l, const char *name, bool v)
{
	if (v)
		perf_put_text(&l->show, name, "yes");
}

static void put_header(struct info *l)
{
	const struct perfdata_header *h = perfdata_header(l->p);

	if (l->show.json)
		trace_out_char(&l->out, '{');
	else
		line(l, "header: ");
	perf_put_text(&l->show, "format", h->pipe ? "pipe" : "file");
	perf_put_number(&l->show, "version", h->version);
	put_flag(l, "other_byte_order", h->swapped);
	put_flag(l, "unfinished", h->unfinished);
	perf_put_number(&l->show, "header_size", h->size);
	if (!h->pipe)
		perf_put_number(&l->show, "attr_size", h->attr_size);
	perf_put_number(&l->show, "data_offset", h->data_offset);
	if (!h->pipe)
		perf_put_number(&l->show, "data_size", h->data_size);
	line(l, "\n");
}

/* --- features --- */

static int put_features(struct info *l, struct error *e)
{
	struct perfdata_sink sink = perf_sink(&l->show);
	struct error own = {0};
	unsigned bit = 0;
	int r;

	if (perfdata_header(l->p)->unfinished)
		return 0;
	while ((r = perfdata_feature(l->p, &bit, &sink, &own)) != 0) {
		if (r > 0 || r == -ENODATA)
			line(l, "\n");
		if (r < 0 && !e->code)
			*e = own;
		own = (struct error){0};
	}
	return e->code;
}

/* --- events --- */

static void see_aux(struct info *l, const struct perfdata_event *ev)
{
	struct perfdata_aux a;

	if (ev->type == PERFDATA_AUXTRACE_INFO && ev->size >= 12)
		l->aux = perfdata_aux_name(perfdata_u32(l->p, ev->data + 8));
	if (!perfdata_aux(l->p, ev, &a))
		return;
	l->n_aux++;
	l->aux_bytes += a.size;
}

/* In a pipe features are events. */
static int see_events(struct info *l, struct error *e)
{
	struct perfdata_sink sink = perf_sink(&l->show);
	struct perfdata_event ev;
	int r;

	while ((r = perfdata_next(l->p, &ev, e)) > 0) {
		if (ev.type < TYPES)
			l->counts[ev.type]++;
		else
			l->unknown++;
		see_aux(l, &ev);
		if (ev.type == PERFDATA_HEADER_FEATURE && ev.size > 8) {
			perfdata_describe(l->p, &ev, &sink);
			line(l, "\n");
		}
	}
	return r;
}

static void put_attrs(struct info *l)
{
	struct perfdata_sink sink = perf_sink(&l->show);
	const struct perfdata_attr *a;

	if (l->show.json)
		perf_begin(&l->show, "attrs", PERFDATA_LIST);
	for (size_t i = 0; (a = perfdata_attr(l->p, i)); i++) {
		if (l->show.json)
			perf_begin(&l->show, NULL, PERFDATA_OBJECT);
		else
			line(l, "attr: ");
		perfdata_describe_attr(a, &sink);
		perf_put_number(&l->show, "ids", a->n_ids);
		if (l->show.json)
			perf_end(&l->show);
		line(l, "\n");
	}
	if (l->show.json)
		perf_end(&l->show);
}

static void put_counts(struct info *l)
{
	if (l->show.json)
		perf_begin(&l->show, "events", PERFDATA_OBJECT);
	else
		line(l, "events: ");
	for (uint32_t i = 0; i < TYPES; i++) {
		const char *name = perfdata_type_name(i);

		if (l->counts[i] && name)
			perf_put_number(&l->show, name, l->counts[i]);
		else
			l->unknown += l->counts[i];
	}
	if (l->unknown)
		perf_put_number(&l->show, "unknown", l->unknown);
	if (l->show.json)
		perf_end(&l->show);
	line(l, "\n");
	if (!l->aux && !l->n_aux)
		return;
	if (l->show.json)
		perf_begin(&l->show, "aux", PERFDATA_OBJECT);
	else
		line(l, "aux: ");
	perf_put_text(&l->show, "kind", l->aux ? l->aux : "unknown");
	perf_put_number(&l->show, "traces", l->n_aux);
	perf_put_number(&l->show, "bytes", l->aux_bytes);
	if (l->show.json)
		perf_end(&l->show);
	line(l, "\n");
}

static int put_all(struct info *l, struct error *e)
{
	struct error later = {0};
	int r;

	put_header(l);
	if (l->show.json)
		perf_begin(&l->show, "features", PERFDATA_OBJECT);
	put_features(l, &later);
	r = see_events(l, e);
	if (l->show.json)
		perf_end(&l->show);
	put_attrs(l);
	put_counts(l);
	if (l->show.json)
		trace_out_text(&l->out, "}\n");
	if (r >= 0 && later.code) {
		*e = later;
		r = later.code;
	}
	return r;
}

static int run_info(struct cmd *c, int argc, char **argv)
{
	CLEANUP(perfdata_closep) struct perfdata *p = NULL;
	struct info l = {.c = c};
	struct error e = {0};
	int status, r;

	if (!perf_run_begin(c, &l, argc, argv, &p, &status))
		return status;
	if (trace_out_open(&l.out, STDOUT_FILENO) < 0)
		return CMD_FAILED;
	l.p = p;
	l.show = (struct perf_show){.out = &l.out, .json = l.output != 0, .lines = !l.output};
	r = put_all(&l, &e);
	return perf_finish(c, &l.out, r, &e);
}

const struct command cmd_trace_perfdata_info = {
	.name = "trace perfdata info",
	.about = "a perf.data file's header, features and attributes",
	.run = run_info,
	.syntax =
		{
			.usage = "ax trace perfdata info FILE",
			.about = "Prints what the file says about the machine and the recording: "
				 "its header, features, the attributes that the kernel was asked "
				 "for, and how many events of each type there are. FILE may be "
				 "'-' for standard input.",
			.own = {{output_text_lines, 1, offsetof(struct info, output)}},
			.args = {&words_file},
		},
};
