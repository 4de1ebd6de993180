// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queries for names that nobody has yet, of askers that wait for servers: they are answered when
 * the name is there, or when the asker's wait is over.
 *
 * A resolver asks for one name many times: two types, again after a time-out, with a search domain
 * and without. All that are about the same name wait until the same time, and for a while after
 * that the name is known not to come: the wait is had once.
 */
#include "dns/message.h"
#include "dns/server.h"

#define REMEMBER_NS 5000000000ull

struct dns_held {
	struct dns_wait wait;
	struct dns_server *server;
	struct dns_asker asker;
	struct dns_share *share;
	char name[DNS_NAME_MAX];
	size_t len;
	uint8_t msg[];
};

/* How long an asker waits for a name. The latest comes first. */
struct dns_wish {
	struct dns_wish *next;
	struct dns_share *share;
	char name[DNS_NAME_MAX];
	uint64_t until_ns;
};

static struct dns_held *held_of(struct dns_wait *w)
{
	return LOOP_OWNER(w, struct dns_held, wait);
}

static void held_free(struct dns_held *h)
{
	dns_wait_remove(&h->wait);
	h->share->n_held--;
	dns_share_put(h->server, h->share);
	if (h->asker.client)
		dns_client_query_closed(h->asker.client);
	free(h);
}

static void held_answer(struct dns_held *h)
{
	struct dns_server *s = h->server;
	size_t max_udp = h->asker.client ? 0 : DNS_UDP_MAX;
	int n = dns_answer(&s->zone, h->msg, h->len, s->answer, sizeof(s->answer), max_udp);

	if (n == 0) /* it was not known outside either, or may not be asked for there */
		n = dns_answer_error(h->msg, h->len, LDNS_RCODE_NXDOMAIN, s->answer,
				     sizeof(s->answer));
	if (n > 0)
		dns_reply(&h->asker, s->answer, (size_t)n);
	held_free(h);
}

/* --- wishes --- */

static void wish_forget(struct dns_server *s, struct dns_wish **at)
{
	struct dns_wish *w = *at;

	*at = w->next;
	s->n_wishes--;
	w->share->n_wishes--;
	dns_share_put(s, w->share);
	free(w);
}

static void wishes_forget(struct dns_server *s, uint64_t before_ns)
{
	for (struct dns_wish **at = &s->wishes; *at;) {
		if ((*at)->until_ns < before_ns)
			wish_forget(s, at);
		else
			at = &(*at)->next;
	}
}

static void wishes_forget_oldest_of(struct dns_server *s, const struct dns_share *sh)
{
	struct dns_wish **oldest = NULL;

	for (struct dns_wish **at = &s->wishes; *at; at = &(*at)->next) {
		if ((*at)->share == sh)
			oldest = at;
	}
	if (oldest)
		wish_forget(s, oldest);
}

void dns_wishes_free(struct dns_server *s)
{
	wishes_forget(s, UINT64_MAX);
}

static struct dns_wish *wish_new(struct dns_server *s, const struct ax_addr *who)
{
	struct dns_wish *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->share = dns_share_get(s, who);
	if (!w->share) {
		free(w);
		return NULL;
	}
	w->share->n_wishes++;
	w->next = s->wishes;
	s->wishes = w;
	s->n_wishes++;
	return w;
}

/* Until when this asker waits for the name; 0: it does not. */
static uint64_t wish_until(struct dns_server *s, const struct dns_rights *rights, const char *name,
			   uint64_t now)
{
	struct dns_wish *w;

	wishes_forget(s, now > REMEMBER_NS ? now - REMEMBER_NS : 0);
	for (w = s->wishes; w; w = w->next) {
		if (addr_eq(&w->share->who, &rights->self) && streq(w->name, name))
			return w->until_ns;
	}
	/* (who has forgotten one waits anew when it asks again) */
	if (s->n_wishes >= DNS_HELD_MAX)
		wishes_forget_oldest_of(s, dns_share_with_most_wishes(s));
	w = wish_new(s, &rights->self);
	if (!w)
		return 0;
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->until_ns = now + (uint64_t)rights->wait_ms * 1000000u;
	return w->until_ns;
}

/* --- queries --- */

/* In the order of the deadlines: those who wait as long as others come last. */
static void held_insert(struct dns_server *s, struct dns_held *h, uint64_t until_ns)
{
	struct dns_wait *at = s->held.prev;

	while (at != &s->held && at->deadline_ns > until_ns)
		at = at->prev;
	h->wait.deadline_ns = until_ns;
	h->wait.prev = at;
	h->wait.next = at->next;
	at->next->prev = &h->wait;
	at->next = &h->wait;
}

/* A resolver that asks again with the same ID wants one answer. */
static bool is_again(const struct dns_held *h, const struct dns_asker *a, const uint8_t *query,
		     size_t len)
{
	return !a->client && !h->asker.client && h->len == len && memcmp(h->msg, query, len) == 0 &&
	       h->asker.from_len == a->from_len &&
	       memcmp(&h->asker.from, &a->from, a->from_len) == 0;
}

static bool held_already(const struct dns_server *s, const struct dns_asker *a,
			 const uint8_t *query, size_t len)
{
	for (struct dns_wait *w = s->held.next; w != &s->held; w = w->next) {
		if (is_again(held_of(w), a, query, len))
			return true;
	}
	return false;
}

static bool held_new(struct dns_server *s, const struct dns_asker *a, const uint8_t *query,
		     size_t len, const char *name, uint64_t until_ns)
{
	struct dns_share *share = dns_share_get(s, &a->rights.self);
	struct dns_held *h;

	if (!share)
		return false;
	h = share->n_held < DNS_HELD_SHARE ? calloc(1, sizeof(*h) + len) : NULL;
	if (!h) {
		dns_share_put(s, share);
		return false;
	}
	h->server = s;
	h->asker = *a;
	h->share = share;
	h->len = len;
	memcpy(h->msg, query, len);
	snprintf(h->name, sizeof(h->name), "%s", name);
	share->n_held++;
	if (a->client)
		dns_client_query_opened(a->client);
	held_insert(s, h, until_ns);
	return true;
}

bool dns_hold(struct dns_server *s, const struct dns_asker *a, const uint8_t *query, size_t len,
	      bool asked_outside)
{
	uint64_t now, until;
	char name[DNS_NAME_MAX];
	bool alone;

	if (!a->rights.wait_ms || !dns_may_come(&s->zone, query, len, name, &alone))
		return false;
	/* Outside may know a name without a domain, and is asked before anybody waits. */
	if (alone && a->rights.forward && !asked_outside)
		return false;
	if (held_already(s, a, query, len))
		return true;
	now = time_mono_ns();
	until = wish_until(s, &a->rights, name, now);
	return until > now && held_new(s, a, query, len, name, until);
}

void dns_held_expire(struct dns_server *s, uint64_t now_ns)
{
	while (s->held.next != &s->held && s->held.next->deadline_ns <= now_ns)
		held_answer(held_of(s->held.next));
}

void dns_held_cancel(struct dns_server *s, const struct dns_client *client)
{
	struct dns_wait *next;

	for (struct dns_wait *w = s->held.next; w != &s->held; w = next) {
		next = w->next;
		if (!client || held_of(w)->asker.client == client)
			held_free(held_of(w));
	}
}

void dns_server_names_added(struct dns_server *s)
{
	struct dns_wait *next;

	for (struct dns_wait *w = s->held.next; w != &s->held; w = next) {
		next = w->next;
		if (dns_zone_ready(&s->zone, held_of(w)->name))
			held_answer(held_of(w));
	}
	dns_settle(s);
}
