// SPDX-License-Identifier: GPL-2.0-or-later
/* Balancers of a rule list into the arena: their rings, and the backends by number. */
#include "balance.h"
#include "compile/compile.h"
#include "base/maglev.h"

struct balancers {
	const struct rule_list *list;
	struct arena *arena;
	struct ax_layout *layout;
	struct maglev_backend *candidates; /* room for those of any balancer */
	struct error *e;
};

static size_t count_reals(const struct rule_list *l, uint32_t *slots, size_t *most,
			  const struct real_binding *reals)
{
	size_t n = 0;

	*slots = 0;
	*most = 0;
	for (size_t i = 0; i < l->n_balancers; i++) {
		const struct balancer *b = &l->balancers[i];

		*most = b->n > *most ? b->n : *most;
		for (size_t j = 0; j < b->n; j++, n++)
			if (reals && reals[n].slot >= *slots)
				*slots = reals[n].slot + 1u;
	}
	return n;
}

static uint16_t flags_of(const struct balance_backend *b, bool app)
{
	return (uint16_t)(AX_REAL_PRESENT | (b->drain ? AX_REAL_DRAIN : 0) |
			  (b->down ? AX_REAL_DOWN : 0) | (app ? AX_REAL_APP : 0));
}

/* The ring of a balancer's backends of one family. Returns its offset, or 0: there are none. */
static int64_t add_ring(struct balancers *c, const struct balancer *b,
			const struct real_binding *reals, bool v4)
{
	size_t n = 0;
	int64_t at;
	int r;

	for (size_t i = 0; i < b->n; i++) {
		const struct balance_backend *be = &b->backends[i];

		if (be->drain || be->down || !be->weight || addr_is_v4(&be->addr) != v4)
			continue;
		c->candidates[n++] = (struct maglev_backend){
			.addr = be->addr,
			.port = be->port,
			.weight = be->weight,
			.number = reals[i].slot,
		};
	}
	if (!n)
		return 0;
	at = arena_add(c->arena, AX_MAGLEV_SLOTS * sizeof(uint16_t), 64);
	if (at < 0)
		return at;
	r = maglev_build(c->candidates, n, (uint16_t *)(c->arena->data + at), AX_MAGLEV_SLOTS);
	return r < 0 ? r : at;
}

static int add_real(struct balancers *c, const struct balancer *b, uint32_t balancer,
		    const struct balance_backend *be, const struct real_binding *bind)
{
	struct ax_real *reals = (struct ax_real *)(c->arena->data + c->layout->backends), *r;
	bool v4 = addr_is_v4(&be->addr);
	const struct ax_addr *source = v4 ? &b->source4 : &b->source6;

	r = &reals[bind->slot];
	if (r->flags)
		return error_set(c->e, -EINVAL, "two backends have the number %u", bind->slot);
	*r = (struct ax_real){
		.addr = be->addr,
		.source = bind->app || addr_is_zero(source) ? bind->source : *source,
		.port_be = b->mode == BALANCE_NAT ? htons(be->port) : 0,
		.flags = flags_of(be, bind->app),
		.balancer = balancer,
	};
	if (b->mode == BALANCE_NAT && !addr_is_zero(&r->source))
		c->layout->nat |= 1u << (r->source.b[15] & 31);
	return 0;
}

/* The table of the backends by the number in QUIC connection ids, if any has one. */
static int add_quic(struct balancers *c, const struct balancer *b, const struct real_binding *reals,
		    struct ax_balancer *out)
{
	struct ax_quic *table;
	uint32_t n = 0;
	int64_t at;

