/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `ax doctor` has found, as text or JSON. Of its files only. */
#ifndef AX_TOOLS_CMD_FINDINGS_H
#define AX_TOOLS_CMD_FINDINGS_H

#include "base/finding.h"
#include "tools/lib/cmd.h"

struct findings {
	json_t *list; /* NULL: text is wanted */
	bool colour;
	unsigned fixes; /* of what is not repaired */
};
void findings_free(struct findings *f);

/* node: whom it is about in a cluster, NULL where there is no such thing. */
void findings_put(struct findings *all, const char *node, const struct finding *f);

/* doctor_splice.c: of how many ends of connections each reason not to splice them is; NULL: no
 * agent says it. */
json_t *doctor_not_spliced(const struct cmd *c);
void doctor_put_not_spliced(json_t *reasons); /* NULL is fine */
/* doctor_cluster.c: returns the exit status. */
int doctor_cluster(struct cmd *c, int output);

#endif
