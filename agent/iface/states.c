// SPDX-License-Identifier: GPL-2.0-or-later
/* Of whom lists ask for states, besides this host's sockets. */
#include "iface/priv.h"
#include "net/forwarding.h"

static bool asks_state(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (!condition_is_empty(&l->rules[i].in[AX_FIELD_STATE]))
			return true;
	return false;
}

bool xdp_keeps_flows(const struct rule_list *l)
{
	if (!asks_state(l) || l->track == TRACK_KERNEL)
		return false;
	if (l->track == TRACK_OWN)
		return true;
	return forwarding_is_on() && !datapath_xdp_can_ask_conntrack();
}

int xdp_bind_flows(const struct datapath_xdp *d, struct ax_layout *layout, enum ax_flows flows)
{
	layout->flows = flows;
	return flows ? datapath_xdp_flows_key(d, layout->flows_key) : 0;
}

bool xdp_lacks_states(struct xdp *x)
{
	const struct ax_layout *l = &x->g.layout;

	if (xdp_refresh(x) || !l->field[AX_FIELD_STATE].used || l->conntrack)
		return false;
	if (x->list.track != TRACK_OWN && !l->trackable && datapath_xdp_has_conntrack())
		return true;
	return !l->flows && xdp_keeps_flows(&x->list);
}
