/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs are told of who may talk to whom. */
#include "registry/parties.h"
#include "allot/learnt.h"
#include "allot/policy.h"
#include "base/log.h"
#include "base/work.h"
#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "registry/app_record.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/forbidden.h"
#include "registry/instance_ctl.h"
#include "registry/leaving.h"
#include "registry/names_outside.h"
#include "registry/remotes.h"
#include "registry/state.h"
#include "registry/verdict_names.h"
#include "registry/vips.h"

static int party_tell(struct agent *a, uint32_t party, const struct ax_party *p)
{
	struct ax_party_rules rules;
	int r = 0;

	policy_party_rules(&a->policy, party, &rules);
	for (unsigned set = 0; set < AX_RULE_SETS && !r; set++)
		r = datapath_party_rules_set(a->dp, set, party, &rules);
	return r ? r : datapath_party_set(a->dp, party, p);
}

static void party_clear(struct agent *a, uint32_t party)
{
	const struct ax_party none = {0};

	party_tell(a, party, &none);
}

int party_ref(struct agent *a, const struct labels *l, const struct policy_who *who,
	      uint32_t *party, struct error *e)
{
	int r = policy_ref(&a->policy, l, who, party, e);

	if (r <= 0) {
		*party = r ? AX_PARTY_NONE : *party;
		return r;
	}
	policy_save(&a->policy, a->cgroup);
	r = party_tell(a, *party, policy_party(&a->policy, *party));
	if (r && who->other)
		party_unref_other(a, party);
	else if (r)
		party_unref(a, party);
	return r ? error_set(e, r, "the kernel refuses the labels: %s", strerror(-r)) : 0;
}

void party_unref(struct agent *a, uint32_t *party)
{
	if (*party != AX_PARTY_NONE && policy_unref(&a->policy, *party))
		party_clear(a, *party);
	*party = AX_PARTY_NONE;
}

void party_unref_other(struct agent *a, uint32_t *party)
{
	if (*party != AX_PARTY_NONE && policy_unref_other(&a->policy, *party))
		party_clear(a, *party);
	*party = AX_PARTY_NONE;
}

/* --- other rules --- */

int party_of_address(struct agent *a, struct app *app, struct error *e)
{
	const struct policy_who who = app_who(app);
	uint32_t was = app->party;
	int r;

	if (was == AX_PARTY_NONE || policy_fits(&a->policy, was, &who))
		return 0;
	r = party_ref(a, &app->spec.labels, &who, &app->party, e);
	if (r) {
		app->party = was;
		return r;
	}
	r = app->cgroup_id ? app_tell(a, app) : 0;
	r = r ? r : vip_resync(a, &app->vip4, e);
	r = r ? r : vip_resync(a, &app->vip6, e);
	if (!r)
		party_unref(a, &was); /* else who was not told goes by it */
	return r;
}

int party_of_declared(struct agent *a, struct declared *d, const struct labels *defaults,
		      struct error *e)
{
	const struct labels *l = d->conf->spec.labels.n ? &d->conf->spec.labels : defaults;
	const struct policy_who who = declared_who(d);
	uint32_t was = d->party;
	int r;

	if (was == AX_PARTY_NONE || policy_fits(&a->policy, was, &who))
		return 0;
	r = party_ref(a, l, &who, &d->party, e);
	if (r) {
		d->party = was;
		return r;
	}
	r = vip_resync(a, &d->ip4, e);
	r = r ? r : vip_resync(a, &d->ip6, e);
	if (!r)
		party_unref(a, &was);
	return r;
}

/* Those whom rules name to parties of their own, and the others to those of their labels. */
static int move_all(struct agent *a, struct error *e)
{
	size_t n;
	const struct declared *v = declared_all(a, &n);
	int r = 0;

	for (struct app *app = a->apps; app && !r; app = app->next)
		r = party_of_address(a, app, e);
	for (size_t i = 0; i < n && !r; i++) {
		struct declared *d = declared_find(a, v[i].conf->spec.name);

		if (d == &v[i])
			r = party_of_declared(a, d, &a->config.default_labels, e);
	}
	for (struct remote *o = a->remotes; o && !r; o = o->next)
		r = remote_party(a, o, e);
	return r;
}

