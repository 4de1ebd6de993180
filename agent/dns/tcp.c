// SPDX-License-Identifier: GPL-2.0-or-later
/* TCP clients: any number of queries on a connection, answered as the answers come. */
#include <sys/socket.h>
#include "dns/message.h"
#include "dns/server.h"

/* A client that has this much waiting for it, or asked for, is not read from until it is less. */
#define OUT_MAX	    65536
#define QUERIES_MAX 16

#define PAUSE_NS 1000000000ull /* no descriptors or memory left for one more connection */

struct dns_client {
	struct dns_wait wait;
	struct loop_item item;
	struct dns_server *server;
	struct dns_client *next_unsettled;
	struct dns_share *share;
	struct sockaddr_storage from;
	uint64_t since_ns; /* it came after this */
	uint32_t events;
	unsigned queries; /* open at the upstreams */
	bool eof;	  /* it sends no more, and may still read */
	bool broken;	  /* to be closed */
	bool unsettled;	  /* is in the server's list of those */
	uint8_t *out;	  /* malloc, what was not sent yet is from out_pos to out_len */
	size_t out_pos, out_len, out_size;
	size_t in_len;
	uint8_t in[2 + DNS_QUERY_MAX];
};

static struct dns_client *client_of(struct dns_wait *w)
{
	return LOOP_OWNER(w, struct dns_client, wait);
}

static void client_renew(struct dns_client *c)
{
	dns_wait_renew(&c->server->clients, &c->wait, time_mono_ns() + DNS_CLIENT_IDLE_NS);
}

/* Out of the list of the unsettled. */
static void client_forget(struct dns_client *c)
{
	struct dns_client **at = &c->server->unsettled;

	if (!c->unsettled)
		return;
	while (*at != c)
		at = &(*at)->next_unsettled;
	*at = c->next_unsettled;
	c->unsettled = false;
}

static void client_free(struct dns_client *c)
{
	dns_queries_cancel(c->server, c);
	dns_held_cancel(c->server, c);
	loop_del(c->server->epoll_fd, &c->item);
	close_fd(&c->item.fd);
	dns_wait_remove(&c->wait);
	client_forget(c);
	c->server->n_clients--;
	c->share->n_clients--;
	dns_share_put(c->server, c->share);
	free(c->out);
	free(c);
}

static void client_touch(struct dns_client *c)
{
	if (c->unsettled)
		return;
	c->unsettled = true;
	c->next_unsettled = c->server->unsettled;
	c->server->unsettled = c;
}

void dns_client_query_opened(struct dns_client *c)
{
	c->queries++;
}

void dns_client_query_closed(struct dns_client *c)
{
	c->queries--;
	client_touch(c);
}

static int out_reserve(struct dns_client *c, size_t more)
{
	size_t need = c->out_len + more;
	size_t size = c->out_size ? c->out_size : 1024;
	uint8_t *p;

	if (c->out_pos) {
		memmove(c->out, c->out + c->out_pos, c->out_len - c->out_pos);
		need -= c->out_pos;
		c->out_len -= c->out_pos;
		c->out_pos = 0;
	}
	if (need <= c->out_size)
		return 0;
	while (size < need)
		size *= 2;
	p = realloc(c->out, size);
	if (!p)
		return -ENOMEM;
	c->out = p;
	c->out_size = size;
	return 0;
}

void dns_client_reply(struct dns_client *c, const uint8_t *msg, size_t len)
{
	client_touch(c);
	if (out_reserve(c, 2 + len) < 0) {
		c->broken = true;
		return;
	}
	dns_put16(c->out + c->out_len, (uint16_t)len);
	memcpy(c->out + c->out_len + 2, msg, len);
	c->out_len += 2 + len;
}

static void client_query(struct dns_client *c, const uint8_t *query, size_t len)
{
	struct dns_asker a = {.client = c};
	struct dns_server *s = c->server;
	int n;

	client_renew(c);
	s->sent_after_ns = c->since_ns;
	if (!dns_rights_of(s, &c->from, IPPROTO_TCP, &a.rights)) {
		c->broken = true;
		return;
	}
	if (dns_hold(s, &a, query, len, false))
		return;
	n = dns_answer(&s->zone, query, len, s->answer, sizeof(s->answer), 0);
	if (n == 0)
		dns_forward(s, &a, query, len);
	else if (n > 0)
		dns_client_reply(c, s->answer, (size_t)n);
	else
		c->broken = true; /* whatever it speaks, it is not DNS */
}

static bool client_paused(const struct dns_client *c)
{
	return c->queries >= QUERIES_MAX || c->out_len - c->out_pos >= OUT_MAX;
}

