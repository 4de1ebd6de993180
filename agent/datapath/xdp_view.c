// SPDX-License-Identifier: GPL-2.0-or-later
/* The arena of a generation, mapped where it is looked at. */
#include <sys/mman.h>

#include "datapath/xdp_datapath.h"

#define WINDOW_PAGES 4

static int map_windows(struct generation_view *w, size_t first, size_t end)
{
	size_t at = first * w->window, stop = end * w->window;
	size_t len = (stop < w->g->size ? stop : w->g->size) - at;
	int prot = PROT_READ | (w->writable ? PROT_WRITE : 0);

	if (mmap(w->v.data + at, len, prot, MAP_SHARED | MAP_FIXED, w->g->arena, (off_t)at) ==
	    MAP_FAILED)
		return -errno;
	memset(w->there + first, 1, end - first);
	return 0;
}

static int fetch(struct lazy_view *v, size_t at, size_t len)
{
	struct generation_view *w = (struct generation_view *)v;
	size_t i = at / w->window, end = len ? (at + len - 1) / w->window + 1 : i;
	int r = 0;

	while (i < end && !r) {
		size_t first = i;

		while (i < end && !w->there[i])
			i++;
		if (i > first)
			r = map_windows(w, first, i);
		else
			i++;
	}
	return r;
}

int generation_view_open(const struct generation *g, bool writable, struct generation_view *ret)
{
	struct generation_view w = {.g = g, .writable = writable};
	void *p;

	w.window = WINDOW_PAGES * (size_t)sysconf(_SC_PAGESIZE);
	w.there = calloc(g->size / w.window + 1, 1);
	if (!w.there)
		return -ENOMEM;
	p = mmap(NULL, g->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(w.there);
		return -ENOMEM;
	}
	w.v = (struct lazy_view){.data = p, .size = g->layout.size, .fetch = fetch};
	*ret = w;
	return 0;
}

void generation_view_close(struct generation_view *w)
{
	if (w->v.data)
		munmap(w->v.data, w->g->size);
	free(w->there);
	*w = (struct generation_view){0};
}
