/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_TOOLS_TRACE_STEP_DEFAULTS_H
#define AX_TOOLS_TRACE_STEP_DEFAULTS_H

#define STEP_COUNT_DEFAULT 20
#define STEP_COUNT_MAX	   1000000
#define STEP_TIMES_DEFAULT 1
/* Instructions in which the lines that were asked for have to come. */
#define STEP_LINES_INSTRUCTIONS 1000000
/* How often is looked whether it is to end, in milliseconds. */
#define STEP_TICK_MS 20
/* What nobody has read yet of what was written. */
#define STEP_OUTPUT_MAX (256u << 20)

#endif
