// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* What a list with `exposed: pass` lets through: packets for ports that are exposed at an address
 * of this host, their later fragments, and errors about what was answered; nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>

#include "base/util.h"
#include "tests/lib/filter_judge.h"

#define PASSING                                                \
	"default: drop\nclasses: {exposed: pass}\n"            \
	"rules: [{name: bad, src: 10.0.0.66, action: drop},\n" \
	"        {name: net, src: 10.0.5.0/24, action: pass}]\n"
#define DROPPING                     \
	"classes: {exposed: drop}\n" \
	"rules: [{name: all, length: 0-, action: pass}]\n"
#define LAST                         \
	"classes: {exposed: pass}\n" \
	"rules: [{name: end, action: drop}]\n"
#define SILENT "default: drop\nclasses: {exposed: pass, icmp-error: rules}\n"

struct row {
	const char *name, *list, *packet;
	struct expect x;
};

#define LET	LET_THROUGH(AX_REASON_EXPOSED)
#define DROPPED BY_DROP("default")
#define LATER	ODD(DROP, "default", AX_REASON_LATER_FRAGMENT)
#define ERRORED                                                                                    \
	{                                                                                          \
		.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .decided = AX_DECIDED_LET_THROUGH, \
		.reason = AX_REASON_ICMP_ERROR, .quoted_rule = "default"                           \
	}
#define ABOUT_DROPPED                                                              \
	{                                                                          \
		.action = XDP_DROP, .verdict = AX_VERDICT_DROP, .rule = "default", \
		.quoted_rule = "default"                                           \
	}

/* Exposed: TCP 80 and UDP 53 at all addresses, TCP 90 at 10.0.0.3 and fd00::3, TCP 70 by this
 * interface, TCP 60 by another one. The host has 10.0.0.2, 10.0.0.3, fd00::2, fd00::3. */
