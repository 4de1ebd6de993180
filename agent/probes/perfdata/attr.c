// SPDX-License-Identifier: GPL-2.0-or-later
/* Attributes: what was asked of the kernel, their ids and names. */
#include "probes/perfdata/priv.h"

uint64_t take_bits64(struct cursor *c)
{
	uint64_t v = take_u64(c), r = 0;

	if (!c->swap)
		return v;
	for (unsigned i = 0; i < 64; i++)
		r |= (v >> i & 1) << (63 - i);
	return r;
}

/* Older files have less of it: those fields are 0. */
void attr_read(struct cursor *c, struct perfdata_attr *ret)
{
	struct perf_event_attr *a = &ret->attr;

	a->type = take_u32(c);
	a->size = take_u32(c);
	a->config = take_u64(c);
	a->sample_period = take_u64(c);
	a->sample_type = take_u64(c);
	a->read_format = take_u64(c);
	ret->flags = take_bits64(c);
	a->wakeup_events = take_u32(c);
	a->bp_type = take_u32(c);
	a->config1 = take_u64(c);
	a->config2 = take_u64(c);
	a->branch_sample_type = take_u64(c);
	a->sample_regs_user = take_u64(c);
	a->sample_stack_user = take_u32(c);
	a->clockid = (int32_t)take_u32(c);
	a->sample_regs_intr = take_u64(c);
	a->aux_watermark = take_u32(c);
	a->sample_max_stack = take_u16(c);
	take_u16(c);
	a->aux_sample_size = take_u32(c);
	take_u32(c);
	a->sig_data = take_u64(c);
}

int attr_add(struct perfdata *p, struct cursor *c, size_t size, struct perfdata_attr **ret)
{
	const uint8_t *at = take(c, size);
	struct cursor own;
	struct perfdata_attr *v;

	if (!at || size < ATTR_MIN)
		return -EBADMSG;
	if (p->n_attrs >= ATTRS_MAX)
		return -E2BIG;
	v = realloc(p->attrs, (p->n_attrs + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	p->attrs = v;
	v += p->n_attrs++;
	*v = (struct perfdata_attr){0};
	own = cursor_of(p, at, size);
	attr_read(&own, v);
	*ret = v;
	return 0;
}

int attr_ids(struct perfdata *p, struct perfdata_attr *a, struct cursor *c, size_t n)
{
	struct id_of *all;

	if (!n)
		return 0;
	if (n > left(c) / sizeof(uint64_t))
		return -EBADMSG;
	if (n > IDS_MAX - p->n_ids)
		return -E2BIG;
	a->ids = calloc(n, sizeof(*a->ids));
	all = realloc(p->ids, (p->n_ids + n) * sizeof(*all));
	if (all)
		p->ids = all;
	if (!all || !a->ids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		a->ids[i] = take_u64(c);
		p->ids[p->n_ids++] = (struct id_of){a->ids[i], (uint32_t)(a - p->attrs)};
	}
	a->n_ids = n;
	p->sorted = false;
	return 0;
}

static int attr_name(struct perfdata_attr *a, const char *name, size_t len)
{
	char *copy = strndup(name, len);

	if (!copy)
		return -ENOMEM;
	free(a->name);
	a->name = copy;
	return 0;
}

void attrs_free(struct perfdata *p)
{
	for (size_t i = 0; i < p->n_attrs; i++) {
		free(p->attrs[i].ids);
		free(p->attrs[i].name);
	}
	free(p->attrs);
	free(p->ids);
}

static int by_id(const void *a, const void *b)
{
	const struct id_of *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

void attrs_sort(struct perfdata *p)
{
	if (!p->sorted && p->n_ids)
		qsort(p->ids, p->n_ids, sizeof(*p->ids), by_id);
	p->sorted = true;
}

static struct perfdata_attr *attr_of_id(const struct perfdata *p, uint64_t id)
{
	struct id_of key = {.id = id}, *found;

	if (!p->n_ids)
		return NULL;
	found = bsearch(&key, p->ids, p->n_ids, sizeof(*p->ids), by_id);
	return found ? &p->attrs[found->attr] : NULL;
}

/* Where the id stands in a sample, in words behind its header; -1: it has none. */
static int id_in_sample(uint64_t type)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		return 0;
	if (!(type & PERF_SAMPLE_ID))
		return -1;
	return !!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID) +
	       !!(type & PERF_SAMPLE_TIME) + !!(type & PERF_SAMPLE_ADDR);
}

/* And in the other events, in words from their end. */
static int id_at_end(uint64_t type)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		return 1;
	if (!(type & PERF_SAMPLE_ID))
		return -1;
	return 1 + !!(type & PERF_SAMPLE_CPU) + !!(type & PERF_SAMPLE_STREAM_ID);
}

