/* SPDX-License-Identifier: GPL-2.0-or-later */
// beside others
/* What the preflight check finds, in namespaces with real devices, and that it repairs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "iface/preflight_priv.h"
#include "tests/lib/instance.h"
#include "tests/lib/netns.h"

#define FINDINGS_MAX 32

static struct {
	struct finding v[FINDINGS_MAX];
	size_t n;
	int bad;
} seen;

static pid_t holder; /* of a namespace without a name */

static void note(void *arg, const struct finding *f)
{
	(void)arg;
	assert_true(seen.n < FINDINGS_MAX);
	seen.v[seen.n++] = *f;
}

static void check(const char *ifname, const struct rule_list *l, enum xdp_mode mode, bool fix)
{
	struct error e = {0};

	seen.n = 0;
	seen.bad = preflight(NULL, ifname, l, mode, fix, note, NULL, &e);
	if (seen.bad < 0)
		fail_msg("%s", e.text);
}

/* The finding of that name in the worst state. */
static const struct finding *of(const char *what)
{
	static const struct finding none = {.state = FINDING_OK};
	const struct finding *ret = NULL;

	for (size_t i = 0; i < seen.n; i++)
		if (streq(seen.v[i].what, what) &&
		    (!ret || seen.v[i].state == FINDING_BAD || ret->state == FINDING_OK))
			ret = &seen.v[i];
	return ret ? ret : &none;
}

#define expect(name, s)                                                                         \
	do {                                                                                    \
		const struct finding *f_ = of(name);                                            \
		if (f_->state != (s))                                                           \
			fail_msg("%s: state %d, expected %d: %s", name, f_->state, s, f_->why); \
	} while (0)

static void run(const char *command)
{
	char quiet[512];

	snprintf(quiet, sizeof(quiet), "{ %s; } >/dev/null", command);
	if (system(quiet))
		fail_msg("%s failed", command);
}

/* A list of one rule. */
static struct rule_list rules(enum ax_verdict verdict, const char *target)
{
	struct rule r = {.name = strdup("one"), .verdict = verdict};
	struct rule_list l;

	if (target)
		r.target = strdup(target);
	rule_list_init(&l);
	assert_return_code(rule_list_insert(&l, 0, &r), 0);
	return l;
}

/* --- redirecting --- */

static void napi_in_a_named_namespace(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "to");

	(void)state;
	l.rules[0].checksum = true;
	check("from", &l, ATTACH_AUTO, false);
	assert_int_equal(seen.bad, 1);
	expect("napi", FINDING_BAD);
	expect("tx-checksum", FINDING_OK);
	assert_string_equal(of("napi")->fix, "ip netns exec far ethtool -K tofar gro on");
	assert_non_null(strstr(of("napi")->why, "rule 'one'"));
	run(of("napi")->fix);
	check("from", &l, ATTACH_AUTO, false);
	assert_int_equal(seen.bad, 0);
	expect("napi", FINDING_OK);
	run("ip netns exec far ethtool -K tofar gro off");
	rule_list_free(&l);
}

static void checksums_in_a_nameless_namespace(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "to");
	char fix[128];

	(void)state;
	check("from", &l, ATTACH_NATIVE, false);
	assert_int_equal(seen.bad, 2);
	expect("tx-checksum", FINDING_BAD);
	snprintf(fix, sizeof(fix), "nsenter -t %d -n ethtool -K fromfar tx off", (int)holder);
	assert_string_equal(of("tx-checksum")->fix, fix);
	run(of("tx-checksum")->fix);
	check("from", &l, ATTACH_NATIVE, false);
	expect("tx-checksum", FINDING_OK);
	assert_int_equal(seen.bad, 1);
	snprintf(fix, sizeof(fix), "nsenter -t %d -n ethtool -K fromfar tx on", (int)holder);
	run(fix);
	rule_list_free(&l);
}

