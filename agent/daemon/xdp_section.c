/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The config's interfaces (`xdp:`): what they name is read, compared with what the kernel has, and
 * put there when it differs. Lists stay in the kernel when the agent is gone; which interfaces have
 * one of ours is a record of the instance's cgroup, so that the next agent takes off what its
 * config does not have any more.
 *
 * A balancer may name a service: its backends are then the service's, and follow what becomes of
 * them. An interface that does not exist is waited for; so is one that rules lead to, but the list
 * is put in place without it, since it may be what keeps packets out.
 */
#include <dirent.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "daemon/xdp_section.h"
#include "base/cgroup.h"
#include "base/instance.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/strv.h"
#include "config/config.h"
#include "daemon/service_table.h"
#include "daemon/state.h"
#include "daemon/triggers.h"
#include "daemon/xdp_list.h"
#include "datapath/xdp.h"
#include "iface/iface.h"
#include "rules/list.h"

#define REBUILD_MS 100	/* at most one new list in that time for an interface */
#define SETTLE_MS  50	/* a link that has come is still being set up */
#define RETRY_MS   1000 /* somebody tries another list there, with --confirm */

struct xdp_managed {
	struct xdp_managed *next;
	char *name;
	unsigned ifindex; /* where its list was put, or was to be put; 0: nowhere yet */
	size_t rules;
	bool triggers, failed;
	char why[sizeof(((struct error *)0)->text)];
	struct strv services;  /* that its balancers name */
	struct strv targets;   /* interfaces that its rules lead to */
	uint64_t target_state; /* when the list was put there */
	struct xdp *x;	       /* open for its triggers, or NULL */
	struct loop_item ring; /* fd: x's */
	uint64_t due_ns;       /* 0: nothing is to be done */
	bool whole;	       /* then: all of it, not just backends */
	uint64_t built_ns;
};

struct xdp_planned { /* an interface of the next config */
	const char *name;
	struct rule_list list;
};

struct xdp_plan {
	struct xdp_planned *v;
	size_t n;
};

static struct xdp_managed *managed_find(const struct agent *a, const char *name)
{
	struct xdp_managed *m = a->managed;

	while (m && !streq(m->name, name))
		m = m->next;
	return m;
}

static struct xdp_managed *managed_get(struct agent *a, const char *name)
{
	struct xdp_managed *m = managed_find(a, name);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (m)
		m->name = strdup(name);
	if (!m || !m->name) {
		free(m);
		return NULL;
	}
	m->ring.kind = LOOP_TRIGGERS;
	m->ring.fd = -1;
	m->next = a->managed;
	a->managed = m;
	return m;
}

/* What paths of the config are relative to, whoever applied it: the next agent has to find the
 * same. */
static int read_list(const struct agent *a, const struct config_interface *c, struct rule_list *l,
		     struct error *e)
{
	const char *slash = a->config_path ? strrchr(a->config_path, '/') : NULL;
	autofree char *dir = NULL;

	if (slash)
		dir = strndup(a->config_path, (size_t)(slash - a->config_path) + 1);
	else
		dir = strdup(a->config_path ? "." : "/etc/ax");
	if (!dir)
		return error_set(e, -ENOMEM, "out of memory");
	return xdp_list_read(c, dir, l, e);
}

static const struct config_interface *interface_find(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_interfaces; i++)
		if (streq(c->interfaces[i].name, name))
			return &c->interfaces[i];
	return NULL;
}

/* --- the record --- */

static void save(struct agent *a)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	if (!f)
		return;
	for (const struct xdp_managed *m = a->managed; m; m = m->next)
		fprintf(f, "%s\n", m->name);
	if (fclose(f))
		return;
	r = cgroup_record_set(a->cgroup, "xdp", text);
	if (r)
		log_warn("cannot note which interfaces have a list: %s", strerror(-r));
}

void xdp_section_load(struct agent *a)
{
	autofree char *text = NULL;

	if (cgroup_record_get(a->cgroup, "xdp", &text))
		return;
	for (char *p = text, *name; (name = strsep(&p, "\n"));)
		if (*name)
			managed_get(a, name);
}

