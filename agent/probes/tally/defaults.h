/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes of the tables of ax trace syscalls, files, malloc and locks. What there is no room for is
 * counted as dropped. */
#ifndef AX_PROBES_TALLY_DEFAULTS_H
#define AX_PROBES_TALLY_DEFAULTS_H

#define TALLY_GROUPS   16384	 /* processes or apps whose names are known */
#define TALLY_SYSCALLS 16384	 /* different calls of each group */
#define TALLY_ERRORS   16384	 /* different errors of each call and group */
#define TALLY_FILES    32768	 /* different files of each group */
#define TALLY_BLOCKS   (1 << 20) /* pieces of memory that are allocated at a time */
#define TALLY_SITES    16384	 /* call stacks that allocate, or wait for locks */
#define TALLY_STACKS   32768	 /* the table of call stacks: two may need the same place */

#endif
