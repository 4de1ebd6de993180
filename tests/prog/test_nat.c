// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
// timeout: 300
/* The balancer's NAT: to the backend, and its answers back to the client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include "iface/iface.h"
#include "packet/text.h"
#include "tests/lib/balance.h"
#include "tests/lib/quick.h"

#define ONE  "['10.9.0.11:8080', '[fd09::11]:8080']"
#define FOUR "['10.9.0.11:8080', '10.9.0.12:8080', '10.9.0.13:8080', '10.9.0.14:8080']"
#define RULES \
	"default: drop\nrules: [{name: web, dst: '10.0.0.100,fd00::100', action: balance web}]\n"
#define LIST(backends) "balancers: {web: {mode: nat, backends: " backends "}}\n" RULES

static struct result runf(const char *format, ...) PRINTF(1, 2);
static struct result runf(const char *format, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return balance_run(text);
}

static void assert_line(const struct result *r, const char *format, ...) PRINTF(2, 3);
static void assert_line(const struct result *r, const char *format, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	assert_packet(r, text);
}

static struct ax_nat_key key_of(const char *real, const char *source, uint8_t proto, unsigned port)
{
	struct ax_nat_key k = {
		.real_port_be = htons(8080),
		.source_port_be = htons((uint16_t)port),
		.proto = proto,
	};

	assert_int_equal(addr_parse(real, &k.real), 0);
	assert_int_equal(addr_parse(source, &k.source), 0);
	return k;
}

/* The map that has it: that of open connections, or that of all else. */
static int nat_map(const struct ax_nat_key *k)
{
	struct ax_nat n;
	int map = balance.maps.map[XDP_MAP_NAT];

	return bpf_map_lookup_elem(map, k, &n) ? balance.maps.map[XDP_MAP_NAT_OPENING] : map;
}

static struct ax_nat nat_get(const struct ax_nat_key *k)
{
	struct ax_nat n;

	assert_int_equal(bpf_map_lookup_elem(nat_map(k), k, &n), 0);
	return n;
}

static void nat_put(const struct ax_nat_key *k, const struct ax_nat *n)
{
	bool open = k->proto == IPPROTO_TCP && n->state & AX_NAT_OPEN;

	bpf_map_delete_elem(nat_map(k), k);
	assert_int_equal(
		bpf_map_update_elem(balance.maps.map[open ? XDP_MAP_NAT : XDP_MAP_NAT_OPENING], k,
				    n, 0),
		0);
}

/* The kernel's ticks, which only a packet tells. */
static uint32_t stamp(void)
{
	static unsigned sport; /* a flow that is known already leaves no trace for some time */
	struct result r = runf("udp 10.1.0.77:%u > 10.0.0.100:80", ++sport);
	struct ax_nat_key k = key_of("10.9.0.11", "10.9.0.1", 17, source_port(&r));
	uint32_t seen = nat_get(&k).seen;
	struct ax_flow4 f;

	assert_int_equal(bpf_map_delete_elem(nat_map(&k), &k), 0);
	assert_int_equal(bpf_map_get_next_key(balance.maps.map[XDP_MAP_FLOWS4], NULL, &f), 0);
	assert_int_equal(bpf_map_delete_elem(balance.maps.map[XDP_MAP_FLOWS4], &f), 0);
	return seen;
}

static void forget_all(void)
{
	balance_forget(XDP_MAP_NAT, sizeof(struct ax_nat_key));
	balance_forget(XDP_MAP_NAT_OPENING, sizeof(struct ax_nat_key));
	balance_forget(XDP_MAP_FLOWS4, sizeof(struct ax_flow4));
}

static size_t nat_entries(void)
{
	return balance_entries(XDP_MAP_NAT, sizeof(struct ax_nat_key)) +
	       balance_entries(XDP_MAP_NAT_OPENING, sizeof(struct ax_nat_key));
}

static void start(const char *list)
{
	balance_load_afresh(list);
	forget_all();
}

/* --- there and back --- */

