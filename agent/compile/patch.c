// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One IPv4 prefix comes to a set or goes, in an arena that packets are judged by (struct
 * ax_journal).
 *
 * That is exact without the rules' classes where the prefix meets no other one of the field whose
 * rules name the set: all its addresses have the class of "no prefix" without it, and with it that
 * of any other element of the set which meets no other prefix either. It is one step for packets
 * where it changes one word of root4. For everything else the list has to be compiled anew.
 */
#include <arpa/inet.h>

#include "compile/priv.h"

#define CANDIDATES 64 /* elements that are looked at for one that meets no other */

struct v4 {
	uint32_t addr, len; /* host byte order; 0..32 */
};

struct patch {
	struct lazy_view *v; /* of the arena */
	const struct ax_layout *layout;
	struct ax_journal *journal;
	struct rule_outline o;
	size_t set;
	bool beside[SETS_MAX]; /* the field's rules name it */
	enum ax_field f;
	const struct ax_field_layout *field;
};

/* --- prefixes --- */

static uint32_t mask_of(uint32_t len)
{
	return len ? ~0u << (32 - len) : 0;
}

static bool v4_eq(struct v4 a, struct v4 b)
{
	return a.addr == b.addr && a.len == b.len;
}

static bool meets(struct v4 a, struct v4 b)
{
	return !((a.addr ^ b.addr) & mask_of(a.len < b.len ? a.len : b.len));
}

static bool v4_of(const struct prefix *p, struct v4 *ret)
{
	if (p->len < 96 || !addr_is_v4(&p->addr))
		return false;
	*ret = (struct v4){ntohl(p->addr.w[3]), p->len - 96};
	return true;
}

static struct v4 entry_v4(const struct ax_journal_entry *e)
{
	return (struct v4){e->addr, e->len};
}

/* --- a set: as it was compiled, and what came and went since --- */

/* If it cannot be fetched, the view says so in the end: see change_tables(). */
static struct v4 element(const struct patch *c, const struct set_outline *s, size_t i)
{
	const uint8_t *p = view_at(c->v, s->v4 + i * SET_OUTLINE_V4, SET_OUTLINE_V4);
	uint32_t addr;

	if (!p)
		return (struct v4){0};
	memcpy(&addr, p, sizeof(addr));
	return (struct v4){ntohl(addr), p[4] - 96u};
}

