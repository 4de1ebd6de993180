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

#define SET4		 "addresses4"
#define SET6		 "addresses6"
#define CHAIN		 "postrouting"
#define LOOPBACK_IFINDEX 1   /* in every network namespace */
#define PRIORITY_SRCNAT	 100 /* NF_IP_PRI_NAT_SRC, and its name in nft */
/* What nft calls these types when it lists the sets; the kernel only keeps the number. */
#define NFT_TYPE_IPADDR	 7
#define NFT_TYPE_IP6ADDR 8

/* A list of elements is one attribute, at most 64 KiB; an element takes no more than 32 bytes. */
#define ELEMENTS_MAX 1000
#define ELEMENT_SIZE 32
/* Enough for any message but its elements, and for all the other messages together. */
#define MESSAGE_SIZE 512
#define FIXED_SIZE   8192

/* The table's messages, sent at once: nf_tables takes a whole batch or nothing of it. */
struct batch {
	char *buf;
	size_t len, size;
	uint32_t seq;
	struct nlmsghdr *last;
	char table[sizeof("ax_") + INSTANCE_NAME_MAX];
};

static void batch_free(struct batch *b)
{
	free(b->buf);
}

static int batch_init(struct batch *b, const struct instance *inst, size_t n_addrs)
{
	size_t chunks = n_addrs / ELEMENTS_MAX + 2;

	*b = (struct batch){.size = FIXED_SIZE + chunks * MESSAGE_SIZE + n_addrs * ELEMENT_SIZE};
	snprintf(b->table, sizeof(b->table), "ax_%s", inst->name);
	b->buf = calloc(1, b->size);
	if (!b->buf)
		return -ENOMEM;
	b->len = NLMSG_ALIGN(nftnl_batch_begin(b->buf, b->seq++)->nlmsg_len);
	return 0;
}

static struct nlmsghdr *batch_add(struct batch *b, uint16_t type, uint16_t flags)
{
	b->last = nftnl_nlmsg_build_hdr(b->buf + b->len, type, NFPROTO_INET, flags, b->seq++);
	return b->last;
}

static void batch_added(struct batch *b)
{
	b->len += NLMSG_ALIGN(b->last->nlmsg_len);
}

static int add_table(struct batch *b, uint16_t type)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct nlmsghdr *nlh;

	if (!t)
		return -ENOMEM;
	nlh = batch_add(b, type, type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, b->table);
	nftnl_table_nlmsg_build_payload(nlh, t);
	nftnl_table_free(t);
	batch_added(b);
	return 0;
}

static int add_chain(struct batch *b)
{
	struct nftnl_chain *c = nftnl_chain_alloc();
	struct nlmsghdr *nlh;

	if (!c)
		return -ENOMEM;
	nlh = batch_add(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, b->table);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, CHAIN);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "nat");
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, NF_INET_POST_ROUTING);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, PRIORITY_SRCNAT);
	nftnl_chain_nlmsg_build_payload(nlh, c);
	nftnl_chain_free(c);
	batch_added(b);
	return 0;
}

static struct nftnl_set *new_set(const struct batch *b, bool v4)
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

static int add_set(struct batch *b, bool v4)
{
	struct nftnl_set *s = new_set(b, v4);

	if (!s)
		return -ENOMEM;
	nftnl_set_nlmsg_build_payload(batch_add(b, NFT_MSG_NEWSET, NLM_F_CREATE), s);
	nftnl_set_free(s);
	batch_added(b);
	return 0;
}

/* One message of elements of a family, from addrs[*pos] on; leaves *pos where it stopped. */
static int add_some_elements(struct batch *b, bool v4, const struct ax_addr *addrs, size_t n,
			     size_t *pos)
{
	struct nftnl_set *s = new_set(b, v4);
	unsigned count = 0;

	if (!s)
		return -ENOMEM;
	for (; *pos < n && count < ELEMENTS_MAX; ++*pos) {
		const struct ax_addr *a = &addrs[*pos];
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
		nftnl_set_elems_nlmsg_build_payload(batch_add(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE),
						    s);
		batch_added(b);
	}
	nftnl_set_free(s);
	return 0;
}

