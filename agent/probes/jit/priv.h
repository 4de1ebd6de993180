/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a file in the format jitdump consists of. */
#ifndef AX_PROBES_JIT_PRIV_H
#define AX_PROBES_JIT_PRIV_H

#include "probes/jit/defaults.h"
#include "probes/jit/jitdump.h"

#define JITDUMP_MAGIC	0x4a695444u
#define JITDUMP_VERSION 1

enum jitdump_id { JITDUMP_LOAD, JITDUMP_MOVE };

struct jitdump_header {
	uint32_t magic, version, total_size, machine, pad, pid;
	uint64_t time_ns, flags;
};
struct jitdump_prefix {
	uint32_t id, total_size;
	uint64_t time_ns;
};
/* Behind it stand the name with its NUL and the bytes. */
struct jitdump_load {
	struct jitdump_prefix p;
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};
struct jitdump_move {
	struct jitdump_prefix p;
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};
_Static_assert(sizeof(struct jitdump_header) == 40, "struct jitdump_header is in files");
_Static_assert(sizeof(struct jitdump_load) == 56, "struct jitdump_load is in files");
_Static_assert(sizeof(struct jitdump_move) == 64, "struct jitdump_move is in files");

#endif
