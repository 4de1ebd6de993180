// SPDX-License-Identifier: GPL-2.0-or-later
#include "splice/policy.h"

static bool is_yes(enum splice_mode m)
{
	return m == SPLICE_ON || m == SPLICE_FORCED;
}

enum splice_mode splice_mode_of(const struct splice_words *w)
{
	if (w->service == SPLICE_OFF || w->client == SPLICE_OFF || w->server == SPLICE_OFF)
		return SPLICE_OFF;
	if (w->service != SPLICE_AUTO)
		return w->service;
	if (is_yes(w->client) && is_yes(w->server))
		return w->client == SPLICE_FORCED || w->server == SPLICE_FORCED ? SPLICE_FORCED
										: SPLICE_ON;
	return w->agent;
}

enum splice_reason splice_allowed(enum splice_mode mode, const struct gate_verdict *v)
{
	if (mode == SPLICE_OFF)
		return REASON_OFF;
	if (v->state == GATE_OLD)
		return REASON_KERNEL;
	if (v->state != GATE_KNOWN)
		return v->state == GATE_WAITS ? REASON_GATE_WAITS : REASON_GATE_BROKE;
	if (mode == SPLICE_AUTO)
		return v->same ? REASON_NONE : REASON_NOT_ASKED;
	if (!v->safe)
		return REASON_UNSAFE;
	return mode == SPLICE_ON && !v->fionread ? REASON_FIONREAD : REASON_NONE;
}
