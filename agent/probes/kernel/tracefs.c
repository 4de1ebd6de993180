// SPDX-License-Identifier: GPL-2.0-or-later
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <sys/mount.h>

#include "machine/mounts.h"
#include "base/near.h"
#include "probes/kernel/tracefs.h"

#define FORMAT_MAX (64u << 10)

/* A mount in no namespace: it goes away with the descriptor. */
static int mount_detached(void)
{
	autoclose int fs = fsopen("tracefs", FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return fsmount(fs, FSMOUNT_CLOEXEC, 0);
}

int tracefs_open(struct error *e)
{
	char path[PATH_MAX];
	int fd = -1;

	if (!mount_find("tracefs", path, sizeof(path)))
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = mount_detached();
	if (fd >= 0)
		return fd;
	return error_set(e, -errno,
			 "cannot mount tracefs, which tells what tracepoints there are: %s (as "
			 "root: mount -t tracefs tracefs /sys/kernel/tracing)",
			 strerror(errno));
}

/* --- lists --- */

struct lister {
	int tracefs;
	const char *category_glob, *name_glob;
	int (*f)(void *arg, const char *category, const char *name);
	void *arg;
	size_t n;
	struct near near; /* of the names that did not match */
};

static int is_named(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Calls f for each directory below, sorted, until it returns non-zero. */
static int each_directory(int at, const char *path, int (*f)(void *arg, const char *name),
			  void *arg)
{
	autoclose int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **v;
	int r = 0, n;

	if (fd < 0)
		return -errno;
	n = scandirat(fd, ".", &v, is_named, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (r == 0 && v[i]->d_type == DT_DIR)
			r = f(arg, v[i]->d_name);
		free(v[i]);
	}
	free(v);
	return r;
}

struct category_lister {
	struct lister *l;
	const char *category;
};

static int on_name(void *arg, const char *name)
{
	struct category_lister *c = arg;

	if (fnmatch(c->l->name_glob, name, 0)) {
		near_look(&c->l->near, name);
		return 0;
	}
	c->l->n++;
	return c->l->f(c->l->arg, c->category, name);
}

static int on_category(void *arg, const char *category)
{
	struct lister *l = arg;
	struct category_lister c = {.l = l, .category = category};
	char path[PATH_MAX];

	/* ftrace's own are no tracepoints */
	if (streq(category, "ftrace") || fnmatch(l->category_glob, category, 0))
		return 0;
	snprintf(path, sizeof(path), "events/%s", category);
	return each_directory(l->tracefs, path, on_name, &c);
}

int tracefs_tracepoints(int tracefs, const char *category_glob, const char *name_glob,
			int (*f)(void *arg, const char *category, const char *name), void *arg,
			struct error *e)
{
	struct lister l = {.tracefs = tracefs,
			   .category_glob = category_glob,
			   .name_glob = name_glob,
			   .f = f,
			   .arg = arg};
	int r;

	near_start(&l.near, name_glob);
	r = each_directory(tracefs, "events", on_category, &l);
	if (r < 0 && !(e && e->code))
		return error_set(e, r, "reading the list of tracepoints failed: %s", strerror(-r));
	if (r == 0 && !l.n && *l.near.name)
		return error_set(e, -ENOENT,
				 "there is no tracepoint %.64s:%.64s; did you mean '%s'?",
				 category_glob, name_glob, l.near.name);
	if (r == 0 && !l.n)
		return error_set(e, -ENOENT,
				 "there is no tracepoint %.64s:%.64s: 'ax trace list tracepoint:*' "
				 "shows all",
				 category_glob, name_glob);
	return r;
}

/* --- formats --- */

static int read_at(int at, const char *path, char **ret)
{
	autoclose int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
	autofree char *text = malloc(FORMAT_MAX + 1);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + len, FORMAT_MAX - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	text[len] = '\0';
	*ret = take_ptr(&text);
	return 0;
}

int tracefs_format(int tracefs, const char *category, const char *name, struct format *ret,
		   struct error *e)
{
	autofree char *text = NULL;
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "events/%s/%s/format", category, name);
	r = read_at(tracefs, path, &text);
	if (r < 0)
		return error_set(e, r, "cannot read the format of tracepoint %.64s:%.64s: %s",
				 category, name, strerror(-r));
	r = format_parse(text, ret, e);
	return r;
}
