/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps of connections that are translated between nodes (include/across.h). */
#include <bpf/bpf.h>

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

struct nodes_keep {
	const struct ax_addr *list;
	size_t n;
};

static int drop_node(void *arg, const void *key, const void *value)
{
	const struct nodes_keep *k = arg;

	(void)value;
	for (size_t i = 0; i < k->n; i++)
		if (memcmp(&k->list[i], key, sizeof(k->list[i])) == 0)
			return 0;
	return 1;
}

int datapath_across_nodes(struct datapath *dp, const struct ax_addr *list, size_t n)
{
	struct nodes_keep k = {.list = list, .n = n};
	uint32_t one = 1;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = put(dp, MAP_ACROSS_NODES, &list[i], &one, sizeof(one));
	return r ? r : map_walk(dp, MAP_ACROSS_NODES, sizeof(*list), sizeof(one), drop_node, &k);
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
	return put(dp, MAP_ACROSS_SERVED, &port, server, sizeof(*server));
}

struct each {
	int (*f)(void *arg, uint32_t port, const struct ax_endpoint *server);
	void *arg;
};

static int each_served(void *arg, const void *key, const void *value)
{
	struct each *e = arg;

	return e->f(e->arg, *(const uint32_t *)key, value) ? -ECANCELED : 0;
}

int datapath_across_each(struct datapath *dp,
			 int (*f)(void *arg, uint32_t port, const struct ax_endpoint *server),
			 void *arg)
{
	struct each e = {.f = f, .arg = arg};

	return map_walk(dp, MAP_ACROSS_SERVED, sizeof(uint32_t), sizeof(struct ax_endpoint),
			each_served, &e);
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
	r = map_walk(dp, MAP_ACROSS_SERVED, sizeof(uint32_t), sizeof(struct ax_endpoint), drop,
		     NULL);
	return r ? r : datapath_across_set(dp, &none);
}