	for (size_t i = 0; i < b->n; i++)
		if (b->backends[i].has_quic_id && b->backends[i].quic_id >= n)
			n = b->backends[i].quic_id + 1u;
	if (!n)
		return 0;
	at = arena_add(c->arena, n * sizeof(*table), 64);
	if (at < 0)
		return (int)at;
	table = (struct ax_quic *)(c->arena->data + at);
	for (uint32_t i = 0; i < n; i++)
		table[i] = (struct ax_quic){AX_QUIC_NOBODY, AX_QUIC_NOBODY};
	for (size_t i = 0; i < b->n; i++) {
		const struct balance_backend *be = &b->backends[i];

		if (!be->has_quic_id)
			continue;
		if (addr_is_v4(&be->addr))
			table[be->quic_id].real = reals[i].slot;
		else
			table[be->quic_id].real6 = reals[i].slot;
	}
	out->quic = (uint32_t)at;
	out->quic_n = n;
	c->layout->quic = 1;
	return 0;
}

static int add_balancer(struct balancers *c, uint32_t number, const struct real_binding *reals)
{
	static const uint8_t modes[] = {
		[BALANCE_NAT] = AX_BALANCE_NAT,
		[BALANCE_IPIP] = AX_BALANCE_IPIP,
		[BALANCE_GUE] = AX_BALANCE_GUE,
	};
	const struct balancer *b = &c->list->balancers[number];
	struct ax_balancer out = {
		.mode = modes[b->mode],
		.gue_port_be = htons(b->gue_port),
		.affinity = b->affinity == BALANCE_BY_SRC ? AX_BALANCE_BY_SRC : AX_BALANCE_BY_FLOW,
	};
	int64_t ring, ring6;
	int r = 0;

	for (size_t i = 0; i < b->n && !r; i++)
		r = add_real(c, b, number, &b->backends[i], &reals[i]);
	if (r)
		return r;
	ring = add_ring(c, b, reals, true);
	if (ring < 0)
		return (int)ring;
	ring6 = add_ring(c, b, reals, false);
	if (ring6 < 0)
		return (int)ring6;
	out.ring = (uint32_t)ring;
	out.ring6 = (uint32_t)ring6;
	r = add_quic(c, b, reals, &out);
	if (r)
		return r;
	((struct ax_balancer *)(c->arena->data + c->layout->balancers))[number] = out;
	return 0;
}

static int add_tables(struct balancers *c, uint32_t slots)
{
	int64_t at = arena_add(c->arena, c->list->n_balancers * sizeof(struct ax_balancer), 64);

	if (at < 0)
		return (int)at;
	c->layout->balancers = (uint32_t)at;
	c->layout->balancers_n = (uint32_t)c->list->n_balancers;
	at = arena_add(c->arena, slots * sizeof(struct ax_real), 64);
	if (at < 0)
		return (int)at;
	c->layout->backends = (uint32_t)at;
	c->layout->backends_n = slots;
	return 0;
}

static int compile_all(struct balancers *c, const struct real_binding *reals)
{
	int r = 0;

	for (size_t i = 0; i < c->list->n_balancers && !r; i++) {
		r = add_balancer(c, (uint32_t)i, reals);
		reals += c->list->balancers[i].n;
	}
	return r;
}

int balancers_compile(const struct rule_list *l, const struct real_binding *reals, struct arena *a,
		      struct ax_layout *layout, struct error *e)
{
	struct balancers c = {.list = l, .arena = a, .layout = layout, .e = e};
	autofree struct maglev_backend *room = NULL;
	size_t n, most;
	uint32_t slots;
	int r;

	if (!l->n_balancers)
		return 0;
	n = count_reals(l, &slots, &most, reals);
	if (slots > AX_REAL_NUMBERS)
		return error_set(e, -E2BIG,
				 "the balancers have more than %d backends: take some away",
				 AX_REALS_MAX);
	if (n && !reals)
		return error_set(e, -EINVAL, "the balancers' backends have no numbers");
	c.candidates = room = calloc(most ? most : 1, sizeof(*room));
	if (!room)
		return -ENOMEM;
	r = add_tables(&c, slots);
	return r ? r : compile_all(&c, reals);
}
