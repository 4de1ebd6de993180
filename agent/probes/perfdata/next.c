// SPDX-License-Identifier: GPL-2.0-or-later
/* One event after the other, those in compressed ones too. */
#include "probes/perfdata/priv.h"

#define PACKED_MAX UINT16_MAX

static int cut_off(const struct perfdata *p, struct error *e)
{
	return error_set(e, -EBADMSG, "%.200s is cut off: it ends in the event at 0x%llx", p->path,
			 (unsigned long long)p->source.offset);
}

static int failed(const struct perfdata *p, struct error *e, int r)
{
	return error_set(e, r, "%.200s cannot be read: %s", p->path, strerror(-r));
}

static void set_event(const struct perfdata *p, const uint8_t *data, struct perfdata_event *ret)
{
	ret->type = perfdata_u32(p, data);
	ret->misc = perfdata_u16(p, data + 4);
	ret->size = perfdata_u16(p, data + 6);
	ret->data = data;
}

/* --- what follows an event --- */

static uint64_t payload_of(const struct perfdata *p, const struct perfdata_event *ev)
{
	if (ev->type == PERFDATA_AUXTRACE && ev->size >= HEADER_SIZE + 8)
		return perfdata_u64(p, ev->data + HEADER_SIZE);
	if (ev->type == PERFDATA_TRACING_DATA && ev->size >= HEADER_SIZE + 4)
		return perfdata_u32(p, ev->data + HEADER_SIZE);
	return 0;
}

int perfdata_payload(struct perfdata *p, void *buf, size_t max, size_t *n, struct error *e)
{
	struct source *s = &p->source;
	size_t some;
	int r;

	*n = 0;
	if (!p->payload)
		return 0;
	r = source_need(s, 1);
	if (r < 0)
		return failed(p, e, r);
	some = s->n - s->at;
	if (some > p->payload)
		some = p->payload;
	if (s->offset >= p->data_end)
		some = 0;
	else if (some > p->data_end - s->offset)
		some = p->data_end - s->offset;
	if (!some)
		return cut_off(p, e);
	if (some > max)
		some = max;
	memcpy(buf, s->buf + s->at, some);
	source_take(s, some);
	p->payload -= some;
	*n = some;
	return 0;
}

/* What nobody asked for. */
static int skip_payload(struct perfdata *p, struct error *e)
{
	struct source *s = &p->source;

	if (p->payload && s->regular && p->payload > s->n - s->at) {
		uint64_t end = p->data_end < s->size ? p->data_end : s->size;

		if (s->offset > end || p->payload > end - s->offset)
			return cut_off(p, e);
		source_seek(s, s->offset + p->payload);
		p->payload = 0;
	}
	while (p->payload) {
		uint8_t ignored[4096];
		size_t n;
		int r = perfdata_payload(p, ignored, sizeof(ignored), &n, e);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- compressed events --- */

static int begin_packed(struct perfdata *p, const struct perfdata_event *ev, struct error *e)
{
	size_t len = ev->size - HEADER_SIZE, skip = HEADER_SIZE;

	if (ev->type == PERFDATA_COMPRESSED2) {
		uint64_t real = len >= 8 ? perfdata_u64(p, ev->data + HEADER_SIZE) : UINT64_MAX;

		if (real > len - 8)
			return error_set(e, -EBADMSG,
					 "%.200s: the compressed event at 0x%llx is shorter than "
					 "it says",
					 p->path, (unsigned long long)ev->offset);
		len = real;
		skip += 8;
	}
	if (!p->packed)
		p->packed = malloc(PACKED_MAX);
	if (!p->packed)
		return failed(p, e, -ENOMEM);
	memcpy(p->packed, ev->data + skip, len);
	p->packed_at = ev->offset;
	return unpack_give(&p->unpack, p->packed, len, e);
}

static bool may_be_packed(uint32_t type)
{
	return type != PERFDATA_COMPRESSED && type != PERFDATA_COMPRESSED2 &&
	       type != PERFDATA_AUXTRACE && type != PERFDATA_TRACING_DATA;
}

/* 1, or 0: more has to come first. */
static int next_packed(struct perfdata *p, struct perfdata_event *ret, struct error *e)
{
	struct error own = {0};
	const uint8_t *data;
	int r = unpack_need(p->unpack, HEADER_SIZE, &data, &own);

	if (r == 1) {
		set_event(p, data, ret);
		if (ret->size < HEADER_SIZE || !may_be_packed(ret->type))
			r = error_set(&own, -EBADMSG, "no event is in it");
		else
			r = unpack_need(p->unpack, ret->size, &data, &own);
	}
	if (r < 0)
		return error_set(e, r, "%.200s: the compressed event at 0x%llx cannot be read: %s",
				 p->path, (unsigned long long)p->packed_at, own.text);
	if (r == 0)
		return 0;
	ret->data = data;
	ret->offset = p->packed_at;
	ret->unpacked = true;
	ret->payload = 0;
	unpack_take(p->unpack, ret->size);
	return 1;
}

/* --- the whole --- */

static int next_of_file(struct perfdata *p, struct perfdata_event *ret, struct error *e)
{
	struct source *s = &p->source;
	int r;

	if (s->offset >= p->data_end)
		return 0;
	r = source_need(s, HEADER_SIZE);
	if (r == 0 && s->n == s->at && p->data_end >= INT64_MAX)
		return 0; /* nobody said where it ends */
	if (r <= 0)
		return r < 0 ? failed(p, e, r) : cut_off(p, e);
	set_event(p, s->buf + s->at, ret);
	if (ret->size < HEADER_SIZE)
		return error_set(e, -EBADMSG,
				 "%.200s: the event at 0x%llx cannot be: its size is %u", p->path,
				 (unsigned long long)s->offset, ret->size);
	if (ret->size > p->data_end - s->offset)
		return cut_off(p, e);
	r = source_need(s, ret->size);
	if (r <= 0)
		return r < 0 ? failed(p, e, r) : cut_off(p, e);
	ret->data = s->buf + s->at;
	ret->offset = s->offset;
	ret->unpacked = false;
	ret->payload = p->payload = payload_of(p, ret);
	source_take(s, ret->size);
	return 1;
}

int perfdata_next(struct perfdata *p, struct perfdata_event *ret, struct error *e)
{
	int r = skip_payload(p, e);

	if (r < 0)
		return r;
	r = p->unpack ? next_packed(p, ret, e) : 0;
	if (r == 0) {
		r = next_of_file(p, ret, e);
		if (r == 0 && unpack_left(p->unpack))
			return error_set(e, -EBADMSG,
					 "%.200s: the last of its compressed events is cut off",
					 p->path);
	}
	if (r <= 0)
		return r;
	if (ret->type == PERFDATA_COMPRESSED || ret->type == PERFDATA_COMPRESSED2) {
		r = begin_packed(p, ret, e);
		return r < 0 ? r : 1;
	}
	/* many attributes may come one behind the other: not after each */
	if (ret->type != PERFDATA_HEADER_ATTR)
		attrs_sort(p);
	r = attr_learn(p, ret);
	if (r == -EBADMSG || r == -E2BIG)
		return error_set(e, r, "%.200s: the attribute at 0x%llx cannot be read", p->path,
				 (unsigned long long)ret->offset);
	return r < 0 ? failed(p, e, r) : 1;
}
