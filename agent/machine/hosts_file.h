/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A block of lines of ours, between two marks, at the end of a file of others: /etc/hosts. */
#ifndef AX_MACHINE_HOSTS_FILE_H
#define AX_MACHINE_HOSTS_FILE_H

#include "base/util.h"

#define HOSTS_FILE     "/etc/hosts"
#define HOSTS_FILE_MAX (4u << 20)

/* The text without the block that `owner` has in it, and with `lines` (whole ones, "": no block) as
 * the new one. NULL: out of memory. */
char *hosts_block_replace(const char *text, const char *owner, const char *lines);
/* Whether a line outside of all blocks has this name. */
bool hosts_has_name(const char *text, const char *name);

/*
 * Does that to the file, by a new one with its owner, mode and label that takes its name; in place
 * where that cannot be (a bind mount). What others write meanwhile is kept. Nothing is written
 * where nothing changes.
 */
int hosts_file_update(const char *path, const char *owner, const char *lines, struct error *e);

#endif
