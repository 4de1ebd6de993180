/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/wireguard_message.h"

#include <linux/genetlink.h>
#include <linux/time_types.h>
#include <linux/wireguard.h>

_Static_assert(WG_KEY_LEN == WG_KEY_SIZE, "one size of keys");

/* --- writing --- */

static void begin(struct nlmsghdr *nlh, uint8_t cmd, unsigned ifindex)
{
	struct genlmsghdr *g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));

	g->cmd = cmd;
	g->version = WG_GENL_VERSION;
	mnl_attr_put_u32(nlh, WGDEVICE_A_IFINDEX, ifindex);
}

void wg_put_get(struct nlmsghdr *nlh, unsigned ifindex)
{
	begin(nlh, WG_CMD_GET_DEVICE, ifindex);
}

void wg_put_key(struct nlmsghdr *nlh, unsigned ifindex, const uint8_t private_key[WG_KEY_SIZE],
		uint16_t port)
{
	begin(nlh, WG_CMD_SET_DEVICE, ifindex);
	mnl_attr_put(nlh, WGDEVICE_A_PRIVATE_KEY, WG_KEY_SIZE, private_key);
	mnl_attr_put_u16(nlh, WGDEVICE_A_LISTEN_PORT, port);
}

static void put_allowed(struct nlmsghdr *nlh, const struct prefix *p)
{
	struct nlattr *one = mnl_attr_nest_start(nlh, 0);
	bool v4 = addr_is_v4(&p->addr);

	mnl_attr_put_u16(nlh, WGALLOWEDIP_A_FAMILY, v4 ? AF_INET : AF_INET6);
	if (v4)
		mnl_attr_put(nlh, WGALLOWEDIP_A_IPADDR, 4, &p->addr.w[3]);
	else
		mnl_attr_put(nlh, WGALLOWEDIP_A_IPADDR, sizeof(p->addr.b), p->addr.b);
	mnl_attr_put_u8(nlh, WGALLOWEDIP_A_CIDR_MASK, (uint8_t)(p->len - (v4 ? 96 : 0)));
	mnl_attr_nest_end(nlh, one);
}

static void put_endpoint(struct nlmsghdr *nlh, const struct wg_peer *p)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(&p->addr, htons(p->port), &ss);

	mnl_attr_put(nlh, WGPEER_A_ENDPOINT, len, &ss);
}

size_t wg_put_peer(struct nlmsghdr *nlh, unsigned ifindex, const struct wg_peer *p, size_t from)
{
	size_t to = p->n_allowed - from > WG_ALLOWED_MAX ? from + WG_ALLOWED_MAX : p->n_allowed;
	struct nlattr *peers, *peer, *allowed;

	begin(nlh, WG_CMD_SET_DEVICE, ifindex);
	peers = mnl_attr_nest_start(nlh, WGDEVICE_A_PEERS);
	peer = mnl_attr_nest_start(nlh, 0);
	mnl_attr_put(nlh, WGPEER_A_PUBLIC_KEY, WG_KEY_SIZE, p->key);
	if (!from) {
		mnl_attr_put_u32(nlh, WGPEER_A_FLAGS, WGPEER_F_REPLACE_ALLOWEDIPS);
		if (!addr_is_zero(&p->addr))
			put_endpoint(nlh, p);
	}
	allowed = mnl_attr_nest_start(nlh, WGPEER_A_ALLOWEDIPS);
	for (size_t i = from; i < to; i++)
		put_allowed(nlh, &p->allowed[i]);
	mnl_attr_nest_end(nlh, allowed);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, peers);
	return to;
}

void wg_put_move(struct nlmsghdr *nlh, unsigned ifindex, const struct wg_peer *p)
{
	struct nlattr *peers, *peer;

	begin(nlh, WG_CMD_SET_DEVICE, ifindex);
	peers = mnl_attr_nest_start(nlh, WGDEVICE_A_PEERS);
	peer = mnl_attr_nest_start(nlh, 0);
	mnl_attr_put(nlh, WGPEER_A_PUBLIC_KEY, WG_KEY_SIZE, p->key);
	mnl_attr_put_u32(nlh, WGPEER_A_FLAGS, WGPEER_F_UPDATE_ONLY);
	put_endpoint(nlh, p);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, peers);
}

void wg_put_remove(struct nlmsghdr *nlh, unsigned ifindex, const uint8_t key[WG_KEY_SIZE])
{
	struct nlattr *peers, *peer;

	begin(nlh, WG_CMD_SET_DEVICE, ifindex);
	peers = mnl_attr_nest_start(nlh, WGDEVICE_A_PEERS);
	peer = mnl_attr_nest_start(nlh, 0);
	mnl_attr_put(nlh, WGPEER_A_PUBLIC_KEY, WG_KEY_SIZE, key);
	mnl_attr_put_u32(nlh, WGPEER_A_FLAGS, WGPEER_F_REMOVE_ME);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, peers);
}

/* --- reading --- */

/* An attribute's bytes, if they are so many; NULL: they are not. */
static const void *bytes_of(const struct nlattr *a, size_t size)
{
	return mnl_attr_get_payload_len(a) == size ? mnl_attr_get_payload(a) : NULL;
}

static void take_u64(const struct nlattr *a, uint64_t *ret)
{
	const void *bytes = bytes_of(a, sizeof(*ret));

	if (bytes)
		memcpy(ret, bytes, sizeof(*ret));
}

/* False: it is none that is ever set. (An IPv4 address that is written as an IPv6 one is another
 * than that to WireGuard.) */
