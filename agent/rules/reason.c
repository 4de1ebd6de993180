// SPDX-License-Identifier: GPL-2.0-or-later
/* The rows of the reasons. */
#include "rules/reason.h"

#include "base/util.h"
#include "rules/defaults.h"

const struct rule_reason rule_reasons[AX_REASONS] = {
	[AX_REASON_NONE] = {"none", AX_POLICY_RULES},
	[AX_REASON_RUNT] = {"runt", POLICY_RUNT},
	[AX_REASON_TOO_MANY_TAGS] = {"too-many-tags", POLICY_TOO_MANY_TAGS},
	[AX_REASON_BAD_VERSION] = {"bad-version", POLICY_BAD_VERSION},
	[AX_REASON_BAD_HEADER] = {"bad-header", POLICY_BAD_HEADER},
	[AX_REASON_BAD_LENGTH] = {"bad-length", POLICY_BAD_LENGTH},
	[AX_REASON_MAPPED_ADDRESS] = {"mapped-address", POLICY_MAPPED_ADDRESS},
	[AX_REASON_TOO_MANY_HEADERS] = {"too-many-headers", POLICY_TOO_MANY_HEADERS},
	[AX_REASON_SHORT_FRAGMENT] = {"short-fragment", POLICY_SHORT_FRAGMENT},
	[AX_REASON_SHORT_L4] = {"short-l4", POLICY_SHORT_L4},
	[AX_REASON_BAD_TCP] = {"bad-tcp", POLICY_BAD_TCP},
	[AX_REASON_BAD_UDP] = {"bad-udp", POLICY_BAD_UDP},
	[AX_REASON_SPLIT] = {"split-header", POLICY_SPLIT},
	[AX_REASON_IP_OPTIONS] = {"ip-options", POLICY_IP_OPTIONS},
	[AX_REASON_LATER_FRAGMENT] = {"later-fragment", POLICY_LATER_FRAGMENT},
	[AX_REASON_TUNNEL] = {"tunnel", POLICY_TUNNEL},
	[AX_REASON_ARP] = {"arp", POLICY_ARP},
	[AX_REASON_NEIGHBOUR] = {"neighbour", POLICY_NEIGHBOUR},
	[AX_REASON_MLD] = {"mld", POLICY_MLD},
	[AX_REASON_ICMP_ERROR] = {"icmp-error", POLICY_ICMP_ERROR},
	[AX_REASON_EXPOSED] = {"exposed", POLICY_EXPOSED},
	/* these have no policy */
	[AX_REASON_RATE_LIMITED] = {.name = "rate-limited"},
	[AX_REASON_CAPTURE_LOST] = {.name = "capture-lost"},
	[AX_REASON_NO_BACKEND] = {.name = "no-backend"},
	[AX_REASON_NO_ROUTE] = {.name = "no-route"},
	[AX_REASON_NO_NEIGHBOUR] = {.name = "no-neighbour"},
	[AX_REASON_TTL] = {.name = "ttl"},
	[AX_REASON_TOO_BIG] = {.name = "too-big"},
	[AX_REASON_FLOWS_FULL] = {.name = "flows-full"},
	[AX_REASON_NO_PORT] = {.name = "no-port"},
	[AX_REASON_QUIC_ID] = {.name = "quic-id"},
	[AX_REASON_QUIC_UNKNOWN] = {.name = "quic-unknown"},
	[AX_REASON_REWRITE_FAILED] = {.name = "rewrite-failed"},
	[AX_REASON_TRIGGER_LOST] = {.name = "trigger-lost"},
	[AX_REASON_ROUTED] = {.name = "routed"},
	[AX_REASON_ROUTE_LOCAL] = {.name = "route-local"},
	[AX_REASON_ROUTE_UNREACHABLE] = {.name = "route-unreachable"},
	[AX_REASON_ROUTE_OFF] = {.name = "route-off"},
	[AX_REASON_ROUTE_NEIGHBOUR] = {.name = "route-neighbour"},
	[AX_REASON_ROUTE_TTL] = {.name = "route-ttl"},
	[AX_REASON_ROUTE_MTU] = {.name = "route-mtu"},
	[AX_REASON_ROUTE_SOURCE] = {.name = "route-source"},
	[AX_REASON_ROUTE_DEVICE] = {.name = "route-device"},
	[AX_REASON_ROUTE_OTHER] = {.name = "route-other"},
	[AX_REASON_CHALLENGED] = {.name = "challenged"},
	[AX_REASON_CHALLENGE_MET] = {.name = "challenge-met"},
	[AX_REASON_BAD_COOKIE] = {.name = "bad-cookie"},
	[AX_REASON_CHALLENGE_IDLE] = {.name = "challenge-idle"},
	[AX_REASON_CHALLENGE_OTHER] = {.name = "challenge-other"},
};

enum ax_reason rule_class_find(const char *name)
{
	for (unsigned i = AX_REASON_NONE + 1; i < AX_REASON_POLICIES; i++)
		if (streq(rule_reasons[i].name, name))
			return (enum ax_reason)i;
	return AX_REASON_NONE;
}
