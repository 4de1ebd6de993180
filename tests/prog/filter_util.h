/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the filter's tests: a rule list on a veth of a namespace of the test's own, and frames that
 * are run through the loaded program as if they had come in. Each is explained first: that must
 * say what then happens, and leave no trace.
 *
 * A frame is written as
 *
 *	PACKET [| CHANGE...]
 *
 * PACKET as in packet_text.h, or "hex ..."; CHANGE, from left to right:
 *
 *	N=HEX	the bytes from offset N on are these
 *	N+HEX	these bytes are put in at offset N
 *	cutN	it ends after N bytes
 *	padN	N bytes of zero follow
 *	len	the IP header at offset 14 says the length that the frame has
 *	sum	and its checksum is right (IPv4)
 */
#ifndef AX_TESTS_FILTER_UTIL_H
#define AX_TESTS_FILTER_UTIL_H

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "config/config.h"
#include "config/rule_file.h"
#include "datapath/xdp.h"
#include "instance_util.h"
#include "packet/text.h"

#define IFNAME	  "xf0" /* the rules' */
#define TARGET	  "xt0" /* where they redirect to */
#define FRAME_MAX 16384

static struct {
	struct instance inst;
	struct xdp *x;
	struct datapath_xdp maps;
	struct generation g;
	char dir[256];
} w;

/* --- setting up --- */

static inline int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return getenv("AX_TEST_VERBOSE") && level != LIBBPF_DEBUG ? vfprintf(stderr, fmt, ap) : 0;
}

static inline int setup(void **state)
{
	char cgroup[4096];

	(void)state;
	datapath_xdp_init(&w.maps);
	w.g = (struct generation){.prog = -1, .arena = -1};
	libbpf_set_print(quiet);
	if (own_namespaces() || own_instance(&w.inst, cgroup))
		return -1;
	/* nobody speaks there but the test */
	return system("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 && "
		      "ip link add " IFNAME " type veth peer name xf1 && "
		      "ip link add " TARGET " type veth peer name xt1 && ip link set lo up && "
		      "for i in xf0 xf1 xt0 xt1; do ip link set $i up || exit 1; done")
		       ? -1
		       : 0;
}

static inline void forget(void)
{
	xdp_closep(&w.x);
	w.x = NULL;
	generation_close(&w.g);
	datapath_xdp_close(&w.maps);
}

static inline int teardown(void **state)
{
	struct error e = {0};
	char path[128];

	(void)state;
	forget();
	xdp_unload(&w.inst, IFNAME, &e);
	snprintf(path, sizeof(path), "%s/xdp-%s.capture", w.inst.run_dir, IFNAME);
	unlink(path);
	snprintf(path, sizeof(path), "%s/xdp-%s.lock", w.inst.run_dir, IFNAME);
	unlink(path);
	rmdir(w.inst.run_dir);
	return 0;
}

