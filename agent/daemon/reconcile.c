/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Config files: what is declared minus what was declared before. Both lists are sorted by name and
 * merged; only entries that differ are touched. Everything that can fail for a reason in the file
 * is checked before anything is changed.
 */
#include <sys/stat.h>

#include "daemon/reconcile.h"
#include "apps/apps.h"
#include "apps/needs.h"
#include "apps/on_connect.h"
#include "apps/spawn.h"
#include "cluster/cluster.h"
#include "base/address.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/work.h"
#include "config/added_rules.h"
#include "config/config.h"
#include "config/diff.h"
#include "config/edit.h"
#include "config/spec.h"
#include "daemon/names_zone.h"
#include "registry/app_record.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/in_force.h"
#include "registry/instance_ctl.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/vips.h"
#include "sections/added_rules.h"
#include "sections/added_services.h"
#include "sections/host_resolver.h"
#include "sections/probes_section.h"
#include "sections/services_section.h"
#include "sections/shared_services.h"
#include "sections/triggers.h"
#include "sections/xdp_section.h"
#include "services/services.h"
#include "yaml/errors.h"

/* --- the diff --- */

static void diff_add(json_t *diff, const char *action, const char *kind, const char *name,
		     const char *detail)
{
	json_array_append_new(diff, json_pack("{ss ss ss ss}", "action", action, "kind", kind,
					      "name", name, "detail", detail ? detail : ""));
}

/* --- sorted views --- */

static int app_cmp(const void *x, const void *y)
{
	return strcmp((*(struct config_app *const *)x)->spec.name,
		      (*(struct config_app *const *)y)->spec.name);
}

static int service_cmp(const void *x, const void *y)
{
	return strcmp((*(struct config_service *const *)x)->name,
		      (*(struct config_service *const *)y)->name);
}

static struct config_app **sort_apps(const struct config *c)
{
	struct config_app **v = calloc(c->n_apps + 1, sizeof(*v));

	for (size_t i = 0; v && i < c->n_apps; i++)
		v[i] = &c->apps[i];
	if (v)
		qsort(v, c->n_apps, sizeof(*v), app_cmp);
	return v;
}

static struct config_service **sort_services(const struct config *c, size_t first, size_t n)
{
	struct config_service **v = calloc(n + 1, sizeof(*v));

	for (size_t i = 0; v && i < n; i++)
		v[i] = &c->services[first + i];
	if (v)
		qsort(v, n, sizeof(*v), service_cmp);
	return v;
}

struct plan {
	struct agent *a;
	struct config_next *read;
	struct config *next; /* the same one's */
	struct config_app **old_apps, **new_apps;
	struct config_service **old_services, **new_services; /* that may differ */
	size_t n_old_services, n_new_services;
	json_t *diff;
	struct xdp_plan *xdp;
	bool labels_changed, rules_changed;
	struct error failed; /* the first thing that the kernel or the pool refused */
};

static void plan_free(struct plan *p)
{
	free(p->old_apps);
	free(p->new_apps);
	free(p->old_services);
	free(p->new_services);
	xdp_plan_free(p->xdp);
}

/* Merges two sorted lists: f is called with the old entry, the new one, or both. */
static int merge(void **old, size_t n_old, void **new, size_t n_new,
		 int (*cmp)(const void *x, const void *y),
		 int (*f)(struct plan *p, void *o, void *n, struct error *e), struct plan *p,
		 struct error *e)
{
	size_t i = 0, k = 0;
	int r = 0;

	while (!r && (i < n_old || k < n_new)) {
		int c = i == n_old ? 1 : k == n_new ? -1 : cmp(&old[i], &new[k]);

		work_pause(p->a->work);
		r = f(p, c <= 0 ? old[i] : NULL, c >= 0 ? new[k] : NULL, e);
		i += c <= 0;
		k += c >= 0;
	}
	return r;
}

