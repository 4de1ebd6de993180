/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files with certificates, by OpenSSL's library, which libcurl has, too. */
#ifndef AX_CHECKUP_CERTIFICATE_H
#define AX_CHECKUP_CERTIFICATE_H

#include <time.h>

#include "base/util.h"

/* Of the first one in a file (PEM) from when and until when it holds, UNIX time. -EINVAL: there is
 * none; -ENOTSUP: there is no library; else why the file cannot be read. All with a sentence. */
int certificate_read(const char *path, time_t *from, time_t *until, struct error *e);

/* Whether the key in a file is that of the first certificate in another one. 0; -EINVAL: it is not,
 * or is none, or wants a password; else as above. */
int certificate_has_key(const char *path, const char *key, struct error *e);

#endif
