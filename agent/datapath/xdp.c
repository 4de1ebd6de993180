// SPDX-License-Identifier: GPL-2.0-or-later
/* Maps, pins and generations of an interface's XDP dataplane. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"
#include "filter.skel.h"
#include "machine/mounts.h"

static const char *const map_names[XDP_MAPS] = {
	[XDP_MAP_RULE_COUNTS] = "rule_counts",
	[XDP_MAP_REASON_COUNTS] = "reason_counts",
	[XDP_MAP_LIMITS] = "limits",
	[XDP_MAP_SOURCE_LIMITS] = "source_limits",
	[XDP_MAP_CAPTURES] = "captures",
	[XDP_MAP_TRIGGERS] = "triggers",
	[XDP_MAP_SLOTS] = "slots",
	[XDP_MAP_DEVICES] = "devices",
	[XDP_MAP_CPUS] = "cpus",
	[XDP_MAP_REDIRECTED] = "redirected",
	[XDP_MAP_IFINDEXES] = "ifindexes",
	[XDP_MAP_FLOWS4] = "flows4",
	[XDP_MAP_FLOWS6] = "flows6",
	[XDP_MAP_REAL_COUNTS] = "real_counts",
	[XDP_MAP_NAT] = "nat",
	[XDP_MAP_NAT_OPENING] = "nat_opening",
	[XDP_MAP_NAT_FRAGMENTS] = "nat_fragments",
	[XDP_MAP_NAT_SOURCES] = "nat_sources",
	[XDP_MAP_EXPOSED] = "exposed",
	[XDP_MAP_EXPOSED_PORTS] = "exposed_ports",
	[XDP_MAP_LEARNED] = "learned",
	[XDP_MAP_HELD] = "held",
	[XDP_MAP_LEARNED_FLOWS] = "learned_flows",
	[XDP_MAP_HELD_FLOWS] = "held_flows",
	[XDP_MAP_TIMED_SLOTS] = "timed_slots",
	[XDP_MAP_WAYS] = "ways",
	[XDP_MAP_TRACKED_TCP] = "tracked_tcp",
	[XDP_MAP_TRACKED_OTHER] = "tracked_other",
	[XDP_MAP_BEGUN] = "begun",
	[XDP_MAP_JUMPS] = "jumps",
	[XDP_MAP_VARIABLES] = "variables",
	[XDP_MAP_CARRIED] = "carried",
};

const char *datapath_xdp_map_name(enum xdp_map m)
{
	return map_names[m];
}

/* --- pins --- */

int datapath_xdp_dir(const struct instance *inst, const char *ifname, bool make, char *ret,
		     size_t size, struct error *e)
{
	char dir[256], name[PIN_NAME_MAX] = "";
	bool above;
	int r = mount_bpffs_lasting(inst, make, dir, sizeof(dir), &above, e);

	datapath_log_libbpf(); /* every way into these files leads through here */
	if (r)
		return r;
	if (above)
		setenv("LIBXDP_BPFFS", dir, 1);
	if (ifname)
		datapath_xdp_pin_name(ifname, name);
	if ((size_t)snprintf(ret, size, "%s/%s-xdp%s%s", dir, inst->name, ifname ? "/" : "",
			     name) >= size)
		return error_set(e, -ENAMETOOLONG, "the path of the bpf filesystem is too long");
	return 0;
}

void datapath_xdp_init(struct datapath_xdp *d)
{
	*d = (struct datapath_xdp){0};
	for (int m = 0; m < XDP_MAPS; m++)
		d->map[m] = -1;
}

void datapath_xdp_close(struct datapath_xdp *d)
{
	if (d->root)
		munmap(d->root, sizeof(*d->root));
	for (int m = 0; m < XDP_MAPS; m++)
		close_fd(&d->map[m]);
	datapath_xdp_init(d);
}

static int map_root(struct datapath_xdp *d)
{
	void *p = mmap(NULL, sizeof(*d->root), PROT_READ | PROT_WRITE, MAP_SHARED,
		       d->map[XDP_MAP_VARIABLES], 0);

	if (p == MAP_FAILED)
		return -errno;
	d->root = p;
	return 0;
}

