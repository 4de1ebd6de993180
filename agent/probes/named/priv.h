/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_NAMED_PRIV_H
#define AX_PROBES_NAMED_PRIV_H

#include <sys/stat.h>

#include "probes/named/named.h"
#include "probes/session/priv.h"

/* What is kept with a session's maps (kept.c). */
struct kept {
	struct config_probe probe;
	bool by_config;
	int64_t made;
	uint64_t cgroup; /* that it was attached to, 0: none */
	struct kept_file {
		char *path;
		uint64_t device, inode;
		/* What it held: a sum of its bytes, and when it was changed last, in nanoseconds
		 * of CLOCK_REALTIME; 0: kept by a version of ax that did not look. */
		uint64_t sum, changed_ns;
	} files[SESSION_FILES_MAX];
	size_t n_files;
};
void kept_free(struct kept *k);
/* The files that the session probes; 0 or -ENOMEM. */
int kept_take_files(struct kept *k, const struct session *s);
/* The same file holds other bytes: breakpoints are in the midst of them. */
bool kept_file_is_overwritten(const struct kept_file *f, const struct stat *now);
/* malloc'ed */
char *kept_format(const struct kept *k);
/* -EPROTO: it is of another version of ax. */
int kept_parse(const char *text, struct kept *k);

#endif
