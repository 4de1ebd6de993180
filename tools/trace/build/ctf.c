// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build ctf: the events of a trace for other tools. */
#include <sys/stat.h>

#include "tools/lib/output.h"
#include "tools/trace/build/build.h"
#include "tools/trace/show/json_ctf.h"

struct request {
	struct build_view v; /* first: what options of all commands are in */
	const char *directory;
};

static int put_events(struct build_view *v, struct json_ctf *ctf)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < v->build.n_events; i++) {
		build_put_json(v, &v->build.events[i]);
		r = json_ctf_take(ctf, v->build.events[i].time_ns, &v->out);
	}
	return r < 0 ? r : json_ctf_flush(ctf, v->build.totals.dropped, true);
}

static int write_ctf(struct request *q, struct error *e)
{
	struct trace_out out = q->v.out;
	struct json_ctf *ctf = NULL;
	int r;

	umask(077); /* environments are in it */
	r = json_ctf_open_at(q->directory, q->v.build.head.real_offset_ns, &ctf, e);
	if (r < 0)
		return r;
	r = trace_out_memory(&q->v.out, e);
	if (r == 0) {
		r = put_events(&q->v, ctf);
		trace_out_close(&q->v.out);
		if (r < 0)
			error_set(e, r, "the trace could not be written: %s", strerror(-r));
	}
	q->v.out = out;
	json_ctf_free(ctf);
	return r;
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct request q = {.v = {.c = c, .system = true, .out.fd = -1}};
	struct error e = {0};
	int status;

	if (!cmd_begin(c, &q, &argc, argv, &status))
		return status;
	if (!q.directory)
		return cmd_usage(c, "say which directory is to be made: expected -O DIR");
	cmd_output();
	if (build_view_begin(&q.v, 1, argc, argv, &status))
		status = write_ctf(&q, &e) < 0 ? cmd_failed(c, &e) : CMD_OK;
	return build_view_end(&q.v, status);
}

static const struct opt own[] = {
	{"directory", 'O', OPT_STRING, "DIR", "the directory to make, for the trace",
	 offsetof(struct request, directory), &words_directory},
};

const struct command cmd_build_ctf = {
	.name = "trace build ctf",
	.about = "write all that is in a trace in the Common Trace Format",
	.run = run,
	.syntax =
		{
			.usage = "ax trace build ctf -O DIR FILE",
			.about = "Writes every event as 'ax trace build json' has it into a trace "
				 "in CTF 1.8, which babeltrace2 and others read; its clock is that "
				 "of the build.",
			.own = {{own, ARRAY_SIZE(own), 0}},
			.args = {&words_file},
		},
};
