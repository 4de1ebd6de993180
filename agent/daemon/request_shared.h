/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A config for all nodes of the cluster: judged on this one, before it is stored. */
#ifndef AX_DAEMON_REQUEST_SHARED_H
#define AX_DAEMON_REQUEST_SHARED_H

#include <jansson.h>

#include "yaml/errors.h"

struct agent;

/* What it would change, as reconcile() says it, in *ret (of the caller, also after an error).
 * -EINVAL with what is wrong with the text in *errs, or another error with a sentence. Within a
 * work. */
int shared_judge(struct agent *a, const char *text, json_t **ret, struct config_errors *errs,
		 struct error *e);

/* The cluster's status, completed: with the services that this node has its own of. */
json_t *shared_view(const struct agent *a, json_t *cluster);

#endif
