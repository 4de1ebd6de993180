/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What splicing reads of sockets, files and tasks besides kernel.bpf.h: CO-RE subsets. */
#ifndef AX_SPLICE_KERNEL_BPF_H
#define AX_SPLICE_KERNEL_BPF_H

#include "kernel.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};

struct file {
	unsigned int f_flags;
};

struct socket {
	unsigned long flags;
	struct file *file;
};

struct page_counter {
	struct {
		long counter;
	} usage;
	unsigned long max;
	struct page_counter *parent;
};

struct mem_cgroup {
	struct page_counter memory;
	struct page_counter tcpmem; /* only with the first version of control groups */
	bool tcpmem_active;
};

struct sock {
	int sk_peek_off;
	struct {
		struct {
			int counter;
		} rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
	int sk_rcvlowat;
	struct socket *sk_socket;
	__u32 sk_tsflags; /* 16 bits before Linux 6.6 */
	unsigned long sk_max_pacing_rate;
	void *sk_user_data;
	struct mem_cgroup *sk_memcg; /* only with CONFIG_MEMCG */
};

struct bpf_iter__sockmap {
	struct sock *sk;
};

struct tcp_ulp_ops;
struct inet_connection_sock {
	const struct tcp_ulp_ops *icsk_ulp_ops;
};

struct io_uring_task;
struct task_struct {
	unsigned int __state; /* __TASK_* of the kernel's sched.h */
	unsigned int flags;
	int exit_state;
	unsigned int frozen : 1; /* by its control group; only with CONFIG_CGROUPS */
	__u64 start_boottime;
	struct task_struct *group_leader;
	struct io_uring_task *io_uring; /* only with CONFIG_IO_URING */
};

/* Their numbers are the running kernel's. */
enum sock_flags {
	SOCK_URGINLINE = 2,
	SOCK_RCVTSTAMP = 11,
	SOCK_RCVTSTAMPNS = 12,
	SOCK_TIMESTAMPING_RX_SOFTWARE = 15,
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10;
	unsigned long dx;
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__s32 syscallno;
};
#else
struct pt_regs;
#endif

#pragma clang attribute pop

#endif