static void packets_are_translated_both_ways(void **state)
{
	static const struct {
		const char *sent, *to, *answer, *back;
	} cases[] = {
		{"udp 10.1.0.5:1000 > 10.0.0.100:80 data 'hello'",
		 "udp 10.9.0.1:%u > 10.9.0.11:8080 ttl 63 len 5",
		 "udp 10.9.0.11:8080 > 10.9.0.1:%u data 'world'",
		 "udp 10.0.0.100:80 > 10.1.0.5:1000 ttl 63 len 5"},
		{"tcp 10.1.0.5:1000 > 10.0.0.100:80 flags psh,ack data 'odd'",
		 "tcp 10.9.0.1:%u > 10.9.0.11:8080 flags psh,ack ttl 63 len 3",
		 "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack data 'x'",
		 "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags ack ttl 63 len 1"},
		{"udp [fd01::5]:1000 > [fd00::100]:80 data 'hello'",
		 "udp [fd09::1]:%u > [fd09::11]:8080 ttl 63 len 5",
		 "udp [fd09::11]:8080 > [fd09::1]:%u data 'world'",
		 "udp [fd00::100]:80 > [fd01::5]:1000 ttl 63 len 5"},
		{"tcp [fd01::5]:1000 > [fd00::100]:80 flags syn",
		 "tcp [fd09::1]:%u > [fd09::11]:8080 flags syn ttl 63",
		 "tcp [fd09::11]:8080 > [fd09::1]:%u flags syn,ack",
		 "tcp [fd00::100]:80 > [fd01::5]:1000 flags syn,ack ttl 63"},
	};

	(void)state;
	start(LIST(ONE));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct result r = balance_run(cases[i].sent), again = balance_run(cases[i].sent);
		unsigned port = source_port(&r);

		assert_int_equal(r.action, XDP_TX);
		assert_macs(&r, 0x11);
		assert_in_range(port, AX_NAT_PORT, AX_NAT_PORT + AX_NAT_PORTS - 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		assert_line(&r, cases[i].to, port);
		assert_int_equal(source_port(&again), port);
		r = runf(cases[i].answer, port);
#pragma GCC diagnostic pop
		assert_int_equal(r.action, XDP_TX);
		assert_macs(&r, 0x19);
		assert_packet(&r, cases[i].back);
	}
}

static void flows_have_ports_of_their_own(void **state)
{
	static uint8_t seen[65536];

	(void)state;
	memset(seen, 0, sizeof(seen));
	start(LIST(ONE));
	for (unsigned i = 0; i < 500; i++) {
		struct result r = runf("udp 10.1.0.%u:%u > 10.0.0.100:80", i % 250, 1000 + i);
		unsigned port = source_port(&r);

		assert_false(seen[port]);
		seen[port] = 1;
		r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port);
		assert_line(&r, "udp 10.0.0.100:80 > 10.1.0.%u:%u ttl 63", i % 250, 1000 + i);
	}
	assert_int_equal(balance_real_count(0).flows, 500);
}

static void a_backend_without_a_port_keeps_the_packets(void **state)
{
	struct result r;

	(void)state;
	start(LIST("[10.9.0.12]"));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:443");
	assert_line(&r, "tcp 10.9.0.1:%u > 10.9.0.12:443 flags syn ttl 63", source_port(&r));
	r = runf("tcp 10.9.0.12:443 > 10.9.0.1:%u flags ack", source_port(&r));
	assert_packet(&r, "tcp 10.0.0.100:443 > 10.1.0.5:1000 flags ack ttl 63");
}

static void no_checksum_stays_none(void **state)
{
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	struct result r;
	size_t len;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(
		packet_text_parse("udp 10.1.0.5:1000 > 10.0.0.100:80 data 'x'", &frame, &len, &e),
		0);
	frame[ETH_HLEN + 26] = frame[ETH_HLEN + 27] = 0;
	r = balance_run_frame(frame, len);
	assert_int_equal(r.action, XDP_TX);
	assert_int_equal(r.frame[ETH_HLEN + 26] | r.frame[ETH_HLEN + 27], 0);
	assert_sums(&r, ETH_HLEN);
}

static void answers_pass_rules_and_others_do_not(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	/* the list's default is to drop */
	assert_int_equal(runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port).action, XDP_TX);
	assert_int_equal(runf("udp 10.9.0.12:8080 > 10.9.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("udp 10.9.0.11:8081 > 10.9.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("udp 10.9.0.11:8080 > 10.8.0.1:%u", port).action, XDP_DROP);
	assert_int_equal(runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port ^ 1).action, XDP_DROP);
}