static bool parse_one(const struct nlattr *one, struct prefix *ret)
{
	const void *v4 = NULL, *v6 = NULL;
	const struct nlattr *a;
	unsigned len = 129;

	mnl_attr_for_each_nested (a, one) {
		if (mnl_attr_get_type(a) == WGALLOWEDIP_A_IPADDR) {
			v4 = bytes_of(a, 4);
			v6 = bytes_of(a, sizeof(ret->addr.b));
		} else if (mnl_attr_get_type(a) == WGALLOWEDIP_A_CIDR_MASK && bytes_of(a, 1)) {
			len = mnl_attr_get_u8(a);
		}
	}
	*ret = (struct prefix){.len = v4 ? 96 + len : len};
	if (v4) {
		ret->addr.w[2] = htonl(0xffff);
		memcpy(&ret->addr.w[3], v4, 4);
	} else if (v6) {
		memcpy(ret->addr.b, v6, sizeof(ret->addr.b));
	}
	return (v4 || (v6 && !addr_is_v4(&ret->addr))) && ret->len <= 128;
}

static int parse_allowed(const struct nlattr *list, struct wg_peer *p)
{
	const struct nlattr *one;

	mnl_attr_for_each_nested (one, list) {
		struct prefix prefix, *more;

		if (!parse_one(one, &prefix)) {
			p->has_others = true;
			continue;
		}
		more = reallocarray(p->allowed, p->n_allowed + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->allowed = more;
		more[p->n_allowed++] = prefix;
	}
	return 0;
}

static void parse_endpoint(const struct nlattr *a, struct wg_peer *p)
{
	struct sockaddr_storage ss = {0};
	size_t len = mnl_attr_get_payload_len(a);
	__be16 port_be;

	if (len != sizeof(struct sockaddr_in) && len != sizeof(struct sockaddr_in6))
		return;
	memcpy(&ss, mnl_attr_get_payload(a), len);
	if (ss.ss_family != (len == sizeof(struct sockaddr_in) ? AF_INET : AF_INET6) ||
	    addr_from_sockaddr((const struct sockaddr *)&ss, &p->addr, &port_be))
		return;
	p->port = ntohs(port_be);
}

/* The one of this key: the last, if the message goes on with it, or else a new one. */
static struct wg_peer *peer_of(const struct nlattr *peer, struct wg_device *d, int *err)
{
	const uint8_t *key = NULL;
	const struct nlattr *a;
	struct wg_peer *more;

	mnl_attr_for_each_nested (a, peer)
		if (mnl_attr_get_type(a) == WGPEER_A_PUBLIC_KEY)
			key = bytes_of(a, WG_KEY_SIZE);
	*err = key ? -ENOMEM : -EPROTO;
	if (!key)
		return NULL;
	if (d->n_peers && memcmp(d->peers[d->n_peers - 1].key, key, WG_KEY_SIZE) == 0)
		return &d->peers[d->n_peers - 1];
	more = reallocarray(d->peers, d->n_peers + 1, sizeof(*more));
	if (!more)
		return NULL;
	d->peers = more;
	more[d->n_peers] = (struct wg_peer){0};
	memcpy(more[d->n_peers].key, key, WG_KEY_SIZE);
	return &more[d->n_peers++];
}

static int parse_peer(const struct nlattr *peer, struct wg_device *d)
{
	struct __kernel_timespec at;
	const struct nlattr *a;
	int r;
	struct wg_peer *p = peer_of(peer, d, &r);

	if (!p)
		return r;
	mnl_attr_for_each_nested (a, peer) {
		switch (mnl_attr_get_type(a)) {
		case WGPEER_A_ENDPOINT:
			parse_endpoint(a, p);
			break;
		case WGPEER_A_LAST_HANDSHAKE_TIME:
			if (!bytes_of(a, sizeof(at)))
				break;
			memcpy(&at, mnl_attr_get_payload(a), sizeof(at));
			p->handshake_s = at.tv_sec;
			break;
		case WGPEER_A_RX_BYTES:
			take_u64(a, &p->rx);
			break;
		case WGPEER_A_TX_BYTES:
			take_u64(a, &p->tx);
			break;
		case WGPEER_A_ALLOWEDIPS:
			r = parse_allowed(a, p);
			if (r)
				return r;
			break;
		}
	}
	return 0;
}

static int parse_peers(const struct nlattr *list, struct wg_device *d)
{
	const struct nlattr *peer;
	int r = 0;

	mnl_attr_for_each_nested (peer, list) {
		r = parse_peer(peer, d);
		if (r)
			break;
	}
	return r;
}

int wg_parse(const struct nlmsghdr *nlh, struct wg_device *d)
{
	const struct nlattr *a;
	int r = 0;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct genlmsghdr))
		return -EPROTO;
	mnl_attr_for_each (a, nlh, sizeof(struct genlmsghdr)) {
		const void *key;

		switch (mnl_attr_get_type(a)) {
		case WGDEVICE_A_PUBLIC_KEY:
			key = bytes_of(a, WG_KEY_SIZE);
			d->has_key = key;
			if (key)
				memcpy(d->key, key, WG_KEY_SIZE);
			break;
		case WGDEVICE_A_LISTEN_PORT:
			if (bytes_of(a, sizeof(d->port)))
				d->port = mnl_attr_get_u16(a);
			break;
		case WGDEVICE_A_PEERS:
			r = parse_peers(a, d);
			break;
		}
		if (r)
			return r;
	}
	return 0;
}

void wg_device_free(struct wg_device *d)
{
	for (size_t i = 0; i < d->n_peers; i++)
		free(d->peers[i].allowed);
	free(d->peers);
	*d = (struct wg_device){0};
}
