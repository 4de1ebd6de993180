/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* Exposed ports of private apps, packet by packet: what comes in for them is given to the app with
 * right checksums, its answers are turned back, and whatever else comes stays as it is. A client
 * may have a connection to the app itself from the same port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/pkt_cls.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/datapath.h"
#include "machine/cgroup.h"
#include "tests/lib/checksums.h"
#include "tests/lib/frame_build.h"
#include "tests/lib/instance.h"
#include "tests/lib/netns.h"

#define NOT_OURS     ((uint32_t)TC_ACT_UNSPEC)
#define LO	     1
#define HOST_PORT    8080
#define APP_PORT     80
#define RANDOM_TIMES 20000

enum who {
	APP,	   /* behind HOST_PORT */
	OTHER,	   /* another app */
	NET,	   /* the instance's own address */
	HOST,	   /* this machine */
	ELSEWHERE, /* another machine behind this one */
	CLIENT,
	STRANGER, /* another client */
	LOOPBACK,
	WHO
};

static const char *const addresses[WHO][2] = {
	[APP] = {"10.1.0.2", "fd00::2"},
	[OTHER] = {"10.1.0.3", "fd00::3"},
	[NET] = {"10.1.0.1", "fd00::1"},
	[HOST] = {"192.0.2.254", "2001:db8::fe"},
	[ELSEWHERE] = {"192.0.2.77", "2001:db8::77"},
	[CLIENT] = {"192.0.2.1", "2001:db8::1"},
	[STRANGER] = {"192.0.2.2", "2001:db8::2"},
	[LOOPBACK] = {"127.0.0.1", "::1"},
};

static struct {
	struct instance inst;
	char cgroup[4096];
	struct datapath *dp;
	struct nl *nl;
	int in, back, to; /* ax_from_outside, ax_from_app, ax_to_app */
	struct ax_addr addr[WHO][2];
	unsigned device[2], outside;
} w;

struct packet_bytes {
	uint32_t n;
	uint16_t pad; /* so that IP headers are aligned */
	uint8_t b[FRAME_BUILT_MAX];
};

/* --- frames --- */

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* As the sender has made them; those of fragments are not looked at. */
static void fill_sums(struct packet_bytes *p, const struct frame *f, int v6)
{
	uint8_t *ip = p->b + 14, *l4 = ip + (v6 ? 40 : 20);
	size_t len = p->n - (size_t)(l4 - p->b);
	uint64_t sum;

	if (!v6)
		put16(ip + 10, sum_folded(sum_up(ip, 20)));
	if (f->cut || f->options || f->frag || f->offset)
		return;
	sum = sum_up(v6 ? ip + 8 : ip + 12, v6 ? 32 : 8) + f->proto + len;
	put16(l4 + (f->proto == IPPROTO_UDP ? 6 : 16), sum_folded(sum + sum_up(l4, len)));
}

static void make(struct packet_bytes *p, const struct frame *frame, int v6, enum who src,
		 enum who dst)
{
	struct frame f = *frame;

	f.sport = f.sport ? f.sport : 999;
	f.dport = f.dport ? f.dport : HOST_PORT;
	p->n = (uint32_t)put_frame(p->b, &f, v6, &w.addr[src][v6], &w.addr[dst][v6]);
	fill_sums(p, &f, v6);
}

static uint32_t run(int prog, unsigned ifindex, struct packet_bytes *p)
{
	struct __sk_buff skb = {.ifindex = ifindex};
	struct packet_bytes out;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p->b, .data_size_in = p->n, .data_out = out.b,
		    .data_size_out = sizeof(out.b), .ctx_in = &skb, .ctx_size_in = sizeof(skb),
		    .repeat = 1);

	if (ifindex == LO)
		memset(p->b, 0, 12);
	if (bpf_prog_test_run_opts(prog, &o) < 0)
		return UINT32_MAX - 1; /* the kernel does not take such a frame */
	memcpy(p->b, out.b, o.data_size_out);
	p->n = o.data_size_out;
	return o.retval;
}

static void assert_end(const struct packet_bytes *p, int v6, bool source, enum who who,
		       unsigned port)
{
	const uint8_t *ip = p->b + 14, *l4 = ip + (v6 ? 40 : 20) + (source ? 0 : 2);
	const struct ax_addr *a = &w.addr[who][v6];

	assert_memory_equal(ip + (v6 ? 8 : 12) +
				    (source ? 0
				     : v6   ? 16
					    : 4),
			    v6 ? a->b : a->b + 12, v6 ? 16 : 4);
	if (port)
		assert_int_equal(l4[0] << 8 | l4[1], port);
}

