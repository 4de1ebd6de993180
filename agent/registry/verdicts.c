/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>

#include "registry/verdicts.h"
#include "base/address.h"
#include "control/control.h"
#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "registry/app_table.h"
#include "registry/events.h"
#include "registry/state.h"
#include "registry/verdict_names.h"
#include "seen.h"

#define AGAIN_NS   (5 * 1000000000ull) /* between two words of the same */
#define SWEEP_MANY 1024		       /* entries, since the last sweep */
#define GONE_MAX   2048		       /* entries of apps that have ended */

/* What was told of an entry. */
struct told {
	struct ax_seen_key key;
	uint64_t first_ns, count;
	uint64_t at_ns;
};

struct verdicts {
	struct told *v; /* ordered by key */
	size_t n;
	uint64_t last_ns; /* datapath_seen_last() before that */
	bool more;	  /* there is what was not told yet */
};

/* --- one look --- */

struct due {
	struct ax_seen_key key;
	struct ax_seen seen;
};

struct look {
	const struct verdicts *was;
	struct verdicts now;
	struct due *due;
	size_t n_due;
	size_t size, size_due;
	struct rule_ids rules;
	uint64_t at_ns;
	uint32_t ending;
};

static int key_cmp(const void *x, const void *y)
{
	const struct told *a = x, *b = y;
	uint64_t ka = (uint64_t)a->key.app << 32 | a->key.slot,
		 kb = (uint64_t)b->key.app << 32 | b->key.slot;

	return ka < kb ? -1 : ka > kb;
}

static int due_cmp(const void *x, const void *y)
{
	const struct due *a = x, *b = y;

	return a->seen.last_ns < b->seen.last_ns ? -1 : a->seen.last_ns > b->seen.last_ns;
}

/* Room for one more in an array of *size. */
static void *room(void *v, size_t n, size_t *size, size_t one)
{
	if (n < *size)
		return v;
	*size = *size ? *size * 2 : 64;
	return reallocarray(v, *size, one);
}

static int look_at(void *arg, const struct ax_seen_key *key, const struct ax_seen *seen)
{
	struct look *l = arg;
	struct told t = {.key = *key, .first_ns = seen->first_ns, .at_ns = l->at_ns};
	const struct told *was =
		l->was->n ? bsearch(&t, l->was->v, l->was->n, sizeof(t), key_cmp) : NULL;
	bool due = true;
	void *more;

	if (!seen->count) /* it is being written */
		return 0;
	t.count = seen->count;
	if (was && was->first_ns == seen->first_ns) {
		due = seen->count > was->count &&
		      (l->at_ns - was->at_ns >= AGAIN_NS || key->app == l->ending);
		l->now.more |= !due && seen->count > was->count;
		if (!due)
			t = *was;
	}
	more = room(l->now.v, l->now.n, &l->size, sizeof(t));
	if (!more)
		return -ENOMEM;
	l->now.v = more;
	l->now.v[l->now.n++] = t;
	if (!due)
		return 0;
	more = room(l->due, l->n_due, &l->size_due, sizeof(*l->due));
	if (!more)
		return -ENOMEM;
	l->due = more;
	l->due[l->n_due++] = (struct due){*key, *seen};
	return 0;
}

/* --- in words --- */

static const char *const whys[] = {[AX_SEEN_RULE] = "rule",
				   [AX_SEEN_AUDIT] = "rule",
				   [AX_SEEN_LABELS] = "labels",
				   [AX_SEEN_EGRESS] = "egress",
				   [AX_SEEN_HOST_ACCESS] = "host-access"};
static const char *const hooks[AX_SEEN_HOOKS] = {[AX_SEEN_AT_CONNECT] = "connect",
						 [AX_SEEN_AT_SK_LOOKUP] = "sk_lookup",
						 [AX_SEEN_AT_FABRIC] = "fabric"};

