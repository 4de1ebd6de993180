/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>

#include "sections/added_services.h"
#include "base/address.h"
#include "base/log.h"
#include "config/config.h"
#include "config/parse.h"
#include "config/service_words.h"
#include "registry/app_table.h"
#include "registry/in_force.h"
#include "registry/names.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "sections/services_section.h"
#include "sections/shared_services.h"
#include "services/services.h"
#include "yaml/errors.h"

struct added_services {
	json_t *words;	      /* name -> keys of the config's services: */
	struct config config; /* made of them */
};

static void drop(struct added_services *v)
{
	if (!v)
		return;
	json_decref(v->words);
	config_free(&v->config);
	free(v);
}

/* Rules may name them (registry/in_force.h). */
static void set(struct agent *a, struct added_services *v)
{
	a->added = v;
	a->added_config = v ? &v->config : NULL;
}

void added_free(struct agent *a)
{
	drop(a->added_before);
	a->added_before = NULL;
	drop(a->added);
	set(a, NULL);
}

static struct config_service *find(const struct added_services *v, const char *name)
{
	for (size_t i = 0; v && i < v->config.n_services; i++)
		if (streq(v->config.services[i].name, name))
			return &v->config.services[i];
	return NULL;
}

const struct config_service *added_find(const struct agent *a, const char *name)
{
	return find(a->added, name);
}

/* --- what it says --- */

/* Where the parser says services.shop.ports[0], whoever gave --port reads ports[0]. */
static int say(const struct config_errors *errs, int r, struct error *e)
{
	const struct config_error *first = errs->n ? &errs->e[0] : NULL;
	const char *path = first && first->path ? first->path : "";
	const char *dot = strchr(path, '.');

	dot = dot ? strchr(dot + 1, '.') : NULL;
	if (!first || !first->found)
		return error_set(e, r, "the service cannot be read: %s", strerror(-r));
	return error_set(e, r, "%.60s: found %.80s, expected %.160s", dot ? dot + 1 : path,
			 first->found, first->expected);
}

/* JSON is YAML. Takes the reference. */
static int make(json_t *words, struct added_services **ret, struct error *e)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	struct added_services *v = calloc(1, sizeof(*v));
	json_t *all = v ? json_pack("{sO}", "services", words) : NULL;
	autofree char *text = all ? json_dumps(all, 0) : NULL;
	int r = -ENOMEM;

	json_decref(all);
	if (text) {
		r = config_parse(text, strlen(text), &v->config, &errs);
		if (r)
			say(&errs, r, e);
	}
	if (r) {
		json_decref(words);
		free(v);
		return text ? r : error_set(e, r, "out of memory");
	}
	v->words = words;
	*ret = v;
	return 0;
}

/* --- the record --- */

static void path_of(const struct agent *a, char buf[128])
{
	snprintf(buf, 128, "%s/services.json", a->inst->run_dir);
}

static int save(const struct agent *a, const json_t *words)
{
	autofree char *text = json_dumps(words, JSON_INDENT(1));
	char path[128];

	path_of(a, path);
	if (!text)
		return -ENOMEM;
	if (!json_object_size(words))
		return unlink(path) && errno != ENOENT ? -errno : 0;
	return file_replace(path, 0600, text);
}

/* --- from one set of words to the next --- */

/* Every service stands on the memory of `to` afterwards, changed where it is another. The first
 * error is kept. */
static int stand_on(struct agent *a, const struct added_services *from, struct added_services *to,
		    struct error *e)
{
	int first = 0;

	for (size_t i = 0; from && i < from->config.n_services; i++) {
		const struct config_service *old = &from->config.services[i];

		if (!find(to, old->name))
			services_section_drop(a, old, NULL);
	}
	for (size_t i = 0; i < to->config.n_services; i++) {
		struct config_service *next = &to->config.services[i];
		struct error why = {0};
		int r = services_section_put(a, find(from, next->name), next, &why);

		if (r && !first) {
			first = r;
			if (e)
				*e = why;
		}
	}
	return first;
}

static int check_addresses(struct agent *a, const struct added_services *from,
			   const struct added_services *to, struct error *e)
{
	for (size_t i = 0; i < to->config.n_services; i++) {
		const struct config_service *next = &to->config.services[i];
		const struct config_service *old = find(from, next->name);
		int r = old && config_service_eq(old, next)
				? 0
				: service_check_addresses(a, service_by_name(a, next->name), next,
							  e);

		if (r)
			return r;
	}
	return 0;
}

