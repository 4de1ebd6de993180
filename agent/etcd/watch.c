// SPDX-License-Identifier: GPL-2.0-or-later
#include "etcd/priv.h"

/* etcd says every 10 minutes that nothing happened. */
#define IDLE_NS	  (15 * 60 * NS_PER_S)
#define STEADY_NS (5 * NS_PER_S) /* a stream that lived for so long was well */

struct etcd_watch {
	struct etcd *e;
	struct etcd_watch *next, **link;
	struct etcd_bytes key; /* behind it */
	bool prefix;
	int64_t from;	  /* the next revision that is wanted */
	uint64_t cluster; /* 0: not known yet */
	struct etcd_transfer *transfer;
	size_t scanned; /* of what came, without a newline */
	bool created, over;
	uint64_t opened_ns, heard_ns, next_ns;
	unsigned failures;
	struct etcd_request *check; /* is the store older than it was? */
	etcd_watch_fn news;
	void *arg;
	bool *freed; /* while its owner is called */
	uint8_t bytes[];
};

/* False: it is gone. */
static bool tell(struct etcd_watch *w, const struct etcd_news *news)
{
	struct etcd *e = w->e;
	bool freed = false;

	w->freed = &freed;
	w->news(w->arg, news);
	if (freed)
		return false;
	w->freed = NULL;
	return !e->closed;
}

static void stop(struct etcd_watch *w)
{
	transfer_end(w->transfer);
	w->transfer = NULL;
	w->scanned = 0;
	w->created = false;
	etcd_cancel(w->check);
	w->check = NULL;
}

/* The stream is over, and another is opened. */
static bool broken(struct etcd_watch *w, const char *why)
{
	struct etcd_news news = {.kind = ETCD_NEWS_BROKEN, .why = why};
	uint64_t now = time_mono_ns();
	bool was_told = w->created;

	if (w->created && now - w->opened_ns > STEADY_NS)
		w->failures = 0;
	w->next_ns = w->failures ? now + pause_ns(w->failures) : now;
	w->failures++;
	stop(w);
	etcd_want_tick(w->e, w->next_ns);
	return !was_told || tell(w, &news);
}

static bool gap(struct etcd_watch *w, int64_t revision, const char *why)
{
	struct etcd_news news = {.kind = ETCD_NEWS_GAP, .revision = revision, .why = why};

	stop(w);
	w->over = true;
	return tell(w, &news);
}

/* --- a store that is older than it was: a member lags behind, or a backup was put back --- */

static bool on_check(struct etcd_request *r, int err, const char *text, size_t len,
		     const char *error)
{
	struct etcd_watch *w = r->arg;
	struct answer a = {0};

	w->check = NULL;
	if (!err)
		err = request_parsed(r, answer_range(text, len, &a), &a, &error);
	if (!err && a.head.revision < w->from - 1)
		gap(w, a.head.revision, "etcd's store is older than it was: a backup was put back");
	answer_free(&a);
	return false;
}

static void check(struct etcd_watch *w)
{
	static const struct etcd_range least = {.key = {"", 0}, .keys_only = true};
	struct etcd_request r = {
		.path = "/v3/kv/range", .over = on_check, .arg = w, .urgent = true};

	r.body = body_range(&least, NULL, 0, 1, &r.len);
	request_start(w->e, &r, &w->check); /* else the next stream's */
}

/* --- messages --- */

static bool on_created(struct etcd_watch *w, const struct answer *a)
{
	struct etcd_news news = {.kind = ETCD_NEWS_CURRENT};

	if (w->cluster && w->cluster != a->head.cluster)
		return gap(w, 0, "etcd is another cluster than it was");
	w->cluster = a->head.cluster;
	w->created = true;
	if (a->head.revision < w->from - 1 && !w->check)
		check(w);
	return tell(w, &news);
}

/* What comes after a message is not before its last event; but what its head says of the store may
 * be ahead of events that come later, unless there are none. */
static bool on_events(struct etcd_watch *w, const struct answer *a)
{
	const struct etcd_event *first = a->events, *end = a->events + a->n_events;
	struct etcd_news news = {.kind = ETCD_NEWS_EVENTS};

	while (first < end && first->kv.mod_revision < w->from)
		first++;
	if (first == end)
		return true;
	news.revision = end[-1].kv.mod_revision;
	news.events = first;
	news.n = (size_t)(end - first);
	w->from = news.revision + !a->fragment;
	return tell(w, &news);
}

static bool on_end(struct etcd_watch *w, const struct answer *a, uint64_t epoch)
{
	const char *why = a->message[0] ? a->message : "etcd ended the watch";
	char text[ERROR_LEN];

	snprintf(text, sizeof(text), "%s: %s", w->transfer->endpoint, why);
	if (a->code == 7 || a->code == 16)
		etcd_note(w->e, text);
	else
		endpoint_failed(w->e, epoch, text);
	return broken(w, text);
}

static bool on_message(struct etcd_watch *w, const struct answer *a, uint64_t epoch)
{
	if (a->compacted)
		return gap(w, a->compacted, "what happened meanwhile has been compacted in etcd");
	if (a->code || a->canceled)
		return on_end(w, a, epoch);
	endpoint_answered(w->e, epoch, &a->head);
	if (a->created)
		return on_created(w, a);
	if (a->n_events)
		return on_events(w, a);
	if (a->head.revision >= w->from)
		w->from = a->head.revision + 1;
	return true;
}

