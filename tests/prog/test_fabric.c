/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* The programs between apps and the host, in the kernel: bytes in, verdict and counter out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/virtio_net.h>

#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "tests/lib/fabric_world.h"
#include "tests/lib/frame_build.h"
#include "tests/lib/instance.h"
#include "tests/lib/netns.h"
#include "tests/lib/random.h"

#define DNS_PORT     5353
#define RANDOM_TIMES 20000
#define EXTENSIONS   8 /* IPv6 extension headers that the parser follows */
#define NONE	     (-1)
#define ECHO_REQUEST (8 << 8) /* type and code, where TCP and UDP have the source port */

/* Short names of the counters that the rows below speak of. */
enum {
	SOURCE = AX_COUNT_FABRIC_SOURCE,
	REFUSED = AX_COUNT_FABRIC_DENIED,
	MALFORMED = AX_COUNT_FABRIC_MALFORMED,
	NO_EGRESS = AX_COUNT_NO_EGRESS,
};

enum direction { FROM, TO };

struct row {
	const char *name;
	enum direction direction;
	enum who src, dst;
	struct frame frame;
	int verdict;
	int counter; /* NONE: none counts */
	bool host_access;
	int only; /* 4, 6: this family alone */
};

/* clang-format off */
#define TCP(f)	      {.proto = IPPROTO_TCP, .flags = (f)}
#define UDP	      {.proto = IPPROTO_UDP}
#define PING	      {.proto = IPPROTO_ICMP}
#define ECHO	      {.proto = IPPROTO_ICMP, .sport = ECHO_REQUEST}
#define SEGMENT(...)  {.proto = IPPROTO_TCP, __VA_ARGS__}
#define DATAGRAM(...) {.proto = IPPROTO_UDP, __VA_ARGS__}
#define PASS	      TC_ACT_OK, .counter = NONE
#define PEERS	      TC_ACT_REDIRECT, .counter = NONE /* to the peer's device */
#define IGNORE	      TC_ACT_SHOT, .counter = NONE
#define DROP(c)	      TC_ACT_SHOT, .counter = (c)
#define TOLD(c)	      TC_ACT_REDIRECT, .counter = (c) /* back, as an error */
#define OPEN	      .host_access = true
#define IPV4	      .only = 4
#define IPV6	      .only = 6