static void both_ways_may_be_other_interfaces(void **state)
{
	struct result r;

	(void)state;
	start(LIST("['10.8.0.13:8080']"));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	assert_int_equal(r.action, XDP_REDIRECT);
	assert_macs(&r, 0x13);
	assert_line(&r, "udp 10.8.0.1:%u > 10.8.0.13:8080 ttl 63", source_port(&r));
	start(LIST(ONE));
	r = balance_run("udp 10.8.0.15:1000 > 10.0.0.100:80");
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_int_equal(r.action, XDP_REDIRECT);
	assert_macs(&r, 0x15);
}

static void without_a_route_answers_go_where_the_client_came_from(void **state)
{
	struct result r;

	(void)state;
	start(LIST(ONE));
	r = balance_run(
		"udp 10.3.0.5:1000 > 10.0.0.100:80 mac 02:00:00:00:00:66 > 02:00:00:00:00:55");
	assert_int_equal(r.action, XDP_TX);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x66);
	assert_int_equal(r.frame[11], 0x55);
	assert_packet(&r, "udp 10.0.0.100:80 > 10.3.0.5:1000 ttl 63");
}

static void what_has_no_ports_is_left_to_this_machine(void **state)
{
	(void)state;
	start(LIST(ONE));
	assert_int_equal(balance_run("icmp 10.1.0.5 > 10.0.0.100").action, XDP_PASS);
	assert_int_equal(balance_run("gre 10.1.0.5 > 10.0.0.100").action, XDP_PASS);
}

static void a_backend_here_needs_no_translation_or_cannot_be(void **state)
{
	struct result r;

	(void)state;
	start("balancers: {web: {mode: nat, backends: ['10.9.0.1:80']}}\n"
	      "rules: [{dst: 10.9.0.1, action: balance web}]\n");
	r = balance_run("udp 10.1.0.5:1000 > 10.9.0.1:80");
	assert_int_equal(r.action, XDP_PASS);
	assert_packet(&r, "udp 10.1.0.5:1000 > 10.9.0.1:80");
	assert_fails("udp 10.1.0.5:1000 > 10.9.0.1:81", AX_REASON_NO_ROUTE, XDP_DROP);
}

/* --- ICMP errors --- */

static void errors_reach_the_backend(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	r = balance_run(
		"icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > 10.1.0.5:1000)");
	assert_int_equal(r.action, XDP_TX);
	assert_macs(&r, 0x11);
	assert_line(&r,
		    "icmp 10.9.0.1 > 10.9.0.11 type 3/4 ttl 63 quoting (tcp 10.9.0.11:8080 > "
		    "10.9.0.1:%u)",
		    port);
	r = balance_run("tcp [fd01::5]:1000 > [fd00::100]:80");
	port = source_port(&r);
	r = balance_run(
		"icmp6 fd02::9 > fd00::100 type 2 quoting (tcp [fd00::100]:80 > [fd01::5]:1000)");
	assert_int_equal(r.action, XDP_TX);
	assert_sums(&r, ETH_HLEN);
	assert_int_equal(backend_of(&r), 11);
	assert_int_equal(r.frame[ETH_HLEN + 48 + 40 + 2] << 8 | r.frame[ETH_HLEN + 48 + 40 + 3],
			 port);
	/* about a flow that nobody has */
	r = balance_run(
		"icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > 10.1.0.5:2000)");
	assert_int_equal(r.action, XDP_PASS);
	assert_packet(&r, "icmp 10.2.0.9 > 10.0.0.100 type 3/4 quoting (tcp 10.0.0.100:80 > "
			  "10.1.0.5:2000)");
}

