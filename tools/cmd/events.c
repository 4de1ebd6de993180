/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax events: what happens, as it happens. */
#include <poll.h>
#include <time.h>

#include "tools/cmd/commands.h"
#include "tools/lib/output.h"
#include "tools/lib/text.h"

struct event_limits {
	uint32_t count;	      /* 0: no end */
	uint32_t duration_ms; /* 0: no end */
};

static void put_clock(double t)
{
	time_t seconds = (time_t)t;
	char buf[32] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(buf, sizeof(buf), "%H:%M:%S", &tm);
	fputs(buf, stdout);
}

static void put_time(double t)
{
	put_clock(t);
	printf(".%03d  ", (int)((t - (double)(time_t)t) * 1000));
}

static void put_party(const char *name, const char *address, long long port)
{
	char buf[256];

	text_put(cmd_party(name, address, port, buf, sizeof(buf)), stdout);
}

static void put_ends(const json_t *j, const char *event)
{
	const char *remote = member_string(j, "remote");
	const char *arrow = streq(event, "connect")  ? " -> "
			    : streq(event, "accept") ? " <- "
						     : " <-> ";

	put_party(member_string(j, "app"), member_string(j, "local"), member_int(j, "local_port"));
	if (!remote)
		return;
	fputs(arrow, stdout);
	put_party(member_string(j, "remote_name"), remote, member_int(j, "remote_port"));
}

static void put_word(const char *before, const char *text)
{
	if (!text)
		return;
	fputs(before, stdout);
	text_put(text, stdout);
}

/* A command that a datagram started: there are no two ends. */
static void put_trigger(const json_t *j)
{
	put_word("", member_string(j, "trigger"));
	printf(" (pid %lld)", member_int(j, "pid"));
	put_word("  on ", member_string(j, "interface"));
	if (!member_string(j, "remote"))
		return;
	fputs(" from ", stdout);
	put_party(NULL, member_string(j, "remote"), member_int(j, "remote_port"));
}

static void put_details(const json_t *j)
{
	const char *service = member_string(j, "service");
	char buf[TEXT_SHORT];

	put_word("  asked for ", member_string(j, "asked"));
	if (member_int(j, "times") > 1)
		printf("  %lld times", member_int(j, "times"));
	put_word("  ", member_string(j, "state"));
	put_word(": ", member_string(j, "why"));
	put_word("  ", member_string(j, "backend"));
	if (service) {
		fputs("  service ", stdout);
		text_put(service, stdout);
	}
	if (member_string(j, "exposed")) {
		fputs("  exposed as ", stdout);
		put_party(NULL, member_string(j, "exposed"), member_int(j, "exposed_port"));
	}
	if (json_object_get(j, "ended"))
		printf("  %lld ended", member_int(j, "ended"));
	if (json_object_get(j, "sent"))
		printf("  sent %s", text_bytes((uint64_t)member_int(j, "sent"), buf));
	if (json_object_get(j, "received"))
		printf("  received %s", text_bytes((uint64_t)member_int(j, "received"), buf));
	if (json_object_get(j, "duration_ms"))
		printf("  after %s",
		       text_usec((uint64_t)(member_number(j, "duration_ms") * 1000), buf));
	if (member_int(j, "rtt_us") > 0)
		printf("  rtt %s", text_usec((uint64_t)member_int(j, "rtt_us"), buf));
	if (json_object_get(j, "status"))
		printf("  status %lld", member_int(j, "status"));
}

static void put_why(const json_t *j)
{
	static const struct {
		const char *why, *text;
	} all[] = {{"labels", "no label in common"},
		   {"egress", "it may not leave (egress)"},
		   {"host-access", "programs outside may not come in (host_access)"}};
	const char *why = member_string(j, "why"), *name = member_string(j, "rule_name");
	const char *text = member_string(j, "text");

	for (size_t i = 0; why && i < ARRAY_SIZE(all); i++)
		if (streq(all[i].why, why))
			printf("  %s", all[i].text);
	if (!json_object_get(j, "rule")) { /* it was added, or is gone, if it is one */
		put_word("  rule ", name);
		if (!name && text) {
			put_word("  ", text);
			fputs(" (a rule that is gone)", stdout);
		}
		return;
	}
	printf("  rule %lld", member_int(j, "rule"));
	if (name) {
		fputs(" (", stdout);
		text_put(name, stdout);
		putchar(')');
	}
}

static void put_verdict(const json_t *j)
{
	const char *proto = member_string(j, "proto"), *hook = member_string(j, "hook");
	const char *asked = member_string(j, "asked"); /* the name of the DNS */
	long long count = member_int(j, "count");

	put_party(member_string(j, "app"), member_string(j, "local"), 0);
	fputs(" -> ", stdout);
	put_party(member_string(j, "remote_name"), member_string(j, "remote"),
		  member_int(j, "remote_port"));
	printf("/%s", proto ? proto : "?");
	if (asked) {
		fputs(" (", stdout);
		text_put(asked, stdout);
		putchar(')');
	}
	put_why(j);
	printf("  at %s", hook ? hook : "?");
	if (count > 1) {
		printf("  %lld times since ", count);
		put_clock(member_number(j, "first"));
	}
	putchar('\n');
}

