/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams: connections whose reader is silent. They may gain by splicing where messages are large,
 * and lose much where they are small; TCP does not tell, so that for a moment it is counted. What
 * is handed on in a stream often fills its reader's buffer, and a reader that waits for edges would
 * then have to be woken each time (sockops/sk_msg.bpf.c): those are left to TCP. Looks at numbers
 * only.
 */
#ifndef AX_SPLICE_STREAMS_H
#define AX_SPLICE_STREAMS_H

#include "splice/decisions.h"
#include "splicing.h"

/* Smaller ones are small: with 16 KiB a stream between two idle processors has 0.67 of TCP's rate.
 * Who hands a message over waits for the reader's socket, which its reader holds while it copies
 * (bpf_tcp_ingress()). */
#define STREAMS_MESSAGE_MIN (48u << 10)
/* So many say how large they are. */
#define STREAMS_MESSAGES_MIN 32
/* How long it is counted at least, and the pauses after which it is counted anew. */
#define STREAMS_COUNT_MS 100
#define STREAMS_AGAIN_MS 1000
#define STREAMS_SMALL_MS 30000

/* What two ends' messages say: STREAM_UNKNOWN when they are too few. */
enum stream_size streams_size_of(const struct ax_splice_size *a, const struct ax_splice_size *b);
/* It is to be counted, anew or at last. */
bool streams_is_due(const struct decision *d, uint64_t now_ns);

#endif
