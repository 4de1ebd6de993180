/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax xdp dump: what comes in, what becomes of it, and why, as a pcapng file. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>

#include "packet/pcapng.h"
#include "tools/lib/run_signals.h"
#include "tools/lib/text.h"
#include "tools/xdp/common.h"
#include "tools/xdp/explain_words.h"
#include "tools/xdp/filter.h"
#include "tools/xdp/foreign_words.h"

#define LOOK_MS	    10
#define LOOKS_PER_S (1000 / LOOK_MS)
#define LOOKS_OTHER 10 /* until it is asked whether another program of others is there now */
#define RING_BYTES  (8u << 20)
#define CPUS_MAX    65536

struct request {
	const char *path; /* NULL: stdout */
	uint32_t count;	  /* 0: no limit */
	uint32_t duration_ms;
	uint32_t snap;
	char *filter; /* its words, NULL: none */
	struct cmd_xdp_direction direction;
};

/* A packet that came in, until it is known what became of it. */
struct waiting {
	bool there;
	struct ax_tapped head;
	uint8_t *data; /* AX_CAPTURE_MAX */
};

struct dump {
	const struct request *q;
	struct cmd *c;
	const char *ifname;
	struct xdp_tap *tap;	       /* of the instance's list, or else */
	struct xdp_foreign_tap *other; /* of the program of somebody else */
	FILE *to;
	uint64_t boot_to_real; /* ns */
	uint32_t written;      /* packets that came in */
	struct waiting *cpus;
	uint32_t n_cpus;
	/* of the packet before, as the next one's mostly is: */
	struct ax_explain said;
	uint32_t said_action;
	char *comment;
};

static void dump_free(struct dump *d)
{
	for (uint32_t i = 0; i < d->n_cpus; i++)
		free(d->cpus[i].data);
	free(d->cpus);
	free(d->comment);
	xdp_tap_closep(&d->tap);
	xdp_foreign_tap_closep(&d->other);
}

/* --- words --- */

static int put_comment(const struct dump *d, const struct ax_tapped *p, FILE *to)
{
	struct xdp_explanation x;

	if (d->other) {
		foreign_put_action(d->other, p, to);
		return 0;
	}
	if (xdp_tap_explain(d->tap, p, &x)) {
		fprintf(to, "%s: by which rule is not known", explain_action(p->action));
		return 0;
	}
	fputs(explain_verdict(&x), to);
	if (explain_by_rule(&x)) {
		fputs(" by ", to);
		text_put(x.rule, to);
	}
	fputs(": ", to);
	explain_put_why(&x, to);
	xdp_explanation_free(&x);
	return 0;
}

/* What was decided; NULL when memory is out. */
static const char *comment(struct dump *d, const struct ax_tapped *p)
{
	autofree char *text = NULL;
	size_t size;
	FILE *f;

	if (d->comment && d->said_action == p->action &&
	    memcmp(&d->said, &p->told, sizeof(d->said)) == 0)
		return d->comment;
	f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	put_comment(d, p, f);
	if (fclose(f))
		return NULL;
	free(d->comment);
	d->comment = take_ptr(&text);
	d->said = p->told;
	d->said_action = p->action;
	return d->comment;
}

/* --- packets --- */

/* What comes in and what that becomes have one number, and no other packet has it. */
static uint64_t packet_id(const struct ax_tapped *p)
{
	return (p->number << 16) | (p->cpu & 0xffff);
}

static void put_packet(const struct dump *d, const struct ax_tapped *p, const uint8_t *data,
		       enum pcapng_direction direction, const char *words, int action)
{
	const struct pcapng_packet out = {
		.time_ns = p->time_ns + d->boot_to_real,
		.data = data,
		.len = p->captured,
		.original_len = p->frame_len,
		.direction = direction,
		.id = packet_id(p),
		.queue = p->queue,
		.comment = words,
		.xdp_action = action,
	};

	pcapng_put_packet(d->to, &out);
}

/* 1: that was the last one. */
static int put_in(struct dump *d, struct waiting *w, const char *words, int action)
{
	w->there = false;
	put_packet(d, &w->head, w->data, PCAPNG_INBOUND, words, action);
	return d->q->count && ++d->written >= d->q->count;
}

static struct waiting *waiting_on(struct dump *d, uint32_t cpu)
{
	uint32_t n = cpu + 1;
	struct waiting *more;

	if (cpu >= CPUS_MAX)
		return NULL;
	if (n > d->n_cpus) {
		more = realloc(d->cpus, n * sizeof(*more));
		if (!more)
			return NULL;
		memset(more + d->n_cpus, 0, (n - d->n_cpus) * sizeof(*more));
		d->cpus = more;
		d->n_cpus = n;
	}
	if (!d->cpus[cpu].data)
		d->cpus[cpu].data = malloc(AX_CAPTURE_MAX);
	return d->cpus[cpu].data ? &d->cpus[cpu] : NULL;
}

