/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "daemon/health.h"
#include "base/address.h"
#include "base/cgroup.h"
#include "base/log.h"
#include "base/loop.h"
#include "config/config.h"
#include "daemon/app_table.h"
#include "daemon/events.h"
#include "daemon/members.h"
#include "daemon/service_table.h"
#include "daemon/services.h"
#include "daemon/state.h"
#include "daemon/vips.h"
#include "net/netlink.h"

#define NS_PER_MS 1000000ull

bool health_count(struct health_state *s, bool good, const struct service_check *c)
{
	s->successes = good ? s->successes + 1 : 0;
	s->fails = good ? 0 : s->fails + 1;
	if (s->down ? s->successes < c->rise : s->fails < c->fall)
		return false;
	s->down = !s->down;
	s->successes = s->fails = 0;
	return true;
}

char *health_http_request(const struct service_check *c, const char *host)
{
	char *text;

	if (asprintf(&text,
		     "GET %s HTTP/1.0\r\nHost: %s\r\nUser-Agent: ax-check\r\nAccept: */*\r\n"
		     "Connection: close\r\n\r\n",
		     c->path ? c->path : "/", host) < 0)
		return NULL;
	return text;
}

/* "HTTP/1.1 204 No Content": one digit on each side of the dot (RFC 9112), then the status. */
int health_http_status(const char *data, size_t len)
{
	static const char form[] = "HTTP/d.d ddd";
	int status = 0;

	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		if (i == len)
			return 0;
		if (form[i] == 'd' ? !isdigit((unsigned char)data[i]) : data[i] != form[i])
			return -EBADMSG;
		if (i >= 9)
			status = status * 10 + (data[i] - '0');
	}
	if (len == sizeof(form) - 1)
		return 0;
	if (!strchr(" \r\n", data[sizeof(form) - 1]) || !data[sizeof(form) - 1])
		return -EBADMSG;
	return status >= 100 && status <= 599 ? status : -EBADMSG;
}

bool health_status_good(int status, const struct service_check *c)
{
	return c->status ? status == c->status : status >= 200 && status <= 399;
}

/* --- checks: one for each backend of each service that has a check --- */

#define ANSWER_MAX 64 /* of the status line; what else comes is read and dropped */

struct health_check {
	struct loop_item item; /* fd -1: waits for its next turn */
	struct health_check *next;
	struct service *service;
	struct ax_addr addr;
	uint16_t port;
	uint32_t app; /* id, 0: a fixed address */
	struct health_state state;
	uint64_t started_ns, at_ns; /* at_ns: its next turn, or the time-out of this one */
	char *request;		    /* what is left to send is at sent */
	size_t sent, got;
	char answer[ANSWER_MAX];
	char why[96]; /* of the last failure; "": the last one was good, or there was none */
	bool marked;  /* still a backend */
	bool unreachable;
};

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
	return 0;
}

/* Not an app of the config that does not run, and not without a port. */
static bool is_checked(const struct service *s, const struct service_member *m)
{
	return s->conf && s->conf->check.type != CHECK_NONE && !m->draining && !m->declared &&
	       check_port(s, m);
}

static bool check_is(const struct health_check *p, const struct service_member *m, uint16_t port)
{
	return p->port == port && p->app == (m->app ? m->app->id : 0) &&
	       addr_eq(&p->addr, &m->addr);
}

/* Members come in the order of their checks, so that the one behind the last found is tried first.
 */
static struct health_check *check_find(const struct service *s, const struct service_member *m,
				       struct health_check *last)
{
	uint16_t port = check_port(s, m);
	struct health_check *p = last ? last->next : s->checks;

	if (p && check_is(p, m, port))
		return p;
	for (p = s->checks; p && !check_is(p, m, port);)
		p = p->next;
	return p;
}

void health_mark(const struct service *s, struct service_member *m, size_t n)
{
	struct health_check *last = NULL;

	for (size_t i = 0; s->checks && i < n; i++) {
		struct health_check *p = is_checked(s, &m[i]) ? check_find(s, &m[i], last) : NULL;

		if (!p)
			continue;
		last = p;
		m[i].checked = !p->unreachable;
		m[i].down = p->state.down && !p->unreachable;
		m[i].why = p->why[0] ? p->why : NULL;
	}
}

