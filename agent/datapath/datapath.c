/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loading the dataplane, attaching and pinning it, replacing its programs. The only file that
 * includes its skeleton.
 *
 * <bpffs>/<instance>/map_<name> and link_<program> are the pins. The first agent makes them in
 * <instance>-new (bpffs takes no dots) and renames that into place; later ones reuse the maps and
 * update the links.
 */
#include <fcntl.h>
#include <dirent.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "dataplane.skel.h"
#include "base/log.h"
#include "machine/mounts.h"

#define STAGING_MAX 300 /* the pin directory and ".new" */

/* What each program is for; the order is the one of reports. Whatever judges is required: apps
 * would go unjudged, and none of them could tell. */
static const struct program_info {
	const char *name;
	/* AT_NEED: to the cgroup as well, while somebody needs it */
	enum { AT_CGROUP, AT_NETNS, AT_NEED, AT_ITER, AT_FABRIC, AT_SOCKET } at;
	bool required;
	const char *cost;
	const char *needs;
} programs[] = {
	{"ax_connect4", AT_CGROUP, true, "IPv4 connections are not switched", "Linux 5.18"},
	{"ax_connect6", AT_CGROUP, true, "IPv6 connections are not switched", "Linux 5.18"},
	{"ax_bind4", AT_CGROUP, true, "host-mode apps collide on ports", "Linux 5.12"},
	{"ax_bind6", AT_CGROUP, true, "host-mode apps collide on IPv6 ports", "Linux 5.12, BTF"},
	{"ax_sock_ops", AT_CGROUP, true, "nobody knows who listens", "Linux 5.15"},
	{"ax_sendmsg4", AT_CGROUP, true, "unconnected UDP is not switched", "Linux 5.18"},
	{"ax_sendmsg6", AT_CGROUP, true, "unconnected UDP over IPv6 is not switched", "Linux 5.18"},
	{"ax_recvmsg4", AT_CGROUP, false, "UDP answers show the backend's address", "Linux 5.2"},
	{"ax_recvmsg6", AT_CGROUP, false, "UDP answers show the backend's address", "Linux 5.2"},
	{"ax_getpeername4", AT_CGROUP, false, "getpeername() shows the backend", "Linux 5.8"},
	{"ax_getpeername6", AT_CGROUP, false, "getpeername() shows the backend", "Linux 5.8"},
	{"ax_getsockname4", AT_CGROUP, false, "getsockname() shows the own address", "Linux 5.8"},
	{"ax_getsockname6", AT_CGROUP, false, "getsockname() shows the own address", "Linux 5.8"},
	{"ax_sock_create", AT_CGROUP, true,
	 "apps in host mode reach each other by UDP-Lite, DCCP and SCTP whatever the policy is",
	 "Linux 5.18"},
	{"ax_post_bind4", AT_CGROUP, false, "UDP servers are not listed", "Linux 5.2"},
	{"ax_post_bind6", AT_CGROUP, false, "UDP servers are not listed", "Linux 5.2"},
	{"ax_sock_release", AT_CGROUP, false, "UDP servers that ended stay listed", "Linux 5.9"},
	{"ax_sk_lookup", AT_NETNS, true,
	 "services are closed to programs outside ax; the "
	 "receiving side checks no policy in host mode",
	 "Linux 5.17"},
	{"ax_hold_syn", AT_NEED, false, "connects do not wait for servers", "Linux 5.2"},
	{"ax_hold_refusal", AT_NEED, false,
	 "connects that wait are refused at the moment at which a server ends", "Linux 5.2"},
	{"ax_straight", AT_NEED, true,
	 "apps in host mode get round --egress and rules about the outside by source routes",
	 "Linux 5.2"},
	{"ax_held_syns", AT_ITER, false,
	 "connects that wait notice a server up to a second late, or later before Linux 6.15",
	 "Linux 5.10, BTF"},
	{"ax_conns", AT_ITER, false, "'ax get conns' is empty", "Linux 5.10, BTF"},
	{"ax_udp_conns", AT_ITER, false, "UDP sockets stay with backends that are removed",
	 "Linux 5.10, BTF"},
	{"ax_accepted", AT_ITER, false,
	 "clients outside ax stay with backends in host mode that are removed", "Linux 5.10, BTF"},
	{"ax_unjudged_udp", AT_ITER, true,
	 "UDP sockets of apps reach what is exposed at the port that they had connected to, "
	 "whatever "
	 "the policy is",
	 "Linux 5.10, BTF"},
	{"ax_unjudged_tcp", AT_ITER, true,
	 "connections that apps had begun reach what is exposed there, whatever the policy is",
	 "Linux 5.10, BTF"},
	{"ax_forbidden_udp", AT_ITER, true,
	 "UDP sockets of apps stay connected to whom a new rule forbids them", "Linux 5.10, BTF"},
	{"ax_dual_udp", AT_ITER, false,
	 "dual-stack UDP servers in host mode are not reached by IPv6", "Linux 5.10, BTF"},
	{"ax_from_app", AT_FABRIC, true, "private apps have no network", "Linux 5.10"},
	{"ax_to_app", AT_FABRIC, true, "private apps have no network", "Linux 5.10"},
	{"ax_to_service", AT_FABRIC, false,
	 "services with private backends are closed to programs outside ax", "Linux 5.17"},
	{"ax_from_outside", AT_FABRIC, false,
	 "ports of private apps, and of services, are not exposed", "Linux 5.17"},
	{"ax_to_outside", AT_FABRIC, false, "UDP ports of apps in host mode are not exposed",
	 "Linux 5.17"},
	{"ax_dns_udp", AT_SOCKET, true,
	 "the DNS answers neighbours of this host, and one app's flood loses others' queries",
	 "Linux 5.3"},
	{"ax_dns_tcp", AT_SOCKET, true, "the DNS answers neighbours of this host by TCP",
	 "Linux 5.3"},
	{"ax_explain", AT_SOCKET, false, "'ax policy explain' does not know what holds",
	 "Linux 5.17"},
	{"ax_from_balancer", AT_FABRIC, false, "XDP balancers do not reach apps of this machine",
	 "Linux 5.17"},
	{"ax_from_backends", AT_FABRIC, false,
	 "apps of this machine do not answer through XDP balancers", "Linux 5.10"},
	{"ax_from_nodes", AT_FABRIC, false,
	 "apps of other nodes that are not known yet are refused, not kept waiting", "Linux 5.10"},
	{"ax_from_tunnel", AT_FABRIC, false, "apps of other nodes are not reached by WireGuard",
	 "Linux 5.10"},
	{"ax_across", AT_FABRIC, false, "apps of other nodes are not reached by translation",
	 "Linux 5.17"},
};
_Static_assert(ARRAY_SIZE(programs) <= DATAPATH_PROGRAMS_MAX, "room for a report per program");

