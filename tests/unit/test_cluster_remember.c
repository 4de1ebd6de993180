// SPDX-License-Identifier: GPL-2.0-or-later
/* What an agent knows of other nodes the next one knows, too, each with its age; but nothing of
 * what is none of its cluster, of what does not say the truth of itself, or of half a file. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <cmocka.h>

#include "cluster/priv.h"
#include "cluster/remembered.h"
#include "machine/instance.h"
#include "registry/state.h"

#define ME   "11111111111111111111111111111111"
#define THEM "22222222222222222222222222222222"

#define DEAD_AFTER_S 100

struct node {
	struct instance inst;
	struct agent a;
	struct cluster c;
};

static char dir[] = "/tmp/ax-remember.XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int remove_dir(void **state)
{
	(void)state;
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *file(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/cluster-others", dir);
	return path;
}

static void node_init(struct node *n)
{
	*n = (struct node){0};
	snprintf(n->inst.run_dir, sizeof(n->inst.run_dir), "%s", dir);
	n->a.inst = &n->inst;
	n->a.cluster = &n->c;
	n->c.a = &n->a;
	n->c.conf.name = (char *)(uintptr_t) "east";
	n->c.conf.dead_after_ms = DEAD_AFTER_S * 1000;
	assert_int_equal(prefix_parse("10.80.0.0/16", &n->c.conf.pool), 0);
	snprintf(n->c.node, sizeof(n->c.node), "n1");
	snprintf(n->c.id, sizeof(n->c.id), ME);
}

static void node_free(struct node *n)
{
	peers_free(&n->c.peers);
	publish_free(&n->c);
}

static void put(struct node *n, const char *key, const char *value, int64_t lease)
{
	assert_non_null(value);
	peers_put(&n->c, &(struct etcd_kv){.key = bytes_of(key),
					   .value = bytes_of(value),
					   .mod_revision = 5,
					   .lease = lease});
}

static void put_node(struct node *n, const char *name, int64_t lease)
{
	struct record_node rec = {.id = THEM, .version = "1"};
	char key[RECORD_KEY_MAX];
	autofree char *text = NULL;

	snprintf(rec.name, sizeof(rec.name), "%s", name);
	assert_int_equal(addr_parse("10.0.0.12", &rec.address), 0);
	text = record_node_text(&rec);
	put(n, record_node_key("east", name, key), text, lease);
}

static void put_block(struct node *n, const char *prefix, const char *node, const char *id)
{
	struct record_block rec = {0};
	char key[RECORD_KEY_MAX];
	autofree char *text = NULL;

	assert_int_equal(prefix_parse(prefix, &rec.prefix), 0);
	snprintf(rec.node, sizeof(rec.node), "%s", node);
	snprintf(rec.id, sizeof(rec.id), "%s", id);
	text = record_block_text(&rec);
	put(n, record_block_key("east", &rec.prefix, key), text, 0);
}

static void put_app(struct node *n, const char *node, uint32_t id, int64_t lease)
{
	struct other_port port = {.port = 80, .proto = IPPROTO_TCP, .via = 61000};
	struct record_app rec = {
		.id = id, .labels = (char *)(uintptr_t) "tier=front", .ports = &port, .n_ports = 1};
	char key[RECORD_KEY_MAX];
	autofree char *text = NULL;

	snprintf(rec.node, sizeof(rec.node), "%s", node);
	snprintf(rec.name, sizeof(rec.name), "app%u", id);
	text = record_app_text(&rec);
	put(n, record_app_key("east", node, id, key), text, lease);
}

static void delete (struct node *n, const char *key)
{
	peers_delete(&n->c, &(struct etcd_kv){.key = bytes_of(key), .mod_revision = 90});
}

/* Another node with an app, one that has just gone away with its app, and this one's own. */
static void know(struct node *n)
{
	n->c.was_read = n->c.current = true;
	n->c.revision = 17;
	put_node(n, "n1", 6);
	put_node(n, "n2", 7);
	put_node(n, "n3", 8);
	put_block(n, "10.80.1.0/24", "n1", ME);
	put_block(n, "10.80.2.0/24", "n2", THEM);
	put_app(n, "n1", 1, 6);
	put_app(n, "n2", 7, 7);
	put_app(n, "n3", 9, 8);
	delete (n, "/ax/east/apps/n3/9");
	delete (n, "/ax/east/nodes/n3");
	peers_settle(&n->c);
}

static void know_and_end(void)
{
	struct node n;

	node_init(&n);
	know(&n);
	remember_end(&n.c);
	node_free(&n);
}

static void rewrite(const char *text)
{
	assert_int_equal(file_replace(file(), 0600, text), 0);
}

static char *text_of_file(void)
{
	char *text = NULL;

	assert_int_equal(file_read(file(), 1 << 20, &text), 0);
	return text;
}