static void errors_reach_the_client(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	/* the port is closed there; a router on the way says something */
	for (int i = 0; i < 2; i++) {
		r = runf("icmp %s > 10.9.0.1 type 3/%d quoting (udp 10.9.0.1:%u > 10.9.0.11:8080)",
			 i ? "10.9.0.18" : "10.9.0.11", i ? 4 : 3, port);
		assert_int_equal(r.action, XDP_TX);
		assert_macs(&r, 0x19);
		assert_line(&r,
			    "icmp 10.0.0.100 > 10.1.0.5 type 3/%d ttl 63 quoting (udp "
			    "10.1.0.5:1000 > 10.0.0.100:80)",
			    i ? 4 : 3);
	}
	r = balance_run("udp [fd01::5]:1000 > [fd00::100]:80");
	port = source_port(&r);
	r = runf("icmp6 fd09::11 > fd09::1 type 1/4 quoting (udp [fd09::1]:%u > [fd09::11]:8080)",
		 port);
	assert_int_equal(r.action, XDP_TX);
	assert_line(&r, "icmp6 fd00::100 > fd01::5 type 1/4 ttl 63 quoting (udp [fd01::5]:1000 > "
			"[fd00::100]:80)");
	/* about something else */
	r = balance_run(
		"icmp 10.9.0.11 > 10.9.0.1 type 3/3 quoting (udp 10.9.0.1:999 > 10.9.0.11:8080)");
	assert_int_equal(r.action, XDP_DROP);
}

/* --- fragments --- */

static void fragments_keep_together(void **state)
{
	char text[128];

	(void)state;
	start(LIST(FOUR));
	for (unsigned i = 0; i < 30; i++) {
		struct result whole, first, later;

		/* the client's whole datagrams may go elsewhere, without confusing its fragments */
		whole = runf("udp 10.1.0.%u:7 > 10.0.0.100:80", i);
		first = runf("udp 10.1.0.%u:7 > 10.0.0.100:80 frag first len 64", i);
		later = runf("udp 10.1.0.%u > 10.0.0.100 frag later len 64", i);
		assert_int_equal(first.action, XDP_TX);
		assert_int_equal(later.action, XDP_TX);
		assert_int_equal(backend_of(&first), backend_of(&later));
		assert_sums(&later, ETH_HLEN);
		snprintf(text, sizeof(text), "10.9.0.%u", backend_of(&first));
		assert_int_equal(key_of(text, "10.9.0.1", 17, source_port(&first)).proto, 17);
		first = runf("udp 10.9.0.%u:8080 > 10.9.0.1:%u", backend_of(&first),
			     source_port(&first));
		assert_line(&first, "udp 10.0.0.100:80 > 10.1.0.%u:7 ttl 63", i);
		whole = runf("udp 10.9.0.%u:8080 > 10.9.0.1:%u", backend_of(&whole),
			     source_port(&whole));
		assert_line(&whole, "udp 10.0.0.100:80 > 10.1.0.%u:7 ttl 63", i);
	}
}

static void fragments_of_answers_find_back(void **state)
{
	static const char *const sent[] = {"udp 10.1.0.5:1000 > 10.0.0.100:80",
					   "udp [fd01::5]:1000 > [fd00::100]:80"};
	struct result r, later;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	for (int v6 = 0; v6 < 2; v6++) {
		r = balance_run(sent[v6]);
		port = source_port(&r);
		later = runf(v6 ? "udp fd09::11 > fd09::1 frag later len 64"
				: "udp 10.9.0.11 > 10.9.0.1 frag later len 64");
		assert_int_equal(later.action, XDP_DROP); /* nobody's yet */
		r = runf(v6 ? "udp [fd09::11]:8080 > [fd09::1]:%u frag first len 64"
			    : "udp 10.9.0.11:8080 > 10.9.0.1:%u frag first len 64",
			 port);
		later = runf(v6 ? "udp fd09::11 > fd09::1 frag later len 64"
				: "udp 10.9.0.11 > 10.9.0.1 frag later len 64");
		assert_int_equal(r.action, XDP_TX);
		assert_int_equal(later.action, XDP_TX);
		assert_macs(&later, 0x19);
		assert_int_equal(backend_of(&r), 5); /* the client's */
		assert_int_equal(backend_of(&later), 5);
		if (!v6)
			assert_sums(&later, ETH_HLEN);
	}
}

/* --- ports --- */

static void a_forgotten_flow_finds_its_port_again(void **state)
{
	struct result r;
	struct ax_nat_key k;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	balance_forget(XDP_MAP_FLOWS4, sizeof(struct ax_flow4));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags ack");
	assert_int_equal(source_port(&r), port);
	/* and the table of answers, once the flow looks after it */
	k = key_of("10.9.0.11", "10.9.0.1", 6, port);
	assert_int_equal(bpf_map_delete_elem(nat_map(&k), &k), 0);
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	assert_int_equal(source_port(&r), port);
	r = runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", port);
	assert_packet(&r, "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags ack ttl 63");
}

