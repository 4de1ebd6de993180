/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>

#include "sections/added_rules.h"
#include "apps/needs.h"
#include "base/log.h"
#include "config/added_rules.h"
#include "config/config.h"
#include "config/parse.h"
#include "registry/in_force.h"
#include "registry/state.h"
#include "yaml/errors.h"

struct added_policy {
	json_t *list;	      /* of {"name", "kind", "words", "place", "at"?}, as they were added */
	struct config config; /* its rules are made of them, one of each */
	struct added_rules rules;
	bool moved; /* some stand elsewhere than is recorded */
};

static void drop(struct added_policy *p)
{
	if (!p)
		return;
	json_decref(p->list);
	config_free(&p->config);
	free(p->rules.v);
	free(p);
}

static void set(struct agent *a, struct added_policy *p)
{
	a->added_policy = p;
	a->added_rules = p && p->rules.n ? &p->rules : NULL;
}

void added_rules_free(struct agent *a)
{
	drop(a->added_policy);
	set(a, NULL);
}

static const char *member(const json_t *one, const char *key)
{
	return json_string_value(json_object_get(one, key));
}

static int out_of_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

/* --- what they say --- */

/* Where the parser says policy.rules[0].deny.from, whoever gave --from reads from. */
static int say(const struct config_errors *errs, int r, struct error *e)
{
	const struct config_error *first = errs->n ? &errs->e[0] : NULL;
	const char *path = first && first->path ? first->path : "";
	const char *dot = strchr(path, ']');

	dot = dot && dot[1] == '.' ? strchr(dot + 2, '.') : NULL;
	if (!first || !first->found)
		return error_set(e, r, "the rule cannot be read: %s", strerror(-r));
	return error_set(e, r, "%.60s: found %.80s, expected %.160s", dot ? dot + 1 : "the rule",
			 first->found, first->expected);
}

/* The config's `policy:` that has these rules; NULL: out of memory, or one has no such members. */
static char *text_of(const json_t *list)
{
	json_t *rules = json_array(), *all, *one;
	char *text;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *kind = member(one, "kind"), *name = member(one, "name");
		json_t *words = json_copy(json_object_get(one, "words"));

		if (!kind || !name || json_object_set_new(words, "name", json_string(name)))
			json_decref(words);
		else
			json_array_append_new(rules, json_pack("{so}", kind, words));
	}
	all = json_pack("{s{so}}", "policy", "rules", rules);
	text = json_array_size(rules) == json_array_size(list) ? json_dumps(all, 0) : NULL;
	json_decref(all);
	return text;
}

static bool place_of(const char *text, enum rule_place *ret)
{
	for (enum rule_place p = 0; text && p < RULE_PLACES; p++)
		if (streq(text, rule_place_name(p))) {
			*ret = p;
			return true;
		}
	return false;
}

static int put_places(struct added_policy *p, struct error *e)
{
	p->rules.v = calloc(json_array_size(p->list) + 1, sizeof(*p->rules.v));
	if (!p->rules.v)
		return out_of_memory(e);
	for (size_t i = 0; i < p->config.n_rules; i++) {
		const json_t *one = json_array_get(p->list, i);
		struct added_rule *rule = &p->rules.v[i];

		*rule = (struct added_rule){.rule = &p->config.rules[i], .at = member(one, "at")};
		if (!place_of(member(one, "place"), &rule->place) ||
		    (rule->place >= RULE_BEFORE) != (rule->at != NULL))
			return error_set(e, -EINVAL,
					 "a rule stands first, last, or before or after another");
		p->rules.n++;
	}
	return 0;
}

/* JSON is YAML. Takes the reference. */
static int make(json_t *list, struct added_policy **ret, struct error *e)
{
	CLEANUP(config_errors_free) struct config_errors errs = {0};
	struct added_policy *p = calloc(1, sizeof(*p));
	autofree char *text = p ? text_of(list) : NULL;
	int r = 0;

	if (!text) {
		json_decref(list);
		free(p);
		return error_set(e, p ? -EINVAL : -ENOMEM, "the rule cannot be read");
	}
	p->list = list;
	r = config_parse(text, strlen(text), &p->config, &errs);
	if (r) {
		say(&errs, r, e);
		p->config = (struct config){0};
	}
	r = r ? r : put_places(p, e);
	if (r)
		drop(p);
	else
		*ret = p;
	return r;
}

/* --- the record --- */

