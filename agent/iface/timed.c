// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets that elements come to for a time: their slots, what is in them, and what a command puts
 * there. */
#include <bpf/bpf.h>

#include "iface/priv.h"

#define CHUNK 4096 /* elements that are read at once */

/* --- slots --- */

static int slot_of(const struct ax_layout *layout, const struct rule_list *l,
		   const struct ax_timed_set *want, const char *name)
{
	for (uint32_t i = 0; i < layout->timed_n && i < AX_TIMED_SETS; i++) {
		const struct ax_timed_set *s = &layout->timed[i];

		/* with other lengths, nothing of what is there would be found */
		if (s->set < l->n_sets && streq(l->sets[s->set].name, name) &&
		    s->len4 == want->len4 && s->len6 == want->len6 && s->flows == want->flows)
			return s->slot;
	}
	return -1;
}

/* The maps of both kinds of sets. */
static const struct kind {
	enum xdp_map learned, held;
	size_t size, held_size; /* of keys */
	size_t slot_at;		/* in those that are held, behind the element itself */
} kinds[] = {
	{XDP_MAP_LEARNED, XDP_MAP_HELD, sizeof(struct ax_addr), sizeof(struct ax_held_key),
	 offsetof(struct ax_held_key, slot)},
	{XDP_MAP_LEARNED_FLOWS, XDP_MAP_HELD_FLOWS, sizeof(struct ax_set_flow),
	 sizeof(struct ax_held_flow), offsetof(struct ax_held_flow, slot)},
};

static const struct kind *kind_of(const struct ax_timed_set *s)
{
	return &kinds[s->flows != 0];
}

static uint32_t slot_in(const struct kind *k, const void *held_key)
{
	uint32_t slot;

	memcpy(&slot, (const char *)held_key + k->slot_at, sizeof(slot));
	return slot;
}

/* Calls f for each key and value of a map of elements for a time, until it returns non-zero. */
static int each_element(int map, size_t key_size,
			int (*f)(void *arg, const void *key, uint64_t until), void *arg)
{
	autofree uint8_t *keys = calloc(CHUNK, key_size);
	autofree uint64_t *values = calloc(CHUNK, sizeof(*values));
	uint32_t from = 0, next = 0;
	bool first = true;
	int r = keys && values ? 0 : -ENOMEM;

	while (!r) {
		uint32_t n = CHUNK;
		int code = bpf_map_lookup_batch(map, first ? NULL : &from, &next, keys, values, &n,
						NULL)
				   ? -errno
				   : 0;

		if (code && code != -ENOENT)
			return code;
		for (uint32_t i = 0; i < n && !r; i++)
			r = f(arg, keys + i * key_size, values[i]);
		if (code)
			break;
		from = next;
		first = false;
	}
	return r;
}

struct sweeping {
	const struct kind *kind;
	int map;
	int slot;	/* those of this slot go; -1: of none */
	uint64_t until; /* and those whose time is over by then */
};

static int sweep_one(void *arg, const void *key, uint64_t until)
{
	const struct sweeping *s = arg;

	if ((int)slot_in(s->kind, key) == s->slot || until <= s->until)
		bpf_map_delete_elem(s->map, key);
	return 0;
}

/* What is held in vain goes. */
static void sweep_held(const struct datapath_xdp *d, const struct kind *k, int slot)
{
	struct sweeping s = {k, d->map[k->held], slot, time_boot_ns()};

	each_element(s.map, k->held_size, sweep_one, &s);
}

static int empty_slot(const struct datapath_xdp *d, const struct kind *k, uint32_t slot)
{
	const struct ax_timed_slot none = {0};
	autoclose int set = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "learned_set", (uint32_t)k->size,
					   sizeof(uint64_t), AX_TIMED_ELEMENTS, NULL);

	if (set < 0)
		return -errno;
	if (bpf_map_update_elem(d->map[XDP_MAP_TIMED_SLOTS], &slot, &none, 0) < 0 ||
	    bpf_map_update_elem(d->map[k->learned], &slot, &set, 0) < 0)
		return -errno;
	sweep_held(d, k, (int)slot);
	return 0;
}

