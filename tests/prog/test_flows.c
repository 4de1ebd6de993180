// SPDX-License-Identifier: GPL-2.0-or-later
// beside others
/* How flows of programs outside ax through a service with a private backend end: by both FINs, by a
 * RST, and by their age. What ended is nobody's, and the next SYN or datagram from the same port is
 * a new flow. The agent sees the same, and what it forgets is nobody's, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/pkt_cls.h>
#include <string.h>
#include <time.h>

#include "tests/lib/dataplane.h"
#include "tests/lib/frame_build.h"
#include "tests/lib/instance.h"

#define LO	      1 /* stands for all devices */
#define CLIENT_PORT   999
#define SERVICE_PORT  80
#define APP_PORT      7000
#define FIRST_PORT    1024 /* of those that new flows get */
#define PORT_AS_KNOWN 1	   /* which no new flow can have */
#define NOBODY	      0	   /* instead of a port: the packet is no flow's */
#define STEPS	      8

enum who { APP, SERVICE, NET, CLIENT, WHO };

static const char *const addresses[WHO][2] = {
	[APP] = {"10.1.0.2", "fd00::2"},
	[SERVICE] = {"10.1.0.99", "fd00::99"},
	[NET] = {"10.1.0.1", "fd00::1"},
	[CLIENT] = {"192.0.2.1", "2001:db8::1"},
};

static struct {
	struct ax_addr addr[WHO][2];
	int to_service, from_app;
} w;

/* What one of the two sends. */
struct step {
	enum who from; /* CLIENT or APP */
	uint8_t flags; /* 0 behind the last step */
};

static const char *const maps[] = {"flows", "new_flows", "udp_flows"};

/* Where a flow is after these steps, and for how many seconds it may be idle there. */
struct row {
	const char *name;
	uint8_t proto;
	const char *map;
	uint32_t life;
	bool closed;
	struct step steps[STEPS];
};

/* clang-format off */
#define SYN_SENT    {CLIENT, SYN}
#define ANSWERED    SYN_SENT, {APP, SYN | ACK}
#define OPENED	    ANSWERED, {CLIENT, ACK}
#define CLIENT_FIN  {CLIENT, FIN | ACK}
#define APP_FIN	    {APP, FIN | ACK}

static const struct row rows[] = {
	{"a SYN", IPPROTO_TCP, "new_flows", 60, false, {SYN_SENT}},
	{"an answered SYN", IPPROTO_TCP, "new_flows", 60, false, {ANSWERED}},
	{"an open connection", IPPROTO_TCP, "flows", 7440, false, {OPENED}},
	{"one with data", IPPROTO_TCP, "flows", 7440, false,
	 {OPENED, {CLIENT, PSH | ACK}, {APP, PSH | ACK}}},
	{"the client's FIN", IPPROTO_TCP, "flows", 7440, false,
	 {OPENED, CLIENT_FIN, {APP, PSH | ACK}}},
	{"the app's FIN", IPPROTO_TCP, "flows", 7440, false,
	 {OPENED, APP_FIN, {CLIENT, PSH | ACK}}},
	{"both FINs, the client's first", IPPROTO_TCP, "new_flows", 1, true,
	 {OPENED, CLIENT_FIN, APP_FIN}},
	{"both FINs, the app's first", IPPROTO_TCP, "new_flows", 1, true,
	 {OPENED, APP_FIN, CLIENT_FIN}},
	{"the client's RST", IPPROTO_TCP, "new_flows", 1, true, {OPENED, {CLIENT, RST}}},
	{"the app's RST", IPPROTO_TCP, "new_flows", 1, true, {OPENED, {APP, RST | ACK}}},
	{"an RST of somebody else's, and the app goes on", IPPROTO_TCP, "flows", 7440, false,
	 {OPENED, {CLIENT, RST}, {APP, PSH | ACK}}},
	{"an RST of somebody else's, and the client goes on", IPPROTO_TCP, "flows", 7440, false,
	 {OPENED, {APP, RST | ACK}, {CLIENT, PSH | ACK}}},
	{"a SYN that is refused", IPPROTO_TCP, "new_flows", 1, true,
	 {SYN_SENT, {APP, RST | ACK}}},
	{"a datagram", IPPROTO_UDP, "udp_flows", 300, false, {{CLIENT, ACK}}},
	{"datagrams both ways", IPPROTO_UDP, "udp_flows", 300, false,
	 {{CLIENT, ACK}, {APP, ACK}, {CLIENT, ACK}}},
};
/* clang-format on */

