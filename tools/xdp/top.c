/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp top: who sends most, to which ports, and what the rules do, live. */
#include <poll.h>
#include <sys/random.h>

#include "packet/text.h"
#include "tools/lib/output.h"
#include "tools/lib/run_signals.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"
#include "tools/xdp/common.h"
#include "tools/xdp/filter.h"
#include "tools/xdp/foreign_words.h"
#include "tools/xdp/heavy.h"

#define LOOK_MS	      20
#define RING_BYTES    (1u << 20)
#define SNAP_BYTES    128   /* what ends are read from */
#define LOOKED_AT_MAX 20000 /* packets a second that are worth looking at */
#define ROWS_MAX      1000

struct request {
	uint32_t interval_ms, rows;
	bool once;
	int as_json;
	char *filter; /* its words, NULL: none */
	struct cmd_xdp_direction direction;
};

/* A key of struct heavy. */
union key {
	uint8_t bytes[HEAVY_KEY];
	struct {
		struct ax_addr addr; /* of a source; all zero: a port */
		uint16_t port;
		uint8_t proto, has_port;
	};
};
_Static_assert(sizeof(union key) == HEAVY_KEY, "a key has no bytes that nobody sets");

struct top {
	const struct request *q;
	const char *ifname;
	struct xdp_tap *tap;	       /* of the instance's list, or else */
	struct xdp_foreign_tap *other; /* of the program of somebody else */
	struct foreign_actions actions;
	struct heavy sources, ports;
	double seen; /* packets that the records of this interval stand for */
	struct ax_tap_count before, counted; /* since the tap was opened; in this interval */
	struct xdp_stats rules_before, rules;
	uint64_t since_ns,
		sampled_ns; /* CLOCK_MONOTONIC: the interval's beginning, the last look */
	struct ax_tap_count sampled;
	double seconds;
};

static void top_free(struct top *t)
{
	heavy_free(&t->sources);
	heavy_free(&t->ports);
	xdp_stats_free(&t->rules_before);
	xdp_stats_free(&t->rules);
	foreign_actions_free(&t->actions);
	xdp_tap_closep(&t->tap);
	xdp_foreign_tap_closep(&t->other);
}

static int on_record(void *arg, const struct ax_tapped *p, const uint8_t *data)
{
	struct top *t = arg;
	union key source = {0}, port = {0};
	struct packet_ends ends;

	if (t->other && foreign_actions_add(&t->actions, t->other, p))
		return -ENOMEM;
	if (p->kind != AX_TAPPED_IN)
		return 0;
	t->seen += p->sample;
	if (!packet_ends(data, p->captured, &ends))
		return 0;
	source.addr = ends.src;
	heavy_add(&t->sources, source.bytes, p->sample, (double)p->sample * p->frame_len);
	port.proto = ends.proto;
	port.has_port = ends.has_ports;
	port.port = ends.has_ports ? ends.dport : 0;
	heavy_add(&t->ports, port.bytes, p->sample, (double)p->sample * p->frame_len);
	return 0;
}

/* --- the time --- */

static int read_packets(struct top *t)
{
	return t->other ? xdp_foreign_tap_read(t->other, on_record, t)
			: xdp_tap_read(t->tap, on_record, t);
}

/* Whatever the filter wants. */
static int count_all(const struct top *t, struct ax_tap_count *ret)
{
	return t->other ? xdp_foreign_tap_came(t->other, ret) : xdp_tap_count(t->tap, ret);
}

static void sample(const struct top *t, uint32_t n)
{
	if (t->other)
		xdp_foreign_tap_sample(t->other, n);
	else
		xdp_tap_sample(t->tap, n);
}

/* So many packets a second cost the more the more of them are looked at. */
static void adapt(struct top *t)
{
	uint64_t now = time_mono_ns();
	struct ax_tap_count n;
	double rate;

	if (now - t->sampled_ns < LOOK_MS * UINT64_C(1000000) || count_all(t, &n))
		return;
	rate = (double)(n.packets - t->sampled.packets) * 1e9 / (double)(now - t->sampled_ns);
	sample(t, rate > LOOKED_AT_MAX ? (uint32_t)(rate / LOOKED_AT_MAX) + 1 : 1);
	t->sampled = n;
	t->sampled_ns = now;
}

/* Until the interval is over. 1: no further one is wanted, or nobody reads our output. */
static int look(struct top *t)
{
	const uint64_t end = t->since_ns + t->q->interval_ms * UINT64_C(1000000);
	struct pollfd out = {.fd = STDOUT_FILENO};

	for (;;) {
		bool last = time_mono_ns() >= end;
		int r = read_packets(t);

		if (r)
			return r;
		adapt(t);
		if (last)
			return 0;
		if (run_signals_came())
			return 1;
		if (poll(&out, 1, LOOK_MS) > 0 && out.revents & (POLLERR | POLLHUP))
			return 1;
	}
}

