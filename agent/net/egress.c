/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/egress.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#include "net/forwarding.h"
#include "net/guard.h"
#include "net/nft.h"
#include "net/nft_watch.h"

#define SET4		 "addresses4"
#define SET6		 "addresses6"
#define LOOPBACK_IFINDEX 1   /* in every network namespace */
#define PRIORITY_SRCNAT	 100 /* NF_IP_PRI_NAT_SRC, and its name in nft */
/* What nft calls these types when it lists the sets; the kernel only keeps the number. */
#define NFT_TYPE_IPADDR	 7
#define NFT_TYPE_IP6ADDR 8

/* A list of elements is one attribute, at most 64 KiB; an element takes no more than 32 bytes. */
#define ELEMENTS_MAX 1000
#define ELEMENT_SIZE 32
#define FIXED_SIZE   8192 /* of all messages but those of elements */

#define TABLE_NAME_MAX (sizeof("ax_") + INSTANCE_NAME_MAX)

static void table_name(const struct instance *inst, char ret[TABLE_NAME_MAX])
{
	snprintf(ret, TABLE_NAME_MAX, "ax_%s", inst->name);
}

static size_t table_size(const struct egress_addr *addrs, size_t n)
{
	size_t messages = n / ELEMENTS_MAX + 2;

	for (size_t i = 0; i < n; i++)
		messages += 2 * !addr_is_zero(&addrs[i].source);
	return FIXED_SIZE + messages * NFT_MESSAGE_SIZE + n * ELEMENT_SIZE;
}

static struct nftnl_set *new_set(const struct nft_batch *b, bool v4)
{
	struct nftnl_set *s = nftnl_set_alloc();

	if (!s)
		return NULL;
	nftnl_set_set_str(s, NFTNL_SET_TABLE, b->table);
	nftnl_set_set_str(s, NFTNL_SET_NAME, v4 ? SET4 : SET6);
	nftnl_set_set_u32(s, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE, v4 ? NFT_TYPE_IPADDR : NFT_TYPE_IP6ADDR);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, v4 ? 4 : 16);
	nftnl_set_set_u32(s, NFTNL_SET_ID, v4 ? 1 : 2); /* within the batch */
	return s;
}

static int add_set(struct nft_batch *b, bool v4)
{
	struct nftnl_set *s = new_set(b, v4);

	if (!s)
		return -ENOMEM;
	nftnl_set_nlmsg_build_payload(nft_batch_add(b, NFT_MSG_NEWSET, NLM_F_CREATE), s);
	nftnl_set_free(s);
	nft_batch_added(b);
	return 0;
}

/* One message of elements of a family, from addrs[*pos] on; leaves *pos where it stopped. */
static int add_some_elements(struct nft_batch *b, bool v4, const struct egress_addr *addrs,
			     size_t n, size_t *pos)
{
	struct nftnl_set *s = new_set(b, v4);
	unsigned count = 0;

	if (!s)
		return -ENOMEM;
	for (; *pos < n && count < ELEMENTS_MAX; ++*pos) {
		const struct ax_addr *a = &addrs[*pos].addr;
		struct nftnl_set_elem *e;

		if (addr_is_v4(a) != v4)
			continue;
		e = nftnl_set_elem_alloc();
		if (!e) {
			nftnl_set_free(s);
			return -ENOMEM;
		}
		nftnl_set_elem_set(e, NFTNL_SET_ELEM_KEY, v4 ? (const void *)&a->w[3] : a->b,
				   v4 ? 4 : 16);
		nftnl_set_elem_add(s, e);
		count++;
	}
	if (count) {
		nftnl_set_elems_nlmsg_build_payload(
			nft_batch_add(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE), s);
		nft_batch_added(b);
	}
	nftnl_set_free(s);
	return 0;
}

static int add_elements(struct nft_batch *b, bool v4, const struct egress_addr *addrs, size_t n)
{
	int r = 0;

	for (size_t pos = 0; pos < n && !r;)
		r = add_some_elements(b, v4, addrs, n, &pos);
	return r;
}

static int load_source(struct nftnl_rule *rule, bool v4)
{
	struct nftnl_expr *e;

	if (nft_expr_add(rule, "payload", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET,
			   v4 ? offsetof(struct iphdr, saddr) : offsetof(struct ip6_hdr, ip6_src));
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, v4 ? 4 : 16);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	return 0;
}

static int match_source(struct nftnl_rule *rule, bool v4)
{
	struct nftnl_expr *e;

	if (load_source(rule, v4) || nft_expr_add(rule, "lookup", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, v4 ? SET4 : SET6);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SET_ID, v4 ? 1 : 2);
	return 0;
}

/* Not by lo: host-mode apps talk to each other there. Comparing only the prefix's bytes of the name
 * is what nft's "ax-*" does. */
static int match_way_out(struct nftnl_rule *rule, const struct instance *inst)
{
	uint32_t lo = LOOPBACK_IFINDEX;

	if (nft_match_meta(rule, NFT_META_OIF, NFT_CMP_NEQ, &lo, sizeof(lo)) ||
	    nft_match_meta(rule, NFT_META_OIFNAME, NFT_CMP_NEQ, inst->device_prefix,
			   (uint32_t)strlen(inst->device_prefix)))
		return -ENOMEM;
	return 0;
}