/* --- packets --- */

static uint32_t run(int prog, const struct frame *f, int v6, enum who src, enum who dst,
		    uint8_t out[FRAME_BUILT_MAX])
{
	struct __sk_buff skb = {.ifindex = LO};
	uint8_t p[FRAME_BUILT_MAX];
	size_t n = put_frame(p, f, v6, &w.addr[src][v6], &w.addr[dst][v6]);
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p, .data_size_in = (uint32_t)n,
		    .data_out = out, .data_size_out = FRAME_BUILT_MAX, .ctx_in = &skb,
		    .ctx_size_in = sizeof(skb), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(prog, &o), 0);
	return o.retval;
}

static void assert_address(const uint8_t *frame, int v6, bool source, enum who who)
{
	const uint8_t *at = frame + 14 + (v6 ? (source ? 8 : 24) : (source ? 12 : 16));

	assert_memory_equal(at, w.addr[who][v6].b + (v6 ? 0 : 12), v6 ? 16 : 4);
}

static unsigned port_of(const uint8_t *frame, int v6, bool source)
{
	const uint8_t *at = frame + 14 + (v6 ? 40 : 20) + (source ? 0 : 2);

	return (unsigned)(at[0] << 8 | at[1]);
}

/* From the client to the service. Returns the port from which the app sees it. */
static unsigned client_sends(uint8_t proto, uint8_t flags, int v6)
{
	const struct frame f = {
		.proto = proto, .flags = flags, .sport = CLIENT_PORT, .dport = SERVICE_PORT};
	uint8_t out[FRAME_BUILT_MAX];
	uint32_t verdict = run(w.to_service, &f, v6, CLIENT, SERVICE, out);

	if (verdict == TC_ACT_SHOT)
		return NOBODY;
	assert_int_equal(verdict, TC_ACT_REDIRECT);
	assert_address(out, v6, false, APP);
	assert_int_equal(port_of(out, v6, false), APP_PORT);
	return port_of(out, v6, true);
}

/* From the app to that port of the client's. Returns the port that the client has it at. */
static unsigned app_sends(uint8_t proto, uint8_t flags, int v6, unsigned port)
{
	const struct frame f = {
		.proto = proto, .flags = flags, .sport = APP_PORT, .dport = (uint16_t)port};
	uint8_t out[FRAME_BUILT_MAX];
	uint32_t verdict = run(w.from_app, &f, v6, APP, CLIENT, out);

	if (verdict != TC_ACT_REDIRECT)
		return NOBODY;
	assert_address(out, v6, true, SERVICE);
	assert_int_equal(port_of(out, v6, true), SERVICE_PORT);
	return port_of(out, v6, false);
}

/* --- what is known --- */

static void forget_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		autoclose int map = dataplane_map(maps[i]);
		struct ax_flow_key k;

		while (!bpf_map_get_next_key(map, NULL, &k))
			assert_int_equal(bpf_map_delete_elem(map, &k), 0);
	}
}

/* Both directions of a flow. */
struct kept {
	const char *map;
	struct ax_flow_key key[2];
	struct ax_flow flow[2];
};

