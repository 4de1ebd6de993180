/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <jansson.h>

#include "sections/shared_services.h"
#include "apps/needs.h"
#include "base/log.h"
#include "base/work.h"
#include "config/shared.h"
#include "registry/in_force.h"
#include "registry/names.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "sections/added_services.h"
#include "sections/services_section.h"
#include "services/services.h"

struct shared_services {
	struct shared_source source;
	char *text;	      /* the source's */
	struct config config; /* made of it, without the services that this node has its own of */
	struct strv overridden;
	bool loaded; /* its services are there, as far as they can be */
};

static void drop(struct shared_services *v)
{
	if (!v)
		return;
	config_free(&v->config);
	strv_free(&v->overridden);
	free(v->text);
	free(v);
}

static void set(struct agent *a, struct shared_services *v)
{
	a->shared = v;
	a->shared_config = v ? &v->config : NULL;
}

void shared_free(struct agent *a)
{
	drop(a->shared);
	set(a, NULL);
}

static struct config_service *find(const struct config *c, const char *name)
{
	for (size_t i = 0; c && i < c->n_services; i++)
		if (streq(c->services[i].name, name))
			return &c->services[i];
	return NULL;
}

const struct config_service *shared_find(const struct agent *a, const char *name)
{
	return find(a->shared_config, name);
}

const struct shared_source *shared_source(const struct agent *a)
{
	return a->shared ? &a->shared->source : NULL;
}

const struct strv *shared_overridden(const struct agent *a)
{
	return a->shared ? &a->shared->overridden : NULL;
}

/* --- what of it is this node's --- */

struct parse {
	const char *text;
	struct config *config;
	struct config_errors errs;
	int r;
};

static void parse(void *arg)
{
	struct parse *p = arg;

	p->r = config_shared_parse(p->text, strlen(p->text), p->config, &p->errs);
}

/* The node's own services of the same names come first. */
static int override(const struct agent *a, const struct config *own, struct shared_services *v)
{
	struct config *c = &v->config;
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < c->n_services; i++) {
		work_pause(a->work);
		if (find(own, c->services[i].name) || added_find(a, c->services[i].name)) {
			r = r ? r : strv_add(&v->overridden, c->services[i].name);
			config_service_free(&c->services[i]);
		} else {
			c->services[kept++] = c->services[i];
		}
	}
	c->n_services = kept;
	return r;
}

static int make(struct agent *a, const struct config *own, const struct shared_source *source,
		struct shared_services **ret, struct error *e)
{
	struct shared_services *v = calloc(1, sizeof(*v));
	struct parse p = {.text = source->text, .config = v ? &v->config : NULL};

	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	v->source = *source;
	v->source.text = v->text = strdup(source->text);
	work_offload(v->text ? a->work : NULL, parse, &p);
	if (p.r && p.errs.n)
		error_set(e, p.r, "line %u, %.80s: found %.80s, expected %.160s", p.errs.e[0].line,
			  p.errs.e[0].path, p.errs.e[0].found, p.errs.e[0].expected);
	else if (p.r)
		error_set(e, p.r, "it cannot be read: %s", strerror(-p.r));
	config_errors_free(&p.errs);
	if (p.r) {
		free(v->text);
		free(v);
		return p.r;
	}
	if (v->text && !override(a, own, v)) {
		*ret = v;
		return 0;
	}
	drop(v);
	return error_set(e, -ENOMEM, "out of memory");
}

/* --- from one to the next --- */

int shared_check(struct agent *a, const struct config *next, struct error *e)
{
	for (size_t i = 0; i < next->n_services; i++) {
		const struct config_service *c = &next->services[i];
		const struct config_service *old = shared_find(a, c->name);
		const struct name *n = name_find(a, c->name);
		const struct service *s = service_by_name(a, c->name);
		int r = 0;

		work_pause(a->work);
		if (find(&a->config, c->name) || added_find(a, c->name))
			continue;
		if (n && (n->app || n->declared))
			return error_set(e, -EEXIST,
					 "the service %s cannot have that name here: an app has it",
					 c->name);
		if (prefix_contains(&a->config.cluster.pool, &c->ip4))
			return error_set(
				e, -EINVAL,
				"the service %s asks for an address of the cluster's pool, "
				"which is one node's: take another, or none",
				c->name);
		if (!old || !config_service_eq(old, c))
			r = service_check_addresses(a, s && s->conf ? s : NULL, c, e);
		if (r)
			return r;
	}
	return in_force_room(a, &a->config, next, e);
}

/* Only what stands on that config's memory is its own. */
static void remove_services(struct agent *a, const struct shared_services *from,
			    const struct shared_services *keep)
{
	for (size_t i = 0; from && i < from->config.n_services; i++) {
		const struct config_service *c = &from->config.services[i];
		const struct service *s = service_by_name(a, c->name);

		if (s && s->conf == c && !find(keep ? &keep->config : NULL, c->name))
			services_section_drop(a, c, NULL);
		work_pause(a->work);
	}
}

