// SPDX-License-Identifier: GPL-2.0-or-later
/* The root program on the interface, by libxdp: in its dispatcher, beside others, where the kernel
 * can replace functions (freplace), else as the only program. */
#include <fcntl.h>
#include <net/if.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"
#include "base/log.h"
#include "net/netlink.h"
#include "root.skel.h"

static int on_libxdp(enum libxdp_print_level level, const char *fmt, va_list ap)
{
	autofree char *text = NULL;

	(void)level;
	if (vasprintf(&text, fmt, ap) >= 0)
		log_debug("%s", text);
	return 0;
}

static void catch_output(void)
{
	datapath_log_libbpf();
	libxdp_set_print(on_libxdp);
}

static enum xdp_attach_mode to_libxdp(enum xdp_mode mode)
{
	switch (mode) {
	case ATTACH_GENERIC:
		return XDP_MODE_SKB;
	case ATTACH_OFFLOAD:
		return XDP_MODE_HW;
	default:
		return XDP_MODE_NATIVE;
	}
}

void datapath_xdp_programs_free(struct datapath_xdp_programs *p)
{
	free(p->v);
	*p = (struct datapath_xdp_programs){0};
}

static enum xdp_mode from_libxdp(enum xdp_attach_mode mode)
{
	switch (mode) {
	case XDP_MODE_SKB:
		return ATTACH_GENERIC;
	case XDP_MODE_HW:
		return ATTACH_OFFLOAD;
	case XDP_MODE_NATIVE:
		return ATTACH_NATIVE;
	default:
		return ATTACH_AUTO;
	}
}

static int add_program(struct datapath_xdp_programs *p, const struct xdp_program *prog,
		       uint32_t ours)
{
	struct xdp_program_info *v = realloc(p->v, (p->n + 1) * sizeof(*v)), *i;
	const char *name = xdp_program__name(prog);

	if (!v)
		return -ENOMEM;
	p->v = v;
	i = &v[p->n++];
	*i = (struct xdp_program_info){
		.id = xdp_program__id(prog),
		.priority = xdp_program__run_prio(prog),
		.ours = ours && xdp_program__id(prog) == ours,
	};
	snprintf(i->name, sizeof(i->name), "%s", name ? name : "?");
	return 0;
}

static void close_multiprog(struct xdp_multiprog **mp)
{
	if (*mp)
		xdp_multiprog__close(*mp);
}
#define automultiprog CLEANUP(close_multiprog)

static bool is_program(int fd, uint32_t id)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	char path[32], what[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, what, sizeof(what) - 1) > 0 && streq(what, "anon_inode:bpf-prog") &&
	       !bpf_obj_get_info_by_fd(fd, &info, &len) && info.id == id;
}

/* Debian 12's libxdp (1.3.1) leaves open the descriptor by which it found an interface's program:
 * `lowest`, the first that was free. Later ones do not, then somebody else has that number. */
static void close_what_libxdp_left(struct xdp_multiprog *mp, int lowest)
{
	struct xdp_program *prog = xdp_multiprog__main_prog(mp);

	if (!prog)
		prog = xdp_multiprog__hw_prog(mp);
	if (prog && xdp_program__fd(prog) != lowest && is_program(lowest, xdp_program__id(prog)))
		close(lowest);
}

/* NULL: there is no program. */
static int multiprog_get(unsigned ifindex, struct xdp_multiprog **ret)
{
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct xdp_multiprog *mp;
	long r;

	if (lowest >= 0)
		close(lowest);
	catch_output();
	mp = xdp_multiprog__get_from_ifindex((int)ifindex);
	r = libxdp_get_error(mp);
	*ret = r ? NULL : mp;
	if (!r && lowest >= 0)
		close_what_libxdp_left(mp, lowest);
	return r == -ENOENT ? 0 : (int)r;
}

int datapath_xdp_programs(unsigned ifindex, uint32_t ours, struct datapath_xdp_programs *p)
{
	automultiprog struct xdp_multiprog *mp = NULL;
	struct xdp_program *prog = NULL;
	int r = multiprog_get(ifindex, &mp);

	*p = (struct datapath_xdp_programs){0};
	if (r || !mp)
		return r;
	p->mode = from_libxdp(xdp_multiprog__attach_mode(mp));
	p->frags = xdp_multiprog__xdp_frags_support(mp);
	p->dispatcher = !xdp_multiprog__is_legacy(mp);
	if (!p->dispatcher) {
		prog = xdp_multiprog__main_prog(mp);
		if (!prog)
			prog = xdp_multiprog__hw_prog(mp);
		return prog ? add_program(p, prog, ours) : 0;
	}
	while (!r && (prog = xdp_multiprog__next_prog(prog, mp)))
		r = add_program(p, prog, ours);
	if (r)
		datapath_xdp_programs_free(p);
	return r;
}

