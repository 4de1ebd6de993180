// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Following: processes that are started, and files that they come to. A program that was replaced,
 * or that a container has under the same name, is another file, and so is a library that is opened
 * when the session is at work: probes in it are added to those that are there, for which there is
 * room.
 */
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>

#include "probes/session/priv.h"

bool session_waits(const struct session *s, uint32_t part)
{
	const struct session_part *p = &s->parts[part];

	if (!s->options.follow || !p->spec->file || p->offsets)
		return false;
	for (size_t i = 0; i < s->n_probes; i++)
		if (s->probes[i].part == part)
			return false;
	return true;
}

/* Files of people who follow a build or a server are few, and alike. */
void session_make_room(struct session *s, size_t *n_ops)
{
	size_t room = SESSION_LATER_TIMES * s->n_probes + SESSION_LATER_PLACES;
	struct session_probe *probes;
	struct engine_site *sites;

	if (room > SESSION_PLACES_MAX)
		room = SESSION_PLACES_MAX;
	if (room < s->n_probes)
		room = s->n_probes;
	probes = realloc(s->probes, room * sizeof(*probes));
	if (probes)
		s->probes = probes;
	sites = realloc(s->sites, room * sizeof(*sites));
	if (sites)
		s->sites = sites;
	if (!probes || !sites)
		return; /* there is none for more */
	memset(probes + s->n_probes, 0, (room - s->n_probes) * sizeof(*probes));
	memset(sites + s->n_probes, 0, (room - s->n_probes) * sizeof(*sites));
	s->size_probes = s->room = room;
	*n_ops = SESSION_LATER_TIMES * *n_ops + SESSION_LATER_OPS;
	s->plan.later = true;
	for (uint32_t i = 0; i < s->n_parts; i++)
		s->plan.any |= session_waits(s, i);
	s->plan.paired |= s->plan.any;
	s->plan.max_ops = *n_ops;
	s->plan.max_texts = s->texts.n + SESSION_LATER_TEXTS;
}

int session_open_follow(struct session *s, struct error *e)
{
	const struct session_options *o = &s->options;
	uint32_t pid = (uint32_t)o->pid;
	struct follow_options f = {
		.pids = o->n_pids ? o->pids : &pid,
		.n_pids = o->n_pids ? o->n_pids : o->pid != 0,
		.children = o->follow,
		.files = o->follow,
		.scope = o->scope,
	};

	return o->follow || o->n_pids > 1 ? follow_open(&f, &s->follow, e) : 0;
}

/* --- more probes --- */

static void forget(struct session *s, size_t first)
{
	for (; s->n_probes > first; s->n_probes--)
		fetch_free(&s->probes[s->n_probes - 1].fetch);
}

/* What a table or the program was made for at the start cannot be changed. */
static int check(const struct session *s, size_t first, struct error *e)
{
	size_t n_ops = s->plan.n_ops;

	if (s->texts.n > s->plan.max_texts)
		return error_set(e, -ENOSPC, "there is no room for more texts of conditions");
	for (size_t i = first; i < s->n_probes; i++) {
		const struct session_probe *p = &s->probes[i];
		int r = s->options.accept ? s->options.accept(s->options.later_arg, p, e) : 0;

		if (r < 0)
			return r;
		n_ops += session_ops_of(s, i);
		if (session_key_words_of(s, i) > s->key_words)
			return error_set(e, -ENOTSUP,
					 "what is behind 'by' has another type there, for which "
					 "the table has no room");
		if (p->fetch.paired && !s->plan.paired)
			return error_set(e, -ENOTSUP,
					 "its returns need what their entries keep, unlike those "
					 "at the start: start anew");
		if (p->fetch.needs_stacks && !s->plan.stacks)
			return error_set(e, -ENOTSUP, "call stacks were not asked for before");
	}
	if (n_ops > s->plan.max_ops)
		return error_set(e, -ENOSPC, "there is no room for so many more probes");
	return 0;
}

