/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `ax config` does for all nodes of a cluster, of this room only. */
#ifndef AX_TOOLS_CMD_CONFIG_CLUSTER_H
#define AX_TOOLS_CMD_CONFIG_CLUSTER_H

#include "tools/lib/cmd.h"

/* A word of the command line as a revision. 0, or the exit status after a sentence. */
int cmd_revision(const struct cmd *c, const char *text, long long *ret);

/* Prints the list (revision 0), or the text of one. Returns the exit status. */
int cmd_config_history(struct cmd *c, long long revision, bool json);

/* Takes a revision up again (0: the one before the current one). As cmd_ask(). */
int cmd_config_rollback(struct cmd *c, long long revision, bool dry_run, json_t **reply,
			struct error *e);

#endif
