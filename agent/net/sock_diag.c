/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stddef.h>
#include <sys/socket.h>

#include "net/netlink.h"
#include "net/sock_diag.h"

#define UDP_CONNECTED 1 /* TCP_ESTABLISHED: what a connected UDP socket's state is called */
#define FOUND_MAX     256

struct diag_request {
	struct nlmsghdr nlh;
	struct inet_diag_req_v2 rq;
};

static int open_diag(void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	(void)arg;
	return fd < 0 ? -errno : fd;
}

static int send_request(int fd, uint16_t type, uint16_t flags, uint8_t family, uint8_t proto,
			uint32_t states, const struct inet_diag_sockid *id)
{
	struct diag_request m = {
		.nlh = {.nlmsg_len = sizeof(m), .nlmsg_type = type, .nlmsg_flags = flags},
		.rq = {.sdiag_family = family, .sdiag_protocol = proto, .idiag_states = states}};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (id)
		m.rq.id = *id;
	return sendto(fd, &m, sizeof(m), 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0 ? -errno
											    : 0;
}

static bool is_addr(const struct inet_diag_msg *d, const __be32 words[4],
		    const struct ax_addr *addr)
{
	struct ax_addr a;

	if (d->idiag_family == AF_INET)
		a = addr_from_v4(words[0]);
	else
		memcpy(&a, words, sizeof(a));
	return addr_eq(&a, addr);
}

/* Reads one dump to its end. Returns how many matched (those beyond max are not kept). */
static int read_dump(int fd, const struct ax_addr *addr, bool by_source,
		     struct inet_diag_msg *found, int max)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct nlmsghdr))));
	int n_found = 0;

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		unsigned left;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		left = (unsigned)n;
		for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			const struct inet_diag_msg *d = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_DONE)
				return n_found;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
			if (n_found < max &&
			    is_addr(d, by_source ? d->id.idiag_src : d->id.idiag_dst, addr))
				found[n_found++] = *d;
		}
	}
}

static int read_ack(int fd)
{
	char buf[1024] __attribute__((aligned(__alignof__(struct nlmsghdr))));
	const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)buf;
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(struct nlmsgerr)) || h->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
}

static int end_family(int fd, uint8_t family, const struct ax_addr *peer)
{
	struct inet_diag_msg found[FOUND_MAX];
	int n, ended = 0;

	do {
		int r = send_request(fd, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, family,
				     IPPROTO_UDP, 1 << UDP_CONNECTED, NULL);

		n = r ? r : read_dump(fd, peer, false, found, FOUND_MAX);
		if (n < 0)
			return n == -ENOENT ? -EOPNOTSUPP : n;
		for (int i = 0; i < n; i++) {
			r = send_request(fd, SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, family,
					 IPPROTO_UDP, 1 << UDP_CONNECTED, &found[i].id);
			r = r ? r : read_ack(fd);
			if (r && r != -ENOENT) /* closed meanwhile */
				return r;
			ended += r == 0;
		}
	} while (n == FOUND_MAX);
	return ended;
}

int socks_end_udp(int netns_fd, const struct ax_addr *peer)
{
	autoclose int fd = netns_fd < 0 ? open_diag(NULL) : netns_call(netns_fd, open_diag, NULL);
	int v6, v4 = 0;

	if (fd < 0)
		return fd;
	if (addr_is_v4(peer))
		v4 = end_family(fd, AF_INET, peer);
	if (v4 < 0)
		return v4;
	v6 = end_family(fd, AF_INET6, peer); /* v4-mapped peers are here too */
	return v6 < 0 ? v6 : v4 + v6;
}

/* include/net/tcp_states.h; FIN-WAIT-2 has all its data acknowledged */
#define TCP_STATES_SENDING (1 << 4 | 1 << 9 | 1 << 11) /* FIN-WAIT-1, LAST-ACK, CLOSING */

/*
 * Whether any socket of the machine has outlived its owner. (The kernel's count is of all
 * namespaces.) Mostly none has, and asking costs a fraction of a dump, which walks the whole table
 * of connections, some megabytes, however few there are.
 */
static bool any_orphan(void)
{
	autofree char *text = NULL;
	const char *p;

	if (file_read("/proc/self/net/sockstat", 4096, &text))
		return true;
	p = strstr(text, " orphan ");
	return !p || atoi(p + strlen(" orphan ")) > 0;
}

int socks_sending(int netns_fd, const struct ax_addr *local)
{
	autoclose int fd = -1;
	struct inet_diag_msg found[FOUND_MAX];
	uint8_t families[] = {AF_INET6, AF_INET};
	int total = 0;

	if (addr_is_zero(local) || !any_orphan())
		return 0;
	fd = netns_fd < 0 ? open_diag(NULL) : netns_call(netns_fd, open_diag, NULL);
	if (fd < 0)
		return fd;
	/* v4-mapped sockets are AF_INET6 ones */
	for (int i = 0; i < (addr_is_v4(local) ? 2 : 1); i++) {
		int r = send_request(fd, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP,
				     families[i], IPPROTO_TCP, TCP_STATES_SENDING, NULL);

		r = r ? r : read_dump(fd, local, true, found, FOUND_MAX);
		if (r < 0)
			return r;
		total += r;
	}
	return total;
}

