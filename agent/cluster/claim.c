/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a block is, and the transaction by which it becomes a node's. */
#include "cluster/priv.h"

/* A /24, or a sixteenth of a pool that is smaller than /20. */
#define BLOCK_LEN   24
#define BLOCKS_BITS 4

unsigned block_len(const struct prefix *pool)
{
	return pool->len + BLOCKS_BITS > 96 + BLOCK_LEN ? pool->len + BLOCKS_BITS : 96 + BLOCK_LEN;
}

bool block_of_pool(const struct prefix *pool, const struct prefix *block)
{
	return block->len == block_len(pool) && prefix_contains(pool, &block->addr);
}

int block_claim(struct etcd *e, const char *cluster, const struct record_block *b, int64_t lease,
		etcd_done_fn done, void *arg)
{
	char key[RECORD_KEY_MAX], node[RECORD_KEY_MAX];
	autofree char *text = record_block_text(b);
	const struct etcd_compare compares[] = {
		{.key = bytes_of(record_block_key(cluster, &b->prefix, key)),
		 .target = ETCD_VERSION},
		/* nobody claims anything whose name is another's by now */
		{.key = bytes_of(record_node_key(cluster, b->node, node)),
		 .target = ETCD_LEASE,
		 .number = lease},
	};
	const struct etcd_op put = {
		.kind = ETCD_PUT, .key = bytes_of(key), .value = bytes_of(text ? text : "")};
	const struct etcd_op get = {.kind = ETCD_GET, .key = bytes_of(key)};
	const struct etcd_txn t = {.compares = compares,
				   .n_compares = ARRAY_SIZE(compares),
				   .success = &put,
				   .n_success = 1,
				   .failure = &get,
				   .n_failure = 1,
				   .twice = true}; /* (what is found is one's own then) */

	return text ? etcd_txn(e, &t, done, arg, NULL) : -ENOMEM;
}