static int add_elements(struct batch *b, bool v4, const struct ax_addr *addrs, size_t n)
{
	int r = 0;

	for (size_t pos = 0; pos < n && !r;)
		r = add_some_elements(b, v4, addrs, n, &pos);
	return r;
}

static int expr_add(struct nftnl_rule *rule, const char *name, struct nftnl_expr **e)
{
	*e = nftnl_expr_alloc(name);
	if (!*e)
		return -ENOMEM;
	nftnl_rule_add_expr(rule, *e);
	return 0;
}

/* Goes on with the rule if this property of the packet is (or is not) that. */
static int match_meta(struct nftnl_rule *rule, uint32_t key, uint32_t op, const void *data,
		      uint32_t len)
{
	struct nftnl_expr *e;

	if (expr_add(rule, "meta", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
	if (expr_add(rule, "cmp", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, len);
	return 0;
}

static int match_source(struct nftnl_rule *rule, bool v4)
{
	struct nftnl_expr *e;

	if (expr_add(rule, "payload", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET,
			   v4 ? offsetof(struct iphdr, saddr) : offsetof(struct ip6_hdr, ip6_src));
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, v4 ? 4 : 16);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	if (expr_add(rule, "lookup", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, v4 ? SET4 : SET6);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SET_ID, v4 ? 1 : 2);
	return 0;
}

static int fill_rule(struct nftnl_rule *rule, const struct batch *b, const struct instance *inst,
		     bool v4)
{
	uint8_t proto = v4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
	uint32_t lo = LOOPBACK_IFINDEX;
	struct nftnl_expr *e;

	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, b->table);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, CHAIN);
	nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
	/* Not by lo: host-mode apps talk to each other there. Comparing only the prefix's bytes of
	 * the name is what nft's "ax-*" does. */
	if (match_meta(rule, NFT_META_NFPROTO, NFT_CMP_EQ, &proto, sizeof(proto)) ||
	    match_meta(rule, NFT_META_OIF, NFT_CMP_NEQ, &lo, sizeof(lo)) ||
	    match_meta(rule, NFT_META_OIFNAME, NFT_CMP_NEQ, inst->device_prefix,
		       (uint32_t)strlen(inst->device_prefix)) ||
	    match_source(rule, v4))
		return -ENOMEM;
	return expr_add(rule, "masq", &e);
}

static int add_rule(struct batch *b, const struct instance *inst, bool v4)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();
	int r;

	if (!rule)
		return -ENOMEM;
	r = fill_rule(rule, b, inst, v4);
	if (!r) {
		nftnl_rule_nlmsg_build_payload(
			batch_add(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND), rule);
		batch_added(b);
	}
	nftnl_rule_free(rule);
	return r;
}

static int add_everything(struct batch *b, const struct instance *inst, const struct ax_addr *addrs,
			  size_t n)
{
	int r;

	/* Made before it is deleted, because deleting what is not there would fail. */
	r = add_table(b, NFT_MSG_NEWTABLE);
	r = r ? r : add_table(b, NFT_MSG_DELTABLE);
	r = r ? r : add_table(b, NFT_MSG_NEWTABLE);
	r = r ? r : add_chain(b);
	for (int v4 = 1; v4 >= 0 && !r; v4--) {
		r = add_set(b, v4);
		r = r ? r : add_elements(b, v4, addrs, n);
		r = r ? r : add_rule(b, inst, v4);
	}
	return r;
}

/*
 * The kernel works a batch off within sendmsg(), so every answer is there when that returns:
 * errors for messages that failed, and the acknowledgement that the last one asks for.
 */
