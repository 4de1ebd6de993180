/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sys/random.h>
#include <sys/timerfd.h>

#include "health/health.h"
#include "base/address.h"
#include "machine/cgroup.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "health/answer.h"
#include "health/try.h"

#define NS_PER_MS 1000000ull
#define NEVER	  UINT64_MAX

struct health_check { /* of one target */
	struct health_check *next;
	struct health_group *group;
	struct health_target target;
	struct health_state state;
	struct health_try try;
	uint64_t started_ns, at_ns; /* at_ns: its next turn, or the time-out of this one */
	uint64_t window_ns;	    /* when the first of these failed */
	unsigned failed;	    /* connections of others to it */
	bool suspect;		    /* one failure is enough */
	bool marked;		    /* still a target */
	bool unreachable;
	bool troubled; /* the agent could not begin the last one */
};

struct health_group {
	struct health_group *next;
	struct health *h;
	void *owner;
	char *name;
	struct service_check how; /* a copy: the config's may go */
	struct health_check *checks;
};

struct health {
	struct health_ops ops;
	int epoll;
	const char *cgroup;
	struct health_group *groups;
	struct loop_item timer; /* fd -1: there has been no check */
	uint64_t at_ns;		/* when it fires, 0: it does not */
	size_t n_checks;
	char *was; /* record of the last agent, while this one starts */
};

struct health *health_open(int epoll, const char *cgroup, const struct health_ops *ops)
{
	struct health *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->ops = *ops;
	h->epoll = epoll;
	h->cgroup = cgroup;
	h->timer = (struct loop_item){.kind = LOOP_HEALTH_TIMER, .fd = -1};
	cgroup_record_get(cgroup, "health", &h->was);
	return h;
}

void health_loaded(struct health *h)
{
	free(h->was);
	h->was = NULL;
}

/* --- the timer --- */

static void arm(struct health *h, uint64_t at_ns)
{
	struct itimerspec ts = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000),
					     .tv_nsec = (long)(at_ns % 1000000000)}};

	h->at_ns = at_ns;
	timerfd_settime(h->timer.fd, TFD_TIMER_ABSTIME, &ts, NULL);
}

static void arm_for(struct health *h, uint64_t at_ns)
{
	if (!h->at_ns || at_ns < h->at_ns)
		arm(h, at_ns);
}

static int open_timer(struct health *h)
{
	if (h->timer.fd >= 0)
		return 0;
	h->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->timer.fd < 0)
		return -errno;
	return loop_add(h->epoll, &h->timer, EPOLLIN);
}

/* --- what is known, for the next agent --- */

static int check_line(const struct health_check *c, char *buf, size_t size)
{
	char addr[ADDR_STRLEN];

	return snprintf(buf, size, "%s %s %u %u\n", c->group->name,
			addr_format(&c->target.addr, addr), c->target.port, c->target.app);
}

/* More than an attribute can hold are not kept, which costs no more than `fall` checks. */
static void save(struct health *h)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	char line[256];

	if (!f)
		return;
	for (const struct health_group *g = h->groups; g; g = g->next)
		for (const struct health_check *c = g->checks; c; c = c->next)
			if (c->state.down && check_line(c, line, sizeof(line)) < (int)sizeof(line))
				fputs(line, f);
	if (fclose(f) == 0)
		cgroup_record_set(h->cgroup, "health", text);
}

static bool was_down(const struct health *h, const struct health_check *c)
{
	char line[256];
	int len = check_line(c, line, sizeof(line));
	const char *at = h->was;

	while (at && (at = strstr(at, line))) {
		if (at == h->was || at[-1] == '\n')
			return true;
		at += len;
	}
	return false;
}

/* --- targets that come and go --- */

static bool check_is(const struct health_check *c, const struct health_target *t)
{
	return c->target.port == t->port && c->target.app == t->app &&
	       addr_eq(&c->target.addr, &t->addr);
}

