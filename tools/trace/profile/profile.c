// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace profile: what runs on the processors, by call stacks. */
#include "probes/process/process.h"
#include "tools/trace/profile/profile.h"

#define HZ     99 /* no multiple of what others do at round times */
#define HZ_MAX 100000
#define TOP    20

/* --- what both commands do --- */

static int check(struct ready *r, const char *word, struct error *e)
{
	struct profile *p = r->own;

	(void)word;
	if (p->hz < 1 || p->hz > HZ_MAX)
		return error_set(e, -EINVAL, "-F %u: expected a number from 1 to %d", p->hz,
				 HZ_MAX);
	return processes_new(&p->names.processes) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;
}

/* Names are looked up now: at the end the process may be gone, or be another program. */
static int collect(struct profile *p, const struct ax_profile_key *k, const uint64_t *user,
		   size_t n_user, bool cut, const struct ax_profile_count *c)
{
	uint64_t kernel[AX_PROFILE_FRAMES];
	struct stack s = {.pid = k->pid, .n_user = n_user, .cut = cut};

	memcpy(s.comm, k->comm, sizeof(s.comm));
	s.comm[sizeof(s.comm) - 1] = '\0';
	s.app = collection_app(&p->stacks, k->pid);
	s.n_kernel = watch_frames(p->r.watch, k->kernel, kernel, AX_PROFILE_FRAMES);
	for (size_t i = 1; i < s.n_kernel; i++)
		kernel[i]--; /* the call, not what it returns to */
	for (size_t i = 0; i < n_user; i++)
		names_of_process(&p->names, s.pid, s.comm, user[i]);
	s.times = c->times;
	s.ns = c->ns;
	return s.times ? collection_add(&p->stacks, &s, kernel, user) : 0;
}

static int collect_counted(void *arg, const struct ax_profile_key *k,
			   const struct ax_profile_count *c)
{
	struct profile *p = arg;
	uint64_t user[AX_PROFILE_FRAMES];
	size_t n = watch_frames(p->r.watch, k->user, user, AX_PROFILE_FRAMES);

	for (size_t i = 1; i < n; i++)
		user[i]--;
	if (n && !p->stack && !p->waits)
		p->uncopied += c->times;
	return collect(p, k, user, n, n == AX_PROFILE_FRAMES, c);
}

static int collect_copy(struct profile *p, const struct ax_profile_sample *s)
{
	uint64_t user[AX_PROFILE_FRAMES];
	bool cut;
	int n;

	n = processes_callers(p->names.processes, (int)s->key.pid, &s->stack, user,
			      AX_PROFILE_FRAMES, &cut);
	if (n < 0)
		return n;
	return collect(p, &s->key, user, (size_t)n, cut, &(struct ax_profile_count){.times = 1});
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_profile_sample *s = record;
	struct profile *p = r->own;
	int err;

	if (len < sizeof(*s) || s->stack.len > len - sizeof(*s))
		return READY_HIDDEN;
	processes_note(p->names.processes, (int)s->head.pid);
	err = collection_note_app(&p->stacks, &s->head);
	if (err == 0 && s->head.type == AX_PROFILE_NEW)
		err = collect_counted(p, &s->key, &(struct ax_profile_count){0});
	else if (err == 0)
		err = collect_copy(p, s);
	if (err < 0)
		return err;
	return s->head.type == AX_PROFILE_NEW ? READY_PART : READY_SHOWN;
}

static void put_more(struct ready *r)
{
	const struct profile *p = r->own;
	char buf[TRACE_THOUSANDS_MAX];

	if (p->uncopied && r->json)
		trace_out_printf(&r->out, ",\"uncopied\":%llu", (unsigned long long)p->uncopied);
	else if (p->uncopied)
		fprintf(stderr,
			"; %s came too fast for their stacks to be copied, and have the callers "
			"that "
			"frame pointers lead to",
			trace_thousands(p->uncopied, buf));
}

static int add_times(void *arg, const struct ax_profile_key *k, const struct ax_profile_count *c)
{
	(void)k;
	*(uint64_t *)arg += c->times;
	return 0;
}

static int take_wait(void *arg, const struct ax_profile_key *k, const struct ax_profile_count *c)
{
	struct profile *p = arg;

	if (c->ns < (uint64_t)p->least_ms * 1000000)
		return 0;
	return collect_counted(arg, k, c);
}

static int not_read(int err, struct error *e)
{
	return error_set(e, err, "what was counted cannot be read: %s", strerror(-err));
}

static int read_counts(struct ready *r, uint64_t *events, struct error *e)
{
	int err;

	*events = 0;
	err = watch_counts(r->watch, add_times, events);
	return err < 0 ? not_read(err, e) : 0;
}

