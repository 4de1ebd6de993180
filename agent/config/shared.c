// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/shared.h"
#include "config/read.h"

/* What else is there is a node's own matter. */
static void only(struct reader *r, const struct node *n, const char *const *names, const char *what)
{
	for (size_t i = 0; n->kind == NODE_MAPPING && i < n->n; i++) {
		const struct node *key = &n->items[2 * i];
		bool known = false;

		for (size_t k = 0; names[k] && key->kind == NODE_SCALAR; k++)
			known |= streq(key->text, names[k]);
		if (known || key->kind != NODE_SCALAR)
			continue;
		path_push(r, key, 0);
		reject(r, key, "%s: the config of a cluster has nothing else", what);
		r->depth--;
	}
}

static void check_sections(struct reader *r, const struct node *root)
{
	static const char *const sections[] = {"services", "policy", NULL};
	static const char *const policy[] = {"rules", NULL};
	const struct node *key = node_key(root, "policy");

	only(r, root, sections, "services or policy");
	if (!key)
		return;
	path_push(r, key, 0);
	only(r, key + 1, policy, "rules");
	r->depth--;
}

static void check_services(struct reader *r, const struct node *root, const struct config *c)
{
	const struct node *services = node_key(root, "services");

	for (size_t i = 0; services && i < c->n_services; i++) {
		const struct node *key = node_key(services + 1, c->services[i].name);

		if (c->services[i].check.type != CHECK_EXEC)
			continue;
		path_push(r, services, 0);
		path_push(r, key ? key : services, 0);
		report(r, key ? key : services, "a check by a command",
		       "tcp, http or passive: commands are for a node's own config");
		r->depth -= 2;
	}
}

static int read_shared(const struct node *root, struct config *c, struct config_errors *errs)
{
	struct reader r = {.errs = errs};
	int code = 0;

	check_sections(&r, root);
	if (!r.out_of_memory && !errs->n)
		code = config_read_root(root, c, errs);
	if (!r.out_of_memory && !code && !errs->n)
		check_services(&r, root, c);
	if (r.out_of_memory)
		return -ENOMEM;
	return code ? code : errs->n ? -EINVAL : 0;
}

static int too_long(struct config_errors *errs, size_t len)
{
	char found[64], expected[64];
	int r;

	snprintf(found, sizeof(found), "%zu bytes", len);
	snprintf(expected, sizeof(expected), "at most %u KiB", CONFIG_SHARED_MAX >> 10);
	r = config_errors_add(errs, 1, 1, strdup(""), strdup(found), strdup(expected));
	return r ? r : -EINVAL;
}

int config_shared_parse(const char *text, size_t len, struct config *c, struct config_errors *errs)
{
	struct node root;
	int r;

	*errs = (struct config_errors){0};
	if (len > CONFIG_SHARED_MAX)
		return too_long(errs, len);
	r = config_init(c);
	if (r < 0)
		return r;
	r = node_parse(text, len, &root, errs);
	if (r == 0)
		r = read_shared(&root, c, errs);
	node_free(&root);
	if (r < 0)
		config_free(c);
	return r;
}
