/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels to bits, and sets of labels to parties; see include/party.h. */
#include <jansson.h>

#include "allot/policy.h"
#include "machine/cgroup.h"
#include "base/labels.h"
#include "base/log.h"

static int label_find(const struct policy *p, const char *text)
{
	for (int i = 0; i < AX_LABELS_MAX; i++)
		if (p->labels[i].refs && streq(p->labels[i].text, text))
			return i;
	return -1;
}

/* Numbers are given out in turn: that of a label which was there a moment ago comes last. */
static int label_ref(struct policy *p, const char *text)
{
	int i = label_find(p, text);

	if (i >= 0) {
		p->labels[i].refs++;
		return i;
	}
	for (unsigned k = 0; k < AX_LABELS_MAX; k++) {
		i = (int)((p->next_label + k) % AX_LABELS_MAX);
		if (p->labels[i].refs)
			continue;
		p->labels[i].text = strdup(text);
		if (!p->labels[i].text)
			return -ENOMEM;
		p->labels[i].refs = 1;
		p->next_label = (unsigned)i + 1;
		p->changed = true;
		return i;
	}
	return -ENOSPC;
}

static void label_unref(struct policy *p, unsigned i)
{
	if (--p->labels[i].refs)
		return;
	free(p->labels[i].text);
	p->labels[i].text = NULL;
	p->changed = true;
}

static bool has_bit(const struct ax_party *masks, unsigned i)
{
	return masks->labels[i / 64] >> i % 64 & 1;
}

static void labels_unref(struct policy *p, const struct ax_party *masks)
{
	for (unsigned i = 0; i < AX_LABELS_MAX; i++)
		if (has_bit(masks, i))
			label_unref(p, i);
}

static int labels_ref(struct policy *p, const struct labels *l, struct ax_party *ret,
		      struct error *e)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < l->n; i++) {
		int bit = label_ref(p, l->items[i]);

		if (bit < 0) {
			labels_unref(p, ret);
			return error_set(e, bit,
					 bit == -ENOSPC ? "there are %d different labels already, "
							  "and no room for '%s': use fewer"
							: "out of memory",
					 AX_LABELS_MAX, l->items[i]);
		}
		ret->labels[bit / 64] |= 1ull << bit % 64;
	}
	return 0;
}

/* --- parties --- */

#define BUCKETS 4096

struct policy_parties {
	struct policy_party {
		struct labels labels;
		uint32_t refs;	 /* 0: free */
		uint32_t others; /* of refs: apps of other nodes */
		bool held;	 /* one of refs: known from the last agent */
		uint16_t next;	 /* in its bucket; 0: the last */
		struct ax_party masks;
	} v[AX_PARTIES_MAX];
	uint16_t bucket[BUCKETS];
};
_Static_assert(AX_PARTIES_MAX <= UINT16_MAX + 1, "numbers of parties in a bucket");

static bool parties_ready(struct policy *p)
{
	if (!p->parties)
		p->parties = calloc(1, sizeof(*p->parties));
	return p->parties;
}

static uint16_t *party_bucket(const struct policy *p, const struct ax_party *masks)
{
	uint64_t h = masks->used;

	for (int i = 0; i < AX_LABEL_WORDS; i++)
		h = (h ^ masks->labels[i]) * 0x9e3779b97f4a7c15; /* Fibonacci hashing */
	for (int i = 0; i < AX_PARTY_NAME && masks->name[i]; i++)
		h = (h ^ (uint8_t)masks->name[i]) * 0x9e3779b97f4a7c15;
	for (int i = 0; i < 4; i++)
		h = (h ^ masks->own4.w[i] ^ (uint64_t)masks->own6.w[i] << 32) * 0x9e3779b97f4a7c15;
	return &p->parties->bucket[h >> 32 & (BUCKETS - 1)];
}

static bool same_party(const struct ax_party *a, const struct ax_party *b)
{
	return memcmp(a->labels, b->labels, sizeof(a->labels)) == 0 && streq(a->name, b->name) &&
	       a->used == b->used && addr_eq(&a->own4, &b->own4) && addr_eq(&a->own6, &b->own6);
}

/* AX_PARTY_NONE: there is none with these labels. */
static uint32_t party_find(const struct policy *p, const struct ax_party *masks)
{
	uint32_t i = *party_bucket(p, masks);

	while (i && !same_party(&p->parties->v[i].masks, masks))
		i = p->parties->v[i].next;
	return i;
}

