// SPDX-License-Identifier: GPL-2.0-or-later
/* What etcd is sent and answers, and a client whose endpoint is a socket of the test's: watches cut
 * at any byte, a transaction that is never sent twice, handles that are freed while they are
 * called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "etcd/answer.h"
#include "etcd/body.h"

#define HEAD8                                                                                   \
	"\"header\":{\"cluster_id\":\"18446744073709551615\",\"member_id\":\"7\",\"revision\":" \
	"\"8\"}"

static struct etcd_bytes bytes(const char *s)
{
	return (struct etcd_bytes){s, strlen(s)};
}

/* --- bodies --- */

static void assert_body(char *body, size_t len, const char *expected)
{
	assert_non_null(body);
	assert_int_equal(strlen(body), len);
	assert_string_equal(body, expected);
	free(body);
}

static void a_prefix_ends_before_the_next(void **state)
{
	struct etcd_range r = {.key = {"a\xff\xff", 3}, .prefix = true};
	size_t len;
	char *body;

	(void)state;
	body = body_range(&r, NULL, 0, 5, &len);
	assert_body(body, len, "{\"key\":\"Yf//\",\"range_end\":\"Yg==\",\"limit\":\"5\"}");
	r.key = (struct etcd_bytes){"\xff", 1}; /* nothing is behind it: to the end */
	body = body_range(&r, NULL, 0, 5, &len);
	assert_body(body, len, "{\"key\":\"/w==\",\"range_end\":\"AA==\",\"limit\":\"5\"}");
	r.key = bytes(""); /* all keys */
	body = body_range(&r, NULL, INT64_MAX, 5, &len);
	assert_body(body, len,
		    "{\"key\":\"AA==\",\"range_end\":\"AA==\",\"revision\":"
		    "\"9223372036854775807\",\"limit\":\"5\"}");
}

static void a_transaction_is_written(void **state)
{
	struct etcd_compare c[] = {
		{.key = bytes("a"), .target = ETCD_MOD_REVISION, .number = 7},
		{.key = bytes("b"),
		 .target = ETCD_VALUE,
		 .relation = ETCD_NOT_EQUAL,
		 .value = {"\0", 1}},
	};
	struct etcd_op yes = {.kind = ETCD_PUT, .key = bytes("a"), .value = bytes(""), .lease = 5};
	struct etcd_op no[] = {{.kind = ETCD_GET, .key = bytes("a"), .prefix = true},
			       {.kind = ETCD_DELETE, .key = bytes("a")}};
	struct etcd_txn t = {c, 2, &yes, 1, no, 2, false};
	size_t len;
	char *body = body_txn(&t, &len);

	(void)state;
	assert_body(body, len,
		    "{\"compare\":[{\"key\":\"YQ==\",\"target\":\"MOD\",\"result\":\"EQUAL\","
		    "\"mod_revision\":\"7\"},{\"key\":\"Yg==\",\"target\":\"VALUE\",\"result\":"
		    "\"NOT_EQUAL\",\"value\":\"AA==\"}],\"success\":[{\"request_put\":{\"key\":"
		    "\"YQ==\",\"value\":\"\",\"lease\":\"5\"}}],\"failure\":[{\"request_range\":{"
		    "\"key\":\"YQ==\",\"range_end\":\"Yg==\"}},{\"request_delete_range\":{\"key\":"
		    "\"YQ==\"}}]}");
}

/* --- answers --- */

