// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build -o FILE -- COMMAND: its records go into the file as they come. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "probes/watch/build.h"
#include "tools/lib/run_signals.h"
#include "tools/trace/build/build.h"
#include "tools/trace/build/defaults.h"

#define NS_PER_MS UINT64_C(1000000)

struct recording {
	struct cmd *c;
	/* of the command line */
	const char *path;
	uint32_t buffer_mib;
	bool wait;
	/* of the run */
	struct watch *watch;
	struct trace_child child;
	struct trace_out out;
	uint64_t received;
	uint64_t flush_ns, kill_ns;
	size_t running;
	int status; /* of the command */
	bool child_ended, over;
	sigset_t open_mask;
};

/* --- the file --- */

static void put_header(struct recording *r)
{
	uint64_t now = time_mono_ns();
	struct ax_build_file head = {.magic = AX_BUILD_MAGIC,
				     .order = AX_BUILD_ORDER,
				     .version = AX_BUILD_VERSION,
				     .start_ns = now,
				     .real_offset_ns = (int64_t)(time_real_ns() - now),
				     .pid = (uint32_t)r->child.pid};

	trace_out_put(&r->out, (const char *)&head, sizeof(head));
}

static void put_bytes(struct recording *r, const void *record, size_t size)
{
	uint32_t len = (uint32_t)size;

	trace_out_put(&r->out, (const char *)&len, sizeof(len));
	trace_out_put(&r->out, record, size);
}

/* A piece has room behind it that was not needed. */
static int on_record(void *arg, const void *record, size_t len)
{
	const struct ax_exec_piece *piece = record;
	struct recording *r = arg;

	if (len < sizeof(uint64_t))
		return 0;
	if (piece->no_time)
		r->received++;
	else if (len >= sizeof(*piece) && piece->len <= len - sizeof(*piece))
		len = sizeof(*piece) + piece->len;
	put_bytes(r, record, len);
	return r->out.error ? -r->out.error : 0;
}

/* --- the loop --- */

static int output_failed(const struct recording *r, struct error *e)
{
	return error_set(e, -r->out.error,
			 "'%.200s' could not be written: %s; what is in it is not the whole build",
			 r->path, strerror(r->out.error));
}

static int take_records(struct recording *r, struct error *e)
{
	uint64_t now = time_mono_ns();
	int err = watch_records(r->watch, on_record, r);

	if (now >= r->flush_ns) {
		r->flush_ns = now + TRACE_FLUSH_MS * NS_PER_MS;
		trace_out_flush(&r->out);
	}
	if (r->out.error)
		return output_failed(r, e);
	return err < 0 ? error_set(e, err, "records cannot be read: %s", strerror(-err)) : 0;
}

/* A command that was told to end, by Ctrl-C or us, has the time to do so, and is seen doing it.
 * What was typed has come to it as well: make takes a second one as an order to leave all as it is.
 */
static void look_at_signals(struct recording *r)
{
	uint64_t now = time_mono_ns();

	if (!run_signals_came())
		return;
	if (!r->child_ended && !r->kill_ns) {
		r->kill_ns = now + BUILD_END_MS * NS_PER_MS;
		if (!run_signals_typed())
			kill(r->child.pid, SIGTERM);
	}
	/* trace_child_end() kills what does not end */
	if (r->child_ended || now >= r->kill_ns)
		r->over = true;
}

static void child_has_ended(struct recording *r)
{
	bool by_itself;

	r->status = trace_child_end(&r->child, &by_itself);
	r->child_ended = true;
	r->running = watch_build_running(r->watch);
	if (r->wait && r->running)
		fprintf(stderr, "ax %s: the command has ended; waiting for %zu more process%s\n",
			r->c->name, r->running, r->running == 1 ? "" : "es");
}