/* There is one flow, in that map. It gets a port that tells it from a new one. */
static void keep(const char *name, struct kept *ret)
{
	autoclose int map = dataplane_map(name);
	struct ax_flow_key *prev = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		assert_int_equal(dataplane_count(maps[i], sizeof(*prev)),
				 strcmp(maps[i], name) == 0 ? 2 : 0);
	ret->map = name;
	for (int i = 0; i < 2; prev = &ret->key[i++]) {
		assert_int_equal(bpf_map_get_next_key(map, prev, &ret->key[i]), 0);
		assert_int_equal(bpf_map_lookup_elem(map, &ret->key[i], &ret->flow[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		if (ret->key[i].client.port_be == htons(CLIENT_PORT))
			ret->flow[i].client_port_be = htons(PORT_AS_KNOWN);
		else
			ret->key[i].client.port_be = htons(PORT_AS_KNOWN);
	}
}

/* The flow alone, which was last seen then. */
static void put_back(const struct kept *k, uint32_t seen)
{
	autoclose int map = dataplane_map(k->map);

	forget_all();
	for (int i = 0; i < 2; i++) {
		struct ax_flow f = k->flow[i];

		f.seen = seen;
		assert_int_equal(bpf_map_update_elem(map, &k->key[i], &f, BPF_ANY), 0);
	}
}

/* The programs' clock: of 2^30 ns. */
static uint32_t now(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return (uint32_t)(((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) >> 30);
}

/* What the flow's next packet is, after it was idle for so long. */
static unsigned after(const struct kept *k, uint32_t idle, enum who from, uint8_t flags)
{
	uint8_t proto = k->key[0].client.proto;
	int v6 = !addr_is_v4(&k->key[0].client.addr);
	uint32_t then;
	unsigned port;

	do {
		then = now();
		put_back(k, then - idle);
		port = from == CLIENT ? client_sends(proto, flags, v6)
				      : app_sends(proto, flags, v6, PORT_AS_KNOWN);
	} while (now() != then); /* a second has passed meanwhile, maybe before the packet */
	return port;
}

/* --- what the agent sees --- */

struct look {
	int v6;
	bool forget;
	unsigned entries;
	bool lives;
};

static bool look_at(void *arg, const struct datapath_flow *f)
{
	struct look *l = arg;

	if (!addr_eq(&f->backend.addr, &w.addr[APP][l->v6]))
		return false; /* the other way round */
	assert_memory_equal(&f->asked.addr, &w.addr[SERVICE][l->v6], sizeof(f->asked.addr));
	assert_memory_equal(&f->client.addr, &w.addr[CLIENT][l->v6], sizeof(f->client.addr));
	assert_int_equal(ntohs(f->backend.port_be), APP_PORT);
	assert_int_equal(ntohs(f->asked.port_be), SERVICE_PORT);
	assert_int_equal(ntohs(f->client.port_be), CLIENT_PORT);
	assert_int_equal(ntohs(f->seen_port_be), PORT_AS_KNOWN);
	assert_int_equal(f->kind, AX_FLOW_SERVICE);
	l->entries++;
	l->lives = f->lives;
	return l->forget;
}

/* The flow as the agent sees it when it was idle for so long, and whether it is there no more when
 * that says so. */
static void check_agent(const struct kept *k, uint32_t idle, bool lives, bool forget)
{
	uint8_t proto = k->key[0].client.proto;
	struct look l;
	uint32_t then;
	int n;

	do {
		then = now();
		put_back(k, then - idle);
		l = (struct look){.v6 = !addr_is_v4(&k->key[0].client.addr), .forget = forget};
		n = datapath_flows_each(own.dp, proto, look_at, &l);
	} while (now() != then);
	assert_int_equal(l.entries, 2);
	assert_int_equal(l.lives, lives);
	assert_int_equal(n, lives && forget ? 1 : 0);
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		assert_int_equal(dataplane_count(maps[i], sizeof(k->key[0])),
				 !forget && strcmp(maps[i], k->map) == 0 ? 2 : 0);
}

/* --- tests --- */

static void play(const struct row *row, int v6)
{
	unsigned port = 0;

	forget_all();
	for (const struct step *s = row->steps; s->flags; s++) {
		if (s->from == APP) {
			assert_int_equal(app_sends(row->proto, s->flags, v6, port), CLIENT_PORT);
			continue;
		}
		if (port)
			assert_int_equal(client_sends(row->proto, s->flags, v6), port);
		else
			port = client_sends(row->proto, s->flags, v6);
		assert_in_range(port, FIRST_PORT, UINT16_MAX);
	}
}

/* What has begun anew has nothing of the one before it, and goes on. */
static void assert_new(uint8_t proto, unsigned port, int v6)
{
	assert_in_range(port, FIRST_PORT, UINT16_MAX);
	assert_int_equal(app_sends(proto, SYN | ACK, v6, port), CLIENT_PORT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(client_sends(proto, ACK, v6), port);
		assert_int_equal(app_sends(proto, PSH | ACK, v6, port), CLIENT_PORT);
	}
	assert_int_equal(client_sends(proto, SYN, v6), port);
}

static void check_row(const struct row *row, int v6)
{
	bool udp = row->proto == IPPROTO_UDP;
	struct kept k;
	unsigned port;

	play(row, v6);
	keep(row->map, &k);
	assert_int_equal(after(&k, row->life, CLIENT, ACK), PORT_AS_KNOWN);
	assert_int_equal(after(&k, row->life, APP, ACK), CLIENT_PORT);
	assert_int_equal(after(&k, row->life + 1, APP, ACK), NOBODY);
	port = after(&k, row->life + 1, CLIENT, ACK);
	if (udp) {
		assert_new(row->proto, port, v6);
	} else { /* the app gets it from a port that it does not know, and says so */
		assert_in_range(port, FIRST_PORT, UINT16_MAX);
		assert_int_equal(app_sends(row->proto, RST, v6, port), CLIENT_PORT);
		assert_int_equal(after(&k, row->life + 1, CLIENT, RST), NOBODY);
	}
	for (int forget = 0; forget < 2; forget++) {
		check_agent(&k, row->life, true, forget);
		check_agent(&k, row->life + 1, false, forget);
	}
	/* a SYN ends nothing that goes on */
	for (uint32_t idle = 0; idle <= row->life; idle += row->life) {
		port = after(&k, idle, CLIENT, SYN);
		if (row->closed)
			assert_new(row->proto, port, v6);
		else
			assert_int_equal(port, PORT_AS_KNOWN);
	}
	assert_new(row->proto, after(&k, row->life + 1, CLIENT, SYN), v6);
}

static void test_row4(void **state)
{
	check_row(*state, 0);
}

static void test_row6(void **state)
{
	check_row(*state, 1);
}

/* A flow that is used is as young as its last packet, in both directions. */
static void test_packets_keep_a_flow(void **state)
{
	struct kept k, later;

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i / 2];
		enum who from = i % 2 ? APP : CLIENT;

		if (row->closed || strcmp(row->map, "new_flows") == 0)
			continue; /* another packet makes it another row's */
		play(row, 0);
		keep(row->map, &k);
		assert_int_not_equal(after(&k, row->life, from, ACK), NOBODY);
		keep(row->map, &later);
		for (int d = 0; d < 2; d++)
			assert_in_range(now() - later.flow[d].seen, 0, 10);
	}
}

/* Writes a flow of the same client to another backend, as a packet does that comes while the agent
 * forgets the one before. */
static bool begin_anew(void *arg, const struct datapath_flow *f)
{
	struct kept *k = arg;
	autoclose int map = dataplane_map(k->map);

	if (!addr_eq(&f->backend.addr, &w.addr[APP][0]))
		return false; /* the other way round */
	if (dataplane_count(k->map, sizeof(k->key[0])))
		return true; /* of its two entries that is the first to come */
	for (int i = 0; i < 2; i++)
		assert_int_equal(bpf_map_update_elem(map, &k->key[i], &k->flow[i], BPF_ANY), 0);
	return true;
}

/* What is forgotten is the flow to that backend: the one that has begun in its place meanwhile, to
 * another one, stays, and is not counted as a second one. */
static void test_what_began_meanwhile_stays(void **state)
{
	struct kept k, anew;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].closed)
			continue;
		play(&rows[i], 0);
		keep(rows[i].map, &k);
		put_back(&k, now());
		anew = k;
		for (int d = 0; d < 2; d++) {
			if (addr_eq(&anew.key[d].peer.addr, &w.addr[APP][0]))
				anew.key[d].peer.addr = w.addr[NET][0];
			else
				anew.flow[d].to.addr = w.addr[NET][0];
		}
		assert_int_equal(
			datapath_flows_each(own.dp, k.key[0].client.proto, begin_anew, &anew), 1);
		assert_int_equal(dataplane_count(k.map, sizeof(k.key[0])), 2);
	}
}

