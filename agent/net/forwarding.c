/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "net/forwarding.h"
#include "net/guard.h"
#include "net/local_source.h"
#include "net/netlink.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define SYSCTL_ROOT "/proc/sys/"
#define CONF4	    "net/ipv4/conf"
#define CONF6	    "net/ipv6/conf"
#define FILE_NAME   "forwarding"
#define NODES_NAME  "forwarding-nodes" /* beside it: their prefixes, a line for each */
#define FILE_MAX    (1 << 20)

/* The file's lines, "<sysctl> <value before> <value set>", in the order of the changes; or, before
 * that of all interfaces, "<sysctl> 1 0" of one that is to forward when all others do not again. */
struct record {
	char *text;
	size_t len;
	FILE *f; /* writes text */
};

static void record_close(struct record *r)
{
	if (r->f)
		fclose(r->f);
	free(r->text);
}

static int record_open(struct record *r, const char *initial)
{
	r->f = open_memstream(&r->text, &r->len);
	if (!r->f || fputs(initial, r->f) == EOF || fflush(r->f))
		return -ENOMEM;
	return 0;
}

static int record_path(const char *run_dir, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/" FILE_NAME, run_dir);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* *exists tells an empty record from none. */
static int record_read(const char *run_dir, struct record *r, bool *exists)
{
	autofree char *text = NULL;
	char path[PATH_MAX];
	int err = record_path(run_dir, path);

	if (err)
		return err;
	err = file_read(path, FILE_MAX, &text);
	*exists = !err;
	if (err && err != -ENOENT)
		return err;
	return record_open(r, text ? text : "");
}

static int record_write(const char *run_dir, const struct record *r)
{
	char path[PATH_MAX];
	int err = record_path(run_dir, path);

	if (!err)
		err = mkdir_parents(run_dir, 0755);
	return err ? err : file_replace(path, 0644, r->text);
}

#define LOCK_TRIES 200 /* of 10 ms: another instance holds it for one change of a sysctl */

/* Instances share the sysctls, so they take turns: a lock beside the run_dirs, which only root can
 * open, so that nobody else can make an agent wait. */
static int lock_siblings(const char *run_dir, char parent[PATH_MAX])
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	char path[PATH_MAX + 32];
	autoclose int fd = -1;
	char *slash;
	int err = mkdir_parents(run_dir, 0755);

	if (err)
		return err;
	snprintf(parent, PATH_MAX, "%s", run_dir);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return -EINVAL;
	*slash = '\0';
	snprintf(path, sizeof(path), "%s/.forwarding-lock", parent);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || i == LOCK_TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return take_fd(&fd);
}

static int sysctl_read(const char *name, int *value)
{
	autofree char *text = NULL;
	char path[PATH_MAX];
	char *end;
	long v;
	int r;

	snprintf(path, sizeof(path), SYSCTL_ROOT "%s", name);
	r = file_read(path, 64, &text);
	if (r)
		return r;
	v = strtol(text, &end, 10);
	if (end == text || v < INT_MIN || v > INT_MAX)
		return -EPROTO;
	*value = (int)v;
	return 0;
}

static int sysctl_write(const char *name, int value)
{
	char path[PATH_MAX], text[16];

	snprintf(path, sizeof(path), SYSCTL_ROOT "%s", name);
	snprintf(text, sizeof(text), "%d", value);
	return file_write(path, text);
}

struct change {
	const struct instance *inst;
	struct record *record;
	struct error *e;
};

/* Remembers first, then changes. */
static int change_sysctl(struct change *c, const char *name, int from, int to)
{
	int r;

	if (fprintf(c->record->f, "%s %d %d\n", name, from, to) < 0 || fflush(c->record->f))
		return error_set(c->e, -ENOMEM, "out of memory");
	r = record_write(c->inst->run_dir, c->record);
	if (r)
		return error_set(c->e, r, "cannot write %s/" FILE_NAME ": %s", c->inst->run_dir,
				 strerror(-r));
	r = sysctl_write(name, to);
	if (r)
		return error_set(c->e, r,
				 "cannot set the sysctl %s to %d for egress: %s; is /proc/sys "
				 "writable, and does the agent run as root?",
				 name, to, strerror(-r));
	return 0;
}

