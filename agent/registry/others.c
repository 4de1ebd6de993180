/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Apps of other nodes, by name and address. */
#include <search.h>

#include "registry/names.h"
#include "registry/others.h"
#include "registry/state.h"

/* What comes within so long is looked at together. */
#define COALESCE_NS 3000000ull

struct at {
	struct ax_addr addr;
	const struct other_app *other;
};

static int at_cmp(const void *x, const void *y)
{
	return addr_cmp(&((const struct at *)x)->addr, &((const struct at *)y)->addr);
}

static struct at *at_find(const struct agent *a, const struct ax_addr *addr)
{
	const struct at key = {.addr = *addr};
	void **found = tfind(&key, &a->other_addrs, at_cmp);

	return found ? *found : NULL;
}

static int at_add(struct agent *a, const struct ax_addr *addr, const struct other_app *r)
{
	struct at *at;

	if (addr_is_zero(addr) || at_find(a, addr))
		return 0;
	at = calloc(1, sizeof(*at));
	if (!at)
		return -ENOMEM;
	*at = (struct at){.addr = *addr, .other = r};
	if (tsearch(at, &a->other_addrs, at_cmp))
		return 0;
	free(at);
	return -ENOMEM;
}

static void at_remove(struct agent *a, const struct ax_addr *addr, const struct other_app *r)
{
	struct at *at = addr_is_zero(addr) ? NULL : at_find(a, addr);

	if (!at || at->other != r)
		return;
	tdelete(at, &a->other_addrs, at_cmp);
	free(at);
}

/* Nothing of this node has changed. */
static struct name *get_name(struct agent *a, const char *text)
{
	bool was = a->names_changed;
	struct name *n = name_get(a, text);

	a->names_changed = was;
	return n;
}

int other_add(struct agent *a, struct other_app *r)
{
	struct name *n = get_name(a, r->app);

	if (!n)
		return -ENOMEM;
	r->next = n->others;
	n->others = r;
	n->n_others++;
	r->in = true;
	name_stale(a, n);
	if (r->n_ports)
		a->name_added = true;
	if (!at_add(a, &r->ip4, r) && !at_add(a, &r->ip6, r))
		return 0;
	other_remove(a, r);
	return -ENOMEM;
}

void other_remove(struct agent *a, struct other_app *r)
{
	struct name *n = r->in ? name_find(a, r->app) : NULL;
	struct other_app **p;

	if (!n)
		return;
	for (p = &n->others; *p && *p != r; p = &(*p)->next)
		;
	if (*p) {
		*p = r->next;
		n->n_others--;
	}
	r->in = false;
	at_remove(a, &r->ip4, r);
	at_remove(a, &r->ip6, r);
	name_stale(a, n);
}

bool other_listens(const struct other_app *r, bool v4, uint16_t port, uint8_t proto)
{
	for (size_t i = 0; i < r->n_ports; i++) {
		const struct other_port *p = &r->ports[i];

		if (p->only != (v4 ? 6 : 4) && (!port || (p->port == port && p->proto == proto)))
			return true;
	}
	return false;
}

static bool is_of(const struct other_app *r, const struct other_state *s, const char *service)
{
	size_t len = strlen(s->service);

	if (!r->cluster)
		return streq(s->service, service);
	return strncmp(r->app, s->service, len) == 0 && r->app[len] == '.';
}

const struct other_state *other_state_of(const struct other_app *r, const char *service, bool v4)
{
	for (size_t i = 0; i < r->n_states; i++)
		if (r->states[i].v4 == v4 && is_of(r, &r->states[i], service))
			return &r->states[i];
	return NULL;
}

void other_state_why(struct other_state *s, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why ? why : "");
	text_make_printable(s->why);
}

const struct other_app *other_serving(const struct name *n)
{
	const struct other_app *r = n->others;

	while (r && !r->n_ports)
		r = r->next;
	return r;
}

const struct other_app *other_of_addr(const struct agent *a, const struct ax_addr *addr)
{
	const struct at *at = at_find(a, addr);

	return at ? at->other : NULL;
}

/* --- stale names --- */

void name_stale(struct agent *a, struct name *n)
{
	uint64_t at = time_mono_ns() + COALESCE_NS;

	if (!n->stale) {
		n->stale = true;
		n->stale_next = NULL;
		*(a->stale_names ? &a->stale_last->stale_next : &a->stale_names) = n;
		a->stale_last = n;
	}
	if (a->others_at_ns)
		return;
	a->others_at_ns = at > a->others_rest_ns ? at : a->others_rest_ns;
	a->timers_stale = true;
}

struct name *others_next_stale(struct agent *a)
{
	struct name *n = a->stale_names;

	if (!n)
		return NULL;
	a->stale_names = n->stale_next;
	n->stale_next = NULL;
	n->stale = false;
	n->held = true;
	return n;
}

void others_settled(struct agent *a, struct name *n)
{
	bool was = a->names_changed;

	n->held = false;
	name_put(a, n);
	a->names_changed = was;
}

static void make_stale(void *arg, const struct name *n)
{
	if (n->n_others)
		name_stale(arg, (struct name *)(uintptr_t)n);
}

void others_all_stale(struct agent *a)
{
	name_each(a, make_stale, a);
}

void others_free(struct agent *a)
{
	tdestroy(a->other_addrs, free);
	a->other_addrs = NULL;
	a->stale_names = NULL;
}
