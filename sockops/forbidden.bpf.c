/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * UDP sockets of apps in host mode that are connected to whom the rules that hold now forbid them,
 * as struct ax_unjudged records: they were judged when they connected, and what they send since
 * then no hook sees. Run in the network namespace of whoever reads them.
 */
#include "switch.bpf.h"
#include "kernel.bpf.h"
#include "maker.bpf.h"
#include "sock_ends.bpf.h"

static __always_inline bool is_refused_outside(struct route_request *rq, const struct ax_app *app,
					       const struct ax_endpoint *to)
{
	return judge_world(rq, app, to) < 0 && !answers_outside(rq, app);
}

/* As find_route() has it, of whom the switch has led the socket to. A global function: the verifier
 * judges it once, apart from how the socket was found. */
__weak __noinline int is_forbidden(struct route_request *rq, const struct ax_app *app)
{
	const struct ax_ctl *c = ctl_get();
	struct ax_endpoint to; /* keys are on the stack to Linux 6.1 */
	const struct ax_vip *vip;
	struct question q;

	if (!rq || !app || !c)
		return false;
	to = rq->peer;
	if (addr_is_loopback(&to.addr) || is_own_anchor(app, &to.addr))
		return false;
	vip = bpf_map_lookup_elem(&vips, &to.addr);
	if (!vip)
		return is_refused_outside(rq, app, &to);
	if (vip->kind == AX_VIP_HOST)
		return to.port_be != c->dns_port_be && is_refused_outside(rq, app, &to);
	if (vip->kind != AX_VIP_APP && !is_elsewhere(vip))
		return false; /* nobody is there */
	q = question_of(rq, app, &to, vip->party);
	rq->verdict = verdict_of(&q, &to.addr);
	if (rq->verdict & VERDICT_REFUSED)
		judge_answer(rq, app, &to, vip->id, vip->party);
	return (rq->verdict & VERDICT_REFUSED) != 0;
}

SEC("iter/udp")
int ax_forbidden_udp(struct bpf_iter__udp *ctx)
{
	struct udp_sock *udp = ctx->udp_sk;
	struct route_request rq = {};
	struct ax_unjudged u = {};
	const struct ax_app *app;

	if (!udp)
		return 0;
	ends_of((const struct sock_common *)udp, &u.local, &u.remote);
	if (!u.remote.port_be)
		return 0;
	u.local.proto = u.remote.proto = IPPROTO_UDP;
	app = app_that_made(udp);
	if (!app || !(app->flags & AX_APP_HOST))
		return 0;
	rq.peer = u.remote;
	rq.local_port_be = u.local.port_be;
	if (!is_forbidden(&rq, app))
		return 0;
	u.cookie = bpf_get_socket_cookie(udp);
	u.ifindex = (__u32)((const struct sock_common *)udp)->skc_bound_dev_if;
	bpf_seq_write(ctx->meta->seq, &u, sizeof(u));
	return 0;
}