/* --- the timer --- */

static void arm(struct agent *a, uint64_t at_ns)
{
	struct itimerspec ts = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000),
					     .tv_nsec = (long)(at_ns % 1000000000)}};

	a->health_at_ns = at_ns;
	timerfd_settime(a->health_timer.fd, TFD_TIMER_ABSTIME, &ts, NULL);
}

static void arm_for(struct agent *a, uint64_t at_ns)
{
	if (!a->health_at_ns || at_ns < a->health_at_ns)
		arm(a, at_ns);
}

static int open_timer(struct agent *a)
{
	if (a->health_timer.fd >= 0)
		return 0;
	a->health_timer.kind = LOOP_HEALTH_TIMER;
	a->health_timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->health_timer.fd < 0)
		return -errno;
	return loop_add(a->epoll, &a->health_timer, EPOLLIN);
}

/* --- what is known, for the next agent --- */

static int check_line(const struct health_check *p, char *buf, size_t size)
{
	char addr[ADDR_STRLEN];

	return snprintf(buf, size, "%s %s %u %u\n", p->service->name, addr_format(&p->addr, addr),
			p->port, p->app);
}

/* More than an attribute can hold are not kept, which costs no more than `fall` checks. */
static void save(struct agent *a)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	char line[256];

	if (!f)
		return;
	for (const struct service *s = a->services; s; s = s->next)
		for (const struct health_check *p = s->checks; p; p = p->next)
			if (p->state.down && check_line(p, line, sizeof(line)) < (int)sizeof(line))
				fputs(line, f);
	if (fclose(f) == 0)
		cgroup_record_set(a->cgroup, "health", text);
}

void health_load(struct agent *a)
{
	cgroup_record_get(a->cgroup, "health", &a->health_was);
}

void health_loaded(struct agent *a)
{
	free(a->health_was);
	a->health_was = NULL;
}

static bool was_down(const struct agent *a, const struct health_check *p)
{
	char line[256];
	int len = check_line(p, line, sizeof(line));
	const char *at = a->health_was;

	while (at && (at = strstr(at, line))) {
		if (at == a->health_was || at[-1] == '\n')
			return true;
		at += len;
	}
	return false;
}

/* --- coming and going --- */

static void check_end(struct agent *a, struct health_check *p)
{
	if (p->item.fd >= 0)
		loop_del(a->epoll, &p->item);
	close_fd(&p->item.fd);
	free(p->request);
	p->request = NULL;
	p->sent = p->got = 0;
}

static void check_free(struct agent *a, struct health_check *p)
{
	check_end(a, p);
	a->n_checks--;
	free(p);
}

/* Anywhere in the first round: agents and backends that start together do not stay in step. */
static uint64_t first_turn(const struct service_check *c)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)time_mono_ns();
	return time_mono_ns() + random % c->every_ms * NS_PER_MS;
}

static struct health_check *check_new(struct agent *a, struct service *s,
				      const struct service_member *m)
{
	struct health_check *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->item.kind = LOOP_HEALTH;
	p->item.fd = -1;
	p->service = s;
	p->addr = m->addr;
	p->port = check_port(s, m);
	p->app = m->app ? m->app->id : 0;
	p->at_ns = first_turn(&s->conf->check);
	p->state.down = was_down(a, p);
	if (p->state.down)
		snprintf(p->why, sizeof(p->why), "it was when the agent started");
	a->n_checks++;
	return p;
}

/* Leaves only marked ones. */
static void drop_unmarked(struct agent *a, struct service *s)
{
	struct health_check **at = &s->checks;
	bool known = false;

	while (*at) {
		struct health_check *p = *at;

		if (p->marked) {
			p->marked = false;
			at = &p->next;
			continue;
		}
		*at = p->next;
		known |= p->state.down;
		check_free(a, p);
	}
	if (known)
		save(a);
	if (!a->n_checks && a->health_at_ns)
		arm(a, 0);
}