static void a_range_is_read(void **state)
{
	static const char text[] =
		"{" HEAD8 ",\"kvs\":[{\"key\":\"AP8=\",\"create_revision\":\"2\",\"mod_revision\":"
		"\"9223372036854775806\",\"version\":\"3\",\"value\":\"Yw==\",\"lease\":\"77\"},"
		"{\"key\":\"Yg==\",\"mod_revision\":\"4\"}],\"more\":true,\"count\":\"9\"}";
	struct answer a;

	(void)state;
	assert_int_equal(answer_range(text, strlen(text), &a), 0);
	assert_true(a.head.cluster == UINT64_MAX && a.head.revision == 8 && a.more);
	assert_int_equal(a.n_kvs, 2);
	assert_int_equal(a.kvs[0].key.len, 2);
	assert_memory_equal(a.kvs[0].key.data, "\0\xff", 3);
	assert_true(a.kvs[0].mod_revision == INT64_MAX - 1 && a.kvs[0].lease == 77);
	assert_int_equal(a.kvs[1].value.len, 0);
	assert_non_null(a.kvs[1].value.data);
	answer_free(&a);
}

static void what_is_wrong_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"{}",
		"[]",
		"{" HEAD8,
		"{" HEAD8 "} x",
		"{\"header\":7}",
		"{" HEAD8 ",\"kvs\":7}",
		"{" HEAD8 ",\"kvs\":[7]}",
		"{" HEAD8 ",\"kvs\":[{\"key\":\"YQ=\",\"mod_revision\":\"1\"}]}",
		"{" HEAD8 ",\"kvs\":[{\"key\":\"!!!!\",\"mod_revision\":\"1\"}]}",
		"{" HEAD8 ",\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":\"-1\"}]}",
		"{" HEAD8 ",\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":\"9223372036854775808\"}]}",
		"{" HEAD8 ",\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":\"1x\"}]}",
		"{" HEAD8 ",\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":\" 1\"}]}",
		"{" HEAD8 ",\"kvs\":[{\"key\":\"\",\"mod_revision\":\"1\"}]}",
		"{" HEAD8 ",\"kvs\":[],\"more\":true}", /* would be asked for ever */
		/* nothing could come after these */
		"{" HEAD8 ",\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":\"9223372036854775807\"}]}",
		"{\"header\":{\"cluster_id\":\"1\",\"revision\":\"9223372036854775807\"}}",
	};
	struct answer a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(answer_range(wrong[i], strlen(wrong[i]), &a), -EPROTO);
		answer_free(&a);
	}
}

static void errors_are_read_in_both_forms(void **state)
{
	static const char plain[] =
		"{\"error\":\"x\",\"message\":\"no\\u001b[31m leader\",\"code\":14}";
	static const char stream[] = "{\"error\":{\"grpc_code\":14,\"message\":\"no leader\"}}";
	struct answer a;

	(void)state;
	answer_error(plain, strlen(plain), &a);
	assert_int_equal(a.code, 14);
	assert_string_equal(a.message, "no?[31m leader");
	answer_free(&a);
	assert_int_equal(answer_watch(stream, strlen(stream), &a), 0);
	assert_int_equal(a.code, 14);
	assert_string_equal(a.message, "no leader");
	answer_free(&a);
}

/* --- a client and an endpoint --- */

struct connection {
	int fd; /* -1: none */
	size_t len;
	char text[8192];
};

struct peer {
	int epoll, listener;
	struct etcd *etcd;
	char url[64];
	struct connection connections[16];
};

static void peer_open(struct peer *p)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *endpoint = p->url;
	struct etcd_options o = {.endpoints = &endpoint, .n_endpoints = 1, .probe_ms = 600000};
	socklen_t len = sizeof(a);
	struct error e;

	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < ARRAY_SIZE(p->connections); i++)
		p->connections[i].fd = -1;
	p->epoll = loop_open();
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(p->listener, 8), 0);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &len), 0);
	snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%u", ntohs(a.sin_port));
	assert_int_equal(etcd_open(p->epoll, &o, &p->etcd, &e), 0);
}

static void hang_up(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->len = 0;
}

static void peer_close(struct peer *p)
{
	etcd_close(p->etcd);
	for (size_t i = 0; i < ARRAY_SIZE(p->connections); i++)
		hang_up(&p->connections[i]);
	close(p->listener);
	close(p->epoll);
}

