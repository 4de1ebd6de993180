// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* `action challenge`: the bytes that answer a SYN, whether the cookie in them is taken, and what is
 * left to the kernel or dropped, under which reason. */
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
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/address.h"
#include "iface/iface.h"
#include "tests/lib/checksums.h"
#include "tests/lib/filter_judge.h"
#include "tests/lib/netns.h"

/* Packets come in by xf0 (frames as text are addressed to it). 10.1.0.1 and fd01::1 listen at port
 * 80, all addresses at 81, and 10.1.0.1:4000 is connected to 10.1.0.2:80, fd01::1 so. */
#define HOST "02:00:00:00:00:02"
#define NEXT "02:00:00:00:00:01"
#define LIST "rules: [{name: ask, proto: tcp, action: challenge}]\n"
#define S4   "tcp 10.1.0.9:5 > 10.1.0.1:80 flags syn "
#define S6   "tcp [fd01::9]:5 > [fd01::1]:80 flags syn "

/* What Linux says in a SYN: an MSS of 1460, SACK, a time stamp, a window scale of 7. */
#define MSS	 "020405b4"
#define STAMP_BE "a1b2c3d4"
#define STAMP	 "080a" STAMP_BE "00000000"
#define LINUX	 MSS "0402" STAMP "01030307"
#define L4_AT4	 34
#define L4_AT6	 54
#define OPTIONS4 "| 46=a0 54+" LINUX " len sum"
#define OPTIONS6 "| 66=a0 74+" LINUX " len"

static const char setup_text[] = "exec >/dev/null\n"
				 "set -e\n"
				 "for i in default xf0 xt0 lo; do\n"
				 "	echo 0 >/proc/sys/net/ipv6/conf/$i/disable_ipv6\n"
				 "	echo 0 >/proc/sys/net/ipv6/conf/$i/accept_dad\n"
				 "done\n"
				 "ip link set xf0 down address " HOST "\n"
				 "ip link set xf0 up\n"
				 "echo 1 >/proc/sys/net/ipv4/ip_forward\n"
				 "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding\n"
				 "ip addr add 10.1.0.1/24 dev xf0\n"
				 "ip addr add fd01::1/64 dev xf0 nodad\n"
				 "ip addr add 10.1.0.2/32 dev lo\n"
				 "ip addr add fd01::2/128 dev lo nodad\n"
				 "ip addr add 10.2.0.1/24 dev xt0\n"
				 "ip addr add fd02::1/64 dev xt0 nodad\n"
				 "ip route add unreachable 10.3.0.0/16\n"
				 "ip link add xv5 type veth peer name xw5\n" /* see vlan() */
				 "ip link set xv5 up\n";

static void sysctl(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	assert_int_equal(file_write(path, value), 0);
}

static int endpoint(const char *addr, uint16_t port, const char *to, uint16_t to_port)
{
	struct sockaddr_storage ss;
	struct ax_addr a = ns_addr(addr);
	int one = 1,
	    fd = socket(addr_is_v4(&a) ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = addr_to_sockaddr(&a, htons(port), &ss);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&ss, len), 0);
	if (!to) {
		assert_int_equal(listen(fd, 8), 0);
		return fd;
	}
	a = ns_addr(to);
	len = addr_to_sockaddr(&a, htons(to_port), &ss);
	assert_int_equal(connect(fd, (struct sockaddr *)&ss, len), 0);
	return fd;
}

static int setup(void **state)
{
	if (filter_setup(state) || system(setup_text))
		return -1;
	sysctl("tcp_syncookies", "2");
	sysctl("tcp_timestamps", "2");
	/* they stay open until the test ends */
	endpoint("10.1.0.1", 80, NULL, 0);
	endpoint("fd01::1", 80, NULL, 0);
	endpoint("10.1.0.2", 80, NULL, 0);
	endpoint("fd01::2", 80, NULL, 0);
	endpoint("::", 81, NULL, 0);
	endpoint("10.1.0.1", 4000, "10.1.0.2", 80);
	endpoint("fd01::1", 4000, "fd01::2", 80);
	filter_load_once(LIST);
	return 0;
}

