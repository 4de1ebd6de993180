// SPDX-License-Identifier: GPL-2.0-or-later
#include "splice/pause.h"
#include "splice/streams.h"

#define VAIN_MAX 8

static unsigned doubled(unsigned ms, unsigned first, unsigned last)
{
	return !ms ? first : 2 * ms < last ? 2 * ms : last;
}

/* After the first look in vain it may still be too early to say. */
static unsigned when_told(const struct pauses *p)
{
	unsigned ms = PAUSE_FIRST_MS << (p->vain > 1 ? p->vain - 1 : 0);

	return ms < PAUSE_CHURN_MS ? ms : PAUSE_CHURN_MS;
}

static unsigned earlier(unsigned a, unsigned b)
{
	return !a || b < a ? b : a;
}

unsigned pause_after_look(struct pauses *p, const struct look_seen *s)
{
	unsigned next = 0;

	p->vain = !s->told_new || s->joined ? 0 : p->vain < VAIN_MAX ? p->vain + 1 : p->vain;
	p->open_ms =
		s->told_new ? when_told(p) : doubled(p->open_ms, PAUSE_FIRST_MS, PAUSE_LAST_MS);
	if (s->young)
		next = earlier(next, PAUSE_FIRST_MS);
	if (s->open)
		next = earlier(next, p->open_ms);
	if (s->streams)
		next = earlier(next, STREAMS_COUNT_MS);
	if (s->unread) {
		p->wake_ms = doubled(p->wake_ms, WAKE_FIRST_MS,
				     s->told_unread ? WAKE_LAST_MS : WAKE_QUIET_MS);
		next = earlier(next, p->wake_ms);
	} else if (!s->told_unread) {
		p->wake_ms = 0;
	}
	return next;
}

/* Where many come and go, it is told of at once. */
unsigned pause_when_new(struct pauses *p, bool churn)
{
	if (!churn)
		p->vain = 0;
	return when_told(p);
}

unsigned pause_when_unread(struct pauses *p)
{
	p->wake_ms = doubled(p->wake_ms, WAKE_FIRST_MS, WAKE_LAST_MS);
	return p->wake_ms;
}

unsigned pause_when_leaving(struct pauses *p)
{
	p->wake_ms = doubled(p->wake_ms, WAKE_FIRST_MS, PAUSE_LAST_MS);
	return p->wake_ms;
}
