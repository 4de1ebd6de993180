// SPDX-License-Identifier: GPL-2.0-or-later
/* The DNS server: its sockets, queries by UDP, and the one timer. */
#include <sys/timerfd.h>
#include "dns/message.h"
#include "dns/server.h"

#define FREE_PORT_TRIES 64

/* The filter first: nothing comes in without it. */
static int socket_limit(int fd, int type, int filter)
{
	int size = DNS_RCVBUF;

	if (filter && setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof(filter)) < 0)
		return -errno;
	/* Without the right to it the usual size has to do. */
	if (filter && type == SOCK_DGRAM &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		return errno == EPERM ? 0 : -errno;
	return 0;
}

static int socket_bind(int type, const struct ax_addr *addr, __be16 port_be, int filter)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(addr, port_be, &ss);
	autoclose int fd = socket(ss.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, r;

	if (fd < 0)
		return -errno;
	r = socket_limit(fd, type, filter);
	if (r)
		return r;
	if (ss.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -errno;
	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&ss, len) < 0)
		return -errno;
	/* Where both ends have SO_REUSEADDR, listen() is what finds the port taken. */
	if (type == SOCK_STREAM && listen(fd, DNS_CLIENTS_MAX) < 0)
		return -errno;
	return take_fd(&fd);
}

static int socket_port(int fd, __be16 *port_be)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct ax_addr addr;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	return addr_from_sockaddr((struct sockaddr *)&ss, &addr, port_be);
}

static void sockets_close(struct dns_server *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->udp); i++) {
		close_fd(&s->udp[i].item.fd);
		close_fd(&s->tcp[i].item.fd);
	}
}

/* All of them on one port; with port 0 the first one's choice. */
static int sockets_bind(struct dns_server *s, const struct dns_config *c, __be16 port_be)
{
	const struct ax_addr *addr[] = {&s->listen4, &s->listen6};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(addr) && r >= 0; i++) {
		if (addr_is_zero(addr[i]))
			continue;
		r = s->udp[i].item.fd = socket_bind(SOCK_DGRAM, addr[i], port_be, c->udp_filter);
		if (r >= 0 && !port_be)
			r = socket_port(r, &port_be);
		if (r >= 0)
			r = s->tcp[i].item.fd =
				socket_bind(SOCK_STREAM, addr[i], port_be, c->tcp_filter);
	}
	s->port_be = port_be;
	if (r < 0)
		sockets_close(s);
	return r < 0 ? r : 0;
}

static int sockets_open(struct dns_server *s, const struct dns_config *c)
{
	int r = sockets_bind(s, c, c->port_be);

	for (int i = 0; r == -EADDRINUSE && i < FREE_PORT_TRIES; i++)
		r = sockets_bind(s, c, 0);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(s->udp); i++) {
		if (s->udp[i].item.fd >= 0)
			r = loop_add(s->epoll_fd, &s->udp[i].item, EPOLLIN);
		if (r == 0 && s->tcp[i].item.fd >= 0)
			r = loop_add(s->epoll_fd, &s->tcp[i].item, EPOLLIN);
	}
	return r;
}

static void socket_init(struct dns_server *s, struct dns_socket *sock, enum loop_kind kind)
{
	*sock = (struct dns_socket){.item = {.kind = kind, .fd = -1}, .server = s};
}