static const struct row rows[] = {
	/* who may talk to whom */
	{"SYN to an app", FROM, APP, PEER, TCP(SYN), PEERS},
	{"datagram to an app", FROM, APP, PEER, UDP, PEERS},
	{"ping to an app", FROM, APP, PEER, PING, PEERS},
	{"SYN to itself", FROM, APP, APP, TCP(SYN), PEERS},
	{"SYN to a host-mode app", FROM, APP, HOSTED, TCP(SYN), PASS},
	{"SYN to a declared app", FROM, APP, DECLARED, TCP(SYN), PASS},
	{"SYN to the host", FROM, APP, HOST, TCP(SYN), DROP(NO_EGRESS)},
	{"SYN to the host, egress", FROM, EGRESS, HOST, TCP(SYN), PASS},
	{"answer to the host, which has not asked", FROM, APP, HOST, TCP(SYN | ACK),
	 DROP(NO_EGRESS)},
	{"ping to the host", FROM, STRANGER, HOST, PING, PASS},
	{"datagram to the host", FROM, STRANGER, HOST, UDP, DROP(NO_EGRESS)},
	{"no shared label, SYN", FROM, APP, STRANGER, TCP(SYN), DROP(REFUSED)},
	{"no shared label, ACK", FROM, APP, STRANGER, TCP(ACK), DROP(REFUSED)},
	{"no shared label, RST", FROM, APP, STRANGER, TCP(RST), DROP(REFUSED)},
	{"no shared label, datagram", FROM, APP, STRANGER, UDP, DROP(REFUSED)},
	{"no shared label, ping", FROM, APP, STRANGER, PING, DROP(REFUSED)},
	{"no shared label, later fragment", FROM, APP, STRANGER, SEGMENT(.offset = 10),
	 DROP(REFUSED)},
	{"no shared label, host mode", FROM, STRANGER, HOSTED, TCP(SYN), DROP(REFUSED)},
	{"deny rule, SYN", FROM, APP, DENIED, TCP(SYN), DROP(REFUSED)},
	{"deny rule, no flags", FROM, APP, DENIED, TCP(0), DROP(REFUSED)},
	{"deny rule, FIN", FROM, APP, DENIED, TCP(FIN), DROP(REFUSED)},
	{"deny rule, the other way", FROM, DENIED, APP, TCP(SYN), PEERS},
	{"deny rule, SYN+ACK to the other way", FROM, APP, DENIED, TCP(SYN | ACK), PEERS},
	{"deny rule, ACK to the other way", FROM, APP, DENIED, TCP(ACK), PEERS},
	{"deny rule, RST to the other way", FROM, APP, DENIED, TCP(RST), PEERS},
	{"deny rule, datagram", FROM, APP, DENIED, UDP, DROP(REFUSED)},
	{"deny rule, ping", FROM, APP, DENIED, PING, DROP(REFUSED)},
	{"no shared label, echo request", FROM, APP, STRANGER, ECHO, TOLD(REFUSED)},
	{"no egress, echo request", FROM, APP, OUTSIDE, ECHO, TOLD(NO_EGRESS)},
	{"echo request with much in it", FROM, APP, STRANGER,
	 {.proto = IPPROTO_ICMP, .sport = ECHO_REQUEST, .payload = 200}, TOLD(REFUSED)},
	{"first fragment of an echo request", FROM, APP, STRANGER,
	 {.proto = IPPROTO_ICMP, .sport = ECHO_REQUEST, .frag = MORE, .payload = 8}, DROP(REFUSED)},
	{"allow rule", FROM, APP, FRIEND, TCP(SYN), PEERS},
	{"allow rule, the other way", FROM, FRIEND, APP, TCP(SYN), DROP(REFUSED)},
	{"allow rule, answer", FROM, FRIEND, APP, TCP(SYN | ACK), PEERS},
	{"allow rule, datagram of who was not asked", FROM, FRIEND, APP, UDP, DROP(REFUSED)},
	{"allow rule, answer to a ping", FROM, FRIEND, APP, PING, PEERS},

	/* the source */
	{"source of nobody", FROM, OUTSIDE, PEER, TCP(SYN), DROP(SOURCE)},
	{"source of a host-mode app", FROM, HOSTED, PEER, TCP(SYN), DROP(SOURCE)},
	{"source of the host", FROM, HOST, PEER, TCP(SYN), DROP(SOURCE)},
	{"source of the host, to the outside", FROM, HOST, OUTSIDE, TCP(ACK), DROP(SOURCE)},
	{"mapped source", FROM, MAPPED, PEER, TCP(SYN), DROP(MALFORMED), IPV6},
	{"mapped destination", FROM, PEER, MAPPED, TCP(SYN), DROP(MALFORMED), IPV6},

	/* outside */
	{"no egress, SYN", FROM, APP, OUTSIDE, TCP(SYN), DROP(NO_EGRESS)},
	{"no egress, ACK", FROM, APP, OUTSIDE, TCP(ACK), DROP(NO_EGRESS)},
	{"no egress, RST", FROM, APP, OUTSIDE, TCP(RST), DROP(NO_EGRESS)},
	{"no egress, datagram", FROM, APP, OUTSIDE, UDP, DROP(NO_EGRESS)},
	{"no egress, ping", FROM, APP, OUTSIDE, PING, DROP(NO_EGRESS)},
	{"no egress, broadcast", FROM, APP, BROADCAST, UDP, DROP(NO_EGRESS), IPV4},
	{"egress, SYN", FROM, EGRESS, OUTSIDE, TCP(SYN), PASS},
	{"egress, datagram", FROM, EGRESS, OUTSIDE, UDP, PASS},
	{"egress, multicast", FROM, EGRESS, MULTICAST, UDP, IGNORE},
	{"multicast", FROM, APP, MULTICAST, UDP, IGNORE},

	/* not IP, or not well formed */
	{"ARP", FROM, APP, PEER, SEGMENT(.ethertype = ETH_P_ARP), IGNORE},
	{"VLAN tag", FROM, APP, PEER, SEGMENT(.ethertype = ETH_P_8021Q), IGNORE},
	{"version 6", FROM, APP, PEER, SEGMENT(.version = 6), DROP(MALFORMED), IPV4},
	{"version 4", FROM, APP, PEER, SEGMENT(.version = 4), DROP(MALFORMED), IPV6},
	{"version 15", FROM, APP, PEER, SEGMENT(.version = 15), DROP(MALFORMED)},
	{"IHL of 4", FROM, APP, PEER, SEGMENT(.ihl = 4), DROP(MALFORMED), IPV4},
	{"IHL of 1", FROM, APP, PEER, SEGMENT(.ihl = 1), DROP(MALFORMED), IPV4},
	{"IHL beyond the packet", FROM, APP, PEER, SEGMENT(.ihl = 15, .total = 100),
	 DROP(MALFORMED), IPV4},
	{"IHL beyond the length", FROM, APP, PEER, SEGMENT(.ihl = 15, .payload = 100, .total = 39),
	 DROP(MALFORMED), IPV4},
	{"segment that is cut off", FROM, APP, OUTSIDE, SEGMENT(.flags = ACK, .cut = 14 + 20 + 19),
	 DROP(MALFORMED), IPV4},
	{"segment that is cut off", FROM, APP, OUTSIDE, SEGMENT(.flags = ACK, .cut = 14 + 40 + 19),
	 DROP(MALFORMED), IPV6},
	{"segment in padding", FROM, APP, OUTSIDE, SEGMENT(.flags = ACK, .total = 19),
	 DROP(MALFORMED)},
	{"segment of a header alone", FROM, APP, DENIED, SEGMENT(.flags = ACK, .total = 20), PEERS},
	{"answer in padding", FROM, APP, DENIED, SEGMENT(.flags = ACK, .total = 1),
	 DROP(MALFORMED)},
	{"extension header in padding", FROM, APP, PEER, SEGMENT(.options = 1, .total = -4),
	 DROP(MALFORMED), IPV6},
	{"length of 0, ACK", FROM, APP, DENIED, SEGMENT(.flags = ACK, .total = TOTAL_ZERO), PEERS},
	{"length of 0, SYN", FROM, APP, DENIED, SEGMENT(.flags = SYN, .total = TOTAL_ZERO),
	 DROP(REFUSED)},
	{"length of 0, data", FROM, APP, PEER,
	 SEGMENT(.flags = ACK, .payload = 200, .total = TOTAL_ZERO), PEERS},
	{"an option", FROM, APP, DENIED, SEGMENT(.flags = ACK, .options = 1), PEERS},
	{"an option, SYN", FROM, APP, DENIED, SEGMENT(.flags = SYN, .options = 1), DROP(REFUSED)},
	{"all IPv4 options", FROM, APP, DENIED, SEGMENT(.flags = ACK, .options = 10), PEERS, IPV4},
	{"all IPv4 options, SYN", FROM, APP, DENIED, SEGMENT(.flags = SYN, .options = 10),
	 DROP(REFUSED), IPV4},

	/* fragments */
	{"first fragment", FROM, APP, PEER, SEGMENT(.flags = SYN, .frag = MORE), PEERS},
	{"first fragment, SYN to a deny rule", FROM, APP, DENIED,
	 SEGMENT(.flags = SYN, .frag = MORE), DROP(REFUSED)},
	{"first fragment, SYN to the outside", FROM, APP, OUTSIDE,
	 SEGMENT(.flags = SYN, .frag = MORE), DROP(NO_EGRESS)},
	{"first fragment, ACK to the outside", FROM, APP, OUTSIDE,
	 SEGMENT(.flags = ACK, .frag = MORE), DROP(NO_EGRESS)},
	{"first fragment without the flags", FROM, APP, DENIED,
	 SEGMENT(.flags = ACK, .frag = MORE, .total = 8), DROP(MALFORMED)},
	{"first fragment without the flags, to a peer", FROM, APP, PEER,
	 SEGMENT(.flags = ACK, .frag = MORE, .total = 8), DROP(MALFORMED)},
	{"first fragment without the ports, to a peer", FROM, APP, PEER,
	 DATAGRAM(.frag = MORE, .total = 4), DROP(MALFORMED)},
	{"later fragment", FROM, APP, PEER, SEGMENT(.offset = 10, .frag = MORE), PEERS},
	{"last fragment", FROM, APP, PEER, SEGMENT(.offset = 10), PEERS},
	{"later fragment to a deny rule", FROM, APP, DENIED, SEGMENT(.offset = 10), PEERS},
	{"later fragment to the outside", FROM, APP, OUTSIDE, SEGMENT(.offset = 10),
	 DROP(NO_EGRESS)},
	{"later fragment of a datagram", FROM, APP, OUTSIDE, DATAGRAM(.offset = 10),
	 DROP(NO_EGRESS)},
	{"fragment header of a whole SYN", FROM, APP, DENIED,
	 SEGMENT(.flags = SYN, .frag_header = true), DROP(REFUSED), IPV6},
	{"fragment header of a whole ACK", FROM, APP, DENIED,
	 SEGMENT(.flags = ACK, .frag_header = true), PEERS, IPV6},
	{"fragment behind extension headers", FROM, APP, DENIED,
	 SEGMENT(.flags = SYN, .options = 3, .frag = MORE), DROP(REFUSED), IPV6},
	{"fragment header in a fragment", FROM, APP, DENIED,
	 SEGMENT(.flags = SYN, .options = 2, .ext = IPPROTO_FRAGMENT), DROP(REFUSED), IPV6},

	/* to an app */
	{"host-mode app's SYN", TO, HOSTED, APP, TCP(SYN), PASS},
	{"host-mode app's datagram", TO, HOSTED, APP, UDP, PASS},
	{"SYN of a private app, by the wrong door", TO, APP, PEER, TCP(SYN), DROP(SOURCE)},
	{"answer of a private app, by the wrong door", TO, APP, PEER, TCP(ACK), DROP(SOURCE)},
	{"no shared label, SYN", TO, HOSTED, STRANGER, TCP(SYN), DROP(REFUSED)},
	{"no shared label, SYN, host access", TO, HOSTED, STRANGER, TCP(SYN), DROP(REFUSED), OPEN},
	{"no shared label, SYN in a fragment", TO, HOSTED, STRANGER,
	 SEGMENT(.flags = SYN, .frag = MORE), DROP(REFUSED)},
	{"host's SYN, no host access", TO, HOST, APP, TCP(SYN), DROP(REFUSED)},
	{"host's SYN, host access", TO, HOST, APP, TCP(SYN), PASS, OPEN},
	{"host's SYN in a fragment, no host access", TO, HOST, APP,
	 SEGMENT(.flags = SYN, .frag = MORE), DROP(REFUSED)},
	{"host's answer, no host access", TO, HOST, APP, TCP(SYN | ACK), PASS},
	{"host's datagram, no host access", TO, HOST, APP, UDP, DROP(REFUSED)},
	{"host's datagram, host access", TO, HOST, APP, UDP, PASS, OPEN},
	{"host's ping, no host access", TO, HOST, APP, PING, DROP(REFUSED)},
	{"DNS answer, no host access", TO, HOST, APP, DATAGRAM(.sport = DNS_PORT), PASS},
	{"DNS answer with options, no host access", TO, HOST, APP,
	 DATAGRAM(.sport = DNS_PORT, .options = 2), PASS},
	{"DNS answer by TCP, no host access", TO, HOST, APP,
	 SEGMENT(.flags = ACK, .sport = DNS_PORT), PASS},
	{"DNS answer of the outside, no host access", TO, OUTSIDE, APP,
	 DATAGRAM(.sport = DNS_PORT), DROP(REFUSED)},
	{"DNS port in padding, no host access", TO, HOST, APP,
	 DATAGRAM(.sport = DNS_PORT, .total = 7), DROP(MALFORMED)},
	{"DNS port in a later fragment, no host access", TO, HOST, APP,
	 DATAGRAM(.sport = DNS_PORT, .offset = 3), DROP(REFUSED)},
	{"outside's SYN, no host access", TO, OUTSIDE, APP, TCP(SYN), DROP(REFUSED)},
	{"outside's SYN, host access", TO, OUTSIDE, APP, TCP(SYN), PASS, OPEN},
	{"outside's datagram, egress, not asked", TO, OUTSIDE, EGRESS, UDP, DROP(REFUSED)},
	{"address of nobody", TO, HOST, OUTSIDE, TCP(SYN), DROP(REFUSED), OPEN},
	{"multicast", TO, HOST, MULTICAST, UDP, IGNORE, OPEN},
	{"ARP", TO, HOST, APP, SEGMENT(.ethertype = ETH_P_ARP), IGNORE, OPEN},
	{"version 15", TO, HOST, APP, SEGMENT(.version = 15), DROP(MALFORMED), OPEN},
};
/* clang-format on */

