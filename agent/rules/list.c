// SPDX-License-Identifier: GPL-2.0-or-later
/* Rule lists: their life and their edits. */
#include "rules/defaults.h"
#include "rules/priv.h"

#include <search.h>

const char *const policy_names[3] = {
	[AX_POLICY_RULES] = "rules", [AX_POLICY_PASS] = "pass", [AX_POLICY_DROP] = "drop"};
const char *const balance_mode_names[3] = {
	[BALANCE_NAT] = "nat", [BALANCE_IPIP] = "ipip", [BALANCE_GUE] = "gue"};
const char *const balance_affinity_names[2] = {
	[BALANCE_BY_FLOW] = "none", [BALANCE_BY_SRC] = "src"};
const char *const xdp_mode_names[4] = {[ATTACH_AUTO] = "auto",
				       [ATTACH_NATIVE] = "native",
				       [ATTACH_GENERIC] = "generic",
				       [ATTACH_OFFLOAD] = "offload"};

const char *const list_track_names[3] = {
	[TRACK_AUTO] = "auto", [TRACK_KERNEL] = "kernel", [TRACK_OWN] = "own"};

const char *list_track_name(enum list_track t)
{
	return t < ARRAY_SIZE(list_track_names) ? list_track_names[t] : NULL;
}

const char *xdp_mode_name(enum xdp_mode m)
{
	return m < ARRAY_SIZE(xdp_mode_names) ? xdp_mode_names[m] : NULL;
}

const char *balance_mode_name(enum balance_mode m)
{
	return m < ARRAY_SIZE(balance_mode_names) ? balance_mode_names[m] : NULL;
}

const char *balance_affinity_name(enum balance_affinity a)
{
	return a < ARRAY_SIZE(balance_affinity_names) ? balance_affinity_names[a] : NULL;
}

void rule_list_init(struct rule_list *l)
{
	*l = (struct rule_list){.default_action = LIST_ACTION};
	for (unsigned i = 0; i < AX_REASON_POLICIES; i++)
		l->policy[i] = rule_reasons[i].policy;
}

void balancer_free(struct balancer *b)
{
	free(b->name);
	free(b->service);
	free(b->backends);
	*b = (struct balancer){0};
}

static int balancer_copy(const struct balancer *from, struct balancer *to)
{
	struct balancer copy = *from;

	copy.name = strdup(from->name);
	copy.service = from->service ? strdup(from->service) : NULL;
	copy.backends = array_new(from->n, sizeof(*copy.backends));
	if (!copy.name || (from->service && !copy.service) || (from->n && !copy.backends)) {
		balancer_free(&copy);
		return -ENOMEM;
	}
	if (from->n)
		memcpy(copy.backends, from->backends, from->n * sizeof(*copy.backends));
	*to = copy;
	return 0;
}

bool balance_backend_eq(const struct balance_backend *a, const struct balance_backend *b)
{
	return addr_eq(&a->addr, &b->addr) && a->port == b->port && a->weight == b->weight &&
	       a->drain == b->drain && a->down == b->down && a->has_quic_id == b->has_quic_id &&
	       a->quic_id == b->quic_id;
}

bool balance_backend_same_id(const struct balance_backend *a, const struct balance_backend *b)
{
	return a->has_quic_id && b->has_quic_id && a->quic_id == b->quic_id &&
	       addr_is_v4(&a->addr) == addr_is_v4(&b->addr);
}

static bool balancer_eq(const struct balancer *a, const struct balancer *b)
{
	bool both = a->service && b->service;

	if (!streq(a->name, b->name) || !a->service != !b->service ||
	    (both && !streq(a->service, b->service)) || a->mode != b->mode ||
	    a->affinity != b->affinity || !addr_eq(&a->source4, &b->source4) ||
	    !addr_eq(&a->source6, &b->source6) || a->gue_port != b->gue_port || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!balance_backend_eq(&a->backends[i], &b->backends[i]))
			return false;
	return true;
}

void rule_list_free(struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		rule_free(&l->rules[i]);
	for (size_t i = 0; i < l->n_sets; i++)
		set_free(&l->sets[i]);
	for (size_t i = 0; i < l->n_balancers; i++)
		balancer_free(&l->balancers[i]);
	free(l->rules);
	free(l->sets);
	free(l->balancers);
	*l = (struct rule_list){0};
}

