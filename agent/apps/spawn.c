/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Apps that the agent starts itself: the config's, and detached ones again after they ended. They
 * go through the same `ax run --detach` as everybody's, as a process of its own; what it reports
 * by its exit status is only whether the launch succeeded.
 */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "apps/spawn.h"
#include "apps/apps.h"
#include "apps/on_connect.h"
#include "base/log.h"
#include "base/strv.h"
#include "config/config.h"
#include "config/spec.h"
#include "launch/launch.h"
#include "registry/app_table.h"
#include "registry/declared.h"
#include "registry/state.h"

struct spawn { /* an app that the agent is to start (again) */
	struct spawn *next;
	struct app_spec spec;
	char *config_key;
	uint32_t restarts;
	uint64_t at_ns; /* 0: it was started and waits for its launch */
	bool stale;	/* the config has changed meanwhile */
	int pid;
};

static void spawn_free(struct spawn *s)
{
	app_spec_free(&s->spec);
	free(s->config_key);
	free(s);
}

/* Queues a start for delay_ms from now. The spec is copied. restarts: how often it was before. */
static int spawn_app(struct agent *a, const struct app_spec *spec, const char *config_key,
		     uint32_t restarts, uint32_t delay_ms)
{
	struct spawn *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (app_spec_copy(spec, &s->spec) ||
	    (config_key && !(s->config_key = strdup(config_key)))) {
		spawn_free(s);
		return -ENOMEM;
	}
	s->restarts = restarts;
	s->at_ns = time_mono_ns() + (uint64_t)delay_ms * 1000000;
	s->next = a->spawns;
	a->spawns = s;
	a->timers_stale = true;
	return 0;
}

int declared_start(struct agent *a, const char *key)
{
	const struct config_app *c = declared_key(a, key);
	struct app_spec s;
	int r;

	if (!c || !c->spec.command.n)
		return 0;
	r = app_spec_copy(&c->spec, &s);
	if (r)
		return r;
	s.detach = true;
	r = spawn_app(a, &s, key, 0, 0);
	app_spec_free(&s);
	return r;
}

static void add_arg(struct strv *v, const char *flag, const char *value, int *bad)
{
	*bad |= strv_add(v, flag);
	if (value)
		*bad |= strv_add(v, value);
}

/* Everybody can read a command line: it says who this is for, a descriptor the rest. */
static int spawn_args(struct agent *a, const struct spawn *s, struct strv *v)
{
	int bad = 0;

	add_arg(v, "ax", NULL, &bad);
	add_arg(v, "--instance", a->inst->name, &bad);
	add_arg(v, "--socket", a->own.socket_path, &bad);
	add_arg(v, "run", "--detach", &bad);
	add_arg(v, "--name", s->spec.name, &bad);
	return bad ? -ENOMEM : 0;
}

/* The specification, as a descriptor of `ax run`. */
static int spawn_give(const struct agent *a, const struct spawn *s, struct error *e)
{
	struct app_spec spec = s->spec;
	static char root[] = "/";

	if (!spec.directory) /* and not where the agent stands */
		spec.directory = root;
	return launch_give(&spec, s->config_key, &a->caller_files, e);
}

/* The agent's variables, without what systemd told the agent, and with where the description is. */
static int spawn_environment(int given, struct strv *v)
{
	static const char *const not_for_apps[] = {
		"NOTIFY_SOCKET", "INVOCATION_ID",  "JOURNAL_STREAM", "LISTEN_PID",
		"LISTEN_FDS",	 "LISTEN_FDNAMES", "WATCHDOG_PID",   "WATCHDOG_USEC"};
	char number[sizeof(LAUNCH_GIVEN) + 16];
	int bad = 0;

	for (char **from = environ; *from; from++) {
		size_t len = strcspn(*from, "=");
		bool drop = !strncmp(*from, LAUNCH_GIVEN "=", sizeof(LAUNCH_GIVEN));

		for (size_t i = 0; i < ARRAY_SIZE(not_for_apps) && !drop; i++)
			drop = strlen(not_for_apps[i]) == len &&
			       !memcmp(*from, not_for_apps[i], len);
		if (!drop)
			bad |= strv_add(v, *from);
	}
	snprintf(number, sizeof(number), LAUNCH_GIVEN "=%d", given);
	bad |= strv_add(v, number);
	return bad ? -ENOMEM : 0;
}