static const char *const map_names[MAPS] = {
	[MAP_APPS] = "apps",
	[MAP_NETNS_APPS] = "netns_apps",
	[MAP_VIPS] = "vips",
	[MAP_PARTIES] = "parties",
	[MAP_PARTY_RULES] = "party_rules",
	[MAP_RULE_SETS] = "rule_sets",
	[MAP_OUTSIDE_RULES] = "outside_rules",
	[MAP_RULE_PORTS] = "rule_ports",
	[MAP_PORT_RULES] = "port_rules",
	[MAP_RULE_HITS] = "rule_hits",
	[MAP_RULE_MARKS] = "rule_marks",
	[MAP_SERVICES] = "services",
	[MAP_BACKENDS] = "backends",
	[MAP_RINGS] = "rings",
	[MAP_AFFINITY] = "affinity",
	[MAP_AFFINITY_COUNTS] = "affinity_counts",
	[MAP_SERVERS] = "servers",
	[MAP_LOOPBACK_SERVERS] = "loopback_servers",
	[MAP_UDP_CLIENTS] = "udp_clients",
	[MAP_WILD_PORTS] = "wild_ports",
	[MAP_APP_SERVERS] = "app_servers",
	[MAP_ACCEPTS] = "accepts",
	[MAP_SOURCES] = "sources",
	[MAP_LEARNT] = "learnt",
	[MAP_LEAVERS] = "leavers",
	[MAP_LISTED] = "listed",
	[MAP_FAILING] = "failing",
	[MAP_RESERVED] = "reserved",
	[MAP_OPEN_CONNS] = "open_conns",
	[MAP_LISTENERS] = "listeners",
	[MAP_LOOPBACK_LISTENERS] = "loopback_listeners",
	[MAP_OWN_CONNS] = "own_conns",
	[MAP_DOOR] = "door",
	[MAP_KNOCKS] = "knocks",
	[MAP_ASKED] = "asked",
	[MAP_HELD] = "held",
	[MAP_ESTABLISHED] = "established",
	[MAP_REPLIES] = "replies",
	[MAP_FLOWS] = "flows",
	[MAP_NEW_FLOWS] = "new_flows",
	[MAP_UDP_FLOWS] = "udp_flows",
	[MAP_DATAGRAMS] = "datagrams",
	[MAP_AWAITED] = "awaited",
	[MAP_HANDED] = "handed",
	[MAP_PICKED] = "picked",
	[MAP_VISITORS] = "visitors",
	[MAP_NEWCOMERS] = "newcomers",
	[MAP_DNS_SOURCES] = "dns_sources",
	[MAP_DNS_GONE] = "dns_gone",
	[MAP_SEEN] = "seen",
	[MAP_EXPOSED] = "exposed",
	[MAP_EXPOSED_PORTS] = "exposed_ports",
	[MAP_FRAGMENTS] = "fragments",
	[MAP_LOCAL_ADDRS] = "local_addrs",
	[MAP_ACROSS_CTL] = "across_ctl",
	[MAP_ACROSS_NODES] = "across_nodes",
	[MAP_ACROSS_TO] = "across_to",
	[MAP_ACROSS_SERVED] = "across_served",
	[MAP_ACROSS_APPS] = "across_apps",
	[MAP_ACROSS_CAME] = "across_came",
	[MAP_ACROSS_FLOWS] = "across_flows",
	[MAP_ACROSS_SLOTS] = "across_slots",
	[MAP_ACROSS] = "across",
	[MAP_CTL] = "ctl",
	[MAP_COUNTERS] = "counters",
	[MAP_EVENTS] = "events",
};

