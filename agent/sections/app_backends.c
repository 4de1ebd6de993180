/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <net/if.h>

#include "sections/app_backends.h"
#include "base/log.h"
#include "iface/iface.h"
#include "registry/service_device.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "sections/managed.h"
#include "sections/xdp_list.h"

bool app_backends_in(struct agent *a, const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_balancers; i++) {
		const struct balancer *b = &l->balancers[i];

		for (size_t k = 0; k < b->n && b->mode == BALANCE_NAT; k++) {
			const struct vip *v = vip_find(a, &b->backends[k].addr);

			if (v && (v->app || v->declared))
				return true;
		}
	}
	return false;
}

/* No rules: what is no answer of an app to a balancer has no business there. (In generic mode it
 * would not see what tc redirects there.) */
static int put_list(struct agent *a, const char *ifname, struct error *e)
{
	const struct xdp_load_options o = {.force = true, .session = -1};
	CLEANUP(rule_list_free) struct rule_list l;
	bool same = false;
	int r;

	rule_list_init(&l);
	l.default_action = AX_VERDICT_DROP;
	l.mode = ATTACH_NATIVE;
	r = xdp_list_is_loaded(a->inst, ifname, &l, &same, e);
	return r || same ? r : xdp_apply(a->inst, ifname, &l, &o, e);
}

int app_backends_open(struct agent *a, struct error *e)
{
	char ifname[16];
	int r;

	if (a->xdp->apps)
		return 0;
	r = service_device_take_balancers(a, e);
	if (r)
		return r;
	service_device_peer(a, ifname);
	r = put_list(a, ifname, e);
	a->xdp->apps = r == 0;
	return r;
}

void app_backends_close(struct agent *a)
{
	struct error e = {0};
	char ifname[16];
	int r = 0;

	service_device_peer(a, ifname);
	if (if_nametoindex(ifname))
		r = xdp_unload(a->inst, ifname, &e);
	if (r && r != -ENOENT)
		log_warn("%s", e.text);
	e = (struct error){0};
	if (service_device_drop_balancers(a, &e))
		log_warn("%s", e.text);
	managed_unpin(a->inst, ifname);
	a->xdp->apps = false;
}
