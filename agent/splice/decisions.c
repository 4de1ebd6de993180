// SPDX-License-Identifier: GPL-2.0-or-later
#include "splice/decisions.h"

static size_t bucket_of(uint64_t client)
{
	return (size_t)((client * 0x9e3779b97f4a7c15u) >> 32) % DECISIONS_BUCKETS;
}

const struct decision *decisions_find(const struct decisions *d, uint64_t client, uint64_t server)
{
	const struct decision *x = d->buckets[bucket_of(client)];

	while (x && (x->client != client || x->server != server))
		x = x->next;
	return x;
}

struct decision *decisions_get(struct decisions *d, uint64_t client, uint64_t server)
{
	struct decision **bucket = &d->buckets[bucket_of(client)], *x = *bucket;

	while (x && (x->client != client || x->server != server))
		x = x->next;
	if (x)
		return x;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	*x = (struct decision){.client = client,
			       .server = server,
			       .first_ns = time_mono_ns(),
			       .reason = REASON_YOUNG,
			       .next = *bucket};
	*bucket = x;
	d->n++;
	return x;
}

static void sweep_bucket(struct decisions *d, struct decision **at, unsigned look)
{
	while (*at) {
		struct decision *x = *at;

		if (x->look == look) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		free(x);
		d->n--;
	}
}

void decisions_sweep(struct decisions *d, unsigned look)
{
	for (size_t i = 0; i < DECISIONS_BUCKETS; i++)
		sweep_bucket(d, &d->buckets[i], look);
}

bool decisions_open(const struct decisions *d)
{
	for (size_t i = 0; i < DECISIONS_BUCKETS; i++)
		for (const struct decision *x = d->buckets[i]; x; x = x->next)
			if (splice_reason_is_open(x->reason))
				return true;
	return false;
}

void decisions_free(struct decisions *d)
{
	for (size_t i = 0; i < DECISIONS_BUCKETS; i++) {
		while (d->buckets[i]) {
			struct decision *x = d->buckets[i];

			d->buckets[i] = x->next;
			free(x);
		}
	}
	*d = (struct decisions){0};
}
