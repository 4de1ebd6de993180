/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `ax agent --detach`: the caller waits for readiness, as systemd would (sd_notify(3)); the agent
 * is the child of a process that writes its log, and ends with it.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "control/control.h"
#include "launch/output.h"
#include "tools/cmd/agent_daemon.h"
#include "tools/lib/cmd.h"

#define CONFIG	"/etc/ax/ax.yaml" /* of the default instance; systemd's unit has the same */
#define LOG_MAX (4u << 20)
#define STOP_MS 60000

static void log_path(const struct instance *inst, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/ax.agent.log", inst->log_dir);
}

/* --- the agent's side --- */

/* As launch/detach.c has it: with nothing of the caller's that would be kept open or in the way. */
static int leave_caller(struct error *e)
{
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    chdir("/") < 0)
		return error_set(e, -errno, "cannot leave the caller's terminal: %s",
				 strerror(errno));
	if (null <= STDERR_FILENO) /* which the caller had closed */
		take_fd(&null);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	return 0;
}

static __attribute__((noreturn)) void be_agent(const struct agent_options *o, int writer)
{
	/* (the descriptors of the log are those of whoever writes it) */
	if (dup2(writer, STDERR_FILENO) < 0)
		_exit(1);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	_exit(agent_run(o));
}

static __attribute__((noreturn)) void be_daemon(const struct agent_options *o, const char *socket,
						const char *path)
{
	struct output *output = NULL;
	struct error e = {0};
	int writer = -1, status = 1;
	pid_t pid;

	setenv("NOTIFY_SOCKET", socket, 1);
	unsetenv("JOURNAL_STREAM");
	if (leave_caller(&e) || output_open(path, LOG_MAX, &output, &writer, &e)) {
		fprintf(stderr, "ax agent: %s\n", e.text);
		_exit(1);
	}
	pid = fork();
	if (pid == 0)
		be_agent(o, writer);
	/* what goes on is in the log: the caller's standard error is the caller's again */
	dup2(writer, STDERR_FILENO);
	close_fd(&writer);
	if (pid < 0 || output_start(output, &e))
		_exit(1);
	dup2(STDIN_FILENO, STDERR_FILENO);
	prctl(PR_SET_NAME, "ax-agent-log");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	output_finish(output); /* what it has started may write */
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* --- the caller's side --- */

/* A socket that sd_notify's protocol writes to; its name is the kernel's choice. Anybody may write
 * to it (it is in no directory), so that each message tells who has sent it. */
static int notify_socket(char name[32], struct error *e)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(sun);
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&sun, sizeof(sa_family_t)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&sun, &len) < 0)
		return error_set(e, -errno, "cannot make a Unix socket: %s", strerror(errno));
	snprintf(name, 32, "@%.*s", (int)(len - offsetof(struct sockaddr_un, sun_path) - 1),
		 sun.sun_path + 1);
	return take_fd(&fd);
}

/* What has been added to the log since it had that size. */
static void show_log(const char *path, off_t since)
{
	autofree char *text = NULL;

	if (!file_read(path, LOG_MAX, &text) && strlen(text) > (size_t)since)
		fputs(text + since, stderr);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_size;
}

/* Takes a message, if there is one (*any). Whether one of this user says so. */
static bool says_ready(int notify, bool *any)
{
	char text[64], control[CMSG_SPACE(sizeof(struct ucred))]
		__attribute__((aligned(__alignof__(struct cmsghdr))));
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(notify, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
	struct ucred from;

	*any = n >= 0;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&from, CMSG_DATA(c), sizeof(from));
	text[n] = 0;
	return from.uid == geteuid() && strstr(text, "READY=1");
}

/* 0: ready; 1: it has ended. */
static int wait_ready(int notify, pid_t pid)
{
	autoclose int child = pidfd_open(pid, 0);
	struct pollfd fds[] = {{.fd = notify, .events = POLLIN}, {.fd = child, .events = POLLIN}};
	bool any;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return 1;
		if (says_ready(notify, &any))
			return 0;
		if (!any && fds[1].revents)
			return 1;
	}
}