/* Looks at what is loaded again. */
static inline void reopen(void)
{
	struct error e = {0};

	forget();
	if (xdp_open(&w.inst, IFNAME, &w.x, &e) < 0 ||
	    datapath_xdp_dir(&w.inst, IFNAME, false, w.dir, sizeof(w.dir), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(datapath_xdp_open(w.dir, &w.maps), 0);
	assert_int_equal(generation_get(&w.maps, AX_JUMP_CURRENT, &w.g), 0);
}

static inline struct rule_list read_list(const char *text)
{
	struct config_errors errs;
	struct rule_list l;

	if (rule_file_parse(text, strlen(text), &l, &errs) != 0) {
		config_errors_print(&errs, "text", stderr);
		config_errors_free(&errs);
		fail_msg("refused");
	}
	config_errors_free(&errs);
	return l;
}

static inline int try_load(const char *text, const struct xdp_load_options *o, struct error *e)
{
	struct rule_list l = read_list(text);
	int r;

	*e = (struct error){0};
	r = xdp_apply(&w.inst, IFNAME, &l, o, e);
	rule_list_free(&l);
	return r;
}

/* Puts a list there, in the former one's place if there is one. */
static inline void load(const char *text)
{
	/* what only a receiver of redirected packets would miss is not looked at here */
	const struct xdp_load_options o = {.force = true};
	struct error e;

	if (try_load(text, &o, &e) < 0)
		fail_msg("%s", e.text);
	reopen();
}

/* The same, unless it is what this put there last. */
static inline void load_once(const char *text)
{
	static char *last;

	if (w.x && last && streq(last, text))
		return;
	load(text);
	free(last);
	last = strdup(text);
	assert_non_null(last);
}

/* Everything anew: no counts, no limits. */
static inline void load_afresh(const char *text)
{
	struct error e;

	forget();
	xdp_unload(&w.inst, IFNAME, &e);
	load(text);
}

/* --- frames --- */

struct frame_bytes {
	size_t len;
	uint16_t pad; /* so that IP headers are aligned */
	uint8_t b[FRAME_MAX];
};

static inline void put_in(struct frame_bytes *f, size_t at, const uint8_t *hex, size_t n,
			  bool insert)
{
	if (at > f->len || (!insert && at + n > f->len) || f->len + n > FRAME_MAX)
		fail_msg("offset %zu is not in the frame", at);
	if (insert) {
		memmove(f->b + at + n, f->b + at, f->len - at);
		f->len += n;
	}
	memcpy(f->b + at, hex, n);
}

static inline void put_be16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void fix_length(struct frame_bytes *f)
{
	if (f->b[14] >> 4 == 4)
		put_be16(f->b + 16, f->len - 14);
	else
		put_be16(f->b + 18, f->len - 54);
}

static inline void fix_sum(struct frame_bytes *f)
{
	size_t header = (size_t)(f->b[14] & 15) * 4;
	uint32_t sum = 0;

	put_be16(f->b + 24, 0);
	for (size_t i = 14; i < 14 + header; i += 2)
		sum += (uint32_t)f->b[i] << 8 | f->b[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(f->b + 24, ~((sum & 0xffff) + (sum >> 16)) & 0xffff);
}

static inline void change_frame(struct frame_bytes *f, const char *word)
{
	struct error e = {0};
	char *rest;

	if (streq(word, "len")) {
		fix_length(f);
	} else if (streq(word, "sum")) {
		fix_sum(f);
	} else if (starts_with(word, "cut")) {
		size_t n = strtoul(word + 3, NULL, 10);

		assert_true(n <= f->len);
		f->len = n;
	} else if (starts_with(word, "pad")) {
		size_t n = strtoul(word + 3, NULL, 10);

		assert_true(f->len + n <= FRAME_MAX);
		memset(f->b + f->len, 0, n);
		f->len += n;
	} else {
		size_t at = strtoul(word, &rest, 10), n = 0;
		autofree uint8_t *hex = NULL;

		if ((*rest != '=' && *rest != '+') || packet_parse_hex(rest + 1, &hex, &n, &e) < 0)
			fail_msg("change '%s' of a frame: %s", word, e.text);
		put_in(f, at, hex, n, *rest == '+');
	}
}

static inline void read_frame(const char *spec, struct frame_bytes *f)
{
	autofree char *text = strdup(spec);
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	char *changes, *word, *save;
	size_t len;
	int r;

	assert_non_null(text);
	changes = strchr(text, '|');
	if (changes)
		*changes++ = '\0';
	r = starts_with(text, "hex ") ? packet_parse_hex(text + 4, &frame, &len, &e)
				      : packet_text_parse(text, &frame, &len, &e);
	if (r < 0)
		fail_msg("%s: %s", spec, e.text);
	assert_true(len <= FRAME_MAX);
	memcpy(f->b, frame, len);
	f->len = len;
	for (word = changes ? strtok_r(changes, " ", &save) : NULL; word;
	     word = strtok_r(NULL, " ", &save))
		change_frame(f, word);
}

/* --- what is in the kernel --- */

struct snapshot {
	struct xdp_stats stats;
	uint64_t maps; /* a hash of what else there is */
	unsigned long captures, triggers;
};

static inline uint64_t hash(uint64_t h, const void *data, size_t n)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

/* How many bytes were written to a ring so far. */
static inline unsigned long ring_position(int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const unsigned long *p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	unsigned long r;

	assert_true(p != MAP_FAILED);
	r = *(const volatile unsigned long *)p;
	munmap((void *)(uintptr_t)p, page);
	return r;
}

static inline uint64_t hash_maps(void)
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
	assert_true(bpf_map_lookup_batch(w.maps.map[XDP_MAP_LIMITS], NULL, &at, keys, limits, &n,
					 NULL) == 0 ||
		    errno == ENOENT);
	h = hash(h, limits, n * sizeof(*limits));
	at = 0;
	assert_true(bpf_map_lookup_batch(w.maps.map[XDP_MAP_SLOTS], NULL, &at, keys, slots, &m,
					 &locked) == 0 ||
		    errno == ENOENT);
	h = hash(h, slots, m * sizeof(*slots));
	for (; !bpf_map_get_next_key(w.maps.map[XDP_MAP_SOURCE_LIMITS], from, &next); from = &key) {
		key = next;
		h = hash(h, &key, sizeof(key));
		if (!bpf_map_lookup_elem(w.maps.map[XDP_MAP_SOURCE_LIMITS], &key, &stamp))
			h = hash(h, &stamp, sizeof(stamp));
	}
	return h;
}

static inline struct snapshot snapshot_take(void)
{
	struct error e = {0};
	struct snapshot s;

	if (xdp_stats(w.x, &s.stats, &e) < 0)
		fail_msg("%s", e.text);
	s.maps = hash_maps();
	s.captures = ring_position(w.maps.map[XDP_MAP_CAPTURES]);
	s.triggers = ring_position(w.maps.map[XDP_MAP_TRIGGERS]);
	return s;
}
#define autosnapshot CLEANUP(snapshot_free)
static inline void snapshot_free(struct snapshot *s)
{
	xdp_stats_free(&s->stats);
}

static inline void assert_no_trace(const char *spec, const struct snapshot *a)
{
	autosnapshot struct snapshot b = snapshot_take();

	for (size_t i = 0; i < b.stats.names.n; i++)
		if (memcmp(&a->stats.rules[i], &b.stats.rules[i], sizeof(*b.stats.rules)) != 0)
			fail_msg("%s: explaining it counted for %s", spec, b.stats.names.v[i]);
	for (int i = 0; i < AX_REASONS; i++)
		if (a->stats.reasons[i] != b.stats.reasons[i])
			fail_msg("%s: explaining it counted %s", spec, ax_reason_names[i]);
	if (a->maps != b.maps)
		fail_msg("%s: explaining it changed a limit or a slot", spec);
	if (a->captures != b.captures || a->triggers != b.triggers)
		fail_msg("%s: explaining it captured it", spec);
}

static inline struct ax_rule_count rule_count(const char *name)
{
	struct ax_rule_count r;
	struct xdp_stats s;
	struct error e = {0};
	size_t i;

	if (xdp_stats(w.x, &s, &e) < 0)
		fail_msg("%s", e.text);
	for (i = 0; i < s.names.n && !streq(s.names.v[i], name); i++)
		continue;
	if (i == s.names.n)
		fail_msg("there is no rule %s", name);
	r = s.rules[i];
	xdp_stats_free(&s);
	return r;
}

static inline uint64_t reason_count(enum ax_reason reason)
{
	struct xdp_stats s;
	struct error e = {0};
	uint64_t r;

	if (xdp_stats(w.x, &s, &e) < 0)
		fail_msg("%s", e.text);
	r = s.reasons[reason];
	xdp_stats_free(&s);
	return r;
}

/* --- running --- */

static inline uint32_t run_on(int prog, const struct frame_bytes *in, struct frame_bytes *out)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->b, .data_size_in = (uint32_t)in->len,
		    .data_out = out ? out->b : NULL, .data_size_out = out ? FRAME_MAX : 0,
		    .repeat = 1);
	int r = bpf_prog_test_run_opts(prog, &o);

	if (r < 0)
		fail_msg("a frame of %zu bytes: %s", in->len, strerror(-r));
	if (out)
		out->len = o.data_size_out;
	return o.retval;
}

