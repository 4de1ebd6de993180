// SPDX-License-Identifier: GPL-2.0-or-later
/* Probes that have a name: where they are, and what changes them. */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "machine/cgroup.h"
#include "config/probes.h"
#include "machine/instance.h"
#include "machine/mounts.h"
#include "probes/text/latency.h"
#include "probes/named/priv.h"
#include "probes/session/scope.h"

#define DIR_MAX 384
#define LOCK_MS 3000 /* the agent has more to do than to wait for one who was stopped */

/* --- where --- */

/* Of one probe; NULL: of all of them. -ENOENT: there is no bpf filesystem. */
static int find_dir(const struct instance *inst, const char *name, bool make, char ret[DIR_MAX],
		    struct error *e)
{
	char mount[256];
	int r = mount_bpffs_lasting(inst, make, mount, sizeof(mount), NULL, e);

	if (r < 0)
		return r;
	if (snprintf(ret, DIR_MAX, "%s/%s-trace%s%s", mount, inst->name, name ? "/" : "",
		     name ? name : "") >= DIR_MAX)
		return error_set(e, -ENAMETOOLONG, "the path of the bpf filesystem is too long");
	return 0;
}

static bool exists(const char *dir)
{
	return access(dir, F_OK) == 0;
}

/* Of one that there is. */
static int find_named(const struct instance *inst, const char *name, char ret[DIR_MAX],
		      struct error *e)
{
	int r = config_probe_check_name(name, e);

	*ret = 0;
	if (r == 0)
		r = find_dir(inst, name, false, ret, e);
	if (r == 0 && !exists(ret))
		r = errno == EACCES ? -EACCES : -ENOENT;
	if (r == -EACCES)
		return error_set(e, r, "%s cannot be read: run ax as root", ret);
	if (r == -ENOENT)
		return error_set(e, r,
				 "there is no probe '%s'%s%s%s: 'ax trace ls' lists those that are",
				 name, *ret ? " (no " : "", ret, *ret ? ")" : "");
	return r;
}

static int lock(const struct instance *inst, int *fd, struct error *e)
{
	static uint64_t gave_up_ns; /* the agent asks once for each of its probes */
	char path[128];
	int r = mkdir_parents(inst->run_dir, 0755), ms = 0;

	if (gave_up_ns && time_mono_ns() - gave_up_ns < LOCK_MS * UINT64_C(1000000))
		ms = LOCK_MS;
	snprintf(path, sizeof(path), "%s/trace.lock", inst->run_dir);
	*fd = r ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (; *fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) < 0; ms += 10) {
		if (errno == EWOULDBLOCK && ms >= LOCK_MS) {
			gave_up_ns = time_mono_ns();
			return error_set(e, -EBUSY,
					 "another ax has been changing probes for %d seconds: try "
					 "again when it has ended",
					 LOCK_MS / 1000);
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			close_fd(fd);
		else
			usleep(10000);
	}
	if (*fd < 0)
		return error_set(e, -errno, "cannot lock %s: %s%s", path, strerror(errno),
				 errno == EACCES ? "; run as root" : "");
	return 0;
}

/* --- what is there --- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int named_list(const struct instance *inst, struct strv *names, struct error *e)
{
	char dir[DIR_MAX];
	int r = find_dir(inst, NULL, false, dir, e);
	DIR *d = r == 0 ? opendir(dir) : NULL;

	if (r == -ENOENT || (r == 0 && !d && errno == ENOENT))
		return 0;
	if (r < 0)
		return r;
	if (!d)
		return error_set(e, -errno, "%s cannot be read: %s%s", dir, strerror(errno),
				 errno == EACCES ? "; run as root" : "");
	for (struct dirent *de; r == 0 && (de = readdir(d));)
		if (de->d_name[0] != '.')
			r = strv_add(names, de->d_name);
	closedir(d);
	if (r < 0)
		return error_set(e, r, "out of memory");
	if (names->n)
		qsort(names->v, names->n, sizeof(*names->v), compare_names);
	return 0;
}

void named_free(struct named *n)
{
	config_probe_free(&n->probe);
	if (n->session)
		session_close(n->session);
	*n = (struct named){0};
}

/* What it was attached to may be gone, or another file may have its name. True: it is the same
 * file, but was written over. */
