/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which config holds when an agent starts. */
#ifndef AX_DAEMON_CONFIG_FILE_H
#define AX_DAEMON_CONFIG_FILE_H

#include "machine/instance.h"
#include "config/edit.h"

/* The config that holds: the file (path NULL: an empty one), or what was applied since, if the file
 * is still the one that the last agent had read. An agent that died must not undo an apply; an
 * edited file must win. Errors of the text are printed to stderr. */
int config_file_read(const struct instance *inst, const char *path, struct config_next *ret,
		     struct error *e);

/* The text of the applied config is kept for the next agent: it must not undo it by dying. */
void config_file_keep(const struct instance *inst, const char *text);

/* The file holds again. */
void config_file_forget(const struct instance *inst);

#endif