static int server_init(struct dns_server *s, int epoll_fd, const struct dns_config *c)
{
	s->epoll_fd = epoll_fd;
	s->listen4 = c->listen4;
	s->listen6 = c->listen6;
	s->zone = c->zone;
	s->drained = c->drained;
	s->arg = c->arg;
	dns_wait_init(&s->queries);
	dns_wait_init(&s->clients);
	dns_wait_init(&s->held);
	for (size_t i = 0; i < ARRAY_SIZE(s->udp); i++) {
		socket_init(s, &s->udp[i], LOOP_DNS_UDP);
		socket_init(s, &s->tcp[i], LOOP_DNS_LISTEN);
	}
	socket_init(s, &s->timer, LOOP_DNS_TIMER);
	if (addr_is_zero(&s->zone.ns4))
		s->zone.ns4 = c->listen4;
	if (addr_is_zero(&s->zone.ns6))
		s->zone.ns6 = c->listen6;
	s->domain = strdup(c->zone.domain);
	if (!s->domain)
		return -ENOMEM;
	s->zone.domain = s->domain;
	s->timer.item.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->timer.item.fd < 0)
		return -errno;
	return loop_add(epoll_fd, &s->timer.item, EPOLLIN);
}

int dns_server_open(int epoll_fd, const struct dns_config *c, struct dns_server **ret,
		    struct error *e)
{
	const struct ax_addr *shown = addr_is_zero(&c->listen4) ? &c->listen6 : &c->listen4;
	char text[ADDR_STRLEN];
	struct dns_server *s;
	int r;

	if (addr_is_zero(&c->listen4) && addr_is_zero(&c->listen6))
		return error_set(e, -EINVAL, "DNS has no address to listen on: give it one");
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(e, -ENOMEM, "no memory for the DNS server");
	r = server_init(s, epoll_fd, c);
	if (r == 0)
		r = sockets_open(s, c);
	if (r == 0)
		r = dns_server_set_upstreams(s, c->upstreams, c->n_upstreams);
	if (r < 0) {
		dns_server_close(s);
		return error_set(e, r,
				 "cannot listen for DNS on %s: %s; check that the address is on "
				 "an interface of this machine, or turn DNS off in the config",
				 addr_port_format(shown, c->port_be, text), strerror(-r));
	}
	*ret = s;
	return 0;
}

void dns_server_close(struct dns_server *s)
{
	if (!s)
		return;
	dns_clients_close(s);
	dns_queries_cancel(s, NULL);
	dns_held_cancel(s, NULL);
	dns_wishes_free(s);
	for (size_t i = 0; i < ARRAY_SIZE(s->udp); i++) {
		loop_del(s->epoll_fd, &s->udp[i].item);
		loop_del(s->epoll_fd, &s->tcp[i].item);
	}
	sockets_close(s);
	loop_del(s->epoll_fd, &s->timer.item);
	close_fd(&s->timer.item.fd);
	free(s->upstreams);
	free(s->domain);
	free(s);
}

__be16 dns_server_port(const struct dns_server *s)
{
	return s->port_be;
}

int dns_server_set_upstreams(struct dns_server *s, const struct dns_upstream *u, size_t n)
{
	struct dns_upstream *copy = calloc(n ? n : 1, sizeof(*copy));
	size_t kept = 0;

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		/* A resolv.conf may name this server: a query would go round for ever. */
		if (u[i].port_be == s->port_be &&
		    (addr_eq(&u[i].addr, &s->listen4) || addr_eq(&u[i].addr, &s->listen6)))
			continue;
		copy[kept++] = u[i];
	}
	free(s->upstreams);
	s->upstreams = copy;
	s->n_upstreams = kept;
	return 0;
}

void dns_reply(const struct dns_asker *a, const uint8_t *msg, size_t len)
{
	if (a->client)
		dns_client_reply(a->client, msg, len);
	else
		/* A full buffer or a port that nobody has is the asker's loss: it asks again. */
		sendto(a->udp->item.fd, msg, len, MSG_NOSIGNAL, (struct sockaddr *)&a->from,
		       a->from_len);
}

bool dns_rights_of(const struct dns_server *s, const struct sockaddr_storage *from, uint8_t proto,
		   struct dns_rights *ret)
{
	struct ax_addr addr;
	__be16 port_be;

	*ret = (struct dns_rights){.forward = true};
	if (addr_from_sockaddr((const struct sockaddr *)from, &addr, &port_be))
		return false;
	ret->self = addr;
	return !s->zone.asker || s->zone.asker(s->zone.arg, &addr, port_be, proto, ret);
}