static bool find_stale(const struct instance *inst, const struct kept *k, char *why, size_t size)
{
	struct session_options now = {0};
	struct error e = {0};
	bool overwritten = false;

	why[0] = '\0';
	for (size_t i = 0; i < k->n_files && !why[0]; i++) {
		const struct kept_file *f = &k->files[i];
		struct stat st;

		if (stat(f->path, &st))
			snprintf(why, size, "%.100s is gone", f->path);
		else if (st.st_dev != f->device || st.st_ino != f->inode)
			snprintf(why, size, "%.100s is another file now", f->path);
		else if ((overwritten = kept_file_is_overwritten(f, &st)))
			snprintf(why, size, "%.100s was written over", f->path);
	}
	if (why[0] || (!k->probe.app && !k->probe.cgroup))
		return overwritten;
	if (k->probe.app ? scope_app(inst, k->probe.app, &now, &e)
			 : scope_cgroup(k->probe.cgroup, &now, &e))
		snprintf(why, size, "%.150s", e.text);
	else if (scope_number(&now) != k->cgroup)
		snprintf(why, size, "%.100s was started anew",
			 k->probe.app ? k->probe.app : k->probe.cgroup);
	return false;
}

static int not_readable(const char *name, struct error *e)
{
	return error_set(
		e, -EPROTO,
		"what is kept of the probe '%s' is not whole, or of another version of ax: "
		"remove it with 'ax trace rm %s' and add it again",
		name, name);
}

static int open_kept(const char *name, const char *dir, struct session **s, struct kept *k,
		     struct error *e)
{
	autofree char *text = NULL;
	int r = session_open_pinned(dir, s, &text, e);

	if (r == -EINVAL || r == -ENOENT)
		return not_readable(name, e);
	if (r < 0)
		return r;
	r = kept_parse(text, k);
	if (r == -EPROTO)
		return not_readable(name, e);
	return r < 0 ? error_set(e, r, "out of memory") : 0;
}

static uint64_t number_of(const char *dir)
{
	struct stat st;

	return stat(dir, &st) ? 0 : st.st_ino;
}

bool named_is_same(const struct instance *inst, const struct named *n)
{
	char dir[DIR_MAX];

	return find_dir(inst, n->probe.name, false, dir, NULL) == 0 &&
	       number_of(dir) == n->directory;
}

static int suspend(const struct instance *inst, const char *dir)
{
	struct error ignored = {0};
	autoclose int fd = -1;
	int r = lock(inst, &fd, &ignored);

	return r < 0 ? r : engine_suspend(dir);
}

int named_open(const struct instance *inst, const char *name, struct named *ret, struct error *e)
{
	CLEANUP(kept_free) struct kept k = {0};
	char dir[DIR_MAX];
	int r = find_named(inst, name, dir, e);

	*ret = (struct named){0};
	if (r == 0)
		r = open_kept(name, dir, &ret->session, &k, e);
	if (r == 0 && config_probe_copy(&k.probe, &ret->probe) < 0)
		r = error_set(e, -ENOMEM, "out of memory");
	if (r < 0) {
		named_free(ret);
		return r;
	}
	ret->by_config = k.by_config;
	ret->made = k.made;
	ret->enabled = engine_is_enabled(dir);
	ret->directory = number_of(dir);
	if (find_stale(inst, &k, ret->stale, sizeof(ret->stale)) && ret->enabled)
		ret->enabled = suspend(inst, dir) < 0;
	ret->overwritten = engine_is_suspended(dir);
	if (k.probe.pid && kill((pid_t)k.probe.pid, 0) && errno == ESRCH)
		snprintf(ret->stale, sizeof(ret->stale), "process %u has ended", k.probe.pid);
	return 0;
}

/* --- attaching --- */

/* A session that is made of what is kept. */
struct made {
	struct probe_spec specs[SESSION_PARTS_MAX];
	struct session_part parts[SESSION_PARTS_MAX];
	size_t n;
	struct latency latency;
	struct session *session;
	char *text;
};

static void made_free(struct made *m)
{
	if (m->session)
		session_close(m->session);
	for (size_t i = 0; i < m->n; i++)
		probe_spec_free(&m->specs[i]);
	latency_free(&m->latency);
	free(m->text);
}

