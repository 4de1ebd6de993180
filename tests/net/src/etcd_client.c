// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client of etcd, as lines of stdin say, each of whose results is a line of stdout:
 *	etcd_client [-c CA] [-C CERT -K KEY] [-t REQUEST_MS] [-m MAX_ANSWER] ENDPOINT...
 *
 *	put KEY VALUE		get PREFIX [REVISION]	count PREFIX PAGE	del KEY
 *	create KEY VALUE	big KEY BYTES		fill PREFIX N		state
 *	lease TTL [ID]		under KEY VALUE		revoke			drop
 *	watch PREFIX REVISION	unwatch			quit
 */
#include <inttypes.h>
#include <stdarg.h>

#include "etcd/etcd.h"

static struct etcd *etcd;
static struct etcd_lease *lease;
static struct etcd_watch *watch;
static size_t to_fill, filled, seen;

static struct etcd_bytes bytes(const char *s)
{
	return (struct etcd_bytes){s, strlen(s)};
}

static void say(const char *fmt, ...) PRINTF(1, 2);
static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static void on_done(void *arg, int err, const struct etcd_answer *a, const char *error)
{
	char *what = arg;

	if (err)
		say("%s: %s: %s", what, strerrorname_np(-err), error);
	else
		say("%s: done%s", what, a->succeeded ? "" : " not");
	free(what);
}

/* --- ranges --- */

