// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* The balancer: who gets a packet, how it gets there in a tunnel, and what happens when it cannot.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/if.h> /* before linux/icmp.h, which brings the kernel's form of it */
#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "iface/iface.h"
#include "packet/text.h"
#include "tests/lib/balance.h"
#include "tests/lib/checksums.h"
#include "tests/lib/rule_lists.h"

#define FOUR                                                                                \
	"[10.9.0.11, 10.9.0.12, 10.9.0.13, 10.9.0.14, 'fd09::11', 'fd09::12', 'fd09::13', " \
	"'fd09::14']"
#define RULE		     "rules: [{name: web, dst: '10.0.0.100,fd00::100', action: balance web}]\n"
#define LIST(mode, backends) "balancers: {web: {mode: " mode ", backends: " backends "}}\n" RULE

static uint8_t *frame_of(const char *text, size_t *len)
{
	struct error e = {0};
	uint8_t *frame;

	if (packet_text_parse(text, &frame, len, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return frame;
}

/* The packet that was sent is inside, having passed a router. */
static void assert_inside(const struct result *r, const char *text, size_t l3, size_t by)
{
	size_t len;
	autofree uint8_t *sent = frame_of(text, &len);
	uint8_t *inner = sent + l3;

	assert_int_equal(r->len, len + by);
	assert_true(ip_sums_right(r->frame + l3 + by, r->len - l3 - by));
	if (inner[0] >> 4 == 4) {
		inner[8]--;
		memcpy(inner + 10, r->frame + l3 + by + 10, 2); /* was looked at above */
	} else {
		inner[7]--;
	}
	assert_memory_equal(r->frame + l3 + by, inner, len - l3);
}

static void ipip_puts_a_packet_into_another(void **state)
{
	static const char text[] = "udp 10.1.0.5:1000 > 10.0.0.100:80 data 'hello'";
	struct result r;
	const struct iphdr *ip = (const void *)(r.frame + ETH_HLEN);

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.11]"));
	r = balance_run(text);
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x11);
	assert_inside(&r, text, ETH_HLEN, 20);
	assert_true(sums_to_zero(sum_up(ip, 20)));
	assert_int_equal(ip->protocol, IPPROTO_IPIP);
	assert_int_equal(ip->saddr, inet_addr("10.9.0.1"));
	assert_int_equal(ip->daddr, inet_addr("10.9.0.11"));
	assert_int_equal(ntohs(ip->tot_len), 20 + 20 + 8 + 5);
	assert_int_equal(ip->frag_off, htons(0x4000));
	assert_int_equal(ip->ttl, 64);
	assert_int_equal(ntohs(((struct ethhdr *)r.frame)->h_proto), ETH_P_IP);
}

static void ipip_does_ipv6_in_ipv6(void **state)
{
	static const char text[] = "tcp [fd01::5]:1000 > [fd00::100]:80 flags ack data 'hello'";
	struct result r;
	const struct ipv6hdr *ip = (const void *)(r.frame + ETH_HLEN);
	struct in6_addr a;

	(void)state;
	balance_load_afresh(LIST("ipip", "['fd09::12']"));
	r = balance_run(text);
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x12);
	assert_inside(&r, text, ETH_HLEN, 40);
	assert_int_equal(ip->version, 6);
	assert_int_equal(ip->nexthdr, IPPROTO_IPV6);
	assert_int_equal(ntohs(ip->payload_len), 40 + 20 + 5);
	inet_pton(AF_INET6, "fd09::1", &a);
	assert_memory_equal(&ip->saddr, &a, 16);
	inet_pton(AF_INET6, "fd09::12", &a);
	assert_memory_equal(&ip->daddr, &a, 16);
}

