/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Config files: what is declared minus what was declared before. */
#ifndef AX_DAEMON_RECONCILE_H
#define AX_DAEMON_RECONCILE_H

#include <jansson.h>
#include "config/edit.h"

struct agent;
struct config_errors;

/* config_read(), beside the loop. All that is here may be part of a work (base/work.h). What was
 * read is for reconcile() within the same work. */
int reconcile_parse(struct agent *a, const char *text, size_t len, struct config_next *ret,
		    struct config_errors *errs);

/* Computes the difference between `read` and what is declared now, and applies it unless dry_run.
 * *read is taken over or freed in any case; *holds says which (it may hold though not all of it
 * could be done). The diff goes to *diff (JSON array). */
int reconcile(struct agent *a, struct config_next *read, bool dry_run, json_t **diff, bool *holds,
	      struct error *e);

/* Ends apps of the config that it does not have any more, or has otherwise, since an agent that
 * is gone started them. */
void reconcile_adopted(struct agent *a);
int reconcile_file(struct agent *a, const char *path, struct error *e);

#endif