int agent_daemon_start(const struct agent_options *o, struct error *e)
{
	struct agent_options own = *o;
	autofree char *config = NULL;
	char name[32], path[PATH_MAX];
	autoclose int notify = notify_socket(name, e);
	off_t since;
	pid_t pid;
	int r;

	if (notify < 0)
		return notify;
	if (o->config_path) {
		config = realpath(o->config_path, NULL);
		if (!config)
			return error_set(e, -errno, "cannot read %s: %s", o->config_path,
					 strerror(errno));
		own.config_path = config;
	}
	log_path(o->inst, path);
	r = mkdir_parents(o->inst->run_dir, 0755);
	r = r ? r : mkdir_parents(o->inst->log_dir, 0750);
	if (r)
		return error_set(e, r, "cannot make %s: %s (run it as root)", o->inst->log_dir,
				 strerror(-r));
	since = size_of(path);
	pid = fork();
	if (pid == 0)
		be_daemon(&own, name, path);
	if (pid < 0)
		return error_set(e, -errno, "cannot start a process: %s", strerror(errno));
	if (!wait_ready(notify, pid))
		return 0;
	waitpid(pid, NULL, 0);
	show_log(path, since);
	return error_set(e, -ECHILD, "the agent has not started, as it says above, and in %s",
			 path);
}

static bool answers(const struct instance *inst)
{
	CLEANUP(control_closep) struct control_conn conn = {.fd = -1};
	struct error e;

	return control_connect(inst->socket_path, &conn, &e) == 0;
}

/* As `ax agent --detach` of the same program; under the program's name, whatever file it is now. */
static __attribute__((noreturn)) void start_by_command(const struct instance *inst)
{
	bool config = streq(inst->name, INSTANCE_DEFAULT) && access(CONFIG, F_OK) == 0;
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *const args[] = {"ax",
			      "--instance",
			      (char *)inst->name,
			      "--socket",
			      (char *)inst->socket_path,
			      "agent",
			      "--detach",
			      config ? "--config" : NULL,
			      CONFIG,
			      NULL};

	dup2(STDERR_FILENO, STDOUT_FILENO);
	own[n > 0 ? n : 0] = 0;
	execv(own, args);
	execv("/proc/self/exe", args);
	_exit(127);
}

/* Several that need one at a time start one. */
int agent_daemon_need(const struct instance *inst, struct error *e)
{
	char path[PATH_MAX];
	autoclose int lock = -1;
	int status = 0, r;
	pid_t pid;

	if (answers(inst))
		return 0;
	r = mkdir_parents(inst->run_dir, 0755);
	snprintf(path, sizeof(path), "%s/start.lock", inst->run_dir);
	if (!r) {
		lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		r = lock < 0 || flock(lock, LOCK_EX) < 0 ? -errno : 0;
	}
	if (r)
		return error_set(e, r, "cannot start an agent: %s: %s (run it as root)", path,
				 strerror(-r));
	if (answers(inst))
		return 0;
	pid = fork();
	if (pid == 0)
		start_by_command(inst);
	if (pid < 0)
		return error_set(e, -errno, "cannot start a process: %s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status ? error_set(e, -ECHILD, "no agent runs, and none could be started") : 0;
}

/* --- the end --- */

int agent_daemon_stop(const struct instance *inst, struct error *e)
{
	CLEANUP(control_closep) struct control_conn conn = {.fd = -1};
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	autoclose int agent = -1;
	struct pollfd p = {.events = POLLIN};
	json_t *request = json_pack("{s:s}", "op", "status");
	int r = control_connect(inst->socket_path, &conn, e);

	/* who listens there; the answer says that the number is still its own */
	if (!r && getsockopt(conn.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		agent = pidfd_open(peer.pid, 0);
	if (!r)
		r = control_call(&conn, request, -1, NULL, NULL, e);
	json_decref(request);
	if (r == -ECONNREFUSED || r == -ENOENT)
		return error_set(e, -ENOENT, "no agent of the instance %s runs", inst->name);
	if (r)
		return r;
	if (agent < 0 || syscall(SYS_pidfd_send_signal, agent, SIGTERM, NULL, 0) < 0)
		return error_set(e, -errno, "cannot end the agent, process %d: %s", (int)peer.pid,
				 strerror(errno));
	control_close(&conn);
	p.fd = agent;
	if (poll(&p, 1, STOP_MS) == 1)
		return 0;
	return error_set(
		e, -ETIMEDOUT,
		"the agent, process %d, has not ended: it may be busy with a change of the "
		"config, which it finishes first",
		(int)peer.pid);
}
