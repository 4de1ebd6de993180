/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* Frames that are redirected but not sent count under the rule that they belong to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>

#include "net/ethtool.h"
#include "tests/lib/instance.h"
#include "tests/lib/netns.h"
#include "xdp.h"

#define FRAME	 100
#define LONGER	 2000 /* than the far end's MTU, not than the target's */
#define COUNTERS 4
#define NEVER	 1000
#define PLAIN	 1 /* counters */
#define ODD	 2

static struct {
	int here;
	struct nl *nl;
	unsigned source, target;
	struct bpf_object *obj;
	int counts, redirected, devices, cpus;
	struct bpf_link *links[4];
	struct ax_redirect frame; /* where the filter below sends them */
} w;

/* --- a filter that redirects, in the kernel's own instructions --- */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define MOV(d, s)	  INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, i)	  INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, (int)(i))
#define OP(o, d, i)	  INSN(BPF_ALU64 | (o) | BPF_K, d, 0, 0, i)
#define MAP(d, fd)	  INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
#define CALL(f)		  INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define LOAD(d, s, o)	  INSN(BPF_LDX | BPF_MEM | BPF_W, d, s, o, 0)
#define STORE(z, d, o, s) INSN(BPF_STX | BPF_MEM | (z), d, s, o, 0)

/*
 * Enters each frame as the filter program does, and redirects it to entry 0 of `map`, or with a map
 * of -1 to the interface `number`. Frame number `odd` belongs to another rule and is made longer.
 */
