/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A config file of which some services have changed: what lies between the same beginning and the
 * same end of its text is read, and all else is what it was. A file of 10,000 services takes 50 ms
 * to read as a whole.
 */
#ifndef AX_CONFIG_EDIT_H
#define AX_CONFIG_EDIT_H

#include "config/config.h"
#include "yaml/errors.h"

struct config_source; /* a text, and where its services stand in it */

/* What config_read() makes of a text. */
struct config_next {
	struct config config;
	struct config_source *source; /* NULL: none of its services can be read alone */
	bool edited;		      /* all but the following is the memory of the one before: */
	size_t first, n_old, n_new;   /* services [first, first + n_old) have become n_new */
};

/*
 * What config_parse() makes of the text, to a byte. `old` is the config that holds, and `was` its
 * source; either may be NULL. The result is for one of the following three. Returns, and leaves to
 * be freed, what config_parse() does.
 */
int config_read(const struct config *old, const struct config_source *was, const char *text,
		size_t len, struct config_next *ret, struct config_errors *errs);

/* It does not hold: frees what is its own. */
void config_next_free(struct config_next *n);
/* Its config holds and has been copied away, its source belongs to the caller: frees what the one
 * before it had for itself. */
void config_next_holds(const struct config_next *n, struct config *old);
void config_source_free(struct config_source *s);

#endif
