// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/random.h>

#include "etcd/priv.h"

#define PAUSE_MIN_MS 100u
#define PAUSE_MAX_MS 5000u

/* Between half of it and one and a half: a thousand agents whose member died do not come as one. */
uint64_t pause_ns(unsigned failures)
{
	uint64_t ms = failures > 6 ? PAUSE_MAX_MS : PAUSE_MIN_MS << (failures ? failures - 1 : 0);
	uint32_t random = 0;

	if (ms > PAUSE_MAX_MS)
		ms = PAUSE_MAX_MS;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)time_mono_ns();
	return ms * NS_PER_MS / 2 + random % (ms * NS_PER_MS);
}

static void set_connected(struct endpoints *at, bool connected)
{
	if (at->connected == connected)
		return;
	at->connected = connected;
	at->since_boot_s = time_boot_s();
	at->changed_is_due = true;
}

void endpoint_failed(struct etcd *e, uint64_t epoch, const char *why)
{
	struct endpoints *at = &e->at;

	if (epoch != at->epoch)
		return; /* another has its turn already */
	snprintf(at->error, sizeof(at->error), "%s", why);
	set_connected(at, false);
	at->failures++;
	at->epoch++;
	if (at->n > 1) {
		at->turn = (at->turn + 1) % at->n;
		at->switches++;
	}
	at->retry_ns = at->failures % at->n ? 0 : time_mono_ns() + pause_ns(at->failures / at->n);
	etcd_want_tick(e, 0);
}

void endpoint_answered(struct etcd *e, uint64_t epoch, const struct answer_head *head)
{
	struct endpoints *at = &e->at;

	if (epoch != at->epoch)
		return;
	at->failures = 0;
	at->answered_ns = time_mono_ns();
	if (head && head->cluster) {
		if (at->seen.cluster != head->cluster)
			at->seen.revision = 0;
		at->seen.cluster = head->cluster;
		at->seen.member = head->member;
		if (head->revision > at->seen.revision)
			at->seen.revision = head->revision;
	}
	set_connected(at, true);
}

void endpoint_clock(struct etcd *e, uint64_t epoch, int64_t ahead_s)
{
	struct endpoints *at = &e->at;
	int64_t differs = ahead_s - at->clock_s;

	if (epoch != at->epoch || (at->clock_known && differs > -2 && differs < 2))
		return;
	at->clock_known = true;
	at->clock_s = ahead_s;
	at->changed_is_due = true;
}

bool endpoint_did_answer(const struct etcd_transfer *t, char why[ERROR_LEN])
{
	struct answer a;
	bool did;

	if (t->curl) {
		snprintf(why, ERROR_LEN, "%s: %s", t->endpoint, t->why);
		return false;
	}
	if (t->http == 200)
		return true;
	answer_error(t->in ? t->in : "", t->in_len, &a);
	did = a.code;
	if (did)
		snprintf(why, ERROR_LEN, "%s: %s", t->endpoint, a.message);
	else
		snprintf(why, ERROR_LEN,
			 "%s: HTTP status %ld, which is no answer of etcd's JSON gateway (is it "
			 "etcd, and is its --enable-grpc-gateway on?)",
			 t->endpoint, t->http);
	answer_free(&a);
	return did;
}

/* --- who says nothing for long is asked something --- */

static void on_probe(struct etcd_transfer *t)
{
	struct etcd *e = t->e;
	char why[ERROR_LEN];
	struct answer a = {0};

	e->at.probe = NULL;
	if (!endpoint_did_answer(t, why)) {
		endpoint_failed(e, t->epoch, why);
	} else if (t->http == 200) {
		if (answer_range(t->in ? t->in : "", t->in_len, &a) == 0)
			endpoint_answered(e, t->epoch, &a.head);
		else
			endpoint_failed(e, t->epoch, "the answer cannot be understood");
	} else {
		answer_error(t->in ? t->in : "", t->in_len, &a);
		/* not being allowed to read is an answer of one that is well */
		if (a.code == 7 || a.code == 16)
			endpoint_answered(e, t->epoch, NULL);
		else
			endpoint_failed(e, t->epoch, why);
	}
	answer_free(&a);
	transfer_end(t);
	etcd_want_tick(e, 0);
}

static void probe(struct etcd *e)
{
	static const struct etcd_range least = {
		.key = {"", 0}, .keys_only = true, .any_member = true};
	struct transfer_what what = {
		.path = "/v3/kv/range",
		.timeout_ms = e->o.attempt_ms,
		.on_ready = on_probe,
	};

	what.body = body_range(&least, NULL, 0, 1, &what.len);
	if (what.body)
		e->at.probe = transfer_start(e, &what);
}

uint64_t endpoint_tick(struct etcd *e, uint64_t now)
{
	struct endpoints *at = &e->at;
	uint64_t due = at->connected ? at->answered_ns + e->o.probe_ms * NS_PER_MS : at->retry_ns;

	if (at->probe && at->probe->epoch != at->epoch) {
		transfer_end(at->probe);
		at->probe = NULL;
	}
	if (at->probe)
		return NEVER; /* it has a time-out of its own */
	if (now < due)
		return due;
	probe(e);
	return at->probe ? NEVER : now + NS_PER_S;
}
