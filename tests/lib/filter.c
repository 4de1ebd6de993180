// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "tests/lib/instance.h"
#include "tests/lib/rule_lists.h"

struct filter_world filter;

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return getenv("AX_TEST_VERBOSE") && level != LIBBPF_DEBUG ? vfprintf(stderr, fmt, ap) : 0;
}

int filter_setup(void **state)
{
	char cgroup[4096];

	(void)state;
	datapath_xdp_init(&filter.maps);
	filter.g = (struct generation){.prog = -1, .arena = -1};
	libbpf_set_print(quiet);
	if (own_namespaces() || own_instance(&filter.inst, cgroup))
		return -1;
	/* nobody speaks there but the test */
	return system("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 && "
		      "ip link add " IFNAME " type veth peer name xf1 && "
		      "ip link add " TARGET " type veth peer name xt1 && ip link set lo up && "
		      "for i in xf0 xf1 xt0 xt1; do ip link set $i up || exit 1; done")
		       ? -1
		       : 0;
}

const char *filter_place(void)
{
	static char place[PLACE_MAX];

	place_make(place, IFNAME, filter.direction);
	return place;
}

/* By direction: what filter_load_once() put there, unless something else came since. */
static char *last[2];

static void forget_last(void)
{
	free(last[filter.direction]);
	last[filter.direction] = NULL;
}

static int turn(enum xdp_direction d)
{
	filter_forget();
	filter.direction = d;
	return 0;
}

int filter_to_egress(void **state)
{
	(void)state;
	return turn(DIRECTION_EGRESS);
}

int filter_to_ingress(void **state)
{
	(void)state;
	return turn(DIRECTION_INGRESS);
}

void filter_forget(void)
{
	xdp_closep(&filter.x);
	filter.x = NULL;
	generation_close(&filter.g);
	datapath_xdp_close(&filter.maps);
}

int filter_teardown(void **state)
{
	struct error e = {0};
	char path[128];

	(void)state;
	filter_forget();
	xdp_unload(&filter.inst, IFNAME, &e);
	xdp_unload(&filter.inst, IFNAME ":egress", &e);
	snprintf(path, sizeof(path), "%s/xdp-%s:egress.lock", filter.inst.run_dir, IFNAME);
	unlink(path);
	snprintf(path, sizeof(path), "%s/xdp-%s.capture", filter.inst.run_dir, IFNAME);
	unlink(path);
	snprintf(path, sizeof(path), "%s/xdp-%s.lock", filter.inst.run_dir, IFNAME);
	unlink(path);
	rmdir(filter.inst.run_dir);
	return 0;
}

void filter_reopen(void)
{
	struct error e = {0};

	filter_forget();
	if (xdp_open(&filter.inst, filter_place(), &filter.x, &e) < 0 ||
	    datapath_xdp_dir(&filter.inst, filter_place(), false, filter.dir, sizeof(filter.dir),
			     &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(datapath_xdp_open(filter.dir, &filter.maps), 0);
	assert_int_equal(generation_get(&filter.maps, AX_JUMP_CURRENT, &filter.g), 0);
}

int filter_try_load(const char *text, const struct xdp_load_options *o, struct error *e)
{
	struct rule_list l = rule_list_of(text);
	int r;

	*e = (struct error){0};
	forget_last();
	l.direction = filter.direction;
	for (size_t i = 0; i < l.n_rules && l.direction == DIRECTION_EGRESS; i++)
		if (l.rules[i].verdict == AX_VERDICT_REFLECT)
			l.rules[i].verdict = AX_VERDICT_PASS;
	r = xdp_apply(&filter.inst, filter_place(), &l, o, e);
	rule_list_free(&l);
	return r;
}

void filter_load(const char *text)
{
	/* what only a receiver of redirected packets would miss is not looked at here */
	const struct xdp_load_options o = {.force = true};
	struct error e;

	if (filter_try_load(text, &o, &e) < 0)
		fail_msg("%s", e.text);
	filter_reopen();
}

void filter_load_once(const char *text)
{
	if (last[filter.direction] && streq(last[filter.direction], text)) {
		if (!filter.x) /* the direction was turned since, where the list stayed */
			filter_reopen();
		return;
	}
	filter_load(text);
	last[filter.direction] = strdup(text);
	assert_non_null(last[filter.direction]);
}

void filter_load_afresh(const char *text)
{
	struct error e;

	filter_forget();
	xdp_unload(&filter.inst, filter_place(), &e);
	filter_load(text);
}

struct ax_rule_count filter_rule_count(const char *name)
{
	struct ax_rule_count r;
	struct xdp_stats s;
	struct error e = {0};
	size_t i;

	if (xdp_stats(filter.x, &s, &e) < 0)
		fail_msg("%s", e.text);
	for (i = 0; i < s.names.n && !streq(s.names.v[i], name); i++)
		continue;
	if (i == s.names.n)
		fail_msg("there is no rule %s", name);
	r = s.rules[i];
	xdp_stats_free(&s);
	return r;
}

void filter_expose(const char *host, const char *at, uint8_t proto, uint16_t port, unsigned ifindex)
{
	uint32_t one = 1, word = AX_EXPOSED_WORD(port, proto == IPPROTO_UDP);
	struct ax_exposed_key key = {0};
	uint64_t bits;

	assert_int_equal(addr_parse(host, &key.at.addr), 0);
	assert_int_equal(bpf_map_update_elem(filter.maps.map[XDP_MAP_EXPOSED], &key, &one, 0), 0);
	assert_int_equal(addr_parse(at ? at : host, &key.at.addr), 0);
	key.at.port_be = htons(port);
	key.at.proto = proto;
	key.ifindex = ifindex;
	assert_int_equal(bpf_map_update_elem(filter.maps.map[XDP_MAP_EXPOSED], &key, &one, 0), 0);
	assert_int_equal(bpf_map_lookup_elem(filter.maps.map[XDP_MAP_EXPOSED_PORTS], &word, &bits),
			 0);
	bits |= AX_EXPOSED_BIT(port);
	assert_int_equal(
		bpf_map_update_elem(filter.maps.map[XDP_MAP_EXPOSED_PORTS], &word, &bits, 0), 0);
}

uint64_t filter_reason_count(enum ax_reason reason)
{
	struct xdp_stats s;
	struct error e = {0};
	uint64_t r;

	if (xdp_stats(filter.x, &s, &e) < 0)
		fail_msg("%s", e.text);
	r = s.reasons[reason];
	xdp_stats_free(&s);
	return r;
}

static uint32_t in_words_of_xdp(uint32_t verdict)
{
	switch ((int)verdict) {
	case TC_ACT_UNSPEC:
		return XDP_PASS;
	case TC_ACT_SHOT:
		return XDP_DROP;
	default:
		fail_msg("a verdict of %d", (int)verdict);
		return XDP_ABORTED;
	}
}

uint32_t filter_run_frame(int prog, const struct frame_bytes *in, struct frame_bytes *out)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->b, .data_size_in = (uint32_t)in->len,
		    .data_out = out ? out->b : NULL, .data_size_out = out ? FRAME_MAX : 0,
		    .repeat = 1);
	int r = bpf_prog_test_run_opts(prog, &o);

	if (r < 0)
		fail_msg("a frame of %zu bytes: %s", in->len, strerror(-r));
	if (out)
		out->len = o.data_size_out;
	if (filter.direction == DIRECTION_EGRESS)
		return in_words_of_xdp(o.retval);
	return o.retval;
}

uint32_t filter_run(const char *spec)
{
	struct frame_bytes f;

	read_frame(spec, &f);
	return filter_run_frame(filter.g.prog, &f, NULL);
}
