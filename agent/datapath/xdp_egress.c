// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists for packets that leave an interface: their root, at its clsact, and their generations.
 *
 * Behind all other filters, so that the list judges what leaves in the form in which it does: some
 * of ax's own programs translate packets there (expose.bpf.c, fabric.bpf.c). By clsact also where
 * the kernel has tcx (Linux 6.6): programs of tcx come before all filters, so before those.
 */
#include <fcntl.h>

#include <linux/pkt_cls.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"
#include "filter_egress.skel.h"
#include "net/host_links.h"
#include "net/tc_list.h"
#include "net/traffic_control.h"
#include "root_egress.skel.h"

#define LAST_PRIORITY 0xffff
#define ROOT_NAME     "ax_root_egress"
#define CLSACT_PIN    "clsact" /* the root once more: the interface's clsact was made for it */

/* --- the interface --- */

int datapath_egress_programs(unsigned ifindex, uint32_t ours, struct datapath_xdp_programs *p)
{
	struct nl *nl CLEANUP(nl_closep) = NULL;
	autofree struct tc_filter *f = NULL;
	size_t n = 0;
	int r = nl_open(&nl);

	*p = (struct datapath_xdp_programs){0};
	r = r ? r : tc_egress_filters(nl, ifindex, &f, &n);
	if (!r) {
		p->v = calloc(n + 1, sizeof(*p->v));
		r = p->v ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !r && i < n; i++) {
		struct xdp_program_info *v = &p->v[p->n++];

		*v = (struct xdp_program_info){
			.id = f[i].id, .priority = f[i].priority, .ours = ours && f[i].id == ours};
		snprintf(v->name, sizeof(v->name), "%s", f[i].name);
	}
	return r;
}

bool datapath_egress_is_on(unsigned ifindex, uint32_t id)
{
	struct datapath_xdp_programs p;
	bool there = false;

	if (!id || datapath_egress_programs(ifindex, id, &p))
		return false;
	for (size_t i = 0; i < p.n; i++)
		there |= p.v[i].ours;
	datapath_xdp_programs_free(&p);
	return there;
}

/* Loads the root over the maps of d and pins it. Its descriptor, or a negative errno. */
static int load_root(const struct datapath_xdp *d, const char *dir)
{
	struct root_egress *skel = root_egress__open();
	char path[PIN_PATH_MAX];
	int r, fd = -1;

	if (!skel)
		return -errno;
	r = bpf_map__reuse_fd(skel->maps.jumps, d->map[XDP_MAP_JUMPS]);
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.bss, d->map[XDP_MAP_VARIABLES]);
	if (!r)
		r = root_egress__load(skel);
	if (!r) {
		snprintf(path, sizeof(path), "%s/root", dir);
		fd = fcntl(bpf_program__fd(skel->progs.ax_root_egress), F_DUPFD_CLOEXEC, 3);
		r = fd < 0 || bpf_obj_pin(fd, path) < 0 ? -errno : 0;
	}
	root_egress__destroy(skel);
	if (r)
		close_fd(&fd);
	return r ? r : fd;
}

static struct tc_program at_egress(unsigned ifindex, int fd, uint32_t handle)
{
	return (struct tc_program){.ifindex = ifindex,
				   .egress = true,
				   .priority = LAST_PRIORITY,
				   .handle = handle, /* 0: one that nobody has */
				   .fd = fd,
				   .name = ROOT_NAME};
}

static int attach(int root, const char *dir, unsigned ifindex)
{
	const struct tc_program program = at_egress(ifindex, root, 0);
	struct nl *nl CLEANUP(nl_closep) = NULL;
	char path[PIN_PATH_MAX];
	bool made = false;
	int r = nl_open(&nl);

	r = r ? r : tc_attach(nl, &program, 1, &made);
	if (made && r)
		tc_clsact_del(nl, ifindex);
	if (made && !r) {
		snprintf(path, sizeof(path), "%s/%s", dir, CLSACT_PIN);
		bpf_obj_pin(root, path); /* or else the clsact stays, which is no harm */
	}
	return r;
}

int datapath_egress_attach(struct datapath_xdp *d, const char *dir, unsigned ifindex,
			   struct error *e)
{
	autoclose int root = load_root(d, dir);
	int r = root;

	if (r >= 0) /* before it is there, so that no packet goes by it */
		r = datapath_egress_listed(dir, ifindex, true);
	r = r ? r : attach(root, dir, ifindex);
	if (!r)
		return 0;
	return error_set(e, r, "cannot attach where packets leave the interface: %s%s",
			 strerror(-r), r == -EPERM ? "; run as root" : "");
}

/* The handle of the filter that has the program. */
static int find_handle(struct nl *nl, unsigned ifindex, uint32_t id, uint32_t *ret)
{
	autofree struct tc_filter *f = NULL;
	size_t n;
	int r = tc_egress_filters(nl, ifindex, &f, &n);

	for (size_t i = 0; !r && i < n; i++) {
		if (f[i].id != id || f[i].priority != LAST_PRIORITY)
			continue;
		*ret = f[i].handle;
		return 0;
	}
	return r ? r : -ENOENT;
}

