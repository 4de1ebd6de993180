// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* What other filters misread: each odd packet under a list of what is blocked and under one of what
 * is allowed, and each class of odd packets with each policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>

#include "tests/lib/filter_judge.h"
#include "tests/lib/quick.h"

#define BLOCK_LIST "rules: [{name: block, dport: 9999, action: drop}]\n"
#define ALLOW_LIST "default: drop\nrules: [{name: allow, dport: 53, action: pass}]\n"

/* PORT in a packet is the port that the list knows, QUAD the same in hex. */
static void with_port(const char *packet, unsigned port, char *ret, size_t size)
{
	size_t n = 0;

	while (*packet && n + 8 < size) {
		if (starts_with(packet, "PORT")) {
			n += (size_t)snprintf(ret + n, size - n, "%u", port);
			packet += 4;
		} else if (starts_with(packet, "QUAD")) {
			n += (size_t)snprintf(ret + n, size - n, "%04x", port);
			packet += 4;
		} else {
			ret[n++] = *packet++;
		}
	}
	assert_true(!*packet);
	ret[n] = '\0';
}

struct row {
	const char *name, *packet;
	struct expect block, allow;
};

/* clang-format off */
#define FOUND	   BY_DROP("block"), BY_PASS("allow")
#define FOUND_AS(why) ODD(DROP, "block", why), ODD(PASS, "allow", why)
#define OTHER	   BY_PASS("default"), BY_DROP("default")
#define OTHER_AS(why) ODD(PASS, "default", why), ODD(DROP, "default", why)
#define BOTH(why)  POLICY(DROP, why), POLICY(DROP, why)
#define NEEDED(why) BY_PASS("default"), LET_THROUGH(why)

#define UDP4 "udp 10.0.0.1:5 > 10.0.0.2:PORT data 'hello'"
#define TCP4 "tcp 10.0.0.1:5 > 10.0.0.2:PORT"
#define UDP6 "udp [fd00::1]:5 > [fd00::2]:PORT data 'hello'"
#define TCP6 "tcp [fd00::1]:5 > [fd00::2]:PORT"
/* extension headers of 8 bytes: destination options in front of others, and of UDP */
#define DEST	 "54+3c00000000000000 "
#define DEST_UDP " | 20=3c 54+1100000000000000 "
#define ZEROS_22  "00000000000000000000000000000000000000000000"
#define ZEROS_176 ZEROS_22 ZEROS_22 ZEROS_22 ZEROS_22 ZEROS_22 ZEROS_22 ZEROS_22 ZEROS_22
#define IPV4_TO(proto) "450000000000000040" proto "00000a0000090a00000a"
#define IPV6_TO(proto) "6000000000000000" "fd000000000000000000000000000009" \
		       "fd00000000000000000000000000000a"

