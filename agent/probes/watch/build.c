// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/stat.h>

#include "probes/watch/build.h"
#include "probes/watch/priv.h"
#include "build.skel.h"

/* Its own programs see forks and ends, since they have records: those of the others are not
 * loaded, as for a watch of all processes. */
int watch_build_load(int pid, uint32_t ring, struct watch **ret, struct error *e)
{
	struct watch_options o = {0};
	struct build *skel = build__open();
	struct stat ns;

	if (!skel)
		return watch_not_opened("build", e);
	if (stat("/proc/self/ns/pid", &ns) < 0) {
		build__destroy(skel);
		return error_set(e, -errno,
				 "/proc/self/ns/pid, which tells processes apart, cannot be "
				 "looked at: %s; mount /proc",
				 strerror(errno));
	}
	skel->rodata->pidns_device = ns.st_dev;
	skel->rodata->pidns_number = ns.st_ino;
	skel->rodata->command = (uint32_t)pid;
	bpf_map__set_max_entries(skel->maps.records, ring);
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  &o, ret, e);
}

size_t watch_build_running(struct watch *w)
{
	int map = bpf_object__find_map_fd_by_name(watch_object(w), "tree");
	uint32_t key, *last = NULL;
	size_t n = 0;

	while (n < WATCH_TREE_ENTRIES && bpf_map_get_next_key(map, last, &key) == 0) {
		last = &key;
		n++;
	}
	return n;
}
