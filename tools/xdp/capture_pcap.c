/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of captures as packets of a pcap file: what a record leaves out gets headers. */
#include <arpa/inet.h>

#include "tools/xdp/capture_priv.h"
#include "packet/pcap.h"
#include "packet/text.h"

#define ETH_LEN 14
#define TAG_LEN 4
/* Data captured from behind an IP header on does not begin before this; what begins before it is
 * captured from the IP header on. */
#define IP_DATA_MIN (ETH_LEN + 20)

static void put_frame(const struct capture_out *o, const struct ax_capture *c, const void *frame,
		      size_t len)
{
	const struct pcap_packet p = {
		.time_ns = capture_real_time(c->time_ns),
		.data = frame,
		.len = len,
		.original_len = c->frame_len > len ? c->frame_len : len,
	};

	pcap_put_packet(o->to, &p);
}

/* Data from the network header on gets only an Ethernet header. */
static int put_network(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data)
{
	bool tagged = c->vlan != AX_VLAN_NONE;
	size_t header = ETH_LEN + (tagged ? TAG_LEN : 0);
	const __be16 tag[2] = {htons(0x8100), htons(c->vlan)};
	autofree uint8_t *frame = malloc(header + c->captured);
	struct packet p;

	if (!frame)
		return -ENOMEM;
	packet_init(&p);
	memcpy(frame, p.dmac, 6);
	memcpy(frame + 6, p.smac, 6);
	if (tagged)
		memcpy(frame + 12, tag, sizeof(tag));
	memcpy(frame + header - 2, &c->ethertype_be, 2);
	memcpy(frame + header, data, c->captured);
	put_frame(o, c, frame, header + c->captured);
	return 0;
}

/* Data from behind the transport header on gets headers of the record's addresses. */
static int put_payload(const struct capture_out *o, const struct ax_capture *c, const uint8_t *data)
{
	autofree uint8_t *frame = NULL;
	struct packet p;
	size_t len;
	int r;

	packet_init(&p);
	if (c->vlan != AX_VLAN_NONE)
		p.tags[p.n_tags++] = (struct packet_tag){c->vlan, 0x8100};
	p.src = c->src;
	p.dst = c->dst;
	p.proto = c->proto;
	p.sport = ntohs(c->sport_be);
	p.dport = ntohs(c->dport_be);
	p.tcp_flags = c->tcp_flags;
	p.icmp_type = (uint8_t)(c->pad >> 8);
	p.icmp_code = (uint8_t)c->pad;
	p.fragment = (enum ax_fragment)c->fragment;
	p.data = (uint8_t *)(uintptr_t)data; /* only read */
	p.len = c->captured;
	r = packet_build(&p, &frame, &len);
	if (!r)
		put_frame(o, c, frame, len);
	return r;
}

int capture_put_pcap(struct capture_out *o, const struct ax_capture *c, const uint8_t *data)
{
	if (c->kind == AX_CAPTURE_LOG ||
	    (c->fragment == AX_FRAGMENT_LATER && c->data_off >= IP_DATA_MIN)) {
		o->left_out++;
		return 1;
	}
	if (!c->data_off) {
		put_frame(o, c, data, c->captured);
		return 0;
	}
	if (!capture_is_ip(c) || (!c->has_ports && c->data_off < IP_DATA_MIN))
		return put_network(o, c, data);
	return put_payload(o, c, data);
}
