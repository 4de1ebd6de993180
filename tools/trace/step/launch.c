// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two processes. The one that traces must not be killed in the midst of a step, since the trap
 * behind an instruction would end the program: so it is another one than the command's, in a
 * process group of its own and under another name, which lets the program go when the command's is
 * no more. It writes to memory only, so that it never waits for a reader either.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tools/lib/run_signals.h"
#include "tools/trace/step/step.h"

#define TRACER_NAME "stepper"
#define PIECE	    (1 << 18)

void step_say_ready(int fd)
{
	/* nobody reads it when the command's process is gone, which a signal tells */
	if (write(fd, "r", 1) < 0)
		return;
}

int step_check_whom(struct step_request *q, struct error *e)
{
	if (!q->args.pid.n && !q->args.command)
		return error_set(e, -EINVAL, "say whose threads are meant: expected -p or -c");
	return trace_check_args(&q->t, &q->args, e);
}

int step_find_whom(struct step_request *q, struct error *e)
{
	return trace_find_scope(&q->t, &q->args, e);
}

int step_open_output(struct step_request *q, struct error *e)
{
	void *shared;
	int r;

	if (!q->t.ctf_path)
		return trace_out_file(&q->t.out, q->t.path, e);
	shared = mmap(NULL, sizeof(*q->dropped), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return error_set(e, -ENOMEM, "out of memory");
	q->dropped = shared;
	r = json_ctf_open(q->t.ctf_path, &q->ctf, e);
	if (r == 0)
		r = trace_out_memory(&q->t.out, e);
	q->t.json = r == 0;
	return r;
}

void step_close_output(struct step_request *q)
{
	json_ctf_free(q->ctf);
	if (q->dropped)
		munmap(q->dropped, sizeof(*q->dropped));
}

/* --- the process that traces --- */

static void on_tick(int signal)
{
	(void)signal;
}

/* The memory of each process that is changed is a file. */
static void allow_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

/* It is to go on whatever comes, but for what tells it to end. */
static void set_signals(void)
{
	static const int ignored[] = {SIGHUP, SIGPIPE, SIGTTOU, SIGTTIN, SIGTSTP, SIGQUIT};
	struct sigaction sa = {.sa_handler = on_tick};

	run_signals_catch_all();
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigaction(SIGALRM, &sa, NULL);
}

static _Noreturn void trace(struct step_request *q, int memory, int ready, int parent)
{
	int status = CMD_FAILED;

	setpgid(0, 0);
	prctl(PR_SET_NAME, TRACER_NAME);
	set_signals();
	allow_files();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* without the right to it nothing is lost but some safety */
	file_write("/proc/self/oom_score_adj", "-1000");
	if (getppid() == parent && trace_out_open(&q->t.out, memory) == 0)
		status = step_run(q, ready);
	/* without what atexit() has to do for the other process; this lets go of all threads */
	_exit(status);
}

/* --- the command's process --- */

struct launch {
	struct step_request *q;
	struct trace_child child;
	int tracer; /* 0: there is none */
	int memory, ready;
	off_t copied;
	bool told;
};

/* How much of it was taken: of CTF whole lines. */
static size_t copy_piece(struct step_request *q, const char *piece, size_t n)
{
	size_t taken = 0;
	int r;

	if (!q->ctf) {
		trace_out_put(&q->t.out, piece, n);
		return n;
	}
	r = json_ctf_take_timed(q->ctf, piece, n, &taken);
	if (r == 0 && !taken && n == PIECE)
		r = -EPROTO; /* no line is that long */
	if (r < 0 && !q->t.out.error)
		q->t.out.error = -r;
	return r < 0 ? 0 : taken;
}

static void flush_output(struct step_request *q, bool end)
{
	int r = 0;

	if (!q->ctf)
		trace_out_flush(&q->t.out);
	else if (!q->t.out.error && (end || json_ctf_is_due(q->ctf)))
		r = json_ctf_flush(q->ctf, *q->dropped, end);
	if (r < 0)
		q->t.out.error = -r;
}

/* What the other one has written since. */
static void copy_output(struct launch *l, bool end)
{
	static char piece[PIECE];
	size_t taken = 1;
	ssize_t n;

	while (taken && (n = pread(l->memory, piece, sizeof(piece), l->copied)) > 0) {
		taken = copy_piece(l->q, piece, (size_t)n);
		l->copied += (off_t)taken;
		fallocate(l->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, l->copied);
	}
	flush_output(l->q, end);
}

static int start_tracer(struct launch *l, struct error *e)
{
	int ready[2], parent = getpid();

	l->memory = memfd_create("ax-trace-step", MFD_CLOEXEC);
	if (l->memory < 0 || pipe(ready) < 0)
		return error_set(e, -errno, "there is no memory for output: %s", strerror(errno));
	l->tracer = fork();
	if (!l->tracer) {
		close(ready[0]);
		close_fd(&l->child.go);
		trace(l->q, l->memory, ready[1], parent);
	}
	close(ready[1]);
	l->ready = ready[0];
	if (l->tracer < 0) {
		l->tracer = 0;
		return error_set(e, -errno, "no process can be started: %s", strerror(errno));
	}
	return 0;
}

/* Its exit status when it has ended, -1 as long as it has not. */
static int tracer_status(struct launch *l)
{
	int status;

	if (waitpid(l->tracer, &status, WNOHANG) != l->tracer)
		return -1;
	l->tracer = 0;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr,
		"ax %s: the process that traced was killed: a thread that it was stepping may "
		"have ended its program, or be stopped%s (see 'man ax-trace')\n",
		l->q->t.c->name, l->q->change ? ", and what was written stays" : "");
	return CMD_FAILED;
}