/* In turn, as labels' numbers. AX_PARTY_NONE: there is none left. */
static uint32_t party_free(const struct policy *p)
{
	for (uint32_t k = 0; k < AX_PARTIES_MAX; k++) {
		uint32_t i = (p->next_party + k) % AX_PARTIES_MAX;

		if (i != AX_PARTY_NONE && !p->parties->v[i].refs)
			return i;
	}
	return AX_PARTY_NONE;
}

static struct policy_party *party_put(struct policy *p, uint32_t i, const struct ax_party *masks)
{
	struct policy_party *x = &p->parties->v[i];
	uint16_t *b = party_bucket(p, masks);

	x->masks = *masks;
	x->refs = 1;
	x->next = *b;
	*b = (uint16_t)i;
	return x;
}

static void party_drop(struct policy *p, uint32_t i)
{
	struct policy_party *x = &p->parties->v[i];
	uint16_t *b = party_bucket(p, &x->masks);

	while (*b != i)
		b = &p->parties->v[*b].next;
	*b = x->next;
	labels_free(&x->labels);
	memset(x, 0, sizeof(*x));
}

static int party_new(struct policy *p, const struct labels *l, const struct ax_party *masks,
		     uint32_t *ret, struct error *e)
{
	struct labels copy = {0};
	struct policy_party *x;

	*ret = party_free(p);
	if (*ret == AX_PARTY_NONE)
		return error_set(e, -ENOSPC,
				 "there are %d different sets of labels already, and no room for "
				 "another: use fewer",
				 AX_PARTIES_MAX - 1);
	if (labels_copy(l, &copy))
		return error_set(e, -ENOMEM, "out of memory");
	x = party_put(p, *ret, masks);
	x->labels = copy;
	p->next_party = *ret + 1;
	return 1;
}

/* --- apps of other nodes --- */

static int too_many_others(struct error *e, const char *what, int max)
{
	return error_set(e, -ENOSPC,
			 "apps of other nodes have %d different %s, and are given no more: use "
			 "fewer",
			 max, what);
}

/* Nothing is taken to be given back at once: numbers that were somebody's are not to come round
 * sooner by that. */
static int others_have_room(const struct policy *p, const struct labels *l, struct error *e)
{
	unsigned used = 0, fresh = 0;
	bool unknown = false;

	for (unsigned i = 0; i < AX_LABELS_MAX; i++)
		used += p->labels[i].others > 0;
	for (size_t i = 0; i < l->n; i++) {
		int bit = label_find(p, l->items[i]);

		unknown |= bit < 0;
		fresh += bit < 0 || !p->labels[bit].others;
	}
	if (fresh && used + fresh > POLICY_OTHERS_LABELS_MAX)
		return too_many_others(e, "labels", POLICY_OTHERS_LABELS_MAX);
	/* (one with a label that nobody has is new) */
	if (unknown && p->others >= POLICY_OTHERS_PARTIES_MAX)
		return too_many_others(e, "sets of labels", POLICY_OTHERS_PARTIES_MAX);
	return 0;
}

static void others_count(struct policy *p, uint32_t party, bool come)
{
	struct policy_party *x = &p->parties->v[party];
	bool was = x->others;

	x->others += come ? 1 : -1u;
	if (was == (x->others != 0))
		return;
	p->others += come ? 1 : -1u;
	for (unsigned i = 0; i < AX_LABELS_MAX; i++)
		if (has_bit(&x->masks, i))
			p->labels[i].others += come ? 1 : -1u;
}

/* --- names and addresses of apps --- */

struct policy_names {
	size_t n;
	char *v[]; /* sorted, no duplicates */
};

static int name_cmp(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

static bool is_named(const struct policy *p, const char *name)
{
	return p->names && name && *name &&
	       bsearch(&name, p->names->v, p->names->n, sizeof(p->names->v[0]), name_cmp);
}

static void names_free(struct policy_names *n)
{
	for (size_t i = 0; n && i < n->n; i++)
		free(n->v[i]);
	free(n);
}

static size_t side_names(const struct config_side *s, char **v)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].kind != WHO_NAME)
			continue;
		if (v)
			v[n] = s->v[i].name;
		n++;
	}
	return n;
}

/* The names of all rules, and those of before: none of them is a copy. */
static size_t gather_names(const struct config_rule *rules, size_t n_rules,
			   const struct policy_names *before, char **v)
{
	size_t n = 0;

	for (size_t i = 0; i < n_rules; i++) {
		n += side_names(&rules[i].from, v ? v + n : NULL);
		n += side_names(&rules[i].to, v ? v + n : NULL);
	}
	for (size_t i = 0; before && i < before->n; i++, n++)
		if (v)
			v[n] = before->v[i];
	return n;
}

struct policy_addresses {
	size_t n;
	struct ax_addr v[]; /* sorted */
};