/* The first element that does not come before p. */
static size_t find(const struct patch *c, const struct set_outline *s, struct v4 p)
{
	size_t lo = 0, hi = s->n4;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct v4 at = element(c, s, mid);

		if (at.addr < p.addr || (at.addr == p.addr && at.len < p.len))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool was_compiled(const struct patch *c, const struct set_outline *s, struct v4 p)
{
	size_t i = find(c, s, p);

	return i < s->n4 && v4_eq(element(c, s, i), p);
}

/* The last that is written about p, of the first n entries; NULL: nothing. */
static const struct ax_journal_entry *last_entry(const struct ax_journal *j, uint32_t n, size_t set,
						 struct v4 p)
{
	while (n-- > 0)
		if (j->v[n].set == set && v4_eq(entry_v4(&j->v[n]), p))
			return &j->v[n];
	return NULL;
}

static bool is_gone(const struct patch *c, size_t set, struct v4 p)
{
	const struct ax_journal_entry *e = last_entry(c->journal, c->journal->n, set, p);

	return e && e->gone;
}

static bool is_element(const struct patch *c, struct v4 p)
{
	const struct ax_journal_entry *e = last_entry(c->journal, c->journal->n, c->set, p);

	return e ? !e->gone : was_compiled(c, &c->o.sets[c->set], p);
}

/* --- whether a prefix meets another one of the field --- */

/* Of the elements that were compiled, but for p itself in its own set. */
static bool meets_compiled(const struct patch *c, size_t set, struct v4 p)
{
	const struct set_outline *s = &c->o.sets[set];

	for (uint32_t len = 0; len < p.len; len++) {
		struct v4 around = {p.addr & mask_of(len), len};

		if (was_compiled(c, s, around) && !is_gone(c, set, around))
			return true;
	}
	for (size_t i = find(c, s, p); i < s->n4; i++) {
		struct v4 at = element(c, s, i);

		if (!meets(at, p))
			break;
		if (!(set == c->set && v4_eq(at, p)) && !is_gone(c, set, at))
			return true;
	}
	return false;
}

/* Of those that came since. */
static bool meets_journal(const struct patch *c, size_t set, struct v4 p)
{
	for (uint32_t i = 0; i < c->journal->n; i++) {
		const struct ax_journal_entry *e = &c->journal->v[i];
		struct v4 at = entry_v4(e);

		if (e->set == set && !e->gone && meets(at, p) && !(set == c->set && v4_eq(at, p)) &&
		    !is_gone(c, set, at))
			return true;
	}
	return false;
}

static bool meets_rules(const struct patch *c, struct v4 p)
{
	for (size_t i = 0; i < c->o.list.n_rules; i++) {
		const struct condition *own = &c->o.list.rules[i].in[c->f];
		struct v4 at;

		for (size_t k = 0; k < own->n; k++)
			if (v4_of(&own->prefixes[k], &at) && meets(at, p))
				return true;
	}
	return false;
}

static bool meets_others(const struct patch *c, struct v4 p)
{
	for (size_t i = 0; i < c->o.list.n_sets; i++)
		if (c->beside[i] && (meets_compiled(c, i, p) || meets_journal(c, i, p)))
			return true;
	return meets_rules(c, p);
}

/* An element, somewhere in the set, that meets no other prefix. */
static bool find_alone(const struct patch *c, struct v4 *ret)
{
	const struct set_outline *s = &c->o.sets[c->set];
	size_t step = s->n4 / CANDIDATES + 1;

	for (size_t i = 0; i < s->n4; i += step) {
		*ret = element(c, s, i);
		if (!is_gone(c, c->set, *ret) && !meets_others(c, *ret))
			return true;
	}
	return false;
}

/* --- the tables --- */

static uint32_t *root_at(const struct patch *c, uint32_t addr)
{
	return view_at(c->v, c->field->table + (addr >> 16) * sizeof(uint32_t), sizeof(uint32_t));
}

static void put_cut(struct cut *v, size_t *n, uint32_t addr, uint32_t cls)
{
	if (*n == 0 || v[*n - 1].cls != cls)
		v[(*n)++] = (struct cut){.hi = (uint64_t)addr << 32, .cls = cls};
}

/* The cuts of the upper half that an address is in, the first at its beginning; `v` has room for
 * 65536 and two more. Returns how many, 0: this is not how tables are. */
static size_t read_cuts(const struct patch *c, uint32_t addr, struct cut *v)
{
	const uint32_t *word = root_at(c, addr);
	uint32_t root = word ? *word : 0, kind = root >> AX_ROOT_OFFSET_BITS & 31;
	uint64_t off = (uint64_t)(root & ((1u << AX_ROOT_OFFSET_BITS) - 1)) * sizeof(uint32_t);
	uint32_t direct = kind > AX_ROOT_LOG2_MAX ? kind - AX_ROOT_LOG2_MAX : 0;
	uint32_t size = 1u << (direct ? 16 - direct : kind);
	uint64_t bytes = (direct ? 2ull : 4ull) * size;
	const uint8_t *at;
	size_t n = 0;

	addr &= 0xffff0000;
	if (root & AX_ROOT_CLASS) {
		put_cut(v, &n, addr, root & 0xffff);
		return n;
	}
	if (!word || off + bytes > c->field->buckets4_size)
		return 0;
	at = view_at(c->v, c->field->buckets4 + off, bytes);
	if (!at)
		return 0;
	for (uint32_t i = 0; i < size; i++) {
		if (direct)
			put_cut(v, &n, addr | i << direct, ((const uint16_t *)at)[i]);
		else
			put_cut(v, &n, addr | ((const uint32_t *)at)[i] >> 16,
				((const uint32_t *)at)[i] & 0xffff);
	}
	return n;
}

static uint32_t class_at(const struct cut *v, size_t n, uint32_t addr)
{
	uint32_t cls = v[0].cls;

	for (size_t i = 1; i < n && v[i].hi >> 32 <= addr; i++)
		cls = v[i].cls;
	return cls;
}

/* The prefix, which lay between two cuts, has the class `cls` now. */
static size_t change_cuts(const struct cut *v, size_t n, struct v4 p, uint32_t cls, struct cut *to)
{
	uint32_t last = p.addr | ~mask_of(p.len), behind = class_at(v, n, last);
	size_t k = 0, i = 0;

	for (; i < n && v[i].hi >> 32 < p.addr; i++)
		put_cut(to, &k, (uint32_t)(v[i].hi >> 32), v[i].cls);
	put_cut(to, &k, p.addr, cls);
	while (i < n && v[i].hi >> 32 <= last)
		i++;
	if ((last & 0xffff) != 0xffff && (i == n || v[i].hi >> 32 != last + 1))
		put_cut(to, &k, last + 1, behind);
	for (; i < n; i++)
		put_cut(to, &k, (uint32_t)(v[i].hi >> 32), v[i].cls);
	return k;
}

/* Writes the bucket of new cuts, which no packet finds yet. Returns the word that leads to it. */
static int64_t write_spare(struct patch *c, const struct cut *v, size_t n)
{
	struct arena a CLEANUP(arena_free) = {0};
	uint32_t *used = &c->journal->spare_used[c->f];
	int64_t word = compile_root4(&a, 0, v, n, 0);
	uint32_t off;
	uint8_t *to;

	if (word < 0 || word & AX_ROOT_CLASS)
		return word;
	if (*used > c->field->spare4 || a.size > c->field->spare4 - *used)
		return -ENOSPC;
	off = c->field->buckets4_size - c->field->spare4 + *used;
	if ((word + off / 4) >> AX_ROOT_OFFSET_BITS != word >> AX_ROOT_OFFSET_BITS)
		return -ENOSPC;
	to = view_at(c->v, c->field->buckets4 + off, a.size);
	if (!to)
		return -EPROTO;
	*used += (uint32_t)((a.size + 3) & ~(size_t)3);
	memcpy(to, a.data, a.size);
	return word + off / 4;
}

static void write_down(struct ax_journal *j, size_t set, struct v4 p, bool gone)
{
	j->v[j->n] = (struct ax_journal_entry){
		.addr = p.addr, .len = (uint8_t)p.len, .gone = gone, .set = (uint16_t)set};
	__atomic_store_n(&j->n, j->n + 1, __ATOMIC_RELEASE);
}

#define CUTS_ROOM (65536 + 2)

/* Returns 1, or 0: there is no room for it. */
static int change_tables(struct patch *c, struct v4 p, bool gone, uint32_t cls)
{
	autofree struct cut *room = malloc(2 * CUTS_ROOM * sizeof(*room));
	int64_t word;
	size_t n;

	if (!room)
		return -ENOMEM;
	n = read_cuts(c, p.addr, room);
	if (!n)
		return -EPROTO;
	if (!gone && class_at(room, n, p.addr) != c->field->none)
		return 0;
	n = change_cuts(room, n, p, cls, room + CUTS_ROOM);
	word = write_spare(c, room + CUTS_ROOM, n);
	if (c->v->error) /* then something was not looked at */
		return c->v->error;
	if (word < 0)
		return word == -ENOMEM ? -ENOMEM : 0;
	write_down(c->journal, c->set, p, gone);
	__atomic_store_n(root_at(c, p.addr), (uint32_t)word, __ATOMIC_RELEASE);
	__atomic_store_n(&c->journal->applied, c->journal->n, __ATOMIC_RELEASE);
	return 1;
}

/* The class that elements of the set have which meet no other prefix. */
static int class_of_set(const struct patch *c, uint32_t *cls)
{
	autofree struct cut *v = malloc(CUTS_ROOM * sizeof(*v));
	struct v4 alone;
	size_t n;

	if (!v)
		return -ENOMEM;
	if (!find_alone(c, &alone))
		return 0;
	n = read_cuts(c, alone.addr, v);
	*cls = n ? class_at(v, n, alone.addr) : 0;
	return n > 0;
}

/* --- all of it --- */

static void patch_free(struct patch *c)
{
	rule_outline_free(&c->o);
}

static int patch_init(struct patch *c, struct lazy_view *arena)
{
	const struct ax_layout *l = view_at(arena, 0, sizeof(*l));

	*c = (struct patch){.v = arena, .layout = l};
	if (l && l->journal)
		c->journal = view_at(arena, l->journal, sizeof(*c->journal));
	if (!l || (l->journal && !c->journal))
		return arena->error ? arena->error : -EPROTO;
	return rule_list_outline(arena, l->state, l->state_size, &c->o);
}

/* n_sets: there is none. */
static size_t set_number(const struct rule_list *l, const char *name)
{
	const struct rule_set_def *s = rule_list_set(l, name);

	return s ? (size_t)(s - l->sets) : l->n_sets;
}

static bool find_set(struct patch *c, const char *name)
{
	c->set = set_number(&c->o.list, name);
	return c->set < c->o.list.n_sets;
}

static size_t set_size(const struct patch *c)
{
	size_t n = c->o.sets[c->set].n;
	uint32_t changes = c->journal ? __atomic_load_n(&c->journal->n, __ATOMIC_ACQUIRE) : 0;

	for (uint32_t i = 0; i < changes; i++)
		if (c->journal->v[i].set == c->set)
			n += c->journal->v[i].gone ? (size_t)-1 : 1;
	return n;
}

static void find_sets(const struct rule_list *l, enum ax_field f, bool beside[SETS_MAX + 1])
{
	for (size_t i = 0; i < l->n_rules; i++) {
		const struct strv *names = &l->rules[i].in[f].sets;

		for (size_t k = 0; k < names->n; k++)
			beside[set_number(l, names->v[k])] = true;
	}
}

/* The one field whose rules name the set: a packet looks at two one after the other, and could find
 * one as it was and the other as it is. */
static bool find_field(struct patch *c)
{
	bool src[SETS_MAX + 1] = {0}, dst[SETS_MAX + 1] = {0};

	find_sets(&c->o.list, AX_FIELD_SRC, src);
	find_sets(&c->o.list, AX_FIELD_DST, dst);
	c->f = src[c->set] ? AX_FIELD_SRC : AX_FIELD_DST;
	c->field = &c->layout->field[c->f];
	memcpy(c->beside, src[c->set] ? src : dst, sizeof(c->beside));
	return src[c->set] != dst[c->set] && c->field->used && c->field->spare4;
}

static int change(struct patch *c, struct v4 p, bool gone)
{
	uint32_t cls = c->field->none;
	int r = 1;

	if (c->journal->n >= AX_JOURNAL_MAX || p.len < 16 || meets_others(c, p) ||
	    (!gone && set_size(c) >= SET_ELEMENTS_MAX))
		return 0;
	if (!gone)
		r = class_of_set(c, &cls);
	return r > 0 ? change_tables(c, p, gone, cls) : r;
}

int arena_change_set(struct lazy_view *arena, const struct set_change *ch, struct set_changed *ret)
{
	struct patch c CLEANUP(patch_free);
	struct v4 p;
	int r = patch_init(&c, arena);

	*ret = (struct set_changed){0};
	if (r < 0)
		return r;
	if (!c.journal || c.journal->applied != c.journal->n || !v4_of(&ch->prefix, &p) ||
	    !find_set(&c, ch->set) || c.o.list.sets[c.set].kind != SET_PREFIXES || !find_field(&c))
		return 0;
	if (is_element(&c, p) != ch->gone) {
		ret->missing = ch->gone;
		r = 1;
	} else {
		r = change(&c, p, ch->gone);
	}
	ret->n = set_size(&c);
	return arena->error && r >= 0 ? arena->error : r;
}

int arena_set_size(struct lazy_view *arena, const char *name, size_t *ret)
{
	struct patch c CLEANUP(patch_free);
	int r = patch_init(&c, arena);

	if (r == 0 && !find_set(&c, name))
		r = -ENOENT;
	if (r == 0)
		*ret = set_size(&c);
	return r;
}

/* --- reading the list --- */

static struct prefix prefix_of(const struct ax_journal_entry *e)
{
	return (struct prefix){.addr = addr_from_v4(htonl(e->addr)), .len = e->len + 96u};
}

/* What became of a set's elements by the first n entries, each by its last one. */
static int change_list(const struct ax_journal *j, uint32_t n, size_t set, struct rule_set_def *to)
{
	autofree struct prefix *v = calloc(2 * (size_t)n + 1, sizeof(*v));
	struct rule_set_def gone = {.kind = SET_PREFIXES, .prefixes = v};
	struct rule_set_def came = {.kind = SET_PREFIXES, .prefixes = v + n};
	size_t missing;
	int r;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct ax_journal_entry *e = &j->v[i];

		if (e->set != set || last_entry(j, n, set, entry_v4(e)) != e)
			continue;
		if (e->gone)
			gone.prefixes[gone.n++] = prefix_of(e);
		else
			came.prefixes[came.n++] = prefix_of(e);
	}
	if (!gone.n && !came.n)
		return 0;
	r = set_sort(&gone);
	r = r < 0 ? r : set_remove(to, &gone, &missing);
	r = r < 0 ? r : set_sort(&came);
	return r < 0 ? r : set_merge(to, &came);
}

int arena_list(const uint8_t *arena, struct rule_list *l)
{
	const struct ax_layout *layout = (const void *)arena;
	const struct ax_journal *j = (const void *)(arena + layout->journal);
	uint32_t n = layout->journal ? __atomic_load_n(&j->n, __ATOMIC_ACQUIRE) : 0;
	int r = rule_list_restore(arena + layout->state, layout->state_size, l);

	for (size_t i = 0; n && r == 0 && i < l->n_sets; i++)
		r = l->sets[i].kind == SET_PREFIXES ? change_list(j, n, i, &l->sets[i]) : 0;
	if (r < 0)
		rule_list_free(l);
	return r;
}
