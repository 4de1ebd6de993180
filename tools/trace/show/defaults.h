/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times of ax trace, in milliseconds. */
#ifndef AX_TOOLS_TRACE_SHOW_DEFAULTS_H
#define AX_TOOLS_TRACE_SHOW_DEFAULTS_H

#define TRACE_FLUSH_MS	  200  /* output to a file, in which nobody waits for the next line */
#define TRACE_CTF_HOLD_MS 50   /* -o ctf: so long an event waits for earlier ones */
#define TRACE_TABLE_MS	  1000 /* how often is looked whether a run that counts is over */
#define TRACE_NOTE_MS	  100  /* how often processes of a table's keys are looked at */
#define VIEW_RECORDS_MS	  50   /* ax trace view -f: how often is looked for records */
#define VIEW_TABLE_MS	  1000 /* and how often a table is printed */
#define CHILD_END_MS	  2000 /* for the command of -c to end by SIGTERM */
#define READY_LAST_TRIES  50   /* of a millisecond: for programs that still ran when detached */

#endif
