/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of `ax trace syscalls|files|signals|tls|malloc|locks` count and tell. */
#ifndef AX_TALLY_EVENT_H
#define AX_TALLY_EVENT_H

#include "trace_event.h"
#include "user_stack.h"

/* What is counted apart; read-only in the programs. */
enum ax_tally_by {
	AX_TALLY_ALL,	  /* nothing */
	AX_TALLY_PROCESS, /* a group's number is its pid */
	AX_TALLY_APP,	  /* the number of its cgroup; 0: those of no app */
};

/* Who a group is, as far as it was seen. */
struct ax_tally_group {
	char comm[AX_EVENT_COMM];
	char app[AX_EVENT_APP];
};
_Static_assert(sizeof(struct ax_tally_group) == 88, "struct ax_tally_group is a map value");

/* Times by powers of two: 0 for 0 ns, n + 1 for 2^n up to 2^(n+1) - 1; the last one for all above.
 */
#define AX_TALLY_BUCKETS 40

struct ax_tally_times {
	__u64 count;
	__u64 sum;
	__u64 most;
	__u64 buckets[AX_TALLY_BUCKETS];
};
_Static_assert(sizeof(struct ax_tally_times) == 24 + 8 * AX_TALLY_BUCKETS,
	       "struct ax_tally_times is a map value");

/* --- system calls --- */

#define AX_SYSCALL_NONE 0xffffffffu /* all numbers that no kernel has */

struct ax_syscall_key {
	__u64 group;
	__u32 nr;
	__s32 error; /* of the table of errors: a positive errno */
};
_Static_assert(sizeof(struct ax_syscall_key) == 16, "struct ax_syscall_key is a map key");

struct ax_syscall_cell {
	struct ax_tally_times times;
	__u64 failed;
};
_Static_assert(sizeof(struct ax_syscall_cell) == sizeof(struct ax_tally_times) + 8,
	       "struct ax_syscall_cell is a map value");

/* --- files --- */

struct ax_file_key {
	__u64 group;
	__u64 ino;
	__u32 dev;	  /* as the kernel has it */
	__u32 generation; /* another file may get the same number later */
};
_Static_assert(sizeof(struct ax_file_key) == 24, "struct ax_file_key is a map key");

enum ax_file_way { AX_FILE_READ, AX_FILE_WRITE, AX_FILE_WAYS };

struct ax_file_cell {
	__u64 opens;
	__u64 calls[AX_FILE_WAYS];
	__u64 bytes[AX_FILE_WAYS];
	__u64 failed; /* of those calls */
	__u64 sum;    /* of the calls' times, and the longest */
	__u64 most;
	__u32 mode; /* S_IFREG ... */
	__u32 named;
};
_Static_assert(sizeof(struct ax_file_cell) == 72, "struct ax_file_cell is a map value");

/* A record that is no event: the names of a file's directories, from the innermost to the root,
 * each with its NUL. */
struct ax_file_name {
	__u64 no_time; /* 0 */
	struct ax_file_key key;
	__u32 complete; /* 0: its outermost directories are left out */
	__u32 len;
	char names[];
};
_Static_assert(sizeof(struct ax_file_name) == 40, "struct ax_file_name is read by user space");

/* --- signals --- */

enum ax_signal_result { /* TRACE_SIGNAL_DELIVERED ... of the kernel, in its order */
			AX_SIGNAL_SENT,
			AX_SIGNAL_IGNORED,
			AX_SIGNAL_PENDING, /* one of it is waiting already */
			AX_SIGNAL_NO_ROOM,
			AX_SIGNAL_NO_INFO, /* without what belongs to it, since there was no room */
			AX_SIGNAL_REFUSED, /* the system call failed with `error` */
};

struct ax_signal_event {
	struct ax_watch_head head; /* who sends it; pid 0: the kernel by itself */
	__s32 signal;
	__s32 code; /* si_code */
	__u32 result;
	__s32 error; /* a positive errno */
	__s32 to_pid;
	__s32 to_tid; /* 0: to the process, whichever thread */
	__u32 to_uid;
	__u32 pad;
	char to_comm[AX_EVENT_COMM];
	char to_app[AX_EVENT_APP];
};
_Static_assert(sizeof(struct ax_signal_event) == 240,
	       "struct ax_signal_event is read by user space");