static void a_flow_looks_after_its_port_in_time(void **state)
{
	struct result r;
	struct ax_nat_key k;
	struct ax_nat n;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	k = key_of("10.9.0.11", "10.9.0.1", 17, port);
	/* another flow has taken it */
	n = nat_get(&k);
	n.client_port_be = htons(9);
	nat_put(&k, &n);
	usleep(600000);
	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	assert_int_not_equal(source_port(&r), port);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_packet(&r, "udp 10.0.0.100:80 > 10.1.0.5:1000 ttl 63");
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", port);
	assert_packet(&r, "udp 10.0.0.100:80 > 10.1.0.5:9 ttl 63");
}

static void the_end_of_a_connection_is_seen(void **state)
{
	struct result r;
	struct ax_nat_key k;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80");
	port = source_port(&r);
	k = key_of("10.9.0.11", "10.9.0.1", 6, port);
	assert_int_equal(nat_get(&k).state, 0);
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags fin,ack");
	assert_int_equal(nat_get(&k).state, AX_NAT_FIN_CLIENT);
	runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags fin,ack", port);
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN | AX_NAT_FINS);
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	assert_int_equal(nat_get(&k).state, 0);
	runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags rst", port);
	assert_int_equal(nat_get(&k).state, AX_NAT_RESET);
}

/* A segment over IPv4 without options, with that number at an offset of TCP's header. */
static void run_numbered(const char *text, size_t off, uint32_t number)
{
	uint32_t number_be = htonl(number);
	autofree uint8_t *frame = NULL;
	struct error e;
	size_t len;

	assert_int_equal(packet_text_parse(text, &frame, &len, &e), 0);
	memcpy(frame + sizeof(struct ethhdr) + sizeof(struct iphdr) + off, &number_be,
	       sizeof(number_be));
	balance_run_frame(frame, len);
}
#define SEQ 4
#define ACK 8

static void a_flow_is_half_open_until_both_sides_have_answered(void **state)
{
	static const char ack[] = "tcp 10.1.0.5:1000 > 10.0.0.100:80 flags ack";
	char answer[80];
	struct ax_nat_key k;
	struct result r;
	unsigned port;

	(void)state;
	start(LIST(ONE));
	r = balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	port = source_port(&r);
	k = key_of("10.9.0.11", "10.9.0.1", 6, port);
	balance_run(ack); /* of nothing */
	assert_int_equal(nat_get(&k).state, 0);
	usleep(200000); /* what is known of it is used for so long */
	snprintf(answer, sizeof(answer), "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags syn,ack", port);
	run_numbered(answer, SEQ, 0xfffffffe);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL);
	/* who sends in the client's name has not seen that, and guesses */
	balance_run(ack);
	run_numbered(ack, ACK, 0xfffffffe);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL);
	/* nor does he who gets the backend to answer another SYN of his */
	snprintf(answer, sizeof(answer), "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", port);
	run_numbered(answer, SEQ, 0xffffffff);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL);
	run_numbered(ack, ACK, 0xffffffff);
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL | AX_NAT_OPEN);
	/* whoever else says that he begins anew */
	balance_run("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn");
	assert_int_equal(nat_get(&k).state, AX_NAT_SYN_REAL | AX_NAT_OPEN);

	r = balance_run("udp 10.1.0.5:1000 > 10.0.0.100:80");
	k = key_of("10.9.0.11", "10.9.0.1", 17, source_port(&r));
	assert_int_equal(nat_get(&k).state, 0);
	runf("udp 10.9.0.11:8080 > 10.9.0.1:%u", source_port(&r));
	assert_int_equal(nat_get(&k).state, AX_NAT_OPEN);
}

/* All ports in use, by flows that are like `like`. */
static void use_up_ports(const struct ax_nat *like)
{
	struct ax_nat_key k = key_of("10.9.0.11", "10.9.0.1", 6, 0);

	for (unsigned p = AX_NAT_PORT; p < AX_NAT_PORT + AX_NAT_PORTS; p++) {
		k.source_port_be = htons((uint16_t)p);
		nat_put(&k, like);
	}
}

