/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command that -c names. Its process is there before the probes are, since they are told its
 * number, and becomes the command when they are attached: so not even its first call is missed.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tools/trace/run/run.h"

#define WORDS_MAX 256

/* True if /bin/sh would do more with it than to divide it at blanks. */
static bool needs_shell(const char *command)
{
	return strpbrk(command, "|&;<>()$`\\\"'*?[]#~={}\n!") != NULL;
}

/*
 * True if it is one program with its arguments, whatever they are: the shell is then told to become
 * it, since only the process that is started here is traced, and dash would make another.
 */
static bool is_one_program(const char *command)
{
	size_t first = strcspn(command, " \t=");
	char quote = 0;

	if (command[first] == '=' || strchr("!{", command[0]))
		return false;
	for (const char *p = command; *p; p++) {
		if (*p == '\\' && quote != '\'' && p[1])
			p++;
		else if (quote)
			quote = *p == quote ? 0 : quote;
		else if (*p == '"' || *p == '\'')
			quote = *p;
		else if (strchr("|&;()\n", *p))
			return false;
	}
	return true;
}

static _Noreturn void tell_failure(int errors)
{
	int err = errno;

	/* nobody reads it when ax is gone, and then nobody wants to know */
	if (write(errors, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* What is executed: found out before the probes are there. */
struct program {
	char *words[WORDS_MAX + 1];
	bool shell;
};

static void read_command(char *command, struct program *ret)
{
	char *at = NULL, *exec;
	size_t n = 0;

	command += strspn(command, " \t");
	if (!needs_shell(command)) {
		for (char *w = strtok_r(command, " \t", &at); w && n < WORDS_MAX;
		     w = strtok_r(NULL, " \t", &at))
			ret->words[n++] = w;
		return;
	}
	ret->shell = true;
	ret->words[0] = (char *)(uintptr_t) "sh";
	ret->words[1] = (char *)(uintptr_t) "-c";
	ret->words[2] = command;
	if (is_one_program(command) && asprintf(&exec, "exec %s", command) >= 0)
		ret->words[2] = exec;
}

/* As a command finds them that a shell starts. */
static void set_signals(void)
{
	struct sigaction hup;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL); /* whoever started ax in the background had it ignored */
	signal(SIGTERM, SIG_DFL);
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		signal(SIGHUP, SIG_DFL);
}

/* `words`: the command as it is, or NULL: `command` is its text. All that is ours comes before the
 * read() that waits for the probes: what follows is counted to the command. */
static _Noreturn void run_child(const char *command, char **words, int go, int errors, int parent)
{
	autofree char *copy = strdup(command);
	struct program program = {0};
	char c;

	/* an ax that was killed must leave neither a process that waits for ever nor a command that
	 * nobody traces any more, and whose output may have nowhere to go */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	set_signals();
	if (copy && !words) {
		read_command(copy, &program);
		words = program.words;
	}
	if (!copy || getppid() != parent || read(go, &c, 1) != 1)
		_exit(127);
	errno = ENOENT;
	if (program.shell)
		execv("/bin/sh", words);
	else if (words[0])
		execvp(words[0], words);
	tell_failure(errors);
}

static int start(struct trace_child *c, const char *command, char **words, struct error *e)
{
	int go[2] = {-1, -1}, errors[2] = {-1, -1}, parent = getpid();

	if (pipe2(go, O_CLOEXEC) < 0)
		return error_set(e, -errno, "no pipe can be made: %s", strerror(errno));
	if (pipe2(errors, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return error_set(e, -errno, "no pipe can be made: %s", strerror(errno));
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(go[1]);
		run_child(command, words, go[0], errors[1], parent);
	}
	close(go[0]);
	close(errors[1]);
	c->go = go[1];
	c->errors = errors[0];
	if (c->pid < 0) {
		c->pid = 0;
		return error_set(e, -errno, "no process can be started: %s", strerror(errno));
	}
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd < 0)
		return error_set(e, -errno, "a process cannot be watched: %s", strerror(errno));
	return 0;
}

int trace_child_start(struct trace_child *c, const char *command, struct error *e)
{
	if (!command[strspn(command, " \t")])
		return error_set(e, -EINVAL, "-c names no command");
	return start(c, command, NULL, e);
}

int trace_child_start_words(struct trace_child *c, char **words, struct error *e)
{
	return start(c, words[0], words, e);
}

int trace_child_go(struct trace_child *c, const char *command, struct error *e)
{
	int err = 0;
	ssize_t n;

	if (write(c->go, "g", 1) != 1)
		return error_set(e, -EIO, "'%.100s' cannot be started: its process has ended",
				 command);
	close_fd(&c->go);
	do /* ends without a byte when the command is executed */
		n = read(c->errors, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close_fd(&c->errors);
	if (n != (ssize_t)sizeof(err))
		return 0;
	return error_set(e, -err, "'%.200s' cannot be executed: %s", command, strerror(err));
}

static bool wait_end(const struct trace_child *c, int ms, int *status)
{
	for (; ms >= 0; ms -= 10) {
		if (waitpid(c->pid, status, WNOHANG) == c->pid)
			return true;
		usleep(10000);
	}
	return false;
}

int trace_child_end(struct trace_child *c, bool *by_itself)
{
	int status = 0;

	*by_itself = true;
	if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == 0) {
		*by_itself = false;
		/* one that was never told to go on ends by itself */
		close_fd(&c->go);
		kill(c->pid, SIGTERM);
		kill(c->pid, SIGCONT);
		if (!wait_end(c, CHILD_END_MS, &status)) {
			kill(c->pid, SIGKILL);
			waitpid(c->pid, &status, 0);
		}
	}
	c->pid = 0;
	close_fd(&c->go);
	close_fd(&c->pidfd);
	close_fd(&c->errors);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
