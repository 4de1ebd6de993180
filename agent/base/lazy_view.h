/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A large piece of memory of which only those parts are fetched that somebody looks at. */
#ifndef AX_BASE_LAZY_VIEW_H
#define AX_BASE_LAZY_VIEW_H

#include "base/util.h"

struct lazy_view {
	uint8_t *data; /* where all of it is, or will be */
	size_t size;
	/* Makes these bytes, which are in it, accessible; 0 or a negative errno. NULL: all are. */
	int (*fetch)(struct lazy_view *v, size_t at, size_t len);
	int error; /* of the first fetch that failed; 0: none did */
};

/* `len` bytes at offset `at`, which stay where they are as long as the view is open. NULL: it is
 * shorter than that, or they cannot be fetched. */
static inline void *view_at(struct lazy_view *v, size_t at, size_t len)
{
	int r;

	if (at > v->size || len > v->size - at)
		return NULL;
	r = v->fetch ? v->fetch(v, at, len) : 0;
	if (r < 0 && !v->error)
		v->error = r;
	return r < 0 ? NULL : v->data + at;
}

#endif
