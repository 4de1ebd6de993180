/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "launch/emulate.h"
#include "launch/parts.h"
#include "machine/cgroup.h"

/* --- names --- */

void launch_default_name(const struct app_spec *s, char *buf, size_t size)
{
	const char *command = s->command.n ? s->command.v[0] : "";
	size_t end = strlen(command), start, n = 0;
	bool letter = false;

	if (size > LAUNCH_NAME_SIZE)
		size = LAUNCH_NAME_SIZE;
	while (end && command[end - 1] == '/')
		end--;
	for (start = end; start && command[start - 1] != '/'; start--)
		;
	for (size_t i = start; i < end && n + 1 < size; i++) {
		char c = command[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
			c = '-';
		if (c == '-' && n == 0)
			continue;
		letter = letter || (c >= 'a' && c <= 'z');
		buf[n++] = c;
	}
	while (n && buf[n - 1] == '-')
		n--;
	buf[n] = 0;
	/* a number alone would be taken for an app's id */
	if (!letter)
		snprintf(buf, size, "app");
}

/* --- the session with the agent --- */

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

/* Arguments are bytes and JSON is UTF-8. What is not becomes '?' for the agent, which only shows
 * it; the command gets its own. Returns true if something was replaced. */
static bool make_utf8(struct strv *s)
{
	bool replaced = false;

	for (size_t i = 0; i < s->n; i++) {
		json_t *j = json_string(s->v[i]);

		if (!j) {
			for (char *p = s->v[i]; *p; p++)
				*p = *p & 0x80 ? '?' : *p;
			replaced = true;
		}
		json_decref(j);
	}
	return replaced;
}

static int make_request(const struct launch_options *o, json_t **ret, struct error *e)
{
	struct app_spec spec;
	json_t *j, *js;
	bool replaced;
	int r = app_spec_copy(&o->spec, &spec);

	if (r)
		return error_set(e, r, "cannot copy the app's description: %s", strerror(-r));
	replaced = make_utf8(&spec.command);
	replaced = make_utf8(&spec.env) || replaced;
	if (replaced && spec.detach && spec.restart != RESTART_NO) {
		app_spec_free(&spec);
		return error_set(e, -EILSEQ,
				 "the command or its environment is not UTF-8, so that "
				 "the agent could not restart it: use --restart no");
	}
	js = control_spec_to_json(&spec);
	app_spec_free(&spec);
	if (!js)
		return error_set(e, -EILSEQ,
				 "the app's user or directory is not UTF-8, or memory "
				 "is out");
	j = json_pack("{s:s, s:o, s:i, s:I}", "op", "launch", "spec", js, "pid", (int)getpid(),
		      "uid", (json_int_t)getuid());
	if (!j)
		return no_memory(e);
	if (o->config_key && json_object_set_new(j, "config", json_string(o->config_key)) < 0) {
		json_decref(j);
		return no_memory(e);
	}
	*ret = j;
	return 0;
}

static int not_understood(struct error *e)
{
	return error_set(e, -EPROTO,
			 "the agent's answer is not understood: are ax and its agent of the same "
			 "version?");
}

static int read_answer(struct launch_session *s, struct error *e)
{
	const char *ip4 = NULL, *ip6 = NULL;
	json_t *spec = NULL;
	int r;

	if (json_unpack(s->answer, "{s:i, s:s, s:s, s:o, s?s, s?s, s?s, s?s, s?I}", "id", &s->id,
			"name", &s->name, "cgroup", &s->cgroup, "spec", &spec, "ip4", &ip4, "ip6",
			&ip6, "resolv_conf", &s->resolv_conf, "log", &s->log, "log_max",
			&s->log_max) < 0 ||
	    s->cgroup_fd < 0)
		return not_understood(e);
	s->address = ip4 ? ip4 : ip6 ? ip6 : "";
	r = control_spec_from_json(spec, &s->spec, e);
	if (r)
		return r;
	s->has_spec = true;
	if (s->options->spec.command.n == 0 && s->spec.command.n == 0)
		return error_set(e, -EINVAL, "there is no command: give one after '--'");
	return 0;
}

static int use_own_bytes(struct launch_session *s, struct error *e)
{
	const struct app_spec *own = &s->options->spec;
	int r = 0;

	if (own->command.n) {
		strv_free(&s->spec.command);
		memset(&s->spec.command, 0, sizeof(s->spec.command));
		r = strv_copy(&own->command, &s->spec.command);
	}
	/* the config's come first in the list, and the last one wins */
	for (size_t i = 0; !r && i < own->env.n; i++)
		r = strv_add(&s->spec.env, own->env.v[i]);
	return r ? no_memory(e) : 0;
}

static void session_init(struct launch_session *s, const struct launch_options *o)
{
	*s = (struct launch_session){
		.options = o,
		.conn.fd = -1,
		.cgroup_fd = -1,
		.netns_fd = -1,
		.terminal_fd = -1,
		.enter = {.net = -1, .mounts = -1, .root = -1},
		.child = {.pidfd = -1, .gate = -1},
	};
}

/* A network namespace takes as long as all else that is done before the agent's answer, so it is
 * made meanwhile. (The config may say that the app is one in host mode: then it was for nothing.)
 */
static int ask_for_app(struct launch_session *s, const json_t *request, struct error *e)
{
	int r = control_send(&s->conn, request, -1, e);

	if (!r && s->options->spec.net == NET_PRIVATE)
		s->netns_fd = launch_netns_make();
	return control_answer(&s->conn, r, &s->answer, &s->cgroup_fd, e);
}

int launch_session_open(const struct launch_options *o, struct launch_session *s, struct error *e)
{
	json_t *request = NULL;
	int r;

	session_init(s, o);
	r = make_request(o, &request, e);
	if (!r)
		r = control_connect(o->inst->socket_path, &s->conn, e);
	if (!r)
		r = ask_for_app(s, request, e);
	json_decref(request);
	if (!r)
		r = read_answer(s, e);
	if (!r)
		r = use_own_bytes(s, e);
	if (!r && s->spec.user)
		r = launch_user_find(s->spec.user, &s->user, e);
	return r;
}

/* The agent connects the namespace while the child is made. */
static int attach_netns(struct launch_session *s, struct error *e)
{
	json_t *request;
	int r;

	if (s->netns_fd < 0)
		return error_set(
			e, s->netns_fd,
			"cannot make a network namespace (%s): run as root, see the limit "
			"in /proc/sys/user/max_net_namespaces, and whether /proc is mounted",
			strerror(-s->netns_fd));
	request = json_pack("{s:s, s:i}", "op", "attach", "id", s->id);
	r = request ? control_send(&s->conn, request, s->netns_fd, e) : no_memory(e);
	json_decref(request);
	return r;
}

/*
 * From now on the agent watches the cgroup. Its answer is not waited for: whatever ends before the
 * agent has read this is found out when it has, and an agent that dies first leaves the next one
 * the cgroup's record.
 */
static int tell_started(struct launch_session *s, struct error *e)
{
	json_t *request = json_pack("{s:s, s:i, s:i}", "op", "started", "id", s->id, "pid",
				    (int)s->child.pid);
	int r = request ? control_send(&s->conn, request, -1, e) : no_memory(e);

	json_decref(request);
	return r;
}

/* Before the command is executed there is somebody who answers for its splice(). */
static int start_emulation(struct launch_session *s, struct error *e)
{
	int listener = emulate_receive(s->child.gate, e);

	return listener < 0 ? listener : emulate_start(s, listener, &s->emulation, e);
}

int launch_session_start(struct launch_session *s, struct error *e)
{
	struct launch_plan plan = {
		.spec = &s->spec,
		.scratch_dir = s->options->inst->run_dir,
		.cgroup_fd = s->cgroup_fd,
		.close_fd = s->conn.fd,
		.terminal_fd = s->terminal_fd,
		.user = s->spec.user ? &s->user : NULL,
		.netns_fd = -1,
		.new_mounts = !s->entering && (s->spec.net == NET_PRIVATE || s->spec.volumes.n ||
					       s->spec.read_only),
		.enter = s->entering ? &s->enter : NULL,
	};
	bool private = s->spec.net == NET_PRIVATE && !s->entering;
	int r = private ? attach_netns(s, e) : 0;

	if (private) {
		plan.netns_fd = s->netns_fd;
		plan.resolv_conf = s->resolv_conf;
	}
	if (!r)
		r = launch_child_start(&plan, &s->child, e);
	if (private)
		r = control_answer(&s->conn, r, NULL, NULL, e);
	close_fd(&s->netns_fd);
	if (!r && !s->entering)
		r = tell_started(s, e);
	if (!r && s->spec.splice_emulation)
		r = start_emulation(s, e);
	if (!r) /* tells the agent, too, that a command has come into a running app */
		control_close(&s->conn);
	close_fd(&s->cgroup_fd);
	return r;
}

void launch_session_close(struct launch_session *s)
{
	emulate_leave(s->emulation);
	launch_child_kill(&s->child);
	if (s->conn.fd >= 0)
		control_close(&s->conn);
	if (s->has_spec)
		app_spec_free(&s->spec);
	launch_user_free(&s->user);
	json_decref(s->answer);
	close_fd(&s->cgroup_fd);
	close_fd(&s->netns_fd);
	launch_enter_close(&s->enter);
}

/* Whether this process is in the cgroup already: to be moved it would wait for all CPUs. */
static bool is_in_cgroup(const char *path)
{
	autofree char *text = NULL;
	const char *own;
	size_t len, n = strlen(path);

	if (file_read("/proc/self/cgroup", 65536, &text))
		return false;
	own = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!own)
		return false;
	own = strchr(own, '0') + 3;
	len = strcspn(own, "\n");
	return len > 1 && len < n && memcmp(path + n - len, own, len) == 0;
}

