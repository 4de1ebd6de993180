// SPDX-License-Identifier: GPL-2.0-or-later
/* Any text as a tracepoint's format file: what is taken for one has a name, a number, and fields
 * that lie within a record. */
#include <stdint.h>

#include "probes/kernel/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_field(const struct format *f, const struct field *field)
{
	check(field->name && *field->name && field->type);
	check(field->size && field->offset + field->size <= 8192);
	check(field->element && field->element <= field->size);
	check(format_find(f, field->name) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = malloc(size + 1);
	struct error e = {0};
	struct format f;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (format_parse(text, &f, &e) < 0) {
		check(*e.text && !f.v && !f.name);
		return 0;
	}
	check(f.name && *f.name && f.id);
	for (size_t i = 0; i < f.n; i++)
		check_field(&f, &f.v[i]);
	format_free(&f);
	return 0;
}