/* Opened anew each time, for an apply may change what is there. */
static int take_rules(struct cmd *c, struct top *t, struct error *e)
{
	autoxdp struct xdp *x = NULL;
	int r = xdp_open(&c->inst, t->ifname, &x, e);

	return r ? r : xdp_stats(x, &t->rules, e);
}

static int begin_interval(struct cmd *c, struct top *t, struct error *e)
{
	int r;

	heavy_clear(&t->sources);
	heavy_clear(&t->ports);
	foreign_actions_clear(&t->actions);
	t->seen = 0;
	t->since_ns = time_mono_ns();
	if (t->other)
		return 0;
	xdp_stats_free(&t->rules_before);
	r = t->rules.names.n ? 0 : take_rules(c, t, e);
	t->rules_before = t->rules;
	t->rules = (struct xdp_stats){0};
	t->since_ns = time_mono_ns();
	return r;
}

static int end_interval(struct cmd *c, struct top *t, struct error *e)
{
	struct ax_tap_count n;
	int r = t->other ? xdp_foreign_tap_count(t->other, &n) : xdp_tap_count(t->tap, &n);

	if (r)
		return error_set(e, r, "the packets could not be counted: %s", strerror(-r));
	t->seconds = (double)(time_mono_ns() - t->since_ns + 1) / 1e9;
	t->counted.packets = n.packets - t->before.packets;
	t->counted.bytes = n.bytes - t->before.bytes;
	t->before = n;
	return t->other ? 0 : take_rules(c, t, e);
}

/* --- printing --- */

/* What was looked at stands for all that came. */
static double scale(const struct top *t)
{
	return t->seen > 0 ? (double)t->counted.packets / t->seen / t->seconds : 0;
}

static const char *key_text(const struct heavy_entry *e, char *buf, size_t size)
{
	const char *proto;
	union key k;

	memcpy(k.bytes, e->key, sizeof(k.bytes));
	if (!addr_is_zero(&k.addr))
		return addr_format(&k.addr, buf);
	proto = rule_proto_name(k.proto);
	if (proto)
		snprintf(buf, size, k.has_port ? "%s %u" : "%s", proto, k.port);
	else
		snprintf(buf, size, "protocol %u", k.proto);
	return buf;
}

/* Of a rule in this interval; a counter that began anew counts from 0. */
static struct ax_rule_count rule_count(const struct top *t, size_t i)
{
	const struct strv *names = &t->rules_before.names;
	struct ax_rule_count n = t->rules.rules[i];

	for (size_t j = 0; j < names->n; j++) {
		const struct ax_rule_count *b = &t->rules_before.rules[j];

		if (streq(names->v[j], t->rules.names.v[i]) && n.packets >= b->packets) {
			n.packets -= b->packets;
			n.bytes -= b->bytes;
		}
	}
	return n;
}

struct row {
	const char *name;
	double packets, bytes; /* per second */
};

static int by_packets(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->packets < y->packets) - (x->packets > y->packets);
}

/* The rules that counted something, the busiest first; malloc'ed. */
static struct row *busiest_rules(const struct top *t, size_t *n)
{
	struct row *rows = calloc(t->rules.names.n + 1, sizeof(*rows));

	*n = 0;
	for (size_t i = 0; rows && i < t->rules.names.n; i++) {
		const struct ax_rule_count c = rule_count(t, i);

		if (c.packets)
			rows[(*n)++] =
				(struct row){t->rules.names.v[i], (double)c.packets / t->seconds,
					     (double)c.bytes / t->seconds};
	}
	if (rows)
		qsort(rows, *n, sizeof(*rows), by_packets);
	if (*n > t->q->rows)
		*n = t->q->rows;
	return rows;
}

/* What somebody else's program did, as rows; malloc'ed. */
static struct row *busiest_actions(const struct top *t, size_t *n)
{
	struct row *rows = calloc(t->actions.n + 1, sizeof(*rows));

	*n = rows ? t->actions.n : 0;
	for (size_t i = 0; i < *n; i++) {
		const struct foreign_action *a = &t->actions.v[i];

		rows[i] = (struct row){a->words, a->packets * scale(t), a->bytes * scale(t)};
	}
	if (rows)
		qsort(rows, *n, sizeof(*rows), by_packets);
	if (*n > t->q->rows)
		*n = t->q->rows;
	return rows;
}

static void add_rate(struct table *t, double v)
{
	char buf[TEXT_SHORT];

	if (v < 10000)
		table_addf(t, "%.*f", v > 0 && v < 10 ? 1 : 0, v);
	else
		table_add(t, text_bytes((uint64_t)v, buf));
}