const struct perfdata_attr *attr_of_event(const struct perfdata *p, const struct perfdata_event *ev)
{
	const struct perfdata_attr *first = p->attrs, *found;
	size_t body = ev->size - HEADER_SIZE;
	int word;
	uint64_t id;

	if (p->n_attrs < 2)
		return first;
	if (ev->type != PERF_RECORD_SAMPLE && !(first->flags & 1ull << 18)) /* sample_id_all */
		return first;
	/* perf makes attributes of one file have the id in one place */
	word = ev->type == PERF_RECORD_SAMPLE ? id_in_sample(first->attr.sample_type)
					      : id_at_end(first->attr.sample_type);
	if (word < 0)
		return first;
	if (body < 8 * (size_t)(word + (ev->type == PERF_RECORD_SAMPLE)))
		return NULL;
	id = perfdata_u64(p, ev->type == PERF_RECORD_SAMPLE
				     ? ev->data + HEADER_SIZE + 8 * (size_t)word
				     : ev->data + ev->size - 8 * (size_t)word);
	/* what perf itself made up has none */
	found = attr_of_id(p, id);
	return found || id ? found : first;
}

/* --- what the file says about them elsewhere --- */

int attr_names(struct perfdata *p, struct cursor *c)
{
	uint32_t n = take_u32(c), size = take_u32(c);

	attrs_sort(p);
	for (uint32_t i = 0; i < n && !c->bad; i++) {
		struct perfdata_attr *a = NULL;
		uint32_t ids, len;
		const uint8_t *name;

		take(c, size);
		ids = take_u32(c);
		len = take_u32(c);
		name = take(c, len);
		for (uint32_t j = 0; j < ids && !c->bad; j++) {
			uint64_t id = take_u64(c);

			a = a || c->bad ? a : attr_of_id(p, id);
		}
		/* without ids they are in the order of the attributes */
		if (!a && !ids && n == p->n_attrs)
			a = &p->attrs[i];
		if (a && name && !c->bad && attr_name(a, (const char *)name, len))
			return -ENOMEM;
	}
	return c->bad ? -EBADMSG : 0;
}

static int learn_attr(struct perfdata *p, struct cursor *c)
{
	struct cursor size_at = *c;
	struct perfdata_attr *a;
	uint32_t size;
	int r;

	take_u32(&size_at);
	size = take_u32(&size_at);
	r = attr_add(p, c, size ? size : ATTR_MIN, &a);
	return r < 0 ? r : attr_ids(p, a, c, left(c) / sizeof(uint64_t));
}

static int learn_name(struct perfdata *p, struct cursor *c)
{
	enum { UPDATE_NAME = 2 };
	uint64_t type = take_u64(c), id = take_u64(c);
	struct perfdata_attr *a = c->bad || type != UPDATE_NAME ? NULL : attr_of_id(p, id);

	return a ? attr_name(a, (const char *)c->p, left(c)) : 0;
}

int attr_learn(struct perfdata *p, const struct perfdata_event *ev)
{
	enum { EVENT_DESC = 12 };
	struct cursor c = cursor_of(p, ev->data + HEADER_SIZE, ev->size - HEADER_SIZE);
	int r = 0;

	switch (ev->type) {
	case PERFDATA_HEADER_ATTR:
		return p->h.pipe ? learn_attr(p, &c) : 0;
	case PERFDATA_EVENT_UPDATE:
		return learn_name(p, &c);
	case PERFDATA_HEADER_FEATURE:
		if (take_u64(&c) == EVENT_DESC)
			r = attr_names(p, &c);
		return r == -ENOMEM ? r : 0;
	default:
		return 0;
	}
}
