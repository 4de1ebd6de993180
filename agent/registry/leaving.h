/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP of private apps that a rule has let outside (map `leavers`), when rules change: that of an
 * app to which other rules apply than before is judged as if it began now; that of others goes on.
 * Apps with egress lists bring rules and take them away whenever they come and go. */
#ifndef AX_REGISTRY_LEAVING_H
#define AX_REGISTRY_LEAVING_H

#include <stdbool.h>
#include <stddef.h>

struct agent;

struct leaving {
	struct leaving_app *v; /* ordered by id */
	size_t n;
	bool unknown; /* for lack of memory: all is judged anew */
};

/* By the rules that hold. */
void leaving_note(struct agent *a, struct leaving *before);
/* When others do. */
void leaving_forget(struct agent *a, struct leaving *before);
void leaving_free(struct leaving *before);

#endif
