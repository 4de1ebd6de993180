// SPDX-License-Identifier: GPL-2.0-or-later
/* What processes have mapped executable, by /proc. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "probes/elf/image.h"
#include "tools/trace/jit/jit.h"

#define DEPTH_MAX 64 /* of processes that started each other */

static bool read_line(const char *line, struct jit_map *m)
{
	char prot[8] = "";
	int at = 0;
	size_t n;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s%n", &m->start, &m->end,
		   prot, &m->offset, &at) < 4 ||
	    !at || strlen(prot) != 4 || prot[2] != 'x')
		return false;
	m->write = prot[1] == 'w';
	m->shared = prot[3] == 's';
	line += at;
	line += strspn(line, " ");
	n = strcspn(line, "\n");
	if (n >= sizeof(m->path))
		n = sizeof(m->path) - 1;
	memcpy(m->path, line, n);
	m->path[n] = '\0';
	m->build_id[0] = '\0';
	return true;
}

int jit_maps_each(uint32_t pid, int (*f)(void *arg, uint32_t pid, const struct jit_map *m),
		  void *arg)
{
	autofile FILE *maps = NULL;
	autofree char *line = NULL;
	struct jit_map m;
	char path[64];
	size_t size = 0;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (r == 0 && getline(&line, &size, maps) > 0)
		if (read_line(line, &m))
			r = f(arg, pid, &m);
	return r;
}

bool jit_map_is_file(const struct jit_map *m)
{
	size_t n = strlen(m->path);

	return m->path[0] == '/' && !m->shared && !m->write &&
	       (n < 10 || !streq(m->path + n - 10, " (deleted)"));
}

/* By the mapping itself: the name may be another file's by now. */
void jit_map_build_id(uint32_t pid, struct jit_map *m)
{
	uint8_t id[20];
	struct image im;
	struct error ignored;
	struct stat st;
	char path[96];
	size_t n;
	int fd;

	m->build_id[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, pid, m->start,
		 m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
		close_fd(&fd);
	if (fd < 0 || image_open(&im, fd, path, &ignored) < 0)
		return;
	n = image_build_id(&im, id, sizeof(id));
	if (n > sizeof(id))
		n = sizeof(id);
	for (size_t i = 0; i < n; i++)
		snprintf(m->build_id + 2 * i, 3, "%02x", id[i]);
	image_close(&im);
}

static void see_tree(uint32_t pid, bool children, unsigned depth,
		     void (*f)(void *arg, uint32_t pid), void *arg)
{
	char path[96];
	struct dirent *d;
	DIR *tasks;

	f(arg, pid);
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = children && depth < DEPTH_MAX ? opendir(path) : NULL;
	while (tasks && (d = readdir(tasks))) {
		autofree char *list = NULL;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%u/task/%.20s/children", pid, d->d_name);
		if (file_read(path, 1 << 20, &list) < 0)
			continue;
		for (char *at = list, *end; *at; at = end) {
			unsigned long child = strtoul(at, &end, 10);

			if (end == at)
				break;
			see_tree((uint32_t)child, children, depth + 1, f, arg);
		}
	}
	if (tasks)
		closedir(tasks);
}

void jit_maps_tree(uint32_t pid, bool children, void (*f)(void *arg, uint32_t pid), void *arg)
{
	see_tree(pid, children, 0, f, arg);
}
