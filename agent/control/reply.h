/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An answer as it is sent. Making a long one takes its time, and needs nothing of the server: a
 * thread may do it. */
#ifndef AX_CONTROL_REPLY_H
#define AX_CONTROL_REPLY_H

#include <jansson.h>

#include "base/util.h"

/* No more than what clients who share a bound may have waiting altogether. */
#define REPLY_MAX (64u << 20)

struct reply {
	char *text; /* malloc'ed, with the newline at its end */
	size_t len;
};
/* Takes no reference. -EMSGSIZE: it would be longer than REPLY_MAX; -ENOMEM. */
int reply_make(const json_t *j, struct reply *ret);
static inline void reply_free(struct reply *r)
{
	free(take_ptr(&r->text));
}

#endif
