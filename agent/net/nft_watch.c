/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/nft_watch.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

/* Reads at a time: whoever changes a lot is not to keep the loop. */
#define READS 64

int nft_watch_open(void)
{
	autoclose int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK};
	int group = NFNLGRP_NFTABLES, room = 4 << 20; /* one change may be of many elements */

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	return take_fd(&fd);
}

static const char *table_that_went(const struct nlmsghdr *nlh)
{
	const struct nfgenmsg *g = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;

	if (nlh->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE) ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(*g) || g->nfgen_family != NFPROTO_INET)
		return NULL;
	mnl_attr_for_each (attr, nlh, sizeof(*g))
		if (mnl_attr_get_type(attr) == NFTA_TABLE_NAME &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			return mnl_attr_get_str(attr);
	return NULL;
}

void nft_watch_read(int fd, const char *const *tables, bool *went, size_t n)
{
	char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));

	for (int i = 0; i < READS; i++) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		int len = (int)got;

		if (got < 0) {
			for (size_t k = 0; k < n && errno == ENOBUFS; k++)
				went[k] = true;
			return;
		}
		for (struct nlmsghdr *nlh = (void *)buf; mnl_nlmsg_ok(nlh, len);
		     nlh = mnl_nlmsg_next(nlh, &len)) {
			const char *name = table_that_went(nlh);

			for (size_t k = 0; k < n && name; k++)
				went[k] |= streq(name, tables[k]);
		}
	}
}
