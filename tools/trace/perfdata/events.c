// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace perfdata events: one line for each event. */
#include "tools/lib/output.h"
#include "tools/trace/perfdata/perfdata.h"

struct events {
	struct cmd *c;
	int output;
	bool verbose;
	uint32_t count;
	struct strv types;
	bool wanted[256];
	struct trace_out out;
	struct perfdata *p;
	uint64_t shown, broken;
};

static void put_event(struct events *l, const struct perfdata_event *ev)
{
	struct perf_show s = {.out = &l->out, .json = l->output != 0, .whole = l->verbose};
	struct perfdata_sink sink = perf_sink(&s);
	const char *name = perfdata_type_name(ev->type);
	char number[16];

	if (!name) {
		snprintf(number, sizeof(number), "%u", ev->type);
		name = number;
	}
	if (s.json) {
		trace_out_char(s.out, '{');
		perf_put_number(&s, "offset", ev->offset);
		perf_put_text(&s, "record", name);
		perf_put_number(&s, "misc", ev->misc);
	} else {
		trace_out_end(s.out,
			      trace_write_hex(trace_out_room(s.out, TRACE_NUMBER_MAX), ev->offset));
		trace_out_char(s.out, ' ');
		trace_out_text(s.out, name);
		trace_out_char(s.out, ' ');
	}
	if (perfdata_describe(l->p, ev, &sink) < 0) {
		l->broken++;
		if (s.json)
			perf_put_number(&s, "cut_off", 1);
		else
			trace_out_text(s.out, " (cut off)");
	}
	trace_out_text(s.out, s.json ? "}\n" : "\n");
}

static int show_all(struct events *l, struct error *e)
{
	struct perfdata_event ev;
	int r = 0;

	while ((!l->count || l->shown < l->count) && !l->out.error) {
		r = perfdata_next(l->p, &ev, e);
		if (r <= 0)
			break;
		if (l->types.n && (ev.type >= ARRAY_SIZE(l->wanted) || !l->wanted[ev.type]))
			continue;
		put_event(l, &ev);
		l->shown++;
	}
	if (r >= 0 && l->broken)
		r = error_set(e, -EBADMSG, "%llu events are shorter than what they say they have",
			      (unsigned long long)l->broken);
	return r;
}

static int run(struct events *l, const char *path)
{
	CLEANUP(perfdata_closep) struct perfdata *p = NULL;
	struct error e = {0};
	int r = perf_file_open(path, &p, &e);

	if (r < 0)
		return cmd_failed(l->c, &e);
	if (trace_out_open(&l->out, STDOUT_FILENO) < 0)
		return CMD_FAILED;
	l->p = p;
	r = show_all(l, &e);
	return perf_finish(l->c, &l->out, r, &e);
}

static int choose_types(struct events *l)
{
	for (size_t i = 0; i < l->types.n; i++) {
		int type = perfdata_type_of(l->types.v[i]);

		if (type < 0)
			return cmd_usage(l->c,
					 "there is no type of event '%s': they are named as "
					 "perf's PERF_RECORD_..., such as SAMPLE or MMAP2",
					 l->types.v[i]);
		l->wanted[type] = true;
	}
	return CMD_OK;
}

static int run_events(struct cmd *c, int argc, char **argv)
{
	struct events l = {.c = c};
	int status;

	if (!cmd_begin(c, &l, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "name one file that perf record wrote, or '-'");
	cmd_output();
	status = choose_types(&l);
	if (status == CMD_OK)
		status = run(&l, argv[0]);
	strv_free(&l.types);
	return status;
}

static const struct words type_words = {.nth = perfdata_type_nth};

static const struct opt options[] = {
	{"type", 't', OPT_STRINGS, "TYPE", "only events of this type; may be given several times",
	 offsetof(struct events, types), &type_words},
	{"count", 'n', OPT_NUMBER, "N", "only the first N", offsetof(struct events, count), NULL},
	{"verbose", 'v', OPT_FLAG, NULL, "stacks and other long runs of bytes whole",
	 offsetof(struct events, verbose), NULL},
};

const struct command cmd_trace_perfdata_events = {
	.name = "trace perfdata events",
	.about = "all events of a perf.data file, field by field",
	.run = run_events,
	.syntax =
		{
			.usage = "ax trace perfdata events [-t TYPE] FILE",
			.about = "Prints each event with where it stands in the file, its type as "
				 "perf names it, and all its fields. Events that were compressed "
				 "stand behind the COMPRESSED one that they were in. FILE may be "
				 "'-' for standard input.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_text_lines, 1, offsetof(struct events, output)}},
			.args = {&words_file},
		},
};
