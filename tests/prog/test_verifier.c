/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/*
 * What programs cost before they run: how many instructions the verifier follows (it is most of
 * what an agent's start takes, and more than ten times as slow in an emulated machine), and how
 * much stack they need by the count of Linux 6.1. A bound that is exceeded wants a function to be
 * made global (__weak __noinline), which the verifier judges once, rather than the bound to be
 * raised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "probe.h"

#define FOLLOWED_MAX 4000 /* of programs that are not named below */
#define FOLLOWED_ALL_MAX \
	300000 /* of the dataplane, which an agent loads at its start: clang 19 makes most */
#define STACK_MAX	  480 /* of 512 */
#define FUNCTIONS_MAX	  64
#define LOG_SIZE	  4096
#define SMALL_MAP_ENTRIES 64

/* Half as much again as the compiler needs that needs most of them: they differ, by up to a half.
 */
static const struct {
	const char *program;
	uint32_t max;
} followed_max[] = {
	{"ax_connect4", 29000},	     {"ax_connect6", 29000},	 {"ax_sendmsg4", 30000},
	{"ax_sendmsg6", 35000},	     {"ax_sk_lookup", 20000},	 {"ax_sock_ops", 25000},
	{"ax_post_bind4", 9000},     {"ax_post_bind6", 9000},	 {"ax_from_app", 36000},
	{"ax_to_app", 34000},	     {"ax_to_service", 38000},	 {"ax_from_outside", 46000},
	{"ax_from_balancer", 12000}, {"ax_explain", 6000},	 {"ax_to_outside", 14000},
	{"ax_filter", 34000},	     {"ax_reverse", 6000},	 {"ax_splice_msg", 6000},
	{"ax_from_nodes", 20000},    {"ax_judge_egress", 24000}, {"ax_tell_egress", 24000},
	{"ax_across", 11000},	     {"ax_route", 9500},	 {"ax_from_tunnel", 20000},
	{"ax_hold_syn", 6600},	     {"ax_held_syns", 6600},	 {"ax_function", 4500},
};

static uint32_t max_of(const char *program)
{
	for (size_t i = 0; i < ARRAY_SIZE(followed_max); i++) {
		if (streq(followed_max[i].program, program))
			return followed_max[i].max;
	}
	return FOLLOWED_MAX;
}

/* A program's functions, in the order in which they stand. */
struct functions {
	const struct bpf_insn *insns;
	int n_insns;
	int n;
	int start[FUNCTIONS_MAX];
	int depth[FUNCTIONS_MAX]; /* bytes of stack */
};

/* The instruction where a function begins that is called here, or that a helper is to call; or -1.
 */
static int called_at(const struct functions *f, int i)
{
	const struct bpf_insn *in = &f->insns[i];
	bool call = in->code == (BPF_JMP | BPF_CALL) && in->src_reg == BPF_PSEUDO_CALL;
	bool callback = in->code == (BPF_LD | BPF_IMM | BPF_DW) && in->src_reg == BPF_PSEUDO_FUNC;

	return call || callback ? i + in->imm + 1 : -1;
}

