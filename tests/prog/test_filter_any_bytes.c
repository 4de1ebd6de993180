// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* Any bytes through the loaded programs: there is always a verdict, each frame is counted once, and
 * explaining it says what happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include "iface/iface.h"
#include "tests/lib/filter.h"
#include "tests/lib/random.h"

#define TIMES	      100000 /* frames for each list */
#define EXPLAIN_EVERY 32

/* --- frames --- */

static const char *const seeds[] = {
	"udp 10.0.0.1:5 > 10.0.0.2:53 data 'hello'",
	"udp [fd00::1]:5 > [fd00::2]:53 data 'hello' len 40",
	"tcp 10.0.0.1:5 > 10.0.0.2:80 flags syn len 20",
	"tcp [fd00::1]:5 > [fd00::2]:443 flags ack len 100",
	"tcp 10.0.0.1:5 > 10.0.0.2:80 flags psh,ack len 1400",
	"tcp 10.0.0.1:5 > 10.0.0.2:80 | 46=80 54+010101010101010101010101 len",
	"icmp 10.0.0.1 > 10.0.0.2 len 30",
	"icmp6 fd00::1 > fd00::2 len 30",
	"icmp 10.0.0.9 > 10.0.0.2 type 3/4 quoting (udp 10.0.0.2:53 > 10.0.0.1:5)",
	"icmp 10.0.0.9 > 10.0.0.2 type 11 quoting (tcp 10.0.0.2:80 > 10.0.0.1:5) | 42=46 "
	"62+01010101 len",
	"icmp6 fd00::9 > fd00::2 type 2 quoting (tcp [fd00::2]:443 > [fd00::1]:5 len 20)",
	"icmp6 fd00::9 > fd00::2 type 1 quoting (udp [fd00::2]:53 > [fd00::1]:5) | 68=3c "
	"102+3c00000000000000 110+1100000000000000 len",
	"arp 10.0.0.1 > 10.0.0.2",
	"vlan 7 arp 10.0.0.1 > 10.0.0.2 reply",
	"nd fe80::1 > fe80::2",
	"icmp6 fe80::1 > ff02::16 type 143 | 20=00 54+3a00050200000000 len",
	"2 10.0.0.1 > 224.0.0.1 data hex:1164ee9b00000000 | 14=46 34+94040000 len",
	"vlan 7 udp 10.0.0.1:5 > 10.0.0.2:9",
	"vlan 7:88a8 vlan 8 tcp [fd00::1]:5 > [fd00::2]:9 len 10",
	"vlan 1:9100 vlan 2 vlan 3 vlan 4 vlan 5 vlan 6 vlan 7 vlan 8 udp 10.0.0.1:5 > 10.0.0.2:53",
	"vlan 1 vlan 2 vlan 3 vlan 4 vlan 5 vlan 6 vlan 7 vlan 8 vlan 9 udp 10.0.0.1:5 > "
	"10.0.0.2:53",
	"udp 10.0.0.1:5 > 10.0.0.2:53 frag first len 32",
	"udp 10.0.0.1 > 10.0.0.2 frag later data 'xxxxxxxxxxxxxxxx'",
	"tcp fd00::1 > fd00::2 frag later=8 data 'xxxxxxxxxxxxxxxx'",
	"tcp [fd00::1]:5 > [fd00::2]:80 frag first len 64",
	"udp 10.0.0.1:5 > 10.0.0.2:53 | 14=4f "
	"34+01010101010101010101010101010101010101010101010101010101010101010101010101010101 len",
	"udp [fd00::1]:5 > [fd00::2]:53 | 20=00 54+3c00000000000000 62+2b00000000000000 "
	"70+1102000000000000000000000000000000000000000000000000 len",
	"udp [fd00::1]:5 > [fd00::2]:53 | 20=33 "
	"54+110400000000000100000001aabbccddeeff001122334455 "
	"len",
	"udp 10.0.0.1:5 > 10.0.0.2:53 | 14+450000000000000040040000 26+0a0000090a00000a len",
	"gre 10.0.0.1 > 10.0.0.2 len 60",
	"132 fd00::1 > fd00::2 len 60",
	"udp 10.0.0.1:5 > 10.0.0.2:53 len 5000",
	"tcp [fd00::1]:5 > [fd00::2]:53 len 8900",
	"udp [fd00::1]:5 > [fd00::2]:9999 len 4200 | 20=3c 54=3cff 2102=11ff",
};
static struct frame_bytes *seed_frames;

static int read_seeds(void **state)
{
	seed_frames = calloc(ARRAY_SIZE(seeds), sizeof(*seed_frames));
	assert_non_null(seed_frames);
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		read_frame(seeds[i], &seed_frames[i]);
	return filter_setup(state);
}

