/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's apps, for those who put rule lists on interfaces: from its pinned maps. */
#include <dirent.h>

#include <bpf/bpf.h>

#include "app.h"
#include "ctl.h"
#include "machine/mounts.h"
#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"

static int open_map(const char *mount, const char *instance, const char *name, size_t value_size)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	char path[PIN_PATH_MAX];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%s/%s/map_%s", mount, instance, name);
	fd = bpf_obj_get(path);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) || info.value_size != value_size)
		return -1; /* none, or of another version of ax */
	return take_fd(&fd);
}

void datapath_apps_open(const struct instance *inst, struct datapath_apps *a)
{
	autoclose int ctl_map = -1;
	struct error ignored = {0};
	struct ax_ctl ctl;
	uint32_t zero = 0;
	char mount[200];

	*a = (struct datapath_apps){.vips = -1};
	if (!inst || mount_bpffs(inst, false, mount, sizeof(mount), &ignored))
		return;
	a->vips = open_map(mount, inst->name, "vips", sizeof(struct ax_vip));
	ctl_map = open_map(mount, inst->name, "ctl", sizeof(ctl));
	if (ctl_map < 0 || bpf_map_lookup_elem(ctl_map, &zero, &ctl))
		return;
	a->source4 = ctl.balancer4;
	a->source6 = ctl.balancer6;
	a->ifindex = ctl.balancer_ifindex;
}

void datapath_apps_close(struct datapath_apps *a)
{
	close_fd(&a->vips);
}

/* Tells the programs of one agent, if there is such a one. */
static int tell_listed(const char *mount, const char *instance, uint32_t ifindex, bool on)
{
	autoclose int listed = open_map(mount, instance, "listed", sizeof(uint32_t));
	uint32_t one = 1;
	int r = 0;

	if (listed < 0)
		return 0;
	if (on)
		r = bpf_map_update_elem(listed, &ifindex, &one, BPF_ANY);
	else
		r = bpf_map_delete_elem(listed, &ifindex);
	return r < 0 && errno != ENOENT ? -errno : 0;
}

int datapath_egress_listed(const char *dir, uint32_t ifindex, bool on)
{
	char mount[PIN_PATH_MAX];
	struct dirent *de;
	int r = 0;
	DIR *d;

	/* dir is <mount>/<instance>-xdp/<place>; the interface may be another instance's app's */
	snprintf(mount, sizeof(mount), "%s", dir);
	for (int i = 0; i < 2; i++)
		if (strrchr(mount, '/'))
			*strrchr(mount, '/') = 0;
	d = opendir(mount);
	while (d && !r && (de = readdir(d)))
		if (de->d_name[0] != '.' && de->d_type == DT_DIR)
			r = tell_listed(mount, de->d_name, ifindex, on);
	if (d)
		closedir(d);
	return r;
}

enum datapath_app datapath_apps_find(const struct datapath_apps *a, const struct ax_addr *addr)
{
	struct ax_vip vip;

	if (a->vips < 0 || bpf_map_lookup_elem(a->vips, addr, &vip))
		return DATAPATH_NO_APP;
	if (vip.kind != AX_VIP_APP && vip.kind != AX_VIP_DECLARED)
		return DATAPATH_NO_APP;
	return vip.ifindex ? DATAPATH_APP_PRIVATE : DATAPATH_APP_HOST;
}
