// SPDX-License-Identifier: GPL-2.0-or-later
/* What a full read did not have: gone at once where it is certain that the store is the one that it
 * was, for long otherwise; and what is looked through while news come takes no newer thing for
 * gone, and none that is gone for new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster/priv.h"
#include "registry/state.h"

#define ID	   "11111111111111111111111111111111"
#define MINE	   7 /* leases */
#define DEAD_AFTER 20000

struct node {
	struct agent a;
	struct cluster c;
};

/* It has known all until that many milliseconds ago, and is read anew now. */
static void node_init(struct node *n)
{
	*n = (struct node){0};
	n->a.cluster = &n->c;
	n->c.a = &n->a;
	n->c.conf.name = (char *)(uintptr_t) "east";
	n->c.conf.dead_after_ms = DEAD_AFTER;
	assert_int_equal(prefix_parse("10.80.0.0/16", &n->c.conf.pool), 0);
	snprintf(n->c.node, sizeof(n->c.node), "n1");
	n->c.lease_id = MINE;
	n->c.revision = 100;
	n->c.was_read = true;
	n->c.current = true;
}

static void node_free(struct node *n)
{
	peers_free(&n->c.peers);
	free(n->c.peers.deleted);
}

static uint64_t ago(uint64_t ms)
{
	uint64_t now = time_mono_ns();

	return now > ms * NS_PER_MS ? now - ms * NS_PER_MS : 1;
}

static void cut_off(struct node *n, uint64_t ms)
{
	n->c.current = false;
	n->c.known_ns = ago(ms);
}

typedef void put_fn(struct cluster *c, const struct etcd_kv *kv);

static void put_node(struct node *n, put_fn *put, const char *name, int64_t revision, int64_t lease)
{
	struct record_node rec = {.id = ID, .version = "1"};
	char key[RECORD_KEY_MAX];
	autofree char *value = NULL;

	snprintf(rec.name, sizeof(rec.name), "%s", name);
	value = record_node_text(&rec);
	put(&n->c, &(struct etcd_kv){.key = bytes_of(record_node_key("east", name, key)),
				     .value = bytes_of(value),
				     .mod_revision = revision,
				     .lease = lease});
}

static void put_app(struct node *n, put_fn *put, const char *node, uint32_t id, int64_t revision,
		    int64_t lease)
{
	struct record_app rec = {.id = id, .labels = (char *)(uintptr_t) ""};
	char key[RECORD_KEY_MAX];
	autofree char *value = NULL;

	snprintf(rec.node, sizeof(rec.node), "%s", node);
	snprintf(rec.name, sizeof(rec.name), "app%u", id);
	value = record_app_text(&rec);
	put(&n->c, &(struct etcd_kv){.key = bytes_of(record_app_key("east", node, id, key)),
				     .value = bytes_of(value),
				     .mod_revision = revision,
				     .lease = lease});
}

static void delete_app(struct node *n, const char *node, uint32_t id, int64_t revision)
{
	char key[RECORD_KEY_MAX];

	peers_delete(&n->c,
		     &(struct etcd_kv){.key = bytes_of(record_app_key("east", node, id, key)),
				       .mod_revision = revision});
	peers_settle(&n->c);
}

/* This node, two others, and two apps of one of them. */
static void known(struct node *n)
{
	n->c.peers.read = 1;
	put_node(n, peers_put, "n1", 10, MINE);
	put_node(n, peers_put, "n2", 11, 8);
	put_node(n, peers_put, "n3", 12, 9);
	put_app(n, peers_put, "n2", 1, 13, 8);
	put_app(n, peers_put, "n2", 2, 14, 8);
	assert_int_equal(n->c.peers.n_apps, 2);
	n->c.peers.read = 2; /* and now they are read again */
	n->c.peers.told_gone = false;
}

static bool is_up(const struct node *n, const char *name)
{
	const struct peer_node *p = peers_node(&n->c.peers, name);

	return p && peers_up(&n->c, p);
}

/* Its node is as it was, so it has ended. */
static void an_app_that_has_ended(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	known(&n);
	cut_off(&n, 1000);
	n.c.lease_id = 70; /* (this node's own lease has ended meanwhile) */
	put_node(&n, peers_put, "n2", 11, 8);
	put_app(&n, peers_put, "n2", 1, 13, 8);
	missing_read(&n.c, 120);
	assert_int_equal(n.c.peers.n_apps, 1);
	assert_int_equal(n.c.revision, 120);
	assert_int_equal(n.c.reads, 1);
	node_free(&n);
}

/* Its node has another lease: it may be about to write the app again. */
static void a_node_that_came_anew(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	known(&n);
	cut_off(&n, 100000);
	put_node(&n, peers_put, "n1", 10, MINE);
	put_node(&n, peers_put, "n2", 115, 80);
	missing_read(&n.c, 120);
	assert_int_equal(n.c.peers.n_apps, 2);
	assert_true(n.c.forget_at_ns != 0);
	n.c.current = true;
	missing_forget(&n.c, time_mono_ns());
	assert_int_equal(n.c.peers.n_apps, 2);
	missing_forget(&n.c, time_mono_ns() + (CLUSTER_FORGET_MS + 1000) * NS_PER_MS);
	assert_int_equal(n.c.peers.n_apps, 0);
	node_free(&n);
}

/* It is away since all was known last at the earliest: as long as dead-after it may come back. */
static void a_node_that_is_gone(void **state)
{
	struct node n;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		node_init(&n);
		known(&n);
		cut_off(&n, i ? DEAD_AFTER + 1000 : 1000);
		put_node(&n, peers_put, "n1", 10, MINE);
		put_node(&n, peers_put, "n3", 12, 9);
		missing_read(&n.c, 120);
		assert_int_equal(n.c.peers.n_apps, i ? 0 : 2);
		assert_int_equal(is_up(&n, "n2"), !i);
		assert_true(is_up(&n, "n3"));
		n.c.current = true;
		missing_forget(&n.c, time_mono_ns() + (DEAD_AFTER + 1000) * NS_PER_MS);
		assert_int_equal(n.c.peers.n_apps, 0);
		node_free(&n);
	}
}