static void the_next_agent(void **state)
{
	const struct timespec then[] = {{.tv_sec = time(NULL) - 50}, {.tv_sec = time(NULL) - 50}};
	const struct peer_node *n2, *n3;
	struct stat st;
	struct node n;

	(void)state;
	know_and_end();
	assert_int_equal(stat(file(), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(utimensat(AT_FDCWD, file(), then, 0), 0);
	node_init(&n);
	remember_read(&n.c);
	assert_true(n.c.by_memory);
	assert_int_equal(n.c.revision, 17);
	assert_int_equal(n.c.peers.n_nodes, 2); /* nothing of its own */
	assert_int_equal(n.c.peers.n_apps, 2);
	assert_int_equal(n.c.peers.n_blocks, 1);
	assert_int_equal(n.c.peers.refused, 0);
	n2 = peers_node(&n.c.peers, "n2");
	n3 = peers_node(&n.c.peers, "n3");
	assert_true(n2 && n2->up && n2->at == then[0].tv_sec && n2->lease == 7);
	assert_int_equal(n2->n_blocks, 1);
	assert_int_equal(n2->n_apps, 1);
	/* for that one dead-after goes on */
	assert_true(n3 && !n3->up && n3->seen && peers_up(&n.c, n3));
	assert_in_range(cluster_unix_of(n.c.known_ns), then[0].tv_sec - 2, then[0].tv_sec + 2);
	/* etcd knows it, too: then nothing is by memory any more */
	n.c.peers.read++;
	put_node(&n, "n2", 7);
	put_app(&n, "n2", 7, 7);
	assert_int_equal(n2->at, 0);
	missing_read(&n.c, 20);
	assert_false(n.c.by_memory);
	assert_int_equal(n2->n_apps, 1);
	node_free(&n);
}

/* What it knew by memory alone is as old as it was, also for the next but one. */
static void ages(void **state)
{
	struct node n;

	(void)state;
	rewrite("{\"v\":1,\"cluster\":\"east\",\"id\":\"" ME "\",\"revision\":3}\n"
		"1000 0 7 /ax/east/nodes/n2 {\"v\":1,\"name\":\"n2\",\"id\":\"" THEM
		"\",\"since\":1,\"version\":\"1\"}\n"
		"0 0 7 /ax/east/apps/n2/7 {\"v\":1,\"node\":\"n2\",\"name\":\"a\",\"id\":7,"
		"\"since\":1,\"labels\":\"\",\"ports\":[]}\n");
	for (unsigned i = 0; i < 2; i++) {
		node_init(&n);
		remember_read(&n.c);
		assert_int_equal(peers_node(&n.c.peers, "n2")->at, 1000);
		assert_int_equal(n.c.peers.n_apps, 1);
		n.c.was_read = true;
		remember(&n.c);
		remember_end(&n.c);
		node_free(&n);
	}
}

/* Who was away for longer than dead-after is so still. */
static void long_away(void **state)
{
	struct node n;
	autofree char *text = NULL;

	(void)state;
	assert_true(asprintf(&text,
			     "{\"v\":1,\"cluster\":\"east\",\"id\":\"" ME "\",\"revision\":3}\n"
			     "0 %lld 7 /ax/east/nodes/n2 {\"v\":1,\"name\":\"n2\",\"id\":\"" THEM
			     "\",\"since\":1,\"version\":\"1\"}\n",
			     (long long)time(NULL) - DEAD_AFTER_S - 10) > 0);
	rewrite(text);
	node_init(&n);
	remember_read(&n.c);
	assert_false(peers_up(&n.c, peers_node(&n.c.peers, "n2")));
	node_free(&n);
}

static void what_is_none(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"{}\n",
		"1 0 7 /ax/east/nodes/n2 {}\n",
		/* another's, of another cluster, and of another version */
		"{\"v\":1,\"cluster\":\"east\",\"id\":\"" THEM "\",\"revision\":3}\n",
		"{\"v\":1,\"cluster\":\"west\",\"id\":\"" ME "\",\"revision\":3}\n",
		"{\"v\":2,\"cluster\":\"east\",\"id\":\"" ME "\",\"revision\":3}\n",
		"{\"v\":1,\"cluster\":\"east\",\"id\":\"" ME "\",\"revision\":-3}\n",
	};
	static const char node[] = "0 0 7 /ax/east/nodes/n2 {\"v\":1,\"name\":\"n2\",\"id\":\"" THEM
				   "\",\"since\":1,\"version\":\"1\"}\n";
	struct node n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		autofree char *text = NULL;

		assert_true(asprintf(&text, "%s%s", bad[i], node) > 0);
		rewrite(text);
		node_init(&n);
		remember_read(&n.c);
		assert_false(n.c.by_memory);
		assert_int_equal(n.c.peers.n_nodes, 0);
		node_free(&n);
	}
}

