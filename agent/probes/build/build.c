// SPDX-License-Identifier: GPL-2.0-or-later
/* From records to programs and files. */
#include <fcntl.h>
#include <sys/stat.h>

#include "probes/build/path.h"
#include "probes/build/priv.h"

struct maker {
	struct build *b;
	struct build_map now; /* the command that a process is */
	struct build_files files;
	const char **cwd; /* of each command, as it is now */
	uint32_t *last_child;
	size_t cmds_size, cwd_size, last_size, events_size;
};

/* --- programs --- */

static int add_cmd(struct maker *m, uint32_t pid, uint32_t parent, uint64_t time, uint32_t *ret)
{
	struct build *b = m->b;
	const struct build_cmd *from;
	size_t n = b->n_cmds;
	struct build_cmd *c;

	if (build_grow(&b->cmds, n, &m->cmds_size, sizeof(*b->cmds)) < 0 ||
	    build_grow(&m->cwd, n, &m->cwd_size, sizeof(*m->cwd)) < 0 ||
	    build_grow(&m->last_child, n, &m->last_size, sizeof(*m->last_child)) < 0)
		return -ENOMEM;
	c = &b->cmds[n];
	*c = (struct build_cmd){.pid = pid,
				.parent = parent,
				.next = BUILD_NONE,
				.child = BUILD_NONE,
				.sibling = BUILD_NONE,
				.start_ns = time,
				.end_ns = time,
				.file = "",
				.exe = ""};
	m->cwd[n] = NULL;
	m->last_child[n] = BUILD_NONE;
	if (parent != BUILD_NONE) {
		from = &b->cmds[parent];
		c->file = from->file;
		c->exe = from->exe;
		m->cwd[n] = c->cwd = m->cwd[parent];
		if (m->last_child[parent] == BUILD_NONE)
			b->cmds[parent].child = (uint32_t)n;
		else
			b->cmds[m->last_child[parent]].sibling = (uint32_t)n;
		m->last_child[parent] = (uint32_t)n;
	}
	b->n_cmds++;
	*ret = (uint32_t)n;
	return build_map_set(&m->now, NULL, pid, *ret);
}

/* One that was not seen being started is nobody's child: the first, or one whose fork was lost. */
static int cmd_of(struct maker *m, const struct build_record *r, uint32_t *ret)
{
	*ret = build_map_get(&m->now, NULL, r->pid);
	return *ret == BUILD_NONE ? add_cmd(m, r->pid, BUILD_NONE, r->time_ns, ret) : 0;
}

static int take_fork(struct maker *m, const struct build_record *r, struct build_event *ev)
{
	return add_cmd(m, r->child, ev->cmd, r->time_ns, &ev->other);
}

static char *keep(struct maker *m, char *text)
{
	char *kept = text ? build_store_text(&m->b->store, text, strlen(text)) : NULL;

	free(text);
	return kept;
}

static void fill_exec(struct build_cmd *c, const struct build_item *item)
{
	const struct build_texts *t = item->texts;

	c->executed = true;
	c->complete = !t->gap;
	c->flags = item->r.exec.flags;
	c->argv = t->argv;
	c->env = t->env;
	if (t->file)
		c->file = t->file;
	if (t->cwd)
		c->cwd = t->cwd;
}

static int take_exec(struct maker *m, const struct build_item *item, struct build_event *ev)
{
	const struct build_record *r = &item->r;
	uint32_t before = ev->cmd;
	struct build_cmd *c;
	int err = add_cmd(m, r->pid, before, r->time_ns, &ev->cmd);

	if (err < 0)
		return err;
	m->b->cmds[before].next = ev->cmd;
	m->b->cmds[before].end_ns = r->time_ns;
	ev->other = before;
	c = &m->b->cmds[ev->cmd];
	fill_exec(c, item);
	m->cwd[ev->cmd] = c->cwd;
	ev->path = keep(m, path_of_names(r->exec.exe.v, r->exec.exe.len,
					 r->exec.flags & AX_BUILD_DEEP_EXE));
	if (!ev->path)
		return -ENOMEM;
	c->exe = ev->path;
	ev->path2 = keep(m, path_join(c->cwd, c->file, strlen(c->file)));
	if (!ev->path2)
		return -ENOMEM;
	if (*c->file && !streq(ev->path, ev->path2))
		err = build_file_get(&m->files, ev->path2, &ev->file2);
	return err < 0 ? err : build_file_get(&m->files, ev->path, &ev->file);
}

static int take_exit(struct maker *m, const struct build_record *r, const struct build_event *ev)
{
	struct build_cmd *c = &m->b->cmds[ev->cmd];

	c->ended = true;
	c->end_ns = r->time_ns;
	c->status = r->status;
	return build_map_set(&m->now, NULL, r->pid, BUILD_NONE);
}