static void repairs(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "to");
	char undo[128];

	(void)state;
	check("from", &l, ATTACH_AUTO, true);
	assert_int_equal(seen.bad, 0);
	expect("napi", FINDING_FIXED);
	expect("tx-checksum", FINDING_FIXED);
	check("from", &l, ATTACH_AUTO, true);
	expect("napi", FINDING_OK);
	expect("tx-checksum", FINDING_OK);
	snprintf(undo, sizeof(undo), "nsenter -t %d -n ethtool -K fromfar tx on", (int)holder);
	run(undo);
	run("ip netns exec far ethtool -K tofar gro off");
	rule_list_free(&l);
}

/* The far end takes frames too when it has a program of its own. */
static void program_at_the_far_end(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "to");
	struct place here, there;
	struct device to, far;

	(void)state;
	assert_return_code(place_open(-1, &here), 0);
	assert_return_code(device_load(&here, "to", 0, &to), 0);
	assert_return_code(device_peer(&to, &there, &far), 0);
	assert_string_equal(far.name, "tofar");
	assert_return_code(device_attach_pass(&far), 0);
	assert_int_equal(device_attach_pass(&far), -EBUSY);
	check("from", &l, ATTACH_AUTO, false);
	expect("napi", FINDING_OK);
	run("ip -n far link set dev tofar xdpdrv off");
	place_close(&there);
	place_close(&here);
	rule_list_free(&l);
}

/* What is sent back takes the same way as what is redirected; passing and dropping take none. */
static void other_actions(void **state)
{
	struct rule_list reflect = rules(AX_VERDICT_REFLECT, NULL);
	struct rule_list cpu = rules(AX_VERDICT_CPU, NULL), pass = rules(AX_VERDICT_PASS, NULL);

	(void)state;
	check("from", &reflect, ATTACH_AUTO, false);
	expect("napi", FINDING_BAD);
	expect("tx-checksum", FINDING_BAD);
	check("from", &cpu, ATTACH_AUTO, false);
	expect("napi", FINDING_OK);
	expect("tx-checksum", FINDING_BAD);
	check("from", &pass, ATTACH_AUTO, false);
	assert_int_equal(seen.bad, 0);
	expect("tx-checksum", FINDING_OK);
	rule_list_free(&reflect);
	rule_list_free(&cpu);
	rule_list_free(&pass);
}

static void balancers(void **state)
{
	static const char *const addrs[] = {"10.2.0.2", "10.9.9.9", "10.2.0.1"};
	struct rule_list l = rules(AX_VERDICT_BALANCE, "lb");
	struct balance_backend *backends = calloc(ARRAY_SIZE(addrs), sizeof(*backends));
	struct balancer *b = calloc(1, sizeof(*b));

	(void)state;
	assert_true(backends && b);
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++)
		backends[i] = (struct balance_backend){.addr = ns_addr(addrs[i]), .weight = 1};
	*b = (struct balancer){.name = strdup("lb"), .backends = backends, .n = 1};
	l.balancers = b;
	l.n_balancers = 1;
	check("from", &l, ATTACH_AUTO, false);
	expect("napi", FINDING_BAD);
	assert_non_null(strstr(of("napi")->why, "balancer 'lb' sends to to"));
	expect("route", FINDING_OK);
	b->n = 2;
	check("from", &l, ATTACH_AUTO, false);
	expect("route", FINDING_BAD);
	b->backends[1].down = true;
	b->n = 3;
	check("from", &l, ATTACH_AUTO, false);
	expect("route", FINDING_NOTE);
	rule_list_free(&l);
}

