// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace tls: the plain text of TLS connections of a process. */
#include <ctype.h>

#include "probes/tally/tls.h"
#include "tools/trace/ready/tally.h"
#include "tools/trace/ready/scripts.h"

#define HEX_LINE      16
#define BYTES_DEFAULT 4096

enum data_format { FORMAT_TEXT, FORMAT_HEX, FORMAT_NONE };
static const char *const formats[] = {"text", "hex", "none", NULL};
static const struct words format_words = {.choices = formats};

/* A connection, known by its address in its process. */
struct connection {
	uint64_t address;
	uint32_t pid;
	uint32_t number;
	uint32_t next; /* 1 + the index of the next one with such a hash; 0: none */
};

#define SLOTS_MIN 64 /* of the hash; as many as connections, at least */

struct request {
	struct tally_tls_options x;
	struct strv files;
	int format; /* enum data_format */
	bool any_user;
	struct tally_lines connections;
	uint32_t *slots; /* 1 + the index of the first one with such a hash; 0: none */
	size_t n_slots;
	uint32_t unused; /* 1 + the index of the first of those that have ended; 0: none */
	uint32_t n_numbers;
	/* of the last part that was shown */
	uint32_t tid;
	uint64_t next; /* the offset of the one behind it, 0: it was the last */
	bool in_line;  /* text that is shown does not end with a newline */
};

/* --- connections --- */

static struct connection *at(const struct request *q, uint32_t place)
{
	return (struct connection *)q->connections.v + place - 1;
}

/* Addresses come from malloc: their lowest bits say little. */
static uint32_t *slot_of(const struct request *q, uint64_t address, uint32_t pid)
{
	uint64_t h = (address >> 4 ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15u;

	return &q->slots[h >> 32 & (q->n_slots - 1)];
}

static void link_in(struct request *q, uint32_t place)
{
	struct connection *c = at(q, place);
	uint32_t *slot = slot_of(q, c->address, c->pid);

	c->next = *slot;
	*slot = place;
}

/* Twice as many slots when there are as many connections. */
static int make_slots(struct request *q)
{
	size_t n = q->n_slots ? 2 * q->n_slots : SLOTS_MIN;
	uint32_t *slots;

	if (q->connections.n < q->n_slots)
		return 0;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(q->slots);
	q->slots = slots;
	q->n_slots = n;
	for (uint32_t i = 1; i <= q->connections.n; i++)
		link_in(q, i);
	return 0;
}

/* Where its place is said, or would be: then that is 0. */
static uint32_t *find(const struct request *q, const struct ax_tls_event *e)
{
	uint32_t *place = slot_of(q, e->connection, e->head.pid);

	while (*place &&
	       (at(q, *place)->address != e->connection || at(q, *place)->pid != e->head.pid))
		place = &at(q, *place)->next;
	return place;
}

static int add(struct request *q, const struct ax_tls_event *e, uint32_t *number)
{
	uint32_t place = q->unused;

	if (place)
		q->unused = at(q, place)->next;
	else if (make_slots(q) == 0 && tally_add(&q->connections))
		place = (uint32_t)q->connections.n;
	if (!place)
		return -ENOMEM;
	*number = ++q->n_numbers;
	*at(q, place) = (struct connection){
		.address = e->connection, .pid = e->head.pid, .number = *number};
	link_in(q, place);
	return 0;
}

static int number_of(struct request *q, const struct ax_tls_event *e, uint32_t *number)
{
	uint32_t *place = q->n_slots ? find(q, e) : NULL;

	if (!place || !*place)
		return add(q, e, number);
	*number = at(q, *place)->number;
	return 0;
}

/* Its address may become another one's. */
static void forget(struct request *q, const struct ax_tls_event *e)
{
	uint32_t *place = find(q, e), ended = *place;

	if (!ended)
		return;
	*place = at(q, ended)->next;
	at(q, ended)->next = q->unused;
	q->unused = ended;
}

/* --- data --- */

static void put_hex(struct ready *r, const struct ax_tls_event *e)
{
	for (size_t at = 0; at < e->len; at += HEX_LINE) {
		size_t n = e->len - at < HEX_LINE ? e->len - at : HEX_LINE;

		trace_out_printf(&r->out, "    %08zx ", e->offset + at);
		for (size_t i = 0; i < HEX_LINE; i++)
			if (i < n)
				trace_out_printf(&r->out, "%s%02x", i == HEX_LINE / 2 ? "  " : " ",
						 e->data[at + i]);
			else
				trace_out_text(&r->out, i == HEX_LINE / 2 ? "    " : "   ");
		trace_out_text(&r->out, "  |");
		for (size_t i = 0; i < n; i++)
			trace_out_char(&r->out,
				       isprint(e->data[at + i]) ? (char)e->data[at + i] : '.');
		trace_out_text(&r->out, "|\n");
	}
}

static void put_lines(struct ready *r, const struct ax_tls_event *e)
{
	struct request *q = r->own;
	const char *at = (const char *)e->data, *end = at + e->len;

	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((line ? line : end) - at);
		size_t shown = line && n && at[n - 1] == '\r' ? n - 1 : n;

		if (!q->in_line)
			trace_out_text(&r->out, "    ");
		trace_out_safe(&r->out, at, shown);
		q->in_line = !line;
		if (line)
			trace_out_char(&r->out, '\n');
		at += n + (line != NULL);
	}
}