static int merge_apps(struct plan *p, int (*f)(struct plan *p, void *o, void *n, struct error *e),
		      struct error *e)
{
	return merge((void **)p->old_apps, p->a->config.n_apps, (void **)p->new_apps,
		     p->next->n_apps, app_cmp, f, p, e);
}

static int merge_services(struct plan *p,
			  int (*f)(struct plan *p, void *o, void *n, struct error *e),
			  struct error *e)
{
	return merge((void **)p->old_services, p->n_old_services, (void **)p->new_services,
		     p->n_new_services, service_cmp, f, p, e);
}

/* --- checks against what runs --- */

/* An address of the file must not be somebody's whom the file does not know. */
static int check_addr(struct plan *p, const struct ax_addr *addr, const char *name, struct error *e)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(p->a, addr);
	char text[ADDR_STRLEN];

	if (!v || (v->app && v->app->state == APP_ENDED))
		return 0;
	if (v->host)
		return error_set(e, -EADDRINUSE, "%s cannot have %s: it is the agent's own address",
				 name, addr_format(addr, text));
	if (v->app && !streq(v->app->spec.name, name) && !v->app->config_key)
		return error_set(e, -EADDRINUSE, "%s cannot have %s: the running app %s has it",
				 name, addr_format(addr, text), v->app->spec.name);
	return 0;
}

static int check_app(struct plan *p, void *o, void *n, struct error *e)
{
	struct config_app *c = n;
	int r;

	(void)o;
	if (!c)
		return 0;
	r = check_addr(p, &c->spec.ip4, c->spec.name, e);
	r = r ? r : check_addr(p, &c->spec.ip6, c->spec.name, e);
	if (!r && !addr_is_zero(&c->spec.ip6) && !p->a->has_ipv6)
		r = error_set(e, -EAFNOSUPPORT,
			      "%s has an IPv6 address, but this machine has "
			      "IPv6 switched off",
			      c->spec.name);
	return r;
}

static int check_service(struct plan *p, void *o, void *n, struct error *e)
{
	const struct config_service *old = o;
	struct config_service *c = n;
	struct app *app;
	int r;

	if (!c)
		return 0;
	r = check_addr(p, &c->ip4, c->name, e);
	r = r ? r : check_addr(p, &c->ip6, c->name, e);
	r = r ? r : cluster_service_moves(p->a, old ? &old->ip4 : NULL, &c->ip4, c->name, e);
	r = r ? r : cluster_service_moves(p->a, old ? &old->ip6 : NULL, &c->ip6, c->name, e);
	app = app_by_name(p->a, c->name);
	if (!r && app && !app->config_key)
		r = error_set(e, -EADDRINUSE,
			      "the service %s cannot have that name: an app of "
			      "that name is running",
			      c->name);
	return r;
}

/* (The parser has seen that the config's own have room. Later on there is no way back.) */
static int check_room(struct agent *a, const struct config *next, struct error *e)
{
	return a->added_rules || a->shared_config ? in_force_room(a, next, a->shared_config, e) : 0;
}

/* --- the plan's rows --- */

static bool spec_same(const struct config_app *o, const struct config_app *n)
{
	return streq(o->key, n->key) && app_spec_eq(&o->spec, &n->spec);
}

static int note_app(struct plan *p, void *o, void *n, struct error *e)
{
	struct config_app *old = o, *new = n;
	char detail[1024];

	(void)e;
	if (!old) {
		diff_add(p->diff, "add", "app", new->spec.name,
			 new->spec.command.n ? new->spec.command.v[0] : "declared");
	} else if (!new) {
		diff_add(p->diff, "remove", "app", old->spec.name, NULL);
	} else if (!spec_same(old, new)) {
		config_describe_app(detail, sizeof(detail), &old->spec, &new->spec);
		diff_add(p->diff, "change", "app", new->spec.name, detail);
	} else if (old->on_connect != new->on_connect || old->idle_ms != new->idle_ms) {
		snprintf(detail, sizeof(detail), "start %s -> %s, idle %ums -> %ums",
			 old->on_connect ? "on-connect" : "now",
			 new->on_connect ? "on-connect" : "now", old->idle_ms, new->idle_ms);
		diff_add(p->diff, "change", "app", new->spec.name, detail);
	}
	return 0;
}

