/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "registry/leaving.h"
#include "allot/policy.h"
#include "base/util.h"
#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "registry/app_table.h"
#include "registry/state.h"

struct leaving_app {
	uint32_t id;
	uint64_t
		rules; /* a hash of those that apply to it as a client; 0: no such app, or others */
};

/* --- which rules apply --- */

static uint64_t mix(uint64_t h, uint64_t word)
{
	for (int i = 0; i < 64; i += 8)
		h = (h ^ (word >> i & 0xff)) * 0x100000001b3; /* FNV-1a */
	return h;
}

/* What each rule says, whatever its name; NULL: out of memory. */
static uint64_t *hash_rules(const struct policy *p)
{
	uint64_t *ret = calloc(p->n_rules + 1, sizeof(*ret));

	for (size_t i = 0; ret && i < p->n_rules; i++) {
		struct config_rule nameless = p->rules[i];

		nameless.name = NULL;
		ret[i] = policy_rule_id(&nameless);
	}
	return ret;
}

static uint64_t rules_of(struct agent *a, uint32_t id, const uint64_t *hashes)
{
	const struct app *app = app_by_id(a, id);
	uint64_t h = 0xcbf29ce484222325;
	struct ax_party_rules r;

	if (!app)
		return 0;
	policy_party_rules(&a->policy, app->party, &r);
	for (size_t i = 0; i < a->policy.n_rules && i < AX_RULES_MAX; i++)
		if (r.from.w[i / 64] >> (i % 64) & 1)
			h = mix(h, hashes[i]);
	return h ? h : 1;
}

/* --- before --- */

static int app_cmp(const void *x, const void *y)
{
	const struct leaving_app *a = x, *b = y;

	return a->id < b->id ? -1 : a->id > b->id;
}

struct noting {
	struct leaving *l;
	size_t size;
};

static int note(void *arg, uint32_t app)
{
	struct noting *n = arg;
	struct leaving *l = n->l;

	if (l->n && l->v[l->n - 1].id == app)
		return 0;
	if (l->n == n->size) {
		size_t size = n->size ? 2 * n->size : 64;
		void *more = reallocarray(l->v, size, sizeof(*l->v));

		if (!more)
			return -ENOMEM;
		l->v = more;
		n->size = size;
	}
	l->v[l->n++] = (struct leaving_app){.id = app};
	return 0;
}

void leaving_note(struct agent *a, struct leaving *before)
{
	struct noting n = {.l = before};
	autofree uint64_t *hashes = NULL;
	size_t kept = 0;

	*before = (struct leaving){0};
	before->unknown = datapath_leavers_each(a->dp, note, &n) != 0;
	if (!before->n)
		return;
	qsort(before->v, before->n, sizeof(*before->v), app_cmp);
	for (size_t i = 0; i < before->n; i++)
		if (!kept || before->v[kept - 1].id != before->v[i].id)
			before->v[kept++] = before->v[i];
	before->n = kept;
	hashes = hash_rules(&a->policy);
	if (!hashes) {
		before->unknown = true;
		return;
	}
	for (size_t i = 0; i < before->n; i++)
		before->v[i].rules = rules_of(a, before->v[i].id, hashes);
}

/* --- after --- */

static int is_to_go(void *arg, uint32_t app)
{
	const struct leaving *before = arg;
	struct leaving_app key = {.id = app}, *was = NULL;

	if (!before->unknown && before->n)
		was = bsearch(&key, before->v, before->n, sizeof(key), app_cmp);
	return !was || !was->rules;
}

void leaving_forget(struct agent *a, struct leaving *before)
{
	autofree uint64_t *hashes = before->n ? hash_rules(&a->policy) : NULL;

	before->unknown |= before->n && !hashes;
	for (size_t i = 0; hashes && i < before->n; i++)
		if (before->v[i].rules != rules_of(a, before->v[i].id, hashes))
			before->v[i].rules = 0;
	datapath_leavers_each(a->dp, is_to_go, before);
}

void leaving_free(struct leaving *before)
{
	free(before->v);
	*before = (struct leaving){0};
}
