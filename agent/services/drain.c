/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "services/drain.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "net/sock_diag.h"
#include "registry/app_table.h"
#include "registry/events.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/services.h"

struct drain {
	struct drain *next;
	char *service, *backend; /* as it was asked for */
	struct ax_addr addr;	 /* zero: it is an app's name */
	uint16_t port;		 /* 0: any */
	uint64_t until_ns;	 /* CLOCK_MONOTONIC; 0: no deadline, or that is over */
};

static void drain_free(struct drain *d)
{
	free(d->service);
	free(d->backend);
	free(d);
}

void drains_free(struct agent *a)
{
	while (a->drains) {
		struct drain *d = a->drains;

		a->drains = d->next;
		drain_free(d);
	}
}

/* 1.2.3.4, 1.2.3.4:80, fd00::1, [fd00::1]:80; else it is a name. */
static void parse_backend(const char *text, struct drain *d)
{
	__be16 port_be = 0;

	if (addr_parse(text, &d->addr) == 0)
		return;
	if (addr_port_parse(text, &d->addr, &port_be) == 0)
		d->port = ntohs(port_be);
	else
		memset(&d->addr, 0, sizeof(d->addr));
}

static struct drain *drain_new(struct agent *a, const char *service, const char *backend)
{
	struct drain *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->service = strdup(service);
	d->backend = strdup(backend);
	if (!d->service || !d->backend) {
		drain_free(d);
		return NULL;
	}
	parse_backend(backend, d);
	d->next = a->drains;
	a->drains = d;
	return d;
}

static struct drain **find(struct agent *a, const char *service, const char *backend)
{
	struct drain **p = &a->drains;

	while (*p && (!streq((*p)->service, service) || !streq((*p)->backend, backend)))
		p = &(*p)->next;
	return p;
}

static bool is_of(const struct drain *d, const char *app, const struct ax_addr *addr, uint16_t port)
{
	if (addr_is_zero(&d->addr))
		return app && streq(d->backend, app);
	return addr_eq(&d->addr, addr) && (!d->port || !port || d->port == port);
}

const struct drain *drain_of(const struct agent *a, const struct service *s, const char *app,
			     const struct ax_addr *addr, uint16_t port)
{
	for (const struct drain *d = a->drains; d; d = d->next)
		if (streq(d->service, s->name) && is_of(d, app, addr, port))
			return d;
	return NULL;
}

uint64_t drain_left_ms(const struct drain *d)
{
	uint64_t now = time_mono_ns();

	return d->until_ns > now ? (d->until_ns - now) / 1000000 : 0;
}

/* --- the record: a line for each --- */

static void path_of(const struct agent *a, char buf[128])
{
	snprintf(buf, 128, "%s/drains", a->inst->run_dir);
}

static void save(const struct agent *a)
{
	char path[128], tmp[136];
	bool failed;
	FILE *f;

	path_of(a, path);
	if (!a->drains) {
		unlink(path);
		return;
	}
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	unlink(tmp);
	f = fopen(tmp, "wxe");
	failed = !f;
	for (const struct drain *d = a->drains; f && d; d = d->next)
		failed |= fprintf(f, "%s %s %llu\n", d->service, d->backend,
				  (unsigned long long)d->until_ns) < 0;
	if (f)
		failed |= fclose(f) != 0;
	if (failed || rename(tmp, path))
		log_error("what drains cannot be recorded in %s: %s", path, strerror(errno));
}

void drains_load(struct agent *a)
{
	char path[128], service[128], backend[128];
	unsigned long long until;
	FILE *f;

	path_of(a, path);
	f = fopen(path, "re");
	while (f && fscanf(f, "%127s %127s %llu", service, backend, &until) == 3) {
		struct drain *d = drain_new(a, service, backend);

		if (d)
			d->until_ns = until;
	}
	if (f)
		fclose(f);
	a->timers_stale = true;
}

/* --- beginning and end --- */

static bool is_backend(struct agent *a, const struct service *s, const struct drain *d)
{
	struct service_member *m = NULL;
	bool found = false;
	size_t n = 0;

	for (size_t i = 0; s->conf && i < s->conf->n_backends; i++)
		found |= s->conf->backends[i].app &&
			 is_of(d, s->conf->backends[i].app, &s->conf->backends[i].address, 0);
	if (found || service_members(a, s, &m, &n))
		return found;
	for (size_t i = 0; i < n; i++)
		found |= is_of(d, m[i].app ? m[i].app->spec.name : NULL, &m[i].addr, m[i].port);
	free(m);
	return found;
}

static void drain_remove(struct drain **p)
{
	struct drain *d = *p;

	*p = d->next;
	drain_free(d);
}

int service_drain(struct agent *a, struct service *s, const char *backend, uint32_t deadline_ms,
		  struct error *e)
{
	struct drain **p = find(a, s->name, backend), *d = *p;
	int r;

