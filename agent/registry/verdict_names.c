/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <jansson.h>
#include <search.h>

#include "registry/verdict_names.h"
#include "allot/learnt.h"
#include "allot/policy.h"
#include "base/log.h"
#include "base/search.h"
#include "base/util.h"
#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "machine/instance.h"
#include "registry/app_table.h"
#include "registry/asked_names.h"
#include "registry/state.h"
#include "registry/vips.h"

struct verdict_names {
	struct verdict_name *v; /* ordered by key */
	size_t n;
	void *texts;	  /* tsearch(3) tree of what they say: most say the same */
	uint64_t at_ns;	  /* datapath_seen_last() when all were noted */
	bool incomplete;  /* they were not */
	uint64_t save_ns; /* they are written down then, 0: they are what the file says */
	uint64_t rest_ns; /* and not before */
};

/* --- texts --- */

struct text {
	size_t refs;
	char s[];
};

static struct text *text_of(const char *s)
{
	return (struct text *)(void *)((char *)(uintptr_t)s - offsetof(struct text, s));
}

static int text_cmp(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* NULL: there is none, or no memory for it. */
static const char *text_hold(struct verdict_names *n, const char *s)
{
	size_t size = s ? strlen(s) + 1 : 0;
	char **found = s ? tfind(s, &n->texts, text_cmp) : NULL;
	struct text *t;

	if (!s)
		return NULL;
	if (found) {
		text_of(*found)->refs++;
		return *found;
	}
	t = malloc(sizeof(*t) + size);
	if (!t)
		return NULL;
	t->refs = 1;
	memcpy(t->s, s, size);
	if (tsearch(t->s, &n->texts, text_cmp))
		return t->s;
	free(t);
	return NULL;
}

static void text_drop(struct verdict_names *n, const char *s)
{
	if (!s || --text_of(s)->refs)
		return;
	tdelete(s, &n->texts, text_cmp);
	free(text_of(s));
}

/* In place of what was there, unless there is none now. */
static void text_renew(struct verdict_names *n, const char **at, const char *s)
{
	const char *held = text_hold(n, s);

	if (!held)
		return;
	text_drop(n, *at);
	*at = held;
}

static void drop(struct verdict_names *n, const struct verdict_name *v)
{
	text_drop(n, v->from);
	text_drop(n, v->to);
	text_drop(n, v->asked);
	text_drop(n, v->rule_name);
	text_drop(n, v->rule_text);
}

/* --- rules --- */

struct rule_id {
	uint64_t id;
	size_t at;
};

/* Of two that say the same the first is found. */
static int rule_id_cmp(const void *x, const void *y)
{
	const struct rule_id *a = x, *b = y;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->at > b->at ? -1 : a->at < b->at;
}

const struct config_rule *rule_of_id(struct rule_ids *ids, uint64_t id)
{
	size_t i;

	if (!id || !ids->n)
		return NULL;
	if (!ids->v) {
		ids->v = calloc(ids->n, sizeof(*ids->v));
		if (!ids->v)
			return NULL;
		for (i = 0; i < ids->n; i++)
			ids->v[i] = (struct rule_id){policy_rule_id(&ids->rules[i]), i};
		qsort(ids->v, ids->n, sizeof(*ids->v), rule_id_cmp);
	}
	i = search_above(ids->v, ids->n, sizeof(*ids->v), offsetof(struct rule_id, id), id);
	return i && ids->v[i - 1].id == id ? &ids->rules[ids->v[i - 1].at] : NULL;
}

void rule_ids_free(struct rule_ids *ids)
{
	free(ids->v);
}

/* --- noting --- */

static int key_cmp(const void *x, const void *y)
{
	const struct ax_seen_key *a = x, *b = y; /* each is the first of its struct */

	if (a->app != b->app)
		return a->app < b->app ? -1 : 1;
	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static struct verdict_name *find(const struct verdict_names *n, const struct ax_seen_key *key,
				 uint64_t first_ns)
{
	struct verdict_name *v = NULL;

	if (n && n->n)
		v = bsearch(key, n->v, n->n, sizeof(*n->v), key_cmp);
	return v && v->first_ns == first_ns ? v : NULL; /* else another's, who was there before */
}

void verdict_name_now(struct agent *a, const struct ax_seen_key *key, const struct ax_seen *seen,
		      struct verdict_name *ret)
{
	const struct ax_addr *to = &seen->to.addr;
	const struct app *app = key->app ? app_by_id(a, key->app) : NULL;

	*ret = (struct verdict_name){.key = *key, .first_ns = seen->first_ns};
	ret->from = app ? app->spec.name : name_of_addr(a, &seen->from);
	ret->to = name_of_addr(a, to);
	if (!app || ret->to)
		return;
	ret->asked = asked_name(app, to);
	if (!ret->asked) /* a former agent's are known as far as rules speak of them */
		ret->asked = learnt_name(a->policy.learnt, to, app->id);
}

struct noting {
	struct agent *a;
	struct verdict_names *names, now;
	struct rule_ids rules, before;
	size_t size;
	uint64_t at_ns;
};

static void put_rule(struct noting *n, struct verdict_name *v, uint64_t id)
{
	const struct config_rule *rule = rule_of_id(&n->rules, id);
	autofree char *text = NULL;

	if (!rule)
		rule = rule_of_id(&n->before, id);
	text = rule ? config_rule_text(rule) : NULL;
	text_renew(n->names, &v->rule_text, text);
	if (text)
		text_renew(n->names, &v->rule_name, rule->name);
}

/* Who has tried again meets those that are there now. */
static int note(void *arg, const struct ax_seen_key *key, const struct ax_seen *seen)
{
	struct noting *n = arg;
	struct verdict_name *was = find(n->names, key, seen->first_ns), now, v;

	if (!seen->count) /* it is being written */
		return 0;
	if (n->now.n == n->size) {
		size_t size = n->size ? n->size * 2 : 64;
		void *more = reallocarray(n->now.v, size, sizeof(v));

		if (!more)
			return -ENOMEM;
		n->now.v = more;
		n->size = size;
	}
	v = was ? *was : (struct verdict_name){.key = *key, .first_ns = seen->first_ns};
	if (was)
		*was = (struct verdict_name){.key = *key}; /* it has moved */
	if (seen->last_ns >= v.noted_ns) {
		verdict_name_now(n->a, key, seen, &now);
		text_renew(n->names, &v.from, now.from);
		text_renew(n->names, &v.to, now.to);
		text_renew(n->names, &v.asked, now.asked);
		put_rule(n, &v, AX_SEEN_RULE_ID(seen));
		v.noted_ns = n->at_ns;
	}
	n->now.v[n->now.n++] = v;
	return 0;
}

static void drop_all(struct verdict_names *n)
{
	for (size_t i = 0; i < n->n; i++)
		drop(n, &n->v[i]);
	free(n->v);
	n->v = NULL;
	n->n = 0;
}

/* --- from one agent to the next: a line for each, of no meaning when its entry is another --- */

#define SAVE_MS	   1000	       /* what changes within is written at once */
#define REST_TIMES 50	       /* as long as one time took, between two */
#define RETRY_MS   60000       /* after one that failed */
#define FILE_MAX   (64u << 20) /* bytes */

static void file_path(const struct agent *a, char buf[128])
{
	snprintf(buf, 128, "%s/verdict-names", a->inst->run_dir);
}

static void save_later(struct agent *a)
{
	struct verdict_names *n = a->verdict_names;
	uint64_t at = time_mono_ns() + SAVE_MS * 1000000ull;

	if (n->save_ns)
		return;
	n->save_ns = at > n->rest_ns ? at : n->rest_ns;
	a->timers_stale = true;
}

static void write_line(FILE *f, const struct verdict_name *v)
{
	json_t *j =
		json_pack("[I,I,I,I,s?,s?,s?,s?,s?]", (json_int_t)v->key.app,
			  (json_int_t)v->key.slot, (json_int_t)v->first_ns, (json_int_t)v->noted_ns,
			  v->from, v->to, v->asked, v->rule_name, v->rule_text);

	if (!j)
		return;
	json_dumpf(j, f, JSON_COMPACT);
	fputc('\n', f);
	json_decref(j);
}

static void save(struct agent *a)
{
	struct verdict_names *n = a->verdict_names;
	uint64_t began_ns = time_mono_ns();
	autofree char *text = NULL;
	char path[128];
	size_t len;
	FILE *f;
	int r;

	file_path(a, path);
	n->save_ns = 0;
	f = open_memstream(&text, &len);
	for (size_t i = 0; f && i < n->n; i++)
		write_line(f, &n->v[i]);
	r = f && fclose(f) == 0 ? file_replace(path, 0600, text) : -ENOMEM;
	if (r)
		log_warn("%s cannot be written (%s): the next agent does not know the names of "
			 "those who were refused and are gone",
			 path, strerror(-r));
	n->rest_ns = time_mono_ns();
	n->rest_ns += r ? RETRY_MS * 1000000ull : REST_TIMES * (n->rest_ns - began_ns);
}

/* No other entry's, however wrong the line is: keys are unique, and it is known by its time. */
static bool read_line(struct verdict_names *n, const char *line, size_t len, struct verdict_name *v)
{
	json_t *j = json_loadb(line, len, 0, NULL);
	json_int_t app, slot, first, noted;
	const char **texts[] = {&v->from, &v->to, &v->asked, &v->rule_name, &v->rule_text};
	bool good = json_unpack(j, "[IIII*]", &app, &slot, &first, &noted) == 0;

	if (good)
		*v = (struct verdict_name){.key = {(uint32_t)app, (uint32_t)slot},
					   .first_ns = (uint64_t)first,
					   .noted_ns = (uint64_t)noted};
	for (size_t i = 0; good && i < ARRAY_SIZE(texts); i++)
		*texts[i] = text_hold(n, json_string_value(json_array_get(j, 4 + i)));
	json_decref(j);
	return good;
}

static void load(struct agent *a)
{
	struct verdict_names *n = a->verdict_names;
	autofree char *text = NULL;
	size_t size = 0;
	char path[128];

	file_path(a, path);
	if (file_read(path, FILE_MAX, &text))
		return;
	for (char *line = text, *end; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (n->n == size) {
			struct verdict_name *more;

			size = size ? size * 2 : 64;
			more = reallocarray(n->v, size, sizeof(*n->v));
			if (!more)
				break;
			n->v = more;
		}
		n->n += read_line(n, line, (size_t)(end - line), &n->v[n->n]);
	}
	if (n->n)
		qsort(n->v, n->n, sizeof(*n->v), key_cmp);
}

uint64_t verdict_names_deadline(const struct agent *a)
{
	return a->verdict_names ? a->verdict_names->save_ns : 0;
}

void verdict_names_due(struct agent *a, uint64_t now)
{
	if (a->verdict_names && a->verdict_names->save_ns && now >= a->verdict_names->save_ns)
		save(a);
}

void verdict_names_keep(struct agent *a)
{
	verdict_names_note(a, NULL, 0);
	if (a->verdict_names && a->verdict_names->save_ns)
		save(a);
}

void verdict_names_note(struct agent *a, const struct config_rule *before, size_t n_before)
{
	uint64_t last = datapath_seen_last(a->dp);
	struct verdict_names *names = a->verdict_names;
	struct noting n = {.a = a,
			   .rules = {a->policy.rules, a->policy.n_rules, NULL},
			   .before = {before, n_before, NULL},
			   .at_ns = time_boot_ns()};

	if (!names || (names->at_ns == last && !names->incomplete))
		return;
	n.names = names;
	names->incomplete = datapath_seen_each(a->dp, note, &n) != 0;
	names->at_ns = last;
	drop_all(names); /* of entries that are no more */
	names->v = n.now.v;
	names->n = n.now.n;
	if (names->n)
		qsort(names->v, names->n, sizeof(*names->v), key_cmp);
	rule_ids_free(&n.rules);
	rule_ids_free(&n.before);
	save_later(a);
}

int verdict_names_open(struct agent *a)
{
	a->verdict_names = calloc(1, sizeof(*a->verdict_names));
	if (!a->verdict_names)
		return -ENOMEM;
	a->verdict_names->incomplete = true; /* what a former agent's apps were refused */
	load(a);
	return 0;
}

const struct verdict_name *verdict_name_find(const struct agent *a, const struct ax_seen_key *key,
					     const struct ax_seen *seen)
{
	return find(a->verdict_names, key, seen->first_ns);
}

void verdict_names_free(struct agent *a)
{
	if (a->verdict_names)
		drop_all(a->verdict_names);
	free(a->verdict_names);
	a->verdict_names = NULL;
}
