// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/balance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balance.h"
#include "iface/iface.h"
#include "packet/text.h"
#include "tests/lib/checksums.h"
#include "tests/lib/instance.h"
#include "tests/lib/rule_lists.h"

struct balance_world balance;

/* --- setting up --- */

int sh(const char *command)
{
	return system(command) ? -1 : 0;
}

static int own_links(void)
{
	char line[300];

	if (sh("ip link add vb0 type veth peer name vb1 && ip link add vc0 type veth peer name vc1 "
	       "&& ip link set vb1 up && ip link set vc1 up && ip link set lo up && "
	       "ip link set vb0 up && ip link set vc0 up mtu 1300") ||
	    sh("ip addr add 10.9.0.1/24 dev vb0 && ip addr add 10.8.0.1/24 dev vc0 && "
	       "ip addr add fd09::1/64 dev vb0 nodad && ip addr add fd08::1/64 dev vc0 nodad") ||
	    sh("echo 1 >/proc/sys/net/ipv4/conf/all/forwarding && "
	       "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"))
		return -1;
	for (int i = 11; i < 20; i++) {
		snprintf(line, sizeof(line),
			 "for n in 8:vc0 9:vb0; do"
			 " ip neigh add 10.${n%%:*}.0.%d lladdr 02:00:00:00:00:%d dev ${n#*:} &&"
			 " ip neigh add fd0${n%%:*}::%d lladdr 02:00:00:00:00:%d dev ${n#*:} ||"
			 " exit 1; done",
			 i, i, i, i);
		if (sh(line))
			return -1;
	}
	/* clients are behind a router; some are nowhere */
	return sh("ip route add 10.1.0.0/16 via 10.9.0.19 && "
		  "ip route add fd01::/16 via fd09::19 && ip route add unreachable 10.3.0.0/16");
}

int balance_setup(void **state)
{
	char cgroup[4096];

	(void)state;
	datapath_xdp_init(&balance.maps);
	balance.generation = (struct generation){.prog = -1, .arena = -1};
	if (own_namespaces() || own_instance(&balance.inst, cgroup))
		return -1;
	return own_links();
}

int balance_teardown(void **state)
{
	struct error e;

	(void)state;
	generation_close(&balance.generation);
	datapath_xdp_close(&balance.maps);
	xdp_unload(&balance.inst, IFNAME, &e);
	return 0;
}