static void gue_has_a_source_port_of_the_flow(void **state)
{
	static const char text[] = "udp 10.1.0.5:1000 > 10.0.0.100:80 data 'hello'",
			  six[] = "udp [fd01::5]:1000 > [fd00::100]:80 data 'hello'";
	struct result first, again, other;
	const struct udphdr *udp = (const void *)(first.frame + ETH_HLEN + 20);

	(void)state;
	balance_load_afresh("balancers: {web: {mode: gue, port: 6081, backends: " FOUR "}}\n" RULE);
	first = balance_run(text);
	again = balance_run(text);
	other = balance_run("udp 10.1.0.5:1001 > 10.0.0.100:80");
	assert_inside(&first, text, ETH_HLEN, 28);
	assert_true(sums_to_zero(sum_up(first.frame + ETH_HLEN, 20)));
	assert_int_equal(ntohs(udp->dest), 6081);
	assert_true(ntohs(udp->source) >= 49152);
	assert_int_equal(udp->check, 0);
	assert_int_equal(ntohs(udp->len), 8 + 20 + 8 + 5);
	assert_int_equal(source_port(&first), source_port(&again));
	assert_int_not_equal(source_port(&first), source_port(&other));
	first = balance_run(six);
	assert_inside(&first, six, ETH_HLEN, 48);
	assert_int_equal(first.frame[ETH_HLEN + 6], IPPROTO_UDP);
}

static void another_interface_is_redirected_to(void **state)
{
	struct result r;

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.8.0.13]"));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	assert_int_equal(r.action, XDP_REDIRECT);
	assert_macs(&r, 0x13);
	assert_int_equal(backend_of(&r), 13);
}

static void padding_stays_outside(void **state)
{
	size_t len;
	autofree uint8_t *frame = frame_of("udp 10.1.0.5:1000 > 10.0.0.100:80", &len);
	uint8_t padded[60] = {0};
	struct result r;

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.11]"));
	assert_true(len < sizeof(padded));
	memcpy(padded, frame, len);
	r = balance_run_frame(padded, sizeof(padded));
	assert_int_equal(r.len, 80);
	assert_int_equal(ntohs(((struct iphdr *)(r.frame + ETH_HLEN))->tot_len), 20 + 28);
}

static void tags_stay_on_the_same_interface(void **state)
{
	static const char text[] = "vlan 5 vlan 7 udp 10.1.0.5:1000 > 10.0.0.100:80 data 'x'";
	size_t len;
	autofree uint8_t *sent = frame_of(text, &len);
	struct result r;

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.11]"));
	r = balance_run(text);
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x11);
	assert_inside(&r, text, ETH_HLEN + 8, 20);
	assert_memory_equal(r.frame + 12, sent + 12, 10); /* both tags and the ethertype */
	balance_load_afresh(LIST("ipip", "[10.8.0.11]"));
	assert_fails(text, AX_REASON_NO_ROUTE, XDP_DROP);
}

/* --- who --- */

static void flows_spread_and_are_counted(void **state)
{
	unsigned seen[4] = {0};
	char text[128];

	(void)state;
	balance_load_afresh(LIST("ipip", FOUR));
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 400; i++) {
			struct result r;

			snprintf(text, sizeof(text), "udp 10.1.0.5:%u > 10.0.0.100:80", 1000 + i);
			r = balance_run(text);
			assert_in_range(backend_of(&r), 11, 14);
			seen[backend_of(&r) - 11]++;
		}
	}
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 400);
	for (unsigned i = 0; i < 4; i++) {
		struct ax_real_count c = balance_real_count(i);

		assert_in_range(seen[i], 2 * 60, 2 * 140);
		assert_int_equal(c.packets, seen[i]);
		assert_int_equal(c.flows, seen[i] / 2);
		assert_int_equal(c.bytes, seen[i] * (14u + 20 + 8));
	}
}

/* The backends of 200 flows. */
static void see_flows(uint8_t who[200], bool v6)
{
	char text[128];

	for (unsigned i = 0; i < 200; i++) {
		struct result r;

		snprintf(text, sizeof(text),
			 v6 ? "tcp [fd01::%x]:1000 > [fd00::100]:80 flags ack"
			    : "tcp 10.1.0.%u:1000 > 10.0.0.100:80 flags ack",
			 i + 1);
		r = balance_run(text);
		who[i] = (uint8_t)backend_of(&r);
	}
}

static void check_flows_stay(bool v6)
{
	uint8_t before[200], after[200];
	struct rule_list l = rule_list_of(LIST("ipip", FOUR));
	size_t first = v6 ? 4 : 0;

	balance_load_afresh(LIST("ipip", FOUR));
	see_flows(before, v6);
	l.balancers->backends[first].drain = true;
	balance_load_list(&l);
	see_flows(after, v6);
	assert_memory_equal(before, after, sizeof(before));
	/* others leave, and its flows stay where they are */
	l.balancers->backends[first].drain = false;
	l.balancers->backends[first + 1].down = true;
	balance_load_list(&l);
	see_flows(after, v6);
	for (unsigned i = 0; i < 200; i++) {
		if (before[i] == 12)
			assert_int_not_equal(after[i], 12);
		else
			assert_int_equal(after[i], before[i]);
	}
	rule_list_free(&l);
}