/* False: the transfer is gone. */
static bool on_line(struct etcd_watch *w, const char *line, size_t len, uint64_t epoch)
{
	struct etcd_transfer *t = w->transfer;
	struct answer a;
	bool goes_on;
	int err = answer_watch(line, len, &a);

	w->heard_ns = time_mono_ns();
	if (err) {
		endpoint_failed(w->e, epoch, "etcd's answer to a watch cannot be understood");
		goes_on = broken(w, "etcd's answer to a watch cannot be understood");
	} else {
		goes_on = on_message(w, &a, epoch);
	}
	answer_free(&a);
	return goes_on && w->transfer == t;
}

static void on_stream_over(struct etcd_watch *w, const struct etcd_transfer *t)
{
	char why[ERROR_LEN];
	struct answer a;

	if (t->too_large && t->http == 200) {
		gap(w, 0, "a message of etcd's about a watch is larger than what is accepted");
		return;
	}
	if (!endpoint_did_answer(t, why)) {
		endpoint_failed(w->e, t->epoch, why);
		broken(w, why);
		return;
	}
	answer_error(t->in ? t->in : "", t->in_len, &a);
	on_end(w, &a, t->epoch);
	answer_free(&a);
}

static void on_ready(struct etcd_transfer *t)
{
	struct etcd_watch *w = t->owner;
	size_t done = 0;
	char *end;

	while (t->in && t->http == 200 &&
	       (end = memchr(t->in + done + w->scanned, '\n', t->in_len - done - w->scanned))) {
		size_t len = (size_t)(end - t->in) - done;

		w->scanned = 0;
		if (len && !on_line(w, t->in + done, len, t->epoch))
			return;
		done += len + 1;
	}
	if (t->in) {
		t->in_len -= done;
		memmove(t->in, t->in + done, t->in_len + 1);
		w->scanned = t->in_len;
		t->too_large = t->too_large || t->in_len > w->e->o.max_answer;
	}
	if (t->over || t->too_large)
		on_stream_over(w, t);
}

/* --- when --- */

static void open_stream(struct etcd_watch *w)
{
	struct transfer_what what = {
		.path = "/v3/watch", .stream = true, .on_ready = on_ready, .owner = w};

	what.body = body_watch(w->key, w->prefix, w->from, &what.len);
	w->opened_ns = w->heard_ns = time_mono_ns();
	if (what.body)
		w->transfer = transfer_start(w->e, &what);
	if (!w->transfer)
		w->next_ns = w->opened_ns + NS_PER_S;
}

/* When something has to happen by itself. */
static uint64_t due(const struct etcd_watch *w)
{
	if (w->over)
		return NEVER;
	if (!w->transfer)
		return w->next_ns > w->e->at.retry_ns ? w->next_ns : w->e->at.retry_ns;
	if (w->transfer->epoch != w->e->at.epoch)
		return 0;
	if (!w->created)
		return w->opened_ns + (w->e->o.connect_ms + w->e->o.attempt_ms) * NS_PER_MS;
	return w->heard_ns + IDLE_NS;
}

static void happen(struct etcd_watch *w)
{
	char why[ERROR_LEN];

	if (!w->transfer) {
		open_stream(w);
		return;
	}
	if (w->transfer->epoch == w->e->at.epoch && !w->created) {
		snprintf(why, sizeof(why), "%s: no answer to a watch", w->transfer->endpoint);
		endpoint_failed(w->e, w->transfer->epoch, why);
	}
	w->failures = 0; /* another endpoint */
	broken(w, w->e->at.error);
}

uint64_t etcd_watches_tick(struct etcd *e, uint64_t now)
{
	struct etcd_watch *w;
	uint64_t at;

	do { /* anew after each callback */
		at = NEVER;
		for (w = e->watches; w && due(w) > now; w = w->next)
			at = due(w) < at ? due(w) : at;
		if (w)
			happen(w);
	} while (w && !e->closed);
	return at;
}

int etcd_watch_open(struct etcd *e, struct etcd_bytes key, bool prefix, int64_t revision,
		    etcd_watch_fn news, void *arg, struct etcd_watch **ret)
{
	struct etcd_watch *w;

	if (key.len > ETCD_MAX_KEY || (!key.len && !prefix) || revision < 1)
		return -EINVAL;
	w = calloc(1, sizeof(*w) + key.len);
	if (!w)
		return -ENOMEM;
	if (key.len)
		memcpy(w->bytes, key.data, key.len);
	w->e = e;
	w->key = (struct etcd_bytes){w->bytes, key.len};
	w->prefix = prefix;
	w->from = revision;
	w->cluster = e->at.seen.cluster;
	w->news = news;
	w->arg = arg;
	w->next = e->watches;
	w->link = &e->watches;
	if (w->next)
		w->next->link = &w->next;
	e->watches = w;
	etcd_want_tick(e, 0);
	*ret = w;
	return 0;
}

void etcd_watch_free(struct etcd_watch *w)
{
	if (!w)
		return;
	if (w->freed)
		*w->freed = true;
	stop(w);
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	free(w);
}

void etcd_watches_close(struct etcd *e)
{
	while (e->watches)
		etcd_watch_free(e->watches);
}