bool datapath_xdp_is_on(unsigned ifindex, uint32_t id)
{
	struct datapath_xdp_programs p;
	struct nl *nl CLEANUP(nl_closep) = NULL;
	bool there = false;
	uint32_t found;

	if (!nl_open(&nl) && !nl_link_xdp(nl, ifindex, &found) && (!found || found == id))
		return found && id;
	/* what is there may be a dispatcher: only libxdp, which lists all interfaces, can tell */
	if (datapath_xdp_programs(ifindex, id, &p))
		return false;
	for (size_t i = 0; i < p.n; i++)
		there |= p.v[i].ours;
	datapath_xdp_programs_free(&p);
	return there;
}

int datapath_list_programs(const char *dir, unsigned ifindex, uint32_t ours,
			   struct datapath_xdp_programs *p)
{
	return datapath_xdp_dir_is_egress(dir) ? datapath_egress_programs(ifindex, ours, p)
					       : datapath_xdp_programs(ifindex, ours, p);
}

bool datapath_list_is_on(const char *dir, unsigned ifindex, uint32_t id)
{
	return datapath_xdp_dir_is_egress(dir) ? datapath_egress_is_on(ifindex, id)
					       : datapath_xdp_is_on(ifindex, id);
}

int datapath_xdp_root_id(const char *dir, uint32_t *id)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	char path[PIN_PATH_MAX];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%s/root", dir);
	fd = bpf_obj_get(path);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	*id = info.id;
	return 0;
}

/* Whether the program has the map. */
static bool has_map(int prog, uint32_t map)
{
	uint32_t ids[8];
	struct bpf_prog_info info = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog, &info, &len) < 0)
		return false;
	for (uint32_t i = 0; i < info.nr_map_ids && i < ARRAY_SIZE(ids); i++)
		if (ids[i] == map)
			return true;
	return false;
}

int datapath_xdp_adopt(const struct datapath_xdp *d, unsigned ifindex)
{
	struct bpf_map_info jumps = {0};
	struct datapath_xdp_programs p;
	uint32_t len = sizeof(jumps), id;
	char path[PIN_PATH_MAX];
	int r = datapath_xdp_root_id(d->dir, &id);

	if (r != -ENOENT || d->egress) /* (there it is pinned before it is attached) */
		return r;
	if (bpf_obj_get_info_by_fd(d->map[XDP_MAP_JUMPS], &jumps, &len) < 0)
		return -errno;
	r = datapath_xdp_programs(ifindex, 0, &p);
	snprintf(path, sizeof(path), "%s/root", d->dir);
	for (size_t i = 0; !r && i < p.n; i++) {
		autoclose int prog = bpf_prog_get_fd_by_id(p.v[i].id);

		if (prog >= 0 && has_map(prog, jumps.id) && bpf_obj_pin(prog, path) < 0)
			r = -errno;
	}
	datapath_xdp_programs_free(&p);
	return r;
}

/* Makes room: other programs on the interface stay beside ours in a dispatcher, and are only
 * removed if that was asked for. */
static int make_room(unsigned ifindex, bool replace, struct error *e)
{
	automultiprog struct xdp_multiprog *mp = NULL;
	struct datapath_xdp_programs p;
	int r = datapath_xdp_programs(ifindex, 0, &p);

	if (r)
		return error_set(e, r, "cannot ask for the XDP programs of the interface: %s",
				 strerror(-r));
	/* the one that doctor --fix put there does nothing but pass */
	replace |= !p.dispatcher && p.n == 1 && streq(p.v[0].name, PASS_PROGRAM);
	if (!replace && (p.dispatcher || !p.n)) {
		datapath_xdp_programs_free(&p);
		return 0;
	}
	if (!replace) {
		r = error_set(
			e, -EBUSY,
			"the XDP program '%s' (id %u) is on the interface: remove it, or give "
			"--replace to put ax in its place",
			p.v[0].name, p.v[0].id);
	} else if (p.n) {
		r = multiprog_get(ifindex, &mp);
		if (!r && mp)
			r = xdp_multiprog__detach(mp);
		if (r)
			error_set(e, r, "cannot remove the XDP program '%s': %s", p.v[0].name,
				  strerror(-r));
	}
	datapath_xdp_programs_free(&p);
	return r;
}

