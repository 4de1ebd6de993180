/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* Private apps' connections to and from other nodes whose packets are not routed, packet by packet
 * and by both families: who asks is said, and nothing that the app says of itself; addresses, ports
 * and checksums are right at both sides; and nobody's connections take another's place. */
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

#include "across.h"
#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "machine/cgroup.h"
#include "service.h"
#include "tests/lib/checksums.h"
#include "tests/lib/frame_build.h"
#include "tests/lib/instance.h"
#include "tests/lib/netns.h"
#include "tests/lib/siphash.h"

#define NOT_OURS   ((uint32_t)TC_ACT_UNSPEC)
#define OPTIONS	   24
#define MTU	   1400	 /* of the way to other nodes */
#define APP_PORT   80	 /* of APP's server, */
#define APP_VIA	   61001 /* which has this node's port */
#define ONLY_VIA   61003 /* the same, by IPv4 alone */
#define FAR_PORT   8080	 /* of REMOTE's server, */
#define FAR_VIA	   61005 /* which has that port of its node */
#define FAR_NUMBER 77
#define KEY_ID	   5

enum who {
	APP,	/* private, with a server */
	OTHER,	/* private */
	EGRESS, /* private, may leave */
	REMOTE, /* an app of NODE's */
	RED,	/* one without a label in common */
	VIPS,
	HERE = VIPS, /* this node */
	GONE,	     /* an app that is known by its number alone */
	NODE,
	STRANGER, /* a machine outside the cluster */
	WHO
};
#define PRIVATE REMOTE /* those before it */

static const char *const addresses[WHO][2] = {
	[APP] = {"10.1.0.2", "fd61:1::2"},	 [OTHER] = {"10.1.0.3", "fd61:1::3"},
	[EGRESS] = {"10.1.0.4", "fd61:1::4"},	 [REMOTE] = {"10.2.0.2", "fd61:2::2"},
	[RED] = {"10.2.0.3", "fd61:2::3"},	 [GONE] = {"10.2.0.4", "fd61:2::4"},
	[HERE] = {"192.0.2.11", "fd99::11"},	 [NODE] = {"192.0.2.12", "fd99::12"},
	[STRANGER] = {"192.0.2.66", "fd99::66"},
};

static struct {
	struct instance inst;
	char cgroup[4096];
	struct datapath *dp;
	struct nl *nl;
	int in, back; /* ax_across, ax_from_app */
	struct ax_addr families[2][WHO];
	const struct ax_addr *addr; /* of the family that is tried */
	bool six;
	unsigned device[PRIVATE], outside;
} w;

struct packet_bytes {
	uint32_t n;
	uint16_t pad; /* so that IP headers are aligned */
	uint8_t b[FRAME_BUILT_MAX];
};

/* --- frames --- */

static size_t ip_size(void)
{
	return w.six ? 40 : 20;
}

static size_t tcp_at(void)
{
	return 14 + ip_size();
}

/* Behind the MSS and two bytes of padding. */
static size_t option_at(void)
{
	return tcp_at() + 20 + 6;
}

/* Where the source's address is, in the form of the family. */
static size_t ends_at(void)
{
	return w.six ? 8 : 12;
}

static size_t addr_size(void)
{
	return w.six ? 16 : 4;
}

