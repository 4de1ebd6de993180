// SPDX-License-Identifier: GPL-2.0-or-later
#include "tools/trace/script/script.h"

#define ALIGN 8

static int grow_bytes(struct order *o, size_t len)
{
	size_t room = o->room ? o->room : 1u << 16;
	char *bytes;

	while (room - o->used < len)
		room *= 2;
	if (room == o->room)
		return 0;
	bytes = realloc(o->bytes, room);
	if (!bytes)
		return -ENOMEM;
	o->bytes = bytes;
	o->room = room;
	return 0;
}

static int grow_entries(struct order *o)
{
	size_t size = o->size ? o->size * 2 : 1024;
	struct order_entry *v;

	if (o->n < o->size)
		return 0;
	v = realloc(o->v, size * sizeof(*v));
	if (!v)
		return -ENOMEM;
	o->v = v;
	o->size = size;
	return 0;
}

int order_add(struct order *o, const struct ax_probe_record *r, size_t len)
{
	size_t padded = (len + ALIGN - 1) / ALIGN * ALIGN;

	if (grow_bytes(o, padded) < 0 || grow_entries(o) < 0)
		return -ENOMEM;
	memcpy(o->bytes + o->used, r, len);
	if (o->n && r->time_ns < o->v[o->n - 1].time_ns)
		o->unsorted = true;
	o->v[o->n++] = (struct order_entry){
		.time_ns = r->time_ns, .number = o->number++, .at = o->used, .len = len};
	o->used += padded;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct order_entry *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* What is left goes to the beginning. */
static int keep_rest(struct order *o, size_t given)
{
	size_t used = 0;
	char *bytes = o->spare;

	if (given == o->n) {
		o->n = 0;
		o->used = 0;
		return 0;
	}
	if (o->spare_room < o->room) {
		bytes = realloc(o->spare, o->room);
		if (!bytes)
			return -ENOMEM;
		o->spare = bytes;
		o->spare_room = o->room;
	}
	for (size_t i = given; i < o->n; i++) {
		struct order_entry *e = &o->v[i];

		memcpy(o->spare + used, o->bytes + e->at, e->len);
		e->at = used;
		used += (e->len + ALIGN - 1) / ALIGN * ALIGN;
		o->v[i - given] = *e;
	}
	o->n -= given;
	o->used = used;
	o->spare = o->bytes;
	o->bytes = bytes;
	used = o->room;
	o->room = o->spare_room;
	o->spare_room = used;
	return 0;
}

int order_give(struct order *o, uint64_t until_ns,
	       int (*f)(void *arg, const struct ax_probe_record *r, size_t len), void *arg)
{
	size_t given = 0;
	int r = 0, kept;

	if (o->used > SCRIPT_ORDER_BYTES)
		until_ns = UINT64_MAX;
	if (o->unsorted)
		qsort(o->v, o->n, sizeof(*o->v), compare);
	o->unsorted = false;
	while (r >= 0 && given < o->n && o->v[given].time_ns <= until_ns) {
		const struct order_entry *e = &o->v[given++];

		o->late += e->time_ns < o->last_ns;
		if (e->time_ns > o->last_ns)
			o->last_ns = e->time_ns;
		r = f(arg, (const void *)(o->bytes + e->at), e->len);
	}
	kept = given ? keep_rest(o, given) : 0;
	return r < 0 ? r : kept;
}

void order_free(struct order *o)
{
	free(o->v);
	free(o->bytes);
	free(o->spare);
	*o = (struct order){0};
}