	if (!deadline_ms && s->conf)
		deadline_ms = s->conf->drain_ms;
	if (!d && (strpbrk(backend, " \t\n") || strlen(backend) > 100))
		return error_set(e, -EINVAL, "a backend is an app's name or an address");
	if (!d) {
		d = drain_new(a, s->name, backend);
		if (!d)
			return error_set(e, -ENOMEM, "out of memory");
		if (!is_backend(a, s, d)) {
			drain_remove(&a->drains);
			return error_set(e, -ENOENT,
					 "service %s has no backend %s: see 'ax get services'",
					 s->name, backend);
		}
	}
	d->until_ns = deadline_ms ? time_mono_ns() + deadline_ms * 1000000ull : 0;
	a->timers_stale = true;
	save(a); /* first: an agent that dies now goes on with it */
	r = service_sync(a, s, e);
	events_drain(a, s, backend, "draining", -1);
	return r;
}

int service_undrain(struct agent *a, struct service *s, const char *backend, struct error *e)
{
	struct drain **p = find(a, s->name, backend);
	int r;

	if (!*p)
		return error_set(e, -ENOENT, "%s of service %s does not drain", backend, s->name);
	drain_remove(p);
	save(a);
	r = service_sync(a, s, e);
	events_drain(a, s, backend, "serving", -1);
	return r;
}

void drains_forget(struct agent *a, const char *service)
{
	bool any = false;

	for (struct drain **p = &a->drains; *p;) {
		if (!streq((*p)->service, service)) {
			p = &(*p)->next;
			continue;
		}
		drain_remove(p);
		any = true;
	}
	if (any)
		save(a);
}

/* --- the deadline --- */

/* The connections of one network namespace that are to be ended. */
struct stuck {
	const struct service *s;
	struct ax_addr addr; /* of the backend */
	uint16_t port;
	struct ax_endpoint (*ends)[2];
	size_t n, size;
};

static int note_stuck(void *arg, const struct ax_conn *c)
{
	struct stuck *k = arg;

	if (!addr_eq(&c->remote.addr, &k->addr) || !c->asked.port_be ||
	    (!addr_eq(&c->asked.addr, &k->s->vip4) && !addr_eq(&c->asked.addr, &k->s->vip6)) ||
	    (k->port && c->remote.port_be != htons(k->port)))
		return 0;
	if (k->n == k->size) {
		size_t more = k->size ? 2 * k->size : 64;
		void *p = realloc(k->ends, more * sizeof(*k->ends));

		if (!p)
			return -ENOMEM;
		k->ends = p;
		k->size = more;
	}
	k->ends[k->n][0] = c->local;
	k->ends[k->n++][1] = c->remote;
	return 0;
}

static bool has_udp(const struct service *s)
{
	bool udp = !s->conf || !s->conf->n_ports;

	for (size_t i = 0; s->conf && i < s->conf->n_ports; i++)
		udp |= s->conf->ports[i].proto == IPPROTO_UDP;
	return udp;
}

/* Returns how many were ended. */
static int end_in(struct agent *a, int netns_fd, struct stuck *k)
{
	int r, ended;

	k->n = 0;
	datapath_conns_each(a->dp, netns_fd, note_stuck, k);
	ended = k->n ? socks_end_tcp(netns_fd, (const struct ax_endpoint(*)[2])k->ends, k->n) : 0;
	r = has_udp(k->s) ? socks_end_udp(netns_fd, &k->addr) : 0;
	return (ended > 0 ? ended : 0) + (r > 0 ? r : 0);
}

static int end_address(struct agent *a, struct stuck *k)
{
	int ended = end_in(a, -1, k);

	for (const struct app *x = a->apps; x; x = x->next) {
		autoclose int fd = x->spec.net == NET_PRIVATE ? app_netns(x) : -1;

		if (fd >= 0)
			ended += end_in(a, fd, k);
	}
	return ended;
}

static void end_open(struct agent *a, const struct drain *d)
{
	const struct service *s = service_by_name(a, d->service);
	struct service_member *m = NULL;
	int ended = 0;
	size_t n = 0;

	if (!s || service_members(a, s, &m, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		struct stuck k = {.s = s, .addr = m[i].addr, .port = d->port};

		if (is_of(d, m[i].app ? m[i].app->spec.name : NULL, &m[i].addr, m[i].port))
			ended += end_address(a, &k);
		free(k.ends);
	}
	free(m);
	log_info("service %s: %s has drained, %d connection%s had to be ended", s->name, d->backend,
		 ended, ended == 1 ? "" : "s");
	events_drain(a, s, d->backend, "drained", ended);
}

uint64_t drains_deadline(const struct agent *a)
{
	uint64_t next = 0;

	for (const struct drain *d = a->drains; d; d = d->next)
		if (d->until_ns && (!next || d->until_ns < next))
			next = d->until_ns;
	return next;
}

void drains_due(struct agent *a, uint64_t now_ns)
{
	bool any = false;

	for (struct drain *d = a->drains; d; d = d->next) {
		if (!d->until_ns || d->until_ns > now_ns)
			continue;
		end_open(a, d);
		d->until_ns = 0;
		any = true;
	}
	if (any)
		save(a);
}