/* Targets come in the order of their checks, so that the one behind the last found is tried first.
 */
static struct health_check *check_find(const struct health_group *g, const struct health_target *t,
				       const struct health_check *last)
{
	struct health_check *c = last ? last->next : g->checks;

	if (c && check_is(c, t))
		return c;
	for (c = g->checks; c && !check_is(c, t);)
		c = c->next;
	return c;
}

struct health_seen health_look(const struct health_group *g, const struct health_target *t,
			       const void **place)
{
	const struct health_check *c = check_find(g, t, *place);

	if (!c)
		return (struct health_seen){0};
	*place = c;
	return (struct health_seen){.checked = !c->unreachable && (!c->troubled || c->state.down),
				    .down = c->state.down && !c->unreachable,
				    .why = c->try.why[0] ? c->try.why : NULL};
}

static void check_free(struct health_check *c)
{
	try_end(&c->try, c->group->h->epoll);
	c->group->h->n_checks--;
	free(c);
}

/* Anywhere in the first round: agents and backends that start together do not stay in step. */
static uint64_t first_turn(const struct service_check *how)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)time_mono_ns();
	return time_mono_ns() + random % how->every_ms * NS_PER_MS;
}

/* Nothing is to be found out about it now. */
static bool rests(const struct health_check *c)
{
	return c->group->how.type == CHECK_PASSIVE && !c->state.down && !c->suspect;
}

static struct health_check *check_new(struct health_group *g, const struct health_target *t)
{
	struct health_check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->try.item = (struct loop_item){.kind = LOOP_HEALTH, .fd = -1};
	c->group = g;
	c->target = *t;
	c->state.down = was_down(g->h, c);
	c->at_ns = rests(c) ? NEVER : first_turn(&g->how);
	if (c->state.down)
		snprintf(c->try.why, sizeof(c->try.why), "it was when the agent started");
	g->h->n_checks++;
	return c;
}

/* Leaves only marked ones. */
static void drop_unmarked(struct health_group *g)
{
	struct health_check **at = &g->checks;
	struct health *h = g->h;
	bool known = false;

	while (*at) {
		struct health_check *c = *at;

		if (c->marked) {
			c->marked = false;
			at = &c->next;
			continue;
		}
		*at = c->next;
		known |= c->state.down;
		check_free(c);
	}
	if (known)
		save(h);
	if (!h->n_checks && h->at_ns)
		arm(h, 0);
}

static int take_check(struct health_group *g, const struct service_check *how)
{
	struct service_check copy;

	if (service_check_copy(how, &copy))
		return -ENOMEM;
	service_check_free(&g->how);
	g->how = copy;
	return 0;
}

void health_group_set(struct health_group *g, const struct service_check *how,
		      const struct health_target *t, size_t n)
{
	struct health_check **end = &g->checks, *last = NULL;

	if (!service_check_eq(&g->how, how)) {
		drop_unmarked(g);
		if (take_check(g, how))
			return; /* not checked: all count as up */
	}
	while (*end)
		end = &(*end)->next;
	for (size_t i = 0; i < n && !open_timer(g->h); i++) {
		struct health_check *c = check_find(g, &t[i], last);

		if (!c) {
			c = check_new(g, &t[i]);
			if (!c)
				continue; /* not checked: it counts as up */
			*end = c;
			end = &c->next;
			if (c->at_ns != NEVER)
				arm_for(g->h, c->at_ns);
		}
		c->marked = true;
		last = c;
	}
	drop_unmarked(g);
}

struct health_group *health_group_new(struct health *h, void *owner, const char *name)
{
	struct health_group *g = calloc(1, sizeof(*g));

	if (g)
		g->name = strdup(name);
	if (!g || !g->name) {
		free(g);
		return NULL;
	}
	g->h = h;
	g->owner = owner;
	g->next = h->groups;
	h->groups = g;
	return g;
}

