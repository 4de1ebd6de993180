/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp stats */
#include <poll.h>

#include "tools/lib/output.h"
#include "tools/xdp/common.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

struct stats_options {
	bool follow;
	int as_json;
	uint32_t interval_ms;
	struct cmd_xdp_direction direction;
};

/* What was counted at one time, and at the time before it. */
struct sample {
	struct xdp_stats now, before;
	bool again; /* `before` is there */
	double seconds;
};

static const struct table_column rule_columns[] = {
	{.title = "RULE", .keep = 9, .min = 24},
	{.title = "PACKETS", .keep = 9, .right = true},
	{.title = "BYTES", .keep = 8, .right = true},
	{.title = "LIMITED", .keep = 6, .right = true},
	{.title = "FAILED", .keep = 7, .right = true},
	{.title = "PACKETS/S", .keep = 8, .right = true},
	{.title = "BIT/S", .keep = 5, .right = true},
};
#define WITHOUT_RATES 5

static const struct table_column reason_columns[] = {
	{.title = "REASON", .keep = 9},
	{.title = "PACKETS", .keep = 9, .right = true},
	{.title = "PACKETS/S", .keep = 8, .right = true},
};

static const struct table_column backend_columns[] = {
	{.title = "BALANCER", .keep = 9, .min = 12},
	{.title = "BACKEND", .keep = 9, .min = 16},
	{.title = "STATE", .keep = 7},
	{.title = "FLOWS", .keep = 8, .right = true},
	{.title = "PACKETS", .keep = 8, .right = true},
	{.title = "BYTES", .keep = 6, .right = true},
	{.title = "PACKETS/S", .keep = 7, .right = true},
};

/* A counter that began anew counts from 0. */
static double rate(const struct sample *s, uint64_t now, uint64_t before)
{
	return (double)(now >= before ? now - before : now) / s->seconds;
}

/* Rules may have come and gone in between; a name stands for the same counter. Rules mostly are
 * where they were. */
static struct ax_rule_count count_before(const struct sample *s, size_t i)
{
	const struct strv *names = &s->before.names;
	const char *name = s->now.names.v[i];

	if (i < names->n && streq(names->v[i], name))
		return s->before.rules[i];
	for (size_t j = 0; j < names->n; j++)
		if (streq(names->v[j], name))
			return s->before.rules[j];
	return (struct ax_rule_count){0};
}

static void add_rate(struct table *t, double per_second)
{
	char buf[TEXT_SHORT];

	if (per_second < 10000)
		table_addf(t, "%.*f", per_second > 0 && per_second < 10 ? 1 : 0, per_second);
	else
		table_add(t, text_bytes((uint64_t)per_second, buf));
}

static int put_rules(const struct sample *s, bool follow, const struct table_style *style)
{
	CLEANUP(table_free) struct table t;
	char buf[TEXT_SHORT];

	table_init(&t, rule_columns, follow ? ARRAY_SIZE(rule_columns) : WITHOUT_RATES);
	for (size_t i = 0; i < s->now.names.n; i++) {
		const struct ax_rule_count *n = &s->now.rules[i];
		const struct ax_rule_count b =
			s->again ? count_before(s, i) : (struct ax_rule_count){0};

		if (s->again && n->packets == b.packets)
			continue;
		table_add(&t, s->now.names.v[i]);
		table_addf(&t, "%llu", (unsigned long long)n->packets);
		table_add(&t, text_bytes(n->bytes, buf));
		table_addf(&t, "%llu", (unsigned long long)n->limited);
		table_addf(&t, "%llu", (unsigned long long)n->failed);
		if (n->failed)
			table_colour(&t, COLOUR_YELLOW);
		if (!follow)
			continue;
		if (s->again) {
			add_rate(&t, rate(s, n->packets, b.packets));
			add_rate(&t, 8 * rate(s, n->bytes, b.bytes));
		} else {
			table_add(&t, NULL);
			table_add(&t, NULL);
		}
	}
	return table_print(&t, style, stdout);
}

