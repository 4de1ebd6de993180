/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What processes map as code while this is open, told by the kernel: so their addresses have names
 * also if they end before anybody could look at them. What was there before process.h knows.
 */
#ifndef AX_PROBES_PROCESS_MAPPINGS_H
#define AX_PROBES_PROCESS_MAPPINGS_H

#include "probes/process/process.h"

struct mappings;
int mappings_open(struct mappings **ret);
/* Takes what has come; to be called some times a second. */
void mappings_read(struct mappings *m);
/* As processes_symbolise(). Strings live as long as the struct mappings. */
int mappings_symbolise(struct mappings *m, int pid, uint64_t address, struct place_name *ret);
void mappings_close(struct mappings *m);

#endif
