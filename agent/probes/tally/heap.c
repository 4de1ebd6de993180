// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/tally/functions.h"
#include "probes/tally/heap.h"
#include "probes/watch/priv.h"
#include "heap.skel.h"

static const struct function_wanted wanted[] = {
	{"malloc", AX_HEAP_MALLOC, false},
	{"calloc", AX_HEAP_CALLOC, false},
	{"realloc", AX_HEAP_REALLOC, false},
	{"reallocarray", AX_HEAP_REALLOCARRAY, false},
	{"memalign", AX_HEAP_MEMALIGN, false},
	{"aligned_alloc", AX_HEAP_MEMALIGN, false},
	{"posix_memalign", AX_HEAP_POSIX_MEMALIGN, false},
	{"valloc", AX_HEAP_MALLOC, false},
	{"pvalloc", AX_HEAP_MALLOC, false},
	{"free", AX_HEAP_FREE, true},
	{NULL, 0, false},
};
/* glibc's and musl's, and those that take their place; "": the program, which may have its own. */
static const char *const libraries[] = {"libc.so.6",
					"ld-musl-x86_64.so.1",
					"libjemalloc.so.2",
					"libtcmalloc.so.4",
					"libtcmalloc_minimal.so.4",
					"",
					NULL};

int tally_heap_load(const struct watch_options *o, const struct tally_heap_options *x,
		    struct watch **ret, struct error *e)
{
	struct heap *skel = heap__open();

	if (!skel)
		return watch_not_opened("malloc", e);
	skel->rodata->tally_by = AX_TALLY_PROCESS;
	return functions_load(
		&(struct functions_parts){.watch = {.skel = skel,
						    .skeleton = skel->skeleton,
						    .config = (void *)&skel->rodata->watch},
					  .enter = skel->progs.ax_heap_enter,
					  .leave = skel->progs.ax_heap_leave,
					  .wanted = wanted,
					  .libraries = libraries,
					  .files = x->files,
					  .of_pids = x->of_pids,
					  .what = "allocate (malloc, free ...)"},
		o, ret, e);
}

size_t tally_stack(const struct watch *w, int32_t id, uint64_t addresses[AX_TALLY_FRAMES])
{
	uint32_t key = (uint32_t)id;
	size_t n = 0;

	memset(addresses, 0, AX_TALLY_FRAMES * sizeof(*addresses));
	if (id < 0 || bpf_map_lookup_elem(watch_map(w, "stacks"), &key, addresses) < 0)
		return 0;
	while (n < AX_TALLY_FRAMES && addresses[n])
		n++;
	return n;
}
