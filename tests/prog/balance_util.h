/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the balancer's tests: a rule list on a veth of a namespace of the test's own, and packets
 * that are run through the loaded program, counting and remembering as if they had come in.
 *
 * vb0 has 10.9.0.1/24 and fd09::1/64, vc0 10.8.0.1/24 and fd08::1/64 and a smaller MTU. Hosts .11
 * to .19 of all of them are known neighbours; their MAC addresses end in 11 to 19.
 */
#ifndef AX_TESTS_BALANCE_UTIL_H
#define AX_TESTS_BALANCE_UTIL_H

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include <bpf/bpf.h>

#include "balance.h"
#include "config/config.h"
#include "config/rule_file.h"
#include "datapath/xdp.h"
#include "instance_util.h"
#include "packet/text.h"

#define IFNAME	"vb0"
#define OTHER	"vc0"
#define MTU	1500
#define SMALL	1300
#define OUT_MAX 16384

static struct instance inst;
static struct datapath_xdp maps;
static struct generation generation;

/* --- setting up --- */

static inline int sh(const char *command)
{
	return system(command) ? -1 : 0;
}

static inline int own_links(void)
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

static inline int setup(void **state)
{
	char cgroup[4096];

	(void)state;
	datapath_xdp_init(&maps);
	generation = (struct generation){.prog = -1, .arena = -1};
	if (own_namespaces() || own_instance(&inst, cgroup))
		return -1;
	return own_links();
}

static inline int teardown(void **state)
{
	struct error e;

	(void)state;
	generation_close(&generation);
	datapath_xdp_close(&maps);
	xdp_unload(&inst, IFNAME, &e);
	return 0;
}

