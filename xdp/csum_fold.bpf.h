/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of an Internet checksum (RFC 1071), on XDP and on tc. */
#ifndef AX_CSUM_FOLD_BPF_H
#define AX_CSUM_FOLD_BPF_H

#include <linux/types.h>

static __always_inline __u16 csum_fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (__u16)~sum;
}

#endif