static void flows_stay_until_their_backend_is_down(void **state)
{
	(void)state;
	check_flows_stay(false);
	check_flows_stay(true);
}

static void what_is_drained_gets_no_new_flows(void **state)
{
	struct rule_list l = rule_list_of(LIST("ipip", FOUR));
	uint8_t who[200];

	(void)state;
	balance_load_afresh(LIST("ipip", FOUR));
	l.balancers->backends[2].drain = true;
	balance_load_list(&l);
	see_flows(who, false);
	for (unsigned i = 0; i < 200; i++)
		assert_int_not_equal(who[i], 13);
	rule_list_free(&l);
}

static void a_new_backend_takes_no_flow_away(void **state)
{
	uint8_t before[200], after[200];

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.11, 10.9.0.12, 10.9.0.13]"));
	see_flows(before, false);
	balance_load(LIST("ipip", FOUR));
	see_flows(after, false);
	assert_memory_equal(before, after, sizeof(before));
}

/* All of a client's fragments, first and later ones, go to one backend; and so does its ping. */
static void fragments_go_to_one_backend(void **state)
{
	static const char *const packets[] =
		{
			"udp 10.1.0.%u:7 > 10.0.0.100:80 frag first len 64",
			"udp 10.1.0.%u:8 > 10.0.0.100:81 frag first len 64",
			"udp 10.1.0.%u > 10.0.0.100 frag later len 64",
		},
				 *const packets6[] = {
					 "udp [fd01::%u]:7 > [fd00::100]:80 frag first len 64",
					 "udp [fd01::%u]:8 > [fd00::100]:81 frag first len 64",
					 "udp fd01::%u > fd00::100 frag later len 64",
				 };
	unsigned seen[20] = {0};
	char text[128];

	(void)state;
	balance_load_afresh(LIST("ipip", FOUR));
	for (unsigned client = 1; client < 60; client++) {
		for (int v6 = 0; v6 < 2; v6++) {
			unsigned first = 0;

			for (unsigned i = 0; i < ARRAY_SIZE(packets); i++) {
				struct result r;

				snprintf(text, sizeof(text), v6 ? packets6[i] : packets[i], client);
				r = balance_run(text);
				assert_int_equal(r.action, XDP_TX);
				if (!i)
					seen[first = backend_of(&r)]++;
				assert_int_equal(backend_of(&r), first);
			}
		}
	}
	for (unsigned i = 11; i < 15; i++)
		assert_true(seen[i] > 10);
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 0);
}

static void icmp_errors_follow_their_flow(void **state)
{
	unsigned elsewhere = 0;
	char text[256];

	(void)state;
	balance_load_afresh(LIST("ipip", FOUR));
	for (unsigned i = 0; i < 60; i++) {
		struct result flow, error;

		snprintf(text, sizeof(text), "tcp 10.1.0.5:%u > 10.0.0.100:80 flags ack", 1000 + i);
		flow = balance_run(text);
		snprintf(text, sizeof(text),
			 "icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > "
			 "10.1.0.5:%u)",
			 1000 + i);
		error = balance_run(text);
		assert_int_equal(error.action, XDP_TX);
		assert_int_equal(backend_of(&flow), backend_of(&error));
		assert_inside(&error, text, ETH_HLEN, 20);
		snprintf(text, sizeof(text), "tcp [fd01::5]:%u > [fd00::100]:80 flags ack",
			 1000 + i);
		flow = balance_run(text);
		snprintf(text, sizeof(text),
			 "icmp6 fd02::9 > fd00::100 type 2 quoting (tcp [fd00::100]:80 > "
			 "[fd01::5]:%u)",
			 1000 + i);
		error = balance_run(text);
		assert_int_equal(backend_of(&flow), backend_of(&error));
		elsewhere += backend_of(&flow) != 11;
	}
	assert_true(elsewhere > 20);
}

