// SPDX-License-Identifier: GPL-2.0-or-later
/* Maps that the lists of all interfaces of an instance have in common. */
#include <sys/random.h>

#include <bpf/bpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"

static const struct shared {
	uint32_t type, key_size, value_size, entries, flags;
} shared_maps[XDP_MAPS] = {
	[XDP_MAP_NAT] = {BPF_MAP_TYPE_LRU_HASH, sizeof(struct ax_nat_key), sizeof(struct ax_nat),
			 AX_BALANCE_FLOWS, 0},
	[XDP_MAP_NAT_OPENING] = {BPF_MAP_TYPE_LRU_HASH, sizeof(struct ax_nat_key),
				 sizeof(struct ax_nat), AX_BALANCE_FLOWS, 0},
	[XDP_MAP_NAT_FRAGMENTS] = {BPF_MAP_TYPE_LRU_HASH, sizeof(struct ax_nat_fragment),
				   sizeof(struct ax_nat), AX_NAT_FRAGMENTS, 0},
	[XDP_MAP_NAT_SOURCES] = {BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint32_t),
				 AX_NAT_FAMILIES, BPF_F_MMAPABLE},
	[XDP_MAP_EXPOSED] = {BPF_MAP_TYPE_HASH, sizeof(struct ax_exposed_key), sizeof(uint32_t),
			     AX_XDP_EXPOSED, BPF_F_NO_PREALLOC},
	[XDP_MAP_EXPOSED_PORTS] = {BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint64_t),
				   AX_EXPOSED_WORDS, 0},
	[XDP_MAP_WAYS] = {BPF_MAP_TYPE_HASH, sizeof(struct ax_way_key), sizeof(struct ax_way),
			  AX_WAYS, BPF_F_NO_PREALLOC},
	[XDP_MAP_TRACKED_TCP] = {BPF_MAP_TYPE_LRU_HASH, sizeof(struct ax_tracked_key),
				 sizeof(struct ax_tracked), AX_TRACKED_TCP, 0},
	[XDP_MAP_TRACKED_OTHER] = {BPF_MAP_TYPE_LRU_HASH, sizeof(struct ax_tracked_key),
				   sizeof(struct ax_tracked), AX_TRACKED_OTHER, 0},
	[XDP_MAP_BEGUN] = {BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct ax_begun_set),
			   AX_BEGUN_ENTRIES, BPF_F_MMAPABLE},
};

bool datapath_xdp_is_shared(enum xdp_map m)
{
	return shared_maps[m].entries != 0;
}

bool datapath_xdp_needs_shared(enum xdp_map m, uint32_t entries)
{
	return shared_maps[m].entries && entries >= shared_maps[m].entries;
}

/* The key behind the sets of what begins flows. */
static int put_flows_key(int map)
{
	const uint32_t at = AX_BEGUN_ENTRIES - 1;
	struct ax_begun_set last = {0};
	uint64_t key[2];

	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return -errno;
	last.way[0] = (struct ax_begun){.tag = key[0], .rest = key[1] | 1};
	return bpf_map_update_elem(map, &at, &last, 0) < 0 ? -errno : 0;
}

int datapath_xdp_flows_key(const struct datapath_xdp *d, __u64 key[2])
{
	const uint32_t at = AX_BEGUN_ENTRIES - 1;
	struct ax_begun_set last;

	if (bpf_map_lookup_elem(d->map[XDP_MAP_BEGUN], &at, &last) < 0)
		return -errno;
	key[0] = last.way[0].tag;
	key[1] = last.way[0].rest;
	return 0;
}

static int make_shared(enum xdp_map m)
{
	const struct shared *s = &shared_maps[m];
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = s->flags);
	autoclose int fd = bpf_map_create((enum bpf_map_type)s->type, datapath_xdp_map_name(m),
					  s->key_size, s->value_size, s->entries, &o);
	int r = fd < 0 ? -errno : 0;

	if (!r && m == XDP_MAP_BEGUN)
		r = put_flows_key(fd);
	return r ? r : take_fd(&fd);
}

/* Whether a map is what this version of ax would make. */
static bool fits_shared(int fd, enum xdp_map m)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == shared_maps[m].type &&
	       info.value_size == shared_maps[m].value_size &&
	       info.key_size == shared_maps[m].key_size;
}

/* No interface has so long a name. */
static void shared_path(const char *dir, enum xdp_map m, char path[PIN_PATH_MAX])
{
	snprintf(path, PIN_PATH_MAX, "%s/all-interfaces-%s", dir, datapath_xdp_map_name(m));
}

bool datapath_xdp_has_nat(const struct instance *inst)
{
	char dir[256], path[PIN_PATH_MAX];
	struct error ignored = {0};

	if (!inst || datapath_xdp_dir(inst, NULL, false, dir, sizeof(dir), &ignored))
		return false;
	shared_path(dir, XDP_MAP_NAT_SOURCES, path);
	return access(path, F_OK) == 0;
}

int datapath_xdp_shared(const struct instance *inst, enum xdp_map m, struct error *e)
{
	char dir[256], path[PIN_PATH_MAX];
	int r = datapath_xdp_dir(inst, NULL, true, dir, sizeof(dir), e);

	if (r)
		return r;
	r = mkdir_parents(dir, 0700);
	shared_path(dir, m, path);
	/* another interface may be loaded at the same time, and pin it first */
	for (int i = 0; i < 3 && !r; i++) {
		autoclose int fd = bpf_obj_get(path);

		if (fd >= 0 && fits_shared(fd, m))
			return take_fd(&fd);
		if (fd >= 0)
			unlink(path); /* of another version of ax */
		close_fd(&fd);
		fd = make_shared(m);
		if (fd < 0)
			r = fd;
		else if (!bpf_obj_pin(fd, path))
			return take_fd(&fd);
		else if (errno != EEXIST)
			r = -errno;
	}
	r = r ? r : -EEXIST;
	return error_set(e, r, "cannot make %s: %s%s", path, strerror(-r),
			 r == -EPERM ? "; run as root" : "");
}