static int open_maps(const char *dir, int first, struct datapath_xdp *d)
{
	char path[PIN_PATH_MAX];
	int r = 0;

	datapath_xdp_init(d);
	snprintf(d->dir, sizeof(d->dir), "%s", dir);
	d->egress = datapath_xdp_dir_is_egress(dir);
	for (int m = first; m < XDP_MAPS && !r; m++) {
		snprintf(path, sizeof(path), "%s/%s", dir, map_names[m]);
		d->map[m] = bpf_obj_get(path);
		if (d->map[m] < 0)
			r = -errno;
	}
	if (!r)
		r = map_root(d);
	if (r)
		datapath_xdp_close(d);
	return r;
}

int datapath_xdp_open(const char *dir, struct datapath_xdp *d)
{
	return open_maps(dir, 0, d);
}

int datapath_xdp_open_root(const char *dir, struct datapath_xdp *d)
{
	return open_maps(dir, XDP_MAP_JUMPS, d);
}

int datapath_xdp_unpin(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((de = readdir(d)))
		if (de->d_name[0] != '.')
			unlinkat(dirfd(d), de->d_name, 0);
	closedir(d);
	return rmdir(dir) < 0 ? -errno : 0;
}

/* The instance's own maps and their directory, once no interface is left. */
static void unpin_shared(const char *dir)
{
	DIR *d = opendir(dir);
	bool left = false;
	struct dirent *de;

	if (!d)
		return;
	while (!left && (de = readdir(d)))
		left = de->d_name[0] != '.' && de->d_type == DT_DIR;
	closedir(d);
	if (!left)
		datapath_xdp_unpin(dir);
}

int datapath_xdp_remove(const char *dir)
{
	const char *slash = strrchr(dir, '/');
	char parent[PIN_PATH_MAX];
	int r = datapath_xdp_unpin(dir);

	if (r || !slash)
		return r;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - dir), dir);
	unpin_shared(parent);
	return 0;
}

int datapath_xdp_pin(struct datapath_xdp *d, const char *dir, struct error *e)
{
	char staging[300], path[PIN_PATH_MAX];
	int r;

	/* longer than any interface's name */
	snprintf(staging, sizeof(staging), "%s:while-it-is-made", dir);
	datapath_xdp_unpin(staging); /* of one that was killed: we hold the lock */
	r = mkdir_parents(staging, 0700);
	for (int m = 0; m < XDP_MAPS && !r; m++) {
		snprintf(path, sizeof(path), "%s/%s", staging, map_names[m]);
		if (bpf_obj_pin(d->map[m], path) < 0)
			r = -errno;
	}
	if (!r && rename(staging, dir) < 0)
		r = -errno;
	if (r) {
		datapath_xdp_unpin(staging);
		return error_set(e, r, "cannot pin the XDP dataplane as %s: %s", dir, strerror(-r));
	}
	snprintf(d->dir, sizeof(d->dir), "%s", dir);
	return 0;
}

