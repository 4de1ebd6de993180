/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that the tests of probes build, and stop where a probe would be. */
#ifndef AX_TESTS_PROBE_PROGRAMS_H
#define AX_TESTS_PROBE_PROGRAMS_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/util.h"
#include "probes/elf/binary.h"
#include "probes/elf/usdt.h"
#include "probes/place/place.h"

/* A directory in which the programs are built; made and removed by a group's setup and teardown. */
extern char build_dir[];
int build_dir_make(void **state);
int build_dir_remove(void **state);

/* A shell command in that directory, which must succeed. */
void PRINTF(1, 2) build_run(const char *fmt, ...);

/* Writes a file there. */
void build_source(const char *name, const char *text);

/* The caller closes it. */
struct binary *open_built(const char *name);

/* The first function that matches. */
struct symbol symbol_of(struct binary *b, const char *name);

#ifdef __x86_64__
/* A program that runs up to a place, as a probe would see it. */
struct stopped {
	pid_t pid;
	uint64_t bias; /* of addresses in the file */
	uint64_t at;
	long word; /* what was there */
	struct user_regs_struct regs;
};

/* Starts the program, and lets it run until it comes to the offset of its file. */
struct stopped stop_at(struct binary *b, uint64_t address, uint64_t offset);
void stopped_kill(struct stopped *s);
/* The word at an address of its memory. */
uint64_t peek(const struct stopped *s, uint64_t address);
#endif

#endif