static int put_counts(struct ready *r, struct error *e)
{
	struct profile *p = r->own;
	int err = watch_counts(r->watch, collect_counted, p);

	if (err == 0 && p->waits)
		err = watch_still_waiting(r->watch, time_mono_ns(), take_wait, p);
	return err < 0 ? not_read(err, e) : profile_show(p, e);
}

static int stop_clocks(struct ready *r, struct error *e)
{
	struct profile *p = r->own;

	(void)e;
	watch_clocks_stop(&p->clocks);
	return 0;
}

int profile_run(struct profile *p, struct cmd *c, int argc, char **argv)
{
	int status;

	p->r.c = c;
	p->r.check = check;
	p->r.put = put;
	p->r.at_end = stop_clocks;
	p->r.read_counts = read_counts;
	p->r.put_counts = put_counts;
	p->r.put_more = put_more;
	p->r.own = p;
	p->r.poll_ms = WATCH_PROFILE_POLL_MS;
	p->hz = HZ;
	p->top = TOP;
	status = ready_command(&p->r, argc, argv);
	watch_clocks_stop(&p->clocks);
	ready_end(&p->r);
	collection_free(&p->stacks);
	profile_names_free(&p->names);
	return status;
}

static const char *const formats[] = {"text", "json", "folded", "svg", NULL};
static const char *const bys[] = {"function", "stack", NULL};
static const char *const stacks[] = {"dwarf", "fp", NULL};
const struct words profile_formats = {.choices = formats};
static const struct words by_words = {.choices = bys};
static const struct words stack_words = {.choices = stacks};

/* --- profile --- */

static int after_attach(struct ready *r, struct error *e)
{
	struct profile *p = r->own;

	p->names.watch = r->watch;
	return watch_clocks_start(r->watch, p->hz, &p->clocks, e);
}

static int load(struct ready *r, struct error *e)
{
	const struct profile *p = r->own;

	r->json = p->format == PROFILE_JSON;
	return watch_profile_load(&r->options, p->stack == 0, p->hz, &r->watch, e);
}

static int write_profile(const struct ready *r, FILE *f)
{
	const struct profile *p = r->own;

	if (p->format > PROFILE_JSON)
		return -ENOTSUP;
	if (!p->stack)
		fputs("# callers are found by frame pointers here\n", f);
	fprintf(f, "profile:%u { count by pid comm kstack ustack as samples }\n", p->hz);
	return 0;
}

static int run_profile(struct cmd *c, int argc, char **argv)
{
	struct profile p = {.r = {.load = load,
				  .after_attach = after_attach,
				  .write_script = write_profile,
				  .no_script = PROFILE_NO_SCRIPT}};

	return profile_run(&p, c, argc, argv);
}

static const struct opt options[] = {
	{"frequency", 'F', OPT_NUMBER, "HZ", "look so often in a second at each processor (99)",
	 offsetof(struct profile, hz), NULL},
	{"stack", 0, OPT_CHOICE, "HOW",
	 "find callers in programs by dwarf (the default), what their files say for exceptions, or "
	 "fp, frame pointers: cheaper, where programs are compiled with them",
	 offsetof(struct profile, stack), &stack_words},
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "text (the default), json (a stack a line), folded (for other tools), or svg, a flame "
	 "graph "
	 "for a browser",
	 offsetof(struct profile, format), &profile_formats},
	{"by", 0, OPT_CHOICE, "WHAT", "of text: a line for each function (the default) or stack",
	 offsetof(struct profile, by), &by_words},
	{"top", 0, OPT_NUMBER, "N", "of text: so many of them (20)", offsetof(struct profile, top),
	 NULL},
};

const struct command cmd_trace_profile = {
	.name = "trace profile",
	.about = "show which functions the processors are busy with",
	.run = run_profile,
	.syntax =
		{
			.usage =
				"ax trace profile [-F HZ] [-p PID] [-c CMD] [--app NAME] [-d TIME] "
				"[--stack dwarf|fp] [-o FORMAT] [--by WHAT]",
			.about = "Looks at each processor 99 times a second, and shows at the end "
				 "in "
				 "which functions it was: SELF is the part of the samples in the "
				 "function itself, TOTAL that in it or in what it called. -o svg "
				 "is a flame graph, -o folded what other tools make one of.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, READY_OPTS_TABLE, offsetof(struct profile, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPT_OUTPUT - TRACE_OPT_APP,
				 offsetof(struct profile, r.args)},
				{&trace_opts[TRACE_OPT_FILE], 1, offsetof(struct profile, r.args)}},
		},
};
