/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the switch would say: for `ax policy explain`, which gives the question as a packet
 * (BPF_PROG_TEST_RUN). Attached nowhere. It asks the functions that the hooks ask, and the maps
 * that hold, so that it cannot say anything else; it counts nothing.
 */
#include <linux/pkt_cls.h>

#include "question.h"
#include "switch.bpf.h"

/* By the hooks on connect and sendmsg. */
static __always_inline int ask_switch(struct route_request *rq, const struct ax_app *app,
				      const struct ax_question *x)
{
	const struct ax_vip *vip = bpf_map_lookup_elem(&vips, &rq->peer.addr);

	if (x->flags & AX_QUESTION_BACKEND)
		return judge_backend(rq, app, vip, &rq->peer);
	if (!vip || vip->kind == AX_VIP_HOST)
		return judge_world(rq, app, &rq->peer);
	return judge_direct(rq, app, &rq->peer, vip);
}

static __always_inline int ask_for_app(struct ax_question *x, __u64 *verdict)
{
	struct ax_app idle = {.party = x->party, .flags = x->app_flags};
	struct route_request rq = {.peer = x->to};
	const struct ax_app *app;
	__u64 cgroup = x->cgroup;
	int r;

	app = cgroup ? bpf_map_lookup_elem(&apps, &cgroup) : &idle;
	if (!app)
		return -ESRCH;
	r = ask_switch(&rq, app, x);
	*verdict = rq.verdict;
	return r;
}

/* By the receiving side: see may_have() of sk_lookup.bpf.c and may_enter() of fabric.bpf.c. */
static __always_inline int ask_for_outside(struct ax_question *x, __u64 *verdict)
{
	struct ax_addr from = x->from, to = x->to.addr;
	const struct ax_vip *vip = bpf_map_lookup_elem(&vips, &to);
	const struct ax_ctl *c = ctl_get();
	struct question q;

	if (!vip || !c)
		return -ESRCH;
	q.parties = question_parties(AX_PARTY_NONE, vip->party);
	q.ports = question_ports(x->to.proto, x->to.port_be, 0);
	*verdict = verdict_of(&q, &from);
	if (*verdict & VERDICT_DENY)
		return REFUSED_RULE;
	return VERDICT_RULE(*verdict) || c->host_access ? 0 : REFUSED_LABELS;
}

SEC("tc")
int ax_explain(struct __sk_buff *skb)
{
	struct ax_question x;
	__u64 v = 0;

	if (bpf_skb_load_bytes(skb, 0, &x, sizeof(x)))
		return TC_ACT_SHOT;
	x.code = x.flags & AX_QUESTION_APP ? ask_for_app(&x, &v) : ask_for_outside(&x, &v);
	x.rule = VERDICT_RULE(v);
	x.audit = VERDICT_AUDIT(v);
	x.log = VERDICT_LOG(v);
	x.no_label = v & VERDICT_LABELS ? 1 : 0;
	if (bpf_skb_store_bytes(skb, 0, &x, sizeof(x), 0))
		return TC_ACT_SHOT;
	return TC_ACT_OK;
}