/* What the client has to do within 5 ms. */
static void turn(struct peer *p)
{
	struct epoll_event ev;
	struct loop_item *item;

	if (epoll_wait(p->epoll, &ev, 1, 5) != 1)
		return;
	item = ev.data.ptr;
	if (item->kind == LOOP_ETCD)
		etcd_on_socket(item, ev.events);
	else
		etcd_on_timer(item);
}

static void answer(struct connection *c, const char *body)
{
	char text[1024];
	int len = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
			   strlen(body), body);

	c->len = 0;
	assert_int_equal(send(c->fd, text, (size_t)len, MSG_NOSIGNAL), len);
}

static bool is_whole(struct connection *c)
{
	const char *length, *end;

	c->text[c->len] = 0;
	length = strstr(c->text, "Content-Length: ");
	end = strstr(c->text, "\r\n\r\n");
	return length && end && strlen(end + 4) >= strtoul(length + 16, NULL, 10);
}

static void take(struct peer *p)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	for (size_t i = 0; i < ARRAY_SIZE(p->connections); i++) {
		struct connection *c = &p->connections[i];
		ssize_t n;

		if (c->fd < 0 && fd >= 0) {
			c->fd = fd;
			fd = -1;
		}
		if (c->fd < 0)
			continue;
		n = recv(c->fd, c->text + c->len, sizeof(c->text) - 1 - c->len, 0);
		if (n == 0)
			hang_up(c);
		c->len += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(fd, -1);
}

/* The next request with these words in it, within so many turns; others get an answer that says
 * little. NULL: there is none. */
static struct connection *request_within(struct peer *p, const char *words, unsigned turns)
{
	while (turns--) {
		turn(p);
		take(p);
		for (size_t i = 0; i < ARRAY_SIZE(p->connections); i++) {
			struct connection *c = &p->connections[i];

			if (c->fd < 0 || !is_whole(c))
				continue;
			if (strstr(c->text, words))
				return c;
			answer(c, "{" HEAD8 "}");
		}
	}
	return NULL;
}

static struct connection *request(struct peer *p, const char *words)
{
	struct connection *c = request_within(p, words, 4000);

	assert_non_null(c);
	return c;
}

struct told {
	struct peer *p;
	struct etcd_watch *watch;
	char text[1024];
	bool frees, closes;
	int err, calls;
};

static void on_news(void *arg, const struct etcd_news *news)
{
	struct told *t = arg;
	char *at = t->text + strlen(t->text);
	size_t left = sizeof(t->text) - strlen(t->text);

	t->calls++;
	for (size_t i = 0; i < news->n; i++) {
		const struct etcd_event *e = &news->events[i];
		int n = snprintf(at, left, "%s%s@%d ", e->deleted ? "-" : "+",
				 (const char *)e->kv.key.data, (int)e->kv.mod_revision);

		at += n;
		left -= (size_t)n;
	}
	if (news->kind != ETCD_NEWS_EVENTS)
		snprintf(at, left, "%s ",
			 news->kind == ETCD_NEWS_CURRENT  ? "current"
			 : news->kind == ETCD_NEWS_BROKEN ? "broken"
							  : "gap");
	if (t->frees)
		etcd_watch_free(t->watch);
	if (t->closes)
		etcd_close(t->p->etcd);
}

static void wait_for_text(struct peer *p, struct told *t, const char *text)
{
	for (int i = 0; i < 4000 && !strstr(t->text, text); i++)
		request_within(p, "/v3/nothing", 1);
	assert_non_null(strstr(t->text, text));
}

#define CREATED "{\"result\":{" HEAD8 ",\"created\":true}}\n"
#define EVENTS                                                                                   \
	"{\"result\":{" HEAD8 ",\"events\":[{\"kv\":{\"key\":\"YQ==\",\"mod_revision\":\"5\"}}," \
	"{\"type\":\"DELETE\",\"kv\":{\"key\":\"Yg==\",\"mod_revision\":\"6\"}}]}}\n"

static void stream(struct connection *c, const char *text, size_t from, size_t len)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

	if (!from)
		assert_true(send(c->fd, head, strlen(head), MSG_NOSIGNAL) > 0);
	assert_int_equal(send(c->fd, text + from, len, MSG_NOSIGNAL), len);
}

