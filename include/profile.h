/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of `ax trace profile|offcpu` tell user space, and what they are told. */
#ifndef AX_PROFILE_H
#define AX_PROFILE_H

#include <linux/types.h>
#include "trace_event.h"
#include "user_stack.h"

#define AX_PROFILE_FRAMES 127 /* of a call stack, as the kernel walks it */

struct ax_profile_config {
	__u32 copies;	      /* the program's stack is copied, not followed by frame pointers */
	__u32 preempted;      /* of offcpu: also who had to give way to another */
	__u32 kernel_threads; /* of offcpu: also those of the kernel itself */
	__u32 pad;
	__u64 least_ns; /* of offcpu: shorter times do not count */
};
_Static_assert(sizeof(struct ax_profile_config) == 24,
	       "struct ax_profile_config is read-only data");

#define AX_PROFILE_NO_STACK (-1)

/* What counts as the same. */
struct ax_profile_key {
	__u32 pid;
	__s32 kernel; /* call stacks: numbers of map `stacks`, or below 0 */
	__s32 user;
	__u32 pad;
	char comm[AX_EVENT_COMM];
};
_Static_assert(sizeof(struct ax_profile_key) == 32, "struct ax_profile_key is a map's key");

struct ax_profile_count {
	__u64 times;
	__u64 ns; /* of offcpu */
};
_Static_assert(sizeof(struct ax_profile_count) == 16, "struct ax_profile_count is a map's value");

/* Of offcpu: a thread that is waiting. */
struct ax_profile_wait {
	__u64 since; /* 0: it is not */
	struct ax_profile_key key;
};
_Static_assert(sizeof(struct ax_profile_wait) == 40, "struct ax_profile_wait is a map's value");

/* An address of the kernel, and what the kernel calls it. */
struct ax_profile_name {
	__u64 address;
	char name[120]; /* "vfs_read", "nf_conntrack_in [nf_conntrack]"; a number: there is none */
};
_Static_assert(sizeof(struct ax_profile_name) == 128, "struct ax_profile_name is a map's value");

enum ax_profile_type {
	AX_PROFILE_NEW = 1, /* a key that is counted from now on: struct ax_profile_sample without a
			       copy; it is no event */
	AX_PROFILE_SAMPLE,
};

struct ax_profile_sample {
	struct ax_watch_head head;
	struct ax_profile_key key;
	struct ax_user_stack stack;
};
_Static_assert(sizeof(struct ax_profile_sample) == 440,
	       "struct ax_profile_sample is read by user space");

#endif