/* --- triggers --- */

static void ring_close(struct agent *a, struct xdp_managed *m)
{
	if (m->ring.fd >= 0)
		loop_del(a->epoll, &m->ring);
	m->ring.fd = -1;
	if (m->x)
		xdp_close(m->x);
	m->x = NULL;
}

static int ring_open(struct agent *a, struct xdp_managed *m, struct error *e)
{
	int r;

	ring_close(a, m);
	if (!m->triggers)
		return 0;
	r = xdp_open(a->inst, m->name, &m->x, e);
	if (r)
		return r;
	r = xdp_triggers_fd(m->x);
	if (r >= 0) {
		m->ring.fd = r;
		r = loop_add(a->epoll, &m->ring, EPOLLIN);
	}
	if (!r)
		return 0;
	ring_close(a, m);
	return error_set(e, r, "the triggers of %s cannot be read: %s", m->name, strerror(-r));
}

struct take {
	struct agent *a;
	const struct xdp_managed *m;
	unsigned left;
};

/* So many at a time: the loop has others to see to as well. */
#define TAKE_MAX 64

static int take_one(void *arg, const struct ax_capture *c, const uint8_t *data)
{
	struct take *t = arg;

	triggers_take(t->a, t->m->name, c, data);
	return --t->left == 0;
}

void xdp_section_on_triggers(struct agent *a, struct loop_item *item)
{
	struct xdp_managed *m = LOOP_OWNER(item, struct xdp_managed, ring);
	struct take t = {.a = a, .m = m, .left = TAKE_MAX};

	xdp_triggers_read(m->x, take_one, &t);
}

/* --- when something is to be done --- */

static void arm(struct agent *a)
{
	struct itimerspec ts = {0};
	uint64_t next = 0;

	for (const struct xdp_managed *m = a->managed; m; m = m->next)
		if (m->due_ns && (!next || m->due_ns < next))
			next = m->due_ns;
	if (a->xdp_timer.fd < 0)
		return;
	ts.it_value.tv_sec = (time_t)(next / 1000000000);
	ts.it_value.tv_nsec = (long)(next % 1000000000);
	timerfd_settime(a->xdp_timer.fd, TFD_TIMER_ABSTIME, &ts, NULL);
}

static void due(struct agent *a, struct xdp_managed *m, uint64_t at_ns, bool whole)
{
	m->whole |= whole;
	if (m->due_ns && m->due_ns <= at_ns)
		return;
	m->due_ns = at_ns;
	arm(a);
}

static void due_in(struct agent *a, struct xdp_managed *m, unsigned ms, bool whole)
{
	due(a, m, time_mono_ns() + ms * 1000000ull, whole);
}

void xdp_section_service(struct agent *a, const struct service *s)
{
	for (struct xdp_managed *m = a->managed; m; m = m->next) {
		uint64_t at = m->built_ns + REBUILD_MS * 1000000ull, now;

		for (size_t i = 0; i < m->services.n; i++) {
			if (!streq(m->services.v[i], s->name))
				continue;
			now = time_mono_ns();
			due(a, m, at > now ? at : now, false);
		}
	}
}

/* --- one list --- */

struct put {
	struct agent *a;
	bool changed;
};

static int set_backends(void *arg, struct rule_list *l, struct error *e)
{
	struct put *p = arg;
	int r = xdp_list_set_backends(p->a, l, &p->changed, e);

	if (r || p->changed)
		return r;
	return error_set(e, -ECANCELED, "nothing has changed");
}

struct speaker {
	struct agent *a;
	const char *ifname;
};

static void say(void *arg, const char *sentence)
{
	const struct speaker *s = arg;
	json_t *line;

	log_info("%s: %s", s->ifname, sentence);
	if (!s->a->warnings)
		return;
	line = json_sprintf("%s: %s", s->ifname, sentence);
	if (line)
		json_array_append_new(s->a->warnings, line);
}