/* Every service stands on the memory of `to` afterwards. The first error is kept. */
static int stand_on(struct agent *a, const struct shared_services *from, struct shared_services *to,
		    struct error *e)
{
	int first = 0;

	remove_services(a, from, to);
	for (size_t i = 0; to && i < to->config.n_services; i++) {
		struct config_service *next = &to->config.services[i];
		struct error why = {0};
		int r = services_section_put(a, find(from ? &from->config : NULL, next->name), next,
					     &why);

		if (r && !first) {
			first = r;
			if (e)
				*e = why;
		}
	}
	return first;
}

/* The rules are told of these. */
static int tell(struct agent *a, struct shared_services *was, struct shared_services *next,
		struct error *e)
{
	int r;

	set(a, next);
	r = in_force_apply(a, &a->config, NULL, 0, e);
	if (!r)
		return 0;
	set(a, was);
	return e->text[0] ? r : error_set(e, r, "the rules cannot be told: %s", strerror(-r));
}

/* Takes next over: it holds, or what was before does. */
static int change(struct agent *a, struct shared_services *next, struct error *e)
{
	struct shared_services *was = a->shared;
	struct error why;
	int r = stand_on(a, was, next, e);

	next->loaded = true;
	r = r ? r : tell(a, was, next, e);
	if (!r) {
		drop(was);
		return needs_hold(a);
	}
	if (stand_on(a, next, was, &why))
		log_error("%s", why.text);
	drop(next);
	return r;
}

/* --- the record --- */

static void path_of(const struct agent *a, char buf[128])
{
	snprintf(buf, 128, "%s/shared.json", a->inst->run_dir);
}

static int save(const struct agent *a)
{
	const struct shared_source *s = &a->shared->source;
	json_t *j = json_pack("{ss sI ss ss}", "cluster", s->cluster, "revision",
			      (json_int_t)s->revision, "id", s->id, "text", s->text);
	autofree char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	char path[128];

	json_decref(j);
	path_of(a, path);
	return text ? file_replace(path, 0600, text) : -ENOMEM;
}

void shared_read(struct agent *a, const struct config *next)
{
	struct shared_source source = {0};
	struct shared_services *v;
	struct error e = {0};
	const char *id, *cluster;
	char path[128];
	json_t *j;

	path_of(a, path);
	j = next->cluster.name ? json_load_file(path, 0, NULL) : NULL;
	cluster = json_string_value(json_object_get(j, "cluster"));
	if (cluster && next->cluster.name &&
	    streq(cluster, next->cluster.name)) /* another's is nothing to this one */
		source.text = json_string_value(json_object_get(j, "text"));
	source.revision = json_integer_value(json_object_get(j, "revision"));
	id = json_string_value(json_object_get(j, "id"));
	snprintf(source.id, sizeof(source.id), "%s", id ? id : "");
	snprintf(source.cluster, sizeof(source.cluster), "%s", cluster ? cluster : "");
	if (source.text && make(a, next, &source, &v, &e))
		log_error("the cluster's config in %s cannot be read: %s", path, e.text);
	else if (source.text)
		set(a, v);
	json_decref(j);
}

void shared_load(struct agent *a)
{
	struct error e = {0};

	if (!a->shared)
		return;
	a->shared->loaded = true;
	if (stand_on(a, NULL, a->shared, &e))
		log_error("%s", e.text);
	if (needs_hold(a))
		log_error("connections to services of the cluster's config do not wait");
}

/* --- what is asked for --- */

int shared_apply(struct agent *a, const struct shared_source *source, struct error *e)
{
	struct shared_services *next;
	int r = make(a, &a->config, source, &next, e);

	if (r)
		return r;
	r = shared_check(a, &next->config, e);
	if (r) {
		drop(next);
		return r;
	}
	r = change(a, next, e);
	if (!r && save(a))
		log_error(
			"the cluster's config cannot be recorded in %s: an agent that starts while "
			"etcd is away has none",
			a->inst->run_dir);
	return r;
}

/* Whether others than those are overridden now. */
static bool is_stale(const struct agent *a, const struct shared_services *v)
{
	for (size_t i = 0; i < v->config.n_services; i++) {
		work_pause(a->work);
		if (find(&a->config, v->config.services[i].name) ||
		    added_find(a, v->config.services[i].name))
			return true;
	}
	for (size_t i = 0; i < v->overridden.n; i++)
		if (!find(&a->config, v->overridden.v[i]) && !added_find(a, v->overridden.v[i]))
			return true;
	return false;
}

void shared_settle(struct agent *a)
{
	struct shared_services *next;
	struct error e = {0};

	if (!a->shared || !a->shared->loaded || !is_stale(a, a->shared))
		return;
	if (make(a, &a->config, &a->shared->source, &next, &e) || change(a, next, &e))
		log_error("the cluster's config: %s", e.text);
}

void shared_retry(struct agent *a)
{
	for (size_t i = 0; a->shared && a->shared->loaded && i < a->shared->config.n_services;
	     i++) {
		struct config_service *c = &a->shared->config.services[i];
		struct error e;

		if (!service_by_name(a, c->name))
			services_section_put(a, NULL, c, &e);
	}
}
