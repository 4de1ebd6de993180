/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/hints.h"

#include <stdio.h>

#include "base/util.h"

#define HINT_LEN 512

static bool is_protocol(const struct config_rule *r, uint8_t proto)
{
	return !r->protocols || r->protocols & (proto == IPPROTO_TCP ? RULE_TCP : RULE_UDP);
}

static bool has_port(const struct config_rule *r, uint16_t port)
{
	for (size_t i = 0; i < r->n_ports; i++)
		if (port >= r->ports[i].first && port <= r->ports[i].last)
			return true;
	return false;
}

/* The service's port that the rule has, and whose backends' port it has not; NULL: none. */
static const struct service_port *missed(const struct config_rule *r,
					 const struct config_service *s)
{
	for (size_t i = 0; i < s->n_ports; i++) {
		const struct service_port *p = &s->ports[i];

		if (p->target != p->port && is_protocol(r, p->proto) && has_port(r, p->port) &&
		    !has_port(r, p->target))
			return p;
	}
	return NULL;
}

/* Who is asked is judged, and that is a backend at its own port. */
static void hint_ports(const struct config *c, size_t rule, const struct config_service *s,
		       void (*say)(void *arg, const char *text), void *arg)
{
	const struct service_port *p = missed(&c->rules[rule], s);
	char text[HINT_LEN];

	if (!p)
		return;
	snprintf(text, sizeof(text),
		 "policy.rules[%zu]: %u is the port of the service %s, whose backends are asked at "
		 "%u: rules go by the backends' ports, so it wants port: %u",
		 rule, p->port, s->name, p->target, p->target);
	say(arg, text);
}

void config_hints(const struct config *c, void (*say)(void *arg, const char *text), void *arg)
{
	for (size_t i = 0; i < c->n_rules; i++) {
		const struct config_rule *r = &c->rules[i];

		for (size_t k = 0; r->n_ports && r->origin == RULE_OF_CONFIG && k < c->n_services;
		     k++)
			if (config_side_has_name(&r->to, c->services[k].name))
				hint_ports(c, i, &c->services[k], say, arg);
	}
}