/* How lists are put on interfaces: what can be repaired is. */
static struct xdp_load_options options(struct speaker *s)
{
	return (struct xdp_load_options){
		.fix = true,
		.say = say,
		.arg = s,
		.session = s->a->applying ? s->a->applying : -1,
	};
}

static bool has_name(const struct strv *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (streq(s->v[i], name))
			return true;
	return false;
}

static int find_targets(struct xdp_managed *m, const struct rule_list *l)
{
	int r = 0;

	strv_free(&m->targets);
	for (size_t i = 0; i < l->n_rules && !r; i++)
		if (l->rules[i].verdict == AX_VERDICT_REDIRECT &&
		    !has_name(&m->targets, l->rules[i].target))
			r = strv_add(&m->targets, l->rules[i].target);
	return r;
}

/* Changes when one of them comes, goes or is made anew. */
static uint64_t target_state(const struct xdp_managed *m)
{
	uint64_t h = 0;

	for (size_t i = 0; i < m->targets.n; i++)
		h = h * 1000003 + if_nametoindex(m->targets.v[i]);
	return h;
}

/* A list that would lose packets is put there all the same, and the first attempt's error says what
 * is wrong: without the list, packets would come in that it drops. */
static int apply(struct agent *a, struct xdp_managed *m, const struct rule_list *l, struct error *e)
{
	struct speaker speaker = {a, m->name};
	struct xdp_load_options o = options(&speaker);
	struct error why = {0};
	int r = xdp_apply(a->inst, m->name, l, &o, e);

	if (r != -ENOLINK)
		return r;
	o = (struct xdp_load_options){.force = true, .session = -1};
	if (xdp_apply(a->inst, m->name, l, &o, &why)) {
		*e = why;
		return why.code;
	}
	return error_set(e, r,
			 "%s has its list, but packets that it sends elsewhere are lost: ax doctor "
			 "%s says why",
			 m->name, m->name);
}

/* The interface has what it is to have now (all of it, or its backends alone), or says why not. */
static int outcome(struct agent *a, struct xdp_managed *m, int r, bool whole, struct error *e)
{
	struct error why = {0};

	m->built_ns = time_mono_ns();
	m->whole = false;
	if (r)
		why = *e;
	else
		r = ring_open(a, m, &why);
	m->failed = r != 0;
	snprintf(m->why, sizeof(m->why), "%s", r ? why.text : "");
	if (r == -EINPROGRESS) /* it is for the one who tries it to say what is to stay */
		due_in(a, m, RETRY_MS, whole);
	if (r)
		*e = why;
	return r;
}

/* Puts a list on the interface if it has another one. */
static int put_list(struct agent *a, struct xdp_managed *m, struct rule_list *l, struct error *e)
{
	unsigned ifindex = if_nametoindex(m->name);
	bool changed, same;
	int r;

	m->due_ns = 0;
	m->rules = l->n_rules;
	m->triggers = xdp_list_has_triggers(l);
	r = xdp_list_services(l, &m->services);
	r = r ? r : find_targets(m, l);
	if (r)
		return error_set(e, r, "out of memory");
	if (!ifindex) {
		ring_close(a, m);
		m->ifindex = 0;
		m->failed = false;
		log_info("the interface %s does not exist yet: its list waits for it", m->name);
		return 0;
	}
	m->target_state = target_state(m);
	r = xdp_list_set_backends(a, l, &changed, e);
	r = r ? r : xdp_list_is_loaded(a->inst, m->name, l, &same, e);
	if (!r && !same) {
		r = apply(a, m, l, e);
		if (!r)
			log_info("%s has a new list of %zu rule%s", m->name, l->n_rules,
				 l->n_rules == 1 ? "" : "s");
	}
	m->ifindex = ifindex;
	return outcome(a, m, r, true, e);
}

static int put_config(struct agent *a, struct xdp_managed *m, struct error *e)
{
	const struct config_interface *c = interface_find(&a->config, m->name);
	CLEANUP(rule_list_free) struct rule_list l;
	int r;

	m->due_ns = 0;
	m->ifindex = if_nametoindex(m->name);
	if (!c)
		return 0;
	rule_list_init(&l);
	r = read_list(a, c, &l, e);
	return r ? outcome(a, m, r, true, e) : put_list(a, m, &l, e);
}