int xdp_bind_timed(const struct datapath_xdp *d, struct ax_layout *layout,
		   const struct rule_list *l, const struct ax_layout *old,
		   const struct rule_list *old_list)
{
	bool used[AX_TIMED_SLOTS] = {false};
	uint32_t next = 0;

	for (uint32_t i = 0; old && i < old->timed_n && i < AX_TIMED_SETS; i++)
		used[old->timed[i].slot % AX_TIMED_SLOTS] = true;
	for (uint32_t i = 0; i < layout->timed_n; i++) {
		struct ax_timed_set *s = &layout->timed[i];
		int r = old ? slot_of(old, old_list, s, l->sets[s->set].name) : -1;

		if (r >= 0) {
			s->slot = (uint8_t)r;
			continue;
		}
		while (next < AX_TIMED_SLOTS && used[next])
			next++;
		if (next == AX_TIMED_SLOTS)
			return -ENOSPC;
		s->slot = (uint8_t)next;
		r = empty_slot(d, kind_of(s), next++);
		if (r)
			return r;
	}
	return 0;
}

/* --- one set --- */

struct timed {
	const struct datapath_xdp *d;
	const struct kind *kind;
	struct ax_timed_set set;
	int learned; /* its map */
};

static void timed_close(struct timed *t)
{
	close_fd(&t->learned);
}
#define autotimed CLEANUP(timed_close)

static struct ax_addr masked(const struct timed *t, const struct ax_addr *a)
{
	uint32_t len = addr_is_v4(a) ? t->set.len4 + 96u : t->set.len6;
	struct ax_addr r = *a;

	for (unsigned i = 0; i < sizeof(r.b); i++) {
		unsigned bits = len > 8 * i ? len - 8 * i : 0;

		if (bits < 8)
			r.b[i] &= (uint8_t) ~(0xff >> bits);
	}
	return r;
}

/* -ENOENT: the list has no such set; -EOPNOTSUPP: nothing comes to it for a time. */
static int timed_open(const struct datapath_xdp *d, const struct ax_layout *layout,
		      const struct rule_list *l, const char *name, struct timed *t)
{
	const struct rule_set_def *s = rule_list_set(l, name);
	uint32_t id, slot;

	*t = (struct timed){.d = d, .learned = -1};
	if (!s)
		return -ENOENT;
	for (uint32_t i = 0; i < layout->timed_n && i < AX_TIMED_SETS; i++) {
		if (layout->timed[i].set != (size_t)(s - l->sets))
			continue;
		t->set = layout->timed[i];
		t->kind = kind_of(&t->set);
		slot = t->set.slot;
		if (bpf_map_lookup_elem(d->map[t->kind->learned], &slot, &id) < 0)
			return -errno;
		t->learned = bpf_map_get_fd_by_id(id);
		return t->learned < 0 ? -errno : 0;
	}
	return -EOPNOTSUPP;
}

/* Under the interface's lock, the set of the list that judges. */
static int with_timed(const struct instance *inst, const char *ifname, const char *set,
		      int (*f)(struct timed *t, void *arg, struct error *e), void *arg,
		      struct error *e)
{
	struct generation g = {.prog = -1, .arena = -1};
	autoclose int lock = -1;
	struct datapath_xdp d;
	struct rule_list l;
	unsigned ifindex;
	char dir[256];
	int r;

	datapath_xdp_init(&d);
	rule_list_init(&l);
	r = xdp_open_for(inst, ifname, &lock, &ifindex, dir, sizeof(dir), &d, e);
	if (!r) {
		autotimed struct timed t = {.learned = -1};

		r = generation_get(&d, xdp_jump(&d), &g);
		r = r ? r : xdp_generation_list(&g, &l);
		r = r ? r : timed_open(&d, &g.layout, &l, set, &t);
		if (r)
			error_set(e, r, "cannot read what is in set '%.60s' of %s for a time: %s",
				  set, ifname, strerror(-r));
		else
			r = f(&t, arg, e);
	}
	rule_list_free(&l);
	generation_close(&g);
	datapath_xdp_close(&d);
	return r;
}

/* --- what a command puts there --- */

struct holding {
	const struct rule_set_def *elements;
	uint32_t ms;
};

static bool is_v4_prefix(const struct prefix *p)
{
	return p->len >= 96 && addr_is_v4(&p->addr);
}

/* An element as the set has them, or an address in it. */
static bool fits(const struct timed *t, const struct prefix *p)
{
	return p->len == 128 || p->len == (is_v4_prefix(p) ? t->set.len4 + 96u : t->set.len6);
}

/* The key of one of the given elements, as it is held. */
union held_key {
	struct ax_held_key addr;
	struct ax_held_flow flow;
};