static int function_at(const struct functions *f, int start)
{
	for (int k = 0; k < f->n; k++) {
		if (f->start[k] == start)
			return k;
	}
	return -1;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void find_functions(struct functions *f, const struct bpf_program *p)
{
	*f = (struct functions){
		.insns = bpf_program__insns(p), .n_insns = (int)bpf_program__insn_cnt(p), .n = 1};
	for (int i = 0; i < f->n_insns; i++) {
		int at = called_at(f, i);

		if (at < 0 || function_at(f, at) >= 0)
			continue;
		assert_true(f->n < FUNCTIONS_MAX);
		f->start[f->n++] = at;
	}
	qsort(f->start, (size_t)f->n, sizeof(f->start[0]), by_number);
}

/* The verifier lists them: "stack depth 72+8+80". False: it has taken functions out, which
 * constants make dead. */
static bool read_depths(struct functions *f, const char *log)
{
	const char *p = strstr(log, "stack depth ");

	assert_non_null(p);
	p += strlen("stack depth ");
	for (int k = 0; k < f->n; k++) {
		char *end;

		f->depth[k] = (int)strtol(p, &end, 10);
		assert_ptr_not_equal(end, p);
		if ((*end == '+') != (k + 1 < f->n))
			return false;
		p = end + 1;
	}
	return true;
}

/* Of the longest chain of calls from there on. Linux before 6.8 rounds each frame up to 32 bytes.
 */
static int stack_from(const struct functions *f, int k)
{
	int end = k + 1 < f->n ? f->start[k + 1] : f->n_insns, deepest = 0;
	int own = f->depth[k] ? (f->depth[k] + 31) / 32 * 32 : 32;

	for (int i = f->start[k]; i < end; i++) {
		int at = called_at(f, i), below;

		if (at < 0)
			continue;
		below = stack_from(f, function_at(f, at));
		if (below > deepest)
			deepest = below;
	}
	return own + deepest;
}

static uint32_t number_behind(const char *log, const char *word)
{
	const char *p = strstr(log, word);

	assert_non_null(p);
	return (uint32_t)strtoul(p + strlen(word), NULL, 10);
}

static int too_much; /* what a test has found, all of which is told */

/* Loads one program of an object, alone. Returns how many instructions the verifier followed; 0:
 * this kernel has not got what the program wants, which is 'ax doctor's matter. */
static uint32_t judge(struct bpf_object *obj, const char *name)
{
	static char log[LOG_SIZE];
	struct functions f;
	struct bpf_program *p;
	struct bpf_map *map;
	uint32_t followed;
	int stack = 0, r;

	bpf_object__for_each_program (p, obj)
		bpf_program__set_autoload(p, streq(bpf_program__name(p), name));
	bpf_object__for_each_map (map, obj) {
		if (bpf_map__max_entries(map) > SMALL_MAP_ENTRIES &&
		    bpf_map__type(map) != BPF_MAP_TYPE_RINGBUF)
			bpf_map__set_max_entries(map, SMALL_MAP_ENTRIES);
	}
	p = bpf_object__find_program_by_name(obj, name);
	log[0] = 0;
	bpf_program__set_log_buf(p, log, sizeof(log));
	bpf_program__set_log_level(p, 4); /* nothing but the counts */
	r = bpf_object__load(obj);
	assert_int_not_equal(r, -E2BIG); /* too much to follow, or too much stack */
	if (r)
		return 0;
	followed = number_behind(log, "processed ");
	find_functions(&f, p);
	if (read_depths(&f, log))
		stack = stack_from(&f, 0);
	print_message("# %-18s %6u instructions followed, %3d bytes of stack\n", name, followed,
		      stack);
	if (followed > max_of(name)) {
		print_message("# %s: more than %u instructions\n", name, max_of(name));
		too_much++;
	}
	if (stack > STACK_MAX) {
		print_message("# %s: more than %d bytes of stack\n", name, STACK_MAX);
		too_much++;
	}
	return followed;
}

/* The object stands where this program was built. */
static void object_path(const char *name, char *ret, size_t size)
{
	char exe[PATH_MAX] = "", *end;

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	end = strstr(exe, "/tests/prog/");
	assert_non_null(end);
	assert_true(snprintf(ret, size, "%.*s/%s.bpf.o", (int)(end - exe), exe, name) < (int)size);
}

/* Returns the sum. */
static uint32_t judge_all(const char *name)
{
	struct bpf_object *all, *obj;
	struct bpf_program *p;
	char path[PATH_MAX];
	uint32_t sum = 0;

	too_much = 0;
	object_path(name, path, sizeof(path));
	all = bpf_object__open(path);
	assert_non_null(all);
	bpf_object__for_each_program (p, all) {
		obj = bpf_object__open(path);
		assert_non_null(obj);
		sum += judge(obj, bpf_program__name(p));
		bpf_object__close(obj);
	}
	bpf_object__close(all);
	assert_int_equal(too_much, 0);
	return sum;
}

static void test_dataplane(void **state)
{
	uint32_t sum = judge_all("dataplane");

	(void)state;
	print_message("# all: %u\n", sum);
	if (sum > FOLLOWED_ALL_MAX)
		fail_msg("the verifier followed %u instructions in all, more than %u", sum,
			 FOLLOWED_ALL_MAX);
}

static void test_splicing(void **state)
{
	(void)state;
	judge_all("splicing");
}

static void test_filter(void **state)
{
	(void)state;
	judge_all("filter");
}

static void test_filter_egress(void **state)
{
	(void)state;
	judge_all("xdp/filter_egress");
	judge_all("xdp/root_egress");
}

/* What looks at packets on their way to the filter. */
static void test_tap(void **state)
{
	(void)state;
	judge_all("xdp/tap");
}

/* What the interpreter of probes is told of those that it has, before it is loaded. */
static struct ax_probe_config *config_of(struct bpf_object *obj)
{
	const struct btf *btf = bpf_object__btf(obj);
	const struct btf_type *data = btf__type_by_id(
		btf, (uint32_t)btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC));
	int config = btf__find_by_name_kind(btf, "config", BTF_KIND_VAR);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	size_t size;

	assert_non_null(data);
	assert_non_null(map);
	for (int i = 0; i < btf_vlen(data); i++)
		if ((int)btf_var_secinfos(data)[i].type == config)
			return (void *)((char *)bpf_map__initial_value(map, &size) +
					btf_var_secinfos(data)[i].offset);
	fail_msg("the interpreter has no config");
	return NULL;
}

