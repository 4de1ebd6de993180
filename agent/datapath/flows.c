/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs outside ax have with apps: sockets of apps in host mode, and flows. */
#include <bpf/bpf.h>
#include <netinet/in.h>

#include "base/address.h"
#include "datapath/priv.h"

struct accepted_each {
	int (*f)(void *arg, const struct ax_accepted *c);
	void *arg;
};

static int each_accepted(void *arg, const void *record)
{
	struct accepted_each *e = arg;

	return e->f(e->arg, record);
}

int datapath_accepted_each(struct datapath *dp, int (*f)(void *arg, const struct ax_accepted *c),
			   void *arg)
{
	struct accepted_each e = {.f = f, .arg = arg};

	return datapath_iter_each(dp->accepted, -1, sizeof(struct ax_accepted), each_accepted, &e);
}

struct unjudged_each {
	int (*f)(void *arg, const struct ax_unjudged *u);
	void *arg;
};

static int each_unjudged(void *arg, const void *record)
{
	struct unjudged_each *e = arg;

	return e->f(e->arg, record);
}

int datapath_unjudged_each(struct datapath *dp, uint8_t proto,
			   int (*f)(void *arg, const struct ax_unjudged *u), void *arg)
{
	const struct bpf_link *iter = proto == IPPROTO_UDP ? dp->unjudged_udp : dp->unjudged_tcp;
	struct unjudged_each e = {.f = f, .arg = arg};

	return datapath_iter_each(iter, -1, sizeof(struct ax_unjudged), each_unjudged, &e);
}

int datapath_forbidden_each(struct datapath *dp, int (*f)(void *arg, const struct ax_unjudged *u),
			    void *arg)
{
	struct unjudged_each e = {.f = f, .arg = arg};

	return datapath_iter_each(dp->forbidden_udp, -1, sizeof(struct ax_unjudged), each_unjudged,
				  &e);
}

/* As flow_is_over() of bpf/flows.bpf.h. */
static bool is_over(const struct ax_flow *f, uint8_t proto, uint32_t now)
{
	bool closed = f->state & AX_FLOW_RESET || (f->state & AX_FLOW_FINS) == AX_FLOW_FINS;
	uint32_t life = proto == IPPROTO_UDP	  ? AX_FLOW_LIFE_UDP
			: closed		  ? AX_FLOW_LIFE_CLOSED
			: f->state & AX_FLOW_OPEN ? AX_FLOW_LIFE_OPEN
						  : AX_FLOW_LIFE_NEW;

	return now - f->seen > life;
}

struct flows_each {
	struct datapath *dp;
	bool (*f)(void *arg, const struct datapath_flow *flow);
	void *arg;
	enum datapath_map map;
	uint32_t now;
	int forgotten;
};

/* A packet may have come since the entry was seen: under the same key there is another flow then,
 * which goes elsewhere. */
static bool forget_in(const struct flows_each *e, enum datapath_map m,
		      const struct ax_flow_key *key, const struct ax_endpoint *to)
{
	int map = e->dp->map[m];
	struct ax_flow now;

	return bpf_map_lookup_elem(map, key, &now) == 0 && now.to.port_be == to->port_be &&
	       addr_eq(&now.to.addr, &to->addr) && bpf_map_delete_elem(map, key) == 0;
}

/* True: it was there. TCP's may be on its way from one map to the other. */
static bool forget_entry(const struct flows_each *e, const struct ax_flow_key *key,
			 const struct ax_endpoint *to)
{
	bool was = forget_in(e, e->map, key, to);

	if (e->map == MAP_UDP_FLOWS)
		return was;
	return forget_in(e, e->map == MAP_FLOWS ? MAP_NEW_FLOWS : MAP_FLOWS, key, to) || was;
}

static void forget(struct flows_each *e, const struct datapath_flow *flow)
{
	const struct ax_flow_key from_client = {.client = flow->client, .peer = flow->asked};
	struct ax_flow_key from_backend = {.client = flow->client, .peer = flow->backend};
	/* once, though both entries come by */
	bool was = forget_entry(e, &from_client, &flow->backend);

	from_backend.client.port_be = flow->seen_port_be;
	forget_entry(e, &from_backend, &flow->asked);
	e->forgotten += was && flow->lives;
}

/* Which direction an entry is of its own does not say: whoever looks for a backend, or for who was
 * asked, finds it in the one place or in the other. */
static int each_flow(void *arg, const void *key, const void *value)
{
	const struct ax_flow_key *k = key;
	const struct ax_flow *v = value;
	struct flows_each *e = arg;
	struct datapath_flow flow = {.client = k->client,
				     .asked = k->peer,
				     .backend = v->to,
				     .seen_port_be = v->client_port_be,
				     .kind = v->kind,
				     .state = v->state,
				     .lives = !is_over(v, k->client.proto, e->now)};

	if (v->kind == AX_FLOW_DIRECT) /* to the app itself, whoever has it among its backends */
		return 0;
	if (e->f(e->arg, &flow)) {
		forget(e, &flow);
		return 0;
	}
	flow.client.port_be = v->client_port_be;
	flow.seen_port_be = k->client.port_be;
	flow.asked = v->to;
	flow.backend = k->peer;
	if (e->f(e->arg, &flow))
		forget(e, &flow);
	return 0;
}

int datapath_flows_each(struct datapath *dp, uint8_t proto,
			bool (*f)(void *arg, const struct datapath_flow *flow), void *arg)
{
	struct flows_each e = {.dp = dp,
			       .f = f,
			       .arg = arg,
			       .map = proto == IPPROTO_UDP ? MAP_UDP_FLOWS : MAP_NEW_FLOWS,
			       .now = (uint32_t)(time_mono_ns() >> 30)};
	int r = map_walk(dp, e.map, sizeof(struct ax_flow_key), sizeof(struct ax_flow), each_flow,
			 &e);

	if (!r && proto == IPPROTO_TCP) {
		e.map = MAP_FLOWS; /* what has become open meanwhile has come here */
		r = map_walk(dp, e.map, sizeof(struct ax_flow_key), sizeof(struct ax_flow),
			     each_flow, &e);
	}
	return r ? r : e.forgotten;
}
