/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a block is, and the transactions by which blocks and addresses become a node's. */
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

int address_claim(struct etcd *e, const char *cluster, const struct record_address *rec,
		  const int64_t *revision, size_t n, int64_t lease, etcd_done_fn done, void *arg)
{
	char key[2][RECORD_KEY_MAX], node[RECORD_KEY_MAX];
	struct etcd_compare compares[3] = {
		{.key = bytes_of(record_node_key(cluster, rec->node, node)),
		 .target = ETCD_LEASE,
		 .number = lease}};
	struct etcd_op put[2], get[2];
	autofree char *first = record_address_text(&rec[0]);
	autofree char *second = record_address_text(&rec[n - 1]);
	const char *const text[] = {first, second};
	const struct etcd_txn t = {.compares = compares,
				   .n_compares = 1 + n,
				   .success = put,
				   .n_success = n,
				   .failure = get,
				   .n_failure = n,
				   .twice = true}; /* (what is found is one's own then) */

	if (!first || !second)
		return -ENOMEM;
	for (size_t i = 0; i < n && i < ARRAY_SIZE(put); i++) {
		struct etcd_bytes k = bytes_of(record_address_key(cluster, &rec[i].addr, key[i]));

		compares[1 + i] = (struct etcd_compare){.key = k,
							.target = revision[i] ? ETCD_MOD_REVISION
									      : ETCD_VERSION,
							.number = revision[i]};
		put[i] = (struct etcd_op){
			.kind = ETCD_PUT, .key = k, .value = bytes_of(text[i]), .lease = lease};
		get[i] = (struct etcd_op){.kind = ETCD_GET, .key = k};
	}
	return etcd_txn(e, &t, done, arg, NULL);
}
