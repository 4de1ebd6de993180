// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace build deps: what each file was made of, what the Makefile does not say of it, and what
 * nobody reads. */
#include "probes/build/deps.h"
#include "probes/build/makedb.h"
#include "probes/build/path.h"
#include "tools/trace/build/build.h"
#include "tools/trace/build/defaults.h"

struct deps {
	struct build_view v;
	const char *database;
	bool unread;
	struct build_steps steps;
	struct makedb *db;
	bool *said; /* of each file */
	size_t found;
	/* of the output that is looked at */
	uint32_t *inputs, *todo; /* files, and steps */
	size_t n_inputs, n_todo;
	bool *taken; /* of each step, whether it is among these */
};

/* As a Makefile has it. */
static void put_file(struct deps *d, const char *path)
{
	for (const char *p = build_view_name(&d->v, path); *p; p++) {
		if (*p == ' ' || *p == '#' || *p == ':' || *p == '\\')
			trace_out_char(&d->v.out, '\\');
		else if (*p == '$')
			trace_out_char(&d->v.out, '$');
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			trace_out_char(&d->v.out, '?');
		else
			trace_out_char(&d->v.out, *p);
	}
}

static const char *path_at(const struct deps *d, uint32_t file)
{
	return d->v.build.nodes[file].path;
}

static bool is_missing(const struct deps *d, uint32_t file)
{
	if (!build_view_shows(&d->v, path_at(d, file)))
		return false;
	return !d->db || !makedb_needs(d->db, path_at(d, file));
}

/* --- what a file was made of --- */

static void add_step(struct deps *d, uint32_t step)
{
	if (step == BUILD_NONE || d->taken[step])
		return;
	d->taken[step] = true;
	d->todo[d->n_todo++] = step;
}

/* What was made on the way and is gone stands for what it was made of; not for what programs that
 * start steps read, of which nobody knows what it was for. False: it stands for itself. */
static bool add_makers(struct deps *d, uint32_t file)
{
	const struct build *b = &d->v.build;
	const struct build_node *n = &b->nodes[file];

	if (!n->made || !n->gone)
		return false;
	for (size_t i = 0; i < n->n; i++) {
		const struct build_use *u = &b->uses[n->first + i];
		uint32_t step = build_step(b, u->cmd);

		if (u->access & (BUILD_WRITE | BUILD_MOVE) && step != BUILD_NONE &&
		    !build_starts_steps(b, step))
			add_step(d, step);
	}
	return true;
}

static int by_path(const void *a, const void *b, void *arg)
{
	const struct deps *d = arg;

	return strcmp(path_at(d, *(const uint32_t *)a), path_at(d, *(const uint32_t *)b));
}

static void find_inputs(struct deps *d, uint32_t step)
{
	d->n_inputs = d->n_todo = 0;
	add_step(d, step);
	for (size_t at = 0; at < d->n_todo; at++) {
		size_t n;
		const struct build_step_use *v = build_steps_of(&d->steps, d->todo[at], &n);

		for (size_t i = 0; i < n; i++)
			if (build_is_input(&d->v.build, &v[i]) && !add_makers(d, v[i].file) &&
			    !d->said[v[i].file]) {
				d->said[v[i].file] = true;
				d->inputs[d->n_inputs++] = v[i].file;
			}
	}
	for (size_t i = 0; i < d->n_todo; i++)
		d->taken[d->todo[i]] = false;
	for (size_t i = 0; i < d->n_inputs; i++)
		d->said[d->inputs[i]] = false;
	qsort_r(d->inputs, d->n_inputs, sizeof(*d->inputs), by_path, d);
}

/* Of what a program that starts steps wrote, too, as go does with what a linker made, nothing is to
 * be said: it reads much that did not go into it. */
static bool is_passed_on(const struct deps *d, const struct build_step_use *out)
{
	const struct build *b = &d->v.build;
	const struct build_node *n = &b->nodes[out->file];

	for (size_t i = 0; build_starts_steps(b, out->step) && i < n->n; i++) {
		const struct build_use *u = &b->uses[n->first + i];

		if (u->access & (BUILD_WRITE | BUILD_MOVE) && build_step(b, u->cmd) != out->step)
			return true;
	}
	return false;
}

