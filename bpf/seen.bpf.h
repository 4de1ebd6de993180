/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Remembers who was refused (include/seen.h). BPF only. */
#ifndef AX_SEEN_BPF_H
#define AX_SEEN_BPF_H

#include "endpoint.bpf.h"
#include "maps.bpf.h"
#include "seen.h"
#include "verdict.bpf.h"

extern __u32 seen_any;	 /* 1: something was, since the agent has looked */
extern __u32 seen_added; /* entries that there were not before */
static const struct ax_seen seen_nothing;

/* Where, and why if the verdict does not say. */
#define SEEN(hook, why) ((__u32)(hook) | (__u32)(why) << 8)

static __always_inline __u32 seen_why(__u64 v, __u32 where, __u32 *rule)
{
	__u32 audit = VERDICT_AUDIT(v);

	*rule = 0;
	if (v & VERDICT_DENY) {
		*rule = VERDICT_RULE(v);
		return AX_SEEN_RULE;
	}
	if (v & VERDICT_LABELS)
		return AX_SEEN_LABELS;
	if (where >> 8)
		return where >> 8;
	if (!audit || (VERDICT_RULE(v) && VERDICT_RULE(v) < audit))
		return 0;
	*rule = audit;
	return AX_SEEN_AUDIT;
}

static __always_inline bool seen_is(const struct ax_seen *s, const struct ax_addr *from,
				    const struct ax_endpoint *to, __u32 rule, __u32 what)
{
	return addr_eq(&s->from, from) && addr_eq(&s->to.addr, &to->addr) &&
	       s->to.port_be == to->port_be && s->to.proto == to->proto && s->rule == rule &&
	       SEEN(s->hook, s->why) == what;
}

static __always_inline __u32 seen_set(const struct ax_addr *from, const struct ax_endpoint *to,
				      __u32 rule)
{
	__u64 h = to->addr.w[0] ^ to->addr.w[1] ^ to->addr.w[2] ^ from->w[0] ^ from->w[1] ^
		  from->w[2];

	/* Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4) */
	h = (h ^ to->addr.w[3]) * 0x9e3779b97f4a7c15ull;
	h = (h ^ from->w[3]) * 0x9e3779b97f4a7c15ull;
	h = (h ^ to->port_be ^ rule << 16) * 0x9e3779b97f4a7c15ull;
	return (h >> 32) % AX_SEEN_SETS * AX_SEEN_WAYS;
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
	struct ax_seen_key key = {.app = app};
	__u64 now = bpf_ktime_get_boot_ns(), oldest = -1ull;
	__u32 rule, why = seen_why(v, where, &rule), what, set, slot = 0;
	struct ax_seen *s;

	if (!from || !to || !why)
		return 0;
	if (!app) {
		struct ax_addr addr = *from;
		const struct ax_vip *vip = bpf_map_lookup_elem(&vips, &addr);

		if (vip && vip->kind == AX_VIP_APP)
			key.app = vip->id;
	}
	what = SEEN(where & 0xff, why);
	set = seen_set(from, to, rule);
	*(volatile __u32 *)&seen_any = 1;
	for (__u32 i = 0; i < AX_SEEN_WAYS; i++) {
		key.slot = set + i;
		s = bpf_map_lookup_elem(&seen, &key);
		if (s && seen_is(s, from, to, rule, what)) {
			s->last_ns = now;
			__sync_fetch_and_add(&s->count, 1);
			return 0;
		}
		if (oldest && (!s || s->last_ns < oldest)) {
			oldest = s ? s->last_ns : 0;
			slot = key.slot;
		}
	}
	key.slot = slot;
	s = seen_new(&key);
	if (!s)
		return 0;
	s->count = 0;
	s->first_ns = now;
	s->last_ns = now;
	s->from = *from;
	s->to = *to;
	s->rule = rule;
	s->why = why;
	s->hook = where & 0xff;
	*(volatile __u64 *)&s->count = 1;
	return 0;
}

#endif