void health_forget(struct agent *a, struct service *s)
{
	drop_unmarked(a, s);
}

void health_free(struct agent *a, struct service *s)
{
	while (s->checks) {
		struct health_check *p = s->checks;

		s->checks = p->next;
		check_free(a, p);
	}
}

void health_sync(struct agent *a, struct service *s, const struct service_member *m, size_t n)
{
	struct health_check **end = &s->checks, *last = NULL;

	while (*end)
		end = &(*end)->next;
	for (size_t i = 0; i < n; i++) {
		struct health_check *p;

		if (!is_checked(s, &m[i]) || open_timer(a))
			continue;
		p = check_find(s, &m[i], last);
		if (!p) {
			p = check_new(a, s, &m[i]);
			if (!p)
				continue; /* not checked: it counts as up */
			*end = p;
			end = &p->next;
			arm_for(a, p->at_ns);
		}
		p->marked = true;
		last = p;
	}
	drop_unmarked(a, s);
}

/* --- results --- */

static void tell(struct agent *a, const struct health_check *p)
{
	const struct app *app = p->app ? app_by_id(a, p->app) : NULL;
	char addr[ADDR_STRLEN];

	addr_port_format(&p->addr, htons(p->port), addr);
	if (p->state.down)
		log_warn("service %s: the backend %s%s%s is down: %s", p->service->name,
			 app ? app->spec.name : "", app ? " " : "", addr, p->why);
	else
		log_info("service %s: the backend %s%s%s is up again", p->service->name,
			 app ? app->spec.name : "", app ? " " : "", addr);
	events_health(a, p->service, app, &p->addr, p->port, p->state.down, p->why);
}

/* The end of one check. The check may be gone after it. */
static void result(struct agent *a, struct health_check *p, bool good)
{
	const struct service_check *c = &p->service->conf->check;
	struct service *s = p->service;
	struct error e = {0};

	check_end(a, p);
	if (good)
		p->why[0] = 0;
	p->at_ns = p->started_ns + c->every_ms * NS_PER_MS;
	if (!health_count(&p->state, good, c))
		return;
	tell(a, p);
	save(a);
	if (service_sync(a, s, &e))
		log_error("%s", e.text);
}

static void failed(struct agent *a, struct health_check *p, const char *what, int error)
{
	snprintf(p->why, sizeof(p->why), "%s%s%s", what, error ? ": " : "",
		 error ? strerror(error) : "");
	result(a, p, false);
}

/* --- one check --- */

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

/* Whether policy lets an app connect to itself: as bpf/verdict.bpf.h decides it. */
static bool may_reach_itself(const struct agent *a, const struct app *app)
{
	uint64_t rules = app->party.from & app->party.to;

	if (rules)
		return (rules & -rules) & a->ctl.rule_allow;
	for (int i = 0; i < AX_LABEL_WORDS; i++)
		if (app->party.labels[i])
			return true;
	return false;
}

/* The descriptor, or a negative errno; -EACCES: the agent has no way to the backend. */
static int check_open(struct agent *a, const struct health_check *p)
{
	struct vip *v = a->config.host_access ? NULL : vip_find(a, &p->addr);
	struct app *app = v ? v->app : NULL;
	struct check_socket ps = {.addr = &p->addr};
	int r;

	if (app && app->spec.net == NET_PRIVATE && app->netns_fd >= 0) {
		r = netns_call(app->netns_fd, open_socket, &ps);
		return r ? r : ps.fd;
	}
	if (app && app->spec.net == NET_HOST) {
		if (!may_reach_itself(a, app))
			return -EACCES;
		ps.from = &p->addr;
	}
	r = open_socket(&ps);
	return r ? r : ps.fd;
}

static void no_way(struct agent *a, struct health_check *p)
{
	static const char why[] = "not checked: host_access is off, and policy does not let the "
				  "app reach itself";

	if (!p->unreachable)
		log_warn("service %s: a backend is %s", p->service->name, why);
	p->unreachable = true;
	snprintf(p->why, sizeof(p->why), "%s", why);
	if (!p->state.down)
		return;
	memset(&p->state, 0, sizeof(p->state));
	service_sync(a, p->service, NULL);
}

