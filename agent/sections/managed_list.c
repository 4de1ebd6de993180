/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One list of an interface: read, put there when it differs, kept up with its services. */
#include <net/if.h>
#include <sys/timerfd.h>

#include "base/log.h"
#include "base/strv.h"
#include "config/config.h"
#include "iface/iface.h"
#include "registry/state.h"
#include "rules/list.h"
#include "sections/app_backends.h"
#include "sections/managed.h"
#include "sections/xdp_list.h"
#include "sections/xdp_section.h"

int managed_read(const struct agent *a, const struct config_interface *c, struct rule_list *l,
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

const struct config_interface *interface_find(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_interfaces; i++)
		if (streq(c->interfaces[i].name, name))
			return &c->interfaces[i];
	return NULL;
}

#define RETRY_MS 1000 /* somebody tries another list there, with --confirm */

struct put {
	struct agent *a;
	bool changed, apps;
};

static int set_backends(void *arg, struct rule_list *l, struct error *e)
{
	struct put *p = arg;
	int r = xdp_list_set_backends(p->a, l, &p->changed, e);

	p->apps = app_backends_in(p->a, l);
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

static int find_targets(struct xdp_managed *m, const struct rule_list *l)
{
	int r = 0;

	strv_free(&m->targets);
	for (size_t i = 0; i < l->n_rules && !r; i++)
		if (l->rules[i].verdict == AX_VERDICT_REDIRECT &&
		    !managed_leads_to(m, l->rules[i].target))
			r = strv_add(&m->targets, l->rules[i].target);
	return r;
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
		managed_ring_close(a, m);
		m->ifindex = 0;
		m->failed = false;
		log_info("the interface %s does not exist yet: its list waits for it", m->name);
		return 0;
	}
	m->target_state = managed_target_state(m);
	r = xdp_list_set_backends(a, l, &changed, e);
	m->apps = app_backends_in(a, l);
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
	r = managed_read(a, c, &l, e);
	return r ? outcome(a, m, r, true, e) : managed_put(a, m, &l, e);
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
	m->apps = p.apps;
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

	if (read(a->xdp->timer.fd, &n, sizeof(n)) < 0)
		return;
	now = time_mono_ns();
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