int launch_leave_cgroup(const struct launch_session *s, struct error *e)
{
	const char *slash = strrchr(s->cgroup, '/');
	char path[PATH_MAX];
	int r = 0;

	if (!slash || snprintf(path, sizeof(path), "%.*s/supervisors", (int)(slash - s->cgroup),
			       s->cgroup) >= (int)sizeof(path))
		return error_set(e, -EPROTO, "the agent's cgroup %s is not a path", s->cgroup);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (!r && !is_in_cgroup(path))
		r = cgroup_move(path, 0);
	return r ? error_set(e, r, "cannot move to the cgroup %s (%s)", path, strerror(-r)) : 0;
}

/* --- ax run --- */

static int run_here(struct launch_session *s, struct error *e)
{
	struct launch_note note;
	int status, r = launch_session_start(s, e);

	if (!r)
		r = launch_child_go(&s->child, e);
	if (r)
		return LAUNCH_FAILED;
	status = launch_wait(&s->child, s->cgroup, true);
	if (launch_note_recv(s->child.gate, false, &note)) {
		*e = note.error;
		status = note.status;
	}
	launch_child_close(&s->child);
	return status;
}

static int run_foreground(struct launch_session *s, struct error *e)
{
	struct launch_pty pty;
	int r = 0;

	/* 1: with a terminal, another user gets one of its own */
	if (s->spec.user)
		r = launch_pty_open(&pty, &s->user, e);
	if (r < 0)
		return LAUNCH_FAILED;
	return r ? launch_on_pty(s, &pty, e) : run_here(s, e);
}

