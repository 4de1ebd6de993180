// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkup/ping.h"

#include <fcntl.h>
#include <netinet/icmp6.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#define NS_PER_MS 1000000ull
#define TRY_MS	  500 /* then who has not answered is asked once more, */
#define TRIES	  3
#define WAIT_MS	  2500 /* and waited for so long in all: the machines may have much else to do */
#define SIZES_MS  1500 /* the same for sizes, of which some are never answered */
#define TCP_MS	  1500
#define TCP_MAX	  256 /* connections at once */
#define TCP_PORT  9   /* discard: nobody has it these days */

#define SIZE_MAX_IP 65535

/* Behind the header of ICMP; nobody else reads it. */
struct message {
	uint64_t nonce, sent_ns;
	uint32_t index;
	uint16_t size, unused;
};

/* MTUs that are met: of Ethernet, large frames, PPPoE, and what tunnels leave of these. */
static const uint16_t usual[] = {
	9216, 9000, 8996, 8950, 8920, 4470, 2304, 1500, 1496, 1492, 1488, 1484, 1480, 1476, 1472,
	1468, 1464, 1462, 1460, 1458, 1456, 1454, 1452, 1450, 1446, 1442, 1440, 1438, 1436, 1432,
	1430, 1428, 1424, 1422, 1420, 1418, 1414, 1412, 1410, 1408, 1406, 1404, 1400, 1390, 1380,
	1370, 1360, 1350, 1340, 1330, 1320, 1300, 1280, 1200, 1100, 1006, 1000, 576};

/* Those of one family. */
struct pinging {
	int fd;
	bool v4, raw;
	uint64_t nonce;
	struct ping *v;
	size_t n, waiting; /* answers that would end the round */
	uint8_t *buf;
};

static void pinging_free(struct pinging *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->buf);
}

static size_t ip_header(bool v4)
{
	return v4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
}

static size_t least(bool v4)
{
	return ip_header(v4) + sizeof(struct icmphdr) + sizeof(struct message);
}

static bool is_asked(const struct pinging *p, const struct ping *one)
{
	return !addr_is_zero(&one->addr) && addr_is_v4(&one->addr) == p->v4;
}

/* --- the socket --- */

static int open_socket(struct pinging *p)
{
	int family = p->v4 ? AF_INET : AF_INET6, level = p->v4 ? IPPROTO_IP : IPPROTO_IPV6;
	int proto = p->v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	int probe = IP_PMTUDISC_PROBE, yes = 1;

	_Static_assert(IP_PMTUDISC_PROBE == IPV6_PMTUDISC_PROBE, "one number for both");
	p->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, proto);
	if (p->fd < 0) {
		p->fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, proto);
		p->raw = true;
	}
	if (p->fd < 0)
		return -EPERM;
	/* what the kernel believes of the path's MTU is what is to be found out */
	if (setsockopt(p->fd, level, p->v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &probe,
		       sizeof(probe)) < 0 ||
	    setsockopt(p->fd, level, p->v4 ? IP_PKTINFO : IPV6_RECVPKTINFO, &yes, sizeof(yes)) < 0)
		return -errno;
	return 0;
}