static void dns_on_udp(struct loop_item *item)
{
	struct dns_socket *sock = LOOP_OWNER(item, struct dns_socket, item);
	struct dns_server *s = sock->server;
	uint8_t query[DNS_QUERY_MAX];
	uint64_t began = time_mono_ns();

	s->sent_after_ns = sock->empty_ns;
	/* Bounded, so that a flood does not keep the agent from its other work. */
	for (int i = 0; i < 32; i++) {
		struct dns_asker a = {.udp = sock, .from_len = sizeof(a.from)};
		ssize_t n = recvfrom(item->fd, query, sizeof(query), MSG_TRUNC,
				     (struct sockaddr *)&a.from, &a.from_len);
		int len;

		if (n < 0 && errno == EAGAIN) {
			sock->empty_ns = began;
			dns_drained(s, EAGAIN);
			break;
		}
		if (n < 0 || (size_t)n > sizeof(query) ||
		    !dns_rights_of(s, &a.from, IPPROTO_UDP, &a.rights))
			continue;
		if (dns_hold(s, &a, query, (size_t)n, false))
			continue;
		len = dns_answer(&s->zone, query, (size_t)n, s->answer, sizeof(s->answer),
				 DNS_UDP_MAX);
		if (len > 0)
			dns_reply(&a, s->answer, (size_t)len);
		else if (len == 0)
			dns_forward(s, &a, query, (size_t)n);
	}
	dns_settle(s);
}

uint64_t dns_sent_after(const struct dns_server *s)
{
	return s->sent_after_ns;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void timer_update(struct dns_server *s)
{
	struct itimerspec its = {};
	uint64_t next = s->resume_ns;

	if (s->queries.next != &s->queries)
		next = earlier(next, s->queries.next->deadline_ns);
	if (s->held.next != &s->held)
		next = earlier(next, s->held.next->deadline_ns);
	if (s->clients.next != &s->clients)
		next = earlier(next, s->clients.next->deadline_ns);
	/* Deadlines move with every query. A timer that is early costs one wake-up, setting it
	 * again each time would cost more; but nothing may wake an agent that has nothing open. */
	if (s->timer_ns == next || (s->timer_ns && next && s->timer_ns < next))
		return;
	its.it_value.tv_sec = (time_t)(next / 1000000000u);
	its.it_value.tv_nsec = (long)(next % 1000000000u);
	timerfd_settime(s->timer.item.fd, TFD_TIMER_ABSTIME, &its, NULL);
	s->timer_ns = next;
}

void dns_settle(struct dns_server *s)
{
	dns_clients_settle(s);
	timer_update(s);
}

static void dns_on_timer(struct loop_item *item)
{
	struct dns_server *s = LOOP_OWNER(item, struct dns_socket, item)->server;
	uint64_t expirations, now = time_mono_ns();

	if (read(item->fd, &expirations, sizeof(expirations)) < 0)
		return; /* it was set anew meanwhile */
	s->timer_ns = 0;
	if (s->resume_ns && s->resume_ns <= now) {
		s->resume_ns = 0;
		dns_listen_events(s, EPOLLIN);
	}
	dns_queries_expire(s, now);
	dns_held_expire(s, now);
	dns_clients_expire(s, now);
	dns_settle(s);
}

bool dns_on_loop(struct loop_item *item, uint32_t events)
{
	switch (item->kind) {
	case LOOP_DNS_UDP:
		dns_on_udp(item);
		return true;
	case LOOP_DNS_LISTEN:
		dns_on_listen(item);
		return true;
	case LOOP_DNS_CLIENT:
		dns_on_client(item, events);
		return true;
	case LOOP_DNS_UPSTREAM:
		dns_on_upstream(item, events);
		return true;
	case LOOP_DNS_TIMER:
		dns_on_timer(item);
		return true;
	default:
		return false;
	}
}
