/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's side of signed triggers (trigger.h): datagrams that the dataplane handed over are
 * judged, and a good one starts its trigger's command, as the configured user, in a process of its
 * own. What was accepted is written to a file before the command runs: the agent may die then, and
 * the next one must refuse what was accepted already.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "sections/triggers.h"
#include "base/address.h"
#include "base/log.h"
#include "base/strv.h"
#include "config/config.h"
#include "packet/trigger.h"
#include "registry/events.h"
#include "registry/state.h"
#include "sections/command.h"

#define RUNS_MAX 8 /* at the same time */

enum trigger_count {
	TRIGGER_ACCEPTED,
	TRIGGER_MALFORMED, /* not such a text at all */
	TRIGGER_UNKNOWN,   /* no trigger of that name */
	TRIGGER_BAD_MAC,
	TRIGGER_STALE,
	TRIGGER_REPLAYED,
	TRIGGER_OVERLOAD, /* too many run, or are remembered */
	TRIGGER_FAILED,	  /* no key, or the command could not be started */
	TRIGGER_COUNTS
};

static const char *const count_names[TRIGGER_COUNTS] = {
	"trigger-accepted", "trigger-malformed", "trigger-unknown",  "trigger-bad-mac",
	"trigger-stale",    "trigger-replayed",	 "trigger-overload", "trigger-failed"};

struct trigger_state { /* of a trigger's name, whatever config it is in */
	struct trigger_state *next;
	char *name;
	struct trigger_seen seen;
};

struct trigger_run {
	int pid; /* 0: free */
	char name[TRIGGER_NAME_MAX + 1];
};

struct triggers {
	struct trigger_state *states;
	struct trigger_run runs[RUNS_MAX];
	uint64_t counts[TRIGGER_COUNTS];
	int fd;	      /* the file, -1: there is none yet */
	size_t lines; /* written to it since it was made */
};

static uint32_t window_of(const struct config_trigger *t)
{
	return t->window_ms;
}

static int64_t wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static const struct config_trigger *trigger_find(const struct agent *a, const char *name)
{
	for (size_t i = 0; i < a->config.n_triggers; i++)
		if (streq(a->config.triggers[i].name, name))
			return &a->config.triggers[i];
	return NULL;
}

/* --- what was accepted --- */

static struct trigger_state *state_find(const struct triggers *t, const char *name)
{
	struct trigger_state *s = t->states;

	while (s && !streq(s->name, name))
		s = s->next;
	return s;
}

static struct trigger_state *state_get(struct triggers *t, const char *name)
{
	struct trigger_state *s = state_find(t, name);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (s)
		s->name = strdup(name);
	if (!s || !s->name) {
		free(s);
		return NULL;
	}
	s->next = t->states;
	t->states = s;
	return s;
}

/* A line: "NAME TIME UNTIL_MS MAC", or "NAME HORIZON - -". */
static int put_line(int fd, const char *name, const struct trigger_seen_entry *v, int64_t horizon)
{
	char line[256], mac[2 * TRIGGER_MAC_SIZE + 1] = "";
	int len;

	if (!v) {
		len = snprintf(line, sizeof(line), "%s %lld - -\n", name, (long long)horizon);
	} else {
		for (size_t i = 0; i < TRIGGER_MAC_SIZE; i++)
			sprintf(mac + 2 * i, "%02x", v->mac[i]);
		len = snprintf(line, sizeof(line), "%s %lld %lld %s\n", name, (long long)v->time,
			       (long long)v->until_ms, mac);
	}
	return write(fd, line, (size_t)len) == len ? 0 : -EIO;
}

static void file_path(const struct agent *a, char *buf, size_t size, const char *suffix)
{
	snprintf(buf, size, "%s/triggers%s", a->inst->run_dir, suffix);
}

/* The file anew, with what is remembered now. */
static int rewrite(struct agent *a, struct triggers *t)
{
	char path[96], tmp[96];
	autoclose int fd = -1;
	int r = 0;

	file_path(a, path, sizeof(path), "");
	file_path(a, tmp, sizeof(tmp), ".new");
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (const struct trigger_state *s = t->states; s; s = s->next) {
		r = r ? r : put_line(fd, s->name, NULL, s->seen.horizon);
		for (size_t i = 0; !r && i < s->seen.n; i++)
			r = put_line(fd, s->name, &s->seen.v[i], 0);
	}
	if (!r && rename(tmp, path) < 0)
		r = -errno;
	if (r)
		return r;
	close_fd(&t->fd);
	t->fd = take_fd(&fd);
	t->lines = 0;
	return 0;
}