static void targets(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "nowhere");

	(void)state;
	check("from", &l, ATTACH_AUTO, false);
	expect("target", FINDING_BAD);
	rule_list_free(&l);

	l = rules(AX_VERDICT_REDIRECT, "to");
	run("ip link set dev to down");
	check("from", &l, ATTACH_AUTO, false);
	expect("link", FINDING_BAD);
	assert_string_equal(of("link")->fix, "ip link set dev to up");
	run("ip link set dev to up mtu 1400");
	check("from", &l, ATTACH_AUTO, false);
	expect("link", FINDING_OK);
	expect("mtu", FINDING_BAD);
	assert_string_equal(of("mtu")->fix, "ip link set dev to mtu 1500");
	run(of("mtu")->fix);
	run("ip -n far link set dev tofar mtu 1400");
	check("from", &l, ATTACH_AUTO, false);
	expect("mtu", FINDING_BAD);
	run(of("mtu")->fix);
	check("from", &l, ATTACH_AUTO, false);
	expect("mtu", FINDING_OK);
	run("ip -n far link set dev tofar down");
	check("from", &l, ATTACH_AUTO, false);
	expect("link", FINDING_BAD);
	run(of("link")->fix);
	rule_list_free(&l);

	l = rules(AX_VERDICT_REDIRECT, "lo");
	check("from", &l, ATTACH_AUTO, false);
	assert_int_not_equal(of("target")->state, FINDING_OK);
	rule_list_free(&l);
}

/* --- the interface --- */

static void itself(void **state)
{
	(void)state;
	check("from", NULL, ATTACH_AUTO, false);
	assert_int_equal(seen.bad, 0);
	expect("driver", FINDING_OK);
	expect("bpffs", FINDING_OK);
	expect("napi", FINDING_NOTE);
	expect("tx-checksum", FINDING_NOTE);
	expect("tso", FINDING_NOTE);
	/* lo has no native XDP on any kernel */
	check("lo", NULL, ATTACH_NATIVE, false);
	assert_int_not_equal(of("driver")->state, FINDING_OK);
}

static void no_such_interface(void **state)
{
	static const char *const names[] = {"nowhere", "", "a-name-that-is-too-long-for-any"};
	struct error e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(
			preflight(NULL, names[i], NULL, ATTACH_AUTO, false, note, NULL, &e),
			-ENODEV);
}

static void queues(void **state)
{
	(void)state;
	run("ip link add many numrxqueues 4 numtxqueues 4 type veth peer name manyfar "
	    "numrxqueues 4 numtxqueues 4 && ethtool -L many rx 1 && ethtool -L manyfar tx 3 && "
	    "ip link set many up && ip link set manyfar up");
	check("many", NULL, ATTACH_NATIVE, false);
	expect("queues", FINDING_BAD);
	assert_string_equal(of("queues")->fix, "ethtool -L many rx 3");
	check("many", NULL, ATTACH_AUTO, false);
	expect("queues", FINDING_NOTE);
	run(of("queues")->fix);
	check("many", NULL, ATTACH_NATIVE, false);
	expect("queues", FINDING_OK);
	assert_int_equal(seen.bad, 0);
	run("ip link del many");
}

static void jumbo_frames(void **state)
{
	(void)state;
	run("ip link add big mtu 9000 type veth peer name bigfar mtu 9000 && "
	    "ip link set big up && ip link set bigfar up");
	check("big", NULL, ATTACH_NATIVE, false);
	expect("mtu", FINDING_NOTE);
	assert_int_equal(seen.bad, 0);
	run("ip link del big");
}

/* In generic mode the kernel's buffers go on as they are: no NAPI is needed, but what was left to
 * be cut into segments is too long. */
static void generic_mode(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "to");

	(void)state;
	check("from", &l, ATTACH_GENERIC, false);
	expect("driver", FINDING_NOTE);
	expect("napi", FINDING_OK);
	expect("tx-checksum", FINDING_OK);
	expect("gso", FINDING_BAD);
	check("from", &l, ATTACH_GENERIC, true);
	expect("gso", FINDING_FIXED);
	check("from", &l, ATTACH_GENERIC, false);
	assert_int_equal(seen.bad, 0);
	rule_list_free(&l);
}

