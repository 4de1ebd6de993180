// SPDX-License-Identifier: GPL-2.0-or-later
/* Which counter, device entry, slot and backend number a list's things get: those that they had. */
#include <net/if.h>

#include "iface/priv.h"

void xdp_binding_free(struct xdp_binding *b)
{
	free(b->rules);
	free(b->reals);
	free(b->fresh);
	free(b->fresh_reals);
	*b = (struct xdp_binding){0};
}

const struct ax_action *xdp_action(const struct generation *g, size_t rule)
{
	const struct ax_action *a = (const void *)(g->data + g->layout.actions);

	for (uint32_t i = 0; i <= g->layout.rules; i++)
		if (a[i].rule == rule)
			return &a[i];
	return NULL;
}

int xdp_generation_list(const struct generation *g, struct rule_list *l)
{
	return arena_list(g->data, l);
}

/* --- numbers that are taken --- */

struct numbers {
	uint8_t *used; /* a byte for each */
	uint32_t n, next;
};

static int numbers_init(struct numbers *s, uint32_t n)
{
	s->used = calloc(n, 1);
	s->n = n;
	s->next = 0;
	return s->used ? 0 : -ENOMEM;
}

static int64_t numbers_take(struct numbers *s)
{
	while (s->next < s->n && s->used[s->next])
		s->next++;
	if (s->next == s->n)
		return -ENOSPC;
	s->used[s->next] = 1;
	return s->next;
}

/* --- the former generation by name --- */

struct former {
	const char *name;
	const struct ax_action *act;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct former *)a)->name, ((const struct former *)b)->name);
}

struct formers {
	struct former *v;
	size_t n;
	struct strv names;
};

static void formers_free(struct formers *f)
{
	free(f->v);
	strv_free(&f->names);
}
#define autoformers CLEANUP(formers_free)

static int formers_read(const struct generation *g, const struct rule_list *l, struct formers *f)
{
	const struct ax_action *a = (const void *)(g->data + g->layout.actions);
	int r = rule_list_counter_names(l, &f->names);

	if (r)
		return r;
	f->v = calloc(g->layout.rules + 1, sizeof(*f->v));
	if (!f->v)
		return -ENOMEM;
	for (uint32_t i = 0; i <= g->layout.rules; i++)
		if (a[i].rule < f->names.n)
			f->v[f->n++] = (struct former){f->names.v[a[i].rule], &a[i]};
	qsort(f->v, f->n, sizeof(*f->v), by_name);
	return 0;
}

static const struct ax_action *formers_find(const struct formers *f, const char *name)
{
	const struct former key = {.name = name};
	const struct former *r = f->n ? bsearch(&key, f->v, f->n, sizeof(*f->v), by_name) : NULL;

	return r ? r->act : NULL;
}

/* --- counters --- */

static int bind_counters(const struct strv *names, const struct formers *old, uint32_t counters,
			 struct xdp_binding *b)
{
	struct numbers taken;
	int r = numbers_init(&taken, counters);

	b->fresh = calloc(names->n, sizeof(*b->fresh));
	if (r || !b->fresh) {
		free(taken.used);
		return -ENOMEM;
	}
	/* also those that go away: packets are still counted there until the swap is done */
	for (size_t i = 0; i < old->n; i++)
		if (old->v[i].act->counter < counters)
			taken.used[old->v[i].act->counter] = 1;
	for (size_t i = 0; i < names->n && !r; i++) {
		const struct ax_action *was = formers_find(old, names->v[i]);
		int64_t n = was ? was->counter : numbers_take(&taken);

		if (n < 0)
			r = (int)n;
		else if (!was)
			b->fresh[b->n_fresh++] = (uint16_t)n;
		b->rules[i].counter = (uint16_t)n;
	}
	free(taken.used);
	return r;
}

/* --- devices --- */

static int bind_devices(const struct rule_list *l, const struct strv *names,
			const struct formers *old, const struct rule_list *old_list,
			struct xdp_binding *b, struct error *e)
{
	struct numbers taken;
	int r = numbers_init(&taken, AX_DEVICES);