static int keep_router_advertisements(struct change *c)
{
	struct dirent *d;
	DIR *dir = opendir(SYSCTL_ROOT CONF6);
	int r = 0;

	if (!dir)
		return error_set(c->e, -errno, "cannot list " SYSCTL_ROOT CONF6 ": %s",
				 strerror(errno));
	while (!r && (d = readdir(dir))) {
		char name[sizeof(CONF6) + NAME_MAX + 16];
		int value;

		if (d->d_name[0] == '.' || streq(d->d_name, "all") || streq(d->d_name, "default") ||
		    streq(d->d_name, "lo") || starts_with(d->d_name, c->inst->device_prefix))
			continue;
		snprintf(name, sizeof(name), CONF6 "/%s/accept_ra", d->d_name);
		/* Interfaces come and go meanwhile. */
		if (sysctl_read(name, &value) == 0 && value == 1)
			r = change_sysctl(c, name, 1, 2);
	}
	closedir(dir);
	return r;
}

static bool is_ours(const char *device)
{
	char path[NAME_MAX + 32];
	autofree char *group = NULL;

	snprintf(path, sizeof(path), "/sys/class/net/%s/netdev_group", device);
	return file_read(path, 16, &group) == 0 && strtoul(group, NULL, 10) == NL_LINK_GROUP;
}

static bool some_forwards(const char *conf)
{
	char path[64];
	struct dirent *d;
	bool some = false;
	DIR *dir;

	snprintf(path, sizeof(path), SYSCTL_ROOT "%s", conf);
	dir = opendir(path);
	while (dir && !some && (d = readdir(dir))) {
		char name[sizeof(CONF6) + NAME_MAX + 16];
		int value;

		if (d->d_name[0] == '.' || streq(d->d_name, "all") || streq(d->d_name, "default"))
			continue;
		snprintf(name, sizeof(name), "%s/%s/forwarding", conf, d->d_name);
		some = sysctl_read(name, &value) == 0 && value == 1;
	}
	if (dir)
		closedir(dir);
	return some;
}

bool forwarding_is_on(void)
{
	return some_forwards(CONF4) || some_forwards(CONF6);
}

/* Switching all interfaces off takes it from those, too, that had it before. (Ax's own are set by
 * who needs them: local_source.h.) */
static int remember_forwarders(struct change *c, bool v6)
{
	const char *conf = v6 ? CONF6 : CONF4;
	char path[64];
	struct dirent *d;
	int value;
	DIR *dir;

	snprintf(path, sizeof(path), SYSCTL_ROOT "%s", conf);
	dir = opendir(path);
	if (!dir)
		return error_set(c->e, -errno, "cannot list %s: %s", path, strerror(errno));
	while ((d = readdir(dir))) {
		char name[sizeof(CONF6) + NAME_MAX + 16];

		if (d->d_name[0] == '.' || streq(d->d_name, "all") || streq(d->d_name, "default"))
			continue;
		snprintf(name, sizeof(name), "%s/%s/forwarding", conf, d->d_name);
		if (sysctl_read(name, &value) == 0 && value == 1 && !is_ours(d->d_name))
			fprintf(c->record->f, "%s 1 0\n", name);
	}
	closedir(dir);
	return 0;
}

