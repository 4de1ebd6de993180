/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of `ax trace exec`, `tcp` and others tell user space, and what they are told.
 */
#ifndef AX_TRACE_EVENT_H
#define AX_TRACE_EVENT_H

#include <linux/types.h>
#include "addr.h"
#include "scope.h"

#define AX_EVENT_COMM 16
#define AX_EVENT_APP  72 /* "web-7", the name of its cgroup */

/* Who is watched; read-only in the programs. */
struct ax_watch_config {
	struct ax_scope scope;
	__u64 apps;	 /* the cgroup that has those of all apps */
	__u32 app_level; /* how far below the root the cgroups of apps are, 0: there are none */
	__u32 tree;	 /* only processes of map `tree` */
};
_Static_assert(sizeof(struct ax_watch_config) == 152, "struct ax_watch_config is read-only data");

enum ax_watch_counter {
	AX_WATCH_EMITTED,    /* events, whatever became of them */
	AX_WATCH_DROPPED,    /* those for which the ring had no room */
	AX_WATCH_CUT,	     /* pieces of arguments or environments for which it had none */
	AX_WATCH_UNFOLLOWED, /* processes for which the table had no room */
	AX_WATCH_NO_STACK,   /* events whose call stack could not be kept */
	AX_WATCH_UNKNOWN,    /* memory that is freed, but was not seen to be allocated */
	AX_WATCH_OTHERS,     /* calls of processes of other users, which are not told */
	AX_WATCH_COUNTERS,
};

enum ax_watch_type {
	AX_WATCH_EXEC = 1,
	AX_WATCH_EXIT,
	AX_WATCH_OPEN,
	AX_WATCH_TCP_STATE,
	AX_WATCH_TCP_END, /* of a connection */
	AX_WATCH_VCPU,	  /* a thread that runs one */
	AX_WATCH_HYPERCALL,
	AX_WATCH_SIGNAL,
	AX_WATCH_TLS,
	AX_WATCH_TLS_END,
	AX_WATCH_LOCK,
	AX_WATCH_JIT,
};

/* Every event begins with it. */
struct ax_watch_head {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 type;    /* enum ax_watch_type */
	__u32 pid;
	__u32 tid;
	__u32 ppid;
	__u32 uid;
	__u32 pad;
	char comm[AX_EVENT_COMM];
	char app[AX_EVENT_APP]; /* empty: it is none of ax's */
};
_Static_assert(sizeof(struct ax_watch_head) == 120, "struct ax_watch_head is read by user space");

/* --- exec --- */

enum ax_exec_data {
	AX_EXEC_FILE = 1, /* what was asked for */
	AX_EXEC_ARGV,	  /* strings, each with its NUL */
	AX_EXEC_ENV,
	AX_EXEC_CWD, /* names of directories from the innermost to the root, each with its NUL */
};

#define AX_EXEC_CHUNK 8192

struct ax_exec_piece {
	__u64 no_time; /* 0: it is no event, but belongs to the process's next one */
	__u64 offset;  /* from the first byte of all that is of this kind */
	__u32 pid;
	__u32 what; /* enum ax_exec_data */
	__u32 len;
	__u32 pad;
	__u8 data[];
};
_Static_assert(sizeof(struct ax_exec_piece) == 32, "struct ax_exec_piece is read by user space");

enum ax_exec_flag {
	AX_EXEC_MORE_ARGS = 1, /* of a failed one: there were more than are told */
	AX_EXEC_DEEP_CWD = 2,  /* its outermost directories are left out */
};

struct ax_exec_event {
	struct ax_watch_head head;
	__s32 ret;   /* 0 or a negative errno */
	__u32 flags; /* enum ax_exec_flag */
	__u64 argv_len;
	__u64 env_len;
};
_Static_assert(sizeof(struct ax_exec_event) == 144, "struct ax_exec_event is read by user space");

struct ax_exit_event {
	struct ax_watch_head head;
	__u64 duration_ns; /* since the last exec */
	__u32 status;	   /* as wait() has it */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_exit_event) == 136, "struct ax_exit_event is read by user space");

/* --- open --- */

#define AX_OPEN_PATH   4096
#define AX_OPEN_PREFIX 128

struct ax_open_config {
	__u32 failed_only;
	__u32 latency; /* entries are seen too */
	__u32 prefix_len;
	__u32 pad;
	char prefix[AX_OPEN_PREFIX]; /* of the names that count */
};
_Static_assert(sizeof(struct ax_open_config) == 144, "struct ax_open_config is read-only data");

struct ax_open_event {
	struct ax_watch_head head;
	__u64 latency_ns; /* 0: the entry was not seen */
	__u64 flags;
	__u64 resolve; /* of openat2() */
	__s32 ret;     /* the descriptor or a negative errno */
	__s32 directory;
	__u32 mode;
	__u32 len; /* of the name without its NUL; AX_OPEN_FAULT: it cannot be read */
	char name[];
};
_Static_assert(sizeof(struct ax_open_event) == 160, "struct ax_open_event is read by user space");
#define AX_OPEN_FAULT 0xffffffffu

/* --- tcp --- */

enum ax_tcp_flag {
	AX_TCP_ACTIVE = 1,   /* connect() was called here */
	AX_TCP_FIN_SEEN = 2, /* the peer's */
	AX_TCP_OLD = 4,	     /* the connection was there before: its beginning is not known */
	AX_TCP_OPEN = 8,     /* it has not ended yet */
};

struct ax_tcp_event {
	struct ax_watch_head head; /* whose socket it is; pid 0: not known */
	struct ax_endpoint local;
	struct ax_endpoint remote;
	struct ax_endpoint asked; /* the service that was asked for, or all zero */
	__u32 flags;		  /* enum ax_tcp_flag */
	__u64 sock;		  /* the same for all that is told of a connection */
	__u64 sent;		  /* payload that was acknowledged */
	__u64 received;
	__u64 duration_ns;
	__u64 connect_ns; /* until it was established, 0: not known */
	__u32 srtt_us;
	__u32 retransmits;
	__s32 error; /* the socket's, a positive errno */
	__u8 from;   /* TCP_ESTABLISHED ... of include/net/tcp_states.h */
	__u8 to;
	__u16 pad;
};
_Static_assert(sizeof(struct ax_tcp_event) == 240, "struct ax_tcp_event is read by user space");

#endif