static void set_ctl(bool host_access, unsigned rule_set)
{
	struct ax_ctl c = {.host4 = world.addr[HOST][0],
			   .host6 = world.addr[HOST][1],
			   .dns_port_be = htons(DNS_PORT),
			   .host_access = host_access,
			   .rule_set = rule_set};

	assert_int_equal(datapath_ctl_set(world.dp, &c), 0);
}

static void set_host_access(bool on)
{
	set_ctl(on, 0);
}

/* A negative errno, or 0 with the verdict. (To an app UNSPEC passes: others judge it, too.) */
static int run(enum direction d, unsigned ifindex, const uint8_t *p, size_t n, uint32_t *verdict)
{
	struct __sk_buff skb = {.ifindex = ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p, .data_size_in = (uint32_t)n, .ctx_in = &skb,
		    .ctx_size_in = sizeof(skb), .repeat = 1);
	int r = bpf_prog_test_run_opts(d == FROM ? world.from_app : world.to_app, &o);

	*verdict = o.retval == (d == TO ? UINT32_MAX : 0) ? TC_ACT_OK : o.retval ? o.retval : -1u;
	return r < 0 ? -errno : 0;
}

/* Exactly this counter went up by one. */
static void check_counters(const uint64_t before[AX_COUNTERS], int counter)
{
	uint64_t after[AX_COUNTERS];

	assert_int_equal(datapath_counters(world.dp, after), 0);
	for (int i = 0; i < AX_COUNTERS; i++)
		if (after[i] - before[i] != (i == counter))
			fail_msg("counter %s: %d more, not %d", datapath_counter_name((unsigned)i),
				 (int)(after[i] - before[i]), i == counter);
}

