// SPDX-License-Identifier: GPL-2.0-or-later
/* One packet through a program, by BPF_PROG_TEST_RUN: nothing is sent. */
#include <linux/bpf.h>

#include <bpf/bpf.h>

#include "datapath/priv.h"
#include "datapath/xdp_datapath.h"
#include "datapath/xdp_priv.h"

#define RUN_ROOM 256 /* for headers that a program puts in front */

/* md: the context, whose data and data_end are those of the n bytes at `in`. *out (malloc'ed) is
 * what they are afterwards. */
static int run(int prog, struct xdp_md *md, const void *in, size_t n, uint32_t *action,
	       uint8_t **out, size_t *out_len)
{
	autofree uint8_t *res = malloc(n + RUN_ROOM);
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in, .data_size_in = (uint32_t)n,
		    .data_out = res, .data_size_out = (uint32_t)(n + RUN_ROOM), .ctx_in = md,
		    .ctx_size_in = sizeof(*md), .repeat = 1);

	if (!res)
		return -ENOMEM;
	if (bpf_prog_test_run_opts(prog, &o) < 0)
		return -errno;
	*action = o.retval;
	*out_len = o.data_size_out;
	*out = take_ptr(&res);
	return 0;
}

int generation_explain(const struct generation *g, const void *frame, size_t len,
		       struct ax_explain *x, uint32_t *action, uint8_t **out, size_t *out_len)
{
	struct xdp_md md = {.data = sizeof(*x), .data_end = (uint32_t)(len + sizeof(*x))};
	autofree uint8_t *in = malloc(len + sizeof(*x));
	autofree uint8_t *res = NULL;
	int r;

	if (g->tell)
		return datapath_egress_explain(g, frame, len, x, action, out, out_len);
	if (!in)
		return -ENOMEM;
	x->key = g->layout.explain_key;
	memcpy(in, x, sizeof(*x));
	memcpy(in + sizeof(*x), frame, len);
	r = run(g->prog, &md, in, len + sizeof(*x), action, &res, out_len);
	if (r)
		return r;
	if (*out_len < sizeof(*x))
		return -EPROTO;
	memcpy(x, res, sizeof(*x));
	*out_len -= sizeof(*x);
	memmove(res, res + sizeof(*x), *out_len);
	*out = take_ptr(&res);
	return 0;
}

int datapath_xdp_run(int prog, unsigned ifindex, const void *frame, size_t len, uint32_t *action,
		     uint8_t **out, size_t *out_len)
{
	struct xdp_md md = {.data_end = (uint32_t)len, .ingress_ifindex = ifindex};
	int r = run(prog, &md, frame, len, action, out, out_len);

	if (r != -EINVAL)
		return r;
	/* without XDP in its driver an interface has no queue of which a packet could be */
	md.ingress_ifindex = 0;
	return run(prog, &md, frame, len, action, out, out_len);
}
