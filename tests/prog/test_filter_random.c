// SPDX-License-Identifier: GPL-2.0-or-later
// timeout: 300
// beside others
/*
 * Random rule lists, loaded into the kernel on an interface as anybody's are, and packets that are
 * run through the loaded program: the rule that it names is held against the plain meaning of the
 * list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/if_ether.h>
#include <net/if.h>

#include "packet/text.h"
#include "tests/lib/carry_name.h"
#include "tests/lib/rule_random.h"
#include "tests/lib/instance.h"
#include "tests/lib/quick.h"
#include "net/netlink.h"
#include "iface/iface.h"

#define IFNAME	      "lo"
#define EGRESS	      "lo:egress"
#define LISTS	      150
#define LISTS_QUICK   30 /* in `make check-quick` */
#define PACKETS	      60
#define FRAME_LONGEST 3000 /* what the kernel runs without jumbo frames, and then some */

static struct instance inst;

/* --- lists that a user could write --- */

static void one_value(struct condition *c, uint32_t value)
{
	condition_free(c);
	rnd_one_number(c, value);
}

/* Conditions of which one excludes the other are refused, so few random rules would be left. */
static void make_consistent(struct rnd *rnd, struct rule *r)
{
	bool ports = match_has(r, AX_FIELD_SPORT) || match_has(r, AX_FIELD_DPORT);
	bool flags = match_has(r, AX_FIELD_TCP_FLAGS), icmp;

	if (ports || flags)
		condition_free(&r->in[AX_FIELD_ICMP]);
	icmp = match_has(r, AX_FIELD_ICMP);
	if (icmp)
		condition_free(&r->in[AX_FIELD_NAME]);
	if (ports || flags || icmp || match_has(r, AX_FIELD_PAYLOAD) || match_has(r, AX_FIELD_NAME))
		condition_free(&r->in[AX_FIELD_FRAGMENT]);
	if (icmp)
		condition_free(&r->in[AX_FIELD_PROTO]);
	else if (flags)
		one_value(&r->in[AX_FIELD_PROTO], 6);
	else if (ports)
		one_value(&r->in[AX_FIELD_PROTO], rnd_one_in(rnd, 2) ? 6 : 17);
}

/* The rule as it comes back from its own text; false: nobody could have written it. */
static bool through_text(struct rule *r)
{
	autofree char *line = rule_format(r);
	const char *words[512]; /* a payload alone has forty */
	struct rule back;
	char *save = NULL;
	size_t n = 0;

	assert_non_null(line);
	for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(n < ARRAY_SIZE(words));
		words[n++] = w;
	}
	if (rule_parse(words, n, &back, NULL) < 0)
		return false;
	rule_free(r);
	*r = back;
	return true;
}

#define ALL_FIELDS ((1u << AX_FIELDS) - 1)

/* With marks among the fields it is for what leaves. */
static void make_list(struct rnd *rnd, uint32_t fields, struct rule_list *l)
{
	char name[32];

	rnd_list(rnd, fields, false, l);
	for (size_t i = 0; i < l->n_rules;) {
		struct rule *r = &l->rules[i];

		make_consistent(rnd, r);
		snprintf(name, sizeof(name), "r%zu", i);
		r->name = strdup(name);
		if (through_text(r))
			i++;
		else
			rule_list_remove(l, i);
	}
	/* what is odd about a packet is another test's business */
	memset(l->policy, AX_POLICY_RULES, sizeof(l->policy));
}

/* --- packets --- */

/* Protocols that are IPv6 extension headers have others behind them. */
static bool is_extension(uint8_t proto)
{
	static const uint8_t all[] = {0, 43, 44, 50, 51, 59, 60, 135, 139, 140, 253, 254};

	return memchr(all, proto, sizeof(all));
}

/* The name's bytes are the payload; without one no bytes are to look like one. */
static void make_name(struct match_packet *p)
{
	uint8_t carried[CARRIED_MAX];
	size_t n;

	if (p->name_kind == AX_NAME_DNS)
		*(p->dport % 2 ? &p->dport : &p->sport) = 53;
	if (!p->name_kind) {
		if (p->payload_len > 2)
			p->payload[2] |= 0x78; /* no query of DNS */
		return;
	}
	n = carry_name((enum ax_name_kind)p->name_kind, p->name, carried);
	assert_true(n <= sizeof(p->payload));
	memset(p->payload, 0, sizeof(p->payload));
	memcpy(p->payload, carried, n);
	p->payload_len = n;
}

/* What cannot be built is replaced by what can. */
static void make_real(struct match_packet *p)
{
	make_name(p);
	if (!p->v4 && (addr_is_v4(&p->src) || addr_is_v4(&p->dst)))
		p->src.b[0] = p->dst.b[0] = 0xfd;
	if (!p->v4 && is_extension(p->proto))
		p->proto = 47;
}

/* The frame, and its length in *p. Its payload makes it as long as the packet was to be. */
static uint8_t *build(struct match_packet *m)
{
	struct packet p;
	uint8_t *frame;
	size_t len, want = m->len;

	match_built(m, &p);
	p.data = calloc(1, FRAME_LONGEST);
	assert_non_null(p.data);
	memcpy(p.data, m->payload, m->payload_len);
	p.len = m->payload_len;
	assert_int_equal(packet_build(&p, &frame, &len), 0);
	if (m->ip && len < want && want <= FRAME_LONGEST) {
		free(frame);
		p.len += want - len;
		assert_int_equal(packet_build(&p, &frame, &len), 0);
	}
	m->payload_len = p.len < sizeof(m->payload) ? p.len : sizeof(m->payload);
	packet_free(&p);
	m->len = (uint32_t)len;
	return frame;
}

