/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets that apps in host mode have connected to a port of this machine before it was exposed:
 * they are ended, so that their programs connect anew, where they are judged for what is there. */
#include <netinet/in.h>

#include "ingress/priv.h"
#include "base/log.h"
#include "base/work.h"
#include "datapath/datapath.h"
#include "net/sock_diag.h"
#include "registry/app_table.h"

struct unjudged {
	struct agent *a;
	bool udp, tcp;
	struct sock_conns found;
};

static int note(void *arg, const struct ax_unjudged *found)
{
	struct unjudged *u = arg;
	const struct sock_conn one = {found->local, found->remote, found->cookie, found->ifindex};

	return sock_conns_add(&u->found, &one);
}

/* 0 or a negative errno. */
static int end(struct unjudged *u)
{
	int r = 0;

	u->found.n = 0;
	if (u->udp)
		r = datapath_unjudged_each(u->a->dp, IPPROTO_UDP, note, u);
	if (u->tcp && !r)
		r = datapath_unjudged_each(u->a->dp, IPPROTO_TCP, note, u);
	if (u->found.n && !r)
		r = socks_end_conns(-1, u->found.v, u->found.n);
	return r < 0 ? r : 0;
}

/* By a thread. */
static void end_late(void *arg)
{
	datapath_wait_for_programs();
	end(arg);
}

/* What was being connected at that time has asked a hook that did not know of it yet. */
static void run_late(void *arg)
{
	struct agent *a = arg;
	struct unjudged u = {.a = a, .udp = a->ingress->late_udp, .tcp = a->ingress->late_tcp};

	a->ingress->late_udp = a->ingress->late_tcp = false;
	work_offload(a->work, end_late, &u);
	free(u.found.v);
}

/* One that has not begun yet does for all. */
static void begin_late(struct agent *a, bool udp, bool tcp)
{
	struct ingress *in = a->ingress;
	bool begun = in->late_udp || in->late_tcp;

	in->late_udp |= udp;
	in->late_tcp |= tcp;
	if (!begun && work_start(a->work, 0, run_late, a))
		in->late_udp = in->late_tcp = false;
}

void unjudged_end(struct agent *a, bool udp, bool tcp)
{
	struct unjudged u = {.a = a, .udp = udp, .tcp = tcp};
	int r;

	if ((!udp && !tcp) || !apps_any_in_host_mode(a))
		return;
	r = end(&u);
	free(u.found.v);
	if (r)
		log_warn("what apps in host mode have connected to a port before it was exposed "
			 "cannot be ended, and stays connected to it: %s",
			 strerror(-r));
	if (a->work)
		begin_late(a, udp, tcp);
}
