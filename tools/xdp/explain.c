/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp explain */
#include <linux/bpf.h>
#include <net/ethernet.h>
#include <net/if.h>

#include "base/place.h"
#include "tools/lib/output.h"
#include "tools/xdp/common.h"
#include "tools/xdp/explain_words.h"
#include "packet/text.h"
#include "packet/pcap.h"
#include "tools/lib/text.h"

#define PCAP_FILE_MAX (256u << 20)

struct request {
	const char *packet, *hex, *pcap; /* exactly one */
	uint32_t count;			 /* of a pcap file's packets, 0: all */
	int as_json;
	int as_state; /* enum ax_state; AX_STATE_UNASKED: the host is asked */
	const char *at, *mark;
	struct xdp_assumed as;
	struct cmd_xdp_direction direction;
};

/* Who is asked: the instance's list, or else the program of somebody else. */
struct judge {
	struct xdp *list; /* NULL: there is none */
	struct xdp_foreign other;
};

/* A frame and what became of it. */
struct answer {
	const uint8_t *frame;
	size_t len;
	struct xdp_explanation x;
};

static bool changed(const struct answer *a)
{
	return a->x.out && (a->x.out_len != a->len || memcmp(a->x.out, a->frame, a->len) != 0);
}

static void put_key(const char *key)
{
	printf("%-8s ", key);
}

static int put_packet(const char *key, const void *frame, size_t len, bool with_mac)
{
	autofree char *line = packet_line(frame, len, with_mac);

	if (!line)
		return -ENOMEM;
	put_key(key);
	puts(line);
	return 0;
}

static int put_answer(const struct answer *a)
{
	const struct xdp_explanation *x = &a->x;
	int r = put_packet("packet", a->frame, a->len, changed(a));

	if (r)
		return r;
	put_key("verdict");
	puts(explain_verdict(x));
	if (explain_by_rule(x)) {
		put_key("rule");
		text_put(x->line ? x->line : "default", stdout);
		putchar('\n');
	}
	if (rule_state_name(x->x.state)) {
		put_key("state");
		puts(rule_state_name(x->x.state));
	}
	put_key("reason");
	explain_put_why(x, stdout);
	putchar('\n');
	return changed(a) ? put_packet("becomes", x->out, x->out_len, true) : 0;
}

/* One line for a packet of many. */
static int put_short(const struct answer *a, uint32_t number)
{
	autofree char *line = packet_line(a->frame, a->len, false);
	const struct xdp_explanation *x = &a->x;

	if (!line)
		return -ENOMEM;
	printf("%-5u %-8s ", number, explain_verdict(x));
	text_put(explain_by_rule(x)  ? x->rule
		 : explain_reason(x) ? explain_reason(x)
				     : "?",
		 stdout);
	printf("  %s\n", line);
	return 0;
}

