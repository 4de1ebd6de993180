/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses from a prefix. Address 0 is the network's, 1 the host's, the last one (IPv4) the
 * broadcast address; the rest is given out round and round, so that an address rests before it
 * comes back. */
#include <arpa/inet.h>

#include "allot/pool.h"
#include "base/address.h"

#define POOL_MAX (1u << 20) /* addresses that one pool manages; a larger prefix is used in part */

int pool_init(struct pool *p, const struct prefix *prefix)
{
	unsigned host_bits = 128 - prefix->len;

	memset(p, 0, sizeof(*p));
	if (!prefix->len)
		return 0;
	p->prefix = *prefix;
	p->size = host_bits >= 20 ? POOL_MAX : 1u << host_bits;
	p->used = calloc(p->size / 8 + 1, 1);
	if (!p->used)
		return -ENOMEM;
	p->next = 2;
	return 0;
}

void pool_free(struct pool *p)
{
	free(p->used);
	free(p->shut);
	memset(p, 0, sizeof(*p));
}

static struct ax_addr pool_addr(const struct pool *p, uint32_t i)
{
	struct ax_addr a = p->prefix.addr;

	a.w[3] = htonl(ntohl(a.w[3]) + i); /* the low 20 bits of the prefix are 0 */
	return a;
}

struct ax_addr pool_host(const struct pool *p)
{
	static const struct ax_addr none;

	return p->size ? pool_addr(p, 1) : none;
}

struct ax_addr pool_last(const struct pool *p)
{
	static const struct ax_addr none;

	return p->size ? pool_addr(p, p->size - 1) : none;
}

static bool pool_usable(const struct pool *p, uint32_t i)
{
	if (i < 2 || i >= p->size || (p->shut && p->shut[i / 8] & (1 << i % 8)))
		return false;
	return !(addr_is_v4(&p->prefix.addr) && i == p->size - 1);
}

#define WORD 64 /* addresses that are looked at together */

/* Whether none of the word that begins there is to be had. */
static bool is_full(const struct pool *p, uint32_t i)
{
	uint64_t used, shut = 0;

	if (i + WORD > p->size)
		return false;
	memcpy(&used, p->used + i / 8, sizeof(used));
	if (p->shut)
		memcpy(&shut, p->shut + i / 8, sizeof(shut));
	return (used | shut) == UINT64_MAX;
}

/* (of a large pool that nodes share all but a little is shut) */
int pool_take(struct pool *p, struct ax_addr *ret)
{
	for (uint32_t tries = 0, step; tries < p->size; tries += step) {
		uint32_t i = p->next;

		step = i % WORD == 0 && is_full(p, i) ? WORD : 1;
		p->next = p->next + step >= p->size ? 2 : p->next + step;
		if (step > 1 || !pool_usable(p, i) || (p->used[i / 8] & (1 << i % 8)))
			continue;
		p->used[i / 8] |= (unsigned char)(1 << i % 8);
		p->in_use++;
		*ret = pool_addr(p, i);
		return 0;
	}
	return -ENOSPC;
}

int pool_shut(struct pool *p)
{
	if (!p->size || p->shut)
		return 0;
	p->shut = malloc(p->size / 8 + 1);
	if (!p->shut)
		return -ENOMEM;
	memset(p->shut, 0xff, p->size / 8 + 1);
	p->n_shut = p->size;
	return 0;
}

void pool_open(struct pool *p, const struct prefix *part, bool open)
{
	uint32_t first = ntohl(part->addr.w[3]) - ntohl(p->prefix.addr.w[3]);
	uint32_t n = part->len > 96 ? 1u << (128 - part->len) : 0;

	if (!p->shut || part->len < p->prefix.len || !prefix_contains(&p->prefix, &part->addr))
		return;
	for (uint32_t i = first / 8; n >= 8 && i < (first + n) / 8 && i < p->size / 8; i++) {
		if ((p->shut[i] == 0) == open)
			continue;
		p->shut[i] = open ? 0 : 0xff;
		p->n_shut += open ? -8u : 8;
	}
	/* the first that is given out is one of the new ones, and no long search is needed for it
	 */
	if (open && first >= 2)
		p->next = first;
}

uint32_t pool_left(const struct pool *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->size;) {
		if (i % WORD == 0 && is_full(p, i)) {
			i += WORD;
			continue;
		}
		n += pool_usable(p, i) && !(p->used[i / 8] & (1 << i % 8));
		i++;
	}
	return n;
}

void pool_jump(struct pool *p, uint32_t by)
{
	uint32_t quarter = p->size / 4;

	if (p->size <= 2)
		return;
	p->next = 2 + (p->next - 2 + by % (p->size - 2)) % (p->size - 2);
	/* who picks an address by hand takes one of the first: chance takes none of those away */
	if (p->size >= POOL_LARGE && p->next < quarter)
		p->next += quarter * (1 + p->next % 3);
}

void pool_mark(struct pool *p, const struct ax_addr *addr, bool used)
{
	struct ax_addr managed;
	unsigned char bit;
	uint32_t i;

	if (!p->size || !prefix_contains(&p->prefix, addr))
		return;
	i = ntohl(addr->w[3]) - ntohl(p->prefix.addr.w[3]);
	if (i >= p->size)
		return;
	managed = pool_addr(p, i);
	if (!addr_eq(&managed, addr)) /* a large IPv6 prefix has more than its first addresses */
		return;
	bit = (unsigned char)(1 << i % 8);
	if (!!(p->used[i / 8] & bit) == used)
		return;
	p->used[i / 8] ^= bit;
	p->in_use += used ? 1 : -1u;
}