static bool parse_mac(const char *s, uint8_t *mac)
{
	for (size_t i = 0; i < TRIGGER_MAC_SIZE; i++, s += 2) {
		unsigned byte;

		if (sscanf(s, "%2x", &byte) != 1)
			return false;
		mac[i] = (uint8_t)byte;
	}
	return true;
}

static void load_line(struct triggers *t, char *line)
{
	char *name = strtok(line, " "), *time = strtok(NULL, " "), *until = strtok(NULL, " ");
	char *mac = strtok(NULL, " ");
	struct trigger_seen_entry v = {0}, *more;
	struct trigger_state *s;

	if (!mac)
		return;
	s = state_get(t, name);
	if (!s)
		return;
	v.time = atoll(time);
	if (streq(mac, "-")) {
		if (v.time > s->seen.horizon)
			s->seen.horizon = v.time;
		return;
	}
	v.until_ms = atoll(until);
	if (!parse_mac(mac, v.mac) || s->seen.n == TRIGGER_SEEN_MAX)
		return;
	more = realloc(s->seen.v, (s->seen.n + 1) * sizeof(*more));
	if (!more)
		return;
	s->seen.v = more;
	s->seen.v[s->seen.n++] = v;
}

/*
 * Without a file, what was accepted before the machine was started is not known: then nothing holds
 * that could have been good at that time. (The file is gone with a reboot, and with --flush.)
 */
static void start_horizon(struct agent *a, struct triggers *t)
{
	int64_t boot_ms = wall_ms() - (int64_t)(time_boot_ns() / 1000000);

	for (size_t i = 0; i < a->config.n_triggers; i++) {
		struct trigger_state *s = state_get(t, a->config.triggers[i].name);
		int64_t horizon = (boot_ms + window_of(&a->config.triggers[i])) / 1000;

		if (s && horizon > s->seen.horizon)
			s->seen.horizon = horizon;
	}
}

static struct triggers *triggers_get(struct agent *a)
{
	autofree char *text = NULL;
	char path[96];
	struct triggers *t;

	if (a->triggers)
		return a->triggers;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->fd = -1;
	a->triggers = t;
	file_path(a, path, sizeof(path), "");
	if (file_read(path, 16u << 20, &text) == 0)
		for (char *p = text, *line; (line = strsep(&p, "\n"));)
			load_line(t, line);
	return t;
}

/* --- the config's --- */

int triggers_apply(struct agent *a, struct error *e)
{
	struct triggers *t = a->config.n_triggers ? triggers_get(a) : NULL;
	int r = 0;

	if (!a->config.n_triggers)
		return 0;
	if (!t)
		return error_set(e, -ENOMEM, "out of memory");
	start_horizon(a, t);
	r = rewrite(a, t);
	if (r)
		return error_set(e, r, "cannot write what triggers were accepted to %s: %s",
				 a->inst->run_dir, strerror(-r));
	/* keys are read when they are needed; what is wrong with them is said now */
	for (size_t i = 0; i < a->config.n_triggers && !r; i++) {
		struct trigger_key key = {0};
		struct error why;

		r = trigger_key_read(a->config.triggers[i].key_file, &key, &why);
		trigger_key_free(&key);
		if (r)
			error_set(e, r, "the trigger %s cannot be used: %s",
				  a->config.triggers[i].name, why.text);
	}
	return r;
}

/* --- running --- */

/* An app's log cannot have that name: there is no dot in an app's. */
static int open_log(const struct agent *a, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.trigger.log", a->inst->log_dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	return fd < 0 ? -errno : fd;
}

static int run(struct agent *a, struct trigger_run *slot, const struct config_trigger *t,
	       const struct ax_addr *from)
{
	autoclose int log = open_log(a, t->name);
	char source[ADDR_STRLEN] = "";
	const struct command_word words[] = {{"AX_TRIGGER_NAME", t->name},
					     {"AX_TRIGGER_SOURCE", source}};
	const struct command_run c = {.kind = "trigger",
				      .name = t->name,
				      .user = t->user,
				      .command = &t->command,
				      .words = words,
				      .n_words = ARRAY_SIZE(words),
				      .output = log,
				      .netns = -1};
	int pid;

	if (log < 0)
		return log;
	if (!addr_is_zero(from))
		addr_format(from, source);
	pid = command_start(a, &c);
	if (pid < 0)
		return pid;
	slot->pid = pid;
	snprintf(slot->name, sizeof(slot->name), "%s", t->name);
	return 0;
}

