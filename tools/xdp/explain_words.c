/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was decided about a packet, and why, in words. */
#include <linux/bpf.h>
#include <net/if.h>

#include "tools/xdp/explain_words.h"
#include "tools/lib/text.h"

const char *explain_verdict(const struct xdp_explanation *x)
{
	switch (x->action) {
	case XDP_PASS:
		return "pass";
	case XDP_DROP:
		return "drop";
	case XDP_TX:
	case XDP_REDIRECT:
		return x->x.verdict < ARRAY_SIZE(ax_verdict_names) ? ax_verdict_names[x->x.verdict]
								   : "?";
	default:
		return "aborted";
	}
}

const char *explain_reason(const struct xdp_explanation *x)
{
	return x->x.reason && x->x.reason < AX_REASONS ? rule_reasons[x->x.reason].name : NULL;
}

bool explain_by_rule(const struct xdp_explanation *x)
{
	return x->x.decided == AX_DECIDED_RULE || x->x.decided == AX_DECIDED_BALANCER;
}

bool explain_is_error(const struct xdp_explanation *x)
{
	return x->x.reason == AX_REASON_ICMP_ERROR && x->quoted_rule;
}

static bool is_routing(const struct xdp_explanation *x)
{
	return x->x.verdict == AX_VERDICT_ROUTE && explain_by_rule(x);
}

/* Where a route leads, or why the kernel is to see to it. */
static void put_routing(const struct xdp_explanation *x, FILE *to)
{
	static const char *const whys[AX_REASONS] = {
		[AX_REASON_ROUTE_LOCAL] =
			"no route for single packets leads there: it is this host's own address, a "
			"broadcast or multicast address, or there is none",
		[AX_REASON_ROUTE_UNREACHABLE] = "its route says that it is not reachable",
		[AX_REASON_ROUTE_OFF] = "forwarding is off on the interface",
		[AX_REASON_ROUTE_NEIGHBOUR] =
			"the Ethernet address of the next hop is not known yet",
		[AX_REASON_ROUTE_TTL] = "its lifetime ends here",
		[AX_REASON_ROUTE_MTU] = "it is larger than the MTU of its way",
		[AX_REASON_ROUTE_SOURCE] =
			"what goes to its source would not leave by the interface that it came by",
		[AX_REASON_ROUTE_DEVICE] =
			"its route leads to an interface that gets nothing from XDP, or back",
		[AX_REASON_ROUTE_OTHER] =
			"it is not plain IP for this interface (options, tags, another address)",
	};
	const char *reason = explain_reason(x), *why = reason ? whys[x->x.reason] : NULL;
	char name[IF_NAMESIZE];

	if (x->x.reason == AX_REASON_ROUTED && if_indextoname(x->x.ifindex, name)) {
		fputs("; its route leads to ", to);
		text_put(name, to);
	} else if (why) {
		fprintf(to, "; left to the kernel: %s (%s)", why, reason);
	} else if (x->action == XDP_PASS) {
		fputs("; left to the kernel", to);
	}
}

static bool is_challenging(const struct xdp_explanation *x)
{
	return x->x.verdict == AX_VERDICT_CHALLENGE && explain_by_rule(x);
}

/* What becomes of a packet that is challenged. */
static void put_challenge(const struct xdp_explanation *x, FILE *to)
{
	static const char *const becomes[AX_REASONS] = {
		[AX_REASON_CHALLENGED] = "its SYN is answered with a cookie",
		[AX_REASON_CHALLENGE_MET] =
			"it brings a cookie back that is right: the kernel makes the connection",
		[AX_REASON_BAD_COOKIE] =
			"dropped: it belongs to no connection, and its cookie is not right",
		[AX_REASON_CHALLENGE_IDLE] =
			"left to the kernel: it makes no cookie for that socket as long as the "
			"socket's queue is not full",
		[AX_REASON_CHALLENGE_OTHER] =
			"left to the kernel: no socket of this host listens there, or it is not "
			"plain TCP for this interface",
	};
	const char *reason = explain_reason(x), *what = reason ? becomes[x->x.reason] : NULL;

	if (what)
		fprintf(to, "; %s (%s)", what, reason);
	else if (reason && x->action == XDP_DROP)
		fprintf(to, "; dropped: %s", reason);
	else if (x->action == XDP_PASS)
		fputs("; it goes on to the kernel", to);
}

/* What a QUIC packet's connection id says, if it was looked at. False: it was not. */
static bool put_quic(const struct xdp_explanation *x, FILE *to)
{
	switch (x->x.reason) {
	case AX_REASON_QUIC_ID:
		fputs("; its QUIC connection id says which backend", to);
		return true;
	case AX_REASON_QUIC_UNKNOWN:
		fputs("; its QUIC connection id says no backend that is there", to);
		return true;
	default:
		return false;
	}
}

void explain_put_why(const struct xdp_explanation *x, FILE *to)
{
	const char *reason = explain_reason(x);

	switch (x->x.decided) {
	case AX_DECIDED_POLICY:
		fprintf(to, "%s: the list's policy for such packets", reason ? reason : "?");
		return;
	case AX_DECIDED_LET_THROUGH:
		fprintf(to, "%s: let through although %s would drop it", reason ? reason : "?",
			x->line ? "the rule" : "the default");
		break;
	case AX_DECIDED_BALANCER:
		fprintf(to, "%s: the balancer could not send it", reason ? reason : "?");
		break;
	case AX_DECIDED_ANSWER:
		fputs("it answers what a balancer sent to a backend, and goes back to the client",
		      to);
		if (x->x.reason && x->action == XDP_DROP)
			fprintf(to, "; dropped: %s", reason ? reason : "?");
		return;
	default:
		fputs(x->line ? "the first rule that matches it" : "no rule matches it", to);
		if (is_routing(x) && x->action != XDP_DROP)
			put_routing(x, to);
		else if (is_challenging(x))
			put_challenge(x, to);
		else if (put_quic(x, to))
			;
		else if (reason && x->x.reason >= AX_REASON_POLICIES)
			fprintf(to, "; dropped: %s", reason);
		else if (reason)
			fprintf(to, "; it is %s, which is judged by the rules", reason);
		else if (x->x.verdict == AX_VERDICT_REDIRECT && x->action == XDP_DROP)
			fputs("; dropped: the interface that it names is gone or another one now: "
			      "apply the list again",
			      to);
	}
	if (explain_is_error(x)) {
		fputs("; it is about a packet that is judged by ", to);
		text_put(x->quoted_rule, to);
	}
	if (x->x.limited)
		fputs("; the rule's rate limit would drop it now", to);
}

const char *explain_action(uint32_t action)
{
	static const char *const names[] = {
		[XDP_ABORTED] = "aborted", [XDP_DROP] = "drop",		[XDP_PASS] = "pass",
		[XDP_TX] = "tx",	   [XDP_REDIRECT] = "redirect",
	};

	return action < ARRAY_SIZE(names) ? names[action] : "no action of XDP";
}
