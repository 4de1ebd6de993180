/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has which name. */
#include <search.h>

#include "registry/names.h"
#include "registry/state.h"

static int name_cmp(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

struct name *name_find(struct agent *a, const char *text)
{
	struct name key = {.text = (char *)(uintptr_t)text};
	struct name **found = tfind(&key, &a->names, name_cmp);

	return found ? *found : NULL;
}

static void name_free(void *p)
{
	struct name *n = p;

	free(n->text);
	free(n);
}

struct name *name_get(struct agent *a, const char *text)
{
	struct name *n = name_find(a, text);

	a->names_changed = true;
	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->text = strdup(text);
	if (!n->text || !tsearch(n, &a->names, name_cmp)) {
		name_free(n);
		return NULL;
	}
	a->name_added = true;
	return n;
}

void name_put(struct agent *a, struct name *n)
{
	a->names_changed = true;
	if (n->app || n->service || n->declared || n->others || n->stale || n->held)
		return;
	tdelete(n, &a->names, name_cmp);
	name_free(n);
}

struct visit {
	void (*f)(void *arg, const struct name *n);
	void *arg;
};

static void visit(const void *node, VISIT which, void *arg)
{
	const struct visit *v = arg;

	if (which == postorder || which == leaf)
		v->f(v->arg, *(const struct name *const *)node);
}

void name_each(struct agent *a, void (*f)(void *arg, const struct name *n), void *arg)
{
	struct visit v = {f, arg};

	twalk_r(a->names, visit, &v);
}

void name_free_all(struct agent *a)
{
	tdestroy(a->names, name_free);
	a->names = NULL;
}