/* A program of others may pass on what it has changed. */
static bool is_changed(const struct waiting *w, const struct ax_tapped *p, const uint8_t *data)
{
	return p->frame_len != w->head.frame_len || p->captured != w->head.captured ||
	       memcmp(data, w->data, p->captured) != 0;
}

/* What came in, with what became of it, and what that was turned into. */
static int put_both(struct dump *d, struct waiting *w, const struct ax_tapped *p,
		    const uint8_t *data)
{
	const char *words = comment(d, p);
	bool goes_on = d->other && p->action == XDP_PASS && is_changed(w, p, data);
	int r = put_in(d, w, words, p->action);

	if (p->action == XDP_TX || p->action == XDP_REDIRECT)
		put_packet(d, p, data, PCAPNG_OUTBOUND, words, -1);
	else if (goes_on)
		put_packet(d, p, data, PCAPNG_INBOUND, "changed: what the host gets", -1);
	return r;
}

static int on_record(void *arg, const struct ax_tapped *p, const uint8_t *data)
{
	struct dump *d = arg;
	struct waiting *w = waiting_on(d, p->cpu);
	int r = 0;

	if (!w || p->captured > AX_CAPTURE_MAX)
		return -ENOMEM;
	if (p->kind == AX_TAPPED_IN) {
		if (w->there) /* what was said of it found no room */
			r = put_in(d, w, NULL, -1);
		w->there = !r;
		w->head = *p;
		memcpy(w->data, data, p->captured);
		return r;
	}
	if (!w->there || w->head.number != p->number)
		return 0;
	return put_both(d, w, p, data);
}

/* --- from the first to the last --- */

/* Nobody wakes a reader up: see xdp_tap_read(). False: nobody reads our output any more. */
static bool wait_a_little(FILE *to)
{
	struct pollfd out = {.fd = fileno(to)};

	if (fflush(to))
		return false;
	return poll(&out, 1, LOOK_MS) <= 0 || !(out.revents & (POLLERR | POLLHUP));
}

static int read_packets(struct dump *d)
{
	return d->other ? xdp_foreign_tap_read(d->other, on_record, d)
			: xdp_tap_read(d->tap, on_record, d);
}

static int goes_on(struct dump *d, unsigned looks, struct error *e)
{
	int r;

	if (!d->other)
		return looks % LOOKS_PER_S || xdp_tap_goes_on(d->tap)
			       ? 0
			       : error_set(e, -ENOENT,
					   "the rules were taken off the interface: nothing comes "
					   "any more");
	if (looks % LOOKS_OTHER)
		return 0;
	r = xdp_foreign_tap_follow(d->other, e);
	if (r > 0)
		fprintf(stderr, "ax %s: %s has another program now: packets since are its\n",
			d->c->name, d->ifname);
	return r < 0 ? r : 0;
}

/* What became of these, was not told. */
static void put_waiting(struct dump *d)
{
	for (uint32_t i = 0; i < d->n_cpus; i++)
		if (d->cpus[i].there && (!d->q->count || d->written < d->q->count))
			put_in(d, &d->cpus[i], NULL, -1);
}

static int loop(struct dump *d, struct error *e)
{
	uint64_t end = 0;
	unsigned looks = 0;
	int r;

	if (d->q->duration_ms)
		end = time_mono_ns() + d->q->duration_ms * UINT64_C(1000000);
	for (;;) {
		/* what came in the last moment counts too */
		bool last = run_signals_came() || (end && time_mono_ns() >= end);

		r = read_packets(d);
		if (r || last)
			break;
		r = goes_on(d, ++looks, e);
		if (r) {
			put_waiting(d);
			return r;
		}
		if (!wait_a_little(d->to))
			return 0;
	}
	if (r >= 0)
		put_waiting(d);
	return r >= 0 ? 0 : error_set(e, r, "the packets could not be read: %s", strerror(-r));
}

static void end_file(const struct cmd *c, const struct dump *d, uint64_t start_ns)
{
	struct ax_tap_count n;

	if (d->other ? xdp_foreign_tap_count(d->other, &n) : xdp_tap_count(d->tap, &n))
		return;
	pcapng_put_statistics(d->to, &(struct pcapng_statistics){.start_ns = start_ns,
								 .end_ns = time_real_ns(),
								 .received = n.packets,
								 .dropped = n.lost});
	if (n.lost)
		fprintf(stderr, "ax %s: %llu packets are not there: there was no room for them\n",
			c->name, (unsigned long long)n.lost);
}

/* x NULL: the instance has no list there, as *e says. */
static int open_tap(struct dump *d, struct xdp *x, const struct rule *filter, struct error *e)
{
	const struct xdp_tap_options o = {
		.filter = filter, .snap = d->q->snap, .verdicts = true, .ring = RING_BYTES};
	struct error none = {0};
	int r;

	if (x)
		return xdp_tap_open(x, &o, &d->tap, e);
	r = xdp_foreign_tap_open(&d->c->inst, d->ifname, &o, &d->other, &none);
	if (none.text[0]) /* else there is no program at all, as *e says of the list */
		*e = none;
	return r;
}

