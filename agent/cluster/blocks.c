/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the pools that this node gives addresses out of. A block is a node's from the
 * transaction on that made its key, until somebody deletes that on purpose: it is under no lease,
 * since a node that is away goes on with the addresses that it has.
 */
#include <sys/random.h>

#include "allot/pool.h"
#include "base/log.h"
#include "cluster/priv.h"
#include "registry/state.h"

/* When fewer are left than a block's this part, another one is claimed. */
#define LEFT_PART 4

/* --- this node's --- */

static struct own_block *find(struct cluster *c, const struct prefix *p)
{
	for (size_t i = 0; i < c->n_blocks; i++)
		if (prefix_eq(&c->blocks[i].prefix, p))
			return &c->blocks[i];
	return NULL;
}

struct own_block *block_add(struct cluster *c, const struct prefix *p)
{
	struct own_block *more = reallocarray(c->blocks, c->n_blocks + 1, sizeof(*more));

	if (!more)
		return NULL;
	c->blocks = more;
	more[c->n_blocks] = (struct own_block){.prefix = *p};
	pool_open(cluster_addresses(c, &p->addr), p, true);
	return &more[c->n_blocks++];
}

static void adopt(struct cluster *c, struct peer_block *b)
{
	struct own_block *own = find(c, &b->rec.prefix);
	struct pool *pool = cluster_addresses(c, &b->rec.prefix.addr);
	bool ours = node_is_own(c, b->rec.node, b->rec.id);
	char text[ADDR_STRLEN];

	if (!own && ours) {
		own = block_add(c, &b->rec.prefix);
		if (!own)
			return;
		log_info("the cluster %s: %s is this node's block", c->conf.name,
			 prefix_format(&b->rec.prefix, text));
		memory_write(c);
		c->a->address_freed = true; /* for those that could have no address */
	}
	if (!own)
		return;
	if (!ours && !own->lost) {
		log_error("the cluster %s: %s was this node's block, and is the node %s's: no more "
			  "addresses are given out of it",
			  c->conf.name, prefix_format(&b->rec.prefix, text), b->rec.node);
		pool_open(pool, &own->prefix, false);
	}
	if (ours && own->lost)
		pool_open(pool, &own->prefix, true);
	own->lost = !ours;
	own->sure = ours;
}

static void begin_claim(struct cluster *c, const struct prefix *p);

/* What etcd has lost it is told again. */
static void claim_again(struct cluster *c)
{
	for (size_t i = 0; i < c->n_blocks && !c->claiming; i++) {
		struct own_block *own = &c->blocks[i];
		const struct peer_block *b = peers_block(c, &own->prefix);

		if (!b || b->missing_ns) {
			own->sure = false;
			begin_claim(c, &own->prefix);
		}
	}
}

void blocks_sync(struct cluster *c)
{
	if (!c->registered || !c->current)
		return;
	peers_each_block(c, adopt);
	claim_again(c);
	blocks_want(c);
}

/* --- claims --- */

static void on_claimed(void *arg, int err, const struct etcd_answer *answer, const char *error)
{
	struct cluster *c = arg;

	(void)error;
	c->claiming = false;
	if (err) {
		cluster_at(c, &c->claim_at_ns, CLUSTER_RETRY_MS / 3);
		return;
	}
	/* whoever has it: the key is there now, or this node's name has another lease */
	for (size_t i = 0; i < answer->n_ops; i++)
		if (answer->ops[i].n && answer->ops[i].kvs)
			peers_put(c, &answer->ops[i].kvs[0]);
	if (!answer->succeeded && (!answer->n_ops || !answer->ops[0].n)) {
		node_unregistered(c);
		return;
	}
	if (answer->succeeded) {
		struct etcd_kv kv = {0};
		struct record_block b = {.prefix = c->claim};
		char key[RECORD_KEY_MAX];
		autofree char *text = NULL;

		snprintf(b.node, sizeof(b.node), "%s", c->node);
		snprintf(b.id, sizeof(b.id), "%s", c->id);
		text = record_block_text(&b);
		kv.key = bytes_of(record_block_key(c->conf.name, &c->claim, key));
		kv.value = bytes_of(text ? text : "");
		if (text)
			peers_put(c, &kv);
	}
	blocks_sync(c);
}

static void begin_claim(struct cluster *c, const struct prefix *p)
{
	struct record_block b = {.prefix = *p};

	snprintf(b.node, sizeof(b.node), "%s", c->node);
	snprintf(b.id, sizeof(b.id), "%s", c->id);
	c->claim = *p;
	c->claiming = !block_claim(c->etcd, c->conf.name, &b, c->lease_id, on_claimed, c);
	if (!c->claiming)
		cluster_at(c, &c->claim_at_ns, CLUSTER_RETRY_MS / 3);
}

/* Begins anywhere, that nodes which start together do not all try the same one. */
static bool find_free(struct cluster *c, const struct prefix *pool, struct prefix *ret)
{
	uint32_t n = block_count(pool), start = 0;

	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		start = (uint32_t)c->n_blocks;
	for (uint32_t i = 0; i < n; i++) {
		*ret = block_nth(pool, (start + i) % n);
		if (!peers_block(c, ret) && !find(c, ret))
			return true;
	}
	return false;
}

static void want_of(struct cluster *c, const struct prefix *pool, bool *exhausted)
{
	uint32_t enough = pool->len ? (1u << (128 - block_len(pool))) / LEFT_PART : 0;
	struct prefix p;

	if (c->claiming || pool_left(cluster_addresses(c, &pool->addr)) >= enough)
		return;
	if (find_free(c, pool, &p)) {
		*exhausted = false;
		begin_claim(c, &p);
		return;
	}
	if (!*exhausted)
		log_error("the cluster %s has no block left of %s for this node: give it a larger "
			  "pool, or delete those of nodes that do not come back",
			  c->conf.name, prefix_format(pool, (char[ADDR_STRLEN]){0}));
	*exhausted = true;
}

void blocks_want(struct cluster *c)
{
	if (!c->registered || !c->current)
		return;
	want_of(c, &c->conf.pool, &c->exhausted[0]);
	want_of(c, &c->conf.pool6, &c->exhausted[1]);
}
