/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is wrong with a YAML file: all of it at once, each with its place. */
#ifndef AX_YAML_ERRORS_H
#define AX_YAML_ERRORS_H

#include "base/util.h"

#define CONFIG_ERRORS_MAX 1000 /* beyond it no more are kept */

struct config_error {
	unsigned line, column; /* from 1 */
	char *path;	       /* services.api.ports[0].port */
	char *found;
	char *expected; /* with "did you mean ..." where a key was nearly right */
};
struct config_errors {
	struct config_error *e; /* in the file's order */
	size_t n;
};

/* Adds an error, keeping them in the file's order; takes the three strings, also on failure.
 * -ENOMEM also when one of them is NULL. */
int config_errors_add(struct config_errors *errs, unsigned line, unsigned column, char *path,
		      char *found, char *expected);
void config_errors_free(struct config_errors *errs);
/* Prints errors as file:line:column: path: found ..., expected .... */
void config_errors_print(const struct config_errors *errs, const char *file, FILE *to);

#endif
