/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and times of ax trace run. */
#ifndef AX_TOOLS_TRACE_SCRIPT_DEFAULTS_H
#define AX_TOOLS_TRACE_SCRIPT_DEFAULTS_H

/* Records of several processors come in the order in which their programs ended: they are held back
 * while a program is at work that began before, but no longer than this; those that come later are
 * printed late. */
#define SCRIPT_ORDER_MS	   20
#define SCRIPT_ORDER_BYTES (64u << 20) /* held back at most */
#define SCRIPT_LOOK_MS	   100	       /* how often processes of tables' keys are looked at */

#endif
