// SPDX-License-Identifier: GPL-2.0-or-later
#include "etcd/priv.h"

/* --- lists --- */

static void unlink_request(struct etcd_request *r)
{
	struct requests *all = &r->e->requests;

	if (!r->link)
		return;
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	else if (all->end == &r->next)
		all->end = r->link;
	r->link = NULL;
	r->next = NULL;
}

static void link_first(struct etcd_request **list, struct etcd_request *r)
{
	r->next = *list;
	r->link = list;
	if (r->next)
		r->next->link = &r->next;
	*list = r;
}

/* Before others of its kind: urgent ones are before all that are not. */
static void wait_first(struct etcd_request *r)
{
	struct requests *all = &r->e->requests;
	struct etcd_request **at = &all->first;

	while (!r->urgent && *at && (*at)->urgent)
		at = &(*at)->next;
	link_first(at, r);
	if (!r->next)
		all->end = &r->next;
}

static void wait_last(struct etcd_request *r)
{
	struct requests *all = &r->e->requests;

	r->next = NULL;
	r->link = all->end;
	*all->end = r;
	all->end = &r->next;
}

static void request_free(struct etcd_request *r)
{
	unlink_request(r);
	if (r->transfer) {
		transfer_end(r->transfer);
		r->e->requests.n_flying--;
	}
	r->e->requests.n--;
	free(r->body);
	free(r->range);
	free(r);
}

void etcd_cancel(struct etcd_request *r)
{
	if (!r)
		return;
	if (r->calling) {
		r->cancelled = true;
		return;
	}
	etcd_want_tick(r->e, 0); /* who waited for its place is sent */
	request_free(r);
}

int request_start(struct etcd *e, const struct etcd_request *model, struct etcd_request **ret)
{
	struct etcd_request *r;

	if (!model->body || model->len > MAX_REQUEST * 4 / 3 + 65536 ||
	    (!model->urgent && e->requests.n >= e->o.max_waiting)) {
		free(model->body);
		return !model->body			   ? -ENOMEM
		       : e->requests.n >= e->o.max_waiting ? -EBUSY
							   : -EMSGSIZE;
	}
	r = malloc(sizeof(*r));
	if (!r) {
		free(model->body);
		return -ENOMEM;
	}
	*r = *model;
	r->e = e;
	r->deadline_ns = time_mono_ns() + e->o.request_ms * NS_PER_MS;
	if (!r->attempt_ms)
		r->attempt_ms = e->o.attempt_ms;
	e->requests.n++;
	if (r->urgent)
		wait_first(r);
	else
		wait_last(r);
	if (ret)
		*ret = r;
	if (!e->inside)
		requests_pump(e);
	etcd_want_tick(e, r->deadline_ns);
	return 0;
}

/* --- its end --- */

/* May free the client's requests, and close it. */
static void request_over(struct etcd_request *r, int err, const char *text, size_t len,
			 const char *error)
{
	struct etcd *e = r->e;
	bool goes_on;

	unlink_request(r);
	r->calling = true;
	goes_on = r->over(r, err, text, len, error);
	r->calling = false;
	if (!goes_on || r->cancelled || e->closed) {
		request_free(r);
		return;
	}
	r->attempts = 0;
	r->next_ns = 0;
	r->deadline_ns = time_mono_ns() + e->o.request_ms * NS_PER_MS;
	wait_first(r);
	etcd_want_tick(e, r->deadline_ns);
}

static void give_up(struct etcd_request *r)
{
	char error[ERROR_LEN + 64];

	snprintf(error, sizeof(error), "no endpoint of etcd could be asked in time (%s)",
		 r->why[0]	     ? r->why
		 : r->e->at.error[0] ? r->e->at.error
				     : "there was no answer yet");
	request_over(r, -EHOSTUNREACH, NULL, 0, error);
}

/* It is tried again, unless what was sent may have been done. */
static void again(struct etcd_request *r, bool may_be_done)
{
	struct etcd *e = r->e;
	uint64_t now = time_mono_ns();
	char error[ERROR_LEN + 64];

	unlink_request(r);
	if (may_be_done && r->once) {
		snprintf(error, sizeof(error), "%s (whether it was done all the same is not known)",
			 r->why);
		request_over(r, -ETIMEDOUT, NULL, 0, error);
		return;
	}
	r->attempts++;
	/* members that answer, but cannot do it, are not to be asked without a pause */
	r->next_ns = r->attempts % e->at.n ? 0 : now + pause_ns(r->attempts / e->at.n);
	if (now >= r->deadline_ns || r->next_ns >= r->deadline_ns) {
		give_up(r);
		return;
	}
	wait_first(r);
	etcd_want_tick(e, r->next_ns);
}

/* --- errors that are etcd's --- */

enum next { NEXT_OVER, NEXT_AGAIN, NEXT_AGAIN_UNKNOWN };

static bool has(const struct answer *a, const char *words)
{
	return strstr(a->message, words);
}

