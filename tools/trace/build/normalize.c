// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ax trace build normalize: a build without what differs from one run to the next, so that two can
 * be compared with diff: no times, no numbers of processes, commands as a tree instead of in the
 * order of time, temporary files by their order.
 */
#include <ctype.h>
#include <sys/wait.h>

#include "probes/build/deps.h"
#include "probes/build/path.h"
#include "tools/trace/build/build.h"
#include "tools/trace/ready/ready.h"

#define DEPTH_MAX 200

struct named {
	const char *path;
	uint32_t file;
};

struct normalize {
	struct build_view v;
	bool env;
	size_t *order;	       /* events by command, in order of time */
	size_t *first;	       /* of each command; one more than there are */
	uint32_t *temporary;   /* of each file, from 1; 0: it is none */
	uint32_t *n_temporary; /* of each step */
	struct named *named;   /* temporary files, by all their names */
	size_t n_named;
	struct named *dirs; /* directories that were made and are gone, by name */
	size_t n_dirs;
};

/* --- names that stay the same --- */

static bool made_and_gone(const struct build_node *n)
{
	return n->made && n->gone;
}

/* A file that was made and is gone at the end has a name that nobody chose. */
static bool is_temporary(const struct build_node *n)
{
	return made_and_gone(n) && !n->directory;
}

static uint32_t maker_of(const struct build *b, const struct build_node *n)
{
	return n->n ? build_step(b, b->uses[n->first].cmd) : BUILD_NONE;
}

