/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet frames from a description that may lie in every field. */
#ifndef AX_TESTS_FRAME_BUILD_H
#define AX_TESTS_FRAME_BUILD_H

#include <stddef.h>

#include "base/address.h"

#define FRAME_BUILT_MAX 512
#define TCP_HEADER	20
#define UDP_HEADER	8

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

enum {
	TOTAL_ZERO = -1000, /* for `total`: the length field says 0 */
	MORE = 1,	    /* for `frag`: more fragments follow */
};

struct frame {
	uint8_t proto;
	uint8_t flags;	       /* TCP's */
	uint16_t sport, dport; /* 0: 40000, 80 */
	unsigned payload;      /* bytes behind the L4 header */
	unsigned options;      /* IPv4: words of options; IPv6: extension headers of 8 bytes */
	uint8_t ext;	       /* which extension header; 0: destination options */
	unsigned offset;       /* of a fragment, in units of 8 bytes */
	unsigned frag;	       /* MORE or 0 */
	bool frag_header;      /* IPv6: with a fragment header, also for a whole datagram */
	int version;	       /* instead of the right one */
	int ihl;	       /* IPv4: instead of the right one */
	int total;    /* the length field counts so many bytes behind all headers of IP, or says 0
			 (TOTAL_ZERO); 0: it tells the truth */
	unsigned cut; /* the frame ends after so many bytes; 0: it is whole */
	uint16_t ethertype; /* instead of the right one */
};

/* Returns the frame's length. */
size_t put_frame(uint8_t p[FRAME_BUILT_MAX], const struct frame *f, int v6,
		 const struct ax_addr *src, const struct ax_addr *dst);

/* Puts a header of 8 bytes behind IPv6's in a frame of that length; `field`: of a fragment's, its
 * offset and flags. Returns the length. */
size_t put_extension(uint8_t p[FRAME_BUILT_MAX], size_t n, uint8_t kind, unsigned field);

#endif
