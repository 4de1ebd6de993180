// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* `action route`: what is sent where the host's routes lead, with which bytes; and what is left to
 * the kernel as it came, under which reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "iface/iface.h"
#include "tests/lib/filter_judge.h"

/* Packets come in by xf0 (frames as text are addressed to it), from 10.1.0.2 or what is behind it.
 * Their next hops are known, unless they end in .77. */
#define HOST	"02:00:00:00:00:02"
#define NEXT	"02:00:00:00:02:02"
#define OUT_MAC "02:00:00:00:0a:02"
#define TO_NEXT " ttl 63 mac " OUT_MAC " > " NEXT
#define A_BYTES "data 'an odd number of bytes!'"
#define U4	"udp 10.1.0.2:5 > 10.2.0.2:9 "
#define U6	"udp [fd01::2]:5 > [fd02::2]:9 "

static const char setup_text[] =
	"exec >/dev/null\n"
	"set -e\n"
	"for i in default xf0 xt0; do\n"
	"	echo 0 >/proc/sys/net/ipv6/conf/$i/disable_ipv6\n"
	"	echo 0 >/proc/sys/net/ipv6/conf/$i/accept_dad\n"
	"done\n"
	"ip link add xn0 type veth peer name xn1\n"		/* without NAPI at the other end */
	"ip link add xa0 group 24952 type veth peer name xa1\n" /* ax's own: NL_LINK_GROUP */
	"ip link add xb type bridge\n"
	"ip link add xp0 type veth peer name xp1\n"
	"ip link set xp0 master xb\n"
	"for i in 5 6 7; do ip link add xv$i type veth peer name xw$i; done\n" /* see vlans() */
	"ip link set xf0 down address " HOST "\n"
	"for i in xt0 xv7; do ip link set $i down address " OUT_MAC "; done\n"
	"for i in xf0 xt0 xn0 xn1 xa0 xa1 xb xp0 xp1 xv5 xv6 xv7 xw5 xw6 xw7; do\n"
	"	ip link set $i up\n"
	"done\n"
	"for i in xt1 xa1 xp1; do ethtool -K $i gro on; done\n"
	"ethtool -K xn1 gro off\n"
	"echo 1 >/proc/sys/net/ipv4/ip_forward\n"
	"echo 1 >/proc/sys/net/ipv6/conf/all/forwarding\n"
	"net() {\n" /* DEVICE NUMBER */
	"	ip addr add 10.$2.0.1/24 dev $1\n"
	"	ip addr add fd0$2::1/64 dev $1 nodad\n"
	"	ip neigh add 10.$2.0.2 lladdr 02:00:00:00:0$2:02 dev $1\n"
	"	ip neigh add fd0$2::2 lladdr 02:00:00:00:0$2:02 dev $1\n"
	"}\n"
	"net xf0 1; net xt0 2; net xv5 3; net xv6 4; net xv7 5; net xn0 6; net xa0 7; net xb 8\n"
	"ip route add 172.16.0.0/16 via 10.1.0.2\n"
	"ip route add 10.20.0.0/16 via 10.2.0.2\n"
	"ip route add fd20::/16 via fd02::2\n"
	"ip route add 10.21.0.0/16 via 10.2.0.2 mtu lock 1000\n"
	"ip route add fd21::/16 via fd02::2 mtu lock 1280\n"
	"ip route add 10.22.0.0/16 via 10.2.0.77\n"
	"ip route add blackhole 10.23.0.0/16\n"
	"ip route add unreachable 10.24.0.0/16\n"
	"ip route add prohibit 10.25.0.0/16\n"
	"ip route add 10.26.0.0/16 via inet6 fd02::2\n"
	/* by source, by TOS */
	"ip rule add from 172.16.7.0/24 table 7\n"
	"ip route add blackhole 10.20.0.0/16 table 7\n"
	"ip route add tos 0x10 blackhole 10.20.9.0/24\n";

static int setup(void **state)
{
	cpu_set_t one;

	/* what programs remember they do for each CPU */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return -1;
	return filter_setup(state) || system(setup_text) ? -1 : 0;
}

/* VLANs that this kernel may not have: the programs are told that xv5 and xv6 are VLANs of xf0, and
 * xv7 one of xt0. (tests/vm/test_xdp_route.sh has real ones.) */