static inline void load_list(const struct rule_list *l)
{
	const struct xdp_load_options options = {.force = true};
	struct error e = {0};
	char dir[256];

	generation_close(&generation);
	datapath_xdp_close(&maps);
	if (xdp_apply(&inst, IFNAME, l, &options, &e) < 0 ||
	    datapath_xdp_dir(&inst, IFNAME, false, dir, sizeof(dir), &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(datapath_xdp_open(dir, &maps), 0);
	assert_int_equal(generation_get(&maps, AX_JUMP_CURRENT, &generation), 0);
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

static inline void load_text(const char *text)
{
	struct rule_list l = read_list(text);

	load_list(&l);
	rule_list_free(&l);
}

/* Everything anew: no flows, no counts. */
static inline void load_afresh(const char *text)
{
	struct error e;

	xdp_unload(&inst, IFNAME, &e);
	load_text(text);
}

/* --- packets --- */

struct result {
	uint32_t action;
	uint16_t pad; /* so that IP headers are aligned */
	uint8_t frame[OUT_MAX];
	size_t len;
};

static inline uint64_t reason_count(enum ax_reason reason)
{
	uint64_t v[256], sum = 0;
	uint32_t key = reason;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	assert_int_equal(bpf_map_lookup_elem(maps.map[XDP_MAP_REASON_COUNTS], &key, v), 0);
	for (long i = 0; i < cpus && i < 256; i++)
		sum += v[i];
	return sum;
}

static inline struct result run_frame(const void *frame, size_t len)
{
	struct result r = {.action = ~0u};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = (uint32_t)len,
		    .data_out = r.frame, .data_size_out = sizeof(r.frame), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(generation.prog, &o), 0);
	r.action = o.retval;
	r.len = o.data_size_out;
	return r;
}

static inline struct result run(const char *text)
{
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	size_t len;

	if (packet_text_parse(text, &frame, &len, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return run_frame(frame, len);
}

static inline struct ax_real_count real_count(uint32_t number)
{
	struct ax_real_count v[256], sum = {0};
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	assert_int_equal(bpf_map_lookup_elem(maps.map[XDP_MAP_REAL_COUNTS], &number, v), 0);
	for (long i = 0; i < cpus && i < 256; i++) {
		sum.packets += v[i].packets;
		sum.bytes += v[i].bytes;
		sum.flows += v[i].flows;
	}
	return sum;
}

static inline size_t entries(enum xdp_map map, size_t key_size)
{
	uint8_t key[64], next[64];
	const void *from = NULL;
	size_t n = 0;

	assert_true(key_size <= sizeof(key));
	while (!bpf_map_get_next_key(maps.map[map], from, next)) {
		memcpy(key, next, key_size);
		from = key;
		n++;
	}
	return n;
}

/* A packet that fails with this action, counted under this reason. */
static inline void assert_fails(const char *text, enum ax_reason reason, uint32_t action)
{
	uint64_t before = reason_count(reason);
	struct result r = run(text);

	if (r.action != action || reason_count(reason) != before + 1)
		fail_msg("%s: action %u, reason %s counted %d times", text, r.action,
			 ax_reason_names[reason], (int)(reason_count(reason) - before));
}

/* --- floods --- */

/* A map of the generation's stage. */
static inline int map_by_name(const char *name)
{
	struct bpf_map_info mi;
	uint32_t ids[64], len = sizeof(struct bpf_prog_info), id;
	struct bpf_prog_info pi = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	uint32_t key = AX_JUMPS + generation.layout.generation % AX_STAGE_SETS * AX_STAGES +
		       AX_STAGE_BALANCE;
	autoclose int prog = -1;

	assert_int_equal(bpf_map_lookup_elem(maps.map[XDP_MAP_JUMPS], &key, &id), 0);
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

/* As if so many new flows had come in the latest window that any CPU has seen. */
static inline void set_window(int map, uint64_t n)
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

static inline uint64_t sum_up(const void *data, size_t len)
{
	const uint8_t *b = data;
	uint64_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)b[i] << 8 | b[i + 1];
	return len & 1 ? sum + ((uint32_t)b[len - 1] << 8) : sum;
}

static inline bool sums_to_zero(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xffff);
	return sum == 0xffff;
}

/* The transport checksum of a whole packet. */
static inline bool l4_sum_right(const uint8_t *l4, size_t len, uint8_t proto, const void *addrs,
				size_t addrs_len)
{
	uint64_t pseudo = sum_up(addrs, addrs_len) + len + proto;

	if (proto == IPPROTO_UDP && !l4[6] && !l4[7])
		return addrs_len == 8; /* IPv4 may leave it out */
	if (proto == IPPROTO_ICMP)
		pseudo = 0;
	else if (proto != IPPROTO_TCP && proto != IPPROTO_UDP && proto != IPPROTO_ICMPV6)
		return true;
	return sums_to_zero(pseudo + sum_up(l4, len));
}

/* Whether all checksums of an IP packet are right, of a quoted IPv4 header too. */
static inline bool ip_sums_right(const uint8_t *ip, size_t len)
{
	const struct iphdr *v4 = (const void *)ip;
	const struct ipv6hdr *v6 = (const void *)ip;

	if (v4->version == 6)
		return l4_sum_right(ip + 40, ntohs(v6->payload_len), v6->nexthdr, &v6->saddr, 32);
	if (len < 20 || !sums_to_zero(sum_up(ip, v4->ihl * 4u)))
		return false;
	if (v4->frag_off & htons(0x3fff))
		return true;
	if (v4->protocol == IPPROTO_ICMP && (ip[20] == 3 || ip[20] == 11) &&
	    !sums_to_zero(sum_up(ip + 28, 20)))
		return false;
	return l4_sum_right(ip + v4->ihl * 4, ntohs(v4->tot_len) - v4->ihl * 4u, v4->protocol,
			    &v4->saddr, 8);
}

static inline void assert_sums(const struct result *r, size_t l3)
{
	if (ip_sums_right(r->frame + l3, r->len - l3))
		return;
	for (size_t i = 0; i < r->len && i < 160; i++)
		print_error("%02x%s", r->frame[i], i % 16 == 15 ? "\n" : " ");
	fail_msg("a checksum is wrong");
}

/* The packet's line, without MAC addresses. */
static inline void assert_packet(const struct result *r, const char *expected)
{
	autofree char *line = packet_line(r->frame, r->len, false);

	assert_non_null(line);
	assert_string_equal(line, expected);
	assert_sums(r, ETH_HLEN);
}

/* From which port the backend was asked. */
static inline unsigned source_port(const struct result *r)
{
	bool v6 = r->frame[ETH_HLEN] >> 4 == 6;
	const uint8_t *l4 = r->frame + ETH_HLEN + (v6 ? 40 : 20);

	return (unsigned)l4[0] << 8 | l4[1];
}

static inline struct ax_addr dst_of(const struct result *r)
{
	const struct iphdr *v4 = (const void *)(r->frame + ETH_HLEN);
	const struct ipv6hdr *v6 = (const void *)v4;
	struct in6_addr a;

	if (v4->version == 4)
		return addr_from_v4(v4->daddr);
	memcpy(&a, &v6->daddr, sizeof(a));
	return addr_from_v6(&a);
}

/* The backend's last byte as it is written (11 to 19, in hex for IPv6). */
static inline unsigned backend_of(const struct result *r)
{
	struct ax_addr a = dst_of(r);
	char text[ADDR_STRLEN], *dot;

	addr_format(&a, text);
	dot = strrchr(text, addr_is_v4(&a) ? '.' : ':');
	assert_non_null(dot);
	return (unsigned)atoi(dot + 1);
}

static inline void assert_macs(const struct result *r, uint8_t last)
{
	const uint8_t to[6] = {2, 0, 0, 0, 0, last};

	assert_memory_equal(r->frame, to, 6);
}

#endif
