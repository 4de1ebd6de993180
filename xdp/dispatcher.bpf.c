// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The dispatcher that libxdp puts several programs of an interface behind, by the names and the
 * configuration that its protocol asks for (libxdp's protocol.org): each of prog0 to prog9 is
 * replaced by a program (freplace), and the next one runs only after an action that is to be
 * chained. It stands in for libxdp's own of Debian 12 (1.3.1), whose functions do not change
 * packets: since Linux 6.13 (81f6d0530ba0, also in 6.12.5 and later) no program that does, or that
 * makes a tail call, may take the place of one that does not. Later versions of libxdp have mended
 * that in the same way.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <xdp/prog_dispatcher.h>

static const volatile struct xdp_dispatcher_config conf = {};

/* A function's own answer, which no compiler may foresee, and a reason for the verifier to believe
 * that it changes the packet. */
static __always_inline int not_replaced(struct xdp_md *ctx)
{
	volatile int ret = XDP_DISPATCHER_RETVAL;

	if (!ctx)
		return XDP_ABORTED;
	bpf_xdp_adjust_tail(ctx, 0); /* by nothing */
	return ret;
}

#define PLACE(name)                             \
	__noinline int name(struct xdp_md *ctx) \
	{                                       \
		return not_replaced(ctx);       \
	}
PLACE(prog0)
PLACE(prog1)
PLACE(prog2)
PLACE(prog3)
PLACE(prog4)
PLACE(prog5)
PLACE(prog6)
PLACE(prog7)
PLACE(prog8)
PLACE(prog9)
PLACE(compat_test) /* libxdp tries here whether the kernel can replace functions */

/* Whether the chain goes on after the function in place `i` gave this action. */
static __always_inline bool goes_on(int i, int action)
{
	return 1U << (action & 31) & conf.chain_call_actions[i];
}

SEC("xdp")
int xdp_dispatcher(struct xdp_md *ctx)
{
	const __u32 n = conf.num_progs_enabled;
	int r;

#define CALL(i)                  \
	if (n <= (i))            \
		return XDP_PASS; \
	r = prog##i(ctx);        \
	if (!goes_on(i, r))      \
		return r;
	CALL(0)
	CALL(1)
	CALL(2)
	CALL(3)
	CALL(4)
	CALL(5)
	CALL(6)
	CALL(7)
	CALL(8)
	CALL(9)
	if (n > MAX_DISPATCHER_ACTIONS) /* never: but it must be part of the program */
		return compat_test(ctx);
	return XDP_PASS;
}

/* What libxdp tries the attachment to an interface with. */
SEC("xdp")
int xdp_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
__uint(dispatcher_version, XDP_DISPATCHER_VERSION) SEC(XDP_METADATA_SECTION);