static const uint8_t *addr_bytes(enum who who)
{
	return w.addr[who].b + 16 - addr_size();
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static unsigned get16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

static void fill_sums(struct packet_bytes *p)
{
	uint8_t *ip = p->b + 14, *l4 = p->b + tcp_at();
	size_t len = p->n - tcp_at();

	if (!w.six) {
		put16(ip + 10, 0);
		put16(ip + 10, sum_folded(sum_up(ip, 20)));
	}
	put16(l4 + 16, 0);
	put16(l4 + 16, sum_folded(sum_up(ip + ends_at(), 2 * addr_size()) + IPPROTO_TCP + len +
				  sum_up(l4, len)));
}

/* A segment; SYNs with room for options. */
static void make(struct packet_bytes *p, uint8_t flags, enum who src, unsigned sport, enum who dst,
		 unsigned dport)
{
	const struct frame f = {.proto = IPPROTO_TCP,
				.flags = flags,
				.sport = (uint16_t)sport,
				.dport = (uint16_t)dport,
				.payload = OPTIONS};

	p->n = (uint32_t)put_frame(p->b, &f, w.six, &w.addr[src], &w.addr[dst]);
	memcpy(p->b + tcp_at() + 4, "\1\2\3\4", 4);
	if (flags & SYN) {
		p->b[tcp_at() + 12] = (20 + OPTIONS) / 4 << 4;
		memcpy(p->b + tcp_at() + 20, "\2\4\5\xb4\1\1", 6); /* 1460 */
	}
	fill_sums(p);
}

/* What an app's kernel leaves room for. */
static void put_room(struct packet_bytes *p, uint32_t claims)
{
	struct ax_across_option o = {.kind = AX_ACROSS_KIND,
				     .len = sizeof(o),
				     .exid_be = htons(AX_ACROSS_EXID),
				     .version = AX_ACROSS_VERSION,
				     .key_id = KEY_ID,
				     .number_be = htonl(claims)};

	memset(o.mac, 0xee, claims ? sizeof(o.mac) : 0);
	memcpy(p->b + option_at(), &o, sizeof(o));
	fill_sums(p);
}

static void hide(struct packet_bytes *p, uint8_t kind, unsigned field)
{
	p->n = (uint32_t)put_extension(p->b, p->n, kind, field);
}

static uint32_t run(int prog, unsigned ifindex, struct packet_bytes *p)
{
	struct __sk_buff skb = {.ifindex = ifindex};
	struct packet_bytes out;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p->b, .data_size_in = p->n, .data_out = out.b,
		    .data_size_out = sizeof(out.b), .ctx_in = &skb, .ctx_size_in = sizeof(skb),
		    .repeat = 1);

	if (bpf_prog_test_run_opts(prog, &o) < 0)
		return UINT32_MAX - 1; /* the kernel does not take such a frame */
	memcpy(p->b, out.b, o.data_size_out);
	p->n = o.data_size_out;
	return o.retval;
}

static uint32_t leave(struct packet_bytes *p, enum who app)
{
	return run(w.back, w.device[app], p);
}

static uint32_t come(struct packet_bytes *p)
{
	return run(w.in, w.outside, p);
}

/* Returns the source's port. */
static unsigned assert_ends(const struct packet_bytes *p, enum who src, unsigned sport,
			    enum who dst, unsigned dport)
{
	const uint8_t *ends = p->b + 14 + ends_at();

	assert_memory_equal(ends, addr_bytes(src), addr_size());
	assert_memory_equal(ends + addr_size(), addr_bytes(dst), addr_size());
	if (sport)
		assert_int_equal(get16(p->b + tcp_at()), sport);
	assert_int_equal(get16(p->b + tcp_at() + 2), dport);
	assert_true(ip_sums_right(p->b + 14, p->n - 14));
	return get16(p->b + tcp_at());
}

/* --- the signature --- */

static const struct ax_across_ctl ctl = {.now = {.k = {0x1122334455667788, 42}, .id = KEY_ID}};

/* Of a SYN between nodes that is for that server. */
static uint64_t mac_of(const struct packet_bytes *p, enum who client, enum who server,
		       unsigned port, uint32_t number)
{
	struct ax_across_mac m = {.client = w.addr[client],
				  .server = w.addr[server],
				  .server_port_be = htons((uint16_t)port),
				  .version = AX_ACROSS_VERSION,
				  .key_id = KEY_ID,
				  .number_be = htonl(number)};

	memcpy(&m.client_port_be, p->b + tcp_at(), 2);
	memcpy(&m.to_port_be, p->b + tcp_at() + 2, 2);
	memcpy(&m.seq_be, p->b + tcp_at() + 4, 4);
	return siphash((const uint64_t[]){ctl.now.k[0], ctl.now.k[1]}, &m, sizeof(m));
}

