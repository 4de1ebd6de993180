/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/tc_list.h"

#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>

#include "net/netlink_request.h"

struct listing {
	unsigned ifindex;
	struct tc_filter *v;
	size_t n;
};

static void put(struct nlmsghdr *nlh, void *arg)
{
	const struct listing *l = arg;
	struct tcmsg *tc = mnl_nlmsg_put_extra_header(nlh, sizeof(*tc));

	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = (int)l->ifindex;
	tc->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
}

static int text_of(const struct nlattr *a, char *ret, size_t size)
{
	if (mnl_attr_validate(a, MNL_TYPE_NUL_STRING) < 0)
		return -EPROTO;
	snprintf(ret, size, "%s", mnl_attr_get_str(a));
	return 0;
}

static void read_options(const struct nlattr *options, struct tc_filter *f)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested (a, options) {
		if (mnl_attr_get_type(a) == TCA_BPF_ID && !mnl_attr_validate(a, MNL_TYPE_U32))
			f->id = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == TCA_BPF_NAME)
			text_of(a, f->name, sizeof(f->name));
	}
}

/* In front of each priority's filters comes an entry without a handle. */
static int add(void *arg, const struct nlmsghdr *nlh)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
	struct tc_filter f = {.handle = tc->tcm_handle, .priority = tc->tcm_info >> 16}, *more;
	const struct nlattr *a, *options = NULL;
	struct listing *l = arg;
	bool bpf = false;

	if (nlh->nlmsg_type != RTM_NEWTFILTER || !f.handle)
		return 0;
	mnl_attr_for_each (a, nlh, sizeof(*tc)) {
		if (mnl_attr_get_type(a) == TCA_KIND && !text_of(a, f.name, sizeof(f.name)))
			bpf = streq(f.name, "bpf");
		else if (mnl_attr_get_type(a) == TCA_OPTIONS)
			options = a;
	}
	if (bpf && options)
		read_options(options, &f);
	more = reallocarray(l->v, l->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->v = more;
	l->v[l->n++] = f;
	return 0;
}

static void forget(void *arg)
{
	((struct listing *)arg)->n = 0;
}

int tc_egress_filters(struct nl *nl, unsigned ifindex, struct tc_filter **ret, size_t *n)
{
	struct listing l = {.ifindex = ifindex};
	const struct nl_dump d = {
		.type = RTM_GETTFILTER, .put = put, .on_entry = add, .restart = forget, .arg = &l};
	int r = nl_dump_run(nl, &d);

	*ret = NULL;
	*n = 0;
	if (r == -EINVAL || r == -ENOENT) /* no clsact */
		r = 0;
	if (r) {
		free(l.v);
		return r;
	}
	*ret = l.v;
	*n = l.n;
	return 0;
}