/* Nothing is there but this node, which has written itself; or the store is an older one; or not
 * even half of the nodes are there: nobody is taken for gone. */
static void an_empty_etcd(void **state)
{
	static const struct {
		int64_t lease, revision;
		uint64_t lease_ms; /* it was given so long ago; 0: by an agent before this one */
		bool other;
	} cases[] = {
		{70, 20, 100, true},  /* emptied */
		{70, 500, 100, true}, /* and much written since */
		{MINE, 90, 0, true},  /* put back */
		{MINE, 500, 0, false},
	};
	struct node n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		node_init(&n);
		known(&n);
		cut_off(&n, 100000);
		n.c.lease_id = cases[i].lease;
		n.c.lease_since_ns = cases[i].lease_ms ? ago(cases[i].lease_ms) : 0;
		put_node(&n, peers_put, "n1", 5, cases[i].lease);
		if (cases[i].other)
			put_node(&n, peers_put, "n3", 6, cases[i].lease == MINE ? 9 : 90);
		missing_read(&n.c, cases[i].revision);
		assert_int_equal(n.c.peers.n_apps, 2);
		assert_true(is_up(&n, "n2"));
		assert_true(is_up(&n, "n3"));
		n.c.current = true;
		missing_forget(&n.c, time_mono_ns() + (CLUSTER_FORGET_MS - 1000) * NS_PER_MS);
		assert_int_equal(n.c.peers.n_apps, 2);
		assert_true(is_up(&n, "n2"));
		/* nor when it is looked through again, as after the end of a lease */
		n.c.peers.read++;
		put_node(&n, peers_seen, "n1", 5, cases[i].lease);
		if (cases[i].other)
			put_node(&n, peers_seen, "n3", 6, cases[i].lease == MINE ? 9 : 90);
		missing_read(&n.c, cases[i].revision + 1);
		assert_int_equal(n.c.peers.n_apps, 2);
		assert_true(peers_node(&n.c.peers, "n2")->up);
		node_free(&n);
	}
}

/* A store that was put back has apps that it had then, and their nodes as they are. */
static void an_older_store(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	known(&n);
	cut_off(&n, 1000);
	put_node(&n, peers_put, "n1", 10, MINE);
	put_node(&n, peers_put, "n2", 11, 8);
	put_node(&n, peers_put, "n3", 12, 9);
	missing_read(&n.c, 12);
	assert_int_equal(n.c.peers.n_apps, 2);
	n.c.current = true;
	n.c.peers.read++;
	put_node(&n, peers_seen, "n1", 10, MINE);
	put_node(&n, peers_seen, "n2", 11, 8);
	missing_read(&n.c, 13);
	assert_int_equal(n.c.peers.n_apps, 2);
	node_free(&n);
}

/* A deletion was not told: what is looked through shows it. */
static void a_lost_deletion(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	known(&n);
	put_node(&n, peers_seen, "n1", 10, MINE);
	put_node(&n, peers_seen, "n2", 11, 8);
	put_app(&n, peers_seen, "n2", 2, 14, 8);
	missing_read(&n.c, 120);
	assert_int_equal(n.c.peers.n_apps, 1);
	assert_true(is_up(&n, "n3")); /* until dead-after, from now on */
	missing_forget(&n.c, time_mono_ns());
	assert_int_equal(peers_node(&n.c.peers, "n3")->up, false);
	node_free(&n);
}

/* What the watch told while it was read is newer. */
static void news_meanwhile(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	known(&n);
	put_node(&n, peers_seen, "n1", 10, MINE);
	put_app(&n, peers_put, "n2", 3, 121, 8);
	delete_app(&n, "n2", 1, 122);
	assert_int_equal(n.c.peers.n_apps, 2);
	put_app(&n, peers_seen, "n2", 1, 13, 8);
	put_app(&n, peers_seen, "n2", 2, 14, 8);
	put_node(&n, peers_seen, "n2", 11, 8);
	put_node(&n, peers_seen, "n3", 12, 9);
	missing_read(&n.c, 120);
	assert_int_equal(n.c.peers.n_apps, 2); /* 2 and 3 */
	/* what was not told is made up for, where nothing says that it has ended since */
	n.c.peers.read++;
	put_app(&n, peers_seen, "n2", 4, 100, 8);
	assert_int_equal(n.c.peers.n_apps, 2);
	n.c.peers.told_gone = false;
	put_app(&n, peers_seen, "n2", 4, 100, 8);
	assert_int_equal(n.c.peers.n_apps, 3);
	node_free(&n);
}

/* A read that was not completed says nothing of what it did not come to. */
static void half_a_read(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	known(&n);
	put_node(&n, peers_seen, "n1", 10, MINE);
	missing_forget(&n.c, time_mono_ns() + 10 * CLUSTER_FORGET_MS * NS_PER_MS);
	assert_int_equal(n.c.peers.n_apps, 2);
	assert_true(is_up(&n, "n2"));
	node_free(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_app_that_has_ended), cmocka_unit_test(a_node_that_came_anew),
		cmocka_unit_test(a_node_that_is_gone),	 cmocka_unit_test(an_empty_etcd),
		cmocka_unit_test(an_older_store),	 cmocka_unit_test(a_lost_deletion),
		cmocka_unit_test(news_meanwhile),	 cmocka_unit_test(half_a_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
