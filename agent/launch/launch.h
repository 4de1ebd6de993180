/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The launcher's side of `ax run`: becomes the parent of the command. */
#ifndef AX_LAUNCH_LAUNCH_H
#define AX_LAUNCH_LAUNCH_H

#include <sys/resource.h>

#include "config/config.h"
#include "machine/instance.h"

struct launch_options {
	const struct instance *inst;
	struct app_spec spec; /* what the command line said */
	char *config_key;     /* entry of the config's apps: that this run is for, or NULL */
	/* Whether connections with an address may be of spliced ends, now or soon. Called in a
	 * process that stays, of apps with splice-emulation. NULL: all may. */
	bool (*may_be_spliced)(void *arg, const struct ax_addr *remote);
	void *may_arg;
};

/* In the environment: the number of the descriptor by which the agent says what it has `ax run`
 * start. */
#define LAUNCH_GIVEN "AX_LAUNCH"
/* The agent's side: a descriptor (closed on exec) for that. files: how many descriptors it may
 * have, which the agent itself has changed. */
int launch_give(const struct app_spec *spec, const char *config_key, const struct rlimit *files,
		struct error *e);
/* The other side. 1: spec and config_key are the agent's, and its limit of descriptors holds; 0:
 * this run is not the agent's. */
int launch_take_given(struct launch_options *o, struct error *e);

/*
 * Registers with the agent, starts the command in its cgroup (and namespaces), and, in the
 * foreground, waits for it. Returns the exit status that ax must end with: the command's, 126/127
 * when it could not be executed or found, 128+n when signal n ended it, 125 when ax itself failed
 * (*e has a sentence then, code 0: there is nothing to say). With spec.detach it returns 0 once the
 * command was executed, after printing the app's name, id and address, and a supervisor stays
 * behind.
 *
 * The foreground command inherits the signal mask and dispositions of the caller as they are now:
 * a command line that is to be transparent changes neither before this call.
 */
int launch_run(struct launch_options *o, struct error *e);

/*
 * Runs spec.command in an app that runs, by its name or id: in its cgroup and namespaces, with its
 * variables and as its user unless the rest of spec says otherwise. Returns as launch_run() does.
 */
int launch_exec(struct launch_options *o, const char *app, struct error *e);

/* The name of an app that was given none: made from its command, always a valid one. */
#define LAUNCH_NAME_SIZE 64
void launch_default_name(const struct app_spec *s, char *buf, size_t size);

#endif