static void a_watch_may_be_cut_at_any_byte(void **state)
{
	static const char text[] = CREATED EVENTS;
	struct peer p;

	(void)state;
	peer_open(&p);
	for (size_t cut = 1; cut < strlen(text); cut += 7) {
		struct told t = {0};
		struct connection *c;

		assert_int_equal(
			etcd_watch_open(p.etcd, bytes("a"), true, 3, on_news, &t, &t.watch), 0);
		c = request(&p, "\"start_revision\":\"3\"");
		c->len = 0;
		stream(c, text, 0, cut);
		for (int i = 0; i < 3; i++)
			request_within(&p, "/v3/nothing", 1);
		stream(c, text, cut, strlen(text) - cut);
		wait_for_text(&p, &t, "current +a@5 -b@6 ");
		/* it goes on behind what was told, not behind what its head says */
		hang_up(c);
		c = request(&p, "\"start_revision\":\"7\"");
		assert_non_null(strstr(t.text, "broken "));
		etcd_watch_free(t.watch);
		hang_up(c);
	}
	peer_close(&p);
}

static void a_watch_and_the_client_may_end_while_they_are_told(void **state)
{
	static const char text[] = CREATED EVENTS;

	(void)state;
	for (int closes = 0; closes < 2; closes++) {
		struct peer p;
		struct told t = {.p = &p, .frees = !closes, .closes = closes};
		struct connection *c;

		peer_open(&p);
		assert_int_equal(
			etcd_watch_open(p.etcd, bytes("a"), true, 3, on_news, &t, &t.watch), 0);
		c = request(&p, "/v3/watch");
		c->len = 0;
		stream(c, text, 0, strlen(text));
		wait_for_text(&p, &t, "current ");
		for (int i = 0; i < 20; i++)
			turn(&p);
		assert_int_equal(t.calls, 1);
		if (closes)
			p.etcd = NULL;
		peer_close(&p);
	}
}

static void on_done(void *arg, int err, const struct etcd_answer *a, const char *error)
{
	struct told *t = arg;

	assert_true(!err == !!a && !err == !error);
	t->err = err;
	t->calls++;
}

/* The connection is one that was used before: libcurl by itself would send it again on a new one.
 */
static void a_transaction_whose_answer_is_lost_is_not_sent_again(void **state)
{
	struct etcd_op put = {.kind = ETCD_PUT, .key = bytes("a"), .value = bytes("b")};
	struct etcd_txn txn = {.success = &put, .n_success = 1};
	struct told t = {0};
	struct peer p;

	(void)state;
	peer_open(&p);
	assert_int_equal(etcd_txn(p.etcd, &txn, on_done, &t, NULL), 0);
	answer(request(&p, "/v3/kv/txn"), "{" HEAD8 ",\"responses\":[{\"response_put\":{}}]}");
	while (t.calls < 1)
		turn(&p);
	assert_int_equal(t.err, 0);
	assert_int_equal(etcd_txn(p.etcd, &txn, on_done, &t, NULL), 0);
	hang_up(request(&p, "/v3/kv/txn"));
	assert_null(request_within(&p, "/v3/kv/txn", 200));
	assert_int_equal(t.calls, 2);
	assert_int_equal(t.err, -ETIMEDOUT);
	/* but one that may be done twice is */
	txn.twice = true;
	assert_int_equal(etcd_txn(p.etcd, &txn, on_done, &t, NULL), 0);
	hang_up(request(&p, "/v3/kv/txn"));
	answer(request(&p, "/v3/kv/txn"), "{" HEAD8 ",\"responses\":[{\"response_put\":{}}]}");
	while (t.calls < 3)
		turn(&p);
	assert_int_equal(t.err, 0);
	peer_close(&p);
}