/* The flow table says where an error goes, not the hash: that would say another backend now. */
static void icmp_errors_follow_flows_that_stayed(void **state)
{
	uint8_t before[200], after[200];
	unsigned moved = 0;
	char text[256];

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.11, 10.9.0.12]"));
	see_flows(before, false);
	balance_load(LIST("ipip", FOUR));
	for (unsigned i = 0; i < 200; i++) {
		struct result r;

		snprintf(text, sizeof(text),
			 "icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > "
			 "10.1.0.%u:1000)",
			 i + 1);
		r = balance_run(text);
		after[i] = (uint8_t)backend_of(&r);
	}
	assert_memory_equal(before, after, sizeof(before));
	balance_load_afresh(LIST("ipip", FOUR));
	see_flows(after, false);
	for (unsigned i = 0; i < 200; i++)
		moved += before[i] != after[i];
	assert_true(moved > 50);
}

/* A packet of a flow that was seen just now goes another way through the programs (struct fast):
 * with the same result, and the same reasons when it cannot go. */
static void known_flows_are_treated_alike(void **state)
{
	static const char *const modes[] = {"nat", "ipip", "gue"};
	static const char *const packets[] = {
		"udp 10.1.0.5:1000 > 10.0.0.100:80 data 'hello'",
		"tcp 10.1.0.5:1000 > 10.0.0.100:80 flags ack data 'odd'",
		"udp [fd01::5]:1000 > [fd00::100]:80 data 'hello'",
		"tcp [fd01::5]:1000 > [fd00::100]:80 flags ack data 'odd'",
	};
	char list[300], text[128];

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
		snprintf(list, sizeof(list),
			 "balancers: {web: {mode: %s, backends: [10.8.0.11, 'fd08::11']}}\n" RULE,
			 modes[m]);
		balance_load_afresh(list);
		for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
			struct result first = balance_run(packets[i]),
				      again = balance_run(packets[i]);
			int head = (int)(strstr(packets[i], "data") - packets[i]);

			assert_int_equal(first.action, XDP_REDIRECT);
			assert_int_equal(again.action, XDP_REDIRECT);
			assert_int_equal(first.len, again.len);
			assert_memory_equal(first.frame, again.frame, first.len);
			snprintf(text, sizeof(text), "%.*sttl 1", head, packets[i]);
			assert_fails(text, AX_REASON_TTL, XDP_DROP);
			snprintf(text, sizeof(text), "%.*slen 1300", head, packets[i]);
			assert_fails(text, AX_REASON_TOO_BIG, XDP_TX);
		}
		assert_int_equal(balance_real_count(0).packets, 4);
		assert_int_equal(balance_real_count(0).flows, 2);
		assert_int_equal(balance_real_count(1).flows, 2);
	}
}

static struct result run_flow(unsigned i, unsigned port)
{
	char text[128];

	snprintf(text, sizeof(text), "udp 10.1.%u.5:%u > 10.0.0.100:%u data 'x'", i / 100,
		 1000 + i % 100, port);
	return balance_run(text);
}

/* All flows of one client have their way remembered. It is only for a moment: that may be over on a
 * busy machine, but not again and again. */
static void known_flows_are_not_asked_for(void **state)
{
	uint64_t asked = 1;

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.11]"));
	for (int round = 0; round < 300 && asked; round++) {
		for (unsigned i = 0; i < 40; i++)
			run_flow(i, 443);
		asked = balance_real_count(0).flows;
		balance_forget(XDP_MAP_FLOWS4, sizeof(struct ax_flow4));
		for (unsigned i = 0; i < 40; i++)
			assert_int_equal(run_flow(i, 443).action, XDP_TX);
		asked = balance_real_count(0).flows - asked;
	}
	assert_int_equal(asked, 0);
}

/* Thousands of them are not taken for each other. */
static void each_flow_has_its_own_way(void **state)
{
	enum { FLOWS = 3000 };
	autofree struct ax_addr *who = calloc(FLOWS, sizeof(*who));
	autofree unsigned *port = calloc(FLOWS, sizeof(*port));
	struct ax_addr to;
	struct result r;

	(void)state;
	assert_true(who && port);
	balance_load_afresh(LIST("nat", FOUR));
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < FLOWS; i++) {
			r = run_flow(i, 80);
			assert_int_equal(r.action, XDP_TX);
			to = dst_of(&r);
			if (!round) {
				who[i] = to;
				port[i] = source_port(&r);
			}
			assert_true(addr_eq(&who[i], &to));
			assert_int_equal(source_port(&r), port[i]);
		}
	}
}