static int drop_seeds(void **state)
{
	free(seed_frames);
	return filter_teardown(state);
}

static void any_frame(struct frame_bytes *f)
{
	static const uint16_t types[] = {ETH_P_IP,     ETH_P_IP,  ETH_P_IPV6,
					 ETH_P_IPV6,   ETH_P_ARP, ETH_P_8021Q,
					 ETH_P_8021AD, 0x9100,	  0x0800};
	uint16_t type = htons(types[random_number() % ARRAY_SIZE(types)]);

	f->len = 14 + random_number() % 120;
	for (size_t i = 0; i < f->len; i += 4) {
		uint32_t v = random_number();

		memcpy(f->b + i, &v, 4);
	}
	memcpy(f->b + 12, &type, 2);
	if (random_number() % 4) /* so that not all end at the version */
		f->b[14] = (uint8_t)(type == htons(ETH_P_IP) ? 0x40 | (5 + random_number() % 3)
							     : 0x60);
	if (random_number() % 4 == 0)
		fix_length(f);
}

static void put_tag(struct frame_bytes *f)
{
	static const uint16_t types[] = {ETH_P_8021Q, ETH_P_8021AD, 0x9100};
	uint16_t type = types[random_number() % ARRAY_SIZE(types)];
	const uint8_t tag[4] = {(uint8_t)(type >> 8), (uint8_t)type, 0,
				(uint8_t)(random_number() % 16)};

	put_in(f, 12, tag, sizeof(tag), true);
}

/* Bytes are changed where headers are, most of the time. */
static void changed_frame(struct frame_bytes *f)
{
	static const uint8_t likely[] = {0,  1,	   2,	 4,    5,    6,	   8,
					 17, 0x11, 0x2c, 0x3a, 0x45, 0x60, 0xff};
	size_t n;

	*f = (struct frame_bytes){.len = 0};
	n = random_number() % ARRAY_SIZE(seeds);
	/* the large ones take their time */
	if (seed_frames[n].len > 2000 && random_number() % 8)
		n = random_number() % 12;
	f->len = seed_frames[n].len;
	memcpy(f->b, seed_frames[n].b, f->len);
	if (random_number() % 16 == 0)
		put_tag(f);
	for (uint32_t i = random_number() % 5; i; i--) {
		size_t at = random_number() % (random_number() % 4 && f->len > 80 ? 80 : f->len);

		f->b[at] = random_number() % 2 ? likely[random_number() % sizeof(likely)]
					       : (uint8_t)random_number();
	}
	if (random_number() % 4 == 0) {
		f->len = 14 + random_number() % (f->len - 13);
		if (random_number() % 2 && f->len > 54)
			fix_length(f);
	} else if (random_number() % 8 == 0) {
		change_frame(f, "pad17");
	}
}

/* --- lists --- */

#define ALL_RULES                                                                               \
	"classes: {runt: rules, too-many-tags: rules, bad-version: rules, bad-header: rules,\n" \
	"  bad-length: rules, mapped-address: rules, too-many-headers: rules,\n"                \
	"  short-fragment: rules, short-l4: rules, bad-tcp: rules, bad-udp: rules,\n"           \
	"  split-header: rules, ip-options: rules, later-fragment: rules, tunnel: rules}\n"
#define FIELDS                                                                                \
	"rules:\n"                                                                            \
	"- {src: [10.0.0.0/8, 'fd00::/16'], dst: 10.0.0.2, proto: udp, sport: 5,\n"           \
	"   dport: [53, 9999], fragment: none, action: pass}\n"                               \
	"- {proto: tcp, flags: [syn, '!ack'], dport: 80, length: 0-200, action: drop}\n"      \
	"- {icmp: [3, 8], icmp6: [1, 2, echo-request], action: pass}\n"                       \
	"- {vlan: [none, 7, 9-4095], mac: '02:00:00:00:00:01', length: 100-, action: pass}\n" \
	"- {dst: 'fd00::2', fragment: [first, later], action: drop}\n"                        \
	"- {sport: 0-10000, length: 60-, action: drop}\n"

struct list {
	const char *name, *text;
	uint32_t action; /* that must have come, beside pass and drop; 0: none */
	bool limits;	 /* what is explained may be different a moment later */
};