static void group_free(struct health_group *g)
{
	service_check_free(&g->how);
	free(g->name);
	free(g);
}

void health_group_free(struct health_group *g)
{
	struct health_group **at = g ? &g->h->groups : NULL;

	if (!g)
		return;
	drop_unmarked(g);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	group_free(g);
}

void health_close(struct health *h)
{
	while (h && h->groups) {
		struct health_group *g = h->groups;

		h->groups = g->next;
		while (g->checks) {
			struct health_check *c = g->checks;

			g->checks = c->next;
			check_free(c);
		}
		group_free(g);
	}
	if (!h)
		return;
	close_fd(&h->timer.fd);
	free(h->was);
	free(h);
}

/* --- turns and results --- */

/* The end of one try. The check may be gone after it. */
static void result(struct health_check *c, bool good)
{
	struct health_group *g = c->group;
	struct health *h = g->h;
	bool changed;

	try_end(&c->try, h->epoll);
	if (good)
		c->try.why[0] = 0;
	changed = health_count(&c->state, good, &g->how);
	if (c->suspect && !good && !c->state.down) {
		c->state = (struct health_state){.down = true};
		changed = true;
	}
	c->suspect = false;
	c->at_ns = rests(c) ? NEVER : c->started_ns + g->how.every_ms * NS_PER_MS;
	if (!changed)
		return;
	save(h);
	h->ops.changed(h->ops.arg, g->owner, &c->target, c->state.down, c->try.why);
}

static void take(struct health_check *c, enum try_outcome o)
{
	if (o != TRY_GOES_ON)
		result(c, o == TRY_GOOD);
}

static void no_way(struct health_check *c)
{
	bool first = !c->unreachable, was_down = c->state.down;
	struct health *h = c->group->h;

	c->unreachable = true;
	snprintf(c->try.why, sizeof(c->try.why), "%s", h->ops.why_no_way);
	if (was_down)
		memset(&c->state, 0, sizeof(c->state));
	if (first || was_down)
		h->ops.no_way(h->ops.arg, c->group->owner, &c->target, was_down);
}

/* It is said once, and what a target is down for stays what is said of that. */
static void trouble(struct health_check *c, int r)
{
	char text[ADDR_STRLEN];

	if (!c->troubled)
		log_warn("service %s: %s is not checked, as the agent cannot begin a check: %s",
			 c->group->name,
			 addr_port_format(&c->target.addr, htons(c->target.port), text),
			 strerror(-r));
	c->troubled = true;
	if (!c->state.down)
		snprintf(c->try.why, sizeof(c->try.why),
			 "not checked: the agent cannot begin a check: %s", strerror(-r));
}

/* A socket, or 0 and a command; or a negative errno. */
static int begin(struct health_check *c, struct health_command *command)
{
	struct health_group *g = c->group;
	struct health *h = g->h;
	int r;

	if (g->how.type == CHECK_EXEC)
		r = h->ops.start(h->ops.arg, &c->target, &g->how, g->name, command);
	else
		r = h->ops.open(h->ops.arg, &c->target);
	if (r == HEALTH_NO_WAY)
		no_way(c);
	else if (r < 0 && r != -EAGAIN)
		trouble(c, r);
	return r;
}

static void turn(struct health_check *c, uint64_t now)
{
	struct health_group *g = c->group;
	struct health *h = g->h;
	struct health_command command;
	int r;

	c->started_ns = now;
	c->at_ns = now + g->how.every_ms * NS_PER_MS;
	r = begin(c, &command);
	if (r == HEALTH_NO_WAY)
		return; /* it may be gone */
	if (r == -EAGAIN && g->how.type == CHECK_EXEC)
		c->at_ns = first_turn(&g->how); /* not the same ones each time */
	if (r != -EAGAIN)
		c->unreachable = false;
	if (r < 0)
		return;
	c->troubled = false;
	c->at_ns = now + g->how.timeout_ms * NS_PER_MS;
	if (g->how.type == CHECK_EXEC)
		take(c, try_watch(&c->try, h->epoll, &command));
	else
		take(c, try_start(&c->try, h->epoll, r, &c->target.addr, c->target.port, &g->how,
				  g->name));
}