static void sign(struct packet_bytes *p, uint32_t number)
{
	uint64_t mac = mac_of(p, NODE, APP, APP_PORT, number);

	put_room(p, number);
	memcpy(p->b + option_at() + offsetof(struct ax_across_option, mac), &mac, sizeof(mac));
	fill_sums(p);
}

/* --- clients --- */

static uint32_t ask(struct packet_bytes *p, enum who app, unsigned sport)
{
	make(p, SYN, app, sport, REMOTE, FAR_PORT);
	put_room(p, 0);
	return leave(p, app);
}

/* The port by which it goes to the node. */
static unsigned connect_to(struct packet_bytes *p, enum who app, unsigned sport)
{
	assert_int_equal(ask(p, app, sport), TC_ACT_REDIRECT);
	return assert_ends(p, HERE, 0, NODE, FAR_VIA);
}

static void a_client_goes_to_the_server_of_a_node(void **state)
{
	struct ax_across_option o;
	struct packet_bytes p;
	uint64_t mac;
	unsigned port;

	(void)state;
	port = connect_to(&p, APP, 5000);
	assert_in_range(port, 1024, 32767);
	memcpy(&o, p.b + option_at(), sizeof(o));
	mac = mac_of(&p, HERE, REMOTE, FAR_PORT, APP + 1);
	assert_int_equal(ntohl(o.number_be), APP + 1);
	assert_int_equal(o.key_id, KEY_ID);
	assert_memory_equal(o.mac, &mac, sizeof(mac));
	assert_int_equal(get16(p.b + tcp_at() + 22), MTU - 20 - ip_size()); /* as the way has it */

	make(&p, SYN | ACK, NODE, FAR_VIA, HERE, port);
	assert_int_equal(come(&p), TC_ACT_REDIRECT);
	assert_ends(&p, REMOTE, FAR_PORT, APP, 5000);
	make(&p, ACK, APP, 5000, REMOTE, FAR_PORT);
	assert_int_equal(leave(&p, APP), TC_ACT_REDIRECT);
	assert_ends(&p, HERE, port, NODE, FAR_VIA);
	assert_int_equal(connect_to(&p, APP, 5000), port); /* asked once more */
	assert_int_not_equal(connect_to(&p, OTHER, 5000), port);
}

static void an_app_says_nothing_of_itself(void **state)
{
	struct ax_across_option o;
	struct packet_bytes p;
	uint64_t mac;

	(void)state;
	make(&p, SYN, OTHER, 5001, REMOTE, FAR_PORT);
	put_room(&p, FAR_NUMBER);
	assert_int_equal(leave(&p, OTHER), TC_ACT_REDIRECT);
	mac = mac_of(&p, HERE, REMOTE, FAR_PORT, OTHER + 1);
	memcpy(&o, p.b + option_at(), sizeof(o));
	assert_int_equal(ntohl(o.number_be), OTHER + 1);
	assert_memory_equal(o.mac, &mac, sizeof(mac));
}

static void what_is_not_a_connection_does_not_leave(void **state)
{
	struct packet_bytes p;

	(void)state;
	make(&p, SYN, APP, 5002, REMOTE, FAR_PORT); /* without room for who it is */
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
	make(&p, SYN, APP, 5002, REMOTE, FAR_PORT); /* with too little of it */
	put_room(&p, 0);
	p.b[option_at() + 1] = 17;
	fill_sums(&p);
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
	make(&p, ACK, APP, 5003, REMOTE, FAR_PORT);
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
	make(&p, SYN, APP, 5004, REMOTE, FAR_PORT + 1); /* nobody serves that */
	put_room(&p, 0);
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
	make(&p, SYN, APP, 5005, RED, FAR_PORT);
	put_room(&p, 0);
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
	make(&p, SYN, OTHER, 5006, REMOTE, FAR_PORT); /* by another one's device */
	put_room(&p, 0);
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
	connect_to(&p, APP, 5007);
	make(&p, ACK, APP, 5007, REMOTE, FAR_PORT);
	p.b[14 + 6] = w.six ? p.b[14 + 6] : 0x20; /* a first fragment */
	fill_sums(&p);
	if (w.six)
		hide(&p, IPPROTO_FRAGMENT, 1);
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
}

