// SPDX-License-Identifier: GPL-2.0-or-later
/* What rules decide. The programs do the same with vectors: bpf/verdict.bpf.h. */
#include <netinet/in.h>

#include "base/domain.h"
#include "config/policy.h"

static bool is_called(const struct policy_end *end, const char *pattern)
{
	for (size_t i = 0; end->names && i < end->names->n; i++)
		if (domain_matches(pattern, end->names->v[i]))
			return true;
	return false;
}

/* The cluster that this node is in is a label of each of its apps, and of those of other nodes, for
 * rules alone: two apps do not talk for it. An app that says itself which cluster it is of is of
 * that one. */
#define CLUSTER_KEY "cluster="

static bool is_of_cluster(const struct policy_end *end, const char *label)
{
	const size_t key = strlen(CLUSTER_KEY);

	if (!end->cluster || strncmp(label, CLUSTER_KEY, key) != 0 ||
	    !streq(label + key, end->cluster))
		return false;
	for (size_t i = 0; i < end->labels->n; i++)
		if (strncmp(end->labels->items[i], CLUSTER_KEY, key) == 0)
			return false;
	return true;
}

static bool has_labels(const struct policy_end *end, const struct labels *want)
{
	for (size_t i = 0; i < want->n; i++)
		if (!labels_has(end->labels, want->items[i]) && !is_of_cluster(end, want->items[i]))
			return false;
	return true;
}

static bool who_is(const struct config_who *w, const struct policy_end *end)
{
	switch (w->kind) {
	case WHO_LABELS:
		return end->labels && has_labels(end, &w->labels);
	case WHO_NAME:
		return end->labels && end->name && streq(w->name, end->name);
	case WHO_PREFIX:
		if (end->labels)
			return w->derived && (addr_eq(&w->prefix.addr, &end->own4) ||
					      addr_eq(&w->prefix.addr, &end->own6));
		if (end->somewhere)
			return !w->prefix.len;
		return prefix_contains(&w->prefix, &end->addr);
	case WHO_DOMAIN:
		return !end->labels && is_called(end, w->name);
	case WHO_EGRESS:
		return end->labels && end->egress == w->egress;
	}
	return false;
}

bool policy_side_is(const struct config_side *s, const struct policy_end *end)
{
	if (!s->n)
		return end->labels != NULL;
	for (size_t i = 0; i < s->n; i++)
		if (who_is(&s->v[i], end))
			return true;
	return false;
}

bool policy_port_is(const struct config_rule *r, const struct policy_port *p)
{
	unsigned bit = p->proto == IPPROTO_TCP	 ? RULE_TCP
		       : p->proto == IPPROTO_UDP ? RULE_UDP
						 : RULE_OTHER;

	if (r->protocols && !(r->protocols & bit))
		return false;
	if (!r->n_ports)
		return true;
	if (bit == RULE_OTHER)
		return false;
	/* who let the first one in lets the others in */
	if (p->fragment)
		return r->action == RULE_ALLOW;
	for (size_t i = 0; i < r->n_ports; i++)
		if (p->port >= r->ports[i].first && p->port <= r->ports[i].last)
			return true;
	return false;
}

static bool share_a_label(const struct labels *a, const struct labels *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (labels_has(b, a->items[i]))
			return true;
	return false;
}

void policy_judge(const struct config_rule *rules, size_t n, const struct policy_end *client,
		  const struct policy_end *server, const struct policy_port *port,
		  struct policy_verdict *ret)
{
	*ret = (struct policy_verdict){.rule = -1, .audit = -1, .log = -1};
	for (size_t i = 0; i < n; i++) {
		const struct config_rule *r = &rules[i];

		if (!policy_side_is(&r->from, client) || !policy_side_is(&r->to, server) ||
		    !policy_port_is(r, port))
			continue;
		if (r->action == RULE_LOG) {
			ret->log = ret->log < 0 ? (int)i : ret->log;
		} else if (r->audit) {
			ret->audit = ret->audit < 0 ? (int)i : ret->audit;
		} else {
			ret->rule = (int)i;
			ret->deny = r->action == RULE_DENY;
			return;
		}
	}
	ret->no_label =
		client->labels && server->labels && !share_a_label(client->labels, server->labels);
}

bool policy_side_names(const struct config_side *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].kind == WHO_DOMAIN && (!name || domain_matches(s->v[i].name, name)))
			return true;
	return false;
}

static bool is_anywhere(const struct config_side *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].kind == WHO_PREFIX && !s->v[i].prefix.len)
			return true;
	return false;
}

int policy_judge_name(const struct config_rule *rules, size_t n, const struct policy_end *client,
		      const char *name)
{
	for (size_t i = 0; i < n; i++) {
		const struct config_rule *r = &rules[i];
		bool some_ports = r->n_ports || r->protocols;

		if (r->action == RULE_LOG || r->audit || (r->action == RULE_DENY && some_ports) ||
		    (!policy_side_names(&r->to, name) && !is_anywhere(&r->to)))
			continue;
		if (policy_side_is(&r->from, client))
			return (int)i;
	}
	return -1;
}
