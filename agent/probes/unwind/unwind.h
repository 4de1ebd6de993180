/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a function to its caller, without frame pointers: by .eh_frame, which programs carry for
 * exceptions. Registers have DWARF's numbers of the machine.
 */
#ifndef AX_PROBES_UNWIND_UNWIND_H
#define AX_PROBES_UNWIND_UNWIND_H

#include <elf.h>

#include "base/util.h"

struct image; /* probes/elf/image.h */

#define UNWIND_REGS 34 /* as many as arm64 has, with its pc; x86-64 needs 17 */

/* What this machine's programs are for. */
#if defined(__aarch64__)
#define UNWIND_MACHINE EM_AARCH64
#else
#define UNWIND_MACHINE EM_X86_64
#endif

/* Of a thread, in one of its functions. */
struct unwind_regs {
	uint64_t v[UNWIND_REGS];
	uint64_t pc;
};
/* What was on its stack from the stack pointer on, as much of it as was copied. */
struct unwind_stack {
	uint64_t from;
	const uint8_t *bytes;
	size_t len;
};

/* How a register of the caller is found. CFA: what the stack pointer was before the call. */
enum unwind_rule {
	UNWIND_SAME,
	UNWIND_UNDEFINED,   /* of the return address: nobody called */
	UNWIND_AT,	    /* in memory at CFA + value */
	UNWIND_IS,	    /* CFA + value */
	UNWIND_REGISTER,    /* in register number `value` */
	UNWIND_AT_COMPUTED, /* in memory at what an expression says; `value`: where that is */
	UNWIND_IS_COMPUTED,
};
/* What holds at one instruction. */
struct unwind_row {
	uint64_t base;	   /* in the file: expressions are at so many bytes from it */
	int32_t cfa_value; /* to be added to the register, or where the expression is */
	uint8_t cfa_register;
	bool cfa_computed;
	uint8_t return_register;
	bool is_signal; /* the caller was interrupted, and did not call */
	uint8_t rules[UNWIND_REGS];
	int32_t values[UNWIND_REGS];
};

/* The row of an instruction, by its address as the file's program headers have it. -ENOENT: the
 * file has none; -ENOEXEC: what it has makes no sense, or is more than any compiler writes. */
int unwind_find(const struct image *im, uint64_t address, struct unwind_row *ret);

enum unwind_result {
	UNWIND_CALLER, /* the registers are those of the caller */
	UNWIND_END,    /* nobody called: a thread begins here */
	UNWIND_LOST,   /* the row makes no sense for these registers */
	UNWIND_CUT,    /* what is needed is beyond the end of the copy */
};
enum unwind_result unwind_step(const struct image *im, const struct unwind_row *row,
			       const struct unwind_stack *s, struct unwind_regs *r);
/* The same by the frame pointer, of code that says nothing. `machine`: EM_X86_64, EM_AARCH64. */
enum unwind_result unwind_by_frame_pointer(uint16_t machine, const struct unwind_stack *s,
					   struct unwind_regs *r);
/* DWARF's number of the stack pointer. */
uint8_t unwind_stack_pointer(uint16_t machine);

#endif