/* --- libbpf's output --- */

static char last_word[160]; /* the verifier's or libbpf's last warning, for reports */

static int on_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *line, *save = NULL;
	autofree char *text = NULL;

	if (level == LIBBPF_DEBUG || vasprintf(&text, fmt, ap) < 0)
		return 0;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (level == LIBBPF_WARN && starts_with(line, "libbpf: prog '"))
			snprintf(last_word, sizeof(last_word), "%.150s", line + 8);
		log_debug("%s", line);
	}
	return 0;
}

void datapath_log_libbpf(void)
{
	libbpf_set_print(on_libbpf);
}

const char *datapath_last_word(void)
{
	return last_word;
}

static int pin_dir_of(const struct instance *inst, bool make, char *ret, size_t size,
		      struct error *e)
{
	char mount_dir[200];
	int r = mount_bpffs(inst, make, mount_dir, sizeof(mount_dir), e);

	if (!r)
		snprintf(ret, size, "%s/%s", mount_dir, inst->name);
	return r;
}

static int remove_pins(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *de;
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((de = readdir(d))) {
		if (de->d_name[0] != '.' && unlinkat(dirfd(d), de->d_name, 0) < 0)
			r = -errno;
	}
	closedir(d);
	if (!r && rmdir(dir) < 0)
		r = -errno;
	return r;
}