static void check_frame(const struct row *row, const struct frame *f, int v6)
{
	enum who port = row->direction == FROM ? row->src : row->dst;
	unsigned device = world.device[port < PRIVATE ? port : APP];
	uint64_t before[AX_COUNTERS];
	struct frame frame = *f;
	uint8_t p[FRAME_BUILT_MAX];
	uint32_t verdict;
	size_t n;

	if (frame.proto == IPPROTO_ICMP && v6)
		frame.proto = IPPROTO_ICMPV6;
	if (frame.proto == IPPROTO_ICMPV6 && frame.sport == ECHO_REQUEST)
		frame.sport = 128 << 8;
	n = put_frame(p, &frame, v6, &world.addr[row->src][v6], &world.addr[row->dst][v6]);
	set_host_access(row->host_access);
	assert_int_equal(datapath_counters(world.dp, before), 0);
	assert_int_equal(run(row->direction, device, p, n, &verdict), 0);
	if ((int)verdict != row->verdict)
		fail_msg("verdict %d, not %d", (int)verdict, row->verdict);
	check_counters(before, row->counter);
}

static void test_row4(void **state)
{
	const struct row *row = *state;

	check_frame(row, &row->frame, 0);
}

static void test_row6(void **state)
{
	const struct row *row = *state;

	check_frame(row, &row->frame, 1);
}

