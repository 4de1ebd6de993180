// SPDX-License-Identifier: GPL-2.0-or-later
/* Pins are named after interfaces, which can be renamed: then the root program tells whose they
 * are. */
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"

/* Behind the name, and longer than any: "eth0.egress" is an interface's. */
#define EGRESS_END ":direction-egress"

bool datapath_xdp_dir_is_egress(const char *dir)
{
	size_t len = strlen(dir), end = strlen(EGRESS_END);

	return len > end && streq(dir + len - end, EGRESS_END);
}

void datapath_xdp_pin_name(const char *place, char ret[PIN_NAME_MAX])
{
	char name[PLACE_MAX];

	place_make(name, place, DIRECTION_INGRESS);
	for (char *c = name; *c; c++)
		if (*c == '.') /* which bpffs does not take; interfaces have no ':' */
			*c = ':';
	snprintf(ret, PIN_NAME_MAX, "%s%s", name, place_is_egress(place) ? EGRESS_END : "");
}

void datapath_xdp_place_of(const char *name, char ret[PLACE_MAX])
{
	bool egress = datapath_xdp_dir_is_egress(name);
	char ifname[256];

	snprintf(ifname, sizeof(ifname), "%.*s",
		 (int)(strlen(name) - (egress ? strlen(EGRESS_END) : 0)), name);
	for (char *c = ifname; *c; c++)
		if (*c == ':')
			*c = '.';
	place_make(ret, ifname, egress ? DIRECTION_EGRESS : DIRECTION_INGRESS);
}

unsigned datapath_xdp_holder(const char *dir, unsigned first)
{
	struct if_nameindex *all;
	unsigned ret = 0;
	uint32_t root;

	if (datapath_xdp_root_id(dir, &root))
		return 0;
	if (first && datapath_list_is_on(dir, first, root))
		return first;
	all = if_nameindex();
	for (size_t i = 0; all && all[i].if_index && !ret; i++)
		if (datapath_list_is_on(dir, all[i].if_index, root))
			ret = all[i].if_index;
	if (all)
		if_freenameindex(all);
	return ret;
}

static bool has_root_of(const struct datapath_xdp_programs *p, const char *dir)
{
	uint32_t root;

	if (datapath_xdp_root_id(dir, &root))
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].id == root)
			return true;
	return false;
}

void datapath_xdp_find(char *dir, size_t size, unsigned ifindex)
{
	char *slash = strrchr(dir, '/');
	char path[PIN_PATH_MAX];
	struct datapath_xdp_programs p;
	struct dirent *de;
	DIR *d = NULL;
	uint32_t root;

	if (!slash ||
	    (!datapath_xdp_root_id(dir, &root) && datapath_list_is_on(dir, ifindex, root)) ||
	    datapath_list_programs(dir, ifindex, 0, &p))
		return;
	if (p.n && !has_root_of(&p, dir)) {
		snprintf(path, sizeof(path), "%.*s", (int)(slash - dir), dir);
		d = opendir(path);
	}
	while (d && (de = readdir(d))) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - dir), dir, de->d_name);
		if (de->d_name[0] != '.' && strlen(path) < size && has_root_of(&p, path)) {
			strcpy(dir, path);
			break;
		}
	}
	if (d)
		closedir(d);
	datapath_xdp_programs_free(&p);
}

/* What is in the way goes where the other comes from: two interfaces may have swapped names. */
static int move(const char *from, const char *to)
{
	if (!rename(from, to) || !renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE))
		return 0;
	return -errno;
}

int datapath_xdp_follow(const struct instance *inst, const char *dir, unsigned ifindex,
			struct error *e)
{
	char other[256], name[IF_NAMESIZE], place[PLACE_MAX];
	unsigned holder;
	int r = 0;

	snprintf(other, sizeof(other), "%s", dir);
	datapath_xdp_find(other, sizeof(other), ifindex);
	if (!streq(other, dir)) {
		r = move(other, dir);
	} else {
		holder = datapath_xdp_holder(dir, ifindex);
		if (!holder || holder == ifindex || !if_indextoname(holder, name))
			return 0;
		place_make(place, name,
			   datapath_xdp_dir_is_egress(dir) ? DIRECTION_EGRESS : DIRECTION_INGRESS);
		r = datapath_xdp_dir(inst, place, false, other, sizeof(other), e);
		if (r)
			return r;
		r = move(dir, other);
	}
	return r ? error_set(e, r, "cannot rename the pins in %s as the interface was: %s", dir,
			     strerror(-r))
		 : 0;
}
