// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queries to the upstreams. Each has a socket of its own, connected, so that the kernel picks a
 * random port and drops what other senders send; with the random ID that is what a forger would
 * have to guess. What came by TCP goes on by TCP.
 */
#include <sys/random.h>
#include "dns/message.h"
#include "dns/server.h"

#define ERROR_ANSWER_MAX 512 /* a question and OPT */

struct dns_query {
	struct dns_wait wait;
	struct loop_item item;
	struct dns_server *server;
	struct dns_asker asker;
	struct dns_share *share;
	uint16_t id;	 /* the asker's */
	size_t next;	 /* the upstream to try after this one */
	size_t sent;	 /* bytes of `msg` (TCP) */
	size_t received; /* bytes of `prefix` and then of `answer` (TCP) */
	uint8_t prefix[2];
	uint8_t *answer; /* malloc, once its length is known (TCP) */
	size_t len;	 /* of the query */
	uint8_t msg[];	 /* TCP's length prefix and the query */
};

static bool by_tcp(const struct dns_query *q)
{
	return q->asker.client;
}

static void query_disconnect(struct dns_query *q)
{
	loop_del(q->server->epoll_fd, &q->item);
	close_fd(&q->item.fd);
	free(q->answer);
	q->answer = NULL;
	q->sent = q->received = 0;
}

static void query_free(struct dns_query *q)
{
	query_disconnect(q);
	dns_wait_remove(&q->wait);
	q->server->n_queries--;
	q->share->n_queries--;
	dns_share_put(q->server, q->share);
	if (q->asker.client)
		dns_client_query_closed(q->asker.client);
	free(q);
}

/* Answers with `msg`, whose ID is still the one of the upstream's query, and is done with q. */
static void query_answer(struct dns_query *q, uint8_t *msg, size_t len)
{
	dns_put16(msg, q->id);
	dns_reply(&q->asker, msg, len);
	query_free(q);
}

static int error_answer(struct dns_server *s, const struct dns_asker *a, const uint8_t *query,
			size_t len, uint8_t out[ERROR_ANSWER_MAX])
{
	/* Nobody but an upstream knows single-label names, so without upstreams they do not exist,
	 * and to those who may ask none nothing but the zone does. SERVFAIL for the rest: musl
	 * takes REFUSED for the end of the whole lookup. */
	bool unknown = !a->rights.forward || (!s->n_upstreams && dns_asks_single_label(query, len));

	return dns_answer_error(query, len, unknown ? LDNS_RCODE_NXDOMAIN : LDNS_RCODE_SERVFAIL,
				out, ERROR_ANSWER_MAX);
}

/* Outside knows no such name: an app may yet have it. */
static bool query_hold(struct dns_query *q)
{
	dns_put16(q->msg + 2, q->id);
	if (!dns_hold(q->server, &q->asker, q->msg + 2, q->len, true))
		return false;
	query_free(q);
	return true;
}

static void query_fail(struct dns_query *q)
{
	uint8_t out[ERROR_ANSWER_MAX];
	int len;

	if (query_hold(q))
		return;
	len = error_answer(q->server, &q->asker, q->msg + 2, q->len, out);

	if (len > 0)
		query_answer(q, out, (size_t)len);
	else
		query_free(q);
}

static int query_send_udp(struct dns_query *q)
{
	ssize_t n = send(q->item.fd, q->msg + 2, q->len, MSG_NOSIGNAL);

	return n < 0 ? -errno : loop_add(q->server->epoll_fd, &q->item, EPOLLIN);
}

