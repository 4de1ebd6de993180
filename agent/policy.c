/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels to bits, rules to masks; see struct ax_party. */
#include "agent_priv.h"

static int label_find(const struct policy *p, const char *text)
{
	for (int i = 0; i < AX_LABELS_MAX; i++)
		if (p->labels[i].refs && streq(p->labels[i].text, text))
			return i;
	return -1;
}

static int label_ref(struct policy *p, const char *text)
{
	int i = label_find(p, text);

	if (i >= 0) {
		p->labels[i].refs++;
		return i;
	}
	for (i = 0; i < AX_LABELS_MAX; i++) {
		if (p->labels[i].refs)
			continue;
		p->labels[i].text = strdup(text);
		if (!p->labels[i].text)
			return -ENOMEM;
		p->labels[i].refs = 1;
		return i;
	}
	return -ENOSPC;
}

static void label_unref(struct policy *p, const char *text)
{
	int i = label_find(p, text);

	if (i < 0 || --p->labels[i].refs)
		return;
	free(p->labels[i].text);
	p->labels[i].text = NULL;
}

int policy_ref(struct policy *p, const struct labels *l, struct ax_party *ret, struct error *e)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < l->n; i++) {
		int bit = label_ref(p, l->items[i]);

		if (bit < 0) {
			for (size_t k = 0; k < i; k++)
				label_unref(p, l->items[k]);
			return error_set(e, bit,
					 bit == -ENOSPC ? "there are %d different labels already, "
							  "and no room for '%s': use fewer"
							: "out of memory",
					 AX_LABELS_MAX, l->items[i]);
		}
		ret->labels[bit / 64] |= 1ull << bit % 64;
	}
	policy_rules(p, l, ret);
	return 0;
}

void policy_unref(struct policy *p, const struct labels *l)
{
	for (size_t i = 0; i < l->n; i++)
		label_unref(p, l->items[i]);
}

void policy_rules(const struct policy *p, const struct labels *l, struct ax_party *ret)
{
	ret->from = ret->to = 0;
	for (size_t i = 0; i < p->n_rules && i < AX_RULES_MAX; i++) {
		if (labels_subset(&p->rules[i].from, l))
			ret->from |= 1ull << i;
		if (labels_subset(&p->rules[i].to, l))
			ret->to |= 1ull << i;
	}
}

uint64_t policy_allow_mask(const struct policy *p)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < p->n_rules && i < AX_RULES_MAX; i++)
		if (p->rules[i].allow)
			mask |= 1ull << i;
	return mask;
}