/* A packet with the address of the app on another device. */
static void test_source_of_another_device(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		const struct frame f = TCP(SYN);
		uint64_t before[AX_COUNTERS];
		uint8_t p[FRAME_BUILT_MAX];
		size_t n = put_frame(p, &f, v6, &world.addr[PEER][v6], &world.addr[APP][v6]);
		uint32_t verdict;

		assert_int_equal(datapath_counters(world.dp, before), 0);
		assert_int_equal(run(FROM, world.device[APP], p, n, &verdict), 0);
		assert_int_equal(verdict, TC_ACT_SHOT);
		check_counters(before, SOURCE);
		assert_int_equal(run(FROM, world.device[PEER], p, n, &verdict), 0);
		assert_int_equal(verdict, TC_ACT_REDIRECT);
	}
}

/* In the other set rule 0 allows and rule 1 denies: one number of ctl turns all verdicts at once.
 */
static void test_the_set_of_rules_that_holds(void **state)
{
	static const struct {
		enum who dst;
		uint32_t verdict[AX_RULE_SETS];
	} to[] = {{DENIED, {TC_ACT_SHOT, TC_ACT_REDIRECT}},
		  {FRIEND, {TC_ACT_REDIRECT, TC_ACT_SHOT}},
		  {PEER, {TC_ACT_REDIRECT, TC_ACT_REDIRECT}},
		  {STRANGER, {TC_ACT_SHOT, TC_ACT_SHOT}}};
	const struct frame f = TCP(SYN);

	(void)state;
	for (unsigned set = 0; set < AX_RULE_SETS; set++) {
		set_ctl(false, set);
		for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
			uint8_t p[FRAME_BUILT_MAX];
			size_t n =
				put_frame(p, &f, 0, &world.addr[APP][0], &world.addr[to[i].dst][0]);
			uint32_t verdict;

			assert_int_equal(run(FROM, world.device[APP], p, n, &verdict), 0);
			assert_int_equal(verdict, to[i].verdict[set]);
		}
	}
}

