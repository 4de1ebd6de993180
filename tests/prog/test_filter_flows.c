// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* Flows that lists keep themselves: what
 * begins one, what answers it, and what nobody can pretend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tests/lib/filter.h"

/* A rule for each state, so that a packet's rule says its state; what begins flows passes. */
#define STATES                                                     \
	"track: own\ndefault: drop\n"                              \
	"rules: [{name: est, state: established, action: pass},\n" \
	"        {name: rel, state: related, action: pass},\n"     \
	"        {name: inv, state: invalid, action: drop},\n"     \
	"        {name: new, state: new, action: pass}]\n"
#define CLOSED                                                                \
	"track: own\ndefault: drop\n"                                         \
	"rules: [{name: est, state: [established, related], action: pass},\n" \
	"        {name: new, state: new, action: drop},\n"                    \
	"        {name: inv, state: invalid, action: drop}]\n"
/* What it lets through, it does so without asking. */
#define LOOSE                                                                                    \
	"track: own\nrules: [{name: all, proto: [tcp, udp], dport: [80, 4000], action: pass},\n" \
	"        {name: inv, state: invalid, action: drop}]\n"

/* Flows are gone with the last list. */
static void load_without_flows(const char *text)
{
	struct error e;

	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	xdp_unload(&filter.inst, IFNAME ":egress", &e);
	filter_load_afresh(text);
}

/* By which of this host's interfaces it comes in. */
enum side { HERE, THERE };

static unsigned side_index(enum side s)
{
	unsigned i = if_nametoindex(s == HERE ? IFNAME : TARGET);

	assert_true(i > 0);
	return i;
}

static void run(enum side side, const char *packet)
{
	struct frame_bytes f;
	autofree uint8_t *out = NULL;
	uint32_t action;
	size_t len;

	read_frame(packet, &f);
	if (filter.direction == DIRECTION_EGRESS) {
		struct __sk_buff skb = {.ingress_ifindex = side_index(side)};
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f.b, .data_size_in = (uint32_t)f.len,
			    .ctx_in = &skb, .ctx_size_in = sizeof(skb), .repeat = 1);

		assert_int_equal(bpf_prog_test_run_opts(filter.g.prog, &o), 0);
		return;
	}
	assert_int_equal(
		datapath_xdp_run(filter.g.prog, side_index(side), f.b, f.len, &action, &out, &len),
		0);
}

/* The rule that the packet counts for. */
static void comes(enum side side, const char *packet, const char *rule)
{
	struct ax_rule_count a = filter_rule_count(rule);

	run(side, packet);
	if (filter_rule_count(rule).packets != a.packets + 1)
		fail_msg("%s: not by rule %s", packet, rule);
}

/* Numbers of a TCP segment on IPv4. */
#define SEQ "38=" /* and 8 digits */
#define ACK "42="

#define C4	   "10.1.0.2:4000"
#define S4	   "10.2.0.2:80"
#define SYN4	   "tcp " C4 " > " S4 " flags syn | " SEQ "00000010"
#define SYN_ACK4   "tcp " S4 " > " C4 " flags syn,ack | " SEQ "00000064 " ACK "00000011"
#define OPEN4	   "tcp " C4 " > " S4 " flags ack | " SEQ "00000011 " ACK "00000065"
#define FROM_C4(f) "tcp " C4 " > " S4 " flags " f
#define FROM_S4(f) "tcp " S4 " > " C4 " flags " f

static void open_connection(void)
{
	comes(HERE, SYN4, "new");
	comes(THERE, SYN_ACK4, "est");
	comes(HERE, OPEN4, "est");
}

static void a_connection_is_followed(void **state)
{
	(void)state;
	load_without_flows(STATES);
	comes(THERE, SYN_ACK4, "inv");
	comes(HERE, FROM_C4("ack"), "inv");
	open_connection();
	comes(THERE, FROM_S4("ack,psh"), "est");
	comes(HERE, FROM_C4("ack,psh"), "est");
	comes(THERE, "tcp 10.2.0.2:81 > " C4 " flags ack", "inv");
	comes(THERE, "tcp 10.2.0.3:80 > " C4 " flags ack", "inv");
	comes(THERE, "udp " S4 " > " C4, "new");
	/* ends that are the same but swapped */
	comes(HERE, "tcp 10.1.0.2:80 > 10.2.0.2:4000 flags ack", "inv");
}