static int note_service(struct plan *p, void *o, void *n, struct error *e)
{
	struct config_service *old = o, *new = n;
	char detail[1024], text[ADDR_STRLEN];

	(void)e;
	p->rules_changed |= (!old || !new || !config_service_eq(old, new)) &&
			    added_rules_have_name(p->a->added_rules, old ? old->name : new->name);
	if (!old && added_find(p->a, new->name)) {
		diff_add(p->diff, "change", "service", new->name,
			 "was added by 'ax service', and is the config's from now on");
	} else if (!old && shared_find(p->a, new->name)) {
		diff_add(
			p->diff, "change", "service", new->name,
			"was the cluster's, and is as this config has it on this node from now on");
	} else if (!old) {
		diff_add(p->diff, "add", "service", new->name,
			 addr_is_zero(&new->ip4) ? "" : addr_format(&new->ip4, text));
	} else if (!new) {
		diff_add(p->diff, "remove", "service", old->name, NULL);
	} else if (!config_service_eq(old, new)) {
		config_describe_service(detail, sizeof(detail), old, new);
		diff_add(p->diff, "change", "service", new->name, detail);
	}
	return 0;
}

/* Whether what holds knows the lists of the file's apps. */
static bool lists_known(const struct plan *p)
{
	for (size_t i = 0; i < p->next->n_apps; i++) {
		if (!in_force_has(p->a, &p->next->apps[i].spec.egress))
			return false;
	}
	return true;
}

static bool text_same(const char *x, const char *y)
{
	return x == y || (x && y && streq(x, y));
}

/* What only a new agent can change. The pools: addresses that were given out stay. */
static bool needs_restart(const struct config *o, const struct config *n)
{
	return memcmp(&o->pool4, &n->pool4, sizeof(o->pool4)) != 0 ||
	       memcmp(&o->pool6, &n->pool6, sizeof(o->pool6)) != 0 || o->dns != n->dns ||
	       !text_same(o->dns_domain, n->dns_domain) || !text_same(o->socket, n->socket);
}

static void note_splice(struct plan *p, enum splice_mode old, enum splice_mode new)
{
	char text[32];

	snprintf(text, sizeof(text), "%s -> %s", splice_mode_name(old), splice_mode_name(new));
	diff_add(p->diff, "change", "agent", "splice", text);
}

static void note_host_names(struct plan *p, enum host_names old, enum host_names new)
{
	char text[32];

	snprintf(text, sizeof(text), "%s -> %s", host_names_word(old), host_names_word(new));
	diff_add(p->diff, "change", "agent", "host-names", text);
}

static void note_cluster(struct plan *p)
{
	const struct config_cluster *o = &p->a->config.cluster, *n = &p->next->cluster;

	if (!config_cluster_same_node(o, n) || !o->name != !n->name)
		diff_add(p->diff, "change", "cluster", n->name ? n->name : o->name,
			 "takes effect when the agent is started again");
	else if (!config_cluster_eq(o, n))
		diff_add(p->diff, "change", "cluster", n->name,
			 "its peers, the way to etcd, or how long and where others are backends");
}

static void note_rules(struct plan *p)
{
	const struct config *o = &p->a->config, *n = p->next;
	const char *name;

	p->rules_changed = !config_rules_same(o, n) || !config_egress_same(o, n);
	for (size_t i = 0; (name = added_rules_taken(p->a, n, i)); i++)
		diff_add(p->diff, "change", "policy", name,
			 "was added by 'ax policy', and is the config's from now on");
	if (p->rules_changed)
		diff_add(p->diff, "change", "policy", config_rules_same(o, n) ? "egress" : "rules",
			 NULL);
	/* (of added ones, too) */
	p->rules_changed |= !lists_known(p) || o->policy_audit != n->policy_audit;
}