static union held_key key_of(const struct timed *t, const struct rule_set_def *elements, size_t i)
{
	union held_key key = {0};

	if (t->set.flows)
		key.flow = (struct ax_held_flow){elements->flows[i], t->set.slot};
	else
		key.addr =
			(struct ax_held_key){masked(t, &elements->prefixes[i].addr), t->set.slot};
	return key;
}

static int hold_one(const struct timed *t, const union held_key *key, uint64_t until)
{
	int map = t->d->map[t->kind->held];

	if (!bpf_map_update_elem(map, key, &until, 0))
		return 0;
	if (errno != E2BIG)
		return -errno;
	sweep_held(t->d, t->kind, -1);
	if (!bpf_map_update_elem(map, key, &until, 0))
		return 0;
	return errno == E2BIG ? -ENOSPC : -errno;
}

static int all_fit(const struct timed *t, const struct rule_set_def *elements, struct error *e)
{
	char buf[ADDR_STRLEN];

	if (t->set.flows != (elements->kind == SET_FLOWS))
		return error_set(e, -EINVAL,
				 t->set.flows ? "the set is one of flows: give such as "
						"10.0.0.1-10.0.0.2:22/tcp"
					      : "the set is one of prefixes: give addresses");
	for (size_t i = 0; !t->set.flows && i < elements->n; i++)
		if (!fits(t, &elements->prefixes[i]))
			return error_set(e, -EINVAL,
					 "%s cannot be there for a time: give addresses (this set "
					 "then has networks of %u bits of IPv4 and %u of IPv6)",
					 prefix_format(&elements->prefixes[i], buf), t->set.len4,
					 t->set.len6);
	return 0;
}

static int hold(struct timed *t, void *arg, struct error *e)
{
	const struct ax_timed_slot both = {.learned = 1, .held = 1};
	const struct holding *h = arg;
	uint64_t until = time_boot_ns() + h->ms * 1000000ull;
	uint32_t slot = t->set.slot;
	int r = all_fit(t, h->elements, e);

	if (r)
		return r;
	if (bpf_map_update_elem(t->d->map[XDP_MAP_TIMED_SLOTS], &slot, &both, 0) < 0)
		r = -errno;
	for (size_t i = 0; i < h->elements->n && !r; i++) {
		const union held_key key = key_of(t, h->elements, i);

		r = hold_one(t, &key, until);
	}
	if (r == -ENOSPC)
		return error_set(e, r,
				 "%d %s are held for a time already, as many as an interface "
				 "takes: remove some%s",
				 AX_TIMED_ELEMENTS, t->set.flows ? "flows" : "addresses",
				 t->set.flows ? "" : ", or add them for good");
	return r ? error_set(e, r, "cannot put them there: %s", strerror(-r)) : 0;
}

int xdp_hold(const struct instance *inst, const char *ifname, const char *set,
	     const struct rule_set_def *elements, uint32_t ms, struct error *e)
{
	struct holding h = {elements, ms};

	return with_timed(inst, ifname, set, hold, &h, e);
}

/* --- what a command removes --- */

struct letting_go {
	const struct timed *t;
	const struct prefix *in;
	int map; /* of the element that each_element() is at */
	bool held;
	bool any;
};

static bool is_in(const struct ax_addr *a, const struct prefix *p)
{
	struct prefix whole = {.addr = *a, .len = 128};

	return prefix_contains(p, &whole.addr);
}

static int let_go_one(void *arg, const void *key, uint64_t until)
{
	struct letting_go *l = arg;
	const struct ax_held_key *k = key;

	(void)until;
	if ((l->held && k->slot != l->t->set.slot) || !is_in(&k->addr, l->in))
		return 0;
	if (!bpf_map_delete_elem(l->map, key))
		l->any = true;
	return 0;
}

/* The element is first in the key. */
static bool let_go_key(const struct timed *t, const union held_key *key)
{
	bool learned = !bpf_map_delete_elem(t->learned, key);

	return !bpf_map_delete_elem(t->d->map[t->kind->held], key) || learned;
}

static bool let_go_prefix(struct timed *t, const struct prefix *p)
{
	int held = t->d->map[XDP_MAP_HELD];
	struct letting_go l = {.t = t, .in = p, .map = t->learned};

	each_element(t->learned, sizeof(struct ax_addr), let_go_one, &l);
	l.map = held;
	l.held = true;
	each_element(held, sizeof(struct ax_held_key), let_go_one, &l);
	return l.any;
}

