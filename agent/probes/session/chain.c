// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes of several parts on one place. The kernel takes a program only once on a tracepoint, and
 * runs several on one instruction in an order of its own: so there is one attachment, and the
 * program does one probe after the other.
 */
#include "probes/session/priv.h"

/* --- the same instruction --- */

static uint64_t asked(const struct session_probe *p)
{
	return p->place.offset - p->place.slid;
}

static int compare_asked(const void *a, const void *b, void *arg)
{
	const struct session *s = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const char *p = s->sites[x].path, *q = s->sites[y].path;
	uint64_t u = asked(&s->probes[x]), v = asked(&s->probes[y]);

	int order = p == q ? 0 : strcmp(p, q);

	if (order)
		return order;
	return u < v ? -1 : u > v;
}

/* What names one place is one place, even if a part could have its probe further down. */
int session_align(struct session *s, size_t first_probe)
{
	autofree size_t *v = calloc(s->n_probes + 1, sizeof(*v));
	size_t n = 0, end;

	if (!v)
		return -ENOMEM;
	for (size_t i = first_probe; s->n_parts > 1 && i < s->n_probes; i++)
		if (s->probes[i].placed)
			v[n++] = i;
	qsort_r(v, n, sizeof(*v), compare_asked, s);
	for (size_t i = 0; i < n; i = end) {
		size_t least = i;

		for (end = i; end < n && !compare_asked(&v[i], &v[end], s); end++)
			if (s->probes[v[end]].place.slid < s->probes[v[least]].place.slid)
				least = end;
		for (size_t j = i; j < end; j++)
			s->probes[v[j]].place = s->probes[v[least]].place;
	}
	return 0;
}

/* --- the order --- */

/* What is armed by this event counts it already, what it disarms counts it still; and a time ends
 * before the next one begins. */
static int rank(const struct session *s, uint32_t probe)
{
	const struct ax_probe *d = &s->descriptions[probe];

	/* of a script, all happens in its order */
	if (s->in_order && d->action != AX_ACTION_LOOK && d->action != AX_ACTION_ENTRY)
		return 2;
	switch (d->action) {
	case AX_ACTION_ARM:
		return 0;
	case AX_ACTION_LOOK:
	case AX_ACTION_ENTRY:
		return 1;
	case AX_ACTION_DISARM:
		return 3;
	case AX_ACTION_START:
		return 4;
	default:
		return 2;
	}
}

static int compare_texts(const char *a, const char *b)
{
	if (!a || !b)
		return !b - !a;
	return strcmp(a, b);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_places(const struct engine_site *a, const struct engine_site *b)
{
	int r = compare_numbers(a->kind, b->kind);

	if (!r)
		r = compare_numbers(a->is_return, b->is_return);
	if (!r)
		r = compare_texts(a->path, b->path);
	if (!r)
		r = compare_numbers(a->offset, b->offset);
	if (!r)
		r = compare_numbers(a->address, b->address);
	if (!r)
		r = compare_texts(a->name, b->name);
	return r ? r : compare_texts(a->category, b->category);
}

static int compare_sites(const void *a, const void *b, void *arg)
{
	const struct session *s = arg;
	const struct engine_site *x = &s->all_sites[*(const size_t *)a];
	const struct engine_site *y = &s->all_sites[*(const size_t *)b];
	int r = compare_places(x, y);

	if (!r)
		r = rank(s, x->probe) - rank(s, y->probe);
	return r ? r : compare_numbers(x->probe, y->probe);
}

/* The site `v[0]` serves the n ones of the same place. */
static void chain(struct session *s, const size_t *v, size_t n, bool *gone)
{
	struct engine_site *head = &s->all_sites[v[0]];

	for (size_t i = 1; i < n; i++) {
		const struct engine_site *next = &s->all_sites[v[i]];
		struct ax_probe *d = &s->descriptions[s->all_sites[v[i - 1]].probe];

		d->next = next->probe + 1;
		d->flags |= AX_PROBE_CHAINED;
		head->has_fields |= next->has_fields;
		head->is_optional &= next->is_optional;
		if (!head->semaphore)
			head->semaphore = next->semaphore;
		gone[v[i]] = true;
	}
}

/* What only keeps the time for a return is not what was asked for. */
static bool is_place(const struct session *s, const size_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s->all_sites[v[i]].kind != SITE_SELF && s->all_sites[v[i]].probe < s->room)
			return true;
	return false;
}

int session_chain(struct session *s, size_t first_site)
{
	size_t n = s->plan.n_sites - first_site, kept = first_site, end;
	autofree size_t *v = calloc(n + 1, sizeof(*v));
	autofree bool *gone = calloc(s->plan.n_sites + 1, sizeof(*gone));

	if (!v || !gone)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = first_site + i;
	qsort_r(v, n, sizeof(*v), compare_sites, s);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && end - i < AX_PROBE_CHAIN; end++)
			if (compare_places(&s->all_sites[v[i]], &s->all_sites[v[end]]))
				break;
		chain(s, v + i, end - i, gone);
		s->n_places += is_place(s, v + i, end - i);
	}
	for (size_t i = first_site; i < s->plan.n_sites; i++)
		if (!gone[i])
			s->all_sites[kept++] = s->all_sites[i];
	s->plan.n_sites = kept;
	return 0;
}
