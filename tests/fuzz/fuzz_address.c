// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text: what is taken for an address, prefix, endpoint, label set or flag value formats to a
 * text that gives the same again. */
#include "base/near.h"
#include "config/config.h"
#include "config/expose.h"
#include "config/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_address(const char *s)
{
	struct sockaddr_storage ss;
	struct ax_addr a, b;
	char buf[ADDR_STRLEN];
	__be16 port_be;

	if (addr_parse(s, &a) < 0)
		return;
	check(addr_parse(addr_format(&a, buf), &b) == 0 && addr_eq(&a, &b));
	addr_to_sockaddr(&a, 0, &ss);
	check(addr_from_sockaddr((struct sockaddr *)&ss, &b, &port_be) == 0 && addr_eq(&a, &b));
}

static void check_prefix(const char *s)
{
	struct prefix p, q;
	char buf[ADDR_STRLEN];

	if (prefix_parse(s, &p) < 0)
		return;
	check(p.len <= 128 && prefix_contains(&p, &p.addr));
	check(prefix_parse(prefix_format(&p, buf), &q) == 0);
	check(addr_eq(&p.addr, &q.addr) && p.len == q.len);
}

static void check_endpoint(const char *s)
{
	struct ax_addr a, b;
	__be16 port_be, again_be;
	char buf[ADDR_STRLEN];

	if (addr_port_parse(s, &a, &port_be) < 0)
		return;
	check(addr_port_parse(addr_port_format(&a, port_be, buf), &b, &again_be) == 0);
	check(addr_eq(&a, &b) && port_be == again_be && port_be != 0);
}

static void check_labels(const char *s)
{
	struct labels l, again;
	autofree char *text = NULL;

	if (labels_parse(s, &l, NULL) < 0)
		return;
	text = labels_format(&l);
	check(labels_parse(text, &again, NULL) == 0 && labels_eq(&l, &again));
	labels_free(&again);
	labels_free(&l);
}

static void check_expose(const char *s)
{
	struct expose_list l = {0}, again = {0};
	char text[EXPOSE_STRLEN];
	int r;

	if (!want_expose(s, &l, &r) && l.n) {
		check(!want_expose(expose_format(&l.v[0], text), &again, &r));
		check(again.n == 1 && expose_eq(&l.v[0], &again.v[0]));
	}
	expose_list_free(&l);
	expose_list_free(&again);
}

static void check_flags(const char *s)
{
	static const char *const words[] = {"command", "ports", "backends", "labels"};
	enum restart_policy restart;
	enum splice_mode splice;
	struct ax_addr ip4, ip6;
	enum net_mode net;
	struct error e;
	uint32_t ms;

	if (spec_parse_ip(s, &ip4, &ip6, &e) == 0)
		check((addr_is_zero(&ip4) || addr_is_v4(&ip4)) &&
		      (addr_is_zero(&ip6) || !addr_is_v4(&ip6)) &&
		      !(addr_is_zero(&ip4) && addr_is_zero(&ip6)));
	else
		check(e.code == -EINVAL && *e.text);
	if (spec_parse_duration_ms(s, &ms, &e) == 0)
		check(ms <= 24 * 60 * 60 * 1000);
	if (spec_parse_net(s, &net, &e) == 0)
		check(streq(net_mode_name(net), s));
	if (spec_parse_restart(s, &restart, &e) == 0)
		check(streq(restart_policy_name(restart), s));
	if (spec_parse_splice(s, &splice, &e) == 0)
		check(streq(splice_mode_name(splice), s));
	if (spec_check_name(s, &e) == 0)
		check(*s && strlen(s) <= 63);
	nearest_word(s, words, ARRAY_SIZE(words));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *s = strndup((const char *)data, size);
	int port;

	check(s != NULL);
	check_address(s);
	check_prefix(s);
	check_endpoint(s);
	check_labels(s);
	check_flags(s);
	check_expose(s);
	port = port_parse(s);
	check(port == -EINVAL || (port >= 1 && port <= 65535));
	return 0;
}