/* --- what cannot be sent --- */

static void failures_have_reasons(void **state)
{
	static const char text[] = "udp 10.1.0.5:1000 > 10.0.0.100:80";

	(void)state;
	balance_load_afresh(LIST("ipip", "[]"));
	assert_fails(text, AX_REASON_NO_BACKEND, XDP_DROP);
	balance_load_afresh(LIST("ipip", "['fd09::11']")); /* of the other family only */
	assert_fails(text, AX_REASON_NO_BACKEND, XDP_DROP);
	balance_load_afresh(LIST("ipip", "[10.3.0.1]"));
	assert_fails(text, AX_REASON_NO_ROUTE, XDP_DROP);
	balance_load_afresh(LIST("ipip", "[10.9.0.99]"));
	assert_fails(text, AX_REASON_NO_NEIGHBOUR, XDP_DROP);
	balance_load_afresh(LIST("ipip", "[10.9.0.11, 'fd09::11']"));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80 ttl 1", AX_REASON_TTL, XDP_DROP);
	assert_fails("udp [fd01::5]:1000 > [fd00::100]:80 ttl 1", AX_REASON_TTL, XDP_DROP);
	assert_int_equal(balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80 ttl 2").action, XDP_TX);
}

static void a_neighbour_that_appears_is_used(void **state)
{
	static const char text[] = "udp 10.1.0.5:1000 > 10.0.0.100:80";
	struct result r = {0};

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.77]"));
	assert_fails(text, AX_REASON_NO_NEIGHBOUR, XDP_DROP);
	assert_int_equal(sh("ip neigh replace 10.9.0.77 lladdr 02:00:00:00:00:77 dev vb0"), 0);
	for (int i = 0; i < 100 && r.action != XDP_TX; i++) {
		usleep(10000);
		r = balance_run(text);
	}
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x77);
	sh("ip neigh del 10.9.0.77 dev vb0");
}

static void what_is_not_ip_passes(void **state)
{
	(void)state;
	balance_load_afresh("balancers: {b: {mode: ipip, backends: [10.9.0.11]}}\n"
			    "rules: [{action: balance b}]\n");
	assert_int_equal(balance_run("arp 10.9.0.12 > 10.9.0.1").action, XDP_PASS);
	assert_int_equal(balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80").action, XDP_TX);
}

/* A list with so many backends in 10.`net`.0.0/16. */
static char *many_backends(unsigned n, unsigned net)
{
	char *text = malloc(128 + n * 16), *p;

	assert_non_null(text);
	p = stpcpy(text, "balancers: {b: {mode: ipip, backends: [");
	for (unsigned i = 0; i < n; i++)
		p += sprintf(p, "%s10.%u.%u.%u", i ? "," : "", net, i >> 8, i & 255);
	strcpy(p, "]}}\nrules: [{action: balance b}]\n");
	return text;
}

static void a_list_with_all_backends_takes_the_place_of_another(void **state)
{
	autofree char *few = many_backends(256, 66), *all = many_backends(AX_REALS_MAX, 67),
		      *others = many_backends(AX_REALS_MAX, 68);

	(void)state;
	balance_load_afresh(few);
	balance_load(all);
	balance_load(others);
	balance_load(few);
}

static void this_machine_gets_it_as_it_is(void **state)
{
	static const char text[] = "udp 10.1.0.5:1000 > 10.0.0.100:80";
	size_t len;
	autofree uint8_t *sent = frame_of(text, &len);
	struct result r;

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.8.0.1]"));
	r = balance_run(text);
	assert_int_equal(r.action, XDP_PASS);
	assert_int_equal(r.len, len);
	assert_memory_equal(r.frame, sent, len);
	assert_int_equal(balance_real_count(0).packets, 1);
}