static void end_line(struct ready *r)
{
	struct request *q = r->own;

	if (q->in_line)
		trace_out_char(&r->out, '\n');
	q->in_line = false;
}

static void put_data(struct ready *r, const struct ax_tls_event *e)
{
	const struct request *q = r->own;

	if (e->faulty)
		trace_out_text(&r->out, "    (the data cannot be read)\n");
	else if (q->format == FORMAT_HEX)
		put_hex(r, e);
	else
		put_lines(r, e);
}

/* --- lines --- */

static bool is_read(const struct ax_tls_event *e)
{
	uint32_t f = e->function & ~(uint32_t)AX_TLS_GNUTLS;

	return f == AX_TLS_READ || f == AX_TLS_READ_EX;
}

static const char *library(const struct ax_tls_event *e)
{
	return e->function & AX_TLS_GNUTLS ? "gnutls" : "openssl";
}

static void put_head(struct ready *r, const struct ax_tls_event *e, uint32_t number)
{
	bool ended = e->head.type == AX_WATCH_TLS_END;
	char buf[AX_EVENT_APP], id[32];
	const char *app = ready_app_name(&e->head, buf);

	ready_time(r, e->head.time_ns);
	ready_number(r, e->head.pid, 7);
	ready_cell_safe(r, e->head.comm, strnlen(e->head.comm, sizeof(e->head.comm)), 12);
	ready_cell(r, app ? app : "-", 8);
	ready_cell(r, library(e), 7);
	snprintf(id, sizeof(id), "#%u", number);
	ready_cell(r, id, 5);
	if (ended)
		trace_out_text(&r->out, "end\n");
	else
		trace_out_printf(&r->out, "%s %llu bytes\n", is_read(e) ? "<-" : "->",
				 (unsigned long long)e->total);
}

/* How much of a call is told. */
static uint64_t told(const struct request *q, const struct ax_tls_event *e)
{
	return e->total < q->x.bytes ? e->total : q->x.bytes;
}

static void put_text(struct ready *r, const struct ax_tls_event *e, uint32_t number)
{
	struct request *q = r->own;
	bool follows = e->offset && e->head.tid == q->tid && e->offset == q->next;

	if (!follows) {
		end_line(r);
		put_head(r, e, number);
	}
	if (e->head.type == AX_WATCH_TLS_END || q->format == FORMAT_NONE)
		return;
	if (!follows && e->offset)
		trace_out_printf(&r->out, "    (from byte %u on)\n", e->offset);
	put_data(r, e);
	q->tid = e->head.tid;
	q->next = e->offset + e->len;
	if (q->next < told(q, e))
		return;
	q->next = 0;
	end_line(r);
	if (told(q, e) < e->total)
		trace_out_printf(&r->out, "    (%llu more bytes)\n",
				 (unsigned long long)(e->total - told(q, e)));
}

static void put_json(struct ready *r, const struct ax_tls_event *e, uint32_t number)
{
	const struct request *q = r->own;
	bool ended = e->head.type == AX_WATCH_TLS_END;
	const char *direction = is_read(e) ? "received" : "sent";

	ready_json_head(r, &e->head, ended ? "tls-end" : "tls");
	ready_json_number(r, "connection", number);
	ready_json_string(r, "library", library(e), strlen(library(e)));
	if (!ended) {
		ready_json_string(r, "direction", direction, strlen(direction));
		ready_json_number(r, "bytes", (int64_t)e->total);
		ready_json_number(r, "offset", e->offset);
		ready_json_number(r, "length", e->len);
		ready_json_number(r, "latency_ns", (int64_t)e->latency_ns);
	}
	if (!ended && !e->faulty && q->format == FORMAT_TEXT)
		ready_json_string(r, "data", (const char *)e->data, e->len);
	if (!ended && !e->faulty && q->format == FORMAT_HEX) {
		trace_out_text(&r->out, ",\"hex\":\"");
		trace_out_bytes(&r->out, (const char *)e->data, e->len);
		trace_out_char(&r->out, '"');
	}
	trace_out_text(&r->out, "}\n");
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_tls_event *e = record;
	struct request *q = r->own;
	uint32_t number;
	int err;

	if (len < sizeof(*e) || e->len > len - sizeof(*e) ||
	    (e->head.type != AX_WATCH_TLS && e->head.type != AX_WATCH_TLS_END))
		return READY_HIDDEN;
	err = number_of(q, e, &number);
	if (err < 0)
		return err;
	if (r->json)
		put_json(r, e, number);
	else
		put_text(r, e, number);
	if (e->head.type == AX_WATCH_TLS_END)
		forget(q, e);
	return READY_SHOWN;
}