static void note_agent(struct plan *p)
{
	const struct config *o = &p->a->config, *n = p->next;

	if (o->host_access != n->host_access)
		diff_add(p->diff, "change", "agent", "host_access",
			 n->host_access ? "false -> true" : "true -> false");
	if (!config_upstreams_same(o, n))
		diff_add(p->diff, "change", "agent", "dns.upstreams", NULL);
	if (o->logs_size != n->logs_size || o->logs_to_journal != n->logs_to_journal)
		diff_add(p->diff, "change", "agent", "logs",
			 "for apps that are started from now on");
	if (o->splice != n->splice)
		note_splice(p, o->splice, n->splice);
	if (!text_same(o->zone, n->zone))
		diff_add(p->diff, "change", "agent", "zone", NULL);
	if (o->host_names != n->host_names)
		note_host_names(p, o->host_names, n->host_names);
	if (o->dns_forward != n->dns_forward)
		diff_add(p->diff, "change", "agent", "dns.forward",
			 n->dns_forward == DNS_FORWARD_ALL ? "egress -> all" : "all -> egress");
	if (needs_restart(o, n))
		diff_add(p->diff, "change", "agent", "pool, dns or socket",
			 "takes effect when the agent is started again");
	note_cluster(p);
	p->labels_changed = !labels_eq(&o->default_labels, &n->default_labels);
	if (p->labels_changed)
		diff_add(p->diff, "change", "policy", "labels",
			 "for apps that are started from now on");
	note_rules(p);
}

static const struct config_trigger *trigger_of(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_triggers; i++)
		if (streq(c->triggers[i].name, name))
			return &c->triggers[i];
	return NULL;
}

static void note_triggers(struct plan *p)
{
	const struct config *old = &p->a->config, *new = p->next;

	for (size_t i = 0; i < new->n_triggers; i++) {
		const struct config_trigger *n = &new->triggers[i], *o = trigger_of(old, n->name);

		if (!o || !config_trigger_eq(o, n))
			diff_add(p->diff, o ? "change" : "add", "trigger", n->name,
				 n->command.n ? n->command.v[0] : "");
	}
	for (size_t i = 0; i < old->n_triggers; i++)
		if (!trigger_of(new, old->triggers[i].name))
			diff_add(p->diff, "remove", "trigger", old->triggers[i].name, NULL);
}

static const struct config_probe *probe_of(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_probes; i++)
		if (streq(c->probes[i].name, name))
			return &c->probes[i];
	return NULL;
}

static void note_probes(struct plan *p)
{
	const struct config *old = &p->a->config, *new = p->next;

	for (size_t i = 0; i < new->n_probes; i++) {
		const struct config_probe *n = &new->probes[i], *o = probe_of(old, n->name);

		if (!o || !config_probe_eq(o, n))
			diff_add(p->diff, o ? "change" : "add", "probe", n->name, n->probe);
	}
	for (size_t i = 0; i < old->n_probes; i++)
		if (!probe_of(new, old->probes[i].name))
			diff_add(p->diff, "remove", "probe", old->probes[i].name, NULL);
}

/* --- applying --- */

#define STOP_MS 10000

static int drop_app(struct plan *p, void *o, void *n, struct error *e)
{
	struct config_app *old = o, *new = n;
	struct declared *d;
	struct app *app;

	(void)e;
	if (!old || (new &&spec_same(old, new)))
		return 0;
	spawn_cancel(p->a, old->spec.name);
	spawn_mark_stale(p->a, old->key);
	app = app_of_config(p->a, old->key);
	if (app)
		app_stop(p->a, app, STOP_MS);
	d = declared_find(p->a, old->spec.name);
	if (d)
		on_connect_removed(p->a, d);
	return 0;
}