static int copy_items(const struct rule_list *from, struct rule_list *to)
{
	to->rules = array_new(from->n_rules, sizeof(*to->rules));
	to->sets = array_new(from->n_sets, sizeof(*to->sets));
	to->balancers = array_new(from->n_balancers, sizeof(*to->balancers));
	if ((from->n_rules && !to->rules) || (from->n_sets && !to->sets) ||
	    (from->n_balancers && !to->balancers))
		return -ENOMEM;
	for (; to->n_rules < from->n_rules; to->n_rules++)
		if (rule_copy(&from->rules[to->n_rules], &to->rules[to->n_rules]) < 0)
			return -ENOMEM;
	for (; to->n_sets < from->n_sets; to->n_sets++)
		if (set_copy(&from->sets[to->n_sets], &to->sets[to->n_sets]) < 0)
			return -ENOMEM;
	for (; to->n_balancers < from->n_balancers; to->n_balancers++)
		if (balancer_copy(&from->balancers[to->n_balancers],
				  &to->balancers[to->n_balancers]) < 0)
			return -ENOMEM;
	return 0;
}

int rule_list_copy(const struct rule_list *from, struct rule_list *to)
{
	struct rule_list copy = *from;

	copy.rules = NULL;
	copy.sets = NULL;
	copy.balancers = NULL;
	copy.n_rules = copy.n_sets = copy.n_balancers = 0;
	if (copy_items(from, &copy) < 0) {
		rule_list_free(&copy);
		return -ENOMEM;
	}
	*to = copy;
	return 0;
}

bool rule_list_eq(const struct rule_list *a, const struct rule_list *b)
{
	if (a->n_rules != b->n_rules || a->n_sets != b->n_sets ||
	    a->n_balancers != b->n_balancers || a->default_action != b->default_action ||
	    memcmp(a->policy, b->policy, sizeof(a->policy)) != 0 || a->mode != b->mode ||
	    a->priority != b->priority || a->direction != b->direction || a->track != b->track)
		return false;
	for (size_t i = 0; i < a->n_rules; i++)
		if (!rule_eq(&a->rules[i], &b->rules[i]))
			return false;
	for (size_t i = 0; i < a->n_sets; i++)
		if (!set_eq(&a->sets[i], &b->sets[i]))
			return false;
	for (size_t i = 0; i < a->n_balancers; i++)
		if (!balancer_eq(&a->balancers[i], &b->balancers[i]))
			return false;
	return true;
}

int rule_list_share(struct rule_list *l, const struct rule_list *from)
{
	for (size_t i = 0; i < from->n_sets; i++) {
		if (rule_list_set(l, from->sets[i].name))
			continue;
		if (array_grow(&l->sets, l->n_sets, sizeof(*l->sets)) < 0 ||
		    set_copy(&from->sets[i], &l->sets[l->n_sets]) < 0)
			return -ENOMEM;
		l->n_sets++;
	}
	for (size_t i = 0; i < from->n_balancers && l->direction == DIRECTION_INGRESS; i++) {
		if (rule_list_balancer(l, from->balancers[i].name))
			continue;
		if (array_grow(&l->balancers, l->n_balancers, sizeof(*l->balancers)) < 0 ||
		    balancer_copy(&from->balancers[i], &l->balancers[l->n_balancers]) < 0)
			return -ENOMEM;
		l->n_balancers++;
	}
	return 0;
}

/* --- edits --- */

int rule_list_insert(struct rule_list *l, size_t at, struct rule *r)
{
	if (array_grow(&l->rules, l->n_rules, sizeof(*l->rules)) < 0) {
		rule_free(r);
		return -ENOMEM;
	}
	if (at > l->n_rules)
		at = l->n_rules;
	memmove(l->rules + at + 1, l->rules + at, (l->n_rules - at) * sizeof(*r));
	l->rules[at] = *r;
	l->n_rules++;
	*r = (struct rule){0};
	return 0;
}

void rule_list_remove(struct rule_list *l, size_t at)
{
	if (at >= l->n_rules)
		return;
	rule_free(&l->rules[at]);
	l->n_rules--;
	memmove(l->rules + at, l->rules + at + 1, (l->n_rules - at) * sizeof(*l->rules));
}

int rule_list_move(struct rule_list *l, size_t from, size_t to)
{
	struct rule moved;

	if (from >= l->n_rules)
		return -ENOENT;
	if (to >= l->n_rules)
		to = l->n_rules - 1;
	moved = l->rules[from];
	if (from < to)
		memmove(l->rules + from, l->rules + from + 1, (to - from) * sizeof(moved));
	else
		memmove(l->rules + to + 1, l->rules + to, (from - to) * sizeof(moved));
	l->rules[to] = moved;
	return 0;
}