/* --- files --- */

/* Where a name begins. A directory that is not known leaves a name that says so. */
static int resolve(struct maker *m, const struct build_record *r, uint32_t cmd, bool second,
		   const char **ret)
{
	const struct build_text *name = &r->path.text[second ? AX_BUILD_NAME2 : AX_BUILD_NAME];
	const struct build_text *dir = &r->path.text[second ? AX_BUILD_DIR2 : AX_BUILD_DIR];
	autofree char *from = NULL;
	const char *base = m->cwd[cmd];

	if (dir->len) {
		from = path_of_names(dir->v, dir->len, r->path.p.path_flags & AX_BUILD_DEEP_DIR);
		if (!from)
			return -ENOMEM;
		base = from;
	} else if ((second ? r->path.p.dir2 : r->path.p.dir) != AT_FDCWD) {
		base = "/"; /* a descriptor of the root has no names */
	}
	*ret = keep(m, path_join(base, name->v, strnlen(name->v, name->len)));
	return *ret ? 0 : -ENOMEM;
}

static int keep_names(struct maker *m, const struct build_record *r, struct build_event *ev)
{
	const struct build_text *t = r->path.text;

	if (t[AX_BUILD_NAME].len) {
		ev->name = build_store_text(&m->b->store, t[AX_BUILD_NAME].v, t[AX_BUILD_NAME].len);
		if (!ev->name)
			return -ENOMEM;
	}
	if (t[AX_BUILD_NAME2].len) {
		ev->name2 =
			build_store_text(&m->b->store, t[AX_BUILD_NAME2].v, t[AX_BUILD_NAME2].len);
		if (!ev->name2)
			return -ENOMEM;
	}
	return 0;
}

static bool has_second(uint32_t type)
{
	return type == AX_BUILD_RENAME || type == AX_BUILD_LINK;
}

static int keep_paths(struct maker *m, const struct build_record *r, struct build_event *ev)
{
	const struct build_text *real = &r->path.text[AX_BUILD_REAL];
	int err = 0;

	if (real->len && !has_second(ev->type)) {
		ev->path = keep(m, path_of_names(real->v, real->len,
						 r->path.p.path_flags & AX_BUILD_DEEP_REAL));
		return ev->path ? 0 : -ENOMEM;
	}
	if (ev->type == AX_BUILD_SYMLINK)
		return resolve(m, r, ev->cmd, true, &ev->path);
	err = resolve(m, r, ev->cmd, false, &ev->path);
	return err == 0 && has_second(ev->type) ? resolve(m, r, ev->cmd, true, &ev->path2) : err;
}

static int take_rename(struct maker *m, struct build_event *ev)
{
	struct build_files *f = &m->files;
	const char *to = ev->path2;
	int err = build_file_get(f, ev->path, &ev->file);

	if (err < 0)
		return err;
	m->b->nodes[ev->file].made = true;
	if (!(ev->flags & BUILD_RENAME_EXCHANGE))
		return build_file_rename(f, ev->file, to, &ev->file2);
	err = build_file_get(f, to, &ev->file2);
	if (err < 0)
		return err;
	m->b->nodes[ev->file2].made = true;
	return build_file_exchange(f, ev->file, ev->file2);
}

static int take_link(struct maker *m, struct build_event *ev)
{
	int err = build_file_get(&m->files, ev->path, &ev->file2);

	if (err == 0)
		err = build_file_get(&m->files, ev->path2, &ev->file);
	if (err < 0)
		return err;
	m->b->nodes[ev->file].made = true;
	if (ev->file != ev->file2)
		m->b->nodes[ev->file].same = ev->file2;
	return 0;
}

static int take_file(struct maker *m, struct build_event *ev)
{
	struct build_node *n;
	int err;

	if (ev->type == AX_BUILD_CHDIR || ev->type == AX_BUILD_NO_EXEC ||
	    ev->type == AX_BUILD_INHERIT)
		return 0;
	if (ev->type == AX_BUILD_RENAME)
		return take_rename(m, ev);
	if (ev->type == AX_BUILD_LINK)
		return take_link(m, ev);
	err = build_file_get(&m->files, ev->path, &ev->file);
	if (err < 0)
		return err;
	n = &m->b->nodes[ev->file];
	if (build_event_access(ev, false) & BUILD_WRITE)
		n->made = true;
	if (ev->type == AX_BUILD_MKDIR || S_ISDIR(ev->file_mode))
		n->directory = true;
	return build_event_access(ev, false) & BUILD_REMOVE ? build_file_remove(&m->files, ev->file)
							    : 0;
}

