/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/*
 * The programs of `ax trace hypercall`, which keep what each vCPU's thread left the guest for:
 * their steps are run here without a virtual machine, by the test's own thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <limits.h>
#include <time.h>

#include "base/util.h"
#include "hypercall_event.h"

#define VMMCALL 0x81
#define SVM	2

static struct bpf_object *obj;
static int step_fd, rows_fd, counters_fd;
static const char *own_name; /* as this program was called */

/* --- loading --- */

static void object_path(char *ret, size_t size)
{
	char exe[PATH_MAX] = "", *end;

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	end = strstr(exe, "/tests/prog/");
	assert_non_null(end);
	assert_true(snprintf(ret, size, "%.*s/agent/probes/watch/hypercall.bpf.o", (int)(end - exe),
			     exe) < (int)size);
}

/* Where a variable of the read-only data is. */
static void *read_only(const char *name)
{
	struct btf *btf = bpf_object__btf(obj);
	int32_t id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *section = btf__type_by_id(btf, (uint32_t)id);
	const struct btf_var_secinfo *v = btf_var_secinfos(section);
	struct bpf_map *map;
	size_t size;

	bpf_object__for_each_map (map, obj) {
		if (!strstr(bpf_map__name(map), ".rodata"))
			continue;
		for (size_t i = 0; i < btf_vlen(section); i++) {
			const struct btf_type *t = btf__type_by_id(btf, v[i].type);

			if (streq(btf__name_by_offset(btf, t->name_off), name))
				return (char *)bpf_map__initial_value(map, &size) + v[i].offset;
		}
	}
	fail_msg("there is no variable %s", name);
	return NULL;
}

static int fd_of_map(const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(obj, name);

	assert_true(fd >= 0);
	return fd;
}

/* Only the program that tests run; the others need tracepoints' records. */
static void load(const struct ax_hypercall_config *wanted, uint32_t rows)
{
	struct bpf_program *p;
	char path[PATH_MAX];

	object_path(path, sizeof(path));
	obj = bpf_object__open(path);
	assert_non_null(obj);
	bpf_object__for_each_program (p, obj)
		bpf_program__set_autoload(p, streq(bpf_program__name(p), "ax_kvm_step"));
	memcpy(read_only("wanted"), wanted, sizeof(*wanted));
	assert_int_equal(
		bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, "hypercalls"), rows), 0);
	assert_int_equal(bpf_object__load(obj), 0);
	step_fd = bpf_program__fd(bpf_object__find_program_by_name(obj, "ax_kvm_step"));
	rows_fd = fd_of_map("hypercalls");
	counters_fd = fd_of_map("watch_counters");
}

static int unload(void **state)
{
	(void)state;
	bpf_object__close(obj);
	obj = NULL;
	return 0;
}

/* --- steps --- */

static void step(const uint64_t *args, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = args, .ctx_size_in = (uint32_t)size);

	assert_int_equal(bpf_prog_test_run_opts(step_fd, &o), 0);
}

static void leave(uint64_t reason)
{
	step((uint64_t[6]){0, reason, SVM}, 6 * sizeof(uint64_t));
}

static void call(uint64_t nr)
{
	step((uint64_t[6]){1, nr, 7, 8, 9, 10}, 6 * sizeof(uint64_t));
}

static void enter(uint64_t vcpu)
{
	step((uint64_t[6]){2, vcpu}, 6 * sizeof(uint64_t));
}

static void hypercall(uint64_t nr, uint64_t vcpu)
{
	leave(VMMCALL);
	call(nr);
	enter(vcpu);
}

/* --- what came of it --- */

