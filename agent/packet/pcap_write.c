// SPDX-License-Identifier: GPL-2.0-or-later
/* Writing capture files. */
#include "packet/pcap.h"

#define MAGIC_NANOS 0xa1b23c4du
#define NS_PER_S    1000000000u

static void put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

void pcap_put_header(FILE *f)
{
	static const uint16_t version[2] = {2, 4};

	put32(f, MAGIC_NANOS);
	fwrite(version, sizeof(version), 1, f);
	put32(f, 0); /* time zone, */
	put32(f, 0); /* accuracy: nobody writes anything else */
	put32(f, PCAP_PACKET_MAX);
	put32(f, PCAP_ETHERNET);
}

void pcap_put_packet(FILE *f, const struct pcap_packet *p)
{
	put32(f, (uint32_t)(p->time_ns / NS_PER_S));
	put32(f, (uint32_t)(p->time_ns % NS_PER_S));
	put32(f, (uint32_t)p->len);
	put32(f, (uint32_t)p->original_len);
	fwrite(p->data, 1, p->len, f);
}
