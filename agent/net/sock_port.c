/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include "net/sock_port.h"

/* include/net/tcp_states.h */
#define TCP_CLOSED	   7
#define TCP_LISTENING	   10
#define TCP_BOUND_INACTIVE 13 /* Linux 6.8 */

static int ask(int fd, sa_family_t family, uint8_t proto, uint16_t port)
{
	struct {
		struct nlmsghdr nlh;
		struct inet_diag_req_v2 rq;
	} m = {.nlh = {.nlmsg_len = sizeof(m),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	       .rq = {.sdiag_family = (uint8_t)family,
		      .sdiag_protocol = proto,
		      .idiag_states = ~0u,
		      .id.idiag_sport = htons(port)}};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	return sendto(fd, &m, sizeof(m), 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0 ? -errno
											    : 0;
}

static void note(const struct inet_diag_msg *d, uint8_t proto, struct port_holder *ret)
{
	*ret = (struct port_holder){
		.uid = d->idiag_uid,
		.listens = proto == IPPROTO_UDP || d->idiag_state == TCP_CLOSED ||
			   d->idiag_state == TCP_LISTENING || d->idiag_state == TCP_BOUND_INACTIVE};
	if (d->idiag_family == AF_INET)
		ret->addr = addr_from_v4(d->id.idiag_src[0]);
	else
		memcpy(&ret->addr, d->id.idiag_src, sizeof(ret->addr));
}

/* Reads a dump to its end. */
static int read_holders(int fd, uint8_t proto, uint16_t port, struct port_holder *ret)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct nlmsghdr))));
	int found = 0;

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		unsigned left = n < 0 ? 0 : (unsigned)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			const struct inet_diag_msg *d = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_DONE)
				return found;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
			if (ntohs(d->id.idiag_sport) != port || (found && ret->listens))
				continue;
			note(d, proto, ret);
			found = 1;
		}
	}
}

int port_holder(sa_family_t family, uint8_t proto, uint16_t port, struct port_holder *ret)
{
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int r = fd < 0 ? -errno : ask(fd, family, proto, port);

	r = r ? r : read_holders(fd, proto, port, ret);
	if (r || family == AF_INET6)
		return r;
	/* a socket of both families is an IPv6 one */
	r = ask(fd, AF_INET6, proto, port);
	return r ? r : read_holders(fd, proto, port, ret);
}

/* What is sent to it goes nowhere, and is not kept for it either. */
static int drop_all(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = {.len = 1, .filter = &drop};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ? -errno : 0;
}

static int set(int fd, int level, int option, int on)
{
	return setsockopt(fd, level, option, &on, sizeof(on)) ? -errno : 0;
}

/*
 * A connection that is left from before keeps others from its port but for those who say
 * SO_REUSEADDR. The word is taken back at once: as long as it stands, so might the next program's.
 */
static int bind_it(int fd, const struct ax_addr *addr, uint16_t port, uint8_t proto)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(addr, htons(port), &ss);
	int r;

	if (bind(fd, (struct sockaddr *)&ss, len) == 0)
		return 0;
	r = -errno;
	if (r != -EADDRINUSE || proto != IPPROTO_TCP || set(fd, SOL_SOCKET, SO_REUSEADDR, 1))
		return r;
	if (bind(fd, (struct sockaddr *)&ss, len))
		return -errno;
	return set(fd, SOL_SOCKET, SO_REUSEADDR, 0);
}

int port_reserve(const struct ax_addr *addr, uint8_t proto, uint16_t port, const char *device)
{
	bool v4 = addr_is_v4(addr), udp = proto == IPPROTO_UDP;
	autoclose int fd =
		socket(v4 ? AF_INET : AF_INET6,
		       (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : 0;

	if (!r && !v4)
		r = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!r && udp)
		r = drop_all(fd);
	if (!r && *device &&
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device)))
		r = -errno;
	/* an address that comes later (DHCP) is nobody else's either */
	if (!r)
		r = v4 ? set(fd, IPPROTO_IP, IP_FREEBIND, 1)
		       : set(fd, IPPROTO_IPV6, IPV6_FREEBIND, 1);
	r = r ? r : bind_it(fd, addr, port, proto);
	return r ? r : take_fd(&fd);
}
