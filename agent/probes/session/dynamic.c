// SPDX-License-Identifier: GPL-2.0-or-later
/* Types that values name when they are there: what is in an interface of Go. */
#include "probes/session/priv.h"

#define DYNAMIC_MAX 1024 /* types that are kept */

struct session_dynamics {
	struct session_dynamic v[DYNAMIC_MAX];
	size_t n;
};

void session_free_dynamics(struct session *s)
{
	for (size_t i = 0; s->dynamics && i < s->dynamics->n; i++)
		if (s->dynamics->v[i].shape)
			shape_free(s->dynamics->v[i].shape);
	free(s->dynamics);
}

/* The text that it begins with is fetched with each interface. */
static void follow_first(struct shape *s)
{
	uint32_t at = 0;

	while (s->v[at].kind == SHAPE_STRUCT && s->v[at].count && !s->v[s->v[at].first].offset)
		at = s->v[at].first;
	if (s->v[at].kind == SHAPE_STRING)
		s->v[at].followed = 1;
}

/* A pointer is itself in the interface; also one that is all that a struct has. */
static bool is_direct(const struct ctype *t, const struct shape *s)
{
	const struct shape_node *first = &s->v[s->v[0].first];

	if (t->kind == CTYPE_POINTER)
		return true;
	return s->v[0].kind == SHAPE_STRUCT && s->v[0].count == 1 && first->size == 8 &&
	       (first->kind == SHAPE_POINTER || first->kind == SHAPE_TEXT_AT);
}

static int make(struct dwarf *d, uint64_t type, struct session_dynamic *ret)
{
	struct ctype t, target;
	int r = dwarf_go_type(d, type, &ret->name, &t);

	if (r < 0 || t.kind == CTYPE_VOID)
		return r;
	ret->pointer = t.kind == CTYPE_POINTER && *ret->name == '*' &&
		       ctype_target(&t, &target) == 0 && target.kind != CTYPE_VOID && target.size;
	r = shape_make_any(ret->pointer ? &target : &t, &ret->shape);
	if (r < 0)
		return r == -ENOTSUP ? 0 : r;
	ret->direct = !ret->pointer && is_direct(&t, ret->shape);
	follow_first(ret->shape);
	return 0;
}

static struct dwarf *dwarf_of(const struct session *s, uint32_t probe)
{
	if (probe >= s->n_probes || !s->probes[probe].placed || !s->sites)
		return NULL;
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i].binary &&
		    streq(binary_path(s->files[i].binary), s->sites[probe].path))
			return s->files[i].dwarf;
	return NULL;
}

const struct session_dynamic *session_dynamic(struct session *s, uint32_t probe, uint64_t type)
{
	struct dwarf *d = dwarf_of(s, probe);
	struct session_dynamic *to;

	if (!s->dynamics)
		s->dynamics = calloc(1, sizeof(*s->dynamics));
	if (!d || !s->dynamics)
		return NULL;
	for (size_t i = 0; i < s->dynamics->n; i++)
		if (s->dynamics->v[i].type == type && s->dynamics->v[i].of == d)
			return s->dynamics->v[i].name ? &s->dynamics->v[i] : NULL;
	if (s->dynamics->n == DYNAMIC_MAX)
		return NULL;
	to = &s->dynamics->v[s->dynamics->n++];
	*to = (struct session_dynamic){.type = type, .of = d};
	if (make(d, type, to) < 0)
		to->name = NULL;
	return to->name ? to : NULL;
}