/* --- answers --- */

static uint32_t word(const uint8_t *b)
{
	uint32_t w;

	memcpy(&w, b, sizeof(w));
	return ntohl(w);
}

static uint64_t boot_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The time stamp of an answer is no later than now, not much before, and has these last bits. */
static void assert_stamp(const uint8_t *option, uint32_t bits)
{
	uint32_t stamp = word(option), ago = (uint32_t)boot_ms() - stamp;

	assert_int_equal(stamp & 63, bits);
	assert_in_range(ago, 0, 60000);
}

/* Runs it: it is answered, as is said when it is explained. */
static void answered(const char *spec, struct frame_bytes *out, enum ax_reason also)
{
	uint64_t before = filter_reason_count(AX_REASON_CHALLENGED),
		 odd = also ? filter_reason_count(also) : 0;
	struct ax_rule_count rule = filter_rule_count("ask");
	struct xdp_explanation x;
	struct error e = {0};
	struct frame_bytes f;

	read_frame(spec, &f);
	if (xdp_explain(filter.x, f.b, f.len, &x, &e) < 0)
		fail_msg("%s: %s", spec, e.text);
	if (x.action != XDP_TX || x.x.reason != AX_REASON_CHALLENGED)
		fail_msg("%s: explained as action %u, %s", spec, x.action,
			 rule_reasons[x.x.reason].name);
	xdp_explanation_free(&x);
	assert_int_equal(filter_reason_count(AX_REASON_CHALLENGED), before);
	if (filter_run_frame(filter.g.prog, &f, out) != XDP_TX)
		fail_msg("%s: not answered", spec);
	assert_int_equal(filter_reason_count(AX_REASON_CHALLENGED), before + 1);
	assert_int_equal(filter_rule_count("ask").packets, rule.packets + 1);
	if (also)
		assert_int_equal(filter_reason_count(also), odd + 1);
}

/* An answer is `expected`, but for the cookie, the window and the time stamp (`stamp_at`: of its
 * value, 0: none), which depend on when it is made and of what. All sums are right. */
static void assert_answer(const char *spec, const struct frame_bytes *out, const char *expected,
			  bool v4, size_t l4, size_t stamp_at)
{
	size_t ip = l4 - (v4 ? 20 : 40);
	struct frame_bytes want;

	read_frame(expected, &want);
	assert_int_equal(out->len, want.len < 60 ? 60 : want.len); /* filled up */
	assert_true(ip_sums_right(out->b + ip, want.len - ip));
	if (v4)
		memcpy(want.b + ip + 10, out->b + ip + 10, 2);
	memcpy(want.b + l4 + 4, out->b + l4 + 4, 4);   /* the cookie */
	memcpy(want.b + l4 + 14, out->b + l4 + 14, 4); /* window and sum */
	if (stamp_at)
		memcpy(want.b + stamp_at, out->b + stamp_at, 4);
	for (size_t i = 0; i < want.len; i++)
		if (out->b[i] != want.b[i])
			fail_msg("%s: byte %zu of the answer is %02x, not %02x", spec, i, out->b[i],
				 want.b[i]);
}

/* The scale that the kernel takes for its own windows (net/ipv4/tcp_output.c). */
static unsigned own_scale(void)
{
	autofree char *rmem = NULL, *max = NULL;
	unsigned long a = 0, b = 0;
	unsigned n = 0;

	if (file_read("/proc/sys/net/ipv4/tcp_rmem", 64, &rmem) == 0)
		sscanf(rmem, "%*s %*s %lu", &a);
	if (file_read("/proc/sys/net/core/rmem_max", 64, &max) == 0)
		b = strtoul(max, NULL, 10);
	a = a > b ? a : b;
	while (a >> (n + 1))
		n++;
	return n < 15 ? 0 : n - 15 > 14 ? 14 : n - 15;
}