/* --- what comes in --- */

/* from port 999 to HOST_PORT, unless they say otherwise */
#define TCP(f, ...)                                             \
	{                                                       \
		.proto = IPPROTO_TCP, .flags = (f), __VA_ARGS__ \
	}
#define UDP(...)                                  \
	{                                         \
		.proto = IPPROTO_UDP, __VA_ARGS__ \
	}

/* BROKEN: taken, for the app's own stack to drop. */
enum what { LEFT, TAKEN, TAKEN_ON_LO, BROKEN };

struct row {
	const char *name;
	enum who src, dst;
	struct frame frame;
	enum what what;
};

/* clang-format off */
static const struct row rows[] = {
	{"a SYN", CLIENT, HOST, TCP(SYN), TAKEN},
	{"a datagram", CLIENT, HOST, UDP(), TAKEN},
	{"data of a connection that is not known any more", CLIENT, HOST, TCP(ACK), TAKEN},
	{"a SYN to another port", CLIENT, HOST, TCP(SYN, .dport = 8081), LEFT},
	{"a SYN to the app's port", CLIENT, HOST, TCP(SYN, .dport = APP_PORT), LEFT},
	{"a SYN that is to be forwarded", CLIENT, ELSEWHERE, TCP(SYN), LEFT},
	{"a datagram that is to be forwarded", CLIENT, ELSEWHERE, UDP(), LEFT},
	{"a SYN to the app itself", CLIENT, APP, TCP(SYN), LEFT},
	{"a SYN with an app's address", OTHER, HOST, TCP(SYN), LEFT},
	{"a SYN with the app's own address", APP, HOST, TCP(SYN), LEFT},
	{"a SYN with a loopback address from elsewhere", LOOPBACK, HOST, TCP(SYN), LEFT},
	{"a SYN to a loopback address from elsewhere", CLIENT, LOOPBACK, TCP(SYN), LEFT},
	{"what answers a SYN that others sent", STRANGER, HOST, TCP(SYN | ACK), LEFT},
	{"a RST of nobody's connection", STRANGER, HOST, TCP(RST), LEFT},
	{"a program here, by loopback", LOOPBACK, LOOPBACK, TCP(SYN), TAKEN_ON_LO},
	{"a program here, by loopback, with a datagram", LOOPBACK, LOOPBACK, UDP(), TAKEN_ON_LO},
	{"a wrong version", CLIENT, HOST, TCP(SYN, .version = 5), LEFT},
	{"a length beyond the end", CLIENT, HOST, TCP(SYN, .total = 900), BROKEN},
	{"a length of less than the header", CLIENT, HOST, TCP(SYN, .total = 8), LEFT},
	{"a length of 0", CLIENT, HOST, UDP(.total = TOTAL_ZERO), BROKEN},
	{"half a header", CLIENT, HOST, TCP(SYN, .cut = 50), LEFT},
	{"a first fragment that hides its flags", CLIENT, HOST, TCP(SYN, .frag = MORE, .total = 8), LEFT},
	{"a later fragment of nothing", STRANGER, HOST, UDP(.offset = 100), LEFT},
	{"another ethertype", CLIENT, HOST, TCP(SYN, .ethertype = 0x88b5), LEFT},
};
/* clang-format on */

static void check_row(const struct row *row, int v6)
{
	bool on_lo = row->what == TAKEN_ON_LO;
	struct packet_bytes p, was;
	uint32_t verdict;

	if (row->frame.total == TOTAL_ZERO && v6)
		return; /* BIG TCP's */
	make(&p, &row->frame, v6, row->src, row->dst);
	if (on_lo)
		memset(p.b, 0, 12);
	was = p;
	verdict = run(w.in, on_lo ? LO : w.outside, &p);
	if (verdict == UINT32_MAX - 1)
		return;
	if (row->what == LEFT) {
		if (verdict != NOT_OURS)
			fail_msg("verdict %d", (int)verdict);
		assert_int_equal(p.n, was.n);
		assert_memory_equal(p.b, was.b, p.n);
		return;
	}
	if (verdict != TC_ACT_REDIRECT)
		fail_msg("verdict %d", (int)verdict);
	assert_end(&p, v6, false, APP, APP_PORT);
	assert_end(&p, v6, true, on_lo ? NET : row->src, on_lo ? 0 : 999);
	if (row->what != BROKEN)
		assert_true(ip_sums_right(p.b + 14, p.n - 14));
}

