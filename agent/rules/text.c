// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules to their canonical line, and the names of what they do. */
#include "rules/priv.h"

const char *const ax_reason_names[AX_REASONS] = {
	[AX_REASON_NONE] = "none",
	[AX_REASON_RUNT] = "runt",
	[AX_REASON_TOO_MANY_TAGS] = "too-many-tags",
	[AX_REASON_BAD_VERSION] = "bad-version",
	[AX_REASON_BAD_HEADER] = "bad-header",
	[AX_REASON_BAD_LENGTH] = "bad-length",
	[AX_REASON_MAPPED_ADDRESS] = "mapped-address",
	[AX_REASON_TOO_MANY_HEADERS] = "too-many-headers",
	[AX_REASON_SHORT_FRAGMENT] = "short-fragment",
	[AX_REASON_SHORT_L4] = "short-l4",
	[AX_REASON_BAD_TCP] = "bad-tcp",
	[AX_REASON_BAD_UDP] = "bad-udp",
	[AX_REASON_SPLIT] = "split-header",
	[AX_REASON_IP_OPTIONS] = "ip-options",
	[AX_REASON_LATER_FRAGMENT] = "later-fragment",
	[AX_REASON_TUNNEL] = "tunnel",
	[AX_REASON_ARP] = "arp",
	[AX_REASON_NEIGHBOUR] = "neighbour",
	[AX_REASON_MLD] = "mld",
	[AX_REASON_ICMP_ERROR] = "icmp-error",
	[AX_REASON_RATE_LIMITED] = "rate-limited",
	[AX_REASON_CAPTURE_LOST] = "capture-lost",
	[AX_REASON_NO_BACKEND] = "no-backend",
	[AX_REASON_NO_ROUTE] = "no-route",
	[AX_REASON_NO_NEIGHBOUR] = "no-neighbour",
	[AX_REASON_TTL] = "ttl",
	[AX_REASON_TOO_BIG] = "too-big",
	[AX_REASON_FLOWS_FULL] = "flows-full",
	[AX_REASON_NO_PORT] = "no-port",
	[AX_REASON_REWRITE_FAILED] = "rewrite-failed",
	[AX_REASON_TRIGGER_LOST] = "trigger-lost",
};

const char *const ax_verdict_names[6] = {
	[AX_VERDICT_PASS] = "pass",	  [AX_VERDICT_DROP] = "drop",
	[AX_VERDICT_REFLECT] = "reflect", [AX_VERDICT_REDIRECT] = "redirect",
	[AX_VERDICT_CPU] = "cpu",	  [AX_VERDICT_BALANCE] = "balance",
};

const char *const tcp_flag_names[8] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

const char *const fragment_names[3] = {
	[AX_FRAGMENT_NONE] = "none",
	[AX_FRAGMENT_FIRST] = "first",
	[AX_FRAGMENT_LATER] = "later",
};

/* --- conditions --- */

/* What goes between one value and the next. */
static void separate(FILE *f, size_t *n)
{
	if ((*n)++)
		putc(',', f);
}

static void write_sets(FILE *f, const struct strv *sets, size_t *n)
{
	for (size_t i = 0; i < sets->n; i++) {
		separate(f, n);
		fprintf(f, "@%s", sets->v[i]);
	}
}

static void write_addrs(FILE *f, const char *key, const struct rule_addrs *a)
{
	char buf[ADDR_STRLEN];
	size_t n = 0;

	if (!a->n && !a->sets.n)
		return;
	fprintf(f, "%s ", key);
	for (size_t i = 0; i < a->n; i++) {
		separate(f, &n);
		fputs(prefix_format(&a->v[i], buf), f);
	}
	write_sets(f, &a->sets, &n);
	putc(' ', f);
}

static void write_range(FILE *f, uint32_t lo, uint32_t hi, uint32_t open_end)
{
	if (lo == hi)
		fprintf(f, "%u", lo);
	else if (hi == open_end)
		fprintf(f, "%u-", lo);
	else
		fprintf(f, "%u-%u", lo, hi);
}

