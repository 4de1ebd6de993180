// SPDX-License-Identifier: GPL-2.0-or-later
#include <netinet/in.h>

#include "splice/gate_tries.h"

#define VARIANTS     2	 /* blocking, non-blocking */
#define QUIET_MS     250 /* TCP takes half of it on a machine with nothing else to do */
#define SLOWNESS_MAX 4	 /* the first time that something is tried again; then twice that */

/* --- what is tried --- */

static void add(struct gate_tries *t, const struct behaviour *b, bool nonblock, int family)
{
	if (t->n == GATE_TRIED_MAX || (nonblock && b->flags & BLOCKING_ONLY))
		return;
	t->of[t->n++] = (struct gate_tried){.behaviour = b,
					    .nonblock = nonblock,
					    .family = family,
					    .differed = {true, true, true}};
}

/* Half of them over IPv6, whose members have functions of their own in the kernel, made of the same
 * parts; but both of what splicing cannot do without. */
void gate_tries_all(bool ipv6, struct gate_tries *ret)
{
	ret->n = 0;
	ret->slow = false;
	for (size_t i = 0; i < gate_behaviours(); i++)
		for (unsigned v = 0; v < VARIANTS; v++) {
			const struct behaviour *b = gate_behaviour(i);
			bool first6 = ipv6 && (i + v) % 2;

			add(ret, b, v, first6 ? AF_INET6 : AF_INET);
			if (ipv6 && b->flags & (NEEDED | IS_FIONREAD))
				add(ret, b, v, first6 ? AF_INET : AF_INET6);
		}
}

/* --- what differs --- */

static const enum gate_mode mode_of[GATE_PARTS] = {GATE_TCP, GATE_MEMBER, GATE_REDIRECTED,
						   GATE_TCP};

bool gate_tried_wanted(const struct gate_tried *t, enum gate_part part)
{
	return t->differed[mode_of[part]];
}

/* What hangs by TCP, or could not even begin, has shown nothing. */
static bool shows_nothing(const char *tcp)
{
	return strstr(tcp, "hangs") || strstr(tcp, "no p");
}

static bool differs(const struct gate_tried *t, enum gate_part part, bool again)
{
	const char *tcp = t->words[PART_TCP];

	return !streq(tcp, t->words[part]) || shows_nothing(tcp) ||
	       (again && !streq(tcp, t->words[PART_TCP_AGAIN]));
}

/* Returns whether anything is still taken to differ. */
static bool judge_once(struct gate_tries *t, bool again)
{
	bool any = false;

	for (size_t i = 0; i < t->n; i++) {
		struct gate_tried *one = &t->of[i];

		for (enum gate_part p = PART_MEMBER; p <= PART_REDIRECTED; p++)
			one->differed[mode_of[p]] &= differs(one, p, again);
		one->differed[GATE_TCP] =
			one->differed[GATE_MEMBER] || one->differed[GATE_REDIRECTED];
		any |= one->differed[GATE_TCP];
	}
	return any;
}

static bool is_wanted(const struct gate_tries *t, enum gate_part part)
{
	for (size_t i = 0; i < t->n; i++)
		if (gate_tried_wanted(&t->of[i], part))
			return true;
	return false;
}

int gate_tries_judge(struct gate_tries *t,
		     int (*run)(void *arg, struct gate_tries *t, enum gate_part part, unsigned nth),
		     void *arg)
{
	bool any = true;

	for (unsigned nth = 0; any && nth < (t->slow ? GATE_TRIES_SLOW : GATE_TRIES); nth++) {
		for (enum gate_part p = 0; p < (t->slow ? GATE_PARTS : PART_TCP_AGAIN); p++) {
			int r = is_wanted(t, p) ? run(arg, t, p, nth) : 0;

			if (r)
				return r;
		}
		any = judge_once(t, t->slow);
	}
	return 0;
}

static void add_lines(const struct gate_tries *t, enum gate_part part, struct gate_result *ret)
{
	for (size_t i = 0; i < t->n && ret->n < GATE_LINES_MAX; i++) {
		const struct gate_tried *one = &t->of[i];
		struct gate_line *l = &ret->lines[ret->n];
		/* the one of the two by which it differs */
		bool again = streq(one->words[PART_TCP], one->words[part]) &&
			     one->words[PART_TCP_AGAIN][0];
		enum gate_part tcp = again ? PART_TCP_AGAIN : PART_TCP;

		if (!one->differed[mode_of[part]])
			continue;
		*l = (struct gate_line){.behaviour = one->behaviour,
					.mode = mode_of[part],
					.nonblock = one->nonblock,
					.ipv6 = one->family == AF_INET6};
		memcpy(l->tcp, one->words[tcp], sizeof(l->tcp));
		memcpy(l->seen, one->words[part], sizeof(l->seen));
		ret->n++;
	}
}

void gate_tries_result(const struct gate_tries *t, struct gate_result *ret)
{
	ret->n = 0;
	add_lines(t, PART_MEMBER, ret);
	add_lines(t, PART_REDIRECTED, ret);
}

/* --- how long it may take --- */

unsigned gate_slowness(int tcp_ms, unsigned nth)
{
	unsigned slow = tcp_ms > 0 ? (unsigned)tcp_ms / QUIET_MS : 0;

	if (!nth || !slow)
		return 1;
	slow = slow < SLOWNESS_MAX ? slow + 1 : SLOWNESS_MAX;
	return slow << (nth - 1);
}
