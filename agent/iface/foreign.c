// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs on interfaces that are none of this instance's: what they make of a packet. */
#include <bpf/bpf.h>
#include <net/if.h>

#include "iface/priv.h"
#include "net/netlink.h"

int xdp_foreign_id(const char *ifname, unsigned ifindex, uint32_t *id, struct error *e)
{
	struct nl *nl CLEANUP(nl_closep) = NULL;
	int r = nl_open(&nl);

	if (!r)
		r = nl_link_xdp(nl, ifindex, id);
	if (r == -EMLINK)
		return error_set(e, r,
				 "%s has several XDP programs, each in a mode of its own: which of "
				 "them judges first is the driver's matter",
				 ifname);
	if (r)
		return error_set(e, r, "cannot ask for the program of %s: %s", ifname,
				 strerror(-r));
	return *id ? 0 : -ENOENT;
}

int xdp_foreign_open(const struct instance *inst, const char *ifname, struct xdp_foreign *ret,
		     struct error *e)
{
	enum xdp_mode mode;
	int r;

	*ret = (struct xdp_foreign){.prog = -1, .ifindex = if_nametoindex(ifname)};
	r = xdp_foreign_id(ifname, ret->ifindex, &ret->id, e);
	if (!r)
		r = xdp_programs(inst, ifname, &ret->programs, &ret->n, &mode, &ret->dispatcher, e);
	if (r)
		return r;
	ret->prog = bpf_prog_get_fd_by_id(ret->id);
	if (ret->prog >= 0 && ret->n)
		return 0;
	r = ret->prog < 0 ? -errno : -ENOENT;
	xdp_foreign_close(ret);
	return error_set(e, r, "the program of %s is gone: try again", ifname);
}

void xdp_foreign_close(struct xdp_foreign *f)
{
	close_fd(&f->prog);
	free(f->programs);
	f->programs = NULL;
	f->n = 0;
}

int xdp_foreign_run(const struct xdp_foreign *f, const void *frame, size_t len,
		    struct xdp_explanation *ret, struct error *e)
{
	int r;

	*ret = (struct xdp_explanation){0};
	r = datapath_xdp_run(f->prog, f->ifindex, frame, len, &ret->action, &ret->out,
			     &ret->out_len);
	if (!r)
		return 0;
	return error_set(e, r, "the kernel does not run %s on a packet of %zu bytes: %s",
			 f->programs[0].name, len, strerror(-r));
}