/* "3" or "#3": the rule's number from 1. */
static int find_number(const struct rule_list *l, const char *which, size_t *ret, struct error *e)
{
	uint64_t n;

	if (value_number(which + (which[0] == '#'), UINT32_MAX, &n) < 0)
		return -EINVAL;
	if (n == 0 || n > l->n_rules)
		return error_set(e, -ENOENT,
				 l->n_rules ? "there is no rule %s: use a number of 1 to %zu, or a "
					      "rule's name"
					    : "there is no rule %s: the list has none",
				 which, l->n_rules);
	*ret = n - 1;
	return 0;
}

int rule_list_find(const struct rule_list *l, const char *which, size_t *ret, struct error *e)
{
	autofree const char **names = calloc(l->n_rules + 1, sizeof(*names));
	char quoted[QUOTED_LEN], hint[96];
	size_t n = 0;
	int r;

	if (!names)
		return error_set(e, -ENOMEM, "there is no memory for the names of the rules");
	for (size_t i = 0; i < l->n_rules; i++) {
		if (!l->rules[i].name)
			continue;
		if (streq(l->rules[i].name, which)) {
			*ret = i;
			return 0;
		}
		names[n++] = l->rules[i].name;
	}
	r = find_number(l, which, ret, e);
	if (r != -EINVAL)
		return r;
	return error_set(e, -ENOENT, "there is no rule %s: use a rule's name or its number%s",
			 fault_quote(which, strlen(which), quoted),
			 value_hint(which, names, n, hint));
}

struct rule_set_def *rule_list_set(const struct rule_list *l, const char *name)
{
	for (size_t i = 0; i < l->n_sets; i++)
		if (streq(l->sets[i].name, name))
			return &l->sets[i];
	return NULL;
}

int rule_list_add_set(struct rule_list *l, const char *name, enum set_kind kind,
		      struct rule_set_def **ret)
{
	struct rule_set_def *s;

	if (!value_is_name(name))
		return -EINVAL;
	if (rule_list_set(l, name))
		return -EEXIST;
	if (l->n_sets >= SETS_MAX)
		return -E2BIG;
	if (array_grow(&l->sets, l->n_sets, sizeof(*s)) < 0)
		return -ENOMEM;
	s = &l->sets[l->n_sets];
	*s = (struct rule_set_def){.name = strdup(name), .kind = kind};
	s->timed = kind == SET_FLOWS;
	if (!s->name)
		return -ENOMEM;
	l->n_sets++;
	*ret = s;
	return 0;
}

struct balancer *rule_list_balancer(const struct rule_list *l, const char *name)
{
	for (size_t i = 0; i < l->n_balancers; i++)
		if (streq(l->balancers[i].name, name))
			return &l->balancers[i];
	return NULL;
}

/* --- the names of counters --- */

struct line_count {
	size_t n;
	char line[];
};

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line_count *)a)->line, ((const struct line_count *)b)->line);
}

/* How often the line was there, with this time. */
static int count_line(void **root, const char *line, size_t *ret)
{
	size_t len = strlen(line) + 1;
	autofree struct line_count *key = malloc(sizeof(*key) + len);
	struct line_count **found;

	if (!key)
		return -ENOMEM;
	key->n = 0;
	memcpy(key->line, line, len);
	found = tsearch(key, root, compare_lines);
	if (!found)
		return -ENOMEM;
	*ret = ++(*found)->n;
	if (*found == key)
		take_ptr(&key);
	return 0;
}

static int add_counter_name(struct strv *names, void **lines, const struct rule *r)
{
	autofree char *line = NULL, *numbered = NULL;
	size_t n;

	if (r->name)
		return strv_add(names, r->name);
	line = rule_format(r);
	if (!line || count_line(lines, line, &n) < 0)
		return -ENOMEM;
	if (n == 1)
		return strv_add(names, line);
	if (asprintf(&numbered, "%s #%zu", line, n) < 0)
		return -ENOMEM;
	return strv_add(names, numbered);
}

int rule_list_counter_names(const struct rule_list *l, struct strv *names)
{
	void *lines = NULL;
	int r = 0;

	*names = (struct strv){0};
	for (size_t i = 0; i < l->n_rules && r == 0; i++)
		r = add_counter_name(names, &lines, &l->rules[i]);
	if (r == 0)
		r = strv_add(names, "default");
	tdestroy(lines, free);
	if (r < 0)
		strv_free(names);
	return r;
}