/* An app that may leave does not meddle with what others have at a node's port. */
static void nobody_goes_to_nodes_ports_by_himself(void **state)
{
	static const uint8_t flags[] = {SYN, ACK, RST, SYN | ACK, FIN | ACK};
	struct packet_bytes p;

	(void)state;
	for (size_t i = 0; i < sizeof(flags); i++) {
		make(&p, flags[i], EGRESS, 5000, NODE, FAR_VIA);
		assert_int_equal(leave(&p, EGRESS), TC_ACT_SHOT);
	}
	for (size_t i = 0; w.six && i < sizeof(flags); i++) {
		make(&p, flags[i], EGRESS, 5000, NODE, FAR_VIA);
		hide(&p, IPPROTO_DSTOPTS, 0);
		assert_int_equal(leave(&p, EGRESS), TC_ACT_SHOT);
		make(&p, flags[i], EGRESS, 5000, NODE, FAR_VIA);
		hide(&p, IPPROTO_FRAGMENT, 1);
		assert_int_equal(leave(&p, EGRESS), TC_ACT_SHOT);
	}
	make(&p, SYN, EGRESS, 5000, NODE, 80);
	assert_int_equal(leave(&p, EGRESS), TC_ACT_OK);
}

/* Turns it into an error (too long for the way) that quotes the begin of `sent`. */
static void put_error(struct packet_bytes *p, const struct packet_bytes *sent)
{
	size_t quoted = ip_size() + 8, len = 8 + quoted;
	uint8_t *ip = p->b + 14, *icmp = p->b + tcp_at();
	uint64_t pseudo = 0;

	p->n = (uint32_t)(tcp_at() + len);
	memset(icmp, 0, 8);
	put16(icmp, w.six ? 2 << 8 : 3 << 8 | 4);
	put16(icmp + 6, 1280);
	memcpy(icmp + 8, sent->b + 14, quoted);
	if (w.six) {
		ip[6] = IPPROTO_ICMPV6;
		put16(ip + 4, (unsigned)len);
		pseudo = sum_up(ip + 8, 32) + IPPROTO_ICMPV6 + len;
	} else {
		ip[9] = IPPROTO_ICMP;
		put16(ip + 2, p->n - 14);
		put16(ip + 10, 0);
		put16(ip + 10, sum_folded(sum_up(ip, 20)));
	}
	put16(icmp + 2, sum_folded(pseudo + sum_up(icmp, len)));
	assert_true(ip_sums_right(ip, p->n - 14));
}

static void an_error_quotes_what_the_app_has_sent(void **state)
{
	struct packet_bytes p, sent;
	const uint8_t *quoted;
	unsigned port;

	(void)state;
	port = connect_to(&p, APP, 5008);
	make(&sent, ACK, HERE, port, NODE, FAR_VIA);
	make(&p, ACK, STRANGER, 1, HERE, 1);
	put_error(&p, &sent);
	assert_int_equal(come(&p), TC_ACT_REDIRECT);
	assert_true(ip_sums_right(p.b + 14, p.n - 14));
	assert_memory_equal(p.b + 14 + ends_at() + addr_size(), addr_bytes(APP), addr_size());
	quoted = p.b + tcp_at() + 8;
	assert_memory_equal(quoted + ends_at(), addr_bytes(APP), addr_size());
	assert_memory_equal(quoted + ends_at() + addr_size(), addr_bytes(REMOTE), addr_size());
	assert_int_equal(get16(quoted + ip_size()), 5008);
	assert_int_equal(get16(quoted + ip_size() + 2), FAR_PORT);
}

/* --- servers --- */

static uint32_t visit(struct packet_bytes *p, unsigned sport, uint32_t number)
{
	make(p, SYN, NODE, sport, HERE, APP_VIA);
	sign(p, number);
	return come(p);
}