static json_t *hex_json(const uint8_t *p, size_t len)
{
	autofree char *hex = malloc(2 * len + 1);

	for (size_t i = 0; hex && i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", p[i]);
	return hex ? json_stringn(hex, 2 * len) : NULL;
}

static int add_packet(json_t *j, const char *key, const char *bytes_key, const uint8_t *frame,
		      size_t len)
{
	autofree char *line = packet_line(frame, len, true);

	if (!line || json_object_set_new(j, key, json_string(line)))
		return -ENOMEM;
	return json_object_set_new(j, bytes_key, hex_json(frame, len)) ? -ENOMEM : 0;
}

static int put_json(const struct answer *a, uint32_t number)
{
	const struct xdp_explanation *x = &a->x;
	static const char *const decided[] = {"rule", "policy", "let-through", "balancer",
					      "answer"};
	autojson json_t *j = json_object();
	char name[IF_NAMESIZE];
	int r = 0;

	if (number)
		json_object_set_new(j, "number", json_integer(number));
	r = add_packet(j, "packet", "bytes", a->frame, a->len);
	json_object_set_new(j, "verdict", json_string(explain_verdict(x)));
	json_object_set_new(
		j, "decided",
		json_string(x->x.decided < ARRAY_SIZE(decided) ? decided[x->x.decided] : "?"));
	if (explain_by_rule(x)) {
		json_object_set_new(j, "rule", json_string(x->rule));
		if (x->line)
			json_object_set_new(j, "line", json_string(x->line));
	}
	if (explain_reason(x))
		json_object_set_new(j, "reason", json_string(explain_reason(x)));
	if (x->x.reason == AX_REASON_ROUTED && if_indextoname(x->x.ifindex, name))
		json_object_set_new(j, "interface", json_string(name));
	if (explain_is_error(x))
		json_object_set_new(j, "quoted_rule", json_string(x->quoted_rule));
	if (rule_state_name(x->x.state))
		json_object_set_new(j, "state", json_string(rule_state_name(x->x.state)));
	json_object_set_new(j, "limited", json_boolean(x->x.limited));
	if (!r && changed(a))
		r = add_packet(j, "becomes", "becomes_bytes", x->out, x->out_len);
	if (!r)
		cmd_put_json(j, number ? JSON_COMPACT : JSON_INDENT(2));
	return r;
}

/* --- programs of others --- */

static int put_other(const struct answer *a, const struct xdp_foreign *f)
{
	int r = put_packet("packet", a->frame, a->len, changed(a));

	if (r)
		return r;
	put_key("verdict");
	puts(explain_action(a->x.action));
	put_key("by");
	for (size_t i = 0; i < f->n; i++) {
		fputs(i ? ", " : "", stdout);
		text_put(f->programs[i].name, stdout);
		printf(" (id %u)", f->programs[i].id);
	}
	puts(f->dispatcher ? ", in libxdp's dispatcher: no list of this instance"
			   : ", another's program: no list of this instance");
	return changed(a) ? put_packet("becomes", a->x.out, a->x.out_len, true) : 0;
}

static int put_other_short(const struct answer *a, uint32_t number, const struct xdp_foreign *f)
{
	autofree char *line = packet_line(a->frame, a->len, false);

	if (!line)
		return -ENOMEM;
	printf("%-5u %-8s ", number, explain_action(a->x.action));
	text_put(f->dispatcher ? "dispatcher" : f->programs[0].name, stdout);
	printf("  %s\n", line);
	return 0;
}

static int put_other_json(const struct answer *a, uint32_t number, const struct xdp_foreign *f)
{
	autojson json_t *j = json_object();
	json_t *programs = json_array();
	int r;

	if (number)
		json_object_set_new(j, "number", json_integer(number));
	r = add_packet(j, "packet", "bytes", a->frame, a->len);
	json_object_set_new(j, "verdict", json_string(explain_action(a->x.action)));
	json_object_set_new(j, "decided", json_string("another"));
	for (size_t i = 0; i < f->n; i++)
		json_array_append_new(programs, json_pack("{s:s, s:I}", "name", f->programs[i].name,
							  "id", (json_int_t)f->programs[i].id));
	json_object_set_new(j, "programs", programs);
	json_object_set_new(j, "dispatcher", json_boolean(f->dispatcher));
	if (!r && changed(a))
		r = add_packet(j, "becomes", "becomes_bytes", a->x.out, a->x.out_len);
	if (!r)
		cmd_put_json(j, number ? JSON_COMPACT : JSON_INDENT(2));
	return r;
}

static int put_frame(const struct judge *j, const struct answer *a, uint32_t number, bool as_json)
{
	if (j->list)
		return as_json	? put_json(a, number)
		       : number ? put_short(a, number)
				: put_answer(a);
	return as_json	? put_other_json(a, number, &j->other)
	       : number ? put_other_short(a, number, &j->other)
			: put_other(a, &j->other);
}

/* number: of a file's packet, else 0 */
static int explain_frame(struct judge *j, const uint8_t *frame, size_t len, uint32_t number,
			 const struct request *q, struct error *e)
{
	struct answer a = {.frame = frame, .len = len};
	int r = j->list ? xdp_explain_as(j->list, frame, len, &q->as, &a.x, e)
			: xdp_foreign_run(&j->other, frame, len, &a.x, e);

	if (r)
		return r;
	r = put_frame(j, &a, number, q->as_json);
	xdp_explanation_free(&a.x);
	return r ? error_set(e, r, "the answer could not be printed: %s", strerror(-r)) : 0;
}

/* What a capture cut off counts for the packet's length: zeros stand for it. */
static int explain_packet(struct judge *j, const struct pcap_packet *p, uint32_t number,
			  const struct request *q, struct error *e)
{
	size_t len = p->original_len > p->len && p->original_len <= UINT16_MAX + ETH_HLEN
			     ? p->original_len
			     : p->len;
	autofree uint8_t *frame = NULL;

	if (len == p->len)
		return explain_frame(j, p->data, p->len, number, q, e);
	frame = calloc(1, len);
	if (!frame)
		return error_set(e, -ENOMEM, "out of memory");
	memcpy(frame, p->data, p->len);
	return explain_frame(j, frame, len, number, q, e);
}

static int explain_pcap(struct judge *j, const struct request *q, struct error *e)
{
	const char *name = streq(q->pcap, "-") ? "stdin" : q->pcap;
	autofree uint8_t *data = NULL;
	struct pcap_packet packet;
	struct error why = {0};
	struct pcap file;
	size_t len;
	int r;

	r = cmd_xdp_read_file(q->pcap, PCAP_FILE_MAX, &data, &len, e);
	if (r)
		return r;
	r = pcap_begin(&file, data, len, &why);
	while (!r && (!q->count || file.count < q->count)) {
		r = pcap_next(&file, &packet, &why);
		if (r <= 0)
			break;
		r = explain_packet(j, &packet, file.count, q, e);
		if (r)
			return r;
	}
	return r < 0 ? error_set(e, r, "%s cannot be used: %s", name, why.text) : 0;
}

/* The described packet as a frame. */
static int make_frame(const struct request *q, uint8_t **frame, size_t *len, struct error *e)
{
	if (q->hex)
		return packet_parse_hex(q->hex, frame, len, e);
	return packet_text_parse(q->packet, frame, len, e);
}

static void judge_close(struct judge *j)
{
	if (j->list)
		xdp_close(j->list);
	xdp_foreign_close(&j->other);
}

static int judge_open(const struct instance *inst, const char *ifname, const struct request *q,
		      struct judge *j, struct error *e)
{
	int r = xdp_open(inst, ifname, &j->list, e), other;

	if (r != -ENOENT)
		return r;
	other = xdp_foreign_open(inst, ifname, &j->other, e);
	if (other)
		return other == -ENOENT ? r : other;
	if (q->as.state != AX_STATE_UNASKED || q->as.minute != AX_TIME_UNKNOWN)
		return error_set(e, -EINVAL,
				 "--state and --at are for lists of ax: %s has the program '%s' of "
				 "somebody else",
				 ifname, j->other.programs[0].name);
	return 0;
}

static int explain(struct cmd *c, const char *ifname, const struct request *q)
{
	struct judge j CLEANUP(judge_close) = {.other.prog = -1};
	autofree uint8_t *frame = NULL;
	struct error e = {0};
	size_t len = 0;
	int r;

	if (!q->pcap && make_frame(q, &frame, &len, &e))
		return cmd_usage(c, "%s", e.text);
	if (!cmd_root(c))
		return CMD_FAILED;
	r = judge_open(&c->inst, ifname, q, &j, &e);
	if (!r && q->pcap)
		r = explain_pcap(&j, q, &e);
	else if (!r)
		r = explain_frame(&j, frame, len, 0, q, &e);
	fflush(stdout);
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

static int run(struct cmd *c, int argc, char **argv)
{
	struct request q = {.as_state = AX_STATE_UNASKED, .as.minute = AX_TIME_UNKNOWN};
	const char *place;
	int status;

	if (!cmd_begin(c, &q, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "say which interface (and put the packet in quotes)");
	if (!!q.packet + !!q.hex + !!q.pcap != 1)
		return cmd_usage(c, "give the packet: one of --packet, --hex and --pcap");
	q.as.state = (enum ax_state)q.as_state;
	q.as.for_us = q.packet && !strstr(q.packet, " mac ");
	if (q.at) {
		int minute = time_parse(q.at);

		if (minute < 0)
			return cmd_usage(
				c, "'%s' is no time of a week: say one such as 'sat 22:30'", q.at);
		q.as.minute = (uint16_t)minute;
	}
	if (q.mark && mark_parse(q.mark, &q.as.mark) < 0)
		return cmd_usage(c, "'%s' is no mark: say one such as 0x10", q.mark);
	place = cmd_xdp_place(&q.direction, argv[0]);
	if (q.mark && !place_is_egress(place))
		return cmd_usage(c, "packets that come in have no mark yet where XDP sees them: "
				    "--mark goes with --direction egress");
	cmd_output();
	return explain(c, place, &q);
}

static const char *state_choice(size_t i)
{
	return rule_state_name((enum ax_state)i);
}

static const struct words state_words = {.nth = state_choice};

static const struct opt options[] = {
	{"packet", 'P', OPT_STRING, "TEXT",
	 "describe it: [vlan N] PROTO SRC[:PORT] > DST[:PORT], then flags, type, quoting, frag, "
	 "ttl, dscp, ecn, data, len or mac; see ax-xdp(8)",
	 offsetof(struct request, packet), NULL},
	{"hex", 'x', OPT_STRING, "BYTES", "the frame's bytes, from the Ethernet header on",
	 offsetof(struct request, hex), NULL},
	{"pcap", 'r', OPT_STRING, "FILE", "all packets of a capture file; '-': stdin",
	 offsetof(struct request, pcap), &words_file},
	{"count", 'n', OPT_NUMBER, "N", "with --pcap: only the first N packets",
	 offsetof(struct request, count), NULL},
	{"state", 's', OPT_CHOICE, "STATE",
	 "take it for established, new, related or invalid; without, this host is asked when a "
	 "rule "
	 "wants to know",
	 offsetof(struct request, as_state), &state_words},
	{"at", 't', OPT_STRING, "TIME",
	 "as if it came at this time of the week, such as 'sat 22:30'; without, now",
	 offsetof(struct request, at), NULL},
	{"mark", 'm', OPT_STRING, "MARK",
	 "with --direction egress: as if it had this mark, such as 0x10; without, none",
	 offsetof(struct request, mark), NULL},
	{"output", 'o', OPT_CHOICE, "FORMAT",
	 "table (the default) or json (with --pcap one object a line)",
	 offsetof(struct request, as_json), &output_table_words},
};

const struct command cmd_xdp_explain = {
	.name = "xdp explain",
	.about = "ask what happens to a packet, and why",
	.run = run,
	.syntax =
		{
			.usage = "ax xdp explain IFACE --packet TEXT|--hex BYTES|--pcap FILE "
				 "[-s STATE] [-t TIME] [-m MARK] [-o FORMAT]",
			.about = "Tells what would happen to a packet that arrives at the "
				 "interface now, by which rule and why, and what it would be "
				 "turned into. The kernel runs the loaded program on it; nothing "
				 "is counted, captured or sent. A program of somebody else is run "
				 "as it is, and counts what it counts.\n\n"
				 "ax xdp explain eth0 --packet 'tcp 10.0.0.9 > 10.0.0.1:22'",
			.own = {{options, ARRAY_SIZE(options), 0},
				{cmd_xdp_direction_opts, 1, offsetof(struct request, direction)}},
			.args = {&words_interface},
		},
};