/* What the pool has given a service is its own from then on: the next agent gives it the same. */
static void keep_addresses(struct agent *a, struct added_services *v)
{
	for (size_t i = 0; i < v->config.n_services; i++) {
		struct config_service *c = &v->config.services[i];
		const struct service *s = service_by_name(a, c->name);
		char text[2 * ADDR_STRLEN + 1] = "", addr[ADDR_STRLEN];

		if (!s || !addr_is_zero(&c->ip4) || !addr_is_zero(&c->ip6))
			continue;
		c->ip4 = s->vip4;
		c->ip6 = s->vip6;
		if (!addr_is_zero(&c->ip4))
			strcat(text, addr_format(&c->ip4, addr));
		if (!addr_is_zero(&c->ip4) && !addr_is_zero(&c->ip6))
			strcat(text, ",");
		if (!addr_is_zero(&c->ip6))
			strcat(text, addr_format(&c->ip6, addr));
		json_object_set_new(json_object_get(v->words, c->name), "ip", json_string(text));
	}
}

/* Whether rules speak of a service that is another now. */
static bool rules_speak_of(const struct agent *a, const struct added_services *x,
			   const struct added_services *y)
{
	for (size_t i = 0; x && i < x->config.n_services; i++) {
		const struct config_service *s = &x->config.services[i];
		const struct config_service *other = find(y, s->name);

		if ((!other || !config_service_eq(s, other)) && in_force_names(a, s->name))
			return true;
	}
	return false;
}

/* The rules speak of these. */
static int tell_rules(struct agent *a, struct added_services *was, struct added_services *next,
		      struct error *e)
{
	int r;

	set(a, next);
	if (!rules_speak_of(a, was, next) && !rules_speak_of(a, next, was))
		return 0;
	r = in_force_apply(a, &a->config, NULL, 0, e);
	if (r)
		set(a, was);
	return r && !e->text[0] ? error_set(e, r, "the rules cannot be told: %s", strerror(-r)) : r;
}

/* Takes the reference to words. */
static int change(struct agent *a, json_t *words, struct error *e)
{
	struct added_services *was = a->added, *next = NULL;
	struct error why = {0};
	int r = make(words, &next, e);

	if (r)
		return r;
	r = check_addresses(a, was, next, e);
	if (r) {
		drop(next);
		return r;
	}
	r = stand_on(a, was, next, e);
	if (!r)
		keep_addresses(a, next);
	r = r ? r : tell_rules(a, was, next, e);
	if (!r) {
		r = save(a, next->words);
		if (r)
			error_set(e, r, "the service cannot be recorded in %s: %s",
				  a->inst->run_dir, strerror(-r));
		if (!r) {
			drop(was);
			return 0;
		}
		tell_rules(a, next, was, &why);
	}
	if (was) {
		stand_on(a, next, was, NULL);
	} else {
		for (size_t i = 0; i < next->config.n_services; i++)
			services_section_drop(a, &next->config.services[i], NULL);
	}
	drop(next);
	return r;
}

/* --- what is asked for --- */

static bool is_declared(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_services; i++)
		if (streq(c->services[i].name, name))
			return true;
	return false;
}

static int declared_error(const struct agent *a, const char *name, struct error *e)
{
	return error_set(e, -EPERM,
			 "the config declares the service %s: change %s, and 'ax config apply' it",
			 name, a->config_path ? a->config_path : "the file that was applied");
}

static int check_name(struct agent *a, const char *name, struct error *e)
{
	const struct name *n = name_find(a, name);

	if (is_declared(&a->config, name))
		return declared_error(a, name, e);
	if (added_find(a, name))
		return error_set(e, -EEXIST, "there is a service %s: 'ax service set' changes it",
				 name);
	if (shared_find(a, name))
		return error_set(e, -EPERM,
				 "the cluster's config has the service %s: change that, and 'ax "
				 "config apply --cluster' it",
				 name);
	if (n && (n->app || n->service || n->declared))
		return error_set(e, -EEXIST, "the service cannot be named %s: an app is", name);
	return 0;
}

static json_t *words_of(const struct agent *a)
{
	return a->added ? json_copy(a->added->words) : json_object();
}

