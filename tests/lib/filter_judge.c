// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/filter_judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "iface/iface.h"

#define RUN_MAX 3500 /* of what leaves; the kernel runs no frames of more than a page */

struct snapshot {
	struct xdp_stats stats;
	uint64_t maps; /* a hash of what else there is */
	unsigned long captures, triggers;
};

static uint64_t hash(uint64_t h, const void *data, size_t n)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

unsigned long ring_position(int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const unsigned long *p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	unsigned long r;

	assert_true(p != MAP_FAILED);
	r = *(const volatile unsigned long *)p;
	munmap((void *)(uintptr_t)p, page);
	return r;
}

static uint64_t hash_maps(void)
{
	static struct ax_slot slots[AX_SLOTS];
	static uint64_t limits[32768];
	static uint32_t keys[32768];
	LIBBPF_OPTS(bpf_map_batch_opts, locked, .elem_flags = BPF_F_LOCK);
	struct ax_source_limit_key key, next;
	uint32_t n = ARRAY_SIZE(limits), at = 0, m = AX_SLOTS;
	const void *from = NULL;
	uint64_t h = 0, stamp;

	/* -ENOENT: that were all */
	assert_true(bpf_map_lookup_batch(filter.maps.map[XDP_MAP_LIMITS], NULL, &at, keys, limits,
					 &n, NULL) == 0 ||
		    errno == ENOENT);
	h = hash(h, limits, n * sizeof(*limits));
	at = 0;
	assert_true(bpf_map_lookup_batch(filter.maps.map[XDP_MAP_SLOTS], NULL, &at, keys, slots, &m,
					 &locked) == 0 ||
		    errno == ENOENT);
	h = hash(h, slots, m * sizeof(*slots));
	for (; !bpf_map_get_next_key(filter.maps.map[XDP_MAP_SOURCE_LIMITS], from, &next);
	     from = &key) {
		key = next;
		h = hash(h, &key, sizeof(key));
		if (!bpf_map_lookup_elem(filter.maps.map[XDP_MAP_SOURCE_LIMITS], &key, &stamp))
			h = hash(h, &stamp, sizeof(stamp));
	}
	return h;
}

static struct snapshot snapshot_take(void)
{
	struct error e = {0};
	struct snapshot s;

	if (xdp_stats(filter.x, &s.stats, &e) < 0)
		fail_msg("%s", e.text);
	s.maps = hash_maps();
	s.captures = ring_position(filter.maps.map[XDP_MAP_CAPTURES]);
	s.triggers = ring_position(filter.maps.map[XDP_MAP_TRIGGERS]);
	return s;
}

#define autosnapshot CLEANUP(snapshot_free)

static void snapshot_free(struct snapshot *s)
{
	xdp_stats_free(&s->stats);
}

static void assert_no_trace(const char *spec, const struct snapshot *a)
{
	autosnapshot struct snapshot b = snapshot_take();

	for (size_t i = 0; i < b.stats.names.n; i++)
		if (memcmp(&a->stats.rules[i], &b.stats.rules[i], sizeof(*b.stats.rules)) != 0)
			fail_msg("%s: explaining it counted for %s", spec, b.stats.names.v[i]);
	for (int i = 0; i < AX_REASONS; i++)
		if (a->stats.reasons[i] != b.stats.reasons[i])
			fail_msg("%s: explaining it counted %s", spec, rule_reasons[i].name);
	if (a->maps != b.maps)
		fail_msg("%s: explaining it changed a limit or a slot", spec);
	if (a->captures != b.captures || a->triggers != b.triggers)
		fail_msg("%s: explaining it captured it", spec);
}

static const char *const decided_names[] = {"a rule", "a policy", "let through", "a balancer",
					    "an answer"};

static void check_explanation(const char *spec, const struct frame_bytes *f, const struct expect *x,
			      struct frame_bytes *out)
{
	autosnapshot struct snapshot before = snapshot_take();
	struct xdp_explanation r;
	struct error e = {0};

