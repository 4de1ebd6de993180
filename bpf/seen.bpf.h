/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Remembers who was refused (include/seen.h). BPF only. */
#ifndef AX_SEEN_BPF_H
#define AX_SEEN_BPF_H

#include "endpoint.bpf.h"
#include "maps.bpf.h"
#include "seen.h"
#include "verdict.bpf.h"

extern __u64 seen_last;	 /* when something was */
extern __u32 seen_added; /* entries that there were not before */
static const struct ax_seen seen_nothing;

/* Where, and why if the verdict does not say. */
#define SEEN(hook, why) ((__u32)(hook) | (__u32)(why) << 8)

/* By what it is the same in the next set of rules, where it may have another number. */
static __noinline __u64 seen_rule_id(__u64 v, __u32 rule)
{
	__u32 i = (v & VERDICT_SET ? AX_RULES_MAX : 0) + rule - 1;
	const struct ax_rule_mark *m;

	if (!rule)
		return 0;
	m = bpf_map_lookup_elem(&rule_marks, &i);
	return m ? m->id : 0;
}

static __always_inline __u32 seen_why(__u64 v, __u32 where, __u64 *rule)
{
	__u32 audit = VERDICT_AUDIT(v);

	*rule = 0;
	if (v & VERDICT_DENY) {
		*rule = seen_rule_id(v, VERDICT_RULE(v));
		return AX_SEEN_RULE;
	}
	if (v & VERDICT_LABELS)
		return AX_SEEN_LABELS;
	if (where >> 8)
		return where >> 8;
	if (!audit || (VERDICT_RULE(v) && VERDICT_RULE(v) < audit))
		return 0;
	*rule = seen_rule_id(v, audit);
	return AX_SEEN_AUDIT;
}

static __always_inline bool seen_is(const struct ax_seen *s, const struct ax_addr *from,
				    const struct ax_endpoint *to, __u64 rule, __u32 what)
{
	return addr_eq(&s->from, from) && addr_eq(&s->to.addr, &to->addr) &&
	       s->to.port_be == to->port_be && s->to.proto == to->proto &&
	       AX_SEEN_RULE_ID(s) == rule && SEEN(s->hook, s->why) == what;
}

/* A search through the ways of a set. */
struct seen_search {
	struct ax_seen_key key; /* of the way that is looked at */
	__u32 what;
	__u32 slot; /* of the one that was seen longest ago, which is given up */
	__u64 rule;
	__u64 oldest, now; /* ns since boot */
};

/* Whether it stands there: it is counted then. A global function: the verifier looks at it once,
 * and not for each way and all that the ways before may have been. */
__weak __noinline int seen_again(struct seen_search *w, const struct ax_addr *from,
				 const struct ax_endpoint *to)
{
	struct ax_seen_key key; /* keys are on the stack to Linux 6.1 */
	struct ax_seen *s;

	if (!w || !from || !to)
		return false;
	key = w->key;
	s = bpf_map_lookup_elem(&seen, &key);
	if (s && seen_is(s, from, to, w->rule, w->what)) {
		s->last_ns = w->now;
		__sync_fetch_and_add(&s->count, 1);
		return true;
	}
	if (w->oldest && (!s || s->last_ns < w->oldest)) {
		w->oldest = s ? s->last_ns : 0;
		w->slot = key.slot;
	}
	return false;
}

/* (Frames of their own: the stack is small where this is asked.) */
static __noinline __u32 seen_set(const struct ax_addr *from, const struct ax_endpoint *to,
				 __u64 rule)
{
	__u64 h = to->addr.w[0] ^ to->addr.w[1] ^ to->addr.w[2] ^ from->w[0] ^ from->w[1] ^
		  from->w[2];

	/* Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4) */
	h = (h ^ to->addr.w[3]) * 0x9e3779b97f4a7c15ull;
	h = (h ^ from->w[3]) * 0x9e3779b97f4a7c15ull;
	h = (h ^ to->port_be ^ rule) * 0x9e3779b97f4a7c15ull;
	return (h >> 32) % AX_SEEN_SETS * AX_SEEN_WAYS;
}

/* Whose entries are to be his who has that address: of one app; 0: of the world. */
static __noinline __u32 seen_app(const struct ax_addr *from)
{
	struct ax_addr addr = *from; /* keys are on the stack to Linux 6.1 */
	const struct ax_vip *vip = bpf_map_lookup_elem(&vips, &addr);

	return vip && vip->kind == AX_VIP_APP ? vip->id : 0;
}

/* The entry that is to be its own; NULL: there is no room. */
static __always_inline struct ax_seen *seen_new(struct ax_seen_key *key)
{
	struct ax_seen *s = bpf_map_lookup_elem(&seen, key);

	if (s)
		return s;
	bpf_map_update_elem(&seen, key, &seen_nothing, BPF_NOEXIST);
	__sync_fetch_and_add(&seen_added, 1);
	return bpf_map_lookup_elem(&seen, key);
}

/*
 * `v`: the verdict on `from`, who asks for `to`; where: SEEN(); app: who asks, 0: whoever has the
 * address. What was let pass is not remembered, but if a rule on trial would have refused it.
 * A global function: the verifier looks at it once.
 */
__weak __noinline int saw(const struct ax_addr *from, const struct ax_endpoint *to, __u64 v,
			  __u32 where, __u32 app)
{
	struct seen_search w = {.key.app = app, .oldest = -1ull, .now = bpf_ktime_get_boot_ns()};
	__u32 why = seen_why(v, where, &w.rule), set;
	struct ax_seen *s;

	if (!from || !to || !why)
		return 0;
	if (!app)
		w.key.app = seen_app(from);
	w.what = SEEN(where & 0xff, why);
	set = seen_set(from, to, w.rule);
	for (__u32 i = 0; i < AX_SEEN_WAYS; i++) {
		w.key.slot = set + i;
		if (!seen_again(&w, from, to))
			continue;
		*(volatile __u64 *)&seen_last = w.now; /* when it is counted: the agent looks */
		return 0;
	}
	w.key.slot = w.slot;
	s = seen_new(&w.key);
	if (!s)
		return 0;
	s->count = 0;
	s->first_ns = w.now;
	s->last_ns = w.now;
	s->from = *from;
	s->to = *to;
	s->rule_low = (__u32)w.rule;
	s->rule_high = w.rule >> 32;
	s->why = why;
	s->hook = where & 0xff;
	*(volatile __u64 *)&s->count = 1;
	*(volatile __u64 *)&seen_last = w.now;
	return 0;
}

#endif
