/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ingress to virtual IPs that live in the host's own namespace (host-mode apps, services, declared
 * apps): the receiving side's policy check, services for programs outside ax, dual-stack listeners
 * for the other family, and no way to a host daemon on a wildcard address through an app's address.
 * Not run for established connections.
 */
#include "switch.bpf.h"
#include "open_conns.bpf.h"

#define LO_IFINDEX 1 /* in every network namespace */

static __always_inline void endpoints(const struct bpf_sk_lookup *ctx, struct ax_endpoint *local,
				      struct ax_addr *remote)
{
	if (ctx->family == AF_INET) {
		addr_set_v4(&local->addr, ctx->local_ip4);
		addr_set_v4(remote, ctx->remote_ip4);
		ctx_branch_end();
	} else {
		local->addr.w[0] = ctx->local_ip6[0];
		local->addr.w[1] = ctx->local_ip6[1];
		local->addr.w[2] = ctx->local_ip6[2];
		local->addr.w[3] = ctx->local_ip6[3];
		remote->w[0] = ctx->remote_ip6[0];
		remote->w[1] = ctx->remote_ip6[1];
		remote->w[2] = ctx->remote_ip6[2];
		remote->w[3] = ctx->remote_ip6[3];
	}
	local->port_be = bpf_htons(ctx->local_port);
	local->proto = ctx->protocol;
	local->pad = 0;
}

static __always_inline bool may_enter(const struct bpf_sk_lookup *ctx, const struct ax_addr *from,
				      const struct ax_vip *to, const struct ax_ctl *c)
{
	struct ax_vip *client = bpf_map_lookup_elem(&vips, from);
	int r;

	if (!client || client->kind != AX_VIP_APP)
		return c->host_access;
	/* a virtual IP as source is believed only from its owner's side (Linux 5.17) */
	if (ctx->ingress_ifindex != (client->ifindex ? client->ifindex : LO_IFINDEX))
		return false;
	r = ctx->protocol == IPPROTO_UDP ? party_may_datagram(&client->party, &to->party, c)
					 : party_may(&client->party, &to->party, c);
	return r == 0;
}

/* 0: assigned; else a negative errno. */
static __always_inline int assign_listener(struct bpf_sk_lookup *ctx, struct ax_endpoint *ep)
{
	struct bpf_sock *sk = bpf_map_lookup_elem(&listeners, ep);
	int r;

	if (!sk)
		return -ENOENT;
	r = bpf_sk_assign(ctx, sk, 0);
	bpf_sk_release(sk);
	return r;
}

/* For open_accepted(). */
static __always_inline void handed_to(const struct bpf_sk_lookup *ctx, const struct ax_addr *remote,
				      const struct ax_endpoint *local,
				      const struct ax_endpoint *backend)
{
	struct ax_flow_key flow = {.peer = *local};

	flow.client.addr = *remote;
	flow.client.port_be = ctx->remote_port;
	flow.client.proto = IPPROTO_TCP;
	bpf_map_update_elem(&flows, &flow, backend, BPF_ANY);
	outside_counts = true;
}

/* A service's address that no app owns, or whose owner shares it: TCP goes to a listener in this
 * namespace. */
static __always_inline int assign_backend(struct bpf_sk_lookup *ctx,
					  const struct ax_endpoint *local,
					  const struct ax_addr *remote)
{
	struct ax_service *svc = find_service(local);
	struct choice c = {.asked = *local};
	struct ax_endpoint ep = {};

	if (!svc)
		return -ENOENT;
	c.seed = bpf_get_prandom_u32();
	for (__u32 i = 0; i < CHOOSE_TRIES && choose_more(&c, svc); i++) {
		if (!choose_next(&c, svc, &ep) || assign_listener(ctx, &ep))
			continue;
		if (choose_counts(svc))
			handed_to(ctx, remote, local, &ep);
		return 0;
	}
	return -ENOENT;
}

SEC("sk_lookup")
int ax_sk_lookup(struct bpf_sk_lookup *ctx)
{
	const struct ax_ctl *c = ctl_get();
	struct ax_endpoint local;
	struct ax_addr remote;
	struct ax_vip *vip;

	if (!c)
		return SK_PASS;
	endpoints(ctx, &local, &remote);
	vip = bpf_map_lookup_elem(&vips, &local.addr);
	if (!vip || vip->kind == AX_VIP_HOST)
		return SK_PASS;
	if (!may_enter(ctx, &remote, vip, c)) {
		count(AX_COUNT_FABRIC_DENIED);
		return SK_DROP;
	}
	if (local.proto == IPPROTO_UDP) {
		/* servers are known by post_bind; ports from ephemeral_first on are clients' */
		if (ctx->local_port < c->ephemeral_first && !listening(&local))
			return SK_DROP;
		if (ctx->family == AF_INET6)
			assign_listener(ctx, &local); /* a dual-stack socket */
		return SK_PASS;
	}
	if (listening(&local)) {
		/* a socket on the other family's address needs a hand; the rest is found as ever */
		if (ctx->family == AF_INET6)
			assign_listener(ctx, &local);
		return SK_PASS;
	}
	if ((vip->flags & AX_VIP_SERVICES) && assign_backend(ctx, &local, &remote) == 0)
		return SK_PASS;
	return SK_DROP;
}
