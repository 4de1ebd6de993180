/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls in the raw tracepoints sys_enter and sys_exit: which, and with what arguments. At
 * the exit they are still there: a system call changes only the register of its result. */
#ifndef AX_PROBES_WATCH_SYSCALL_BPF_H
#define AX_PROBES_WATCH_SYSCALL_BPF_H

#include "watch.bpf.h"

#if defined(__TARGET_ARCH_x86)
struct pt_regs___kernel {
	unsigned long di, si, dx, r10, r8, orig_ax;
} __attribute__((preserve_access_index));
#define SYSCALL_NR(regs) ((long)(regs)->orig_ax)
#define SYSCALL_A(regs)	 ((regs)->di)
#define SYSCALL_B(regs)	 ((regs)->si)
#define SYSCALL_C(regs)	 ((regs)->dx)
#define SYSCALL_D(regs)	 ((regs)->r10)
#define SYSCALL_E(regs)	 ((regs)->r8)
#define NR_OPEN		 2
#define NR_MMAP		 9
#define NR_MPROTECT	 10
#define NR_PKEY_MPROTECT 329
#define NR_MUNMAP	 11
#define NR_MADVISE	 28
#define NR_EXIT_GROUP	 231
#define NR_CREAT	 85
#define NR_EXECVE	 59
#define NR_OPENAT	 257
#define NR_EXECVEAT	 322
#define NR_OPENAT2	 437
#define TS_COMPAT	 2
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___kernel {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
} __attribute__((preserve_access_index));
#define SYSCALL_NR(r)	 ((long)(r)->syscallno)
#define SYSCALL_A(r)	 ((r)->orig_x0)
#define SYSCALL_B(r)	 ((r)->regs[1])
#define SYSCALL_C(r)	 ((r)->regs[2])
#define SYSCALL_D(r)	 ((r)->regs[3])
#define SYSCALL_E(r)	 ((r)->regs[4])
#define NR_MMAP		 222
#define NR_MPROTECT	 226
#define NR_PKEY_MPROTECT 288
#define NR_MUNMAP	 215
#define NR_MADVISE	 233
#define NR_EXIT_GROUP	 94
#define NR_OPEN		 (-2) /* there are none */
#define NR_CREAT	 (-3)
#define NR_EXECVE	 221
#define NR_OPENAT	 56
#define NR_EXECVEAT	 281
#define NR_OPENAT2	 437
#define TIF_32BIT	 22
#else
#error "the numbers of system calls are not known for this architecture"
#endif

/* Programs for 32 bits have other numbers, and are not watched. */
static __always_inline bool syscall_is_compat(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & TS_COMPAT;
#else
	return task->thread_info.flags >> TIF_32BIT & 1;
#endif
}

#endif