/* So that whose data are not there is not taken for silent. */
static void put_more(struct ready *r)
{
	uint64_t others = watch_counter(r->watch, AX_WATCH_OTHERS);

	if (others && r->json)
		ready_json_number(r, "others", (int64_t)others);
	else if (others)
		fprintf(stderr, "; %llu calls by other users' processes are not shown (--any-user)",
			(unsigned long long)others);
}

/* --- the command --- */

/* The user whose process it is. */
static int user_of(uint32_t pid, uint32_t *uid, struct error *e)
{
	autofile FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %u", uid) == 1)
			return 0;
	return error_set(e, -ESRCH, "there is no process %u", pid);
}

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;
	uid_t uid = getuid();
	int err = 0;

	q->x.files = &q->files;
	q->x.of_pids = r->whom.n > 0;
	q->x.only_uid = !q->any_user;
	for (size_t i = 0; err == 0 && i < r->whom.n; i++) {
		err = user_of(r->whom.v[i], &q->x.uid, e);
		if (err == 0 && i && q->x.uid != uid && q->x.only_uid)
			err = error_set(e, -EINVAL, "the processes of -p are of several users");
		uid = q->x.uid;
	}
	q->x.uid = uid;
	return err < 0 ? err : tally_tls_load(&r->options, &q->x, &r->watch, e);
}

static int check(struct ready *r, const char *word, struct error *e)
{
	const struct request *q = r->own;

	(void)word;
	if (!r->args.pid.n && !r->args.command)
		return error_set(e, -EINVAL,
				 "expected -p or -c: plain text is only shown of one process and "
				 "those that it starts");
	if (q->x.bytes > TALLY_TLS_BYTES_MAX)
		return error_set(e, -EINVAL, "--bytes %u: expected at most %u", q->x.bytes,
				 TALLY_TLS_BYTES_MAX);
	return 0;
}

struct args {
	struct ready r;
	struct request q;
};

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	script_tls(&q->files, (enum script_bytes)q->format, f);
	return 0;
}

static int run_tls(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .heading = "TIME                PID COMM         APP      LIBRARY CONN  "
				 "DATA\n",
		      .check = check,
		      .write_script = write_script,
		      .load = load,
		      .put = put,
		      .put_more = put_more,
		      .secret = true,
		      .own = &a.q},
		.q = {.x.bytes = BYTES_DEFAULT, .connections.size = sizeof(struct connection)},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	strv_free(&a.q.files);
	free(a.q.connections.v);
	free(a.q.slots);
	return status;
}

static const struct opt options[] = {
	{"format", 0, OPT_CHOICE, "FORMAT", "the data as text (the default), hex or none",
	 offsetof(struct args, q.format), &format_words},
	{"bytes", 0, OPT_NUMBER, "N", "so many bytes of a call at most (4096)",
	 offsetof(struct args, q.x.bytes), NULL},
	{"library", 0, OPT_STRINGS, "FILE",
	 "the library or program that has the functions, if it is none of the usual ones",
	 offsetof(struct args, q.files), &words_file},
	{"any-user", 0, OPT_FLAG, NULL, "also of processes that run as another user by then",
	 offsetof(struct args, q.any_user), NULL},
};

const struct command cmd_trace_tls = {
	.name = "trace tls",
	.about = "print the plain text of a process's TLS connections",
	.run = run_tls,
	.syntax =
		{
			.usage = "ax trace tls -p PID|-c CMD [--format text|hex|none] [--bytes N] "
				 "[-d TIME] [-n N]",
			.about =
				"Prints what a process and those that it starts give to OpenSSL "
				"and "
				"GnuTLS to send (->), and what they get from them (<-): secrets, "
				"therefore, like passwords and cookies. Only root can do that, for "
				"processes that it names; a file that it is written to (-O) is "
				"made "
				"readable for its owner alone.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, ARRAY_SIZE(ready_opts), offsetof(struct args, r)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct args, r.args)}},
		},
};
