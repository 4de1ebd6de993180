// SPDX-License-Identifier: GPL-2.0-or-later
/* The lock of an interface, and opening its dataplane to change it. */
#include <fcntl.h>
#include <sys/file.h>

#include "net/netlink.h"
#include "iface/priv.h"

/* --- the lock --- */

int xdp_lock(const struct instance *inst, const char *ifname, int *fd, struct error *e)
{
	char path[128];
	int r = mkdir_parents(inst->run_dir, 0755);

	snprintf(path, sizeof(path), "%s/xdp-%.31s.lock", inst->run_dir, ifname);
	*fd = r ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0 || flock(*fd, LOCK_EX) < 0)
		return error_set(e, -errno, "cannot lock %s: %s%s", path, strerror(errno),
				 errno == EACCES ? "; run as root" : "");
	return 0;
}

int xdp_no_interface(const char *ifname, struct error *e)
{
	char name[PLACE_MAX];

	place_make(name, ifname, DIRECTION_INGRESS);
	return error_set(e, -ENODEV, "there is no interface '%.20s'", name);
}

int xdp_index(const char *ifname, unsigned *ifindex, struct error *e)
{
	*ifindex = place_ifindex(ifname);
	return *ifindex ? 0 : xdp_no_interface(ifname, e);
}

/* --- what is there --- */

enum ax_jump xdp_jump(const struct datapath_xdp *d)
{
	uint64_t deadline = __atomic_load_n(&d->root->deadline_ns, __ATOMIC_ACQUIRE);

	return deadline && time_mono_ns() >= deadline ? AX_JUMP_PREVIOUS : AX_JUMP_CURRENT;
}

int xdp_settle(struct datapath_xdp *d)
{
	struct generation g;
	int r;

	if (xdp_jump(d) == AX_JUMP_CURRENT)
		return 0;
	r = generation_get_layout(d, AX_JUMP_PREVIOUS, &g);
	if (r)
		return r;
	r = generation_set(d, AX_JUMP_CURRENT, &g);
	generation_close(&g);
	if (r)
		return r;
	__atomic_store_n(&d->root->deadline_ns, 0, __ATOMIC_RELEASE);
	return generation_set(d, AX_JUMP_PREVIOUS, NULL);
}

/* Whether the pinned root program is on this interface. */
static bool is_attached(const char *dir, unsigned ifindex)
{
	uint32_t id;

	return !datapath_xdp_root_id(dir, &id) && datapath_list_is_on(dir, ifindex, id);
}

int xdp_remove_all(const char *dir, unsigned ifindex, struct error *e)
{
	int r = datapath_xdp_detach(dir, ifindex, e);

	if (r && r != -ENOENT)
		return r;
	return datapath_xdp_remove(dir);
}

uint64_t xdp_own_netns_cookie(void)
{
	autoclose int ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	uint64_t cookie = 0;

	return ns < 0 || netns_cookie(ns, &cookie) ? 0 : cookie;
}

/* Whether the pins are those of an interface of the same name in another network namespace: the
 * filter of that one would be gone without them. */
static bool is_elsewhere(const struct datapath_xdp *d)
{
	struct generation g;
	uint64_t here = xdp_own_netns_cookie();
	bool ret;

	if (!here || generation_get_layout(d, AX_JUMP_CURRENT, &g))
		return false;
	ret = g.layout.netns_cookie && g.layout.netns_cookie != here;
	generation_close(&g);
	return ret;
}

static int elsewhere(const char *dir, struct error *e)
{
	return error_set(
		e, -EEXIST,
		"an interface of this name in another network namespace has its rules in %s: give "
		"one of them another --instance, or give --replace if that namespace is gone",
		dir);
}

int xdp_open_locked(const struct instance *inst, const char *dir, unsigned ifindex,
		    struct datapath_xdp *d, struct error *e)
{
	int r = datapath_xdp_follow(inst, dir, ifindex, e);

	if (r)
		return r;
	r = datapath_xdp_open(dir, d);
	if (r && r != -ENOENT)
		return error_set(e, r, "cannot open %s: %s", dir, strerror(-r));
	if (!r)
		datapath_xdp_adopt(d, ifindex);
	if (!r && is_attached(dir, ifindex)) {
		r = xdp_settle(d);
		if (!r) {
			xdp_mend(d); /* what is another version's can still be unloaded */
			return 0;
		}
		datapath_xdp_close(d);
		if (r != -ENOENT)
			return error_set(e, r, "cannot go back to the former rules: %s",
					 strerror(-r));
		return xdp_remove_all(dir, ifindex, e) ? e->code : -ENOENT;
	}
	if (!r && is_elsewhere(d))
		r = elsewhere(dir, e);
	datapath_xdp_close(d);
	if (r == -EEXIST)
		return r;
	datapath_xdp_unpin(dir);
	return -ENOENT;
}

int xdp_not_loaded(const struct instance *inst, const char *ifname, struct error *e)
{
	struct error why = {0};
	char dir[256];

	if (datapath_xdp_dir(inst, NULL, false, dir, sizeof(dir), &why))
		return error_set(e, -ENOENT, "no rules of ax are loaded on %s: %s", ifname,
				 why.text);
	return error_set(e, -ENOENT,
			 "no rules of ax are loaded on %s (none are in %s): see ax xdp load",
			 ifname, dir);
}

int xdp_open_for(const struct instance *inst, const char *ifname, int *lock, unsigned *ifindex,
		 char *dir, size_t size, struct datapath_xdp *d, struct error *e)
{
	int r = xdp_lock(inst, ifname, lock, e);

	if (!r)
		r = datapath_xdp_dir(inst, ifname, true, dir, size, e);
	if (!r)
		r = xdp_index(ifname, ifindex, e);
	if (r)
		return r;
	r = xdp_open_locked(inst, dir, *ifindex, d, e);
	if (r == -EEXIST) /* those of another network namespace are not meant */
		*e = (struct error){0};
	return r == -ENOENT || r == -EEXIST ? xdp_not_loaded(inst, ifname, e) : r;
}
