/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an answer says, and how many of them make a backend up or down. Free of side effects. */
#ifndef AX_HEALTH_ANSWER_H
#define AX_HEALTH_ANSWER_H

#include "base/util.h"
#include "config/config.h"

struct health_state {
	unsigned fails, successes; /* in a row, one of them is 0 */
	bool down;
};

/* Takes one result in. Says whether up became down, or the other way round. */
bool health_count(struct health_state *s, bool good, const struct service_check *c);

/* The request, malloc'ed. */
char *health_http_request(const struct service_check *c, const char *host);

/* The status of an answer's first bytes: 100..599, 0: more of them are needed, -EBADMSG. */
int health_http_status(const char *data, size_t len);
bool health_status_good(int status, const struct service_check *c);

#endif