static int redirecting(int map, unsigned number, unsigned odd)
{
	const struct bpf_insn enter[] = {
		MOV(6, 1),
		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
		MOV(2, 10),
		OP(BPF_ADD, 2, -4),
		MAP(1, w.redirected),
		CALL(BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0),
		SET(0, XDP_ABORTED),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		MOV(7, 0),
		LOAD(8, 7, 0),
		MOV(1, 8),
		OP(BPF_ADD, 1, 1),
		STORE(BPF_W, 7, 0, 1),
		SET(9, PLAIN),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 8, 0, 1, (int)odd),
		SET(9, ODD),
		OP(BPF_AND, 8, AX_REDIRECTED - 1),
		OP(BPF_MUL, 8, sizeof(struct ax_redirect)),
		INSN(BPF_ALU64 | BPF_ADD | BPF_X, 7, 8, 0, 0),
		SET(1, w.frame.to),
		STORE(BPF_W, 7, offsetof(struct ax_redirected, last), 1),
		STORE(BPF_H, 7, offsetof(struct ax_redirected, last) + 4, 9),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 9, 0, 3, ODD),
		MOV(1, 6),
		SET(2, LONGER - FRAME),
		CALL(BPF_FUNC_xdp_adjust_tail),
	};
	const struct bpf_insn to_map[] = {
		MAP(1, map),
		SET(2, 0),
		SET(3, 0),
		CALL(BPF_FUNC_redirect_map),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	const struct bpf_insn to_device[] = {
		SET(1, number),
		SET(2, 0),
		CALL(BPF_FUNC_redirect),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	struct bpf_insn all[64];
	size_t n = ARRAY_SIZE(enter);

	memcpy(all, enter, sizeof(enter));
	if (map >= 0) {
		memcpy(all + n, to_map, sizeof(to_map));
		n += ARRAY_SIZE(to_map);
	} else {
		memcpy(all + n, to_device, sizeof(to_device));
		n += ARRAY_SIZE(to_device);
	}
	return bpf_prog_load(BPF_PROG_TYPE_XDP, "redirecting", "GPL", all, n, NULL);
}

/* Sends frames, as if they came in by an interface, in one poll. */
static int send_frames(int prog, unsigned ifindex, unsigned n)
{
	uint8_t data[FRAME] = {[12] = 0x88, [13] = 0xb5};
	struct xdp_md ctx = {.data_end = sizeof(data), .ingress_ifindex = ifindex};

	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = data, .data_size_in = sizeof(data),
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .repeat = (int)n, .batch_size = n,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	return bpf_prog_test_run_opts(prog, &o) ? -errno : 0;
}

static uint64_t failed(uint32_t counter)
{
	struct ax_rule_count v[256];
	uint64_t sum = 0;
	int cpus = libbpf_num_possible_cpus();

	assert_in_range(cpus, 1, 256);
	assert_return_code(bpf_map_lookup_elem(w.counts, &counter, v), errno);
	for (int i = 0; i < cpus; i++)
		sum += v[i].failed;
	return sum;
}

static void forget(void)
{
	static struct ax_redirected none[256];
	static struct ax_rule_count zero[256];
	uint32_t key = 0;

	assert_return_code(bpf_map_update_elem(w.redirected, &key, none, 0), errno);
	for (uint32_t i = 0; i < COUNTERS; i++)
		assert_return_code(bpf_map_update_elem(w.counts, &i, zero, 0), errno);
}

static void expect(int prog, unsigned n, uint64_t plain, uint64_t odd)
{
	assert_return_code(prog, errno);
	forget();
	assert_return_code(send_frames(prog, w.source, n), 0);
	assert_int_equal(failed(PLAIN), plain);
	assert_int_equal(failed(ODD), odd);
	assert_int_equal(failed(0) + failed(3), 0);
	close(prog);
}

static void to(enum ax_redirect_to kind, unsigned number)
{
	w.frame.to = (uint32_t)kind << AX_REDIRECT_TO_SHIFT | number;
}

/* --- the tests --- */

/* A frame that is too long for the far end, and those behind it in its bulk of 16. */
static void last_of_a_bulk(void **state)
{
	(void)state;
	to(AX_TO_DEVICE, 0);
	expect(redirecting(w.devices, 0, NEVER), 20, 0, 0);
	expect(redirecting(w.devices, 0, 7), 20, 8, 1);
	expect(redirecting(w.devices, 0, 15), 20, 0, 1);
	expect(redirecting(w.devices, 0, 16), 20, 3, 1);
	expect(redirecting(w.devices, 0, 40), 41, 0, 1);
	expect(redirecting(w.devices, 0, 0), 1, 0, 1);
	to(AX_TO_IFINDEX, w.target);
	expect(redirecting(-1, w.target, 7), 20, 8, 1);
}

static void refused_at_once(void **state)
{
	(void)state;
	assert_int_equal(system("ip link set dev axt-to down"), 0);
	to(AX_TO_DEVICE, 0);
	expect(redirecting(w.devices, 0, 7), 20, 19, 1);
	to(AX_TO_IFINDEX, w.target);
	expect(redirecting(-1, w.target, 7), 20, 19, 1);
	/* What the rules' program did not redirect is not theirs. */
	expect(redirecting(w.devices, 0, 7), 20, 0, 0);
	assert_int_equal(system("ip link set dev axt-to up"), 0);
	assert_return_code(nl_link_wait_up(w.nl, w.target, 1000), 0);
}

/* Without NAPI at the far end nothing is taken there; since Linux 6.3 that is refused earlier. */
static void no_napi(void **state)
{
	(void)state;
	assert_int_equal(system("ethtool -K axt-far gro off"), 0);
	to(AX_TO_DEVICE, 0);
	expect(redirecting(w.devices, 0, NEVER), 20, 20, 0);
	assert_int_equal(system("ethtool -K axt-far gro on"), 0);
	expect(redirecting(w.devices, 0, NEVER), 20, 0, 0);
}

/* A CPU's queue of 4 takes no more before its thread runs. */
static void full_queue(void **state)
{
	struct bpf_cpumap_val queue = {.qsize = 4};
	uint32_t key = 0;
	int prog;

	(void)state;
	assert_return_code(bpf_map_update_elem(w.cpus, &key, &queue, 0), errno);
	to(AX_TO_CPU, 0);
	prog = redirecting(w.cpus, 0, NEVER);
	assert_return_code(prog, errno);
	forget();
	assert_return_code(send_frames(prog, w.source, 16), 0);
	/* The first bulk of 8 finds room for 4, the second one for what was taken out by then. */
	assert_in_range(failed(PLAIN), 4, 12);
	close(prog);
}

static void other_interfaces(void **state)
{
	int prog;

	(void)state;
	to(AX_TO_DEVICE, 0);
	prog = redirecting(w.devices, 0, 7);
	assert_return_code(prog, errno);
	forget();
	assert_return_code(send_frames(prog, 1, 20), 0);
	assert_int_equal(failed(PLAIN) + failed(ODD), 0);
	close(prog);
}

static uint32_t map_id(int fd)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	assert_return_code(bpf_obj_get_info_by_fd(fd, &info, &len), errno);
	return info.id;
}

