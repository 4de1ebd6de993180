/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What makes bounds of sizes plain to the verifier. */
#ifndef AX_BPF_VERIFIER_H
#define AX_BPF_VERIFIER_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* Keeps the compiler from using what it knows of a value: from turning arithmetic back into a
 * branch, or two checks into one that the verifier does not understand. */
#define opaque(x) asm volatile("" : "+r"(x))

/* n if it is in 1..max, else 0: as the size of something, for helpers that take no size of 0. */
static __always_inline __u32 size_within(__u32 n, __u32 max)
{
	n--; /* kernels before 6.8 learn nothing from a comparison with 0 */
	opaque(n);
	if (n >= max)
		return 0;
	opaque(n);
	return n + 1;
}

/* Ends the IPv4 branch of code that reads an address from a context or a socket: without it the
 * compiler selects between two addresses and loads once, which the verifier does not allow. */
#define ctx_branch_end() asm volatile("" ::: "memory")

#endif
