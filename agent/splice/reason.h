/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a connection is not spliced, and how that is said in a few words. */
#ifndef AX_SPLICE_REASON_H
#define AX_SPLICE_REASON_H

#include <stdbool.h>

enum splice_reason {
	REASON_NONE, /* it is spliced, or may be */
	REASON_OFF,
	REASON_NOT_ASKED,  /* nobody said on, and the kernel does not pass for auto */
	REASON_GATE_WAITS, /* it is not known yet what the kernel does */
	REASON_GATE_BROKE, /* and never will: the gate could not run */
	REASON_KERNEL,	   /* too old, or without BTF */
	REASON_UNSAFE, /* bytes or memory would be wrong on this kernel, whatever is asked for */
	REASON_FIONREAD,
	REASON_NO_PEER,	 /* the other end is nobody's that is known */
	REASON_STRANGER, /* a network namespace has an address that is not its app's */
	REASON_CANNOT,	 /* kTLS, MPTCP, TCP_REPAIR, a control group that limits its sockets */
	REASON_BLOCKING,
	REASON_YOUNG,
	REASON_FEW,
	REASON_STREAM,		/* of small messages, or not known yet */
	REASON_STREAM_EDGES,	/* of large ones, to a program that waits for edges */
	REASON_PROGRAM,		/* uses splice(2) */
	REASON_PROGRAM_UNKNOWN, /* may use it */
	REASON_FULL,
	REASON_FAILED, /* the kernel refused */
	REASONS
};

/* For a column: "blocking". NULL for other numbers. */
const char *splice_reason_text(enum splice_reason r);
/* It may become another without anybody changing the config: to be looked at again. */
bool splice_reason_is_open(enum splice_reason r);

#endif