void balance_load_list(const struct rule_list *l)
{
	const struct xdp_load_options options = {.force = true};
	struct error e = {0};
	char dir[256];

	generation_close(&balance.generation);
	datapath_xdp_close(&balance.maps);
	if (xdp_apply(&balance.inst, IFNAME, l, &options, &e) < 0 ||
	    datapath_xdp_dir(&balance.inst, IFNAME, false, dir, sizeof(dir), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(datapath_xdp_open(dir, &balance.maps), 0);
	assert_int_equal(generation_get(&balance.maps, AX_JUMP_CURRENT, &balance.generation), 0);
}

void balance_load(const char *text)
{
	struct rule_list l = rule_list_of(text);

	balance_load_list(&l);
	rule_list_free(&l);
}

void balance_load_afresh(const char *text)
{
	struct error e;

	xdp_unload(&balance.inst, IFNAME, &e);
	balance_load(text);
}

/* --- packets --- */

uint64_t balance_reason_count(enum ax_reason reason)
{
	uint64_t v[256], sum = 0;
	uint32_t key = reason;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	assert_int_equal(bpf_map_lookup_elem(balance.maps.map[XDP_MAP_REASON_COUNTS], &key, v), 0);
	for (long i = 0; i < cpus && i < 256; i++)
		sum += v[i];
	return sum;
}

struct result balance_run_frame(const void *frame, size_t len)
{
	struct result r = {.action = ~0u};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = (uint32_t)len,
		    .data_out = r.frame, .data_size_out = sizeof(r.frame), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(balance.generation.prog, &o), 0);
	r.action = o.retval;
	r.len = o.data_size_out;
	return r;
}

struct result balance_run(const char *text)
{
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	size_t len;

	if (packet_text_parse(text, &frame, &len, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return balance_run_frame(frame, len);
}

struct ax_real_count balance_real_count(uint32_t number)
{
	struct ax_real_count v[256], sum = {0};
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	assert_int_equal(bpf_map_lookup_elem(balance.maps.map[XDP_MAP_REAL_COUNTS], &number, v), 0);
	for (long i = 0; i < cpus && i < 256; i++) {
		sum.packets += v[i].packets;
		sum.bytes += v[i].bytes;
		sum.flows += v[i].flows;
	}
	return sum;
}

size_t balance_entries(enum xdp_map map, size_t key_size)
{
	uint8_t key[64], next[64];
	const void *from = NULL;
	size_t n = 0;

	assert_true(key_size <= sizeof(key));
	while (!bpf_map_get_next_key(balance.maps.map[map], from, next)) {
		memcpy(key, next, key_size);
		from = key;
		n++;
	}
	return n;
}

void balance_forget(enum xdp_map map, size_t key_size)
{
	uint8_t key[64], next[64];
	bool more = !bpf_map_get_next_key(balance.maps.map[map], NULL, next);

	assert_true(key_size <= sizeof(key));
	/* one ahead: a search for the first key looks at all buckets that are empty by now */
	while (more) {
		memcpy(key, next, key_size);
		more = !bpf_map_get_next_key(balance.maps.map[map], key, next);
		assert_int_equal(bpf_map_delete_elem(balance.maps.map[map], key), 0);
	}
}

void assert_fails(const char *text, enum ax_reason reason, uint32_t action)
{
	uint64_t before = balance_reason_count(reason);
	struct result r = balance_run(text);

	if (r.action != action || balance_reason_count(reason) != before + 1)
		fail_msg("%s: action %u, reason %s counted %d times", text, r.action,
			 rule_reasons[reason].name, (int)(balance_reason_count(reason) - before));
}

/* --- floods --- */

int balance_map(const char *name)
{
	struct bpf_map_info mi;
	uint32_t ids[64], len = sizeof(struct bpf_prog_info), id;
	struct bpf_prog_info pi = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	uint32_t key = AX_JUMPS + balance.generation.layout.generation % AX_STAGE_SETS * AX_STAGES +
		       AX_STAGE_BALANCE;
	autoclose int prog = -1;

	assert_int_equal(bpf_map_lookup_elem(balance.maps.map[XDP_MAP_JUMPS], &key, &id), 0);
	prog = bpf_prog_get_fd_by_id(id);
	assert_int_equal(bpf_obj_get_info_by_fd(prog, &pi, &len), 0);
	for (uint32_t i = 0; i < pi.nr_map_ids; i++) {
		autoclose int map = bpf_map_get_fd_by_id(ids[i]);

		memset(&mi, 0, sizeof(mi));
		len = sizeof(mi);
		assert_int_equal(bpf_obj_get_info_by_fd(map, &mi, &len), 0);
		if (streq(mi.name, name))
			return take_fd(&map);
	}
	return -ENOENT;
}

struct window {
	uint64_t window, n;
};

void balance_set_window(int map, uint64_t n)
{
	struct window v[256], latest = {0};
	uint32_t key = 0;

	assert_int_equal(bpf_map_lookup_elem(map, &key, v), 0);
	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++)
		latest = v[i].window > latest.window ? v[i] : latest;
	latest.n = n;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = latest;
	assert_int_equal(bpf_map_update_elem(map, &key, v, 0), 0);
}

/* --- what is in them --- */

void assert_sums(const struct result *r, size_t l3)
{
	if (ip_sums_right(r->frame + l3, r->len - l3))
		return;
	for (size_t i = 0; i < r->len && i < 160; i++)
		print_error("%02x%s", r->frame[i], i % 16 == 15 ? "\n" : " ");
	fail_msg("a checksum is wrong");
}

void assert_packet(const struct result *r, const char *expected)
{
	autofree char *line = packet_line(r->frame, r->len, false);

	assert_non_null(line);
	assert_string_equal(line, expected);
	assert_sums(r, ETH_HLEN);
}

unsigned source_port(const struct result *r)
{
	bool v6 = r->frame[ETH_HLEN] >> 4 == 6;
	const uint8_t *l4 = r->frame + ETH_HLEN + (v6 ? 40 : 20);

	return (unsigned)l4[0] << 8 | l4[1];
}

struct ax_addr dst_of(const struct result *r)
{
	const struct iphdr *v4 = (const void *)(r->frame + ETH_HLEN);
	const struct ipv6hdr *v6 = (const void *)v4;
	struct in6_addr a;

	if (v4->version == 4)
		return addr_from_v4(v4->daddr);
	memcpy(&a, &v6->daddr, sizeof(a));
	return addr_from_v6(&a);
}

unsigned backend_of(const struct result *r)
{
	struct ax_addr a = dst_of(r);
	char text[ADDR_STRLEN], *dot;

	addr_format(&a, text);
	dot = strrchr(text, addr_is_v4(&a) ? '.' : ':');
	assert_non_null(dot);
	return (unsigned)atoi(dot + 1);
}

void assert_macs(const struct result *r, uint8_t last)
{
	const uint8_t to[6] = {2, 0, 0, 0, 0, last};

	assert_memory_equal(r->frame, to, 6);
}
