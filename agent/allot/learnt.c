// SPDX-License-Identifier: GPL-2.0-or-later
#include "allot/learnt.h"
#include "allot/policy.h"

#define BUCKETS 1024

struct place {
	struct place *next; /* in its bucket */
	struct learnt_entry e;
	uint32_t asker[LEARNT_ASKERS]; /* apps that have learnt it; 0: none */
	char name[];
};

struct learnt {
	struct place *bucket[BUCKETS];
	size_t n;
	uint64_t next_ns; /* not later than the first that is over; 0: nobody knows */
};

struct learnt *learnt_new(void)
{
	return calloc(1, sizeof(struct learnt));
}

void learnt_free(struct learnt *l)
{
	for (size_t i = 0; l && i < BUCKETS; i++) {
		while (l->bucket[i]) {
			struct place *p = l->bucket[i];

			l->bucket[i] = p->next;
			free(p);
		}
	}
	free(l);
}

size_t learnt_count(const struct learnt *l)
{
	return l->n;
}

static unsigned bucket_of(const struct ax_addr *a)
{
	uint32_t h = 0;

	for (int i = 0; i < 4; i++)
		h = (h ^ a->w[i]) * 0x9e3779b1; /* Fibonacci hashing */
	return h >> 22;
}

static struct place *find(const struct learnt *l, const struct learnt_entry *e)
{
	struct place *p = l->bucket[bucket_of(&e->addr)];

	while (p && (!addr_eq(&p->e.addr, &e->addr) || !streq(p->name, e->name)))
		p = p->next;
	return p;
}

/* Takes it out; ret->name is malloc'ed, NULL: out of memory. */
static void take(struct learnt *l, struct place *p, struct learnt_entry *ret)
{
	struct place **at = &l->bucket[bucket_of(&p->e.addr)];

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	l->n--;
	*ret = p->e;
	ret->name = strdup(p->name);
	free(p);
}

/* --- whose they are --- */

static int asker_find(const struct place *p, uint32_t app)
{
	for (int i = 0; i < LEARNT_ASKERS; i++)
		if (p->asker[i] == app)
			return i;
	return -1;
}

static void asker_add(struct place *p, uint32_t app)
{
	int i = asker_find(p, app) < 0 ? asker_find(p, 0) : -1;

	if (i >= 0)
		p->asker[i] = app;
}

/* Whether nobody else is known to have asked for it. */
static bool asker_remove(struct place *p, uint32_t app)
{
	bool last = true;

	for (int i = 0; i < LEARNT_ASKERS; i++) {
		if (p->asker[i] == app)
			p->asker[i] = 0;
		if (!p->asker[i])
			continue;
		last = false;
		if (p->e.app == app)
			p->e.app = p->asker[i];
	}
	return last;
}

static size_t askers_of(const struct place *p)
{
	size_t n = 0;

	for (int i = 0; i < LEARNT_ASKERS; i++)
		n += p->asker[i] != 0;
	return n;
}

/* How many the app has, and the one of them that goes first. */
static size_t count_of(const struct learnt *l, uint32_t app, struct place **first)
{
	size_t n = 0;

	*first = NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct place *p = l->bucket[i]; p; p = p->next) {
			if (asker_find(p, app) < 0)
				continue;
			n++;
			if (!*first || p->e.until_ns < (*first)->e.until_ns)
				*first = p;
		}
	}
	return n;
}

static bool goes_before(const struct place *a, const struct place *b)
{
	size_t n = askers_of(a), m = askers_of(b);

	return n == m ? a->e.until_ns < b->e.until_ns : n < m;
}

/* The one of the app's that goes first for somebody else: fewest others have learnt it, too. */
static struct place *least_missed(const struct learnt *l, uint32_t app)
{
	struct place *ret = NULL;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct place *p = l->bucket[i]; p; p = p->next)
			if (asker_find(p, app) >= 0 && (!ret || goes_before(p, ret)))
				ret = p;
	return ret;
}

