// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace tcp: connections, with the names that ax gives, and how they ended. */
#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "tools/trace/ready/ready.h"
#include "tools/trace/ready/names.h"
#include "machine/mounts.h"
#include "probes/watch/tcp.h"
#include "tools/lib/text.h"

#define PARTY_MAX 160
#define LINGER_MS 100 /* for the last packets of connections that a command has closed */

struct request {
	struct watch_tcp_options x;
	struct address_names names;
};

static const char *const states[] = {
	[TCP_ESTABLISHED] = "ESTABLISHED",
	[TCP_SYN_SENT] = "SYN_SENT",
	[TCP_SYN_RECV] = "SYN_RECV",
	[TCP_FIN_WAIT1] = "FIN_WAIT1",
	[TCP_FIN_WAIT2] = "FIN_WAIT2",
	[TCP_TIME_WAIT] = "TIME_WAIT",
	[TCP_CLOSE] = "CLOSE",
	[TCP_CLOSE_WAIT] = "CLOSE_WAIT",
	[TCP_LAST_ACK] = "LAST_ACK",
	[TCP_LISTEN] = "LISTEN",
	[TCP_CLOSING] = "CLOSING",
};

static const char *state_name(unsigned state)
{
	return state < ARRAY_SIZE(states) && states[state] ? states[state] : "?";
}

/* Why there is no connection any more. */
static const char *end_of(const struct ax_tcp_event *e, char buf[32])
{
	if (e->flags & AX_TCP_OPEN)
		return "open";
	switch (e->error) {
	case 0:
		break;
	case ECONNREFUSED:
		return "refused";
	case ECONNRESET:
	case EPIPE:
		return "reset by peer";
	case ETIMEDOUT:
		return e->from == TCP_SYN_SENT ? "no answer" : "timed out";
	default:
		return ready_errno(e->error, buf);
	}
	switch (e->from) {
	case TCP_SYN_SENT:
		return "given up";
	case TCP_LAST_ACK:
		return "closed by peer";
	case TCP_FIN_WAIT2:
	case TCP_TIME_WAIT:
		return "closed";
	case TCP_CLOSING:
		return "closed by both";
	default:
		return "reset";
	}
}

static bool is_zero(const struct ax_endpoint *ep)
{
	return addr_is_zero(&ep->addr) && !ep->port_be;
}

static bool is_listener(const struct ax_tcp_event *e)
{
	return e->from == TCP_LISTEN || e->to == TCP_LISTEN;
}

/* --- lines --- */

static void put_party(struct ready *r, const struct ax_endpoint *ep,
		      const struct ax_endpoint *asked, const char *app)
{
	struct request *q = r->own;
	char address[ADDR_STRLEN], party[PARTY_MAX + 2 * ADDR_STRLEN];
	const struct ax_endpoint *shown = asked && !is_zero(asked) ? asked : ep;
	const char *name = address_name(&q->names, r->c, &shown->addr);
	size_t n = 0;

	name = name ? name : app; /* of one that has gone already, the agent knows none */
	if (name)		  /* "web(1.2.3.4:80)" */
		n = (size_t)snprintf(party, sizeof(party), "%.*s(", PARTY_MAX, name);
	n += (size_t)snprintf(party + n, sizeof(party) - n, "%s%s",
			      addr_port_format(&shown->addr, shown->port_be, address),
			      name ? ")" : "");
	if (shown != ep) /* the backend behind a service */
		snprintf(party + n, sizeof(party) - n, ">%s",
			 addr_port_format(&ep->addr, ep->port_be, address));
	ready_cell(r, party, 26);
}