static int put_backends(struct agent *a, struct xdp_managed *m, struct error *e)
{
	struct speaker speaker = {a, m->name};
	struct xdp_load_options o = options(&speaker);
	struct put p = {.a = a};
	int r;

	m->due_ns = 0;
	if (!m->ifindex)
		return 0;
	r = xdp_edit(a->inst, m->name, set_backends, &p, &o, e);
	if (r == -ECANCELED)
		return 0;
	if (r == -ENOLINK) { /* one that cannot be reached is no reason to keep those that ended */
		struct error why = {0};

		o = (struct xdp_load_options){.force = true, .session = -1};
		if (!xdp_edit(a->inst, m->name, set_backends, &p, &o, &why))
			return outcome(a, m, r, false, e);
	}
	if (!r)
		log_info("%s has the backends of its services as they are now", m->name);
	return outcome(a, m, r, false, e);
}

void xdp_section_on_timer(struct agent *a)
{
	uint64_t n, now;

	if (read(a->xdp_timer.fd, &n, sizeof(n)) < 0)
		return;
	now = time_mono_ns();
	for (struct xdp_managed *m = a->managed; m; m = m->next) {
		struct error e = {0};
		int r;

		if (!m->due_ns || m->due_ns > now)
			continue;
		r = m->whole ? put_config(a, m, &e) : put_backends(a, m, &e);
		if (r && r != -EINPROGRESS)
			log_error("%s", e.text);
	}
	arm(a);
}

/* --- links that come and go --- */

static int open_watch(struct agent *a, struct error *e)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int r;

	if (a->links.fd >= 0)
		return 0;
	a->xdp_timer.kind = LOOP_XDP_TIMER;
	a->xdp_timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = a->xdp_timer.fd < 0 ? -errno : loop_add(a->epoll, &a->xdp_timer, EPOLLIN);
	if (r)
		return error_set(e, r, "cannot make a timer: %s", strerror(-r));
	a->links.kind = LOOP_LINK;
	a->links.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (a->links.fd < 0 || bind(a->links.fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		r = -errno;
	r = r ? r : loop_add(a->epoll, &a->links, EPOLLIN);
	return r ? error_set(e, r, "cannot watch interfaces: %s", strerror(-r)) : 0;
}

static void close_watch(struct agent *a)
{
	loop_del(a->epoll, &a->links);
	close_fd(&a->links.fd);
	loop_del(a->epoll, &a->xdp_timer);
	close_fd(&a->xdp_timer.fd);
}

/* Removes what was pinned for an interface that is not there any more. */
static void unpin(const struct instance *inst, const char *name)
{
	char dir[256];
	struct error e;

	if (!if_nametoindex(name) && !datapath_xdp_dir(inst, name, false, dir, sizeof(dir), &e))
		datapath_xdp_remove(dir);
}

static void gone(struct agent *a, struct xdp_managed *m)
{
	log_info("the interface %s is gone: its list waits for it", m->name);
	ring_close(a, m);
	m->ifindex = 0;
	m->due_ns = 0;
	unpin(a->inst, m->name);
}

/* Links are told of for many reasons: what counts is which index a name has. */
static void look_at_links(struct agent *a)
{
	for (struct xdp_managed *m = a->managed; m; m = m->next) {
		unsigned ifindex = if_nametoindex(m->name);

		if (!ifindex && m->ifindex)
			gone(a, m);
		else if (ifindex && (ifindex != m->ifindex || target_state(m) != m->target_state))
			due_in(a, m, SETTLE_MS, true);
	}
}

static bool is_named(const struct agent *a, const char *link)
{
	if (managed_find(a, link))
		return true;
	for (const struct xdp_managed *m = a->managed; m; m = m->next)
		if (has_name(&m->targets, link))
			return true;
	return false;
}

static bool concerns(const struct agent *a, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	int left = (int)IFLA_PAYLOAD(nlh);

	for (const struct xdp_managed *m = a->managed; m; m = m->next)
		if (m->ifindex && m->ifindex == (unsigned)ifi->ifi_index)
			return true;
	for (const struct rtattr *ra = IFLA_RTA(ifi); RTA_OK(ra, left); ra = RTA_NEXT(ra, left))
		if (ra->rta_type == IFLA_IFNAME)
			return is_named(a, RTA_DATA(ra));
	return false;
}

void xdp_section_on_link(struct agent *a)
{
	char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool look = false;
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		n = recv(a->links.fd, buf, sizeof(buf), 0);
		if (n < 0)
			break;
		for (const struct nlmsghdr *nlh = (void *)buf; NLMSG_OK(nlh, n);
		     nlh = NLMSG_NEXT(nlh, n))
			look |= concerns(a, nlh);
	}
	if (look || (n < 0 && errno == ENOBUFS))
		look_at_links(a);
}

