/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The format files of tracefs: which fields a tracepoint's record has, and where. */
#ifndef AX_PROBES_KERNEL_FIELDS_H
#define AX_PROBES_KERNEL_FIELDS_H

#include "base/util.h"

enum field_kind {
	FIELD_NUMBER,
	FIELD_POINTER,	/* shown as an address */
	FIELD_TEXT,	/* const char *: the address of a string */
	FIELD_STRING,	/* char[N] in the record */
	FIELD_ARRAY,	/* of numbers, in the record */
	FIELD_DYNAMIC,	/* __data_loc char[]: offset (16 bits) and length of a string in the record
			 */
	FIELD_RELATIVE, /* __rel_loc char[]: the same, counted from behind this field */
	FIELD_DYNAMIC_ARRAY, /* the same two of anything else than char */
	FIELD_RELATIVE_ARRAY,
};
struct field {
	char *name;
	char *type; /* as it is written, without the array's length */
	enum field_kind kind;
	uint16_t offset, size;
	uint16_t element; /* bytes of an array's element, else the size */
	bool is_signed;
};
struct format {
	char *name;
	uint32_t id;
	struct field *v;
	size_t n;
	bool user; /* of a system call: addresses are in user memory */
};
/* -EINVAL with a sentence that names the line. */
int format_parse(const char *text, struct format *ret, struct error *e);
void format_free(struct format *f);
const struct field *format_find(const struct format *f, const char *name);
/* The first fields are the same for all tracepoints (common_type and so on). */
bool field_is_common(const struct field *f);

#endif