	for (size_t i = 0; i < old->n && !r; i++)
		if (old->v[i].act->verdict == AX_VERDICT_REDIRECT)
			taken.used[old->v[i].act->target] = 1;
	for (size_t i = 0; i < l->n_rules && !r; i++) {
		const struct ax_action *was = formers_find(old, names->v[i]);
		const struct rule *rule = &l->rules[i];
		int64_t n;

		if (rule->verdict == AX_VERDICT_CPU)
			b->rules[i].target = (uint16_t)rule->cpu;
		if (rule->verdict != AX_VERDICT_REDIRECT)
			continue;
		/* a rule that now leads elsewhere gets another entry: the old one is still in use
		 */
		if (was && was->verdict == AX_VERDICT_REDIRECT &&
		    streq(old_list->rules[was->rule].target, rule->target))
			n = was->target;
		else
			n = numbers_take(&taken);
		if (n < 0)
			r = error_set(e, -E2BIG, "more than %u rules redirect to an interface",
				      AX_DEVICES / 2);
		b->rules[i].target = (uint16_t)n;
	}
	free(taken.used);
	return r;
}

/* --- slots, by their own names --- */

static int slot_of(const struct rule_list *l, const struct xdp_binding *b, size_t end,
		   const char *name)
{
	for (size_t i = 0; i < end; i++)
		if (l->rules[i].slot && streq(l->rules[i].slot, name))
			return b->rules[i].slot;
	return -1;
}

static int old_slot(const struct generation *old, const struct rule_list *l, const char *name)
{
	const struct ax_action *act;

	for (size_t i = 0; l && i < l->n_rules; i++) {
		if (!l->rules[i].slot || !streq(l->rules[i].slot, name))
			continue;
		act = xdp_action(old, i);
		if (act)
			return act->slot;
	}
	return -1;
}

static int bind_slots(const struct rule_list *l, const struct generation *old,
		      const struct rule_list *old_list, struct xdp_binding *b, struct error *e)
{
	uint8_t used[AX_SLOTS] = {0};
	struct numbers taken = {used, AX_SLOTS, 0};

	for (size_t i = 0; old_list && i < old_list->n_rules; i++) {
		int n = old_list->rules[i].slot ? old_slot(old, old_list, old_list->rules[i].slot)
						: -1;

		if (n >= 0)
			used[n] = 1;
	}
	for (size_t i = 0; i < l->n_rules; i++) {
		int64_t n;

		if (!l->rules[i].slot)
			continue;
		n = slot_of(l, b, i, l->rules[i].slot);
		if (n < 0)
			n = old_slot(old, old_list, l->rules[i].slot);
		if (n < 0) {
			n = numbers_take(&taken);
			if (n < 0)
				return error_set(e, -E2BIG, "the rules name more than %u slots",
						 AX_SLOTS);
			b->fresh_slots[b->n_fresh_slots++] = (uint16_t)n;
		}
		b->rules[i].slot = (uint16_t)n;
	}
	return 0;
}

/* --- backends --- */

static int old_real(const struct generation *old, const struct rule_list *l, const char *balancer,
		    const struct balance_backend *be)
{
	const struct ax_real *r;

	if (!old)
		return -1;
	r = (const void *)(old->data + old->layout.backends);
	for (uint32_t i = 0; i < old->layout.backends_n; i++)
		if (r[i].flags & AX_REAL_PRESENT && r[i].balancer < l->n_balancers &&
		    addr_eq(&r[i].addr, &be->addr) && r[i].port_be == htons(be->port) &&
		    streq(l->balancers[r[i].balancer].name, balancer))
			return (int)i;
	return -1;
}

/* Our address on the way to a backend: the balancer's own, or what the kernel would choose, which a
 * datagram socket tells without sending anything. Zero: there is no way. */
