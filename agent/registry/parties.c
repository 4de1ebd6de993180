/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs are told of who may talk to whom. */
#include "registry/parties.h"
#include "allot/policy.h"
#include "base/work.h"
#include "datapath/datapath.h"
#include "registry/instance_ctl.h"
#include "registry/state.h"

static void party_clear(struct agent *a, uint32_t party)
{
	const struct ax_party none = {0};

	datapath_party_set(a->dp, party, &none);
}

int party_ref(struct agent *a, const struct labels *l, uint32_t *party, struct error *e)
{
	int r = policy_ref(&a->policy, l, party, e);

	if (r <= 0) {
		*party = r ? AX_PARTY_NONE : *party;
		return r;
	}
	policy_save(&a->policy, a->cgroup);
	r = datapath_party_set(a->dp, *party, policy_party(&a->policy, *party));
	if (r) {
		party_unref(a, party);
		return error_set(e, r, "the kernel refuses the labels: %s", strerror(-r));
	}
	return 0;
}

void party_unref(struct agent *a, uint32_t *party)
{
	if (*party != AX_PARTY_NONE && policy_unref(&a->policy, *party))
		party_clear(a, *party);
	*party = AX_PARTY_NONE;
}

static void wait_for_programs(void *arg)
{
	(void)arg;
	datapath_wait_for_programs();
}

int parties_apply(struct agent *a, struct config_rule *rules, size_t n)
{
	unsigned next = !a->ctl.rule_set;
	const struct ax_party *p;
	int r = 0;

	/* Programs may still go by that set, if it held a moment ago. From then on nobody may come
	 * in: a new party would have the new rules, which are not those that hold. */
	work_offload(a->work, wait_for_programs, NULL);
	a->policy.rules = rules;
	a->policy.n_rules = n;
	policy_rules(&a->policy, next);
	for (uint32_t i = 0; i < AX_PARTIES_MAX && !r; i++) {
		p = policy_party(&a->policy, i);
		if (p)
			r = datapath_party_set(a->dp, i, p);
	}
	a->ctl.rule_allow[next] = policy_allow_mask(&a->policy);
	r = r ? r : agent_tell_ctl(a);
	if (r)
		return r;
	a->ctl.rule_set = next;
	return agent_tell_ctl(a);
}

int parties_adopt(struct agent *a)
{
	struct ax_party p;
	struct ax_ctl was;
	int r = policy_load(&a->policy, a->cgroup);

	r = r ? r : datapath_ctl_get(a->dp, &was);
	if (r)
		return r;
	memcpy(a->ctl.rule_allow, was.rule_allow, sizeof(was.rule_allow));
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