static void path_of(const struct agent *a, char buf[128])
{
	snprintf(buf, 128, "%s/policy.json", a->inst->run_dir);
}

static int save(const struct agent *a, const json_t *list)
{
	autofree char *text = json_dumps(list, JSON_INDENT(1));
	char path[128];

	path_of(a, path);
	if (!text)
		return -ENOMEM;
	if (!json_array_size(list))
		return unlink(path) && errno != ENOENT ? -errno : 0;
	return file_replace(path, 0600, text);
}

/* --- from one list to the next --- */

static int tell(struct agent *a, struct error *e)
{
	struct error why = {0};
	int r = in_force_apply(a, &a->config, NULL, 0, e);

	if (r)
		return e->text[0] ? r
				  : error_set(e, r, "the rules cannot be told: %s", strerror(-r));
	if (needs_egress(a, &why))
		log_warn("%s", why.text);
	return 0;
}

/* Takes the reference. What cannot be done, or not be recorded, is undone. */
static int change(struct agent *a, json_t *list, struct error *e)
{
	struct added_policy *was = a->added_policy, *next = NULL;
	struct error why = {0};
	int r = list ? make(list, &next, e) : out_of_memory(e);

	if (r || !next)
		return r;
	set(a, next);
	r = tell(a, e);
	if (!r) {
		r = save(a, next->list);
		if (r)
			error_set(e, r, "the rule cannot be recorded in %s: %s", a->inst->run_dir,
				  strerror(-r));
	}
	if (!r) {
		drop(was);
		return 0;
	}
	set(a, was);
	if (tell(a, &why))
		log_error("rules that were not recorded may hold: %s", why.text);
	drop(next);
	return r;
}

/* --- where one stands --- */

static size_t find(const struct agent *a, const char *name)
{
	size_t n = a->added_policy ? json_array_size(a->added_policy->list) : 0, i = 0;

	while (i < n && !streq(member(json_array_get(a->added_policy->list, i), "name"), name))
		i++;
	return i;
}

static bool is_added(const struct agent *a, const char *name)
{
	return a->added_policy && find(a, name) < json_array_size(a->added_policy->list);
}

static bool is_number(const char *text)
{
	return text[strspn(text, "0123456789")] == '\0';
}

/* What the rule is known by that is given by its number in the config, or by its name. */
static int key_of(const struct agent *a, const char *text, char **ret, struct error *e)
{
	const struct config *c = &a->config;
	unsigned long number;
	size_t i;

	if (!is_number(text)) {
		if (!is_added(a, text) && added_rule_find(c->rules, c->n_rules, text) == c->n_rules)
			return error_set(
				e, -ENOENT,
				"there is no rule %.63s among policy.rules and those that were "
				"added: see 'ax policy ls'",
				text);
		*ret = strdup(text);
		return *ret ? 0 : out_of_memory(e);
	}
	number = strtoul(text, NULL, 10);
	if (!number || number > c->n_rules)
		return error_set(
			e, -ENOENT,
			"policy.rules of the config has no rule '%.20s': see 'ax policy ls'", text);
	i = number - 1;
	*ret = added_rule_key(&c->rules[i]);
	if (!*ret)
		return out_of_memory(e);
	if (added_rule_find(c->rules, c->n_rules, *ret) == i)
		return 0;
	free(take_ptr(ret));
	return error_set(e, -EINVAL, "rule %s is like another: give it a name in the config", text);
}

/* Another one that stands by that one; NULL: none. */
static const char *leans_on(const json_t *list, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *at = member(one, "at");

		if (at && streq(at, name))
			return member(one, "name");
	}
	return NULL;
}

static int put_place(const struct agent *a, json_t *one, const json_t *asked, struct error *e)
{
	const char *place = member(asked, "place"), *at = member(asked, "at");
	autofree char *key = NULL;
	enum rule_place p;
	int r;

	if (!place_of(place, &p) || (p >= RULE_BEFORE && !at))
		return error_set(e, -EINVAL,
				 "a rule stands first, last, or before or after another");
	json_object_set_new(one, "place", json_string(place));
	json_object_del(one, "at");
	if (p < RULE_BEFORE)
		return 0;
	if (streq(at, member(one, "name")))
		return error_set(e, -EINVAL, "a rule cannot stand before or after itself");
	r = key_of(a, at, &key, e);
	return r ? r : json_object_set_new(one, "at", json_string(key)) ? out_of_memory(e) : 0;
}

/* --- what is asked for --- */

