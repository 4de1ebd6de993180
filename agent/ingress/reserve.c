/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeping a port from others. What is in the way of that, connections of a former server or a
 * program that was there before this agent, goes some time, and nobody tells of it. */
#include "ingress/ingress.h"
#include "ingress/priv.h"
#include "base/log.h"
#include "net/sock_port.h"

static struct ax_addr bind_addr(const struct expose *x, int family)
{
	if (!addr_is_zero(&x->addr) || family == V6)
		return x->addr;
	return addr_from_v4(0);
}

static int in_use(const struct expose *x, int family, struct error *e)
{
	char text[EXPOSE_STRLEN], at[ADDR_STRLEN];
	struct port_holder h;
	int r = port_holder(family == V4 ? AF_INET : AF_INET6, x->proto, x->host_port, &h);

	if (r > 0 && !h.listens)
		return 0; /* connections of a former server, which will end */
	if (r > 0 && !addr_is_zero(&h.addr))
		addr_port_format(&h.addr, htons(x->host_port), at);
	else
		snprintf(at, sizeof(at), "port %u", x->host_port);
	if (r > 0)
		return error_set(e, -EADDRINUSE,
				 "cannot expose %s: a program of user %u has %s/%s of this "
				 "machine: end it, or expose another port",
				 expose_format(x, text), h.uid, at, expose_proto(x));
	return error_set(e, -EADDRINUSE, "cannot expose %s: that port of this machine is in use",
			 expose_format(x, text));
}

int reserve(struct exposure *x, int family, bool known, struct error *e)
{
	struct ax_addr addr = bind_addr(&x->x, family);
	int r = port_reserve(&addr, x->x.proto, x->x.host_port, x->x.device);
	char text[EXPOSE_STRLEN];
	struct error why = {0};

	if (r >= 0) {
		x->fd[family] = r;
		return 0;
	}
	if (r == -ENODEV) {
		log_warn("%s is exposed when there is such an interface",
			 expose_format(&x->x, text));
		return 0;
	}
	if (r == -EADDRINUSE)
		r = in_use(&x->x, family, &why);
	else
		error_set(&why, r, "cannot expose %s: %s", expose_format(&x->x, text),
			  strerror(-r));
	if (!r)
		return 0;
	if (known) {
		log_warn("%s; it stays exposed", why.text);
		return 0;
	}
	if (e)
		*e = why;
	return r;
}

/* --- what could not be kept --- */

#define AGAIN_MIN_MS 500
#define AGAIN_MAX_MS 30000
#define NS_PER_MS    1000000ull

void reserve_later(struct agent *a)
{
	struct ingress *in = a->ingress;

	in->again_ms = AGAIN_MIN_MS;
	in->again_ns = time_mono_ns() + AGAIN_MIN_MS * NS_PER_MS;
	a->timers_stale = true;
}

/* False: there is still something in the way. */
static bool keep(struct exposure *x, int family)
{
	struct ax_addr addr;

	if (!x->has[family] || x->fd[family] >= 0)
		return true;
	addr = bind_addr(&x->x, family);
	x->fd[family] = port_reserve(&addr, x->x.proto, x->x.host_port, x->x.device);
	return x->fd[family] >= 0;
}

void ingress_due(struct agent *a, uint64_t now_ns)
{
	struct ingress *in = a->ingress;
	bool all = true;

	if (!ingress_deadline(a) || in->again_ns > now_ns)
		return;
	for (struct exposure *x = in->list; x; x = x->next)
		for (int f = 0; f < FAMILIES; f++)
			all = keep(x, f) && all;
	in->again_ms = 2 * in->again_ms < AGAIN_MAX_MS ? 2 * in->again_ms : AGAIN_MAX_MS;
	in->again_ns = all ? 0 : now_ns + in->again_ms * NS_PER_MS;
}

uint64_t ingress_deadline(const struct agent *a)
{
	return a->ingress ? a->ingress->again_ns : 0;
}