int datapath_remove(const struct instance *inst, struct error *e)
{
	char dir[256], staging[STAGING_MAX];
	int r = pin_dir_of(inst, false, dir, sizeof(dir), e);

	if (r)
		return r == -ENOENT ? 0 : r;
	snprintf(staging, sizeof(staging), "%s-new", dir);
	r = remove_pins(staging);
	if (!r)
		r = remove_pins(dir);
	return r ? error_set(e, r, "cannot remove the pins in %s: %s", dir, strerror(-r)) : 0;
}

/* --- loading --- */

static uint32_t kernel_hz(void)
{
	struct timespec ts;

	/* the coarse clock advances once a jiffy */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts) || ts.tv_nsec <= 0)
		return 250;
	return (uint32_t)((1000000000 + ts.tv_nsec / 2) / ts.tv_nsec);
}

static struct bpf_program *program_of(struct dataplane *skel, size_t i)
{
	return bpf_object__find_program_by_name(skel->obj, programs[i].name);
}

/* inst: NULL where nothing is attached. */
static struct dataplane *open_skel(const bool *wanted, const struct instance *inst)
{
	struct dataplane *skel;

	datapath_log_libbpf();
	skel = dataplane__open();
	if (!skel)
		return NULL;
	skel->rodata->jiffies_per_second = kernel_hz();
	if (inst)
		instance_mac(inst, skel->rodata->device_mac);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		bpf_program__set_autoload(program_of(skel, i), wanted[i]);
	return skel;
}

/* For an object that is thrown away at once. */
static int load_with_small_maps(struct bpf_object *obj)
{
	struct bpf_map *map;

	bpf_object__for_each_map (map, obj) {
		if (bpf_map__max_entries(map) > 64 && bpf_map__type(map) != BPF_MAP_TYPE_RINGBUF)
			bpf_map__set_max_entries(map, 64);
	}
	return bpf_object__load(obj);
}

int datapath_try(struct bpf_object *obj, const char *program, struct feature_report *f)
{
	struct bpf_program *p;
	int r;

	last_word[0] = 0;
	bpf_object__for_each_program (p, obj)
		bpf_program__set_autoload(p, streq(bpf_program__name(p), program));
	r = load_with_small_maps(obj);
	f->on = r == 0;
	if (r)
		snprintf(f->why, sizeof(f->why), "%s", last_word[0] ? last_word : strerror(-r));
	return r;
}

static struct feature_report feature_of(size_t i, bool on)
{
	return (struct feature_report){.name = programs[i].name + strlen("ax_"),
				       .on = on,
				       .required = programs[i].required,
				       .cost = programs[i].cost,
				       .needs = programs[i].needs};
}

/* Loads one program alone. 0 or a negative errno with *f filled. */
static int probe_program(size_t i, struct feature_report *f)
{
	bool wanted[ARRAY_SIZE(programs)] = {false};
	struct dataplane *skel;
	int r;

	wanted[i] = true;
	*f = feature_of(i, false);
	skel = open_skel(wanted, NULL);
	if (!skel)
		return -errno;
	r = datapath_try(skel->obj, programs[i].name, f);
	dataplane__destroy(skel);
	return r;
}

/* All of them at once: with maps made once, and not for each. */
static bool all_load(void)
{
	bool wanted[ARRAY_SIZE(programs)];
	struct dataplane *skel;
	int r;

	memset(wanted, true, sizeof(wanted));
	skel = open_skel(wanted, NULL);
	if (!skel)
		return false;
	r = load_with_small_maps(skel->obj);
	dataplane__destroy(skel);
	return r == 0;
}

int datapath_doctor(int (*report)(void *arg, const struct feature_report *f), void *arg,
		    struct error *e)
{
	bool all;

	if (geteuid() != 0)
		return error_set(e, -EPERM, "loading programs needs root: run it with sudo");
	if (mount_check(e))
		return e->code;
	all = all_load();
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct feature_report f = feature_of(i, true);
		int r;

		if (!all)
			probe_program(i, &f);
		r = report(arg, &f);
		if (r)
			return r;
	}
	return 0;
}