/* clang-format off */
static const struct row rows[] = {
	{"TCP", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:80", LET},
	{"TCP, of a connection that stands", PASSING, "tcp 192.0.2.1:5 > 10.0.0.3:80 flags ack", LET},
	{"TCP on IPv6", PASSING, "tcp [2001:db8::1]:5 > [fd00::2]:80", LET},
	{"UDP", PASSING, "udp 192.0.2.1:5 > 10.0.0.2:53", LET},
	{"UDP on IPv6", PASSING, "udp [2001:db8::1]:5 > [fd00::3]:53", LET},
	{"behind a tag", PASSING, "vlan 7 tcp 192.0.2.1:5 > 10.0.0.2:80", LET},
	{"with a list that ends by a rule", LAST, "tcp 192.0.2.1:5 > 10.0.0.2:80", LET},
	{"another port", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:81", DROPPED},
	{"another port of the same word", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:64", DROPPED},
	{"the same port of UDP", PASSING, "udp 192.0.2.1:5 > 10.0.0.2:80", DROPPED},
	{"the same port of TCP", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:53", DROPPED},
	{"from that port", PASSING, "tcp 192.0.2.1:80 > 10.0.0.2:5", DROPPED},
	{"SCTP", PASSING, "132 192.0.2.1 > 10.0.0.2 data hex:0005005000000000", DROPPED},
	{"what is to be forwarded", PASSING, "tcp 192.0.2.1:5 > 10.0.0.9:80", DROPPED},
	{"to be forwarded on IPv6", PASSING, "tcp [2001:db8::1]:5 > [fd00::9]:80", DROPPED},
	{"to all", PASSING, "udp 192.0.2.1:5 > 255.255.255.255:53", DROPPED},
	{"to a group", PASSING, "udp [2001:db8::1]:5 > [ff02::1]:53", DROPPED},
	{"to the wildcard", PASSING, "tcp 192.0.2.1:5 > 0.0.0.0:80", DROPPED},
	{"to IPv6's wildcard", PASSING, "tcp [2001:db8::1]:5 > [::]:80", DROPPED},

	{"at its address", PASSING, "tcp 192.0.2.1:5 > 10.0.0.3:90", LET},
	{"at its address on IPv6", PASSING, "tcp [2001:db8::1]:5 > [fd00::3]:90", LET},
	{"at another address", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:90", DROPPED},
	{"at another address on IPv6", PASSING, "tcp [2001:db8::1]:5 > [fd00::2]:90", DROPPED},
	{"by its interface", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:70", LET},
	{"by a VLAN of its interface", PASSING, "vlan 7 tcp 192.0.2.1:5 > 10.0.0.2:70", DROPPED},
	{"by another interface", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:60", DROPPED},

	{"whom a rule drops", PASSING, "tcp 10.0.0.66:5 > 10.0.0.2:80", BY_DROP("bad")},
	{"whom a rule lets pass", PASSING, "tcp 10.0.5.1:5 > 10.0.0.2:80", BY_PASS("net")},
	{"dropped, whatever rules say", DROPPING, "tcp 10.0.5.1:5 > 10.0.0.2:80",
	 POLICY(DROP, AX_REASON_EXPOSED)},
	{"what is not exposed is not dropped", DROPPING, "tcp 10.0.5.1:5 > 10.0.0.2:81",
	 BY_PASS("all")},

	{"a header that is too short", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:80 | cut44 len",
	 POLICY(DROP, AX_REASON_SHORT_L4)},
	{"a first fragment without a header", PASSING, "tcp 192.0.2.1:5 > 10.0.0.2:80 frag first | cut42 len",
	 POLICY(DROP, AX_REASON_SHORT_FRAGMENT)},
	{"a later fragment of nothing", PASSING, "udp 192.0.2.1 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=1111 sum", LATER},
	{"a first fragment", PASSING, "udp 192.0.2.1:5 > 10.0.0.2:53 frag first data 'xxxxxxxx' | "
	 "18=2222 sum", LET},
	{"its later one", PASSING, "udp 192.0.2.1 > 10.0.0.2 frag later data 'xxxxxxxx' | 18=2222 sum",
	 {.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .decided = AX_DECIDED_LET_THROUGH,
	  .reason = AX_REASON_EXPOSED, .also = AX_REASON_LATER_FRAGMENT}},
	{"one of another datagram", PASSING, "udp 192.0.2.1 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=2223 sum", LATER},
	{"one of somebody else's", PASSING, "udp 192.0.2.2 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=2222 sum", LATER},
	{"one of another protocol", PASSING, "tcp 192.0.2.1 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=2222 sum", LATER},
	{"a first fragment to another port", PASSING, "udp 192.0.2.1:5 > 10.0.0.2:54 frag first data "
	 "'xxxxxxxx' | 18=3333 sum", DROPPED},
	{"and its later one", PASSING, "udp 192.0.2.1 > 10.0.0.2 frag later data 'xxxxxxxx' | 18=3333 sum",
	 LATER},

	{"an error about an answer", PASSING, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting "
	 "(tcp 10.0.0.2:80 > 192.0.2.1:5)", ERRORED},
	{"an error on IPv6", PASSING, "icmp6 2001:db8::9 > fd00::2 type 2 quoting "
	 "(udp [fd00::2]:53 > [2001:db8::1]:5)", ERRORED},
	{"an error about something else", PASSING, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting "
	 "(tcp 10.0.0.2:81 > 192.0.2.1:5)", ABOUT_DROPPED},
	{"an error about what was asked", PASSING, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting "
	 "(tcp 192.0.2.1:5 > 10.0.0.2:80)", ABOUT_DROPPED},
	{"an error that the list does not want", SILENT, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting "
	 "(tcp 10.0.0.2:80 > 192.0.2.1:5)", DROPPED},
};
/* clang-format on */

static void expose(void)
{
	static const char *const hosts[] = {"10.0.0.2", "10.0.0.3", "fd00::2", "fd00::3"};

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		const char *any = i < 2 ? "0.0.0.0" : "::";

		filter_expose(hosts[i], any, IPPROTO_TCP, 80, 0);
		filter_expose(hosts[i], any, IPPROTO_UDP, 53, 0);
		filter_expose(hosts[i], any, IPPROTO_TCP, 70, if_nametoindex(IFNAME));
		filter_expose(hosts[i], any, IPPROTO_TCP, 60, if_nametoindex(TARGET));
		if (i % 2)
			filter_expose(hosts[i], NULL, IPPROTO_TCP, 90, 0);
	}
}

static void test_row(void **state)
{
	const struct row *row = *state;

	filter_load_once(row->list);
	expose();
	judge(row->packet, &row->x);
}

/* Without an agent nothing is exposed, whatever one that was here before has left. */
static void what_is_exposed_is_looked_up_anew(void **state)
{
	(void)state;
	filter_load(PASSING);
	expose();
	judge("tcp 192.0.2.1:5 > 10.0.0.2:80", &(struct expect)LET);
	filter_load(LAST);
	judge("tcp 192.0.2.1:5 > 10.0.0.2:80", &(struct expect)BY_DROP("end"));
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_SIZE(rows) + 1];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
					       .test_func = test_row,
					       .initial_state = (void *)(uintptr_t)&rows[i]};
	tests[ARRAY_SIZE(rows)] =
		(struct CMUnitTest)cmocka_unit_test(what_is_exposed_is_looked_up_anew);
	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