static int add_part(struct made *m, const char *text, enum trace_action action, struct error *e)
{
	struct session_part *part = &m->parts[m->n];
	int r;

	if (m->n == SESSION_PARTS_MAX)
		return error_set(e, -E2BIG, "expected at most %d probes at a time",
				 SESSION_PARTS_MAX);
	r = probe_parse(text, &m->specs[m->n], e);
	if (r < 0)
		return r;
	*part = (struct session_part){.spec = &m->specs[m->n++], .action = action};
	return 0;
}

static int add_arming(struct made *m, const struct config_probe *p, const struct strv *texts,
		      enum trace_action action, struct error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < texts->n; i++) {
		r = add_part(m, texts->v[i], action, e);
		if (r == 0) {
			m->parts[m->n - 1].state = 1;
			m->parts[m->n - 1].per_thread = p->per_thread;
		}
	}
	return r;
}

static int make_parts(struct made *m, const struct config_probe *p, struct error *e)
{
	int r;

	if (p->action == TRACE_LATENCY) {
		r = latency_parse(p->probe, &m->latency, e);
		m->n = r < 0 ? 0 : latency_parts(&m->latency, m->parts);
	} else {
		r = add_part(m, p->probe, (enum trace_action)p->action, e);
	}
	if (r < 0)
		return r;
	if (p->linear[2]) {
		uint64_t width = (uint64_t)p->linear[1] - (uint64_t)p->linear[0];
		uint64_t step = (uint64_t)p->linear[2];

		m->parts[0].buckets = (struct trace_buckets){
			.least = p->linear[0],
			.step = step,
			.n = (uint32_t)(width / step + (width % step != 0)),
		};
	}
	m->parts[0].when = p->armed_by.n ? 1 : 0;
	m->parts[0].per_thread = p->per_thread;
	r = add_arming(m, p, &p->armed_by, TRACE_ARM, e);
	return r < 0 ? r : add_arming(m, p, &p->disarmed_by, TRACE_DISARM, e);
}

static int make_options(const struct instance *inst, const struct config_probe *p,
			struct session_options *o, struct error *e)
{
	o->pid = (int)p->pid;
	o->exact = p->exact;
	o->types = p->types;
	o->flight = p->action == TRACE_WATCH ? p->last : 0;
	if (p->app)
		return scope_app(inst, p->app, o, e);
	return p->cgroup ? scope_cgroup(p->cgroup, o, e) : 0;
}

/* Resolves all that is named; changes nothing. */
static int make(const struct instance *inst, const char *dir, struct kept *k, bool enabled,
		struct made *m, struct error *e)
{
	struct session_options o = {.pin = dir, .disabled = !enabled};
	struct error unknown = {0};
	char apps[PATH_MAX];
	int r = make_parts(m, &k->probe, e);

	if (apps_directory(inst, apps, sizeof(apps), &unknown) == 0)
		o.apps = apps;
	if (r == 0)
		r = make_options(inst, &k->probe, &o, e);
	if (r == 0)
		r = session_open(m->parts, m->n, &o, &m->session, e);
	if (r < 0)
		return r;
	k->cgroup = scope_number(&o);
	r = kept_take_files(k, m->session);
	return r < 0 ? error_set(e, r, "out of memory") : 0;
}

/* What is to be kept with it. */
static int give_text(struct made *m, const struct kept *k, struct error *e)
{
	free(m->text);
	m->text = kept_format(k);
	if (!m->text)
		return error_set(e, -EINVAL, "the probe's text is not UTF-8, so it cannot be kept");
	m->session->options.text = m->text;
	return 0;
}

static inline void json_unref(json_t **j)
{
	json_decref(*j);
}

/* Whether both are of the same places, and fetch the same: then counts mean the same. */
static bool is_alike(const char *old, const char *new)
{
	CLEANUP(json_unref) json_t *a = json_loads(old, 0, NULL);
	CLEANUP(json_unref) json_t *b = json_loads(new, 0, NULL);

	json_object_del(a, "text");
	json_object_del(b, "text");
	return a && b && json_equal(a, b);
}

static bool goes_on(const char *dir, const struct session *s)
{
	autofree char *old = NULL, *new = session_about(s);
	struct engine *g = NULL;

	if (engine_open(dir, &g, &old, NULL) < 0)
		return false;
	engine_free(g);
	return new &&is_alike(old, new);
}