static int read_answers(struct mnl_socket *s)
{
	char buf[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool answered = false;

	for (;;) {
		ssize_t n = recv(mnl_socket_get_fd(s), buf, sizeof(buf), MSG_DONTWAIT);
		int len = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return answered ? 0 : -EPROTO;
		if (n < 0)
			return -errno;
		for (struct nlmsghdr *nlh = (void *)buf; mnl_nlmsg_ok(nlh, len);
		     nlh = mnl_nlmsg_next(nlh, &len)) {
			const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);

			if (nlh->nlmsg_type != NLMSG_ERROR ||
			    mnl_nlmsg_get_payload_len(nlh) < sizeof(*err))
				continue;
			if (err->error)
				return err->error;
			answered = true;
		}
	}
}

static int batch_send(struct batch *b)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	int size, one = 1, r = 0;

	if (!s)
		return -errno;
	b->last->nlmsg_flags |= NLM_F_ACK;
	b->len += NLMSG_ALIGN(nftnl_batch_end(b->buf + b->len, b->seq++)->nlmsg_len);
	size = (int)(2 * b->len);
	/* A batch has to be sent at once, whatever its size. Errors need not quote it. */
	if (b->len > 64 * 1024 &&
	    setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		r = -errno;
	(void)mnl_socket_setsockopt(s, NETLINK_CAP_ACK, &one, sizeof(one));
	if (!r && mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0)
		r = -errno;
	while (!r && mnl_socket_sendto(s, b->buf, b->len) < 0)
		if (errno != EINTR)
			r = -errno;
	if (!r)
		r = read_answers(s);
	mnl_socket_close(s);
	return r;
}

/* What a kernel answers that has no nf_tables, no inet family, no nat chains or no masq. */
static bool is_unsupported(int err)
{
	return err == -EOPNOTSUPP || err == -EPROTONOSUPPORT || err == -EAFNOSUPPORT ||
	       err == -ENOENT;
}

static int table_replace(const struct instance *inst, const struct ax_addr *addrs, size_t n,
			 struct error *e)
{
	CLEANUP(batch_free) struct batch b;
	int r = batch_init(&b, inst, n);

	r = r ? r : add_everything(&b, inst, addrs, n);
	r = r ? r : batch_send(&b);
	if (is_unsupported(r))
		return error_set(
			e, -EOPNOTSUPP,
			"this kernel cannot masquerade, so apps have no egress: it needs "
			"CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT and CONFIG_NFT_MASQ (module "
			"nft_masq); set egress: false to do without");
	if (r)
		return error_set(e, r,
				 "cannot set up masquerading in nf_tables (table inet %s): %s",
				 b.table, strerror(-r));
	return 0;
}

static int table_remove(const struct instance *inst, struct error *e)
{
	CLEANUP(batch_free) struct batch b;
	int r = batch_init(&b, inst, 0);

	r = r ? r : add_table(&b, NFT_MSG_DELTABLE);
	r = r ? r : batch_send(&b);
	if (!r || is_unsupported(r)) /* it is not there */
		return 0;
	return error_set(e, r,
			 "cannot remove the nf_tables table inet %s: %s; try: nft delete "
			 "table inet %s",
			 b.table, strerror(-r), b.table);
}

int egress_set(const struct instance *inst, const struct ax_addr *addrs, size_t n, struct error *e)
{
	bool v4 = false, v6 = false;
	int r, r2;

	if (!n) {
		r = forwarding_restore(inst, e);
		r2 = table_remove(inst, r ? NULL : e);
		return r ? r : r2;
	}
	for (size_t i = 0; i < n; i++) {
		if (addr_is_v4(&addrs[i]))
			v4 = true;
		else
			v6 = true;
	}
	/* In this order nothing leaves with an app's address on it. */
	r = table_replace(inst, addrs, n, e);
	return r ? r : forwarding_on(inst, v4, v6, e);
}
