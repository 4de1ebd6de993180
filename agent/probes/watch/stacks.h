/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks that are counted: the programs of ax trace profile and offcpu. */
#ifndef AX_PROBES_WATCH_STACKS_H
#define AX_PROBES_WATCH_STACKS_H

#include "profile.h"
#include "probes/watch/watch.h"

#define WATCH_NAME_MAX 128

/* Stacks of programs are copied (struct ax_profile_sample), instead of followed by frame pointers
 * and counted. `hz`: how often it will look. */
int watch_profile_load(const struct watch_options *o, bool copies, uint32_t hz, struct watch **ret,
		       struct error *e);

/* A clock on each CPU that makes the program look. */
struct watch_clocks {
	int *fds;
	size_t n;
};
int watch_clocks_start(struct watch *w, uint32_t hz, struct watch_clocks *ret, struct error *e);
void watch_clocks_stop(struct watch_clocks *c);

struct watch_offcpu_options {
	bool preempted; /* also those that could go on, but had to give way */
	bool kernel_threads;
	uint64_t least_ns; /* shorter times do not count */
};
int watch_offcpu_load(const struct watch_options *o, const struct watch_offcpu_options *x,
		      struct watch **ret, struct error *e);

/* What was counted. Below 0: what f returned. */
typedef int (*watch_count_fn)(void *arg, const struct ax_profile_key *k,
			      const struct ax_profile_count *c);
int watch_counts(struct watch *w, watch_count_fn f, void *arg);
/* Of offcpu: threads that still wait, each with the time until now. */
int watch_still_waiting(struct watch *w, uint64_t now_ns, watch_count_fn f, void *arg);
/* The addresses of a call stack, the innermost first. Their number, 0: there is none. */
size_t watch_frames(struct watch *w, int32_t id, uint64_t *addresses, size_t max);
/* The name of the kernel's function at an address, and its module ("kernel"), into buf. -ENOENT. */
int watch_kernel_name(struct watch *w, uint64_t address, char buf[WATCH_NAME_MAX],
		      const char **module);

#endif
