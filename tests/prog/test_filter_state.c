// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* What `state` says of packets, with real sockets behind it: of connections, of listeners that wait
 * for them, of errors that quote them, and of fragments; and what it does not let anybody pretend.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/util.h"
#include "tests/lib/filter_judge.h"
#include "tests/lib/netns.h"

/* A rule for each state, so that a packet's rule says its state. */
#define STATES                                                     \
	"default: drop\n"                                          \
	"rules: [{name: est, state: established, action: pass},\n" \
	"        {name: rel, state: related, action: pass},\n"     \
	"        {name: inv, state: invalid, action: drop},\n"     \
	"        {name: new, state: new, action: drop}]\n"
/* The whole of a host's firewall. */
#define FIREWALL "default: drop\nrules: [{name: est, state: established, action: pass}]\n"
/* Of several fields, and behind a rule that has decided. */
#define OTHERS                                                                            \
	"default: drop\n"                                                                 \
	"rules: [{name: first, src: 10.0.0.1, dport: 4001, action: drop},\n"              \
	"        {name: tcp, proto: tcp, state: [established, related], action: pass},\n" \
	"        {name: web, proto: tcp, dport: 80, state: new, action: pass}]\n"
/* Classes that the rules are to judge, not a policy. */
#define ERRORS                                          \
	"default: drop\nclasses: {icmp-error: rules}\n" \
	"rules: [{name: rel, state: related, action: pass}]\n"
/* A server by UDP, from a socket that is not connected. */
#define SERVER                                                 \
	"default: drop\n"                                      \
	"rules: [{name: inv, state: invalid, action: drop},\n" \
	"        {name: dns, proto: udp, dport: 5353, state: new, action: pass}]\n"
/* A host of apps. */
#define APPS                                        \
	"default: drop\nclasses: {exposed: pass}\n" \
	"rules: [{name: inv, state: invalid, action: drop}]\n"

#define DROPPED BY_DROP("default")
#define LATER_PASS                                                             \
	{                                                                      \
		.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .rule = "est", \
		.reason = AX_REASON_LATER_FRAGMENT                             \
	}
#define LATER_DROP(r) ODD(DROP, r, AX_REASON_LATER_FRAGMENT)
#define LET_ERROR(about)                                                                           \
	{                                                                                          \
		.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .decided = AX_DECIDED_LET_THROUGH, \
		.reason = AX_REASON_ICMP_ERROR, .quoted_rule = (about)                             \
	}
#define NOT_ABOUT                                                                  \
	{                                                                          \
		.action = XDP_DROP, .verdict = AX_VERDICT_DROP, .rule = "default", \
		.quoted_rule = "default"                                           \
	}

struct row {
	const char *name, *list, *packet;
	struct expect x;
};

/* 10.0.0.2:4000 is connected to 10.0.0.1:80, and fd00::2 to fd00::1 so; UDP of both families from
 * port 4000 to 53. 10.0.0.1 listens at port 80. UDP 5353 and 4002 are bound, and not connected. */
