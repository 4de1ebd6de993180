/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splicing: data of TCP connections between apps of this machine, handed from socket to socket
 * (sockops/sk_msg.bpf.c). A socket is known by its cookie, which no other socket of the machine
 * has or will have.
 */
#ifndef AX_SPLICING_H
#define AX_SPLICING_H

#include <linux/types.h>
#include "addr.h"

/* Sockets that are members at a time; one more stays plain TCP. */
#define AX_SPLICE_MEMBERS_MAX 65536
/* Sockets of one run of ax_splice_join. */
#define AX_SPLICE_WANTED_MAX 8192

/* Socket storage `splice_ends` of each member. */
struct ax_splice_end {
	__u64 peer;    /* cookie of the connection's other end: its key in `splice_members` */
	__u64 peer_sk; /* the kernel's address of that socket: a number, only ever read through */
	__u64 redirected; /* messages that it sent from socket to socket */
	__u64 redirected_bytes;
	__u64 passed; /* and by TCP, since it is a member */
	__u64 passed_bytes;
	__u32 member;	   /* 1: it is in `splice_members` */
	__u32 why;	   /* enum ax_splice_count: what the last message that went by TCP met */
	__u32 since_empty; /* messages redirected since the other end was seen to hold none */
	__u32 parted;	   /* 1: it shall send by TCP */
};
_Static_assert(sizeof(struct ax_splice_end) == 64, "struct ax_splice_end is a map value");

/* Map `splice_wanted`: cookie of a socket that ax_splice_join shall make a member -> the other end
 * of its connection; zeros: a member shall send by TCP. */
struct ax_splice_wanted {
	__u64 peer;
	__u64 peer_sk;
};
_Static_assert(sizeof(struct ax_splice_wanted) == 16, "struct ax_splice_wanted is a map value");

/* Written by ax_splice_join for each socket that it found. */
struct ax_splice_joined {
	__u64 cookie;
	__s32 result; /* 0 (also if it was a member before), or a negative errno: -E2BIG when the
		       * map is full, -EBUSY when it is in somebody else's map */
	__u32 pad;
};
_Static_assert(sizeof(struct ax_splice_joined) == 16,
	       "struct ax_splice_joined is read by user space");

enum ax_splice_conn_flag {
	AX_SPLICE_NONBLOCK = 1 << 0, /* O_NONBLOCK is set on its file */
	AX_SPLICE_MEMBER = 1 << 1,
	AX_SPLICE_ULP = 1 << 2,	   /* kTLS or the like: cannot join */
	AX_SPLICE_OTHER = 1 << 3,  /* MPTCP, TCP_REPAIR, or the kernel's or somebody else's: cannot
				      join */
	AX_SPLICE_PARTED = 1 << 4, /* a member that is told to send by TCP */
	AX_SPLICE_STUCK = 1 << 5,  /* a member that waits for room although it has nothing queued:
				       when memory was short, nobody wakes it but the agent */
};

/* One end of an established connection, written by ax_splice_conns. */
struct ax_splice_conn {
	__u64 cookie;
	__u64 sk;    /* for struct ax_splice_wanted */
	__u64 netns; /* cookie of its network namespace */
	struct ax_endpoint local;
	struct ax_endpoint remote;
	struct ax_endpoint asked; /* the service that was asked for, or all zero */
	__u32 app;   /* whose address `local` is; that the namespace is that app's is not checked */
	__u32 flags; /* enum ax_splice_conn_flag */
	__u32 why;   /* of a member: enum ax_splice_count, what the last passed message met */
	/* Sequence numbers: what one end has written and the other one has read is one count, which
	 * begins at random. */
	__u32 write_seq;
	__u32 snd_una;
	__u32 rcv_nxt;
	__u32 copied_seq;
	/* Bytes that wait to be read at this end, by either way, and messages that it has handed on
	 * since the other end was seen to hold none: both ends of a connection tell whether
	 * something that was handed on may be unread. */
	__u32 held;
	__u32 since_empty;
	/* Of TCP alone: redirected data is in none of these. */
	__u32 data_segs_in;
	__u32 data_segs_out;
	__u64 bytes_sent;
	__u64 bytes_received;
	/* Of a member: what it sent, see struct ax_splice_end. */
	__u64 redirected;
	__u64 redirected_bytes;
	__u64 passed;
	__u64 passed_bytes;
};
_Static_assert(sizeof(struct ax_splice_conn) == 176, "struct ax_splice_conn is read by user space");

