/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels to bits, rules to masks; see struct ax_party. */
#ifndef AX_ALLOT_POLICY_H
#define AX_ALLOT_POLICY_H

#include "app.h"
#include "config/config.h"

struct policy {
	struct {
		char *text;
		uint32_t refs;
		bool held; /* one of refs: known from the last agent */
	} labels[AX_LABELS_MAX];
	struct config_rule *rules; /* the config's */
	size_t n_rules;
	bool changed; /* since policy_save() */
};

/* Takes a reference on each label's bit. -ENOSPC with a sentence when there are too many. */
int policy_ref(struct policy *p, const struct labels *l, struct ax_party *ret, struct error *e);
void policy_unref(struct policy *p, const struct labels *l);

/* The rule bits of a party with these labels, into ret->from and ret->to. */
void policy_rules(const struct policy *p, const struct labels *l, struct ax_party *ret);

/* The rules that allow, a bit for each. */
uint64_t policy_allow_mask(const struct policy *p);

/* Keeps the numbering of the labels for the next agent, which must not give a bit that running
 * apps carry to another label: a record of the instance's cgroup (its path), written if it changed,
 * read at start, and then released. */
void policy_save(struct policy *p, const char *cgroup);
void policy_load(struct policy *p, const char *cgroup);
void policy_release(struct policy *p, const char *cgroup);

void policy_free(struct policy *p);

#endif
