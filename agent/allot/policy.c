/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels to bits, rules to masks; see struct ax_party. */
#include <jansson.h>

#include "allot/policy.h"
#include "base/cgroup.h"
#include "base/labels.h"
#include "base/log.h"

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
		p->changed = true;
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
	p->changed = true;
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

void policy_save(struct policy *p, const char *cgroup)
{
	json_t *j = p->changed ? json_object() : NULL;
	autofree char *text = NULL;

	for (int i = 0; j && i < AX_LABELS_MAX; i++)
		if (p->labels[i].refs)
			json_object_set_new(j, p->labels[i].text, json_integer(i));
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	if (!text)
		return;
	if (cgroup_record_set(cgroup, "labels", text))
		log_warn("cannot keep the labels' numbers in %s: %s", cgroup, strerror(errno));
	p->changed = false;
}

void policy_load(struct policy *p, const char *cgroup)
{
	autofree char *text = NULL;
	const char *label;
	json_t *j = NULL, *bit;

	if (cgroup_record_get(cgroup, "labels", &text) == 0)
		j = json_loads(text, 0, NULL);
	json_object_foreach (j, label, bit) {
		json_int_t i = json_integer_value(bit);

		if (!json_is_integer(bit) || i < 0 || i >= AX_LABELS_MAX || p->labels[i].refs)
			continue;
		p->labels[i].text = strdup(label);
		if (!p->labels[i].text)
			break;
		p->labels[i].refs = 1;
		p->labels[i].held = true;
	}
	json_decref(j);
}

void policy_release(struct policy *p, const char *cgroup)
{
	for (int i = 0; i < AX_LABELS_MAX; i++) {
		if (!p->labels[i].held)
			continue;
		p->labels[i].held = false;
		label_unref(p, p->labels[i].text);
	}
	policy_save(p, cgroup);
}

void policy_free(struct policy *p)
{
	for (int i = 0; i < AX_LABELS_MAX; i++)
		free(p->labels[i].text);
	memset(p, 0, sizeof(*p));
}
