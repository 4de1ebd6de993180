/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The copy of the agent's exposed ports that XDP lists have (`exposed: pass`): they are there
 * without an agent, and it without them. The agent writes its own maps first and then the copy, if
 * there is one by then; who makes the copy pins it first and then reads the agent's maps. So
 * whatever order the two have, nothing is missing in the copy, and nothing stays in it.
 */
#include <bpf/bpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "machine/mounts.h"

/* --- single changes, by the agent --- */

static int open_copy(const struct datapath *dp, const char *name)
{
	char dir[256], path[PIN_PATH_MAX];
	struct error ignored = {0};

	if (datapath_xdp_dir(dp->inst, NULL, false, dir, sizeof(dir), &ignored))
		return -1;
	snprintf(path, sizeof(path), "%s/all-interfaces-%s", dir, name);
	return bpf_obj_get(path);
}

int xdp_exposed_put(const struct datapath *dp, const struct ax_exposed_key *key)
{
	autoclose int copy = open_copy(dp, "exposed");
	uint32_t one = 1;

	return copy >= 0 && bpf_map_update_elem(copy, key, &one, BPF_ANY) ? -errno : 0;
}

void xdp_exposed_drop(const struct datapath *dp, const struct ax_exposed_key *key)
{
	autoclose int copy = open_copy(dp, "exposed");

	if (copy >= 0)
		bpf_map_delete_elem(copy, key);
}

int xdp_exposed_ports(const struct datapath *dp, uint32_t word, uint64_t bits)
{
	autoclose int copy = open_copy(dp, "exposed_ports");

	return copy >= 0 && bpf_map_update_elem(copy, &word, &bits, BPF_ANY) ? -errno : 0;
}

/* --- all of it --- */

struct source {
	int exposed, ports, addrs; /* the agent's, -1: there is none */
};

static bool has(const struct source *s, const struct ax_exposed_key *key)
{
	struct ax_exposed x;
	uint32_t one;

	if (key->at.port_be)
		return s->exposed >= 0 && !bpf_map_lookup_elem(s->exposed, key, &x);
	return s->addrs >= 0 && !bpf_map_lookup_elem(s->addrs, &key->at.addr, &one);
}

/* Unless it has gone meanwhile: then who took it away may not have found it in the copy yet. */
static int add(const struct source *s, int copy, const struct ax_exposed_key *key)
{
	uint32_t one = 1;

	if (bpf_map_update_elem(copy, key, &one, BPF_ANY))
		return -errno;
	if (!has(s, key))
		bpf_map_delete_elem(copy, key);
	return 0;
}

static int add_exposed(const struct source *s, int copy)
{
	struct ax_exposed_key key;
	const void *last = NULL;
	int r = 0;

	while (!r && s->exposed >= 0 && !bpf_map_get_next_key(s->exposed, last, &key)) {
		r = add(s, copy, &key);
		last = &key;
	}
	return r;
}

static int add_addrs(const struct source *s, int copy)
{
	const void *last = NULL;
	struct ax_addr addr;
	int r = 0;

	while (!r && s->addrs >= 0 && !bpf_map_get_next_key(s->addrs, last, &addr)) {
		const struct ax_exposed_key key = {.at.addr = addr};

		r = add(s, copy, &key);
		last = &addr;
	}
	return r;
}

static void drop_others(const struct source *s, int copy)
{
	struct ax_exposed_key key, next;
	bool more = !bpf_map_get_next_key(copy, NULL, &key);

	while (more) {
		more = !bpf_map_get_next_key(copy, &key, &next);
		if (!has(s, &key))
			bpf_map_delete_elem(copy, &key);
		key = next;
	}
}

static int copy_ports(const struct source *s, int copy)
{
	for (uint32_t word = 0; word < AX_EXPOSED_WORDS; word++) {
		uint64_t bits, now = 0;

		if (s->ports >= 0)
			bpf_map_lookup_elem(s->ports, &word, &now);
		do {
			bits = now;
			if (bpf_map_update_elem(copy, &word, &bits, BPF_ANY))
				return -errno;
			if (s->ports >= 0)
				bpf_map_lookup_elem(s->ports, &word, &now);
		} while (now != bits);
	}
	return 0;
}

static int open_source(const char *dir, const char *name, uint32_t value_size)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	char path[PIN_PATH_MAX];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%s/map_%s", dir, name);
	fd = bpf_obj_get(path);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) || info.value_size != value_size)
		return -1; /* no agent has been here, or one of another version of ax */
	return take_fd(&fd);
}

static int copy_all(const struct source *s, int exposed, int ports)
{
	int r = add_exposed(s, exposed);

	r = r ? r : add_addrs(s, exposed);
	if (!r)
		drop_others(s, exposed);
	return r ? r : copy_ports(s, ports);
}

int xdp_exposed_copy(const struct datapath *dp)
{
	autoclose int exposed = open_copy(dp, "exposed"), ports = open_copy(dp, "exposed_ports");
	const struct source s = {.exposed = dp->map[MAP_EXPOSED],
				 .ports = dp->map[MAP_EXPOSED_PORTS],
				 .addrs = dp->map[MAP_LOCAL_ADDRS]};

	return exposed < 0 || ports < 0 ? 0 : copy_all(&s, exposed, ports);
}

int datapath_xdp_exposed(const struct instance *inst, const struct datapath_xdp *d)
{
	struct source s = {-1, -1, -1};
	struct error ignored = {0};
	char mount[200], dir[256];
	int r;

	if (!mount_bpffs(inst, false, mount, sizeof(mount), &ignored)) {
		snprintf(dir, sizeof(dir), "%s/%s", mount, inst->name);
		s.exposed = open_source(dir, "exposed", sizeof(struct ax_exposed));
		s.ports = open_source(dir, "exposed_ports", sizeof(uint64_t));
		s.addrs = open_source(dir, "local_addrs", sizeof(uint32_t));
	}
	r = copy_all(&s, d->map[XDP_MAP_EXPOSED], d->map[XDP_MAP_EXPOSED_PORTS]);
	close_fd(&s.exposed);
	close_fd(&s.ports);
	close_fd(&s.addrs);
	return r;
}
