/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp capture: what the rules capture and log, as text, JSON or a pcap file. */
#include <poll.h>
#include <time.h>

#include "tools/xdp/capture_out.h"
#include "tools/xdp/common.h"
#include "tools/lib/run_signals.h"
#include "tools/lib/table.h"
#include "tools/lib/text.h"

#define LOOK_MS	    50
#define LOOKS_PER_S (1000 / LOOK_MS)

struct request {
	struct capture_out out;
	const char *path; /* NULL: stdout */
	uint32_t count;	  /* 0: no limit */
	uint32_t duration_ms;
	bool slots;
};

/* Captures that found no room. */
static uint64_t lost(struct xdp *x)
{
	struct xdp_stats s;
	struct error e;
	uint64_t n;

	if (xdp_stats(x, &s, &e))
		return 0;
	n = s.reasons[AX_REASON_CAPTURE_LOST];
	xdp_stats_free(&s);
	return n;
}

struct run {
	struct request *q;
	uint32_t seen;
};

static int on_record(void *arg, const struct ax_capture *c, const uint8_t *data, const char *rule)
{
	struct run *run = arg;
	int r = capture_put(&run->q->out, c, data, rule);

	if (r < 0)
		return r;
	run->seen += r == 0;
	return run->q->count && run->seen >= run->q->count;
}

/* Nobody wakes a reader up: see xdp_capture_read(). False: nobody reads our output any more. */
static bool wait_a_little(FILE *to)
{
	struct pollfd out = {.fd = fileno(to)};

	if (fflush(to))
		return false;
	return poll(&out, 1, LOOK_MS) <= 0 || !(out.revents & (POLLERR | POLLHUP));
}

/* Of what is on the interface now; 0: nothing of ours. */
static uint32_t program_id(struct xdp *x)
{
	struct xdp_status s = {0};
	struct error e = {0};
	uint32_t id = 0;

	if (xdp_status(x, &s, &e))
		return 0;
	for (size_t i = 0; i < s.n_programs; i++)
		if (s.programs[i].ours)
			id = s.programs[i].id;
	xdp_status_free(&s);
	return id;
}

static int capture_loop(struct xdp *x, struct request *q, struct error *e)
{
	uint32_t id = program_id(x);
	struct run run = {.q = q};
	uint64_t end = 0;
	unsigned looks = 0;
	int r;

	if (q->duration_ms)
		end = time_mono_ns() + q->duration_ms * UINT64_C(1000000);
	for (;;) {
		/* what came in the last moment counts too */
		bool last = run_signals_came() || (end && time_mono_ns() >= end);

		r = xdp_capture_read(x, on_record, &run);
		if (r || last)
			break;
		if (++looks % LOOKS_PER_S == 0 && program_id(x) != id)
			return error_set(e, -ENOENT,
					 "the rules were taken off the interface: nothing comes "
					 "any more");
		if (!wait_a_little(q->out.to))
			return 0;
	}
	if (r >= 0)
		return 0;
	return error_set(e, r, "the captures could not be read: %s", strerror(-r));
}

static void tell(const struct cmd *c, uint64_t n, const char *what)
{
	if (n)
		fprintf(stderr, "ax %s: %llu %s\n", c->name, (unsigned long long)n, what);
}

static int capture(struct cmd *c, struct xdp *x, struct request *q, struct error *e)
{
	uint64_t before = lost(x);
	int r;

	run_signals_catch_all(); /* what is in a file stays whole */
	capture_begin(&q->out);
	r = capture_loop(x, q, e);
	if (fflush(q->out.to) && !r)
		r = error_set(e, -errno, "%s could not be written: %s",
			      q->path ? q->path : "the output", strerror(errno));
	tell(c, lost(x) - before, "packets were not captured: there was no room for them");
	tell(c, q->out.left_out,
	     "of the records left out of the pcap file: logs, and later fragments without headers");
	return r;
}

/* --- slots --- */

static int put_slot_text(const char *name, const struct ax_slot *slot, double age)
{
	autofree char *text = capture_text(slot->data, slot->len);
	char buf[TEXT_SHORT];

	if (!text)
		return -ENOMEM;
	text_put(name, stdout);
	if (!slot->time_ns)
		puts(": nothing came yet");
	else
		printf(": %s (%u bytes, %s ago, %llu packets so far)\n", text, slot->len,
		       text_age(age, buf), (unsigned long long)slot->count);
	return 0;
}