static int put_rows(const char *title, const struct row *rows, size_t n, double all)
{
	const struct table_column columns[] = {
		{.title = title, .keep = 9, .min = 24},
		{.title = "PACKETS/S", .keep = 8, .right = true},
		{.title = "BIT/S", .keep = 7, .right = true},
		{.title = "SHARE", .keep = 6, .right = true},
	};
	const struct table_style style = table_style_for(stdout);
	CLEANUP(table_free) struct table t = {0};

	if (!n)
		return 0;
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		table_add(&t, rows[i].name);
		add_rate(&t, rows[i].packets);
		add_rate(&t, rows[i].bytes * 8);
		table_addf(&t, "%.1f%%", all > 0 ? 100 * rows[i].packets / all : 0);
	}
	putchar('\n');
	return table_print(&t, &style, stdout);
}

static json_t *rows_json(const char *key, const struct row *rows, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s,s:f,s:f}", key, rows[i].name,
						      "packets_per_second", rows[i].packets,
						      "bits_per_second", rows[i].bytes * 8));
	return list;
}

/* The heaviest of a table as rows; both are malloc'ed, names are in *texts. */
static struct row *heaviest(const struct top *t, const struct heavy *h, char (**texts)[ADDR_STRLEN],
			    size_t *n)
{
	autofree struct heavy_entry *v = calloc(t->q->rows, sizeof(*v));
	struct row *rows = calloc(t->q->rows, sizeof(*rows));

	*texts = calloc(t->q->rows, sizeof(**texts));
	*n = 0;
	if (!v || !rows || !*texts)
		return rows;
	*n = heavy_top(h, v, t->q->rows);
	for (size_t i = 0; i < *n; i++)
		rows[i] = (struct row){key_text(&v[i], (*texts)[i], ADDR_STRLEN),
				       v[i].packets * scale(t), v[i].bytes * scale(t)};
	return rows;
}

static int put_tables(const struct top *t, const struct row *sources, size_t n_sources,
		      const struct row *ports, size_t n_ports, const struct row *rules,
		      size_t n_rules)
{
	double all = (double)t->counted.packets / t->seconds;
	char packets[TEXT_SHORT], bits[TEXT_SHORT];
	int r;

	if (isatty(STDOUT_FILENO) && !t->q->once)
		fputs("\033[H\033[J", stdout);
	printf("%s: %s packets/s, %s bit/s", t->ifname, text_bytes((uint64_t)all, packets),
	       text_bytes((uint64_t)((double)t->counted.bytes * 8 / t->seconds), bits));
	if (t->counted.packets && t->seen < (double)t->counted.packets * 0.99)
		printf(" (%.1f%% of them looked at)", 100 * t->seen / (double)t->counted.packets);
	putchar('\n');
	r = put_rows("SOURCE", sources, n_sources, all);
	r = r ? r : put_rows("TO PORT", ports, n_ports, all);
	r = r ? r : put_rows(t->other ? "ACTION" : "RULE", rules, n_rules, all);
	putchar('\n');
	return r;
}

static int put(const struct top *t)
{
	autofree char(*texts)[ADDR_STRLEN] = NULL;
	autofree char(*port_texts)[ADDR_STRLEN] = NULL;
	size_t n_sources, n_ports, n_rules;
	autofree struct row *sources = heaviest(t, &t->sources, &texts, &n_sources);
	autofree struct row *ports = heaviest(t, &t->ports, &port_texts, &n_ports);
	autofree struct row *rules =
		t->other ? busiest_actions(t, &n_rules) : busiest_rules(t, &n_rules);
	autojson json_t *j = NULL;

	if (!sources || !ports || !rules)
		return -ENOMEM;
	if (!t->q->as_json)
		return put_tables(t, sources, n_sources, ports, n_ports, rules, n_rules);
	j = json_pack("{s:s,s:f,s:I,s:I,s:o,s:o,s:o}", "interface", t->ifname, "seconds",
		      t->seconds, "packets", (json_int_t)t->counted.packets, "bytes",
		      (json_int_t)t->counted.bytes, "sources",
		      rows_json("source", sources, n_sources), "ports",
		      rows_json("port", ports, n_ports), t->other ? "actions" : "rules",
		      rows_json(t->other ? "action" : "rule", rules, n_rules));
	if (!j)
		return -ENOMEM;
	cmd_put_json(j, t->q->once ? JSON_INDENT(2) : JSON_COMPACT);
	return 0;
}

/* --- the command --- */

