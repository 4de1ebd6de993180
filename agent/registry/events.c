/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events for `ax events`: the dataplane's from the ring buffer, the agent's own. The dataplane
 * writes none while nobody reads, and wakes nobody for a single one: a timer that runs only while
 * there are readers fetches them, and a ring that fills up faster wakes the agent.
 */
#include <arpa/inet.h>
#include <sys/timerfd.h>
#include <time.h>

#include "registry/events.h"
#include "base/address.h"
#include "base/loop.h"
#include "control/control.h"
#include "control/server.h"
#include "datapath/datapath.h"
#include "registry/app_table.h"
#include "registry/instance_ctl.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/verdict_names.h"
#include "registry/verdicts.h"
#include "registry/vips.h"

#define FETCH_MS      50
#define VERDICT_TICKS 4
#define UDP_MS	      10 /* between two looks at all UDP sockets, which others can make us take */
#define WAKE_BYTES    (256 * 1024) /* a quarter of the ring */

struct events {
	struct event_sink sink;
	struct loop_item ring, timer;
	uint64_t lost;	/* the counter when it was last looked at */
	bool udp_bound; /* there are servers that the kernel does not find by itself */
	bool ticks;	/* the timer does, as long as somebody watches */
	unsigned tick;
	uint64_t udp_next_ns; /* they are handed over then, or when they come */
};

int events_open(struct agent *a, const struct event_sink *sink)
{
	struct events *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	a->events = v;
	v->sink = *sink;
	v->ring = (struct loop_item){.kind = LOOP_EVENT_RING, .fd = -1};
	v->timer.kind = LOOP_EVENT_TIMER;
	v->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return v->timer.fd < 0 ? -errno : loop_add(a->epoll, &v->timer, EPOLLIN);
}

void events_close(struct agent *a)
{
	verdict_names_free(a);
	if (a->events)
		close_fd(&a->events->timer.fd);
	free(a->events);
	a->events = NULL;
}

static bool watched(const struct agent *a)
{
	return a->events->sink.watching(a->events->sink.arg, WATCH_EVENTS);
}

static bool watched_verdicts(const struct agent *a)
{
	return a->events->sink.watching(a->events->sink.arg, WATCH_VERDICTS);
}

/* Takes the reference. */
static void emit(struct agent *a, json_t *j)
{
	a->events->sink.event(a->events->sink.arg, WATCH_EVENTS, j);
	json_decref(j);
}

static void emit_verdict(struct agent *a, json_t *j)
{
	a->events->sink.event(a->events->sink.arg, WATCH_VERDICTS, j);
	json_decref(j);
}

static void set_timer(struct agent *a, bool on)
{
	struct itimerspec ts = {0};

	if (on)
		ts.it_value.tv_nsec = ts.it_interval.tv_nsec = FETCH_MS * 1000000;
	timerfd_settime(a->events->timer.fd, 0, &ts, NULL);
}

static void hand_udp(struct agent *a)
{
	const struct itimerspec once = {.it_value.tv_nsec = UDP_MS * 1000000};
	uint64_t now = time_mono_ns();

	if (!a->events->udp_bound)
		return;
	if (now < a->events->udp_next_ns) {
		if (!a->events->ticks) /* else it does so anyway */
			timerfd_settime(a->events->timer.fd, 0, &once, NULL);
		return;
	}
	a->events->udp_bound = false;
	a->events->udp_next_ns = now + UDP_MS * 1000000ull;
	datapath_dual_udp(a->dp);
}

int events_read(struct agent *a)
{
	int r = datapath_events_fd(a->dp);

	if (r < 0)
		return r;
	a->events->ring.fd = r;
	r = loop_add(a->epoll, &a->events->ring, EPOLLIN);
	r = r ? r : verdict_names_open(a);
	if (!r)
		verdicts_adopted(a);
	if (!r)
		datapath_dual_udp(a->dp); /* those that were bound while no agent ran */
	if (!r)
		a->hooks.awaited(a);
	if (!r)
		a->hooks.failing(a); /* while no agent ran */
	return r;
}

