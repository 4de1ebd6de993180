// SPDX-License-Identifier: GPL-2.0-or-later
#include "splice/streams.h"

static bool is_small(const struct ax_splice_size *s)
{
	return s->bytes < s->messages * STREAMS_MESSAGE_MIN;
}

enum stream_size streams_size_of(const struct ax_splice_size *a, const struct ax_splice_size *b)
{
	bool a_tells = a->messages >= STREAMS_MESSAGES_MIN;
	bool b_tells = b->messages >= STREAMS_MESSAGES_MIN;

	if ((a_tells && is_small(a)) || (b_tells && is_small(b)))
		return STREAM_SMALL;
	return a_tells || b_tells ? STREAM_LARGE : STREAM_UNKNOWN;
}

bool streams_is_due(const struct decision *d, uint64_t now_ns)
{
	const uint64_t ms = (now_ns - d->stream_ns) / 1000000;

	switch (d->stream) {
	case STREAM_UNKNOWN:
		return !d->stream_ns || ms >= STREAMS_AGAIN_MS;
	case STREAM_SMALL:
		return ms >= STREAMS_SMALL_MS;
	default:
		return false;
	}
}