/* As it is now, or as it was. */
static void put_rule(json_t *j, struct rule_ids *ids, const struct verdict_name *was, uint64_t id)
{
	const struct config_rule *rule = rule_of_id(ids, id);
	autofree char *now = rule ? config_rule_text(rule) : NULL;
	const char *name = rule ? rule->name : was->rule_name;
	const char *text = rule ? now : was->rule_text;
	unsigned number = rule ? rule_number(ids->rules, (size_t)(rule - ids->rules)) : 0;

	if (number)
		json_object_set_new(j, "rule", json_integer(number));
	if (name)
		json_object_set_new(j, "rule_name", json_string(name));
	if (text)
		json_object_set_new(j, "text", json_string(text));
}

static const char *proto_name(uint8_t proto)
{
	return proto == IPPROTO_TCP ? "tcp" : proto == IPPROTO_UDP ? "udp" : "other";
}

static json_t *in_words(struct agent *a, struct rule_ids *ids, const struct due *d)
{
	const struct verdict_name *name = verdict_name_find(a, &d->key, &d->seen);
	struct verdict_name now;
	const struct ax_seen *s = &d->seen;
	json_t *j = json_pack("{ss sf ss ss ss ss sI sf}", "event", "verdict", "time",
			      events_wall_time(s->last_ns), "verdict",
			      s->why == AX_SEEN_AUDIT ? "audited" : "refused", "why",
			      s->why < ARRAY_SIZE(whys) && whys[s->why] ? whys[s->why] : "?",
			      "hook", s->hook < AX_SEEN_HOOKS ? hooks[s->hook] : "?", "proto",
			      proto_name(s->to.proto), "count", (json_int_t)s->count, "first",
			      events_wall_time(s->first_ns));

	if (!j)
		return NULL;
	if (!name) { /* it has come since */
		verdict_name_now(a, &d->key, s, &now);
		name = &now;
	}
	if (name->from)
		json_object_set_new(j, "app", json_string(name->from));
	if (d->key.app)
		json_object_set_new(j, "app_id", json_integer(d->key.app));
	if (!addr_is_zero(&s->from))
		json_object_set_new(j, "local", json_addr(&s->from));
	json_object_set_new(j, "remote", json_addr(&s->to.addr));
	json_object_set_new(j, "remote_port", json_integer(ntohs(s->to.port_be)));
	if (name->to)
		json_object_set_new(j, "remote_name", json_string(name->to));
	else if (name->asked)
		json_object_set_new(j, "asked", json_string(name->asked));
	put_rule(j, ids, name, AX_SEEN_RULE_ID(s));
	return j;
}

/* --- watching --- */

void verdicts_unwatched(struct agent *a)
{
	if (a->verdicts)
		free(a->verdicts->v);
	free(a->verdicts);
	a->verdicts = NULL;
}

/* The entries of now take the place of what was told. 0 or -ENOMEM. */
static int take(struct agent *a, struct look *l)
{
	int r;

	verdict_names_note(a, NULL, 0);
	l->rules = (struct rule_ids){a->policy.rules, a->policy.n_rules, NULL};
	r = datapath_seen_each(a->dp, look_at, l);
	if (r)
		return r;
	if (l->now.n)
		qsort(l->now.v, l->now.n, sizeof(*l->now.v), key_cmp);
	if (l->n_due)
		qsort(l->due, l->n_due, sizeof(*l->due), due_cmp);
	return 0;
}

static void keep(struct agent *a, struct look *l)
{
	verdicts_unwatched(a);
	a->verdicts = calloc(1, sizeof(*a->verdicts));
	if (!a->verdicts)
		return;
	*a->verdicts = l->now;
	l->now.v = NULL;
}

static void look_free(struct look *l)
{
	free(l->now.v);
	free(l->due);
	rule_ids_free(&l->rules);
}

void verdicts_all(struct agent *a, void (*f)(void *arg, json_t *j), void *arg)
{
	static const struct verdicts nothing;
	CLEANUP(look_free) struct look l = {.at_ns = time_mono_ns(), .was = &nothing};

	if (take(a, &l))
		return;
	for (size_t i = 0; i < l.n_due; i++) {
		json_t *j = in_words(a, &l.rules, &l.due[i]);

		if (j)
			f(arg, j);
	}
	if (!a->verdicts) /* others have their own */
		keep(a, &l);
}