static int dump(struct dump *d, struct error *e)
{
	const struct request *q = d->q;
	uint64_t start = time_real_ns();
	int r = 0;

	d->boot_to_real = start - time_boot_ns();
	run_signals_catch_all(); /* what is in a file stays whole */
	pcapng_put_section(d->to, "Linux", "ax");
	pcapng_put_interface(d->to, d->ifname, q->filter, q->snap ? q->snap : AX_CAPTURE_MAX);
	if (!fflush(d->to))
		r = loop(d, e);
	end_file(d->c, d, start);
	if (fflush(d->to) && !r)
		r = error_set(e, -errno, "%s could not be written: %s",
			      q->path ? q->path : "the output", strerror(errno));
	return r;
}

/* --- the command --- */

static int open_file(const char *path, FILE **ret, struct error *e)
{
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	*ret = fd < 0 ? NULL : fdopen(fd, "w");
	if (!*ret)
		return error_set(e, -errno, "%s cannot be written: %s", path, strerror(errno));
	take_fd(&fd);
	return 0;
}

static int run(struct cmd *c, const char *ifname, const struct request *q,
	       const struct rule *filter)
{
	autoxdp struct xdp *x = NULL;
	autofile FILE *file = NULL;
	struct dump d CLEANUP(dump_free) = {.q = q, .c = c, .ifname = ifname, .to = stdout};
	struct error e = {0};
	int r;

	if (!cmd_root(c))
		return CMD_FAILED;
	r = xdp_open(&c->inst, ifname, &x, &e);
	if (!r || (r == -ENOENT && !place_is_egress(ifname)))
		r = open_tap(&d, x, filter, &e);
	if (!r && q->path) {
		r = open_file(q->path, &file, &e);
		d.to = file;
	}
	r = r ? r : dump(&d, &e);
	return r ? cmd_failed(c, &e) : cmd_finish(c, CMD_OK);
}

static int run_dump(struct cmd *c, int argc, char **argv)
{
	struct request q = {0};
	struct rule filter = {0};
	struct error e = {0};
	int status;

	if (!cmd_begin(c, &q, &argc, argv, &status))
		return status;
	if (!argc)
		return cmd_usage(c, "say which interface");
	if (q.snap > AX_CAPTURE_MAX)
		return cmd_usage(c, "--snaplen can be %u at most", AX_CAPTURE_MAX);
	if (!q.path && isatty(STDOUT_FILENO))
		return cmd_usage(c, "a pcapng file is not for the terminal: give -w FILE, or a "
				    "pipe to a program that reads it");
	if (cmd_xdp_filter(argv + 1, (size_t)argc - 1, &filter, &q.filter, &e))
		return cmd_usage(c, "%s", e.text);
	cmd_output();
	status = run(c, cmd_xdp_place(&q.direction, argv[0]), &q, q.filter ? &filter : NULL);
	rule_free(&filter);
	free(q.filter);
	return status;
}

static const struct opt options[] = {
	{"count", 'n', OPT_NUMBER, "N", "end after N packets", offsetof(struct request, count),
	 NULL},
	{"duration", 'd', OPT_SPAN, "TIME", "end after this time",
	 offsetof(struct request, duration_ms), NULL},
	{"snaplen", 's', OPT_NUMBER, "BYTES", "of each packet at most (9216)",
	 offsetof(struct request, snap), NULL},
	{"write", 'w', OPT_STRING, "FILE", "write there; standard output unless given",
	 offsetof(struct request, path), &words_file},
};

const struct command cmd_xdp_dump = {
	.name = "xdp dump",
	.about = "write packets and what became of them to a pcapng file",
	.run = run_dump,
	.syntax =
		{
			.usage = "ax xdp dump IFACE [-n N] [-d TIME] [-s BYTES] [-w FILE] "
				 "[KEY VALUE ...]",
			.about = "Writes the packets that come in, until Ctrl-C, as a pcapng file: "
				 "each with a comment that says what happened to it, by which rule "
				 "and why, and behind it, when it is sent elsewhere, what it was "
				 "turned into. Keys and values, as rules have them, say which "
				 "packets. While nobody dumps, it costs nothing. Where the program "
				 "is "
				 "somebody else's, what that one makes of them is told.\n\n"
				 "ax xdp dump eth0 -w out.pcapng src 192.0.2.0/24 proto tcp",
			.own = {{options, ARRAY_SIZE(options), 0},
				{cmd_xdp_direction_opts, 1, offsetof(struct request, direction)}},
			.args = {&words_interface},
			.rest = &cmd_xdp_filter_words,
		},
};
