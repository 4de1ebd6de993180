/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions of a program a name means, where a probe on one goes, and where it returns. Code
 * is read as hostile input.
 */
#ifndef AX_PROBES_PLACE_PLACE_H
#define AX_PROBES_PLACE_PLACE_H

#include "probes/elf/binary.h"

/* Functions of .symtab (also of the debug file), .dynsym and .gnu_debugdata, each address once,
 * whose name (or demangled name, or it without arguments) matches the glob; sorted by address. f
 * returns non-zero to end. -ENOENT: no function matches (with "did you mean"). */
int binary_functions(struct binary *b, const char *glob,
		     int (*f)(void *arg, const struct symbol *s), void *arg, struct error *e);

enum place_cost {
	PLACE_EMULATED, /* the kernel emulates the instruction: push, nop, short jumps ... */
	PLACE_NOP5,	/* at the function's entry: a call takes its place (Linux 6.18) */
	PLACE_STEPPED,	/* single-stepped: the slowest */
	PLACE_REFUSED,	/* the kernel takes no probe there, or it would not be safe; see why */
};
struct place {
	uint64_t offset; /* in the file: where the probe goes */
	uint32_t slid;	 /* bytes behind where it was asked for */
	enum place_cost cost;
	char instruction[64]; /* its text */
	char why[256];	      /* of the choice, or of the refusal */
};
/*
 * Where a probe on a function's entry is cheapest: slides past instructions that leave the argument
 * registers and the stack's arguments alone, are no jump target, and cannot fault, to one that the
 * kernel emulates; never onto a nop5 inside a function, whose replacement would overwrite the red
 * zone. Other registers than those of arguments, the stack and frame pointers may have changed when
 * it slid: who fetches such a one asks for the exact place. `exact`: the place is given and only
 * judged. A place that is refused is no error: ret->cost and ret->why say so.
 */
int binary_place(struct binary *b, const struct symbol *s, uint64_t offset, bool exact,
		 struct place *ret, struct error *e);
/* The bytes at an offset, at most *n; *n becomes how many there are. -ENOEXEC: none. */
int place_bytes(struct binary *b, uint64_t offset, uint8_t *bytes, size_t *n);
/* The instruction at `bytes`, which is at `address`, as text: at most n bytes of it are there. Its
 * length; 0: it is none that is known. */
#define PLACE_INSTRUCTION_MAX 15
size_t place_instruction(uint16_t machine, const uint8_t *bytes, size_t n, uint64_t address,
			 char *text, size_t len);
/* The returns of a function, as offsets in the file (Go: a uretprobe would break its stack).
 * -ENOENT: it has none (it never returns, or ends by jumping to another function). */
int binary_returns(struct binary *b, const struct symbol *s, uint64_t **offsets, size_t *n,
		   struct error *e);

#endif