static uint16_t checksum(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void send_one(struct pinging *p, size_t i, unsigned size)
{
	/* (ICMPv6's header is the same; its checksum the kernel makes) */
	struct icmphdr h = {.type = p->v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST,
			    .un.echo.id = (uint16_t)p->nonce};
	struct message m = {p->nonce, time_mono_ns(), (uint32_t)i, (uint16_t)size, 0};
	size_t len = size - ip_header(p->v4);
	struct sockaddr_storage to;
	socklen_t to_len = addr_to_sockaddr(&p->v[i].addr, 0, &to);
	struct pollfd room = {.fd = p->fd, .events = POLLOUT};

	memset(p->buf, 0, len);
	memcpy(p->buf, &h, sizeof(h));
	memcpy(p->buf + sizeof(h), &m, sizeof(m));
	h.checksum = checksum(p->buf, len);
	memcpy(p->buf, &h, sizeof(h));
	poll(&room, 1, TRY_MS);
	/* (who is not reached by this has not answered) */
	if (sendto(p->fd, p->buf, len, 0, (struct sockaddr *)&to, to_len) < 0)
		return;
}

bool ping_read(const void *data, size_t len, bool v4, bool raw, uint64_t nonce,
	       struct ping_reply *ret)
{
	const uint8_t *at = data;
	struct icmphdr h;
	struct message m;
	bool with_ip = raw && v4; /* (IPv6's is never there) */
	size_t ip = with_ip && len ? (size_t)(at[0] & 15) * 4 : 0;

	if ((with_ip && (len < sizeof(struct iphdr) || ip < sizeof(struct iphdr))) ||
	    len < ip + sizeof(h) + sizeof(m))
		return false;
	memcpy(&h, at + ip, sizeof(h));
	memcpy(&m, at + ip + sizeof(h), sizeof(m));
	if (h.type != (v4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) || m.nonce != nonce ||
	    len - ip + ip_header(v4) != m.size)
		return false;
	*ret = (struct ping_reply){m.index, m.size, m.sent_ns};
	return true;
}

static unsigned came_by(struct msghdr *m)
{
	struct in6_pktinfo info6;
	struct in_pktinfo info;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return (unsigned)info.ipi_ifindex;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&info6, CMSG_DATA(c), sizeof(info6));
			return info6.ipi6_ifindex;
		}
	}
	return 0;
}

static void take(struct pinging *p, const struct ping_reply *r, const struct sockaddr *from,
		 unsigned ifindex)
{
	struct ping *one = r->index < p->n ? &p->v[r->index] : NULL;
	uint64_t now = time_mono_ns();
	struct ax_addr addr;
	__be16 port;

	if (!one || addr_from_sockaddr(from, &addr, &port) || !addr_eq(&addr, &one->addr))
		return;
	if (!one->answered) {
		one->answered = true;
		one->ifindex = ifindex;
		one->rtt_us = now > r->sent_ns ? (unsigned)((now - r->sent_ns) / 1000) : 0;
	}
	if (r->size > one->size) {
		one->size = r->size;
		p->waiting -= one->size >= one->mtu && p->waiting;
	}
}

static void read_all(struct pinging *p)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control;
	struct sockaddr_storage from;
	struct iovec io = {p->buf, SIZE_MAX_IP};
	struct ping_reply reply;

	for (;;) {
		struct msghdr m = {.msg_name = &from,
				   .msg_namelen = sizeof(from),
				   .msg_iov = &io,
				   .msg_iovlen = 1,
				   .msg_control = &control,
				   .msg_controllen = sizeof(control)};
		ssize_t len = recvmsg(p->fd, &m, MSG_DONTWAIT);

		if (len < 0)
			return;
		if (ping_read(p->buf, (size_t)len, p->v4, p->raw, p->nonce, &reply))
			take(p, &reply, (struct sockaddr *)&from, came_by(&m));
	}
}

/* --- rounds --- */

static void ask(struct pinging *p, size_t i, bool sizes)
{
	const struct ping *one = &p->v[i];

	if (!is_asked(p, one) || one->size >= one->mtu || (sizes && !one->answered))
		return;
	if (!sizes && !one->answered)
		send_one(p, i, (unsigned)least(p->v4));
	if (!sizes)
		send_one(p, i, one->mtu);
	for (size_t k = 0; sizes && k < ARRAY_SIZE(usual); k++)
		if (usual[k] < one->mtu && usual[k] > one->size)
			send_one(p, i, usual[k]);
	read_all(p);
}

/* Whether anybody is asked in it. */
static bool begin(struct pinging *p, bool sizes)
{
	p->waiting = 0;
	for (size_t i = 0; i < p->n; i++)
		p->waiting += is_asked(p, &p->v[i]) && p->v[i].size < p->v[i].mtu &&
			      (!sizes || p->v[i].answered);
	return p->waiting;
}

