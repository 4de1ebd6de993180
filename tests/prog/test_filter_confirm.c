// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists that take each other's place: no packet in between, confirmations that come, do not come or
 * come too late, other programs on the interface, and what is said of all that. */
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
#include <pthread.h>
#include <time.h>

#include "iface/iface.h"
#include "iface/preflight.h"
#include "tests/lib/filter_judge.h"
#include "tests/lib/rule_lists.h"

#define PACKET "udp 10.0.0.1:5 > 10.0.0.2:9"
#define DROPS  "rules: [{name: a, dport: 9, action: drop}]\n"
#define PASSES "rules: [{name: a, dport: 9, action: pass}]\n"

#define CONFIRM_MS 300

static int root_program(void)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/root", filter.dir);
	fd = bpf_obj_get(path);
	assert_true(fd >= 0);
	return fd;
}

/* What happens to a packet that comes in by the interface. */
static uint32_t root_verdict(void)
{
	autoclose int root = root_program();
	struct frame_bytes f;

	read_frame(PACKET, &f);
	return filter_run_frame(root, &f, NULL);
}

static int load_confirm(const char *text, uint32_t ms, struct error *e)
{
	const struct xdp_load_options o = {.force = true, .confirm_ms = ms};
	int r = filter_try_load(text, &o, e);

	if (!r)
		filter_reopen();
	return r;
}

static void must_load_confirm(const char *text, uint32_t ms)
{
	struct error e;

	if (load_confirm(text, ms, &e) < 0)
		fail_msg("%s", e.text);
}

static struct xdp_status get_status(void)
{
	struct xdp_status s;
	struct error e = {0};

