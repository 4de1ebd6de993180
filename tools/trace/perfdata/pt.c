// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace perfdata pt: the packets of Intel PT. */
#include "tools/lib/output.h"
#include "tools/trace/perfdata/perfdata.h"
#include "probes/pt/pt.h"

#define PACKET_TEXT 256 /* of any packet */

/* Of one CPU or thread: what comes in a later piece of it belongs to what came before. */
struct trace_of {
	struct perfdata_aux first;
	uint64_t end; /* of the last piece */
	struct pt_packets *packets;
	uint64_t counts[PT_KINDS];
};

struct pt {
	struct cmd *c;
	int output;
	bool count;
	struct trace_out out;
	struct perfdata *p;
	struct trace_of *traces;
	size_t n;
	bool is_pt;
	uint8_t *buf;
};

/* --- one packet --- */

static char *write_text(char *at, const char *s)
{
	while (*s)
		*at++ = *s++;
	return at;
}

static char *write_bits(char *at, const struct pt_one *one)
{
	for (unsigned i = one->n_bits; i--;)
		*at++ = one->bits >> i & 1 ? 'T' : 'N';
	return at;
}

static bool is_plain(enum pt_kind kind)
{
	return kind == PT_BAD || kind == PT_CUT || kind == PT_MODE_EXEC || kind == PT_CBR;
}

static char *write_value(char *at, enum pt_kind kind, uint64_t v)
{
	return is_plain(kind) ? trace_write_u64(at, v) : trace_write_hex(at, v);
}

static char *write_packet(char *at, const struct pt_one *one)
{
	*at++ = ' ';
	*at++ = ' ';
	at = trace_write_hex(at, one->offset);
	*at++ = ' ';
	at = write_text(at, pt_kind_name(one->kind));
	if (one->has_ip) {
		*at++ = ' ';
		at = trace_write_hex(at, one->ip);
	} else if (one->n_bits) {
		*at++ = ' ';
		at = write_bits(at, one);
	}
	for (unsigned i = 0; pt_value_name(one->kind, i); i++) {
		*at++ = ' ';
		at = write_text(at, pt_value_name(one->kind, i));
		*at++ = '=';
		at = write_value(at, one->kind, one->v[i]);
	}
	*at++ = '\n';
	return at;
}

static char *write_json(char *at, const struct trace_of *t, const struct pt_one *one)
{
	at = write_text(at, "{\"cpu\":");
	at = trace_write_s64(at, (int32_t)t->first.cpu);
	if (t->first.cpu == UINT32_MAX) {
		at = write_text(at, ",\"tid\":");
		at = trace_write_s64(at, (int32_t)t->first.tid);
	}
	at = write_text(at, ",\"offset\":");
	at = trace_write_u64(at, one->offset);
	at = write_text(at, ",\"packet\":\"");
	at = write_text(at, pt_kind_name(one->kind));
	*at++ = '"';
	if (one->has_ip) {
		at = write_text(at, ",\"ip\":\"");
		at = trace_write_hex(at, one->ip);
		*at++ = '"';
	} else if (one->n_bits) {
		at = write_text(at, ",\"branches\":\"");
		at = write_bits(at, one);
		*at++ = '"';
	}
	for (unsigned i = 0; pt_value_name(one->kind, i); i++) {
		at = write_text(at, ",\"");
		at = write_text(at, pt_value_name(one->kind, i));
		at = write_text(at, is_plain(one->kind) ? "\":" : "\":\"");
		at = write_value(at, one->kind, one->v[i]);
		if (!is_plain(one->kind))
			*at++ = '"';
	}
	return write_text(at, "}\n");
}

static void see(struct pt *l, struct trace_of *t, const struct pt_one *one)
{
	char *at;

	t->counts[one->kind]++;
	if (l->count)
		return;
	at = trace_out_room(&l->out, PACKET_TEXT);
	trace_out_end(&l->out, l->output ? write_json(at, t, one) : write_packet(at, one));
}

/* --- traces --- */

static int find_trace(struct pt *l, const struct perfdata_aux *a, struct trace_of **ret,
		      struct error *e)
{
	size_t n = l->n, at;
	struct trace_of *v = perf_queue_at(l->traces, &n, sizeof(*v), a, &at, e);

	if (!v)
		return e->code;
	l->traces = v;
	v += at;
	*ret = v;
	if (n == l->n)
		return 0;
	if (pt_packets_new(&v->packets, e) < 0)
		return e->code;
	pt_packets_begin(v->packets, a->offset);
	v->end = a->offset;
	l->n = n;
	return 0;
}

static void end_trace(struct pt *l, struct trace_of *t)
{
	struct pt_one one;

	if (pt_packets_last(t->packets, &one))
		see(l, t, &one);
}