static int declared_error(const struct agent *a, const char *name, struct error *e)
{
	return error_set(e, -EPERM,
			 "the config has the rule %s: change %s, and 'ax config apply' it", name,
			 a->config_path ? a->config_path : "the file that was applied");
}

/* (A number is what rules of the config go by.) */
static int check_name(const struct agent *a, const char *name, struct error *e)
{
	if (is_number(name))
		return error_set(e, -EINVAL, "a rule that is added has a name, not a number");
	if (config_has_rule(&a->config, name))
		return declared_error(a, name, e);
	if (is_added(a, name))
		return error_set(e, -EEXIST, "there is a rule %s: 'ax policy set' changes it",
				 name);
	return 0;
}

static json_t *list_of(const struct agent *a)
{
	return a->added_policy ? json_copy(a->added_policy->list) : json_array();
}

int added_rules_add(struct agent *a, const char *name, json_t *asked, struct error *e)
{
	const char *kind = member(asked, "kind");
	json_t *words = json_object_get(asked, "words"), *list, *one;
	int r = check_name(a, name, e);

	if (!r && (!kind || !json_is_object(words)))
		r = error_set(e, -EINVAL, "say what the rule does: allow, deny, log or audit");
	if (r)
		return r;
	one = json_pack("{ss ss sO ss}", "name", name, "kind", kind, "words", words, "place",
			"last");
	r = !one			      ? out_of_memory(e)
	    : json_object_get(asked, "place") ? put_place(a, one, asked, e)
					      : 0;
	list = r ? NULL : list_of(a);
	if (r || !list || json_array_append(list, one)) {
		json_decref(list);
		list = NULL;
	}
	json_decref(one);
	return r ? r : change(a, list, e);
}

static int check_added(const struct agent *a, const char *name, struct error *e)
{
	if (is_added(a, name))
		return 0;
	if (config_has_rule(&a->config, name))
		return declared_error(a, name, e);
	return error_set(e, -ENOENT, "no rule %.63s was added: see 'ax policy ls'", name);
}

/* Into the list, at the place that it has or at its end: who stands by another comes after it. */
static int put_changed(const struct agent *a, json_t *list, size_t i, json_t *one,
		       const json_t *asked, struct error *e)
{
	const char *name = member(one, "name"), *other;
	int r;

	if (!json_object_get(asked, "place"))
		return json_array_set(list, i, one) ? out_of_memory(e) : 0;
	other = leans_on(list, name);
	if (other)
		return error_set(e, -EBUSY,
				 "the rule %s stands before or after %s: move that one first",
				 other, name);
	r = put_place(a, one, asked, e);
	if (!r && (json_array_remove(list, i) || json_array_append(list, one)))
		r = out_of_memory(e);
	return r;
}

/* What is null is taken away. */
static int put_words(json_t *words, const json_t *more)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)more, key, value) {
		if (json_is_null(value))
			json_object_del(words, key);
		else if (json_object_set(words, key, value))
			return -ENOMEM;
	}
	return 0;
}

int added_rules_set(struct agent *a, const char *name, json_t *asked, struct error *e)
{
	json_t *list, *one, *words, *kind = json_object_get(asked, "kind");
	json_t *more = json_object_get(asked, "words");
	int r = check_added(a, name, e);
	size_t i;

	if (!r && more && !json_is_object(more))
		r = error_set(e, -EINVAL, "the words of a rule are keys and what they are");
	if (r)
		return r;
	i = find(a, name);
	list = list_of(a);
	one = json_copy(json_array_get(list, i));
	words = json_copy(json_object_get(one, "words"));
	if (!words || (more && put_words(words, more)) || json_object_set(one, "words", words) ||
	    (kind && json_object_set(one, "kind", kind)))
		r = out_of_memory(e);
	r = r ? r : put_changed(a, list, i, one, asked, e);
	json_decref(words);
	json_decref(one);
	if (r)
		json_decref(list);
	return r ? r : change(a, list, e);
}

static int take_out(const struct agent *a, json_t *list, const json_t *names, struct error *e)
{
	const json_t *one;
	size_t i;

	json_array_foreach (names, i, one) {
		const char *name = json_string_value(one);
		int r = name ? check_added(a, name, e) : -EINVAL;
		size_t at = 0;

		if (r)
			return name ? r : error_set(e, r, "a rule's name is a text");
		while (at < json_array_size(list) &&
		       !streq(member(json_array_get(list, at), "name"), name))
			at++;
		json_array_remove(list, at); /* (one that was named twice is gone) */
	}
	json_array_foreach (names, i, one) {
		const char *other = leans_on(list, json_string_value(one));

		if (other)
			return error_set(e, -EBUSY,
					 "the rule %s stands before or after %s: move or delete "
					 "that one as well",
					 other, json_string_value(one));
	}
	return 0;
}