int datapath_egress_detach(const char *dir, unsigned ifindex, struct error *e)
{
	struct nl *nl CLEANUP(nl_closep) = NULL;
	struct tc_program program;
	char path[PIN_PATH_MAX];
	uint32_t id, handle = 0;
	int r = datapath_xdp_root_id(dir, &id);

	r = r ? r : nl_open(&nl);
	r = r ? r : find_handle(nl, ifindex, id, &handle);
	if (r == -ENOENT)
		return r;
	program = at_egress(ifindex, -1, handle);
	r = r ? r : tc_detach(nl, &program, 1);
	if (r)
		return error_set(e, r, "cannot detach from the interface: %s", strerror(-r));
	snprintf(path, sizeof(path), "%s/%s", dir, CLSACT_PIN);
	if (!access(path, F_OK) && !nl_link_has_filters(nl, ifindex))
		tc_clsact_del(nl, ifindex);
	return datapath_egress_listed(dir, ifindex, false);
}

/* --- generations --- */

static int take_maps(struct filter_egress *skel, const struct datapath_xdp *d)
{
	int r = bpf_map__reuse_fd(skel->maps.stages, d->map[XDP_MAP_JUMPS]);

	for (int m = 0; m < XDP_MAPS && !r; m++) {
		struct bpf_map *map = bpf_object__find_map_by_name(
			skel->obj, datapath_xdp_map_name((enum xdp_map)m));

		if (map)
			r = bpf_map__reuse_fd(map, d->map[m]);
	}
	return r;
}

/* Tables of what these lists do not have. */
static void leave_out(struct filter_egress *skel, const struct ax_layout *layout)
{
	bpf_map__set_max_entries(skel->maps.exposed_fragments, 1);
	if (!layout->field[AX_FIELD_STATE].used)
		bpf_map__set_max_entries(skel->maps.state_fragments, 1);
	bpf_map__set_max_entries(skel->maps.hops, 1);
}

/* The program that explains is where a tail call would find it, though none is made. */
static uint32_t tell_entry(const struct ax_layout *l)
{
	return AX_JUMPS + l->generation % AX_STAGE_SETS * AX_STAGES + AX_STAGE_EXPLAIN;
}

int datapath_egress_load(const struct datapath_xdp *d, const void *arena, size_t size,
			 const struct ax_layout *layout, struct generation *g)
{
	struct filter_egress *skel = filter_egress__open();
	uint32_t key = tell_entry(layout);
	int r, fd;

	if (!skel)
		return -errno;
	memcpy((void *)(uintptr_t)&skel->rodata->layout, layout, sizeof(*layout));
	leave_out(skel, layout);
	datapath_xdp_found_room(layout, &skel->rodata->found_places, skel->maps.founds);
	r = take_maps(skel, d);
	if (!r)
		r = bpf_map__set_value_size(skel->maps.arena, (uint32_t)size);
	if (!r)
		r = filter_egress__load(skel);
	if (!r) {
		fd = bpf_program__fd(skel->progs.ax_tell_egress);
		if (bpf_map_update_elem(d->map[XDP_MAP_JUMPS], &key, &fd, 0) < 0)
			r = -errno;
	}
	if (!r)
		r = generation_take(g, bpf_program__fd(skel->progs.ax_judge_egress),
				    bpf_map__fd(skel->maps.arena), arena, size, layout);
	if (!r) {
		g->tell = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		r = g->tell < 0 ? -errno : 0;
	}
	filter_egress__destroy(skel);
	if (r)
		generation_close(g);
	return r;
}

int datapath_egress_find_tell(const struct datapath_xdp *d, struct generation *g)
{
	uint32_t key = tell_entry(&g->layout), id;

	if (bpf_map_lookup_elem(d->map[XDP_MAP_JUMPS], &key, &id) < 0)
		return -errno;
	g->tell = bpf_prog_get_fd_by_id(id);
	return g->tell < 0 ? -errno : 0;
}

/* --- explaining --- */

/* What was answered, and the action in the words of XDP. */
static uint32_t read_answer(const struct __sk_buff *skb, uint32_t verdict, struct ax_explain *x)
{
	uint32_t words = skb->cb[AX_EXPLAIN_WORDS], rules = skb->cb[AX_EXPLAIN_RULES];

	x->rule = (uint16_t)rules;
	x->quoted_rule = (uint16_t)(rules >> 16);
	x->verdict = (uint8_t)words;
	x->reason = (uint8_t)(words >> 8);
	x->decided = (uint8_t)(words >> 16);
	x->limited = (uint8_t)(words >> 24 & 1);
	x->vlan = (uint16_t)skb->cb[AX_EXPLAIN_VLAN];
	x->l4_off = skb->cb[AX_EXPLAIN_L4];
	x->state = (uint8_t)(words >> AX_EXPLAIN_STATE_SHIFT);
	return (int32_t)verdict == TC_ACT_SHOT ? XDP_DROP : XDP_PASS;
}

int datapath_egress_explain(const struct generation *g, const void *frame, size_t len,
			    struct ax_explain *x, uint32_t *action, uint8_t **out, size_t *out_len)
{
	struct __sk_buff in = {0}, skb = {0};
	autofree uint8_t *res = malloc(len);
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = (uint32_t)len,
		    .data_out = res, .data_size_out = (uint32_t)len, .ctx_in = &in,
		    .ctx_size_in = sizeof(in), .ctx_out = &skb, .ctx_size_out = sizeof(skb),
		    .repeat = 1);

	if (!res)
		return -ENOMEM;
	in.mark = x->mark;
	in.cb[AX_EXPLAIN_MINUTE] = x->minute;
	in.cb[AX_EXPLAIN_STATE] = x->state;
	in.cb[AX_EXPLAIN_KEY] = AX_EXPLAIN_ASKED;
	if (bpf_prog_test_run_opts(g->tell, &o) < 0)
		return -errno;
	*action = read_answer(&skb, o.retval, x);
	*out_len = o.data_size_out;
	*out = take_ptr(&res);
	return 0;
}
