/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/lib/assignments.h"

#define FILE_SIZE_MAX (1u << 20)

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

/* As docker has it: "HOME" alone is the caller's. */
static int add(const char *text, struct strv *ret, struct error *e)
{
	autofree char *both = NULL;
	const char *value;

	if (strchr(text, '='))
		return strv_add(ret, text) ? no_memory(e) : 0;
	value = getenv(text);
	if (!value)
		return 0;
	if (asprintf(&both, "%s=%s", text, value) < 0) {
		both = NULL;
		return no_memory(e);
	}
	return strv_add(ret, both) ? no_memory(e) : 0;
}

static bool is_name(const char *text)
{
	size_t len = strcspn(text, "=");

	return len > 0 && strcspn(text, " \t") >= len;
}

int assignments_parse(char *text, const char *path, struct strv *ret, struct error *e)
{
	unsigned line = 0;

	for (char *p = text, *next; p; p = next) {
		size_t len = strcspn(p, "\n");
		int r;

		next = p[len] ? p + len + 1 : NULL;
		p[len] = 0;
		if (len && p[len - 1] == '\r')
			p[len - 1] = 0;
		line++;
		p += strspn(p, " \t");
		if (!*p || *p == '#')
			continue;
		if (!is_name(p))
			return error_set(e, -EINVAL, "%.200s:%u: this is not KEY=VALUE: '%.60s'",
					 path, line, p);
		r = add(p, ret, e);
		if (r)
			return r;
	}
	return 0;
}

static int read_file(const char *path, struct strv *ret, struct error *e)
{
	autofree char *text = NULL;
	int r = file_read(path, FILE_SIZE_MAX, &text);

	if (r)
		return error_set(e, r, "--env-file %.200s cannot be read: %s", path, strerror(-r));
	return assignments_parse(text, path, ret, e);
}

int assignments_collect(const struct strv *files, const struct strv *given, struct strv *ret,
			struct error *e)
{
	int r = 0;

	for (size_t i = 0; !r && i < files->n; i++)
		r = read_file(files->v[i], ret, e);
	for (size_t i = 0; !r && i < given->n; i++) {
		if (!strchr(given->v[i], '=') || given->v[i][0] == '=')
			r = error_set(e, -EINVAL, "--env cannot be '%.100s': give KEY=VALUE",
				      given->v[i]);
		else
			r = add(given->v[i], ret, e);
	}
	return r;
}