static void so_is_one_by_ipv6(void **state)
{
	(void)state;
	load_without_flows(STATES);
	comes(THERE, "tcp [fd01::2]:4000 > [fd00::2]:80 flags syn | 58=00000010", "new");
	comes(HERE, "tcp [fd00::2]:80 > [fd01::2]:4000 flags syn,ack | 58=ffffffff 62=00000011",
	      "est");
	comes(THERE, "tcp [fd01::2]:4000 > [fd00::2]:80 flags ack | 62=00000001", "inv");
	comes(THERE, "tcp [fd01::2]:4000 > [fd00::2]:80 flags ack | 62=00000000", "est");
	comes(HERE, "tcp [fd00::2]:80 > [fd01::2]:4000 flags ack", "est");
}

/* Who does not see what is answered cannot say what number it was. */
static void what_nobody_has_asked_for_opens_nothing(void **state)
{
	(void)state;
	load_without_flows(STATES);
	comes(HERE, SYN4, "new");
	comes(HERE, OPEN4, "inv"); /* not answered */
	comes(THERE, SYN_ACK4, "est");
	comes(HERE, "tcp " C4 " > " S4 " flags ack | " ACK "00000064", "inv");
	comes(HERE, "tcp " C4 " > " S4 " flags ack | " ACK "00000066", "inv");
	comes(HERE, FROM_C4("fin"), "inv");
	comes(HERE, SYN4, "new"); /* sent again: nothing is lost by that */
	comes(HERE, OPEN4, "est");
}

/* Who sends both ends' packets does so by one interface. */
static void an_answer_comes_by_another_way(void **state)
{
	(void)state;
	load_without_flows(STATES);
	comes(HERE, SYN4, "new");
	comes(HERE, SYN_ACK4, "inv");
	comes(HERE, OPEN4, "inv");
	/* a tag is another way */
	comes(HERE, "vlan 7 tcp " S4 " > " C4 " flags syn,ack", "est");
	comes(HERE, "udp " C4 " > " S4, "new");
	comes(HERE, "udp " S4 " > " C4, "new");
	comes(HERE, "udp " C4 " > " S4, "new");
	comes(THERE, "udp " S4 " > " C4, "est");
}

static void what_is_dropped_begins_nothing(void **state)
{
	(void)state;
	load_without_flows(CLOSED);
	comes(HERE, SYN4, "new");
	comes(THERE, SYN_ACK4, "inv");
	comes(HERE, "udp " C4 " > " S4, "new");
	comes(THERE, "udp " S4 " > " C4, "new");
	filter_load(STATES);
	comes(THERE, SYN_ACK4, "inv");
}

static void what_was_not_asked_for_is_followed_as_well(void **state)
{
	(void)state;
	load_without_flows(LOOSE);
	run(HERE, SYN4);
	run(THERE, SYN_ACK4);
	run(HERE, OPEN4);
	filter_load(CLOSED); /* and flows stay when lists change */
	comes(HERE, FROM_C4("ack"), "est");
	comes(THERE, FROM_S4("ack"), "est");
}

static void ends_are_seen(void **state)
{
	(void)state;
	load_without_flows(STATES);
	open_connection();
	comes(HERE, FROM_C4("fin,ack"), "est");
	comes(THERE, FROM_S4("fin,ack"), "est");
	comes(HERE, FROM_C4("ack"), "est"); /* the last one */
	/* the next one between the same ends is opened as the first was */
	comes(HERE, SYN4, "new");
	comes(THERE, SYN_ACK4, "est");
	comes(HERE, OPEN4, "est");
	comes(THERE, FROM_S4("rst,ack"), "est");
	comes(HERE, SYN4, "new");
	comes(THERE, FROM_S4("rst,ack"), "est"); /* refused */
}

static void echoes_and_datagrams_are_answered(void **state)
{
	(void)state;
	load_without_flows(STATES);
	/* the identifier is at 38, or 58 */
	comes(THERE, "icmp 10.2.0.2 > 10.1.0.2 type 0 | 38=1234", "new");
	comes(HERE, "icmp 10.1.0.2 > 10.2.0.2 | 38=1234", "new");
	comes(THERE, "icmp 10.2.0.2 > 10.1.0.2 type 0 | 38=1235", "new");
	comes(THERE, "icmp 10.2.0.2 > 10.1.0.2 type 0 | 38=1234", "est");
	comes(HERE, "icmp 10.1.0.2 > 10.2.0.2 | 38=1234", "est");
	comes(HERE, "icmp6 fd00::2 > fd01::2 | 58=1234", "new");
	comes(THERE, "icmp6 fd01::2 > fd00::2 type 129 | 58=1234", "est");
	comes(HERE, "udp [fd00::2]:5 > [fd01::2]:53", "new");
	comes(THERE, "udp [fd01::2]:53 > [fd00::2]:6", "new");
	comes(THERE, "udp [fd01::2]:53 > [fd00::2]:5", "est");
	comes(HERE, "udp [fd00::2]:5 > [fd01::2]:53", "est");
}

