/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "sections/command.h"
#include "launch/parts.h"
#include "machine/cgroup.h"
#include "registry/state.h"

static const char path_value[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool command_path(const char *name, char path[COMMAND_PATH_MAX])
{
	for (const char *p = path_value; *p;) {
		size_t len = strcspn(p, ":");

		snprintf(path, COMMAND_PATH_MAX, "%.*s/%s", (int)len, p, name);
		if (access(path, X_OK) == 0)
			return true;
		p += len + (p[len] == ':');
	}
	return false;
}

/* Not execvp(3): that one runs a shell with whatever has no known format. */
static void execute(char **argv, char **env)
{
	char path[COMMAND_PATH_MAX];

	if (strchr(argv[0], '/')) {
		execve(argv[0], argv, env);
		return;
	}
	for (const char *p = path_value; *p;) {
		size_t len = strcspn(p, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)len, p, argv[0]);
		execve(path, argv, env);
		if (errno != ENOENT && errno != ENOTDIR)
			return;
		p += len + (p[len] == ':');
	}
}

static int add_words(struct strv *env, const struct command_word *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		autofree char *text = NULL;

		if (asprintf(&text, "%s=%s", w[i].key, w[i].value) < 0 || strv_add(env, text))
			return -ENOMEM;
	}
	return 0;
}

static int make_env(const struct command_run *c, const struct launch_user *u, struct strv *env)
{
	const struct command_word own[] = {{"PATH", path_value},
					   {"HOME", u->home},
					   {"USER", u->name},
					   {"LOGNAME", u->name},
					   {"SHELL", u->shell}};
	int r = add_words(env, own, ARRAY_SIZE(own));

	return r ? r : add_words(env, c->words, c->n_words);
}

static void take_descriptors(const struct command_run *c)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(c->input ? c->input : null, 0);
	dup2(c->output, 1);
	dup2(c->output, 2);
}

/* A change of the user takes the signal back, so it is asked for after that. */
static void end_with(pid_t agent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(LAUNCH_FAILED);
}

/* The user is looked up in here: it may take its time, and the agent has none. */
static _Noreturn void run_child(struct agent *a, const struct command_run *c, pid_t agent)
{
	struct launch_user user = {0};
	struct strv env = {0};
	struct error e = {0};
	int r = 0;

	take_descriptors(c);
	setsid();
	sigprocmask(SIG_SETMASK, &a->caller_mask, NULL);
	signal(SIGPIPE, SIG_DFL);
	setrlimit(RLIMIT_NOFILE, &a->caller_files);
	umask(022);
	/* (not clone3() into it: the agent may have a thread in the midst of malloc()) */
	r = c->cgroup ? cgroup_move(c->cgroup, 0) : 0;
	if (r)
		error_set(&e, r, "its cgroup: %s", strerror(-r));
	if (!r && c->netns >= 0 && setns(c->netns, CLONE_NEWNET) < 0)
		r = error_set(&e, -errno, "its network namespace: %s", strerror(errno));
	if (!r && chdir("/") < 0)
		r = error_set(&e, -errno, "/: %s", strerror(errno));
	r = r ? r : launch_user_find(c->user ? c->user : "nobody", &user, &e);
	r = r ? r : make_env(c, &user, &env);
	r = r ? r : launch_user_become(&user, &e);
	if (r) {
		dprintf(2, "the %s %s cannot run: %s\n", c->kind, c->name, e.text);
		_exit(LAUNCH_FAILED);
	}
	if (c->ends_with_us)
		end_with(agent);
	execute(c->command->v, env.v);
	dprintf(2, "cannot execute %s: %s\n", c->command->v[0], strerror(errno));
	_exit(errno == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTED);
}

int command_start(struct agent *a, const struct command_run *c)
{
	pid_t agent = getpid(), pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		run_child(a, c, agent);
	return pid;
}