static void check_start(struct agent *a, struct health_check *p, uint64_t now)
{
	const struct service_check *c = &p->service->conf->check;
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(&p->addr, htons(p->port), &ss);
	const struct app *app = p->app ? app_by_id(a, p->app) : NULL;
	int fd;

	p->started_ns = now;
	p->at_ns = now + c->every_ms * NS_PER_MS;
	/* its address may not even be routed yet, and would be looked for elsewhere */
	if (app && app->state == APP_STARTING)
		return;
	fd = check_open(a, p);
	if (fd == -EACCES) {
		no_way(a, p);
		return;
	}
	p->unreachable = false;
	if (fd < 0) { /* the agent's own trouble says nothing about the backend */
		log_debug("health check: %s", strerror(-fd));
		return;
	}
	p->item.fd = fd;
	p->at_ns = now + c->timeout_ms * NS_PER_MS;
	if (c->type == CHECK_HTTP) {
		p->request = health_http_request(c, p->service->name);
		if (!p->request) {
			check_end(a, p);
			return;
		}
	}
	if (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		failed(a, p, "connect", errno);
	else if (loop_add(a->epoll, &p->item, EPOLLOUT))
		check_end(a, p);
}

static void send_request(struct agent *a, struct health_check *p)
{
	size_t left = strlen(p->request) - p->sent;
	ssize_t n = send(p->item.fd, p->request + p->sent, left, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN) {
		failed(a, p, "send", errno);
		return;
	}
	p->sent += n > 0 ? (size_t)n : 0;
	if (p->sent == strlen(p->request))
		loop_mod(a->epoll, &p->item, EPOLLIN);
}

static void read_answer(struct agent *a, struct health_check *p)
{
	const struct service_check *c = &p->service->conf->check;
	/* with room for the rest of a short answer: closing what has unread data resets it */
	char buf[4096];
	ssize_t n = recv(p->item.fd, buf, sizeof(buf), 0);
	char what[32];
	size_t take;
	int status;

	if (n < 0) {
		if (errno != EAGAIN)
			failed(a, p, "receive", errno);
		return;
	}
	take = (size_t)n < ANSWER_MAX - p->got ? (size_t)n : ANSWER_MAX - p->got;
	memcpy(p->answer + p->got, buf, take);
	p->got += take;
	status = health_http_status(p->answer, p->got);
	if (!status && n > 0)
		return;
	if (status <= 0) {
		failed(a, p, status ? "the answer is not HTTP" : "closed without an answer", 0);
	} else if (health_status_good(status, c)) {
		result(a, p, true);
	} else {
		snprintf(what, sizeof(what), "status %d", status);
		failed(a, p, what, 0);
	}
}

void health_on_socket(struct agent *a, struct loop_item *item)
{
	struct health_check *p = LOOP_OWNER(item, struct health_check, item);
	int error = 0;
	socklen_t len = sizeof(error);

	if (p->request && p->sent == strlen(p->request)) {
		read_answer(a, p);
		return;
	}
	if (getsockopt(p->item.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error)
		failed(a, p, "connect", error);
	else if (p->request)
		send_request(a, p);
	else
		result(a, p, true);
}

static struct health_check *due(struct agent *a, uint64_t now, uint64_t *next)
{
	*next = 0;
	for (struct service *s = a->services; s; s = s->next)
		for (struct health_check *p = s->checks; p; p = p->next) {
			if (p->at_ns <= now)
				return p;
			if (!*next || p->at_ns < *next)
				*next = p->at_ns;
		}
	return NULL;
}

void health_on_timer(struct agent *a)
{
	uint64_t n, next, now = time_mono_ns();
	struct health_check *p;

	if (read(a->health_timer.fd, &n, sizeof(n)) < 0)
		return;
	/* a result may change the list, so it is looked through anew */
	while ((p = due(a, now, &next))) {
		if (p->item.fd >= 0)
			failed(a, p, "no answer in time", 0);
		else
			check_start(a, p, now);
	}
	arm(a, next);
}