static void too_big_is_answered(void **state)
{
	static const char fits[] = "udp 10.1.0.5:1000 > 10.0.0.100:80 len 1252", /* 1280 and 20 */
		big[] = "udp 10.1.0.5:1000 > 10.0.0.100:80 len 1253",
			  tagged[] = "vlan 9 udp 10.1.0.5:1000 > 10.0.0.100:80 len 1473";
	size_t len;
	autofree uint8_t *sent = frame_of(big, &len);
	struct result r;
	const struct iphdr *ip = (const void *)(r.frame + ETH_HLEN);
	const struct icmphdr *icmp = (const void *)(ip + 1);

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.8.0.11]"));
	assert_int_equal(balance_run(fits).action, XDP_REDIRECT);
	assert_fails(big, AX_REASON_TOO_BIG, XDP_TX);
	r = balance_run(big);
	assert_sums(&r, ETH_HLEN);
	assert_memory_equal(r.frame, sent + 6, 6);
	assert_memory_equal(r.frame + 6, sent, 6);
	assert_int_equal(ip->saddr, inet_addr("10.0.0.100"));
	assert_int_equal(ip->daddr, inet_addr("10.1.0.5"));
	assert_int_equal(icmp->type, 3);
	assert_int_equal(icmp->code, 4);
	assert_int_equal(ntohs(icmp->un.frag.mtu), SMALL - 20);
	assert_int_equal(r.len, ETH_HLEN + 20 + 8 + 512);
	assert_memory_equal(r.frame + ETH_HLEN + 28, sent + ETH_HLEN, 512);
	assert_fails("udp 10.1.0.5 > 10.0.0.100 frag later len 1400", AX_REASON_TOO_BIG, XDP_DROP);
	balance_load_afresh(LIST("ipip", "[10.9.0.11]"));
	r = balance_run(tagged);
	assert_int_equal(r.action, XDP_TX);
	assert_sums(&r, ETH_HLEN + 4);
	assert_int_equal(r.len, ETH_HLEN + 4 + 20 + 8 + 512);
}

static void too_big_is_answered_over_ipv6(void **state)
{
	static const char big[] = "tcp [fd01::5]:1000 > [fd00::100]:80 flags ack len 1221";
	size_t len;
	autofree uint8_t *sent = frame_of(big, &len);
	struct result r;
	const struct ipv6hdr *ip = (const void *)(r.frame + ETH_HLEN);
	const uint8_t *icmp = (const void *)(ip + 1);
	uint32_t mtu;

	(void)state;
	balance_load_afresh(LIST("ipip", "['fd08::11']"));
	assert_fails(big, AX_REASON_TOO_BIG, XDP_TX);
	r = balance_run(big);
	assert_sums(&r, ETH_HLEN);
	assert_memory_equal(&ip->saddr, sent + ETH_HLEN + 24, 16);
	assert_memory_equal(&ip->daddr, sent + ETH_HLEN + 8, 16);
	assert_int_equal(icmp[0], 2);
	memcpy(&mtu, icmp + 4, 4);
	assert_int_equal(ntohl(mtu), 1280); /* no IPv6 link may have less */
	assert_memory_equal(icmp + 8, sent + ETH_HLEN, 512);
}

static void a_flood_is_not_remembered(void **state)
{
	uint64_t before, counted = 0;
	autoclose int map = -1;
	char text[128];

	(void)state;
	balance_load_afresh(LIST("ipip", FOUR));
	map = balance_map("flow_windows");
	assert_true(map >= 0);
	/* a window may end between the two packets */
	for (unsigned i = 0; i < 20 && !counted; i++) {
		struct result r;

		snprintf(text, sizeof(text), "udp 10.1.0.5:%u > 10.0.0.100:80", 1000 + i);
		balance_run(text);
		before = balance_reason_count(AX_REASON_FLOWS_FULL);
		snprintf(text, sizeof(text), "udp 10.1.0.5:%u > 10.0.0.100:80", 2000 + i);
		balance_set_window(map, AX_FLOWS_PER_WINDOW);
		r = balance_run(text);
		counted = balance_reason_count(AX_REASON_FLOWS_FULL) - before;
		assert_int_equal(r.action, XDP_TX);
		if (counted)
			assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)),
					 1 + 2 * i);
	}
	assert_int_equal(counted, 1);
}

