/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a node remembers of the others (remember.c), as text: a line that says whose it is, a JSON
 * object, and then one for each key, as etcd had it:
 *
 *   {"v":1,"cluster":"east","id":"0123...","revision":17}
 *   AT AWAY LEASE KEY VALUE
 */
#ifndef AX_CLUSTER_REMEMBERED_H
#define AX_CLUSTER_REMEMBERED_H

#include <stdio.h>

#include "cluster/record.h"

struct remembered_head {
	char cluster[RECORD_NAME_MAX + 1];
	char id[RECORD_ID_LEN + 1]; /* of the node that remembers */
	int64_t revision;	    /* of etcd's store */
};

struct remembered {
	int64_t at;    /* UNIX time when etcd said so last; 0: when the text was confirmed last */
	int64_t away;  /* UNIX time since when its node's lease has ended; 0: it has not */
	int64_t lease; /* under which the key was; 0: none */
	const char *key, *value; /* NUL-terminated; `value` is a record (record.h), of any bytes */
};

/* NULL: out of memory. */
char *remembered_head_text(const struct remembered_head *h);
/* A line of len bytes. -EINVAL, or -EOPNOTSUPP: another version wrote it. */
int remembered_head_read(const char *line, size_t len, struct remembered_head *ret);

/* With the line's end. What went wrong says ferror(). */
void remembered_write(FILE *f, const struct remembered *r);
/* A line of len bytes, and a NUL behind them. It is changed, and *ret points into it. -EINVAL. */
int remembered_read(char *line, size_t len, struct remembered *ret);

#endif