static int drop_service(struct plan *p, void *o, void *n, struct error *e)
{
	(void)e;
	if (o)
		services_section_drop(p->a, o, n);
	return 0;
}

/* Never fails: every service must stand on the new config's memory before the old one's is freed.
 * The first error is kept. */
static int put_service(struct plan *p, void *o, void *n, struct error *e)
{
	struct config_service *c = n;
	const struct config_service *added = c && !o ? added_find(p->a, c->name) : NULL;
	const struct config_service *shared = c && !o ? shared_find(p->a, c->name) : NULL;
	const struct config_service *was = added ? added : shared ? shared : o;
	struct error why;
	int r = n ? services_section_put(p->a, was, n, &why) : 0;

	(void)e;
	if (added) {
		added_taken_over(p->a, c->name);
		p->rules_changed = true; /* they may name it */
	}
	if (r && !p->failed.code)
		p->failed = why;
	return 0;
}

/* What the next config has for one that it has from this one; NULL: it may differ. */
static struct config_service *kept_as(const struct plan *p, const struct config_service *old)
{
	const struct config *c = &p->a->config;
	const struct config_next *x = p->read;
	size_t i = ((uintptr_t)old - (uintptr_t)c->services) / sizeof(*old);

	if (i >= c->n_services || (i >= x->first && i < x->first + x->n_old))
		return NULL;
	return &p->next->services[i < x->first ? i : i - x->n_old + x->n_new];
}

/* Those that the next config has from this one stand on its memory. All are there as a rule, and
 * none has to be looked up by its name. */
static void keep_services(struct plan *p)
{
	const struct config *old = &p->a->config;
	size_t left = p->read->edited ? old->n_services - p->read->n_old : 0;
	struct config_service *next;
	struct error e;

	for (struct service *s = left ? p->a->services : NULL; s; s = s->next) {
		next = s->conf ? kept_as(p, s->conf) : NULL;
		s->conf = next ? next : s->conf;
		left -= next != NULL;
	}
	for (size_t i = 0; left && i < old->n_services; i++) {
		const struct service *s = service_by_name(p->a, old->services[i].name);

		next = kept_as(p, &old->services[i]);
		if (next && (!s || s->conf != next))
			put_service(p, &old->services[i], next, &e); /* it could not be there yet */
		work_pause(p->a->work);
	}
}

static int start_app(struct agent *a, const struct config_app *c, struct error *e)
{
	struct app *app;
	int r;

	if (!c->spec.command.n)
		return 0;
	app = app_of_config(a, c->key);
	if (app) {
		/* its address is free only when it is gone */
		app->replaced = app->state == APP_STOPPING;
		return 0;
	}
	if (spawn_pending(a, c->key) || c->on_connect)
		return 0;
	r = declared_start(a, c->key);
	return r ? error_set(e, r, "cannot start the app %s: %s", c->spec.name, strerror(-r)) : 0;
}

static void free_next(void *arg)
{
	config_next_free(arg);
}

struct replaced {
	const struct config_next *by;
	struct config old;
};

static void free_replaced(void *arg)
{
	struct replaced *x = arg;

	config_next_holds(x->by, &x->old);
}

/* What fails here takes nothing else down. */
static void apply_rest(struct plan *p)
{
	struct error why = {0};

	if (triggers_apply(p->a, &why) && !p->failed.code)
		p->failed = why;
	why.code = 0;
	if (xdp_plan_apply(p->a, p->xdp, &why) && !p->failed.code)
		p->failed = why;
	why.code = 0;
	if (probes_apply(p->a, &why) && !p->failed.code)
		p->failed = why;
}

static void swap_rules(struct config *a, struct config *b)
{
	struct config_egress *egress = a->egress;
	struct config_rule *rules = a->rules;
	size_t n = a->n_rules, n_egress = a->n_egress;

	a->rules = b->rules;
	a->n_rules = b->n_rules;
	b->rules = rules;
	b->n_rules = n;
	a->egress = b->egress;
	a->n_egress = b->n_egress;
	b->egress = egress;
	b->n_egress = n_egress;
}