bool triggers_reap(struct agent *a, int pid, int status)
{
	for (size_t i = 0; a->triggers && i < RUNS_MAX; i++) {
		struct trigger_run *slot = &a->triggers->runs[i];

		if (slot->pid != pid)
			continue;
		slot->pid = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			log_warn("the trigger %s ended with status %d: see %s/%s.trigger.log",
				 slot->name,
				 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
				 a->inst->log_dir, slot->name);
		return true;
	}
	return false;
}

/* --- one datagram --- */

/* 0, or which count a message goes to that is not to run. */
static enum trigger_count refuse(struct agent *a, struct triggers *t,
				 const struct config_trigger *c, const struct trigger_message *m)
{
	struct trigger_state *s = state_get(t, m->name);
	struct trigger_key key = {0};
	int64_t now = wall_ms();
	struct error e;
	int r;

	if (!s) {
		log_error("the trigger %s: out of memory", c->name);
		return TRIGGER_FAILED;
	}
	r = trigger_key_read(c->key_file, &key, &e);
	if (r) {
		log_error("the trigger %s: %s", c->name, e.text);
		return TRIGGER_FAILED;
	}
	r = trigger_check(m, key.data, key.len, now, window_of(c));
	trigger_key_free(&key);
	if (r)
		return r == -ESTALE ? TRIGGER_STALE : TRIGGER_BAD_MAC;
	r = trigger_remember(&s->seen, m, now, window_of(c));
	if (r)
		return r == -EALREADY ? TRIGGER_REPLAYED
		       : r == -ESTALE ? TRIGGER_STALE
				      : TRIGGER_OVERLOAD;
	/* what cannot be kept for the next agent must not run under this one */
	r = ++t->lines > TRIGGER_SEEN_MAX ? rewrite(a, t)
					  : put_line(t->fd, s->name, &s->seen.v[s->seen.n - 1], 0);
	if (!r)
		return TRIGGER_ACCEPTED;
	log_error("the trigger %s: what was accepted cannot be written to %s", c->name,
		  a->inst->run_dir);
	return TRIGGER_FAILED;
}

static enum trigger_count judge(struct agent *a, struct triggers *t, const struct ax_capture *c,
				const uint8_t *data, const char *ifname)
{
	const struct config_trigger *conf;
	struct trigger_run *slot = t->runs;
	struct trigger_message m;
	enum trigger_count no;
	int r;

	if (c->kind != AX_CAPTURE_TRIGGER || trigger_parse(data, c->captured, &m))
		return TRIGGER_MALFORMED;
	conf = trigger_find(a, m.name);
	if (!conf)
		return TRIGGER_UNKNOWN;
	no = refuse(a, t, conf, &m);
	if (no != TRIGGER_ACCEPTED)
		return no;
	while (slot < t->runs + RUNS_MAX && slot->pid)
		slot++;
	/* it was good, and is used up all the same: nobody can keep it for a later time */
	if (slot == t->runs + RUNS_MAX)
		return TRIGGER_OVERLOAD;
	r = run(a, slot, conf, &c->src);
	if (r) {
		log_error("the trigger %s cannot be started: %s", conf->name, strerror(-r));
		return TRIGGER_FAILED;
	}
	log_info("the trigger %s was started (pid %d)", conf->name, slot->pid);
	events_trigger(a, conf->name, slot->pid, ifname, c);
	return TRIGGER_ACCEPTED;
}

void triggers_take(struct agent *a, const char *ifname, const struct ax_capture *c,
		   const uint8_t *data)
{
	struct triggers *t = triggers_get(a);

	if (t)
		t->counts[judge(a, t, c, data, ifname)]++;
}

/* --- views, end --- */

void triggers_view(const struct agent *a, json_t *counters)
{
	if (!a->triggers)
		return;
	for (size_t i = 0; i < TRIGGER_COUNTS; i++)
		json_object_set_new(counters, count_names[i],
				    json_integer((json_int_t)a->triggers->counts[i]));
}

void triggers_free(struct agent *a)
{
	struct triggers *t = a->triggers;

	while (t && t->states) {
		struct trigger_state *s = t->states;

		t->states = s->next;
		trigger_seen_free(&s->seen);
		free(s->name);
		free(s);
	}
	if (t)
		close_fd(&t->fd);
	free(t);
	a->triggers = NULL;
}