static void vlans(void)
{
	static const struct {
		const char *name, *device, *mac;
		uint16_t id, ethertype;
		uint8_t kind;
	} all[] = {
		{"xv5", IFNAME, HOST, 5, ETH_P_8021Q, AX_WAY_IN},
		{"xv6", IFNAME, HOST, 6, ETH_P_8021AD, AX_WAY_IN},
		{"xv7", TARGET, HOST, 7, ETH_P_8021Q, AX_WAY_OUT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		unsigned vlan = if_nametoindex(all[i].name), device = if_nametoindex(all[i].device);
		bool in = all[i].kind == AX_WAY_IN;
		struct ax_way_key key = {.netns_cookie = filter.g.layout.netns_cookie,
					 .ifindex = in ? device : vlan,
					 .vlan = in ? all[i].id : 0,
					 .kind = all[i].kind};
		struct ax_way way = {.ifindex = in ? vlan : device,
				     .vlan = all[i].id,
				     .ethertype_be = htons(all[i].ethertype),
				     .mac = {2, 0, 0, 0, 0, 2}};

		assert_int_equal(bpf_map_update_elem(filter.maps.map[XDP_MAP_WAYS], &key, &way, 0),
				 0);
	}
}

static void load(const char *more)
{
	char list[100];

	snprintf(list, sizeof(list), "rules: [{name: way, action: route%s}]\n", more);
	filter_load_once(list);
	vlans();
}

struct row {
	const char *name, *packet;
	const char *expected;  /* NULL: it is left to the kernel */
	enum ax_reason reason; /* 0: AX_REASON_ROUTED */
	enum ax_reason also;
};

/* clang-format off */
static const struct row rows[] = {
	{"UDP", U4 A_BYTES, U4 A_BYTES TO_NEXT, 0, 0},
	{"UDP on IPv6", U6 A_BYTES, U6 A_BYTES TO_NEXT, 0, 0},
	{"TCP", "tcp 10.1.0.2:5 > 10.2.0.2:9 flags syn", "tcp 10.1.0.2:5 > 10.2.0.2:9 flags syn" TO_NEXT, 0, 0},
	{"TCP on IPv6", "tcp [fd01::2]:5 > [fd02::2]:9 " A_BYTES, "tcp [fd01::2]:5 > [fd02::2]:9 " A_BYTES TO_NEXT, 0, 0},
	{"an echo request", "icmp 10.1.0.2 > 10.2.0.2", "icmp 10.1.0.2 > 10.2.0.2" TO_NEXT, 0, 0},
	{"one on IPv6", "icmp6 fd01::2 > fd02::2", "icmp6 fd01::2 > fd02::2" TO_NEXT, 0, 0},
	{"another protocol", "132 10.1.0.2 > 10.2.0.2 " A_BYTES, "132 10.1.0.2 > 10.2.0.2 " A_BYTES TO_NEXT, 0, 0},
	{"a tunnel", "ipip 10.1.0.2 > 10.2.0.2 len 40", "ipip 10.1.0.2 > 10.2.0.2 len 40" TO_NEXT, 0, AX_REASON_TUNNEL},
	{"a wrong UDP checksum is somebody else's business", U4 "| 40=1234", U4 TO_NEXT " | 40=1234", 0, 0},
	{"padding", U4 "data 'x' | pad17", U4 "data 'x'" TO_NEXT " | pad17", 0, 0},
	{"a first fragment", U4 "data 'xxxxxxxx' frag first", U4 "data 'xxxxxxxx' frag first" TO_NEXT, 0, 0},
	{"a later fragment", "udp 10.1.0.2 > 10.2.0.2 frag later data 'abcdefgh'",
	 "udp 10.1.0.2 > 10.2.0.2 frag later data 'abcdefgh'" TO_NEXT, 0, AX_REASON_LATER_FRAGMENT},
	{"one on IPv6", "tcp fd01::2 > fd02::2 frag later data 'abcdefgh'",
	 "tcp fd01::2 > fd02::2 frag later data 'abcdefgh'" TO_NEXT, 0, AX_REASON_LATER_FRAGMENT},
	{"an extension header that is no router's business", U6 A_BYTES " | 20=3c 54+1100000000000000 len",
	 U6 A_BYTES TO_NEXT " | 20=3c 54+1100000000000000 len", 0, 0},
	{"by a gateway", "udp 172.16.0.9:5 > 10.20.0.9:9 " A_BYTES, "udp 172.16.0.9:5 > 10.20.0.9:9 " A_BYTES TO_NEXT, 0, 0},
	{"one on IPv6", "udp [fd01::2]:5 > [fd20::9]:9", "udp [fd01::2]:5 > [fd20::9]:9" TO_NEXT, 0, 0},
	{"IPv4 by a gateway of IPv6", "udp 10.1.0.2:5 > 10.26.0.9:9", "udp 10.1.0.2:5 > 10.26.0.9:9" TO_NEXT, 0, 0},
	{"a lifetime of 2", U4 "ttl 2", U4 "ttl 1 mac " OUT_MAC " > " NEXT, 0, 0},
	{"one of 255", U4 "ttl 255", U4 "ttl 254 mac " OUT_MAC " > " NEXT, 0, 0},
	{"the last that fits", "udp 10.1.0.2:5 > 10.21.0.2:9 len 972", "udp 10.1.0.2:5 > 10.21.0.2:9 len 972" TO_NEXT, 0, 0},

	{"a tag is taken off", "vlan 5 udp 10.3.0.2:5 > 10.2.0.2:9 " A_BYTES,
	 "udp 10.3.0.2:5 > 10.2.0.2:9 " A_BYTES TO_NEXT, 0, 0},
	{"one of 802.1ad", "vlan 6:88a8 udp 10.4.0.2:5 > 10.2.0.2:9", "udp 10.4.0.2:5 > 10.2.0.2:9" TO_NEXT, 0, 0},
	{"a tag is put on", "udp 10.1.0.2:5 > 10.5.0.2:9 " A_BYTES,
	 "vlan 7 udp 10.1.0.2:5 > 10.5.0.2:9 " A_BYTES " ttl 63 mac " OUT_MAC " > 02:00:00:00:05:02", 0, 0},
	{"one on IPv6", "tcp [fd01::2]:5 > [fd05::2]:9 " A_BYTES,
	 "vlan 7 tcp [fd01::2]:5 > [fd05::2]:9 " A_BYTES " ttl 63 mac " OUT_MAC " > 02:00:00:00:05:02", 0, 0},
	{"a tag for a tag", "vlan 5 tcp [fd03::2]:5 > [fd05::2]:9",
	 "vlan 7 tcp [fd03::2]:5 > [fd05::2]:9 ttl 63 mac " OUT_MAC " > 02:00:00:00:05:02", 0, 0},

	{"the next hop is not known", "udp 10.1.0.2:5 > 10.2.0.77:9", NULL, AX_REASON_ROUTE_NEIGHBOUR, 0},
	{"nor a gateway's address", "udp 10.1.0.2:5 > 10.22.0.9:9", NULL, AX_REASON_ROUTE_NEIGHBOUR, 0},
	{"one on IPv6", "udp [fd01::2]:5 > [fd02::77]:9", NULL, AX_REASON_ROUTE_NEIGHBOUR, 0},
	{"a lifetime of 1", U4 "ttl 1", NULL, AX_REASON_ROUTE_TTL, 0},
	{"one of 0 on IPv6", U6 "ttl 0", NULL, AX_REASON_ROUTE_TTL, 0},
	{"too big", "udp 10.1.0.2:5 > 10.21.0.2:9 len 973", NULL, AX_REASON_ROUTE_MTU, 0},
	{"too big on IPv6", "udp [fd01::2]:5 > [fd21::2]:9 len 1233", NULL, AX_REASON_ROUTE_MTU, 0},
	{"for this host", "udp 10.1.0.2:5 > 10.2.0.1:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"one on IPv6", "udp [fd01::2]:5 > [fd02::1]:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"a broadcast to a network", "udp 10.1.0.2:5 > 10.2.0.255:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"to everybody", "udp 10.1.0.2:5 > 255.255.255.255:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"multicast", "udp 10.1.0.2:5 > 224.0.0.251:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"multicast on IPv6", "udp [fd01::2]:5 > [ff0e::1]:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"link-local", "udp [fd01::2]:5 > [fe80::2]:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"loopback", "udp 10.1.0.2:5 > 127.0.0.1:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"no route", "udp 10.1.0.2:5 > 192.0.2.1:9", NULL, AX_REASON_ROUTE_LOCAL, 0},
	{"blackhole", "udp 10.1.0.2:5 > 10.23.0.1:9", NULL, AX_REASON_ROUTE_UNREACHABLE, 0},
	{"unreachable", "udp 10.1.0.2:5 > 10.24.0.1:9", NULL, AX_REASON_ROUTE_UNREACHABLE, 0},
	{"prohibit", "udp 10.1.0.2:5 > 10.25.0.1:9", NULL, AX_REASON_ROUTE_UNREACHABLE, 0},
	{"a rule for the source", "udp 172.16.7.9:5 > 10.20.0.9:9", NULL, AX_REASON_ROUTE_UNREACHABLE, 0},
	{"a route for the TOS", "udp 10.1.0.2:5 > 10.20.9.9:9 dscp 4", NULL, AX_REASON_ROUTE_UNREACHABLE, 0},
	{"which others do not take", "udp 10.1.0.2:5 > 10.20.9.9:9", "udp 10.1.0.2:5 > 10.20.9.9:9" TO_NEXT, 0, 0},

	{"a source that is elsewhere", "udp 10.2.0.9:5 > 10.20.0.9:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"of nowhere", "udp 192.0.2.1:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"of nowhere on IPv6", "udp [2001:db8::1]:5 > [fd02::2]:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"this host's own", "udp 10.1.0.1:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"loopback's", "udp 127.0.0.1:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"none", "udp 0.0.0.0:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"a broadcast's", "udp 10.1.0.255:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"multicast's", "udp 224.0.0.1:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"multicast's on IPv6", "udp [ff02::1]:5 > [fd02::2]:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"a link's", "udp [fe80::1]:5 > [fd02::2]:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"an app's of ax, which comes in elsewhere", "udp 10.7.0.2:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},
	{"a VLAN's without its tag", "udp 10.3.0.2:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_SOURCE, 0},

	{"to an app of ax", "udp 10.1.0.2:5 > 10.7.0.2:9", NULL, AX_REASON_ROUTE_DEVICE, 0},
	{"to one on IPv6", "udp [fd01::2]:5 > [fd07::2]:9", NULL, AX_REASON_ROUTE_DEVICE, 0},
	{"to a veth that takes no frames", "udp 10.1.0.2:5 > 10.6.0.2:9", NULL, AX_REASON_ROUTE_DEVICE, 0},
	{"to a bridge", "udp 10.1.0.2:5 > 10.8.0.2:9", NULL, AX_REASON_ROUTE_DEVICE, 0},
	{"back", "udp 172.16.0.9:5 > 10.1.0.2:9", NULL, AX_REASON_ROUTE_DEVICE, 0},

	{"options", U4 A_BYTES " | 14=46 34+01010101 44=0000 len sum", NULL, AX_REASON_ROUTE_OTHER, AX_REASON_IP_OPTIONS},
	{"hop-by-hop options", U6 A_BYTES " | 20=00 54+1100000000000000 len", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"a wrong header checksum", U4 "| 24=1234", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"a frame for another host", U4 "mac 02:00:00:00:01:02 > 02:00:00:00:00:03", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"one for everybody", U4 "mac 02:00:00:00:01:02 > ff:ff:ff:ff:ff:ff", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"a tag of nobody", "vlan 99 udp 10.3.0.2:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"a tag of another kind", "vlan 5:88a8 udp 10.3.0.2:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"a priority without VLAN", "vlan 0 " U4, NULL, AX_REASON_ROUTE_OTHER, 0},
	{"two tags", "vlan 5 vlan 9 udp 10.3.0.2:5 > 10.2.0.2:9", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"several buffers", U4 "len 4001", NULL, AX_REASON_ROUTE_OTHER, 0},
	{"ARP", "arp 10.1.0.2 > 10.2.0.2", NULL, AX_REASON_ROUTE_OTHER, 0},
};
/* clang-format on */

/* The kernel has its turn every 5 seconds, which may have passed: not with the packet that counts.
 * (That one then goes by what was found; what explains it has found it itself.) */
static void judge_routed(const char *packet, const struct expect *x, const char *expected)
{
	struct frame_bytes f;

	read_frame(packet, &f);
	filter_run_frame(filter.g.prog, &f, NULL);
	judge_turns(packet, x, expected);
}

static void test_row(void **state)
{
	const struct row *row = *state;
	struct expect x = {
		.action = row->expected ? XDP_REDIRECT : XDP_PASS,
		.verdict = AX_VERDICT_ROUTE,
		.rule = "way",
		.reason = row->expected ? AX_REASON_ROUTED : row->reason,
		.also = row->also,
	};

	load("");
	if (row->expected)
		judge_routed(row->packet, &x, row->expected);
	else
		judge(row->packet, &x);
}

static void checksums_anew(void **state)
{
	static const struct expect x = {.action = XDP_REDIRECT,
					.verdict = AX_VERDICT_ROUTE,
					.rule = "way",
					.reason = AX_REASON_ROUTED};

	(void)state;
	load(", checksum: recompute");
	judge_routed(U4 A_BYTES " | 40=1420", &x, U4 A_BYTES TO_NEXT);
	judge_routed("tcp [fd01::2]:5 > [fd05::2]:9 " A_BYTES " | 70=0000", &x,
		     "vlan 7 tcp [fd01::2]:5 > [fd05::2]:9 " A_BYTES " ttl 63 mac " OUT_MAC
		     " > 02:00:00:00:05:02");
	judge_routed("vlan 5 udp 10.3.0.2:5 > 10.2.0.2:9 " A_BYTES " | 44=1111", &x,
		     "udp 10.3.0.2:5 > 10.2.0.2:9 " A_BYTES TO_NEXT);
	/* what is left to the kernel is as it came */
	judge(U4 A_BYTES "ttl 1 | 40=1420", &(struct expect){.action = XDP_PASS,
							     .verdict = AX_VERDICT_ROUTE,
							     .rule = "way",
							     .reason = AX_REASON_ROUTE_TTL});
}

static void expect_reason(const char *packet, enum ax_reason reason)
{
	judge(packet, &(struct expect){.action = XDP_PASS,
				       .verdict = AX_VERDICT_ROUTE,
				       .rule = "way",
				       .reason = reason});
}

static void run(const char *command)
{
	if (system(command))
		fail_msg("%s failed", command);
	usleep(200000); /* until what was found before is asked for anew */
}

static void find_ways(void)
{
	assert_int_equal(xdp_ways(&filter.inst), 0);
	usleep(200000);
}

/* The header's checksum is right whatever it was. */
static void header_checksums(void **state)
{
	struct frame_bytes f, out;
	char spec[80];

	(void)state;
	load("");
	for (unsigned i = 0; i < 2000; i++) {
		uint32_t sum = 0;

		snprintf(spec, sizeof(spec), "udp 10.1.0.2:5 > 10.20.%u.%u:9 ttl %u len %u",
			 (i / 250) % 9, i % 250, 2 + i % 250, i % 900);
		read_frame(spec, &f);
		if (filter_run_frame(filter.g.prog, &f, &out) == XDP_PASS) /* the kernel's turn */
			continue;
		for (size_t k = 14; k < 34; k += 2)
			sum += (uint32_t)out.b[k] << 8 | out.b[k + 1];
		assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	}
}

static void forwarding_off(void **state)
{
	(void)state;
	load("");
	run("echo 0 >/proc/sys/net/ipv4/conf/xf0/forwarding");
	expect_reason(U4, AX_REASON_ROUTE_OFF);
	run("echo 1 >/proc/sys/net/ipv4/conf/xf0/forwarding");
	/* of a VLAN that of the VLAN's interface counts */
	run("echo 0 >/proc/sys/net/ipv4/conf/xv5/forwarding");
	expect_reason("vlan 5 udp 10.3.0.2:5 > 10.2.0.2:9", AX_REASON_ROUTE_OFF);
	run("echo 1 >/proc/sys/net/ipv4/conf/xv5/forwarding");
	run("echo 0 >/proc/sys/net/ipv6/conf/all/forwarding");
	expect_reason(U6, AX_REASON_ROUTE_OFF);
	/* the interface's own sysctl alone does not make the kernel forward IPv6 */
	run("echo 1 >/proc/sys/net/ipv6/conf/xf0/forwarding");
	run("echo 1 >/proc/sys/net/ipv6/conf/xt0/forwarding");
	find_ways();
	expect_reason(U6, AX_REASON_ROUTE_OFF);
	run("echo 1 >/proc/sys/net/ipv6/conf/all/forwarding");
	find_ways();
	judge_routed(U6,
		     &(struct expect){.action = XDP_REDIRECT,
				      .verdict = AX_VERDICT_ROUTE,
				      .rule = "way",
				      .reason = AX_REASON_ROUTED},
		     U6 TO_NEXT);
}

/* Interfaces become ax's, parts of bridges, and other ones. */
static void changed_interfaces(void **state)
{
	(void)state;
	load("");
	run("ip link set xt0 group 24952");
	find_ways();
	expect_reason(U4, AX_REASON_ROUTE_DEVICE);
	run("ip link set xt0 group 0; ip link set xf0 group 24952");
	find_ways();
	expect_reason(U4, AX_REASON_ROUTE_OTHER);
	run("ip link set xf0 group 0");
	run("ethtool -K xt1 gro off >/dev/null");
	find_ways();
	expect_reason(U4, AX_REASON_ROUTE_DEVICE);
	run("ethtool -K xt1 gro on >/dev/null");
	/* a host that forwards for ax's apps alone: net/guard.h */
	run("nft add table inet ax-forwarding");
	find_ways();
	expect_reason(U4, AX_REASON_ROUTE_DEVICE);
	run("nft delete table inet ax-forwarding");
	find_ways();
	datapath_xdp_ways_shut(&filter.inst);
	usleep(200000);
	expect_reason(U4, AX_REASON_ROUTE_DEVICE);
	find_ways();
	judge_routed(U4,
		     &(struct expect){.action = XDP_REDIRECT,
				      .verdict = AX_VERDICT_ROUTE,
				      .rule = "way",
				      .reason = AX_REASON_ROUTED},
		     U4 TO_NEXT);
}

/* Packets of a flow go the way of the one before, but each as it is. */
static void by_what_was_found(void **state)
{
	struct frame_bytes f, out, want;

	(void)state;
	load("");
	for (int i = 0; i < 20; i++) {
		read_frame(U6 "len 90 ttl 9", &f);
		read_frame(U6 "len 90 ttl 8 mac " OUT_MAC " > " NEXT, &want);
		filter_run_frame(filter.g.prog, &f, NULL); /* maybe the kernel's turn */
		assert_int_equal(filter_run_frame(filter.g.prog, &f, &out), XDP_REDIRECT);
		assert_same_frame("a packet of a known flow", &out, &want);
		read_frame(U6 "ttl 1", &f);
		assert_int_equal(filter_run_frame(filter.g.prog, &f, &out), XDP_PASS);
		assert_same_frame("its last router is this one", &out, &f);
		read_frame(U6 "len 1453", &f);
		assert_int_equal(filter_run_frame(filter.g.prog, &f, &out), XDP_PASS);
		read_frame(U6 "mac 02:00:00:00:01:02 > 02:00:00:00:00:03", &f);
		assert_int_equal(filter_run_frame(filter.g.prog, &f, &out), XDP_PASS);
		read_frame("vlan 99 " U6, &f);
		assert_int_equal(filter_run_frame(filter.g.prog, &f, &out), XDP_PASS);
	}
}

/* Nobody else makes the kernel ask whether the next hop is still there. */
static void kernels_turn(void **state)
{
	struct frame_bytes f;
	int passed = 0;

	(void)state;
	load("");
	read_frame(U4, &f);
	filter_run_frame(filter.g.prog, &f, NULL);
	run("sleep 5.2");
	for (int i = 0; i < 50; i++)
		passed += filter_run_frame(filter.g.prog, &f, NULL) == XDP_PASS;
	assert_in_range(passed, 1, 3);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(rows) + 6];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		tests[n++] = (struct CMUnitTest){.name = rows[i].name,
						 .test_func = test_row,
						 .initial_state = (void *)(uintptr_t)&rows[i]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(checksums_anew);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(header_checksums);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(forwarding_off);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(changed_interfaces);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(by_what_was_found);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(kernels_turn);
	return cmocka_run_group_tests_name("route", tests, setup, filter_teardown);
}
