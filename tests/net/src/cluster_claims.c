// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two nodes that want the same blocks, or addresses, at the same time:
 * cluster_claims ENDPOINT TRIES blocks|addresses
 * Prints how many one of the two has got, neither, and both; then those of each.
 */
#include "cluster/priv.h"
#include "allot/pool.h"

#define TRIES_MAX 4096

struct claimant {
	struct etcd *etcd;
	struct etcd_lease *lease;
	char name[16];
	bool ready;
};

struct claim {
	struct claimant *by;
	unsigned block;
};

static struct claimant nodes[2];
static struct claim claims[2][TRIES_MAX];
static unsigned tries, answers, wins[2], won[TRIES_MAX];
static struct prefix pool;
static bool addresses;

static void fail(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static void on_claimed(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct claim *c = arg;

	if (err)
		fail(error);
	if (answer->succeeded) {
		won[c->block]++;
		wins[c->by == &nodes[1]]++;
	}
	answers++;
}

static void claim_address(struct claim *c)
{
	const int64_t none = 0;
	struct record_address a = {.addr = pool.addr, .app = "web"};

	a.addr.w[3] = htobe32(be32toh(a.addr.w[3]) + c->block);
	snprintf(a.node, sizeof(a.node), "%s", c->by->name);
	snprintf(a.id, sizeof(a.id), "%032x", c->by == &nodes[1]);
	if (address_claim(c->by->etcd, "east", &a, &none, 1, etcd_lease_id(c->by->lease),
			  on_claimed, c))
		fail("a claim cannot be sent");
}

static void claim(struct claim *c)
{
	struct record_block b = {.prefix = pool};

	b.prefix.len = block_len(&pool);
	b.prefix.addr.w[3] = htobe32(be32toh(b.prefix.addr.w[3]) + (c->block << 8));
	snprintf(b.node, sizeof(b.node), "%s", c->by->name);
	snprintf(b.id, sizeof(b.id), "%032x", c->by == &nodes[1]);
	if (block_claim(c->by->etcd, "east", &b, etcd_lease_id(c->by->lease), on_claimed, c))
		fail("a claim cannot be sent");
}

static void on_node(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct claimant *n = arg;

	(void)answer;
	if (err)
		fail(error);
	n->ready = true;
	if (!nodes[0].ready || !nodes[1].ready)
		return;
	for (unsigned i = 0; i < tries; i++) {
		for (unsigned k = 0; k < 2; k++) {
			claims[k][i] = (struct claim){&nodes[k], i};
			(addresses ? claim_address : claim)(&claims[k][i]);
		}
	}
}

static void on_lease(void *arg, enum etcd_lease_event event, int64_t id, const char *why)
{
	char key[RECORD_KEY_MAX];
	struct claimant *n = arg;

	if (event != ETCD_LEASE_HELD)
		fail(why);
	if (etcd_put(n->etcd, bytes_of(record_node_key("east", n->name, key)), bytes_of("x"), id,
		     on_node, n, NULL))
		fail("a node's key cannot be written");
}

static void loop(int epoll)
{
	struct loop_item *item;
	uint32_t events;

	while (answers < 2 * tries) {
		if (loop_wait(epoll, &item, &events))
			fail("the loop ends");
		if (item->kind == LOOP_ETCD)
			etcd_on_socket(item, events);
		else
			etcd_on_timer(item);
	}
}

int main(int argc, char **argv)
{
	const char *endpoint = argc > 2 ? argv[1] : NULL;
	struct etcd_options o = {.endpoints = &endpoint, .n_endpoints = 1, .request_ms = 60000};
	unsigned of[3] = {0};
	struct error e = {0};
	int epoll = loop_open();

	tries = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	addresses = argc > 3 && streq(argv[3], "addresses");
	if (!tries || tries > TRIES_MAX || prefix_parse("10.0.0.0/12", &pool))
		return 2;
	for (unsigned k = 0; k < 2; k++) {
		/* (a name of no node of the test's) */
		snprintf(nodes[k].name, sizeof(nodes[k].name), "claimant%u", k);
		if (etcd_open(epoll, &o, &nodes[k].etcd, &e) ||
		    etcd_lease_open(nodes[k].etcd, 30, 0, on_lease, &nodes[k], &nodes[k].lease))
			fail(e.text);
	}
	loop(epoll);
	for (unsigned i = 0; i < tries; i++)
		of[won[i] > 2 ? 2 : won[i]]++;
	printf("%u one, %u none, %u both; %u and %u\n", of[1], of[0], of[2], wins[0], wins[1]);
	for (unsigned k = 0; k < 2; k++)
		etcd_close(nodes[k].etcd);
	return 0;
}