/* Map `splice_ctl`: one entry. */
struct ax_splice_ctl {
	__u32 redirect; /* 0: members pass everything on to TCP */
	/* 1: the agent was told, and will look: */
	__u32 told_new;	   /* a connection is worth a look */
	__u32 told_unread; /* a reader may sleep before what it has not read, or a
			    * writer before room */
	__u32 pad;
	/* Whoever wakes readers, see sockops/sk_msg.bpf.c: when he is gone, members pass everything
	 * on. The kernel's address of his task, and when that was started. */
	__u64 agent;
	__u64 agent_since;
};
_Static_assert(sizeof(struct ax_splice_ctl) == 32, "struct ax_splice_ctl is a map value");

/* Records of ring buffer `splice_events`: one __u32 each. */
enum ax_splice_told {
	AX_SPLICE_TOLD_NEW = 1 << 0,
	AX_SPLICE_TOLD_UNREAD = 1 << 1,
};

/* Map `splice_apps`: app id -> 1: connections of this app are worth a look; id 0: of every app. */

/* Map `splice_sizes`: cookie -> what was sent there since it was put in. */
struct ax_splice_size {
	__u64 messages;
	__u64 bytes;
};
_Static_assert(sizeof(struct ax_splice_size) == 16, "struct ax_splice_size is a map value");
/* Sockets that are looked at so at a time. */
#define AX_SPLICE_SIZES_MAX 256

/* Map `splice_count`: per-CPU array by enum ax_splice_count. Names: agent/datapath/splice_names.c.
 */
struct ax_splice_counted {
	__u64 messages; /* or sockets, of AX_SPLICE_JOINED and AX_SPLICE_FULL */
	__u64 bytes;
};

/* What became of a message of a member, and why it went by TCP. */
enum ax_splice_count {
	AX_SPLICE_JOINED, /* sockets that became members */
	AX_SPLICE_FULL,	  /* and that found the map full */
	AX_SPLICE_REDIRECTED,
	AX_SPLICE_PASSED, /* went by TCP, each one counted below too */
	/* each from here on is a reason */
	AX_SPLICE_OFF,	     /* redirecting is switched off, for all or for this connection */
	AX_SPLICE_STATE,     /* an end is not established: closing, closed */
	AX_SPLICE_GONE,	     /* the other end is no member (any more) */
	AX_SPLICE_UNREAD,    /* the other end has not read all that went by TCP */
	AX_SPLICE_NO_ROOM,   /* the other end's receive buffer */
	AX_SPLICE_MEMORY,    /* TCP is short of memory on this machine, or the other end's control
				group is: redirecting would fail */
	AX_SPLICE_BLOCKING,  /* O_NONBLOCK is off at the other end */
	AX_SPLICE_LOWAT,     /* SO_RCVLOWAT there */
	AX_SPLICE_PEEK_OFF,  /* SO_PEEK_OFF there */
	AX_SPLICE_TIMESTAMP, /* SO_TIMESTAMP there, SO_TIMESTAMPING at either end */
	AX_SPLICE_INQ,	     /* TCP_INQ there */
	AX_SPLICE_OOBINLINE, /* SO_OOBINLINE there */
	AX_SPLICE_IS_ULP,    /* kTLS or the like at either end */
	AX_SPLICE_REPAIR,    /* TCP_REPAIR at either end */
	AX_SPLICE_CORK,	     /* TCP_CORK */
	AX_SPLICE_PACED,     /* SO_MAX_PACING_RATE */
	AX_SPLICE_SYSCALL, /* not by send(), sendto(), sendmsg(), sendmmsg(), write(), writev(); or
			      by a task that uses io_uring */
	AX_SPLICE_FLAGS,   /* the call has flags like MSG_MORE, MSG_OOB, MSG_ZEROCOPY */
	AX_SPLICE_UNKNOWN, /* this kernel's structures lack what has to be looked at */
	AX_SPLICE_ALONE,   /* no agent runs that would wake readers */
	AX_SPLICE_COUNTS
};

#endif
