// SPDX-License-Identifier: GPL-2.0-or-later
/* What the kernel's WireGuard is told, and how its answers are read: peers that go on in the next
 * message, addresses of both families, attributes of other sizes and none at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/genetlink.h>
#include <linux/wireguard.h>

#include "net/netlink_request.h"
#include "net/wireguard_message.h"

struct message {
	char buf[NL_REQUEST_MAX * NL_MESSAGE_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

static struct nlmsghdr *begin(struct message *m)
{
	memset(m, 0xee, sizeof(*m)); /* what is not written is not zero by chance */
	return mnl_nlmsg_put_header(m->buf);
}

static const struct nlattr *find(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *a;

	mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(a) == type)
			return a;
	return NULL;
}

static const struct nlattr *find_in(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested (a, nest)
		if (mnl_attr_get_type(a) == type)
			return a;
	return NULL;
}

static const struct nlattr *first_peer(const struct nlmsghdr *nlh)
{
	const struct nlattr *peers = find(nlh, WGDEVICE_A_PEERS);

	assert_non_null(peers);
	return mnl_attr_get_payload(peers);
}

static void fill_key(uint8_t key[WG_KEY_SIZE], uint8_t from)
{
	for (unsigned i = 0; i < WG_KEY_SIZE; i++)
		key[i] = (uint8_t)(from + i);
}

static void device(void **state)
{
	static struct message m;
	uint8_t key[WG_KEY_SIZE];
	struct nlmsghdr *nlh = begin(&m);
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);

	(void)state;
	fill_key(key, 7);
	wg_put_key(nlh, 5, key, 51820);
	assert_int_equal(g->cmd, WG_CMD_SET_DEVICE);
	assert_int_equal(mnl_attr_get_u32(find(nlh, WGDEVICE_A_IFINDEX)), 5);
	assert_int_equal(mnl_attr_get_u16(find(nlh, WGDEVICE_A_LISTEN_PORT)), 51820);
	assert_int_equal(mnl_attr_get_payload_len(find(nlh, WGDEVICE_A_PRIVATE_KEY)), WG_KEY_SIZE);
	assert_memory_equal(mnl_attr_get_payload(find(nlh, WGDEVICE_A_PRIVATE_KEY)), key,
			    WG_KEY_SIZE);
	assert_null(find(nlh, WGDEVICE_A_FLAGS)); /* its peers stay */
}

/* All addresses arrive, in as many messages as are needed; the first one alone replaces. */
static void peer_in_parts(void **state)
{
	enum { N = 2 * WG_ALLOWED_MAX + 3 };
	static struct prefix allowed[N];
	static struct message m;
	struct wg_peer p = {.port = 51821, .allowed = allowed, .n_allowed = N};
	CLEANUP(wg_device_free) struct wg_device d = {0};
	struct ax_addr base[2];
	size_t at = 0, messages = 0;

	(void)state;
	fill_key(p.key, 1);
	assert_int_equal(addr_parse("fd00::12", &p.addr), 0);
	assert_int_equal(addr_parse("10.80.0.0", &base[0]), 0);
	assert_int_equal(addr_parse("fd61:80::", &base[1]), 0);
	for (unsigned i = 0; i < N; i++) {
		allowed[i] = (struct prefix){.addr = base[i % 3 != 0], .len = 124 - i % 2};
		allowed[i].addr.w[3] = htonl(ntohl(base[i % 3 != 0].w[3]) + 32 * i);
	}
	do {
		struct nlmsghdr *nlh = begin(&m);
		const struct nlattr *peer, *flags;

		at = wg_put_peer(nlh, 5, &p, at);
		assert_true(nlh->nlmsg_len < sizeof(m.buf));
		peer = first_peer(nlh);
		flags = find_in(peer, WGPEER_A_FLAGS);
		assert_int_equal(flags ? mnl_attr_get_u32(flags) : 0,
				 messages ? 0 : WGPEER_F_REPLACE_ALLOWEDIPS);
		assert_int_equal(find_in(peer, WGPEER_A_ENDPOINT) != NULL, !messages);
		assert_int_equal(wg_parse(nlh, &d), 0);
		messages++;
	} while (at < N);
	assert_int_equal(messages, 3);
	assert_int_equal(d.n_peers, 1);
	assert_int_equal(d.peers[0].n_allowed, N);
	assert_memory_equal(d.peers[0].allowed, allowed, sizeof(allowed));
	assert_memory_equal(d.peers[0].key, p.key, WG_KEY_SIZE);
	assert_true(addr_eq(&d.peers[0].addr, &p.addr));
	assert_int_equal(d.peers[0].port, 51821);
	assert_false(d.peers[0].has_others || d.has_key);
}

