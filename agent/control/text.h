/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A long text that goes beside a request: in sealed memory, which is neither quoted nor parsed on
 * the way, and which nobody can change while it is read. */
#ifndef AX_CONTROL_TEXT_H
#define AX_CONTROL_TEXT_H

#include "base/util.h"

/* A descriptor of such memory with a copy of the text, for the caller to close; a negative errno.
 */
int control_text_seal(const char *text, size_t len);

/* Copies what is in it (malloc'ed, with a NUL behind it) to *ret. Does not wait for anybody: what
 * is no sealed memory is -EINVAL; -EFBIG: more than max bytes; -ENOMEM. */
int control_text_read(int fd, size_t max, char **ret, size_t *len);

#endif