static const struct row rows[] = {
	{"UDP", UDP4, FOUND},
	{"TCP", TCP4, FOUND},
	{"UDP on IPv6", UDP6, FOUND},
	{"TCP on IPv6", TCP6, FOUND},
	{"UDP, another port", "udp 10.0.0.1:PORT > 10.0.0.2:5", OTHER},
	{"a payload of nothing", "udp 10.0.0.1:5 > 10.0.0.2:PORT", FOUND},
	{"padding to 60 bytes", UDP4 " | pad13", FOUND},
	{"IPv4 options", UDP4 " | 14=46 34+01010101 len", FOUND_AS(AX_REASON_IP_OPTIONS)},
	{"40 bytes of IPv4 options", UDP4 " | 14=4f 34+01010101010101010101010101010101010101010101"
	 "010101010101010101010101010101010101 len", FOUND_AS(AX_REASON_IP_OPTIONS)},
	{"a first fragment", UDP4 " frag first", FOUND},
	{"a first fragment on IPv6", UDP6 " frag first", FOUND},
	{"do not fragment", UDP4 " | 20=4000", FOUND},
	{"one tag", "vlan 100 " UDP4, FOUND},
	{"two tags", "vlan 100:88a8 vlan 200 " UDP4, FOUND},
	{"two tags of 9100", "vlan 100:9100 vlan 200:9100 " UDP6, FOUND},
	{"four tags", "vlan 1 vlan 2 vlan 3 vlan 4 " TCP4, FOUND},
	{"five tags", "vlan 1 vlan 2 vlan 3 vlan 4 vlan 5 " UDP4, FOUND},
	{"eight tags", "vlan 1 vlan 2 vlan 3 vlan 4 vlan 5 vlan 6 vlan 7 vlan 8 " TCP6, FOUND},
	{"nine tags", "vlan 1 vlan 2 vlan 3 vlan 4 vlan 5 vlan 6 vlan 7 vlan 8 vlan 9 " UDP4,
	 BOTH(AX_REASON_TOO_MANY_TAGS)},
	{"nine tags of 9100 and nothing", "vlan 1:9100 vlan 2:9100 vlan 3:9100 vlan 4:9100 "
	 "vlan 5:9100 vlan 6:9100 vlan 7:9100 vlan 8:9100 vlan 9:9100 " UDP4 " | cut50",
	 BOTH(AX_REASON_TOO_MANY_TAGS)},
	{"one extension header", UDP6 DEST_UDP "len", FOUND},
	{"five extension headers", UDP6 DEST_UDP DEST DEST DEST DEST "len", FOUND},
	{"eight extension headers", UDP6 DEST_UDP DEST DEST DEST DEST DEST DEST DEST "len", FOUND},
	{"nine extension headers", UDP6 DEST_UDP DEST DEST DEST DEST DEST DEST DEST DEST "len",
	 BOTH(AX_REASON_TOO_MANY_HEADERS)},
	{"a hop-by-hop header of 24 bytes", UDP6 " | 20=00 54+1102000000000000000000000000000000000000000000"
	 "00 len", FOUND},
	{"an authentication header", UDP6 " | 20=33 54+110400000000000100000001aabbccddeeff0011"
	 "22334455 len", FOUND},
	{"a routing header", UDP6 " | 20=2b 54+1102000100000000fd0000000000000000000000000000ff "
	 "len", FOUND},
	{"extension headers that are cut off", UDP6 " | 20=3c 54+1100000000000000 cut58 len",
	 BOTH(AX_REASON_TOO_MANY_HEADERS)},
	{"an extension header longer than the packet", UDP6 " | 20=3c 54+11f0000000000000 len",
	 BOTH(AX_REASON_BAD_LENGTH)},
	{"one behind it", UDP6 " | 20=3c 54+3cf0000000000000 len",
	 BOTH(AX_REASON_TOO_MANY_HEADERS)},
	{"no next header", UDP6 " | 20=3b", OTHER},
	{"UDP in IPv4 in IPv4", UDP4 " | 14+" IPV4_TO("04") " len sum", OTHER_AS(AX_REASON_TUNNEL)},
	{"UDP in IPv6 in IPv4", UDP6 " | 12=0800 14+" IPV4_TO("29") " len sum", OTHER_AS(AX_REASON_TUNNEL)},
	{"UDP in IPv4 in IPv6", UDP4 " | 12=86dd 14+6000000000000440"
	 "fd000000000000000000000000000009fd00000000000000000000000000000a len 20=0440",
	 OTHER_AS(AX_REASON_TUNNEL)},
	{"UDP in IPv6 in IPv6", UDP6 " | 14+6000000000002940"
	 "fd000000000000000000000000000009fd00000000000000000000000000000a len 20=2940",
	 OTHER_AS(AX_REASON_TUNNEL)},
	{"GRE", "gre 10.0.0.1 > 10.0.0.2 data hex:0000080045000005QUAD", OTHER},
	{"a later fragment that looks like it", "udp 10.0.0.1 > 10.0.0.2 frag later "
	 "data hex:0005QUAD000800000000", OTHER_AS(AX_REASON_LATER_FRAGMENT)},
	{"a later fragment on IPv6 that looks like it", "udp fd00::1 > fd00::2 frag later "
	 "data hex:0005QUAD000800000000", OTHER_AS(AX_REASON_LATER_FRAGMENT)},
	{"a later fragment with options", "udp 10.0.0.1 > 10.0.0.2 frag later "
	 "data hex:0005QUAD000800000000 | 14=46 34+01010101 len", OTHER_AS(AX_REASON_LATER_FRAGMENT)},
	{"a whole datagram in a fragment header", UDP6 " | 20=2c 54+1100000000000001 len", FOUND},
	{"an IP length of the header's", UDP4 " | 16=0014", BOTH(AX_REASON_SHORT_L4)},
	{"an IP length within the UDP header", UDP4 " | 16=001b", BOTH(AX_REASON_SHORT_L4)},
	{"an IP length within the TCP header", TCP4 " | 16=0027", BOTH(AX_REASON_SHORT_L4)},
	{"an IP length below the header's", UDP4 " | 16=0013", BOTH(AX_REASON_BAD_LENGTH)},
	{"an IP length of 0", UDP4 " | 16=0000", BOTH(AX_REASON_BAD_LENGTH)},
	{"an IP length above the frame's", UDP4 " | 16=0022", BOTH(AX_REASON_BAD_LENGTH)},
	{"an IPv6 length of 0", UDP6 " | 18=0000", BOTH(AX_REASON_SHORT_L4)},
	{"an IPv6 length above the frame's", UDP6 " | 18=000e", BOTH(AX_REASON_BAD_LENGTH)},
	{"an IPv6 length within the extension headers", UDP6 DEST_UDP "len 18=0007",
	 BOTH(AX_REASON_BAD_LENGTH)},
	{"version 6 under IPv4's ethertype", UDP4 " | 14=65", BOTH(AX_REASON_BAD_VERSION)},
	{"version 4 under IPv6's ethertype", UDP6 " | 14=40", BOTH(AX_REASON_BAD_VERSION)},
	{"version 0", UDP4 " | 14=05", BOTH(AX_REASON_BAD_VERSION)},
	{"a header length of 16", UDP4 " | 14=44", BOTH(AX_REASON_BAD_HEADER)},
	{"a header length above the frame's", "udp 10.0.0.1:5 > 10.0.0.2:PORT | 14=4f",
	 BOTH(AX_REASON_BAD_HEADER)},
	{"a UDP length of 7", UDP4 " | 38=0007", BOTH(AX_REASON_BAD_UDP)},
	{"a UDP length of 0", UDP4 " | 38=0000", BOTH(AX_REASON_BAD_UDP)},
	{"a UDP length above the packet's", UDP4 " | 38=000e", BOTH(AX_REASON_BAD_UDP)},
	{"a UDP length below the packet's", UDP4 " | 38=0008", FOUND},
	{"a UDP length below 8 on IPv6", UDP6 " | 58=0007", BOTH(AX_REASON_BAD_UDP)},
	{"a UDP length of a first fragment", UDP4 " frag first | 38=0700", FOUND},
	{"a TCP header length of 16", TCP4 " | 46=40", BOTH(AX_REASON_BAD_TCP)},
	{"a TCP header longer than the packet", TCP4 " | 46=60", BOTH(AX_REASON_BAD_TCP)},
	{"a TCP header with options", TCP4 " | 46=60 54+01010101 len", FOUND},
	{"a TCP header that ends early", TCP4 " | cut50 len", BOTH(AX_REASON_SHORT_L4)},
	{"a TCP header that ends early, on IPv6", TCP6 " | cut70 len", BOTH(AX_REASON_SHORT_L4)},
	{"a first fragment without all of TCP's header", TCP4 " frag first | cut50 len",
	 BOTH(AX_REASON_SHORT_FRAGMENT)},
	{"a first fragment without all of UDP's header", UDP4 " frag first | cut40 len",
	 BOTH(AX_REASON_SHORT_FRAGMENT)},
	{"a later fragment that overwrites TCP's flags", "tcp 10.0.0.1 > 10.0.0.2 frag later=8 "
	 "data 'xxxxxxxx'", BOTH(AX_REASON_SHORT_FRAGMENT)},
	{"the same on IPv6", "tcp fd00::1 > fd00::2 frag later=8 data 'xxxxxxxx'",
	 BOTH(AX_REASON_SHORT_FRAGMENT)},
	{"one that overwrites TCP's checksum", "tcp 10.0.0.1 > 10.0.0.2 frag later=16 "
	 "data 'xxxxxxxx'", BOTH(AX_REASON_SHORT_FRAGMENT)},
	{"that on IPv6", "tcp fd00::1 > fd00::2 frag later=16 data 'xxxxxxxx'",
	 BOTH(AX_REASON_SHORT_FRAGMENT)},
	{"one behind TCP's header", "tcp 10.0.0.1 > 10.0.0.2 frag later=24 data 'xxxxxxxx'",
	 OTHER_AS(AX_REASON_LATER_FRAGMENT)},
	{"that on IPv6, too", "tcp fd00::1 > fd00::2 frag later=24 data 'xxxxxxxx'",
	 OTHER_AS(AX_REASON_LATER_FRAGMENT)},
	{"nothing but an Ethernet header", UDP4 " | cut14", BOTH(AX_REASON_RUNT)},
	{"an IPv4 header that ends early", UDP4 " | cut33", BOTH(AX_REASON_RUNT)},
	{"an IPv6 header that ends early", UDP6 " | cut53", BOTH(AX_REASON_RUNT)},
	{"a tag that ends early", "vlan 100 " UDP4 " | cut17", BOTH(AX_REASON_RUNT)},
	{"a mapped source", UDP6 " | 22=00000000000000000000ffff0a000001", BOTH(AX_REASON_MAPPED_ADDRESS)},
	{"a mapped destination", UDP6 " | 38=00000000000000000000ffff0a000002",
	 BOTH(AX_REASON_MAPPED_ADDRESS)},
	{"ARP", "arp 10.0.0.1 > 10.0.0.2", NEEDED(AX_REASON_ARP)},
	{"ARP behind a tag", "vlan 7 arp 10.0.0.1 > 10.0.0.2 reply", NEEDED(AX_REASON_ARP)},
	{"a neighbour solicitation", "nd fe80::1 > fe80::2", NEEDED(AX_REASON_NEIGHBOUR)},
	{"ICMP: fragmentation needed, about that flow", "icmp 10.0.0.9 > 10.0.0.2 type 3/4 "
	 "quoting (udp 10.0.0.2:PORT > 10.0.0.1:5)", BY_PASS("default"), LET_THROUGH(AX_REASON_ICMP_ERROR)},
	{"ICMP: fragmentation needed, about another flow", "icmp 10.0.0.9 > 10.0.0.2 type 3/4 "
	 "quoting (udp 10.0.0.2:54 > 10.0.0.1:PORT)", OTHER},
	{"ICMPv6: too big, about that flow", "icmp6 fd00::9 > fd00::2 type 2/0 "
	 "quoting (tcp [fd00::2]:PORT > [fd00::1]:5)", BY_PASS("default"), LET_THROUGH(AX_REASON_ICMP_ERROR)},
	{"one behind 184 bytes of extension headers", "icmp6 fd00::9 > fd00::2 type 2/0 "
	 "quoting (tcp [fd00::2]:PORT > [fd00::1]:5) | 20=3c 54+3a16" ZEROS_176 "000000000000 len",
	 BY_PASS("default"), LET_THROUGH(AX_REASON_ICMP_ERROR)},
	/* its distance from the frame's start does not fit into a byte, and was cut to one */
	{"one behind 200", "icmp6 fd00::9 > fd00::2 type 2/0 "
	 "quoting (tcp [fd00::2]:PORT > [fd00::1]:5) | 20=3c 54+3a18" ZEROS_176 ZEROS_22 " len", OTHER},
	{"another ethertype", UDP4 " | 12=88cc", OTHER},
	{"an LLC frame", UDP4 " | 12=0026", OTHER},
	{"ICMP under IPv6", "icmp6 fd00::1 > fd00::2 | 20=01", OTHER},
	{"SCTP with such ports", "132 10.0.0.1 > 10.0.0.2 data hex:0005QUAD0000000000000000",
	 OTHER},
};
/* clang-format on */

