// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules to their canonical line, and the names of what they do. */
#include "rules/field.h"
#include "rules/priv.h"

const char *const ax_verdict_names[8] = {
	[AX_VERDICT_PASS] = "pass",	  [AX_VERDICT_DROP] = "drop",
	[AX_VERDICT_REFLECT] = "reflect", [AX_VERDICT_REDIRECT] = "redirect",
	[AX_VERDICT_CPU] = "cpu",	  [AX_VERDICT_BALANCE] = "balance",
	[AX_VERDICT_ROUTE] = "route",	  [AX_VERDICT_CHALLENGE] = "challenge",
};

bool rule_verdict_has_target(enum ax_verdict v)
{
	return v == AX_VERDICT_REDIRECT || v == AX_VERDICT_CPU || v == AX_VERDICT_BALANCE;
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
		value_write_mac(f, r->smac);
	}
	if (r->rewrite & AX_REWRITE_DMAC) {
		fputs(" dmac ", f);
		value_write_mac(f, r->dmac);
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
	for (size_t i = 0; i < RULE_FIELDS; i++)
		field_write(&rule_fields[i], &r->in[rule_fields[i].number], f);
	write_action(f, r);
	write_rewrites(f, r);
	write_capture(f, r);
	write_rate(f, r);
	rule_write_learn(f, r);
	if (r->sample)
		fprintf(f, " sample %u", r->sample);
	if (r->log)
		fputs(" log yes", f);
	if (r->trigger)
		fputs(" trigger yes", f);
	good = !ferror(f);
	return fclose(f) == 0 && good ? take_ptr(&line) : NULL;
}
