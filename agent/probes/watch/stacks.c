// SPDX-License-Identifier: GPL-2.0-or-later
/* What the programs of ax trace profile and offcpu have counted. */
#include "probes/watch/priv.h"
#include "probes/watch/stacks.h"

static int map_of(struct watch *w, const char *name)
{
	return bpf_object__find_map_fd_by_name(watch_object(w), name);
}

/* Nothing is taken out of it meanwhile, so there is an end. */
int watch_counts(struct watch *w, watch_count_fn f, void *arg)
{
	struct ax_profile_key key, *last = NULL;
	struct ax_profile_count c;
	int map = map_of(w, "counts"), r = 0;

	while (r >= 0 && bpf_map_get_next_key(map, last, &key) == 0) {
		if (bpf_map_lookup_elem(map, &key, &c) == 0 && c.times)
			r = f(arg, &key, &c);
		last = &key;
	}
	return r < 0 ? r : 0;
}

int watch_still_waiting(struct watch *w, uint64_t now_ns, watch_count_fn f, void *arg)
{
	int map = map_of(w, "waiting"), r = 0;
	struct ax_profile_wait wait;
	uint32_t tid, *last = NULL;

	while (r >= 0 && bpf_map_get_next_key(map, last, &tid) == 0) {
		if (bpf_map_lookup_elem(map, &tid, &wait) == 0 && wait.since && wait.since < now_ns)
			r = f(arg, &wait.key,
			      &(struct ax_profile_count){.times = 1, .ns = now_ns - wait.since});
		last = &tid;
	}
	return r < 0 ? r : 0;
}

size_t watch_frames(struct watch *w, int32_t id, uint64_t *addresses, size_t max)
{
	uint64_t frames[AX_PROFILE_FRAMES] = {0};
	size_t n = 0;

	if (id < 0 || bpf_map_lookup_elem(map_of(w, "stacks"), &id, frames))
		return 0;
	while (n < AX_PROFILE_FRAMES && n < max && frames[n]) {
		addresses[n] = frames[n];
		n++;
	}
	return n;
}

/* "function [module]" to two strings. */
static const char *divide(char *text)
{
	char *module = strchr(text, ' '), *end;

	if (!module)
		return "kernel";
	*module = '\0';
	module += 1 + (module[1] == '[');
	end = strchr(module, ']');
	if (end)
		*end = '\0';
	return module;
}

int watch_kernel_name(struct watch *w, uint64_t address, char buf[WATCH_NAME_MAX],
		      const char **module)
{
	struct bpf_program *p =
		bpf_object__find_program_by_name(watch_object(w), "ax_profile_name");
	struct ax_profile_name n = {.address = address};
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int map = map_of(w, "name");
	uint32_t zero = 0;

	_Static_assert(sizeof(n.name) < WATCH_NAME_MAX, "it has room");
	if (bpf_map_update_elem(map, &zero, &n, BPF_ANY) < 0 ||
	    bpf_prog_test_run_opts(bpf_program__fd(p), &opts) < 0 ||
	    bpf_map_lookup_elem(map, &zero, &n) < 0)
		return -ENOENT;
	snprintf(buf, WATCH_NAME_MAX, "%.*s", (int)sizeof(n.name) - 1, n.name);
	if (!*buf || starts_with(buf, "0x"))
		return -ENOENT;
	*module = divide(buf);
	return 0;
}
