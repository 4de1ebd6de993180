/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_TALLY_FILES_H
#define AX_PROBES_TALLY_FILES_H

#include "tally_event.h"
#include "probes/watch/watch.h"

/* Its tables: "files" (struct ax_file_key, struct ax_file_cell), "groups". Its records are
 * struct ax_file_name. `all`: not only regular files. */
int tally_files_load(const struct watch_options *o, enum ax_tally_by by, bool all,
		     struct watch **ret, struct error *e);

#endif