static int put_reasons(const struct sample *s, bool follow, const struct table_style *style)
{
	CLEANUP(table_free) struct table t;
	bool any = false;

	table_init(&t, reason_columns, follow ? 3 : 2);
	for (size_t i = 1; i < AX_REASONS; i++) {
		uint64_t n = s->now.reasons[i], b = s->again ? s->before.reasons[i] : 0;

		if (n == b)
			continue;
		any = true;
		table_add(&t, rule_reasons[i].name);
		table_addf(&t, "%llu", (unsigned long long)n);
		if (follow && s->again)
			add_rate(&t, rate(s, n, b));
		else if (follow)
			table_add(&t, NULL);
	}
	if (!any)
		return 0;
	putchar('\n');
	return table_print(&t, style, stdout);
}

static const char *backend_state(const struct xdp_backend_stats *b)
{
	return b->down ? "down" : b->drain ? "drain" : "up";
}

/* What a backend was sent per second: of one that drains, whether anybody is left. */
static double backend_rate(const struct sample *s, const struct xdp_backend_stats *b)
{
	const struct xdp_stats *old = &s->before;

	for (size_t i = 0; i < old->n_backends; i++) {
		const struct xdp_backend_stats *o = &old->backends[i];

		if (o->port == b->port && addr_eq(&o->addr, &b->addr) &&
		    streq(o->balancer, b->balancer))
			return rate(s, b->packets, o->packets);
	}
	return rate(s, b->packets, 0);
}

static int put_backends(const struct sample *s, bool follow, const struct table_style *style)
{
	CLEANUP(table_free) struct table t;
	char buf[ADDR_STRLEN];

	table_init(&t, backend_columns, ARRAY_SIZE(backend_columns) - !follow);
	if (!s->now.n_backends)
		return 0;
	for (size_t i = 0; i < s->now.n_backends; i++) {
		const struct xdp_backend_stats *b = &s->now.backends[i];

		table_add(&t, b->balancer);
		table_add(&t, b->port ? addr_port_format(&b->addr, htons(b->port), buf)
				      : addr_format(&b->addr, buf));
		table_add(&t, backend_state(b));
		table_colour(&t, b->down ? COLOUR_RED : b->drain ? COLOUR_YELLOW : COLOUR_GREEN);
		table_addf(&t, "%llu", (unsigned long long)b->flows);
		table_addf(&t, "%llu", (unsigned long long)b->packets);
		table_add(&t, text_bytes(b->bytes, buf));
		if (follow && s->again)
			add_rate(&t, backend_rate(s, b));
		else if (follow)
			table_add(&t, NULL);
	}
	putchar('\n');
	return table_print(&t, style, stdout);
}

/* --- JSON --- */

