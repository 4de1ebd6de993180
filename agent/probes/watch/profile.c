// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "probes/btf/few_types.h"
#include "probes/watch/priv.h"
#include "probes/watch/stacks.h"
#include "profile.skel.h"

#define COPY_BYTES (sizeof(struct ax_profile_sample) + AX_USER_STACK_ROOM)

/* Copies of some polls have room, on all CPUs together: reading the symbols of a large program
 * takes a while. */
static uint32_t ring_bytes(bool copies, uint32_t hz)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t a_poll = (uint64_t)(cpus > 0 ? cpus : 1) * COPY_BYTES *
			  (1 + hz * WATCH_PROFILE_POLL_MS / 1000);
	uint32_t bytes = WATCH_PROFILE_RING / 4;

	if (!copies)
		return bytes;
	while (bytes < 16 * a_poll && bytes < WATCH_PROFILE_RING_MAX)
		bytes *= 2;
	return bytes;
}

int watch_profile_load(const struct watch_options *o, bool copies, uint32_t hz, struct watch **ret,
		       struct error *e)
{
	CLEANUP(few_types_close) struct few_types types = FEW_TYPES_NONE;
	LIBBPF_OPTS(bpf_object_open_opts, opts,
		    .btf_custom_path = few_types_path(profile__elf_bytes, &types));
	struct profile *skel = profile__open_opts(&opts);

	if (!skel)
		return watch_not_opened("profile", e);
	skel->rodata->wanted.copies = copies;
	bpf_map__set_max_entries(skel->maps.records, ring_bytes(copies, hz));
	return watch_load(&(struct watch_parts){.skel = skel,
						.skeleton = skel->skeleton,
						.config = (void *)&skel->rodata->watch},
			  o, ret, e);
}

/* The clock runs also while the CPU has nothing to do, but then nothing is looked at. */
static int start_clock(int program, int cpu, uint32_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = hz,
		.freq = 1,
		.exclude_idle = 1,
		.disabled = 1,
	};
	autoclose int fd =
		(int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	return take_fd(&fd);
}

int watch_clocks_start(struct watch *w, uint32_t hz, struct watch_clocks *ret, struct error *e)
{
	struct bpf_program *p = bpf_object__find_program_by_name(watch_object(w), "ax_profile");
	int cpus = libbpf_num_possible_cpus(), err = 0;

	ret->fds = cpus > 0 ? calloc((size_t)cpus, sizeof(*ret->fds)) : NULL;
	if (!ret->fds)
		return error_set(e, -ENOMEM, "out of memory");
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = start_clock(bpf_program__fd(p), cpu, hz);

		if (fd >= 0)
			ret->fds[ret->n++] = fd;
		else if (fd != -ENODEV) /* it is offline */
			err = fd;
	}
	if (ret->n && !err)
		return 0;
	watch_clocks_stop(ret);
	err = err ? err : -ENODEV;
	return error_set(e, err, "the kernel gives no clock (perf_event_open) of %u Hz: %s%s", hz,
			 strerror(-err),
			 err == -EINVAL ? "; /proc/sys/kernel/perf_event_max_sample_rate has the "
					  "most that it allows"
					: "");
}

void watch_clocks_stop(struct watch_clocks *c)
{
	while (c->n)
		close(c->fds[--c->n]);
	free(c->fds);
	c->fds = NULL;
}
