/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a block is, and the transactions by which blocks and addresses become a node's. */
#include <arpa/inet.h>

#include "allot/pool.h"
#include "cluster/priv.h"
#include "registry/state.h"

/* 256 addresses (a /24; of IPv6 a /120), or a sixteenth of a pool that has few. */
#define BLOCK_LEN   120
#define BLOCKS_BITS 4
#define PART_LEN    108 /* what a pool manages of a larger prefix (allot/pool.h) */

const struct prefix *cluster_pool(const struct cluster *c, const struct ax_addr *of)
{
	return addr_is_v4(of) ? &c->conf.pool : &c->conf.pool6;
}

struct pool *cluster_addresses(const struct cluster *c, const struct ax_addr *of)
{
	return addr_is_v4(of) ? &c->a->pool4 : &c->a->pool6;
}

bool cluster_contains(const struct cluster *c, const struct ax_addr *addr)
{
	const struct prefix *pool = cluster_pool(c, addr);

	return pool->len && prefix_contains(pool, addr);
}

unsigned block_len(const struct prefix *pool)
{
	return pool->len + BLOCKS_BITS > BLOCK_LEN ? pool->len + BLOCKS_BITS : BLOCK_LEN;
}

static struct prefix part_of(const struct prefix *pool)
{
	struct prefix part = *pool;

	part.len = part.len < PART_LEN ? PART_LEN : part.len;
	return part;
}

uint32_t block_count(const struct prefix *pool)
{
	struct prefix part = part_of(pool);

	return pool->len ? 1u << (block_len(pool) - part.len) : 0;
}

struct prefix block_nth(const struct prefix *pool, uint32_t i)
{
	struct prefix p = {.addr = pool->addr, .len = block_len(pool)};

	p.addr.w[3] = htonl(ntohl(p.addr.w[3]) + (i << (128 - p.len)));
	return p;
}

bool block_of_pool(const struct prefix *pool, const struct prefix *block)
{
	struct prefix part = part_of(pool);

	return pool->len && block->len == block_len(pool) && prefix_contains(&part, &block->addr);
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
