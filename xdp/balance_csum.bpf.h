/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checksums after changes (RFC 1624): differences are collected as the sum of new words and of old
 * ones' complements, in 64 bits, which no packet's header can overflow.
 */
#ifndef AX_BALANCE_CSUM_BPF_H
#define AX_BALANCE_CSUM_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "addr.h"

static __always_inline __u16 diff_fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (__u16)((sum >> 16) + sum);
}

static __always_inline __u64 diff16(__u16 old, __u16 new)
{
	return (__u64)(__u16)~old + new;
}

static __always_inline __u64 diff_addr(const struct ax_addr *old, const struct ax_addr *new,
				       bool v4)
{
	__u64 d = (__u64)(__u32)~old->w[3] + new->w[3];

	if (v4)
		return d;
	d += (__u64)(__u32)~old->w[0] + new->w[0];
	d += (__u64)(__u32)~old->w[1] + new->w[1];
	return d + (__u32)~old->w[2] + new->w[2];
}

static __always_inline __u16 diff_apply(__u16 check, __u64 diff)
{
	return (__u16)~diff_fold((__u64)(__u16)~check + diff);
}

#endif
