/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text of others in a message. */
#ifndef AX_BASE_QUOTE_H
#define AX_BASE_QUOTE_H

#include "base/util.h"

/* The text in quotes, fit for a terminal: clipped at 60 bytes, control characters and what is no
 * UTF-8 escaped. malloc'ed; NULL only when memory is out. */
char *quote_text(const char *text, size_t len);

#endif