/* Takes the complete queries out of the buffer. Returns whether there was one. */
static bool client_take(struct dns_client *c)
{
	size_t at = 0;

	while (!c->broken && !client_paused(c) && c->in_len - at >= 2) {
		size_t len = dns_get16(c->in + at);

		if (len > DNS_QUERY_MAX)
			c->broken = true;
		if (c->in_len - at - 2 < len)
			break;
		client_query(c, c->in + at + 2, len);
		at += 2 + len;
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
	return at;
}

static void client_flush(struct dns_client *c)
{
	while (!c->broken && c->out_pos < c->out_len) {
		ssize_t n = send(c->item.fd, c->out + c->out_pos, c->out_len - c->out_pos,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 && errno != EINTR)
			c->broken = true;
		if (n <= 0)
			continue;
		c->out_pos += (size_t)n;
		client_renew(c);
	}
	free(c->out);
	c->out = NULL;
	c->out_pos = c->out_len = c->out_size = 0;
}

static void client_settle(struct dns_client *c)
{
	bool waiting;
	uint32_t events;

	while (client_take(c))
		client_flush(c);
	client_flush(c);
	/* what it did to itself is done with */
	client_forget(c);
	waiting = c->out_pos < c->out_len;
	if (c->broken || (c->eof && !c->queries && !waiting)) {
		client_free(c);
		return;
	}
	events = (c->eof || client_paused(c) ? 0 : EPOLLIN) | (waiting ? EPOLLOUT : 0);
	if (events == c->events)
		return;
	c->events = events;
	if (loop_mod(c->server->epoll_fd, &c->item, events) < 0)
		client_free(c);
}

void dns_clients_settle(struct dns_server *s)
{
	/* Ends: each turn takes queries out of a client's buffer, or leaves it settled. */
	while (s->unsettled)
		client_settle(s->unsettled);
}

void dns_on_client(struct loop_item *item, uint32_t events)
{
	struct dns_client *c = LOOP_OWNER(item, struct dns_client, item);
	struct dns_server *s = c->server;
	ssize_t n;

	if (events & (EPOLLERR | EPOLLHUP))
		c->broken = true;
	if (!c->broken && events & EPOLLIN && !c->eof) {
		n = recv(item->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, 0);
		if (n > 0)
			c->in_len += (size_t)n;
		else if (n == 0)
			c->eof = true;
		else if (errno != EAGAIN && errno != EINTR)
			c->broken = true;
	}
	client_touch(c);
	dns_settle(s);
}

/* The connection of this asker (NULL: of anybody) that has been idle for longest. NULL: all wait
 * for an upstream. */
static struct dns_client *idle_of(struct dns_server *s, const struct dns_share *sh)
{
	for (struct dns_wait *w = s->clients.next; w != &s->clients; w = w->next) {
		if ((!sh || client_of(w)->share == sh) && !client_of(w)->queries)
			return client_of(w);
	}
	return NULL;
}

static struct dns_client *oldest_of(struct dns_server *s, const struct dns_share *sh)
{
	struct dns_wait *w = s->clients.next;

	while (client_of(w)->share != sh)
		w = w->next;
	return client_of(w);
}

/* Room for one more connection of this asker: who has most of them loses one. */
static bool clients_make_room(struct dns_server *s, const struct dns_share *sh)
{
	const struct dns_share *most = dns_share_with_most_clients(s);
	bool own = most->n_clients <= sh->n_clients;
	struct dns_client *c;

	if (s->n_clients < DNS_CLIENTS_MAX)
		return true;
	c = idle_of(s, own ? sh : most);
	if (!c && !own)
		c = oldest_of(s, most);
	if (!c && sh->n_clients == 1) /* its first */
		c = idle_of(s, NULL);
	if (c)
		client_free(c);
	return c;
}

static struct dns_client *client_new(struct dns_server *s, struct dns_share *sh, int fd)
{
	struct dns_client *c = clients_make_room(s, sh) ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->item = (struct loop_item){.kind = LOOP_DNS_CLIENT, .fd = fd};
	c->server = s;
	c->share = sh;
	c->events = EPOLLIN;
	if (loop_add(s->epoll_fd, &c->item, c->events) < 0) {
		free(c);
		return NULL;
	}
	return c;
}

static void client_open(struct dns_server *s, int fd_, const struct sockaddr_storage *from)
{
	autoclose int fd = fd_;
	struct dns_rights rights;
	struct dns_share *sh;
	struct dns_client *c;

	if (!dns_rights_of(s, from, IPPROTO_TCP, &rights))
		return;
	sh = dns_share_get(s, &rights.self);
	if (!sh)
		return;
	sh->n_clients++; /* so that nobody who goes takes it along */
	c = client_new(s, sh, fd);
	if (!c) {
		sh->n_clients--;
		dns_share_put(s, sh);
		return;
	}
	take_fd(&fd);
	c->from = *from;
	c->since_ns = s->sent_after_ns;
	dns_wait_init(&c->wait);
	s->n_clients++;
	client_renew(c);
}

int dns_listen_events(struct dns_server *s, uint32_t events)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(s->tcp) && r == 0; i++) {
		if (s->tcp[i].item.fd >= 0)
			r = loop_mod(s->epoll_fd, &s->tcp[i].item, events);
	}
	return r;
}

void dns_on_listen(struct loop_item *item)
{
	struct dns_socket *sock = LOOP_OWNER(item, struct dns_socket, item);
	struct dns_server *s = sock->server;
	uint64_t began = time_mono_ns();

	s->sent_after_ns = sock->empty_ns;
	for (int i = 0; i < 16; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		int fd = accept4(item->fd, (struct sockaddr *)&from, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			client_open(s, fd, &from);
			continue;
		}
		if (errno == EAGAIN)
			sock->empty_ns = began;
		dns_drained(s, errno);
		/* Such a connection stays in the queue, and epoll would report it for ever. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			s->resume_ns = time_mono_ns() + PAUSE_NS;
			dns_listen_events(s, 0);
		}
		if (errno != ECONNABORTED && errno != EINTR)
			break;
	}
	dns_settle(s);
}

void dns_clients_expire(struct dns_server *s, uint64_t now_ns)
{
	while (s->clients.next != &s->clients && s->clients.next->deadline_ns <= now_ns) {
		struct dns_client *c = client_of(s->clients.next);

		/* It waits for an upstream, which has its own time-out. */
		if (c->queries)
			client_renew(c);
		else
			client_free(c);
	}
}

void dns_clients_close(struct dns_server *s)
{
	while (s->clients.next != &s->clients)
		client_free(client_of(s->clients.next));
}