/* --- the world --- */

static int tell_service(int v6, uint8_t proto)
{
	const struct ax_endpoint ep = {
		.addr = w.addr[SERVICE][v6], .port_be = htons(SERVICE_PORT), .proto = proto};
	const struct datapath_service s = {.strategy = AX_STRATEGY_ROUND_ROBIN};
	const struct datapath_backend b = {
		.be = {.addr = w.addr[APP][v6], .port_be = htons(APP_PORT), .app = APP + 1},
		.weight = 1};

	return datapath_service_set(own.dp, &ep, &s, &b, 1);
}

static int tell_kernel(void)
{
	const struct ax_vip app = {.kind = AX_VIP_APP, .id = 1, .party = 1, .ifindex = LO};
	const struct ax_vip service = {.kind = AX_VIP_SERVICE,
				       .flags = AX_VIP_SERVICES | AX_VIP_BY_DEVICE};
	struct ax_ctl c = {.service_ifindex = LO, .ephemeral_first = 32768, .host_access = true};
	int r = 0;

	for (int v6 = 0; v6 < 2 && !r; v6++) {
		for (int i = 0; i < WHO && !r; i++)
			r = addr_parse(addresses[i][v6], &w.addr[i][v6]);
		r = r ? r : datapath_vip_set(own.dp, &w.addr[APP][v6], &app);
		r = r ? r : datapath_vip_set(own.dp, &w.addr[SERVICE][v6], &service);
		r = r ? r : tell_service(v6, IPPROTO_TCP);
		r = r ? r : tell_service(v6, IPPROTO_UDP);
	}
	c.host4 = w.addr[NET][0];
	c.host6 = w.addr[NET][1];
	return r ? r : datapath_ctl_set(own.dp, &c);
}

static int setup(void **state)
{
	if (dataplane_setup_open(state))
		return -1;
	w.to_service = datapath_program_fd(own.dp, "ax_to_service");
	w.from_app = datapath_program_fd(own.dp, "ax_from_app");
	return w.to_service < 0 || w.from_app < 0 || tell_kernel() ? -1 : 0;
}

int main(void)
{
	static struct CMUnitTest tests[2 * ARRAY_SIZE(rows) + 2];
	static char names[ARRAY_SIZE(tests)][100];
	size_t n = 0;

	if (own_namespaces())
		return 1;
	for (; n < 2 * ARRAY_SIZE(rows); n++) {
		const struct row *row = &rows[n / 2];

		snprintf(names[n], sizeof(names[n]), "%s%s (IPv%d)",
			 row->proto == IPPROTO_UDP ? "UDP: " : "", row->name, n % 2 ? 6 : 4);
		tests[n] = (struct CMUnitTest){.name = names[n],
					       .test_func = n % 2 ? test_row6 : test_row4,
					       .initial_state = (void *)(uintptr_t)row};
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_packets_keep_a_flow);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_what_began_meanwhile_stays);
	return cmocka_run_group_tests(tests, setup, dataplane_teardown);
}