static int number_cmp(const void *x, const void *y)
{
	const uint32_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Who has most; 0: out of memory. */
static uint32_t greediest(const struct learnt *l)
{
	autofree uint32_t *v = calloc(l->n + 1, sizeof(*v));
	size_t n = 0, run = 0, most = 0;
	uint32_t ret = 0;

	for (size_t i = 0; v && i < BUCKETS; i++)
		for (struct place *p = l->bucket[i]; p; p = p->next)
			v[n++] = p->e.app;
	if (n)
		qsort(v, n, sizeof(*v), number_cmp);
	for (size_t i = 0; i < n; i++) {
		run = i && v[i] == v[i - 1] ? run + 1 : 1;
		if (run > most) {
			most = run;
			ret = v[i];
		}
	}
	return ret;
}

/* Gives up what goes first of the app's; it is taken out if nobody else has learnt it. */
static void give_up(struct learnt *l, struct place *first, uint32_t app, struct learnt_entry *gone)
{
	if (asker_remove(first, app))
		take(l, first, gone);
}

/* Room for one more of that app: its own that goes first, if it has as many as it may. */
static int make_room(struct learnt *l, uint32_t app, struct learnt_entry *gone)
{
	struct place *first;
	size_t own = count_of(l, app, &first);
	uint32_t most;

	if (own >= LEARNT_SHARE || (l->n == AX_LEARNT_MAX && own >= LEARNT_SURE))
		give_up(l, first, app, gone);
	if (l->n < AX_LEARNT_MAX)
		return 0;
	most = own < LEARNT_SURE ? greediest(l) : 0;
	first = most ? least_missed(l, most) : NULL;
	if (!first)
		return -ENOSPC;
	take(l, first, gone);
	return 0;
}

int learnt_put(struct learnt *l, struct learnt_entry *e, struct learnt_entry *gone)
{
	struct place *first, *p = find(l, e);
	size_t len = strlen(e->name) + 1;
	int r;

	*gone = (struct learnt_entry){.name = NULL};
	if (p) {
		if (e->until_ns > p->e.until_ns)
			p->e.until_ns = e->until_ns;
		e->until_ns = p->e.until_ns;
		if (asker_find(p, e->app) < 0 && count_of(l, e->app, &first) < LEARNT_SHARE)
			asker_add(p, e->app);
		e->app = p->e.app;
		return 0;
	}
	r = make_room(l, e->app, gone);
	if (r)
		return r;
	p = calloc(1, sizeof(*p) + len);
	if (!p)
		return -ENOMEM;
	memcpy(p->name, e->name, len);
	p->e = *e;
	p->e.name = p->name;
	asker_add(p, e->app);
	p->next = l->bucket[bucket_of(&e->addr)];
	l->bucket[bucket_of(&e->addr)] = p;
	l->n++;
	if (l->n == 1 || (l->next_ns && e->until_ns < l->next_ns))
		l->next_ns = e->until_ns;
	return 1;
}

static struct place *first_of(const struct learnt *l)
{
	struct place *first = NULL;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct place *p = l->bucket[i]; p; p = p->next)
			if (!first || p->e.until_ns < first->e.until_ns)
				first = p;
	return first;
}

bool learnt_take_old(struct learnt *l, uint64_t now_ns, struct learnt_entry *ret)
{
	struct place *p = l->next_ns > now_ns ? NULL : first_of(l);

	if (!p)
		return false;
	l->next_ns = p->e.until_ns;
	if (p->e.until_ns > now_ns)
		return false;
	take(l, p, ret);
	l->next_ns = 0;
	return true;
}

uint64_t learnt_next_ns(const struct learnt *l)
{
	const struct place *first;

	if (l->next_ns || !l->n)
		return l->n ? l->next_ns : 0;
	first = first_of(l);
	return first ? first->e.until_ns : 0;
}

int learnt_names(const struct learnt *l, const struct ax_addr *addr, struct strv *ret)
{
	*ret = (struct strv){0};
	for (struct place *p = l->bucket[bucket_of(addr)]; p; p = p->next) {
		char **more;

		if (!addr_eq(&p->e.addr, addr))
			continue;
		more = reallocarray(ret->v, ret->n + 1, sizeof(*more));
		if (!more) {
			free(ret->v);
			*ret = (struct strv){0};
			return -ENOMEM;
		}
		ret->v = more;
		ret->v[ret->n++] = p->name;
	}
	return 0;
}

const char *learnt_name(const struct learnt *l, const struct ax_addr *addr, uint32_t app)
{
	for (struct place *p = l->bucket[bucket_of(addr)]; p; p = p->next)
		if (addr_eq(&p->e.addr, addr) && asker_find(p, app) >= 0)
			return p->name;
	return NULL;
}

int learnt_each(const struct learnt *l, int (*f)(void *arg, const struct ax_addr *addr), void *arg)
{
	int r = 0;

	for (size_t i = 0; i < BUCKETS && !r; i++) {
		for (struct place *p = l->bucket[i]; p && !r; p = p->next) {
			const struct place *x = l->bucket[i];

			while (!addr_eq(&x->e.addr, &p->e.addr))
				x = x->next;
			if (x == p) /* the first of its address */
				r = f(arg, &p->e.addr);
		}
	}
	return r;
}
