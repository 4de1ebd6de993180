/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What etcd is sent: JSON, bytes as base64, numbers of 64 bits as strings. Each function returns a
 * text (malloc) and its length, or NULL when there is no memory. */
#ifndef AX_ETCD_BODY_H
#define AX_ETCD_BODY_H

#include "etcd/etcd.h"

/* Up to `limit` keys from `from` on (NULL: from the first), as they were at that revision. */
char *body_range(const struct etcd_range *what, const struct etcd_bytes *from, int64_t revision,
		 unsigned limit, size_t *len);
char *body_txn(const struct etcd_txn *t, size_t *len);
char *body_grant(unsigned ttl_s, size_t *len);
char *body_lease(int64_t id, size_t *len);
char *body_watch(struct etcd_bytes key, bool prefix, int64_t revision, size_t *len);

#endif