/* What was planned but cannot be is as if it had never been. */
static void undo(struct session *s, const struct engine_from *from)
{
	s->plan.n_ops = from->op;
	s->plan.n_sites = from->site;
	forget(s, from->probe);
}

static int extend(struct session *s, size_t first, struct error *e)
{
	struct engine_from from = {.probe = first,
				   .end = s->n_probes,
				   .op = s->plan.n_ops,
				   .text = s->plan.n_texts,
				   .site = s->plan.n_sites};
	int r;

	for (size_t i = first; i < s->n_probes; i++)
		session_plan_probe(s, i);
	s->plan.texts = s->texts.v;
	s->plan.n_texts = s->texts.n;
	r = session_chain(s, from.site) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;
	if (r == 0)
		r = engine_extend(s->engine, &from, e);
	if (r == -EPROTONOSUPPORT || r == -ENOMEM) /* nothing of it is attached */
		undo(s, &from);
	return r;
}

/* One name as a process sees it. */
static void add_file(struct session *s, const char *name, int pid)
{
	size_t first = s->n_probes, places = s->n_places;
	struct session_later l = {.pid = pid};
	struct error e = {0};
	int r = session_resolve_later(s, name, pid, &l.path, &e);

	if (r > 0)
		r = session_align(s, first);
	if (r == 0 && s->n_probes > first)
		r = check(s, first, &e);
	if (r < 0)
		forget(s, first);
	else if (s->n_probes > first)
		r = extend(s, first, &e);
	if (!l.path || !s->options.on_later)
		return;
	l.n_places = s->n_places - places;
	l.failed = r < 0 ? e.text : NULL;
	if (l.failed || l.n_places)
		s->options.on_later(s->options.later_arg, &l);
}

static void add_glob(struct session *s, const char *pattern, int pid)
{
	char root[32] = "", whole[PATH_MAX];
	glob_t g = {0};

	if (pattern[0] == '/')
		snprintf(root, sizeof(root), "/proc/%d/root", pid);
	snprintf(whole, sizeof(whole), "%s%s", root, pattern);
	if (glob(whole, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_file(s, g.gl_pathv[i] + strlen(root), pid);
	globfree(&g);
}

/* Each name once, as one process sees it. */
static int look(void *arg, int pid)
{
	struct session *s = arg;

	for (size_t i = 0; i < s->n_parts; i++) {
		const char *name = s->parts[i].spec->file;
		bool again = false;

		if (!name || s->parts[i].offsets)
			continue;
		for (size_t j = 0; j < i && !again; j++)
			again = s->parts[j].spec->file && streq(s->parts[j].spec->file, name);
		if (again)
			continue;
		if (session_is_glob(name))
			add_glob(s, name, pid);
		else
			add_file(s, name, pid);
	}
	return 0;
}

int session_attach_follow(struct session *s, struct error *e)
{
	int r = follow_attach(s->follow, e);

	/* each may see other files under the names */
	if (r == 0 && s->options.follow && s->options.pid)
		follow_each(s->follow, look, s);
	return r;
}

/* --- files that processes come to --- */

static int on_file(void *arg, const struct ax_follow_file *file)
{
	struct session *s = arg;
	char root[32];

	snprintf(root, sizeof(root), "/proc/%u/root", file->pid);
	s->later_absent = false;
	if (access(root, F_OK) == 0) {
		look(s, (int)file->pid);
		if (!s->later_absent)
			return 0;
	}
	/* it was too short for us, or ended while we looked: the next one that comes to the file is
	 * looked at */
	if (access(root, F_OK))
		follow_forget(s->follow, file);
	return 0;
}

int session_follow_fd(const struct session *s)
{
	return s->follow ? follow_fd(s->follow) : -1;
}

void session_follow(struct session *s)
{
	if (s->follow && s->plan.later)
		follow_files(s->follow, on_file, s);
}