static int attach_mode(struct datapath_xdp *d, const char *dir, unsigned ifindex,
		       enum xdp_mode mode, uint32_t priority)
{
	struct root *skel = root__open();
	struct xdp_program *prog = NULL;
	char path[PIN_PATH_MAX];
	int r;

	if (!skel)
		return -errno;
	DECLARE_LIBXDP_OPTS(xdp_program_opts, o, .obj = skel->obj, .prog_name = "ax_root");
	/* libxdp takes it away again where the dispatcher has it instead */
	bpf_program__set_flags(skel->progs.ax_root, BPF_F_XDP_HAS_FRAGS);
	r = bpf_map__reuse_fd(skel->maps.jumps, d->map[XDP_MAP_JUMPS]);
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.bss, d->map[XDP_MAP_VARIABLES]);
	if (!r) {
		prog = xdp_program__create(&o);
		r = (int)libxdp_get_error(prog);
	}
	if (!r && priority)
		r = xdp_program__set_run_prio(prog, priority);
	if (!r)
		r = xdp_program__attach(prog, (int)ifindex, to_libxdp(mode), 0);
	if (!r) {
		snprintf(path, sizeof(path), "%s/root", dir);
		unlink(path);
		r = bpf_obj_pin(xdp_program__fd(prog), path) < 0 ? -errno : 0;
		if (r)
			xdp_program__detach(prog, (int)ifindex, to_libxdp(mode), 0);
	}
	if (prog && !libxdp_get_error(prog))
		xdp_program__close(prog);
	root__destroy(skel);
	return r;
}

int datapath_xdp_attach(struct datapath_xdp *d, const char *dir, unsigned ifindex,
			enum xdp_mode *mode, uint32_t priority, bool replace, struct error *e)
{
	static const char *const names[] = {"", "native", "generic", "offload"};
	int r = d->egress ? 0 : make_room(ifindex, replace, e);
	bool any = *mode == ATTACH_AUTO;

	if (r)
		return r;
	if (d->egress)
		return datapath_egress_attach(d, dir, ifindex, e);
	catch_output();
	if (any)
		*mode = ATTACH_NATIVE;
	r = attach_mode(d, dir, ifindex, *mode, priority);
	if (r && any && r != -EBUSY && r != -EPERM) {
		*mode = ATTACH_GENERIC;
		r = attach_mode(d, dir, ifindex, *mode, priority);
	}
	if (!r)
		return 0;
	if (r == -EBUSY)
		return error_set(e, r,
				 "another XDP program holds the interface, see ax xdp status");
	return error_set(
		e, r,
		"cannot attach in %s mode: %s; ax doctor tells what is wrong with the interface",
		names[*mode], strerror(-r));
}

int datapath_xdp_detach(const char *dir, unsigned ifindex, struct error *e)
{
	struct datapath_xdp_programs p;
	struct xdp_program *prog;
	char path[PIN_PATH_MAX];
	uint32_t id;
	enum xdp_mode mode;
	bool there = false;
	int r = datapath_xdp_root_id(dir, &id);

	if (r)
		return r;
	if (datapath_xdp_dir_is_egress(dir))
		return datapath_egress_detach(dir, ifindex, e);
	r = datapath_xdp_programs(ifindex, id, &p);
	if (r)
		return error_set(e, r, "cannot ask for the XDP programs of the interface: %s",
				 strerror(-r));
	for (size_t i = 0; i < p.n; i++)
		there |= p.v[i].ours;
	mode = p.mode;
	datapath_xdp_programs_free(&p);
	if (!there)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/root", dir);
	prog = xdp_program__from_pin(path);
	r = (int)libxdp_get_error(prog);
	if (!r) {
		r = xdp_program__detach(prog, (int)ifindex, to_libxdp(mode), 0);
		xdp_program__close(prog);
	}
	return r ? error_set(e, r, "cannot detach from the interface: %s", strerror(-r)) : 0;
}
