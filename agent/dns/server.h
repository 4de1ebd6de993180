/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the DNS server's files share: sockets (dns.c), TCP clients (tcp.c) and queries to the
 * upstreams (forward.c). */
#ifndef AX_DNS_SERVER_H
#define AX_DNS_SERVER_H

#include <sys/socket.h>
#include "dns/dns.h"

#define DNS_QUERY_MAX  4096 /* longest query that is read; real ones have a few hundred bytes */
#define DNS_ANSWER_MAX 65535

/* A list in order of deadlines: every list has one duration, so what is new or renewed goes to its
 * end. The list's head is an entry itself. */
struct dns_wait {
	struct dns_wait *prev, *next;
	uint64_t deadline_ns;
};

struct dns_socket {
	struct loop_item item;
	struct dns_server *server;
	uint64_t empty_ns; /* what is in its queue came after this */
};

/* What one asker has open. It is freed when that is nothing. */
struct dns_share {
	struct dns_share *next;
	struct ax_addr who;
	size_t n_queries, n_clients, n_held, n_wishes;
};

struct dns_server {
	int epoll_fd;
	struct dns_zone zone;
	char *domain;
	struct ax_addr listen4, listen6;
	__be16 port_be;
	struct dns_upstream *upstreams;
	size_t n_upstreams;
	struct dns_socket udp[2], tcp[2]; /* IPv4, IPv6; fd -1: none */
	struct dns_socket timer;
	void (*drained)(void *arg);
	void *arg;
	uint64_t sent_after_ns; /* see dns_sent_after() */
	uint64_t timer_ns;	/* when it is set to expire, 0: not set */
	uint64_t resume_ns;	/* when to accept connections again, 0: not paused */
	struct dns_wait queries;
	size_t n_queries;
	struct dns_wait clients;
	size_t n_clients;
	struct dns_wait held; /* see hold.c */
	struct dns_wish *wishes;
	size_t n_wishes;
	struct dns_share *shares;
	struct dns_client *unsettled;	/* see dns_clients_settle() */
	uint8_t answer[DNS_ANSWER_MAX]; /* scratch of the handlers */
};

/* Who asked, and is to be answered. */
struct dns_asker {
	struct dns_rights rights;
	struct dns_client *client; /* by TCP; else: */
	struct dns_socket *udp;
	struct sockaddr_storage from;
	socklen_t from_len;
};

static inline void dns_wait_init(struct dns_wait *list)
{
	list->prev = list->next = list;
}
static inline void dns_wait_remove(struct dns_wait *w)
{
	w->prev->next = w->next;
	w->next->prev = w->prev;
	dns_wait_init(w);
}
static inline void dns_wait_renew(struct dns_wait *list, struct dns_wait *w, uint64_t deadline_ns)
{
	dns_wait_remove(w);
	w->deadline_ns = deadline_ns;
	w->prev = list->prev;
	w->next = list;
	list->prev->next = w;
	list->prev = w;
}

/* dns.c: every handler ends with this: what the TCP clients have now, and the timer's deadline. */
void dns_settle(struct dns_server *s);
/* Who asks from there. False: nobody who is answered. */
bool dns_rights_of(const struct dns_server *s, const struct sockaddr_storage *from, uint8_t proto,
		   struct dns_rights *ret);
/* recv() or accept() has failed with err: tells whoever wants to know that the queue is empty. */
static inline void dns_drained(const struct dns_server *s, int err)
{
	if (err == EAGAIN && s->drained)
		s->drained(s->arg);
}
void dns_reply(const struct dns_asker *a, const uint8_t *msg, size_t len);

/* shares.c. NULL: no memory. dns_share_put() frees it if nothing of it is open. */
struct dns_share *dns_share_get(struct dns_server *s, const struct ax_addr *who);
void dns_share_put(struct dns_server *s, struct dns_share *sh);
/* There must be one. */
struct dns_share *dns_share_with_most_queries(const struct dns_server *s);
struct dns_share *dns_share_with_most_clients(const struct dns_server *s);
struct dns_share *dns_share_with_most_wishes(const struct dns_server *s);

/* forward.c. dns_forward() answers in the end, whatever happens. */
void dns_forward(struct dns_server *s, const struct dns_asker *a, const uint8_t *query, size_t len);
void dns_queries_expire(struct dns_server *s, uint64_t now_ns);
/* Forgets queries: those of one client, or all (NULL). */
void dns_queries_cancel(struct dns_server *s, const struct dns_client *client);

/* hold.c. True: the query waits for a name, and is answered later. */
bool dns_hold(struct dns_server *s, const struct dns_asker *a, const uint8_t *query, size_t len,
	      bool asked_outside);
void dns_held_expire(struct dns_server *s, uint64_t now_ns);
/* Forgets those of one client, or all (NULL). */
void dns_held_cancel(struct dns_server *s, const struct dns_client *client);
void dns_wishes_free(struct dns_server *s);

/*
 * tcp.c. dns_client_reply() only queues, and nothing but dns_clients_settle() then writes, takes
 * the client's next queries, and frees it when it is done: a query that fails to make room for
 * another one must not make its client ask the next one in the middle of that.
 */
void dns_client_reply(struct dns_client *c, const uint8_t *msg, size_t len);
void dns_client_query_opened(struct dns_client *c);
void dns_client_query_closed(struct dns_client *c);
void dns_clients_settle(struct dns_server *s);
void dns_clients_expire(struct dns_server *s, uint64_t now_ns);
void dns_clients_close(struct dns_server *s);
int dns_listen_events(struct dns_server *s, uint32_t events);

/* Handlers of some of the loop's kinds; they never fail the agent. */
void dns_on_listen(struct loop_item *item);
void dns_on_client(struct loop_item *item, uint32_t events);
void dns_on_upstream(struct loop_item *item, uint32_t events);

#endif
