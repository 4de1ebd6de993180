// SPDX-License-Identifier: GPL-2.0-or-later
/* Which two sockets are one connection, whether it is worth splicing, and who decides about it. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "splice/decisions.h"
#include "splice/pairs.h"
#include "splice/policy.h"

static struct ax_endpoint endpoint(unsigned last, uint16_t port)
{
	struct ax_endpoint ep = {.port_be = htons(port), .proto = 6};

	ep.addr.b[10] = ep.addr.b[11] = 0xff;
	ep.addr.b[12] = 10;
	ep.addr.b[15] = (uint8_t)last;
	return ep;
}

/* Both ends of a connection of requests and answers between app `a` and app `b`, in namespaces of
 * their own. */
static void connection(struct ax_splice_conn v[2], unsigned a, uint16_t port, unsigned b)
{
	static uint64_t cookie = 100;
	uint32_t at = 0xfffff000u; /* numbers go round */

	v[0] = (struct ax_splice_conn){
		.cookie = ++cookie,
		.netns = 1000 + a,
		.local = endpoint(a, port),
		.remote = endpoint(b, 80),
		.app = a,
		.flags = AX_SPLICE_NONBLOCK,
		.snd_una = at,
		.write_seq = at + 5000,
		.rcv_nxt = 77,
		.copied_seq = 77,
		.data_segs_in = 100,
		.data_segs_out = 100,
		.bytes_sent = 5000,
		.bytes_received = 5000,
	};
	v[1] = v[0];
	v[1].cookie = ++cookie;
	v[1].netns = 1000 + b;
	v[1].local = v[0].remote;
	v[1].remote = v[0].local;
	v[1].app = b;
	v[1].snd_una = v[1].write_seq = 77;
	v[1].rcv_nxt = v[1].copied_seq = at + 5000;
}

static bool owns(void *arg, const struct ax_splice_conn *c)
{
	(void)arg;
	return c->netns == 1000 + c->app;
}

static void mirrored_ends_are_a_pair(void **state)
{
	struct ax_splice_conn v[40];
	struct pair pairs[40] = {0};
	size_t n;

	(void)state;
	for (unsigned i = 0; i < 20; i++)
		connection(&v[2 * i], 1 + i % 3, (uint16_t)(40000 + i), 7);
	n = pairs_find(v, 40, owns, NULL, pairs);
	assert_int_equal(n, 20);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pairs[i].reason, REASON_NONE);
		assert_int_equal(pairs[i].server->local.port_be, htons(80));
		assert_int_equal(pairs[i].client->cookie + 1, pairs[i].server->cookie);
		assert_int_equal(pair_fits(&pairs[i]), REASON_NONE);
		assert_ptr_equal(
			pairs_end(v, 40, &pairs[i].client->local, &pairs[i].client->remote),
			pairs[i].client);
	}
	assert_int_equal(pairs_find(v, 0, owns, NULL, pairs), 0);
}

static void who_asked_for_a_service_is_the_client(void **state)
{
	struct ax_splice_conn v[2];
	struct pair pairs[2] = {0};

	(void)state;
	connection(v, 1, 79, 7); /* from a port below the server's */
	v[0].asked = endpoint(200, 443);
	assert_int_equal(pairs_find(v, 2, owns, NULL, pairs), 1);
	assert_int_equal(pairs[0].client->local.port_be, htons(79));
}

static void an_end_alone_is_none(void **state)
{
	struct ax_splice_conn v[4];
	struct pair pairs[4] = {0};

	(void)state;
	connection(v, 1, 40000, 7);
	connection(v + 2, 2, 40001, 7);
	assert_int_equal(pairs_find(v + 1, 2, owns, NULL, pairs), 0);
}

/* Somebody who may set addresses in a namespace of his own has a socket with another's. */
static void a_foreign_address_is_no_end(void **state)
{
	struct ax_splice_conn v[3];
	struct pair pairs[3] = {0};

	(void)state;
	connection(v, 1, 40000, 7);
	v[2] = v[1];
	v[2].cookie = 50; /* comes first */
	v[2].netns = 1009;
	assert_int_equal(pairs_find(v, 3, owns, NULL, pairs), 1);
	assert_int_equal(pairs[0].reason, REASON_NONE);
	assert_int_not_equal(pairs[0].server->cookie, 50);

	connection(v, 1, 40000, 7);
	v[1].netns = 1009;
	assert_int_equal(pairs_find(v, 2, owns, NULL, pairs), 1);
	assert_int_equal(pair_fits(&pairs[0]), REASON_STRANGER);
}

