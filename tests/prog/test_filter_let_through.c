// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* What a list that drops by default lets through: ARP, neighbour discovery, group membership, and
 * ICMP errors about flows that it allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>

#include "tests/lib/filter_judge.h"

#define RULES                                                     \
	"rules: [{name: bad, src: 10.0.0.66, action: drop},\n"    \
	"        {name: dns, dport: 53, action: pass},\n"         \
	"        {name: host, src: 10.0.5.0/24, action: pass},\n" \
	"        {name: back, proto: gre, action: reflect}"
#define DENY "default: drop\n" RULES "]\n"
#define ENDS RULES ",\n        {name: end, action: drop}]\n"
#define BYRULE                                                                 \
	"default: drop\nclasses: {arp: rules, neighbour: rules, mld: rules,\n" \
	"  icmp-error: rules}\n" RULES ",\n"                                   \
	"        {name: ping, icmp: [echo-request, 3], icmp6: 2, action: pass}]\n"
#define LENGTH "default: drop\n" RULES ",\n        {name: any, length: 0-, action: drop}]\n"
#define OPEN   RULES "]\n"
#define STANDING                                                                        \
	"default: drop\nrules: [{name: scan, flags: ['!syn', '!ack'], action: drop},\n" \
	"        {name: syn, flags: [syn, '!ack'], action: drop},\n"                    \
	"        {name: web, dport: 443, action: pass},\n"                              \
	"        {name: est, sport: 80, flags: ack, action: pass},\n"                   \
	"        {name: ping, icmp: echo-reply, icmp6: echo-reply, action: pass}]\n"
#define NOTHING "default: drop\n"

struct row {
	const char *name, *list, *packet;
	struct expect x;
};

#define LET(why) LET_THROUGH(AX_REASON_##why)
#define DROPPED	 BY_DROP("default")
#define LET_ALSO(w, a)                                                                             \
	{                                                                                          \
		.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .decided = AX_DECIDED_LET_THROUGH, \
		.reason = AX_REASON_##w, .also = AX_REASON_##a                                     \
	}
#define ABOUT(a, r, q)                                                                        \
	{                                                                                     \
		.action = XDP_##a, .verdict = AX_VERDICT_##a, .rule = (r), .quoted_rule = (q) \
	}
#define LET_ABOUT(q)                                                                               \
	{                                                                                          \
		.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .decided = AX_DECIDED_LET_THROUGH, \
		.reason = AX_REASON_ICMP_ERROR, .quoted_rule = (q)                                 \
	}

#define ICMP  "icmp 192.0.2.9 > 10.0.0.2 "
#define ICMP6 "icmp6 2001:db8::9 > fd00::2 "
/* what we sent, of flows that came in to port 53 */
#define DNS4 " quoting (udp 10.0.0.2:53 > 10.0.0.1:4000)"
#define DNS6 " quoting (udp [fd00::2]:53 > [fd00::1]:4000 data 'what was asked for')"