static void test_row(const struct row *row, const char *list, unsigned port, const struct expect *x)
{
	char packet[600];

	with_port(row->packet, port, packet, sizeof(packet));
	filter_load_once(list);
	judge(packet, x);
}

static void test_block(void **state)
{
	const struct row *row = *state;

	test_row(row, BLOCK_LIST, 9999, &row->block);
}

static void test_allow(void **state)
{
	const struct row *row = *state;

	test_row(row, ALLOW_LIST, 53, &row->allow);
}

/* --- each class with each policy --- */

struct class_row {
	enum ax_reason reason;
	const char *packet;
	const char *rule; /* what the rules make of it */
};

#define CLASS_RULES                                                           \
	"rules: [{name: port, dport: 9999, action: pass},\n"                  \
	"        {name: net, src: [10.0.0.0/8, 'fd00::/8'], action: drop},\n" \
	"        {name: rest, length: 0-, action: pass}]\n"

static const struct class_row classes[] = {
	{AX_REASON_RUNT, "udp 10.0.0.1:5 > 10.0.0.2:9999 | cut33", "rest"},
	{AX_REASON_TOO_MANY_TAGS,
	 "vlan 1 vlan 2 vlan 3 vlan 4 vlan 5 vlan 6 vlan 7 vlan 8 vlan 9 udp 10.0.0.1:5 > "
	 "10.0.0.2:9999",
	 "rest"},
	{AX_REASON_BAD_VERSION, "udp 10.0.0.1:5 > 10.0.0.2:9999 | 14=65", "net"},
	{AX_REASON_BAD_HEADER, "udp 10.0.0.1:5 > 10.0.0.2:9999 | 14=44", "net"},
	{AX_REASON_BAD_LENGTH, "udp 10.0.0.1:5 > 10.0.0.2:9999 | 16=0030", "net"},
	{AX_REASON_MAPPED_ADDRESS,
	 "udp [fd00::1]:5 > [fd00::2]:9999 | 38=00000000000000000000ffff0a000002", "net"},
	{AX_REASON_TOO_MANY_HEADERS,
	 "udp [fd00::1]:5 > [fd00::2]:9999 | 20=3c 54+3cf0000000000000 len", "net"},
	{AX_REASON_SHORT_FRAGMENT, "tcp 10.0.0.1:5 > 10.0.0.2:9999 frag first | cut50 len", "net"},
	{AX_REASON_SHORT_L4, "tcp 10.0.0.1:5 > 10.0.0.2:9999 | cut50 len", "net"},
	{AX_REASON_BAD_TCP, "tcp 10.0.0.1:5 > 10.0.0.2:9999 | 46=40", "port"},
	{AX_REASON_BAD_UDP, "udp 10.0.0.1:5 > 10.0.0.2:9999 | 38=0007", "port"},
	/* two headers of 2048 bytes each in front of UDP */
	{AX_REASON_SPLIT, "udp [fd00::1]:5 > [fd00::2]:9999 len 4200 | 20=3c 54=3cff 2102=11ff",
	 "net"},
	{AX_REASON_IP_OPTIONS, "udp 10.0.0.1:5 > 10.0.0.2:9999 | 14=46 34+01010101 len", "port"},
	{AX_REASON_LATER_FRAGMENT, "udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx'", "net"},
	{AX_REASON_TUNNEL, "4 10.0.0.1 > 10.0.0.2 data hex:450000", "net"},
	/* those that a list needs, with a list that drops them */
	{AX_REASON_ARP, "arp 10.0.0.1 > 10.0.0.2", "default"},
	{AX_REASON_NEIGHBOUR, "nd fe80::1 > fe80::2", "default"},
	{AX_REASON_MLD, "2 172.16.0.1 > 224.0.0.22 data hex:2200f9fd00000000", "default"},
	{AX_REASON_ICMP_ERROR,
	 "icmp 172.16.0.9 > 10.0.0.2 type 3/1 quoting (udp 10.0.0.2:9999 > 10.0.0.1:5)", "default"},
	{AX_REASON_EXPOSED, "tcp 10.0.0.1:5 > 10.0.0.2:8080", "default"},
};

