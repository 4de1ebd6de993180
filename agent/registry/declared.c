/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declared apps, entries of the config's `apps:`. */
#include "registry/declared.h"
#include "allot/pool.h"
#include "base/address.h"
#include "base/work.h"
#include "config/config.h"
#include "registry/app_table.h"
#include "registry/names.h"
#include "registry/parties.h"
#include "registry/service_table.h"
#include "registry/state.h"
#include "registry/verdict_names.h"
#include "registry/vips.h"

struct declared_list {
	size_t n;
	struct declared v[];
};

const struct declared *declared_all(const struct agent *a, size_t *n)
{
	*n = a->declared ? a->declared->n : 0;
	return a->declared ? a->declared->v : NULL;
}

struct declared *declared_find(struct agent *a, const char *name)
{
	struct name *n = name_find(a, name);

	return n ? n->declared : NULL;
}

const struct config_app *declared_key(struct agent *a, const char *key)
{
	size_t n;
	const struct declared *v = declared_all(a, &n);

	for (size_t i = 0; i < n; i++)
		if (streq(v[i].conf->key, key))
			return v[i].conf;
	return NULL;
}

struct policy_who declared_who(const struct declared *d)
{
	return (struct policy_who){.name = d->conf->spec.name,
				   .ip4 = &d->ip4,
				   .ip6 = &d->ip6,
				   .egress = egress_id(&d->conf->spec.egress)};
}

struct app *app_of_config(struct agent *a, const char *key)
{
	for (struct app *app = a->apps; app; app = app->next)
		if (app->config_key && streq(app->config_key, key))
			return app;
	return NULL;
}

static int declared_claim(struct agent *a, struct declared *d, const struct ax_addr *addr,
			  struct error *e)
{
	struct vip *v;

	if (addr_is_zero(addr))
		return 0;
	v = vip_get(a, addr);
	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	v->declared = d;
	pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, true);
	return vip_sync(a, v, e);
}

static void declared_unclaim(struct agent *a, struct declared *d, const struct ax_addr *addr)
{
	struct vip *v = addr_is_zero(addr) ? NULL : vip_find(a, addr);

	if (!v || v->declared != d)
		return;
	v->declared = NULL;
	if (!v->app && !v->service)
		pool_mark(addr_is_v4(addr) ? &a->pool4 : &a->pool6, addr, false);
	vip_sync(a, v, NULL);
}

/* The addresses of a declared app: the config's, else a running one's, else the pool's. */
static int declared_addresses(struct agent *a, struct declared *d, struct error *e)
{
	const struct app_spec *s = &d->conf->spec;
	struct app *app = app_by_name(a, s->name);
	int r = 0;

	d->ip4 = s->ip4;
	d->ip6 = s->ip6;
	if (!addr_is_zero(&d->ip4) || !addr_is_zero(&d->ip6))
		return 0;
	if (app) {
		d->ip4 = app->service ? app->service->vip4 : app->vip4;
		d->ip6 = app->service ? app->service->vip6 : app->vip6;
		return 0;
	}
	if (a->pool4.size)
		r = pool_take(&a->pool4, &d->ip4);
	if (!r && a->pool6.size)
		r = pool_take(&a->pool6, &d->ip6);
	return r ? error_set(e, r, "the pool has no address left for the app %s", s->name) : 0;
}

static int declared_add(struct agent *a, struct declared *d, const struct labels *defaults,
			struct error *e)
{
	struct name *n = name_get(a, d->conf->spec.name);
	struct policy_who who;
	int r;

	if (!n)
		return error_set(e, -ENOMEM, "out of memory");
	who = declared_who(d);
	r = party_ref(a, d->conf->spec.labels.n ? &d->conf->spec.labels : defaults, &who, &d->party,
		      e);
	if (!r)
		n->declared = d;
	r = r ? r : declared_addresses(a, d, e);
	r = r ? r : party_of_declared(a, d, defaults, e);
	r = r ? r : declared_claim(a, d, &d->ip4, e);
	return r ? r : declared_claim(a, d, &d->ip6, e);
}

void declared_remove(struct agent *a, struct declared *d)
{
	struct name *n = name_find(a, d->conf->spec.name);

	verdict_names_note(a, NULL, 0);
	declared_unclaim(a, d, &d->ip4);
	declared_unclaim(a, d, &d->ip6);
	party_unref(a, &d->party);
	if (n && n->declared == d) {
		n->declared = NULL;
		name_put(a, n);
	}
}

/* Moves an entry that stays to its place in the new list. */
static void declared_move(struct agent *a, struct declared *from, struct declared *to)
{
	const struct ax_addr *both[] = {&to->ip4, &to->ip6};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		struct vip *v = addr_is_zero(both[i]) ? NULL : vip_find(a, both[i]);

		if (v && v->declared == from)
			v->declared = to;
	}
}

/* The new list takes over what the old one's entries of the same names have. */
static void take_over(struct agent *a, struct declared_list *l, struct config *next)
{
	for (size_t i = 0; i < l->n; i++) {
		struct config_app *c = &next->apps[i];
		struct name *n = name_find(a, c->spec.name);
		struct declared *d = n ? n->declared : NULL;

		if (d) {
			l->v[i] = *d;
			n->declared = &l->v[i];
			declared_move(a, d, &l->v[i]);
		}
		l->v[i].conf = c;
	}
	free(a->declared);
	a->declared = l;
}

int declared_set(struct agent *a, struct config *next, struct error *failed, struct error *e)
{
	struct declared_list *l = calloc(1, sizeof(*l) + next->n_apps * sizeof(l->v[0]));

	if (!l)
		return error_set(e, -ENOMEM, "out of memory");
	l->n = next->n_apps;
	take_over(a, l, next);
	for (size_t i = 0; i < l->n; i++) {
		struct error why;

		work_pause(a->work);
		if (l->v[i].party == AX_PARTY_NONE &&
		    declared_add(a, &l->v[i], &next->default_labels, &why) && !failed->code)
			*failed = why;
	}
	return 0;
}

void declared_retry(struct agent *a)
{
	for (size_t i = 0; a->declared && i < a->declared->n; i++) {
		struct declared *d = &a->declared->v[i];
		struct error e;

		if (d->party == AX_PARTY_NONE || !addr_is_zero(&d->ip4) || !addr_is_zero(&d->ip6))
			continue;
		if (declared_addresses(a, d, &e) || declared_claim(a, d, &d->ip4, &e) ||
		    declared_claim(a, d, &d->ip6, &e))
			return; /* the others will not find one either */
	}
}

int declared_relabel(struct agent *a, const struct labels *defaults, struct error *e)
{
	int r = 0;

	for (size_t i = 0; a->declared && i < a->declared->n && !r; i++) {
		struct declared *d = &a->declared->v[i];
		struct policy_who who;
		uint32_t was = d->party;

		if (d->conf->spec.labels.n || was == AX_PARTY_NONE ||
		    declared_find(a, d->conf->spec.name) != d)
			continue;
		who = declared_who(d);
		r = party_ref(a, defaults, &who, &d->party, e);
		r = r ? r : vip_resync(a, &d->ip4, e);
		r = r ? r : vip_resync(a, &d->ip6, e);
		if (r && d->party == AX_PARTY_NONE)
			d->party = was;
		else if (!r)
			party_unref(a, &was);
	}
	return r;
}

void declared_free_all(struct agent *a)
{
	free(a->declared);
	a->declared = NULL;
}
