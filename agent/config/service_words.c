/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/service_words.h"

static const char *const affinities[] = {
	[AFFINITY_NONE] = "none",
	[AFFINITY_APP] = "app",
	[AFFINITY_SRC] = "src",
};

static const char *const hashes[] = {
	[HASH_SRC] = "src",
	[HASH_APP] = "app",
};

static const char *const udp_choices[] = {
	[UDP_AFFINITY] = "affinity",
	[UDP_PER_SEND] = "per-send",
};

static const char *const on_removes[] = {
	[ON_REMOVE_UDP] = "udp",
	[ON_REMOVE_DESTROY] = "destroy",
	[ON_REMOVE_KEEP] = "keep",
};

static int index_of(const char *const *names, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (streq(names[i], s))
			return (int)i;
	return -1;
}

const char *affinity_name(enum service_affinity v)
{
	return affinities[v];
}

const char *hash_name(enum service_hash v)
{
	return hashes[v];
}

const char *udp_choice_name(enum service_udp v)
{
	return udp_choices[v];
}

const char *on_remove_name(enum service_on_remove v)
{
	return on_removes[v];
}

const char *want_affinity(const char *s, enum service_affinity *ret)
{
	int i = index_of(affinities, ARRAY_SIZE(affinities), s);

	if (i < 0)
		return "none, app or src";
	*ret = (enum service_affinity)i;
	return NULL;
}

const char *want_hash(const char *s, enum service_hash *ret)
{
	int i = index_of(hashes, ARRAY_SIZE(hashes), s);

	if (i < 0)
		return "src or app";
	*ret = (enum service_hash)i;
	return NULL;
}

const char *want_udp_choice(const char *s, enum service_udp *ret)
{
	int i = index_of(udp_choices, ARRAY_SIZE(udp_choices), s);

	if (i < 0)
		return "affinity or per-send";
	*ret = (enum service_udp)i;
	return NULL;
}

const char *want_on_remove(const char *s, enum service_on_remove *ret)
{
	int i = index_of(on_removes, ARRAY_SIZE(on_removes), s);

	if (i < 0)
		return "udp, destroy or keep";
	*ret = (enum service_on_remove)i;
	return NULL;
}

const char *affinity_nth(size_t i)
{
	return i < ARRAY_SIZE(affinities) ? affinities[i] : NULL;
}

const char *hash_nth(size_t i)
{
	return i < ARRAY_SIZE(hashes) ? hashes[i] : NULL;
}

const char *udp_choice_nth(size_t i)
{
	return i < ARRAY_SIZE(udp_choices) ? udp_choices[i] : NULL;
}

const char *on_remove_nth(size_t i)
{
	return i < ARRAY_SIZE(on_removes) ? on_removes[i] : NULL;
}