static const char *const policies[] = {"rules", "pass", "drop"};

static void class_list(const struct class_row *row, int policy, char *ret, size_t size)
{
	bool needed = row->reason >= AX_REASON_ARP;

	snprintf(ret, size, "default: drop\nclasses: {%s: %s}\n%s", rule_reasons[row->reason].name,
		 policies[policy],
		 needed ? "rules: [{name: port, dport: 9999, action: pass}]\n" : CLASS_RULES);
}

static void test_class(void **state)
{
	const struct class_row *row = *state;
	bool needed = row->reason >= AX_REASON_ARP, dropped;
	char list[600];

	for (int policy = 0; policy < (int)ARRAY_SIZE(policies); policy++) {
		struct expect x = {.reason = row->reason, .action = XDP_PASS};

		class_list(row, policy, list, sizeof(list));
		filter_load_once(list);
		if (row->reason == AX_REASON_EXPOSED && policy != AX_POLICY_RULES)
			filter_expose("10.0.0.2", NULL, IPPROTO_TCP, 8080, 0);
		dropped = policy == AX_POLICY_DROP ||
			  (policy == AX_POLICY_RULES &&
			   (streq(row->rule, "net") || streq(row->rule, "default")));
		if (dropped) {
			x.action = XDP_DROP;
			x.verdict = AX_VERDICT_DROP;
		}
		if (policy == AX_POLICY_RULES) {
			x.rule = row->rule;
			if (needed) /* it was looked at by nobody */
				x.reason = AX_REASON_NONE;
		} else {
			x.decided = needed && policy == AX_POLICY_PASS ? AX_DECIDED_LET_THROUGH
								       : AX_DECIDED_POLICY;
		}
		judge(row->packet, &x);
	}
}

