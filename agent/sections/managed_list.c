/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One list of an interface: read, put there when it differs, kept up with its services. */
#include <sys/timerfd.h>

#include "base/log.h"
#include "base/work.h"
#include "base/strv.h"
#include "config/config.h"
#include "iface/iface.h"
#include "registry/state.h"
#include "rules/list.h"
#include "sections/app_backends.h"
#include "sections/managed.h"
#include "sections/xdp_list.h"
#include "sections/xdp_section.h"

struct reading {
	const struct config_interface *c;
	const char *dir;
	struct rule_list *l;
	struct error *e;
	int r;
};

static void read_list_of(void *arg)
{
	struct reading *r = arg;

	r->r = xdp_list_read(r->c, r->dir, r->l, r->e);
}

int managed_read(const struct agent *a, const struct config_interface *c, struct rule_list *l,
		 struct error *e)
{
	const char *slash = a->config_path ? strrchr(a->config_path, '/') : NULL;
	autofree char *dir = NULL;
	struct reading r = {.c = c, .l = l, .e = e};

	if (slash)
		dir = strndup(a->config_path, (size_t)(slash - a->config_path) + 1);
	else
		dir = strdup(a->config_path ? "." : "/etc/ax");
	if (!dir)
		return error_set(e, -ENOMEM, "out of memory");
	r.dir = dir;
	work_offload(a->work, read_list_of, &r);
	return r.r;
}

const struct config_interface *interface_find(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_interfaces; i++)
		if (streq(c->interfaces[i].name, name))
			return &c->interfaces[i];
	return NULL;
}

#define RETRY_MS 1000 /* somebody tries another list there, with --confirm */

/* What is done beside the loop: m is read only, but for its name it is not looked at. */
struct put {
	struct agent *a;
	struct xdp_managed *m;
	struct rule_list *l;
	const struct xdp_load_options *o;
	struct error *e;
	bool changed, apps, regroup;
	int r;
};

static void set_backends_now(void *arg)
{
	struct put *p = arg;

	p->r = xdp_list_set_backends(p->a, p->l, &p->changed, p->e);
	p->apps = app_backends_in(p->a, p->l);
}