int datapath_xdp_repin(const struct datapath_xdp *d, enum xdp_map m)
{
	char path[PIN_PATH_MAX], new[PIN_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", d->dir, map_names[m]);
	snprintf(new, sizeof(new), "%s/%s-new", d->dir, map_names[m]);
	unlink(new); /* of one that was killed: we hold the lock */
	if (bpf_obj_pin(d->map[m], new) < 0 || rename(new, path) < 0)
		return -errno;
	return 0;
}

/* --- maps --- */

/* The maps as the skeleton has them, in the order of enum xdp_map; those of the root are not its.
 */
static void skeleton_maps(struct filter *skel, struct bpf_map *ret[XDP_MAPS])
{
	struct bpf_map *const maps[XDP_MAPS] = {
		[XDP_MAP_RULE_COUNTS] = skel->maps.rule_counts,
		[XDP_MAP_REASON_COUNTS] = skel->maps.reason_counts,
		[XDP_MAP_LIMITS] = skel->maps.limits,
		[XDP_MAP_SOURCE_LIMITS] = skel->maps.source_limits,
		[XDP_MAP_CAPTURES] = skel->maps.captures,
		[XDP_MAP_TRIGGERS] = skel->maps.triggers,
		[XDP_MAP_SLOTS] = skel->maps.slots,
		[XDP_MAP_DEVICES] = skel->maps.devices,
		[XDP_MAP_CPUS] = skel->maps.cpus,
		[XDP_MAP_REDIRECTED] = skel->maps.redirected,
		[XDP_MAP_IFINDEXES] = skel->maps.ifindexes,
		[XDP_MAP_FLOWS4] = skel->maps.flows4,
		[XDP_MAP_FLOWS6] = skel->maps.flows6,
		[XDP_MAP_REAL_COUNTS] = skel->maps.real_counts,
		[XDP_MAP_NAT] = skel->maps.nat,
		[XDP_MAP_NAT_OPENING] = skel->maps.nat_opening,
		[XDP_MAP_NAT_FRAGMENTS] = skel->maps.nat_fragments,
		[XDP_MAP_NAT_SOURCES] = skel->maps.nat_sources,
		[XDP_MAP_EXPOSED] = skel->maps.exposed,
		[XDP_MAP_EXPOSED_PORTS] = skel->maps.exposed_ports,
		[XDP_MAP_LEARNED] = skel->maps.learned,
		[XDP_MAP_HELD] = skel->maps.held,
		[XDP_MAP_LEARNED_FLOWS] = skel->maps.learned_flows,
		[XDP_MAP_HELD_FLOWS] = skel->maps.held_flows,
		[XDP_MAP_TIMED_SLOTS] = skel->maps.timed_slots,
		[XDP_MAP_WAYS] = skel->maps.ways,
		[XDP_MAP_TRACKED_TCP] = skel->maps.tracked_tcp,
		[XDP_MAP_TRACKED_OTHER] = skel->maps.tracked_other,
		[XDP_MAP_BEGUN] = skel->maps.begun,
	};

	memcpy(ret, maps, sizeof(maps));
}

int datapath_xdp_new_jumps(struct datapath_xdp *d)
{
	close_fd(&d->map[XDP_MAP_JUMPS]);
	d->map[XDP_MAP_JUMPS] =
		bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "jumps", 4, 4, AX_JUMP_ENTRIES, NULL);
	return d->map[XDP_MAP_JUMPS] < 0 ? -errno : 0;
}

/* Those that no program of a generation uses. */
static int create_other_maps(struct datapath_xdp *d, uint32_t counters)
{
	LIBBPF_OPTS(bpf_map_create_opts, shared, .map_flags = BPF_F_MMAPABLE);
	int r = datapath_xdp_new_jumps(d);

	if (r)
		return r;
	d->map[XDP_MAP_VARIABLES] = bpf_map_create(BPF_MAP_TYPE_ARRAY, "variables", 4,
						   sizeof(struct ax_root), 1, &shared);
	d->map[XDP_MAP_CARRIED] = bpf_map_create(BPF_MAP_TYPE_ARRAY, "carried", 4,
						 sizeof(struct ax_rule_count), counters, NULL);
	if (d->map[XDP_MAP_VARIABLES] < 0 || d->map[XDP_MAP_CARRIED] < 0)
		return -errno;
	return map_root(d);
}

/* Creates the maps that stay, by a load without programs. */
static int create_maps(struct filter *skel, const uint32_t sizes[XDP_MAPS], struct datapath_xdp *d)
{
	struct bpf_map *maps[XDP_MAPS];
	struct bpf_program *p;
	int r, cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return cpus;
	skeleton_maps(skel, maps);
	for (int m = 0; m < XDP_MAPS; m++)
		if (maps[m] && sizes[m])
			bpf_map__set_max_entries(maps[m], sizes[m]);
	bpf_map__set_max_entries(skel->maps.cpus, (uint32_t)cpus);
	bpf_object__for_each_program (p, skel->obj)
		bpf_program__set_autoload(p, false);
	r = filter__load(skel);
	if (r)
		return r;
	for (int m = 0; m < XDP_MAPS; m++) {
		if (!maps[m])
			continue;
		d->map[m] = fcntl(bpf_map__fd(maps[m]), F_DUPFD_CLOEXEC, 3);
		if (d->map[m] < 0)
			return -errno;
	}
	return create_other_maps(d, sizes[XDP_MAP_CARRIED]);
}

/* The instance's maps, where the list needs them. */
static int take_shared(const struct instance *inst, struct filter *skel,
		       const uint32_t sizes[XDP_MAPS], struct error *e)
{
	struct bpf_map *maps[XDP_MAPS];

	skeleton_maps(skel, maps);
	for (int m = 0; m < XDP_MAPS; m++) {
		autoclose int fd = -1;
		int r;

		if (!datapath_xdp_needs_shared((enum xdp_map)m, sizes[m]))
			continue;
		fd = datapath_xdp_shared(inst, (enum xdp_map)m, e);
		if (fd < 0)
			return fd;
		r = bpf_map__reuse_fd(maps[m], fd);
		if (r)
			return error_set(e, r, "cannot take over map %s: %s", map_names[m],
					 strerror(-r));
	}
	return 0;
}