static void set_constants(struct bpf_object *obj)
{
	struct ax_watched watched = {
		.ifindex = w.source, .devices = map_id(w.devices), .cpus = map_id(w.cpus)};
	struct bpf_map *map;
	uint64_t cookie;

	assert_return_code(netns_cookie(w.here, &cookie), 0);
	watched.netns_cookie = cookie;
	bpf_object__for_each_map (map, obj)
		if (strstr(bpf_map__name(map), ".rodata"))
			assert_return_code(
				bpf_map__set_initial_value(map, &watched, sizeof(watched)), 0);
}

static int load(void)
{
	static const char *const programs[] = {"ax_redirect_err", "ax_devmap_xmit", "ax_bulk_tx",
					       "ax_cpumap_enqueue"};
	const char *out = getenv("OUT");
	uint32_t key = 0;
	char path[4096];

	snprintf(path, sizeof(path), "%s/xdp/failures.bpf.o", out ? out : ".output/gcc");
	w.obj = bpf_object__open_file(path, NULL);
	if (!w.obj) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	set_constants(w.obj);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(w.obj, "rule_counts"), COUNTERS);
	if (bpf_object__load(w.obj))
		return -1;
	assert_return_code(bpf_map_update_elem(bpf_object__find_map_fd_by_name(w.obj, "ifindexes"),
					       &key, &w.target, 0),
			   errno);
	w.counts = bpf_object__find_map_fd_by_name(w.obj, "rule_counts");
	w.redirected = bpf_object__find_map_fd_by_name(w.obj, "redirected");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		w.links[i] =
			bpf_program__attach(bpf_object__find_program_by_name(w.obj, programs[i]));
		if (!w.links[i])
			return -1;
	}
	return 0;
}

static int setup(void **state)
{
	struct bpf_devmap_val target = {0};
	uint32_t key = 0;
	cpu_set_t one;

	(void)state;
	/* The frames of a poll are entered on one CPU. */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0 || own_namespaces() ||
	    system("ip link set lo up && "
		   "ip link add axt-from type veth peer name axt-src && "
		   "ip link add axt-to mtu 3000 type veth peer name axt-far mtu 1500 && "
		   "for i in axt-from axt-src axt-to axt-far; do "
		   "ip link set $i up || exit; done; ethtool -K axt-far gro on"))
		return -1;
	w.here = ns_current();
	w.source = if_nametoindex("axt-from");
	w.target = if_nametoindex("axt-to");
	if (nl_open(&w.nl) || nl_link_wait_up(w.nl, w.target, 1000))
		return -1;
	w.devices = bpf_map_create(BPF_MAP_TYPE_DEVMAP, "devices", 4, sizeof(target), 8, NULL);
	w.cpus = bpf_map_create(BPF_MAP_TYPE_CPUMAP, "cpus", 4, sizeof(struct bpf_cpumap_val), 1,
				NULL);
	target.ifindex = w.target;
	if (w.devices < 0 || w.cpus < 0 || bpf_map_update_elem(w.devices, &key, &target, 0))
		return -1;
	return load();
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(w.links); i++)
		bpf_link__destroy(w.links[i]);
	bpf_object__close(w.obj);
	nl_closep(&w.nl);
	close(w.devices);
	close(w.cpus);
	close(w.here);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_of_a_bulk),   cmocka_unit_test(refused_at_once),
		cmocka_unit_test(no_napi),	    cmocka_unit_test(full_queue),
		cmocka_unit_test(other_interfaces),
	};

	return cmocka_run_group_tests_name("failures", tests, setup, teardown);
}