static void look_before(void *arg)
{
	datapath_wait_for_programs();
	forbidden_note(arg);
}

static void look_after(void *arg)
{
	datapath_wait_for_programs(); /* the last that judged and counted by the old set */
	forbidden_end(arg);
}

static void tell_forbidden(const struct forbidden *f)
{
	if (f->ended < 0)
		log_warn("UDP sockets of apps in host mode cannot be ended, and stay connected to "
			 "whom the rules forbid them now: %s",
			 strerror(-f->ended));
	else if (f->ended)
		log_info("%d UDP socket%s of apps in host mode had to be ended: the rules forbid "
			 "now whom %s connected to",
			 f->ended, f->ended == 1 ? "" : "s",
			 f->ended == 1 ? "it was" : "they were");
}

static int tell_parties(struct agent *a, unsigned set)
{
	struct ax_party_rules rules;
	int r = 0;

	for (uint32_t i = 0; i < AX_PARTIES_MAX && !r; i++) {
		if (!policy_party(&a->policy, i))
			continue;
		policy_party_rules(&a->policy, i, &rules);
		r = datapath_party_rules_set(a->dp, set, i, &rules);
	}
	return r;
}

struct learnt_to {
	struct agent *a;
	unsigned set;
};

/* (The map may be full of what an older agent made it for.) */
static int tell_learnt(void *arg, const struct ax_addr *addr)
{
	struct learnt_to *to = arg;
	struct ax_party_rules rules;
	int r;

	if (!policy_address_rules(&to->a->policy, addr, &rules))
		return 0;
	r = datapath_outside_add(to->a->dp, to->set, addr, 128, &rules);
	return r == -ENOSPC ? 0 : r;
}

static int tell_tables(struct agent *a, unsigned set)
{
	struct learnt_to to = {a, set};
	struct policy_tables *t = policy_compile(&a->policy);
	const struct datapath_rules rules = {.set = t ? &t->set : NULL,
					     .classes = t ? t->classes : NULL,
					     .n_classes = t ? t->n_classes : 0,
					     .class_of = t ? t->class_of[0] : NULL};
	int r = t ? datapath_rules_set(a->dp, set, &rules) : -ENOMEM;

	for (size_t i = 0; !r && i < t->n_outside; i++)
		r = datapath_outside_add(a->dp, set, &t->outside[i].prefix.addr,
					 t->outside[i].prefix.len, &t->outside[i].rules);
	policy_tables_free(t);
	return r || !a->policy.learnt ? r : learnt_each(a->policy.learnt, tell_learnt, &to);
}

/* What a rule of a set counted, with what it had counted in others. */
static int hits_of(struct agent *a, unsigned set, unsigned rule, struct ax_rule_mark *ret)
{
	struct ax_rule_hits h;
	int r = datapath_rule_mark_get(a->dp, set, rule, ret);

	r = r || !ret->id ? r : datapath_rule_hits(a->dp, set, rule, &h);
	if (r || !ret->id)
		return r;
	ret->before.hits += h.hits;
	if (h.last_ns > ret->before.last_ns)
		ret->before.last_ns = h.last_ns;
	return 0;
}

int parties_hits(struct agent *a, unsigned rule, struct ax_rule_hits *ret)
{
	struct ax_rule_mark m;
	int r = hits_of(a, a->ctl.rule_set, rule, &m);

	*ret = m.before;
	return r;
}

static void carry(struct ax_rule_mark *from, struct ax_rule_mark *to)
{
	for (unsigned k = 0; k < AX_RULES_MAX && from[k].id; k++) {
		if (from[k].id != to->id)
			continue;
		to->before = from[k].before;
		from[k].id = UINT64_MAX; /* of two that say the same the second has the next */
		return;
	}
}

