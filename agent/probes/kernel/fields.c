// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/kernel/fields.h"

#define FIELDS_MAX   128
#define RECORD_BYTES 8192

static char *blank_skip(char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

static void blank_trim(char *s)
{
	size_t n = strlen(s);

	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		s[--n] = '\0';
}

/* The number behind "key:" of a field's line, up to the ';'. */
static int line_number(const char *line, const char *key, long max, long *ret)
{
	const char *at = strstr(line, key);
	char *end;

	if (!at)
		return -EINVAL;
	at += strlen(key);
	if (*at < '0' || *at > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtol(at, &end, 10);
	return errno || *ret > max || *end != ';' ? -EINVAL : 0;
}

static bool is_char(const char *type)
{
	return streq(type, "char") || streq(type, "const char") || streq(type, "signed char");
}

static bool is_text_pointer(const char *type)
{
	return streq(type, "const char *") || streq(type, "char *");
}

/* Of an element of an array that is a type's name; 1 where the type is not known. */
static uint16_t element_size(const char *type)
{
	static const struct {
		const char *name;
		uint16_t size;
	} types[] = {
		{"unsigned long", sizeof(long)},
		{"long", sizeof(long)},
		{"u64", 8},
		{"__u64", 8},
		{"s64", 8},
		{"__be64", 8},
		{"unsigned int", 4},
		{"int", 4},
		{"u32", 4},
		{"__u32", 4},
		{"s32", 4},
		{"__be32", 4},
		{"u16", 2},
		{"__u16", 2},
		{"unsigned short", 2},
		{"short", 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (streq(types[i].name, type))
			return types[i].size;
	return 1;
}

static void set_array(struct field *f)
{
	f->element = element_size(f->type);
	if (!f->size || f->size % f->element)
		f->element = 1;
	f->kind = is_char(f->type) ? FIELD_STRING : FIELD_ARRAY;
}

static int set_located(struct field *f, bool relative, size_t prefix)
{
	char *type = f->type + prefix, *bracket;

	memmove(f->type, type, strlen(type) + 1);
	bracket = strchr(f->type, '[');
	if (bracket)
		*bracket = '\0';
	blank_trim(f->type);
	if (f->size != 4)
		return -EINVAL;
	f->element = 4;
	if (is_char(f->type))
		f->kind = relative ? FIELD_RELATIVE : FIELD_DYNAMIC;
	else
		f->kind = relative ? FIELD_RELATIVE_ARRAY : FIELD_DYNAMIC_ARRAY;
	return 0;
}

static int set_kind(struct field *f, bool is_array)
{
	static const char located[] = "__data_loc ", relative[] = "__rel_loc ";
	size_t n = strlen(f->type);

	f->element = f->size;
	if (starts_with(f->type, located))
		return set_located(f, false, strlen(located));
	if (starts_with(f->type, relative))
		return set_located(f, true, strlen(relative));
	if (is_array) {
		set_array(f);
		return 0;
	}
	f->kind = FIELD_NUMBER;
	if (n && f->type[n - 1] == '*' && f->size == 8)
		f->kind = is_text_pointer(f->type) ? FIELD_TEXT : FIELD_POINTER;
	else if (f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8)
		set_array(f);
	return 0;
}

/* "unsigned long args[6]": type, name, array. */
static int parse_declaration(char *s, struct field *f, bool *is_array)
{
	char *name, *bracket;

	s = blank_skip(s);
	blank_trim(s);
	name = strrchr(s, ' ');
	if (!name || name == s)
		return -EINVAL;
	*name++ = '\0';
	blank_trim(s);
	bracket = strchr(name, '[');
	*is_array = bracket != NULL;
	if (bracket)
		*bracket = '\0';
	if (!*name || !*s)
		return -EINVAL;
	f->name = strdup(name);
	f->type = strdup(s);
	return f->name && f->type ? 0 : -ENOMEM;
}

static int parse_field(const char *line, struct field *f)
{
	const char *end = strchr(line, ';');
	autofree char *declaration = NULL;
	long offset, size, is_signed = 0;
	bool is_array;
	int r;

	if (!end)
		return -EINVAL;
	declaration = strndup(line, (size_t)(end - line));
	if (!declaration)
		return -ENOMEM;
	if (line_number(end, "offset:", RECORD_BYTES, &offset) ||
	    line_number(end, "size:", RECORD_BYTES, &size) || offset + size > RECORD_BYTES)
		return -EINVAL;
	if (strstr(end, "signed:") && line_number(end, "signed:", 1, &is_signed))
		return -EINVAL;
	r = parse_declaration(declaration, f, &is_array);
	if (r < 0)
		return r;
	f->offset = (uint16_t)offset;
	f->size = (uint16_t)size;
	f->is_signed = is_signed;
	return set_kind(f, is_array);
}

static void field_free(struct field *f)
{
	free(f->name);
	free(f->type);
}

void format_free(struct format *f)
{
	for (size_t i = 0; i < f->n; i++)
		field_free(&f->v[i]);
	free(f->v);
	free(f->name);
	*f = (struct format){0};
}

static int add_field(struct format *f, const char *line)
{
	int r;

	if (!f->v)
		f->v = calloc(FIELDS_MAX, sizeof(*f->v));
	if (!f->v)
		return -ENOMEM;
	if (f->n == FIELDS_MAX)
		return -E2BIG;
	r = parse_field(line, &f->v[f->n]);
	if (r < 0) {
		field_free(&f->v[f->n]);
		f->v[f->n] = (struct field){0};
		return r;
	}
	/* Some have the field of no size that marks the end of the fixed ones. */
	if (!f->v[f->n].size) {
		field_free(&f->v[f->n]);
		f->v[f->n] = (struct field){0};
		return 0;
	}
	f->n++;
	return 0;
}

static int parse_line(struct format *f, char *line)
{
	char *end;

	line = blank_skip(line);
	if (starts_with(line, "name:") && !f->name) {
		line = blank_skip(line + strlen("name:"));
		blank_trim(line);
		f->name = strdup(line);
		return !f->name ? -ENOMEM : *line ? 0 : -EINVAL;
	}
	if (starts_with(line, "ID:")) {
		line = blank_skip(line + strlen("ID:"));
		errno = 0;
		f->id = (uint32_t)strtoul(line, &end, 10);
		return errno || end == line || *line == '-' ? -EINVAL : 0;
	}
	if (starts_with(line, "field:"))
		return add_field(f, line + strlen("field:"));
	return 0;
}

int format_parse(const char *text, struct format *ret, struct error *e)
{
	autofree char *copy = strdup(text);
	char *rest = copy, *line;
	unsigned number = 0;
	int r = copy ? 0 : -ENOMEM;

	*ret = (struct format){0};
	while (r == 0 && (line = strsep(&rest, "\n"))) {
		number++;
		if (starts_with(line, "print fmt:"))
			break;
		r = parse_line(ret, line);
	}
	if (r == 0 && (!ret->name || !ret->id))
		r = -EINVAL;
	if (r == 0) {
		ret->user =
			starts_with(ret->name, "sys_enter_") || starts_with(ret->name, "sys_exit_");
		return 0;
	}
	format_free(ret);
	if (r == -ENOMEM)
		return error_set(e, r, "out of memory");
	return error_set(e, r,
			 "line %u of the format file is not what a kernel writes: expected "
			 "name, ID and fields with offset and size",
			 number);
}

const struct field *format_find(const struct format *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (streq(f->v[i].name, name))
			return &f->v[i];
	return NULL;
}

bool field_is_common(const struct field *f)
{
	return starts_with(f->name, "common_");
}
