/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/traffic_control.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>

#include "net/netlink_request.h"

static struct tcmsg *put_tcmsg(struct nlmsghdr *nlh, unsigned ifindex)
{
	struct tcmsg *tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));

	tcm->tcm_family = AF_UNSPEC;
	tcm->tcm_ifindex = (int)ifindex;
	return tcm;
}

static void put_clsact(struct nl_request *rq, unsigned ifindex, bool del)
{
	struct nlmsghdr *nlh = del ? nl_request_add(rq, RTM_DELQDISC, 0)
				   : nl_request_add(rq, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL);
	struct tcmsg *tcm = put_tcmsg(nlh, ifindex);

	tcm->tcm_parent = TC_H_CLSACT;
	tcm->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	mnl_attr_put_strz(nlh, TCA_KIND, "clsact");
}

static void put_filter(struct nl_request *rq, const struct tc_program *p, bool del)
{
	struct nlmsghdr *nlh = del ? nl_request_add(rq, RTM_DELTFILTER, 0)
				   : nl_request_add(rq, RTM_NEWTFILTER, NLM_F_CREATE);
	struct tcmsg *tcm = put_tcmsg(nlh, p->ifindex);
	struct nlattr *options;

	tcm->tcm_parent = TC_H_MAKE(TC_H_CLSACT, p->egress ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS);
	tcm->tcm_handle = p->handle;
	tcm->tcm_info = TC_H_MAKE((uint32_t)p->priority << 16, htons(ETH_P_ALL));
	mnl_attr_put_strz(nlh, TCA_KIND, "bpf");
	if (del)
		return;
	options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
	mnl_attr_put_u32(nlh, TCA_BPF_FD, (uint32_t)p->fd);
	mnl_attr_put_strz(nlh, TCA_BPF_NAME, p->name);
	mnl_attr_put_u32(nlh, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	mnl_attr_nest_end(nlh, options);
}

int tc_attach(struct nl *nl, const struct tc_program *programs, size_t n, bool *made)
{
	bool is_clsact[NL_REQUEST_MAX] = {0};
	int errs[NL_REQUEST_MAX];
	struct nl_request rq;

	if (n > NL_REQUEST_MAX / 2)
		return -E2BIG;
	nl_request_init(&rq, nl);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || programs[i].ifindex != programs[i - 1].ifindex) {
			is_clsact[rq.n] = true;
			put_clsact(&rq, programs[i].ifindex, false);
		}
		put_filter(&rq, &programs[i], false);
	}
	nl_request_send(&rq, errs, NULL, NULL);
	if (made)
		*made = errs[0] == 0;
	for (size_t i = 0; i < rq.n; i++)
		if (errs[i] && !(is_clsact[i] && errs[i] == -EEXIST))
			return errs[i];
	return 0;
}

int tc_detach(struct nl *nl, const struct tc_program *programs, size_t n)
{
	struct nl_request rq;

	if (n > NL_REQUEST_MAX)
		return -E2BIG;
	nl_request_init(&rq, nl);
	for (size_t i = 0; i < n; i++)
		put_filter(&rq, &programs[i], true);
	return nl_request_send(&rq, NULL, NULL, NULL);
}

int tc_clsact_del(struct nl *nl, unsigned ifindex)
{
	struct nl_request rq;

	nl_request_init(&rq, nl);
	put_clsact(&rq, ifindex, true);
	return nl_request_send(&rq, NULL, NULL, NULL);
}