/* A class that is dropped is dropped, whatever rules say of it. */
static void a_dropped_class_asks_no_rule(void **state)
{
	static const struct expect x[] = {
		POLICY(DROP, AX_REASON_ARP), POLICY(DROP, AX_REASON_NEIGHBOUR),
		POLICY(DROP, AX_REASON_MLD), POLICY(DROP, AX_REASON_ICMP_ERROR)};

	(void)state;
	filter_load_once("classes: {arp: drop, neighbour: drop, mld: drop, icmp-error: drop}\n"
			 "rules: [{name: all, length: 0-, action: pass}]\n");
	judge("arp 10.0.0.1 > 10.0.0.2", &x[0]);
	judge("nd fe80::1 > fe80::2", &x[1]);
	judge("2 172.16.0.1 > 224.0.0.22 data hex:2200f9fd00000000", &x[2]);
	judge("icmp 10.0.0.9 > 10.0.0.2 type 11/0 quoting (tcp 10.0.0.2:1 > 10.0.0.1:5)", &x[3]);
	judge("icmp 10.0.0.9 > 10.0.0.2", &(struct expect)BY_PASS("all"));
}

/* What is worst about a packet is told. */
static void the_worst_class_is_told(void **state)
{
	(void)state;
	filter_load_once(
		"default: drop\nclasses: {ip-options: pass, bad-udp: drop, later-fragment: pass,\n"
		"  tunnel: pass}\n");
	judge("udp 10.0.0.1:5 > 10.0.0.2:9999 | 14=46 34+01010101 42=0007 len",
	      &(struct expect)POLICY(DROP, AX_REASON_BAD_UDP));
	judge("udp 10.0.0.1:5 > 10.0.0.2:9999 | 14=46 34+01010101 len",
	      &(struct expect)POLICY(PASS, AX_REASON_IP_OPTIONS));
	judge("udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx' | 14=46 34+01010101 len",
	      &(struct expect)POLICY(PASS, AX_REASON_LATER_FRAGMENT));
}