/* --- who has an address --- */

#define TCP_TIME_WAIT	   6
#define TCP_BOUND_INACTIVE 13 /* Linux 6.8 */
#define TCP_STATES_BOUND   ((1 << (TCP_BOUND_INACTIVE + 1)) - 1 - (1 << TCP_TIME_WAIT))

/* struct inet_diag_hostcond, which ends with an array of no size, and its array */
struct host_condition {
	uint8_t family, prefix_len;
	int port;
	__be32 addr[4];
};
_Static_assert(offsetof(struct host_condition, addr) == sizeof(struct inet_diag_hostcond),
	       "the kernel's layout");

/* Says yes to sockets with that source address alone. */
struct condition {
	struct nlattr attr;
	struct inet_diag_bc_op op;
	struct host_condition cond;
};

static struct condition condition_of(const struct ax_addr *addr)
{
	struct condition c = {
		.attr = {.nla_len = sizeof(c), .nla_type = INET_DIAG_REQ_BYTECODE},
		.op = {.code = INET_DIAG_BC_S_COND, .yes = sizeof(c) - sizeof(c.attr)},
		.cond = {.family = AF_INET6, .prefix_len = 128, .port = -1}};

	c.op.no = (uint16_t)(c.op.yes + sizeof(uint32_t)); /* beyond the end: no */
	memcpy(c.cond.addr, addr, sizeof(c.cond.addr));
	if (addr_is_v4(addr)) { /* v4-mapped sockets are found by that, too */
		c.cond.family = AF_INET;
		c.cond.prefix_len = 32;
		c.cond.addr[0] = addr->w[3];
	}
	return c;
}

static int send_whole(int fd, const void *message, size_t size)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	return sendto(fd, message, size, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0 ? -errno
											    : 0;
}

static int ask_bound(int fd, uint8_t family, uint8_t proto, const struct ax_addr *addr)
{
	struct {
		struct diag_request rq;
		struct condition c;
	} m = {.rq = {.nlh = {.nlmsg_len = sizeof(m),
			      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		      .rq = {.sdiag_family = family,
			     .sdiag_protocol = proto,
			     .idiag_states = proto == IPPROTO_TCP ? TCP_STATES_BOUND : ~0u}},
	       .c = condition_of(addr)};

	return send_whole(fd, &m, sizeof(m));
}

/* The older form, which asks for both families: the kernel walks its tables, which are megabytes
 * however few sockets there are, once for that. */
static int ask_bound_tcp(int fd, const struct ax_addr *addr)
{
	struct {
		struct nlmsghdr nlh;
		struct inet_diag_req rq;
		struct condition c;
	} m = {.nlh = {.nlmsg_len = sizeof(m),
		       .nlmsg_type = TCPDIAG_GETSOCK,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	       .rq = {.idiag_family = AF_INET, .idiag_states = TCP_STATES_BOUND},
	       .c = condition_of(addr)};

	return send_whole(fd, &m, sizeof(m));
}

/* What the kernel answers to a question that was sent (r: 0). */
static int bound_of(int fd, int r, uint8_t proto, const struct ax_addr *addr,
		    struct sock_found *ret)
{
	struct inet_diag_msg found[FOUND_MAX];

	if (r)
		return r;
	r = read_dump(fd, addr, true, found, FOUND_MAX);
	for (int i = 0; i < r; i++) {
		if (!found[i].idiag_inode)
			continue; /* no program has it any more */
		*ret = (struct sock_found){.proto = proto,
					   .port = ntohs(found[i].id.idiag_sport),
					   .uid = found[i].idiag_uid};
		return 1;
	}
	return r < 0 ? r : 0;
}

static int bound_in(int fd, uint8_t proto, const struct ax_addr *addr, struct sock_found *ret)
{
	static const uint8_t families[] = {AF_INET6, AF_INET};
	int r = 0;

	for (int i = 0; !r && i < (addr_is_v4(addr) ? 2 : 1); i++)
		r = bound_of(fd, ask_bound(fd, families[i], proto, addr), proto, addr, ret);
	return r;
}

int socks_bound(const struct ax_addr *addr, struct sock_found *ret)
{
	autoclose int fd = open_diag(NULL);
	int r = -EOPNOTSUPP;

	if (fd < 0)
		return fd;
	if (addr_is_v4(addr))
		r = bound_of(fd, ask_bound_tcp(fd, addr), IPPROTO_TCP, addr, ret);
	if (r < 0)
		r = bound_in(fd, IPPROTO_TCP, addr, ret);
	return r ? r : bound_in(fd, IPPROTO_UDP, addr, ret);
}