static void put_output(struct deps *d, const struct build_step_use *out)
{
	const char *path = path_at(d, out->file), *last = path;
	bool any = false;

	if ((d->db && !makedb_target(d->db, path)) || is_passed_on(d, out))
		return;
	find_inputs(d, out->step);
	for (size_t i = 0; i < d->n_inputs; i++) {
		const char *input = path_at(d, d->inputs[i]);

		/* files of one name, that was made anew, are one here */
		if (streq(input, path) || streq(input, last) || !is_missing(d, d->inputs[i]))
			continue;
		last = input;
		if (!any) {
			put_file(d, path);
			trace_out_char(&d->v.out, ':');
		}
		any = true;
		trace_out_char(&d->v.out, ' ');
		put_file(d, input);
	}
	if (any)
		trace_out_char(&d->v.out, '\n');
	d->found += any;
}

static void put_unread(struct deps *d, const struct build_step_use *out)
{
	const struct build *b = &d->v.build;

	if (d->said[out->file] || build_is_read(b, out->file))
		return;
	d->said[out->file] = true;
	put_file(d, path_at(d, out->file));
	trace_out_text(&d->v.out, "  # ");
	if (out->step != BUILD_NONE)
		build_view_words(&d->v, &b->cmds[out->step].argv, 100);
	trace_out_char(&d->v.out, '\n');
	d->found++;
}

static int read_database(struct deps *d, struct error *e)
{
	autofree char *text = NULL;
	struct error why = {0};
	int err = file_read(d->database, BUILD_DATABASE_MAX, &text);

	if (err < 0)
		return error_set(e, err, "'%.200s' cannot be read: %s", d->database,
				 strerror(-err));
	err = makedb_read(text, strlen(text), &d->db, &why);
	if (err < 0)
		return error_set(e, err, "'%.150s' cannot be used: %.300s", d->database, why.text);
	return 0;
}

static int allocate(struct deps *d)
{
	const struct build *b = &d->v.build;

	d->said = calloc(b->n_nodes + 1, sizeof(*d->said));
	d->inputs = calloc(b->n_nodes + 1, sizeof(*d->inputs));
	d->taken = calloc(b->n_cmds + 1, sizeof(*d->taken));
	d->todo = calloc(b->n_cmds + 1, sizeof(*d->todo));
	if (!d->said || !d->inputs || !d->taken || !d->todo)
		return -ENOMEM;
	return build_steps_make(b, &d->steps);
}

static int put_deps(struct deps *d)
{
	struct error e = {0};

	if (allocate(d) < 0)
		return cmd_failed(d->v.c, &(struct error){.text = "out of memory"});
	if (d->database && read_database(d, &e) < 0)
		return cmd_failed(d->v.c, &e);
	for (size_t i = 0; i < d->steps.n; i++) {
		const struct build_step_use *u = &d->steps.v[i];

		if (!build_is_output(&d->v.build, u) ||
		    !build_view_shows(&d->v, path_at(d, u->file)))
			continue;
		if (d->unread)
			put_unread(d, u);
		else
			put_output(d, u);
	}
	return d->database && d->found ? CMD_FAILED : CMD_OK;
}

static int run_deps(struct cmd *c, int argc, char **argv)
{
	struct deps d = {.v = {.c = c, .out.fd = -1}};
	int status;

	if (!cmd_begin(c, &d, &argc, argv, &status))
		return status;
	if (d.database && d.unread)
		return cmd_usage(c, "--undeclared and --unread are two lists: expected one");
	cmd_output();
	if (build_view_begin(&d.v, 1, argc, argv, &status))
		status = put_deps(&d);
	makedb_free(d.db);
	free(d.steps.v);
	free(d.said);
	free(d.inputs);
	free(d.taken);
	free(d.todo);
	return build_view_end(&d.v, status);
}

static const struct opt options[] = {
	{"undeclared", 0, OPT_STRING, "DATABASE",
	 "only what is not in this output of 'make -pq'; the exit status is 1 if there is any",
	 offsetof(struct deps, database), &words_file},
	{"unread", 0, OPT_FLAG, NULL, "instead: files that were made and that no other step read",
	 offsetof(struct deps, unread), NULL},
};

const struct command cmd_build_deps = {
	.name = "trace build deps",
	.about = "print what each file was made of, what no Makefile says of it, what nobody reads",
	.run = run_deps,
	.syntax =
		{
			.usage = "ax trace build deps [--undeclared DATABASE | --unread] [--only "
				 "GLOB] [--except GLOB] [--system] [-O FILE] FILE",
			.about = "Prints, as a Makefile has it, each file that was made and what "
				 "was read for it: by a step, which is a command that make, ninja "
				 "or go started, with all that this command started. With "
				 "--undeclared only what the Makefile does not know: neither the "
				 "target itself nor what it needs names it.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{build_opts, BUILD_OPTS, offsetof(struct deps, v)}},
			.args = {&words_file},
		},
};
