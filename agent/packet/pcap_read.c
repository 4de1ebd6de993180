// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading capture files. */
#include "packet/pcap.h"

#define MAGIC_MICROS 0xa1b2c3d4u
#define MAGIC_NANOS  0xa1b23c4du
#define MAGIC_NG     0x0a0d0d0au
#define HEADER_LEN   24
#define RECORD_LEN   16
#define NS_PER_S     1000000000u

static uint32_t get32(const struct pcap *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p->data + at, sizeof(v));
	return p->swapped ? __builtin_bswap32(v) : v;
}

static bool take_magic(struct pcap *p, uint32_t magic)
{
	p->nanos = magic == MAGIC_NANOS;
	return magic == MAGIC_MICROS || magic == MAGIC_NANOS;
}

int pcap_begin(struct pcap *p, const void *data, size_t len, struct error *e)
{
	uint32_t magic;

	*p = (struct pcap){.data = data, .len = len};
	if (len < HEADER_LEN)
		return error_set(e, -EINVAL, "it is too short for a pcap file: %zu bytes", len);
	magic = get32(p, 0);
	if (magic == MAGIC_NG)
		return error_set(e, -EINVAL,
				 "it is a pcapng file: turn it into the classic format "
				 "with 'editcap -F pcap'");
	p->swapped =
		magic == __builtin_bswap32(MAGIC_MICROS) || magic == __builtin_bswap32(MAGIC_NANOS);
	if (!take_magic(p, get32(p, 0)))
		return error_set(e, -EINVAL, "it is no pcap file");
	p->snap_len = get32(p, 16);
	/* the upper bits say whether the frames' checksums are there too */
	p->link_type = get32(p, 20) & 0xffff;
	if (p->link_type != PCAP_ETHERNET)
		return error_set(
			e, -EINVAL,
			"its packets are not Ethernet frames (link type %u): capture on one "
			"interface that has Ethernet headers",
			p->link_type);
	p->at = HEADER_LEN;
	return 0;
}

int pcap_next(struct pcap *p, struct pcap_packet *ret, struct error *e)
{
	uint32_t sec, part, len;

	if (p->at == p->len)
		return 0;
	if (p->len - p->at < RECORD_LEN)
		return error_set(e, -EINVAL, "it ends in the middle of packet %u", p->count + 1);
	sec = get32(p, p->at);
	part = get32(p, p->at + 4);
	len = get32(p, p->at + 8);
	if (len > PCAP_PACKET_MAX)
		return error_set(e, -EINVAL, "its packet %u claims to have %u bytes: it is broken",
				 p->count + 1, len);
	if (p->len - p->at - RECORD_LEN < len)
		return error_set(e, -EINVAL, "it ends in the middle of packet %u", p->count + 1);
	ret->time_ns = (uint64_t)sec * NS_PER_S + (p->nanos ? part : (uint64_t)part * 1000);
	ret->data = p->data + p->at + RECORD_LEN;
	ret->len = len;
	ret->original_len = get32(p, p->at + 12);
	p->at += RECORD_LEN + len;
	p->count++;
	return 1;
}