/* A map that is younger than the agent that made the pins: an upgrade finds none, and makes it. */
static bool may_be_missing(int m)
{
	return m == MAP_OPEN_CONNS || m == MAP_HANDED || m == MAP_PICKED ||
	       m == MAP_LOOPBACK_SERVERS || m == MAP_APP_SERVERS || m == MAP_RESERVED ||
	       m == MAP_DNS_SOURCES || m == MAP_REPLIES || m == MAP_VISITORS ||
	       m == MAP_NEWCOMERS || m == MAP_NEW_FLOWS || m == MAP_UDP_FLOWS ||
	       m == MAP_DATAGRAMS || m == MAP_UDP_CLIENTS || m == MAP_HELD || m == MAP_EXPOSED ||
	       m == MAP_EXPOSED_PORTS || m == MAP_LOCAL_ADDRS || m == MAP_ACCEPTS ||
	       m == MAP_LEARNT || m == MAP_SOURCES || m == MAP_SEEN || m == MAP_LEAVERS ||
	       m == MAP_DNS_GONE || m == MAP_FRAGMENTS || m == MAP_AWAITED || m == MAP_AFFINITY ||
	       m == MAP_AFFINITY_COUNTS || m == MAP_LISTED || m == MAP_WILD_PORTS ||
	       m == MAP_DOOR || m == MAP_KNOCKS;
}

static int reuse_maps(struct datapath *dp, struct error *e)
{
	for (int m = 0; m < MAPS; m++) {
		struct bpf_map *map = bpf_object__find_map_by_name(dp->skel->obj, map_names[m]);
		struct bpf_map_info info = {0};
		uint32_t len = sizeof(info);
		char path[PIN_PATH_MAX];
		autoclose int fd = -1;
		int r;

		snprintf(path, sizeof(path), "%s/map_%s", dp->pin_dir, map_names[m]);
		fd = bpf_obj_get(path);
		if (fd < 0 && errno == ENOENT && may_be_missing(m))
			continue;
		if (fd < 0)
			return error_set(e, -errno,
					 "the pinned map %s cannot be opened (%s): stop the apps "
					 "and run 'ax agent --flush' once",
					 path, strerror(errno));
		if (bpf_obj_get_info_by_fd(fd, &info, &len))
			return error_set(e, -errno, "the pinned map %s cannot be read", path);
		if (info.value_size != bpf_map__value_size(map) ||
		    info.key_size != bpf_map__key_size(map))
			return error_set(e, -EPROTO,
					 "the pinned map %s has another version's layout: stop "
					 "the apps and run 'ax agent --flush' once",
					 path);
		r = bpf_map__reuse_fd(map, fd);
		if (r)
			return error_set(e, r, "the pinned map %s cannot be reused: %s", path,
					 strerror(-r));
	}
	return 0;
}

static int try_load(struct datapath *dp, const struct instance *inst, const bool *wanted,
		    bool fresh, struct error *e)
{
	int r;

	dp->skel = open_skel(wanted, inst);
	if (!dp->skel)
		return error_set(e, -errno, "libbpf cannot open the dataplane: %s",
				 strerror(errno));
	if (!fresh) {
		r = reuse_maps(dp, e);
		if (r)
			return r;
	}
	r = dataplane__load(dp->skel);
	if (r)
		return error_set(e, r, "the kernel refuses the dataplane (%s): see 'ax doctor'",
				 last_word[0] ? last_word : strerror(-r));
	for (int m = 0; m < MAPS; m++)
		dp->map[m] = bpf_map__fd(bpf_object__find_map_by_name(dp->skel->obj, map_names[m]));
	return 0;
}

static int without(const struct feature_report *f, struct error *e)
{
	return error_set(e, -EOPNOTSUPP,
			 "this kernel refuses the program ax_%s, which ax needs: else %s (%.200s; "
			 "it takes %s): see 'ax doctor'",
			 f->name, f->cost, f->why, f->needs);
}

