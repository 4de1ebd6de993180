/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's WireGuard: a device of ax's, its key, and its peers, by rtnetlink and generic
 * netlink. Keys are made nowhere else than in the kernel but for the random bytes of a private one.
 * Every call returns 0 or the kernel's negative errno. Nothing here logs.
 */
#ifndef AX_NET_WIREGUARD_H
#define AX_NET_WIREGUARD_H

#include "base/address.h"
#include "base/util.h"
#include "net/netlink.h"

#define WG_KEY_SIZE 32 /* bytes, of private and of public ones */

/* --- the device --- */

struct wg_link {
	unsigned ifindex;
	bool ours; /* a WireGuard device that ax has made (of group NL_TUNNEL_GROUP) */
	bool up;
	unsigned mtu;
};

/* What has this name. -ENODEV: nothing. */
int wg_link_find(struct nl *nl, const char *name, struct wg_link *ret);
/* Makes the device, which is down and has no key; `alias` is for who lists it. -EOPNOTSUPP: this
 * kernel has no WireGuard; -EEXIST: something has the name. */
int wg_link_add(struct nl *nl, const char *name, const char *alias, unsigned mtu,
		unsigned *ifindex);
/* Up, and with this MTU (bytes). -EADDRINUSE: somebody has its UDP port. */
int wg_link_set(struct nl *nl, unsigned ifindex, unsigned mtu);
/* Takes the device of this name away if it is ax's, with its routes; -ENODEV if it is not. */
int wg_link_remove(struct nl *nl, const char *name);

/* --- keys and peers --- */

struct wg_peer {
	uint8_t key[WG_KEY_SIZE]; /* its public one */
	struct ax_addr addr;	  /* where it is; zero: not known (to be set: as it is) */
	uint16_t port;		  /* there, host byte order */
	struct prefix *allowed;	  /* whose packets it may send, and gets */
	size_t n_allowed;
	bool has_others;     /* the kernel has some that are never set (read alone) */
	int64_t handshake_s; /* UNIX time of the last one; 0: there was none (read alone) */
	uint64_t rx, tx;     /* bytes, with handshakes (read alone) */
};

struct wg_device {
	bool has_key;
	uint8_t key[WG_KEY_SIZE]; /* public */
	uint16_t port;		  /* host byte order */
	struct wg_peer *peers;	  /* malloc'ed, as their lists are; in no order */
	size_t n_peers;
};
void wg_device_free(struct wg_device *d);

struct wg; /* a socket for it, in the network namespace where it was opened */

/* -EOPNOTSUPP: this kernel has no WireGuard, or no device was made yet. */
int wg_open(struct wg **ret);
void wg_close(struct wg *wg);
/* *ret is the caller's to free, also after an error. -ENODEV: it is gone; -EOPNOTSUPP: it is no
 * WireGuard device. */
int wg_read(struct wg *wg, unsigned ifindex, struct wg_device *ret);
/* Its private key, and the UDP port at which it listens when it is up (host byte order). Setting
 * what is so changes nothing; another key ends all that stands with peers. -EADDRINUSE: it is up,
 * and somebody has that port. */
int wg_set(struct wg *wg, unsigned ifindex, const uint8_t private_key[WG_KEY_SIZE], uint16_t port);
/* Makes the peer, or gives it these addresses in place of its former ones, which any other peer
 * loses. */
int wg_peer_put(struct wg *wg, unsigned ifindex, const struct wg_peer *p);
/* Where a peer is, and nothing else of it. */
int wg_peer_move(struct wg *wg, unsigned ifindex, const struct wg_peer *p);
/* That it is not there is no error. */
int wg_peer_remove(struct wg *wg, unsigned ifindex, const uint8_t key[WG_KEY_SIZE]);

/* Random bytes as a private key, in the form in which the kernel keeps one (RFC 7748): setting it
 * once more is no change. A negative errno: there are none. */
int wg_make_key(uint8_t ret[WG_KEY_SIZE]);

#endif
