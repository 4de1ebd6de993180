/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a detached app's output goes: through a pipe into a file of bounded size, or to the
 * journal. When the file has half of the size, it becomes PATH.1 in the place of the one before
 * it, and a new one begins, with a line if the app writes lines. Several supervisors may write the
 * same file: apps of one name do.
 */
#ifndef AX_LAUNCH_OUTPUT_H
#define AX_LAUNCH_OUTPUT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

#define OUTPUT_CHUNK 65536 /* bytes that are read at a time; both files together: at least 4 */

struct output;

/* Opens the log (an absolute path), with at most `max` bytes in both files. *writer is the app's
 * end of the pipe, the caller's to close. */
int output_open(const char *path, uint64_t max, struct output **ret, int *writer, struct error *e);
/* Begins to read, in a thread of its own: whoever still has to fork has done so. */
int output_start(struct output *o, struct error *e);
/* Returns when what the pipe holds now is in the file. */
void output_catch_up(struct output *o);
/* Returns when nobody can write any more, and frees. NULL is nothing. */
void output_finish(struct output *o);

/* A connection to the journal under this name; *ret is the caller's to close. */
int output_journal(const char *socket_path, const char *name, int *ret, struct error *e);
#define OUTPUT_JOURNAL "/run/systemd/journal/stdout"

#endif