static void a_server_sees_the_client_itself(void **state)
{
	struct packet_bytes p;

	(void)state;
	assert_int_equal(visit(&p, 6000, FAR_NUMBER), TC_ACT_REDIRECT);
	assert_ends(&p, REMOTE, 6000, APP, APP_PORT);
	make(&p, SYN | ACK, APP, APP_PORT, REMOTE, 6000);
	assert_int_equal(leave(&p, APP), TC_ACT_REDIRECT);
	assert_ends(&p, HERE, APP_VIA, NODE, 6000);
	make(&p, ACK, NODE, 6000, HERE, APP_VIA);
	assert_int_equal(come(&p), TC_ACT_REDIRECT);
	assert_ends(&p, REMOTE, 6000, APP, APP_PORT);
	make(&p, SYN | ACK, APP, APP_PORT, REMOTE, 6001); /* who has not asked */
	assert_int_equal(leave(&p, APP), TC_ACT_SHOT);
}

/* (The stack judges once more, and refuses.) */
static void who_may_not_have_a_server_is_left_to_the_stack(void **state)
{
	struct packet_bytes p;

	(void)state;
	assert_int_equal(visit(&p, 6010, FAR_NUMBER + 1), NOT_OURS); /* RED */
	make(&p, ACK, NODE, 6010, HERE, APP_VIA);
	assert_int_equal(come(&p), NOT_OURS);
	assert_int_equal(visit(&p, 6013, FAR_NUMBER + 3), NOT_OURS); /* an app that is no more */
	make(&p, SYN, STRANGER, 6011, HERE, APP_VIA);
	assert_int_equal(come(&p), NOT_OURS);
	make(&p, SYN, NODE, 6012, HERE, APP_VIA + 1); /* nobody's */
	assert_int_equal(come(&p), NOT_OURS);
}

static void who_lies_is_dropped(void **state)
{
	struct packet_bytes p;

	(void)state;
	make(&p, SYN, NODE, 6020, HERE, APP_VIA);
	sign(&p, FAR_NUMBER);
	p.b[tcp_at() + 7]++; /* of another SYN */
	fill_sums(&p);
	assert_int_equal(come(&p), TC_ACT_SHOT);
	make(&p, SYN, NODE, 6020, HERE, APP_VIA);
	put_room(&p, FAR_NUMBER);
	assert_int_equal(come(&p), TC_ACT_SHOT);
	assert_int_equal(visit(&p, 6021, FAR_NUMBER + 2), TC_ACT_SHOT); /* not known yet */
}

static void who_says_nothing_is_its_node(void **state)
{
	struct packet_bytes p;

	(void)state;
	make(&p, SYN, NODE, 6030, HERE, APP_VIA);
	assert_int_equal(come(&p), TC_ACT_REDIRECT);
	assert_ends(&p, NODE, 6030, APP, APP_PORT);
	make(&p, SYN | ACK, APP, APP_PORT, NODE, 6030);
	assert_int_equal(leave(&p, APP), TC_ACT_REDIRECT);
	assert_ends(&p, HERE, APP_VIA, NODE, 6030);
}

