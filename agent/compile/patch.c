// SPDX-License-Identifier: GPL-2.0-or-later
/* Elements of sets come and go in an arena that packets are judged by, and its list is read. */
#include "compile/patch.h"

static void patch_free(struct patch *c)
{
	for (int f = 0; f < AX_FIELDS; f++)
		patch_field_free(&c->field[f]);
	patch_tables_free(c);
	compiler_free(&c->c);
	rule_outline_free(&c->o);
}

/* The outline, and where the journal is. */
static int patch_init(struct patch *c, struct lazy_view *arena)
{
	const struct ax_layout *l = view_at(arena, 0, sizeof(*l));
	int r;

	*c = (struct patch){.v = arena, .layout = l};
	if (l && l->journal)
		c->journal = view_at(arena, l->journal, sizeof(*c->journal));
	if (!l || (l->journal && !c->journal))
		return arena->error ? arena->error : -EPROTO;
	r = rule_list_outline(arena, l->state, l->state_size, &c->o);
	if (r == 0 && c->journal)
		c->n = __atomic_load_n(&c->journal->n, __ATOMIC_ACQUIRE);
	return c->n > AX_JOURNAL_MAX ? -EPROTO : r;
}

/* What else changes need. */
static int patch_begin(struct patch *c)
{
	int r;

	c->c.list = &c->o.list;
	c->c.e = &c->e;
	r = compile_rules(&c->c);
	if (r == 0 && c->c.shape.rules != c->layout->rules)
		r = -EPROTO;
	for (int f = 0; f < AX_FIELDS && r == 0; f++)
		r = patch_field_init(c, (enum ax_field)f);
	memcpy(c->spare4, c->journal->spare4_used, sizeof(c->spare4));
	memcpy(c->spare6, c->journal->spare6_used, sizeof(c->spare6));
	return r;
}

/* n_sets: there is none. */
static size_t set_number(const struct rule_list *l, const char *name)
{
	const struct rule_set_def *s = rule_list_set(l, name);

	return s ? (size_t)(s - l->sets) : l->n_sets;
}

static size_t set_size(const struct patch *c, size_t set)
{
	size_t n = c->o.sets[set].n;

	for (uint32_t i = 0; i < c->n; i++)
		if (c->journal->v[i].set == set)
			n += c->journal->v[i].gone ? (size_t)-1 : 1;
	return n;
}

/* --- changes --- */

static void write_down(struct patch *c, size_t set, const struct rule_set_def *from, size_t i,
		       bool gone)
{
	struct ax_journal_entry e = {.gone = gone, .set = (uint16_t)set};

	if (from->kind == SET_PORTS) {
		e.addr.w[0] = from->ports[i].lo;
		e.addr.w[1] = from->ports[i].hi;
	} else {
		e.addr = from->prefixes[i].addr;
		e.len = (uint8_t)from->prefixes[i].len;
	}
	c->journal->v[c->n++] = e; /* not valid as long as it is not counted in journal->n */
}

/* In every field that looks at the set. */
static int change_tables(struct patch *c, size_t set, const struct span *s)
{
	struct mark v[MARKS_MAX];

	for (int f = 0; f < AX_FIELDS; f++) {
		const struct patch_field *p = &c->field[f];
		int n, r;

		if (!p->used || !p->users.who[set])
			continue;
		n = patch_marks(c, (enum ax_field)f, s, v);
		r = n < 0 ? n : patch_put(c, (enum ax_field)f, s, v, (size_t)n);
		if (r < 0)
			return r;
	}
	return 0;
}

static int change_one(struct patch *c, size_t set, const struct set_change *ch, size_t i,
		      struct set_changed *ret)
{
	const struct rule_set_def *from = ch->elements;
	struct span s = from->kind == SET_PORTS ? span_of_range(&from->ports[i], UINT16_MAX)
						: span_of_prefix(&from->prefixes[i]);

	if (patch_is_element(c, set, &s) != ch->gone) {
		ret->missing += ch->gone;
		return 0;
	}
	if (c->n >= AX_JOURNAL_MAX)
		return -ENOSPC;
	write_down(c, set, from, i, ch->gone);
	return change_tables(c, set, &s);
}

static int change_set(struct patch *c, const struct set_change *ch, struct set_changed *ret)
{
	size_t set = set_number(&c->o.list, ch->set);
	int r = 0;

	*ret = (struct set_changed){0};
	if (set == c->o.list.n_sets || c->o.list.sets[set].kind != ch->elements->kind)
		return -ENOENT;
	for (size_t i = 0; i < ch->elements->n && r == 0; i++)
		r = change_one(c, set, ch, i, ret);
	ret->kind = ch->elements->kind;
	ret->n = set_size(c, set);
	return r == 0 && ret->n > SET_ELEMENTS_MAX ? -E2BIG : r;
}

