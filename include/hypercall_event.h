/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of `ax trace hypercall` tell user space, and what they are told. */
#ifndef AX_HYPERCALL_EVENT_H
#define AX_HYPERCALL_EVENT_H

#include "trace_event.h"

/* Where a tracepoint's record has a field. */
struct ax_record_field {
	__u16 offset;
	__u16 size; /* 1, 2, 4 or 8 */
};

#define AX_HYPERCALL_ARGS 4

/* Of this kernel's kvm_exit, kvm_hypercall and kvm_entry, as their format files say. */
struct ax_hypercall_layout {
	struct ax_record_field reason, isa;
	struct ax_record_field nr, args[AX_HYPERCALL_ARGS];
	struct ax_record_field vcpu; /* of the entry */
};

struct ax_hypercall_config {
	__u64 nr; /* the only one that counts, if `only` */
	__u32 only;
	__u32 all;  /* every exit counts, by its reason */
	__u32 live; /* a record of each, and no table */
	struct ax_hypercall_layout layout;
};
_Static_assert(sizeof(struct ax_hypercall_config) == 56,
	       "struct ax_hypercall_config is read-only data");

enum ax_hypercall_kind {
	AX_HYPERCALL_EXIT, /* any exit of that reason */
	AX_HYPERCALL_CALL,
	AX_HYPERCALL_OTHER, /* calls of numbers for which the vCPU has no rows left */
};

struct ax_hypercall_key {
	__u32 vm; /* the process */
	__u32 vcpu;
	__u32 kind; /* enum ax_hypercall_kind */
	__u32 isa;  /* 1: VMX, 2: SVM */
	__u32 reason;
	__u32 pad;
	__u64 nr; /* 0 unless it is a call's row */
};
_Static_assert(sizeof(struct ax_hypercall_key) == 32, "struct ax_hypercall_key is a map's key");

/* Each power of two has eight buckets: those of times below 8 ns hold one nanosecond each, the last
 * one also all that is longer. */
#define AX_HYPERCALL_FINE_BITS 3
#define AX_HYPERCALL_POWERS    40
#define AX_HYPERCALL_BUCKETS   ((AX_HYPERCALL_POWERS - 2) << AX_HYPERCALL_FINE_BITS)

/* From the exit to the next entry, in nanoseconds. */
struct ax_hypercall_cell {
	__u64 count, sum, most;
	__u64 least; /* with all bits turned, so that 0 is the start */
	__u64 buckets[AX_HYPERCALL_BUCKETS];
};
_Static_assert(sizeof(struct ax_hypercall_cell) == 32 + 8 * AX_HYPERCALL_BUCKETS,
	       "struct ax_hypercall_cell is a map's value");

/* AX_WATCH_VCPU, told of each vCPU's thread once. Its time is 0, since it is no event; its name is
 * that of the process, which may be gone when the record is read: so what it was started with is
 * there, too. */
#define AX_HYPERCALL_WORDS 1024
struct ax_hypercall_vcpu {
	struct ax_watch_head head;
	__u32 len; /* of words */
	__u32 pad;
	char words[AX_HYPERCALL_WORDS]; /* the beginning of its command line, with NULs */
};
_Static_assert(sizeof(struct ax_hypercall_vcpu) == 128 + AX_HYPERCALL_WORDS,
	       "struct ax_hypercall_vcpu is read by user space");

struct ax_hypercall_event {
	struct ax_watch_head head;
	__u64 nr;
	__u64 args[AX_HYPERCALL_ARGS];
	__u64 duration_ns;
	__u32 called; /* it was a hypercall: nr and args are there */
	__u32 isa, reason, vcpu;
};
_Static_assert(sizeof(struct ax_hypercall_event) == 184,
	       "struct ax_hypercall_event is read by user space");

#endif