static void put_who(struct ready *r, const struct ax_tcp_event *e)
{
	char buf[AX_EVENT_APP];
	const char *app = ready_app_name(&e->head, buf);

	ready_time(r, e->head.time_ns);
	if (e->head.pid)
		ready_number(r, e->head.pid, 7);
	else
		ready_cell(r, "      -", 7);
	ready_cell_safe(r, e->head.comm, strnlen(e->head.comm, sizeof(e->head.comm)), 12);
	ready_cell(r, app ? app : "-", 8);
	put_party(r, &e->local, NULL, app);
	if (e->flags & AX_TCP_ACTIVE)
		trace_out_text(&r->out, "-> ");
	else
		trace_out_text(&r->out, e->flags & AX_TCP_OLD || is_listener(e) ? "   " : "<- ");
}

static void put_amounts(struct ready *r, const struct ax_tcp_event *e)
{
	char buf[TEXT_SHORT], text[TEXT_SHORT + 8];

	snprintf(text, sizeof(text), "%7s", text_bytes(e->sent, buf));
	ready_cell(r, text, 7);
	snprintf(text, sizeof(text), "%7s", text_bytes(e->received, buf));
	ready_cell(r, text, 7);
	if (e->srtt_us)
		ready_duration(r, (uint64_t)e->srtt_us * 1000, 7);
	else
		ready_cell(r, "      -", 7);
	ready_number(r, e->retransmits, 5);
	if (e->flags & AX_TCP_OLD) /* it is older than this command */
		trace_out_char(&r->out, '>');
	ready_duration(r, e->duration_ns, e->flags & AX_TCP_OLD ? 6 : 7);
}

static void put_text(struct ready *r, const struct ax_tcp_event *e)
{
	struct request *q = r->own;
	char buf[32];

	put_who(r, e);
	if (!is_listener(e))
		put_party(r, &e->remote, &e->asked, NULL);
	if (e->head.type == AX_WATCH_TCP_STATE) {
		trace_out_printf(&r->out, "%s -> %s\n", state_name(e->from), state_name(e->to));
		return;
	}
	if (q->x.live && !(e->flags & AX_TCP_OPEN))
		trace_out_printf(&r->out, "%s -> %s: ", state_name(e->from), state_name(e->to));
	if (q->x.live) {
		char sent[TEXT_SHORT], received[TEXT_SHORT], took[32];

		trace_out_printf(&r->out, "%s after %s, %s sent, %s received, %u retransmitted\n",
				 end_of(e, buf), trace_duration_text(e->duration_ns, took),
				 text_bytes(e->sent, sent), text_bytes(e->received, received),
				 e->retransmits);
		return;
	}
	put_amounts(r, e);
	trace_out_text(&r->out, end_of(e, buf));
	trace_out_char(&r->out, '\n');
}

static void put_json_party(struct ready *r, const char *key, const struct ax_endpoint *ep,
			   const char *app)
{
	struct request *q = r->own;
	const char *name = address_name(&q->names, r->c, &ep->addr);
	char text[ADDR_STRLEN], member[32];

	name = name ? name : app;
	addr_format(&ep->addr, text);
	ready_json_string(r, key, text, strlen(text));
	snprintf(member, sizeof(member), "%s_port", key);
	ready_json_number(r, member, ntohs(ep->port_be));
	snprintf(member, sizeof(member), "%s_name", key);
	if (name)
		ready_json_string(r, member, name, strlen(name));
}

static const char *side_of(const struct ax_tcp_event *e)
{
	if (e->flags & AX_TCP_ACTIVE)
		return "client";
	return e->flags & AX_TCP_OLD ? "unknown" : "server";
}

