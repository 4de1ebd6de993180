// SPDX-License-Identifier: GPL-2.0-or-later
/* The whole config file: its sections. */
#include "config/parse.h"
#include "config/read.h"

static const struct key root_keys[] = {
	{"agent", read_agent, 0},	{"cluster", read_cluster, 0}, {"apps", read_apps, 0},
	{"services", read_services, 0}, {"policy", read_policy, 0},   {"xdp", read_xdp, 0},
	{"probes", read_probes, 0},
};

int config_read_root(const struct node *root, struct config *c, struct config_errors *errs)
{
	struct config_reading reading = {.root = root};
	struct reader r = {.context = &reading, .errs = errs};

	read_mapping(&r, root, root_keys, ARRAY_SIZE(root_keys), c);
	if (!errs->n && !r.out_of_memory) {
		finish_cluster(&r, root, c);
		check_limits(&r, root, c);
		finish_policy(&r, root, c);
	}
	registry_free(&reading.names);
	registry_free(&reading.addresses);
	expose_lines_free(reading.exposed);
	if (r.out_of_memory)
		return -ENOMEM;
	return errs->n ? -EINVAL : 0;
}

int config_parse(const char *text, size_t len, struct config *c, struct config_errors *errs)
{
	struct node root;
	int r;

	*errs = (struct config_errors){0};
	r = config_init(c);
	if (r < 0)
		return r;
	r = node_parse(text, len, &root, errs);
	if (r == 0)
		r = config_read_root(&root, c, errs);
	node_free(&root);
	if (r < 0)
		config_free(c);
	return r;
}
