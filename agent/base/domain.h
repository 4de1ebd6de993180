/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the DNS as text, and patterns of them: "example.com", "*.example.com" (every name below
 * it, and not it itself), "*" (every name). */
#ifndef AX_BASE_DOMAIN_H
#define AX_BASE_DOMAIN_H

#include "base/util.h"

#define DOMAIN_STRLEN 254 /* 253 characters at most */

/* In lower case and without a dot at the end. Returns NULL, or what was expected instead. Without
 * `pattern` a star is none. Names in other scripts have the form that goes over the wire (xn--). */
const char *want_domain(const char *s, bool pattern, char ret[DOMAIN_STRLEN]);
/* Both as want_domain() has made them. */
bool domain_matches(const char *pattern, const char *name);

#endif
