/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names for addresses of processes and of the kernel: "function+0x12 (library)". What a process has
 * mapped is read when it is first seen and kept, so that its addresses have names after it ended.
 */
#ifndef AX_PROBES_PROCESS_PROCESS_H
#define AX_PROBES_PROCESS_PROCESS_H

#include "base/util.h"

struct processes;

/* Strings live as long as the struct processes. */
struct place_name {
	const char *function; /* demangled, without its arguments; NULL: not known */
	uint64_t offset;      /* from the function; without one in the file, or the address */
	const char *file;     /* as the process sees it, or "[vdso]" and the like; of the kernel its
				 module; NULL: none */
};

int processes_new(struct processes **ret);
void processes_free(struct processes *p);
static inline void processes_freep(struct processes **p)
{
	if (*p)
		processes_free(*p);
}

/* At the first record of a process: reads what it has mapped, if that is not known yet. Cheap if it
 * is. A process that cannot be read (it has ended) has no names. */
void processes_note(struct processes *p, int pid);
/* Looks again at once at what it has mapped; if it has ended, what is known stays. */
void processes_note_again(struct processes *p, int pid);
/* It runs another program now (exec), or its number was given to another process. */
void processes_forget(struct processes *p, int pid);

/*
 * 0, also without a function's name when the file is known. -ENOENT: it is in nothing that is
 * known; ret->offset is the address then. A frame of a stack but the innermost is an address to
 * return to: its call is one byte before, which is what to ask for.
 */
int processes_symbolise(struct processes *p, int pid, uint64_t address, struct place_name *ret);
/* Whether there is code, also such as has no name. */
bool processes_has_code(struct processes *p, int pid, uint64_t address);
/* -ENOENT also where /proc/kallsyms hides its addresses. */
int processes_kernel(struct processes *p, uint64_t address, struct place_name *ret);

struct ax_user_stack; /* user_stack.h */
/*
 * The addresses where a thread of the process is, the innermost first, by its registers and a copy
 * of its stack: of callers the call itself, as processes_symbolise() is to be asked. Their number,
 * at most `max`. *cut: there are more, whose stack is not in the copy.
 */
int processes_callers(struct processes *p, int pid, const struct ax_user_stack *stack,
		      uint64_t *addresses, size_t max, bool *cut);

/* "function+0x12 (file)", "0x1234 (file)", "0x7f0012345678"; of the file its last part. */
void place_name_text(const struct place_name *n, char *to, size_t len);

#endif