/* --- failures that others have seen --- */

static bool is_watched(const struct health_check *c, const struct ax_addr *addr, uint16_t port)
{
	const struct service_check *how = &c->group->how;

	/* with a port of its own, a check speaks for the others */
	return how->passive && addr_eq(&c->target.addr, addr) &&
	       (how->port || c->target.port == port);
}

bool health_is_watched(const struct health *h, const struct ax_addr *addr, uint16_t port)
{
	for (const struct health_group *g = h->groups; g; g = g->next)
		for (const struct health_check *c = g->how.passive ? g->checks : NULL; c;
		     c = c->next)
			if (is_watched(c, addr, port))
				return true;
	return false;
}

/*
 * Whoever connects can make connections fail, by what it sends, or does not. So they make nobody
 * down: they have the agent look, at once, and it believes what it sees by itself.
 */
static void suspect(struct health_check *c, unsigned n, int error, uint64_t now)
{
	const struct service_check *how = &c->group->how;

	if (c->state.down || c->suspect)
		return;
	if (now - c->window_ns > how->window_ms * NS_PER_MS) {
		c->window_ns = now;
		c->failed = 0;
	}
	c->failed += n;
	if (c->failed < how->passive)
		return;
	log_debug("%u connections to a backend of %s have failed (%s): it is checked", c->failed,
		  c->group->name, strerror(error));
	c->failed = 0;
	c->suspect = true;
	if (try_rests(&c->try)) {
		c->at_ns = now;
		arm_for(c->group->h, now);
	}
}

void health_failed(struct health *h, const struct ax_addr *addr, uint16_t port, unsigned n,
		   int error)
{
	uint64_t now = time_mono_ns();

	for (struct health_group *g = h->groups; g; g = g->next)
		for (struct health_check *c = g->how.passive ? g->checks : NULL; c; c = c->next)
			if (is_watched(c, addr, port))
				suspect(c, n, error, now);
}

/* --- commands --- */

size_t health_running(const struct health *h)
{
	size_t n = 0;

	for (const struct health_group *g = h->groups; g; g = g->next)
		for (const struct health_check *c = g->checks; c; c = c->next)
			n += c->try.pid > 0;
	return n;
}

bool health_reap(struct health *h, int pid, int status)
{
	for (struct health_group *g = h->groups; g; g = g->next)
		for (struct health_check *c = g->checks; c; c = c->next) {
			if (c->try.pid != pid)
				continue;
			take(c, try_ended(&c->try, status));
			return true;
		}
	return false;
}

void health_on_socket(struct health *h, struct loop_item *item)
{
	struct health_check *c = LOOP_OWNER(item, struct health_check, try.item);

	take(c, try_on_socket(&c->try, h->epoll, &c->group->how));
}

static struct health_check *due(struct health *h, uint64_t now, uint64_t *next)
{
	*next = 0;
	for (struct health_group *g = h->groups; g; g = g->next)
		for (struct health_check *c = g->checks; c; c = c->next) {
			if (c->at_ns <= now)
				return c;
			if (c->at_ns != NEVER && (!*next || c->at_ns < *next))
				*next = c->at_ns;
		}
	return NULL;
}

void health_on_timer(struct health *h)
{
	uint64_t n, next, now = time_mono_ns();
	struct health_check *c;

	if (read(h->timer.fd, &n, sizeof(n)) < 0)
		return;
	/* a result may change the list, so it is looked through anew */
	while ((c = due(h, now, &next))) {
		if (!try_rests(&c->try))
			take(c, try_failed(&c->try, "no answer in time", 0));
		else
			turn(c, now);
	}
	arm(h, next);
}
