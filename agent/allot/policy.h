/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels to bits, sets of labels to parties, rules to masks; see struct ax_party. */
#ifndef AX_ALLOT_POLICY_H
#define AX_ALLOT_POLICY_H

#include "app.h"
#include "config/config.h"

struct policy {
	struct {
		char *text; /* "": of an older agent, which did not say */
		uint32_t refs;
		bool held; /* one of refs: known from the last agent */
	} labels[AX_LABELS_MAX];
	struct policy_parties *parties; /* NULL: none was asked for yet */
	unsigned next_label, next_party;
	struct config_rule *rules; /* the config's */
	size_t n_rules;
	bool changed; /* since policy_save() */
};

/* Takes a reference on the party of these labels. 0, 1 when it is new, or -ENOSPC with a sentence
 * when there are too many labels or parties. */
int policy_ref(struct policy *p, const struct labels *l, uint32_t *ret, struct error *e);
/* True when nobody has it any more. To be called when no program can find it by an app or an
 * address: its number will be another's. */
bool policy_unref(struct policy *p, uint32_t party);

/* As the programs are to see it; NULL: nobody has it. */
const struct ax_party *policy_party(const struct policy *p, uint32_t party);

/* Puts p->rules into this set of all parties. (New parties have them in both.) */
void policy_rules(struct policy *p, unsigned set);

/* The rules that allow, a bit for each. */
uint64_t policy_allow_mask(const struct policy *p);

/* What bpf/verdict.bpf.h decides of two parties by this set. */
bool policy_may(const struct policy *p, uint32_t client, uint32_t server, unsigned set);

/*
 * Labels and parties keep their numbers from one agent to the next, as running apps go by them: the
 * labels' are a record of the instance's cgroup (its path), written if it changed and before a
 * program is told of a new one; of parties the programs have a table. What is loaded and adopted at
 * start is held until it is released. 0 or -ENOMEM.
 */
void policy_save(struct policy *p, const char *cgroup);
int policy_load(struct policy *p, const char *cgroup);
int policy_adopt(struct policy *p, uint32_t party, const struct ax_party *masks);
bool policy_release_party(struct policy *p, uint32_t party); /* as policy_unref() */
void policy_release(struct policy *p, const char *cgroup);   /* the labels, after all parties */

void policy_free(struct policy *p);

#endif
