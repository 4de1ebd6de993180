/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program at the host's interfaces, there while something is exposed that packets are
 * translated for, and the addresses that are the host's.
 */
#include "ingress/ingress.h"
#include "ingress/priv.h"
#include "base/log.h"
#include "base/loop.h"
#include "datapath/datapath.h"
#include "net/host_links.h"
#include "net/local_source.h"
#include "net/traffic_control.h"
#include "registry/app_table.h"
#include "registry/vips.h"

static const struct attached *attached_at(const struct ingress *in, unsigned ifindex)
{
	for (size_t i = 0; i < in->n_attached; i++)
		if (in->attached[i].ifindex == ifindex)
			return &in->attached[i];
	return NULL;
}

struct links {
	struct agent *a;
	struct attached *v;
	size_t n;
};

/* Nothing of this instance is left there; nor a place for programs that it has made, if it is
 * empty. (An agent that was killed is not asked any more whether it had made it: then it stays.) */
static void clear(struct agent *a, unsigned ifindex)
{
	const struct attached *was = a->ingress ? attached_at(a->ingress, ifindex) : NULL;

	datapath_outside_detach(a->nl, ifindex, a->inst->route_metric);
	if (was && was->made && !nl_link_has_filters(a->nl, ifindex))
		tc_clsact_del(a->nl, ifindex);
}

static int attach_one(void *arg, const struct nl_host_link *link)
{
	struct links *l = arg;
	const struct attached *was = attached_at(l->a->ingress, link->ifindex);
	bool answers = l->a->ctl.exposed & AX_EXPOSED_HOST_UDP, made = false;
	struct attached *more;
	int r = 0;

	if (link->enslaved) { /* what comes in by it is its master's */
		if (was)
			clear(l->a, link->ifindex);
		return 0;
	}
	more = reallocarray(l->v, l->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->v = more;
	if (!was || was->answers != answers)
		r = datapath_outside_attach(l->a->dp, l->a->nl, link->ifindex,
					    l->a->inst->route_metric, answers, &made);
	if (r)
		log_warn("exposed ports are not reached by the interface %u: %s", link->ifindex,
			 strerror(-r));
	else
		l->v[l->n++] = (struct attached){.ifindex = link->ifindex,
						 .answers = answers,
						 .made = made || (was && was->made)};
	return 0;
}

/* Interfaces that have gone took their programs along. */
static int attach_all(struct agent *a)
{
	struct links l = {.a = a};
	int r = nl_host_link_each(a->nl, attach_one, &l);

	free(a->ingress->attached);
	a->ingress->attached = l.v;
	a->ingress->n_attached = l.n;
	return r;
}

struct addrs {
	struct agent *a;
	struct ax_addr *v;
	size_t n;
};

static int note_addr(void *arg, const struct ax_addr *addr)
{
	struct addrs *l = arg;
	struct ax_addr *more;

	if (vip_find(l->a, addr)) /* ax's own */
		return 0;
	more = reallocarray(l->v, l->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->v = more;
	l->v[l->n++] = *addr;
	return 0;
}

/* 1: others than before; 0; or a negative errno. */
static int tell_addrs(struct agent *a)
{
	struct addrs l = {.a = a};
	int r = nl_host_addr_each(a->nl, note_addr, &l);

	r = r ? r : datapath_local_addrs(a->dp, l.v, l.n);
	free(l.v);
	return r;
}

int ingress_watch(struct agent *a)
{
	struct ingress *in = a->ingress;
	int fd;

	if (in->links.fd >= 0)
		return 0;
	fd = nl_host_watch();
	if (fd < 0)
		return fd;
	in->links.kind = LOOP_INGRESS;
	in->links.fd = fd;
	fd = loop_add(a->epoll, &in->links, EPOLLIN);
	if (fd)
		close_fd(&in->links.fd);
	if (!fd)
		fd = tell_addrs(a);
	return fd < 0 ? fd : 0;
}

static void unwatch(struct agent *a)
{
	loop_del(a->epoll, &a->ingress->links);
	close_fd(&a->ingress->links.fd);
}

static int detach_one(void *arg, const struct nl_host_link *link)
{
	clear(arg, link->ifindex);
	return 0;
}

static void device_name(const struct agent *a, const struct app *app, char name[16])
{
	snprintf(name, 16, "%s%u", a->inst->device_prefix, app->id);
}

void ingress_detach(struct agent *a)
{
	char device[16];

	nl_host_link_each(a->nl, detach_one, a);
	if (a->ingress) {
		if (!a->ctl.exposed)
			unwatch(a);
		free(a->ingress->attached);
		a->ingress->attached = NULL;
		a->ingress->n_attached = 0;
	}
	for (const struct app *app = a->apps; app; app = app->next) {
		device_name(a, app, device);
		if (app->ifindex)
			local_source_device(device, false);
	}
	local_source_restore(a->inst);
}

/* By the host's routes packets leave for clients: the kernel tells them of no interface that may
 * not forward. */
void ingress_device(struct agent *a, const struct app *app)
{
	char device[16];

	if (!app->ifindex || !(a->ctl.exposed & AX_EXPOSED_PACKETS))
		return;
	device_name(a, app, device);
	local_source_device(device, true);
}

/* The addresses come before the programs that ask for them, and that before the ports. */
int ingress_attach(struct agent *a)
{
	int r = ingress_watch(a);

	r = r ? r : local_source_on(a->inst);
	r = r ? r : attach_all(a);
	for (const struct app *app = a->apps; app && !r; app = app->next)
		ingress_device(a, app);
	return r;
}

void ingress_on_link(struct agent *a)
{
	int r;

	if (!nl_host_watch_read(a->ingress->links.fd))
		return;
	r = tell_addrs(a);
	if (r > 0) /* somebody may have connected to an address that is this machine's since now */
		unjudged_end(a, true, true);
	if (r < 0 || (a->ctl.exposed & AX_EXPOSED_PACKETS && attach_all(a)))
		log_warn("the host's interfaces cannot be read: exposed ports may not be reached "
			 "by new ones");
	ingress_links_changed(a);
}