int events_update(struct agent *a)
{
	bool want = watched(a), verdicts = watched_verdicts(a);

	if (!verdicts)
		verdicts_unwatched(a);
	if ((want || verdicts) != a->events->ticks)
		set_timer(a, want || verdicts);
	a->events->ticks = want || verdicts;
	if (want == !!a->ctl.events)
		return 0;
	if (want) {
		uint64_t counters[AX_COUNTERS];

		/* what earlier readers lost is not this one's */
		if (datapath_counters(a->dp, counters) == 0)
			a->events->lost = counters[AX_COUNT_EVENTS_LOST];
	}
	a->ctl.events = want;
	a->ctl.event_wakeup = WAKE_BYTES;
	hand_udp(a);
	return agent_tell_ctl(a);
}

double events_wall_time(uint64_t boot_ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9 -
	       (double)(time_boot_ns() - boot_ns) / 1e9;
}

static void put_endpoint(json_t *j, const char *key, const struct ax_endpoint *ep)
{
	char port[32];

	if (!ep->port_be)
		return;
	snprintf(port, sizeof(port), "%s_port", key);
	json_object_set_new(j, key, json_addr(&ep->addr));
	json_object_set_new(j, port, json_integer(ntohs(ep->port_be)));
}

static void put_app(json_t *j, const struct app *app)
{
	if (!app)
		return;
	json_object_set_new(j, "app", json_string(app->spec.name));
	json_object_set_new(j, "app_id", json_integer(app->id));
}

static void put_close(json_t *j, const struct ax_event *ev)
{
	json_object_set_new(j, "sent", json_integer((json_int_t)ev->sent));
	json_object_set_new(j, "received", json_integer((json_int_t)ev->received));
	json_object_set_new(j, "rtt_us", json_integer(ev->srtt_us));
	if (ev->duration_ns)
		json_object_set_new(j, "duration_ms", json_real((double)ev->duration_ns / 1e6));
}

/* A service, or an exposed port. */
static void put_asked(struct agent *a, json_t *j, const struct ax_event *ev)
{
	const char *service = name_of_addr(a, &ev->asked.addr);
	struct vip *v = vip_find(a, &ev->asked.addr);

	if (!ev->asked.port_be)
		return;
	if (ev->type == AX_EVENT_CONNECT || service || v)
		json_object_set_new(j, "service",
				    service ? json_string(service) : json_addr(&ev->asked.addr));
	else
		put_endpoint(j, "exposed", &ev->asked);
}

static int on_event(void *arg, const struct ax_event *ev)
{
	static const char *const names[] = {[AX_EVENT_LISTEN] = "listen",
					    [AX_EVENT_UNLISTEN] = "unlisten",
					    [AX_EVENT_CONNECT] = "connect",
					    [AX_EVENT_ACCEPT] = "accept",
					    [AX_EVENT_CLOSE] = "close"};
	struct agent *a = arg;
	struct vip *local = vip_find(a, &ev->local.addr);
	const char *remote = name_of_addr(a, &ev->remote.addr);
	json_t *j;

	if (ev->type == AX_EVENT_DUAL_UDP)
		a->events->udp_bound = true;
	if (ev->type == AX_EVENT_AWAITED)
		a->hooks.awaited(a);
	if (ev->type == AX_EVENT_KNOCK)
		a->hooks.knocked(a, &ev->local.addr);
	if (ev->type == AX_EVENT_FAILING)
		a->hooks.failing(a);
	if (ev->type == AX_EVENT_SERVERS) {
		a->hooks.servers(a);
		a->hooks.listeners(a);
	}
	if (ev->type >= ARRAY_SIZE(names) || !names[ev->type])
		return 0;
	j = json_pack("{ss sf}", "event", names[ev->type], "time", events_wall_time(ev->time_ns));
	put_app(j, ev->app ? app_by_id(a, ev->app) : local ? local->app : NULL);
	put_endpoint(j, "local", &ev->local);
	put_endpoint(j, "remote", &ev->remote);
	if (remote && ev->remote.port_be)
		json_object_set_new(j, "remote_name", json_string(remote));
	put_asked(a, j, ev);
	if (ev->type == AX_EVENT_CLOSE)
		put_close(j, ev);
	emit(a, j);
	return 0;
}

static void fetch(struct agent *a)
{
	uint64_t counters[AX_COUNTERS], lost;
	json_t *j;

	datapath_events_read(a->dp, on_event, a);
	hand_udp(a);
	if (datapath_counters(a->dp, counters))
		return;
	lost = counters[AX_COUNT_EVENTS_LOST];
	if (lost > a->events->lost) {
		j = json_pack("{ss sf sI}", "event", "lost", "time",
			      events_wall_time(time_boot_ns()), "count",
			      (json_int_t)(lost - a->events->lost));
		emit(a, j);
	}
	a->events->lost = lost;
}