static json_t *rules_json(const struct sample *s, bool follow)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->now.names.n; i++) {
		const struct ax_rule_count *n = &s->now.rules[i];
		json_t *j =
			json_pack("{s:s,s:I,s:I,s:I,s:I}", "rule", s->now.names.v[i], "packets",
				  (json_int_t)n->packets, "bytes", (json_int_t)n->bytes, "limited",
				  (json_int_t)n->limited, "failed", (json_int_t)n->failed);

		if (follow && s->again) {
			const struct ax_rule_count b = count_before(s, i);

			json_object_set_new(j, "packets_per_second",
					    json_real(rate(s, n->packets, b.packets)));
			json_object_set_new(j, "bytes_per_second",
					    json_real(rate(s, n->bytes, b.bytes)));
		}
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *backends_json(const struct sample *s, bool follow)
{
	json_t *list = json_array();
	char buf[ADDR_STRLEN];

	for (size_t i = 0; i < s->now.n_backends; i++) {
		const struct xdp_backend_stats *b = &s->now.backends[i];
		json_t *j =
			json_pack("{s:s,s:s,s:i,s:s,s:I,s:I,s:I}", "balancer", b->balancer,
				  "address", addr_format(&b->addr, buf), "port", (int)b->port,
				  "state", backend_state(b), "flows", (json_int_t)b->flows,
				  "packets", (json_int_t)b->packets, "bytes", (json_int_t)b->bytes);

		if (follow && s->again)
			json_object_set_new(j, "packets_per_second", json_real(backend_rate(s, b)));
		json_array_append_new(list, j);
	}
	return list;
}

static void put_json(const char *ifname, const struct sample *s, bool follow)
{
	autojson json_t *j = json_object();
	json_t *reasons = json_object();

	for (size_t i = 1; i < AX_REASONS; i++)
		if (s->now.reasons[i])
			json_object_set_new(reasons, rule_reasons[i].name,
					    json_integer((json_int_t)s->now.reasons[i]));
	json_object_set_new(j, "interface", json_string(ifname));
	json_object_set_new(j, "rules", rules_json(s, follow));
	json_object_set_new(j, "reasons", reasons);
	json_object_set_new(j, "backends", backends_json(s, follow));
	cmd_put_json(j, follow ? JSON_COMPACT : JSON_INDENT(2));
}

/* --- the command --- */

static int put_sample(const char *ifname, const struct sample *s, const struct stats_options *o)
{
	const struct table_style style = table_style_for(stdout);
	int r;

	if (o->as_json) {
		put_json(ifname, s, o->follow);
		return 0;
	}
	r = put_rules(s, o->follow, &style);
	r = r ? r : put_reasons(s, o->follow, &style);
	r = r ? r : put_backends(s, o->follow, &style);
	if (o->follow)
		putchar('\n');
	return r;
}

/* False: nobody reads our output any more. */
static bool wait_interval(uint32_t ms)
{
	struct pollfd out = {.fd = STDOUT_FILENO};
	uint64_t end = time_mono_ns() + ms * UINT64_C(1000000);
	uint64_t now;

	if (fflush(stdout))
		return false;
	while ((now = time_mono_ns()) < end) {
		poll(&out, 1, (int)((end - now + 999999) / 1000000));
		if (out.revents & (POLLERR | POLLHUP))
			return false;
	}
	return true;
}

/* Opened anew each time, for an apply may change what is there. */
static int take_stats(struct cmd *c, const char *ifname, struct xdp_stats *ret, struct error *e)
{
	autoxdp struct xdp *x = NULL;
	int r = xdp_open(&c->inst, ifname, &x, e);

	return r ? r : xdp_stats(x, ret, e);
}

static int stats(struct cmd *c, const char *ifname, const struct stats_options *o)
{
	struct sample s = {0};
	struct error e = {0};
	uint64_t last = 0, now;
	int r;

	do {
		r = take_stats(c, ifname, &s.now, &e);
		if (r)
			break;
		now = time_mono_ns();
		s.seconds = (double)(now - last + 1) / 1e9;
		last = now;
		r = put_sample(ifname, &s, o);
		if (r)
			error_set(&e, r, "the counters could not be printed: %s", strerror(-r));
		if (s.again)
			xdp_stats_free(&s.before);
		s.before = s.now;
		s.again = true;
	} while (!r && o->follow && wait_interval(o->interval_ms));
	if (s.again)
		xdp_stats_free(&s.before);
	fflush(stdout);
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct stats_options o = {.interval_ms = 1000};
	int status;

	if (!cmd_begin(c, &o, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "say which interface");
	cmd_output();
	return stats(c, cmd_xdp_place(&o.direction, argv[0]), &o);
}

static const struct opt options[] = {
	{"follow", 'f', OPT_FLAG, NULL, "go on, with what was counted per second, until Ctrl-C",
	 offsetof(struct stats_options, follow), NULL},
	{"interval", 'i', OPT_SPAN, "TIME", "with -f: how often (1s)",
	 offsetof(struct stats_options, interval_ms), NULL},
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "table (the default) or json (with -f one object a line)",
	 offsetof(struct stats_options, as_json), &output_table_words},
};

const struct command cmd_xdp_stats = {
	.name = "xdp stats",
	.about = "show what the rules counted",
	.run = run,
	.syntax =
		{
			.usage = "ax xdp stats IFACE [-f] [-i TIME] [-o FORMAT]",
			.about = "Shows what the rules of an interface counted: packets and bytes "
				 "that they matched, how many of them a rate limit dropped and a "
				 "redirect could not send; odd packets by reason; and the "
				 "backends of balancers. With -f, from the second time on only "
				 "what changed.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{cmd_xdp_direction_opts, 1,
				 offsetof(struct stats_options, direction)}},
			.args = {&words_interface},
		},
};