static void sequence_numbers_must_fit(void **state)
{
	struct ax_splice_conn v[2];
	struct pair pairs[2] = {0};

	(void)state;
	connection(v, 1, 40000, 7);
	v[1].rcv_nxt += 1u << 20; /* moved between the two records */
	assert_int_equal(pairs_find(v, 2, owns, NULL, pairs), 1);
	connection(v, 1, 40000, 7);
	v[1].rcv_nxt += 1u << 30;
	assert_int_equal(pairs_find(v, 2, owns, NULL, pairs), 0);
	connection(v, 1, 40000, 7);
	v[0].rcv_nxt -= 1u << 30;
	assert_int_equal(pairs_find(v, 2, owns, NULL, pairs), 0);
}

static enum splice_reason fits(void (*change)(struct ax_splice_conn *client,
					      struct ax_splice_conn *server))
{
	struct ax_splice_conn v[2];
	struct pair p = {.client = &v[0], .server = &v[1]};

	connection(v, 1, 40000, 7);
	change(&v[0], &v[1]);
	return pair_fits(&p);
}

static void client_blocks(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)s;
	c->flags = 0;
}

static void server_blocks(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)c;
	s->flags = 0;
}

static void has_tls(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)c;
	s->flags |= AX_SPLICE_ULP;
}

static void is_repaired(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)s;
	c->flags |= AX_SPLICE_OTHER;
}

static void had_few(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)c;
	s->data_segs_out = PAIRS_SEGMENTS_MIN - 1;
}

static void had_just_enough(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	c->data_segs_in = c->data_segs_out = s->data_segs_in = s->data_segs_out =
		PAIRS_SEGMENTS_MIN;
}

/* A download whose reader says a word now and then. */
static void is_download(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)s;
	c->data_segs_out = 20;
	c->data_segs_in = 100000;
	c->bytes_received = 21ull * PAIRS_BYTES_MAX;
}

/* And one whose reader never says anything: it has had no answers, so it is new for ever. */
static void is_silent_download(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)s;
	c->data_segs_out = 1;
	c->bytes_received = 1ull << 40;
}

static void answers_are_large(struct ax_splice_conn *c, struct ax_splice_conn *s)
{
	(void)s;
	c->data_segs_out = 100;
	c->bytes_received = 99ull * PAIRS_BYTES_MAX;
}

static void traffic_decides(void **state)
{
	(void)state;
	assert_int_equal(fits(client_blocks), REASON_BLOCKING);
	assert_int_equal(fits(server_blocks), REASON_BLOCKING);
	assert_int_equal(fits(has_tls), REASON_CANNOT);
	assert_int_equal(fits(is_repaired), REASON_CANNOT);
	assert_int_equal(fits(had_few), REASON_FEW);
	assert_int_equal(fits(had_just_enough), REASON_NONE);
	assert_int_equal(fits(is_download), REASON_STREAM);
	assert_int_equal(fits(is_silent_download), REASON_STREAM);
	assert_int_equal(fits(answers_are_large), REASON_NONE);
}

/* --- who decides --- */