/* A place that is not known is not told, and nobody's addresses are none. */
static void peers_without(void **state)
{
	static struct message m;
	struct wg_peer p = {.port = 1};
	struct nlmsghdr *nlh = begin(&m);

	(void)state;
	assert_int_equal(wg_put_peer(nlh, 5, &p, 0), 0);
	assert_null(find_in(first_peer(nlh), WGPEER_A_ENDPOINT));
	assert_int_equal(mnl_attr_get_payload_len(find_in(first_peer(nlh), WGPEER_A_ALLOWEDIPS)),
			 0);

	assert_int_equal(addr_parse("10.0.0.12", &p.addr), 0);
	nlh = begin(&m);
	wg_put_move(nlh, 5, &p);
	assert_int_equal(mnl_attr_get_u32(find_in(first_peer(nlh), WGPEER_A_FLAGS)),
			 WGPEER_F_UPDATE_ONLY);
	assert_int_equal(mnl_attr_get_payload_len(find_in(first_peer(nlh), WGPEER_A_ENDPOINT)),
			 sizeof(struct sockaddr_in));
	assert_null(find_in(first_peer(nlh), WGPEER_A_ALLOWEDIPS));

	nlh = begin(&m);
	wg_put_remove(nlh, 5, p.key);
	assert_int_equal(mnl_attr_get_u32(find_in(first_peer(nlh), WGPEER_A_FLAGS)),
			 WGPEER_F_REMOVE_ME);
}

static void put_allowed(struct nlmsghdr *nlh, const void *addr, size_t len, uint8_t mask)
{
	struct nlattr *one = mnl_attr_nest_start(nlh, 0);

	mnl_attr_put(nlh, WGALLOWEDIP_A_IPADDR, len, addr);
	mnl_attr_put_u8(nlh, WGALLOWEDIP_A_CIDR_MASK, mask);
	mnl_attr_nest_end(nlh, one);
}

/* As the kernel answers, with what nobody here has told it. */
static void answers(void **state)
{
	static struct message m;
	const struct {
		int64_t s, ns;
	} at = {1700000000, 5};
	struct nlattr *peers, *peer, *list;
	struct genlmsghdr *g;
	struct wg_device d = {0};
	struct nlmsghdr *nlh = begin(&m);
	uint8_t key[WG_KEY_SIZE], mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10},
				  v6[16] = {0xfd};

	(void)state;
	fill_key(key, 9);
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = WG_CMD_GET_DEVICE;
	mnl_attr_put(nlh, WGDEVICE_A_PUBLIC_KEY, WG_KEY_SIZE, key);
	mnl_attr_put_u16(nlh, WGDEVICE_A_LISTEN_PORT, 4500);
	peers = mnl_attr_nest_start(nlh, WGDEVICE_A_PEERS);
	for (unsigned i = 0; i < 2; i++) {
		fill_key(key, (uint8_t)(20 + i));
		peer = mnl_attr_nest_start(nlh, 0);
		mnl_attr_put(nlh, WGPEER_A_PUBLIC_KEY, WG_KEY_SIZE, key);
		mnl_attr_put(nlh, WGPEER_A_LAST_HANDSHAKE_TIME, sizeof(at), &at);
		mnl_attr_put_u64(nlh, WGPEER_A_RX_BYTES, 1ull << 40);
		mnl_attr_put_u32(nlh, WGPEER_A_ENDPOINT, 1); /* none */
		list = mnl_attr_nest_start(nlh, WGPEER_A_ALLOWEDIPS);
		put_allowed(nlh, i ? mapped : v6, i ? 16 : 4,
			    i ? 124 : 64); /* too long, and none */
		put_allowed(nlh, v6, i ? 15 : 16, i ? 64 : 129);
		mnl_attr_nest_end(nlh, list);
		mnl_attr_nest_end(nlh, peer);
	}
	mnl_attr_nest_end(nlh, peers);
	assert_int_equal(wg_parse(nlh, &d), 0);
	assert_true(d.has_key);
	assert_int_equal(d.port, 4500);
	assert_int_equal(d.n_peers, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(d.peers[i].handshake_s, 1700000000);
		assert_int_equal(d.peers[i].rx, 1ull << 40);
		assert_int_equal(d.peers[i].n_allowed, 0);
		assert_true(d.peers[i].has_others && addr_is_zero(&d.peers[i].addr));
	}
	wg_device_free(&d);
	assert_null(d.peers);
}

static void nothing_and_less(void **state)
{
	static struct message m;
	struct wg_device d = {0};
	struct nlattr *peers, *peer;
	struct nlmsghdr *nlh = begin(&m);

	(void)state;
	assert_int_equal(wg_parse(nlh, &d), -EPROTO);
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct genlmsghdr));
	assert_int_equal(wg_parse(nlh, &d), 0);
	peers = mnl_attr_nest_start(nlh, WGDEVICE_A_PEERS);
	peer = mnl_attr_nest_start(nlh, 0);
	mnl_attr_put_u32(nlh, WGPEER_A_PUBLIC_KEY, 1); /* too short for one */
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, peers);
	assert_int_equal(wg_parse(nlh, &d), -EPROTO);
	assert_int_equal(d.n_peers, 0);
}

/* In the form in which the kernel keeps it, and another one each time. */
static void keys(void **state)
{
	uint8_t a[WG_KEY_SIZE], b[WG_KEY_SIZE];

	(void)state;
	assert_int_equal(wg_make_key(a), 0);
	assert_int_equal(wg_make_key(b), 0);
	assert_memory_not_equal(a, b, WG_KEY_SIZE);
	assert_int_equal(a[0] & 7, 0);
	assert_int_equal(a[31] & 0xc0, 0x40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device),	    cmocka_unit_test(peer_in_parts),
		cmocka_unit_test(peers_without),    cmocka_unit_test(answers),
		cmocka_unit_test(nothing_and_less), cmocka_unit_test(keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
