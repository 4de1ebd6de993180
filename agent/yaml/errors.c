// SPDX-License-Identifier: GPL-2.0-or-later
#include "yaml/errors.h"

int config_errors_add(struct config_errors *errs, unsigned line, unsigned column, char *path,
		      char *found, char *expected)
{
	struct config_error error = {line, column, path, found, expected};
	size_t at = errs->n;
	struct config_error *e = NULL;

	if (path && found && expected && errs->n < CONFIG_ERRORS_MAX)
		e = realloc(errs->e, (errs->n + 1) * sizeof(*e));
	if (!e) {
		free(path);
		free(found);
		free(expected);
		return path && found && expected && errs->n == CONFIG_ERRORS_MAX ? 0 : -ENOMEM;
	}
	errs->e = e;
	/* mostly they come in order already */
	while (at > 0 &&
	       (e[at - 1].line > line || (e[at - 1].line == line && e[at - 1].column > column)))
		at--;
	memmove(e + at + 1, e + at, (errs->n - at) * sizeof(*e));
	e[at] = error;
	errs->n++;
	return 0;
}

void config_errors_free(struct config_errors *errs)
{
	for (size_t i = 0; i < errs->n; i++) {
		free(errs->e[i].path);
		free(errs->e[i].found);
		free(errs->e[i].expected);
	}
	free(errs->e);
	*errs = (struct config_errors){0};
}

void config_errors_print(const struct config_errors *errs, const char *file, FILE *to)
{
	for (size_t i = 0; i < errs->n; i++) {
		const struct config_error *e = &errs->e[i];

		fprintf(to, "%s:%u:%u: %s%sfound %s, expected %s\n", file, e->line, e->column,
			e->path, *e->path ? ": " : "", e->found, e->expected);
	}
}