static void ports_that_are_over_are_taken(void **state)
{
	static const char text[] = "tcp 10.1.0.5:1000 > 10.0.0.100:80";
	struct ax_nat other = {.client_port_be = htons(9), .state = AX_NAT_OPEN};
	struct result r;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(addr_parse("10.1.0.9", &other.client), 0);
	assert_int_equal(addr_parse("10.0.0.100", &other.service), 0);
	other.seen = stamp();
	use_up_ports(&other);
	assert_fails(text, AX_REASON_NO_PORT, XDP_DROP);
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 0);
	other.state = AX_NAT_OPEN | AX_NAT_FINS; /* but only just */
	other.seen = stamp();
	use_up_ports(&other);
	assert_fails(text, AX_REASON_NO_PORT, XDP_DROP);
	other.seen = stamp() - AX_NAT_CLOSED * balance.generation.layout.hz - 1;
	use_up_ports(&other);
	r = balance_run(text);
	assert_int_equal(r.action, XDP_TX);
	r = runf("tcp 10.9.0.11:8080 > 10.9.0.1:%u flags ack", source_port(&r));
	assert_packet(&r, "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags ack ttl 63");
	other.state = AX_NAT_OPEN;
	other.seen = stamp() - AX_NAT_IDLE_TCP * balance.generation.layout.hz - 1;
	use_up_ports(&other);
	assert_int_equal(balance_run("tcp 10.1.0.5:1001 > 10.0.0.100:80").action, XDP_TX);
	forget_all();
}

static void half_open_flows_make_room_for_new_clients(void **state)
{
	struct ax_nat other = {.client_port_be = htons(9)};
	struct ax_nat_key k = key_of("10.9.0.11", "10.9.0.1", 6, 0);
	uint32_t hz = balance.generation.layout.hz, now;
	unsigned open = 0;
	struct ax_nat n;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(addr_parse("10.1.0.9", &other.client), 0);
	assert_int_equal(addr_parse("10.0.0.100", &other.service), 0);
	now = stamp();
	/* half of the ports are open flows', which have been idle for longer */
	for (unsigned p = AX_NAT_PORT; p < AX_NAT_PORT + AX_NAT_PORTS; p++) {
		k.source_port_be = htons((uint16_t)p);
		other.state = p % 2   ? AX_NAT_OPEN
			      : p % 4 ? AX_NAT_SYN_REAL
				      : AX_NAT_SYN_REAL | AX_NAT_RESET;
		other.seen = now - (p % 2 ? 100 * hz : p % 1000 * hz / 1000);
		nat_put(&k, &other);
	}
	for (unsigned i = 0; i < quick_or(200, 2000); i++) {
		struct result r = runf("tcp 10.1.0.5:%u > 10.0.0.100:80 flags syn", 1000 + i);

		assert_int_equal(r.action, XDP_TX);
		assert_int_equal(source_port(&r) % 2, 0);
	}
	for (unsigned p = AX_NAT_PORT; p < AX_NAT_PORT + AX_NAT_PORTS; p++) {
		k.source_port_be = htons((uint16_t)p);
		n = nat_get(&k);
		open += n.state == AX_NAT_OPEN && n.client_port_be == htons(9);
	}
	assert_int_equal(open, AX_NAT_PORTS / 2);
	forget_all();
}

#define MANY	   12
#define OPEN_FLOWS 100

/* A SYN of a client that is not there. */
static void flood_with_syns(unsigned n)
{
	autofree uint8_t *frame = NULL;
	struct error e;
	size_t len;

	assert_int_equal(
		packet_text_parse("tcp 10.1.0.5:1000 > 10.0.0.100:80 flags syn", &frame, &len, &e),
		0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t client_be = htonl(0x0a020000 + i);

		memcpy(frame + sizeof(struct ethhdr) + offsetof(struct iphdr, saddr), &client_be,
		       sizeof(client_be));
		balance_run_frame(frame, len);
	}
}

/* To more backends than half-open flows of all have room together: those that are open have their
 * own, and what a backend says first, whose client has been silent, gets there. */