int added_rules_del(struct agent *a, json_t *names, struct error *e)
{
	json_t *list;
	int r;

	if (!json_array_size(names))
		return error_set(e, -EINVAL, "say which rules");
	list = list_of(a);
	r = list ? take_out(a, list, names, e) : out_of_memory(e);
	if (r)
		json_decref(list);
	return r ? r : change(a, list, e);
}

/* --- another config --- */

int added_rules_check(const struct agent *a, const struct config *next, struct error *e)
{
	const struct added_rule *lost = added_rules_lost(a->added_rules, next);

	if (!lost)
		return 0;
	return error_set(
		e, -EBUSY,
		"the added rule %s stands %s the rule '%.100s', which this config does not "
		"have: 'ax policy set %s' with another place, or 'ax policy del %s', "
		"comes first",
		lost->rule->name, rule_place_name(lost->place), lost->at, lost->rule->name,
		lost->rule->name);
}

const char *added_rules_taken(const struct agent *a, const struct config *next, size_t i)
{
	for (size_t k = 0; a->added_rules && k < a->added_rules->n; k++) {
		const char *name = a->added_rules->v[k].rule->name;

		if (config_has_rule(next, name) && i-- == 0)
			return name;
	}
	return NULL;
}

/* Those that are not the config's. */
static json_t *without_taken(const json_t *list, const struct config *c)
{
	json_t *left = json_array(), *one;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *name = member(one, "name");

		if (name && !config_has_rule(c, name))
			json_array_append(left, one);
	}
	return left;
}

/* (They are left out of what holds already. An agent that starts forgets them only now, too: one
 * that cannot, and goes back to the former config, still has them.) */
void added_rules_settle(struct agent *a)
{
	struct added_policy *was = a->added_policy, *next = NULL;
	struct error e = {0};
	json_t *left;

	if (!added_rules_taken(a, &a->config, 0) && !(was && was->moved))
		return;
	left = without_taken(was->list, &a->config);
	if (!left || make(left, &next, &e)) {
		log_error("rules that the config has stay recorded as added: %s", e.text);
		return;
	}
	if (save(a, next->list))
		log_error("the added rules cannot be recorded in %s", a->inst->run_dir);
	set(a, next);
	drop(was);
}

/* --- from one agent to the next --- */

/* There is nobody to refuse the config to. They come where the least gets through, and stay there.
 */
static void place_lost(struct agent *a, json_t *list, const struct config *c)
{
	const struct added_rule *lost;

	while ((lost = added_rules_lost(a->added_rules, c))) {
		size_t i = (size_t)(lost - a->added_rules->v);
		enum rule_place p = lost->rule->action == RULE_ALLOW ? RULE_LAST : RULE_FIRST;
		json_t *one = json_array_get(list, i);

		log_warn("the added rule %s stood %s the rule '%s', which the config has no more: "
			 "it "
			 "is the %s one now",
			 lost->rule->name, rule_place_name(lost->place), lost->at,
			 rule_place_name(p));
		json_object_set_new(one, "place", json_string(rule_place_name(p)));
		a->added_rules->v[i].place = p;
		a->added_rules->v[i].at = NULL;
		json_object_del(one, "at");
		a->added_policy->moved = true;
	}
}

int added_rules_read(struct agent *a, const struct config *next, struct error *e)
{
	struct added_policy *p = NULL;
	json_error_t read;
	struct error why = {0};
	char path[128];
	json_t *list;
	int r;

	path_of(a, path);
	list = json_load_file(path, 0, &read);
	if (!list && access(path, F_OK) && errno == ENOENT)
		return 0;
	if (json_is_array(list)) {
		r = make(list, &p, &why);
	} else {
		r = error_set(&why, -EINVAL, "%s", list ? "it is no list" : read.text);
		json_decref(list);
	}
	if (r)
		return error_set(e, r,
				 "the added rules in %s cannot be read (%.200s), and some of them "
				 "may deny: mend that file, or remove it to forget them",
				 path, why.text);
	set(a, p);
	if (p)
		place_lost(a, p->list, next);
	return 0;
}