/* --- plan and apply --- */

bool xdp_section_reads_files(const struct config *c)
{
	for (size_t i = 0; i < c->n_interfaces; i++) {
		if (c->interfaces[i].rules_file)
			return true;
		for (size_t k = 0; k < c->interfaces[i].list.n_sets; k++)
			if (c->interfaces[i].list.sets[k].file)
				return true;
	}
	return false;
}

void xdp_plan_free(struct xdp_plan *p)
{
	for (size_t i = 0; p && i < p->n; i++)
		rule_list_free(&p->v[i].list);
	if (p)
		free(p->v);
	free(p);
}

static void diff_add(json_t *diff, const char *action, const char *name, const char *detail)
{
	json_array_append_new(diff, json_pack("{ss ss ss ss}", "action", action, "kind", "xdp",
					      "name", name, "detail", detail));
}

static void note(struct agent *a, const struct xdp_planned *p, json_t *diff)
{
	CLEANUP(rule_list_free) struct rule_list old;
	autofree char *detail = NULL;
	char text[64];
	bool loaded;

	rule_list_init(&old);
	loaded = xdp_list_of_kernel(a->inst, p->name, &old, NULL) == 0;
	if (!loaded) {
		snprintf(text, sizeof(text), "%zu rule%s%s", p->list.n_rules,
			 p->list.n_rules == 1 ? "" : "s",
			 if_nametoindex(p->name) ? "" : ", when there is such an interface");
		diff_add(diff, managed_find(a, p->name) ? "change" : "add", p->name, text);
		return;
	}
	detail = xdp_list_diff(&old, &p->list);
	if (detail && *detail)
		diff_add(diff, "change", p->name, detail);
}

/* What cannot be read is no reason not to start: the interface keeps what it has. */
static int plan_one(struct agent *a, struct xdp_plan *p, const struct config_interface *c,
		    json_t *diff, struct error *e)
{
	struct xdp_planned *to = &p->v[p->n];
	struct xdp_managed *m;
	int r;

	rule_list_init(&to->list);
	r = read_list(a, c, &to->list, e);
	if (r) {
		rule_list_free(&to->list);
		if (!a->starting)
			return r;
		log_error("%s", e->text);
		m = managed_get(a, c->name);
		if (m) {
			m->failed = true;
			snprintf(m->why, sizeof(m->why), "%s", e->text);
		}
		return 0;
	}
	to->name = c->name;
	p->n++;
	note(a, to, diff);
	return 0;
}

int xdp_plan_make(struct agent *a, const struct config *next, json_t *diff, struct xdp_plan **ret,
		  struct error *e)
{
	struct xdp_plan *p = *ret = calloc(1, sizeof(*p));
	int r = 0;

	if (p)
		p->v = calloc(next->n_interfaces + 1, sizeof(*p->v));
	if (!p || !p->v)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < next->n_interfaces && !r; i++)
		r = plan_one(a, p, &next->interfaces[i], diff, e);
	for (const struct xdp_managed *m = a->managed; m; m = m->next)
		if (!interface_find(next, m->name))
			diff_add(diff, "remove", m->name, "");
	return r;
}

