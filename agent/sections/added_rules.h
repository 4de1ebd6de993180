/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules that `ax policy` has added at run time: among those of the config, which leaves them alone,
 * and recorded in the instance's directory for the next agent. What they say is kept in the
 * config's words and read by its parser. A config that has a rule of the same name takes it over.
 * Each change holds for everybody at once (registry/parties.h).
 */
#ifndef AX_SECTIONS_ADDED_RULES_H
#define AX_SECTIONS_ADDED_RULES_H

#include <jansson.h>

#include "base/util.h"

struct agent;
struct config;

/* Those of an earlier agent, beside that config: before the rules are told. 0, or a negative errno
 * with a sentence: what is recorded cannot be read, and nothing may be told without it. */
int added_rules_read(struct agent *a, const struct config *next, struct error *e);
void added_rules_free(struct agent *a); /* memory only */

/*
 * Adds a rule of that name. `asked`: "kind" (allow, deny, log or audit), "words" (keys of the
 * config's rules), "place" (first, last, before or after; else last) and "at" (a rule's name, or
 * its number in the config). Nothing is changed on failure: -EEXIST and others, with a sentence.
 */
int added_rules_add(struct agent *a, const char *name, json_t *asked, struct error *e);
/* What is asked for replaces what is there, a word that is null takes it away; all else of the rule
 * stays as it is. */
int added_rules_set(struct agent *a, const char *name, json_t *asked, struct error *e);
/* All of these names, or none. */
int added_rules_del(struct agent *a, json_t *names, struct error *e);

/* Whether they can stand among the rules of that config: 0, or -EBUSY with a sentence. */
int added_rules_check(const struct agent *a, const struct config *next, struct error *e);
/* The ith that the config takes over; NULL: no more. */
const char *added_rules_taken(const struct agent *a, const struct config *next, size_t i);
/* The config's rules hold: those that it has taken over are forgotten. */
void added_rules_settle(struct agent *a);

#endif
