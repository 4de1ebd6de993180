// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules that are for interfaces of some groups alone: which of a list's are for this one. */
#include "iface/priv.h"
#include "net/link_groups.h"
#include "net/netlink.h"

static bool asks_group(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n_rules; i++)
		if (!condition_is_empty(&l->rules[i].in[RULE_FIELD_GROUP]))
			return true;
	return false;
}

int xdp_link_group(unsigned ifindex, uint32_t *group)
{
	CLEANUP(nl_closep) struct nl *nl = NULL;
	int r = nl_open(&nl);

	return r ? r : nl_link_group(nl, ifindex, group);
}

static int number(void *arg, const char *name, uint32_t *ret)
{
	return link_groups_find(arg, name, ret);
}

static int no_such_group(const struct rule_list *l, size_t i, const char *name, struct error *e)
{
	const struct rule *r = &l->rules[i];
	char who[96];

	snprintf(who, sizeof(who), r->name ? "rule %zu (%.63s)" : "rule %zu", i + 1, r->name);
	return error_set(e, -ENOENT,
			 "%s is for the interface-group %s, and no group has this name in "
			 "/etc/iproute2/group: give it one there, or say the group's number",
			 who, name);
}

/* Calls f with each rule that asks for a group, and whether it is for this interface, until it
 * returns non-zero, which is returned. */
static int each_rule(const struct rule_list *l, unsigned ifindex,
		     int (*f)(void *arg, size_t rule, bool fits), void *arg, struct error *e)
{
	CLEANUP(link_groups_free) struct link_groups names = {0};
	const char *unknown = NULL;
	uint32_t group = 0;
	int r;

	if (!asks_group(l))
		return 0;
	r = xdp_link_group(ifindex, &group);
	if (r)
		return error_set(e, r, "cannot ask for the interface's group: %s", strerror(-r));
	r = link_groups_read(&names);
	if (r)
		return error_set(e, r, "cannot read the names of interfaces' groups: %s",
				 strerror(-r));
	for (size_t i = 0; i < l->n_rules && !r; i++) {
		int fits;

		if (condition_is_empty(&l->rules[i].in[RULE_FIELD_GROUP]))
			continue;
		fits = rule_group_fits(&l->rules[i], group, number, &names, &unknown);
		r = fits < 0 ? no_such_group(l, i, unknown, e) : f(arg, i, fits);
	}
	return r;
}

static int bind_one(void *arg, size_t rule, bool fits)
{
	struct rule_binding *rules = arg;

	rules[rule].off = !fits;
	return 0;
}

int xdp_bind_groups(const struct rule_list *l, unsigned ifindex, struct rule_binding *rules,
		    struct error *e)
{
	return each_rule(l, ifindex, bind_one, rules, e);
}

/* --- what was compiled --- */

/* (What is behind a rule without conditions was left out, and is for nobody.) */
static int differs(void *arg, size_t rule, bool fits)
{
	const struct ax_action *a = xdp_action(arg, rule);

	return a && !(a->flags & AX_ACTION_OFF) != fits;
}

bool xdp_groups_differ(const struct generation *g, const struct rule_list *l, unsigned ifindex)
{
	struct error ignored = {0};

	return each_rule(l, ifindex, differs, (void *)g, &ignored) > 0;
}

bool xdp_lacks_group(struct xdp *x)
{
	return !xdp_refresh(x) && xdp_groups_differ(&x->g, &x->list, x->ifindex);
}

bool xdp_rule_is_off(struct xdp *x, size_t rule)
{
	const struct ax_action *a;

	if (xdp_refresh(x) || rule >= x->list.n_rules ||
	    condition_is_empty(&x->list.rules[rule].in[RULE_FIELD_GROUP]))
		return false;
	a = xdp_action(&x->g, rule);
	return a && a->flags & AX_ACTION_OFF;
}
