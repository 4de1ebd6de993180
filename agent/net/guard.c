// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/guard.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <libnftnl/expr.h>

#include "net/netlink.h"
#include "net/nft.h"

#define SIZE (8192 + GUARD_NODES_MAX * NFT_MESSAGE_SIZE)

#define PRIORITY_FILTER 0 /* NF_IP_PRI_FILTER, and its name in nft */

static int match_group(struct nftnl_rule *rule, uint32_t key)
{
	uint32_t group = NL_LINK_GROUP;

	return nft_match_meta(rule, key, NFT_CMP_EQ, &group, sizeof(group));
}

/* Packets of a connection that stands, and errors that belong to one. */
static int match_answer(struct nftnl_rule *rule)
{
	uint32_t mask = NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_BIT(IP_CT_RELATED);
	uint32_t zero = 0;
	struct nftnl_expr *e;

	if (nft_expr_add(rule, "ct", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_STATE);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, NFT_REG_1);
	if (nft_expr_add(rule, "bitwise", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, sizeof(mask));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, &mask, sizeof(mask));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, &zero, sizeof(zero));
	if (nft_expr_add(rule, "cmp", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_NEQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, &zero, sizeof(zero));
	return 0;
}

enum what { FROM_US, ANSWERS_TO_US, THE_REST };

/* Apps of other nodes, to ours: whether it comes from their node the program at our device sees. */
static int fill_nodes(struct nftnl_rule *rule, bool v4, const void *arg)
{
	uint32_t source = v4 ? offsetof(struct iphdr, saddr) : offsetof(struct ip6_hdr, ip6_src);

	if (match_group(rule, NFT_META_OIFGROUP) || nft_match_prefix(rule, source, arg))
		return -ENOMEM;
	return nft_verdict(rule, NF_ACCEPT);
}

static int fill_rule(struct nftnl_rule *rule, bool v4, const void *arg)
{
	enum what what = *(const enum what *)arg;
	int r = 0;

	(void)v4;
	if (what == FROM_US)
		r = match_group(rule, NFT_META_IIFGROUP);
	if (what == ANSWERS_TO_US) {
		r = match_group(rule, NFT_META_OIFGROUP);
		r = r ? r : match_answer(rule);
	}
	return r ? r : nft_verdict(rule, what == THE_REST ? NF_DROP : NF_ACCEPT);
}

static int add_rules(struct nft_batch *b, bool v4)
{
	int r = 0;

	for (enum what w = FROM_US; w <= THE_REST && !r; w++)
		r = nft_rule_add(b, v4, fill_rule, &w);
	return r;
}

int guard_set(bool v4, bool v6, const struct prefix *nodes, size_t n, struct error *e)
{
	CLEANUP(nft_batch_free) struct nft_batch b;
	int r = nft_table_begin(&b, GUARD_TABLE, SIZE, "forward", "filter", NF_INET_FORWARD,
				PRIORITY_FILTER);

	for (size_t i = 0; i < n && !r; i++) {
		bool is_v4 = addr_is_v4(&nodes[i].addr);

		if (is_v4 ? v4 : v6)
			r = nft_rule_add(&b, is_v4, fill_nodes, &nodes[i]);
	}
	if (!r && v4)
		r = add_rules(&b, true);
	if (!r && v6)
		r = add_rules(&b, false);
	return nft_table_end(
		&b, r, "nf_tables",
		"this kernel cannot tell answers from other packets, so ax does not switch "
		"forwarding on: it needs CONFIG_NFT_CT (module nft_ct); switch it on yourself "
		"(sysctl net.ipv4.ip_forward=1), or set egress: false to do without",
		e);
}

int guard_remove(struct error *e)
{
	return nft_table_remove(GUARD_TABLE, e);
}