static void a_flood_to_many_backends_ends_no_open_flow(void **state)
{
	char list[1000] = "balancers: {web: {mode: nat, backends: ['10.9.0.11:8080'";
	unsigned ports[OPEN_FLOWS], reals[OPEN_FLOWS], went_on = 0;
	char text[100];
	struct result r;

	(void)state;
	for (unsigned i = 1; i < MANY; i++)
		sprintf(list + strlen(list), ", '10.9.0.11:%u'", 8080 + i);
	strcat(list, "]}}\n" RULES);
	start(list);
	for (unsigned i = 0; i < OPEN_FLOWS; i++) {
		r = runf("tcp 10.1.0.5:%u > 10.0.0.100:80 flags syn", 1000 + i);
		ports[i] = source_port(&r);
		reals[i] = (unsigned)r.frame[ETH_HLEN + 22] << 8 | r.frame[ETH_HLEN + 23];
		snprintf(text, sizeof(text), "tcp 10.9.0.11:%u > 10.9.0.1:%u flags syn,ack",
			 reals[i], ports[i]);
		run_numbered(text, SEQ, 0xfffffffe);
		snprintf(text, sizeof(text), "tcp 10.1.0.5:%u > 10.0.0.100:80 flags ack", 1000 + i);
		run_numbered(text, ACK, 0xffffffff);
	}
	flood_with_syns(700000); /* and not less in `make check-quick`: it has to be more than there
				    is room for */
	for (unsigned i = 0; i < OPEN_FLOWS; i++) {
		r = runf("tcp 10.9.0.11:%u > 10.9.0.1:%u flags psh,ack data 'x'", reals[i],
			 ports[i]);
		went_on += r.action == XDP_TX || r.action == XDP_REDIRECT;
	}
	assert_int_equal(went_on, OPEN_FLOWS);
	forget_all();
}

/* --- what cannot be --- */

static void failures_have_reasons(void **state)
{
	struct result r;
	unsigned port;

	(void)state;
	start(LIST("[]"));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80", AX_REASON_NO_BACKEND, XDP_DROP);
	assert_fails("udp 10.1.0.5 > 10.0.0.100 frag later", AX_REASON_NO_BACKEND, XDP_DROP);
	start(LIST("['10.3.0.1:80']"));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80", AX_REASON_NO_ROUTE, XDP_DROP);
	start(LIST("['10.9.0.99:80']"));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80", AX_REASON_NO_NEIGHBOUR, XDP_DROP);
	start(LIST(ONE));
	assert_fails("udp 10.1.0.5:1000 > 10.0.0.100:80 ttl 1", AX_REASON_TTL, XDP_DROP);
	assert_int_equal(nat_entries(), 0);
	r = balance_run("udp 10.8.0.15:1000 > 10.0.0.100:80");
	port = source_port(&r);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u ttl 1", port);
	assert_int_equal(r.action, XDP_DROP);
	assert_int_equal(balance_reason_count(AX_REASON_TTL), 2);
	/* too long for the link to that client: the backend is told */
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u len 1273", port);
	assert_int_equal(r.action, XDP_TX);
	assert_int_equal(balance_reason_count(AX_REASON_TOO_BIG), 1);
	assert_sums(&r, ETH_HLEN);
	assert_int_equal(r.frame[ETH_HLEN + 20] << 8 | r.frame[ETH_HLEN + 21], 0x304);
	assert_int_equal(r.frame[ETH_HLEN + 26] << 8 | r.frame[ETH_HLEN + 27], SMALL);
	assert_int_equal(backend_of(&r), 11);
	r = runf("udp 10.9.0.11:8080 > 10.9.0.1:%u len 1272", port);
	assert_int_equal(r.action, XDP_REDIRECT);
}

/* A flow that cannot be remembered cannot be translated. */
static void a_flood_is_dropped(void **state)
{
	uint64_t before, counted = 0;
	autoclose int map = -1;

	(void)state;
	start(LIST(ONE));
	map = balance_map("flow_windows");
	assert_true(map >= 0);
	/* a window may end between the two packets */
	for (unsigned i = 0; i < 20 && !counted; i++) {
		struct result r = runf("udp 10.1.0.5:%u > 10.0.0.100:80", 1000 + i);

		assert_int_equal(r.action, XDP_TX);
		before = balance_reason_count(AX_REASON_FLOWS_FULL);
		balance_set_window(map, AX_FLOWS_PER_WINDOW);
		r = runf("udp 10.1.0.5:%u > 10.0.0.100:80", 2000 + i);
		counted = balance_reason_count(AX_REASON_FLOWS_FULL) - before;
		assert_int_equal(r.action, counted ? XDP_DROP : XDP_TX);
		r = runf("udp 10.1.0.5:%u > 10.0.0.100:80", 1000 + i);
		assert_int_equal(r.action, XDP_TX);
	}
	assert_int_equal(counted, 1);
}