/* The action that a frame gets from the loaded list, nothing else looked at. */
static inline uint32_t run(const char *spec)
{
	struct frame_bytes f;

	read_frame(spec, &f);
	return run_on(w.g.prog, &f, NULL);
}

/* What is to happen to a frame. */
struct expect {
	uint32_t action;
	enum ax_decided decided;
	const char *rule;      /* whose counter it moves, NULL: none */
	enum ax_reason reason; /* which is told, and counted */
	enum ax_reason also;   /* another one that is counted */
	enum ax_verdict verdict;
	const char *quoted_rule; /* NULL: not looked at */
	bool limited;
};

#define BY(a, r)                                                          \
	{                                                                 \
		.action = XDP_##a, .verdict = AX_VERDICT_##a, .rule = (r) \
	}
#define BY_DROP(r) BY(DROP, r)
#define BY_PASS(r) BY(PASS, r)
/* by a rule too, but odd */
#define ODD(a, r, why)                                                                     \
	{                                                                                  \
		.action = XDP_##a, .verdict = AX_VERDICT_##a, .rule = (r), .reason = (why) \
	}
#define POLICY(a, why)                                                                      \
	{                                                                                   \
		.action = XDP_##a, .verdict = AX_VERDICT_##a, .decided = AX_DECIDED_POLICY, \
		.reason = (why)                                                             \
	}
