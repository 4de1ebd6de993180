// SPDX-License-Identifier: GPL-2.0-or-later
/* The tap of an interface: loading it, and having packets come by. */
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_priv.h"
#include "filter.skel.h"
#include "tap.skel.h"

static int put(const struct datapath_tap *t, enum ax_tap_entry entry, int prog)
{
	uint32_t key = entry;

	return bpf_map_update_elem(bpf_map__fd(t->skel->maps.taps), &key, &prog, 0) < 0 ? -errno
											: 0;
}

static int load(struct datapath_tap *t, const struct datapath_xdp *d, const struct generation *g,
		const struct ax_tap_options *o, uint32_t ring)
{
	int r;

	memcpy((void *)(uintptr_t)&t->skel->rodata->tap, o, sizeof(*o));
	load_like_root(t->skel->obj, g->layout.has_frags);
	r = bpf_map__set_max_entries(t->skel->maps.tapped, ring);
	if (!r)
		r = bpf_map__reuse_fd(t->skel->maps.jumps, d->map[XDP_MAP_JUMPS]);
	if (!r)
		r = bpf_map__reuse_fd(t->skel->maps.bss, d->map[XDP_MAP_VARIABLES]);
	if (!r)
		r = tap__load(t->skel);
	if (!r)
		r = put(t, AX_TAP_ENTRY, bpf_program__fd(t->skel->progs.ax_tap));
	return r;
}

static int map_control(struct datapath_tap *t)
{
	void *p = mmap(NULL, sizeof(*t->control), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(t->skel->maps.tap_control), 0);

	if (p == MAP_FAILED)
		return -errno;
	t->control = p;
	return 0;
}

int datapath_tap_open(const struct datapath_xdp *d, const struct generation *g,
		      const struct ax_tap_options *o, uint32_t ring,
		      int (*f)(void *arg, void *record, size_t size), void *arg,
		      struct datapath_tap *t, struct error *e)
{
	int cpus = libbpf_num_possible_cpus(), r = cpus < 0 ? cpus : 0;

	*t = (struct datapath_tap){.cpus = (size_t)cpus, .skel = tap__open()};
	if (!t->skel)
		r = -errno;
	if (!r)
		r = load(t, d, g, o, ring);
	if (!r)
		r = map_control(t);
	if (!r) {
		t->ring = ring_buffer__new(bpf_map__fd(t->skel->maps.tapped), f, arg, NULL);
		r = t->ring ? 0 : -errno;
	}
	if (!r)
		return 0;
	datapath_tap_close(t);
	return error_set(e, r, "the kernel refuses the program that looks at packets: %s%s",
			 strerror(-r), r == -EPERM ? "; run as root" : "");
}

void datapath_tap_close(struct datapath_tap *t)
{
	ring_buffer__free(t->ring);
	if (t->control)
		munmap(t->control, sizeof(*t->control));
	if (t->skel)
		tap__destroy(t->skel);
	*t = (struct datapath_tap){0};
}

int datapath_tap_filter(const struct datapath_tap *t, const struct generation *wanted)
{
	return put(t, AX_TAP_WANTED, wanted->prog);
}

/* What of the generation's is not the interface's: both of its programs have it. (What is handed
 * over, the stages find where the generation's own program puts it.) */
static int share(struct filter *skel, const struct generation *g)
{
	struct bpf_map *maps[] = {skel->maps.arena, skel->maps.exposed_fragments,
				  skel->maps.state_fragments, skel->maps.handovers};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(maps) && !r; i++) {
		struct bpf_map_info mi;
		autoclose int fd = map_of_program(g->prog, bpf_map__name(maps[i]), &mi);

		/* a map that the list has no use for is not the program's */
		if (fd >= 0)
			r = bpf_map__reuse_fd(maps[i], fd);
		else if (fd != -ENOENT || i == 0)
			r = fd;
	}
	return r;
}

int datapath_tap_tell(const struct datapath_tap *t, const struct datapath_xdp *d,
		      const struct generation *g)
{
	struct filter *skel;
	int r = datapath_xdp_filter(d, &g->layout, &skel);

	if (r)
		return r;
	*(uint32_t *)(uintptr_t)&skel->rodata->tell = 1;
	/* its stages are in the program array already */
	bpf_program__set_autoload(skel->progs.ax_balance, false);
	bpf_program__set_autoload(skel->progs.ax_reverse, false);
	bpf_program__set_autoload(skel->progs.ax_route, false);
	bpf_program__set_autoload(skel->progs.ax_challenge, false);
	r = share(skel, g);
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.told, bpf_map__fd(t->skel->maps.told));
	if (!r)
		r = filter__load(skel);
	if (!r)
		r = put(t, AX_TAP_TOLD, bpf_program__fd(skel->progs.ax_filter));
	if (!r)
		__atomic_store_n(&d->root->told, 1, __ATOMIC_RELEASE);
	filter__destroy(skel);
	return r;
}

int datapath_tap_turn(const struct datapath_tap *t, const struct datapath_xdp *d, bool on)
{
	uint32_t key = AX_JUMP_TAP;
	int door;

	__atomic_store_n(&d->root->tapped, 0, __ATOMIC_RELEASE);
	if (!on) {
		bpf_map_delete_elem(d->map[XDP_MAP_JUMPS], &key);
		return 0;
	}
	door = bpf_program__fd(t->skel->progs.ax_tap_door);
	if (bpf_map_update_elem(d->map[XDP_MAP_JUMPS], &key, &door, 0) < 0)
		return -errno;
	__atomic_store_n(&d->root->tapped, 1, __ATOMIC_RELEASE);
	return 0;
}

int datapath_tap_read(const struct datapath_tap *t)
{
	return ring_buffer__consume(t->ring);
}

int tap_count(int map, size_t cpus, struct ax_tap_count *ret)
{
	autofree struct ax_tap_count *each = calloc(cpus, sizeof(*each));
	uint32_t zero = 0;

	*ret = (struct ax_tap_count){0};
	if (!each)
		return -ENOMEM;
	if (bpf_map_lookup_elem(map, &zero, each) < 0)
		return -errno;
	for (size_t c = 0; c < cpus; c++) {
		ret->packets += each[c].packets;
		ret->bytes += each[c].bytes;
		ret->lost += each[c].lost;
	}
	return 0;
}

int datapath_tap_count(const struct datapath_tap *t, struct ax_tap_count *ret)
{
	return tap_count(bpf_map__fd(t->skel->maps.tap_counts), t->cpus, ret);
}
