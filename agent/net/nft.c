// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/nft.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

/* nftnl writes a message whole before its length is known. */
#define MARGIN 4096

void nft_batch_free(struct nft_batch *b)
{
	free(b->buf);
}

static int batch_init(struct nft_batch *b, const char *table, size_t size)
{
	*b = (struct nft_batch){.size = size + MARGIN, .table = table};
	b->buf = calloc(1, b->size);
	if (!b->buf)
		return -ENOMEM;
	b->len = NLMSG_ALIGN(nftnl_batch_begin(b->buf, b->seq++)->nlmsg_len);
	return 0;
}

struct nlmsghdr *nft_batch_add(struct nft_batch *b, uint16_t type, uint16_t flags)
{
	b->last = nftnl_nlmsg_build_hdr(b->buf + b->len, type, NFPROTO_INET, flags, b->seq++);
	return b->last;
}

void nft_batch_added(struct nft_batch *b)
{
	b->len += NLMSG_ALIGN(b->last->nlmsg_len);
}

static int add_table(struct nft_batch *b, uint16_t type)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct nlmsghdr *nlh;

	if (!t)
		return -ENOMEM;
	nlh = nft_batch_add(b, type, type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, b->table);
	nftnl_table_nlmsg_build_payload(nlh, t);
	nftnl_table_free(t);
	nft_batch_added(b);
	return 0;
}

static int table_anew(struct nft_batch *b)
{
	/* Made before it is deleted, because deleting what is not there would fail. */
	int r = add_table(b, NFT_MSG_NEWTABLE);

	r = r ? r : add_table(b, NFT_MSG_DELTABLE);
	return r ? r : add_table(b, NFT_MSG_NEWTABLE);
}

static int add_chain(struct nft_batch *b, const char *name, const char *type, uint32_t hook,
		     int32_t priority)
{
	struct nftnl_chain *c = nftnl_chain_alloc();
	struct nlmsghdr *nlh;

	if (!c)
		return -ENOMEM;
	nlh = nft_batch_add(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, b->table);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, type);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, priority);
	nftnl_chain_nlmsg_build_payload(nlh, c);
	nftnl_chain_free(c);
	nft_batch_added(b);
	return 0;
}

int nft_table_begin(struct nft_batch *b, const char *table, size_t size, const char *chain,
		    const char *type, uint32_t hook, int32_t priority)
{
	int r = batch_init(b, table, size);

	b->chain = chain;
	r = r ? r : table_anew(b);
	return r ? r : add_chain(b, chain, type, hook, priority);
}

static struct nftnl_rule *new_rule(const struct nft_batch *b)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();

	if (!rule)
		return NULL;
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, b->table);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, b->chain);
	nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
	return rule;
}

int nft_expr_add(struct nftnl_rule *rule, const char *name, struct nftnl_expr **e)
{
	*e = nftnl_expr_alloc(name);
	if (!*e)
		return -ENOMEM;
	nftnl_rule_add_expr(rule, *e);
	return 0;
}

int nft_match_meta(struct nftnl_rule *rule, uint32_t key, uint32_t op, const void *data,
		   uint32_t len)
{
	struct nftnl_expr *e;

	if (nft_expr_add(rule, "meta", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
	if (nft_expr_add(rule, "cmp", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, len);
	return 0;
}

int nft_verdict(struct nftnl_rule *rule, uint32_t verdict)
{
	struct nftnl_expr *e;

	if (nft_expr_add(rule, "immediate", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, verdict);
	return 0;
}

int nft_match_prefix(struct nftnl_rule *rule, uint32_t offset, const struct prefix *p)
{
	static const struct ax_addr zero;
	bool v4 = addr_is_v4(&p->addr);
	unsigned first = v4 ? 12 : 0; /* of the address's bytes */
	uint32_t size = sizeof(p->addr.b) - first;
	struct ax_addr mask = {0};
	struct nftnl_expr *e;

	for (unsigned i = 0; i < p->len; i++)
		mask.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	if (nft_expr_add(rule, "payload", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, size);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	if (nft_expr_add(rule, "bitwise", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, size);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, &mask.b[first], size);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, &zero.b[first], size);
	if (nft_expr_add(rule, "cmp", &e))
		return -ENOMEM;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, &p->addr.b[first], size);
	return 0;
}

int nft_rule_add(struct nft_batch *b, bool v4,
		 int (*fill)(struct nftnl_rule *rule, bool v4, const void *arg), const void *arg)
{
	uint8_t proto = v4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
	struct nftnl_rule *rule = new_rule(b);
	int r;

	if (!rule)
		return -ENOMEM;
	r = nft_match_meta(rule, NFT_META_NFPROTO, NFT_CMP_EQ, &proto, sizeof(proto));
	r = r ? r : fill(rule, v4, arg);
	if (!r) {
		nftnl_rule_nlmsg_build_payload(
			nft_batch_add(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND), rule);
		nft_batch_added(b);
	}
	nftnl_rule_free(rule);
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

static int batch_send(struct nft_batch *b)
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

int nft_table_exists(const char *table)
{
	char buf[MNL_NLMSG_HDRLEN + NFT_MESSAGE_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct mnl_socket *s = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	struct nftnl_table *t = nftnl_table_alloc();
	struct nlmsghdr *nlh;
	int r = s ? t ? 0 : -ENOMEM : -errno;

	if (!r && mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0)
		r = -errno;
	if (!r) {
		/* the table, or why not, and so an answer in any case */
		nlh = nftnl_nlmsg_build_hdr(buf, NFT_MSG_GETTABLE, NFPROTO_INET, NLM_F_ACK, 1);
		nftnl_table_set_str(t, NFTNL_TABLE_NAME, table);
		nftnl_table_nlmsg_build_payload(nlh, t);
		r = mnl_socket_sendto(s, nlh, nlh->nlmsg_len) < 0 ? -errno : read_answers(s);
	}
	if (t)
		nftnl_table_free(t);
	if (s)
		mnl_socket_close(s);
	return r == -ENOENT ? 0 : r ? r : 1;
}

/* What a kernel answers that has no nf_tables, no inet family, or not what a rule needs. */
static bool is_unsupported(int err)
{
	return err == -EOPNOTSUPP || err == -EPROTONOSUPPORT || err == -EAFNOSUPPORT ||
	       err == -ENOENT;
}

int nft_table_end(struct nft_batch *b, int made, const char *what, const char *unsupported,
		  struct error *e)
{
	int r = made ? made : batch_send(b);

	if (is_unsupported(r))
		return error_set(e, -EOPNOTSUPP, "%s", unsupported);
	return r ? error_set(e, r, "cannot set up %s (table inet %s): %s", what, b->table,
			     strerror(-r))
		 : 0;
}

int nft_table_remove(const char *table, struct error *e)
{
	CLEANUP(nft_batch_free) struct nft_batch b;
	int r = batch_init(&b, table, NFT_MESSAGE_SIZE);

	r = r ? r : add_table(&b, NFT_MSG_DELTABLE);
	r = r ? r : batch_send(&b);
	if (!r || is_unsupported(r))
		return 0; /* it is not there */
	return error_set(
		e, r,
		"cannot remove the nf_tables table inet %s: %s; try: nft delete table inet "
		"%s",
		table, strerror(-r), table);
}
