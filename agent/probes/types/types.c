// SPDX-License-Identifier: GPL-2.0-or-later
/* Members of types, wherever the types come from. */
#include "probes/types/types.h"

#include "base/near.h"

#define NESTED_MAX 8 /* anonymous structs in each other */

int ctype_target(const struct ctype *t, struct ctype *ret)
{
	if (!t->source || !t->source->target)
		return -ENOENT;
	return t->source->target(t->source, t, ret);
}

struct enumerator_search {
	const char *name;
	int64_t *ret;
};

static int on_enumerator(void *arg, const char *name, int64_t value)
{
	struct enumerator_search *s = arg;

	if (!streq(s->name, name))
		return 0;
	*s->ret = value;
	return 1;
}

int ctype_enumerator(const struct ctype *t, const char *name, int64_t *ret)
{
	struct enumerator_search s = {name, ret};

	if (t->kind != CTYPE_ENUM || !t->source || !t->source->enumerators)
		return -ENOENT;
	return t->source->enumerators(t->source, t, on_enumerator, &s) > 0 ? 0 : -ENOENT;
}

struct member_search {
	const char *name;
	struct ctype_member *ret;
	uint64_t base;
	unsigned depth;
	const char *best;
	char *near;
	size_t near_size;
};

static void note_near(struct member_search *s, const char *name)
{
	const char *words[] = {name};

	if (s->near && !*s->near && nearest_word(s->name, words, 1))
		snprintf(s->near, s->near_size, "%s", name);
}

static int on_member(void *arg, const struct ctype_member *m)
{
	struct member_search *s = arg, inner;
	int r;

	if (m->name && streq(m->name, s->name)) {
		*s->ret = *m;
		s->ret->offset += s->base;
		return 1;
	}
	if (m->name) {
		note_near(s, m->name);
		return 0;
	}
	if ((m->type.kind != CTYPE_STRUCT && m->type.kind != CTYPE_UNION) || s->depth == NESTED_MAX)
		return 0;
	inner = *s;
	inner.base += m->offset;
	inner.depth++;
	r = m->type.source->members(m->type.source, &m->type, on_member, &inner);
	return r == -ENOENT ? 0 : r;
}

int ctype_find_member(const struct ctype *t, const char *name, struct ctype_member *ret, char *near,
		      size_t near_size)
{
	struct member_search s = {.name = name, .ret = ret, .near = near, .near_size = near_size};
	int r;

	if (near && near_size)
		*near = '\0';
	if ((t->kind != CTYPE_STRUCT && t->kind != CTYPE_UNION) || !t->source)
		return -EINVAL;
	r = t->source->members(t->source, t, on_member, &s);
	if (r < 0)
		return r;
	return r ? 0 : -ENOENT;
}

void ctype_describe(const struct ctype *t, char *buf, size_t size)
{
	static const char *const words[] = {
		[CTYPE_VOID] = "void",		 [CTYPE_INTEGER] = "an integer",
		[CTYPE_BOOL] = "a truth",	 [CTYPE_CHAR] = "char",
		[CTYPE_ENUM] = "an enum",	 [CTYPE_FLOAT] = "a floating-point number",
		[CTYPE_POINTER] = "a pointer",	 [CTYPE_ARRAY] = "an array",
		[CTYPE_STRUCT] = "a struct",	 [CTYPE_UNION] = "a union",
		[CTYPE_FUNCTION] = "a function", [CTYPE_OTHER] = "no type that is known",
	};
	const char *prefix = "";
	const char *name = NULL;

	if (t->source && t->source->name && t->kind != CTYPE_POINTER && t->kind != CTYPE_ARRAY)
		name = t->source->name(t->source, t);
	if (t->kind == CTYPE_STRUCT)
		prefix = "struct ";
	else if (t->kind == CTYPE_UNION)
		prefix = "union ";
	else if (t->kind == CTYPE_ENUM)
		prefix = "enum ";
	if (name)
		snprintf(buf, size, "%s%.100s", prefix, name);
	else
		snprintf(buf, size, "%s", words[t->kind]);
}