/* Everything at once first; only a kernel that refuses that has each program tried by itself. */
static int load(struct datapath *dp, const struct instance *inst, bool fresh, struct error *e)
{
	bool wanted[ARRAY_SIZE(programs)];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		wanted[i] = true;
		dp->features[i] = feature_of(i, true);
	}
	dp->n_features = ARRAY_SIZE(programs);
	r = try_load(dp, inst, wanted, fresh, e);
	if (!r || r == -EPROTO)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		wanted[i] = probe_program(i, &dp->features[i]) == 0;
		if (!wanted[i] && programs[i].required)
			return without(&dp->features[i], e);
	}
	dataplane__destroy(dp->skel);
	dp->skel = NULL;
	return try_load(dp, inst, wanted, fresh, e);
}

/* --- attaching --- */

static void feature_off(struct datapath *dp, size_t i, int err)
{
	dp->features[i].on = false;
	snprintf(dp->features[i].why, sizeof(dp->features[i].why), "attaching it failed: %s",
		 strerror(-err));
}

static struct bpf_link *attach_new(struct datapath *dp, size_t i, int cgroup_fd, int netns_fd)
{
	struct bpf_program *p = program_of(dp->skel, i);

	return programs[i].at == AT_NETNS ? bpf_program__attach_netns(p, netns_fd)
					  : bpf_program__attach_cgroup(p, cgroup_fd);
}

/* Puts our program under the pinned link, or attaches and pins a new link. */
static int attach_program(struct datapath *dp, size_t i, const char *dir, int cgroup_fd,
			  int netns_fd)
{
	struct bpf_program *p = program_of(dp->skel, i);
	char path[PIN_PATH_MAX];
	struct bpf_link *link;
	int r;

	snprintf(path, sizeof(path), "%s/link_%s", dir, programs[i].name);
	link = bpf_link__open(path);
	if (link) {
		r = bpf_link__update_program(link, p);
		bpf_link__destroy(link);
		if (!r)
			return 0;
		/* ENOLINK: its cgroup or namespace is gone */
		if (unlink(path) < 0)
			return -errno;
	}
	link = attach_new(dp, i, cgroup_fd, netns_fd);
	if (!link)
		return -errno;
	r = bpf_link__pin(link, path);
	/* The pin keeps it. (Not bpf_link__disconnect(): that would leave its descriptor open, and
	 * the program attached for as long as this process lives.) */
	bpf_link__destroy(link);
	return r;
}

static int attach_all(struct datapath *dp, const char *dir, struct error *e)
{
	autoclose int cgroup_fd = open(dp->cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (cgroup_fd < 0 || netns_fd < 0)
		return error_set(e, -errno, "cannot open %s: %s", dp->cgroup_path, strerror(errno));
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		int r;

		if (!dp->features[i].on ||
		    (programs[i].at != AT_CGROUP && programs[i].at != AT_NETNS))
			continue;
		r = attach_program(dp, i, dir, cgroup_fd, netns_fd);
		if (!r)
			continue;
		if (programs[i].required)
			return error_set(e, r, "cannot attach %s to %s: %s", programs[i].name,
					 dp->cgroup_path, strerror(-r));
		feature_off(dp, i, r);
	}
	return 0;
}

/* map: whose elements it goes through, -1: an iterator of something else */
static struct bpf_link *attach_iter(struct datapath *dp, const char *name, int map)
{
	union bpf_iter_link_info over = {.map.map_fd = (uint32_t)map};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &over, .link_info_len = sizeof(over));
	struct bpf_link *link = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (!streq(programs[i].name, name) || !dp->features[i].on)
			continue;
		link = bpf_program__attach_iter(program_of(dp->skel, i), map < 0 ? NULL : &opts);
		if (!link)
			feature_off(dp, i, -errno);
	}
	return link;
}