static int query_start(struct dns_query *q, const struct dns_upstream *u)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(&u->addr, u->port_be, &ss);
	int type = (by_tcp(q) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;

	if (getrandom(q->msg + 2, 2, GRND_NONBLOCK) != 2)
		return -EAGAIN;
	q->item.fd = socket(ss.ss_family, type, 0);
	if (q->item.fd < 0)
		return -errno;
	if (connect(q->item.fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		return -errno;
	return by_tcp(q) ? loop_add(q->server->epoll_fd, &q->item, EPOLLOUT) : query_send_udp(q);
}

/* Asks the next upstream that takes the query. */
static void query_next(struct dns_query *q)
{
	struct dns_server *s = q->server;

	query_disconnect(q);
	while (q->next < s->n_upstreams) {
		if (query_start(q, &s->upstreams[q->next++]) == 0) {
			dns_wait_renew(&s->queries, &q->wait, time_mono_ns() + DNS_UPSTREAM_NS);
			return;
		}
		query_disconnect(q);
	}
	query_fail(q);
}

static struct dns_query *query_of(struct dns_wait *w)
{
	return LOOP_OWNER(w, struct dns_query, wait);
}

static void fail_oldest_of(struct dns_server *s, const struct dns_share *sh)
{
	struct dns_wait *w = s->queries.next;

	while (w != &s->queries && query_of(w)->share != sh)
		w = w->next;
	if (w != &s->queries)
		query_fail(query_of(w));
}

/* Room for this asker's latest query: of who has more than it has, if need be. */
static bool make_room(struct dns_server *s, const struct dns_share *sh)
{
	struct dns_share *most;

	if (sh->n_queries > DNS_QUERIES_SHARE)
		return false;
	if (s->n_queries < DNS_QUERIES_MAX)
		return true;
	most = dns_share_with_most_queries(s);
	if (most == sh || most->n_queries < sh->n_queries)
		return false;
	fail_oldest_of(s, most);
	return s->n_queries < DNS_QUERIES_MAX;
}

static void refuse(struct dns_server *s, const struct dns_asker *a, const uint8_t *query,
		   size_t len)
{
	uint8_t out[ERROR_ANSWER_MAX];
	int n = error_answer(s, a, query, len, out);

	if (n > 0)
		dns_reply(a, out, (size_t)n);
}

static bool may_forward(struct dns_server *s, const struct dns_asker *a, const uint8_t *query,
			size_t len)
{
	char name[DOMAIN_STRLEN];

	if (!a->rights.forward || !a->rights.judged || !s->zone.may_ask)
		return a->rights.forward;
	return dns_asked_name(query, len, name) && s->zone.may_ask(s->zone.arg, &a->rights, name);
}

void dns_forward(struct dns_server *s, const struct dns_asker *a, const uint8_t *query, size_t len)
{
	struct dns_share *share;
	struct dns_query *q;

	if (!may_forward(s, a, query, len)) {
		struct dns_asker none = *a;

		none.rights.forward = false; /* for whoever asks, it does not exist */
		refuse(s, &none, query, len);
		return;
	}
	share = dns_share_get(s, &a->rights.self);
	if (!share)
		return;	    /* the asker asks again */
	share->n_queries++; /* it stays, whatever is forgotten to make room */
	q = make_room(s, share) ? calloc(1, sizeof(*q) + 2 + len) : NULL;
	if (!q) {
		refuse(s, a, query, len);
		share->n_queries--;
		dns_share_put(s, share);
		return;
	}
	q->share = share;
	q->item = (struct loop_item){.kind = LOOP_DNS_UPSTREAM, .fd = -1};
	q->server = s;
	q->asker = *a;
	q->id = dns_get16(query);
	q->len = len;
	dns_put16(q->msg, (uint16_t)len);
	memcpy(q->msg + 2, query, len);
	dns_wait_init(&q->wait);
	s->n_queries++;
	if (a->client)
		dns_client_query_opened(a->client);
	query_next(q);
}

void dns_queries_expire(struct dns_server *s, uint64_t now_ns)
{
	while (s->queries.next != &s->queries && s->queries.next->deadline_ns <= now_ns)
		query_next(query_of(s->queries.next));
}

void dns_queries_cancel(struct dns_server *s, const struct dns_client *client)
{
	struct dns_wait *next;

	for (struct dns_wait *w = s->queries.next; w != &s->queries; w = next) {
		next = w->next;
		if (!client || query_of(w)->asker.client == client)
			query_free(query_of(w));
	}
}

/* Whoever knows the address may connect to it: so rules know it before. */
static void query_learn(struct dns_query *q, const uint8_t *msg, size_t len)
{
	const struct dns_zone *z = &q->server->zone;
	struct dns_learnt v[DNS_LEARNT_MAX];
	char name[DOMAIN_STRLEN];
	size_t n;

	if (!q->asker.rights.told || !z->learn)
		return;
	n = dns_answer_addresses(msg, len, name, v, DNS_LEARNT_MAX);
	if (n)
		z->learn(z->arg, &q->asker.rights, name, v, n);
}

/* An upstream's answer: passed on, unless it says that this upstream is of no use and another one
 * is left. */
static void query_answered(struct dns_query *q, uint8_t *msg, size_t len)
{
	ldns_pkt_rcode rcode = (ldns_pkt_rcode)(msg[3] & 15);
	bool useless = rcode == LDNS_RCODE_SERVFAIL || rcode == LDNS_RCODE_REFUSED ||
		       rcode == LDNS_RCODE_NOTIMPL;

	if (useless && q->next < q->server->n_upstreams) {
		query_next(q);
		return;
	}
	if (rcode == LDNS_RCODE_NXDOMAIN && query_hold(q))
		return;
	query_learn(q, msg, len);
	query_answer(q, msg, len);
}

static void query_read_udp(struct dns_query *q)
{
	uint8_t *msg = q->server->answer;

	for (int i = 0; i < 16; i++) {
		ssize_t n = recv(q->item.fd, msg, DNS_ANSWER_MAX, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) { /* nobody there (ECONNREFUSED), no route */
			query_next(q);
			return;
		}
		if (dns_is_answer_to(q->msg + 2, q->len, msg, (size_t)n)) {
			query_answered(q, msg, (size_t)n);
			return;
		}
	}
}

static int query_write_tcp(struct dns_query *q)
{
	ssize_t n = send(q->item.fd, q->msg + q->sent, 2 + q->len - q->sent, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	q->sent += (size_t)n;
	return q->sent < 2 + q->len ? 0 : loop_mod(q->server->epoll_fd, &q->item, EPOLLIN);
}

/* Returns the length of a complete answer, 0 while it is not complete. */
static int query_read_tcp(struct dns_query *q)
{
	for (;;) {
		bool prefix = q->received < 2;
		size_t want = prefix ? 2 : 2u + dns_get16(q->prefix);
		uint8_t *at = prefix ? q->prefix + q->received : q->answer + q->received - 2;
		ssize_t n = recv(q->item.fd, at, want - q->received, 0);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (n == 0)
			return -ECONNRESET;
		q->received += (size_t)n;
		if (q->received < want)
			continue;
		if (!prefix)
			return (int)(want - 2);
		if (dns_get16(q->prefix) < DNS_HEADER_LEN)
			return -EBADMSG;
		q->answer = malloc(dns_get16(q->prefix));
		if (!q->answer)
			return -ENOMEM;
	}
}

static void query_on_tcp(struct dns_query *q)
{
	int r = q->sent < 2 + q->len ? query_write_tcp(q) : query_read_tcp(q);

	if (r < 0 || (r > 0 && !dns_is_answer_to(q->msg + 2, q->len, q->answer, (size_t)r))) {
		query_next(q);
		return;
	}
	if (r > 0)
		query_answered(q, q->answer, (size_t)r);
}

void dns_on_upstream(struct loop_item *item, uint32_t events)
{
	struct dns_query *q = LOOP_OWNER(item, struct dns_query, item);
	struct dns_server *s = q->server;

	/* Errors need no look at the events: the call that reads or writes reports them. */
	(void)events;
	if (by_tcp(q))
		query_on_tcp(q);
	else
		query_read_udp(q);
	dns_settle(s);
}
