/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pipelined rtnetlink requests, for netlink*.c and netns.c only: several messages go out in one
 * sendmsg(), and only the last one asks for an acknowledgement. The kernel works them off in order
 * within that call and answers a message that failed whether or not it asked, so one round trip
 * tells how each of them ended.
 */
#ifndef AX_NET_NETLINK_REQUEST_H
#define AX_NET_NETLINK_REQUEST_H

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include "net/netlink.h"

/* The answers to one request must fit the socket's receive buffer (212992 bytes by default, less
 * than 1 KiB each), because nothing is read before all of it was sent. */
#define NL_REQUEST_MAX	64
#define NL_MESSAGE_SIZE 256 /* the largest message of ours, a veth pair, takes less */

struct nl_request {
	struct nl *nl;
	uint32_t first_seq;
	unsigned n;
	size_t len;
	struct nlmsghdr *last;
	char buf[NL_REQUEST_MAX * NL_MESSAGE_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* A socket of generic netlink, for the same requests; to be closed by nl_close(). */
int nl_open_generic(struct nl **ret);

void nl_request_init(struct nl_request *rq, struct nl *nl);

/* Appends a message; its fixed header and attributes are the caller's to add before the next call.
 * At most NL_REQUEST_MAX may be appended. */
struct nlmsghdr *nl_request_add(struct nl_request *rq, uint16_t type, uint16_t flags);

typedef void nl_on_data(void *arg, const struct nlmsghdr *nlh);

/*
 * Sends what was added and waits until the kernel has answered. Messages that are data (replies
 * to RTM_GET*) go to on_data. errs, unless NULL, gets each message's result. Returns the first
 * message's result that is not 0, or what went wrong with the socket (then so does all of errs).
 */
int nl_request_send(struct nl_request *rq, int *errs, nl_on_data *on_data, void *arg);

/*
 * A dump: `put` writes the request, `on_entry` sees every entry. When the kernel says that the
 * table changed under it (NLM_F_DUMP_INTR), `restart` is called to forget what came and the dump
 * runs again, some ten times before -EAGAIN. An error of on_entry ends it. No other request may
 * be sent from within on_entry.
 */
struct nl_dump {
	uint16_t type;
	void (*put)(struct nlmsghdr *nlh, void *arg);
	int (*on_entry)(void *arg, const struct nlmsghdr *nlh);
	void (*restart)(void *arg);
	void *arg;
};
int nl_dump_run(struct nl *nl, const struct nl_dump *d);

/* What the message of a RTM_NEWLINK reply says, as far as anybody here asks. */
struct nl_link {
	char name[16];
	unsigned ifindex;
	uint8_t operstate; /* IF_OPER_* */
	bool up;
	bool has_inet6;
	uint8_t addr_gen_mode; /* if has_inet6 */
};
void nl_link_parse(const struct nlmsghdr *nlh, struct nl_link *link);
void nl_put_getlink(struct nl_request *rq, const char *name, unsigned ifindex);
void nl_put_link_up(struct nl_request *rq, unsigned ifindex);
/* No IPv6 link-local address by itself. */
void nl_put_no_addr_gen(struct nl_request *rq, unsigned ifindex);
void nl_put_addr(struct nl_request *rq, unsigned ifindex, const struct ax_addr *addr,
		 unsigned prefix_len);
void nl_put_route(struct nl_request *rq, const struct nl_route *r, bool del);

/* The kernel answers EOPNOTSUPP to messages of a family that it does not have: for IPv6 that
 * becomes -EAFNOSUPPORT, as socket() has it. */
int nl_family_error(int err, bool v6);

#endif