static int switch_on(struct change *c, const char *name, bool v6)
{
	int value, r = sysctl_read(name, &value);

	if (r)
		return error_set(c->e, r == -ENOENT && v6 ? -EAFNOSUPPORT : r,
				 "cannot read the sysctl %s, which egress needs: %s", name,
				 r == -ENOENT && v6 ? "this kernel has no IPv6" : strerror(-r));
	if (value)
		return 0;
	/* Before: turning forwarding on forgets the routes of advertisements otherwise. */
	if (v6) {
		r = keep_router_advertisements(c);
		if (r)
			return r;
	}
	r = remember_forwarders(c, v6);
	return r ? r : change_sysctl(c, name, 0, 1);
}

static const char *sysctl_of(bool v6)
{
	return v6 ? CONF6 "/all/forwarding" : "net/ipv4/ip_forward";
}

static bool has_line(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			return true;
	}
	return false;
}

/* What is recorded of all instances. */
struct recorded {
	bool on[2]; /* it is ax that has switched the family on */
	struct prefix nodes[GUARD_NODES_MAX];
	size_t n_nodes;
};

static void add_nodes(const char *run_dir, struct recorded *ret)
{
	char path[PATH_MAX + sizeof(NODES_NAME)], *line, *next;
	autofree char *text = NULL;

	snprintf(path, sizeof(path), "%s/" NODES_NAME, run_dir);
	if (file_read(path, (size_t)GUARD_NODES_MAX * ADDR_STRLEN, &text))
		return;
	for (line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next))
		if (ret->n_nodes < GUARD_NODES_MAX &&
		    prefix_parse(line, &ret->nodes[ret->n_nodes]) == 0)
			ret->n_nodes++;
}

static int add_recorded(const char *parent, struct recorded *ret)
{
	struct dirent *d;
	DIR *dir = opendir(parent);

	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		CLEANUP(record_close) struct record record = {0};
		char run_dir[PATH_MAX];
		bool exists = false;

		if (d->d_name[0] == '.' ||
		    snprintf(run_dir, sizeof(run_dir), "%s/%s", parent, d->d_name) >=
			    (int)sizeof(run_dir) ||
		    record_read(run_dir, &record, &exists) || !exists)
			continue;
		for (int v6 = 0; v6 < 2; v6++)
			ret->on[v6] |= has_line(record.text, sysctl_of(v6));
		add_nodes(run_dir, ret);
	}
	closedir(dir);
	return 0;
}

/* What ax switched on, or is about to, is guarded before it is on. */
static int guard(const char *parent, const bool needed[2], bool *guarded, struct error *e)
{
	struct recorded all = {0};
	int r = add_recorded(parent, &all);

	if (r)
		return error_set(e, r, "cannot list %s: %s", parent, strerror(-r));
	for (int v6 = 0; v6 < 2; v6++) {
		int value;

		if (needed[v6] && sysctl_read(sysctl_of(v6), &value) == 0 && !value)
			all.on[v6] = true;
	}
	*guarded = all.on[0] || all.on[1];
	return *guarded ? guard_set(all.on[0], all.on[1], all.nodes, all.n_nodes, e) : 0;
}

static int record_nodes(const char *run_dir, const struct prefix *nodes, size_t n)
{
	char path[PATH_MAX + sizeof(NODES_NAME)], text[GUARD_NODES_MAX * ADDR_STRLEN];
	size_t len = 0;
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%s/" NODES_NAME, run_dir);
	if (!n)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	for (size_t i = 0; i < n && i < GUARD_NODES_MAX; i++) {
		prefix_format(&nodes[i], text + len);
		len += strlen(text + len);
		text[len++] = '\n';
	}
	return fd < 0 ? -errno : write_whole(fd, text, len);
}