static uint64_t counter(uint32_t which)
{
	int n = libbpf_num_possible_cpus();
	uint64_t v[n], sum = 0;

	assert_int_equal(bpf_map_lookup_elem(counters_fd, &which, v), 0);
	for (int i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

static struct ax_hypercall_key key_of(uint32_t kind, uint32_t reason, uint64_t nr, uint32_t vcpu)
{
	return (struct ax_hypercall_key){
		.vm = (uint32_t)getpid(),
		.vcpu = vcpu,
		.kind = kind,
		.isa = SVM,
		.reason = reason,
		.nr = nr,
	};
}

/* 0: there is no such row. */
static uint64_t count_of(struct ax_hypercall_key key)
{
	static struct ax_hypercall_cell cell;
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(rows_fd, &key, &cell) < 0)
		return 0;
	for (size_t i = 0; i < AX_HYPERCALL_BUCKETS; i++)
		sum += cell.buckets[i];
	assert_int_equal(sum, cell.count);
	assert_true(cell.most >= ~cell.least);
	assert_true(cell.sum >= cell.most);
	return cell.count;
}

static uint64_t calls_of(uint64_t nr, uint32_t vcpu)
{
	return count_of(key_of(AX_HYPERCALL_CALL, VMMCALL, nr, vcpu));
}

static size_t rows(void)
{
	struct ax_hypercall_key key;
	void *last = NULL;
	size_t n = 0;

	while (bpf_map_get_next_key(rows_fd, last, &key) == 0) {
		last = &key;
		n++;
	}
	return n;
}

/* --- the tests --- */

static void test_calls(void **state)
{
	(void)state;
	load(&(struct ax_hypercall_config){0}, 1024);
	hypercall(42, 3);
	hypercall(42, 3);
	hypercall(42, 4);
	hypercall(5, 3);
	assert_int_equal(calls_of(42, 3), 2);
	assert_int_equal(calls_of(42, 4), 1);
	assert_int_equal(calls_of(5, 3), 1);
	assert_int_equal(rows(), 3);
	assert_int_equal(counter(AX_WATCH_EMITTED), 4);
	assert_int_equal(counter(AX_WATCH_DROPPED), 0);
}

static void test_one_number(void **state)
{
	(void)state;
	load(&(struct ax_hypercall_config){.nr = 42, .only = 1}, 1024);
	hypercall(41, 0);
	hypercall(42, 0);
	hypercall(UINT64_C(0x10000002a), 0);
	assert_int_equal(calls_of(42, 0), 1);
	assert_int_equal(rows(), 1);
	assert_int_equal(counter(AX_WATCH_EMITTED), 1);
}

/* The states in which a thread may be when the programs are attached, and may come to. */
static void test_order(void **state)
{
	(void)state;
	load(&(struct ax_hypercall_config){0}, 1024);
	enter(0); /* attached while it was in the host */
	call(42);
	enter(0);
	assert_int_equal(rows(), 0);
	leave(VMMCALL); /* no call: it is one of Hyper-V's or Xen's */
	enter(0);
	assert_int_equal(rows(), 0);
	hypercall(42, 0);
	enter(0); /* the exit before was missed */
	assert_int_equal(calls_of(42, 0), 1);
	leave(VMMCALL);
	call(42);
	leave(0x78); /* the entry before was missed */
	enter(0);
	assert_int_equal(calls_of(42, 0), 1);
	assert_int_equal(counter(AX_WATCH_EMITTED), 1);
}

/* A hypercall need not come by VMMCALL: KVM emulates it, too. */
static void test_reason(void **state)
{
	(void)state;
	load(&(struct ax_hypercall_config){.nr = 42, .only = 1}, 1024);
	leave(0x46);
	call(42);
	enter(0);
	assert_int_equal(count_of(key_of(AX_HYPERCALL_CALL, 0x46, 42, 0)), 1);
}

static void test_all(void **state)
{
	(void)state;
	load(&(struct ax_hypercall_config){.all = 1}, 1024);
	hypercall(42, 1);
	hypercall(43, 1);
	leave(0x72);
	enter(1);
	assert_int_equal(count_of(key_of(AX_HYPERCALL_EXIT, VMMCALL, 0, 1)), 2);
	assert_int_equal(count_of(key_of(AX_HYPERCALL_EXIT, 0x72, 0, 1)), 1);
	assert_int_equal(rows(), 2);
}

static void test_time(void **state)
{
	struct ax_hypercall_key key = key_of(AX_HYPERCALL_CALL, VMMCALL, 42, 0);
	struct timespec ts = {.tv_nsec = 20000000};
	static struct ax_hypercall_cell cell;
	uint64_t before;

	(void)state;
	load(&(struct ax_hypercall_config){0}, 1024);
	before = time_mono_ns();
	leave(VMMCALL);
	nanosleep(&ts, NULL);
	call(42);
	enter(0);
	before = time_mono_ns() - before;
	assert_int_equal(bpf_map_lookup_elem(rows_fd, &key, &cell), 0);
	assert_in_range(cell.sum, 20000000, before);
	assert_int_equal(cell.most, cell.sum);
	assert_true(~cell.least == cell.sum);
	for (size_t i = 0; i < AX_HYPERCALL_BUCKETS; i++) {
		/* 2^power, divided by eight */
		uint64_t power = (i >> AX_HYPERCALL_FINE_BITS) + 2, least = i, next = i + 1;

		if (i >= 8) {
			least = (8 | (i & 7)) << (power - AX_HYPERCALL_FINE_BITS);
			next = least + (UINT64_C(1) << (power - AX_HYPERCALL_FINE_BITS));
		}
		assert_int_equal(cell.buckets[i], cell.sum >= least && cell.sum < next);
	}
}

/* A guest that makes up numbers fills no table. */
static void test_many_numbers(void **state)
{
	(void)state;
	load(&(struct ax_hypercall_config){0}, 1024);
	for (uint64_t i = 0; i < 200; i++)
		hypercall(1000 + i, 0);
	hypercall(1000, 0);
	assert_int_equal(rows(), 65);
	assert_int_equal(calls_of(1000, 0), 2);
	assert_int_equal(calls_of(1063, 0), 1);
	assert_int_equal(calls_of(1064, 0), 0);
	assert_int_equal(count_of(key_of(AX_HYPERCALL_OTHER, VMMCALL, 0, 0)), 136);
	assert_int_equal(counter(AX_WATCH_DROPPED), 0);
}

static void test_full(void **state)
{
	(void)state;
	load(&(struct ax_hypercall_config){0}, 4);
	for (uint32_t i = 0; i < 10; i++)
		hypercall(42, i);
	assert_int_equal(rows(), 4);
	assert_int_equal(counter(AX_WATCH_EMITTED), 10);
	assert_int_equal(counter(AX_WATCH_DROPPED), 6);
}

struct seen {
	struct ax_hypercall_vcpu vcpu;
	struct ax_hypercall_event call;
	int vcpus, calls;
};

static int on_record(void *arg, void *data, size_t size)
{
	const struct ax_watch_head *h = data;
	struct seen *s = arg;

	if (h->type == AX_WATCH_VCPU) {
		s->vcpus++;
		assert_true(size >= sizeof(s->vcpu));
		s->vcpu = *(const struct ax_hypercall_vcpu *)data;
		return 0;
	}
	assert_int_equal(h->type, AX_WATCH_HYPERCALL);
	assert_true(size >= sizeof(s->call));
	s->calls++;
	s->call = *(const struct ax_hypercall_event *)data;
	return 0;
}

static void test_records(void **state)
{
	struct seen seen = {0};
	struct ring_buffer *ring;

	(void)state;
	load(&(struct ax_hypercall_config){.live = 1}, 1024);
	ring = ring_buffer__new(fd_of_map("records"), on_record, &seen, NULL);
	assert_non_null(ring);
	hypercall(41, 2);
	hypercall(42, 2);
	assert_int_equal(ring_buffer__consume(ring), 3);
	ring_buffer__free(ring);
	assert_int_equal(rows(), 0);
	assert_int_equal(seen.vcpus, 1);
	assert_int_equal(seen.vcpu.head.pid, getpid());
	assert_int_equal(seen.vcpu.head.time_ns, 0);
	assert_string_equal(seen.vcpu.head.comm, "test_hypercall");
	assert_in_range(seen.vcpu.len, strlen(own_name) + 1, sizeof(seen.vcpu.words));
	assert_string_equal(seen.vcpu.words, own_name);
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.call.nr, 42);
	assert_int_equal(seen.call.vcpu, 2);
	assert_int_equal(seen.call.reason, VMMCALL);
	assert_int_equal(seen.call.isa, SVM);
	assert_int_equal(seen.call.called, 1);
	for (uint64_t i = 0; i < AX_HYPERCALL_ARGS; i++)
		assert_int_equal(seen.call.args[i], 7 + i);
	assert_int_equal(counter(AX_WATCH_EMITTED), 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_calls, unload),
		cmocka_unit_test_teardown(test_one_number, unload),
		cmocka_unit_test_teardown(test_order, unload),
		cmocka_unit_test_teardown(test_reason, unload),
		cmocka_unit_test_teardown(test_all, unload),
		cmocka_unit_test_teardown(test_time, unload),
		cmocka_unit_test_teardown(test_many_numbers, unload),
		cmocka_unit_test_teardown(test_full, unload),
		cmocka_unit_test_teardown(test_records, unload),
	};

	(void)argc;
	own_name = argv[0];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