static int address_cmp(const void *x, const void *y)
{
	return addr_cmp(x, y);
}

/* The address, if a rule names it; else zero. */
static struct ax_addr if_addressed(const struct policy *p, const struct ax_addr *addr)
{
	static const struct ax_addr none;

	return p->addresses && addr && !addr_is_zero(addr) &&
			       bsearch(addr, p->addresses->v, p->addresses->n, sizeof(*addr),
				       address_cmp)
		       ? *addr
		       : none;
}

static size_t side_addresses(const struct config_side *s, struct ax_addr *v)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].kind != WHO_PREFIX || !s->v[i].derived)
			continue;
		if (v)
			v[n] = s->v[i].prefix.addr;
		n++;
	}
	return n;
}

static size_t gather_addresses(const struct config_rule *rules, size_t n_rules,
			       const struct policy_addresses *before, struct ax_addr *v)
{
	size_t n = 0;

	for (size_t i = 0; i < n_rules; i++) {
		n += side_addresses(&rules[i].from, v ? v + n : NULL);
		n += side_addresses(&rules[i].to, v ? v + n : NULL);
	}
	if (v && before)
		memcpy(v + n, before->v, before->n * sizeof(*v));
	return n + (before ? before->n : 0);
}

static int name_addresses(struct policy *p, const struct config_rule *rules, size_t n, bool also)
{
	const struct policy_addresses *before = also ? p->addresses : NULL;
	size_t all = gather_addresses(rules, n, before, NULL);
	struct policy_addresses *a = calloc(1, sizeof(*a) + all * sizeof(a->v[0]));

	if (!a)
		return -ENOMEM;
	a->n = gather_addresses(rules, n, before, a->v);
	qsort(a->v, a->n, sizeof(a->v[0]), address_cmp);
	free(p->addresses);
	p->addresses = a;
	return 0;
}

static int name_names(struct policy *p, const struct config_rule *rules, size_t n, bool also)
{
	const struct policy_names *before = also ? p->names : NULL;
	size_t all = gather_names(rules, n, before, NULL);
	autofree char **v = calloc(all + 1, sizeof(*v));
	struct policy_names *names = calloc(1, sizeof(*names) + all * sizeof(*v));

	if (!v || !names) {
		free(names);
		return -ENOMEM;
	}
	gather_names(rules, n, before, v);
	qsort(v, all, sizeof(*v), name_cmp);
	for (size_t i = 0; i < all; i++) {
		if (i && streq(v[i], v[i - 1]))
			continue;
		names->v[names->n] = strdup(v[i]);
		if (!names->v[names->n]) {
			names_free(names);
			return -ENOMEM;
		}
		names->n++;
	}
	names_free(p->names);
	p->names = names;
	return 0;
}

int policy_name(struct policy *p, const struct config_rule *rules, size_t n, bool also)
{
	int r = name_names(p, rules, n, also);

	return r ? r : name_addresses(p, rules, n, also);
}

bool policy_fits(const struct policy *p, uint32_t party, const struct policy_who *who)
{
	const struct ax_party *x = policy_party(p, party);
	struct ax_addr own4 = if_addressed(p, who->ip4), own6 = if_addressed(p, who->ip6);

	return x && streq(x->name, is_named(p, who->name) ? who->name : "") &&
	       addr_eq(&x->own4, &own4) && addr_eq(&x->own6, &own6);
}

int policy_ref(struct policy *p, const struct labels *l, const struct policy_who *who,
	       uint32_t *ret, struct error *e)
{
	struct ax_party masks;
	int r;

	if (!parties_ready(p))
		return error_set(e, -ENOMEM, "out of memory");
	r = who->other ? others_have_room(p, l, e) : 0;
	r = r ? r : labels_ref(p, l, &masks, e);
	if (r)
		return r;
	if (is_named(p, who->name))
		snprintf(masks.name, sizeof(masks.name), "%s", who->name);
	masks.used = who->egress ? who->egress : AX_PARTY_USED;
	masks.own4 = if_addressed(p, who->ip4);
	masks.own6 = if_addressed(p, who->ip6);
	*ret = party_find(p, &masks);
	if (who->other && p->others >= POLICY_OTHERS_PARTIES_MAX &&
	    (*ret == AX_PARTY_NONE || !p->parties->v[*ret].others))
		r = too_many_others(e, "sets of labels", POLICY_OTHERS_PARTIES_MAX);
	else if (*ret != AX_PARTY_NONE)
		p->parties->v[*ret].refs++;
	else
		r = party_new(p, l, &masks, ret, e);
	if (r <= 0)
		labels_unref(p, &masks); /* a party has each of its labels once */
	if (r >= 0 && who->other)
		others_count(p, *ret, true);
	return r;
}