/* --- plain text of TLS --- */

/* The functions: what they are given and return. A function's number is also its cookie. */
enum ax_tls_function {
	AX_TLS_READ = 1, /* (connection, buffer, size): the length */
	AX_TLS_WRITE,
	AX_TLS_READ_EX, /* (connection, buffer, size, size_t *length): 1 */
	AX_TLS_WRITE_EX,
	AX_TLS_FREE, /* (connection) */
};
/* Behind it in a cookie. */
#define AX_TLS_GNUTLS 0x100

#define AX_TLS_PIECE	   4096
#define AX_TLS_PIECE_SHORT 512

struct ax_tls_config {
	__u32 bytes; /* so many of each call at most */
	__u32 uid;   /* only processes of this user, if only_uid */
	__u32 only_uid;
	__u32 pad;
};
_Static_assert(sizeof(struct ax_tls_config) == 16, "struct ax_tls_config is read-only data");

/* AX_WATCH_TLS: a part of what one call carried. AX_WATCH_TLS_END: a connection was given back. */
struct ax_tls_event {
	struct ax_watch_head head;
	__u64 connection; /* its address in the process */
	__u64 total;	  /* bytes of the call */
	__u64 latency_ns;
	__u32 offset; /* of this part */
	__u32 len;
	__u32 function; /* enum ax_tls_function, with AX_TLS_GNUTLS */
	__u32 faulty;	/* the bytes could not be read */
	__u8 data[];
};
_Static_assert(sizeof(struct ax_tls_event) == 160, "struct ax_tls_event is read by user space");

/* --- memory of malloc() --- */

enum ax_heap_function {
	AX_HEAP_MALLOC = 1,	/* (size), also valloc() */
	AX_HEAP_CALLOC,		/* (number, size) */
	AX_HEAP_REALLOC,	/* (old, size) */
	AX_HEAP_REALLOCARRAY,	/* (old, number, size) */
	AX_HEAP_MEMALIGN,	/* (alignment, size), also aligned_alloc() */
	AX_HEAP_POSIX_MEMALIGN, /* (void **new, alignment, size) */
	AX_HEAP_FREE,		/* (old) */
};

/* Who called, and in which life of the process: an exec begins another. */
struct ax_heap_site {
	__u32 pid;
	__u32 life;
	__s32 stack; /* below 0: it could not be kept */
	__u32 pad;
	__u64 caller;
};
_Static_assert(sizeof(struct ax_heap_site) == 24, "struct ax_heap_site is a map key");

struct ax_heap_cell {
	__u64 allocated, allocated_bytes;
	__u64 freed, freed_bytes;
	__u64 unkept, unkept_bytes; /* of the allocated: whether they are freed cannot be seen */
};
_Static_assert(sizeof(struct ax_heap_cell) == 48, "struct ax_heap_cell is a map value");

struct ax_heap_key {
	__u64 address;
	__u32 pid;
	__u32 life;
};
_Static_assert(sizeof(struct ax_heap_key) == 16, "struct ax_heap_key is a map key");

struct ax_heap_block {
	struct ax_heap_site site;
	__u64 size;
	__u64 time_ns;
};
_Static_assert(sizeof(struct ax_heap_block) == 40, "struct ax_heap_block is a map value");

#define AX_TALLY_FRAMES 64 /* of a call stack */

/* --- locks --- */

#define AX_LOCK_STACK \
	1024 /* bytes of a copy: of the C library's frames and some of the program's */

/* A thread has waited for a lock, and goes on. */
struct ax_lock_event {
	struct ax_watch_head head;
	__u64 lock; /* its address */
	__u64 waited_ns;
	struct ax_user_stack stack;
};
_Static_assert(sizeof(struct ax_lock_event) == 424, "struct ax_lock_event is read by user space");

#endif