static void round_of(struct pinging *p, bool sizes)
{
	struct pollfd fd = {.fd = p->fd, .events = POLLIN};
	uint64_t start = time_mono_ns(), now = start, next = start;
	uint64_t end = start + (sizes ? SIZES_MS : WAIT_MS) * NS_PER_MS;
	unsigned tries = 0;

	if (!begin(p, sizes))
		return;
	while (p->waiting && now < end) {
		if (now >= next && tries < TRIES) {
			for (size_t i = 0; i < p->n; i++)
				ask(p, i, sizes);
			tries++;
			next = time_mono_ns() + TRY_MS * NS_PER_MS;
		}
		poll(&fd, 1, 20);
		read_all(p);
		now = time_mono_ns();
	}
}

/* --- TCP --- */

static int begin_connect(const struct ax_addr *addr)
{
	struct sockaddr_storage to;
	socklen_t len = addr_to_sockaddr(addr, htons(TCP_PORT), &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, len) == 0 || errno == EINPROGRESS)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int end_connect(int fd, bool ready)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (!ready)
		err = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	close(fd);
	return err == ECONNREFUSED ? 0 : -err;
}

static void connect_some(struct ping *v, size_t n)
{
	uint64_t end = time_mono_ns() + TCP_MS * NS_PER_MS, now;
	struct pollfd fds[TCP_MAX];
	size_t open = 0;

	for (size_t i = 0; i < n; i++) {
		int fd = v[i].answered		    ? -EALREADY
			 : addr_is_zero(&v[i].addr) ? -EDESTADDRREQ
						    : begin_connect(&v[i].addr);

		fds[i] = (struct pollfd){.fd = fd < 0 ? -1 : fd, .events = POLLOUT};
		open += fd >= 0;
		v[i].tcp = fd >= 0 || fd == -EALREADY || fd == -ECONNREFUSED ? 0 : fd;
	}
	while (open && (now = time_mono_ns()) < end) {
		poll(fds, n, (int)((end - now) / NS_PER_MS) + 1);
		for (size_t i = 0; i < n; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			v[i].tcp = end_connect(fds[i].fd, true);
			fds[i].fd = -1;
			open--;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			v[i].tcp = end_connect(fds[i].fd, false);
}

static void connect_all(struct ping *v, size_t n)
{
	for (size_t i = 0; i < n; i += TCP_MAX)
		connect_some(v + i, n - i < TCP_MAX ? n - i : TCP_MAX);
}

/* --- all of it --- */

static void prepare(struct ping *one)
{
	unsigned min = (unsigned)least(addr_is_v4(&one->addr));

	one->mtu = one->mtu > SIZE_MAX_IP ? SIZE_MAX_IP : one->mtu < min ? min : one->mtu;
	one->answered = false;
	one->size = 0;
}

static int ask_family(struct ping *v, size_t n, bool v4)
{
	CLEANUP(pinging_free) struct pinging p = {.fd = -1, .v4 = v4, .v = v, .n = n};
	bool any = false;
	int r;

	for (size_t i = 0; i < n; i++)
		any |= is_asked(&p, &v[i]);
	if (!any)
		return 0;
	p.buf = malloc(SIZE_MAX_IP);
	if (!p.buf)
		return -ENOMEM;
	r = getrandom(&p.nonce, sizeof(p.nonce), 0) < 0 ? -errno : open_socket(&p);
	if (!r) {
		round_of(&p, false);
		round_of(&p, true);
	}
	return r;
}

int ping_all(struct ping *v, size_t n)
{
	bool silent = false;
	int r, r6;

	for (size_t i = 0; i < n; i++)
		prepare(&v[i]);
	r = ask_family(v, n, true);
	r6 = ask_family(v, n, false);
	for (size_t i = 0; i < n; i++)
		silent |= !v[i].answered;
	if (silent)
		connect_all(v, n);
	return r ? r : r6;
}