void verdicts_look(struct agent *a, uint32_t ending, void (*f)(struct agent *a, json_t *j))
{
	static const struct verdicts nothing;
	CLEANUP(look_free) struct look l = {.at_ns = time_mono_ns(), .ending = ending};
	uint64_t last = datapath_seen_last(a->dp);

	if (a->verdicts && a->verdicts->last_ns == last && !a->verdicts->more)
		return;
	l.now.last_ns = last;
	l.was = a->verdicts ? a->verdicts : &nothing;
	if (take(a, &l)) {
		if (a->verdicts)
			a->verdicts->more = true; /* the next look may do */
		return;
	}
	for (size_t i = 0; i < l.n_due; i++) {
		json_t *j = in_words(a, &l.rules, &l.due[i]);

		if (j)
			f(a, j);
	}
	keep(a, &l);
}

/* --- forgetting --- */

struct gone {
	struct ax_seen_key key;
	uint64_t last_ns;
	const char *from; /* texts that are the same are one */
	size_t rank;	  /* among those of that name, from the newest */
};

struct sweep {
	struct agent *a;
	struct gone *v;
	size_t n, size;
};

static int look_gone(void *arg, const struct ax_seen_key *key, const struct ax_seen *seen)
{
	struct sweep *s = arg;
	const struct verdict_name *name;
	void *more;

	if (!key->app || app_by_id(s->a, key->app))
		return 0;
	more = room(s->v, s->n, &s->size, sizeof(*s->v));
	if (!more)
		return -ENOMEM;
	s->v = more;
	name = verdict_name_find(s->a, key, seen);
	s->v[s->n++] = (struct gone){*key, seen->last_ns, name ? name->from : NULL, 0};
	return 0;
}

static int newer_cmp(const struct gone *a, const struct gone *b)
{
	return a->last_ns > b->last_ns ? -1 : a->last_ns < b->last_ns;
}

static int name_cmp(const void *x, const void *y)
{
	const struct gone *a = x, *b = y;

	if (a->from != b->from)
		return (uintptr_t)a->from < (uintptr_t)b->from ? -1 : 1;
	return newer_cmp(a, b);
}

static int rank_cmp(const void *x, const void *y)
{
	const struct gone *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return newer_cmp(a, b);
}

/* Names have their newest in turns, until all places are taken: one that is started again and again
 * does not push out others. */
static void sweep_gone(struct sweep *s)
{
	qsort(s->v, s->n, sizeof(*s->v), name_cmp);
	for (size_t i = 1; i < s->n; i++)
		if (s->v[i].from == s->v[i - 1].from)
			s->v[i].rank = s->v[i - 1].rank + 1;
	qsort(s->v, s->n, sizeof(*s->v), rank_cmp);
	for (size_t i = GONE_MAX; i < s->n; i++)
		datapath_seen_forget(s->a->dp, &s->v[i].key);
}

static int take_id(void *arg, const struct ax_seen_key *key, const struct ax_seen *seen)
{
	(void)seen;
	app_id_taken(arg, key->app);
	return 0;
}

void verdicts_adopt(struct agent *a)
{
	datapath_seen_each(a->dp, take_id, a);
}

void verdicts_adopted(struct agent *a)
{
	struct sweep s = {.a = a};

	if (datapath_seen_each(a->dp, look_gone, &s) == 0) {
		for (size_t i = 0; i < s.n; i++)
			if (!s.v[i].from)
				datapath_seen_forget(a->dp, &s.v[i].key);
		if (s.n > GONE_MAX) /* what this agent has added is counted anew */
			sweep_gone(&s);
	}
	free(s.v);
}

void verdicts_sweep(struct agent *a)
{
	struct sweep s = {.a = a};

	if (!datapath_seen_many(a->dp, SWEEP_MANY))
		return;
	if (datapath_seen_each(a->dp, look_gone, &s) == 0 && s.n > GONE_MAX)
		sweep_gone(&s);
	free(s.v);
}