static void explaining_leaves_no_trace(void **state)
{
	static const char text[] = "udp 10.1.0.5:1000 > 10.0.0.100:80";
	size_t len;
	autofree uint8_t *sent = frame_of(text, &len);
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	struct xdp_explanation got;
	struct error e = {0};
	struct result r;

	(void)state;
	balance_load_afresh(LIST("ipip", FOUR));
	assert_int_equal(xdp_open(&balance.inst, IFNAME, &x, &e), 0);
	assert_int_equal(xdp_explain(x, sent, len, &got, &e), 0);
	assert_int_equal(got.x.verdict, AX_VERDICT_BALANCE);
	assert_int_equal(got.action, XDP_TX);
	assert_string_equal(got.rule, "web");
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 0);
	assert_int_equal(balance_real_count(got.x.backend).packets, 0);
	r = balance_run(text);
	assert_int_equal(got.out_len, r.len);
	assert_memory_equal(got.out, r.frame, r.len);
	assert_int_equal(balance_real_count(got.x.backend).packets, 1);
	xdp_explanation_free(&got);
	free(take_ptr(&sent));
	balance_load(LIST("ipip", "[]"));
	sent = frame_of(text, &len);
	assert_int_equal(xdp_explain(x, sent, len, &got, &e), 0);
	assert_int_equal(got.x.decided, AX_DECIDED_BALANCER);
	assert_int_equal(got.x.reason, AX_REASON_NO_BACKEND);
	assert_int_equal(balance_reason_count(AX_REASON_NO_BACKEND), 0);
	xdp_explanation_free(&got);
}

/* Each list has its own stages; those of former ones, and with them their memory, are let go. */
static void lists_take_turns(void **state)
{
	struct rule_list l = rule_list_of(LIST("ipip", FOUR));
	const struct xdp_load_options confirm = {.force = true, .confirm_ms = 60000};
	struct error e = {0};
	unsigned used = 0;

	(void)state;
	balance_load_afresh(LIST("ipip", "[10.9.0.11]"));
	for (int i = 0; i < 6; i++) {
		balance_load(i % 2 ? LIST("ipip", "[10.9.0.11]") : LIST("ipip", "[10.9.0.12]"));
		assert_int_equal(balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80").action, XDP_TX);
	}
	assert_int_equal(xdp_apply(&balance.inst, IFNAME, &l, &confirm, &e), 0);
	/* the former one goes on to work, and is what comes back */
	assert_int_equal(balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80").action, XDP_TX);
	assert_int_equal(xdp_rollback(&balance.inst, IFNAME, &e), 0);
	assert_int_equal(balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80").action, XDP_TX);
	for (uint32_t key = 0; key < AX_JUMP_ENTRIES; key++) {
		uint32_t id;

		used += !bpf_map_lookup_elem(balance.maps.map[XDP_MAP_JUMPS], &key, &id);
	}
	assert_int_equal(used, 2);
	rule_list_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipip_puts_a_packet_into_another),
		cmocka_unit_test(ipip_does_ipv6_in_ipv6),
		cmocka_unit_test(gue_has_a_source_port_of_the_flow),
		cmocka_unit_test(another_interface_is_redirected_to),
		cmocka_unit_test(padding_stays_outside),
		cmocka_unit_test(tags_stay_on_the_same_interface),
		cmocka_unit_test(flows_spread_and_are_counted),
		cmocka_unit_test(flows_stay_until_their_backend_is_down),
		cmocka_unit_test(what_is_drained_gets_no_new_flows),
		cmocka_unit_test(a_new_backend_takes_no_flow_away),
		cmocka_unit_test(fragments_go_to_one_backend),
		cmocka_unit_test(icmp_errors_follow_their_flow),
		cmocka_unit_test(icmp_errors_follow_flows_that_stayed),
		cmocka_unit_test(known_flows_are_treated_alike),
		cmocka_unit_test(known_flows_are_not_asked_for),
		cmocka_unit_test(each_flow_has_its_own_way),
		cmocka_unit_test(failures_have_reasons),
		cmocka_unit_test(a_neighbour_that_appears_is_used),
		cmocka_unit_test(what_is_not_ip_passes),
		cmocka_unit_test(a_list_with_all_backends_takes_the_place_of_another),
		cmocka_unit_test(this_machine_gets_it_as_it_is),
		cmocka_unit_test(too_big_is_answered),
		cmocka_unit_test(too_big_is_answered_over_ipv6),
		cmocka_unit_test(a_flood_is_not_remembered),
		cmocka_unit_test(explaining_leaves_no_trace),
		cmocka_unit_test(lists_take_turns),
	};

	return cmocka_run_group_tests_name("balancer", tests, balance_setup, balance_teardown);
}