/* Who has signed a SYN, and what is in front of it: IPv6 has headers that TCP never sends. */
static void what_hides_is_not_read(void **state)
{
	static const struct {
		uint8_t kind;
		unsigned offset;
	} first[] = {{IPPROTO_DSTOPTS, 0},  {IPPROTO_HOPOPTS, 0},  {IPPROTO_ROUTING, 0},
		     {IPPROTO_FRAGMENT, 0}, {IPPROTO_FRAGMENT, 1}, {IPPROTO_AH, 0}};
	struct packet_bytes p;

	(void)state;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
		make(&p, SYN, NODE, 6040, HERE, APP_VIA);
		sign(&p, FAR_NUMBER);
		hide(&p, first[i].kind, first[i].offset);
		assert_int_equal(come(&p), TC_ACT_SHOT);
		make(&p, ACK, NODE, 6040, HERE, APP_VIA); /* nobody has asked */
		hide(&p, first[i].kind, first[i].offset);
		assert_int_equal(come(&p), NOT_OURS);
		make(&p, SYN, NODE, 6040, HERE, 80); /* what is no matter of ours */
		hide(&p, first[i].kind, first[i].offset);
		assert_int_equal(come(&p), NOT_OURS);
		make(&p, SYN, NODE, 6040, STRANGER, APP_VIA);
		hide(&p, first[i].kind, first[i].offset);
		assert_int_equal(come(&p), NOT_OURS);
	}
	make(&p, SYN, NODE, 6040, HERE, APP_VIA);
	sign(&p, FAR_NUMBER);
	for (unsigned i = 0; i < 12; i++) /* more than anybody looks behind */
		hide(&p, IPPROTO_DSTOPTS, 0);
	assert_int_equal(come(&p), TC_ACT_SHOT);
	make(&p, SYN, NODE, 6040, HERE, APP_VIA);
	hide(&p, IPPROTO_FRAGMENT, 1);
	p.n = (uint32_t)tcp_at() + 8 + 8; /* a first one without the whole of TCP's header */
	put16(p.b + 14 + 4, 16);
	assert_int_equal(come(&p), TC_ACT_SHOT);
	make(&p, ACK, NODE, 6040, HERE, APP_VIA);
	hide(&p, IPPROTO_FRAGMENT, 64); /* a later one: of nobody's any more */
	assert_int_equal(come(&p), NOT_OURS);
}

/* Its addresses are those of IPv4, by which something else is meant. */
static void a_mapped_address_is_no_nodes(void **state)
{
	const struct ax_addr *four = w.families[0];
	struct packet_bytes p;

	(void)state;
	make(&p, SYN, NODE, 6050, HERE, APP_VIA);
	sign(&p, FAR_NUMBER);
	memcpy(p.b + 14 + 8, four[NODE].b, 16);
	fill_sums(&p);
	assert_int_equal(come(&p), NOT_OURS);
	memcpy(p.b + 14 + 24, four[HERE].b, 16);
	fill_sums(&p);
	assert_int_equal(come(&p), NOT_OURS);
}

/* A server is reached by its own family alone, whatever has the same port by the other one. */
static void ports_are_of_a_family(void **state)
{
	struct packet_bytes p;

	(void)state;
	make(&p, SYN, NODE, 6060, HERE, ONLY_VIA);
	assert_int_equal(come(&p), w.six ? NOT_OURS : TC_ACT_REDIRECT);
}

/* --- places --- */

static int map_fd(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), BPFFS "/%s/map_%s", w.inst.name, name);
	return bpf_obj_get(path);
}

/* How many keys a map has, or those that begin with that number. */
static unsigned keys_of(const char *map, uint32_t app)
{
	union {
		struct ax_across_slot slot;
		struct ax_across_ends ends;
	} key, next;
	autoclose int fd = map_fd(map);
	unsigned n = 0;

	assert_true(fd >= 0);
	for (int r = bpf_map_get_next_key(fd, NULL, &next); !r;
	     r = bpf_map_get_next_key(fd, &key, &next)) {
		n += !app || next.slot.app == app;
		key = next;
	}
	return n;
}

static void nobody_takes_anothers_place(void **state)
{
	unsigned ports[2], sum = 0;
	struct packet_bytes p;

	(void)state;
	ports[0] = connect_to(&p, APP, 7000); /* established */
	make(&p, SYN | ACK, NODE, FAR_VIA, HERE, ports[0]);
	come(&p);
	make(&p, ACK, APP, 7000, REMOTE, FAR_PORT);
	leave(&p, APP);
	ports[1] = connect_to(&p, APP, 7001); /* not yet */
	for (unsigned i = 0; i < 3 * AX_ACROSS_SLOTS; i++)
		ask(&p, OTHER, 20000 + i);
	assert_in_range(keys_of("across_slots", OTHER + 1), 1, AX_ACROSS_SLOTS);
	for (unsigned i = 0; i < 2; i++) {
		make(&p, ACK, NODE, FAR_VIA, HERE, ports[i]);
		assert_int_equal(come(&p), TC_ACT_REDIRECT);
		assert_ends(&p, REMOTE, FAR_PORT, APP, 7000 + i);
	}
	/* nor does what it asks for end what it has open */
	for (unsigned i = 0; i < 3 * AX_ACROSS_SLOTS; i++)
		ask(&p, APP, 20000 + i);
	make(&p, ACK, NODE, FAR_VIA, HERE, ports[0]);
	assert_int_equal(come(&p), TC_ACT_REDIRECT);
	for (uint32_t app = 1; app <= PRIVATE; app++)
		sum += keys_of("across_slots", app);
	assert_int_equal(keys_of("across_flows", 0), 2 * sum);
}

