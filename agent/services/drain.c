/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "services/drain.h"
#include "base/log.h"
#include "config/config.h"
#include "registry/app_table.h"
#include "registry/events.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "services/ending.h"
#include "services/removed.h"
#include "services/services.h"

#define IS_OVER 1 /* long ago; an agent that does not know it ends once more what there is not */

struct drain {
	struct drain *next;
	char *service, *backend; /* as it was asked for */
	struct ax_addr addr;	 /* zero: it is an app's name */
	uint16_t port;		 /* 0: any */
	uint64_t until_ns;	 /* CLOCK_MONOTONIC; 0: no deadline; IS_OVER */
	bool ending;		 /* what is open is being ended */
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

bool drain_is_over(const struct drain *d)
{
	return d->until_ns == IS_OVER;
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

static void save(struct agent *a)
{
	autofree char *text = NULL;
	char path[128];
	size_t len;
	FILE *f;
	int r;

	a->hooks.servers(a); /* other nodes leave it alone, too */
	path_of(a, path);
	if (!a->drains) {
		unlink(path);
		return;
	}
	f = open_memstream(&text, &len);
	for (const struct drain *d = a->drains; f && d; d = d->next)
		fprintf(f, "%s %s %llu\n", d->service, d->backend, (unsigned long long)d->until_ns);
	r = f && fclose(f) == 0 ? file_replace(path, 0644, text) : -ENOMEM;
	if (r)
		log_error("what drains cannot be recorded in %s: %s", path, strerror(-r));
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
		found |= is_of(d, member_app_name(&m[i]), &m[i].addr, m[i].port);
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
	d->ending = false;
	a->timers_stale = true;
	save(a); /* first: an agent that dies now goes on with it */
	r = service_sync(a, s, e);
	events_drain(a, s->name, backend, "draining", -1);
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
	events_drain(a, s->name, backend, "serving", -1);
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

static bool has_udp(const struct service *s)
{
	bool udp = !s->conf || !s->conf->n_ports;

	for (size_t i = 0; s->conf && i < s->conf->n_ports; i++)
		udp |= s->conf->ports[i].proto == IPPROTO_UDP;
	return udp;
}

/* Whether it drains still, and its time is over. */
static bool is_due(const struct ending *e, const struct ending_backend *b)
{
	const struct drain *d = *find(e->a, e->service, e->what);

	(void)b;
	return d && d->ending;
}

/* (After that it is recorded: the agent that comes after one that was killed begins anew.) */
static void drained(const struct ending *e)
{
	const struct service *s = service_by_name(e->a, e->service);
	struct drain *d = *find(e->a, e->service, e->what);

	if (!d || !d->ending)
		return; /* somebody wants it otherwise now */
	d->ending = false;
	d->until_ns = IS_OVER;
	save(e->a);
	if (s)
		e->a->hooks.service_changed(e->a, s); /* lists of interfaces end theirs */
	log_info("service %s: %s has drained, %u connection%s had to be ended", e->service, e->what,
		 e->ended, e->ended == 1 ? "" : "s");
	events_drain(e->a, e->service, e->what, "drained", (int)e->ended);
}

/* Whether all that the service has at that address drains with it. */
static bool is_whole(const struct drain *d, const struct ax_addr *addr,
		     const struct service_member *m, size_t n)
{
	bool whole = true;

	for (size_t i = 0; i < n && d->port; i++)
		whole &= !addr_eq(&m[i].addr, addr) ||
			 is_of(d, member_app_name(&m[i]), addr, m[i].port);
	return whole;
}

static struct ending *ending_of(struct agent *a, const struct service *s, const struct drain *d)
{
	struct service_member *m = NULL;
	struct ending *e = NULL;
	size_t n = 0;

	if (service_members(a, s, &m, &n))
		return NULL;
	e = ending_new(a, s, n);
	for (size_t i = 0; e && i < n; i++)
		if (is_of(d, member_app_name(&m[i]), &m[i].addr, m[i].port))
			e->b[e->n++] =
				(struct ending_backend){.addr = m[i].addr,
							.port = d->port,
							.whole = is_whole(d, &m[i].addr, m, n)};
	free(m);
	if (!e)
		return NULL;
	e->tcp = true;
	e->outside_tcp = s->conf && removed_flags(s->conf) & AX_SERVICE_ENDS_TCP;
	e->udp = has_udp(s);
	e->holds = is_due;
	e->done = drained;
	e->what = strdup(d->backend);
	if (e->what)
		return e;
	ending_free(e);
	return NULL;
}

/* False: it cannot be for want of memory. */
static bool end_open(struct agent *a, struct drain *d)
{
	const struct service *s = service_by_name(a, d->service);
	struct ending *e = s ? ending_of(a, s, d) : NULL;

	d->ending = true;
	return e && ending_start(e);
}

uint64_t drains_deadline(const struct agent *a)
{
	uint64_t next = 0;

	for (const struct drain *d = a->drains; d; d = d->next)
		if (d->until_ns && !drain_is_over(d) && !d->ending && (!next || d->until_ns < next))
			next = d->until_ns;
	return next;
}

void drains_due(struct agent *a, uint64_t now_ns)
{
	struct drain *d = a->drains;
	bool any = false;

	while (d) {
		if (!d->until_ns || drain_is_over(d) || d->ending || d->until_ns > now_ns) {
			d = d->next;
			continue;
		}
		if (!end_open(a, d)) {
			d->ending = false;
			d->until_ns = IS_OVER;
			any = true;
		}
		d = a->drains; /* (without works it is done by now, and the list another) */
	}
	if (any)
		save(a);
}