/* A packet may be of several: one that is left to the rules does not hide one that is not. */
static void no_class_hides_another(void **state)
{
	static const char options[] = " | 14=46 34+01010101 len";
	static const char later[] = "udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx'";
	static const char tunnel[] = "4 10.0.0.1 > 10.0.0.2 data hex:450000";
	char both[200];

	(void)state;
	filter_load_once("default: pass\nclasses: {ip-options: drop}\n");
	snprintf(both, sizeof(both), "%s%s", later, options);
	judge(both, &(struct expect)POLICY(DROP, AX_REASON_IP_OPTIONS));
	snprintf(both, sizeof(both), "%s%s", tunnel, options);
	judge(both, &(struct expect)POLICY(DROP, AX_REASON_IP_OPTIONS));
	judge(later, &(struct expect)ODD(PASS, "default", AX_REASON_LATER_FRAGMENT));
	filter_load_once(
		"default: pass\nclasses: {tunnel: drop, later-fragment: pass, bad-udp: rules}\n");
	judge("4 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx'",
	      &(struct expect)POLICY(DROP, AX_REASON_TUNNEL));
	judge("41 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx'",
	      &(struct expect)POLICY(DROP, AX_REASON_TUNNEL));
	judge(later, &(struct expect)POLICY(PASS, AX_REASON_LATER_FRAGMENT));
	filter_load_once("default: pass\nclasses: {bad-udp: rules, ip-options: drop}\n");
	judge("udp 10.0.0.1:5 > 10.0.0.2:9999 | 14=46 34+01010101 42=0007 len",
	      &(struct expect)POLICY(DROP, AX_REASON_IP_OPTIONS));
}