/* The old ones hold: the next apply tries again. */
static void swap_labels(struct config *a, struct config *b)
{
	const struct labels labels = a->default_labels;

	a->default_labels = b->default_labels;
	b->default_labels = labels;
}

static int apply(struct plan *p, bool *holds, struct error *e)
{
	struct agent *a = p->a;
	const uint32_t rule_set = a->ctl.rule_set;
	struct replaced replaced = {.by = p->read};
	struct config *old = &replaced.old;
	bool relabelled = true;
	struct error why;
	int r;

	merge_apps(p, drop_app, e);
	merge_services(p, drop_service, e);
	if (p->labels_changed && declared_relabel(a, &p->next->default_labels, &why)) {
		p->failed = why;
		relabelled = false;
	}
	r = declared_set(a, p->next, &p->failed, e);
	if (r)
		return r; /* out of memory, and nothing was moved yet */
	merge_services(p, put_service, e);
	keep_services(p);
	*old = a->config;
	a->config = *p->next;
	if (!relabelled)
		swap_labels(&a->config, old);
	*holds = true;
	a->ctl.host_access = a->config.host_access;
	a->splice_stale = true;
	a->names_changed = true;
	/* (at the start, take_over() has told them) */
	if (p->rules_changed && !a->starting)
		r = in_force_apply(a, &a->config, NULL, 0, e);
	if (r && a->ctl.rule_set == rule_set) /* the old ones hold: the next apply tries again */
		swap_rules(&a->config, old);
	if (!r)
		added_rules_settle(a);
	if (!r && !a->starting && !text_same(old->zone, a->config.zone))
		r = services_sync(a, NULL, e);
	r = r ? r : agent_tell_ctl(a);
	r = r ? r : needs_hold(a);
	needs_straight(a);
	if (!r && p->rules_changed && !a->starting && needs_egress(a, &why))
		log_warn("%s", why.text);
	on_connect_update(a, &p->failed);
	cluster_reconfigure(a);
	if (!r && !config_upstreams_same(old, &a->config))
		r = names_set_upstreams(a, e);
	/* the new apps last: what they connect to is there */
	for (size_t i = 0; i < a->config.n_apps && !r; i++) {
		work_pause(a->work);
		r = start_app(a, &a->config.apps[i], e);
	}
	apply_rest(p);
	work_offload(a->work, free_replaced, &replaced);
	if (!r && p->failed.code) {
		*e = p->failed;
		r = p->failed.code;
	}
	if (r && !e->text[0])
		error_set(e, r, "%s", strerror(-r));
	return r;
}

static int sort(struct plan *p)
{
	const struct config_next *x = p->read;
	const struct config *old = &p->a->config, *next = p->next;

	p->n_old_services = x->edited ? x->n_old : old->n_services;
	p->n_new_services = x->edited ? x->n_new : next->n_services;
	p->old_apps = sort_apps(old);
	p->new_apps = sort_apps(next);
	p->old_services = sort_services(old, x->first, p->n_old_services);
	work_pause(p->a->work);
	p->new_services = sort_services(next, x->first, p->n_new_services);
	return p->old_apps && p->new_apps && p->old_services && p->new_services ? 0 : -ENOMEM;
}

/* The text is known by which the next one is told from this, unless something of it does not hold.
 */
static void keep_source(struct agent *a, struct config_next *read, bool good)
{
	config_source_free(a->source);
	a->source = good ? read->source : NULL;
	if (!good)
		config_source_free(read->source);
	read->source = NULL;
}

int reconcile(struct agent *a, struct config_next *read, bool dry_run, json_t **diff, bool *holds,
	      struct error *e)
{
	struct config *next = &read->config;
	CLEANUP(plan_free) struct plan p = {.a = a, .read = read, .next = next};
	struct error why = {0};
	int r;

