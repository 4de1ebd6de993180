/* SPDX-License-Identifier: GPL-2.0-or-later */
/* jitdump, perf's format for code that was made at run time: see
 * tools/perf/Documentation/jitdump-specification.txt of Linux. In this machine's byte order. */
#ifndef AX_PROBES_JIT_JITDUMP_H
#define AX_PROBES_JIT_JITDUMP_H

#include "base/util.h"

struct jitdump_code {
	uint64_t time_ns; /* from when on it is there: of ax CLOCK_MONOTONIC */
	uint64_t address, size;
	uint64_t index;	 /* of the piece, in its file */
	uint64_t offset; /* of its bytes, in its file */
	uint32_t pid, tid;
};

/* --- writing --- */

struct jitdump_writer {
	int fd;
	uint64_t n;    /* pieces */
	uint64_t size; /* of the file */
};
/* Begins an empty file, which stays the caller's. `pid`: who maps it. A negative errno. */
int jitdump_begin(struct jitdump_writer *w, int fd, uint32_t pid, uint64_t time_ns);
/* Appends a piece with its bytes; c->index and c->offset are filled in. A negative errno. */
int jitdump_put(struct jitdump_writer *w, struct jitdump_code *c, const char *name,
		const void *bytes);

/* --- reading --- */

struct jitdump;
/* Takes the descriptor over, also when it fails. `path` is for messages. What was cut off at the
 * end is no error. */
int jitdump_open(int fd, const char *path, struct jitdump **ret, struct error *e);
void jitdump_close(struct jitdump *d);
static inline void jitdump_closep(struct jitdump **d)
{
	if (*d)
		jitdump_close(*d);
}
/* By time; NULL: there are no more. */
const struct jitdump_code *jitdump_nth(const struct jitdump *d, size_t i);
/* What was there at that time (UINT64_MAX: at last): the newest one until then, else the first one
 * later. NULL: nothing. */
const struct jitdump_code *jitdump_find(const struct jitdump *d, uint32_t pid, uint64_t address,
					uint64_t time_ns);
/* Bytes of it from an address in it; returns how many. */
size_t jitdump_read(const struct jitdump *d, const struct jitdump_code *c, uint64_t address,
		    void *buf, size_t len);
/* Its name, into buf; "" if it has none. */
void jitdump_name(const struct jitdump *d, const struct jitdump_code *c, char *buf, size_t size);

#endif