int datapath_xdp_create(const struct instance *inst, const uint32_t sizes[XDP_MAPS],
			struct datapath_xdp *d, struct error *e)
{
	struct filter *skel;
	int r;

	skel = filter__open();
	datapath_xdp_init(d);
	if (!skel)
		return error_set(e, -errno, "cannot open the XDP programs: %s", strerror(errno));
	r = take_shared(inst, skel, sizes, e);
	if (!r) {
		r = create_maps(skel, sizes, d);
		if (r)
			error_set(e, r, "the kernel refuses the XDP dataplane's maps: %s%s",
				  strerror(-r), r == -EPERM ? "; run as root" : "");
	}
	filter__destroy(skel);
	if (r)
		datapath_xdp_close(d);
	return r;
}

/* --- generations --- */

void generation_close(struct generation *g)
{
	if (g->data)
		munmap((void *)(uintptr_t)g->data, g->size);
	close_fd(&g->prog);
	close_fd(&g->arena);
	if (g->tell > 0)
		close_fd(&g->tell);
	*g = (struct generation){.prog = -1, .arena = -1};
}

static size_t page_round(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* `layout`: what is to stand at its start */
static int fill_arena(int fd, const void *data, size_t size, const struct ax_layout *layout)
{
	void *p = mmap(NULL, page_round(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	memcpy(p, data, size);
	memcpy(p, layout, sizeof(*layout));
	munmap(p, page_round(size));
	return 0;
}

/* Mapping the arena of a large list takes its time, so this has but its layout mapped. */
static int read_layout(struct generation *g, size_t size)
{
	size_t len = page_round(sizeof(g->layout));
	void *p;

	g->size = page_round(size);
	if (g->size < len)
		return -EPROTO;
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, g->arena, 0);
	if (p == MAP_FAILED)
		return -errno;
	memcpy(&g->layout, p, sizeof(g->layout));
	munmap(p, len);
	if (g->layout.magic != AX_ARENA_MAGIC || g->layout.size > size ||
	    g->layout.state > g->layout.size ||
	    g->layout.state_size > g->layout.size - g->layout.state ||
	    g->layout.size < sizeof(struct ax_layout) ||
	    (g->layout.journal && (g->layout.journal > g->layout.size ||
				   g->layout.size - g->layout.journal < sizeof(struct ax_journal))))
		return -EPROTO; /* another version's */
	return 0;
}

static int map_arena(struct generation *g, size_t size)
{
	int r = read_layout(g, size);
	void *p;

	if (r)
		return r;
	p = mmap(NULL, g->size, PROT_READ, MAP_SHARED, g->arena, 0);
	if (p == MAP_FAILED)
		return -errno;
	g->data = p;
	return 0;
}

static int take_maps(struct filter *skel, const struct datapath_xdp *d)
{
	struct bpf_map *maps[XDP_MAPS];
	int r = 0;

	skeleton_maps(skel, maps);
	for (int m = 0; m < XDP_MAPS && !r; m++)
		if (maps[m])
			r = bpf_map__reuse_fd(maps[m], d->map[m]);
	return r ? r : bpf_map__reuse_fd(skel->maps.stages, d->map[XDP_MAP_JUMPS]);
}

/* The flag is set here and not by section "xdp.frags", because libbpf before 1.2 would insist on
 * what the section says. */
void load_like_root(struct bpf_object *obj, bool has_frags)
{
	struct bpf_program *p;

	bpf_object__for_each_program (p, obj) {
		if (has_frags)
			bpf_program__set_flags(p, BPF_F_XDP_HAS_FRAGS);
		else
			bpf_program__set_expected_attach_type(p, 0);
	}
}

/* What no rule of the list leads to is not loaded. */
static void leave_out(struct filter *skel, const struct ax_layout *layout)
{
	bool answers = layout->nat || layout->answers;

	if (layout->policy[AX_REASON_EXPOSED] == AX_POLICY_RULES)
		bpf_map__set_max_entries(skel->maps.exposed_fragments, 1);
	if (!layout->field[AX_FIELD_STATE].used)
		bpf_map__set_max_entries(skel->maps.state_fragments, 1);
	if (!layout->balancers_n)
		bpf_program__set_autoload(skel->progs.ax_balance, false);
	if (!answers)
		bpf_program__set_autoload(skel->progs.ax_reverse, false);
	if (!layout->routes) {
		bpf_program__set_autoload(skel->progs.ax_route, false);
		bpf_map__set_max_entries(skel->maps.fast_routes, 1);
	}
	if (!layout->challenges)
		bpf_program__set_autoload(skel->progs.ax_challenge, false);
	if (layout->balancers_n)
		datapath_xdp_fast_room(skel);
	else if (!answers)
		bpf_map__set_max_entries(skel->maps.hops, 1);
}

static uint32_t stage_entry(uint32_t set, uint32_t stage)
{
	return AX_JUMPS + set * AX_STAGES + stage;
}

static int put_stages(struct filter *skel, const struct ax_layout *layout)
{
	const struct bpf_program *stages[AX_STAGES] = {
		[AX_STAGE_BALANCE] = skel->progs.ax_balance,
		[AX_STAGE_REVERSE] = skel->progs.ax_reverse,
		[AX_STAGE_ROUTE] = skel->progs.ax_route,
		[AX_STAGE_CHALLENGE] = skel->progs.ax_challenge,
	};

	for (uint32_t i = 0; i < AX_STAGES; i++) {
		uint32_t key = stage_entry(layout->generation % AX_STAGE_SETS, i);
		int fd = bpf_program__fd(stages[i]);

		if (bpf_program__autoload(stages[i]) &&
		    bpf_map_update_elem(bpf_map__fd(skel->maps.stages), &key, &fd, 0) < 0)
			return -errno;
	}
	return 0;
}

int datapath_xdp_filter(const struct datapath_xdp *d, const struct ax_layout *layout,
			struct filter **ret)
{
	struct filter *skel = filter__open();
	int r;

	if (!skel)
		return -errno;
	memcpy((void *)(uintptr_t)&skel->rodata->layout, layout, sizeof(*layout));
	leave_out(skel, layout);
	datapath_xdp_found_room(layout, &skel->rodata->found_places, skel->maps.founds);
	load_like_root(skel->obj, layout->has_frags);
	r = take_maps(skel, d);
	if (r)
		filter__destroy(skel);
	else
		*ret = skel;
	return r;
}

int generation_take(struct generation *g, int prog, int arena, const void *data, size_t size,
		    const struct ax_layout *layout)
{
	int r = fill_arena(arena, data, size, layout);

	if (r)
		return r;
	g->prog = fcntl(prog, F_DUPFD_CLOEXEC, 3);
	g->arena = fcntl(arena, F_DUPFD_CLOEXEC, 3);
	return g->prog < 0 || g->arena < 0 ? -errno : map_arena(g, size);
}

static int load_ingress(const struct datapath_xdp *d, const void *arena, size_t size,
			const struct ax_layout *layout, struct generation *g)
{
	struct filter *skel;
	int r = datapath_xdp_filter(d, layout, &skel);

	if (r)
		return r;
	bpf_map__set_autocreate(skel->maps.told, false);
	r = bpf_map__set_value_size(skel->maps.arena, (uint32_t)size);
	if (!r)
		r = filter__load(skel);
	if (!r)
		r = put_stages(skel, layout);
	if (!r)
		r = generation_take(g, bpf_program__fd(skel->progs.ax_filter),
				    bpf_map__fd(skel->maps.arena), arena, size, layout);
	filter__destroy(skel);
	if (r)
		generation_close(g);
	return r;
}

static int load(const struct datapath_xdp *d, const void *arena, size_t size,
		const struct ax_layout *layout, struct generation *g)
{
	return d->egress ? datapath_egress_load(d, arena, size, layout, g)
			 : load_ingress(d, arena, size, layout, g);
}

static int refused(int r, struct error *e)
{
	return error_set(e, r, "the kernel refuses the compiled rule list (%s)%s", strerror(-r),
			 r == -ENOMEM ? ": there is not enough memory" : "");
}

int generation_load(const struct datapath_xdp *d, const void *arena, size_t size,
		    const struct ax_layout *layout, struct generation *g, struct error *e)
{
	struct ax_layout l = *layout;
	int r = -ENOENT;

	*g = (struct generation){.prog = -1, .arena = -1};
	l.trackable = datapath_xdp_has_conntrack();
	l.conntrack = l.field[AX_FIELD_STATE].used && l.trackable && !l.flows;
	if (l.conntrack)
		r = load(d, arena, size, &l, g);
	if (r) {
		l.conntrack = 0;
		r = load(d, arena, size, &l, g);
	}
	return r ? refused(r, e) : 0;
}

int map_of_program(int prog, const char *name, struct bpf_map_info *mi)
{
	uint32_t ids[64];
	struct bpf_prog_info pi = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	uint32_t len = sizeof(pi);

	if (bpf_obj_get_info_by_fd(prog, &pi, &len) < 0)
		return -errno;
	for (uint32_t i = 0; i < pi.nr_map_ids && i < ARRAY_SIZE(ids); i++) {
		autoclose int fd = bpf_map_get_fd_by_id(ids[i]);

		len = sizeof(*mi);
		memset(mi, 0, sizeof(*mi));
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, mi, &len) && streq(mi->name, name))
			return take_fd(&fd);
	}
	return -ENOENT;
}

