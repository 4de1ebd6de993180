/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>

#include "config/service_words.h"
#include "config/strategy.h"
#include "config/diff.h"
#include "config/spec.h"

static void part(char *buf, size_t size, const char *fmt, ...) PRINTF(3, 4);
static void part(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	if (len && len + 2 < size) {
		strcat(buf, ", ");
		len += 2;
	}
	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

static void describe_addr(char *buf, size_t size, const char *key, const struct ax_addr *old,
			  const struct ax_addr *new)
{
	char x[ADDR_STRLEN], y[ADDR_STRLEN];

	if (!addr_eq(old, new))
		part(buf, size, "%s %s -> %s", key,
		     addr_is_zero(old) ? "pool" : addr_format(old, x),
		     addr_is_zero(new) ? "pool" : addr_format(new, y));
}

static void describe_egress(char *buf, size_t size, const struct egress *o, const struct egress *n)
{
	autofree char *was = egress_format(o), *is = egress_format(n);

	if (was && is && !streq(was, is))
		part(buf, size, "egress %s -> %s", *was ? was : "as its network has it",
		     *is ? is : "as its network has it");
	else
		part(buf, size, "egress");
}

void config_describe_app(char *buf, size_t size, const struct app_spec *o, const struct app_spec *n)
{
	autofree char *ol = labels_format(&o->labels), *nl = labels_format(&n->labels);

	buf[0] = 0;
	describe_addr(buf, size, "ip", &o->ip4, &n->ip4);
	describe_addr(buf, size, "ip6", &o->ip6, &n->ip6);
	if (ol && nl && !streq(ol, nl))
		part(buf, size, "labels %s -> %s", *ol ? ol : "none", *nl ? nl : "none");
	if (o->net != n->net)
		part(buf, size, "net %s -> %s", net_mode_name(o->net), net_mode_name(n->net));
	if (o->wait_ms != n->wait_ms)
		part(buf, size, "wait %ums -> %ums", o->wait_ms, n->wait_ms);
	if (!egress_eq(&o->egress, &n->egress))
		describe_egress(buf, size, &o->egress, &n->egress);
	if (o->restart != n->restart)
		part(buf, size, "restart %s -> %s", restart_policy_name(o->restart),
		     restart_policy_name(n->restart));
	if (o->splice != n->splice)
		part(buf, size, "splice %s -> %s", splice_mode_name(o->splice),
		     splice_mode_name(n->splice));
	if (o->splice_emulation != n->splice_emulation)
		part(buf, size, "splice-emulation %s -> %s", o->splice_emulation ? "true" : "false",
		     n->splice_emulation ? "true" : "false");
	if (!expose_list_eq(&o->expose, &n->expose))
		part(buf, size, "expose");
	if (!strv_eq(&o->command, &n->command))
		part(buf, size, "command");
	if (!strv_eq(&o->env, &n->env))
		part(buf, size, "env");
	if (!buf[0])
		part(buf, size, "user or directory");
}

void config_describe_service(char *buf, size_t size, const struct config_service *o,
			     const struct config_service *n)
{
	buf[0] = 0;
	describe_addr(buf, size, "ip", &o->ip4, &n->ip4);
	describe_addr(buf, size, "ip6", &o->ip6, &n->ip6);
	if (o->strategy != n->strategy)
		part(buf, size, "strategy %s -> %s", strategy_name(o->strategy),
		     strategy_name(n->strategy));
	if (o->hash != n->hash)
		part(buf, size, "hash %s -> %s", hash_name(o->hash), hash_name(n->hash));
	if (o->wait_ms != n->wait_ms)
		part(buf, size, "wait %ums -> %ums", o->wait_ms, n->wait_ms);
	if (o->drain_ms != n->drain_ms)
		part(buf, size, "drain %ums -> %ums", o->drain_ms, n->drain_ms);
	if (o->splice != n->splice)
		part(buf, size, "splice %s -> %s", splice_mode_name(o->splice),
		     splice_mode_name(n->splice));
	if (o->n_ports != n->n_ports ||
	    (o->n_ports && memcmp(o->ports, n->ports, o->n_ports * sizeof(*o->ports)) != 0))
		part(buf, size, "ports");
	if (o->slow_start_ms != n->slow_start_ms)
		part(buf, size, "slow-start %ums -> %ums", o->slow_start_ms, n->slow_start_ms);
	if (o->affinity != n->affinity)
		part(buf, size, "affinity %s -> %s", affinity_name(o->affinity),
		     affinity_name(n->affinity));
	if (o->affinity_timeout_ms != n->affinity_timeout_ms)
		part(buf, size, "affinity-timeout %ums -> %ums", o->affinity_timeout_ms,
		     n->affinity_timeout_ms);
	if (o->udp != n->udp)
		part(buf, size, "udp %s -> %s", udp_choice_name(o->udp), udp_choice_name(n->udp));
	if (o->on_remove != n->on_remove)
		part(buf, size, "on-remove %s -> %s", on_remove_name(o->on_remove),
		     on_remove_name(n->on_remove));
	if (!service_check_eq(&o->check, &n->check))
		part(buf, size, "check");
	if (!expose_list_eq(&o->expose, &n->expose))
		part(buf, size, "expose");
	if (!buf[0])
		part(buf, size, "backends");
}

/* --- whole sections --- */

bool config_rules_same(const struct config *o, const struct config *n)
{
	if (o->n_rules != n->n_rules)
		return false;
	for (size_t i = 0; i < o->n_rules; i++)
		if (!config_rule_eq(&o->rules[i], &n->rules[i]))
			return false;
	return true;
}

bool config_egress_same(const struct config *o, const struct config *n)
{
	if (o->n_egress != n->n_egress)
		return false;
	for (size_t i = 0; i < o->n_egress; i++)
		if (!config_egress_eq(&o->egress[i], &n->egress[i]))
			return false;
	return true;
}

bool config_upstreams_same(const struct config *o, const struct config *n)
{
	return o->n_dns_upstreams == n->n_dns_upstreams &&
	       (!o->n_dns_upstreams ||
		(memcmp(o->dns_upstreams, n->dns_upstreams,
			o->n_dns_upstreams * sizeof(*o->dns_upstreams)) == 0 &&
		 memcmp(o->dns_upstream_ports_be, n->dns_upstream_ports_be,
			o->n_dns_upstreams * sizeof(*o->dns_upstream_ports_be)) == 0));
}