static const struct list lists[] = {
	{"all fields, every class by the rules", ALL_RULES FIELDS, 0, false},
	{"all fields, every class by its default policy", FIELDS, 0, false},
	{"a deny list",
	 "default: drop\nrules: [{dport: [53, 80, 443], action: pass},\n"
	 "  {src: 10.0.0.66, action: drop}, {icmp: 8, action: pass, rate: '100pps,per=src/24'}]\n",
	 0, true},
	{"a deny list, every class by the rules",
	 "default: drop\n" ALL_RULES "rules: [{dport: [53, 80, 443], action: pass},\n"
	 "  {src: 10.0.0.66, action: drop}]\n",
	 0, false},
	{"reflect", ALL_RULES "rules: [{length: 0-, action: reflect}]\n", XDP_TX, false},
	{"redirect and rewrite",
	 ALL_RULES "rules: [{dst: 10.0.0.0/8, action: redirect " TARGET ", to: 192.0.2.1,\n"
		   "    to-port: 8053, smac: 02:00:00:00:00:09},\n"
		   "  {dst: 'fd00::/16', action: redirect " TARGET ", to: '2001:db8::1',\n"
		   "    checksum: recompute},\n"
		   "  {dport: 0-65535, action: redirect " TARGET ", to-port: 1},\n"
		   "  {action: redirect " TARGET ", to: 192.0.2.2}]\n",
	 XDP_REDIRECT, false},
	{"capture, log, slots and limits",
	 ALL_RULES "rules: [{proto: udp, action: pass, capture: [2048, slot=x, ring],\n"
		   "    rate: '1mbit,burst=100000'},\n"
		   "  {proto: tcp, action: drop, capture: [9216, frame], log: yes},\n"
		   "  {action: pass, capture: 64, sample: 3, rate: '10kpps,per=src'}]\n",
	 0, true},
};

/* --- the test --- */

static uint64_t decided_so_far(void)
{
	struct xdp_stats s;
	struct error e = {0};
	uint64_t sum = 0;

	if (xdp_stats(filter.x, &s, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < s.names.n; i++)
		sum += s.rules[i].packets;
	/* those that no rule was asked about, or that were let through in spite of the default */
	for (int i = 1; i < AX_REASON_POLICIES; i++)
		if (filter.g.layout.policy[i] != AX_POLICY_RULES)
			sum += s.reasons[i];
	xdp_stats_free(&s);
	return sum;
}

static void explain_too(const struct frame_bytes *f, uint32_t action, bool limits)
{
	struct xdp_explanation x;
	struct error e = {0};

	if (xdp_explain(filter.x, f->b, f->len, &x, &e) < 0)
		fail_msg("%s", e.text);
	if (x.action != action && !limits)
		fail_msg("explained as action %u, not %u", x.action, action);
	xdp_explanation_free(&x);
}

static int ignore(void *arg, const struct ax_capture *c, const uint8_t *data, const char *rule)
{
	(void)arg;
	(void)data;
	(void)rule;
	return c->captured > AX_CAPTURE_MAX;
}

static void test_list(void **state)
{
	static struct frame_bytes f, out;
	const struct list *list = *state;
	unsigned actions[XDP_REDIRECT + 1] = {0};
	struct error e = {0};

	filter_load_afresh(list->text);
	assert_int_equal(xdp_capture_open(filter.x, &e), 0);
	random_state = (uint64_t)(list - lists);
	for (int i = 0; i < TIMES; i++) {
		uint32_t action;

		if (random_number() % 3)
			changed_frame(&f);
		else
			any_frame(&f);
		action = filter_run_frame(filter.g.prog, &f, &out);
		if (action == XDP_ABORTED || action > XDP_REDIRECT)
			fail_msg("frame %d of %zu bytes: action %u", i, f.len, action);
		if (out.len != f.len)
			fail_msg("frame %d of %zu bytes has %zu now", i, f.len, out.len);
		if (action == XDP_PASS && memcmp(f.b, out.b, f.len) != 0)
			fail_msg("frame %d of %zu bytes passed and was changed", i, f.len);
		actions[action]++;
		if (i % EXPLAIN_EVERY == 0) {
			explain_too(&f, action, list->limits);
			assert_int_equal(xdp_capture_read(filter.x, ignore, NULL), 0);
		}
	}
	assert_int_equal(decided_so_far(), TIMES);
	/* else the frames were all of one kind */
	if (list->action)
		assert_true(actions[list->action] > TIMES / 4);
	else
		assert_true(actions[XDP_PASS] > TIMES / 50 && actions[XDP_DROP] > TIMES / 50);
}

int main(void)
{
	static struct CMUnitTest tests[ARRAY_SIZE(lists)];

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		tests[i] = (struct CMUnitTest){.name = lists[i].name,
					       .test_func = test_list,
					       .initial_state = (void *)(uintptr_t)&lists[i]};
	return cmocka_run_group_tests(tests, read_seeds, drop_seeds);
}
