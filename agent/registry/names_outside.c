// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of the DNS that rules speak of. */
#include "registry/names_outside.h"
#include "allot/learnt.h"
#include "allot/policy.h"
#include "base/domain.h"
#include "base/log.h"
#include "config/config.h"
#include "datapath/datapath.h"
#include "datapath/policy.h"
#include "net/netlink.h"
#include "registry/app_table.h"
#include "registry/events.h"
#include "registry/state.h"
#include "registry/vips.h"

#define TTL_MAX_S 86400

int names_outside_open(struct agent *a)
{
	a->policy.learnt = learnt_new();
	return a->policy.learnt ? 0 : -ENOMEM;
}

void names_outside_close(struct agent *a)
{
	learnt_free(a->policy.learnt);
	a->policy.learnt = NULL;
}

/* --- who may ask --- */

bool names_outside_may_ask(struct agent *a, const struct app *app, const char *name, bool unsaid)
{
	const struct config_rule *rule = policy_name_rule(&a->policy, app->party, name);
	bool may = rule ? rule->action == RULE_ALLOW : unsaid;

	if (!may)
		events_name_refused(a, app, name);
	return may;
}

bool names_outside_judged(struct agent *a, const struct app *app)
{
	return app->leaves || app_egress_id(app) || policy_speaks_of_names(&a->policy, app->party);
}

/* --- what was learnt --- */

/* Rebinding: a name outside does not make this host, or what lies beside it, an address outside. */
static bool may_be_outside(struct agent *a, const struct ax_addr *addr)
{
	static const char *const never[] = {
		"0.0.0.0/8",   "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4",
		"240.0.0.0/4", "::/127",      "fe80::/10",	"ff00::/8",
	};
	struct prefix p;
	bool local = false;

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (prefix_parse(never[i], &p) || prefix_contains(&p, addr))
			return false;
	if ((a->pool4.size && prefix_contains(&a->pool4.prefix, addr)) ||
	    (a->pool6.size && prefix_contains(&a->pool6.prefix, addr)) || vip_find(a, addr))
		return false;
	return nl_addr_is_local(a->nl, addr, &local) == 0 && !local;
}

/* The kernel's entry of an address, by the names that it has now. */
static int tell(struct agent *a, const struct ax_addr *addr)
{
	struct ax_party_rules rules;
	bool any = policy_address_rules(&a->policy, addr, &rules);

	return any ? datapath_outside_add(a->dp, a->ctl.rule_set, addr, 128, &rules)
		   : datapath_outside_del(a->dp, a->ctl.rule_set, addr, 128);
}

static void forget(struct agent *a, const struct learnt_entry *e)
{
	if (addr_is_zero(&e->addr))
		return;
	tell(a, &e->addr);
	if (e->name)
		datapath_learnt_del(a->dp, &e->addr, e->name);
	free((char *)e->name);
}

#define WARN_EVERY_NS 60000000000

/* (Whoever asks for many names may have it said as often.) */
static void warn_seldom(const char *name, int r)
{
	static uint64_t next_ns, more;
	uint64_t now = time_boot_ns();

	if (now < next_ns) {
		more++;
		return;
	}
	log_warn("an address of %s is not let through: %s (nor were %llu others that nobody was "
		 "told of)",
		 name, strerror(-r), (unsigned long long)more);
	more = 0;
	next_ns = now + WARN_EVERY_NS;
}

void names_outside_learn(struct agent *a, const struct app *app, const char *name,
			 const struct ax_addr *addr, uint32_t ttl_s)
{
	uint32_t least = a->config.dns_keep_ms / 1000 ? a->config.dns_keep_ms / 1000 : 1;
	uint64_t s = ttl_s < least ? least : ttl_s > TTL_MAX_S ? TTL_MAX_S : ttl_s;
	struct learnt_entry gone, e = {.addr = *addr,
				       .name = name,
				       .app = app->id,
				       .until_ns = time_boot_ns() + s * 1000000000};
	int r;

	if (!policy_learns(&a->policy, app->party, name) || !may_be_outside(a, addr))
		return;
	r = learnt_put(a->policy.learnt, &e, &gone);
	forget(a, &gone);
	if (r >= 0)
		datapath_learnt_set(a->dp, &e.addr, e.name, e.until_ns, e.app);
	if (r > 0)
		r = tell(a, addr);
	if (r < 0)
		warn_seldom(name, r);
	a->timers_stale = true;
}

static int adopt(void *arg, const struct ax_addr *addr, const char *name, uint64_t until_ns,
		 uint32_t app)
{
	struct learnt_entry gone,
		e = {.addr = *addr, .name = name, .until_ns = until_ns, .app = app};
	char same[DOMAIN_STRLEN];
	struct agent *a = arg;
	int r;

	if (want_domain(name, false, same) || !streq(name, same))
		return 1;
	r = learnt_put(a->policy.learnt, &e, &gone);
	free((char *)gone.name);
	return r < 0 ? 1 : 0;
}

int names_outside_adopt(struct agent *a)
{
	a->timers_stale = true;
	return datapath_learnt_each(a->dp, adopt, a);
}

/* --- time --- */

uint64_t names_outside_deadline(const struct agent *a)
{
	uint64_t next = a->policy.learnt ? learnt_next_ns(a->policy.learnt) : 0,
		 now = time_boot_ns();

	if (!next)
		return 0;
	return time_mono_ns() + (next > now ? next - now : 1);
}

void names_outside_due(struct agent *a)
{
	uint64_t now = time_boot_ns();
	struct learnt_entry e;

	while (learnt_take_old(a->policy.learnt, now, &e))
		forget(a, &e);
}