int added_add(struct agent *a, const char *name, json_t *words, struct error *e)
{
	int r = check_name(a, name, e);
	json_t *all;

	if (r)
		return r;
	all = words_of(a);
	if (!all || json_object_set(all, name, words)) {
		json_decref(all);
		return error_set(e, -EINVAL, "a service's name is a text, such as shop");
	}
	return change(a, all, e);
}

static int check_added(const struct agent *a, const char *name, struct error *e)
{
	if (added_find(a, name))
		return 0;
	if (is_declared(&a->config, name))
		return declared_error(a, name, e);
	return error_set(e, -ENOENT, "no service %.60s was added: see 'ax get services -o wide'",
			 name);
}

/* Whoever gives up affinity has not to know that a time-out was given, too. */
static void drop_idle_words(json_t *one, const json_t *words)
{
	const char *affinity = json_string_value(json_object_get(words, "affinity"));

	if (affinity && streq(affinity, affinity_name(AFFINITY_NONE)) &&
	    !json_object_get(words, "affinity-timeout"))
		json_object_del(one, "affinity-timeout");
}

int added_set(struct agent *a, const char *name, json_t *words, struct error *e)
{
	int r = check_added(a, name, e);
	json_t *all, *one;

	if (r)
		return r;
	all = words_of(a);
	one = all ? json_copy(json_object_get(all, name)) : NULL;
	if (!one || json_object_update(one, words) || json_object_set(all, name, one)) {
		json_decref(one);
		json_decref(all);
		return error_set(e, -ENOMEM, "out of memory");
	}
	drop_idle_words(one, words);
	json_decref(one);
	return change(a, all, e);
}

int added_del(struct agent *a, const char *name, struct error *e)
{
	int r = check_added(a, name, e);
	json_t *all;

	if (r)
		return r;
	all = words_of(a);
	if (!all)
		return error_set(e, -ENOMEM, "out of memory");
	json_object_del(all, name);
	return change(a, all, e);
}

void added_taken_over(struct agent *a, const char *name)
{
	struct added_services *was = a->added, *next;
	json_t *all = words_of(a);
	struct error e;

	if (!all)
		return;
	json_object_del(all, name);
	if (make(all, &next, &e)) {
		log_error("the service %s stays recorded as added: %s", name, e.text);
		return;
	}
	/* the same words in other memory; the one that was taken over stands on the config's */
	for (size_t i = 0; i < next->config.n_services; i++)
		services_section_put(a, find(was, next->config.services[i].name),
				     &next->config.services[i], &e);
	if (save(a, next->words))
		log_error("the added services cannot be recorded in %s", a->inst->run_dir);
	set(a, next);
	drop(was);
}

void added_retry(struct agent *a)
{
	for (size_t i = 0; a->added && i < a->added->config.n_services; i++) {
		struct config_service *c = &a->added->config.services[i];
		struct error e;

		if (!service_by_name(a, c->name))
			services_section_put(a, NULL, c, &e);
	}
}

static json_t *load(const struct agent *a, const struct config *c)
{
	json_error_t why;
	const char *name;
	json_t *words, *v;
	char path[128];
	void *next;

	path_of(a, path);
	words = json_load_file(path, 0, &why);
	if (!words && access(path, F_OK) == 0)
		log_error("the added services in %s cannot be read: %s", path, why.text);
	if (!words)
		return NULL;
	json_object_foreach_safe(words, next, name,
				 v) if (is_declared(c, name)) /* by a file that is newer */
		json_object_del(words, name);
	return words;
}

void added_read(struct agent *a, const struct config *next)
{
	json_t *words = load(a, next);
	struct error e;

	/* (added_load() says it) */
	if (words && !make(words, &a->added_before, &e))
		a->added_config = &a->added_before->config;
}

static void forget_read(struct agent *a)
{
	drop(a->added_before);
	a->added_before = NULL;
	set(a, a->added);
}

void added_load(struct agent *a)
{
	json_t *words = load(a, &a->config);
	struct error e = {0};

	if (words && make(words, &a->added, &e))
		log_error("the added services in %s cannot be read: %s", a->inst->run_dir, e.text);
	forget_read(a);
	if (!a->added)
		return;
	if (stand_on(a, NULL, a->added, &e))
		log_error("%s", e.text);
	if (save(a, a->added->words))
		log_error("the added services cannot be recorded in %s", a->inst->run_dir);
}
