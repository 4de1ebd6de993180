/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sub-commands of `ax trace` that attach nothing of their own. */
#ifndef AX_TOOLS_TRACE_TRACE_H
#define AX_TOOLS_TRACE_TRACE_H

#include "tools/lib/cmd.h"

int cmd_trace(struct cmd *c, int argc, char **argv);
int cmd_trace_list(struct cmd *c, int argc, char **argv);
int cmd_trace_explain(struct cmd *c, int argc, char **argv);

/* named.c, view.c */
int cmd_trace_add(struct cmd *c, int argc, char **argv);
int cmd_trace_ls(struct cmd *c, int argc, char **argv);
int cmd_trace_view(struct cmd *c, int argc, char **argv);
int cmd_trace_enable(struct cmd *c, int argc, char **argv);
int cmd_trace_disable(struct cmd *c, int argc, char **argv);
int cmd_trace_reset(struct cmd *c, int argc, char **argv);
int cmd_trace_rm(struct cmd *c, int argc, char **argv);

#endif