static int set_backends(void *arg, struct rule_list *l, struct error *e)
{
	struct put *p = arg;

	/* who the backends are is the agent's state */
	p->l = l;
	p->e = e;
	work_in_loop(p->a->work, set_backends_now, p);
	if (p->r || p->changed || p->regroup)
		return p->r;
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

static int find_targets(struct xdp_managed *m, const struct rule_list *l)
{
	int r = 0;

	strv_free(&m->targets);
	m->routes = m->groups = false;
	for (size_t i = 0; i < l->n_rules && !r; i++) {
		m->routes |= l->rules[i].verdict == AX_VERDICT_ROUTE ||
			     l->rules[i].verdict == AX_VERDICT_CHALLENGE;
		m->groups |= !condition_is_empty(&l->rules[i].in[RULE_FIELD_GROUP]);
		if (l->rules[i].verdict == AX_VERDICT_REDIRECT &&
		    !managed_leads_to(m, l->rules[i].target))
			r = strv_add(&m->targets, l->rules[i].target);
	}
	return r;
}

/* A list that would lose packets is put there all the same, and the first attempt's error says what
 * is wrong: without the list, packets would come in that it drops. */
static void apply(void *arg)
{
	struct put *p = arg;
	const char *name = p->m->name;
	struct speaker speaker = {p->a, name};
	struct xdp_load_options o = options(&speaker);
	struct error why = {0};
	bool same;

	p->r = xdp_list_is_loaded(p->a->inst, name, p->l, &same, p->e);
	if (p->r || same)
		return;
	p->changed = true;
	p->r = xdp_apply(p->a->inst, name, p->l, &o, p->e);
	if (p->r != -ENOLINK)
		return;
	o = (struct xdp_load_options){.force = true, .session = -1};
	if (xdp_apply(p->a->inst, name, p->l, &o, &why)) {
		*p->e = why;
		p->r = why.code;
		return;
	}
	error_set(p->e, p->r,
		  "%s has its list, but packets that it sends elsewhere are lost: ax doctor "
		  "%s says why",
		  name, name);
}

static void edit(void *arg)
{
	struct put *p = arg;

	p->r = xdp_edit(p->a->inst, p->m->name, set_backends, p, p->o, p->e);
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
		r = managed_ring_open(a, m, &why);
	m->failed = r != 0;
	snprintf(m->why, sizeof(m->why), "%s", r ? why.text : "");
	if (r == -EINPROGRESS) /* it is for the one who tries it to say what is to stay */
		managed_due_in(a, m, RETRY_MS, whole);
	if (r)
		*e = why;
	return r;
}

int managed_put(struct agent *a, struct xdp_managed *m, struct rule_list *l, struct error *e)
{
	struct put p = {.a = a, .m = m, .l = l, .e = e};
	unsigned ifindex = place_ifindex(m->name);
	bool changed;
	int r;

	m->due_ns = 0;
	m->rules = l->n_rules;
	m->triggers = xdp_list_has_triggers(l);
	r = xdp_list_services(l, &m->services);
	r = r ? r : find_targets(m, l);
	if (r)
		return error_set(e, r, "out of memory");
	if (!ifindex) {
		managed_ring_close(a, m);
		m->ifindex = 0;
		m->failed = false;
		log_info("the interface %s does not exist yet: its list waits for it", m->name);
		return 0;
	}
	m->target_state = managed_target_state(m);
	m->group = managed_group(m); /* before it is asked for the list: no change is missed */
	r = xdp_list_set_backends(a, l, &changed, e);
	m->apps = app_backends_in(a, l);
	if (!r) {
		work_offload(a->work, apply, &p);
		r = p.r;
	}
	if (!r && p.changed)
		log_info("%s has a new list of %zu rule%s", m->name, l->n_rules,
			 l->n_rules == 1 ? "" : "s");
	m->ifindex = ifindex;
	return outcome(a, m, r, true, e);
}

static int put_config(struct agent *a, struct xdp_managed *m, struct error *e)
{
	const struct config_interface *c = interface_find(&a->config, m->name);
	CLEANUP(rule_list_free) struct rule_list l;
	int r;

	m->due_ns = 0;
	if (!c)
		return 0;
	rule_list_init(&l);
	r = managed_read(a, c, &l, e);
	if (!r)
		return managed_put(a, m, &l, e);
	m->ifindex = place_ifindex(m->name);
	return outcome(a, m, r, true, e);
}

static int put_backends(struct agent *a, struct xdp_managed *m, struct error *e)
{
	struct speaker speaker = {a, m->name};
	struct xdp_load_options o = options(&speaker);
	struct put p = {.a = a, .m = m, .o = &o};
	uint32_t group = managed_group(m);
	int r;

	m->due_ns = 0;
	if (!m->ifindex)
		return 0;
	p.e = e;
	p.regroup = group != m->group;
	work_offload(a->work, edit, &p);
	r = p.r;
	m->apps = p.apps;
	if (!r)
		m->group = group;
	if (r == -ECANCELED)
		return 0;
	if (r == -ENOLINK) { /* one that cannot be reached is no reason to keep those that ended */
		struct error why = {0};

		o = (struct xdp_load_options){.force = true, .session = -1};
		p.e = &why;
		work_offload(a->work, edit, &p);
		if (!p.r) {
			m->group = group;
			return outcome(a, m, r, false, e);
		}
	}
	if (!r && p.regroup)
		log_info("%s is in group %u now: it has the rules for that", m->name, group);
	else if (!r)
		log_info("%s has the backends of its services as they are now", m->name);
	return outcome(a, m, r, false, e);
}

static void put_due(void *arg)
{
	struct agent *a = arg;
	uint64_t now = time_mono_ns();

	for (struct xdp_managed *m = a->xdp->managed; m; m = m->next) {
		struct error e = {0};
		int r;

		if (!m->due_ns || m->due_ns > now)
			continue;
		r = m->whole ? put_config(a, m, &e) : put_backends(a, m, &e);
		if (r && r != -EINPROGRESS)
			log_error("%s", e.text);
	}
	managed_arm(a);
}

void xdp_section_on_timer(struct agent *a)
{
	uint64_t n;

	if (read(a->xdp->timer.fd, &n, sizeof(n)) > 0 && work_start(a->work, 0, put_due, a))
		log_error("out of memory: lists of interfaces are not kept up");
}
