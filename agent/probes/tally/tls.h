/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef AX_PROBES_TALLY_TLS_H
#define AX_PROBES_TALLY_TLS_H

#include "base/strv.h"
#include "tally_event.h"
#include "probes/watch/watch.h"

struct tally_tls_options {
	const struct strv
		*files; /* that have the functions; empty: OpenSSL's and GnuTLS's library */
	bool of_pids;	/* as the processes that are watched see them, not a program that is started
			 */
	uint32_t bytes; /* of a call at most */
	bool only_uid;	/* only processes of this user */
	uint32_t uid;
};
#define TALLY_TLS_BYTES_MAX (256u * AX_TLS_PIECE)

/* Its records are struct ax_tls_event. -ENOENT: the files have none of the functions. */
int tally_tls_load(const struct watch_options *o, const struct tally_tls_options *x,
		   struct watch **ret, struct error *e);

#endif