static void managed_free(struct agent *a, struct xdp_managed *m)
{
	ring_close(a, m);
	strv_free(&m->services);
	strv_free(&m->targets);
	free(m->name);
	free(m);
}

/* Takes off what the config does not have any more. */
static int unload_others(struct agent *a, struct error *e)
{
	struct xdp_managed **at = &a->managed;
	int first = 0;

	while (*at) {
		struct xdp_managed *m = *at;
		struct error why = {0};
		int r;

		if (interface_find(&a->config, m->name)) {
			at = &m->next;
			continue;
		}
		ring_close(a, m);
		r = xdp_unload(a->inst, m->name, &why);
		if (r && r != -ENOENT && r != -ENODEV) { /* tried again with the next apply */
			if (!first)
				*e = why;
			first = first ? first : r;
			m->due_ns = 0;
			at = &m->next;
			continue;
		}
		unpin(a->inst, m->name);
		log_info("%s has no list any more", m->name);
		*at = m->next;
		managed_free(a, m);
	}
	return first;
}

int xdp_plan_apply(struct agent *a, struct xdp_plan *p, struct error *e)
{
	bool had = a->managed != NULL;
	int first, r;

	first = unload_others(a, e);
	if (a->config.n_interfaces) {
		r = open_watch(a, first ? &(struct error){0} : e);
		first = first ? first : r;
	}
	/* noted before it is done: an agent that dies in between leaves nothing unknown behind */
	for (size_t i = 0; i < a->config.n_interfaces; i++)
		managed_get(a, a->config.interfaces[i].name);
	if (had || a->managed)
		save(a);
	for (size_t i = 0; i < p->n; i++) {
		struct xdp_managed *m = managed_find(a, p->v[i].name);
		struct error why = {0};

		if (!m)
			continue;
		r = put_list(a, m, &p->v[i].list, &why);
		if (!r)
			continue;
		log_error("%s", why.text);
		if (!first)
			*e = why;
		first = first ? first : r;
	}
	if (!a->managed)
		close_watch(a);
	else
		arm(a);
	return first;
}

/* --- views, end --- */

json_t *xdp_section_view(const struct agent *a)
{
	json_t *list = json_array();

	for (const struct xdp_managed *m = a->managed; m; m = m->next) {
		json_t *j = json_pack("{ss ss si sb}", "name", m->name, "state",
				      m->failed	   ? "failed"
				      : m->ifindex ? "active"
						   : "absent",
				      "rules", (int)m->rules, "triggers", m->ring.fd >= 0);

		if (m->failed)
			json_object_set_new(j, "why", json_string(m->why));
		json_array_append_new(list, j);
	}
	return list;
}

void xdp_section_free(struct agent *a)
{
	while (a->managed) {
		struct xdp_managed *m = a->managed;

		a->managed = m->next;
		managed_free(a, m);
	}
	close_fd(&a->links.fd);
	close_fd(&a->xdp_timer.fd);
}

/* What is pinned of interfaces that are gone, and for all of them together. */
static void remove_pins(const char *root)
{
	DIR *d = opendir(root);
	struct dirent *de;

	if (!d)
		return;
	while ((de = readdir(d))) {
		autofree char *path = NULL;

		if (de->d_name[0] == '.' || asprintf(&path, "%s/%s", root, de->d_name) < 0)
			continue;
		if (unlink(path) < 0)
			datapath_xdp_unpin(path);
	}
	closedir(d);
	rmdir(root);
}

int xdp_section_flush(const struct instance *inst, struct error *e)
{
	struct strv names = {0};
	char root[256];
	int r = xdp_interfaces(inst, &names, e);

	for (size_t i = 0; i < names.n && !r; i++) {
		r = xdp_unload(inst, names.v[i], e);
		r = r == -ENOENT ? 0 : r;
	}
	strv_free(&names);
	if (!r && !datapath_xdp_dir(inst, NULL, false, root, sizeof(root), e))
		remove_pins(root);
	return r;
}