/* An answer: with an MSS alone, no identification, and the number behind the SYN's, which is 0. */
#define FROM4	"tcp 10.1.0.1:80 > 10.1.0.9:5 flags syn,ack ttl 64 mac " HOST " > " NEXT
#define FROM6	"tcp [fd01::1]:80 > [fd01::9]:5 flags syn,ack ttl 64 mac " HOST " > " NEXT
#define PLAIN4	" | 18=00004000 42=00000001 46=60 54+0204"
#define STAMPED "0402080a00000000" STAMP_BE

/* An answer with all that Linux asks for. */
static const char *full4(unsigned mss)
{
	static char text[400];

	snprintf(text, sizeof(text),
		 FROM4 " | 18=00004000 42=00000001 46=a0 54+0204%04x" STAMPED "010303%02x len", mss,
		 own_scale());
	return text;
}

static const char *full6(unsigned mss)
{
	static char text[400];

	snprintf(text, sizeof(text),
		 FROM6 " | 62=00000001 66=a0 74+0204%04x" STAMPED "010303%02x len", mss,
		 own_scale());
	return text;
}

static void linux_gets_all(void **state)
{
	struct frame_bytes out;

	(void)state;
	answered(S4 OPTIONS4, &out, 0);
	assert_answer(S4, &out, full4(1460), true, L4_AT4, L4_AT4 + 28);
	assert_stamp(out.b + L4_AT4 + 28, 7 | 1 << 4);
	answered(S6 OPTIONS6, &out, 0);
	assert_answer(S6, &out, full6(1440), false, L4_AT6, L4_AT6 + 28);
	assert_stamp(out.b + L4_AT6 + 28, 7 | 1 << 4);
}

/* Nothing of what it does not ask for. */
static void others_get_less(void **state)
{
	static const struct {
		const char *options; /* as long as LINUX */
		const char *answer;
		uint32_t bits;
	} rows[] = {
		{MSS "0101" STAMP "01030307", "0101080a", 7},
		{MSS "0402" STAMP "01010101", "0402080a", 15 | 1 << 4},
		{MSS "0402" STAMP "0103030f", "0402080a", 14 | 1 << 4}, /* as if it was 14 */
		{STAMP "0402" MSS "01030300", "0402080a", 0 | 1 << 4},
		{STAMP "01010101010101010101", "0101080a", 15},
		{"fd08112233445566" STAMP "0402", "0402080a", 15 | 1 << 4},
	};
	char spec[300], want[400];
	struct frame_bytes out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool scaled = (rows[i].bits & 15) != 15;

		snprintf(spec, sizeof(spec), S4 "| 46=a0 54+%s len sum", rows[i].options);
		answered(spec, &out, 0);
		snprintf(want, sizeof(want),
			 FROM4 " | 18=00004000 42=00000001 46=%s 54+020405b4%s00000000" STAMP_BE,
			 scaled ? "a0" : "90", rows[i].answer);
		if (scaled)
			snprintf(want + strlen(want), sizeof(want) - strlen(want), "010303%02x",
				 own_scale());
		strcat(want, " len");
		assert_answer(spec, &out, want, true, L4_AT4, L4_AT4 + 28);
		assert_stamp(out.b + L4_AT4 + 28, rows[i].bits);
	}
}

/* Without a time stamp nothing else can be remembered. */
static void without_stamps_there_is_a_size_only(void **state)
{
	static const char *const rows[] = {
		S4,
		S4 "| 46=60 54+" MSS " len sum",
		S4 "| 46=80 54+" MSS "0402010303070000 len sum", /* as Windows does */
		S4 "| 46=60 54+08090102 len sum",		 /* longer than there is */
		S4 "| 46=60 54+08000102 len sum",
		S4 "| 46=60 54+010108ff len sum",
		S4 "| 46=60 54+01010108 len sum",
		S4 "| 46=60 54+00080a00 len sum",
	};
	struct frame_bytes out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		answered(rows[i], &out, 0);
		assert_answer(rows[i], &out, FROM4 PLAIN4 "05b4 len", true, L4_AT4, 0);
	}
	answered(S6, &out, 0);
	assert_answer(S6, &out, FROM6 " | 62=00000001 66=60 74+020405a0 len", false, L4_AT6, 0);
	sysctl("tcp_timestamps", "1"); /* with what nobody is told added to it */
	answered(S4 OPTIONS4, &out, 0);
	assert_answer(S4, &out, FROM4 PLAIN4 "05b4 len", true, L4_AT4, 0);
	sysctl("tcp_timestamps", "0");
	answered(S4 OPTIONS4, &out, 0);
	assert_answer(S4, &out, FROM4 PLAIN4 "05b4 len", true, L4_AT4, 0);
	sysctl("tcp_timestamps", "2");
}

