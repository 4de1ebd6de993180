// SPDX-License-Identifier: GPL-2.0-or-later
/* What entries of a file ask for: names and addresses that only one app or service may have, and of
 * all together labels, and addresses of the pools. */
#include "app.h"
#include "config/read.h"

/* --- what only one may have --- */

/* Takes the key; when it is taken already reports that at the node. Apps may share. */
static void claim(struct reader *r, struct registry *reg, const struct node *n, struct claim c,
		  const char *expected)
{
	static const char *const holders[] = {
		[OWNER_APP] = "which an app has",
		[OWNER_SERVICE] = "which a service has",
	};
	struct claim earlier;
	int taken;

	c.line = n->line;
	taken = registry_claim(reg, &c, &earlier);
	if (taken < 0)
		done(r, taken);
	else if (taken && (c.owner != OWNER_APP || earlier.owner != OWNER_APP))
		report_taken(r, n, holders[earlier.owner], earlier.line, expected);
}

void claim_name(struct reader *r, const struct node *n, const char *name, enum owner owner)
{
	struct config_reading *reading = r->context;
	const struct claim c = {.key = name, .len = strlen(name), .owner = owner};

	claim(r, &reading->names, n, c, "a name that no app and no other service has");
}

void read_vips(struct reader *r, const struct node *n, enum owner owner, struct ax_addr *ip4,
	       struct ax_addr *ip6)
{
	struct config_reading *reading = r->context;
	const struct ax_addr *both[] = {ip4, ip6};

	if (!read_addresses(r, n, ip4, ip6))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		const struct claim c = {.key = both[i], .len = sizeof(*both[i]), .owner = owner};

		if (!addr_is_zero(both[i]))
			claim(r, &reading->addresses, n, c,
			      "an address that no app and no other service has");
	}
}

/* --- what all ask for together --- */

/* The name of a section's entry. Entries are in the file's order, as the config has them. */
static const struct node *entry(const struct node *root, const char *name, size_t i)
{
	const struct node *key = node_key(root, name), *n = key ? key + 1 : NULL;

	return n && n->kind == NODE_MAPPING && i < n->n ? &n->items[2 * i] : root;
}

/* --- labels --- */

struct label_count {
	struct registry seen;
	size_t n;
};

static int count_labels(struct label_count *c, const struct labels *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct claim claim = {.key = l->items[i], .len = strlen(l->items[i])};
		struct claim earlier;
		int r = registry_claim(&c->seen, &claim, &earlier);

		if (r < 0)
			return r;
		c->n += r == 0;
	}
	return 0;
}

static void check_labels(struct reader *r, const struct node *root, const struct config *c)
{
	struct label_count count = {.n = 0};
	bool ok = done(r, count_labels(&count, &c->default_labels));

	for (size_t i = 0; ok && i < c->n_apps; i++) {
		ok = done(r, count_labels(&count, &c->apps[i].spec.labels));
		if (!ok || count.n <= AX_LABELS_MAX)
			continue;
		reject(r, entry(root, "apps", i),
		       "at most %d different labels of all apps together (this one has the %zuth)",
		       AX_LABELS_MAX, count.n);
		ok = false;
	}
	registry_free(&count.seen);
}

/* --- pools --- */

struct pool_count {
	const struct prefix *pool;
	const char *key;
	size_t left;
	struct registry given; /* addresses of it that the file gives out by name */
};

/* Addresses of a pool that can be had: without the network's, the host's and, for IPv4, the last
 * one. A large pool is used in part. */
static size_t pool_places(const struct prefix *p, bool v4)
{
	unsigned bits = 128 - p->len;
	size_t size = bits >= 20 ? 1u << 20 : (size_t)1 << bits;

	return size - (v4 ? 3 : 2);
}

/* Returns whether there is one more. `given`: the entry's own address, or NULL for one of the
 * pool's. */
static bool take(struct reader *r, struct pool_count *p, const struct ax_addr *given)
{
	const struct claim claim = {.key = given, .len = sizeof(*given)};
	struct claim earlier;
	int taken;

	if (!p->pool->len || (given && !prefix_contains(p->pool, given)))
		return true;
	taken = given ? registry_claim(&p->given, &claim, &earlier) : 0;
	if (taken || !p->left)
		return taken < 0 ? done(r, taken) : taken > 0;
	p->left--;
	return true;
}

static bool take_both(struct reader *r, struct pool_count pools[2], const struct ax_addr *ip4,
		      const struct ax_addr *ip6, const struct node *n)
{
	bool none = addr_is_zero(ip4) && addr_is_zero(ip6);
	const struct ax_addr *given[] = {ip4, ip6};

	for (int i = 0; i < 2; i++) {
		if (!none && addr_is_zero(given[i]))
			continue;
		if (take(r, &pools[i], none ? NULL : given[i]))
			continue;
		reject(r, n, "no more apps and services than %s has addresses for: %zu",
		       pools[i].key, pool_places(pools[i].pool, i == 0));
		return false;
	}
	return true;
}

/* Those that are given first: whoever has none comes after them. */
static bool take_given(struct reader *r, struct pool_count pools[2], const struct node *root,
		       const struct config *c, bool given)
{
	bool ok = true;

	for (size_t i = 0; ok && i < c->n_apps; i++) {
		const struct app_spec *s = &c->apps[i].spec;

		if (given == (!addr_is_zero(&s->ip4) || !addr_is_zero(&s->ip6)))
			ok = take_both(r, pools, &s->ip4, &s->ip6, entry(root, "apps", i));
	}
	for (size_t i = 0; ok && i < c->n_services; i++) {
		const struct config_service *s = &c->services[i];

		if (given == (!addr_is_zero(&s->ip4) || !addr_is_zero(&s->ip6)))
			ok = take_both(r, pools, &s->ip4, &s->ip6, entry(root, "services", i));
	}
	return ok;
}

static void check_pools(struct reader *r, const struct node *root, const struct config *c)
{
	struct pool_count pools[2] = {
		{.pool = &c->pool4, .key = "agent.pool.ipv4", .left = pool_places(&c->pool4, true)},
		{.pool = &c->pool6, .key = "agent.pool.ipv6"},
	};

	if (c->pool6.len)
		pools[1].left = pool_places(&c->pool6, false);
	if (take_given(r, pools, root, c, true))
		take_given(r, pools, root, c, false);
	registry_free(&pools[0].given);
	registry_free(&pools[1].given);
}

/* --- the same without a list of what was given --- */

static bool takes(const struct prefix *pool, const struct ax_addr *ip4, const struct ax_addr *ip6,
		  bool v4)
{
	const struct ax_addr *given = v4 ? ip4 : ip6;

	return (addr_is_zero(ip4) && addr_is_zero(ip6)) ||
	       (!addr_is_zero(given) && prefix_contains(pool, given));
}

static bool pool_suffices(const struct config *c, const struct prefix *pool, bool v4)
{
	size_t n = 0;

	if (!pool->len)
		return true;
	for (size_t i = 0; i < c->n_apps; i++)
		n += takes(pool, &c->apps[i].spec.ip4, &c->apps[i].spec.ip6, v4);
	for (size_t i = 0; i < c->n_services; i++)
		n += takes(pool, &c->services[i].ip4, &c->services[i].ip6, v4);
	return n <= pool_places(pool, v4);
}

bool pools_suffice(const struct config *c)
{
	return pool_suffices(c, &c->pool4, true) && pool_suffices(c, &c->pool6, false);
}

void check_limits(struct reader *r, const struct node *root, const struct config *c)
{
	check_labels(r, root, c);
	check_pools(r, root, c);
}