#define LET_THROUGH(why)                                                                           \
	{                                                                                          \
		.action = XDP_PASS, .verdict = AX_VERDICT_PASS, .decided = AX_DECIDED_LET_THROUGH, \
		.reason = (why)                                                                    \
	}

static const char *const decided_names[] = {"a rule", "a policy", "let through", "a balancer",
					    "an answer"};

static inline void check_explanation(const char *spec, const struct frame_bytes *f,
				     const struct expect *x, struct frame_bytes *out)
{
	autosnapshot struct snapshot before = snapshot_take();
	struct xdp_explanation r;
	struct error e = {0};

	if (xdp_explain(w.x, f->b, f->len, &r, &e) < 0)
		fail_msg("%s: %s", spec, e.text);
	if (r.action != x->action || r.x.verdict != x->verdict)
		fail_msg("%s: explained as action %u, verdict %u, not %u, %u", spec, r.action,
			 r.x.verdict, x->action, x->verdict);
	if (r.x.decided != x->decided)
		fail_msg("%s: explained as decided by %s, not %s", spec, decided_names[r.x.decided],
			 decided_names[x->decided]);
	if (r.x.reason != x->reason)
		fail_msg("%s: explained with reason %s, not %s", spec,
			 ax_reason_names[r.x.reason] ? ax_reason_names[r.x.reason] : "none",
			 ax_reason_names[x->reason] ? ax_reason_names[x->reason] : "none");
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

static inline void check_rules(const char *spec, const struct xdp_stats *a,
			       const struct xdp_stats *b, const struct expect *x, size_t len)
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

static inline void check_reasons(const char *spec, const struct xdp_stats *a,
				 const struct xdp_stats *b, const struct expect *x)
{
	for (int i = 1; i < AX_REASONS; i++)
		if (b->reasons[i] - a->reasons[i] !=
		    (i == (int)x->reason) + (uint64_t)(i == (int)x->also))
			fail_msg("%s: counted %s %d times", spec, ax_reason_names[i],
				 (int)(b->reasons[i] - a->reasons[i]));
}

static inline void assert_same_frame(const char *spec, const struct frame_bytes *f,
				     const struct frame_bytes *expected)
{
	size_t at = 0;

	while (at < f->len && at < expected->len && f->b[at] == expected->b[at])
		at++;
	if (at == f->len && at == expected->len)
		return;
	for (size_t i = 0; i < f->len && i < 160; i++)
		print_error("%02x%s", f->b[i], i % 16 == 15 ? "\n" : " ");
	fail_msg("%s: %zu bytes, not %zu, byte %zu is %02x, not %02x", spec, f->len, expected->len,
		 at, at < f->len ? f->b[at] : 0, at < expected->len ? expected->b[at] : 0);
}

/* Explains it and runs it: all as expected, and nothing more. */
static inline void judge_frame(const char *spec, const struct frame_bytes *f,
			       const struct expect *x, struct frame_bytes *out)
{
	struct frame_bytes explained;
	uint32_t action;

	check_explanation(spec, f, x, &explained);
	{
		autosnapshot struct snapshot before = snapshot_take(), after = {0};

		action = run_on(w.g.prog, f, out);
		after = snapshot_take();
		if (action != x->action)
			fail_msg("%s: action %u, not %u", spec, action, x->action);
		check_rules(spec, &before.stats, &after.stats, x, f->len);
		check_reasons(spec, &before.stats, &after.stats, x);
	}
	assert_same_frame(spec, &explained, out);
}

static inline void judge(const char *spec, const struct expect *x)
{
	struct frame_bytes f, out;

	read_frame(spec, &f);
	judge_frame(spec, &f, x, &out);
	if (x->action == XDP_PASS || x->action == XDP_DROP)
		assert_same_frame(spec, &out, &f);
}

/* It goes out as `expected`. */
static inline void judge_turns(const char *spec, const struct expect *x, const char *expected)
{
	struct frame_bytes f, out, want;

	read_frame(spec, &f);
	read_frame(expected, &want);
	judge_frame(spec, &f, x, &out);
	assert_same_frame(spec, &out, &want);
}

/* --- any bytes --- */

static uint64_t random_state;

static inline uint32_t random_number(void)
{
	/* splitmix64, public domain: https://prng.di.unimi.it/splitmix64.c */
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(z ^ z >> 31);
}

#endif