/* What the kernel does not have is not promised, and it takes no cookie that says so. */
static void as_the_kernel_is_set(void **state)
{
	struct frame_bytes out;
	char want[400];

	(void)state;
	sysctl("tcp_sack", "0");
	answered(S4 OPTIONS4, &out, 0);
	assert_stamp(out.b + L4_AT4 + 28, 7);
	assert_int_equal(word(out.b + L4_AT4 + 24), 0x0101080a);
	sysctl("tcp_sack", "1");
	sysctl("tcp_window_scaling", "0");
	answered(S4 OPTIONS4, &out, 0);
	snprintf(want, sizeof(want),
		 FROM4 " | 18=00004000 42=00000001 46=90 54+020405b4" STAMPED " len");
	assert_answer(S4, &out, want, true, L4_AT4, L4_AT4 + 28);
	assert_stamp(out.b + L4_AT4 + 28, 15 | 1 << 4);
	sysctl("tcp_window_scaling", "1");
	sysctl("tcp_rmem", "4096 131072 268435456");
	answered(S4 OPTIONS4, &out, 0);
	assert_int_equal(out.b[L4_AT4 + 39], 13);
	sysctl("tcp_rmem", "4096 131072 6291456");
	answered(S4 OPTIONS4, &out, 0);
	assert_int_equal(out.b[L4_AT4 + 39], own_scale());
	sysctl("ip_default_ttl", "99");
	answered(S4 OPTIONS4, &out, 0);
	assert_int_equal(out.b[22], 99);
	sysctl("ip_default_ttl", "64");
}

static void as_the_device_and_the_socket_are_set(void **state)
{
	int fd = endpoint("10.1.0.1", 82, NULL, 0), size = 65536, mss = 900;
	struct frame_bytes out;

	(void)state;
	assert_int_equal(system("ip link set xf0 mtu 1300"), 0);
	answered(S4 OPTIONS4, &out, 0);
	assert_answer(S4, &out, full4(1260), true, L4_AT4, L4_AT4 + 28);
	answered(S6 OPTIONS6, &out, 0);
	assert_answer(S6, &out, full6(1240), false, L4_AT6, L4_AT6 + 28);
	assert_int_equal(system("ip link set xf0 mtu 1500"), 0);
	assert_int_equal(setsockopt(fd, SOL_TCP, TCP_MAXSEG, &mss, sizeof(mss)), 0);
	answered("tcp 10.1.0.9:5 > 10.1.0.1:82 flags syn " OPTIONS4, &out, 0);
	assert_int_equal(word(out.b + L4_AT4 + 20), 0x02040000 | 900);
	/* how its window is scaled then depends on the kernel */
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
	answered("tcp 10.1.0.9:5 > 10.1.0.1:82 flags syn " OPTIONS4, &out, 0);
	assert_int_equal(out.b[L4_AT4 + 12], 0x90);
	assert_stamp(out.b + L4_AT4 + 28, 15 | 1 << 4);
	close(fd);
}

/* --- other frames --- */

/* A VLAN that this kernel may not have: the programs are told that xv5 is one of xf0.
 * (tests/vm/test_xdp_challenge.sh has a real one.) */
