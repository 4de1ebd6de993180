/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's resolver, systemd-resolved or resolvconf, is told to ask the agent: agent.host-names
 * of the config. Their programs are run beside the loop. */
#ifndef AX_SECTIONS_HOST_RESOLVER_H
#define AX_SECTIONS_HOST_RESOLVER_H

#include "config/config.h"

struct agent;

/* Whether what the config wants can be had on this machine: the program is there, and what it is to
 * be told can be said. */
int host_resolver_check(const struct agent *a, const struct config *c, struct error *e);

/* From now on this one is told, and whatever else was is taken back; others than RESOLVED and
 * RESOLVCONF mean none. What fails, or does not end within half a minute, is logged and tried
 * again. */
void host_resolver_set(struct agent *a, enum host_names how);

/* What has become of that, for people; *why (NULL: nothing) is what failed last. */
enum host_resolver_state {
	HOST_RESOLVER_OFF,
	HOST_RESOLVER_TOLD,
	HOST_RESOLVER_WORKING,
	HOST_RESOLVER_FAILED, /* and is tried again */
};
enum host_resolver_state host_resolver_state(const struct agent *a, const char **why);

/* For the loop. Deadline: CLOCK_MONOTONIC, 0: none. reap: whether the process was one of these;
 * status: as waitpid() has it. */
uint64_t host_resolver_deadline(const struct agent *a);
void host_resolver_due(struct agent *a, uint64_t now_ns);
bool host_resolver_reap(struct agent *a, int pid, int status);

/* Takes back what this or an earlier agent of the instance has told, and waits for that. */
void host_resolver_remove(struct agent *a);

#endif