static void test_row4(void **state)
{
	check_row(*state, 0);
}

static void test_row6(void **state)
{
	check_row(*state, 1);
}

/* --- and back --- */

static uint32_t answer(struct packet_bytes *p, const struct frame *f, int v6, enum who to)
{
	make(p, f, v6, APP, to);
	return run(w.back, w.device[APP], p);
}

/* Who has asked is answered by the host's address; who has not, and whoever the app likes, is not
 * reached. */
static void answers_are_turned_back(void **state)
{
	static const struct frame asks[] = {TCP(SYN, .sport = 500), UDP(.sport = 500)};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(asks); i++) {
		struct frame f = asks[i / 2];
		int v6 = (int)i % 2;
		struct packet_bytes p;

		make(&p, &f, v6, CLIENT, HOST);
		assert_int_equal(run(w.in, w.outside, &p), TC_ACT_REDIRECT);
		f.sport = APP_PORT;
		f.dport = 500;
		f.flags = SYN | ACK;
		assert_int_equal(answer(&p, &f, v6, CLIENT), TC_ACT_REDIRECT);
		assert_end(&p, v6, true, HOST, HOST_PORT);
		assert_end(&p, v6, false, CLIENT, 500);
		assert_true(ip_sums_right(p.b + 14, p.n - 14));
		assert_int_equal(answer(&p, &f, v6, STRANGER), TC_ACT_SHOT);
		f.dport = 501;
		assert_int_equal(answer(&p, &f, v6, CLIENT), TC_ACT_SHOT);
		f.dport = 500;
		f.sport = APP_PORT + 1;
		assert_int_equal(answer(&p, &f, v6, CLIENT), TC_ACT_SHOT);
	}
}

static void set_id(struct packet_bytes *p, uint16_t id)
{
	put16(p->b + 14 + 4, id);
	put16(p->b + 14 + 10, 0);
	put16(p->b + 14 + 10, sum_folded(sum_up(p->b + 14, 20)));
}

static void later(struct packet_bytes *p, enum who src, enum who dst, uint16_t id)
{
	const struct frame f = UDP(.offset = 10, .payload = 64);

	make(p, &f, 0, src, dst);
	set_id(p, id);
}

/* Later fragments go where their first one went: those of nobody else, and in no other direction.
 */
static void fragments_follow_the_first(void **state)
{
	const struct frame first = UDP(.sport = 700, .frag = MORE, .payload = 72);
	const struct frame back = {
		.proto = IPPROTO_UDP, .sport = APP_PORT, .dport = 700, .frag = MORE, .payload = 72};
	struct packet_bytes p;

	(void)state;
	later(&p, CLIENT, HOST, 7);
	assert_int_equal(run(w.in, w.outside, &p), NOT_OURS);
	make(&p, &first, 0, CLIENT, HOST);
	set_id(&p, 7);
	assert_int_equal(run(w.in, w.outside, &p), TC_ACT_REDIRECT);
	assert_end(&p, 0, false, APP, APP_PORT);
	later(&p, CLIENT, HOST, 7);
	assert_int_equal(run(w.in, w.outside, &p), TC_ACT_REDIRECT);
	assert_end(&p, 0, false, APP, 0);
	assert_int_equal(sums_to_zero(sum_up(p.b + 14, 20)), true);
	later(&p, CLIENT, HOST, 8);
	assert_int_equal(run(w.in, w.outside, &p), NOT_OURS);
	later(&p, STRANGER, HOST, 7);
	assert_int_equal(run(w.in, w.outside, &p), NOT_OURS);
	later(&p, APP, CLIENT, 7);
	assert_int_equal(run(w.back, w.device[APP], &p), TC_ACT_SHOT);

	make(&p, &back, 0, APP, CLIENT);
	set_id(&p, 9);
	assert_int_equal(run(w.back, w.device[APP], &p), TC_ACT_REDIRECT);
	assert_end(&p, 0, true, HOST, HOST_PORT);
	later(&p, APP, CLIENT, 9);
	assert_int_equal(run(w.back, w.device[APP], &p), TC_ACT_REDIRECT);
	assert_end(&p, 0, true, HOST, 0);
	/* whoever outside says that he is the app */
	later(&p, APP, CLIENT, 9);
	assert_int_equal(run(w.in, w.outside, &p), NOT_OURS);
}

/* A datagram to the host itself that has the identification of one for an exposed port, which
 * whoever sends with another's address may have chosen: the app has none of it. */