int forwarding_on(const struct instance *inst, bool v4, bool v6, const struct prefix *nodes,
		  size_t n_nodes, bool *guarded, struct error *e)
{
	CLEANUP(record_close) struct record record = {0};
	struct change c = {.inst = inst, .record = &record, .e = e};
	char parent[PATH_MAX];
	autoclose int lock = lock_siblings(inst->run_dir, parent);
	bool exists = false;
	int r = lock < 0 ? lock : record_read(inst->run_dir, &record, &exists);

	/* Also where nothing is changed: the file tells siblings that forwarding is needed. */
	if (!r && !exists)
		r = record_write(inst->run_dir, &record);
	r = r ? r : record_nodes(inst->run_dir, nodes, n_nodes);
	if (r)
		return error_set(e, r, "cannot keep %s/" FILE_NAME ": %s", inst->run_dir,
				 strerror(-r));
	r = guard(parent, (const bool[]){v4, v6}, guarded, e);
	if (!r && v4)
		r = switch_on(&c, sysctl_of(false), false);
	if (!r && v6)
		r = switch_on(&c, sysctl_of(true), true);
	return r;
}

/* Appends `text` to the record of another instance that needs forwarding, if there is one. */
static int hand_over(const char *parent, const char *own_run_dir, const char *text, bool *done)
{
	const char *own = strrchr(own_run_dir, '/') + 1;
	struct dirent *d;
	DIR *dir = opendir(parent);
	int r = 0;

	*done = false;
	if (!dir)
		return -errno;
	while (!r && !*done && (d = readdir(dir))) {
		CLEANUP(record_close) struct record record = {0};
		char sibling[PATH_MAX];

		if (d->d_name[0] == '.' || streq(d->d_name, own) ||
		    snprintf(sibling, sizeof(sibling), "%s/%s", parent, d->d_name) >=
			    (int)sizeof(sibling))
			continue;
		/* Whatever else lies there has no such file, or is no directory at all. */
		if (record_read(sibling, &record, done) || !*done)
			continue;
		if (fputs(text, record.f) == EOF || fflush(record.f))
			r = -ENOMEM;
		else
			r = record_write(sibling, &record);
	}
	closedir(dir);
	return r;
}

static int restore_line(char *line, struct error *e)
{
	char name[256];
	int before, set, now, r;

	if (sscanf(line, "%255s %d %d", name, &before, &set) != 3 || strstr(name, "..") ||
	    !starts_with(name, "net/"))
		return 0;
	/* Gone with its interface, or in somebody else's hands since. */
	if (sysctl_read(name, &now) || now != set)
		return 0;
	r = sysctl_write(name, before);
	if (r && r != -ENOENT)
		return error_set(e, r, "cannot set the sysctl %s back to %d: %s; set it by hand",
				 name, before, strerror(-r));
	return 0;
}

/* Last change first. */
static int restore_all(char *text, struct error *e)
{
	int first = 0;

	for (size_t len = strlen(text); len;) {
		char *line;
		int r;

		if (text[len - 1] == '\n')
			text[--len] = '\0';
		line = strrchr(text, '\n');
		line = line ? line + 1 : text;
		r = restore_line(line, first ? NULL : e);
		if (r && !first)
			first = r;
		len = (size_t)(line - text);
		text[len] = '\0';
	}
	return first;
}

int forwarding_restore(const struct instance *inst, struct error *e)
{
	CLEANUP(record_close) struct record record = {0};
	char parent[PATH_MAX], path[PATH_MAX];
	bool exists = false, done;
	autoclose int lock = -1;
	int r = record_path(inst->run_dir, path);

	if (!r && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (!r) {
		lock = lock_siblings(inst->run_dir, parent);
		r = lock < 0 ? lock : record_read(inst->run_dir, &record, &exists);
	}
	if (!r)
		r = hand_over(parent, inst->run_dir, record.text, &done);
	r = r ? r : record_nodes(inst->run_dir, NULL, 0);
	if (r)
		return error_set(e, r, "cannot read or hand over %s: %s", path, strerror(-r));
	if (!done) {
		r = restore_all(record.text, e);
		local_source_devices(parent);
		r = r ? r : guard_remove(e);
	}
	if (!r && unlink(path) < 0 && errno != ENOENT)
		r = error_set(e, -errno, "cannot remove %s: %s", path, strerror(errno));
	return r;
}
