/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax trace jit: the directory that it writes, and what processes have mapped. */
#ifndef AX_TOOLS_TRACE_JIT_JIT_H
#define AX_TOOLS_TRACE_JIT_JIT_H

#include "probes/jit/capture.h"
#include "probes/watch/jit.h"
#include "tools/lib/command.h"
#include "tools/trace/show/out.h"

extern const struct command cmd_trace_jit;

/* --- dir.c --- */

struct jit_dir {
	int fd, dump_fd; /* -1: not open */
	struct jitdump_writer dump;
	struct trace_out index;
	uint64_t index_max; /* bytes of it; lines that would come after them are only counted */
	uint64_t index_size, left_out;
	bool full;    /* and so is this line */
	void *marker; /* the dump, mapped so that perf sees it; NULL: it cannot be */
};
#define JIT_NO_DIR                                            \
	(struct jit_dir)                                      \
	{                                                     \
		.fd = -1, .dump_fd = -1, .index = {.fd = -1 } \
	}
/* Makes it and its files, which are the caller's alone; index_max is set before. -EEXIST: it must
 * not be there. */
int jit_dir_make(struct jit_dir *d, const char *path, struct error *e);
void jit_dir_close(struct jit_dir *d);
/* Lines of the index. `event`: what follows is about. The caller writes more and ends it. */
void jit_dir_begin(struct jit_dir *d, const char *event, uint64_t time_ns, uint32_t pid,
		   uint32_t tid);
void jit_dir_number(struct jit_dir *d, const char *key, uint64_t v);
void jit_dir_hex(struct jit_dir *d, const char *key, uint64_t v);
void jit_dir_text(struct jit_dir *d, const char *key, const char *v);
void jit_dir_end(struct jit_dir *d);
void jit_dir_flush(struct jit_dir *d);

/* --- maps.c --- */

struct jit_map {
	uint64_t start, end, offset;
	bool write, shared;
	char path[4096]; /* "": none; "[heap]", "/memfd:x (deleted)" ... */
	char build_id[48];
};
/* Of each executable mapping of the process; stops when f returns other than 0. */
int jit_maps_each(uint32_t pid, int (*f)(void *arg, uint32_t pid, const struct jit_map *m),
		  void *arg);
bool jit_map_is_file(const struct jit_map *m); /* one that can be read later */
/* Fills in the file's build id, "" if it has none. */
void jit_map_build_id(uint32_t pid, struct jit_map *m);
/* The process and those that it has started. */
void jit_maps_tree(uint32_t pid, bool children, void (*f)(void *arg, uint32_t pid), void *arg);

#endif