/* From here on nothing fails. */
static void commit(struct patch *c)
{
	struct ax_journal *j = c->journal;

	memcpy(j->spare4_used, c->spare4, sizeof(c->spare4));
	memcpy(j->spare6_used, c->spare6, sizeof(c->spare6));
	__atomic_store_n(&j->n, c->n, __ATOMIC_RELEASE);
	patch_show(c);
	__atomic_store_n(&j->applied, c->n, __ATOMIC_RELEASE);
}

/* Nothing is left of what was begun. */
static void give_up(struct patch *c)
{
	struct ax_journal *j = c->journal;

	memset(&j->v[j->n], 0, (c->n - j->n) * sizeof(j->v[0]));
}

static bool needs_new_list(int r)
{
	return r == -E2BIG || r == -ENOENT || r == -ENOSPC || r == -EFBIG;
}

int arena_change_sets(struct lazy_view *arena, const struct set_change *ch, size_t n,
		      struct set_changed *ret)
{
	struct patch c CLEANUP(patch_free);
	int r = patch_init(&c, arena);

	if (r < 0)
		return r;
	if (!c.journal || c.journal->applied != c.journal->n)
		return 0;
	r = patch_begin(&c);
	for (size_t i = 0; i < n && r == 0; i++)
		r = change_set(&c, &ch[i], &ret[i]);
	r = r == 0 ? patch_write(&c) : r;
	r = arena->error ? arena->error : r; /* then something was not looked at */
	if (r < 0) {
		give_up(&c);
		return needs_new_list(r) ? 0 : r;
	}
	commit(&c);
	return 1;
}

int arena_set_size(struct lazy_view *arena, const char *name, size_t *ret)
{
	struct patch c CLEANUP(patch_free);
	int r = patch_init(&c, arena);
	size_t set;

	if (r < 0)
		return r;
	set = set_number(&c.o.list, name);
	if (set == c.o.list.n_sets)
		return -ENOENT;
	*ret = set_size(&c, set);
	return 0;
}

/* --- reading the list --- */

static void take_entry(struct rule_set_def *to, const struct ax_journal_entry *e)
{
	if (to->kind == SET_PORTS)
		to->ports[to->n++] = (struct range){e->addr.w[0], e->addr.w[1]};
	else
		to->prefixes[to->n++] = (struct prefix){e->addr, e->len};
}

static bool same_element(const struct ax_journal_entry *a, const struct ax_journal_entry *b)
{
	return a->set == b->set && a->len == b->len && addr_eq(&a->addr, &b->addr);
}

static bool is_last(const struct ax_journal *j, uint32_t n, uint32_t i)
{
	for (uint32_t k = i + 1; k < n; k++)
		if (same_element(&j->v[k], &j->v[i]))
			return false;
	return true;
}

static int merge_changes(struct rule_set_def *to, struct rule_set_def *gone,
			 struct rule_set_def *came)
{
	size_t missing;
	int r;

	if (!gone->n && !came->n)
		return 0;
	r = set_sort(gone);
	r = r < 0 ? r : set_remove(to, gone, &missing);
	r = r < 0 ? r : set_sort(came);
	return r < 0 ? r : set_merge(to, came);
}

/* What became of a set's elements by the first n entries, each by its last one. */
static int change_list(const struct ax_journal *j, uint32_t n, size_t set, struct rule_set_def *to)
{
	size_t size = to->kind == SET_PORTS ? sizeof(*to->ports) : sizeof(*to->prefixes);
	autofree char *v = calloc(2 * (size_t)n + 1, size);
	void *first = v, *second = v + n * size;
	bool ports = to->kind == SET_PORTS;
	struct rule_set_def gone = {.kind = to->kind}, came = {.kind = to->kind};

	if (!v)
		return -ENOMEM;
	gone.ports = ports ? first : NULL;
	came.ports = ports ? second : NULL;
	gone.prefixes = ports ? NULL : first;
	came.prefixes = ports ? NULL : second;
	for (uint32_t i = 0; i < n; i++)
		if (j->v[i].set == set && is_last(j, n, i))
			take_entry(j->v[i].gone ? &gone : &came, &j->v[i]);
	return merge_changes(to, &gone, &came);
}

int arena_list(const uint8_t *arena, struct rule_list *l)
{
	const struct ax_layout *layout = (const void *)arena;
	const struct ax_journal *j = (const void *)(arena + layout->journal);
	uint32_t n = layout->journal ? __atomic_load_n(&j->n, __ATOMIC_ACQUIRE) : 0;
	int r = rule_list_restore(arena + layout->state, layout->state_size, l);

	for (size_t i = 0; n && r == 0 && i < l->n_sets; i++)
		r = change_list(j, n, i, &l->sets[i]);
	if (r < 0)
		rule_list_free(l);
	return r;
}