static void programs(void **state)
{
	struct place here;
	struct device d;

	(void)state;
	check("other", NULL, ATTACH_AUTO, false);
	assert_non_null(strstr(of("program")->why, "no program"));
	assert_return_code(place_open(-1, &here), 0);
	assert_return_code(device_load(&here, "other", 0, &d), 0);
	assert_return_code(device_attach_pass(&d), 0);
	check("other", NULL, ATTACH_AUTO, false);
	assert_non_null(strstr(of("program")->why, "ax_pass"));
	place_close(&here);
	run("ip link set dev other xdpdrv off");
}

/* The other end is in a namespace that is alive by a descriptor only. */
static void lost_peer(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "lost");
	autoclose int ns = ns_new();
	char move[160];

	(void)state;
	assert_return_code(ns, 0);
	snprintf(move, sizeof(move),
		 "ip link add lost type veth peer name lostfar && "
		 "ip link set lostfar netns /proc/%d/fd/%d && ip link set lost up",
		 (int)getpid(), ns);
	run(move);
	check("from", &l, ATTACH_AUTO, false);
	expect("napi", FINDING_NOTE);
	check("lost", NULL, ATTACH_AUTO, false);
	expect("peer", FINDING_NOTE);
	assert_int_equal(seen.bad, 0);
	run("ip link del lost");
	rule_list_free(&l);
}

static void hostile_names(void **state)
{
	struct rule_list l = rules(AX_VERDICT_REDIRECT, "a$'b;c");

	(void)state;
	run("ip link add \"a\\$'b;c\" type veth peer name '$(reboot)' && "
	    "ip link set \"a\\$'b;c\" up && ip link set '$(reboot)' up");
	check("from", &l, ATTACH_AUTO, false);
	expect("napi", FINDING_BAD);
	assert_string_equal(of("napi")->fix, "ethtool -K '$(reboot)' gro on");
	run(of("napi")->fix);
	run("ip link set dev \"a\\$'b;c\" down");
	check("from", &l, ATTACH_AUTO, false);
	expect("napi", FINDING_OK);
	assert_string_equal(of("link")->fix, "ip link set dev 'a$'\\''b;c' up");
	run(of("link")->fix);
	rule_list_free(&l);
}

/* --- */

static int setup(void **state)
{
	static const char *const command =
		"mount -t tmpfs tmpfs /run && ip link set lo up && ip netns add far && "
		"ip link add from type veth peer name fromfar && "
		"ip link add to type veth peer name tofar netns far && "
		"ip link add other type veth peer name otherfar && "
		"for i in from to other otherfar; do ip link set $i up || exit; done && "
		"ip addr add 10.2.0.1/24 dev to && ip -n far link set tofar up";
	char move[128];
	int ready[2];
	char b;

	(void)state;
	if (own_namespaces() || system(command) || pipe(ready) < 0)
		return -1;
	holder = fork();
	if (holder == 0) {
		unshare(CLONE_NEWNET);
		b = write(ready[1], "r", 1) == 1;
		for (;;)
			pause();
	}
	if (holder < 0 || read(ready[0], &b, 1) != 1)
		return -1;
	close(ready[0]);
	close(ready[1]);
	snprintf(move, sizeof(move),
		 "ip link set fromfar netns %d && nsenter -t %d -n ip link set fromfar up",
		 (int)holder, (int)holder);
	return system(move) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(holder, SIGKILL);
	return waitpid(holder, NULL, 0) == holder ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(napi_in_a_named_namespace),
		cmocka_unit_test(checksums_in_a_nameless_namespace),
		cmocka_unit_test(repairs),
		cmocka_unit_test(program_at_the_far_end),
		cmocka_unit_test(other_actions),
		cmocka_unit_test(balancers),
		cmocka_unit_test(targets),
		cmocka_unit_test(itself),
		cmocka_unit_test(no_such_interface),
		cmocka_unit_test(queues),
		cmocka_unit_test(jumbo_frames),
		cmocka_unit_test(generic_mode),
		cmocka_unit_test(programs),
		cmocka_unit_test(lost_peer),
		cmocka_unit_test(hostile_names),
	};

	return cmocka_run_group_tests_name("preflight", tests, setup, teardown);
}