/* The last one takes the directory of all with it. */
static void remove_root(const struct instance *inst)
{
	char dir[DIR_MAX];

	if (find_dir(inst, NULL, false, dir, NULL) == 0)
		rmdir(dir);
}

static int64_t now(void)
{
	return (int64_t)time(NULL);
}

/*
 * Puts the probe there as *k says: into what is there already, if that fits, so that counts and
 * records go on. What is there stays (disabled) when attaching fails; what was made is undone.
 */
static int put(const struct instance *inst, const char *dir, struct kept *k, bool enabled,
	       bool anew, struct named_outcome *o, struct error *e)
{
	CLEANUP(made_free) struct made m = {0};
	bool was_there = exists(dir), fits;
	int r = make(inst, dir, k, enabled, &m, e);

	if (r < 0)
		return r;
	r = give_text(&m, k, e);
	if (r < 0)
		return r;
	fits = was_there && !anew && goes_on(dir, m.session);
	if (!fits)
		k->made = now();
	r = give_text(&m, k, e);
	if (r == 0 && was_there && (fits ? engine_disable(dir) : engine_remove(dir)) < 0)
		r = error_set(e, -EBUSY, "%s cannot be changed: %s", dir, strerror(errno));
	if (r == 0)
		r = session_attach(m.session, e);
	if (r < 0 && !fits) {
		engine_remove(dir);
		remove_root(inst);
	}
	*o = (struct named_outcome){.changed = r == 0, .anew = was_there && !fits};
	return r;
}

/* The same, if what fits by its description does not by its sizes (its program fetches in another
 * way now). */
static int put_or_anew(const struct instance *inst, const char *dir, struct kept *k, bool enabled,
		       struct named_outcome *o, struct error *e)
{
	struct error first = {0};
	int r = put(inst, dir, k, enabled, false, o, &first);

	if (r == -EINVAL && exists(dir) && put(inst, dir, k, enabled, true, o, e) == 0)
		return 0;
	if (r < 0)
		*e = first;
	return r;
}

/* --- by name --- */