static struct ax_addr source_of(const struct balancer *b, const struct ax_addr *to)
{
	const struct ax_addr *own = addr_is_v4(to) ? &b->source4 : &b->source6;
	struct sockaddr_storage ss;
	socklen_t len = addr_to_sockaddr(to, htons(9), &ss);
	autoclose int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ax_addr ret = {0};
	__be16 port;

	if (!addr_is_zero(own))
		return *own;
	if (fd < 0 || connect(fd, (struct sockaddr *)&ss, len) < 0)
		return ret;
	len = sizeof(ss);
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
	    addr_from_sockaddr((struct sockaddr *)&ss, &ret, &port) < 0)
		return (struct ax_addr){0};
	return ret;
}

static struct real_binding bind_real(const struct balancer *b, const struct ax_addr *to,
				     const struct datapath_apps *apps, uint16_t number)
{
	if (b->mode != BALANCE_NAT || datapath_apps_find(apps, to) == DATAPATH_NO_APP)
		return (struct real_binding){.slot = number, .source = source_of(b, to)};
	return (struct real_binding){
		.slot = number,
		.source = addr_is_v4(to) ? apps->source4 : apps->source6,
		.app = true,
	};
}

static int bind_reals(const struct rule_list *l, const struct generation *old,
		      const struct rule_list *old_list, const struct datapath_apps *apps,
		      struct xdp_binding *b, struct error *e)
{
	uint8_t used[AX_REAL_NUMBERS] = {0};
	struct numbers taken = {used, AX_REAL_NUMBERS, 0};
	const struct ax_real *was = old ? (const void *)(old->data + old->layout.backends) : NULL;
	size_t n = 0;

	for (size_t i = 0; i < l->n_balancers; i++)
		n += l->balancers[i].n;
	b->reals = calloc(n + 1, sizeof(*b->reals));
	b->fresh_reals = calloc(n + 1, sizeof(*b->fresh_reals));
	if (!b->reals || !b->fresh_reals)
		return -ENOMEM;
	for (uint32_t i = 0; old && i < old->layout.backends_n && i < AX_REAL_NUMBERS; i++)
		used[i] = was[i].flags & AX_REAL_PRESENT;
	for (size_t i = 0; i < l->n_balancers; i++) {
		for (size_t k = 0; k < l->balancers[i].n; k++) {
			int64_t r = old_real(old, old_list, l->balancers[i].name,
					     &l->balancers[i].backends[k]);

			if (r < 0) {
				r = numbers_take(&taken);
				if (r < 0)
					return error_set(e, -E2BIG,
							 "the balancers have more than %u backends",
							 AX_REALS_MAX);
				b->fresh_reals[b->n_fresh_reals++] = (uint16_t)r;
			}
			b->reals[b->n_reals++] =
				bind_real(&l->balancers[i], &l->balancers[i].backends[k].addr, apps,
					  (uint16_t)r);
		}
	}
	return 0;
}

int xdp_bind(const struct rule_list *l, const struct generation *old,
	     const struct rule_list *old_list, uint32_t counters, const struct datapath_apps *apps,
	     struct xdp_binding *b, struct error *e)
{
	autoformers struct formers was = {0};
	struct strv names = {0};
	int r = rule_list_counter_names(l, &names);

	*b = (struct xdp_binding){.rules = calloc(l->n_rules + 1, sizeof(*b->rules))};
	if (!r && !b->rules)
		r = -ENOMEM;
	if (!r && old)
		r = formers_read(old, old_list, &was);
	if (!r)
		r = bind_counters(&names, &was, counters, b);
	if (!r)
		r = bind_devices(l, &names, &was, old_list, b, e);
	if (!r)
		r = bind_slots(l, old, old_list, b, e);
	if (!r)
		r = bind_reals(l, old, old_list, apps, b, e);
	strv_free(&names);
	if (!r)
		return 0;
	xdp_binding_free(b);
	return e->code ? r : error_set(e, r, "cannot number the rules: %s", strerror(-r));
}