/* Every class has a row above: a new one cannot be forgotten. */
static void all_classes_are_tested(void **state)
{
	bool seen[AX_REASON_POLICIES] = {[AX_REASON_NONE] = true};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		seen[classes[i].reason] = true;
	for (int i = 0; i < AX_REASON_POLICIES; i++)
		if (!seen[i])
			fail_msg("class %s has no test", rule_reasons[i].name);
}

/* The same of what leaves, where nothing is exposed, and a test run takes no jumbo frames. */
static size_t add_egress(struct CMUnitTest *tests, size_t n)
{
	for (size_t i = 0, end = n; i < end; i += quick_or(4, 1)) {
		const struct class_row *c = tests[i].initial_state;

		if (tests[i].test_func == test_class &&
		    (c->reason == AX_REASON_EXPOSED || c->reason == AX_REASON_SPLIT))
			continue;
		tests[n] = tests[i];
		tests[n].setup_func = filter_to_egress;
		tests[n++].teardown_func = filter_to_ingress;
	}
	return n;
}

int main(void)
{
	static struct CMUnitTest tests[2 * (2 * ARRAY_SIZE(rows) + ARRAY_SIZE(classes)) + 4];
	static char names[ARRAY_SIZE(tests)][100];
	size_t n = 0;

	for (int allow = 0; allow < 2; allow++) {
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++, n++) {
			snprintf(names[n], sizeof(names[n]), "%s list: %s",
				 allow ? "allow" : "block", rows[i].name);
			tests[n] =
				(struct CMUnitTest){.name = names[n],
						    .test_func = allow ? test_allow : test_block,
						    .initial_state = (void *)(uintptr_t)&rows[i]};
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++, n++) {
		snprintf(names[n], sizeof(names[n]), "class %s: rules, pass, drop",
			 rule_reasons[classes[i].reason].name);
		tests[n] = (struct CMUnitTest){.name = names[n],
					       .test_func = test_class,
					       .initial_state = (void *)(uintptr_t)&classes[i]};
	}
	n = add_egress(tests, n);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_dropped_class_asks_no_rule);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_class_hides_another);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_worst_class_is_told);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(all_classes_are_tested);
	return _cmocka_run_group_tests("odd packets", tests, n, filter_setup, filter_teardown);
}
