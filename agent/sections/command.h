/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of the config that the agent runs by itself: triggers', and health checks'. As the user
 * that the config says, nobody otherwise, with a small environment and nothing of the agent's. */
#ifndef AX_SECTIONS_COMMAND_H
#define AX_SECTIONS_COMMAND_H

#include "base/strv.h"

struct agent;

struct command_word {
	const char *key, *value;
};

struct command_run {
	const char *kind, *name; /* for messages: "trigger", "deploy" */
	const char *user;	 /* NULL: nobody */
	const struct strv *command;
	const struct command_word *words; /* of its environment */
	size_t n_words;
	int input;	    /* its standard input, 0: there is nothing to read */
	int output;	    /* its standard output and error */
	int netns;	    /* the network namespace it runs in, -1: the agent's */
	bool ends_with_us;  /* killed when the agent ends */
	const char *cgroup; /* a path: it goes there before all else; NULL: nowhere */
};

/* Its pid, which leads a session and a process group, or a negative errno. What goes wrong in the
 * process itself is said to its output, and makes an exit status of 125 to 127. */
int command_start(struct agent *a, const struct command_run *c);

#define COMMAND_PATH_MAX 4096
/* Whether there is such a program where commands are looked for; its path. */
bool command_path(const char *name, char path[COMMAND_PATH_MAX]);

#endif