/* One datagram after the other: who was asked answers, at the port from which he was, and nobody
 * else does; later fragments go with their first one. */
static void test_answers(void **state)
{
#define UDP_PORTS(s, d) DATAGRAM(.sport = (s), .dport = (d))
	static const struct row steps[] = {
		{"", FROM, FRIEND, APP, UDP_PORTS(53, 4000), DROP(REFUSED)},
		{"", FROM, APP, FRIEND, UDP_PORTS(4000, 53), PEERS},
		{"", FROM, FRIEND, APP, UDP_PORTS(53, 4000), PEERS},
		{"", FROM, FRIEND, APP, DATAGRAM(.offset = 3), PEERS},
		{"", FROM, FRIEND, APP, UDP_PORTS(53, 4001), DROP(REFUSED)},
		{"", TO, OUTSIDE, EGRESS, UDP_PORTS(53, 4000), DROP(REFUSED)},
		{"", FROM, EGRESS, OUTSIDE, UDP_PORTS(4000, 53), PASS},
		{"", TO, OUTSIDE, EGRESS, UDP_PORTS(53, 4000), PASS},
		{"", TO, OUTSIDE, EGRESS, UDP_PORTS(53, 7000), DROP(REFUSED)},
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(steps); i++)
		check_frame(&steps[i / 2], &steps[i / 2].frame, i % 2);
}

/* More questions than an app has room for: it is its own that are forgotten. */
static void test_answers_of_others_are_kept(void **state)
{
	static const struct row other[] = {{"", FROM, APP, FRIEND, UDP_PORTS(4000, 53), PEERS},
					   {"", FROM, FRIEND, APP, UDP_PORTS(53, 4000), PEERS}};
	struct row flood = {"", FROM, EGRESS, OUTSIDE, UDP, PASS};

	(void)state;
	check_frame(&other[0], &other[0].frame, 0);
	for (flood.frame.sport = 20000; flood.frame.sport; flood.frame.sport--)
		check_frame(&flood, &flood.frame, 0);
	check_frame(&other[1], &other[1].frame, 0);
}

/* A service's device gets packets of programs outside ax, and of who makes his own: of the
 * service's backends, PEER and STRANGER, a label lets HOSTED have PEER alone. */
static void test_service_gives_what_policy_allows(void **state)
{
	const struct ax_vip service = {.kind = AX_VIP_SERVICE, .flags = AX_VIP_SERVICES};
	struct datapath_backend b[2] = {{.weight = 1}, {.weight = 1}};

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct ax_endpoint ep = {.port_be = htons(80), .proto = IPPROTO_TCP};
		uint8_t p[FRAME_BUILT_MAX], out[FRAME_BUILT_MAX];
		unsigned host = 0, dst = v6 ? 14 + 24 : 14 + 16, len = v6 ? 16 : 4;

		assert_int_equal(addr_parse(v6 ? "fd00::99" : "10.1.0.99", &ep.addr), 0);
		b[0].be.addr = world.addr[PEER][v6];
		b[1].be.addr = world.addr[STRANGER][v6];
		assert_int_equal(datapath_vip_set(world.dp, &ep.addr, &service), 0);
		assert_int_equal(datapath_service_set(
					 world.dp, &ep,
					 &(struct datapath_service){.strategy = AX_STRATEGY_RANDOM},
					 b, 2),
				 0);
		set_host_access(false);
		for (uint16_t port = 1000; port < 1100; port++) {
			const struct frame f = {
				.proto = IPPROTO_TCP, .flags = SYN, .sport = port, .dport = 80};
			size_t n = put_frame(p, &f, v6, &world.addr[HOSTED][v6], &ep.addr);
			struct __sk_buff skb = {.ifindex = world.device[APP]};
			LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p, .data_size_in = (uint32_t)n,
				    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &skb,
				    .ctx_size_in = sizeof(skb), .repeat = 1);

			assert_int_equal(bpf_prog_test_run_opts(world.to_service, &o), 0);
			assert_int_equal(o.retval, TC_ACT_REDIRECT);
			assert_memory_equal(out + dst, &world.addr[PEER][v6].b[16 - len], len);
			/* a program outside ax, which may not come in */
			put_frame(p, &f, v6, &world.addr[OUTSIDE][v6], &ep.addr);
			assert_int_equal(bpf_prog_test_run_opts(world.to_service, &o), 0);
			host += o.retval != TC_ACT_SHOT;
			/* a private app that has waited there comes by its own device alone */
			put_frame(p, &f, v6, &world.addr[APP][v6], &ep.addr);
			skb.ingress_ifindex = world.device[port % 2 ? APP : PEER];
			assert_int_equal(bpf_prog_test_run_opts(world.to_service, &o), 0);
			assert_int_equal(o.retval, port % 2 ? TC_ACT_REDIRECT : TC_ACT_SHOT);
			if (port % 2)
				assert_memory_equal(out + dst, &world.addr[PEER][v6].b[16 - len],
						    len);
			skb.ingress_ifindex = 0;
			assert_int_equal(bpf_prog_test_run_opts(world.to_service, &o), 0);
			assert_int_equal(o.retval, TC_ACT_SHOT);
		}
		assert_int_equal(host, 0);
	}
}

