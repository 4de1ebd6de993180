/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was in the memory of processes when perf recorded, by its events: who ran on which CPU when,
 * and which file stood at an address; and by the code that was kept (ax trace jit). The files are
 * those of this machine. */
#ifndef AX_TOOLS_TRACE_PERFDATA_SPACE_H
#define AX_TOOLS_TRACE_PERFDATA_SPACE_H

#include "probes/perfdata/perfdata.h"

struct space;

/* `root`: files are looked for below it; NULL: as they are named. */
int space_new(const char *root, struct space **ret, struct error *e);
/* Code that was made at run time comes before files: a jitdump, or a directory with such ones
 * (jit-*.dump), as of ax trace jit. */
int space_add_jit(struct space *s, const char *path, struct error *e);
void space_free(struct space *s);
/* Each event of the file, and when all were seen. */
int space_see(struct space *s, const struct perfdata *p, const struct perfdata_event *ev);
void space_ready(struct space *s);

/* From now on it is about who ran there at that time (UINT64_MAX: at last). `cpu` UINT32_MAX: the
 * thread `tid`. */
void space_at(struct space *s, uint32_t cpu, uint32_t tid, uint64_t time);
uint32_t space_pid(const struct space *s); /* UINT32_MAX: not known */
/* How many of the bytes at an address are known. */
size_t space_read(struct space *s, uint64_t address, uint8_t *buf, size_t len);
struct space_name {
	const char *function; /* NULL: not known */
	uint64_t offset;
	const char *file; /* NULL: not known */
};
/* Texts live as long as the space. */
void space_name(struct space *s, uint64_t address, struct space_name *ret);

#endif