static bool is_shared(const struct build *b, const struct build_node *n)
{
	for (size_t i = 1; i < n->n; i++)
		if (build_step(b, b->uses[n->first + i].cmd) != maker_of(b, n))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static const struct named *find(const struct named *v, size_t n, const char *path)
{
	const struct named key = {.path = path};

	return n ? bsearch(&key, v, n, sizeof(*v), by_name) : NULL;
}

/* The outermost directory around it that is gone; NULL: there is none. */
static const struct named *directory_of(const struct normalize *x, const char *path)
{
	const struct named *found = NULL;
	autofree char *above = x->n_dirs ? strdup(path) : NULL;

	for (size_t i = 1; above && !found && path[i - 1]; i++) {
		if (path[i] && path[i] != '/')
			continue;
		above[i] = '\0';
		found = find(x->dirs, x->n_dirs, above);
		above[i] = path[i];
	}
	return found;
}

/* Steps tell each other names of such files below a directory, as go does with all that it builds.
 */
static bool has_number(const struct normalize *x, const struct build_node *n)
{
	const struct named *dir =
		n->directory && made_and_gone(n) ? directory_of(x, n->path) : NULL;

	if (n->directory)
		return dir && streq(dir->path, n->path);
	return is_temporary(n) && !(is_shared(&x->v.build, n) && directory_of(x, n->path));
}

/* Each step counts its own: others may run at the same time. */
static uint32_t temporary_of(struct normalize *x, uint32_t file)
{
	const struct build *b = &x->v.build;
	uint32_t step;

	if (file == BUILD_NONE || !has_number(x, &b->nodes[file]))
		return 0;
	step = maker_of(b, &b->nodes[file]);
	if (!x->temporary[file])
		x->temporary[file] = step == BUILD_NONE ? 1 : ++x->n_temporary[step];
	return x->temporary[file];
}

/* One that was made anew, and is there, has a name that somebody chose. */
static void list_directories(struct normalize *x)
{
	const struct build *b = &x->v.build;
	size_t n = 0;

	for (uint32_t i = 0; i < b->n_nodes; i++)
		if (b->nodes[i].directory && b->nodes[i].made)
			x->dirs[n++] = (struct named){b->nodes[i].path, i};
	qsort(x->dirs, n, sizeof(*x->dirs), by_name);
	for (size_t i = 0, end; i < n; i = end) {
		bool gone = true;

		for (end = i; end < n && streq(x->dirs[end].path, x->dirs[i].path); end++)
			gone &= b->nodes[x->dirs[end].file].gone;
		if (gone)
			x->dirs[x->n_dirs++] = x->dirs[i];
	}
}

static int name_temporaries(struct normalize *x)
{
	const struct build *b = &x->v.build;

	x->temporary = calloc(b->n_nodes + 1, sizeof(*x->temporary));
	x->n_temporary = calloc(b->n_cmds + 1, sizeof(*x->n_temporary));
	x->named = calloc(2 * b->n_nodes + 1, sizeof(*x->named));
	x->dirs = calloc(b->n_nodes + 1, sizeof(*x->dirs));
	if (!x->temporary || !x->n_temporary || !x->named || !x->dirs)
		return -ENOMEM;
	list_directories(x);
	for (uint32_t i = 0; i < b->n_nodes; i++) {
		temporary_of(x, i);
		if (!is_temporary(&b->nodes[i]))
			continue;
		x->named[x->n_named++] = (struct named){b->nodes[i].path, i};
		if (b->nodes[i].born)
			x->named[x->n_named++] = (struct named){b->nodes[i].born, i};
	}
	qsort(x->named, x->n_named, sizeof(*x->named), by_name);
	return 0;
}

static uint32_t find_path(const struct normalize *x, const char *path)
{
	const struct named *found = find(x->named, x->n_named, path);

	return found ? found->file : BUILD_NONE;
}

static void put_file(struct normalize *x, uint32_t file, const char *path)
{
	bool is_directory = file != BUILD_NONE && x->v.build.nodes[file].directory;
	uint32_t number = is_directory ? 0 : temporary_of(x, file);
	const struct named *dir = number ? NULL : directory_of(x, path);
	const char *name = build_view_name(&x->v, path);

	if (number) {
		trace_out_printf(&x->v.out, "<temporary %u>", number);
	} else if (dir) {
		trace_out_printf(&x->v.out, "<directory %u>", temporary_of(x, dir->file));
		name = path + strlen(dir->path);
		trace_out_safe(&x->v.out, name, strlen(name));
	} else {
		ready_shell_word(&x->v.out, name, strlen(name));
	}
}

/* The first name of a directory that is gone in a word, as in -trimpath /tmp/go-build1/b001=>;
 * NULL: there is none. */
static const char *find_directory(const struct normalize *x, const char *word,
				  const struct named **dir)
{
	for (const char *at = strchr(word, '/'); at; at = strchr(at + 1, '/')) {
		*dir = at > word && (isalnum(at[-1]) || strchr("._-/", at[-1]))
			       ? NULL
			       : directory_of(x, at);
		if (*dir)
			return at;
	}
	return NULL;
}

static void put_plain_word(struct normalize *x, const char *word)
{
	const struct named *dir;
	const char *at = find_directory(x, word, &dir);

	if (!at) {
		ready_shell_word(&x->v.out, word, strlen(word));
		return;
	}
	for (; at; at = find_directory(x, word, &dir)) {
		trace_out_safe(&x->v.out, word, (size_t)(at - word));
		trace_out_printf(&x->v.out, "<directory %u>", temporary_of(x, dir->file));
		word = at + strlen(dir->path);
	}
	trace_out_safe(&x->v.out, word, strlen(word));
}

/* Also behind a '=', as in -fresolution=/tmp/ccX.res */
static void put_word(struct normalize *x, const struct build_cmd *c, const char *word)
{
	const char *equals = strrchr(word, '='), *name = equals ? equals + 1 : word;
	autofree char *path = NULL;
	uint32_t file = BUILD_NONE;

	if (strchr(name, '/')) {
		path = path_join(c->cwd, name, strlen(name));
		file = path ? find_path(x, path) : BUILD_NONE;
	}
	if (file == BUILD_NONE) {
		put_plain_word(x, word);
		return;
	}
	trace_out_safe(&x->v.out, word, (size_t)(name - word));
	put_file(x, file, path);
}

/* --- lines --- */

static void indent(struct normalize *x, size_t depth)
{
	for (size_t i = 0; i < depth && i < DEPTH_MAX; i++)
		trace_out_text(&x->v.out, "  ");
}

static void put_env(struct normalize *x, const struct build_cmd *c, size_t depth)
{
	for (size_t at = 0; at < c->env.len; at += strlen(c->env.v + at) + 1) {
		indent(x, depth + 2);
		ready_shell_word(&x->v.out, c->env.v + at, strlen(c->env.v + at));
		trace_out_char(&x->v.out, '\n');
	}
}

static void put_command(struct normalize *x, uint32_t cmd, size_t depth)
{
	const struct build_cmd *c = &x->v.build.cmds[cmd];
	bool at_root = x->v.root && c->cwd && streq(c->cwd, x->v.root);
	const char *cwd = at_root ? "." : c->cwd ? build_view_name(&x->v, c->cwd) : "?";
	int status = (int)c->status;

	indent(x, depth);
	if (!c->executed) {
		trace_out_text(&x->v.out, "fork");
	} else {
		for (size_t at = 0; at < c->argv.len; at += strlen(c->argv.v + at) + 1) {
			if (at)
				trace_out_char(&x->v.out, ' ');
			put_word(x, c, c->argv.v + at);
		}
		trace_out_text(&x->v.out, " (in ");
		ready_shell_word(&x->v.out, cwd, strlen(cwd));
		trace_out_char(&x->v.out, ')');
	}
	if (c->ended && WIFSIGNALED(status))
		trace_out_printf(&x->v.out, " = signal %d", WTERMSIG(status));
	else if (c->ended && status)
		trace_out_printf(&x->v.out, " = %d", WEXITSTATUS(status));
	trace_out_char(&x->v.out, '\n');
	if (x->env && c->executed)
		put_env(x, c, depth);
}

/* What it says of a file, NULL: nothing that matters. */
static const char *what_of(const struct build *b, const struct build_event *ev)
{
	uint32_t access = 0;

	if (ev->file == BUILD_NONE || ev->type == AX_BUILD_EXEC)
		return NULL;
	if (ev->type != AX_BUILD_OPEN)
		return build_change_word(ev->type);
	for (size_t i = 0; i < b->nodes[ev->file].n; i++) {
		const struct build_use *u = &b->uses[b->nodes[ev->file].first + i];

		if (&b->events[u->event] == ev)
			access = u->access;
	}
	if (!access)
		return NULL;
	return access & BUILD_WRITE ? access & BUILD_READ ? "update" : "write" : "read";
}

static bool was_said(const struct normalize *x, size_t from, size_t at)
{
	const struct build *b = &x->v.build;
	const struct build_event *ev = &b->events[x->order[at]];

	for (size_t i = at; i-- > from && at - i < 256;) {
		const struct build_event *before = &b->events[x->order[i]];

		if (before->type == ev->type && before->file == ev->file &&
		    before->flags == ev->flags)
			return true;
	}
	return false;
}

static void put_events(struct normalize *x, uint32_t cmd, size_t depth)
{
	const struct build *b = &x->v.build;

	for (size_t i = x->first[cmd]; i < x->first[cmd + 1]; i++) {
		const struct build_event *ev = &b->events[x->order[i]];
		const char *what = what_of(b, ev);

		if (!what || was_said(x, x->first[cmd], i))
			continue;
		if (!build_view_shows(&x->v, ev->path) &&
		    !(ev->path2 && build_view_shows(&x->v, ev->path2)))
			continue;
		indent(x, depth + 1);
		trace_out_printf(&x->v.out, "%s ", what);
		put_file(x, ev->path2 ? BUILD_NONE : ev->file, ev->path);
		if (ev->path2) {
			trace_out_char(&x->v.out, ' ');
			put_file(x, ev->file, ev->path2);
		}
		trace_out_char(&x->v.out, '\n');
	}
}

/* A fork that became something else and did nothing of its own is not worth a line. */
static bool is_silent(const struct build *b, uint32_t cmd)
{
	return !b->cmds[cmd].executed && b->cmds[cmd].next != BUILD_NONE;
}

/* What a program like make starts has an order that depends on what is ready first: it is put in
 * that of its texts, so that builds with any -j can be compared. */
struct child {
	const struct build_words *argv;
	uint32_t cmd;
};

static int by_words(const void *a, const void *b)
{
	const struct child *x = a, *y = b;
	size_t n = x->argv->len < y->argv->len ? x->argv->len : y->argv->len;
	int c = n ? memcmp(x->argv->v, y->argv->v, n) : 0;

	if (c || x->argv->len != y->argv->len)
		return c ? c : x->argv->len < y->argv->len ? -1 : 1;
	return x->cmd < y->cmd ? -1 : x->cmd > y->cmd;
}

static void sort_children(struct build *b, uint32_t cmd, struct child *v)
{
	size_t n = 0;

	for (uint32_t c = b->cmds[cmd].child; c != BUILD_NONE; c = b->cmds[c].sibling)
		v[n++] = (struct child){&b->cmds[build_actor(b, c)].argv, c};
	if (!n)
		return;
	qsort(v, n, sizeof(*v), by_words);
	b->cmds[cmd].child = v[0].cmd;
	for (size_t i = 0; i < n; i++)
		b->cmds[v[i].cmd].sibling = i + 1 < n ? v[i + 1].cmd : BUILD_NONE;
}

static int sort_steps(struct normalize *x)
{
	struct build *b = &x->v.build;
	autofree struct child *v = calloc(b->n_cmds + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_cmds; i++)
		if (b->cmds[i].executed && build_starts_steps(b, i))
			sort_children(b, i, v);
	return 0;
}

/* Commands in the order of the tree, without recursion: a damaged file may be deep. */
static void put_tree(struct normalize *x)
{
	const struct build *b = &x->v.build;
	size_t depth;

	for (uint32_t root = 0; root < b->n_cmds; root++) {
		uint32_t at = root;

		if (b->cmds[root].parent != BUILD_NONE)
			continue;
		for (depth = 0; at != BUILD_NONE;) {
			bool silent = is_silent(b, at);

			if (!silent)
				put_command(x, at, depth);
			put_events(x, at, depth);
			if (b->cmds[at].child != BUILD_NONE) {
				depth += !silent;
				at = b->cmds[at].child;
				continue;
			}
			while (at != BUILD_NONE && b->cmds[at].sibling == BUILD_NONE) {
				at = b->cmds[at].parent;
				if (at != BUILD_NONE)
					depth -= !is_silent(b, at);
			}
			if (at != BUILD_NONE)
				at = b->cmds[at].sibling;
		}
	}
}

static int by_path(const void *a, const void *c, void *arg)
{
	const struct build *b = arg;
	const size_t *x = a, *y = c;
	const char *p = b->events[*x].path, *q = b->events[*y].path;
	int order = strcmp(p ? p : "", q ? q : "");

	return order ? order : *x < *y ? -1 : *x > *y;
}

static bool showed_threads(const struct normalize *x, uint32_t cmd)
{
	const struct build *b = &x->v.build;
	size_t from = x->first[cmd];

	for (size_t i = from; i < x->first[cmd + 1]; i++)
		if (b->events[x->order[i]].tid != b->events[x->order[from]].tid)
			return true;
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The programs with threads, sorted: *ret is the caller's to free, the texts are the build's. */
static int threaded_programs(const struct normalize *x, const char ***ret, size_t *n)
{
	const struct build *b = &x->v.build;

	*n = 0;
	*ret = calloc(b->n_cmds + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_cmds; i++)
		if (b->cmds[i].executed && b->cmds[i].exe && showed_threads(x, i))
			(*ret)[(*n)++] = b->cmds[i].exe;
	qsort(*ret, *n, sizeof(**ret), by_text);
	return 0;
}

/* What a program that starts steps does with files itself comes when these end, and what threads do
 * comes as it happens. (One whose threads did something in one of its runs has them in all: which
 * of them does it is chance, and may be the first alone.) */
static int sort_own_events(struct normalize *x)
{
	struct build *b = &x->v.build;
	autofree const char **threaded = NULL;
	size_t n;

	if (threaded_programs(x, &threaded, &n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_cmds; i++) {
		const struct build_cmd *cmd = &b->cmds[i];

		if (!cmd->executed)
			continue;
		if (build_starts_steps(b, i) ||
		    (cmd->exe && bsearch(&cmd->exe, threaded, n, sizeof(*threaded), by_text)))
			qsort_r(x->order + x->first[i], x->first[i + 1] - x->first[i],
				sizeof(*x->order), by_path, b);
	}
	return 0;
}

static int sort_events(struct normalize *x)
{
	const struct build *b = &x->v.build;
	autofree size_t *at = calloc(b->n_cmds + 1, sizeof(*at));

	x->first = calloc(b->n_cmds + 1, sizeof(*x->first));
	x->order = calloc(b->n_events + 1, sizeof(*x->order));
	if (!at || !x->first || !x->order)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_events; i++)
		x->first[b->events[i].cmd + 1]++;
	for (size_t i = 0; i < b->n_cmds; i++)
		x->first[i + 1] += x->first[i];
	memcpy(at, x->first, (b->n_cmds + 1) * sizeof(*at));
	for (size_t i = 0; i < b->n_events; i++)
		x->order[at[b->events[i].cmd]++] = i;
	return sort_own_events(x);
}

static int run_normalize(struct cmd *c, int argc, char **argv)
{
	struct normalize x = {.v = {.c = c, .out.fd = -1}};
	int status;

	if (!cmd_begin(c, &x, &argc, argv, &status))
		return status;
	cmd_output();
	x.v.secret = x.env;
	if (build_view_begin(&x.v, 1, argc, argv, &status)) {
		status = CMD_OK;
		if (sort_events(&x) < 0 || name_temporaries(&x) < 0 || sort_steps(&x) < 0)
			status = cmd_failed(c, &(struct error){.text = "out of memory"});
		else
			put_tree(&x);
	}
	free(x.order);
	free(x.first);
	free(x.temporary);
	free(x.n_temporary);
	free(x.named);
	free(x.dirs);
	return build_view_end(&x.v, status);
}

static const struct opt options[] = {
	{"env", 'e', OPT_FLAG, NULL, "the environment of each command, too",
	 offsetof(struct normalize, env), NULL},
};

const struct command cmd_build_normalize = {
	.name = "trace build normalize",
	.about = "print a build as a tree, without what differs between two runs",
	.run = run_normalize,
	.syntax =
		{
			.usage = "ax trace build normalize [-e] [--only GLOB] [--except GLOB] "
				 "[--system] [-O FILE] FILE",
			.about = "Prints each command below the one that started it, with its "
				 "directory, its status if that is not 0, and what it did with "
				 "files: without times and numbers of processes, and with files "
				 "that are gone at the end by numbers, so that diff shows what "
				 "changed from one build to another.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{build_opts, BUILD_OPTS, offsetof(struct normalize, v)}},
			.args = {&words_file},
		},
};
