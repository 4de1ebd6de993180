// SPDX-License-Identifier: GPL-2.0-or-later
/* The maps of ways of all instances (include/route.h): interfaces are the host's, whoever's list it
 * is that routes between them. */
#include <dirent.h>
#include <fcntl.h>

#include <bpf/bpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "net/netlink.h"

#define INSTANCE_SUFFIX "-xdp"
#define MAP_NAME	"all-interfaces-ways"

static bool is_instance(const char *name)
{
	size_t len = strlen(name);

	return len > strlen(INSTANCE_SUFFIX) &&
	       streq(name + len - strlen(INSTANCE_SUFFIX), INSTANCE_SUFFIX);
}

int datapath_xdp_ways_each(const struct instance *inst, int (*f)(void *arg, int map), void *arg)
{
	char dir[256], path[PIN_PATH_MAX], *slash;
	struct error ignored = {0};
	struct dirent *de;
	DIR *d;
	int r = 0;

	if (!inst || datapath_xdp_dir(inst, NULL, false, dir, sizeof(dir), &ignored))
		return 0; /* no bpffs, no lists */
	slash = strrchr(dir, '/');
	if (!slash)
		return -EINVAL;
	*slash = '\0';
	d = opendir(dir);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (!r && (de = readdir(d))) {
		autoclose int map = -1;

		if (!is_instance(de->d_name) ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s/" MAP_NAME, dir, de->d_name) >=
			    sizeof(path))
			continue;
		map = bpf_obj_get(path);
		if (map >= 0)
			r = f(arg, map);
	}
	closedir(d);
	return r;
}

/* One after the other: the next key is asked for before the one before it goes. */
static int shut(void *arg, int map)
{
	uint64_t here = *(const uint64_t *)arg;
	struct ax_way_key key, next;
	bool any = bpf_map_get_next_key(map, NULL, &next) == 0;

	while (any) {
		key = next;
		any = bpf_map_get_next_key(map, &key, &next) == 0;
		if (key.netns_cookie == here && key.kind == AX_WAY_OUT)
			bpf_map_delete_elem(map, &key);
	}
	return 0;
}

void datapath_xdp_ways_shut(const struct instance *inst)
{
	autoclose int ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	uint64_t here;

	if (ns >= 0 && !netns_cookie(ns, &here))
		datapath_xdp_ways_each(inst, shut, &here);
}