/* open_end: the value that is left out at a range's end; UINT32_MAX: none. */
static void write_ranges(FILE *f, const char *key, const struct ranges *r, uint32_t open_end)
{
	size_t n = 0;

	if (!r->n && !r->sets.n)
		return;
	fprintf(f, "%s ", key);
	for (size_t i = 0; i < r->n; i++) {
		separate(f, &n);
		write_range(f, r->v[i].lo, r->v[i].hi, open_end);
	}
	write_sets(f, &r->sets, &n);
	putc(' ', f);
}

static void write_vlan(FILE *f, const struct ranges *r)
{
	size_t n = 0;

	if (!r->n)
		return;
	fputs("vlan ", f);
	for (size_t i = 0; i < r->n; i++) {
		uint32_t lo = r->v[i].lo, hi = r->v[i].hi;

		if (lo < AX_VLAN_NONE) {
			separate(f, &n);
			write_range(f, lo, hi < AX_VLAN_NONE ? hi : AX_VLAN_NONE - 1, UINT32_MAX);
		}
		if (hi == AX_VLAN_NONE) {
			separate(f, &n);
			fputs("none", f);
		}
	}
	putc(' ', f);
}

/* Neighbours are written by their names when all have one. */
static bool has_names(const struct range *r)
{
	for (uint32_t p = r->lo; p <= r->hi; p++)
		if (!rule_proto_name((uint8_t)p))
			return false;
	return true;
}

static void write_proto(FILE *f, const struct ranges *r)
{
	size_t n = 0;

	if (!r->n)
		return;
	fputs("proto ", f);
	for (size_t i = 0; i < r->n; i++) {
		bool names = has_names(&r->v[i]);

		for (uint32_t p = r->v[i].lo; names && p <= r->v[i].hi; p++) {
			separate(f, &n);
			fputs(rule_proto_name((uint8_t)p), f);
		}
		if (names)
			continue;
		separate(f, &n);
		write_range(f, r->v[i].lo, r->v[i].hi, UINT32_MAX);
	}
	putc(' ', f);
}

static void write_flags(FILE *f, const struct rule *r)
{
	size_t n = 0;

	if (!r->flags_mask)
		return;
	fputs("flags ", f);
	for (unsigned i = 0; i < ARRAY_SIZE(tcp_flag_names); i++) {
		if (!(r->flags_mask & 1u << i))
			continue;
		separate(f, &n);
		fprintf(f, "%s%s", r->flags_value & 1u << i ? "" : "!", tcp_flag_names[i]);
	}
	putc(' ', f);
}

/* A whole type, or one code, from lo on. Returns the last index that it covers. */
static uint32_t write_icmp_item(FILE *f, uint32_t lo, uint32_t hi)
{
	bool whole = lo % ICMP_CODES == 0 && hi - lo >= ICMP_CODES - 1;
	uint32_t last = whole ? lo + ICMP_CODES - 1 : lo;
	uint32_t type = lo % ICMP_V6 / ICMP_CODES;
	const char *name = icmp_name(lo, last);

	if (name)
		fputs(name, f);
	else if (whole)
		fprintf(f, "%u", type);
	else
		fprintf(f, "%u/%u", type, lo % ICMP_CODES);
	return last;
}

/* Those of one family, whose indexes start at `base`. */
static void write_icmp(FILE *f, const char *key, const struct ranges *r, uint32_t base)
{
	uint32_t end = base + ICMP_V6 - 1;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		uint32_t lo = r->v[i].lo > base ? r->v[i].lo : base;
		uint32_t hi = r->v[i].hi < end ? r->v[i].hi : end;

		for (; lo <= hi; lo++) {
			if (n == 0)
				fprintf(f, "%s ", key);
			separate(f, &n);
			lo = write_icmp_item(f, lo, hi);
		}
	}
	if (n)
		putc(' ', f);
}

static void write_fragment(FILE *f, const struct ranges *r)
{
	size_t n = 0;

	if (!r->n)
		return;
	fputs("fragment ", f);
	for (size_t i = 0; i < r->n; i++) {
		for (uint32_t v = r->v[i].lo; v <= r->v[i].hi; v++) {
			separate(f, &n);
			fputs(fragment_names[v], f);
		}
	}
	putc(' ', f);
}

