/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values that flags, the config file and rules share: what is right is known here alone. Each
 * function returns NULL, or what was expected instead and leaves its result alone. */
#ifndef AX_BASE_VALUES_H
#define AX_BASE_VALUES_H

#include "base/util.h"

/* The name of an app or a service: a label of a DNS name, in lower case. */
const char *want_name(const char *s);
/* The same of an app's, also of another cluster's: NAME.CLUSTER, together no longer than a name. */
const char *want_app_name(const char *s);
/* "5s", "300ms", "2m", "1.5s"; without a unit seconds. Whole milliseconds. */
const char *want_duration_ms(const char *s, uint32_t *ret);

#endif