int generation_map(const struct generation *g, enum xdp_map m)
{
	struct bpf_map_info mi;

	return map_of_program(g->prog, map_names[m], &mi);
}

static int get(const struct datapath_xdp *d, enum ax_jump jump, struct generation *g,
	       int (*read)(struct generation *g, size_t size))
{
	uint32_t key = jump, id;
	struct bpf_map_info mi;
	int r = 0;

	*g = (struct generation){.prog = -1, .arena = -1};
	if (bpf_map_lookup_elem(d->map[XDP_MAP_JUMPS], &key, &id) < 0)
		return -errno;
	g->prog = bpf_prog_get_fd_by_id(id);
	if (g->prog < 0)
		return -errno;
	g->arena = map_of_program(g->prog, "arena", &mi);
	if (g->arena < 0)
		r = g->arena;
	if (!r)
		r = read(g, mi.value_size);
	if (!r && d->egress)
		r = datapath_egress_find_tell(d, g);
	if (r)
		generation_close(g);
	return r;
}

int generation_get(const struct datapath_xdp *d, enum ax_jump jump, struct generation *g)
{
	return get(d, jump, g, map_arena);
}

int generation_get_layout(const struct datapath_xdp *d, enum ax_jump jump, struct generation *g)
{
	return get(d, jump, g, read_layout);
}

