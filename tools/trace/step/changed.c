// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that was changed, and what was there before. A child of fork() has what its parent had,
 * with what was changed there; that of vfork() has the same memory, until it becomes another
 * program.
 */
#include <linux/kcmp.h>
#include <sys/syscall.h>

#include "tools/trace/step/change.h"

#define OLDS_MAX 4096 /* places that are taken back, of each memory */

/* All of the process's numbers have to be the owner's: it may have become another one's since. */
bool change_is_owned(const struct change *c, int pid)
{
	autofree char *text = NULL;
	unsigned ids[4];
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (file_read(path, 1 << 16, &text) < 0)
		return false;
	at = strstr(text, "\nUid:");
	if (!at || sscanf(at + 5, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (ids[i] != c->owner)
			return false;
	return true;
}

/* --- whose it is --- */

static struct change_process *find(const struct change *c, int pid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->processes[i].pid == pid)
			return &c->processes[i];
	return NULL;
}

static bool is_same(int pid, int other)
{
	return syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0;
}

static struct change_memory *new_memory(int tid)
{
	struct change_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->fd = step_memory(tid);
	if (m->fd < 0)
		m->fd = -1;
	return m;
}

static void put_memory(struct change_memory *m)
{
	if (m->users && --m->users)
		return;
	close_fd(&m->fd);
	free(m->olds);
	free(m);
}

static bool add(struct change *c, int pid, struct change_memory *m)
{
	size_t more = c->max ? c->max * 2 : 16;
	struct change_process *v;

	if (c->n == c->max) {
		v = reallocarray(c->processes, more, sizeof(*v));
		if (!v)
			return false;
		c->processes = v;
		c->max = more;
	}
	c->processes[c->n++] = (struct change_process){.pid = pid, .memory = m};
	m->users++;
	return true;
}

struct change_memory *change_memory(struct change *c, int pid, int tid)
{
	const struct change_process *p = find(c, pid);
	struct change_memory *m = NULL;

	if (p)
		return p->memory;
	for (size_t i = 0; i < c->n && !m; i++)
		if (is_same(tid, c->processes[i].pid))
			m = c->processes[i].memory;
	if (!m)
		m = new_memory(tid);
	if (!m || add(c, pid, m))
		return m;
	if (!m->users)
		put_memory(m);
	return NULL;
}

static struct change_memory *copy_of(const struct change_memory *from, int pid)
{
	struct change_memory *m = new_memory(pid);

	if (!m || !from->n_olds)
		return m;
	m->olds = calloc(from->n_olds, sizeof(*m->olds));
	if (!m->olds)
		return m;
	memcpy(m->olds, from->olds, from->n_olds * sizeof(*m->olds));
	m->n_olds = m->max_olds = from->n_olds;
	return m;
}

void change_fork(struct change *c, int pid, int parent)
{
	const struct change_process *p = find(c, parent);
	struct change_memory *m = NULL;

	if (!parent || find(c, pid))
		return;
	if (is_same(pid, parent)) /* what it changes before its exec() stays there */
		m = change_memory(c, parent, parent);
	else if (p)
		m = copy_of(p->memory, pid);
	if (m && !add(c, pid, m) && !m->users)
		put_memory(m);
}

void change_forget(struct change *c, int pid)
{
	struct change_process *p = find(c, pid);

	if (c->location.pid == pid)
		c->location.pid = 0;
	if (!p)
		return;
	put_memory(p->memory);
	*p = c->processes[--c->n];
}

void change_free(struct change *c)
{
	while (c->n)
		change_forget(c, c->processes[c->n - 1].pid);
	free(c->processes);
}

/* --- what was there --- */

struct change_old *change_old_at(struct change_memory *m, uint64_t address, uint32_t size)
{
	size_t more = m->max_olds ? m->max_olds * 2 : 16;
	struct change_old *v;

	for (size_t i = 0; i < m->n_olds; i++)
		if (m->olds[i].address == address && m->olds[i].size == size)
			return &m->olds[i];
	if (m->n_olds == OLDS_MAX)
		return NULL;
	if (m->n_olds == m->max_olds) {
		v = reallocarray(m->olds, more, sizeof(*v));
		if (!v)
			return NULL;
		m->olds = v;
		m->max_olds = more;
	}
	m->olds[m->n_olds] = (struct change_old){.address = address, .size = size};
	return &m->olds[m->n_olds++];
}

static bool undo_one(const struct change *c, int pid, int memory, const struct change_old *o)
{
	uint64_t now = 0;

	if (!change_is_owned(c, pid) || step_read_memory(memory, o->address, &now, o->size) < 0)
		return false;
	if (now == o->old) /* the program has done it itself, or was made since */
		return true;
	return now == o->now && step_write_memory(memory, pid, o->address, &o->old, o->size) == 0;
}

/* The last first, since they may overlap. */
void change_undo(struct change *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct change_memory *m = c->processes[i].memory;

		for (size_t k = m->undone ? 0 : m->n_olds; k-- > 0;)
			if (undo_one(c, c->processes[i].pid, m->fd, &m->olds[k]))
				c->n_back++;
			else
				c->n_others++;
		m->undone = true;
	}
}
