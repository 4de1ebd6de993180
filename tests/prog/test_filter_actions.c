// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* What rules turn packets into: reflect, redirect with and without rewriting, cpu. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>

#include "tests/lib/filter_judge.h"
#include "tests/lib/random.h"

#define BACK	     " mac 02:00:00:00:00:02 > 02:00:00:00:00:01"
#define A_BYTES	     "data 'an odd number of bytes!'"
#define RANDOM_TIMES 1000

/* --- reflect --- */

struct row {
	const char *name, *packet, *expected;
	enum ax_reason reason;
};

/* clang-format off */
static const struct row reflected[] = {
	{"UDP", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'ping'",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 data 'ping'" BACK, 0},
	{"UDP, an odd length", "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES,
	 "udp 10.0.0.2:9 > 10.0.0.1:5 " A_BYTES BACK, 0},
	{"UDP without data", "udp 10.0.0.1:5 > 10.0.0.2:9", "udp 10.0.0.2:9 > 10.0.0.1:5" BACK, 0},
	{"UDP on IPv6", "udp [fd00::1]:5 > [fd00::2]:9 " A_BYTES,
	 "udp [fd00::2]:9 > [fd00::1]:5 " A_BYTES BACK, 0},
	{"TCP", "tcp 10.0.0.1:5 > 10.0.0.2:9 flags syn,ack",
	 "tcp 10.0.0.2:9 > 10.0.0.1:5 flags syn,ack" BACK, 0},
	{"TCP on IPv6", "tcp [fd00::1]:5 > [fd00::2]:9 " A_BYTES,
	 "tcp [fd00::2]:9 > [fd00::1]:5 " A_BYTES BACK, 0},
	{"an echo request", "icmp 10.0.0.1 > 10.0.0.2 " A_BYTES,
	 "icmp 10.0.0.2 > 10.0.0.1 type 0 " A_BYTES BACK, 0},
	{"an echo request on IPv6", "icmp6 fd00::1 > fd00::2 " A_BYTES,
	 "icmp6 fd00::2 > fd00::1 type 129 " A_BYTES BACK, 0},
	{"another ICMP message", "icmp 10.0.0.1 > 10.0.0.2 type 13 data 'xxxxxxxxxxxx'",
	 "icmp 10.0.0.2 > 10.0.0.1 type 13 data 'xxxxxxxxxxxx'" BACK, 0},
	{"another protocol", "132 10.0.0.1 > 10.0.0.2 data 'xxxxxxxxxxxx'",
	 "132 10.0.0.2 > 10.0.0.1 data 'xxxxxxxxxxxx'" BACK, 0},
	{"another protocol without data", "gre fd00::1 > fd00::2", "gre fd00::2 > fd00::1" BACK, 0},
	{"a tag", "vlan 7 udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES,
	 "vlan 7 udp 10.0.0.2:9 > 10.0.0.1:5 " A_BYTES BACK, 0},
	{"three tags on IPv6", "vlan 7:88a8 vlan 8 vlan 9:9100 tcp [fd00::1]:5 > [fd00::2]:9",
	 "vlan 7:88a8 vlan 8 vlan 9:9100 tcp [fd00::2]:9 > [fd00::1]:5" BACK, 0},
	{"padding", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'x' | pad17",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 data 'x'" BACK " | pad17", 0},
	{"padding that is not zero", "tcp 10.0.0.1:5 > 10.0.0.2:9 | pad6 54=aabbccddeeff",
	 "tcp 10.0.0.2:9 > 10.0.0.1:5" BACK " | pad6 54=aabbccddeeff", 0},
	{"a checksum that a device was to complete", "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES
	 " | 40=1420", "udp 10.0.0.2:9 > 10.0.0.1:5 " A_BYTES BACK, 0},
	{"the same of TCP on IPv6", "tcp [fd00::1]:5 > [fd00::2]:9 " A_BYTES " | 70=fa31",
	 "tcp [fd00::2]:9 > [fd00::1]:5 " A_BYTES BACK, 0},
	{"the same of an echo request", "icmp6 fd00::1 > fd00::2 " A_BYTES " | 56=0000",
	 "icmp6 fd00::2 > fd00::1 type 129 " A_BYTES BACK, 0},
	{"no UDP checksum", "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES " | 40=0000",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 " A_BYTES BACK " | 40=0000", 0},
	{"no UDP checksum on IPv6, where there must be one", "udp [fd00::1]:5 > [fd00::2]:9 "
	 A_BYTES " | 60=0000", "udp [fd00::2]:9 > [fd00::1]:5 " A_BYTES BACK, 0},
	{"a first fragment", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'xxxxxxxx' frag first | 40=beef",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 data 'xxxxxxxx' frag first" BACK " | 40=beef", 0},
	{"a later fragment", "udp 10.0.0.1 > 10.0.0.2 frag later data 'abcdefgh'",
	 "udp 10.0.0.2 > 10.0.0.1 frag later data 'abcdefgh'" BACK, AX_REASON_LATER_FRAGMENT},
	{"a later fragment on IPv6", "tcp fd00::1 > fd00::2 frag later data 'abcdefgh'",
	 "tcp fd00::2 > fd00::1 frag later data 'abcdefgh'" BACK, AX_REASON_LATER_FRAGMENT},
	{"a datagram that ends before its packet", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'pong' | "
	 "40=0001 46+61626364 len sum",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 data 'pong'" BACK " | 46+61626364 len sum", 0},
	{"the same on IPv6", "udp [fd00::1]:5 > [fd00::2]:9 data 'pon' | 60=0001 65+616263 len",
	 "udp [fd00::2]:9 > [fd00::1]:5 data 'pon'" BACK " | 65+616263 len", 0},
	{"IPv4 options", "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES " | 14=46 34+01010101 44=0000 len sum",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 " A_BYTES BACK " | 14=46 34+01010101 44=0000 len sum",
	 AX_REASON_IP_OPTIONS},
	{"IPv4 options and a wrong checksum", "tcp 10.0.0.1:5 > 10.0.0.2:9 | 14=46 34+01010101 "
	 "54=1234 len sum",
	 "tcp 10.0.0.2:9 > 10.0.0.1:5" BACK " | 14=46 34+01010101 len sum", AX_REASON_IP_OPTIONS},
	{"an extension header", "udp [fd00::1]:5 > [fd00::2]:9 " A_BYTES " | 20=3c "
	 "54+1100000000000000 68=1234 len",
	 "udp [fd00::2]:9 > [fd00::1]:5 " A_BYTES BACK " | 20=3c 54+1100000000000000 len", 0},
	{"ARP", "arp 10.0.0.1 > 10.0.0.2 | pad18",
	 "arp 10.0.0.1 > 10.0.0.2 | pad18 0=020000000001ffffffffffff", 0},
	{"another ethertype", "udp 10.0.0.1:5 > 10.0.0.2:9 | 12=88cc",
	 "udp 10.0.0.1:5 > 10.0.0.2:9" BACK " | 12=88cc", 0},
	{"511 bytes", "udp 10.0.0.1:5 > 10.0.0.2:9 len 503 | 40=0001",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 len 503" BACK, 0},
	{"512 bytes", "udp 10.0.0.1:5 > 10.0.0.2:9 data 'abc' len 504 | 40=0001",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 data 'abc' len 504" BACK, 0},
	{"513 bytes", "udp 10.0.0.1:5 > 10.0.0.2:9 len 505 | 40=0001",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 len 505" BACK, 0},
	{"1500 bytes", "tcp [fd00::1]:5 > [fd00::2]:9 data '123' len 1440 | 70=0001",
	 "tcp [fd00::2]:9 > [fd00::1]:5 data '123' len 1440" BACK, 0},
	{"a frame of two buffers", "udp 10.0.0.1:5 > 10.0.0.2:9 data '123' len 4001 | 40=0001",
	 "udp 10.0.0.2:9 > 10.0.0.1:5 data '123' len 4001" BACK, 0},
	{"9000 bytes of TCP", "tcp 10.0.0.1:5 > 10.0.0.2:9 data '123' len 8960 | 50=0001",
	 "tcp 10.0.0.2:9 > 10.0.0.1:5 data '123' len 8960" BACK, 0},
	{"9000 bytes of UDP on IPv6", "udp [fd00::1]:5 > [fd00::2]:9 data '123' len 8952 | 60=1234",
	 "udp [fd00::2]:9 > [fd00::1]:5 data '123' len 8952" BACK, 0},
};
/* clang-format on */

static void test_reflected(void **state)
{
	const struct row *row = *state;
	const struct expect x = {.action = XDP_TX,
				 .verdict = AX_VERDICT_REFLECT,
				 .rule = "back",
				 .reason = row->reason};

	filter_load_once("rules: [{name: back, action: reflect}]\n");
	judge_turns(row->packet, &x, row->expected);
}

/* A checksum of 0 says that there is none, so what comes out as 0 is written as 0xffff. */
static void a_udp_checksum_of_0(void **state)
{
	struct frame_bytes f;
	char packet[100], expected[200];

	(void)state;
	filter_load_once("rules: [{name: back, action: reflect}]\n");
	read_frame("udp 10.0.0.1:5 > 10.0.0.2:9 data hex:0000", &f);
	snprintf(packet, sizeof(packet), "udp 10.0.0.1:5 > 10.0.0.2:9 data hex:%02x%02x", f.b[40],
		 f.b[41]);
	read_frame(packet, &f);
	assert_memory_equal(f.b + 40, "\xff\xff", 2);
	snprintf(expected, sizeof(expected), "udp 10.0.0.2:9 > 10.0.0.1:5 data hex:%02x%02x" BACK,
		 f.b[42], f.b[43]);
	judge_turns(
		packet,
		&(struct expect){.action = XDP_TX, .verdict = AX_VERDICT_REFLECT, .rule = "back"},
		expected);
}

/* --- redirect --- */

struct redirect_row {
	const char *name, *rule, *packet;
	const char *expected; /* NULL: it cannot be rewritten */
	enum ax_reason reason;
};

/* clang-format off */
#define TO4 "to: 192.0.2.7"
#define TO6 "to: '2001:db8::7'"
static const struct redirect_row redirected[] = {
	{"as it is", "", "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES,
	 "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES, 0},
	{"as it is, whatever it is", "", "arp 10.0.0.1 > 10.0.0.2 | pad18",
	 "arp 10.0.0.1 > 10.0.0.2 | pad18", 0},
	{"as it is, with a wrong checksum", "", "udp 10.0.0.1:5 > 10.0.0.2:9 | 40=1234",
	 "udp 10.0.0.1:5 > 10.0.0.2:9 | 40=1234", 0},
	{"smac and dmac", "smac: 02:00:00:00:00:0a, dmac: 02:00:00:00:00:0b",
	 "arp 10.0.0.1 > 10.0.0.2", "arp 10.0.0.1 > 10.0.0.2 | 0=02000000000b02000000000a", 0},
	{"dmac alone", "dmac: 02:00:00:00:00:0b", "vlan 5 tcp [fd00::1]:5 > [fd00::2]:9",
	 "vlan 5 tcp [fd00::1]:5 > [fd00::2]:9 mac 02:00:00:00:00:01 > 02:00:00:00:00:0b", 0},
	{"smac alone", "smac: 02:00:00:00:00:0a", "gre 10.0.0.1 > 10.0.0.2",
	 "gre 10.0.0.1 > 10.0.0.2 mac 02:00:00:00:00:0a > 02:00:00:00:00:02", 0},
	{"to, UDP", TO4, "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES,
	 "udp 10.0.0.1:5 > 192.0.2.7:9 " A_BYTES, 0},
	{"to, TCP", TO4, "tcp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES,
	 "tcp 10.0.0.1:5 > 192.0.2.7:9 " A_BYTES, 0},
	{"to, ICMP", TO4, "icmp 10.0.0.1 > 10.0.0.2 " A_BYTES, "icmp 10.0.0.1 > 192.0.2.7 " A_BYTES, 0},
	{"to, another protocol", TO4, "132 10.0.0.1 > 10.0.0.2 " A_BYTES,
	 "132 10.0.0.1 > 192.0.2.7 " A_BYTES, 0},
	{"to, a first fragment", TO4, "udp 10.0.0.1:5 > 10.0.0.2:9 frag first " A_BYTES,
	 "udp 10.0.0.1:5 > 192.0.2.7:9 frag first " A_BYTES, 0},
	{"to, a later fragment", TO4, "udp 10.0.0.1 > 10.0.0.2 frag later " A_BYTES,
	 "udp 10.0.0.1 > 192.0.2.7 frag later " A_BYTES, AX_REASON_LATER_FRAGMENT},
	{"to, two tags", TO4, "vlan 3:88a8 vlan 4 udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES,
	 "vlan 3:88a8 vlan 4 udp 10.0.0.1:5 > 192.0.2.7:9 " A_BYTES, 0},
	{"to, IPv4 options", TO4, "tcp 10.0.0.1:5 > 10.0.0.2:9 | 14=46 34+01010101 len sum",
	 "tcp 10.0.0.1:5 > 192.0.2.7:9 | 14=46 34+01010101 len sum", AX_REASON_IP_OPTIONS},
	{"to, no UDP checksum", TO4, "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES " | 40=0000",
	 "udp 10.0.0.1:5 > 192.0.2.7:9 " A_BYTES " | 40=0000", 0},
	{"to, padding", TO4, "udp 10.0.0.1:5 > 10.0.0.2:9 | pad18 42=ff",
	 "udp 10.0.0.1:5 > 192.0.2.7:9 | pad18 42=ff", 0},
	{"to, 9000 bytes", TO4, "udp 10.0.0.1:5 > 10.0.0.2:9 len 8972",
	 "udp 10.0.0.1:5 > 192.0.2.7:9 len 8972", 0},
	{"to, UDP on IPv6", TO6, "udp [fd00::1]:5 > [fd00::2]:9 " A_BYTES,
	 "udp [fd00::1]:5 > [2001:db8::7]:9 " A_BYTES, 0},
	{"to, TCP on IPv6", TO6, "vlan 8 tcp [fd00::1]:5 > [fd00::2]:9 " A_BYTES,
	 "vlan 8 tcp [fd00::1]:5 > [2001:db8::7]:9 " A_BYTES, 0},
	{"to, ICMPv6", TO6, "icmp6 fd00::1 > fd00::2 " A_BYTES,
	 "icmp6 fd00::1 > 2001:db8::7 " A_BYTES, 0},
	{"to, a first fragment on IPv6", TO6, "tcp [fd00::1]:5 > [fd00::2]:9 frag first " A_BYTES,
	 "tcp [fd00::1]:5 > [2001:db8::7]:9 frag first " A_BYTES, 0},
	{"to, a later fragment on IPv6", TO6, "tcp fd00::1 > fd00::2 frag later " A_BYTES,
	 "tcp fd00::1 > 2001:db8::7 frag later " A_BYTES, AX_REASON_LATER_FRAGMENT},
	{"to, an extension header", TO6, "udp [fd00::1]:5 > [fd00::2]:9 " A_BYTES " | 20=3c "
	 "54+1100000000000000 len",
	 "udp [fd00::1]:5 > [2001:db8::7]:9 " A_BYTES " | 20=3c 54+1100000000000000 len", 0},
	{"to-port", "to-port: 8053", "udp 10.0.0.1:5 > 10.0.0.2:53 " A_BYTES,
	 "udp 10.0.0.1:5 > 10.0.0.2:8053 " A_BYTES, 0},
	{"to-port, TCP on IPv6", "to-port: 65535", "tcp [fd00::1]:5 > [fd00::2]:53 " A_BYTES,
	 "tcp [fd00::1]:5 > [fd00::2]:65535 " A_BYTES, 0},
	{"to-port, no UDP checksum", "to-port: 8053", "udp 10.0.0.1:5 > 10.0.0.2:53 | 40=0000",
	 "udp 10.0.0.1:5 > 10.0.0.2:8053 | 40=0000", 0},
	{"to-port, a first fragment", "to-port: 1", "udp 10.0.0.1:5 > 10.0.0.2:9 frag first",
	 "udp 10.0.0.1:5 > 10.0.0.2:1 frag first", 0},
	{"to-port, a later fragment", "to-port: 1", "udp 10.0.0.1 > 10.0.0.2 frag later " A_BYTES,
	 "udp 10.0.0.1 > 10.0.0.2 frag later " A_BYTES, AX_REASON_LATER_FRAGMENT},
	{"everything", TO6 ", to-port: 443, smac: 02:00:00:00:00:0a, dmac: 02:00:00:00:00:0b",
	 "tcp [fd00::1]:5 > [fd00::2]:80 " A_BYTES,
	 "tcp [fd00::1]:5 > [2001:db8::7]:443 " A_BYTES " mac 02:00:00:00:00:0a > 02:00:00:00:00:0b", 0},
	{"everything, IPv4", TO4 ", to-port: 443, smac: 02:00:00:00:00:0a, dmac: 02:00:00:00:00:0b",
	 "udp 10.0.0.1:5 > 10.0.0.2:80 " A_BYTES,
	 "udp 10.0.0.1:5 > 192.0.2.7:443 " A_BYTES " mac 02:00:00:00:00:0a > 02:00:00:00:00:0b", 0},
	{"recompute", "checksum: recompute", "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES " | 40=1420",
	 "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES, 0},
	{"recompute, TCP on IPv6", "checksum: recompute", "tcp [fd00::1]:5 > [fd00::2]:9 " A_BYTES
	 " | 70=0000", "tcp [fd00::1]:5 > [fd00::2]:9 " A_BYTES, 0},
	{"recompute, ICMP", "checksum: recompute", "icmp 10.0.0.1 > 10.0.0.2 " A_BYTES " | 36=9999",
	 "icmp 10.0.0.1 > 10.0.0.2 " A_BYTES, 0},
	{"recompute, a first fragment", "checksum: recompute",
	 "udp 10.0.0.1:5 > 10.0.0.2:9 frag first " A_BYTES " | 40=1234",
	 "udp 10.0.0.1:5 > 10.0.0.2:9 frag first " A_BYTES " | 40=1234", 0},
	{"recompute, ARP", "checksum: recompute", "arp 10.0.0.1 > 10.0.0.2",
	 "arp 10.0.0.1 > 10.0.0.2", 0},
	{"recompute, padding", "checksum: recompute", "tcp 10.0.0.1:5 > 10.0.0.2:9 | pad6 54=ff",
	 "tcp 10.0.0.1:5 > 10.0.0.2:9 | pad6 54=ff", 0},
	{"recompute and rewrite", "checksum: recompute, " TO4 ", to-port: 3",
	 "tcp 10.0.0.1:5 > 10.0.0.2:9 data '123' len 4001 | 50=1234",
	 "tcp 10.0.0.1:5 > 192.0.2.7:3 data '123' len 4001", 0},
	{"recompute and rewrite on IPv6", "checksum: recompute, " TO6,
	 "udp [fd00::1]:5 > [fd00::2]:9 data '123' len 1001 | 60=0000",
	 "udp [fd00::1]:5 > [2001:db8::7]:9 data '123' len 1001", 0},

	{"to, the other family", TO4 ", dmac: 02:00:00:00:00:0b", "udp [fd00::1]:5 > [fd00::2]:9",
	 NULL, 0},
	{"to, the other family again", TO6, "udp 10.0.0.1:5 > 10.0.0.2:9", NULL, 0},
	{"to, ARP", TO4, "arp 10.0.0.1 > 10.0.0.2", NULL, 0},
	{"to-port, ICMP", "to-port: 80", "icmp 10.0.0.1 > 10.0.0.2", NULL, 0},
	{"to-port, ARP", "to-port: 80", "arp 10.0.0.1 > 10.0.0.2", NULL, 0},
	{"to-port, another protocol", "to-port: 80", "gre fd00::1 > fd00::2", NULL, 0},
	{"to, a later fragment of the other family", TO4, "udp fd00::1 > fd00::2 frag later", NULL,
	 AX_REASON_LATER_FRAGMENT},
};
/* clang-format on */

static void load_redirect(const char *rule)
{
	char list[300];

	snprintf(list, sizeof(list), "rules: [{name: go, action: redirect " TARGET "%s%s}]\n",
		 *rule ? ", " : "", rule);
	filter_load_once(list);
}

static void test_redirected(void **state)
{
	const struct redirect_row *row = *state;
	struct expect x = {.action = XDP_REDIRECT,
			   .verdict = AX_VERDICT_REDIRECT,
			   .rule = "go",
			   .reason = row->reason};

	load_redirect(row->rule);
	if (row->expected) {
		judge_turns(row->packet, &x, row->expected);
		return;
	}
	x.action = XDP_DROP;
	x.also = row->reason;
	x.reason = AX_REASON_REWRITE_FAILED;
	judge(row->packet, &x);
}

/* What is changed in a checksum is what computing it anew gives, whatever the addresses are. */
static void check_changed(bool v6)
{
	static const char *const protos[] = {"udp", "tcp"};
	const char *proto = protos[random_number() % 2];
	unsigned a = random_number() % 224, b = random_number() & 0xff, c = random_number() & 0xff,
		 port = random_number() & 0xffff;
	struct frame_bytes f, out, want;
	char spec[200], end[60];

	snprintf(end, sizeof(end), "data hex:%08x len %u", random_number(),
		 4 + random_number() % 60);
	snprintf(spec, sizeof(spec),
		 v6 ? "%s [fd00::%x]:5 > [fd%02x:%x::1]:%u %s"
		    : "%s 10.0.0.%u:5 > 10.%u.%u.2:%u %s",
		 proto, a, b, c, port, end);
	read_frame(spec, &f);
	assert_int_equal(filter_run_frame(filter.g.prog, &f, &out), XDP_REDIRECT);
	snprintf(spec, sizeof(spec),
		 v6 ? "%s [fd00::%x]:5 > [2001:db8::7]:443 %s"
		    : "%s 10.0.0.%u:5 > 192.0.2.7:443 %s",
		 proto, a, end);
	read_frame(spec, &want);
	assert_same_frame(spec, &out, &want);
}

static void changed_checksums(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		load_redirect(v6 ? TO6 ", to-port: 443" : TO4 ", to-port: 443");
		for (int i = 0; i < RANDOM_TIMES; i++)
			check_changed(v6);
	}
}

/* Changed to 0, it is written as 0xffff too. */
static void changed_to_0(void **state)
{
	static const struct expect x = {
		.action = XDP_REDIRECT, .verdict = AX_VERDICT_REDIRECT, .rule = "go"};
	static const struct {
		const char *to, *before, *after;
		size_t check;
	} families[] = {
		{TO4, "udp 10.0.0.1:5 > 10.0.0.2:9", "udp 10.0.0.1:5 > 192.0.2.7:443", 40},
		{TO6, "udp [fd00::1]:5 > [fd00::2]:9", "udp [fd00::1]:5 > [2001:db8::7]:443", 60},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		char rule[60], packet[100], expected[100], end[40];
		struct frame_bytes f;

		snprintf(rule, sizeof(rule), "%s, to-port: 443", families[i].to);
		load_redirect(rule);
		snprintf(expected, sizeof(expected), "%s data hex:0000", families[i].after);
		read_frame(expected, &f);
		snprintf(end, sizeof(end), "data hex:%02x%02x", f.b[families[i].check],
			 f.b[families[i].check + 1]);
		snprintf(packet, sizeof(packet), "%s %s", families[i].before, end);
		snprintf(expected, sizeof(expected), "%s %s", families[i].after, end);
		read_frame(expected, &f);
		assert_memory_equal(f.b + families[i].check, "\xff\xff", 2);
		judge_turns(packet, &x, expected);
	}
}

/* --- to a CPU --- */

static void to_a_cpu(void **state)
{
	const struct expect x = {
		.action = XDP_REDIRECT, .verdict = AX_VERDICT_CPU, .rule = "spread"};
	static const char packet[] = "udp 10.0.0.1:5 > 10.0.0.2:9 " A_BYTES " | 40=1234";
	static const char list[] = "rules: [{name: spread, proto: udp, action: cpu %d}]\n";
	const struct xdp_load_options o = {.force = true};
	struct error e;
	char text[100];

	(void)state;
	snprintf(text, sizeof(text), list, 0);
	filter_load_once(text);
	judge_turns(packet, &x, packet);
	judge("tcp 10.0.0.1:5 > 10.0.0.2:9", &(struct expect)BY_PASS("default"));
	snprintf(text, sizeof(text), list, 8000);
	assert_int_equal(filter_try_load(text, &o, &e), -EINVAL);
	assert_non_null(strstr(e.text, "rule 1 redirects to CPU 8000: there is no such CPU"));
	judge_turns(packet, &x, packet);
}

static size_t add_rows(struct CMUnitTest *tests, char (*names)[100], size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(reflected); i++, n++) {
		snprintf(names[n], sizeof(names[n]), "reflect: %s", reflected[i].name);
		tests[n] = (struct CMUnitTest){.name = names[n],
					       .test_func = test_reflected,
					       .initial_state = (void *)(uintptr_t)&reflected[i]};
	}
	for (size_t i = 0; i < ARRAY_SIZE(redirected); i++, n++) {
		snprintf(names[n], sizeof(names[n]), "redirect: %s", redirected[i].name);
		tests[n] = (struct CMUnitTest){.name = names[n],
					       .test_func = test_redirected,
					       .initial_state = (void *)(uintptr_t)&redirected[i]};
	}
	return n;
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_SIZE(reflected) + ARRAY_SIZE(redirected) + 4];
	static char names[ARRAY_SIZE(tests)][100];
	size_t n = add_rows(tests, names, 0);

	tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_udp_checksum_of_0);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(changed_checksums);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(changed_to_0);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(to_a_cpu);
	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
