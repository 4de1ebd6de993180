/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ax run --detach: a supervisor, in a session and a cgroup of its own, is the command's parent. */
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "machine/cgroup.h"
#include "machine/mounts.h"
#include "launch/output.h"
#include "launch/parts.h"

#define AGENT_TIMEOUT_S 10 /* a hung agent must not keep a supervisor for ever */

/*
 * A detached app is nobody's job: it starts with default signals, whatever the caller (a script's
 * background job, the agent) had blocked or ignored, and without the caller's descriptors, whose
 * other ends would wait for it to end.
 */
static int leave_caller(int *report, struct error *e)
{
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL); /* fails for SIGKILL, SIGSTOP and glibc's own */
	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return error_set(e, -errno, "cannot open /dev/null (%s)", strerror(errno));
	close_fd(&null);
	if (*report != 3) {
		if (dup3(*report, 3, O_CLOEXEC) < 0)
			return error_set(e, -errno, "cannot duplicate a descriptor (%s)",
					 strerror(errno));
		*report = 3;
	}
	syscall(SYS_close_range, 4u, ~0u, 0u); /* Linux 5.9; without it they stay open */
	return 0;
}

static int open_log(const struct launch_session *s, struct output **o, int *writer, struct error *e)
{
	char dir[PATH_MAX];
	char *slash;

	if (s->log_max == 0)
		return output_journal(OUTPUT_JOURNAL, s->name, writer, e);
	if (!s->log || snprintf(dir, sizeof(dir), "%s", s->log) >= (int)sizeof(dir))
		return error_set(e, -EPROTO, "the agent named no log file for a detached app");
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = 0;
		mkdir_parents(dir, 0750); /* open() says what is wrong */
	}
	return output_open(s->log, (uint64_t)s->log_max, o, writer, e);
}

/* The supervisor's own streams: what it starts has them. */
static int use_streams(int fd, struct error *e)
{
	if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return error_set(e, -errno, "cannot duplicate a descriptor (%s)", strerror(errno));
	return 0;
}

/* The record first: it is there for the agent that is not running now. */
static void report_exit(const struct launch_options *o, const struct launch_session *s, int status)
{
	struct timeval limit = {.tv_sec = AGENT_TIMEOUT_S};
	struct control_conn conn;
	struct error e;
	char text[16];
	json_t *j;

	snprintf(text, sizeof(text), "%d", status);
	cgroup_record_set(s->cgroup, "exit", text);
	if (control_connect(o->inst->socket_path, &conn, &e))
		return;
	setsockopt(conn.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(conn.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	j = json_pack("{s:s, s:i, s:i}", "op", "exited", "id", s->id, "status", status);
	if (j)
		control_call(&conn, j, -1, NULL, NULL, &e);
	json_decref(j);
	control_close(&conn);
}

/* Interrupted while it waited for an agent that does not answer, say. */
static int check_caller(int report, struct error *e)
{
	struct pollfd p = {.fd = report};

	if (poll(&p, 1, 0) > 0)
		return error_set(e, -ECANCELED, "the caller did not wait");
	return 0;
}

static int start_command(const struct launch_options *o, struct launch_session *s,
			 struct output **output, int report, struct error *e)
{
	autoclose int writer = -1;
	int r = launch_session_open(o, s, e);

	if (!r)
		r = open_log(s, output, &writer, e);
	if (!r)
		r = use_streams(writer, e);
	if (!r)
		r = launch_leave_cgroup(s, e);
	if (!r)
		r = check_caller(report, e);
	if (!r)
		r = launch_session_start(s, e);
	/* the child is in the caller's directory, which the supervisor must not keep busy */
	if (!r && chdir("/") < 0)
		r = error_set(e, -errno, "cannot change to the directory / (%s)", strerror(errno));
	/* an end of the pipe that is ours would keep it open; the app's user may open its own by
	 * /dev/stdout */
	if (!r)
		r = use_streams(STDIN_FILENO, e);
	if (!r && s->spec.user && *output && fchown(writer, s->user.uid, s->user.gid) < 0)
		r = error_set(e, -errno, "cannot give the log to %s (%s)", s->spec.user,
			      strerror(errno));
	close_fd(&writer);
	if (!r)
		r = launch_child_go(&s->child, e);
	return r || !*output ? r : output_start(*output, e);
}

static __attribute__((noreturn)) void supervise(const struct launch_options *o, int report)
{
	struct launch_note note = {.status = LAUNCH_FAILED};
	struct output *output = NULL;
	struct launch_session s;
	int status;

	if (leave_caller(&report, &note.error)) {
		launch_note_send(report, &note);
		_exit(LAUNCH_FAILED);
	}
	if (start_command(o, &s, &output, report, &note.error)) {
		launch_note_send(report, &note);
		launch_session_close(&s);
		_exit(LAUNCH_FAILED);
	}
	if (!launch_note_recv(s.child.gate, true, &note)) { /* closed by a successful exec() */
		note.status = 0;
		snprintf(note.error.text, sizeof(note.error.text), "%s %d%s%s", s.name, s.id,
			 *s.address ? " " : "", s.address);
	}
	launch_note_send(report, &note);
	close(report);
	close_fd(&s.child.gate);
	prctl(PR_SET_NAME, "ax-supervisor");
	status = launch_wait(&s.child, s.cgroup, false);
	output_catch_up(output);
	report_exit(o, &s, status);
	output_finish(output); /* what the command left behind may write */
	_exit(0);
}

/* The directory of the cgroup of supervisors, -1: it is found later. (Above it nothing is made, and
 * nothing removed again, which an agent that starts meanwhile would take for its own.) */
static int open_supervisors(const struct instance *inst)
{
	char mount[PATH_MAX - 256], path[PATH_MAX];

	if (mount_find("cgroup2", mount, sizeof(mount)))
		return -1;
	snprintf(path, sizeof(path), "%s/%s/supervisors", mount, inst->name);
	mkdir(path, 0755);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The supervisor begins in the cgroup where it belongs, if that can be: to be moved there takes 10
 * to 30 ms (launch_leave_cgroup()), for which the app would wait. */
static pid_t fork_supervisor(const struct instance *inst)
{
	autoclose int cgroup = open_supervisors(inst);
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	pid_t pid = -1;

	if (cgroup >= 0) {
		args.cgroup = (uint64_t)cgroup;
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	}
	return pid < 0 ? fork() : pid;
}

int launch_detached(struct launch_options *o, struct error *e)
{
	struct launch_note note;
	int report[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0) {
		error_set(e, -errno, "cannot make a socket pair: %s", strerror(errno));
		return LAUNCH_FAILED;
	}
	pid = fork_supervisor(o->inst);
	if (pid == 0)
		supervise(o, report[1]);
	close(report[1]);
	if (pid < 0) {
		error_set(e, -errno, "cannot start a supervisor: %s", strerror(errno));
		close(report[0]);
		return LAUNCH_FAILED;
	}
	if (!launch_note_recv(report[0], true, &note)) {
		note.status = LAUNCH_FAILED;
		error_set(&note.error, -ECHILD, "the app's supervisor ended unexpectedly");
	}
	close(report[0]);
	if (note.status)
		*e = note.error;
	else
		printf("%s\n", note.error.text);
	return note.status;
}