static void fragments_of_the_host_stay_its(void **state)
{
	static const struct frame theirs[] = {
		UDP(.sport = 701, .frag = MORE, .payload = 72),
		UDP(.sport = 701, .dport = 53, .frag = MORE, .payload = 72),
	};
	struct packet_bytes p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++) {
		make(&p, &theirs[i], 0, CLIENT, HOST);
		set_id(&p, 11);
		assert_int_equal(run(w.in, w.outside, &p), i ? NOT_OURS : TC_ACT_REDIRECT);
		later(&p, CLIENT, HOST, 11);
		assert_int_equal(run(w.in, w.outside, &p), i ? NOT_OURS : TC_ACT_REDIRECT);
	}
}

/* A connection that stands is not ended by a SYN that somebody sends with its address and port. */
static void what_stands_is_not_taken_over(void **state)
{
	struct frame f = TCP(SYN, .sport = 600);
	struct packet_bytes p;

	(void)state;
	make(&p, &f, 0, CLIENT, HOST);
	assert_int_equal(run(w.in, w.outside, &p), TC_ACT_REDIRECT);
	f = (struct frame){
		.proto = IPPROTO_TCP, .flags = SYN | ACK, .sport = APP_PORT, .dport = 600};
	assert_int_equal(answer(&p, &f, 0, CLIENT), TC_ACT_REDIRECT);
	f = (struct frame)TCP(ACK, .sport = 600);
	make(&p, &f, 0, CLIENT, HOST);
	assert_int_equal(run(w.in, w.outside, &p), TC_ACT_REDIRECT);
	f = (struct frame)TCP(SYN, .sport = 600);
	make(&p, &f, 0, CLIENT, HOST);
	assert_int_equal(run(w.in, w.outside, &p), TC_ACT_REDIRECT);
	assert_end(&p, 0, true, CLIENT, 600);
	/* nor by a SYN to the app itself, which its device's other program sees */
	f = (struct frame){.proto = IPPROTO_TCP, .flags = ACK, .sport = APP_PORT, .dport = 600};
	assert_int_equal(answer(&p, &f, 0, CLIENT), TC_ACT_REDIRECT);
	assert_end(&p, 0, true, HOST, HOST_PORT);
}

/* --- what routers say --- */

static size_t l4_of(int v6)
{
	return 14 + (v6 ? 40 : 20);
}

/* That `sent` is too long, as a router tells its sender: the headers and 8 bytes of it. */
static void too_long(struct packet_bytes *p, const struct packet_bytes *sent, int v6)
{
	static const struct frame f = {
		.proto = IPPROTO_ICMP, .payload = 64, .dport = 1, .sport = 1};
	size_t at = l4_of(v6), len = l4_of(v6) - 14 + 8, from = v6 ? 22 : 26, n = v6 ? 16 : 4;
	struct frame icmp = f;
	uint64_t sum;

	icmp.proto = v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	icmp.payload = (unsigned)len + 8;
	memset(p, 0, sizeof(*p));
	p->n = (uint32_t)put_frame(p->b, &icmp, v6, &w.addr[STRANGER][v6], &w.addr[APP][v6]);
	p->n = (uint32_t)(at + 8 + len);
	if (!v6) {
		put16(p->b + 16, (uint16_t)(p->n - 14));
		put16(p->b + 24, 0);
		put16(p->b + 24, sum_folded(sum_up(p->b + 14, 20)));
	} else {
		put16(p->b + 18, (uint16_t)(p->n - at));
	}
	memset(p->b + at, 0, 8);
	p->b[at] = v6 ? 2 : 3;
	p->b[at + 1] = v6 ? 0 : 4;
	put16(p->b + at + 6, 1300);
	memcpy(p->b + at + 8, sent->b + 14, len);
	sum = v6 ? sum_up(p->b + from, 2 * n) + IPPROTO_ICMPV6 + (p->n - at) : 0;
	put16(p->b + at + 2, sum_folded(sum + sum_up(p->b + at, p->n - at)));
}

static void is_told(const struct packet_bytes *sent, int v6, unsigned dport)
{
	size_t at = l4_of(v6), quoted = at + 8 + at - 14;
	struct packet_bytes p, was;
	uint64_t sum;

	too_long(&p, sent, v6);
	was = p;
	assert_int_equal((int)run(w.to, w.device[APP], &p), TC_ACT_UNSPEC);
	assert_int_equal(p.n, was.n);
	assert_int_equal(p.b[quoted + 2] << 8 | p.b[quoted + 3], dport);
	sum = v6 ? sum_up(p.b + 22, 32) + IPPROTO_ICMPV6 + (p.n - at) : 0;
	assert_true(sums_to_zero(sum + sum_up(p.b + at, p.n - at)));
	/* and nothing else is another */
	memcpy(was.b + at + 2, p.b + at + 2, 2);
	memcpy(was.b + quoted + 2, p.b + quoted + 2, 2);
	assert_memory_equal(p.b + 12, was.b + 12, p.n - 12);
}

