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

#include "sections/xdp_section.h"
#include "machine/cgroup.h"
#include "machine/instance.h"
#include "base/log.h"
#include "base/work.h"
#include "base/loop.h"
#include "base/strv.h"
#include "config/config.h"
#include "datapath/xdp_datapath.h"
#include "iface/iface.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "rules/list.h"
#include "sections/app_backends.h"
#include "sections/managed.h"
#include "sections/triggers.h"
#include "sections/xdp_list.h"

struct xdp_planned { /* an interface of the next config */
	const char *name;
	struct rule_list list;
};

struct xdp_plan {
	struct xdp_planned *v;
	size_t n;
};

/* --- start --- */

int xdp_section_open(struct agent *a)
{
	a->xdp = calloc(1, sizeof(*a->xdp));
	if (!a->xdp)
		return -ENOMEM;
	a->xdp->links.fd = a->xdp->timer.fd = -1;
	return 0;
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

void xdp_section_service(struct agent *a, const struct service *s)
{
	for (struct xdp_managed *m = a->xdp->managed; m; m = m->next) {
		for (size_t i = 0; i < m->services.n; i++) {
			if (streq(m->services.v[i], s->name))
				managed_due_soon(a, m);
		}
	}
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

struct comparison {
	const struct agent *a;
	const struct xdp_planned *p;
	bool loaded;
	char *detail;
};

static void compare(void *arg)
{
	CLEANUP(rule_list_free) struct rule_list old;
	struct comparison *c = arg;

	rule_list_init(&old);
	c->loaded = xdp_list_of_kernel(c->a->inst, c->p->name, &old, NULL) == 0;
	c->detail = c->loaded ? xdp_list_diff(&old, &c->p->list) : NULL;
}

static void note(struct agent *a, const struct xdp_planned *p, json_t *diff)
{
	struct comparison c = {.a = a, .p = p};
	autofree char *detail = NULL;
	char text[64];

	work_offload(a->work, compare, &c);
	detail = c.detail;
	if (!c.loaded) {
		snprintf(text, sizeof(text), "%zu rule%s%s", p->list.n_rules,
			 p->list.n_rules == 1 ? "" : "s",
			 place_ifindex(p->name) ? "" : ", when there is such an interface");
		diff_add(diff, managed_find(a, p->name) ? "change" : "add", p->name, text);
		return;
	}
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
	r = managed_read(a, c, &to->list, e);
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
	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next)
		if (!interface_find(next, m->name))
			diff_add(diff, "remove", m->name, "");
	return r;
}

struct unloading {
	const struct agent *a;
	const char *name;
	struct error *e;
	int r;
};

static void unload(void *arg)
{
	struct unloading *u = arg;

	u->r = xdp_unload(u->a->inst, u->name, u->e);
}

/* Takes off what the config does not have any more. */
static int unload_others(struct agent *a, struct error *e)
{
	struct xdp_managed **at = &a->xdp->managed;
	int first = 0;

	while (*at) {
		struct xdp_managed *m = *at;
		struct error why = {0};
		struct unloading u = {.a = a, .name = m->name, .e = &why};
		int r;

		if (interface_find(&a->config, m->name)) {
			at = &m->next;
			continue;
		}
		managed_ring_close(a, m);
		work_offload(a->work, unload, &u);
		r = u.r;
		if (r && r != -ENOENT && r != -ENODEV) { /* tried again with the next apply */
			if (!first)
				*e = why;
			first = first ? first : r;
			m->due_ns = 0;
			at = &m->next;
			continue;
		}
		managed_unpin(a->inst, m->name);
		log_info("%s has no list any more", m->name);
		*at = m->next;
		managed_free(a, m);
	}
	return first;
}

static bool leads_to_apps(const struct agent *a)
{
	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next)
		if (m->apps)
			return true;
	return false;
}

int xdp_plan_apply(struct agent *a, struct xdp_plan *p, struct error *e)
{
	bool had = a->xdp->managed != NULL;
	int first, r;

	first = unload_others(a, e);
	if (a->config.n_interfaces) {
		r = managed_watch(a, first ? &(struct error){0} : e);
		first = first ? first : r;
	}
	/* noted before it is done: an agent that dies in between leaves nothing unknown behind */
	for (size_t i = 0; i < a->config.n_interfaces; i++)
		managed_get(a, a->config.interfaces[i].name);
	if (had || a->xdp->managed)
		managed_save(a);
	for (size_t i = 0; i < p->n; i++) {
		struct xdp_managed *m = managed_find(a, p->v[i].name);
		struct error why = {0};

		if (!m)
			continue;
		r = managed_put(a, m, &p->v[i].list, &why);
		if (!r)
			continue;
		log_error("%s", why.text);
		if (!first)
			*e = why;
		first = first ? first : r;
	}
	if (!a->xdp->managed)
		managed_unwatch(a);
	else
		managed_arm(a);
	if (!leads_to_apps(a) && (a->xdp->apps || a->starting))
		app_backends_close(a);
	return first;
}

/* --- views, end --- */

json_t *xdp_section_view(const struct agent *a)
{
	json_t *list = json_array();

	for (const struct xdp_managed *m = a->xdp->managed; m; m = m->next) {
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
	if (!a->xdp)
		return;
	while (a->xdp->managed) {
		struct xdp_managed *m = a->xdp->managed;

		a->xdp->managed = m->next;
		managed_free(a, m);
	}
	close_fd(&a->xdp->links.fd);
	close_fd(&a->xdp->timer.fd);
	free(a->xdp);
	a->xdp = NULL;
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