static int let_go(struct timed *t, void *arg, struct error *e)
{
	const struct rule_set_def *elements = arg;
	int n = 0;

	(void)e;
	if (t->set.flows != (elements->kind == SET_FLOWS))
		return 0;
	for (size_t i = 0; i < elements->n; i++) {
		const union held_key key = key_of(t, elements, i);

		if (t->set.flows || fits(t, &elements->prefixes[i]))
			n += let_go_key(t, &key);
		else
			n += let_go_prefix(t, &elements->prefixes[i]);
	}
	return n;
}

int xdp_let_go(const struct instance *inst, const char *ifname, const char *set,
	       const struct rule_set_def *elements, struct error *e)
{
	struct rule_set_def copy = *elements; /* borrows */
	int r = with_timed(inst, ifname, set, let_go, &copy, e);

	if (r != -EOPNOTSUPP && r != -ENOENT)
		return r;
	*e = (struct error){0};
	return 0;
}

/* --- showing --- */

struct gathering {
	const struct timed *t;
	struct xdp_timed_element *v;
	size_t n;
	uint64_t now;
	bool held;
};

static int gather_one(void *arg, const void *key, uint64_t until)
{
	struct gathering *g = arg;
	const struct ax_timed_set *set = &g->t->set;
	struct xdp_timed_element *to;

	if ((g->held && slot_in(g->t->kind, key) != set->slot) || until <= g->now)
		return 0;
	if (g->n == 2 * AX_TIMED_ELEMENTS) /* what came meanwhile */
		return 1;
	to = &g->v[g->n++];
	*to = (struct xdp_timed_element){
		.left_ms = (until - g->now + 999999) / 1000000,
		.held = g->held,
		.is_flow = set->flows,
	};
	if (to->is_flow) {
		memcpy(&to->flow, key, sizeof(to->flow));
		return 0;
	}
	memcpy(&to->prefix.addr, key, sizeof(to->prefix.addr));
	to->prefix.len = addr_is_v4(&to->prefix.addr) ? set->len4 + 96u : set->len6;
	return 0;
}

/* Of one set, whose elements are all flows or all none. */
static int compare_elements(const struct xdp_timed_element *x, const struct xdp_timed_element *y)
{
	return x->is_flow ? memcmp(&x->flow, &y->flow, sizeof(x->flow))
			  : prefix_cmp(&x->prefix, &y->prefix);
}

static int by_element(const void *a, const void *b)
{
	const struct xdp_timed_element *x = a, *y = b;
	int c = compare_elements(x, y);

	return c ? c : x->held - y->held;
}

/* What is there twice, learned and held, is there once with the longer time. */
static size_t unite(struct xdp_timed_element *v, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (!k || compare_elements(&v[k - 1], &v[i]))
			v[k++] = v[i];
		else if (v[i].left_ms > v[k - 1].left_ms)
			v[k - 1] = v[i];
	}
	return k;
}

static int gather(const struct timed *t, struct gathering *g)
{
	int r;

	g->t = t;
	g->now = time_boot_ns();
	g->v = calloc(2 * AX_TIMED_ELEMENTS, sizeof(*g->v));
	if (!g->v)
		return -ENOMEM;
	r = each_element(t->learned, t->kind->size, gather_one, g);
	g->held = true;
	if (r >= 0)
		r = each_element(t->d->map[t->kind->held], t->kind->held_size, gather_one, g);
	qsort(g->v, g->n, sizeof(*g->v), by_element);
	g->n = unite(g->v, g->n);
	return r < 0 ? r : 0;
}

int xdp_timed(struct xdp *x, const char *set, struct xdp_timed_element **ret, size_t *n,
	      struct error *e)
{
	autotimed struct timed t = {.learned = -1};
	struct gathering g = {0};
	int r = xdp_refresh(x);

	*ret = NULL;
	*n = 0;
	if (!r)
		r = timed_open(&x->d, &x->g.layout, &x->list, set, &t);
	if (r == -EOPNOTSUPP || r == -ENOENT)
		return 0;
	if (!r)
		r = gather(&t, &g);
	if (r) {
		free(g.v);
		return error_set(e, r, "cannot read what is in set '%.60s' for a time: %s", set,
				 strerror(-r));
	}
	*ret = g.v;
	*n = g.n;
	return 0;
}
