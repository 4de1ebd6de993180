/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing capture files in the pcapng format (draft-ietf-opsawg-pcapng), in this machine's byte
 * order, with nanoseconds: a section, its interfaces (numbered from 0 in their order), then packets
 * and statistics. Free of side effects but for the stream, whose errors stay in it.
 */
#ifndef AX_PACKET_PCAPNG_H
#define AX_PACKET_PCAPNG_H

#include "base/util.h"

/* First in the file. */
void pcapng_put_section(FILE *f, const char *os, const char *program);
/* An Ethernet interface. `filter`: in words, NULL: none; snap: bytes of each packet at most. */
void pcapng_put_interface(FILE *f, const char *name, const char *filter, uint32_t snap);

enum pcapng_direction { PCAPNG_UNKNOWN, PCAPNG_INBOUND, PCAPNG_OUTBOUND };
struct pcapng_packet {
	uint32_t interface;
	uint64_t time_ns; /* since 1970 */
	const uint8_t *data;
	uint32_t len;
	uint32_t original_len; /* before it was cut to len */
	enum pcapng_direction direction;
	uint64_t id;	     /* the same for what came in and what that became; 0: none */
	uint32_t queue;	     /* of the interface, from 0 */
	const char *comment; /* UTF-8; NULL: none */
	int xdp_action;	     /* what an XDP program made of it; -1: not known */
};
void pcapng_put_packet(FILE *f, const struct pcapng_packet *p);

struct pcapng_statistics {
	uint32_t interface;
	uint64_t start_ns, end_ns;  /* since 1970 */
	uint64_t received, dropped; /* dropped: for want of room */
};
void pcapng_put_statistics(FILE *f, const struct pcapng_statistics *s);

#endif
