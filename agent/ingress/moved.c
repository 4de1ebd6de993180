/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UDP ports that have come to a service, or from one to another: clients that have asked there
 * before go on with the former one's backend, until their flows are forgotten. */
#include <netinet/in.h>

#include "ingress/priv.h"
#include "base/work.h"
#include "datapath/datapath.h"

struct moved {
	struct agent *a;
	struct ax_endpoint *at; /* an address may be a wildcard */
	size_t n;
};

static bool is_moved(void *arg, const struct datapath_flow *f)
{
	const struct ax_addr any =
		addr_is_v4(&f->asked.addr) ? addr_from_v4(0) : (struct ax_addr){0};
	const struct moved *m = arg;

	for (size_t i = 0; f->kind == AX_FLOW_EXPOSED && i < m->n; i++)
		if (m->at[i].port_be == f->asked.port_be &&
		    (addr_eq(&m->at[i].addr, &f->asked.addr) || addr_eq(&m->at[i].addr, &any)))
			return true;
	return false;
}

/* By a thread. */
static void forget(void *arg)
{
	struct moved *m = arg;

	if (datapath_flows_each(m->a->dp, IPPROTO_UDP, is_moved, m) <= 0)
		return;
	/* a program that had found one of them may have written it anew */
	datapath_wait_for_programs();
	datapath_flows_each(m->a->dp, IPPROTO_UDP, is_moved, m);
}

static void run(void *arg)
{
	struct moved *m = arg;

	work_offload(m->a->work, forget, m);
	free(m->at);
	free(m);
}

void moved_note(struct agent *a, const struct ax_endpoint *at)
{
	struct ingress *in = a->ingress;
	void *more = reallocarray(in->moved, in->n_moved + 1, sizeof(*in->moved));

	if (!more)
		return; /* out of memory: flows end by themselves, but later */
	in->moved = more;
	in->moved[in->n_moved++] = *at;
}

void moved_forget(struct agent *a)
{
	struct moved *m = a->ingress->n_moved ? malloc(sizeof(*m)) : NULL;

	if (!m)
		return;
	*m = (struct moved){.a = a, .at = a->ingress->moved, .n = a->ingress->n_moved};
	a->ingress->moved = NULL;
	a->ingress->n_moved = 0;
	if (!a->work) {
		run(m);
		return;
	}
	if (work_start(a->work, 0, run, m)) {
		free(m->at);
		free(m);
	}
}
