// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>

#include "probes/build/needs.h"
#include "probes/build/path.h"
#include "probes/build/priv.h"

struct maker {
	const struct build *b;
	uint32_t cmd;
	bool *own; /* of each command: it is `cmd` or was started by it */
	struct build_needs *needs;
	size_t size, dirs_size;
};

static bool is_below(const struct build *b, uint32_t cmd, uint32_t above)
{
	while (cmd != BUILD_NONE && cmd != above)
		cmd = b->cmds[cmd].parent;
	return cmd == above;
}

/* --- files --- */

/* By the name that it had then. */
static const char *path_of(const struct build_event *ev)
{
	bool renamed = ev->type == AX_BUILD_RENAME || ev->type == AX_BUILD_LINK;

	return renamed ? ev->path2 : ev->path;
}

static uint32_t last_writer(const struct build *b, const struct build_node *n, size_t before)
{
	for (size_t i = before; i-- > 0;)
		if (b->uses[n->first + i].access & BUILD_WRITE)
			return build_program(b, b->uses[n->first + i].cmd);
	return BUILD_NONE;
}

/* What it took the place of, or was to take, is no need of it. */
static bool removed_itself(const struct maker *m, const struct build_node *n)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct build_use *u = &m->b->uses[n->first + i];

		if (u->access & BUILD_REMOVE && m->own[u->cmd])
			return true;
	}
	return false;
}

static int add_need(struct maker *m, const struct build_node *n, size_t use)
{
	const struct build *b = m->b;
	const struct build_event *ev = &b->events[b->uses[n->first + use].event];
	struct build_need need = {
		.path = path_of(ev), .from = BUILD_NEED_LEFT, .maker = BUILD_NONE};
	uint32_t writer = last_writer(b, n, use);

	/* (pipes with a name, as make has them for its jobs, are not asked for) */
	if (!need.path || (ev->type == AX_BUILD_OPEN && !S_ISREG(ev->file_mode)))
		return 0;
	if (writer == BUILD_NONE && (!n->gone || removed_itself(m, n)))
		return 0;
	if (n->gone) {
		need.from = writer == BUILD_NONE	  ? BUILD_NEED_BEFORE
			    : is_below(b, m->cmd, writer) ? BUILD_NEED_ABOVE
							  : BUILD_NEED_OTHER;
		need.maker = writer;
	}
	if (build_grow(&m->needs->v, m->needs->n, &m->size, sizeof(*m->needs->v)) < 0)
		return -ENOMEM;
	m->needs->v[m->needs->n++] = need;
	return 0;
}

static int by_maker(const void *a, const void *b)
{
	const struct build_need *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->maker != y->maker)
		return x->maker < y->maker ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* --- directories --- */

/* As long a name as that of the directory that the build removed, 0: it did not. */
static size_t gone_len(const struct build *b, const char *path)
{
	size_t len = 0;

	for (size_t i = 0; i < b->n_nodes; i++) {
		const struct build_node *n = &b->nodes[i];

		if (n->directory && n->made && n->gone && path_below(path, n->path))
			len = strlen(n->path) > len ? strlen(n->path) : len;
	}
	return len;
}

static int add_dir(struct maker *m, const char *path, size_t len)
{
	struct build_needs *d = m->needs;
	size_t size = m->dirs_size;

	if (!len)
		return 0;
	for (size_t i = 0; i < d->n_dirs; i++)
		if (d->dirs_len[i] == len && !strncmp(d->dirs[i], path, len))
			return 0;
	if (build_grow(&d->dirs, d->n_dirs, &size, sizeof(*d->dirs)) < 0 ||
	    build_grow(&d->dirs_len, d->n_dirs, &m->dirs_size, sizeof(*d->dirs_len)) < 0)
		return -ENOMEM;
	d->dirs[d->n_dirs] = path;
	d->dirs_len[d->n_dirs++] = len;
	return 0;
}

static int add_output(struct maker *m, const struct build_node *n, size_t use)
{
	const struct build *b = m->b;
	const char *path = path_of(&b->events[b->uses[n->first + use].event]);
	size_t len = path ? strlen(path) - strlen(path_base(path)) : 0;

	/* (a directory that it makes itself is not made for it) */
	if (len < 2 || n->directory || gone_len(b, path) != len - 1)
		return 0;
	return add_dir(m, path, len - 1);
}

static bool made_itself(const struct maker *m, const char *path, size_t len)
{
	for (size_t i = 0; i < m->b->n_nodes; i++) {
		const struct build_node *n = &m->b->nodes[i];

		if (n->directory && n->n && strlen(n->path) == len &&
		    !strncmp(n->path, path, len) && m->own[m->b->uses[n->first].cmd])
			return true;
	}
	return false;
}

static void drop_own_dirs(struct maker *m)
{
	struct build_needs *d = m->needs;
	size_t n = 0;

	for (size_t i = 0; i < d->n_dirs; i++) {
		if (made_itself(m, d->dirs[i], d->dirs_len[i]))
			continue;
		d->dirs[n] = d->dirs[i];
		d->dirs_len[n++] = d->dirs_len[i];
	}
	d->n_dirs = n;
}

/* --- all --- */

/* What it did first with the file says whether that had to be there. */
static int add_node(struct maker *m, const struct build_node *n)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct build_use *u = &m->b->uses[n->first + i];

		if (!m->own[u->cmd])
			continue;
		if (u->access & (BUILD_WRITE | BUILD_MOVE))
			return add_output(m, n, i);
		if (u->access & (BUILD_READ | BUILD_RUN) && !n->directory)
			return add_need(m, n, i);
	}
	return 0;
}

int build_needs_make(const struct build *b, uint32_t cmd, struct build_needs *ret)
{
	struct maker m = {.b = b, .cmd = cmd, .needs = ret};
	autofree bool *own = calloc(b->n_cmds + 1, 1);
	const char *cwd = b->cmds[cmd].cwd;
	int err = own ? 0 : -ENOMEM;

	*ret = (struct build_needs){0};
	m.own = own;
	for (uint32_t i = 0; err == 0 && i < b->n_cmds; i++)
		own[i] = is_below(b, i, cmd);
	for (size_t i = 0; err == 0 && i < b->n_nodes; i++)
		err = add_node(&m, &b->nodes[i]);
	if (err == 0 && cwd && gone_len(b, cwd))
		err = add_dir(&m, cwd, strlen(cwd));
	if (err < 0) {
		build_needs_free(ret);
		return err;
	}
	drop_own_dirs(&m);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_maker);
	return 0;
}

void build_needs_free(struct build_needs *needs)
{
	free(needs->v);
	free(needs->dirs);
	free(needs->dirs_len);
	*needs = (struct build_needs){0};
}