	*holds = false;
	*diff = json_array();
	p.diff = *diff;
	r = sort(&p);
	if (r)
		error_set(e, r, "out of memory");
	r = r || a->starting ? r : merge_apps(&p, check_app, e);
	r = r || a->starting ? r : merge_services(&p, check_service, e);
	r = r || a->starting ? r : host_resolver_check(a, next, e);
	r = r || a->starting ? r : added_rules_check(a, next, e);
	r = r || a->starting ? r : check_room(a, next, e);
	if (r) {
		work_offload(a->work, free_next, read);
		return r;
	}
	note_agent(&p);
	merge_services(&p, note_service, e);
	merge_apps(&p, note_app, e);
	note_triggers(&p);
	note_probes(&p);
	/* reads files, and so may find what is wrong with them */
	r = xdp_plan_make(a, next, *diff, &p.xdp, e);
	if (r || dry_run) {
		work_offload(a->work, free_next, read);
		return r;
	}
	r = apply(&p, holds, &why);
	if (*holds && !a->starting)
		shared_settle(a);
	if (*holds)
		keep_source(a, read, !r);
	else
		work_offload(a->work, free_next, read);
	if (r)
		return error_set(e, r, "the config holds now, but not all of it could be done: %s",
				 why.text);
	return 0;
}

static bool runs_as_declared(const struct app *app, const struct config_app *c)
{
	CLEANUP(app_spec_free) struct app_spec want = {0};

	if (!c || !c->spec.command.n || app_spec_copy(&c->spec, &want))
		return false;
	/* what a launch by the agent adds to the words of the file */
	want.detach = true;
	/* new default labels are for apps that are started from then on */
	if (!want.labels.n && labels_copy(&app->spec.labels, &want.labels))
		return false;
	if (!want.directory)
		want.directory = strdup("/");
	return app->cut ? streq(app->spec.command.v[0], want.command.v[0])
			: app_spec_eq(&app->spec, &want);
}

void reconcile_adopted(struct agent *a)
{
	struct app *next;

	for (struct app *app = a->apps; app; app = next) {
		const struct config_app *c =
			app->config_key ? declared_key(a, app->config_key) : NULL;

		next = app->next;
		if (!app->config_key || app->state == APP_STOPPING || runs_as_declared(app, c))
			continue;
		log_info("the config has changed for %s (%u)", app->spec.name, app->id);
		app->replaced = c && c->spec.command.n;
		app_stop(a, app, STOP_MS);
	}
}

struct parse {
	const struct agent *a;
	const char *text;
	size_t len;
	struct config_next *ret;
	struct config_errors *errs;
	int r;
};

static void parse(void *arg)
{
	struct parse *p = arg;

	/* (works alone change them, and this is part of one) */
	p->r = config_read(&p->a->config, p->a->source, p->text, p->len, p->ret, p->errs);
}

int reconcile_parse(struct agent *a, const char *text, size_t len, struct config_next *ret,
		    struct config_errors *errs)
{
	struct parse p = {.a = a, .text = text, .len = len, .ret = ret, .errs = errs};

	work_offload(a->work, parse, &p);
	return p.r;
}

static void forget_diff(void *diff)
{
	json_decref(diff);
}

int reconcile_file(struct agent *a, const char *path, struct error *e)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	autofree char *text = NULL;
	struct config_next next;
	json_t *diff = NULL;
	bool holds;
	int r = file_read(path, 64u << 20, &text);

	if (r)
		return error_set(e, r, "cannot read the config %s: %s", path, strerror(-r));
	r = reconcile_parse(a, text, strlen(text), &next, &errs);
	if (r) {
		config_errors_print(&errs, path, stderr);
		return error_set(e, r, "the config %s has %zu error%s, nothing was changed", path,
				 errs.n, errs.n == 1 ? "" : "s");
	}
	r = reconcile(a, &next, false, &diff, &holds, e);
	work_offload(a->work, forget_diff, diff);
	return r;
}
