/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is kept of an app outside of the agent: its record, in an extended attribute of its cgroup,
 * and its entry in the kernel's table. */
#ifndef AX_REGISTRY_APP_RECORD_H
#define AX_REGISTRY_APP_RECORD_H

#include <jansson.h>

#include "base/address.h"

struct agent;
struct app;

/* Writes the record. Returns 0 or a negative errno. */
int app_save(const struct app *app);

/* The app of a record, with the cgroup's path. -ENODATA: it makes no sense; -ENOMEM. */
int app_from_record(const char *cgroup, const char *text, struct app **ret);

/* An address of the record's JSON, zero: there is none. */
void app_record_addr(const json_t *j, const char *key, struct ax_addr *ret);

/* Writes the kernel's entry. */
int app_tell(struct agent *a, struct app *app);

#endif