/* However many headers there are in front: no SYN gets past a rule, and what cannot be looked
 * through is dropped. */
static void test_extension_headers(void **state)
{
	static const uint8_t kinds[] = {IPPROTO_DSTOPTS, IPPROTO_HOPOPTS, IPPROTO_ROUTING};
	const struct row denied = {"", FROM, APP, DENIED, TCP(0), DROP(REFUSED)};
	const struct row answer = {"", FROM, APP, DENIED, TCP(0), PEERS};
	const struct row opened = {"", FROM, APP, PEER, TCP(0), PEERS};
	const struct row many = {"", FROM, APP, PEER, TCP(0), DROP(MALFORMED)};
	const struct row many_denied = {"", FROM, APP, DENIED, TCP(0), DROP(MALFORMED)};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (unsigned n = 0; n <= EXTENSIONS + 1; n++) {
			struct frame syn = SEGMENT(.flags = SYN, .options = n, .ext = kinds[k]);
			struct frame ack = SEGMENT(.flags = ACK, .options = n, .ext = kinds[k]);

			check_frame(n > EXTENSIONS ? &many_denied : &denied, &syn, 1);
			check_frame(n > EXTENSIONS ? &many_denied : &answer, &ack, 1);
			check_frame(n > EXTENSIONS ? &many : &opened, &syn, 1);
		}
	}
}

/* --- any bytes --- */

/* The kernel (6.18) runs programs on nothing shorter; packets on the wire may be. */
static size_t shortest(const uint8_t *p)
{
	uint16_t type;

	memcpy(&type, p + 12, sizeof(type));
	return type == htons(ETH_P_IP) ? 14 + 20 : type == htons(ETH_P_IPV6) ? 14 + 40 : 15;
}

/* Half of the frames are random behind the Ethernet header, half are frames of the table with some
 * bytes changed or a random end. */
static size_t random_frame(uint8_t p[FRAME_BUILT_MAX])
{
	const struct row *row = &rows[random_number() % ARRAY_SIZE(rows)];
	uint32_t v6 = random_number() % 2;
	uint16_t type = htons(v6 ? ETH_P_IPV6 : ETH_P_IP);
	size_t n, min;

	for (size_t i = 0; i < FRAME_BUILT_MAX; i++)
		p[i] = (uint8_t)random_number();
	if (random_number() % 2) {
		memcpy(p + 12, &type, sizeof(type));
		return shortest(p) + random_number() % 200;
	}
	n = put_frame(p, &row->frame, (int)v6, &world.addr[row->src][v6],
		      &world.addr[row->dst][v6]);
	for (uint32_t i = random_number() % 6; i; i--)
		p[random_number() % n] = (uint8_t)random_number();
	min = shortest(p);
	if (n > min && random_number() % 4 == 0)
		n = min + random_number() % (n - min);
	return n < min ? min : n;
}

static void test_any_bytes(void **state)
{
	unsigned verdicts[TC_ACT_REDIRECT + 1] = {0};

	(void)state;
	random_state = 1;
	set_host_access(false);
	for (int i = 0; i < RANDOM_TIMES; i++) {
		bool any = random_number() % 4 == 0;
		unsigned device = world.device[any ? random_number() % PRIVATE : APP];
		uint8_t p[FRAME_BUILT_MAX];
		size_t n = random_frame(p);

		for (int d = FROM; d <= TO; d++) {
			uint32_t verdict;
			int r = run((enum direction)d, device, p, n, &verdict);

			if (r)
				fail_msg("frame %d of %zu bytes: error %d", i, n, r);
			if (verdict != TC_ACT_OK && verdict != TC_ACT_SHOT &&
			    (verdict != TC_ACT_REDIRECT || d == TO))
				fail_msg("frame %d of %zu bytes: verdict %u", i, n, verdict);
			verdicts[verdict]++;
		}
	}
	/* else the frames were all of one kind */
	assert_true(verdicts[TC_ACT_OK] > RANDOM_TIMES / 100);
	assert_true(verdicts[TC_ACT_SHOT] > RANDOM_TIMES / 100);
	assert_true(verdicts[TC_ACT_REDIRECT] > RANDOM_TIMES / 100);
}