static void check_packet(struct xdp *x, const struct rule_list *l, struct rnd *r)
{
	struct xdp_explanation got;
	struct xdp_assumed as = {0};
	struct match_packet p;
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	const char *want;
	size_t rule;

	rnd_packet(r, l, &p);
	make_real(&p);
	frame = build(&p);
	rule = match_first(l, &p);
	want = rule < l->n_rules ? l->rules[rule].name : "default";
	/* there are no such flows here: that states are asked for is test_filter_state's */
	as.state = p.ip ? (enum ax_state)p.state : AX_STATE_NONE;
	as.minute = p.minute;
	as.mark = p.mark;
	if (xdp_explain_as(x, frame, p.len, &as, &got, &e) < 0)
		fail_msg("%s", e.text);
	if (strcmp(got.rule, want) != 0) {
		autofree char *line = packet_line(frame, p.len, true);

		fail_msg("%s: rule %s, expected %s", line, got.rule, want);
	}
	xdp_explanation_free(&got);
}

static struct xdp *load(const struct rule_list *l)
{
	const char *place = l->direction == DIRECTION_EGRESS ? EGRESS : IFNAME;
	const struct xdp_load_options options = {0};
	struct error e = {0};
	struct xdp *x = NULL;

	if (xdp_apply(&inst, place, l, &options, &e) < 0 || xdp_open(&inst, place, &x, &e) < 0)
		fail_msg("%s", e.text);
	return x;
}

static void match_as_they_say(uint32_t fields)
{
	unsigned modes[4] = {0};

	for (uint64_t i = 0; i < quick_or(LISTS_QUICK, LISTS); i++) {
		CLEANUP(rule_list_free) struct rule_list l = {0};
		CLEANUP(xdp_closep) struct xdp *x = NULL;
		struct rnd r = {i * 15485863 + 5};
		struct xdp_status status;
		struct error e = {0};

		make_list(&r, fields, &l);
		x = load(&l);
		if (xdp_status(x, &status, &e) < 0)
			fail_msg("%s", e.text);
		modes[status.match]++;
		xdp_status_free(&status);
		for (unsigned k = 0; k < PACKETS; k++)
			check_packet(x, &l, &r);
	}
	for (int i = 0; i < 4; i++) /* or nothing was tested */
		assert_true(modes[i] >= 2);
}

static void loaded_lists_match_as_they_say(void **state)
{
	(void)state;
	match_as_they_say(ALL_FIELDS & ~(1u << AX_FIELD_MARK));
}

static void lists_for_what_leaves_match_as_they_say(void **state)
{
	(void)state;
	match_as_they_say(ALL_FIELDS);
}

/* As many rules as there may be, of few different values, so that their rows fit anywhere. */
static void the_longest_list_matches_to_its_end(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	struct rnd r = {4};

	(void)state;
	rule_list_init(&l);
	memset(l.policy, AX_POLICY_RULES, sizeof(l.policy));
	l.rules = rnd_alloc(AX_XDP_RULES_MAX, sizeof(*l.rules));
	for (; l.n_rules < AX_XDP_RULES_MAX; l.n_rules++) {
		struct rule *to = &l.rules[l.n_rules];
		char name[16];

		snprintf(name, sizeof(name), "r%u", (unsigned)l.n_rules);
		to->name = strdup(name);
		to->verdict = AX_VERDICT_DROP;
		one_value(&to->in[AX_FIELD_SPORT], rnd_below(&r, 800));
		one_value(&to->in[AX_FIELD_DPORT], rnd_below(&r, 800));
	}
	x = load(&l);
	for (unsigned k = 0; k < 500; k++)
		check_packet(x, &l, &r);
}

static void the_deepest_tables_are_searched(void **state)
{
	CLEANUP(rule_list_free) struct rule_list l;
	struct rule rule = {.name = strdup("in"), .verdict = AX_VERDICT_DROP};
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	struct rnd r = {6};

	(void)state;
	rule_list_init(&l);
	l.sets = rnd_alloc(1, sizeof(*l.sets));
	l.n_sets = 1;
	l.sets->name = strdup("dense");
	dense_set(l.sets);
	rnd_name(&rule.in[AX_FIELD_SRC].sets, "dense");
	assert_int_equal(rule_list_insert(&l, 0, &rule), 0);
	x = load(&l);
	for (unsigned i = 0; i < 2000; i++) {
		struct match_packet p = {
			.ip = true, .proto = 6, .has_l4 = true, .vlan = AX_VLAN_NONE, .mac = {2}};
		autofree uint8_t *frame = NULL;
		struct xdp_explanation got;
		struct error e = {0};
		bool in;

		p.src = dense_pick(&r, &in);
		p.dst = p.src;
		p.v4 = addr_is_v4(&p.src);
		frame = build(&p);
		if (xdp_explain(x, frame, p.len, &got, &e) < 0)
			fail_msg("%s", e.text);
		assert_string_equal(got.rule, in ? "in" : "default");
		xdp_explanation_free(&got);
	}
}

static int setup(void **state)
{
	char cgroup[4096];
	struct nl *nl;
	int r;

	(void)state;
	if (own_namespaces() || own_instance(&inst, cgroup) || nl_open(&nl))
		return -1;
	r = nl_link_set_up(nl, if_nametoindex(IFNAME));
	nl_close(nl);
	return r;
}

static int teardown(void **state)
{
	struct error e;

	(void)state;
	xdp_unload(&inst, IFNAME, &e);
	xdp_unload(&inst, EGRESS, &e);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaded_lists_match_as_they_say),
		cmocka_unit_test(lists_for_what_leaves_match_as_they_say),
		cmocka_unit_test(the_longest_list_matches_to_its_end),
		cmocka_unit_test(the_deepest_tables_are_searched),
	};

	return cmocka_run_group_tests_name("match in the kernel", tests, setup, teardown);
}