static void tell_end(struct launch *l)
{
	if (!l->told && run_signals_came()) {
		kill(l->tracer, SIGTERM);
		l->told = true;
	}
}

static int watch_tracer(struct launch *l)
{
	int status;

	while ((status = tracer_status(l)) < 0) {
		tell_end(l);
		copy_output(l, false);
		if (l->q->t.out.error && !l->told) { /* nobody reads any more */
			kill(l->tracer, SIGTERM);
			l->told = true;
		}
		usleep(STEP_TICK_MS * 1000 / 2);
	}
	copy_output(l, true);
	return status;
}

/* The command goes on by itself when all was seen that was asked for. */
static int wait_command(struct launch *l, int status)
{
	bool by_itself = true;
	siginfo_t info;
	int r;

	while (!run_signals_came()) {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)l->child.pid, &info, WEXITED | WNOWAIT) < 0 &&
		    errno != EINTR)
			break;
		if (info.si_pid)
			break;
	}
	r = trace_child_end(&l->child, &by_itself);
	return status ? status : by_itself ? r : 0;
}

static int run_launch(struct launch *l, struct error *e)
{
	struct trace *t = &l->q->t;
	int status, r = 0;
	char byte;

	if (t->command)
		r = trace_child_start(&l->child, t->command, e);
	if (r < 0)
		return r;
	if (l->child.pid)
		r = trace_take_child(t, l->child.pid, e);
	if (r < 0)
		return r;
	trace_take_whom(t);
	r = start_tracer(l, e);
	if (r < 0)
		return r;
	while ((r = (int)read(l->ready, &byte, 1)) < 0 && errno == EINTR)
		tell_end(l);
	if (r == 1 && l->child.pid && trace_child_go(&l->child, t->command, e) < 0) {
		kill(l->tracer, SIGTERM);
		l->told = true;
		watch_tracer(l);
		return e->code;
	}
	status = watch_tracer(l);
	if (r != 1) /* the command was never told to begin */
		return status ? status : CMD_FAILED;
	return l->child.pid ? wait_command(l, status) : status;
}

int step_launch(struct step_request *q)
{
	struct launch l = {.q = q, .child = TRACE_NO_CHILD, .memory = -1, .ready = -1};
	struct error e = {0};
	bool by_itself;
	int r;

	run_signals_catch();
	r = run_launch(&l, &e);
	if (l.child.pid)
		trace_child_end(&l.child, &by_itself);
	if (r >= 0 && q->t.out.error)
		r = error_set(&e, -q->t.out.error, "the output could not be written: %s",
			      strerror(q->t.out.error));
	close_fd(&l.memory);
	close_fd(&l.ready);
	return r < 0 ? cmd_failed(q->t.c, &e) : r;
}