/* gRPC's codes. What may pass is tried elsewhere. */
static enum next judge(const struct answer *a, int *err)
{
	*err = -EPROTO;
	switch (a->code) {
	case 3: /* invalid argument */
	case 9: /* failed precondition */
		*err = has(a, "too large") ? -EMSGSIZE : -EINVAL;
		return NEXT_OVER;
	case 5: /* not found */
		*err = -ENOENT;
		return NEXT_OVER;
	case 7:	 /* permission denied */
	case 16: /* unauthenticated */
		*err = -EACCES;
		return NEXT_OVER;
	case 8: /* resource exhausted */
		if (has(a, "too many requests"))
			return NEXT_AGAIN;
		*err = has(a, "space exceeded") ? -ENOSPC : -EMSGSIZE;
		return NEXT_OVER;
	case 11: /* out of range */
		*err = -ESTALE;
		return NEXT_OVER;
	case 12: /* unimplemented */
		return NEXT_OVER;
	default:
		/* said before anything is done; of the gateway itself: that it does not reach its
		 * etcd */
		return has(a, "no leader") || has(a, "all SubConns") ? NEXT_AGAIN
								     : NEXT_AGAIN_UNKNOWN;
	}
}

static void on_error(struct etcd_request *r, struct etcd_transfer *t)
{
	char error[ERROR_LEN];
	struct answer a;
	enum next next;
	int err;

	answer_error(t->in ? t->in : "", t->in_len, &a);
	next = judge(&a, &err);
	snprintf(error, sizeof(error), "%s: %s", t->endpoint, a.message);
	answer_free(&a);
	if (next == NEXT_OVER)
		endpoint_answered(r->e, t->epoch, NULL);
	else
		endpoint_failed(r->e, t->epoch, error);
	transfer_end(t);
	if (next == NEXT_OVER) {
		request_over(r, err, NULL, 0, error);
		return;
	}
	memcpy(r->why, error, sizeof(r->why));
	again(r, next == NEXT_AGAIN_UNKNOWN);
}

static void on_ready(struct etcd_transfer *t)
{
	struct etcd_request *r = t->owner;
	bool began = t->began;
	char why[ERROR_LEN];

	r->transfer = NULL;
	r->e->requests.n_flying--;
	r->started_ns = t->started_ns;
	r->epoch = t->epoch;
	unlink_request(r);
	if (t->too_large) {
		transfer_end(t);
		request_over(r, -EMSGSIZE, NULL, 0, "the answer is larger than what is accepted");
	} else if (!endpoint_did_answer(t, why)) {
		endpoint_failed(r->e, t->epoch, why);
		/* one that had no time says less than the one before */
		if (!r->why[0] || !r->short_of_time || t->curl != CURLE_OPERATION_TIMEDOUT)
			memcpy(r->why, why, sizeof(r->why));
		began = began && (t->curl || t->http >= 500);
		transfer_end(t);
		again(r, began);
	} else if (t->http != 200) {
		on_error(r, t);
	} else {
		/* the request outlives it: the text is the transfer's */
		request_over(r, 0, t->in ? t->in : "", t->in_len, NULL);
		transfer_end(t);
	}
}

/* --- sending --- */

static bool send_now(struct etcd_request *r, uint64_t now)
{
	struct etcd *e = r->e;
	uint64_t left = r->deadline_ns > now ? (r->deadline_ns - now) / NS_PER_MS + 1 : 1;
	struct transfer_what what = {
		.path = r->path,
		.body = malloc(r->len + 1),
		.len = r->len,
		.timeout_ms = left < r->attempt_ms ? left : r->attempt_ms,
		.once = r->once,
		.any_member = r->any_member,
		.on_ready = on_ready,
		.owner = r,
	};

	if (!what.body)
		return false;
	memcpy(what.body, r->body, r->len);
	r->short_of_time = left < r->attempt_ms;
	r->transfer = transfer_start(e, &what);
	if (!r->transfer)
		return false;
	unlink_request(r);
	link_first(&e->requests.flying, r);
	e->requests.n_flying++;
	return true;
}

void requests_pump(struct etcd *e)
{
	uint64_t now = time_mono_ns();
	struct etcd_request *next;

	if (now < e->at.retry_ns)
		return;
	for (struct etcd_request *r = e->requests.first; r; r = next) {
		next = r->next;
		if (e->requests.n_flying >= MAX_FLYING + (r->urgent ? MAX_URGENT : 0u))
			return;
		if (r->next_ns <= now && r->deadline_ns > now && !send_now(r, now))
			return; /* no memory: the next tick tries again */
	}
}

uint64_t requests_tick(struct etcd *e, uint64_t now)
{
	struct etcd_request *r, *next;
	uint64_t at;

	do { /* anew after each callback, which may have changed the list */
		at = NEVER;
		for (r = e->requests.first; r; r = next) {
			next = r->next;
			if (r->deadline_ns <= now)
				break;
			at = r->deadline_ns < at ? r->deadline_ns : at;
			at = r->next_ns > now && r->next_ns < at ? r->next_ns : at;
		}
		if (r)
			give_up(r);
	} while (r && !e->closed);
	if (e->requests.first && e->at.retry_ns > now && e->at.retry_ns < at)
		at = e->at.retry_ns;
	return at;
}

void requests_close(struct etcd *e)
{
	while (e->requests.first)
		request_free(e->requests.first);
	while (e->requests.flying)
		request_free(e->requests.flying);
}

int request_parsed(struct etcd_request *r, int err, const struct answer *a, const char **error)
{
	if (err) {
		*error = err == -ENOMEM ? "out of memory" : "etcd's answer cannot be understood";
		return err;
	}
	endpoint_answered(r->e, r->epoch, &a->head);
	return 0;
}