static int put_slot(void *arg, const char *name, const struct ax_slot *slot)
{
	const struct request *q = arg;
	double age = ((double)time_boot_ns() - (double)slot->time_ns) / 1e9;
	autojson json_t *j = NULL;

	if (q->out.format == CAPTURE_JSON) {
		j = capture_slot_json(name, slot);
		if (!j)
			return -ENOMEM;
		cmd_put_json(j, JSON_COMPACT);
		return 0;
	}
	if (q->out.format != CAPTURE_HEX)
		return put_slot_text(name, slot, age);
	text_put(name, stdout);
	printf(": %llu packets so far\n", (unsigned long long)slot->count);
	capture_put_hex(slot->data, slot->len, stdout);
	return 0;
}

/* --- the command --- */

static int run(struct cmd *c, const char *ifname, struct request *q)
{
	autoxdp struct xdp *x = NULL;
	autofile FILE *file = NULL;
	struct error e = {0};
	int r;

	if (!cmd_root(c))
		return CMD_FAILED;
	r = xdp_open(&c->inst, ifname, &x, &e);
	if (r)
		return cmd_failed(c, &e);
	if (q->slots) {
		r = xdp_slots_each(x, put_slot, q, &e);
		return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
	}
	r = xdp_capture_open(x, &e);
	if (!r && q->path) {
		file = fopen(q->path, "we");
		q->out.to = file;
		if (!file)
			r = error_set(&e, -errno, "%s cannot be written: %s", q->path,
				      strerror(errno));
	}
	r = r ? r : capture(c, x, q, &e);
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

struct args {
	struct request q;
	int format;
	struct cmd_xdp_direction direction;
};

static int run_capture(struct cmd *c, int argc, char **argv)
{
	struct args a = {.q = {.out = {.to = stdout}}, .format = -1};
	struct request *q = &a.q;
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc != 1)
		return cmd_usage(c, "say which interface");
	q->out.format = a.format >= 0 ? (enum capture_format)a.format
			: q->path     ? CAPTURE_PCAP
				      : CAPTURE_ASCII;
	if (q->out.format == CAPTURE_PCAP && !q->path && isatty(STDOUT_FILENO))
		return cmd_usage(c, "a pcap file is not for the terminal: give -w FILE");
	if (q->slots && (q->out.format == CAPTURE_PCAP || q->path))
		return cmd_usage(c, "--slots prints ascii, hex or json");
	cmd_output();
	return run(c, cmd_xdp_place(&a.direction, argv[0]), q);
}

/* in the order of enum capture_format */
static const char *const formats[] = {"ascii", "hex", "json", "pcap", NULL};
static const struct words format_words = {.choices = formats};

static const struct opt options[] = {
	{"format", 'f', OPT_CHOICE, "FORMAT",
	 "ascii (the default), hex, json (one object a line) or pcap",
	 offsetof(struct args, format), &format_words},
	{"count", 'n', OPT_NUMBER, "N", "end after N records", offsetof(struct args, q.count),
	 NULL},
	{"duration", 'd', OPT_SPAN, "TIME", "end after this time",
	 offsetof(struct args, q.duration_ms), NULL},
	{"write", 'w', OPT_STRING, "FILE", "write there; as pcap unless -f says otherwise",
	 offsetof(struct args, q.path), &words_file},
	{"slots", 0, OPT_FLAG, NULL,
	 "print the latest payloads of rules with 'capture N,slot=NAME', and end",
	 offsetof(struct args, q.slots), NULL},
};

const struct command cmd_xdp_capture = {
	.name = "xdp capture",
	.about = "print what rules capture and log",
	.run = run_capture,
	.syntax =
		{
			.usage = "ax xdp capture IFACE [-f FORMAT] [-n N] [-d TIME] [-w FILE]\n"
				 "       ax xdp capture IFACE --slots [-f FORMAT]",
			.about = "Prints what rules with 'capture' or 'log' see, as it comes, "
				 "until Ctrl-C: the time, the rule, the packet, its payload. "
				 "Bytes that are no text stand as \\xNN. Frames captured with "
				 "'capture N,frame' are written to a pcap file as they were; "
				 "payloads get new headers with the packet's addresses and "
				 "ports.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{cmd_xdp_direction_opts, 1, offsetof(struct args, direction)}},
			.args = {&words_interface},
		},
};
