/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of this folder, for the table in tools/ax.c. */
#ifndef AX_TOOLS_CMD_COMMANDS_H
#define AX_TOOLS_CMD_COMMANDS_H

#include "tools/lib/command.h"

/* Words of docker, kubectl, systemctl and others, for ax itself. */
extern const struct command_elsewhere commands_elsewhere[];

/* And options of theirs, for commands that start something, and for `ax ps` and `ax get`. */
extern const struct opt_elsewhere options_of_launches[], options_of_lists[];

/* Of launches: how they find out with whom the app's connections may be spliced (run.c). */
struct launch_options;
struct splice_peers;
void cmd_tell_spliced(struct launch_options *o, struct splice_peers *peers);

/* Of what exposes ports: says which interfaces there are not (yet), by which nobody comes (run.c).
 */
struct expose_list;
void cmd_tell_no_interface(const struct cmd *c, const struct expose_list *l);

/* The text of a config file, or of another one of its kind ("-": standard input). */
int cmd_read_config(const char *path, char **text, size_t *len, struct error *e);

extern const struct command cmd_agent;
extern const struct command cmd_completion;
extern const struct command cmd_config;
extern const struct command cmd_doctor;
extern const struct command cmd_events;
extern const struct command cmd_exec;
extern const struct command cmd_get;
extern const struct command cmd_help;
extern const struct command cmd_logs;
extern const struct command cmd_policy, cmd_policy_ls, cmd_policy_test;
extern const struct command cmd_policy_add, cmd_policy_set, cmd_policy_del;
extern const struct command cmd_ps;
extern const struct command cmd_rm;
extern const struct command cmd_run;
extern const struct command cmd_service, cmd_service_ls;
extern const struct command cmd_status;
extern const struct command cmd_stop;

#endif