int launch_run(struct launch_options *o, struct error *e)
{
	struct launch_session s;
	int status = LAUNCH_FAILED;

	if (o->spec.detach)
		return launch_detached(o, e);
	if (!launch_session_open(o, &s, e))
		status = run_foreground(&s, e);
	launch_session_close(&s);
	return status;
}

/* --- ax exec --- */

static int take_text(char **to, const char *text)
{
	if (!text)
		return 0;
	free(*to);
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

/* The app's variables, user and directory are in s->spec, and the command line's win. */
static int take_own(struct launch_session *s, struct error *e)
{
	const struct app_spec *own = &s->options->spec;

	if (take_text(&s->spec.user, own->user) || take_text(&s->spec.directory, own->directory))
		return no_memory(e);
	return use_own_bytes(s, e);
}

static int open_app(struct launch_session *s, const char *app, struct error *e)
{
	json_t *request = json_pack("{s:s, s:s}", "op", "enter", "app", app), *spec;
	int pid = 0, net = -1, r = request ? 0 : no_memory(e);

	r = r ? r : control_connect(s->options->inst->socket_path, &s->conn, e);
	r = r ? r : control_call(&s->conn, request, -1, &s->answer, &net, e);
	json_decref(request);
	s->enter.net = net;
	if (!r && json_unpack(s->answer, "{s:i, s:s, s:s, s:o, s?i}", "id", &s->id, "name",
			      &s->name, "cgroup", &s->cgroup, "spec", &spec, "pid", &pid) < 0)
		r = not_understood(e);
	r = r ? r : control_spec_from_json(spec, &s->spec, e);
	s->has_spec = !r;
	r = r ? r : launch_enter_find(s->cgroup, pid, &s->enter, e);
	if (r)
		return r;
	s->cgroup_fd = open(s->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->cgroup_fd < 0 ? error_set(e, -errno, "cannot open the app's cgroup %s (%s)",
					    s->cgroup, strerror(errno))
				: 0;
}

int launch_exec(struct launch_options *o, const char *app, struct error *e)
{
	struct launch_session s;
	int status = LAUNCH_FAILED, r;

	session_init(&s, o);
	s.entering = true;
	r = open_app(&s, app, e);
	r = r ? r : take_own(&s, e);
	if (!r && s.spec.user)
		r = launch_user_find(s.spec.user, &s.user, e);
	if (!r)
		status = run_foreground(&s, e);
	launch_session_close(&s);
	return status;
}