/* clang-format off */
static const struct row rows[] = {
	{"ARP request", DENY, "arp 10.0.0.1 > 10.0.0.2", LET(ARP)},
	{"ARP answer", DENY, "arp 10.0.0.1 > 10.0.0.2 reply", LET(ARP)},
	{"ARP behind two tags", DENY, "vlan 5:88a8 vlan 6 arp 10.0.0.1 > 10.0.0.2", LET(ARP)},
	{"ARP that is cut off", DENY, "arp 10.0.0.1 > 10.0.0.2 | cut16", LET(ARP)},
	{"RARP", DENY, "arp 10.0.0.1 > 10.0.0.2 | 12=8035", DROPPED},
	{"LLDP", DENY, "arp 10.0.0.1 > 10.0.0.2 | 12=88cc", DROPPED},
	{"a list without rules", NOTHING, "arp 10.0.0.1 > 10.0.0.2", LET(ARP)},
	{"ARP, with a rule for all at the end", ENDS, "arp 10.0.0.1 > 10.0.0.2", LET(ARP)},
	{"a datagram, with a rule for all at the end", ENDS, "udp 10.0.0.1:5 > 10.0.0.2:54",
	 BY_DROP("end")},
	{"ARP, with a rule that says so", LENGTH, "arp 10.0.0.1 > 10.0.0.2", BY_DROP("any")},
	{"ARP, with the default pass", OPEN, "arp 10.0.0.1 > 10.0.0.2", BY_PASS("default")},

	{"router solicitation", DENY, "icmp6 fe80::1 > ff02::2 type 133 ttl 255", LET(NEIGHBOUR)},
	{"router advertisement", DENY, "icmp6 fe80::1 > ff02::1 type 134 ttl 255", LET(NEIGHBOUR)},
	{"neighbour solicitation", DENY, "nd fe80::1 > fe80::2", LET(NEIGHBOUR)},
	{"neighbour solicitation behind a tag", DENY, "vlan 9 nd fe80::1 > fe80::2",
	 LET(NEIGHBOUR)},
	{"neighbour advertisement", DENY, "icmp6 fe80::1 > ff02::1 type 136 ttl 255", LET(NEIGHBOUR)},
	{"ICMPv6 redirect", DENY, "icmp6 fe80::1 > fe80::2 type 137 ttl 255", LET(NEIGHBOUR)},
	{"a neighbour solicitation that a router has forwarded", DENY, "icmp6 fd00::1 > fd00::2 type 135 ttl 254",
	 DROPPED},
	{"a router advertisement from afar", DENY, "icmp6 fe80::1 > ff02::1 type 134", DROPPED},
	{"router renumbering", DENY, "icmp6 fe80::1 > fe80::2 type 138", DROPPED},
	{"echo request on IPv6", DENY, "icmp6 fe80::1 > fe80::2 type 128", DROPPED},
	{"type 135 of ICMP", DENY, "icmp 10.0.0.1 > 10.0.0.2 type 135", DROPPED},
	{"proto 58 on IPv4", DENY, "1 10.0.0.1 > 10.0.0.2 type 135 | 23=3a", DROPPED},

	{"MLD query", DENY, "icmp6 fe80::1 > ff02::1 type 130", LET(MLD)},
	{"MLD report", DENY, "icmp6 fe80::1 > ff02::1 type 131", LET(MLD)},
	{"MLD done", DENY, "icmp6 fe80::1 > ff02::1 type 132", LET(MLD)},
	{"MLDv2 report", DENY, "icmp6 fe80::1 > ff02::16 type 143", LET(MLD)},
	{"MLD with its router alert", DENY, "icmp6 fe80::1 > ff02::1 type 130 | 20=00 "
	 "54+3a00050200000000 len", LET(MLD)},
	{"type 144", DENY, "icmp6 fe80::1 > ff02::1 type 144", DROPPED},
	{"IGMP query", DENY, "2 10.0.0.1 > 224.0.0.1 data hex:1164ee9b00000000", LET(MLD)},
	{"IGMPv3 report with its router alert", DENY, "2 10.0.0.1 > 224.0.0.22 data "
	 "hex:2200f9fd00000000 | 14=46 34+94040000 len", LET_ALSO(MLD, IP_OPTIONS)},
	{"the first fragment of an IGMP report", DENY, "2 10.0.0.1 > 224.0.0.22 frag first data "
	 "hex:2200f9fd00000000", DROPPED},
	{"a later fragment of IGMP", DENY, "2 10.0.0.1 > 224.0.0.22 frag later data "
	 "hex:2200f9fd00000000", ODD(DROP, "default", AX_REASON_LATER_FRAGMENT)},
	{"the first fragment of an MLD report", DENY, "icmp6 fe80::1 > ff02::1 type 131 frag first",
	 DROPPED},
	{"the first fragment of a router advertisement", DENY, "icmp6 fe80::1 > fe80::2 type 134 "
	 "frag first", DROPPED},
	{"proto 2 on IPv6", DENY, "2 fe80::1 > ff02::16 data hex:2200f9fd00000000", DROPPED},

	{"host unreachable", DENY, ICMP "type 3/1" DNS4, LET_ABOUT("dns")},
	{"fragmentation needed", DENY, ICMP "type 3/4" DNS4, LET_ABOUT("dns")},
	{"source quench", DENY, ICMP "type 4" DNS4, DROPPED},
	{"redirect", DENY, ICMP "type 5/1" DNS4, DROPPED},
	{"time exceeded", DENY, ICMP "type 11" DNS4, LET_ABOUT("dns")},
	{"parameter problem", DENY, ICMP "type 12" DNS4, LET_ABOUT("dns")},
	{"echo request", DENY, ICMP, DROPPED},
	{"echo reply that looks like an error", DENY, ICMP "type 0 data hex:4500001c", DROPPED},
	{"time stamp", DENY, ICMP "type 13", DROPPED},
	{"unreachable on IPv6", DENY, ICMP6 "type 1" DNS6, LET_ABOUT("dns")},
	{"too big", DENY, ICMP6 "type 2" DNS6, LET_ABOUT("dns")},
	{"time exceeded on IPv6", DENY, ICMP6 "type 3" DNS6, LET_ABOUT("dns")},
	{"parameter problem on IPv6", DENY, ICMP6 "type 4" DNS6, LET_ABOUT("dns")},
	{"type 5 on IPv6", DENY, ICMP6 "type 5" DNS6, DROPPED},
	{"too big, behind two tags", DENY, "vlan 1:88a8 vlan 2 " ICMP6 "type 2" DNS6,
	 LET_ABOUT("dns")},
	{"too big, behind an extension header", DENY, ICMP6 "type 2" DNS6 " | 20=3c "
	 "54+3a00000000000000 len", LET_ABOUT("dns")},
	{"an error with IP options", DENY, ICMP "type 3/4" DNS4 " | 14=46 34+01010101 len",
	 LET_ALSO(ICMP_ERROR, IP_OPTIONS)},
	{"an error, with a rule for all at the end", ENDS, ICMP "type 3/1" DNS4, LET_ABOUT("dns")},
	{"an error without rules that pass anything", NOTHING, ICMP "type 3/1" DNS4, DROPPED},
	{"an error, with the default pass", OPEN, ICMP "type 3/1" DNS4, BY_PASS("default")},

	{"about another port", DENY, ICMP "type 3/4 quoting (udp 10.0.0.2:54 > 10.0.0.1:4000)",
	 ABOUT(DROP, "default", "default")},
	{"about the other direction", DENY, ICMP "type 3/4 quoting (udp 10.0.0.2:4000 > "
	 "10.0.0.1:53)", ABOUT(DROP, "default", "default")},
	{"about a flow that a rule drops", DENY, ICMP "type 3/4 quoting (udp 10.0.0.2:53 > "
	 "10.0.0.66:4000)", ABOUT(DROP, "default", "bad")},
	{"about a flow that is turned around", DENY, ICMP "type 3/4 quoting (gre 10.0.0.2 > "
	 "10.0.0.1 data 'xxxxxxxx')", LET_ABOUT("back")},
	{"about TCP, of which there are 8 bytes", DENY, ICMP "type 3/4 quoting (tcp 10.0.0.2:53 > "
	 "10.0.0.1:4000)", LET_ABOUT("dns")},
	{"about 4 bytes", DENY, ICMP "type 3/4" DNS4 " | cut66 len", LET_ABOUT("dns")},
	{"about 3 bytes", DENY, ICMP "type 3/4" DNS4 " | cut65 len",
	 ABOUT(DROP, "default", "default")},
	{"about ports of which the IP length knows", DENY, ICMP "type 3/4" DNS4 " | 16=0034",
	 LET_ABOUT("dns")},
	{"about ports behind the IP length", DENY, ICMP "type 3/4" DNS4 " | 16=0033",
	 ABOUT(DROP, "default", "default")},
	{"about an IP header behind the IP length", DENY, ICMP "type 3/4" DNS4 " | 16=002f", DROPPED},
	{"about ports of which the IPv6 length knows", DENY, ICMP6 "type 2" DNS6 " | 18=0034",
	 LET_ABOUT("dns")},
	{"about ports behind the IPv6 length", DENY, ICMP6 "type 2" DNS6 " | 18=0033",
	 ABOUT(DROP, "default", "default")},
	{"about an IPv6 header behind the IPv6 length", DENY, ICMP6 "type 2" DNS6 " | 18=002f",
	 DROPPED},
	{"about part of an IP header", DENY, ICMP "type 3/4" DNS4 " | cut61 len", DROPPED},
	{"about nothing", DENY, ICMP "type 3/4", DROPPED},
	{"about 8 bytes on IPv6", DENY, ICMP6 "type 2" DNS6 " | cut110 len", LET_ABOUT("dns")},
	{"about 3 bytes on IPv6", DENY, ICMP6 "type 2" DNS6 " | cut105 len",
	 ABOUT(DROP, "default", "default")},
	{"about part of an IPv6 header", DENY, ICMP6 "type 2" DNS6 " | cut101 len", DROPPED},
	{"about all of a segment on IPv6", DENY, ICMP6 "type 2 quoting (tcp [fd00::2]:53 > "
	 "[fd00::1]:4000 len 500)", LET_ABOUT("dns")},
	{"about a packet with options", DENY, ICMP "type 3/4" DNS4 " | 42=46 62+01010101 len",
	 LET_ABOUT("dns")},
	{"about options that are longer than the quote", DENY, ICMP "type 3/4" DNS4 " | 42=4f",
	 ABOUT(DROP, "default", "default")},
	{"about extension headers", DENY, ICMP6 "type 2" DNS6 " | 68=3c 102+3c00000000000000 "
	 "110+1100000000000000 len", LET_ABOUT("dns")},
	{"about too many extension headers", DENY, ICMP6 "type 2" DNS6 " | 68=3c "
	 "102+3c000000000000003c000000000000003c000000000000003c000000000000003c00000000000000"
	 "3c000000000000003c000000000000003c000000000000001100000000000000 len", DROPPED},
	{"about IPv6 within IPv4's", DENY, ICMP "type 3/4" DNS4 " | 42=60", DROPPED},
	{"about a header length of 16", DENY, ICMP "type 3/4" DNS4 " | 42=44", DROPPED},
	{"about IPv4 within IPv6's", DENY, ICMP6 "type 2" DNS6 " | 62=40", DROPPED},
	{"about a first fragment", DENY, ICMP "type 11/1 quoting (udp 10.0.0.2:53 > 10.0.0.1:4000 "
	 "frag first)", LET_ABOUT("dns")},
	{"about a later fragment", DENY, ICMP "type 11/1 quoting (udp 10.0.0.2 > 10.0.0.1 "
	 "frag later data hex:00350fa0)", ABOUT(DROP, "default", "default")},
	{"about a later fragment of an allowed host", DENY, ICMP "type 11/1 quoting (udp 10.0.0.2 > "
	 "10.0.5.1 frag later data hex:00350fa0)", LET_ABOUT("host")},
	{"about a later fragment on IPv6", DENY, ICMP6 "type 3/1 quoting (udp fd00::2 > fd00::1 "
	 "frag later data hex:00350fa000000000)", ABOUT(DROP, "default", "default")},
	{"about a first fragment on IPv6", DENY, ICMP6 "type 3/1 quoting (udp [fd00::2]:53 > "
	 "[fd00::1]:4000 frag first)", LET_ABOUT("dns")},
	{"about an echo request", DENY, ICMP "type 3/1 quoting (icmp 10.0.0.2 > 10.0.5.1)",
	 LET_ABOUT("host")},

	{"about TCP, whose flags are not quoted", STANDING, ICMP "type 3/4 quoting (tcp "
	 "10.0.0.2:443 > 10.0.0.1:4000 flags syn,ack)", LET_ABOUT("web")},
	{"about a connection that stands", STANDING, ICMP6 "type 2 quoting (tcp [fd00::2]:4000 > "
	 "[fd00::1]:80 flags ack)", LET_ABOUT("est")},
	{"about an echo, whose answers are allowed", STANDING, ICMP "type 11 quoting (icmp "
	 "10.0.0.2 > 10.0.0.1)", LET_ABOUT("ping")},
	{"about one on IPv6", STANDING, ICMP6 "type 3 quoting (icmp6 fd00::2 > fd00::1)",
	 LET_ABOUT("ping")},
	{"about an answer, of questions that are not allowed", STANDING, ICMP "type 11 quoting "
	 "(icmp 10.0.0.2 > 10.0.0.1 type 0)", ABOUT(DROP, "default", "default")},
	{"about another message", STANDING, ICMP "type 11 quoting (icmp 10.0.0.2 > 10.0.0.1 "
	 "type 13)", ABOUT(DROP, "default", "default")},

	{"rules: ARP", BYRULE, "arp 10.0.0.1 > 10.0.0.2", DROPPED},
	{"rules: neighbours", BYRULE, "nd fe80::1 > fe80::2", DROPPED},
	{"rules: MLD", BYRULE, "icmp6 fe80::1 > ff02::1 type 130", DROPPED},
	{"rules: IGMP", BYRULE, "2 10.0.5.1 > 224.0.0.1 data hex:1164ee9b00000000",
	 BY_PASS("host")},
	{"rules: an error that they allow", BYRULE, ICMP "type 3/4 quoting (tcp 10.0.0.2:1 > "
	 "10.0.0.1:2)", BY_PASS("ping")},
	{"rules: an error that they do not", BYRULE, ICMP "type 11" DNS4, DROPPED},
	{"rules: too big", BYRULE, ICMP6 "type 2", BY_PASS("ping")},
	{"rules: unreachable on IPv6", BYRULE, ICMP6 "type 1" DNS6, DROPPED},
};
/* clang-format on */

static void test_row(void **state)
{
	const struct row *row = *state;

	filter_load_once(row->list);
	judge(row->packet, &row->x);
}

int main(void)
{
	static struct CMUnitTest tests[2 * ARRAY_SIZE(rows)];

	const size_t n = ARRAY_SIZE(rows);

	for (size_t i = 0; i < n; i++) {
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
					       .test_func = test_row,
					       .initial_state = (void *)(uintptr_t)&rows[i]};
		tests[n + i] = tests[i];
		tests[n + i].setup_func = filter_to_egress;
		tests[n + i].teardown_func = filter_to_ingress;
	}
	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