static int attach_iters(struct datapath *dp, struct error *e)
{
	dp->conns = attach_iter(dp, "ax_conns", -1);
	dp->dual_udp = attach_iter(dp, "ax_dual_udp", -1);
	dp->udp_conns = attach_iter(dp, "ax_udp_conns", -1);
	dp->accepted = attach_iter(dp, "ax_accepted", -1);
	dp->unjudged_udp = attach_iter(dp, "ax_unjudged_udp", -1);
	dp->unjudged_tcp = attach_iter(dp, "ax_unjudged_tcp", -1);
	dp->forbidden_udp = attach_iter(dp, "ax_forbidden_udp", -1);
	dp->held = attach_iter(dp, "ax_held_syns", dp->map[MAP_HELD]);
	for (size_t i = 0; i < dp->n_features; i++) {
		if (dp->features[i].required && !dp->features[i].on)
			return without(&dp->features[i], e);
	}
	return 0;
}

/* Those that are pinned already stay. */
static int pin_maps(struct datapath *dp, const char *dir)
{
	for (int m = 0; m < MAPS; m++) {
		char path[PIN_PATH_MAX];

		snprintf(path, sizeof(path), "%s/map_%s", dir, map_names[m]);
		if (bpf_obj_pin(dp->map[m], path) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int install_fresh(const struct instance *inst, struct datapath *dp, struct error *e)
{
	char staging[STAGING_MAX];
	int r = pin_dir_of(inst, true, dp->pin_dir, sizeof(dp->pin_dir), e);

	if (r)
		return r;
	snprintf(staging, sizeof(staging), "%s-new", dp->pin_dir);
	r = remove_pins(staging); /* of an agent that died here */
	if (!r && mkdir(staging, 0700) < 0)
		r = -errno;
	if (!r)
		r = pin_maps(dp, staging);
	if (r)
		return error_set(e, r, "cannot pin the dataplane in %s: %s", staging, strerror(-r));
	r = attach_all(dp, staging, e);
	if (!r && rename(staging, dp->pin_dir) < 0)
		r = error_set(e, -errno, "cannot rename %s: %s", staging, strerror(errno));
	if (r)
		remove_pins(staging);
	return r;
}

static int install_again(struct datapath *dp, struct error *e)
{
	int r = pin_maps(dp, dp->pin_dir);

	if (r)
		return error_set(e, r, "cannot pin the dataplane in %s: %s", dp->pin_dir,
				 strerror(-r));
	return attach_all(dp, dp->pin_dir, e);
}

int datapath_program_fd(const struct datapath *dp, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(dp->skel->obj, name);

	return p ? bpf_program__fd(p) : -1;
}

void datapath_dns_turn(struct datapath *dp)
{
	dp->skel->bss->dns_turn++;
}

int datapath_open(const struct instance *inst, const char *cgroup_path, struct datapath **ret,
		  bool *fresh, struct error *e)
{
	struct datapath *dp = calloc(1, sizeof(*dp));
	int r;

	if (!dp)
		return error_set(e, -ENOMEM, "out of memory");
	dp->inst = inst;
	dp->from_app = dp->to_app = dp->to_service = dp->from_outside = -1;
	dp->to_outside = -1;
	dp->from_balancer = dp->from_backends = dp->from_nodes = -1;
	dp->from_tunnel = dp->across = -1;
	snprintf(dp->cgroup_path, sizeof(dp->cgroup_path), "%s", cgroup_path);
	r = pin_dir_of(inst, false, dp->pin_dir, sizeof(dp->pin_dir), e);
	if (!r || r == -ENOENT) { /* what the kernel refuses shall leave no mount behind */
		*fresh = r || access(dp->pin_dir, F_OK) != 0;
		r = *fresh ? datapath_check_hidden(cgroup_path, r ? "any" : dp->pin_dir, e) : 0;
		r = r ? r : load(dp, inst, *fresh, e);
		r = r ? r : attach_iters(dp, e);
	}
	if (!r) {
		r = datapath_tell_host(dp);
		if (r)
			error_set(e, r, "the host's network namespace cannot be told: %s",
				  strerror(-r));
	}
	if (!r) /* flows and sockets of an earlier agent's time go on */
		dp->skel->bss->waited_any = dp->skel->bss->tcp_askers = dp->skel->bss->across_any =
			!*fresh;
	if (!r)
		r = *fresh ? install_fresh(inst, dp, e) : install_again(dp, e);
	if (!r && !*fresh) {
		r = datapath_take_lists(dp);
		if (r)
			error_set(e, r, "the pinned map of services cannot be read: %s",
				  strerror(-r));
	}
	if (r) {
		datapath_close(dp);
		return r;
	}
	dp->udp_told = &dp->skel->bss->udp_told;
	dp->held_any = &dp->skel->bss->held_any;
	dp->held_told = &dp->skel->bss->held_told;
	dp->servers_watched = &dp->skel->bss->servers_watched;
	dp->servers_told = &dp->skel->bss->servers_told;
	dp->accepts_any = &dp->skel->bss->accepts_any;
	dp->failing_any = &dp->skel->bss->failing_any;
	dp->across_any = &dp->skel->bss->across_any;
	dp->dns_gone_n = (uint64_t *)&dp->skel->bss->dns_gone_n;
	dp->dns_gone_lost_ns = (uint64_t *)&dp->skel->bss->dns_gone_lost_ns;
	dp->dns_gone_at = (uint64_t *)dp->skel->bss->dns_gone_at;
	dp->failing_told = &dp->skel->bss->failing_told;
	dp->seen_last = &dp->skel->bss->seen_last;
	dp->seen_added = &dp->skel->bss->seen_added;
	dp->from_app = datapath_program_fd(dp, "ax_from_app");
	dp->to_app = datapath_program_fd(dp, "ax_to_app");
	dp->to_service = datapath_program_fd(dp, "ax_to_service");
	dp->from_outside = datapath_program_fd(dp, "ax_from_outside");
	dp->to_outside = datapath_program_fd(dp, "ax_to_outside");
	dp->from_balancer = datapath_program_fd(dp, "ax_from_balancer");
	dp->from_backends = datapath_program_fd(dp, "ax_from_backends");
	dp->from_nodes = datapath_program_fd(dp, "ax_from_nodes");
	dp->from_tunnel = datapath_program_fd(dp, "ax_from_tunnel");
	dp->across = datapath_program_fd(dp, "ax_across");
	*ret = dp;
	return 0;
}

void datapath_close(struct datapath *dp)
{
	if (!dp)
		return;
	ring_buffer__free(dp->ring);
	bpf_link__destroy(dp->conns);
	bpf_link__destroy(dp->dual_udp);
	bpf_link__destroy(dp->udp_conns);
	bpf_link__destroy(dp->accepted);
	bpf_link__destroy(dp->unjudged_udp);
	bpf_link__destroy(dp->unjudged_tcp);
	bpf_link__destroy(dp->forbidden_udp);
	bpf_link__destroy(dp->held);
	if (dp->skel)
		dataplane__destroy(dp->skel);
	free(dp);
}

size_t datapath_features(const struct datapath *dp, const struct feature_report **ret)
{
	*ret = dp->features;
	return dp->n_features;
}

/* Attaches or detaches a program that is AT_NEED. */
static int at_need(struct datapath *dp, const char *name, bool on)
{
	char path[PIN_PATH_MAX];
	size_t i = 0;
	int cgroup_fd, r;

	while (!streq(programs[i].name, name))
		i++;
	snprintf(path, sizeof(path), "%s/link_%s", dp->pin_dir, programs[i].name);
	if (!on)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	if (!dp->features[i].on)
		return -EOPNOTSUPP;
	cgroup_fd = open(dp->cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup_fd < 0)
		return -errno;
	r = attach_program(dp, i, dp->pin_dir, cgroup_fd, -1);
	close(cgroup_fd);
	return r;
}

int datapath_hold(struct datapath *dp, bool on)
{
	int r = at_need(dp, "ax_hold_syn", on);

	if (r)
		return r;
	r = at_need(dp, "ax_hold_refusal", on);
	return r == -EOPNOTSUPP ? 0 : r; /* they wait without it, too */
}

int datapath_straight(struct datapath *dp, bool on)
{
	int r = on && dp->straight ? 0 : at_need(dp, "ax_straight", on);

	if (!r)
		dp->straight = on;
	return r;
}
