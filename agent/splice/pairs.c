// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>

#include "splice/pairs.h"

/* So much may move between the two moments at which the ends of a connection are looked at. Of
 * numbers at random, one in 16 is as near. */
#define MOVED_MAX (128 << 20)

static int endpoint_cmp(const struct ax_endpoint *a, const struct ax_endpoint *b)
{
	int c = memcmp(&a->addr, &b->addr, sizeof(a->addr));

	return c ? c : memcmp(&a->port_be, &b->port_be, sizeof(a->port_be));
}

static int tuple_cmp(const struct ax_endpoint *al, const struct ax_endpoint *ar,
		     const struct ax_endpoint *bl, const struct ax_endpoint *br)
{
	int c = endpoint_cmp(al, bl);

	return c ? c : endpoint_cmp(ar, br);
}

static int conn_cmp(const void *x, const void *y)
{
	const struct ax_splice_conn *a = x, *b = y;
	int c = tuple_cmp(&a->local, &a->remote, &b->local, &b->remote);

	return c ? c : a->cookie < b->cookie ? -1 : a->cookie > b->cookie;
}

/* The first one with these addresses. */
static const struct ax_splice_conn *lower(const struct ax_splice_conn *v, size_t n,
					  const struct ax_splice_conn *mirror)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (tuple_cmp(&v[mid].local, &v[mid].remote, &mirror->remote, &mirror->local) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from < n ? &v[from] : NULL;
}

/* Received by one end, as far as the other one has sent; records are of different moments. */
static bool follows(const struct ax_splice_conn *from, const struct ax_splice_conn *to)
{
	return (int32_t)(to->rcv_nxt - from->snd_una) >= -MOVED_MAX &&
	       (int32_t)(to->rcv_nxt - from->write_seq) <= MOVED_MAX;
}

static bool mirrors(const struct ax_splice_conn *a, const struct ax_splice_conn *b)
{
	return tuple_cmp(&a->local, &a->remote, &b->remote, &b->local) == 0;
}

static bool is_client(const struct ax_splice_conn *a, const struct ax_splice_conn *b)
{
	if (!a->asked.port_be != !b->asked.port_be)
		return a->asked.port_be != 0;
	return ntohs(a->local.port_be) > ntohs(b->local.port_be) ||
	       (a->local.port_be == b->local.port_be && a->cookie < b->cookie);
}

static struct pair pair_of(const struct ax_splice_conn *a, const struct ax_splice_conn *b)
{
	return is_client(a, b) ? (struct pair){.client = a, .server = b}
			       : (struct pair){.client = b, .server = a};
}

/* The other end of v[i] behind it in the order, so that each pair is found once. Several have the
 * same addresses only where one of them is not its app's: then that is not the one. */
static bool other_end(const struct ax_splice_conn *v, size_t n, size_t i,
		      bool (*owns)(void *arg, const struct ax_splice_conn *c), void *arg,
		      struct pair *ret)
{
	const struct ax_splice_conn *b = lower(v, n, &v[i]);
	bool found = false;

	for (; b && b < v + n && mirrors(&v[i], b); b++) {
		if (conn_cmp(&v[i], b) >= 0 || !follows(&v[i], b) || !follows(b, &v[i]))
			continue;
		*ret = pair_of(&v[i], b);
		found = true;
		if (owns(arg, &v[i]) && owns(arg, b))
			return true;
		ret->reason = REASON_STRANGER;
	}
	return found;
}

size_t pairs_find(struct ax_splice_conn *v, size_t n,
		  bool (*owns)(void *arg, const struct ax_splice_conn *c), void *arg,
		  struct pair *ret)
{
	size_t found = 0;

	if (n)
		qsort(v, n, sizeof(*v), conn_cmp);
	for (size_t i = 0; i < n; i++)
		found += other_end(v, n, i, owns, arg, &ret[found]);
	return found;
}

const struct ax_splice_conn *pairs_end(const struct ax_splice_conn *v, size_t n,
				       const struct ax_endpoint *local,
				       const struct ax_endpoint *remote)
{
	const struct ax_splice_conn mirror = {.local = *remote, .remote = *local};
	const struct ax_splice_conn *c = lower(v, n, &mirror);

	return c && mirrors(c, &mirror) ? c : NULL;
}

static bool is_stream(const struct ax_splice_conn *c)
{
	uint32_t least = c->data_segs_in < c->data_segs_out ? c->data_segs_in : c->data_segs_out;

	return (c->bytes_sent + c->bytes_received) / least > PAIRS_BYTES_MAX;
}

static bool is_new(const struct ax_splice_conn *c)
{
	return c->data_segs_in < PAIRS_SEGMENTS_MIN || c->data_segs_out < PAIRS_SEGMENTS_MIN;
}

/* A stream is known by its few answers, long before it has had many. */
static enum splice_reason traffic(const struct ax_splice_conn *c)
{
	if (!is_new(c))
		return is_stream(c) ? REASON_STREAM : REASON_NONE;
	return c->bytes_sent + c->bytes_received > (uint64_t)PAIRS_SEGMENTS_MIN * PAIRS_BYTES_MAX
		       ? REASON_STREAM
		       : REASON_FEW;
}

bool pair_is_joined(const struct pair *p)
{
	return (p->client->flags & p->server->flags & AX_SPLICE_MEMBER) &&
	       !((p->client->flags | p->server->flags) & AX_SPLICE_PARTED);
}

bool pair_holds(const struct pair *p)
{
	return (p->client->since_empty && p->server->held) ||
	       (p->server->since_empty && p->client->held);
}

enum splice_reason pair_fits(const struct pair *p)
{
	const uint32_t either = p->client->flags | p->server->flags;
	const uint32_t both = p->client->flags & p->server->flags;
	enum splice_reason r;

	if (p->reason)
		return p->reason;
	if (either & (AX_SPLICE_ULP | AX_SPLICE_OTHER))
		return REASON_CANNOT;
	if (!(both & AX_SPLICE_NONBLOCK))
		return REASON_BLOCKING;
	r = traffic(p->client);
	return r ? r : traffic(p->server);
}
