/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By which names a verdict is told (registry/verdicts.h): those that held when it fell. They are
 * noted before somebody ends or rules become others; there are as many as entries of map `seen`.
 * The next agent has them by a file, which is written some time after they were noted. */
#ifndef AX_REGISTRY_VERDICT_NAMES_H
#define AX_REGISTRY_VERDICT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "seen.h"

struct agent;
struct config_rule;

struct verdict_name { /* NULL: it has none */
	struct ax_seen_key key;
	uint64_t first_ns, noted_ns;
	const char *from, *to;
	const char *asked;		   /* of the DNS */
	const char *rule_name, *rule_text; /* of the one that decided, as it was */
};

/* Rules by their ids: numbers and names of today. */
struct rule_ids {
	const struct config_rule *rules;
	size_t n;
	struct rule_id *v; /* NULL: none was asked for yet */
};
const struct config_rule *rule_of_id(struct rule_ids *ids, uint64_t id);
void rule_ids_free(struct rule_ids *ids);

/* From now on names are known: all apps are, which a former agent has started, and what it has
 * noted. 0 or -ENOMEM. */
int verdict_names_open(struct agent *a);
/* Somebody is about to go. `before`: rules that are not the policy's any more, or NULL. */
void verdict_names_note(struct agent *a, const struct config_rule *before, size_t n);
/* Those that were noted, or NULL. */
const struct verdict_name *verdict_name_find(const struct agent *a, const struct ax_seen_key *key,
					     const struct ax_seen *seen);
/* Those of now, which others keep; no rule is among them. */
void verdict_name_now(struct agent *a, const struct ax_seen_key *key, const struct ax_seen *seen,
		      struct verdict_name *ret);
/* When they are to be written (CLOCK_MONOTONIC, 0: never), and doing so. */
uint64_t verdict_names_deadline(const struct agent *a);
void verdict_names_due(struct agent *a, uint64_t now);
/* The agent is about to end: those of now are noted and written. */
void verdict_names_keep(struct agent *a);
void verdict_names_free(struct agent *a);

#endif