bool policy_unref(struct policy *p, uint32_t party)
{
	struct ax_party masks = p->parties->v[party].masks;

	if (--p->parties->v[party].refs)
		return false;
	party_drop(p, party);
	labels_unref(p, &masks);
	return true;
}

bool policy_unref_other(struct policy *p, uint32_t party)
{
	others_count(p, party, false);
	return policy_unref(p, party);
}

const struct ax_party *policy_party(const struct policy *p, uint32_t party)
{
	return p->parties && p->parties->v[party].refs ? &p->parties->v[party].masks : NULL;
}

struct policy_end policy_end_of(const struct policy *p, uint32_t party)
{
	const struct policy_party *x = &p->parties->v[party];

	return (struct policy_end){
		.labels = &x->labels,
		.cluster = p->cluster,
		.name = x->masks.name,
		.egress = x->masks.used == AX_PARTY_USED ? 0 : x->masks.used,
		.own4 = x->masks.own4,
		.own6 = x->masks.own6,
	};
}

/* --- from one agent to the next --- */

void policy_save(struct policy *p, const char *cgroup)
{
	json_t *j = p->changed ? json_object() : NULL;
	autofree char *text = NULL;

	for (int i = 0; j && i < AX_LABELS_MAX; i++)
		if (p->labels[i].refs && *p->labels[i].text)
			json_object_set_new(j, p->labels[i].text, json_integer(i));
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	if (!text)
		return;
	if (cgroup_record_set(cgroup, "labels", text))
		log_warn("cannot keep the labels' numbers in %s: %s", cgroup, strerror(errno));
	p->changed = false;
}

static int label_hold(struct policy *p, unsigned i, const char *text)
{
	p->labels[i].text = strdup(text);
	if (!p->labels[i].text)
		return -ENOMEM;
	p->labels[i].refs = 1;
	p->labels[i].held = true;
	return 0;
}

int policy_load(struct policy *p, const char *cgroup)
{
	autofree char *text = NULL;
	const char *label;
	json_t *j = NULL, *bit;
	int r = 0;

	if (cgroup_record_get(cgroup, "labels", &text) == 0)
		j = json_loads(text, 0, NULL);
	json_object_foreach (j, label, bit) {
		json_int_t i = json_integer_value(bit);

		if (!json_is_integer(bit) || i < 0 || i >= AX_LABELS_MAX || p->labels[i].refs)
			continue;
		r = r ? r : label_hold(p, (unsigned)i, label);
	}
	json_decref(j);
	return r;
}

static int text_cmp(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

/* The labels of these bits. A number whose label was not kept is nobody else's. */
static int labels_of(struct policy *p, const struct ax_party *masks, struct labels *ret)
{
	ret->items = calloc(AX_LABELS_MAX, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (unsigned i = 0; i < AX_LABELS_MAX; i++) {
		if (!has_bit(masks, i))
			continue;
		if (!p->labels[i].refs && label_hold(p, i, ""))
			return -ENOMEM;
		ret->items[ret->n] = strdup(p->labels[i].text);
		if (!ret->items[ret->n])
			return -ENOMEM;
		ret->n++;
	}
	qsort(ret->items, ret->n, sizeof(*ret->items), text_cmp);
	return 0;
}

int policy_adopt(struct policy *p, uint32_t party, const struct ax_party *masks)
{
	struct labels l = {0};
	struct policy_party *x;

	if (!parties_ready(p))
		return -ENOMEM;
	if (labels_of(p, masks, &l)) {
		labels_free(&l);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < AX_LABELS_MAX; i++)
		p->labels[i].refs += has_bit(masks, i);
	x = party_put(p, party, masks);
	x->labels = l;
	x->held = true;
	return 0;
}

bool policy_release_party(struct policy *p, uint32_t party)
{
	if (!p->parties || !p->parties->v[party].held)
		return false;
	p->parties->v[party].held = false;
	return policy_unref(p, party);
}

void policy_release(struct policy *p, const char *cgroup)
{
	for (unsigned i = 0; i < AX_LABELS_MAX; i++) {
		if (!p->labels[i].held)
			continue;
		p->labels[i].held = false;
		label_unref(p, i);
	}
	policy_save(p, cgroup);
}

void policy_free(struct policy *p)
{
	for (int i = 0; i < AX_LABELS_MAX; i++)
		free(p->labels[i].text);
	for (uint32_t i = 0; p->parties && i < AX_PARTIES_MAX; i++)
		labels_free(&p->parties->v[i].labels);
	free(p->parties);
	names_free(p->names);
	free(p->addresses);
	memset(p, 0, sizeof(*p));
}
