/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pins that cannot be seen: another bpf filesystem was mounted over the one that has them, as boot
 * scripts and programs do that mount one whether there is one or not. What they hold goes on, and
 * an agent that takes that for nothing would put a second dataplane beside the first, which judges
 * by what it was told last.
 */
#include <fcntl.h>
#include <time.h>

#include <bpf/bpf.h>

#include "datapath/priv.h"

#define PROGRAMS 64 /* at one hook of the instance's own cgroup */
#define TRIES	 50 /* what was just unpinned takes the kernel a moment */
#define TRY_MS	 20

static bool is_ours(uint32_t id)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	autoclose int fd = bpf_prog_get_fd_by_id(id);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	       streq(info.name, "ax_connect4");
}

static bool any_attached(int cgroup_fd)
{
	uint32_t ids[PROGRAMS], n = PROGRAMS;

	if (bpf_prog_query(cgroup_fd, BPF_CGROUP_INET4_CONNECT, 0, NULL, ids, &n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (is_ours(ids[i]))
			return true;
	}
	return false;
}

int datapath_check_hidden(const char *cgroup_path, const char *pin_dir, struct error *e)
{
	const struct timespec pause = {.tv_nsec = TRY_MS * 1000000L};
	autoclose int cgroup_fd = open(cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; cgroup_fd >= 0 && any_attached(cgroup_fd); i++) {
		if (i == TRIES)
			return error_set(
				e, -EEXIST,
				"%s has programs of an earlier agent, and their pins are not in "
				"%s: "
				"another bpf filesystem is mounted over them; take that away with "
				"umount",
				cgroup_path, pin_dir);
		nanosleep(&pause, NULL);
	}
	return 0;
}
