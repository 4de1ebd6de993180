/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ready commands do, as scripts of ax trace run (ax trace show-script). */
#ifndef AX_TOOLS_TRACE_READY_SCRIPTS_H
#define AX_TOOLS_TRACE_READY_SCRIPTS_H

#include "tools/trace/ready/tally.h"

void script_syscalls(const struct tally_view *v, FILE *f);
/* signal 0: all; `failed`: those, too, that the kernel refused to send. */
void script_signals(const struct ready *r, int signal, bool failed, FILE *f);
void script_files(const struct tally_view *v, bool all, FILE *f);
void script_locks(uint64_t least_ns, bool all, bool hist, FILE *f);
/* `files`: where malloc() is, none: the C library. */
void script_malloc(const struct strv *files, FILE *f);
enum script_bytes { SCRIPT_TEXT, SCRIPT_HEX, SCRIPT_NO_BYTES };
void script_tls(const struct strv *files, enum script_bytes format, FILE *f);
struct script_hypercalls {
	bool only, all, live;
	uint64_t nr; /* with `only` */
};
void script_hypercalls(const struct script_hypercalls *x, FILE *f);
void script_open(bool failed, FILE *f);
void script_exec(bool failed, FILE *f);

#endif