static void they_end_with_the_app(void **state)
{
	unsigned port, others;
	struct packet_bytes p;

	(void)state;
	port = connect_to(&p, OTHER, 7100);
	others = keys_of("across_slots", APP + 1);
	datapath_across_app_end(w.dp, OTHER + 1);
	assert_int_equal(keys_of("across_slots", OTHER + 1), 0);
	assert_int_equal(keys_of("across_slots", APP + 1), others);
	assert_int_equal(keys_of("across_flows", 0), 2 * others);
	make(&p, ACK, NODE, FAR_VIA, HERE, port);
	assert_int_equal(come(&p), NOT_OURS);
}

/* --- the world --- */

static int make_devices(void)
{
	const uint8_t mac[6] = {2, 2, 2, 2, 2, 2};
	autoclose int ns = ns_current();
	int r = nl_open(&w.nl);

	for (int i = 0; i < PRIVATE && !r; i++) {
		char name[16], peer[16];

		snprintf(name, sizeof(name), "app%d", i);
		snprintf(peer, sizeof(peer), "app%dp", i);
		r = nl_link_add_veth(w.nl, name, peer, ns, mac, 1500, &w.device[i]);
	}
	r = r ? r : nl_link_add_veth(w.nl, "out0", "out0p", ns, mac, MTU, &w.outside);
	if (r)
		return r;
	return system("for i in lo app0 app0p app1 app1p app2 app2p out0 out0p; do "
		      "ip link set $i up || exit 1; done; ip addr add 192.0.2.11/24 dev out0 && "
		      "ip addr add fd99::11/64 dev out0 nodad")
		       ? -1
		       : 0;
}

static int tell_vip(enum who who)
{
	const struct ax_party party = {.labels = {who == RED ? 2 : 1}};
	struct ax_vip v = {.kind = who < PRIVATE ? AX_VIP_APP : AX_VIP_ACROSS,
			   .id = (uint32_t)who + 1,
			   .party = (uint32_t)who + 1,
			   .flags = who == EGRESS ? AX_VIP_EGRESS : 0,
			   .ifindex = who < PRIVATE ? w.device[who] : w.outside};
	int r = datapath_party_set(w.dp, v.party, &party);

	return r ? r : datapath_vip_set(w.dp, &w.addr[who], &v);
}

static struct ax_endpoint at(enum who who, unsigned port)
{
	return (struct ax_endpoint){
		.addr = w.addr[who], .port_be = htons((uint16_t)port), .proto = IPPROTO_TCP};
}

static int tell_servers(void)
{
	const struct ax_endpoint far = at(REMOTE, FAR_PORT), red = at(RED, FAR_PORT),
				 via = at(NODE, FAR_VIA), near = at(APP, APP_PORT);
	const struct ax_server listens = {.app = APP + 1, .sockets = 1, .since_ns = 1};
	struct ax_across_app who = {.node = w.addr[NODE], .number = FAR_NUMBER};
	autoclose int servers = map_fd("servers");
	int r;

	r = datapath_across_to(w.dp, &far, &via);
	r = r ? r : datapath_across_to(w.dp, &red, &via);
	r = r ? r : datapath_across_served(w.dp, APP_VIA, &near);
	if (!w.six)
		r = r ? r : datapath_across_served(w.dp, ONLY_VIA, &near);
	r = r ? r : datapath_across_app(w.dp, &who, &w.addr[REMOTE]);
	who.number++;
	r = r ? r : datapath_across_app(w.dp, &who, &w.addr[RED]);
	who.number += 2;
	r = r ? r : datapath_across_app(w.dp, &who, &w.addr[GONE]);
	return r ? r : bpf_map_update_elem(servers, &near, &listens, BPF_ANY);
}

