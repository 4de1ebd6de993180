/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of nf_tables, spoken natively. A batch is sent at once: the kernel takes all of it or
 * nothing. Whoever makes one says how many bytes it may take. All return 0 or a negative errno.
 */
#ifndef AX_NET_NFT_H
#define AX_NET_NFT_H

#include "base/util.h"

/* Enough for any message but a set's elements. */
#define NFT_MESSAGE_SIZE 512

struct nft_batch {
	char *buf;
	size_t len, size;
	uint32_t seq;
	struct nlmsghdr *last;
	const char *table; /* the caller's, of family inet */
};

int nft_batch_init(struct nft_batch *b, const char *table, size_t size);
void nft_batch_free(struct nft_batch *b);
/* A message begins, and is complete. */
struct nlmsghdr *nft_batch_add(struct nft_batch *b, uint16_t type, uint16_t flags);
void nft_batch_added(struct nft_batch *b);
int nft_batch_send(struct nft_batch *b);
/* What a kernel answers that has no nf_tables, no inet family, or not what a rule needs. */
bool nft_is_unsupported(int err);

/* The batch's table, empty, whatever it was before. */
int nft_table_anew(struct nft_batch *b);
/* Takes it away; that it is not there is no error. */
int nft_table_remove(const char *table);
int nft_chain_add(struct nft_batch *b, const char *name, const char *type, uint32_t hook,
		  int32_t priority);

struct nftnl_rule;
struct nftnl_expr;
/* A rule of the chain, NULL: no memory. nft_rule_add() frees it, and is told whether filling it
 * went well. */
struct nftnl_rule *nft_rule_new(const struct nft_batch *b, const char *chain);
int nft_rule_add(struct nft_batch *b, struct nftnl_rule *rule, int filled);
int nft_expr_add(struct nftnl_rule *rule, const char *name, struct nftnl_expr **e);
/* Goes on with the rule if this property of the packet is (or is not) that. */
int nft_match_meta(struct nftnl_rule *rule, uint32_t key, uint32_t op, const void *data,
		   uint32_t len);

#endif