static void on_page(void *arg, int err, const struct etcd_page *p, const char *error)
{
	(void)arg;
	if (err) {
		say("get: %s: %s", strerrorname_np(-err), error);
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		say("get: %.*s=%.*s", (int)p->kvs[i].key.len, (const char *)p->kvs[i].key.data,
		    (int)p->kvs[i].value.len, (const char *)p->kvs[i].value.data);
	if (!p->more)
		say("get: end at %" PRId64, p->revision);
}

struct counted {
	size_t keys, pages;
	int64_t revision;
	bool same, ordered;
	char last[256];
};

static void on_counted(void *arg, int err, const struct etcd_page *p, const char *error)
{
	struct counted *c = arg;

	if (err) {
		say("count: %s: %s", strerrorname_np(-err), error);
		free(c);
		return;
	}
	c->same = c->same && (!c->pages || c->revision == p->revision);
	c->revision = p->revision;
	c->pages++;
	for (size_t i = 0; i < p->n; i++) {
		const char *key = p->kvs[i].key.data;

		c->ordered = c->ordered && strcmp(c->last, key) < 0;
		snprintf(c->last, sizeof(c->last), "%s", key);
		c->keys++;
	}
	if (p->more)
		return;
	say("count: %zu keys in %zu pages%s%s", c->keys, c->pages, c->same ? "" : " torn",
	    c->ordered ? "" : " in disorder");
	free(c);
}

static void count(const char *prefix, unsigned page)
{
	struct etcd_range r = {.key = bytes(prefix), .prefix = true, .page = page};
	struct counted *c = calloc(1, sizeof(*c));

	c->same = c->ordered = true;
	if (etcd_range(etcd, &r, on_counted, c, NULL) < 0)
		abort();
}

/* --- many keys --- */

static void on_filled(void *arg, int err, const struct etcd_answer *a, const char *error)
{
	(void)arg;
	(void)a;
	if (err)
		say("fill: %s: %s", strerrorname_np(-err), error);
	filled += 100;
	if (filled == to_fill)
		say("fill: done");
}

static void fill(const char *prefix, size_t n)
{
	static char keys[100][64];
	struct etcd_op ops[100];
	struct etcd_txn t = {.success = ops, .n_success = 100, .twice = true};

	to_fill = n;
	filled = 0;
	for (size_t i = 0; i < n; i++) {
		snprintf(keys[i % 100], sizeof(keys[0]), "%.40s%06zu", prefix, i);
		ops[i % 100] = (struct etcd_op){.kind = ETCD_PUT,
						.key = bytes(keys[i % 100]),
						.value = bytes("some value")};
		if (i % 100 == 99 && etcd_txn(etcd, &t, on_filled, NULL, NULL) < 0)
			abort();
	}
}

/* --- leases and watches --- */

static void on_lease(void *arg, enum etcd_lease_event event, int64_t id, const char *why)
{
	static const char *const name[] = {"held", "late", "lost"};

	(void)arg;
	say("lease: %s %" PRId64 "%s%s", name[event], id, why ? " " : "", why ? why : "");
}

static void on_news(void *arg, const struct etcd_news *news)
{
	(void)arg;
	switch (news->kind) {
	case ETCD_NEWS_EVENTS:
		seen += news->n;
		for (size_t i = 0; i < news->n; i++) {
			const struct etcd_event *e = &news->events[i];

			say("watch: %s %s=%s", e->deleted ? "del" : "put",
			    (const char *)e->kv.key.data, (const char *)e->kv.value.data);
		}
		break;
	case ETCD_NEWS_CURRENT:
		say("watch: current");
		break;
	case ETCD_NEWS_BROKEN:
		say("watch: broken: %s", news->why);
		break;
	case ETCD_NEWS_GAP:
		say("watch: gap to %" PRId64 ": %s", news->revision, news->why);
		etcd_watch_free(watch);
		watch = NULL;
		break;
	}
}

static void say_state(void)
{
	struct etcd_state s = etcd_state(etcd);

	say("state: %s %s member %" PRIx64 " revision %" PRId64 " waiting %zu error %s", s.endpoint,
	    s.connected ? "connected" : "not-connected", s.member, s.revision, s.waiting,
	    s.error[0] ? s.error : "-");
}

static void on_change(void *arg)
{
	(void)arg;
	say("client: %s", etcd_state(etcd).connected ? "connected" : "not connected");
}

/* --- lines --- */

static void txn(const char *key, const char *value, bool create, int64_t under, char *what)
{
	struct etcd_compare absent = {.key = bytes(key), .target = ETCD_VERSION};
	struct etcd_op put = {
		.kind = ETCD_PUT, .key = bytes(key), .value = bytes(value), .lease = under};
	struct etcd_txn t = {.compares = &absent,
			     .n_compares = create,
			     .success = &put,
			     .n_success = 1,
			     .twice = !create};
	int err = etcd_txn(etcd, &t, on_done, what, NULL);

	if (err)
		on_done(what, err, NULL, "refused");
}

static void big(const char *key, size_t len, char *what)
{
	char *value = malloc(len);
	int err;

	memset(value, 'x', len);
	err = etcd_put(etcd, bytes(key), (struct etcd_bytes){value, len}, 0, on_done, what, NULL);
	if (err)
		on_done(what, err, NULL, "refused");
	free(value);
}

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* True: quit. */
static bool obey(char *line)
{
	char word[16] = "", a[4096] = "", b[4096] = "", *what = strdup(line);
	int n = sscanf(line, "%15s %4095s %4095s", word, a, b);
	struct etcd_range r = {.key = bytes(a), .prefix = true, .revision = atoll(b)};

	if (is(word, "put"))
		txn(a, b, false, 0, take_ptr(&what));
	else if (is(word, "under"))
		txn(a, b, false, etcd_lease_id(lease), take_ptr(&what));
	else if (is(word, "create"))
		txn(a, b, true, 0, take_ptr(&what));
	else if (is(word, "del"))
		etcd_delete(etcd, bytes(a), false, on_done, take_ptr(&what), NULL);
	else if (is(word, "big"))
		big(a, strtoul(b, NULL, 10), take_ptr(&what));
	else if (is(word, "get"))
		etcd_range(etcd, &r, on_page, NULL, NULL);
	else if (is(word, "count"))
		count(a, (unsigned)atoi(b));
	else if (is(word, "fill"))
		fill(a, strtoul(b, NULL, 10));
	else if (is(word, "lease"))
		etcd_lease_open(etcd, (unsigned)atoi(a), atoll(b), on_lease, NULL, &lease);
	else if (is(word, "revoke"))
		etcd_lease_revoke(lease, on_done, take_ptr(&what));
	else if (is(word, "drop"))
		etcd_lease_free(lease);
	else if (is(word, "watch"))
		etcd_watch_open(etcd, bytes(a), true, atoll(b), on_news, NULL, &watch);
	else if (is(word, "unwatch"))
		etcd_watch_free(watch);
	else if (is(word, "state"))
		say_state();
	else
		n = is(word, "quit") ? -2 : 0;
	free(what);
	if (!n)
		say("what is '%s'?", line);
	return n == -2;
}

/* True: quit. */
static bool on_stdin(void)
{
	static char text[65536];
	static size_t len;
	ssize_t n = read(0, text + len, sizeof(text) - 1 - len);
	char *at = text, *end;

	if (n <= 0)
		return true;
	len += (size_t)n;
	text[len] = 0;
	for (; (end = strchr(at, '\n')); at = end + 1) {
		*end = 0;
		if (obey(at))
			return true;
	}
	len -= (size_t)(at - text);
	memmove(text, at, len);
	return false;
}

static void run(int epoll)
{
	struct loop_item input = {.kind = LOOP_SIGNAL, .fd = 0}, *item;
	uint32_t events;

	if (loop_add(epoll, &input, EPOLLIN) < 0)
		abort();
	for (;;) {
		if (loop_wait(epoll, &item, &events) < 0)
			abort();
		if (item->kind == LOOP_ETCD)
			etcd_on_socket(item, events);
		else if (item->kind == LOOP_ETCD_TIMER)
			etcd_on_timer(item);
		else if (on_stdin())
			return;
	}
}

int main(int argc, char **argv)
{
	struct etcd_options o = {0};
	struct error e = {0};
	int epoll = loop_open(), option;

	while ((option = getopt(argc, argv, "c:C:K:t:m:p:")) != -1) {
		if (option == 'c')
			o.ca = optarg;
		else if (option == 'C')
			o.cert = optarg;
		else if (option == 'K')
			o.key = optarg;
		else if (option == 't')
			o.request_ms = (unsigned)atoi(optarg);
		else if (option == 'm')
			o.max_answer = strtoul(optarg, NULL, 10);
		else if (option == 'p')
			o.probe_ms = (unsigned)atoi(optarg);
	}
	o.endpoints = (const char *const *)argv + optind;
	o.n_endpoints = (size_t)(argc - optind);
	if (etcd_open(epoll, &o, &etcd, &e) < 0) {
		say("open: %s", e.text);
		return 1;
	}
	etcd_on_change(etcd, on_change, NULL);
	run(epoll);
	etcd_close(etcd);
	return 0;
}
