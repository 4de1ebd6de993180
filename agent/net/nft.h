/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of nf_tables, spoken natively. A batch is sent at once: the kernel takes all of it or
 * nothing. Whoever makes one says how many bytes it may take. All return 0 or a negative errno.
 */
#ifndef AX_NET_NFT_H
#define AX_NET_NFT_H

#include "base/address.h"
#include "base/util.h"

/* Enough for any message but a set's elements. */
#define NFT_MESSAGE_SIZE 640

struct nft_batch {
	char *buf;
	size_t len, size;
	uint32_t seq;
	struct nlmsghdr *last;
	const char *table, *chain; /* the caller's; of family inet */
};

/* Begins a batch that makes the table, with one chain and nothing else, whatever it was before. */
int nft_table_begin(struct nft_batch *b, const char *table, size_t size, const char *chain,
		    const char *type, uint32_t hook, int32_t priority);
/* Sends it, if all of it was `made` (0). `what` is set up, and what it means if the kernel has no
 * nf_tables, no inet family, or not what a rule needs, are the error's words. */
int nft_table_end(struct nft_batch *b, int made, const char *what, const char *unsupported,
		  struct error *e);
void nft_batch_free(struct nft_batch *b);
/* Takes a table away; that it is not there is no error. */
int nft_table_remove(const char *table, struct error *e);
/* 1: it is there; 0: it is not; or a negative errno. */
int nft_table_exists(const char *table);

/* A message begins, and is complete. */
struct nlmsghdr *nft_batch_add(struct nft_batch *b, uint16_t type, uint16_t flags);
void nft_batch_added(struct nft_batch *b);

struct nftnl_rule;
struct nftnl_expr;
/* A rule for packets of a family, at the chain's end; `fill` adds what else it looks at and does.
 */
int nft_rule_add(struct nft_batch *b, bool v4,
		 int (*fill)(struct nftnl_rule *rule, bool v4, const void *arg), const void *arg);
int nft_expr_add(struct nftnl_rule *rule, const char *name, struct nftnl_expr **e);
/* The rule's end: NF_ACCEPT or NF_DROP. */
int nft_verdict(struct nftnl_rule *rule, uint32_t verdict);
/* Goes on with the rule if the address at this offset of the IP header is one of the prefix, which
 * is of the rule's family. */
int nft_match_prefix(struct nftnl_rule *rule, uint32_t offset, const struct prefix *p);
/* Goes on with the rule if this property of the packet is (or is not) that. */
int nft_match_meta(struct nftnl_rule *rule, uint32_t key, uint32_t op, const void *data,
		   uint32_t len);

#endif