static void words_add_up(void **state)
{
	static const struct {
		enum splice_mode service, client, server, agent, is;
	} cases[] = {
		{SPLICE_AUTO, SPLICE_AUTO, SPLICE_AUTO, SPLICE_AUTO, SPLICE_AUTO},
		{SPLICE_AUTO, SPLICE_AUTO, SPLICE_AUTO, SPLICE_ON, SPLICE_ON},
		{SPLICE_AUTO, SPLICE_AUTO, SPLICE_AUTO, SPLICE_OFF, SPLICE_OFF},
		/* one app's word does not hold for the other */
		{SPLICE_AUTO, SPLICE_ON, SPLICE_AUTO, SPLICE_AUTO, SPLICE_AUTO},
		{SPLICE_AUTO, SPLICE_AUTO, SPLICE_FORCED, SPLICE_AUTO, SPLICE_AUTO},
		{SPLICE_AUTO, SPLICE_AUTO, SPLICE_FORCED, SPLICE_OFF, SPLICE_OFF},
		{SPLICE_AUTO, SPLICE_ON, SPLICE_ON, SPLICE_AUTO, SPLICE_ON},
		{SPLICE_AUTO, SPLICE_ON, SPLICE_ON, SPLICE_OFF, SPLICE_ON},
		{SPLICE_AUTO, SPLICE_ON, SPLICE_FORCED, SPLICE_AUTO, SPLICE_FORCED},
		{SPLICE_AUTO, SPLICE_FORCED, SPLICE_FORCED, SPLICE_OFF, SPLICE_FORCED},
		/* off of anyone but the agent */
		{SPLICE_AUTO, SPLICE_OFF, SPLICE_ON, SPLICE_FORCED, SPLICE_OFF},
		{SPLICE_ON, SPLICE_OFF, SPLICE_ON, SPLICE_FORCED, SPLICE_OFF},
		{SPLICE_FORCED, SPLICE_ON, SPLICE_OFF, SPLICE_FORCED, SPLICE_OFF},
		{SPLICE_OFF, SPLICE_ON, SPLICE_ON, SPLICE_FORCED, SPLICE_OFF},
		/* the service's */
		{SPLICE_ON, SPLICE_AUTO, SPLICE_AUTO, SPLICE_AUTO, SPLICE_ON},
		{SPLICE_ON, SPLICE_FORCED, SPLICE_FORCED, SPLICE_AUTO, SPLICE_ON},
		{SPLICE_FORCED, SPLICE_ON, SPLICE_AUTO, SPLICE_OFF, SPLICE_FORCED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct splice_words w = {.service = cases[i].service,
					       .client = cases[i].client,
					       .server = cases[i].server,
					       .agent = cases[i].agent};

		assert_int_equal(splice_mode_of(&w), cases[i].is);
	}
}

static void the_kernel_decides(void **state)
{
	struct gate_verdict good = {GATE_KNOWN, true, true, true};
	struct gate_verdict differs = {GATE_KNOWN, false, true, true};
	struct gate_verdict fionread = {GATE_KNOWN, false, true, false};
	struct gate_verdict unsafe = {GATE_KNOWN, false, false, true};
	struct gate_verdict waits = {.state = GATE_WAITS};
	struct gate_verdict broke = {.state = GATE_BROKE};
	struct gate_verdict old = {.state = GATE_OLD};

	(void)state;
	assert_int_equal(splice_allowed(SPLICE_AUTO, &good), REASON_NONE);
	assert_int_equal(splice_allowed(SPLICE_AUTO, &differs), REASON_NOT_ASKED);
	assert_int_equal(splice_allowed(SPLICE_ON, &differs), REASON_NONE);
	assert_int_equal(splice_allowed(SPLICE_ON, &fionread), REASON_FIONREAD);
	assert_int_equal(splice_allowed(SPLICE_FORCED, &fionread), REASON_NONE);
	assert_int_equal(splice_allowed(SPLICE_ON, &unsafe), REASON_UNSAFE);
	assert_int_equal(splice_allowed(SPLICE_FORCED, &unsafe), REASON_UNSAFE);
	assert_int_equal(splice_allowed(SPLICE_FORCED, &waits), REASON_GATE_WAITS);
	assert_int_equal(splice_allowed(SPLICE_FORCED, &broke), REASON_GATE_BROKE);
	assert_int_equal(splice_allowed(SPLICE_ON, &old), REASON_KERNEL);
	assert_int_equal(splice_allowed(SPLICE_OFF, &good), REASON_OFF);
}

static void every_reason_has_words(void **state)
{
	(void)state;
	for (int i = REASON_NONE + 1; i < REASONS; i++) {
		const char *text = splice_reason_text((enum splice_reason)i);

		assert_non_null(text);
		assert_in_range(strlen(text), 3, 32);
	}
	assert_null(splice_reason_text(REASONS));
}

/* --- what was decided --- */

static void decisions_are_kept_while_seen(void **state)
{
	struct decisions d = {0};

	(void)state;
	for (uint64_t i = 1; i <= 5000; i++) {
		struct decision *x = decisions_get(&d, i, i + 1);

		assert_int_equal(x->reason, REASON_YOUNG);
		assert_ptr_equal(decisions_get(&d, i, i + 1), x);
		x->look = i % 2 ? 1 : 2;
		x->reason = i % 2 ? REASON_BLOCKING : REASON_NONE;
	}
	assert_int_equal(d.n, 5000);
	assert_true(decisions_open(&d));
	decisions_sweep(&d, 2);
	assert_int_equal(d.n, 2500);
	assert_false(decisions_open(&d));
	assert_null(decisions_find(&d, 1, 2));
	assert_non_null(decisions_find(&d, 2, 3));
	assert_null(decisions_find(&d, 2, 4));
	decisions_free(&d);
	assert_int_equal(d.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mirrored_ends_are_a_pair),
		cmocka_unit_test(who_asked_for_a_service_is_the_client),
		cmocka_unit_test(an_end_alone_is_none),
		cmocka_unit_test(a_foreign_address_is_no_end),
		cmocka_unit_test(sequence_numbers_must_fit),
		cmocka_unit_test(traffic_decides),
		cmocka_unit_test(words_add_up),
		cmocka_unit_test(the_kernel_decides),
		cmocka_unit_test(every_reason_has_words),
		cmocka_unit_test(decisions_are_kept_while_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