static int copy_kept(const struct config_probe *p, bool by_config, struct kept *k, struct error *e)
{
	*k = (struct kept){.by_config = by_config, .made = now()};
	if (config_probe_copy(p, &k->probe) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

int named_add(const struct instance *inst, const struct config_probe *p, struct error *e)
{
	CLEANUP(kept_free) struct kept k = {0};
	struct named_outcome o;
	autoclose int fd = -1;
	char dir[DIR_MAX];
	int r = config_probe_check_name(p->name, e);

	if (r == 0)
		r = lock(inst, &fd, e);
	if (r == 0)
		r = find_dir(inst, p->name, true, dir, e);
	if (r == 0 && exists(dir))
		r = error_set(e, -EEXIST,
			      "there is a probe '%s' already: remove it with 'ax trace rm %s', or "
			      "choose another name",
			      p->name, p->name);
	if (r == 0)
		r = copy_kept(p, false, &k, e);
	return r < 0 ? r : put(inst, dir, &k, p->enabled, false, &o, e);
}

/* What is kept of one that there is, and nothing else of it. */
static int read_kept(const char *name, const char *dir, struct kept *k, struct error *e)
{
	struct session *s = NULL;
	int r = open_kept(name, dir, &s, k, e);

	if (s)
		session_close(s);
	return r;
}

static int again(const struct instance *inst, const char *name, bool anew, struct named_outcome *o,
		 struct error *e)
{
	CLEANUP(kept_free) struct kept k = {0};
	autoclose int fd = -1;
	char dir[DIR_MAX];
	int r = lock(inst, &fd, e);

	if (r == 0)
		r = find_named(inst, name, dir, e);
	if (r == 0)
		r = read_kept(name, dir, &k, e);
	if (r < 0)
		return r;
	if (anew)
		return put(inst, dir, &k, engine_is_enabled(dir), true, o, e);
	return put_or_anew(inst, dir, &k, true, o, e);
}

int named_enable(const struct instance *inst, const char *name, struct named_outcome *o,
		 struct error *e)
{
	return again(inst, name, false, o, e);
}

int named_reset(const struct instance *inst, const char *name, struct error *e)
{
	struct named_outcome o;

	return again(inst, name, true, &o, e);
}

int named_disable(const struct instance *inst, const char *name, struct error *e)
{
	autoclose int fd = -1;
	char dir[DIR_MAX];
	int r = lock(inst, &fd, e);

	if (r == 0)
		r = find_named(inst, name, dir, e);
	if (r < 0)
		return r;
	r = engine_disable(dir);
	return r < 0 ? error_set(e, r, "%s cannot be changed: %s", dir, strerror(-r)) : 0;
}

int named_remove(const struct instance *inst, const char *name, struct error *e)
{
	autoclose int fd = -1;
	char dir[DIR_MAX];
	int r = lock(inst, &fd, e);

	if (r == 0)
		r = find_named(inst, name, dir, e);
	if (r < 0)
		return r;
	r = engine_remove(dir);
	if (r < 0)
		return error_set(e, r, "%s cannot be removed: %s", dir, strerror(-r));
	remove_root(inst);
	return 0;
}

/* --- by the config --- */

static int apply_new(const struct instance *inst, const char *dir, const struct config_probe *p,
		     bool anew, struct named_outcome *o, struct error *e)
{
	CLEANUP(kept_free) struct kept k = {0};
	int r = copy_kept(p, true, &k, e);

	return r < 0 ? r : put(inst, dir, &k, p->enabled, anew, o, e);
}

/* The same probe; but perhaps others, or another file, are to be seen by it. */
static int apply_same(const struct instance *inst, const char *dir, struct kept *k,
		      const struct config_probe *p, struct named_outcome *o, struct error *e)
{
	bool suspended = engine_is_suspended(dir);
	char stale[160];

	if (k->probe.enabled != p->enabled) {
		k->probe.enabled = p->enabled;
		return put_or_anew(inst, dir, k, p->enabled, o, e);
	}
	if (!engine_is_enabled(dir) && !suspended)
		return 0;
	find_stale(inst, k, stale, sizeof(stale));
	return *stale || suspended ? put_or_anew(inst, dir, k, true, o, e) : 0;
}

int named_apply(const struct instance *inst, const struct config_probe *p, struct named_outcome *o,
		struct error *e)
{
	CLEANUP(config_probe_free) struct config_probe as_kept = {0};
	CLEANUP(kept_free) struct kept k = {0};
	autoclose int fd = -1;
	char dir[DIR_MAX];
	int r = lock(inst, &fd, e);

	*o = (struct named_outcome){0};
	if (r == 0)
		r = find_dir(inst, p->name, true, dir, e);
	if (r < 0)
		return r;
	if (!exists(dir))
		return apply_new(inst, dir, p, false, o, e);
	r = read_kept(p->name, dir, &k, e);
	if (r == -EPROTO)
		return apply_new(inst, dir, p, true, o, e);
	if (r < 0)
		return r;
	if (!k.by_config)
		return error_set(e, -EEXIST,
				 "the probe '%s' was added by hand: remove it with 'ax trace rm "
				 "%s', or choose another name in the config",
				 p->name, p->name);
	if (config_probe_copy(p, &as_kept) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	as_kept.enabled = k.probe.enabled;
	if (!config_probe_eq(&as_kept, &k.probe))
		return apply_new(inst, dir, p, true, o, e);
	return apply_same(inst, dir, &k, p, o, e);
}

static bool in_config(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_probes; i++)
		if (streq(c->probes[i].name, name))
			return true;
	return false;
}

int named_apply_others(const struct instance *inst, const struct config *c,
		       void (*gone)(void *arg, const char *name), void *arg, struct error *e)
{
	CLEANUP(strv_free) struct strv names = {0};
	int r = named_list(inst, &names, e), first = r;

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		CLEANUP(kept_free) struct kept k = {0};
		struct error why = {0};
		char dir[DIR_MAX];
		int one = 0;

		if (in_config(c, names.v[i]) || find_dir(inst, names.v[i], false, dir, &why) < 0 ||
		    read_kept(names.v[i], dir, &k, &why) < 0 || !k.by_config)
			continue;
		one = named_remove(inst, names.v[i], &why);
		if (one == 0)
			gone(arg, names.v[i]);
		else if (first == 0)
			*e = why;
		first = first ? first : one;
	}
	return first;
}

int named_flush(const struct instance *inst, struct error *e)
{
	CLEANUP(strv_free) struct strv names = {0};
	int r = named_list(inst, &names, e);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		r = named_remove(inst, names.v[i], e);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}