/* clang-format off */
static const struct row rows[] = {
	{"a segment of a connection", STATES, "tcp 10.0.0.1:80 > 10.0.0.2:4000 flags ack",
	 BY_PASS("est")},
	{"of its other end", STATES, "tcp 10.0.0.2:4000 > 10.0.0.1:80 flags ack,psh",
	 BY_PASS("est")},
	{"on IPv6", STATES, "tcp [fd00::1]:80 > [fd00::2]:4000 flags ack", BY_PASS("est")},
	{"behind a tag", STATES, "vlan 7 tcp 10.0.0.1:80 > 10.0.0.2:4000 flags ack",
	 BY_PASS("est")},
	{"its reset", STATES, "tcp 10.0.0.1:80 > 10.0.0.2:4000 flags rst", BY_PASS("est")},
	{"a SYN to a listener", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:80 flags syn", BY_DROP("new")},
	{"a SYN on a connection", STATES, "tcp 10.0.0.1:80 > 10.0.0.2:4000 flags syn",
	 BY_DROP("new")},
	{"a SYN to nobody", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:81 flags syn", BY_DROP("new")},
	{"an ACK to a listener", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:80 flags ack",
	 BY_DROP("inv")},
	{"an ACK to nobody", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:81 flags ack", BY_DROP("inv")},
	{"on IPv6 to nobody", STATES, "tcp [fd00::9]:80 > [fd00::1]:81 flags ack", BY_DROP("inv")},
	{"another's port", STATES, "tcp 10.0.0.1:81 > 10.0.0.2:4000 flags ack", BY_DROP("inv")},
	{"another's address", STATES, "tcp 10.0.0.9:80 > 10.0.0.2:4000 flags ack", BY_DROP("inv")},
	{"a SYN and ACK that nobody asked for", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:80 flags "
	 "syn,ack", BY_DROP("inv")},
	{"no flags", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:80 flags none", BY_DROP("inv")},
	{"a SYN with FIN", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:80 flags syn,fin", BY_DROP("inv")},
	{"a reset to a listener", STATES, "tcp 10.0.0.9:80 > 10.0.0.1:80 flags rst",
	 BY_DROP("inv")},

	{"an answer by UDP", STATES, "udp 10.0.0.1:53 > 10.0.0.2:4000", BY_PASS("est")},
	{"on IPv6 by UDP", STATES, "udp [fd00::1]:53 > [fd00::2]:4000", BY_PASS("est")},
	{"from another port", STATES, "udp 10.0.0.1:54 > 10.0.0.2:4000", BY_DROP("new")},
	{"from another address", STATES, "udp 10.0.0.9:53 > 10.0.0.2:4000", BY_DROP("new")},
	{"to a socket that is not connected", STATES, "udp 10.0.0.1:53 > 10.0.0.2:5353",
	 BY_DROP("new")},
	{"to a wildcard's", STATES, "udp 10.0.0.1:53 > 10.0.0.2:4002", BY_DROP("new")},
	{"to no socket", STATES, "udp 10.0.0.1:53 > 10.0.0.2:9", BY_DROP("new")},
	{"the same by TCP", STATES, "tcp 10.0.0.1:53 > 10.0.0.2:4000 flags ack", BY_DROP("inv")},

	{"a ping", STATES, "icmp 10.0.0.1 > 10.0.0.2", BY_DROP("new")},
	{"a ping's answer", STATES, "icmp 10.0.0.1 > 10.0.0.2 type 0", BY_DROP("new")},
	{"another protocol", STATES, "gre 10.0.0.1 > 10.0.0.2 data 'xxxxxxxx'", BY_DROP("new")},
	{"ARP has none", STATES, "arp 10.0.0.1 > 10.0.0.2", LET_THROUGH(AX_REASON_ARP)},

	{"too big", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp 10.0.0.2:4000 > "
	 "10.0.0.1:80)", BY_PASS("rel")},
	{"too big on IPv6", STATES, "icmp6 2001:db8::9 > fd00::2 type 2 quoting (tcp [fd00::2]:4000 > "
	 "[fd00::1]:80)", BY_PASS("rel")},
	{"unreachable, about UDP", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/3 quoting (udp "
	 "10.0.0.2:4000 > 10.0.0.1:53)", BY_PASS("rel")},
	{"about another flow", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp "
	 "10.0.0.2:4000 > 10.0.0.1:81)", BY_DROP("inv")},
	{"about a listener", STATES, "icmp 192.0.2.9 > 10.0.0.1 type 3/4 quoting (tcp 10.0.0.1:80 > "
	 "10.0.0.9:4000)", BY_DROP("inv")},
	{"about another host's flow", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp "
	 "10.9.0.2:4000 > 10.0.0.1:80)", BY_DROP("inv")},
	{"to somebody else", STATES, "icmp 192.0.2.9 > 10.0.0.3 type 3/4 quoting (tcp 10.0.0.2:4000 > "
	 "10.0.0.1:80)", BY_DROP("inv")},
	{"about what came in", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp 10.0.0.9:80 > "
	 "10.0.0.2:4000)", BY_DROP("inv")},
	{"about what a UDP server sent", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (udp "
	 "10.0.0.2:5353 > 10.0.0.9:53)", BY_DROP("new")},
	{"about another host's server", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (udp "
	 "10.9.0.2:5353 > 10.0.0.9:53)", BY_DROP("inv")},
	{"too big, for a UDP server", SERVER, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (udp "
	 "10.0.0.2:5353 > 10.0.0.9:53)", LET_ERROR("dns")},
	{"too big, for nobody", SERVER, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (udp "
	 "10.0.0.2:5354 > 10.0.0.9:53)", NOT_ABOUT},
	{"about a ping", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/1 quoting (icmp 10.0.0.2 > "
	 "10.0.0.1)", BY_DROP("new")},
	{"a redirect", STATES, "icmp 10.0.0.1 > 10.0.0.2 type 5/1 quoting (tcp 10.0.0.2:4000 > "
	 "10.0.0.1:80)", BY_DROP("new")},
	{"a quote without ports", STATES, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp "
	 "10.0.0.2:4000 > 10.0.0.1:80) | cut65 len", BY_DROP("new")},

	{"the firewall: an answer", FIREWALL, "tcp 10.0.0.1:80 > 10.0.0.2:4000 flags ack",
	 BY_PASS("est")},
	{"the firewall: too big", FIREWALL, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp "
	 "10.0.0.2:4000 > 10.0.0.1:80)", LET_ERROR("est")},
	{"the firewall: too big, about nothing of ours", FIREWALL, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 "
	 "quoting (tcp 10.0.0.2:4000 > 10.0.0.1:81)", NOT_ABOUT},
	{"the firewall: too big, to somebody else", FIREWALL, "icmp 192.0.2.9 > 10.0.0.3 type 3/4 "
	 "quoting (tcp 10.0.0.2:4000 > 10.0.0.1:80)", NOT_ABOUT},
	{"the firewall: a SYN", FIREWALL, "tcp 10.0.0.9:80 > 10.0.0.1:80 flags syn", DROPPED},
	{"the firewall: neighbours", FIREWALL, "nd fe80::1 > fe80::2",
	 LET_THROUGH(AX_REASON_NEIGHBOUR)},

	{"a later fragment of nothing", STATES, "udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=1111 sum", LATER_DROP("new")},
	{"an answer's first fragment", STATES, "udp 10.0.0.1:53 > 10.0.0.2:4000 frag first data "
	 "'xxxxxxxx' | 18=2222 sum", BY_PASS("est")},
	{"its later one", STATES, "udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx' | 18=2222 sum",
	 LATER_PASS},
	{"one of another datagram", STATES, "udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=2223 sum", LATER_DROP("new")},
	{"one of somebody else's", STATES, "udp 10.0.0.9 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=2222 sum", LATER_DROP("new")},
	{"one of another protocol", STATES, "tcp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx' | "
	 "18=2222 sum", LATER_DROP("new")},
	{"an unasked first fragment", STATES, "udp 10.0.0.1:54 > 10.0.0.2:4000 frag first data "
	 "'xxxxxxxx' | 18=3333 sum", BY_DROP("new")},
	{"and its later one", STATES, "udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxx' | 18=3333 sum",
	 LATER_DROP("new")},

	{"with other fields", OTHERS, "tcp 10.0.0.1:80 > 10.0.0.2:4000 flags ack", BY_PASS("tcp")},
	{"the same state by another protocol", OTHERS, "udp 10.0.0.1:53 > 10.0.0.2:4000", DROPPED},
	{"what an earlier rule decides", OTHERS, "tcp 10.0.0.1:80 > 10.0.0.2:4001 flags ack",
	 BY_DROP("first")},
	{"a new one that a later rule takes", OTHERS, "tcp 10.0.0.9:4 > 10.0.0.1:80 flags syn",
	 BY_PASS("web")},
	{"what pretends to be one", OTHERS, "tcp 10.0.0.9:4 > 10.0.0.1:80 flags ack", DROPPED},
	{"an error by the rules", ERRORS, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp "
	 "10.0.0.2:4000 > 10.0.0.1:80)", BY_PASS("rel")},
	{"one by the rules about nothing of ours", ERRORS, "icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting "
	 "(tcp 10.0.0.2:4000 > 10.0.0.1:81)", DROPPED},
};
/* The same of what leaves. */
static const struct row leaving[] = {
	{"a segment that leaves", STATES, "tcp 10.0.0.2:4000 > 10.0.0.1:80 flags ack",
	 BY_PASS("est")},
	{"on IPv6 that leaves", STATES, "tcp [fd00::2]:4000 > [fd00::1]:80 flags ack",
	 BY_PASS("est")},
	{"of its other end, to here", STATES, "tcp 10.0.0.1:80 > 10.0.0.2:4000 flags fin",
	 BY_PASS("est")},
	{"a SYN that leaves", STATES, "tcp 10.0.0.2:4001 > 10.0.0.1:80 flags syn", BY_DROP("new")},
	{"a listener's answer", STATES, "tcp 10.0.0.1:80 > 10.0.0.9:5 flags syn,ack",
	 BY_PASS("est")},
	{"a listener sends nothing else", STATES, "tcp 10.0.0.1:80 > 10.0.0.9:5 flags ack",
	 BY_DROP("inv")},
	{"an answer of nobody's", STATES, "tcp 10.0.0.1:81 > 10.0.0.9:5 flags syn,ack",
	 BY_DROP("inv")},
	{"a segment of nobody's", STATES, "tcp 10.0.0.2:4001 > 10.0.0.1:80 flags ack",
	 BY_DROP("inv")},
	{"that a port is closed", STATES, "tcp 10.0.0.2:4001 > 10.0.0.1:80 flags rst,ack",
	 BY_DROP("new")},
	{"a question by UDP", STATES, "udp 10.0.0.2:4000 > 10.0.0.1:53", BY_PASS("est")},
	{"what a UDP server sends", STATES, "udp 10.0.0.2:5353 > 10.0.0.9:53", BY_DROP("new")},
	{"too big, about what came", STATES, "icmp 10.0.0.2 > 10.0.0.1 type 3/4 quoting (tcp "
	 "10.0.0.1:80 > 10.0.0.2:4000)", BY_PASS("rel")},
	{"too big, about nothing", STATES, "icmp 10.0.0.2 > 10.0.0.1 type 3/4 quoting (tcp "
	 "10.0.0.1:81 > 10.0.0.2:4000)", BY_DROP("inv")},
	{"too big, to another one", STATES, "icmp 10.0.0.2 > 10.0.0.9 type 3/4 quoting (tcp "
	 "10.0.0.1:80 > 10.0.0.2:4000)", BY_DROP("inv")},
	{"what leaves: too big", FIREWALL, "icmp 10.0.0.2 > 10.0.0.1 type 3/4 quoting (tcp "
	 "10.0.0.1:80 > 10.0.0.2:4000)", LET_ERROR("est")},
	{"what leaves: too big, about nothing", FIREWALL, "icmp 10.0.0.2 > 10.0.0.1 type 3/4 "
	 "quoting (tcp 10.0.0.1:81 > 10.0.0.2:4000)", NOT_ABOUT},
	{"an answer's first fragment that leaves", STATES, "udp 10.0.0.2:4000 > 10.0.0.1:53 frag "
	 "first data 'xxxxxxxx' | 18=2222 sum", BY_PASS("est")},
	{"its later one that leaves", STATES, "udp 10.0.0.2 > 10.0.0.1 frag later data 'xxxxxxxx' | "
	 "18=2222 sum", LATER_PASS},
	{"ARP that leaves has none", STATES, "arp 10.0.0.1 > 10.0.0.2", LET_THROUGH(AX_REASON_ARP)},
};
/* clang-format on */

/* --- the sockets --- */

static int endpoint(int type, const char *addr, uint16_t port, const char *to, uint16_t to_port)
{
	struct sockaddr_storage ss;
	struct ax_addr a = ns_addr(addr);
	int one = 1, fd = socket(addr_is_v4(&a) ? AF_INET : AF_INET6, type | SOCK_CLOEXEC, 0);
	socklen_t len = addr_to_sockaddr(&a, htons(port), &ss);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&ss, len), 0);
	if (!to)
		return fd;
	a = ns_addr(to);
	len = addr_to_sockaddr(&a, htons(to_port), &ss);
	/* an address that was just added may take a moment */
	for (int i = 0; connect(fd, (struct sockaddr *)&ss, len) < 0; i++) {
		if (i == 100)
			fail_msg("connecting to %s: %s", to, strerror(errno));
		usleep(100000);
	}
	return fd;
}

static int listener(const char *addr, uint16_t port, int backlog)
{
	int fd = endpoint(SOCK_STREAM, addr, port, NULL, 0);

	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static int setup(void **state)
{
	if (filter_setup(state))
		return -1;
	if (system("for a in 10.0.0.1/32 10.0.0.2/32; do ip addr add $a dev lo || exit 1; done; "
		   "echo 0 >/proc/sys/net/ipv6/conf/lo/disable_ipv6; "
		   "for a in fd00::1/128 fd00::2/128; do ip addr add $a dev lo nodad || exit 1; "
		   "done"))
		return -1;
	/* they stay open until the test ends */
	listener("10.0.0.1", 80, 8);
	listener("fd00::1", 80, 8);
	endpoint(SOCK_STREAM, "10.0.0.2", 4000, "10.0.0.1", 80);
	endpoint(SOCK_STREAM, "fd00::2", 4000, "fd00::1", 80);
	endpoint(SOCK_DGRAM, "10.0.0.2", 4000, "10.0.0.1", 53);
	endpoint(SOCK_DGRAM, "fd00::2", 4000, "fd00::1", 53);
	endpoint(SOCK_DGRAM, "10.0.0.2", 5353, NULL, 0);
	endpoint(SOCK_DGRAM, "0.0.0.0", 4002, NULL, 0);
	return 0;
}

static void test_row(void **state)
{
	const struct row *row = *state;

	filter_load_once(row->list);
	judge(row->packet, &row->x);
}

static void test_leaving(void **state)
{
	if (filter.direction != DIRECTION_EGRESS)
		filter_to_egress(state);
	test_row(state);
	filter_to_ingress(state);
}

/* --- what comes and goes --- */

static void wait_state(int fd, int want)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(getsockopt(fd, SOL_TCP, TCP_INFO, &info, &len), 0);
		if (info.tcpi_state == want)
			return;
		usleep(10000);
	}
	fail_msg("the connection is in state %d, not %d", info.tcpi_state, want);
}

/* A connection that is over may be followed by another with the same ends: its SYN is a new one's,
 * as every SYN is.
 */
static void a_syn_after_the_end_is_new(void **state)
{
	int l = listener("10.0.0.1", 90, 8), c, s;

	(void)state;
	c = endpoint(SOCK_STREAM, "10.0.0.2", 4090, "10.0.0.1", 90);
	s = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	assert_true(s >= 0);
	filter_load_once(STATES);
	judge("tcp 10.0.0.1:90 > 10.0.0.2:4090 flags syn", &(struct expect)BY_DROP("new"));
	assert_int_equal(shutdown(c, SHUT_WR), 0);
	wait_state(s, TCP_CLOSE_WAIT);
	judge("tcp 10.0.0.1:90 > 10.0.0.2:4090 flags ack", &(struct expect)BY_PASS("est"));
	close(s);
	wait_state(c, TCP_CLOSE); /* what is left of it is in time wait */
	close(c);
	judge("tcp 10.0.0.1:90 > 10.0.0.2:4090 flags ack", &(struct expect)BY_PASS("est"));
	judge("tcp 10.0.0.1:90 > 10.0.0.2:4090 flags syn", &(struct expect)BY_DROP("new"));
	close(l);
	judge("tcp 10.0.0.1:90 > 10.0.0.9:4090 flags ack", &(struct expect)BY_DROP("inv"));
}

static uint64_t runs_of(int prog)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(prog, &info, &len), 0);
	return info.run_cnt;
}

/* What programs of this namespace do for who connects (count, take a service's next backend), they
 * do when the SYN has come in. */
static void no_program_chooses_a_socket_for_a_syn(void **state)
{
	const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = SK_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_SK_LOOKUP);
	autoclose int prog = bpf_prog_load(BPF_PROG_TYPE_SK_LOOKUP, "chooses", "GPL", pass,
					   ARRAY_SIZE(pass), &o);
	autoclose int netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	autoclose int link = bpf_link_create(prog, netns, BPF_SK_LOOKUP, NULL);
	autoclose int counting = bpf_enable_stats(BPF_STATS_RUN_TIME);

	(void)state;
	assert_true(prog >= 0 && netns >= 0 && link >= 0 && counting >= 0);
	filter_load_once(STATES);
	judge("tcp 10.0.0.9:80 > 10.0.0.1:80 flags syn", &(struct expect)BY_DROP("new"));
	judge("tcp 10.0.0.1:80 > 10.0.0.2:4000 flags ack", &(struct expect)BY_PASS("est"));
	assert_int_equal(runs_of(prog), 0);
	/* it is there */
	judge("tcp 10.0.0.9:80 > 10.0.0.1:80 flags ack", &(struct expect)BY_DROP("inv"));
	assert_true(runs_of(prog) > 0);
}

/* The socket of an exposed port may be an app's: not found from here. */
static void errors_about_exposed_ports_are_not_invalid(void **state)
{
	(void)state;
	filter_load(APPS);
	filter_expose("10.0.0.2", NULL, IPPROTO_TCP, 443, 0);
	judge("icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp 10.0.0.2:443 > 192.0.2.1:5)",
	      &(struct expect)LET_ERROR("default"));
	judge("icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (tcp 10.0.0.2:444 > 192.0.2.1:5)",
	      &(struct expect)BY_DROP("inv"));
}

static void arp_is_of_no_state_whatever_is_said(void **state)
{
	const struct xdp_assumed as = {.state = AX_STATE_ESTABLISHED, .minute = AX_TIME_UNKNOWN};
	struct xdp_explanation r;
	struct frame_bytes f;
	struct error e = {0};

	(void)state;
	filter_load(STATES);
	read_frame("arp 10.0.0.1 > 10.0.0.2", &f);
	if (xdp_explain_as(filter.x, f.b, f.len, &as, &r, &e))
		fail_msg("%s", e.text);
	assert_int_equal(r.x.state, AX_STATE_NONE);
	assert_int_equal(r.x.reason, AX_REASON_ARP);
	xdp_explanation_free(&r);
}

/* As soon as a socket is closed, nothing is established any more. */
static void a_closed_udp_socket_is_forgotten(void **state)
{
	int fd = endpoint(SOCK_DGRAM, "10.0.0.2", 4091, "10.0.0.1", 53);

	(void)state;
	filter_load_once(STATES);
	judge("udp 10.0.0.1:53 > 10.0.0.2:4091", &(struct expect)BY_PASS("est"));
	close(fd);
	judge("udp 10.0.0.1:53 > 10.0.0.2:4091", &(struct expect)BY_DROP("new"));
}

/* Whether programs on packets can ask connection tracking, by what the kernel says of itself: ax's
 * own list may also lack it because the verifier refused the first try. */
static bool kernel_lets_ask_conntrack(void)
{
	struct btf *kernel = btf__load_vmlinux_btf(), *module;
	bool found;

	assert_non_null(kernel);
	module = btf__load_module_btf("nf_conntrack", kernel);
	found = btf__find_by_name_kind(module ? module : kernel, "bpf_xdp_ct_lookup",
				       BTF_KIND_FUNC) > 0;
	btf__free(module);
	btf__free(kernel);
	return found;
}

/* Connection tracking's flows are the kernel's: a socket that is not connected has its answers once
 * something tracks what it sends. */
static void tracked_flows_are_established(void **state)
{
	struct sockaddr_storage ss;
	struct ax_addr to = ns_addr("10.0.0.1");
	socklen_t len = addr_to_sockaddr(&to, htons(7777), &ss);
	int fd, server, tracking;
	char b;

	(void)state;
	tracking = system("nft add table inet t && nft add chain inet t c "
			  "'{ type filter hook output priority 0; }' && nft add rule inet t c ct "
			  "state new counter");
	if (access("/sys/module/nf_conntrack", F_OK)) {
		print_message("SKIP: missing kernel feature nf_conntrack\n");
		skip();
	}
	assert_int_equal(tracking, 0);
	filter_load(STATES);
	if (!kernel_lets_ask_conntrack()) {
		assert_false(filter.g.layout.conntrack);
		print_message("SKIP: missing kernel feature bpf_xdp_ct_lookup\n");
		skip();
	}
	assert_true(filter.g.layout.conntrack);
	fd = endpoint(SOCK_DGRAM, "10.0.0.2", 4092, NULL, 0);
	server = endpoint(SOCK_DGRAM, "10.0.0.1", 7777, NULL, 0);
	judge("udp 10.0.0.1:7777 > 10.0.0.2:4092", &(struct expect)BY_DROP("new"));
	assert_int_equal(sendto(fd, "q", 1, 0, (struct sockaddr *)&ss, len), 1);
	assert_int_equal(recv(server, &b, 1, 0), 1);
	judge("udp 10.0.0.1:7777 > 10.0.0.2:4092", &(struct expect)BY_PASS("est"));
	/* the same that was sent: it has not been answered */
	judge("udp 10.0.0.2:4092 > 10.0.0.1:7777", &(struct expect)BY_DROP("new"));
	judge("udp 10.0.0.1:7778 > 10.0.0.2:4092", &(struct expect)BY_DROP("new"));
	judge("icmp 192.0.2.9 > 10.0.0.2 type 3/4 quoting (udp 10.0.0.2:4092 > 10.0.0.1:7777)",
	      &(struct expect)BY_PASS("rel"));
	filter_to_egress(NULL);
	filter_load(STATES);
	assert_true(filter.g.layout.conntrack);
	judge("udp 10.0.0.1:7777 > 10.0.0.2:4092", &(struct expect)BY_PASS("est"));
	judge("udp 10.0.0.2:4092 > 10.0.0.1:7777", &(struct expect)BY_DROP("new"));
	judge("icmp 10.0.0.1 > 10.0.0.2 type 3/3 quoting (udp 10.0.0.2:4092 > 10.0.0.1:7777)",
	      &(struct expect)BY_PASS("rel"));
	filter_to_ingress(NULL);
	close(fd);
	close(server);
	assert_int_equal(system("nft delete table inet t"), 0);
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_SIZE(rows) + ARRAY_SIZE(leaving) + 6];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(leaving); i++)
		tests[n++] = (struct CMUnitTest){.name = leaving[i].name,
						 .test_func = test_leaving,
						 .initial_state = (void *)(uintptr_t)&leaving[i]};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		tests[n++] = (struct CMUnitTest){.name = rows[i].name,
						 .test_func = test_row,
						 .initial_state = (void *)(uintptr_t)&rows[i]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_syn_after_the_end_is_new);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_program_chooses_a_socket_for_a_syn);
	tests[n++] =
		(struct CMUnitTest)cmocka_unit_test(errors_about_exposed_ports_are_not_invalid);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(arp_is_of_no_state_whatever_is_said);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_closed_udp_socket_is_forgotten);
	tests[n] = (struct CMUnitTest)cmocka_unit_test(tracked_flows_are_established);
	return cmocka_run_group_tests(tests, setup, filter_teardown);
}
