/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the suite and its BPF programs share. */
#ifndef AX_TESTS_SPLICE_SPLICE_H
#define AX_TESTS_SPLICE_SPLICE_H

#include <linux/types.h>

/* One end of a connection. Addresses of IPv4 stand in the last word; byte order of the network. */
struct splice_key {
	__u64 netns; /* cookie */
	__u32 local[4];
	__u32 remote[4];
	__u32 local_port;  /* host byte order */
	__u32 remote_port; /* host byte order */
};
_Static_assert(sizeof(struct splice_key) == 48, "struct splice_key is a map key");

enum splice_count { SPLICE_PASSED, SPLICE_REDIRECTED, SPLICE_JOINED, SPLICE_COUNTS };

#endif
