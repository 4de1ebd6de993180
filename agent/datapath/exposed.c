/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps of exposed ports. */
#include <bpf/bpf.h>

#include "datapath/priv.h"

int datapath_exposed_get(struct datapath *dp, const struct ax_exposed_key *key,
			 struct ax_exposed *ret)
{
	return bpf_map_lookup_elem(dp->map[MAP_EXPOSED], key, ret) ? -errno : 0;
}

int datapath_exposed_set(struct datapath *dp, const struct ax_exposed_key *key,
			 const struct ax_exposed *x)
{
	struct ax_exposed was;
	bool same = !datapath_exposed_get(dp, key, &was) && memcmp(&was, x, sizeof(was)) == 0;

	/* an element that is replaced may be another's while a program still reads it */
	if (!same && bpf_map_update_elem(dp->map[MAP_EXPOSED], key, x, BPF_ANY))
		return -errno;
	return xdp_exposed_put(dp, key);
}

int datapath_exposed_del(struct datapath *dp, const struct ax_exposed_key *key)
{
	int r = bpf_map_delete_elem(dp->map[MAP_EXPOSED], key) && errno != ENOENT ? -errno : 0;

	xdp_exposed_drop(dp, key);
	return r;
}

int datapath_exposed_ports(struct datapath *dp, uint32_t word, uint64_t bits)
{
	uint64_t was;

	if (!bpf_map_lookup_elem(dp->map[MAP_EXPOSED_PORTS], &word, &was) && was == bits)
		return 0;
	if (bpf_map_update_elem(dp->map[MAP_EXPOSED_PORTS], &word, &bits, BPF_ANY))
		return -errno;
	return xdp_exposed_ports(dp, word, bits);
}

/* The keys of a map for which keep() says false, and how many; -ENOMEM. */
static int keys_to_drop(int map, size_t size, bool (*keep)(void *arg, const void *key), void *arg,
			char **ret, size_t *n)
{
	char key[32], next[32], *more;
	bool first = true;

	*ret = NULL;
	*n = 0;
	while (!bpf_map_get_next_key(map, first ? NULL : key, next)) {
		first = false;
		memcpy(key, next, size);
		if (keep(arg, next))
			continue;
		more = reallocarray(*ret, *n + 1, size);
		if (!more)
			return -ENOMEM;
		*ret = more;
		memcpy(*ret + size * (*n)++, next, size);
	}
	return 0;
}

/* Returns how many, or a negative errno. */
static int drop(int map, size_t size, bool (*keep)(void *arg, const void *key), void *arg)
{
	autofree char *keys = NULL;
	size_t n;
	int r = keys_to_drop(map, size, keep, arg, &keys, &n);

	for (size_t i = 0; i < n && !r; i++)
		if (bpf_map_delete_elem(map, keys + size * i) && errno != ENOENT)
			r = -errno;
	return r ? r : (int)n;
}

struct exposed_keep {
	bool (*keep)(void *arg, const struct ax_exposed_key *key);
	void *arg;
};

static bool keep_exposed(void *arg, const void *key)
{
	const struct exposed_keep *k = arg;

	return k->keep(k->arg, key);
}

int datapath_exposed_sweep(struct datapath *dp,
			   bool (*keep)(void *arg, const struct ax_exposed_key *key), void *arg)
{
	struct exposed_keep k = {.keep = keep, .arg = arg};

	int r = drop(dp->map[MAP_EXPOSED], sizeof(struct ax_exposed_key), keep_exposed, &k);

	return r < 0 ? r : xdp_exposed_copy(dp);
}

struct addr_keep {
	const struct ax_addr *list;
	size_t n;
};

static bool keep_addr(void *arg, const void *key)
{
	const struct addr_keep *k = arg;

	for (size_t i = 0; i < k->n; i++)
		if (memcmp(&k->list[i], key, sizeof(k->list[i])) == 0)
			return true;
	return false;
}

int datapath_local_addrs(struct datapath *dp, const struct ax_addr *list, size_t n)
{
	struct addr_keep k = {.list = list, .n = n};
	bool changed = false;
	uint32_t one = 1;
	int r;

	for (size_t i = 0; i < n; i++) {
		if (!bpf_map_update_elem(dp->map[MAP_LOCAL_ADDRS], &list[i], &one, BPF_NOEXIST))
			changed = true;
		else if (errno != EEXIST)
			return -errno;
	}
	r = drop(dp->map[MAP_LOCAL_ADDRS], sizeof(*list), keep_addr, &k);
	if (r < 0 || (!r && !changed))
		return r;
	r = xdp_exposed_copy(dp);
	return r ? r : 1;
}
