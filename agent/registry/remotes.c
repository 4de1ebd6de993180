/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "registry/remotes.h"
#include "allot/policy.h"
#include "registry/parties.h"
#include "registry/state.h"
#include "registry/vips.h"

#define ID_FIRST 0x80000000u /* apps of this node have lower ones */

static struct policy_who who_of(const struct remote *r)
{
	bool v4 = addr_is_v4(&r->addr);

	return (struct policy_who){
		.name = r->name,
		.ip4 = v4 ? &r->addr : NULL,
		.ip6 = v4 ? NULL : &r->addr,
		.other = true,
	};
}

static void remote_free(struct remote *r)
{
	labels_free(&r->labels);
	free(r);
}

static void set_told(struct agent *a, struct remote *r, bool told)
{
	a->n_untold += (size_t)r->told - (size_t)told;
	r->told = told;
}

static struct remote *add(struct agent *a, const struct remote_app *app)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->addr = *app->addr;
	r->across = app->across;
	r->id = ID_FIRST | a->next_remote++;
	r->party = AX_PARTY_NONE;
	snprintf(r->name, sizeof(r->name), "%.63s", app->name);
	r->next = a->remotes;
	r->at = &a->remotes;
	if (r->next)
		r->next->at = &r->next;
	a->remotes = r;
	a->n_untold++;
	return r;
}

static bool is_same_app(const struct remote *r, const struct remote_app *app,
			const struct labels *labels)
{
	return addr_eq(&r->addr, app->addr) && r->across == app->across &&
	       streq(r->name, app->name) && labels_eq(&r->labels, labels);
}

/* Whoever has no party is refused by the programs. */
static int tell(struct agent *a, struct remote *r, struct error *e)
{
	struct vip *v = vip_get(a, &r->addr);

	if (!v)
		return error_set(e, -ENOMEM, "out of memory");
	v->remote = r;
	return vip_sync(a, v, e);
}

int remote_put(struct agent *a, const struct remote_app *app, struct remote **ret, struct error *e)
{
	CLEANUP(labels_free) struct labels labels = {0};
	struct error why = {0};
	struct remote *r = *ret;
	struct policy_who who;
	int err = 0, told;

	if (*app->labels)
		err = labels_parse(app->labels, &labels, e);
	if (err)
		return err;
	if (r && !is_same_app(r, app, &labels)) {
		remote_drop(a, r);
		r = *ret = NULL;
	}
	if (r && r->told && r->ifindex == app->ifindex)
		return 0;
	if (!r) {
		r = *ret = add(a, app);
		if (!r)
			return error_set(e, -ENOMEM, "out of memory");
		r->labels = labels;
		labels = (struct labels){0};
	}
	who = who_of(r);
	if (r->party == AX_PARTY_NONE)
		err = party_ref(a, &r->labels, &who, &r->party, &why);
	r->ifindex = app->ifindex;
	told = tell(a, r, e);
	set_told(a, r, !told && !err);
	if (!told && err)
		error_set(e, err, "%s", why.text);
	return told ? told : err;
}

void remote_drop(struct agent *a, struct remote *r)
{
	struct vip *v = r ? vip_find(a, &r->addr) : NULL;

	if (!r)
		return;
	if (v && v->remote == r) {
		v->remote = NULL;
		vip_sync(a, v, NULL);
	}
	party_unref_other(a, &r->party);
	set_told(a, r, true);
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	remote_free(r);
}

int remote_party(struct agent *a, struct remote *r, struct error *e)
{
	const struct policy_who who = who_of(r);
	uint32_t was = r->party;
	struct error why = {0};
	int err;

	if (was == AX_PARTY_NONE || policy_fits(&a->policy, was, &who))
		return 0;
	err = party_ref(a, &r->labels, &who, &r->party, &why);
	if (err && err != -ENOSPC) {
		r->party = was;
		return error_set(e, err, "%s", why.text);
	}
	set_told(a, r, !err && r->told);
	err = vip_resync(a, &r->addr, e);
	if (err)
		set_told(a, r, false);
	else
		party_unref_other(a, &was);
	return err;
}

void remote_free_all(struct agent *a)
{
	while (a->remotes) {
		struct remote *r = a->remotes;

		a->remotes = r->next;
		remote_free(r);
	}
}