static void put_heading(struct pt *l, const struct perfdata_aux *a)
{
	char text[PERF_QUEUE_TEXT];

	if (!l->count && !l->output)
		trace_out_printf(&l->out, "%s: %llu bytes at 0x%llx\n", perf_queue_text(a, text),
				 (unsigned long long)a->size, (unsigned long long)a->offset);
}

static int see_trace(struct pt *l, const struct perfdata_aux *a, struct error *e)
{
	struct trace_of *t = NULL;
	struct pt_one one;
	size_t n;
	int r = find_trace(l, a, &t, e);

	if (r < 0)
		return r;
	if (a->offset != t->end) {
		end_trace(l, t);
		pt_packets_begin(t->packets, a->offset);
	}
	put_heading(l, a);
	while ((r = perfdata_payload(l->p, l->buf, PT_GIVE_MAX, &n, e)) == 0 && n) {
		r = pt_packets_give(t->packets, l->buf, n, e);
		if (r < 0)
			return r;
		while (pt_packets_next(t->packets, &one))
			see(l, t, &one);
	}
	t->end = a->offset + a->size;
	return r;
}

static int see_all(struct pt *l, struct error *e)
{
	struct perfdata_event ev;
	struct perfdata_aux a;
	int r;

	while ((r = perfdata_next(l->p, &ev, e)) > 0 && !l->out.error) {
		if (ev.type == PERFDATA_AUXTRACE_INFO && ev.size >= 12)
			l->is_pt = perfdata_u32(l->p, ev.data + 8) == PERFDATA_AUX_INTEL_PT;
		if (!l->is_pt || !perfdata_aux(l->p, &ev, &a))
			continue;
		r = see_trace(l, &a, e);
		if (r < 0)
			break;
	}
	for (size_t i = 0; i < l->n; i++)
		end_trace(l, &l->traces[i]);
	if (r >= 0 && !l->n)
		r = error_set(
			e, -ENOENT,
			"the file has no traces of Intel PT; 'ax trace perfdata aux' tells what "
			"it has");
	return r;
}

/* --- the account --- */

static void put_counts(struct pt *l, const struct trace_of *t)
{
	uint64_t packets = 0, errors = t->counts[PT_BAD] + t->counts[PT_CUT];
	struct perf_show s = {.out = &l->out, .json = l->output != 0};
	char text[PERF_QUEUE_TEXT];

	for (unsigned i = PT_CUT + 1; i < PT_KINDS; i++)
		packets += t->counts[i];
	if (s.json)
		trace_out_char(&l->out, '{');
	else
		trace_out_printf(&l->out, "%s: ", perf_queue_text(&t->first, text));
	if (s.json)
		perf_put_number(&s, t->first.cpu == UINT32_MAX ? "tid" : "cpu",
				t->first.cpu == UINT32_MAX ? t->first.tid : t->first.cpu);
	perf_put_number(&s, "packets", packets);
	perf_put_number(&s, "errors", errors);
	for (unsigned i = 0; i < PT_KINDS; i++)
		if (t->counts[i])
			perf_put_number(&s, pt_kind_name(i), t->counts[i]);
	trace_out_text(&l->out, s.json ? "}\n" : "\n");
}

static int run_pt(struct cmd *c, int argc, char **argv)
{
	CLEANUP(perfdata_closep) struct perfdata *p = NULL;
	struct pt l = {.c = c};
	struct error e = {0};
	int status, r;

	if (!perf_run_begin(c, &l, argc, argv, &p, &status))
		return status;
	l.p = p;
	l.buf = malloc(PT_GIVE_MAX);
	if (!l.buf || trace_out_open(&l.out, STDOUT_FILENO) < 0) {
		free(l.buf);
		return CMD_FAILED;
	}
	r = see_all(&l, &e);
	for (size_t i = 0; i < l.n; i++) {
		if (l.count || !l.output)
			put_counts(&l, &l.traces[i]);
		pt_packets_free(l.traces[i].packets);
	}
	free(l.traces);
	free(l.buf);
	return perf_finish(c, &l.out, r, &e);
}

static const struct opt options[] = {
	{"count", 'c', OPT_FLAG, NULL, "only how many packets of each kind there are",
	 offsetof(struct pt, count), NULL},
};

const struct command cmd_trace_perfdata_pt = {
	.name = "trace perfdata pt",
	.about = "packets of Intel PT",
	.run = run_pt,
	.syntax =
		{
			.usage = "ax trace perfdata pt [-c] FILE",
			.about = "Prints the packets of each CPU's Intel PT trace with their "
				 "offsets in it: PSB, TNT (T: taken, N: not), TIP and FUP with "
				 "whole addresses, TSC, MTC, CBR and so on. What is no packet is "
				 "shown as BAD, up to the next PSB. At the end stands how many "
				 "packets of each kind there were. FILE may be '-' for standard "
				 "input.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_text_lines, 1, offsetof(struct pt, output)}},
			.args = {&words_file},
		},
};
