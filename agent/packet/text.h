/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets as text: for asking what the rules do with one, and for showing one in a line. Free of
 * side effects.
 *
 *   PACKET: [vlan ID[:TPID]]... PROTO SRC[:PORT] > DST[:PORT] OPTION...
 *
 * PROTO is what a rule's `proto` takes (tcp, udp, icmp, icmp6, gre, 132 ...), or arp or nd (a
 * request of ARP, a neighbour solicitation: for the address behind the >). The first vlan is the
 * outermost; TPID is 8100 unless given (88a8, 9100). An IPv6 address has brackets when a port
 * follows. TCP and UDP need the destination's port; the source's is 40000 unless given.
 *
 *   flags syn,ack      of TCP: fin syn rst psh ack urg ece cwr, or none; syn unless given
 *   type T[/C]         of ICMP, as a rule's `icmp` has it; echo-request unless given
 *   quoting (PACKET)   of an ICMP error: what it is about. ICMP quotes the IP header and 8 bytes
 *                      more, ICMPv6 all of it
 *   reply              ARP: the answer to a request
 *   frag first         the first fragment of a datagram
 *   frag later[=N]     another one, at N bytes (a multiple of 8; 1480), which has no ports
 *   ttl N              time to live, hop limit: 64, and 255 for nd
 *   dscp D             of differentiated services, by name or number: cs0 unless given
 *   ecn E              not-ect, ect0, ect1 or ce: not-ect unless given
 *   data 'TEXT'        the payload. In it, \n \r \t \\ \' and \xNN stand for one byte
 *   data hex:0a0b0c    the same in hex
 *   len N              the payload's bytes: data is filled up with zeros
 *   mac A > B          the frame's source and destination, 02:00:00:00:00:01 > :02
 *
 *   udp 10.0.0.1:5 > 10.0.0.2:9000 data 'hello'
 *   vlan 100 tcp [fd00::1]:1024 > [fd00::2]:443 flags syn,ack
 *   icmp 10.0.0.9 > 10.0.0.1 type 3/4 quoting (tcp 10.0.0.1:80 > 10.0.0.2:1024)
 */
#ifndef AX_PACKET_TEXT_H
#define AX_PACKET_TEXT_H

#include "base/address.h"
#include "xdp.h"

#define PACKET_TAGS_MAX 16   /* more than what the dataplane takes, so that its limit can be seen */
#define PACKET_LEN_MAX	9216 /* of the payload */

/* What a packet has where its text says nothing. */
#define PACKET_PORT	    40000 /* the source's, of TCP and UDP */
#define PACKET_TTL	    64
#define PACKET_TPID	    0x8100 /* of a VLAN tag */
#define PACKET_LATER_OFFSET 1480   /* bytes, of a later fragment */

enum packet_kind { PACKET_IP, PACKET_ARP };

struct packet_tag {
	uint16_t id, tpid;
};
struct packet {
	enum packet_kind kind;
	uint8_t smac[6], dmac[6];
	struct packet_tag tags[PACKET_TAGS_MAX]; /* the first is the outermost */
	size_t n_tags;
	struct ax_addr src, dst; /* of one family */
	uint8_t proto;
	uint16_t sport, dport; /* host byte order */
	uint8_t tcp_flags;
	uint8_t icmp_type, icmp_code;
	bool reply;
	enum ax_fragment fragment;
	uint32_t offset; /* of a later fragment, in bytes */
	uint8_t ttl;
	uint8_t tos;   /* or traffic class */
	uint8_t *data; /* len bytes */
	size_t len;
	struct packet *quoted;
};

/* -EINVAL with a sentence that names the word which does not fit. */
int packet_parse(const char *text, struct packet *p, struct error *e);
void packet_free(struct packet *p);
/* All defaults, no addresses. */
void packet_init(struct packet *p);
/* The whole frame (malloc'ed), all checksums right. -ENOMEM, -EMSGSIZE (longer than IP allows). */
int packet_build(const struct packet *p, uint8_t **frame, size_t *len);

/* Both. -EINVAL with a sentence, also for a packet that is too long. */
int packet_text_parse(const char *text, uint8_t **frame, size_t *len, struct error *e);

/* Digits in pairs; white space, colons, dots, commas and 0x between them are skipped. */
int packet_parse_hex(const char *text, uint8_t **frame, size_t *len, struct error *e);

/* A frame, whatever it is, in one line of printable ASCII: where it can be, in the words above; in
 * parentheses stands what they cannot say. malloc'ed, NULL when memory is out. */
char *packet_line(const void *frame, size_t len, bool with_mac);

/* Between which ends a frame goes, of which the end may have been cut off. False: it is not IP. */
struct packet_ends {
	struct ax_addr src, dst;
	uint16_t sport, dport; /* host byte order */
	uint8_t proto;
	bool has_ports; /* of TCP and UDP, in reach */
};
bool packet_ends(const void *frame, size_t len, struct packet_ends *ret);

extern const char *const packet_flag_names[8]; /* of TCP, from bit 0 on */

#endif
