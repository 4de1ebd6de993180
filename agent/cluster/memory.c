/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an agent that starts while etcd is away must know: the blocks out of which this node's apps
 * have addresses; and which of its IPv6 addresses was this node's, if it has several by now. It is
 * kept where all else of them is, until the machine is started again.
 */
#include <fcntl.h>
#include <time.h>

#include "base/log.h"
#include "cluster/priv.h"
#include "machine/instance.h"
#include "registry/state.h"

#define MEMORY_MAX (1u << 20)

static void memory_path(const struct cluster *c, char path[128])
{
	snprintf(path, 128, "%s/cluster.json", c->a->inst->run_dir);
}

static void take(struct cluster *c, const json_t *j)
{
	const char *name = json_string_value(json_object_get(j, "cluster"));
	const char *id = json_string_value(json_object_get(j, "id"));
	const char *node = json_string_value(json_object_get(j, "node"));
	const char *address6 = json_string_value(json_object_get(j, "address6"));
	const json_t *one;
	struct prefix p;
	size_t i;

	if (!name || !id || !streq(name, c->conf.name) || !streq(id, c->id))
		return;
	c->since = json_integer_value(json_object_get(j, "since"));
	c->lease_id = json_integer_value(json_object_get(j, "lease"));
	snprintf(c->was_node, sizeof(c->was_node), "%.63s", node ? node : "");
	if (!address6 || addr_parse(address6, &c->address6) || addr_is_v4(&c->address6))
		c->address6 = (struct ax_addr){0};
	json_array_foreach (json_object_get(j, "blocks"), i, one)
		if (json_is_string(one) && !prefix_parse(json_string_value(one), &p) &&
		    block_of_pool(cluster_pool(c, &p.addr), &p))
			block_add(c, &p);
}

void memory_read(struct cluster *c)
{
	autofree char *text = NULL;
	char path[128];
	json_t *j;

	node_make_id(c);
	memory_path(c, path);
	j = file_read(path, MEMORY_MAX, &text) ? NULL : json_loads(text, 0, NULL);
	if (j)
		take(c, j);
	json_decref(j);
	if (c->since <= 0)
		c->since = time(NULL);
}

static json_t *memory_of(const struct cluster *c)
{
	json_t *blocks = json_array(), *j;
	char text[ADDR_STRLEN];

	for (size_t i = 0; i < c->n_blocks; i++)
		if (!c->blocks[i].lost)
			json_array_append_new(
				blocks, json_string(prefix_format(&c->blocks[i].prefix, text)));
	j = json_pack("{ss ss ss sI sI so}", "cluster", c->conf.name, "id", c->id, "node", c->node,
		      "since", (json_int_t)c->since, "lease", (json_int_t)c->lease_id, "blocks",
		      blocks);
	if (j && !addr_is_zero(&c->address6))
		json_object_set_new(j, "address6", json_string(addr_format(&c->address6, text)));
	return j;
}

void memory_write(const struct cluster *c)
{
	char path[128];
	json_t *j = memory_of(c);
	autofree char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	int r;

	json_decref(j);
	memory_path(c, path);
	r = text ? file_replace(path, 0600, text) : -ENOMEM;
	if (r)
		log_error(
			"%s cannot be written (%s): an agent that starts while etcd is away has no "
			"addresses to give out",
			path, strerror(-r));
}
