// SPDX-License-Identifier: GPL-2.0-or-later
/* ax trace signals: who sends which signal to whom, why, and what comes of it. */
#include <ctype.h>
#include <signal.h>
#include <strings.h>

#include "probes/tally/signals.h"
#include "tools/trace/ready/tally.h"
#include "tools/trace/ready/scripts.h"

struct request {
	struct tally_signals_options x;
};

/* --- names --- */

struct code {
	int signal, code; /* signal 0: of any */
	const char *name;
};
static const struct code codes[] = {
	{0, SI_USER, "SI_USER"},
	{0, SI_KERNEL, "SI_KERNEL"},
	{0, SI_QUEUE, "SI_QUEUE"},
	{0, SI_TIMER, "SI_TIMER"},
	{0, SI_MESGQ, "SI_MESGQ"},
	{0, SI_ASYNCIO, "SI_ASYNCIO"},
	{0, SI_SIGIO, "SI_SIGIO"},
	{0, SI_TKILL, "SI_TKILL"},
	{0, SI_ASYNCNL, "SI_ASYNCNL"},
	{SIGSEGV, SEGV_MAPERR, "SEGV_MAPERR"},
	{SIGSEGV, SEGV_ACCERR, "SEGV_ACCERR"},
	{SIGSEGV, SEGV_BNDERR, "SEGV_BNDERR"},
	{SIGSEGV, SEGV_PKUERR, "SEGV_PKUERR"},
	{SIGBUS, BUS_ADRALN, "BUS_ADRALN"},
	{SIGBUS, BUS_ADRERR, "BUS_ADRERR"},
	{SIGBUS, BUS_OBJERR, "BUS_OBJERR"},
	{SIGILL, ILL_ILLOPC, "ILL_ILLOPC"},
	{SIGILL, ILL_ILLOPN, "ILL_ILLOPN"},
	{SIGILL, ILL_ILLTRP, "ILL_ILLTRP"},
	{SIGILL, ILL_PRVOPC, "ILL_PRVOPC"},
	{SIGFPE, FPE_INTDIV, "FPE_INTDIV"},
	{SIGFPE, FPE_INTOVF, "FPE_INTOVF"},
	{SIGFPE, FPE_FLTDIV, "FPE_FLTDIV"},
	{SIGFPE, FPE_FLTOVF, "FPE_FLTOVF"},
	{SIGFPE, FPE_FLTINV, "FPE_FLTINV"},
	{SIGTRAP, TRAP_BRKPT, "TRAP_BRKPT"},
	{SIGTRAP, TRAP_TRACE, "TRAP_TRACE"},
	{SIGCHLD, CLD_EXITED, "CLD_EXITED"},
	{SIGCHLD, CLD_KILLED, "CLD_KILLED"},
	{SIGCHLD, CLD_DUMPED, "CLD_DUMPED"},
	{SIGCHLD, CLD_TRAPPED, "CLD_TRAPPED"},
	{SIGCHLD, CLD_STOPPED, "CLD_STOPPED"},
	{SIGCHLD, CLD_CONTINUED, "CLD_CONTINUED"},
	{SIGSYS, 1, "SYS_SECCOMP"},
};

static const char *code_name(const struct ax_signal_event *e, char buf[32])
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == e->code && (!codes[i].signal || codes[i].signal == e->signal))
			return codes[i].name;
	snprintf(buf, 32, "%d", e->code);
	return buf;
}

static const char *signal_text(int n, char buf[32])
{
	const char *name = sigabbrev_np(n);

	if (name)
		snprintf(buf, 32, "SIG%s", name);
	else if (n >= SIGRTMIN && n <= SIGRTMAX)
		snprintf(buf, 32, n > SIGRTMIN ? "SIGRTMIN+%d" : "SIGRTMIN", n - SIGRTMIN);
	else
		snprintf(buf, 32, "signal %d", n);
	return buf;
}

/* "9", "KILL", "SIGKILL", "SIGRTMIN+3"; 0: it is none. */
static int signal_of(const char *word)
{
	char *end;
	long n = strtol(word, &end, 10);

	if (*word && !*end)
		return n > 0 && n < NSIG ? (int)n : 0;
	if (strncasecmp(word, "SIG", 3) == 0)
		word += 3;
	for (int i = 1; i < NSIG; i++) {
		char buf[32];

		if (strcasecmp(signal_text(i, buf) + (starts_with(buf, "SIG") ? 3 : 0), word) == 0)
			return i;
	}
	return 0;
}

static const char *result_name(const struct ax_signal_event *e, char buf[32])
{
	switch (e->result) {
	case AX_SIGNAL_SENT:
		return "sent";
	case AX_SIGNAL_IGNORED:
		return "ignored";
	case AX_SIGNAL_PENDING:
		return "pending already";
	case AX_SIGNAL_NO_ROOM:
		return "lost: no room";
	case AX_SIGNAL_NO_INFO:
		return "sent without details";
	case AX_SIGNAL_REFUSED:
		return ready_errno(e->error, buf);
	default:
		snprintf(buf, 32, "result %u", e->result);
		return buf;
	}
}

/* --- lines --- */

