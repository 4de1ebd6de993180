// SPDX-License-Identifier: GPL-2.0-or-later
/* Probes that stay when the process that attached them ends: files of a bpf filesystem. */
#include <dirent.h>
#include <sys/stat.h>

#include "probes/engine/priv.h"

#define LINK_PREFIX "link-"
#define SUSPENDED   "suspended" /* a file that says so: one of the maps once more */

int engine_pin_directory(const char *pin, struct error *e)
{
	autofree char *path = strdup(pin);

	if (!path)
		return error_set(e, -ENOMEM, "out of memory");
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			mkdir(path, 0700);
			*p = '/';
		}
	if (mkdir(path, 0700) && errno != EEXIST)
		return error_set(e, -errno, "making %.300s failed: %s", pin, strerror(errno));
	return 0;
}

/* Calls f with the path of each file of the directory whose name begins so. */
static int each_file(const char *pin, const char *prefix, int (*f)(void *arg, const char *path),
		     void *arg)
{
	DIR *d = opendir(pin);
	int r = d ? 0 : -errno;

	for (struct dirent *entry; d && (entry = readdir(d));) {
		autofree char *path = NULL;

		if (entry->d_name[0] == '.' || !starts_with(entry->d_name, prefix))
			continue;
		if (asprintf(&path, "%s/%s", pin, entry->d_name) < 0)
			r = -ENOMEM;
		else if (f(arg, path) < 0)
			r = -errno;
	}
	if (d)
		closedir(d);
	return r;
}

int engine_pin_links(struct engine *g, struct error *e)
{
	const char *pin = g->plan->pin;
	size_t n = 0;

	for (size_t i = 0; i < g->n_link_fds + g->n_links; i++) {
		int fd = i < g->n_link_fds ? g->link_fds[i]
					   : bpf_link__fd(g->links[i - g->n_link_fds]);
		autofree char *path = NULL;

		if (asprintf(&path, "%s/" LINK_PREFIX "%zu", pin, n++) < 0)
			return error_set(e, -ENOMEM, "out of memory");
		if (bpf_obj_pin(fd, path)) {
			int r = -errno;

			engine_disable(pin);
			return error_set(e, r, "keeping the probe as %.300s failed: %s", path,
					 strerror(-r));
		}
	}
	return 0;
}

bool engine_is_enabled(const char *pin)
{
	autofree char *path = NULL;

	return asprintf(&path, "%s/" LINK_PREFIX "0", pin) >= 0 && access(path, F_OK) == 0;
}

struct gone { /* numbers of links */
	uint32_t *ids;
	size_t n;
};

static int unlink_file(void *arg, const char *path)
{
	struct bpf_link_info info = {0};
	struct gone *gone = arg;
	autoclose int fd = gone ? bpf_obj_get(path) : -1;
	uint32_t len = sizeof(info), *more;

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len)) {
		more = realloc(gone->ids, (gone->n + 1) * sizeof(*more));
		if (more) {
			gone->ids = more;
			gone->ids[gone->n++] = info.id;
		}
	}
	return unlink(path);
}

/* Only the last who has a link closes it at once, but a file lets go of it after a grace period of
 * RCU. What comes next must not meet with events of before. */
static void wait_gone(const struct gone *gone)
{
	int ms = 0;

	for (size_t i = 0; i < gone->n; i++) {
		int fd;

		for (; ms < ENGINE_GONE_MS && (fd = bpf_link_get_fd_by_id(gone->ids[i])) >= 0;
		     ms++) {
			usleep(1000);
			close(fd);
		}
	}
}

bool engine_is_suspended(const char *pin)
{
	autofree char *path = NULL;

	return asprintf(&path, "%s/" SUSPENDED, pin) >= 0 && access(path, F_OK) == 0;
}

int engine_suspend(const char *pin)
{
	autofree char *path = NULL, *map = NULL;
	int r = engine_disable(pin);
	autoclose int fd = -1;

	if (r < 0 || asprintf(&path, "%s/" SUSPENDED, pin) < 0 ||
	    asprintf(&map, "%s/%s", pin, engine_map_names[MAP_ABOUT]) < 0)
		return r < 0 ? r : -ENOMEM;
	fd = bpf_obj_get(map);
	return fd < 0 || bpf_obj_pin(fd, path) ? -errno : 0;
}

int engine_disable(const char *pin)
{
	struct gone gone = {0};
	int r = each_file(pin, LINK_PREFIX, unlink_file, &gone);

	if (engine_is_suspended(pin))
		r = each_file(pin, SUSPENDED, unlink_file, NULL);
	wait_gone(&gone);
	free(gone.ids);
	return r;
}

int engine_remove(const char *pin)
{
	int r = engine_disable(pin);

	if (r == 0)
		r = each_file(pin, "", unlink_file, NULL);
	if (r == 0 && rmdir(pin))
		r = -errno;
	return r;
}

static int open_map(struct engine *g, const char *pin, enum engine_map which)
{
	autofree char *path = NULL;

	if (asprintf(&path, "%s/%s", pin, engine_map_names[which]) < 0)
		return -ENOMEM;
	g->maps[which] = bpf_obj_get(path);
	return g->maps[which] < 0 ? -errno : 0;
}

static int read_sizes(struct engine *g)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(g->maps[MAP_HITS], &info, &len))
		return -errno;
	g->n_probes = info.max_entries;
	info = (struct bpf_map_info){0};
	if (bpf_obj_get_info_by_fd(g->maps[MAP_TABLE], &info, &len))
		return -errno;
	/* a table that is not used has one entry */
	g->key_words = info.max_entries > 1 ? info.key_size / (uint32_t)sizeof(uint64_t) : 0;
	return 0;
}

static int read_about(struct engine *g, char **about)
{
	struct bpf_map_info info = {0};
	uint32_t zero = 0, len = sizeof(info);
	autofree char *buf = NULL;

	if (bpf_obj_get_info_by_fd(g->maps[MAP_ABOUT], &info, &len))
		return -errno;
	if (info.value_size > ENGINE_ABOUT_MAX)
		return -EINVAL;
	buf = calloc(1, info.value_size + 1);
	if (!buf)
		return -ENOMEM;
	if (bpf_map_lookup_elem(g->maps[MAP_ABOUT], &zero, buf))
		return -errno;
	*about = take_ptr(&buf);
	return 0;
}

int engine_open(const char *pin, struct engine **ret, char **about, struct error *e)
{
	struct engine *g = calloc(1, sizeof(*g));
	int r = 0;

	if (!g)
		return error_set(e, -ENOMEM, "out of memory");
	g->n_cpus = libbpf_num_possible_cpus();
	r = g->n_cpus < 0 ? g->n_cpus : 0;
	for (unsigned i = 0; r == 0 && i < MAPS; i++)
		r = engine_map_is_kept(i) ? open_map(g, pin, i) : 0;
	if (r == 0)
		r = read_sizes(g);
	if (r == 0)
		r = read_about(g, about);
	if (r == 0) {
		*ret = g;
		return 0;
	}
	engine_free(g);
	return error_set(e, r, "reading the probe in %.300s failed: %s", pin, strerror(-r));
}
