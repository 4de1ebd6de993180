/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who was refused, or would have been: what the programs remember (include/seen.h), told to those
 * who watch. The first time at once, and then how often, no more than every few seconds. */
#ifndef AX_REGISTRY_VERDICTS_H
#define AX_REGISTRY_VERDICTS_H

#include <jansson.h>
#include <stdint.h>

struct agent;

/* Calls f for all that is remembered, and gives it the reference. */
void verdicts_all(struct agent *a, void (*f)(void *arg, json_t *j), void *arg);
/* Calls f for what is new, and gives it the reference; ending: of that app, which ends, for all
 * that was not told, 0: none. */
void verdicts_look(struct agent *a, uint32_t ending, void (*f)(struct agent *a, json_t *j));
/* Nobody watches any more. */
void verdicts_unwatched(struct agent *a);

/* Forgets some of apps that are no more, if that may be much by now. */
void verdicts_sweep(struct agent *a);
/* Those of apps that ended under a former agent: they keep their ids; then, when names are known,
 * the ones that have none go. */
void verdicts_adopt(struct agent *a);
void verdicts_adopted(struct agent *a);

#endif