/* A client's connection to the app itself has another port to the app than it has on the way: what
 * an ICMP error quotes has the one of the app's connection, so that its path MTU is found. */
static void errors_quote(int v6)
{
	struct frame f = TCP(SYN, .sport = 650, .dport = APP_PORT);
	const struct frame back = {
		.proto = IPPROTO_TCP, .flags = ACK, .sport = APP_PORT, .dport = 650};
	struct packet_bytes p;
	const uint8_t *sport = p.b + l4_of(v6);
	unsigned port;

	make(&p, &(const struct frame)TCP(SYN, .sport = 650), v6, CLIENT, HOST);
	assert_int_equal(run(w.in, w.outside, &p), TC_ACT_REDIRECT);
	assert_end(&p, v6, true, CLIENT, 650);
	make(&p, &back, v6, APP, CLIENT);
	is_told(&p, v6, 650); /* there is no other connection yet */
	make(&p, &f, v6, CLIENT, APP);
	assert_int_equal((int)run(w.to, w.device[APP], &p), TC_ACT_UNSPEC);
	port = (unsigned)(sport[0] << 8 | sport[1]);
	assert_int_not_equal(port, 650);
	make(&p, &back, v6, APP, CLIENT);
	is_told(&p, v6, port);
	make(&p, &back, v6, APP, STRANGER);
	is_told(&p, v6, 650); /* another client's */
	make(&p, &back, v6, OTHER, CLIENT);
	is_told(&p, v6, 650); /* no packet of the app's */
	f = back;
	f.dport = 651;
	make(&p, &f, v6, APP, CLIENT);
	is_told(&p, v6, 651);
}

static void errors_quote_what_the_app_knows4(void **state)
{
	(void)state;
	errors_quote(0);
}

static void errors_quote_what_the_app_knows6(void **state)
{
	(void)state;
	errors_quote(1);
}

/* --- anything --- */

static uint64_t random_state = 0x6178;

static uint32_t random_number(void)
{
	/* splitmix64, public domain: https://prng.di.unimi.it/splitmix64.c */
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(z >> 33);
}

/* Whatever is left to the host's stack is as it came, and whatever goes to the app is for it. */
static void any_bytes_are_survived(void **state)
{
	(void)state;
	for (int i = 0; i < RANDOM_TIMES; i++) {
		const struct frame f = TCP(SYN, .payload = random_number() % 64);
		const struct frame g =
			UDP(.frag = random_number() % 2, .offset = random_number() % 3);
		int v6 = (int)(random_number() % 2);
		struct packet_bytes p, was;
		uint32_t verdict;

		make(&p, random_number() % 2 ? &f : &g, v6, CLIENT, HOST);
		for (uint32_t n = random_number() % 4; n; n--)
			p.b[12 + random_number() % (p.n - 12)] = (uint8_t)random_number();
		if (random_number() % 4 == 0)
			p.n -= random_number() % (p.n - 14);
		was = p;
		verdict = run(w.in, w.outside, &p);
		if (verdict == UINT32_MAX - 1)
			continue;
		if (verdict == NOT_OURS)
			assert_memory_equal(p.b, was.b, p.n);
		else if (verdict == TC_ACT_REDIRECT)
			assert_end(&p, p.b[12] == 0x86, false, APP, 0);
		else
			assert_int_equal(verdict, TC_ACT_SHOT);
	}
}

/* --- the world --- */