static void put_party(struct ready *r, int64_t pid, const char comm[AX_EVENT_COMM],
		      const char cgroup[AX_EVENT_APP])
{
	char buf[AX_EVENT_APP];
	const char *app = ready_app_text(cgroup, buf);

	if (pid > 0)
		ready_number(r, (uint64_t)pid, 7);
	else
		ready_cell(r, "      -", 7);
	ready_cell_safe(r, comm, strnlen(comm, AX_EVENT_COMM), 12);
	ready_cell(r, app ? app : "-", 8);
}

static void put_target_number(struct ready *r, const struct ax_signal_event *e)
{
	if (e->to_pid <= 0 && e->result == AX_SIGNAL_REFUSED)
		trace_out_printf(&r->out, "%d", e->to_pid ? e->to_pid : e->to_tid);
}

static void put_text(struct ready *r, const struct ax_signal_event *e)
{
	char buf[32];

	ready_time(r, e->head.time_ns);
	ready_cell(r, signal_text(e->signal, buf), 10);
	ready_cell(r, code_name(e, buf), 13);
	ready_cell(r, result_name(e, buf), 15);
	put_party(r, e->head.pid, e->head.pid ? e->head.comm : "kernel", e->head.app);
	trace_out_text(&r->out, "-> ");
	put_party(r, e->to_pid, e->to_comm, e->to_app);
	put_target_number(r, e);
	trace_out_char(&r->out, '\n');
}

static void put_json(struct ready *r, const struct ax_signal_event *e)
{
	char buf[AX_EVENT_APP];
	const char *text;

	ready_json_head(r, &e->head, "signal");
	text = signal_text(e->signal, buf);
	ready_json_string(r, "signal", text, strlen(text));
	ready_json_number(r, "number", e->signal);
	text = code_name(e, buf);
	ready_json_string(r, "code", text, strlen(text));
	text = result_name(e, buf);
	ready_json_string(r, e->result == AX_SIGNAL_REFUSED ? "error" : "result", text,
			  strlen(text));
	if (e->to_pid)
		ready_json_number(r, "to_pid", e->to_pid);
	if (e->to_tid)
		ready_json_number(r, "to_tid", e->to_tid);
	if (e->result != AX_SIGNAL_REFUSED) {
		ready_json_number(r, "to_uid", e->to_uid);
		ready_json_string(r, "to_comm", e->to_comm, strnlen(e->to_comm, AX_EVENT_COMM));
	}
	text = ready_app_text(e->to_app, buf);
	if (text)
		ready_json_string(r, "to_app", text, strlen(text));
	trace_out_text(&r->out, "}\n");
}

static int put(struct ready *r, const void *record, size_t len)
{
	const struct ax_signal_event *e = record;

	if (len < sizeof(*e) || e->head.type != AX_WATCH_SIGNAL)
		return READY_HIDDEN;
	if (r->json)
		put_json(r, e);
	else
		put_text(r, e);
	return READY_SHOWN;
}

/* --- the command --- */

struct args {
	struct ready r;
	struct request q;
};

static int check(struct ready *r, const char *word, struct error *e)
{
	struct request *q = r->own;

	if (word && !(q->x.signal = signal_of(word)))
		return error_set(e, -EINVAL,
				 "'%.100s' is no signal: expected a name as KILL, or a number",
				 word);
	return 0;
}

static int load(struct ready *r, struct error *e)
{
	const struct request *q = r->own;

	return tally_signals_load(&r->options, &q->x, &r->watch, e);
}

static int write_script(const struct ready *r, FILE *f)
{
	const struct request *q = r->own;

	script_signals(r, q->x.signal, q->x.refused, f);
	return 0;
}

static int run_signals(struct cmd *c, int argc, char **argv)
{
	struct args a = {
		.r = {.c = c,
		      .word = "signal",
		      .heading = "TIME            SIGNAL     CODE          RESULT              PID "
				 "SENDER       APP             PID RECEIVER     APP\n",
		      .check = check,
		      .write_script = write_script,
		      .load = load,
		      .put = put,
		      .own = &a.q},
	};
	int status = ready_command(&a.r, argc, argv);

	ready_end(&a.r);
	return status;
}

static const struct opt options[] = {
	{"failed", 'x', OPT_FLAG, NULL, "also those that the kernel refused to send, and why",
	 offsetof(struct args, q.x.refused), NULL},
};

const struct command cmd_trace_signals = {
	.name = "trace signals",
	.about = "print every signal that is sent: by whom, to whom, and why",
	.run = run_signals,
	.syntax =
		{
			.usage =
				"ax trace signals [SIGNAL] [-x] [-p PID] [-c CMD] [-d TIME] [-n N]",
			.about = "Prints each signal that is sent by or to the processes that are "
				 "watched: who sent it (or the kernel by itself), what for "
				 "(si_code), "
				 "to whom, and what came of it: whether it was sent, ignored since "
				 "the "
				 "receiver ignores it, or pending already.",
			.own = {{options, ARRAY_SIZE(options), 0},
				{ready_opts, ARRAY_SIZE(ready_opts), offsetof(struct args, r)},
				{&trace_opts[TRACE_OPT_APP], TRACE_OPT_OUTPUT - TRACE_OPT_APP,
				 offsetof(struct args, r.args)},
				{trace_record_opts, TRACE_RECORD_OPTS,
				 offsetof(struct args, r.args)}},
		},
};