/* Its descriptors: no input, no line for a person, and errors go to where the agent's do. (dup2()
 * to itself: open in the child.) */
static int spawn_files(int given, bool quiet, posix_spawn_file_actions_t *files)
{
	int r = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDWR, 0);

	r = r ? r : posix_spawn_file_actions_adddup2(files, 0, 1);
	if (quiet) /* as the last one said */
		r = r ? r : posix_spawn_file_actions_adddup2(files, 0, 2);
	return r ? r : posix_spawn_file_actions_adddup2(files, given, given);
}

/* Not with the agent's terminal, and not with its signals. */
static int spawn_attributes(const struct agent *a, posix_spawnattr_t *attr)
{
	sigset_t pipe;
	int r;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						   POSIX_SPAWN_SETSIGDEF);
	r = r ? r : posix_spawnattr_setsigmask(attr, &a->caller_mask);
	return r ? r : posix_spawnattr_setsigdefault(attr, &pipe);
}

/* Nothing of the agent's memory is copied, as fork() would: a large one would stand still for some
 * milliseconds. */
static int spawn_process(struct agent *a, const struct strv *args, int given, bool quiet, int *pid)
{
	CLEANUP(strv_free) struct strv env = {0};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int r = spawn_environment(given, &env);

	if (r)
		return r;
	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (!r) {
		r = spawn_files(given, quiet, &files);
		r = r ? r : spawn_attributes(a, &attr);
		/* also after an upgrade replaced the file: the launch is this version's */
		r = r ? r : posix_spawn(pid, "/proc/self/exe", &files, &attr, args->v, env.v);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

static int spawn_start(struct agent *a, struct spawn *s)
{
	CLEANUP(strv_free) struct strv args = {0};
	struct error e;
	autoclose int given = spawn_give(a, s, &e);
	bool quiet = s->config_key && on_connect_is_failing(a, s->config_key);
	int r = given < 0 ? given : spawn_args(a, s, &args);

	if (!r)
		r = spawn_process(a, &args, given, quiet, &s->pid);
	s->at_ns = 0;
	return r;
}

/* Launches that may be under way: each has a process, and descriptors of the agent. */
#define AT_ONCE_MAX 16

static unsigned under_way(const struct agent *a)
{
	unsigned n = 0;

	for (const struct spawn *s = a->spawns; s; s = s->next)
		n += s->pid > 0;
	return n;
}

/* A process is made by one that stands still meanwhile, for milliseconds where there is much to do:
 * after so long others have their turn, and the next look comes at once. */
#define TURN_NS 1000000

void spawn_due(struct agent *a, uint64_t now_ns)
{
	const uint64_t began_ns = time_mono_ns();
	unsigned n = under_way(a);

	for (struct spawn *s = a->spawns; s && n < AT_ONCE_MAX; s = s->next) {
		bool due = s->at_ns && s->at_ns <= now_ns;
		int r;

		if (!due)
			continue;
		if (time_mono_ns() - began_ns > TURN_NS)
			return; /* (which spawn_deadline() says) */
		r = spawn_start(a, s);
		n += !r;
		if (!r)
			continue;
		log_error("cannot start the app %s: %s; trying again in a second", s->spec.name,
			  strerror(-r));
		s->at_ns = now_ns + 1000000000;
	}
}

uint64_t spawn_deadline(const struct agent *a)
{
	uint64_t next = 0;

	if (under_way(a) >= AT_ONCE_MAX)
		return 0; /* the end of one of them comes first */
	for (const struct spawn *s = a->spawns; s; s = s->next)
		if (s->at_ns && (!next || s->at_ns < next))
			next = s->at_ns;
	return next;
}

/* The launch of an app failed: a restart policy applies to that as well. */
static void spawn_failed(struct agent *a, struct spawn *s, int status)
{
	if (s->config_key && !declared_key(a, s->config_key))
		return; /* removed meanwhile: it was refused */
	if (!s->config_key || !on_connect_is_failing(a, s->config_key))
		log_error("the app %s could not be started: 'ax run' ended with status %d",
			  s->spec.name,
			  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	if (s->spec.restart != RESTART_NO) {
		uint32_t delay = 1000u << (s->restarts < 5 ? s->restarts : 5);

		spawn_app(a, &s->spec, s->config_key, s->restarts + 1, delay);
	}
	if (s->config_key)
		on_connect_failed(a, s->config_key);
}

void spawn_mark_stale(struct agent *a, const char *config_key)
{
	for (struct spawn *s = a->spawns; s; s = s->next)
		if (!s->at_ns && s->config_key && streq(s->config_key, config_key))
			s->stale = true;
}

#define REPLACE_STOP_MS 10000

/* Starts the app as the config has it now, after what an older launch made of it has ended. */
static void spawn_replace(struct agent *a, const char *config_key)
{
	struct app *app = app_of_config(a, config_key);

	if (!app) {
		declared_start(a, config_key);
		return;
	}
	app->replaced = true;
	app_stop(a, app, REPLACE_STOP_MS);
}

void spawn_reap(struct agent *a, int pid, int status)
{
	struct spawn **p = &a->spawns, *s;

	while (*p && (*p)->pid != pid)
		p = &(*p)->next;
	if (!*p)
		return;
	s = *p;
	*p = s->next;
	a->timers_stale = true; /* the next one may begin */
	if (s->stale)
		spawn_replace(a, s->config_key);
	else if (!WIFEXITED(status) || WEXITSTATUS(status))
		spawn_failed(a, s, status);
	spawn_free(s);
}

static bool spawn_is(const struct spawn *s, const char *config_key, const char *name)
{
	if (config_key || s->config_key)
		return config_key && s->config_key && streq(config_key, s->config_key);
	return streq(s->spec.name, name);
}

uint32_t spawn_restarts(struct agent *a, const char *config_key, const char *name)
{
	for (struct spawn *s = a->spawns; s; s = s->next)
		if (s->pid > 0 && spawn_is(s, config_key, name))
			return s->restarts;
	return 0;
}

bool spawn_pending(const struct agent *a, const char *config_key)
{
	for (const struct spawn *s = a->spawns; s; s = s->next)
		if (s->config_key && streq(s->config_key, config_key))
			return true;
	return false;
}

size_t spawn_cancel(struct agent *a, const char *name)
{
	struct spawn **p = &a->spawns;
	size_t n = 0;

	while (*p) {
		struct spawn *s = *p;

		if (!s->at_ns || !streq(s->spec.name, name)) {
			p = &s->next;
			continue;
		}
		*p = s->next;
		spawn_free(s);
		n++;
	}
	return n;
}

void spawn_free_all(struct agent *a)
{
	while (a->spawns) {
		struct spawn *s = a->spawns;

		a->spawns = s->next;
		spawn_free(s);
	}
}

static bool wants_restart(const struct app *app)
{
	if (app->no_restart || !app->spec.detach || app->spec.restart == RESTART_NO)
		return false;
	return app->spec.restart == RESTART_ALWAYS || app->exit_status != 0;
}

#define RESTART_FIRST_MS 200
#define RESTART_MAX_MS	 30000
#define RESTART_GOOD_S	 10 /* one that ran so long starts afresh */

static void restart(struct agent *a, const struct app *app)
{
	uint32_t n = time_boot_s() - app->since_boot >= RESTART_GOOD_S ? 0 : app->restarts;
	uint32_t delay = RESTART_FIRST_MS;

	for (uint32_t i = 0; i < n && delay < RESTART_MAX_MS; i++)
		delay *= 2;
	log_info("app %s (%u) ended with status %d, starting it again in %u ms", app->spec.name,
		 app->id, app->exit_status, delay);
	spawn_app(a, &app->spec, app->config_key, n + 1,
		  delay < RESTART_MAX_MS ? delay : RESTART_MAX_MS);
}

void spawn_app_gone(struct agent *a, const struct app *app)
{
	if (wants_restart(app))
		restart(a, app);
	if (app->replaced && app->config_key && !spawn_pending(a, app->config_key))
		declared_start(a, app->config_key);
}
