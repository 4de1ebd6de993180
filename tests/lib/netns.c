// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/netns.h"

#include <fcntl.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/util.h"

struct ax_addr ns_addr(const char *text)
{
	struct ax_addr a;

	if (addr_parse(text, &a))
		abort();
	return a;
}

int ns_current(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

int ns_new(void)
{
	autoclose int back = ns_current();
	int fd;

	if (back < 0 || unshare(CLONE_NEWNET) < 0)
		return -errno;
	fd = ns_current();
	if (setns(back, CLONE_NEWNET) < 0)
		abort();
	return fd;
}

struct ns_socket_args {
	int domain, type, proto;
};

static int ns_socket_call(void *arg)
{
	struct ns_socket_args *a = arg;
	int fd = socket(a->domain, a->type | SOCK_CLOEXEC | SOCK_NONBLOCK, a->proto);

	return fd < 0 ? -errno : fd;
}

int ns_socket(int ns, int domain, int type, int proto)
{
	struct ns_socket_args a = {domain, type, proto};

	return netns_call(ns, ns_socket_call, &a);
}

int ns_wait(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int r = poll(&p, 1, NS_TIMEOUT_MS);

	return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
}

int ns_bound(int ns, int type, const struct ax_addr *addr, __be16 *port_be)
{
	int domain = addr_is_v4(addr) ? AF_INET : AF_INET6, one = 1;
	autoclose int fd = ns_socket(ns, domain, type, 0);
	struct sockaddr_storage ss;
	struct ax_addr self;
	socklen_t len;

	if (fd < 0)
		return fd;
	/* For prefixes of local routes too, which are no addresses. */
	setsockopt(fd, SOL_IP, IP_FREEBIND, &one, sizeof(one));
	len = addr_to_sockaddr(addr, 0, &ss);
	if (bind(fd, (struct sockaddr *)&ss, len) < 0)
		return -errno;
	len = sizeof(ss);
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	addr_from_sockaddr((struct sockaddr *)&ss, &self, port_be);
	if (type == SOCK_STREAM && listen(fd, 8) < 0)
		return -errno;
	return take_fd(&fd);
}

int ns_connect(int ns, int type, const struct ax_addr *addr, __be16 port_be)
{
	autoclose int fd = ns_socket(ns, addr_is_v4(addr) ? AF_INET : AF_INET6, type, 0);
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(addr, port_be, &ss);
	int err = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		return -errno;
	err = ns_wait(fd, POLLOUT);
	if (err)
		return err;
	len = sizeof(err);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err)
		return err ? -err : -errno;
	return take_fd(&fd);
}

int ns_tcp(int server_ns, int client_ns, const struct ax_addr *addr, struct ax_addr *client)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	__be16 port_be, peer_port_be;
	autoclose int l = ns_bound(server_ns, SOCK_STREAM, addr, &port_be), c = -1, s = -1;
	char b = 0;

	if (l < 0)
		return l;
	c = ns_connect(client_ns, SOCK_STREAM, addr, port_be);
	if (c < 0)
		return c;
	s = accept4(l, (struct sockaddr *)&ss, &len, SOCK_CLOEXEC);
	if (s < 0)
		return -errno;
	addr_from_sockaddr((struct sockaddr *)&ss, client, &peer_port_be);
	if (send(c, "q", 1, 0) != 1 || ns_wait(s, POLLIN) || recv(s, &b, 1, 0) != 1 || b != 'q' ||
	    send(s, "a", 1, 0) != 1 || ns_wait(c, POLLIN) || recv(c, &b, 1, 0) != 1 || b != 'a')
		return -EIO;
	return 0;
}

int ns_udp(int server_ns, int client_ns, const struct ax_addr *addr, struct ax_addr *client)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	__be16 port_be, peer_port_be;
	autoclose int s = ns_bound(server_ns, SOCK_DGRAM, addr, &port_be), c = -1;
	char b = 0;

	if (s < 0)
		return s;
	c = ns_connect(client_ns, SOCK_DGRAM, addr, port_be);
	if (c < 0)
		return c;
	if (send(c, "q", 1, 0) != 1)
		return -errno;
	if (ns_wait(s, POLLIN))
		return -ETIMEDOUT;
	if (recvfrom(s, &b, 1, 0, (struct sockaddr *)&ss, &len) != 1 || b != 'q')
		return -EIO;
	addr_from_sockaddr((struct sockaddr *)&ss, client, &peer_port_be);
	if (sendto(s, "a", 1, 0, (struct sockaddr *)&ss, len) != 1)
		return -errno;
	if (ns_wait(c, POLLIN) || recv(c, &b, 1, 0) != 1 || b != 'a')
		return -EIO;
	return 0;
}

int ns_ping(int ns, const struct ax_addr *addr)
{
	bool v4 = addr_is_v4(addr);
	autoclose int fd = ns_socket(ns, v4 ? AF_INET : AF_INET6, SOCK_RAW,
				     v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	struct icmphdr h4 = {.type = ICMP_ECHO, .un.echo.id = htons(7)};
	struct icmp6_hdr h6 = {.icmp6_type = ICMP6_ECHO_REQUEST};
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(addr, 0, &ss);

	if (fd < 0)
		return fd;
	/* The checksum of a header that is zero but for type and identifier. The kernel does v6's.
	 */
	h4.checksum = (uint16_t) ~(uint16_t)(htons(ICMP_ECHO << 8) + htons(7));
	if (sendto(fd, v4 ? (void *)&h4 : (void *)&h6, 8, 0, (struct sockaddr *)&ss, len) != 8)
		return -errno;
	for (int i = 0; i < 8; i++) {
		uint8_t buf[256];
		ssize_t n;

		if (ns_wait(fd, POLLIN))
			return -ETIMEDOUT;
		n = recv(fd, buf, sizeof(buf), 0);
		if (v4 && n >= 28 && buf[20] == ICMP_ECHOREPLY)
			return 0;
		if (!v4 && n >= 8 && buf[0] == ICMP6_ECHO_REPLY)
			return 0;
	}
	return -EIO;
}

static int ns_open_nl_call(void *arg)
{
	return nl_open(arg);
}

int ns_open_nl(int ns, struct nl **nl)
{
	return netns_call(ns, ns_open_nl_call, nl);
}