static void write_mac(FILE *f, const uint8_t m[6])
{
	fprintf(f, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

static void write_macs(FILE *f, const struct rule *r)
{
	size_t n = 0;

	if (!r->n_mac)
		return;
	fputs("mac ", f);
	for (size_t i = 0; i < r->n_mac; i++) {
		separate(f, &n);
		write_mac(f, r->mac[i].b);
	}
	putc(' ', f);
}

/* --- what it does --- */

static void write_action(FILE *f, const struct rule *r)
{
	fprintf(f, "action %s", ax_verdict_names[r->verdict]);
	if (r->verdict == AX_VERDICT_CPU)
		fprintf(f, " %u", r->cpu);
	else if (r->target)
		fprintf(f, " %s", r->target);
}

static void write_rewrites(FILE *f, const struct rule *r)
{
	char buf[ADDR_STRLEN];

	if (r->rewrite & AX_REWRITE_SMAC) {
		fputs(" smac ", f);
		write_mac(f, r->smac);
	}
	if (r->rewrite & AX_REWRITE_DMAC) {
		fputs(" dmac ", f);
		write_mac(f, r->dmac);
	}
	if (r->rewrite & AX_REWRITE_DST)
		fprintf(f, " to %s", addr_format(&r->to, buf));
	if (r->rewrite & AX_REWRITE_DPORT)
		fprintf(f, " to-port %u", r->to_port);
	if (r->checksum)
		fputs(" checksum recompute", f);
}

static void write_capture(FILE *f, const struct rule *r)
{
	if (!r->capture)
		return;
	fprintf(f, " capture %u", r->capture);
	if (r->slot)
		fprintf(f, "%s,slot=%s", r->capture_ring ? ",ring" : "", r->slot);
	if (r->capture_frame)
		fputs(",frame", f);
}

static void write_rate(FILE *f, const struct rule *r)
{
	static const struct {
		uint64_t factor;
		const char *bits, *packets;
	} units[] = {
		{1000000000, "gbit", NULL},
		{1000000, "mbit", "mpps"},
		{1000, "kbit", "kpps"},
		{1, "bit", "pps"},
	};
	size_t i = 0;

	if (!r->rate)
		return;
	while (r->rate % units[i].factor || (!r->rate_bits && !units[i].packets))
		i++;
	fprintf(f, " rate %llu%s", (unsigned long long)(r->rate / units[i].factor),
		r->rate_bits ? units[i].bits : units[i].packets);
	if (r->burst != rate_default_burst(r->rate, r->rate_bits))
		fprintf(f, ",burst=%llu", (unsigned long long)r->burst);
	if (r->per_source && r->per4 == 32 && r->per6 == 128)
		fputs(",per=src", f);
	else if (r->per_source)
		fprintf(f, ",per=src/%u/%u", r->per4, r->per6);
}

char *rule_format(const struct rule *r)
{
	autofree char *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);
	bool good;

	if (!f)
		return NULL;
	if (r->name)
		fprintf(f, "name %s ", r->name);
	write_addrs(f, "src", &r->src);
	write_addrs(f, "dst", &r->dst);
	write_proto(f, &r->proto);
	write_ranges(f, "sport", &r->sport, UINT32_MAX);
	write_ranges(f, "dport", &r->dport, UINT32_MAX);
	write_flags(f, r);
	write_icmp(f, "icmp", &r->icmp, 0);
	write_icmp(f, "icmp6", &r->icmp, ICMP_V6);
	write_vlan(f, &r->vlan);
	write_fragment(f, &r->fragment);
	write_ranges(f, "length", &r->length, UINT16_MAX);
	write_macs(f, r);
	write_action(f, r);
	write_rewrites(f, r);
	write_capture(f, r);
	write_rate(f, r);
	if (r->sample)
		fprintf(f, " sample %u", r->sample);
	if (r->log)
		fputs(" log yes", f);
	if (r->trigger)
		fputs(" trigger yes", f);
	good = !ferror(f);
	return fclose(f) == 0 && good ? take_ptr(&line) : NULL;
}