static void what_is_cancelled_is_never_called(void **state)
{
	struct etcd_request *r;
	struct told t = {0};
	struct peer p;

	(void)state;
	peer_open(&p);
	assert_int_equal(etcd_put(p.etcd, bytes("a"), bytes("b"), 0, on_done, &t, &r), 0);
	request(&p, "/v3/kv/txn");
	etcd_cancel(r);
	assert_int_equal(etcd_put(p.etcd, bytes("a"), bytes("b"), 0, on_done, &t, NULL), 0);
	peer_close(&p);
	assert_int_equal(t.calls, 0);
}

static void who_waits_is_sent_when_others_are_cancelled(void **state)
{
	struct etcd_request *r[16];
	struct told t = {0};
	struct peer p;

	(void)state;
	peer_open(&p);
	request_within(&p, "/v3/nothing", 50); /* it is asked whether it is there */
	/* more than are sent at once */
	for (size_t i = 0; i < ARRAY_SIZE(r); i++)
		assert_int_equal(etcd_put(p.etcd, bytes("a"), bytes("b"), 0, on_done, &t, &r[i]),
				 0);
	assert_int_equal(etcd_put(p.etcd, bytes("zzz"), bytes("b"), 0, on_done, &t, NULL), 0);
	for (int i = 0; i < 50; i++) {
		turn(&p);
		take(&p);
	}
	for (size_t i = 0; i < ARRAY_SIZE(r); i++)
		etcd_cancel(r[i]);
	/* (at once: libcurl's time-outs would have it done, too) */
	assert_non_null(request_within(&p, "enp6", 40));
	peer_close(&p);
	assert_int_equal(t.calls, 0);
}

static void what_is_wrong_is_not_sent(void **state)
{
	static char much[1048577], long_key[ETCD_MAX_KEY + 1];
	struct etcd_bytes large = {much, sizeof(much)}, key = {long_key, sizeof(long_key)};
	struct etcd_lease *lease;
	struct peer p;

	(void)state;
	peer_open(&p);
	assert_int_equal(etcd_put(p.etcd, bytes("a"), large, 0, on_done, NULL, NULL), -EMSGSIZE);
	assert_int_equal(etcd_put(p.etcd, key, bytes("b"), 0, on_done, NULL, NULL), -EINVAL);
	assert_int_equal(etcd_put(p.etcd, bytes(""), bytes("b"), 0, on_done, NULL, NULL), -EINVAL);
	assert_int_equal(etcd_delete(p.etcd, bytes(""), false, on_done, NULL, NULL), -EINVAL);
	assert_int_equal(etcd_lease_open(p.etcd, 1, 0, NULL, NULL, &lease), -EINVAL);
	peer_close(&p);
}

static void endpoints_are_addresses_and_nothing_else(void **state)
{
	static const char *const wrong[] = {
		"",	      "127.0.0.1:2379",	 "ftp://a:1",	  "http://",
		"http://a/b", "http://user@a:1", "https://a:1?x", "https://a b"};
	int epoll = loop_open();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct etcd_options o = {.endpoints = &wrong[i], .n_endpoints = 1};
		struct error e = {0};
		struct etcd *etcd;

		assert_int_equal(etcd_open(epoll, &o, &etcd, &e), -EINVAL);
		assert_non_null(strstr(e.text, "no endpoint of etcd"));
	}
	close(epoll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_ends_before_the_next),
		cmocka_unit_test(a_transaction_is_written),
		cmocka_unit_test(a_range_is_read),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(errors_are_read_in_both_forms),
		cmocka_unit_test(a_watch_may_be_cut_at_any_byte),
		cmocka_unit_test(a_watch_and_the_client_may_end_while_they_are_told),
		cmocka_unit_test(a_transaction_whose_answer_is_lost_is_not_sent_again),
		cmocka_unit_test(what_is_cancelled_is_never_called),
		cmocka_unit_test(who_waits_is_sent_when_others_are_cancelled),
		cmocka_unit_test(what_is_wrong_is_not_sent),
		cmocka_unit_test(endpoints_are_addresses_and_nothing_else),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
