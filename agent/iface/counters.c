// SPDX-License-Identifier: GPL-2.0-or-later
/* What the programs of an interface counted: by rule, by reason, by backend. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "iface/priv.h"

static int sum_rule(struct xdp *x, uint32_t counter, struct ax_rule_count *cpus, size_t n,
		    struct ax_rule_count *ret)
{
	struct ax_rule_count carried;

	/* beyond the end: the list is new, and its bigger maps are being put in place */
	if (bpf_map_lookup_elem(x->d.map[XDP_MAP_RULE_COUNTS], &counter, cpus) < 0)
		return errno == ENOENT ? 0 : -errno;
	for (size_t i = 0; i < n; i++) {
		ret->packets += cpus[i].packets;
		ret->bytes += cpus[i].bytes;
		ret->limited += cpus[i].limited;
		ret->failed += cpus[i].failed;
	}
	if (bpf_map_lookup_elem(x->d.map[XDP_MAP_CARRIED], &counter, &carried) < 0)
		return errno == ENOENT ? 0 : -errno;
	ret->packets += carried.packets;
	ret->bytes += carried.bytes;
	ret->limited += carried.limited;
	ret->failed += carried.failed;
	return 0;
}

static int read_rules(struct xdp *x, struct xdp_stats *s, size_t cpus)
{
	const struct ax_action *a = (const void *)(x->g.data + x->g.layout.actions);
	autofree struct ax_rule_count *each = calloc(cpus, sizeof(*each));
	autofree bool *seen = calloc(s->names.n, sizeof(*seen));
	int r = each && seen ? 0 : -ENOMEM;

	for (uint32_t i = 0; i <= x->g.layout.rules && !r; i++) {
		if (a[i].rule >= s->names.n || seen[a[i].rule])
			continue; /* a companion counts with its rule */
		seen[a[i].rule] = true;
		r = sum_rule(x, a[i].counter, each, cpus, &s->rules[a[i].rule]);
	}
	return r;
}

static int read_reasons(struct xdp *x, struct xdp_stats *s, size_t cpus)
{
	autofree uint64_t *each = calloc(cpus, sizeof(*each));

	if (!each)
		return -ENOMEM;
	for (uint32_t i = 0; i < AX_REASONS; i++) {
		if (bpf_map_lookup_elem(x->d.map[XDP_MAP_REASON_COUNTS], &i, each) < 0)
			return -errno;
		for (size_t c = 0; c < cpus; c++)
			s->reasons[i] += each[c];
	}
	return 0;
}

static int read_backend(struct xdp *x, uint32_t number, const struct ax_real *real,
			struct ax_real_count *each, size_t cpus, struct xdp_backend_stats *b)
{
	*b = (struct xdp_backend_stats){
		.addr = real->addr,
		.port = ntohs(real->port_be),
		.drain = real->flags & AX_REAL_DRAIN,
		.down = real->flags & AX_REAL_DOWN,
		.balancer = strdup(x->list.balancers[real->balancer].name),
	};
	if (!b->balancer)
		return -ENOMEM;
	if (bpf_map_lookup_elem(x->d.map[XDP_MAP_REAL_COUNTS], &number, each) < 0)
		return -errno;
	for (size_t c = 0; c < cpus; c++) {
		b->packets += each[c].packets;
		b->bytes += each[c].bytes;
		b->flows += each[c].flows;
	}
	return 0;
}

static int read_backends(struct xdp *x, struct xdp_stats *s, size_t cpus)
{
	const struct ax_real *reals = (const void *)(x->g.data + x->g.layout.backends);
	autofree struct ax_real_count *each = calloc(cpus, sizeof(*each));
	uint32_t n = x->g.layout.backends_n;
	int r = 0;

	s->backends = calloc(n + 1, sizeof(*s->backends));
	if (!each || !s->backends)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !r; i++)
		if (reals[i].flags & AX_REAL_PRESENT && reals[i].balancer < x->list.n_balancers)
			r = read_backend(x, i, &reals[i], each, cpus,
					 &s->backends[s->n_backends++]);
	return r;
}

int xdp_stats(struct xdp *x, struct xdp_stats *ret, struct error *e)
{
	int possible = libbpf_num_possible_cpus(), r = possible < 0 ? possible : xdp_refresh(x);
	size_t cpus = (size_t)possible;

	*ret = (struct xdp_stats){0};
	if (!r)
		r = strv_copy(&x->names, &ret->names);
	if (!r) {
		ret->rules = calloc(ret->names.n, sizeof(*ret->rules));
		r = ret->rules ? read_rules(x, ret, cpus) : -ENOMEM;
	}
	if (!r)
		r = read_reasons(x, ret, cpus);
	if (!r)
		r = read_backends(x, ret, cpus);
	if (!r)
		return 0;
	xdp_stats_free(ret);
	return error_set(e, r, "cannot read the counters of %s: %s", x->ifname, strerror(-r));
}

void xdp_stats_free(struct xdp_stats *s)
{
	for (size_t i = 0; i < s->n_backends; i++)
		free(s->backends[i].balancer);
	free(s->backends);
	free(s->rules);
	strv_free(&s->names);
	*s = (struct xdp_stats){0};
}