static void lines_that_lie(void **state)
{
	static const char head[] =
		"{\"v\":1,\"cluster\":\"east\",\"id\":\"" ME "\",\"revision\":3}\n";
	static const char *const bad[] = {
		"0 0 7 /ax/east/nodes/n3 {\"v\":1,\"name\":\"n2\",\"id\":\"" THEM
		"\",\"since\":1,\"version\":\"1\"}\n",
		"0 0 7 /ax/west/nodes/n2 {\"v\":1,\"name\":\"n2\",\"id\":\"" THEM
		"\",\"since\":1,\"version\":\"1\"}\n",
		"0 0 7 /ax/east/nodes/n2 {\"v\":1,\"name\":\"n2\"",
		"-1 0 7 /ax/east/nodes/n2 {\"v\":1,\"name\":\"n2\",\"id\":\"" THEM
		"\",\"since\":1,\"version\":\"1\"}\n",
		"0 0 99999999999999999999 /ax/east/nodes/n2 {}\n",
		"0 0 7 /ax/east/config {\"v\":1,\"revision\":1}\n",
		"0 0 7 /ax/east/key "
		"{\"v\":1,\"id\":1,\"key\":\"000102030405060708090a0b0c0d0e0f\"}\n",
		"0 0 7 /ax/east/nodes/n2\n",
		"0 0 0 /ax/east/blocks/10.81.1.0-24 {\"v\":1,\"prefix\":\"10.81.1.0/24\",\"node\":"
		"\"n2\",\"id\":\"" THEM "\"}\n",
	};
	struct node n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		autofree char *text = NULL;

		assert_true(asprintf(&text, "%s%s", head, bad[i]) > 0);
		rewrite(text);
		node_init(&n);
		remember_read(&n.c);
		assert_false(n.c.by_memory);
		assert_int_equal(n.c.peers.refused, 1);
		assert_int_equal(n.c.peers.n_nodes + n.c.peers.n_apps + n.c.peers.n_blocks, 0);
		node_free(&n);
	}
}

/* What it knew stands until all is read, and is written once for many changes. */
static void no_more_than_is_good(void **state)
{
	autofree char *was = NULL, *now = NULL;
	struct node n;

	(void)state;
	know_and_end();
	was = text_of_file();
	node_init(&n);
	put_node(&n, "n4", 9); /* of a read that has not ended */
	assert_int_equal(n.c.remember_at_ns, 0);
	remember_end(&n.c);
	now = text_of_file();
	assert_string_equal(was, now);
	node_free(&n);

	node_init(&n);
	know(&n);
	assert_true(n.c.remember_at_ns > time_mono_ns()); /* not at once */
	n.c.remember_at_ns = 0;
	remember_due(&n.c);
	assert_false(n.c.remember_stale);
	put_node(&n, "n5", 9);
	assert_true(n.c.remember_stale);
	assert_true(n.c.remember_at_ns > time_mono_ns() + 3000 * NS_PER_MS);
	n.c.remember_stale = false;
	put_app(&n, "n1", 2, 6); /* its own is nobody's matter */
	assert_false(n.c.remember_stale);
	node_free(&n);
}

/* Larger ones are written in slices, in which apps may go. */
static void slices(void **state)
{
	struct node n;
	unsigned turns = 0;

	(void)state;
	node_init(&n);
	know(&n);
	for (uint32_t i = 100; i < 1100; i++)
		put_app(&n, "n2", i, 7);
	do {
		remember_due(&n.c);
		if (!turns)
			delete (&n, "/ax/east/apps/n2/100");
		peers_settle(&n.c);
		turns++;
	} while (n.c.remembering);
	assert_in_range(turns, 3, 6);
	node_free(&n);
	node_init(&n);
	remember_read(&n.c);
	assert_in_range(n.c.peers.n_apps, 1001, 1002);
	node_free(&n);
}

/* Nowhere to write to: nothing else suffers. */
static void no_room(void **state)
{
	struct node n;

	(void)state;
	node_init(&n);
	snprintf(n.inst.run_dir, sizeof(n.inst.run_dir), "/proc/nowhere");
	know(&n);
	remember_due(&n.c);
	assert_null(n.c.remembering);
	assert_true(n.c.remember_failed && n.c.remember_stale && n.c.remember_at_ns);
	remember_end(&n.c);
	node_free(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_agent), cmocka_unit_test(ages),
		cmocka_unit_test(long_away),	  cmocka_unit_test(what_is_none),
		cmocka_unit_test(lines_that_lie), cmocka_unit_test(no_more_than_is_good),
		cmocka_unit_test(slices),	  cmocka_unit_test(no_room),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
