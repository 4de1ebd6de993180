/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Anchors: IPv6 addresses on lo, below a /96 of the instance, on which a v6-only wildcard socket of
 * a host-mode app without IPv6 is put, so that two such apps do not collide ("listen [::]:80" in
 * nginx's shipped configuration). They are numbered from 1; the lowest free one is given out and
 * addresses that exist stay, so that a launch hardly ever has to make one.
 */
#include <arpa/inet.h>

#include "apps/anchors.h"
#include "base/address.h"
#include "config/config.h"
#include "net/netlink.h"
#include "registry/app_table.h"
#include "registry/state.h"

#define ANCHORS_MAX 65536

struct anchors {
	unsigned char *used; /* a bit for each, by number */
	uint32_t size, made; /* bits; addresses that exist */
};

static int grow(struct anchors *s, uint32_t want)
{
	uint32_t size = s->size ? s->size : 64;
	unsigned char *p;

	while (size <= want)
		size *= 2;
	if (size == s->size)
		return 0;
	p = realloc(s->used, size / 8);
	if (!p)
		return -ENOMEM;
	memset(p + s->size / 8, 0, (size - s->size) / 8);
	s->used = p;
	s->size = size;
	return 0;
}

static bool is_used(const struct anchors *s, uint32_t n)
{
	return s && n < s->size && (s->used[n / 8] & (1 << n % 8));
}

void anchor_adopt(struct agent *a, uint32_t anchor)
{
	struct anchors *s;

	if (!a->anchors)
		a->anchors = calloc(1, sizeof(*a->anchors));
	s = a->anchors;
	if (!s || !anchor || anchor >= ANCHORS_MAX || grow(s, anchor))
		return;
	s->used[anchor / 8] |= (unsigned char)(1 << anchor % 8);
	if (anchor > s->made)
		s->made = anchor;
}

void anchor_take(struct agent *a, struct app *app)
{
	struct ax_addr addr = a->ctl.anchor6;
	uint32_t n = 1;

	if (app->anchor || !a->has_ipv6 || app->spec.net != NET_HOST || !addr_is_zero(&app->vip6))
		return;
	while (is_used(a->anchors, n))
		n++;
	addr.w[3] = htonl(n);
	if ((!a->anchors || n > a->anchors->made) && nl_addr_add(a->nl, a->lo, &addr, 128))
		return;
	anchor_adopt(a, n);
	if (is_used(a->anchors, n))
		app->anchor = n;
}

void anchor_release(struct agent *a, struct app *app)
{
	if (is_used(a->anchors, app->anchor))
		a->anchors->used[app->anchor / 8] &= (unsigned char)~(1 << app->anchor % 8);
	app->anchor = 0;
}

void anchors_free(struct agent *a)
{
	if (a->anchors)
		free(a->anchors->used);
	free(a->anchors);
	a->anchors = NULL;
}