static void put_event(const json_t *j)
{
	const char *event = member_string(j, "event");

	put_time(member_number(j, "time"));
	if (event && streq(event, "verdict")) {
		event = member_string(j, "verdict");
		printf("%-8s  ", event ? event : "?");
		put_verdict(j);
		return;
	}
	printf("%-8s  ", event ? event : "?");
	if (event && streq(event, "trigger"))
		put_trigger(j);
	else
		put_ends(j, event ? event : "");
	if (member_int(j, "app_id") && !member_string(j, "local"))
		printf(" (%lld)", member_int(j, "app_id"));
	if (json_object_get(j, "count"))
		printf("%lld events", member_int(j, "count"));
	put_details(j);
	putchar('\n');
}

/*
 * Waits for the agent's next line. What was printed is flushed only when nothing more is at hand:
 * it shows at once, and a burst costs few writes. Returns 1, or 0 when the time is up or nobody
 * reads our output any more, or a negative errno.
 */
static int wait_line(const struct control_conn *conn, uint64_t end_ns)
{
	struct pollfd fds[] = {{.fd = conn->fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};

	if (conn->len && memchr(conn->buf, '\n', conn->len))
		return !end_ns || time_mono_ns() < end_ns;
	if (fflush(stdout))
		return 0;
	for (;;) {
		uint64_t now = time_mono_ns();
		int timeout = -1, n;

		if (end_ns && now >= end_ns)
			return 0;
		if (end_ns)
			timeout = (int)((end_ns - now + 999999) / 1000000);
		n = poll(fds, ARRAY_SIZE(fds), timeout);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && (fds[1].revents & (POLLERR | POLLHUP)))
			return 0;
		if (n > 0 && fds[0].revents)
			return 1;
	}
}

static int print_events(struct control_conn *conn, const struct event_limits *limits, bool as_json,
			struct error *e)
{
	uint64_t end_ns = 0;

	if (limits->duration_ms)
		end_ns = time_mono_ns() + limits->duration_ms * UINT64_C(1000000);
	for (uint32_t n = 0; !limits->count || n < limits->count; n++) {
		autojson json_t *event = NULL;
		int r = wait_line(conn, end_ns);

		if (r < 0)
			return error_set(e, r, "waiting for events failed: %s", strerror(-r));
		if (!r)
			return 0;
		r = control_recv(conn, &event, NULL, e);
		if (r)
			return r;
		if (as_json)
			cmd_put_json(event, JSON_COMPACT);
		else
			put_event(event);
	}
	return 0;
}

static int events(struct cmd *c, const struct event_limits *limits, bool as_json, bool verdicts)
{
	CLEANUP(control_closep) struct control_conn conn = {.fd = -1};
	autojson json_t *request = json_pack("{s:s,s:b}", "op", "events", "verdicts", verdicts);
	autojson json_t *reply = NULL;
	struct error e = {0};
	int r;

	r = control_connect(c->inst.socket_path, &conn, &e);
	r = r ? r : control_call(&conn, request, -1, &reply, NULL, &e);
	r = r ? r : print_events(&conn, limits, as_json, &e);
	if (!r)
		return cmd_finish(c, CMD_OK);
	fflush(stdout);
	return cmd_failed(c, &e);
}

struct args {
	struct event_limits limits;
	bool verdicts;
	bool follow; /* the default; accepted because other tools want it */
	int output;
};

static int run(struct cmd *c, int argc, char **argv)
{
	struct args a = {0};
	int status;

	if (!cmd_begin(c, &a, &argc, argv, &status))
		return status;
	if (argc)
		return cmd_usage(c, "'%.60s' is not understood: there is nothing to name here",
				 argv[0]);
	cmd_output();
	return events(c, &a.limits, a.output != 0, a.verdicts);
}

static const struct opt options[] = {
	{"follow", 'f', OPT_FLAG, NULL, "go on until Ctrl-C (the default)",
	 offsetof(struct args, follow), NULL},
	{"verdicts", 0, OPT_FLAG, NULL,
	 "who was refused, or would have been (audit), and how often, instead of events",
	 offsetof(struct args, verdicts), NULL},
	{"count", 'n', OPT_NUMBER, "N", "end after N events", offsetof(struct args, limits.count),
	 NULL},
	{"duration", 'd', OPT_SPAN, "TIME", "end after this time",
	 offsetof(struct args, limits.duration_ms), NULL},
};

const struct command cmd_events = {
	.name = "events",
	.about = "print launches, connections and more as they happen",
	.run = run,
	.syntax =
		{
			.usage = "ax events [-f] [--verdicts] [-o FORMAT] [-n N] [-d TIME]",
			.about = "Prints events as they happen: launch, exit, listen, unlisten, "
				 "connect, accept, close, health (a backend of a service went "
				 "down or came back), drain (one finishes), trigger (a signed "
				 "datagram started a "
				 "command), and lost where some could not be kept.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{output_table_lines, 1, offsetof(struct args, output)}},
		},
};