static int by_family(bool six)
{
	w.six = six;
	w.addr = w.families[six];
	return 0;
}

static int by_ipv4(void **state)
{
	(void)state;
	return by_family(false);
}

static int by_ipv6(void **state)
{
	(void)state;
	return by_family(true);
}

static int tell_addresses(bool six)
{
	int r = 0;

	by_family(six);
	for (int i = 0; i < WHO && !r; i++) {
		r = addr_parse(addresses[i][six], &w.families[six][i]);
		if (i < VIPS)
			r = r ? r : tell_vip((enum who)i);
	}
	return r ? r : tell_servers();
}

static int tell_kernel(void)
{
	const struct ax_ctl c = {.ephemeral_first = 32768, .host_access = true};
	struct ax_across_ctl x = ctl;
	struct ax_addr nodes[2];

	if (datapath_ctl_set(w.dp, &c) || tell_addresses(false) || tell_addresses(true))
		return -1;
	nodes[0] = w.families[0][NODE];
	nodes[1] = w.families[1][NODE];
	x.node = w.families[0][HERE];
	x.node6 = w.families[1][HERE];
	return datapath_across_set(w.dp, &x) || datapath_across_nodes(w.dp, nodes, 2) ? -1 : 0;
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
	w.in = datapath_program_fd(w.dp, "ax_across");
	w.back = datapath_program_fd(w.dp, "ax_from_app");
	return w.in < 0 || w.back < 0 || tell_kernel() ? -1 : 0;
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_client_goes_to_the_server_of_a_node, by_ipv4),
		cmocka_unit_test_setup(an_app_says_nothing_of_itself, by_ipv4),
		cmocka_unit_test_setup(what_is_not_a_connection_does_not_leave, by_ipv4),
		cmocka_unit_test_setup(nobody_goes_to_nodes_ports_by_himself, by_ipv4),
		cmocka_unit_test_setup(an_error_quotes_what_the_app_has_sent, by_ipv4),
		cmocka_unit_test_setup(a_server_sees_the_client_itself, by_ipv4),
		cmocka_unit_test_setup(who_may_not_have_a_server_is_left_to_the_stack, by_ipv4),
		cmocka_unit_test_setup(who_lies_is_dropped, by_ipv4),
		cmocka_unit_test_setup(who_says_nothing_is_its_node, by_ipv4),
		cmocka_unit_test_setup(ports_are_of_a_family, by_ipv4),
		cmocka_unit_test_setup(a_client_goes_to_the_server_of_a_node, by_ipv6),
		cmocka_unit_test_setup(an_app_says_nothing_of_itself, by_ipv6),
		cmocka_unit_test_setup(what_is_not_a_connection_does_not_leave, by_ipv6),
		cmocka_unit_test_setup(nobody_goes_to_nodes_ports_by_himself, by_ipv6),
		cmocka_unit_test_setup(an_error_quotes_what_the_app_has_sent, by_ipv6),
		cmocka_unit_test_setup(a_server_sees_the_client_itself, by_ipv6),
		cmocka_unit_test_setup(who_may_not_have_a_server_is_left_to_the_stack, by_ipv6),
		cmocka_unit_test_setup(who_lies_is_dropped, by_ipv6),
		cmocka_unit_test_setup(who_says_nothing_is_its_node, by_ipv6),
		cmocka_unit_test_setup(ports_are_of_a_family, by_ipv6),
		cmocka_unit_test_setup(what_hides_is_not_read, by_ipv6),
		cmocka_unit_test_setup(a_mapped_address_is_no_nodes, by_ipv6),
		cmocka_unit_test_setup(nobody_takes_anothers_place, by_ipv4),
		cmocka_unit_test_setup(they_end_with_the_app, by_ipv4),
	};

	if (own_namespaces())
		return 1;
	return cmocka_run_group_tests(tests, setup, teardown);
}