static void explaining_leaves_no_trace(void **state)
{
	CLEANUP(xdp_closep) struct xdp *x = NULL;
	autofree uint8_t *there = NULL, *back = NULL;
	struct ax_nat_key k;
	struct xdp_explanation got;
	struct error e = {0};
	struct ax_nat n;
	struct result r;
	char text[128];
	size_t len;

	(void)state;
	start(LIST(ONE));
	assert_int_equal(xdp_open(&balance.inst, IFNAME, &x, &e), 0);
	assert_int_equal(packet_text_parse("tcp 10.1.0.5:1000 > 10.0.0.100:80", &there, &len, &e),
			 0);
	assert_int_equal(xdp_explain(x, there, len, &got, &e), 0);
	assert_int_equal(got.action, XDP_TX);
	assert_int_equal(got.x.backend, 0);
	assert_int_equal(balance_entries(XDP_MAP_FLOWS4, sizeof(struct ax_flow4)), 0);
	assert_int_equal(nat_entries(), 0);
	r = balance_run_frame(there, len);
	assert_int_equal(got.out_len, r.len);
	assert_memory_equal(got.out, r.frame, r.len);
	xdp_explanation_free(&got);
	k = key_of("10.9.0.11", "10.9.0.1", 6, source_port(&r));
	n = nat_get(&k);
	snprintf(text, sizeof(text), "tcp 10.9.0.11:8080 > 10.9.0.1:%u flags rst", source_port(&r));
	assert_int_equal(packet_text_parse(text, &back, &len, &e), 0);
	assert_int_equal(xdp_explain(x, back, len, &got, &e), 0);
	assert_int_equal(got.action, XDP_TX);
	assert_int_equal(got.x.decided, AX_DECIDED_ANSWER);
	assert_int_equal(nat_get(&k).state, n.state);
	r = balance_run_frame(back, len);
	assert_memory_equal(got.out, r.frame, r.len);
	assert_packet(&r, "tcp 10.0.0.100:80 > 10.1.0.5:1000 flags rst ttl 63");
	xdp_explanation_free(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_translated_both_ways),
		cmocka_unit_test(flows_have_ports_of_their_own),
		cmocka_unit_test(a_backend_without_a_port_keeps_the_packets),
		cmocka_unit_test(no_checksum_stays_none),
		cmocka_unit_test(answers_pass_rules_and_others_do_not),
		cmocka_unit_test(both_ways_may_be_other_interfaces),
		cmocka_unit_test(without_a_route_answers_go_where_the_client_came_from),
		cmocka_unit_test(what_has_no_ports_is_left_to_this_machine),
		cmocka_unit_test(a_backend_here_needs_no_translation_or_cannot_be),
		cmocka_unit_test(errors_reach_the_backend),
		cmocka_unit_test(errors_reach_the_client),
		cmocka_unit_test(fragments_keep_together),
		cmocka_unit_test(fragments_of_answers_find_back),
		cmocka_unit_test(a_forgotten_flow_finds_its_port_again),
		cmocka_unit_test(a_flow_looks_after_its_port_in_time),
		cmocka_unit_test(the_end_of_a_connection_is_seen),
		cmocka_unit_test(a_flow_is_half_open_until_both_sides_have_answered),
		cmocka_unit_test(ports_that_are_over_are_taken),
		cmocka_unit_test(half_open_flows_make_room_for_new_clients),
		cmocka_unit_test(a_flood_to_many_backends_ends_no_open_flow),
		cmocka_unit_test(failures_have_reasons),
		cmocka_unit_test(a_flood_is_dropped),
		cmocka_unit_test(explaining_leaves_no_trace),
	};

	return cmocka_run_group_tests_name("NAT", tests, balance_setup, balance_teardown);
}
