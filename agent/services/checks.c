/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <netinet/in.h>
#include <sys/socket.h>

#include "services/checks.h"
#include "base/address.h"
#include "config/config.h"
#include "health/health.h"
#include "net/netlink.h"
#include "registry/app_table.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "services/members.h"

static uint16_t check_port(const struct service *s, const struct service_member *m)
{
	const struct config_service *c = s->conf;

	if (c->check.port)
		return c->check.port;
	if (m->port)
		return m->port;
	for (size_t i = 0; i < c->n_ports; i++)
		if (c->ports[i].proto == IPPROTO_TCP)
			return c->ports[i].target;
	if (c->check.type == CHECK_EXEC && c->n_ports)
		return c->ports[0].target;
	return 0;
}

/* Not an app of the config that does not run, nor one of another node, and not without a port,
 * which only commands can do without. */
static bool target_of(const struct service *s, const struct service_member *m,
		      struct health_target *ret)
{
	bool needed = s->conf && s->conf->check.type != CHECK_EXEC;

	if (!s->conf || s->conf->check.type == CHECK_NONE || m->draining || m->declared || m->other)
		return false;
	*ret = (struct health_target){
		.addr = m->addr, .port = check_port(s, m), .app = m->app ? m->app->id : 0};
	return ret->port != 0 || !needed;
}

void checks_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n)
{
	autofree struct health_target *t = calloc(n + 1, sizeof(*t));
	size_t used = 0;

	if (!s->health && s->conf && s->conf->check.type != CHECK_NONE)
		s->health = health_group_new(a->health, s, s->name);
	if (!t || !s->health)
		return; /* not checked: all count as up */
	for (size_t i = 0; i < n; i++)
		used += target_of(s, &m[i], &t[used]);
	health_group_set(s->health, &s->conf->check, t, used);
}

void checks_mark(const struct service *s, struct service_member *m, size_t n)
{
	const void *place = NULL;

	for (size_t i = 0; s->health && i < n; i++) {
		struct health_target t;
		struct health_seen seen;

		if (!target_of(s, &m[i], &t))
			continue;
		seen = health_look(s->health, &t, &place);
		m[i].checked = seen.checked;
		m[i].down = seen.down;
		m[i].why = seen.why;
	}
}

void checks_forget(struct service *s)
{
	health_group_free(s->health);
	s->health = NULL;
}

/* --- the way to a backend --- */

struct check_socket {
	const struct ax_addr *addr, *from;
	int fd;
};

static int open_socket(void *arg)
{
	struct check_socket *ps = arg;
	bool v4 = addr_is_v4(ps->addr);
	struct sockaddr_storage ss;
	socklen_t len;

	ps->fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ps->fd < 0)
		return -errno;
	if (!ps->from)
		return 0;
	len = addr_to_sockaddr(ps->from, 0, &ss);
	if (bind(ps->fd, (struct sockaddr *)&ss, len) == 0)
		return 0;
	close(ps->fd);
	return -errno;
}

int checks_netns(struct agent *a, const struct health_target *t, int *fd)
{
	const struct app *asked = t->app ? app_by_id(a, t->app) : NULL;
	struct vip *v = a->config.host_access ? NULL : vip_find(a, &t->addr);
	const struct app *app = v ? v->app : NULL;

	*fd = -1;
	if (asked && asked->state == APP_STARTING)
		return -EAGAIN;
	if (!app)
		return 0;
	if (app->spec.net != NET_PRIVATE)
		return HEALTH_NO_WAY;
	*fd = app->netns_fd;
	return 0;
}

int checks_socket(void *arg, const struct health_target *t)
{
	struct agent *a = arg;
	struct vip *v = a->config.host_access ? NULL : vip_find(a, &t->addr);
	const struct app *asked = t->app ? app_by_id(a, t->app) : NULL;
	struct app *app = v ? v->app : NULL;
	struct check_socket cs = {.addr = &t->addr};
	int r;

	/* its address may not even be routed yet, and would be looked for elsewhere */
	if (asked && asked->state == APP_STARTING)
		return -EAGAIN;
	if (app && app->spec.net == NET_PRIVATE && app->netns_fd >= 0) {
		r = netns_call(app->netns_fd, open_socket, &cs);
		return r ? r : cs.fd;
	}
	if (app && app->spec.net == NET_HOST) {
		const struct policy_port port = {.proto = IPPROTO_TCP, .port = t->port};

		if (!policy_may(&a->policy, app->party, app->party, &port))
			return HEALTH_NO_WAY;
		cs.from = &t->addr;
	}
	r = open_socket(&cs);
	return r ? r : cs.fd;
}