/* Nothing wakes us up but a ring that fills, so this is also how long records lie in it. */
static void wait_a_little(struct recording *r)
{
	struct pollfd p[] = {{.fd = watch_fd(r->watch), .events = POLLIN},
			     {.fd = r->child.pidfd, .events = POLLIN}};
	struct timespec ts = {.tv_nsec = BUILD_POLL_MS * 1000000L};

	if (ppoll(p, r->child_ended ? 1 : 2, &ts, &r->open_mask) > 0 && !r->child_ended &&
	    p[1].revents)
		child_has_ended(r);
	if (r->child_ended)
		r->running = watch_build_running(r->watch);
	if (r->child_ended && (!r->wait || !r->running))
		r->over = true;
}

/* What came between the last look and the end. */
static int finish(struct recording *r, struct watch_totals *totals, struct error *e)
{
	bool by_itself;

	if (!r->child_ended)
		r->status = trace_child_end(&r->child, &by_itself);
	watch_detach(r->watch);
	for (int i = 0; i < READY_LAST_TRIES; i++) {
		int err = watch_records(r->watch, on_record, r);

		if (r->out.error)
			return output_failed(r, e);
		if (err < 0)
			return error_set(e, err, "records cannot be read: %s", strerror(-err));
		watch_totals(r->watch, totals);
		if (totals->emitted == r->received + totals->dropped)
			break;
		usleep(1000);
	}
	return 0;
}

static int put_end(struct recording *r, const struct watch_totals *n, struct error *e)
{
	struct ax_build_end end = {
		.head = {.time_ns = time_mono_ns(),
			 .type = AX_BUILD_END,
			 .pid = (uint32_t)getpid(),
			 .tid = (uint32_t)getpid()},
		.emitted = n->emitted,
		.received = r->received,
		.dropped = n->dropped,
		.cut = n->cut,
		.missed = n->missed,
		.unfollowed = n->unfollowed,
		.status = (uint32_t)r->status,
	};

	put_bytes(r, &end, sizeof(end));
	trace_out_flush(&r->out);
	return r->out.error ? output_failed(r, e) : 0;
}

/* --- the summary --- */

static void put_number(const char *before, uint64_t v, const char *after)
{
	char buf[TRACE_THOUSANDS_MAX];

	fprintf(stderr, "%s%s%s", before, trace_thousands(v, buf), after);
}

/* Returns whether all is in the file. */
static bool put_summary(const struct recording *r, const struct watch_totals *n)
{
	put_number("", n->emitted, n->emitted == 1 ? " event, " : " events, ");
	put_number("", r->received, " received, ");
	put_number("", n->dropped, " dropped");
	if (n->missed)
		put_number("; ", n->missed, " missed while their processor saw another one");
	if (n->cut)
		put_number("; ", n->cut, " pieces of arguments or environments are missing");
	if (n->unfollowed)
		put_number("; ", n->unfollowed, " processes could not be followed");
	putc('\n', stderr);
	if (r->running)
		fprintf(stderr,
			"ax %s: %zu of its processes still run%s, and what they do from now on is "
			"not in the trace%s\n",
			r->c->name, r->running, r->running == 1 ? "s" : "",
			r->wait ? "" : " (--wait waits for them)");
	if (n->emitted != r->received + n->dropped)
		fprintf(stderr, "ax %s: the sum is wrong: this is a mistake of ax\n", r->c->name);
	return !n->dropped && !n->missed && !n->cut && !n->unfollowed;
}

static int end_status(const struct recording *r, const struct watch_totals *n)
{
	bool whole = put_summary(r, n);

	if (r->status > 128)
		fprintf(stderr, "ax %s: the command was ended by signal %d\n", r->c->name,
			r->status - 128);
	else if (r->status)
		fprintf(stderr, "ax %s: the command ended with status %d\n", r->c->name, r->status);
	if (!whole)
		fprintf(stderr,
			"ax %s: the trace is not whole; a larger --buffer loses less (it was %u)\n",
			r->c->name, r->buffer_mib);
	return !r->status && !whole ? CMD_FAILED : r->status;
}

/* --- the whole --- */

static int start(struct recording *r, char **words, struct error *e)
{
	/* environments have passwords in them */
	int err = trace_out_private(&r->out, r->path, e);

	if (err == 0)
		err = trace_child_start_words(&r->child, words, e);
	if (err == 0)
		err = watch_build_load(r->child.pid, r->buffer_mib << 20, &r->watch, e);
	if (err == 0)
		err = watch_attach(r->watch, e);
	if (err < 0)
		return err;
	put_header(r);
	return trace_child_go(&r->child, words[0], e);
}