static void errors_are_about_flows(void **state)
{
	(void)state;
	load_without_flows(STATES);
	comes(THERE, "icmp 192.0.2.9 > 10.1.0.2 type 3/4 quoting (" FROM_C4("ack") ")", "inv");
	open_connection();
	comes(THERE, "icmp 192.0.2.9 > 10.1.0.2 type 3/4 quoting (tcp " C4 " > " S4 ")", "rel");
	comes(HERE, "icmp 10.1.0.1 > 10.2.0.2 type 3/4 quoting (tcp " S4 " > " C4 ")", "rel");
	/* to somebody else, and about another one */
	comes(THERE, "icmp 192.0.2.9 > 10.1.0.3 type 3/4 quoting (tcp " C4 " > " S4 ")", "inv");
	comes(THERE, "icmp 192.0.2.9 > 10.1.0.2 type 3/4 quoting (tcp 10.1.0.2:4001 > " S4 ")",
	      "inv");
	/* what has begun cannot be reached */
	comes(HERE, "tcp 10.1.0.2:4002 > " S4 " flags syn", "new");
	comes(THERE, "icmp 192.0.2.9 > 10.1.0.2 type 3/1 quoting (tcp 10.1.0.2:4002 > " S4 ")",
	      "rel");
	comes(HERE, "icmp 10.1.0.2 > 10.2.0.2 | 38=4321", "new");
	comes(THERE,
	      "icmp 192.0.2.9 > 10.1.0.2 type 11 quoting (icmp 10.1.0.2 > 10.2.0.2) | 66=4321",
	      "rel");
	comes(THERE,
	      "icmp 192.0.2.9 > 10.1.0.2 type 11 quoting (icmp 10.1.0.2 > 10.2.0.2) | 66=4322",
	      "new");
}

static void fragments_go_with_their_first(void **state)
{
	(void)state;
	load_without_flows(STATES);
	comes(HERE, "udp " C4 " > 10.2.0.2:53", "new");
	comes(THERE, "udp 10.2.0.2:53 > " C4 " frag first data 'xxxxxxxx' | 18=2222 sum", "est");
	comes(THERE, "udp 10.2.0.2 > 10.1.0.2 frag later data 'xxxxxxxx' | 18=2222 sum", "est");
	comes(THERE, "udp 10.2.0.2 > 10.1.0.2 frag later data 'xxxxxxxx' | 18=2223 sum", "new");
}

static void explaining_leaves_no_trace(void **state)
{
	struct xdp_explanation r;
	struct frame_bytes f;
	struct error e = {0};

	(void)state;
	load_without_flows(STATES);
	for (int i = 0; i < 2; i++) {
		static const char *const packets[] = {SYN4, "udp " C4 " > 10.2.0.2:53"};

		read_frame(packets[i], &f);
		assert_int_equal(xdp_explain(filter.x, f.b, f.len, &r, &e), 0);
		assert_string_equal(r.rule, "new");
		xdp_explanation_free(&r);
	}
	comes(THERE, SYN_ACK4, "inv");
	comes(THERE, "udp 10.2.0.2:53 > " C4, "new");
	comes(HERE, SYN4, "new");
	read_frame(SYN_ACK4, &f);
	assert_int_equal(xdp_explain(filter.x, f.b, f.len, &r, &e), 0);
	assert_string_equal(r.rule, "est");
	assert_int_equal(r.x.state, AX_STATE_ESTABLISHED);
	xdp_explanation_free(&r);
	comes(HERE, OPEN4, "inv");
}

static uint32_t entries(enum xdp_map m)
{
	struct ax_tracked_key key, next;
	const void *from = NULL;
	uint32_t n = 0;

	for (; !bpf_map_get_next_key(filter.maps.map[m], from, &next); from = &key, n++)
		key = next;
	return n;
}

/* Whatever a flood is of, it takes no connection's place; what is of nothing leaves no trace. */
static void a_flood_pushes_nothing_out(void **state)
{
	const uint32_t most = 40000;
	char packet[128];

	(void)state;
	load_without_flows(STATES);
	open_connection();
	comes(HERE, "udp " C4 " > 10.2.0.2:53", "new");
	comes(THERE, "udp 10.2.0.2:53 > " C4, "est");
	for (uint32_t i = 0; i < most; i++) {
		static const char *const kinds[] = {"tcp %s:%u > 10.2.0.2:80 flags syn",
						    "tcp %s:%u > 10.2.0.2:80 flags ack",
						    "udp %s:%u > 10.2.0.2:80"};
		char from[32];

		snprintf(from, sizeof(from), "172.16.%u.%u", i >> 8 & 255, i & 255);
		snprintf(packet, sizeof(packet), kinds[i % 3], from, 1024 + (i >> 16));
		run(HERE, packet);
	}
	assert_int_equal(entries(XDP_MAP_TRACKED_TCP), 1);
	assert_int_equal(entries(XDP_MAP_TRACKED_OTHER), 1);
	comes(HERE, FROM_C4("ack"), "est");
	comes(THERE, "udp 10.2.0.2:53 > " C4, "est");
}