static int goes_on(struct top *t, struct error *e)
{
	int r;

	if (!t->other)
		return xdp_tap_goes_on(t->tap)
			       ? 0
			       : error_set(e, -ENOENT,
					   "the rules were taken off the interface: nothing comes "
					   "any more");
	r = xdp_foreign_tap_follow(t->other, e);
	return r < 0 ? r : 0;
}

static int loop(struct cmd *c, struct top *t, struct error *e)
{
	int r;

	do {
		r = begin_interval(c, t, e);
		if (r)
			return r;
		r = look(t);
		if (r < 0)
			return error_set(e, r, "the packets could not be read: %s", strerror(-r));
		if (r)
			return 0;
		r = goes_on(t, e);
		r = r ? r : end_interval(c, t, e);
		if (r)
			return r;
		r = put(t);
		if (r)
			return error_set(e, r, "what was counted could not be printed: %s",
					 strerror(-r));
	} while (!t->q->once && !fflush(stdout));
	return 0;
}

/* x NULL: the instance has no list there, as *e says. */
static int open_tap(struct cmd *c, struct top *t, struct xdp *x, const struct rule *filter,
		    struct error *e)
{
	const struct xdp_tap_options o = {.filter = filter, .snap = SNAP_BYTES, .ring = RING_BYTES};
	struct error none = {0};
	int r;

	if (x)
		return xdp_tap_open(x, &o, &t->tap, e);
	r = xdp_foreign_tap_open(&c->inst, t->ifname, &o, &t->other, &none);
	if (none.text[0]) /* else there is no program at all, as *e says of the list */
		*e = none;
	return r;
}

static int run(struct cmd *c, const char *ifname, const struct request *q,
	       const struct rule *filter)
{
	autoxdp struct xdp *x = NULL; /* is there for longer than the tap */
	struct top t CLEANUP(top_free) = {.q = q, .ifname = ifname};
	struct error e = {0};
	uint64_t seed;
	int r;

	if (!cmd_root(c))
		return CMD_FAILED;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || heavy_init(&t.sources, seed) ||
	    heavy_init(&t.ports, seed)) {
		error_set(&e, -ENOMEM, "out of memory");
		return cmd_failed(c, &e);
	}
	r = xdp_open(&c->inst, ifname, &x, &e);
	if (!r || (r == -ENOENT && !place_is_egress(ifname)))
		r = open_tap(c, &t, x, filter, &e);
	if (!r) {
		run_signals_catch_all(); /* the tap is taken away at the end */
		r = loop(c, &t, &e);
	}
	fflush(stdout);
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

static int run_top(struct cmd *c, int argc, char **argv)
{
	struct request q = {.interval_ms = 1000, .rows = 10};
	struct rule filter = {0};
	struct error e = {0};
	int status;

	if (!cmd_begin(c, &q, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say which interface");
	if (!q.interval_ms)
		return cmd_usage(c, "-i has to be longer than nothing");
	if (!q.rows || q.rows > ROWS_MAX)
		return cmd_usage(c, "-n can be 1 to %d", ROWS_MAX);
	if (cmd_xdp_filter(argv + 1, (size_t)argc - 1, &filter, &q.filter, &e))
		return cmd_usage(c, "%s", e.text);
	cmd_output();
	status = run(c, cmd_xdp_place(&q.direction, argv[0]), &q, q.filter ? &filter : NULL);
	rule_free(&filter);
	free(q.filter);
	return status;
}

static const struct opt options[] = {
	{"interval", 'i', OPT_SPAN, "TIME", "how often (1s)", offsetof(struct request, interval_ms),
	 NULL},
	{"rows", 'n', OPT_NUMBER, "N", "of each kind at most (10)", offsetof(struct request, rows),
	 NULL},
	{"once", '1', OPT_FLAG, NULL, "end after the first interval",
	 offsetof(struct request, once), NULL},
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "table (the default) or json (one object a line, but for --once)",
	 offsetof(struct request, as_json), &output_table_words},
};

const struct command cmd_xdp_top = {
	.name = "xdp top",
	.about = "show who sends most, to which ports, and the busiest rules",
	.run = run_top,
	.syntax =
		{
			.usage = "ax xdp top IFACE [-i TIME] [-n N] [--once] [-o FORMAT] "
				 "[KEY VALUE ...]",
			.about =
				"Shows who sends most to an interface, to which ports, and which "
				"rules that meets, once a second until Ctrl-C. Keys and values, as "
				"rules have them, say which packets. While nobody looks, it costs "
				"nothing; where there are many packets, a part of them is looked "
				"at. Where the program is somebody else's, it shows what that one "
				"does with them.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{cmd_xdp_direction_opts, 1, offsetof(struct request, direction)}},
			.args = {&words_interface},
			.rest = &cmd_xdp_filter_words,
		},
};
