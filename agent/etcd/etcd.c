// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/random.h>
#include <sys/timerfd.h>

#include "etcd/priv.h"

/* --- the timer --- */

static void arm(struct etcd *e)
{
	uint64_t at = e->curl_ns < e->tick_ns ? e->curl_ns : e->tick_ns;
	struct itimerspec ts = {0};

	if (at == e->armed_ns)
		return;
	e->armed_ns = at;
	if (at != NEVER) {
		at = at ? at : 1; /* 0 would disarm it */
		ts.it_value.tv_sec = (time_t)(at / NS_PER_S);
		ts.it_value.tv_nsec = (long)(at % NS_PER_S);
	}
	timerfd_settime(e->timer.fd, TFD_TIMER_ABSTIME, &ts, NULL);
}

void etcd_want_tick(struct etcd *e, uint64_t at_ns)
{
	if (at_ns < e->tick_ns)
		e->tick_ns = at_ns;
	if (!e->inside)
		arm(e);
}

static void tick(struct etcd *e)
{
	static uint64_t (*const parts[])(struct etcd *, uint64_t) = {
		endpoint_tick, etcd_leases_tick, etcd_watches_tick, requests_tick};
	uint64_t now = time_mono_ns(), at;

	if (now < e->tick_ns)
		return;
	e->tick_ns = NEVER;
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !e->closed; i++) {
		at = parts[i](e, now);
		etcd_want_tick(e, at);
	}
}

static void etcd_free(struct etcd *e)
{
	etcd_watches_close(e);
	etcd_leases_close(e);
	requests_close(e);
	transfer_end(e->at.probe);
	curl_close(e);
	if (e->timer.fd >= 0) {
		loop_del(e->epoll, &e->timer);
		close(e->timer.fd);
	}
	for (unsigned i = 0; i < e->at.n; i++)
		free(e->at.url[i]);
	free((char *)e->o.ca);
	free((char *)e->o.cert);
	free((char *)e->o.key);
	free(e);
}

void etcd_turn(struct etcd *e)
{
	transfers_tell(e);
	if (!e->closed)
		tick(e);
	if (!e->closed && e->at.changed_is_due) {
		e->at.changed_is_due = false;
		if (e->at.changed)
			e->at.changed(e->at.arg);
	}
	if (e->closed) {
		etcd_free(e);
		return;
	}
	requests_pump(e);
	e->inside = false;
	arm(e);
}