static void vlan(uint16_t flags)
{
	struct ax_way_key key = {.netns_cookie = filter.g.layout.netns_cookie,
				 .ifindex = if_nametoindex(IFNAME),
				 .vlan = 5,
				 .kind = AX_WAY_IN};
	struct ax_way way = {.ifindex = if_nametoindex("xv5"),
			     .vlan = 5,
			     .ethertype_be = htons(ETH_P_8021Q),
			     .flags = flags,
			     .mac = {2, 0, 0, 0, 0, 2}};

	assert_int_equal(bpf_map_update_elem(filter.maps.map[XDP_MAP_WAYS], &key, &way, 0), 0);
}

static void expect(const char *packet, uint32_t action, enum ax_reason reason)
{
	judge(packet, &(struct expect){.action = action,
				       .verdict = AX_VERDICT_CHALLENGE,
				       .rule = "ask",
				       .reason = reason});
}

static void tags_stay(void **state)
{
	struct frame_bytes out;

	(void)state;
	vlan(0);
	answered("vlan 5 " S4, &out, 0);
	assert_answer("vlan 5 " S4, &out,
		      "vlan 5 " FROM4 " | 20=002c 22=00004000 46=00000001 50=60 58+020405b4", true,
		      L4_AT4 + 4, 0);
	answered("vlan 5 " S6 "| 22=0018 70=60 78+" MSS, &out, 0);
	assert_answer("vlan 5 " S6, &out,
		      "vlan 5 " FROM6 " | 22=0018 66=00000001 70=60 78+020405a0", false, L4_AT6 + 4,
		      0);
	vlan(AX_WAY_VRF); /* its sockets are found by it */
	expect("vlan 5 " S4, XDP_PASS, AX_REASON_CHALLENGE_OTHER);
}

static void what_else_a_syn_has_goes(void **state)
{
	struct frame_bytes out;

	(void)state;
	answered(S4 "data 'what nobody may keep of a stranger, however much it is'", &out, 0);
	assert_answer("data", &out, FROM4 PLAIN4 "05b4 len", true, L4_AT4, 0);
	answered(S4 "| 14=46 34+01010101 len sum", &out, AX_REASON_IP_OPTIONS);
	assert_answer("options", &out, FROM4 PLAIN4 "05b4 len", true, L4_AT4, 0);
	answered(S6 "| 20=3c 54+0600000000000000 len", &out, 0);
	assert_answer("an extension header", &out, FROM6 " | 62=00000001 66=60 74+020405a0 len",
		      false, L4_AT6, 0);
}

/* --- cookies --- */

/* The ACK to an answer. `off`: so much is its number wrong. */
static void acknowledge(const struct frame_bytes *answer, size_t l4, const char *head, int off,
			enum ax_reason reason)
{
	char spec[300];

	snprintf(spec, sizeof(spec), "%s | %zu=00000001%08x", head, l4 + 4,
		 word(answer->b + l4 + 4) + 1 + (unsigned)off);
	expect(spec, reason == AX_REASON_BAD_COOKIE ? XDP_DROP : XDP_PASS, reason);
}

static void cookies_are_taken(void **state)
{
	struct frame_bytes out;

	(void)state;
	answered(S4 OPTIONS4, &out, 0);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack", 0,
		    AX_REASON_CHALLENGE_MET);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack,psh data 'GET /'", 0,
		    AX_REASON_CHALLENGE_MET);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack,psh,fin data 'GET /'", 0,
		    AX_REASON_CHALLENGE_MET);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack", 1,
		    AX_REASON_BAD_COOKIE);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:6 > 10.1.0.1:80 flags ack", 0,
		    AX_REASON_BAD_COOKIE);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.8:5 > 10.1.0.1:80 flags ack", 0,
		    AX_REASON_BAD_COOKIE);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack,rst", 0,
		    AX_REASON_BAD_COOKIE);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack,syn", 0,
		    AX_REASON_BAD_COOKIE);
	answered(S6, &out, 0);
	acknowledge(&out, L4_AT6, "tcp [fd01::9]:5 > [fd01::1]:80 flags ack", 0,
		    AX_REASON_CHALLENGE_MET);
	acknowledge(&out, L4_AT6, "tcp [fd01::9]:5 > [fd01::1]:80 flags ack", -1,
		    AX_REASON_BAD_COOKIE);
	/* of another listening socket: nobody was answered for it */
	acknowledge(&out, L4_AT6, "tcp [fd01::9]:5 > [fd01::1]:81 flags ack", 0,
		    AX_REASON_BAD_COOKIE);
	/* a socket of both families */
	answered("tcp 10.1.0.9:5 > 10.1.0.1:81 flags syn", &out, 0);
	acknowledge(&out, L4_AT4, "tcp 10.1.0.9:5 > 10.1.0.1:81 flags ack", 0,
		    AX_REASON_CHALLENGE_MET);
}

