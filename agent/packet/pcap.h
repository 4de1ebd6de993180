/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture files in the classic pcap format. Read from memory, whatever the bytes are, in either
 * byte order, with microseconds or nanoseconds; written in this machine's byte order with
 * nanoseconds. Free of side effects but for the stream that is written to.
 */
#ifndef AX_PACKET_PCAP_H
#define AX_PACKET_PCAP_H

#include "base/util.h"

#define PCAP_ETHERNET	1	/* the link type */
#define PCAP_PACKET_MAX 0x40000 /* as other readers have it; a longer one means a broken file */

struct pcap {
	const uint8_t *data;
	size_t len, at;
	bool swapped, nanos;
	uint32_t link_type, snap_len;
	uint32_t count; /* packets so far */
};
struct pcap_packet {
	uint64_t time_ns;
	const uint8_t *data; /* into the file's */
	size_t len;
	size_t original_len; /* before it was cut to len */
};

/* -EINVAL with a sentence when it is no such file, or not one of Ethernet. */
int pcap_begin(struct pcap *p, const void *data, size_t len, struct error *e);
/* 1 and a packet, 0 at the end, -EINVAL when the file is cut or broken. */
int pcap_next(struct pcap *p, struct pcap_packet *ret, struct error *e);

/* The stream's errors stay in the stream. */
void pcap_put_header(FILE *f);
void pcap_put_packet(FILE *f, const struct pcap_packet *p);

#endif