static int make_devices(void)
{
	static const uint8_t mac[6] = {2, 2, 2, 2, 2, 2};
	autoclose int ns = ns_current();
	int r = nl_open(&w.nl);

	r = r ? r : nl_link_add_veth(w.nl, "app0", "app0p", ns, mac, 1500, &w.device[APP]);
	r = r ? r : nl_link_add_veth(w.nl, "app1", "app1p", ns, mac, 1500, &w.device[OTHER]);
	r = r ? r : nl_link_add_veth(w.nl, "out0", "out0p", ns, mac, 1500, &w.outside);
	if (r)
		return r;
	return system("echo 0 >/proc/sys/net/ipv6/conf/out0/accept_dad; for i in lo app0 app0p "
		      "app1 app1p "
		      "out0 out0p; do ip link set $i up || exit 1; done; "
		      "ip addr add 192.0.2.254/24 dev out0 && ip addr add 2001:db8::fe/64 dev out0 "
		      "nodad && "
		      "echo 1 >/proc/sys/net/ipv4/ip_forward && "
		      "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
		       ? -1
		       : 0;
}

static int tell_vip(enum who who, int v6)
{
	struct ax_vip v = {.kind = who == NET ? AX_VIP_HOST : AX_VIP_APP,
			   .id = (uint32_t)who + 1,
			   .party = (uint32_t)who + 1,
			   .ifindex = who == NET ? 0 : w.device[who]};

	return datapath_vip_set(w.dp, &w.addr[who][v6], &v);
}

static int expose(uint8_t proto, int v6)
{
	struct ax_exposed_key key = {.at = {.port_be = htons(HOST_PORT), .proto = proto}};
	const struct ax_exposed to = {
		.to = {.addr = w.addr[APP][v6], .port_be = htons(APP_PORT), .proto = proto}};
	int r;

	if (!v6)
		key.at.addr = addr_from_v4(0);
	r = datapath_exposed_set(w.dp, &key, &to);
	return r ? r
		 : datapath_exposed_ports(w.dp, AX_EXPOSED_WORD(HOST_PORT, proto == IPPROTO_UDP),
					  AX_EXPOSED_BIT(HOST_PORT));
}

static int tell_kernel(void)
{
	struct ax_ctl c = {
		.exposed = AX_EXPOSED_PACKETS, .ephemeral_first = 32768, .host_access = true};
	int r = 0;

	for (int i = 0; i < WHO && !r; i++)
		for (int v6 = 0; v6 < 2 && !r; v6++)
			r = addr_parse(addresses[i][v6], &w.addr[i][v6]);
	for (int i = 0; i <= NET && !r; i++)
		for (int v6 = 0; v6 < 2 && !r; v6++)
			r = tell_vip((enum who)i, v6);
	for (int v6 = 0; v6 < 2 && !r; v6++) {
		r = expose(IPPROTO_TCP, v6);
		r = r ? r : expose(IPPROTO_UDP, v6);
	}
	c.host4 = w.addr[NET][0];
	c.host6 = w.addr[NET][1];
	r = r ? r : datapath_ctl_set(w.dp, &c);
	r = r ? r : datapath_local_addrs(w.dp, w.addr[HOST], 2);
	return r < 0 ? r : 0;
}

static int setup(void **state)
{
	struct error e = {0};
	bool fresh;

	(void)state;
	if (make_devices() || own_instance(&w.inst, w.cgroup))
		return -1;
	if (datapath_open(&w.inst, w.cgroup, &w.dp, &fresh, &e)) {
		print_message("# %s\n", e.text);
		return -1;
	}
	w.in = datapath_program_fd(w.dp, "ax_from_outside");
	w.back = datapath_program_fd(w.dp, "ax_from_app");
	w.to = datapath_program_fd(w.dp, "ax_to_app");
	return w.in < 0 || w.back < 0 || w.to < 0 || tell_kernel() ? -1 : 0;
}

static int teardown(void **state)
{
	struct error e;

	(void)state;
	datapath_close(w.dp);
	nl_closep(&w.nl);
	return datapath_remove(&w.inst, &e) || cgroup_remove(w.cgroup) ? -1 : 0;
}

int main(void)
{
	static struct CMUnitTest tests[2 * ARRAY_SIZE(rows) + 7];
	static char names[ARRAY_SIZE(tests)][100];
	size_t n = 0;

	if (own_namespaces())
		return 1;
	for (; n < 2 * ARRAY_SIZE(rows); n++) {
		const struct row *row = &rows[n / 2];

		snprintf(names[n], sizeof(names[n]), "%s (IPv%d)", row->name, n % 2 ? 6 : 4);
		tests[n] = (struct CMUnitTest){.name = names[n],
					       .test_func = n % 2 ? test_row6 : test_row4,
					       .initial_state = (void *)(uintptr_t)row};
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(answers_are_turned_back);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(fragments_follow_the_first);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(fragments_of_the_host_stay_its);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(what_stands_is_not_taken_over);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(errors_quote_what_the_app_knows4);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(errors_quote_what_the_app_knows6);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(any_bytes_are_survived);
	return cmocka_run_group_tests(tests, setup, teardown);
}