/* --- what is left alone --- */

struct row {
	const char *name, *packet;
	uint32_t action;
	enum ax_reason reason, also;
};
#define LEFT	XDP_PASS, AX_REASON_CHALLENGE_OTHER
#define DROPPED XDP_DROP, AX_REASON_BAD_COOKIE

/* clang-format off */
static const struct row rows[] = {
	{"an ACK of a connection", "tcp 10.1.0.2:80 > 10.1.0.1:4000 flags ack", XDP_PASS, 0, 0},
	{"one on IPv6", "tcp [fd01::2]:80 > [fd01::1]:4000 flags ack,psh", XDP_PASS, 0, 0},
	{"behind any tag", "vlan 99 tcp 10.1.0.2:80 > 10.1.0.1:4000 flags ack", XDP_PASS, 0, 0},
	{"its reset", "tcp 10.1.0.2:80 > 10.1.0.1:4000 flags rst", XDP_PASS, 0, 0},
	{"a SYN on it", "tcp 10.1.0.2:80 > 10.1.0.1:4000 flags syn", XDP_PASS, 0, 0},
	{"of its other end", "tcp 10.1.0.1:4000 > 10.1.0.2:80 flags ack,fin", XDP_PASS, 0, 0},

	{"an ACK of nothing", "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack", DROPPED, 0},
	{"one on IPv6", "tcp [fd01::9]:5 > [fd01::1]:80 flags ack", DROPPED, 0},
	{"with data", "tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack,psh data 'GET /'", DROPPED, 0},
	{"a FIN", "tcp 10.1.0.9:5 > 10.1.0.1:80 flags fin,ack", DROPPED, 0},
	{"a reset", "tcp 10.1.0.9:5 > 10.1.0.1:80 flags rst", DROPPED, 0},
	{"no flags", "tcp 10.1.0.9:5 > 10.1.0.1:80 flags none", DROPPED, 0},
	{"a SYN with FIN", "tcp 10.1.0.9:5 > 10.1.0.1:80 flags syn,fin", DROPPED, 0},
	{"a SYN and ACK", "tcp 10.1.0.9:5 > 10.1.0.1:80 flags syn,ack", DROPPED, 0},

	{"a SYN to nobody", "tcp 10.1.0.9:5 > 10.1.0.1:79 flags syn", LEFT, 0},
	{"an ACK to nobody", "tcp 10.1.0.9:5 > 10.1.0.1:79 flags ack", LEFT, 0},
	{"a SYN that is forwarded, though all addresses listen there", "tcp 10.1.0.9:5 > 10.2.0.9:81 flags syn", LEFT, 0},
	{"an ACK that is", "tcp 10.1.0.9:5 > 10.2.0.9:81 flags ack", LEFT, 0},
	{"one on IPv6", "tcp [fd01::9]:5 > [fd02::9]:81 flags syn", LEFT, 0},
	{"one that is not reachable", "tcp 10.1.0.9:5 > 10.3.0.9:81 flags syn", LEFT, 0},
	{"at another node's ports", "tcp 10.1.0.9:5 > 10.1.0.1:61001 flags syn", LEFT, 0},
	{"a source for many", "tcp 224.0.0.9:5 > 10.1.0.1:80 flags syn", LEFT, 0},
	{"all of them", "tcp 255.255.255.255:5 > 10.1.0.1:80 flags syn", LEFT, 0},
	{"none", "tcp 0.0.0.0:5 > 10.1.0.1:80 flags syn", LEFT, 0},
	{"this host", "tcp 127.0.0.1:5 > 10.1.0.1:80 flags syn", LEFT, 0},
	{"one for many on IPv6", "tcp [ff02::9]:5 > [fd01::1]:80 flags syn", LEFT, 0},
	{"a link's, whose sockets are bound to it", "tcp [fe80::9]:5 > [fd01::1]:80 flags syn", LEFT, 0},
	{"to everybody", "tcp 10.1.0.9:5 > 255.255.255.255:81 flags syn", LEFT, 0},
	{"to many", "tcp 10.1.0.9:5 > 224.0.0.1:81 flags syn", LEFT, 0},
	{"a frame for another host", S4 "mac " NEXT " > 02:00:00:00:00:03", LEFT, 0},
	{"one for everybody", S4 "mac " NEXT " > ff:ff:ff:ff:ff:ff", LEFT, 0},
	{"one from everybody", S4 "mac ff:ff:ff:ff:ff:ff > " HOST, LEFT, 0},
	{"a tag of nobody", "vlan 99 " S4, LEFT, 0},
	{"two tags", "vlan 5 vlan 6 " S4, LEFT, 0},
	{"a first fragment", S4 "data 'xxxxxxxx' frag first", LEFT, 0},
	{"a later one", "tcp 10.1.0.9 > 10.1.0.1 frag later data 'xxxxxxxx'", LEFT, AX_REASON_LATER_FRAGMENT},
};
/* clang-format on */

