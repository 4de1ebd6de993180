/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading failures.bpf.c, which counts what an interface's rules redirect but nobody sends. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "failures.skel.h"

static uint32_t map_id(int fd)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

/* The pinned link keeps the program attached. */
static int attach_pinned(const struct bpf_program *p, const char *dir)
{
	struct bpf_link *link = bpf_program__attach(p);
	char path[PIN_PATH_MAX];
	int r;

	if (!link)
		return -errno;
	snprintf(path, sizeof(path), "%s/link_%s", dir, bpf_program__name(p));
	unlink(path);
	r = bpf_link__pin(link, path);
	bpf_link__destroy(link);
	return r;
}

bool datapath_xdp_watched(const char *dir)
{
	char path[PIN_PATH_MAX];

	snprintf(path, sizeof(path), "%s/link_%s", dir, "ax_devmap_xmit");
	return !access(path, F_OK);
}

int datapath_xdp_watch(const struct datapath_xdp *d, const char *dir, uint64_t netns_cookie,
		       unsigned ifindex)
{
	struct failures *skel = failures__open();
	struct bpf_program *p;
	int r;

	if (!skel)
		return -errno;
	*(struct ax_watched *)&skel->rodata->watched = (struct ax_watched){
		.netns_cookie = netns_cookie,
		.ifindex = ifindex,
		.devices = map_id(d->map[XDP_MAP_DEVICES]),
		.cpus = map_id(d->map[XDP_MAP_CPUS]),
	};
	r = bpf_map__reuse_fd(skel->maps.rule_counts, d->map[XDP_MAP_RULE_COUNTS]);
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.redirected, d->map[XDP_MAP_REDIRECTED]);
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.ifindexes, d->map[XDP_MAP_IFINDEXES]);
	if (!r)
		r = failures__load(skel);
	bpf_object__for_each_program (p, skel->obj)
		if (!r)
			r = attach_pinned(p, dir);
	failures__destroy(skel);
	return r;
}