void etcd_on_timer(struct loop_item *item)
{
	struct etcd *e = LOOP_OWNER(item, struct etcd, timer);
	uint64_t times;
	int running;

	if (read(e->timer.fd, &times, sizeof(times)) < 0)
		return; /* it was set anew */
	e->armed_ns = NEVER;
	e->inside = true;
	if (time_mono_ns() >= e->curl_ns) {
		e->curl_ns = NEVER;
		e->curl->multi_socket_action(e->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	etcd_turn(e);
}

/* --- open and close --- */

/* SCHEME://HOST:PORT, and nothing that would lead elsewhere. */
static int add_endpoint(struct etcd *e, const char *url, struct error *err)
{
	const char *host = starts_with(url, "https://")	 ? url + 8
			   : starts_with(url, "http://") ? url + 7
							 : NULL;
	size_t len = strlen(url);

	if (host && len && url[len - 1] == '/')
		len--;
	if (!host || !*host || (size_t)(host - url) >= len || len > 256 ||
	    strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:[]_") <
		    len - (size_t)(host - url))
		return error_set(err, -EINVAL,
				 "'%.60s' is no endpoint of etcd: write https://ADDRESS:PORT (or "
				 "http://..., which is not encrypted)",
				 url);
	e->at.url[e->at.n] = strndup(url, len);
	if (!e->at.url[e->at.n])
		return error_set(err, -ENOMEM, "out of memory");
	e->at.n++;
	return 0;
}

static int take_file(const char **ret, const char *path, const char *what, struct error *err)
{
	*ret = NULL;
	if (!path)
		return 0;
	if (access(path, R_OK) < 0)
		return error_set(err, -errno,
				 "the %s of the cluster's etcd, %s, cannot be read: %s", what, path,
				 strerror(errno));
	*ret = strdup(path);
	return *ret ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int take_options(struct etcd *e, const struct etcd_options *o, struct error *err)
{
	uint32_t random = 0;
	int rc;

	e->o = *o;
	e->o.ca = e->o.cert = e->o.key = NULL;
	e->o.connect_ms = o->connect_ms ? o->connect_ms : 2000;
	e->o.attempt_ms = o->attempt_ms ? o->attempt_ms : 5000;
	e->o.request_ms = o->request_ms ? o->request_ms : 15000;
	e->o.probe_ms = o->probe_ms ? o->probe_ms : 5000;
	e->o.max_answer = o->max_answer ? o->max_answer : 8u << 20;
	e->o.max_waiting = o->max_waiting ? o->max_waiting : 4096;
	if (!o->n_endpoints || o->n_endpoints > MAX_ENDPOINTS)
		return error_set(err, -EINVAL, "a cluster has 1 to %d endpoints of etcd",
				 MAX_ENDPOINTS);
	if (!o->cert != !o->key)
		return error_set(err, -EINVAL,
				 "a certificate for etcd needs its key, and the other way round");
	for (size_t i = 0; i < o->n_endpoints; i++)
		if ((rc = add_endpoint(e, o->endpoints[i], err)) < 0)
			return rc;
	if ((rc = take_file(&e->o.ca, o->ca, "CA's certificate", err)) < 0 ||
	    (rc = take_file(&e->o.cert, o->cert, "certificate", err)) < 0 ||
	    (rc = take_file(&e->o.key, o->key, "certificate's key", err)) < 0)
		return rc;
	/* each agent begins with another member */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) > 0)
		e->at.turn = random % e->at.n;
	return 0;
}

static int open_timer(struct etcd *e, struct error *err)
{
	int rc = 0;

	e->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (e->timer.fd < 0 || (rc = loop_add(e->epoll, &e->timer, EPOLLIN)) < 0)
		return error_set(err, rc ? rc : -errno, "no timer for the cluster's etcd: %s",
				 strerror(rc ? -rc : errno));
	return 0;
}

int etcd_open(int epoll, const struct etcd_options *o, struct etcd **ret, struct error *err)
{
	struct etcd *e = calloc(1, sizeof(*e));
	int rc;

	*ret = NULL;
	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	e->epoll = epoll;
	e->timer = (struct loop_item){.kind = LOOP_ETCD_TIMER, .fd = -1};
	e->requests.end = &e->requests.first;
	e->curl_ns = e->tick_ns = e->armed_ns = NEVER;
	e->at.since_boot_s = time_boot_s();
	if ((rc = take_options(e, o, err)) < 0 || (rc = curl_open(e, err)) < 0 ||
	    (rc = open_timer(e, err)) < 0) {
		etcd_free(e);
		return rc;
	}
	etcd_want_tick(e, 0);
	*ret = e;
	return 0;
}

void etcd_close(struct etcd *e)
{
	if (!e)
		return;
	e->closed = true;
	if (!e->inside)
		etcd_free(e);
}

/* --- state --- */

void etcd_note(struct etcd *e, const char *why)
{
	snprintf(e->at.error, sizeof(e->at.error), "%s", why);
}

void etcd_on_change(struct etcd *e, void (*changed)(void *arg), void *arg)
{
	e->at.changed = changed;
	e->at.arg = arg;
}

struct etcd_state etcd_state(const struct etcd *e)
{
	return (struct etcd_state){
		.endpoint = e->at.url[e->at.turn],
		.connected = e->at.connected,
		.since_boot_s = e->at.since_boot_s,
		.cluster = e->at.seen.cluster,
		.member = e->at.seen.member,
		.revision = e->at.seen.revision,
		.failures = e->at.failures,
		.switches = e->at.switches,
		.waiting = e->requests.n,
		.error = e->at.error,
		.clock_known = e->at.clock_known,
		.clock_s = e->at.clock_s,
	};
}
