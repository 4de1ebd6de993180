/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "services/outside.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "registry/service_table.h"
#include "registry/state.h"

int outside_ports(struct ending *e, const struct service *s)
{
	const struct expose_list *l = s->conf ? &s->conf->expose : NULL;
	size_t n = l ? l->n : 0;

	e->outside = n || e->a->ctl.service_ifindex || e->a->ctl.exposed;
	e->ports = calloc(n + 1, sizeof(*e->ports));
	if (!e->ports)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		e->ports[e->n_ports++] = (struct ax_endpoint){.addr = l->v[i].addr,
							      .port_be = htons(l->v[i].host_port),
							      .proto = l->v[i].proto};
	return 0;
}

static bool is_exposed(const struct ending *e, const struct ax_endpoint *asked)
{
	for (size_t i = 0; i < e->n_ports; i++) {
		const struct ax_endpoint *p = &e->ports[i];

		if (p->port_be == asked->port_be && p->proto == asked->proto &&
		    (addr_is_zero(&p->addr) || addr_eq(&p->addr, &asked->addr)))
			return true;
	}
	return false;
}

/* Whether it came through the service, or one of the services, to one of the backends. */
static bool is_of(const struct ending *e, const struct datapath_flow *f)
{
	struct ending_backend one = {.addr = f->backend.addr, .port = ntohs(f->backend.port_be)};

	if (f->kind == AX_FLOW_EXPOSED && !is_exposed(e, &f->asked))
		return false;
	if (f->kind == AX_FLOW_SERVICE)
		one.vip = ending_vip(e, &f->asked.addr);
	return ending_has(e, &one);
}

/* --- datagrams --- */

static bool is_stuck(void *arg, const struct datapath_flow *f)
{
	return is_of(arg, f);
}

void outside_forget_datagrams(struct ending *e)
{
	int n = datapath_flows_each(e->a->dp, IPPROTO_UDP, is_stuck, e);

	if (n <= 0)
		return;
	e->ended += (uint32_t)n;
	/* a program that had found one of them, or the list of before, may have written it anew */
	datapath_wait_for_programs();
	datapath_flows_each(e->a->dp, IPPROTO_UDP, is_stuck, e);
}

/* --- TCP --- */

/* A backend's socket: its own end, and the client's as it sees it. */
struct ending_flow {
	struct ax_endpoint ends[2];
	struct ax_addr vip; /* as struct ending_backend's */
};

static int compare_flow(const void *x, const void *y)
{
	const struct ending_flow *a = x, *b = y;

	return memcmp(a->ends, b->ends, sizeof(a->ends));
}

static bool note_flow(void *arg, const struct datapath_flow *f)
{
	struct ending *e = arg;
	struct ending_flow *one;

	if (!f->lives || f->state & AX_FLOW_RESET || !is_of(e, f))
		return false;
	if (!(f->state & (AX_FLOW_ANSWERED | AX_FLOW_OPEN)))
		return true;
	if (e->n_flows == e->flows_size) {
		size_t more = e->flows_size ? 2 * e->flows_size : 64;
		void *p = reallocarray(e->flows, more, sizeof(*e->flows));

		if (!p)
			return false; /* less is ended */
		e->flows = p;
		e->flows_size = more;
	}
	one = &e->flows[e->n_flows++];
	*one = (struct ending_flow){.ends = {f->backend, f->client}};
	one->ends[1].port_be = f->seen_port_be;
	if (f->kind == AX_FLOW_SERVICE)
		one->vip = ending_vip(e, &f->asked.addr);
	return false;
}

void outside_note_flows(struct ending *e)
{
	e->n_flows = 0;
	datapath_flows_each(e->a->dp, IPPROTO_TCP, note_flow, e);
	if (e->n_flows)
		qsort(e->flows, e->n_flows, sizeof(*e->flows), compare_flow);
}

bool outside_has(const struct ending *e, const struct ax_conn *c)
{
	const struct ending_flow one = {.ends = {c->local, c->remote}}, *f = NULL;
	struct ending_backend b = {.addr = c->local.addr, .port = ntohs(c->local.port_be)};

	if (e->n_flows)
		f = bsearch(&one, e->flows, e->n_flows, sizeof(*e->flows), compare_flow);
	if (!f)
		return false;
	b.vip = f->vip;
	return ending_has(e, &b); /* it may have come back meanwhile */
}

/* Which of its ports has accepted a connection, a socket does not say: it has the service's. */
static bool is_whole(const struct ending *e, const struct ending_backend *of)
{
	size_t first = 0, behind = e->n;

	while (first < behind) {
		size_t middle = (first + behind) / 2;

		if (ending_compare(&e->b[middle], of) < 0)
			first = middle + 1;
		else
			behind = middle;
	}
	for (; first < e->n && addr_eq(&e->b[first].addr, &of->addr) &&
	       addr_eq(&e->b[first].vip, &of->vip);
	     first++)
		if (!e->b[first].port || e->b[first].whole)
			return true;
	return false;
}

static int note_accepted(void *arg, const struct ax_accepted *c)
{
	struct ending *e = arg;
	struct ending_backend one = {.addr = c->app};

	if (!is_exposed(e, &c->local))
		one.vip = ending_vip(e, &c->local.addr);
	return is_whole(e, &one) ? ending_note(e, &c->local, &c->remote, c->cookie) : 0;
}

void outside_note_accepted(struct ending *e)
{
	datapath_accepted_each(e->a->dp, note_accepted, e);
}