static int record(struct recording *r, char **words)
{
	struct watch_totals totals = {0};
	struct error e = {0};
	int err;

	run_signals_catch();
	run_signals_block(&r->open_mask);
	err = start(r, words, &e);
	while (err == 0 && !r->over) {
		err = take_records(r, &e);
		look_at_signals(r);
		if (err == 0 && !r->over)
			wait_a_little(r);
	}
	if (err == 0)
		err = finish(r, &totals, &e);
	if (err == 0)
		err = put_end(r, &totals, &e);
	return err < 0 ? cmd_failed(r->c, &e) : end_status(r, &totals);
}

static int check(const struct recording *r, int argc)
{
	if (!argc)
		return cmd_usage(r->c, "say what to run: ax trace build -o FILE -- COMMAND ...");
	if (!r->path)
		return cmd_usage(r->c,
				 "-o FILE is missing: the trace has to go somewhere (a trace that "
				 "is there is read by 'ax trace build report FILE' and others)");
	if (!trace_is_buffer(r->buffer_mib))
		return cmd_usage(r->c, "--buffer %u: expected a power of two from 1 to %u",
				 r->buffer_mib, TRACE_BUFFER_MAX_MIB);
	return CMD_OK;
}

static void end_recording(struct recording *r)
{
	bool by_itself;

	if (r->child.pid)
		trace_child_end(&r->child, &by_itself);
	watch_free(r->watch);
	trace_out_close(&r->out);
}

static int run_build(struct cmd *c, int argc, char **argv)
{
	struct recording r = {.c = c,
			      .buffer_mib = WATCH_BUILD_RING_BYTES >> 20,
			      .child = TRACE_NO_CHILD,
			      .out.fd = -1};
	autofree char **words = NULL;
	int status;

	if (!cmd_begin(c, &r, &argc, argv, &status))
		return status;
	status = check(&r, argc);
	if (status != CMD_OK)
		return status;
	if (!cmd_root(c))
		return CMD_FAILED;
	words = calloc((size_t)argc + 1, sizeof(*words));
	if (!words)
		return cmd_failed(c, &(struct error){.text = "out of memory"});
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	status = record(&r, words);
	end_recording(&r);
	return status;
}

static const struct opt options[] = {
	{"output", 'o', OPT_STRING, "FILE", "the trace, readable for its owner alone",
	 offsetof(struct recording, path), &words_file},
	{"buffer", 0, OPT_NUMBER, "MIB",
	 "room for what is on its way to the file, a power of two (16)",
	 offsetof(struct recording, buffer_mib), NULL},
	{"wait", 0, OPT_FLAG, NULL,
	 "also for what the command leaves running, until the last process has ended",
	 offsetof(struct recording, wait), NULL},
};

static const struct command *const commands[] = {
	&cmd_build_report,
	&cmd_build_normalize,
	&cmd_build_graph,
	&cmd_build_json,
	&cmd_build_ctf,
	&cmd_build_replay,
	&cmd_build_compile_commands,
	&cmd_build_deps,
	NULL,
};

const struct command cmd_trace_build = {
	.name = "trace build",
	.about =
		"record what a build executes and does with files, and make graphs and lists of it",
	.run = run_build,
	.sub = commands,
	.syntax =
		{
			.usage = "ax trace build -o FILE [--buffer MIB] [--wait] [--] COMMAND "
				 "[ARG ...]\n"
				 "ax trace build report|normalize|graph|json|replay|"
				 "compile-commands|deps FILE",
			.about = "Runs a command, and writes into a file what it and all processes "
				 "do that it starts: what they execute with all arguments and the "
				 "whole environment, how they end, and which files they open, "
				 "make, rename, link and remove. Other processes are hardly "
				 "slowed down. The commands below make something of such a file; "
				 "they need no rights.",
			.own = {{options, ARRAY_SIZE(options), 0}},
			.args = {&words_program},
			.command_follows = true,
		},
};
