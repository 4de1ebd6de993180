/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps of connections that are translated between nodes (include/across.h). */
#include <bpf/bpf.h>

#include "base/address.h"
#include "datapath/priv.h"

int datapath_across_get(struct datapath *dp, struct ax_across_ctl *ret)
{
	uint32_t zero = 0;

	return map_get(dp, MAP_ACROSS_CTL, &zero, ret);
}

int datapath_across_set(struct datapath *dp, const struct ax_across_ctl *c)
{
	uint32_t zero = 0;

	return map_set(dp, MAP_ACROSS_CTL, &zero, c);
}

/* value NULL: none. What stays as it is is not written: an element that is replaced may be
 * another's while a program still reads it. */
static int put(struct datapath *dp, enum datapath_map m, const void *key, const void *value,
	       size_t size)
{
	char was[32];
	int r;

	if (value) {
		if (size <= sizeof(was) && !map_get(dp, m, key, was) && !memcmp(was, value, size))
			return 0;
		return map_set(dp, m, key, value);
	}
	r = map_del(dp, m, key);
	return r == -ENOENT ? 0 : r;
}

/* Values of that map. Where a node was, apps may not go by themselves either: its agent may still
 * take this node for another one of its cluster. */
static const uint32_t node_now = 1, node_before = 0;

struct nodes_former {
	const struct ax_addr *list; /* those that are nodes */
	size_t n;
	struct ax_addr *v; /* those that were */
	size_t n_v;
};

static int find_former(void *arg, const void *key, const void *value)
{
	struct nodes_former *f = arg;
	struct ax_addr *more;

	if (*(const uint32_t *)value == node_before)
		return 0;
	for (size_t i = 0; i < f->n; i++)
		if (memcmp(&f->list[i], key, sizeof(f->list[i])) == 0)
			return 0;
	more = reallocarray(f->v, f->n_v + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->v = more;
	memcpy(&f->v[f->n_v++], key, sizeof(*more));
	return 0;
}

static int drop_former(void *arg, const void *key, const void *value)
{
	(void)arg;
	(void)key;
	return *(const uint32_t *)value == node_before;
}

/* There is room for more than a cluster has. */
static int put_node(struct datapath *dp, const struct ax_addr *addr)
{
	int r = put(dp, MAP_ACROSS_NODES, addr, &node_now, sizeof(node_now));

	if (r != -E2BIG)
		return r;
	r = map_walk(dp, MAP_ACROSS_NODES, sizeof(*addr), sizeof(node_now), drop_former, NULL);
	return r ? r : put(dp, MAP_ACROSS_NODES, addr, &node_now, sizeof(node_now));
}

int datapath_across_nodes(struct datapath *dp, const struct ax_addr *list, size_t n)
{
	struct nodes_former f = {.list = list, .n = n};
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = put_node(dp, &list[i]);
	/* (not while it is walked: what is written anew may come once more, or others not) */
	r = r ? r
	      : map_walk(dp, MAP_ACROSS_NODES, sizeof(*list), sizeof(node_now), find_former, &f);
	for (size_t i = 0; i < f.n_v && !r; i++)
		r = put(dp, MAP_ACROSS_NODES, &f.v[i], &node_before, sizeof(node_before));
	free(f.v);
	return r;
}

int datapath_across_app(struct datapath *dp, const struct ax_across_app *who,
			const struct ax_addr *addr)
{
	return put(dp, MAP_ACROSS_APPS, who, addr, sizeof(*addr));
}

int datapath_across_to(struct datapath *dp, const struct ax_endpoint *server,
		       const struct ax_endpoint *at)
{
	return put(dp, MAP_ACROSS_TO, server, at, sizeof(*at));
}

int datapath_across_served(struct datapath *dp, uint32_t port, const struct ax_endpoint *server)
{
	uint32_t key = port | (addr_is_v4(&server->addr) ? 0 : AX_ACROSS_SIX);

	return put(dp, MAP_ACROSS_SERVED, &key, server, sizeof(*server));
}

struct each {
	int (*f)(void *arg, uint32_t port, const struct ax_endpoint *server);
	void *arg;
};

static int each_served(void *arg, const void *key, const void *value)
{
	struct each *e = arg;

	return e->f(e->arg, *(const uint32_t *)key & ~AX_ACROSS_SIX, value) ? -ECANCELED : 0;
}

int datapath_across_each(struct datapath *dp,
			 int (*f)(void *arg, uint32_t port, const struct ax_endpoint *server),
			 void *arg)
{
	struct each e = {.f = f, .arg = arg};

	return map_walk(dp, MAP_ACROSS_SERVED, sizeof(uint32_t), sizeof(struct ax_endpoint),
			each_served, &e);
}

void across_flow_del(struct datapath *dp, const struct ax_across_ends *nodes)
{
	struct ax_across_flow f;

	if (map_get(dp, MAP_ACROSS_FLOWS, nodes, &f))
		return;
	map_del(dp, MAP_ACROSS_FLOWS, &f.as);
	map_del(dp, MAP_ACROSS_FLOWS, nodes);
}

struct ended {
	struct datapath *dp;
	uint32_t app;
};

static int drop_flow(void *arg, const void *key, const void *value)
{
	const struct ax_across_slot *slot = key;
	const struct ended *e = arg;

	if (slot->app != e->app)
		return 0;
	across_flow_del(e->dp, value);
	return 1;
}

void datapath_across_app_end(struct datapath *dp, uint32_t app)
{
	struct ended e = {.dp = dp, .app = app};

	if (*dp->across_any)
		map_walk(dp, MAP_ACROSS_SLOTS, sizeof(struct ax_across_slot),
			 sizeof(struct ax_across_ends), drop_flow, &e);
}

static int drop(void *arg, const void *key, const void *value)
{
	(void)arg;
	(void)key;
	(void)value;
	return 1;
}

int datapath_across_clear(struct datapath *dp, bool all)
{
	const struct ax_across_ctl none = {0};
	int r = datapath_across_nodes(dp, NULL, 0);

	r = r ? r
	      : map_walk(dp, MAP_ACROSS_TO, sizeof(struct ax_endpoint), sizeof(struct ax_endpoint),
			 drop, NULL);
	r = r ? r
	      : map_walk(dp, MAP_ACROSS_APPS, sizeof(struct ax_across_app), sizeof(struct ax_addr),
			 drop, NULL);
	if (r || !all)
		return r;
	r = map_walk(dp, MAP_ACROSS_FLOWS, sizeof(struct ax_across_ends),
		     sizeof(struct ax_across_flow), drop, NULL);
	r = r ? r
	      : map_walk(dp, MAP_ACROSS_SLOTS, sizeof(struct ax_across_slot),
			 sizeof(struct ax_across_ends), drop, NULL);
	if (r)
		return r;
	r = map_walk(dp, MAP_ACROSS_SERVED, sizeof(uint32_t), sizeof(struct ax_endpoint), drop,
		     NULL);
	r = r ? r
	      : map_walk(dp, MAP_ACROSS_NODES, sizeof(struct ax_addr), sizeof(uint32_t), drop,
			 NULL);
	return r ? r : datapath_across_set(dp, &none);
}