#define BIT(n) (UINT64_C(1) << (n))
/* A script of five probes: a variable of each thread that is set at an entry, a histogram of times
 * under a condition at the return, counts by name, and records in their order. Loops of rounds are
 * followed once: a round that is another one for the verifier would double it. */
static void test_script(void **state)
{
	struct bpf_object *obj;
	char path[PATH_MAX];

	(void)state;
	too_much = 0;
	object_path("agent/probes/engine/interpreter", path, sizeof(path));
	obj = bpf_object__open(path);
	assert_non_null(obj);
	*config_of(obj) = (struct ax_probe_config){
		.ordered = 1,
		.codes = BIT(AX_CODE_CONST) | BIT(AX_CODE_CTX) | BIT(AX_CODE_NSECS) |
			 BIT(AX_CODE_THREAD) | BIT(AX_CODE_SET_THREAD) | BIT(AX_CODE_TABLE) |
			 BIT(AX_CODE_EXTEND) | BIT(AX_CODE_SUB) | BIT(AX_CODE_GT) |
			 BIT(AX_CODE_KEY_COMM) | BIT(AX_CODE_FILTER),
		.actions = BIT(AX_ACTION_RECORD) | BIT(AX_ACTION_COUNT) | BIT(AX_ACTION_LOG2) |
			   BIT(AX_ACTION_STATS) | BIT(AX_ACTION_SET) | BIT(AX_ACTION_LOOK),
		.flags = AX_PROBE_CHAINED | AX_PROBE_FOLLOWS | AX_PROBE_QUICK | AX_PROBE_NESTED |
			 AX_PROBE_POPPED | AX_PROBE_RETURN | AX_PROBE_ONLY_COUNTS,
		.thread_variables = 1,
		.flags_offset = 64,
		.short_keys = 1,
		.registers = BIT(14),
	};
	assert_int_not_equal(judge(obj, "ax_function"), 0);
	bpf_object__close(obj);
	assert_int_equal(too_much, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dataplane), cmocka_unit_test(test_splicing),
		cmocka_unit_test(test_filter),	  cmocka_unit_test(test_filter_egress),
		cmocka_unit_test(test_tap),	  cmocka_unit_test(test_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