	if (xdp_explain(filter.x, f->b, f->len, &r, &e) < 0)
		fail_msg("%s: %s", spec, e.text);
	if (r.action != x->action || r.x.verdict != x->verdict)
		fail_msg("%s: explained as action %u, verdict %u, not %u, %u", spec, r.action,
			 r.x.verdict, x->action, x->verdict);
	if (r.x.decided != x->decided)
		fail_msg("%s: explained as decided by %s, not %s", spec, decided_names[r.x.decided],
			 decided_names[x->decided]);
	if (r.x.reason != x->reason)
		fail_msg("%s: explained with reason %s, not %s", spec,
			 rule_reasons[r.x.reason].name ? rule_reasons[r.x.reason].name : "none",
			 rule_reasons[x->reason].name ? rule_reasons[x->reason].name : "none");
	assert_int_equal(r.x.limited, x->limited);
	if (x->rule && !streq(r.rule, x->rule))
		fail_msg("%s: explained with rule %s, not %s", spec, r.rule, x->rule);
	if (x->quoted_rule && (!r.quoted_rule || !streq(r.quoted_rule, x->quoted_rule)))
		fail_msg("%s: explained as quoting %s, not %s", spec, r.quoted_rule,
			 x->quoted_rule);
	assert_true(r.out_len <= FRAME_MAX);
	memcpy(out->b, r.out, r.out_len);
	out->len = r.out_len;
	xdp_explanation_free(&r);
	assert_no_trace(spec, &before);
}

static void check_rules(const char *spec, const struct xdp_stats *a, const struct xdp_stats *b,
			const struct expect *x, size_t len)
{
	for (size_t i = 0; i < b->names.n; i++) {
		bool mine = x->rule && streq(b->names.v[i], x->rule);

		if (b->rules[i].packets - a->rules[i].packets != mine ||
		    b->rules[i].bytes - a->rules[i].bytes != (mine ? len : 0) ||
		    b->rules[i].limited - a->rules[i].limited != (mine && x->limited))
			fail_msg("%s: counted %d packets, %d bytes, %d limited for %s", spec,
				 (int)(b->rules[i].packets - a->rules[i].packets),
				 (int)(b->rules[i].bytes - a->rules[i].bytes),
				 (int)(b->rules[i].limited - a->rules[i].limited), b->names.v[i]);
	}
}

static void check_reasons(const char *spec, const struct xdp_stats *a, const struct xdp_stats *b,
			  const struct expect *x)
{
	for (int i = 1; i < AX_REASONS; i++)
		if (b->reasons[i] - a->reasons[i] !=
		    (i == (int)x->reason) + (uint64_t)(i == (int)x->also))
			fail_msg("%s: counted %s %d times", spec, rule_reasons[i].name,
				 (int)(b->reasons[i] - a->reasons[i]));
}

void judge_frame(const char *spec, const struct frame_bytes *f, const struct expect *x,
		 struct frame_bytes *out)
{
	struct frame_bytes explained;

	check_explanation(spec, f, x, &explained);
	{
		autosnapshot struct snapshot before = snapshot_take();
		uint32_t action = filter_run_frame(filter.g.prog, f, out);
		autosnapshot struct snapshot after = snapshot_take();

		if (action != x->action)
			fail_msg("%s: action %u, not %u", spec, action, x->action);
		check_rules(spec, &before.stats, &after.stats, x, f->len);
		check_reasons(spec, &before.stats, &after.stats, x);
	}
	assert_same_frame(spec, &explained, out);
}

/* Nor such without the whole header that the ethertype promises. */
static bool can_be_run(const struct frame_bytes *f)
{
	unsigned type = (unsigned)f->b[12] << 8 | f->b[13];

	if (filter.direction == DIRECTION_INGRESS)
		return true;
	return f->len <= RUN_MAX && (type != ETH_P_IP || f->len >= 14 + 20) &&
	       (type != ETH_P_IPV6 || f->len >= 14 + 40);
}

void judge(const char *spec, const struct expect *x)
{
	struct frame_bytes f, out;

	read_frame(spec, &f);
	if (!can_be_run(&f))
		return;
	judge_frame(spec, &f, x, &out);
	if (x->action == XDP_PASS || x->action == XDP_DROP)
		assert_same_frame(spec, &out, &f);
}

void judge_turns(const char *spec, const struct expect *x, const char *expected)
{
	struct frame_bytes f, out, want;

	read_frame(spec, &f);
	read_frame(expected, &want);
	judge_frame(spec, &f, x, &out);
	assert_same_frame(spec, &out, &want);
}