static int fill_rule(struct nftnl_rule *rule, bool v4, const void *arg)
{
	struct nftnl_expr *e;

	if (match_way_out(rule, arg) || match_source(rule, v4))
		return -ENOMEM;
	return nft_expr_add(rule, "masq", &e);
}

struct chosen {
	const struct instance *inst;
	const struct egress_addr *addr;
};

static const void *bytes_of(const struct ax_addr *a, bool v4)
{
	return v4 ? (const void *)&a->w[3] : a->b;
}

static int fill_chosen(struct nftnl_rule *rule, bool v4, const void *arg)
{
	const struct chosen *c = arg;
	uint32_t len = v4 ? 4 : 16;
	struct nftnl_expr *e;

	if (match_way_out(rule, c->inst) || load_source(rule, v4) || nft_expr_add(rule, "cmp", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, bytes_of(&c->addr->addr, v4), len);
	if (nft_expr_add(rule, "immediate", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, bytes_of(&c->addr->source, v4), len);
	if (nft_expr_add(rule, "nat", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_TYPE, NFT_NAT_SNAT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FAMILY, v4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MIN, NFT_REG_1);
	return 0;
}

/* Those with a source of their own, before all others. */
static int add_chosen(struct nft_batch *b, const struct instance *inst,
		      const struct egress_addr *addrs, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		const struct chosen c = {inst, &addrs[i]};

		if (!addr_is_zero(&addrs[i].source))
			r = nft_rule_add(b, addr_is_v4(&addrs[i].addr), fill_chosen, &c);
	}
	return r;
}

/* Before all others: what goes to other nodes is done with. */
static int fill_nodes(struct nftnl_rule *rule, bool v4, const void *arg)
{
	uint32_t dest = v4 ? offsetof(struct iphdr, daddr) : offsetof(struct ip6_hdr, ip6_dst);

	if (nft_match_prefix(rule, dest, arg))
		return -ENOMEM;
	return nft_verdict(rule, NF_ACCEPT);
}

static int table_replace(const struct instance *inst, const struct egress_addr *addrs, size_t n,
			 const struct prefix *nodes, size_t n_nodes, struct error *e)
{
	CLEANUP(nft_batch_free) struct nft_batch b;
	char name[TABLE_NAME_MAX];
	int r;

	table_name(inst, name);
	r = nft_table_begin(&b, name, table_size(addrs, n) + n_nodes * NFT_MESSAGE_SIZE,
			    "postrouting", "nat", NF_INET_POST_ROUTING, PRIORITY_SRCNAT);
	for (size_t i = 0; i < n_nodes && !r; i++)
		r = nft_rule_add(&b, addr_is_v4(&nodes[i].addr), fill_nodes, &nodes[i]);
	r = r ? r : add_chosen(&b, inst, addrs, n);
	for (int v4 = 1; v4 >= 0 && !r; v4--) {
		r = add_set(&b, v4);
		r = r ? r : add_elements(&b, v4, addrs, n);
		r = r ? r : nft_rule_add(&b, v4, fill_rule, inst);
	}
	return nft_table_end(
		&b, r, "masquerading in nf_tables",
		"this kernel cannot masquerade, so apps have no egress: it needs "
		"CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT and CONFIG_NFT_MASQ (module nft_masq); set "
		"egress: false to do without",
		e);
}

static int table_remove(const struct instance *inst, struct error *e)
{
	char name[TABLE_NAME_MAX];

	table_name(inst, name);
	return nft_table_remove(name, e);
}

bool egress_was_flushed(const struct instance *inst, int fd, const struct egress_tables *made)
{
	char name[TABLE_NAME_MAX];
	const char *const tables[] = {name, GUARD_TABLE};
	const bool ours[] = {made->own, made->guard};
	bool went[ARRAY_SIZE(tables)] = {false}, flushed = false;

	table_name(inst, name);
	nft_watch_read(fd, tables, went, ARRAY_SIZE(tables));
	/* (replacing one is told as its going and coming) */
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		flushed |= ours[i] && went[i] && nft_table_exists(tables[i]) != 1;
	return flushed;
}

static bool has_family(bool v4, const struct egress_addr *addrs, size_t n,
		       const struct prefix *nodes, size_t n_nodes)
{
	bool has = false;

	for (size_t i = 0; i < n; i++)
		has |= addr_is_v4(&addrs[i].addr) == v4;
	for (size_t i = 0; i < n_nodes; i++)
		has |= addr_is_v4(&nodes[i].addr) == v4;
	return has;
}

int egress_set(const struct instance *inst, const struct egress_addr *addrs, size_t n,
	       const struct prefix *nodes, size_t n_nodes, struct egress_tables *made,
	       struct error *e)
{
	struct egress_tables ignored;
	bool v4, v6;
	int r, r2;

	made = made ? made : &ignored;
	*made = (struct egress_tables){.own = n};
	if (!n && !n_nodes) {
		r = forwarding_restore(inst, e);
		r2 = table_remove(inst, r ? NULL : e);
		return r ? r : r2;
	}
	v4 = has_family(true, addrs, n, nodes, n_nodes);
	v6 = has_family(false, addrs, n, nodes, n_nodes);
	/* In this order nothing leaves with an app's address on it. */
	r = n ? table_replace(inst, addrs, n, nodes, n_nodes, e) : table_remove(inst, e);
	return r ? r : forwarding_on(inst, v4, v6, nodes, n_nodes, &made->guard, e);
}