#define KERNEL "track: kernel\nrules: [{name: inv, state: invalid, action: drop}]\n"
#define AUTO   "rules: [{name: inv, state: invalid, action: drop}]\n"

/* Unless it is told to, a list keeps none where nothing is forwarded, or connection tracking can be
 * asked. */
static void flows_are_kept_where_it_is_needed(void **state)
{
	bool needed = !datapath_xdp_can_ask_conntrack();

	(void)state;
	load_without_flows(AUTO);
	assert_int_equal(filter.g.layout.flows, needed ? AX_FLOWS_KEEP : AX_FLOWS_NONE);
	assert_int_equal(system("echo 0 >/proc/sys/net/ipv4/ip_forward"), 0);
	filter_load(AUTO);
	assert_int_equal(filter.g.layout.flows, AX_FLOWS_NONE);
	assert_false(xdp_lacks_states(filter.x));
	assert_int_equal(system("echo 1 >/proc/sys/net/ipv4/ip_forward"), 0);
	assert_int_equal(xdp_lacks_states(filter.x), needed);
	filter_load(KERNEL);
	assert_int_equal(filter.g.layout.flows, AX_FLOWS_NONE);
	assert_false(xdp_lacks_states(filter.x));
	filter_load(STATES);
	assert_int_equal(filter.g.layout.flows, AX_FLOWS_KEEP);
	assert_false(filter.g.layout.conntrack);
	filter_load("track: own\nrules: [{name: a, ttl: 9, action: drop}]\n");
	assert_int_equal(filter.g.layout.flows, AX_FLOWS_NONE);
}

/* What leaves begins flows, too; that of this host's own connections does not, which have sockets.
 */
static void what_leaves_begins_flows(void **state)
{
	struct __sk_buff own = {0};
	struct frame_bytes f;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f.b, .ctx_in = &own,
		    .ctx_size_in = sizeof(own), .repeat = 1);

	(void)state;
	load_without_flows(STATES);
	open_connection();
	comes(HERE, "udp " C4 " > 10.2.0.2:53", "new");
	comes(THERE, "udp 10.2.0.2:53 > " C4, "est");
	comes(THERE, "icmp 192.0.2.9 > 10.1.0.2 type 3/4 quoting (tcp " C4 " > " S4 ")", "rel");
	read_frame("tcp 10.1.0.1:4000 > " S4 " flags syn", &f);
	o.data_size_in = (uint32_t)f.len;
	assert_int_equal(bpf_prog_test_run_opts(filter.g.prog, &o), 0);
	comes(THERE, "tcp " S4 " > 10.1.0.1:4000 flags syn,ack", "inv");
	read_frame("udp 10.1.0.1:4000 > 10.2.0.2:53", &f);
	o.data_size_in = (uint32_t)f.len;
	assert_int_equal(bpf_prog_test_run_opts(filter.g.prog, &o), 0);
	comes(THERE, "udp 10.2.0.2:53 > 10.1.0.1:4000", "est");
	/* and the interface's other list sees the answers */
	filter_to_ingress(NULL);
	filter_load_afresh(STATES);
	comes(THERE, FROM_S4("ack"), "est");
	filter_to_egress(NULL);
	filter_reopen();
}

static int setup(void **state)
{
	return filter_setup(state) || system("echo 1 >/proc/sys/net/ipv4/ip_forward") ? -1 : 0;
}

#define BOTH(f) \
	cmocka_unit_test_setup(f, filter_to_ingress), cmocka_unit_test_setup(f, filter_to_egress)
#define ONE(f) cmocka_unit_test_setup(f, filter_to_ingress)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		BOTH(a_connection_is_followed),
		BOTH(so_is_one_by_ipv6),
		BOTH(what_nobody_has_asked_for_opens_nothing),
		ONE(an_answer_comes_by_another_way),
		BOTH(what_is_dropped_begins_nothing),
		BOTH(what_was_not_asked_for_is_followed_as_well),
		BOTH(ends_are_seen),
		BOTH(echoes_and_datagrams_are_answered),
		BOTH(errors_are_about_flows),
		BOTH(fragments_go_with_their_first),
		BOTH(explaining_leaves_no_trace),
		ONE(a_flood_pushes_nothing_out),
		BOTH(flows_are_kept_where_it_is_needed),
		cmocka_unit_test_setup(what_leaves_begins_flows, filter_to_egress),
	};

	return cmocka_run_group_tests(tests, setup, filter_teardown);
}
