// SPDX-License-Identifier: GPL-2.0-or-later
/* The names that the agent gives to addresses, if one is running. */
#include "tools/trace/ready/names.h"

#define AGAIN_NS UINT64_C(2000000000) /* at most so often is it asked */

static void forget(struct address_names *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->v[i].name);
	free(n->v);
	n->v = NULL;
	n->n = 0;
}

static void add(struct address_names *n, const char *address, const char *name)
{
	struct ax_addr addr;
	struct address_name *v;

	if (!address || !name || addr_parse(address, &addr) < 0)
		return;
	v = realloc(n->v, (n->n + 1) * sizeof(*v));
	if (!v)
		return;
	n->v = v;
	v[n->n] = (struct address_name){.addr = addr, .name = strdup(name)};
	if (v[n->n].name)
		n->n++;
}

/* Who asks while no agent runs is told nothing: there are no names then. */
void address_names_load(struct address_names *n, const struct cmd *c)
{
	autojson json_t *reply = NULL;
	struct error e = {0};
	json_t *item;
	size_t i;

	n->asked_ns = time_mono_ns();
	if (cmd_ask(c, json_pack("{s:s, s:s}", "op", "get", "what", "names"), &reply, &e) < 0)
		return;
	forget(n);
	json_array_foreach (json_object_get(reply, "names"), i, item) {
		add(n, member_string(item, "ip4"), member_string(item, "name"));
		add(n, member_string(item, "ip6"), member_string(item, "name"));
	}
}

static const char *find(const struct address_names *n, const struct ax_addr *addr)
{
	for (size_t i = 0; i < n->n; i++)
		if (addr_eq(&n->v[i].addr, addr))
			return n->v[i].name;
	return NULL;
}

/* An address without a name may be that of an app that was started since. */
const char *address_name(struct address_names *n, const struct cmd *c, const struct ax_addr *addr)
{
	const char *name = find(n, addr);

	if (name || time_mono_ns() - n->asked_ns < AGAIN_NS)
		return name;
	address_names_load(n, c);
	return find(n, addr);
}

void address_names_free(struct address_names *n)
{
	forget(n);
}