void events_on_ring(struct agent *a)
{
	fetch(a);
}

void events_verdicts(struct agent *a)
{
	if (watched_verdicts(a))
		verdicts_look(a, 0, emit_verdict);
}

void events_ending(struct agent *a, const struct app *app)
{
	fetch(a);
	if (watched_verdicts(a))
		verdicts_look(a, app->id, emit_verdict);
}

void events_on_timer(struct agent *a)
{
	uint64_t n;

	if (read(a->events->timer.fd, &n, sizeof(n)) != sizeof(n))
		return;
	fetch(a);
	if (a->events->tick++ % VERDICT_TICKS == 0 && watched_verdicts(a))
		verdicts_look(a, 0, emit_verdict);
}

void events_app(struct agent *a, const char *what, const struct app *app)
{
	json_t *j;

	if (!watched(a))
		return;
	j = json_pack("{ss sf}", "event", what, "time", events_wall_time(time_boot_ns()));
	put_app(j, app);
	json_object_set_new(j, "local",
			    json_addr(addr_is_zero(&app->vip4) ? &app->vip6 : &app->vip4));
	if (app->exit_status >= 0)
		json_object_set_new(j, "status", json_integer(app->exit_status));
	emit(a, j);
}

/* A program that is refused tries again and again: it is told of once in a while, with how often.
 */
#define REFUSED_NAMES 32
#define REFUSED_NS    10000000000ull

struct refused_name {
	uint32_t app;
	uint32_t times;
	uint64_t told_ns;
	uint64_t hash;
};

static uint64_t name_hash(const char *name)
{
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3;
	return h;
}

/* How often since the last time, 0: it is not to be told. */
static unsigned refused_times(uint32_t app, const char *name)
{
	static struct refused_name seen[REFUSED_NAMES];
	uint64_t hash = name_hash(name), now = time_mono_ns();
	struct refused_name *r = &seen[(hash ^ app) % REFUSED_NAMES];
	unsigned times;

	if (r->app != app || r->hash != hash)
		*r = (struct refused_name){.app = app, .hash = hash};
	r->times++;
	if (r->told_ns && now - r->told_ns < REFUSED_NS)
		return 0;
	times = r->times;
	r->times = 0;
	r->told_ns = now;
	return times;
}

void events_name_refused(struct agent *a, const struct app *app, const char *name)
{
	unsigned times = watched(a) ? refused_times(app->id, name) : 0;
	json_t *j;

	if (!times)
		return;
	j = json_pack("{ss sf ss si}", "event", "name-refused", "time",
		      events_wall_time(time_boot_ns()), "asked", name, "times", (int)times);
	put_app(j, app);
	emit(a, j);
}

void events_trigger(struct agent *a, const char *name, int pid, const char *ifname,
		    const struct ax_capture *c)
{
	json_t *j;

	if (!watched(a))
		return;
	j = json_pack("{ss sf ss si ss}", "event", "trigger", "time", events_wall_time(c->time_ns),
		      "trigger", name, "pid", pid, "interface", ifname);
	if (!addr_is_zero(&c->src))
		json_object_set_new(j, "remote", json_addr(&c->src));
	if (c->has_ports)
		json_object_set_new(j, "remote_port", json_integer(ntohs(c->sport_be)));
	emit(a, j);
}

void events_health(struct agent *a, const struct service *s, const struct app *app,
		   const struct ax_addr *addr, uint16_t port, bool down, const char *why)
{
	json_t *j;

	if (!watched(a))
		return;
	j = json_pack("{ss sf ss ss so si}", "event", "health", "time",
		      events_wall_time(time_boot_ns()), "service", s->name, "state",
		      down ? "down" : "up", "local", json_addr(addr), "local_port", (int)port);
	put_app(j, app);
	if (down)
		json_object_set_new(j, "why", json_string(why));
	emit(a, j);
}

void events_drain(struct agent *a, const char *service, const char *backend, const char *state,
		  int ended)
{
	json_t *j;

	if (!watched(a))
		return;
	j = json_pack("{ss sf ss ss ss}", "event", "drain", "time",
		      events_wall_time(time_boot_ns()), "service", service, "state", state,
		      "backend", backend);
	if (ended >= 0)
		json_object_set_new(j, "ended", json_integer(ended));
	emit(a, j);
}