static void put_json(struct ready *r, const struct ax_tcp_event *e)
{
	bool ended = e->head.type == AX_WATCH_TCP_END;
	char buf[32], app[AX_EVENT_APP];
	const char *text;

	ready_json_head(r, &e->head, ended ? "tcp" : "tcp-state");
	put_json_party(r, "local", &e->local, ready_app_name(&e->head, app));
	put_json_party(r, "remote", &e->remote, NULL);
	if (!is_zero(&e->asked))
		put_json_party(r, "service", &e->asked, NULL);
	text = side_of(e);
	ready_json_string(r, "side", text, strlen(text));
	text = state_name(e->from);
	ready_json_string(r, "from", text, strlen(text));
	text = state_name(e->to);
	ready_json_string(r, "to", text, strlen(text));
	ready_json_number(r, "sent", (int64_t)e->sent);
	ready_json_number(r, "received", (int64_t)e->received);
	ready_json_number(r, "rtt_us", e->srtt_us);
	ready_json_number(r, "retransmits", e->retransmits);
	ready_json_number(r, "duration_ns", (int64_t)e->duration_ns);
	if (e->flags & AX_TCP_OLD)
		trace_out_text(&r->out, ",\"older\":true");
	if (e->connect_ns)
		ready_json_number(r, "connect_ns", (int64_t)e->connect_ns);
	if (e->error) {
		text = ready_errno(e->error, buf);
		ready_json_string(r, "error", text, strlen(text));
	}
	if (ended) {
		text = end_of(e, buf);
		ready_json_string(r, "end", text, strlen(text));
	}
	trace_out_text(&r->out, "}\n");
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_tcp_event *e = record;

	if (len < sizeof(*e))
		return READY_HIDDEN;
	if (r->json)
		put_json(r, e);
	else
		put_text(r, e);
	return READY_SHOWN;
}

/* --- the command --- */

static int after_attach(struct ready *r, struct error *e)
{
	return watch_tcp_before(r->watch, e);
}

static int at_end(struct ready *r, struct error *e)
{
	if (r->child.pid)
		usleep(LINGER_MS * 1000);
	return watch_tcp_open(r->watch, e);
}

static int load(struct ready *r, struct error *e)
{
	struct request *q = r->own;
	char bpffs[512], asked[600];
	struct error ignored = {0};

	if (mount_bpffs(&r->c->inst, false, bpffs, sizeof(bpffs), &ignored) == 0) {
		snprintf(asked, sizeof(asked), "%s/%s/map_asked", bpffs, r->c->inst.name);
		q->x.asked = asked;
	}
	if (!r->json)
		trace_out_text(&r->out,
			       q->x.live ? "TIME                PID COMM         APP      LOCAL "
					   "                        REMOTE                     "
					   "STATE\n"
					 : "TIME                PID COMM         APP      LOCAL "
					   "                        REMOTE                     "
					   "   SENT RECEIVD     RTT RETRA    TIME END\n");
	address_names_load(&q->names, r->c);
	return watch_tcp_load(&r->options, &q->x, &r->watch, e);
}

struct args {
	struct ready r;
	struct request q;
};

static int run_tcp(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .no_script =
			      "connections are followed from their beginning to their end by "
			      "programs that know their addresses: there is no script that does "
			      "this",
		      .load = load,
		      .put = put,
		      .after_attach = after_attach,
		      .at_end = at_end,
		      .own = &a.q},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	address_names_free(&a.q.names);
	return status;
}

static const struct opt options[] = {
	{"live", 'l', OPT_FLAG, NULL, "print each change of state, not only the ends",
	 offsetof(struct args, q.x.live), NULL},
};

const struct command cmd_trace_tcp = {
	.name = "trace tcp",
	.about = "print TCP connections, how much they carried and how they ended",
	.run = run_tcp,
	.syntax =
		{
			.usage = "ax trace tcp [-l] [-p PID] [-c CMD] [--app NAME] [-d TIME] [-n "
				 "N]",
			.about = "Prints each TCP connection when it ends, and at last those that "
				 "are still open: whose it is, its ends (by the names that ax "
				 "gives, while its agent runs; a service's address, then '>' and "
				 "the backend), the payload that was sent and received, round "
				 "trip time, retransmitted packets, how long it lasted ('>' "
				 "before it: it was there before) and why it ended. -> is a "
				 "connection that the process made, <- one that it accepted.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, ARRAY_SIZE(ready_opts), offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPT_OUTPUT - TRACE_OPT_APP,
				 offsetof(struct args, r.args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct args, r.args)}},
		},
};