	if (xdp_status(filter.x, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

static uint64_t confirm_ms(void)
{
	struct xdp_status s = get_status();
	uint64_t r = s.confirm_ms;

	xdp_status_free(&s);
	return r;
}

static enum ax_verdict verdict_of_list(void)
{
	struct rule_list l;
	struct error e = {0};
	enum ax_verdict r;

	rule_list_init(&l);
	assert_int_equal(xdp_list(filter.x, &l, &e), 0);
	assert_int_equal(l.n_rules, 1);
	r = l.rules[0].verdict;
	rule_list_free(&l);
	return r;
}

/* --- confirmations --- */

static void the_former_list_comes_back_by_itself(void **state)
{
	autoclose int root = -1;
	struct frame_bytes f;
	uint64_t left;

	(void)state;
	filter_load_afresh(DROPS);
	root = root_program();
	read_frame(PACKET, &f);
	assert_int_equal(filter_run_frame(root, &f, NULL), XDP_DROP);
	must_load_confirm(PASSES, CONFIRM_MS);
	assert_int_equal(filter_run_frame(root, &f, NULL), XDP_PASS);
	left = confirm_ms();
	assert_true(left > 0 && left <= CONFIRM_MS);
	assert_int_equal(verdict_of_list(), AX_VERDICT_PASS);
	filter_forget(); /* nobody of us is there */
	usleep((CONFIRM_MS + 20) * 1000);
	assert_int_equal(filter_run_frame(root, &f, NULL), XDP_DROP);
	assert_int_equal(filter_run_frame(root, &f, NULL), XDP_DROP);
	filter_reopen();
	assert_int_equal(verdict_of_list(), AX_VERDICT_DROP);
	assert_int_equal(confirm_ms(), 0);
	assert_int_equal(filter_rule_count("a").packets, 4);
}

/* A handle that was open before follows. */
static void an_open_handle_follows(void **state)
{
	struct error e = {0};

	(void)state;
	filter_load_afresh(DROPS);
	must_load_confirm(PASSES, CONFIRM_MS);
	assert_int_equal(verdict_of_list(), AX_VERDICT_PASS);
	usleep((CONFIRM_MS + 20) * 1000);
	assert_int_equal(verdict_of_list(), AX_VERDICT_DROP);
	assert_int_equal(xdp_confirm(&filter.inst, IFNAME, &e), -ENOENT);
	assert_non_null(strstr(e.text, "the former rules are back"));
	assert_int_equal(verdict_of_list(), AX_VERDICT_DROP);
	assert_int_equal(root_verdict(), XDP_DROP);
	/* settled: another list can come */
	filter_load(PASSES);
	assert_int_equal(root_verdict(), XDP_PASS);
}

static void a_confirmed_list_stays(void **state)
{
	struct error e = {0};

	(void)state;
	filter_load_afresh(DROPS);
	must_load_confirm(PASSES, CONFIRM_MS);
	if (xdp_confirm(&filter.inst, IFNAME, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(confirm_ms(), 0);
	usleep((CONFIRM_MS + 20) * 1000);
	assert_int_equal(root_verdict(), XDP_PASS);
	assert_int_equal(verdict_of_list(), AX_VERDICT_PASS);
	assert_int_equal(xdp_confirm(&filter.inst, IFNAME, &e), -ENOENT);
	assert_int_equal(xdp_rollback(&filter.inst, IFNAME, &e), -ENOENT);
}

static void a_rollback(void **state)
{
	struct error e = {0};

	(void)state;
	filter_load_afresh(DROPS);
	must_load_confirm(PASSES, 60000);
	assert_int_equal(root_verdict(), XDP_PASS);
	if (xdp_rollback(&filter.inst, IFNAME, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(root_verdict(), XDP_DROP);
	assert_int_equal(verdict_of_list(), AX_VERDICT_DROP);
	assert_int_equal(confirm_ms(), 0);
	assert_int_equal(xdp_rollback(&filter.inst, IFNAME, &e), -ENOENT);
}

static void one_confirmation_at_a_time(void **state)
{
	struct error e = {0};

	(void)state;
	filter_load_afresh(DROPS);
	must_load_confirm(PASSES, 60000);
	assert_int_equal(load_confirm(DROPS, 0, &e), -EINPROGRESS);
	assert_non_null(strstr(e.text, "ax xdp confirm " IFNAME));
	assert_int_equal(root_verdict(), XDP_PASS);
	assert_int_equal(xdp_confirm(&filter.inst, IFNAME, &e), 0);
	filter_load(DROPS);
	assert_int_equal(root_verdict(), XDP_DROP);
}

/* Without a former list, packets pass when the time is up, and nothing counts as loaded. */
static void the_first_list_is_not_confirmed(void **state)
{
	autoclose int root = -1;
	struct xdp *x = NULL;
	struct frame_bytes f;
	struct error e = {0};

	(void)state;
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	must_load_confirm(DROPS, CONFIRM_MS);
	root = root_program();
	read_frame(PACKET, &f);
	assert_int_equal(filter_run_frame(root, &f, NULL), XDP_DROP);
	filter_forget();
	usleep((CONFIRM_MS + 20) * 1000);
	assert_int_equal(filter_run_frame(root, &f, NULL), XDP_PASS);
	assert_int_equal(xdp_open(&filter.inst, IFNAME, &x, &e), -ENOENT);
	filter_load(DROPS);
	assert_int_equal(filter.g.layout.generation, 1);
	assert_int_equal(root_verdict(), XDP_DROP);
}

static void the_first_list_is_rolled_back(void **state)
{
	struct xdp_program_info *v = NULL;
	struct error e = {0};
	enum xdp_mode mode;
	bool dispatcher;
	size_t n;

	(void)state;
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	must_load_confirm(DROPS, 60000);
	filter_forget();
	if (xdp_rollback(&filter.inst, IFNAME, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(xdp_programs(&filter.inst, IFNAME, &v, &n, &mode, &dispatcher, &e), 0);
	assert_int_equal(n, 0);
	free(v);
	assert_int_equal(xdp_unload(&filter.inst, IFNAME, &e), -ENOENT);
}

/* --- a swap under traffic --- */

struct traffic {
	int root, stop;
	unsigned drops, others;
};

static void *send_all_the_time(void *arg)
{
	struct traffic *t = arg;
	struct frame_bytes f;

	read_frame(PACKET, &f);
	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f.b, .data_size_in = (uint32_t)f.len,
			    .repeat = 50);

		if (bpf_prog_test_run_opts(t->root, &o) == 0 && o.retval == XDP_DROP)
			t->drops += 50;
		else
			t->others++;
	}
	return NULL;
}

/* Both lists drop the packet, and both by a rule of that name: nothing passes, nothing is counted
 * twice or not at all. */
static void no_packet_falls_between_lists(void **state)
{
	static const char *const lists[] = {
		DROPS, "rules: [{name: z, src: 9.0.0.0/8, action: pass}, {name: a, proto: udp,\n"
		       "  sport: 5, action: drop}]\n"};
	const struct xdp_load_options o = {0};
	struct traffic t = {0};
	pthread_t thread;
	struct error e;
	int r = 0;

	(void)state;
	filter_load_afresh(DROPS);
	t.root = root_program();
	assert_int_equal(pthread_create(&thread, NULL, send_all_the_time, &t), 0);
	for (int i = 0; i < 10 && !r; i++) {
		r = filter_try_load(lists[i % 2], &o, &e);
		usleep(5000);
	}
	__atomic_store_n(&t.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close(t.root);
	assert_int_equal(r, 0);
	filter_reopen();
	assert_int_equal(filter.g.layout.generation, 11);
	assert_int_equal(t.others, 0);
	assert_true(t.drops > 1000);
	assert_int_equal(filter_rule_count("a").packets, t.drops);
}

/* --- what is said --- */

static void status_fields(void **state)
{
	bool alone = kernel_has_freplace() != 0;
	struct strv names = {0};
	struct xdp_status s;
	struct error e = {0};
	int64_t before = time(NULL);

	(void)state;
	filter_load_afresh("rules: [{src: 10.0.0.0/8, dport: 9, action: drop}]\n");
	s = get_status();
	assert_string_equal(s.ifname, IFNAME);
	assert_int_equal(s.ifindex, if_nametoindex(IFNAME));
	assert_int_equal(s.mode, ATTACH_NATIVE);
	assert_int_equal(s.dispatcher, !alone);
	assert_true(s.frags);
	assert_int_equal(s.generation, 1);
	assert_true(s.since >= before && s.since <= time(NULL));
	assert_int_equal(s.confirm_ms, 0);
	assert_int_equal(s.arena_size, filter.g.layout.size);
	assert_int_equal(s.match, AX_MATCH_PRODUCT);
	assert_int_equal(s.fields, 1 << AX_FIELD_SRC | 1 << AX_FIELD_DPORT);
	assert_int_equal(s.n_programs, 1);
	assert_string_equal(s.programs[0].name, "ax_root");
	assert_true(s.programs[0].ours && s.programs[0].id);
	xdp_status_free(&s);
	filter_load("rules: [{action: drop}]\n");
	s = get_status();
	assert_int_equal(s.generation, 2);
	assert_int_equal(s.match, AX_MATCH_NONE);
	assert_int_equal(s.fields, 0);
	xdp_status_free(&s);
	assert_int_equal(xdp_interfaces(&filter.inst, &names, &e), 0);
	assert_int_equal(names.n, 1);
	assert_string_equal(names.v[0], IFNAME);
	strv_free(&names);
}

static void generic_mode(void **state)
{
	struct xdp_status s;
	struct expect x = BY_DROP("a");

	(void)state;
	filter_load_afresh("mode: generic\n" DROPS);
	s = get_status();
	assert_int_equal(s.mode, ATTACH_GENERIC);
	xdp_status_free(&s);
	judge(PACKET, &x);
	filter_load(DROPS); /* any mode: the one that it has */
	s = get_status();
	assert_int_equal(s.mode, ATTACH_GENERIC);
	xdp_status_free(&s);
	judge(PACKET, &x);
}

/* --- others --- */

static int load_foreign(void)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "foreign", "GPL", insns, ARRAY_SIZE(insns), NULL);
}

static void a_foreign_program(void **state)
{
	struct xdp_load_options o = {0};
	autoclose int prog = load_foreign();
	int ifindex = (int)if_nametoindex(IFNAME);
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	struct xdp_status s;
	struct error e = {0};
	char id[20];

	(void)state;
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	assert_true(prog >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(prog, &info, &len), 0);
	assert_int_equal(bpf_xdp_attach(ifindex, prog, XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(filter_try_load(DROPS, &o, &e), -EBUSY);
	snprintf(id, sizeof(id), "id %u", info.id);
	if (!strstr(e.text, "'foreign'") || !strstr(e.text, id) || !strstr(e.text, "--replace"))
		fail_msg("%s", e.text);
	assert_int_equal(bpf_xdp_query_id(ifindex, XDP_FLAGS_DRV_MODE, &info.id), 0);
	assert_non_null(strstr(e.text, id)); /* it is still there */
	o.replace = true;
	if (filter_try_load(DROPS, &o, &e) < 0)
		fail_msg("%s", e.text);
	filter_reopen();
	s = get_status();
	assert_int_equal(s.n_programs, 1);
	assert_true(s.programs[0].ours);
	xdp_status_free(&s);
	assert_int_equal(root_verdict(), XDP_DROP);
}

/* Somebody takes our program off: then nothing is loaded, and a list can be loaded anew. */
static void taken_off_by_somebody(void **state)
{
	struct xdp *x = NULL;
	struct error e = {0};
	int ifindex = (int)if_nametoindex(IFNAME);

	(void)state;
	filter_load_afresh(DROPS);
	filter_run(PACKET);
	filter_forget();
	assert_int_equal(bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(xdp_open(&filter.inst, IFNAME, &x, &e), -ENOENT);
	filter_load(PASSES);
	assert_int_equal(filter.g.layout.generation, 1);
	assert_int_equal(filter_rule_count("a").packets, 0);
	assert_int_equal(root_verdict(), XDP_PASS);
}

static void an_interface_comes_again(void **state)
{
	const struct xdp_load_options o = {0};
	struct rule_list l = rule_list_of(DROPS);
	struct strv names = {0};
	struct xdp *x = NULL;
	struct error e = {0};

	(void)state;
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(system("ip link add xg.7 type veth peer name xg1"), 0);
		assert_int_equal(xdp_open(&filter.inst, "xg.7", &x, &e), -ENOENT);
		e = (struct error){0};
		if (xdp_apply(&filter.inst, "xg.7", &l, &o, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(xdp_interfaces(&filter.inst, &names, &e), 0);
		assert_int_equal(names.n, 1);
		assert_string_equal(names.v[0], "xg.7");
		strv_free(&names);
		assert_int_equal(system("ip link del xg.7"), 0);
		assert_int_equal(xdp_interfaces(&filter.inst, &names, &e), 0);
		assert_int_equal(names.n, 0);
	}
	assert_int_equal(system("ip link add xg.7 type veth peer name xg1"), 0);
	assert_int_equal(xdp_apply(&filter.inst, "xg.7", &l, &o, &e), 0);
	assert_int_equal(xdp_unload(&filter.inst, "xg.7", &e), 0);
	rule_list_free(&l);
	assert_int_equal(system("ip link del xg.7"), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_former_list_comes_back_by_itself),
		cmocka_unit_test(an_open_handle_follows),
		cmocka_unit_test(a_confirmed_list_stays),
		cmocka_unit_test(a_rollback),
		cmocka_unit_test(one_confirmation_at_a_time),
		cmocka_unit_test(the_first_list_is_not_confirmed),
		cmocka_unit_test(the_first_list_is_rolled_back),
		cmocka_unit_test(no_packet_falls_between_lists),
		cmocka_unit_test(status_fields),
		cmocka_unit_test(generic_mode),
		cmocka_unit_test(a_foreign_program),
		cmocka_unit_test(taken_off_by_somebody),
		cmocka_unit_test(an_interface_comes_again),
	};

	return cmocka_run_group_tests(tests, filter_setup, filter_teardown);
}
