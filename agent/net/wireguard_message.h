/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The messages of wireguard.c, without a kernel: linux/wireguard.h has what is in them. */
#ifndef AX_NET_WIREGUARD_MESSAGE_H
#define AX_NET_WIREGUARD_MESSAGE_H

#include <libmnl/libmnl.h>

#include "net/wireguard.h"

/* Of a peer's addresses so many are in one message, which has room for them and the rest. */
#define WG_ALLOWED_MAX 256

/* Each appends to a message that has nothing behind its netlink header yet, which is in a buffer of
 * NL_REQUEST_MAX * NL_MESSAGE_SIZE bytes. */
void wg_put_get(struct nlmsghdr *nlh, unsigned ifindex);
void wg_put_key(struct nlmsghdr *nlh, unsigned ifindex, const uint8_t private_key[WG_KEY_SIZE],
		uint16_t port);
/* The peer with its addresses from `from` on, as many as one message takes. Returns the first that
 * is not in it, n_allowed if all are. Those of the first message replace what there was. */
size_t wg_put_peer(struct nlmsghdr *nlh, unsigned ifindex, const struct wg_peer *p, size_t from);
/* Its place alone. */
void wg_put_move(struct nlmsghdr *nlh, unsigned ifindex, const struct wg_peer *p);
void wg_put_remove(struct nlmsghdr *nlh, unsigned ifindex, const uint8_t key[WG_KEY_SIZE]);

/* Adds what a message of a dump says to *d, which is all zero before the first one: a peer with
 * many addresses goes on in the next one. -ENOMEM; -EPROTO: it is not such a message. */
int wg_parse(const struct nlmsghdr *nlh, struct wg_device *d);

#endif
