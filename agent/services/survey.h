/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which addresses of services anybody is connected by now, seen in one look at all sockets and
 * flows. When many services are removed at once, hardly any of them has a connection, and a look
 * for each by itself would keep whoever asks next waiting for half a minute.
 */
#ifndef AX_SERVICES_SURVEY_H
#define AX_SERVICES_SURVEY_H

#include "base/address.h"

struct agent;
struct survey;

/* Within a work. tcp: of TCP, too, else of UDP alone. NULL: it cannot be known. */
struct survey *survey_take(struct agent *a, bool tcp);
bool survey_has(const struct survey *s, const struct ax_addr *asked);
void survey_free(struct survey *s);

#endif