/* Lets go of the stages of generations that are over, and with them of their arenas. */
static void drop_stages(const struct datapath_xdp *d)
{
	bool used[AX_STAGE_SETS] = {false};

	for (int jump = 0; jump < AX_JUMPS; jump++) {
		struct generation g;
		int r = generation_get(d, (enum ax_jump)jump, &g);

		if (!r)
			used[g.layout.generation % AX_STAGE_SETS] = true;
		generation_close(&g);
		if (r && r != -ENOENT)
			return; /* the next swap will do it */
	}
	for (uint32_t set = 0; set < AX_STAGE_SETS; set++) {
		for (uint32_t i = 0; i < AX_STAGES && !used[set]; i++) {
			uint32_t key = stage_entry(set, i);

			bpf_map_delete_elem(d->map[XDP_MAP_JUMPS], &key);
		}
	}
}

/* Waits for an RCU grace period: then no packet is on its way through programs that were replaced
 * before. Where CPUs run without ticks (nohz_full) membarrier(2) refuses to; a change of a map of
 * maps waits as well. */
static void wait_for_packets(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, o);
	autoclose int inner = -1, outer = -1;
	uint32_t zero = 0;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, 4, 1, NULL);
	o.inner_map_fd = (uint32_t)inner;
	outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", 4, 4, 1, &o);
	bpf_map_update_elem(outer, &zero, &inner, 0);
}

int generation_set(const struct datapath_xdp *d, enum ax_jump jump, const struct generation *g)
{
	uint32_t key = jump;

	if (jump == AX_JUMP_CURRENT) /* a tap has the former one */
		__atomic_store_n(&d->root->told, 0, __ATOMIC_RELEASE);
	if (!g) {
		if (bpf_map_delete_elem(d->map[XDP_MAP_JUMPS], &key) < 0 && errno != ENOENT)
			return -errno;
	} else if (bpf_map_update_elem(d->map[XDP_MAP_JUMPS], &key, &g->prog, 0) < 0) {
		return -errno;
	}
	wait_for_packets();
	/* with PREVIOUS set, another one is on its way to CURRENT */
	if (jump == AX_JUMP_CURRENT || !g)
		drop_stages(d);
	return 0;
}