/* --- packets that only a device can bring --- */

#define PAGED_FRAME 5000 /* more than a page: else the kernel makes all of a packet linear */

/* Sends from the app's end; `linear` bytes lie in the packet's linear part. */
static void send_frame(const uint8_t *frame, size_t n, uint16_t linear)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)world.far};
	struct virtio_net_hdr h = {.hdr_len = linear};
	autofree uint8_t *p = calloc(1, sizeof(h) + n);
	autoclose int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int one = 1;

	assert_non_null(p);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), 0);
	memcpy(p, &h, sizeof(h));
	memcpy(p + sizeof(h), frame, n);
	assert_int_equal(sendto(fd, p, sizeof(h) + n, 0, (struct sockaddr *)&to, sizeof(to)),
			 sizeof(h) + n);
}

static void check_sent(const uint8_t *frame, size_t n, uint16_t linear, int counter)
{
	uint64_t before[AX_COUNTERS], after[AX_COUNTERS];

	assert_int_equal(datapath_counters(world.dp, before), 0);
	send_frame(frame, n, linear);
	for (int tries = 0; tries < 500; tries++) {
		assert_int_equal(datapath_counters(world.dp, after), 0);
		if (memcmp(before, after, sizeof(before)) != 0)
			break;
		usleep(2000);
	}
	check_counters(before, counter);
}

static int attach_to_device(void **state)
{
	(void)state;
	return datapath_fabric_attach(world.dp, world.nl, world.device[APP]) ||
	       nl_link_set_up(world.nl, world.far) ||
	       nl_link_wait_up(world.nl, world.device[APP], 1000);
}

static void test_paged_headers(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		const struct frame f = SEGMENT(.flags = SYN, .options = 2, .total = 4000);
		uint8_t p[PAGED_FRAME] = {0};

		put_frame(p, &f, v6, &world.addr[APP][v6], &world.addr[OUTSIDE][v6]);
		check_sent(p, sizeof(p), 14, NO_EGRESS);
		check_sent(p, sizeof(p), v6 ? 14 + 40 : 14 + 20, NO_EGRESS);
		check_sent(p, sizeof(p), PAGED_FRAME, NO_EGRESS);
	}
}

static void test_runts(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		const struct frame f = SEGMENT(.flags = ACK);
		size_t ip = v6 ? 14 + 40 : 14 + 20;
		uint8_t p[FRAME_BUILT_MAX];

		put_frame(p, &f, v6, &world.addr[APP][v6], &world.addr[OUTSIDE][v6]);
		for (size_t n = 15; n < ip; n++)
			check_sent(p, n, 0, MALFORMED);
		for (size_t n = ip; n < ip + TCP_HEADER; n++)
			check_sent(p, n, 0, MALFORMED);
	}
}

int main(void)
{
	static struct CMUnitTest tests[2 * ARRAY_SIZE(rows) + 9];
	static char names[ARRAY_SIZE(tests)][100];
	size_t n = 0;

	if (own_namespaces())
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (int family = 4; family <= 6; family += 2) {
			if (rows[i].only && rows[i].only != family)
				continue;
			snprintf(names[n], sizeof(names[n]), "%s app: %s (IPv%d)",
				 rows[i].direction == FROM ? "from" : "to", rows[i].name, family);
			tests[n] = (struct CMUnitTest){
				.name = names[n],
				.test_func = family == 4 ? test_row4 : test_row6,
				.initial_state = (void *)(uintptr_t)&rows[i]};
			n++;
		}
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_source_of_another_device);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_the_set_of_rules_that_holds);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_answers);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_answers_of_others_are_kept);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_service_gives_what_policy_allows);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_extension_headers);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_any_bytes);
	tests[n++] =
		(struct CMUnitTest)cmocka_unit_test_setup(test_paged_headers, attach_to_device);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test_setup(test_runts, attach_to_device);
	return cmocka_run_group_tests(tests, fabric_setup, fabric_teardown);
}
