// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/tcp_pair.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/util.h"
#include "tests/lib/netns.h"

#define WAIT_MS 5000

static int listen_at(int ns, const struct ax_addr *addr, __be16 *port_be)
{
	int fd = ns_socket(ns, addr_is_v4(addr) ? AF_INET : AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(addr, 0, &ss);

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&ss, len) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)&ss, &len) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	*port_be = ((struct sockaddr_in *)&ss)->sin_port; /* at the same place in both */
	return fd;
}

static int connect_from(int ns, const struct ax_addr *own, const struct ax_addr *addr,
			__be16 port_be)
{
	int fd = ns_socket(ns, addr_is_v4(addr) ? AF_INET : AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(own, 0, &ss);

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&ss, len) == 0) {
		len = addr_to_sockaddr(addr, port_be, &ss);
		if (connect(fd, (struct sockaddr *)&ss, len) == 0 || errno == EINPROGRESS)
			return fd;
	}
	len = (socklen_t)errno;
	close(fd);
	return -(int)len;
}

int tcp_pair_open(struct tcp_pair *p, int client_ns, const struct ax_addr *client, int server_ns,
		  const struct ax_addr *server)
{
	autoclose int listener = -1;
	__be16 port_be = 0;
	int one = 1, r = 0;

	p->client = p->server = -1;
	listener = listen_at(server_ns, server, &port_be);
	if (listener < 0)
		return listener;
	p->client = connect_from(client_ns, client, server, port_be);
	if (p->client < 0)
		return p->client;
	r = ns_wait(listener, POLLIN);
	if (!r)
		p->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (p->server < 0) {
		r = r ? r : -errno;
		tcp_pair_close(p);
		return r;
	}
	setsockopt(p->client, SOL_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(p->server, SOL_TCP, TCP_NODELAY, &one, sizeof(one));
	return ns_wait(p->client, POLLOUT);
}

void tcp_pair_close(struct tcp_pair *p)
{
	close_fd(&p->client);
	close_fd(&p->server);
	p->client = p->server = -1;
}

uint64_t tcp_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len);
	return cookie;
}

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)((i * 0x9e3779b97f4a7c15ull) >> 56);
}

static uint8_t buffer[4 << 20];

ssize_t tcp_stream_put(struct tcp_stream *s, size_t n, int flags)
{
	ssize_t sent;

	for (size_t i = 0; i < n; i++)
		buffer[i] = byte_at(s->sent + i);
	sent = send(s->from, buffer, n, flags | MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	s->sent += (uint64_t)sent;
	return sent;
}

ssize_t tcp_stream_get(struct tcp_stream *s, size_t n)
{
	ssize_t got = recv(s->to, buffer, n, 0);

	if (got < 0)
		return -errno;
	for (ssize_t i = 0; i < got; i++)
		if (buffer[i] != byte_at(s->got + (uint64_t)i))
			return -EBADMSG;
	s->got += (uint64_t)got;
	return got;
}

int tcp_stream_get_all(struct tcp_stream *s)
{
	struct pollfd p = {.fd = s->to, .events = POLLIN};

	while (s->got < s->sent) {
		ssize_t n;

		if (poll(&p, 1, WAIT_MS) <= 0)
			return -ETIMEDOUT;
		n = tcp_stream_get(s, sizeof(buffer));
		if (n == 0)
			return -EPIPE;
		if (n < 0 && n != -EAGAIN)
			return (int)n;
	}
	return 0;
}