static void test_row(void **state)
{
	const struct row *row = *state;

	judge(row->packet, &(struct expect){.action = row->action,
					    .verdict = AX_VERDICT_CHALLENGE,
					    .rule = "ask",
					    .reason = row->reason,
					    .also = row->also});
}

/* Not while the socket's queue has room (1), nor at all (0). */
static void as_cookies_are_wanted(void **state)
{
	struct frame_bytes out;

	(void)state;
	sysctl("tcp_syncookies", "1");
	expect(S4, XDP_PASS, AX_REASON_CHALLENGE_IDLE);
	sysctl("tcp_syncookies", "0");
	expect(S6, XDP_PASS, AX_REASON_CHALLENGE_IDLE);
	expect("tcp 10.1.0.9:5 > 10.1.0.1:80 flags ack", XDP_DROP, AX_REASON_BAD_COOKIE);
	sysctl("tcp_syncookies", "2");
	answered(S4, &out, 0);
}

/* What is exposed there is an app's, whoever else listens. */
static void exposed_ports_are_apps(void **state)
{
	struct frame_bytes out;

	(void)state;
	answered("tcp 10.1.0.9:5 > 10.1.0.1:81 flags syn", &out, 0);
	filter_expose("10.1.0.1", "0.0.0.0", IPPROTO_TCP, 81, 0);
	expect("tcp 10.1.0.9:5 > 10.1.0.1:81 flags syn", XDP_PASS, AX_REASON_CHALLENGE_OTHER);
	expect("tcp 10.1.0.9:5 > 10.1.0.1:81 flags ack", XDP_PASS, AX_REASON_CHALLENGE_OTHER);
	answered(S4, &out, 0);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(rows) + 10];
	size_t n = 0;

	tests[n++] = (struct CMUnitTest)cmocka_unit_test(linux_gets_all);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(others_get_less);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(without_stamps_there_is_a_size_only);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(as_the_kernel_is_set);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(as_the_device_and_the_socket_are_set);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(tags_stay);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(what_else_a_syn_has_goes);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(cookies_are_taken);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		tests[n++] = (struct CMUnitTest){.name = rows[i].name,
						 .test_func = test_row,
						 .initial_state = (void *)(uintptr_t)&rows[i]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(as_cookies_are_wanted);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(exposed_ports_are_apps);
	return cmocka_run_group_tests_name("challenge", tests, setup, filter_teardown);
}