/* Rules of one set that the other one has, too, go on counting where they were. */
static int carry_hits(struct agent *a, unsigned from, unsigned to, bool begin)
{
	autofree struct ax_rule_mark *was = calloc(AX_RULES_MAX, sizeof(*was));
	int r = was ? 0 : -ENOMEM;

	for (unsigned i = 0; i < AX_RULES_MAX && !r; i++) {
		r = hits_of(a, from, i, &was[i]);
		if (!was[i].id)
			break;
	}
	if (begin)
		r = r ? r : datapath_rule_hits_zero(a->dp, to, (unsigned)a->policy.n_rules);
	for (unsigned i = 0; i < AX_RULES_MAX && !r; i++) {
		struct ax_rule_mark m = {0};

		if (i < a->policy.n_rules)
			m.id = policy_rule_id(&a->policy.rules[i]);
		if (m.id)
			carry(was, &m);
		r = datapath_rule_mark_set(a->dp, to, i, &m);
		if (!m.id)
			break;
	}
	return r;
}

static int tell_rules(struct agent *a, unsigned set)
{
	int r = tell_parties(a, set);

	r = r ? r : tell_tables(a, set);
	return r ? r : carry_hits(a, a->ctl.rule_set, set, true);
}

int parties_apply(struct agent *a, const struct config_rule *rules, size_t n, struct error *e)
{
	CLEANUP(forbidden_free)
	/* (an agent that starts knows of no app yet) */
	struct forbidden before = {.dp = apps_any_in_host_mode(a) || !a->apps ? a->dp : NULL};
	const struct config_rule *former = a->policy.rules;
	size_t n_former = a->policy.n_rules;
	unsigned was = a->ctl.rule_set, next = !was;
	CLEANUP(leaving_free) struct leaving leaving;
	int r;

	leaving_note(a, &leaving);
	/* Programs may still go by that set, if it held a moment ago. From then on nobody may come
	 * in: a new party would have the new rules, which are not those that hold. */
	work_offload(a->work, look_before, &before);
	/* apps that the new rules name: by the rules that hold they are what they were */
	r = policy_name(&a->policy, rules, n, true);
	r = r ? r : move_all(a, e);
	if (r)
		return r;
	a->policy.rules = rules;
	a->policy.n_rules = n;
	r = tell_rules(a, next);
	if (r)
		return r;
	a->ctl.rule_set = next;
	r = agent_tell_ctl(a);
	if (r)
		a->ctl.rule_set = was;
	r = r ? r : policy_name(&a->policy, rules, n, false);
	r = r ? r : move_all(a, e);
	if (r)
		return r;
	work_offload(a->work, look_after, &before);
	tell_forbidden(&before);
	leaving_forget(a, &leaving);
	verdict_names_note(a, former, n_former);
	return carry_hits(a, was, next, false);
}

/* --- from one agent to the next --- */

int parties_adopt(struct agent *a)
{
	struct ax_party p;
	struct ax_ctl was;
	int r = policy_load(&a->policy, a->cgroup);

	r = r ? r : names_outside_adopt(a);
	r = r ? r : datapath_ctl_get(a->dp, &was);
	if (r)
		return r;
	a->ctl.rule_set = was.rule_set;
	for (uint32_t i = AX_PARTY_NONE + 1; i < AX_PARTIES_MAX && !r; i++) {
		r = datapath_party_get(a->dp, i, &p);
		if (!r && p.used)
			r = policy_adopt(&a->policy, i, &p);
	}
	return r;
}

void parties_release(struct agent *a)
{
	for (uint32_t i = 0; i < AX_PARTIES_MAX; i++)
		if (policy_release_party(&a->policy, i))
			party_clear(a, i);
	policy_release(&a->policy, a->cgroup);
}
