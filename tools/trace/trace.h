/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `ax trace`, and what stands below it and attaches nothing of its own. */
#ifndef AX_TOOLS_TRACE_TRACE_H
#define AX_TOOLS_TRACE_TRACE_H

#include "tools/lib/command.h"

extern const struct command cmd_trace;
extern const struct command cmd_trace_list;
extern const struct command cmd_trace_explain;

extern const struct command cmd_trace_show_script;

/* named.c, view.c */
extern const struct command cmd_trace_add;
extern const struct command cmd_trace_ls;
extern const struct command cmd_trace_view;
extern const struct command cmd_trace_enable;
extern const struct command cmd_trace_disable;
extern const struct command cmd_trace_reset;
extern const struct command cmd_trace_rm;
/* The names of probes that stay. */
extern const struct words trace_named_words;

#endif