static int take_path(struct maker *m, const struct build_record *r, struct build_event *ev)
{
	const struct ax_build_path *p = &r->path.p;
	int err;

	ev->ret = p->ret;
	ev->flags = p->flags;
	ev->mode = p->mode;
	ev->file_mode = p->file_mode;
	err = keep_names(m, r, ev);
	if (err == 0)
		err = keep_paths(m, r, ev);
	if (err < 0 || ev->ret < 0)
		return err;
	if (ev->type == AX_BUILD_CHDIR)
		m->cwd[ev->cmd] = ev->path;
	return take_file(m, ev);
}

/* --- the whole --- */

static int take(struct maker *m, const struct build_item *item)
{
	const struct build_record *r = &item->r;
	struct build_event ev = {.time_ns = r->time_ns,
				 .type = r->type,
				 .tid = r->tid,
				 .other = BUILD_NONE,
				 .file = BUILD_NONE,
				 .file2 = BUILD_NONE};
	int err = cmd_of(m, r, &ev.cmd);

	if (err < 0)
		return err;
	if (r->type == AX_BUILD_FORK)
		err = take_fork(m, r, &ev);
	else if (r->type == AX_BUILD_EXEC)
		err = take_exec(m, item, &ev);
	else if (r->type == AX_BUILD_EXIT)
		err = take_exit(m, r, &ev);
	else
		err = take_path(m, r, &ev);
	if (err < 0)
		return err;
	if (!m->b->cmds[ev.cmd].ended)
		m->b->cmds[ev.cmd].end_ns = r->time_ns;
	if (build_grow(&m->b->events, m->b->n_events, &m->events_size, sizeof(ev)) < 0)
		return -ENOMEM;
	m->b->events[m->b->n_events++] = ev;
	return 0;
}

/* What an exec left open is told before it, and belongs to it. */
static void move_inherited(struct build *b)
{
	for (size_t i = 0; i < b->n_events; i++) {
		struct build_event *ev = &b->events[i];

		if (ev->type == AX_BUILD_INHERIT && b->cmds[ev->cmd].next != BUILD_NONE)
			ev->cmd = b->cmds[ev->cmd].next;
	}
}

int build_read(struct build *b, const void *data, size_t len, struct error *e)
{
	struct maker m = {.b = b, .files.b = b};
	struct build_items items = {0};
	int err;

	*b = (struct build){0};
	err = build_items_read(b, &items, data, len, e);
	if (err < 0) {
		free(items.v);
		return err;
	}
	for (size_t i = 0; err == 0 && i < items.n; i++)
		err = take(&m, &items.v[i]);
	if (err == 0)
		move_inherited(b);
	if (err == 0)
		err = build_uses_make(b);
	free(items.v);
	free(m.now.v);
	free(m.files.by_path.v);
	free(m.cwd);
	free(m.last_child);
	return err < 0 ? error_set(e, err, "out of memory") : 0;
}

void build_free(struct build *b)
{
	free(b->cmds);
	free(b->events);
	free(b->nodes);
	free(b->uses);
	build_store_free(b->store);
	*b = (struct build){0};
}

/* --- questions --- */

uint32_t build_actor(const struct build *b, uint32_t cmd)
{
	const struct build_cmd *c = &b->cmds[cmd];

	return !c->executed && c->next != BUILD_NONE ? c->next : cmd;
}

uint32_t build_program(const struct build *b, uint32_t cmd)
{
	while (cmd != BUILD_NONE && !b->cmds[cmd].executed)
		cmd = b->cmds[cmd].parent;
	return cmd;
}

const char *build_cmd_name(const struct build *b, uint32_t cmd)
{
	const struct build_cmd *c;
	const char *first;

	cmd = build_program(b, cmd);
	if (cmd == BUILD_NONE)
		return "?";
	c = &b->cmds[cmd];
	first = build_arg(c, 0);
	return path_base(first && *first ? first : c->file);
}

static const char *word(const struct build_words *w, size_t i)
{
	for (size_t at = 0; at < w->len; at += strlen(w->v + at) + 1)
		if (!i--)
			return w->v + at;
	return NULL;
}

const char *build_arg(const struct build_cmd *c, size_t i)
{
	return word(&c->argv, i);
}

const char *build_env(const struct build_cmd *c, const char *name)
{
	size_t n = strlen(name);

	for (size_t at = 0; at < c->env.len; at += strlen(c->env.v + at) + 1)
		if (!strncmp(c->env.v + at, name, n) && c->env.v[at + n] == '=')
			return c->env.v + at + n + 1;
	return NULL;
}
