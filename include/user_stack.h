/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers of a thread and the upper end of its stack: callers are found by them in user space, by
 * what files say of their code (probes/unwind). */
#ifndef AX_USER_STACK_H
#define AX_USER_STACK_H

#include <linux/types.h>

#define AX_USER_REGS 34 /* by DWARF's numbers, also that of the program counter */
/* Bytes of a copy: what a map's value for each CPU has room for. */
#define AX_USER_STACK_ROOM 24576

struct ax_user_stack {
	__u64 regs[AX_USER_REGS];
	__u64 pc;
	__u32 len; /* of the copy, which begins at the stack pointer */
	__u32 pad;
	__u8 bytes[];
};
_Static_assert(sizeof(struct ax_user_stack) == 288, "struct ax_user_stack is read by user space");

#endif
